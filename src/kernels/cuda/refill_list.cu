/* The complete list of a graph that is refilled, as it is, for sums that scatter:
 *
 *     clear     the degrees of rows and of columns
 *     list      each edge is checked, written, and counted at both ends. Self loops and padding are
 *               not counted: how many a row has follows from its number
 *     nodes     degrees, and what follows from them */

#include "kernels/cuda/refill.cuh"

namespace
{

__global__ void clear_degrees(const __grid_constant__ struct hg__refill r)
{
	int32_t *const degree = hg__refill_degrees(&r, 0);
	for (int64_t k = global_thread(); k < 2 * r.rows; k += global_threads())
		degree[k] = 0;
	if (global_thread() == 0)
		put_counts(r);
}

__global__ void list_edges(const __grid_constant__ struct hg__refill r)
{
	const int64_t listed = listed_in(r).edges;
	for (int64_t e = global_thread(); e < r.edges; e += global_threads()) {
		const struct hg__refill_edge edge = hg__refill_edge_at(&r, e);
		r.to.dst[e] = edge.dst;
		r.to.src[e] = edge.src;
		if (r.to.weight)
			r.to.weight[e] = edge.weight;
		if (e >= listed)
			continue;
		keep_least(r.broken, edge.broken);
		atomicAdd(hg__refill_degrees(&r, 0) + edge.dst, 1);
		atomicAdd(hg__refill_degrees(&r, 1) + edge.src, 1);
	}
}

__global__ void put_nodes(const __grid_constant__ struct hg__refill r)
{
	const struct listed l = listed_in(r);
	for (int64_t i = global_thread(); i < r.rows; i += global_threads()) {
		const int32_t more =
		    static_cast<int32_t>(unlisted_before(r, l, i + 1) - unlisted_before(r, l, i));
		const int32_t in = hg__refill_degrees(&r, 0)[i] += more,
		              out = hg__refill_degrees(&r, 1)[i] += more;
		put_node(r, i, in, out);
	}
}

} // namespace

hg_status refill_list(hg_context *ctx, const struct hg__refill *r)
{
	const cudaStream_t stream = stream_of(ctx);
	clear_degrees<<<few_blocks(2 * r->rows), BLOCK, 0, stream>>>(*r);
	HG__TRY(launched(ctx, "graph stream: degrees"));
	list_edges<<<few_blocks(r->edges), BLOCK, 0, stream>>>(*r);
	HG__TRY(launched(ctx, "graph stream: list"));
	put_nodes<<<few_blocks(r->rows), BLOCK, 0, stream>>>(*r);
	return launched(ctx, "graph stream: nodes");
}
