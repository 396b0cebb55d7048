/* Aggregation:
 *
 *     Y[i, c] = alpha * r_i * sum over entries p of row i of f[p, head of c] * X[j, c]
 *     f = w[edge p, head] * s_j,    j = col p
 *
 * With scale_first, X is replaced by narrow(s_j X[j, c]) first, and f = w.
 *
 * There are three implementations, chosen at the end of this file: tiles, where the plan has them
 * (spmm_tiles.cu); whole rows, on small graphs (spmm_rows.cu); and otherwise the parts of the plan
 * by length, in this file. The last one also computes what tiles cannot, where X is not finite. A
 * call without X goes to edge_sum.cu.
 *
 * A lane has W = 8 columns (one 16-byte load of halves), or one column where rows have 1, 2 or 4
 * elements. In every column sums are added strictly in CSR order, so the CPU kernel produces the
 * same bits (except for tiles).
 *
 *     F32              acc = fma(f, x, acc);  Y = narrow(alpha * r * acc)
 *     F16_DISCRETIZED  acc += f * x in f16; at every entry number divisible by HG_BATCH_EDGES, and
 *                      at the end of a part, total += narrow(alpha * r) * acc, acc = 0
 *     F16_NAIVE        one f16 sum for the whole row, so one item per row; scaled once at the end
 *
 * In F32 a call may have an epilogue, which put_row applies. */

#include "kernels/cuda/spmm.cuh"

#include "kernels/cuda/edge_sum.cuh"
#include "kernels/cuda/spmm_prepare.cuh"
#include "kernels/cuda/spmm_rows.cuh"
#include "kernels/cuda/spmm_sum.cuh"
#include "kernels/cuda/spmm_tiles.cuh"

/* ---- pass 1: parts ---- */

/* Whether this kernel runs after tiles, to compute what they could not. */
template <typename T, int MODE>
constexpr bool AFTER_TILES = sizeof(T) == sizeof(__half) && MODE == HG_ACC_F32;

template <typename T, int W, int MODE, int FACTOR, bool FEW, bool EPILOGUE>
static __global__ void __launch_bounds__(BLOCK, RESIDENT<T, W, FACTOR>)
    spmm_parts(const __grid_constant__ struct spmm_problem p)
{
	after_previous();
	if (AFTER_TILES<T, MODE> && W == 8 && FACTOR == UNIT && p.spoiled && *p.spoiled == 0)
		return;
	struct lane_sum<T, W, MODE, FACTOR, FEW, EPILOGUE> lane(p);
	walk_by_length<UNROLL<T, W, FACTOR>, FEW,
	               (FACTOR >= BY_LANE || MODE == HG_ACC_F16_DISCRETIZED)>(p.parts, p.col, lane);
}

/* ---- pass 2: rows that lie in several items. A lane adds the slots of one column in order ---- */

template <typename T, int MODE, bool EPILOGUE>
static __global__ void __launch_bounds__(BLOCK) spmm_fold(const struct spmm_problem p)
{
	after_previous();
	using N = typename accumulator<MODE>::type;
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols || (AFTER_TILES<T, MODE> && p.spoiled && *p.spoiled == 0))
		return;
	const int32_t row = p.plan.split_row[s];
	N total = N(0.0f);
	each_slot(p.plan, s, p.staging, p.lead, c,
	          [&](float part) { total = add(total, narrow<N>(part)); });
	float out[1] = {finished<MODE>(total, mul(p.alpha, row_factor(p, row)))};
	put_row<T, EPILOGUE>(p, row, c, out);
}

/* ---- launch ---- */

typedef void (*spmm_kernel)(struct spmm_problem);

constexpr int64_t LEAST_LANES = 4; /* of a sub-warp, as by_length.cuh needs */

/* A kernel for sub-warps of 4 lanes, one for more lanes, and the number of gathers in their steps.
 * If they are NULL, the BY_LANE kernels compute the call. */
struct kernel_pair {
	spmm_kernel few, many;
	int unroll;
};
template <typename T, int W, int MODE, int FACTOR, bool EPILOGUE = false>
static constexpr struct kernel_pair kernel_pair_of()
{
	return {spmm_parts<T, W, MODE, FACTOR, true, EPILOGUE>,
	        spmm_parts<T, W, MODE, FACTOR, false, EPILOGUE>, UNROLL<T, W, FACTOR>};
}

