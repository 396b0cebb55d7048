/* How the attention kernels iterate over the edges of a graph: span by span. A span is a sequence
 * of neighbouring row parts (items.h) with at most HG__SPAN_NUMBERS scores. The scores of a span
 * are contiguous, [edges, pitch], where the pitch is the number of heads, rounded up to a power of
 * two. Sixteen lanes then hold all heads of 16 / pitch edges, and rows of a few edges fill vectors
 * as well as long ones. A part of more edges than a span holds is computed in several spans, which
 * are cut at the same edges whatever comes before the part. */
#ifndef HG_KERNELS_CPU_ATTENTION_PARTS_H
#define HG_KERNELS_CPU_ATTENTION_PARTS_H

#include "kernels/cpu/items.h"

/* The numbers of a buffer of scores: 4 kB. The forward and the backward pass have seven such
 * buffers, which stay in a first-level cache of 32 kB. Vectors may be read up to 15 numbers behind
 * the last. */
#define HG__SPAN_NUMBERS 1024
#define HG__SPAN_ROOM (HG__SPAN_NUMBERS + HG__LANES)

/* The most parts of a span: with 8 heads it has 128 edges, and so at most 128 parts with an edge.
 * Their descriptions take 4 kB, as much as a buffer. With fewer heads a span of rows of few edges
 * ends here before it is full, when the work of a span is divided among 128 rows already. */
#define HG__SPAN_PARTS 128

/* Several items make a group, of which one thread computes all spans, because items of small graphs
 * have as few as 8 rows and edges, less than a vector of scores. A group has about this many rows
 * and edges: Cora's graph, of 16,000, makes 62 groups, which is four for each of 16 threads.
 * (Derived; other sizes were not measured.) */
#define HG__GROUP_WORK 256

struct hg__span {
	int64_t first; /* the first entry */
	int entries, parts;
	/* Whether the span has the first, and the last, entries of its parts. Only a span of a single
	 * part may lack either. */
	int begins, ends;
	struct hg__part part[HG__SPAN_PARTS];
};

/* The spans of a group, one after the other. */
struct hg__spans {
	const struct hg__csr *csr;
	int pitch;
	int64_t k, k_end; /* the item, and the end of the group */
	struct hg__item item;
	struct hg__part next; /* the part that comes next, from entry `at` on; row -1: not known */
	int64_t at;
};

HG__INLINE int64_t hg__group_items(const struct hg__csr *csr)
{
	const int64_t work = csr->plan && csr->plan->item_work > 0 ? csr->plan->item_work : 1;
	return work < HG__GROUP_WORK ? HG__GROUP_WORK / work : 1;
}

HG__INLINE int64_t hg__groups(const struct hg__csr *csr)
{
	return hg__ceil_div(hg__items(csr), hg__group_items(csr));
}

HG__INLINE struct hg__spans hg__spans_begin(const struct hg__csr *csr, int pitch, int64_t group)
{
	const int64_t items = hg__group_items(csr), first = group * items;
	return (struct hg__spans){.csr = csr,
	                          .pitch = pitch,
	                          .k = first,
	                          .k_end = hg__min(first + items, hg__items(csr)),
	                          .item = hg__item_begin(csr, first),
	                          .next = {.row = -1}};
}

/* Finds the next part, unless it is known. Returns 0 at the end of the group. */
HG__INLINE int hg__spans_find_part(struct hg__spans *spans)
{
	if (spans->next.row >= 0)
		return 1;
	while (!hg__part_next(spans->csr, &spans->item, &spans->next)) {
		if (++spans->k >= spans->k_end)
			return 0;
		spans->item = hg__item_begin(spans->csr, spans->k);
	}
	spans->at = spans->next.begin;
	return 1;
}

/* Makes a span of the next edges of a part that is longer than a span. */
HG__INLINE void hg__spans_cut_part(struct hg__spans *spans, int64_t most, struct hg__span *span)
{
	const int64_t end = hg__min(spans->at + most, spans->next.end);
	span->part[0] = (struct hg__part){spans->next.row, spans->at, end, spans->next.slot};
	span->parts = 1;
	span->first = spans->at;
	span->entries = (int)(end - spans->at);
	span->begins = spans->at == spans->next.begin;
	span->ends = end == spans->next.end;
	spans->at = end;
	if (span->ends)
		spans->next.row = -1;
}

