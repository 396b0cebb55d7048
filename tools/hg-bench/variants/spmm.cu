/* The variants of spmm_variants.def, for f16 features and at most one weight per edge:
 *
 *     Y[i, c] = a_i * sum over entries p of row i of f_p X[col p, c],   a_i = alpha r_i,
 *     f = w or 1
 *
 * The variants that give each sub-warp an equal share of the edges have one loop (spmm_walk.cuh),
 * and all use the staging slots and the prepared operands of the library's kernel. So two of them
 * differ only in what their names say. */

#include "kernels/cuda/spmm.cuh"

#include "kernels/cuda/search.cuh"
#include "kernels/cuda/spmm_prepare.cuh"
#include "kernels/cuda/spmm_tiles.cuh"
#include "packs.cuh"
#include "spmm_variants.h"
#include "spmm_walk.cuh"

struct sum {
	struct item_plan plan;
	const int32_t *col;
	const __half *x;
	uint32_t pitch; /* bytes from one row of X to the next */
	const void *w;  /* [m], in the order of the entries */
	__half *y;
	int64_t ldy;
	int cols; /* int, because a grid has no more columns */
	const float *row_scale;
	float alpha;
	float *staging; /* [2 * items, lead]; ATOMIC_F32: [splits, lead] */
	int64_t lead;
};

static __device__ inline float row_factor(const struct sum &p, int32_t row)
{
	return p.row_scale ? p.row_scale[row] : 1.0f;
}

/* The column where a lane of W columns begins. Lanes after the last column compute as well, but
 * write nothing. */
template <int W> static __device__ inline int own_column(const struct sum &p, bool *owner)
{
	const int own = static_cast<int>(own_unit()) * W;
	*owner = own < p.cols;
	return *owner ? own : (p.cols - 1) / W * W;
}

template <int W> static __device__ inline word<W> fetch_row(const struct sum &p, int32_t j, int c)
{
	const char *row = reinterpret_cast<const char *>(p.x) +
	                  static_cast<uint64_t>(static_cast<uint32_t>(j)) * p.pitch;
	return fetch_word<W>(reinterpret_cast<const __half *>(row) + c);
}

/* The weights of a step, one per edge. All lanes load the same four weights, one step ahead. */
struct unit_weights {
	__device__ void look_ahead(const struct sum &, int64_t, int)
	{
	}
	__device__ void take()
	{
	}
	__device__ float get(int) const
	{
		return 1.0f;
	}
};
static_assert(STEP == 4, "weights are loaded four at a time");
template <typename T, typename Four> struct edge_weights {
	Four now, next;
	__device__ void look_ahead(const struct sum &p, int64_t entry, int live)
	{
		const T *from = static_cast<const T *>(p.w) + entry;
		if (live == STEP) {
			next = __ldg(reinterpret_cast<const Four *>(from));
			return;
		}
		T w[STEP];
#pragma unroll
		for (int u = 0; u < STEP; u++)
			w[u] = u < live ? from[u] : T(0.0f);
		memcpy(&next, w, sizeof next);
	}
	__device__ void take()
	{
		now = next;
	}
	__device__ float get(int u) const
	{
		T w[STEP];
		memcpy(static_cast<void *>(w), &now, sizeof now);
		return widen(w[u]);
	}
};
/* Four blocks per multiprocessor, as in spmm.cu. For sm_80 the compiler would then spill weights,
 * so there it is three. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
template <typename Weights> constexpr int RESIDENT = 3;
template <> constexpr int RESIDENT<unit_weights> = 4;
#else
template <typename Weights> constexpr int RESIDENT = 4;
#endif
typedef edge_weights<__half, uint2> half_weights;
typedef edge_weights<float, uint4> full_weights;
template <typename Weights> constexpr bool weighted = true;
template <> constexpr bool weighted<unit_weights> = false;

/* acc = fma(f, x, acc) in f32 */
template <int W, bool WEIGHTED>
static __device__ inline void add_term(const word<W> &bits, float w, float (&acc)[W])
{
	float x[W];
	widen_word<W>(bits, x);
#pragma unroll
	for (int i = 0; i < W; i++)
		acc[i] = WEIGHTED ? __fmaf_rn(w, x[i], acc[i]) : __fadd_rn(acc[i], x[i]);
}

