/* What forward and backward of small_layers share (kernels/small_layers.h): a warp has a bin, and
 * everything of the bin stays in the registers of the warp from layer to layer.
 *
 * It works because tensor-core products chain. The result C of one product (tensor_core.cuh),
 * narrowed, is the operand B of the next one as it lies in the registers, with its two directions
 * exchanged. So the rows of a bin go to and fro between two layouts:
 *
 *     by_node      C [node, feature]: a register has two features of a node
 *     by_feature   C [feature, node]: a register has two nodes of a feature
 *
 *     product      by_node -> by_feature    T^T = W^T H^T
 *     aggregate    by_feature -> by_node    A T
 *
 * A layer that aggregates first needs a transposition (flip), and a product that keeps by_node.
 *
 * The matrix A of a bin is dense: HG__BIN_ROWS x HG__BIN_ROWS halves, operand A of the products,
 * made once for all layers. With 2 or 3 graphs in a bin most of it is 0, but 16 rows take only 12
 * products, and nothing is gathered. A number that is not finite spreads over its bin. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_CUH

#include "kernels/cuda/drop.cuh"
#include "kernels/cuda/guard.cuh"
#include "kernels/cuda/launch.cuh"

namespace small
{

constexpr int TILE = 16, TILES = HG__BIN_ROWS / TILE; /* of the nodes of a bin */
constexpr int WIDTH = 32, WIDE = WIDTH / TILE, EIGHTS = WIDTH / 8;
constexpr int WARPS = 8, THREADS = 32 * WARPS;

/* Rows in shared memory, padded so that the eight rows of a small matrix lie in different banks. */
constexpr int PITCH = WIDTH + 8;              /* of a weight matrix */
constexpr int STRIP_PITCH = HG__BIN_ROWS + 8; /* of A */
constexpr int STRIP_ROWS = 32;
constexpr int STRIP_BYTES = STRIP_ROWS * STRIP_PITCH * static_cast<int>(sizeof(__half));
constexpr int WEIGHT_HALVES = WIDTH * PITCH;
constexpr int BIASES = WIDTH / 2; /* float4 of a layer */

/* One layer as the kernels read it. inner, result: nodes of the tape, -1:
 * no check. */
struct layer {
	const __half *w, *b;
	float *dw, *db;
	uint64_t key;
	int64_t w_ld, dw_ld;
	uint32_t threshold;
	float scale; /* 1 / (1 - p) */
	int32_t inner, result;
	int8_t in, out, ending, aggregate_first;
	bool eights; /* columns 8 k .. 8 k + 7 of w can be read at once */
};
/* What ends a layer: nothing, relu, or relu and dropout. */
enum ending { PLAIN, RELU, DROP };
struct layers {
	struct layer of[HG__SMALL_LAYERS];
	int count;
};
/* pairs: two neighbouring columns, the first one even, can be read at once. */
struct rows {
	__half *data;
	int64_t ld;
	int cols;
	bool pairs;
};
/* A in CSR form. It joins rows and columns of one bin. */
struct entries {
	const int64_t *rowptr;
	const int32_t *col;
	const float *row_scale, *col_scale;
	float alpha;
};
struct bin {
	int first, rows;
};

struct by_node {
	unsigned at[TILES][WIDE][2][2]; /* [node tile][feature tile][node half][feature half] */
};
struct by_feature {
	unsigned at[WIDE][TILES][2][2]; /* [feature tile][node tile][feature half][node half] */
};
struct adjacency {
	uint4 at[TILES][TILES];
};

/* ---- host side ---- */

