/* A group of models: their steps on branches of the context (core/branch.h).
 *
 * The first step of each model runs alone, on the context itself: it loads kernels, chooses
 * algorithms and makes what graphs keep, which work on a branch must not do. */
#include "halfgraph/group.h"

#include "autograd/tape.h"
#include "core/ahead.h"
#include "core/branch.h"
#include "core/versioned.h"
#include "nn/optim/optim.h"
#include "nn/step.h"

/* On an H200 an epoch of each of 64 GCNs on the graph of Cora's shape takes 0.028, 0.021, 0.018 and
 * 0.020 ms on 4, 8, 16 and 64 branches, and of each of 32 of them 0.015 on 32. */
#define GPU_BRANCHES 32
/* The operations of one launch. The driver prepares them once, some 2,000 in a few milliseconds
 * (step.c). */
#define MOST_OPERATIONS 8192

struct branch {
	hg_group *group;
	hg_context *ctx;
	struct hg__ahead thread; /* runs the branch where a device runs each call before it returns */
	hg_status status;        /* of the last run */
	double microseconds;     /* of one step of all its models */
};

struct hg_group {
	hg_context *ctx;
	hg_group_config config;
	int64_t count;
	hg_step **step;      /* [count], borrowed */
	int *branch_of;      /* [count]: which branch a model is on */
	const void **tables; /* [count]: of the optimisers, when work was captured; they may move */
	struct branch *branch;
	int branches;                        /* 0: no step has run yet */
	int64_t steps;                       /* of each model in the run that is being queued */
	struct hg__captured_steps one, many; /* a single step of all models; a full launch */
	int refused;                         /* capturing failed and is not tried again */
	int64_t most;                        /* the most steps of a launch that can be captured */
	int launched;                        /* the last steps were launched as captured work */
};

/* ---- branches ---- */

static void branches_close(hg_group *g)
{
	for (int b = 0; b < g->branches; b++) {
		hg__ahead_end(&g->branch[b].thread);
		hg__branch_close(g->branch[b].ctx);
	}
	hg__host_free(g->ctx, g->branch, (size_t)g->branches * sizeof *g->branch);
	g->branch = NULL;
	g->branches = 0;
}

static int runs_at_once(const hg_group *g)
{
	return g->ctx->backend->kind == HG_DEVICE_CPU && !g->ctx->backend->capture_begin;
}

/* Models that fill a GPU run one after the other, on the first branch. */
static int is_on_first(const hg_group *g, int64_t i)
{
	return !g->config.branches && !runs_at_once(g) && hg__step_fills_device(g->step[i]);
}

static int64_t most_branches(const hg_group *g)
{
	const int wanted = g->config.branches ? g->config.branches
	                   : runs_at_once(g)  ? g->ctx->threads
	                                      : GPU_BRANCHES;
	int64_t first = 0;
	for (int64_t i = 0; i < g->count; i++)
		first += is_on_first(g, i);
	const int64_t useful = g->count - first + (first > 0);
	return wanted < useful ? wanted : useful;
}

/* The longest of the models that have no branch yet. */
static int64_t longest_left(const hg_group *g)
{
	int64_t longest = -1;
	for (int64_t i = 0; i < g->count; i++)
		if (g->branch_of[i] < 0 && (longest < 0 || hg__step_microseconds(g->step[i]) >
		                                               hg__step_microseconds(g->step[longest])))
			longest = i;
	return longest;
}

/* Each model, the longest first, goes to the branch that has least to do. */
static void models_share(hg_group *g)
{
	for (int64_t i = 0; i < g->count; i++)
		g->branch_of[i] = -1;
	for (int64_t placed = 0; placed < g->count; placed++) {
		const int64_t i = longest_left(g);
		int least = 0;
		for (int b = 1; b < g->branches && !is_on_first(g, i); b++)
			if (g->branch[b].microseconds < g->branch[least].microseconds)
				least = b;
		g->branch_of[i] = least;
		g->branch[least].microseconds += hg__step_microseconds(g->step[i]);
	}
}

