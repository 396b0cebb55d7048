#ifndef HALFGRAPH_OPS_H
#define HALFGRAPH_OPS_H

#include "halfgraph/graph.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/* The ops: bare verbs on a tape. Each records one node; its equation, shapes, range rule, gradient and error bound stand on top of
 * src/autograd/ops/NAME.c and, in short, here. n nodes, m edges, d features, h heads. `state` is the policy's f16 or f32. An optional operand is passed
 * as HG_NONE. */
#define HG_NONE (hg_none())
HG_API hg_var hg_none(void);

/* Y = X W + b.  X [n, k], W [k, d], b [1, d] or HG_NONE.  f32 sums, narrowed once. */
HG_API hg_var hg_linear(hg_tape *tape, hg_var x, hg_var w, hg_var b);
/* Y = X + b.  b [1, d]. */
HG_API hg_var hg_bias_add(hg_tape *tape, hg_var x, hg_var b);

/* Y[i,:] = alpha * r(i) * sum over edges e = (i, j) of w_e * c(j) * X[j,:], with r, c from `norm` (graph.h).
 * w: the graph's own weights, or edge_weight [m, h] (gradient too) in their place: then head k of X [cols, h*d'] is weighted by w[e, k].
 * X [cols of A, d], Y [rows of A, d]. f32 sums, scaled when the row is complete, narrowed once; other arithmetic: hg_accumulate (policy.h). */
HG_API hg_var hg_spmm(hg_tape *tape, hg_graph *graph, hg_var x, hg_var edge_weight, hg_norm norm, float alpha);
/* Y[i,:] = mean over the neighbours: hg_spmm with HG_NORM_RIGHT. */
HG_API hg_var hg_spmm_mean(hg_tape *tape, hg_graph *graph, hg_var x);
/* Y[i,c] = max over edges (i, j) of X[j,c]; 0 for a row without edges. The gradient goes to the first edge that attains it. */
HG_API hg_var hg_spmm_max(hg_tape *tape, hg_graph *graph, hg_var x);

/* E[e,k] = scale * <A[i, head k], B[j, head k]> for e = (i, j).  A [rows, d], B [cols, d], heads divides d.  E [m, heads]. */
HG_API hg_var hg_sddmm_dot(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, int heads, float scale);
/* E[e,k] = a[i,k] + b[j,k].  a [rows, h], b [cols, h]; b HG_NONE: the last h columns of a [rows, 2 h], rows = cols. */
HG_API hg_var hg_sddmm_add(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b);
/* E[e,k] = leaky_relu(a[i,k] + b[j,k]) in one pass, one rounding; nothing is kept for an edge. 0 <= slope <= 1. */
HG_API hg_var hg_sddmm_add_leaky(hg_tape *tape, hg_graph *graph, hg_var a, hg_var b, float slope);
/* P[e,k] = exp(E[e,k] - max_i) / sum over the edges of row i.  In (0, 1]: proved. */
HG_API hg_var hg_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e);

HG_API hg_var hg_relu(hg_tape *tape, hg_var x);
HG_API hg_var hg_leaky_relu(hg_tape *tape, hg_var x, float slope); /* 0 <= slope <= 1 */
HG_API hg_var hg_elu(hg_tape *tape, hg_var x, float alpha);        /* alpha > 0 */
/* Y = X * mask / (1 - p); identity on an EVAL tape. 0 <= p < 1. The mask is a function of (seed, node of the tape, step, element), the same on every device. */
HG_API hg_var hg_dropout(hg_tape *tape, hg_var x, float p);

HG_API hg_var hg_add(hg_tape *tape, hg_var x, hg_var y);
HG_API hg_var hg_scale(hg_tape *tape, hg_var x, float factor);
/* Y = (1 + eps) X + Z, eps [1, 1] a parameter (HG_PARAM_F32). The GIN combine. */
HG_API hg_var hg_combine(hg_tape *tape, hg_var x, hg_var z, hg_var eps);
/* Columns side by side: Y = [A B]. */
HG_API hg_var hg_concat(hg_tape *tape, hg_var a, hg_var b);
/* Y[i,:] = 1/h * sum over heads of X[i, head k].  X [n, h*d], Y [n, d]. */
HG_API hg_var hg_head_mean(hg_tape *tape, hg_var x, int heads);
/* S[i,k] = <X[i, head k], a[head k]>.  X [n, h*d], a [1, h*d], S [n, h]. */
HG_API hg_var hg_head_dot(hg_tape *tape, hg_var x, hg_var a, int heads);
/* The same with a and then with b, side by side: S [n, 2 h]. X is read once, and its gradient made once. */
HG_API hg_var hg_head_dots(hg_tape *tape, hg_var x, hg_var a, hg_var b, int heads);

/* Per-column normalisation, statistics in f32. gamma, beta [1, d] (HG_PARAM_F32); running_mean, running_var [1, d] (HG_PARAM_F32 | HG_PARAM_BUFFER),
 * updated with `momentum` on a TRAIN tape, used on an EVAL tape. Biased variance normalises, unbiased is recorded, as elsewhere. */
HG_API hg_var hg_batch_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta, hg_param *running_mean, hg_param *running_var, float momentum, float eps);
HG_API hg_var hg_layer_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta, float eps);

/* Y[g,:] = reduction over the nodes of graph g of the batch (hg_graph_set_batch).  X [n, d], Y [graphs, d]. An empty graph gives 0. */
HG_API hg_var hg_readout(hg_tape *tape, hg_graph *graph, hg_var x, hg_reduce reduce);

HG_API hg_var hg_log_softmax(hg_tape *tape, hg_var x);
/* Losses: f32 [1, 1], mean over the rows with mask != 0 (mask u8 [n, 1] or HG_NONE: all); 0 if there is none.
 * softmax_xent: labels i32 [n, 1]; rows whose label is negative are left out. A label >= d is found at compile time (HG_ERR_RANGE). */
HG_API hg_var hg_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask);
/* targets: state or f32 [n, d], in [0, 1]; mean over rows and columns. */
HG_API hg_var hg_bce_logits(hg_tape *tape, hg_var logits, hg_var targets, hg_var mask);
HG_API hg_var hg_mse(hg_tape *tape, hg_var x, hg_var targets, hg_var mask);

/* The same values in another float type. Narrowing is a narrowing: it has a verdict. */
HG_API hg_var hg_cast(hg_tape *tape, hg_var x, hg_dtype dtype);

HG_EXTERN_C_END
#endif
