#include "oracle/parts.h"

/* Attention, from its equations:
 *
 *     Y[i, c] = sum over edges e = (i, j) of mask[e, k] p[e, k] V[j, c],  k the head of column c
 *     p[e, k] = w_e exp(s[e, k]) / sum over the edges f of row i of w_f exp(s[f, k])
 *
 * Operands: q, k, v, c, bias. The error of a number is that of any kernel that computes in f32 with
 * sums in any order, subtracts from the scores of a row a number near their maximum, combines parts
 * of a row that each have such a number of their own, and in the backward pass computes p again as
 * exp(s - the stored logarithm of the row's sum). */
enum { Q, K, V, C, BIAS };
enum { ADD, DOT, COSINE, ADD_V2 };

#define U ORACLE_U32
/* A shorter vector has no direction: its cosines and its gradient are 0. */
#define TINY 1e-12

/* ---- where Q, K and V are ---- */

/* The columns `first` to first + cols - 1 of an operand. */
struct side {
	int operand;
	int64_t first, cols;
};
struct sides {
	struct side q, k, v;
};

static struct sides sides_of(const struct oracle_call *c)
{
	const int has_k = c->in[K].at != 0, has_v = c->in[V].at != 0,
	          parts = has_k || c->score == COSINE ? 1
	                  : c->score == DOT && !has_v ? 3
	                                              : 2;
	const int64_t width = c->in[Q].cols / parts;
	struct sides s = {.q = {Q, 0, width}, .k = {Q, parts > 1 ? width : 0, width}};
	if (has_k)
		s.k = (struct side){K, 0, c->in[K].cols};
	s.v = s.k;
	if (has_v)
		s.v = (struct side){V, 0, c->in[V].cols};
	else if (parts == 3)
		s.v = (struct side){Q, 2 * width, width};
	return s;
}

static num at(const struct oracle_call *c, const struct side *s, int64_t row, int64_t col)
{
	return IN(s->operand, row, s->first + col);
}

/* ---- scores ---- */

/* The error of a term in a sum of products: halves may go through tensor cores. */
static double dot_u(const struct oracle_call *c)
{
	return c->is_half ? ORACLE_TENSOR : U;
}

/* f(x). f does not increase an error, on whichever side of 0 the computed x is. */
static num leaky(const struct oracle_call *c, num x)
{
	return x.v > 0 ? x : num_mul(U, num_exact(c->slope), x);
}

static num dot(const struct oracle_call *c, const struct side *a, int64_t i, const struct side *b,
               int64_t j, int64_t head)
{
	const int64_t q = a->cols / c->heads;
	struct num_sum s = {0};
	for (int64_t x = head * q; x < (head + 1) * q; x++)
		num_sum_add(&s, num_mul(U, at(c, a, i, x), at(c, b, j, x)));
	return num_sum_get(dot_u(c), &s);
}

/* |x|; exactly 0 where it is less than TINY. */
static num norm(const struct oracle_call *c, const struct side *a, int64_t i, int64_t head)
{
	const num n = num_sqrt(4 * U, dot(c, a, i, a, i, head));
	return n.v < TINY ? num_exact(0.0) : n;
}

static num cosine(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t j,
                  int64_t head)
{
	const num product = dot(c, &s->q, i, &s->k, j, head), a = norm(c, &s->q, i, head),
	          b = norm(c, &s->k, j, head);
	return a.v > 0 && b.v > 0 ? num_div(4 * U, num_div(4 * U, product, a), b) : num_exact(0.0);
}

static num beta(const struct oracle_call *c, int64_t head)
{
	return IN(C, 0, c->in[C].cols == 1 ? 0 : head);
}

/* The number of which f is taken with ADD. */
static num before_f(const struct oracle_call *c, const struct sides *s, int64_t e, int64_t head)
{
	const num x =
	    num_add(U, at(c, &s->q, c->graph.dst[e], head), at(c, &s->k, c->graph.src[e], head));
	return c->in[BIAS].at ? num_add(U, x, IN(BIAS, e, head)) : x;
}

