#include "kernels/cuda/spmm_variants.cuh"

#include "kernels/cuda/search.cuh"
#include "kernels/cuda/spmm_packs.cuh"
#include "kernels/cuda/spmm_prepare.cuh"
#include "kernels/cuda/stream.cuh"

/* The variants of spmm_variants.def, of f16 features and at most one weight an edge:
 *
 *     Y[i, c] = a_i * sum over entries p of row i of f_p X[col p, c],   a_i = alpha r_i,  f = w or 1
 *
 * They take the walk, the staging slots and the prepared operands of spmm.cu, so that what differs between two of them is what their names say. */

struct sum {
	struct item_plan plan;
	const int32_t *col;
	const __half *x;
	uint32_t pitch; /* bytes from one row of X to the next */
	const void *w;  /* [m], in the order of the entries */
	int w_half;
	__half *y;
	int64_t ldy;
	int cols; /* a grid holds no more */
	const float *row_scale;
	float alpha;
	float *staging; /* [2 * items, lead]; ATOMIC_F32: [splits, lead] */
	int64_t lead;
};

static __device__ inline float scale_of(const struct sum &p, int32_t row)
{
	return __fmul_rn(p.alpha, p.row_scale ? p.row_scale[row] : 1.0f);
}

/* The column where a lane of W begins; lanes behind the last column go along with it, and write nothing. */
template <int W> static __device__ inline int own_column(const struct sum &p, bool *owner)
{
	const int own = static_cast<int>(own_unit()) * W;
	*owner = own < p.cols;
	return *owner ? own : (p.cols - 1) / W * W;
}

template <int W> static __device__ inline word<W> fetch_row(const struct sum &p, int32_t j, int c)
{
	const char *row = reinterpret_cast<const char *>(p.x) + static_cast<uint64_t>(static_cast<uint32_t>(j)) * p.pitch;
	return fetch_word<W>(reinterpret_cast<const __half *>(row) + c);
}

/* Weights of the step that begins at `entry`, a number divisible by STEP; all lanes load the same ones. */
static_assert(STEP == 4, "weights are loaded four at a time");
static __device__ inline void load_weights(const struct sum &p, int64_t entry, int live, float (&w)[STEP])
{
	const __half *half = static_cast<const __half *>(p.w) + entry;
	const float *full = static_cast<const float *>(p.w) + entry;
	if (live < STEP) {
#pragma unroll
		for (int u = 0; u < STEP; u++)
			w[u] = u >= live ? 0.0f : p.w_half ? __half2float(half[u]) : full[u];
	} else if (p.w_half) {
		widen_word<STEP>(fetch_word<STEP>(half), w);
	} else {
		const float4 four = __ldg(reinterpret_cast<const float4 *>(full));
		w[0] = four.x, w[1] = four.y, w[2] = four.z, w[3] = four.w;
	}
}

/* acc = fma(f, x, acc) in f32 */
template <int W, bool WEIGHTED> static __device__ inline void add_term(const word<W> &bits, float w, float (&acc)[W])
{
	float x[W];
	widen_word<W>(bits, x);
#pragma unroll
	for (int i = 0; i < W; i++)
		acc[i] = WEIGHTED ? __fmaf_rn(w, x[i], acc[i]) : __fadd_rn(acc[i], x[i]);
}

template <int W> static __device__ inline void put_row(const struct sum &p, int32_t row, int c, const float (&sum)[W])
{
	const float scale = scale_of(p, row);
	float y[W];
#pragma unroll
	for (int i = 0; i < W; i++)
		y[i] = __fmul_rn(scale, sum[i]);
	store_word<W>(p.y + row * p.ldy + c, y);
}

