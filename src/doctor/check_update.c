#include <math.h>

#include "doctor/check.h"

/* The optimiser: its moments before the step; and its update, which the saved state undoes. Does
 * the update make bad weights or moments of good gradients and moments? A step with a gradient that
 * is not finite is skipped, so its update is not examined. */

static const char *const kind_name[] = {[HG_SGD] = "sgd", [HG_ADAM] = "adam", [HG_ADAMW] = "adamw"};

/* A tensor of the optimiser; its name is the prefix and the name of the parameter. */
struct optim_tensor {
	struct hg__mat mat;
	const char *prefix;
};

/* The weights with their working copy, then the moments. */
enum { WEIGHTS = 2, TENSORS = 4 };
static void list_tensors(const struct hg__optim_tensor *t, struct optim_tensor list[TENSORS])
{
	list[0] = (struct optim_tensor){{t->master, t->rows, t->cols, t->ld, HG_F32}, ""};
	list[1] = (struct optim_tensor){{t->working, t->rows, t->cols, t->ld, t->working_dtype}, ""};
	list[2] = (struct optim_tensor){{t->m, t->rows, t->cols, t->ld, HG_F32}, "first moment of "};
	list[3] = (struct optim_tensor){{t->v, t->rows, t->cols, t->ld, HG_F32}, "second moment of "};
}

/* What all findings about a tensor of the optimiser say. `which` is the parameter. */
static hg_status describe(struct hg__replay *replay, struct hg__finding *finding, int64_t which,
                          const struct optim_tensor *tensor, const struct hg__scan *seen)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	hg_finding *f = &finding->reported;
	f->op = kind_name[replay->optim->config.kind];
	f->op_words = "update of the weights";
	f->got = seen->first.stored;
	f->bad = seen->nonfinite;
	f->count = tensor->mat.rows * tensor->mat.cols;
	f->limit = hg_dtype_get(tensor->mat.dtype)->overflow;
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &f->tensor, "%s%s", tensor->prefix,
	                        replay->optim->param[which]->name));
	return hg__finding_set_element(replay, finding, &rows, seen->first.row, seen->first.col);
}

/* ---- moments before the step ---- */

/* No gradient makes a moment that is not finite, or a mean of squares that is negative. */
static int is_bad_moment(double x, int is_mean_of_squares)
{
	return !isfinite(x) || (is_mean_of_squares && x < 0.0);
}

/* Of the scan only `nonfinite` and `first` are set, for bad moments. */
static hg_status scan_moment(hg_context *ctx, const struct hg__mat *mat, int is_mean_of_squares,
                             struct hg__scan *seen)
{
	struct hg__fetched all;
	*seen = (struct hg__scan){0};
	HG__TRY(hg__fetch_rows(ctx, mat, 0, mat->rows, &all));
	for (int64_t i = 0; i < mat->rows; i++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const double x = hg__fetched_at(&all, i, c);
			if (is_bad_moment(x, is_mean_of_squares) && seen->nonfinite++ == 0)
				seen->first = (struct hg__nonfinite){i, c, x};
		}
	hg__fetched_free(ctx, &all);
	return HG_OK;
}

static hg_status check_moment(struct hg__replay *replay, int64_t which,
                              const struct optim_tensor *tensor, int is_mean_of_squares)
{
	struct hg__scan seen;
	struct hg__finding *finding = NULL;
	if (!tensor->mat.data)
		return HG_OK;
	HG__TRY(scan_moment(replay->ctx, &tensor->mat, is_mean_of_squares, &seen));
	if (seen.nonfinite)
		finding = hg__finding_new(replay, HG__NONFINITE, HG_CAUSE_INPUT);
	if (!finding)
		return HG_OK;
	finding->position = HG__BEFORE_STEP;
	finding->is_moment = 1;
	return describe(replay, finding, which, tensor, &seen);
}

hg_status hg__check_moments(struct hg__replay *replay)
{
	const int64_t count = replay->optim && !replay->evaluation ? replay->optim->count : 0;
	for (int64_t i = 0; i < count; i++) {
		struct optim_tensor tensor[TENSORS];
		list_tensors(&replay->optim->tensor[i], tensor);
		HG__TRY(check_moment(replay, i, &tensor[WEIGHTS], 0));
		HG__TRY(check_moment(replay, i, &tensor[WEIGHTS + 1], 1));
	}
	return HG_OK;
}

/* ---- the update ---- */

static hg_status gradients_finite(struct hg__replay *replay, int *finite)
{
	*finite = 1;
	for (int64_t i = 0; i < replay->optim->count && *finite; i++) {
		struct hg__scan seen;
		HG__TRY(hg__scan_tensor(replay->ctx, &replay->optim->param[i]->grad->mat, NULL, &seen));
		*finite = seen.nonfinite == 0;
	}
	return HG_OK;
}

static hg_status report_update(struct hg__replay *replay, int64_t which,
                               const struct optim_tensor *tensor, const struct hg__scan *seen)
{
	struct hg__finding *finding = hg__finding_new(replay, HG__NONFINITE, HG_CAUSE_OPTIMISER);
	const struct hg__optim_tensor *t = &replay->optim->tensor[which];
	const struct hg__mat master = {t->master, t->rows, t->cols, t->ld, HG_F32},
	                     *gradient = &replay->optim->param[which]->grad->mat;
	const int64_t row = seen->first.row, col = seen->first.col;
	if (!finding)
		return HG_OK;
	finding->position = HG__AFTER_STEP;
	finding->is_moment = *tensor->prefix != 0;
	HG__TRY(hg__fetch_element(replay->ctx, gradient, row, col, &finding->gradient));
	finding->gradient /= (double)replay->step.scale.scale;
	HG__TRY(hg__fetch_element(replay->ctx, &master, row, col, &finding->reported.wide));
	return describe(replay, finding, which, tensor, seen);
}

/* The first bad tensor of a parameter is reported. */
static hg_status check_updated(struct hg__replay *replay, int64_t which)
{
	struct optim_tensor tensor[TENSORS];
	list_tensors(&replay->optim->tensor[which], tensor);
	for (int k = 0; k < TENSORS; k++) {
		struct hg__scan seen;
		if (!tensor[k].mat.data)
			continue;
		HG__TRY(hg__scan_tensor(replay->ctx, &tensor[k].mat, NULL, &seen));
		if (seen.nonfinite)
			return report_update(replay, which, &tensor[k], &seen);
	}
	return HG_OK;
}

/* After an earlier finding the update is not examined: its parameters may be the input's fault. */
hg_status hg__check_update(struct hg__replay *replay)
{
	int finite = 0;
	if (!replay->optim || replay->findings[HG__NONFINITE])
		return HG_OK;
	HG__TRY(gradients_finite(replay, &finite));
	if (!finite)
		return HG_OK;
	HG__TRY(hg_optim_step(replay->optim));
	for (int64_t i = 0; i < replay->optim->count; i++)
		HG__TRY(check_updated(replay, i));
	return HG_OK;
}
