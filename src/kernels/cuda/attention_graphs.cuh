/* Attention over batches of small graphs with dense counts (core/plan_dense.h): one block computes
 * one head of one graph. What attention_graphs.cu and attention_graphs_back.cu share.
 *
 * The operands of a graph are contiguous rows, which the block copies to shared memory. Its warps
 * multiply by mma.m16n8k16. In the forward pass a warp owns 16 rows of the matrix of scores: its
 * results of one product, pairs of neighbouring columns of rows g and g + 8, are the left operand
 * of the next one as they lie in registers.
 *
 * Sums are f32. Their weights w are halves, and |error of w| <= 2^-11 |w| + 2^-25, the second where
 * the half is subnormal. Weights are multiplied by a power of two before they become halves: in the
 * forward pass 2^11, where the largest of a row is at least 1, so that 2^-25 is 2^-36 of it; in the
 * backward pass 2^15 for p, and for ds what brings the limit of a graph into [2^14, 2^15): at most
 * 2^-39 of that limit.
 *
 * A weight of 0 times a value that is not finite would be NaN, also in rows that do not have this
 * neighbour. So a sum that is not finite (spoiled) is computed again without such values, and those
 * of neighbours are added afterwards. Other graphs are in other blocks. */
#ifndef HG_KERNELS_CUDA_ATTENTION_GRAPHS_CUH
#define HG_KERNELS_CUDA_ATTENTION_GRAPHS_CUH

#include "core/plan_dense.h"
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/tensor_core.cuh"

/* The most columns of a head, and the most warps of a block. */
constexpr int GRAPH_WIDTH = 128;
constexpr int GRAPH_WARPS = HG__DENSE_NODES / HG__DENSE_TILE;

/* A matrix of rows of D halves in shared memory. Rows begin 16 bytes (modulo 128) apart, so that
 * the eight rows that ldmatrix reads at once lie in different banks. */
template <int D> constexpr int GRAPH_PITCH = D + 8;
template <int D> static inline size_t graph_rows_bytes(int rows)
{
	return static_cast<size_t>(rows) * GRAPH_PITCH<D> * sizeof(__half);
}

struct graph_operands {
	const struct hg__dense_graph *graph;
	const __half *q, *k, *v;
	int64_t ldq, ldk, ldv;
	int rows;     /* of a matrix in shared memory: those of the largest graph, in whole tiles */
	int heads, d; /* d: columns of a head */
	float slope, scale;
	struct attention_mask mask;
	unsigned ahead; /* how many blocks later the operands of a block are prefetched; 0: not */
};

static inline struct graph_operands graph_operands_of(const struct hg__csr &csr,
                                                      const struct hg__attention &of)
{
	struct graph_operands o = {};
	const struct hg__dense &dense = *csr.plan->dense;
	o.graph = dense.graph;
	o.q = data_of<const __half>(of.q), o.k = data_of<const __half>(of.k);
	o.v = data_of<const __half>(of.v);
	o.ldq = of.q.ld, o.ldk = of.k.ld, o.ldv = of.v.ld;
	o.rows = HG__DENSE_TILE * hg__dense_side(dense.most_nodes);
	o.heads = of.heads, o.d = static_cast<int>(of.v.cols / of.heads);
	o.slope = of.slope, o.scale = of.scale;
	o.mask = mask_of(of.dropout);
	return o;
}

static inline bool is_half(const struct hg__mat &m)
{
	return m.dtype == HG_F16 && wide(m);
}

/* Whether the operands are those of these kernels: halves in whole vectors, scores without a bias,
 * edges without weights. */
static inline bool graph_operands_fit(const struct hg__csr &csr, const struct hg__attention &of)
{
	const int64_t d = of.v.cols / of.heads;
	const bool narrow = of.score == HG_SCORE_ADD && of.q.dtype == HG_F16,
	           full = of.score == HG_SCORE_DOT && is_half(of.q) && is_half(of.k) &&
	                  of.q.cols == of.v.cols;
	return csr.plan && csr.plan->dense && csr.plan->dense->graphs <= INT32_MAX / of.heads &&
	       (narrow || full) && is_half(of.v) && d % 8 == 0 && d > 0 && d <= GRAPH_WIDTH &&
	       !of.bias.data && !of.weight;
}

