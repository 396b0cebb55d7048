#include "kernels/cuda/edge_sum.cuh"
#include "kernels/cuda/spmm_prepare.cuh"
#include "kernels/cuda/spmm_rows.cuh"
#include "kernels/cuda/spmm_variants.cuh"
#include "kernels/cuda/stream.cuh"

/* Y[i, c] = alpha * r_i * sum over entries p of row i of f[p, head of c] * X[j, c],  f = w[edge p, head] * s_j,  j = col p;  or X := narrow(s_j X[j, c]) first, f = w.
 *
 * A lane owns W = 8 columns (one 16-byte load of halves) or, where rows are 1, 2 or 4 elements, one. Sums run strictly in CSR order in every column, so the CPU
 * twin has the same bits.
 *
 *     F32              acc = fma(f, x, acc);  Y = narrow(alpha * r * acc)
 *     F16_DISCRETIZED  acc += f * x in f16; at every entry number divisible by HG_BATCH_EDGES, and at a part's end, total += narrow(alpha * r) * acc, acc = 0
 *     F16_NAIVE        one f16 sum for the whole row, so one item a row; scaled once at the end */

struct problem {
	struct item_plan plan;
	const int32_t *col;
	const uint32_t *edge;
	const void *x, *w;
	void *y;
	int64_t ldw, ldy, cols, head_cols;
	uint32_t pitch; /* bytes from one row of X to the next */
	int heads, w_half;
	const float *row_scale, *col_scale; /* col_scale: NULL if that came first */
	float alpha;
	float *staging; /* [2 * items, lead] */
	int64_t lead;
};

/* How a term is weighted: not at all; by the weight of the edge, which lies beside those of its neighbours; by the scale of its column, also
 * rounding the product (X := narrow(s X) on the way); by a factor for the head of a lane; by a factor for each column of a lane (heads that do not lie on pack borders). */
enum { UNIT = 0, WEIGHT_F16 = 1, WEIGHT_F32 = 2, SCALED = 3, ROUNDED = 4, BY_LANE = 5, BY_COLUMN = 6, FACTORS = 7 };

/* ---- arithmetic in the accumulator's type: one rounding each, never contracted but where it says so ---- */

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
/* a * b + c: one rounding in f32, two in f16 */
static __device__ inline float fused(float a, float b, float c)
{
	return __fmaf_rn(a, b, c);
}
static __device__ inline __half fused(__half a, __half b, __half c)
{
	return __hadd_rn(__hmul_rn(a, b), c);
}

