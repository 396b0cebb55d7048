/* Saves the state of an optimiser and its parameters, and restores it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/state.h"

/* The optimiser's row for a parameter; NULL for a buffer. */
static const struct hg__optim_tensor *row_of(const hg_optim *o, const hg_param *p)
{
	for (int64_t i = 0; i < o->count; i++)
		if (o->param[i] == p)
			return &o->tensor[i];
	return NULL;
}

/* Finds the moments of a parameter and returns how many there are. Each has the layout of its
 * master. */
static int moments_of(const hg_optim *o, const hg_param *p, float *at[HG_STATE_MOMENTS])
{
	const struct hg__optim_tensor *row = row_of(o, p);
	at[0] = row ? row->m : NULL;
	at[1] = row ? row->v : NULL;
	return (at[0] != NULL) + (at[1] != NULL);
}

/* ---- saving ---- */

hg_status hg__state_download(hg_context *ctx, struct hg__mat mat, void *data, float *host)
{
	mat.data = data;
	const struct hg_tensor view = hg__tensor_view(ctx, mat);
	return hg_tensor_download(&view, host, HG_F32);
}

static hg_status tensor_get(const hg_optim *o, int64_t index, const struct hg__saved *masters,
                            hg_state *state)
{
	hg_context *ctx = o->params->ctx;
	const hg_param *p = o->params->item[index];
	const struct hg__mat mat = p->master->mat;
	float *at[HG_STATE_MOMENTS];
	const int moments = moments_of(o, p, at);
	hg_state_tensor *t;
	const hg_status status = hg_state_add_tensor(state, p->name, mat.rows, mat.cols, moments, &t);
	if (status < 0)
		return hg__fail(ctx, status, "state: %s [%lld, %lld]: %s", p->name, (long long)mat.rows,
		                (long long)mat.cols, hg_status_text(status));
	t->reach = p->reach;
	HG__TRY(hg__state_download(ctx, mat, masters ? hg__saved_master(masters, index) : mat.data,
	                           t->master));
	for (int k = 0; k < moments; k++)
		HG__TRY(hg__state_download(ctx, mat, at[k], t->moment[k]));
	return HG_OK;
}

static hg_status get_all(hg_optim *o, const struct hg__saved *masters, hg_state *state)
{
	hg_context *ctx = o->params->ctx;
	struct hg__step step;
	HG__TRY(hg__optim_ready(o));
	for (int64_t i = 0; i < o->params->count; i++)
		HG__TRY(tensor_get(o, i, masters, state));
	HG__TRY(hg__state_get_groups(o, state));
	HG__TRY(ctx->backend->copy_out(ctx, &step, o->params->step, sizeof step));
	state->loss_scale = step.scale;
	state->step = step.step;
	state->plateau = step.plateau;
	HG__TRY(hg__basis_get(o->params, state));
	return hg__state_note_optim(state, o);
}

hg_status hg__state_get(hg_optim *o, const struct hg__saved *masters, hg_state **out)
{
	hg_state *state = NULL;
	if (hg_state_create(&state) < 0)
		return hg__fail(o->params->ctx, HG_ERR_NOMEM, "state: %s", hg_status_text(HG_ERR_NOMEM));
	const hg_status status = get_all(o, masters, state);
	if (status < 0) {
		hg_state_free(state);
		return status;
	}
	*out = state;
	return HG_OK;
}

hg_status hg_optim_get_state(hg_optim *optim, hg_state **state)
{
	if (!optim)
		return HG_ERR_ARG;
	if (!state)
		return hg__fail(optim->params->ctx, HG_ERR_ARG, "optim_get_state: state is NULL");
	*state = NULL;
	return hg__state_get(optim, NULL, state);
}

/* ---- checking ---- */

/* Names that one side has and the other lacks: the first one, and how many there are. */
struct absent {
	const char *first;
	int64_t count;
};

static void absent_text(const struct absent *a, char *text, size_t size)
{
	(void)snprintf(text, size, a->count > 1 ? "%.80s and %lld more" : "%.80s", a->first,
	               (long long)a->count - 1);
}

/* " (it is of a gcn, the run trains a gin)", which says more than the names of parameters do; "" if
 * the models are the same. */
static void models_text(const hg_state *ours, const hg_state *theirs, char *text, size_t size)
{
	const hg_setting *a = hg_state_find_setting(theirs, "model.name"),
	                 *b = hg_state_find_setting(ours, "model.name");
	*text = 0;
	if (a && b && strcmp(a->text, b->text) != 0)
		(void)snprintf(text, size, " (it is of a %s, the run trains a %s)", a->text, b->text);
}

