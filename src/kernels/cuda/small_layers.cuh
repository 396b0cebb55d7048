/* What forward and backward of small_layers share (kernels/small_layers.h): a warp has a bin, and
 * everything of the bin stays in the registers of the warp from layer to layer
 * (small_layers_matrices.cuh):
 *
 *     product      by_node -> by_feature    T^T = W^T H^T
 *     aggregate    by_feature -> by_node    A T
 *
 * A layer that aggregates first needs a transposition (flip), and a product that keeps by_node. A
 * number that is not finite spreads over its bin. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_CUH

#include <type_traits>

#include "kernels/cuda/drop.cuh"
#include "kernels/cuda/guard.cuh"
#include "kernels/cuda/small_layers_adjacency.cuh"

namespace small
{

/* ---- host side ---- */

static inline struct matrix matrix_of(const struct hg__mat &w, const struct hg__mat &dw)
{
	struct matrix to = {};
	to.w = data_of<__half>(w);
	to.dw = data_of<float>(dw);
	to.w_ld = static_cast<int32_t>(w.ld);
	to.dw_ld = static_cast<int32_t>(dw.ld);
	to.in = static_cast<int8_t>(w.rows);
	to.out = static_cast<int8_t>(w.cols);
	to.eights = w.ld % 8 == 0 && reinterpret_cast<uintptr_t>(w.data) % 16 == 0;
	return to;
}
static inline struct layers layers_of(const struct hg__small_layers_args *a)
{
	struct layers all = {};
	all.count = a->layers;
	for (int l = 0; l < a->layers; l++) {
		const struct hg__small_layer &from = a->layer[l];
		const struct hg__act_drop &end = from.act_drop;
		struct layer &to = all.of[l];
		to.w = static_cast<int8_t>(all.matrices);
		to.has_self = hg__small_has_self(&from);
		all.matrix[all.matrices] = matrix_of(from.w, from.dw);
		all.matrix[all.matrices++].db = data_of<float>(from.db);
		if (to.has_self)
			all.matrix[all.matrices++] = matrix_of(from.w_self, from.dw_self);
		to.b = data_of<__half>(from.b);
		to.y = data_of<__half>(from.y);
		to.dy = data_of<__half>(from.dy);
		to.key = end.key;
		to.y_ld = static_cast<int32_t>(from.y.ld);
		to.dy_ld = static_cast<int32_t>(from.dy.ld);
		to.threshold = end.p > 0.0f ? hg__rng_threshold(end.p) : 0;
		to.scale = end.p > 0.0f ? 1.0f / (1.0f - end.p) : 1.0f;
		to.inner = from.inner.word ? from.inner.node : -1;
		to.result = from.result.word ? from.result.node : -1;
		to.out = static_cast<int8_t>(from.w.cols);
		to.ending = static_cast<int8_t>(end.p > 0.0f ? DROP : end.act ? RELU : PLAIN);
		to.aggregate_first = from.aggregate_first != 0;
	}
	return all;
}
/* Does a layer have a W_self? */
static inline bool any_self(const struct layers &all)
{
	return all.matrices > all.count;
}
static inline struct rows rows_of(const struct hg__mat &m)
{
	return rows_of(data_of<__half>(m), m.ld, static_cast<int>(m.cols));
}

/* ---- device side: products ---- */

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

