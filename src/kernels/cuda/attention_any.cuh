/* How the attention kernels for any score and any shape iterate over a graph, and how they compute
 * scores.
 *
 * A sub-warp takes an item of the plan (parts.cuh) and one head, and its lanes share the columns of
 * the head: lane l has columns l, l + lanes, ... Elements are read one at a time, so nothing is
 * required of leading dimensions. Dot products end with a butterfly, so that each lane has the
 * score. A lane keeps the sums of LANE_COLUMNS columns; if a head is wider, further sub-warps,
 * neighbours in grid.y, take the other columns and compute the scores again.
 *
 * A score has the same bits in each kernel and from either end of the edge, because a butterfly
 * over more lanes than the head has columns adds zeros first. The number of lanes may therefore
 * depend on the columns of the values, too. */
#ifndef HG_KERNELS_CUDA_ATTENTION_ANY_CUH
#define HG_KERNELS_CUDA_ATTENTION_ANY_CUH

#include "kernels/cuda/attention.cuh"

/* Sums of a lane: eight, and eight more in the backward pass, so that a head of 256 columns is one
 * sub-warp's. */
constexpr int LANE_COLUMNS = 8;
/* Edges whose rows are in flight together. (Other numbers were not measured, because these kernels
 * serve the shapes that no other takes.) */
constexpr int STEP = 4;

/* ---- sub-warps ---- */

/* A grid of sub-warps for pieces (items or split rows). width: the columns of a head. */
static inline struct edge_grid any_grid(int64_t pieces, int heads, int64_t lanes_for, int64_t width)
{
	struct edge_grid g = edge_grid_of(pieces, lanes_for);
	g.grid.y = static_cast<unsigned>(heads) * grid_for(width, g.block.x * LANE_COLUMNS);
	return g;
}
static inline int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The lanes that take a piece, and its head and columns. Lanes of other sub-warps never take part
 * in a shuffle, so the sub-warps of a warp may take different ways. */
struct sub_warp {
	int lane, lanes, head, block;
	unsigned mask;

	__device__ explicit sub_warp(int heads)
	    : lane(static_cast<int>(threadIdx.x)), lanes(static_cast<int>(blockDim.x)),
	      head(static_cast<int>(blockIdx.y) % heads), block(static_cast<int>(blockIdx.y) / heads),
	      mask(0xFFFFFFFFu >> (32 - lanes) << (threadIdx.y * blockDim.x % 32))
	{
	}
	/* Number n of the columns whose sums this lane keeps. */
	__device__ int64_t column(int n) const
	{
		return static_cast<int64_t>(block * LANE_COLUMNS + n) * lanes + lane;
	}
	/* Whether this lane writes what all lanes, and the sub-warps of all blocks of columns, have. */
	__device__ bool first() const
	{
		return lane == 0 && block == 0;
	}
	template <int N> __device__ void add_lanes(float (&x)[N]) const
	{
		for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
			for (int n = 0; n < N; n++)
				x[n] += __shfl_xor_sync(mask, x[n], step);
	}
};

/* ---- edges ---- */

/* The next n edges of a part. Of the others, weight is 0 and nothing may be read. */
struct any_step {
	int n;
	int32_t id[STEP]; /* the other end: j in rows, i in columns */
	int64_t edge[STEP];
	float weight[STEP], bias[STEP];

	__device__ any_step(const struct attention_operands &o, const struct cursor &at, int head)
	    : n(at.step(STEP))
	{
#pragma unroll
		for (int u = 0; u < STEP; u++) {
			const int64_t entry = at.base + at.e + u;
			const bool live = u < n;
			float b[1] = {0.0f};
			id[u] = live ? __ldg(o.col + entry) : 0;
			edge[u] = live && o.edge ? __ldg(o.edge + entry) : entry;
			weight[u] = !live ? 0.0f : o.weight ? o.weight[edge[u]] : 1.0f;
			if (live && o.bias.data)
				o.bias.get<1>(edge[u], head, b);
			bias[u] = b[0];
		}
	}
};

/* ---- scores ---- */

/* The columns of one head in a matrix whose rows are on one end of the edges. */
template <typename T> struct head_columns {
	const T *data;
	int64_t ld, cols;

	__device__ head_columns(const void *matrix, int64_t pitch, int64_t width, int head)
	    : data(static_cast<const T *>(matrix) + head * width), ld(pitch), cols(width)
	{
	}
	__device__ float at(int32_t row, int64_t col) const
	{
		return widen(data[row * ld + col]);
	}
};

/* Calls f(col, x, y) for each column of a lane, with x of the own row and y of each edge's other
 * row. */
template <typename T, typename F>
static __device__ inline void each_column(const struct sub_warp &w, const head_columns<T> &own,
                                          int32_t row, const head_columns<T> &other,
                                          const struct any_step &e, F f)
{
	for (int64_t c = w.lane; c < own.cols; c += w.lanes) {
		float y[STEP];
#pragma unroll
		for (int u = 0; u < STEP; u++)
			y[u] = u < e.n ? other.at(e.id[u], c) : 0.0f;
		f(c, own.at(row, c), y);
	}
}

/* Dot products of a row with the other rows of a step. */
template <typename T>
static __device__ inline void any_dots(const struct sub_warp &w, const head_columns<T> &own,
                                       int32_t row, const head_columns<T> &other,
                                       const struct any_step &e, float (&dot)[STEP])
{
	each_column(w, own, row, other, e, [&](int64_t, float x, const float(&y)[STEP]) {
#pragma unroll
		for (int u = 0; u < STEP; u++)
			dot[u] = fmaf(x, y[u], dot[u]);
	});
	w.add_lanes(dot);
}

