/* The groups of parameters in a state: which parameter is in which, and the rates of each. */
#include <string.h>

#include "nn/state.h"

hg_status hg__state_get_groups(const hg_optim *o, hg_state *state)
{
	for (int k = 0; k < o->groups; k++) {
		const hg_state_group group = {o->group[k].lr, o->group[k].weight_decay};
		const hg_status status = hg_state_add_group(state, &group);
		if (status < 0)
			return hg__fail(o->params->ctx, status, "state: group %d: %s", k,
			                hg_status_text(status));
	}
	for (int64_t i = 0; i < state->tensors; i++)
		for (int64_t k = 0; k < o->count; k++)
			if (strcmp(o->param[k]->name, state->tensor[i].name) == 0)
				state->tensor[i].group = o->tensor[k].group;
	return HG_OK;
}

/* Groups have no names, so both are told apart by their parameters. What is missing,
 * hg__state_check_names reports. */
hg_status hg__state_check_groups(const hg_optim *o, const hg_state *theirs)
{
	hg_context *ctx = o->params->ctx;
	const char *origin = hg__state_origin(theirs);
	if (!theirs->groups)
		return HG_OK;
	if (theirs->groups != o->groups)
		return hg__fail(ctx, HG_ERR_SHAPE,
		                "%s has %d groups of parameters, the optimiser has %d: make the same ones "
		                "before (hg_optim_add_group)",
		                origin, theirs->groups, o->groups);
	for (int64_t i = 0; i < o->count; i++) {
		const hg_state_tensor *t = hg_state_find_tensor(theirs, o->param[i]->name);
		if (t && t->group != o->tensor[i].group)
			return hg__fail(ctx, HG_ERR_SHAPE,
			                "%s is in group %d of parameters in %s, the optimiser has it in group "
			                "%d (hg_optim_assign)",
			                t->name, t->group, origin, (int)o->tensor[i].group);
	}
	return HG_OK;
}

hg_status hg__state_put_groups(hg_optim *o, const hg_state *ours, const hg_state *theirs)
{
	const int lr = !hg__state_difference(ours, theirs, "optim.lr"),
	          decay = !hg__state_difference(ours, theirs, "optim.weight_decay");
	for (int k = 0; k < theirs->groups; k++) {
		o->group[k].lr = lr ? theirs->group[k].lr : o->group[k].lr;
		o->group[k].weight_decay = decay ? theirs->group[k].weight_decay : o->group[k].weight_decay;
	}
	return theirs->groups ? hg__optim_groups_upload(o) : HG_OK;
}

hg_status hg__state_make_groups(hg_optim *o, const hg_state *state)
{
	for (int k = o->groups; k < state->groups; k++) {
		int made = 0;
		HG__TRY(hg_optim_add_group(o, state->group[k].lr, state->group[k].weight_decay, &made));
	}
	for (int64_t i = 0; state->groups && i < o->count; i++) {
		const hg_state_tensor *t = hg_state_find_tensor(state, o->param[i]->name);
		if (t && t->group != o->tensor[i].group)
			HG__TRY(hg_optim_assign(o, o->param[i], t->group));
	}
	return HG_OK;
}
