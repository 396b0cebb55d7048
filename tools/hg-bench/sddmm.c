#include <math.h>
#include <stdlib.h>

#include "call.h"
#include "check.h"
#include "precision/bound.h"
#include "variants.h"
#include "variants/sddmm_variants.h"

/* hg-bench sddmm: for each edge e = (i, j), E[e, k] = <A[i, head k], B[j, head k]> by width, heads,
 * precision and variant, and E[e, k] = a[i, k] + b[j, k]. */

/* The result of one edge and head in f64, and its bound. */
struct edges_check;
typedef void (*expect_fn)(const struct edges_check *s, const struct copy *a, const struct copy *b,
                          int64_t i, int64_t j, int64_t head, double *exact, double *bound);

struct edges_check {
	struct hg__mat a, b, e;
	int64_t heads, width;
	int kernel; /* the variant of the kernel (variants.h) whose results they are; -1: none */
	expect_fn expect;
};

static void expect_dot(const struct edges_check *s, const struct copy *a, const struct copy *b,
                       int64_t i, int64_t j, int64_t head, double *exact, double *bound)
{
	double sum = 0, magnitude = 0;
	for (int64_t c = head * s->width; c < (head + 1) * s->width; c++) {
		const double term = copy_at(a, i, c) * copy_at(b, j, c);
		sum += term;
		magnitude += fabs(term);
	}
	*exact = sum;
	*bound = s->kernel < 0
	             ? hg__bound_sum(s->e.dtype, hg__depth_dot(s->a.dtype, (double)s->width) + 2,
	                             magnitude, sum)
	             : sddmm_variant_bound((enum sddmm_variant_id)s->kernel, s->e.dtype, s->width,
	                                   magnitude, sum);
}

static void expect_add(const struct edges_check *s, const struct copy *a, const struct copy *b,
                       int64_t i, int64_t j, int64_t head, double *exact, double *bound)
{
	const double x = copy_at(a, i, head), y = copy_at(b, j, head);
	*exact = x + y;
	*bound = hg__bound_sum(s->e.dtype, 1, fabs(x) + fabs(y), x + y);
}

/* The expected results of a row's edges: exact [degree, heads] and the bounds. */
static void row_expect(const struct edges_check *s, const struct copy *x, const struct copy *y,
                       const struct row *row, double *exact, double *bound)
{
#pragma omp parallel for schedule(static) if (row->degree * s->a.cols > 4096)
	for (int64_t k = 0; k < row->degree; k++)
		for (int64_t head = 0; head < s->heads; head++) {
			const int64_t at = k * s->heads + head;
			s->expect(s, x, y, row->index, row->col[k], head, &exact[at], &bound[at]);
		}
}

static hg_status row_check(struct bench *b, const struct edges_check *s, const struct copy *x,
                           const struct copy *y, struct row *row, struct copy *e,
                           struct check *check)
{
	HG__TRY(row_get(b, row->index, NULL, row));
	HG__TRY(copy_rows(b, s->e, row->begin, row->degree, e));
	const int64_t count = row->degree * s->heads;
	double *exact = calloc((size_t)count * 2 + 1, sizeof *exact), *bound = exact + count;
	if (!exact)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld edges",
		                (long long)row->degree);
	row_expect(s, x, y, row, exact, bound);
	for (int64_t at = 0; at < count; at++)
		check_number(check, row->begin + at / s->heads, at % s->heads,
		             copy_at(e, at / s->heads, at % s->heads), exact[at], bound[at]);
	free(exact);
	return HG_OK;
}

static hg_status check_edges(struct bench *b, const struct edges_check *s, struct check *check)
{
	struct copy x = {.capacity = 0}, y = {.capacity = 0}, e = {.capacity = 0};
	struct row row = {.capacity = 0};
	*check = check_new();
	hg_status status = copy_mat(b, s->a, &x);
	if (status == HG_OK)
		status = copy_mat(b, s->b, &y);
	for (int64_t k = 0; status == HG_OK && k < check_rows(b, b->csr.rows); k++) {
		row.index = check_row(b, b->csr.rows, k);
		status = row_check(b, s, &x, &y, &row, &e, check);
	}
	row_free(&row);
	copy_free(&x);
	copy_free(&y);
	copy_free(&e);
	return status;
}

/* What the times of one case are compared with. */
struct references {
	struct ceiling gather;
	double peer, automatic;
};

/* Time a run that computes the op's result, check it, report it. `what` is the call, or what the
 * variant of the kernel needs. */
