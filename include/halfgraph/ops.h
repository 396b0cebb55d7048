#ifndef HALFGRAPH_OPS_H
#define HALFGRAPH_OPS_H

#include "halfgraph/graph.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/* The ops: bare verbs on a tape. Each records one node. n nodes, m edges, d features, h heads, G a
 * graph with the matrix A [rows, cols]; edge e = (i, j) is entry e of A, row i, column j. `state`
 * is the policy's f16 or f32; an optional operand is passed as HG_NONE. Common to all, unless it is
 * said otherwise:
 *
 *     Dtypes    operands and result: state. Arithmetic and sums f32, narrowed once, at the store;
 *               sums of hg_spmm as hg_accumulate says (policy.h).
 *     Range     a bound on max|Y| from the bounds on the operands, given here as <=; where it
 *               proves that f16 holds Y the narrowing is HG_PROVED, else the policy decides.
 *     Errors    kept by the tape (tape.h): HG_ERR_SHAPE shapes that do not fit, HG_ERR_DTYPE,
 *               HG_ERR_ARG a missing operand, one of another tape, or a constant outside its range,
 *               HG_ERR_RANGE a narrowing that the policy refuses, HG_ERR_NOMEM.
 *     Threads   as everything on a context: one at a time.
 *
 * The bound of each on its error, its cost, and the source that it is taken from stand on top of
 * src/autograd/ops/NAME.c. Chains of ops that one kernel can do run as one
 * (hg_context_config.separate_ops): what lies between them is then not narrowed. */
#define HG_NONE (hg_none())
HG_API hg_var hg_none(void);

/* ---- rows ---- */

/* Y = X W + b.  X [n, k], W [k, d], b [1, d] or HG_NONE, Y [n, d].   <= k max|X| max|W| + max|b|
 * dX = dY W^T,  dW = X^T dY,  db = sum over rows of dY. */
HG_API hg_var hg_linear(hg_tape *tape, hg_var x, hg_var w, hg_var b);
/* Y = X + b.  X, Y [n, d], b [1, d].   <= max|X| + max|b|.   dX = dY,  db = sum over rows of dY. */
HG_API hg_var hg_bias_add(hg_tape *tape, hg_var x, hg_var b);

/* ---- neighbours ---- */

/* Y[i,:] = alpha * r(i) * sum over edges e = (i, j) of w_e * c(j) * X[j,:], with r, c from `norm`
 * (graph.h).
 * w: the graph's own weights, or edge_weight [m, h] in their place: then head k of X [cols, h*d']
 * is weighted by w[e, k].
 * X [cols, d], Y [rows, d]. f32 sums are scaled when the row is complete.
 * <= |alpha| N max|X| max|w|, N the largest sum of |r(i) a_ij c(j)| in a row of the graph.
 * dX: the same on the transpose, r and c exchanged.  dw[e,k] = alpha r(i) c(j) <dY[i, head k],
 * X[j, head k]>. */
HG_API hg_var hg_spmm(hg_tape *tape, hg_graph *graph, hg_var x, hg_var edge_weight, hg_norm norm,
                      float alpha);
/* Y[i,:] = mean over the neighbours (0 if there is none): hg_spmm with HG_NORM_RIGHT.
 * <= max|X| on every unweighted graph. */
HG_API hg_var hg_spmm_mean(hg_tape *tape, hg_graph *graph, hg_var x);
/* Y[i,c] = max over edges (i, j) of X[j,c]; 0 for a row without edges; a NaN wins.  X [cols, d], Y
 * [rows, d].
 * <= max|X|
 * dX: dY[i,c] goes to the first edge that attains it. */
HG_API hg_var hg_spmm_max(hg_tape *tape, hg_graph *graph, hg_var x);

/* ---- edges ---- */

/* E[e,k] = scale * <A[i, head k], B[j, head k]> for e = (i, j).  A [rows, d], B [cols, d], heads
 * divides d.  E [m, heads].
 * <= |scale| d/heads max|A| max|B|
 * dA[i, head k] = scale * sum over edges of row i of dE[e,k] B[j, head k],  dB the same on the
 * transpose. */
HG_API hg_var hg_sddmm_dot(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, int heads,
                           float scale);
/* E[e,k] = a[i,k] + b[j,k].  a [rows, h], b [cols, h], E [m, h]; b HG_NONE: the last h columns of a
 * [rows, 2 h], rows = cols.
 * <= max|a| + max|b|
 * da[i,k] = sum over edges of row i of dE[e,k],  db[j,k] = the same over column j. */
