/* Range rules: how an op moves magnitudes.
 *
 * A rule is a pure function from what is known of the operands (struct hg__known) to what is known
 * of the result, in exact arithmetic and f64. It also says how the result is computed, as far as
 * rounding depends on it (struct hg__rounding). hg__decide then adds the roundings, and finds
 * whether the result fits in f16 (precision/range.h). Every op has two rules, in its own file:
 *
 *     range         op->range(r, how)        known of Y    from known of each operand
 *     range_back    op->range_back(r, grad)  |dX| of each  from |dY| and known of each operand
 *
 * Each rule runs twice, with the operands' unconditional facts and with the assumed ones. */
#ifndef HG_AUTOGRAD_RANGE_RULE_H
#define HG_AUTOGRAD_RANGE_RULE_H

#include <math.h>

#include "autograd/op.h"

HG_EXTERN_C_BEGIN

/* What a rule reads. */
struct hg__range {
	const struct hg__node *node;
	hg_mode mode;
	struct hg__shape shape[HG__MAX_IN];
	struct hg__known in[HG__MAX_IN]; /* of the operands; an absent one counts as 0 */
	hg_graph_facts facts;            /* of node->graph */
	/* nodes of the largest graph of the batch, and of the smallest one that has any */
	int64_t batch_max, batch_min;
	struct hg__known out; /* backward only: of the result */
	double dout;          /* backward only: bound on |dY| */
};

/* Enough for the words of every op of a fused chain. */
#define HG__BECAUSE 192

/* What a forward rule says besides the result itself. rounding is preset for the longest sum that
 * the shapes and the graph allow (hg__preset_rounding); a rule replaces what it knows better. */
struct hg__derivation {
	struct hg__rounding rounding;
	char because[HG__BECAUSE]; /* hg__because: the rule with its numbers, "row sums 12.3 x |X|" */
};

/* What a backward rule says. */
struct hg__gradients {
	double largest[HG__MAX_IN]; /* bound on |dX| of operand i, in exact arithmetic */
	/* As rounding.depth, for operands whose sums are longer than every row, column and degree at
	 * hand. Preset: 0 */
	double depth[HG__MAX_IN];
	/* rounding.inner is that of all gradients, rounding.sums that of operand 0; rounding.depth is
	 * not used. */
	struct hg__rounding rounding;
	/* Bound on halves that are stored on the way to a gradient. Preset: 0 */
	double half;
};

/* The preset of hg__derivation.rounding. */
struct hg__rounding hg__preset_rounding(const struct hg__range *r);

/* Sets the words of a rule. */
void hg__because(struct hg__derivation *how, const char *format, ...) HG_PRINTF(2, 3);

/* Product of bounds. 0 times unknown is 0, since a value with a bound is finite. */
static inline double hg__bound_mul(double a, double b)
{
	return a == 0.0 || b == 0.0 ? 0.0 : a * b;
}

/* Adds an intermediate f32 number to rounding->inner. */
static inline void hg__on_the_way(struct hg__rounding *rounding, double bound)
{
	rounding->inner = fmax(rounding->inner, bound);
}

/* The error that underflow adds to `terms` products of two numbers of this type, which are then
 * multiplied by `factor`. The product of two halves never underflows in f32. */
static inline double hg__underflow(hg_dtype of, double terms, double factor)
{
	return of == HG_F32 ? terms * factor * 0x1p-149 : 0.0;
}

/* For shares p that add up to 1, as a softmax saves them. After rounding their sum is s <= (1 +
 * gamma)(1 + u16) + terms 2^-25: each share is rounded by up to gamma in f32 sums, then to a half,
 * relative to u16 or by half of the smallest subnormal. An element of the gradient is p (dp - sum
 * of p dp), at most p (1 - p + s - p) max|dp|. This is largest at p = (1 + s)/4:
 *
 *     (1 + s)^2/8 max|dp|,  half of which would be reached without rounding */
double hg__shares_sum(double terms);
void hg__shares_back(const struct hg__range *r, struct hg__gradients *grad, double terms);

HG_EXTERN_C_END
#endif
