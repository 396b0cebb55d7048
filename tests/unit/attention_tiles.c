/* Attention with additive scores on graphs with tiles (core/plan_tiles.h), which a GPU computes by
 * tensor cores, compared with its contract (kernels/attention.h) in f64: windows of several items,
 * windows and rows without edges, repeated edges, heads of several widths, gradients that are
 * absent or one matrix, and values that are not finite. With dropout the same call is left to
 * another kernel.
 *
 * Bounds. A score is off by 6 u of its size, and an exponent, with its products by log2(e), by
 * 16 u (|s| + 1). The largest such error of a row counts in the terms and in the sum of p, and
 * again where the backward pass has p from the log of the sum. With the error of f32 sums over n
 * terms in two halves (5/2 n each, hg__depth_dot) and 2^-20 for weights in two halves and exp2 it
 * bounds the relative error of p. A weight has an error of 2^-37 of the largest beside that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/plan_tiles.h"
#include "core/rng.h"
#include "graphs.h"
#include "kernels/kernels.h"
#include "precision/bound.h"

enum { FEW = 6 * 16 + 5, MANY = 3300, KEY = 77, STEP = 5 };
#define U32 0x1p-24
#define SLOPE 0.25

struct shape {
	int heads, d;
	float dropout;
};

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	struct hg__plan plan, plan_t; /* those of the graph, with tiles */
	struct hg__buffer step;
	struct host_csr host;
	int64_t longest; /* of a row or a column */
};

/* ---- the graph ---- */

/* FEW nodes have edges from MANY, or the other way round (TURNED), or the few are among the many
 * (SQUARE). The first window of the few shares 3200 sources, 9 rows each, which makes it several
 * items; window 2 has no edges; the others share 40 sources, some of them several times. */
enum { AS_IS, TURNED, SQUARE };

static void add_edge(struct coo *list, int64_t few, int64_t many, int turned)
{
	coo_add(list, turned == TURNED ? many : few, turned == TURNED ? few : many);
}

static struct coo edges(int turned)
{
	struct coo list = coo_empty(turned == AS_IS ? FEW : MANY, turned == TURNED ? FEW : MANY);
	for (int64_t j = 0; j < 3200; j++)
		for (int64_t k = 0; k < 9; k++)
			add_edge(&list, (j * 5 + k) % 15, j, turned);
	for (int64_t i = 16; i < FEW; i++)
		for (int64_t j = 0; i / 16 != 2 && i % 9 != 4 && j < 40; j++)
			for (int64_t times = test_below(2) ? 1 + test_below(9) / 6 * test_below(9) : 0;
			     times > 0; times--)
				add_edge(&list, i, 3250 - i / 16 * 31 + j, turned);
	return list;
}

static void attach_tiles(struct scene *s, struct hg__csr *csr, struct hg__plan *plan)
{
	const struct hg__tile_terms any = {0, 0, 256}, too_wide = {0, 0, (int64_t)1 << 40};
	struct hg__tiles *none = NULL;
	int64_t *rowptr = malloc((size_t)(csr->rows + 1) * sizeof *rowptr);
	CHECK(rowptr);
	CHECK_OK(s->ctx->backend->copy_out(s->ctx, rowptr, csr->rowptr,
	                                   (size_t)(csr->rows + 1) * sizeof *rowptr));
	*plan = *csr->plan;
	CHECK_OK(hg__tiles_build(s->ctx, csr, rowptr, &any, &plan->tiles));
	CHECK((plan->tiles != NULL) == (s->ctx->backend->tiles_count != NULL));
	if (plan->tiles && plan->tiles->slots > 0) /* their sums would not fit into memory */
		CHECK_OK(hg__tiles_build(s->ctx, csr, rowptr, &too_wide, &none));
	CHECK(!none);
	/* the reuse from which tiles are used for heads of any width */
	CHECK(!plan->tiles || csr->m >= 6 * plan->tiles->columns);
	for (int64_t i = 0; i < csr->rows; i++)
		s->longest =
		    s->longest > rowptr[i + 1] - rowptr[i] ? s->longest : rowptr[i + 1] - rowptr[i];
	free(rowptr);
	csr->plan = plan;
}

