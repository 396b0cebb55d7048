#include <math.h>
#include <string.h>

#include "precision/half.h"
#include "suite/ranges.h"

/* A random bit for each of the first rows or columns, from a fixed word: the same for all operands
 * of a case, so that the terms of products of two operands line up. */
static double sign_of(int64_t i)
{
	return 0x9E3779B97F4A7C15u >> (i & 63) & 1u ? -1.0 : 1.0;
}

struct matrix {
	const struct hg__mat *mat;
	double amplitude;
	int64_t hot; /* the only element of ONE_HOT that is not 0 */
};
typedef double (*draw_fn)(const struct matrix *m, int64_t r, int64_t c);

static double normal(const struct matrix *m, int64_t r, int64_t c)
{
	(void)r, (void)c;
	return m->amplitude * (test_uniform() + test_uniform() + test_uniform() - 1.5);
}

static double uniform(const struct matrix *m, int64_t r, int64_t c)
{
	(void)r, (void)c;
	return m->amplitude * fmin(fmax(4.0 * test_uniform() - 2.0, -1.0), 1.0);
}

static double same_sign(const struct matrix *m, int64_t r, int64_t c)
{
	(void)r, (void)c;
	return m->amplitude;
}

static double by_row(const struct matrix *m, int64_t r, int64_t c)
{
	(void)c;
	return m->amplitude * sign_of(r);
}

static double by_column(const struct matrix *m, int64_t r, int64_t c)
{
	(void)r;
	return m->amplitude * sign_of(c);
}

static double alternating(const struct matrix *m, int64_t r, int64_t c)
{
	return (r + c) % 2 ? -m->amplitude : m->amplitude;
}

static double one_hot(const struct matrix *m, int64_t r, int64_t c)
{
	return r * m->mat->cols + c == m->hot ? m->amplitude : 0.0;
}

static double zero(const struct matrix *m, int64_t r, int64_t c)
{
	(void)m, (void)r, (void)c;
	return 0.0;
}

static double near(const struct matrix *m, int64_t r, int64_t c)
{
	(void)r, (void)c;
	return m->amplitude *
	       (1.0 - (double)test_below(4) * (m->mat->dtype == HG_F16 ? 0x1p-11 : 0x1p-24));
}

static double spread(const struct matrix *m, int64_t r, int64_t c)
{
	(void)r, (void)c;
	return ldexp(m->amplitude * (test_uniform() < 0.5 ? -1.0 : 1.0), -(int)test_below(30));
}

static const draw_fn draws[RANGES_PATTERNS] = {
    [RANGES_NORMAL] = normal,   [RANGES_UNIFORM] = uniform,     [RANGES_SAME_SIGN] = same_sign,
    [RANGES_BY_ROW] = by_row,   [RANGES_BY_COLUMN] = by_column, [RANGES_ALTERNATING] = alternating,
    [RANGES_ONE_HOT] = one_hot, [RANGES_ZERO] = zero,           [RANGES_NEAR] = near,
    [RANGES_SPREAD] = spread,
};

static void put(const struct hg__mat *mat, int64_t r, int64_t c, double x)
{
	const int64_t at = r * mat->ld + c;
	const double most = hg_dtype_get(mat->dtype)->max;
	if (mat->dtype == HG_F16)
		((hg_half *)mat->data)[at] = hg__half_from_double(fmin(fmax(x, -most), most));
	else
		((float *)mat->data)[at] = (float)fmin(fmax(x, -most), most);
}

/* Classes 0 .. scale-1 and some -1, or the same class for all. */
static void labels(const struct hg__mat *mat, enum ranges_pattern pattern, double scale)
{
	for (int64_t r = 0; r < mat->rows; r++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const int64_t label = pattern == RANGES_NORMAL ? test_below((int64_t)scale + 1) - 1
			                      : pattern == RANGES_ZERO ? 0
			                                               : test_below((int64_t)scale);
			((int32_t *)mat->data)[r * mat->ld + c] = (int32_t)label;
		}
}

static void mask(const struct hg__mat *mat, enum ranges_pattern pattern)
{
	for (int64_t r = 0; r < mat->rows; r++)
		for (int64_t c = 0; c < mat->cols; c++)
			((uint8_t *)mat->data)[r * mat->ld + c] =
			    pattern == RANGES_SAME_SIGN || (pattern != RANGES_ZERO && test_below(3) != 0);
}

void ranges_fill(struct hg__mat *mat, enum ranges_pattern pattern, double amplitude,
                 enum hg__fill fill, double scale)
{
	/* The other kinds of operand say what the op is defined for, such as the roots and logarithms.
	 * Half of the time it gets numbers for which it is not defined, and then it must promise
	 * nothing. */
	const int any_sign = fill == HG__FILL_NORMAL || test_below(2);
	const struct matrix m = {mat, amplitude, test_below(mat->rows * mat->cols)};
	if (mat->dtype == HG_I32) {
		labels(mat, pattern, scale);
		return;
	}
	if (mat->dtype == HG_U8) {
		mask(mat, pattern);
		return;
	}
	for (int64_t r = 0; r < mat->rows; r++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const double x = draws[pattern](&m, r, c);
			put(mat, r, c, any_sign ? x : fabs(x));
		}
}

double ranges_amax(const struct hg__mat *mat, int64_t *others)
{
	const uint32_t infinite = mat->dtype == HG_F16 ? 0x7C00u : 0x7F800000u;
	uint32_t most = 0;
	for (int64_t r = 0; r < mat->rows; r++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const int64_t at = r * mat->ld + c;
			const uint32_t bits =
			    mat->dtype == HG_F16 ? ((const hg_half *)mat->data)[at] & 0x7FFFu
			                         : hg__float_bits(((const float *)mat->data)[at]) & 0x7FFFFFFFu;
			*others += bits >= infinite;
			most = bits > most && bits < infinite ? bits : most;
		}
	return mat->dtype == HG_F16 ? (double)hg__half_to_float((hg_half)most)
	                            : (double)hg__float_of_bits(most);
}

int ranges_keeps(const struct hg__mat *mat, double least, int sign)
{
	for (int64_t r = 0; r < mat->rows; r++)
		for (int64_t c = 0; c < mat->cols; c++) {
			const int64_t at = r * mat->ld + c;
			const double x = mat->dtype == HG_F16
			                     ? (double)hg__half_to_float(((const hg_half *)mat->data)[at])
			                     : (double)((const float *)mat->data)[at];
			if (!(fabs(x) >= least && sign * x >= 0.0))
				return 0;
		}
	return 1;
}

double ranges_amplitude(hg_dtype dtype)
{
	static const double special[2][6] = {
	    [HG_F16] = {65504.0, 1.0, 0x1p-24, 0x1.8p-24, 0x1p-15, 1023.0},
	    [HG_F32] = {0x1.fffffep127, 1.0, 0x1p-149, 0x1.8p-140, 0x1p-126, 0x1p62},
	};
	const uint64_t kind = test_u64() % 8;
	if (kind == 0)
		return special[dtype == HG_F32][test_below(6)];
	if (kind == 1)
		return ldexp(1.0 + test_uniform(),
		             (int)test_below(dtype == HG_F16 ? 40 : 250) - (dtype == HG_F16 ? 24 : 125));
	return ldexp(1.0 + test_uniform(), (int)test_below(16) - 9);
}