static inline bool reads_pairs(const struct hg__mat &m)
{
	return m.ld % 2 == 0 && reinterpret_cast<uintptr_t>(m.data) % 4 == 0;
}
static inline struct layers layers_of(const struct hg__small_layers_args *a)
{
	struct layers all = {};
	all.count = a->layers;
	for (int l = 0; l < a->layers; l++) {
		const struct hg__small_layer &from = a->layer[l];
		const struct hg__act_drop &end = from.act_drop;
		struct layer &to = all.of[l];
		to.w = data_of<__half>(from.w);
		to.b = data_of<__half>(from.b);
		to.dw = data_of<float>(from.dw);
		to.db = data_of<float>(from.db);
		to.key = end.key;
		to.w_ld = from.w.ld;
		to.dw_ld = from.dw.ld;
		to.threshold = end.p > 0.0f ? hg__rng_threshold(end.p) : 0;
		to.scale = end.p > 0.0f ? 1.0f / (1.0f - end.p) : 1.0f;
		to.inner = from.inner.word ? from.inner.node : -1;
		to.result = from.result.word ? from.result.node : -1;
		to.in = static_cast<int8_t>(from.w.rows);
		to.out = static_cast<int8_t>(from.w.cols);
		to.eights = from.w.ld % 8 == 0 && reinterpret_cast<uintptr_t>(from.w.data) % 16 == 0;
		to.ending = static_cast<int8_t>(end.p > 0.0f ? DROP : end.act ? RELU : PLAIN);
		to.aggregate_first = from.aggregate_first != 0;
	}
	return all;
}
static inline struct rows rows_of(const struct hg__mat &m)
{
	return {data_of<__half>(m), m.ld, static_cast<int>(m.cols), reads_pairs(m)};
}
static inline struct entries entries_of(const struct hg__small_layers_args *a)
{
	return {a->csr.rowptr, a->csr.col, a->row_scale, a->col_scale, a->alpha};
}

/* ---- device side: small matrices ---- */

static __device__ inline unsigned shared_address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
/* Four matrices of 8 x 8 halves from shared memory; each lane has the address of one of the 32
 * rows. With `flipped` each is transposed. */
template <bool FLIPPED = false> static __device__ inline uint4 load_matrices(unsigned address)
{
	uint4 m;
	if constexpr (FLIPPED)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		             : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
		             : "r"(address)
		             : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		             : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
		             : "r"(address)
		             : "memory");
	return m;
}
/* Stores four matrices of 8 x 8 halves that lie in registers. Each takes 128 bytes, a row of it 16.
 * at: shared memory, the same for all lanes. */
static __device__ inline void store_matrices(unsigned at, unsigned a, unsigned b, unsigned c,
                                             unsigned d)
{
	const unsigned lane = threadIdx.x % 32;
#if __CUDA_ARCH__ >= 900
	asm volatile(
	    "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + lane * 16),
	    "r"(a), "r"(b), "r"(c), "r"(d)
	    : "memory");
#else
	const unsigned m[4] = {a, b, c, d};
#pragma unroll
	for (int i = 0; i < 4; i++)
		asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + i * 128 + lane * 4), "r"(m[i])
		             : "memory");
#endif
}
/* Transposes one matrix of 8 x 8 halves that lies in a register of the warp. */
static __device__ inline unsigned flip(unsigned m)
{
	unsigned flipped;
	asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(flipped) : "r"(m));
	return flipped;
}
static __device__ inline void flip(const struct by_node &from, struct by_feature &to)
{
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int w = 0; w < WIDE; w++)
#pragma unroll
			for (int n = 0; n < 2; n++)
#pragma unroll
				for (int f = 0; f < 2; f++)
					to.at[w][t][f][n] = flip(from.at[t][w][n][f]);
}
static __device__ inline void flip(const struct by_feature &from, struct by_node &to)
{
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int w = 0; w < WIDE; w++)
#pragma unroll
			for (int n = 0; n < 2; n++)
#pragma unroll
				for (int f = 0; f < 2; f++)
					to.at[t][w][n][f] = flip(from.at[w][t][f][n]);
}
/* Two numbers, after relu or not, as halves. A NaN stays one. */
template <bool RELU = false> static __device__ inline unsigned narrow_pair(float low, float high)
{
	unsigned pair;
	if constexpr (RELU)
		asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
	else
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
	return pair;
}

