#include <math.h>

#include "doctor/replay.h"

/* The optimiser's step, which the saved state undoes: does it make bad weights or moments of good
 * gradients and moments? A step with a gradient that is not finite is skipped, and is not examined
 * further. */

static const char *const kind_name[] = {[HG_SGD] = "sgd", [HG_ADAM] = "adam", [HG_ADAMW] = "adamw"};

static hg_status gradients_good(struct hg__replay *replay, int *good)
{
	*good = 1;
	for (int64_t i = 0; i < replay->optim->count && *good; i++) {
		struct hg__look look;
		HG__TRY(hg__look_at(replay->ctx, &replay->optim->param[i]->grad->mat, NULL, &look));
		*good = look.nonfinite == 0;
	}
	return HG_OK;
}

/* The tensor of an update, and what it is called. */
struct updated {
	struct hg__mat mat;
	const char *prefix;
};

static hg_status update_found(struct hg__replay *replay, int64_t i, const struct updated *u,
                              const struct hg__look *look)
{
	struct hg__found *found = hg__found_new(replay, 0, HG_CAUSE_OPTIMISER);
	const struct hg__optim_tensor *t = &replay->optim->tensor[i];
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	const struct hg__mat master = {t->master, t->rows, t->cols, t->ld, HG_F32};
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->event = INT64_MAX;
	HG__TRY(hg__fetch_element(replay->ctx, &replay->optim->param[i]->grad->mat, look->row,
	                          look->col, &found->gradient));
	found->gradient /= (double)replay->step.scale.scale;
	found->moment = *u->prefix != 0;
	f->op = kind_name[replay->optim->config.kind];
	f->op_words = "update of the weights";
	f->got = look->got;
	f->bad = look->nonfinite;
	f->count = t->rows * t->cols;
	f->limit = hg_dtype_get(u->mat.dtype)->overflow;
	HG__TRY(hg__fetch_element(replay->ctx, &master, look->row, look->col, &f->wide));
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &f->tensor, "%s%s", u->prefix,
	                      replay->optim->param[i]->name));
	return hg__found_at(replay, found, &rows, look->row, look->col);
}

/* Master, working copy, moments: the first that is bad. */
static hg_status judge_update(struct hg__replay *replay, int64_t i)
{
	const struct hg__optim_tensor *t = &replay->optim->tensor[i];
	const struct updated of[] = {
	    {{t->master, t->rows, t->cols, t->ld, HG_F32}, ""},
	    {{t->working, t->rows, t->cols, t->ld, t->working_dtype}, ""},
	    {{t->m, t->rows, t->cols, t->ld, HG_F32}, "first moment of "},
	    {{t->v, t->rows, t->cols, t->ld, HG_F32}, "second moment of "},
	};
	for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
		struct hg__look look;
		if (!of[k].mat.data)
			continue;
		HG__TRY(hg__look_at(replay->ctx, &of[k].mat, NULL, &look));
		if (look.nonfinite)
			return update_found(replay, i, &of[k], &look);
	}
	return HG_OK;
}

/* ---- before the step ---- */

/* No gradient makes a moment NaN or infinite, or a mean of squares negative. */
static int is_bad_moment(double x, int of_squares)
{
	return !isfinite(x) || (of_squares && x < 0.0);
}

/* How many of them are bad; the first. */
static hg_status look_at_moment(hg_context *ctx, const struct hg__mat *mat, int of_squares,
                                struct hg__look *look)
{
	struct hg__fetched all;
	*look = (struct hg__look){0};
	HG__TRY(hg__fetch_rows(ctx, mat, 0, mat->rows, &all));
	for (int64_t i = 0; i < mat->rows; i++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const double x = hg__fetched_at(&all, i, c);
			if (is_bad_moment(x, of_squares) && look->nonfinite++ == 0) {
				look->row = i;
				look->col = c;
				look->got = x;
			}
		}
	hg__fetched_free(ctx, &all);
	return HG_OK;
}

static hg_status moment_found(struct hg__replay *replay, int64_t i, const struct updated *u,
                              const struct hg__look *look)
{
	struct hg__found *found = hg__found_new(replay, 0, HG_CAUSE_INPUT);
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->event = -1;
	found->moment = 1;
	f->op = kind_name[replay->optim->config.kind];
	f->op_words = "update of the weights";
	f->got = look->got;
	f->bad = look->nonfinite;
	f->count = u->mat.rows * u->mat.cols;
	f->limit = hg_dtype_get(HG_F32)->overflow;
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &f->tensor, "%s%s", u->prefix,
	                      replay->optim->param[i]->name));
	return hg__found_at(replay, found, &rows, look->row, look->col);
}

hg_status hg__check_moments(struct hg__replay *replay)
{
	const int64_t count = replay->optim && !replay->evaluation ? replay->optim->count : 0;
	for (int64_t i = 0; i < count; i++) {
		const struct hg__optim_tensor *t = &replay->optim->tensor[i];
		const struct updated of[] = {
		    {{t->m, t->rows, t->cols, t->ld, HG_F32}, "first moment of "},
		    {{t->v, t->rows, t->cols, t->ld, HG_F32}, "second moment of "},
		};
		for (int k = 0; k < 2; k++) {
			struct hg__look look = {0};
			if (of[k].mat.data)
				HG__TRY(look_at_moment(replay->ctx, &of[k].mat, k, &look));
			if (look.nonfinite)
				HG__TRY(moment_found(replay, i, &of[k], &look));
		}
	}
	return HG_OK;
}

/* ---- after it ---- */

/* Parameters that were bad before are the input's fault. */
hg_status hg__check_update(struct hg__replay *replay)
{
	int good = 0;
	if (!replay->optim || replay->founds[0])
		return HG_OK;
	HG__TRY(gradients_good(replay, &good));
	if (!good)
		return HG_OK;
	HG__TRY(hg_optim_step(replay->optim));
	for (int64_t i = 0; i < replay->optim->count; i++)
		HG__TRY(judge_update(replay, i));
	return HG_OK;
}
