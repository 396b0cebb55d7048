/* Orders of graphs on a device: a permuted graph has the same edges, and training on it gives the
 * same curve within rounding. */
#include "halfgraph/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/train.h"
#include "unit/faulty.h"

/* ---- graphs on a device ---- */

enum { NODES = 240, EDGES = 3000, GRAPHS = 3 };

struct edges {
	int32_t dst[EDGES], src[EDGES];
	float weight[EDGES];
};

/* Weighted, with duplicates and loops; inside three graphs of 80 nodes each. */
static hg_graph *batch_of_three(hg_context *ctx, struct edges *list)
{
	static const int64_t ptr[] = {0, 80, 160, 240};
	hg_graph *g = NULL;
	for (int e = 0; e < EDGES; e++) {
		const int32_t first = (int32_t)(80 * test_below(3));
		list->dst[e] = first + (int32_t)test_below(80);
		list->src[e] =
		    first + (int32_t)(test_below(3) ? (list->dst[e] - first + 40 * test_below(2)) % 80
		                                    : test_below(80));
		list->weight[e] = (float)e;
	}
	CHECK_OK(
	    hg_graph_from_coo(ctx, NODES, NODES, EDGES, list->dst, list->src, list->weight, NULL, &g));
	CHECK_OK(hg_graph_set_batch(g, GRAPHS, ptr));
	return g;
}

struct arrays {
	int64_t rowptr[NODES + 1];
	int32_t col[EDGES];
	float weight[EDGES];
};

