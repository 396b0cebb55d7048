#include "doctor/scan.h"

#include <math.h>

#include "core/convert.h"
#include "kernels/observe.h"
#include "precision/half.h"

/* The bits of |x|, read as integers, have the order of the numbers. */
enum { MAGNITUDE = 0x7FFFFFFF, SMALLEST_NORMAL = 0x38800000, INFINITE = 0x7F800000 };

static void insert_deviation(struct hg__deviation *list, const struct hg__deviation *deviation)
{
	int i = HG__DEVIATIONS - 1;
	for (; i > 0 && list[i - 1].by < deviation->by; i--)
		list[i] = list[i - 1];
	list[i] = *deviation;
}

static void count_row(struct hg__scan *seen, int64_t row, int64_t cols, const float *x)
{
	float amax = (float)seen->amax;
	double sum = 0.0;
	for (int64_t c = 0; c < cols; c++) {
		const int32_t bits = (int32_t)(hg__float_bits(x[c]) & MAGNITUDE);
		if (bits == 0) {
			seen->zeros++;
			continue;
		}
		seen->bin[hg__bin_of_float((uint32_t)bits)]++;
		seen->subnormals += bits < SMALLEST_NORMAL;
		if (bits < INFINITE) {
			amax = fabsf(x[c]) > amax ? fabsf(x[c]) : amax;
			sum += (double)fabsf(x[c]);
		} else if (seen->nonfinite++ == 0) {
			seen->first = (struct hg__nonfinite){row, c, (double)x[c]};
		}
	}
	seen->amax = (double)amax;
	seen->max_row_sum = sum > seen->max_row_sum ? sum : seen->max_row_sum;
}

/* ---- samples of the elements that are not finite ---- */

/* Of the rows with such an element, every stride-th gives a sample: the stride doubles when the
 * list is full. New columns are searched only in the first rows, because each new element is
 * compared with the whole list. */
struct sampler {
	struct hg__nonfinite row[HG__SAMPLES], col[HG__SAMPLES];
	int rows, cols;
	int64_t rows_seen, stride, last_row;
};
#define ROWS_SEARCHED_FOR_COLUMNS 1024

static void drop_every_second_row(struct sampler *s)
{
	for (int i = 0; 2 * i < s->rows; i++)
		s->row[i] = s->row[2 * i];
	s->rows = (s->rows + 1) / 2;
	s->stride *= 2;
}

static void sample_row(struct sampler *s, const struct hg__nonfinite *x)
{
	if (s->rows_seen && x->row == s->last_row)
		return;
	s->last_row = x->row;
	if (s->rows_seen++ % s->stride)
		return;
	if (s->rows == HG__SAMPLES)
		drop_every_second_row(s);
	if ((s->rows_seen - 1) % s->stride == 0)
		s->row[s->rows++] = *x;
}

static void sample_column(struct sampler *s, const struct hg__nonfinite *x)
{
	if (s->rows_seen > ROWS_SEARCHED_FOR_COLUMNS || s->cols == HG__SAMPLES)
		return;
	for (int i = 0; i < s->cols; i++)
		if (s->col[i].col == x->col)
			return;
	s->col[s->cols++] = *x;
}

/* Rows first; a column's sample is left out if it is also a row's. */
static void list_samples(const struct sampler *s, struct hg__scan *seen)
{
	for (int i = 0; i < s->rows; i++)
		seen->sample[seen->samples++] = s->row[i];
	for (int i = 0; i < s->cols; i++) {
		int listed = 0;
		for (int k = 0; k < s->rows; k++)
			listed |= s->row[k].row == s->col[i].row && s->row[k].col == s->col[i].col;
		if (!listed)
			seen->sample[seen->samples++] = s->col[i];
	}
}

/* Counts and samples the elements of a row that the op introduced. wide: NULL, or the row of the
 * wide result. */
static void sample_introduced(struct hg__scan *seen, struct sampler *s, int64_t row, int64_t cols,
                              const float *x, const float *wide, int operands_finite)
{
	for (int64_t c = 0; c < cols; c++) {
		if (isfinite(x[c]) || (wide && !operands_finite && !isfinite(wide[c])))
			continue;
		const struct hg__nonfinite element = {row, c, (double)x[c]};
		seen->introduced++;
		if (wide)
			seen->introduced_amax = fmax(seen->introduced_amax, fabs((double)wide[c]));
		sample_row(s, &element);
		sample_column(s, &element);
	}
}

/* ---- beside the wide result ---- */

