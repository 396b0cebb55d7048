/* Verdicts: which f16 results of a tape may overflow, known before it runs; and an op that is
 * refused because its result would overflow. */
#include "planted.h"

#include <stdio.h>

int main(void)
{
	hg_context *ctx = NULL;
	struct planted data = {0};
	hg_params *params = NULL;
	hg_param *w = NULL;
	hg_tape *tape = NULL, *refused = NULL;
	hg_narrowing row = HG_NARROWING_INIT;
	int ok = hg_context_create(NULL, &ctx) >= 0 && planted_make(ctx, &data) &&
	         hg_params_create(ctx, NULL, &params) >= 0 &&
	         hg_params_add(params, "w", FEATURES, CLASSES, HG_INIT_GLOROT_UNIFORM, 0, &w) >= 0 &&
	         hg_tape_create(params, HG_EVAL, &tape) >= 0 &&
	         hg_tape_create(params, HG_EVAL, &refused) >= 0;
	if (ok) {
		/* a mean of inputs is bounded for all weights, a product while the weights stay small */
		const hg_var x = hg_tape_input(tape, data.features, "x", 3.0);
		const hg_var y =
		    hg_linear(tape, hg_spmm_mean(tape, data.graph, x), hg_tape_param(tape, w), HG_NONE);
		ok = hg_tape_compile(tape, hg_softmax(tape, y)) >= 0;
	}
	for (int64_t i = 0; ok && i < hg_tape_narrowings(tape); i++) {
		ok = hg_tape_narrowing(tape, i, &row) >= 0;
		printf("%-10s %-8s |x| <= %-8.4g headroom %5.1f bits  %s\n", row.name,
		       hg_verdict_name(row.verdict), row.bound, row.headroom, row.because);
	}
	int said = 0;
	if (ok) {
		/* exp(3 * 20) does not fit f16: recording fails, and nothing runs */
		const hg_var x = hg_tape_input(refused, data.features, "x", 3.0);
		(void)hg_shadow_exp(refused, hg_scale(refused, x, 20.0f));
		said = hg_tape_status(refused) == HG_ERR_RANGE;
		printf("refused: %s\n", hg_context_error(ctx));
	} else {
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	}
	hg_tape_free(refused), hg_tape_free(tape), hg_params_free(params), planted_free(&data),
	    hg_context_free(ctx);
	return !said;
}
