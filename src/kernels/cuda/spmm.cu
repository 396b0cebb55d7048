#include "kernels/cuda/parts.cuh"

/* Y[i, c] = alpha * r_i * sum over entries p of row i of w[edge p, head of c] * s_j * X[j, c],  j = col p.
 *
 * A lane owns W = 8 columns (one 16-byte load of halves) or, where rows are 1, 2 or 4 elements, one. Sums run strictly in CSR order in every column and
 * products are rounded before they are added, so the CPU twin has the same bits.
 *
 *     F32              acc += (w * s) * x;  every HG_BATCH_EDGES edges total += acc, acc = 0;  Y = narrow(alpha * r * total)
 *     F16_DISCRETIZED  the same in f16, each batch scaled by narrow(alpha * r) before it joins total
 *     F16_NAIVE        one f16 sum for the whole row, so one item a row; scaled once at the end */

struct problem {
	struct item_plan plan;
	const int32_t *col;
	const int64_t *edge;
	const void *x, *w;
	void *y;
	int64_t ldx, ldw, ldy, cols, head_cols;
	int heads, w_half;
	const float *row_scale, *col_scale;
	float alpha;
	float *staging; /* [2 * items, lead] */
	int64_t lead;
};

/* How a term is weighted: not at all; by one factor for all columns of a lane; by a factor for each column (heads that do not lie on pack borders). */
enum { UNIT = 0, BY_LANE = 1, BY_COLUMN = 2, FACTORS = 3 };

/* ---- arithmetic in the accumulator's type: one rounding each, never contracted ---- */

template <int MODE> struct accumulator {
	using type = __half;
};
template <> struct accumulator<HG_ACC_F32> {
	using type = float;
};

static __device__ inline float add(float a, float b)
{
	return __fadd_rn(a, b);
}
static __device__ inline float mul(float a, float b)
{
	return __fmul_rn(a, b);
}
static __device__ inline __half add(__half a, __half b)
{
	return __hadd_rn(a, b);
}
static __device__ inline __half mul(__half a, __half b)
{
	return __hmul_rn(a, b);
}

/* r_i; one past the last row is asked for, and not used, at the end of the last item */
static __device__ inline float row_factor(const struct problem &p, int32_t row)
{
	return p.row_scale && row < p.plan.rows ? p.row_scale[row] : 1.0f;
}

/* Weights of CSR entry e for the heads head[0 .. K-1] of a lane. Where every column is a head of its own they lie side by side: one load. */
template <int K> static __device__ inline void weights(const struct problem &p, int64_t e, const int (&head)[K], float (&w)[K])
{
	const int64_t row = (p.edge ? p.edge[e] : e) * p.ldw;
	const __half *half = static_cast<const __half *>(p.w) + row;
	const float *full = static_cast<const float *>(p.w) + row;
	if (K > 1 && p.head_cols == 1) {
		if (p.w_half)
			load<K>(half + head[0], w);
		else
			load<K>(full + head[0], w);
		return;
	}
#pragma unroll
	for (int i = 0; i < K; i++)
		w[i] = p.w_half ? __half2float(half[head[i]]) : full[head[i]];
}

/* f[i] = w * s of CSR entry e = (i, j) */
template <typename N, int K> static __device__ inline void factors(const struct problem &p, int64_t e, int32_t j, const int (&head)[K], N (&f)[K])
{
	float w[K];
	if (p.w)
		weights(p, e, head, w);
#pragma unroll
	for (int i = 0; i < K; i++) {
		f[i] = narrow<N>(p.w ? w[i] : 1.0f);
		if (p.col_scale)
			f[i] = mul(f[i], narrow<N>(p.col_scale[j]));
	}
}

/* A batch is over: its sum joins the total. */
template <int MODE, typename N, int W> static __device__ inline void close_batch(N (&acc)[W], N (&total)[W], float scale)
{
#pragma unroll
	for (int i = 0; i < W; i++) {
		if (MODE == HG_ACC_F16_NAIVE)
			continue; /* acc is the total */
		total[i] = add(total[i], MODE == HG_ACC_F32 ? acc[i] : mul(narrow<N>(scale), acc[i]));
		acc[i] = N(0.0f);
	}
}

