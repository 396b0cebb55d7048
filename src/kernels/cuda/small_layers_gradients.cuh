/* The gradients of one layer of small_layers: of what ends it, through its matrices to its input,
 * and what a bin adds to those of its parameters. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_GRADIENTS_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_GRADIENTS_CUH

#include "kernels/cuda/small_layers_saved.cuh"
#include "kernels/cuda/small_layers_sums.cuh"

namespace small
{

/* dH of a layer's result becomes dZ, by feature: f' and dropout. h: the result. */
template <int ENDING>
static __device__ inline unsigned differentiate(float scale, unsigned h, float low, float high)
{
	const unsigned dz =
	    ENDING == DROP ? narrow_pair(low * scale, high * scale) : narrow_pair(low, high);
	__half2 pair;
	memcpy(&pair, &h, sizeof pair);
	return ENDING == PLAIN ? dz : dz & __hgt2_mask(pair, __half2half2(__ushort_as_half(0)));
}
/* The same for all of dH, in place. */
template <int ENDING, int WIDE>
static __device__ inline void differentiate(float scale, const struct by_feature<WIDE> &h,
                                            struct by_feature<WIDE> &d)
{
#pragma unroll
	for (int i = 0; i < PIECES<WIDE> * 4; i++) {
		unsigned &at = d.at[i / 4 / TILES][i / 4 % TILES][i / 2 % 2][i % 2];
		const float2 wide = wide_pair(at);
		at = differentiate<ENDING>(scale, h.at[i / 4 / TILES][i / 4 % TILES][i / 2 % 2][i % 2],
		                           wide.x, wide.y);
	}
}
template <int WIDE>
static __device__ inline void
differentiate(const struct layer &of, const struct by_feature<WIDE> &h, struct by_feature<WIDE> &d)
{
	if (of.ending == RELU)
		differentiate<RELU>(of.scale, h, d);
	else if (of.ending == DROP)
		differentiate<DROP>(of.scale, h, d);
}
/* Rows by node as operand B: those of eight nodes and a feature tile, in registers or as save()
 * left them. */
template <int WIDE> struct rows_in_registers {
	const struct by_node<WIDE> &rows;

	__device__ uint2 at(int n, int k) const
	{
		return make_uint2(rows.at[n / 2][k][n % 2][0], rows.at[n / 2][k][n % 2][1]);
	}
};
template <int WIDE> struct rows_in_memory {
	unsigned rows;

	__device__ uint2 at(int n, int k) const
	{
		return load_two_matrices(rows + static_cast<unsigned>((n / 2 * WIDE + k) * 512 +
		                                                      n % 2 * 256 + threadIdx.x % 16 * 16));
	}
};
/* dH = T W^T + dZ W_self^T, by feature, and from it the dZ of the layer before, whose result is h
 * and which ends like this. z: the rows of dZ, or nothing, for T W^T alone. */
template <int ENDING, int WIDE, typename Rows, typename... More>
static __device__ inline void
through_weights(const __half *w, float scale, const struct by_feature<WIDE> &h,
                struct by_feature<WIDE> &d, const Rows &t, const More &...z)
{
	constexpr int MATRICES = 1 + sizeof...(z);
	const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
	for (int m = 0; m < WIDE; m++) {
		uint4 a[MATRICES][WIDE];
#pragma unroll
		for (int i = 0; i < MATRICES * WIDE; i++)
			a[i / WIDE][i % WIDE] = load_matrices(
			    shared_address(w + i / WIDE * weights<WIDE>::HALVES +
			                   weights<WIDE>::at(m * TILE + lane % 16, i % WIDE * 2 + lane / 16)));
#pragma unroll
		for (int n = 0; n < 2 * TILES; n++) {
			float c[4] = {};
#pragma unroll
			for (int k = 0; k < WIDE; k++) {
				const uint2 b[MATRICES] = {t.at(n, k), z.at(n, k)...};
#pragma unroll
				for (int i = 0; i < MATRICES; i++)
					multiply(c, a[i][k], b[i].x, b[i].y);
			}
#pragma unroll
			for (int f = 0; f < 2; f++)
				d.at[m][n / 2][f][n % 2] =
				    differentiate<ENDING>(scale, h.at[m][n / 2][f][n % 2], c[2 * f], c[2 * f + 1]);
		}
	}
}
/* From layer l. The layer before it is found by its number and not by a pointer, because a pointer
 * to parameters of the kernel is read like global memory. If that has a dy, d becomes its dH and
 * not its dZ. */
template <int WIDE, typename... Rows>
static __device__ inline void through_layer(const struct layers &all, int l, const __half *w,
                                            const struct by_feature<WIDE> &h,
                                            struct by_feature<WIDE> &d, const Rows &...rows)
{
	const int ending = l > 0 && !all.of[l - 1].dy ? all.of[l - 1].ending : PLAIN;
	if (ending == RELU)
		through_weights<RELU>(w, 1.0f, h, d, rows...);
	else if (ending == DROP)
		through_weights<DROP>(w, all.of[l - 1].scale, h, d, rows...);
	else
		through_weights<PLAIN>(w, 1.0f, h, d, rows...);
}