/* y = alpha r * sum */
template <int W>
static __device__ inline void scale_sum(const struct sum &p, float r, const float (&sum)[W],
                                        float (&y)[W])
{
	const float scale = __fmul_rn(p.alpha, r);
#pragma unroll
	for (int i = 0; i < W; i++)
		y[i] = __fmul_rn(scale, sum[i]);
}

template <int W>
static __device__ inline void put_row(const struct sum &p, int32_t row, int c,
                                      const float (&sum)[W], float r)
{
	float y[W];
	scale_sum(p, r, sum, y);
	store_word<W>(p.y + row * p.ldy + c, y);
}

template <int W>
static __device__ inline void put_zero(const struct sum &p, int32_t row, int c, bool owner)
{
	const float nothing[W] = {};
	if (owner)
		store_word<W>(p.y + row * p.ldy + c, nothing);
}

/* Writes a part of a split row: to its slot; or scaled, by atomics, into Y; or by atomics into the
 * f32 sum of its row, which is found among the split rows. */
template <int W, int WRITE>
static __device__ inline void put_part(const struct sum &p, int32_t row, int64_t slot, int c,
                                       const float (&sum)[W], float r)
{
	if constexpr (WRITE == WRITE_STAGED) {
		store_floats<W>(p.staging + slot * p.lead + c, sum);
	} else if constexpr (WRITE == WRITE_ATOMIC_F16) {
		float y[W];
		scale_sum(p, r, sum, y);
		atomic_add(p.y + row * p.ldy + c, y);
	} else {
		atomic_add(p.staging + first_at_least(p.plan.split_row, 0, p.plan.splits, row) * p.lead + c,
		           sum);
	}
}

/* ---- EDGES, sums in f32 ---- */

template <int W, int WRITE, typename Weights>
static __global__ void __launch_bounds__(BLOCK, RESIDENT<Weights>)
    sum_edges(const __grid_constant__ struct sum p)
{
	after_previous();
	const struct sub_warp me = own_sub_warp();
	const int64_t item = own_piece();
	bool owner;
	const int c = own_column<W>(p, &owner);
	if (item >= p.plan.items)
		return;
	float acc[W] = {};
	Weights weights = {};
	word<W> bits[STEP];
	const auto ahead = [&](int64_t entry, int live) { weights.look_ahead(p, entry, live); };
	const auto step = [&]() { weights.take(); };
	const auto load = [&](int u, int64_t, int32_t j) { bits[u] = fetch_row<W>(p, j, c); };
	const auto add = [&](int u) { add_term<W, weighted<Weights>>(bits[u], weights.get(u), acc); };
	const auto batch = [](float) {};
	const auto zero = [&](int32_t row) { put_zero<W>(p, row, c, owner); };
	const auto put = [&](int32_t row, int64_t slot, float r) {
		if (owner && slot < 0)
			put_row<W>(p, row, c, acc, r);
		else if (owner)
			put_part<W, WRITE>(p, row, slot, c, acc, r);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = 0.0f;
	};
	stream_item(p.plan, p.col, p.row_scale, item, me, ahead, step, load, add, batch, zero, put);
}

/* ---- GROUPS and ROWS, sums in f32: an item lies within one row ---- */

/* Where the sum of an item goes: -1 if the item is the whole row, otherwise the slot of the row's
 * last part, or of an earlier part. */
static __device__ inline int64_t slot_of_item(const struct sum &p, int64_t item, int32_t row)
{
	if (p.plan.item_row && p.plan.item_row[item + 1] == row)
		return 2 * item + 1;
	return p.plan.rowptr[row] < p.plan.item_edge[item] ? 2 * item : -1;
}

/* Sets rows from .. to-1 to 0: those that an item finishes without having an edge of them. */
template <int W>
static __device__ inline void put_empty_rows(const struct sum &p, int32_t from, int32_t to, int c,
                                             bool owner)
{
	for (int32_t row = from; row < to; row++)
		put_zero<W>(p, row, c, owner);
}

