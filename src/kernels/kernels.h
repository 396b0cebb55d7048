#ifndef HG_KERNELS_KERNELS_H
#define HG_KERNELS_KERNELS_H

#include "core/context.h"
#include "core/csr.h"
#include "core/mat.h"
#include "core/plan_tiles.h"
#include "halfgraph/graph.h"
#include "halfgraph/optim.h"
#include "halfgraph/policy.h"
#include "precision/hostdevice.h"

HG_EXTERN_C_BEGIN

/* The kernels: functions on raw views that know nothing of tapes or policies. One argument struct and one contract each; kernels.def lists them; the
 * twins are cpu/NAME.c and cuda/NAME.cu.
 *
 * Common to all: state operands are f16 or f32, all of one type unless said otherwise; sums and transcendental functions run in f32; a result is
 * narrowed once, at the store. Results do not depend on the number of threads or on timing: bitwise the same from run to run. rows or cols may be 0.
 * Calls are queued on the context's stream; scratch comes from hg__workspace. A shape or type that a kernel cannot take is HG_ERR_INTERNAL: ops have checked. */

/* Edges of one batch of the discretized reduction: after at most this many additions a partial sum is scaled and joins the total.
 * With batches of B a row of D edges has B + D / B roundings on its longest way, the fewest where B^2 = D: 64 suits hubs of 4096. And a batch of terms up to
 * 65520 / 64 = 1023 cannot overflow. */
#define HG_BATCH_EDGES 64

/* What kernels ask hg__workspace for, in bytes. Ops reserve with the same functions, so that a run allocates nothing. */

/* spmm_max and its gradient, outputs of `cols` columns: two f32 staging rows an item. */
static inline size_t hg__staging_bytes(const struct hg__csr *csr, int64_t cols)
{
	return csr->plan && csr->plan->splits ? (size_t)csr->plan->items * 2 * (size_t)hg__leading(cols) * sizeof(float) : 0;
}

/* spmm: X with scaled rows; one weight an edge in the order of the entries, where csr.edge says that it is another; staging rows; where there are tiles, a flag; and the
 * head of each column of whole vectors. scaled, weight: their types, HG_DTYPE_COUNT for what there is not. Scaled rows do not straddle lines of 128 bytes more often than they
 * must: they are padded to a power of two, or to whole lines. */
static inline int64_t hg__scaled_lead(int64_t cols, hg_dtype scaled)
{
	const int64_t lead = hg__leading(cols), line = scaled == HG_F16 ? 64 : 32;
	int64_t padded = 1;
	while (padded < lead && padded < line)
		padded *= 2;
	return lead <= line ? padded : (lead + line - 1) / line * line;
}
static inline size_t hg__spmm_scaled_bytes(const struct hg__csr *csr, int64_t cols, hg_dtype scaled)
{
	const size_t element = scaled == HG_F16 ? 2 : scaled == HG_F32 ? 4 : 0;
	return ((size_t)csr->cols * (size_t)hg__scaled_lead(cols, scaled) * element + 255) / 256 * 256;
}
static inline size_t hg__spmm_weight_bytes(const struct hg__csr *csr, hg_dtype weight)
{
	const size_t element = weight == HG_F16 ? 2 : weight == HG_F32 ? 4 : 0;
	return csr->edge ? ((size_t)csr->m * element + 255) / 256 * 256 : 0;
}
/* Staging rows of parts, or in their place those of tiles. */
static inline size_t hg__spmm_staging_bytes(const struct hg__csr *csr, int64_t cols)
{
	const size_t parts = hg__aligned(hg__staging_bytes(csr, cols)),
	             tiles = csr->plan && csr->plan->tiles ? hg__tiles_staging(csr->plan->tiles->slots, cols) : 0;
	return parts > tiles ? parts : hg__aligned(tiles);
}
static inline size_t hg__spmm_bytes(const struct hg__csr *csr, int64_t cols, hg_dtype scaled, hg_dtype weight)
{
	const size_t flag = csr->plan && csr->plan->tiles ? HG__ALIGN : 0;
	return hg__spmm_scaled_bytes(csr, cols, scaled) + hg__spmm_weight_bytes(csr, weight) + hg__spmm_staging_bytes(csr, cols) + flag +
	       (size_t)(cols + 16) * sizeof(int32_t);
}

