#ifndef HALFGRAPH_SHADOW_H
#define HALFGRAPH_SHADOW_H

#include "halfgraph/ops.h"

HG_EXTERN_C_BEGIN

/* Shadow ops: what frameworks run in f32 out of fear, here a half or an error that says which bound
 * failed. Each is the op of the same name in ops.h, with the same bits, recorded as if the policy's
 * `unproved` were HG_UNPROVED_REFUSE for this node alone: nothing is guarded by its result, nothing
 * is promoted.
 *
 *     Accepted  the result's bound, rounding included, is below 65520: for all weights (HG_PROVED),
 *               or while the weights are as small as the tape assumes (HG_GUARDED: the optimiser
 *               watches them; policy.h).
 *     Refused   HG_ERR_RANGE, "exp: |out| may reach 4.85e+08 (exp of |X| 20), f16 holds 65504,
 *               ...": the bound, and the rule with the numbers it comes from.
 *     Dtypes    operands: f16. One that is f32, promoted by the policy or by the user's wish, is
 *               HG_ERR_DTYPE and named: nothing is converted on the way. So is a tape whose policy
 *               keeps results in f32.
 *     Errors    else as in ops.h, kept by the tape.
 *
 * A bound that is not good enough can be made better: hg_scale before, a constant with its amax
 * (hg_tape_input), hg_softmax in the place of exp and division. */

/* exp(X): |X| <= 11.09, or X known not to be above 0 (a log-softmax, a negative multiple of what is
 * not below 0). */
HG_API hg_var hg_shadow_exp(hg_tape *tape, hg_var x);
/* log(X): X known to keep away from 0 (hg_shadow_div). Nothing else bounds a logarithm. */
HG_API hg_var hg_shadow_log(hg_tape *tape, hg_var x);
/* sqrt(X): any halves that are known not to be below 0: what a relu, an exponential, a softmax or a
 * norm gives, a constant input, which is looked at once, and sums, means, casts and positive
 * multiples of such. */
HG_API hg_var hg_shadow_sqrt(hg_tape *tape, hg_var x);
/* A / B: max|A| / l, where |B| >= l > 0 is known: of a constant input, which is looked at once, of
 * an exponential or softmax of bounded numbers, and of sums, means, norms, roots, casts, quotients
 * and multiples of such. */
HG_API hg_var hg_shadow_div(hg_tape *tape, hg_var a, hg_var b);
/* Shares of a row: any halves. */
HG_API hg_var hg_shadow_softmax(hg_tape *tape, hg_var x);
/* 2 max|X| + log(d). */
HG_API hg_var hg_shadow_log_softmax(hg_tape *tape, hg_var x);
/* The loss is an f32 number as any loss is, and never narrowed. Its halves are the logits, widened
 * in registers alone, and their gradient, at most loss scale / rows that count: a half at any scale
 * up to 65504 times those rows, and beyond it the step's finite check skips the step and lowers the
 * scale. So logits that are not halves are all that is refused. */
HG_API hg_var hg_shadow_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask);
/* d max|X|. */
HG_API hg_var hg_shadow_row_sum(hg_tape *tape, hg_var x);
/* No larger than the largest term: any halves. */
HG_API hg_var hg_shadow_row_mean(hg_tape *tape, hg_var x);
/* sqrt(d) max|X|. */
HG_API hg_var hg_shadow_row_norm(hg_tape *tape, hg_var x);
/* Shares of a row of the graph: any halves. */
HG_API hg_var hg_shadow_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e);

HG_EXTERN_C_END
#endif
