#include <stdio.h>

#include "doctor/finding.h"

/* How a fault spread: from the finding to the loss and on to the weights. A later task belongs to
 * the chain if it reads something that the fault has affected. If the fault spreads as infinities
 * and NaN, the task must also have made some of them: a relu, for example, may stop them. */

struct walk {
	struct hg__replay *replay;
	int is_nonfinite; /* the fault spreads as infinities and NaN */
	hg_chain_link *link;
	int links, room;
};

/* Adds a copy of the link; its texts are copied, too, because they belong to the tape. */
static hg_status add_link(struct walk *w, const hg_chain_link *made)
{
	hg_context *ctx = w->replay->ctx;
	if (w->links == w->room)
		return HG_OK;
	hg_chain_link *link = &w->link[w->links++];
	*link = *made;
	HG__TRY(hg__report_text(ctx, w->replay->memory, &link->name, "%s", made->name));
	HG__TRY(hg__report_text(ctx, w->replay->memory, &link->op, "%s", made->op));
	return hg__report_text(ctx, w->replay->memory, &link->layer, "%s", made->layer);
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
	const struct hg__entry *entry = &tape->recording.entry[node];
	char own[160], name[192];
	(void)hg__value_name(tape, &tape->recording.value[entry->node.out], own, sizeof own);
	(void)snprintf(name, sizeof name, "%s%s", backward ? "gradient of " : "", own);
	const hg_chain_link link = {node, backward, hg__entry_title(entry), entry->node.scope, name,
	                            bad,  count};
	return add_link(w, &link);
}

static int reads_affected(const struct hg__replay *replay, const struct hg__replayed *replayed)
{
	const struct hg__call *call = &replayed->task->call;
	const struct hg__node *node = call->node;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && call->in[i].data && replay->value[node->in[i]].affected)
			return 1;
	return replayed->backward && (replay->grad[node->out].affected ||
	                              (call->out.data && replay->value[node->out].affected));
}

/* Adds the gradient of a value the first time that the fault affects it. Gradients of parameters
 * are added at the end. */
static hg_status affect_gradient(struct walk *w, int32_t root)
{
	const struct hg__value *value = &w->replay->tape->recording.value[root];
	struct hg__value_info *info = &w->replay->grad[root];
	if (info->affected || (w->is_nonfinite && !info->bad))
		return HG_OK;
	info->affected = 1;
	if (value->node >= 0)
		return hg__is_implicit_cast(w->replay->tape, value->node)
		           ? HG_OK
		           : add_node(w, value->node, 1, info->bad, info->count);
	return value->kind == HG__PARAM ? HG_OK : add_leaf(w, value->name, 1, info->bad, info->count);
}

/* The gradients that a backward task has made; the one of `first` (-1: none) before the others. */
static hg_status affect_gradients(struct walk *w, const struct hg__replayed *replayed,
                                  int32_t first)
{
	const struct hg__call *call = &replayed->task->call;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < call->node->n_in; i++) {
			const int32_t root =
			    call->din[i].data ? w->replay->tape->recording.value[call->node->in[i]].root : -1;
			if (root >= 0 && (pass || root == first))
				HG__TRY(affect_gradient(w, root));
		}
	return HG_OK;
}

static hg_status affect_results(struct walk *w, const struct hg__replayed *replayed, int32_t first)
{
	const struct hg__task *task = replayed->task;
	if (replayed->backward)
		return affect_gradients(w, replayed, first);
	w->replay->value[task->call.node->out].affected = 1;
	if (hg__is_implicit_cast(w->replay->tape, task->entry) && w->links)
		return HG_OK;
	return add_node(w, task->entry, 0, replayed->bad, replayed->count);
}

/* A leaf at fault. All values of one parameter (its working copy and its f32 view) are affected. */
static void affect_leaf(struct hg__replay *replay, int32_t value)
{
	for (int64_t v = 0; v < replay->tape->recording.values && value >= 0; v++)
		if (v == value ||
		    (replay->tape->recording.value[value].kind == HG__PARAM &&
		     replay->tape->recording.value[v].param == replay->tape->recording.value[value].param &&
		     replay->tape->recording.value[v].kind == HG__PARAM))
			replay->value[v].affected = 1;
}

static hg_status walk_tasks(struct walk *w, const struct hg__finding *finding)
{
	struct hg__replay *replay = w->replay;
	for (int64_t i = finding->position < 0 ? 0 : finding->position; i < replay->replayed_count;
	     i++) {
		const struct hg__replayed *replayed = &replay->replayed[i];
		const int origin = i == finding->position,
		          uses_bad_graph =
		              replay->bad_graph && replayed->task->call.node->graph == replay->bad_graph;
		if (!origin && (!(reads_affected(replay, replayed) || uses_bad_graph) ||
		                (w->is_nonfinite && !replayed->bad)))
			continue;
		HG__TRY(affect_results(w, replayed, origin ? finding->value : -1));
	}
	return HG_OK;
}

static hg_status add_parameters(struct walk *w)
{
	const struct hg__replay *replay = w->replay;
	for (int64_t v = 0; v < replay->tape->recording.values; v++) {
		const struct hg__value *value = &replay->tape->recording.value[v];
		const struct hg__value_info *gradient = &replay->grad[v];
		if (value->kind == HG__PARAM && value->root == (int32_t)v && gradient->affected &&
		    (!w->is_nonfinite || gradient->bad))
			HG__TRY(add_leaf(w, value->param->name, 1, gradient->bad, gradient->count));
	}
	return HG_OK;
}

hg_status hg__trace_chain(struct hg__replay *replay, struct hg__finding *finding)
{
	hg_finding *f = &finding->reported;
	struct walk w = {.replay = replay,
	                 .is_nonfinite =
	                     f->cause != HG_CAUSE_UNDERFLOW && f->cause != HG_CAUSE_SWAMPING};
	void *memory = NULL;
	w.room = (int)(replay->replayed_count + replay->tape->recording.values + 1);
	HG__TRY(hg__report_alloc(replay->ctx, replay->memory, (size_t)w.room, sizeof *w.link, &memory));
	w.link = memory;
	for (int64_t v = 0; v < replay->tape->recording.values; v++)
		replay->value[v].affected = replay->grad[v].affected = 0;
	if (f->node < 0)
		HG__TRY(add_leaf(&w, f->tensor, 0, f->bad, f->count));
	if (finding->position == HG__BEFORE_STEP)
		affect_leaf(replay, finding->value);
	if (finding->position != HG__AFTER_STEP) {
		HG__TRY(walk_tasks(&w, finding));
		HG__TRY(add_parameters(&w));
	}
	f->chain = w.link;
	f->links = w.links;
	return HG_OK;
}
