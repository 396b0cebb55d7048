#ifndef HG_KERNELS_KERNELS_H
#define HG_KERNELS_KERNELS_H

#include "core/context.h"
#include "core/csr.h"
#include "core/mat.h"
#include "halfgraph/graph.h"
#include "halfgraph/policy.h"
#include "kernels/observe.h"
#include "kernels/optim.h"
#include "kernels/scores.h"
#include "kernels/scratch.h"
#include "kernels/trip.h"

HG_EXTERN_C_BEGIN

/* The kernels: functions on raw views that know nothing of tapes or policies. One argument struct
 * and one contract each; kernels.def lists them; the twins are cpu/NAME.c and cuda/NAME.cu.
 *
 * Common to all: state operands are f16 or f32, all of one type unless said otherwise; sums and
 * transcendental functions run in f32; a result is narrowed once, at the store. Results do not
 * depend on the number of threads or on timing: bitwise the same from run to run. rows or cols may
 * be 0. Calls are queued on the context's stream; scratch comes from hg__workspace. A shape or type
 * that a kernel cannot take is HG_ERR_INTERNAL: ops have checked. */

/* Edges of one batch of the discretized reduction: after at most this many additions a partial sum
 * is scaled and joins the total.
 * With batches of B a row of D edges has B + D / B roundings on its longest way, the fewest where
 * B^2 = D: 64 suits hubs of 4096. And a batch of terms up to 65520 / 64 = 1023 cannot overflow. */
#define HG_BATCH_EDGES 64

/* C = 2^shift op(A) op(B) + bias, op transposes if asked. A, B state; C state or f32; bias
 * [1, cols of C] of C's type or absent. f32 accumulation. sums[0, c] = sum over k of B[k, c], f32
 * [1, cols of C], or absent; only where B is not transposed and there is no bias: the gradient of a
 * bias beside that of the weights. pick 0: the algorithm of the kernel's rule. pick > 0, for
 * measurements: the pick-th that the library proposes, HG_ERR_UNSUPPORTED if it has less. CUDA: the
 * first product of each shape chooses an algorithm, and allocates for it: take one step before a
 * step is captured. */
struct hg__gemm_args {
	struct hg__mat a, b, c, bias, sums;
	int trans_a, trans_b, shift;
	int pick;
};

/* What rides on the store of a kernel: y = dropout(f(x)), f by number, dropout as above. All zero:
 * y = x. */
struct hg__epilogue {
	int act; /* 0: f(x) = x, else 1 + hg__act */
	float act_p, p;
	uint64_t key;
	const int64_t *step;
};
/* What an aggregation becomes before its one narrowing: y = dropout(f((x + beta (1 + *beta_p) Z) +
 * b)), every step f32. z: of Y's shape and type, or absent; it may be X, or lie on Y. b:
 * [1, cols of Y] of Y's type, or absent. beta_p: f32 in device memory, or NULL (0). All zero: y =
 * x. */
struct hg__ending {
	struct hg__mat z, b;
	float beta;
	const float *beta_p;
	struct hg__epilogue then;
};
static inline int hg__has_ending(const struct hg__ending *e)
{
	return e->z.data || e->b.data || e->then.act || e->then.p > 0.0f;
}

