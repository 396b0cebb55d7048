/* Padding of a graph that is refilled counts nowhere (autograd/live.c): batch norm and losses on a
 * tape over a stream are those over the same list on a graph without padding. Rows of padding hold
 * features and targets here that would show. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/context.h"
#include "graphs.h"
#include "halfgraph/graph_stream.h"
#include "halfgraph/halfgraph.h"
#include "halfgraph/ops_graph.h"
#include "halfgraph/ops_norm.h"
#include "nn/model.h"
#include "unit/capturing.h"

enum { NODES = 60, EDGES = 300, DEGREE = 40, WIDTH = 8, CLASSES = 3, ROOM = 8192 };

/* ---- lists ---- */

/* Lists of 0 and 1 nodes, of one without edges, of all that there is room for, and random ones. */
static struct coo list_of(int k)
{
	static const int64_t nodes[] = {7, 0, NODES, 1, 12}, edges[] = {20, 0, EDGES, 3, 0};
	const int64_t n = k < 5 ? nodes[k] : 2 + test_below(NODES - 1),
	              m = k < 5 ? edges[k] : test_below(EDGES + 1);
	int in[NODES] = {0}, out[NODES] = {0};
	struct coo list = coo_empty(n, n);
	for (int64_t tries = 0; list.m < m && tries < 20 * EDGES; tries++) {
		const int64_t i = test_below(n), j = test_below(n);
		if (in[i] >= DEGREE - 1 || out[j] >= DEGREE - 1)
			continue;
		in[i]++;
		out[j]++;
		coo_add(&list, i, j);
	}
	return list;
}
enum { LISTS = 9 };

/* The same with the self loops that the stream adds. */
static hg_graph *graph_of(hg_context *ctx, const struct coo *list)
{
	struct coo all = coo_empty(list->rows, list->rows);
	for (int64_t e = 0; e < list->m; e++)
		coo_add(&all, list->dst[e], list->src[e]);
	for (int64_t i = 0; i < list->rows; i++)
		coo_add(&all, i, i);
	return coo_graph(ctx, all);
}

/* ---- a side: the stream, or graphs without padding ---- */

enum loss { XENT, XENT_WEIGHTED, MSE, BCE, LOSSES };

struct data {
	hg_tensor *x, *label, *target;
};

struct side {
	hg_context *ctx;
	hg_params *params;
	hg_model *model;
	hg_optim *optim;
	/* of one graph; NULL: not recorded */
	struct data data;
	hg_tape *tape;
	hg_var logits, loss;
};

static void side_open(struct side *s, hg_context *ctx, const hg_policy *policy, const char *name)
{
	hg_model_config c = hg_model_config_default(name);
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	*s = (struct side){.ctx = ctx};
	c.in_features = WIDTH;
	c.out_features = CLASSES;
	c.hidden = 16;
	c.dropout = c.attention_dropout = 0.0f;
	CHECK_OK(hg_params_create(ctx, policy, &s->params));
	CHECK_OK(hg_model_create(s->params, &c, &s->model));
	CHECK_OK(hg_optim_create(s->params, &adam, &s->optim));
}

static void tape_close(struct side *s)
{
	hg_tape_free(s->tape);
	hg_tensor_free(s->data.x);
	hg_tensor_free(s->data.label);
	hg_tensor_free(s->data.target);
	s->tape = NULL;
	s->data = (struct data){NULL, NULL, NULL};
}

static void side_close(struct side *s)
{
	tape_close(s);
	hg_optim_free(s->optim);
	hg_model_free(s->model);
	hg_params_free(s->params);
}

static hg_var record_loss(struct side *s, enum loss loss)
{
	const hg_var label = hg_tape_input(s->tape, s->data.label, "labels", -1.0),
	             target = hg_tape_input(s->tape, s->data.target, "targets", 2.0);
	switch (loss) {
	case XENT:
		return hg_softmax_xent(s->tape, s->logits, label, HG_NONE);
	case XENT_WEIGHTED:
		return hg_softmax_xent_weighted(s->tape, s->logits, label, HG_NONE, HG_NONE, 0.25f);
	case MSE:
		return hg_mse(s->tape, s->logits, target, HG_NONE);
	default:
		return hg_bce_logits(s->tape, s->logits, target, HG_NONE);
	}
}

