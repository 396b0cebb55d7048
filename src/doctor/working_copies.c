#include <float.h>
#include <math.h>

#include "doctor/check.h"

/* Parameters whose f16 working copy is all 0 although their master weights are not. If such a
 * parameter is a factor, everything that it multiplies is 0, forward and backward, so nothing
 * before it learns. If it is an addend (a bias), the result is there without it, so that is no
 * finding.
 *
 * A parameter that began at 0 is no finding either: its master weights add up the updates until f16
 * can hold them. It is recognised by its size when the doctor was created, or by the steps so far:
 * the first step of Adam moves a weight by its learning rate, and no step by more than
 * HG__ADAM_MOVES times that. */

/* Does an op of the step multiply by the f16 copy? */
static int is_factor(const hg_tape *tape, const hg_param *param)
{
	for (int64_t k = 0; k < tape->recording.entries; k++) {
		const struct hg__node *node = &tape->recording.entry[k].node;
		for (int i = 0; i < node->n_in && tape->plan.entry[k].alive; i++) {
			const struct hg__value *in =
			    node->in[i] >= 0 ? &tape->recording.value[node->in[i]] : NULL;
			if (in && in->kind == HG__PARAM && in->param == param && in->dtype == HG_F16 &&
			    !(hg__about(node->op)->addends >> i & 1u))
				return 1;
		}
	}
	return 0;
}

static int32_t f16_value_of(const hg_tape *tape, const hg_param *param)
{
	for (int64_t v = 0; v < tape->recording.values; v++)
		if (tape->recording.value[v].kind == HG__PARAM && tape->recording.value[v].param == param &&
		    tape->recording.value[v].dtype == HG_F16)
			return (int32_t)v;
	return -1;
}

static hg_status report_copy(struct hg__replay *replay, const hg_param *param,
                             const struct hg__scan *seen)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	const struct hg__deviation *largest = &seen->largest_zeroed;
	struct hg__finding *finding = hg__finding_new(replay, HG__SILENT, HG_CAUSE_UNDERFLOW);
	if (!finding)
		return HG_OK;
	hg_finding *f = &finding->reported;
	finding->position = HG__BEFORE_STEP;
	finding->value = f16_value_of(replay->tape, param);
	replay->value[finding->value].underflowed = 1;
	f->bad = seen->zeroed;
	f->count = param->master->mat.rows * param->master->mat.cols;
	f->got = largest->stored;
	f->wide = largest->wide;
	f->limit = hg_dtype_get(HG_F16)->min_subnormal;
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &f->tensor, "%s", param->name));
	return hg__finding_set_element(replay, finding, &rows, largest->row, largest->col);
}

static int began_at_zero(const struct hg__replay *replay, int64_t i)
{
	const struct hg__weight_sizes *initial = replay->initial_weights;
	return initial && i < initial->count && hg__weight_size(initial, i) == 0.0;
}

/* Can the steps so far have moved a weight from 0 to this size? */
static int may_have_begun_at_zero(const struct hg__replay *replay, double size)
{
	const hg_optim *optim = replay->optim;
	if (!optim || optim->config.kind == HG_SGD)
		return 0;
	for (int i = 0; i < optim->groups; i++) {
		const double rate = (double)optim->group[i].lr;
		if (rate <= HG__ADAM_MOVES * size &&
		    size <= HG__ADAM_MOVES * rate * (double)replay->step.step)
			return 1;
	}
	return 0;
}

/* Master weights that are subnormal in f32 count as 0. */
static hg_status check_copy(struct hg__replay *replay, const hg_param *param)
{
	struct hg__scan seen;
	HG__TRY(hg__scan_tensor(replay->ctx, &param->working->mat, &param->master->mat, &seen));
	const double largest = seen.largest_zeroed.by;
	const int all_zeroed = seen.amax == 0.0 && !seen.nonfinite && largest >= (double)FLT_MIN;
	return all_zeroed && !may_have_begun_at_zero(replay, largest)
	           ? report_copy(replay, param, &seen)
	           : HG_OK;
}

hg_status hg__check_working_copies(struct hg__replay *replay)
{
	for (int64_t i = 0; i < replay->params->count && replay->wants_silent; i++) {
		const hg_param *param = replay->params->item[i];
		if (param->working != param->master && param->working->mat.dtype == HG_F16 &&
		    !began_at_zero(replay, i) && is_factor(replay->tape, param))
			HG__TRY(check_copy(replay, param));
	}
	return HG_OK;
}
