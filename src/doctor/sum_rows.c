#include <math.h>

#include "autograd/attr.h"
#include "doctor/sum_of.h"

/* Sums along rows and columns of matrices. */

static struct hg__addend product(int64_t row, int64_t col, double factor, double operand)
{
	const struct hg__addend a = {
	    .row = row, .col = col, .factor = factor, .operand = operand, .f = 1.0f};
	return a;
}

/* 2^shift sum over c of A[i, c] B[c, j], or of A[i, c] B[j, c]. */
static hg_status along_row(const struct hg__mat *a, int64_t i, const struct hg__mat *b, int64_t j,
                           int transposed, int shift, struct hg__sum *sum)
{
	struct hg__fetched row = {0};
	struct hg__picker other = {0};
	hg_status status = hg__sum_room(sum, a->cols);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, a, i, 1, &row);
	if (status >= 0)
		status = hg__picker_open(sum->ctx, b, a->cols, &other);
	for (int64_t c = 0; status >= 0 && c < a->cols; c++) {
		double w = 0.0;
		status = transposed ? hg__pick(&other, j, c, &w) : hg__pick(&other, c, j, &w);
		sum->addend[c] = product(i, c, ldexp(w, shift), hg__fetched_at(&row, 0, c));
	}
	hg__picker_close(&other);
	hg__fetched_free(sum->ctx, &row);
	return status;
}

/* 2^shift sum over n of A[n, i] B[n, j]; without a B of A[n, i]. */
static hg_status along_column(const struct hg__mat *a, int64_t i, const struct hg__mat *b,
                              int64_t j, int shift, struct hg__sum *sum)
{
	struct hg__picker x = {0}, y = {0};
	hg_status status = hg__sum_room(sum, a->rows);
	if (status >= 0)
		status = hg__picker_open(sum->ctx, a, a->rows, &x);
	if (status >= 0 && b)
		status = hg__picker_open(sum->ctx, b, a->rows, &y);
	for (int64_t n = 0; status >= 0 && n < a->rows; n++) {
		double factor = 1.0, operand = 0.0;
		status = hg__pick(&x, n, i, &operand);
		if (status >= 0 && b)
			status = hg__pick(&y, n, j, &factor);
		sum->addend[n] = product(n, i, ldexp(factor, shift), operand);
	}
	hg__picker_close(&y);
	hg__picker_close(&x);
	return status;
}

/* Y[i] = sum, or mean, over the row of X[i, c] */
hg_status hg__sum_along_row(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__mat *x = &asked->call->in[0];
	const double factor = asked->call->node->op == &hg__op_row_mean ? 1.0 / (double)x->cols : 1.0;
	struct hg__fetched row = {0};
	HG__TRY(hg__sum_room(sum, x->cols));
	HG__TRY(hg__fetch_rows(sum->ctx, x, asked->row, 1, &row));
	for (int64_t c = 0; c < x->cols; c++)
		sum->addend[c] = product(asked->row, c, factor, hg__fetched_at(&row, 0, c));
	hg__fetched_free(sum->ctx, &row);
	return HG_OK;
}

/* Y = X W */
hg_status hg__sum_linear(const struct hg__asked *asked, struct hg__sum *sum)
{
	return along_row(&asked->call->in[0], asked->row, &asked->call->in[1], asked->col, 0,
	                 asked->call->shift[0] - asked->call->shift_out, sum);
}

/* dX = dY W^T */
hg_status hg__sum_linear_dx(const struct hg__asked *asked, struct hg__sum *sum)
{
	return along_row(&asked->call->dout, asked->row, &asked->call->in[1], asked->col, 1, 0, sum);
}

/* dW = X^T dY */
hg_status hg__sum_linear_dw(const struct hg__asked *asked, struct hg__sum *sum)
{
	return along_column(&asked->call->dout, asked->col, &asked->call->in[0], asked->row,
	                    asked->call->shift[0], sum);
}

/* db: the sum over the rows of dY */
hg_status hg__sum_of_rows(const struct hg__asked *asked, struct hg__sum *sum)
{
	return along_column(&asked->call->dout, asked->col, NULL, 0, 0, sum);
}

/* S[i, k] = sum over c < d of X[i, k d + c] a[0, k d + c]; from column h on with b. */
hg_status hg__sum_head_dot(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	struct hg__heads_attr attr;
	hg__attr_get(c->node, &attr, sizeof attr);
	const int64_t d = c->in[0].cols / attr.heads, first = asked->col % attr.heads * d;
	const struct hg__mat *vector = &c->in[asked->col < attr.heads ? 1 : 2];
	struct hg__fetched x = {0}, a = {0};
	hg_status status = hg__sum_room(sum, d);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, &c->in[0], asked->row, 1, &x);
	if (status >= 0)
		status = hg__fetch_rows(sum->ctx, vector, 0, 1, &a);
	for (int64_t k = first; status >= 0 && k < first + d; k++)
		sum->addend[k - first] =
		    product(asked->row, k, hg__fetched_at(&a, 0, k), hg__fetched_at(&x, 0, k));
	hg__fetched_free(sum->ctx, &a);
	hg__fetched_free(sum->ctx, &x);
	return status;
}

/* da[0, k d + c] = sum over i of dS[i, k] X[i, k d + c] */
static hg_status head_back(const struct hg__asked *asked, int second, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	struct hg__heads_attr attr;
	hg__attr_get(c->node, &attr, sizeof attr);
	const int64_t d = c->in[0].cols / attr.heads;
	return along_column(&c->dout, asked->col / d + (second ? attr.heads : 0), &c->in[0], asked->col,
	                    0, sum);
}

hg_status hg__sum_head_dot_da(const struct hg__asked *asked, struct hg__sum *sum)
{
	return head_back(asked, 0, sum);
}

hg_status hg__sum_head_dot_db(const struct hg__asked *asked, struct hg__sum *sum)
{
	return head_back(asked, 1, sum);
}

/* Y[g, c] = sum over the nodes i of graph g of X[i, c], or their mean; a maximum is no sum. */
hg_status hg__sum_readout(const struct hg__asked *asked, struct hg__sum *sum)
{
	const struct hg__call *c = asked->call;
	struct hg__readout_attr attr;
	int64_t ptr[2];
	struct hg__fetched x;
	hg__attr_get(c->node, &attr, sizeof attr);
	if (attr.reduce == HG_REDUCE_MAX)
		return HG_OK;
	HG__TRY(sum->ctx->backend->copy_out(sum->ctx, ptr, c->batch_ptr + asked->row, sizeof ptr));
	const int64_t n = ptr[1] - ptr[0];
	HG__TRY(hg__sum_room(sum, n));
	HG__TRY(hg__fetch_rows(sum->ctx, &c->in[0], ptr[0], n, &x));
	for (int64_t i = 0; i < n; i++)
		sum->addend[i] =
		    product(ptr[0] + i, asked->col, attr.reduce == HG_REDUCE_MEAN ? 1.0 / (double)n : 1.0,
		            hg__fetched_at(&x, i, asked->col));
	hg__fetched_free(sum->ctx, &x);
	return HG_OK;
}
