/* Aggregation on a small graph, or one of short rows. A sub-warp takes whole rows, a lane eight
 * columns of them:
 *
 *     Y[i, c] = alpha r_i sum over entries p of row i of f_p X[col p, c]
 *     f_p = w[edge p, head of c] s_j, without the factors that the call does not have
 *
 * With scale_first, X[j, c] is replaced by narrow(s_j X[j, c]) and f_p = w.
 *
 * On a small graph the time is latency: one load that takes a thousand cycles costs as much as all
 * the arithmetic. A sub-warp therefore processes up to ROUND entries of its row per round, and a
 * round has three loads that depend on each other, whatever the call asks for: the row pointers;
 * the column ids and the indices of the weights; the gathered rows, weights and scales. The first
 * two read only the graph, so they begin while the previous kernel still runs. A row of up to ROUND
 * entries takes one round, where a loop over four entries at a time would wait once per iteration.
 * On a large graph of short rows a round has few entries, so that more rows fit on a
 * multiprocessor. The sums are computed in CSR order. */

#include "kernels/cuda/spmm_rows.cuh"

#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/sum_epilogue.cuh"

namespace
{

struct row_problem {
	int64_t rows, cols;
	const int64_t *rowptr;
	const uint32_t *edge;
	const int32_t *col;
	const void *x, *w;
	void *y;
	uint32_t pitch; /* bytes between rows of X */
	int64_t ldw, ldy, head_cols;
	bool scale_first;
	const float *row_scale, *col_scale;
	float alpha;
	bool y_full; /* Y is f32, whatever the type of X */
	bool has_epilogue;
	struct sum_epilogue epilogue;
	struct guard guard;
};

/* x and y are two numbers as T holds them. Halves are narrowed by one instruction. */
template <typename T> __device__ inline void narrow_two(float a, float b, float &x, float &y)
{
	x = a;
	y = b;
	if constexpr (sizeof(T) < sizeof(float)) {
		const float2 f = __half22float2(__floats2half2_rn(a, b));
		x = f.x;
		y = f.y;
	}
}

/* Entries that are loaded together, at most. A round stops at the chunk in which the longest row of
 * the warp ends. */
constexpr int MOST_CHUNK = 8;
/* Threads of a block. The number is small, so that 2,708 rows of 8 lanes spread over all 132
 * multiprocessors, each with room for two blocks of 255 registers a thread. */
constexpr int ROW_BLOCK = 128;

/* The type of the weights where the call has none. */
struct no_weights {
};
template <typename W> constexpr bool has_weights = true;
template <> constexpr bool has_weights<no_weights> = false;

/* Entries of a round, a multiple of MOST_CHUNK. The gathers of a lane take 512 bytes, half of the
 * registers that a thread can have, or less where an entry also has a weight or a scale, so that
 * everything stays in registers. */
template <typename T, typename W, bool SCALE>
constexpr int ROUND = (has_weights<W> && SCALE            ? 256
                       : has_weights<W> && sizeof(T) == 2 ? 384
                                                          : 512) /
                      (8 * static_cast<int>(sizeof(T)));

/* The same on a graph of many short rows, where the registers of a thread must leave room for other
 * warps: 64 of them, eight blocks on a multiprocessor. Measured on an H200 with halves, ms of a
 * step on molecules-4k (2.1 edges a node; GCN of 12 layers and 128 columns, GIN of 12 and 32, of 5
 * and 64, GraphSAGE of 12 and 32):
 *
 *     rounds of 2 entries                          1.367   0.929   0.717   0.753
 *     of 4                                         1.415   0.923   0.715   0.750
 *     of 4, two rows a lane, four blocks           1.544   0.935   0.726   0.784
 *     of 2, two packs of columns a lane            1.356   0.974   0.717   0.794 */
constexpr int SHORT = 2, SHORT_BLOCKS = 8;

/* The loads of one round of up to MOST entries. Loading is separate from use, so that all loads are
 * in flight together. W: the type of the weights. SCALE: columns have a factor. */
template <typename T, typename W, bool SCALE, int MOST> struct row_round {
	static constexpr bool WEIGHT = has_weights<W>;
	static constexpr int CHUNK = MOST < MOST_CHUNK ? MOST : MOST_CHUNK;
	int32_t id[MOST], index[MOST];
	raw<T, 8> bits[MOST];
	W w[MOST];
	float s[MOST];

	/* Calls chunk(k) for each chunk that some row of the warp reaches. */
	template <typename F> static __device__ void each(int left, F chunk)
	{
#pragma unroll
		for (int k = 0; k < MOST; k += CHUNK)
			if (__any_sync(0xffffffffu, left > k))
				chunk(k);
	}
	/* Loads what depends on the graph alone: column ids and indices of weights. */
	__device__ void ask(const struct row_problem &p, int64_t first, int left)
	{
		each(left, [&](int k) {
#pragma unroll
			for (int u = k; u < k + CHUNK; u++)
				id[u] = u < left ? __ldg(p.col + first + u) : 0;
			if (WEIGHT)
#pragma unroll
				for (int u = k; u < k + CHUNK; u++)
					index[u] = u < left && p.edge ? static_cast<int32_t>(__ldg(p.edge + first + u))
					                              : static_cast<int32_t>(first + u);
		});
	}
	/* Loads everything else. Loads of one kind stand together, because the compiler then uses
	 * predicates and no branches. */
	__device__ void read(const struct row_problem &p, int left, int64_t c, int64_t head)
	{
		const char *x = reinterpret_cast<const char *>(static_cast<const T *>(p.x) + c);
		each(left, [&](int k) {
#pragma unroll
			for (int u = k; u < k + CHUNK; u++) {
				bits[u] = {};
				if (u < left)
					bits[u] = fetch<8>(reinterpret_cast<const T *>(
					    x + static_cast<uint64_t>(static_cast<uint32_t>(id[u])) * p.pitch));
			}
			if constexpr (WEIGHT)
#pragma unroll
				for (int u = k; u < k + CHUNK; u++)
					w[u] = u < left ? __ldg(static_cast<const W *>(p.w) + index[u] * p.ldw + head)
					                : W(0.0f);
			if constexpr (SCALE)
#pragma unroll
				for (int u = k; u < k + CHUNK; u++)
					s[u] = u < left ? __ldg(p.col_scale + id[u]) : 0.0f;
		});
	}
	__device__ float factor(const struct row_problem &p, int u) const
	{
		float f = 1.0f;
		if constexpr (WEIGHT)
			f = widen(w[u]);
		return SCALE && !p.scale_first ? __fmul_rn(f, s[u]) : f;
	}
	/* Entries beyond the end of the row add 0. That changes no sum, because a sum that begins with
	 * +0 is never -0. */
	__device__ void add(const struct row_problem &p, int left, float (&acc)[8]) const
	{
		each(left, [&](int k) {
#pragma unroll
			for (int u = k; u < k + CHUNK; u++)
				add_term(p, u, acc);
		});
	}
	/* Adds one entry. A product with 1 is exact, so without factors this is a plain sum. */
	__device__ void add_term(const struct row_problem &p, int u, float (&acc)[8]) const
	{
		float v[8];
		unpack(bits[u], v);
		if (SCALE && p.scale_first)
#pragma unroll
			for (int i = 0; i < 8; i += 2)
				narrow_two<T>(__fmul_rn(s[u], v[i]), __fmul_rn(s[u], v[i + 1]), v[i], v[i + 1]);
		const float f = factor(p, u);
#pragma unroll
		for (int i = 0; i < 8; i++)
			acc[i] = __fmaf_rn(f, v[i], acc[i]);
	}
};

template <typename T, typename W, bool SCALE, int MOST>
__global__ void __launch_bounds__(ROW_BLOCK, MOST == SHORT ? SHORT_BLOCKS : 2)
    spmm_rows(const __grid_constant__ struct row_problem p)
{
	const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y,
	              own = own_unit() * 8, c = own < p.cols ? own : (p.cols - 1) / 8 * 8;
	const int64_t head = has_weights<W> && p.head_cols < p.cols
	                         ? static_cast<uint32_t>(c) / static_cast<uint32_t>(p.head_cols)
	                         : 0;
	const bool exists = row < p.rows;
	int begin = 0, length = 0;
	struct row_round<T, W, SCALE, MOST> round;
	if (exists) {
		begin = static_cast<int>(p.rowptr[row]);
		length = static_cast<int>(p.rowptr[row + 1] - p.rowptr[row]);
	}
	const float r = p.row_scale && exists ? p.row_scale[row] : 1.0f;
	/* the entries of a round, of which `done` are before it */
	const auto left = [&](int done) {
		return done < length ? (length - done < MOST ? length - done : MOST) : 0;
	};
	round.ask(p, begin, left(0));
	after_previous(); /* reads only the graph, so it may precede */
	const float of_z = p.has_epilogue ? p.epilogue.factor_of_z() : 0.0f;
	const int64_t to = row * p.ldy + c;
	raw<T, 8> z = {};
	if (p.has_epilogue && p.epilogue.z && exists)
		z = *reinterpret_cast<const raw<T, 8> *>(static_cast<const T *>(p.epilogue.z) + to);
	float acc[8] = {};
	round.read(p, left(0), c, head);
	round.add(p, left(0), acc);
	for (int done = MOST; __any_sync(0xffffffffu, done < length); done += MOST) {
		const int rest = left(done), at = rest ? begin + done : begin;
		round.ask(p, at, rest);
		round.read(p, rest, c, head);
		round.add(p, rest, acc);
	}
	if (!exists || own >= p.cols)
		return;
	const float scale = __fmul_rn(p.alpha, r);
#pragma unroll
	for (int i = 0; i < 8; i++)
		acc[i] = length > 0 ? __fmul_rn(scale, acc[i]) : 0.0f;
	if (p.has_epilogue) {
		float more[8];
		unpack(z, more);
		p.epilogue.put_after(static_cast<T *>(p.y), to, static_cast<int32_t>(row),
		                     static_cast<int32_t>(c), acc, more, of_z, p.guard);
	} else if (sizeof(T) < sizeof(float) && p.y_full)
		store<8>(static_cast<float *>(p.y) + to, acc);
	else {
		p.guard.check(c, acc);
		store<8>(static_cast<T *>(p.y) + to, acc);
	}
}

/* Lanes per row: at least four, so that a matrix with few columns does not end up on a handful of
 * multiprocessors. */
unsigned lanes_for(const struct hg__spmm_args *a)
{
	const int64_t packs = (a->y.cols + 7) / 8;
	unsigned lanes = 4;
	while (lanes < 32 && lanes < packs)
		lanes *= 2;
	return lanes;
}

/* The limit of one row for each lane, in lanes: twice as many as a GPU runs at once, which is two
 * blocks on each of 132 multiprocessors. Above that, other rows run while one row waits, and the
 * number of rows per multiprocessor matters more than how many loads each of them has in flight.
 * Derived, not measured. */
constexpr int64_t MOST_LANES = 2 * 2 * 132 * ROW_BLOCK;
bool is_small(const struct hg__spmm_args *a)
{
	return a->y.rows * static_cast<int64_t>(lanes_for(a)) <= MOST_LANES;
}
/* The mean number of entries up to which rows are short. Derived, not measured. */
constexpr int64_t SHORT_MEAN = 8;

template <typename T, typename W, bool SCALE>
hg_status launch_rows(hg_context *ctx, const struct row_problem &p, unsigned lanes, bool small)
{
	const dim3 block(lanes, ROW_BLOCK / lanes),
	    grid(grid_for(p.rows, block.y), grid_for((p.cols + 7) / 8, lanes));
	const auto kernel =
	    small ? spmm_rows<T, W, SCALE, ROUND<T, W, SCALE>> : spmm_rows<T, W, SCALE, SHORT>;
	return launch(ctx, "spmm", kernel, grid, block, p);
}

template <typename T, typename W>
hg_status launch_scaled(hg_context *ctx, const struct row_problem &p, unsigned lanes, bool small)
{
	return p.col_scale ? launch_rows<T, W, true>(ctx, p, lanes, small)
	                   : launch_rows<T, W, false>(ctx, p, lanes, small);
}

} // namespace

