#ifndef HG_TESTS_UNIT_ATTENTION_BATCH_H
#define HG_TESTS_UNIT_ATTENTION_BATCH_H

/* Attention on a batch of small random graphs: the graphs, operands whose padding is NaN, and a run
 * of the kernels forward and backward. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/plan_dense.h"
#include "graphs.h"
#include "kernels/kernels.h"

enum { GRAPHS = 7, NODES = 404, MOST = 150, KEY = 77, STEP = 5 };
/* Where graphs begin, and their share of all entries: none, two of three, or one of thirty. */
enum { NO_ENTRIES, MANY_ENTRIES, FEW_ENTRIES };
struct batch {
	int64_t begin[GRAPHS + 1];
	int entries[GRAPHS], mixed;
};

struct shape {
	hg_score score;
	int heads, d;
	float dropout;
};

/* A matrix on the device, and its numbers. */
struct operand {
	hg_tensor *tensor;
	double *x; /* [rows, cols] */
	int64_t rows, cols;
};

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	struct hg__buffer step;
	const struct batch *batch;
	int64_t nodes;
	int64_t first[NODES], end[NODES]; /* of each node's graph */
	int count[NODES][MOST];           /* entries (i, first[i] + j) */
};

/* ---- the graphs ---- */

static inline int random_entries(int entries)
{
	if (entries == FEW_ENTRIES)
		return test_below(30) == 0;
	if (entries == NO_ENTRIES || !test_below(3))
		return 0;
	return test_below(9) ? 1 : 1 + (int)test_below(15);
}

static inline void fill_graph(struct scene *s, int graph, struct coo *list)
{
	const int64_t first = s->batch->begin[graph], end = s->batch->begin[graph + 1];
	for (int64_t i = first; i < end; i++) {
		s->first[i] = first;
		s->end[i] = end;
		for (int64_t j = first; i % 7 != 6 && j < end; j++) {
			const int times = random_entries(s->batch->entries[graph]);
			s->count[i][j - first] = times;
			for (int k = 0; k < times; k++)
				coo_add(list, i, j);
		}
	}
}

static inline void scene_open(struct scene *s, const struct batch *batch)
{
	memset(s, 0, sizeof *s);
	s->ctx = test_context();
	s->batch = batch;
	s->nodes = batch->begin[GRAPHS];
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int g = 0; g < GRAPHS; g++)
		fill_graph(s, g, &list);
	const int64_t step = STEP;
	s->graph = coo_graph(s->ctx, list);
	CHECK_OK(hg_graph_set_batch(s->graph, GRAPHS, batch->begin));
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	CHECK_OK(hg__graph_csr_t(s->graph, 0, &s->csr_t));
	const int wanted = s->ctx->backend->wants_dense;
	for (int transposed = 0; transposed < 2; transposed++) {
		const struct hg__plan *plan = transposed ? s->csr_t.plan : s->csr.plan;
		CHECK_OK(hg__graph_dense_from(s->graph, transposed, 0, 0));
		CHECK((plan->dense != NULL) == (wanted && !batch->mixed));
		CHECK((plan->rest != NULL) == (wanted && batch->mixed));
		CHECK(!plan->rest || plan->counted->dense->graphs == 3);
	}
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof step, &step, "step", &s->step));
}

static inline void scene_close(struct scene *s)
{
	hg__buffer_free(s->ctx, &s->step);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
}

static inline int entries(const struct scene *s, int64_t i, int64_t j)
{
	return s->count[i][j - s->first[i]];
}

/* ---- operands ---- */

static inline struct operand operand_new(struct scene *s, hg_dtype dtype, int64_t cols)
{
	struct operand o = {NULL, calloc((size_t)(s->nodes * cols), sizeof(double)), s->nodes, cols};
	CHECK(o.x);
	CHECK_OK(hg_tensor_create(s->ctx, dtype, s->nodes, cols, &o.tensor));
	CHECK_OK(s->ctx->backend->fill(s->ctx, o.tensor->mat.data, 0xFF, o.tensor->bytes));
	return o;
}

static inline void operand_free(struct operand *o)
{
	hg_tensor_free(o->tensor);
	free(o->x);
}

/* Sends x, rounded to halves, to the device. */
static inline void operand_send(struct scene *s, struct operand *o)
{
	const int64_t ld = o->tensor->mat.ld;
	hg_half *host = malloc(o->tensor->bytes);
	CHECK(host);
	memset(host, 0xFF, o->tensor->bytes);
	for (int64_t i = 0; i < o->rows; i++)
		for (int64_t c = 0; c < o->cols; c++) {
			host[i * ld + c] = hg_half_from_double(o->x[i * o->cols + c]);
			o->x[i * o->cols + c] = (double)hg_half_to_float(host[i * ld + c]);
		}
	CHECK_OK(s->ctx->backend->copy_in(s->ctx, o->tensor->mat.data, host, o->tensor->bytes));
	free(host);
}

