#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "bench.h"
#include "nn/train.h"

/* hg-bench epoch, step: whole training epochs (forward, loss, backward, Adam) as hg_train runs them; then one more epoch with a point in time after every node
 * of the tape, for the time of each op; the peak of device memory beside what the tape's plan said. */

#define WARM_UPS 3

struct inputs {
	hg_tensor *x;
	hg_graph *x_sparse;
	int32_t *label;
	uint8_t *mask;
};

static void inputs_free(struct inputs *in)
{
	hg_tensor_free(in->x);
	hg_graph_free(in->x_sparse);
	free(in->label);
	free(in->mask);
}

static uint64_t stream(const struct bench *b, uint64_t k)
{
	return (uint64_t)b->options.seed + k;
}

/* `stored` features of each node, all of one size: rows sum up to 1. */
static hg_status sparse_make(struct bench *b, int64_t width, hg_graph **graph)
{
	const int64_t n = b->csr.rows, m = n * b->stored;
	int64_t *ptr = calloc((size_t)n + 1, sizeof *ptr);
	int32_t *col = calloc((size_t)m, sizeof *col);
	float *value = calloc((size_t)m, sizeof *value);
	hg_status status = ptr && col && value ? HG_OK : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld features", (long long)m);
	for (int64_t i = 0; status == HG_OK && i <= n; i++)
		ptr[i] = i * b->stored;
	for (int64_t e = 0; status == HG_OK && e < m; e++) {
		col[e] = (int32_t)edge_below((uint64_t)width, edge_uniform(stream(b, 4), (uint64_t)e));
		value[e] = 1.0f / (float)b->stored;
	}
	if (status == HG_OK)
		status = hg_graph_from_csr(b->ctx, n, width, m, ptr, col, value, graph);
	free(ptr);
	free(col);
	free(value);
	return status;
}

static hg_status dense_make(struct bench *b, int64_t width, hg_tensor **x)
{
	static const struct fill_rule rule = {-1.0, 1.0, 0};
	HG__TRY(hg_tensor_create(b->ctx, b->policy->state, b->csr.rows, width, x));
	return b->device->fill(b->ctx, (*x)->mat, stream(b, 2), &rule);
}

static hg_status inputs_make(struct bench *b, int64_t width, int64_t targets, struct inputs *in)
{
	in->label = calloc((size_t)targets, sizeof *in->label);
	in->mask = malloc((size_t)targets);
	if (!in->label || !in->mask)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld labels", (long long)targets);
	memset(in->mask, 1, (size_t)targets);
	for (int64_t i = 0; i < targets; i++)
		in->label[i] = (int32_t)edge_below((uint64_t)b->classes, edge_uniform(stream(b, 3), (uint64_t)i));
	return b->stored && !b->options.dense && !b->options.widths ? sparse_make(b, width, &in->x_sparse) : dense_make(b, width, &in->x);
}

/* ---- the time of each epoch ---- */

struct epochs {
	double *ms;
	int count;
	hg_train_event last;
};

static int epoch_note(void *user, const hg_train_event *event)
{
	struct epochs *e = user;
	if (event->epoch > WARM_UPS)
		e->ms[e->count++] = event->epoch_ms;
	e->last = *event;
	return 0;
}

/* ---- the time of each op ---- */

struct profile {
	struct bench *b;
	struct marks *marks;
	int count, capacity;
	struct {
		int32_t line;
		int backward;
	} * at; /* what ran before mark k + 1 */
};

static hg_status profile_note(void *user, const hg_tape *tape, int32_t line, int backward, const struct hg__call *call)
{
	struct profile *p = user;
	(void)tape;
	(void)call;
	if (p->count + 2 >= p->capacity)
		return hg__fail(p->b->ctx, HG_ERR_INTERNAL, "profile: more than %d nodes ran", p->capacity);
	p->at[p->count].line = line;
	p->at[p->count].backward = backward;
	return p->b->device->mark(p->b->ctx, p->marks, ++p->count);
}