/* Shared memory that a block may have. */
static inline size_t graph_shared_limit()
{
	int device = 0, bytes = 0;
	if (cudaGetDevice(&device) != cudaSuccess ||
	    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
	        cudaSuccess)
		(void)cudaGetLastError(); /* no device: no shared memory */
	return static_cast<size_t>(bytes);
}

/* Calls f(D) with D an integral constant: the columns of a head, padded to 16, 32, 64 or 128. */
template <typename F> static inline auto with_graph_width(int64_t d, F f)
{
	return d <= 16   ? f(int_constant<16>{})
	       : d <= 32 ? f(int_constant<32>{})
	       : d <= 64 ? f(int_constant<64>{})
	                 : f(int_constant<128>{});
}

/* Lets the blocks of a kernel have `bytes` of shared memory. */
HG_NODISCARD static inline hg_status allow_shared(hg_context *ctx, const void *kernel, size_t bytes)
{
	(void)stream_of(ctx); /* sets the device whose attribute follows */
	return cuda_status(ctx,
	                   cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                                        static_cast<int>(bytes)),
	                   "attention: shared memory");
}

/* Queues a kernel with a block for each graph and head, of `threads` and with `bytes` of shared
 * memory. The heads of a graph are neighbours, because their columns are: they share what memory
 * and cache transfer. */
template <typename P>
HG_NODISCARD static inline hg_status
launch_graphs(hg_context *ctx, const char *what, void (*kernel)(P), const struct hg__dense &dense,
              int heads, unsigned threads, size_t bytes, const P &problem)
{
	const dim3 grid(grid_for(dense.graphs * heads, 1));
	const void *const function = reinterpret_cast<const void *>(kernel);
	void *pointers[] = {const_cast<void *>(static_cast<const void *>(&problem))};
	return cuda_status(ctx, queue_kernel(ctx, function, 1, grid, threads, pointers, bytes), what);
}

/* Sets of->ahead. The graphs of a batch are often of one size, so that all blocks fetch at one time
 * and compute at another. Therefore a block asks the cache for the operands of the one that will
 * probably follow it on its multiprocessor, while it computes. Where heads have less than a line of
 * a row, their neighbours have fetched it. */
HG_NODISCARD static inline hg_status set_ahead(hg_context *ctx, const void *kernel, int threads,
                                               size_t bytes, struct graph_operands *of)
{
	const int device = static_cast<const hg__cuda_state *>(ctx->state)->device;
	int resident = 0, processors = 0;
	of->ahead = 0;
	if (of->d < 64)
		return HG_OK;
	HG__CUDA(ctx, "attention: multiprocessors",
	         cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
	HG__CUDA(ctx, "attention: resident blocks",
	         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, bytes));
	of->ahead = static_cast<unsigned>(resident * processors);
	return HG_OK;
}

/* ---- device side: the block and its warps ---- */

struct graph_block {
	int32_t first, nodes; /* of the graph */
	int side, head;
	int rows; /* of matrices in shared memory: nodes, and rows of zeros */
	int64_t tile;
	int own;        /* the first of the warp's 16 rows */
	int lane, g, t; /* lane = 4 g + t */
};
static __device__ inline struct graph_block graph_block_of(const struct graph_operands &o,
                                                           unsigned block)
{
	const unsigned heads = static_cast<unsigned>(o.heads);
	const struct hg__dense_graph graph = o.graph[block / heads];
	struct graph_block b;
	b.first = graph.first, b.nodes = graph.nodes, b.tile = graph.tile;
	b.side = hg__dense_side(graph.nodes);
	b.rows = b.side * HG__DENSE_TILE;
	b.head = static_cast<int>(block % heads);
	b.own = static_cast<int>(threadIdx.x / 32) * HG__DENSE_TILE;
	b.lane = static_cast<int>(threadIdx.x % 32);
	b.g = b.lane / 4, b.t = b.lane % 4;
	return b;
}

/* The counts of the lane in tile `other` of the warp's row of tiles. Count b is that of row g + 8
 * (b / 2 % 2) of the warp and column 2 t + b % 2 + 8 (b / 4) of the tile. */