/* ---- device side: rows of global memory ---- */

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
template <bool PAIRS>
static __device__ inline void load_bin(const struct rows &m, const struct bin &bin,
                                       struct by_node &to)
{
	const int lane = static_cast<int>(threadIdx.x % 32), r = lane / 4, c = lane % 4 * 2;
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int n = 0; n < 2; n++) {
			const int row = t * TILE + n * 8 + r, inside = row < bin.rows ? row : 0;
			const __half *from = m.data + static_cast<int64_t>(bin.first + inside) * m.ld;
#pragma unroll
			for (int f = 0; f < EIGHTS; f++)
				to.at[t][f / 2][n][f % 2] =
				    load_pair<PAIRS>(from, f * 8 + c < m.cols ? f * 8 + c : 0, m.cols);
		}
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int n = 0; n < 2; n++) {
			const int cols = t * TILE + n * 8 + r < bin.rows ? m.cols : 0;
#pragma unroll
			for (int f = 0; f < EIGHTS; f++) {
				unsigned &pair = to.at[t][f / 2][n][f % 2];
				pair = cut_pair(pair, f * 8 + c, cols);
			}
		}
}
static __device__ inline void load_bin(const struct rows &m, const struct bin &bin,
                                       struct by_node &to)
{
	if (m.pairs)
		load_bin<true>(m, bin, to);
	else
		load_bin<false>(m, bin, to);
}
static __device__ inline void store_bin(const struct rows &m, const struct bin &bin,
                                        const struct by_node &from)
{
	const int lane = static_cast<int>(threadIdx.x % 32), r = lane / 4, c = lane % 4 * 2;
#pragma unroll
	for (int t = 0; t < TILES; t++)
#pragma unroll
		for (int n = 0; n < 2; n++) {
			const int row = t * TILE + n * 8 + r;
			__half *to = m.data + static_cast<int64_t>(bin.first + row) * m.ld;
#pragma unroll
			for (int f = 0; f < EIGHTS; f++)
				if (row < bin.rows)
					store_pair(to, f * 8 + c, m.cols, m.pairs, from.at[t][f / 2][n][f % 2]);
		}
}

/* Columns col .. col + 7 of row `in` of a weight matrix, with zeros outside of it. */
static __device__ inline uint4 load_eight(const struct layer &of, int in, int col)
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
static __device__ inline void load_weights(const struct layers &all, __half *w, float4 *b)
{
	constexpr int PIECES_OF_W = WIDTH * EIGHTS;
	const int tid = static_cast<int>(threadIdx.x), in = tid / EIGHTS % WIDTH,
	          col = tid % EIGHTS * 8;
	constexpr int APART = THREADS / PIECES_OF_W, AT_ONCE = 8;
	static_assert(THREADS % PIECES_OF_W == 0, "a thread has one place in all matrices");
	for (int first = tid / PIECES_OF_W; first < all.count; first += APART * AT_ONCE) {
		uint4 piece[AT_ONCE];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (first + k * APART < all.count)
				piece[k] = load_eight(all.of[first + k * APART], in, col);
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (first + k * APART < all.count)
				*reinterpret_cast<uint4 *>(w + (first + k * APART) * WEIGHT_HALVES + in * PITCH +
				                           col) = piece[k];
	}
	for (int i = tid; i < all.count * BIASES; i += THREADS) {
		const struct layer &of = all.of[i / BIASES];
		const int out = i % BIASES * 2;
		const float low = of.b && out < of.out ? __half2float(of.b[out]) : 0.0f,
		            high = of.b && out + 1 < of.out ? __half2float(of.b[out + 1]) : 0.0f;
		b[i] = make_float4(low, high, low, high);
	}
}

/* ---- device side: the matrix of a bin ---- */

/* The entries of one row, four of them at a time, because their loads would wait for each other one
 * by one. */
struct row_entries {
	static constexpr int AT_ONCE = 4;
	int64_t next, end;
	float scale;
	int col[AT_ONCE];
	float x[AT_ONCE];

