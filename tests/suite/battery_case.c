#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mat.h"
#include "suite/battery.h"

enum { RNG_STEP = 3 };

/* A random value of the sample's kind, rounded to what the tensor's type can hold. */
static double draw(enum hg__fill fill, double scale, hg_dtype dtype)
{
	double x = 0;
	if (fill == HG__FILL_NORMAL)
		x = scale * test_normal();
	else if (fill == HG__FILL_UNIFORM01)
		x = test_uniform();
	else if (fill == HG__FILL_LABELS)
		x = (double)(test_below((int64_t)scale + 1) - (test_below(8) == 0));
	else if (fill == HG__FILL_MASK)
		x = (double)(test_below(4) != 0);
	else if (fill == HG__FILL_POSITIVE)
		x = 0.1 + scale * test_uniform();
	else
		x = scale;
	if (fill == HG__FILL_LABELS)
		x = fmin(x, scale - 1);
	return dtype == HG_F16   ? (double)hg_half_to_float(hg_half_from_double(x))
	       : dtype == HG_F32 ? (double)(float)x
	                         : x;
}

static struct oracle_matrix matrix(int64_t rows, int64_t cols)
{
	return (struct oracle_matrix){rows, cols, calloc((size_t)(rows * cols) + 1, sizeof(num))};
}

/* Uploads an array to a tensor, in the tensor's type. Floats go through f32, which holds both types
 * exactly. */
static void upload(hg_tensor *t, const struct oracle_matrix *m)
{
	const int64_t count = m->rows * m->cols;
	const hg_dtype dtype = hg_tensor_dtype(t);
	void *host = calloc((size_t)count + 1, 8);
	for (int64_t i = 0; i < count; i++) {
		if (dtype == HG_I32)
			((int32_t *)host)[i] = (int32_t)m->at[i].v;
		else if (dtype == HG_U8)
			((uint8_t *)host)[i] = (uint8_t)m->at[i].v;
		else
			((float *)host)[i] = (float)m->at[i].v;
	}
	CHECK_OK(hg_tensor_upload(t, host, dtype == HG_F16 ? HG_F32 : dtype));
	free(host);
}

static hg_tensor *tensor(struct battery_case *c, hg_dtype dtype, int64_t rows, int64_t cols)
{
	hg_tensor *t = NULL;
	CHECK_OK(hg_tensor_create(c->ctx, dtype, rows, cols, &t));
	return t;
}

static hg_tensor *filled(struct battery_case *c, struct oracle_matrix *m,
                         const struct hg__shape *shape, enum hg__fill fill, double scale)
{
	*m = matrix(shape->rows, shape->cols);
	for (int64_t i = 0; i < shape->rows * shape->cols; i++)
		m->at[i] = num_exact(draw(fill, scale, shape->dtype));
	hg_tensor *t = tensor(c, shape->dtype, shape->rows, shape->cols);
	upload(t, m);
	return t;
}

static void add_buffers(struct battery_case *c)
{
	static const char *const name[] = {"running_mean", "running_var"};
	const int64_t cols = c->sample.in[0].shape.cols;
	CHECK(c->sample.buffers == 0 || cols <= 512);
	for (int b = 0; b < c->sample.buffers; b++) {
		float values[512];
		for (int64_t k = 0; k < cols; k++)
			c->running[b][k] =
			    (double)(values[k] = (float)(b ? 0.5 + test_uniform() : test_normal()));
		CHECK_OK(hg_params_add(c->params, name[b], 1, cols, HG_INIT_ZEROS,
		                       HG_PARAM_F32 | HG_PARAM_BUFFER, &c->node.buffer[b]));
		CHECK_OK(hg_param_set(c->node.buffer[b], values));
		c->call.buffer[b] = hg_param_master(c->node.buffer[b])->mat;
	}
	c->o.running_mean = c->running[0];
	c->o.running_var = c->running[1];
}

static void add_operands(struct battery_case *c)
{
	for (int i = 0; i < HG__MAX_IN; i++) {
		const struct hg__shape *shape = &c->sample.in[i].shape;
		const int present = i < c->sample.n_in && shape->present;
		c->node.in[i] = present ? i : -1;
		if (!present)
			continue;
		c->in[i] = filled(c, &c->o.in[i], shape, c->sample.in[i].fill, c->sample.in[i].scale);
		c->call.in[i] = c->in[i]->mat;
		c->infer.in[i] = *shape;
	}
}

/* The gradient of a parameter is f32, whatever the type of the operand is. Gradients of the weights
 * and rows of these ops are tested in both types. */
static hg_dtype gradient_type(const struct battery_case *c, int i)
{
	const struct hg__shape *x = &c->sample.in[i].shape;
	const int has_parameters = c->op == &hg__op_linear || c->op == &hg__op_bias_add ||
	                           c->op == &hg__op_epilogue || c->op == &hg__op_head_dot ||
	                           c->op == &hg__op_div;
	const int has_bias = (c->op == &hg__op_spmm_epilogue && i >= 2) ||
	                     (c->op == &hg__op_attention_epilogue && i == 5);
	return (has_parameters || has_bias) && i > 0 && x->cols % 2 ? HG_F32 : x->dtype;
}