/* How far <c, f(q + k)> may be from its value, if it is computed from halves as
 *
 *     slope <c, q> + <c, k> + (1 - slope) <c, max(q, -k)>
 *
 * by tensor cores, with c as the sum of two halves, which have a common power of two as factor:
 * 2^-22 of each element is lost, and 2^-39 of the largest one. Two more roundings are those of
 * (1 - slope) times a sum, and two those of the sums. */
static double error_of_max(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t j,
                           int64_t head)
{
	const int64_t q = s->q.cols / c->heads;
	struct num_sum sum = {0};
	double all = 0, most = 0;
	for (int64_t k = head * q; k < (head + 1) * q; k++) {
		const double a = at(c, &s->q, i, k).v, b = at(c, &s->k, j, k).v, x = fabs(IN(C, 0, k).v),
		             size = fabs(c->slope * a) + fabs(b) + fabs((1 - c->slope) * fmax(a, -b));
		num_sum_add(&sum, (num){x * size, 0});
		all += size;
		most = fmax(most, x);
	}
	return num_sum_get(dot_u(c), &sum).e + 8 * U * sum.mag + 0x1p-39 * most * all;
}

static num score_of_v2(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t j,
                       int64_t head)
{
	const int64_t q = s->q.cols / c->heads;
	struct num_sum sum = {0};
	for (int64_t k = head * q; k < (head + 1) * q; k++)
		num_sum_add(&sum, num_mul(U, IN(C, 0, k),
		                          leaky(c, num_add(U, at(c, &s->q, i, k), at(c, &s->k, j, k)))));
	num x = num_sum_get(U, &sum);
	if (c->is_half)
		x.e = fmax(x.e, error_of_max(c, s, i, j, head));
	return x;
}

static num score(const struct oracle_call *c, const struct sides *s, int64_t e, int64_t head)
{
	const int64_t i = c->graph.dst[e], j = c->graph.src[e];
	num x = num_exact(0);
	if (c->score == ADD)
		return leaky(c, before_f(c, s, e, head));
	if (c->score == DOT)
		x = num_mul(U, num_exact(c->alpha), dot(c, &s->q, i, &s->k, j, head));
	else if (c->score == COSINE)
		x = num_mul(U, beta(c, head), cosine(c, s, i, j, head));
	else
		x = score_of_v2(c, s, i, j, head);
	return c->in[BIAS].at ? num_add(U, x, IN(BIAS, e, head)) : x;
}

/* ---- dropout ---- */

/* 0 or 1 / keep: a random number of 16 bits for row, column and head. */
static num mask(const struct oracle_call *c, int64_t e, int64_t head)
{
	const uint64_t pair = (uint64_t)(uint32_t)c->graph.dst[e] | (uint64_t)(uint32_t)c->graph.src[e]
	                                                                << 32;
	const uint32_t half = (uint32_t)(head % 8);
	const uint32_t word = oracle_random_word(
	    c->rng_key, pair, (uint32_t)(4 * (head / 8)) + half / 2, (uint64_t)c->step);
	const double threshold = floor(c->p * 65536.0 + 0.5);
	if (c->eval || threshold == 0)
		return num_exact(1);
	if ((double)(half % 2 ? word >> 16 : word & 0xFFFFu) < threshold)
		return num_exact(0);
	return num_round(U, 65536.0 / (65536.0 - threshold), 0);
}

/* ---- one row and one head ---- */

struct edge {
	num score, p, mask, ds;
	num back; /* p as the backward pass computes it */
	/* with ADD: is the score positive before f, and can the computed one be on the other side? */
	int plus, unsure;
};

static double weight_of(const struct oracle_call *c, int64_t e)
{
	return c->weighted && c->graph.weight ? c->graph.weight[e] : 1.0;
}

