/* Batches of graphs: the order of an epoch, what a batch holds, and that a step on a batch is a
 * step on the same graphs as a dataset of their own. */
#include "halfgraph/batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/graph.h"
#include "halfgraph/model.h"
#include "halfgraph/ops_norm.h"
#include "unit/faulty.h"
#include "unit/many_graphs.h"

static hg_status batches_of(hg_context *ctx, const struct many_device *d, int64_t graphs,
                            uint64_t seed, const uint8_t *chosen, hg_batches **batches)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	c.input = many_input(d);
	c.row[0] = d->label;
	c.row[2] = d->target;
	c.chosen = chosen;
	c.graphs = graphs;
	c.seed = seed;
	return hg_batches_create(ctx, &c, batches);
}

/* ---- orders ---- */

static int by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Does each batch of an order hold the same graphs in both? */
static int same_batches(const int64_t *a, const int64_t *b, int64_t count, int64_t per_batch)
{
	int64_t x[MG_GRAPHS], y[MG_GRAPHS];
	memcpy(x, a, (size_t)count * sizeof *a);
	memcpy(y, b, (size_t)count * sizeof *b);
	for (int64_t k = 0; k < count; k += per_batch) {
		const size_t n = (size_t)(per_batch < count - k ? per_batch : count - k);
		qsort(x + k, n, sizeof *x, by_number);
		qsort(y + k, n, sizeof *y, by_number);
	}
	return memcmp(x, y, (size_t)count * sizeof *x) == 0;
}

