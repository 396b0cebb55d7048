#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/ranges.h"

enum { ARENA = 1 << 20 };

/* ---- memory ---- */

struct hg__mat ranges_place(struct ranges_arena *arena, hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat mat = {arena->host + arena->used, rows, cols, hg__leading(cols), dtype};
	arena->used += hg__aligned((size_t)(rows * mat.ld) * hg_dtype_size(dtype) + 1);
	CHECK_MSG(arena->used <= arena->bytes, "a case asks for more than %zu bytes", arena->bytes);
	return mat;
}

struct hg__mat ranges_on_device(const struct ranges_arena *arena, struct hg__mat mat)
{
	mat.data = arena->device + ((char *)mat.data - arena->host);
	return mat;
}

static void add_buffers(struct ranges_world *w, int policy, int64_t cols)
{
	for (int b = 0; b < 2; b++) {
		char name[32];
		snprintf(name, sizeof name, "%s %d", b ? "variance" : "mean", (int)cols);
		if (!w->buffer[policy][b][cols])
			CHECK_OK(hg_params_add(w->params[policy], name, 1, cols, HG_INIT_ONES,
			                       HG_PARAM_F32 | HG_PARAM_BUFFER, &w->buffer[policy][b][cols]));
	}
}

void ranges_world_open(struct ranges_world *w, hg_context *ctx)
{
	const hg_policy policy[RANGES_POLICIES] = {
	    hg_policy_fp32(), hg_policy_fp16(), hg_policy_fp16_discretized(), hg_policy_fp16_naive()};
	void *device = NULL;
	memset(w, 0, sizeof *w);
	w->ctx = ctx;
	CHECK_OK(hg__device_alloc(ctx, ARENA, "a case", &device));
	w->arena = (struct ranges_arena){ctx, calloc(1, ARENA), device, 0, ARENA};
	CHECK(w->arena.host != NULL);
	for (int i = 0; i < RANGES_POLICIES; i++)
		CHECK_OK(hg_params_create(ctx, &policy[i], &w->params[i]));
}

void ranges_world_close(struct ranges_world *w)
{
	hg_graph_free(w->graph);
	for (int i = 0; i < RANGES_POLICIES; i++)
		hg_params_free(w->params[i]);
	hg__device_free(w->ctx, w->arena.device, ARENA);
	free(w->arena.host);
}

/* ---- drawing ---- */

/* Mostly ordinary magnitudes, of one pattern or several; sometimes all at the limits of the
 * type. */
static void draw_operands(struct ranges_case *c, struct ranges_world *w)
{
	const struct ranges_plan *plan = c->plan;
	for (int i = 0; i < plan->sample.n_in; i++) {
		const struct hg__shape *shape = &plan->sample.in[i].shape;
		int64_t others = 0;
		if (!shape->present)
			continue;
		c->in[i] = ranges_place(&w->arena, shape->dtype, shape->rows, shape->cols);
		const enum ranges_pattern pattern =
		    plan->lined_up ? RANGES_SAME_SIGN : (enum ranges_pattern)test_below(RANGES_PATTERNS);
		const double amplitude =
		    plan->lined_up ? 0.25 + test_uniform() : ranges_amplitude(shape->dtype);
		ranges_fill(&c->in[i], pattern, amplitude, plan->sample.in[i].fill,
		            plan->sample.in[i].scale);
		c->amax[i] = hg__is_float(shape->dtype) ? ranges_amax(&c->in[i], &others) : 0.0;
	}
}

static void record(struct ranges_case *c, struct ranges_world *w)
{
	const struct ranges_plan *plan = c->plan;
	const int64_t cols = plan->sample.in[0].shape.cols;
	hg_param *buffers[2] = {NULL, NULL};
	hg_var in[HG__MAX_IN];
	CHECK_OK(hg_tape_create(w->params[plan->policy], plan->mode, &c->tape));
	for (int i = 0; i < plan->sample.n_in; i++) {
		in[i] = hg_none();
		if (!plan->sample.in[i].shape.present)
			continue;
		c->view[i] = hg__tensor_view(w->ctx, ranges_on_device(&w->arena, c->in[i]));
		in[i] = hg_tape_input(c->tape, &c->view[i], "", c->amax[i]);
		if (plan->knows_least)
			CHECK_OK(hg__tape_least(c->tape, hg__tape_index(c->tape, in[i])));
	}
	if (plan->sample.buffers) {
		add_buffers(w, plan->policy, cols);
		buffers[0] = w->buffer[plan->policy][0][cols];
		buffers[1] = w->buffer[plan->policy][1][cols];
	}
	const hg_var out = hg__record(c->tape, plan->op, plan->sample.use_graph ? w->graph : NULL, in,
	                              plan->sample.n_in, buffers, plan->sample.attr, HG__ATTR_BYTES);
	CHECK_MSG(out.id >= 0, "%s (%s) was not recorded: %s", plan->op->name, plan->sample.what,
	          hg_context_error(w->ctx));
	c->line =
	    &c->tape->recording.entry[c->tape->recording.value[hg__tape_index(c->tape, out)].node];
}

