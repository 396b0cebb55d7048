/* The groups of parameters in a checkpoint: /groups has the rates of each, and an attribute of
 * every master its group; FORMAT.md has the layout. */
#include <limits.h>
#include <stdlib.h>

#include "h5/checkpoint.h"

/* ---- writing ---- */

static hg_status write_rates(const struct h5 *h5, hid_t group, const hg_state *state)
{
	float *rate = NULL;
	HG__TRY(hg__data_alloc(state->groups, sizeof *rate, "rates", (void **)&rate, h5->message));
	for (int k = 0; k < state->groups; k++)
		rate[k] = state->group[k].lr;
	hg_status status = hg__h5_write(h5, group, "lr", H5_F32_SUMMED, state->groups, 0, rate, NULL);
	for (int k = 0; k < state->groups; k++)
		rate[k] = state->group[k].weight_decay;
	if (status == HG_OK)
		status =
		    hg__h5_write(h5, group, "weight_decay", H5_F32_SUMMED, state->groups, 0, rate, NULL);
	free(rate);
	return status;
}

hg_status hg__checkpoint_write_groups(const struct h5 *h5, const hg_state *state)
{
	hid_t group;
	if (!state->groups)
		return HG_OK;
	HG__TRY(hg__h5_group_create(h5, h5->file, "groups", &group));
	const hg_status status = write_rates(h5, group, state);
	H5Gclose(group);
	return status;
}

hg_status hg__checkpoint_write_group_of(const struct h5 *h5, hid_t array,
                                        const hg_state_tensor *tensor)
{
	return tensor->group ? hg__h5_integer_write(h5, array, "group", tensor->group) : HG_OK;
}

/* ---- reading ---- */

static hg_status add_groups(const struct h5 *h5, const float *lr, const float *decay, int64_t count,
                            hg_state *state)
{
	for (int64_t k = 0; k < count; k++) {
		const hg_state_group group = {lr[k], decay[k]};
		const hg_status status = hg_state_add_group(state, &group);
		if (status < 0)
			return hg__data_fail(h5->message, status == HG_ERR_NOMEM ? status : HG_ERR_FORMAT,
			                     "%s: /groups: group %lld has lr %g and weight_decay %g: %s",
			                     h5->path, (long long)k, (double)lr[k], (double)decay[k],
			                     status == HG_ERR_NOMEM ? hg_status_text(status)
			                                            : "expected finite numbers of at least 0");
	}
	return HG_OK;
}

static hg_status read_groups(const struct h5 *h5, hid_t group, hg_state *state)
{
	float *lr = NULL, *decay = NULL;
	int64_t rates = 0, decays = 0;
	hg_status status =
	    hg__checkpoint_read_vector(h5, group, "lr", "/groups/lr", H5_F32, (void **)&lr, &rates);
	if (status == HG_OK)
		status = hg__checkpoint_read_vector(h5, group, "weight_decay", "/groups/weight_decay",
		                                    H5_F32, (void **)&decay, &decays);
	if (status == HG_OK && (rates != decays || rates < 1 || rates > INT_MAX))
		status = hg__data_fail(h5->message, HG_ERR_FORMAT,
		                       "%s: /groups: %lld learning rates and %lld weight decays, expected "
		                       "one of each for every group",
		                       h5->path, (long long)rates, (long long)decays);
	if (status == HG_OK)
		status = add_groups(h5, lr, decay, rates, state);
	free(lr);
	free(decay);
	return status;
}

hg_status hg__checkpoint_read_groups(const struct h5 *h5, hg_state *state)
{
	hid_t group;
	if (!hg__h5_has(h5->file, "groups"))
		return HG_OK;
	HG__TRY(hg__h5_group(h5, h5->file, "groups", "/groups", &group));
	const hg_status status = read_groups(h5, group, state);
	H5Gclose(group);
	return status;
}

hg_status hg__checkpoint_read_group_of(const struct h5 *h5, hid_t array, const char *where,
                                       int groups, hg_state_tensor *tensor)
{
	int64_t group = 0;
	int found;
	HG__TRY(hg__h5_integer(h5, array, "group", where, &group, &found));
	if (group < 0 || group >= (groups ? groups : 1))
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: attribute group is %lld, but /groups has %d", h5->path, where,
		                     (long long)group, groups);
	tensor->group = (int)group;
	return HG_OK;
}
