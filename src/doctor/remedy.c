#include "doctor/remedy.h"

/* What to change: a table of remedies by cause, the best first. Each fits the finding or not, and
 * may come with an option. */

static const struct {
	hg_cause cause;
	hg__fit_fn fit;
	const char *why;
} table[] = {
    {HG_CAUSE_INPUT, hg__fit_bad_data,
     "the value comes with the data: correct it there; no option can help"},
    {HG_CAUSE_INPUT, hg__fit_bad_statistic,
     "a checkpoint or a program has set it: set it to the mean or variance of the data, or go on "
     "from a checkpoint in which it is right"},
    {HG_CAUSE_INPUT, hg__fit_bad_weight,
     "an earlier step or a checkpoint made it bad: go back to an earlier checkpoint"},
    {HG_CAUSE_INPUT, hg__fit_row_normalize_input,
     "features that are divided by the sum of their row are at most 1"},
    {HG_CAUSE_INPUT, hg__fit_fp32_input, "fp32 can hold the number"},
    {HG_CAUSE_INPUT, hg__fit_lower_rate_of_weight, "the weights have grown too fast"},
    {HG_CAUSE_ACCUMULATION, hg__fit_f32_sums,
     "sums are computed in fp32 and rounded to fp16 once, when the row is complete"},
    {HG_CAUSE_ACCUMULATION, hg__fit_batched_sums,
     "sums stay in fp16, but in batches of 64 that are scaled before they are added to the sum"},
    {HG_CAUSE_ACCUMULATION, hg__fit_lower_scale,
     "the largest loss scale at which the partial sums of this gradient fit"},
    {HG_CAUSE_ACCUMULATION, hg__fit_fp32, "then nothing is computed or stored in fp16"},
    {HG_CAUSE_STORE, hg__fit_f32_sums_of_run,
     "sums are computed in fp32; if a result still overflows, the run stores it divided by a power "
     "of two, or in fp32"},
    {HG_CAUSE_STORE, hg__fit_promotion,
     "results that are not proved to fit are stored in fp32, all others in fp16; the model stays "
     "the same"},
    {HG_CAUSE_STORE, hg__fit_norm_both, "the sum is divided by the root of the degree"},
    {HG_CAUSE_STORE, hg__fit_norm_right, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, hg__fit_mean, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, hg__fit_lambda,
     "a smaller factor on the sum over neighbours; the batch norm after it cancels the factor"},
    {HG_CAUSE_STORE, hg__fit_own_mean, "a mean is no larger than its largest term"},
    {HG_CAUSE_STORE, hg__fit_row_normalize,
     "features that are divided by the sum of their row are at most 1"},
    {HG_CAUSE_STORE, hg__fit_lower_rate_later, "the weights have grown too fast"},
    {HG_CAUSE_STORE, hg__fit_clip_later,
     "a very large gradient then moves the weights no further than others"},
    {HG_CAUSE_STORE, hg__fit_fp32_range, "fp32 holds numbers up to 3.4e38"},
    {HG_CAUSE_LOSS_SCALE, hg__fit_lower_scale,
     "the largest loss scale at which this gradient fits"},
    {HG_CAUSE_LOSS_SCALE, hg__fit_fp32, "gradients in fp32 need no loss scale"},
    {HG_CAUSE_EXPLOSION, hg__fit_norm_both, "the gradient is divided by the root of the degree"},
    {HG_CAUSE_EXPLOSION, hg__fit_mean, "the gradient of a mean is divided by the degree"},
    {HG_CAUSE_EXPLOSION, hg__fit_lambda,
     "a smaller factor on the sum over neighbours and on its gradient"},
    {HG_CAUSE_EXPLOSION, hg__fit_lower_rate_later, "the weights have grown too fast"},
    {HG_CAUSE_EXPLOSION, hg__fit_clip_later,
     "a very large gradient then moves the weights no further than others"},
    {HG_CAUSE_EXPLOSION, hg__fit_fp32_range, "fp32 holds numbers up to 3.4e38"},
    {HG_CAUSE_UNDERFLOW, hg__fit_higher_scale,
     "the smallest loss scale at which this gradient keeps all its bits"},
    {HG_CAUSE_UNDERFLOW, hg__fit_first_scale,
     "no loss scale is in force; this is the smallest one at which this gradient keeps all its "
     "bits"},
    {HG_CAUSE_UNDERFLOW, hg__fit_row_normalize_vanished,
     "features that are divided by the sum of their row add up to 1"},
    {HG_CAUSE_UNDERFLOW, hg__fit_promotion_of_rescaled,
     "this result is then stored in fp32, and not in fp16 divided by a power of two"},
    {HG_CAUSE_UNDERFLOW, hg__fit_mean_of_rescaled, "a mean is no larger than its largest term"},
    {HG_CAUSE_UNDERFLOW, hg__fit_fp32_range, "fp32 holds numbers down to 1.4e-45"},
    {HG_CAUSE_UNDERFLOW, hg__fit_small_operands,
     "bring its operands nearer to 1: another unit for features or edge weights, or a norm"},
    {HG_CAUSE_SWAMPING, hg__fit_f32_sums,
     "sums in fp32 still change where sums in fp16 ignore further terms"},
    {HG_CAUSE_SWAMPING, hg__fit_batched_sums, "sums stay in fp16, but in batches of 64"},
    {HG_CAUSE_SWAMPING, hg__fit_fp32, "then nothing is computed or stored in fp16"},
    {HG_CAUSE_ZERO, hg__fit_lower_scale_of_constant,
     "the largest loss scale at which this gradient fits, until the constant is removed"},
    {HG_CAUSE_ZERO, hg__fit_fp32_division, "fp32 can divide by smaller numbers"},
    {HG_CAUSE_ZERO, hg__fit_divisor,
     "add a small positive number to the divisor, or leave out the rows in which it is 0"},
    {HG_CAUSE_ZERO, hg__fit_log_of_zero,
     "add a small positive number before the logarithm is taken"},
    {HG_CAUSE_ZERO, hg__fit_log_of_negative,
     "a negative number has no logarithm: clamp it (a relu, then add a small positive number)"},
    {HG_CAUSE_ZERO, hg__fit_root_of_zero,
     "add a small positive number under the root: at 0 its slope is infinite"},
    {HG_CAUSE_ZERO, hg__fit_root_of_negative,
     "a negative number has no root: clamp it (a relu, then add a small positive number)"},
    {HG_CAUSE_ZERO, hg__fit_constant,
     "leave out the rows or columns that are constant, or give the norm a larger eps"},
    {HG_CAUSE_OPTIMISER, hg__fit_no_eps,
     "the optimiser's eps is 0: a gradient that was always 0 is divided by 0"},
    {HG_CAUSE_OPTIMISER, hg__fit_restored_moment,
     "no gradient of this run can move a weight so far, but its moments can: go back to an earlier "
     "checkpoint, or begin with moments of 0"},
    {HG_CAUSE_OPTIMISER, hg__fit_lower_decay,
     "in one step the weights decay by more than their own size"},
    {HG_CAUSE_OPTIMISER, hg__fit_grown_rate,
     "one step then moves the weights by a part of their size"},
    {HG_CAUSE_OPTIMISER, hg__fit_ungrown_rate,
     "one step then moves the weights by a part of their size"},
    {HG_CAUSE_OPTIMISER, hg__fit_clip_update,
     "a very large gradient then moves the weights no further than others"},
    {HG_CAUSE_OPTIMISER, hg__fit_clip_moment, "the square of a clipped gradient fits fp32"},
    {HG_CAUSE_OPTIMISER, hg__fit_fp32_weight, "fp32 can hold the weight"},
};
#define TABLE (sizeof table / sizeof *table)