static __device__ inline float row_factor(const struct problem &p, int32_t row)
{
	return p.row_scale ? p.row_scale[row] : 1.0f;
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

/* A batch is over: scaled, its sum joins the total. */
template <typename N, int W> static __device__ inline void close_batch(N (&acc)[W], N (&total)[W], float scale)
{
#pragma unroll
	for (int i = 0; i < W; i++) {
		total[i] = add(total[i], mul(narrow<N>(scale), acc[i]));
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
static __device__ inline void put_part(const struct problem &p, int32_t row, int64_t slot, int64_t c, const N (&sum)[W], float scale)
{
	float out[W];
	if (slot < 0) {
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = finished<MODE>(sum[i], scale);
		store<W>(static_cast<T *>(p.y) + row * p.ldy + c, out);
	} else {
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = widen(sum[i]);
		store<W>(p.staging + slot * p.lead + c, out);
	}
}

/* ---- pass 1: items ---- */

/* Four weights as they lie in memory. */
static_assert(STEP == 4, "weights are loaded four at a time");
template <typename T> struct four_weights;
template <> struct four_weights<float> {
	float4 bits;
	__device__ float get(int u) const
	{
		return u == 0 ? bits.x : u == 1 ? bits.y : u == 2 ? bits.z : bits.w;
	}
	__device__ void load(const float *p)
	{
		bits = __ldg(reinterpret_cast<const float4 *>(p));
	}
	__device__ void load(const float *p, int live)
	{
		bits = make_float4(p[0], live > 1 ? p[1] : 0.0f, live > 2 ? p[2] : 0.0f, live > 3 ? p[3] : 0.0f);
	}
};
template <> struct four_weights<__half> {
	uint2 bits;
	__device__ float get(int u) const
	{
		const __half2 pair = half2_of(u < 2 ? bits.x : bits.y);
		return u % 2 ? __high2float(pair) : __low2float(pair);
	}
	__device__ void load(const __half *p)
	{
		bits = __ldg(reinterpret_cast<const uint2 *>(p));
	}
	__device__ void load(const __half *p, int live)
	{
		const unsigned short *w = reinterpret_cast<const unsigned short *>(p);
		bits.x = w[0] | (live > 1 ? w[1] : 0u) << 16;
		bits.y = (live > 2 ? w[2] : 0u) | (live > 3 ? w[3] : 0u) << 16;
	}
};

/* Factors of a step that its lanes have in common: four weights in one load by every lane, a step ahead; or column scales, of which lane k looks up entry k's, with
 * the column loaded a step ahead. */
template <typename T> struct shared_weights {
	struct four_weights<T> now, next;
	__device__ void look_ahead(const struct problem &p, const struct sub_warp &, int64_t entry, int live)
	{
		if (live == STEP)
			next.load(static_cast<const T *>(p.w) + entry);
		else
			next.load(static_cast<const T *>(p.w) + entry, live);
	}
	__device__ void load(const struct problem &)
	{
		now = next;
	}
	__device__ float get(const struct sub_warp &, int u) const
	{
		return now.get(u);
	}
};
struct shared_scales {
	int32_t col;
	float s;
	__device__ void look_ahead(const struct problem &p, const struct sub_warp &me, int64_t entry, int live)
	{
		col = __ldg(p.col + entry + (me.lane < live ? me.lane : 0));
	}
	__device__ void load(const struct problem &p)
	{
		s = p.col_scale[col];
	}
	__device__ float get(const struct sub_warp &me, int u) const
	{
		return __shfl_sync(me.mask, s, u, me.lanes);
	}
};
struct nothing_shared {
	__device__ void look_ahead(const struct problem &, const struct sub_warp &, int64_t, int)
	{
	}
	__device__ void load(const struct problem &)
	{
	}
	__device__ float get(const struct sub_warp &, int) const
	{
		return 1.0f;
	}
};
template <int FACTOR> struct shared_factors : nothing_shared {
};
template <> struct shared_factors<WEIGHT_F16> : shared_weights<__half> {
};
template <> struct shared_factors<WEIGHT_F32> : shared_weights<float> {
};
template <> struct shared_factors<SCALED> : shared_scales {
};
template <> struct shared_factors<ROUNDED> : shared_scales {
};

/* Blocks that a multiprocessor is to hold, of its 65,536 registers: as many as the loads of a step leave registers for. */
template <typename T, int W, int FACTOR> constexpr int RESIDENT = W == 1 ? 4 : sizeof(T) == 4 || FACTOR == BY_COLUMN ? 2 : FACTOR == BY_LANE ? 3 : 4;

template <typename T, int W, int MODE, int FACTOR>
static __global__ void __launch_bounds__(BLOCK, RESIDENT<T, W, FACTOR>) spmm_items(const __grid_constant__ struct problem p)
{
	using N = typename accumulator<MODE>::type;
	constexpr int K = FACTOR == BY_COLUMN ? W : 1;
	const struct sub_warp me = own_sub_warp();
	const int64_t item = own_piece(), own = own_unit() * W, c = own < p.cols ? own : (p.cols - 1) / W * W;
	if (item >= p.plan.items)
		return;
	const bool owner = own < p.cols; /* a lane without columns goes along: the lanes of a sub-warp share row ends and weights */
	const char *x = reinterpret_cast<const char *>(static_cast<const T *>(p.x) + c);
	int head[K];
#pragma unroll
	for (int i = 0; i < K; i++) /* padding columns read the last head's weight and are never looked at */
		head[i] = FACTOR < BY_LANE ? 0 : static_cast<int>(c + i < p.cols ? (c + i) / p.head_cols : p.heads - 1);
	N acc[W] = {}, total[W] = {};
	raw<T, W> bits[STEP];
	N factor[STEP][K];
	constexpr bool SHARED = FACTOR != UNIT && FACTOR < BY_LANE;
	struct shared_factors<FACTOR> shared = {
	};
	const auto ahead = [&](int64_t entry, int live) { shared.look_ahead(p, me, entry, live); };
	const auto step = [&]() { shared.load(p); };
	const auto load_term = [&](int u, int64_t entry, int32_t j) {
		bits[u] = fetch<W>(reinterpret_cast<const T *>(x + static_cast<uint64_t>(static_cast<uint32_t>(j)) * p.pitch));
		if (FACTOR >= BY_LANE)
			factors(p, entry, j, head, factor[u]);
	};
	const auto add_term = [&](int u) {
		N v[W], f[K];
		const float shared_factor = shared.get(me, u);
		if (SHARED)
			f[0] = narrow<N>(shared_factor);
#pragma unroll
		for (int i = 0; FACTOR >= BY_LANE && i < K; i++)
			f[i] = factor[u][i];
		unpack(bits[u], v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = FACTOR == UNIT      ? add(acc[i], v[i])
			         : FACTOR == ROUNDED ? add(acc[i], N(widen(narrow<T>(mul(shared_factor, widen(v[i]))))))
			                             : fused(f[i % K], v[i], acc[i]);
	};
	const auto batch = [&](float r) {
		if (MODE == HG_ACC_F16_DISCRETIZED)
			close_batch(acc, total, mul(p.alpha, r));
	};
	const auto put = [&](int32_t row, int64_t slot, float r) {
		const float scale = mul(p.alpha, r);
		if (MODE == HG_ACC_F16_DISCRETIZED)
			close_batch(acc, total, scale);
		if (owner)
			put_part<T, MODE>(p, row, slot, c, MODE == HG_ACC_F16_DISCRETIZED ? total : acc, scale);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = total[i] = N(0.0f);
	};
	const auto zero = [&](int32_t row) {
		const float nothing[W] = {};
		if (owner)
			store<W>(static_cast<T *>(p.y) + row * p.ldy + c, nothing);
	};
	stream_item(p.plan, p.col, p.row_scale, item, me, ahead, step, load_term, add_term, batch, zero, put);
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

/* NULL: BY_LANE does it. Arithmetic in f16 is there to be compared, not to be fast. */
struct variant {
	spmm_kernel wide[FACTORS], narrow[2], fold;
};
template <typename T> static constexpr struct variant variant_in_f32()
{
	constexpr spmm_kernel halves = sizeof(T) == sizeof(__half) ? spmm_items<T, 8, HG_ACC_F32, WEIGHT_F16> : nullptr;
	return {{spmm_items<T, 8, HG_ACC_F32, UNIT>, halves, spmm_items<T, 8, HG_ACC_F32, WEIGHT_F32>, spmm_items<T, 8, HG_ACC_F32, SCALED>,
	         spmm_items<T, 8, HG_ACC_F32, ROUNDED>, spmm_items<T, 8, HG_ACC_F32, BY_LANE>, spmm_items<T, 8, HG_ACC_F32, BY_COLUMN>},
	        {spmm_items<T, 1, HG_ACC_F32, UNIT>, spmm_items<T, 1, HG_ACC_F32, BY_LANE>},
	        spmm_fold<T, HG_ACC_F32>};
}
template <int MODE> static constexpr struct variant variant_in_f16()
{
	return {
	    {spmm_items<__half, 8, MODE, UNIT>, nullptr, nullptr, nullptr, nullptr, spmm_items<__half, 8, MODE, BY_LANE>, spmm_items<__half, 8, MODE, BY_COLUMN>},
	    {spmm_items<__half, 1, MODE, UNIT>, spmm_items<__half, 1, MODE, BY_LANE>},
	    spmm_fold<__half, MODE>};
}
/* By type and accumulation, in the order of hg_dtype and hg_accumulate. */
static const struct variant variants[2][HG_ACC_COUNT] = {
    {variant_in_f32<__half>(), variant_in_f16<HG_ACC_F16_DISCRETIZED>(), variant_in_f16<HG_ACC_F16_NAIVE>()},
    {variant_in_f32<float>(), {}, {}},
};

/* On a small graph whose plan splits no row each row may as well be an item of its own: the same sums in less loads that wait for each other. 32768 sub-warps of 8
 * lanes fill an H200 twice. On Cora's shape without splits, F = 64: 9.8 us by items with a fold, 8.1 by items, 8.0 by rows. */
static bool row_by_row(const struct hg__spmm_args *a)
{
	return a->accumulate == HG_ACC_F32 && a->csr.plan->splits == 0 && a->csr.rows <= 32768;
}

static uint32_t pitch_of(const struct hg__mat &x)
{
	return static_cast<uint32_t>(x.ld * static_cast<int64_t>(hg_dtype_size(x.dtype)));
}

static struct problem problem_of(const struct hg__spmm_args *a)
{
	struct problem p = {};
	struct hg__csr csr = a->csr;
	const struct hg__plan by_row = hg__plan_by_row(&a->csr);
	if (a->accumulate == HG_ACC_F16_NAIVE || row_by_row(a))
		csr.plan = &by_row;
	p.plan = plan_of(csr);
	p.col = a->csr.col;
	p.edge = a->csr.edge;
	p.x = a->x.data;
	p.pitch = pitch_of(a->x);
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

/* The kernel for the factors at hand. Weights that lie in the order of the entries, one an edge, are loaded in vectors. */
static spmm_kernel kernel_of(const struct variant *v, const struct problem &p, bool by_eight, bool rounded)
{
	const bool plain = !p.w && !p.col_scale, in_order = p.ldw == 1 && !p.edge && reinterpret_cast<uintptr_t>(p.w) % 16 == 0;
	if (!by_eight)
		return v->narrow[!plain];
	int factor = p.heads == 1 || p.head_cols % 8 == 0 ? BY_LANE : BY_COLUMN;
	if (plain)
		factor = UNIT;
	else if (!p.w)
		factor = rounded ? ROUNDED : SCALED;
	else if (p.w && p.heads == 1 && !p.col_scale && in_order)
		factor = p.w_half ? WEIGHT_F16 : WEIGHT_F32;
	return v->wide[factor] ? v->wide[factor] : v->wide[BY_LANE];
}

/* Lanes of a sub-warp at most. Where the rows that are gathered do not stay in the second-level cache, but 128 bytes of each would, the columns are done in
 * passes of 128 bytes. H200 (60 MB), f16, F = 128, one run: reddit-like (60 MB of X) 3.65 ms in one pass, 3.44 in two; products-like (630 MB) 7.39 and 7.70,
 * Kron-21 2.30 and 2.68. A line that is gathered for one half of the chip is kept by that half: 30 MB count. */
static unsigned most_lanes(const hg_context *ctx, const struct problem &p, const struct hg__spmm_args *a)
{
	const int64_t l2 = static_cast<const hg__cuda_state *>(ctx->state)->l2_bytes / 2, element = static_cast<int64_t>(hg_dtype_size(a->x.dtype));
	return a->csr.cols * p.cols * element > l2 && a->csr.cols * 128 <= l2 ? static_cast<unsigned>(128 / (8 * element)) : 32;
}

/* X in scratch, its rows scaled; close together where they then stay in the cache, else apart so that a row touches as few lines as it can. H200, GCN with 41 columns
 * (96 or 128 bytes) on reddit-like 1.47 and 1.56 ms, with 47 columns on products-like 4.61 and 4.06. */
static hg_status scale_first(hg_context *ctx, const struct hg__spmm_args *a, struct problem *p, void *memory)
{
	const int64_t close = p->lead * static_cast<int64_t>(hg_dtype_size(a->x.dtype)) * a->x.rows;
	const bool fits = close <= static_cast<const hg__cuda_state *>(ctx->state)->l2_bytes / 2;
	const struct hg__mat z = {memory, a->x.rows, a->x.cols, fits ? p->lead : hg__scaled_lead(a->x.cols, a->x.dtype), a->x.dtype};
	HG__TRY(hg__cuda_scale_rows(ctx, &a->x, a->col_scale, &z));
	p->x = memory;
	p->pitch = pitch_of(z);
	p->col_scale = nullptr;
	return HG_OK;
}

/* One weight an edge, in scratch in the order of the entries. */
static hg_status lay_out(hg_context *ctx, const struct hg__spmm_args *a, struct problem *p, void *memory)
{
	HG__TRY(hg__cuda_lay_out(ctx, &a->csr, &a->w, memory));
	p->w = memory;
	p->edge = nullptr;
	return HG_OK;
}

/* Below so many bytes of X a launch of its own to scale it should cost more than scaling it again for every edge; below so many entries one to lay weights out.
 * Derived, not measured: a launch takes about 2 us, in which an H200 moves 4 MiB twice, or looks up half a million weights. */
constexpr int64_t SMALL_X = 1 << 22, FEW_ENTRIES = 1 << 19;

/* What can be done once instead of for every edge. Scratch: X scaled, weights laid out, staging rows. */
static hg_status prepare(hg_context *ctx, const struct hg__spmm_args *a, const struct variant *v, struct problem *p, bool by_eight, bool *rounded)
{
	const bool scaled = a->scale_first && a->col_scale, one_weight = p->w && p->heads == 1 && p->ldw == 1;
	const hg_dtype x = scaled ? a->x.dtype : HG_DTYPE_COUNT, w = one_weight ? a->w.dtype : HG_DTYPE_COUNT;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__spmm_bytes(&a->csr, p->cols, x, w), &memory));
	char *weights = static_cast<char *>(memory) + hg__spmm_scaled_bytes(&a->csr, p->cols, x);
	p->staging = reinterpret_cast<float *>(weights + hg__spmm_weight_bytes(&a->csr, w));
	*rounded = scaled && by_eight && !p->w && v->wide[ROUNDED] && a->x.rows * p->pitch <= SMALL_X;
	if (scaled && !*rounded)
		HG__TRY(scale_first(ctx, a, p, memory));
	if (one_weight && p->edge && !p->col_scale && by_eight && v->wide[p->w_half ? WEIGHT_F16 : WEIGHT_F32] && a->csr.m > FEW_ENTRIES)
		HG__TRY(lay_out(ctx, a, p, weights));
	return HG_OK;
}

hg_status hg__cuda_spmm(hg_context *ctx, const struct hg__spmm_args *a)
{
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	if (!a->x.data && a->csr.cols > 0)
		return hg__cuda_edge_sum(ctx, a);
	const struct variant *v = a->y.dtype <= HG_F32 && a->accumulate < HG_ACC_COUNT ? &variants[a->y.dtype][a->accumulate] : nullptr;
	if (!v || !v->fold || !a->csr.plan || a->x.dtype != a->y.dtype || a->y.rows != a->csr.rows)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: no kernel for X type %d, Y type %d, accumulation %d", static_cast<int>(a->x.dtype),
		                static_cast<int>(a->y.dtype), static_cast<int>(a->accumulate));
	const enum hg__spmm_variant variant = hg__spmm_pick(ctx, a);
	if (variant != HG__SPMM_AUTO)
		return hg__cuda_spmm_variant(ctx, a, variant);
	if (hg__cuda_spmm_rows_takes(a))
		return hg__cuda_spmm_rows(ctx, a);
	struct problem p = problem_of(a);
	if (p.cols % p.heads)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: %d heads do not divide %lld columns", p.heads, static_cast<long long>(p.cols));
	HG__TRY(edge_columns_fit(ctx, "spmm", p.cols));
	const bool by_eight = wide(a->x) && wide(a->y) && p.lead % 8 == 0;
	bool rounded = false;
	HG__TRY(prepare(ctx, a, v, &p, by_eight, &rounded));

	const int64_t units = by_eight ? (p.cols + 7) / 8 : p.cols;
	const struct edge_grid items = edge_grid_of(p.plan.items, units < STEP ? STEP : units, most_lanes(ctx, p, a));
	if (p.plan.items > 0) {
		kernel_of(v, p, by_eight, rounded)<<<items.grid, items.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "spmm"));
	}
	if (p.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.plan.splits, p.cols);
	v->fold<<<splits.grid, splits.block, 0, stream_of(ctx)>>>(p);
	return launched(ctx, "spmm: fold");
}