static void scene_open(struct scene *s, int turned)
{
	const int64_t step = STEP;
	memset(s, 0, sizeof *s);
	s->ctx = test_context();
	s->graph = coo_graph(s->ctx, edges(turned));
	s->host = host_csr_download(s->ctx, s->graph);
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	CHECK_OK(hg__graph_csr_t(s->graph, 0, &s->csr_t));
	attach_tiles(s, &s->csr, &s->plan);
	attach_tiles(s, &s->csr_t, &s->plan_t);
	CHECK(!s->plan.tiles || (turned == TURNED ? s->plan_t : s->plan).tiles->splits > 0);
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof step, &step, "step", &s->step));
}

static void scene_close(struct scene *s)
{
	hg__tiles_free(s->ctx, s->plan.tiles);
	hg__tiles_free(s->ctx, s->plan_t.tiles);
	hg__buffer_free(s->ctx, &s->step);
	host_csr_free(&s->host);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
}

/* ---- operands ---- */

/* A matrix on the device, and its numbers as stored. */
struct operand {
	hg_tensor *tensor;
	float *x; /* [rows, cols] */
	int64_t rows, cols;
};

static struct operand operand_new(struct scene *s, hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct operand o = {NULL, calloc((size_t)(rows * cols), sizeof(float)), rows, cols};
	CHECK(o.x);
	CHECK_OK(hg_tensor_create(s->ctx, dtype, rows, cols, &o.tensor));
	CHECK_OK(s->ctx->backend->fill(s->ctx, o.tensor->mat.data, 0xFF, o.tensor->bytes));
	return o;
}

static void operand_send(struct operand *o)
{
	CHECK_OK(hg_tensor_upload(o->tensor, o->x, HG_F32));
	CHECK_OK(hg_tensor_download(o->tensor, o->x, HG_F32));
}

static struct operand random_operand(struct scene *s, int64_t rows, int64_t cols)
{
	struct operand o = operand_new(s, HG_F16, rows, cols);
	for (int64_t i = 0; i < rows * cols; i++)
		o.x[i] = (float)test_normal();
	operand_send(&o);
	return o;
}

static void operand_free(struct operand *o)
{
	hg_tensor_free(o->tensor);
	free(o->x);
}

static double at(const struct operand *o, int64_t i, int64_t c)
{
	return (double)o->x[i * o->cols + c];
}

/* ---- a run ---- */

enum { IN_Q, IN_K, IN_V, IN_DY, OUT_Y, OUT_PLUS, OUT_LOG_SUM, OUT_DQ, OUT_DK, OUT_DV, OPERANDS };

struct run {
	struct scene *s;
	struct shape shape;
	struct operand o[OPERANDS];
	struct hg__attention_args forward;
	struct hg__attention_back_args back;
};

static void run_open(struct run *r, struct scene *s, struct shape shape)
{
	const int64_t h = shape.heads, width = h * shape.d, rows = s->csr.rows, cols = s->csr.cols;
	*r = (struct run){.s = s, .shape = shape};
	r->o[IN_Q] = random_operand(s, rows, h);
	r->o[IN_K] = random_operand(s, cols, h);
	r->o[IN_V] = random_operand(s, cols, width);
	r->o[IN_DY] = random_operand(s, rows, width);
	r->o[OUT_Y] = operand_new(s, HG_F16, rows, width);
	r->o[OUT_PLUS] = operand_new(s, HG_F16, rows, width);
	r->o[OUT_LOG_SUM] = operand_new(s, HG_F32, rows, 2 * h);
	r->o[OUT_DQ] = operand_new(s, HG_F16, rows, h);
	r->o[OUT_DK] = operand_new(s, HG_F16, cols, h);
	r->o[OUT_DV] = operand_new(s, HG_F16, cols, width);
	struct hg__mat m[OPERANDS];
	for (int i = 0; i < OPERANDS; i++)
		m[i] = r->o[i].tensor->mat;
	r->forward = (struct hg__attention_args){.csr = s->csr,
	                                         .of = {.score = HG_SCORE_ADD,
	                                                .heads = shape.heads,
	                                                .slope = (float)SLOPE,
	                                                .scale = 1.0f,
	                                                .q = m[IN_Q],
	                                                .k = m[IN_K],
	                                                .v = m[IN_V],
	                                                .dropout = {shape.dropout, KEY, s->step.data}},
	                                         .y = m[OUT_Y],
	                                         .log_sum = m[OUT_LOG_SUM],
	                                         .plus = m[OUT_PLUS]};
	r->back = (struct hg__attention_back_args){.csr = s->csr,
	                                           .csr_t = s->csr_t,
	                                           .of = r->forward.of,
	                                           .y = m[OUT_Y],
	                                           .log_sum = m[OUT_LOG_SUM],
	                                           .plus = m[OUT_PLUS],
	                                           .dy = m[IN_DY],
	                                           .dq = m[OUT_DQ],
	                                           .dk = m[OUT_DK],
	                                           .dv = m[OUT_DV]};
}

