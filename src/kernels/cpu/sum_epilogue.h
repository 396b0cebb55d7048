/* The epilogue of an aggregation (struct hg__sum_epilogue), applied in f32 to the sums of a row
 * before they are narrowed. */
#ifndef HG_KERNELS_CPU_SUM_EPILOGUE_H
#define HG_KERNELS_CPU_SUM_EPILOGUE_H

#include "kernels/cpu/act_drop.h"
#include "kernels/cpu/rows.h"

/* The columns that an aggregation sums at a time. */
#define HG__SUM_COLUMNS (4 * HG__LANES)

struct hg__cpu_sum_epilogue {
	struct hg__mat z, b;
	int present;
	float beta; /* with *beta_p */
	struct hg__cpu_act_drop act_drop;
};

HG__INLINE struct hg__cpu_sum_epilogue hg__sum_epilogue_of(const struct hg__sum_epilogue *e,
                                                           int64_t cols)
{
	return (struct hg__cpu_sum_epilogue){.z = e->z,
	                                     .b = e->b,
	                                     .present = hg__has_sum_epilogue(e),
	                                     .beta =
	                                         e->beta_p ? e->beta * (1.0f + *e->beta_p) : e->beta,
	                                     .act_drop = hg__act_drop_of(&e->act_drop, cols)};
}

HG__INLINE int hg__sum_epilogue_fits(const struct hg__sum_epilogue *e, const struct hg__mat *y)
{
	return (!e->z.data || hg__same(&e->z, y)) && (!e->b.data || e->b.cols == y->cols);
}

/* y: the sums of columns first .. first+n-1 of a row, n <= HG__SUM_COLUMNS. */
HG__INLINE void hg__sum_epilogue_apply(const struct hg__cpu_sum_epilogue *epilogue, int64_t row,
                                       int64_t first, int n, float *y)
{
	float more[HG__SUM_COLUMNS];
	uint32_t word[HG__SUM_COLUMNS + 4 * HG__DRAW];
	if (!epilogue->present)
		return;
	if (epilogue->z.data) {
		const float beta = epilogue->beta, *z = hg__row(&epilogue->z, row, first, n, more);
#pragma omp simd
		for (int c = 0; c < n; c++)
			y[c] += beta * z[c];
	}
	if (epilogue->b.data) {
		const float *b = hg__row(&epilogue->b, 0, first, n, more);
#pragma omp simd
		for (int c = 0; c < n; c++)
			y[c] += b[c];
	}
	if (epilogue->act_drop.drops)
		hg__draw(&epilogue->act_drop.stream, row, first / 4, hg__ceil_div(n, 4), word);
	hg__act_drop_value(&epilogue->act_drop, n, word, y);
}

#endif
