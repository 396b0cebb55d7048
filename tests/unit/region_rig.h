#ifndef HG_TESTS_UNIT_REGION_RIG_H
#define HG_TESTS_UNIT_REGION_RIG_H

/* What the tests of regions (autograd/region.h) share: batches of small graphs, and runs of a tape
 * that are compared, once with regions and once op by op. */
#include <math.h>
#include <stdio.h>

#include "halfgraph/ops_graph.h"
#include "unit/tape.h"

enum {
	GRAPHS = 60,
	NODES = GRAPHS * (HG__LARGE_BIN_ROWS + 1),
	CLASSES = 3,
	MOST_GRADIENTS = 1 << 17
};

/* A context whose tapes have regions also where few large bins are not worth while. */
static inline hg_context *region_context(void)
{
	static struct hg__backend backend;
	hg_context *ctx = test_context();
	backend = *ctx->backend;
	backend.large_bins_rows = 0;
	ctx->backend = &backend;
	return ctx;
}

/* ---- batches ---- */

/* Graphs of up to `most` nodes, among them empty ones, single nodes and graphs without edges. */
struct batch {
	int64_t ptr[GRAPHS + 1];
	int64_t nodes;
};
static inline hg_graph *random_batch(hg_context *ctx, int64_t most, int symmetric,
                                     struct batch *batch)
{
	struct coo list;
	for (int k = 0; k < GRAPHS; k++) {
		const int64_t n = k == 0 ? most : k % 9 == 3 ? k % 2 : 1 + test_below(most);
		batch->ptr[k + 1] = batch->ptr[k] + n;
	}
	batch->nodes = batch->ptr[GRAPHS];
	list = coo_empty(batch->nodes, batch->nodes);
	for (int k = 0; k < GRAPHS; k++) {
		const int64_t first = batch->ptr[k], n = batch->ptr[k + 1] - first;
		for (int64_t e = 0; n > 0 && k % 7 != 5 && e < 2 * n; e++)
			coo_add(&list, first + test_below(n), first + test_below(n));
		for (int64_t i = 0; i < n; i++)
			coo_add(&list, first + i, first + i);
	}
	if (symmetric)
		coo_add_transpose(&list);
	hg_graph *graph = coo_graph(ctx, list);
	CHECK_OK(hg_graph_set_batch(graph, GRAPHS, batch->ptr));
	return graph;
}

struct run {
	double loss;
	int64_t count;
	float grad[MOST_GRADIENTS];
};

/* Ends a tape with the cross-entropy of its logits. */
static inline void compile_loss(struct bench *b, hg_tape *tape, hg_var logits,
                                const hg_tensor *labels)
{
	const hg_var loss =
	    hg_softmax_xent(tape, logits, hg_tape_input(tape, labels, "labels", -1.0), HG_NONE);
	CHECK_MSG(hg_tape_compile(tape, loss) == HG_OK, "%s", hg_context_error(b->ctx));
}

static inline void read_run(struct bench *b, hg_tape *tape, struct run *run)
{
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tape_scalar(tape, hg__tape_var(tape, tape->plan.output), &run->loss));
	CHECK_OK(hg_tape_backward(tape));
	run->count = 0;
	for (int64_t p = 0; p < hg_params_count(b->params); p++) {
		const hg_tensor *grad = hg_param_grad(hg_params_at(b->params, p));
		const int64_t n = grad ? hg_tensor_rows(grad) * hg_tensor_cols(grad) : 0;
		if (!grad) /* running statistics */
			continue;
		CHECK(run->count + n <= MOST_GRADIENTS);
		CHECK_OK(hg_tensor_download(grad, run->grad + run->count, HG_F32));
		run->count += n;
	}
}

static inline double distance(const struct run *a, const struct run *b)
{
	double apart = 0.0, length = 0.0;
	CHECK_EQ_I(a->count, b->count);
	for (int64_t i = 0; i < a->count; i++) {
		apart += pow((double)a->grad[i] - (double)b->grad[i], 2.0);
		length += pow((double)b->grad[i], 2.0);
	}
	CHECK(length > 0.0 || apart == 0.0); /* a relu may pass nothing at all */
	return length > 0.0 ? sqrt(apart / length) : 0.0;
}

static inline const hg_tensor *labels_of(struct bench *b, int64_t n)
{
	static int32_t label[NODES];
	CHECK(n <= NODES);
	for (int64_t i = 0; i < n; i++)
		label[i] = (int32_t)test_below(CLASSES);
	return tensor_of(b, HG_I32, n, 1, label, HG_I32);
}

/* A step rounds to halves six times a layer, forward and backward, at most 2^-11 of a number each
 * time, op by op as in a region. The two add sums in different orders, so an element may be rounded
 * to the other side, and a relu near 0 may pass one and not the other: an error of the size of the
 * element itself, but there are few of these. For both together the test allows twice the sum of
 * the roundings. A wrong element of A or of a mask shows as a distance of 0.1 and more. */
static inline double tolerance(int layers)
{
	return 2.0 * 2.0 * 6.0 * layers * 0x1p-11;
}

#endif
