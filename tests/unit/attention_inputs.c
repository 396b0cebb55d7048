/* hg_attention on unusual graphs and with operands that are not finite: numbers are right, or the
 * step is skipped and the doctor names the first one that is not. */
#include "halfgraph/ops_attention.h"
#include "precision/bound.h"
#include "unit/doctor_subject.h"

enum { HEADS = 3, WIDTH = 4, HUB_EDGES = 100000 };

static const hg_score kinds[] = {HG_SCORE_ADD, HG_SCORE_DOT, HG_SCORE_COSINE, HG_SCORE_ADD_V2};
static const char *const policies[] = {"fp32", "fp16"};

static hg_attention_operands no_operands(void)
{
	const hg_attention_operands none = {HG_NONE, HG_NONE, HG_NONE, HG_NONE, HG_NONE};
	return none;
}

/* ---- graphs ---- */

static struct coo no_edges(void)
{
	return coo_empty(5, 5);
}

static struct coo one_node(void)
{
	return coo_empty(1, 1);
}

static struct coo one_loop(void)
{
	struct coo list = coo_empty(1, 1);
	coo_add(&list, 0, 0);
	return list;
}

static struct coo hub(void)
{
	return coo_star(HUB_EDGES);
}

static struct coo duplicates(void)
{
	struct coo list = coo_path(6);
	coo_repeat(&list, 50);
	return list;
}

static struct coo into_one_row(void)
{
	return coo_fan_in(4, 300);
}

static struct coo from_one_column(void)
{
	return coo_fan_out(300);
}

/* Edges that count 0 times: row 1 has no others. */
static struct coo zero_weights(void)
{
	struct coo list = coo_empty(3, 3);
	coo_add_weighted(&list, 0, 1, 0.0f);
	coo_add_weighted(&list, 0, 2, 0.5f);
	coo_add_weighted(&list, 1, 2, 0.0f);
	return list;
}

static const struct graph_row {
	const char *name;
	struct coo (*edges)(void);
	int weighted;
} graphs[] = {
    {"no edges", no_edges, 0},
    {"one node", one_node, 0},
    {"one node with a loop", one_loop, 0},
    {"a hub", hub, 0},
    {"duplicates", duplicates, 0},
    {"all edges into one row", into_one_row, 0},
    {"all edges from one column", from_one_column, 0},
    {"weights of 0", zero_weights, 1},
};

/* Whether each row has an edge that counts. */
static char *counted_rows(const struct graph_row *row, struct coo list)
{
	char *counts = calloc((size_t)list.rows + 1, 1);
	CHECK(counts != NULL);
	for (int64_t e = 0; e < list.m; e++)
		counts[list.dst[e]] |= (char)(!row->weighted || list.weight[e] > 0.0f);
	coo_free(&list);
	return counts;
}

struct found {
	float *y, *dy, *dq, *dk, *dv;
};

/* Runs attention with V = 1. The gradient of Y is that of the zeros that are added to it. */
static struct found run(struct bench *b, const hg_attention_config *config, hg_dtype state)
{
	const int64_t rows = hg_graph_rows(b->graph), cols = hg_graph_cols(b->graph), d = HEADS * WIDTH,
	              q = config->score == HG_SCORE_ADD ? HEADS : d,
	              c = config->score == HG_SCORE_COSINE ? HEADS : q;
	float *ones = calloc((size_t)(cols * d) + 1, sizeof *ones);
	CHECK(ones != NULL);
	for (int64_t i = 0; i < cols * d; i++)
		ones[i] = 1.0f;
	hg_tape *tape = b->tape;
	hg_attention_operands in = no_operands();
	in.q = hg_tape_variable(tape, random_tensor(b, state, rows, q, 0.5), "q");
	in.k = hg_tape_variable(tape, random_tensor(b, state, cols, q, 0.5), "k");
	in.v = hg_tape_variable(tape, tensor_of(b, state, cols, d, ones, HG_F32), "v");
	if (config->score >= HG_SCORE_COSINE)
		in.c = hg_tape_variable(tape, random_tensor(b, HG_F32, 1, c, 1.0), "c");
	const hg_var y = hg_attention(tape, b->graph, &in, config),
	             zeros = hg_tape_variable(tape, random_tensor(b, state, rows, d, 0.0), "zeros"),
	             target = hg_tape_input(tape, random_tensor(b, state, rows, d, 1.0), "t", -1.0);
	hg_tape_keep(tape, y);
	CHECK_OK(hg_tape_compile(tape, hg_mse(tape, hg_add(tape, y, zeros), target, HG_NONE)));
	CHECK_OK(hg_tape_forward(tape));
	CHECK_OK(hg_tape_backward(tape));
	free(ones);
	return (struct found){download(hg_tape_value(tape, y)), download(hg_tape_grad(tape, zeros)),
	                      download(hg_tape_grad(tape, in.q)), download(hg_tape_grad(tape, in.k)),
	                      download(hg_tape_grad(tape, in.v))};
}