/* All kernels of one type and accumulation. f16 accumulation exists for comparisons and not for
 * speed, so it has fewer specialisations. */
struct kernel_set {
	struct kernel_pair wide[FACTORS], narrow[2];
	spmm_kernel fold;
};
template <typename T, bool EPILOGUE> static constexpr struct kernel_set kernel_set_in_f32()
{
	constexpr int ACC = HG_ACC_F32;
	constexpr struct kernel_pair none = {},
	                             halves =
	                                 sizeof(T) == sizeof(__half)
	                                     ? kernel_pair_of<__half, 8, ACC, WEIGHT_F16, EPILOGUE>()
	                                     : none;
	return {{kernel_pair_of<T, 8, ACC, UNIT, EPILOGUE>(), halves,
	         kernel_pair_of<T, 8, ACC, WEIGHT_F32, EPILOGUE>(),
	         kernel_pair_of<T, 8, ACC, SCALED, EPILOGUE>(),
	         kernel_pair_of<T, 8, ACC, ROUNDED, EPILOGUE>(),
	         kernel_pair_of<T, 8, ACC, BY_LANE, EPILOGUE>(),
	         kernel_pair_of<T, 8, ACC, BY_COLUMN, EPILOGUE>()},
	        {kernel_pair_of<T, 1, ACC, UNIT, EPILOGUE>(),
	         kernel_pair_of<T, 1, ACC, BY_LANE, EPILOGUE>()},
	        spmm_fold<T, ACC, EPILOGUE>};
}
template <int MODE> static constexpr struct kernel_set kernel_set_in_f16()
{
	return {{kernel_pair_of<__half, 8, MODE, UNIT>(),
	         {},
	         {},
	         {},
	         {},
	         kernel_pair_of<__half, 8, MODE, BY_LANE>(),
	         kernel_pair_of<__half, 8, MODE, BY_COLUMN>()},
	        {kernel_pair_of<__half, 1, MODE, UNIT>(), kernel_pair_of<__half, 1, MODE, BY_LANE>()},
	        spmm_fold<__half, MODE, false>};
}
/* The kernels by type and accumulation, in the order of hg_dtype and hg_accumulate, and those with
 * an epilogue by type. */
static constexpr struct kernel_set kernel_sets[2][HG_ACC_COUNT] = {
    {kernel_set_in_f32<__half, false>(), kernel_set_in_f16<HG_ACC_F16_DISCRETIZED>(),
     kernel_set_in_f16<HG_ACC_F16_NAIVE>()},
    {kernel_set_in_f32<float, false>(), {}, {}},
};
static constexpr struct kernel_set with_epilogue[2] = {kernel_set_in_f32<__half, true>(),
                                                       kernel_set_in_f32<float, true>()};

/* A set has the kernels that kernel_pair_for falls back on, and those of narrow rows. */
static constexpr bool is_whole(const struct kernel_set &set)
{
	for (const struct kernel_pair &pair :
	     {set.wide[UNIT], set.wide[BY_LANE], set.wide[BY_COLUMN], set.narrow[0], set.narrow[1]})
		if (!pair.few || !pair.many)
			return false;
	return set.fold != nullptr;
}
static_assert(every(kernel_sets[HG_F16], is_whole), "a hole");
static_assert(is_whole(kernel_sets[HG_F32][HG_ACC_F32]), "sums of f32 are f32");
static_assert(every(with_epilogue, is_whole), "a hole");

/* The kernels of a call that hg__spmm_supported accepts. */
static const struct kernel_set *kernel_set_of(const struct hg__spmm_args *a)
{
	return hg__has_sum_epilogue(&a->epilogue) ? &with_epilogue[a->x.dtype]
	                                          : &kernel_sets[a->x.dtype][a->accumulate];
}

/* Z and b are read with Y's type and layout. */
static bool epilogue_fits(const struct hg__spmm_args *a)
{
	const struct hg__mat &z = a->epilogue.z, &b = a->epilogue.b, &y = a->y;
	return (!z.data ||
	        (z.dtype == y.dtype && z.rows == y.rows && z.cols == y.cols && z.ld == y.ld)) &&
	       (!b.data || (b.dtype == y.dtype && b.cols == y.cols));
}

