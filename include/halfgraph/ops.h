/** @file
 * The ops: functions that record one op node on a tape (tape.h). This header holds the ops on rows
 * and elements; it includes those on graphs (ops_graph.h, ops_attention.h) and the norms and losses
 * (ops_norm.h).
 *
 * Symbols: n rows, d columns, m edges, h heads. `state` is the policy's type, f16 or f32
 * (policy.h). dX is the gradient of the loss with respect to X. u16 = 2^-11 and u32 = 2^-24 are the
 * unit roundoffs, eta16 = 2^-24 is the smallest half, and gamma_k(u) = k u / (1 - k u) bounds the
 * relative error of k roundings (Higham 2002).
 *
 * Every op has these properties; its own comment gives the rest:
 *
 * Shapes    The result is created. All operands are matrices; a vector is [n, 1] or [1, d].
 * Dtypes    Operands are f16 or f32, and the result has the state type, unless the comment says
 *           otherwise. An operand of the other float type is converted first (hg_plan_info.casts).
 *           The op runs in f32, result included, where an f32 operand may not become f16: hg_cast
 *           made it, it was promoted, or its bound does not fit. Arithmetic and sums run in f32,
 *           and the result is narrowed once, when it is stored.
 * Range     A bound on max|Y| that follows from the bounds on the operands. A narrowing to f16 is
 *           HG_PROVED where this bound, with rounding, is below 65520; otherwise the policy
 *           decides.
 * Error     A bound on |Y - exact| before narrowing, for the operands as they are stored. Narrowing
 *           a value y to f16 adds u16 |y| + eta16 / 2. "One rounding" is u |Y| in the state type. A
 *           "sum of depth k" has the bound E = gamma_k(u32) * sum of |terms|.
 * Cost      Elements read and written (an element has the size of state), then flops, forward.
 * Errors    The tape keeps the first error (hg_tape_status), and the op then returns an invalid
 *           variable. HG_ERR_SHAPE: shapes do not fit. HG_ERR_DTYPE: an operand has a wrong type.
 *           HG_ERR_ARG: an operand is missing or belongs to another tape, or a constant is outside
 *           its range. HG_ERR_RANGE: the policy refuses the narrowing. HG_ERR_NOMEM. HG_ERR_STATE:
 *           the tape is already compiled (the context has this error, the tape stays good).
 * Owner     A variable belongs to its tape. A graph is borrowed until the tape is freed.
 * Threads   One thread at a time per context.
 *
 * When a tape is compiled, chains of ops that one kernel can do become one op node, and values
 * inside such a chain are not narrowed (hg_context_config.separate_ops turns this off). The proofs
 * of the bounds are in the comments of src/autograd/ops/NAME.c. */
#ifndef HALFGRAPH_OPS_H
#define HALFGRAPH_OPS_H

#include "halfgraph/graph.h"
#include "halfgraph/ops_attention.h"
#include "halfgraph/ops_graph.h"
#include "halfgraph/ops_norm.h"
#include "halfgraph/tape.h"

HG_EXTERN_C_BEGIN

/** Affine map of every row.
 *
 *     Y = X W + b
 *
 * Shapes    X [n, k], W [k, d], b [1, d], Y [n, d].
 * Range     max|Y| <= k max|X| max|W| + max|b|.
 * Error     gamma_{k+1}(u32) (|X||W| + |b|); f16 on tensor cores: depth 5/2 k + 1.
 * Gradient  dX = dY W^T,  dW = X^T dY,  db = sum over rows of dY.
 * Cost      n k + k d + n d elements, 2 n k d flops.
 * Errors    HG_ERR_SHAPE (rows(W) != cols(X), or b is not [1, d]) and those of every op.
 * @param tape  the tape.
 * @param x,w   X and W.
 * @param b     b, or HG_NONE for no bias.
 * @return Y. */
HG_API hg_var hg_linear(hg_tape *tape, hg_var x, hg_var w, hg_var b);

/** A row added to every row.
 *
 *     Y[i,c] = X[i,c] + b[0,c]
 *
 * Shapes    X, Y [n, d], b [1, d].
 * Range     max|Y| <= max|X| + max|b|.
 * Error     One rounding.
 * Gradient  dX = dY,  db = sum over rows of dY.
 * Cost      2 n d + d elements, n d flops.
 * Errors    HG_ERR_SHAPE (b is not [1, d]) and those of every op.
 * @param tape  the tape.
 * @param x,b   X and b.
 * @return Y. */
