/* A state in host memory: making it, adding to it, finding parts of it, checking it. */
#include "halfgraph/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/texts.h"

hg_status hg_state_create(hg_state **state)
{
	if (!state)
		return HG_ERR_ARG;
	*state = calloc(1, sizeof **state);
	return *state ? HG_OK : HG_ERR_NOMEM;
}

static void tensor_clear(hg_state_tensor *t)
{
	free(t->name);
	free(t->master);
	for (int k = 0; k < HG_STATE_MOMENTS; k++)
		free(t->moment[k]);
	free(t->best);
	*t = (hg_state_tensor){0};
}

void hg_state_free(hg_state *state)
{
	if (!state)
		return;
	for (int64_t i = 0; i < state->tensors; i++)
		tensor_clear(&state->tensor[i]);
	free(state->tensor);
	free(state->setting);
	free(state->promotion);
	free(state->epoch);
	free(state->origin);
	free(state->column_mean);
	free(state->column_deviation);
	free(state->class_name);
	free(state->group);
	free(state);
}

/* Makes room for one more element after `count`. The capacity is a power of two, so n elements are
 * copied fewer than n times. */
static void *reserve_one(void *list, int64_t count, size_t size)
{
	const int full = (count & (count - 1)) == 0;
	return full ? realloc(list, (count ? 2 * (size_t)count : 1) * size) : list;
}

/* best: with a best weight, as the other tensors of the state have one. */
static hg_status tensor_fill(hg_state_tensor *t, const char *name, int64_t rows, int64_t cols,
                             int moments, int best)
{
	const size_t length = strlen(name) + 1;
	*t = (hg_state_tensor){
	    .rows = rows, .cols = cols, .reach = (double)INFINITY, .moments = moments};
	t->name = malloc(length);
	t->master = calloc((size_t)rows, (size_t)cols * sizeof(float));
	t->best = best ? calloc((size_t)rows, (size_t)cols * sizeof(float)) : NULL;
	int failed = !t->name || !t->master || (best && !t->best);
	for (int k = 0; k < moments; k++) {
		t->moment[k] = calloc((size_t)rows, (size_t)cols * sizeof(float));
		failed |= !t->moment[k];
	}
	if (failed) {
		tensor_clear(t);
		return HG_ERR_NOMEM;
	}
	memcpy(t->name, name, length);
	return HG_OK;
}

hg_status hg_state_add_tensor(hg_state *state, const char *name, int64_t rows, int64_t cols,
                              int moments, hg_state_tensor **tensor)
{
	if (tensor)
		*tensor = NULL;
	if (!state || !name || !*name || hg_state_find_tensor(state, name) || rows < 1 || cols < 1 ||
	    moments < 0 || moments > HG_STATE_MOMENTS)
		return HG_ERR_ARG;
	if (cols > INT64_MAX / (int64_t)sizeof(float) ||
	    rows > INT64_MAX / (int64_t)sizeof(float) / cols)
		return HG_ERR_NOMEM;
	hg_state_tensor *list = reserve_one(state->tensor, state->tensors, sizeof *list), made;
	if (!list)
		return HG_ERR_NOMEM;
	state->tensor = list;
	const int best = state->tensors && list[0].best;
	const hg_status status = tensor_fill(&made, name, rows, cols, moments, best);
	if (status < 0)
		return status;
	list[state->tensors] = made;
	if (tensor)
		*tensor = &list[state->tensors];
	state->tensors++;
	return HG_OK;
}

hg_status hg_state_add_setting(hg_state *state, const hg_setting *setting)
{
	if (!state || !setting || !*setting->name || !memchr(setting->name, 0, sizeof setting->name) ||
	    !memchr(setting->text, 0, sizeof setting->text) ||
	    hg_state_find_setting(state, setting->name))
		return HG_ERR_ARG;
	hg_setting *list = reserve_one(state->setting, state->settings, sizeof *list);
	if (!list)
		return HG_ERR_NOMEM;
	state->setting = list;
	list[state->settings++] = *setting;
	return HG_OK;
}

/* A rate as an optimiser takes it (optim/check.c). */
static int is_rate(float rate)
{
	return rate >= 0.0f && rate < INFINITY;
}

hg_status hg_state_add_group(hg_state *state, const hg_state_group *group)
{
	if (!state || !group || !is_rate(group->lr) || !is_rate(group->weight_decay))
		return HG_ERR_ARG;
	hg_state_group *list = reserve_one(state->group, state->groups, sizeof *list);
	if (!list)
		return HG_ERR_NOMEM;
	state->group = list;
	list[state->groups++] = *group;
	return HG_OK;
}

