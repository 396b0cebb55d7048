#ifndef HG_TESTS_ATTENTION_EQUATIONS_H
#define HG_TESTS_ATTENTION_EQUATIONS_H

#include <math.h>

#include "core/rng.h"
#include "precision/bound.h"
#include "unit/operands.h"

/* The equations of attention (kernels/attention.h) in f64: outputs and every gradient, and bounds
 * on how far the kernels of the CPU may be from them.
 *
 * Bounds. u is the unit roundoff of f32 and g_k = hg__gamma(k, u). A computed score is off by at
 * most E (of each kind, below). p = exp(s - a) / sum, so it is off by the factor 1 +- r with
 *
 *     r = exp(2 E + 8 u max|s|) - 1 + g_(n + 64),   n the edges of the row
 *
 * where 8 u max|s| covers the roundings of a and s - a, and 64 the roundings of exp, of the
 * logarithm and of the division. Every sum of k terms of size t adds g_k t, as in
 * precision/bound.h. p below the smallest normal number may be lost: `TINY` times the size of what
 * it multiplies. */

#define U32 0x1p-24
#define TINY 0x1p-120
enum { MOST_HEADS = 16, ROWS = 60, COLUMNS = 50, HUB = 3, PLAN_BUILT = 0, PLAN_NONE, PLAN_BY_ROW };

struct shape {
	hg_dtype dtype;
	hg_score score;
	int heads, q, d; /* columns of q and v a head */
	int bias, weight, plan, shares;
	float dropout;
	double spread; /* of the scores */
	int64_t hub;   /* edges of a row */
};

/* What is known of edge e and head k. */
struct term {
	double s, s_error; /* the score */
	int positive;      /* before f */
	double p, p_error, mask, dp, ds, ds_error, t;
};

struct problem {
	struct shape shape;
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	struct hg__plan by_row;
	int64_t rows, cols, m, step;
	int32_t *row; /* [m] */
	struct hg__attention of;
	struct hg__mat y, log_sum, plus, dy, dq, dk, dv, dc, dbias;
	struct term *term;                 /* [m, heads] */
	double *sum, *error, *y64, *y_err; /* log-sum-exp and r [rows, heads]; Y and its bound */
	double *plus64, *plus_err, *p_plus;
	double *d, *d_error; /* D and its bound [rows, heads] */
};

static inline struct term *term_at(const struct problem *t, int64_t e, int k)
{
	return &t->term[e * t->shape.heads + k];
}

/* ---- operands ---- */

static inline struct coo edges_of(const struct shape *shape, int64_t rows, int64_t cols)
{
	struct coo list = coo_empty(rows, cols);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < (i == HUB ? shape->hub : i % 7); k++) /* rows 0, 7, ... are empty */
			coo_add(&list, i, k % 5 ? test_below(cols - 2) : 1);
	return list;
}

/* Halves in either type, so that q + k is exact in f32 and its sign is that of the f64 sum. */
static inline struct hg__mat halves(hg_dtype dtype, int64_t rows, int64_t cols, double scale)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, (double)hg_half_to_float(hg_half_from_double(scale * test_normal())));
	return m;
}

static inline void open_operands(struct problem *t)
{
	const struct shape *s = &t->shape;
	const int h = s->heads, v2 = s->score == HG_SCORE_ADD_V2, add = s->score == HG_SCORE_ADD;
	const double scale = s->score == HG_SCORE_DOT ? sqrt(s->spread / sqrt((double)s->q))
	                     : add                    ? s->spread
	                                              : 1.0;
	t->of = (struct hg__attention){.score = s->score,
	                               .heads = h,
	                               .slope = 0.25f,
	                               .scale = 0.75f,
	                               .q = halves(s->dtype, t->rows, h * s->q, scale),
	                               .k = halves(s->dtype, t->cols, h * s->q, scale),
	                               .v = halves(s->dtype, t->cols, h * s->d, 1.0),
	                               .dropout = {s->dropout, 77, &t->step}};
	if (v2)
		t->of.c = halves(h % 2 ? HG_F32 : s->dtype, 1, h * s->q, s->spread / sqrt((double)s->q));
	if (s->score == HG_SCORE_COSINE)
		t->of.c = halves(HG_F32, 1, s->q % 2 ? h : 1, s->spread);
	if (s->bias)
		t->of.bias = halves(s->dtype, t->m, h, 1.0);
	if (s->weight) {
		float *weight = take((size_t)(t->m + 1) * sizeof *weight);
		for (int64_t e = 0; e < t->m; e++) /* row 5 has only weights of 0 */
			weight[e] = t->row[e] == 5 ? 0.0f : (float)test_below(4);
		t->of.weight = weight;
	}
	if (s->score == HG_SCORE_COSINE && t->rows > 9) /* a row shorter than tiny, and a zero one */
		for (int64_t c = 0; c < h * s->q; c++) {
			set(&t->of.q, 8, c, s->dtype == HG_F32 ? 1e-14 : 0.0);
			set(&t->of.k, 2, c, 0.0);
		}
}