static int same_order(const int64_t *a, const int64_t *b, int64_t count)
{
	return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static void every_graph_comes_once_in_an_order_of_seed_and_epoch(void)
{
	static struct many_graphs g;
	struct many_device d;
	hg_context *ctx = test_context();
	uint8_t chosen[MG_GRAPHS];
	int64_t first[MG_GRAPHS], again[MG_GRAPHS];
	many_graphs_make(&g, 1, 1);
	CHECK_OK(many_open(ctx, &g, 0, &d));
	for (int64_t k = 0; k < MG_GRAPHS; k++)
		chosen[k] = (uint8_t)(k % 3 != 1);
	for (int some = 0; some < 2; some++)
		for (int64_t epoch = HG_BATCHES_IN_ORDER; epoch < 40; epoch++) {
			hg_batches *a, *b;
			int seen[MG_GRAPHS] = {0}, moved = 0;
			CHECK_OK(batches_of(ctx, &d, 7, 5, some ? chosen : NULL, &a));
			CHECK_OK(batches_of(ctx, &d, 21, epoch % 2 ? 5 : 6, some ? chosen : NULL, &b));
			const int64_t count = hg_batches_graphs(a);
			CHECK_EQ_I(count, some ? 27 : MG_GRAPHS);
			CHECK_EQ_I(hg_batches_count(a), (count + 6) / 7);
			CHECK_OK(hg_batches_order(a, epoch, first));
			CHECK_OK(hg_batches_order(b, epoch, again));
			for (int64_t k = 0; k < count; k++) {
				CHECK(first[k] >= 0 && first[k] < MG_GRAPHS && !seen[first[k]]++);
				CHECK(!some || chosen[first[k]]);
				moved += k > 0 && first[k] < first[k - 1];
			}
			/* three batches have the graphs of one that is three times as large; the seed matters,
			 * but not in order */
			CHECK(same_batches(first, again, count, 21) == (epoch % 2 != 0 || epoch < 0));
			CHECK((moved > 0) == (epoch >= 0));
			CHECK_OK(hg_batches_order(a, epoch + 1, again));
			CHECK(!same_order(first, again, count));
			hg_batches_free(a);
			hg_batches_free(b);
		}
	many_close(&d);
	hg_context_free(ctx);
}

/* Of 3 graphs every one of the 6 orders comes up in 1000 of 6000 epochs: 6 standard deviations of
 * such a count are 173. */
static void every_order_is_as_probable(void)
{
	static struct many_graphs g;
	struct many_device d;
	hg_batches *b;
	hg_context *ctx = test_context();
	int64_t order[3], count[27] = {0};
	uint8_t chosen[MG_GRAPHS] = {1, 1, 1};
	many_graphs_make(&g, 1, 0);
	CHECK_OK(many_open(ctx, &g, 0, &d));
	CHECK_OK(batches_of(ctx, &d, 1, 99, chosen, &b));
	for (int64_t epoch = 0; epoch < 6000; epoch++) {
		CHECK_OK(hg_batches_order(b, epoch, order));
		count[9 * order[0] + 3 * order[1] + order[2]]++;
	}
	for (int k = 0; k < 27; k++) {
		const int a = k / 9, second = k / 3 % 3, c = k % 3;
		if (a != second && a != c && second != c)
			CHECK_WITHIN(count[k], 1000, 173);
		else
			CHECK_EQ_I(count[k], 0);
	}
	hg_batches_free(b);
	many_close(&d);
	hg_context_free(ctx);
}

/* ---- batches ---- */

static void check_graph(hg_graph *found, const struct many_graphs *expected, int weighted)
{
	static int64_t rowptr[MG_NODES + 1];
	static int32_t col[MG_EDGES];
	static float weight[MG_EDGES];
	CHECK_EQ_I(hg_graph_rows(found), expected->nodes);
	CHECK_EQ_I(hg_graph_edges(found), expected->m);
	CHECK_EQ_I(hg_graph_batch(found), expected->graphs);
	CHECK_EQ_I(hg_graph_is_weighted(found), weighted && expected->m > 0);
	CHECK_OK(hg_graph_download(found, rowptr, col, weight));
	for (int64_t i = 0; i <= expected->nodes; i++)
		CHECK_EQ_I(rowptr[i], expected->rowptr[i]);
	for (int64_t e = 0; e < expected->m; e++)
		CHECK(col[e] == expected->col[e] && weight[e] == (weighted ? expected->weight[e] : 1.0f));
}

/* The ids of the nodes, as kernels read them. */
static void check_blocks(hg_graph *found, const struct many_graphs *expected)
{
	const int64_t *ptr;
	const int32_t *id;
	int64_t host_ptr[MG_GRAPHS + 1];
	int32_t host_id[MG_NODES + 1];
	const struct hg__backend *backend = found->ctx->backend;
	CHECK_OK(hg__graph_batch(found, &ptr, &id));
	CHECK_OK(
	    backend->copy_out(found->ctx, host_ptr, ptr, (size_t)(expected->graphs + 1) * sizeof *ptr));
	if (expected->nodes)
		CHECK_OK(backend->copy_out(found->ctx, host_id, id, (size_t)expected->nodes * sizeof *id));
	for (int64_t k = 0; k < expected->graphs; k++) {
		CHECK_EQ_I(host_ptr[k + 1], expected->ptr[k + 1]);
		for (int64_t i = expected->ptr[k]; i < expected->ptr[k + 1]; i++)
			CHECK_EQ_I(host_id[i], k);
	}
}

/* Nothing that bounds the dataset is exceeded by a batch. */
static void check_facts(hg_graph *found, const struct many_device *own)
{
	hg_graph_facts f = HG_GRAPH_FACTS_INIT, real = HG_GRAPH_FACTS_INIT;
	CHECK_OK(hg_graph_facts_get(found, &f));
	CHECK_OK(hg_graph_facts_get(own->graph, &real));
	CHECK(f.max_row_degree >= real.max_row_degree && f.max_col_degree >= real.max_col_degree);
	CHECK(f.max_row_sum >= real.max_row_sum && f.max_col_sum >= real.max_col_sum);
	CHECK(f.empty_rows <= real.empty_rows && f.empty_cols <= real.empty_cols);
	for (int norm = 0; norm < HG_NORMS; norm++)
		CHECK(f.norm_row_sum[norm] >= real.norm_row_sum[norm] &&
		      f.norm_col_sum[norm] >= real.norm_col_sum[norm]);
	CHECK(!f.symmetric || real.symmetric);
	CHECK(hg__graph_batch_max(found) >= hg__graph_batch_max(own->graph));
	CHECK(hg__graph_batch_min(found) <= hg__graph_batch_min(own->graph) ||
	      hg__graph_batch_min(own->graph) == 0);
}

static void check_features(const hg_batch *batch, const struct many_device *own, int variant)
{
	static float found[MG_NODES * MG_FEATURES], expected[MG_NODES * MG_FEATURES];
	static int32_t col[2][MG_NODES * MG_FEATURES];
	int64_t rowptr[2][MG_NODES + 1];
	CHECK((batch->input.x_sparse != NULL) == ((variant & MG_SPARSE) != 0));
	if (variant & MG_SPARSE) {
		const int64_t n = hg_graph_rows(own->x_sparse), m = hg_graph_edges(own->x_sparse);
		CHECK_EQ_I(hg_graph_rows(batch->input.x_sparse), n);
		CHECK_EQ_I(hg_graph_cols(batch->input.x_sparse), MG_FEATURES);
		CHECK_EQ_I(hg_graph_edges(batch->input.x_sparse), m);
		CHECK_OK(hg_graph_download(batch->input.x_sparse, rowptr[0], col[0], found));
		CHECK_OK(hg_graph_download(own->x_sparse, rowptr[1], col[1], expected));
		CHECK(memcmp(rowptr[0], rowptr[1], (size_t)(n + 1) * sizeof(int64_t)) == 0);
		CHECK(memcmp(col[0], col[1], (size_t)m * sizeof(int32_t)) == 0);
		CHECK(memcmp(found, expected, (size_t)m * sizeof(float)) == 0);
		return;
	}
	CHECK_EQ_I(hg_tensor_rows(batch->input.x), hg_tensor_rows(own->x));
	CHECK_OK(hg_tensor_download(batch->input.x, found, HG_F32));
	CHECK_OK(hg_tensor_download(own->x, expected, HG_F32));
	CHECK(memcmp(found, expected, (size_t)hg_tensor_rows(own->x) * MG_FEATURES * sizeof(float)) ==
	      0);
}

static void check_attributes(const hg_batch *batch, const struct many_device *own)
{
	static float found[MG_EDGES * MG_ATTRIBUTES], expected[MG_EDGES * MG_ATTRIBUTES];
	const int64_t m = hg_graph_edges(batch->input.graph);
	CHECK_EQ_I(hg_tensor_rows(batch->input.edge_x), m);
	CHECK_EQ_I(hg_tensor_cols(batch->input.edge_x), MG_ATTRIBUTES);
	CHECK(hg_tensor_dtype(batch->input.edge_x) == hg_tensor_dtype(own->edge_x));
	CHECK_OK(hg_tensor_download(batch->input.edge_x, found, HG_F32));
	CHECK_OK(hg_tensor_download(own->edge_x, expected, HG_F32));
	CHECK(memcmp(found, expected, (size_t)(m * MG_ATTRIBUTES) * sizeof(float)) == 0);
	CHECK(batch->input.edge_amax >= 0.0);
}

static void check_batch(hg_context *ctx, const struct many_graphs *g, const hg_batch *batch,
                        int variant)
{
	static struct many_graphs own;
	struct many_device device;
	int32_t label[MG_GRAPHS];
	float target[2 * MG_GRAPHS];
	many_graphs_pick(g, batch->graph, batch->graphs, &own);
	CHECK_OK(many_open(ctx, &own, variant, &device));
	check_graph(batch->input.graph, &own, variant & MG_WEIGHTED);
	check_blocks(batch->input.graph, &own);
	check_facts(batch->input.graph, &device);
	check_features(batch, &device, variant);
	check_attributes(batch, &device);
	CHECK(batch->row[1] == NULL && batch->row[3] == NULL);
	CHECK_OK(hg_tensor_download(batch->row[0], label, HG_I32));
	CHECK_OK(hg_tensor_download(batch->row[2], target, HG_F32));
	CHECK(memcmp(label, own.label, (size_t)own.graphs * sizeof *label) == 0);
	CHECK(memcmp(target, own.target, (size_t)own.graphs * 2 * sizeof *target) == 0);
	many_close(&device);
}

static void a_batch_holds_its_graphs_in_their_order(void)
{
	static const int64_t sizes[] = {1, 4, MG_GRAPHS, 3 * MG_GRAPHS};
	static struct many_graphs g;
	hg_context *ctx = test_context();
	for (int variant = 0; variant < MG_VARIANTS; variant++) {
		struct many_device d;
		int64_t order[MG_GRAPHS];
		many_graphs_make(&g, variant % 2, 1);
		CHECK_OK(many_open(ctx, &g, variant, &d));
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			hg_batches *b;
			hg_batch batch = HG_BATCH_INIT;
			const int64_t epoch = (int64_t)s - 1; /* -1: in order */
			int64_t seen = 0;
			CHECK_OK(batches_of(ctx, &d, sizes[s], 3, NULL, &b));
			CHECK_OK(hg_batches_order(b, epoch, order));
			for (int64_t k = 0; k < hg_batches_count(b); k++) {
				CHECK_OK(hg_batches_load(b, epoch, k, &batch));
				CHECK_EQ_I(batch.graphs, sizes[s] < MG_GRAPHS - seen ? sizes[s] : MG_GRAPHS - seen);
				CHECK(same_order(batch.graph, order + seen, batch.graphs));
				check_batch(ctx, &g, &batch, variant);
				seen += batch.graphs;
			}
			CHECK_EQ_I(seen, MG_GRAPHS);
			hg_batches_free(b);
		}
		many_close(&d);
	}
	hg_context_free(ctx);
}

