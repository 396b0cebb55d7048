#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "bench.h"
#include "halfgraph/ops_norm.h"

/* hg-bench ops: every op of the table on its first valid sample, at the size of the graph, forward
 * and backward. This file knows nothing about any single op: samples, costs and functions come from
 * the op records. Results are not checked here, because the battery of the tests checks every op on
 * the same samples. */

#define WIDTH 64

struct trial {
	const struct hg__op *op;
	struct hg__sample sample;
	hg_params *params;
	hg_tape *tape;
	hg_tensor *tensor[HG__MAX_IN + 1];
	hg_param *buffer[2];
};

static void trial_free(struct trial *t)
{
	hg_tape_free(t->tape);
	hg_params_free(t->params);
	for (int i = 0; i <= HG__MAX_IN; i++)
		hg_tensor_free(t->tensor[i]);
}

static hg_status labels_fill(struct bench *b, hg_tensor *tensor, double classes)
{
	const int64_t rows = hg_tensor_rows(tensor);
	int32_t *label = calloc((size_t)rows + 1, sizeof *label);
	if (!label)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld labels", (long long)rows);
	for (int64_t i = 0; i < rows; i++)
		label[i] = (int32_t)edge_below((uint64_t)classes,
		                               edge_uniform((uint64_t)b->options.seed, (uint64_t)i));
	const hg_status status = hg_tensor_upload(tensor, label, HG_I32);
	free(label);
	return status;
}

/* Numbers of about the size that the sample requests; the time does not depend on more. */
static hg_status operand_fill(struct bench *b, const struct hg__sample *s, int i, hg_tensor *tensor)
{
	const int positive = s->in[i].fill == HG__FILL_UNIFORM01 || s->in[i].fill == HG__FILL_POSITIVE;
	const double size = s->in[i].fill == HG__FILL_NORMAL ? s->in[i].scale : 1.0;
	const struct fill_rule numbers = {positive ? 0.0 : -size, size, 0},
	                       constant = {s->in[i].scale, s->in[i].scale, 0};
	if (s->in[i].fill == HG__FILL_LABELS)
		return labels_fill(b, tensor, s->in[i].scale);
	if (s->in[i].fill == HG__FILL_MASK)
		return b->ctx->backend->fill(b->ctx, tensor->mat.data, 1, tensor->bytes);
	return b->device->fill(b->ctx, tensor->mat, (uint64_t)b->options.seed + 1 + (uint64_t)i,
	                       s->in[i].fill == HG__FILL_CONST ? &constant : &numbers);
}

static hg_status operand_make(struct bench *b, struct trial *t, int i, hg_var *var)
{
	const struct hg__shape shape = t->sample.in[i].shape;
	*var = HG_NONE;
	if (!shape.present)
		return HG_OK;
	HG__TRY(hg_tensor_create(b->ctx, shape.dtype, shape.rows, shape.cols, &t->tensor[i]));
	HG__TRY(operand_fill(b, &t->sample, i, t->tensor[i]));
	*var = t->sample.in[i].variable ? hg_tape_variable(t->tape, t->tensor[i], "x")
	                                : hg_tape_input(t->tape, t->tensor[i], "x", -1);
	return HG_OK;
}

static hg_status buffers_make(struct trial *t)
{
	static const char *const names[] = {"first", "second"};
	for (int i = 0; i < t->sample.buffers && i < 2; i++)
		HG__TRY(hg_params_add(t->params, names[i], 1, t->sample.in[0].shape.cols,
		                      i ? HG_INIT_ONES : HG_INIT_ZEROS, HG_PARAM_F32 | HG_PARAM_BUFFER,
		                      &t->buffer[i]));
	return HG_OK;
}

/* If the op is not a loss, append one so that the op has a backward pass: the mean square of its
 * result. */