/* Y[i, c] = alpha * r_i * sum over entries p of row i of f[p, head of c] * X[j, c],  f =
 * w[edge p, head] * s_j,  j = col p.
 * x absent: X = 1, no s (then cols(Y) = heads: sums of edge values). w: [m, heads] state or f32, or
 * absent (1); heads divides cols, head of c = c / (cols / heads). row_scale r, col_scale s: f32
 * vectors or NULL. scale_first: X := narrow(s_j * X[j, c]) for all of X first, f = w: the edges
 * then need not look s up, for one more rounding of X (absolute, 2^-25, where s X is below f16's
 * normal range). accumulate: hg_accumulate; F16_* only where X and Y are f16. Y is of X's type, or
 * f32: then the sum is not narrowed; an ending wants Y of X's type. Edge-parallel over csr.plan,
 * staged, no atomics. A part is what one item of the plan has of a row; parts are added in order.
 *   F32             acc = fma(f, x, acc) over a part, in f32; Y = narrow(alpha * r * sum of the
 *                   parts), or of what the ending makes of that. Where the plan has tiles, f = 1
 *                   and X, Y are f16, tensor cores may make the sums: products with exact counts of
 *                   entries, 8 or 16 of a window's columns and the sum so far aligned with the
 *                   largest and cut off, parts of a window added in order (hg__depth_tiles). Then
 *                   the bits are not those of a CPU, but still the same in every run
 *   F16_DISCRETIZED acc += f * x over a batch, in f16 arithmetic (each product and each sum rounded
 *   to f16); a batch ends at every entry number divisible
 *                   by HG_BATCH_EDGES and at the end of a part; then narrow(alpha * r) * acc joins
 *                   the total
 *   F16_NAIVE       one f16 accumulator for the whole row (hg__plan_by_row: the sum that sticks),
 *                   scaled by narrow(alpha * r) in f16 after the sum
 * ending: only with F32 and an X. An empty row ends as any other, from a sum of 0. trip: looks at
 * every element of an f16 Y, as it is before its last rounding. */
struct hg__spmm_args {
	struct hg__csr csr;
	struct hg__mat x, w, y;
	int heads;
	const float *row_scale, *col_scale;
	int scale_first;
	float alpha;
	hg_accumulate accumulate;
	struct hg__ending ending;
	struct hg__trip trip;
	/* 0: AUTO. Else a way of the GPU's by its number in spmm_variants.h, to be measured; what
	 * cannot take the call passes it on */
	int variant;
	const struct hg__plan *groups; /* for the variants that want one: hg__spmm_groups; NULL else */
};

/* Y[i, c] = max over entries of row i of X[col, c] (a NaN wins), 0 for an empty row; arg[i, c] =
 * place in the row of the first that attains it, -1 if none. */
struct hg__spmm_max_args {
	struct hg__csr csr;
	struct hg__mat x, y, arg; /* arg i32 */
};
/* dX[j, c] = sum over entries (j, i) of the transpose with arg[i, c] == edge - rowptr[i] of
 * dY[i, c]. csr_t has `edge`. */
struct hg__spmm_max_back_args {
	struct hg__csr csr, csr_t;
	struct hg__mat dy, arg, dx;
};

/* E[edge p, k] = scale * sum over c in head k of A[i, c] * B[j, c]; products and sums in f32, in
 * any order. Halves may be summed by tensor cores: exact products, of which 8 or 16 and the sum so
 * far are added at once, aligned with the largest and cut off (hg__depth_dot). a [rows, d], b
 * [cols, d], e [m, heads] state or f32. */
struct hg__sddmm_dot_args {
	struct hg__csr csr;
	struct hg__mat a, b, e;
	int heads;
	float scale;
	/* optional factors per row and column (the gradient of a normalised aggregation): E *= r_i *
	 * s_j */
	const float *row_scale, *col_scale;
};
/* E[edge p, k] = f(A[i, k] + B[j, k]), f32, narrowed once; f(x) = x > 0 ? x : slope x if leaky,
 * else x. */
struct hg__sddmm_add_args {
	struct hg__csr csr;
	struct hg__mat a, b, e;
	int leaky;
	float slope;
};
/* dA[i, k] = sum over entries p of row i of f'(A[i, k] + B[j, k]) dE[edge p, k], dB[j, k] the same
 * over column j (csr_t), f32, narrowed once; f'(0) = slope. dA or dB may be absent, and with it its
 * CSR. A and B [.., heads of dE], of its type. */
struct hg__sddmm_add_back_args {
	struct hg__csr csr, csr_t;
	struct hg__mat a, b, de, da, db;
	int leaky;
	float slope;
};

