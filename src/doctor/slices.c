#include "doctor/slices.h"

#include <math.h>

#define SHARE_ZEROED 0.5

/* What is known of one slice so far. */
struct slice {
	double abs_sum, zeroed_abs_sum; /* sum of |wide|; and over the elements stored as 0 */
	double zeroed_amax;             /* the largest |wide| of these */
	double operand_amax;
	int64_t zeroed;
	int64_t row, col; /* of the largest zeroed element */
	double wide;      /* the same with its sign */
};

/* The same rows of the three matrices, on the host. */
struct rows {
	struct hg__fetched stored, wide, operand;
};

static void add_element(struct slice *slice, const struct rows *rows, int64_t i, int64_t c,
                        int64_t row)
{
	const double stored = hg__fetched_at(&rows->stored, i, c),
	             wide = hg__fetched_at(&rows->wide, i, c);
	slice->abs_sum += fabs(wide);
	if (stored != 0.0 || wide == 0.0)
		return;
	slice->zeroed++;
	slice->zeroed_abs_sum += fabs(wide);
	if (!(fabs(wide) > slice->zeroed_amax))
		return;
	slice->zeroed_amax = fabs(wide);
	slice->wide = wide;
	slice->row = row;
	slice->col = c;
}

static void count_slice(const struct hg__slice_query *query, const struct slice *slice,
                        struct hg__slices *slices)
{
	if (!(slice->abs_sum > 0.0) || !isfinite(slice->abs_sum))
		return;
	slices->count++;
	if (!(slice->zeroed_abs_sum > SHARE_ZEROED * slice->abs_sum) ||
	    !(slice->operand_amax >= query->min_operand) ||
	    !(slice->zeroed_abs_sum > query->min_zeroed_sum) ||
	    !(slice->zeroed_amax > query->min_zeroed_amax))
		return;
	slices->zeroed++;
	slices->zeroed_elements += slice->zeroed;
	if (slice->zeroed_amax > slices->largest_zeroed.by)
		slices->largest_zeroed =
		    (struct hg__deviation){slice->row, slice->col, 0.0, slice->wide, slice->zeroed_amax};
}

static hg_status fetch(hg_context *ctx, const struct hg__slice_query *query, int64_t first,
                       int64_t count, struct rows *rows)
{
	HG__TRY(hg__fetch_rows(ctx, query->stored, first, count, &rows->stored));
	HG__TRY(hg__fetch_rows(ctx, query->wide, first, count, &rows->wide));
	return hg__fetch_rows(ctx, query->operand, first, count, &rows->operand);
}

/* Rows first to first + count - 1. slice: one for each column; or, where the slices are rows, a
 * single one, which is used for one row after the other. */
static hg_status add_rows(hg_context *ctx, const struct hg__slice_query *query, int64_t first,
                          int64_t count, struct slice *slice, struct hg__slices *slices)
{
	struct rows rows = {0};
	const hg_status status = fetch(ctx, query, first, count, &rows);
	for (int64_t i = 0; status >= 0 && i < count; i++) {
		if (!query->columns)
			*slice = (struct slice){.abs_sum = 0.0};
		for (int64_t c = 0; c < query->operand->cols; c++) {
			struct slice *of = query->columns ? &slice[c] : slice;
			of->operand_amax = fmax(of->operand_amax, fabs(hg__fetched_at(&rows.operand, i, c)));
		}
		for (int64_t c = 0; c < query->stored->cols; c++)
			add_element(query->columns ? &slice[c] : slice, &rows, i, c, first + i);
		if (!query->columns)
			count_slice(query, slice, slices);
	}
	hg__fetched_free(ctx, &rows.operand);
	hg__fetched_free(ctx, &rows.wide);
	hg__fetched_free(ctx, &rows.stored);
	return status;
}

hg_status hg__slices_count(hg_context *ctx, const struct hg__slice_query *query,
                           struct hg__slices *slices)
{
	const int64_t count = query->columns ? query->stored->cols : 1;
	struct hg__buffer memory = {0};
	hg_status status = HG_OK;
	*slices = (struct hg__slices){0};
	HG__TRY(hg__buffer_host(ctx, count, sizeof(struct slice), "doctor: rows or columns", &memory));
	struct slice *slice = memory.data;
	for (int64_t first = 0; first < query->stored->rows && status >= 0;) {
		const int64_t rows = hg__rows_to_fetch(query->stored, first);
		status = add_rows(ctx, query, first, rows, slice, slices);
		first += rows;
	}
	for (int64_t c = 0; c < count && query->columns && status >= 0; c++)
		count_slice(query, &slice[c], slices);
	hg__buffer_free(ctx, &memory);
	return status;
}
