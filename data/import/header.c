#include "import/header.h"

/* Two orders of the counts are tried, the usual one (nodes first) first. */
enum { READINGS = 2 };

static struct hg__counts reading(const struct hg__first *f, int k)
{
	if (f->numbers == 3 && f->value[0] != f->value[1])
		return (struct hg__counts){-1, -1};
	const int64_t a = f->value[0], b = f->value[f->numbers - 1];
	return k == 0 ? (struct hg__counts){a, b} : (struct hg__counts){b, a};
}

static int is_count_of(int64_t edges, int64_t lines)
{
	return edges == lines || (edges <= INT64_MAX / 2 && 2 * edges == lines);
}

int hg__header_possible(const struct hg__first *first, int64_t edges)
{
	int possible = 0;
	for (int k = 0; k < READINGS && first->numbers; k++)
		possible |= is_count_of(reading(first, k).edges, edges);
	return possible;
}

int hg__header_fits(const struct hg__first *first, const struct hg__rest *rest,
                    struct hg__counts *counts)
{
	for (int k = 0; k < READINGS && first->numbers; k++) {
		*counts = reading(first, k);
		const int from_0 = rest->largest < counts->nodes;
		const int from_1 = rest->least >= 1 && rest->largest <= counts->nodes;
		if (is_count_of(counts->edges, rest->edges) && counts->nodes >= rest->nodes &&
		    (from_0 || from_1))
			return 1;
	}
	return 0;
}

static int is_within(const struct hg__rest *rest, int64_t id)
{
	return id >= rest->least && id <= rest->largest;
}

enum hg__line_is hg__header_decide(const struct hg__first *first, const struct hg__rest *rest,
                                   int can_be_edge, struct hg__counts *counts)
{
	if (!hg__header_fits(first, rest, counts))
		return HG__LINE_EDGE;
	if (!can_be_edge)
		return HG__LINE_HEADER;
	const int usual = counts->nodes == first->value[0];
	const int exact = counts->edges == rest->edges && counts->nodes == rest->nodes;
	const int like_others = is_within(rest, first->value[0]) && is_within(rest, first->value[1]);
	if (usual && exact && !like_others)
		return HG__LINE_HEADER;
	return usual && counts->edges == rest->edges ? HG__LINE_EITHER
	       : like_others                         ? HG__LINE_EDGE
	                                             : HG__LINE_EITHER;
}