static void record(struct side *s, hg_graph *graph, hg_mode mode, enum loss loss)
{
	hg_model_input input = HG_MODEL_INPUT_INIT;
	const int64_t rows = hg_graph_rows(graph);
	CHECK_OK(hg_tensor_create(s->ctx, HG_F16, rows, WIDTH, &s->data.x));
	CHECK_OK(hg_tensor_create(s->ctx, HG_I32, rows, 1, &s->data.label));
	CHECK_OK(hg_tensor_create(s->ctx, HG_F32, rows, CLASSES, &s->data.target));
	input.graph = graph;
	input.x = s->data.x;
	input.x_amax = 8.0;
	CHECK_OK(hg_tape_create(s->params, mode, &s->tape));
	s->logits = hg_model_record(s->model, s->tape, &input);
	hg_tape_keep(s->tape, s->logits);
	s->loss = record_loss(s, loss);
	CHECK_MSG(hg_tape_compile(s->tape, s->loss) == HG_OK, "%s", hg_context_error(s->ctx));
}

/* Features, labels and targets of the nodes are the same on both sides. Those of padding are not
 * what the header asks for. */
static void upload(const struct side *s, int64_t nodes, uint64_t seed)
{
	const int64_t rows = hg_tensor_rows(s->data.x);
	float *x = calloc((size_t)rows * WIDTH + 1, sizeof *x),
	      *target = calloc((size_t)rows * CLASSES + 1, sizeof *target);
	int32_t *label = calloc((size_t)rows + 1, sizeof *label);
	CHECK(x && target && label);
	test_reseed(seed);
	for (int64_t i = 0; i < rows; i++) {
		label[i] = (int32_t)test_below(CLASSES);
		for (int64_t k = 0; k < WIDTH; k++)
			x[i * WIDTH + k] = i < nodes ? (float)(test_below(17) - 8) : 8.0f;
		for (int64_t k = 0; k < CLASSES; k++)
			target[i * CLASSES + k] = i < nodes ? (float)test_below(2) : 2.0f;
	}
	CHECK_OK(hg_tensor_upload(s->data.x, x, HG_F32));
	CHECK_OK(hg_tensor_upload(s->data.label, label, HG_I32));
	CHECK_OK(hg_tensor_upload(s->data.target, target, HG_F32));
	free(x);
	free(target);
	free(label);
}

/* ---- what a pass leaves ---- */

/* The loss, the logits of the nodes, the parameters (with running statistics), their gradients. */
enum part { LOSS, LOGITS, MASTER, GRADIENT, PARTS };
struct outcome {
	int64_t count[PARTS];
	float value[PARTS][ROOM];
};

static void take(struct outcome *o, enum part part, const hg_tensor *t, int64_t rows)
{
	const int64_t count = rows * hg_tensor_cols(t), all = hg_tensor_rows(t) * hg_tensor_cols(t);
	CHECK(o->count[part] + all <= ROOM);
	CHECK_OK(hg_tensor_download(t, o->value[part] + o->count[part], HG_F32));
	memset(o->value[part] + o->count[part] + count, 0, (size_t)(all - count) * sizeof(float));
	o->count[part] += count;
}

static void read_side(const struct side *s, int64_t nodes, int with_gradients, struct outcome *o)
{
	memset(o, 0, sizeof *o);
	take(o, LOSS, hg_tape_value(s->tape, s->loss), 1);
	if (nodes)
		take(o, LOGITS, hg_tape_value(s->tape, s->logits), nodes);
	for (int64_t i = 0; i < hg_params_count(s->params); i++) {
		hg_param *p = hg_params_at(s->params, i);
		take(o, MASTER, hg_param_master(p), hg_tensor_rows(hg_param_master(p)));
		if (with_gradients && hg_param_grad(p))
			take(o, GRADIENT, hg_param_grad(p), hg_tensor_rows(hg_param_grad(p)));
	}
}

static double norm_of(const float *x, const float *minus)
{
	double sum = 0.0;
	for (int i = 0; i < ROOM; i++) {
		const double d = (double)x[i] - (minus ? (double)minus[i] : 0.0);
		CHECK(isfinite(d));
		sum += d * d;
	}
	return sqrt(sum);
}

/* A CPU that gathers adds the rows of both in the same order, so the bits are the same. A GPU cuts
 * them into other pieces, and what scatters adds integers: as in batches_padded.c, each of the S
 * tensors of a pass is stored with one rounding u behind sums of at most k terms, so each side is
 * to first order within S (u + k 2^-24) of exact arithmetic, where no op makes a relative error
 * larger, and the two within twice that. */
