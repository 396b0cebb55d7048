/* The state of a training run: the state of its optimiser, and the settings of the run. */
#include "nn/train.h"

#include <stdio.h>

/* With these a program that has only the state can undo the standardising. */
static hg_status note_scale(hg_state *state, const hg_train *t)
{
	char name[48];
	for (int64_t c = 0; t->truth.mean.data && c < t->truth.cols; c++) {
		double mean, deviation;
		HG__TRY(hg_train_target_scale(t, c, &mean, &deviation));
		(void)snprintf(name, sizeof name, "target.mean %lld", (long long)c);
		HG__TRY(hg__state_note_real(state, t->ctx, name, mean));
		(void)snprintf(name, sizeof name, "target.deviation %lld", (long long)c);
		HG__TRY(hg__state_note_real(state, t->ctx, name, deviation));
	}
	return HG_OK;
}

static hg_status note_run(hg_state *state, const hg_train *t)
{
	HG__TRY(hg__state_note_model(state, t->ctx, &t->config.model));
	HG__TRY(hg__state_note_train(state, t->ctx, &t->config));
	HG__TRY(hg__state_note_text(state, t->ctx, HG__METRIC, hg_metric_name(t->truth.metric)));
	HG__TRY(note_scale(state, t));
	HG__TRY(hg__state_note_integer(state, t->ctx, "train.first_layer_decay_only",
	                               t->config.first_layer_decay_only));
	HG__TRY(hg__state_note_integer(state, t->ctx, "data.nodes", t->nodes));
	HG__TRY(hg__state_note_integer(state, t->ctx, "data.edges", t->edges));
	HG__TRY(
	    hg__state_note_integer(state, t->ctx, "data.features_sparse", t->input.x_sparse != NULL));
	HG__TRY(hg__state_note_text(state, t->ctx, "data.features_note", t->features_note));
	HG__TRY(hg__state_note_integer(state, t->ctx, HG__ROWS_NORMALIZED, t->rows_normalized));
	HG__TRY(hg__state_note_integer(state, t->ctx, HG__SELF_LOOPS, t->self_loops));
	HG__TRY(hg__state_note_integer(state, t->ctx, HG__UNWEIGHTED, t->unweighted));
	HG__TRY(
	    hg__state_note_integer(state, t->ctx, HG__CLASS_WEIGHTS, (int64_t)t->class_weights_hash));
	HG__TRY(hg__state_note_integer(state, t->ctx, HG__STANDARDIZED,
	                               (int64_t)hg__train_columns_hash(t)));
	return hg__state_note_integer(state, t->ctx, HG__TARGETS, (int64_t)t->targets_hash);
}

/* What predictions need to know of the data. */
static hg_status data_get(const hg_train *t, hg_state *state)
{
	hg_status status = HG_OK;
	if (t->column_mean.data)
		status = hg_state_set_columns(state, t->config.model.in_features, t->column_mean.data,
		                              t->column_deviation.data);
	if (status >= 0)
		status = hg_state_set_class_names(state, t->class_name.data, t->class_name_bytes);
	return status < 0
	           ? hg__fail(t->ctx, status, "state: columns and classes: %s", hg_status_text(status))
	           : HG_OK;
}

hg_status hg_train_get_state(hg_train *train, hg_state **out)
{
	hg_state *state = NULL;
	if (!train)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(train->ctx, HG_ERR_ARG, "train_get_state: state is NULL");
	*out = NULL;
	HG__TRY(hg__state_get(train->optim, train->swapped ? &train->best.weights : NULL, &state));
	hg_status status = note_run(state, train);
	if (status >= 0)
		status = data_get(train, state);
	if (status >= 0)
		status = hg__train_get_best(train, state);
	if (status < 0) {
		hg_state_free(state);
		return status;
	}
	*out = state;
	return HG_OK;
}

/* Restores a state. If it has other promotions or weight bounds than the tapes assume, the tapes
 * are recorded again first, before anything else changes. On an error the old assumptions are
 * restored. */
static hg_status restore_on_basis(hg_train *t, const hg_state *ours, const hg_state *theirs,
                                  struct hg__basis *basis)
{
	const int moves = !hg__basis_same(t->params, basis);
	hg_status status = HG_OK;
	if (moves) {
		hg__basis_swap(t->params, basis);
		status = hg__train_record_again(t);
	}
	if (status >= 0)
		status = hg__state_put(t->optim, ours, theirs);
	if (status >= 0 || !moves)
		return status;
	hg__basis_swap(t->params, basis);
	const hg_status back = hg__train_record_again(t);
	return back < 0 ? back : status;
}

static hg_status put_on_basis(hg_train *t, const hg_state *ours, const hg_state *theirs,
                              struct hg__basis *basis)
{
	struct hg__train_past past;
	HG__TRY(hg__train_past_init(t, theirs, &past));
	const hg_status status = restore_on_basis(t, ours, theirs, basis);
	hg_status put = HG_OK;
	if (status >= 0) {
		t->swapped = 0;
		t->own_best = hg__state_difference(ours, theirs, "model.") ||
		              hg__state_difference(ours, theirs, "data.") ||
		              hg__state_difference(ours, theirs, "policy.") ||
		              theirs->best.metric != t->truth.metric;
		put = hg__train_past_put(t, theirs, &past);
	}
	hg__train_past_fini(t->ctx, &past);
	return put < 0 ? put : status;
}

static hg_status put_checked(hg_train *t, const hg_state *ours, const hg_state *theirs)
{
	struct hg__basis basis;
	HG__TRY(hg__state_check(t->optim, ours, theirs));
	HG__TRY(hg__basis_make(t->params, theirs, &basis));
	const hg_status status = put_on_basis(t, ours, theirs, &basis);
	hg__basis_fini(t->ctx, &basis);
	return status;
}

/* The run's settings, as they would be if it began with this state: a schedule that ends with the
 * run then ends later. Should the state not fit, the schedule is put back. */
static hg_status put_scheduled(hg_train *t, hg_state *ours, const hg_state *theirs)
{
	const hg_schedule_config before = t->optim->schedule;
	const int fits = theirs->step >= 0 && theirs->step <= INT64_MAX / 2;
	hg_status status = hg__train_schedule(t, fits ? theirs->step : 0);
	if (status >= 0)
		status = hg__state_note_optim(ours, t->optim);
	if (status >= 0)
		status = note_run(ours, t);
	if (status >= 0)
		status = put_checked(t, ours, theirs);
	if (status >= 0)
		return status;
	const hg_status back = hg__optim_schedule(t->optim, &before);
	return back < 0 ? back : status;
}

hg_status hg_train_set_state(hg_train *train, const hg_state *theirs)
{
	hg_state *ours = NULL;
	if (!train)
		return HG_ERR_ARG;
	if (!theirs)
		return hg__fail(train->ctx, HG_ERR_ARG, "train_set_state: state is NULL");
	if (train->in_progress)
		return hg__fail(train->ctx, HG_ERR_STATE,
		                "train_set_state: the run is in its progress function: stop it first");
	if (hg_state_create(&ours) < 0)
		return hg__fail(train->ctx, HG_ERR_NOMEM, "state: %s", hg_status_text(HG_ERR_NOMEM));
	const hg_status status = put_scheduled(train, ours, theirs);
	hg_state_free(ours);
	return status;
}
