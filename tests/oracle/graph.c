#include "oracle/parts.h"

/* The factors r_i and s_j of a normalisation: 1, 1/d or 1/sqrt(d) of the degree of a row or column,
 * where a degree of 0 counts as 1; or of the weighted degree of a row, where 0 gives 0. They are
 * stored in f32. */
struct factors {
	num *r, *s;
	int none_above_1;
};
enum { LEFT = 1, RIGHT, BOTH, IN_DEGREE, WEIGHTED, WEIGHTED_MEAN };

static num inverse(double d)
{
	return num_round(ORACLE_U32, 1 / d, 0);
}

static num inverse_root(double d)
{
	return num_round(2 * ORACLE_U32, 1 / sqrt(d), 0);
}

static void count_edges(const struct oracle_call *c, struct factors *f)
{
	const struct oracle_graph *g = &c->graph;
	for (int64_t e = 0; e < g->m; e++) {
		f->r[g->dst[e]].v += 1;
		f->s[g->src[e]].v += 1;
	}
	for (int64_t j = 0; c->norm == IN_DEGREE && j < g->cols; j++)
		f->s[j] = f->r[j]; /* the degree of its row */
	for (int64_t i = 0; i < g->rows; i++) {
		const double d = fmax(f->r[i].v, 1.0);
		f->r[i] = c->norm == RIGHT                          ? inverse(d)
		          : c->norm == BOTH || c->norm == IN_DEGREE ? inverse_root(d)
		                                                    : num_exact(1);
	}
	for (int64_t j = 0; j < g->cols; j++) {
		const double d = fmax(f->s[j].v, 1.0);
		f->s[j] = c->norm == LEFT                           ? inverse(d)
		          : c->norm == BOTH || c->norm == IN_DEGREE ? inverse_root(d)
		                                                    : num_exact(1);
	}
}

static void add_weights(const struct oracle_call *c, struct factors *f)
{
	const struct oracle_graph *g = &c->graph;
	for (int64_t e = 0; e < g->m; e++)
		f->r[g->dst[e]].v += g->weight ? g->weight[e] : 1;
	for (int64_t i = 0; i < g->rows; i++) {
		const double d = f->r[i].v;
		f->r[i] = d == 0 ? num_exact(0) : c->norm == WEIGHTED ? inverse_root(d) : inverse(d);
		f->none_above_1 = f->none_above_1 && (float)f->r[i].v <= 1;
	}
	for (int64_t j = 0; j < g->cols; j++)
		f->s[j] = c->norm == WEIGHTED ? f->r[j] : num_exact(1);
}

static struct factors factors_new(const struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	struct factors f = {oracle_scratch(g->rows), oracle_scratch(g->cols), 1};
	for (int64_t i = 0; i < g->rows; i++)
		f.r[i] = num_exact(0);
	for (int64_t j = 0; j < g->cols; j++)
		f.s[j] = num_exact(0);
	if (c->norm == WEIGHTED || c->norm == WEIGHTED_MEAN)
		add_weights(c, &f);
	else
		count_edges(c, &f);
	return f;
}

static void factors_free(struct factors f)
{
	oracle_release(f.r);
	oracle_release(f.s);
}

/* The weight of edge e for column k (of `cols`): of the column's head in the operand, of the graph
 * itself (stored in the state type), or 1. */
static num edge_weight(const struct oracle_call *c, int64_t e, int64_t k, int64_t cols)
{
	if (c->in[1].at)
		return IN(1, e, k / (cols / c->in[1].cols));
	if (c->graph.weight)
		return num_store(c->is_half, num_exact(c->graph.weight[e]));
	return num_exact(1);
}

/* In f16 arithmetic every batch is scaled, and each scaling can have an absolute error of 2^-25. A
 * row has at most as many batches as edges, and two parts more. */
static num scaled_sum(const struct oracle_call *c, num factor, const struct num_sum *s)
{
	num y = num_mul(c->u, factor, num_sum_get(c->sum_u > 0 ? c->sum_u : c->u, s));
	if (c->u > ORACLE_U32)
		y.e += (double)(s->count + 2) * 0x1p-25 + 2 * c->u * fabs(factor.v) * s->mag;
	return y;
}

/* f_j x. One of the two factors of BOTH and IN, and of WEIGHTED if none is above 1, is multiplied
 * first, and the product is stored in the state type. Other factors are part of the factor of the
 * edge. */
static num scaled_term(const struct oracle_call *c, const struct factors *f, num weight, num factor,
                       num x)
{
	if (c->norm == BOTH || c->norm == IN_DEGREE ||
	    (c->norm == WEIGHTED && (f->none_above_1 || !c->is_half)))
		return num_mul(c->u, weight, num_store(c->is_half, num_mul(ORACLE_U32, factor, x)));
	return num_mul(c->u, num_mul(c->u, weight, factor), x);
}