/* A part of a split row: to its slot; or scaled into Y; or into the sum of its row, found among the split ones. */
template <int W, int WRITE> static __device__ inline void put_part(const struct sum &p, int32_t row, int64_t slot, int c, const float (&sum)[W])
{
	if constexpr (WRITE == HG__WRITE_STAGED) {
		store_floats<W>(p.staging + slot * p.lead + c, sum);
	} else if constexpr (WRITE == HG__WRITE_ATOMIC_F16) {
		const float scale = scale_of(p, row);
		float y[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			y[i] = __fmul_rn(scale, sum[i]);
		atomic_add(p.y + row * p.ldy + c, y);
	} else {
		atomic_add(p.staging + first_at_least(p.plan.split_row, 0, p.plan.splits, row) * p.lead + c, sum);
	}
}

template <typename... F>
static __device__ inline auto walk(int, const struct sum &p, int64_t item, const struct sub_warp &me, F... f)
    -> decltype(stream_item(p.plan, p.col, p.row_scale, item, me, f...))
{
	return stream_item(p.plan, p.col, p.row_scale, item, me, f...);
}
template <typename... F> static __device__ inline void walk(long, const struct sum &p, int64_t item, const struct sub_warp &me, F... f)
{
	return stream_item(p.plan, p.col, item, me, f...);
}

/* ---- EDGES, sums in f32 ---- */

template <int W, int WRITE, bool WEIGHTED> static __global__ void __launch_bounds__(BLOCK, 4) sum_edges(const __grid_constant__ struct sum p)
{
	const struct sub_warp me = own_sub_warp();
	const int64_t item = own_piece();
	bool owner;
	const int c = own_column<W>(p, &owner);
	if (item >= p.plan.items)
		return;
	float acc[W] = {}, w[STEP] = {};
	word<W> bits[STEP];
	const auto ahead = [](int64_t, int) {};
	const auto step = [&](int64_t entry, int live) {
		if (WEIGHTED)
			load_weights(p, entry, live, w);
	};
	const auto load = [&](int u, int64_t, int32_t j) { bits[u] = fetch_row<W>(p, j, c); };
	const auto add = [&](int u) { add_term<W, WEIGHTED>(bits[u], w[u], acc); };
	const auto batch = [](auto) {};
	const auto put = [&](int32_t row, int64_t slot, auto...) {
		if (owner && slot < 0)
			put_row<W>(p, row, c, acc);
		else if (owner)
			put_part<W, WRITE>(p, row, slot, c, acc);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = 0.0f;
	};
	walk(0, p, item, me, ahead, step, load, add, batch, put);
}

/* ---- GROUPS and ROWS, sums in f32: an item lies in one row ---- */

/* Where an item's sum goes: the row is its own, or it is the last part of the row, or one before. */
static __device__ inline int64_t slot_of_item(const struct sum &p, int64_t item, int32_t row)
{
	if (p.plan.item_row && p.plan.item_row[item + 1] == row)
		return 2 * item + 1;
	return p.plan.rowptr[row] < p.plan.item_edge[item] ? 2 * item : -1;
}

template <bool WEIGHTED> static __global__ void __launch_bounds__(BLOCK, 4) sum_groups(const __grid_constant__ struct sum p)
{
	constexpr int W = 8;
	const int64_t item = own_piece();
	bool owner;
	const int c = own_column<W>(p, &owner);
	if (item >= p.plan.items || p.plan.item_edge[item] == p.plan.item_edge[item + 1])
		return;
	const int64_t first = p.plan.item_edge[item], origin = first / STEP * STEP;
	const int begin = static_cast<int>(first - origin), stop = static_cast<int>(p.plan.item_edge[item + 1] - origin);
	const int32_t row = p.plan.item_row ? p.plan.item_row[item] : static_cast<int32_t>(item), *col = p.col + origin;
	float acc[W] = {}, w[STEP] = {};
	word<W> bits[STEP];
	int id[STEP];
	load_ids(col, 0, stop, id);
	for (int e = 0; e < stop; e += STEP) {
		__syncwarp(); /* the sub-warps of a warp take each step together */
		if (WEIGHTED)
			load_weights(p, origin + e, stop - e < STEP ? stop - e : STEP, w);
#pragma unroll
		for (int u = 0; u < STEP; u++)
			if (e + u >= begin && e + u < stop)
				bits[u] = fetch_row<W>(p, id[u], c);
		if (e + STEP < stop)
			load_ids(col, e + STEP, stop, id);
#pragma unroll
		for (int u = 0; u < STEP; u++)
			if (e + u >= begin && e + u < stop)
				add_term<W, WEIGHTED>(bits[u], w[u], acc);
	}
	const int64_t slot = slot_of_item(p, item, row);
	if (owner && slot < 0)
		put_row<W>(p, row, c, acc);
	else if (owner)
		put_part<W, HG__WRITE_STAGED>(p, row, slot, c, acc);
}

/* ---- EDGES, sums in f16: two columns an instruction, weights mirrored ---- */

/* The first row from `row` on that has edges; the last row if none has. */
static __device__ inline int32_t row_with_edges(const struct item_plan &p, int32_t row)
{
	while (row + 1 < p.rows && p.rowptr[row] == p.rowptr[row + 1])
		row++;
	return row < p.rows ? row : static_cast<int32_t>(p.rows) - 1;
}

static __device__ inline __half2 half_scale(const struct sum &p, int32_t row)
{
	return __float2half2_rn(scale_of(p, row));
}

[[maybe_unused]] static __device__ inline __half2 batch_scale(const struct sum &p, int32_t row)
{
	return half_scale(p, row < p.plan.rows ? row : 0);
}
[[maybe_unused]] static __device__ inline __half2 batch_scale(const struct sum &p, float r)
{
	return __float2half2_rn(__fmul_rn(p.alpha, r));
}

/* acc += a f x (PRE) or f x, every operation rounded to f16 */
template <int SCALE, bool WEIGHTED> static __device__ inline void add_halves(const word<8> &bits, float w, __half2 a, __half2 (&acc)[4])
{
	const unsigned pair[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		__half2 term = half2_of(pair[i]);
		if (WEIGHTED)
			term = __hmul2_rn(__float2half2_rn(w), term);
		if (SCALE == HG__SCALE_PRE)
			term = __hmul2_rn(a, term);
		acc[i] = __hadd2_rn(acc[i], term);
	}
}

/* acc *= a */
static __device__ inline void scale_halves(__half2 a, __half2 (&acc)[4])
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		acc[i] = __hmul2_rn(a, acc[i]);
}