/* ---- steps on batches ---- */

struct pass {
	hg_params *params;
	hg_model *model;
	hg_tape *tape;
	float loss, grad[64][256];
};

/* One forward and backward pass of a model on these graphs, with the weights of the context's
 * seed. */
static void pass_run(struct pass *p, hg_context *ctx, const char *name, const char *policy,
                     const hg_model_input *input, const hg_tensor *label)
{
	hg_policy precision = hg_policy_fp16();
	hg_model_config c = hg_model_config_default(name);
	CHECK_OK(hg_policy_parse(policy, &precision));
	c.in_features = MG_FEATURES;
	c.out_features = MG_CLASSES;
	c.hidden = 8;
	c.heads = 1;
	c.readout = HG_REDUCE_MEAN;
	c.edge_features = hg_model_get_info(name)->edge_features ? MG_ATTRIBUTES : 0;
	c.dropout = 0.0f;
	c.attention_dropout = 0.0f;
	CHECK_OK(hg_params_create(ctx, &precision, &p->params));
	CHECK_OK(hg_model_create(p->params, &c, &p->model));
	CHECK_OK(hg_tape_create(p->params, HG_TRAIN, &p->tape));
	const hg_var logits = hg_model_record(p->model, p->tape, input);
	const hg_var loss =
	    hg_softmax_xent(p->tape, logits, hg_tape_input(p->tape, label, "labels", -1.0), HG_NONE);
	CHECK_OK(hg_tape_compile(p->tape, loss));
	CHECK_OK(hg_tape_forward(p->tape));
	CHECK_OK(hg_tape_backward(p->tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(p->tape, loss), &p->loss, HG_F32));
	CHECK(p->params->count <= 64);
	for (int64_t i = 0; i < p->params->count; i++) {
		const hg_tensor *grad = p->params->item[i]->grad;
		CHECK(hg_tensor_rows(grad) * hg_tensor_cols(grad) <= 256);
		if (grad)
			CHECK_OK(hg_tensor_download(grad, p->grad[i], HG_F32));
	}
}

