#include <string.h>

#include "core/context.h"
#include "suite/battery.h"

/* The battery itself is tested: it must find the mistake of each of these wrong kernels when it
 * takes the place of the right one. */

static hg_status spmm_in_f16(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args wrong = *a;
	if (a->y.dtype == HG_F16 && a->x.dtype == HG_F16)
		wrong.accumulate = HG_ACC_F16_NAIVE;
	return ctx->backend->kernels->spmm.run(ctx, &wrong);
}

/* The sum has all edges, but not their weights. */
static hg_status spmm_forgets_the_weights(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args wrong = *a;
	if (a->x.data) {
		wrong.w.data = NULL;
		wrong.heads = 1;
	}
	return ctx->backend->kernels->spmm.run(ctx, &wrong);
}

static hg_status spmm_forgets_the_scale(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args wrong = *a;
	wrong.row_scale = NULL;
	return ctx->backend->kernels->spmm.run(ctx, &wrong);
}

/* The gradient reads the edge values in the order of the transposed graph, without the map of
 * edges. */
static hg_status spmm_forgets_the_permutation(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args wrong = *a;
	wrong.csr.edge = NULL;
	return ctx->backend->kernels->spmm.run(ctx, &wrong);
}

/* The bias is left out. */
static hg_status spmm_forgets_the_bias(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args wrong = *a;
	wrong.epilogue.b.data = NULL;
	return ctx->backend->kernels->spmm.run(ctx, &wrong);
}

/* Z is added once instead of 1 + eps times. */
static hg_status spmm_forgets_eps(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args wrong = *a;
	wrong.epilogue.beta_p = NULL;
	return ctx->backend->kernels->spmm.run(ctx, &wrong);
}

/* Every edge counts once, also those that count several times or not at all. */
static hg_status attention_counts_once(hg_context *ctx, const struct hg__attention_args *a)
{
	struct hg__attention_args wrong = *a;
	wrong.of.weight = NULL;
	return ctx->backend->kernels->attention.run(ctx, &wrong);
}

static hg_status attention_swaps_the_ends(hg_context *ctx, const struct hg__attention_args *a)
{
	struct hg__attention_args wrong = *a;
	if (a->of.q.rows == a->of.k.rows) {
		wrong.of.q = a->of.k;
		wrong.of.k = a->of.q;
	}
	return ctx->backend->kernels->attention.run(ctx, &wrong);
}

/* The bias is left out. */
static hg_status attention_forgets_the_bias(hg_context *ctx, const struct hg__attention_args *a)
{
	struct hg__attention_args wrong = *a;
	wrong.epilogue.b.data = NULL;
	return ctx->backend->kernels->attention.run(ctx, &wrong);
}

/* Dropout of elements draws with another key than in the backward pass. */
static hg_status attention_draws_others(hg_context *ctx, const struct hg__attention_args *a)
{
	struct hg__attention_args wrong = *a;
	wrong.epilogue.act_drop.key++;
	return ctx->backend->kernels->attention.run(ctx, &wrong);
}

/* The backward pass has no dropout. */
static hg_status attention_forgets_the_mask(hg_context *ctx,
                                            const struct hg__attention_back_args *a)
{
	struct hg__attention_back_args wrong = *a;
	wrong.of.dropout.p = 0.0f;
	return ctx->backend->kernels->attention_back.run(ctx, &wrong);
}

/* The gradient of q counts all terms of Y as if their scores were positive. */
static hg_status attention_forgets_the_sign(hg_context *ctx,
                                            const struct hg__attention_back_args *a)
{
	struct hg__attention_back_args wrong = *a;
	if (a->plus.data)
		wrong.plus = a->y;
	return ctx->backend->kernels->attention_back.run(ctx, &wrong);
}

static hg_status act_back_off_by_the_slope(hg_context *ctx, const struct hg__act_back_args *a)
{
	struct hg__act_back_args wrong = *a;
	wrong.p *= 1.01f;
	return ctx->backend->kernels->act_back.run(ctx, &wrong);
}

/* The gradient of the bias is summed before it goes through the activation. */
static hg_status epilogue_sums_too_early(hg_context *ctx, const struct hg__epilogue_back_args *a)
{
	const struct hg__colsum_args early = {.x = a->dy, .y = a->db};
	HG__TRY(ctx->backend->kernels->epilogue_back.run(ctx, a));
	return a->db.data ? ctx->backend->kernels->colsum.run(ctx, &early) : HG_OK;
}

/* The backward pass draws another dropout mask than the forward pass. */
static hg_status epilogue_draws_others(hg_context *ctx, const struct hg__epilogue_back_args *a)
{
	struct hg__epilogue_back_args wrong = *a;
	wrong.act_drop.key++;
	return ctx->backend->kernels->epilogue_back.run(ctx, &wrong);
}

static hg_status loss_forgets_the_mask(hg_context *ctx, const struct hg__softmax_xent_back_args *a)
{
	struct hg__softmax_xent_back_args wrong = *a;
	wrong.mask.data = NULL;
	return ctx->backend->kernels->softmax_xent_back.run(ctx, &wrong);
}

/* The gradient is that of log_softmax. */
static hg_status softmax_takes_the_log_for_it(hg_context *ctx,
                                              const struct hg__softmax_back_args *a)
{
	const struct hg__log_softmax_back_args wrong = {.y = a->y, .dy = a->dy, .dx = a->dx};
	return ctx->backend->kernels->log_softmax_back.run(ctx, &wrong);
}

static hg_status norm_forgets_the_direction(hg_context *ctx,
                                            const struct hg__row_reduce_back_args *a)
{
	struct hg__row_reduce_back_args wrong = *a;
	wrong.reduce = HG__ROW_SUM;
	return ctx->backend->kernels->row_reduce_back.run(ctx, &wrong);
}