/* total += a * acc, acc = 0 */
static __device__ inline void close_halves(__half2 a, __half2 (&acc)[4], __half2 (&total)[4])
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		total[i] = __hadd2_rn(total[i], __hmul2_rn(a, acc[i]));
		acc[i] = __float2half2_rn(0.0f);
	}
}

static __device__ inline void widen_halves(const __half2 (&sum)[4], float (&x)[8])
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const float2 f = __half22float2(sum[i]);
		x[2 * i] = f.x;
		x[2 * i + 1] = f.y;
	}
}

template <int SCALE, bool WEIGHTED> static __global__ void __launch_bounds__(BLOCK, 4) sum_halves(const __grid_constant__ struct sum p)
{
	const struct sub_warp me = own_sub_warp();
	const int64_t item = own_piece();
	bool owner;
	const int c = own_column<8>(p, &owner);
	if (item >= p.plan.items)
		return;
	__half2 acc[4] = {}, total[4] = {}, a = __float2half2_rn(1.0f); /* a: of the row at hand, where terms want it */
	float w[STEP] = {};
	word<8> bits[STEP];
	if (SCALE == HG__SCALE_PRE)
		a = half_scale(p, row_with_edges(p.plan, p.plan.item_row[item]));
	const auto ahead = [](int64_t, int) {};
	const auto step = [&](int64_t entry, int live) {
		if (WEIGHTED)
			load_weights(p, entry, live, w);
	};
	const auto load = [&](int u, int64_t, int32_t j) { bits[u] = fetch_row<8>(p, j, c); };
	const auto add = [&](int u) { add_halves<SCALE, WEIGHTED>(bits[u], w[u], a, acc); };
	const auto batch = [&](auto scale) {
		if (SCALE == HG__SCALE_BATCH)
			close_halves(batch_scale(p, scale), acc, total);
	};
	const auto put = [&](int32_t row, int64_t slot, auto...) {
		if (SCALE == HG__SCALE_BATCH)
			close_halves(half_scale(p, row), acc, total);
		if (SCALE == HG__SCALE_POST && slot < 0)
			scale_halves(half_scale(p, row), acc);
		float out[8];
		widen_halves(SCALE == HG__SCALE_BATCH ? total : acc, out);
		if (owner && slot < 0)
			store_word<8>(p.y + row * p.ldy + c, out);
		else if (owner)
			store_floats<8>(p.staging + slot * p.lead + c, out);
		if (SCALE == HG__SCALE_PRE)
			a = half_scale(p, row_with_edges(p.plan, row + 1));
#pragma unroll
		for (int i = 0; i < 4; i++)
			acc[i] = total[i] = __float2half2_rn(0.0f);
	};
	walk(0, p, item, me, ahead, step, load, add, batch, put);
}

