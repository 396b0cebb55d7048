/* The range rules of attention.
 *
 * Y   The weights of a row are divided by their own sum, so Y is a mean of mask V, whatever errors
 *     the weights have: |Y| <= kept |V|, kept = 1 / (1 - dropout).
 *
 * For the gradients, let M = kept d |dY| |V|, which bounds mask <G_i, V_j> and, because Y is such a
 * mean, D = <G_i, Y_i>. Let p be the softmax of the scores as they are computed. The derivatives
 * ds = p (mask <G, V> - D) of a row are deviations from their mean D under the weights p, so
 *
 *     sum over a row of |ds| <= M        (reached if half of the weight has M, half has -M)
 *     |ds| <= 2 p (1 - p) M <= M / 2
 *     |sum of ds over the edges of a row with Q + K > 0| <= M / 2, because this sum and that over
 *     the other edges of the row add up to 0
 *
 * The backward pass computes p' = exp(s - log_sum) from rounded numbers: p' <= (1 + a) p with
 * a = hg__attention_weight_error, and p' <= 1. It has errors of mask <G, V> and of D, of at most e
 * together, where D has that of Y as stored. So
 *
 *     sum over a row of |ds'| <= min((1 + a) (M + e), 2 degree (M + e))
 *     |ds'| <= min((1 + a) M / 2 + e, 2 M + e)
 *
 * and with DOT of halves the error of a ds' that is narrowed (narrow_derivatives). A p' that is
 * narrowed stays at most 1, which is a half. */
#include "autograd/ops/attention.h"
#include "precision/bound.h"

enum { Q = ATTENTION_Q, K = ATTENTION_K, V = ATTENTION_V, C = ATTENTION_C, BIAS = ATTENTION_BIAS };

static struct hg__attention_layout layout_of(const struct hg__range *r)
{
	return hg__attention_layout(hg__attention_attr(r->node).score, r->shape[K].present,
	                            r->shape[V].present);
}

static double largest(const struct hg__range *r, int side)
{
	return r->in[layout_of(r).side[side].operand].largest;
}

/* Columns a head of Q and K, or of V. */
static double columns(const struct hg__range *r, int side)
{
	const struct hg__attention_layout layout = layout_of(r);
	const int operand = layout.side[side].operand;
	const int64_t cols = r->shape[operand].cols / (operand == Q ? layout.parts : 1);
	return (double)(cols / hg__attention_attr(r->node).heads);
}

/* The largest sum of the weights of the edges of a row. */
static double row_weights(const struct hg__range *r)
{
	return hg__attention_attr(r->node).weighted ? r->facts.max_row_sum
	                                            : (double)r->facts.max_row_degree;
}

/* The least weight of an edge that counts. It was found when the op was recorded, so this call does
 * not fail. */
static double least_weight(const struct hg__range *r)
{
	float least, positive;
	if (!hg__attention_attr(r->node).weighted)
		return 1.0;
	return hg__graph_least_weight(r->node->graph, &least, &positive) < 0 ? 0.0 : (double)positive;
}

static double kept(const struct hg__range *r)
{
	return r->mode == HG_TRAIN ? (double)hg__attention_kept(hg__attention_attr(r->node).dropout)
	                           : 1.0;
}

/* What the roundings of f32 numbers near 0 can add to an element of Y. The sums of a row are
 * divided by the sum of its weights, which is at least that of the edge with the largest score,
 * about least_weight. */
static double near_zero(const struct hg__range *r)
{
	return (2.0 * (double)r->facts.max_row_degree + 4.0) * 0x1p-149 * kept(r) *
	       (1.0 + 1.0 / least_weight(r));
}

/* ---- scores ---- */

/* Cosines: squares are added up for the norms, and beta may meet the reciprocals of both norms
 * before it meets the product. */
static double cosine_score(const struct hg__range *r, struct hg__rounding *rounding)
{
	const double q = columns(r, SIDE_Q), widest = fmax(largest(r, SIDE_Q), largest(r, SIDE_K)),
	             beta = r->in[C].largest;
	hg__on_the_way(rounding, hg__bound_mul(fmax(beta, 1.0), hg__bound_mul(q * widest, widest)));
	hg__on_the_way(rounding, beta / (HG__ATTENTION_TINY * HG__ATTENTION_TINY));
	return beta * (1.0 + hg__gamma(2.0 * q + 16.0, hg_dtype_get(HG_F32)->u));
}

