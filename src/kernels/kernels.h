/* The contracts of all kernels: one argument struct and one comment each. Kernels are functions on
 * raw views that know nothing of tapes or policies. kernels.def lists them; cpu/NAME.c and
 * cuda/NAME.cu implement each with the same contract. */
#ifndef HG_KERNELS_KERNELS_H
#define HG_KERNELS_KERNELS_H

#include "core/context.h"
#include "core/csr.h"
#include "core/mat.h"
#include "halfgraph/graph.h"
#include "halfgraph/policy.h"
#include "kernels/attention.h"
#include "kernels/batch_norm.h"
#include "kernels/epilogue.h"
#include "kernels/functions.h"
#include "kernels/observe.h"
#include "kernels/optim.h"
#include "kernels/overflow.h"
#include "kernels/scatter.h"
#include "kernels/scores.h"
#include "kernels/small_layers.h"
#include "kernels/support.h"
#include "kernels/workspace.h"
#include "precision/bound.h"

HG_EXTERN_C_BEGIN

/* Common to all kernels:
 *
 * - State operands are f16 or f32, all of one type unless stated otherwise. Sums and
 * transcendental functions are computed in f32, and a result is narrowed once, at the store.
 * - Results do not depend on the number of threads or on timing: bitwise the same in every run.
 * - rows or cols may be 0.
 * - Calls are queued on the context's stream. Scratch memory comes from hg__workspace, at most as
 * much as the kernel's row says.
 * - A combination of types, accumulation, function and layout that a backend has no kernel for is
 * HG_ERR_UNSUPPORTED, with a message (support.h). Shapes that contradict each other are
 * HG_ERR_INTERNAL, because ops have checked them. */

/* Matrix product:
 *
 *     C = 2^shift op(A) op(B) + bias
 *
 * op transposes if trans_a or trans_b is set. A and B state; C state or f32. Accumulation in f32.
 *
 * - bias: [1, cols of C] of C's type, or absent.
 * - sums: f32 [1, cols of C], or absent. It receives the column sums of B, sum over k of B[k, c],
 * which are the gradient of a bias, computed beside that of the weights. It is allowed only where B
 * is not transposed and there is no bias.
 * - normalise: op applies to the matrix that A stands for (batch_norm.h).
 * - statistics: if statistics.x is there, it is C, and the kernel computes the statistics that
 * batch_norm would with these arguments (train; y absent). B is not transposed, nor is A.
 * These two only where the backend's takes_norms says that it can.
 * - pick: 0 uses the algorithm that the kernel's own rule selects. pick > 0, for measurements, uses
 * the pick-th algorithm that the library proposes; HG_ERR_UNSUPPORTED if there are fewer.
 *
 * CUDA: the first product of each shape chooses an algorithm and allocates memory for it, so one
 * step must run before a step is captured. */
struct hg__gemm_args {
	struct hg__mat a, b, c, bias, sums;
	int trans_a, trans_b, shift;
	int pick;
	struct hg__normalise normalise;
	struct hg__batch_norm_args statistics;
};

/* Aggregation:
 *
 *     Y[i, c] = alpha * r_i * sum over entries p of row i of f[p, head of c] * X[j, c]
 *     f = w[edge p, head] * s_j,    j = col p
 *
 * - x: absent means X = 1 and no s; cols(Y) = heads then gives sums of edge values.
 * - w: [m, heads] state or f32, or absent (1). heads divides cols; the head of c is
 * c / (cols / heads).
 * - row_scale r, col_scale s: f32 vectors, or NULL.
 * - scale_first: X is replaced by narrow(s_j * X[j, c]) before the sum, and f = w. Edges then need
 * not read s, but X is rounded once more (with an absolute error of 2^-25 where s X is below the
 * normal range of f16).
 * - accumulate: F16_* only where X and Y are f16.
 * - y: of X's type, or f32: then the sum is not narrowed. An epilogue needs Y of X's type.
 * - epilogue: only with F32 and an X. It is applied to empty rows, too, whose sum is 0.
 * - overflow: checks every element of an f16 Y for overflow, before its last rounding.
 *
 * The kernel is edge-parallel over csr.plan, with staging and without atomics. A part is the
 * entries of one row in one item of the plan; parts are added in order.
 *
 *     F32              acc = fma(f, x, acc) over a part, in f32;
 *                      Y = narrow(alpha * r * sum of the parts), after the epilogue if any.
 *
 *     F16_DISCRETIZED  acc += f * x over a batch, in f16: each product and each sum is rounded.
 *                      A batch ends at every entry number divisible by HG_BATCH_EDGES and at
 *                      the end of a part; then narrow(alpha * r) * acc is added to the total.
 *
 *     F16_NAIVE        one f16 accumulator for the whole row (hg__plan_by_row), scaled by
 *                      narrow(alpha * r) in f16 after the sum. It suffers from swamping: the sum
 *                      stops growing once the terms are below half of its last place.
 *
 * With F32, where the plan has tiles, f = 1 and X and Y are f16, tensor cores may compute the sums.
 * They multiply X exactly with counts of entries, align 8 or 16 columns of a window and the running
 * sum with the largest of them, truncate, and add. The parts of a window are added in order
 * (hg__depth_tiles). The bits are then not those of a CPU, but still the same in every run. */
