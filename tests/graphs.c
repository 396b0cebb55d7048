/* Test graphs: lists of edges, graphs made of them, and graphs in host memory. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

struct coo coo_empty(int64_t rows, int64_t cols)
{
	return (struct coo){.rows = rows, .cols = cols};
}

static void *grow(void *array, int64_t count, size_t size)
{
	void *grown = realloc(array, (size_t)count * size);
	CHECK(grown != NULL);
	return grown;
}

static void add_edge(struct coo *list, int64_t dst, int64_t src)
{
	CHECK(dst >= 0 && dst < list->rows && src >= 0 && src < list->cols);
	if (list->m == list->room) {
		list->room = 2 * list->room + 64;
		list->dst = grow(list->dst, list->room, sizeof *list->dst);
		list->src = grow(list->src, list->room, sizeof *list->src);
		if (list->weight)
			list->weight = grow(list->weight, list->room, sizeof *list->weight);
	}
	list->dst[list->m] = (int32_t)dst;
	list->src[list->m++] = (int32_t)src;
}

void coo_add(struct coo *list, int64_t dst, int64_t src)
{
	CHECK(!list->weight);
	add_edge(list, dst, src);
}

void coo_add_weighted(struct coo *list, int64_t dst, int64_t src, float weight)
{
	CHECK(list->weight || list->m == 0);
	add_edge(list, dst, src);
	if (!list->weight)
		list->weight = grow(NULL, list->room, sizeof *list->weight);
	list->weight[list->m - 1] = weight;
}

float *coo_weights(struct coo *list)
{
	CHECK(!list->weight);
	list->weight = grow(NULL, list->room + 1, sizeof *list->weight);
	memset(list->weight, 0, (size_t)(list->room + 1) * sizeof *list->weight);
	return list->weight;
}

void coo_drop_weights(struct coo *list)
{
	free(list->weight);
	list->weight = NULL;
}

void coo_turn_negative_rows(struct coo *list)
{
	double *sum = calloc((size_t)list->rows + 1, sizeof *sum);
	CHECK(sum);
	for (int64_t e = 0; e < list->m; e++)
		sum[list->dst[e]] += (double)list->weight[e];
	for (int64_t e = 0; e < list->m; e++)
		if (sum[list->dst[e]] < 0.0)
			list->weight[e] = -list->weight[e];
	free(sum);
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

struct coo coo_hubs(int64_t n, int64_t m, int64_t every, int64_t hubs)
{
	struct coo list = coo_empty(n, n);
	for (int64_t e = 0; e < m; e++) {
		const int64_t dst = test_below(e % every ? n : hubs);
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
	CHECK(list->rows == list->cols && !list->weight);
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
	free(list->weight);
	*list = (struct coo){0};
}

hg_status coo_build(hg_context *ctx, const struct coo *list, hg_graph **graph)
{
	return hg_graph_from_coo(ctx, list->rows, list->cols, list->m, list->dst, list->src,
	                         list->weight, NULL, graph);
}

hg_graph *coo_to_graph(hg_context *ctx, const struct coo *list)
{
	hg_graph *graph = NULL;
	const hg_status status = coo_build(ctx, list, &graph);
	CHECK_MSG(status == HG_OK, "%s: %s", hg_status_name(status), hg_context_error(ctx));
	return graph;
}

hg_graph *coo_graph(hg_context *ctx, struct coo list)
{
	hg_graph *graph = coo_to_graph(ctx, &list);
	coo_free(&list);
	return graph;
}

static struct host_csr host_csr_new(int64_t rows, int64_t cols, int64_t m, int weighted)
{
	struct host_csr csr = {.rows = rows, .cols = cols, .m = m};
	csr.rowptr = calloc((size_t)rows + 1, sizeof *csr.rowptr);
	csr.row = calloc((size_t)m + 1, sizeof *csr.row);
	csr.col = calloc((size_t)m + 1, sizeof *csr.col);
	csr.weight = weighted ? calloc((size_t)m + 1, sizeof *csr.weight) : NULL;
	CHECK(csr.rowptr && csr.row && csr.col && (csr.weight || !weighted));
	return csr;
}

/* Counting sort of `count` items by key[item], 0 <= key < keys. Equal keys keep their order. */
static void sort_by_key(int64_t count, const int32_t *key, int64_t keys, const int64_t *from,
                        int64_t *to)
{
	int64_t *next = calloc((size_t)keys + 1, sizeof *next);
	CHECK(next != NULL);
	for (int64_t i = 0; i < count; i++)
		next[key[i] + 1]++;
	for (int64_t k = 0; k < keys; k++)
		next[k + 1] += next[k];
	for (int64_t i = 0; i < count; i++)
		to[next[key[from[i]]]++] = from[i];
	free(next);
}

struct host_csr host_csr_sort(struct coo list)
{
	struct host_csr csr = host_csr_new(list.rows, list.cols, list.m, list.weight != NULL);
	int64_t *given = calloc((size_t)list.m + 1, sizeof *given),
	        *by_col = calloc((size_t)list.m + 1, sizeof *by_col);
	CHECK(given && by_col);
	for (int64_t e = 0; e < list.m; e++) {
		given[e] = e;
		csr.rowptr[list.dst[e] + 1]++;
	}
	for (int64_t i = 0; i < list.rows; i++)
		csr.rowptr[i + 1] += csr.rowptr[i];
	sort_by_key(list.m, list.src, list.cols, given, by_col);
	sort_by_key(list.m, list.dst, list.rows, by_col, given);
	for (int64_t e = 0; e < list.m; e++) {
		csr.row[e] = list.dst[given[e]];
		csr.col[e] = list.src[given[e]];
		if (csr.weight)
			csr.weight[e] = list.weight[given[e]];
	}
	csr.edge = given;
	free(by_col);
	coo_free(&list);
	return csr;
}

struct host_csr host_csr_download(hg_context *ctx, hg_graph *graph)
{
	struct host_csr csr =
	    host_csr_new(hg_graph_rows(graph), hg_graph_cols(graph), hg_graph_edges(graph), 1);
	CHECK_MSG(hg_graph_download(graph, csr.rowptr, csr.col, csr.weight) == HG_OK, "%s",
	          hg_context_error(ctx));
	for (int64_t i = 0; i < csr.rows; i++)
		for (int64_t e = csr.rowptr[i]; e < csr.rowptr[i + 1]; e++)
			csr.row[e] = (int32_t)i;
	return csr;
}

void host_csr_free(struct host_csr *csr)
{
	free(csr->rowptr);
	free(csr->row);
	free(csr->col);
	free(csr->weight);
	free(csr->edge);
	*csr = (struct host_csr){0};
}
