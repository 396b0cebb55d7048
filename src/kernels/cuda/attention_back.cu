/* The row of the gradients of attention: which implementation computes a call. */

#include "kernels/attention_check.h"
#include "kernels/cuda/attention.cuh"

namespace
{

/* The fastest first; the last takes every call. */
constexpr struct attention_row<struct hg__attention_back_args> implementations[] = {
	HG__ATTENTION_ROW(attention_back, graphs), HG__ATTENTION_ROW(attention_back, tiles),
	    HG__ATTENTION_ROW(attention_back, mixed), HG__ATTENTION_ROW(attention_back, add),
	    HG__ATTENTION_ROW(attention_back, packs), HG__ATTENTION_ROW(attention_back, any),
};

hg_status launchable(hg_context *ctx, const struct hg__attention_back_args *a)
{
	static const char *const kernel = "attention_back";
	if (a->dk.data || a->dv.data)
		HG__TRY(attention_launchable(ctx, kernel, a->csr_t, a->of.q.cols, a->of.v.cols));
	return attention_launchable(ctx, kernel, a->csr, a->of.q.cols, a->of.v.cols);
}

} // namespace

size_t hg__cuda_attention_back_workspace(const hg_context *ctx,
                                         const struct hg__attention_back_args *a)
{
	return attention_row_for(ctx, implementations, a).workspace(ctx, a);
}

hg_status hg__cuda_attention_back(hg_context *ctx, const struct hg__attention_back_args *a)
{
	HG__TRY(hg__attention_back_check(ctx, a));
	if (a->csr.rows == 0 && a->csr.cols == 0 && !a->dc.data)
		return HG_OK;
	HG__TRY(launchable(ctx, a));
	return attention_row_for(ctx, implementations, a).run(ctx, a);
}