/* What a row's total becomes in Y. */
template <int MODE> static __device__ inline float finished(typename accumulator<MODE>::type total, float scale)
{
	if (MODE == HG_ACC_F32)
		return mul(scale, widen(total));
	return widen(MODE == HG_ACC_F16_NAIVE ? mul(narrow<typename accumulator<MODE>::type>(scale), total) : total);
}

/* A part is over: its sum goes to Y, or unscaled (F16_DISCRETIZED: as it is) to its staging slot. */
template <typename T, int MODE, typename N, int W>
static __device__ inline void put_part(const struct problem &p, const struct cursor &at, int64_t c, const N (&sum)[W], float scale)
{
	const int64_t slot = at.slot();
	float out[W];
	if (slot < 0) {
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = finished<MODE>(sum[i], scale);
		store<W>(static_cast<T *>(p.y) + at.row * p.ldy + c, out);
	} else {
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = widen(sum[i]);
		store<W>(p.staging + slot * p.lead + c, out);
	}
}

/* ---- pass 1: items ---- */

/* What a lane loads for one edge. Past the end of a part it is all zeros, and adding +0 changes no sum. */
template <typename T, typename N, int W, int K> struct term {
	raw<T, W> x;
	N f[K];
};

/* Blocks that a multiprocessor is to hold, of its 65,536 registers, and edges in flight a lane. Weighted by lane, H200, reddit-like, F = 64, one run: 2 blocks of 8
 * edges 6.35 ms, 3 of 8 5.93, 3 of 4 4.63, 4 of 4 4.60 (a GCN epoch: 28.5, 24.2, 21.4, 18.0 ms): more lanes hide the two dependent loads, id and factor, better. */
template <int W, int FACTOR> constexpr int RESIDENT = W == 1 || FACTOR == BY_LANE ? 4 : 3 - FACTOR;
template <typename T, int W, int FACTOR> constexpr int IN_FLIGHT = FACTOR == UNIT ? gathers<T, W> : 4;

template <typename T, int W, int MODE, int FACTOR> static __global__ void __launch_bounds__(BLOCK, RESIDENT<W, FACTOR>) spmm_items(const struct problem p)
{
	using N = typename accumulator<MODE>::type;
	constexpr int U = IN_FLIGHT<T, W, FACTOR>, K = FACTOR == BY_COLUMN ? W : 1;
	using bits = term<T, N, W, K>;
	const int64_t c = own_unit() * W;
	struct cursor at;
	if (own_piece() >= p.plan.items || c >= p.cols || !at.open(p.plan, own_piece()))
		return;
	const T *x = p.x ? static_cast<const T *>(p.x) + c : nullptr;
	int head[K];
#pragma unroll
	for (int i = 0; i < K; i++) /* padding columns read the last head's weight and are never looked at */
		head[i] = FACTOR == UNIT ? 0 : static_cast<int>(c + i < p.cols ? (c + i) / p.head_cols : p.heads - 1);
	N acc[W] = {}, total[W] = {};
	float r = row_factor(p, at.row);
	const auto load_term = [&](int64_t e, int32_t j) {
		bits t = {};
		if (x)
			t.x = fetch<W>(x + j * p.ldx);
		if (FACTOR != UNIT)
			factors(p, e, j, head, t.f);
		return t;
	};
	const auto add_term = [&](const bits &t, bool, int) {
		N v[W];
		unpack(t.x, v);
#pragma unroll
		for (int i = 0; i < W; i++) {
			const N f = t.f[i % K];
			acc[i] = add(acc[i], FACTOR == UNIT ? v[i] : x ? mul(f, v[i]) : f);
		}
	};
	const auto after = [&](bool done, int place) {
		if (done || place % HG_BATCH_EDGES == 0)
			close_batch<MODE>(acc, total, mul(p.alpha, r));
		if (!done)
			return;
		put_part<T, MODE>(p, at, c, MODE == HG_ACC_F16_NAIVE ? acc : total, mul(p.alpha, r));
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = total[i] = N(0.0f);
		r = row_factor(p, at.row + 1);
	};
	walk_item<U>(p.plan, p.col, at, load_term, add_term, after);
}

/* ---- pass 2: rows that lie in several items, slots in order, one column a lane ---- */