/* Y[i, c] = alpha r_i sum_e w_e s_j X[j, c]. */
void oracle_spmm(struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	const struct factors f = factors_new(c);
	FOR_OUT(i, k)
	{
		struct num_sum s = {0};
		for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++) {
			const int32_t j = g->src[e];
			num_sum_add(&s,
			            scaled_term(c, &f, edge_weight(c, e, k, c->out.cols), f.s[j], IN(0, j, k)));
		}
		OUT(i, k) = scaled_sum(c, num_mul(c->u, num_exact(c->alpha), f.r[i]), &s);
	}
	factors_free(f);
}

/* Dot products on edges are summed in f32, whatever the accumulation of aggregations is. */
static double dot_u(const struct oracle_call *c)
{
	return c->is_half ? ORACLE_TENSOR : ORACLE_U32;
}

void oracle_spmm_back(struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	const struct factors f = factors_new(c);
	const int64_t cols = c->out.cols;
	for (int64_t k = 0; WANT(0) && k < cols; k++) {
		struct num_sum *s = calloc((size_t)g->cols + 1, sizeof *s);
		for (int64_t e = 0; s && e < g->m; e++) {
			const int32_t i = g->dst[e], j = g->src[e];
			num_sum_add(&s[j], scaled_term(c, &f, edge_weight(c, e, k, cols), f.r[i], DOUT(i, k)));
		}
		for (int64_t j = 0; s && j < g->cols; j++)
			DIN(0, j, k) = scaled_sum(c, num_mul(c->u, num_exact(c->alpha), f.s[j]), &s[j]);
		free(s);
	}
	for (int64_t e = 0; c->in[1].at && WANT(1) && e < g->m; e++)
		for (int64_t h = 0; h < c->in[1].cols; h++) {
			const int64_t d = cols / c->in[1].cols;
			const int32_t i = g->dst[e], j = g->src[e];
			struct num_sum s = {0};
			for (int64_t k = h * d; k < (h + 1) * d; k++)
				num_sum_add(&s, num_mul(ORACLE_U32, DOUT(i, k), IN(0, j, k)));
			const num rs = num_mul(ORACLE_U32, f.r[i], f.s[j]);
			DIN(1, e, h) = num_mul(ORACLE_U32, num_mul(ORACLE_U32, num_exact(c->alpha), rs),
			                       num_sum_get(dot_u(c), &s));
		}
	factors_free(f);
}

/* First edge of row i whose source attains the maximum of column k; -1 if the row is empty. */
static int64_t first_max(const struct oracle_call *c, int64_t i, int64_t k)
{
	int64_t best = -1;
	for (int64_t e = c->graph.rowptr[i]; e < c->graph.rowptr[i + 1]; e++)
		if (best < 0 || IN(0, c->graph.src[e], k).v > IN(0, c->graph.src[best], k).v)
			best = e;
	return best;
}

void oracle_spmm_max(struct oracle_call *c)
{
	FOR_OUT(i, k)
	{
		const int64_t e = first_max(c, i, k);
		OUT(i, k) = e < 0 ? num_exact(0) : IN(0, c->graph.src[e], k);
	}
}

void oracle_spmm_max_back(struct oracle_call *c)
{
	if (!WANT(0))
		return;
	for (int64_t k = 0; k < c->out.cols; k++) {
		struct num_sum *s = calloc((size_t)c->graph.cols + 1, sizeof *s);
		for (int64_t i = 0; s && i < c->out.rows; i++) {
			const int64_t e = first_max(c, i, k);
			if (e >= 0)
				num_sum_add(&s[c->graph.src[e]], DOUT(i, k));
		}
		for (int64_t j = 0; s && j < c->graph.cols; j++)
			DIN(0, j, k) = num_sum_get(c->u, &s[j]);
		free(s);
	}
}

/* E[e, h] = scale <A[i, head h], B[j, head h]>. */
void oracle_sddmm_dot(struct oracle_call *c)
{
	const int64_t d = c->in[0].cols / c->heads;
	FOR_OUT(e, h)
	{
		struct num_sum s = {0};
		for (int64_t k = h * d; k < (h + 1) * d; k++)
			num_sum_add(&s, num_mul(c->u, IN(0, c->graph.dst[e], k), IN(1, c->graph.src[e], k)));
		OUT(e, h) = num_mul(c->u, num_exact(c->alpha), num_sum_get(dot_u(c), &s));
	}
}

void oracle_sddmm_dot_back(struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	const int64_t d = c->in[0].cols / c->heads;
	for (int side = 0; side < 2; side++)
		for (int64_t k = 0; WANT(side) && k < c->in[0].cols; k++) {
			const int32_t *here = side ? g->src : g->dst, *there = side ? g->dst : g->src;
			const int64_t rows = c->in[side].rows;
			struct num_sum *s = calloc((size_t)rows + 1, sizeof *s);
			for (int64_t e = 0; s && e < g->m; e++)
				num_sum_add(&s[here[e]], num_mul(c->u, DOUT(e, k / d), IN(1 - side, there[e], k)));
			for (int64_t i = 0; s && i < rows; i++)
				DIN(side, i, k) = scaled_sum(c, num_exact(c->alpha), &s[i]);
			free(s);
		}
}

/* E[e, h] = f(a[i, h] + b[j, h]), where f is nothing or leaky relu. b may be the second half of the
 * columns of a. */