#ifdef HG_HAVE_CUDA
_Bool hg__cuda_attention_tiles_takes(const struct hg__attention_args *a);
_Bool hg__cuda_attention_back_tiles_takes(const struct hg__attention_back_args *a);

/* Wider heads than this have no gradient by tiles (cuda/attention_tiles_back.cu). */
enum { WIDEST = 64 };

/* What a test says of tiles must not be said of the kernel behind them. */
static void expect_tiles(const struct run *r)
{
	const int tiles = r->s->plan.tiles && r->shape.dropout == 0.0f;
	CHECK(hg__cuda_attention_tiles_takes(&r->forward) == tiles);
	CHECK(hg__cuda_attention_back_tiles_takes(&r->back) ==
	      (tiles && r->shape.d <= WIDEST && (r->back.dk.data || r->back.dv.data)));
}
#else
static void expect_tiles(const struct run *r)
{
	CHECK(!r->s->plan.tiles);
}
#endif

static void run_both(struct run *r)
{
	hg_context *ctx = r->s->ctx;
	expect_tiles(r);
	CHECK_OK(ctx->backend->kernels->attention.run(ctx, &r->forward));
	CHECK_OK(ctx->backend->kernels->attention_back.run(ctx, &r->back));
	for (int i = OUT_Y; i < OPERANDS; i++)
		CHECK_OK(hg_tensor_download(r->o[i].tensor, r->o[i].x, HG_F32));
}

static void run_close(struct run *r)
{
	for (int i = 0; i < OPERANDS; i++)
		operand_free(&r->o[i]);
}

/* ---- the exact weights of one head ---- */

struct weights {
	int head;
	double *x, *p, *mask;    /* [m]: q + k, p and the mask of each entry */
	double *error, *log_sum; /* [rows]: relative, of the p of a row */
};

static struct weights weights_new(const struct scene *s)
{
	const size_t m = (size_t)s->host.m, n = (size_t)s->csr.rows;
	double *memory = calloc(3 * m + 2 * n, sizeof *memory);
	CHECK(memory);
	return (struct weights){.x = memory,
	                        .p = memory + m,
	                        .mask = memory + 2 * m,
	                        .error = memory + 3 * m,
	                        .log_sum = memory + 3 * m + n};
}

static double mask_of(const struct run *r, int head, int64_t i, int64_t j)
{
	const uint32_t threshold = hg__attention_threshold(r->shape.dropout);
	if (r->shape.dropout == 0.0f)
		return 1;
	const struct hg__rng4 words =
	    hg__philox(KEY, (uint32_t)i, (uint32_t)j, (uint32_t)head / 8, STEP);
	const uint32_t half = words.w[head % 8 / 2] >> (head % 2 ? 16 : 0) & 0xFFFFu;
	return half < threshold ? 0 : (double)hg__attention_kept(r->shape.dropout);
}

static void weigh_row(const struct run *r, struct weights *w, int64_t i)
{
	const struct host_csr *g = &r->s->host;
	double most = -INFINITY, sum = 0, size = 0;
	for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++) {
		const float x =
		    (float)at(&r->o[IN_Q], i, w->head) + (float)at(&r->o[IN_K], g->col[e], w->head);
		w->x[e] = (double)x;
		w->p[e] = x > 0 ? (double)x : SLOPE * (double)x;
		w->mask[e] = mask_of(r, w->head, i, g->col[e]);
		most = fmax(most, w->p[e]);
		size = fmax(size, fabs(w->p[e]));
	}
	for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
		sum += w->p[e] = exp(w->p[e] - most);
	for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
		w->p[e] /= sum;
	w->log_sum[i] = sum > 0 ? most + log(sum) : -INFINITY;
	w->error[i] = expm1(4 * (6 * U32 * size + 16 * U32 * (size + 1))) +
	              hg__gamma(5.0 * (double)r->s->longest + 60, U32) + 0x1p-20;
}

