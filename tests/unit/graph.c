/* Graphs made from edge lists and from CSR arrays, compared with a stable sort of the list. Also
 * input that is refused, graphs of no or one edge, and allocations that fail. */
#include <math.h>

#include "unit/random_edges.h"

/* `order`: where the library says that each entry comes from; NULL: it was not asked. */
static void check_entries(hg_graph *g, const struct host_csr *expected, const int64_t *order,
                          int weighted)
{
	struct host_csr found = host_csr_download(hg_graph_context(g), g);
	CHECK(found.rows == expected->rows && found.m == expected->m);
	for (int64_t i = 0; i <= expected->rows; i++)
		CHECK_EQ_I(found.rowptr[i], expected->rowptr[i]);
	for (int64_t e = 0; e < expected->m; e++) {
		CHECK_EQ_I(found.col[e], expected->col[e]);
		CHECK(found.weight[e] == (weighted ? expected->weight[e] : 1.0f));
		if (order)
			CHECK_EQ_I(order[e], expected->edge[e]);
	}
	host_csr_free(&found);
}

static void edge_lists_become_csr(void)
{
	hg_context *ctx = test_context();
	static int64_t order[MOST_EDGES];
	for (int i = 0; i < 60; i++) {
		hg_graph *g;
		struct coo edges = random_edges(i % KINDS);
		const int weighted = i / KINDS % 2;
		CHECK_OK(hg_graph_from_coo(ctx, edges.rows, edges.cols, edges.m, edges.dst, edges.src,
		                           weighted ? edges.weight : NULL, order, &g));
		CHECK(hg_graph_rows(g) == edges.rows && hg_graph_cols(g) == edges.cols &&
		      hg_graph_edges(g) == edges.m && hg_graph_context(g) == ctx);
		CHECK_EQ_I(hg_graph_is_weighted(g), weighted && edges.m > 0);
		struct host_csr expected = host_csr_sort(edges);
		check_entries(g, &expected, order, weighted);
		host_csr_free(&expected);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void csr_may_have_sorted_or_unsorted_rows(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < 40; i++) {
		static int32_t col[MOST_EDGES];
		static float weight[MOST_EDGES];
		hg_graph *g, *again;
		struct coo edges = random_edges(i % KINDS);
		int64_t e = 0;
		for (int64_t r = 0; r < edges.rows; r++) /* rows in order, columns as in the list */
			for (int64_t k = 0; k < edges.m; k++)
				if (edges.dst[k] == r) {
					col[e] = edges.src[k];
					weight[e++] = edges.weight[k];
				}
		struct host_csr expected = host_csr_sort(edges);
		CHECK_OK(hg_graph_from_csr(ctx, expected.rows, expected.cols, expected.m, expected.rowptr,
		                           col, weight, &g));
		check_entries(g, &expected, NULL, 1);
		CHECK_OK(hg_graph_from_csr(ctx, expected.rows, expected.cols, expected.m, expected.rowptr,
		                           expected.col, expected.weight, &again));
		check_entries(again, &expected, NULL, 1);
		host_csr_free(&expected);
		hg_graph_free(again);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void bad_input_is_refused_by_place(void)
{
	hg_context *ctx = test_context();
	const int32_t good[] = {0, 1, 2}, low[] = {0, -1, 2}, high[] = {0, 1, 3};
	const float weight[] = {1, 2, NAN};
	const int64_t rowptr[] = {0, 1, 2, 3}, late[] = {1, 1, 2, 3}, early[] = {0, 1, 2, 2},
	              back[] = {0, 2, 1, 3};
	hg_graph *g = NULL;
	const struct {
		int64_t rows, cols, m;
		const int32_t *dst, *src;
		const float *weight;
		const char *part;
	} lists[] = {{3, 3, 3, low, good, NULL, "dst[1] = -1"},
	             {3, 3, 3, good, high, NULL, "src[2] = 3, expected 0 .. 2"},
	             {3, 3, 3, good, good, weight, "weight[2]"},
	             {0, 3, 1, good, good, NULL, "dst[0]"},
	             {3, -3, 3, good, good, NULL, "negative"},
	             {(int64_t)1 << 31, 3, 0, NULL, NULL, NULL, "32-bit"},
	             {3, 3, 3, NULL, good, NULL, "NULL"}};
	const struct {
		const int64_t *rowptr;
		const int32_t *col;
		const float *weight;
		const char *part;
	} arrays[] = {{late, good, NULL, "rowptr goes from 1"}, {early, good, NULL, "expected 0 to 3"},
	              {back, good, NULL, "rowptr[2] = 1"},      {rowptr, high, NULL, "col[2] = 3"},
	              {rowptr, good, weight, "weight[2]"},      {NULL, good, NULL, "rowptr is NULL"}};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		CHECK_STATUS(hg_graph_from_coo(ctx, lists[i].rows, lists[i].cols, lists[i].m, lists[i].dst,
		                               lists[i].src, lists[i].weight, NULL, &g),
		             HG_ERR_ARG);
		CHECK(g == NULL);
		CHECK_CONTAINS(hg_context_error(ctx), lists[i].part);
	}
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		CHECK_STATUS(
		    hg_graph_from_csr(ctx, 3, 3, 3, arrays[i].rowptr, arrays[i].col, arrays[i].weight, &g),
		    HG_ERR_ARG);
		CHECK(g == NULL);
		CHECK_CONTAINS(hg_context_error(ctx), arrays[i].part);
	}
	CHECK_STATUS(hg_graph_from_coo(NULL, 3, 3, 3, good, good, NULL, NULL, &g), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_from_coo(ctx, 3, 3, 3, good, good, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_download(NULL, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK(hg_graph_rows(NULL) == 0 && hg_graph_edges(NULL) == 0 && hg_graph_context(NULL) == NULL);
	hg_graph_free(NULL);
	hg_context_free(ctx);
}

/* Everything that can be asked of a graph, for graphs without nodes, without edges, and of one
 * edge. */
static void tiny_graphs_are_complete(void)
{
	hg_context *ctx = test_context();
	static const int64_t shape[][3] = {{0, 0, 0}, {1, 1, 0}, {5, 5, 0},
	                                   {1, 1, 1}, {0, 3, 0}, {3, 0, 0}};
	const int32_t zero[1] = {0};
	for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
		hg_graph *g, *s;
		struct hg__csr csr, csr_t;
		hg_graph_facts f = HG_GRAPH_FACTS_INIT;
		const int64_t *ptr;
		const int32_t *id;
		const float *r, *c;
		const void *w;
		CHECK_OK(hg_graph_from_coo(ctx, shape[i][0], shape[i][1], shape[i][2], zero, zero, NULL,
		                           NULL, &g));
		CHECK_OK(hg_graph_facts_get(g, &f));
		CHECK_EQ_I(f.symmetric, shape[i][0] == shape[i][1]);
		CHECK_EQ_I(f.empty_rows, shape[i][0] - shape[i][2]);
		CHECK_OK(hg__graph_csr(g, &csr));
		CHECK_OK(hg__graph_csr_t(g, 1, &csr_t));
		CHECK(csr_t.rows == shape[i][1] && csr_t.m == shape[i][2]);
		for (int norm = 0; norm < 4; norm++)
			CHECK_OK(hg__graph_norm(g, (hg_norm)norm, &r, &c));
		CHECK_OK(hg__graph_weight(g, HG_F16, &w));
		CHECK_OK(hg__graph_batch(g, &ptr, &id));
		if (shape[i][0] == shape[i][1]) {
			CHECK_OK(hg_graph_symmetrize(g, &s));
			hg_graph_free(s);
			CHECK_OK(hg_graph_add_self_loops(g, &s));
			CHECK_EQ_I(hg_graph_edges(s), shape[i][0]);
			hg_graph_free(s);
		}
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

/* ---- memory ---- */

static hg_status use(hg_graph *g)
{
	struct hg__csr csr;
	const int64_t *ptr;
	const int32_t *id;
	const float *r, *c;
	const void *w;
	HG__TRY(hg__graph_csr(g, &csr));
	HG__TRY(hg__graph_csr_t(g, 0, &csr));
	HG__TRY(hg__graph_csr_t(g, 1, &csr));
	for (int norm = 0; norm < HG_NORM_VALUES; norm++)
		HG__TRY(hg__graph_norm(g, (hg_norm)norm, &r, &c));
	HG__TRY(hg__graph_weight(g, HG_F16, &w));
	return hg__graph_batch(g, &ptr, &id);
}

static hg_status make_and_use(hg_context *ctx)
{
	const int32_t dst[] = {3, 0, 1, 2, 0}, src[] = {0, 1, 2, 3, 0};
	const float weight[] = {1, 2, 3, 4, 5};
	const int64_t rowptr[] = {0, 2, 3, 4, 5}, batch[] = {0, 4};
	int64_t order[5];
	hg_graph *g = NULL, *unsorted = NULL, *symmetric = NULL, *loops = NULL;
	hg_status status = hg_graph_from_coo(ctx, 4, 4, 5, dst, src, weight, order, &g);
	if (status == HG_OK)
		status = hg_graph_set_batch(g, 1, batch);
	if (status == HG_OK)
		status = use(g);
	if (status == HG_OK)
		status = hg_graph_from_csr(ctx, 4, 4, 5, rowptr, dst, weight, &unsorted);
	if (status == HG_OK)
		status = hg_graph_symmetrize(g, &symmetric);
	if (status == HG_OK)
		status = use(symmetric);
	if (status == HG_OK)
		status = hg_graph_add_self_loops(g, &loops);
	hg_graph_free(g);
	hg_graph_free(unsorted);
	hg_graph_free(symmetric);
	hg_graph_free(loops);
	return status;
}

static void failed_allocations_are_reported(void)
{
	const int64_t count = faulty_sweep(make_and_use);
	test_note("%lld allocations made to fail", (long long)count);
	CHECK(count > 100);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(edge_lists_become_csr),           TEST(csr_may_have_sorted_or_unsorted_rows),
	    TEST(bad_input_is_refused_by_place),   TEST(tiny_graphs_are_complete),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
