/* The optimizers: grad_check inspects the gradients and decides whether the step is taken, and
 * optim_update then updates the master weights and narrows them to the working copies. */
#include "kernels/optim.h"

#include "kernels/cpu/map.h"

/* Adds the squares of grad / scale to *square, and returns the number of elements that are not
 * finite. The elements are visited row by row, so padding is not read. The sums are in f64: the
 * rows of a tensor in order, then the tensors in order. */
static int64_t check_gradient(const struct hg__optim_tensor *t, float scale, double *square)
{
	int64_t bad = 0;
	double sum = 0.0;
	for (int64_t r = 0; r < t->rows; r++) {
		const float *grad = t->grad + r * t->ld;
		double row = 0.0;
		for (int64_t c = 0; c < t->cols; c++) {
			const float g = grad[c] / scale;
			bad += !(fabsf(g) <= 0x1.fffffep127f);
			row += (double)g * (double)g;
		}
		sum += row;
	}
	*square += sum;
	return bad;
}

HG__NO_WORKSPACE(grad_check, optim_args)

hg_status HG__CPU(grad_check)(hg_context *ctx, const struct hg__optim_args *a)
{
	struct hg__step *step = a->step;
	(void)ctx;
	hg__step_begin(step, &a->config);
	if (step->stopped)
		return HG_OK;
	step->nonfinite = 0;
	step->first_nonfinite = -1;
	step->grad_sq = 0.0;
	for (int64_t i = 0; i < a->count; i++) {
		const int64_t bad = check_gradient(&a->tensors[i], step->in_force, &step->grad_sq);
		if (bad && step->first_nonfinite < 0)
			step->first_nonfinite = i;
		step->nonfinite += bad;
	}
	hg__step_decide(step, &a->config);
	return HG_OK;
}

typedef void (*update_fn)(const struct hg__rates *r, int64_t n, float *p, const float *grad,
                          float *m, float *v);

/* SGD:
 *
 *     g = clip grad / scale + decay p,  m = momentum m + g
 *     p -= lr * (nesterov ? g + momentum m : m)
 *
 * m starts at 0, so in the first step m = g. */
static void update_sgd(const struct hg__rates *r, int64_t n, float *p, const float *grad, float *m,
                       float *v)
{
	(void)v;
	for (int64_t i = 0; i < n; i++) {
		float g = grad[i] / r->scale * r->clip + r->decay * p[i];
		if (m) {
			m[i] = r->momentum * m[i] + g;
			g = r->nesterov ? g + r->momentum * m[i] : m[i];
		}
		p[i] -= r->lr * g;
	}
}

/* The moments of Adam, and the update:
 *
 *     m += (1 - beta1)(g - m),  v = beta2 v + (1 - beta2) g^2
 *     p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
static void update_moments(const struct hg__rates *r, int64_t n, float *p, const float *grad,
                           float *m, float *v, float decay, float shrink)
{
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		const hg__v16 p0 = hg__vload_n(p + i, count), m0 = hg__vload_n(m + i, count),
		              v0 = hg__vload_n(v + i, count);
		const hg__v16 g = hg__vload_n(grad + i, count) / r->scale * r->clip + decay * p0;
		const hg__v16 m1 = m0 + r->rest1 * (g - m0), v1 = r->beta2 * v0 + r->rest2 * g * g;
		hg__vstore_n(m + i, m1, count);
		hg__vstore_n(v + i, v1, count);
		hg__vstore_n(p + i, p0 * shrink - r->size * (m1 / (hg__vsqrt(v1) / r->root2 + r->eps)),
		             count);
	}
}

/* Adam has L2 regularisation: decay p is added to the gradient. */
static void update_adam(const struct hg__rates *r, int64_t n, float *p, const float *grad, float *m,
                        float *v)
{
	update_moments(r, n, p, grad, m, v, r->decay, 1.0f);
}

/* AdamW has decoupled decay: p is multiplied by 1 - lr * decay before the step. */
static void update_adamw(const struct hg__rates *r, int64_t n, float *p, const float *grad,
                         float *m, float *v)
{
	update_moments(r, n, p, grad, m, v, 0.0f, 1.0f - r->lr * r->decay);
}

static const update_fn updates[] = {
    [HG_SGD] = update_sgd, [HG_ADAM] = update_adam, [HG_ADAMW] = update_adamw};

static void refresh_working_row(const struct hg__optim_tensor *t, int64_t row)
{
	if (!t->working)
		return;
	const struct hg__mat working = {t->working, t->rows, t->cols, t->ld, t->working_dtype};
	hg__row_put(&working, row, 0, t->cols, t->master + row * t->ld);
}

/* Whether an element of this row exceeds the magnitude that the proofs assume for it (t->reach), or
 * is a NaN. */
static int row_exceeds_reach(const struct hg__optim_tensor *t, int64_t row)
{
	const float *p = t->master + row * t->ld;
	int exceeds = 0;
	for (int64_t c = 0; c < t->cols; c++)
		exceeds |= !(fabsf(p[c]) <= t->reach);
	return exceeds;
}

/* Updates one tensor. Returns whether it exceeds its reach. */
static int update_tensor(hg_context *ctx, const struct hg__optim_args *a,
                         const struct hg__optim_tensor *t)
{
	int exceeds = 0;
	const struct hg__rates rates = hg__rates_of(&a->config, &a->groups[t->group], a->step);
	const update_fn update = updates[a->config.kind];
#pragma omp parallel for num_threads(hg__team(ctx, 4 * t->rows * t->cols)) schedule(static) \
    reduction(|                                                                             \
              : exceeds)
	for (int64_t r = 0; r < t->rows; r++) {
		const int64_t at = r * t->ld;
		update(&rates, t->cols, t->master + at, t->grad + at, t->m ? t->m + at : NULL,
		       t->v ? t->v + at : NULL);
		refresh_working_row(t, r);
		exceeds |= row_exceeds_reach(t, r);
	}
	return exceeds;
}

HG__NO_WORKSPACE(optim_update, optim_args)

hg_status HG__CPU(optim_update)(hg_context *ctx, const struct hg__optim_args *a)
{
	HG__TRY(hg__has_number(ctx, "optim_update", "optimiser", (int)a->config.kind, HG__OPTIMISERS));
	for (int64_t i = 0; i < a->count && !hg__step_is_bad(a->step); i++)
		if (update_tensor(ctx, a, &a->tensors[i]) && i < a->step->outgrown)
			a->step->outgrown = (int32_t)i;
	hg__step_close(a->step, a->loss, a->notes, a->stops);
	return HG_OK;
}