/* The rounding of exp's argument: eight roundings at most, of the score, of the number that is
 * subtracted (at most 32 from the maximum), and of their products with log2(e). */
static double argument(double score, double other)
{
	return 8 * U * (fabs(score) + fabs(other) + 32);
}

/* w exp(x): exp, with 2 units in the last place, also where that is 2^-149; and the product with
 * the weight. */
static num weighted(double weight, double x, double error)
{
	if (weight == 0)
		return num_exact(0);
	const double v = weight * exp(x);
	return num_round(6 * U, v, v * expm1(error) + weight * 0x1p-148);
}

/* Whether weights may be halves where tensor cores multiply them. */
static int has_half_weights(const struct oracle_call *c)
{
	return c->is_half && (c->score == ADD || c->score == DOT);
}

/* Adds the error of a weight that is the sum of two halves: 2^-22 of it, and 2^-25 of a unit by
 * which all weights of a column are divided. */
static num in_two_halves(const struct oracle_call *c, num w, double unit)
{
	return has_half_weights(c) ? (num){w.v, w.e + 4 * U * (fabs(w.v) + w.e) + 0x1p-25 * unit} : w;
}

/* Adds the error of a weight that is one half: 2^-11 of it, and 2^-25 of a unit by which all
 * weights of a row, or of a small graph, are divided. */
static num in_one_half(const struct oracle_call *c, num w, double unit)
{
	return has_half_weights(c) ? (num){w.v, w.e + 0x1p-11 * (fabs(w.v) + w.e) + 0x1p-25 * unit} : w;
}

/* Computes the p of a row, from weights that may be narrowed first; returns 0 if the row has no
 * edge that counts. The parts of a row that is split may be brought to one maximum by further
 * factors exp. */
static int softmax(const struct oracle_call *c, int64_t first, int64_t last, struct edge *edge)
{
	double top = -INFINITY;
	struct num_sum s = {0}, narrowed = {0};
	for (int64_t e = first; e < last; e++)
		top = weight_of(c, e) > 0 ? fmax(top, edge[e - first].score.v) : top;
	if (top == -INFINITY)
		return 0;
	for (int64_t e = first; e < last; e++) {
		struct edge *at = &edge[e - first];
		at->p = weighted(weight_of(c, e), at->score.v - top,
		                 at->score.e + 2 * argument(at->score.v, top));
		num_sum_add(&s, at->p);
		num_sum_add(&narrowed, in_one_half(c, at->p, 0x1p-11));
	}
	const num sum = num_sum_get(U, &s), divisor = num_sum_get(U, &narrowed);
	const double log_sum = top + log(sum.v),
	             error = log1p(sum.e / sum.v) + 4 * U * fabs(log(sum.v)) + U * fabs(log_sum);
	for (int64_t e = first; e < last; e++) {
		struct edge *at = &edge[e - first];
		at->back = weighted(weight_of(c, e), at->score.v - log_sum,
		                    at->score.e + error + argument(at->score.v, log_sum));
		at->p = num_div(U, in_one_half(c, at->p, 0x1p-11), divisor);
	}
	return 1;
}

static int open_row(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t head,
                    struct edge *edge)
{
	const int64_t first = c->graph.rowptr[i], last = c->graph.rowptr[i + 1];
	for (int64_t e = first; e < last; e++) {
		struct edge *at = &edge[e - first];
		*at = (struct edge){.score = score(c, s, e, head), .mask = mask(c, e, head)};
		if (c->score == ADD) {
			const num x = before_f(c, s, e, head);
			at->plus = x.v > 0;
			at->unsure = c->in[BIAS].at && fabs(x.v) <= x.e;
		}
	}
	return softmax(c, first, last, edge);
}

