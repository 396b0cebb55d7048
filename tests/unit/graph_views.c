/* What kernels get of a graph: its transpose, the factors of each normalisation, and the weights in
 * either type. */
#include <math.h>

#include "unit/random_edges.h"

static void check_transpose(hg_context *ctx, const struct coo *edges, hg_graph *g, int want_edge)
{
	struct hg__csr a, t;
	CHECK_OK(hg__graph_csr(g, &a));
	CHECK_OK(hg__graph_csr_t(g, want_edge, &t));
	CHECK(a.rows == edges->rows && a.cols == edges->cols && a.m == edges->m && a.edge == NULL &&
	      a.plan);
	CHECK(t.rows == edges->cols && t.cols == edges->rows && t.m == edges->m && t.plan &&
	      (t.edge || !want_edge || !edges->m));
	CHECK((t.col == a.col) == (g->pattern_symmetric || !edges->m));
	int64_t *ap = fetch(ctx, a.rowptr, a.rows + 1, sizeof *ap),
	        *tp = fetch(ctx, t.rowptr, t.rows + 1, sizeof *tp);
	int32_t *ac = fetch(ctx, a.col, a.m, sizeof *ac), *tc = fetch(ctx, t.col, t.m, sizeof *tc);
	uint32_t *edge = t.edge ? fetch(ctx, t.edge, t.m, sizeof *edge) : NULL;
	char *hit = calloc((size_t)a.m + 1, 1);
	CHECK(hit);
	CHECK_EQ_I(tp[t.rows], t.m);
	for (int64_t j = 0; j < t.rows; j++)
		for (int64_t p = tp[j]; p < tp[j + 1]; p++) {
			CHECK(p == tp[j] || tc[p] >= tc[p - 1]);
			if (!edge)
				continue;
			CHECK(edge[p] < a.m && !hit[edge[p]]++);
			CHECK(ac[edge[p]] == j && ap[tc[p]] <= edge[p] && edge[p] < ap[tc[p] + 1]);
		}
	free(hit);
	free(edge);
	free(ap);
	free(tp);
	free(ac);
	free(tc);
}

/* With edges in place of columns both orientations have the same rows, and the second one takes no
 * memory. */
static void rows_of_edges_name_their_own(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < 18; i++) {
		struct coo edges = random_edges(i % KINDS);
		hg_graph *g = coo_to_graph(ctx, &edges);
		for (int transposed = 0; transposed < 2; transposed++) {
			const struct hg__csr *by_edge = NULL, *again = NULL;
			struct hg__csr from;
			CHECK_OK(transposed ? hg__graph_csr_t(g, 1, &from) : hg__graph_csr(g, &from));
			const size_t before = ctx->current_bytes;
			CHECK_OK(hg__graph_by_edge(g, transposed, &by_edge));
			CHECK_EQ_I(ctx->current_bytes - before,
			           transposed ? 0 : (size_t)edges.m * sizeof(int32_t));
			CHECK_OK(hg__graph_by_edge(g, transposed, &again));
			CHECK(again == by_edge && by_edge->rows == from.rows && by_edge->cols == edges.m &&
			      by_edge->m == edges.m && by_edge->rowptr == from.rowptr && !by_edge->edge);
			CHECK(by_edge->plan->items == from.plan->items && !by_edge->plan->tiles);
			int32_t *col = fetch(ctx, by_edge->col, edges.m, sizeof *col);
			uint32_t *edge = from.edge ? fetch(ctx, from.edge, edges.m, sizeof *edge) : NULL;
			for (int64_t p = 0; p < edges.m; p++)
				CHECK_EQ_I(col[p], edge ? (int64_t)edge[p] : p);
			free(edge);
			free(col);
		}
		coo_free(&edges);
		hg_graph_free(g);
	}
	CHECK_EQ_I(ctx->current_bytes, ctx->workspace_bytes);
	hg_context_free(ctx);
}

static void transpose_has_the_edges_reversed(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < 36; i++) {
		struct coo edges = random_edges(i % KINDS);
		hg_graph *g = coo_to_graph(ctx, &edges);
		if (i % 2) /* first without the map of edges, then with it */
			check_transpose(ctx, &edges, g, 0);
		const size_t before = ctx->current_bytes;
		check_transpose(ctx, &edges, g, 1);
		if (g->pattern_symmetric && i % 2)
			/* A symmetric pattern is its own transpose, so only the map is new. */
			CHECK_EQ_I(ctx->current_bytes - before, (size_t)edges.m * sizeof(uint32_t));
		const size_t after = ctx->current_bytes;
		check_transpose(ctx, &edges, g, 1);
		check_transpose(ctx, &edges, g, 0);
		CHECK_EQ_I(ctx->current_bytes, after);
		coo_free(&edges);
		hg_graph_free(g);
	}
	CHECK_EQ_I(ctx->current_bytes, ctx->workspace_bytes);
	hg_context_free(ctx);
}

