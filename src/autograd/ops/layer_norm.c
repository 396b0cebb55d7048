/* Normalisation of each row.
 *
 *     Y[i, :] = gamma (X[i, :] - mean[i]) / sqrt(var[i] + eps) + beta
 *
 * with the mean and the biased variance of the row.
 *
 * Shapes    X, Y: [n, d].  gamma, beta: [1, d].  Saved for the backward pass: mean, rstd f32 [n,
 *           1].
 * Dtypes    X, Y: state.  Everything else is f32; Y is narrowed once.
 * Range     |x - mean| rstd <= sqrt(d - 1) in every row, so max|Y| <= sqrt(d) max|gamma| +
 *           max|beta| for every X.
 * Error     mean, variance: gamma_d(u32), for sums in two passes. Then gamma_6(u32), and Y is
 *           narrowed once.
 * Gradient  xhat = (X - mean) rstd, g = gamma dY:  dX = rstd (g - mean(g) - xhat mean(g xhat))
 *           with means along the row,  dgamma = sum over rows of dY xhat,  dbeta = sum over rows
 *           of dY.
 *           max|dX| <= sqrt(d) max|gamma| max|dY| / sqrt(eps), as for batch_norm;  max|dgamma|
 *           <= n sqrt(d) max|dY|;  max|dbeta| <= n max|dY|.
 * Cost      2 n d elements (a row is read once into registers or cache);  8 n d flops.
 * Errors    HG_ERR_SHAPE gamma or beta not [1, d];  HG_ERR_DTYPE gamma, beta not f32;
 *           HG_ERR_ARG an operand is missing, eps not positive.
 * Source    Ba, Kiros, Hinton 2016. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "halfgraph/ops_norm.h"
#include "precision/bound.h"

enum { X, GAMMA, BETA };
/* STATISTICS f32: the mean of row i is element i, and its rstd is element n + i. GRADIENTS f32 [2,
 * d]: dgamma and dbeta, if no gradient tensor receives them. */
enum { STATISTICS, GRADIENTS };

static float eps_of(const struct hg__node *node)
{
	struct hg__layer_norm_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.eps;
}

static hg_status infer(struct hg__infer *s)
{
	const float eps = eps_of(s->node);
	HG__TRY(hg__want_attr(s, isfinite(eps) && eps > 0.0f, "eps", (double)eps, "eps > 0"));
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_dtype(s, GAMMA, "gamma", HG_F32));
	HG__TRY(hg__want_dtype(s, BETA, "beta", HG_F32));
	HG__TRY(hg__want_shape(s, GAMMA, "gamma", 1, s->in[X].cols));
	HG__TRY(hg__want_shape(s, BETA, "beta", 1, s->in[X].cols));
	s->out = hg__shape_of(s->in[X].rows, s->in[X].cols, s->state);
	s->aux[STATISTICS] = hg__shape_of(2 * s->in[X].rows, 1, HG_F32);
	s->aux[GRADIENTS] = hg__shape_of(2, s->in[X].cols, HG_F32);
	s->grads = 1u << X | 1u << GAMMA | 1u << BETA;
	s->saves =
	    HG__SAVE_IN(X) | HG__SAVE_IN(GAMMA) | HG__SAVE_AUX(STATISTICS) | HG__BACK_AUX(GRADIENTS);
	return HG_OK;
}

/* x - mean is squared, and d squares are added. */
static double squares(const struct hg__range *r)
{
	return 4.0 * (double)r->shape[X].cols * r->in[X].largest * r->in[X].largest;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = hg__at_most(
	    hg__bound_mul(sqrt((double)r->shape[X].cols), r->in[GAMMA].largest) + r->in[BETA].largest);
	hg__on_the_way(&how->rounding, squares(r));
	hg__because(how, "standardised: root of %lld columns x |gamma| %.3g + |beta| %.3g",
	            (long long)r->shape[X].cols, r->in[GAMMA].largest, r->in[BETA].largest);
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double n = (double)r->shape[X].rows, d = (double)r->shape[X].cols, root = sqrt(d),
	             rstd = 1.0 / sqrt((double)eps_of(r->node));
	const double g = hg__bound_mul(r->in[GAMMA].largest, r->dout),
	             gamma = hg__gamma(d + 16.0, hg_dtype_get(HG_F32)->u);
	grad->largest[X] = hg__bound_mul((root + 2.0 * gamma) * rstd, g);
	grad->largest[GAMMA] = hg__bound_mul(n * root, r->dout);
	grad->largest[BETA] = hg__bound_mul(n, r->dout);
	grad->depth[X] = d + 16.0;
	grad->depth[GAMMA] = n + d + 16.0;
	hg__on_the_way(&grad->rounding, fmax(squares(r), d * root * g));
}

