/* Gradients of attention over batches of small graphs: the weights of a tile of scores, and the
 * products of a warp. The equations are in attention_graphs_back.cu. */
#ifndef HG_KERNELS_CUDA_ATTENTION_GRAPHS_WEIGHTS_CUH
#define HG_KERNELS_CUDA_ATTENTION_GRAPHS_WEIGHTS_CUH

#include "kernels/cuda/attention_graphs_back.cuh"

/* ---- weights of a tile ---- */

/* The row and the column in its graph of number n of a lane's tile (i, j). */
static __device__ inline int score_row(const struct graph_block &b, int i, int n)
{
	return HG__DENSE_TILE * i + b.g + 8 * (n % 4 / 2);
}
static __device__ inline int score_column(const struct graph_block &b, int j, int n)
{
	return column_at(b, j, n / 4, n);
}

/* The lane's counts of tile (i, j); 0 behind the last tile. */
static __device__ inline uint32_t counts_at(const uint32_t *count, const struct graph_block &b,
                                            int i, int j)
{
	if (i >= b.side || j >= b.side)
		return 0;
	return __ldg(count + (b.tile + i * b.side + j) * HG__DENSE_WORDS + b.lane);
}

/* Masks of four pairs of halves: all bits of a half whose count is not 0. */
struct count_masks {
	unsigned of[4];
};
static __device__ inline struct count_masks masks_of(uint32_t counts)
{
	const uint32_t pairs = counts | counts >> 1, any = (pairs | pairs >> 2) & 0x11111111u,
	               even = any << 7, odd = any << 3; /* in the signs of the bytes */
	struct count_masks m;
#pragma unroll
	for (unsigned k = 0; k < 4; k++) /* copies the sign of byte k of each */
		asm("prmt.b32 %0, %1, %2, %3;"
		    : "=r"(m.of[k])
		    : "r"(even), "r"(odd), "r"(0xCC88u + 0x1111u * k));
	return m;
}

/* What weights need beside the sums, the same for a whole graph. */
struct edge_factors {
	float score; /* of a sum, to the power of two of which exp is */
	float dp, d; /* of <G_i, V_j> and of -D, whose sum is multiplied by 2^P_BITS p */
};
template <bool DOT>
static __device__ inline struct edge_factors edge_factors_of(const struct backward_problem &p,
                                                             float scale)
{
	const float kept = p.of.mask.step ? p.of.mask.kept : 1.0f, of_ds = DOT ? scale / P_SCALE : 1.0f;
	return {DOT ? p.of.scale * LOG2_E : LOG2_E, kept * of_ds, of_ds};
}

/* Bit 8 k + n: whether dropout keeps edge n of tile k of the four from (i, j) on. One copy of the
 * code serves all tiles. */
static __device__ inline unsigned kept_edges(const struct backward_problem &p,
                                             const struct graph_block &b, int i, int j)
{
	unsigned kept = 0;
#pragma unroll 1
	for (int k = 0; k < 4; k++) {
		const int down = i + k / 2, right = j + k % 2;
		kept |= kept_of(
		            p.of.mask, b, counts_at(p.count, b, down, right),
		            [&](int n) { return score_row(b, down, n); },
		            [&](int n) { return score_column(b, right, n); })
		        << 8 * k;
	}
	return kept;
}

/* Makes of scores 2^P_BITS p, and of dp = <G_i, V_j> ds without its mask. Both are undefined
 * where there is no edge. exp of a score is within rounding of its share, so p may be slightly
 * above 1 before its minimum. node: of rows g and g + 8. */
static __device__ inline void weigh_edges(uint32_t counts, const struct edge_factors &factor,
                                          const float2 (&node)[2], float (&w)[8], float (&ds)[8])
{
#pragma unroll
	for (int n = 0; n < 8; n++)
		w[n] = power_of_two(fmaf(w[n], factor.score, node[n % 4 / 2].x));
	if (has_multiples(counts))
#pragma unroll
		for (int n = 0; n < 8; n++)
			w[n] *= static_cast<float>(count_at(counts, n));
#pragma unroll
	for (int n = 0; n < 8; n++) {
		w[n] = min_nan(w[n], P_SCALE);
		ds[n] = w[n] * fmaf(ds[n], factor.dp, node[n % 4 / 2].y);
	}
}

/* Leaves out the edges that dropout does not keep: their ds is -p D. */
static __device__ inline void drop_edges(unsigned kept, const float2 (&node)[2], float (&w)[8],
                                         float (&ds)[8])
{
#pragma unroll
	for (int n = 0; n < 8; n++) {
		if (kept >> n & 1u)
			continue;
		ds[n] = w[n] * node[n % 4 / 2].y;
		w[n] = 0.0f;
	}
}

/* Writes a tile of weights as halves, with 0 where there is no edge. tile: its first. */
static __device__ inline void put_weights(__half *tile, int pitch, const struct graph_block &b,
                                          const struct count_masks &masks, const float (&w)[8])
{
#pragma unroll
	for (int k = 0; k < 4; k++) {
		*reinterpret_cast<unsigned *>(tile + (b.g + 8 * (k % 2)) * pitch + 8 * (k / 2) + 2 * b.t) =
		    pair_of(w[2 * k], w[2 * k + 1]) & masks.of[k];
	}
}

/* ---- products ---- */

