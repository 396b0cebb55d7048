/* A graph of three million edges: more than a device sorts or streams at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/graph.h"
#include "harness.h"

enum { MANY = 3000000, MANY_NODES = 20000, HUB = 7 };

static void many_edges(int32_t *dst, int32_t *src)
{
	for (int64_t e = 0; e < MANY; e++) {
		/* The row of the hub alone is longer than what is sorted at once. */
		dst[e] = e % 3 == 0 ? HUB : (int32_t)test_below(MANY_NODES);
		src[e] = (int32_t)test_below(
		    e % 2 ? 50 : MANY_NODES); /* every second edge has many duplicates */
	}
}

/* Rows and columns ascend. `order`, where there is one, is a permutation that ascends among
 * duplicates. */
static void check_many(hg_graph *g, const int32_t *dst, const int32_t *src, const int64_t *order)
{
	int64_t *rowptr = calloc(MANY_NODES + 1, sizeof *rowptr),
	        *degree = calloc(MANY_NODES, sizeof *degree);
	int32_t *col = calloc(MANY, sizeof *col);
	char *seen = calloc(MANY, 1);
	int64_t wrong = 0, checksum[2] = {0, 0};
	CHECK(rowptr && degree && col && seen);
	CHECK_OK(hg_graph_download(g, rowptr, col, NULL));
	for (int64_t e = 0; e < MANY; e++) {
		degree[dst[e]]++;
		checksum[0] += (int64_t)(src[e] + 1) * (dst[e] + 3);
	}
	for (int64_t i = 0; i < MANY_NODES; i++) {
		wrong += rowptr[i + 1] - rowptr[i] != degree[i];
		for (int64_t p = rowptr[i]; p < rowptr[i + 1]; p++) {
			checksum[1] += (int64_t)(col[p] + 1) * (i + 3);
			wrong += p > rowptr[i] && col[p] < col[p - 1];
			if (!order)
				continue;
			wrong += seen[order[p]]++ || dst[order[p]] != i || src[order[p]] != col[p];
			wrong += p > rowptr[i] && col[p] == col[p - 1] && order[p] < order[p - 1];
		}
	}
	CHECK_EQ_I(wrong, 0);
	CHECK_EQ_I(checksum[0], checksum[1]);
	free(rowptr);
	free(degree);
	free(col);
	free(seen);
}

/* Compares the facts with sums that are added edge by edge. The row of the hub and the first 50
 * columns are long. */
static void check_facts_of_many(hg_graph *g, const int32_t *dst, const int32_t *src,
                                const float *weight)
{
	enum { SUMS = 2 * HG_NORMS };
	double *sum = calloc((size_t)SUMS * MANY_NODES, sizeof *sum), most[SUMS] = {0};
	int64_t *row = calloc(MANY_NODES, sizeof *row), *col = calloc(MANY_NODES, sizeof *col),
	        loops = 0;
	hg_graph_facts f = HG_GRAPH_FACTS_INIT, again = HG_GRAPH_FACTS_INIT;
	CHECK(sum && row && col);
	for (int64_t e = 0; e < MANY; e++) {
		row[dst[e]]++;
		col[src[e]]++;
		loops += dst[e] == src[e];
	}
	for (int64_t e = 0; e < MANY; e++) {
		const double w = fabs((double)weight[e]), r = (double)row[dst[e]], c = (double)col[src[e]];
		const double in = row[src[e]] ? (double)row[src[e]] : 1.0;
		const double scaled[HG_NORMS] = {w, w / c, w / r, w / sqrt(r * c), w / sqrt(r * in)};
		for (int norm = 0; norm < HG_NORMS; norm++) {
			sum[norm * MANY_NODES + dst[e]] += scaled[norm];
			sum[(HG_NORMS + norm) * MANY_NODES + src[e]] += scaled[norm];
		}
	}
	for (int k = 0; k < SUMS; k++)
		for (int i = 0; i < MANY_NODES; i++)
			most[k] = fmax(most[k], sum[k * MANY_NODES + i]);
	CHECK_OK(hg_graph_facts_get(g, &f));
	for (int norm = 0; norm < HG_NORMS; norm++) {
		/* the library computes the factors in f32 */
		CHECK_WITHIN(f.norm_row_sum[norm], most[norm], most[norm] * 3 * 0x1p-24);
		CHECK_WITHIN(f.norm_col_sum[norm], most[HG_NORMS + norm],
		             most[HG_NORMS + norm] * 3 * 0x1p-24);
	}
	CHECK_EQ_I(f.max_row_degree, row[HUB]);
	CHECK_EQ_I(f.self_loops, loops);
	g->facts_known = 0; /* computed again, they have the same bits */
	CHECK_OK(hg_graph_facts_get(g, &again));
	CHECK(memcmp(&f, &again, sizeof f) == 0);
	free(sum);
	free(row);
	free(col);
}

static void many_edges_are_sorted_in_little_memory(void)
{
	hg_context *ctx = test_context();
	int32_t *dst = calloc(MANY, sizeof *dst), *src = calloc(MANY, sizeof *src);
	int64_t *order = calloc(MANY, sizeof *order);
	float *weight = calloc(MANY, sizeof *weight), *kept = calloc(MANY, sizeof *kept);
	struct hg__csr t;
	hg_graph *g;
	CHECK(dst && src && order && weight && kept);
	many_edges(dst, src);
	for (int64_t e = 0; e < MANY; e++)
		weight[e] = (float)(e % 8191);
	const size_t col = (size_t)MANY * sizeof(int32_t);
	CHECK_OK(hg_graph_from_coo(ctx, MANY_NODES, MANY_NODES, MANY, dst, src, NULL, NULL, &g));
	test_note("unweighted: %.2f of the column ids", (double)ctx->peak_bytes / (double)col);
	CHECK_EQ_I(ctx->current_bytes,
	           (MANY_NODES + 1) * sizeof(int64_t) + col); /* the permutation is freed */
	/* Sorting a slice takes 16 bytes for each of its edges. The hub has a third of all edges, so
	 * this is 1.34 times the size of the column ids. */
	CHECK((double)ctx->peak_bytes <= 2.9 * (double)col);
	check_many(g, dst, src, NULL);
	CHECK_OK(hg__graph_csr_t(g, 0, &t));
	CHECK(t.edge == NULL && !g->pattern_symmetric);
	/* This is both orientations with their plans, without a map of edges. */
	CHECK((double)ctx->current_bytes <= 2.4 * (double)col);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, MANY_NODES, MANY_NODES, MANY, dst, src, weight, order, &g));
	check_many(g, dst, src, order);
	CHECK_OK(hg_graph_download(g, NULL, NULL, kept));
	int64_t wrong = 0;
	for (int64_t p = 0; p < MANY; p++)
		wrong += kept[p] != weight[order[p]];
	CHECK_EQ_I(wrong, 0);
	check_facts_of_many(g, dst, src, weight);
	hg_graph_free(g);
	free(dst);
	free(src);
	free(order);
	free(weight);
	free(kept);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(many_edges_are_sorted_in_little_memory),
	};
	return RUN_TESTS(argc, argv, cases);
}