/* P[e, k] = exp(E[e, k] - max over the row) / sum over the row. One pass per statistic, f32. */
struct hg__edge_softmax_args {
	struct hg__csr csr;
	struct hg__mat e, p;
};
/* dE = P * (dP - sum over the row of P * dP). */
struct hg__edge_softmax_back_args {
	struct hg__csr csr;
	struct hg__mat p, dp, de;
};

/* Y = f(X), from the table of activations. The first HG__ACT_RIDERS of them ride on the store of
 * other kernels, too (struct hg__epilogue). */
typedef enum hg__act {
	HG__ACT_RELU = 0,
	HG__ACT_LEAKY_RELU = 1,
	HG__ACT_ELU = 2,
	HG__ACT_RIDERS = 3,
	HG__ACT_EXP = 3,
	HG__ACT_LOG = 4,
	HG__ACT_SQRT = 5,
	HG__ACT_COUNT = 6
} hg__act;
struct hg__act_args {
	hg__act act;
	float p; /* slope, alpha */
	struct hg__mat x, y;
};
/* dX = f'(X) * dY, f' expressed by Y: relu y > 0; leaky y > 0 ? 1 : p; elu y > 0 ? 1 : y + p; exp
 * y; sqrt 1 / (2 y). f'(0) = 0 for relu, p for the next two. log wants X in the place of Y: 1 /
 * x. */
struct hg__act_back_args {
	hg__act act;
	float p;
	struct hg__mat y, dy, dx;
};

/* Y = X / (1 - p) where the element's random word >= threshold, else 0; word = column c of
 * hg__rng_quad(key, row, c / 4, *step). threshold = p * 2^32 rounded. Its own gradient
 * (X := dY). */
struct hg__dropout_args {
	struct hg__mat x, y;
	float p;
	uint64_t key;
	const int64_t *step; /* device memory */
};

/* Y = dropout(f(X + b)), b [1, cols] of X's type or absent; one rounding, at the store. */
struct hg__epilogue_args {
	struct hg__mat x, b, y;
	struct hg__epilogue then;
};
/* dX = f'(X + b) * dropout(dY);  db[0, c] = sum over rows of dX[r, c] before it is narrowed, f32
 * [1, cols], summed as in colsum. f' is expressed by Y: y > 0 exactly where an element is positive
 * and kept, so relu draws no words again; the others do, and find f = y (1 - p) where it was kept.
 * Y, dY, dX of one type; Y absent where there is no f; dX or db may be absent. dX must not lie on Y
 * or dY. */
struct hg__epilogue_back_args {
	struct hg__mat y, dy, dx, db;
	struct hg__epilogue then;
};

/* Y = alpha * (1 + *alpha_p) * X + beta * Z. alpha_p: f32 in device memory, or NULL (0). z may be
 * absent. y may be x or z. Types may differ (f16 / f32): it also casts. */
struct hg__axpby_args {
	struct hg__mat x, z, y;
	float alpha, beta;
	const float *alpha_p;
};
/* Y[i, c] = A[i, c] / B[i, c]; B is of A's shape, or [rows, 1]: one for a row, or [1, 1]: one for
 * all. */
struct hg__div_args {
	struct hg__mat a, b, y;
};
/* dB = - (sum of dY * (A / B)) / B, over the elements that divide by that one of B. Sums in f32
 * along a row, in f64 over all rows. */
struct hg__div_back_args {
	struct hg__mat a, b, dy, db;
};
/* Y = X + b, b [1, cols] state or f32. */
struct hg__bias_add_args {
	struct hg__mat x, b, y;
};
/* Y[0, c] = sum over rows of X[r, c]; y f32 [1, cols]. Fixed blocks of rows, added up in order.
 * copy = X on the way, of any float type, or absent. */
struct hg__colsum_args {
	struct hg__mat x, y, copy;
};
/* y[0, 0] = sum over all r, c of A * B; y f32 [1, 1]. */
struct hg__dot_all_args {
	struct hg__mat a, b, y;
};
/* dst[:, dst_col + c] = src[:, src_col + c], c < cols. */
struct hg__copy_cols_args {
	struct hg__mat src, dst;
	int64_t src_col, dst_col, cols;
};

