/* The weights of attention:
 *
 *     P[e, k] = weight exp(s[e, k] - log_sum[i, k])
 *
 * The scores are computed again, with the bits of the forward pass (attention_any.cuh). */

#include "kernels/attention_check.h"
#include "kernels/cuda/attention_any.cuh"

namespace
{

struct weights_problem {
	struct attention_operands of;
	const float *log_sum;
	int64_t ld_log_sum;
	struct floats p;
};

template <typename T, int SCORE>
__global__ void __launch_bounds__(BLOCK, 2)
    attention_weights(const __grid_constant__ struct weights_problem p)
{
	after_previous();
	const struct sub_warp w(p.of.heads);
	struct cursor at;
	if (own_piece() >= p.of.plan.items || !at.open(p.of.plan, own_piece()))
		return;
	any_scores<T, SCORE, true> scores(p.of, w);
	do {
		scores.open(at.row, at.e == at.end);
		const float log_sum = p.log_sum[at.row * p.ld_log_sum + w.head];
		for (; at.e < at.end; at.e += STEP) {
			const struct any_step e(p.of, at, w.head);
			scores.compute(e);
#pragma unroll
			for (int u = 0; u < STEP; u++) {
				const float weight[1] = {attention_p(scores.s[u], log_sum, e.weight[u])};
				if (u < e.n && w.lane == u % w.lanes)
					p.p.put<1>(e.edge[u], w.head, weight);
			}
		}
	} while (at.next(p.of.plan));
}

} // namespace

HG__NO_WORKSPACE(attention_weights, attention_weights_args)

hg_status hg__cuda_attention_weights(hg_context *ctx, const struct hg__attention_weights_args *a)
{
	HG__TRY(hg__attention_weights_check(ctx, a));
	if (a->csr.m == 0)
		return HG_OK;
	HG__TRY(attention_launchable(ctx, "attention_weights", a->csr, a->of.q.cols, 0));
	struct weights_problem p = {};
	p.of = operands_of(a->csr, a->of);
	p.log_sum = data_of<float>(a->log_sum);
	p.ld_log_sum = a->log_sum.ld;
	p.p = floats_of(a->p);
	const struct edge_grid g = any_grid(p.of.plan.items, p.of.heads, p.of.q_cols, 1);
	return with_score(ctx, "attention_weights", a->of, [&](auto zero, auto score) {
		return launch(ctx, "attention_weights",
		              attention_weights<decltype(zero), decltype(score)::value>, g.grid, g.block,
		              p);
	});
}
