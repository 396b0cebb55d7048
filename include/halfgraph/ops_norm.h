/** @file
 * Normalisations, softmax and losses. The symbols and what every op has in common (types, range,
 * error, errors, ownership, threads) are at the top of ops.h. */
#ifndef HALFGRAPH_OPS_NORM_H
#define HALFGRAPH_OPS_NORM_H

#include "halfgraph/param.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/** Batch normalisation: each column to mean 0 and variance 1, then a gain and an offset.
 *
 *     Y[:,c] = gamma[c] (X[:,c] - mean[c]) / sqrt(var[c] + eps) + beta[c]
 *     running <- (1 - momentum) running + momentum (mean, var n / (n - 1))       on a TRAIN tape
 *
 * mean and var (biased) are those of the column on a TRAIN tape, the running ones on an EVAL tape.
 * A column whose statistics are not finite does not change its running statistics.
 *
 * Shapes    X, Y [n, d]; gamma, beta, running mean and running variance [1, d].
 * Dtypes    X, Y: state. All else f32 (HG_PARAM_F32; the running ones HG_PARAM_BUFFER as well).
 * Range     TRAIN: max|Y| <= sqrt(n) max|gamma| + max|beta| for every X. EVAL: none known.
 * Error     gamma_n(u32) for mean and variance, gamma_6(u32) on top, then narrowed.
 * Gradient  xhat = (X - mean) rstd,  dgamma = sum of dY xhat,  dbeta = sum of dY,
 *           dX = gamma rstd (dY - dbeta / n - xhat dgamma / n).
 * Cost      3 n d elements, 8 n d flops.
 * Errors    HG_ERR_SHAPE (gamma, beta or a buffer is not [1, d]), HG_ERR_DTYPE (gamma or beta is
 *           not f32), HG_ERR_ARG (momentum outside [0, 1], eps not positive) and those of every op.
 * Source    Ioffe, Szegedy 2015.
 * @param tape                       the tape.
 * @param x,gamma,beta               X, gamma and beta.
 * @param running_mean,running_var   buffers of the tape's params, borrowed.
 * @param momentum                   in [0, 1]: weight of the new statistics.
 * @param eps                        positive.
 * @return Y. */
HG_API hg_var hg_batch_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta,
                            hg_param *running_mean, hg_param *running_var, float momentum,
                            float eps);

/** Layer normalisation: each row to mean 0 and variance 1, then a gain and an offset.
 *
 *     Y[i,:] = gamma (X[i,:] - mean[i]) / sqrt(var[i] + eps) + beta
 *
 * Shapes    X, Y [n, d]; gamma, beta [1, d]; mean and var (biased) are those of the row.
 * Dtypes    X, Y: state. gamma, beta: f32 (HG_PARAM_F32).
 * Range     max|Y| <= sqrt(d) max|gamma| + max|beta| for every X.
 * Error     gamma_d(u32) for mean and variance, gamma_6(u32) on top, then narrowed.
 * Gradient  xhat = (X - mean) rstd, g = gamma dY:  dX = rstd (g - mean(g) - xhat mean(g xhat)),
 *           dgamma = sum over rows of dY xhat,  dbeta = sum over rows of dY.
 * Cost      2 n d elements, 8 n d flops.
 * Errors    HG_ERR_SHAPE (gamma or beta is not [1, d]), HG_ERR_DTYPE (gamma or beta is not f32),
 *           HG_ERR_ARG (eps not positive) and those of every op.
 * Source    Ba, Kiros, Hinton 2016.
 * @param tape          the tape.
 * @param x,gamma,beta  X, gamma and beta.
 * @param eps           positive.
 * @return Y. */
HG_API hg_var hg_layer_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta, float eps);

/** Softmax of each row.
 *
 *     Y[i,c] = exp(X[i,c] - M_i) / sum over c' of exp(X[i,c'] - M_i),   M_i = max over c of X[i,c]
 *
 * Range     0 <= Y <= 1, proved for every X. A share below 2^-25 becomes 0 in f16.
 * Error     gamma_{d+10}(u32) Y + 2 u32 max|X| Y, then narrowed.
 * Gradient  dX = Y (dY - sum over the row of Y dY), from the stored Y.
 * Cost      2 n d elements, 6 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_softmax(hg_tape *tape, hg_var x);

/** Logarithm of the softmax of each row.
 *
 *     Y[i,c] = X[i,c] - M_i - log(sum over c' of exp(X[i,c'] - M_i)),   M_i = max over c of X[i,c]
 *
 * Range     -2 max|X| - log(d) <= Y <= 0.
 * Error     gamma_{d+8}(u32) + gamma_4(u32) |Y|, then narrowed.
 * Gradient  dX = dY - exp(Y) * sum over the row of dY.
 * Cost      2 n d elements, 6 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_log_softmax(hg_tape *tape, hg_var x);

/** @name Losses
 * A loss is f32 [1, 1] and is never narrowed. It is a mean over the rows that count: those whose
 * mask is not 0. L = 0 if nothing counts. Only the first operand has a gradient.
 * @{ */

