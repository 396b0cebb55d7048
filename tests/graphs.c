/* Small graphs for the tests: lists of edges, and graphs made from them. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

struct coo coo_empty(int64_t rows, int64_t cols)
{
	return (struct coo){.rows = rows, .cols = cols};
}

void coo_add(struct coo *list, int64_t dst, int64_t src)
{
	CHECK(dst >= 0 && dst < list->rows && src >= 0 && src < list->cols);
	if (list->m == list->room) {
		list->room = 2 * list->room + 64;
		list->dst = realloc(list->dst, (size_t)list->room * sizeof *list->dst);
		list->src = realloc(list->src, (size_t)list->room * sizeof *list->src);
		CHECK(list->dst && list->src);
	}
	list->dst[list->m] = (int32_t)dst;
	list->src[list->m++] = (int32_t)src;
}

struct coo coo_path(int64_t n)
{
	struct coo list = coo_empty(n, n);
	for (int64_t i = 0; i + 1 < n; i++)
		coo_add(&list, i, i + 1);
	return list;
}

struct coo coo_cycle(int64_t n)
{
	struct coo list = coo_path(n);
	coo_add(&list, n - 1, 0);
	return list;
}

struct coo coo_ring(int64_t n)
{
	struct coo list = coo_empty(n, n);
	for (int64_t e = 0; e < 3 * n; e++)
		coo_add(&list, e / 3, (e / 3 + e % 3 + n - 1) % n);
	return list;
}

struct coo coo_star(int64_t leaves)
{
	struct coo list = coo_empty(leaves + 1, leaves + 1);
	for (int64_t i = 1; i <= leaves; i++)
		coo_add(&list, 0, i);
	return list;
}

struct coo coo_star_loops(int64_t n)
{
	struct coo list = coo_star(n - 1);
	for (int64_t i = 1; i < n; i++)
		coo_add(&list, i, i);
	return list;
}

struct coo coo_fan_in(int64_t rows, int64_t cols)
{
	struct coo list = coo_empty(rows, cols);
	for (int64_t i = 0; i < cols; i++)
		coo_add(&list, 0, i);
	return list;
}

struct coo coo_fan_out(int64_t rows)
{
	struct coo list = coo_empty(rows, 1);
	for (int64_t i = 0; i < rows; i++)
		coo_add(&list, i, 0);
	return list;
}

/* In the random builders dst is drawn before src: the order of the draws is part of the graph. */
struct coo coo_hub(int64_t n, int64_t m, int64_t every, int64_t hub)
{
	struct coo list = coo_empty(n, n);
	for (int64_t e = 0; e < m; e++) {
		const int64_t dst = e % every ? test_below(n) : hub;
		coo_add(&list, dst, test_below(n));
	}
	return list;
}

struct coo coo_two_communities(int64_t n, int64_t m, int64_t first)
{
	struct coo list = coo_empty(n, n);
	for (int64_t e = 0; e < m; e++) {
		const int64_t dst = test_below(n);
		coo_add(&list, dst, dst < first ? test_below(first) : first + test_below(n - first));
	}
	return list;
}

struct coo coo_communities(int64_t n, int64_t m, int64_t count)
{
	struct coo list = coo_empty(n, n);
	for (int64_t e = 0; e < m; e++) {
		const int64_t dst = test_below(n);
		coo_add(&list, dst, e % 4 ? (dst + count * test_below(n)) % n : test_below(n));
	}
	return list;
}

void coo_add_transpose(struct coo *list)
{
	CHECK(list->rows == list->cols);
	const int64_t m = list->m;
	for (int64_t e = 0; e < m; e++)
		coo_add(list, list->src[e], list->dst[e]);
}

void coo_repeat(struct coo *list, int times)
{
	const int64_t m = list->m;
	for (int64_t e = 0; e < m * (times - 1); e++)
		coo_add(list, list->dst[e], list->src[e]);
}

void coo_free(struct coo *list)
{
	free(list->dst);
	free(list->src);
	*list = (struct coo){0};
}

void coo_move(struct coo list, int32_t *dst, int32_t *src)
{
	if (list.m > 0) {
		memcpy(dst, list.dst, (size_t)list.m * sizeof *dst);
		memcpy(src, list.src, (size_t)list.m * sizeof *src);
	}
	coo_free(&list);
}

hg_graph *coo_graph(hg_context *ctx, struct coo list)
{
	hg_graph *graph = NULL;
	const hg_status status = hg_graph_from_coo(ctx, list.rows, list.cols, list.m, list.dst,
	                                           list.src, NULL, NULL, &graph);
	coo_free(&list);
	CHECK_MSG(status == HG_OK, "%s: %s", hg_status_name(status), hg_context_error(ctx));
	return graph;
}
