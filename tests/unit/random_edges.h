#ifndef HG_TESTS_RANDOM_EDGES_H
#define HG_TESTS_RANDOM_EDGES_H

#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "unit/faulty.h"

/* Edge lists for the tests that compare a graph with brute force on its list. The brute force is
 * slow and obvious, and shares no code with the library. */

enum { MOST_EDGES = 4000, MOST_NODES = 300 };

struct edges {
	int64_t rows, cols, m;
	int32_t dst[MOST_EDGES], src[MOST_EDGES];
	float weight[MOST_EDGES];
};

/* kind 0: scattered; 1: symmetric pattern with symmetric weights; 2: symmetric pattern, other
 * weights; 3: many duplicates; 4: rectangular; 5: one hub. */
enum { KINDS = 6 };
static inline void random_edges(struct edges *g, int kind)
{
	g->rows = 1 + test_below(MOST_NODES - 1);
	g->cols = kind == 4 ? 1 + test_below(MOST_NODES - 1) : g->rows;
	const int64_t wanted = test_below(MOST_EDGES / 2),
	              few = kind == 3 ? 1 + test_below(8) : INT64_MAX;
	for (g->m = 0; g->m < wanted;) {
		const int32_t i = (int32_t)(test_below(g->rows) % few),
		              j = kind == 5 ? 0 : (int32_t)(test_below(g->cols) % few);
		const float w = (float)test_normal();
		const int twin = (kind == 1 || kind == 2) && i != j;
		int known = 0;
		for (int64_t e = 0; kind != 3 && e < g->m; e++)
			known |= g->dst[e] == i && g->src[e] == j;
		if (known) {
			if (test_below(200) == 0)
				break;
			continue;
		}
		for (int t = 0; t <= twin; t++) {
			g->dst[g->m] = t ? j : i;
			g->src[g->m] = t ? i : j;
			g->weight[g->m++] = kind == 2 && t ? w + 1 : w;
		}
	}
}

static inline void *fetch(hg_context *ctx, const void *device, int64_t count, size_t size)
{
	void *host = calloc((size_t)count + 1, size);
	CHECK(host);
	if (count)
		CHECK_OK(ctx->backend->copy_out(ctx, host, device, (size_t)count * size));
	return host;
}

#endif
