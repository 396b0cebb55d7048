#ifndef HG_KERNELS_CUDA_GUARD_CUH
#define HG_KERNELS_CUDA_GUARD_CUH

/* Numbers on their way into halves (kernels/overflow.h): W neighbouring columns of a row, of which
 * those beyond the last one are padding and may be anything. */

#include "kernels/cuda/launch.cuh"

struct guard {
	unsigned long long *word;
	int64_t cols;
	int32_t line;

	template <int W> __device__ void look(int64_t col, const float (&x)[W]) const
	{
		if (!word)
			return;
		unsigned most = 0;
#pragma unroll
		for (int i = 0; i < W; i++) {
			const unsigned bits = col + i < cols ? __float_as_uint(x[i]) & 0x7FFFFFFFu : 0u;
			most = most > bits ? most : bits;
		}
		if (most < __float_as_uint(HG__OVERFLOW_LEAST))
			return;
		/* Where one number does not fit there may be millions: who changes nothing only looks. The
		 * largest wins, in whatever order. */
		const unsigned long long mine = hg__overflow_word(line, __uint_as_float(most));
		if (__ldcg(word) < mine)
			atomicMax(word, mine);
	}
};

static inline struct guard guard_of(const struct hg__overflow_flag &overflow, int64_t cols)
{
	static_assert(sizeof(unsigned long long) == sizeof *overflow.word,
	              "a word is what atomics take");
	return {reinterpret_cast<unsigned long long *>(overflow.word), cols, overflow.node};
}

#endif
