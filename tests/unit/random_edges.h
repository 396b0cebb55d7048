#ifndef HG_TESTS_RANDOM_EDGES_H
#define HG_TESTS_RANDOM_EDGES_H

#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "graphs.h"
#include "unit/faulty.h"

/* Random weighted lists of edges for the tests that compare a graph with what brute force computes
 * from its list. The brute force is slow and simple, and shares no code with the library. */

enum { MOST_EDGES = 4000, MOST_NODES = 300 };

enum {
	SCATTERED = 0,
	SYMMETRIC = 1,         /* pattern and weights */
	SYMMETRIC_PATTERN = 2, /* with weights that are not symmetric */
	DUPLICATES = 3,        /* many of them; the other kinds have none */
	RECTANGULAR = 4,
	ONE_SOURCE = 5, /* all edges come from node 0 */
	KINDS = 6
};

static inline int coo_has(const struct coo *list, int64_t dst, int64_t src)
{
	for (int64_t e = 0; e < list->m; e++)
		if (list->dst[e] == dst && list->src[e] == src)
			return 1;
	return 0;
}

static inline struct coo random_edges(int kind)
{
	const int64_t rows = 1 + test_below(MOST_NODES - 1);
	struct coo list = coo_empty(rows, kind == RECTANGULAR ? 1 + test_below(MOST_NODES - 1) : rows);
	const int64_t wanted = test_below(MOST_EDGES / 2),
	              few = kind == DUPLICATES ? 1 + test_below(8) : INT64_MAX;
	while (list.m < wanted) {
		const int64_t i = test_below(list.rows) % few,
		              j = kind == ONE_SOURCE ? 0 : test_below(list.cols) % few;
		const float w = (float)test_normal();
		if (kind != DUPLICATES && coo_has(&list, i, j)) {
			if (test_below(200) == 0)
				break; /* few of the possible edges are left */
			continue;
		}
		coo_add_weighted(&list, i, j, w);
		if ((kind == SYMMETRIC || kind == SYMMETRIC_PATTERN) && i != j)
			coo_add_weighted(&list, j, i, kind == SYMMETRIC_PATTERN ? w + 1 : w);
	}
	return list;
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