/* The threads of a CPU are shared among its branches. */
static hg_status branches_open(hg_group *g)
{
	void *memory = NULL;
	const int wanted = (int)most_branches(g),
	          threads = g->ctx->threads > wanted ? g->ctx->threads / wanted : 1;
	HG__TRY(hg__host_alloc(g->ctx, (size_t)wanted, sizeof *g->branch, "group: branches", &memory));
	g->branch = memory;
	g->branches = wanted;
	for (int b = 0; b < wanted; b++) {
		g->branch[b].group = g;
		const hg_status status = hg__branch_open(g->ctx, threads, &g->branch[b].ctx);
		if (status < 0) {
			branches_close(g);
			return status;
		}
		if (b && runs_at_once(g))
			hg__ahead_begin(&g->branch[b].thread);
	}
	models_share(g);
	return HG_OK;
}

/* ---- queueing ---- */

static hg_status model_queue(hg_step *s, hg_context *branch, int64_t steps)
{
	hg_context *own = s->ctx;
	hg_status status = HG_OK;
	hg__step_move(s, branch);
	for (int64_t k = 0; k < steps && status >= 0; k++)
		status = hg__step_queue_calls(s);
	hg__step_move(s, own);
	return status;
}

static void branch_queue(void *user)
{
	struct branch *b = user;
	const hg_group *g = b->group;
	b->status = HG_OK;
	for (int64_t i = 0; i < g->count && b->status >= 0; i++)
		if (&g->branch[g->branch_of[i]] == b)
			b->status = model_queue(g->step[i], b->ctx, g->steps);
}

static void branches_at_once(hg_group *g)
{
	for (int b = 1; b < g->branches; b++)
		hg__ahead_ask(&g->branch[b].thread, branch_queue, &g->branch[b]);
	branch_queue(&g->branch[0]);
	for (int b = 1; b < g->branches; b++)
		hg__ahead_wait(&g->branch[b].thread);
}

static hg_status branches_on_streams(const hg_group *g)
{
	hg_status status = HG_OK;
	for (int b = 0; b < g->branches; b++)
		HG__TRY(hg__branch_fork(g->branch[b].ctx));
	for (int b = 0; b < g->branches; b++)
		branch_queue(&g->branch[b]);
	for (int b = 0; b < g->branches; b++) { /* also after an error: a capture needs all of them */
		const hg_status joined = hg__branch_join(g->branch[b].ctx);
		status = status < 0 ? status : joined;
	}
	return status;
}

/* Queues g->steps steps of all models. */
static hg_status all_queue(void *user)
{
	hg_group *g = user;
	if (runs_at_once(g))
		branches_at_once(g);
	else
		HG__TRY(branches_on_streams(g));
	for (int b = 0; b < g->branches; b++)
		if (g->branch[b].status < 0)
			return hg__fail(g->ctx, g->branch[b].status, "%s", g->branch[b].ctx->message);
	return HG_OK;
}

/* ---- capturing ---- */

static void drop(hg_group *g, struct hg__captured_steps *c)
{
	hg__capture_drop(g->ctx, &c->capture);
	c->steps = 0;
}

static void drop_all(hg_group *g)
{
	drop(g, &g->one);
	drop(g, &g->many);
}

/* Drops captured work whose addresses are no longer valid: those of scratch memory, or of the group
 * tables of optimisers. That waits for launched work, so it comes before memory is freed. */
static hg_status drop_stale(hg_group *g)
{
	int moved = 0;
	for (int64_t i = 0; i < g->count; i++) {
		moved |= g->tables[i] != g->step[i]->optim->group_device;
		g->tables[i] = g->step[i]->optim->group_device;
	}
	for (int b = 0; b < g->branches; b++)
		moved |= g->branch[b].ctx->workspace_bytes < g->ctx->workspace_bytes;
	if (!moved)
		return HG_OK;
	drop_all(g);
	for (int b = 0; b < g->branches; b++)
		HG__TRY(hg__branch_grow(g->branch[b].ctx));
	return HG_OK;
}

