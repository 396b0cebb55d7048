#include "doctor/look.h"

#include <math.h>

#include "precision/half.h"

/* Exponent bits of a half for a float of any size: 0 below 2^-14, k for 2^(k-15) <= |x| < 2^(k-14), 31 for what a half cannot hold. */
static int bin_of(double x)
{
	const int exponent = (int)(hg__float_bits((float)x) >> 23 & 0xFFu) - 112;
	if (!(fabs(x) < hg_dtype_get(HG_F16)->overflow))
		return 31;
	return exponent < 1 ? 0 : exponent;
}

static void insert(struct hg__off *list, const struct hg__off *off)
{
	if (!(off->by > list[HG__OFFS - 1].by))
		return;
	int i = HG__OFFS - 1;
	for (; i > 0 && list[i - 1].by < off->by; i--)
		list[i] = list[i - 1];
	list[i] = *off;
}

static void count(struct hg__look *look, int64_t row, int64_t col, double x)
{
	const double size = fabs(x);
	if (size == 0.0) {
		look->zeros++;
		return;
	}
	look->bin[bin_of(x)]++;
	if (size <= hg_dtype_get(HG_F32)->max) {
		look->subnormals += size < hg_dtype_get(HG_F16)->min_normal;
		look->amax = size > look->amax ? size : look->amax;
		return;
	}
	if (look->nonfinite++ == 0) {
		look->row = row;
		look->col = col;
		look->got = x;
	}
}

/* x beside w. */
static void compare(struct hg__look *look, int64_t row, int64_t col, double x, double w)
{
	if (!isfinite(x) || !isfinite(w))
		return;
	struct hg__off off = {row, col, x, w, fabs(w)};
	look->mass += fabs(w);
	if (x == 0.0 && w != 0.0) {
		look->lost += fabs(w);
		look->gone++;
		if (fabs(w) > look->faded.by)
			look->faded = off;
	}
	off.by = fabs(x - w);
	insert(look->far, &off);
	off.by = off.by / fabs(w);
	if (w != 0.0)
		insert(look->rel, &off);
}

static void pass(struct hg__look *look, const struct hg__fetched *got, const struct hg__fetched *wide, int64_t first)
{
	for (int64_t r = 0; r < got->mat.rows; r++)
		for (int64_t c = 0; c < got->mat.cols; c++) {
			const double x = hg__fetched_at(got, r, c);
			count(look, first + r, c, x);
			if (wide)
				compare(look, first + r, c, x, hg__fetched_at(wide, r, c));
		}
}

hg_status hg__look_at(hg_context *ctx, const struct hg__mat *got, const struct hg__mat *wide, struct hg__look *look)
{
	const int64_t fit = got->ld > 0 ? HG__STAGING_BYTES / (got->ld * (int64_t)sizeof(float)) : 1, rows = fit > 1 ? fit : 1;
	*look = (struct hg__look){0};
	for (int64_t first = 0; first < got->rows && got->cols > 0; first += rows) {
		const int64_t n = got->rows - first < rows ? got->rows - first : rows;
		struct hg__fetched narrow = {0}, beside = {0};
		hg_status status = hg__fetch_rows(ctx, got, first, n, &narrow);
		if (status >= 0 && wide)
			status = hg__fetch_rows(ctx, wide, first, n, &beside);
		if (status >= 0)
			pass(look, &narrow, wide ? &beside : NULL, first);
		hg__fetched_free(ctx, &beside);
		hg__fetched_free(ctx, &narrow);
		HG__TRY(status);
	}
	return HG_OK;
}