static hg_status div_back_off_by_a_hundredth(hg_context *ctx, const struct hg__div_back_args *a)
{
	const struct hg__axpby_args wrong = {.x = a->db, .y = a->db, .alpha = 1.01f};
	HG__TRY(ctx->backend->kernels->div_back.run(ctx, a));
	return ctx->backend->kernels->axpby.run(ctx, &wrong);
}

/* A wrong kernel, the name of the kernel it replaces, and the op whose battery must find the
 * mistake. */
struct mistake {
	const char *kernel;
	/* cast from the kernel's own type; it is copied into the table of kernels by its name */
	void (*wrong)(void);
	const struct hg__op *op;
};

static void must_be_caught(const void *item)
{
	const struct mistake *mistake = item;
	hg_context *ctx = test_context();
	struct hg__kernels wrong = *ctx->backend->kernels;
	size_t count = 0, planted = 0;
	const struct hg__kernel_entry *entries = hg__kernel_list(&count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(entries[i].name, mistake->kernel) == 0) {
			memcpy((char *)&wrong + entries[i].offset, &mistake->wrong, sizeof mistake->wrong);
			planted++;
		}
	CHECK_EQ_I(planted, 1);
	struct battery_score score = {.enough = 1};
	battery_op(ctx, &wrong, mistake->op, &score);
	test_note("caught with err/bound %.3g at %s", score.worst, score.where);
	hg_context_free(ctx);
	CHECK(score.worst > 1);
}

#define PLANTED(function) (void (*)(void))(function)

int main(int argc, char **argv)
{
	static const struct mistake in_f16 = {"spmm", PLANTED(spmm_in_f16), &hg__op_spmm};
	static const struct mistake weights = {"spmm", PLANTED(spmm_forgets_the_weights), &hg__op_spmm};
	static const struct mistake scale = {"spmm", PLANTED(spmm_forgets_the_scale), &hg__op_spmm};
	static const struct mistake transposed = {"spmm", PLANTED(spmm_forgets_the_permutation),
	                                          &hg__op_spmm};
	static const struct mistake bias = {"spmm", PLANTED(spmm_forgets_the_bias),
	                                    &hg__op_spmm_epilogue};
	static const struct mistake eps = {"spmm", PLANTED(spmm_forgets_eps), &hg__op_spmm_epilogue};
	static const struct mistake once = {"attention", PLANTED(attention_counts_once),
	                                    &hg__op_attention};
	static const struct mistake swapped = {"attention", PLANTED(attention_swaps_the_ends),
	                                       &hg__op_attention};
	static const struct mistake unmasked = {"attention_back", PLANTED(attention_forgets_the_mask),
	                                        &hg__op_attention};
	static const struct mistake unsigned_terms = {
	    "attention_back", PLANTED(attention_forgets_the_sign), &hg__op_attention};
	static const struct mistake no_bias = {"attention", PLANTED(attention_forgets_the_bias),
	                                       &hg__op_attention_epilogue};
	static const struct mistake other_key = {"attention", PLANTED(attention_draws_others),
	                                         &hg__op_attention_epilogue};
	static const struct mistake slope = {"act_back", PLANTED(act_back_off_by_the_slope),
	                                     &hg__op_leaky_relu};
	static const struct mistake mask = {"softmax_xent_back", PLANTED(loss_forgets_the_mask),
	                                    &hg__op_softmax_xent};
	static const struct mistake early = {"epilogue_back", PLANTED(epilogue_sums_too_early),
	                                     &hg__op_epilogue};
	static const struct mistake others = {"epilogue_back", PLANTED(epilogue_draws_others),
	                                      &hg__op_epilogue};
	static const struct mistake logarithm = {"softmax_back", PLANTED(softmax_takes_the_log_for_it),
	                                         &hg__op_softmax};
	static const struct mistake direction = {"row_reduce_back", PLANTED(norm_forgets_the_direction),
	                                         &hg__op_row_norm};
	static const struct mistake hundredth = {"div_back", PLANTED(div_back_off_by_a_hundredth),
	                                         &hg__op_div};
	static const struct test_case cases[] = {
	    {"forgotten_bias_is_caught", 0, must_be_caught, &bias},
	    {"forgotten_eps_is_caught", 0, must_be_caught, &eps},
	    {"early_sum_is_caught", 0, must_be_caught, &early},
	    {"other_mask_is_caught", 0, must_be_caught, &others},
	    {"edges_counted_once_are_caught", 0, must_be_caught, &once},
	    {"swapped_ends_are_caught", 0, must_be_caught, &swapped},
	    {"forgotten_mask_of_attention_is_caught", 0, must_be_caught, &unmasked},
	    {"forgotten_bias_of_attention_is_caught", 0, must_be_caught, &no_bias},
	    {"other_mask_after_attention_is_caught", 0, must_be_caught, &other_key},
	    {"forgotten_sign_is_caught", 0, must_be_caught, &unsigned_terms},
	    {"sum_in_f16_is_caught", 0, must_be_caught, &in_f16},
	    {"forgotten_weights_are_caught", 0, must_be_caught, &weights},
	    {"forgotten_scale_is_caught", 0, must_be_caught, &scale},
	    {"forgotten_permutation_is_caught", 0, must_be_caught, &transposed},
	    {"wrong_slope_is_caught", 0, must_be_caught, &slope},
	    {"forgotten_mask_is_caught", 0, must_be_caught, &mask},
	    {"other_gradient_is_caught", 0, must_be_caught, &logarithm},
	    {"forgotten_direction_is_caught", 0, must_be_caught, &direction},
	    {"hundredth_is_caught", 0, must_be_caught, &hundredth},
	};
	return RUN_TESTS(argc, argv, cases);
}