struct hg__spmm_args {
	struct hg__csr csr;
	struct hg__mat x, w, y;
	int heads;
	const float *row_scale, *col_scale;
	int scale_first;
	float alpha;
	hg_accumulate accumulate;
	struct hg__sum_epilogue epilogue;
	struct hg__overflow_flag overflow;
};

/* Y[i, c] = max over entries of row i of X[col, c]; a NaN wins. 0 for an empty row. arg[i, c] is
 * the index within the row of the first entry that attains the maximum, -1 if there is none. */
struct hg__spmm_max_args {
	struct hg__csr csr;
	struct hg__mat x, y, arg; /* arg i32 */
};
/* dX[j, c] = sum of dY[i, c] over the entries (j, i) of the transpose with
 * arg[i, c] == edge - rowptr[i]. csr_t must have `edge`. */
struct hg__spmm_max_back_args {
	struct hg__csr csr, csr_t;
	struct hg__mat dy, arg, dx;
};

/* Dot products on edges:
 *
 *     E[edge p, k] = scale * sum over c in head k of A[i, c] * B[j, c]
 *
 * a [rows, d], b [cols, d], e [m, heads] state or f32. Products and sums are computed in f32, in
 * any order. Halves may be summed by tensor cores: exact products, of which 8 or 16 and the running
 * sum are added at once, aligned with the largest and truncated (hg__depth_dot). */
struct hg__sddmm_dot_args {
	struct hg__csr csr;
	struct hg__mat a, b, e;
	int heads;
	float scale;
	/* Optional factors per row and column: E *= r_i * s_j. They occur in the gradient of a
	 * normalised aggregation. */
	const float *row_scale, *col_scale;
};
/* E[edge p, k] = f(A[i, k] + B[j, k]) in f32, narrowed once. f(x) = x > 0 ? x : slope x if leaky,
 * else f(x) = x. */
struct hg__sddmm_add_args {
	struct hg__csr csr;
	struct hg__mat a, b, e;
	int leaky;
	float slope;
};
/* dA[i, k] = sum over entries p of row i of f'(A[i, k] + B[j, k]) dE[edge p, k], and dB[j, k] is
 * the same sum over column j (csr_t); f32, narrowed once. f'(0) = slope. dA or dB may be absent,
 * and with it its CSR. A and B have as many columns as dE has heads, and its type. */
struct hg__sddmm_add_back_args {
	struct hg__csr csr, csr_t;
	struct hg__mat a, b, de, da, db;
	int leaky;
	float slope;
};

/* Values of edges from one of their nodes:
 *
 *     Z[edge p, c] = alpha s_k X[k, c],    k = row of entry p, or its column if by_col
 *
 * If arg is present, by_col is 0, and Z is 0 where arg[k, c] != p - rowptr[k]: the gradient of a
 * maximum over the values of edges (spmm_max on edges in place of columns, hg__graph_by_edge). The
 * product is f32, narrowed once. */
struct hg__gather_args {
	struct hg__csr csr;
	struct hg__mat x, z, arg; /* arg i32 or absent */
	const float *scale;       /* s, a factor for each row of X; NULL: ones */
	float alpha;
	int by_col;
};

/* Softmax over the edges of each row, in f32, with one pass for each statistic:
 *
 *     P[e, k] = exp(E[e, k] - max over the row) / sum over the row */
