#ifndef HG_DOCTOR_SUM_OF_H
#define HG_DOCTOR_SUM_OF_H

#include "autograd/about.h"
#include "doctor/host.h"
#include "doctor/sum.h"

HG_EXTERN_C_BEGIN

/* The sums that ops describe (autograd/about.h), addend by addend: sum_rows.c, sum_graph.c. Below
 * them, addends.c. */

HG_NODISCARD hg_status hg__sum_room(struct hg__sum *sum, int64_t count);
/* exact, mass and alone, of the addends as they are. */
void hg__sum_total(struct hg__sum *sum);

/* Elements of a matrix, here and there: one by one where they are few, else the matrix is fetched
 * as a whole. */
struct hg__picker {
	hg_context *ctx;
	const struct hg__mat *mat;
	struct hg__fetched all; /* empty: one by one */
};
HG_NODISCARD hg_status hg__picker_open(hg_context *ctx, const struct hg__mat *mat, int64_t elements,
                                       struct hg__picker *picker);
HG_NODISCARD hg_status hg__pick(const struct hg__picker *picker, int64_t row, int64_t col,
                                double *value);
void hg__picker_close(struct hg__picker *picker);

/* Entries of one row of a CSR, on the host: neighbours, and where the edges' values lie. */
struct hg__entries {
	int64_t begin, count;
	struct hg__buffer col, edge; /* edge: empty where a value lies at its entry */
};
HG_NODISCARD hg_status hg__entries_open(hg_context *ctx, const struct hg__csr *csr, int64_t row,
                                        struct hg__entries *entries);
void hg__entries_close(hg_context *ctx, struct hg__entries *entries);
static inline int64_t hg__entry_col(const struct hg__entries *e, int64_t k)
{
	return ((const int32_t *)e->col.data)[k];
}
static inline int64_t hg__entry_edge(const struct hg__entries *e, int64_t k)
{
	return e->edge.data ? (int64_t)((const uint32_t *)e->edge.data)[k] : e->begin + k;
}

/* sum_rows.c: along a row, and along a column. */
HG_NODISCARD hg_status hg__sum_over_columns(const struct hg__terms *t, struct hg__sum *sum);
HG_NODISCARD hg_status hg__sum_over_rows(const struct hg__terms *t, struct hg__sum *sum);
/* sum_graph.c. accumulate: that of the node, for sums of halves. */
HG_NODISCARD hg_status hg__sum_over_edges(const struct hg__terms *t, hg_accumulate accumulate,
                                          struct hg__sum *sum);
HG_NODISCARD hg_status hg__sum_over_ends(const struct hg__terms *t, struct hg__sum *sum);
HG_NODISCARD hg_status hg__sum_over_slopes(const struct hg__terms *t, struct hg__sum *sum);

HG_EXTERN_C_END
#endif
