/* Times the training tape of a run and leaves the run as it was. */
#include "autograd/profile.h"
#include "nn/train.h"

/* The saved state is written back whatever failed. */
static hg_status profile_tape(hg_train *train, const hg_profile_config *config, hg_profile **out)
{
	struct hg__saved saved = {0};
	const struct hg__live live = {.params = train->params, .optim = train->optim};
	HG__TRY(hg__saved_init(&saved, &live, HG__SAVED_REPLAY, 0, "profile: the state to return to"));
	hg_status status = hg__saved_take(&saved);
	if (status >= 0) {
		status = hg_tape_profile(train->tape, config, out);
		const hg_status restored = hg__saved_restore(&saved);
		if (status >= 0)
			status = restored;
	}
	if (status >= 0)
		status = train->ctx->backend->synchronize(train->ctx);
	hg__saved_fini(&saved);
	return status;
}

hg_status hg_train_profile(hg_train *train, const hg_profile_config *config, hg_profile **out)
{
	if (out)
		*out = NULL;
	if (!train)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(train->ctx, HG_ERR_ARG, "train_profile: profile is NULL");
	if (train->in_progress)
		return hg__fail(train->ctx, HG_ERR_STATE,
		                "train_profile: called from the run's progress function");
	if (!train->tape)
		return hg__fail(train->ctx, HG_ERR_STATE,
		                "train_profile: the run has no tape, because it could not be recorded "
		                "again");
	const hg_status status = profile_tape(train, config, out);
	if (status < 0) {
		hg_profile_free(*out);
		*out = NULL;
	}
	return status;
}