static __device__ inline uint32_t counts_of(const uint32_t *count, const struct graph_block &b,
                                            int other)
{
	const int64_t tile = b.tile + static_cast<int64_t>(b.own / HG__DENSE_TILE) * b.side + other;
	return __ldg(count + tile * HG__DENSE_WORDS + b.lane);
}
static __device__ inline unsigned count_at(uint32_t counts, int b)
{
	return counts >> 4 * b & 15u;
}

/* The row of the warp, and the column of the tile, of number h, e of a lane's results of two
 * products side by side: h is the product. Both belong to count 4 h + e. */
static __device__ inline int row_at(const struct graph_block &b, int e)
{
	return b.own + b.g + 8 * (e / 2);
}
static __device__ inline int column_at(const struct graph_block &b, int tile, int h, int e)
{
	return HG__DENSE_TILE * tile + 8 * h + 2 * b.t + e % 2;
}

/* exp of scores is computed as a power of two, because the unit for powers of two needs no more
 * instructions. It is within 2^-22 of its size. */
constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;
static __device__ inline float power_of_two(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
/* The smaller number; NaN if either is a NaN. */
static __device__ inline float min_nan(float a, float b)
{
	float y;
	asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
	return y;
}
/* A test of one bit mask; count_at would also shift. */
static __device__ inline bool is_counted(uint32_t counts, int b)
{
	return (counts & 15u << 4 * b) != 0;
}
/* Whether an entry occurs more than once. */
static __device__ inline bool has_multiples(uint32_t counts)
{
	return (counts & 0xEEEEEEEEu) != 0;
}

/* Bit b: whether dropout keeps the edge of count b, if it exists. i, j: the nodes of count b. */
template <typename I, typename J>
static __device__ inline unsigned kept_of(const struct attention_mask &mask,
                                          const struct graph_block &b, uint32_t counts, I i, J j)
{
	unsigned bits = 0;
#pragma unroll
	for (int n = 0; n < 8; n++)
		if (count_at(counts, n) != 0 && mask.of(b.first + i(n), b.first + j(n), b.head) != 0.0f)
			bits |= 1u << n;
	return bits;
}

/* ---- device side: copies to shared memory ---- */

static __device__ inline unsigned shared_address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/* The packs of 8 columns that a thread copies: one column, and every `step`-th row from `row` on.
 * The threads of a block are whole rows of packs. */
template <int D> struct thread_packs {
	static constexpr int PACKS = D / 8;
	int row, col, step, end;

	__device__ explicit thread_packs(const struct graph_block &b)
	    : row(static_cast<int>(threadIdx.x) / PACKS),
	      col(static_cast<int>(threadIdx.x) % PACKS * 8),
	      step(static_cast<int>(blockDim.x) / PACKS), end(b.rows)
	{
	}
};

/* Begins to copy the head's columns of all rows of a graph to shared memory, with zeros for rows
 * behind the last node, up to b.rows, and columns behind the last of the head. */
template <int D>
static __device__ inline void fetch_rows(__half *to, const __half *from, int64_t ld, int d,
                                         const struct graph_block &b)
{
	const struct thread_packs<D> packs(b);
	const __half *source = from + (b.first + packs.row) * ld + b.head * d + packs.col;
	unsigned at = shared_address(to + packs.row * GRAPH_PITCH<D> + packs.col);
	for (int row = packs.row; row < packs.end; row += packs.step) {
		const bool exists = row < b.nodes && packs.col < d;
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
		             "l"(exists ? source : from), "r"(exists ? 16u : 0u)
		             : "memory");
		source += packs.step * ld;
		at += static_cast<unsigned>(packs.step * GRAPH_PITCH<D> * sizeof(__half));
	}
}
/* Waits for the copies of this thread; a barrier must follow. */
static __device__ inline void await_rows()
{
	asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Asks the second-level cache for the head's columns of all rows of a graph, sector by sector.
 * A sector is 32 bytes; more would rely on how much the cache fetches at once. */
constexpr int SECTOR_BYTES = 32;
template <int D>
static __device__ inline void prefetch_rows(const __half *from, int64_t ld, int d,
                                            const struct graph_block &b)
{
	constexpr int SECTOR = SECTOR_BYTES / sizeof(__half), SECTORS = (D + SECTOR - 1) / SECTOR;
	const __half *const of_head = from + b.first * ld + b.head * d;
	for (int i = static_cast<int>(threadIdx.x); i < b.nodes * SECTORS;
	     i += static_cast<int>(blockDim.x))
		if (i % SECTORS * SECTOR < d)
			asm volatile("prefetch.global.L2 [%0];" ::"l"(of_head + i / SECTORS * ld +
			                                              i % SECTORS * SECTOR));
}

/* Asks it for the counts of a graph. */
static __device__ inline void prefetch_counts(const uint32_t *count, const struct graph_block &b)
{
	constexpr int SECTOR = SECTOR_BYTES / sizeof(uint32_t);
	const uint32_t *const of_graph = count + b.tile * HG__DENSE_WORDS;
	for (int i = static_cast<int>(threadIdx.x); i < b.side * b.side * HG__DENSE_WORDS / SECTOR;
	     i += static_cast<int>(blockDim.x))
		asm volatile("prefetch.global.L2 [%0];" ::"l"(of_graph + i * SECTOR));
}

/* ---- device side: products ---- */

/* Four matrices [8, 8] of halves from the rows whose addresses lanes 0-7, 8-15, 16-23 and 24-31
 * give; lane 4 g + t receives row g, columns 2t and 2t + 1, of each. Transposed: rows 2t and 2t +
 * 1, column g. */
static __device__ inline uint4 load_matrices(unsigned address)
{
	uint4 r;
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
	             : "r"(address)
	             : "memory");
	return r;
}
static __device__ inline uint4 load_transposed(unsigned address)
{
	uint4 r;
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
	             : "r"(address)
	             : "memory");
	return r;
}

