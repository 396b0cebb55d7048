/* A batch of whole graphs (kernels/assemble.h). All graphs have the same number of threads, which
 * are neighbours in the grid. The threads behind those of the last graph write the padding. */

#include "kernels/assemble.h"
#include "kernels/cuda/build.cuh"

namespace
{

/* The number of threads of a graph is a power of two, at least a warp, and so large that a thread
 * has about four edges of a graph of mean size. Derived, not measured. */
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

/* The padding has a thread for every eighth row of the batch, and at least one warp, since every
 * batch has padding. Other kernels may read the arrays of a graph before their first barrier
 * (launch.cuh), so this kernel is not launched in a way that lets it overlap with them. */
hg_status hg__cuda_assemble(hg_context *ctx, const struct hg__assemble *a)
{
	const int shift = shift_of(a);
	const int64_t rest = a->to.rows / 8 + (1 << LEAST);
	const unsigned blocks = grid_for((a->list.graphs << shift) + rest, BLOCK);
	assemble_kernel<<<blocks, BLOCK, 0, stream_of(ctx)>>>(*a, shift);
	return launched(ctx, "batches: assemble");
}
