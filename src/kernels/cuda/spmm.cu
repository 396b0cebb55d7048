#include "kernels/cuda/edge_sum.cuh"
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
	const int64_t *edge;
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

/* How a term is weighted: not at all; by one factor an edge, which the lanes of a sub-warp load together and share; by a factor for the head of a lane; by a
 * factor for each column (heads that do not lie on pack borders). */
enum { UNIT = 0, BY_EDGE = 1, BY_LANE = 2, BY_COLUMN = 3, FACTORS = 4 };

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

/* Factors of a step that all heads have in common: lane k loads entry k's. What they are looked up by, the place of an edge's weight and a column, is loaded a
 * step ahead. */
struct shared_factors {
	int64_t place;
	int32_t col;
	float w, s;

	__device__ void look_ahead(const struct problem &p, const struct sub_warp &me, int64_t entry, int live)
	{
		const int64_t e = entry + (me.lane < live ? me.lane : 0);
		if (p.w)
			place = (p.edge ? __ldg(p.edge + e) : e) * p.ldw;
		if (p.col_scale)
			col = __ldg(p.col + e);
	}
	__device__ void load(const struct problem &p)
	{
		w = !p.w ? 1.0f : p.w_half ? __half2float(static_cast<const __half *>(p.w)[place]) : static_cast<const float *>(p.w)[place];
		if (p.col_scale)
			s = p.col_scale[col];
	}
	template <typename N> __device__ N factor(const struct problem &p) const
	{
		return p.col_scale ? mul(narrow<N>(w), narrow<N>(s)) : narrow<N>(w);
	}
};

/* Blocks that a multiprocessor is to hold, of its 65,536 registers: as many as the loads of a step leave registers for. */
template <typename T, int W, int FACTOR> constexpr int RESIDENT = W == 1 ? 4 : sizeof(T) == 4 || FACTOR == BY_COLUMN ? 2 : FACTOR == UNIT ? 4 : 3;

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
	struct shared_factors shared = {};
	const auto ahead = [&](int64_t entry, int live) {
		if (FACTOR == BY_EDGE)
			shared.look_ahead(p, me, entry, live);
	};
	const auto step = [&]() {
		if (FACTOR == BY_EDGE)
			shared.load(p);
	};
	const auto load_term = [&](int u, int64_t entry, int32_t j) {
		bits[u] = fetch<W>(reinterpret_cast<const T *>(x + static_cast<uint64_t>(static_cast<uint32_t>(j)) * p.pitch));
		if (FACTOR >= BY_LANE)
			factors(p, entry, j, head, factor[u]);
	};
	const auto add_term = [&](int u) {
		N v[W], f[K];
		if (FACTOR == BY_EDGE)
			f[0] = __shfl_sync(me.mask, shared.factor<N>(p), u, me.lanes);
#pragma unroll
		for (int i = 0; FACTOR >= BY_LANE && i < K; i++)
			f[i] = factor[u][i];
		unpack(bits[u], v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = FACTOR == UNIT ? add(acc[i], v[i]) : fused(f[i % K], v[i], acc[i]);
	};
	const auto batch = [&](int32_t row) {
		if (MODE == HG_ACC_F16_DISCRETIZED)
			close_batch(acc, total, mul(p.alpha, row_factor(p, row < p.plan.rows ? row : 0)));
	};
	const auto put = [&](int32_t row, int64_t slot) {
		const float scale = mul(p.alpha, row_factor(p, row));
		if (MODE == HG_ACC_F16_DISCRETIZED)
			close_batch(acc, total, scale);
		if (owner)
			put_part<T, MODE>(p, row, slot, c, MODE == HG_ACC_F16_DISCRETIZED ? total : acc, scale);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = total[i] = N(0.0f);
	};
	stream_item(p.plan, p.col, item, me, ahead, step, load_term, add_term, batch, put);
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

/* ---- before the passes: X := narrow(s_j X[j, c]); and rows without edges, which no item writes ---- */

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK) scale_rows(const T *x, int64_t ldx, const float *s, int64_t rows, int64_t packs, T *z, int64_t ldz)
{
	for (int64_t i = global_thread(); i < rows * packs; i += global_threads()) {
		const int64_t row = i / packs, c = (i - row * packs) * W;
		const float factor = s[row];
		float v[W];
		load<W>(x + row * ldx + c, v);
#pragma unroll
		for (int k = 0; k < W; k++)
			v[k] = mul(factor, v[k]);
		store<W>(z + row * ldz + c, v);
	}
}

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK) zero_empty_rows(const int64_t *rowptr, int64_t rows, int64_t cols, T *y, int64_t ldy)
{
	const float zero[W] = {};
	for (int64_t row = global_thread(); row < rows; row += global_threads())
		for (int64_t c = 0; rowptr[row] == rowptr[row + 1] && c < cols; c += W)
			store<W>(y + row * ldy + c, zero);
}

/* ---- launch ---- */

typedef void (*spmm_kernel)(struct problem);