hg_status hg__state_check_names(const hg_params *params, const hg_state *ours,
                                const hg_state *theirs)
{
	struct absent lacks = {NULL, 0}, extra = {NULL, 0};
	char lacking[128], more[128], models[192];
	for (int64_t i = 0; i < params->count; i++)
		if (!hg_state_find_tensor(theirs, params->item[i]->name) && lacks.count++ == 0)
			lacks.first = params->item[i]->name;
	for (int64_t i = 0; i < theirs->tensors; i++)
		if (!hg_params_find(params, theirs->tensor[i].name) && extra.count++ == 0)
			extra.first = theirs->tensor[i].name;
	if (!lacks.count && !extra.count)
		return HG_OK;
	models_text(ours, theirs, models, sizeof models);
	absent_text(&extra, more, sizeof more);
	if (!lacks.count)
		return hg__fail(params->ctx, HG_ERR_SHAPE, "%s has %s, which the model does not have%s",
		                hg__state_origin(theirs), more, models);
	absent_text(&lacks, lacking, sizeof lacking);
	return hg__fail(params->ctx, HG_ERR_SHAPE, "%s lacks %s, which the model has%s%s%s%s",
	                hg__state_origin(theirs), lacking, extra.count ? "; it has " : "",
	                extra.count ? more : "", extra.count ? ", which the model does not have" : "",
	                models);
}

/* What is missing, hg__state_check_names reports. */
static hg_status shape_check(const hg_param *p, const hg_state *theirs)
{
	const struct hg__mat *mat = &p->master->mat;
	const hg_state_tensor *t = hg_state_find_tensor(theirs, p->name);
	if (!t || (t->rows == mat->rows && t->cols == mat->cols))
		return HG_OK;
	return hg__fail(p->params->ctx, HG_ERR_SHAPE,
	                "%s is [%lld, %lld] in %s, the model has [%lld, %lld]", p->name,
	                (long long)t->rows, (long long)t->cols, hg__state_origin(theirs),
	                (long long)mat->rows, (long long)mat->cols);
}

hg_status hg__state_check_shapes(const hg_params *params, const hg_state *theirs)
{
	for (int64_t i = 0; i < params->count; i++)
		HG__TRY(shape_check(params->item[i], theirs));
	return HG_OK;
}

static hg_status moments_check(const hg_optim *o, const hg_param *p, const hg_state *theirs)
{
	const hg_state_tensor *t = hg_state_find_tensor(theirs, p->name);
	float *at[HG_STATE_MOMENTS];
	const int moments = moments_of(o, p, at);
	if (!t || t->moments == moments)
		return HG_OK;
	return hg__fail(o->params->ctx, HG_ERR_SHAPE,
	                "%s has %d moments in %s, the optimiser keeps %d%s", p->name, t->moments,
	                hg__state_origin(theirs), moments,
	                t->moments || !theirs->best.step
	                    ? ""
	                    : ": it is a model to predict with, no run goes on from it");
}

hg_status hg__state_check(hg_optim *o, const hg_state *ours, const hg_state *theirs)
{
	const char *fault = hg_state_fault(theirs);
	HG__TRY(hg__optim_ready(o));
	if (fault)
		return hg__fail(o->params->ctx, HG_ERR_ARG, "%s: %s", hg__state_origin(theirs), fault);
	for (int64_t i = 0; i < o->params->count; i++)
		HG__TRY(shape_check(o->params->item[i], theirs));
	for (int64_t i = 0; i < o->params->count; i++)
		HG__TRY(moments_check(o, o->params->item[i], theirs));
	HG__TRY(hg__state_check_names(o->params, ours, theirs));
	return hg__state_check_groups(o, theirs);
}

/* ---- restoring ---- */

hg_status hg__state_upload(hg_context *ctx, const struct hg__mat *mat, void *data,
                           const float *host, float *staging)
{
	for (int64_t r = 0; r < mat->rows; r++)
		for (int64_t c = 0; c < mat->ld; c++)
			staging[r * mat->ld + c] = c < mat->cols ? host[r * mat->cols + c] : 0.0f;
	return ctx->backend->copy_in(ctx, data, staging, (size_t)(mat->rows * mat->ld) * sizeof(float));
}

static hg_status tensors_put(const hg_optim *o, const hg_state *theirs, float *staging)
{
	hg_context *ctx = o->params->ctx;
	for (int64_t i = 0; i < o->params->count; i++) {
		const hg_param *p = o->params->item[i];
		const hg_state_tensor *t = hg_state_find_tensor(theirs, p->name);
		float *at[HG_STATE_MOMENTS];
		const int moments = moments_of(o, p, at);
		HG__TRY(hg__state_upload(ctx, &p->master->mat, p->master->mat.data, t->master, staging));
		for (int k = 0; k < moments; k++)
			HG__TRY(hg__state_upload(ctx, &p->master->mat, at[k], t->moment[k], staging));
		HG__TRY(hg__param_narrow(p));
	}
	return HG_OK;
}