HG_API hg_var hg_sddmm_add(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b);
/* E[e,k] = leaky_relu(a[i,k] + b[j,k]) in one pass, one rounding; nothing is kept for an edge. 0 <=
 * slope <= 1.
 * Gradients as above, of f'(a[i,k] + b[j,k]) dE[e,k]; f'(0) = slope. */
HG_API hg_var hg_sddmm_add_leaky(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, float slope);
/* P[e,k] = exp(E[e,k] - max_i) / sum over the edges f of row i of exp(E[f,k] - max_i).  E, P
 * [m, h].  In (0, 1]: proved.
 * dE = P (dP - sum over the row of P dP). */
HG_API hg_var hg_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e);

/* ---- elements: X, Y of one shape ---- */

/* Y = max(X, 0).   <= max|X|.   dX = dY where Y > 0, else 0. */
HG_API hg_var hg_relu(hg_tape *tape, hg_var x);
/* Y = X where X > 0, else slope X;  0 <= slope <= 1.
 * <= max|X|.
 * dX = dY where X > 0, else slope dY. */
HG_API hg_var hg_leaky_relu(hg_tape *tape, hg_var x, float slope);
/* Y = X where X > 0, else alpha (exp(X) - 1);  alpha > 0.
 * <= max(max|X|, alpha min(1, max|X|)).
 * dX = dY where Y > 0, else (Y + alpha) dY. */
HG_API hg_var hg_elu(hg_tape *tape, hg_var x, float alpha);
/* Y = exp(X).   <= exp(max|X|); f16 holds that up to |X| <= 11.09.   dX = Y dY. */
HG_API hg_var hg_exp(hg_tape *tape, hg_var x);
/* Y = log(X), -infinity at 0, NaN below.   No bound from max|X|.   dX = dY / X. */
HG_API hg_var hg_log(hg_tape *tape, hg_var x);
/* Y = sqrt(X), NaN below 0.   <= sqrt(max|X|) where no X is.   dX = dY / (2 Y), infinite at 0. */
HG_API hg_var hg_sqrt(hg_tape *tape, hg_var x);
/* Y = X * mask / (1 - p); identity on an EVAL tape. 0 <= p < 1. The mask is a function of (seed,
 * node of the tape, step, element), the same on every device.
 * <= max|X| / (1 - p).   dX = dY * mask / (1 - p). */
HG_API hg_var hg_dropout(hg_tape *tape, hg_var x, float p);

/* Z = X + Y.   <= max|X| + max|Y|.   dX = dY = dZ. */
HG_API hg_var hg_add(hg_tape *tape, hg_var x, hg_var y);
/* Y = factor X.   <= |factor| max|X|.   dX = factor dY. */
HG_API hg_var hg_scale(hg_tape *tape, hg_var x, float factor);
/* Y = (1 + eps) X + Z, eps [1, 1] a parameter (HG_PARAM_F32). The GIN combine.
 * <= (1 + |eps|) max|X| + max|Z|
 * dX = (1 + eps) dY,  dZ = dY,  deps = sum over all elements of dY X. */
HG_API hg_var hg_combine(hg_tape *tape, hg_var x, hg_var z, hg_var eps);
/* Y = A / B.  A, Y [n, d]; B [n, d], or [n, 1]: one for a row, or [1, 1]: one for all.
 * No bound from max|B|.
 * dA = dY / B,  dB = - (sum of dY A / B) / B over the elements that B's one divides. */
HG_API hg_var hg_div(hg_tape *tape, hg_var a, hg_var b);
/* The same values in another float type, f16 or f32. Narrowing is a narrowing: it has a verdict.
 * dX = dY. */
HG_API hg_var hg_cast(hg_tape *tape, hg_var x, hg_dtype dtype);

/* ---- columns and heads ---- */

/* Columns side by side: Y = [A B].  A [n, p], B [n, q], Y [n, p + q].
 * <= max(max|A|, max|B|).
 * dA, dB: their columns of dY. */
HG_API hg_var hg_concat(hg_tape *tape, hg_var a, hg_var b);
/* Y[i,:] = 1/h * sum over heads of X[i, head k].  X [n, h*d], Y [n, d].
 * <= max|X|.
 * dX[i, head k] = dY[i,:] / h. */
HG_API hg_var hg_head_mean(hg_tape *tape, hg_var x, int heads);
/* S[i,k] = <X[i, head k], a[head k]>.  X [n, h*d], a [1, h*d], S [n, h].   <= d max|X| max|a|
 * dX[i, head k] = dS[i,k] a[head k],  da[head k] = sum over i of dS[i,k] X[i, head k]. */
HG_API hg_var hg_head_dot(hg_tape *tape, hg_var x, hg_var a, int heads);
/* The same with a and then with b, side by side: S [n, 2 h]. X is read once, and its gradient made
 * once. */
