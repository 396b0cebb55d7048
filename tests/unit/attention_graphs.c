/* Attention on a batch of small graphs, which a GPU computes densely (core/plan_dense.h), compared
 * with its contract (kernels/attention.h) in f64: heads of every padded width, dropout, gradients
 * that are absent or one matrix, and values that are not finite, which must stay with the
 * neighbours of their node. A second batch also has graphs that are too large or too sparse, which
 * the same call leaves to a row kernel. Padding is NaN.
 *
 * Bounds. A score is off by gamma of its depth times the sum of its absolute terms, and by 4 u of
 * its size for the subtraction and exp. The largest such error of a row counts in the terms and in
 * the sum of p, and again where the backward pass has p from the log of the sum. With the error of
 * f32 sums over n terms (5/2 n each, hg__depth_dot) and 2^-21 for exp it bounds the relative error
 * of p. Where vectors are multiplied by p, or with DOT by ds, these are one half, with 2^-11 more;
 * in the forward pass twice, because p is divided by the sum of such halves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "precision/bound.h"
#include "unit/attention_batch.h"

static const struct batch small = {{0, 17, 17, 145, 146, 169, 185, 210},
                                   {MANY_ENTRIES, MANY_ENTRIES, MANY_ENTRIES, MANY_ENTRIES,
                                    MANY_ENTRIES, MANY_ENTRIES, MANY_ENTRIES},
                                   0};
static const struct batch mixed = {
    {0, 17, 17, 167, 231, 271, 276, 404},
    {MANY_ENTRIES, NO_ENTRIES, MANY_ENTRIES, MANY_ENTRIES, FEW_ENTRIES, NO_ENTRIES, MANY_ENTRIES},
    1};
#define U32 0x1p-24
#define HALF 0x1p-11

/* ---- the exact weights of one head ---- */

struct weights {
	int head;
	double x[NODES][MOST]; /* ADD: q + k */
	double p[NODES][MOST], mask[NODES][MOST], log_sum[NODES];
	double error[NODES]; /* relative, of the p of a row */
};

/* The score of an edge, and a bound on its error. */
static double score_of(const struct run *r, struct weights *w, int64_t i, int64_t j, double *error)
{
	double sum = 0, terms = 0;
	if (is_add(r)) {
		const double x = (double)((float)at(&r->q, i, w->head) + (float)at(&r->k, j, w->head));
		w->x[i][j - r->s->first[i]] = x;
		sum = x > 0 ? x : 0.25 * x;
		*error = 6 * U32 * fabs(sum);
		return sum;
	}
	for (int64_t c = 0; c < r->shape.d; c++) {
		const double term = at(&r->q, i, w->head * r->shape.d + c) *
		                    at(&r->k, j, w->head * r->shape.d + c) * r->scale;
		sum += term;
		terms += fabs(term);
	}
	*error = hg__gamma(hg__depth_dot(HG_F16, r->shape.d) + 2, U32) * terms + 4 * U32 * fabs(sum);
	return sum;
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
	double most = -INFINITY, sum = 0, worst = 0;
	const int64_t first = r->s->first[i];
	for (int64_t j = first; j < r->s->end[i]; j++) {
		double error;
		const double score = score_of(r, w, i, j, &error);
		w->p[i][j - first] = score;
		w->mask[i][j - first] = mask_of(r, w->head, i, j);
		if (!entries(r->s, i, j))
			continue;
		most = fmax(most, score);
		worst = fmax(worst, error);
	}
	for (int64_t j = first; j < r->s->end[i]; j++) {
		double *p = &w->p[i][j - first];
		*p = entries(r->s, i, j) ? entries(r->s, i, j) * exp(*p - most) : 0;
		sum += *p;
	}
	for (int64_t j = first; j < r->s->end[i] && sum > 0; j++)
		w->p[i][j - first] /= sum;
	w->log_sum[i] = sum > 0 ? most + log(sum) : -INFINITY;
	w->error[i] = expm1(4 * worst) + hg__gamma(5.0 * MOST + 60, U32) + 0x1p-21;
}

/* ---- the forward pass ---- */