/** Cross-entropy of a softmax, for classification.
 *
 *     L = 1/q * sum over rows i that count of (log(sum over c of exp(X[i,c])) - X[i, label_i])
 *
 * q is the number of rows that count; a row with a negative label does not count.
 *
 * Shapes    X [n, d] with d >= 1; labels and mask [n, 1]; L [1, 1].
 * Dtypes    X: state. labels: i32. mask: u8. L: f32.
 * Range     0 <= L <= 2 max|X| + log(d).
 * Error     gamma_{n+d+6}(u32) (2 max|X| + log(d)).
 * Gradient  dX[i,c] = (softmax(X)[i,c] - [c = label_i]) dL / q for rows that count, else 0.
 * Cost      n d elements and 5 n bytes, 6 n d flops.
 * Errors    HG_ERR_SHAPE (labels or mask is not [n, 1], or d = 0) and those of every op. A label
 *           >= d is HG_ERR_RANGE from hg_tape_compile.
 * @param tape           the tape.
 * @param logits,labels  X and the labels.
 * @param mask           the mask, or HG_NONE: every labelled row counts.
 * @return L. */
HG_API hg_var hg_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask);

/** Cross-entropy of a softmax with weights of the classes and label smoothing, as PyTorch's
 * CrossEntropyLoss has them.
 *
 *     L = 1/q * sum over rows i that count of
 *             ((1 - e) w[y] l[i,y] + e/d * sum over c of w[c] l[i,c]),   y = label_i
 *     l = -log softmax(X);  q = sum of w[y] over these rows
 *
 * L = 0 unless q > 0. Rows count as in hg_softmax_xent, which has w = 1 and e = 0.
 *
 * Shapes    X [n, d] with d >= 1; labels and mask [n, 1]; w [1, d]; L [1, 1].
 * Dtypes    X: state. labels: i32. mask: u8. w, L: f32.
 * Range     0 <= L <= (2 max|X| + log(d)) (1 - e + e max w / min w) for constant w above 0.
 * Error     gamma_{n+2d+10}(u32) times that.
 * Gradient  dX[i,c] = ((1 - e) w[y] (p[c] - [c = y]) + e/d (p[c] sum of w - w[c])) dL / q for rows
 *           that count, else 0, with p = softmax(X)[i].
 * Cost      n d elements and 5 n bytes, 10 n d flops.
 * Errors    HG_ERR_ARG (smoothing is not in [0, 1)), HG_ERR_SHAPE (labels or mask is not [n, 1], w
 *           not [1, d], or d = 0) and those of every op. A label >= d is HG_ERR_RANGE from
 *           hg_tape_compile.
 * @param tape           the tape.
 * @param logits,labels  X and the labels.
 * @param mask           the mask, or HG_NONE: every labelled row counts.
 * @param weights        w, at least 0, or HG_NONE: all 1.
 * @param smoothing      e, in [0, 1).
 * @return L. */
HG_API hg_var hg_softmax_xent_weighted(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask,
                                       hg_var weights, float smoothing);

/** Binary cross-entropy of logits, for several labels per row.
 *
 *     L = 1/q * sum over (i, c) that count of (max(x, 0) - x t + log(1 + exp(-|x|))),
 *         x = X[i,c], t = T[i,c]
 *
 * q is the number of elements that count: those of rows that count or, with a mask [n, d], those
 * whose own mask is not 0. So a missing label has mask 0, and any number as its target.
 *
 * Shapes    X, T [n, d]; mask [n, 1] or [n, d]; L [1, 1].
 * Dtypes    X: state. T: f16 or f32, in [0, 1]. mask: u8. L: f32.
 * Range     |L| <= max|X| (1 + max|T|) + log(2).
 * Error     gamma_{n d + 6}(u32) (max|X| (1 + max|T|) + log(2)).
 * Gradient  dX = (1 / (1 + exp(-x)) - t) dL / q for elements that count, else 0.
 * Cost      2 n d elements, 8 n d flops.
 * Errors    HG_ERR_SHAPE (T is not [n, d], mask neither [n, 1] nor [n, d]) and those of every op.
 * @param tape            the tape.
 * @param logits,targets  X and T.
 * @param mask            the mask, or HG_NONE: every element counts.
 * @return L. */
HG_API hg_var hg_bce_logits(hg_tape *tape, hg_var logits, hg_var targets, hg_var mask);

