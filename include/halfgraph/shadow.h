/** @file
 * Shadow ops: ops that frameworks run in f32 for fear of overflow. Here the result is a half, or
 * recording fails with an error that says which bound failed. Each is the op of the same name in
 * ops.h, ops_graph.h or ops_norm.h with the same bits, equation, gradient and cost, recorded as if
 * the policy's `unproved` were HG_UNPROVED_REFUSE for this op node alone: its result needs no guard
 * of its own and is never promoted.
 *
 * Accepted  The bound on the result, rounding included, is below 65520: for all weights
 *           (HG_PROVED), or while the weights are as small as the tape assumes (HG_GUARDED: the
 *           optimiser compares them in every step; policy.h).
 * Refused   HG_ERR_RANGE, with the bound and the rule it comes from, such as "exp: |out| may reach
 *           4.85e+08 (exp of |X| 20), f16 holds 65504, ...".
 * Dtypes    Operands and result: f16. An f32 operand is HG_ERR_DTYPE, and nothing is converted; so
 *           is every shadow op on a tape whose policy keeps results in f32.
 * Errors    Kept by the tape, as for every op (ops.h).
 * Threads   One thread at a time per context.
 *
 * A bound becomes small enough by hg_scale before the op, by a constant with its amax
 * (hg_tape_input), or by hg_softmax instead of exponential and division. */
#ifndef HALFGRAPH_SHADOW_H
#define HALFGRAPH_SHADOW_H

#include "halfgraph/ops.h"

HG_EXTERN_C_BEGIN

/** Exponential in f16, or an error: hg_exp.
 *
 *     Y = exp(X)
 *
 * Range     Accepted where |X| <= 11.09, or where the tape knows X <= 0 (a log-softmax, a negative
 *           multiple of numbers >= 0).
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_shadow_exp(hg_tape *tape, hg_var x);

/** Logarithm in f16, or an error: hg_log.
 *
 *     Y = log(X)
 *
 * Range     Accepted where the tape knows X >= l > 0, as hg_shadow_div does; nothing else bounds a
 *           logarithm.
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_shadow_log(hg_tape *tape, hg_var x);

/** Square root in f16, or an error: hg_sqrt.
 *
 *     Y = sqrt(X)
 *
 * Range     Accepted where the tape knows X >= 0: the result of a relu, an exponential, a softmax
 *           or a norm, a constant input (which is inspected once), and sums, means, casts and
 *           positive multiples of such.
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_shadow_sqrt(hg_tape *tape, hg_var x);

/** Division in f16, or an error: hg_div.
 *
 *     Y[i,c] = A[i,c] / B[i,c]
 *
 * Shapes    A, Y [n, d]; B [n, d], [n, 1] or [1, 1].
 * Range     max|A| / l where the tape knows |B| >= l > 0: of a constant input (which is inspected
 *           once), of an exponential or softmax of bounded numbers, and of sums, means, norms,
 *           roots, casts, quotients and multiples of such. Accepted where that is below 65520.
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (an operand is not f16), HG_ERR_SHAPE (B has
 *           none of the three shapes) and those of every op.
 * @param tape  the tape.
 * @param a,b   A and B.
 * @return Y. */
HG_API hg_var hg_shadow_div(hg_tape *tape, hg_var a, hg_var b);

/** Softmax of each row in f16: hg_softmax.
 *
 *     Y[i,c] = exp(X[i,c] - M_i) / sum over c' of exp(X[i,c'] - M_i),   M_i = max over c of X[i,c]
 *
 * Range     Y <= 1: always accepted.
 * Errors    HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_shadow_softmax(hg_tape *tape, hg_var x);

/** Logarithm of the softmax of each row in f16, or an error: hg_log_softmax.
 *
 *     Y[i,c] = X[i,c] - M_i - log(sum over c' of exp(X[i,c'] - M_i)),   M_i = max over c of X[i,c]
 *
 * Range     max|Y| <= 2 max|X| + log(d). Accepted where that is below 65520.
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_shadow_log_softmax(hg_tape *tape, hg_var x);

/** Cross-entropy of f16 logits: hg_softmax_xent. The loss is f32, as every loss, and is never
 * narrowed. Its halves are the logits, which are widened in registers only, and their gradient.
 *
 *     L = 1/q * sum over rows i that count of (log(sum over c of exp(X[i,c])) - X[i, label_i])
 *
 * Range     |dX| <= loss scale / q, a half at any scale up to 65504 q; above it the finite check
 *           skips the step and lowers the scale. Always accepted.
 * Errors    HG_ERR_DTYPE (X is not f16), HG_ERR_SHAPE (labels or mask is not [n, 1], or d = 0) and
 *           those of every op.
 * @param tape           the tape.
 * @param logits,labels  X [n, d] and the labels, i32 [n, 1].
 * @param mask           u8 [n, 1], or HG_NONE: every labelled row counts.
 * @return L, f32 [1, 1]. */
HG_API hg_var hg_shadow_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask);

/** Sum of each row in f16, or an error: hg_row_sum.
 *
 *     Y[i] = sum over c of X[i,c]
 *
 * Range     max|Y| <= d max|X|. Accepted where that is below 65520.
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, 1]. */
HG_API hg_var hg_shadow_row_sum(hg_tape *tape, hg_var x);

/** Mean of each row in f16: hg_row_mean.
 *
 *     Y[i] = 1/d * sum over c of X[i,c]
 *
 * Range     max|Y| <= max|X|: always accepted.
 * Errors    HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, 1]. */
HG_API hg_var hg_shadow_row_mean(hg_tape *tape, hg_var x);

/** Euclidean norm of each row in f16, or an error: hg_row_norm.
 *
 *     Y[i] = sqrt(sum over c of X[i,c]^2)
 *
 * Range     max|Y| <= sqrt(d) max|X|. Accepted where that is below 65520.
 * Errors    HG_ERR_RANGE (not accepted), HG_ERR_DTYPE (X is not f16) and those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, 1]. */
HG_API hg_var hg_shadow_row_norm(hg_tape *tape, hg_var x);

/** Softmax over the edges of each row in f16: hg_edge_softmax.
 *
 *     P[e,k] = exp(E[e,k] - M[i,k]) / sum over edges f of row i of exp(E[f,k] - M[i,k]),
 *     M[i,k] = max over the edges of row i of E
 *
 * Range     P <= 1: always accepted.
 * Errors    HG_ERR_DTYPE (E is not f16), HG_ERR_SHAPE (rows(E) != m), HG_ERR_ARG (no graph) and
 *           those of every op.
 * @param tape   the tape.
 * @param graph  G, borrowed.
 * @param e      E [m, h].
 * @return P [m, h]. */
HG_API hg_var hg_shadow_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e);

HG_EXTERN_C_END
#endif