	__device__ void load(const struct entries &a)
	{
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			col[k] = next + k < end ? a.col[next + k] : -1;
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			x[k] = col[k] >= 0 && a.col_scale ? scale * a.col_scale[col[k]] : scale;
		next += AT_ONCE;
	}
	/* No row: no entries. */
	__device__ void begin(const struct entries &a, const struct bin &bin, int row)
	{
		const int64_t i = bin.first + (row < bin.rows ? row : 0);
		next = a.rowptr[i];
		end = row < bin.rows ? a.rowptr[i + 1] : next;
		scale = a.row_scale ? a.alpha * a.row_scale[i] : a.alpha;
		load(a);
	}
	__device__ void add(const struct bin &bin, __half *strip) const
	{
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) {
			const unsigned at = static_cast<unsigned>(col[k] - bin.first);
			if (col[k] >= 0 && at < HG__BIN_ROWS)
				strip[at] = __hadd(strip[at], __float2half_rn(x[k]));
		}
	}
	/* Adds all of them to the row of a strip. */
	__device__ void add_all(const struct entries &a, const struct bin &bin, __half *strip)
	{
		add(bin, strip);
		while (next < end) {
			load(a);
			add(bin, strip);
		}
	}
};
/* Row tiles FIRST .. of A, as many as the strip has rows. */
template <int FIRST>
static __device__ inline void build_tiles(const struct entries &a, const struct bin &bin,
                                          struct row_entries &row, __half *strip,
                                          struct adjacency &to)
{
	const int lane = static_cast<int>(threadIdx.x % 32);
	__syncwarp();
	for (int i = lane; i < STRIP_BYTES / 16; i += 32)
		reinterpret_cast<uint4 *>(strip)[i] = make_uint4(0, 0, 0, 0);
	__syncwarp();
	row.add_all(a, bin, strip + lane * STRIP_PITCH);
	__syncwarp();
#pragma unroll
	for (int t = FIRST; t < TILES && t < FIRST + STRIP_ROWS / TILE; t++)
#pragma unroll
		for (int u = 0; u < TILES; u++)
			to.at[t][u] = load_matrices(shared_address(
			    strip + ((t - FIRST) * TILE + lane % 16) * STRIP_PITCH + u * TILE + lane / 16 * 8));
}
static __device__ inline void build_adjacency(const struct entries &a, const struct bin &bin,
                                              __half *strip, struct adjacency &to)
{
	static_assert(TILES == 3 && STRIP_ROWS == 2 * TILE, "two strips have all rows");
	const int lane = static_cast<int>(threadIdx.x % 32);
	struct row_entries row[2];
	row[0].begin(a, bin, lane);
	row[1].begin(a, bin, STRIP_ROWS + lane);
	build_tiles<0>(a, bin, row[0], strip, to);
	build_tiles<2>(a, bin, row[1], strip, to);
}

/* ---- device side: products ---- */

/* D = C + A B, with the layout of tensor_core.cuh. Unlike there the asm is not volatile, so that
 * the compiler can order independent products (measured: 0.19 to 0.17 ms a step of 12 layers). It
 * must not move one into code that only some lanes execute, so no result of a product is used only
 * there: rows are stored behind a loop over layers, or behind flip(). */
static __device__ inline void multiply(float (&d)[4], const float (&c)[4], const uint4 &a,
                                       unsigned b0, unsigned b1)
{
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
	    "{%8, %9}, {%10, %11, %12, %13};"
	    : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
	    : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]),
	      "f"(c[3]));
}
static __device__ inline void multiply(float (&d)[4], const uint4 &a, unsigned b0, unsigned b1)
{
	multiply(d, d, a, b0, b1);
}

/* Records that a number of this node does not fit a half, where one of the halves `most` is not
 * finite. */
static __device__ inline void check(unsigned long long *word, int32_t node, unsigned most)
{
	constexpr unsigned INFINITE = 0x7c00u;
	if (node >= 0 && ((most & 0x7fffu) >= INFINITE || (most >> 16 & 0x7fffu) >= INFINITE)) {
		const bool nan = (most & 0x7fffu) > INFINITE || (most >> 16 & 0x7fffu) > INFINITE;
		const unsigned long long mine = hg__overflow_word(node, nan ? NAN : INFINITY);
		if (__ldcg(word) < mine)
			atomicMax(word, mine);
	}
}