template <typename Weights>
static __global__ void __launch_bounds__(BLOCK, RESIDENT<Weights>)
    sum_groups(const __grid_constant__ struct sum p)
{
	after_previous();
	constexpr int W = 8;
	const int64_t item = own_piece();
	bool owner;
	const int c = own_column<W>(p, &owner);
	if (item >= p.plan.items)
		return;
	const int64_t first = p.plan.item_edge[item], end = p.plan.item_edge[item + 1],
	              origin = first / STEP * STEP;
	const int32_t row = p.plan.item_row ? p.plan.item_row[item] : static_cast<int32_t>(item),
	              *col = p.col + origin;
	put_empty_rows<W>(p, first < end ? row + 1 : row,
	                  p.plan.item_row ? p.plan.item_row[item + 1] : row + 1, c, owner);
	if (first == end)
		return;
	const int begin = static_cast<int>(first - origin), stop = static_cast<int>(end - origin);
	float acc[W] = {};
	Weights weights = {};
	word<W> bits[STEP];
	int id[STEP];
	load_ids(col, 0, stop, id);
	weights.look_ahead(p, origin, stop < STEP ? stop : STEP);
	for (int e = 0; e < stop; e += STEP) {
		__syncwarp(); /* the sub-warps of a warp take each step together */
		weights.take();
#pragma unroll
		for (int u = 0; u < STEP; u++)
			if (e + u >= begin && e + u < stop)
				bits[u] = fetch_row<W>(p, id[u], c);
		if (e + STEP < stop) {
			load_ids(col, e + STEP, stop, id);
			weights.look_ahead(p, origin + e + STEP,
			                   stop - e - STEP < STEP ? stop - e - STEP : STEP);
		}
#pragma unroll
		for (int u = 0; u < STEP; u++)
			if (e + u >= begin && e + u < stop)
				add_term<W, weighted<Weights>>(bits[u], weights.get(u), acc);
	}
	const int64_t slot = slot_of_item(p, item, row);
	if (owner && slot < 0)
		put_row<W>(p, row, c, acc, row_factor(p, row));
	else if (owner)
		put_part<W, WRITE_STAGED>(p, row, slot, c, acc, 1.0f);
}

/* ---- EDGES, sums in f16: two columns per instruction, both with the same weight ---- */

/* The first row from `row` on that has edges, or the last row if none has. */
static __device__ inline int32_t row_with_edges(const struct item_plan &p, int32_t row)
{
	while (row + 1 < p.rows && p.rowptr[row] == p.rowptr[row + 1])
		row++;
	return row < p.rows ? row : static_cast<int32_t>(p.rows) - 1;
}

static __device__ inline __half2 half_scale(const struct sum &p, float r)
{
	return __float2half2_rn(__fmul_rn(p.alpha, r));
}

