#ifndef HG_DATA_IMPORT_TU_H
#define HG_DATA_IMPORT_TU_H

#include "import/column.h"
#include "import/folder.h"
#include "import/importers.h"

/* The files STEM_A.txt, STEM_graph_labels.txt and so on of one dataset. */
struct hg__tu_files {
	struct hg__folder folder;
	const char *path; /* folder.shown, "MUTAG.zip/MUTAG/MUTAG" */
	hg_import_config config;
	char *message;
};

/* Find the files by a path: STEM_A.txt, or a folder or zip archive with one dataset. */
HG_NODISCARD hg_status hg__tu_find(struct hg__tu_files *files, const char *path);

int hg__tu_has(const struct hg__tu_files *files, const char *part);
/* Pass every line of STEM_PART.txt that is not empty to `add`, such as hg__column_add. An optional
 * file may be missing. */
HG_NODISCARD hg_status hg__tu_read(const struct hg__tu_files *files, const char *part, int optional,
                                   hg_status (*add)(const struct lines *, const char *, void *),
                                   void *to);
/* The failure "PATH_PART.txt: FOUND lines for EXPECTED WHAT", unless the two are equal. */
HG_NODISCARD hg_status hg__tu_expect(const struct hg__tu_files *files, const char *part,
                                     int64_t found, int64_t expected, const char *what);

/* Is there a file with labels or attributes of edges? */
int hg__tu_has_edge_data(const struct hg__tu_files *files);
/* Read them for the edges of the dataset; `origin` [edges] is that of the edges in the file
 * (coo.h). */
HG_NODISCARD hg_status hg__tu_edge_data(const struct hg__tu_files *files, const int64_t *origin,
                                        int64_t edges, hg_dataset *d);

#endif