static int outgrows(const hg_state_tensor *t, double reach)
{
	for (int64_t i = 0; i < t->rows * t->cols; i++)
		if (!(fabs((double)t->master[i]) <= reach))
			return 1;
	return 0;
}

/* The first tensor with an element larger than tapes assume, as the update would have found it. */
static int32_t first_outgrown(const hg_optim *o, const hg_state *theirs)
{
	for (int64_t i = 0; i < o->count; i++)
		if (outgrows(hg_state_find_tensor(theirs, o->param[i]->name), o->param[i]->reach))
			return (int32_t)i;
	return HG__NONE_OUTGROWN;
}

/* Of the step's struct, the loss scale, its counters, the step counter and the counts of a plateau
 * last from step to step.
 * The reason is restored for hg_optim_info. */
static hg_status step_put(const hg_optim *o, const hg_state *theirs, int same_scaling)
{
	hg_context *ctx = o->params->ctx;
	struct hg__step step = {.scale = theirs->loss_scale,
	                        .config = o->params->policy.loss_scale,
	                        .step = theirs->step,
	                        .schedule = o->schedule,
	                        .plateau = theirs->plateau,
	                        .rate = 1.0,
	                        .first_nonfinite = -1,
	                        .outgrown = first_outgrown(o, theirs),
	                        .outgrown_before = HG__NONE_OUTGROWN};
	hg_loss_scale fresh;
	HG__TRY(hg_loss_scale_init(&fresh, &step.config));
	if (!same_scaling) {
		step.scale.scale = fresh.scale;
		step.scale.tolerance = fresh.tolerance;
		step.scale.growth_tracker = fresh.growth_tracker;
	}
	if (step.scale.steps > 0)
		step.reason = step.scale.history[(step.scale.steps - 1) % HG_LOSS_SCALE_HISTORY].reason;
	return ctx->backend->copy_in(ctx, o->params->step, &step, sizeof step);
}

size_t hg__state_largest(const hg_params *params)
{
	size_t largest = 0;
	for (int64_t i = 0; i < params->count; i++)
		largest =
		    params->item[i]->master->bytes > largest ? params->item[i]->master->bytes : largest;
	return largest;
}

static hg_status put_all(hg_optim *o, const hg_state *ours, const hg_state *theirs)
{
	const int same_scaling = hg__state_difference(ours, theirs, "policy.loss_scale.") == NULL;
	hg_context *ctx = o->params->ctx;
	const size_t largest = hg__state_largest(o->params);
	void *staging = NULL;
	HG__TRY(hg__optim_ready(o)); /* uploads the present reaches */
	HG__TRY(hg__host_alloc(ctx, largest, 1, "state: staging", &staging));
	hg_status status = tensors_put(o, theirs, staging);
	if (status >= 0)
		status = step_put(o, theirs, same_scaling);
	if (status >= 0)
		status = hg__state_put_groups(o, ours, theirs);
	hg__host_free(ctx, staging, largest);
	return status;
}

hg_status hg__state_put(hg_optim *o, const hg_state *ours, const hg_state *theirs)
{
	char differences[HG__MESSAGE - 80];
	HG__TRY(put_all(o, ours, theirs));
	if (!hg__state_differences(ours, theirs, differences, sizeof differences))
		return HG_OK;
	return hg__fail(o->params->ctx, HG_INFO_DIFFERS,
	                "%s: the run continues, but not with the same bits as before", differences);
}

static hg_status put_checked(hg_optim *o, const hg_state *ours, const hg_state *theirs)
{
	struct hg__basis basis;
	HG__TRY(hg__state_check(o, ours, theirs));
	HG__TRY(hg__basis_make(o->params, theirs, &basis));
	const hg_status status = hg__state_put(o, ours, theirs);
	if (status >= 0)
		hg__basis_swap_promotions(o->params, &basis);
	hg__basis_fini(o->params->ctx, &basis);
	return status;
}

hg_status hg_optim_set_state(hg_optim *optim, const hg_state *theirs)
{
	hg_state *ours = NULL;
	if (!optim)
		return HG_ERR_ARG;
	hg_context *ctx = optim->params->ctx;
	if (!theirs)
		return hg__fail(ctx, HG_ERR_ARG, "optim_set_state: state is NULL");
	if (hg_state_create(&ours) < 0)
		return hg__fail(ctx, HG_ERR_NOMEM, "state: %s", hg_status_text(HG_ERR_NOMEM));
	hg_status status = hg__state_note_optim(ours, optim);
	if (status >= 0)
		status = put_checked(optim, ours, theirs);
	hg_state_free(ours);
	return status;
}