static int same_node(const hg_promotion *a, const hg_promotion *b)
{
	return a->nth == b->nth && strcmp(a->op, b->op) == 0 && strcmp(a->layer, b->layer) == 0;
}

hg_status hg_state_add_promotion(hg_state *state, const hg_promotion *promotion)
{
	if (!state || !promotion || !*promotion->op ||
	    !memchr(promotion->op, 0, sizeof promotion->op) ||
	    !memchr(promotion->layer, 0, sizeof promotion->layer) || promotion->nth < 0 ||
	    promotion->shift < 0 || promotion->shift > HG_SHIFT_MOST)
		return HG_ERR_ARG;
	for (int64_t i = 0; i < state->promotions; i++)
		if (same_node(&state->promotion[i], promotion))
			return HG_ERR_ARG;
	hg_promotion *list = reserve_one(state->promotion, state->promotions, sizeof *list);
	if (!list)
		return HG_ERR_NOMEM;
	state->promotion = list;
	list[state->promotions++] = *promotion;
	return HG_OK;
}

hg_status hg_state_add_best(hg_state *state)
{
	if (!state || state->best.step < 1)
		return HG_ERR_ARG;
	for (int64_t i = 0; i < state->tensors; i++)
		if (state->tensor[i].best)
			return HG_ERR_ARG;
	int64_t made = 0;
	for (int failed = 0; made < state->tensors && !failed; made += !failed) {
		hg_state_tensor *t = &state->tensor[made];
		const size_t bytes = (size_t)(t->rows * t->cols) * sizeof *t->best;
		t->best = malloc(bytes);
		failed = !t->best;
		if (!failed)
			memcpy(t->best, t->master, bytes);
	}
	if (made == state->tensors)
		return HG_OK;
	while (made-- > 0) {
		free(state->tensor[made].best);
		state->tensor[made].best = NULL;
	}
	return HG_ERR_NOMEM;
}

hg_status hg_state_add_epoch(hg_state *state, const hg_state_epoch *epoch)
{
	if (!state || !epoch || epoch->step < 1 ||
	    (state->epochs && epoch->step <= state->epoch[state->epochs - 1].step))
		return HG_ERR_ARG;
	hg_state_epoch *list = reserve_one(state->epoch, state->epochs, sizeof *list);
	if (!list)
		return HG_ERR_NOMEM;
	state->epoch = list;
	list[state->epochs++] = *epoch;
	return HG_OK;
}

static int columns_fit(int64_t columns, const double *mean, const double *deviation)
{
	int good = columns >= 0 && (!columns || (mean && deviation));
	for (int64_t j = 0; good && j < columns; j++)
		good = isfinite(mean[j]) && isfinite(deviation[j]) && deviation[j] >= 0.0;
	return good;
}

static double *copy_numbers(const double *from, int64_t count)
{
	double *copy = count > INT64_MAX / (int64_t)sizeof *copy
	                   ? NULL
	                   : malloc((size_t)(count ? count : 1) * sizeof *copy);
	if (copy && count)
		memcpy(copy, from, (size_t)count * sizeof *copy);
	return copy;
}

hg_status hg_state_set_columns(hg_state *state, int64_t columns, const double *mean,
                               const double *deviation)
{
	if (!state || !columns_fit(columns, mean, deviation))
		return HG_ERR_ARG;
	double *means = copy_numbers(mean, columns), *deviations = copy_numbers(deviation, columns);
	if (!means || !deviations) {
		free(means);
		free(deviations);
		return HG_ERR_NOMEM;
	}
	free(state->column_mean);
	free(state->column_deviation);
	state->columns = columns;
	state->column_mean = means;
	state->column_deviation = deviations;
	return HG_OK;
}

static int names_fit(const char *names, int64_t bytes)
{
	return bytes >= 0 && hg__texts_count(names, bytes) >= 0;
}

hg_status hg_state_set_class_names(hg_state *state, const char *names, int64_t bytes)
{
	if (!state || !names_fit(names, bytes))
		return HG_ERR_ARG;
	char *copy = bytes ? malloc((size_t)bytes) : NULL;
	if (bytes && !copy)
		return HG_ERR_NOMEM;
	if (bytes)
		memcpy(copy, names, (size_t)bytes);
	free(state->class_name);
	state->class_name = copy;
	state->class_name_bytes = bytes;
	return HG_OK;
}

double hg_state_accuracy(const hg_state_best *best, int set)
{
	return best && set >= 0 && set < 3 && best->counted[set] > 0
	           ? (double)best->right[set] / (double)best->counted[set]
	           : (double)NAN;
}

