/* Embeddings: what hg_predictor_embed gives has the bits that the evaluation tape of the run has
 * for that layer, and asking for it does not change the logits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "halfgraph/predictor.h"
#include "nn/train.h"
#include "small_run.h"
#include "unit/faulty.h"
#include "unit/many_graphs.h"

enum { MOST = MG_NODES * 64, LAYERS = 3 };

/* Embeddings and logits of all rows. */
struct values {
	float h[MOST], logits[MOST];
	int32_t row[MG_NODES];
};

/* ---- what the evaluation tape computes ---- */

/* Runs a copy of a tape that keeps every tensor. */
static hg_tape *run_kept(const hg_tape *evaluation)
{
	hg_tape *tape = NULL;
	CHECK_OK(hg__tape_copy_kept(evaluation, &tape));
	CHECK_OK(hg_tape_forward(tape));
	return tape;
}

static int is_of(const struct hg__entry *entry, const char *scope, int readout)
{
	return strcmp(entry->scope, scope) == 0 && !(entry->op->traits & HG__CASTS) &&
	       (strcmp(entry->op->name, "readout") == 0) == readout;
}

/* The value that layer `layer` ends with: in front of its readout if it has one, else its last one;
 * or that readout itself. -1: there is no readout. */
static int32_t find_value(const hg_tape *tape, int layer, int of_graphs)
{
	const struct hg__recording *recording = &tape->recording;
	char scope[16] = "embed";
	int64_t readout = recording->entries, last = -1;
	if (layer)
		(void)snprintf(scope, sizeof scope, "conv%d", layer - 1);
	for (int64_t k = 0; k < recording->entries; k++)
		if (is_of(&recording->entry[k], scope, 1))
			readout = k;
	if (of_graphs)
		return readout < recording->entries ? recording->entry[readout].node.out : -1;
	for (int64_t k = 0; k < readout; k++)
		if (is_of(&recording->entry[k], scope, 0))
			last = k;
	CHECK_MSG(last >= 0, "%s", scope);
	while (recording->entry[last].fused_into >= 0) /* dropout, which does nothing here */
		last = recording->entry[last].fused_into;
	return recording->entry[last].node.out;
}

/* Compares an embedding with a value of the tape. */
static void check_value(hg_tape *kept, int32_t value, const float *h, const char *what)
{
	static float expected[MOST];
	const hg_tensor *t = &kept->program.view[value].value;
	const int64_t n = hg_tensor_rows(t) * hg_tensor_cols(t);
	CHECK(n > 0 && n <= MOST);
	CHECK_OK(hg_tensor_download(t, expected, HG_F32));
	CHECK_MSG(memcmp(expected, h, (size_t)n * sizeof *h) == 0, "%s: other bits", what);
}

/* All embeddings of nodes: those of the tape. */
static void check_layers(hg_predictor *p, const hg_model_input *input, const hg_tape *evaluation,
                         const struct values *plain, int of_graphs)
{
	static struct values v;
	const hg_model_config *c = hg_model_get_config(hg_predictor_model(p));
	const int embeds = hg_predictor_embedding_cols(p, 0) > 0,
	          head = strcmp(c->name, "gin") == 0 || embeds;
	const int64_t rows = c->readout >= 0 ? MG_GRAPHS : SMALL_N;
	hg_tape *kept = run_kept(evaluation);
	for (int layer = !embeds; layer <= c->layers; layer++) {
		const int32_t value = find_value(kept, layer, of_graphs);
		const hg_status status =
		    hg_predictor_embed(p, input, layer, !of_graphs, v.h, v.row, v.logits);
		CHECK_MSG(status == HG_OK, "%s: %s", c->name,
		          hg_context_error(hg_params_context(hg_predictor_params(p))));
		CHECK(memcmp(v.row, plain->row, (size_t)rows * sizeof *v.row) == 0);
		CHECK_MSG(memcmp(v.logits, plain->logits,
		                 (size_t)(rows * c->out_features) * sizeof *v.logits) == 0,
		          "%s: layer %d changes the logits", c->name, layer);
		if (value >= 0) {
			CHECK_EQ_I(kept->recording.value[value].cols, hg_predictor_embedding_cols(p, layer));
			check_value(kept, value, v.h, c->name);
		}
		if (layer == c->layers - (c->readout < 0 && !head)) { /* it is the last one */
			const int64_t cols = hg_predictor_embedding_cols(p, HG_EMBED_LAST);
			CHECK_EQ_I(cols, hg_predictor_embedding_cols(p, layer));
			CHECK_OK(hg_predictor_embed(p, input, HG_EMBED_LAST, !of_graphs, v.logits, NULL, NULL));
			CHECK(memcmp(v.h, v.logits, (size_t)(rows * cols) * sizeof *v.h) == 0);
		}
	}
	hg_tape_free(kept);
}

static hg_predictor *predictor_of(hg_context *ctx, hg_train *train)
{
	hg_state *state = NULL;
	hg_predictor *p = NULL;
	CHECK_OK(hg_train_get_state(train, &state));
	CHECK_MSG(hg_predictor_create(ctx, state, &p) == HG_OK, "%s", hg_context_error(ctx));
	hg_state_free(state);
	return p;
}

