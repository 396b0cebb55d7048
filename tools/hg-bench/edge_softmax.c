#include <math.h>
#include <stdlib.h>

#include "call.h"
#include "check.h"
#include "precision/bound.h"

/* hg-bench edge-softmax: P[e, k] = exp(E[e, k] - max of the row) / sum over the row, and dE = P (dP
 * - sum over the row of P dP). */

/* The relative error of exp in f32, in units of u: 2 ulp by CUDA's table, of an ulp of at most 2 u.
 * The subtraction before it has an error of u (|E| + |max|), which exp turns into a relative
 * error. */
#define EXP_ROUNDINGS 4.0

/* Check one row and head of the forward pass. The bound is the relative error of each exp plus that
 * of the sum of `degree` terms. */
static void forward_row(const struct copy *e, const struct copy *p, int64_t begin, int64_t degree,
                        int64_t head, struct check *check)
{
	const double u32 = hg_dtype_get(HG_F32)->u;
	double most = -(double)INFINITY, far = 0, sum = 0;
	for (int64_t k = 0; k < degree; k++) {
		most = fmax(most, copy_at(e, k, head));
		far = fmax(far, fabs(copy_at(e, k, head)));
	}
	for (int64_t k = 0; k < degree; k++)
		sum += exp(copy_at(e, k, head) - most);
	const double one =
	    /* of the numerator, of each term of the denominator, of the sum, and of the quotient */
	    hg__gamma(2 * (EXP_ROUNDINGS + 2 * far) + (double)degree + 2, u32);
	for (int64_t k = 0; k < degree; k++) {
		const double exact = exp(copy_at(e, k, head) - most) / sum, bound = one * exact;
		check_number(check, begin + k, head, copy_at(p, k, head), exact,
		             bound + hg__bound_narrow(p->mat.dtype, exact + bound));
	}
}

/* Check dE, computed again from P and dP in memory: s = sum P dP has an error of gamma_degree sum|P
 * dP|; one difference and one product follow. */
static void backward_row(const struct copy *p, const struct copy *dp, const struct copy *de,
                         int64_t begin, int64_t degree, int64_t head, struct check *check)
{
	const double u32 = hg_dtype_get(HG_F32)->u;
	double sum = 0, magnitude = 0;
	for (int64_t k = 0; k < degree; k++) {
		const double term = copy_at(p, k, head) * copy_at(dp, k, head);
		sum += term;
		magnitude += fabs(term);
	}
	for (int64_t k = 0; k < degree; k++) {
		const double weight = copy_at(p, k, head), g = copy_at(dp, k, head),
		             exact = weight * (g - sum);
		const double bound = hg__gamma((double)degree + 4, u32) * weight * (fabs(g) + magnitude);
		check_number(check, begin + k, head, copy_at(de, k, head), exact,
		             bound + hg__bound_narrow(de->mat.dtype, fabs(exact) + bound));
	}
}

struct softmax {
	struct call call;
	struct hg__mat e, p, dp, de;
};

static hg_status rows_check(struct bench *b, const struct softmax *s, int backward,
                            struct check *check)
{
	struct copy in = {.capacity = 0}, grad = {.capacity = 0}, out = {.capacity = 0};
	hg_status status = HG_OK;
	*check = check_new();
	for (int64_t k = 0; status == HG_OK && k < check_rows(b, b->csr.rows); k++) {
		const int64_t row = check_row(b, b->csr.rows, k), begin = b->rowptr[row],
		              degree = b->rowptr[row + 1] - begin;
		status = copy_rows(b, backward ? s->p : s->e, begin, degree, &in);
		if (status == HG_OK)
			status = copy_rows(b, backward ? s->de : s->p, begin, degree, &out);
		if (status == HG_OK && backward)
			status = copy_rows(b, s->dp, begin, degree, &grad);
		for (int64_t head = 0; status == HG_OK && head < s->p.cols; head++) {
			if (backward)
				backward_row(&in, &grad, &out, begin, degree, head, check);
			else
				forward_row(&in, &out, begin, degree, head, check);
		}
	}
	copy_free(&in);
	copy_free(&grad);
	copy_free(&out);
	return status;
}

static hg_status direction_run(struct bench *b, struct softmax *s, int backward)
{
	const char *name = backward ? "edge-softmax back" : "edge-softmax";
	struct result r = result_new(name, "auto", b->policy->name);
	struct check check;
	HG__TRY(measure(b, backward ? call_backward : call_forward, &s->call, &r.ms));
	HG__TRY(
	    spoil(b, backward ? s->de : s->p, b->csr.rows <= CHECK_ROWS ? 0 : b->rowptr[b->longest]));
	HG__TRY(rows_check(b, s, backward, &check));
	r.heads = (int)s->p.cols;
	r.error = check.ratio;
	/* E is read for the maximum, the sum and the result; P and dP for the sum and the result */
	r.bytes = backward ? 5.0 * (double)(s->p.rows * s->p.cols) * (double)hg_dtype_size(s->p.dtype) +
	                         (double)(b->csr.rows + 1) * 8.0
	                   : call_cost(&s->call).bytes;
	report_result(b, &r);
	check_report(b, &check, name, "auto");
	return HG_OK;
}

static hg_status heads_run(struct bench *b, int64_t heads, struct mats *mats)
{
	const hg_dtype state = b->policy->state;
	struct softmax s;
	HG__TRY(mat_random(b, mats, state, b->csr.m, heads, 1, -4.0, 4.0, &s.e));
	HG__TRY(mat_random(b, mats, state, b->csr.m, heads, 2, -1.0, 1.0, &s.dp));
	HG__TRY(mat_new(b, mats, state, b->csr.m, heads, &s.p));
	HG__TRY(mat_new(b, mats, state, b->csr.m, heads, &s.de));
	HG__TRY(call_new(b, &hg__op_edge_softmax, 1, NULL, 0, &s.call));
	call_in(&s.call, 0, s.e);
	s.call.call.out = s.p;
	s.call.call.dout = s.dp;
	s.call.call.din[0] = s.de;
	HG__TRY(direction_run(b, &s, 0));
	return direction_run(b, &s, 1);
}

hg_status bench_edge_softmax(struct bench *b)
{
	static const int64_t usual[] = {1, 4};
	const int64_t *heads = b->options.head_counts ? b->options.heads : usual;
	const int count = b->options.head_counts ? b->options.head_counts : 2;
	for (int p = 0; p < b->options.policies; p++)
		for (int h = 0; h < count; h++) {
			struct mats mats = {.count = 0};
			b->policy = &b->options.policy[p];
			const hg_status status = heads_run(b, heads[h], &mats);
			mats_free(&mats);
			HG__TRY(status);
		}
	return HG_OK;
}