/* edge_softmax and its gradient: a maximum and a sum for each head, heads in whole vectors. */
static inline size_t hg__softmax_bytes(const struct hg__csr *csr, int64_t heads)
{
	return hg__staging_bytes(csr, 2 * ((heads + 15) / 16 * 16));
}

/* Scratch that sums over rows or over everything may ask for (colsum, dot_all, head_dot_back, the norms, the losses, readout) of a [rows, cols] matrix, in
 * bytes. Columns: two f32 a column for each part of at least 32 rows; at most 1024 parts of 256 columns, or 128 parts where that is more. Totals: 32 bytes
 * for each of 1024 blocks, or for each 256 rows. */
static inline size_t hg__reduction_bytes(int64_t rows, int64_t cols)
{
	const int64_t lead = hg__leading(cols), parts = rows / 32 + 1 < 1024 ? rows / 32 + 1 : 1024;
	const int64_t most = 128 * lead > 1024 * 256 ? 128 * lead : 1024 * 256;
	return (size_t)(parts * lead < most ? parts * lead : most) * 2 * sizeof(float) + (size_t)(rows / 256 + 1024) * 32;
}

/* gemm on the CPU. A piece of C has at most TALL rows and WIDE columns and takes DEEP of k at a time: its panel of A has 256 kB, a strip of 64 columns of B
 * 64 kB; both stay in a second-level cache of 512 kB. (A strip has STRIP columns where a BLAS multiplies; it blocks for the caches itself.) Where k is long and C is
 * small (gradients of weights) k is cut as well, into runs of at least RUN, so that there are PIECES pieces to share; their sums are added in order. */
#define HG__GEMM_TALL 256
#define HG__GEMM_WIDE 512
#define HG__GEMM_DEEP 256
#define HG__GEMM_STRIP 512
#define HG__GEMM_PIECES 16
#define HG__GEMM_RUN 512

/* gemm of op(A) [m, k] and op(B) [k, n]: a panel, a strip and a piece for each thread (threads 0: a GPU, which needs none), and the partial sums of the runs: 16
 * runs of at most 256 rows each, since a C with more rows is cut into less of them. */
static inline size_t hg__gemm_bytes(int64_t m, int64_t n, int64_t k, int threads)
{
	const int64_t tall = m < HG__GEMM_TALL ? m : HG__GEMM_TALL, wide = n < HG__GEMM_WIDE ? n : HG__GEMM_WIDE, deep = k < HG__GEMM_DEEP ? k : HG__GEMM_DEEP;
	const int64_t strip = n < HG__GEMM_STRIP ? (n + 15) / 16 * 16 : HG__GEMM_STRIP;
	const int64_t scratch = (tall + 15) / 16 * 16 * ((deep + 15) / 16 * 16) + deep * strip + tall * wide;
	const int64_t most = (int64_t)HG__GEMM_PIECES * HG__GEMM_TALL, rows = k / HG__GEMM_RUN < HG__GEMM_PIECES ? k / HG__GEMM_RUN * m : HG__GEMM_PIECES * m;
	const int64_t partial = k < 2 * HG__GEMM_RUN ? 0 : (rows < most ? rows : most) * n;
	return threads ? (size_t)(threads * scratch + partial) * sizeof(float) : 0;
}

/* C = op(A) op(B) + bias, op transposes if asked. A, B state; C state or f32; bias [1, cols of C] of C's type or absent. f32 accumulation.
 * sums[0, c] = sum over k of B[k, c], f32 [1, cols of C], or absent; only where B is not transposed and there is no bias: the gradient of a bias beside that of
 * the weights. pick 0: the algorithm of the kernel's rule. pick > 0, for measurements: the pick-th that the library proposes, HG_ERR_UNSUPPORTED if it has less.
 * CUDA: the first product of each shape chooses an algorithm, and allocates for it: take one step before a step is captured. */