static void try_capture(hg_group *g, int64_t steps, struct hg__captured_steps *c)
{
	drop(g, c);
	g->steps = steps;
	if (hg__capture(g->ctx, all_queue, g, &c->capture) >= 0) {
		c->steps = steps;
		hg__log(g->ctx, HG_LOG_INFO, "group: %lld captured, %lld operations", (long long)steps,
		        (long long)c->capture.operations);
		return;
	}
	hg__log(g->ctx, HG_LOG_WARN, "group: %lld could not be captured and will be queued %s: %s",
	        (long long)steps, steps == 1 ? "call by call" : "one by one", g->ctx->message);
	drop(g, c);
	g->refused |= steps == 1;
	g->most = 1;
}

/* The steps of a full launch: about a millisecond of the branch that has most to do. */
static int64_t full_launch(const hg_group *g)
{
	double longest = 0.0;
	for (int b = 0; b < g->branches; b++)
		longest = g->branch[b].microseconds > longest ? g->branch[b].microseconds : longest;
	const int64_t steps = hg__steps_without_wait(longest),
	              few = MOST_OPERATIONS / (g->one.capture.operations + 1) + 1;
	const int64_t most = g->most < few ? g->most : few;
	return steps < most ? steps : most;
}

/* The largest captured piece that fits into `count` steps; NULL: queue call by call. */
static const struct hg__captured_steps *captured(hg_group *g, int64_t count)
{
	if (g->refused || g->config.eager || !g->ctx->backend->capture_begin)
		return NULL;
	if (!hg__captured(g->ctx, &g->one.capture)) {
		drop(g, &g->many);
		try_capture(g, 1, &g->one);
	}
	const int64_t full = full_launch(g);
	if (g->one.steps && full > 1 && count >= full && g->many.steps != full)
		try_capture(g, full, &g->many);
	return !g->one.steps ? NULL : g->many.steps && g->many.steps <= count ? &g->many : &g->one;
}

/* ---- running ---- */

static hg_status models_begin(const hg_group *g)
{
	for (int64_t i = 0; i < g->count; i++) {
		HG__TRY(hg__step_begin_group(g->step[i], 0));
		HG__TRY(hg__overflow_clear(g->step[i]->tape->params));
	}
	return HG_OK;
}

/* A step of each, call by call. */
static hg_status models_first(const hg_group *g)
{
	for (int64_t i = 0; i < g->count; i++) {
		HG__TRY(hg__step_queue_calls(g->step[i]));
		hg__step_note(g->step[i], 0);
	}
	return HG_OK;
}

static hg_status launch(hg_group *g, const struct hg__captured_steps *c, int64_t count)
{
	hg_status status;
	if (c) {
		status = g->ctx->backend->work_launch(g->ctx, c->capture.work);
	} else {
		g->steps = count;
		status = all_queue(g);
	}
	g->launched = c != NULL;
	for (int64_t i = 0; i < g->count; i++)
		hg__step_note(g->step[i], c != NULL);
	return status;
}

hg_status hg_group_run(hg_group *g, int64_t count)
{
	if (!g)
		return HG_ERR_ARG;
	if (count < 0)
		return hg__fail(g->ctx, HG_ERR_ARG, "group_run: count is %lld, expected at least 0",
		                (long long)count);
	if (!count)
		return HG_OK;
	HG__TRY(models_begin(g));
	if (!g->branches) {
		HG__TRY(models_first(g));
		HG__TRY(branches_open(g));
		count--;
	}
	HG__TRY(drop_stale(g));
	while (count > 0) {
		const struct hg__captured_steps *c = captured(g, count);
		const int64_t steps = c ? c->steps : count;
		HG__TRY(launch(g, c, steps));
		count -= steps;
	}
	return HG_OK;
}

hg_status hg_group_get_launch(const hg_group *g, hg_group_launch *out)
{
	if (!g)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(g->ctx, HG_ERR_ARG, "group_get_launch: launch is NULL");
	const hg_group_launch ours = {sizeof ours, g->launched, g->branches,
	                              g->one.steps ? (int)full_launch(g) : 0,
	                              g->one.capture.operations};
	return hg__struct_write(out, &ours, sizeof ours)
	           ? HG_OK
	           : hg__fail(
	                 g->ctx, HG_ERR_ARG,
	                 "group_get_launch: launch->size is not set: start from HG_GROUP_LAUNCH_INIT");
}

