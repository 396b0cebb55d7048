/* Padded batches: their shapes and what their blocks hold, and that a pass on one is a pass on its
 * graphs. */

#include <math.h>

#include "autograd/tape.h"
#include "halfgraph/ops_norm.h"
#include "unit/batches_padded.h"

enum { PARAMS = 64, ELEMENTS = 1024, EPOCH = 4 };

struct pass {
	hg_params *params;
	hg_model *model;
	hg_tape *tape;
	float loss, grad[PARAMS][ELEMENTS];
};

/* One forward and backward pass with the weights of the context's seed. */
static void pass_run(struct pass *p, hg_context *ctx, const char *name, const char *policy,
                     const hg_batch *batch)
{
	hg_policy precision = hg_policy_fp16();
	hg_model_config c = hg_model_config_default(name);
	CHECK_OK(hg_policy_parse(policy, &precision));
	precision.loss_scale.init_scale = 64.0f; /* the gradients of single graphs are large */
	c.in_features = MG_FEATURES;
	c.out_features = MG_CLASSES;
	c.hidden = 8;
	c.heads = 2;
	c.readout = HG_REDUCE_MEAN;
	c.edge_features = hg_model_get_info(name)->edge_features ? MG_ATTRIBUTES : 0;
	c.dropout = c.attention_dropout = 0.0f;
	CHECK_OK(hg_params_create(ctx, &precision, &p->params));
	CHECK_OK(hg_model_create(p->params, &c, &p->model));
	CHECK_OK(hg_tape_create(p->params, HG_TRAIN, &p->tape));
	const hg_var logits = hg_model_record(p->model, p->tape, &batch->input);
	const hg_var loss = hg_softmax_xent(
	    p->tape, logits, hg_tape_input(p->tape, batch->row[0], "labels", -1.0), HG_NONE);
	CHECK_OK(hg_tape_compile(p->tape, loss));
	CHECK_OK(hg_tape_forward(p->tape));
	CHECK_OK(hg_tape_backward(p->tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(p->tape, loss), &p->loss, HG_F32));
	CHECK(p->params->count <= PARAMS);
	for (int64_t i = 0; i < p->params->count; i++) {
		const hg_tensor *grad = p->params->item[i]->grad;
		CHECK(hg_tensor_rows(grad) * hg_tensor_cols(grad) <= ELEMENTS);
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

/* Is this gradient one sum over all edges? Padding changes the pieces in which a CPU adds it. */
static int sums_edges(const char *model, const char *param)
{
	return (strcmp(model, "agnn") == 0 && strstr(param, ".beta")) ||
	       (strcmp(model, "gatv2") == 0 && strstr(param, ".att"));
}

/* Two sums of the same k terms in other orders have at most k - 1 roundings each, so they differ by
 * at most 2 (k - 1) 2^-24 times the sum of the terms' sizes. Here that is the size of the result:
 * terms that cancel are not counted, and against that a sum in pieces has far fewer roundings in a
 * row than k. */
static double sum_bound(int64_t k)
{
	return 2.0 * (double)k * 0x1p-24;
}

static double norm_of(const float *x, const float *minus)
{
	double sum = 0.0;
	for (int e = 0; e < ELEMENTS; e++) {
		const double d = (double)x[e] - (minus ? (double)minus[e] : 0.0);
		CHECK(isfinite(d));
		sum += d * d;
	}
	return sqrt(sum);
}

/* A CPU adds the rows of the batch in the same order, whatever comes after them. */
static void check_bits(const struct pass *a, const struct pass *b, const char *name, int64_t k)
{
	CHECK_MSG(memcmp(&a->loss, &b->loss, sizeof a->loss) == 0, "%s: loss %.9g and %.9g", name,
	          (double)a->loss, (double)b->loss);
	for (int64_t i = 0; i < a->params->count; i++) {
		const char *param = a->params->item[i]->name;
		if (!sums_edges(name, param))
			CHECK_MSG(memcmp(a->grad[i], b->grad[i], sizeof a->grad[i]) == 0, "%s: %s differs",
			          name, param);
		else
			CHECK_MSG(norm_of(a->grad[i], b->grad[i]) <= sum_bound(k) * norm_of(a->grad[i], NULL),
			          "%s: %s of norm %g differs by %g", name, param, norm_of(a->grad[i], NULL),
			          norm_of(a->grad[i], b->grad[i]));
	}
}

/* A GPU cuts the same rows into other pieces. Each of the S tensors of a step is stored with one
 * rounding (u, 2^-11 or 2^-24) behind sums of at most k terms. To first order, and where no op
 * makes a relative error larger, each pass is then within S (u + sum_bound(k) / 2) of exact
 * arithmetic, in norm, and the two within twice that: from 2^-6 (sgc) to 2^-3.5 (gt) in halves.
 * What is not in it is a relu at whose bend the passes are on two sides. */
static void check_close(const struct pass *a, const struct pass *b, const char *name, double u,
                        int64_t k, double *worst)
{
	const double bound = (double)hg_tape_narrowings(a->tape) * (2.0 * u + sum_bound(k));
	double norm = 0.0, distance = 0.0;
	CHECK_MSG(fabs((double)a->loss - (double)b->loss) <= bound * (double)a->loss,
	          "%s: loss %.9g and %.9g", name, (double)a->loss, (double)b->loss);
	for (int64_t i = 0; i < PARAMS; i++) {
		norm += pow(norm_of(a->grad[i], NULL), 2.0);
		distance += pow(norm_of(a->grad[i], b->grad[i]), 2.0);
	}
	CHECK_MSG(sqrt(distance) <= bound * sqrt(norm), "%s: gradients of norm %g differ by %g", name,
	          sqrt(norm), sqrt(distance));
	*worst = fmax(*worst, sqrt(distance) / (bound * sqrt(norm)));
}

/* The batch in place, padded, in a block of device memory. */
struct block {
	struct hg__padded padded;
	struct hg__schedule schedule;
	struct padded_block in;
};

static void block_open(struct block *k, hg_context *ctx, const hg_batches *all,
                       const hg_batches_config *from, const hg_graph *probe, int64_t batch,
                       hg_dtype state)
{
	memset(k, 0, sizeof *k);
	CHECK(hg__padded_refusal(all, state, 1) == NULL);
	CHECK_OK(hg__padded_init(&k->padded, all, from, probe, state, 0, -1));
	CHECK_OK(hg__schedule_init(&k->schedule, &k->padded));
	hg__schedule_make(&k->schedule, EPOCH);
	padded_block_open(&k->in, ctx, &k->padded, &k->schedule, batch);
}

static void block_close(struct block *k, hg_context *ctx)
{
	padded_block_close(&k->in, ctx);
	hg__schedule_fini(&k->schedule);
	hg__padded_fini(&k->padded);
}

static void check_shape(const struct block *k, const hg_batch *batch)
{
	const struct hg__shape_of_batch *s = &k->in.batch.shape;
	const int64_t nodes = hg_graph_rows(batch->input.graph),
	              edges = hg_graph_edges(batch->input.graph);
	CHECK(s->graphs == batch->graphs && s->nodes > nodes && s->nodes > s->graphs);
	CHECK(s->edges >= edges && (edges > 0) == (s->edges > 0) && s->nodes != s->edges);
	CHECK(s->edges <= edges + edges / 16 + 8);
}

static hg_batches_config config_of(const struct many_device *d, int64_t graphs)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	c.input = many_input(d);
	c.row[0] = d->label;
	c.row[2] = d->target;
	c.graphs = graphs;
	c.seed = 3;
	return c;
}

static hg_status batches_of(hg_context *ctx, const struct many_device *d, int64_t graphs,
                            hg_batches **batches)
{
	const hg_batches_config c = config_of(d, graphs);
	return hg_batches_create(ctx, &c, batches);
}

/* Batch k of `own` in its own shape, and the same batch padded. */
static void check_batch(hg_context *ctx, const char *name, hg_batches *own, const hg_batches *all,
                        const hg_batches_config *from, int64_t k, int variant, double *worst)
{
	static struct pass exact, padded;
	struct block block;
	hg_batch batch = HG_BATCH_INIT;
	const char *policy = variant & MG_F32 ? "fp32" : "fp16";
	CHECK_OK(hg_batches_load(own, EPOCH, k, &batch));
	const int64_t edges = hg_graph_edges(batch.input.graph);
	if (!edges)
		return;
	pass_run(&exact, ctx, name, policy, &batch);
	block_open(&block, ctx, all, from, batch.input.graph, k, variant & MG_F32 ? HG_F32 : HG_F16);
	check_shape(&block, &batch);
	pass_run(&padded, ctx, name, policy, &block.in.batch.batch);
	const int64_t nodes = block.in.batch.shape.nodes,
	              terms = block.in.batch.shape.edges > nodes ? block.in.batch.shape.edges : nodes;
	if (hg_context_device(ctx) == HG_DEVICE_CPU)
		check_bits(&exact, &padded, name, terms);
	else
		check_close(&exact, &padded, name, variant & MG_F32 ? 0x1p-24 : 0x1p-11, terms, worst);
	pass_free(&padded);
	pass_free(&exact);
	block_close(&block, ctx);
}

/* Padded batches have dense features. So that both passes run the same kernels, those of the batch
 * in its own shape are dense, too; halves hold their values. */
static void check_model(hg_context *ctx, const struct many_graphs *g, const char *name,
                        int64_t graphs, int variant, double *worst)
{
	struct many_device d, dense;
	hg_batches *all, *own;
	CHECK_OK(many_open(ctx, g, variant, &d));
	CHECK_OK(many_open(ctx, g, variant & ~MG_SPARSE, &dense));
	CHECK_OK(batches_of(ctx, &d, graphs, &all));
	CHECK_OK(batches_of(ctx, &dense, graphs, &own));
	const hg_batches_config from = config_of(&d, graphs);
	check_batch(ctx, name, own, all, &from, hg_batches_count(own) - 1, variant, worst);
	check_batch(ctx, name, own, all, &from, 0, variant, worst);
	hg_batches_free(all);
	hg_batches_free(own);
	many_close(&d);
	many_close(&dense);
}

static void a_pass_on_a_padded_batch_is_that_of_its_graphs(void)
{
	static const int64_t sizes[] = {1, 6, MG_GRAPHS};
	static struct many_graphs g;
	hg_context *ctx = test_context();
	const char *const *names = hg_model_names();
	double worst = 0.0;
	for (int symmetric = 0; symmetric < 2; symmetric++) {
		many_graphs_make(&g, symmetric, 1);
		for (int64_t i = 0; i < g.nodes * MG_FEATURES; i++)
			g.x[i] = hg_half_to_float(hg_half_from_float(g.x[i]));
		for (int k = 0; names[k]; k++)
			for (int variant = 0; variant < MG_VARIANTS; variant++)
				check_model(ctx, &g, names[k], sizes[(k + variant) % 3], variant, &worst);
	}
	test_note("largest distance / bound: %.3g", worst);
	hg_context_free(ctx);
}

/* A dataset without a node of more than 1024 edges has padded batches; features that halves do not
 * hold have none, unless they are dense. */
static void some_datasets_keep_their_shapes(void)
{
	static struct many_graphs g;
	hg_context *ctx = test_context();
	struct many_device d;
	hg_batches *all;
	many_graphs_make(&g, 1, 0);
	g.x[0] = 1.0f + 0x1p-20f;
	for (int variant = 0; variant < 4; variant += 2) {
		CHECK_OK(many_open(ctx, &g, variant, &d));
		CHECK_OK(batches_of(ctx, &d, 5, &all));
		const char *why = hg__padded_refusal(all, HG_F16, 1);
		CHECK(variant & MG_SPARSE ? why && strstr(why, "exactly") : !why);
		CHECK(hg__padded_refusal(all, HG_F32, 1) == NULL);
		all->graph_facts.facts.max_col_degree = 1025;
		why = hg__padded_refusal(all, HG_F32, 1);
		CHECK(why && strstr(why, "1024 edges"));
		all->graph_facts.facts.max_col_degree = 4;
		all->features = 129;
		why = hg__padded_refusal(all, HG_F32, 0);
		CHECK(variant & MG_SPARSE ? why && strstr(why, "sparse") : !why);
		hg_batches_free(all);
		many_close(&d);
	}
	hg_context_free(ctx);
}

/* Edges of padding rows have a positive weight of the dataset, so one without any has none. */
static void without_a_positive_weight_shapes_stay(void)
{
	static struct many_graphs g;
	hg_context *ctx = test_context();
	many_graphs_make(&g, 1, 0);
	for (int positive = 0; positive < 2; positive++) {
		struct many_device d;
		hg_batches *all;
		for (int64_t e = 0; e < g.m; e++)
			g.weight[e] = positive && e == g.m / 2 ? 0.25f : e % 3 ? -0.5f : 0.0f;
		CHECK_OK(many_open(ctx, &g, MG_WEIGHTED, &d));
		CHECK_OK(batches_of(ctx, &d, 5, &all));
		const char *why = hg__padded_refusal(all, HG_F32, 1);
		CHECK(positive ? !why : why && strstr(why, "positive"));
		hg_batches_free(all);
		many_close(&d);
	}
	hg_context_free(ctx);
}

/* The transpose of a dataset is kept where blocks have arrays of it, and nowhere else. */
static void only_what_is_read_is_transposed(void)
{
	static struct many_graphs g;
	hg_context *ctx = test_context();
	for (int symmetric = 0; symmetric < 2; symmetric++) {
		static struct pass pass;
		struct many_device d;
		struct block block;
		hg_batches *all;
		hg_batch batch = HG_BATCH_INIT;
		many_graphs_make(&g, symmetric, 0);
		CHECK_OK(many_open(ctx, &g, MG_F32, &d));
		CHECK_OK(batches_of(ctx, &d, 5, &all));
		const hg_batches_config from = config_of(&d, 5);
		CHECK_OK(hg_batches_load(all, 0, 0, &batch));
		pass_run(&pass, ctx, "gin", "fp32", &batch);
		block_open(&block, ctx, all, &from, batch.input.graph, 0, HG_F32);
		CHECK((d.graph->rowptr_t.data == NULL) == symmetric);
		CHECK((d.graph->edge_t.data == NULL) == (batch.input.graph->edge_t.data == NULL));
		block_close(&block, ctx);
		pass_free(&pass);
		hg_batches_free(all);
		many_close(&d);
	}
	hg_context_free(ctx);
}

static void more_rows_than_ids_are_refused(void)
{
	static const struct hg__part_facts none;
	const struct hg__changing arrays = {.rows = (int64_t)INT32_MAX + 1, .count = 1};
	hg_context *ctx = test_context();
	hg_graph *graph;
	CHECK_STATUS(hg__graph_of_changing(ctx, &arrays, &none, &graph), HG_ERR_ARG);
	CHECK(!graph && strstr(hg_context_error(ctx), "2147483648 rows"));
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_pass_on_a_padded_batch_is_that_of_its_graphs),
	    TEST(some_datasets_keep_their_shapes),
	    TEST(without_a_positive_weight_shapes_stay),
	    TEST(only_what_is_read_is_transposed),
	    TEST(more_rows_than_ids_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