struct hg__edge_softmax_args {
	struct hg__csr csr;
	struct hg__mat e, p;
};
/* dE = P * (dP - sum over the row of P * dP). */
struct hg__edge_softmax_back_args {
	struct hg__csr csr;
	struct hg__mat p, dp, de;
};

/* Y = f(X) with a function from the list (functions.def). */
struct hg__act_args {
	hg__act act;
	float p; /* slope of leaky_relu, alpha of elu */
	struct hg__mat x, y;
};
/* dX = f'(X) * dY, where f' is computed from Y, or from X in its place if the list says that the
 * function reads X. f'(0) = 0 for relu and abs, p for leaky_relu and elu. */
struct hg__act_back_args {
	hg__act act;
	float p;
	struct hg__mat y, dy, dx;
};

/* Dropout: Y = X / (1 - p) where the element's random word is >= threshold, else 0. The word of
 * column c is number c % 4 of hg__rng_quad(key, row, c / 4, *step); threshold = p * 2^32 rounded.
 * The gradient is the same function with X = dY. */
struct hg__dropout_args {
	struct hg__mat x, y;
	float p;
	uint64_t key;
	const int64_t *step; /* device memory */
};

/* Y = dropout(f(X + b)), b [1, cols] of X's type or absent; rounded once, at the store. y may be
 * x. overflow: checks Y.
 *
 * X may have h times as many columns as Y, those of h heads. Then the mean over the heads takes its
 * place, in f32 and with the bits of head_mean before it is narrowed; Y is not X. */
struct hg__epilogue_args {
	struct hg__mat x, b, y;
	struct hg__act_drop act_drop;
	struct hg__overflow_flag overflow;
};
/* The gradient of hg__epilogue_args:
 *
 *     dX = f'(X + b) * dropout(dY)
 *     db[0, c] = sum over rows of dX[r, c] before it is narrowed
 *
 * db: f32 [1, cols], summed as in colsum. f' is computed from Y. For relu, y > 0 holds exactly
 * where an element is positive and kept, so no random words are needed; the other activations
 * generate the words again, and use f = y (1 - p) where the element was kept. Y, dY and dX have one
 * type. Y is absent where there is no f; dX or db may be absent. dX must not share memory with Y or
 * dY.
 *
 * dX may have h times as many columns as dY, those of h heads. Each head of dX then receives 1/h of
 * what is above, rounded once; db is the sum of what is above. */
struct hg__epilogue_back_args {
	struct hg__mat y, dy, dx, db;
	struct hg__act_drop act_drop;
};

/* Y[i, c] = f(A[i, c], B[i, c]) with a function from pairs.def. Types may differ between f16 and
 * f32, and y may be a or b. */
struct hg__pair_args {
	hg__pair pair;
	struct hg__mat a, b, y;
};
/* Y = alpha * (1 + *alpha_p) * X + beta * Z. alpha_p: f32 in device memory, or NULL (0). z may be
 * absent, and y may be x or z. Types may differ between f16 and f32, so this kernel also casts. */
struct hg__axpby_args {
	struct hg__mat x, z, y;
	float alpha, beta;
	const float *alpha_p;
};
/* Y[i, c] = A[i, c] / B[i, c]. B is of A's shape, or [rows, 1] (one divisor for a row), or [1, 1]
 * (one for all). */
struct hg__div_args {
	struct hg__mat a, b, y;
};
/* dB = - (sum of dY * (A / B)) / B, over the elements that share that divisor. Sums along a row are
 * in f32, sums over all rows in f64. */
struct hg__div_back_args {
	struct hg__mat a, b, dy, db;
};
/* Y = X + b, b [1, cols] state or f32. */
struct hg__bias_add_args {
	struct hg__mat x, b, y;
};
/* Y[0, c] = sum over rows of X[r, c]; y f32 [1, cols]. Fixed blocks of rows are added in order.
 * copy receives X in any float type during the same pass; it may be absent. */
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

/* Y[i, c] = 1/h * sum over k of X[i, k*d + c], with h = heads. In the backward kernel x is the
 * result dX and y is dY: dX[i, k*d + c] = dY[i, c] / h. */
struct hg__head_mean_args {
	struct hg__mat x, y;
	int heads;
};
/* S[i, k] = sum over c of X[i, k*d + c] * A[0, k*d + c]. If b is present, S[i, heads + k] is the
 * same with B, so that X is read once for both. */
