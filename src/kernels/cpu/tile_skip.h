/* A strip of C (tile.h) of which most numbers of A are 0: the zeros are left out. Features after
 * dropout are such an A: of bags of words that are stored dense few numbers are not 0.
 *
 * The products of every number of C are added in the same order as in hg__tile, and a product with
 * 0 changes nothing where B is finite. So both give the same bits (except for the sign of a 0 that
 * is left of an underflow), and the numbers may decide which of them computes a strip. Where B has
 * an infinity or a NaN, 0 times it would be NaN, and nothing may be left out. */
#ifndef HG_KERNELS_CPU_TILE_SKIP_H
#define HG_KERNELS_CPU_TILE_SKIP_H

#include "kernels/cpu/tile.h"

/* A, or a part of it: `count` lines of `length` numbers. A line is a row of A, or a column where A
 * is transposed: what is contiguous in memory. */
struct hg__lines {
	const void *data;
	int64_t count, length, pitch;
	int halves, by_column;
};

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)

/* The most numbers that are listed at a time. */
#define HG__LINE_MOST 256

/* Strips of four vectors pay for the lists, narrower ones were not measured. */
#define HG__SKIP_VECTORS 4

/* Rows of C that are summed in memory at a time where A is transposed: 24 kB, which leaves room for
 * a row of B and the lists in a first-level cache of 32 kB. */
#define HG__SKIP_ROWS 96

/* Every so manieth line is looked at to guess how many numbers are not 0. */
#define HG__SKIP_SAMPLE 8

/* Zeros are left out where at most one number in so many is not 0. A number that is not 0 costs
 * about twice as much as in hg__tile, where rows share what they load of B. */
#define HG__SKIP_BELOW 4

/* How far ahead lines are fetched. They are too far apart for the processor to foresee them. */
#define HG__SKIP_AHEAD 8

HG__INLINE __mmask16 hg__first_lanes(int64_t n)
{
	return (__mmask16)(n < HG__LANES ? (1u << n) - 1 : 0xFFFFu);
}

HG__INLINE const void *hg__line(const struct hg__lines *l, int64_t line, int64_t first)
{
	return (const char *)l->data + (line * l->pitch + first) * (l->halves ? 2 : 4);
}

/* Up to 16 numbers of a line from `first` on, of which n are left. */
HG__INLINE __m512 hg__line_numbers(int halves, const void *line, int64_t first, int64_t n)
{
	const __mmask16 lanes = hg__first_lanes(n);
	return halves ? _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, (const hg_half *)line + first))
	              : _mm512_maskz_loadu_ps(lanes, (const float *)line + first);
}

HG__INLINE __mmask16 hg__not_zero(__m512 v)
{
	return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

/* The conversion is explicit: without it gcc 12 with -fsanitize=thread spills the 16 bits of a mask
 * and counts 32. */
HG__INLINE int hg__count_lanes(__mmask16 lanes)
{
	return __builtin_popcount(_cvtmask16_u32(lanes));
}

/* Lists the numbers of a line [n] that are not 0, and where they are. Both lists have room for a
 * vector more. Returns how many there are. */
HG__INLINE int hg__list_numbers(int halves, const void *line, int64_t n, float *value, int32_t *at)
{
	const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	int count = 0;
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const __m512 v = hg__line_numbers(halves, line, i, n - i);
		const __mmask16 some = hg__not_zero(v);
		const __m512i place = _mm512_add_epi32(first, _mm512_set1_epi32((int)i));
		/* compressed in a register: a compressing store takes some processors many cycles */
		_mm512_storeu_ps(value + count, _mm512_maskz_compress_ps(some, v));
		_mm512_storeu_si512(at + count, _mm512_maskz_compress_epi32(some, place));
		count += hg__count_lanes(some);
	}
	return count;
}

HG__INLINE void hg__fetch_line(const struct hg__lines *l, int64_t line, int64_t first, int64_t n)
{
	const char *at = hg__line(l, line, first);
	for (int64_t byte = 0; byte < n * (l->halves ? 2 : 4) && line < l->count; byte += 64)
		__builtin_prefetch(at + byte);
}

/* Whether at most 1 / HG__SKIP_BELOW of the numbers of A are not 0, by a sample of its lines. */
static inline int hg__lines_are_sparse(const struct hg__lines *l)
{
	int64_t seen = 0, count = 0;
	for (int64_t k = 0; k < l->count; k += HG__SKIP_SAMPLE, seen += l->length)
		for (int64_t i = 0; i < l->length; i += HG__LANES)
			count += hg__count_lanes(
			    hg__not_zero(hg__line_numbers(l->halves, hg__line(l, k, 0), i, l->length - i)));
	return l->length <= HG__LINE_MOST && count * HG__SKIP_BELOW <= seen;
}

