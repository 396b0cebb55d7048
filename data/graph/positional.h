#ifndef HG_DATA_GRAPH_POSITIONAL_H
#define HG_DATA_GRAPH_POSITIONAL_H

#include "graph/coo.h"

/* Positional encodings of the nodes of an undirected graph without weights and self loops (a
 * symmetric pattern), as rows of `columns` numbers each. */

/* out [rows, columns]: the probability that a random walk is back after 1 .. columns steps. */
HG_NODISCARD hg_status hg__random_walks(const struct hg__sparse *graph, int64_t columns,
                                        const hg_progress *progress, float *out, char *message);
/* out [rows, columns]: eigenvectors 2 .. columns + 1 of the normalised Laplacian of each connected
 * component. */
HG_NODISCARD hg_status hg__laplacian_vectors(const struct hg__sparse *graph, int64_t columns,
                                             const hg_progress *progress, float *out,
                                             char *message);

/* The eigenvalues of a symmetric matrix a [n, n], largest first, and its unit eigenvectors, the
 * columns of vector [n, n]. a is overwritten. place [n]: scratch. */
void hg__symmetric_eigen(int64_t n, double *a, double *value, double *vector, int64_t *place);

#endif
