/* Checkpoints of training runs: save the state of a run to a file, and load it back. */
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
