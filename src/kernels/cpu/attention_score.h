/* The scores of attention (kernels/attention.h) for one span of the edges, and the masks of its
 * dropout. One code serves the forward pass and both directions of the backward pass, and each
 * product and sum has the same two operands in all of them, in either order. So the score of an
 * edge always has the same bits. */
#ifndef HG_KERNELS_CPU_ATTENTION_SCORE_H
#define HG_KERNELS_CPU_ATTENTION_SCORE_H

#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/draw.h"
#include "kernels/cpu/exp.h"

/* `own` is the end of an edge that all edges of a part share, and `other` the end that its column
 * names: q and k where parts are rows, k and q where they are columns of the graph. */
struct hg__scores {
	const struct hg__attention *of;
	const struct hg__csr *csr;
	int by_column, heads, pitch;
	int64_t d; /* columns of q a head */
	struct hg__mat own, other;
	/* COSINE: 1 / norm, or 0, of the rows of both, f32 [rows, heads] */
	struct hg__mat own_inverse, other_inverse;
	const float *c; /* c in f32, in whole vectors; COSINE: beta of 16 heads */
	float *own_row; /* memory for a row of `own` in f32, in whole vectors */
	int drops;
	uint32_t threshold, step;
	float kept;
};

/* The first `heads` columns of a row, and zeros. */
HG__INLINE hg__v16 hg__head_lanes(const struct hg__mat *m, int64_t row, int heads)
{
	const void *at = hg__at(m, row, 0);
	return m->dtype == HG_F16 ? hg__vload_half_n((const hg_half *)at, heads)
	                          : hg__vload_n((const float *)at, heads);
}

/* f of ADD and ADD_V2. */
HG__INLINE hg__v16 hg__leaky(hg__v16 x, float slope)
{
	const hg__v16 zero = {0};
	return hg__vselect(x > zero, x, slope * x);
}

/* Copies a row in f32 to whole vectors, with zeros behind the last column. */
static inline void hg__whole_row(const struct hg__mat *m, int64_t row, float *out)
{
	const void *at = hg__at(m, row, 0);
	int64_t c = 0;
	if (m->dtype == HG_F16)
		for (; c + HG__LANES <= m->cols; c += HG__LANES)
			hg__vstore(out + c, hg__vload_half((const hg_half *)at + c));
	else
		for (; c + HG__LANES <= m->cols; c += HG__LANES)
			hg__vstore(out + c, hg__vload((const float *)at + c));
	if (c < m->cols)
		hg__vstore(out + c, hg__lanes(m, row, c, 0.0f));
}

/* ---- dot products of heads ---- */

/* Adds the terms of a dot product to sum: own times other, or with ADD_V2 c times
 * f(own + other). */
HG__INLINE hg__v16 hg__dot_add(int v2, hg__v16 own, hg__v16 other, hg__v16 c, float slope,
                               hg__v16 sum)
{
	return v2 ? hg__vfma(c, hg__leaky(own + other, slope), sum) : hg__vfma(own, other, sum);
}

/* Heads of 8 columns: lane k of the result is the sum of head k. Each of the four vectors holds the
 * terms of two heads; lanes that are 4, 2 and 1 apart are added, and the first two steps merge two
 * vectors into one (as in sddmm.c). */