/* ---- the forward pass ---- */

static void check_forward(const struct run *r, const struct weights *w, int64_t i)
{
	const struct host_csr *g = &r->s->host;
	const int64_t d = r->shape.d, h = w->head;
	const double error = w->error[i], log_sum = w->log_sum[i];
	double p_plus = 0;
	if (log_sum == -INFINITY)
		CHECK(at(&r->o[OUT_LOG_SUM], i, h) == -INFINITY);
	else
		CHECK_WITHIN(at(&r->o[OUT_LOG_SUM], i, h), log_sum, error + 8 * U32 * (1 + fabs(log_sum)));
	for (int64_t c = h * d; c < (h + 1) * d; c++) {
		double y = 0, plus = 0, terms = 0, size = 0;
		for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++) {
			const double v = at(&r->o[IN_V], g->col[e], c), term = w->mask[e] * w->p[e] * v;
			y += term;
			plus += w->x[e] > 0 ? term : 0;
			terms += fabs(term);
			size += w->mask[e] * fabs(v);
		}
		const double all = error * terms + 0x1p-36 * size;
		CHECK_WITHIN(at(&r->o[OUT_Y], i, c), y, all + hg__bound_narrow(HG_F16, fabs(y) + all));
		CHECK_WITHIN(at(&r->o[OUT_PLUS], i, c), plus,
		             all + hg__bound_narrow(HG_F16, fabs(plus) + all));
	}
	for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
		p_plus += w->x[e] > 0 ? w->p[e] : 0;
	CHECK_WITHIN(at(&r->o[OUT_LOG_SUM], i, r->shape.heads + h), p_plus, error);
}

/* ---- the backward pass ---- */

/* Exact gradients and bounds on their errors before they are narrowed. */
struct gradient {
	double *x, *error;
	int64_t rows, cols;
};

static struct gradient gradient_new(const struct operand *of)
{
	const size_t size = (size_t)(of->rows * of->cols);
	double *memory = calloc(2 * size, sizeof *memory);
	CHECK(memory);
	return (struct gradient){memory, memory + size, of->rows, of->cols};
}

static void gradient_add(struct gradient *g, int64_t i, int64_t c, double x, double error)
{
	g->x[i * g->cols + c] += x;
	g->error[i * g->cols + c] += error;
}

static void gradient_check_and_free(struct gradient *g, const struct operand *o)
{
	for (int64_t i = 0; o && i < g->rows * g->cols; i++)
		CHECK_WITHIN((double)o->x[i], g->x[i],
		             g->error[i] + hg__bound_narrow(HG_F16, fabs(g->x[i]) + g->error[i]));
	free(g->x);
}

struct gradients {
	struct gradient dq, dk, dv;
};

/* <G_i, X_j> over a head, and the sum of its absolute terms. */
static double dot(const struct run *r, int head, int64_t i, int x, int64_t j, double *terms)
{
	double sum = 0;
	*terms = 0;
	for (int64_t c = head * r->shape.d; c < (head + 1) * r->shape.d; c++) {
		const double term = at(&r->o[IN_DY], i, c) * at(&r->o[x], j, c);
		sum += term;
		*terms += fabs(term);
	}
	return sum;
}

/* D may be read with a relative error of 2^-12 (cuda/attention_add_back.cu), and p has the error of
 * a weight, 2^-39, beside that of its row. */
