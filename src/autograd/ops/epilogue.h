#ifndef HG_AUTOGRAD_OPS_EPILOGUE_H
#define HG_AUTOGRAD_OPS_EPILOGUE_H

#include "autograd/ops/links.h"

/* The ops that an epilogue is made of: at most one of each stage, stages in this order. X is
 * operand 0 of each, b is operand 1 of bias_add. */
enum { EPILOGUE_BIAS, EPILOGUE_ACT, EPILOGUE_DROPOUT, EPILOGUE_STAGES };

/* The stage of an op, -1: it is no part. An activation is a rider of the list of functions
 * (kernels/functions.def); its number is the act of struct hg__epilogue. */
static inline int epilogue_stage(const struct hg__op *op)
{
	return op == &hg__op_bias_add                     ? EPILOGUE_BIAS
	       : op->act > 0 && op->act <= HG__ACT_RIDERS ? EPILOGUE_ACT
	       : op == &hg__op_dropout                    ? EPILOGUE_DROPOUT
	                                                  : -1;
}

/* What nodes that end with an epilogue share: its constants checked, its function one of the first
 * `acts`; its links (x: operand of the whole or LINK_BEFORE; b: operand or LINK_NONE), at most
 * EPILOGUE_STAGES; what the kernels get. */
HG_NODISCARD hg_status hg__epilogue_infer(const struct hg__infer *s,
                                          const struct hg__epilogue_attr *attr, int acts);
void hg__epilogue_links(struct hg__links *links, const struct hg__epilogue_attr *attr, int x,
                        int b);
static inline struct hg__epilogue hg__epilogue_of(const struct hg__call *c,
                                                  const struct hg__epilogue_attr *attr)
{
	const struct hg__epilogue then = {.act = attr->act,
	                                  .act_p = attr->act_p,
	                                  .p = c->mode == HG_TRAIN ? attr->p : 0.0f,
	                                  .key = c->node->rng_key,
	                                  .step = c->step};
	return then;
}
/* db as the kernels write it: the gradient itself if that is f32, else `wide` [1, d] f32; absent if
 * nobody wants it. Then, once written, to where it belongs. */
static inline struct hg__mat hg__epilogue_db(struct hg__mat db, struct hg__mat wide)
{
	return !db.data || db.dtype == HG_F32 ? db : wide;
}
static inline hg_status hg__epilogue_db_done(const struct hg__call *c, struct hg__mat db,
                                             struct hg__mat wide)
{
	return !db.data || db.dtype == HG_F32 ? HG_OK : hg__copy_scaled(c, wide, 1.0f, db);
}

#endif
