#include "doctor/weight_growth.h"

#include <math.h>

#include "doctor/finding.h"
#include "doctor/replay.h"

/* A learning rate that is too high shows as an overflow of whatever reads the grown weights first,
 * forward or backward. Neither the loss scale nor the way of summing is the cause then. The sizes
 * that weights had when the doctor was created are the reference; nothing is known of a weight that
 * was 0 at that time. */

static hg_status size_of(hg_context *ctx, const hg_param *param, double *size)
{
	const struct hg__mat *mat = &param->master->mat;
	struct hg__fetched all;
	double logs = 0.0, count = 0.0;
	HG__TRY(hg__fetch_rows(ctx, mat, 0, mat->rows, &all));
	for (int64_t i = 0; i < mat->rows; i++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const double x = fabs(hg__fetched_at(&all, i, c));
			if (x > 0.0 && isfinite(x)) {
				logs += log2(x);
				count++;
			}
		}
	hg__fetched_free(ctx, &all);
	*size = count > 0.0 ? exp2(logs / count) : 0.0;
	return HG_OK;
}

hg_status hg__weight_sizes_open(hg_params *params, struct hg__weight_sizes *sizes)
{
	hg_context *ctx = params->ctx;
	struct hg__step step;
	*sizes = (struct hg__weight_sizes){.count = params->count};
	HG__TRY(hg__buffer_host(ctx, params->count, sizeof(double), "doctor: sizes of the weights",
	                        &sizes->size));
	hg_status status = ctx->backend->copy_out(ctx, &step, params->step, sizeof step);
	sizes->step = step.step;
	for (int64_t i = 0; i < params->count && status >= 0; i++)
		status = size_of(ctx, params->item[i], (double *)sizes->size.data + i);
	if (status < 0)
		hg__weight_sizes_close(ctx, sizes);
	return status;
}

void hg__weight_sizes_close(hg_context *ctx, struct hg__weight_sizes *sizes)
{
	hg__buffer_free(ctx, &sizes->size);
	*sizes = (struct hg__weight_sizes){.count = 0};
}

double hg__highest_rate(const hg_optim *optim)
{
	double highest = 0.0;
	for (int i = 0; i < optim->groups; i++)
		highest = fmax(highest, (double)optim->group[i].lr);
	return highest;
}

/* A weight has grown if it is 16 times as large as at the beginning, and has grown by at least its
 * initial size in every step. The second condition leaves out weights that a reasonable rate makes
 * larger over many steps. The factor is a choice: an Adam whose rate is a quarter of the size of
 * its weights does not reach it. */
#define GROWTH 16.0

/* Could the updates of `steps` steps have moved a weight by this much? If not, somebody else has
 * set it. */
static int may_have_moved(const struct hg__replay *replay, double by, double steps)
{
	return replay->optim->config.kind == HG_SGD ||
	       by <= HG__ADAM_MOVES * hg__highest_rate(replay->optim) * steps;
}

/* The weight that has grown most. */
static hg_status find_grown(const struct hg__replay *replay, hg_finding *f)
{
	const struct hg__weight_sizes *initial = replay->initial_weights;
	const double steps = (double)(f->step - initial->step);
	for (int64_t i = 0; i < initial->count && i < replay->params->count; i++) {
		const hg_param *param = replay->params->item[i];
		const double then = hg__weight_size(initial, i);
		double now = 0.0;
		if (param->flags & HG_PARAM_BUFFER || !(then > 0.0))
			continue;
		HG__TRY(size_of(replay->ctx, param, &now));
		if (!(now >= GROWTH * then && now - then >= steps * then && now / then > f->grown_by) ||
		    !may_have_moved(replay, now - then, steps))
			continue;
		f->grown_by = now / then;
		HG__TRY(hg__report_text(replay->ctx, replay->memory, &f->grown, "%s", param->name));
	}
	return HG_OK;
}

hg_status hg__check_weight_growth(const struct hg__replay *replay, struct hg__finding *finding)
{
	hg_finding *f = &finding->reported;
	const int is_overflow = f->cause == HG_CAUSE_STORE || f->cause == HG_CAUSE_LOSS_SCALE ||
	                        f->cause == HG_CAUSE_EXPLOSION || f->cause == HG_CAUSE_ACCUMULATION;
	if (!replay->initial_weights || !is_overflow || !replay->optim ||
	    f->step <= replay->initial_weights->step)
		return HG_OK;
	HG__TRY(find_grown(replay, f));
	if (*f->grown)
		f->cause = HG_CAUSE_OPTIMISER;
	return HG_OK;
}
