/* Access to rows of matrices that are stored in f16 or f32. Kernels compute on f32 rows, and these
 * functions convert from and to storage, so that each kernel is written only once. */
#ifndef HG_KERNELS_CPU_ROWS_H
#define HG_KERNELS_CPU_ROWS_H

#include "kernels/cpu/simd.h"
#include "kernels/cpu/team.h"
#include "kernels/support.h"

HG__INLINE size_t hg__element(const struct hg__mat *m)
{
	return m->dtype == HG_F16 ? sizeof(hg_half) : sizeof(float);
}

HG__INLINE void *hg__at(const struct hg__mat *m, int64_t row, int64_t col)
{
	return (char *)m->data + (size_t)(row * m->ld + col) * hg__element(m);
}

/* Returns elements col .. col+n-1 of a row as f32. If storage is f32 this is a pointer into
 * storage; otherwise the elements are widened into scratch [n]. */
HG__INLINE const float *hg__row(const struct hg__mat *m, int64_t row, int64_t col, int64_t n,
                                float *scratch)
{
	if (m->dtype != HG_F16)
		return (const float *)hg__at(m, row, col);
	hg__widen(n, (const hg_half *)hg__at(m, row, col), scratch);
	return scratch;
}

/* Returns where to compute elements of a row: in storage if it is f32, otherwise in scratch.
 * hg__row_put then stores them: it narrows once from scratch, or does nothing. */
HG__INLINE float *hg__row_begin(const struct hg__mat *m, int64_t row, int64_t col, float *scratch)
{
	return m->dtype == HG_F16 ? scratch : (float *)hg__at(m, row, col);
}

HG__INLINE void hg__row_put(const struct hg__mat *m, int64_t row, int64_t col, int64_t n,
                            const float *values)
{
	void *home = hg__at(m, row, col);
	if (m->dtype == HG_F16)
		hg__narrow(n, values, (hg_half *)home);
	else if (home != (const void *)values)
		memcpy(home, values, (size_t)n * sizeof(float));
}

/* The rows that count: all of them, or the first *live. */
HG__INLINE int64_t hg__live_rows(const int64_t *live, const struct hg__mat *m)
{
	return live && *live < m->rows ? *live : m->rows;
}

/* Access to one element, which needs neither masks nor scratch. */
HG__INLINE float hg__get(const struct hg__mat *m, int64_t row, int64_t col)
{
	const void *at = hg__at(m, row, col);
	return m->dtype == HG_F16 ? hg__widen1(*(const hg_half *)at) : *(const float *)at;
}

HG__INLINE void hg__set(const struct hg__mat *m, int64_t row, int64_t col, float x)
{
	void *at = hg__at(m, row, col);
	if (m->dtype == HG_F16)
		*(hg_half *)at = hg__narrow1(x);
	else
		*(float *)at = x;
}

/* The number of columns that a kernel processes at a time. A scratch row then has 1 kB, and a few
 * of them stay in the first-level cache. */
#define HG__WIDTH 256

HG__INLINE int64_t hg__min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The dot product of d columns from column col on: row i of A and row j of B. */
HG__INLINE float hg__dot_rows(const struct hg__mat *a, int64_t i, const struct hg__mat *b,
                              int64_t j, int64_t col, int64_t d)
{
	float sum = 0.0f;
	for (int64_t c = 0; c < d; c += HG__WIDTH) {
		float as[HG__WIDTH], bs[HG__WIDTH];
		const int64_t n = hg__min(HG__WIDTH, d - c);
		sum += hg__dot(n, hg__row(a, i, col + c, n, as), hg__row(b, j, col + c, n, bs));
	}
	return sum;
}

HG__INLINE int64_t hg__ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}
/* A number of columns in whole vectors. */
HG__INLINE int64_t hg__whole(int64_t cols)
{
	return hg__ceil_div(cols, HG__LANES) * HG__LANES;
}

/* Columns col .. col+15 of a row as a vector. Lanes past the last column are set to `fill`. */
HG__INLINE hg__v16 hg__lanes(const struct hg__mat *m, int64_t row, int64_t col, float fill)
{
	const hg__i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	const int n = (int)hg__min(HG__LANES, m->cols - col);
	const void *at = hg__at(m, row, col);
	const hg__v16 v = m->dtype == HG_F16 ? hg__vload_half_n((const hg_half *)at, n)
	                                     : hg__vload_n((const float *)at, n);
	/* The load has set these lanes to zero. */
	return n == HG__LANES || fill == 0.0f ? v : hg__vselect(lane < n, v, hg__vset(fill));
}

HG__INLINE void hg__lanes_put(const struct hg__mat *m, int64_t row, int64_t col, hg__v16 v)
{
	const int n = (int)hg__min(HG__LANES, m->cols - col);
	void *at = hg__at(m, row, col);
	if (m->dtype == HG_F16)
		hg__vstore_half_n((hg_half *)at, v, n);
	else
		hg__vstore_n((float *)at, v, n);
}

HG__INLINE int hg__is_state(const struct hg__mat *m)
{
	return m->dtype == HG_F16 || m->dtype == HG_F32;
}

HG__INLINE int hg__same(const struct hg__mat *a, const struct hg__mat *b)
{
	return a->rows == b->rows && a->cols == b->cols && hg__is_state(a) && hg__is_state(b);
}

/* Checks the operands of a kernel that takes any mixture of f16 and f32: their types, and whether
 * they fit together: HG__FIT(ctx, fits, "softmax", &a->x, &a->y). */
#define HG__FIT(ctx, fits, kernel, ...)                                              \
	hg__check_operands(                                                              \
	    ctx, fits, kernel, HG__FLOATS, (const struct hg__mat *const[]){__VA_ARGS__}, \
	    (int)(sizeof((const struct hg__mat *const[]){__VA_ARGS__}) / sizeof(struct hg__mat *)))

HG__INLINE hg_status hg__need(hg_context *ctx, int fits, const char *what)
{
	return fits ? HG_OK : hg__fail(ctx, HG_ERR_INTERNAL, "%s", what);
}

#endif
