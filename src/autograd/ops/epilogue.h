/* The common parts of ops with an epilogue: bias, activation and dropout. */
#ifndef HG_AUTOGRAD_OPS_EPILOGUE_H
#define HG_AUTOGRAD_OPS_EPILOGUE_H

#include "autograd/ops/fused_chain.h"

struct hg__chain;
struct hg__recording;

/* The ops of an epilogue: at most one of each stage, in this order. X is operand 0 of each op, and
 * b is operand 1 of bias_add. */
enum { EPILOGUE_BIAS, EPILOGUE_ACT, EPILOGUE_DROPOUT, EPILOGUE_STAGES };

/* The stage of an op, or -1 if it cannot be part of an epilogue. The activations are those
 * functions of kernels/functions.def whose gradient follows from Y alone. op->act is the act of
 * struct hg__act_drop. */
static inline int epilogue_stage(const struct hg__op *op)
{
	return op == &hg__op_bias_add                        ? EPILOGUE_BIAS
	       : op->act > 0 && op->act <= HG__ACT_EPILOGUES ? EPILOGUE_ACT
	       : op == &hg__op_dropout                       ? EPILOGUE_DROPOUT
	                                                     : -1;
}

/* Common to ops with an epilogue. hg__epilogue_infer checks the constants; the function must be one
 * of the first `acts`. hg__epilogue_chain adds the parts to a fused chain: x is an operand of the
 * node or FUSED_BEFORE, b is an operand or FUSED_NONE, and at most EPILOGUE_STAGES parts are added.
 * hg__epilogue_of returns the argument of the kernels. */
HG_NODISCARD hg_status hg__epilogue_infer(const struct hg__infer *s,
                                          const struct hg__epilogue_attr *attr, int acts);
/* Records operand b, if there is one: [1, columns of the result]; aux `db` is its gradient in f32,
 * before it is narrowed. */
HG_NODISCARD hg_status hg__epilogue_infer_b(struct hg__infer *s, int b, int db);
/* The same for ops that end a sum with an epilogue, whose result is s->out: the constants, b, and
 * in aux `ds` the gradient of the sum, if it differs from dY. */
HG_NODISCARD hg_status hg__epilogue_infer_behind(struct hg__infer *s,
                                                 const struct hg__epilogue_attr *attr, int b,
                                                 int db, int ds);
/* What an epilogue adds to the depth of an error: the sum with b, elu's exponential (4 operations)
 * and product, 1 - p, and the division by it. */
#define EPILOGUE_DEPTH 8.0
/* Adds the parts behind what the chain computes so far, whose gradient is stored if the parts
 * change it. */
void hg__epilogue_end_chain(struct hg__fused_chain *chain, const struct hg__range *r,
                            const struct hg__epilogue_attr *attr, int b);
void hg__epilogue_add_to_chain(struct hg__fused_chain *chain, const struct hg__epilogue_attr *attr,
                               int x, int b);
static inline struct hg__act_drop hg__epilogue_of(const struct hg__call *c,
                                                  const struct hg__epilogue_attr *attr)
{
	const struct hg__act_drop act_drop = {.act = attr->act,
	                                      .act_p = attr->act_p,
	                                      .p = c->mode == HG_TRAIN ? attr->p : 0.0f,
	                                      .key = c->node->rng_key,
	                                      .step = c->step};
	return act_drop;
}
/* Whether it changes a gradient: a bias alone does not. */
static inline int hg__epilogue_alters(const struct hg__epilogue_attr *attr)
{
	return attr->act || attr->p > 0.0f;
}
/* The gradient of X, written to *dx, or not if that is absent; and that of operand b, added up in
 * f32, in aux `db` if the gradient itself is not f32. If *dx is absent and the epilogue is a bias
 * alone, *dx becomes dY, which is the same. */
HG_NODISCARD hg_status hg__epilogue_backward(const struct hg__call *c,
                                             const struct hg__act_drop *act_drop, int b, int db,
                                             struct hg__mat *dx);
/* The same in two steps, for an op whose kernel does this with the rest: the arguments, and then
 * the gradient of b where that is not f32. */
struct hg__epilogue_back_args hg__epilogue_back_of(const struct hg__call *c,
                                                   const struct hg__act_drop *act_drop, int b,
                                                   int db, struct hg__mat dx);
HG_NODISCARD hg_status hg__epilogue_narrow(const struct hg__call *c,
                                           const struct hg__epilogue_back_args *args, int b);

/* epilogue_fuse.c: the longest chain of bias_add, an activation and dropout that ends at this
 * entry; whether an aggregation or attention can apply these parts before it stores a row, because
 * its kernels know the activation; and what a fused node takes of one part: its operand and its
 * constants. */
struct hg__chain hg__epilogue_chain(const struct hg__recording *recording, int32_t last);
int hg__epilogue_may_end(const struct hg__recording *recording, const struct hg__chain *parts);
void hg__epilogue_take(struct hg__node *whole, struct hg__epilogue_attr *attr,
                       const struct hg__node *node);

#endif