HG_API hg_var hg_bias_add(hg_tape *tape, hg_var x, hg_var b);

/** @name Elements
 * The operands and the result have one shape unless the comment says otherwise.
 * @{ */

/** Rectifier.
 *
 *     Y = max(X, 0)
 *
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     0.
 * Gradient  dX = dY where Y > 0, else 0 (also at X = 0).
 * Cost      2 n d elements, n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_relu(hg_tape *tape, hg_var x);

/** Leaky rectifier.
 *
 *     Y = X where X > 0, else slope X
 *
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     One rounding of each negative element.
 * Gradient  dX = dY where X > 0, else slope dY.
 * Cost      2 n d elements, n d flops.
 * Errors    HG_ERR_ARG (slope outside [0, 1]) and those of every op.
 * Source    Maas, Hannun, Ng 2013.
 * @param tape   the tape.
 * @param x      X [n, d].
 * @param slope  in [0, 1].
 * @return Y [n, d]. */
HG_API hg_var hg_leaky_relu(hg_tape *tape, hg_var x, float slope);

/** Exponential linear unit.
 *
 *     Y = X where X > 0, else alpha (exp(X) - 1)
 *
 * Range     max|Y| <= max(max|X|, alpha min(1, max|X|)).
 * Error     alpha gamma_4(u32) on negative elements, 0 on the others; then narrowed.
 * Gradient  dX = dY where Y > 0, else (Y + alpha) dY.
 * Cost      2 n d elements, 3 n d flops.
 * Errors    HG_ERR_ARG (alpha is not positive and finite) and those of every op.
 * Source    Clevert, Unterthiner, Hochreiter 2016.
 * @param tape   the tape.
 * @param x      X [n, d].
 * @param alpha  positive and finite.
 * @return Y [n, d]. */
HG_API hg_var hg_elu(hg_tape *tape, hg_var x, float alpha);

/** Logistic function.
 *
 *     Y = 1 / (1 + exp(-X))
 *
 * Range     0 <= Y <= 1, proved for every X. A result below 2^-25 becomes 0 in f16.
 * Error     7 u32 Y, then narrowed.
 * Gradient  dX = Y (1 - Y) dY, from the stored Y; max|dX| <= max|dY| / 4.
 * Cost      2 n d elements, 12 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_sigmoid(hg_tape *tape, hg_var x);

/** Hyperbolic tangent.
 *
 *     Y = tanh(X)
 *
 * Range     max|Y| <= min(1, max|X|), proved for every X.
 * Error     10 u32 |Y|, then narrowed.
 * Gradient  dX = (1 - Y^2) dY, from the stored Y; max|dX| <= max|dY|.
 * Cost      2 n d elements, 12 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_tanh(hg_tape *tape, hg_var x);

/** Gaussian error linear unit, the exact form by the error function. NaN at -infinity.
 *
 *     Y = X Phi(X),  Phi(x) = (1 + erf(x / sqrt 2)) / 2
 *
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     (16 + X^2 / 2) u32 |Y|, then narrowed.
 * Gradient  dX = (Phi(X) + X phi(X)) dY,  phi(x) = exp(-x^2 / 2) / sqrt(2 pi);
 *           max|dX| <= 1.13 max|dY|.
 * Cost      2 n d elements, 32 n d flops.
 * Errors    Those of every op.
 * Source    Hendrycks, Gimpel 2016.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_gelu(hg_tape *tape, hg_var x);

/** Sigmoid linear unit, also called swish. NaN at -infinity.
 *
 *     Y = X s(X),  s(x) = 1 / (1 + exp(-x))
 *
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     8 u32 |Y|, then narrowed.
 * Gradient  dX = s(X) (1 + X s(-X)) dY;  max|dX| <= 1.1 max|dY|.
 * Cost      2 n d elements, 13 n d flops.
 * Errors    Those of every op.
 * Source    Elfwing, Uchibe, Doya 2018.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_silu(hg_tape *tape, hg_var x);

/** Absolute value.
 *
 *     Y = |X|
 *
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     0.
 * Gradient  dX = dY where X > 0, -dY where X < 0, 0 at X = 0.
 * Cost      2 n d elements, n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_abs(hg_tape *tape, hg_var x);

/** Exponential.
 *
 *     Y = exp(X)
 *
 * Range     0 <= Y <= exp(max|X|): f16 holds it up to |X| <= 11.09. Y <= 1 where the tape knows
 *           that X <= 0. A result below 2^-25 becomes 0 in f16.
 * Error     4 u32 Y, then narrowed.
 * Gradient  dX = Y dY, from the stored Y.
 * Cost      2 n d elements, 8 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_exp(hg_tape *tape, hg_var x);

/** Natural logarithm; -infinity at 0, NaN below.
 *
 *     Y = log(X)
 *
 * Range     None from max|X| alone. max(|log l|, |log max|X||) where the tape knows X >= l > 0.
 * Error     4 u32 |Y|, then narrowed.
 * Gradient  dX = dY / X.
 * Cost      2 n d elements, 8 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_log(hg_tape *tape, hg_var x);

/** Square root; NaN below 0.
 *
 *     Y = sqrt(X)
 *
 * Range     max|Y| <= sqrt(max|X|) where the tape knows X >= 0, else none.
 * Error     u32 Y, then narrowed.
 * Gradient  dX = dY / (2 Y), from the stored Y; infinite at 0.
 * Cost      2 n d elements, n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, d]. */
