/* The facts of a graph: degrees, duplicates, symmetry, and the sums that bound a normalised
 * aggregation, compared with brute force on the list of edges. */
#include <math.h>

#include "unit/random_edges.h"

/* ---- facts ---- */

static double scaled(const struct coo *g, const int64_t *d, const int64_t *dc, int64_t e,
                     hg_norm norm)
{
	const double row = (double)(d[g->dst[e]] > 0 ? d[g->dst[e]] : 1),
	             col = (double)(dc[g->src[e]] > 0 ? dc[g->src[e]] : 1);
	const int64_t in = g->rows == g->cols ? d[g->src[e]] : 0; /* norm IN is for square graphs */
	const double factor[HG_NORMS] = {1, 1 / col, 1 / row, 1 / sqrt(row * col),
	                                 g->rows == g->cols ? 1 / sqrt(row * (double)(in > 0 ? in : 1))
	                                                    : 0};
	return fabs((double)g->weight[e]) * factor[norm];
}

static int is_symmetric(const struct coo *g)
{
	static double a[MOST_NODES][MOST_NODES];
	if (g->rows != g->cols)
		return 0;
	memset(a, 0, sizeof a);
	for (int64_t e = 0; e < g->m; e++)
		a[g->dst[e]][g->src[e]] += (double)g->weight[e];
	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t j = 0; j < i; j++)
			if (a[i][j] != a[j][i])
				return 0;
	return 1;
}

static void facts_are_those_of_the_edges(void)
{
	hg_context *ctx = test_context();
	int symmetric = 0;
	for (int i = 0; i < 60; i++) {
		hg_graph *g;
		hg_graph_facts f = HG_GRAPH_FACTS_INIT;
		int64_t d[MOST_NODES] = {0}, dc[MOST_NODES] = {0}, most[2] = {0, 0}, empty[2] = {0, 0},
		        loops = 0;
		struct coo edges = random_edges(i % KINDS);
		g = coo_to_graph(ctx, &edges);
		CHECK_OK(hg_graph_facts_get(g, &f));
		for (int64_t e = 0; e < edges.m; e++) {
			d[edges.dst[e]]++;
			dc[edges.src[e]]++;
			loops += edges.dst[e] == edges.src[e];
		}
		for (int64_t r = 0; r < edges.rows; r++) {
			most[0] = d[r] > most[0] ? d[r] : most[0];
			empty[0] += d[r] == 0;
		}
		for (int64_t c = 0; c < edges.cols; c++) {
			most[1] = dc[c] > most[1] ? dc[c] : most[1];
			empty[1] += dc[c] == 0;
		}
		CHECK(f.max_row_degree == most[0] && f.max_col_degree == most[1] &&
		      f.empty_rows == empty[0] && f.empty_cols == empty[1] && f.self_loops == loops);
		for (int norm = 0; norm < HG_NORMS; norm++) {
			double row[MOST_NODES] = {0}, col[MOST_NODES] = {0}, row_max = 0, col_max = 0;
			for (int64_t e = 0; e < edges.m; e++) {
				row[edges.dst[e]] += scaled(&edges, d, dc, e, (hg_norm)norm);
				col[edges.src[e]] += scaled(&edges, d, dc, e, (hg_norm)norm);
			}
			for (int n = 0; n < MOST_NODES; n++) {
				row_max = fmax(row_max, row[n]);
				col_max = fmax(col_max, col[n]);
			}
			/* the library computes the factors in f32 */
			CHECK_WITHIN(f.norm_row_sum[norm], row_max, row_max * 3 * 0x1p-24);
			CHECK_WITHIN(f.norm_col_sum[norm], col_max, col_max * 3 * 0x1p-24);
		}
		CHECK(f.max_row_sum == f.norm_row_sum[0] && f.max_col_sum == f.norm_col_sum[0]);
		if (i % KINDS != DUPLICATES) { /* the library does not add duplicates up */
			CHECK_EQ_I(f.symmetric, is_symmetric(&edges));
			symmetric += f.symmetric;
		}
		coo_free(&edges);
		hg_graph_free(g);
	}
	CHECK(symmetric >= 10);
	hg_context_free(ctx);
}

/* In a star of n leaves the symmetric normalisation gives the hub a row sum of sqrt(n), not 1. So
 * the aggregation can make numbers larger. */
static void row_sum_of_a_star_exceeds_1(void)
{
	hg_context *ctx = test_context();
	enum { LEAVES = 10000 };
	hg_graph_facts f = HG_GRAPH_FACTS_INIT;
	struct coo edges = coo_star(LEAVES);
	coo_add_transpose(&edges);
	hg_graph *g = coo_graph(ctx, edges);
	CHECK_OK(hg_graph_facts_get(g, &f));
	CHECK_WITHIN(f.norm_row_sum[HG_NORM_BOTH], 100, 1e-4);
	CHECK_WITHIN(f.norm_row_sum[HG_NORM_RIGHT], 1, 1e-4);
	CHECK(f.symmetric && f.max_row_degree == LEAVES);
	CHECK_STATUS(hg_graph_facts_get(g, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_facts_get(NULL, &f), HG_ERR_ARG);
	f.size = 0;
	CHECK_STATUS(hg_graph_facts_get(g, &f), HG_ERR_ARG);
	hg_graph_free(g);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(facts_are_those_of_the_edges),
	    TEST(row_sum_of_a_star_exceeds_1),
	};
	return RUN_TESTS(argc, argv, cases);
}