static void pass_free(struct pass *p)
{
	hg_tape_free(p->tape);
	hg_model_free(p->model);
	hg_params_free(p->params);
	memset(p, 0, sizeof *p);
}

static void check_same_pass(const struct pass *a, const struct pass *b)
{
	CHECK(memcmp(&a->loss, &b->loss, sizeof a->loss) == 0 && isfinite(a->loss));
	CHECK(memcmp(a->grad, b->grad, sizeof a->grad) == 0);
}

/* The same kernels run on the same arrays, so the bits are the same. One batch of all graphs in
 * order is the full batch. */
static void a_pass_on_a_batch_is_that_of_its_graphs(void)
{
	static const int64_t sizes[] = {1, 6, MG_GRAPHS};
	static struct many_graphs g, own;
	static struct pass a, b;
	hg_context *ctx = test_context();
	const char *const *names = hg_model_names();
	many_graphs_make(&g, 1, 1);
	for (int k = 0; names[k]; k++)
		for (int variant = 0; variant < TEST_SHARE(8, 4); variant += 1 + k % 2) {
			struct many_device all, part;
			const char *policy = variant & MG_F32 ? "fp32" : "fp16";
			CHECK_OK(many_open(ctx, &g, variant, &all));
			for (int s = 0; s < 3; s++) {
				hg_batches *batches;
				hg_batch batch = HG_BATCH_INIT;
				const int64_t epoch = sizes[s] == MG_GRAPHS ? HG_BATCHES_IN_ORDER : 4;
				CHECK_OK(batches_of(ctx, &all, sizes[s], 3, NULL, &batches));
				CHECK_OK(hg_batches_load(batches, epoch, hg_batches_count(batches) - 1, &batch));
				many_graphs_pick(&g, batch.graph, batch.graphs, &own);
				CHECK_OK(many_open(ctx, &own, variant, &part));
				const hg_model_input alone = many_input(&part);
				pass_run(&a, ctx, names[k], policy, &batch.input, batch.row[0]);
				pass_run(&b, ctx, names[k], policy, &alone, part.label);
				check_same_pass(&a, &b);
				pass_free(&a);
				pass_free(&b);
				many_close(&part);
				hg_batches_free(batches);
			}
			many_close(&all);
		}
	hg_context_free(ctx);
}