/* Element k of Y, or of the part of Y whose edges have a positive score before f. */
static num mean(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t k,
                const struct edge *edge, int only_plus)
{
	struct num_sum sum = {0};
	double unsure = 0;
	for (int64_t e = c->graph.rowptr[i]; e < c->graph.rowptr[i + 1]; e++) {
		const struct edge *row = &edge[e - c->graph.rowptr[i]];
		const num term =
		    num_mul(U, row->p, num_mul(U, row->mask, at(c, &s->v, c->graph.src[e], k)));
		if (!only_plus || row->plus)
			num_sum_add(&sum, term);
		if (only_plus && row->unsure)
			unsure += fabs(term.v) + term.e;
	}
	num y = num_sum_get(U, &sum);
	y.e += unsure;
	return y;
}

static struct edge *edges_of(const struct oracle_call *c)
{
	struct edge *edge = calloc((size_t)c->graph.m + 1, sizeof *edge);
	return edge ? edge : (exit(1), NULL);
}

void oracle_attention(struct oracle_call *c)
{
	const struct sides s = sides_of(c);
	const int64_t d = c->out.cols / c->heads;
	struct edge *edge = edges_of(c);
	for (int64_t i = 0; i < c->out.rows; i++)
		for (int64_t head = 0; head < c->heads; head++) {
			const int counts = open_row(c, &s, i, head, edge);
			for (int64_t k = head * d; k < (head + 1) * d; k++)
				OUT(i, k) = counts ? mean(c, &s, i, k, edge, 0) : num_exact(0);
		}
	free(edge);
}

void oracle_attention_weights(struct oracle_call *c)
{
	const struct sides s = sides_of(c);
	struct edge *edge = edges_of(c);
	for (int64_t i = 0; i < c->graph.rows; i++)
		for (int64_t head = 0; head < c->heads; head++) {
			const int counts = open_row(c, &s, i, head, edge);
			for (int64_t e = c->graph.rowptr[i]; e < c->graph.rowptr[i + 1]; e++)
				OUT(e, head) = counts ? edge[e - c->graph.rowptr[i]].back : num_exact(0);
		}
	free(edge);
}

/* P is for looking at, and has no gradient. */
void oracle_attention_weights_back(struct oracle_call *c)
{
	(void)c;
}

/* ---- gradients ---- */

/* The sums that become the gradients of Q, K and V, and of c. */
struct gradients {
	struct num_sum *q, *k, *v, *c;
};

static struct num_sum *sums(int64_t rows, int64_t cols)
{
	struct num_sum *sum = calloc((size_t)(rows * cols) + 1, sizeof *sum);
	return sum ? sum : (exit(1), NULL);
}

/* No row of V, or of dY, is longer, over the columns of one head: each column has its largest
 * element. */
static double longest(const struct oracle_call *c, const struct sides *s, int of_v, int64_t head)
{
	const int64_t d = c->out.cols / c->heads, rows = of_v ? c->in[s->v.operand].rows : c->out.rows;
	double sum = 0;
	for (int64_t k = head * d; k < (head + 1) * d; k++) {
		double most = 0;
		for (int64_t i = 0; i < rows; i++)
			most = fmax(most, fabs(of_v ? at(c, &s->v, i, k).v : DOUT(i, k).v));
		sum += most * most;
	}
	return sqrt(sum);
}

/* What no ds of a head exceeds: |dY_i| (|V_j| / keep + |Y_i|), where |Y_i| <= max |V_j| / keep. An
 * eighth more is for roundings. */
static double limit_of_ds(const struct oracle_call *c, const struct sides *s, int64_t head)
{
	const double kept = c->eval ? 1.0 : 65536.0 / (65536.0 - floor(c->p * 65536.0 + 0.5));
	return 2.25 * kept * longest(c, s, 0, head) * longest(c, s, 1, head);
}