/* T = H W, by node to by feature: T^T = W^T H^T. */
template <int WIDE>
static __device__ inline void product(const struct by_node<WIDE> &h, const __half *w,
                                      struct by_feature<WIDE> &t)
{
	const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
	for (int m = 0; m < WIDE; m++) {
		uint4 a[WIDE];
#pragma unroll
		for (int k = 0; k < WIDE; k++)
			a[k] = load_matrices<true>(shared_address(
			    w + weights<WIDE>::at(k * TILE + lane % 8 + lane / 16 * 8, m * 2 + lane / 8 % 2)));
#pragma unroll
		for (int n = 0; n < 2 * TILES; n++) {
			float c[4] = {};
#pragma unroll
			for (int k = 0; k < WIDE; k++)
				multiply(c, a[k], h.at[n / 2][k][n % 2][0], h.at[n / 2][k][n % 2][1]);
			t.at[m][n / 2][0][n % 2] = narrow_pair(c[0], c[1]);
			t.at[m][n / 2][1][n % 2] = narrow_pair(c[2], c[3]);
		}
	}
}
/* The sums of 16 nodes begin with the bias of each feature. */
template <int EIGHTS>
static __device__ inline void begin_tile(const float4 *b, float (&c)[EIGHTS][4])
{
#pragma unroll
	for (int f = 0; f < EIGHTS; f++) {
		const float4 bias = b[f * 4 + threadIdx.x % 4];
		c[f][0] = bias.x, c[f][1] = bias.y, c[f][2] = bias.z, c[f][3] = bias.w;
	}
}
/* Adds one row tile of A T. */
template <int WIDE>
static __device__ inline void aggregate_tile(const struct adjacency &a,
                                             const struct by_feature<WIDE> &t, int tile,
                                             float (&c)[2 * WIDE][4])
{
#pragma unroll
	for (int u = 0; u < TILES; u++)
#pragma unroll
		for (int f = 0; f < 2 * WIDE; f++)
			multiply(c[f], a.at[tile][u], t.at[f / 2][u][f % 2][0], t.at[f / 2][u][f % 2][1]);
}
/* Adds T W of a row tile of T, by node. */
template <int WIDE>
static __device__ inline void product_tile(const unsigned (&t)[WIDE][2][2], const __half *w,
                                           float (&c)[2 * WIDE][4])
{
	const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
	for (int k = 0; k < WIDE; k++) {
		const uint4 a = make_uint4(t[k][0][0], t[k][1][0], t[k][0][1], t[k][1][1]);
#pragma unroll
		for (int f = 0; f < 2 * WIDE; f += 2) {
			const uint4 b = load_matrices<true>(
			    shared_address(w + weights<WIDE>::at(k * TILE + lane % 16, f + lane / 16)));
			multiply(c[f], a, b.x, b.y);
			multiply(c[f + 1], a, b.z, b.w);
		}
	}
}
template <bool RELU = false, int WIDE>
static __device__ inline void narrow_tile(const float (&c)[2 * WIDE][4], unsigned (&to)[WIDE][2][2])
{
#pragma unroll
	for (int f = 0; f < 2 * WIDE; f++) {
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
/* What other warps need to aggregate, before and behind it: nothing, where a warp has a bin of its
 * own. small_layers_large.cuh has another kind of A. */
template <int WIDE>
static __device__ inline void share_rows(const struct adjacency &, const struct by_feature<WIDE> &)
{
}
static __device__ inline void end_sharing(const struct adjacency &)
{
}
/* A T without an end, for the gradient and for a layer that aggregates first: a row tile, and all
 * of them. */
template <int WIDE, typename A>
static __device__ inline void aggregate_alone(const A &a, const struct by_feature<WIDE> &from,
                                              int tile, unsigned (&to)[WIDE][2][2])
{
	float c[2 * WIDE][4] = {};
	aggregate_tile(a, from, tile, c);
	narrow_tile(c, to);
}
template <int WIDE, typename A>
static __device__ inline void aggregate(const A &a, const struct by_feature<WIDE> &from,
                                        struct by_node<WIDE> &to)
{
	share_rows(a, from);
#pragma unroll
	for (int t = 0; t < TILES; t++)
		aggregate_alone(a, from, t, to.at[t]);
	end_sharing(a);
}

/* ---- device side: the end of a layer ---- */

/* Which elements of 16 rows dropout keeps: bit 4 f + 2 n + e for element e of the pair at node half
 * n and feature eighth f. A quad of columns belongs to two lanes, so each of them draws the quads
 * of 8 rows and they exchange. */
template <int EIGHTS>
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
	               low = (odd ? other : own) >> 2 * odd & 0x33333333u,
	               high = (odd ? own : other) >> 2 * odd & 0x33333333u;
	return low | high << 2;
}
/* Dropout behind relu, of 16 nodes. kept: the elements that stay (draw). */
template <int EIGHTS>
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
template <int WIDE> static __device__ inline void clear_behind(int rows, unsigned (&x)[WIDE][2][2])
{
	const int row = static_cast<int>(threadIdx.x % 32 / 4);
#pragma unroll
	for (int i = 0; i < WIDE * 4; i++)
		if (row + i / 2 % 2 * 8 >= rows)
			x[i / 4][i / 2 % 2][i % 2] = 0;
}

/* What dropout keeps of a layer and a bin, as `kept` stores it: TILES numbers of 16 or 32 bits a
 * lane. */
template <int WIDE> struct kept {
	using bits = typename std::conditional<WIDE == 4, uint32_t, uint16_t>::type;
	bits *at;    /* NULL: draw, and store nothing */
	bool stored; /* it has been drawn before */
	int64_t step;

	__device__ unsigned tile(const struct layer &of, const struct bin &bin, int t) const
	{
		const int lane = static_cast<int>(threadIdx.x % 32);
		if (stored)
			return at[t * 32 + lane];
		const unsigned drawn = draw<2 * WIDE>(of, step, bin.first + t * TILE);
		if (at)
			at[t * 32 + lane] = static_cast<bits>(drawn);
		return drawn;
	}
};
/* Layer l of bin k. */
template <int WIDE>
static __device__ inline typename kept<WIDE>::bits *kept_at(void *all, const struct layers &of,
                                                            int k, int l)
{
	static_assert(TILES * 32 * sizeof(typename kept<WIDE>::bits) == HG__BIN_ROWS * WIDE * 2,
	              "hg__small_kept numbers of 32 bits");
	const int64_t first = (static_cast<int64_t>(k) * of.count + l) * TILES * 32;
	return all ? static_cast<typename kept<WIDE>::bits *>(all) + first : nullptr;
}

/* What a layer does, known to the compiler. */
template <bool AGGREGATES_FIRST, bool HAS_SELF, int ENDING> struct fixed_kind {
	static constexpr bool aggregate_first = AGGREGATES_FIRST, has_self = HAS_SELF;
	static constexpr int ending = ENDING;
};
/* The same, found at run time. All lanes take one branch. */
struct any_kind {
	bool aggregate_first, has_self;
	int ending;
};

/* H' of one layer from H, in place: the sums of 16 nodes need no other rows of H but their own.
 * Relu comes with the narrowing, behind dropout, which does not change a sign. */
template <bool GUARDS, typename Kind, int WIDE, typename A>
static __device__ inline void run_layer(const Kind &kind, const struct layer &of, const A &a,
                                        const __half *w, const float4 *b, const struct bin &bin,
                                        const struct kept<WIDE> &kept, unsigned long long *word,
                                        struct by_node<WIDE> &h)
{
	struct by_feature<WIDE> t;
	unsigned inner = 0, result = 0;
	if (kind.aggregate_first)
		flip(h, t);
	else
		product(h, w, t);
	if (GUARDS && !kind.aggregate_first)
		look(t.at, inner);
	share_rows(a, t);
#pragma unroll
	for (int i = 0; i < TILES; i++) {
		float c[2 * WIDE][4] = {};
		if (!kind.aggregate_first)
			begin_tile(b, c);
		aggregate_tile(a, t, i, c);
		if (kind.aggregate_first) {
			unsigned sums[1][WIDE][2][2];
			narrow_tile(c, sums[0]);
			if (GUARDS)
				look(sums, inner);
			begin_tile(b, c);
			product_tile(sums[0], w, c);
		}
		if (kind.has_self)
			product_tile(h.at[i], w + weights<WIDE>::HALVES, c);
		if (kind.ending == DROP)
			drop_tile(of.scale, kept.tile(of, bin, i), c);
		if (kind.ending == PLAIN)
			narrow_tile(c, h.at[i]);
		else
			narrow_tile<true>(c, h.at[i]);
		if ((i + 1) * TILE > bin.rows)
			clear_behind(bin.rows - i * TILE, h.at[i]);
	}
	end_sharing(a);
	if (GUARDS) {
		if (kind.ending == PLAIN)
			look(h.at, result);
		else
			look<true>(h.at, result);
		check(word, of.inner, inner);
		check(word, of.result, result);
	}
}
/* The same with the kind of the layer that `of` says: a function for each kind, or one for all of
 * them, where A makes it long. ANY_SELF: some layers have a W_self. Kernels without are compiled
 * separately, because the others need more registers. */
template <bool GUARDS, bool FIRST, bool SELF, typename... Args>
static __device__ inline void run_ending(const struct layer &of, Args &&...args)
{
	if (of.ending == RELU)
		run_layer<GUARDS>(fixed_kind<FIRST, SELF, RELU>{}, of, static_cast<Args &&>(args)...);
	else if (of.ending == DROP)
		run_layer<GUARDS>(fixed_kind<FIRST, SELF, DROP>{}, of, static_cast<Args &&>(args)...);
	else
		run_layer<GUARDS>(fixed_kind<FIRST, SELF, PLAIN>{}, of, static_cast<Args &&>(args)...);
}
template <bool GUARDS, bool SELF, typename... Args>
static __device__ inline void run_order(const struct layer &of, Args &&...args)
{
	if (of.aggregate_first)
		run_ending<GUARDS, true, SELF>(of, static_cast<Args &&>(args)...);
	else
		run_ending<GUARDS, false, SELF>(of, static_cast<Args &&>(args)...);
}
template <bool GUARDS, bool ANY_SELF, typename A, typename... Args>
static __device__ inline void run_any(const struct layer &of, const A &a, Args &&...args)
{
	if constexpr (A::ONE_FUNCTION)
		run_layer<GUARDS>(any_kind{of.aggregate_first, ANY_SELF && of.has_self, of.ending}, of, a,
		                  static_cast<Args &&>(args)...);
	else if (ANY_SELF && of.has_self)
		run_order<GUARDS, ANY_SELF>(of, a, static_cast<Args &&>(args)...);
	else
		run_order<GUARDS, false>(of, a, static_cast<Args &&>(args)...);
}

} // namespace small

#endif
