#ifndef HG_DATA_IMPORT_NPZ_GRAPHS_H
#define HG_DATA_IMPORT_NPZ_GRAPHS_H

#include "import/npy.h"
#include "import/run.h"

/* Numpy archives of many small graphs, one after another, such as molecules: graph g has the nodes
 * node_ptr[g] .. node_ptr[g + 1] - 1 and the edges edge_ptr[g] .. edge_ptr[g + 1] - 1, whose ends
 * edge_src and edge_dst are numbers in the graph, from 0. Optional are node_label [n] and node_attr
 * [n, K], which become features as those of TU do; edge_feat, edge_label and num_edge_classes as in
 * npz_edges.h; and y_NAME [G], real targets, in the order of the archive. */

/* Is the archive one of these, and not one with a matrix? */
int hg__npz_is_graphs(const struct npz *npz);
/* Does hg__npz_read_graphs read the member of this name? */
int hg__npz_is_of_graphs(const struct npz *npz, const char *name);
/* Read everything but the splits. */
HG_NODISCARD hg_status hg__npz_read_graphs(const struct npz *npz, const hg_import_config *config,
                                           hg_dataset *d);

#endif
