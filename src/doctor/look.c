#include "doctor/look.h"

#include <math.h>

#include "core/convert.h"
#include "kernels/observe.h"
#include "precision/half.h"

/* Bits of |x| of floats: their order is that of the numbers. */
enum { MAGNITUDE = 0x7FFFFFFF, SMALLEST_NORMAL = 0x38800000, INFINITE = 0x7F800000 };

static void insert(struct hg__off *list, int64_t row, int64_t col, double got, double wide,
                   double by)
{
	int i = HG__OFFS - 1;
	for (; i > 0 && list[i - 1].by < by; i--)
		list[i] = list[i - 1];
	list[i] = (struct hg__off){row, col, got, wide, by};
}

static void count(struct hg__look *look, int64_t row, int64_t n, const float *x)
{
	float most = (float)look->amax;
	double sum = 0.0;
	for (int64_t c = 0; c < n; c++) {
		const int32_t bits = (int32_t)(hg__float_bits(x[c]) & MAGNITUDE);
		if (bits == 0) {
			look->zeros++;
			continue;
		}
		look->bin[hg__bin_of_float((uint32_t)bits)]++;
		look->subnormals += bits < SMALLEST_NORMAL;
		if (bits < INFINITE) {
			most = fabsf(x[c]) > most ? fabsf(x[c]) : most;
			sum += (double)fabsf(x[c]);
		} else if (look->nonfinite++ == 0) {
			look->row = row;
			look->col = c;
			look->got = (double)x[c];
		}
	}
	look->amax = (double)most;
	look->row_sum = sum > look->row_sum ? sum : look->row_sum;
}

/* ---- one of each row and each column that is bad ---- */

/* Rows so far, and how many of them are passed over between two that are kept; columns are
 * looked for in the first of the rows. */
struct samples {
	struct hg__bad row[HG__BADS], col[HG__BADS];
	int rows, cols;
	int64_t seen, stride, last;
};
#define ROWS_FOR_COLUMNS 1024

static void thin_out(struct samples *s)
{
	for (int i = 0; 2 * i < s->rows; i++)
		s->row[i] = s->row[2 * i];
	s->rows = (s->rows + 1) / 2;
	s->stride *= 2;
}

static void sample_row(struct samples *s, const struct hg__bad *bad)
{
	if (s->seen && bad->row == s->last)
		return;
	s->last = bad->row;
	if (s->seen++ % s->stride)
		return;
	if (s->rows == HG__BADS)
		thin_out(s);
	if ((s->seen - 1) % s->stride == 0)
		s->row[s->rows++] = *bad;
}

static void sample_column(struct samples *s, const struct hg__bad *bad)
{
	if (s->seen > ROWS_FOR_COLUMNS || s->cols == HG__BADS)
		return;
	for (int i = 0; i < s->cols; i++)
		if (s->col[i].col == bad->col)
			return;
	s->col[s->cols++] = *bad;
}

static void list_samples(const struct samples *s, struct hg__look *look)
{
	for (int i = 0; i < s->rows; i++)
		look->bad[look->bads++] = s->row[i];
	for (int i = 0; i < s->cols; i++) {
		int known = 0;
		for (int k = 0; k < s->rows; k++)
			known |= s->row[k].row == s->col[i].row && s->row[k].col == s->col[i].col;
		if (!known)
			look->bad[look->bads++] = s->col[i];
	}
}

/* wide NULL, or good: all of them. */
static void sample(struct hg__look *look, struct samples *s, int64_t row, int64_t n, const float *x,
                   const float *wide, int good)
{
	for (int64_t c = 0; c < n; c++) {
		if (isfinite(x[c]) || (wide && !good && !isfinite(wide[c])))
			continue;
		const struct hg__bad bad = {row, c, (double)x[c]};
		look->own++;
		look->largest = wide ? fmax(look->largest, fabs((double)wide[c])) : look->largest;
		sample_row(s, &bad);
		sample_column(s, &bad);
	}
}

/* ---- beside what is wide ---- */

