/* Checkpoints of training runs: save the state of a run, or its model alone, to a file, and load
 * them back. */
#include <stdlib.h>

#include "halfgraph/train.h"
#include "internal.h"

/* Copy the error text of the library's context into `message`. */
static hg_status copy_error(hg_train *train, hg_status status, char *message)
{
	return status == HG_OK
	           ? status
	           : hg__data_fail(message, status, "%s",
	                           hg_context_error(hg_params_context(hg_train_params(train))));
}

hg_status hg_checkpoint_save(hg_train *train, const char *path, char *message)
{
	hg_state *state = NULL;
	if (!train || !path)
		return hg__data_fail(message, HG_ERR_ARG, "checkpoint_save: %s is NULL",
		                     train ? "path" : "train");
	hg_status status = copy_error(train, hg_train_get_state(train, &state), message);
	if (status >= 0)
		status = hg_checkpoint_write(state, path, message);
	hg_state_free(state);
	return status;
}

hg_status hg_checkpoint_load(const char *path, hg_train *train, char *message)
{
	hg_state *state = NULL;
	if (!train || !path)
		return hg__data_fail(message, HG_ERR_ARG, "checkpoint_load: %s is NULL",
		                     path ? "train" : "path");
	hg_status status = hg_checkpoint_read(path, &state, message);
	if (status >= 0)
		status = copy_error(train, hg_train_set_state(train, state), message);
	hg_state_free(state);
	return status;
}

/* The best weights become the masters, and what only an optimiser needs goes. */
static void reduce_to_model(hg_state *state)
{
	for (int64_t i = 0; i < state->tensors; i++) {
		hg_state_tensor *t = &state->tensor[i];
		float *last = t->best ? t->master : NULL;
		t->master = t->best ? t->best : t->master;
		t->best = NULL;
		free(last);
		for (int k = 0; k < t->moments; k++) {
			free(t->moment[k]);
			t->moment[k] = NULL;
		}
		t->moments = 0;
		t->group = 0;
	}
	state->groups = 0;
}

hg_status hg_model_save(hg_train *train, const char *path, char *message)
{
	hg_state *state = NULL;
	if (!train || !path)
		return hg__data_fail(message, HG_ERR_ARG, "model_save: %s is NULL",
		                     train ? "path" : "train");
	hg_status status = copy_error(train, hg_train_get_state(train, &state), message);
	if (status >= 0) {
		reduce_to_model(state);
		status = hg_checkpoint_write(state, path, message);
	}
	hg_state_free(state);
	return status;
}

hg_status hg_model_load(hg_context *context, const char *path, hg_predictor **predictor,
                        char *message)
{
	hg_state *state = NULL;
	if (predictor)
		*predictor = NULL;
	if (!context || !path || !predictor)
		return hg__data_fail(message, HG_ERR_ARG, "model_load: %s is NULL",
		                     !context ? "context"
		                     : !path  ? "path"
		                              : "predictor");
	hg_status status = hg_checkpoint_read(path, &state, message);
	if (status >= 0) {
		status = hg_predictor_create(context, state, predictor);
		if (status != HG_OK)
			(void)hg__data_fail(message, status, "%s", hg_context_error(context));
	}
	hg_state_free(state);
	return status;
}
