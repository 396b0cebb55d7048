#ifndef HG_DATA_IMPORT_PLANETOID_H
#define HG_DATA_IMPORT_PLANETOID_H

#include "graph/coo.h"
#include "import/importers.h"
#include "import/pickle.h"

/* The files ind.NAME.x, ind.NAME.y and so on of one dataset. */
struct hg__planetoid {
	char *prefix; /* the path up to ind.NAME */
	hg_import_config config;
	char *message;
};

/* Labels, one for each row. */
struct hg__planetoid_labels {
	int32_t *at;
	int64_t count, classes;
};

/* Find the prefix by a path: ind.NAME, one of its files, or a folder with one dataset. The caller
 * frees it. */
HG_NODISCARD hg_status hg__planetoid_find(struct hg__planetoid *p, const char *path);
/* The path of a member, "graph", malloc'd. */
HG_NODISCARD hg_status hg__planetoid_path(const struct hg__planetoid *p, const char *member,
                                          char **path);

/* Read one member. On failure the caller frees what was read. */
HG_NODISCARD hg_status hg__planetoid_features(const struct hg__planetoid *p, const char *member,
                                              struct hg__sparse *features);
HG_NODISCARD hg_status hg__planetoid_labels(const struct hg__planetoid *p, const char *member,
                                            struct hg__planetoid_labels *labels);
HG_NODISCARD hg_status hg__planetoid_test_ids(const struct hg__planetoid *p, int64_t **ids,
                                              int64_t *count);
/* Read the graph, whose nodes must be 0 .. nodes - 1, into the dataset. */
HG_NODISCARD hg_status hg__planetoid_graph(const struct hg__planetoid *p, int64_t nodes,
                                           hg_dataset *d);

#endif