/* ---- split rows: one column a lane ---- */

/* Slots in order, in the arithmetic of the sums. */
template <int SCALE> static __global__ void __launch_bounds__(BLOCK) fold_slots(const struct sum p)
{
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	const int32_t row = p.plan.split_row[s];
	__half *y = p.y + row * p.ldy + c;
	if constexpr (SCALE == HG__SCALE_ROW) {
		float total = 0.0f;
		each_slot(p.plan, s, p.staging, p.lead, c, [&](float part) { total = __fadd_rn(total, part); });
		*y = __float2half_rn(__fmul_rn(scale_of(p, row), total));
	} else {
		__half total = __float2half_rn(0.0f);
		each_slot(p.plan, s, p.staging, p.lead, c, [&](float part) { total = __hadd_rn(total, __float2half_rn(part)); });
		*y = SCALE == HG__SCALE_POST ? __hmul_rn(__float2half_rn(scale_of(p, row)), total) : total;
	}
}

/* Before half2 atomics: split rows := 0. */
static __global__ void __launch_bounds__(BLOCK) zero_split_rows(const struct sum p)
{
	const int64_t s = own_piece(), c = own_unit();
	if (s < p.plan.splits && c < p.lead)
		p.y[p.plan.split_row[s] * p.ldy + c] = __float2half_rn(0.0f);
}

/* After f32 atomics: narrowed once. */
static __global__ void __launch_bounds__(BLOCK) narrow_split_rows(const struct sum p)
{
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	const int32_t row = p.plan.split_row[s];
	p.y[row * p.ldy + c] = __float2half_rn(__fmul_rn(scale_of(p, row), p.staging[s * p.lead + c]));
}

/* ---- launch ---- */

typedef void (*sum_kernel)(struct sum);

/* before, after: what split rows need on either side of the items; NULL: nothing. */
struct kernels {
	sum_kernel items[2]; /* unit, weighted */
	sum_kernel before, after;
};
template <int SHARE, int W, int WRITE, int SCALE> static constexpr struct kernels kernels_of()
{
	if constexpr (SHARE != HG__SHARE_EDGES)
		return {{sum_groups<false>, sum_groups<true>}, nullptr, fold_slots<HG__SCALE_ROW>};
	else if constexpr (SCALE != HG__SCALE_ROW)
		return {{sum_halves<SCALE, false>, sum_halves<SCALE, true>}, nullptr, fold_slots<SCALE>};
	else
		return {{sum_edges<W, WRITE, false>, sum_edges<W, WRITE, true>},
		        WRITE == HG__WRITE_ATOMIC_F16 ? zero_split_rows : nullptr,
		        WRITE == HG__WRITE_STAGED       ? fold_slots<HG__SCALE_ROW>
		        : WRITE == HG__WRITE_ATOMIC_F32 ? narrow_split_rows
		                                        : nullptr};
}
static const struct kernels table[HG__SPMM_VARIANTS] = {
    {}, /* AUTO is spmm.cu */
#define HG_SPMM_VARIANT(id, name, share, columns, write, scale, ...) kernels_of<HG__SHARE_##share, columns, HG__WRITE_##write, HG__SCALE_##scale>(),
#include "kernels/spmm_variants.def"
#undef HG_SPMM_VARIANT
};

