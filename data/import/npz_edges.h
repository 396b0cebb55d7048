#ifndef HG_DATA_IMPORT_NPZ_EDGES_H
#define HG_DATA_IMPORT_NPZ_EDGES_H

#include "graph/coo.h"
#include "import/importers.h"
#include "import/npy.h"

/* Attributes and labels of edges in a numpy archive: edge_feat [m, D] and edge_label [m], in the
 * order of adj_indices, and the number of labels, num_edge_classes. All are optional. */

/* Number the entries of the adjacency matrix before they are sorted, if the archive has data of
 * edges. */
HG_NODISCARD hg_status hg__npz_number_edges(const struct npz *npz, struct hg__sparse *adjacency);
/* Read the data for the sorted matrix. */
HG_NODISCARD hg_status hg__npz_read_edges(const struct npz *npz, const hg_import_config *config,
                                          const struct hg__sparse *adjacency, hg_dataset *d);
/* Is this the name of a member that is read here, "edge_feat.npy"? */
int hg__npz_is_of_edges(const struct npz *npz, const char *name);

#endif