static inline struct operand random_operand(struct scene *s, int64_t cols)
{
	struct operand o = operand_new(s, HG_F16, cols);
	for (int64_t i = 0; i < s->nodes * cols; i++)
		o.x[i] = test_normal();
	operand_send(s, &o);
	return o;
}

/* Reads what the device has stored. */
static inline void operand_read(struct scene *s, struct operand *o)
{
	const struct hg__mat *m = &o->tensor->mat;
	void *host = malloc(o->tensor->bytes);
	CHECK(host);
	CHECK_OK(s->ctx->backend->copy_out(s->ctx, host, m->data, o->tensor->bytes));
	for (int64_t i = 0; i < o->rows; i++)
		for (int64_t c = 0; c < o->cols; c++)
			o->x[i * o->cols + c] = m->dtype == HG_F16
			                            ? (double)hg_half_to_float(((hg_half *)host)[i * m->ld + c])
			                            : (double)((float *)host)[i * m->ld + c];
	free(host);
}

/* ---- a run ---- */

struct run {
	struct scene *s;
	struct shape shape;
	double scale;
	struct operand q, k, v, dy, y, plus, log_sum, dq, dk, dv;
	struct hg__attention_args forward;
	struct hg__attention_back_args back;
};

static inline int is_add(const struct run *r)
{
	return r->shape.score == HG_SCORE_ADD;
}

static inline void run_open(struct run *r, struct scene *s, struct shape shape)
{
	const int64_t h = shape.heads, width = h * shape.d;
	*r = (struct run){.s = s, .shape = shape};
	const int64_t q_width = is_add(r) ? h : width;
	const float scale = is_add(r) ? 1.0f : (float)(1 / sqrt((double)shape.d));
	r->scale = (double)scale;
	r->q = random_operand(s, q_width);
	r->k = random_operand(s, q_width);
	r->v = random_operand(s, width);
	r->dy = random_operand(s, width);
	r->y = operand_new(s, HG_F16, width);
	r->plus = operand_new(s, HG_F16, width);
	r->log_sum = operand_new(s, HG_F32, is_add(r) ? 2 * h : h);
	r->dq = operand_new(s, HG_F16, q_width);
	r->dk = operand_new(s, HG_F16, q_width);
	r->dv = operand_new(s, HG_F16, width);
	struct hg__attention *of = &r->forward.of;
	*of = (struct hg__attention){.score = shape.score,
	                             .heads = shape.heads,
	                             .slope = 0.25f,
	                             .scale = scale,
	                             .q = r->q.tensor->mat,
	                             .k = r->k.tensor->mat,
	                             .v = r->v.tensor->mat};
	of->dropout = (struct hg__attention_dropout){shape.dropout, KEY, r->s->step.data};
	r->forward.csr = s->csr;
	r->forward.y = r->y.tensor->mat;
	r->forward.log_sum = r->log_sum.tensor->mat;
	r->back = (struct hg__attention_back_args){.csr = s->csr,
	                                           .csr_t = s->csr_t,
	                                           .of = *of,
	                                           .y = r->y.tensor->mat,
	                                           .log_sum = r->log_sum.tensor->mat,
	                                           .dy = r->dy.tensor->mat,
	                                           .dq = r->dq.tensor->mat,
	                                           .dk = r->dk.tensor->mat,
	                                           .dv = r->dv.tensor->mat};
	if (is_add(r))
		r->forward.plus = r->back.plus = r->plus.tensor->mat;
}

static inline void run_close(struct run *r)
{
	struct operand *all[] = {&r->q,    &r->k,       &r->v,  &r->dy, &r->y,
	                         &r->plus, &r->log_sum, &r->dq, &r->dk, &r->dv};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		operand_free(all[i]);
}

static inline void run_both(struct run *r)
{
	hg_context *ctx = r->s->ctx;
	CHECK_OK(ctx->backend->kernels->attention.run(ctx, &r->forward));
	CHECK_OK(ctx->backend->kernels->attention_back.run(ctx, &r->back));
	struct operand *all[] = {&r->y, &r->plus, &r->log_sum, &r->dq, &r->dk, &r->dv};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		operand_read(r->s, all[i]);
}

/* ---- numbers ---- */

static inline double at(const struct operand *o, int64_t i, int64_t c)
{
	return o->x[i * o->cols + c];
}

#endif