HG_API hg_var hg_sqrt(hg_tape *tape, hg_var x);

/** Dropout. The mask is a function of the seed, the op node, the training step and the element's
 * position, so it is the same on every device and the backward pass draws it once more.
 *
 *     Y = X mask / (1 - p),  mask = 1 with probability 1 - p, else 0;  Y = X on an EVAL tape
 *
 * Range     max|Y| <= max|X| / (1 - p).
 * Error     gamma_2(u32) |Y|, then narrowed.
 * Gradient  dX = dY mask / (1 - p).
 * Cost      2 n d elements, one product and a quarter of a Philox block per element.
 * Errors    HG_ERR_ARG (p outside [0, 1)) and those of every op.
 * Source    Srivastava et al. 2014; Salmon et al. 2011 (the random numbers).
 * @param tape  the tape.
 * @param x     X [n, d].
 * @param p     probability of dropping an element, in [0, 1).
 * @return Y [n, d]. */
HG_API hg_var hg_dropout(hg_tape *tape, hg_var x, float p);

/** Sum of two matrices.
 *
 *     Z = X + Y
 *
 * Range     max|Z| <= max|X| + max|Y|.
 * Error     One rounding.
 * Gradient  dX = dY = dZ.
 * Cost      3 n d elements, n d flops.
 * Errors    HG_ERR_SHAPE (the shapes differ) and those of every op.
 * @param tape  the tape.
 * @param x,y   X and Y [n, d].
 * @return Z [n, d]. */
HG_API hg_var hg_add(hg_tape *tape, hg_var x, hg_var y);

/** Difference of two matrices.
 *
 *     Z = X - Y
 *
 * Range     max|Z| <= max|X| + max|Y|; the larger of both where the tape knows that all
 *           numbers have one sign.
 * Error     One rounding.
 * Gradient  dX = dZ,  dY = -dZ.
 * Cost      3 n d elements, n d flops.
 * Errors    HG_ERR_SHAPE (the shapes differ) and those of every op.
 * @param tape  the tape.
 * @param x,y   X and Y [n, d].
 * @return Z [n, d]. */
HG_API hg_var hg_sub(hg_tape *tape, hg_var x, hg_var y);

/** Product of two matrices, element by element.
 *
 *     Z[i,c] = X[i,c] Y[i,c]
 *
 * Range     max|Z| <= max|X| max|Y|.
 * Error     u32 |Z|, then narrowed.
 * Gradient  dX = Y dZ,  dY = X dZ, element by element.
 * Cost      3 n d elements, n d flops.
 * Errors    HG_ERR_SHAPE (the shapes differ) and those of every op.
 * @param tape  the tape.
 * @param x,y   X and Y [n, d].
 * @return Z [n, d]. */
HG_API hg_var hg_mul(hg_tape *tape, hg_var x, hg_var y);

