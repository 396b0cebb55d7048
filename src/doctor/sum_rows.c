#include <math.h>

#include "doctor/sum_terms.h"

/* Sums along rows and columns of matrices. */

static struct hg__addend product(int64_t row, int64_t col, double factor, double operand)
{
	const struct hg__addend a = {
	    .row = row, .col = col, .factor = factor, .operand = operand, .f = 1.0f};
	return a;
}

/* Row i of A is read in full, so it is fetched as one; of B only some elements are read. */
hg_status hg__sum_over_columns(const struct hg__terms *t, struct hg__sum *sum)
{
	struct hg__fetched row = {0};
	struct hg__reader other = {0};
	hg_status status = hg__sum_alloc(sum, t->count);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, &t->a, t->i, 1, &row);
	if (status >= 0 && t->b.data)
		status = hg__reader_open(sum->ctx, &t->b, t->count, &other);
	for (int64_t k = 0; status >= 0 && k < t->count; k++) {
		const int64_t c = t->first + k;
		double b = 1.0;
		if (t->b.data)
			status = t->transposed ? hg__read_element(&other, t->j, c, &b)
			                       : hg__read_element(&other, c, t->j, &b);
		sum->addend[k] = product(t->i, c, t->factor * b, hg__fetched_at(&row, 0, c));
	}
	hg__reader_close(&other);
	hg__fetched_free(sum->ctx, &row);
	return status;
}

hg_status hg__sum_over_rows(const struct hg__terms *t, struct hg__sum *sum)
{
	struct hg__reader a = {0}, b = {0};
	hg_status status = hg__sum_alloc(sum, t->count);
	if (status >= 0)
		status = hg__reader_open(sum->ctx, &t->a, t->count, &a);
	if (status >= 0 && t->b.data)
		status = hg__reader_open(sum->ctx, &t->b, t->count, &b);
	for (int64_t k = 0; status >= 0 && k < t->count; k++) {
		const int64_t n = t->first + k;
		double factor = 1.0, operand = 0.0;
		status = hg__read_element(&a, n, t->i, &operand);
		if (status >= 0 && t->b.data)
			status = hg__read_element(&b, n, t->j, &factor);
		sum->addend[k] = product(n, t->i, t->factor * factor, operand);
	}
	hg__reader_close(&b);
	hg__reader_close(&a);
	return status;
}