static void check_forward(const struct run *r, const struct weights *w, int64_t i)
{
	const int64_t first = r->s->first[i], d = r->shape.d;
	const double error = w->error[i], log_sum = w->log_sum[i];
	double p_plus = 0;
	if (log_sum == -INFINITY)
		CHECK(at(&r->log_sum, i, w->head) == -INFINITY);
	else
		CHECK_WITHIN(at(&r->log_sum, i, w->head), log_sum, error + 8 * U32 * (1 + fabs(log_sum)));
	for (int64_t c = w->head * d; c < (w->head + 1) * d; c++) {
		double y = 0, plus = 0, terms = 0;
		for (int64_t j = first; j < r->s->end[i]; j++) {
			const double term = w->mask[i][j - first] * w->p[i][j - first] * at(&r->v, j, c);
			y += term;
			plus += w->x[i][j - first] > 0 ? term : 0;
			terms += fabs(term);
		}
		const double e = (error + 2 * HALF) * terms + MOST * 0x1p-34;
		CHECK_WITHIN(at(&r->y, i, c), y, e + hg__bound_narrow(HG_F16, fabs(y) + e));
		if (is_add(r))
			CHECK_WITHIN(at(&r->plus, i, c), plus, e + hg__bound_narrow(HG_F16, fabs(plus) + e));
	}
	for (int64_t j = first; j < r->s->end[i]; j++)
		p_plus += w->x[i][j - first] > 0 ? w->p[i][j - first] : 0;
	if (is_add(r))
		CHECK_WITHIN(at(&r->log_sum, i, r->shape.heads + w->head), p_plus, error);
}

/* ---- the backward pass ---- */

/* Exact gradients and bounds on their errors before they are narrowed. */
struct gradient {
	double *x, *error;
	int64_t cols;
};

static struct gradient gradient_new(int64_t cols)
{
	struct gradient g = {calloc((size_t)(NODES * cols), sizeof(double)),
	                     calloc((size_t)(NODES * cols), sizeof(double)), cols};
	CHECK(g.x && g.error);
	return g;
}

static void gradient_add(struct gradient *g, int64_t i, int64_t c, double x, double error)
{
	g->x[i * g->cols + c] += x;
	g->error[i * g->cols + c] += error;
}

static void gradient_check_and_free(struct gradient *g, const struct operand *o)
{
	for (int64_t i = 0; o && i < o->rows * g->cols; i++)
		CHECK_WITHIN(o->x[i], g->x[i],
		             g->error[i] + hg__bound_narrow(HG_F16, fabs(g->x[i]) + g->error[i]));
	free(g->x);
	free(g->error);
}

/* Adds `from` to `to`: both are gradients in one matrix. */
static void gradient_join(struct gradient *to, const struct gradient *from)
{
	for (int64_t i = 0; i < NODES * to->cols; i++) {
		to->x[i] += from->x[i];
		to->error[i] += from->error[i];
	}
}

struct gradients {
	struct gradient dq, dk, dv;
};

/* <G_i, X_j> over a head, and the sum of its absolute terms. */
static double dot(const struct run *r, int head, int64_t i, const struct operand *x, int64_t j,
                  double *terms)
{
	double sum = 0;
	*terms = 0;
	for (int64_t c = head * r->shape.d; c < (head + 1) * r->shape.d; c++) {
		sum += at(&r->dy, i, c) * at(x, j, c);
		*terms += fabs(at(&r->dy, i, c) * at(x, j, c));
	}
	return sum;
}

/* ds of an edge with ADD, and a bound on its error. */
struct derivative {
	double ds, error;
};

static struct derivative add_edge(const struct run *r, const struct weights *w, int64_t i,
                                  int64_t j, double d, double d_terms, struct gradients *g)
{
	const int64_t n = j - r->s->first[i], width = r->shape.d, from = w->head * width;
	const double p = w->p[i][n], mask = w->mask[i][n];
	double terms;
	const double dp = dot(r, w->head, i, &r->v, j, &terms), ds = p * (mask * dp - d),
	             relative = w->error[i] + hg__gamma(5.0 * (double)width + 5.0 * MOST, U32),
	             /* the row kernel of ADD keeps D with 11 bits behind the leading one */
	    of_d = r->s->batch->mixed && is_add(r) ? 0x1p-12 * p * fabs(d) : 0,
	             error = relative * p * (mask * terms + d_terms) + of_d + 0x1p-26,
	             narrowed = error + HALF * (fabs(ds) + error);
	for (int64_t c = from; c < from + width; c++)
		gradient_add(&g->dv, j, c, mask * p * at(&r->dy, i, c),
		             (relative + HALF) * mask * p * fabs(at(&r->dy, i, c)) + 0x1p-36);
	if (is_add(r)) {
		const double f = w->x[i][n] > 0 ? 1 : 0.25;
		gradient_add(&g->dk, j, w->head, f * ds, error);
		return (struct derivative){ds, error};
	}
	for (int64_t c = from; c < from + width; c++) {
		const double q = r->scale * at(&r->q, i, c), k = r->scale * at(&r->k, j, c);
		gradient_add(&g->dq, i, c, ds * k, narrowed * fabs(k));
		gradient_add(&g->dk, j, c, ds * q, narrowed * fabs(q));
	}
	return (struct derivative){ds, narrowed};
}

