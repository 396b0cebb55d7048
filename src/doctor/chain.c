#include <stdio.h>

#include "doctor/replay.h"

/* The way from a finding to the loss and on to the weights: every launch behind it that reads what
 * is reached, and that, where the fault is one that spreads as infinities and NaN, has some of
 * them. What a relu takes in goes no further. */

struct walk {
	struct hg__replay *replay;
	int spreads; /* only what is not finite is reached */
	hg_chain_link *link;
	int links, room;
};

/* What is known of a link before its texts: they are the tape's, and are kept here. */
static hg_status add_link(struct walk *w, const hg_chain_link *made)
{
	hg_context *ctx = w->replay->ctx;
	if (w->links == w->room)
		return HG_OK;
	hg_chain_link *link = &w->link[w->links++];
	*link = *made;
	HG__TRY(hg__page_text(ctx, w->replay->pages, &link->name, "%s", made->name));
	HG__TRY(hg__page_text(ctx, w->replay->pages, &link->op, "%s", made->op));
	return hg__page_text(ctx, w->replay->pages, &link->layer, "%s", made->layer);
}

/* A parameter or an input. */
static hg_status add_leaf(struct walk *w, const char *name, int backward, int64_t bad,
                          int64_t count)
{
	const hg_chain_link link = {-1, backward, name, "", name, bad, count};
	return add_link(w, &link);
}

static hg_status add_node(struct walk *w, int32_t node, int backward, int64_t bad, int64_t count)
{
	const hg_tape *tape = w->replay->tape;
	const struct hg__entry *line = &tape->entry[node];
	char own[160], name[192];
	(void)hg__value_name(tape, &tape->value[line->node.out], own, sizeof own);
	(void)snprintf(name, sizeof name, "%s%s", backward ? "gradient of " : "", own);
	const hg_chain_link link = {node, backward, hg__entry_title(line), line->node.scope, name,
	                            bad,  count};
	return add_link(w, &link);
}

static int reads_reached(const struct hg__replay *replay, const struct hg__event *event)
{
	const struct hg__node *node = event->launch->call.node;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && event->launch->call.in[i].data &&
		    replay->value[node->in[i]].reached)
			return 1;
	return event->backward && (replay->grad[node->out].reached ||
	                           (event->launch->call.out.data && replay->value[node->out].reached));
}

/* The gradient of one value, the first time that it is reached; those of parameters come at the
 * end. */
static hg_status reach_gradient(struct walk *w, int32_t root)
{
	const struct hg__value *value = &w->replay->tape->value[root];
	struct hg__value_info *info = &w->replay->grad[root];
	if (info->reached || (w->spreads && !info->bad))
		return HG_OK;
	info->reached = 1;
	if (value->node >= 0)
		return hg__is_own_cast(w->replay->tape, value->node)
		           ? HG_OK
		           : add_node(w, value->node, 1, info->bad, info->count);
	return value->kind == HG__PARAM ? HG_OK : add_leaf(w, value->name, 1, info->bad, info->count);
}

/* Gradients that this node's backward has made; that of `first` (-1: none) before the others. */
static hg_status reach_gradients(struct walk *w, const struct hg__event *event, int32_t first)
{
	const struct hg__node *node = event->launch->call.node;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < node->n_in; i++) {
			const int32_t root =
			    event->launch->call.din[i].data ? w->replay->tape->value[node->in[i]].root : -1;
			if (root >= 0 && (pass || root == first))
				HG__TRY(reach_gradient(w, root));
		}
	return HG_OK;
}

static hg_status reach(struct walk *w, const struct hg__event *event, int32_t first)
{
	const struct hg__node *node = event->launch->call.node;
	if (event->backward)
		return reach_gradients(w, event, first);
	w->replay->value[node->out].reached = 1;
	if (hg__is_own_cast(w->replay->tape, event->launch->entry) && w->links)
		return HG_OK;
	return add_node(w, event->launch->entry, 0, event->bad, event->count);
}

/* Every face of a parameter, and nothing else of an input. */
static void reach_leaf(struct hg__replay *replay, int32_t value)
{
	for (int64_t v = 0; v < replay->tape->values && value >= 0; v++)
		if (v == value || (replay->tape->value[value].kind == HG__PARAM &&
		                   replay->tape->value[v].param == replay->tape->value[value].param &&
		                   replay->tape->value[v].kind == HG__PARAM))
			replay->value[v].reached = 1;
}

static hg_status walk_events(struct walk *w, const struct hg__found *found)
{
	struct hg__replay *replay = w->replay;
	for (int64_t i = found->event < 0 ? 0 : found->event; i < replay->events; i++) {
		const struct hg__event *event = &replay->event[i];
		const int origin = i == found->event,
		          uses_graph =
		              replay->bad_graph && event->launch->call.node->graph == replay->bad_graph;
		if (!origin &&
		    (!(reads_reached(replay, event) || uses_graph) || (w->spreads && !event->bad)))
			continue;
		HG__TRY(reach(w, event, origin ? found->value : -1));
	}
	return HG_OK;
}

static hg_status walk_params(struct walk *w)
{
	const struct hg__replay *replay = w->replay;
	for (int64_t v = 0; v < replay->tape->values; v++) {
		const struct hg__value *value = &replay->tape->value[v];
		if (value->kind == HG__PARAM && value->root == (int32_t)v && replay->grad[v].reached &&
		    (!w->spreads || replay->grad[v].bad))
			HG__TRY(add_leaf(w, value->param->name, 1, replay->grad[v].bad, replay->grad[v].count));
	}
	return HG_OK;
}

hg_status hg__trace_chain(struct hg__replay *replay, struct hg__found *found)
{
	const hg_finding *f = &found->finding;
	struct walk w = {.replay = replay,
	                 .spreads = f->cause != HG_CAUSE_UNDERFLOW && f->cause != HG_CAUSE_SWAMPING};
	void *memory = NULL;
	w.room = (int)(replay->events + replay->tape->values + 1);
	HG__TRY(hg__page_take(replay->ctx, replay->pages, (size_t)w.room, sizeof *w.link, &memory));
	w.link = memory;
	for (int64_t v = 0; v < replay->tape->values; v++)
		replay->value[v].reached = replay->grad[v].reached = 0;
	if (f->node < 0)
		HG__TRY(add_leaf(&w, f->tensor, 0, f->bad, f->count));
	if (found->event < 0)
		reach_leaf(replay, found->value);
	if (found->event != INT64_MAX) {
		HG__TRY(walk_events(&w, found));
		HG__TRY(walk_params(&w));
	}
	found->finding.chain = w.link;
	found->finding.links = w.links;
	return HG_OK;
}
