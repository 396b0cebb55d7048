/* Rows of up to NORM_SIDE halves that a product reads through a batch norm or writes before one
 * (kernels/batch_norm.h). A lane has packs of 8 columns of a row, as in tall_rows.cuh. */
#ifndef HG_KERNELS_CUDA_NORM_ROWS_CUH
#define HG_KERNELS_CUDA_NORM_ROWS_CUH

#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/tall_rows.cuh"

namespace
{

constexpr int NORM_SIDE = 64;

__device__ inline void widen_pack(const uint4 &bits, float (&v)[8])
{
	const raw<__half, 8> pack = {{bits}};
	unpack(pack, v);
}
__device__ inline uint4 narrow_pack(const float (&v)[8])
{
	uint4 bits;
	store<8>(reinterpret_cast<__half *>(&bits), v);
	return bits;
}
/* The larger of each of two halves and the half of `floor` in its place. A NaN stays a NaN. */
__device__ inline unsigned at_least(unsigned pair, __half2 floor)
{
	const __half2 larger = __hmax2_nan(half2_of(pair), floor);
	unsigned bits;
	memcpy(&bits, &larger, sizeof bits);
	return bits;
}

/* From the 8 columns of a pack in each lane to their sums over the lanes g: lane (g, t) gets that
 * of column g of the pack. */
__device__ inline float sum_of_column(const float (&v)[8], int lane)
{
	float four[4], two[2];
	const bool a = lane & 16, b = lane & 8, c = lane & 4;
#pragma unroll
	for (int i = 0; i < 4; i++)
		four[i] = (a ? v[4 + i] : v[i]) + __shfl_xor_sync(0xffffffffu, a ? v[i] : v[4 + i], 16);
#pragma unroll
	for (int i = 0; i < 2; i++)
		two[i] = (b ? four[2 + i] : four[i]) +
		         __shfl_xor_sync(0xffffffffu, b ? four[i] : four[2 + i], 8);
	return (c ? two[1] : two[0]) + __shfl_xor_sync(0xffffffffu, c ? two[0] : two[1], 4);
}

/* A matrix of halves whose rows can be read and written 8 columns at a time, also behind the last
 * one. */
struct half_rows {
	__half *at;
	int64_t ld;
	int cols;
};
inline struct half_rows half_rows_of(const struct hg__mat &m)
{
	return {static_cast<__half *>(m.data), m.ld, static_cast<int>(m.cols)};
}
/* Whether m is absent or such a matrix of up to NORM_SIDE columns. */
inline bool is_half_rows(const struct hg__mat &m)
{
	return !m.data ||
	       (m.dtype == HG_F16 && m.cols > 0 && m.cols <= NORM_SIDE && m.ld % 8 == 0 &&
	        m.ld == hg__leading(m.cols) && reinterpret_cast<uintptr_t>(m.data) % 16 == 0);
}

/* The vectors of a norm in shared memory, with zeros behind the last column. */
struct norm_vectors {
	float mean[NORM_SIDE], rstd[NORM_SIDE], gamma[NORM_SIDE], beta[NORM_SIDE];

	/* All threads of the block must call it, and wait for one another before `at`. */
	__device__ void fill(const struct column_facts &of, int cols)
	{
		for (int i = thread_in_block(); i < NORM_SIDE; i += blockDim.x * blockDim.y) {
			const bool exists = i < cols;
			mean[i] = exists ? of.mean[i] : 0.0f;
			rstd[i] = exists ? of.rstd[i] : 0.0f;
			gamma[i] = exists ? of.gamma[i] : 0.0f;
			beta[i] = exists && of.beta ? of.beta[i] : 0.0f;
		}
	}
	__device__ struct column_pack<8> at(int col) const {
		const struct column_facts of = {mean, rstd, gamma, beta};
		return of.at<8>(col);
	}
};

/* A norm that is applied to rows as they are read. */
struct norm_before {
	struct column_facts of; /* of.mean NULL: there is none */
	const int64_t *live;
	bool relu;
};
inline struct norm_before norm_before_of(const struct hg__normalise &n)
{
	return {{n.mean, n.rstd, n.gamma, n.beta}, n.live, n.relu != 0};
}

/* The least result of a norm: 0 with relu, minus infinity without. */
__device__ inline __half2 floor_of(bool relu)
{
	return __float2half2_rn(relu ? 0.0f : -INFINITY);
}

/* The bits that batch_norm would have stored for these of X. */
__device__ inline uint4 normalised(const uint4 &x, const struct column_pack<8> &of, __half2 floor)
{
	float v[8];
	widen_pack(x, v);
	of.normalise(false, v);
	const uint4 y = narrow_pack(v);
	return make_uint4(at_least(y.x, floor), at_least(y.y, floor), at_least(y.z, floor),
	                  at_least(y.w, floor));
}

} // namespace

#endif