static void check_same(const struct side *s, hg_aggregation aggregation, const struct outcome *a,
                       const struct outcome *b, const char *what)
{
	const double u = s->params->policy.state == HG_F16 ? 0x1p-11 : 0x1p-24,
	             bound = 2.0 * (double)hg_tape_narrowings(s->tape) *
	                     (u + (double)(EDGES + NODES) * 0x1p-24);
	for (int part = 0; part < PARTS; part++) {
		const double norm = norm_of(b->value[part], NULL),
		             distance = norm_of(a->value[part], b->value[part]);
		CHECK(a->count[part] == b->count[part]);
		if (hg_context_device(s->ctx) == HG_DEVICE_CPU && aggregation == HG_AGGREGATION_GATHER)
			CHECK_MSG(memcmp(a->value[part], b->value[part], sizeof a->value[part]) == 0,
			          "%s: part %d of norm %g differs by %g", what, part, norm, distance);
		else
			CHECK_MSG(distance <= bound * norm, "%s: part %d of norm %g differs by %g", what, part,
			          norm, distance);
	}
}

static hg_graph_stream *stream_open(hg_context *ctx, hg_aggregation aggregation)
{
	hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
	hg_graph_stream *stream = NULL;
	c.nodes = NODES;
	c.edges = EDGES;
	c.max_degree = DEGREE;
	c.self_loops = 1;
	c.aggregation = aggregation;
	CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
	return stream;
}

/* ---- one tape, several lists ---- */

static void run(struct side *s, int64_t nodes, uint64_t seed, hg_mode mode)
{
	upload(s, nodes, seed);
	CHECK_OK(hg_tape_forward(s->tape));
	if (mode == HG_TRAIN)
		CHECK_OK(hg_tape_backward(s->tape));
}

/* The running statistics of both sides follow the same lists. */
static void check_model(hg_aggregation aggregation, const char *name, const char *policy_name,
                        hg_mode mode, enum loss loss)
{
	static struct outcome found, expected;
	hg_context *ctx = test_context();
	hg_graph_stream *stream = stream_open(ctx, aggregation);
	struct side padded, exact;
	char what[96];
	hg_policy policy = hg_policy_fp16();
	CHECK_OK(hg_policy_parse(policy_name, &policy));
	policy.loss_scale.init_scale = 64.0f; /* the gradients of single nodes are large */
	side_open(&padded, ctx, &policy, name);
	side_open(&exact, ctx, &policy, name);
	record(&padded, hg_graph_stream_graph(stream), mode, loss);
	for (int k = 0; k < LISTS; k++) {
		test_reseed(100 + (uint64_t)k);
		struct coo list = list_of(k);
		hg_graph *graph = graph_of(ctx, &list);
		CHECK_OK(hg_graph_stream_refill(stream, list.rows, list.m, list.dst, list.src, NULL));
		run(&padded, list.rows, (uint64_t)k, mode);
		record(&exact, graph, mode, loss);
		run(&exact, list.rows, (uint64_t)k, mode);
		CHECK_OK(hg_graph_stream_check(stream));
		read_side(&padded, list.rows, mode == HG_TRAIN, &found);
		read_side(&exact, list.rows, mode == HG_TRAIN, &expected);
		snprintf(what, sizeof what, "%s, %s, mode %d, loss %d, list %d of %lld nodes", name,
		         policy_name, (int)mode, (int)loss, k, (long long)list.rows);
		check_same(&padded, aggregation, &found, &expected, what);
		tape_close(&exact);
		hg_graph_free(graph);
		coo_free(&list);
	}
	side_close(&padded);
	side_close(&exact);
	hg_graph_stream_free(stream);
	hg_context_free(ctx);
}

static void a_model_with_batch_norm_does_not_see_padding(void)
{
	static const char *const policies[] = {"fp16", "fp32"};
	for (int p = 0; p < 2; p++) {
		check_model(HG_AGGREGATION_GATHER, "gin", policies[p], HG_EVAL, XENT);
		for (int loss = 0; loss < LOSSES; loss++)
			check_model(HG_AGGREGATION_GATHER, "gin", policies[p], HG_TRAIN, (enum loss)loss);
	}
}

static void a_model_that_scatters_does_not_see_padding(void)
{
	static const char *const policies[] = {"fp16", "fp32", "fp16-discretized"};
	for (int p = 0; p < 3; p++) {
		check_model(HG_AGGREGATION_SCATTER, "gin", policies[p], HG_EVAL, XENT);
		check_model(HG_AGGREGATION_SCATTER, "gin", policies[p], HG_TRAIN, XENT);
		check_model(HG_AGGREGATION_SCATTER, "gcn", policies[p], HG_TRAIN, MSE);
	}
}

/* ---- captured steps ---- */