static hg_status profile_run(struct profile *p, hg_train *train)
{
	const struct hg__observer observer = {profile_note, p};
	HG__TRY(hg_context_synchronize(p->b->ctx));
	hg__tape_observe(train->tape, &observer);
	p->count = 0;
	hg_status status = p->b->device->mark(p->b->ctx, p->marks, 0);
	if (status == HG_OK)
		status = hg_tape_forward(train->tape);
	if (status == HG_OK)
		status = hg_tape_backward(train->tape);
	hg__tape_observe(train->tape, NULL);
	HG__TRY(status);
	HG__TRY(hg_optim_step(train->optim));
	return p->b->device->mark(p->b->ctx, p->marks, p->count + 1);
}

/* One part of the epoch as a line of its own. */
static hg_status part_report(struct profile *p, const hg_tape *tape, int k, double epoch_ms, double *sum)
{
	char name[96];
	double ms;
	struct result r = result_new("part", name, p->b->policy->name);
	HG__TRY(p->b->device->elapsed(p->b->ctx, p->marks, k, k + 1, &ms));
	if (k < p->count) {
		const struct hg__node *node = &tape->line[p->at[k].line].node;
		snprintf(name, sizeof name, "%.40s%s%.40s%s", node->scope, *node->scope ? "/" : "", node->op->name, p->at[k].backward ? " back" : "");
	} else {
		snprintf(name, sizeof name, "optimiser");
	}
	char note[32];
	snprintf(note, sizeof note, "%.1f %% of the epoch", 100 * ms / epoch_ms);
	r.ms = (struct timing){ms, ms, ms, 1};
	r.note = note;
	*sum += ms;
	report_result(p->b, &r);
	return HG_OK;
}

static hg_status profile_parts(struct profile *p, hg_train *train, double epoch_ms)
{
	double sum = 0;
	char note[64];
	struct result r = result_new("parts", "sum", p->b->policy->name);
	HG__TRY(profile_run(p, train)); /* once more than is looked at: what is chosen at the first run is then chosen */
	HG__TRY(profile_run(p, train));
	for (int k = 0; k <= p->count; k++)
		HG__TRY(part_report(p, train->tape, k, epoch_ms, &sum));
	snprintf(note, sizeof note, "the epoch takes %.4f ms: %.2f of the sum", epoch_ms, epoch_ms / sum);
	r.ms = (struct timing){sum, sum, sum, 1};
	r.note = note;
	report_result(p->b, &r);
	return HG_OK;
}

static hg_status profile(struct bench *b, hg_train *train, double epoch_ms)
{
	struct profile p = {.b = b, .capacity = 2 * (int)train->tape->lines + 4};
	p.at = calloc((size_t)p.capacity, sizeof *p.at);
	hg_status status = p.at ? b->device->marks_create(b->ctx, p.capacity, &p.marks) : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a profile");
	if (status == HG_OK)
		status = profile_parts(&p, train, epoch_ms);
	b->device->marks_free(p.marks);
	free(p.at);
	return status;
}

/* ---- one model ---- */

static hg_train_config config_of(const struct bench *b, const char *model, int heads, int64_t width, struct epochs *epochs)
{
	hg_train_config c = hg_train_config_default(model);
	const int gat = strcmp(model, "gat") == 0;
	c.model.in_features = width;
	c.model.out_features = b->classes;
	c.model.layers = (int)b->options.layers;
	c.model.heads = heads;
	c.model.hidden = (int)b->options.hidden / (gat ? heads : 1);
	c.model.dropout = c.model.attention_dropout = 0.0f;
	c.model.aggregate = b->options.aggregate ? HG_NORM_RIGHT : HG_NORM_NONE;
	c.model.lambda = (float)b->options.lambda;
	c.policy = *b->policy;
	c.epochs = (int)b->options.repeat + WARM_UPS;
	c.patience = 0;
	c.eval_every = c.epochs;
	c.progress = epoch_note;
	c.user = epochs;
	return c;
}

/* Device bytes of the context before training, so that its plan can be held against its peak. */
struct memory {
	size_t before, peak, plan;
};

static hg_status memory_note(struct bench *b, hg_train *train, struct memory *m)
{
	hg_plan_info plan = HG_PLAN_INFO_INIT;
	HG__TRY(hg_tape_plan(train->tape, &plan));
	m->peak = b->ctx->peak_bytes;
	m->plan = m->before + plan.arena_bytes + plan.param_bytes + train->tape->workspace_bytes;
	return HG_OK;
}