/* ---- creating ---- */

/* What two steps must not share: all of it is written in a step. */
static const char *shared_by(const hg_step *a, const hg_step *b)
{
	const struct hg__program *p = &a->tape->program, *q = &b->tape->program;
	return a == b                                            ? "are the same"
	       : a->tape == b->tape                              ? "have the same tape"
	       : a->tape->params == b->tape->params              ? "have the same params"
	       : p->arena.data && p->arena.data == q->arena.data ? "have tapes in the same arena"
	                                                         : NULL;
}

static hg_status check_step(hg_context *ctx, hg_step *const *steps, int64_t i)
{
	const hg_step *s = steps[i];
	if (!s)
		return hg__fail(ctx, HG_ERR_ARG, "group: step %lld is NULL", (long long)i);
	if (s->ctx != ctx)
		return hg__fail(ctx, HG_ERR_ARG, "group: step %lld is of another context", (long long)i);
	for (int64_t k = 0; k < i; k++) {
		const char *shared = shared_by(steps[k], s);
		if (shared)
			return hg__fail(ctx, HG_ERR_ARG, "group: steps %lld and %lld %s", (long long)k,
			                (long long)i, shared);
	}
	return HG_OK;
}

static hg_status check(hg_context *ctx, hg_step *const *steps, int64_t count,
                       const hg_group_config *c)
{
	if (count < 1 || count > HG_GROUP_MOST)
		return hg__fail(ctx, HG_ERR_ARG, "group: count is %lld, expected 1 to %d", (long long)count,
		                HG_GROUP_MOST);
	if (c->branches < 0)
		return hg__fail(ctx, HG_ERR_ARG, "group: branches is %d, expected at least 0", c->branches);
	for (int64_t i = 0; i < count; i++)
		HG__TRY(check_step(ctx, steps, i));
	return HG_OK;
}

static hg_status arrays_make(hg_group *g, hg_step *const *steps)
{
	const size_t count = (size_t)g->count;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(g->ctx, count, sizeof *g->step, "group: steps", &memory));
	g->step = memory;
	memcpy(g->step, steps, count * sizeof *g->step);
	HG__TRY(hg__host_alloc(g->ctx, count, sizeof *g->branch_of, "group: steps", &memory));
	g->branch_of = memory;
	HG__TRY(hg__host_alloc(g->ctx, count, sizeof *g->tables, "group: steps", &memory));
	g->tables = memory;
	return HG_OK;
}

hg_status hg_group_create(hg_context *ctx, hg_step *const *steps, int64_t count,
                          const hg_group_config *config, hg_group **out)
{
	hg_group_config ours = HG_GROUP_CONFIG_INIT;
	void *memory = NULL;
	if (out)
		*out = NULL;
	if (!ctx)
		return HG_ERR_ARG;
	if (!steps || !out)
		return hg__fail(ctx, HG_ERR_ARG, "group: %s is NULL", steps ? "group" : "steps");
	if (config && !hg__struct_read(&ours, sizeof ours, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "group: config.size is not set (start from HG_GROUP_CONFIG_INIT), or a "
		                "field unknown to this version is used");
	HG__TRY(check(ctx, steps, count, &ours));
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_group), "group", &memory));
	hg_group *g = memory;
	g->ctx = ctx;
	g->config = ours;
	g->count = count;
	g->most = HG_STEP_REMEMBERED;
	const hg_status status = arrays_make(g, steps);
	if (status < 0) {
		hg_group_free(g);
		return status;
	}
	*out = g;
	return HG_OK;
}

void hg_group_free(hg_group *g)
{
	if (!g)
		return;
	const size_t count = (size_t)g->count;
	drop_all(g);
	branches_close(g);
	hg__host_free(g->ctx, g->step, count * sizeof *g->step);
	hg__host_free(g->ctx, (void *)g->tables, count * sizeof *g->tables);
	hg__host_free(g->ctx, g->branch_of, count * sizeof *g->branch_of);
	hg__host_free(g->ctx, g, sizeof *g);
}
