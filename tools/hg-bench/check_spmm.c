#include "check_spmm.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "precision/bound.h"

/* Check Y[i, c] = r_i * sum over the edges (i, j) of w_e s_j X[j, c] in f64, from the operands in
 * device memory. The bounds:
 *
 *     f32 sums   B = "sum narrowed once", depth = degree + batches + pieces + 6 factors; a kernel
 *                may round s_j X[j, c] to f16 before the sum, which adds u16 sum|..| and, per term
 *                near 0, eta16/2 (|w| <= 1)
 *     tiles      the same, depth = hg__depth_tiles(degree) + 6
 *     f16 sums   precision/bound.h, "a neighbourhood sum in f16 arithmetic" */

static hg_status vector_get(struct bench *b, const float *device, int64_t count, float **host)
{
	if (!device)
		return HG_OK;
	*host = calloc((size_t)count, sizeof **host);
	if (!*host)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld factors", (long long)count);
	return b->ctx->backend->copy_out(b->ctx, *host, device, (size_t)count * sizeof **host);
}

struct inputs {
	struct copy x, w; /* w: the rows of the current row's edges */
	int64_t head_cols;
	float *row_scale, *col_scale;
	double *exact, *magnitude, *tiny; /* [cols] */
};

/* Sum columns `from` to `to` of a row. */
static void columns_sum(const struct inputs *in, const struct row *row, int64_t from, int64_t to,
                        int factors)
{
	for (int64_t c = from; c < to; c++)
		in->exact[c] = in->magnitude[c] = in->tiny[c] = 0;
	for (int64_t e = 0; e < row->degree; e++) {
		const int64_t j = row->col[e];
		const double s = in->col_scale ? (double)in->col_scale[j] : 1.0;
		for (int64_t c = from; c < to; c++) {
			const double w =
			    in->w.mat.data ? copy_at(&in->w, e, c / in->head_cols) : (double)row->weight[e];
			const double x = copy_at(&in->x, j, c), term = w * s * x;
			in->exact[c] += term;
			in->magnitude[c] += fabs(term);
			in->tiny[c] += factors ? 1 + fabs(x) * (1 + fabs(w) + s) : 0;
		}
	}
}

/* A thread takes 8 columns, so that it reads a contiguous piece of each neighbour's row. */
static void row_sum(const struct inputs *in, const struct row *row, int64_t cols, int factors)
{
#pragma omp parallel for schedule(static) if (row->degree * cols > 4096)
	for (int64_t c = 0; c < cols; c += 8)
		columns_sum(in, row, c, c + 8 < cols ? c + 8 : cols, factors);
}

static double bound_of(const struct bench *b, const struct aggregation *a, const struct inputs *in,
                       const struct row *row, double factor, int64_t c)
{
	/* the fewest edges of an item inside a row */
	const int64_t item = b->csr.plan && b->csr.plan->item_work > 3 ? b->csr.plan->item_work / 2 : 1;
	const int64_t batch = a->accumulate == HG_ACC_F16_NAIVE ? 0 : HG_BATCH_EDGES,
	              pieces = batch ? row->degree / item + 3 : 1;
	const double magnitude = fabs(factor) * in->magnitude[c];
	if (a->accumulate != HG_ACC_F32) {
		const struct hg__sum_f16 sum = {row->degree,      batch,      pieces, factor,
		                                in->magnitude[c], in->tiny[c]};
		return hg__bound_sum_f16(&sum);
	}
	const hg_dtype_facts *type = hg_dtype_get(a->x.dtype);
	const double u = a->col_scale && a->x.dtype == HG_F16 ? type->u : 0,
	             near_zero = u > 0 ? type->min_subnormal / 2 * in->tiny[c] : 0;
	const double parts = (double)(row->degree + row->degree / HG_BATCH_EDGES + pieces),
	             depth = (a->tiles ? hg__depth_tiles((double)row->degree) : parts) + 6;
	return hg__bound_sum(a->y.dtype, depth, magnitude * (1 + u), factor * in->exact[c]) +
	       u * (1 + u) * (1 + u) * magnitude + fabs(factor) * near_zero;
}

static hg_status row_check(struct bench *b, const struct aggregation *a, struct inputs *in,
                           struct row *row, struct copy *y, struct check *check)
{
	HG__TRY(row_get(b, row->index, a->weight, row));
	HG__TRY(copy_rows(b, a->y, row->index, 1, y));
	if (a->w.data)
		HG__TRY(copy_rows(b, a->w, row->begin, row->degree, &in->w));
	row_sum(in, row, a->y.cols, a->weight || a->w.data || a->col_scale);
	const double factor = in->row_scale ? (double)in->row_scale[row->index] : 1.0;
	for (int64_t c = 0; c < a->y.cols; c++)
		check_number(check, row->index, c, copy_at(y, 0, c), factor * in->exact[c],
		             bound_of(b, a, in, row, factor, c));
	return HG_OK;
}

static hg_status inputs_get(struct bench *b, const struct aggregation *a, struct inputs *in)
{
	HG__TRY(copy_mat(b, a->x, &in->x));
	HG__TRY(vector_get(b, a->row_scale, b->csr.rows, &in->row_scale));
	HG__TRY(vector_get(b, a->col_scale, b->csr.cols, &in->col_scale));
	in->head_cols = a->w.data ? a->y.cols / a->w.cols : a->y.cols;
	in->exact = calloc((size_t)a->y.cols * 3, sizeof *in->exact);
	if (!in->exact)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld columns",
		                (long long)a->y.cols);
	in->magnitude = in->exact + a->y.cols;
	in->tiny = in->magnitude + a->y.cols;
	return HG_OK;
}

hg_status check_spmm(struct bench *b, const struct aggregation *a, struct check *check)
{
	struct inputs in = {.row_scale = NULL};
	struct row row = {.capacity = 0};
	struct copy y = {.capacity = 0};
	*check = check_new();
	hg_status status = inputs_get(b, a, &in);
	for (int64_t k = 0; status == HG_OK && k < check_rows(b, b->csr.rows); k++) {
		row.index = check_row(b, b->csr.rows, k);
		status = row_check(b, a, &in, &row, &y, check);
	}
	copy_free(&in.x);
	copy_free(&in.w);
	free(in.row_scale);
	free(in.col_scale);
	free(in.exact);
	row_free(&row);
	copy_free(&y);
	return status;
}