struct hg__head_dot_args {
	struct hg__mat x, a, b, s;
	int heads;
};
/* The gradients of head_dot:
 *
 *     dX[i, k*d + c] = dS[i, k] * A[0, k*d + c] + dS[i, heads + k] * B[0, k*d + c]
 *     dA[0, k*d + c] = sum over i of dS[i, k] * X[i, k*d + c]
 *
 * dX is narrowed once; its second term exists only if b is present. add: dX is added to what dx
 * holds. dB is the same sum as dA, with dS[i, heads + k]. dA and dB are f32. dX, dA and dB may be
 * absent. */
struct hg__head_dot_back_args {
	struct hg__mat x, a, b, ds, dx, da, db;
	int heads, add;
};

/* The gradients of a layer Y = X W + b, with f32 sums:
 *
 *     dX = dY W^T,    dW = 2^shift X^T dY,    db = sum over the rows of dY
 *
 * X [n, k], W [k, d], dY and dX state; dW state or f32; db f32 [1, d]. dX, dW and db may be absent.
 *
 * - normalise: X is what this makes of the matrix at hand (batch_norm.h). dgamma, dbeta: then the
 *   gradients of the norm's gamma and beta, f32 [1, k], from dX as it is stored; or absent.
 * - through: if through.x is there, it is the layer's Y, which a batch norm alone reads. dY is then
 *   what batch_norm_back would store as dX for these arguments, which have the sums; through.dx is
 *   absent.
 *
 * Where one of these two is there: only if the backend's takes_norms says that it can. */
struct hg__linear_back_args {
	struct hg__mat x, w, dy, dx, dw, db;
	int shift;
	struct hg__normalise normalise;
	struct hg__mat dgamma, dbeta;
	struct hg__batch_norm_back_args through;
};
/* Layer normalisation: the same along each row; mean, rstd f32 [rows, 1]. */
struct hg__layer_norm_args {
	struct hg__mat x, gamma, beta, y, mean, rstd;
	float eps;
};
struct hg__layer_norm_back_args {
	struct hg__mat x, gamma, mean, rstd, dy, dx, dgamma, dbeta;
};

enum { HG__READOUTS = HG_REDUCE_MAX + 1 };
/* Readout: Y[g, c] = reduction over rows ptr[g] .. ptr[g+1]-1 of X. For MAX, arg [graphs, cols] i32
 * receives the row within the graph, -1 if the graph is empty. */
struct hg__readout_args {
	const int64_t *ptr;
	struct hg__mat x, y, arg;
	hg_reduce reduce;
};
/* The gradient of readout: dX[i, c] = dY[g, c] (SUM), dY[g, c] / size (MEAN), dY[g, c] where
 * arg[g, c] == i - ptr[g], else 0 (MAX). id: the graph of each row; below 0: the row belongs to
 * none, and its dX is 0. */
struct hg__readout_back_args {
	const int64_t *ptr;
	const int32_t *id;
	struct hg__mat dy, arg, dx;
	hg_reduce reduce;
};

/* Y [rows, 1] = the sum, the mean (0 if there are no columns) or the Euclidean norm of each row. */
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
/* The gradient of row_reduce: dX[i, c] = dY[i] (SUM), dY[i] / cols (MEAN), (X[i, c] / norm of row
 * i) * dY[i], or 0 where the norm is 0 (NORM). The norm is recomputed. X is read for NORM only. */
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

/* Cross-entropy of softmax. loss f32 [1, 1] = mean over the rows that count (label >= 0 and
 * mask != 0), 0 if there are none; count f32 [1, 1] = their number. Sums have a fixed order. live:
 * as in hg__batch_norm_args; rows from *live on do not count, whatever their label and mask. */
struct hg__softmax_xent_args {
	/* label i32 [n, 1]; mask u8 [n, 1] or absent. With a label >= cols the loss is +inf. */
	struct hg__mat x, label, mask, loss, count;
	/* f32 [1, cols], the weights w of the classes, or absent: all 1; and the label smoothing e in
	 * [0, 1). With l = -log softmax(X), loss = 1/count times the sum over rows that count of
	 *     (1 - e) w[label] l[label] + e / cols * sum over c of w[c] l[c],
	 * and count is the sum of w[label] over these rows */
	struct hg__mat weight;
	float smoothing;
	const int64_t *live;
};
/* dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count for rows that count, else 0; with
 * weights or smoothing, and p = softmax(X), dloss / count times
 *     (1 - e) w[label] (p[c] - [c == label]) + e / cols * (p[c] * sum of w - w[c]).
 * A label >= cols matches no column. dloss f32 [1, 1]. dx may be x. live: as above. */
