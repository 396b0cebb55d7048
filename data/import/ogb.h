#ifndef HG_DATA_IMPORT_OGB_H
#define HG_DATA_IMPORT_OGB_H

#include "graph/coo.h"
#include "import/column.h"
#include "import/folder.h"
#include "import/importers.h"
#include "import/npy.h"

/* The files of one dataset, and the counts that all of them depend on. */
struct hg__ogb {
	struct hg__folder folder;
	const char *path; /* folder.shown */
	hg_import_config config;
	char *message;
	int packed; /* raw/data.npz instead of csv files */
	/* the numbers of nodes and edges of each graph */
	int64_t *nodes, *edges;
	int64_t graphs;
};

/* Open an archive of arrays, which may not lie in another archive. */
HG_NODISCARD hg_status hg__ogb_arrays(const struct hg__ogb *in, const char *name, char **path,
                                      struct npz *npz);

/* Set in->nodes, edges and graphs; then the graph of the dataset, its features, its labels or
 * targets, and its splits. */
HG_NODISCARD hg_status hg__ogb_counts(struct hg__ogb *in);
HG_NODISCARD hg_status hg__ogb_graph(const struct hg__ogb *in, hg_dataset *d);
HG_NODISCARD hg_status hg__ogb_features(const struct hg__ogb *in, hg_dataset *d);
/* The features of the edges, of which `origin` [listed] is the origin (coo.h). */
HG_NODISCARD hg_status hg__ogb_edge_features(const struct hg__ogb *in, const int64_t *origin,
                                             int64_t listed, hg_dataset *d);
HG_NODISCARD hg_status hg__ogb_labels(const struct hg__ogb *in, hg_dataset *d);
HG_NODISCARD hg_status hg__ogb_splits(const struct hg__ogb *in, hg_dataset *d);

#endif