/* Users of train.h get an option and the field that it sets. Users with a tape of their own have no
 * options, only calls. */
static hg_status add_remedy(struct hg__replay *replay, hg_finding *f, const char *option,
                            const char *call, const char *why)
{
	hg_remedy *r = &f->remedy[f->remedies++];
	*r = (hg_remedy){.why = why, .loss_first = NAN, .loss_last = NAN};
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &r->option, "%s",
	                        replay->config ? option : ""));
	return hg__report_text(replay->ctx, replay->memory, &r->call, "%s", call);
}

hg_status hg__list_remedies(struct hg__replay *replay, struct hg__finding *finding)
{
	hg_finding *f = &finding->reported;
	const struct hg__remedy_query q = {replay, finding, f};
	const char *op = "", *why = NULL;
	void *memory = NULL;
	HG__TRY(hg__report_alloc(replay->ctx, replay->memory, TABLE + 1, sizeof *f->remedy, &memory));
	f->remedy = memory;
	hg__remedy_op(replay, finding, &op, &why);
	if (why)
		HG__TRY(add_remedy(replay, f, "", op, why));
	for (size_t i = 0; i < TABLE; i++) {
		char option[HG__OPTION] = "", call[HG__CALL];
		if (table[i].cause != f->cause || !table[i].fit(&q, option))
			continue;
		hg__remedy_call(option, &replay->params->policy, replay->config != NULL, call);
		HG__TRY(add_remedy(replay, f, option, call, table[i].why));
	}
	return HG_OK;
}
