/* The files that a run reads at its start and writes while it trains and at its end. */
#define _POSIX_C_SOURCE 200809L
#include "checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files.h"
#include "tool.h"
#include "watch.h"
#include "weights.h"

hg_status files_check(const struct options *o, char *message)
{
	const struct tool_file files[] = {
	    {"--data", o->training.data, TOOL_READ, "the dataset itself"},
	    {"--config", o->config, TOOL_READ, "the file of options"},
	    {"--class-weights", weights_file(&o->training), TOOL_READ, "the weights of the classes"},
	    {"--resume", o->resume, TOOL_RENEWED, "the checkpoint to begin from"},
	    {"--save", o->save, TOOL_REPLACED, NULL},
	    {"--save-best", o->save_best, TOOL_REPLACED, NULL},
	    {"--import-weights", o->import, TOOL_READ, "the weights to begin with"},
	    {"--export-weights", o->export, TOOL_REPLACED, NULL},
	    {"--save-config", o->save_config, TOOL_REPLACED, NULL},
	    {"--json", o->json, TOOL_STREAMED, NULL},
	    {"--html", o->html, TOOL_REPLACED, NULL},
	    {"--trace", o->trace, TOOL_REPLACED, NULL},
	};
	return tool_files_check(files, sizeof files / sizeof *files, message);
}

/* The failure of a call on the run. */
static hg_status run_failed(hg_train *train, hg_status status, char *message)
{
	if (status < 0)
		(void)snprintf(message, HG_DATA_MESSAGE, "%s",
		               hg_context_error(hg_params_context(hg_train_params(train))));
	return status;
}

static hg_status weights_import(const struct options *o, hg_train *train, char *message)
{
	hg_state *state = NULL;
	hg_status status = run_failed(train, hg_train_get_state(train, &state), message);
	if (status >= 0)
		status = hg_state_import(state, o->import, message);
	if (status >= 0)
		status = run_failed(train, hg_train_set_state(train, state), message);
	hg_state_free(state);
	return status;
}

static hg_status weights_export(const struct options *o, hg_train *train, char *message)
{
	hg_state *state = NULL;
	hg_status status = run_failed(train, hg_train_get_state(train, &state), message);
	if (status >= 0)
		status = hg_state_export(state, o->export, message);
	hg_state_free(state);
	return status;
}

hg_status checkpoint_resume(const struct options *o, hg_train *train, char *message)
{
	const hg_status status = o->resume   ? hg_checkpoint_load(o->resume, train, message)
	                         : o->import ? weights_import(o, train, message)
	                                     : HG_OK;
	if (status == HG_INFO_DIFFERS)
		tool_say("hg-train", "%s", message);
	if (status >= 0)
		*message = 0;
	return status;
}

hg_status checkpoint_continue(struct options *o, int *epochs, FILE *text, char *message)
{
	hg_state *state = NULL;
	if (!o->go_on)
		return HG_OK;
	o->save = o->go_on;
	if (access(o->go_on, F_OK) != 0 && errno == ENOENT)
		return HG_OK;
	o->resume = o->go_on;
	const hg_status status = hg_checkpoint_read(o->go_on, &state, message);
	if (status < 0)
		return status;
	const int64_t done = state->epochs < *epochs ? state->epochs : *epochs;
	hg_state_free(state);
	char *name = tool_printable(o->go_on);
	fprintf(text, "%s: %lld of %d epochs are done\n\n", name ? name : "", (long long)done, *epochs);
	free(name);
	*epochs -= (int)done;
	return status;
}

/* Not between two evaluations, because a resumed run counts them from its start. Without batches
 * not where the tapes are about to be recorded again: a run that resumes there would first repeat
 * the overflow. With batches that is done after each step, before the epoch ends. */
static int is_whole(const struct options *o, hg_train *train, const hg_train_event *event)
{
	hg_step_info last = HG_STEP_INFO_INIT;
	if (event->epoch % o->eval_every != 0)
		return 0;
	if (o->batch_size > 0)
		return 1;
	return event->step.reason != HG_STEP_SKIPPED_FORWARD && !event->step.outgrown &&
	       hg_step_read(hg_train_step(train), 0, NULL, &last) >= 0 &&
	       /* of epochs that ran together, the state is that of the last */
	       last.steps == event->step.steps;
}

void checkpoint_note(const struct options *o, struct saving *s, hg_train *train,
                     const hg_train_event *event)
{
	char message[HG_DATA_MESSAGE] = "";
	const double now = tool_seconds();
	if (event->epoch == 1)
		*s = (struct saving){.at = now};
	if (!o->save || !(o->save_every || o->go_on) || event->epoch == event->epochs)
		return; /* after the last epoch it is written anyway */
	const int due = o->save_every ? event->epoch - s->epoch >= o->save_every : now - s->at >= 60;
	if (!due || !is_whole(o, train, event))
		return;
	watch_hold();
	const hg_status status = hg_checkpoint_save(train, o->save, message);
	watch_release();
	if (status < 0 && !s->failed) /* the training goes on, and the disk may have room later */
		tool_say("hg-train", "%s: the training goes on, and the file is as before", message);
	s->failed = status < 0;
	s->epoch = event->epoch;
	s->at = now;
}

/* The checkpoint comes last: where it is complete, everything is. Of several failures the last one
 * is told. */
hg_status checkpoint_save(const struct options *o, hg_train *train, char *message)
{
	hg_status best = HG_OK, weights = HG_OK, state = HG_OK;
	*message = 0;
	watch_hold();
	if (o->save_best)
		best = hg_model_save(train, o->save_best, message);
	if (o->export)
		weights = weights_export(o, train, message);
	if (o->save)
		state = hg_checkpoint_save(train, o->save, message);
	watch_release();
	return state < 0 ? state : weights < 0 ? weights : best;
}
