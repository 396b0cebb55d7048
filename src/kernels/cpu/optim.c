#include <math.h>

#include "kernels/cpu/map.h"
#include "precision/scaler.h"

/* Gradients are looked at in rows, so that padding stays out. Per tensor: rows in order, f64; then the tensors in order. */
static int64_t check_tensor(const struct hg__optim_tensor *t, float scale, double *square)
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

hg_status HG__CPU(grad_check)(hg_context *ctx, const struct hg__optim_args *a)
{
	struct hg__step *step = a->step;
	(void)ctx;
	step->nonfinite = 0;
	step->first_nonfinite = -1;
	step->grad_sq = 0.0;
	for (int64_t i = 0; i < a->count; i++) {
		const int64_t bad = check_tensor(&a->tensors[i], step->scale.scale, &step->grad_sq);
		if (bad && step->first_nonfinite < 0)
			step->first_nonfinite = i;
		step->nonfinite += bad;
	}
	return HG_OK;
}

/* The numbers of one step of one tensor. */
struct rates {
	float scale, lr, decay, momentum, beta1, beta2, rest1, rest2, eps, root2, size; /* rest = 1 - beta, root2 = sqrt(1 - beta2^t), size = lr / (1 - beta1^t) */
	int nesterov;
};

typedef void (*update_fn)(const struct rates *r, int64_t n, float *p, const float *grad, float *m, float *v);

/* g = grad / scale + decay p;  m = momentum m + g;  p -= lr * (nesterov ? g + momentum m : m). The first m is g, since m starts at 0. */
static void sgd(const struct rates *r, int64_t n, float *p, const float *grad, float *m, float *v)
{
	(void)v;
	for (int64_t i = 0; i < n; i++) {
		float g = grad[i] / r->scale + r->decay * p[i];
		if (m) {
			m[i] = r->momentum * m[i] + g;
			g = r->nesterov ? g + r->momentum * m[i] : m[i];
		}
		p[i] -= r->lr * g;
	}
}

/* m += (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g^2;  p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
static void moments(const struct rates *r, int64_t n, float *p, const float *grad, float *m, float *v, float decay, float shrink)
{
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const int count = (int)hg__min(HG__LANES, n - i);
		const hg__v16 p0 = hg__vload_n(p + i, count), m0 = hg__vload_n(m + i, count), v0 = hg__vload_n(v + i, count);
		const hg__v16 g = hg__vload_n(grad + i, count) / r->scale + decay * p0;
		const hg__v16 m1 = m0 + r->rest1 * (g - m0), v1 = r->beta2 * v0 + r->rest2 * g * g;
		hg__vstore_n(m + i, m1, count);
		hg__vstore_n(v + i, v1, count);
		hg__vstore_n(p + i, p0 * shrink - r->size * (m1 / (hg__vsqrt(v1) / r->root2 + r->eps)), count);
	}
}

/* L2: decay p joins the gradient. */
static void adam(const struct rates *r, int64_t n, float *p, const float *grad, float *m, float *v)
{
	moments(r, n, p, grad, m, v, r->decay, 1.0f);
}

/* Decoupled: p shrinks by lr * decay before the step. */
static void adamw(const struct rates *r, int64_t n, float *p, const float *grad, float *m, float *v)
{
	moments(r, n, p, grad, m, v, 0.0f, 1.0f - r->lr * r->decay);
}

static const update_fn updates[] = {[HG_SGD] = sgd, [HG_ADAM] = adam, [HG_ADAMW] = adamw};

static struct rates rates_of(const struct hg__optim_args *a, const struct hg__optim_group *group)
{
	const hg_optim_config *c = &a->config;
	const double t = (double)(a->step->scale.applied + 1), bias1 = 1.0 - pow((double)c->beta1, t), bias2 = 1.0 - pow((double)c->beta2, t);
	return (struct rates){.scale = a->step->scale.scale,
	                      .lr = group->lr,
	                      .decay = group->weight_decay,
	                      .momentum = c->momentum,
	                      .beta1 = c->beta1,
	                      .beta2 = c->beta2,
	                      .rest1 = (float)(1.0 - (double)c->beta1),
	                      .rest2 = (float)(1.0 - (double)c->beta2),
	                      .eps = c->eps,
	                      .root2 = (float)sqrt(bias2),
	                      .size = (float)((double)group->lr / bias1),
	                      .nesterov = c->nesterov};
}

static void refresh(const struct hg__optim_tensor *t, int64_t row)
{
	if (!t->working)
		return;
	const struct hg__mat working = {t->working, t->rows, t->cols, t->ld, t->working_dtype};
	hg__row_put(&working, row, 0, t->cols, t->master + row * t->ld);
}

hg_status HG__CPU(optim_update)(hg_context *ctx, const struct hg__optim_args *a)
{
	if (a->step->nonfinite)
		return HG_OK;
	for (int64_t i = 0; i < a->count; i++) {
		const struct hg__optim_tensor *t = &a->tensors[i];
		const struct rates rates = rates_of(a, &a->groups[t->group]);
		const update_fn update = updates[a->config.kind];
#pragma omp parallel for num_threads(hg__team(ctx, 4 * t->rows * t->cols)) schedule(static)
		for (int64_t r = 0; r < t->rows; r++) {
			const int64_t at = r * t->ld;
			update(&rates, t->cols, t->master + at, t->grad + at, t->m ? t->m + at : NULL, t->v ? t->v + at : NULL);
			refresh(t, r);
		}
	}
	return HG_OK;
}

hg_status HG__CPU(scale_update)(hg_context *ctx, const struct hg__optim_args *a)
{
	struct hg__step *step = a->step;
	(void)ctx;
	step->reason = (int32_t)hg__loss_scale_step(&step->scale, &step->config, step->nonfinite > 0);
	step->step++;
	if (a->notes)
		a->notes->note[a->notes->taken++ % HG__NOTES] = hg__step_note_of(step, *a->loss);
	return HG_OK;
}
