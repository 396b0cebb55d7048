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

static struct sddmm_problem problem_of(const struct hg__csr &csr, const struct hg__mat &a,
                                       const struct hg__mat &b, const struct hg__mat &e)
{
	struct sddmm_problem p = {};
	p.plan = plan_of(csr);
	p.col = csr.col;
	p.edge = csr.edge;
	p.a = a.data;
	p.lda = a.ld;
	p.pitch_a = static_cast<uint32_t>(a.ld * static_cast<int64_t>(hg_dtype_size(a.dtype)));
	p.b = b.data;
	p.ldb = b.ld;
	p.pitch_b = static_cast<uint32_t>(b.ld * static_cast<int64_t>(hg_dtype_size(b.dtype)));
	p.e = e.data;
	p.lde = e.ld;
	p.e_half = e.dtype == HG_F16;
	p.cols = a.cols;
	return p;
}

hg_status hg__cuda_sddmm_dot(hg_context *ctx, const struct hg__sddmm_dot_args *a)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (!a->csr.plan || a->a.dtype != a->b.dtype || a->a.cols != a->b.cols || a->heads < 1 ||
	    a->a.cols % a->heads || a->e.dtype > HG_F32)
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "sddmm_dot: A [%lld] type %d, B [%lld] type %d, %d heads",
		                static_cast<long long>(a->a.cols), static_cast<int>(a->a.dtype),
		                static_cast<long long>(a->b.cols), static_cast<int>(a->b.dtype), a->heads);
	struct sddmm_problem p = problem_of(a->csr, a->a, a->b, a->e);
	p.heads = a->heads;
	p.head_cols = p.cols / p.heads;
	p.scale = a->scale;
	p.row_scale = a->row_scale;
	p.col_scale = a->col_scale;
	p.plain = !p.row_scale && !p.col_scale && !p.edge && p.lde == 1;
	if (hg__sddmm_tiles_fit(a))
		return hg__sddmm_tiles(ctx, p);
	return hg__sddmm_packs_fit(a) ? hg__sddmm_packs(ctx, p, a->a.dtype)
	                              : hg__sddmm_elements(ctx, p, a->a.dtype);
}

hg_status hg__cuda_sddmm_add(hg_context *ctx, const struct hg__sddmm_add_args *a)
{
	if (a->csr.m == 0 || a->e.cols == 0)
		return HG_OK;
	if (!a->csr.plan || a->a.dtype != a->b.dtype || a->a.dtype != a->e.dtype)
		return hg__fail(ctx, HG_ERR_INTERNAL, "sddmm_add: A type %d, B type %d, E type %d",
		                static_cast<int>(a->a.dtype), static_cast<int>(a->b.dtype),
		                static_cast<int>(a->e.dtype));
	return hg__sddmm_add(ctx, problem_of(a->csr, a->a, a->b, a->e), a);
}