/* C = A B^T over D columns, for 32 rows of A and of B. c[i][n]: rows of tile i, columns 8 n on. */
template <int D>
static __device__ inline void multiply_square(const __half *a, const __half *b, int lane,
                                              float (&c)[2][4][4])
{
	constexpr unsigned TILE_BYTES = HG__DENSE_TILE * GRAPH_PITCH<D> * sizeof(__half);
	const unsigned left = left_address<D>(a, lane), right = right_address<D>(b, lane);
	clear(c[0]);
	clear(c[1]);
#pragma unroll
	for (int k = 0; k < D / 16; k++) {
		uint4 x[2], y[2];
#pragma unroll
		for (int i = 0; i < 2; i++) {
			x[i] = load_matrices(left + TILE_BYTES * i + STEP_BYTES * k);
			y[i] = load_matrices(right + TILE_BYTES * i + STEP_BYTES * k);
		}
#pragma unroll
		for (int i = 0; i < 2; i++)
#pragma unroll
			for (int j = 0; j < 2; j++) {
				multiply(c[i][2 * j], x[i], y[j].x, y[j].y);
				multiply(c[i][2 * j + 1], x[i], y[j].z, y[j].w);
			}
	}
}

/* Sums of weights times rows of X. */
struct weighted_rows {
	const __half *weight; /* the first of the result's rows */
	int pitch;
	const __half *x; /* from the result's first column on */
	int terms;       /* tiles of rows of X: an even number */
};

/* sums = W X, for M tiles of rows of W, or with ACROSS of columns; clean: without values of X that
 * are not finite. */
template <int D, bool ACROSS, bool CLEAN, int M, int N>
static __device__ inline void sum_rows(const struct weighted_rows &of, int lane,
                                       float (&sums)[M][N][4])
{
	constexpr unsigned X_BYTES = HG__DENSE_TILE * GRAPH_PITCH<D> * sizeof(__half);
	const unsigned down = static_cast<unsigned>(HG__DENSE_TILE * of.pitch * sizeof(__half)),
	               next_row = ACROSS ? STEP_BYTES : down, next_term = ACROSS ? down : STEP_BYTES;
	/* transposed: matrices 0 and 1 are columns 0-7 and 8-15 of rows 0-7, 2 and 3 of rows 8-15 */
	const int row = ACROSS ? lane % 8 + lane / 16 * 8 : lane % 16,
	          column = ACROSS ? lane / 8 % 2 * 8 : lane / 16 * 8;
	unsigned left = shared_address(of.weight + row * of.pitch + column),
	         right = left_address<D>(of.x, lane);
#pragma unroll
	for (int m = 0; m < M; m++)
		clear(sums[m]);
#pragma unroll 1
	for (int k = 0; k < of.terms; k += 2)
#pragma unroll
		for (int half = 0; half < 2; half++) {
			uint4 w[M], y[N / 2];
#pragma unroll
			for (int m = 0; m < M; m++)
				w[m] = ACROSS ? load_transposed(left + next_row * m)
				              : load_matrices(left + next_row * m);
#pragma unroll
			for (int n = 0; n < N / 2; n++) {
				y[n] = load_transposed(right + STEP_BYTES * n);
				if (CLEAN)
					y[n] = only_finite(y[n]);
			}
#pragma unroll
			for (int m = 0; m < M; m++)
#pragma unroll
				for (int n = 0; n < N; n++)
					multiply(sums[m][n], w[m], n % 2 ? y[n / 2].z : y[n / 2].x,
					         n % 2 ? y[n / 2].w : y[n / 2].y);
			left += next_term, right += X_BYTES;
		}
}

/* ---- results ---- */

/* Exchanges words between the four lanes of a row: word n of lane t goes to lane n (modulo WORDS,
 * within groups of so many lanes), where it becomes word t. */
template <int WORDS>
static __device__ inline void transpose_words(unsigned (&w)[WORDS], const struct graph_block &b)
{
#pragma unroll
	for (int step = 1; step < WORDS; step *= 2)
#pragma unroll
		for (int n = 0; n < WORDS; n++) {
			if (n & step)
				continue;
			const bool upper = b.t & step;
			const unsigned given = __shfl_xor_sync(0xffffffffu, upper ? w[n] : w[n + step], step);
			if (upper)
				w[n] = given;
			else
				w[n + step] = given;
		}
}

/* Stores sums of a tile of rows as halves, 2 N bytes of a row at once. to: column 0 of the piece in
 * row 0 of the graph; columns: of the head from there on. */
template <int N>
static __device__ inline void store_sums(__half *to, int64_t ld, int columns, int tile,
                                         const float (&sums)[N][4], const struct graph_block &b)
{
#pragma unroll
	for (int high = 0; high < 2; high++) {
		unsigned w[N];
#pragma unroll
		for (int n = 0; n < N; n++) {
			const __half2 pair = __floats2half2_rn(sums[n][2 * high], sums[n][2 * high + 1]);
			memcpy(&w[n], &pair, sizeof w[n]);
		}
		transpose_words(w, b);
		const int row = score_row(b, tile, 2 * high), col = 8 * (b.t % N) + 2 * (b.t / N * N);
		if (row >= b.nodes || col >= columns)
			continue;
		__half *const at = to + row * ld + col;
		if constexpr (N == 4)
			*reinterpret_cast<uint4 *>(at) = make_uint4(w[0], w[1], w[2], w[3]);
		else
			*reinterpret_cast<uint2 *>(at) = make_uint2(w[0], w[1]);
	}
}

#endif
