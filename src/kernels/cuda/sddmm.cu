/* Sampled products: one number per head for each edge (i, j), from row i of A and row j of B.
 *
 *     dot   E[edge p, k] = scale * r_i * s_j * sum over c in head k of A[i, c] * B[j, c]
 *           sddmm_tiles.cu, sddmm_packs.cu, sddmm_elements.cu
 *     add   E[edge p, k] = f(A[i, k] + B[j, k])
 *           sddmm_add.cu
 *
 * A warp takes an item of the plan in batches of 32 edges (edges.cuh). Lane l holds the column id
 * and the row of edge l of the batch, and with one head it ends with the value of that edge. So a
 * batch reads its ids, and writes its values, as whole lines of memory. Ids and values are used
 * once; they are accessed with streaming loads and stores, which leave the caches to A and B. */

#include "kernels/cuda/sddmm.cuh"

HG__NO_WORKSPACE(sddmm_dot, sddmm_dot_args)

hg_status hg__cuda_sddmm_dot(hg_context *ctx, const struct hg__sddmm_dot_args *a)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (a->a.dtype != a->b.dtype)
		return misfit(ctx, "sddmm_dot", HG__ONE_FLOAT, a->a, a->b);
	if (!is_float(a->a) || !is_float(a->e) || a->a.cols != a->b.cols)
		return misfit(ctx, "sddmm_dot", HG__FLOATS, a->a, a->b, a->e);
	if (!a->csr.plan || a->heads < 1 || a->a.cols % a->heads)
		return hg__fail(ctx, HG_ERR_INTERNAL, "sddmm_dot: %lld columns in %d heads%s",
		                static_cast<long long>(a->a.cols), a->heads,
		                a->csr.plan ? "" : ", and the graph has no plan");
	const struct sddmm_problem p = dot_problem_of(a);
	if (hg__sddmm_tiles_fit(a))
		return hg__sddmm_tiles(ctx, p);
	return hg__sddmm_packs_fit(a) ? hg__sddmm_packs(ctx, p, a->a.dtype)
	                              : hg__sddmm_elements(ctx, p, a->a.dtype);
}

HG__NO_WORKSPACE(sddmm_add, sddmm_add_args)

hg_status hg__cuda_sddmm_add(hg_context *ctx, const struct hg__sddmm_add_args *a)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (!is_float(a->a) || a->a.dtype != a->b.dtype || a->a.dtype != a->e.dtype)
		return misfit(ctx, "sddmm_add", HG__ONE_FLOAT, a->a, a->b, a->e);
	if (!a->csr.plan)
		return hg__fail(ctx, HG_ERR_INTERNAL, "sddmm_add: the graph has no plan");
	return hg__sddmm_add(ctx, edge_problem_of(a->csr, a->a, a->b, a->e), a);
}
