/* What the recording of a tape depends on, apart from model and data: the nodes that have
 * overflowed (autograd/promote.c), and how large the weights may become. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/op.h"
#include "nn/state.h"

hg_status hg__basis_get(const hg_params *params, hg_state *state)
{
	for (int64_t i = 0; i < params->promotions; i++) {
		const struct hg__promotion *p = &params->promotion[i];
		hg_promotion node = {.nth = p->nth, .shift = p->shift};
		(void)snprintf(node.op, sizeof node.op, "%s", p->op->name);
		(void)snprintf(node.layer, sizeof node.layer, "%s", p->scope);
		const hg_status status = hg_state_add_promotion(state, &node);
		if (status < 0)
			return hg__fail(params->ctx, status, "state: promoted %s: %s", node.op,
			                hg_status_text(status));
	}
	return HG_OK;
}

static const struct hg__op *op_named(const char *name)
{
	size_t count;
	const struct hg__op *const *list = hg__op_list(&count);
	for (size_t k = 0; k < count; k++)
		if (strcmp(list[k]->name, name) == 0)
			return list[k];
	return NULL;
}

static hg_status ops_check(hg_context *ctx, const hg_state *state)
{
	for (int64_t i = 0; i < state->promotions; i++)
		if (!op_named(state->promotion[i].op))
			return hg__fail(ctx, HG_ERR_UNSUPPORTED,
			                "%s: the %s of %s was promoted to f32, and this library has no such op",
			                hg__state_origin(state), state->promotion[i].op,
			                state->promotion[i].layer);
	return HG_OK;
}

static hg_status fill_basis(const hg_params *params, const hg_state *state, struct hg__basis *b)
{
	void *memory = NULL;
	if (b->capacity)
		HG__TRY(hg__host_alloc(params->ctx, (size_t)b->capacity, sizeof *b->promotion,
		                       "state: promoted nodes", &memory));
	b->promotion = memory;
	HG__TRY(hg__host_alloc(params->ctx, (size_t)b->params, sizeof *b->reach, "state: reaches",
	                       &memory));
	b->reach = memory;
	for (int64_t i = 0; i < b->promotions; i++) {
		b->promotion[i] = (struct hg__promotion){.op = op_named(state->promotion[i].op),
		                                         .nth = state->promotion[i].nth,
		                                         .shift = state->promotion[i].shift};
		_Static_assert(sizeof b->promotion[i].scope <= sizeof state->promotion[i].layer,
		               "a layer's name fits");
		memcpy(b->promotion[i].scope, state->promotion[i].layer, sizeof b->promotion[i].scope);
	}
	for (int64_t i = 0; i < b->params; i++)
		b->reach[i] = hg_state_find_tensor(state, params->item[i]->name)->reach;
	return HG_OK;
}

hg_status hg__basis_make(const hg_params *params, const hg_state *state, struct hg__basis *basis)
{
	HG__TRY(ops_check(params->ctx, state));
	*basis = (struct hg__basis){
	    .promotions = state->promotions, .capacity = state->promotions, .params = params->count};
	const hg_status status = fill_basis(params, state, basis);
	if (status < 0)
		hg__basis_fini(params->ctx, basis);
	return status;
}

static int same_number(double a, double b)
{
	return a >= b && a <= b;
}

int hg__basis_same(const hg_params *params, const struct hg__basis *basis)
{
	int same = params->promotions == basis->promotions;
	for (int64_t i = 0; same && i < basis->promotions; i++) {
		const struct hg__promotion *a = &params->promotion[i], *b = &basis->promotion[i];
		same = a->op == b->op && a->nth == b->nth && a->shift == b->shift &&
		       strcmp(a->scope, b->scope) == 0;
	}
	for (int64_t i = 0; same && i < basis->params; i++)
		same = same_number(params->item[i]->reach, basis->reach[i]);
	return same;
}

void hg__basis_swap_promotions(hg_params *params, struct hg__basis *basis)
{
	const struct hg__basis mine = {params->promotion, params->promotions,
	                               params->promotion_capacity, basis->reach, basis->params};
	params->promotion = basis->promotion;
	params->promotions = basis->promotions;
	params->promotion_capacity = basis->capacity;
	*basis = mine;
}

void hg__basis_swap(hg_params *params, struct hg__basis *basis)
{
	hg__basis_swap_promotions(params, basis);
	for (int64_t i = 0; i < basis->params; i++) {
		const double reach = params->item[i]->reach;
		params->item[i]->reach = basis->reach[i];
		basis->reach[i] = reach;
	}
	params->reaches++;
}

void hg__basis_fini(hg_context *ctx, struct hg__basis *basis)
{
	hg__host_free(ctx, basis->promotion, (size_t)basis->capacity * sizeof *basis->promotion);
	hg__host_free(ctx, basis->reach, (size_t)basis->params * sizeof *basis->reach);
	*basis = (struct hg__basis){0};
}
