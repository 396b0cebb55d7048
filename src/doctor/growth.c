#include <math.h>

#include "doctor/growth.h"
#include "doctor/replay.h"

/* Weights that updates have blown up: a learning rate that is too high shows as an overflow of
 * whatever reads them first, forward or backward, and no loss scale and no sum is to blame for
 * it. They are as large as they were made when the doctor is made; of a weight that was 0 then
 * nothing is known. */

/* The geometric mean of the sizes that are not 0: one element, however large, is no growth of
 * all. */
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

hg_status hg__growth_begin(hg_params *params, struct hg__growth *growth)
{
	hg_context *ctx = params->ctx;
	struct hg__step step;
	*growth = (struct hg__growth){.count = params->count};
	HG__TRY(hg__buffer_host(ctx, params->count, sizeof(double), "doctor: sizes of the weights",
	                        &growth->size));
	hg_status status = ctx->backend->copy_out(ctx, &step, params->step, sizeof step);
	growth->step = step.step;
	for (int64_t i = 0; i < params->count && status >= 0; i++)
		status = size_of(ctx, params->item[i], (double *)growth->size.data + i);
	if (status < 0)
		hg__growth_free(ctx, growth);
	return status;
}

void hg__growth_free(hg_context *ctx, struct hg__growth *growth)
{
	hg__buffer_free(ctx, &growth->size);
	*growth = (struct hg__growth){.count = 0};
}

/* The weight that has grown most. What a rate makes of weights that fits them, over many steps,
 * is none: it is one that has grown by its own size in every step, and is 16 times what it was.
 * By choice: an Adam whose rate is a quarter of its weights' size does not reach that. Nor is
 * what somebody else has put there: a step of Adam moves no weight by more than (1 - beta1) /
 * sqrt(1 - beta2) of its rate, 3.2 by default (Kingma, Ba 2015, 2.1), and decay only makes it
 * smaller. */
#define GROWN 16.0
#define ADAM_MOVES 4.0

static int may_have_moved(const struct hg__replay *replay, double by, double steps)
{
	double most = 0.0;
	for (int i = 0; i < replay->optim->groups; i++)
		most = fmax(most, (double)replay->optim->group[i].lr);
	return replay->optim->config.kind == HG_SGD || by <= ADAM_MOVES * most * steps;
}

static hg_status find_grown(const struct hg__replay *replay, const struct hg__growth *growth,
                            hg_finding *f)
{
	const double *then = growth->size.data, steps = (double)(f->step - growth->step);
	for (int64_t i = 0; i < growth->count && i < replay->params->count; i++) {
		const hg_param *param = replay->params->item[i];
		double now = 0.0;
		if (param->flags & HG_PARAM_BUFFER || !(then[i] > 0.0))
			continue;
		HG__TRY(size_of(replay->ctx, param, &now));
		if (!(now >= GROWN * then[i] && now - then[i] >= steps * then[i] &&
		      now / then[i] > f->grown_by) ||
		    !may_have_moved(replay, now - then[i], steps))
			continue;
		f->grown_by = now / then[i];
		HG__TRY(hg__page_text(replay->ctx, replay->pages, &f->grown, "%s", param->name));
	}
	return HG_OK;
}

hg_status hg__check_growth(const struct hg__replay *replay, struct hg__found *found)
{
	hg_finding *f = &found->finding;
	const int asked = f->cause == HG_CAUSE_STORE || f->cause == HG_CAUSE_LOSS_SCALE ||
	                  f->cause == HG_CAUSE_EXPLOSION || f->cause == HG_CAUSE_ACCUMULATION;
	if (!replay->growth || !asked || !replay->optim || f->step <= replay->growth->step)
		return HG_OK;
	HG__TRY(find_grown(replay, replay->growth, f));
	if (*f->grown)
		f->cause = HG_CAUSE_OPTIMISER;
	return HG_OK;
}