/* Finds the next span. Returns 0 at the end of the group. */
static inline int hg__span_next(struct hg__spans *spans, struct hg__span *span)
{
	const int64_t most = HG__SPAN_NUMBERS / spans->pitch,
	              parts = hg__min(most, (int64_t)HG__SPAN_PARTS);
	span->first = 0;
	span->parts = span->entries = 0;
	span->begins = span->ends = 1;
	while (hg__spans_find_part(spans)) {
		const int64_t entries = spans->next.end - spans->next.begin;
		if (span->parts == 0 && entries > most) {
			hg__spans_cut_part(spans, most, span);
			return 1;
		}
		if (span->parts == parts || span->entries + entries > most)
			return 1;
		if (span->parts == 0)
			span->first = spans->next.begin;
		span->part[span->parts++] = spans->next;
		span->entries += (int)entries;
		spans->next.row = -1;
	}
	return span->parts > 0;
}

/* The numbers of a part in a buffer of scores: where they begin, and how many there are. */
HG__INLINE int64_t hg__part_at(const struct hg__span *span, const struct hg__part *part, int pitch)
{
	return (part->begin - span->first) * pitch;
}

HG__INLINE int64_t hg__part_numbers(const struct hg__part *part, int pitch)
{
	return (part->end - part->begin) * pitch;
}

/* ---- the lanes of an edge, and of a part ---- */

/* The number of heads, rounded up to a power of two: 1, 2, 4, 8 or 16. */
HG__INLINE int hg__pitch(int heads)
{
	int pitch = 1;
	while (pitch < heads)
		pitch *= 2;
	return pitch;
}

/* Stores the first `pitch` lanes. */
HG__INLINE void hg__put_heads(int pitch, float *to, hg__v16 v)
{
	if (pitch == 16) {
		hg__vstore(to, v);
	} else if (pitch == 8) {
		const hg__v8 low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
		memcpy(to, &low, sizeof low);
	} else if (pitch == 4) {
		const hg__v4 low = __builtin_shufflevector(v, v, 0, 1, 2, 3);
		memcpy(to, &low, sizeof low);
	} else {
		to[0] = v[0];
		if (pitch == 2)
			to[1] = v[1];
	}
}

HG__INLINE void hg__copy_heads(int pitch, float *to, const float *from)
{
	memcpy(to, from, (size_t)pitch * sizeof *to);
}

/* The first `pitch` numbers of a table of 16, repeated. */
HG__INLINE hg__v16 hg__repeat_heads(int pitch, const float *table)
{
	const hg__i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	return hg__vspread(table, lane & (pitch - 1));
}

/* The larger number in every lane; b where a is NaN or b is. */
HG__INLINE hg__v16 hg__vlarger(hg__v16 a, hg__v16 b)
{
#if defined(__AVX512F__)
	return (hg__v16)_mm512_max_ps((__m512)a, (__m512)b);
#else
	return hg__vselect(a > b, a, b);
#endif
}

HG__INLINE hg__v16 hg__vswap8(hg__v16 v)
{
	return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* For every head the largest of the numbers of a part, in all lanes of the head; -inf if there are
 * none. A NaN is passed over. */
HG__INLINE hg__v16 hg__heads_max(int pitch, const float *x, int64_t numbers)
{
	const hg__i16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	hg__v16 max = hg__vset(-INFINITY);
	int64_t i = 0;
	for (; i + HG__LANES <= numbers; i += HG__LANES)
		max = hg__vlarger(hg__vload(x + i), max);
	if (i < numbers)
		max = hg__vlarger(
		    hg__vselect(lane < (int32_t)(numbers - i), hg__vload(x + i), hg__vset(-INFINITY)), max);
	if (pitch <= 8)
		max = hg__vlarger(hg__vswap8(max), max);
	if (pitch <= 4)
		max = hg__vlarger(hg__vswap4(max), max);
	if (pitch <= 2)
		max = hg__vlarger(hg__vswap2(max), max);
	if (pitch <= 1)
		max = hg__vlarger(hg__vswap1(max), max);
	return max;
}

/* For every head the sum of the numbers of a part, in all lanes of the head. */
HG__INLINE hg__v16 hg__heads_sum(int pitch, const float *x, int64_t numbers)
{
	hg__v16 sum = {0};
	int64_t i = 0;
	for (; i + HG__LANES <= numbers; i += HG__LANES)
		sum += hg__vload(x + i);
	if (i < numbers)
		sum += hg__vload_n(x + i, (int)(numbers - i));
	if (pitch <= 8)
		sum += hg__vswap8(sum);
	if (pitch <= 4)
		sum += hg__vswap4(sum);
	if (pitch <= 2)
		sum += hg__vswap2(sum);
	if (pitch <= 1)
		sum += hg__vswap1(sum);
	return sum;
}

#endif
