/* The row of attention: which implementation computes a call. */

#include "kernels/cuda/attention.cuh"

namespace
{

/* The fastest first; the last takes every call. */
constexpr struct attention_row<struct hg__attention_args> implementations[] = {
	HG__ATTENTION_ROW(attention, graphs), HG__ATTENTION_ROW(attention, add),
	    HG__ATTENTION_ROW(attention, packs), HG__ATTENTION_ROW(attention, any),
};

/* Whether c has the columns that the score reads. */
bool vector_fits(const struct hg__attention &of)
{
	if (of.score == HG_SCORE_COSINE)
		return is_float(of.c) && of.c.data && (of.c.cols == 1 || of.c.cols == of.heads);
	if (of.score == HG_SCORE_ADD_V2)
		return is_float(of.c) && of.c.cols == of.q.cols && (of.c.data || of.c.cols == 0);
	return !of.c.data;
}

bool operands_fit(const struct hg__csr &csr, const struct hg__attention &of, bool needs_v)
{
	const int64_t q = of.score == HG_SCORE_ADD ? of.heads : of.q.cols / of.heads * of.heads;
	return of.q.rows == csr.rows && of.q.cols == q && of.k.rows == csr.cols && of.k.cols == q &&
	       (!needs_v || (of.v.rows == csr.cols && of.v.cols % of.heads == 0)) && vector_fits(of) &&
	       (!of.bias.data || (of.bias.rows == csr.m && of.bias.cols == of.heads));
}

} // namespace

hg_status attention_checked(hg_context *ctx, const char *kernel, const struct hg__csr &csr,
                            const struct hg__attention &of, bool needs_v)
{
	const struct hg__mat absent = {}, &v = needs_v ? of.v : absent;
	HG__TRY(hg__has_number(ctx, kernel, "score", of.score, HG_SCORE_COUNT));
	if (of.heads < 1 || of.heads > HG_ATTENTION_HEADS)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "%s: %d heads; supported are 1 to %d", kernel,
		                of.heads, HG_ATTENTION_HEADS);
	if (!is_float(of.q) || of.q.dtype != of.k.dtype || (needs_v && of.v.dtype != of.q.dtype))
		return misfit(ctx, kernel, HG__ONE_FLOAT, of.q, of.k, v);
	if (!operands_fit(csr, of, needs_v))
		return misfit(ctx, kernel, HG__FLOATS, of.q, of.k, v, of.c, of.bias);
	if (csr.rows > 0 && !csr.plan)
		return hg__fail(ctx, HG_ERR_INTERNAL, "%s: the graph has no plan", kernel);
	HG__TRY(edge_columns_fit(ctx, kernel, of.q.cols));
	return edge_columns_fit(ctx, kernel, v.cols);
}

size_t hg__cuda_attention_workspace(const hg_context *ctx, const struct hg__attention_args *a)
{
	return attention_row_for(implementations, a).workspace(ctx, a);
}

hg_status hg__cuda_attention(hg_context *ctx, const struct hg__attention_args *a)
{
	if (a->csr.rows == 0)
		return HG_OK;
	HG__TRY(attention_checked(ctx, "attention", a->csr, a->of, true));
	const int sums = a->of.score == HG_SCORE_ADD ? 2 : 1;
	if (a->y.dtype != a->of.v.dtype || a->y.rows != a->csr.rows || a->y.cols != a->of.v.cols ||
	    (a->plus.data && (a->plus.dtype != a->y.dtype || a->plus.cols != a->y.cols)))
		return misfit(ctx, "attention", HG__ONE_FLOAT, a->of.v, a->y, a->plus);
	if (a->softmax.dtype != HG_F32 || a->softmax.cols != sums * a->of.heads)
		return misfit(ctx, "attention", HG__FLOATS, a->y, a->softmax);
	return attention_row_for(implementations, a).run(ctx, a);
}
