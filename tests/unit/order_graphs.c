/* Orders of graphs on a device: a permuted graph has the same edges, and training on it gives the
 * same curve within rounding. */
#include "halfgraph/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planted.h"
#include "unit/faulty.h"

/* ---- graphs on a device ---- */

enum { NODES = 240, EDGES = 3000, GRAPHS = 3 };

/* Weighted, with duplicates and loops, in three graphs of 80 nodes each. The weight of an edge is
 * its number. */
static hg_graph *batch_of_three(hg_context *ctx)
{
	static const int64_t ptr[] = {0, 80, 160, 240};
	struct coo list = coo_empty(NODES, NODES);
	for (int e = 0; e < EDGES; e++) {
		const int64_t first = 80 * test_below(3), dst = test_below(80), far = 40 * test_below(2);
		const int64_t src = test_below(3) ? (dst + far) % 80 : test_below(80);
		coo_add_weighted(&list, first + dst, first + src, (float)e);
	}
	hg_graph *g = coo_graph(ctx, list);
	CHECK_OK(hg_graph_set_batch(g, GRAPHS, ptr));
	return g;
}

static void check_same_csr(const struct host_csr *a, const struct host_csr *b)
{
	CHECK(a->rows == b->rows && a->m == b->m);
	CHECK(memcmp(a->rowptr, b->rowptr, (size_t)(a->rows + 1) * sizeof *a->rowptr) == 0);
	CHECK(memcmp(a->col, b->col, (size_t)a->m * sizeof *a->col) == 0);
	CHECK(memcmp(a->weight, b->weight, (size_t)a->m * sizeof *a->weight) == 0);
}

static void permuted_graph_has_the_same_edges(void)
{
	static int64_t edge[EDGES], edge_back[EDGES];
	int32_t order[NODES], place[NODES];
	test_reseed(9);
	hg_context *ctx = test_context();
	hg_graph *g = batch_of_three(ctx), *h = NULL, *again = NULL;
	hg_order_config config = HG_ORDER_CONFIG_INIT;
	config.method = "community";
	CHECK_OK(hg_graph_order(g, &config, order, NULL));
	CHECK_OK(hg_order_check(NODES, order, place));
	for (int k = 0; k < NODES; k++)
		CHECK_EQ_I(order[k] / 80, k / 80);
	CHECK_OK(hg_graph_permute(g, order, edge, &h));
	CHECK(hg_graph_batch(h) == GRAPHS && hg_graph_edges(h) == EDGES && hg_graph_is_weighted(h));
	struct host_csr old = host_csr_download(ctx, g), new = host_csr_download(ctx, h);
	for (int64_t e = 0; e < EDGES; e++) {
		const int64_t from = edge[e];
		CHECK(old.row[from] == order[new.row[e]]);
		CHECK(place[old.col[from]] == new.col[e] && old.weight[from] == new.weight[e]);
	}
	CHECK_OK(hg_graph_permute(h, place, edge_back, &again));
	struct host_csr back = host_csr_download(ctx, again);
	check_same_csr(&back, &old);
	hg_locality locality = HG_LOCALITY_INIT;
	CHECK_OK(hg_graph_locality(h, &locality));
	CHECK(locality.tile_reuse >= 1);
	host_csr_free(&old);
	host_csr_free(&new);
	host_csr_free(&back);
	hg_graph_free(again);
	hg_graph_free(h);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void orders_that_do_not_fit_are_refused(void)
{
	int32_t order[NODES];
	hg_context *ctx = test_context();
	hg_graph *g = batch_of_three(ctx), *wide = NULL, *out = g;
	hg_locality locality = {0, 0, 0, 0, 0};
	for (int k = 0; k < NODES; k++)
		order[k] = NODES - 1 - k;
	CHECK_STATUS(hg_graph_permute(g, order, NULL, &out), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx),
	               "permute: order[0] = 239 leaves graph 0 of the batch, which has nodes 0 .. 79");
	CHECK(out == NULL);
	order[0] = 5;
	CHECK_STATUS(hg_graph_permute(g, order, NULL, &out), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "not a permutation of 0 .. 239");
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

static hg_status order_and_permute(hg_context *ctx)
{
	static const int64_t ptr[] = {0, 4, 6};
	static const int32_t dst[] = {0, 1, 2, 3, 3, 4, 5}, src[] = {1, 2, 3, 0, 1, 5, 5};
	struct coo list = coo_empty(6, 6);
	for (int e = 0; e < 7; e++)
		coo_add_weighted(&list, dst[e], src[e], (float)(e + 1));
	int32_t order[6];
	hg_locality locality = HG_LOCALITY_INIT;
	hg_graph *g = NULL, *better = NULL;
	hg_status status = coo_build(ctx, &list, &g);
	coo_free(&list);
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

static void failed_allocations_are_reported(void)
{
	const int64_t count = faulty_sweep(order_and_permute);
	test_note("%lld allocations made to fail", (long long)count);
	CHECK(count > 40);
}

/* ---- training ---- */

enum { STEPS = 30, FEATURES = 8, CLASSES = 4 };

static int note_loss(void *user, const hg_train_event *event)
{
	((double *)user)[event->epoch - 1] = event->loss;
	return 0;
}

/* Trains on the task in this order (NULL: as it is) and brings the predictions back to the original
 * order. Takes neither context nor graph. */
static void train(hg_context *ctx, hg_graph *g, const struct planted *task, const int32_t *order,
                  double *loss, int32_t *prediction)
{
	int32_t found[NODES], same[NODES], label[NODES];
	float x[NODES * FEATURES];
	uint8_t mask[NODES];
	struct planted_run run = {
	    .ctx = ctx, .data = HG_TRAIN_DATA_INIT, .report = HG_TRAIN_REPORT_INIT};
	hg_train_config config = hg_train_config_default("gcn");
	for (int i = 0; i < NODES; i++)
		same[i] = i;
	order = order ? order : same;
	CHECK_OK(hg_graph_permute(g, order, NULL, &run.graph));
	CHECK_OK(hg_order_rows(NODES, order, FEATURES * sizeof *x, task->x, x));
	CHECK_OK(hg_order_rows(NODES, order, sizeof *label, task->label, label));
	CHECK_OK(hg_order_rows(NODES, order, 1, task->train, mask));
	CHECK_OK(hg_policy_parse("fp32", &config.policy));
	config.model.hidden = 16;
	config.model.dropout = 0;
	config.model.out_features = CLASSES;
	config.epochs = STEPS;
	config.progress = note_loss;
	config.user = loss;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, NODES, FEATURES, &run.x));
	CHECK_OK(hg_tensor_upload(run.x, x, HG_F32));
	run.data.input.graph = run.graph;
	run.data.input.x = run.x;
	run.data.labels = label;
	run.data.train_mask = mask;
	planted_begin(&run, &config);
	CHECK_OK(hg_train_run(run.train, &run.report));
	CHECK_OK(hg_train_predict(run.train, found, NULL));
	CHECK_OK(hg_order_rows_back(NODES, order, sizeof found[0], found, prediction));
	run.ctx = NULL; /* the caller's */
	planted_close(&run);
}

