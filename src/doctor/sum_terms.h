#ifndef HG_DOCTOR_SUM_TERMS_H
#define HG_DOCTOR_SUM_TERMS_H

#include "autograd/about.h"
#include "doctor/host.h"
#include "doctor/sum.h"

HG_EXTERN_C_BEGIN

/* How the sums that ops describe (autograd/about.h) become lists of addends: sum_rows.c,
 * sum_graph.c and sum_attention.c fill the lists, sum_terms.c has what they need. */

/* Allocates `count` addends. */
HG_NODISCARD hg_status hg__sum_alloc(struct hg__sum *sum, int64_t count);
/* Computes exact, abs_sum and before_epilogue from the addends. */
void hg__sum_total(struct hg__sum *sum);

/* Reads single elements of a matrix. A GPU's matrix of which many elements are read is copied to
 * the host first. */
struct hg__reader {
	hg_context *ctx;
	const struct hg__mat *mat;
	struct hg__fetched copy; /* empty: each element is fetched by itself */
};
/* elements: about how many will be read. */
HG_NODISCARD hg_status hg__reader_open(hg_context *ctx, const struct hg__mat *mat, int64_t elements,
                                       struct hg__reader *reader);
HG_NODISCARD hg_status hg__read_element(const struct hg__reader *reader, int64_t row, int64_t col,
                                        double *value);
void hg__reader_close(struct hg__reader *reader);

/* The edges of one row of a CSR matrix, on the host. */
struct hg__row_edges {
	int64_t begin, count;        /* edge k of the row is at position begin + k of the matrix */
	struct hg__buffer col;       /* the neighbours */
	struct hg__buffer value_row; /* of each edge in an edge tensor; empty: it is begin + k */
};
HG_NODISCARD hg_status hg__row_edges_open(hg_context *ctx, const struct hg__csr *csr, int64_t row,
                                          struct hg__row_edges *edges);
void hg__row_edges_close(hg_context *ctx, struct hg__row_edges *edges);
static inline int64_t hg__neighbour(const struct hg__row_edges *edges, int64_t k)
{
	return ((const int32_t *)edges->col.data)[k];
}
static inline int64_t hg__value_row(const struct hg__row_edges *edges, int64_t k)
{
	return edges->value_row.data ? (int64_t)((const uint32_t *)edges->value_row.data)[k]
	                             : edges->begin + k;
}

/* sum_rows.c: along a row and along a column of matrices. */
HG_NODISCARD hg_status hg__sum_over_columns(const struct hg__terms *t, struct hg__sum *sum);
HG_NODISCARD hg_status hg__sum_over_rows(const struct hg__terms *t, struct hg__sum *sum);
/* sum_graph.c. accumulate: of the node; it applies where the op sums halves. */
HG_NODISCARD hg_status hg__sum_over_edges(const struct hg__terms *t, hg_accumulate accumulate,
                                          struct hg__sum *sum);
HG_NODISCARD hg_status hg__sum_over_ends(const struct hg__terms *t, struct hg__sum *sum);
HG_NODISCARD hg_status hg__sum_over_slopes(const struct hg__terms *t, struct hg__sum *sum);
/* sum_attention.c. */
HG_NODISCARD hg_status hg__sum_over_attention(const struct hg__terms *t, struct hg__sum *sum);

HG_EXTERN_C_END
#endif
