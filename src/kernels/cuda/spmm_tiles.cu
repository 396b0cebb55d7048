/* Sums of unit weights over tiles (core/plan_tiles.h), computed by tensor cores:
 *
 *     Y[i, :] = alpha * r_i * sum over the columns k of i's window of count(mask k, i) * X[id k, :]
 *
 * A warp takes one item. For each group of 16 listed columns it gathers 16 rows of X and multiplies
 * them, as a matrix [features, 16], by the counts [16, 16 rows of the window]. A row of X that
 * several rows of the window use is gathered only once, which is the whole advantage over the other
 * kernels. The rest of the design keeps the gathers the only thing that takes time.
 *
 * The layout: lane 4 g + t loads W features, from feature W g on, of the four rows of X that
 * columns 4 t .. 4 t + 3 of the group name, each in one load. W = 8 covers 64 features per pass, W
 * = 4 covers 32. Features 2 q and 2 q + 1 of the lane become rows g and g + 8 of a left operand.
 * The four rows of X become the lane's k indices 2 t, 2 t + 1, 2 t + 8 and 2 t + 9. Any assignment
 * of columns to k is correct as long as the counts use the same one. So a lane ends with W
 * neighbouring features of rows 2 t and 2 t + 1 of both halves of the window.
 *
 * A count of 0 times a value that is not finite would be NaN, in rows that do not have this
 * neighbour. The caller therefore checks X beforehand and sets `spoiled` if it finds such a value;
 * the kernels here then do nothing. */

#include "kernels/cuda/spmm_tiles.cuh"

#include "core/plan_tiles.h"
#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/sum_epilogue.cuh"
#include "kernels/cuda/tensor_core.cuh"

struct tile_problem {
	const struct hg__tile_item *item;
	const struct hg__tile_split *split;
	int64_t items, splits;
	const int4 *id;
	const uint4 *mask;
	const char *x;
	uint32_t pitch; /* bytes from one row of X to the next */
	__half *y;
	int64_t ldy;
	int32_t rows, cols;
	const float *row_scale; /* NULL: all 1 */
	float alpha;
	float *staging; /* [16 slots, lead] */
	int64_t lead;
	const unsigned *spoiled;
	struct sum_epilogue epilogue;
	struct guard guard;
};

/* ---- the operands of a lane ---- */

template <int W> struct tile_pack {
	unsigned pair[W / 2];
};
static __device__ inline void gather_pack(const char *p, tile_pack<8> &r)
{
	const uint4 q = __ldg(reinterpret_cast<const uint4 *>(p));
	r.pair[0] = q.x, r.pair[1] = q.y, r.pair[2] = q.z, r.pair[3] = q.w;
}
static __device__ inline void gather_pack(const char *p, tile_pack<4> &r)
{
	const uint2 q = __ldg(reinterpret_cast<const uint2 *>(p));
	r.pair[0] = q.x, r.pair[1] = q.y;
}

/* Loads the W features at x of four rows. */
template <int W>
static __device__ inline void gather_rows(const char *x, uint32_t pitch, const int4 &id,
                                          tile_pack<W> (&rows)[4])
{
	const int32_t row[4] = {id.x, id.y, id.z, id.w};
#pragma unroll
	for (int k = 0; k < 4; k++)
		gather_pack(x + static_cast<uint64_t>(static_cast<uint32_t>(row[k])) * pitch, rows[k]);
}

/* Bits s and s + 1 of two masks, as two halves. 0x6400 is 1024 as a half, whose last mantissa bit
 * is worth 1, so 1024 + n has n in its lowest bits. */
static __device__ inline unsigned counts_at(unsigned mask0, unsigned mask1, int s)
{
	const unsigned n = (__byte_perm(mask0 >> s, mask1 >> s, 0x5410) & 0x00030003u) | 0x64006400u;
	const __half2 counts = __hsub2(half2_of(n), half2_of(0x64006400u));
	return *reinterpret_cast<const unsigned *>(&counts);
}

/* sums += rows * counts. sums[q][h] holds features 2 q and 2 q + 1 for half h of the window. */
template <int W>
static __device__ inline void add_group(const tile_pack<W> (&rows)[4], const uint4 &mask,
                                        float (&sums)[W / 2][2][4])
{
	const int g = static_cast<int>(threadIdx.x % 32) / 4;
	unsigned counts[2][2];
#pragma unroll
	for (int h = 0; h < 2; h++) {
		counts[h][0] = counts_at(mask.x, mask.y, 16 * h + 2 * g);
		counts[h][1] = counts_at(mask.z, mask.w, 16 * h + 2 * g);
	}
#pragma unroll
	for (int q = 0; q < W / 2; q++) {
		const uint4 left = make_uint4(__byte_perm(rows[0].pair[q], rows[1].pair[q], 0x5410),
		                              __byte_perm(rows[0].pair[q], rows[1].pair[q], 0x7632),
		                              __byte_perm(rows[2].pair[q], rows[3].pair[q], 0x5410),
		                              __byte_perm(rows[2].pair[q], rows[3].pair[q], 0x7632));
#pragma unroll
		for (int h = 0; h < 2; h++)
			multiply(sums[q][h], left, counts[h][0], counts[h][1]);
	}
}