/** Binary cross-entropy of logits with a weight for the ones of each column, as PyTorch's
 * BCEWithLogitsLoss has them (pos_weight).
 *
 *     L = 1/q * sum over (i, c) that count of ((1 - t) x + (1 + (w[c] - 1) t) log(1 + exp(-x))),
 *         x = X[i,c], t = T[i,c]
 *
 * q and which elements count: as in hg_bce_logits, which has w = 1.
 *
 * Shapes    X, T [n, d]; mask [n, 1] or [n, d]; w [1, d]; L [1, 1].
 * Dtypes    X: state. T: f16 or f32, in [0, 1]. mask: u8. w, L: f32.
 * Range     |L| <= (1 + max|T|) max|X| + (1 + (1 + max|w|) max|T|) (max|X| + log(2)).
 * Error     gamma_{n d + 10}(u32) times that.
 * Gradient  dX = (1 - t - (1 + (w - 1) t) / (1 + exp(x))) dL / q for elements that count, else 0.
 * Cost      2 n d elements, 12 n d flops.
 * Errors    HG_ERR_SHAPE (T is not [n, d], mask neither [n, 1] nor [n, d], w not [1, d]) and those
 *           of every op.
 * @param tape            the tape.
 * @param logits,targets  X and T.
 * @param mask            the mask, or HG_NONE: every element counts.
 * @param weights         w, at least 0.
 * @return L. */
HG_API hg_var hg_bce_logits_weighted(hg_tape *tape, hg_var logits, hg_var targets, hg_var mask,
                                     hg_var weights);

/** Mean squared error, for regression.
 *
 *     L = 1/q * sum over (i, c) that count of (X[i,c] - T[i,c])^2
 *
 * q is the number of elements that count, as in hg_bce_logits.
 *
 * Shapes    X, T [n, d]; mask [n, 1] or [n, d]; L [1, 1].
 * Dtypes    X: state. T: f16 or f32. mask: u8. L: f32.
 * Range     0 <= L <= (max|X| + max|T|)^2.
 * Error     gamma_{n d + 4}(u32) L.
 * Gradient  dX = 2 (X - T) dL / q for elements that count, else 0.
 * Cost      2 n d elements, 3 n d flops.
 * Errors    HG_ERR_SHAPE (T is not [n, d], mask neither [n, 1] nor [n, d]) and those of every op.
 * @param tape       the tape.
 * @param x,targets  X and T.
 * @param mask       the mask, or HG_NONE: every element counts.
 * @return L. */
HG_API hg_var hg_mse(hg_tape *tape, hg_var x, hg_var targets, hg_var mask);

/** Mean absolute error, for regression that outliers shall not dominate.
 *
 *     L = 1/q * sum over (i, c) that count of |X[i,c] - T[i,c]|
 *
 * q is the number of elements that count, as in hg_bce_logits.
 *
 * Shapes    X, T [n, d]; mask [n, 1] or [n, d]; L [1, 1].
 * Dtypes    X: state. T: f16 or f32. mask: u8. L: f32.
 * Range     0 <= L <= max|X| + max|T|.
 * Error     gamma_{n d + 3}(u32) L.
 * Gradient  dX = sign(X - T) dL / q for elements that count, else 0; sign(0) = 0.
 * Cost      2 n d elements, 3 n d flops.
 * Errors    HG_ERR_SHAPE (T is not [n, d], mask neither [n, 1] nor [n, d]) and those of every op.
 * @param tape       the tape.
 * @param x,targets  X and T.
 * @param mask       the mask, or HG_NONE: every element counts.
 * @return L. */
HG_API hg_var hg_mae(hg_tape *tape, hg_var x, hg_var targets, hg_var mask);

/** Inner product with a gradient from outside: a loss for a tape that is one part of somebody
 * else's computation.
 *
 *     L = sum over (i, c) of Y[i,c] G[i,c]
 *
 * Give G, the gradient of the other program's loss with respect to Y, as hg_tape_input, whose
 * `amax` is your bound on |G| (or it is measured). Compile the tape with L as its output and keep Y
 * (hg_tape_keep). After hg_tape_forward the other program takes Y and writes G into its tensor;
 * hg_tape_backward then computes the gradients of that program's loss. L itself is of no use.
 *
 * Shapes    Y, G [n, d]; L [1, 1].
 * Dtypes    Y: state. G: f16 or f32. L: f32.
 * Range     |L| <= n d max|Y| max|G|.
 * Error     gamma_{n d + 1}(u32) sum of |Y G|.
 * Gradient  dY = dL G, where dL is the loss scale. G has no gradient. Where |G| exceeds its bound,
 *           f16 gradients may become infinite; the finite check of a step finds that.
 * Cost      2 n d elements, 2 n d flops.
 * Errors    HG_ERR_SHAPE (G is not [n, d]) and those of every op.
 * @param tape      the tape.
 * @param y         Y.
 * @param gradient  G.
 * @return L. */
HG_API hg_var hg_inner(hg_tape *tape, hg_var y, hg_var gradient);

/** @} */

HG_EXTERN_C_END
#endif
