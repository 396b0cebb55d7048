/* The overflow check of values that are about to be stored as halves (kernels/overflow.h): W
 * neighbouring columns of a row. Columns after the last one are padding, may hold anything, and are
 * ignored. */
#ifndef HG_KERNELS_CUDA_GUARD_CUH
#define HG_KERNELS_CUDA_GUARD_CUH

#include "kernels/cuda/launch.cuh"

/* The larger of |a| and |b|; NaN if either is a NaN. One instruction. */
static __device__ inline float largest(float a, float b)
{
	float most;
	asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(fabsf(a)), "f"(fabsf(b)));
	return most;
}

struct guard {
	unsigned long long *word;
	int64_t cols;
	int32_t line;

	template <int W> __device__ void check(int64_t col, const float (&x)[W]) const
	{
		if (!word || fits(col, x))
			return;
		unsigned most = 0;
#pragma unroll
		for (int i = 0; i < W; i++) {
			const unsigned bits = col + i < cols ? __float_as_uint(x[i]) & 0x7FFFFFFFu : 0u;
			most = most > bits ? most : bits;
		}
		if (most < __float_as_uint(HG__OVERFLOW_LEAST))
			return;
		/* Where one number overflows there may be millions, so a thread that would not change the
		 * flag only reads it. The result is a maximum and does not depend on the order. */
		const unsigned long long mine = hg__overflow_word(line, __uint_as_float(most));
		if (__ldcg(word) < mine)
			atomicMax(word, mine);
	}
	/* Whether none of the columns overflows; false also where some are padding. */
	template <int W> __device__ bool fits(int64_t col, const float (&x)[W]) const
	{
		float most = fabsf(x[0]);
#pragma unroll
		for (int i = 1; i < W; i++)
			most = largest(most, x[i]);
		return col + W <= cols && most < HG__OVERFLOW_LEAST;
	}
};

static inline struct guard guard_of(const struct hg__overflow_flag &overflow, int64_t cols)
{
	static_assert(sizeof(unsigned long long) == sizeof *overflow.word,
	              "a word is what atomics take");
	return {reinterpret_cast<unsigned long long *>(overflow.word), cols, overflow.node};
}

#endif
