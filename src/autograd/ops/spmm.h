/* The common parts of spmm and spmm_epilogue. */
#ifndef HG_AUTOGRAD_OPS_SPMM_H
#define HG_AUTOGRAD_OPS_SPMM_H

#include "autograd/about.h"

/* X is operand 0, w is operand 1, and struct hg__spmm_attr is the first member of the constants. */
enum { SPMM_X, SPMM_W };

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

/* spmm_epilogue_sample.c: hg__op.sample of spmm_epilogue. */
int hg__spmm_epilogue_sample(int i, const struct hg__extent *x, struct hg__sample *s);

#endif