/* T = H W, by node to by feature. */
static __device__ inline void product(const struct by_node &h, const __half *w,
                                      struct by_feature &t)
{
	const int lane = static_cast<int>(threadIdx.x % 32);
	uint4 a[WIDE][WIDE];
#pragma unroll
	for (int m = 0; m < WIDE; m++)
#pragma unroll
		for (int k = 0; k < WIDE; k++)
			a[m][k] = load_matrices<true>(shared_address(
			    w + (k * TILE + lane % 8 + lane / 16 * 8) * PITCH + m * TILE + lane / 8 % 2 * 8));
#pragma unroll
	for (int n = 0; n < 2 * TILES; n++)
#pragma unroll
		for (int m = 0; m < WIDE; m++) {
			float c[4] = {};
#pragma unroll
			for (int k = 0; k < WIDE; k++)
				multiply(c, a[m][k], h.at[n / 2][k][n % 2][0], h.at[n / 2][k][n % 2][1]);
			t.at[m][n / 2][0][n % 2] = narrow_pair(c[0], c[1]);
			t.at[m][n / 2][1][n % 2] = narrow_pair(c[2], c[3]);
		}
}
/* The sums of 16 nodes begin with the bias of each feature. */
static __device__ inline void begin_tile(const float4 *b, float (&c)[EIGHTS][4])
{
#pragma unroll
	for (int f = 0; f < EIGHTS; f++) {
		const float4 bias = b[f * 4 + threadIdx.x % 4];
		c[f][0] = bias.x, c[f][1] = bias.y, c[f][2] = bias.z, c[f][3] = bias.w;
	}
}
/* Adds one row tile of A T. */
static __device__ inline void aggregate_tile(const struct adjacency &a, const struct by_feature &t,
                                             int tile, float (&c)[EIGHTS][4])
{
#pragma unroll
	for (int u = 0; u < TILES; u++)
#pragma unroll
		for (int f = 0; f < EIGHTS; f++)
			multiply(c[f], a.at[tile][u], t.at[f / 2][u][f % 2][0], t.at[f / 2][u][f % 2][1]);
}
/* Adds one row tile of T W, by node. */
static __device__ inline void product_tile(const struct by_node &t, const __half *w, int tile,
                                           float (&c)[EIGHTS][4])
{
	const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
	for (int k = 0; k < WIDE; k++) {
		const uint4 a = make_uint4(t.at[tile][k][0][0], t.at[tile][k][1][0], t.at[tile][k][0][1],
		                           t.at[tile][k][1][1]);
#pragma unroll
		for (int f = 0; f < EIGHTS; f += 2) {
			const uint4 b = load_matrices<true>(
			    shared_address(w + (k * TILE + lane % 16) * PITCH + f * 8 + lane / 16 * 8));
			multiply(c[f], a, b.x, b.y);
			multiply(c[f + 1], a, b.z, b.w);
		}
	}
}
template <bool RELU = false>
static __device__ inline void narrow_tile(const float (&c)[EIGHTS][4], unsigned (&to)[WIDE][2][2])
{
#pragma unroll
	for (int f = 0; f < EIGHTS; f++) {
		to[f / 2][0][f % 2] = narrow_pair<RELU>(c[f][0], c[f][1]);
		to[f / 2][1][f % 2] = narrow_pair<RELU>(c[f][2], c[f][3]);
	}
}
/* The largest magnitude of halves, with any sign, or of none that is negative. It is looked for
 * behind the narrowing: what does not fit is infinite there. */
template <bool POSITIVE = false, int A, int B>
static __device__ inline void look(const unsigned (&x)[A][B][2][2], unsigned &most)
{
#pragma unroll
	for (int i = 0; i < A * B * 4; i++) {
		const unsigned pair = x[i / 4 / B][i / 4 % B][i / 2 % 2][i % 2];
#if __CUDA_ARCH__ >= 860
		if constexpr (!POSITIVE) {
			asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(most) : "r"(most), "r"(pair));
			continue;
		}
#endif
		asm("max.NaN.f16x2 %0, %1, %2;"
		    : "=r"(most)
		    : "r"(most), "r"(POSITIVE ? pair : pair & 0x7fff7fffu));
	}
}
/* A T without an end: for the gradient and for a layer that aggregates first. */
static __device__ inline void aggregate(const struct adjacency &a, const struct by_feature &from,
                                        struct by_node &to)
{
#pragma unroll
	for (int t = 0; t < TILES; t++) {
		float c[EIGHTS][4] = {};
		aggregate_tile(a, from, t, c);
		narrow_tile(c, to.at[t]);
	}
}

/* ---- device side: the end of a layer ---- */

/* Which elements of 16 rows dropout keeps: bit 4 f + 2 n + e for element e of the pair at node half
 * n and feature eighth f. A quad of columns belongs to two lanes, so each of them draws the quads
 * of 8 rows and they exchange. */