HG__INLINE int hg__all_finite(const float *x, int64_t n)
{
	hg__i16 bad = {0};
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const hg__v16 v = hg__vload(x + i);
		bad |= (v - v) != (v - v);
	}
	int any = 0;
	for (int i = 0; i < HG__LANES; i++)
		any |= bad[i];
	return !any;
}

/* Stores the sums of a row, or adds them to it. */
HG__INLINE void hg__skip_store(const struct hg__strip *s, int64_t row, const __m512 *acc)
{
	float *c = s->c + row * s->ldc;
	for (int v = 0; v < HG__SKIP_VECTORS; v++) {
		const int first = v * HG__LANES;
		const __mmask16 lanes = hg__first_lanes(s->cols - first);
		__m512 sum = acc[v];
		if (s->add)
			sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, c + first), sum);
		_mm512_mask_storeu_ps(c + first, lanes, sum);
	}
}

/* Lines are rows: the sums of a row are in registers. halves is a constant at every call. */
HG__INLINE void hg__skip_rows(int halves, const struct hg__lines *l, const struct hg__strip *s)
{
	float value[HG__LINE_MOST + HG__LANES];
	int32_t at[HG__LINE_MOST + HG__LANES];
	for (int64_t r = 0; r < l->count; r++) {
		const int n = hg__list_numbers(halves, hg__line(l, r, 0), l->length, value, at);
		__m512 acc[HG__SKIP_VECTORS];
		hg__fetch_line(l, r + HG__SKIP_AHEAD, 0, l->length);
		for (int v = 0; v < HG__SKIP_VECTORS; v++)
			acc[v] = _mm512_setzero_ps();
		for (int e = 0; e < n; e++) {
			const float *b = s->b + at[e] * HG__SKIP_VECTORS * HG__LANES;
			const __m512 a = _mm512_set1_ps(value[e]);
			for (int v = 0; v < HG__SKIP_VECTORS; v++)
				acc[v] = _mm512_fmadd_ps(a, _mm512_loadu_ps(b + v * HG__LANES), acc[v]);
		}
		hg__skip_store(s, r, acc);
	}
}

/* Lines are columns, each of which multiplies one row of B: the sums are in memory. */
HG__INLINE void hg__skip_columns(int halves, const struct hg__lines *l, const struct hg__strip *s)
{
	enum { COLS = HG__SKIP_VECTORS * HG__LANES };
	_Alignas(64) float sums[HG__SKIP_ROWS * COLS];
	float value[HG__SKIP_ROWS + HG__LANES];
	int32_t at[HG__SKIP_ROWS + HG__LANES];
	for (int64_t first = 0; first < l->length; first += HG__SKIP_ROWS) {
		const int64_t rows = hg__min(HG__SKIP_ROWS, l->length - first);
		memset(sums, 0, (size_t)rows * COLS * sizeof *sums);
		for (int64_t p = 0; p < l->count; p++) {
			const int n = hg__list_numbers(halves, hg__line(l, p, first), rows, value, at);
			__m512 b[HG__SKIP_VECTORS];
			hg__fetch_line(l, p + HG__SKIP_AHEAD, first, rows);
			for (int v = 0; v < HG__SKIP_VECTORS; v++)
				b[v] = _mm512_loadu_ps(s->b + p * COLS + v * HG__LANES);
			for (int e = 0; e < n; e++) {
				float *sum = sums + at[e] * COLS;
				const __m512 a = _mm512_set1_ps(value[e]);
				for (int v = 0; v < HG__SKIP_VECTORS; v++)
					_mm512_store_ps(sum + v * HG__LANES,
					                _mm512_fmadd_ps(a, b[v], _mm512_load_ps(sum + v * HG__LANES)));
			}
		}
		for (int64_t r = 0; r < rows; r++)
			hg__skip_store(s, first + r, (const __m512 *)(const void *)(sums + r * COLS));
	}
}

/* Computes a strip of which A is `l`, if that can be done without the zeros. It needs no s->a. */
static int hg__strip_skip(const struct hg__lines *l, const struct hg__strip *s)
{
	if (s->pitch != HG__SKIP_VECTORS * HG__LANES || !hg__all_finite(s->b, s->depth * s->pitch))
		return 0;
	if (l->by_column && l->halves)
		hg__skip_columns(1, l, s);
	else if (l->by_column)
		hg__skip_columns(0, l, s);
	else if (l->halves)
		hg__skip_rows(1, l, s);
	else
		hg__skip_rows(0, l, s);
	return 1;
}

#else

/* Without AVX-512 nothing lists the numbers quickly. */
static inline int hg__lines_are_sparse(const struct hg__lines *l)
{
	(void)l;
	return 0;
}

static int hg__strip_skip(const struct hg__lines *l, const struct hg__strip *s)
{
	(void)l, (void)s;
	return 0;
}

#endif
#endif