static int64_t together(const struct oracle_call *c)
{
	return c->in[0].cols == c->out.cols ? 0 : c->out.cols;
}

void oracle_sddmm_add(struct oracle_call *c)
{
	const int64_t at = together(c);
	FOR_OUT(e, h)
	{
		const num x =
		    num_add(c->u, IN(0, c->graph.dst[e], h), IN(at ? 0 : 1, c->graph.src[e], at + h));
		OUT(e, h) = !c->act || x.v > 0 ? x : num_mul(c->u, num_exact(c->slope), x);
	}
}

void oracle_sddmm_add_back(struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	const int64_t at = together(c);
	for (int side = 0; side < 2; side++) {
		const int operand = at ? 0 : side;
		for (int64_t h = 0; WANT(operand) && h < c->out.cols; h++) {
			struct num_sum *s = calloc((size_t)c->in[operand].rows + 1, sizeof *s);
			for (int64_t e = 0; s && e < g->m; e++) {
				const int positive =
				    IN(0, g->dst[e], h).v + IN(at ? 0 : 1, g->src[e], at + h).v > 0;
				num_sum_add(&s[side ? g->src[e] : g->dst[e]],
				            !c->act || positive ? DOUT(e, h)
				                                : num_mul(c->u, num_exact(c->slope), DOUT(e, h)));
			}
			for (int64_t i = 0; s && i < c->in[operand].rows; i++)
				DIN(operand, i, side * at + h) = num_sum_get(c->u, &s[i]);
			free(s);
		}
	}
}

/* P[e, h] = exp(E[e, h] - max of the row) / sum over the row. */
void oracle_edge_softmax(struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t h = 0; h < c->out.cols; h++) {
			double top = -INFINITY;
			struct num_sum s = {0};
			for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
				top = fmax(top, IN(0, e, h).v);
			for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++) {
				OUT(e, h) = num_exp(c->u, num_sub(c->u, IN(0, e, h), num_exact(top)));
				num_sum_add(&s, OUT(e, h));
			}
			/* The parts of a split row may be rescaled to their common maximum: one exp and one
			 * product more for each part, of which two matter. */
			num sum = num_sum_get(c->u, &s);
			sum.e += 16 * c->u * (1 + fabs(top)) * sum.v;
			for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
				OUT(e, h) = num_div(c->u, OUT(e, h), sum);
		}
}

/* dE = P (dP - sum over the row of P dP), from the stored P. */
void oracle_edge_softmax_back(struct oracle_call *c)
{
	const struct oracle_graph *g = &c->graph;
	for (int64_t i = 0; WANT(0) && i < g->rows; i++)
		for (int64_t h = 0; h < c->out.cols; h++) {
			struct num_sum s = {0};
			for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
				num_sum_add(&s, num_mul(c->u, SAVED(e, h), DOUT(e, h)));
			for (int64_t e = g->rowptr[i]; e < g->rowptr[i + 1]; e++)
				DIN(0, e, h) =
				    num_mul(c->u, SAVED(e, h), num_sub(c->u, DOUT(e, h), num_sum_get(c->u, &s)));
		}
}

/* Y[g, c] = sum, mean or maximum over the nodes of graph g. reduce: 0, 1, 2. */
static int64_t first_of(const struct oracle_call *c, int64_t b, int64_t k)
{
	int64_t best = -1;
	for (int64_t i = c->graph.ptr[b]; i < c->graph.ptr[b + 1]; i++)
		if (best < 0 || IN(0, i, k).v > IN(0, best, k).v)
			best = i;
	return best;
}

void oracle_readout(struct oracle_call *c)
{
	FOR_OUT(b, k)
	{
		struct num_sum s = {0};
		for (int64_t i = c->graph.ptr[b]; i < c->graph.ptr[b + 1]; i++)
			num_sum_add(&s, IN(0, i, k));
		const int64_t best = first_of(c, b, k);
		if (c->reduce == 2 || s.count == 0)
			OUT(b, k) = best < 0 ? num_exact(0) : IN(0, best, k);
		else
			OUT(b, k) = c->reduce == 1 ? num_mul(c->u, num_sum_get(c->u, &s),
			                                     num_round(c->u, 1.0 / (double)s.count, 0))
			                           : num_sum_get(c->u, &s);
	}
}

void oracle_readout_back(struct oracle_call *c)
{
	for (int64_t b = 0; WANT(0) && b < c->out.rows; b++)
		for (int64_t i = c->graph.ptr[b]; i < c->graph.ptr[b + 1]; i++)
			for (int64_t k = 0; k < c->out.cols; k++) {
				const num size = num_exact((double)(c->graph.ptr[b + 1] - c->graph.ptr[b]));
				if (c->reduce == 2)
					DIN(0, i, k) = first_of(c, b, k) == i ? DOUT(b, k) : num_exact(0);
				else
					DIN(0, i, k) = c->reduce == 1 ? num_mul(c->u, DOUT(b, k),
					                                        num_div(c->u, num_exact(1), size))
					                              : DOUT(b, k);
			}
}