/* x beside w. */
static void compare(struct hg__look *look, int64_t row, int64_t n, const float *x, const float *w)
{
	for (int64_t c = 0; c < n; c++) {
		const double got = (double)x[c], wide = (double)w[c], size = fabs(wide),
		             by = fabs(got - wide);
		if (!(by < (double)INFINITY)) /* one of them is not finite */
			continue;
		look->mass += size;
		if (got == 0.0 && wide != 0.0) {
			look->lost += size;
			look->gone++;
			if (size > look->largest_lost.by)
				look->largest_lost = (struct hg__off){row, c, got, wide, size};
		}
		if (by > look->far[HG__OFFS - 1].by)
			insert(look->far, row, c, got, wide, by);
		if (by > look->rel[HG__OFFS - 1].by * size && size > 0.0)
			insert(look->rel, row, c, got, wide, by / size);
	}
}

/* f32 rows beside those that are looked at: on the device, on the host, or none. */
struct beside {
	const struct hg__mat *mat;
	const float *host;
	int good; /* all that is not finite is this tensor's own doing */
};

/* Rows first .. of what was fetched; as floats, a row at a time. wide: NULL, or the first of the
 * rows beside them, `ld` apart. */
static void pass(struct hg__look *look, struct samples *s, const struct hg__fetched *got,
                 const float *wide, int64_t ld, int good, int64_t first, float *row)
{
	const struct hg__mat *m = &got->mat;
	for (int64_t r = 0; r < m->rows; r++) {
		hg__convert(HG_F32, row, m->dtype,
		            (const char *)m->data + (size_t)(r * m->ld) * hg_dtype_size(m->dtype), m->cols);
		const int64_t before = look->nonfinite;
		count(look, first + r, m->cols, row);
		if (look->nonfinite > before)
			sample(look, s, first + r, m->cols, row, wide ? wide + r * ld : NULL, good);
		if (wide)
			compare(look, first + r, m->cols, row, wide + r * ld);
	}
}

static hg_status look_at_rows(hg_context *ctx, const struct hg__mat *got,
                              const struct beside *beside, int64_t first, int64_t n, float *row,
                              struct samples *s, struct hg__look *look)
{
	struct hg__fetched narrow = {0}, wide = {0};
	hg_status status = hg__fetch_rows(ctx, got, first, n, &narrow);
	if (status >= 0 && beside->mat)
		status = hg__fetch_rows(ctx, beside->mat, first, n, &wide);
	if (status >= 0 && beside->host)
		pass(look, s, &narrow, beside->host + first * got->cols, got->cols, 1, first, row);
	else if (status >= 0)
		pass(look, s, &narrow, wide.mat.data, wide.mat.ld, beside->good, first, row);
	hg__fetched_free(ctx, &wide);
	hg__fetched_free(ctx, &narrow);
	return status;
}

static hg_status look_over(hg_context *ctx, const struct hg__mat *got, const struct beside *beside,
                           struct hg__look *look)
{
	const int64_t fit = got->ld > 0 ? HG__STAGING_BYTES / (got->ld * (int64_t)sizeof(float)) : 1,
	              rows = fit > 1 ? fit : 1;
	struct hg__buffer row = {0};
	hg_status status = HG_OK;
	struct samples samples = {.stride = 1};
	*look = (struct hg__look){0};
	HG__TRY(hg__buffer_host(ctx, got->cols, sizeof(float), "doctor: a row", &row));
	for (int64_t first = 0; first < got->rows && got->cols > 0 && status >= 0; first += rows)
		status = look_at_rows(ctx, got, beside, first,
		                      got->rows - first < rows ? got->rows - first : rows, row.data,
		                      &samples, look);
	list_samples(&samples, look);
	hg__buffer_free(ctx, &row);
	return status;
}

hg_status hg__look_for(hg_context *ctx, const struct hg__mat *got, const struct hg__mat *wide,
                       int good, struct hg__look *look)
{
	const struct beside beside = {wide, NULL, good};
	return look_over(ctx, got, &beside, look);
}

hg_status hg__look_at(hg_context *ctx, const struct hg__mat *got, const struct hg__mat *wide,
                      struct hg__look *look)
{
	return hg__look_for(ctx, got, wide, 1, look);
}

hg_status hg__look_beside(hg_context *ctx, const struct hg__mat *got, const float *host,
                          struct hg__look *look)
{
	const struct beside beside = {NULL, host, 1};
	return look_over(ctx, got, &beside, look);
}