/* The map of edges has 32-bit entries. Here the graph is told that it has more edges than that. */
static void edge_maps_are_limited_to_32_bits(void)
{
	struct hg__csr t;
	size_t bytes;
	hg_context *ctx = test_context();
	struct coo edge = coo_empty(2, 2);
	coo_add(&edge, 1, 0);
	hg_graph *g = coo_graph(ctx, edge);
	CHECK_OK(hg__graph_missing(g, 1, &bytes));
	g->m = HG__EDGE_INDEX_LIMIT + 1;
	CHECK_EQ_I(hg__graph_csr_t(g, 1, &t), HG_ERR_UNSUPPORTED);
	CHECK_EQ_I(hg__graph_missing(g, 1, &bytes), HG_ERR_UNSUPPORTED);
	CHECK_OK(hg__graph_missing(g, 0, &bytes));
	g->m = 1;
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void check_vector(hg_context *ctx, const float *device, int64_t n, const int64_t *degree,
                         double power)
{
	float *v = fetch(ctx, device, n, sizeof *v);
	for (int64_t i = 0; i < n; i++)
		CHECK(v[i] == (float)pow((double)(degree[i] > 0 ? degree[i] : 1), power));
	free(v);
}

static void norms_are_powers_of_degrees(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < 12; i++) {
		hg_graph *g;
		int64_t d[MOST_NODES] = {0}, dc[MOST_NODES] = {0};
		const float *r, *c, *r2, *c2;
		struct coo edges = random_edges(i % KINDS);
		coo_drop_weights(&edges);
		for (int64_t e = 0; e < edges.m; e++) {
			d[edges.dst[e]]++;
			dc[edges.src[e]]++;
		}
		g = coo_to_graph(ctx, &edges);
		CHECK_OK(hg__graph_norm(g, HG_NORM_NONE, &r, &c));
		CHECK(!r && !c);
		CHECK_OK(hg__graph_norm(g, HG_NORM_LEFT, &r, &c));
		CHECK(!r);
		check_vector(ctx, c, edges.cols, dc, -1);
		CHECK_OK(hg__graph_norm(g, HG_NORM_RIGHT, &r, &c));
		CHECK(!c);
		check_vector(ctx, r, edges.rows, d, -1);
		CHECK_OK(hg__graph_norm(g, HG_NORM_BOTH, &r, &c));
		check_vector(ctx, r, edges.rows, d, -0.5);
		check_vector(ctx, c, edges.cols, dc, -0.5);
		CHECK_OK(hg__graph_norm(g, HG_NORM_BOTH, &r2, &c2));
		CHECK(r == r2 && c == c2);
		if (edges.rows == edges.cols) {
			CHECK_OK(hg__graph_norm(g, HG_NORM_IN, &r, &c));
			CHECK(r == r2 && c == r2); /* the factors of sources are those of destinations */
		} else {
			CHECK_STATUS(hg__graph_norm(g, HG_NORM_IN, &r, &c), HG_ERR_SHAPE);
		}
		CHECK_STATUS(hg__graph_norm(g, (hg_norm)HG_NORM_VALUES, &r, &c), HG_ERR_ARG);
		coo_free(&edges);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

/* The edges 1 <- 1, 0 <- 0 and 1 <- 0 with these weights. */
static hg_graph *three_edges(hg_context *ctx, float a, float b, float c)
{
	struct coo edges = coo_empty(2, 2);
	coo_add_weighted(&edges, 1, 1, a);
	coo_add_weighted(&edges, 0, 0, b);
	coo_add_weighted(&edges, 1, 0, c);
	return coo_graph(ctx, edges);
}

static void weights_come_in_both_types(void)
{
	hg_context *ctx = test_context();
	const void *w32, *w16;
	hg_graph *g = three_edges(ctx, 3, 0.1f, 7);
	CHECK_OK(hg__graph_weight(g, HG_F32, &w32));
	CHECK_OK(hg__graph_weight(g, HG_F16, &w16));
	float *f = fetch(ctx, w32, 3, sizeof *f);
	hg_half *h = fetch(ctx, w16, 3, sizeof *h);
	CHECK(f[0] == 0.1f && f[1] == 7 && f[2] == 3);
	CHECK(h[0] == hg_half_from_float(0.1f) && hg_half_to_float(h[1]) == 7 &&
	      hg_half_to_float(h[2]) == 3);
	free(f);
	free(h);
	CHECK_STATUS(hg__graph_weight(g, HG_I32, &w32), HG_ERR_DTYPE);
	hg_graph_free(g);
	g = three_edges(ctx, 1, 2, 70000);
	CHECK_OK(hg__graph_weight(g, HG_F32, &w32));
	CHECK_STATUS(hg__graph_weight(g, HG_F16, &w16), HG_ERR_RANGE);
	CHECK_CONTAINS(hg_context_error(ctx), "70000 of edge 1");
	hg_graph_free(g);
	g = coo_graph(ctx, coo_cycle(2));
	CHECK_OK(hg__graph_weight(g, HG_F16, &w16));
	CHECK(w16 == NULL && !hg_graph_is_weighted(g));
	hg_graph_free(g);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(transpose_has_the_edges_reversed),
	    TEST(rows_of_edges_name_their_own),
	    TEST(edge_maps_are_limited_to_32_bits),
	    TEST(norms_are_powers_of_degrees),
	    TEST(weights_come_in_both_types),
	};
	return RUN_TESTS(argc, argv, cases);
}
