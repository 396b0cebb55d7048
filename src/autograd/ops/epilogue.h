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
/* db as the kernels write it: the gradient itself if it is f32, otherwise `wide` [1, d] f32, or
 * absent if it is not needed. hg__epilogue_db_done then narrows `wide` to the gradient. */
static inline struct hg__mat hg__epilogue_db(struct hg__mat db, struct hg__mat wide)
{
	return !db.data || db.dtype == HG_F32 ? db : wide;
}
static inline hg_status hg__epilogue_db_done(const struct hg__call *c, struct hg__mat db,
                                             struct hg__mat wide)
{
	return !db.data || db.dtype == HG_F32 ? HG_OK : hg__copy_scaled(c, wide, 1.0f, db);
}

/* epilogue_fuse.c: the longest chain of bias_add, an activation and dropout that ends at this
 * entry, and what a fused node takes of one part: its operand and its constants. */
struct hg__chain hg__epilogue_chain(const struct hg__recording *recording, int32_t last);
void hg__epilogue_take(struct hg__node *whole, struct hg__epilogue_attr *attr,
                       const struct hg__node *node);

#endif