/* ---- nodes ---- */

/* Also where op nodes were promoted: gin with a large factor, and every model naively. */
static void nodes_have_the_bits_of_the_evaluation(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized", "fp16-naive"};
	static struct values plain;
	for (const char *const *model = hg_model_names(); *model; model++)
		for (size_t k = 0; k < sizeof policies / sizeof policies[0]; k++) {
			static struct small_run r;
			hg_train_config c = small_config(*model, policies[k]);
			c.optim.lr = 0.1f;
			c.model.layers = LAYERS;
			c.model.lambda = k == 1 ? 4096.0f : 1.0f;
			small_open(&r, test_context(), c);
			small_train(&r);
			hg_predictor *p = predictor_of(r.ctx, r.train);
			CHECK_OK(hg_train_predict(r.train, plain.row, plain.logits));
			check_layers(p, &r.run.data.input, r.train->evaluator.tape, &plain, 0);
			/* the result of the last layer of a model without a head is the logits */
			const int64_t cols = hg_predictor_embedding_cols(p, LAYERS);
			if (cols == SMALL_C) {
				static float h[SMALL_N * SMALL_C];
				CHECK_OK(hg_predictor_embed(p, &r.run.data.input, LAYERS, 0, h, plain.row, NULL));
				CHECK(memcmp(h, plain.logits, sizeof h) == 0);
			}
			hg_predictor_free(p);
			small_close(&r);
		}
}

/* H_1 is in f32 here, and stays so. */
static void promoted_layers_are_given_in_f32(void)
{
	static struct small_run r;
	static struct values plain;
	static float h[SMALL_N * 16];
	hg_state *state = NULL;
	hg_predictor *p = NULL;
	hg_tape *tape = NULL;
	int64_t wider = 0;
	small_open(&r, test_context(), small_config("gcn", "fp16"));
	small_train(&r);
	CHECK_OK(hg_train_get_state(r.train, &state));
	CHECK_OK(hg_state_add_promotion(state, &(hg_promotion){.op = "linear", .layer = "conv0"}));
	CHECK_OK(hg_state_add_promotion(state, &(hg_promotion){.op = "relu", .layer = "conv0"}));
	CHECK_OK(hg_predictor_create(r.ctx, state, &p));
	CHECK_OK(hg_predictor_run(p, &r.run.data.input, plain.row, plain.logits));
	CHECK_OK(hg_tape_create(hg_predictor_params(p), HG_EVAL, &tape));
	const hg_var logits = hg_model_record(hg_predictor_model(p), tape, &r.run.data.input);
	CHECK_OK(hg_tape_compile(tape, logits));
	check_layers(p, &r.run.data.input, tape, &plain, 0);
	CHECK_OK(hg_predictor_embed(p, &r.run.data.input, 1, 0, h, NULL, NULL));
	for (int i = 0; i < SMALL_N * 16; i++)
		wider += h[i] != hg_half_to_float(hg_half_from_float(h[i]));
	CHECK(wider > 100);
	hg_tape_free(tape);
	hg_predictor_free(p);
	hg_state_free(state);
	small_close(&r);
}

/* ---- graphs ---- */

/* The sum, mean or maximum over the nodes of each graph, in f64, against readouts that the logits
 * do not need: the sum is in f32, with at most 16 terms, and narrowed once. */
static void check_readouts(hg_predictor *p, const hg_model_input *input,
                           const struct many_graphs *g, int layer, int reduce)
{
	static struct values nodes, graphs;
	const int64_t cols = hg_predictor_embedding_cols(p, layer);
	CHECK_OK(hg_predictor_embed(p, input, layer, 1, nodes.h, NULL, NULL));
	CHECK_OK(hg_predictor_embed(p, input, layer, 0, graphs.h, NULL, NULL));
	for (int64_t k = 0; k < g->graphs; k++)
		for (int64_t c = 0; c < cols; c++) {
			const int64_t n = g->ptr[k + 1] - g->ptr[k];
			double sum = 0, size = 0, most = n ? -INFINITY : 0;
			for (int64_t i = g->ptr[k]; i < g->ptr[k + 1]; i++) {
				const double x = (double)nodes.h[i * cols + c];
				sum += x;
				size += fabs(x);
				most = x > most ? x : most;
			}
			const double by = reduce == HG_REDUCE_MEAN && n ? (double)n : 1,
			             found = (double)graphs.h[k * cols + c],
			             expected = reduce == HG_REDUCE_MAX ? most : sum / by;
			CHECK_MSG(fabs(found - expected) <= 0x1p-10 * size / by + 0x1p-24,
			          "graph %lld, column %lld: %g, expected %g", (long long)k, (long long)c, found,
			          expected);
		}
}