struct hg__softmax_xent_back_args {
	struct hg__mat x, label, mask, count, dloss, dx;
	struct hg__mat weight;
	float smoothing;
	const int64_t *live;
};
/* Pointwise losses, averaged over the elements that count. BCE with logits: max(x, 0) - x*t + log(1
 * + exp(-|x|)); with the weight w of a column's ones, (1 - t) x + (1 + (w - 1) t) (max(-x, 0) +
 * log(1 + exp(-|x|))). MSE: (x - t)^2. MAE: |x - t|, with the gradient 0 at x = t. PRODUCT: x*t.
 * The target t is state or f32. mask u8 [n, 1]: the elements of a row count if its mask is not 0;
 * [n, cols]: each one has its own. Absent: all count. live: as in hg__softmax_xent_args. */
typedef enum hg__pointwise {
	HG__BCE_LOGITS = 0,
	HG__MSE = 1,
	HG__MAE = 2,
	HG__PRODUCT = 3,
	HG__BCE_WEIGHTED = 4,
	HG__POINTWISE_COUNT = 5
} hg__pointwise;
struct hg__pointwise_loss_args {
	hg__pointwise kind;
	struct hg__mat x, target, mask, loss, count; /* count: elements that count */
	struct hg__mat weight; /* HG__BCE_WEIGHTED: f32 [1, cols]; other kinds do not read it */
	const int64_t *live;
};
/* dX = slope * dloss / count. count absent: dX = slope * dloss, the gradient of the sum. */
struct hg__pointwise_loss_back_args {
	hg__pointwise kind;
	struct hg__mat x, target, mask, count, dloss, dx;
	struct hg__mat weight;
	const int64_t *live;
};
/* One evaluation (kernels/scores.h). If the step just taken is to be evaluated, the counts of the
 * logits X and their cross-entropy over the rows of loss_split (as in softmax_xent) go to the
 * board; else the board keeps its scores. In either case the overflow flag is cleared, so an
 * overflow in an evaluation's forward pass does not skip the next training step. mask absent: for
 * the training split all labelled rows count, for another split none. board and step are device
 * memory. */
struct hg__scores_args {
	struct hg__mat x, label, mask[HG__SPLITS];
	enum hg__split loss_split;
	struct hg__board *board;
	struct hg__step *step;
};

/* to[i] = from[i] for every piece, if *flag != 0. pieces is device memory; host holds the same
 * pieces for sizing. */
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

/* out f32 [1, 2] = {max |x| over the finite elements, number of elements that are not finite}. */
struct hg__amax_args {
	struct hg__mat x, out;
};

/* Records in overflow.word the overflows among the elements of X, for kernels that do not check
 * what they store. */
struct hg__guard_args {
	struct hg__mat x;
	struct hg__overflow_flag overflow;
};

/* A row of a backend's table, one for each line of kernels.def:
 *
 *     run        queues the kernel
 *     workspace  the most bytes that run takes from hg__workspace for such a call. It reads which
 *                operands are present, their shapes and types, and graphs' plans, never what
 *                addresses point to, so memory can be planned before there is any.
 *
 * Both stand in the kernel's file, for each backend. */
#define HG_KERNEL(name, args)                                                   \
	struct hg__##name##_kernel {                                                \
		hg_status (*run)(hg_context * ctx, const struct hg__##args *a);         \
		size_t (*workspace)(const hg_context *ctx, const struct hg__##args *a); \
	};
#include "kernels/kernels.def"
#undef HG_KERNEL

/* The table of a backend. */
struct hg__kernels {
#define HG_KERNEL(name, args) struct hg__##name##_kernel name;
#include "kernels/kernels.def"
#undef HG_KERNEL
};

/* A kernel by name, for tests and tools: its name and the offset of its row in the table, of which
 * `run` is the first member. */
struct hg__kernel_entry {
	const char *name;
	size_t offset;
};
const struct hg__kernel_entry *hg__kernel_list(size_t *count);

HG_EXTERN_C_END
#endif