static inline void open_problem(struct problem *t, const struct shape *shape)
{
	*t = (struct problem){.shape = *shape, .ctx = test_cpu_context(2), .step = 12345};
	t->rows = ROWS;
	t->cols = shape->shares ? ROWS : COLUMNS;
	t->graph = coo_graph(t->ctx, edges_of(shape, t->rows, t->cols));
	CHECK_OK(hg__graph_csr(t->graph, &t->csr));
	CHECK_OK(hg__graph_csr_t(t->graph, 1, &t->csr_t));
	CHECK(t->csr.plan->splits > 0 && t->csr_t.plan->splits > 0);
	t->by_row = hg__plan_by_row(&t->csr);
	if (shape->plan != PLAN_BUILT)
		t->csr.plan = shape->plan == PLAN_BY_ROW ? &t->by_row : NULL;
	if (shape->plan == PLAN_NONE)
		t->csr_t.plan = NULL;
	t->m = t->csr.m;
	t->row = take((size_t)t->m * sizeof *t->row);
	for (int64_t i = 0; i < t->rows; i++)
		for (int64_t p = t->csr.rowptr[i]; p < t->csr.rowptr[i + 1]; p++)
			t->row[p] = (int32_t)i;
	open_operands(t);
	const int64_t h = shape->heads, width = h * shape->d, add = shape->score == HG_SCORE_ADD;
	t->y = empty(shape->dtype, t->rows, width);
	t->dy = halves(shape->dtype, t->rows, width, 1.0);
	t->log_sum = empty(HG_F32, t->rows, h * (1 + add));
	if (add)
		t->plus = empty(shape->dtype, t->rows, width);
	t->term = take((size_t)(t->m * h) * sizeof *t->term);
	double **const all[] = {&t->sum, &t->error, &t->p_plus, &t->d, &t->d_error};
	for (int i = 0; i < 5; i++)
		*all[i] = take((size_t)(t->rows * h) * sizeof(double));
	double **const wide[] = {&t->y64, &t->y_err, &t->plus64, &t->plus_err};
	for (int i = 0; i < 4; i++)
		*wide[i] = take((size_t)(t->rows * width) * sizeof(double));
}

static inline void close_problem(struct problem *t)
{
	pool_clear();
	hg_graph_free(t->graph);
	hg_context_free(t->ctx);
}

/* ---- the forward pass in f64 ---- */

static inline double leaky(const struct problem *t, double x)
{
	return x > 0.0 ? x : (double)t->of.slope * x;
}

static inline double c_at(const struct problem *t, int64_t col)
{
	return get(&t->of.c, 0, t->of.c.cols == 1 ? 0 : col);
}

static inline double norm_of(const struct hg__mat *m, int64_t row, int64_t first, int64_t d)
{
	double sum = 0.0;
	for (int64_t c = first; c < first + d; c++)
		sum += get(m, row, c) * get(m, row, c);
	return sqrt(sum);
}

/* A vector without a direction has cosines and gradients of 0. */
static inline double inverse_of(double norm)
{
	return norm < 1e-12 ? 0.0 : 1.0 / norm;
}

