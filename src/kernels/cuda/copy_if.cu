/* Copies pieces of memory, to[i] = from[i], if a flag on the device is not 0. It keeps the best
 * weights without asking the host. blockIdx.y is the piece; if the flag is 0 all blocks return at
 * once. */

#include "kernels/cuda/map.cuh"

namespace
{

/* Elements that a thread copies at once. */
constexpr int64_t STRIDE = 4;

__global__ void __launch_bounds__(BLOCK)
    copy_if_kernel(const int32_t *flag, const struct hg__piece *pieces)
{
	after_previous();
	if (!*flag)
		return;
	const struct hg__piece p = pieces[blockIdx.y];
	const int64_t step = static_cast<int64_t>(gridDim.x) * BLOCK * STRIDE;
	for (int64_t i = (static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x) * STRIDE; i < p.count;
	     i += step) {
		if (i + STRIDE <= p.count)
			*reinterpret_cast<float4 *>(p.to + i) = *reinterpret_cast<const float4 *>(p.from + i);
		else
			for (int64_t k = i; k < p.count; k++)
				p.to[k] = p.from[k];
	}
}

} // namespace

HG__NO_WORKSPACE(copy_if, copy_if_args)

extern "C" hg_status hg__cuda_copy_if(hg_context *ctx, const struct hg__copy_if_args *a)
{
	/* 1024 blocks fill the largest GPU about once (totals.cuh). */
	constexpr int64_t MOST = 1024, PER_BLOCK = BLOCK * STRIDE;
	int64_t longest = 0;
	for (int64_t i = 0; i < a->count; i++)
		longest = a->host[i].count > longest ? a->host[i].count : longest;
	if (longest == 0)
		return HG_OK;
	const int64_t blocks = (longest + PER_BLOCK - 1) / PER_BLOCK;
	/* the largest gridDim.y */
	for (int64_t first = 0; first < a->count; first += UINT16_MAX) {
		const int64_t rows = a->count - first < UINT16_MAX ? a->count - first : UINT16_MAX;
		const dim3 grid(static_cast<unsigned>(blocks < MOST ? blocks : MOST),
		                static_cast<unsigned>(rows));
		HG__TRY(launch(ctx, "copy_if", copy_if_kernel, grid, BLOCK, a->flag, a->pieces + first));
	}
	return HG_OK;
}