static void compare_row(struct hg__scan *seen, int64_t row, int64_t cols, const float *x,
                        const float *w)
{
	for (int64_t c = 0; c < cols; c++) {
		const double stored = (double)x[c], wide = (double)w[c], size = fabs(wide);
		struct hg__deviation d = {row, c, stored, wide, fabs(stored - wide)};
		const double by = d.by;
		if (!(by < (double)INFINITY)) /* one of them is not finite */
			continue;
		seen->abs_sum += size;
		if (by > seen->farthest[HG__DEVIATIONS - 1].by)
			insert_deviation(seen->farthest, &d);
		if (size > 0.0 && by > seen->farthest_relative[HG__DEVIATIONS - 1].by * size) {
			d.by = by / size;
			insert_deviation(seen->farthest_relative, &d);
		}
		if (stored != 0.0 || wide == 0.0)
			continue;
		seen->zeroed_abs_sum += size;
		seen->zeroed++;
		d.by = size;
		if (size > seen->largest_zeroed.by)
			seen->largest_zeroed = d;
	}
}

/* ---- the pass ---- */

/* What the tensor is compared with: a matrix on the device, an array on the host, or nothing. */
struct reference {
	const struct hg__mat *mat;
	const float *host;
	int operands_finite;
};

/* Scans the fetched rows, the first of which is row `first` of the tensor. wide: NULL, or the
 * same rows of the reference, `ld` apart. row: memory for one row in f32. */
static void scan_fetched(struct hg__scan *seen, struct sampler *s, const struct hg__fetched *stored,
                         const float *wide, int64_t ld, int operands_finite, int64_t first,
                         float *row)
{
	const struct hg__mat *m = &stored->mat;
	for (int64_t r = 0; r < m->rows; r++) {
		const float *wide_row = wide ? wide + r * ld : NULL;
		const int64_t before = seen->nonfinite;
		hg__convert(HG_F32, row, m->dtype,
		            (const char *)m->data + (size_t)(r * m->ld) * hg_dtype_size(m->dtype), m->cols);
		count_row(seen, first + r, m->cols, row);
		if (seen->nonfinite > before)
			sample_introduced(seen, s, first + r, m->cols, row, wide_row, operands_finite);
		if (wide)
			compare_row(seen, first + r, m->cols, row, wide_row);
	}
}

static hg_status scan_rows(hg_context *ctx, const struct hg__mat *stored,
                           const struct reference *reference, int64_t first, int64_t count,
                           float *row, struct sampler *s, struct hg__scan *seen)
{
	struct hg__fetched narrow = {0}, wide = {0};
	hg_status status = hg__fetch_rows(ctx, stored, first, count, &narrow);
	if (status >= 0 && reference->mat)
		status = hg__fetch_rows(ctx, reference->mat, first, count, &wide);
	if (status >= 0 && reference->host)
		scan_fetched(seen, s, &narrow, reference->host + first * stored->cols, stored->cols, 1,
		             first, row);
	else if (status >= 0)
		scan_fetched(seen, s, &narrow, wide.mat.data, wide.mat.ld, reference->operands_finite,
		             first, row);
	hg__fetched_free(ctx, &wide);
	hg__fetched_free(ctx, &narrow);
	return status;
}

static hg_status scan_all(hg_context *ctx, const struct hg__mat *stored,
                          const struct reference *reference, struct hg__scan *seen)
{
	struct hg__buffer row = {0};
	struct sampler sampler = {.stride = 1};
	hg_status status = HG_OK;
	*seen = (struct hg__scan){0};
	HG__TRY(hg__buffer_host(ctx, stored->cols, sizeof(float), "doctor: a row", &row));
	for (int64_t first = 0; first < stored->rows && stored->cols > 0 && status >= 0;) {
		const int64_t count = hg__rows_to_fetch(stored, first);
		status = scan_rows(ctx, stored, reference, first, count, row.data, &sampler, seen);
		first += count;
	}
	list_samples(&sampler, seen);
	hg__buffer_free(ctx, &row);
	return status;
}

hg_status hg__scan_result(hg_context *ctx, const struct hg__mat *stored, const struct hg__mat *wide,
                          int operands_finite, struct hg__scan *seen)
{
	const struct reference reference = {wide, NULL, operands_finite};
	return scan_all(ctx, stored, &reference, seen);
}

hg_status hg__scan_tensor(hg_context *ctx, const struct hg__mat *stored, const struct hg__mat *wide,
                          struct hg__scan *seen)
{
	return hg__scan_result(ctx, stored, wide, 1, seen);
}

hg_status hg__scan_beside_host(hg_context *ctx, const struct hg__mat *stored, const float *host,
                               struct hg__scan *seen)
{
	const struct reference reference = {NULL, host, 1};
	return scan_all(ctx, stored, &reference, seen);
}
