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

const attention_row<struct hg__attention_back_args> &
row_for(const hg_context *ctx, const struct hg__attention_back_args *a)
{
	return attention_row_for(ctx, implementations, a);
}

/* The fewest rows for which one kernel computes the epilogue and the pass over nodes. A step of GAT
 * with two kernels and with one took 0.0906 and 0.0932 ms on 2,708 nodes, 5.21 and 5.12 ms on
 * 490,496 nodes with 8 layers, and 21.26 and 21.16 ms on 2,449,029 nodes (H200). Graphs between the
 * first two were not measured. */
constexpr int64_t ENDED_ROWS = 1 << 15;

/* Whether the implementation computes the gradient of the epilogue by itself: with additive scores,
 * whose pass over nodes reads the same rows. */
bool ends(const hg_context *ctx, const struct hg__attention_back_args *a)
{
	return a->csr.rows >= ENDED_ROWS && row_for(ctx, a).run == hg__cuda_attention_back_add &&
	       hg__cuda_attention_back_add_ends(a);
}

/* The call without an epilogue, after another kernel. */
struct hg__attention_back_args without(const struct hg__attention_back_args *a)
{
	struct hg__attention_back_args rest = *a;
	rest.dended.data = rest.db.data = nullptr;
	return rest;
}

} // namespace

size_t hg__cuda_attention_back_workspace(const hg_context *ctx,
                                         const struct hg__attention_back_args *a)
{
	if (!hg__attention_ends(a) || ends(ctx, a))
		return row_for(ctx, a).workspace(ctx, a);
	const struct hg__attention_back_args rest = without(a);
	const struct hg__epilogue_back_args first = hg__attention_end_of(a);
	return hg__larger(hg__cuda_epilogue_back_workspace(ctx, &first),
	                  row_for(ctx, &rest).workspace(ctx, &rest));
}

hg_status hg__cuda_attention_back(hg_context *ctx, const struct hg__attention_back_args *a)
{
	HG__TRY(hg__attention_back_check(ctx, a));
	if (hg__attention_ends(a) && !ends(ctx, a)) {
		const struct hg__attention_back_args rest = without(a);
		const struct hg__epilogue_back_args first = hg__attention_end_of(a);
		HG__TRY(hg__cuda_epilogue_back(ctx, &first));
		return hg__cuda_attention_back(ctx, &rest);
	}
	if (a->csr.rows == 0 && a->csr.cols == 0 && !a->dc.data)
		return HG_OK;
	HG__TRY(launchable(ctx, a));
	return row_for(ctx, a).run(ctx, a);
}
