/* Graphs that are made from graphs (symmetric ones, ones with self loops), and batches of
 * graphs. */
#include <math.h>

#include "unit/random_edges.h"

/* ---- graphs from graphs ---- */

static void symmetrize_adds_the_transpose(void)
{
	hg_context *ctx = test_context();
	static double a[MOST_NODES][MOST_NODES];
	for (int i = 0; i < 24; i++) {
		hg_graph *g, *s;
		hg_graph_facts f = HG_GRAPH_FACTS_INIT;
		struct coo edges = random_edges(i % 4);
		const int weighted = i % 2;
		if (!weighted)
			coo_drop_weights(&edges);
		g = coo_to_graph(ctx, &edges);
		CHECK_OK(hg_graph_symmetrize(g, &s));
		CHECK_OK(hg_graph_facts_get(s, &f));
		CHECK(f.symmetric);
		CHECK_EQ_I(hg_graph_is_weighted(s), weighted && edges.m > 0);
		for (int64_t r = 0; r < edges.rows; r++)
			for (int64_t c = 0; c < edges.rows; c++)
				a[r][c] = NAN;
		int64_t entries = 0;
		for (int64_t e = 0; e < 2 * edges.m; e++) {
			double *cell = e < edges.m ? &a[edges.dst[e]][edges.src[e]]
			                           : &a[edges.src[e - edges.m]][edges.dst[e - edges.m]];
			const double w = weighted ? (double)edges.weight[e % edges.m] : 1;
			entries += isnan(*cell);
			*cell = isnan(*cell) ? w : fmax(*cell, w);
		}
		CHECK_EQ_I(hg_graph_edges(s), entries);
		struct host_csr found = host_csr_download(ctx, s);
		for (int64_t e = 0; e < entries; e++) {
			const int64_t r = found.row[e], c = found.col[e];
			CHECK((double)found.weight[e] == a[r][c]);
			CHECK(e == found.rowptr[r] || c > found.col[e - 1]);
		}
		host_csr_free(&found);
		coo_free(&edges);
		hg_graph_free(s);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void self_loops_are_added_where_there_are_none(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {0, 1, 1, 3, 3}, src[] = {1, 1, 1, 0, 3};
	const float weight[] = {5, 6, 7, 8, 9}, weights[] = {1, 5, 6, 7, 1, 8, 9};
	const int64_t expected_ptr[] = {0, 2, 4, 5, 7};
	const int32_t expected[] = {0, 1, 1, 1, 2, 0, 3};
	int64_t rowptr[5];
	int32_t col[7];
	float w[7];
	hg_graph *g, *loops;
	CHECK_OK(hg_graph_from_coo(ctx, 4, 4, 5, dst, src, weight, NULL, &g));
	CHECK_OK(hg_graph_add_self_loops(g, &loops));
	CHECK_EQ_I(hg_graph_edges(loops), 7);
	CHECK_OK(hg_graph_download(loops, rowptr, col, w));
	CHECK(memcmp(rowptr, expected_ptr, sizeof rowptr) == 0 &&
	      memcmp(col, expected, sizeof col) == 0 && memcmp(w, weights, sizeof w) == 0);
	hg_graph_free(loops);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, 4, 5, 5, dst, src, weight, NULL, &g));
	CHECK_STATUS(hg_graph_add_self_loops(g, &loops), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(ctx), "[4, 5]");
	CHECK_STATUS(hg_graph_symmetrize(g, &loops), HG_ERR_SHAPE);
	CHECK(loops == NULL);
	CHECK_STATUS(hg_graph_symmetrize(g, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_symmetrize(NULL, &loops), HG_ERR_ARG);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void batch_has_pointers_and_ids(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {0, 1, 3, 4}, src[] = {1, 0, 4, 3};
	const int64_t ptr[] = {0, 2, 2, 5}, *device;
	const int32_t ids[] = {0, 0, 2, 2, 2}, *id;
	hg_graph *g, *loops;
	CHECK_OK(hg_graph_from_coo(ctx, 5, 5, 4, dst, src, NULL, NULL, &g));
	CHECK_EQ_I(hg_graph_batch(g), 1);
	CHECK_EQ_I(hg__graph_batch_max(g), 5);
	CHECK_OK(hg_graph_set_batch(g, 3, ptr));
	CHECK_EQ_I(hg_graph_batch(g), 3);
	CHECK_EQ_I(hg__graph_batch_max(g), 3);
	CHECK_OK(hg_graph_add_self_loops(g, &loops)); /* the nodes stay in their graphs of the batch */
	CHECK_OK(hg__graph_batch(loops, &device, &id));
	int64_t *p = fetch(ctx, device, 4, sizeof *p);
	int32_t *i = fetch(ctx, id, 5, sizeof *i);
	CHECK(memcmp(p, ptr, sizeof ptr) == 0 && memcmp(i, ids, sizeof ids) == 0);
	CHECK_EQ_I(hg_graph_batch(loops), 3);
	free(p);
	free(i);
	CHECK_STATUS(hg_graph_set_batch(g, 3, ptr), HG_ERR_STATE);
	hg_graph_free(loops);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void bad_batches_are_refused(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {0, 1, 3, 4}, src[] = {1, 0, 4, 3};
	const int64_t late[] = {1, 5}, early[] = {0, 4}, back[] = {0, 3, 2, 5}, cut[] = {0, 4, 5},
	              whole[] = {0, 5}, *ptr;
	const int32_t *id;
	hg_graph *g;
	CHECK_OK(hg_graph_from_coo(ctx, 5, 5, 4, dst, src, NULL, NULL, &g));
	CHECK_STATUS(hg_graph_set_batch(g, 1, late), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_set_batch(g, 1, early), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "expected 0 to 5");
	CHECK_STATUS(hg_graph_set_batch(g, 3, back), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "ptr[2] = 2");
	CHECK_STATUS(hg_graph_set_batch(g, 2, cut), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "node 3 of graph 0");
	CHECK_STATUS(hg_graph_set_batch(g, -1, whole), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_set_batch(g, 1, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_set_batch(NULL, 1, whole), HG_ERR_ARG);
	CHECK_OK(hg__graph_batch(g, &ptr,
	                         &id)); /* without a batch it is one graph; asking for it fixes that */
	int64_t *p = fetch(ctx, ptr, 2, sizeof *p);
	CHECK(p[0] == 0 && p[1] == 5);
	free(p);
	CHECK_STATUS(hg_graph_set_batch(g, 1, whole), HG_ERR_STATE);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, 5, 6, 4, dst, src, NULL, NULL, &g));
	CHECK_STATUS(hg_graph_set_batch(g, 1, whole), HG_ERR_SHAPE);
	hg_graph_free(g);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(symmetrize_adds_the_transpose),
	    TEST(self_loops_are_added_where_there_are_none),
	    TEST(batch_has_pointers_and_ids),
	    TEST(bad_batches_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