/* Y[i, c] = 1/h * sum over k of X[i, k*d + c];  back: dX[i, k*d + c] = dY[i, c] / h, where x is dX,
 * the result, and y is dY. */
struct hg__head_mean_args {
	struct hg__mat x, y;
	int heads;
};
/* S[i, k] = sum over c of X[i, k*d + c] * A[0, k*d + c], and with a B S[i, heads + k] the same of
 * B: X is read once. */
struct hg__head_dot_args {
	struct hg__mat x, a, b, s;
	int heads;
};
/* dX[i, k*d + c] = dS[i, k] * A[0, k*d + c] + dS[i, heads + k] * B[0, k*d + c], narrowed once, the
 * second product where there is a B; add: + what dX holds.
 * dA[0, k*d + c] = sum over i of dS[i, k] * X[i, k*d + c], dB likewise (f32). dX, dA, dB may be
 * absent. */
struct hg__head_dot_back_args {
	struct hg__mat x, a, b, ds, dx, da, db;
	int heads, add;
};

/* Training (train = 1): mean and biased variance of each column in f32 (two passes, or moments of
 * pieces that are merged: both within gamma_n), mean and rstd = 1/sqrt(var + eps) saved [1, cols]
 * f32, running statistics <- (1 - momentum) * running + momentum * (mean, var * n / (n - 1)), only
 * in columns where both are finite: a step that is skipped for an overflow must not spoil them.
 * Else: running statistics are used. Y = gamma * (X - mean) * rstd + beta, or max of that and 0
 * (relu). gamma, beta, running f32 [1, cols].
 * shift: X is 2^shift times what is stored. mean and rstd are then those of what is stored (with
 * eps 4^-shift), running statistics those of X: the bits are those of shift 0, but for what
 * underflows. */
struct hg__batch_norm_args {
	struct hg__mat x, gamma, beta, y, mean, rstd, running_mean, running_var;
	float momentum, eps;
	int train, relu, shift;
	/* device memory: not 0: running statistics stay (kernels/step.h). NULL: 0 */
	const int32_t *stop;
};
/* xhat = (X - mean) * rstd; dgamma = sum dY * xhat, dbeta = sum dY (f32);
 * dX = gamma * rstd * (dY - dbeta / n - xhat * dgamma / n). With relu dY counts where gamma *
 * xhat + beta > 0, which is computed again as it was: X is read anyway; beta is asked for then
 * only. shift, mean, rstd as above; dX is the gradient of X, not of what is stored. */
struct hg__batch_norm_back_args {
	struct hg__mat x, gamma, mean, rstd, dy, dx, dgamma, dbeta, beta;
	int relu, shift;
};
/* The same along each row; mean, rstd [rows, 1] f32. */
struct hg__layer_norm_args {
	struct hg__mat x, gamma, beta, y, mean, rstd;
	float eps;
};
struct hg__layer_norm_back_args {
	struct hg__mat x, gamma, mean, rstd, dy, dx, dgamma, dbeta;
};

/* Y[g, c] = reduction over rows ptr[g] .. ptr[g+1]-1 of X; arg [graphs, cols] i32 for MAX (row
 * within the graph, -1 if empty). */
struct hg__readout_args {
	const int64_t *ptr;
	struct hg__mat x, y, arg;
	hg_reduce reduce;
};
/* dX[i, c] = dY[g, c] (SUM), / size (MEAN), where arg[g, c] == i - ptr[g] (MAX). id: graph of each
 * row. */
struct hg__readout_back_args {
	const int64_t *ptr;
	const int32_t *id;
	struct hg__mat dy, arg, dx;
	hg_reduce reduce;
};

/* Along each row: the sum, the mean (0 of no columns), the Euclidean norm. Y [rows, 1]. */
typedef enum hg__row_reduce {
	HG__ROW_SUM = 0,
	HG__ROW_MEAN = 1,
	HG__ROW_NORM = 2,
	HG__ROW_COUNT = 3
} hg__row_reduce;
struct hg__row_reduce_args {
	hg__row_reduce reduce;
	struct hg__mat x, y;
};
/* dX[i, c] = dY[i]; dY[i] / cols; (X[i, c] / norm of row i) * dY[i], 0 where the norm is 0: it is
 * computed again. X is read for the norm alone. */
