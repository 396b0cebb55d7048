#include "check_attention.h"

#include <math.h>
#include <stdlib.h>

#include "attention_host.h"
#include "precision/bound.h"

/* Check the forward pass of attention in f64. All weights are non-negative, so a sum of them, and
 * every quotient of two such sums, has a relative error
 *
 *     R = (1 + gamma_K(u32)) exp(2 error of a score) - 1
 *     K = 2 exp_roundings + 14 degree + 16
 *
 * where each edge of a row costs 7 roundings in the numerator and as many in the denominator: its
 * addition, and the factor exp(old maximum - new maximum) that it may give to the sums so far (4
 * for exp, 2 for the products; the roundings of its argument add up to those of the whole range).
 * So
 *
 *     |Y - exact| <= R sum mask p |V|, narrowed once
 *     |log of the sum - exact| <= R + 8 u (1 + far + log degree).
 *
 * Where weights may be halves (half_weights), so is the sum that divides them: with both, R of Y
 * grows by 2^-10, and each weight of a row by at most 2^-35 beside that. */

struct row_terms {
	double *p; /* [degree] weight exp(s - max), then divided by their sum and times the mask */
	unsigned char *positive;
	double *error, *size; /* [degree] of the scores: their errors, and their magnitudes */
	int64_t capacity;
};

struct results {
	struct copy y, log_sum, plus;
};

static hg_status terms_room(struct bench *b, struct row_terms *t, int64_t degree)
{
	if (degree <= t->capacity)
		return HG_OK;
	free(t->p);
	free(t->positive);
	t->p = calloc((size_t)degree * 3, sizeof *t->p);
	t->positive = calloc((size_t)degree, 1);
	t->capacity = t->p && t->positive ? degree : 0;
	t->error = t->p ? t->p + degree : NULL;
	t->size = t->p ? t->p + 2 * degree : NULL;
	return t->capacity ? HG_OK
	                   : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld edges",
	                              (long long)degree);
}

static double most(const double *x, int64_t count, double least)
{
	for (int64_t e = 0; e < count; e++)
		least = fmax(least, x[e]);
	return least;
}

static void scores_make(const struct attention_host *host, const struct row *row, int64_t head,
                        struct row_terms *t)
{
#pragma omp parallel for schedule(static) if (row->degree * host->q_cols > 4096)
	for (int64_t e = 0; e < row->degree; e++) {
		const struct edge_score score = edge_score_of(host, row->index, row->col[e], head);
		t->p[e] = score.s;
		t->positive[e] = (unsigned char)score.positive;
		t->error[e] = score.error;
		t->size[e] = fabs(score.s);
	}
}

/* The softmax of a row: the weights, the log of their sum, and the part of positive edges. */
struct row_softmax {
	double log_sum, positive, relative, far;
};
static struct row_softmax softmax_make(const struct attention_host *host, const struct row *row,
                                       int64_t head, struct row_terms *t)
{
	const int64_t degree = row->degree;
	const double top = most(t->p, degree, -(double)INFINITY), far = most(t->size, degree, 0);
	double sum = 0, positive = 0;
	for (int64_t e = 0; e < degree; e++) {
		t->p[e] = (double)row->weight[e] * exp(t->p[e] - top);
		sum += t->p[e];
		positive += t->positive[e] ? t->p[e] : 0;
	}
	for (int64_t e = 0; e < degree; e++)
		t->p[e] *= edge_mask(host, row->index, row->col[e], head) / sum;
	const double roundings = 2 * exp_roundings(far) + 14 * (double)degree + 16;
	return (struct row_softmax){.log_sum = top + log(sum),
	                            .positive = positive / sum,
	                            .relative = relative_error(roundings, most(t->error, degree, 0), 2),
	                            .far = far};
}

static void softmax_check(const struct attention_host *host, const struct row *row, int64_t head,
                          const struct row_softmax *s, const struct results *found,
                          struct check *check)
{
	const double u = hg_dtype_get(HG_F32)->u;
	check_number(check, row->index, head, copy_at(&found->log_sum, 0, head), s->log_sum,
	             s->relative + 8 * u * (1 + s->far + log((double)row->degree)));
	if (host->of.score == HG_SCORE_ADD)
		check_number(check, row->index, host->heads + head,
		             copy_at(&found->log_sum, 0, host->heads + head), s->positive,
		             s->relative * (s->positive + WEIGHT_FLUSHED));
}

