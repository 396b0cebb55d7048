#ifndef HG_DATA_IMPORT_HEADER_H
#define HG_DATA_IMPORT_HEADER_H

#include <stdint.h>

/* Decide whether the first line of an edge list is an edge or counts what follows. Some writers put
 * "nodes edges" there, or "rows columns entries", which a naive reader takes for one more edge. */

/* The first line: 2 or 3 integers from 0 on. numbers is 0 if the line is anything else. */
struct hg__first {
	int64_t value[3];
	int numbers;
};

/* The lines after it: the number of edges and of distinct ids. */
struct hg__rest {
	int64_t edges, nodes, least, largest; /* least, largest: of the ids; 0 and -1 without edges */
};

/* The counts in the line if it is a header. */
struct hg__counts {
	int64_t nodes, edges;
};

/* Could one of the numbers count the edges? This is cheaper than counting the nodes first. */
int hg__header_possible(const struct hg__first *first, int64_t edges);

/* Do the numbers, in some order, count what follows? There must be as many edges, or half as many
 * where a file lists both directions, and at least as many nodes as occur, with ids from 0 or from
 * 1. On success *counts holds the counts. */
int hg__header_fits(const struct hg__first *first, const struct hg__rest *rest,
                    struct hg__counts *counts);

/* HG__LINE_EDGE: the numbers do not fit. HG__LINE_HEADER: they are the exact counts of what
 * follows, nodes first, and at least one of them lies outside the range of the other ids, so that
 * the line does not look like an edge; or the line has another number of columns and cannot be an
 * edge. HG__LINE_EITHER: both readings make sense. */
enum hg__line_is { HG__LINE_EDGE, HG__LINE_HEADER, HG__LINE_EITHER };
enum hg__line_is hg__header_decide(const struct hg__first *first, const struct hg__rest *rest,
                                   int can_be_edge, struct hg__counts *counts);

#endif
