/* The best epoch of a run and the history of its epochs, as parts of its state. The best weights
 * are in the masters after a run, and in train->best during it (hg_train.swapped). */
#include <string.h>

#include "nn/train.h"

/* ---- the history ---- */

/* 10 KiB hold the epochs of a usual run (200); then twice as many, and so on. */
#define FIRST_ROOM 256

static hg_status history_alloc(hg_context *ctx, int64_t room, hg_state_epoch **history)
{
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, (size_t)room, sizeof **history, "train: history", &memory));
	*history = memory;
	return HG_OK;
}

static void history_set(hg_train *t, hg_state_epoch *history, int64_t room)
{
	hg__host_free(t->ctx, t->history, (size_t)t->history_room * sizeof *t->history);
	t->history = history;
	t->history_room = room;
}

hg_status hg__train_note_epoch(hg_train *t, const hg_train_event *event)
{
	if (t->epochs == t->history_room) {
		const int64_t room = t->history_room ? 2 * t->history_room : FIRST_ROOM;
		hg_state_epoch *history = NULL;
		HG__TRY(history_alloc(t->ctx, room, &history));
		if (t->epochs)
			memcpy(history, t->history, (size_t)t->epochs * sizeof *history);
		history_set(t, history, room);
	}
	t->history[t->epochs++] = (hg_state_epoch){.step = hg__train_steps_after(t, event->epoch),
	                                           .loss = event->loss,
	                                           .train_accuracy = event->train_accuracy,
	                                           .val_accuracy = event->val_accuracy,
	                                           .test_accuracy = event->test_accuracy,
	                                           .train_metric = event->train_metric,
	                                           .val_metric = event->val_metric,
	                                           .test_metric = event->test_metric};
	return HG_OK;
}

/* ---- into a state ---- */

_Static_assert(sizeof((hg_state_best){0}.right) / sizeof(int64_t) == HG__SPLITS &&
                   HG__SPLIT_TRAIN == 0 && HG__SPLIT_VAL == 1 && HG__SPLIT_TEST == 2,
               "a state counts as the board does");

static hg_state_best best_of(const hg_train *t)
{
	const struct hg__score_note *note = &t->seen.best;
	hg_state_best best = {.step = hg__train_steps_after(t, note->epoch),
	                      .metric = t->truth.metric,
	                      .nonfinite_logits = note->counts.nonfinite,
	                      .loss = note->loss};
	if (note->epoch == 0 || note->epoch == HG__EPOCH_BEFORE)
		return t->best_before;
	memcpy(best.value, note->metric, sizeof best.value);
	memcpy(best.right, note->counts.right, sizeof best.right);
	memcpy(best.counted, note->counts.counted, sizeof best.counted);
	return best;
}

struct hg__score_note hg__train_best_before(const hg_train *t)
{
	const hg_state_best *best = &t->best_before;
	struct hg__score_note note = {.loss = best->loss,
	                              .epoch = best->step ? HG__EPOCH_BEFORE : 0,
	                              .counts.nonfinite = best->nonfinite_logits};
	memcpy(note.counts.right, best->right, sizeof best->right);
	memcpy(note.counts.counted, best->counted, sizeof best->counted);
	memcpy(note.metric, best->value, sizeof best->value);
	return note;
}

static hg_status weights_get(const hg_train *t, hg_state *state)
{
	if (!state->best.step)
		return HG_OK;
	if (hg_state_add_best(state) < 0)
		return hg__fail(t->ctx, HG_ERR_NOMEM, "state: best weights: %s",
		                hg_status_text(HG_ERR_NOMEM));
	for (int64_t i = 0; i < t->params->count; i++) {
		const struct hg__mat *mat = &t->params->item[i]->master->mat;
		HG__TRY(hg__state_download(t->ctx, *mat,
		                           t->swapped ? mat->data : hg__saved_master(&t->best.weights, i),
		                           state->tensor[i].best));
	}
	return HG_OK;
}

hg_status hg__train_get_best(const hg_train *t, hg_state *state)
{
	state->best = best_of(t);
	HG__TRY(weights_get(t, state));
	for (int64_t i = 0; i < t->epochs; i++) {
		const hg_status status = hg_state_add_epoch(state, &t->history[i]);
		if (status < 0)
			return hg__fail(t->ctx, status, "state: history: %s", hg_status_text(status));
	}
	return HG_OK;
}

/* ---- from a state ---- */

hg_status hg__train_past_init(const hg_train *t, const hg_state *theirs,
                              struct hg__train_past *past)
{
	const size_t bytes = hg__state_largest(t->params);
	*past = (struct hg__train_past){.room = theirs->epochs};
	HG__TRY(hg__host_alloc(t->ctx, bytes, 1, "state: staging", &past->staging));
	past->staging_bytes = bytes;
	if (!past->room)
		return HG_OK;
	const hg_status status = history_alloc(t->ctx, past->room, &past->history);
	if (status < 0)
		hg__train_past_fini(t->ctx, past);
	return status;
}

void hg__train_past_fini(hg_context *ctx, struct hg__train_past *past)
{
	hg__host_free(ctx, past->staging, past->staging_bytes);
	hg__host_free(ctx, past->history, (size_t)past->room * sizeof *past->history);
	*past = (struct hg__train_past){0};
}

hg_status hg__train_past_put(hg_train *t, const hg_state *theirs, struct hg__train_past *past)
{
	if (past->room)
		memcpy(past->history, theirs->epoch, (size_t)past->room * sizeof *past->history);
	history_set(t, past->history, past->room);
	t->epochs = past->room;
	past->history = NULL;
	past->room = 0;
	t->seen.best.epoch = 0;
	t->best_recording = -1; /* unknown */
	t->best_before = theirs->best;
	for (int64_t i = 0; theirs->best.step && i < t->params->count; i++) {
		const hg_param *p = t->params->item[i];
		const hg_state_tensor *of = hg_state_find_tensor(theirs, p->name);
		HG__TRY(hg__state_upload(t->ctx, &p->master->mat, hg__saved_master(&t->best.weights, i),
		                         of->best ? of->best : of->master, past->staging));
	}
	return HG_OK;
}