/* Column c of Y, or of `plus` if only the positive edges count. half: see half_weights. */
static void column_check(const struct attention_host *host, const struct row *row, int64_t c,
                         const struct row_terms *t, int only_positive, double relative, double half,
                         const struct copy *found, struct check *check)
{
	const double kept = 1.0 / (1.0 - (double)host->of.dropout.p),
	             flushed = WEIGHT_FLUSHED + (half > 0 ? kept * 0x1p-35 / relative : 0);
	double exact = 0, magnitude = 0;
	for (int64_t e = 0; e < row->degree; e++) {
		const double v = (double)host->v.x[row->col[e] * host->v.cols + c];
		if (only_positive && !t->positive[e])
			continue;
		exact += t->p[e] * v;
		magnitude += (t->p[e] + flushed) * fabs(v);
	}
	const double error = (relative + (1 + relative) * 2 * half) * magnitude;
	check_number(check, row->index, c, copy_at(found, 0, c), exact,
	             error + hg__bound_narrow(found->mat.dtype, fabs(exact) + error));
}

/* A row without edges: Y = 0, and a sum of 0 has the log -inf. */
static void empty_check(const struct attention_host *host, const struct row *row,
                        const struct results *found, struct check *check)
{
	for (int64_t c = 0; c < host->v.cols; c++) {
		check_number(check, row->index, c, copy_at(&found->y, 0, c), 0, 0);
		if (found->plus.mat.data)
			check_number(check, row->index, c, copy_at(&found->plus, 0, c), 0, 0);
	}
	for (int64_t head = 0; head < host->heads; head++) {
		const double log_sum = copy_at(&found->log_sum, 0, head);
		check_number(check, row->index, head, isinf(log_sum) && log_sum < 0 ? 0 : 1, 0, 0);
		if (host->of.score == HG_SCORE_ADD)
			check_number(check, row->index, host->heads + head,
			             copy_at(&found->log_sum, 0, host->heads + head), 0, 0);
	}
}

static hg_status row_check(struct bench *b, const struct attention_host *host, double half,
                           const struct row *row, struct row_terms *t, const struct results *found,
                           struct check *check)
{
	if (!row->degree) {
		empty_check(host, row, found, check);
		return HG_OK;
	}
	HG__TRY(terms_room(b, t, row->degree));
	for (int64_t head = 0; head < host->heads; head++) {
		scores_make(host, row, head, t);
		const struct row_softmax s = softmax_make(host, row, head, t);
		softmax_check(host, row, head, &s, found, check);
		for (int64_t c = head * host->v_cols; c < (head + 1) * host->v_cols; c++) {
			column_check(host, row, c, t, 0, s.relative, half, &found->y, check);
			if (found->plus.mat.data)
				column_check(host, row, c, t, 1, s.relative, half, &found->plus, check);
		}
	}
	return HG_OK;
}

static hg_status results_get(struct bench *b, const struct hg__attention_args *a, int64_t row,
                             struct results *found)
{
	HG__TRY(copy_rows(b, a->y, row, 1, &found->y));
	HG__TRY(copy_rows(b, a->log_sum, row, 1, &found->log_sum));
	return a->plus.data ? copy_rows(b, a->plus, row, 1, &found->plus) : HG_OK;
}

static hg_status rows_check(struct bench *b, const struct hg__attention_args *a,
                            const struct attention_host *host, struct check *check)
{
	struct results found = {.y = {.capacity = 0}};
	struct row_terms terms = {.capacity = 0};
	struct row row = {.capacity = 0};
	hg_status status = HG_OK;
	for (int64_t k = 0; status == HG_OK && k < check_rows(b, b->csr.rows); k++) {
		status = edges_get(b, host, &b->csr, b->rowptr, check_row(b, b->csr.rows, k), &row);
		if (status == HG_OK)
			status = results_get(b, a, row.index, &found);
		if (status == HG_OK)
			status = row_check(b, host, half_weights(host, &b->csr), &row, &terms, &found, check);
	}
	copy_free(&found.y);
	copy_free(&found.log_sum);
	copy_free(&found.plus);
	free(terms.p);
	free(terms.positive);
	row_free(&row);
	return status;
}

hg_status check_attention(struct bench *b, const struct hg__attention_args *a, struct check *check)
{
	struct attention_host host;
	*check = check_new();
	hg_status status = attention_host_get(b, &a->of, &host);
	if (status == HG_OK)
		status = rows_check(b, a, &host, check);
	attention_host_free(&host);
	return status;
}