const hg_state_tensor *hg_state_find_tensor(const hg_state *state, const char *name)
{
	for (int64_t i = 0; state && name && i < state->tensors; i++)
		if (strcmp(state->tensor[i].name, name) == 0)
			return &state->tensor[i];
	return NULL;
}

const hg_setting *hg_state_find_setting(const hg_state *state, const char *name)
{
	for (int64_t i = 0; state && name && i < state->settings; i++)
		if (strcmp(state->setting[i].name, name) == 0)
			return &state->setting[i];
	return NULL;
}

static int history_known(const hg_loss_scale *s)
{
	for (int k = 0; k < HG_LOSS_SCALE_HISTORY; k++)
		if (s->history[k].reason < HG_STEP_APPLIED ||
		    s->history[k].reason > HG_STEP_SKIPPED_FORWARD)
			return 0;
	return 1;
}

/* Either all tensors have a best weight or none has, and without a best epoch none has. */
static const char *best_fault(const hg_state *state)
{
	const hg_state_best *b = &state->best;
	int64_t kept = 0;
	for (int64_t i = 0; i < state->tensors; i++)
		kept += state->tensor[i].best != NULL;
	int good = (!b->step || hg_metric_name(b->metric)) && b->step >= 0 &&
	           b->step <= INT64_MAX / 2 && b->nonfinite_logits >= 0;
	for (int k = 0; k < 3; k++)
		good &= b->right[k] >= 0 && b->right[k] <= b->counted[k];
	if (!good)
		return "the best epoch is out of its range";
	if (kept && (!b->step || kept != state->tensors))
		return b->step ? "some tensors lack a weight of the best epoch"
		               : "there are weights of a best epoch, but no best epoch";
	return NULL;
}

static const char *epochs_fault(const hg_state *state)
{
	for (int64_t i = 0; i < state->epochs; i++)
		if (state->epoch[i].step <= (i ? state->epoch[i - 1].step : 0))
			return "the steps of its history do not ascend";
	return NULL;
}

/* A state without groups is of a run whose rates are not known, and has all tensors in group 0. */
static const char *groups_fault(const hg_state *state)
{
	for (int k = 0; k < state->groups; k++)
		if (!is_rate(state->group[k].lr) || !is_rate(state->group[k].weight_decay))
			return "a learning rate or weight decay is not a finite number of at least 0";
	for (int64_t i = 0; i < state->tensors; i++)
		if (state->tensor[i].group < 0 ||
		    state->tensor[i].group >= (state->groups ? state->groups : 1))
			return "a tensor is in a group of parameters that it does not have";
	return NULL;
}

static int plateau_fits(const hg_plateau *p)
{
	return p->evaluations >= 0 && p->evaluations <= INT64_MAX / 2 && p->waited >= 0 &&
	       p->waited <= p->evaluations && p->drops >= 0 && p->drops <= p->evaluations;
}

/* A growth tracker of INT32_MAX is refused, because the next step would overflow it. */
const char *hg_state_fault(const hg_state *state)
{
	if (!state)
		return "it is NULL";
	const hg_loss_scale *s = &state->loss_scale;
	if (!isfinite(s->scale) || !(s->scale > 0))
		return "the loss scale is not a finite number above 0";
	if (s->growth_tracker < 0 || s->growth_tracker == INT32_MAX || s->tolerance < 0)
		return "the loss scale's growth_tracker or tolerance is out of its range";
	if (s->applied < 0 || s->skipped < 0 || s->applied > INT64_MAX / 2 ||
	    s->skipped > INT64_MAX / 2 || s->steps != s->applied + s->skipped)
		return "the loss scale's steps are not the sum of applied and skipped";
	if (!history_known(s))
		return "the loss scale's history has a reason that is not an hg_step_reason";
	for (int64_t i = 0; i < state->tensors; i++)
		if (!(state->tensor[i].reach > 0))
			return "a tensor's reach is not above 0";
	if (state->step < 0 || state->step > INT64_MAX / 2)
		return "the step counter is out of its range";
	if (!columns_fit(state->columns, state->column_mean, state->column_deviation))
		return "the means and deviations of its columns are not finite numbers";
	if (!names_fit(state->class_name, state->class_name_bytes))
		return "the names of its classes do not end";
	if (!plateau_fits(&state->plateau))
		return "the counts of the plateau are out of their range";
	const char *fault = groups_fault(state);
	fault = fault ? fault : best_fault(state);
	return fault ? fault : epochs_fault(state);
}
