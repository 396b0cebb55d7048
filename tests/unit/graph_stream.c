/* Graphs that are refilled (halfgraph/graph_stream.h): each list of edges gives the graph that
 * hg_graph_from_coo makes of it, one tape and one captured step serve all lists, and a list that
 * breaks a promise is told and its step skipped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/csr.h"
#include "graphs.h"
#include "halfgraph/graph_stream.h"
#include "halfgraph/halfgraph.h"
#include "halfgraph/ops_graph.h"

enum { NODES = 60, EDGES = 400, DEGREE = 40 };

/* How sums run on the streams of a case. */
static hg_aggregation aggregation;
static const hg_aggregation aggregations[] = {HG_AGGREGATION_GATHER, HG_AGGREGATION_SCATTER};

/* Two entries of a table of cases, for a function that casts its item and sets `aggregation`. */
#define BOTH_WAYS(function)                                 \
	{#function, 0, function, &aggregations[0]},             \
	{                                                       \
#function ".scatter", 0, function, &aggregations[1] \
	}
static void set_aggregation(const void *item)
{
	aggregation = *(const hg_aggregation *)item;
}

static hg_graph_stream_config config_of(int self_loops, int weighted)
{
	hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
	c.nodes = NODES;
	c.edges = EDGES;
	c.max_degree = DEGREE;
	c.self_loops = self_loops;
	c.weighted = weighted;
	c.max_weight = 4.0f;
	c.aggregation = aggregation;
	return c;
}

/* A random list in which no node has more than half of the degrees that are promised. */
static struct coo random_list(const hg_graph_stream_config *c)
{
	int in[NODES] = {0}, out[NODES] = {0};
	struct coo list = coo_empty(test_below(c->nodes + 1), c->nodes);
	const int64_t wanted = list.rows ? test_below(c->edges + 1) : 0, most = c->max_degree / 2;
	CHECK(c->nodes <= NODES);
	for (int64_t tries = 0; list.m < wanted && tries < 10 * c->edges; tries++) {
		const int64_t i = test_below(list.rows), j = test_below(list.rows);
		if (in[i] == most || out[j] == most)
			continue;
		in[i]++;
		out[j]++;
		if (c->weighted)
			coo_add_weighted(&list, i, j, (float)(test_below(65) - 32) / 8.0f);
		else
			coo_add(&list, i, j);
	}
	return list;
}

static void refill(hg_graph_stream *stream, const struct coo *list)
{
	CHECK_OK(
	    hg_graph_stream_refill(stream, list->rows, list->m, list->dst, list->src, list->weight));
}

/* The list with self loops and padding, which this test adds by itself, as a graph. */
static hg_graph *expected_graph(hg_context *ctx, const struct coo *list,
                                const hg_graph_stream_config *c, int64_t rows, int64_t edges)
{
	struct coo all = coo_empty(rows, rows);
	int64_t padding = 0;
	for (int64_t e = 0; e < edges; e++) {
		int64_t i = list->rows + padding / c->max_degree, j = i;
		float weight = 0.0f;
		if (e < list->m) {
			i = list->dst[e];
			j = list->src[e];
			weight = c->weighted ? list->weight[e] : 1.0f;
		} else if (c->self_loops && e < list->m + list->rows) {
			i = j = e - list->m;
			weight = 1.0f;
		} else {
			padding++;
		}
		if (c->weighted)
			coo_add_weighted(&all, i, j, weight);
		else
			coo_add(&all, i, j);
	}
	return coo_graph(ctx, all);
}

static void check_same(hg_context *ctx, const void *a, const void *b, size_t bytes,
                       const char *what)
{
	char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
	CHECK(x && y && !a == !b);
	CHECK_OK(ctx->backend->copy_out(ctx, x, a, a ? bytes : 0));
	CHECK_OK(ctx->backend->copy_out(ctx, y, b, b ? bytes : 0));
	CHECK_MSG(!a || memcmp(x, y, bytes) == 0, "%s differs", what);
	free(x);
	free(y);
}

static void check_same_graph(hg_context *ctx, hg_graph *a, hg_graph *b)
{
	struct hg__csr x, y, xt, yt;
	CHECK_OK(hg__graph_csr(a, &x));
	CHECK_OK(hg__graph_csr(b, &y));
	CHECK_OK(hg__graph_csr_t(a, 1, &xt));
	CHECK_OK(hg__graph_csr_t(b, 1, &yt));
	const size_t ptr = ((size_t)x.rows + 1) * sizeof(int64_t), ids = (size_t)x.m * sizeof(int32_t);
	CHECK(x.rows == y.rows && x.m == y.m);
	check_same(ctx, x.rowptr, y.rowptr, ptr, "rowptr");
	check_same(ctx, x.col, y.col, ids, "col");
	check_same(ctx, xt.rowptr, yt.rowptr, ptr, "rowptr of the transpose");
	check_same(ctx, xt.col, yt.col, ids, "col of the transpose");
	check_same(ctx, xt.edge, yt.edge, ids, "edge of the transpose");
	for (int half = 0; half < 2; half++) {
		const void *w = NULL, *v = NULL;
		CHECK_OK(hg__graph_weight(a, half ? HG_F16 : HG_F32, &w));
		CHECK_OK(hg__graph_weight(b, half ? HG_F16 : HG_F32, &v));
		check_same(ctx, w, v, (size_t)x.m * (half ? 2 : 4), "weight");
	}
	for (int norm = 0; norm < HG_NORMS; norm++) {
		const float *r = NULL, *s = NULL, *t = NULL, *u = NULL;
		CHECK_OK(hg__graph_norm(a, (hg_norm)norm, &r, &s));
		CHECK_OK(hg__graph_norm(b, (hg_norm)norm, &t, &u));
		check_same(ctx, r, t, (size_t)x.rows * sizeof *r, "factors of rows");
		check_same(ctx, s, u, (size_t)x.rows * sizeof *s, "factors of columns");
	}
}

/* What is promised is never less than what the lists have. */
static void check_facts(hg_graph *a, hg_graph *b)
{
	hg_graph_facts x = HG_GRAPH_FACTS_INIT, y = HG_GRAPH_FACTS_INIT;
	CHECK_OK(hg_graph_facts_get(a, &x));
	CHECK_OK(hg_graph_facts_get(b, &y));
	CHECK(x.max_row_degree >= y.max_row_degree && x.max_col_degree >= y.max_col_degree);
	CHECK(x.max_row_sum >= y.max_row_sum && x.max_col_sum >= y.max_col_sum);
	for (int norm = 0; norm < HG_NORMS; norm++)
		CHECK_MSG(x.norm_row_sum[norm] >= y.norm_row_sum[norm] &&
		              x.norm_col_sum[norm] >= y.norm_col_sum[norm],
		          "norm %d: rows %.9g, columns %.9g promised, %.9g and %.9g found", norm,
		          x.norm_row_sum[norm], x.norm_col_sum[norm], y.norm_row_sum[norm],
		          y.norm_col_sum[norm]);
}

/* Rooms for rows of different lengths. A GPU sorts short rows, rows of hundreds of edges and longer
 * ones in different ways, and the whole list where yet longer ones are promised. */
static const struct room {
	int64_t nodes, edges, max_degree;
} rooms[] = {
    {NODES, EDGES, DEGREE}, {20, 5000, 1000}, {6, 5000, 2000}, {3, 5000, 5000}, {1, 40, 40}};
enum { ROOMS = sizeof rooms / sizeof *rooms };

static void every_list_gives_its_graph(void)
{
	aggregation = HG_AGGREGATION_GATHER;
	test_reseed(1);
	for (int kind = 0; kind < 4 * ROOMS; kind++) {
		hg_context *ctx = test_context();
		hg_graph_stream_config c = config_of(kind % 2, kind / 2 % 2);
		c.nodes = rooms[kind / 4].nodes;
		c.edges = rooms[kind / 4].edges;
		c.max_degree = rooms[kind / 4].max_degree;
		hg_graph_stream *stream = NULL;
		CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
		hg_graph *graph = hg_graph_stream_graph(stream);
		struct coo list = coo_empty(0, NODES);
		for (int k = 0; k < 8; k++) { /* the first is the empty graph in place */
			hg_graph *expected =
			    expected_graph(ctx, &list, &c, hg_graph_rows(graph), hg_graph_edges(graph));
			CHECK_OK(hg_graph_stream_check(stream));
			check_same_graph(ctx, graph, expected);
			check_facts(graph, expected);
			hg_graph_free(expected);
			coo_free(&list);
			list = random_list(&c);
			refill(stream, &list);
		}
		coo_free(&list);
		hg_graph_stream_free(stream);
		hg_context_free(ctx);
	}
}

/* ---- training ---- */

enum { WIDTH = 8, CLASSES = 3 };

struct rig {
	hg_context *ctx;
	hg_graph_stream *stream;
	hg_graph *graph;
	hg_tensor *x, *label;
	hg_params *params;
	hg_model *model;
	hg_tape *tape;
	hg_optim *optim;
	hg_step *step;
	hg_var loss;
};

/* Features of nodes, and zeros for the rows of padding, which have no label. */
static void upload_nodes(const struct rig *r, int64_t nodes)
{
	const int64_t rows = hg_graph_rows(r->graph);
	float *x = calloc((size_t)rows * WIDTH, sizeof *x);
	int32_t *label = malloc((size_t)rows * sizeof *label);
	CHECK(x && label);
	for (int64_t i = 0; i < rows; i++) {
		label[i] = i < nodes ? (int32_t)test_below(CLASSES) : -1;
		for (int64_t k = 0; i < nodes && k < WIDTH; k++)
			x[i * WIDTH + k] = (float)(test_below(17) - 8);
	}
	CHECK_OK(hg_tensor_upload(r->x, x, HG_F32));
	CHECK_OK(hg_tensor_upload(r->label, label, HG_I32));
	free(x);
	free(label);
}

static void record(struct rig *r, hg_graph *graph)
{
	hg_model_config model = hg_model_config_default("gcn");
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	const hg_policy policy = hg_policy_fp16();
	model.in_features = WIDTH;
	model.out_features = CLASSES;
	model.hidden = 16;
	input.graph = graph;
	input.x = r->x;
	input.x_amax = 8.0;
	CHECK_OK(hg_params_create(r->ctx, &policy, &r->params));
	CHECK_OK(hg_model_create(r->params, &model, &r->model));
	CHECK_OK(hg_tape_create(r->params, HG_TRAIN, &r->tape));
	r->loss = hg_softmax_xent(r->tape, hg_model_record(r->model, r->tape, &input),
	                          hg_tape_input(r->tape, r->label, "labels", -1.0), HG_NONE);
	CHECK_MSG(hg_tape_compile(r->tape, r->loss) == HG_OK, "%s", hg_context_error(r->ctx));
	CHECK_OK(hg_optim_create(r->params, &adam, &r->optim));
}

static struct rig rig_open(int self_loops)
{
	struct rig r = {.ctx = test_context()};
	const hg_graph_stream_config c = config_of(self_loops, 0);
	CHECK_OK(hg_graph_stream_create(r.ctx, &c, &r.stream));
	r.graph = hg_graph_stream_graph(r.stream);
	CHECK_OK(hg_tensor_create(r.ctx, HG_F16, hg_graph_rows(r.graph), WIDTH, &r.x));
	CHECK_OK(hg_tensor_create(r.ctx, HG_I32, hg_graph_rows(r.graph), 1, &r.label));
	return r;
}

static void tape_close(struct rig *r)
{
	hg_step_free(r->step);
	hg_optim_free(r->optim);
	hg_tape_free(r->tape);
	hg_model_free(r->model);
	hg_params_free(r->params);
}

static void rig_close(struct rig *r)
{
	tape_close(r);
	hg_tensor_free(r->x);
	hg_tensor_free(r->label);
	hg_graph_stream_free(r->stream);
	hg_context_free(r->ctx);
}

static double loss_of(const struct rig *r)
{
	double loss = NAN;
	CHECK_OK(hg_tape_forward(r->tape));
	CHECK_OK(hg_tape_scalar(r->tape, r->loss, &loss));
	return loss;
}

/* The loss of a tape on the graph that is refilled, and that of a new tape on the graph that is
 * made of the list, have the same bits on a CPU. On a GPU another kernel may add the terms of a row
 * in another order; there the sums of the next test tell. */
static void one_tape_serves_all_lists(void)
{
	aggregation = HG_AGGREGATION_GATHER;
	test_reseed(2);
	struct rig r = rig_open(1);
	const hg_graph_stream_config c = config_of(1, 0);
	record(&r, r.graph);
	for (int k = 0; k < 5; k++) {
		struct coo list = random_list(&c);
		struct rig once = r;
		refill(r.stream, &list);
		upload_nodes(&r, list.rows);
		const double loss = loss_of(&r);
		hg_graph *expected =
		    expected_graph(r.ctx, &list, &c, hg_graph_rows(r.graph), hg_graph_edges(r.graph));
		once.step = NULL;
		record(&once, expected);
		const double other = loss_of(&once);
		CHECK(isfinite(loss) && (list.rows == 0 || loss > 0.0));
		CHECK(hg_context_device(r.ctx) != HG_DEVICE_CPU || memcmp(&loss, &other, sizeof loss) == 0);
		tape_close(&once);
		hg_graph_free(expected);
		coo_free(&list);
	}
	rig_close(&r);
}

/* ---- sums that are exact ---- */

/* A list in which every row has, with its self loop, 1, 2, 4, 8 or 16 edges. */
static struct coo list_of_powers(void)
{
	int out[NODES] = {0};
	struct coo list = coo_empty(1 + test_below(NODES), NODES);
	for (int64_t i = 0; i < list.rows; i++) {
		const int64_t listed = ((int64_t)1 << test_below(5)) - 1;
		for (int64_t k = 0; k < listed && list.m + listed - k <= EDGES; k++) {
			int64_t j = test_below(list.rows);
			while (out[j] == DEGREE - 1) /* the self loop is one more */
				j = (j + 1) % list.rows;
			out[j]++;
			coo_add(&list, i, j);
		}
	}
	return list;
}

struct sums {
	hg_params *params;
	hg_tape *tape;
	hg_var y;
};

/* y: the mean over neighbours of the sum over neighbours. */
static struct sums sums_open(const struct rig *r, hg_graph *graph)
{
	const hg_policy policy = hg_policy_fp16();
	struct sums s = {.params = NULL, .tape = NULL};
	CHECK_OK(hg_params_create(r->ctx, &policy, &s.params));
	CHECK_OK(hg_tape_create(s.params, HG_EVAL, &s.tape));
	const hg_var x = hg_tape_input(s.tape, r->x, "x", 8.0),
	             sum = hg_spmm(s.tape, graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
	s.y = hg_spmm(s.tape, graph, sum, HG_NONE, HG_NORM_RIGHT, 1.0f);
	CHECK_MSG(hg_tape_compile(s.tape, s.y) == HG_OK, "%s", hg_context_error(r->ctx));
	return s;
}

static void sums_get(const struct sums *s, float *y)
{
	CHECK_OK(hg_tape_forward(s->tape));
	CHECK_OK(hg_tensor_download(hg_tape_value(s->tape, s->y), y, HG_F32));
}

static void sums_close(struct sums *s)
{
	hg_tape_free(s->tape);
	hg_params_free(s->params);
}

/* In any order of a row's terms the bits are the same. Features are whole numbers up to 8, so sums
 * of at most 16 of them are whole numbers up to 128, sums of 16 such numbers whole numbers up to
 * 2048, and means, which are divided by a power of two, have at most the 11 bits of a half. The
 * rows of padding, whose degrees are others, add up zeros. */
static void one_tape_sums_all_lists(const void *item)
{
	set_aggregation(item);
	test_reseed(5);
	struct rig r = rig_open(1);
	const hg_graph_stream_config c = config_of(1, 0);
	const int64_t rows = hg_graph_rows(r.graph), edges = hg_graph_edges(r.graph);
	const size_t bytes = (size_t)rows * WIDTH * sizeof(float);
	float *y = malloc(bytes), *expected = malloc(bytes);
	struct sums sums = sums_open(&r, r.graph);
	CHECK(y && expected);
	for (int k = 0; k < 5; k++) {
		struct coo list = list_of_powers();
		hg_graph *graph = expected_graph(r.ctx, &list, &c, rows, edges);
		struct sums once = sums_open(&r, graph);
		refill(r.stream, &list);
		upload_nodes(&r, list.rows);
		sums_get(&sums, y);
		sums_get(&once, expected);
		CHECK_OK(hg_graph_stream_check(r.stream));
		/* zeros may differ in sign */
		for (int64_t i = 0; i < rows * WIDTH; i++)
			CHECK_WITHIN((double)y[i], (double)expected[i], 0.0);
		sums_close(&once);
		hg_graph_free(graph);
		coo_free(&list);
	}
	sums_close(&sums);
	free(expected);
	free(y);
	rig_close(&r);
}

/* ---- steps ---- */

static void weights_of(const struct rig *r, float *weight, int64_t room)
{
	int64_t at = 0;
	for (int64_t i = 0; i < hg_params_count(r->params); i++) {
		const hg_tensor *master = hg_param_master(hg_params_at(r->params, i));
		const int64_t count = hg_tensor_rows(master) * hg_tensor_cols(master);
		CHECK(at + count <= room);
		CHECK_OK(hg_tensor_download(master, weight + at, HG_F32));
		at += count;
	}
}

/* Steps over lists that change, captured where a device captures, have the bits of steps that are
 * queued call by call. */
static void a_captured_step_serves_all_lists(const void *item)
{
	set_aggregation(item);
	enum { ROOM = 4096, STEPS = 8 };
	static float weight[2][ROOM];
	memset(weight, 0, sizeof weight);
	for (int eager = 0; eager < 2; eager++) {
		struct rig r = rig_open(1);
		hg_step_config config = HG_STEP_CONFIG_INIT;
		hg_step_info info = HG_STEP_INFO_INIT;
		record(&r, r.graph);
		config.eager = eager;
		CHECK_OK(hg_step_create(r.tape, r.optim, &config, &r.step));
		test_reseed(3);
		for (int k = 0; k < STEPS; k++) {
			const hg_graph_stream_config c = config_of(1, 0);
			struct coo list = random_list(&c);
			refill(r.stream, &list);
			upload_nodes(&r, list.rows);
			CHECK_OK(hg_step_run(r.step, 1));
			coo_free(&list);
		}
		CHECK_OK(hg_optim_info(r.optim, &info));
		CHECK_EQ_I(info.steps, STEPS);
		CHECK_EQ_I(info.skipped, 0);
		weights_of(&r, weight[eager], ROOM);
		rig_close(&r);
	}
	CHECK(memcmp(weight[0], weight[1], sizeof weight[0]) == 0);
}

/* ---- promises ---- */

static const struct broken {
	const char *name;
	int weighted, self_loops;
	int64_t nodes, m;
	int32_t dst[4], src[4];
	float weight[4];
	int hub; /* this many edges into node 0; below 0: out of it */
	const char *text;
} broken[] = {
    {"destination",
     0,
     0,
     3,
     3,
     {0, 3, 1},
     {0, 0, 9},
     {0},
     0,
     "the destination of edge 1 is node 3, expected 0 to 2"},
    {"source",
     0,
     0,
     3,
     2,
     {0, 2},
     {0, -1},
     {0},
     0,
     "the source of edge 1 is node -1, expected 0 to 2"},
    {"weight",
     1,
     0,
     3,
     2,
     {0, 2},
     {0, 1},
     {4.0f, -4.5f},
     0,
     "the weight of edge 1 is -4.5, but numbers from -4 to 4"},
    {"NaN", 1, 0, 3, 1, {0}, {0}, {NAN}, 0, "the weight of edge 0 is "},
    {"edges in", 0, 0, 50, 0, {0}, {0}, {0}, DEGREE + 1, "41 edges lead to node 0, but at most 40"},
    {"edges out",
     0,
     0,
     50,
     0,
     {0},
     {0},
     {0},
     -DEGREE - 2,
     "42 edges lead from node 0, but at most 40"},
    {"self loop",
     0,
     1,
     50,
     0,
     {0},
     {0},
     {0},
     DEGREE,
     "41 edges lead to node 0 with its self loop, but at most 40"},
};

static struct coo list_of(const struct broken *b)
{
	struct coo list = coo_empty(b->nodes, NODES);
	for (int64_t e = 0; e < b->m; e++) {
		if (b->weighted)
			coo_add_weighted(&list, 0, 0, b->weight[e]);
		else
			coo_add(&list, 0, 0);
		list.dst[e] = b->dst[e];
		list.src[e] = b->src[e];
	}
	for (int k = 0; k < abs(b->hub); k++)
		coo_add(&list, b->hub > 0 ? 0 : 1 + k, b->hub > 0 ? 1 + k : 0);
	return list;
}

static void a_broken_promise_is_told(const void *item)
{
	set_aggregation(item);
	for (size_t k = 0; k < sizeof broken / sizeof broken[0]; k++) {
		hg_context *ctx = test_context();
		const hg_graph_stream_config c = config_of(broken[k].self_loops, broken[k].weighted);
		hg_graph_stream *stream = NULL;
		struct coo list = list_of(&broken[k]);
		struct coo good = random_list(&c);
		CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
		refill(stream, &list);
		CHECK_STATUS(hg_graph_stream_check(stream), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(ctx), broken[k].text);
		refill(stream, &good);
		CHECK_OK(hg_graph_stream_check(stream));
		coo_free(&good);
		coo_free(&list);
		hg_graph_stream_free(stream);
		hg_context_free(ctx);
	}
}

/* Its step changes no weight; the next one, on a good list, does. */
static void a_step_on_a_broken_promise_is_skipped(const void *item)
{
	set_aggregation(item);
	enum { ROOM = 4096 };
	static float before[ROOM], after[ROOM];
	for (int eager = 0; eager < 2; eager++)
		for (size_t k = 0; k < sizeof broken / sizeof broken[0]; k++) {
			if (broken[k].weighted)
				continue;
			test_reseed(4);
			const hg_graph_stream_config c = config_of(broken[k].self_loops, 0);
			struct rig r = rig_open(c.self_loops);
			hg_step_config config = HG_STEP_CONFIG_INIT;
			struct coo list = list_of(&broken[k]), good = random_list(&c);
			record(&r, r.graph);
			config.eager = eager;
			CHECK_OK(hg_step_create(r.tape, r.optim, &config, &r.step));
			for (int step = 0; step < 4; step++) { /* the third is captured */
				hg_step_info info = HG_STEP_INFO_INIT;
				const int is_broken = step % 2;
				refill(r.stream, is_broken ? &list : &good);
				upload_nodes(&r, is_broken ? list.rows : good.rows);
				weights_of(&r, before, ROOM);
				CHECK_OK(hg_step_run(r.step, 1));
				CHECK_OK(hg_optim_info(r.optim, &info));
				weights_of(&r, after, ROOM);
				CHECK_MSG(info.applied == !is_broken, "%s, step %d: applied %d", broken[k].name,
				          step, info.applied);
				CHECK((memcmp(before, after, sizeof before) == 0) == is_broken);
			}
			coo_free(&good);
			coo_free(&list);
			rig_close(&r);
		}
}

/* A tape in fp32, without guards, that works on the graph of the rig and then on another. */
static void record_on_both(struct rig *r, hg_graph *other)
{
	const hg_policy policy = hg_policy_fp32();
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	hg_step_config config = HG_STEP_CONFIG_INIT;
	hg_param *w = NULL;
	hg_tensor_free(r->x);
	CHECK_OK(hg_tensor_create(r->ctx, HG_F32, hg_graph_rows(r->graph), WIDTH, &r->x));
	CHECK_OK(hg_params_create(r->ctx, &policy, &r->params));
	CHECK_OK(hg_params_add(r->params, "w", WIDTH, CLASSES, HG_INIT_GLOROT_UNIFORM, 0, &w));
	CHECK_OK(hg_tape_create(r->params, HG_TRAIN, &r->tape));
	hg_var y = hg_linear(r->tape, hg_tape_input(r->tape, r->x, "x", 8.0), hg_tape_param(r->tape, w),
	                     HG_NONE);
	y = hg_spmm(r->tape, r->graph, y, HG_NONE, HG_NORM_BOTH, 1.0f);
	y = hg_spmm(r->tape, other, y, HG_NONE, HG_NORM_BOTH, 1.0f);
	r->loss =
	    hg_softmax_xent(r->tape, y, hg_tape_input(r->tape, r->label, "labels", -1.0), HG_NONE);
	CHECK_MSG(hg_tape_compile(r->tape, r->loss) == HG_OK, "%s", hg_context_error(r->ctx));
	CHECK_OK(hg_optim_create(r->params, &adam, &r->optim));
	CHECK_OK(hg_step_create(r->tape, r->optim, &config, &r->step));
}

/* A step is skipped if any graph of its tape breaks a promise. */
static void the_promise_of_every_graph_counts(const void *item)
{
	set_aggregation(item);
	test_reseed(6);
	struct rig r = rig_open(1);
	const hg_graph_stream_config c = config_of(1, 0);
	hg_graph_stream *other = NULL;
	struct coo good = random_list(&c), bad = list_of(&broken[0]);
	CHECK_OK(hg_graph_stream_create(r.ctx, &c, &other));
	record_on_both(&r, hg_graph_stream_graph(other));
	for (int step = 0; step < 8; step++) {
		hg_step_info info = HG_STEP_INFO_INIT;
		const int breaks_first = step & 1, breaks_second = step >> 1 & 1;
		refill(r.stream, breaks_first ? &bad : &good);
		refill(other, breaks_second ? &bad : &good);
		upload_nodes(&r, bad.rows);
		CHECK_OK(hg_step_run(r.step, 1));
		CHECK_OK(hg_optim_info(r.optim, &info));
		CHECK_MSG(info.applied == !(breaks_first || breaks_second), "step %d: applied %d", step,
		          info.applied);
	}
	coo_free(&bad);
	coo_free(&good);
	rig_close(&r);
	hg_graph_stream_free(other);
}

/* Numbers that a kernel writes may be outside the room, too. */
static void numbers_outside_the_room_are_told(const void *item)
{
	set_aggregation(item);
	static const int64_t live[][2] = {{NODES + 1, 0}, {-1, 0}, {1, EDGES + 1}, {1, -1}};
	for (size_t k = 0; k < sizeof live / sizeof live[0]; k++) {
		hg_context *ctx = test_context();
		const hg_graph_stream_config c = config_of(0, 0);
		hg_graph_stream *stream = NULL;
		hg_graph_stream_list list = HG_GRAPH_STREAM_LIST_INIT;
		const int32_t zeros[EDGES] = {0};
		CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
		CHECK_OK(hg_graph_stream_list_get(stream, &list));
		CHECK(list.live && list.dst && list.src && !list.weight);
		CHECK_OK(ctx->backend->copy_in(ctx, list.dst, zeros, sizeof zeros));
		CHECK_OK(ctx->backend->copy_in(ctx, list.src, zeros, sizeof zeros));
		CHECK_OK(ctx->backend->copy_in(ctx, list.live, live[k], sizeof live[k]));
		CHECK_OK(hg_graph_stream_convert(stream));
		CHECK_STATUS(hg_graph_stream_check(stream), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(ctx), "expected at most 60 and 400");
		hg_graph_stream_free(stream);
		hg_context_free(ctx);
	}
}

/* ---- mistakes ---- */

static void mistakes_are_refused(void)
{
	static const struct {
		int64_t nodes, edges, max_degree;
		float max_weight;
		int self_loops;
		hg_status status;
	} row[] = {{0, 1, 1, 1.0f, 0, HG_ERR_ARG},
	           {1, -1, 1, 1.0f, 0, HG_ERR_ARG},
	           {1, 1, 0, 1.0f, 0, HG_ERR_ARG},
	           {1, 1, 1, 0.0f, 0, HG_ERR_ARG},
	           {1, 1, 1, NAN, 0, HG_ERR_ARG},
	           {1, 1, 1, 65505.0f, 0, HG_ERR_ARG},
	           {1, 1, 1, 0.5f, 1, HG_ERR_ARG},
	           {INT64_MAX, 1, 1, 1.0f, 0, HG_ERR_UNSUPPORTED},
	           {INT32_MAX, INT32_MAX, 1, 1.0f, 1, HG_ERR_UNSUPPORTED}};
	hg_context *ctx = test_context();
	hg_graph_stream *stream = NULL;
	for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
		hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
		c.nodes = row[k].nodes;
		c.edges = row[k].edges;
		c.max_degree = row[k].max_degree;
		c.max_weight = row[k].max_weight;
		c.self_loops = row[k].self_loops;
		CHECK_STATUS(hg_graph_stream_create(ctx, &c, &stream), row[k].status);
		CHECK(!stream);
	}
	static const struct {
		int aggregation;
		int64_t uses, width;
	} ways[] = {{-1, 1, 1},
	            {HG_AGGREGATION_AUTO + 1, 1, 1},
	            {HG_AGGREGATION_AUTO, 0, 1},
	            {HG_AGGREGATION_AUTO, 1, 0}};
	for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
		hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
		c.aggregation = (hg_aggregation)ways[k].aggregation;
		c.uses = ways[k].uses;
		c.width = ways[k].width;
		CHECK_STATUS(hg_graph_stream_create(ctx, &c, &stream), HG_ERR_ARG);
	}
	const hg_graph_stream_config c = config_of(0, 0);
	const int32_t id[1] = {0};
	const float one[1] = {1.0f};
	CHECK_STATUS(hg_graph_stream_create(ctx, NULL, &stream), HG_ERR_ARG);
	CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
	CHECK_STATUS(hg_graph_stream_refill(stream, NODES + 1, 0, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_stream_refill(stream, 1, EDGES + 1, id, id, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_stream_refill(stream, 1, 1, id, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_stream_refill(stream, 1, 1, id, id, one), HG_ERR_ARG);
	CHECK_OK(hg_graph_stream_check(stream));
	CHECK_STATUS(hg_graph_stream_check(NULL), HG_ERR_ARG);
	CHECK(hg_graph_stream_graph(NULL) == NULL);
	hg_graph_stream_free(stream);
	hg_graph_stream_free(NULL);
	hg_context_free(ctx);
}

/* Room for one node and for no edges. */
static void the_smallest_room(const void *item)
{
	set_aggregation(item);
	hg_context *ctx = test_context();
	hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
	hg_graph_stream *stream = NULL;
	c.aggregation = aggregation;
	for (int self_loops = 0; self_loops < 2; self_loops++) {
		c.self_loops = self_loops;
		CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
		CHECK_EQ_I(hg_graph_rows(hg_graph_stream_graph(stream)), 2);
		CHECK_EQ_I(hg_graph_edges(hg_graph_stream_graph(stream)), self_loops);
		for (int64_t nodes = 0; nodes < 2; nodes++) {
			CHECK_OK(hg_graph_stream_refill(stream, nodes, 0, NULL, NULL, NULL));
			CHECK_OK(hg_graph_stream_check(stream));
		}
		hg_graph_stream_free(stream);
	}
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_list_gives_its_graph),
	    TEST(one_tape_serves_all_lists),
	    BOTH_WAYS(one_tape_sums_all_lists),
	    BOTH_WAYS(a_captured_step_serves_all_lists),
	    BOTH_WAYS(a_broken_promise_is_told),
	    BOTH_WAYS(a_step_on_a_broken_promise_is_skipped),
	    BOTH_WAYS(the_promise_of_every_graph_counts),
	    BOTH_WAYS(numbers_outside_the_room_are_told),
	    TEST(mistakes_are_refused),
	    BOTH_WAYS(the_smallest_room),
	};
	return RUN_TESTS(argc, argv, cases);
}