struct hg__gemm_args {
	struct hg__mat a, b, c, bias, sums;
	int trans_a, trans_b;
	int pick;
};

/* What rides on the store of a kernel: y = dropout(f(x)), f by number, dropout as above. All zero: y = x. */
struct hg__epilogue {
	int act; /* 0: f(x) = x, else 1 + hg__act */
	float act_p, p;
	uint64_t key;
	const int64_t *step;
};
/* What an aggregation becomes before its one narrowing: y = dropout(f((x + beta (1 + *beta_p) Z) + b)), every step f32. z: of Y's shape and type, or absent; it may
 * be X, or lie on Y. b: [1, cols of Y] of Y's type, or absent. beta_p: f32 in device memory, or NULL (0). All zero: y = x. */
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

/* Y[i, c] = alpha * r_i * sum over entries p of row i of f[p, head of c] * X[j, c],  f = w[edge p, head] * s_j,  j = col p.
 * x absent: X = 1, no s (then cols(Y) = heads: sums of edge values). w: [m, heads] state or f32, or absent (1); heads divides cols, head of c = c / (cols / heads).
 * row_scale r, col_scale s: f32 vectors or NULL. scale_first: X := narrow(s_j * X[j, c]) for all of X first, f = w: the edges then need not look s up, for one more
 * rounding of X (absolute, 2^-25, where s X is below f16's normal range). accumulate: hg_accumulate; F16_* only where X and Y are f16. Y is of X's type, or f32: then
 * the sum is not narrowed; an ending wants Y of X's type. Edge-parallel over csr.plan, staged, no atomics. A part is what one item of the plan has of a row; parts are
 * added in order.
 *   F32             acc = fma(f, x, acc) over a part, in f32; Y = narrow(alpha * r * sum of the parts), or of what the ending makes of that. Where the plan has tiles,
 *                   f = 1 and X, Y are f16, tensor cores may make the sums: products with exact counts of entries, 8 or 16 of a window's columns and the sum so
 *                   far aligned with the largest and cut off, parts of a window added in order (hg__depth_tiles). Then the bits are not those of a CPU, but still
 *                   the same in every run
 *   F16_DISCRETIZED acc += f * x over a batch, in f16 arithmetic (each product and each sum rounded to f16); a batch ends at every entry number divisible
 *                   by HG_BATCH_EDGES and at the end of a part; then narrow(alpha * r) * acc joins the total
 *   F16_NAIVE       one f16 accumulator for the whole row (hg__plan_by_row: the sum that sticks), scaled by narrow(alpha * r) in f16 after the sum
 * ending: only with F32 and an X. An empty row ends as any other, from a sum of 0. */
struct hg__spmm_args {
	struct hg__csr csr;
	struct hg__mat x, w, y;
	int heads;
	const float *row_scale, *col_scale;
	int scale_first;
	float alpha;
	hg_accumulate accumulate;
	struct hg__ending ending;
	int variant; /* 0: AUTO. Else a way of the GPU's by its number in spmm_variants.h, to be measured; what cannot take the call passes it on */
	const struct hg__plan *groups; /* for the variants that want one: hg__spmm_groups; NULL else */
};

/* Y[i, c] = max over entries of row i of X[col, c] (a NaN wins), 0 for an empty row; arg[i, c] = place in the row of the first that attains it, -1 if none. */
struct hg__spmm_max_args {
	struct hg__csr csr;
	struct hg__mat x, y, arg; /* arg i32 */
};
/* dX[j, c] = sum over entries (j, i) of the transpose with arg[i, c] == edge - rowptr[i] of dY[i, c]. csr_t has `edge`. */
struct hg__spmm_max_back_args {
	struct hg__csr csr, csr_t;
	struct hg__mat dy, arg, dx;
};

/* E[edge p, k] = scale * sum over c in head k of A[i, c] * B[j, c]; products and sums in f32, in any order. Halves may be summed by tensor cores: exact products, of which
 * 8 or 16 and the sum so far are added at once, aligned with the largest and cut off (hg__depth_dot). a [rows, d], b [cols, d], e [m, heads] state or f32. */
