/* Products of halves with one long side n and short sides k, d of at most 128, on tensor cores.
 * Every matrix is read or written once, at the speed of a copy.
 *
 *     rows       C [n, d] = 2^shift A [n, k] op(B) + bias
 *                used for Y = X W and dX = dY W^T
 *     columns    C [k, d] = 2^shift A [n, k]^T B [n, d],  sums[c] = sum of B[., c]
 *                used for dW = X^T dY and db
 *
 * cuBLASLt needs whole vectors of columns, also along k: with 47 columns it loads 2 bytes at a
 * time. Here a lane loads packs of 8 columns whatever k and d are, and ignores what is behind the
 * last column.
 *
 * mma.m16n8k16 multiplies A [16, 16] by B [16, 8] in one warp. Lane 4 g + t, with g < 8 and t < 4,
 * holds
 *
 *     A    rows g and g + 8, columns 2t, 2t + 1, 2t + 8, 2t + 9
 *     B    rows 2t, 2t + 1, 2t + 8, 2t + 9 of column g
 *     C    rows g and g + 8, columns 2t, 2t + 1
 *
 * Which term of the sum has which index k, and which column of B is column g, may be chosen freely
 * as long as both operands agree. The choice here makes the values that a lane loads, and those
 * that it ends with, contiguous in memory. Sums are f32, in a fixed order for each element. */

#include "kernels/cuda/gemm_tall.cuh"

#include "kernels/cuda/tall_rows.cuh"

namespace
{

/* ---- rows (tall_rows.cuh) ---- */

constexpr int MOST = TALL_SIDE / CHUNK; /* both of chunks and of blocks */

struct tall_rows {
	const __half *a, *bias;
	struct short_matrix b; /* op(B) */
	__half *c;
	int64_t n, lda, ldc;
	float factor;
};

/* Rows g and g + 8 of one step. */
template <int CHUNKS> struct row_pair {
	uint4 low[CHUNKS], high[CHUNKS];

	__device__ void read(const struct tall_rows &m, int64_t step, int g, int t)
	{
		const int64_t first = 16 * step + g, last = m.n - 1;
		const __half *p = m.a + (first < last ? first : last) * m.lda + 8 * t,
		             *q = m.a + (first + 8 < last ? first + 8 : last) * m.lda + 8 * t;
#pragma unroll
		for (int c = 0; c < CHUNKS; c++) {
			const bool exists = c + 1 < CHUNKS || CHUNK * c + 8 * t < m.b.k;
			low[c] = exists ? load_pack(p + CHUNK * c) : make_uint4(0, 0, 0, 0);
			high[c] = exists ? load_pack(q + CHUNK * c) : make_uint4(0, 0, 0, 0);
		}
	}
	/* Sets the columns from k on to 0. They are padding and may hold any bits, NaNs included. */
	__device__ void trim(const uint4 &keep)
	{
		low[CHUNKS - 1] = masked(low[CHUNKS - 1], keep);
		high[CHUNKS - 1] = masked(high[CHUNKS - 1], keep);
	}
};

/* Blocks of rows_kernel<1 + i> that fit on a multiprocessor, by their registers. The grid has no
 * more blocks than fit at once, so each block writes op(B) to shared memory only once. */
constexpr int RESIDENT[MOST] = {4, 3, 2, 2};

template <int CHUNKS> __global__ void __launch_bounds__(BLOCK) rows_kernel(const struct tall_rows m)
{
	after_previous();
	__shared__ uint4 b_of[CHUNKS * MOST * 4 * 32]; /* [chunk][block][j][lane] */
	__shared__ float bias[TALL_SIDE];
	const int blocks = (m.b.d + CHUNK - 1) / CHUNK, lane = static_cast<int>(threadIdx.x % 32),
	          g = lane / 4, t = lane % 4;
	m.b.fill(b_of, CHUNKS, blocks, static_cast<int>(threadIdx.x), BLOCK);
	for (int i = static_cast<int>(threadIdx.x); i < TALL_SIDE; i += BLOCK)
		bias[i] = m.bias && i < m.b.d ? widen(m.bias[i]) : 0.0f;
	__syncthreads();

	const int64_t steps = (m.n + 15) / 16, stride = static_cast<int64_t>(gridDim.x) * (BLOCK / 32);
	const uint4 keep = keep_first(m.b.k - CHUNK * (CHUNKS - 1) - 8 * t);
	int64_t step = static_cast<int64_t>(blockIdx.x) * (BLOCK / 32) + threadIdx.x / 32;
	struct row_pair<CHUNKS> a, next;
	if (step < steps)
		next.read(m, step, g, t);
	for (; step < steps; step += stride) {
		a = next;
		a.trim(keep);
		next.read(m, step + stride < steps ? step + stride : step, g, t);
		for (int b = 0; b < blocks; b++) {
			float sum[4][4] = {}, low[8], high[8];
#pragma unroll
			for (int c = 0; c < CHUNKS; c++)
				multiply_chunk(sum, a.low[c], a.high[c], b_of + (c * blocks + b) * 128, lane);
			const int col = CHUNK * b + 8 * t;
			const int64_t row = 16 * step + g;
#pragma unroll
			for (int i = 0; i < 8; i++) {
				low[i] = m.factor * sum[i / 2][i % 2] + bias[col + i];
				high[i] = m.factor * sum[i / 2][2 + i % 2] + bias[col + i];
			}
			if (col < m.b.d && row < m.n)
				store<8>(m.c + row * m.ldc + col, low);
			if (col < m.b.d && row + 8 < m.n)
				store<8>(m.c + (row + 8) * m.ldc + col, high);
		}
	}
}

typedef void (*rows_fn)(struct tall_rows);

hg_status run_rows(hg_context *ctx, const struct hg__gemm_args *a)
{
	static constexpr rows_fn kernels[MOST] = {rows_kernel<1>, rows_kernel<2>, rows_kernel<3>,
	                                          rows_kernel<4>};
	static_assert(every(kernels, [](rows_fn f) { return f != nullptr; }), "a hole");
	const struct tall_rows m = {static_cast<const __half *>(a->a.data),
	                            static_cast<const __half *>(a->bias.data),
	                            short_matrix_of(a->b, a->trans_b != 0),
	                            static_cast<__half *>(a->c.data),
	                            a->a.rows,
	                            a->a.ld,
	                            a->c.ld,
	                            ldexpf(1.0f, a->shift)};
	const int chunks = (m.b.k + CHUNK - 1) / CHUNK;
	int processors = 0;
	HG__CUDA(ctx, "gemm: multiprocessors",
	         cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
	                                static_cast<const hg__cuda_state *>(ctx->state)->device));
	const int64_t wanted = (m.n + 16 * (BLOCK / 32) - 1) / (16 * (BLOCK / 32)),
	              most = static_cast<int64_t>(processors) * RESIDENT[chunks - 1];
	return launch(ctx, "gemm: tall", kernels[chunks - 1],
	              static_cast<unsigned>(wanted < most ? wanted : most), BLOCK, m);
}

