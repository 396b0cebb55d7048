#include <math.h>
#include <stdio.h>

#include "call.h"
#include "check.h"
#include "precision/bound.h"

/* hg-bench gemm: the three products of a linear layer on the nodes of a graph.
 *
 *    forward  Y = X W        [n, k] [k, d]
 *             dX = dY W^T    [n, d] [d, k]
 *             dW = X^T dY    [k, n] [n, d], f32
 *
 * Each is the op `linear` without the other gradients; dW is measured once more together with the
 * gradient of a bias. */

struct layer {
	struct hg__mat x, w, b, dy, y, dx, dw, db;
};

/* One element of C = op(A) op(B) in f64. */
static void expect(const struct copy *a, int trans_a, const struct copy *b, int trans_b, int64_t i,
                   int64_t j, int64_t inner, hg_dtype dtype, double *exact, double *bound)
{
	double sum = 0, magnitude = 0;
	for (int64_t k = 0; k < inner; k++) {
		const double term = (trans_a ? copy_at(a, k, i) : copy_at(a, i, k)) *
		                    (trans_b ? copy_at(b, j, k) : copy_at(b, k, j));
		sum += term;
		magnitude += fabs(term);
	}
	*exact = sum;
	*bound = hg__bound_sum(dtype, (double)inner + 1, magnitude, sum);
}

struct product {
	const char *name;
	struct hg__mat a, b, c;
	int trans_a, trans_b;
	int64_t inner;
};

/* Check elements drawn by the seed: 5,000, or fewer if each is a sum over all nodes, because 40 M
 * terms already take a fraction of a second. */
static hg_status product_check(struct bench *b, const struct product *p, struct check *check)
{
	struct copy x = {.capacity = 0}, y = {.capacity = 0}, c = {.capacity = 0};
	const int64_t most = 40000000 / (p->inner + 1), count = most > 5000 ? 5000 : most + 1;
	*check = check_new();
	hg_status status = copy_mat(b, p->a, &x);
	if (status == HG_OK)
		status = copy_mat(b, p->b, &y);
	for (int64_t k = 0; status == HG_OK && k < count; k++) {
		double exact, bound;
		const uint64_t seed = (uint64_t)b->options.seed + 98;
		const int64_t i =
		    k ? (int64_t)edge_below((uint64_t)p->c.rows, edge_uniform(seed, 2 * (uint64_t)k)) : 0;
		const int64_t j =
		    k ? (int64_t)edge_below((uint64_t)p->c.cols, edge_uniform(seed, 2 * (uint64_t)k + 1))
		      : 0;
		status = copy_rows(b, p->c, i, 1, &c);
		if (status < 0)
			break;
		expect(&x, p->trans_a, &y, p->trans_b, i, j, p->inner, p->c.dtype, &exact, &bound);
		check_number(check, i, j, copy_at(&c, 0, j), exact, bound);
	}
	copy_free(&x);
	copy_free(&y);
	copy_free(&c);
	return status;
}

static hg_status product_line(struct bench *b, const char *name, run_fn run, void *what,
                              const struct product *p)
{
	char shape[64] = "";
	struct result r = result_new(name, shape, b->policy->name);
	struct check check;
	snprintf(shape, sizeof shape, "[%lld,%lld]x[%lld,%lld]", (long long)p->c.rows,
	         (long long)p->inner, (long long)p->inner, (long long)p->c.cols);
	HG__TRY(measure(b, run, what, &r.ms));
	HG__TRY(spoil(b, p->c, 0));
	HG__TRY(product_check(b, p, &check));
	const double elements =
	    (double)p->a.rows * (double)p->a.cols + (double)p->b.rows * (double)p->b.cols;
	r.bytes = elements * (double)hg_dtype_size(p->a.dtype) +
	          (double)p->c.rows * (double)p->c.cols * (double)hg_dtype_size(p->c.dtype);
	r.flops = 2.0 * (double)p->c.rows * (double)p->c.cols * (double)p->inner;
	r.error = check.ratio;
	report_result(b, &r);
	check_report(b, &check, name, shape);
	return HG_OK;
}