struct hg__sddmm_dot_args {
	struct hg__csr csr;
	struct hg__mat a, b, e;
	int heads;
	float scale;
	/* optional factors per row and column (the gradient of a normalised aggregation): E *= r_i * s_j */
	const float *row_scale, *col_scale;
};
/* E[edge p, k] = f(A[i, k] + B[j, k]), f32, narrowed once; f(x) = x > 0 ? x : slope x if leaky, else x. */
struct hg__sddmm_add_args {
	struct hg__csr csr;
	struct hg__mat a, b, e;
	int leaky;
	float slope;
};
/* dA[i, k] = sum over entries p of row i of f'(A[i, k] + B[j, k]) dE[edge p, k], dB[j, k] the same over column j (csr_t), f32, narrowed once; f'(0) = slope. dA or dB
 * may be absent, and with it its CSR. A and B [.., heads of dE], of its type. */
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

/* Y = f(X), from the table of activations. The first HG__ACT_RIDERS of them ride on the store of other kernels, too (struct hg__epilogue). */
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
/* dX = f'(X) * dY, f' expressed by Y: relu y > 0; leaky y > 0 ? 1 : p; elu y > 0 ? 1 : y + p; exp y; sqrt 1 / (2 y). f'(0) = 0 for relu, p for the next two.
 * log wants X in the place of Y: 1 / x. */
struct hg__act_back_args {
	hg__act act;
	float p;
	struct hg__mat y, dy, dx;
};

/* Y = X / (1 - p) where the element's random word >= threshold, else 0; word = column c of hg__rng_quad(key, row, c / 4, *step). threshold = p * 2^32
 * rounded. Its own gradient (X := dY). */
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
/* dX = f'(X + b) * dropout(dY);  db[0, c] = sum over rows of dX[r, c] before it is narrowed, f32 [1, cols], summed as in colsum. f' is expressed by Y: y > 0 exactly
 * where an element is positive and kept, so relu draws no words again; the others do, and find f = y (1 - p) where it was kept. Y, dY, dX of one type; Y absent
 * where there is no f; dX or db may be absent. dX must not lie on Y or dY. */
struct hg__epilogue_back_args {
	struct hg__mat y, dy, dx, db;
	struct hg__epilogue then;
};

/* Y = alpha * (1 + *alpha_p) * X + beta * Z. alpha_p: f32 in device memory, or NULL (0). z may be absent. y may be x or z. Types may differ (f16 / f32): it also casts. */
struct hg__axpby_args {
	struct hg__mat x, z, y;
	float alpha, beta;
	const float *alpha_p;
};
/* Y[i, c] = A[i, c] / B[i, c]; B is of A's shape, or [rows, 1]: one for a row, or [1, 1]: one for all. */
struct hg__div_args {
	struct hg__mat a, b, y;
};
/* dB = - (sum of dY * (A / B)) / B, over the elements that divide by that one of B. Sums in f32 along a row, in f64 over all rows. */
struct hg__div_back_args {
	struct hg__mat a, b, dy, db;
};
/* Y = X + b, b [1, cols] state or f32. */
struct hg__bias_add_args {
	struct hg__mat x, b, y;
};
/* Y[0, c] = sum over rows of X[r, c]; y f32 [1, cols]. Fixed blocks of rows, added up in order. copy = X on the way, of any float type, or absent. */
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

/* Y[i, c] = 1/h * sum over k of X[i, k*d + c];  back: dX[i, k*d + c] = dY[i, c] / h, where x is dX, the result, and y is dY. */
struct hg__head_mean_args {
	struct hg__mat x, y;
	int heads;
};
/* S[i, k] = sum over c of X[i, k*d + c] * A[0, k*d + c], and with a B S[i, heads + k] the same of B: X is read once. */
struct hg__head_dot_args {
	struct hg__mat x, a, b, s;
	int heads;
};
/* dX[i, k*d + c] = dS[i, k] * A[0, k*d + c] + dS[i, heads + k] * B[0, k*d + c], narrowed once, the second product where there is a B; add: + what dX holds.
 * dA[0, k*d + c] = sum over i of dS[i, k] * X[i, k*d + c], dB likewise (f32). dX, dA, dB may be absent. */