struct variant {
	spmm_kernel wide[FACTORS], narrow[FACTORS], fold;
};
template <typename T, int MODE> static constexpr struct variant variant_of()
{
	return {{spmm_items<T, 8, MODE, UNIT>, spmm_items<T, 8, MODE, BY_EDGE>, spmm_items<T, 8, MODE, BY_LANE>, spmm_items<T, 8, MODE, BY_COLUMN>},
	        {spmm_items<T, 1, MODE, UNIT>, spmm_items<T, 1, MODE, BY_LANE>, spmm_items<T, 1, MODE, BY_LANE>, spmm_items<T, 1, MODE, BY_LANE>},
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
	p.pitch = static_cast<uint32_t>(a->x.ld * static_cast<int64_t>(hg_dtype_size(a->x.dtype)));
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

/* Scratch: scaled X, then the staging rows. */
static hg_status take_scratch(hg_context *ctx, const struct hg__spmm_args *a, struct problem *p, void **z)
{
	const hg_dtype scaled = a->scale_first && a->col_scale ? a->x.dtype : HG_DTYPE_COUNT;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__spmm_bytes(&a->csr, p->cols, scaled), &memory));
	*z = memory;
	p->staging = reinterpret_cast<float *>(static_cast<char *>(memory) + hg__scaled_bytes(&a->csr, p->cols, scaled));
	return HG_OK;
}

/* X := narrow(s_j X[j, c]). */
static hg_status scale_columns(hg_context *ctx, const struct hg__spmm_args *a, struct problem *p, void *z)
{
	return with_float(ctx, "spmm", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(a->x) && p->lead % 8 == 0, [&](auto width) {
			constexpr int W = decltype(width)::value;
			const int64_t packs = (p->cols + W - 1) / W;
			scale_rows<T, W><<<grid_for(a->x.rows * packs, BLOCK), BLOCK, 0, stream_of(ctx)>>>(data_of<T>(a->x), a->x.ld, a->col_scale, a->x.rows, packs,
			                                                                                   static_cast<T *>(z), p->lead);
			p->x = z;
			p->pitch = static_cast<uint32_t>(p->lead * static_cast<int64_t>(sizeof(T)));
			p->col_scale = nullptr;
			return launched(ctx, "spmm: scaled columns");
		});
	});
}

static hg_status zero_empty(hg_context *ctx, const struct hg__spmm_args *a)
{
	return with_float(ctx, "spmm", a->y.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(a->y), [&](auto width) {
			constexpr int W = decltype(width)::value;
			zero_empty_rows<T, W><<<grid_for(a->y.rows, BLOCK), BLOCK, 0, stream_of(ctx)>>>(a->csr.rowptr, a->y.rows, a->y.cols, data_of<T>(a->y), a->y.ld);
			return launched(ctx, "spmm: empty rows");
		});
	});
}

static int factor_of(const struct problem &p, bool by_eight)
{
	if (!p.w && !p.col_scale)
		return UNIT;
	if (p.heads == 1)
		return by_eight && p.cols > STEP / 2 * 8 ? BY_EDGE : BY_LANE; /* so many lanes share the loads of a step */
	return p.head_cols % 8 == 0 ? BY_LANE : BY_COLUMN;
}

/* Lanes of a sub-warp at most. Where the rows that are gathered do not stay in the second-level cache, but 128 bytes of each would, the columns are done in
 * passes of 128 bytes. H200 (60 MB), f16, F = 128, one run: reddit-like (60 MB of X) 3.65 ms in one pass, 3.44 in two; products-like (630 MB) 7.39 and 7.70,
 * Kron-21 2.30 and 2.68. A line that is gathered for one half of the chip is kept by that half: 30 MB count. */
static int most_lanes(const hg_context *ctx, const struct problem &p, const struct hg__spmm_args *a, size_t element)
{
	const int64_t l2 = static_cast<const hg__cuda_state *>(ctx->state)->l2_bytes / 2;
	const int64_t line = 128 / (8 * static_cast<int64_t>(element));
	return a->csr.cols * p.cols * static_cast<int64_t>(element) > l2 && a->csr.cols * 128 <= l2 ? static_cast<int>(line) : 32;
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
	struct problem p = problem_of(a);
	if (p.cols % p.heads)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: %d heads do not divide %lld columns", p.heads, static_cast<long long>(p.cols));
	HG__TRY(edge_columns_fit(ctx, "spmm", p.cols));
	void *z = nullptr;
	HG__TRY(take_scratch(ctx, a, &p, &z));
	if (a->scale_first && a->col_scale)
		HG__TRY(scale_columns(ctx, a, &p, z));
	if (a->csr.plan->empty > 0)
		HG__TRY(zero_empty(ctx, a));

	const bool by_eight = wide(a->x) && wide(a->y) && p.lead % 8 == 0;
	const struct edge_grid items = edge_grid_of(p.plan.items, by_eight ? (p.cols + 7) / 8 : p.cols, most_lanes(ctx, p, a, hg_dtype_size(a->y.dtype)));
	if (p.plan.items > 0) {
		(by_eight ? v->wide : v->narrow)[factor_of(p, by_eight)]<<<items.grid, items.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "spmm"));
	}
	if (p.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.plan.splits, p.cols);
	v->fold<<<splits.grid, splits.block, 0, stream_of(ctx)>>>(p);
	return launched(ctx, "spmm: fold");
}
