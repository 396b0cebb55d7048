/* Gradients of attention over batches of small graphs: what a block is asked for, its shared
 * memory, and how it is filled. The equations are in attention_graphs_back.cu. */
#ifndef HG_KERNELS_CUDA_ATTENTION_GRAPHS_BACK_CUH
#define HG_KERNELS_CUDA_ATTENTION_GRAPHS_BACK_CUH

#include "kernels/cuda/attention_graphs.cuh"

/* The products that become gradients, and a matrix that receives one of them, or, where gradients
 * are one matrix, the sum of several. Bit k of `products`: product k belongs to it. */
enum graph_product { OF_DQ, OF_DK, OF_DV, GRAPH_PRODUCTS };
struct graph_result {
	__half *to;
	int64_t ld;
	unsigned products;
};

struct backward_problem {
	struct graph_operands of;
	const uint32_t *count, *count_t; /* of rows; of columns */
	const __half *y, *dy;
	const float *log_sum;
	int64_t ldy, lddy, ld_log_sum;
	struct graph_result result[GRAPH_PRODUCTS];
	int results;
	__half *dq, *dk; /* ADD: one number a node and head, or NULL: absent */
	int64_t lddq, lddk;
};

/* p <= 1, and is multiplied by 2^P_BITS when it is computed. 2^15 is a half. */
constexpr float P_BITS = 15.0f, P_SCALE = 32768.0f;

/* The most columns of a head with which ADD has three blocks on a multiprocessor: with so many, 80
 * registers and a third of the shared memory are enough. */
constexpr int THREE_BLOCKS = 64;
/* How the work of a block is cut. Where a block has all shared memory of a multiprocessor, it also
 * has all registers: 16 warps with 128 each. Otherwise there are two or three blocks of eight
 * warps. A warp computes 32 x 32 scores at once, and then M tiles of rows of a result, in pieces of
 * 8 N columns: for each term of 32 x 32 sums it reads 64 halves from shared memory, which is what
 * limits these products. Heads of few columns have smaller pieces, so that all warps have some. */
template <bool DOT, int D> struct back_shape {
	static constexpr bool ALONE = DOT && D >= 64;
	static constexpr int WARPS = ALONE ? 16 : 8, RESIDENT = ALONE                     ? 1
	                                                        : DOT || D > THREE_BLOCKS ? 2
	                                                                                  : 3;
	static constexpr int M = D >= 64 ? 2 : 1, N = D >= 32 ? 4 : 2;
};
constexpr int BACK_ROWS = 2 * HG__DENSE_TILE; /* of the scores that a warp computes at once */

/* The block's shared memory. q, k, g, v: rows of D halves, in whole pairs of tiles. */
struct backward_memory {
	__half *q, *k, *g, *v; /* q and k only with DOT */
	/* Rows of scores, `pitch` apart: 2^P_BITS mask p, without the factor of kept edges; with DOT
	 * ds, times its scale. */
	__half *p, *ds;
	int rows, pitch;
	/* The sums of a row over BACK_ROWS columns each are numbers behind the last column of its row
	 * of p, where rows have 16 bytes beside their columns. */
	__device__ float *row_sums(int row) const
	{
		return reinterpret_cast<float *>(p + row * pitch + rows);
	}
	/* Of each node: what is added to the scores, in units of log 2, before they become 2^P_BITS p;
	 * and -D. */
	float2 *node;
	float *add_q, *add_k; /* ADD: q and k of each node */
	float *add_dk;        /* ADD: dk of each node in parts: of BACK_ROWS rows of scores each */
	float *most;          /* DOT: [2 * WARPS * D / 8] */
};

/* Rows of a matrix in shared memory, and the halves between two rows of scores, which are 16 bytes
 * (modulo 128) like those of GRAPH_PITCH. */
static __host__ __device__ inline int backward_rows(int rows)
{
	return (rows + BACK_ROWS - 1) / BACK_ROWS * BACK_ROWS;
}
static __host__ __device__ inline int score_pitch(int rows)
{
	return rows + 8;
}