static uint32_t pitch_of(const struct hg__mat &x)
{
	return static_cast<uint32_t>(x.ld * static_cast<int64_t>(sizeof(__half)));
}

static struct sum sum_of(const struct hg__spmm_args *a, const struct hg__csr &csr)
{
	struct sum p = {};
	p.plan = plan_of(csr);
	p.col = csr.col;
	p.x = data_of<const __half>(a->x);
	p.pitch = pitch_of(a->x);
	p.w = a->w.data;
	p.w_half = a->w.dtype == HG_F16;
	p.y = data_of<__half>(a->y);
	p.ldy = a->y.ld;
	p.cols = static_cast<int>(a->y.cols);
	p.row_scale = a->row_scale;
	p.alpha = a->alpha;
	p.lead = hg__leading(p.cols);
	return p;
}

/* Scratch as spmm.cu has it: X with scaled rows, weights in the order of the entries, staging rows. */
static hg_status prepare(hg_context *ctx, const struct hg__spmm_args *a, const struct hg__csr &csr, struct sum *p)
{
	const hg_dtype x = a->col_scale ? HG_F16 : HG_DTYPE_COUNT, w = p->w ? a->w.dtype : HG_DTYPE_COUNT;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__spmm_bytes(&csr, p->cols, x, w), &memory));
	char *weights = static_cast<char *>(memory) + hg__spmm_scaled_bytes(&csr, p->cols, x);
	p->staging = reinterpret_cast<float *>(weights + hg__spmm_weight_bytes(&csr, w));
	if (a->col_scale) {
		const struct hg__mat z = {memory, a->x.rows, a->x.cols, hg__scaled_lead(a->x.cols, HG_F16), HG_F16};
		HG__TRY(hg__cuda_scale_rows(ctx, &a->x, a->col_scale, &z));
		p->x = data_of<const __half>(z);
		p->pitch = pitch_of(z);
	}
	if (p->w && csr.edge) {
		HG__TRY(hg__cuda_lay_out(ctx, &csr, &a->w, weights));
		p->w = weights;
	}
	return a->csr.plan->empty > 0 ? hg__cuda_zero_empty_rows(ctx, &csr, &a->y) : HG_OK;
}

static hg_status launch_splits(hg_context *ctx, sum_kernel kernel, const struct sum &p)
{
	if (!kernel || p.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.plan.splits, p.lead);
	kernel<<<splits.grid, splits.block, 0, stream_of(ctx)>>>(p);
	return launched(ctx, "spmm: split rows");
}

hg_status hg__cuda_spmm_variant(hg_context *ctx, const struct hg__spmm_args *a, enum hg__spmm_variant variant)
{
	const struct hg__spmm_way *way = &hg__spmm_ways[variant];
	const struct hg__plan by_row = hg__plan_by_row(&a->csr);
	struct hg__csr csr = a->csr;
	csr.plan = way->share == HG__SHARE_GROUPS ? a->groups : way->share == HG__SHARE_ROWS ? &by_row : csr.plan;
	HG__TRY(edge_columns_fit(ctx, "spmm", a->y.cols));
	struct sum p = sum_of(a, csr);
	HG__TRY(prepare(ctx, a, csr, &p));
	if (way->write == HG__WRITE_ATOMIC_F32 && p.plan.splits > 0)
		HG__CUDA(ctx, "spmm: sums", cudaMemsetAsync(p.staging, 0, static_cast<size_t>(p.plan.splits * p.lead) * sizeof(float), stream_of(ctx)));
	HG__TRY(launch_splits(ctx, table[variant].before, p));
	if (p.plan.items > 0) {
		const int64_t units = (p.cols + way->columns - 1) / way->columns;
		const struct edge_grid items = edge_grid_of(p.plan.items, units < STEP ? STEP : units);
		table[variant].items[p.w != nullptr]<<<items.grid, items.block, 0, stream_of(ctx)>>>(p);
		HG__TRY(launched(ctx, "spmm: variant"));
	}
	return launch_splits(ctx, table[variant].after, p);
}
