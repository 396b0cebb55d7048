/* Normalisation of each column.
 *
 *     Y[:, c] = gamma[c] (X[:, c] - mean[c]) / sqrt(var[c] + eps) + beta[c]
 *
 * If the tape has fused a relu with it (batch_norm_fuse.c): Y = max(that, 0).
 *
 * TRAIN: mean and biased variance of the column; running <- (1 - momentum) running + momentum
 * (mean, var n / (n - 1)).  EVAL: the running statistics.
 *
 * Shapes    X, Y: [n, d].  gamma, beta: [1, d].  Running mean, variance: buffers [1, d].  Saved
 *           for the backward pass: mean, rstd f32.
 * Dtypes    X, Y: state.  Everything else is f32; Y is narrowed once.
 * Range     TRAIN: |x - mean| rstd <= sqrt(n - 1) in every column, so max|Y| <= sqrt(n)
 *           max|gamma| + max|beta| for every X. EVAL: no bound is known, because the running
 *           statistics may be of any size.
 *           Where n (2 max|X|)^2 overflows f32 there is no bound either, because f32 X is
 *           squared on the way.
 * Error     mean, variance: gamma_n(u32), for sums in two passes or merged moments. Then
 *           gamma_6(u32), and Y is narrowed once.
 * Gradient  xhat = (X - mean) rstd;  dgamma = sum dY xhat,  dbeta = sum dY,  dX = gamma rstd (dY
 *           - dbeta/n - xhat dgamma/n).
 *           mean|xhat| <= 1, so max|dgamma|, max|dbeta| <= n max|dY|.
 *           dX = gamma rstd (I - 11'/n - xhat xhat'/n) dY. The matrix does not lengthen any
 *           vector, because 1 and xhat are orthogonal and |xhat|^2 <= n. So max|dX| <= |gamma|
 *           rstd |dY|_2 <= sqrt(n) max|gamma| max|dY| / sqrt(eps), since rstd <= 1/sqrt(eps).
 *           Each of the three terms has a rounding error of gamma times its own size, which is
 *           at most sqrt(n) max|dY|.
 *           With relu, dY counts only where gamma xhat + beta > 0, which is recomputed in f32 by
 *           the operations of the forward pass.
 * Cost      3 n d elements (X once for the statistics);  8 n d flops.
 * Errors    HG_ERR_SHAPE gamma, beta or a buffer not [1, d];  HG_ERR_DTYPE gamma, beta not f32;
 *           HG_ERR_ARG an operand or a buffer is missing, momentum outside [0, 1], eps not
 *           positive.
 * Live      Where the rows of X are the nodes of a graph that changes (live.c), n is the number
 *           of its nodes; other rows of Y and dX are 0. The bounds hold, since n is not larger.
 * Source    Ioffe, Szegedy 2015. */
#include "autograd/about.h"
#include "autograd/opkit.h"
#include "autograd/param.h"
#include "halfgraph/ops_norm.h"
#include "precision/bound.h"

enum { X, GAMMA, BETA };
/* STATISTICS f32 [2, d]: the rows mean and rstd. GRADIENTS f32 [2, d]: dgamma and dbeta, if no
 * gradient tensor receives them. dX needs both. */
enum { STATISTICS, GRADIENTS };

static struct hg__batch_norm_attr attr_of(const struct hg__node *node)
{
	struct hg__batch_norm_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

static hg_status want_buffer(const struct hg__infer *s, const hg_param *buffer, const char *name)
{
	if (!buffer)
		return hg__infer_fail(s, HG_ERR_ARG, "%s is missing", name);
	if (!(buffer->flags & HG_PARAM_BUFFER))
		return hg__infer_fail(s, HG_ERR_ARG, "%s is a trained parameter, expected HG_PARAM_BUFFER",
		                      name);
	HG__TRY(hg__want_equal(s, name, "rows", buffer->master->mat.rows, "a row", "row", 1));
	return hg__want_equal(s, name, "columns", buffer->master->mat.cols, "X", "columns",
	                      s->in[X].cols);
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__batch_norm_attr attr = attr_of(s->node);
	HG__TRY(hg__want_attr(s, attr.momentum >= 0.0f && attr.momentum <= 1.0f, "momentum",
	                      (double)attr.momentum, "0 <= momentum <= 1"));
	HG__TRY(hg__want_attr(s, isfinite(attr.eps) && attr.eps > 0.0f, "eps", (double)attr.eps,
	                      "eps > 0"));
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_dtype(s, GAMMA, "gamma", HG_F32));
	HG__TRY(hg__want_dtype(s, BETA, "beta", HG_F32));
	HG__TRY(hg__want_shape(s, GAMMA, "gamma", 1, s->in[X].cols));
	HG__TRY(hg__want_shape(s, BETA, "beta", 1, s->in[X].cols));
	HG__TRY(want_buffer(s, s->node->buffer[0], "running_mean"));
	HG__TRY(want_buffer(s, s->node->buffer[1], "running_var"));
	s->out = hg__shape_of(s->in[X].rows, s->in[X].cols, s->state);
	s->aux[STATISTICS] = s->aux[GRADIENTS] = hg__shape_of(2, s->in[X].cols, HG_F32);
	s->grads = 1u << X | 1u << GAMMA | 1u << BETA;
	s->saves = HG__SAVE_IN(X) | HG__SAVE_IN(GAMMA) | HG__SAVE_AUX(STATISTICS) |
	           HG__BACK_AUX(GRADIENTS) | (attr.relu ? HG__SAVE_IN(BETA) : 0u);
	return HG_OK;
}

