/* A fused chain: one tape node that does the work of several ops, each applied to the result of the
 * one before. Its range rules are those of the ops, one after the other. The values between them
 * are f32 and need no verdict. */
#ifndef HG_AUTOGRAD_OPS_FUSED_CHAIN_H
#define HG_AUTOGRAD_OPS_FUSED_CHAIN_H

#include "autograd/opkit.h"

/* instead of an operand: the result of the op before, or no operand */
enum { FUSED_BEFORE = -1, FUSED_NONE = -2 };
#define FUSED_MOST 5

struct hg__fused_op {
	struct hg__node node;    /* op, number of operands, graph, constants */
	int operand[HG__MAX_IN]; /* the operand's index in the whole node */
	struct hg__shape shape;  /* of its result */
};
struct hg__fused_chain {
	struct hg__fused_op op[FUSED_MOST];
	int count;
	/* backward pass: the gradient of this op's input is stored in the state type; 0: it is not
	 * stored */
	int stored;
	struct hg__shape shape; /* the shape of the result of every op that is added from now on */
};

/* Adds one op to the chain. */
void hg__fused_chain_add(struct hg__fused_chain *chain, const struct hg__op *op, hg_graph *graph,
                         const int *operand, int operands, const void *attr, size_t bytes);

/* The rules of the whole chain. The depth is that of the deepest op. */
struct hg__known hg__fused_chain_range(const struct hg__range *r,
                                       const struct hg__fused_chain *chain,
                                       struct hg__derivation *how);
void hg__fused_chain_range_back(const struct hg__range *r, const struct hg__fused_chain *chain,
                                struct hg__gradients *grad);

#endif