/* The score of an edge (i, j), and E. */
static inline void score(const struct problem *t, int64_t e, int k)
{
	const struct hg__attention *of = &t->of;
	const int64_t i = t->row[e], j = t->csr.col[e], q = t->shape.q;
	struct term *o = term_at(t, e, k);
	double sum = 0.0, size = 0.0;
	for (int64_t c = k * q; c < (k + 1) * q; c++) {
		const double a = get(&of->q, i, c), b = get(&of->k, j, c);
		const double x = of->score == HG_SCORE_ADD      ? a + b
		                 : of->score == HG_SCORE_ADD_V2 ? c_at(t, c) * leaky(t, a + b)
		                                                : a * b;
		sum += x;
		size += fabs(x);
	}
	double depth = (double)q + 6.0;
	if (of->score == HG_SCORE_DOT) {
		sum *= (double)of->scale;
		size *= (double)of->scale;
	}
	if (of->score == HG_SCORE_COSINE) {
		const double inverse = inverse_of(norm_of(&of->q, i, k * q, q)) *
		                       inverse_of(norm_of(&of->k, j, k * q, q)),
		             beta = c_at(t, k);
		o->t = sum * inverse;
		sum *= beta * inverse;
		size *= fabs(beta) * inverse;
		depth = 3.0 * (double)q + 16.0;
	}
	const double bias = of->bias.data ? get(&of->bias, e, k) : 0.0;
	sum += bias;
	size += fabs(bias);
	o->positive = sum > 0.0;
	o->s = of->score == HG_SCORE_ADD ? leaky(t, sum) : sum;
	o->s_error = isfinite(size) ? hg__gamma(depth, U32) * size : 0.0;
	if (of->weight && of->weight[e] == 0.0f)
		o->s = -INFINITY;
}

static inline double mask_of(const struct problem *t, int64_t e, int k)
{
	const struct hg__attention_dropout *dropout = &t->of.dropout;
	const uint32_t threshold = (uint32_t)lround((double)dropout->p * 65536.0);
	const struct hg__rng4 x = hg__philox(dropout->key, (uint32_t)t->row[e], (uint32_t)t->csr.col[e],
	                                     (uint32_t)k / 8, (uint32_t)t->step);
	const uint32_t half = x.w[k % 8 / 2] >> (k % 2 ? 16 : 0) & 0xFFFFu;
	return half < threshold ? 0.0 : 65536.0 / (65536.0 - (double)threshold);
}

/* p of the edges of row i and its relative error r. */
static inline void softmax(const struct problem *t, int64_t i, int k)
{
	double max = -INFINITY, sum = 0.0, size = 0.0, error = 0.0;
	const int64_t begin = t->csr.rowptr[i], end = t->csr.rowptr[i + 1];
	for (int64_t e = begin; e < end; e++) {
		const struct term *o = term_at(t, e, k);
		max = o->s > max ? o->s : max;
		size = isfinite(o->s) && fabs(o->s) > size ? fabs(o->s) : size;
		error = o->s_error > error ? o->s_error : error;
	}
	for (int64_t e = begin; e < end && isfinite(max); e++)
		sum += (t->of.weight ? (double)t->of.weight[e] : 1.0) * exp(term_at(t, e, k)->s - max);
	const double r =
	    expm1(2.0 * error + 8.0 * U32 * size) + hg__gamma((double)(end - begin) + 64.0, U32);
	CHECK_MSG(r < 0.25, "no useful bound of p: %g", r);
	t->sum[i * t->shape.heads + k] = sum > 0.0 ? max + log(sum) : -INFINITY;
	t->error[i * t->shape.heads + k] = r;
	for (int64_t e = begin; e < end; e++) {
		struct term *o = term_at(t, e, k);
		const double weight = t->of.weight ? (double)t->of.weight[e] : 1.0;
		o->p = sum > 0.0 ? weight * exp(o->s - max) / sum : 0.0;
		o->p_error = r * o->p + TINY;
		o->mask = t->shape.dropout > 0.0f ? mask_of(t, e, k) : 1.0;
		t->p_plus[i * t->shape.heads + k] += o->positive ? o->p : 0.0;
	}
}

static inline void forward_row(const struct problem *t, int64_t i)
{
	const int64_t d = t->shape.d, width = t->shape.heads * d;
	for (int64_t e = t->csr.rowptr[i]; e < t->csr.rowptr[i + 1]; e++)
		for (int64_t c = 0; c < width; c++) {
			const struct term *o = term_at(t, e, (int)(c / d));
			const double v = get(&t->of.v, t->csr.col[e], c);
			t->y64[i * width + c] += o->mask * o->p * v;
			t->y_err[i * width + c] += o->mask * o->p_error * fabs(v);
			t->plus64[i * width + c] += o->positive ? o->mask * o->p * v : 0.0;
			t->plus_err[i * width + c] += o->positive ? o->mask * o->p_error * fabs(v) : 0.0;
		}
	for (int64_t c = 0; c < width; c++) {
		double *const value[] = {t->y64, t->plus64}, *const error[] = {t->y_err, t->plus_err};
		for (int w = 0; w < 2; w++)
			error[w][i * width + c] += hg__bound_narrow(
			    t->shape.dtype, fabs(value[w][i * width + c]) + error[w][i * width + c]);
	}
}

