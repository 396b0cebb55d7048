#ifndef HG_DATA_GRAPH_COO_H
#define HG_DATA_GRAPH_COO_H

#include "internal.h"

/* Entries (row[e], col[e], value[e]) of a sparse matrix, in any order, while it is being
 * collected. */
struct hg__coo {
	int64_t rows, cols, m, capacity;
	int32_t *row, *col;
	float *value; /* NULL: all ones */
};

enum hg__merge { HG__MERGE_SUM, HG__MERGE_MAX };

/* A finished matrix: columns strictly ascending in every row. */
struct hg__sparse {
	int64_t rows, cols, m;
	int64_t *rowptr; /* [rows + 1] */
	int32_t *col;    /* [m] */
	float *value;    /* [m] or NULL */
};

/* Room for `capacity` entries; with_values once, at the first call. */
HG_NODISCARD hg_status hg__coo_reserve(struct hg__coo *coo, int64_t capacity, int with_values,
                                       char *message);
/* Append one entry; grows by half its size. value is ignored without values. */
HG_NODISCARD hg_status hg__coo_add(struct hg__coo *coo, int32_t row, int32_t col, float value,
                                   char *message);
void hg__coo_free(struct hg__coo *coo);

/* Sort by (row, column) and merge entries at the same place: their sum or their maximum; without
 * values, one entry. Ids must be in range. */
HG_NODISCARD hg_status hg__coo_to_sparse(const struct hg__coo *coo, enum hg__merge merge,
                                         struct hg__sparse *out, char *message);
/* The same for a CSR matrix whose rows may be unsorted and may hold duplicates (summed). In
 * place. */
HG_NODISCARD hg_status hg__sparse_sort(struct hg__sparse *m, char *message);
void hg__sparse_free(struct hg__sparse *m);
/* Forget values that are all one. */
void hg__sparse_drop_ones(struct hg__sparse *m);

#endif