static void add_row(const struct run *r, const struct weights *w, int64_t i, struct gradients *g)
{
	double d_terms, plus_terms;
	struct derivative positive = {0, 0};
	const double d = dot(r, w->head, i, &r->y, i, &d_terms);
	for (int64_t j = r->s->first[i]; j < r->s->end[i]; j++)
		if (entries(r->s, i, j)) {
			const struct derivative own = add_edge(r, w, i, j, d, d_terms, g);
			const int counts = w->x[i][j - r->s->first[i]] > 0;
			positive.ds += counts ? own.ds : 0;
			positive.error += counts ? own.error : 0;
		}
	if (!is_add(r))
		return;
	/* from `plus`, or from the sum of ds */
	const double plus = dot(r, w->head, i, &r->plus, i, &plus_terms),
	             p_plus = at(&r->log_sum, i, r->shape.heads + w->head), dq = plus - d * p_plus,
	             error = hg__gamma(r->shape.d + 8.0, U32) * (plus_terms + d_terms * p_plus),
	             other = fabs(positive.ds - dq) + positive.error;
	gradient_add(&g->dq, i, w->head, 0.75 * dq, 0.75 * fmax(error, other));
}

/* ---- cases ---- */

static void check_run(struct run *r)
{
	struct gradients g = {gradient_new(r->q.cols), gradient_new(r->k.cols),
	                      gradient_new(r->v.cols)};
	struct weights *w = malloc(sizeof *w);
	CHECK(w);
	for (int head = 0; head < r->shape.heads; head++) {
		memset(w, 0, sizeof *w);
		w->head = head;
		for (int64_t i = 0; i < r->s->nodes; i++) {
			weigh_row(r, w, i);
			check_forward(r, w, i);
			add_row(r, w, i, &g);
		}
	}
	free(w);
	const struct hg__attention_back_args *b = &r->back;
	if (b->dk.data == b->dv.data)
		gradient_join(&g.dk, &g.dv);
	if (b->dq.data == b->dv.data && b->dk.data != b->dv.data)
		gradient_join(&g.dq, &g.dv);
	if (b->dq.data == b->dk.data)
		gradient_join(&g.dq, &g.dk);
	gradient_check_and_free(&g.dq, b->dq.data ? &r->dq : NULL);
	gradient_check_and_free(&g.dk, b->dk.data == r->dk.tensor->mat.data ? &r->dk : NULL);
	gradient_check_and_free(&g.dv, b->dv.data == r->dv.tensor->mat.data ? &r->dv : NULL);
}

static void results_are_those_of_the_contract(void)
{
	static const struct shape shapes[] = {
	    {HG_SCORE_DOT, 1, 128, 0},   {HG_SCORE_DOT, 3, 40, 0.25f}, {HG_SCORE_DOT, 9, 8, 0.5f},
	    {HG_SCORE_DOT, 2, 16, 0},    {HG_SCORE_ADD, 1, 128, 0},    {HG_SCORE_ADD, 1, 72, 0.25f},
	    {HG_SCORE_ADD, 9, 16, 0.5f}, {HG_SCORE_ADD, 2, 64, 0},
	};
	struct scene s;
	scene_open(&s, &small);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct run r;
		run_open(&r, &s, shapes[i]);
		run_both(&r);
		check_run(&r);
		run_close(&r);
	}
	scene_close(&s);
}