/* Statistic `which` of all rows, [n, 1]: 0 is the mean, 1 is rstd. */
static struct hg__mat statistic(const struct hg__call *c, int64_t which)
{
	struct hg__mat mat = hg__mat_row(c->aux[STATISTICS], which * c->in[X].rows);
	mat.rows = c->in[X].rows;
	return mat;
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__layer_norm_args args = {.x = c->in[X],
	                                         .gamma = c->in[GAMMA],
	                                         .beta = c->in[BETA],
	                                         .y = c->out,
	                                         .mean = statistic(c, 0),
	                                         .rstd = statistic(c, 1),
	                                         .eps = eps_of(c->node)};
	return HG__RUN(c, layer_norm, &args);
}

static hg_status backward(const struct hg__call *c)
{
	struct hg__mat none = c->in[X]; /* the shape of a gradient that is not needed */
	none.data = NULL;
	const struct hg__layer_norm_back_args args = {
	    .x = c->in[X],
	    .gamma = c->in[GAMMA],
	    .mean = statistic(c, 0),
	    .rstd = statistic(c, 1),
	    .dy = c->dout,
	    .dx = c->din[X].data ? c->din[X] : none,
	    .dgamma = c->din[GAMMA].data ? c->din[GAMMA] : hg__mat_row(c->aux[GRADIENTS], 0),
	    .dbeta = c->din[BETA].data ? c->din[BETA] : hg__mat_row(c->aux[GRADIENTS], 1)};
	return HG__RUN(c, layer_norm_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__layer_norm_attr attr;
		double sigma;
		int64_t wider, gamma_cols; /* the last: columns too many */
		int integer;
	} rows[] = {
	    {"plain", HG_OK, {1e-5f}, 1.0, 0, 0, 0},
	    {"one column more", HG_OK, {1e-5f}, 1.0, 1, 0, 0},
	    {"large eps, three columns more", HG_OK, {0.5f}, 1.0, 3, 0, 0},
	    {"large values", HG_OK, {1e-5f}, 2000.0, 8, 0, 0},
	    {"gamma has a column too many", HG_ERR_SHAPE, {1e-5f}, 1.0, 0, 1, 0},
	    {"X of integers", HG_ERR_DTYPE, {1e-5f}, 1.0, 0, 0, 1},
	    {"eps 0", HG_ERR_ARG, {0.0f}, 1.0, 0, 0, 0},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_add(s, x->n, d, x->state, HG__FILL_NORMAL, rows[i].sigma, 1);
	hg__sample_normal(s, 1, d + rows[i].gamma_cols, HG_F32);
	hg__sample_normal(s, 1, d, HG_F32);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 8.0, cost);
}

/* The gradients of gamma and beta are sums over all rows, so no single row's statistics belong to
 * them. */
static int norm(const struct hg__call *c, const struct hg__element *e, struct hg__norm_at *at)
{
	*at = (struct hg__norm_at){c->in[X].rows + e->row, 0, 0, (double)eps_of(c->node), 0.0};
	return e->operand <= X;
}

static const struct hg__about about = {
    .operand = {"x", "gamma", "beta"}, .critical = HG__VARIANCE, .noise = 0x1p-14, .norm = norm};

const struct hg__op hg__op_layer_norm = {
    .name = "layer_norm",
    .words = "layer norm",
    .min_in = 3,
    .max_in = 3,
    .same = 1u << X,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_layer_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta, float eps)
{
	const hg_var in[] = {x, gamma, beta};
	const struct hg__layer_norm_attr attr = {eps};
	return hg__record(tape, &hg__op_layer_norm, NULL, in, 3, NULL, &attr, sizeof attr);
}