/* The scores of the edges of one row (BY_ROW: the own row is i, and the others are j) or of one
 * column (the own row is j, and the others are i), for one head. */
template <typename T, int SCORE, bool BY_ROW> struct any_scores {
	const struct attention_operands &o;
	const struct sub_warp &w;
	head_columns<T> own, other;
	float factor;      /* score_of's: scale, beta, 1 */
	int32_t row;       /* the own row */
	float own_squares; /* COSINE */

	/* Of the edges of a step. before: q + k + bias of ADD, t of COSINE. */
	float s[STEP], before[STEP];
	float inverse[STEP]; /* COSINE: of the norm of the other row */

	__device__ any_scores(const struct attention_operands &operands, const struct sub_warp &lanes)
	    : o(operands), w(lanes), own(BY_ROW ? o.q : o.k, BY_ROW ? o.ldq : o.ldk, o.q_cols, w.head),
	      other(BY_ROW ? o.k : o.q, BY_ROW ? o.ldk : o.ldq, o.q_cols, w.head),
	      factor(SCORE == HG_SCORE_DOT ? o.scale : 1.0f)
	{
		if (SCORE == HG_SCORE_COSINE) {
			float beta[1];
			o.c.get<1>(0, o.beta_step * w.head, beta);
			factor = beta[0];
		}
	}
	__device__ int32_t i_of(const struct any_step &e, int u) const
	{
		return BY_ROW ? row : e.id[u];
	}
	__device__ int32_t j_of(const struct any_step &e, int u) const
	{
		return BY_ROW ? e.id[u] : row;
	}
	__device__ float c_at(int64_t col) const
	{
		float x[1];
		o.c.get<1>(0, w.head * o.q_cols + col, x);
		return x[0];
	}
	/* Moves to the edges of a row. `none`: it has no edges, and nothing is read. */
	__device__ void open(int32_t number, bool none)
	{
		row = number;
		if constexpr (SCORE == HG_SCORE_COSINE) {
			float squares[1] = {0.0f};
			for (int64_t c = w.lane; c < own.cols && !none; c += w.lanes)
				squares[0] = fmaf(own.at(row, c), own.at(row, c), squares[0]);
			w.add_lanes(squares);
			own_squares = squares[0];
		}
	}
	__device__ void compute(const struct any_step &e)
	{
		if constexpr (SCORE == HG_SCORE_ADD)
			add(e);
		else if constexpr (SCORE == HG_SCORE_DOT)
			dot(e);
		else if constexpr (SCORE == HG_SCORE_COSINE)
			cosines(e);
		else
			add_v2(e);
	}

	__device__ void add(const struct any_step &e)
	{
		const float x = e.n > 0 ? own.at(row, 0) : 0.0f;
#pragma unroll
		for (int u = 0; u < STEP; u++) {
			before[u] = additive(x, u < e.n ? other.at(e.id[u], 0) : 0.0f, e.bias[u]);
			s[u] = leaky(before[u], o.slope);
		}
	}
	__device__ void dot(const struct any_step &e)
	{
		float sum[STEP] = {};
		any_dots(w, own, row, other, e, sum);
#pragma unroll
		for (int u = 0; u < STEP; u++)
			s[u] = score_of(factor, sum[u], e.bias[u]);
	}
	__device__ void cosines(const struct any_step &e)
	{
		float sum[STEP] = {}, squares[STEP] = {};
		const float mine = inverse_norm(own_squares);
		each_column(w, own, row, other, e, [&](int64_t, float x, const float(&y)[STEP]) {
#pragma unroll
			for (int u = 0; u < STEP; u++) {
				sum[u] = fmaf(x, y[u], sum[u]);
				squares[u] = fmaf(y[u], y[u], squares[u]);
			}
		});
		w.add_lanes(sum);
		w.add_lanes(squares);
#pragma unroll
		for (int u = 0; u < STEP; u++) {
			inverse[u] = inverse_norm(squares[u]);
			before[u] =
			    BY_ROW ? cosine(sum[u], mine, inverse[u]) : cosine(sum[u], inverse[u], mine);
			s[u] = score_of(factor, before[u], e.bias[u]);
		}
	}
	__device__ void add_v2(const struct any_step &e)
	{
		float sum[STEP] = {};
		each_column(w, own, row, other, e, [&](int64_t c, float x, const float(&y)[STEP]) {
			const float by = c_at(c);
#pragma unroll
			for (int u = 0; u < STEP; u++)
				sum[u] = fmaf(by, leaky(x + y[u], o.slope), sum[u]);
		});
		w.add_lanes(sum);
#pragma unroll
		for (int u = 0; u < STEP; u++)
			s[u] = score_of(factor, sum[u], e.bias[u]);
	}
};

/* ---- launch ---- */

/* Calls f(T{}, SCORE) with the type of the operands and the score. */
template <typename F>
static inline hg_status with_score(hg_context *ctx, const char *kernel,
                                   const struct hg__attention &of, F f)
{
	return with_float(ctx, kernel, of.q.dtype, [&](auto zero) {
		return of.score == HG_SCORE_ADD      ? f(zero, int_constant<HG_SCORE_ADD>{})
		       : of.score == HG_SCORE_DOT    ? f(zero, int_constant<HG_SCORE_DOT>{})
		       : of.score == HG_SCORE_COSINE ? f(zero, int_constant<HG_SCORE_COSINE>{})
		                                     : f(zero, int_constant<HG_SCORE_ADD_V2>{});
	});
}

#endif
