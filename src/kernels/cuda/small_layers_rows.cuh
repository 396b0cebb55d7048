/* What small_layers reads and writes in global memory: rows of nodes, and the weights of all
 * layers, which lie in shared memory while a kernel runs. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_ROWS_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_ROWS_CUH

#include "kernels/cuda/small_layers_matrices.cuh"
#include "kernels/small_layers.h"

namespace small
{

constexpr int WARPS = 8, THREADS = 32 * WARPS;

/* One layer as the kernels read it. inner, result: nodes of the tape, -1: no check. */
struct layer {
	const __half *b;
	__half *y;
	__half *dy;
	uint64_t key;
	int32_t y_ld, dy_ld;
	uint32_t threshold;
	float scale; /* 1 / (1 - p) */
	int32_t inner, result;
	int8_t w; /* the index of its W in struct layers; that of its W_self is the next */
	int8_t out, ending;
	bool aggregate_first, has_self;
};
/* What ends a layer: nothing, relu, or relu and dropout. */
enum ending { PLAIN, RELU, DROP };
/* A weight matrix W, with which the gradient of the layer's bias is stored, or W_self. */
struct matrix {
	const __half *w;
	float *dw, *db;
	int32_t w_ld, dw_ld;
	int8_t in, out;
	bool eights; /* columns 8 k .. 8 k + 7 of w can be read at once */
};
struct layers {
	struct layer of[HG__SMALL_LAYERS];
	struct matrix matrix[HG__SMALL_MATRICES];
	int count, matrices;
};
/* pairs: two neighbouring columns, the first one even, can be read at once. data NULL: absent. */
struct rows {
	__half *data;
	int64_t ld;
	int cols;
	bool pairs;
};
static inline __host__ __device__ struct rows rows_of(__half *data, int64_t ld, int cols)
{
	return {data, ld, cols, ld % 2 == 0 && reinterpret_cast<uintptr_t>(data) % 4 == 0};
}
struct bin {
	int first, rows;
};

/* ---- rows of nodes ---- */

/* Columns col and col + 1 of a row. A row of an even distance to the next has memory for both. */
template <bool PAIRS>
static __device__ inline unsigned load_pair(const __half *row, int col, int cols)
{
	if constexpr (PAIRS)
		return *reinterpret_cast<const unsigned *>(row + col);
	else
		return __half_as_ushort(row[col]) | (col + 1 < cols ? __half_as_ushort(row[col + 1]) : 0u)
		                                        << 16;
}
/* The pair where there are such columns, else 0. */
static __device__ inline unsigned cut_pair(unsigned pair, int col, int cols)
{
	return col + 1 < cols ? pair : col < cols ? pair & 0xffffu : 0u;
}
static __device__ inline void store_pair(__half *row, int col, int cols, bool pairs, unsigned pair)
{
	if (pairs && col + 1 < cols) {
		*reinterpret_cast<unsigned *>(row + col) = pair;
		return;
	}
	if (col < cols)
		row[col] = __ushort_as_half(static_cast<unsigned short>(pair));
	if (col + 1 < cols)
		row[col + 1] = __ushort_as_half(static_cast<unsigned short>(pair >> 16));
}
/* Everything is loaded before anything is used, so that no load waits for another one. What is
 * outside of the matrix or the bin is loaded from inside, and then set to 0. */
template <bool PAIRS, int WIDE>
static __device__ inline void load_bin(const struct rows &m, const struct bin &bin,
                                       struct by_node<WIDE> &to)
{
	const int lane = static_cast<int>(threadIdx.x % 32), r = lane / 4, c = lane % 4 * 2;
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int n = 0; n < 2; n++) {
			const int row = t * TILE + n * 8 + r, inside = row < bin.rows ? row : 0;
			const __half *from = m.data + static_cast<int64_t>(bin.first + inside) * m.ld;
#pragma unroll
			for (int f = 0; f < 2 * WIDE; f++)
				to.at[t][f / 2][n][f % 2] =
				    load_pair<PAIRS>(from, f * 8 + c < m.cols ? f * 8 + c : 0, m.cols);
		}
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int n = 0; n < 2; n++) {
			const int cols = t * TILE + n * 8 + r < bin.rows ? m.cols : 0;
#pragma unroll
			for (int f = 0; f < 2 * WIDE; f++) {
				unsigned &pair = to.at[t][f / 2][n][f % 2];
				pair = cut_pair(pair, f * 8 + c, cols);
			}
		}
}
template <int WIDE>
static __device__ inline void load_bin(const struct rows &m, const struct bin &bin,
                                       struct by_node<WIDE> &to)
{
	if (m.pairs)
		load_bin<true>(m, bin, to);
	else
		load_bin<false>(m, bin, to);
}
template <int WIDE>
static __device__ inline void store_bin(const struct rows &m, const struct bin &bin,
                                        const struct by_node<WIDE> &from)
{
	const int lane = static_cast<int>(threadIdx.x % 32), r = lane / 4, c = lane % 4 * 2;
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int n = 0; n < 2; n++) {
			const int row = t * TILE + n * 8 + r;
			__half *to = m.data + static_cast<int64_t>(bin.first + row) * m.ld;
#pragma unroll
			for (int f = 0; f < 2 * WIDE; f++)
				if (row < bin.rows)
					store_pair(to, f * 8 + c, m.cols, m.pairs, from.at[t][f / 2][n][f % 2]);
		}
}

