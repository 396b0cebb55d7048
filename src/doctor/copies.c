#include <float.h>
#include <math.h>

#include "doctor/replay.h"

/* Parameters whose f16 working copy is all 0 although their master is not. A factor of 0 makes
 * everything 0, forward and backward, so such a parameter takes no part, and nothing below it
 * learns. An addend of 0 is another matter: what it is added to is there without it. And one that
 * has begun at 0 is on its way up: its master adds up updates until a half can hold them. That is
 * seen by the sizes when the doctor was made, or by those of its steps: the first one of Adam
 * moves a weight by the rate, and none by more than some rates (growth.c). */

/* Does an op of the step multiply by this copy? */
static int is_factor(const hg_tape *tape, const hg_param *param)
{
	for (int64_t k = 0; k < tape->entries; k++) {
		const struct hg__node *node = &tape->entry[k].node;
		for (int i = 0; i < node->n_in && tape->plan.entry[k].alive; i++) {
			const struct hg__value *in = node->in[i] >= 0 ? &tape->value[node->in[i]] : NULL;
			if (in && in->kind == HG__PARAM && in->param == param && in->dtype == HG_F16 &&
			    !(hg__about(node->op)->addends >> i & 1u))
				return 1;
		}
	}
	return 0;
}

static int32_t half_of(const hg_tape *tape, const hg_param *param)
{
	for (int64_t v = 0; v < tape->values; v++)
		if (tape->value[v].kind == HG__PARAM && tape->value[v].param == param &&
		    tape->value[v].dtype == HG_F16)
			return (int32_t)v;
	return -1;
}

static hg_status copy_found(struct hg__replay *replay, const hg_param *param,
                            const struct hg__look *look)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	struct hg__found *found = hg__found_new(replay, 1, HG_CAUSE_UNDERFLOW);
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->event = -1;
	found->value = half_of(replay->tape, param);
	replay->value[found->value].underflowed = 1;
	f->bad = look->gone;
	f->count = param->master->mat.rows * param->master->mat.cols;
	f->got = look->largest_lost.got;
	f->wide = look->largest_lost.wide;
	f->limit = hg_dtype_get(HG_F16)->min_subnormal;
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &f->tensor, "%s", param->name));
	return hg__found_at(replay, found, &rows, look->largest_lost.row, look->largest_lost.col);
}

static int began_at_zero(const struct hg__replay *replay, int64_t i)
{
	const struct hg__growth *growth = replay->growth;
	return growth && i < growth->count && ((const double *)growth->size.data)[i] == 0.0;
}

#define SOME_RATES 4.0

static int is_on_its_way(const struct hg__replay *replay, double size)
{
	const hg_optim *optim = replay->optim;
	if (!optim || optim->config.kind == HG_SGD)
		return 0;
	for (int i = 0; i < optim->groups; i++) {
		const double rate = (double)optim->group[i].lr;
		if (rate <= SOME_RATES * size && size <= SOME_RATES * rate * (double)replay->step.step)
			return 1;
	}
	return 0;
}

/* What f32 holds as a subnormal alone counts as nothing. */
static hg_status check_copy(struct hg__replay *replay, const hg_param *param)
{
	struct hg__look look;
	HG__TRY(hg__look_for(replay->ctx, &param->working->mat, &param->master->mat, 1, &look));
	const int nothing =
	    look.amax == 0.0 && !look.nonfinite && look.largest_lost.by >= (double)FLT_MIN;
	return nothing && !is_on_its_way(replay, look.largest_lost.by)
	           ? copy_found(replay, param, &look)
	           : HG_OK;
}

hg_status hg__check_copies(struct hg__replay *replay)
{
	for (int64_t i = 0; i < replay->params->count && replay->silent; i++) {
		const hg_param *param = replay->params->item[i];
		if (param->working != param->master && param->working->mat.dtype == HG_F16 &&
		    !began_at_zero(replay, i) && is_factor(replay->tape, param))
			HG__TRY(check_copy(replay, param));
	}
	return HG_OK;
}