static void add_row(const struct run *r, const struct weights *w, int64_t i, struct gradients *g)
{
	const struct host_csr *s = &r->s->host;
	double d_terms, plus_terms, terms;
	const int64_t width = r->shape.d;
	const double d = dot(r, w->head, i, OUT_Y, i, &d_terms),
	             relative = w->error[i] + hg__gamma(5.0 * (double)width, U32);
	for (int64_t e = s->rowptr[i]; e < s->rowptr[i + 1]; e++) {
		const int64_t j = s->col[e];
		const double p = w->p[e], dp = dot(r, w->head, i, IN_V, j, &terms),
		             f = w->x[e] > 0 ? 1 : SLOPE, size = w->mask[e] * terms + d_terms;
		for (int64_t c = w->head * width; c < (w->head + 1) * width; c++) {
			const double x = w->mask[e] * at(&r->o[IN_DY], i, c);
			gradient_add(&g->dv, j, c, p * x, (relative * p + 0x1p-38) * fabs(x));
		}
		gradient_add(&g->dk, j, w->head, f * p * (w->mask[e] * dp - d),
		             (relative * p + 0x1p-38) * size + 0x1p-12 * p * fabs(d));
	}
	const double plus = dot(r, w->head, i, OUT_PLUS, i, &plus_terms),
	             p_plus = at(&r->o[OUT_LOG_SUM], i, r->shape.heads + w->head);
	gradient_add(&g->dq, i, w->head, (1 - SLOPE) * (plus - d * p_plus),
	             hg__gamma((double)width + 8.0, U32) * (plus_terms + d_terms * p_plus));
}

/* ---- cases ---- */

static void check_run(struct run *r)
{
	struct gradients g = {gradient_new(&r->o[OUT_DQ]), gradient_new(&r->o[OUT_DK]),
	                      gradient_new(&r->o[OUT_DV])};
	struct weights w = weights_new(r->s);
	for (w.head = 0; w.head < r->shape.heads; w.head++)
		for (int64_t i = 0; i < r->s->csr.rows; i++) {
			weigh_row(r, &w, i);
			check_forward(r, &w, i);
			add_row(r, &w, i, &g);
		}
	free(w.x);
	gradient_check_and_free(&g.dq, r->back.dq.data ? &r->o[OUT_DQ] : NULL);
	gradient_check_and_free(&g.dk, r->back.dk.data ? &r->o[OUT_DK] : NULL);
	gradient_check_and_free(&g.dv, r->back.dv.data ? &r->o[OUT_DV] : NULL);
}

static void check_shape(struct scene *s, struct shape shape)
{
	struct run r;
	run_open(&r, s, shape);
	run_both(&r);
	check_run(&r);
	run_close(&r);
}

static void results_are_those_of_the_contract(void)
{
	static const struct shape shapes[] = {{1, 64, 0}, {1, 64, 0.25f}, {9, 16, 0}, {2, 32, 0},
	                                      {1, 48, 0}, {1, 144, 0},    {2, 80, 0}};
	for (int turned = AS_IS; turned <= TURNED; turned++) {
		struct scene s;
		scene_open(&s, turned);
		for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
			check_shape(&s, shapes[i]);
		scene_close(&s);
	}
}

/* Each gradient alone, and each of the others. */
static void gradients_may_be_absent(void)
{
	for (int turned = AS_IS; turned <= TURNED; turned++) {
		struct scene s;
		scene_open(&s, turned);
		for (unsigned absent = 1; absent < 7; absent++) {
			struct run r;
			run_open(&r, &s, (struct shape){2, 32, 0});
			struct hg__mat *of[3] = {&r.back.dq, &r.back.dk, &r.back.dv};
			for (int k = 0; k < 3; k++)
				if (absent >> k & 1u)
					*of[k] = (struct hg__mat){0};
			run_both(&r);
			check_run(&r);
			run_close(&r);
		}
		scene_close(&s);
	}
}

/* dk in the matrix of dq receives their sum; dq may be narrowed before. */
static void gradients_may_be_one_matrix(void)
{
	struct scene s;
	struct run r;
	scene_open(&s, SQUARE);
	run_open(&r, &s, (struct shape){2, 32, 0});
	run_both(&r);
	const size_t size = (size_t)(MANY * 2);
	float *sum = malloc(size * sizeof *sum), *least = malloc(size * sizeof *least);
	CHECK(sum && least);
	for (size_t i = 0; i < size; i++) {
		sum[i] = r.o[OUT_DQ].x[i] + r.o[OUT_DK].x[i];
		least[i] = fabsf(r.o[OUT_DQ].x[i]) + fabsf(r.o[OUT_DK].x[i]);
	}
	r.back.dk = r.back.dq;
	run_both(&r);
	for (size_t i = 0; i < size; i++) /* three numbers were narrowed, and the sum */
		CHECK_WITHIN((double)r.o[OUT_DQ].x[i], (double)sum[i],
		             4 * hg__bound_narrow(HG_F16, (double)least[i]));
	free(sum);
	free(least);
	run_close(&r);
	scene_close(&s);
}

