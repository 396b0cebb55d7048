#ifndef HG_DATA_IMPORT_GRAPHBOLT_H
#define HG_DATA_IMPORT_GRAPHBOLT_H

#include "import/run.h"
#include "import/yaml_file.h"

/* The folder of metadata.yaml, and what the file says. */
struct hg__graphbolt {
	struct hg__folder folder; /* the stem is the folder of metadata.yaml */
	struct hg__yaml yaml;
	hg_import_config config;
	hg_dataset *d;
	char *message;
};

/* The path of an item as a part of the folder, if its format is among the two (NULL: none). */
HG_NODISCARD hg_status hg__graphbolt_path(const struct hg__graphbolt *in, int item,
                                          const char *format, const char *other, const char **path,
                                          const char **found);
/* Read the labels and splits of the first task about nodes. */
HG_NODISCARD hg_status hg__graphbolt_tasks(const struct hg__graphbolt *in);

#endif