/* A step on each list: of the stream, or of graphs without padding. */
static void train(struct side *s, hg_graph_stream *stream, int padded, int eager)
{
	hg_step_config config = HG_STEP_CONFIG_INIT;
	hg_step *step = NULL;
	config.eager = eager;
	for (int k = 0; k < LISTS; k++) {
		test_reseed(100 + (uint64_t)k);
		struct coo list = list_of(k);
		hg_graph *graph = graph_of(s->ctx, &list);
		CHECK_OK(hg_graph_stream_refill(stream, list.rows, list.m, list.dst, list.src, NULL));
		if (!step) {
			record(s, padded ? hg_graph_stream_graph(stream) : graph, HG_TRAIN, XENT);
			CHECK_OK(hg_step_create(s->tape, s->optim, &config, &step));
		}
		upload(s, list.rows, (uint64_t)k);
		CHECK_OK(hg_step_run(step, 1));
		if (!padded) {
			CHECK_OK(hg_context_synchronize(s->ctx));
			hg_step_free(step);
			step = NULL;
			tape_close(s);
		}
		hg_graph_free(graph);
		coo_free(&list);
	}
	hg_step_free(step);
}

/* Call by call and captured the bits are the same, and on a CPU that gathers also without
 * padding. */
static void captured_steps_keep_their_bits(open_fn open, hg_aggregation aggregation)
{
	static struct outcome found[3];
	const hg_policy policy = hg_policy_fp16();
	int is_exact = 0;
	memset(found, 0, sizeof found);
	for (int k = 0; k < 3; k++) {
		hg_context *ctx = open();
		hg_graph_stream *stream = stream_open(ctx, aggregation);
		struct side s;
		side_open(&s, ctx, &policy, "gin");
		train(&s, stream, k<2, k> 0);
		for (int64_t i = 0; i < hg_params_count(s.params); i++) {
			const hg_tensor *master = hg_param_master(hg_params_at(s.params, i));
			take(&found[k], MASTER, master, hg_tensor_rows(master));
		}
		is_exact = hg_context_device(ctx) == HG_DEVICE_CPU && aggregation == HG_AGGREGATION_GATHER;
		side_close(&s);
		hg_graph_stream_free(stream);
		hg_context_free(ctx);
	}
	CHECK(norm_of(found[0].value[MASTER], NULL) > 0.0);
	CHECK(memcmp(&found[0], &found[1], sizeof found[0]) == 0);
	CHECK(!is_exact || memcmp(&found[0], &found[2], sizeof found[0]) == 0);
}

static void captured_steps_do_not_see_padding(const void *item)
{
	captured_steps_keep_their_bits(*(const open_fn *)item, HG_AGGREGATION_GATHER);
}

static void captured_steps_scatter(const void *item)
{
	captured_steps_keep_their_bits(*(const open_fn *)item, HG_AGGREGATION_SCATTER);
}

/* ---- which matrices have nodes as rows ---- */

/* What is connected with the graph on either side knows its nodes; what is not does not, even with
 * as many rows. */
static void nodes_are_found_through_ops(void)
{
	hg_context *ctx = test_context();
	hg_graph_stream *stream = stream_open(ctx, HG_AGGREGATION_GATHER);
	hg_graph *graph = hg_graph_stream_graph(stream);
	const int64_t rows = hg_graph_rows(graph);
	const hg_policy policy = hg_policy_fp32();
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_tensor *x = NULL, *other = NULL;
	CHECK(rows != hg_graph_edges(graph));
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
	CHECK_OK(hg_tensor_create(ctx, HG_F32, rows, WIDTH, &x));
	CHECK_OK(hg_tensor_create(ctx, HG_F32, rows, WIDTH, &other));
	const hg_var leaf = hg_tape_variable(tape, x, "x"), before = hg_relu(tape, leaf),
	             sum = hg_spmm(tape, graph, before, HG_NONE, HG_NORM_NONE, 1.0f),
	             after = hg_row_sum(tape, sum), apart = hg_tape_variable(tape, other, "other"),
	             alone = hg_relu(tape, apart),
	             of_graph = hg_readout(tape, graph, sum, HG_REDUCE_SUM);
	CHECK_OK(hg_tape_status(tape));
	hg__tape_live(&tape->recording);
	const hg_var with[] = {leaf, before, sum, after}, without[] = {apart, alone, of_graph};
	for (int i = 0; i < 4; i++)
		CHECK(tape->recording.value[hg__tape_index(tape, with[i])].live == hg__graph_live(graph));
	for (int i = 0; i < 3; i++)
		CHECK(!tape->recording.value[hg__tape_index(tape, without[i])].live);
	hg_tensor_free(x);
	hg_tensor_free(other);
	hg_tape_free(tape);
	hg_params_free(params);
	hg_graph_stream_free(stream);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_model_with_batch_norm_does_not_see_padding),
	    TEST(a_model_that_scatters_does_not_see_padding),
	    ON_BOTH(captured_steps_do_not_see_padding),
	    ON_BOTH(captured_steps_scatter),
	    TEST(nodes_are_found_through_ops),
	};
	return RUN_TESTS(argc, argv, cases);
}