/* x - mean is squared, and n squares are added. */
static double squares(const struct hg__range *r)
{
	return 4.0 * (double)r->shape[X].rows * r->in[X].largest * r->in[X].largest;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const double xhat = r->mode == HG_TRAIN ? sqrt((double)r->shape[X].rows) : INFINITY;
	struct hg__known out = hg__at_most(
	    r->mode == HG_TRAIN ? hg__bound_mul(xhat, r->in[GAMMA].largest) + r->in[BETA].largest
	                        : INFINITY);
	hg__on_the_way(&how->rounding, r->mode == HG_TRAIN ? squares(r) : 0.0);
	hg__because(
	    how,
	    r->mode == HG_TRAIN
	        ? "standardised: root of %.0f rows %.3g x |gamma| %.3g + |beta| %.3g"
	        : "running statistics of %.0f rows say nothing: %.3g x |gamma| %.3g + |beta| %.3g",
	    (double)r->shape[X].rows, xhat, r->in[GAMMA].largest, r->in[BETA].largest);
	how->rounding.depth =
	    (double)r->shape[X].rows + 8.0; /* the statistics' sums, then eight operations */
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const double n = (double)r->shape[X].rows,
	             gain = r->in[GAMMA].largest / sqrt((double)attr_of(r->node).eps),
	             gamma = hg__gamma(n + 16.0, hg_dtype_get(HG_F32)->u);
	grad->largest[X] = hg__bound_mul((sqrt(n) + 2.0 * gamma) * gain, r->dout);
	grad->largest[GAMMA] = grad->largest[BETA] = hg__bound_mul(n, r->dout);
	grad->depth[X] = grad->depth[GAMMA] = n + 16.0;
	hg__on_the_way(&grad->rounding, fmax(squares(r), fmax(gain, grad->largest[GAMMA])));
}

static struct hg__batch_norm_args as_statistics(const struct hg__call *c)
{
	const struct hg__batch_norm_attr attr = attr_of(c->node);
	return (struct hg__batch_norm_args){.x = c->in[X],
	                                    .gamma = c->in[GAMMA],
	                                    .beta = c->in[BETA],
	                                    .y = c->out,
	                                    .mean = hg__mat_row(c->aux[STATISTICS], 0),
	                                    .rstd = hg__mat_row(c->aux[STATISTICS], 1),
	                                    .running_mean = c->buffer[0],
	                                    .running_var = c->buffer[1],
	                                    .momentum = attr.momentum,
	                                    .eps = attr.eps,
	                                    .train = c->mode == HG_TRAIN,
	                                    .relu = attr.relu,
	                                    .shift = c->shift[X],
	                                    .has_statistics = c->has_statistics,
	                                    .stop = c->stop,
	                                    .live = c->live};
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__batch_norm_args args = as_statistics(c);
	return HG__RUN(c, batch_norm, &args);
}

static void as_normalised(const struct hg__call *c, struct hg__normalise *normalise)
{
	*normalise = (struct hg__normalise){.mean = hg__mat_row(c->aux[STATISTICS], 0).data,
	                                    .rstd = hg__mat_row(c->aux[STATISTICS], 1).data,
	                                    .gamma = c->in[GAMMA].data,
	                                    .beta = c->in[BETA].data,
	                                    .live = c->live,
	                                    .relu = attr_of(c->node).relu};
}

