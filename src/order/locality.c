/* Models how many cache lines an aggregation over the rows misses, from one pass over the edges.
 * The sweep is taken to repeat, so the first use of a source has an age as well: since its last use
 * in the sweep before.
 *
 * Let f(t) be the share of edges whose source was last used more than t edges ago. The mean number
 * of distinct sources in a window of t edges is then (working sets: Denning and Schwartz 1972)
 *
 *     s(t) = f(0) + f(1) + ... + f(t-1)
 *
 * and a cache of C lines with least-recently-used replacement misses the share f(t) of all edges,
 * where s(t) = C. One histogram of ages therefore answers for every C. */
#include <string.h>

#include "core/plan_tiles.h"
#include "order/order.h"

/* Ages are counted in 16 classes for each power of two. A class is at most 1/16 wide, and so is the
 * relative error of t. */
enum { PARTS = 16, CLASSES = 64 * PARTS };

static int class_of(int64_t age)
{
	int power = 0;
	while (age >> (power + 1) >= PARTS)
		power++;
	/* age < 32: the age itself; else 16 .. 31 within its power */
	return power * PARTS + (int)(age >> power);
}

static int64_t class_begin(int class)
{
	const int power = class < 2 * PARTS ? 0 : class / PARTS - 1;
	return (int64_t)(class - power * PARTS) << power;
}

/* The share of edges that a cache of `lines` lines misses. count[c]: edges with an age in class
 * c. */
static double miss_share(const int64_t *count, int64_t m, double lines)
{
	double set = 0;
	int64_t missing = m;
	for (int c = 1; c < CLASSES - PARTS && missing > 0; c++) {
		const double width = (double)(class_begin(c + 1) - class_begin(c)),
		             share = (double)missing / (double)m;
		if (set + share * width >= lines)
			return share;
		set += share * width;
		missing -= count[c];
	}
	return missing > 0 ? (double)missing / (double)m : 0;
}

struct sweep {
	int64_t *first, *last; /* [n] number of the edge that used it, from 1; 0: none yet */
	int64_t count[CLASSES];
	int64_t tiled; /* distinct sources, summed over all windows (core/plan_tiles.h) */
};

static void sweep_rows(int64_t n, const int64_t *rowptr, const int32_t *col, const int32_t *order,
                       struct sweep *s)
{
	int64_t now = 0, tile = 0;
	for (int64_t k = 0; k < n; k++) {
		const int64_t i = order ? order[k] : k;
		if (k % HG__TILE_ROWS == 0)
			tile = now;
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
			int64_t *last = &s->last[col[e]];
			if (e + HG__AHEAD < rowptr[n])
				hg__order_prefetch(&s->last[col[e + HG__AHEAD]]);
			s->tiled += *last <= tile;
			now++;
			if (*last == 0)
				s->first[col[e]] = now;
			else
				s->count[class_of(now - *last)]++;
			*last = now;
		}
	}
	for (int64_t j = 0; j < n; j++)
		if (s->last[j])
			s->count[class_of(now - s->last[j] + s->first[j])]++;
}

/* The time of an edge is that of its slowest level: reading a line of 128 bytes from the
 * first-level cache (132 SMs, 128 bytes a clock, 1.98 GHz: 4 ps), from the second-level cache (9.2
 * TB/s) if it misses the first, and from memory (4.1 TB/s) if it misses both. The last two rates
 * come from the measured time of the gather on an H200, F = 64, on graphs that fit the second-level
 * cache (13.8 ps an edge) and on graphs that do not (27.2 ps where 88 % miss). They predict 12.7 ps
 * for Kron-21, where 12.8 was measured. At F = 128 (half the lines, twice the bytes) they are
 * within 10 % of what was measured on the same three graphs. */
#define PS_EDGE 4.0
#define PS_NEAR 13.9
#define PS_FAR 31.0
#define NEAR_LINES 1024.0
#define FAR_LINES 262144.0

static double edge_time_ps(double near_miss, double far_miss)
{
	const double second = PS_NEAR * near_miss, memory = PS_FAR * far_miss,
	             most = second > memory ? second : memory;
	return most > PS_EDGE ? most : PS_EDGE;
}

hg_status hg__locality(const struct hg__order_work *work, int64_t n, const int64_t *rowptr,
                       const int32_t *col, const int32_t *order, hg_locality *locality)
{
	const int64_t m = rowptr[n];
	struct hg__buffer last, memory;
	const hg_locality none = HG_LOCALITY_INIT;
	*locality = none;
	if (m == 0)
		return HG_OK;
	HG__TRY(hg__order_alloc(work, n, 2 * sizeof(int64_t), &last));
	hg_status status = hg__order_alloc(work, 1, sizeof(struct sweep), &memory);
	if (status == HG_OK) {
		struct sweep *s = memory.data;
		s->last = last.data;
		s->first = s->last + n;
		sweep_rows(n, rowptr, col, order, s);
		locality->near_miss = miss_share(s->count, m, NEAR_LINES);
		locality->far_miss = miss_share(s->count, m, FAR_LINES);
		locality->tile_reuse = (double)m / (double)s->tiled;
		locality->gather_ps = edge_time_ps(locality->near_miss, locality->far_miss);
	}
	hg__order_free(work, &memory);
	hg__order_free(work, &last);
	return status;
}