HG_API hg_var hg_head_dots(hg_tape *tape, hg_var x, hg_var a, hg_var b, int heads);

/* ---- along rows: X [n, d], Y [n, 1], 0 if d = 0 ---- */

/* Y[i] = sum of row i.   <= d max|X|.   dX[i,c] = dY[i]. */
HG_API hg_var hg_row_sum(hg_tape *tape, hg_var x);
/* Y[i] = mean of row i.   <= max|X|.   dX[i,c] = dY[i] / d. */
HG_API hg_var hg_row_mean(hg_tape *tape, hg_var x);
/* Y[i] = sqrt(sum of the squares of row i), squares and sum f32.
 * <= sqrt(d) max|X|.
 * dX[i,c] = X[i,c] / Y[i] dY[i], 0 where Y[i] is 0. */
HG_API hg_var hg_row_norm(hg_tape *tape, hg_var x);

/* ---- normalisation ---- */

/* Y[:,c] = gamma[c] (X[:,c] - mean[c]) / sqrt(var[c] + eps) + beta[c].  X, Y [n, d]; gamma, beta
 * [1, d] (HG_PARAM_F32); running_mean, running_var [1, d] (HG_PARAM_F32 | HG_PARAM_BUFFER), updated
 * with `momentum` in [0, 1] on a TRAIN tape, used on an EVAL tape. eps > 0. Biased variance
 * normalises, unbiased is recorded, as elsewhere; a column whose statistics are not finite records
 * nothing.
 * TRAIN: <= sqrt(n) max|gamma| + max|beta|, whatever X holds. */
HG_API hg_var hg_batch_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta,
                            hg_param *running_mean, hg_param *running_var, float momentum,
                            float eps);
/* Y[i,:] = gamma (X[i,:] - mean[i]) / sqrt(var[i] + eps) + beta, mean and biased variance of the
 * row.  X, Y [n, d]; gamma, beta [1, d] (HG_PARAM_F32). eps > 0.
 * <= sqrt(d) max|gamma| + max|beta|, whatever X holds. */
HG_API hg_var hg_layer_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta, float eps);
/* Y[i,c] = exp(X[i,c] - max_i) / sum over the row of exp(X[i,:] - max_i).  X, Y [n, d].  In (0, 1]:
 * proved.
 * dX = Y (dY - sum over the row of Y dY). */
HG_API hg_var hg_softmax(hg_tape *tape, hg_var x);
/* Y[i,c] = X[i,c] - log(sum over the row of exp(X[i,:])), computed from the row's maximum.  X, Y
 * [n, d].
 * <= 2 max|X| + log(d)
 * dX = dY - exp(Y) * sum over the row of dY. */
HG_API hg_var hg_log_softmax(hg_tape *tape, hg_var x);

/* ---- graphs of a batch ---- */

/* Y[g,:] = reduction over the nodes of graph g of the batch (hg_graph_set_batch).  X [n, d], Y
 * [graphs, d]. An empty graph gives 0. Mean, maximum: <= max|X|; sum: times the nodes of the
 * largest graph.
 * dX: dY[g,:], that / nodes of g, or dY[g,c] for the first node that attains the maximum. */
HG_API hg_var hg_readout(hg_tape *tape, hg_graph *graph, hg_var x, hg_reduce reduce);

/* ---- losses: f32 [1, 1], never narrowed; mean over the rows with mask != 0 (mask u8 [n, 1] or
 * HG_NONE: all); 0 if there is none.
 * Only the first operand has a gradient ---- */

/* L = mean of log(sum over c of exp(X[i,c])) - X[i, label_i].  X [n, d], labels i32 [n, 1]; rows
 * whose label is negative are left out. A label >= d is found at compile time (HG_ERR_RANGE).
 * dX = (softmax(X) - one at the label) dL / rows that count. */
HG_API hg_var hg_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask);
/* L = mean over rows and columns of max(x, 0) - x t + log(1 + exp(-|x|)).  targets t: f16 or f32
 * [n, d], in [0, 1].
 * dX = (1 / (1 + exp(-x)) - t) dL / elements that count. */
HG_API hg_var hg_bce_logits(hg_tape *tape, hg_var logits, hg_var targets, hg_var mask);
/* L = mean over rows and columns of (x - t)^2.  targets t: f16 or f32 [n, d].
 * dX = 2 (x - t) dL / elements that count. */
HG_API hg_var hg_mse(hg_tape *tape, hg_var x, hg_var targets, hg_var mask);

HG_EXTERN_C_END
#endif