HG__INLINE hg__v16 hg__sum_eights(const hg__v16 *v)
{
	const hg__i16 high4 = {0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, -1, -1, -1, -1},
	              high2 = {0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1};
	hg__v16 w[2];
	for (int i = 0; i < 2; i++)
		w[i] = hg__vselect(high4, v[2 * i + 1], v[2 * i]) +
		       hg__vswap4(hg__vselect(high4, v[2 * i], v[2 * i + 1]));
	const hg__v16 x = hg__vselect(high2, w[1], w[0]) + hg__vswap2(hg__vselect(high2, w[0], w[1])),
	              y = x + hg__vswap1(x);
	return __builtin_shufflevector(y, y, 0, 8, 4, 12, 2, 10, 6, 14, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* The 8 heads of 8 columns from column `first` on, or fewer where the columns end. */
HG__INLINE hg__v16 hg__dot_of_eights(int v2, const float *own, const struct hg__mat *other,
                                     int64_t j, int64_t first, const float *c, float slope)
{
	const hg__v16 zero = {0};
	hg__v16 v[4] = {{0}};
	for (int i = 0; i < 4 && first + i * HG__LANES < other->cols; i++) {
		const int64_t at = first + i * HG__LANES;
		v[i] = hg__dot_add(v2, hg__vload(own + at), hg__lanes(other, j, at, 0.0f),
		                   v2 ? hg__vload(c + at) : zero, slope, zero);
	}
	return hg__sum_eights(v);
}

/* The same for exactly 64 columns. halves is a constant at every call. */
HG__INLINE hg__v16 hg__dot_of_64(int v2, int halves, const float *own, const void *other,
                                 const float *c, float slope)
{
	const hg__v16 zero = {0};
	hg__v16 v[4];
	for (int i = 0; i < 4; i++) {
		const int at = i * HG__LANES;
		v[i] = hg__dot_add(v2, hg__vload(own + at),
		                   halves ? hg__vload_half((const hg_half *)other + at)
		                          : hg__vload((const float *)other + at),
		                   v2 ? hg__vload(c + at) : zero, slope, zero);
	}
	return hg__sum_eights(v);
}

/* The head of d columns from column `first` on. All operands are masked at the end of the head,
 * because zero times an infinity of the next head would be NaN. */
HG__INLINE float hg__dot_of_head(int v2, const float *own, const struct hg__mat *other, int64_t j,
                                 int64_t first, int64_t d, const float *c, float slope)
{
	hg__v16 sum = {0};
	for (int64_t at = first; at < first + d; at += HG__LANES) {
		const int n = (int)hg__min(HG__LANES, first + d - at);
		const struct hg__mat head = {other->data, other->rows, first + d, other->ld, other->dtype};
		sum = hg__dot_add(v2, hg__vload_n(own + at, n), hg__lanes(&head, j, at, 0.0f),
		                  v2 ? hg__vload_n(c + at, n) : sum, slope, sum);
	}
	return hg__vsum(sum);
}

/* The dot products of all heads of a row of `own` [whole vectors] with row j of `other`. Lanes
 * behind the last head are 0. c: of ADD_V2, otherwise NULL. */
HG__INLINE hg__v16 hg__dots(int v2, int heads, int64_t d, const float *own,
                            const struct hg__mat *other, int64_t j, const float *c, float slope)
{
	float out[HG__LANES] = {0};
	if (d == 8 && heads == 8)
		return other->dtype == HG_F16 ? hg__dot_of_64(v2, 1, own, hg__at(other, j, 0), c, slope)
		                              : hg__dot_of_64(v2, 0, own, hg__at(other, j, 0), c, slope);
	if (d == 8 && heads < 8)
		return hg__dot_of_eights(v2, own, other, j, 0, c, slope);
	if (d == 8)
		for (int k = 0; k < heads; k += 8) {
			const hg__v16 eight = hg__dot_of_eights(v2, own, other, j, 8 * k, c, slope);
			hg__put_heads(8, out + k, eight);
		}
	else
		for (int k = 0; k < heads; k++)
			out[k] = hg__dot_of_head(v2, own, other, j, k * d, d, c, slope);
	return hg__vload(out);
}

/* ---- scores ---- */

HG__INLINE void hg__add_part_scores(int pitch, int halves, const struct hg__scores *s,
                                    const struct hg__part *part, float *x)
{
	const hg__v16 own = hg__head_lanes(&s->own, part->row, s->heads);
	const int32_t *col = s->csr->col;
	const int64_t ld = s->other.ld;
	for (int64_t p = part->begin; p < part->end; p++, x += pitch) {
		const int64_t at = (int64_t)col[p] * ld;
		const hg__v16 other = halves
		                          ? hg__vload_half_n((const hg_half *)s->other.data + at, s->heads)
		                          : hg__vload_n((const float *)s->other.data + at, s->heads);
		hg__put_heads(pitch, x, own + other);
	}
}

HG__INLINE void hg__add_span_scores(int pitch, const struct hg__scores *s,
                                    const struct hg__span *span, float *x)
{
	for (int i = 0; i < span->parts; i++) {
		const struct hg__part *part = &span->part[i];
		if (s->other.dtype == HG_F16)
			hg__add_part_scores(pitch, 1, s, part, x + hg__part_at(span, part, pitch));
		else
			hg__add_part_scores(pitch, 0, s, part, x + hg__part_at(span, part, pitch));
	}
}

/* Scores of DOT, COSINE and ADD_V2, without the bias. t (COSINE, or NULL) receives the products of
 * the unit vectors. */
HG__INLINE void hg__dot_span_scores(enum hg_score kind, const struct hg__scores *s,
                                    const struct hg__span *span, float *x, float *t)
{
	const int v2 = kind == HG_SCORE_ADD_V2, pitch = s->pitch;
	const hg__v16 one = hg__vset(1.0f);
	for (int i = 0; i < span->parts; i++) {
		const struct hg__part *part = &span->part[i];
		const hg__v16 inverse =
		    kind == HG_SCORE_COSINE ? hg__head_lanes(&s->own_inverse, part->row, s->heads) : one;
		hg__whole_row(&s->own, part->row, s->own_row);
		for (int64_t p = part->begin; p < part->end; p++) {
			const int64_t j = s->csr->col[p], at = (p - span->first) * pitch;
			hg__v16 y = hg__dots(v2, s->heads, s->d, s->own_row, &s->other, j, s->c, s->of->slope);
			if (kind == HG_SCORE_DOT)
				y *= s->of->scale;
			if (kind == HG_SCORE_COSINE) {
				y *= inverse * hg__head_lanes(&s->other_inverse, j, s->heads);
				if (t)
					hg__put_heads(pitch, t + at, y);
				y *= hg__vload(s->c);
			}
			hg__put_heads(pitch, x + at, y);
		}
	}
}

static inline void hg__add_bias(const struct hg__scores *s, const struct hg__span *span, float *x)
{
	for (int64_t i = 0; i < span->entries; i++) {
		const int64_t edge = hg__edge_of(s->csr, span->first + i);
		float *at = x + i * s->pitch;
		hg__put_heads(s->pitch, at, hg__vload(at) + hg__head_lanes(&s->of->bias, edge, s->heads));
	}
}

/* The scores of a span, [edges, pitch]; with ADD before f. t: see hg__dot_span_scores. */
static inline void hg__span_scores(const struct hg__scores *s, const struct hg__span *span,
                                   float *x, float *t)
{
	if (s->of->score == HG_SCORE_ADD) {
		if (s->pitch == 1)
			hg__add_span_scores(1, s, span, x);
		else if (s->pitch == 8)
			hg__add_span_scores(8, s, span, x);
		else
			hg__add_span_scores(s->pitch, s, span, x);
	} else if (s->of->score == HG_SCORE_DOT) {
		hg__dot_span_scores(HG_SCORE_DOT, s, span, x, t);
	} else if (s->of->score == HG_SCORE_COSINE) {
		hg__dot_span_scores(HG_SCORE_COSINE, s, span, x, t);
	} else {
		hg__dot_span_scores(HG_SCORE_ADD_V2, s, span, x, t);
	}
	if (s->of->bias.data)
		hg__add_bias(s, span, x);
}

/* out = f(x) with ADD, otherwise x. An edge of weight 0 gets the score -inf, so that it neither
 * decides the maximum of its row nor has an exp that overflows. */
static inline void hg__span_values(const struct hg__scores *s, const struct hg__span *span,
                                   const float *x, float *out)
{
	const int64_t numbers = (int64_t)span->entries * s->pitch;
	const float slope = s->of->score == HG_SCORE_ADD ? s->of->slope : 1.0f;
	for (int64_t i = 0; i < numbers; i += HG__LANES)
		hg__vstore(out + i, hg__leaky(hg__vload(x + i), slope));
	for (int64_t i = 0; i < span->entries && s->of->weight; i++)
		if (s->of->weight[hg__edge_of(s->csr, span->first + i)] == 0.0f)
			hg__put_heads(s->pitch, out + i * s->pitch, hg__vset(-INFINITY));
}

/* Multiplies the numbers of each edge by its weight. */
static inline void hg__apply_weights(const struct hg__scores *s, const struct hg__span *span,
                                     float *p)
{
	for (int64_t i = 0; i < span->entries && s->of->weight; i++) {
		const float weight = s->of->weight[hg__edge_of(s->csr, span->first + i)];
		float *at = p + i * s->pitch;
		hg__put_heads(s->pitch, at, weight * hg__vload(at));
	}
}

/* p = weight exp(value - lse), at most 1. lse: those of the same numbers; where a row has none it
 * is +inf (hg__row_lse). value may be p. */
static inline void hg__span_p(const struct hg__scores *s, const struct hg__span *span,
                              const float *value, const float *lse, float *p)
{
	const int64_t numbers = (int64_t)span->entries * s->pitch;
	const hg__v16 one = hg__vset(1.0f);
	for (int64_t i = 0; i < numbers; i += HG__LANES)
		hg__vstore(p + i, hg__vexp(hg__vload(value + i) - hg__vload(lse + i)));
	hg__apply_weights(s, span, p);
	for (int64_t i = 0; i < numbers; i += HG__LANES) {
		const hg__v16 x = hg__vload(p + i);
		hg__vstore(p + i, hg__vselect(x > one, one, x));
	}
}

/* The log-sum-exp of a row, as the backward pass wants it: +inf in place of -inf, so that exp(value
 * - lse) = 0 for a row without edges. */
HG__INLINE hg__v16 hg__row_lse(const struct hg__mat *log_sum, int64_t row, int heads)
{
	const hg__v16 lse = hg__head_lanes(log_sum, row, heads), most = hg__vset(INFINITY);
	return hg__vselect(lse == -most, most, lse);
}

/* The log-sum-exp of the row of each number of a span; parts are rows. */
static inline void hg__span_lse(const struct hg__scores *s, const struct hg__span *span,
                                const struct hg__mat *log_sum, float *out)
{
	for (int i = 0; i < span->parts; i++) {
		const struct hg__part *part = &span->part[i];
		const hg__v16 lse = hg__row_lse(log_sum, part->row, s->heads);
		for (int64_t p = part->begin; p < part->end; p++)
			hg__put_heads(s->pitch, out + (p - span->first) * s->pitch, lse);
	}
}

/* ---- dropout ---- */

typedef uint16_t hg__halves __attribute__((vector_size(32)));

/* The two ends of each of eight edges. */
struct hg__ends {
	hg__words own, other;
};

/* The ends of n <= 8 edges from entry p on; those behind the last edge are 0. *part: the part of an
 * edge before p, and then that of the last edge. Eight edges of one part take no table. */
HG__INLINE struct hg__ends hg__ends_of(const struct hg__scores *s, const struct hg__span *span,
                                       int64_t p, int n, int *part)
{
	typedef uint32_t columns __attribute__((vector_size(32), aligned(4), may_alias));
	const hg__words zero = {0};
	while (p >= span->part[*part].end)
		++*part;
	if (p + HG__DRAW <= span->part[*part].end) {
		const columns other = *(const columns *)(s->csr->col + p);
		return (struct hg__ends){zero + (uint64_t)span->part[*part].row,
		                         __builtin_convertvector(other, hg__words)};
	}
	uint64_t own[HG__DRAW] = {0}, other[HG__DRAW] = {0};
	struct hg__ends ends;
	for (int l = 0; l < n; l++) {
		while (p + l >= span->part[*part].end)
			++*part;
		own[l] = (uint64_t)span->part[*part].row;
		other[l] = (uint64_t)s->csr->col[p + l];
	}
	memcpy(&ends.own, own, sizeof own);
	memcpy(&ends.other, other, sizeof other);
	return ends;
}

/* The random numbers, of 16 bits each, of eight edges and of heads 8 octet .. 8 octet + 7. */
HG__INLINE struct hg__quads hg__mask_quads(const struct hg__scores *s, const struct hg__ends *ends,
                                           uint32_t octet)
{
	const hg__words zero = {0};
	const struct hg__quads x = {.w = {s->by_column ? ends->other : ends->own,
	                                  s->by_column ? ends->own : ends->other, zero + octet,
	                                  zero + s->step}};
	return hg__philox_8(s->of->dropout.key, x);
}

/* The masks, 0 or 1 / keep, of n edges and of heads k .. k + 7. */
HG__INLINE void hg__put_masks(const struct hg__scores *s, struct hg__quads x, int n, int k,
                              float *mask)
{
	const hg__v16 zero = {0}, kept = hg__vset(s->kept);
	const int lanes = s->pitch < 8 ? s->pitch : 8;
	_Alignas(64) uint16_t half[HG__DRAW * 8];
	if (s->pitch == 1) { /* one number of each edge */
		const hg__words word = x.w[0] & 0xFFFFu;
		for (int l = 0; l < n; l++)
			mask[l] = hg__attention_mask_of((uint32_t)word[l], s->threshold, s->kept);
		return;
	}
	hg__put_quads(x, (uint32_t *)(void *)half);
	if (s->pitch == 8) { /* two edges in a vector, perhaps one of them behind the last */
		for (int l = 0; l < n; l += 2) {
			hg__halves two;
			memcpy(&two, half + 8 * l, sizeof two);
			const hg__i16 word = __builtin_convertvector(two, hg__i16);
			hg__vstore(mask + l * 8, hg__vselect(word < (int32_t)s->threshold, zero, kept));
		}
		return;
	}
	for (int l = 0; l < n; l++)
		for (int h = 0; h < lanes; h++)
			mask[l * s->pitch + k + h] =
			    hg__attention_mask_of(half[8 * l + h], s->threshold, s->kept);
}

/* The masks, 0 or 1 / keep, of all edges and heads of a span: [edges, pitch]. */
static inline void hg__span_masks(const struct hg__scores *s, const struct hg__span *span,
                                  float *mask)
{
	int part = 0;
	for (int64_t e = 0; e < span->entries; e += HG__DRAW) {
		const int n = (int)hg__min(HG__DRAW, span->entries - e);
		const struct hg__ends ends = hg__ends_of(s, span, span->first + e, n, &part);
		for (int k = 0; k < s->heads; k += 8)
			hg__put_masks(s, hg__mask_quads(s, &ends, (uint32_t)k / 8), n, k, mask + e * s->pitch);
	}
}

/* ---- preparation ---- */

/* COSINE: points to the tables of inverse norms, of q [rows, heads] and of k [cols, heads]. */
static inline void hg__scores_inverse(struct hg__scores *s, float *inverse_q, float *inverse_k)
{
	const int64_t h = s->heads;
	const struct hg__mat q = {inverse_q, s->of->q.rows, h, h, HG_F32},
	                     k = {inverse_k, s->of->k.rows, h, h, HG_F32};
	s->own_inverse = s->by_column ? k : q;
	s->other_inverse = s->by_column ? q : k;
}

/* How many rows of inverse norms hg__inverse_norms computes: row i of `own` and then those of
 * `other`. */
static inline int64_t hg__inverse_rows(const struct hg__scores *s)
{
	return s->of->score == HG_SCORE_COSINE ? s->own.rows + s->other.rows : 0;
}

/* Computes 1 / norm of each head of one row, or 0 where the norm is less than HG__ATTENTION_TINY. i
 * counts the rows as hg__inverse_rows does. row: memory for a row of q. */
static inline void hg__inverse_norms(const struct hg__scores *s, int64_t i, float *row)
{
	const int is_own = i < s->own.rows;
	const struct hg__mat *m = is_own ? &s->own : &s->other,
	                     *inverse = is_own ? &s->own_inverse : &s->other_inverse;
	i -= is_own ? 0 : s->own.rows;
	hg__whole_row(m, i, row);
	const hg__v16 norm = hg__vsqrt(hg__dots(0, s->heads, s->d, row, m, i, NULL, 0.0f)),
	              tiny = hg__vset((float)HG__ATTENTION_TINY), zero = {0};
	hg__lanes_put(inverse, i, 0,
	              hg__vselect(norm < tiny, zero, 1.0f / hg__vselect(norm < tiny, tiny, norm)));
}

/* c in f32: [whole vectors], with COSINE one number for each of 16 heads. */
static inline void hg__prepare_c(const struct hg__attention *of, float *c)
{
	if (of->score == HG_SCORE_ADD_V2)
		hg__whole_row(&of->c, 0, c);
	for (int k = 0; k < HG__LANES && of->score == HG_SCORE_COSINE; k++)
		c[k] = k < of->heads ? hg__get(&of->c, 0, of->c.cols == 1 ? 0 : k) : 0.0f;
}

static inline struct hg__scores hg__scores_of(const struct hg__attention *of,
                                              const struct hg__csr *csr, int by_column,
                                              const float *c)
{
	const struct hg__attention_dropout *dropout = &of->dropout;
	const uint32_t threshold = hg__attention_threshold(dropout->p);
	return (struct hg__scores){.of = of,
	                           .csr = csr,
	                           .by_column = by_column,
	                           .heads = of->heads,
	                           .pitch = hg__pitch(of->heads),
	                           .d = of->q.cols / of->heads,
	                           .own = by_column ? of->k : of->q,
	                           .other = by_column ? of->q : of->k,
	                           .c = c,
	                           .drops = threshold > 0,
	                           .threshold = threshold,
	                           .step = threshold ? (uint32_t)*dropout->step : 0,
	                           .kept = hg__attention_kept(dropout->p)};
}

#endif