/* The gradient of a layer's result that does not come through the next layer. */
static __device__ inline struct rows rows_of_gradient(const struct layer &of)
{
	return rows_of(of.dy, of.dy_ld, of.out);
}
/* Adds it to d. */
template <int WIDE>
static __device__ inline void add_gradient(const struct layer &of, const struct bin &bin,
                                           struct by_feature<WIDE> &d)
{
	struct by_node<WIDE> dy;
	load_bin(rows_of_gradient(of), bin, dy);
#pragma unroll
	for (int i = 0; i < PIECES<WIDE> * 4; i++) {
		unsigned &to = d.at[i / 4 / TILES][i / 4 % TILES][i / 2 % 2][i % 2];
		const unsigned from = flip(dy.at[i / 4 % TILES][i / 4 / TILES][i % 2][i / 2 % 2]);
		__half2 sum, term;
		memcpy(&sum, &to, sizeof sum);
		memcpy(&term, &from, sizeof term);
		sum = __hadd2(sum, term);
		memcpy(&to, &sum, sizeof to);
	}
}

/* Leaves db = ones dZ of one bin in the warp's slot. */
template <int WIDE>
static __device__ inline void leave_bias(const struct by_feature<WIDE> &dz, float *slot)
{
	constexpr unsigned ONES = 0x3c003c00u; /* two halves */
	const int lane = static_cast<int>(threadIdx.x % 32);
	float db[2 * WIDE][4] = {};
#pragma unroll
	for (int k = 0; k < TILES; k++)
#pragma unroll
		for (int f = 0; f < 2 * WIDE; f++)
			multiply(db[f], make_uint4(ONES, ONES, ONES, ONES), dz.at[f / 2][k][f % 2][0],
			         dz.at[f / 2][k][f % 2][1]);
	if (lane < 4)
#pragma unroll
		for (int f = 0; f < 2 * WIDE; f++)
			*reinterpret_cast<float2 *>(slot + CHUNK + f * 8 + lane * 2) =
			    make_float2(db[f][0], db[f][1]);
}
/* Transposed rows as operand A: those of a feature tile and a node tile, of T as it has been saved,
 * or of dZ. */
template <int WIDE> struct saved_rows {
	unsigned rows;

	__device__ uint4 at(int m, int k) const
	{
		return load_matrices<true>(
		    rows + static_cast<unsigned>((k * WIDE + m) * 512 + threadIdx.x % 32 * 16));
	}
};
template <int WIDE> struct dz_rows {
	const struct by_feature<WIDE> &rows;

	__device__ uint4 at(int m, int k) const
	{
		const unsigned(&v)[2][2] = rows.at[m][k];
		return make_uint4(v[0][0], v[1][0], v[0][1], v[1][1]);
	}
};
/* Leaves chunk c of dW of one bin in the warp's slot: dW^T = T^T H, or dW_self^T = dZ^T H. */
template <int WIDE, typename Rows>
static __device__ inline void leave_weights(const Rows &left, const struct by_feature<WIDE> &h,
                                            int c, float *slot)
{
	using of = gradient<WIDE>;
	const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
	for (int i = 0; i < of::TILES_OF; i++) {
		float dw[2 * WIDE][4] = {};
#pragma unroll
		for (int k = 0; k < TILES; k++) {
			const uint4 a = left.at(c * of::TILES_OF + i, k);
#pragma unroll
			for (int f = 0; f < 2 * WIDE; f++)
				multiply(dw[f], a, h.at[f / 2][k][f % 2][0], h.at[f / 2][k][f % 2][1]);
		}
#pragma unroll
		for (int f = 0; f < 2 * WIDE; f++)
			*reinterpret_cast<float4 *>(slot + (i * of::EIGHTS + f) * 128 + lane * 4) =
			    make_float4(dw[f][0], dw[f][1], dw[f][2], dw[f][3]);
	}
}
/* Leaves all chunks of the gradient of a matrix, from the last to the first, with db = ones dZ. */
template <int WIDE, typename Rows>
static __device__ inline void leave_matrix(const struct block_sums<WIDE> &sums, int matrix,
                                           int round, int &step, const struct by_feature<WIDE> &dz,
                                           const struct by_feature<WIDE> &h, const Rows &left)
{
	constexpr int CHUNKS = gradient<WIDE>::CHUNKS;
#pragma unroll
	for (int c = CHUNKS - 1; c >= 0; c--, step++) {
		sums.add_before(step, matrix * CHUNKS + c, round);
		if (c == CHUNKS - 1)
			leave_bias(dz, sums.slot(step));
		leave_weights(left, h, c, sums.slot(step));
		sums.arrive(step);
	}
}

} // namespace small

#endif
