#ifndef HG_DATA_IMPORT_HEADER_H
#define HG_DATA_IMPORT_HEADER_H

#include <stdint.h>

/* Is the first line of an edge list an edge, or does it count what follows? Some writers put
 * "nodes edges" there, or "rows columns entries", and to a reader that is one more edge. */

/* The first line: 2 or 3 whole numbers from 0 on; numbers 0: it is something else. */
struct hg__first {
	int64_t value[3];
	int numbers;
};

/* The lines behind it: how many, and the different ids on them. */
struct hg__rest {
	int64_t edges, nodes, least, largest; /* least, largest: ids; of no edges 0 and -1 */
};

/* What the line says if it is a header. */
struct hg__counts {
	int64_t nodes, edges;
};

/* Could a count of the edges be among the numbers? Cheaper than to count the nodes first. */
int hg__header_possible(const struct hg__first *first, int64_t edges);

/* Counts that fit: as many edges as follow, or half as many where a file lists both directions; no
 * fewer nodes than occur, with ids from 0 or from 1. 0: the numbers do not fit in any order. */
int hg__header_fits(const struct hg__first *first, const struct hg__rest *rest,
                    struct hg__counts *counts);

/* EDGE: the numbers do not fit. HEADER: they are the counts, nodes first, of exactly what follows,
 * and not both of them are ids within the range of the others, as an edge's would be; or the line
 * has another number of columns and cannot be an edge. EITHER: both readings make sense. */
enum hg__line_is { HG__LINE_EDGE, HG__LINE_HEADER, HG__LINE_EITHER };
enum hg__line_is hg__header_decide(const struct hg__first *first, const struct hg__rest *rest,
                                   int can_be_edge, struct hg__counts *counts);

#endif
