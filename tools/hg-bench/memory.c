#include "memory.h"

#include <stdio.h>

#include "autograd/tape.h"
#include "core/graph.h"
#include "nn/optim/optim.h"

static void add(struct memory_plan *plan, const char *name, size_t bytes)
{
	plan->name[plan->count] = name;
	plan->bytes[plan->count++] = bytes;
	plan->total += bytes;
}

static size_t plan_bytes(const struct hg__plan *p)
{
	const size_t items = p ? (size_t)p->items + 1 : 0, splits = p ? (size_t)p->splits : 0;
	return items * (sizeof *p->item_edge + sizeof *p->item_row + sizeof *p->item_slot) +
	       splits * (sizeof *p->split_row + sizeof *p->split_first + sizeof *p->split_last);
}

/* Everything that the graph has cached by now: both orientations, weights in both types, degree
 * factors, work plans. */
static size_t graph_bytes(const hg_graph *g)
{
	if (!g)
		return 0;
	const struct hg__buffer all[] = {g->rowptr,      g->col,      g->weight,   g->weight_f16,
	                                 g->rowptr_t,    g->col_t,    g->edge_t,   g->inverse_row,
	                                 g->inverse_col, g->root_row, g->root_col, g->batch_ptr,
	                                 g->batch_id};
	size_t bytes = plan_bytes(g->plan) + plan_bytes(g->plan_t);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		bytes += all[i].bytes;
	return bytes;
}

static size_t truth_bytes(const struct hg__truth *t)
{
	size_t bytes = (t->label ? t->label->bytes : 0) + (t->target ? t->target->bytes : 0);
	for (int i = 0; i < HG__SPLITS; i++)
		bytes += t->mask[i] ? t->mask[i]->bytes : 0;
	return bytes;
}

struct memory_plan memory_plan_of(const struct bench *b, const struct hg_train *train,
                                  const hg_tensor *x, const hg_graph *x_sparse)
{
	struct memory_plan plan = {.count = 0};
	hg_plan_info info = HG_PLAN_INFO_INIT;
	add(&plan, "graph", graph_bytes(b->graph));
	add(&plan, "features", x ? x->bytes : graph_bytes(x_sparse));
	add(&plan, "labels and masks", truth_bytes(&train->truth));
	add(&plan, "parameters", hg_tape_plan(train->tape, &info) < 0 ? 0 : info.param_bytes);
	add(&plan, "moments, best weights",
	    train->optim->moments_bytes + train->best.weights.block.bytes);
	add(&plan, "training arena", train->tape->plan.arena_bytes);
	/* 0 if it shares the training arena */
	add(&plan, "evaluation arena", hg__tape_own_bytes(train->evaluator.tape));
	add(&plan, "workspace", b->ctx->workspace_bytes);
	/* cuBLASLt's 32 MiB, the optimiser's lists */
	add(&plan, "libraries, tables",
	    b->ctx->current_bytes > plan.total ? b->ctx->current_bytes - plan.total : 0);
	return plan;
}

static void part_report(struct bench *b, const char *model, const char *name, size_t bytes,
                        const char *more)
{
	char variant[64] = "", note[96];
	struct result r = result_new("memory", variant, b->policy->name);
	snprintf(variant, sizeof variant, "%s: %s", model, name);
	snprintf(note, sizeof note, "%.1f MiB%s", (double)bytes / 1048576, more);
	r.bytes = (double)bytes;
	r.note = note;
	report_result(b, &r);
}

void memory_report(struct bench *b, const char *model, const struct memory_plan *plan, size_t peak)
{
	char more[64];
	for (int i = 0; i < plan->count; i++)
		part_report(b, model, plan->name[i], plan->bytes[i], "");
	snprintf(more, sizeof more, ", %.3f of the plan's %.1f MiB", (double)peak / (double)plan->total,
	         (double)plan->total / 1048576);
	part_report(b, model, "peak", peak, more);
}
