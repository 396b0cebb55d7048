/* Normalisation by weighted degrees: values by hand, the sums that bound results, and which graphs
 * it refuses. */
#include <math.h>

#include "core/graph.h"
#include "halfgraph/graph_stream.h"
#include "halfgraph/ops_graph.h"
#include "halfgraph/ops_norm.h"
#include "unit/random_edges.h"
#include "unit/tape.h"

enum { NODES = 4 };

/* The edges 0 <- 0 (1), 0 <- 1 (3), 1 <- 1 (1), 1 <- 0 (8), 2 <- 2 (2), 2 <- 3 (-1), 3 <- 0 (0):
 * D = 4, 9, 1, 0. */
static struct coo four_nodes(void)
{
	struct coo list = coo_empty(NODES, NODES);
	coo_add_weighted(&list, 0, 0, 1);
	coo_add_weighted(&list, 0, 1, 3);
	coo_add_weighted(&list, 1, 1, 1);
	coo_add_weighted(&list, 1, 0, 8);
	coo_add_weighted(&list, 2, 2, 2);
	coo_add_weighted(&list, 2, 3, -1);
	coo_add_weighted(&list, 3, 0, 0);
	return list;
}

/* Y and dX of a column x, where dY is all ones. */
static void aggregate(hg_norm norm, float y[NODES], float dx[NODES])
{
	static const float x[NODES] = {6, 12, 5, 7}, ones[NODES] = {1, 1, 1, 1};
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp32(), HG_TRAIN);
	b.graph = coo_graph(b.ctx, four_nodes());
	hg_tensor *const x_at = tensor_of(&b, HG_F32, NODES, 1, x, HG_F32), *const dy_at = tensor_of(
	                                                                        &b, HG_F32, NODES, 1,
	                                                                        ones, HG_F32);
	const hg_var in = hg_tape_variable(b.tape, x_at, "x"),
	             out = hg_spmm(b.tape, b.graph, in, HG_NONE, norm, 1.0f),
	             dy = hg_tape_input(b.tape, dy_at, "dy", 1.0);
	hg_tape_keep(b.tape, out);
	const hg_status status = hg_tape_compile(b.tape, hg_inner(b.tape, out, dy));
	CHECK_MSG(status == HG_OK, "%s", hg_context_error(b.ctx));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(b.tape, out), y, HG_F32));
	CHECK_OK(hg_tensor_download(hg_tape_grad(b.tape, in), dx, HG_F32));
	bench_close(&b);
}

/* Factors 1/2, 1/3, 1, 0 at both ends; or 1/4, 1/9, 1, 0 in rows. */
static void values_are_those_by_hand(void)
{
	static const struct {
		hg_norm norm;
		double y[NODES], dx[NODES];
	} cases[] = {
	    {HG_NORM_WEIGHTED, {7.5, 28.0 / 3, 10, 0}, {19.0 / 12, 11.0 / 18, 2, 0}},
	    {HG_NORM_WEIGHTED_MEAN, {10.5, 20.0 / 3, 3, 0}, {41.0 / 36, 31.0 / 36, 2, -1}},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		float y[NODES], dx[NODES];
		aggregate(cases[k].norm, y, dx);
		/* Sums of at most 3 terms, |terms| of at most 17 in all; each term has 2 factors that are
		 * rounded, 3 products and at most 3 additions: gamma_8. */
		for (int i = 0; i < NODES; i++) {
			CHECK_WITHIN(y[i], cases[k].y[i], 17 * 8 * 0x1p-23);
			CHECK_WITHIN(dx[i], cases[k].dx[i], 17 * 8 * 0x1p-23);
		}
	}
}

/* ---- facts ---- */

static void check_facts(hg_graph *g, hg_norm norm, double row_sum, double col_sum, double factor)
{
	struct hg__weighed w;
	CHECK(isinf(hg__graph_weighed(g, norm).row_sum) && isinf(hg__graph_weighed(g, norm).factor));
	CHECK_OK(hg__graph_weigh(g, norm, &w));
	/* factors are rounded to f32, two of them in each term */
	CHECK_WITHIN(w.row_sum, row_sum, row_sum * 3 * 0x1p-24);
	CHECK_WITHIN(w.col_sum, col_sum, col_sum * 3 * 0x1p-24);
	CHECK_WITHIN(w.factor, factor, factor * 0x1p-24);
	CHECK(hg__graph_weighed(g, norm).row_sum == w.row_sum);
}

static void facts_are_those_by_hand(void)
{
	hg_context *ctx = test_context();
	hg_graph *g = coo_graph(ctx, four_nodes());
	check_facts(g, HG_NORM_WEIGHTED, 2, 2, 1);
	check_facts(g, HG_NORM_WEIGHTED_MEAN, 3, 2, 1);
	hg_graph_free(g);
	hg_context_free(ctx);
}