static void graphs_have_the_bits_of_the_evaluation(void)
{
	static const char *const models[] = {"gcn", "gin", "gine", "gat", "agnn", "gt"};
	static struct many_graphs g;
	static struct values plain;
	many_graphs_make(&g, 1, 1);
	for (size_t k = 0; k < sizeof models / sizeof *models; k++)
		for (int variant = 0; variant < 9; variant++) {
			hg_context *ctx = test_context();
			struct many_device device;
			hg_train_data data = HG_TRAIN_DATA_INIT;
			hg_train_report report = HG_TRAIN_REPORT_INIT;
			hg_train *train = NULL;
			hg_train_config c = hg_train_config_default(models[k]);
			CHECK_OK(hg_policy_parse(variant % 2 ? "fp32" : "fp16", &c.policy));
			c.model.hidden = 8;
			c.model.heads = 2;
			c.model.layers = LAYERS;
			c.model.readout = variant / 3;
			c.model.readout_layers = (hg_readout_layers)(variant % 3);
			c.epochs = 3;
			CHECK_OK(many_open(ctx, &g, variant % 2 ? MG_F32 : 0, &device));
			data.input = many_input(&device);
			data.labels = g.label;
			CHECK_MSG(hg_train_create(ctx, &c, &data, &train) == HG_OK, "%s",
			          hg_context_error(ctx));
			CHECK_OK(hg_train_run(train, &report));
			CHECK_OK(hg_train_predict(train, plain.row, plain.logits));
			hg_predictor *p = predictor_of(ctx, train);
			check_layers(p, &data.input, train->evaluator.tape, &plain, 0);
			check_layers(p, &data.input, train->evaluator.tape, &plain, 1);
			for (int layer = 1; layer <= LAYERS; layer++)
				check_readouts(p, &data.input, &g, layer, c.model.readout);
			hg_predictor_free(p);
			hg_train_free(train);
			many_close(&device);
			hg_context_free(ctx);
		}
}

/* ---- refusals ---- */

static void absent_embeddings_are_refused(void)
{
	static const struct {
		const char *model;
		int layers, layer;
		int64_t cols; /* 0: refused, with `part` */
		const char *part;
	} rows[] = {
	    {"gcn", 2, 0, 0,
	     "gcn: embedding of layer 0, expected 1 to 2, or the last (-1): layer 0 is"},
	    {"gcn", 2, 3, 0, "gcn: embedding of layer 3, expected 1 to 2, or the last (-1)"},
	    {"gt", 2, -2, 0, "gt: embedding of layer -2, expected 0 to 2, or the last (-1)"},
	    {"sgc", 1, HG_EMBED_LAST, 0, "sgc: its only layer makes the logits from the features"},
	    {"gcn", 2, HG_EMBED_LAST, 16, ""},
	    {"gin", 1, HG_EMBED_LAST, 16, ""},
	    {"gat", 2, 1, 32, ""},
	    {"gat", 2, 2, SMALL_C, ""},
	    {"gt", 1, 0, 32, ""},
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		static struct small_run r;
		static struct values v;
		hg_train_config c = small_config(rows[k].model, "fp16");
		c.model.layers = rows[k].layers;
		small_open(&r, test_context(), c);
		hg_predictor *p = predictor_of(r.ctx, r.train);
		CHECK_EQ_I(hg_predictor_embedding_cols(p, rows[k].layer), rows[k].cols);
		CHECK_STATUS(hg_predictor_embed(p, &r.run.data.input, rows[k].layer, 0, v.h, NULL, NULL),
		             rows[k].cols ? HG_OK : HG_ERR_ARG);
		if (!rows[k].cols)
			CHECK_CONTAINS(hg_context_error(r.ctx), rows[k].part);
		CHECK_STATUS(hg_predictor_embed(p, NULL, 1, 0, v.h, NULL, NULL), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(r.ctx), "predictor_embed: input is NULL");
		CHECK_STATUS(hg_predictor_embed(p, &r.run.data.input, 1, 0, NULL, NULL, NULL), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(r.ctx), "predictor_embed: embedding is NULL");
		hg_predictor_free(p);
		small_close(&r);
	}
	CHECK_STATUS(hg_predictor_embed(NULL, NULL, 1, 0, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK_EQ_I(hg_predictor_embedding_cols(NULL, 1), 0);
}

/* Every allocation fails once, and nothing is lost. */
static void failed_allocations_are_reported(void)
{
	static struct small_run r;
	static struct values v;
	struct faulty f;
	hg_context *ctx = faulty_context(&f);
	small_open(&r, ctx, small_config("gcn", "fp16"));
	hg_predictor *p = predictor_of(ctx, r.train);
	hg_status status = HG_ERR_NOMEM;
	int64_t k = 0;
	for (; status == HG_ERR_NOMEM; k++) {
		f.calls = 0;
		f.fail_at = k;
		status = hg_predictor_embed(p, &r.run.data.input, HG_EMBED_LAST, 0, v.h, v.row, v.logits);
		f.fail_at = -1;
		CHECK(k < 1000);
	}
	CHECK_STATUS(status, HG_OK);
	CHECK_MSG(k > 5, "%lld allocations only", (long long)k);
	hg_predictor_free(p);
	r.ctx = NULL;
	small_close(&r);
	faulty_close(&f, ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(nodes_have_the_bits_of_the_evaluation),  TEST(promoted_layers_are_given_in_f32),
	    TEST(graphs_have_the_bits_of_the_evaluation), TEST(absent_embeddings_are_refused),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