static void add_results(struct battery_case *c)
{
	const struct hg__shape *y = &c->infer.out;
	c->out = tensor(c, y->dtype, y->rows, y->cols);
	c->call.out = c->out->mat;
	c->o.out = matrix(y->rows, y->cols);
	c->o.saved_out = matrix(y->rows, y->cols);
	c->dout = filled(c, &c->o.dout, y, HG__FILL_NORMAL, 1.0);
	c->call.dout = c->dout->mat;
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (c->infer.aux[i].present) {
			c->aux[i] =
			    tensor(c, c->infer.aux[i].dtype, c->infer.aux[i].rows, c->infer.aux[i].cols);
			c->call.aux[i] = c->aux[i]->mat;
		}
	for (int i = 0; i < c->sample.n_in; i++)
		if (c->in[i] && c->sample.in[i].variable && (c->infer.grads >> i & 1)) {
			const struct hg__shape *x = &c->sample.in[i].shape;
			c->din[i] = tensor(c, gradient_type(c, i), x->rows, x->cols);
			c->call.din[i] = c->din[i]->mat;
			c->o.din[i] = matrix(x->rows, x->cols);
		}
}

static void add_graph(struct battery_case *c)
{
	if (!c->node.graph)
		return;
	CHECK_OK(hg__graph_csr(c->node.graph, &c->call.csr));
	CHECK_OK(hg__graph_csr_t(c->node.graph, 1, &c->call.csr_t));
	CHECK_OK(hg__graph_batch(c->node.graph, &c->call.batch_ptr, &c->call.batch_id));
	for (int transposed = 0; c->g->dense && transposed < 2; transposed++)
		CHECK_OK(hg__graph_dense_from(c->node.graph, transposed, 0, 0));
	c->o.graph = c->g->o;
}

void battery_case_open(struct battery_case *c, hg_context *ctx, const struct hg__kernels *kernels,
                       const struct hg__op *op, const struct battery_graph *g,
                       const struct hg__sample *sample, hg_dtype state, hg_accumulate accumulate,
                       hg_mode mode)
{
	memset(c, 0, sizeof *c);
	c->ctx = ctx;
	c->kernels = kernels;
	c->op = op;
	c->g = g;
	c->sample = *sample;
	c->mode = mode;
	const hg_policy policy = state == HG_F16 ? hg_policy_fp16() : hg_policy_fp32();
	CHECK_OK(hg_params_create(ctx, &policy, &c->params));
	CHECK_OK(hg_tape_create(c->params, mode, &c->tape));
	c->node.op = op;
	c->node.n_in = sample->n_in;
	c->node.graph = sample->use_graph ? g->graph : NULL;
	c->node.scope = "";
	c->node.accumulate = accumulate;
	c->node.rng_key = 0x0123456789ABCDEFu;
	memcpy(c->node.attr, sample->attr, sizeof c->node.attr);
	c->infer.tape = c->tape;
	c->infer.node = &c->node;
	c->infer.mode = mode;
	c->infer.state = state;
	c->call.ctx = ctx;
	c->call.k = kernels;
	c->call.node = &c->node;
	c->call.mode = mode;
	add_buffers(c);
	add_operands(c);
	CHECK_MSG(op->infer(&c->infer) == HG_OK, "%s (%s): infer refused a good sample", op->name,
	          sample->what);
	add_results(c);
	add_graph(c);
	c->step = tensor(c, HG_I64, 1, 1);
	const int64_t step = RNG_STEP;
	CHECK_OK(hg_tensor_upload(c->step, &step, HG_I64));
	c->call.step = hg_tensor_data(c->step);
	c->o.step = RNG_STEP;
	c->o.rng_key = c->node.rng_key;
	c->o.is_half = state == HG_F16;
	c->o.eval = mode == HG_EVAL;
	c->o.u = accumulate == HG_ACC_F32 ? ORACLE_U32 : ORACLE_U16;
	battery_options(&c->node, &c->o);
	if (op->prepare)
		CHECK_OK(op->prepare(&c->call));
}

void battery_case_close(struct battery_case *c)
{
	for (int i = 0; i < HG__MAX_IN; i++) {
		hg_tensor_free(c->in[i]);
		hg_tensor_free(c->din[i]);
		free(c->o.in[i].at);
		free(c->o.din[i].at);
	}
	for (int i = 0; i < HG__MAX_AUX; i++)
		hg_tensor_free(c->aux[i]);
	hg_tensor_free(c->out);
	hg_tensor_free(c->dout);
	hg_tensor_free(c->step);
	free(c->o.out.at);
	free(c->o.saved_out.at);
	free(c->o.dout.at);
	hg_tape_free(c->tape);
	hg_params_free(c->params);
}
