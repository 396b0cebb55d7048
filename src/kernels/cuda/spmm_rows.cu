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
 * On a large graph of short rows a sub-warp has several rows in flight, each with few entries per
 * round, so that more rows fit on a multiprocessor. The sums are computed in CSR order. */

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

/* On a graph of many short rows a lane takes two rows of halves, or one of floats, in rounds of
 * SHORT entries. Measured on an H200, halves, a GIN's aggregation of molecules-4k (2.1 edges a
 * node) in us with 64 and with 32 columns: 14.7 and 9.1 with two rows, 18.7 and 12.8 with
 * four, and 18.9 and 11.5 by the parts of the plan; a step of 12 layers of GCN with 128 columns
 * takes 1.55, 1.80 and 1.61 ms. */
constexpr int SHORT = 4;
template <typename T> constexpr int SHORT_ROWS = 4 / static_cast<int>(sizeof(T));

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
			for (int i = 0; i < 8; i++)
				v[i] = widen(narrow<T>(__fmul_rn(s[u], v[i])));
		const float f = factor(p, u);
#pragma unroll
		for (int i = 0; i < 8; i++)
			acc[i] = __fmaf_rn(f, v[i], acc[i]);
	}
};

/* ROWS: the rows of a lane, each of which takes rounds of MOST entries. Rows that are next to one
 * another belong to neighbouring sub-warps. */
template <typename T, typename W, bool SCALE, int ROWS, int MOST>
__global__ void __launch_bounds__(ROW_BLOCK, MOST == SHORT ? 4 : 2)
    spmm_rows(const __grid_constant__ struct row_problem p)
{
	const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y * ROWS + threadIdx.y,
	              own = own_unit() * 8, c = own < p.cols ? own : (p.cols - 1) / 8 * 8;
	const int64_t head = has_weights<W> && p.head_cols < p.cols
	                         ? static_cast<uint32_t>(c) / static_cast<uint32_t>(p.head_cols)
	                         : 0;
	int begin[ROWS] = {}, length[ROWS] = {};
	struct row_round<T, W, SCALE, MOST> round[ROWS];
	raw<T, 8> z[ROWS];
	float r[ROWS];
	/* the entries of a round, of which `done` are before it */
	const auto left = [&](int u, int done) {
		return done < length[u] ? (length[u] - done < MOST ? length[u] - done : MOST) : 0;
	};
#pragma unroll
	for (int u = 0; u < ROWS; u++) {
		const int64_t row = first + u * static_cast<int64_t>(blockDim.y);
		const bool exists = row < p.rows;
		if (exists) {
			begin[u] = static_cast<int>(p.rowptr[row]);
			length[u] = static_cast<int>(p.rowptr[row + 1] - p.rowptr[row]);
		}
		r[u] = p.row_scale && exists ? p.row_scale[row] : 1.0f;
	}
#pragma unroll
	for (int u = 0; u < ROWS; u++)
		round[u].ask(p, begin[u], left(u, 0));
	after_previous(); /* reads only the graph, so it may precede */
	const float of_z = p.has_epilogue ? p.epilogue.factor_of_z() : 0.0f;
#pragma unroll
	for (int u = 0; u < ROWS; u++) {
		const int64_t row = first + u * static_cast<int64_t>(blockDim.y);
		z[u] = {};
		if (p.has_epilogue && p.epilogue.z && row < p.rows)
			z[u] = *reinterpret_cast<const raw<T, 8> *>(static_cast<const T *>(p.epilogue.z) +
			                                            row * p.ldy + c);
		round[u].read(p, left(u, 0), c, head);
	}
#pragma unroll
	for (int u = 0; u < ROWS; u++) {
		const int64_t row = first + u * static_cast<int64_t>(blockDim.y);
		float acc[8] = {};
		round[u].add(p, left(u, 0), acc);
		for (int done = MOST; __any_sync(0xffffffffu, done < length[u]); done += MOST) {
			const int rest = left(u, done), at = rest ? begin[u] + done : begin[u];
			round[u].ask(p, at, rest);
			round[u].read(p, rest, c, head);
			round[u].add(p, rest, acc);
		}
		if (row >= p.rows || own >= p.cols)
			continue;
		const float scale = __fmul_rn(p.alpha, r[u]);
#pragma unroll
		for (int i = 0; i < 8; i++)
			acc[i] = length[u] > 0 ? __fmul_rn(scale, acc[i]) : 0.0f;
		const int64_t at = row * p.ldy + c;
		if (p.has_epilogue) {
			float more[8];
			unpack(z[u], more);
			p.epilogue.put_after(static_cast<T *>(p.y), at, static_cast<int32_t>(row),
			                     static_cast<int32_t>(c), acc, more, of_z, p.guard);
		} else if (sizeof(T) < sizeof(float) && p.y_full)
			store<8>(static_cast<float *>(p.y) + at, acc);
		else {
			p.guard.check(c, acc);
			store<8>(static_cast<T *>(p.y) + at, acc);
		}
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
/* The mean number of entries up to which rows are short: two rounds. Derived, not measured. */
constexpr int64_t SHORT_MEAN = 8;

template <typename T, typename W, int ROWS, int MOST, int MOST_SCALED>
hg_status launch_with(hg_context *ctx, const struct row_problem &p, unsigned lanes)
{
	const dim3 block(lanes, ROW_BLOCK / lanes),
	    grid(grid_for(p.rows, static_cast<int64_t>(block.y) * ROWS),
	         grid_for((p.cols + 7) / 8, lanes));
	const auto kernel =
	    p.col_scale ? spmm_rows<T, W, true, ROWS, MOST_SCALED> : spmm_rows<T, W, false, ROWS, MOST>;
	return launch(ctx, "spmm", kernel, grid, block, p);
}

template <typename T, typename W>
hg_status launch_rows(hg_context *ctx, const struct row_problem &p, unsigned lanes, bool small)
{
	return small ? launch_with<T, W, 1, ROUND<T, W, false>, ROUND<T, W, true>>(ctx, p, lanes)
	             : launch_with<T, W, SHORT_ROWS<T>, SHORT, SHORT>(ctx, p, lanes);
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
			return launch_rows<T, no_weights>(ctx, p, lanes_for(a), is_small(a));
		return with_float(ctx, "spmm", a->w.dtype, [&](auto weight) {
			return launch_rows<T, decltype(weight)>(ctx, p, lanes_for(a), is_small(a));
		});
	});
}