static hg_status model_report(struct bench *b, const char *model, const struct epochs *epochs, const struct memory *m, const struct inputs *in,
                              struct timing *ms)
{
	char note[160];
	struct result r = result_new("epoch", model, b->policy->name);
	const double mib = 1.0 / 1048576;
	*ms = r.ms = timing_of(epochs->ms, epochs->count);
	snprintf(note, sizeof note, "peak %.1f MiB, planned %.1f; loss %.4g%s", (double)m->peak * mib, (double)m->plan * mib, epochs->last.loss,
	         in->x_sparse ? "; sparse features" : "");
	if (epochs->last.step.skipped)
		snprintf(note + strlen(note), sizeof note - strlen(note), "; %lld steps SKIPPED", (long long)epochs->last.step.skipped);
	r.note = note;
	r.features = b->options.hidden;
	const char *const names[] = {"peak_bytes", "plan_bytes", "loss", "steps_skipped", "layers"};
	const double figures[] = {(double)m->peak, (double)m->plan, epochs->last.loss, (double)epochs->last.step.skipped, (double)b->options.layers};
	for (int i = 0; i < 5; i++) {
		r.more_name[i] = names[i];
		r.more[i] = figures[i];
	}
	report_result(b, &r);
	return HG_OK;
}

static hg_status train_run(struct bench *b, const char *model, const hg_train_config *config, const struct inputs *in, struct epochs *epochs, size_t before)
{
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	struct memory memory = {before, 0, 0};
	struct timing ms;
	hg_train *train = NULL;
	data.input.graph = b->graph;
	data.input.x = in->x;
	data.input.x_sparse = in->x_sparse;
	data.input.x_amax = 1.0;
	data.labels = in->label;
	data.train_mask = in->mask;
	hg_status status = hg_train_create(b->ctx, config, &data, &train);
	if (status >= 0)
		status = hg_train_run(train, &report);
	if (status >= 0)
		status = memory_note(b, train, &memory);
	if (status >= 0)
		status = model_report(b, model, epochs, &memory, in, &ms);
	if (status >= 0)
		status = profile(b, train, ms.median);
	hg_train_free(train);
	return status;
}

static hg_status model_run(struct bench *b, const char *model, int heads, int64_t width)
{
	struct inputs in = {.x = NULL};
	struct epochs epochs = {.ms = calloc((size_t)b->options.repeat, sizeof(double))};
	const hg_train_config config = config_of(b, model, heads, width, &epochs);
	b->ctx->peak_bytes = b->ctx->current_bytes; /* the peak of training, not of making the graph */
	hg_status status = epochs.ms ? HG_OK : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld epochs", (long long)b->options.repeat);
	if (status == HG_OK)
		status = inputs_make(b, width, config.model.readout < 0 ? b->csr.rows : hg_graph_batch(b->graph), &in);
	if (status == HG_OK)
		status = train_run(b, model, &config, &in, &epochs, b->ctx->current_bytes);
	inputs_free(&in);
	free(epochs.ms);
	return status == HG_ERR_NOMEM ? (report_absent(b, "epoch", model, hg_context_error(b->ctx)), HG_OK) : status;
}

static hg_status policies_run(struct bench *b, const char *model)
{
	const int heads = b->options.head_counts ? (int)b->options.heads[0] : 1;
	for (int p = 0; p < b->options.policies; p++) {
		b->policy = &b->options.policy[p];
		HG__TRY(model_run(b, model, heads, b->options.widths ? b->options.features[0] : b->features));
	}
	return HG_OK;
}

hg_status bench_epoch(struct bench *b)
{
	const char *wanted = b->options.model;
	if (b->classes < 2 || b->features < 1)
		return hg__fail(b->ctx, HG_ERR_ARG, "%s has %lld features and %d classes: nothing to train", b->graph_name, (long long)b->features, b->classes);
	for (const char *const *name = hg_model_names(); *name; name++)
		if (strcmp(wanted, "all") == 0 || strcmp(wanted, *name) == 0)
			HG__TRY(policies_run(b, *name));
	return HG_OK;
}
