/* Regions (autograd/region.h): layers of graph convolution on batches of small graphs run as one
 * kernel, and give what they give op by op. */
#include "halfgraph/model.h"
#include "unit/region_rig.h"

/* ---- a run of a model, with regions and op by op ---- */

struct row {
	const char *what;
	int layers, hidden, most, symmetric, readout, every; /* every: all layers are read out */
	float dropout;
	hg_norm norm;        /* gcn's */
	int regions, length; /* how many, and the layers of the last one */
	const char *model;   /* NULL: gcn */
};

static hg_model_config config_of(const struct row *row, int64_t features)
{
	hg_model_config config = hg_model_config_default(row->model ? row->model : "gcn");
	config.in_features = features;
	config.out_features = CLASSES;
	config.hidden = row->hidden;
	config.layers = row->layers;
	config.dropout = row->dropout;
	config.norm = row->norm;
	config.readout = row->readout;
	if (row->readout >= 0 && !row->every)
		config.readout_layers = HG_READOUT_LAST;
	return config;
}

static hg_tape *record(struct bench *b, hg_model *model, const hg_tensor *x,
                       const hg_tensor *labels)
{
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_tape *tape = NULL;
	input.graph = b->graph;
	input.x = x;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &tape));
	compile_loss(b, tape, hg_model_record(model, tape, &input), labels);
	return tape;
}