/* Scores that grow from group to group, and scores far below the maximum of their window: sums are
 * rescaled often, and each row has a maximum of its own. */
static void maxima_are_those_of_rows(void)
{
	for (int turned = AS_IS; turned <= TURNED; turned++) {
		struct scene s;
		struct run r;
		scene_open(&s, turned);
		run_open(&r, &s, (struct shape){1, 64, 0});
		for (int64_t j = 0; j < r.o[IN_K].rows; j++)
			r.o[IN_K].x[j] = (float)(40.0 * (double)j / (double)r.o[IN_K].rows - 20.0);
		for (int64_t i = 0; i < r.o[IN_Q].rows; i++)
			r.o[IN_Q].x[i] = i % 2 ? 15.0f : -25.0f;
		operand_send(&r.o[IN_K]);
		operand_send(&r.o[IN_Q]);
		run_both(&r);
		check_run(&r);
		run_close(&r);
		scene_close(&s);
	}
}

/* The largest value of an operand that is not finite reaches its neighbours and no other rows,
 * forward and backward. A score of NaN spoils its row alone. */
static void spoiled_values_stay_with_neighbours(void)
{
	for (int turned = AS_IS; turned <= TURNED; turned++) {
		enum { COLUMN = 5, WIDTH = 64 };
		struct scene s;
		struct run r;
		scene_open(&s, turned);
		const int64_t bad_v = s.host.col[0], bad_g = s.csr.rows - 1;
		run_open(&r, &s, (struct shape){1, WIDTH, 0});
		r.o[IN_V].x[bad_v * WIDTH + COLUMN] = INFINITY;
		r.o[IN_DY].x[bad_g * WIDTH + COLUMN] = -INFINITY;
		operand_send(&r.o[IN_V]);
		operand_send(&r.o[IN_DY]);
		run_both(&r);
		unsigned char *gets = calloc((size_t)s.csr.cols, 1), *reads = calloc((size_t)s.csr.rows, 1);
		CHECK(gets && reads);
		for (int64_t i = 0; i < s.csr.rows; i++)
			for (int64_t e = s.host.rowptr[i]; e < s.host.rowptr[i + 1]; e++) {
				reads[i] |= s.host.col[e] == bad_v;
				gets[s.host.col[e]] |= i == bad_g;
			}
		for (int64_t i = 0; i < s.csr.rows; i++)
			for (int64_t c = 0; c < WIDTH; c++)
				CHECK(isfinite(at(&r.o[OUT_Y], i, c)) == !(reads[i] && c == COLUMN));
		for (int64_t j = 0; j < s.csr.cols; j++)
			for (int64_t c = 0; c < WIDTH; c++)
				CHECK(isfinite(at(&r.o[OUT_DV], j, c)) == !(gets[j] && c == COLUMN));
		free(gets);
		free(reads);
		run_close(&r);
		scene_close(&s);
	}
}

/* The same bits in every run. */
static void results_are_reproducible(void)
{
	struct scene s;
	struct run r;
	scene_open(&s, AS_IS);
	run_open(&r, &s, (struct shape){2, 64, 0});
	run_both(&r);
	float *first[OPERANDS];
	for (int i = OUT_Y; i < OPERANDS; i++) {
		const size_t size = (size_t)(r.o[i].rows * r.o[i].cols) * sizeof(float);
		first[i] = malloc(size);
		CHECK(first[i]);
		memcpy(first[i], r.o[i].x, size);
	}
	run_both(&r);
	for (int i = OUT_Y; i < OPERANDS; i++) {
		CHECK(memcmp(first[i], r.o[i].x, (size_t)(r.o[i].rows * r.o[i].cols) * sizeof(float)) == 0);
		free(first[i]);
	}
	run_close(&r);
	scene_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(results_are_those_of_the_contract),   TEST(gradients_may_be_absent),
	    TEST(gradients_may_be_one_matrix),         TEST(maxima_are_those_of_rows),
	    TEST(spoiled_values_stay_with_neighbours), TEST(results_are_reproducible),
	};
	return RUN_TESTS(argc, argv, cases);
}