static hg_status run_measure(struct bench *b, run_fn run, void *what, const struct call *call,
                             const struct edges_check *s, struct result *r,
                             struct references *references)
{
	struct check check;
	char note[64];
	/* NaN in every element shows elements that are not written */
	HG__TRY(b->ctx->backend->fill(b->ctx, s->e.data, 0xFF,
	                              (size_t)(s->e.rows * s->e.ld) * hg_dtype_size(s->e.dtype)));
	HG__TRY(measure(b, run, what, &r->ms));
	HG__TRY(spoil(b, s->e, b->csr.rows <= CHECK_ROWS ? 0 : b->rowptr[b->longest]));
	HG__TRY(check_edges(b, s, &check));
	const struct hg__cost cost = call_cost(call);
	r->features = s->a.cols;
	r->heads = (int)s->heads;
	r->bytes = cost.bytes;
	r->gather_ms = references->gather.ms;
	r->unordered_ms = references->gather.unordered;
	r->peer_ms = references->peer;
	r->error = check.ratio;
	if (s->kernel < 0)
		references->automatic = r->ms.median;
	else
		variant_note(references->automatic, 0, note, sizeof note, r);
	report_result(b, r);
	check_report(b, &check, r->op, r->variant);
	return HG_OK;
}

/* Measure the dot products by one variant, if it can compute this call. */
static hg_status variant_run(struct bench *b, const struct variant *v, struct call *call,
                             struct edges_check *s, struct references *references)
{
	struct result r = result_new("sddmm dot", v->name, b->policy->name);
	struct sddmm_variant_call direct = {
	    b->ctx,
	    (enum sddmm_variant_id)v->kernel,
	    {.csr = b->csr, .a = s->a, .b = s->b, .e = s->e, .heads = (int)s->heads, .scale = 1.0f}};
	s->kernel = v->kernel;
	if (v->kernel < 0)
		return run_measure(b, call_forward, call, call, s, &r, references);
	const char *why = sddmm_variant_refuses(b->ctx, &direct.args, direct.id);
	if (!why)
		return run_measure(b, sddmm_variant_run, &direct, call, s, &r, references);
	report_absent(b, r.op, r.variant, why);
	return HG_OK;
}

static hg_status dot_run(struct bench *b, int64_t cols, int64_t heads, struct mats *mats,
                         struct references *references)
{
	const struct hg__sddmm_dot_attr attr = {(int)heads, 1.0f};
	const struct variant_list *list = variants_of("sddmm");
	const hg_dtype state = b->policy->state;
	struct edges_check s = {.heads = heads, .width = cols / heads, .expect = expect_dot};
	struct call call;
	HG__TRY(mat_random(b, mats, state, b->csr.rows, cols, 1, -1.0, 1.0, &s.a));
	HG__TRY(mat_random(b, mats, state, b->csr.cols, cols, 2, -1.0, 1.0, &s.b));
	HG__TRY(mat_new(b, mats, state, b->csr.m, heads, &s.e));
	HG__TRY(call_new(b, &hg__op_sddmm_dot, 1, &attr, sizeof attr, &call));
	call_in(&call, 0, s.a);
	call_in(&call, 1, s.b);
	call.call.out = s.e;
	for (int i = 0; i < list->count; i++)
		if (variant_wanted(b, list, &list->variant[i]))
			HG__TRY(variant_run(b, &list->variant[i], &call, &s, references));
	return HG_OK;
}

static hg_status add_run(struct bench *b, int64_t heads, struct mats *mats)
{
	const hg_dtype state = b->policy->state;
	struct references none = {CEILING_NONE, (double)NAN, (double)NAN};
	struct result r = result_new("sddmm add", "auto", b->policy->name);
	struct edges_check s = {.heads = heads, .width = 1, .kernel = -1, .expect = expect_add};
	struct call call;
	HG__TRY(mat_random(b, mats, state, b->csr.rows, heads, 1, -1.0, 1.0, &s.a));
	HG__TRY(mat_random(b, mats, state, b->csr.cols, heads, 2, -1.0, 1.0, &s.b));
	HG__TRY(mat_new(b, mats, state, b->csr.m, heads, &s.e));
	HG__TRY(call_new(b, &hg__op_sddmm_add, 1, NULL, 0, &call));
	call_in(&call, 0, s.a);
	call_in(&call, 1, s.b);
	call.call.out = s.e;
	return run_measure(b, call_forward, &call, &call, &s, &r, &none);
}

