/* The common parts of spmm and spmm_epilogue. */
#ifndef HG_AUTOGRAD_OPS_SPMM_H
#define HG_AUTOGRAD_OPS_SPMM_H

#include "autograd/about.h"

/* X is operand 0, w is operand 1, and struct hg__spmm_attr is the first member of the constants. */
enum { SPMM_X, SPMM_W };

static inline struct hg__spmm_attr hg__spmm_attr_of(const struct hg__node *node)
{
	struct hg__spmm_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

HG_NODISCARD hg_status hg__spmm_prepare(const struct hg__call *c);
void hg__spmm_cost(const struct hg__call *c, struct hg__cost *cost);

/* Computes Y. The epilogue may be NULL. */
HG_NODISCARD hg_status hg__spmm_forward(const struct hg__call *c,
                                        const struct hg__sum_epilogue *epilogue);
/* Computes dX, with an epilogue or NULL, and dw, where they are needed. dy: the gradient of the
 * aggregation's result. */
HG_NODISCARD hg_status hg__spmm_backward(const struct hg__call *c, struct hg__mat dy,
                                         const struct hg__sum_epilogue *epilogue);
/* Describes an element of the aggregation, or of the gradient of X or w, as a sum. dy: as above. */
HG_NODISCARD hg_status hg__spmm_sum(const struct hg__call *c, const struct hg__element *e,
                                    struct hg__mat dy, struct hg__terms *t);

/* spmm_range.c: the range rules of spmm. */
struct hg__known hg__spmm_range(const struct hg__range *r, struct hg__derivation *how);
void hg__spmm_range_back(const struct hg__range *r, struct hg__gradients *grad);
/* spmm_range.c: whether the features of each column are scaled once, before the sum. */
int hg__spmm_scales_first(const hg_graph *graph, hg_norm norm, hg_dtype dtype);
/* spmm_range.c: the largest |weight| of a graph that scatters, as its stream promises; 1 for other
 * graphs. */
double hg__spmm_own_weight(hg_graph *graph);

/* spmm_scatter.c: the aggregation of a graph that scatters, and the inner products at its edges. */
HG_NODISCARD hg_status hg__spmm_scatter_sum(const struct hg__call *c, int backward,
                                            const struct hg__aggregate *a);
HG_NODISCARD hg_status hg__spmm_scatter_dot(const struct hg__call *c,
                                            const struct hg__sddmm_dot_args *of);

/* spmm_sample.c: hg__op.sample of spmm. */
int hg__spmm_sample(int i, const struct hg__extent *x, struct hg__sample *s);
/* spmm_epilogue_sample.c: hg__op.sample of spmm_epilogue. */
int hg__spmm_epilogue_sample(int i, const struct hg__extent *x, struct hg__sample *s);

#endif
