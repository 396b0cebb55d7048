/* Dropout of elements: x / (1 - p) where the element's random number is at least the threshold,
 * else 0.
 *
 * The number of element (row, c) is word c % 4 of hg__rng_quad(key, row, c / 4, *step). It is a
 * pure function and equal on every device, so the backward pass computes it again and keeps no
 * mask. *step is read on the device, so a captured step stays valid. */
#ifndef HG_KERNELS_CUDA_DROP_CUH
#define HG_KERNELS_CUDA_DROP_CUH

#include "core/rng.h"
#include "kernels/cuda/launch.cuh"

struct drop {
	uint64_t key;
	const int64_t *step;
	uint32_t threshold;
	float keep; /* 1 - p */

	__device__ float one(float v, uint32_t word) const
	{
		return word >= threshold ? v / keep : 0.0f;
	}
	/* A pack of W columns. */
	template <int W> __device__ void pack(int64_t row, int64_t col, float (&v)[W]) const
	{
		if constexpr (W == 1) {
			const struct hg__rng4 word =
			    hg__rng_quad(key, row, static_cast<uint32_t>(col / 4), *step);
			v[0] = one(v[0], word.w[col % 4]);
		} else {
#pragma unroll
			for (int quad = 0; quad < W / 4; quad++) {
				const struct hg__rng4 word =
				    hg__rng_quad(key, row, static_cast<uint32_t>(col / 4 + quad), *step);
#pragma unroll
				for (int i = 0; i < 4; i++)
					v[4 * quad + i] = one(v[4 * quad + i], word.w[i]);
			}
		}
	}
};

static inline struct drop drop_of(float p, uint64_t key, const int64_t *step)
{
	return {key, step, hg__rng_threshold(p), 1.0f - p};
}

#endif