/* The sums of one list, whose weights are not negative, edge by edge. */
static void check_list(hg_context *ctx, const struct coo *list, hg_norm norm)
{
	const int root = norm == HG_NORM_WEIGHTED;
	double d[MOST_NODES] = {0}, f[MOST_NODES] = {0}, row[MOST_NODES] = {0}, col[MOST_NODES] = {0},
	       most[3] = {0};
	for (int64_t e = 0; e < list->m; e++)
		d[list->dst[e]] += list->weight ? (double)list->weight[e] : 1.0;
	for (int64_t i = 0; i < list->rows; i++)
		f[i] = d[i] > 0 ? pow(d[i], root ? -0.5 : -1.0) : 0;
	for (int64_t e = 0; e < list->m; e++) {
		const double term = (list->weight ? (double)list->weight[e] : 1.0) * f[list->dst[e]] *
		                    (root ? f[list->src[e]] : 1);
		row[list->dst[e]] += term;
		col[list->src[e]] += term;
	}
	for (int n = 0; n < MOST_NODES; n++) {
		most[0] = fmax(most[0], row[n]);
		most[1] = fmax(most[1], col[n]);
		most[2] = fmax(most[2], f[n]);
	}
	hg_graph *g = coo_to_graph(ctx, list);
	check_facts(g, norm, most[0], most[1], most[2]);
	/* the mean by weight makes no number larger */
	CHECK(root || most[0] <= 1.0 + 0x1p-40);
	hg_graph_free(g);
}

static void facts_are_those_of_the_edges(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < 60; i++) {
		struct coo list = random_edges(i % KINDS);
		for (int64_t e = 0; e < list.m; e++)
			list.weight[e] = test_below(6) ? fabsf(list.weight[e]) : 0.0f;
		if (i >= 48)
			coo_drop_weights(&list);
		if (list.rows == list.cols)
			check_list(ctx, &list, HG_NORM_WEIGHTED);
		check_list(ctx, &list, HG_NORM_WEIGHTED_MEAN);
		coo_free(&list);
	}
	hg_context_free(ctx);
}

/* ---- what is refused ---- */

/* The edges 0 <- 0 of weight 1 and 1 <- 0 of this weight. */
static hg_graph *two_edges(hg_context *ctx, int64_t cols, float weight)
{
	struct coo list = coo_empty(2, cols);
	coo_add_weighted(&list, 0, 0, 1);
	coo_add_weighted(&list, 1, 0, weight);
	return coo_graph(ctx, list);
}

static void bad_degrees_name_their_node(void)
{
	hg_context *ctx = test_context();
	struct hg__weighed w;
	hg_graph *g = two_edges(ctx, 2, -2);
	CHECK_STATUS(hg__graph_weigh(g, HG_NORM_WEIGHTED, &w), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "norm weighted: the weights of the edges to node 1 sum "
	                                      "to -2, expected at least 0");
	CHECK_STATUS(hg__graph_weigh(g, HG_NORM_WEIGHTED_MEAN, &w), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "norm weighted-mean");
	hg_graph_free(g);
	g = two_edges(ctx, 2, 0x1p-140f); /* 1/D is above every f32, 1/sqrt(D) is not */
	CHECK_STATUS(hg__graph_weigh(g, HG_NORM_WEIGHTED_MEAN, &w), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "no normal number of f32");
	CHECK_OK(hg__graph_weigh(g, HG_NORM_WEIGHTED, &w));
	CHECK(w.factor == 0x1p70);
	hg_graph_free(g);
	g = two_edges(ctx, 3, 1);
	CHECK_STATUS(hg__graph_weigh(g, HG_NORM_WEIGHTED, &w), HG_ERR_SHAPE);
	CHECK_OK(hg__graph_weigh(g, HG_NORM_WEIGHTED_MEAN, &w));
	hg_graph_free(g);
	hg_context_free(ctx);
}

/* Recording fails, so no step runs. */
static void recording_refuses_a_negative_degree(void)
{
	struct bench b;
	bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
	b.graph = two_edges(b.ctx, 2, -2);
	const hg_var x = hg_tape_input(b.tape, tensor_of(&b, HG_F16, 2, 1, NULL, HG_F32), "x", 1.0);
	(void)hg_spmm(b.tape, b.graph, x, HG_NONE, HG_NORM_WEIGHTED, 1.0f);
	CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "node 1 sum to -2");
	bench_close(&b);
}

static void graphs_that_change_are_refused(void)
{
	hg_context *ctx = test_context();
	hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
	hg_graph_stream *stream = NULL;
	struct hg__weighed w;
	c.nodes = c.edges = 8;
	c.weighted = 1;
	CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
	CHECK_STATUS(hg__graph_weigh(hg_graph_stream_graph(stream), HG_NORM_WEIGHTED, &w),
	             HG_ERR_UNSUPPORTED);
	CHECK_CONTAINS(hg_context_error(ctx), "made without weighted degrees");
	hg_graph_stream_free(stream);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(values_are_those_by_hand),
	    TEST(facts_are_those_by_hand),
	    TEST(facts_are_those_of_the_edges),
	    TEST(bad_degrees_name_their_node),
	    TEST(recording_refuses_a_negative_degree),
	    TEST(graphs_that_change_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
