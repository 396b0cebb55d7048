/* The epilogue of attention, `ended` in kernels/attention.h, which every implementation applies
 * where it stores Y:
 *
 *     ended = dropout(f(Y + b))
 *
 * It runs once per row. A call without an epilogue has `to` NULL, the same for all threads. */
#ifndef HG_KERNELS_CUDA_ATTENTION_EPILOGUE_CUH
#define HG_KERNELS_CUDA_ATTENTION_EPILOGUE_CUH

#include "kernels/cuda/sum_epilogue.cuh"

struct attention_epilogue {
	void *to;
	int64_t ld;
	struct sum_epilogue then;

	/* y: columns col .. col + W - 1 of a row of Y, W 1 or 8. */
	template <typename T, int W>
	__device__ void put(int32_t row, int32_t col, const float (&y)[W],
	                    const struct guard &guard) const
	{
		float v[W];
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = y[i];
		then.put(static_cast<T *>(to), row * ld + col, row, col, v, guard);
	}
	/* One column. It is not inlined, for kernels that have no registers to spare. */
	template <typename T>
	__noinline__ __device__ void put_one(int32_t row, int32_t col, float y,
	                                     const struct guard &guard) const
	{
		float v[1] = {y};
		then.put(static_cast<T *>(to), row * ld + col, row, col, v, guard);
	}
};

static inline struct attention_epilogue attention_epilogue_of(const struct hg__attention_args &a)
{
	return {a.ended.data, a.ended.ld, sum_epilogue_of(a.epilogue)};
}

/* Runs a call as run(call without epilogue), and then the epilogue as a kernel of its own, which
 * reads Y as it is stored, and may begin with its mean over heads. Where Y is not needed, it is
 * computed in the place of `ended`. */
template <typename F>
static inline hg_status epilogue_apart(hg_context *ctx, const struct hg__attention_args &a, F run)
{
	struct hg__attention_args first = a;
	if (!a.y.data)
		first.y = a.ended;
	first.ended.data = nullptr;
	const struct hg__epilogue_args second = {first.y, a.epilogue.b, a.ended, a.epilogue.act_drop,
	                                         a.overflow};
	HG__TRY(run(first));
	return hg__cuda_epilogue(ctx, &second);
}

#endif