/* Where bit k of `same` or `absent` is set, gradient k (dq, dk, dv) is dq's matrix, or absent. */
static void check_gradients(struct scene *s, struct shape shape, unsigned same, unsigned absent)
{
	struct run r;
	run_open(&r, s, shape);
	struct hg__mat *of[3] = {&r.back.dq, &r.back.dk, &r.back.dv};
	for (int k = 0; k < 3; k++) {
		if (same >> k & 1u)
			*of[k] = r.dq.tensor->mat;
		if (absent >> k & 1u)
			*of[k] = (struct hg__mat){0};
	}
	run_both(&r);
	check_run(&r);
	run_close(&r);
}

static void gradients_may_be_one_matrix_or_absent(void)
{
	const struct shape dot_shape = {HG_SCORE_DOT, 2, 24, 0.25f}, add = {HG_SCORE_ADD, 2, 24, 0.25f};
	struct scene s;
	scene_open(&s, &small);
	check_gradients(&s, dot_shape, 2, 0);
	check_gradients(&s, dot_shape, 4, 0);
	check_gradients(&s, dot_shape, 6, 0);
	check_gradients(&s, add, 2, 0);
	for (unsigned absent = 1; absent < 7; absent++) {
		check_gradients(&s, dot_shape, 0, absent);
		check_gradients(&s, add, 0, absent);
	}
	scene_close(&s);
}

/* Large and sparse graphs between small ones: heads of shapes that both kinds of kernels take, and
 * one that only the kernel for any shape takes. */
static void mixed_batch_keeps_the_contract(void)
{
	static const struct shape shapes[] = {
	    {HG_SCORE_DOT, 1, 64, 0},    {HG_SCORE_DOT, 2, 32, 0.25f}, {HG_SCORE_DOT, 3, 8, 0.5f},
	    {HG_SCORE_DOT, 2, 24, 0},    {HG_SCORE_ADD, 1, 64, 0},     {HG_SCORE_ADD, 1, 24, 0.25f},
	    {HG_SCORE_ADD, 9, 16, 0.5f}, {HG_SCORE_ADD, 2, 64, 0},
	};
	struct scene s;
	scene_open(&s, &mixed);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		check_gradients(&s, shapes[i], 0, 0);
	for (unsigned same = 2; same < 8; same += 2)
		check_gradients(&s, (struct shape){HG_SCORE_DOT, 2, 16, 0.25f}, same, 0);
	check_gradients(&s, (struct shape){HG_SCORE_ADD, 2, 16, 0.25f}, 2, 0);
	for (unsigned absent = 1; absent < 7; absent++)
		for (int score = HG_SCORE_ADD; score <= HG_SCORE_DOT; score++)
			check_gradients(&s, (struct shape){(hg_score)score, 1, 16, 0.25f}, 0, absent);
	scene_close(&s);
}

/* A value that is not finite reaches its neighbours and no other rows, forward and backward. */
static void spoiled_values_stay_with_neighbours(void)
{
	struct scene s;
	scene_open(&s, &small);
	for (int score = HG_SCORE_ADD; score <= HG_SCORE_DOT; score++) {
		enum { BAD_V = 20, BAD_G = 30, COLUMN = 5 };
		struct run r;
		run_open(&r, &s, (struct shape){(hg_score)score, 1, 40, 0});
		r.v.x[BAD_V * 40 + COLUMN] = INFINITY;
		r.dy.x[BAD_G * 40 + COLUMN] = -INFINITY;
		operand_send(&s, &r.v);
		operand_send(&s, &r.dy);
		run_both(&r);
		for (int64_t i = 0; i < s.nodes; i++)
			for (int64_t c = 0; c < 40; c++) {
				const int of_graph = s.first[i] == s.first[BAD_V],
				          reads_v = of_graph && entries(&s, i, BAD_V) && c == COLUMN,
				          gets_g = of_graph && entries(&s, BAD_G, i) && c == COLUMN;
				CHECK(isfinite(at(&r.y, i, c)) == !reads_v);
				CHECK(isfinite(at(&r.dv, i, c)) == !gets_g);
			}
		run_close(&r);
	}
	scene_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(results_are_those_of_the_contract),
	    TEST(gradients_may_be_one_matrix_or_absent),
	    TEST(mixed_batch_keeps_the_contract),
	    TEST(spoiled_values_stay_with_neighbours),
	};
	return RUN_TESTS(argc, argv, cases);
}