/* acc += a f x (PRE) or f x, every operation rounded to f16 */
template <int SCALE, bool WEIGHTED>
static __device__ inline void add_halves(const word<8> &bits, float w, __half2 a, __half2 (&acc)[4])
{
	const unsigned pair[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		__half2 term = half2_of(pair[i]);
		if (WEIGHTED)
			term = __hmul2_rn(__float2half2_rn(w), term);
		if (SCALE == SCALE_PRE)
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

template <int SCALE, typename Weights>
static __global__ void __launch_bounds__(BLOCK, RESIDENT<Weights>)
    sum_halves(const __grid_constant__ struct sum p)
{
	after_previous();
	const struct sub_warp me = own_sub_warp();
	const int64_t item = own_piece();
	bool owner;
	const int c = own_column<8>(p, &owner);
	if (item >= p.plan.items)
		return;
	/* a: that of the current row, if terms are scaled */
	__half2 acc[4] = {}, total[4] = {}, a = __float2half2_rn(1.0f);
	Weights weights = {};
	word<8> bits[STEP];
	if (SCALE == SCALE_PRE)
		a = half_scale(p, row_factor(p, row_with_edges(p.plan, p.plan.item_row[item])));
	const auto ahead = [&](int64_t entry, int live) { weights.look_ahead(p, entry, live); };
	const auto step = [&]() { weights.take(); };
	const auto load = [&](int u, int64_t, int32_t j) { bits[u] = fetch_row<8>(p, j, c); };
	const auto add = [&](int u) {
		add_halves<SCALE, weighted<Weights>>(bits[u], weights.get(u), a, acc);
	};
	const auto zero = [&](int32_t row) { put_zero<8>(p, row, c, owner); };
	const auto batch = [&](float r) {
		if (SCALE == SCALE_BATCH)
			close_halves(half_scale(p, r), acc, total);
	};
	const auto put = [&](int32_t row, int64_t slot, float r) {
		if (SCALE == SCALE_BATCH)
			close_halves(half_scale(p, r), acc, total);
		if (SCALE == SCALE_POST && slot < 0)
			scale_halves(half_scale(p, r), acc);
		float out[8];
		widen_halves(SCALE == SCALE_BATCH ? total : acc, out);
		if (owner && slot < 0)
			store_word<8>(p.y + row * p.ldy + c, out);
		else if (owner)
			store_floats<8>(p.staging + slot * p.lead + c, out);
		if (SCALE == SCALE_PRE)
			a = half_scale(p, row_factor(p, row_with_edges(p.plan, row + 1)));
#pragma unroll
		for (int i = 0; i < 4; i++)
			acc[i] = total[i] = __float2half2_rn(0.0f);
	};
	stream_item(p.plan, p.col, p.row_scale, item, me, ahead, step, load, add, batch, zero, put);
}

/* ---- split rows: one column per lane ---- */

/* Adds the slots in order, in the arithmetic of the sums. */
template <int SCALE> static __global__ void __launch_bounds__(BLOCK) fold_slots(const struct sum p)
{
	after_previous();
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	const int32_t row = p.plan.split_row[s];
	__half *y = p.y + row * p.ldy + c;
	if constexpr (SCALE == SCALE_ROW) {
		float total = 0.0f;
		each_slot(p.plan, s, p.staging, p.lead, c,
		          [&](float part) { total = __fadd_rn(total, part); });
		*y = __float2half_rn(__fmul_rn(__fmul_rn(p.alpha, row_factor(p, row)), total));
	} else {
		__half total = __float2half_rn(0.0f);
		each_slot(p.plan, s, p.staging, p.lead, c,
		          [&](float part) { total = __hadd_rn(total, __float2half_rn(part)); });
		*y = SCALE == SCALE_POST
		         ? __hmul_rn(__float2half_rn(__fmul_rn(p.alpha, row_factor(p, row))), total)
		         : total;
	}
}

/* Sets split rows to 0, before half2 atomics. */
static __global__ void __launch_bounds__(BLOCK) zero_split_rows(const struct sum p)
{
	after_previous();
	const int64_t s = own_piece(), c = own_unit();
	if (s < p.plan.splits && c < p.lead)
		p.y[p.plan.split_row[s] * p.ldy + c] = __float2half_rn(0.0f);
}

/* Narrows split rows once, after f32 atomics. */
static __global__ void __launch_bounds__(BLOCK) narrow_split_rows(const struct sum p)
{
	after_previous();
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	const int32_t row = p.plan.split_row[s];
	p.y[row * p.ldy + c] = __float2half_rn(
	    __fmul_rn(__fmul_rn(p.alpha, row_factor(p, row)), p.staging[s * p.lead + c]));
}

/* ---- launch ---- */

typedef void (*sum_kernel)(struct sum);

/* before, after: kernels for split rows that run before and after the items; NULL: none. */
struct kernels {
	sum_kernel items[3]; /* without weights, with weights in f16, in f32 */
	sum_kernel before, after;
};
template <int SHARE, int W, int WRITE, int SCALE> static constexpr struct kernels kernels_of()
{
	if constexpr (SHARE == SHARE_TILES || SHARE == SHARE_PARTS)
		return {}; /* kernels of the library */
	else if constexpr (SHARE != SHARE_EDGES)
		return {{sum_groups<unit_weights>, sum_groups<half_weights>, sum_groups<full_weights>},
		        nullptr,
		        fold_slots<SCALE_ROW>};
	else if constexpr (SCALE != SCALE_ROW)
		return {{sum_halves<SCALE, unit_weights>, sum_halves<SCALE, half_weights>,
		         sum_halves<SCALE, full_weights>},
		        nullptr,
		        fold_slots<SCALE>};
	else
		return {{sum_edges<W, WRITE, unit_weights>, sum_edges<W, WRITE, half_weights>,
		         sum_edges<W, WRITE, full_weights>},
		        WRITE == WRITE_ATOMIC_F16 ? zero_split_rows : nullptr,
		        WRITE == WRITE_STAGED       ? fold_slots<SCALE_ROW>
		        : WRITE == WRITE_ATOMIC_F32 ? narrow_split_rows
		                                    : nullptr};
}
static const struct kernels table[SPMM_VARIANTS] = {
#define SPMM_VARIANT(id, name, share, columns, write, scale, ...) \
	kernels_of<SHARE_##share, columns, WRITE_##write, SCALE_##scale>(),
#include "spmm_variants.def"
#undef SPMM_VARIANT
};

static uint32_t pitch_of(const struct hg__mat &x)
{
	return static_cast<uint32_t>(x.ld * static_cast<int64_t>(sizeof(__half)));
}

static struct sum sum_of(const struct hg__spmm_args *a)
{
	struct sum p = {};
	p.plan = plan_of(a->csr);
	p.col = a->csr.col;
	p.x = data_of<const __half>(a->x);
	p.pitch = pitch_of(a->x);
	p.w = a->w.data;
	p.y = data_of<__half>(a->y);
	p.ldy = a->y.ld;
	p.cols = static_cast<int>(a->y.cols);
	p.row_scale = a->row_scale;
	p.alpha = a->alpha;
	p.lead = hg__leading(p.cols);
	return p;
}

/* Prepares scratch memory as the library's kernel does: X with scaled rows, weights in the order of
 * the entries, and staging rows. */
static hg_status prepare(hg_context *ctx, const struct hg__spmm_args *a, struct sum *p)
{
	const hg_dtype x = a->col_scale ? HG_F16 : HG_DTYPE_COUNT,
	               w = p->w ? a->w.dtype : HG_DTYPE_COUNT;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__spmm_bytes(&a->csr, p->cols, x, w), &memory));
	char *weights = static_cast<char *>(memory) + hg__scaled_bytes(&a->csr, p->cols, x);
	p->staging = reinterpret_cast<float *>(weights + hg__spmm_weight_bytes(&a->csr, w));
	if (a->col_scale) {
		const struct hg__mat z = {memory, a->x.rows, a->x.cols, hg__scaled_lead(a->x.cols, HG_F16),
		                          HG_F16};
		HG__TRY(hg__cuda_scale_rows(ctx, &a->x, a->col_scale, &z, nullptr));
		p->x = data_of<const __half>(z);
		p->pitch = pitch_of(z);
	}
	if (p->w && a->csr.edge) {
		HG__TRY(hg__cuda_order_weights(ctx, &a->csr, &a->w, weights));
		p->w = weights;
	}
	return HG_OK;
}