template <bool DOT, int D> static inline size_t backward_bytes(int all_rows)
{
	const int rows = backward_rows(all_rows);
	const size_t floats = DOT ? 2 : 4 + rows / BACK_ROWS,
	             most = DOT ? 2 * back_shape<DOT, D>::WARPS * D / 8 : 0,
	             scores = static_cast<size_t>(rows) * score_pitch(rows) * sizeof(__half);
	return (DOT ? 4 : 2) * graph_rows_bytes<D>(rows) + (DOT ? 2 : 1) * scores +
	       (floats * static_cast<size_t>(rows) + most) * sizeof(float);
}
template <bool DOT, int D>
static __device__ inline struct backward_memory memory_of(void *shared, int all_rows)
{
	struct backward_memory m = {};
	m.rows = backward_rows(all_rows), m.pitch = score_pitch(m.rows);
	const int matrix = m.rows * GRAPH_PITCH<D>;
	m.g = static_cast<__half *>(shared), m.v = m.g + matrix;
	m.q = m.v + matrix, m.k = m.q + matrix;
	m.p = m.g + (DOT ? 4 : 2) * matrix, m.ds = m.p + m.rows * m.pitch;
	float *const next = reinterpret_cast<float *>(m.p + (DOT ? 2 : 1) * m.rows * m.pitch);
	m.node = reinterpret_cast<float2 *>(next);
	m.most = m.add_q = next + 2 * m.rows;
	m.add_k = next + 3 * m.rows, m.add_dk = next + 4 * m.rows;
	return m;
}

/* ---- operands ---- */

/* The sum of the products of two packs of 8 halves. */
static __device__ inline float dot_packs(const uint4 &a, const uint4 &b)
{
	__half2 x[4], y[4];
	memcpy(static_cast<void *>(x), &a, sizeof x);
	memcpy(static_cast<void *>(y), &b, sizeof y);
	float sum = 0.0f;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const float2 u = __half22float2(x[i]), v = __half22float2(y[i]);
		sum = fmaf(u.x, v.x, sum);
		sum = fmaf(u.y, v.y, sum);
	}
	return sum;
}

/* The pack of node `row` from column col of the head on; zeros where there is none. */
static __device__ inline uint4 pack_at(const struct backward_problem &p,
                                       const struct graph_block &b, const __half *from, int64_t ld,
                                       int row, int col)
{
	if (row >= b.nodes || col >= p.of.d)
		return make_uint4(0, 0, 0, 0);
	return *reinterpret_cast<const uint4 *>(from + (b.first + row) * ld + b.head * p.of.d + col);
}

/* The largest sums of squares of the thread's column of packs in rows of G and V. Sums that are not
 * finite do not count, because what they contribute to is not finite, whatever the scale. */
struct squares {
	float g, v;
};
static __device__ inline float larger_finite(float most, float square)
{
	return square < INFINITY ? fmaxf(most, square) : most;
}

/* Packs of a thread that it loads before it uses any, so that it waits once for all. V with DOT
 * alone. */
template <bool DOT, int D> struct gradient_packs {
	static constexpr int STEPS = HG__DENSE_NODES * (D / 8) / (32 * back_shape<DOT, D>::WARPS),
	                     COUNT = STEPS < 4 ? STEPS : 4;
	uint4 g[COUNT], y[COUNT], v[DOT ? COUNT : 1];

	__device__ gradient_packs(const struct backward_problem &p, const struct graph_block &b,
	                          const thread_packs<D> &packs, int first)
	{
#pragma unroll
		for (int k = 0; k < COUNT; k++) {
			const int row = first + k * packs.step;
			g[k] = pack_at(p, b, p.dy, p.lddy, row, packs.col);
			y[k] = pack_at(p, b, p.y, p.ldy, row, packs.col);
			if constexpr (DOT)
				v[k] = pack_at(p, b, p.of.v, p.of.ldv, row, packs.col);
		}
	}
};

/* Copies G, and with DOT also V, to shared memory. Computes D of each node, and with DOT the
 * largest squares that the thread has seen. */