/* ---- columns ----
 *
 * A warp adds a tile [64, 64] of C over steps of 16 rows. Lane (g, t) loads columns 8g .. 8g + 7 of
 * A and of B in rows t, 4 + t, 8 + t and 12 + t; in the products these are rows 2t, 2t + 1, 2t + 8
 * and 2t + 9. The products need pairs of rows in one register, which are assembled from the
 * registers of two rows. Register w of A's packs belongs to product w down C (column 8g + 2w is row
 * g, column 8g + 2w + 1 is row g + 8), and half j of B's packs to product j across C (column 8g + j
 * is column g). */

constexpr int COLUMN_WARPS = 4;
static_assert(TALL_SIDE == 128, "at most as many tiles as warps");

struct tall_columns {
	const __half *a, *b;
	float *part; /* [gridDim.x][tiles][TALL_TILE] */
	int64_t n, lda, ldb;
	int k, d, across, tiles; /* tiles of C: in one row of tiles, and in total */
	float factor;
};

/* One pack of columns in the four rows of a lane. */
struct four_rows {
	unsigned word[4][4];

	__device__ void read(const __half *x, int64_t ld, int64_t row, int64_t n, bool exists)
	{
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int64_t r = row + 4 * i;
			const uint4 bits = exists && r < n ? load_pack(x + r * ld) : make_uint4(0, 0, 0, 0);
			memcpy(word[i], &bits, sizeof bits);
		}
	}
	/* Half `upper` of register w in rows i and i + 1. */
	__device__ unsigned pair(int i, int w, bool upper) const
	{
		return __byte_perm(word[i][w], word[i + 1][w], upper ? 0x7632 : 0x5410);
	}
	__device__ void add_to(float (&sum)[8]) const
	{
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int w = 0; w < 4; w++) {
				__half2 h;
				memcpy(&h, &word[i][w], sizeof h);
				sum[2 * w] += __low2float(h);
				sum[2 * w + 1] += __high2float(h);
			}
	}
};

