#ifndef HG_DATA_GRAPH_COO_H
#define HG_DATA_GRAPH_COO_H

#include "internal.h"

/* The entries (row[e], col[e], value[e]) of a sparse matrix while they are collected, in any
 * order. */
struct hg__coo {
	int64_t rows, cols, m, capacity;
	int32_t *row, *col;
	float *value;    /* NULL: all values are 1 */
	int keep_origin; /* 1: the finished matrix says which entry of this list became which */
	int64_t *origin; /* of that matrix [m], after hg__coo_to_graph, or NULL */
};

enum hg__merge { HG__MERGE_SUM, HG__MERGE_MAX };

/* A finished CSR matrix: columns ascend strictly in every row. */
struct hg__sparse {
	int64_t rows, cols, m;
	int64_t *rowptr; /* [rows + 1] */
	int32_t *col;    /* [m] */
	float *value;    /* [m] or NULL */
	/* NULL, or [listed], of the entries of the list as they are sorted: their numbers in the list;
	 * the complement (~) of its number where an entry was merged with the one before it. Of merged
	 * entries the first of the list is the first here */
	int64_t *origin, listed;
};

/* Make room for `capacity` entries. `with_values` counts only in the first call. */
HG_NODISCARD hg_status hg__coo_reserve(struct hg__coo *coo, int64_t capacity, int with_values,
                                       char *message);
/* Append one entry; the room grows by half of its size. `value` is ignored where there are no
 * values. */
HG_NODISCARD hg_status hg__coo_add(struct hg__coo *coo, int32_t row, int32_t col, float value,
                                   char *message);
/* coo->col [2, m] holds the sources and then the destinations, or, in Fortran order, pairs of them.
 * They become the columns and rows of m entries. */
HG_NODISCARD hg_status hg__coo_split_pairs(struct hg__coo *coo, int64_t m, int fortran,
                                           char *message);
void hg__coo_free(struct hg__coo *coo);
/* Nodes cost memory even without edges, and a file can declare any number of them. */
int hg__nodes_plausible(int64_t nodes, int64_t edges);

/* Sort by (row, column) and merge entries with the same row and column: to their sum, to their
 * maximum, or, without values, to one entry. The ids must be in range. The arrays of *coo are freed
 * as soon as they are copied, so that no third copy is ever needed; its counts stay. */
HG_NODISCARD hg_status hg__coo_to_sparse(struct hg__coo *coo, enum hg__merge merge,
                                         struct hg__sparse *out, char *message);
/* The same, and the matrix becomes the graph of the dataset, without weights where all are 1. */
HG_NODISCARD hg_status hg__coo_to_graph(struct hg__coo *coo, enum hg__merge merge, hg_dataset *d,
                                        char *message);
/* The same in place for a CSR matrix whose rows may be unsorted and may hold duplicates, which are
 * summed. m->origin, if there is one, moves with the entries. */
HG_NODISCARD hg_status hg__sparse_sort(struct hg__sparse *m, char *message);
/* The number of edges (i, j) without their reverse (j, i); *row and *column of the first one, if
 * the pointers are not NULL. */
int64_t hg__one_way(const hg_dataset *d, int64_t *row, int64_t *column);
void hg__sparse_free(struct hg__sparse *m);
/* Drop the values if all of them are 1. */
void hg__sparse_drop_ones(struct hg__sparse *m);

#endif
