#include <math.h>

#include "doctor/exam.h"

/* The optimiser's step, in the sandbox: of good gradients and moments, does it make bad weights or
 * moments? A step with a gradient that is not finite is skipped, and asked no further. */

static const char *const kind_name[] = {[HG_SGD] = "sgd", [HG_ADAM] = "adam", [HG_ADAMW] = "adamw"};

static hg_status gradients_good(struct hg__exam *exam, int *good)
{
	*good = 1;
	for (int64_t i = 0; i < exam->optim->count && *good; i++) {
		struct hg__look look;
		HG__TRY(hg__look_at(exam->ctx, &exam->optim->param[i]->grad->mat, NULL, &look));
		*good = look.nonfinite == 0;
	}
	return HG_OK;
}

/* The tensor of an update, and what it is called. */
struct updated {
	struct hg__mat mat;
	const char *prefix;
};

static hg_status update_found(struct hg__exam *exam, int64_t i, const struct updated *u,
                              const struct hg__look *look)
{
	struct hg__found *found = hg__found_new(exam, 0, HG_CAUSE_OPTIMISER);
	const struct hg__optim_tensor *t = &exam->optim->tensor[i];
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	const struct hg__mat master = {t->master, t->rows, t->cols, t->ld, HG_F32};
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->stop = INT64_MAX;
	HG__TRY(hg__fetch_element(exam->ctx, &exam->optim->param[i]->grad->mat, look->row, look->col,
	                          &found->gradient));
	found->gradient /= (double)exam->step.scale.scale;
	found->moment = *u->prefix != 0;
	f->op = kind_name[exam->optim->config.kind];
	f->op_words = "update of the weights";
	f->got = look->got;
	f->bad = look->nonfinite;
	f->count = t->rows * t->cols;
	f->limit = hg_dtype_get(u->mat.dtype)->overflow;
	HG__TRY(hg__fetch_element(exam->ctx, &master, look->row, look->col, &f->wide));
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &f->tensor, "%s%s", u->prefix,
	                      exam->optim->param[i]->name));
	return hg__found_at(exam, found, &rows, look->row, look->col);
}

/* Master, working copy, moments: the first that is bad. */
static hg_status judge_update(struct hg__exam *exam, int64_t i)
{
	const struct hg__optim_tensor *t = &exam->optim->tensor[i];
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
		HG__TRY(hg__look_at(exam->ctx, &of[k].mat, NULL, &look));
		if (look.nonfinite)
			return update_found(exam, i, &of[k], &look);
	}
	return HG_OK;
}

/* ---- before the step ---- */

/* No gradient is to blame for a moment that is no number, or for a mean of squares below 0. */
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

static hg_status moment_found(struct hg__exam *exam, int64_t i, const struct updated *u,
                              const struct hg__look *look)
{
	struct hg__found *found = hg__found_new(exam, 0, HG_CAUSE_INPUT);
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->stop = -1;
	found->moment = 1;
	f->op = kind_name[exam->optim->config.kind];
	f->op_words = "update of the weights";
	f->got = look->got;
	f->bad = look->nonfinite;
	f->count = u->mat.rows * u->mat.cols;
	f->limit = hg_dtype_get(HG_F32)->overflow;
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &f->tensor, "%s%s", u->prefix,
	                      exam->optim->param[i]->name));
	return hg__found_at(exam, found, &rows, look->row, look->col);
}

hg_status hg__exam_moments(struct hg__exam *exam)
{
	const int64_t count = exam->optim && !exam->evaluation ? exam->optim->count : 0;
	for (int64_t i = 0; i < count; i++) {
		const struct hg__optim_tensor *t = &exam->optim->tensor[i];
		const struct updated of[] = {
		    {{t->m, t->rows, t->cols, t->ld, HG_F32}, "first moment of "},
		    {{t->v, t->rows, t->cols, t->ld, HG_F32}, "second moment of "},
		};
		for (int k = 0; k < 2; k++) {
			struct hg__look look = {0};
			if (of[k].mat.data)
				HG__TRY(look_at_moment(exam->ctx, &of[k].mat, k, &look));
			if (look.nonfinite)
				HG__TRY(moment_found(exam, i, &of[k], &look));
		}
	}
	return HG_OK;
}

/* ---- after it ---- */

/* Parameters that were bad before are the input's fault. */
hg_status hg__exam_update(struct hg__exam *exam)
{
	int good = 0;
	if (!exam->optim || exam->founds[0])
		return HG_OK;
	HG__TRY(gradients_good(exam, &good));
	if (!good)
		return HG_OK;
	HG__TRY(hg_optim_step(exam->optim));
	for (int64_t i = 0; i < exam->optim->count; i++)
		HG__TRY(judge_update(exam, i));
	return HG_OK;
}