/** Multiplication by a constant.
 *
 *     Y = factor X
 *
 * Range     max|Y| <= |factor| max|X|.
 * Error     One rounding.
 * Gradient  dX = factor dY.
 * Cost      2 n d elements, n d flops.
 * Errors    HG_ERR_ARG (factor is not finite) and those of every op.
 * @param tape    the tape.
 * @param x       X [n, d].
 * @param factor  finite.
 * @return Y [n, d]. */
HG_API hg_var hg_scale(hg_tape *tape, hg_var x, float factor);

/** A node and its neighbourhood, as GIN combines them.
 *
 *     Y = (1 + eps) X + Z
 *
 * Shapes    X, Y, Z [n, d]; eps [1, 1].
 * Dtypes    eps: f32, a parameter added with HG_PARAM_F32.
 * Range     max|Y| <= (1 + |eps|) max|X| + max|Z|.
 * Error     gamma_3(u32) (|1 + eps| |X| + |Z|), then narrowed.
 * Gradient  dX = (1 + eps) dY,  dZ = dY,  deps = sum over all elements of dY X.
 * Cost      3 n d elements, 2 n d flops.
 * Errors    HG_ERR_SHAPE (X and Z differ, or eps is not [1, 1]) and those of every op.
 * Source    Xu, Hu, Leskovec, Jegelka 2019.
 * @param tape     the tape.
 * @param x,z,eps  X, Z and eps.
 * @return Y. */
HG_API hg_var hg_combine(hg_tape *tape, hg_var x, hg_var z, hg_var eps);

/** Division.
 *
 *     Y[i,c] = A[i,c] / B[i,c]
 *
 * Shapes    A, Y [n, d]; B [n, d], or [n, 1] (one divisor per row), or [1, 1] (one divisor).
 * Range     None from max|B| alone. max|A| / l where the tape knows |B| >= l > 0.
 * Error     u32 |Y|, then narrowed.
 * Gradient  dA = dY / B,  dB = -(sum of dY A / B) / B over the elements that share the divisor.
 * Cost      2 n d elements and those of B, n d flops.
 * Errors    HG_ERR_SHAPE (B has none of the three shapes) and those of every op.
 * @param tape  the tape.
 * @param a,b   A and B.
 * @return Y. */
HG_API hg_var hg_div(hg_tape *tape, hg_var a, hg_var b);

/** The same values in another float type. A narrowing has a verdict like any other.
 *
 *     Y = X
 *
 * Dtypes    X: f16 or f32. Y: dtype.
 * Range     max|Y| <= max|X|.
 * Error     One rounding from f32 to f16, else 0.
 * Gradient  dX = dY, in X's type.
 * Cost      2 n d elements.
 * Errors    HG_ERR_DTYPE (X or dtype is not f16 or f32) and those of every op.
 * @param tape   the tape.
 * @param x      X [n, d].
 * @param dtype  HG_F16 or HG_F32.
 * @return Y [n, d]. */
HG_API hg_var hg_cast(hg_tape *tape, hg_var x, hg_dtype dtype);

/** @}
 * @name Columns and heads
 * @{ */

/** Columns side by side.
 *
 *     Y = [A B]
 *
 * Shapes    A [n, p], B [n, q], Y [n, p + q].
 * Range     max|Y| <= max(max|A|, max|B|), so it is proved wherever A and B fit.
 * Error     0.
 * Gradient  dA and dB are their columns of dY.
 * Cost      2 n (p + q) elements.
 * Errors    HG_ERR_SHAPE (the numbers of rows differ) and those of every op.
 * @param tape  the tape.
 * @param a,b   A and B.
 * @return Y. */
HG_API hg_var hg_concat(hg_tape *tape, hg_var a, hg_var b);

/** Mean over heads.
 *
 *     Y[i,c] = 1/h * sum over k < h of X[i, k d + c]
 *
 * Shapes    X [n, h d], Y [n, d].
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     A sum of depth h + 1, then narrowed.
 * Gradient  dX[i, k d + c] = dY[i,c] / h.
 * Cost      n h d + n d elements, n h d flops.
 * Errors    HG_ERR_SHAPE (heads does not divide cols(X)), HG_ERR_ARG (heads < 1) and those of every
 *           op.
 * Source    Velickovic et al. 2018: the last layer of GAT.
 * @param tape   the tape.
 * @param x      X.
 * @param heads  h.
 * @return Y. */