static inline void forward(const struct problem *t)
{
	for (int64_t e = 0; e < t->m; e++)
		for (int k = 0; k < t->shape.heads; k++)
			score(t, e, k);
	for (int64_t i = 0; i < t->rows; i++) {
		for (int k = 0; k < t->shape.heads; k++)
			softmax(t, i, k);
		forward_row(t, i);
	}
}

/* ---- comparison ---- */

static inline void check_one(const struct problem *t, const char *what, int64_t r, int64_t c,
                             double found, double expected, double bound)
{
	static const char *const names[] = {"add", "dot", "cosine", "add_v2"};
	const struct shape *s = &t->shape;
	CHECK_MSG((found == expected) || fabs(found - expected) <= bound,
	          "%s, %s, %d heads of %d and %d, bias %d, weight %d, plan %d, shares %d, dropout %g, "
	          "spread %g: %s[%d, %d] is %.9g, expected %.9g +- %.3g",
	          names[s->score], hg_dtype_name(s->dtype), s->heads, s->q, s->d, s->bias, s->weight,
	          s->plan, s->shares, (double)s->dropout, s->spread, what, (int)r, (int)c, found,
	          expected, bound);
}

static inline void check_matrix(const struct problem *t, const char *what, const struct hg__mat *m,
                                const double *expected, const double *bound)
{
	for (int64_t r = 0; r < m->rows; r++)
		for (int64_t c = 0; c < m->cols; c++)
			check_one(t, what, r, c, get(m, r, c), expected[r * m->cols + c],
			          bound[r * m->cols + c]);
}

static inline void check_forward(const struct problem *t)
{
	const int heads = t->shape.heads;
	check_matrix(t, "Y", &t->y, t->y64, t->y_err);
	if (t->plus.data)
		check_matrix(t, "plus", &t->plus, t->plus64, t->plus_err);
	for (int64_t i = 0; i < t->rows; i++)
		for (int k = 0; k < heads; k++) {
			const double sum = t->sum[i * heads + k], r = t->error[i * heads + k];
			check_one(t, "log_sum", i, k, get(&t->log_sum, i, k), sum,
			          2.0 * r + 4.0 * U32 * fabs(sum));
			if (t->shape.score == HG_SCORE_ADD)
				check_one(t, "P+", i, k, get(&t->log_sum, i, heads + k), t->p_plus[i * heads + k],
				          r * t->p_plus[i * heads + k] + TINY);
		}
}

/* ---- gradients in f64 ---- */

/* A gradient and its bound, before it is narrowed. */
struct grad {
	int64_t cols;
	double *value, *bound;
};

static inline struct grad grad_of(const struct hg__mat *like)
{
	const size_t bytes = (size_t)(like->rows * like->cols) * sizeof(double);
	return (struct grad){like->cols, take(bytes), take(bytes)};
}

static inline void add(const struct grad *g, int64_t r, int64_t c, double value, double bound)
{
	g->value[r * g->cols + c] += value;
	g->bound[r * g->cols + c] += bound;
}

/* D, dp and ds. */
static inline void find_ds(const struct problem *t)
{
	const int64_t d = t->shape.d, width = t->shape.heads * d;
	const double dots = hg__gamma((double)d + 2.0, U32);
	for (int64_t i = 0; i < t->rows; i++)
		for (int64_t c = 0; c < width; c++) {
			const double g = get(&t->dy, i, c), y = t->y64[i * width + c],
			             error = t->y_err[i * width + c];
			t->d[i * t->shape.heads + c / d] += g * y;
			t->d_error[i * t->shape.heads + c / d] += fabs(g) * (error + dots * (fabs(y) + error));
		}
	for (int64_t e = 0; e < t->m; e++)
		for (int k = 0; k < t->shape.heads; k++) {
			struct term *o = term_at(t, e, k);
			const int64_t at = t->row[e] * t->shape.heads + k;
			double size = 0.0;
			for (int64_t c = k * d; c < (k + 1) * d; c++) {
				const double x = get(&t->dy, t->row[e], c) * get(&t->of.v, t->csr.col[e], c);
				o->dp += x;
				size += fabs(x);
			}
			const double most = o->mask * size + fabs(t->d[at]) + t->d_error[at];
			o->ds = o->p * (o->mask * o->dp - t->d[at]);
			o->ds_error =
			    o->p_error * most +
			    (o->p + o->p_error) * (o->mask * dots * size + t->d_error[at] + 3.0 * U32 * most);
		}
}

struct grads {
	struct grad q, k, v, c, bias;
};

