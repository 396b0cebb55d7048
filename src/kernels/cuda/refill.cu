/* The arrays of a graph that is refilled (core/refill.h), made in one of three ways (refill.cuh).
 * All sizes are those of the room, so the work can be captured. */

#include "kernels/cuda/refill.cuh"
#include "kernels/overflow.h"

namespace
{

__global__ void raise_word(const uint64_t *broken, uint64_t raised, uint64_t *word)
{
	if (*broken != HG__PROMISES_KEPT && raised > *word)
		*word = raised;
}

} // namespace

hg_status hg__cuda_refill_scratch(hg_context *ctx, const struct hg__refill *r, size_t *bytes)
{
	if (r->to.scatters) {
		*bytes = hg__refill_degree_bytes(r);
		return HG_OK;
	}
	if (!refill_rows_suits(r))
		return refill_sort_scratch(ctx, r, bytes);
	*bytes = refill_rows_scratch(r);
	return HG_OK;
}

hg_status hg__cuda_refill(hg_context *ctx, const struct hg__refill *r)
{
	if (r->to.scatters)
		return refill_list(ctx, r);
	return refill_rows_suits(r) ? refill_rows(ctx, r) : refill_sort(ctx, r);
}

hg_status hg__cuda_raise(hg_context *ctx, const uint64_t *broken, int32_t node, uint64_t *word)
{
	const cudaStream_t stream = stream_of(ctx);
	raise_word<<<1, 1, 0, stream>>>(broken, hg__overflow_word(node, INFINITY), word);
	return launched(ctx, "graph stream: promises");
}
