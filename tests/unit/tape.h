#ifndef HG_TESTS_UNIT_TAPE_H
#define HG_TESTS_UNIT_TAPE_H

#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "graphs.h"
#include "halfgraph/ops.h"
#include "harness.h"

/* What the tests of tapes share: tape.c (recording), tape_run.c (running), tape_plan.c (memory and
 * reports), and others. */

/* What a case needs: a context, parameters, a tape, and the tensors and the graph that it makes. */
struct bench {
	hg_context *ctx;
	hg_params *params;
	hg_tape *tape;
	hg_tensor *tensor[16];
	hg_graph *graph;
	int tensors;
};

static inline hg_policy policy_named(const char *name)
{
	hg_policy policy;
	CHECK_OK(hg_policy_parse(name, &policy));
	return policy;
}

/* Takes the context. */
static inline void bench_open(struct bench *b, hg_context *ctx, hg_policy policy, hg_mode mode)
{
	memset(b, 0, sizeof *b);
	b->ctx = ctx;
	CHECK_OK(hg_params_create(b->ctx, &policy, &b->params));
	CHECK_OK(hg_tape_create(b->params, mode, &b->tape));
}

static inline void bench_close(struct bench *b)
{
	hg_tape_free(b->tape);
	for (int i = 0; i < b->tensors; i++)
		hg_tensor_free(b->tensor[i]);
	hg_graph_free(b->graph);
	hg_params_free(b->params);
	hg_context_free(b->ctx);
}

static inline hg_tensor *tensor_of(struct bench *b, hg_dtype dtype, int64_t rows, int64_t cols,
                                   const void *values, hg_dtype host)
{
	hg_tensor *tensor = NULL;
	CHECK_OK(hg_tensor_create(b->ctx, dtype, rows, cols, &tensor));
	b->tensor[b->tensors++] = tensor;
	if (values && rows * cols > 0)
		CHECK_OK(hg_tensor_upload(tensor, values, host));
	return tensor;
}

/* A tensor of standard normal numbers times `scale`. */
static inline hg_tensor *random_tensor(struct bench *b, hg_dtype dtype, int64_t rows, int64_t cols,
                                       double scale)
{
	float *values = calloc((size_t)(rows * cols) + 1, sizeof *values);
	CHECK(values != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		values[i] = (float)(scale * test_normal());
	hg_tensor *tensor = tensor_of(b, dtype, rows, cols, values, HG_F32);
	free(values);
	return tensor;
}

static inline float *download(const hg_tensor *tensor)
{
	CHECK(tensor != NULL);
	float *host =
	    calloc((size_t)(hg_tensor_rows(tensor) * hg_tensor_cols(tensor)) + 1, sizeof *host);
	CHECK(host != NULL);
	CHECK_OK(hg_tensor_download(tensor, host, HG_F32));
	return host;
}

static inline hg_graph *ring(hg_context *ctx, int32_t n)
{
	return coo_graph(ctx, coo_ring(n));
}

static inline hg_param *param(struct bench *b, const char *name, int64_t rows, int64_t cols)
{
	hg_param *made = hg_params_find(b->params, name);
	if (!made)
		CHECK_OK(hg_params_add(b->params, name, rows, cols, HG_INIT_GLOROT_UNIFORM, 0, &made));
	return made;
}

/* Records two GCN layers with dropout, and a masked cross-entropy if there are labels. Returns the
 * loss, or else the logits, which *logits gets in any case. */
static inline hg_var gcn(struct bench *b, hg_tape *tape, const hg_tensor *x,
                         const hg_tensor *labels, hg_var *logits)
{
	const int64_t d = hg_tensor_cols(x);
	hg_var h = hg_tape_input(tape, x, "x", -1.0);
	hg_tape_scope(tape, "conv1");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w1", d, 16)),
	              hg_tape_param(tape, param(b, "b1", 1, 16)));
	h = hg_relu(tape, hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_BOTH, 1.0f));
	h = hg_dropout(tape, h, 0.5f);
	hg_tape_scope(tape, "conv2");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w2", 16, 7)), HG_NONE);
	h = hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_BOTH, 1.0f);
	hg_tape_scope(tape, NULL);
	if (logits)
		*logits = h;
	return labels ? hg_softmax_xent(tape, h, hg_tape_input(tape, labels, "labels", -1.0), HG_NONE)
	              : h;
}

static inline const hg_tensor *label_tensor(struct bench *b, int64_t n, int32_t classes)
{
	int32_t label[256];
	CHECK(n <= 256);
	for (int64_t i = 0; i < n; i++)
		label[i] = (int32_t)(i % classes);
	return tensor_of(b, HG_I32, n, 1, label, HG_I32);
}

#endif