static void expect_below(const char *what, const float *x, int64_t count, double bound)
{
	for (int64_t i = 0; i < count; i++)
		CHECK_MSG(fabs((double)x[i]) <= bound, "%s[%lld] is %g, at most %g", what, (long long)i,
		          (double)x[i], bound);
}

/* Where V is 1 everywhere, Y is 1 in rows with an edge that counts, whatever the scores are, and 0
 * in others. dV then adds up to dY of these rows, and dQ and dK are 0, because the weights have no
 * influence: up to the rounding of a mean of the longest row and of what is stored. Vectors of
 * COSINE are not much shorter than 1, and c is at most 4. */
static void check_graph(const struct graph_row *row, hg_score kind, const char *policy)
{
	struct bench b;
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	bench_open(&b, test_context(), policy_named(policy), HG_TRAIN);
	b.graph = coo_graph(b.ctx, row->edges());
	config.score = kind;
	config.heads = HEADS;
	config.weighted = row->weighted;
	const hg_dtype state = policy_named(policy).state;
	const int64_t d = HEADS * WIDTH, rows = hg_graph_rows(b.graph), cols = hg_graph_cols(b.graph);
	const struct found found = run(&b, &config, state);
	const double near_zero = state == HG_F16 ? 0x1p-25 : 0.0,
	             off = 4.0 * hg_dtype_get(state)->u +
	                   hg__gamma(2.0 * (double)hg_graph_edges(b.graph) + 100.0, 0x1p-24);
	char *counts = counted_rows(row, row->edges());
	double dy = 0.0, size = 0.0, dv = 0.0;
	test_note("%s, score %d, %s", row->name, (int)kind, policy);
	for (int64_t i = 0; i < rows * d; i++) {
		CHECK(fabs((double)found.y[i] - (counts[i / d] ? 1.0 : 0.0)) <= off);
		dy += counts[i / d] ? (double)found.dy[i] : 0.0;
		size += fabs((double)found.dy[i]);
	}
	for (int64_t i = 0; i < cols * d; i++)
		dv += (double)found.dv[i];
	CHECK_MSG(fabs(dv - dy) <= off * size + near_zero * (double)(cols * d), "dV %g, dY %g", dv, dy);
	const int64_t q = kind == HG_SCORE_ADD ? HEADS : d;
	expect_below("dQ", found.dq, rows * q, 64.0 * off * size + near_zero);
	expect_below("dK", found.dk, cols * q, 64.0 * off * size + near_zero);
	free(found.y);
	free(found.dy);
	free(found.dq);
	free(found.dk);
	free(found.dv);
	free(counts);
	bench_close(&b);
}

static void unusual_graphs_have_their_numbers(void)
{
	for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
		for (int k = 0; k < HG_SCORE_COUNT; k++)
			for (int p = 0; p < 2; p++)
				check_graph(&graphs[i], kinds[k], policies[p]);
}

/* ---- operands that are not finite ---- */

enum { NODES = 6, ROW = 3 };

static hg_score recorded_kind;
static float recorded_scale = 1.0f;

/* Attention over a ring with a loss. The values and c are parameters; tensor 0 is q, 1 is k, 2 is
 * the bias, 3 the target. */
static hg_var record_ring(struct bench *b, hg_tape *tape)
{
	hg_attention_config config = HG_ATTENTION_CONFIG_INIT;
	hg_attention_operands in = no_operands();
	config.score = recorded_kind;
	config.scale = recorded_scale;
	config.heads = HEADS;
	hg_tape_scope(tape, "conv");
	in.q = hg_tape_input(tape, b->tensor[0], "queries", 8.0);
	in.k = hg_tape_input(tape, b->tensor[1], "keys", 8.0);
	in.v = hg_tape_param(tape, hg_params_find(b->params, "values"));
	in.bias = hg_tape_input(tape, b->tensor[2], "biases", 8.0);
	if (recorded_kind >= HG_SCORE_COSINE)
		in.c = hg_tape_param(tape, hg_params_find(b->params, "c"));
	const hg_var y = hg_attention(tape, b->graph, &in, &config);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, b->tensor[3], "targets", 8.0), HG_NONE);
}

static void open_ring(struct subject *s, hg_score kind, const char *policy)
{
	const hg_dtype state = policy_named(policy).state;
	const int64_t d = HEADS * WIDTH, q = kind == HG_SCORE_ADD ? HEADS : d;
	hg_param *made = NULL;
	test_reseed(12);
	recorded_kind = kind;
	subject_open(s, policy_named(policy), record_ring);
	s->bench.graph = ring(s->bench.ctx, NODES);
	(void)random_tensor(&s->bench, state, NODES, q, 0.5);
	(void)random_tensor(&s->bench, state, NODES, q, 0.5);
	(void)random_tensor(&s->bench, state, hg_graph_edges(s->bench.graph), HEADS, 0.5);
	(void)random_tensor(&s->bench, state, NODES, d, 0.5);
	(void)param(&s->bench, "values", NODES, d);
	if (kind >= HG_SCORE_COSINE)
		CHECK_OK(hg_params_add(s->bench.params, "c", 1, kind == HG_SCORE_COSINE ? HEADS : q,
		                       HG_INIT_ONES, HG_PARAM_F32, &made));
	subject_compile(s);
}