static void a_graph_is_permuted(void)
{
	static struct edges list;
	static struct arrays old, new, back;
	static int64_t edge[EDGES], edge_back[EDGES];
	int32_t order[NODES], place[NODES];
	test_reseed(9);
	hg_context *ctx = test_context();
	hg_graph *g = batch_of_three(ctx, &list), *h = NULL, *again = NULL;
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = "community";
	CHECK_OK(hg_graph_order(g, &config, order, NULL));
	CHECK_OK(hg_order_check(NODES, order, place));
	for (int k = 0; k < NODES; k++)
		CHECK_EQ_I(order[k] / 80, k / 80);
	CHECK_OK(hg_graph_permute(g, order, edge, &h));
	CHECK(hg_graph_batch(h) == GRAPHS && hg_graph_edges(h) == EDGES && hg_graph_is_weighted(h));
	CHECK_OK(hg_graph_download(g, old.rowptr, old.col, old.weight));
	CHECK_OK(hg_graph_download(h, new.rowptr, new.col, new.weight));
	for (int k = 0; k < NODES; k++)
		for (int64_t e = new.rowptr[k]; e < new.rowptr[k + 1]; e++) {
			const int64_t from = edge[e];
			CHECK(from >= old.rowptr[order[k]] && from < old.rowptr[order[k] + 1]);
			CHECK(place[old.col[from]] == new.col[e] && old.weight[from] == new.weight[e]);
		}
	CHECK_OK(hg_graph_permute(h, place, edge_back, &again));
	CHECK_OK(hg_graph_download(again, back.rowptr, back.col, back.weight));
	CHECK(memcmp(&back, &old, sizeof old) == 0);
	hg_locality locality = HG_LOCALITY_INIT;
	CHECK_OK(hg_graph_locality(h, &locality));
	CHECK(locality.tile_reuse >= 1);
	hg_graph_free(again);
	hg_graph_free(h);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void graphs_refuse_what_does_not_fit(void)
{
	static struct edges list;
	int32_t order[NODES];
	hg_context *ctx = test_context();
	hg_graph *g = batch_of_three(ctx, &list), *wide = NULL, *out = g;
	hg_locality locality = {0, 0, 0, 0, 0};
	for (int k = 0; k < NODES; k++)
		order[k] = NODES - 1 - k;
	CHECK_STATUS(hg_graph_permute(g, order, NULL, &out), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx),
	               "permute: order[0] = 239 leaves graph 0 of the batch, which has nodes 0 .. 79");
	CHECK(out == NULL);
	order[0] = 5;
	CHECK_STATUS(hg_graph_permute(g, order, NULL, &out), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "no permutation of 0 .. 239");
	CHECK_STATUS(hg_graph_permute(g, NULL, NULL, &out), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_permute(g, order, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_order(NULL, NULL, order, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_order(g, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "order: the pointer for the result is NULL");
	CHECK_STATUS(hg_graph_locality(g, &locality), HG_ERR_ARG);
	wide = coo_graph(ctx, coo_empty(2, 3));
	CHECK_STATUS(hg_graph_order(wide, NULL, order, NULL), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(ctx), "order: the graph is [2, 3], expected a square one");
	hg_graph_free(wide);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static hg_status scene(hg_context *ctx)
{
	static const int64_t ptr[] = {0, 4, 6};
	static const int32_t dst[] = {0, 1, 2, 3, 3, 4, 5}, src[] = {1, 2, 3, 0, 1, 5, 5};
	static const float weight[] = {1, 2, 3, 4, 5, 6, 7};
	int32_t order[6];
	hg_locality locality = HG_LOCALITY_INIT;
	hg_graph *g = NULL, *better = NULL;
	hg_status status = hg_graph_from_coo(ctx, 6, 6, 7, dst, src, weight, NULL, &g);
	if (status == HG_OK)
		status = hg_graph_set_batch(g, 2, ptr);
	if (status == HG_OK)
		status = hg_graph_order(g, NULL, order, NULL);
	if (status == HG_OK)
		status = hg_graph_locality(g, &locality);
	if (status == HG_OK)
		status = hg_graph_permute(g, order, NULL, &better);
	hg_graph_free(better);
	hg_graph_free(g);
	return status;
}

static void every_allocation_may_fail(void)
{
	const int64_t count = faulty_sweep(scene);
	test_note("%lld allocations made to fail", (long long)count);
	CHECK(count > 40);
}

/* ---- training ---- */

enum { STEPS = 30, FEATURES = 8, CLASSES = 4 };

struct task {
	float x[NODES][FEATURES];
	int32_t label[NODES];
	uint8_t mask[NODES];
};

static int record(void *user, const hg_train_event *event)
{
	((double *)user)[event->epoch - 1] = event->loss;
	return 0;
}

/* Trained on the graph in this order (NULL: as it is), predictions brought back. */
static void train(hg_context *ctx, hg_graph *g, const struct task *t, const int32_t *order,
                  double *loss, int32_t *prediction)
{
	static struct task own;
	int32_t found[NODES], same[NODES];
	hg_graph *graph = NULL;
	hg_tensor *x = NULL;
	hg_train *run = NULL;
	hg_train_config config = hg_train_config_default("gcn");
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	for (int i = 0; i < NODES; i++)
		same[i] = i;
	order = order ? order : same;
	CHECK_OK(hg_graph_permute(g, order, NULL, &graph));
	CHECK_OK(hg_order_rows(NODES, order, sizeof own.x[0], t->x, own.x));
	CHECK_OK(hg_order_rows(NODES, order, sizeof own.label[0], t->label, own.label));
	CHECK_OK(hg_order_rows(NODES, order, 1, t->mask, own.mask));
	CHECK_OK(hg_policy_parse("fp32", &config.policy));
	config.model.hidden = 16;
	config.model.dropout = 0;
	config.model.out_features = CLASSES;
	config.epochs = STEPS;
	config.progress = record;
	config.user = loss;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, NODES, FEATURES, &x));
	CHECK_OK(hg_tensor_upload(x, own.x, HG_F32));
	data.input.graph = graph;
	data.input.x = x;
	data.labels = own.label;
	data.train_mask = own.mask;
	CHECK_MSG(hg_train_create(ctx, &config, &data, &run) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_train_run(run, &report));
	CHECK_OK(hg_train_predict(run, found, NULL));
	CHECK_OK(hg_order_rows_back(NODES, order, sizeof found[0], found, prediction));
	hg_train_free(run);
	hg_tensor_free(x);
	hg_graph_free(graph);
}

static double distance(const double *a, const double *b)
{
	double most = 0;
	for (int k = 0; k < STEPS; k++)
		most = fabs(a[k] - b[k]) > most ? fabs(a[k] - b[k]) : most;
	return most;
}

/* An order of the nodes changes the order of sums and nothing else. The bound for that is measured:
 * the distance between the loss curves in the given order and in a random one. */
static void training_is_the_same(void)
{
	static struct task t;
	double plain[STEPS], scattered[STEPS], ordered[STEPS];
	int32_t order[NODES], expected[NODES], found[NODES];
	test_reseed(12);
	hg_context *ctx = test_context();
	struct coo edges = coo_communities(NODES, EDGES, CLASSES);
	for (int i = 0; i < NODES; i++) {
		t.label[i] = i % CLASSES;
		t.mask[i] = i % 3 != 0;
		for (int k = 0; k < FEATURES; k++)
			t.x[i][k] = (float)(test_normal() + (k % CLASSES == i % CLASSES ? 2.0 : 0.0));
	}
	hg_graph *g = coo_graph(ctx, edges);
	train(ctx, g, &t, NULL, plain, expected);
	test_shuffle(NODES, order);
	train(ctx, g, &t, order, scattered, found);
	const double drift = distance(plain, scattered), bound = 4 * drift + 4 * 0x1p-24 * plain[0];
	size_t count = 0;
	const hg_order_method *methods = hg_order_methods(&count);
	for (size_t k = 0; k < count; k++) {
		hg_order_config config = HG_ORDER_CONFIG_INIT;
		config.method = methods[k].name;
		CHECK_OK(hg_graph_order(g, &config, order, NULL));
		train(ctx, g, &t, order, ordered, found);
		test_note("%s: distance %.3g, of a random order %.3g", methods[k].name,
		          distance(plain, ordered), drift);
		CHECK_WITHIN(distance(plain, ordered), 0, bound);
		int different = 0; /* a logit may be as near to another as rounding reaches */
		for (int i = 0; i < NODES; i++)
			different += found[i] != expected[i];
		CHECK(different <= 1);
	}
	hg_graph_free(g);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_graph_is_permuted),
	    TEST(graphs_refuse_what_does_not_fit),
	    TEST(every_allocation_may_fail),
	    TEST(training_is_the_same),
	};
	return RUN_TESTS(argc, argv, cases);
}