static void compare(const struct row *row)
{
	static struct run run[2], again;
	struct bench b;
	struct batch batch = {{0}, 0};
	hg_model *model = NULL;
	const int64_t features = 11;
	bench_open(&b, region_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = random_batch(b.ctx, row->most, row->symmetric, &batch);
	const hg_tensor *x = random_tensor(&b, HG_F16, batch.nodes, features, 1.0),
	                *labels = labels_of(&b, row->readout >= 0 ? GRAPHS : batch.nodes);
	const hg_model_config config = config_of(row, features);
	CHECK_OK(hg_model_create(b.params, &config, &model));
	for (int separate = 0; separate < 2; separate++) {
		b.ctx->separate_ops = separate;
		hg_tape *tape = record(&b, model, x, labels);
		CHECK_EQ_I(tape->plan.regions, separate ? 0 : row->regions);
		if (!separate && row->regions)
			CHECK_EQ_I(tape->plan.region[0].layers, row->length);
		if (!separate && row->regions == 1)
			CHECK_EQ_I(tape->plan.region[0].readout >= 0, row->readout >= 0);
		read_run(&b, tape, &run[separate]);
		read_run(&b, tape, &again);
		CHECK_MSG(
		    memcmp(run[separate].grad, again.grad, (size_t)again.count * sizeof *again.grad) == 0,
		    "%s: two runs differ", row->what);
		hg_tape_free(tape);
	}
	const double apart = distance(&run[0], &run[1]),
	             losses = fabs(run[0].loss - run[1].loss) / fabs(run[1].loss);
	test_note("%s: loss %.6g, apart %.2g; gradients apart %.2g", row->what, run[0].loss, losses,
	          apart);
	CHECK_MSG(apart <= tolerance(row->layers) && losses <= tolerance(row->layers),
	          "%s: loss %.9g, op by op %.9g; gradients %.3g apart", row->what, run[0].loss,
	          run[1].loss, apart);
	hg_model_free(model);
	bench_close(&b);
}

static void regions_give_what_ops_give(void)
{
	static const struct row rows[] = {
	    {"two layers", 2, 32, 20, 1, -1, 0, 0.0f, HG_NORM_BOTH, 1, 2, NULL},
	    {"five layers and a mean", 5, 32, 20, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 1, 5, NULL},
	    {"five layers and a sum", 5, 24, 20, 1, HG_REDUCE_SUM, 0, 0.0f, HG_NORM_BOTH, 1, 5, NULL},
	    {"dropout", 4, 32, 20, 1, HG_REDUCE_MEAN, 0, 0.5f, HG_NORM_BOTH, 1, 4, NULL},
	    {"little dropout, directed", 3, 32, 20, 0, HG_REDUCE_MEAN, 0, 0.1f, HG_NORM_BOTH, 1, 3,
	     NULL},
	    {"means of neighbours, directed", 3, 17, 30, 0, -1, 0, 0.0f, HG_NORM_RIGHT, 1, 3, NULL},
	    {"left factors", 3, 7, 30, 0, -1, 0, 0.5f, HG_NORM_LEFT, 1, 3, NULL},
	    {"factors of in-degrees", 3, 1, 30, 0, -1, 0, 0.0f, HG_NORM_IN, 1, 3, NULL},
	    {"sums", 2, 32, 10, 1, -1, 0, 0.0f, HG_NORM_NONE, 1, 2, NULL},
	    {"all layers read out", 5, 32, 20, 1, HG_REDUCE_MEAN, 1, 0.0f, HG_NORM_BOTH, 1, 5, NULL},
	    {"sums of all layers, directed", 4, 64, 20, 0, HG_REDUCE_SUM, 1, 0.0f, HG_NORM_BOTH, 1, 4,
	     NULL},
	    {"graphs that fill a bin", 4, 32, 48, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 1, 4, NULL},
	    {"a graph too large for a bin", 3, 32, 385, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 0, 0,
	     NULL},
	    {"one large graph", 3, 32, 49, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 1, 3, NULL},
	    {"large graphs, dropout", 4, 32, 100, 1, HG_REDUCE_SUM, 0, 0.5f, HG_NORM_BOTH, 1, 4, NULL},
	    {"the largest graphs, directed", 3, 17, 384, 0, -1, 0, 0.1f, HG_NORM_RIGHT, 1, 3, NULL},
	    {"large graphs, all layers read out", 4, 32, 200, 1, HG_REDUCE_MEAN, 1, 0.0f, HG_NORM_BOTH,
	     1, 4, NULL},
	    {"sage, large graphs", 2, 32, 150, 0, HG_REDUCE_MEAN, 0, 0.1f, HG_NORM_RIGHT, 1, 2, "sage"},
	    {"64 columns and a mean", 5, 64, 20, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 1, 5, NULL},
	    {"33 columns, directed", 3, 33, 30, 0, -1, 0, 0.5f, HG_NORM_RIGHT, 1, 3, NULL},
	    {"48 nodes of 64 columns", 4, 64, 48, 1, HG_REDUCE_SUM, 0, 0.1f, HG_NORM_BOTH, 1, 4, NULL},
	    {"wider than a region", 3, 65, 20, 1, -1, 0, 0.0f, HG_NORM_BOTH, 0, 0, NULL},
	    {"graphs of one node", 3, 32, 1, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 1, 3, NULL},
	    {"more layers than a region has", 34, 8, 5, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_BOTH, 2, 32,
	     NULL},
	    {"sage", 4, 32, 20, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_RIGHT, 1, 4, "sage"},
	    {"sage, nodes, dropout", 3, 24, 30, 0, -1, 0, 0.5f, HG_NORM_RIGHT, 1, 3, "sage"},
	    {"sage, all layers read out, 48 nodes of 64 columns", 3, 64, 48, 0, HG_REDUCE_MEAN, 1, 0.0f,
	     HG_NORM_RIGHT, 1, 3, "sage"},
	    {"sage, more layers than a region has matrices", 18, 8, 5, 1, HG_REDUCE_MEAN, 0, 0.0f,
	     HG_NORM_RIGHT, 2, 16, "sage"},
	    {"sage, a graph too large for a bin", 3, 32, 385, 1, HG_REDUCE_MEAN, 0, 0.0f, HG_NORM_RIGHT,
	     0, 0, "sage"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		compare(&rows[i]);
}

/* ---- the gradient of X ---- */

/* X of the region is the result of a product with parameters of its own. With two readers outside,
 * and with a W_self in each layer, the gradient of X is a sum. */
static hg_tape *record_embedded(struct bench *b, const hg_tensor *x, const hg_tensor *labels,
                                int readers, int selves)
{
	hg_tape *tape = NULL;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &tape));
	const hg_var features = hg_tape_input(tape, x, "x", -1.0),
	             first = hg_linear(tape, features, hg_tape_param(tape, param(b, "w0", 70, 24)),
	                               hg_tape_param(tape, param(b, "b0", 1, 24)));
	hg_var h = first;
	for (int l = 1; l <= 3; l++) {
		char w[16], bias[16], self[16];
		snprintf(w, sizeof w, "w%d", l);
		snprintf(bias, sizeof bias, "b%d", l);
		snprintf(self, sizeof self, "u%d", l);
		const hg_var own =
		    selves ? hg_linear(tape, h, hg_tape_param(tape, param(b, self, 24, 24)), HG_NONE)
		           : HG_NONE;
		h = hg_linear(tape, h, hg_tape_param(tape, param(b, w, 24, 24)), HG_NONE);
		h = hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_RIGHT, 1.0f);
		if (selves)
			h = hg_add(tape, own, h);
		h = hg_relu(tape, hg_bias_add(tape, h, hg_tape_param(tape, param(b, bias, 1, 24))));
	}
	if (readers == 2)
		h = hg_add(tape, h, first);
	compile_loss(b, tape, h, labels);
	return tape;
}