/* The sums of a tile in one lane, by register of A and half of B, and the column sums of B. */
template <bool SUMS> struct tile_sums {
	float c[4][8][4], column[8];

	__device__ void add(const struct four_rows &a, const struct four_rows &b)
	{
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const uint4 left = make_uint4(a.pair(0, i, false), a.pair(0, i, true),
			                              a.pair(2, i, false), a.pair(2, i, true));
#pragma unroll
			for (int j = 0; j < 8; j++)
				multiply(c[i][j], left, b.pair(0, j / 2, j % 2), b.pair(2, j / 2, j % 2));
		}
		if constexpr (SUMS)
			b.add_to(column);
	}
	/* Adds the column sums of the four lanes t, in each of them. */
	__device__ void join_lanes()
	{
#pragma unroll
		for (int i = 0; SUMS && i < 8; i++) {
			column[i] += __shfl_xor_sync(0xffffffffu, column[i], 1);
			column[i] += __shfl_xor_sync(0xffffffffu, column[i], 2);
		}
	}
	/* Stores the sums (FIRST) or adds them to `to`. Element c[i][j][q] of a lane is number r = (8 i
	 * + j) 4 + q, at position 32 r + lane. The 64 column sums follow. */
	template <bool FIRST> __device__ void put(float *to, int lane) const
	{
#pragma unroll
		for (int r = 0; r < 128; r++)
			to[32 * r + lane] = (FIRST ? 0.0f : to[32 * r + lane]) + c[r / 32][r / 4 % 8][r % 4];
#pragma unroll
		for (int i = 0; SUMS && i < 8; i++)
			if (lane % 4 == 0)
				to[64 * 64 + 2 * lane + i] =
				    (FIRST ? 0.0f : to[64 * 64 + 2 * lane + i]) + column[i];
	}
};

/* The warps of a block share the tiles. The warps of one tile alternate between the steps, and add
 * their sums in shared memory, in order. */
template <bool SUMS>
__global__ void __launch_bounds__(32 * COLUMN_WARPS, 2) columns_kernel(const struct tall_columns m)
{
	after_previous();
	/* with four tiles each warp has its own, and this is not used */
	__shared__ float together[2][TALL_TILE];
	const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32),
	          g = lane / 4, t = lane % 4;
	const int tile = warp % m.tiles, turn = warp / m.tiles, turns = COLUMN_WARPS / m.tiles;
	const int col_a = 64 * (tile / m.across) + 8 * g, col_b = 64 * (tile % m.across) + 8 * g;
	const bool has_a = col_a < m.k, has_b = col_b < m.d;
	const int64_t stride = static_cast<int64_t>(gridDim.x) * turns * 16;
	int64_t row = (static_cast<int64_t>(blockIdx.x) * turns + turn) * 16 + t;
	struct tile_sums<SUMS> sums = {
	};
	struct four_rows a, b, next_a, next_b;
	next_a.read(m.a + col_a, m.lda, row, m.n, has_a);
	next_b.read(m.b + col_b, m.ldb, row, m.n, has_b);
	for (; row - t < m.n; row += stride) { /* uniform over the warp */
		a = next_a;
		b = next_b;
		next_a.read(m.a + col_a, m.lda, row + stride, m.n, has_a);
		next_b.read(m.b + col_b, m.ldb, row + stride, m.n, has_b);
		sums.add(a, b);
	}
	sums.join_lanes();
	float *part = m.part + (static_cast<int64_t>(blockIdx.x) * m.tiles + tile) * TALL_TILE;
	if (turns == 1) {
		sums.template put<true>(part, lane);
		return;
	}
	for (int k = 0; k < turns; k++) {
		if (turn == k && k == 0)
			sums.template put<true>(together[tile], lane);
		else if (turn == k)
			sums.template put<false>(together[tile], lane);
		__syncthreads();
	}
	for (int i = 32 * turn + lane; i < (SUMS ? TALL_TILE : 64 * 64); i += 32 * turns)
		part[i] = together[tile][i];
}

/* Adds the parts in order. A block computes 32 numbers of a tile, and has one thread per warp for
 * each of them. */