double hg__attention_score(const struct hg__range *r, struct hg__rounding *rounding)
{
	const struct hg__attention_attr a = hg__attention_attr(r->node);
	const double q = largest(r, SIDE_Q), k = largest(r, SIDE_K), width = columns(r, SIDE_Q);
	double score = q + k;
	if (a.score == HG_SCORE_COSINE)
		score = cosine_score(r, rounding);
	else if (a.score == HG_SCORE_ADD_V2)
		score = hg__bound_mul(width, hg__bound_mul(r->in[C].largest, q + k));
	else if (a.score == HG_SCORE_DOT) {
		const double dot = hg__bound_mul(width, hg__bound_mul(q, k));
		hg__on_the_way(rounding, dot);
		score = hg__bound_mul(fabs((double)a.scale), dot);
	}
	score += r->in[BIAS].largest;
	/* the difference of two scores */
	hg__on_the_way(rounding, 2.0 * fmax(q + k, score));
	return score;
}

/* Not the error of a weight (halfgraph/ops_attention.h), to which those of the scores belong: this
 * says how far p may be from p' of the same scores. exp is called with s - log_sum. Products with
 * log2(e), differences and the store of log_sum round a number of at most |s| + |log_sum| eight
 * times at most, and the sum behind it has a relative error of gamma of its depth. |log_sum| <= |s|
 * + |log(sum of weights)|. A backward pass may read log_sum with a relative error of 2^-20 = 16 u32
 * (cuda/attention_add_back.cu). */
double hg__attention_weight_error(const struct hg__range *r)
{
	struct hg__rounding unused = {0};
	const double s = hg__attention_score(r, &unused),
	             weights = log(fmax(row_weights(r), 1.0)) - log(fmin(least_weight(r), 1.0));
	return expm1(hg_dtype_get(HG_F32)->u *
	             (24.0 * (2.0 * s + weights) + 2.0 * (double)r->facts.max_row_degree + 64.0));
}

/* ---- forward ---- */

/* The sums of a row before they are divided. A kernel that looks for the maximum while it adds lets
 * a score exceed the one that it has subtracted by 8, so exp may be e^8 instead of 1. Kernels on
 * tensor cores scale weights up instead, but these and V are halves there: a sum of 2^40 products
 * of halves is below 2^72 and needs no bound. */
static double sums_of_row(const struct hg__range *r)
{
	return exp(8.0) * hg__bound_mul(row_weights(r) * kept(r), fmax(largest(r, SIDE_V), 1.0));
}

struct hg__known hg__attention_range(const struct hg__range *r, struct hg__derivation *how)
{
	const double v = largest(r, SIDE_V), degree = (double)r->facts.max_row_degree;
	struct hg__known out = hg__at_most(v > 0.0 ? kept(r) * v + near_zero(r) : 0.0);
	out.sign = r->in[layout_of(r).side[SIDE_V].operand].sign;
	(void)hg__attention_score(r, &how->rounding);
	hg__on_the_way(&how->rounding, sums_of_row(r));
	how->rounding.depth = 2.0 * degree + 32.0;
	hg__because(how, "a mean of |V| %.3g, 1/(1 - dropout) = %.3g", v, kept(r));
	return out;
}

/* ---- backward ---- */

/* Bounds on ds, by the names at the top. */
struct derivatives {
	double m;                  /* M */
	double e;                  /* of mask <G, V> - D */
	double weight_error, plus; /* a;  the error of Y+ and of p+, as a share of M */
	double edge, row;          /* on |ds'|, and on its sum over a row */
	double column;             /* on its sum over a column */
};

/* Whether a kernel may narrow weights before it multiplies halves by them. */
static int has_half_weights(const struct hg__range *r)
{
	const hg_score score = hg__attention_attr(r->node).score;
	return (score == HG_SCORE_ADD || score == HG_SCORE_DOT) && r->shape[Q].dtype == HG_F16;
}

/* DOT of halves may narrow ds to a half before it meets K or Q (kernels/attention.h). Then it is
 * multiplied by a power of two of at least 2^14 / limit, where limit = 9/4 kept max |G| max |V|
 * with its own roundings is below 5/2 M (cuda/attention_graphs_back.cu). Rounding to nearest adds
 * 2^-11 of ds, or near 0 half of the least half, 2^-25 limit / 2^14 < 2^-37 M. */
static void narrow_derivatives(const struct hg__range *r, struct derivatives *ds)
{
	const double near_zero = 0x1p-37 * ds->m;
	if (hg__attention_attr(r->node).score != HG_SCORE_DOT || !has_half_weights(r))
		return;
	ds->edge += 0x1p-11 * ds->edge + near_zero;
	ds->row += 0x1p-11 * ds->row + (double)r->facts.max_row_degree * near_zero;
}