template <typename T, int MODE> static __global__ void __launch_bounds__(BLOCK) spmm_fold(const struct problem p)
{
	using N = typename accumulator<MODE>::type;
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	const int32_t row = p.plan.split_row[s];
	N total = N(0.0f);
	each_slot(p.plan, s, p.staging, p.lead, c, [&](float part) { total = add(total, narrow<N>(part)); });
	static_cast<T *>(p.y)[row * p.ldy + c] = narrow<T>(finished<MODE>(total, mul(p.alpha, row_factor(p, row))));
}

/* ---- launch ---- */

typedef void (*spmm_kernel)(struct problem);

struct variant {
	spmm_kernel wide[FACTORS], narrow[FACTORS], fold;
};
template <typename T, int MODE> static constexpr struct variant variant_of()
{
	return {{spmm_items<T, 8, MODE, UNIT>, spmm_items<T, 8, MODE, BY_LANE>, spmm_items<T, 8, MODE, BY_COLUMN>},
	        {spmm_items<T, 1, MODE, UNIT>, spmm_items<T, 1, MODE, BY_LANE>, spmm_items<T, 1, MODE, BY_LANE>},
	        spmm_fold<T, MODE>};
}
/* By type and accumulation, in the order of hg_dtype and hg_accumulate. */
static const struct variant variants[2][HG_ACC_COUNT] = {
    {variant_of<__half, HG_ACC_F32>(), variant_of<__half, HG_ACC_F16_DISCRETIZED>(), variant_of<__half, HG_ACC_F16_NAIVE>()},
    {variant_of<float, HG_ACC_F32>(), {}, {}},
};

static struct problem problem_of(const struct hg__spmm_args *a)
{
	struct problem p = {};
	struct hg__csr csr = a->csr;
	const struct hg__plan by_row = hg__plan_by_row(&a->csr);
	if (a->accumulate == HG_ACC_F16_NAIVE)
		csr.plan = &by_row;
	p.plan = plan_of(csr);
	p.col = a->csr.col;
	p.edge = a->csr.edge;
	p.x = a->x.data;
	p.ldx = a->x.ld;
	p.w = a->w.data;
	p.ldw = a->w.ld;
	p.w_half = a->w.dtype == HG_F16;
	p.y = a->y.data;
	p.ldy = a->y.ld;
	p.cols = a->y.cols;
	p.heads = a->heads > 0 ? a->heads : 1;
	p.head_cols = p.cols / p.heads;
	p.row_scale = a->row_scale;
	p.col_scale = a->col_scale;
	p.alpha = a->alpha;
	p.lead = hg__leading(p.cols);
	return p;
}

hg_status hg__cuda_spmm(hg_context *ctx, const struct hg__spmm_args *a)
{
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	const struct variant *v = a->y.dtype <= HG_F32 && a->accumulate < HG_ACC_COUNT ? &variants[a->y.dtype][a->accumulate] : nullptr;
	if (!v || !v->fold || !a->csr.plan || (a->x.data && a->x.dtype != a->y.dtype) || a->y.rows != a->csr.rows)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: no kernel for X type %d, Y type %d, accumulation %d", static_cast<int>(a->x.dtype),
		                static_cast<int>(a->y.dtype), static_cast<int>(a->accumulate));
	struct problem p = problem_of(a);
	if (p.cols % p.heads)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: %d heads do not divide %lld columns", p.heads, static_cast<long long>(p.cols));
	HG__TRY(edge_columns_fit(ctx, "spmm", p.cols));
	void *staging = nullptr;
	HG__TRY(hg__workspace(ctx, hg__spmm_bytes(&a->csr, p.cols), &staging));
	p.staging = static_cast<float *>(staging);

	const bool by_eight = wide(a->x) && wide(a->y);
	const int factor = !p.w && !p.col_scale && p.x ? UNIT : p.heads == 1 || p.head_cols % 8 == 0 ? BY_LANE : BY_COLUMN;
	const struct edge_grid items = edge_grid_of(p.plan.items, by_eight ? (p.cols + 7) / 8 : p.cols);
	(by_eight ? v->wide : v->narrow)[factor]<<<items.grid, items.block, 0, stream_of(ctx)>>>(p);
	HG__TRY(launched(ctx, "spmm"));
	if (p.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.plan.splits, p.cols);
	v->fold<<<splits.grid, splits.block, 0, stream_of(ctx)>>>(p);
	return launched(ctx, "spmm: fold");
}
