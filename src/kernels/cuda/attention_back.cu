/* The row of the gradients of attention: which implementation computes a call. */

#include "kernels/cuda/attention.cuh"

namespace
{

/* The fastest first; the last takes every call. */
constexpr struct attention_row<struct hg__attention_back_args> implementations[] = {
	HG__ATTENTION_ROW(attention_back, graphs), HG__ATTENTION_ROW(attention_back, add),
	    HG__ATTENTION_ROW(attention_back, packs), HG__ATTENTION_ROW(attention_back, any),
};

/* Whether a gradient is absent, or has the shape and the type of its operand. */
bool gradient_fits(const struct hg__mat &gradient, const struct hg__mat &of, hg_dtype dtype)
{
	return !gradient.data ||
	       (gradient.dtype == dtype && gradient.rows == of.rows && gradient.cols == of.cols);
}

/* Whether what the forward pass left, and dY, fit the operands. */
bool results_fit(const struct hg__attention_back_args *a)
{
	const struct hg__attention &of = a->of;
	const bool add = of.score == HG_SCORE_ADD;
	const struct hg__mat y = {nullptr, a->csr.rows, of.v.cols, 0, of.v.dtype};
	return a->y.rows == y.rows && a->y.cols == y.cols && a->dy.rows == y.rows &&
	       a->dy.cols == y.cols && gradient_fits(a->plus, y, y.dtype) &&
	       a->softmax.dtype == HG_F32 && a->softmax.cols >= (add ? 2 : 1) * of.heads &&
	       (!add || !a->dq.data || a->plus.data);
}

bool gradients_fit(const struct hg__attention_back_args *a)
{
	const struct hg__attention &of = a->of;
	return gradient_fits(a->dq, of.q, of.q.dtype) && gradient_fits(a->dk, of.k, of.k.dtype) &&
	       gradient_fits(a->dv, of.v, of.v.dtype) && gradient_fits(a->dc, of.c, HG_F32) &&
	       gradient_fits(a->dbias, of.bias, of.bias.dtype);
}

hg_status checked(hg_context *ctx, const struct hg__attention_back_args *a)
{
	const char *const kernel = "attention_back";
	HG__TRY(attention_checked(ctx, kernel, a->csr, a->of, true));
	if (a->y.dtype != a->of.v.dtype || a->dy.dtype != a->of.v.dtype)
		return misfit(ctx, kernel, HG__ONE_FLOAT, a->of.v, a->y, a->dy);
	if (!results_fit(a))
		return misfit(ctx, kernel, HG__FLOATS, a->of.v, a->y, a->dy, a->softmax, a->plus);
	if (!gradients_fit(a))
		return misfit(ctx, kernel, HG__FLOATS, a->dq, a->dk, a->dv, a->dc, a->dbias);
	if ((a->dk.data || a->dv.data) && a->csr.cols > 0 &&
	    (a->csr_t.rows != a->csr.cols || !a->csr_t.plan))
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "%s: the transposed graph does not fit, or has no plan", kernel);
	return HG_OK;
}

} // namespace

size_t hg__cuda_attention_back_workspace(const hg_context *ctx,
                                         const struct hg__attention_back_args *a)
{
	return attention_row_for(implementations, a).workspace(ctx, a);
}

hg_status hg__cuda_attention_back(hg_context *ctx, const struct hg__attention_back_args *a)
{
	if (a->csr.rows == 0 && a->csr.cols == 0 && !a->dc.data)
		return HG_OK;
	HG__TRY(checked(ctx, a));
	return attention_row_for(implementations, a).run(ctx, a);
}
