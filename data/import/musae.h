#ifndef HG_DATA_IMPORT_MUSAE_H
#define HG_DATA_IMPORT_MUSAE_H

#include "import/folder.h"
#include "import/importers.h"

/* The files STEM_edges.csv, STEM_features.json and STEM_target.csv, each possibly with .gz. */
struct hg__musae {
	struct hg__folder folder;
	hg_import_config config;
	char *message;
};

/* The failure "no file STEM_PART or STEM_PART.gz", unless there is one. */
HG_NODISCARD hg_status hg__musae_expect(const struct hg__musae *files, const char *part);

/* Read STEM_target.csv: the number of nodes, and their labels or targets. */
HG_NODISCARD hg_status hg__musae_target(const struct hg__musae *files, hg_dataset *d);

#endif