/* The gradient of ADD over a row, from what the forward pass keeps. */
static inline void add_dq(const struct problem *t, const struct grad *out)
{
	const int64_t heads = t->shape.heads, d = t->shape.d, width = heads * d;
	const double slope = 1.0 - (double)t->of.slope;
	for (int64_t i = 0; i < t->rows; i++)
		for (int64_t k = 0; k < heads; k++) {
			const double p = t->p_plus[i * heads + k], r = t->error[i * heads + k],
			             dd = t->d[i * heads + k], de = t->d_error[i * heads + k];
			double sum = 0.0, error = 0.0, size = 0.0;
			for (int64_t c = k * d; c < (k + 1) * d; c++) {
				const double g = get(&t->dy, i, c), x = t->plus64[i * width + c],
				             more = t->plus_err[i * width + c];
				sum += g * x;
				error += fabs(g) * more;
				size += fabs(g) * (fabs(x) + more);
			}
			error += hg__gamma((double)d + 4.0, U32) * (size + (fabs(dd) + de) * (p + TINY)) +
			         de * (p * (1.0 + r) + TINY) + fabs(dd) * (r * p + TINY);
			add(out, i, k, slope * (sum - dd * p), slope * error);
		}
}

/* The terms of edge e and head k in the gradients of q, k and c. */
static inline void end_terms(const struct problem *t, const struct grads *out, int64_t e, int k)
{
	const struct hg__attention *of = &t->of;
	const struct term *o = term_at(t, e, k);
	const int64_t i = t->row[e], j = t->csr.col[e], q = t->shape.q;
	const double depth = hg__gamma((double)t->m + 4.0 * (double)q + 40.0, U32),
	             error = o->ds_error + depth * fabs(o->ds);
	if (of->score == HG_SCORE_ADD) {
		const double slope = o->positive ? 1.0 : (double)of->slope;
		/* The kernel sums mask <G_i, V_j> and D apart. */
		const int64_t at = i * t->shape.heads + k;
		double size = fabs(t->d[at]);
		for (int64_t c = k * t->shape.d; c < (k + 1) * t->shape.d; c++)
			size += o->mask * fabs(get(&t->dy, i, c) * get(&of->v, j, c));
		add(&out->k, j, k, slope * o->ds,
		    slope * (o->ds_error + hg__gamma((double)t->m + 40.0 + (double)t->shape.d, U32) *
		                               (o->p + o->p_error) * size));
		return;
	}
	const double nq = norm_of(&of->q, i, k * q, q), nk = norm_of(&of->k, j, k * q, q);
	if (of->score == HG_SCORE_COSINE)
		add(&out->c, 0, of->c.cols == 1 ? 0 : k, o->ds * o->t, error * 2.0);
	for (int64_t c = k * q; c < (k + 1) * q; c++) {
		const double a = get(&of->q, i, c), b = get(&of->k, j, c);
		if (of->score == HG_SCORE_DOT) {
			const double scale = (double)of->scale;
			add(&out->q, i, c, scale * o->ds * b, scale * error * fabs(b));
			add(&out->k, j, c, scale * o->ds * a, scale * error * fabs(a));
		} else if (of->score == HG_SCORE_ADD_V2) {
			const double f = a + b > 0.0 ? 1.0 : (double)of->slope, w = c_at(t, c);
			add(&out->q, i, c, o->ds * w * f, error * fabs(w) * f);
			add(&out->k, j, c, o->ds * w * f, error * fabs(w) * f);
			add(&out->c, 0, c, o->ds * leaky(t, a + b), error * fabs(leaky(t, a + b)));
		} else {
			const double iq = inverse_of(nq), ik = inverse_of(nk), ua = a * iq, ub = b * ik,
			             beta = c_at(t, k), size = fabs(beta) * error * (fabs(ua) + fabs(ub));
			add(&out->q, i, c, beta * iq * o->ds * (ub - o->t * ua), size * iq);
			add(&out->k, j, c, beta * ik * o->ds * (ua - o->t * ub), size * ik);
		}
	}
}