/* The address that a lane gives for the left operand [16, 16] at the beginning of 16 rows, and for
 * the transposed right operand: matrices 0 and 1 are rows 0-7 and 8-15, and 2 and 3 the same rows 8
 * columns on. */
template <int D> static __device__ inline unsigned left_address(const __half *rows, int lane)
{
	return shared_address(rows + lane % 16 * GRAPH_PITCH<D> + lane / 16 * 8);
}
/* For two right operands [16, 8] whose columns are the 16 rows: matrices 0 and 1 are columns 0-7
 * and 8-15 of rows 0-7, and 2 and 3 those of rows 8-15. */
template <int D> static __device__ inline unsigned right_address(const __half *rows, int lane)
{
	return shared_address(rows + (lane % 8 + lane / 16 * 8) * GRAPH_PITCH<D> + lane / 8 % 2 * 8);
}
constexpr unsigned STEP_BYTES = HG__DENSE_TILE * sizeof(__half); /* 16 columns on */

/* Two numbers as halves. */
static __device__ inline unsigned pair_of(float x, float y)
{
	const __half2 pair = __floats2half2_rn(x, y);
	unsigned bits;
	memcpy(&bits, &pair, sizeof bits);
	return bits;
}
/* 16 x 16 weights as a left operand. */
static __device__ inline uint4 left_of(const float (&w)[2][4])
{
	return make_uint4(pair_of(w[0][0], w[0][1]), pair_of(w[0][2], w[0][3]),
	                  pair_of(w[1][0], w[1][1]), pair_of(w[1][2], w[1][3]));
}

/* Two halves, with 0 in place of those that are not finite: their exponent is 31. */
static __device__ inline unsigned only_finite(unsigned pair)
{
	const unsigned low = (pair & 0x7C00u) == 0x7C00u ? 0u : 0xFFFFu,
	               high = (pair & 0x7C000000u) == 0x7C000000u ? 0u : 0xFFFF0000u;
	return pair & (low | high);
}
static __device__ inline uint4 only_finite(const uint4 &r)
{
	return make_uint4(only_finite(r.x), only_finite(r.y), only_finite(r.z), only_finite(r.w));
}

/* Sums of a lane over 8 N columns, here and below: sums[n] are columns 8 n + 2 t and 8 n + 2 t + 1
 * of rows g, g, g + 8, g + 8. */
template <int N> static __device__ inline void clear(float (&sums)[N][4])
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			sums[n][e] = 0.0f;
}