template <bool SUMS>
__global__ void __launch_bounds__(BLOCK)
    fold_kernel(const struct tall_columns m, int64_t parts, struct hg__mat c, struct hg__mat sums)
{
	after_previous();
	__shared__ float some[BLOCK / 32][32];
	const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
	const int blocks = (SUMS ? TALL_TILE : 64 * 64) / 32,
	          tile = static_cast<int>(blockIdx.x) / blocks,
	          index = static_cast<int>(blockIdx.x) % blocks * 32 + lane;
	float sum = 0.0f;
#pragma unroll 8
	for (int64_t p = warp; p < parts; p += BLOCK / 32)
		sum += m.part[(p * m.tiles + tile) * TALL_TILE + index];
	some[warp][lane] = sum;
	__syncthreads();
	if (warp > 0)
		return;
	for (int k = 1; k < BLOCK / 32; k++)
		sum += some[k][lane];
	const int down = 64 * (tile / m.across), across = 64 * (tile % m.across);
	if (index >= 64 * 64) {
		const int col = across + index - 64 * 64;
		if (down == 0 && col < m.d)
			static_cast<float *>(sums.data)[col] = sum;
		return;
	}
	const int number = index / 32, i = number / 32, j = number / 4 % 8, q = number % 4,
	          g = lane / 4, t = lane % 4;
	const int row = down + 8 * g + 2 * i + q / 2, col = across + 8 * (2 * t + q % 2) + j;
	if (row >= m.k || col >= m.d)
		return;
	sum *= m.factor;
	if (c.dtype == HG_F16)
		static_cast<__half *>(c.data)[row * c.ld + col] = __float2half_rn(sum);
	else
		static_cast<float *>(c.data)[row * c.ld + col] = sum;
}

template <bool SUMS>
hg_status run_columns(hg_context *ctx, const struct hg__gemm_args *a, void *scratch)
{
	struct tall_columns m = {static_cast<const __half *>(a->a.data),
	                         static_cast<const __half *>(a->b.data),
	                         static_cast<float *>(scratch),
	                         a->a.rows,
	                         a->a.ld,
	                         a->b.ld,
	                         static_cast<int>(a->a.cols),
	                         static_cast<int>(a->b.cols),
	                         static_cast<int>((a->b.cols + 63) / 64),
	                         0,
	                         ldexpf(1.0f, a->shift)};
	m.tiles = m.across * ((m.k + 63) / 64);
	const int64_t each = 16 * (COLUMN_WARPS / m.tiles), wanted = (m.n + each - 1) / each,
	              parts = wanted < TALL_PARTS ? wanted : TALL_PARTS;
	HG__TRY(launch(ctx, "gemm: tall, columns", columns_kernel<SUMS>, static_cast<unsigned>(parts),
	               32 * COLUMN_WARPS, m));
	const int64_t blocks = m.tiles * (SUMS ? TALL_TILE : 64 * 64) / 32;
	return launch(ctx, "gemm: tall, fold", fold_kernel<SUMS>, static_cast<unsigned>(blocks), BLOCK,
	              m, parts, a->c, a->sums);
}

/* Whether rows can be read in packs of 8 halves. */
bool in_packs(const struct hg__mat &m)
{
	return m.dtype == HG_F16 && m.ld % 8 == 0 && reinterpret_cast<uintptr_t>(m.data) % 16 == 0;
}

} // namespace

/* Whether this kernel is faster than cuBLASLt, which needs widths of whole packs. Measured on an
 * H200, n = 2,449,029, this kernel against the best of eight algorithms of the library, in ms:
 *
 *     [n, 47] [47, 64]     0.147   0.361       [n, 64] [64, 64]     0.159   0.156
 *     [n, 100] [100, 64]   0.211   0.382       [n, 64] [64, 47]     0.148   0.134
 *     [64, n] [n, 47]      0.155   0.257       [64, n] [n, 64]      0.169   0.147
 *                                              [100, n] [n, 64]     0.284   0.202
 *
 * Column sums beside the product save one pass over B, which takes 0.08 ms. */
static bool gains(const struct hg__gemm_args *a)
{
	return a->trans_a ? a->b.cols % 8 != 0 || a->sums.data != nullptr : a->a.cols % 8 != 0;
}

bool hg__cuda_gemm_is_tall(const struct hg__gemm_args *a)
{
	const bool short_sides =
	    a->a.cols > 0 && a->a.cols <= TALL_SIDE && a->b.cols > 0 && a->b.cols <= TALL_SIDE;
	if (a->pick > 0 || a->a.rows < TALL_ROWS || !gains(a) || !short_sides || !in_packs(a->a) ||
	    a->b.dtype != HG_F16)
		return false;
	if (a->trans_a)
		return !a->trans_b && !a->bias.data && in_packs(a->b);
	return a->b.rows <= TALL_SIDE && in_packs(a->c) && a->c.ld == hg__leading(a->c.cols) &&
	       (!a->bias.data || a->bias.dtype == HG_F16);
}

hg_status hg__cuda_gemm_tall(hg_context *ctx, const struct hg__gemm_args *a, void *scratch)
{
	if (!a->trans_a)
		return run_rows(ctx, a);
	return a->sums.data ? run_columns<true>(ctx, a, scratch) : run_columns<false>(ctx, a, scratch);
}