static __device__ inline unsigned draw(const struct layer &of, int64_t step, int64_t first)
{
	const int lane = static_cast<int>(threadIdx.x % 32), odd = lane & 1;
	unsigned own = 0;
#pragma unroll
	for (int f = 0; f < EIGHTS; f++) {
		const struct hg__rng4 word = hg__rng_quad(
		    of.key, first + lane / 4 + 8 * odd, static_cast<uint32_t>(2 * f + lane % 4 / 2), step);
#pragma unroll
		for (int i = 0; i < 4; i++)
			own |= (word.w[i] >= of.threshold ? 1u : 0u) << (4 * f + i);
	}
	const unsigned other = __shfl_xor_sync(0xffffffffu, own, 1),
	               low = (odd ? other : own) >> 2 * odd & 0x3333u,
	               high = (odd ? own : other) >> 2 * odd & 0x3333u;
	return low | high << 2;
}
/* Dropout behind relu, of 16 nodes. kept: the elements that stay (draw). */
static __device__ inline void drop_tile(float scale, unsigned kept, float (&c)[EIGHTS][4])
{
#pragma unroll
	for (int f = 0; f < EIGHTS; f++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			c[f][i] = kept >> (4 * f + i) & 1u ? c[f][i] * scale : 0.0f;
}

/* Sets the rows of a tile behind the last node to 0: a bias alone is no result, and what does not
 * fit there would make the rows of nodes NaN. */
static __device__ inline void clear_behind(int rows, unsigned (&x)[WIDE][2][2])
{
	const int row = static_cast<int>(threadIdx.x % 32 / 4);
#pragma unroll
	for (int i = 0; i < WIDE * 4; i++)
		if (row + i / 2 % 2 * 8 >= rows)
			x[i / 4][i / 2 % 2][i % 2] = 0;
}

/* What dropout keeps of a layer and a bin, as `kept` stores it: TILES numbers of 16 bits a lane. */
struct kept {
	uint16_t *at; /* NULL: draw, and store nothing */
	bool stored;  /* it has been drawn before */
	int64_t step;

	__device__ unsigned tile(const struct layer &of, const struct bin &bin, int t) const
	{
		const int lane = static_cast<int>(threadIdx.x % 32);
		if (stored)
			return at[t * 32 + lane];
		const unsigned bits = draw(of, step, bin.first + t * TILE);
		if (at)
			at[t * 32 + lane] = static_cast<uint16_t>(bits);
		return bits;
	}
};
static_assert(TILES * 32 * sizeof(uint16_t) == HG__BIN_ROWS * WIDTH / 8,
              "kernels/small_layers.h has the size");

/* H' of one layer from H, in place. Relu comes with the narrowing, behind dropout, which does not
 * change a sign. */
template <bool GUARDS, bool AGGREGATES, int ENDING>
static __device__ inline void run_layer(const struct layer &of, const struct adjacency &a,
                                        const __half *w, const float4 *b, const struct bin &bin,
                                        const struct kept &kept, unsigned long long *word,
                                        struct by_node &h)
{
	struct by_feature t;
	unsigned inner = 0, result = 0;
	if constexpr (AGGREGATES) {
		flip(h, t);
		aggregate(a, t, h);
	} else {
		product(h, w, t);
	}
	if constexpr (GUARDS && AGGREGATES)
		look(h.at, inner);
	else if constexpr (GUARDS)
		look(t.at, inner);
#pragma unroll
	for (int i = 0; i < TILES; i++) {
		float c[EIGHTS][4];
		begin_tile(b, c);
		if constexpr (AGGREGATES)
			product_tile(h, w, i, c);
		else
			aggregate_tile(a, t, i, c);
		if constexpr (ENDING == DROP)
			drop_tile(of.scale, kept.tile(of, bin, i), c);
		narrow_tile<ENDING != PLAIN>(c, h.at[i]);
		if ((i + 1) * TILE > bin.rows)
			clear_behind(bin.rows - i * TILE, h.at[i]);
	}
	if constexpr (GUARDS) {
		look<ENDING != PLAIN>(h.at, result);
		check(word, of.inner, inner);
		check(word, of.result, result);
	}
}
/* The same with the kinds of the layer found at run time. All lanes take one branch. */
template <bool GUARDS, bool AGGREGATES, typename... Args>
static __device__ inline void run_ending(const struct layer &of, Args &&...args)
{
	if (of.ending == RELU)
		run_layer<GUARDS, AGGREGATES, RELU>(of, static_cast<Args &&>(args)...);
	else if (of.ending == DROP)
		run_layer<GUARDS, AGGREGATES, DROP>(of, static_cast<Args &&>(args)...);
	else
		run_layer<GUARDS, AGGREGATES, PLAIN>(of, static_cast<Args &&>(args)...);
}
template <bool GUARDS, typename... Args>
static __device__ inline void run_any(const struct layer &of, Args &&...args)
{
	if (of.aggregate_first)
		run_ending<GUARDS, true>(of, static_cast<Args &&>(args)...);
	else
		run_ending<GUARDS, false>(of, static_cast<Args &&>(args)...);
}

} // namespace small

#endif
