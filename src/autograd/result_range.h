/* Range rules on a tape: what is known of the result of a node, and its verdict (result_range.c);
 * what is known of the gradients of its operands (gradient_range.c). */
#ifndef HG_AUTOGRAD_RESULT_RANGE_H
#define HG_AUTOGRAD_RESULT_RANGE_H

#include "autograd/range_rule.h"
#include "autograd/tape.h"

HG_EXTERN_C_BEGIN

/* Fills what the rules of a node read of its operands, which are on the tape already. */
HG_NODISCARD hg_status hg__tape_range(const hg_tape *tape, const struct hg__node *node,
                                      enum hg__assumption assumption, struct hg__range *r);

/* What is known of a result that is stored as `dtype` x 2^-node->shift. Decides verdict,
 * accumulation type and rule_bound of the node. */
struct hg__result {
	struct hg__known known[HG__ASSUMPTIONS];
	double exact; /* the assumed bound before rounding */
	char because[HG__BECAUSE];
};
HG_NODISCARD hg_status hg__bound_result(const hg_tape *tape, struct hg__node *node, hg_dtype dtype,
                                        struct hg__result *result);

/* Bounds on the gradients that the backward of a node stores, divided by the loss scale, where the
 * gradient of its result is at most dout. part [n_in]: the types in which they are stored;
 * grad [n_in]. They hold at any loss scale of 1 or more. */
HG_NODISCARD hg_status hg__tape_range_back(const hg_tape *tape, const struct hg__node *node,
                                           enum hg__assumption assumption, double dout,
                                           const hg_dtype *part, struct hg__known_gradient *grad);

/* Sets hg__planned_value.gradient of every value with a gradient, from the loss back. */
HG_NODISCARD hg_status hg__bound_gradients(hg_tape *tape);

HG_EXTERN_C_END
#endif