template <bool DOT, int D>
static __device__ inline struct squares fetch_gradient(const struct backward_problem &p,
                                                       const struct backward_memory &m,
                                                       const struct graph_block &b)
{
	constexpr int PACKS = D / 8, COUNT = gradient_packs<DOT, D>::COUNT;
	const struct thread_packs<D> packs(b);
	struct squares most = {};
#pragma unroll 1
	for (int first = packs.row; first < packs.end; first += COUNT * packs.step) {
		const struct gradient_packs<DOT, D> of(p, b, packs, first);
#pragma unroll
		for (int k = 0; k < COUNT; k++) {
			const int row = first + k * packs.step, at = row * GRAPH_PITCH<D> + packs.col;
			if (row >= packs.end)
				break;
			*reinterpret_cast<uint4 *>(m.g + at) = of.g[k];
			const float d = lanes_sum<PACKS>(dot_packs(of.g[k], of.y[k]));
			if (packs.col == 0)
				m.node[row].y = -d;
			if constexpr (DOT) {
				*reinterpret_cast<uint4 *>(m.v + at) = of.v[k];
				most.g = larger_finite(most.g, dot_packs(of.g[k], of.g[k]));
				most.v = larger_finite(most.v, dot_packs(of.v[k], of.v[k]));
			}
		}
	}
	return most;
}
static_assert(HG__DENSE_TILE * 16 / 8 % 32 == 0, "whole warps take part in the sums over a row");

/* Copies to shared memory what is one number a node. */
template <bool DOT>
static __device__ inline void fetch_numbers(const struct backward_problem &p,
                                            const struct backward_memory &m,
                                            const struct graph_block &b)
{
	for (int i = static_cast<int>(threadIdx.x); i < b.rows; i += static_cast<int>(blockDim.x)) {
		const bool exists = i < b.nodes;
		const int64_t node = b.first + i;
		const float log_sum = exists ? p.log_sum[node * p.ld_log_sum + b.head] : 0.0f;
		/* all scores of a row without a sum are -inf, if it has any */
		m.node[i].x = log_sum == -INFINITY ? -INFINITY : P_BITS - log_sum * LOG2_E;
		if constexpr (!DOT) {
			m.add_q[i] = exists ? widen(p.of.q[node * p.of.ldq + b.head]) : 0.0f;
			m.add_k[i] = exists ? widen(p.of.k[node * p.of.ldk + b.head]) : 0.0f;
		}
	}
}

/* ---- the scale of ds ---- */

/* Puts the largest squares of each column of packs, of the warp's threads, into shared memory. */
template <int D>
static __device__ inline void put_most(const struct backward_memory &m, const struct squares &of)
{
	constexpr int PACKS = D / 8, WARPS = back_shape<true, D>::WARPS;
	float most[2] = {of.g, of.v};
	const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
	for (int k = 0; k < 2; k++) {
#pragma unroll
		for (int step = 16; step >= PACKS; step /= 2)
			most[k] = fmaxf(most[k], __shfl_xor_sync(0xffffffffu, most[k], step));
		if (lane < PACKS)
			m.most[(k * WARPS + warp) * PACKS + lane] = most[k];
	}
}
/* A bound on the norms of G, or of V: each column of packs has its largest square in some row. The
 * lanes of a warp that have the same column share the warps whose squares they read. */
template <int D>
static __device__ inline float most_norm(const struct backward_memory &m, int which)
{
	constexpr int PACKS = D / 8, WARPS = back_shape<true, D>::WARPS;
	const int lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(blockDim.x / 32);
	float most = 0.0f;
	for (int warp = lane / PACKS; warp < warps; warp += 32 / PACKS)
		most = fmaxf(most, m.most[(which * WARPS + warp) * PACKS + lane % PACKS]);
#pragma unroll
	for (int step = 16; step >= PACKS; step /= 2)
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
	return sqrtf(lanes_sum<PACKS>(most));
}

/* The power of two that brings the limit of |ds| into [2^14, 2^15). Its exponent is kept in +-100,
 * so that its inverse exists also where the limit is 0. */
template <int D>
static __device__ inline float scale_of_ds(const struct backward_problem &p,
                                           const struct backward_memory &m)
{
	/* An eighth more than both terms, for Y as it was narrowed, and for rounding here. */
	const float kept = p.of.mask.step ? p.of.mask.kept : 1.0f,
	            limit = 2.25f * kept * most_norm<D>(m, 0) * most_norm<D>(m, 1);
	/* limit < 2^(exponent - 126) */
	const int exponent = static_cast<int>(__float_as_uint(limit) >> 23 & 255u),
	          wanted = 15 + 126 - exponent,
	          kept_in = wanted > 100    ? 100
	                    : wanted < -100 ? -100
	                                    : wanted;
	return __uint_as_float(static_cast<unsigned>(kept_in + 127) << 23);
}

#endif