struct hg__head_dot_back_args {
	struct hg__mat x, a, b, ds, dx, da, db;
	int heads, add;
};

/* Training (train = 1): mean and biased variance of each column in f32 (two passes, or moments of pieces that are merged: both within gamma_n), mean and rstd =
 * 1/sqrt(var + eps) saved [1, cols] f32, running statistics <- (1 - momentum) * running + momentum * (mean, var * n / (n - 1)), only in columns where both are
 * finite: a step that is skipped for an overflow must not spoil them. Else: running statistics are used. Y = gamma * (X - mean) * rstd + beta, or max of that and 0 (relu).
 * gamma, beta, running f32 [1, cols]. */
struct hg__batch_norm_args {
	struct hg__mat x, gamma, beta, y, mean, rstd, running_mean, running_var;
	float momentum, eps;
	int train, relu;
};
/* xhat = (X - mean) * rstd; dgamma = sum dY * xhat, dbeta = sum dY (f32);
 * dX = gamma * rstd * (dY - dbeta / n - xhat * dgamma / n). With relu dY counts where gamma * xhat + beta > 0, which is computed again as it was: X is read anyway;
 * beta is asked for then only. */
struct hg__batch_norm_back_args {
	struct hg__mat x, gamma, mean, rstd, dy, dx, dgamma, dbeta, beta;
	int relu;
};
/* The same along each row; mean, rstd [rows, 1] f32. */
struct hg__layer_norm_args {
	struct hg__mat x, gamma, beta, y, mean, rstd;
	float eps;
};
struct hg__layer_norm_back_args {
	struct hg__mat x, gamma, mean, rstd, dy, dx, dgamma, dbeta;
};

/* Y[g, c] = reduction over rows ptr[g] .. ptr[g+1]-1 of X; arg [graphs, cols] i32 for MAX (row within the graph, -1 if empty). */
struct hg__readout_args {
	const int64_t *ptr;
	struct hg__mat x, y, arg;
	hg_reduce reduce;
};
/* dX[i, c] = dY[g, c] (SUM), / size (MEAN), where arg[g, c] == i - ptr[g] (MAX). id: graph of each row. */
struct hg__readout_back_args {
	const int64_t *ptr;
	const int32_t *id;
	struct hg__mat dy, arg, dx;
	hg_reduce reduce;
};

/* Along each row: the sum, the mean (0 of no columns), the Euclidean norm. Y [rows, 1]. */
typedef enum hg__row_reduce { HG__ROW_SUM = 0, HG__ROW_MEAN = 1, HG__ROW_NORM = 2, HG__ROW_COUNT = 3 } hg__row_reduce;
struct hg__row_reduce_args {
	hg__row_reduce reduce;
	struct hg__mat x, y;
};
/* dX[i, c] = dY[i]; dY[i] / cols; (X[i, c] / norm of row i) * dY[i], 0 where the norm is 0: it is computed again. X is read for the norm alone. */
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

/* Losses: loss f32 [1, 1] = mean of the rows that count (label >= 0, mask != 0); count f32 [1, 1] = their number. Sums in fixed order. 0 if none. */
struct hg__softmax_xent_args {
	struct hg__mat x, label, mask, loss, count; /* label i32 [n, 1]; mask u8 [n, 1] or absent. A label >= cols: the loss is +inf */
};
/* dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count for rows that count, else 0; a label >= cols is no c. dloss f32 [1, 1]. */
struct hg__softmax_xent_back_args {
	struct hg__mat x, label, mask, count, dloss, dx;
};
/* kind 0: BCE with logits, max(x,0) - x*t + log(1 + exp(-|x|)); kind 1: (x - t)^2. Mean over rows that count and columns. t state or f32. */
typedef enum hg__pointwise { HG__BCE_LOGITS = 0, HG__MSE = 1, HG__POINTWISE_COUNT = 2 } hg__pointwise;
struct hg__pointwise_loss_args {
	hg__pointwise kind;
	struct hg__mat x, target, mask, loss, count; /* count = rows that count * cols */
};
struct hg__pointwise_loss_back_args {
	hg__pointwise kind;
	struct hg__mat x, target, mask, count, dloss, dx;
};
/* out f32 [1, 2] = {rows whose first largest logit is at the label, rows that count}; a row with a NaN logit is wrong. */
struct hg__accuracy_args {
	struct hg__mat x, label, mask, out;
};

