#ifndef HG_DATA_GRAPH_COO_H
#define HG_DATA_GRAPH_COO_H

#include "internal.h"

/* The entries (row[e], col[e], value[e]) of a sparse matrix while they are collected, in any
 * order. */
struct hg__coo {
	int64_t rows, cols, m, capacity;
	int32_t *row, *col;
	float *value; /* NULL: all values are 1 */
};

enum hg__merge { HG__MERGE_SUM, HG__MERGE_MAX };

/* A finished CSR matrix: columns ascend strictly in every row. */
struct hg__sparse {
	int64_t rows, cols, m;
	int64_t *rowptr; /* [rows + 1] */
	int32_t *col;    /* [m] */
	float *value;    /* [m] or NULL */
};

/* Make room for `capacity` entries. `with_values` counts only in the first call. */
HG_NODISCARD hg_status hg__coo_reserve(struct hg__coo *coo, int64_t capacity, int with_values,
                                       char *message);
/* Append one entry; the room grows by half of its size. `value` is ignored where there are no
 * values. */
HG_NODISCARD hg_status hg__coo_add(struct hg__coo *coo, int32_t row, int32_t col, float value,
                                   char *message);
void hg__coo_free(struct hg__coo *coo);

/* Sort by (row, column) and merge entries with the same row and column: to their sum, to their
 * maximum, or, without values, to one entry. The ids must be in range. */
HG_NODISCARD hg_status hg__coo_to_sparse(const struct hg__coo *coo, enum hg__merge merge,
                                         struct hg__sparse *out, char *message);
/* The same in place for a CSR matrix whose rows may be unsorted and may hold duplicates, which are
 * summed. */
HG_NODISCARD hg_status hg__sparse_sort(struct hg__sparse *m, char *message);
void hg__sparse_free(struct hg__sparse *m);
/* Drop the values if all of them are 1. */
void hg__sparse_drop_ones(struct hg__sparse *m);

#endif