static void gradient_of_x_passes_on(void)
{
	static struct run run[2];
	for (int way = 0; way < 4; way++) {
		const int readers = 1 + way % 2, selves = way / 2;
		struct bench b;
		struct batch batch = {{0}, 0};
		bench_open(&b, region_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = random_batch(b.ctx, 20, 0, &batch);
		const hg_tensor *x = random_tensor(&b, HG_F16, batch.nodes, 70, 1.0),
		                *labels = labels_of(&b, batch.nodes);
		for (int separate = 0; separate < 2; separate++) {
			b.ctx->separate_ops = separate;
			hg_tape *tape = record_embedded(&b, x, labels, readers, selves);
			CHECK_EQ_I(tape->plan.regions, !separate);
			read_run(&b, tape, &run[separate]);
			hg_tape_free(tape);
		}
		const double apart = distance(&run[0], &run[1]);
		test_note("%d readers of X%s: gradients apart %.2g", readers, selves ? ", W_self" : "",
		          apart);
		CHECK(apart <= tolerance(4));
		bench_close(&b);
	}
}

/* ---- what is no region ---- */

/* Two layers of width 16 on X, recorded in a way that a region cannot have. */
enum trick {
	BRANCH_BETWEEN,
	WIDE_BRANCH_BETWEEN, /* the layer that is left out is wider than the others, which drop */
	VIEW_IN_F32,
	X_IS_PARAM,
	SMALL_ALPHA,
	KEPT_INSIDE,
	READ_BETWEEN,
	READ_BEHIND,
	TWO_ENDS,
	TRICKS
};

static hg_tape *record_trick(struct bench *b, enum trick trick, const hg_tensor *x,
                             const hg_tensor *labels)
{
	const float alpha = trick == SMALL_ALPHA ? 0x1p-8f : 1.0f;
	const int64_t width = trick == WIDE_BRANCH_BETWEEN ? 64 : 16;
	hg_tape *tape = NULL;
	CHECK_OK(hg_tape_create(b->params, HG_TRAIN, &tape));
	hg_var h = hg_tape_input(tape, x, "x", -1.0), branch = HG_NONE;
	if (trick == X_IS_PARAM)
		h = hg_tape_param(tape, param(b, "x", hg_tensor_rows(x), 16));
	else
		h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w0", 11, width)), HG_NONE);
	for (int l = 1; l <= 2; l++) {
		char w[16];
		snprintf(w, sizeof w, "w%d", l);
		const hg_var weight = hg_tape_param(tape, param(b, w, l == 1 ? width : 16, 16)),
		             sum = hg_spmm(tape, b->graph, h, HG_NONE, HG_NORM_BOTH, alpha);
		if (l == 1 && (trick == BRANCH_BETWEEN || trick == WIDE_BRANCH_BETWEEN))
			branch = hg_relu(
			    tape, hg_linear(tape, h, hg_tape_param(tape, param(b, "u", width, 16)), HG_NONE));
		if (l == 2 && trick == VIEW_IN_F32)
			branch = hg_linear(tape, hg_cast(tape, h, HG_F32), weight, HG_NONE);
		h = hg_relu(tape, hg_linear(tape, sum, weight, HG_NONE));
		if (l == 2 && trick == WIDE_BRANCH_BETWEEN)
			h = hg_dropout(tape, h, 0.3f);
		if (trick == SMALL_ALPHA)
			h = hg_scale(tape, h, 0x1p8f);
		if (l == 1 && trick == KEPT_INSIDE)
			hg_tape_keep(tape, h);
		if (l == 1 && trick == READ_BETWEEN)
			branch = hg_relu(
			    tape, hg_linear(tape, h, hg_tape_param(tape, param(b, "u", 16, 16)), HG_NONE));
		if (l == 1 && trick == READ_BEHIND)
			branch = h;
		if (l == 1 && trick == TWO_ENDS)
			branch = h;
	}
	if (trick == TWO_ENDS) /* another second layer on the first */
		branch = hg_relu(
		    tape,
		    hg_spmm(tape, b->graph,
		            hg_linear(tape, branch, hg_tape_param(tape, param(b, "u", 16, 16)), HG_NONE),
		            HG_NONE, HG_NORM_BOTH, alpha));
	if (branch.id != HG_NONE.id)
		h = hg_add(tape, h, branch);
	compile_loss(b, tape, h, labels);
	return tape;
}

/* Whatever part of it becomes a region, the gradients are those op by op. */
static void tricks_change_no_gradient(void)
{
	static struct run run[2];
	static const struct {
		const char *what;
		int layers; /* of all regions together */
	} rows[TRICKS] = {{"a branch between the products", 1},
	                  {"a branch between wide products", 1},
	                  {"an f32 view of W", 1},
	                  {"X is a parameter", 1},
	                  {"a small alpha", 0},
	                  {"kept inside", 2},
	                  {"read between the layers", 2},
	                  {"read behind the layers", 2},
	                  {"two layers on one", 3}};
	for (int trick = 0; trick < TRICKS; trick++) {
		struct bench b;
		struct batch batch = {{0}, 0};
		bench_open(&b, region_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = random_batch(b.ctx, 20, 0, &batch);
		const hg_tensor *x = random_tensor(&b, HG_F16, batch.nodes, 11, 1.0),
		                *labels = labels_of(&b, batch.nodes);
		for (int separate = 0; separate < 2; separate++) {
			int found = 0;
			b.ctx->separate_ops = separate;
			hg_tape *tape = record_trick(&b, (enum trick)trick, x, labels);
			for (int64_t r = 0; r < tape->plan.regions; r++)
				found += tape->plan.region[r].layers;
			CHECK_MSG(found == (separate ? 0 : rows[trick].layers), "%s: %d layers in regions",
			          rows[trick].what, found);
			read_run(&b, tape, &run[separate]);
			hg_tape_free(tape);
		}
		const double apart = distance(&run[0], &run[1]);
		test_note("%s: gradients apart %.2g", rows[trick].what, apart);
		CHECK_MSG(apart <= tolerance(4), "%s: %.3g apart", rows[trick].what, apart);
		bench_close(&b);
	}
}

/* ---- guards ---- */

/* Weights so large that the product of the last layer does not fit a half. No bound says that it
 * does, so it is checked. */
static void overflow_names_the_node(void)
{
	static const struct row row = {"", 3, 32, 20, 1, -1, 0, 0.0f, HG_NORM_BOTH, 1, 3, NULL};
	struct bench b;
	struct batch batch = {{0}, 0};
	hg_model *model = NULL;
	bench_open(&b, region_context(), hg_policy_fp16(), HG_TRAIN);
	b.graph = random_batch(b.ctx, row.most, row.symmetric, &batch);
	const hg_tensor *x = random_tensor(&b, HG_F16, batch.nodes, 11, 1.0),
	                *labels = labels_of(&b, batch.nodes);
	const hg_model_config config = config_of(&row, 11);
	CHECK_OK(hg_model_create(b.params, &config, &model));
	hg_tape *tape = record(&b, model, x, labels);
	CHECK_EQ_I(tape->plan.regions, 1);
	const int32_t wanted = tape->plan.region[0].layer[2].inner;
	hg_param *w = hg_params_find(b.params, "conv2.weight");
	CHECK(w != NULL);
	float *host = download(w->master);
	for (int64_t i = 0; i < 32 * CLASSES; i++)
		host[i] = 60000.0f;
	CHECK_OK(hg_tensor_upload(w->working, host, HG_F32));
	free(host);
	CHECK_OK(hg_tape_forward(tape));
	uint64_t word = 0;
	CHECK_OK(b.ctx->backend->copy_out(b.ctx, &word, &b.params->step->overflow, sizeof word));
	CHECK_EQ_I(hg__overflow_node(word), wanted);
	hg_tape_free(tape);
	hg_model_free(model);
	bench_close(&b);
}

/* ---- memory ---- */

/* What lies inside a region has no memory, so layers cost none. */
static void layers_take_no_memory(void)
{
	size_t bytes[2];
	for (int deep = 0; deep < 2; deep++) {
		const struct row row = {"", deep ? 20 : 2, 32,           20, 1, -1,
		                        0,  0.0f,          HG_NORM_BOTH, 1,  2, NULL};
		struct bench b;
		struct batch batch = {{0}, 0};
		hg_model *model = NULL;
		hg_plan_info info = HG_PLAN_INFO_INIT;
		test_reseed(7);
		bench_open(&b, region_context(), hg_policy_fp16(), HG_TRAIN);
		b.graph = random_batch(b.ctx, row.most, row.symmetric, &batch);
		const hg_tensor *x = random_tensor(&b, HG_F16, batch.nodes, 11, 1.0),
		                *labels = labels_of(&b, batch.nodes);
		const hg_model_config config = config_of(&row, 11);
		CHECK_OK(hg_model_create(b.params, &config, &model));
		hg_tape *tape = record(&b, model, x, labels);
		CHECK_OK(hg_tape_plan(tape, &info));
		bytes[deep] = info.arena_bytes;
		hg_tape_free(tape);
		hg_model_free(model);
		bench_close(&b);
	}
	test_note("arena: %zu bytes with 2 layers, %zu with 20", bytes[0], bytes[1]);
	CHECK(bytes[0] == bytes[1]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(regions_give_what_ops_give), TEST(gradient_of_x_passes_on),
	    TEST(tricks_change_no_gradient),  TEST(overflow_names_the_node),
	    TEST(layers_take_no_memory),
	};
	return RUN_TESTS(argc, argv, cases);
}