struct hg__row_reduce_back_args {
	hg__row_reduce reduce;
	struct hg__mat x, dy, dx;
};

/* Y = exp(X - max) / sum exp(X - max) per row. */
struct hg__softmax_args {
	struct hg__mat x, y;
};
/* dX = Y * (dY - sum over the row of Y * dY). */
struct hg__softmax_back_args {
	struct hg__mat y, dy, dx;
};

/* Y = X - max - log(sum exp(X - max)) per row. */
struct hg__log_softmax_args {
	struct hg__mat x, y;
};
/* dX = dY - exp(Y) * sum over the row of dY. */
struct hg__log_softmax_back_args {
	struct hg__mat y, dy, dx;
};

/* Losses: loss f32 [1, 1] = mean of the rows that count (label >= 0, mask != 0); count f32 [1, 1] =
 * their number. Sums in fixed order. 0 if none. */
struct hg__softmax_xent_args {
	/* label i32 [n, 1]; mask u8 [n, 1] or absent. A label >= cols: the loss is +inf */
	struct hg__mat x, label, mask, loss, count;
};
/* dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count for rows that count, else 0; a
 * label >= cols is no c. dloss f32 [1, 1]. */
struct hg__softmax_xent_back_args {
	struct hg__mat x, label, mask, count, dloss, dx;
};
/* kind 0: BCE with logits, max(x,0) - x*t + log(1 + exp(-|x|)); kind 1: (x - t)^2. Mean over rows
 * that count and columns. t state or f32. */
typedef enum hg__pointwise {
	HG__BCE_LOGITS = 0,
	HG__MSE = 1,
	HG__POINTWISE_COUNT = 2
} hg__pointwise;
struct hg__pointwise_loss_args {
	hg__pointwise kind;
	struct hg__mat x, target, mask, loss, count; /* count = rows that count * cols */
};
struct hg__pointwise_loss_back_args {
	hg__pointwise kind;
	struct hg__mat x, target, mask, count, dloss, dx;
};
/* One evaluation (kernels/scores.h): what is counted of the logits X, and their cross-entropy over
 * the
 * rows of loss_split (as softmax_xent), go to the board, if the step just taken is to be evaluated;
 * else
 * nothing changes. In either case no guard that has seen these logits made is remembered (trip).
 * mask
 * absent: of the training split, all labelled rows count; of another one, none. board, step: device
 * memory. */
struct hg__scores_args {
	struct hg__mat x, label, mask[HG__SPLITS];
	enum hg__split loss_split;
	struct hg__board *board;
	struct hg__step *step;
};

/* Piece by piece to[i] = from[i], if *flag != 0. pieces: in device memory; host: the same ones. */
struct hg__piece {
	float *to;
	const float *from;
	int64_t count;
};
struct hg__copy_if_args {
	const int32_t *flag; /* device memory */
	const struct hg__piece *pieces, *host;
	int64_t count;
};

/* out f32 [1, 2] = {max |x| over the finite elements, number of non-finite ones}. */
struct hg__amax_args {
	struct hg__mat x, out;
};

/* trip.word = max(trip.word, what trips among the elements of X): for kernels that do not look
 * themselves at what they store. */
struct hg__guard_args {
	struct hg__mat x;
	struct hg__trip trip;
};

/* The table, one function per line of kernels.def. */
struct hg__kernels {
#define HG_KERNEL(name, args) hg_status (*name)(hg_context * ctx, const struct hg__##args *a);
#include "kernels/kernels.def"
#undef HG_KERNEL
};

/* By name, for tests and tools: name, and offset of its pointer in the table. */
struct hg__kernel_entry {
	const char *name;
	size_t offset;
};
const struct hg__kernel_entry *hg__kernel_list(size_t *count);

HG_EXTERN_C_END
#endif