static struct hg__batch_norm_back_args as_gradients(const struct hg__call *c)
{
	struct hg__mat none = c->in[X]; /* the shape of a gradient that is not needed */
	none.data = NULL;
	return (struct hg__batch_norm_back_args){
	    .x = c->in[X],
	    .gamma = c->in[GAMMA],
	    .mean = hg__mat_row(c->aux[STATISTICS], 0),
	    .rstd = hg__mat_row(c->aux[STATISTICS], 1),
	    .dy = c->dout,
	    .dx = c->din[X].data ? c->din[X] : none,
	    .dgamma = c->din[GAMMA].data ? c->din[GAMMA] : hg__mat_row(c->aux[GRADIENTS], 0),
	    .dbeta = c->din[BETA].data ? c->din[BETA] : hg__mat_row(c->aux[GRADIENTS], 1),
	    .beta = c->in[BETA],
	    .relu = attr_of(c->node).relu,
	    .shift = c->shift[X],
	    .has_sums = c->has_sums,
	    .live = c->live};
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__batch_norm_back_args args = as_gradients(c);
	return HG__RUN(c, batch_norm_back, &args);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__batch_norm_attr attr;
		double sigma;
		int64_t wider, gamma_cols; /* the last: columns too many */
		int integer, buffers;
	} rows[] = {
	    {"momentum 0.1", HG_OK, {0.1f, 1e-5f, 0}, 1.0, 0, 0, 0, 2},
	    {"momentum 1, one column more", HG_OK, {1.0f, 1e-5f, 0}, 1.0, 1, 0, 0, 2},
	    {"momentum 0, large eps", HG_OK, {0.0f, 0.5f, 0}, 1.0, 3, 0, 0, 2},
	    {"large values", HG_OK, {0.1f, 1e-5f, 0}, 2000.0, 8, 0, 0, 2},
	    {"relu", HG_OK, {0.1f, 1e-5f, 1}, 1.0, 0, 0, 0, 2},
	    {"relu, large values, three columns more", HG_OK, {0.5f, 1e-5f, 1}, 2000.0, 3, 0, 0, 2},
	    {"gamma has a column too many", HG_ERR_SHAPE, {0.1f, 1e-5f, 0}, 1.0, 0, 1, 0, 2},
	    {"X of integers", HG_ERR_DTYPE, {0.1f, 1e-5f, 0}, 1.0, 0, 0, 1, 2},
	    {"no running statistics", HG_ERR_ARG, {0.1f, 1e-5f, 0}, 1.0, 0, 0, 0, 0},
	    {"momentum 1.5", HG_ERR_ARG, {1.5f, 1e-5f, 0}, 1.0, 0, 0, 0, 2},
	    {"eps 0", HG_ERR_ARG, {0.1f, 0.0f, 0}, 1.0, 0, 0, 0, 2},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	/* running statistics are parameters, which cannot be empty */
	const int64_t d = (x->d > 0 ? x->d : 1) + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	s->buffers = rows[i].buffers;
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
	cost->bytes += hg__mat_bytes(&c->in[X]);
}

/* The statistics are those of the stored numbers. */
static int norm(const struct hg__call *c, const struct hg__element *e, struct hg__norm_at *at)
{
	const struct hg__batch_norm_attr attr = attr_of(c->node);
	*at = (struct hg__norm_at){1, e->col, c->shift[X], (double)attr.eps, (double)attr.momentum};
	return 1;
}

static const struct hg__about about = {
    .operand = {"x", "gamma", "beta"}, .critical = HG__VARIANCE, .noise = 0x1p-14, .norm = norm};

const struct hg__op hg__op_batch_norm = {
    .name = "batch_norm",
    .words = "batch norm",
    .min_in = 3,
    .max_in = 3,
    .rescaled = 1u << X,
    .same = 1u << X,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .as_normalised = as_normalised,
    .as_statistics = as_statistics,
    .as_gradients = as_gradients,
    .sample = sample,
    .cost = cost,
    .about = &about,
};

hg_var hg_batch_norm(hg_tape *tape, hg_var x, hg_var gamma, hg_var beta, hg_param *running_mean,
                     hg_param *running_var, float momentum, float eps)
{
	const hg_var in[] = {x, gamma, beta};
	hg_param *const buffers[] = {running_mean, running_var};
	const struct hg__batch_norm_attr attr = {momentum, eps, 0};
	return hg__record(tape, &hg__op_batch_norm, NULL, in, 3, buffers, &attr, sizeof attr);
}