/* out f32 [1, 2] = {max |x| over the finite elements, number of non-finite ones}. */
struct hg__amax_args {
	struct hg__mat x, out;
};

/* What one training run keeps on the device between steps. */
struct hg__step {
	hg_loss_scale scale;
	hg_loss_scale_config config;
	int64_t step;            /* steps begun, skipped ones included: dropout's counter */
	int64_t nonfinite;       /* of the current step's gradients */
	int64_t first_nonfinite; /* index of the first tensor with one; -1 if none */
	double grad_sq;          /* sum of squares of the unscaled gradients */
	double bias1;            /* what the check decides for the update: kernels/optim.h */
	float root2, clip;
	int32_t outgrown,
	    outgrown_before; /* first tensor, as far as is known, with an element beyond its reach: after this step's update, and before it; HG__NONE_OUTGROWN: none */
	float in_force;      /* the step's loss scale: the update reads this one, so the transition need not wait for it */
	int32_t reason;
};

#define HG__NONE_OUTGROWN INT32_MAX

/* What each step leaves for a host that reads later: the last HG__NOTES of them, step number `taken` in note[taken % HG__NOTES]. */
#define HG__NOTES 64
struct hg__step_note {
	double grad_sq;
	int64_t nonfinite, first_nonfinite, steps, skipped;
	float loss, scale;
	int32_t reason, outgrown; /* outgrown: of the weights that the step ran with */
};
struct hg__step_notes {
	int64_t taken;
	struct hg__step_note note[HG__NOTES];
};

HG_HD static inline struct hg__step_note hg__step_note_of(const struct hg__step *step, float loss)
{
	struct hg__step_note note;
	note.grad_sq = step->grad_sq;
	note.nonfinite = step->nonfinite;
	note.first_nonfinite = step->first_nonfinite;
	note.steps = step->scale.steps;
	note.skipped = step->scale.skipped;
	note.loss = loss;
	note.scale = step->scale.scale;
	note.reason = step->reason;
	note.outgrown = step->outgrown_before;
	return note;
}

/* The observer's kernels, and the arithmetic that both backends share: kernels/observe.h. They run in a step that is due, and else do nothing: one whose number is a
 * multiple of `every`; with `bad` also one whose gradients are not finite, once grad_check has looked. */
struct hg__due {
	const struct hg__step *step; /* device memory */
	int64_t every;               /* > 0 */
	int bad;
};

/* What is counted of the elements of one tensor, padding not among them. Integers alone, sums and maxima: the order does not matter. All zero: nothing seen. */
#define HG__BINS 32
struct hg__observed {
	uint64_t bin[HG__BINS]; /* 0: 0 < |x| < 2^-14.  e = 1 .. 30: 2^(e - 15) <= |x| < 2^(e - 14), and |x| <= 65504.  31: |x| > 65504, or not a finite number */
	uint64_t zeros, nonfinite;
	uint64_t rank; /* elements from the first that is not finite to the last, row by row; 0: all are finite */
	uint64_t
	    swamped; /* spmm_probe: the bits of the largest deviation, f32, and below them 2^32 - 1 - its row, so that the first of equals is the larger; 0: none */
	uint32_t amax; /* bits of the largest |x| among the finite ones, as f32 */
	uint32_t unused;
};

/* The last steps that were looked at, number `taken` in place taken % HG__OBSERVED_STEPS. */
#define HG__OBSERVED_STEPS 8
struct hg__observed_head {
	int64_t step;
	float scale; /* the loss scale in force */
	int32_t unused;
};
struct hg__observed_ring {
	int64_t taken;
	struct hg__observed_head head[HG__OBSERVED_STEPS];
};