static hg_status peer_measure(struct bench *b, struct peer_graph *graph,
                              const struct peer_variant *variant, int64_t cols, struct mats *mats,
                              double *best)
{
	struct edges_check s = {.heads = 1, .width = cols, .kernel = -1, .expect = expect_dot};
	struct peer *peer = NULL;
	struct check check;
	struct result r = result_new("sddmm dot", variant->name, hg_dtype_name(variant->dtype));
	HG__TRY(mat_random(b, mats, variant->dtype, b->csr.rows, cols, 1, -1.0, 1.0, &s.a));
	HG__TRY(mat_random(b, mats, variant->dtype, b->csr.cols, cols, 2, -1.0, 1.0, &s.b));
	HG__TRY(mat_new(b, mats, variant->dtype, b->csr.m, 1, &s.e));
	hg_status status = b->device->peers->sddmm(graph, variant, s.e.data, s.a, s.b, &peer);
	if (status == HG_OK)
		status = measure(b, b->device->peers->run, peer, &r.ms);
	b->device->peers->free(peer);
	if (status == HG_ERR_UNSUPPORTED) {
		report_absent(b, "sddmm dot", variant->name, hg_context_error(b->ctx));
		return HG_OK;
	}
	HG__TRY(status);
	HG__TRY(check_edges(b, &s, &check));
	r.features = cols;
	r.heads = 1;
	r.error = check.ratio;
	report_result(b, &r);
	*best = isnan(*best) ? r.ms.median : fmin(*best, r.ms.median);
	return HG_OK;
}

static hg_status measure_peers(struct bench *b, int64_t cols, double *best)
{
	struct peer_graph *graph = NULL;
	hg_status status = b->device->peers->open(b->ctx, &b->csr, b->rowptr, &graph);
	for (const struct peer_variant *variant = b->device->peers->sddmm_variants;
	     status == HG_OK && variant->name; variant++) {
		struct mats mats = {.count = 0};
		status = peer_measure(b, graph, variant, cols, &mats, best);
		mats_free(&mats);
	}
	b->device->peers->close(graph);
	return status;
}

/* The rows of B are gathered; a row of A is read once. */
static hg_status gather_run(struct bench *b, int64_t cols, struct ceiling *gather)
{
	struct mats mats = {.count = 0};
	struct hg__mat x;
	hg_status status = mat_random(b, &mats, b->policy->state, b->csr.cols, cols, 1, -1.0, 1.0, &x);
	if (status == HG_OK)
		status = ceiling(b, "sddmm", x, gather);
	mats_free(&mats);
	return status;
}

static hg_status dots_run(struct bench *b, int64_t cols, const int64_t *heads, int count,
                          double peer)
{
	struct ceiling gather = CEILING_NONE;
	HG__TRY(gather_run(b, cols, &gather));
	for (int h = 0; h < count; h++) {
		struct mats mats = {.count = 0};
		if (cols % heads[h]) {
			report_absent(b, "sddmm dot", "auto", "the heads do not divide the width");
			continue;
		}
		struct references references = {gather, heads[h] == 1 ? peer : (double)NAN, (double)NAN};
		const hg_status status = dot_run(b, cols, heads[h], &mats, &references);
		mats_free(&mats);
		HG__TRY(status);
	}
	return HG_OK;
}

static hg_status adds_run(struct bench *b, const int64_t *heads, int count)
{
	for (int h = 0; h < count; h++) {
		struct mats mats = {.count = 0};
		const hg_status status = add_run(b, heads[h], &mats);
		mats_free(&mats);
		HG__TRY(status);
	}
	return HG_OK;
}

hg_status bench_sddmm(struct bench *b)
{
	static const int64_t usual[] = {32, 64, 128}, usual_heads[] = {1, 4};
	const int64_t *widths = b->options.widths ? b->options.features : usual,
	              *heads = b->options.head_counts ? b->options.heads : usual_heads;
	const int count = b->options.widths ? b->options.widths : 3,
	          head_count = b->options.head_counts ? b->options.head_counts : 2;
	for (int i = 0; i < count; i++) {
		double peer = (double)NAN;
		if (b->options.peer)
			HG__TRY(measure_peers(b, widths[i], &peer));
		for (int p = 0; p < b->options.policies; p++) {
			b->policy = &b->options.policy[p];
			HG__TRY(dots_run(b, widths[i], heads, head_count, peer));
		}
	}
	/* the sums have no variants */
	for (int p = 0;
	     p < b->options.policies && !variant_of_kernel(variants_of("sddmm"), b->options.variant);
	     p++) {
		b->policy = &b->options.policy[p];
		HG__TRY(adds_run(b, heads, head_count));
	}
	return HG_OK;
}