/* ds = p (mask <dY_i, V_j> - D), D = <dY_i, Y_i> with Y as stored. */
static num derivatives(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t head,
                       double limit, struct edge *edge)
{
	const int64_t d = c->out.cols / c->heads;
	struct num_sum mean = {0};
	for (int64_t k = head * d; k < (head + 1) * d; k++)
		num_sum_add(&mean, num_mul(U, DOUT(i, k), SAVED(i, k)));
	const num D = num_sum_get(dot_u(c), &mean);
	for (int64_t e = c->graph.rowptr[i]; e < c->graph.rowptr[i + 1]; e++) {
		struct edge *row = &edge[e - c->graph.rowptr[i]];
		struct num_sum own = {0};
		for (int64_t k = head * d; k < (head + 1) * d; k++)
			num_sum_add(&own, num_mul(U, DOUT(i, k), at(c, &s->v, c->graph.src[e], k)));
		row->ds = num_mul(U, row->back,
		                  num_sub(U, num_mul(U, row->mask, num_sum_get(dot_u(c), &own)), D));
		if (c->score == DOT)
			row->ds = in_one_half(c, row->ds, 0x1p-14 * limit);
	}
	return D;
}

/* dq of ADD, from the stored terms of Y and of the sum of p with a positive score before f. With
 * halves it may be the sum of ds of these edges. */
static num row_of_add(const struct oracle_call *c, const struct sides *s, int64_t i, int64_t head,
                      const struct edge *edge, num D)
{
	const int64_t d = c->out.cols / c->heads;
	struct num_sum dot = {0}, shares = {0}, sum_ds = {0};
	double unsure = 0, unsure_ds = 0;
	for (int64_t e = c->graph.rowptr[i]; e < c->graph.rowptr[i + 1]; e++) {
		const struct edge *row = &edge[e - c->graph.rowptr[i]];
		if (row->plus)
			num_sum_add(&shares, row->p);
		if (row->plus)
			num_sum_add(&sum_ds, row->ds);
		unsure += row->unsure ? row->p.v + row->p.e : 0;
		unsure_ds += row->unsure ? fabs(row->ds.v) + row->ds.e : 0;
	}
	for (int64_t k = head * d; k < (head + 1) * d; k++)
		num_sum_add(&dot, num_mul(U, DOUT(i, k), num_store(c->is_half, mean(c, s, i, k, edge, 1))));
	num share = num_sum_get(U, &shares);
	share.e += unsure;
	num dq = num_sub(U, num_sum_get(dot_u(c), &dot), num_mul(U, D, share)),
	    of_ds = num_sum_get(U, &sum_ds);
	if (has_half_weights(c))
		dq.e = fmax(dq.e, fabs(dq.v - of_ds.v) + of_ds.e + unsure_ds);
	return num_mul(U, num_sub(U, num_exact(1), num_exact(c->slope)), dq);
}

/* f'(x) y; an x within its error of 0 may have either derivative. */
static num times_slope(const struct oracle_call *c, int plus, int unsure, num y)
{
	num out = plus ? y : num_mul(U, num_exact(c->slope), y);
	out.e += unsure ? (1 - c->slope) * (fabs(y.v) + y.e) : 0;
	return out;
}

/* Adds what edge e brings to the gradient of k with ADD: f' ds. A kernel may add up p mask dY and
 * p D over a column first, and multiply by V last, so ds is a sum of these terms here. */
static void add_add(const struct oracle_call *c, const struct sides *s, int64_t e, int64_t head,
                    const struct edge *edge, num D, struct gradients *g)
{
	const int64_t i = c->graph.dst[e], j = c->graph.src[e], d = c->out.cols / c->heads;
	struct num_sum *sum = &g->k[j * s->k.cols + head];
	const num p = times_slope(c, edge->plus, edge->unsure, edge->back),
	          masked = num_mul(U, in_two_halves(c, p, 0x1p-14), edge->mask),
	          rest = num_mul(U, p, D);
	for (int64_t k = head * d; k < (head + 1) * d; k++)
		num_sum_add(sum, num_mul(U, num_mul(U, masked, DOUT(i, k)), at(c, &s->v, j, k)));
	num_sum_add(sum, (num){-rest.v, rest.e});
}