/* ---- weights ---- */

/* The layout of a weight matrix in shared memory. The eight rows of a small matrix lie in different
 * banks: rows of 64 bytes are padded to 80, and where a row is 128 bytes its pieces of 16 change
 * places with the number of the row, because padding would take memory of which there is too
 * little. */
template <int WIDE> struct weights {
	static constexpr int WIDTH = WIDE * TILE, PITCH = WIDE == 4 ? WIDTH : WIDTH + 8,
	                     HALVES = WIDTH * PITCH; /* of a matrix */
	static constexpr int BIASES = WIDTH / 2;     /* float4 of a layer */

	static size_t bytes(const struct layers &of)
	{
		return bytes(of.matrices, of.count);
	}
	static size_t bytes(int matrices, int layers)
	{
		return static_cast<size_t>(matrices) * HALVES * sizeof(__half) +
		       static_cast<size_t>(layers) * BIASES * sizeof(float4);
	}

	/* Columns 8 e .. 8 e + 7 of a row. */
	static __device__ int at(int row, int e)
	{
		return row * PITCH + (WIDE == 4 ? e ^ row % 8 : e) * 8;
	}
};

/* Columns col .. col + 7 of row `in` of a weight matrix, with zeros outside of it. */
static __device__ inline uint4 load_eight(const struct matrix &of, int in, int col)
{
	const __half *row = of.w + in * of.w_ld + col;
	if (in >= of.in || col >= of.out)
		return make_uint4(0, 0, 0, 0);
	if (of.eights && col + 8 <= of.out)
		return *reinterpret_cast<const uint4 *>(row);
	unsigned half[8];
#pragma unroll
	for (int i = 0; i < 8; i++)
		half[i] = col + i < of.out ? __half_as_ushort(row[i]) : 0u;
	return make_uint4(half[0] | half[1] << 16, half[2] | half[3] << 16, half[4] | half[5] << 16,
	                  half[6] | half[7] << 16);
}
/* Copies the weights and biases of all layers to shared memory, with zeros around them; several
 * loads at a time, so that they do not wait for each other. b has each bias twice: (b0, b1, b0, b1)
 * for columns 0 and 1, as sums begin. */
template <int WIDE>
static __device__ inline void load_weights(const struct layers &all, __half *w, float4 *b)
{
	using to = weights<WIDE>;
	constexpr int EIGHTS = 2 * WIDE, OF_W = to::WIDTH * EIGHTS, AT_ONCE = 8;
	const int tid = static_cast<int>(threadIdx.x), total = all.matrices * OF_W;
	for (int first = tid; first < total; first += THREADS * AT_ONCE) {
		uint4 piece[AT_ONCE];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) {
			const int i = first + k * THREADS;
			if (i < total)
				piece[k] = load_eight(all.matrix[i / OF_W], i / EIGHTS % to::WIDTH, i % EIGHTS * 8);
		}
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) {
			const int i = first + k * THREADS;
			if (i < total)
				*reinterpret_cast<uint4 *>(w + i / OF_W * to::HALVES +
				                           to::at(i / EIGHTS % to::WIDTH, i % EIGHTS)) = piece[k];
		}
	}
	for (int i = tid; i < all.count * to::BIASES; i += THREADS) {
		const struct layer &of = all.of[i / to::BIASES];
		const int out = i % to::BIASES * 2;
		const float low = of.b && out < of.out ? __half2float(of.b[out]) : 0.0f,
		            high = of.b && out + 1 < of.out ? __half2float(of.b[out + 1]) : 0.0f;
		b[i] = make_float4(low, high, low, high);
	}
}

} // namespace small

#endif