/* Whether any sum of the warp is not finite. x - x is NaN for them and 0 for others. */
template <int N> static __device__ inline bool any_spoiled(const float (&sums)[N][4])
{
	float zero = 0.0f;
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			zero += sums[n][e] - sums[n][e];
	return __any_sync(0xffffffffu, zero != 0.0f);
}

/* sums += W X, for 16 x 16 weights and columns 0 .. 8 N - 1 of 16 rows of X; clean: without values
 * that are not finite. */
template <int D, int N>
static __device__ inline void add_product(float (&sums)[N][4], const uint4 &w, const __half *x,
                                          int lane, bool clean)
{
	const unsigned right = left_address<D>(x, lane);
	uint4 y[N / 2];
#pragma unroll
	for (int n = 0; n < N / 2; n++) {
		y[n] = load_transposed(right + STEP_BYTES * n);
		if (clean)
			y[n] = only_finite(y[n]);
	}
#pragma unroll
	for (int n = 0; n < N / 2; n++) {
		multiply(sums[2 * n], w, y[n].x, y[n].y);
		multiply(sums[2 * n + 1], w, y[n].z, y[n].w);
	}
}

/* Adds the values of neighbours that are not finite, which add_product has left out. The weight of
 * a neighbour is positive, and has no influence on an infinity. */
template <int D, int N>
static __device__ void add_spoiled(float (&sums)[N][4], const __half *x, const uint32_t *count,
                                   const struct graph_block &b)
{
	const int64_t tiles = b.tile + static_cast<int64_t>(b.own / HG__DENSE_TILE) * b.side;
#pragma unroll 1
	for (int j = 0; j < b.nodes; j++) {
		const int64_t tile = tiles + j / HG__DENSE_TILE;
		const uint32_t counts = __ldg(count + tile * HG__DENSE_WORDS + 4 * b.g + j % 8 / 2);
		const int at = j % 2 + 4 * (j % HG__DENSE_TILE / 8);
		const bool is_neighbour[2] = {count_at(counts, at) != 0, count_at(counts, at + 2) != 0};
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const float value = widen(x[j * GRAPH_PITCH<D> + 8 * n + 2 * b.t + e % 2]);
				if (is_neighbour[e / 2] && value - value != 0.0f)
					sums[n][e] += value;
			}
	}
}

/* ---- device side: results of 16 rows ---- */

/* Writes pairs of halves of the warp's rows, from column c on, to rows in shared memory. */
template <int D, int N>
static __device__ inline void stage_halves(__half *own, int c, const float (&sums)[N][4],
                                           const float (&factor)[2], const struct graph_block &b)
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int high = 0; high < 2; high++)
			*reinterpret_cast<__half2 *>(own + (b.g + 8 * high) * GRAPH_PITCH<D> + c + 8 * n +
			                             2 * b.t) =
			    __floats2half2_rn(sums[n][2 * high] * factor[high],
			                      sums[n][2 * high + 1] * factor[high]);
}

/* Stores the warp's rows: packs of 8 columns, which put(row of the warp, column) makes, in 16 bytes
 * each. */
template <int D, typename F>
static __device__ inline void store_rows(__half *to, int64_t ld, int d, const struct graph_block &b,
                                         F pack_at)
{
	constexpr int PACKS = D / 8;
	__half *const of_head = to + b.first * ld + b.head * d;
	for (int i = b.lane; i < HG__DENSE_TILE * PACKS; i += 32) {
		const int row = i / PACKS, col = i % PACKS * 8;
		if (b.own + row < b.nodes && col < d)
			*reinterpret_cast<uint4 *>(of_head + (b.own + row) * ld + col) = pack_at(row, col);
	}
}
template <int D>
static __device__ inline void store_halves(__half *to, int64_t ld, int d, const __half *own,
                                           const struct graph_block &b)
{
	store_rows<D>(to, ld, d, b, [&](int row, int col) {
		return *reinterpret_cast<const uint4 *>(own + row * GRAPH_PITCH<D> + col);
	});
}

/* attention_graphs_back.cu: whether a multiprocessor has room for the backward pass of a graph. The
 * forward pass asks as well, so that the same kernels compute the scores in both. */
bool hg__cuda_attention_graphs_back_fits(const struct hg__csr &csr, const struct hg__attention &of);

#endif