/* Puts `value` into an element of a tensor. */
static void put(hg_tensor *tensor, int64_t row, int64_t col, float value)
{
	float *host = download(tensor);
	host[row * hg_tensor_cols(tensor) + col] = value;
	CHECK_OK(hg_tensor_upload(tensor, host, HG_F32));
	free(host);
}

/* The next step is skipped. */
static void expect_skipped(struct subject *s)
{
	hg_step_info info = HG_STEP_INFO_INIT;
	subject_step(s);
	CHECK_OK(hg_optim_info(s->optim, &info));
	CHECK(!info.applied && info.nonfinite > 0);
}

/* Puts `value`, which is not finite, into operand `name`: the doctor names the operand and the
 * element. If it has influence, the chain goes on to attention, and the step is skipped. A NaN has;
 * an infinite number may make a score of -inf, which has none. If it makes a bad score, the doctor
 * names that, too. */
static void expect_named(hg_score kind, const char *policy, int input, const char *name,
                         float value)
{
	struct subject s;
	open_ring(&s, kind, policy);
	hg_param *const param = hg_params_find(s.bench.params, name);
	const int64_t row = strcmp(name, "c") == 0 ? 0 : ROW, col = 2;
	expect_healthy(&s);
	put(param ? hg_param_master(param) : s.bench.tensor[input], row, col, value);
	if (param && hg_param_working(param) != hg_param_master(param))
		put(hg_param_working(param), row, col, value);
	test_note("score %d, %s, %s", (int)kind, policy, name);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_INPUT, 0, "", "", row, col);
	CHECK_STR(f->tensor, name);
	CHECK(f->links > 1 || !isnan(value));
	CHECK(f->has_bad_score || !isnan(value) || strcmp(name, "values") == 0);
	CHECK(!f->has_bad_score || strcmp(name, "values") != 0);
	if (f->links > 1) {
		CHECK_STR(f->chain[1].op, "attention");
		CHECK_STR(f->chain[1].layer, "conv");
		expect_skipped(&s);
	}
	subject_close(&s);
}

static void operands_that_are_not_finite_are_named(void)
{
	static const char *const names[] = {"queries", "keys", "biases", "values", "c"};
	for (int k = 0; k < HG_SCORE_COUNT; k++)
		for (int p = 0; p < 2; p++)
			for (int i = 0; i < (kinds[k] >= HG_SCORE_COSINE ? 5 : 4); i++) {
				expect_named(kinds[k], policies[p], i, names[i], NAN);
				expect_named(kinds[k], policies[p], i, names[i], INFINITY);
			}
}

/* A row whose scores are all -inf, by the bias, counts as a row without edges: the step is
 * applied. */
static void rows_without_a_score_are_healthy(void)
{
	for (int k = 0; k < HG_SCORE_COUNT; k++)
		for (int p = 0; p < 2; p++) {
			struct subject s;
			hg_step_info info = HG_STEP_INFO_INIT;
			open_ring(&s, kinds[k], policies[p]);
			struct host_csr csr = host_csr_download(s.bench.ctx, s.bench.graph);
			for (int64_t e = csr.rowptr[ROW]; e < csr.rowptr[ROW + 1]; e++)
				for (int h = 0; h < HEADS; h++)
					put(s.bench.tensor[2], e, h, -INFINITY);
			host_csr_free(&csr);
			subject_step(&s);
			CHECK_OK(hg_optim_info(s.optim, &info));
			CHECK_MSG(info.applied && info.nonfinite == 0, "score %d, %s: %lld not finite",
			          (int)kinds[k], policies[p], (long long)info.nonfinite);
			subject_close(&s);
		}
}

/* DOT with a scale for which every score is infinite: what attention stores is not finite, and the
 * doctor names the op, the layer, the node, the head and the first such score. */
static void scores_that_overflow_are_found(void)
{
	for (int p = 0; p < 2; p++) {
		struct subject s;
		hg_step_info info = HG_STEP_INFO_INIT;
		recorded_scale = 3e38f;
		open_ring(&s, HG_SCORE_DOT, policies[p]);
		recorded_scale = 1.0f;
		subject_step(&s);
		CHECK_OK(hg_optim_info(s.optim, &info));
		CHECK(!info.applied);
		const hg_finding *f = subject_examine(&s);
		CHECK(f != NULL);
		CHECK_STR(f->op, "attention");
		CHECK_STR(f->layer, "conv");
		CHECK(f->row >= 0 && f->row_is == HG_ROW_NODE && f->head == f->col / WIDTH);
		CHECK(f->has_bad_score && f->bad_score.row == f->row && f->bad_score.head == f->head);
		CHECK(fabs(f->bad_score.score) >= 0x1p128);
		CHECK_CONTAINS(f->sentence, " is nan: the score of the edge from node ");
		subject_close(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(unusual_graphs_have_their_numbers),
	    TEST(operands_that_are_not_finite_are_named),
	    TEST(rows_without_a_score_are_healthy),
	    TEST(scores_that_overflow_are_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