static hg_status loss_make(struct bench *b, struct trial *t, hg_var out, hg_var *loss)
{
	*loss = out;
	if (t->op->traits & HG__LOSS)
		return HG_OK;
	const int32_t index = hg__tape_index(t->tape, out);
	if (index < 0)
		return hg_tape_status(t->tape);
	const struct hg__value *value = &t->tape->recording.value[index];
	hg_tensor **target = &t->tensor[HG__MAX_IN];
	HG__TRY(hg_tensor_create(b->ctx, HG_F32, value->rows, value->cols, target));
	*loss = hg_mse(t->tape, out, hg_tape_input(t->tape, *target, "target", 0.0), HG_NONE);
	return HG_OK;
}

static hg_status trial_make(struct bench *b, struct trial *t)
{
	hg_var in[HG__MAX_IN], loss;
	HG__TRY(hg_params_create(b->ctx, b->policy, &t->params));
	HG__TRY(buffers_make(t));
	HG__TRY(hg_tape_create(t->params, HG_TRAIN, &t->tape));
	for (int i = 0; i < t->sample.n_in; i++)
		HG__TRY(operand_make(b, t, i, &in[i]));
	const hg_var out = hg__record(t->tape, t->op, t->sample.use_graph ? b->graph : NULL, in,
	                              t->sample.n_in, t->buffer, t->sample.attr, sizeof t->sample.attr);
	HG__TRY(loss_make(b, t, out, &loss));
	HG__TRY(hg_tape_compile(t->tape, loss));
	HG__TRY(hg_tape_forward(t->tape));
	return hg_tape_backward(t->tape);
}

/* The task of the op itself among the tasks of the tape; NULL: it is not run. */
static const struct hg__task *task_of(const struct trial *t, int backward)
{
	const struct hg__task *task = backward ? t->tape->program.backward : t->tape->program.forward;
	const int64_t count = backward ? t->tape->program.backwards : t->tape->program.forwards;
	for (int64_t i = 0; i < count; i++)
		if (task[i].call.node->op == t->op)
			return &task[i];
	return NULL;
}

static hg_status forward_run(void *what)
{
	const struct hg__call *call = what;
	return call->node->op->forward(call);
}

static hg_status backward_run(void *what)
{
	const struct hg__call *call = what;
	return call->node->op->backward(call);
}

static hg_status direction_run(struct bench *b, const struct trial *t, int backward)
{
	const struct hg__task *task = task_of(t, backward);
	struct result r = result_new(t->op->name, backward ? "back" : "forward", b->policy->name);
	if (!task)
		return HG_OK;
	struct hg__call call = task->call;
	HG__TRY(measure(b, backward ? backward_run : forward_run, &call, &r.ms));
	if (!backward) {
		struct hg__cost cost = {0, 0};
		t->op->cost(&call, &cost);
		r.bytes = cost.bytes;
	}
	r.features = t->sample.in[0].shape.cols;
	r.note = t->sample.what;
	report_result(b, &r);
	return HG_OK;
}

static int good_sample(const struct bench *b, const struct hg__op *op, struct hg__sample *sample)
{
	const int64_t width = b->options.widths ? b->options.features[0] : WIDTH;
	const struct hg__extent extent = {b->csr.rows,
	                                  b->csr.m,
	                                  hg_graph_batch(b->graph),
	                                  width,
	                                  b->options.head_counts ? (int)b->options.heads[0] : 1,
	                                  b->policy->state};
	for (int i = 0; op->sample(i, &extent, sample); i++)
		if (sample->expect == HG_OK)
			return 1;
	return 0;
}

static hg_status op_run(struct bench *b, const struct hg__op *op)
{
	struct trial t = {.op = op};
	if (!good_sample(b, op, &t.sample))
		return HG_OK;
	hg_status status = trial_make(b, &t);
	if (status >= 0)
		status = direction_run(b, &t, 0);
	if (status >= 0)
		status = direction_run(b, &t, 1);
	trial_free(&t);
	return status;
}

hg_status bench_ops(struct bench *b)
{
	size_t count;
	const struct hg__op *const *op = hg__op_list(&count);
	for (int p = 0; p < b->options.policies; p++) {
		b->policy = &b->options.policy[p];
		for (size_t i = 0; i < count; i++)
			HG__TRY(op_run(b, op[i]));
	}
	return HG_OK;
}