static inline struct grads backward(const struct problem *t)
{
	const struct hg__attention *of = &t->of;
	const int64_t d = t->shape.d, heads = t->shape.heads;
	struct grads out = {grad_of(&of->q), grad_of(&of->k), grad_of(&of->v), grad_of(&of->c),
	                    grad_of(&of->bias)};
	find_ds(t);
	if (of->score == HG_SCORE_ADD)
		add_dq(t, &out.q);
	for (int64_t e = 0; e < t->m; e++)
		for (int k = 0; k < heads; k++) {
			const struct term *o = term_at(t, e, k);
			const double f = of->score != HG_SCORE_ADD || o->positive ? 1.0 : (double)of->slope,
			             more = hg__gamma((double)t->m + 8.0, U32);
			if (of->bias.data)
				add(&out.bias, e, k, f * o->ds, f * (o->ds_error + 2.0 * U32 * fabs(o->ds)));
			for (int64_t c = k * d; c < (k + 1) * d; c++) {
				const double g = get(&t->dy, t->row[e], c);
				add(&out.v, t->csr.col[e], c, o->mask * o->p * g,
				    o->mask * (o->p_error + more * o->p) * fabs(g));
			}
			end_terms(t, &out, e, k);
		}
	return out;
}

/* Compares a stored gradient, which is narrowed once, also where two passes add to it. */
static inline void check_grad(const struct problem *t, const char *what, const struct hg__mat *m,
                              const struct grad *g)
{
	if (!m->data)
		return;
	const int64_t count = m->rows * m->cols;
	for (int64_t i = 0; i < count; i++)
		g->bound[i] += hg__bound_narrow(m->dtype, fabs(g->value[i]) + g->bound[i]);
	check_matrix(t, what, m, g->value, g->bound);
}

static inline void add_grad(const struct grad *to, const struct grad *from, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		to->value[i] += from->value[i];
		to->bound[i] += from->bound[i];
	}
}

static inline void check_backward(struct problem *t)
{
	const struct shape *s = &t->shape;
	struct grads g = backward(t);
	const struct hg__mat dq = empty(s->dtype, t->rows, t->of.q.cols);
	t->dq = dq;
	t->dk = s->shares ? dq : empty(s->dtype, t->cols, t->of.k.cols);
	t->dv = s->shares == 2 ? dq : empty(s->dtype, t->cols, t->of.v.cols);
	if (t->of.c.data)
		t->dc = empty(HG_F32, 1, t->of.c.cols);
	if (t->of.bias.data)
		t->dbias = empty(s->dtype, t->m, s->heads);
	const struct hg__attention_back_args args = {.csr = t->csr,
	                                             .csr_t = t->csr_t,
	                                             .of = t->of,
	                                             .y = t->y,
	                                             .log_sum = t->log_sum,
	                                             .plus = t->plus,
	                                             .dy = t->dy,
	                                             .dq = t->dq,
	                                             .dk = t->dk,
	                                             .dv = t->dv,
	                                             .dc = t->dc,
	                                             .dbias = t->dbias};
	CHECK_OK(t->ctx->backend->kernels->attention_back.run(t->ctx, &args));
	const int64_t count = t->rows * t->of.q.cols;
	if (s->shares)
		add_grad(&g.q, &g.k, count);
	if (s->shares == 2)
		add_grad(&g.q, &g.v, count);
	check_grad(t, "dq", &t->dq, &g.q);
	if (!s->shares)
		check_grad(t, "dk", &t->dk, &g.k);
	if (s->shares < 2)
		check_grad(t, "dv", &t->dv, &g.v);
	check_grad(t, "dc", &t->dc, &g.c);
	check_grad(t, "dbias", &t->dbias, &g.bias);
}

static inline void check_weights(const struct problem *t)
{
	const int heads = t->shape.heads;
	struct hg__mat p = empty(t->shape.dtype, t->m, heads);
	const struct hg__attention_weights_args args = {t->csr, t->of, t->log_sum, p};
	CHECK_OK(t->ctx->backend->kernels->attention_weights.run(t->ctx, &args));
	for (int64_t e = 0; e < t->m; e++)
		for (int k = 0; k < heads; k++) {
			const struct term *o = term_at(t, e, k);
			check_one(t, "P", e, k, get(&p, e, k), o->p,
			          o->p_error + hg__bound_narrow(t->shape.dtype, o->p + o->p_error));
		}
}

static inline void run_forward(struct problem *t)
{
	const struct hg__attention_args args = {
	    .csr = t->csr, .of = t->of, .y = t->y, .log_sum = t->log_sum, .plus = t->plus};
	CHECK_OK(t->ctx->backend->kernels->attention.run(t->ctx, &args));
}

static inline void check_shape(const struct shape *shape)
{
	struct problem t;
	open_problem(&t, shape);
	run_forward(&t);
	forward(&t);
	check_forward(&t);
	check_weights(&t);
	check_backward(&t);
	close_problem(&t);
}

#endif