HG_API hg_var hg_head_mean(hg_tape *tape, hg_var x, int heads);

/** One inner product per head.
 *
 *     S[i,k] = sum over c < d of X[i, k d + c] a[0, k d + c]
 *
 * Shapes    X [n, h d], a [1, h d], S [n, h].
 * Range     max|S| <= d max|X| max|a|.
 * Error     A sum of depth d, then narrowed.
 * Gradient  dX[i, k d + c] = dS[i,k] a[0, k d + c],
 *           da[0, k d + c] = sum over i of dS[i,k] X[i, k d + c].
 * Cost      n h d + n h + h d elements, 2 n h d flops.
 * Errors    HG_ERR_SHAPE (heads does not divide cols(X), or a is not [1, cols(X)]), HG_ERR_ARG
 *           (heads < 1) and those of every op.
 * Source    Velickovic et al. 2018: half of GAT's attention score.
 * @param tape   the tape.
 * @param x,a    X and a.
 * @param heads  h.
 * @return S. */
HG_API hg_var hg_head_dot(hg_tape *tape, hg_var x, hg_var a, int heads);

/** A pair of inner products per head, with a and with b, from one pass over X.
 *
 *     S[i,k] = sum over c < d of X[i, k d + c] a[0, k d + c],  S[i, h + k] = the sum with b
 *
 * Shapes    X [n, h d], a and b [1, h d], S [n, 2 h].
 * Range     max|S| <= d max|X| max(max|a|, max|b|).
 * Error     A sum of depth d, then narrowed.
 * Gradient  dX[i, k d + c] = dS[i,k] a[0, k d + c] + dS[i, h + k] b[0, k d + c],
 *           da[0, k d + c] = sum over i of dS[i,k] X[i, k d + c],  db the same with dS[i, h + k].
 * Cost      n h d + 2 n h + 2 h d elements, 4 n h d flops.
 * Errors    HG_ERR_SHAPE (heads does not divide cols(X), or a or b is not [1, cols(X)]), HG_ERR_ARG
 *           (heads < 1) and those of every op.
 * Source    Velickovic et al. 2018: both halves of GAT's attention score.
 * @param tape    the tape.
 * @param x,a,b   X, a and b.
 * @param heads   h.
 * @return S. */
HG_API hg_var hg_head_dot_pair(hg_tape *tape, hg_var x, hg_var a, hg_var b, int heads);

/** @}
 * @name Along rows
 * @{ */

/** Sum of each row; 0 if d = 0.
 *
 *     Y[i] = sum over c of X[i,c]
 *
 * Range     max|Y| <= d max|X|.
 * Error     A sum of depth d, then narrowed.
 * Gradient  dX[i,c] = dY[i].
 * Cost      n d + n elements, n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, 1]. */
HG_API hg_var hg_row_sum(hg_tape *tape, hg_var x);

/** Mean of each row; 0 if d = 0.
 *
 *     Y[i] = 1/d * sum over c of X[i,c]
 *
 * Range     max|Y| <= max|X|, so it is proved for every X that fits.
 * Error     A sum of depth d + 1, then narrowed.
 * Gradient  dX[i,c] = dY[i] / d.
 * Cost      n d + n elements, n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, 1]. */
HG_API hg_var hg_row_mean(hg_tape *tape, hg_var x);

/** Euclidean norm of each row; 0 if d = 0.
 *
 *     Y[i] = sqrt(sum over c of X[i,c]^2)
 *
 * Range     max|Y| <= sqrt(d) max|X|. The square of a half fits f32, so no square overflows.
 * Error     gamma_{d+1}(u32) / 2 of Y and the rounding of the root, then narrowed.
 * Gradient  dX[i,c] = X[i,c] / Y[i] dY[i], 0 where Y[i] = 0, with Y[i] recomputed in f32.
 * Cost      n d + n elements, 2 n d flops.
 * Errors    Those of every op.
 * @param tape  the tape.
 * @param x     X [n, d].
 * @return Y [n, 1]. */
HG_API hg_var hg_row_norm(hg_tape *tape, hg_var x);

/** @} */

HG_EXTERN_C_END
#endif