bool hg__cuda_spmm_rows_takes(const struct hg__spmm_args *a)
{
	const int64_t heads = a->heads > 0 ? a->heads : 1, head_cols = a->y.cols / heads;
	const bool packs = wide(a->x) && wide(a->y) && wide(a->epilogue.z) && wide(a->epilogue.b) &&
	                   (!a->w.data || heads == 1 || head_cols % 8 == 0);
	return a->accumulate == HG_ACC_F32 && a->x.data && packs && a->csr.plan->splits == 0 &&
	       a->csr.m <= INT32_MAX && a->y.cols <= 256 &&
	       (is_small(a) || a->csr.m <= SHORT_MEAN * a->csr.rows);
}

hg_status hg__cuda_spmm_rows(hg_context *ctx, const struct hg__spmm_args *a)
{
	const int64_t heads = a->heads > 0 ? a->heads : 1;
	const struct row_problem p = {a->y.rows,
	                              a->y.cols,
	                              a->csr.rowptr,
	                              a->csr.edge,
	                              a->csr.col,
	                              a->x.data,
	                              a->w.data,
	                              a->y.data,
	                              static_cast<uint32_t>(a->x.ld) *
	                                  static_cast<uint32_t>(hg_dtype_size(a->x.dtype)),
	                              a->w.ld,
	                              a->y.ld,
	                              a->y.cols / heads,
	                              a->scale_first != 0,
	                              a->row_scale,
	                              a->col_scale,
	                              a->alpha,
	                              a->y.dtype == HG_F32,
	                              hg__has_sum_epilogue(&a->epilogue) != 0,
	                              sum_epilogue_of(a->epilogue),
	                              guard_of(a->overflow, a->y.cols)};
	return with_float(ctx, "spmm", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		if (!p.w)
			return launch_scaled<T, no_weights>(ctx, p, lanes_for(a), is_small(a));
		return with_float(ctx, "spmm", a->w.dtype, [&](auto weight) {
			return launch_scaled<T, decltype(weight)>(ctx, p, lanes_for(a), is_small(a));
		});
	});
}