/* ---- errors ---- */

static void bad_arguments_are_refused(void)
{
	static struct many_graphs g;
	struct many_device d, other;
	hg_context *ctx = test_context(), *second = test_context();
	hg_batches *b = NULL;
	hg_batch batch = HG_BATCH_INIT;
	int64_t order[MG_GRAPHS];
	const uint8_t none[MG_GRAPHS] = {0};
	many_graphs_make(&g, 1, 0);
	CHECK_OK(many_open(ctx, &g, 0, &d));
	CHECK_OK(many_open(second, &g, MG_SPARSE, &other));
	hg_batches_config good = HG_BATCHES_CONFIG_INIT, c;
	good.input = many_input(&d);
	good.graphs = 4;
	static const char *const parts[] = {"graphs is 0", "none of 41",   "input.graph", "neither",
	                                    "both",        "row[3] has",   "row[2] is",   "another",
	                                    "size is not", "config.input", "edge_x has",  "edge_x is"};
	for (int k = 0; k < 12; k++) {
		c = good;
		c.graphs = k == 0 ? 0 : 4;
		c.chosen = k == 1 ? none : NULL;
		c.input.graph = k == 2 ? other.graph : d.graph;
		c.input.x = k == 3 ? NULL : d.x;
		c.input.x_sparse = k == 4 || k == 7 ? other.x_sparse : NULL;
		c.row[3] = k == 5 ? d.x : NULL;
		c.row[2] = k == 6 ? other.label : NULL;
		if (k == 7)
			c.input.x = NULL;
		c.size = k == 8 ? 0 : c.size;
		c.input.size = k == 9 ? 8 : c.input.size;
		c.input.edge_x = k == 10 ? d.x : k == 11 ? other.edge_x : NULL;
		CHECK_STATUS(hg_batches_create(ctx, &c, &b), k == 5 || k == 10 ? HG_ERR_SHAPE : HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(ctx), parts[k]);
		CHECK(b == NULL);
	}
	CHECK_STATUS(hg_batches_create(NULL, &good, &b), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_create(ctx, NULL, &b), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_create(ctx, &good, NULL), HG_ERR_ARG);
	CHECK_OK(hg_batches_create(ctx, &good, &b));
	CHECK_STATUS(hg_batches_order(b, -2, order), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_order(b, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_order(NULL, 0, order), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_load(b, 0, 11, &batch), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "batch 11, expected 0 to 10");
	CHECK_STATUS(hg_batches_load(b, 0, -1, &batch), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_load(b, -2, 0, &batch), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_load(b, 0, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_batches_load(NULL, 0, 0, &batch), HG_ERR_ARG);
	CHECK_OK(hg_batches_load(b, 0, 10, &batch));
	CHECK_EQ_I(batch.graphs, 1);
	CHECK(hg_batches_count(NULL) == 0 && hg_batches_graphs(NULL) == 0);
	hg_batches_free(b);
	hg_batches_free(NULL);
	many_close(&d);
	many_close(&other);
	hg_context_free(ctx);
	hg_context_free(second);
}

/* A dataset without a batch is one graph. */
static void one_graph_is_a_batch_of_one(void)
{
	hg_context *ctx = test_context();
	hg_graph *graph = coo_graph(ctx, coo_ring(9));
	hg_tensor *x;
	hg_batches *b;
	hg_batch batch = HG_BATCH_INIT;
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 9, 2, &x));
	c.input.graph = graph;
	c.input.x = x;
	c.graphs = 2;
	CHECK_OK(hg_batches_create(ctx, &c, &b));
	CHECK_OK(hg_batches_load(b, 0, 0, &batch));
	CHECK(batch.graphs == 1 && batch.graph[0] == 0 && batch.input.x_amax == 0.0);
	CHECK_EQ_I(hg_graph_rows(batch.input.graph), 9);
	CHECK_EQ_I(hg_graph_edges(batch.input.graph), 27);
	hg_batches_free(b);
	hg_tensor_free(x);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

static int failing_variant;

static hg_status scene(hg_context *ctx)
{
	static struct many_graphs g;
	struct many_device d;
	hg_batches *b = NULL;
	hg_batch batch = HG_BATCH_INIT;
	many_graphs_make(&g, 0, 1);
	hg_status s = many_open(ctx, &g, failing_variant, &d);
	if (s >= 0)
		s = batches_of(ctx, &d, 9, 1, NULL, &b);
	for (int64_t k = 0; s >= 0 && k < 3; k++)
		s = hg_batches_load(b, 0, k, &batch);
	hg_batches_free(b);
	many_close(&d);
	return s;
}

static void failed_allocations_leak_nothing(void)
{
	for (failing_variant = 0; failing_variant < 4; failing_variant++)
		test_note("%lld allocations", (long long)faulty_sweep(scene));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_graph_comes_once_in_an_order_of_seed_and_epoch),
	    TEST(every_order_is_as_probable),
	    TEST(a_batch_holds_its_graphs_in_their_order),
	    TEST(a_pass_on_a_batch_is_that_of_its_graphs),
	    TEST(bad_arguments_are_refused),
	    TEST(one_graph_is_a_batch_of_one),
	    TEST(failed_allocations_leak_nothing),
	};
	return RUN_TESTS(argc, argv, cases);
}