static uint32_t pitch_of(const struct hg__mat &x)
{
	return static_cast<uint32_t>(x.ld * static_cast<int64_t>(hg_dtype_size(x.dtype)));
}

static struct spmm_problem problem_of(const struct hg__spmm_args *a)
{
	struct spmm_problem p = {};
	p.plan = plan_of(a->csr);
	p.col = a->csr.col;
	p.edge = a->csr.edge;
	p.x = a->x.data;
	p.pitch = pitch_of(a->x);
	p.w = a->w.data;
	p.ldw = a->w.ld;
	p.w_half = a->w.dtype == HG_F16;
	p.y = a->y.data;
	p.y_full = a->y.dtype == HG_F32;
	p.ldy = a->y.ld;
	p.cols = a->y.cols;
	p.heads = a->heads > 0 ? a->heads : 1;
	p.head_cols = p.cols / p.heads;
	p.row_scale = a->row_scale;
	p.col_scale = a->col_scale;
	p.alpha = a->alpha;
	p.lead = hg__leading(p.cols);
	p.epilogue = sum_epilogue_of(a->epilogue);
	p.guard = guard_of(a->overflow, a->y.cols);
	return p;
}

/* The kernels for the factors of a call. Weights in the order of the entries, one per edge, are
 * loaded in vectors. */
static const struct kernel_pair *kernel_pair_for(const struct kernel_set *set,
                                                 const struct spmm_problem &p, bool by_eight,
                                                 bool rounded)
{
	const bool plain = !p.w && !p.col_scale,
	           in_order = p.ldw == 1 && !p.edge && reinterpret_cast<uintptr_t>(p.w) % 16 == 0;
	if (!by_eight)
		return &set->narrow[!plain];
	int factor = p.heads == 1 || p.head_cols % 8 == 0 ? BY_LANE : BY_COLUMN;
	if (plain)
		factor = UNIT;
	else if (!p.w)
		factor = rounded ? ROUNDED : SCALED;
	else if (p.w && p.heads == 1 && !p.col_scale && in_order)
		factor = p.w_half ? WEIGHT_F16 : WEIGHT_F32;
	return set->wide[factor].many ? &set->wide[factor] : &set->wide[BY_LANE];
}

/* The largest number of lanes of a sub-warp. Wider rows take several passes. Measured on an H200,
 * f16, F = 128, in one run, with one pass of 256 bytes against two of 128: reddit-like 3.12 and
 * 2.99 ms, Kron-21 1.83 and 1.77, reddit-local 2.26 and 2.11, products-like 7.09 and 7.10. In f32 a
 * pass has 256 bytes, but 128 if the rows that are gathered do not fit the second-level cache and
 * 128 bytes of each do. Only half of that cache counts, 30 MB of 60, because a line that is
 * gathered for one half of the chip is kept by that half. */
static unsigned most_lanes(const hg_context *ctx, const struct spmm_problem &p,
                           const struct hg__spmm_args *a)
{
	const int64_t l2 = static_cast<const hg__cuda_state *>(ctx->state)->l2_bytes / 2,
	              element = static_cast<int64_t>(hg_dtype_size(a->x.dtype));
	return element == sizeof(float) && a->csr.cols * p.cols * element > l2 &&
	               a->csr.cols * 128 <= l2
	           ? 4
	           : 8;
}

/* Writes X with scaled rows to scratch memory. The rows are dense if they then stay in the cache.
 * Otherwise they are padded, so that a row touches as few lines as possible. Measured on an H200,
 * dense against padded: GCN with 41 columns (96 or 128 bytes) on reddit-like 1.47 and 1.56 ms, with
 * 47 columns on products-like 4.61 and 4.06. */
