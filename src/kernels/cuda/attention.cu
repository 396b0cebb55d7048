/* The row of attention: which implementation computes a call. */

#include "kernels/attention_check.h"
#include "kernels/cuda/attention.cuh"

namespace
{

/* The fastest first; the last takes every call. */
constexpr struct attention_row<struct hg__attention_args> implementations[] = {
	HG__ATTENTION_ROW(attention, graphs), HG__ATTENTION_ROW(attention, tiles),
	    HG__ATTENTION_ROW(attention, mixed), HG__ATTENTION_ROW(attention, add),
	    HG__ATTENTION_ROW(attention, packs), HG__ATTENTION_ROW(attention, any),
};

/* The epilogue reads and writes packs of 8 columns where Y is stored in packs. */
bool epilogue_launchable(const struct hg__attention_args &a)
{
	const struct hg__mat &b = a.epilogue.b;
	return !a.ended.data || (alike(a.y, a.ended) && (!b.data || wide(b) || !wide(a.y)));
}

} // namespace

hg_status attention_launchable(hg_context *ctx, const char *kernel, const struct hg__csr &csr,
                               int64_t q_cols, int64_t v_cols)
{
	if (csr.rows > 0 && !csr.plan)
		return hg__fail(ctx, HG_ERR_INTERNAL, "%s: the graph has no plan", kernel);
	HG__TRY(edge_columns_fit(ctx, kernel, q_cols));
	return edge_columns_fit(ctx, kernel, v_cols);
}

size_t hg__cuda_attention_workspace(const hg_context *ctx, const struct hg__attention_args *a)
{
	return attention_row_for(ctx, implementations, a).workspace(ctx, a);
}

hg_status hg__cuda_attention(hg_context *ctx, const struct hg__attention_args *a)
{
	HG__TRY(hg__attention_check(ctx, a));
	if (a->csr.rows == 0)
		return HG_OK;
	HG__TRY(attention_launchable(ctx, "attention", a->csr, a->of.q.cols, a->of.v.cols));
	if (!epilogue_launchable(*a))
		return misfit(ctx, "attention", HG__ONE_FLOAT, a->y, a->ended, a->epilogue.b);
	return attention_row_for(ctx, implementations, a).run(ctx, a);
}