static struct derivatives derivatives_of(const struct hg__range *r)
{
	const double u32 = hg_dtype_get(HG_F32)->u, d = columns(r, SIDE_V),
	             degree = (double)r->facts.max_row_degree, v = largest(r, SIDE_V),
	             state = hg_dtype_get(r->shape[Q].dtype)->u,
	             stored = near_zero(r) + (r->shape[Q].dtype == HG_F16 ? 0x1p-25 : 0.0),
	             longest = fmax(degree, (double)r->facts.max_col_degree),
	             sums = hg__gamma(2.0 * longest + 5.0 * d + 64.0, u32);
	struct derivatives ds = {.weight_error = hg__attention_weight_error(r)};
	if (r->dout == 0.0 || v == 0.0)
		return ds;
	/* mask dY and products of two numbers may be rounded near 0 */
	ds.m = hg__bound_mul(kept(r) * d, hg__bound_mul(r->dout, v)) +
	       hg__underflow(r->shape[Q].dtype, 4.0 * d, kept(r) * (1.0 + v + r->dout));
	/* Weights that differ by a share a from p change their mean by at most 2 a, and it stays a
	 * mean. Weights of ADD and DOT may be narrowed (kernels/attention.h): a grows by 2^-11, and by
	 * 2^-36 for each edge of a small graph. */
	ds.plus = fmin(2.0 * ds.weight_error, 2.0) + (has_half_weights(r) ? 0x1.0001p-10 : 0.0) +
	          state + sums;
	/* D may be read with a relative error of 2^-12 where the state is f16
	 * (cuda/attention_add_back.cu). */
	ds.e = hg__bound_mul(ds.plus + sums + (r->shape[Q].dtype == HG_F16 ? 0x1p-12 : 0.0), ds.m) +
	       d * r->dout * stored;
	ds.edge = fmin((1.0 + ds.weight_error) * 0.5, 2.0) * ds.m + ds.e;
	ds.row = fmin((1.0 + ds.weight_error) * (ds.m + ds.e), 2.0 * degree * (ds.m + ds.e));
	narrow_derivatives(r, &ds);
	ds.column = hg__bound_mul((double)r->facts.max_col_degree, ds.edge);
	return ds;
}

/* dQ of ADD. Y+ and p+ have errors like that of Y, and D has one. However large these are, Y+ is at
 * most kept |V|, and p+ is at most 1. With halves dQ may be a sum of ds' instead. */
static double back_sign(const struct hg__range *r, const struct derivatives *ds)
{
	const double slope = (double)hg__attention_attr(r->node).slope, a = ds->weight_error,
	             of_plus =
	                 fmin(0.5 * ds->m + 2.0 * (ds->e + ds->plus * ds->m), 2.0 * (ds->m + ds->e)),
	             of_ds = fmin((0.5 + a) * ds->m + (1.0 + a) * ds->e, ds->row);
	return (1.0 - slope) * (has_half_weights(r) ? fmax(of_plus, of_ds) : of_plus);
}

/* 1 / |Q_i| or 1 / |K_j| of a cosine. */
static double over_norm(const struct hg__range *r, int side)
{
	const double least = r->in[layout_of(r).side[side].operand].least;
	return 1.0 / fmax(sqrt(columns(r, side)) * least * (1.0 - 0x1p-20), HG__ATTENTION_TINY);
}