/* Adds what edge e brings to the gradients of Q_i and K_j, and of c. */
static void add_dot(const struct oracle_call *c, const struct sides *s, int64_t e, int64_t head,
                    const struct edge *edge, struct gradients *g)
{
	const int64_t i = c->graph.dst[e], j = c->graph.src[e], q = s->q.cols / c->heads;
	const num ds = num_mul(U, num_exact(c->alpha), edge->ds);
	for (int64_t k = head * q; k < (head + 1) * q; k++) {
		num_sum_add(&g->q[i * s->q.cols + k], num_mul(U, ds, at(c, &s->k, j, k)));
		num_sum_add(&g->k[j * s->k.cols + k], num_mul(U, ds, at(c, &s->q, i, k)));
	}
}

/* Kernels multiply by beta / |Q_i|, or by c, last. Where ds is near the smallest number of f32,
 * each product before that may be off by half of it: of ds, the slope or t, and an element of a
 * vector; and of ds and the reciprocal of a norm, which an element of size `size` then
 * multiplies. */
static num multiplied_last(num term, double factor, double size)
{
	term.e += (4 + size) * 0x1p-150 * fabs(factor);
	return term;
}

/* With unit vectors q', k' and their product t: beta / |Q_i| ds (k' - t q'), and the same for K_j.
 * Where one has no direction, neither has a gradient from this edge. */
static void add_cosine(const struct oracle_call *c, const struct sides *s, int64_t e, int64_t head,
                       const struct edge *edge, struct gradients *g)
{
	const int64_t i = c->graph.dst[e], j = c->graph.src[e], q = s->q.cols / c->heads;
	const num a = norm(c, &s->q, i, head), b = norm(c, &s->k, j, head),
	          t = cosine(c, s, i, j, head), ds = num_mul(U, beta(c, head), edge->ds);
	if (!(a.v > 0 && b.v > 0))
		return; /* t = 0 as well */
	for (int64_t k = head * q; k < (head + 1) * q; k++) {
		const num x = num_div(4 * U, at(c, &s->q, i, k), a),
		          y = num_div(4 * U, at(c, &s->k, j, k), b), of_q = num_sub(U, y, num_mul(U, t, x)),
		          of_k = num_sub(U, x, num_mul(U, t, y));
		const double size = fabs(at(c, &s->q, i, k).v) + fabs(at(c, &s->k, j, k).v);
		const num to_q = num_div(4 * U, num_mul(U, ds, of_q), a),
		          to_k = num_div(4 * U, num_mul(U, ds, of_k), b);
		num_sum_add(&g->q[i * s->q.cols + k], multiplied_last(to_q, beta(c, head).v / a.v, size));
		num_sum_add(&g->k[j * s->k.cols + k], multiplied_last(to_k, beta(c, head).v / b.v, size));
	}
	num_sum_add(&g->c[c->in[C].cols == 1 ? 0 : head], num_mul(U, edge->ds, t));
}

static void add_v2(const struct oracle_call *c, const struct sides *s, int64_t e, int64_t head,
                   const struct edge *edge, struct gradients *g)
{
	const int64_t i = c->graph.dst[e], j = c->graph.src[e], q = s->q.cols / c->heads;
	for (int64_t k = head * q; k < (head + 1) * q; k++) {
		const num x = num_add(U, at(c, &s->q, i, k), at(c, &s->k, j, k)),
		          product = times_slope(c, x.v > 0, 0, num_mul(U, IN(C, 0, k), edge->ds)),
		          ds = multiplied_last(product, IN(C, 0, k).v, 0);
		num_sum_add(&g->q[i * s->q.cols + k], ds);
		num_sum_add(&g->k[j * s->k.cols + k], ds);
		num_sum_add(&g->c[k], num_mul(U, edge->ds, leaky(c, x)));
	}
}