/* ---- running ---- */

/* Results are NaN before the run, so that an element that is not written is found. */
static struct hg__mat result(struct ranges_world *w, hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat mat = ranges_place(&w->arena, dtype, rows, cols);
	memset(mat.data, 0xFF, (size_t)(rows * mat.ld) * hg_dtype_size(dtype));
	return mat;
}

static void place_results(struct ranges_case *c, struct ranges_world *w)
{
	const struct hg__node *node = &c->line->node;
	const struct hg__value *value = c->tape->recording.value, *out = &value[node->out];
	c->out = result(w, out->dtype, out->rows, out->cols);
	c->call.out = ranges_on_device(&w->arena, c->out);
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (node->aux[i] >= 0) {
			const struct hg__value *aux = &value[node->aux[i]];
			c->aux[i] = result(w, aux->dtype, aux->rows, aux->cols);
			c->call.aux[i] = ranges_on_device(&w->arena, c->aux[i]);
		}
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0)
			c->call.in[i] = ranges_on_device(&w->arena, c->in[i]);
	if (c->plan->mode == HG_EVAL)
		return;
	c->dout = ranges_place(&w->arena, out->dtype, out->rows, out->cols);
	ranges_fill(&c->dout,
	            c->plan->lined_up ? RANGES_SAME_SIGN
	                              : (enum ranges_pattern)test_below(RANGES_PATTERNS),
	            c->plan->lined_up ? 0.25 + test_uniform() : ranges_amplitude(out->dtype),
	            HG__FILL_NORMAL, 1.0);
	c->call.dout = ranges_on_device(&w->arena, c->dout);
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && c->line->grads >> i & 1u) {
			struct hg__value operand = value[node->in[i]];
			operand.kind = c->plan->wide >> i & 1u ? HG__PARAM : HG__VARIABLE;
			c->din[i] = result(w, hg__part_dtype(node, i, &operand), operand.rows, operand.cols);
			c->call.din[i] = ranges_on_device(&w->arena, c->din[i]);
		}
}

static void place_the_rest(struct ranges_case *c, struct ranges_world *w)
{
	const struct hg__node *node = &c->line->node;
	struct hg__mat step = ranges_place(&w->arena, HG_I64, 1, 1);
	*(int64_t *)step.data = test_below(1000);
	c->call.step = ranges_on_device(&w->arena, step).data;
	for (int b = 0; b < c->plan->sample.buffers; b++) {
		struct hg__mat buffer = ranges_place(&w->arena, HG_F32, 1, c->in[0].cols);
		ranges_fill(&buffer, RANGES_SPREAD, 4.0, b ? HG__FILL_POSITIVE : HG__FILL_NORMAL, 1.0);
		c->call.buffer[b] = ranges_on_device(&w->arena, buffer);
	}
	if (!node->graph)
		return;
	CHECK_OK(hg__graph_csr(node->graph, &c->call.csr));
	CHECK_OK(hg__graph_csr_t(node->graph, 1, &c->call.csr_t));
	CHECK_OK(hg__graph_batch(node->graph, &c->call.batch_ptr, &c->call.batch_id));
}

static void run(struct ranges_case *c, struct ranges_world *w)
{
	const struct hg__op *op = c->plan->op;
	const struct hg__backend *backend = w->ctx->backend;
	CHECK_OK(backend->copy_in(w->ctx, w->arena.device, w->arena.host, w->arena.used));
	if (op->prepare)
		CHECK_OK(op->prepare(&c->call));
	CHECK_OK(op->forward(&c->call));
	if (c->plan->mode == HG_TRAIN)
		CHECK_OK(op->backward(&c->call));
	CHECK_OK(backend->copy_out(w->ctx, w->arena.host, w->arena.device, w->arena.used));
}

void ranges_case_open(struct ranges_case *c, struct ranges_world *w, const struct ranges_plan *plan)
{
	memset(c, 0, sizeof *c);
	c->plan = plan;
	w->arena.used = 0;
	draw_operands(c, w);
	/* recording reads the constants */
	CHECK_OK(w->ctx->backend->copy_in(w->ctx, w->arena.device, w->arena.host, w->arena.used));
	record(c, w);
	c->call.ctx = w->ctx;
	c->call.k = w->ctx->backend->kernels;
	c->call.node = &c->line->node;
	c->call.mode = plan->mode;
	place_results(c, w);
	place_the_rest(c, w);
	run(c, w);
}

void ranges_case_close(struct ranges_case *c)
{
	hg_tape_free(c->tape);
}