static hg_status scale_first(hg_context *ctx, const struct hg__spmm_args *a, struct spmm_problem *p,
                             void *memory, unsigned *spoiled)
{
	const int64_t close = p->lead * static_cast<int64_t>(hg_dtype_size(a->x.dtype)) * a->x.rows;
	const bool fits = close <= static_cast<const hg__cuda_state *>(ctx->state)->l2_bytes / 2;
	const struct hg__mat z = {memory, a->x.rows, a->x.cols,
	                          fits ? p->lead : hg__scaled_lead(a->x.cols, a->x.dtype), a->x.dtype};
	HG__TRY(hg__cuda_scale_rows(ctx, &a->x, a->col_scale, &z, spoiled));
	p->x = memory;
	p->pitch = pitch_of(z);
	p->col_scale = nullptr;
	return HG_OK;
}

/* Writes the weights, one per edge, to scratch memory in the order of the entries. */
static hg_status order_weights(hg_context *ctx, const struct hg__spmm_args *a,
                               struct spmm_problem *p, void *memory)
{
	HG__TRY(hg__cuda_order_weights(ctx, &a->csr, &a->w, memory));
	p->w = memory;
	p->edge = nullptr;
	return HG_OK;
}

/* Below SMALL_X bytes of X, a separate kernel that scales X should cost more than scaling again for
 * every edge. Below FEW_ENTRIES entries the same holds for a kernel that orders the weights.
 * Derived, not measured: a launch takes about 2 us, in which an H200 moves 4 MiB twice, or looks up
 * half a million weights. */
constexpr int64_t SMALL_X = 1 << 22, FEW_ENTRIES = 1 << 19;

/* Clears the flag p->spoiled, which a later kernel sets if an element of X, scaled or not, is not
 * finite. */
static hg_status clear_spoiled(hg_context *ctx, struct spmm_problem *p, unsigned *spoiled)
{
	p->spoiled = spoiled;
	return cuda_status(ctx, cudaMemsetAsync(spoiled, 0, sizeof *spoiled, stream_of(ctx)),
	                   "spmm: flag");
}

/* The types of what scratch memory holds besides the staging rows: X with scaled rows, and one
 * weight for each edge, which may have to be put in the order of the entries. HG_DTYPE_COUNT:
 * none. */
static hg_dtype scaled_type(const struct hg__spmm_args *a)
{
	return a->x.data && a->scale_first && a->col_scale ? a->x.dtype : HG_DTYPE_COUNT;
}
static hg_dtype weight_type(const struct hg__spmm_args *a)
{
	return a->x.data && a->w.data && a->heads <= 1 && a->w.ld == 1 ? a->w.dtype : HG_DTYPE_COUNT;
}

size_t hg__cuda_spmm_workspace(const hg_context *, const struct hg__spmm_args *a)
{
	return hg__spmm_bytes(&a->csr, a->y.cols, scaled_type(a), weight_type(a));
}

/* Does once what would otherwise be done for every edge. Scratch memory holds X scaled, the ordered
 * weights, the staging rows and, for tiles, the flag. */
static hg_status prepare(hg_context *ctx, const struct hg__spmm_args *a,
                         const struct kernel_set *set, struct spmm_problem *p, bool by_eight,
                         bool tiled, bool *rounded)
{
	const hg_dtype x = scaled_type(a), w = weight_type(a);
	const bool scaled = x != HG_DTYPE_COUNT, one_weight = w != HG_DTYPE_COUNT;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_spmm_workspace(ctx, a), &memory));
	char *weights = static_cast<char *>(memory) + hg__scaled_bytes(&a->csr, p->cols, x);
	p->staging = reinterpret_cast<float *>(weights + hg__spmm_weight_bytes(&a->csr, w));
	unsigned *spoiled = tiled
	                        ? reinterpret_cast<unsigned *>(reinterpret_cast<char *>(p->staging) +
	                                                       hg__spmm_staging_bytes(&a->csr, p->cols))
	                        : nullptr;
	if (tiled)
		HG__TRY(clear_spoiled(ctx, p, spoiled));
	*rounded = scaled && by_eight && !tiled && !p->w && set->wide[ROUNDED].many &&
	           a->x.rows * p->pitch <= SMALL_X;
	if (scaled && !*rounded)
		HG__TRY(scale_first(ctx, a, p, memory, spoiled));
	else if (tiled)
		HG__TRY(hg__cuda_check_finite(ctx, &a->x, spoiled));
	if (one_weight && p->edge && !p->col_scale && by_eight &&
	    set->wide[p->w_half ? WEIGHT_F16 : WEIGHT_F32].many && a->csr.m > FEW_ENTRIES)
		HG__TRY(order_weights(ctx, a, p, weights));
	return HG_OK;
}