/* ---- results ---- */

static __device__ inline float row_factor(const struct tile_problem &p, int32_t row)
{
	return __fmul_rn(p.alpha, p.row_scale ? __ldg(p.row_scale + row) : 1.0f);
}

/* Stores scaled sums of a row in Y, after the epilogue if EPILOGUE. */
template <bool EPILOGUE, int W>
static __device__ inline void put_row(const struct tile_problem &p, int32_t row, int32_t c,
                                      float (&out)[W])
{
	const int64_t at = row * p.ldy + c;
	if constexpr (EPILOGUE)
		p.epilogue.put(p.y, at, row, c, out, p.guard);
	else {
		p.guard.check(c, out);
		if constexpr (W == 4)
			store_four(p.y + at, out);
		else
			store<W>(p.y + at, out);
	}
}

/* Stores W features, from column c on, of row `index` of the window: in Y, or without the scale in
 * the item's staging slot. */
template <int W, bool EPILOGUE>
static __device__ inline void put_part(const struct tile_problem &p,
                                       const struct hg__tile_item &item, int index, int32_t c,
                                       const float (&sum)[W])
{
	const int64_t row = static_cast<int64_t>(item.window) * HG__TILE_ROWS + index;
	if (item.slot >= 0) {
		float *slot =
		    p.staging + (static_cast<int64_t>(item.slot) * HG__TILE_ROWS + index) * p.lead + c;
#pragma unroll
		for (int i = 0; i < W; i += 4)
			*reinterpret_cast<float4 *>(slot + i) =
			    make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
	} else if (row < p.rows) {
		const float scale = row_factor(p, static_cast<int32_t>(row));
		float out[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = __fmul_rn(scale, sum[i]);
		put_row<EPILOGUE>(p, static_cast<int32_t>(row), c, out);
	}
}

/* ---- pass 1: items ---- */

/* Blocks of eight warps that a multiprocessor should hold, out of its 65,536 registers. The sums
 * take 32 registers a lane (W = 8) or 16, and the gathers of two groups take as many again. */
template <int W> constexpr int TILE_RESIDENT = W == 8 ? 2 : 3;

/* A software pipeline: while one group is multiplied, the gathers of the next group are in flight,
 * and the ids and masks of the group after that. */
template <int W, bool EPILOGUE>
static __global__ void __launch_bounds__(BLOCK, TILE_RESIDENT<W>)
    sum_tiles(const __grid_constant__ struct tile_problem p)
{
	after_previous();
	const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
	const int64_t i = static_cast<int64_t>(blockIdx.x) * (BLOCK / 32) + threadIdx.x / 32;
	if (i >= p.items)
		return;
	const unsigned spoiled = *p.spoiled;
	const int4 bits = __ldg(reinterpret_cast<const int4 *>(p.item + i));
	const struct hg__tile_item item = {bits.x, bits.y, bits.z, bits.w};
	const int32_t own = (static_cast<int32_t>(blockIdx.y) * 8 + g) * W,
	              c = own < p.cols ? own : (p.cols - 1) / W * W;
	const char *x = p.x + c * static_cast<int64_t>(sizeof(__half));
	const int4 *id = p.id + static_cast<int64_t>(item.group) * 4 + t;
	const uint4 *mask = p.mask + static_cast<int64_t>(item.group) * 4 + t;
	if (spoiled)
		return;
	float sums[W / 2][2][4] = {};
	tile_pack<W> now[4] = {}, next[4] = {};
	int4 next_id = {};
	uint4 counts = {}, next_counts = {};
	if (item.groups > 0) {
		next_id = __ldg(id);
		counts = __ldg(mask);
		gather_rows<W>(x, p.pitch, next_id, now);
	}
	if (item.groups > 1) {
		next_id = __ldg(id + 4);
		next_counts = __ldg(mask + 4);
	}
	for (int k = 0; k < item.groups; k++) {
		if (k + 1 < item.groups)
			gather_rows<W>(x, p.pitch, next_id, next);
		const uint4 these = counts;
		counts = next_counts;
		if (k + 2 < item.groups) {
			next_id = __ldg(id + (k + 2) * 4);
			next_counts = __ldg(mask + (k + 2) * 4);
		}
		add_group<W>(now, these, sums);
#pragma unroll
		for (int u = 0; u < 4; u++)
			now[u] = next[u];
	}
	if (own >= p.cols)
		return;
#pragma unroll
	for (int h = 0; h < 2; h++)
#pragma unroll
		for (int odd = 0; odd < 2; odd++) {
			float sum[W];
#pragma unroll
			for (int q = 0; q < W / 2; q++) {
				sum[2 * q] = sums[q][h][odd];
				sum[2 * q + 1] = sums[q][h][2 + odd];
			}
			put_part<W, EPILOGUE>(p, item, 8 * h + 2 * t + odd, c, sum);
		}
}
static_assert(sizeof(struct hg__tile_item) == sizeof(int4), "an item is one load");
static_assert(HG__TILE_ROWS == 16 && HG__TILE_COLUMNS == 16, "the shape of a multiplication");

/* ---- pass 2: windows of several items. A thread adds the slots of one column of one row, in order
 * ---- */

template <bool EPILOGUE>
static __global__ void __launch_bounds__(BLOCK)
    fold_tiles(const __grid_constant__ struct tile_problem p)
{
	after_previous();
	const int64_t s = own_piece() / HG__TILE_ROWS, index = own_piece() % HG__TILE_ROWS,
	              c = own_unit();
	if (s >= p.splits || c >= p.cols || *p.spoiled)
		return;
	const struct hg__tile_split split = p.split[s];
	const int64_t row = static_cast<int64_t>(split.window) * HG__TILE_ROWS + index;
	if (row >= p.rows)
		return;
	const float *slot = p.staging + index * p.lead + c;
	float total = 0.0f;
	for (int64_t k = split.first; k < split.last; k += FOLD_UNROLL) {
		float v[FOLD_UNROLL];
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			v[u] = k + u < split.last ? slot[(k + u) * HG__TILE_ROWS * p.lead] : 0.0f;
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			total = __fadd_rn(total, v[u]);
	}
	float out[1] = {__fmul_rn(row_factor(p, static_cast<int32_t>(row)), total)};
	put_row<EPILOGUE>(p, static_cast<int32_t>(row), static_cast<int32_t>(c), out);
}

/* ---- launch ---- */

template <bool EPILOGUE> static hg_status queue_tiles(hg_context *ctx, const struct tile_problem &p)
{
	const unsigned blocks = grid_for(p.items, BLOCK / 32);
	if (p.cols > 32)
		HG__TRY(launch(ctx, "spmm: tiles", sum_tiles<8, EPILOGUE>,
		               dim3(blocks, grid_for(p.cols, 64)), BLOCK, p));
	else
		HG__TRY(launch(ctx, "spmm: tiles", sum_tiles<4, EPILOGUE>, blocks, BLOCK, p));
	if (p.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.splits * HG__TILE_ROWS, p.cols);
	return launch(ctx, "spmm: fold of tiles", fold_tiles<EPILOGUE>, splits.grid, splits.block, p);
}

bool hg__cuda_spmm_tiles_fit(const struct hg__spmm_args *a)
{
	const bool halves = a->x.data && a->x.dtype == HG_F16 && a->y.dtype == HG_F16,
	           scaled_late = a->col_scale && !a->scale_first;
	return a->csr.plan && a->csr.plan->tiles && a->accumulate == HG_ACC_F32 && halves &&
	       wide(a->x) && wide(a->y) && hg__leading(a->y.cols) % 8 == 0 && !a->w.data &&
	       !scaled_late;
}

bool hg__cuda_spmm_tiles_pay(hg_context *ctx, const struct hg__spmm_args *a)
{
	if (a->y.cols < HG__TILE_WIDTH || !hg__cuda_spmm_tiles_fit(a))
		return false;
	const struct hg__tiles &t = *a->csr.plan->tiles;
	hg__log_once(ctx, HG__LOG_TILES, HG_LOG_DEBUG, "spmm: tiles: 16 rows use a column %.2f times",
	             static_cast<double>(a->csr.m) / static_cast<double>(t.columns));
	return true;
}

hg_status hg__cuda_spmm_tiles(hg_context *ctx, const struct hg__spmm_args *a,
                              const struct hg__mat *x, const unsigned *spoiled, float *staging)
{
	const struct hg__tiles &t = *a->csr.plan->tiles;
	struct tile_problem p = {};
	p.item = t.item;
	p.split = t.split;
	p.items = t.items;
	p.splits = t.splits;
	p.id = reinterpret_cast<const int4 *>(t.id);
	p.mask = reinterpret_cast<const uint4 *>(t.mask);
	p.x = data_of<const char>(*x);
	p.pitch = static_cast<uint32_t>(x->ld * static_cast<int64_t>(sizeof(__half)));
	p.y = data_of<__half>(a->y);
	p.ldy = a->y.ld;
	p.rows = static_cast<int32_t>(a->y.rows);
	p.cols = static_cast<int32_t>(a->y.cols);
	p.row_scale = a->row_scale;
	p.alpha = a->alpha;
	p.staging = staging;
	p.lead = (a->y.cols + 7) / 8 * 8;
	p.spoiled = spoiled;
	p.epilogue = sum_epilogue_of(a->epilogue);
	p.guard = guard_of(a->overflow, a->y.cols);
	return hg__has_sum_epilogue(&a->epilogue) ? queue_tiles<true>(ctx, p)
	                                          : queue_tiles<false>(ctx, p);
}
