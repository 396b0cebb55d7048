/* The row of attention: which implementation computes a call. */

#include "kernels/attention_check.h"
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_epilogue.cuh"

namespace
{

/* The fastest first; the last takes every call. */
constexpr struct attention_row<struct hg__attention_args> implementations[] = {
	HG__ATTENTION_ROW(attention, graphs), HG__ATTENTION_ROW(attention, tiles),
	    HG__ATTENTION_ROW(attention, mixed), HG__ATTENTION_ROW(attention, add),
	    HG__ATTENTION_ROW(attention, packs), HG__ATTENTION_ROW(attention, any),
};

/* Whether the epilogue begins with the mean over heads. Heads lie in different lanes, or in
 * different blocks, so no implementation computes it: the epilogue is a kernel of its own. */
bool means(const struct hg__attention_args &a)
{
	return a.ended.data && hg__attention_means(&a.y, &a.ended);
}

/* The epilogue reads and writes packs of 8 columns where Y is stored in packs. */
bool epilogue_launchable(const struct hg__attention_args &a)
{
	const struct hg__mat &b = a.epilogue.b;
	return !a.ended.data || means(a) || (alike(a.y, a.ended) && (!b.data || wide(b) || !wide(a.y)));
}

/* The call of the implementation, without an epilogue that it does not compute. */
struct hg__attention_args without_mean(const struct hg__attention_args &a)
{
	struct hg__attention_args rest = a;
	if (means(a))
		rest.ended.data = nullptr;
	return rest;
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
	const struct hg__attention_args rest = without_mean(*a);
	return attention_row_for(ctx, implementations, &rest).workspace(ctx, &rest);
}

hg_status hg__cuda_attention(hg_context *ctx, const struct hg__attention_args *a)
{
	HG__TRY(hg__attention_check(ctx, a));
	if (a->csr.rows == 0)
		return HG_OK;
	HG__TRY(attention_launchable(ctx, "attention", a->csr, a->of.q.cols, a->of.v.cols));
	if (!epilogue_launchable(*a))
		return misfit(ctx, "attention", HG__ONE_FLOAT, a->y, a->ended, a->epilogue.b);
	const auto run = [&](const struct hg__attention_args &call) {
		return attention_row_for(ctx, implementations, &call).run(ctx, &call);
	};
	return means(*a) ? epilogue_apart(ctx, *a, run) : run(*a);
}