/* Queues the tiles. They compute the result if all of X is finite, and the kernels queued after
 * them compute it if not. The decision is made on the device, so captured work stays correct. */
static hg_status by_tiles(hg_context *ctx, const struct hg__spmm_args *a,
                          const struct spmm_problem &p)
{
	const struct hg__mat x = {const_cast<void *>(p.x), a->x.rows, a->x.cols,
	                          p.pitch / static_cast<int64_t>(sizeof(__half)), a->x.dtype};
	return hg__cuda_spmm_tiles(ctx, a, &x, p.spoiled, p.staging);
}

hg_status hg__cuda_spmm_parts(hg_context *ctx, const struct hg__spmm_args *a, bool tiled)
{
	const struct kernel_set *set = kernel_set_of(a);
	struct spmm_problem p = problem_of(a);
	if (p.cols % p.heads)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: %d heads do not divide %lld columns", p.heads,
		                static_cast<long long>(p.cols));
	HG__TRY(edge_columns_fit(ctx, "spmm", p.cols));
	const bool by_eight =
	    wide(a->x) && wide(a->y) && wide(a->epilogue.z) && wide(a->epilogue.b) && p.lead % 8 == 0;
	bool rounded = false;
	HG__TRY(prepare(ctx, a, set, &p, by_eight, tiled, &rounded));
	if (tiled)
		HG__TRY(by_tiles(ctx, a, p));

	const struct kernel_pair *pair = kernel_pair_for(set, p, by_eight, rounded);
	const int64_t units = by_eight ? (p.cols + 7) / 8 : p.cols;
	const bool whole_rows = a->accumulate == HG_ACC_F16_NAIVE;
	/* a plan whose items are rows lists no parts, and needs none */
	const bool listed = !whole_rows && !a->csr.plan->by_row;
	if (listed && !a->csr.plan->part)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: the plan of %lld rows does not list its parts",
		                static_cast<long long>(a->csr.rows));
	struct edge_grid shape =
	    edge_grid_of(1, units < LEAST_LANES ? LEAST_LANES : units, most_lanes(ctx, p, a));
	p.parts = part_list_of(a->csr, a->row_scale, listed, pair->unroll,
	                       !hg__has_sum_epilogue(&a->epilogue), shape.block.y);
	shape.grid.x = p.parts.blocks;
	HG__TRY(launch(ctx, "spmm", (shape.block.x == LEAST_LANES ? pair->few : pair->many), shape.grid,
	               shape.block, p));
	if (whole_rows || p.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.plan.splits, p.cols);
	return launch(ctx, "spmm: fold", set->fold, splits.grid, splits.block, p);
}

/* Sums edge values. That kernel does not check for overflow while it stores, so an f16 result is
 * checked here. */
static hg_status sum_edge_values(hg_context *ctx, const struct hg__spmm_args *a)
{
	const struct hg__guard_args guard = {a->y, a->overflow};
	const hg_status status = hg__cuda_edge_sum(ctx, a);
	return status >= 0 && a->overflow.word ? hg__cuda_guard(ctx, &guard) : status;
}

hg_status hg__cuda_spmm(hg_context *ctx, const struct hg__spmm_args *a)
{
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	HG__TRY(hg__spmm_supported(ctx, a));
	if (!a->x.data && a->csr.cols > 0)
		return sum_edge_values(ctx, a);
	if (!epilogue_fits(a))
		return misfit(ctx, "spmm", HG__ONE_FLOAT, a->y, a->epilogue.z, a->epilogue.b);
	if (!a->csr.plan || a->y.rows != a->csr.rows)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm: Y has %lld rows, the graph has %lld%s",
		                static_cast<long long>(a->y.rows), static_cast<long long>(a->csr.rows),
		                a->csr.plan ? "" : " and no plan");
	if (hg__cuda_spmm_tiles_pay(ctx, a))
		return hg__cuda_spmm_parts(ctx, a, true);
	return hg__cuda_spmm_rows_takes(a) ? hg__cuda_spmm_rows(ctx, a)
	                                   : hg__cuda_spmm_parts(ctx, a, false);
}