static hg_status launch_splits(hg_context *ctx, sum_kernel kernel, const struct sum &p)
{
	if (!kernel || p.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.plan.splits, p.lead);
	return launch(ctx, "spmm: split rows", kernel, splits.grid, splits.block, p);
}

/* The sums over the items, between the kernels for split rows. */
static hg_status launch_sums(hg_context *ctx, const struct hg__spmm_args *a,
                             enum spmm_variant_id id)
{
	const struct spmm_variant &v = spmm_variants[id];
	HG__TRY(edge_columns_fit(ctx, "spmm", a->y.cols));
	struct sum p = sum_of(a);
	HG__TRY(prepare(ctx, a, &p));
	if (v.write == WRITE_ATOMIC_F32 && p.plan.splits > 0)
		HG__CUDA(ctx, "spmm: sums",
		         cudaMemsetAsync(p.staging, 0,
		                         static_cast<size_t>(p.plan.splits * p.lead) * sizeof(float),
		                         stream_of(ctx)));
	HG__TRY(launch_splits(ctx, table[id].before, p));
	if (p.plan.items > 0) {
		const int64_t units = (p.cols + v.columns - 1) / v.columns;
		const struct edge_grid items = edge_grid_of(p.plan.items, units < STEP ? STEP : units);
		const int weights = !p.w ? 0 : a->w.dtype == HG_F16 ? 1 : 2;
		HG__TRY(launch(ctx, "spmm: variant", table[id].items[weights], items.grid, items.block, p));
	}
	return launch_splits(ctx, table[id].after, p);
}

hg_status spmm_variant_cuda(hg_context *ctx, const struct hg__spmm_args *a, enum spmm_variant_id id)
{
	const enum spmm_share share = spmm_variants[id].share;
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	if (share == SHARE_TILES && !hg__cuda_spmm_tiles_fit(a))
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: tiles do not fit a call that they accepted");
	return share == SHARE_TILES || share == SHARE_PARTS
	           ? hg__cuda_spmm_parts(ctx, a, share == SHARE_TILES)
	           : launch_sums(ctx, a, id);
}