static void add_edge(struct oracle_call *c, const struct sides *s, int64_t e, int64_t head,
                     const struct edge *edge, num D, struct gradients *g)
{
	const int64_t i = c->graph.dst[e], j = c->graph.src[e], d = c->out.cols / c->heads;
	const num ds = c->score == ADD ? times_slope(c, edge->plus, edge->unsure, edge->ds) : edge->ds,
	          weight = in_one_half(c, edge->back, 0x1p-14);
	for (int64_t k = head * d; k < (head + 1) * d; k++)
		num_sum_add(&g->v[j * s->v.cols + k],
		            num_mul(U, num_mul(U, edge->mask, weight), DOUT(i, k)));
	if (c->score == ADD)
		add_add(c, s, e, head, edge, D, g);
	else
		(c->score == DOT      ? add_dot
		 : c->score == COSINE ? add_cosine
		                      : add_v2)(c, s, e, head, edge, g);
	if (c->in[BIAS].at && WANT(BIAS))
		DIN(BIAS, e, head) = ds;
}

/* Adds the sums of a side to the gradient of its operand. Where several sides are the same columns,
 * each of their gradients may be stored before it is added. */
static void give(struct oracle_call *c, const struct side *side, const struct num_sum *sum,
                 int shared)
{
	for (int64_t r = 0; WANT(side->operand) && r < c->in[side->operand].rows; r++)
		for (int64_t k = 0; k < side->cols; k++) {
			num *to = &DIN(side->operand, r, side->first + k);
			const num more = num_sum_get(U, &sum[r * side->cols + k]);
			*to = shared ? num_add(U, *to, num_store(c->is_half, more)) : more;
		}
}

static int same(const struct side *a, const struct side *b)
{
	return a->operand == b->operand && a->first == b->first;
}

static void clear(struct oracle_call *c)
{
	for (int k = 0; k < ORACLE_MAX_IN; k++)
		for (int64_t i = 0; WANT(k) && i < c->din[k].rows * c->din[k].cols; i++)
			c->din[k].at[i] = num_exact(0);
}

static void give_all(struct oracle_call *c, const struct sides *s, const struct gradients *g)
{
	const int qk = same(&s->q, &s->k), kv = same(&s->k, &s->v), qv = same(&s->q, &s->v);
	give(c, &s->q, g->q, qk || qv);
	give(c, &s->k, g->k, qk || kv);
	give(c, &s->v, g->v, qv || kv);
	for (int64_t k = 0; c->in[C].at && WANT(C) && k < c->in[C].cols; k++)
		DIN(C, 0, k) = num_sum_get(U, &g->c[k]);
}

void oracle_attention_back(struct oracle_call *c)
{
	const struct sides s = sides_of(c);
	struct edge *edge = edges_of(c);
	struct gradients g = {sums(c->graph.rows, s.q.cols), sums(c->graph.cols, s.k.cols),
	                      sums(c->graph.cols, s.v.cols), sums(1, c->in[C].at ? c->in[C].cols : 0)};
	clear(c);
	for (int64_t head = 0; head < c->heads; head++) {
		const double limit = limit_of_ds(c, &s, head);
		for (int64_t i = 0; i < c->out.rows; i++) {
			if (!open_row(c, &s, i, head, edge))
				continue;
			const num D = derivatives(c, &s, i, head, limit, edge);
			for (int64_t e = c->graph.rowptr[i]; e < c->graph.rowptr[i + 1]; e++)
				add_edge(c, &s, e, head, &edge[e - c->graph.rowptr[i]], D, &g);
			if (c->score == ADD)
				num_sum_add(&g.q[i * s.q.cols + head], row_of_add(c, &s, i, head, edge, D));
		}
	}
	give_all(c, &s, &g);
	free(edge);
	free(g.q);
	free(g.k);
	free(g.v);
	free(g.c);
}