struct algorithm_run {
	hg_context *ctx;
	struct hg__gemm_args args;
};
static hg_status run_algorithm(void *what)
{
	const struct algorithm_run *p = what;
	return p->ctx->backend->kernels->gemm.run(p->ctx, &p->args);
}

/* Measure the product with every algorithm that the library proposes, in its order: these are the
 * candidates of the kernel's rule. */
static hg_status algorithms_run(struct bench *b, const struct product *p)
{
	struct algorithm_run algorithm_run = {
	    .ctx = b->ctx,
	    .args = {.a = p->a, .b = p->b, .c = p->c, .trans_a = p->trans_a, .trans_b = p->trans_b}};
	for (algorithm_run.args.pick = 1; b->options.algorithms; algorithm_run.args.pick++) {
		char name[32] = "";
		const hg_status status = run_algorithm(&algorithm_run);
		if (status == HG_ERR_UNSUPPORTED) /* the end of the list */
			return HG_OK;
		HG__TRY(status);
		snprintf(name, sizeof name, "%s #%d", p->name, algorithm_run.args.pick);
		HG__TRY(product_line(b, name, run_algorithm, &algorithm_run, p));
	}
	return HG_OK;
}

static hg_status product_run(struct bench *b, struct call *call, run_fn run,
                             const struct product *p)
{
	HG__TRY(product_line(b, p->name, run, call, p));
	return algorithms_run(b, p);
}

static hg_status layer_run(struct bench *b, int64_t k, int64_t d, struct mats *mats)
{
	const hg_dtype state = b->policy->state;
	const int64_t n = b->csr.rows;
	struct layer l;
	struct call call;
	HG__TRY(mat_random(b, mats, state, n, k, 1, -1.0, 1.0, &l.x));
	HG__TRY(mat_random(b, mats, state, k, d, 2, -0.125, 0.125, &l.w));
	HG__TRY(mat_random(b, mats, state, n, d, 3, -1.0, 1.0, &l.dy));
	HG__TRY(mat_new(b, mats, state, n, d, &l.y));
	HG__TRY(mat_new(b, mats, state, n, k, &l.dx));
	HG__TRY(mat_random(b, mats, state, 1, d, 4, -1.0, 1.0, &l.b));
	HG__TRY(mat_new(b, mats, HG_F32, k, d, &l.dw));
	HG__TRY(mat_new(b, mats, HG_F32, 1, d, &l.db));
	HG__TRY(call_new(b, &hg__op_linear, 0, NULL, 0, &call));
	call_in(&call, 0, l.x);
	call_in(&call, 1, l.w);
	call.call.out = l.y;
	call.call.dout = l.dy;
	const struct product forward = {"gemm", l.x, l.w, l.y, 0, 0, k},
	                     dx = {"gemm dX", l.dy, l.w, l.dx, 0, 1, d},
	                     dw = {"gemm dW", l.x, l.dy, l.dw, 1, 0, n};
	HG__TRY(product_run(b, &call, call_forward, &forward));
	call.call.din[0] = l.dx;
	HG__TRY(product_run(b, &call, call_backward, &dx));
	call.call.din[0].data = NULL;
	call.call.din[1] = l.dw;
	HG__TRY(product_run(b, &call, call_backward, &dw));
	call_in(&call, 2, l.b);
	call.call.din[2] = l.db;
	return product_line(b, "gemm dW, db", call_backward, &call, &dw);
}

/* The layers of a two-layer model on this graph: in -> hidden -> classes. */
hg_status bench_gemm(struct bench *b)
{
	const int64_t own[] = {b->features}, *inputs = b->options.widths ? b->options.features : own;
	const int count = b->options.widths ? b->options.widths : 1;
	for (int p = 0; p < b->options.policies; p++)
		for (int i = 0; i <= count; i++) {
			struct mats mats = {.count = 0};
			b->policy = &b->options.policy[p];
			const int64_t k = i < count ? inputs[i] : b->options.hidden,
			              d = i < count ? b->options.hidden : b->classes;
			const hg_status status = k > 0 && d > 0 ? layer_run(b, k, d, &mats) : HG_OK;
			mats_free(&mats);
			HG__TRY(status);
		}
	return HG_OK;
}