/* The bounds on dQ, dK and dV, each as if it had a matrix of its own. */
static void back_sides(const struct hg__range *r, const struct derivatives *ds, double side[SIDES],
                       struct hg__rounding *rounding)
{
	const struct hg__attention_attr a = hg__attention_attr(r->node);
	const double q = largest(r, SIDE_Q), k = largest(r, SIDE_K),
	             degree = (double)r->facts.max_row_degree,
	             col_degree = (double)r->facts.max_col_degree,
	             tiny = r->shape[Q].dtype == HG_F32 ? 0x1p-148 : 0.0;
	double factor[2] = {1.0, 1.0}, other[2] = {1.0, 1.0};
	if (a.score == HG_SCORE_DOT) {
		other[SIDE_Q] = k;
		other[SIDE_K] = q;
		factor[SIDE_Q] = factor[SIDE_K] = fabs((double)a.scale);
	} else if (a.score == HG_SCORE_COSINE) {
		/* |k' - t q'| <= 1, with the roundings of both norms and of t */
		other[SIDE_Q] = other[SIDE_K] =
		    1.0 + 4.0 * hg__gamma(2.0 * columns(r, SIDE_Q) + 32.0, hg_dtype_get(HG_F32)->u);
		factor[SIDE_Q] = hg__bound_mul(r->in[C].largest, over_norm(r, SIDE_Q));
		factor[SIDE_K] = hg__bound_mul(r->in[C].largest, over_norm(r, SIDE_K));
		/* ds may meet beta and the reciprocal of a norm before it meets the vector */
		hg__on_the_way(rounding,
		               hg__bound_mul(fmax(r->in[C].largest, 1.0) * fmax(ds->row, ds->column),
		                             fmax(over_norm(r, SIDE_Q), over_norm(r, SIDE_K))));
	} else if (a.score == HG_SCORE_ADD_V2)
		factor[SIDE_Q] = factor[SIDE_K] = r->in[C].largest;
	const double row = hg__bound_mul(other[SIDE_Q], ds->row) + tiny * degree,
	             column = hg__bound_mul(other[SIDE_K], ds->column) + tiny * col_degree;
	hg__on_the_way(rounding, fmax(row, column));
	side[SIDE_Q] = a.score == HG_SCORE_ADD ? back_sign(r, ds) : hg__bound_mul(factor[SIDE_Q], row);
	side[SIDE_K] = hg__bound_mul(factor[SIDE_K], column);
	side[SIDE_V] = hg__bound_mul(col_degree * kept(r), r->dout) + tiny * col_degree * kept(r);
	hg__on_the_way(rounding, fmax(side[SIDE_Q], fmax(side[SIDE_K], side[SIDE_V])));
}

/* Where several sides are the same columns, their gradients are added up, and each may be narrowed
 * before (kernels/attention.h). Sides that are different columns of the operand have gradients in
 * different columns. */
static double largest_sum(const struct hg__range *r, const double side[SIDES], int operand)
{
	const struct hg__attention_layout layout = layout_of(r);
	double part[SIDES] = {0.0}, most = 0.0;
	for (int i = 0; i < SIDES; i++)
		if (layout.side[i].operand == operand) {
			double *sum = &part[layout.side[i].part];
			*sum += *sum > 0.0 ? 0x1p-11 * *sum + 0x1p-24 + side[i] : side[i];
			most = fmax(most, *sum);
		}
	return most;
}

/* dc: sums over all edges, of one head or of all. */
static double back_c(const struct hg__range *r, const struct derivatives *ds)
{
	const struct hg__attention_attr a = hg__attention_attr(r->node);
	const double rows = (double)(hg_graph_rows(r->node->graph) - r->facts.empty_rows),
	             sums = hg__bound_mul(rows, ds->row), f = largest(r, SIDE_Q) + largest(r, SIDE_K),
	             together = (double)(a.heads / r->shape[C].cols);
	if (a.score == HG_SCORE_ADD_V2)
		return hg__bound_mul(sums, f);
	return sums * fmax(together, 1.0) *
	       (1.0 + hg__gamma(2.0 * columns(r, SIDE_Q) + 16.0, hg_dtype_get(HG_F32)->u));
}

void hg__attention_range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const struct derivatives ds = derivatives_of(r);
	const double degree = fmax((double)r->facts.max_row_degree, (double)r->facts.max_col_degree),
	             depth = 2.0 * degree + 3.0 * (columns(r, SIDE_Q) + columns(r, SIDE_V)) + 64.0;
	double side[SIDES];
	(void)hg__attention_score(r, &grad->rounding);
	hg__on_the_way(&grad->rounding, sums_of_row(r));
	/* the sums over a column of p mask <G, V> and of p D, whose difference is that of ds */
	hg__on_the_way(&grad->rounding, 2.0 * degree * (ds.m + ds.e));
	back_sides(r, &ds, side, &grad->rounding);
	for (int i = Q; i <= V; i++) {
		grad->largest[i] = largest_sum(r, side, i);
		grad->depth[i] = depth;
	}
	if (r->shape[C].present) {
		grad->largest[C] = back_c(r, &ds);
		grad->depth[C] = depth + (double)hg_graph_edges(r->node->graph) *
		                             (double)hg__attention_attr(r->node).heads;
	}
	if (r->shape[BIAS].present) {
		grad->largest[BIAS] = ds.edge;
		grad->depth[BIAS] = depth;
	}
}