static double distance(const double *a, const double *b)
{
	double most = 0;
	for (int k = 0; k < STEPS; k++)
		most = fabs(a[k] - b[k]) > most ? fabs(a[k] - b[k]) : most;
	return most;
}

/* An order of the nodes changes the order in which terms are added, and nothing else. How much that
 * changes the loss is measured: four times the distance between the loss curves of the given order
 * and of a random order is the bound. */
static void training_in_any_order_gives_the_same_curve(void)
{
	const struct planted_features features = {.noise = 1.0, .signal = 2.0};
	double plain[STEPS], scattered[STEPS], ordered[STEPS];
	int32_t order[NODES], expected[NODES], found[NODES];
	test_reseed(12);
	hg_context *ctx = test_context();
	struct planted task =
	    planted_make(coo_communities(NODES, EDGES, CLASSES), FEATURES, CLASSES, features);
	planted_split(&task, 2 * NODES / 3, 0);
	hg_graph *g = coo_to_graph(ctx, &task.edges);
	train(ctx, g, &task, NULL, plain, expected);
	test_shuffle(NODES, order);
	train(ctx, g, &task, order, scattered, found);
	const double drift = distance(plain, scattered), bound = 4 * drift + 4 * 0x1p-24 * plain[0];
	size_t count = 0;
	const hg_order_method *methods = hg_order_methods(&count);
	for (size_t k = 0; k < count; k++) {
		hg_order_config config = HG_ORDER_CONFIG_INIT;
		config.method = methods[k].name;
		CHECK_OK(hg_graph_order(g, &config, order, NULL));
		train(ctx, g, &task, order, ordered, found);
		test_note("%s: distance %.3g, of a random order %.3g", methods[k].name,
		          distance(plain, ordered), drift);
		CHECK_WITHIN(distance(plain, ordered), 0, bound);
		int different = 0; /* two logits of a node may be so near that rounding decides */
		for (int i = 0; i < NODES; i++)
			different += found[i] != expected[i];
		CHECK(different <= 1);
	}
	planted_free(&task);
	hg_graph_free(g);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(permuted_graph_has_the_same_edges),
	    TEST(orders_that_do_not_fit_are_refused),
	    TEST(failed_allocations_are_reported),
	    TEST(training_in_any_order_gives_the_same_curve),
	};
	return RUN_TESTS(argc, argv, cases);
}
