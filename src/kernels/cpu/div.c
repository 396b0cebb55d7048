/* Y = A / B, where B has the shape of A, one column, or one element.
 *
 *     dB = -dY (A / B) / B, summed over the elements that share a divisor */
#include "kernels/cpu/map.h"
#include "kernels/cpu/totals.h"

static void divide_elements(const void *env, int64_t n, const float *a, const float *b, float *y)
{
	(void)env;
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		y[i] = a[i] / b[i];
}

/* The divisors of elements col .. col+15 of a row. Lanes past the end are set to 1. */
HG__INLINE hg__v16 load_divisors(const struct hg__mat *a, const struct hg__mat *b, int64_t row,
                                 int64_t col)
{
	if (hg__same(a, b))
		return hg__lanes(b, row, col, 1.0f);
	return hg__vset(hg__get(b, b->rows == 1 ? 0 : row, 0));
}

static int divisor_fits(const struct hg__mat *a, const struct hg__mat *b)
{
	return hg__same(a, b) ||
	       (hg__is_state(b) && b->cols == 1 && (b->rows == 1 || b->rows == a->rows));
}

HG__NO_WORKSPACE(div, div_args)

hg_status HG__CPU(div)(hg_context *ctx, const struct hg__div_args *a)
{
	const int64_t rows = a->a.rows, cols = a->a.cols;
	HG__TRY(HG__FIT(ctx, hg__same(&a->a, &a->y) && divisor_fits(&a->a, &a->b), "div", &a->a, &a->b,
	                &a->y));
	if (hg__same(&a->a, &a->b))
		return HG__CPU(map)(ctx, "div", divide_elements, NULL, 0, a->a, a->b, a->y);
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c += HG__LANES)
			hg__lanes_put(&a->y, r, c,
			              hg__lanes(&a->a, r, c, 0.0f) / load_divisors(&a->a, &a->b, r, c));
	return HG_OK;
}

/* dY (A / B) for 16 elements. Lanes past the end are 0. */
HG__INLINE hg__v16 dy_quotient(const struct hg__div_back_args *a, int64_t row, int64_t col,
                               hg__v16 b)
{
	return hg__lanes(&a->dy, row, col, 0.0f) * (hg__lanes(&a->a, row, col, 0.0f) / b);
}

/* dB = -dY (A / B) / B, where B has the shape of A */
static void db_elements(const struct hg__div_back_args *a, int64_t row)
{
	for (int64_t c = 0; c < a->a.cols; c += HG__LANES) {
		const hg__v16 b = load_divisors(&a->a, &a->b, row, c);
		hg__lanes_put(&a->db, row, c, -(dy_quotient(a, row, c, b) / b));
	}
}

/* The sum over a row of dY (A / B), where b is the only divisor of the row. */
static float sum_dy_quotient(const struct hg__div_back_args *a, int64_t row, float b)
{
	hg__v16 sum = {0};
	for (int64_t c = 0; c < a->a.cols; c += HG__LANES)
		sum += dy_quotient(a, row, c, hg__vset(b));
	return hg__vsum(sum);
}

static void db_of_row(const struct hg__div_back_args *a, int64_t row)
{
	const float b = hg__get(&a->b, row, 0);
	hg__set(&a->db, row, 0, -(sum_dy_quotient(a, row, b) / b));
}

static void add_row_to_total(const void *env, int64_t row, struct hg__totals *totals)
{
	const struct hg__div_back_args *a = env;
	totals->sum += (double)sum_dy_quotient(a, row, hg__get(&a->b, 0, 0));
}

size_t HG__CPU(div_back_workspace)(const hg_context *ctx, const struct hg__div_back_args *a)
{
	(void)ctx;
	/* only one divisor for all elements needs a sum over the rows */
	return a->b.rows == 1 ? hg__reduction_bytes(a->a.rows, a->a.cols) : 0;
}

hg_status HG__CPU(div_back)(hg_context *ctx, const struct hg__div_back_args *a)
{
	const int64_t rows = a->a.rows, work = rows * a->a.cols;
	HG__TRY(HG__FIT(
	    ctx, hg__same(&a->a, &a->dy) && divisor_fits(&a->a, &a->b) && hg__same(&a->b, &a->db),
	    "div_back", &a->a, &a->b, &a->dy, &a->db));
	const int by_element = hg__same(&a->a, &a->b);
	if (!by_element && a->b.rows != rows) {
		struct hg__totals total;
		HG__TRY(HG__CPU(totals)(ctx, rows, work, add_row_to_total, a, &total));
		const float b = hg__get(&a->b, 0, 0);
		hg__set(&a->db, 0, 0, -((float)total.sum / b));
		return HG_OK;
	}
#pragma omp parallel for num_threads(hg__team(ctx, work)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		(by_element ? db_elements : db_of_row)(a, r);
	return HG_OK;
}
