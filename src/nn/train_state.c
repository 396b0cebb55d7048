/* The state of a training run: the state of its optimiser, and the settings of the run. */
#include "nn/train.h"

static hg_status note_run(hg_state *state, const hg_train *t)
{
	HG__TRY(hg__state_note_model(state, t->ctx, &t->config.model));
	HG__TRY(hg__state_note_integer(state, t->ctx, "train.first_layer_decay_only",
	                               t->config.first_layer_decay_only));
	HG__TRY(hg__state_note_integer(state, t->ctx, "data.nodes", t->nodes));
	HG__TRY(hg__state_note_integer(state, t->ctx, "data.edges", t->edges));
	HG__TRY(
	    hg__state_note_integer(state, t->ctx, "data.features_sparse", t->input.x_sparse != NULL));
	return hg__state_note_text(state, t->ctx, "data.features_note", t->features_note);
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
	const hg_status status = note_run(state, train);
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

static hg_status put_checked(hg_train *t, const hg_state *ours, const hg_state *theirs)
{
	struct hg__basis basis;
	HG__TRY(hg__state_check(t->optim, ours, theirs));
	HG__TRY(hg__basis_make(t->params, theirs, &basis));
	const hg_status status = restore_on_basis(t, ours, theirs, &basis);
	hg__basis_fini(t->ctx, &basis);
	if (status >= 0)
		t->swapped = 0;
	return status;
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
	hg_status status = hg__state_note_optim(ours, train->optim);
	if (status >= 0)
		status = note_run(ours, train);
	if (status >= 0)
		status = put_checked(train, ours, theirs);
	hg_state_free(ours);
	return status;
}