/* A tensor, f16 or f32, its memory aligned as an allocation's; and the chunks of HG__OBSERVE_CHUNK elements of storage that those before it have. */
struct hg__watched {
	struct hg__mat mat;
	int64_t first;
};
#define HG__OBSERVE_CHUNK 4096
static inline int64_t hg__observe_chunks(const struct hg__mat *mat)
{
	return (mat->rows * mat->ld + HG__OBSERVE_CHUNK - 1) / HG__OBSERVE_CHUNK;
}

/* kept[place * stride + i] = what is counted of tensor i, and what spmm_probe has left in counts[i];  most[i] = max(most[i], amax).  closes: the place gets its head and is
 * taken. table [count + 1] device, its last row without a tensor; chunks: `first` there. counts [count]: all zero before and after. */
struct hg__observe_args {
	struct hg__due due;
	const struct hg__watched *table;
	int64_t count, chunks;
	struct hg__observed *counts, *kept;
	uint32_t *most;
	int64_t stride;
	struct hg__observed_ring *ring;
	int closes;
};

/* A call of spmm whose sums ran in f16, X, w and Y still as they were, and rows to do again. sample [samples] device; record: of the counts. */
struct hg__probe {
	const int64_t *rowptr;
	const int32_t *col;
	const uint32_t *edge;
	struct hg__mat x, w, y;
	const float *row_scale, *col_scale;
	const int32_t *sample;
	int64_t samples;
	float alpha;
	int32_t heads, record;
};
/* For the rows i of the sample and all columns c, with t = alpha r_i f[p, head of c] X[j, c] as in spmm, in f64, added in any order:
 *
 *     swamped of the record = max |Y[i, c] - sum of t| / sum of |t|,  where Y[i, c] and the sums are finite and sum of |t| > 0
 *
 * probes [count] device; samples: the most of any. */
struct hg__spmm_probe_args {
	struct hg__due due;
	const struct hg__probe *probes;
	int64_t count, samples;
	struct hg__observed *counts;
};

/* One parameter as the optimiser kernels see it; all storage has the master's ld. */
struct hg__optim_tensor {
	float *master, *grad, *m, *v; /* m: momentum or first moment; v: second moment; NULL where the method has none */
	void *working;                /* NULL: the master is used itself */
	int64_t rows, cols, ld;
	hg_dtype working_dtype;
	int32_t group;
	float reach; /* tapes rest on |master| <= reach */
};
struct hg__optim_group {
	float lr, weight_decay;
};
/* tensors, groups: device arrays; host: the same tensors on the host, for sizing. */
struct hg__optim_args {
	hg_optim_config config;
	const struct hg__optim_tensor *tensors, *host;
	int64_t count;
	const struct hg__optim_group *groups;
	struct hg__step *step;
	const float *loss;            /* device memory; NULL: nobody knows it, and no step is blamed on the forward pass */
	struct hg__step_notes *notes; /* device memory; NULL: none are taken. Else there is a loss */
};

/* Elements of storage that one block of the CUDA kernels takes: a chunk belongs to one tensor. */
#define HG__OPTIM_CHUNK 1024

HG_HD static inline int64_t hg__optim_chunks(const struct hg__optim_tensor *t)
{
	return (t->rows * t->ld + HG__OPTIM_CHUNK - 1) / HG__OPTIM_CHUNK;
}

/* grad_check: a sum of squares, a count and a place for each chunk, and one more. */
static inline size_t hg__optim_bytes(const struct hg__optim_tensor *host, int64_t count)
{
	int64_t chunks = 1;
	for (int64_t i = 0; i < count; i++)
		chunks += hg__optim_chunks(&host[i]);
	return (size_t)chunks * (sizeof(double) + 2 * sizeof(int64_t));
}

/* The two kernels of a step, in this order; the decisions between them are in kernels/optim.h:
 *   grad_check    nonfinite, first_nonfinite, grad_sq of grad / scale (fixed order, f64); bias corrections and clip
 *   optim_update  if nonfinite == 0: g = grad / scale * clip, update master, m, v; working = narrow(master); outgrown. Then, in any case, the loss scale's transition;
 *                 step += 1; a note of it all */

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
