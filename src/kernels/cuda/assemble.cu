/* A batch of whole graphs (kernels/assemble.h). Every graph has as many threads, neighbours in the
 * grid, and the threads behind them do the rest. */

#include "kernels/assemble.h"
#include "kernels/cuda/build.cuh"

namespace
{

/* The threads of a graph are a power of two, which is at least a warp: so many that a thread has
 * some four edges. */
constexpr int64_t EDGES = 4;
constexpr int LEAST = 5, MOST = 14;

int shift_of(const struct hg__assemble *a)
{
	const int64_t graphs = a->list.graphs > 0 ? a->list.graphs : 1;
	int shift = LEAST;
	while (shift < MOST && (EDGES << shift) < a->to.m / graphs)
		shift++;
	return shift;
}

__global__ void assemble_kernel(const __grid_constant__ struct hg__assemble a, int shift)
{
	const int64_t thread = global_thread(), k = thread >> shift, behind = a.list.graphs << shift;
	const uint32_t lanes = 1u << shift;
	if (k < a.list.graphs)
		hg__assemble_graph(&a, k, hg__lanes{static_cast<uint32_t>(thread) & (lanes - 1), lanes});
	else
		hg__assemble_rest(&a, hg__lanes{static_cast<uint32_t>(thread - behind),
		                                static_cast<uint32_t>(global_threads() - behind)});
}

} // namespace

/* There is a thread for each row of the padding where that is an eighth; one warp at least, since
 * a batch always has padding. Other kernels may read the arrays of a graph before their first
 * barrier (launch.cuh), so this one is not launched beside them. */
hg_status hg__cuda_assemble(hg_context *ctx, const struct hg__assemble *a)
{
	const int shift = shift_of(a);
	const int64_t rest = a->to.rows / 8 + (1 << LEAST);
	const unsigned blocks = grid_for((a->list.graphs << shift) + rest, BLOCK);
	assemble_kernel<<<blocks, BLOCK, 0, stream_of(ctx)>>>(*a, shift);
	return launched(ctx, "batches: assemble");
}
