/* The attention kernels of the CPU against their equations in f64: outputs and every gradient, for
 * all scores, with rows that are empty, short, and long enough to be split; operands that are not
 * finite, empty, or wrong. */
#include "unit/attention_equations.h"

static void every_score_has_its_equations(const void *item)
{
	static const int heads[] = {1, 3, 8, 16}, widths[] = {1, 5, 8, 64};
	int number = 0;
	test_reseed(3);
	for (int h = 0; h < 4; h++)
		for (int w = 0; w < 4; w++)
			for (int type = 0; type < 2; type++) {
				const hg_score kind = *(const hg_score *)item;
				const int wide = heads[h] * widths[w];
				struct shape s = {.dtype = type ? HG_F16 : HG_F32,
				                  .score = kind,
				                  .heads = heads[h],
				                  .q = kind == HG_SCORE_ADD ? 1 : widths[w],
				                  .d = widths[(w + (number % 5 == 4)) % 4],
				                  .bias = number % 2,
				                  .weight = number / 2 % 2,
				                  .plan = number % 3,
				                  .dropout = number / 3 % 2 ? 0.3f : 0.0f,
				                  .spread = 2.0,
				                  .hub = wide > 100  ? 300
				                         : wide > 30 ? 1500
				                                     : 4000};
				check_shape(&s);
				number++;
			}
}

/* Scores from -1000 to 1000 overflow exp, unless the maximum is subtracted. */
static void spread_of_scores_does_not_matter(void)
{
	test_reseed(4);
	for (int number = 0; number < 16; number++) {
		const struct shape s = {.dtype = number & 1 ? HG_F16 : HG_F32,
		                        .score = (hg_score)(number / 4),
		                        .heads = number & 2 ? 8 : 1,
		                        .q = number / 4 ? 8 : 1,
		                        .d = 8,
		                        .plan = number & 1,
		                        .spread = 500.0,
		                        .hub = 700};
		check_shape(&s);
	}
}

/* dk is dq, and then dv too: the matrix has the sum of the gradients. */
static void gradients_of_one_operand_are_added(void)
{
	test_reseed(5);
	for (int number = 0; number < 16; number++) {
		const struct shape s = {.dtype = number & 1 ? HG_F16 : HG_F32,
		                        .score = (hg_score)(number / 4),
		                        .heads = 8,
		                        .q = number / 4 ? 8 : 1,
		                        .d = number / 4 ? 8 : 1,
		                        .shares = 1 + (number >> 1 & 1),
		                        .spread = 1.0,
		                        .hub = 200};
		check_shape(&s);
	}
}

static struct problem small_problem(hg_score kind)
{
	struct problem t;
	const struct shape s = {.dtype = HG_F32,
	                        .score = kind,
	                        .heads = 3,
	                        .q = kind ? 4 : 1,
	                        .d = 4,
	                        .bias = 1,
	                        .spread = 1.0,
	                        .hub = 200};
	open_problem(&t, &s);
	return t;
}

/* The rows of m with an element that is not finite, as bits. */
static uint64_t bad_rows(const struct hg__mat *m)
{
	uint64_t bad = 0;
	for (int64_t r = 0; r < m->rows; r++)
		for (int64_t c = 0; c < m->cols; c++)
			bad |= (uint64_t)!isfinite(get(m, r, c)) << r;
	return bad;
}

/* A row of which all scores are -inf is a row without edges: Y and all gradients are finite. */
static void masked_rows_count_as_empty(void)
{
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++) {
		test_reseed(6);
		struct problem t = small_problem((hg_score)kind);
		for (int64_t e = 0; e < t.m; e++)
			for (int k = 0; k < 3; k++)
				if (t.row[e] == HUB || t.row[e] == 4 || e % 2)
					set(&t.of.bias, e, k, -INFINITY);
		run_forward(&t);
		forward(&t);
		check_forward(&t);
		CHECK(get(&t.log_sum, HUB, 1) == -INFINITY && get(&t.y, HUB, 5) == 0.0);
		check_backward(&t);
		close_problem(&t);
	}
}

static void nan_stays_in_its_row(void)
{
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++)
		for (int64_t row = HUB; row <= HUB + 1; row++) {
			test_reseed(7);
			struct problem t = small_problem((hg_score)kind);
			set(&t.of.bias, t.csr.rowptr[row] + 1, 1, row == HUB ? (double)NAN : INFINITY);
			run_forward(&t);
			CHECK(bad_rows(&t.y) == (uint64_t)1 << row);
			for (int c = 0; c < 12; c++)
				CHECK(isnan(get(&t.y, row, c)) == (c / 4 == 1));
			CHECK(isnan(get(&t.log_sum, row, 1)) && isfinite(get(&t.log_sum, row, 0)));
			close_problem(&t);
		}
}

static void no_edges_and_no_nodes(void)
{
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++)
		for (int nodes = 0; nodes < 2; nodes++) {
			hg_context *ctx = test_cpu_context(2);
			hg_graph *graph = coo_graph(ctx, coo_empty(nodes, nodes));
			struct hg__attention_args a = {.of = {.score = (hg_score)kind, .heads = 2}};
			struct hg__attention_back_args b = {0};
			const int64_t q = kind ? 10 : 2;
			CHECK_OK(hg__graph_csr(graph, &a.csr));
			CHECK_OK(hg__graph_csr_t(graph, 1, &b.csr_t));
			a.of.q = a.of.k = normal(HG_F16, nodes, q);
			a.of.v = normal(HG_F16, nodes, 6);
			if (kind >= HG_SCORE_COSINE)
				a.of.c = normal(HG_F32, 1, kind == HG_SCORE_COSINE ? 2 : q);
			a.y = empty(HG_F16, nodes, 6);
			a.log_sum = empty(HG_F32, nodes, kind ? 2 : 4);
			if (!kind)
				a.plus = empty(HG_F16, nodes, 6);
			CHECK_OK(ctx->backend->kernels->attention.run(ctx, &a));
			b.csr = a.csr;
			b.of = a.of;
			b.y = b.dy = a.y;
			b.log_sum = a.log_sum;
			b.plus = a.plus;
			b.dq = empty(HG_F16, nodes, q);
			b.dk = empty(HG_F16, nodes, q);
			b.dv = empty(HG_F16, nodes, 6);
			if (kind >= HG_SCORE_COSINE)
				b.dc = empty(HG_F32, 1, a.of.c.cols);
			CHECK_OK(ctx->backend->kernels->attention_back.run(ctx, &b));
			const struct hg__mat *const results[] = {&a.y, &b.dq, &b.dk, &b.dv, &b.dc};
			for (int i = 0; i < 5; i++)
				for (int64_t c = 0; c < results[i]->cols && results[i]->rows; c++)
					CHECK(get(results[i], 0, c) == 0.0);
			CHECK(!nodes || get(&a.log_sum, 0, 0) == -INFINITY);
			pool_clear();
			hg_graph_free(graph);
			hg_context_free(ctx);
		}
}

/* A sum that does not fit in f16 sets the flag, in Y and in plus. */
static void overflow_is_flagged(void)
{
	for (int plus = 0; plus < 2; plus++) {
		test_reseed(8);
		const struct shape s = {.dtype = HG_F16,
		                        .heads = 8,
		                        .q = 1,
		                        .d = 8,
		                        .spread = 1.0,
		                        .hub = 200,
		                        .dropout = 0.5f};
		struct problem t;
		uint64_t word = 0;
		open_problem(&t, &s);
		struct hg__attention_args a = {
		    .csr = t.csr, .of = t.of, .y = t.y, .log_sum = t.log_sum, .overflow = {&word, 9}};
		if (plus)
			a.plus = t.plus;
		CHECK_OK(t.ctx->backend->kernels->attention.run(t.ctx, &a));
		CHECK(word == 0);
		for (int64_t c = 0; c < 64; c++)
			for (int64_t j = 0; j < t.cols; j++)
				set(&t.of.v, j, c, 65504.0);
		CHECK_OK(t.ctx->backend->kernels->attention.run(t.ctx, &a));
		CHECK(hg__overflow_node(word) == 9);
		close_problem(&t);
	}
}

/* V has no columns, so it has no data, and neither have Y, plus and dV. The log sum is that of any
 * V, and D is 0, so the gradients of Q and K are 0. */
static void values_without_columns(void)
{
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++) {
		test_reseed(9);
		struct problem t = small_problem((hg_score)kind);
		const struct hg__mat log_sum = empty(HG_F32, t.rows, t.log_sum.cols),
		                     none = {NULL, t.rows, 0, 0, HG_F32};
		struct hg__attention of = t.of;
		run_forward(&t);
		of.v = (struct hg__mat){NULL, t.cols, 0, 0, HG_F32};
		const struct hg__attention_args a = {.csr = t.csr, .of = of, .y = none, .log_sum = log_sum};
		CHECK_OK(t.ctx->backend->kernels->attention.run(t.ctx, &a));
		for (int64_t i = 0; i < t.rows; i++)
			for (int64_t c = 0; c < log_sum.cols; c++)
				CHECK(get(&log_sum, i, c) == get(&t.log_sum, i, c));
		const struct hg__attention_back_args b = {.csr = t.csr,
		                                          .csr_t = t.csr_t,
		                                          .of = of,
		                                          .y = none,
		                                          .plus = none,
		                                          .dy = none,
		                                          .log_sum = log_sum,
		                                          .dq = empty(HG_F32, t.rows, t.of.q.cols),
		                                          .dk = empty(HG_F32, t.cols, t.of.k.cols)};
		CHECK_OK(t.ctx->backend->kernels->attention_back.run(t.ctx, &b));
		for (int64_t c = 0; c < t.of.q.cols; c++) {
			for (int64_t i = 0; i < t.rows; i++)
				CHECK(get(&b.dq, i, c) == 0.0);
			for (int64_t j = 0; j < t.cols; j++)
				CHECK(get(&b.dk, j, c) == 0.0);
		}
		close_problem(&t);
	}
}

/* An infinite element of V stays in its column of the rows that have an edge to it, even where all
 * scores of a row are -inf. */
static void an_infinite_value_stays_in_its_column(void)
{
	enum { NODE = 1, COLUMN = 5 };
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++) {
		test_reseed(10);
		struct problem t = small_problem((hg_score)kind);
		uint64_t near = 0;
		for (int64_t e = 0; e < t.m; e++) {
			near |= (uint64_t)(t.csr.col[e] == NODE) << t.row[e];
			for (int k = 0; k < 3 && t.row[e] == 4; k++)
				set(&t.of.bias, e, k, -INFINITY);
		}
		set(&t.of.v, NODE, COLUMN, INFINITY);
		run_forward(&t);
		CHECK((near >> HUB & 1) && (near >> 4 & 1) && near != UINT64_MAX);
		CHECK((bad_rows(&t.y) & ~near) == 0 && (bad_rows(&t.y) >> HUB & 1));
		CHECK(bad_rows(&t.log_sum) == (bad_rows(&t.log_sum) & ~((uint64_t)1 << HUB)));
		for (int64_t i = 0; i < t.rows; i++)
			for (int64_t c = 0; c < t.y.cols; c++)
				CHECK(c == COLUMN || isfinite(get(&t.y, i, c)));
		for (int64_t c = 0; c < t.y.cols; c++)
			CHECK(c == COLUMN || get(&t.y, 4, c) == 0.0);
		close_problem(&t);
	}
}

/* ---- calls that the contract does not describe ---- */

struct calls {
	struct hg__attention_args forward;
	struct hg__attention_back_args backward;
	struct hg__attention_weights_args weights;
};

static struct calls good_calls(const struct problem *t)
{
	return (struct calls){
	    .forward = {.csr = t->csr, .of = t->of, .y = t->y, .log_sum = t->log_sum, .plus = t->plus},
	    .backward = {.csr = t->csr,
	                 .csr_t = t->csr_t,
	                 .of = t->of,
	                 .y = t->y,
	                 .log_sum = t->log_sum,
	                 .plus = t->plus,
	                 .dy = t->dy,
	                 .dq = empty(HG_F32, t->rows, t->of.q.cols),
	                 .dk = empty(HG_F32, t->cols, t->of.k.cols),
	                 .dv = empty(HG_F32, t->cols, t->of.v.cols)},
	    .weights = {t->csr, t->of, t->log_sum, empty(HG_F32, t->m, 3)}};
}

static void expect(const struct problem *t, const char *what, const struct calls *c,
                   hg_status forward, hg_status backward, hg_status weights)
{
	const struct hg__kernels *k = t->ctx->backend->kernels;
	const hg_status found[] = {k->attention.run(t->ctx, &c->forward),
	                           k->attention_back.run(t->ctx, &c->backward),
	                           k->attention_weights.run(t->ctx, &c->weights)},
	                expected[] = {forward, backward, weights};
	for (int i = 0; i < 3; i++)
		CHECK_MSG(found[i] == expected[i], "%s, kernel %d: %s, expected %s", what, i,
		          hg_status_name(found[i]), hg_status_name(expected[i]));
}

/* A change of the operands in `in`: their heads and types, and how many rows and columns they have
 * more. */
struct change {
	const char *what;
	hg_status scores, values; /* with a mistake in V attention_weights has no mistake */
	hg_score score;           /* 0: as it is */
	int heads;                /* 0: as they are */
	enum type { SAME, HALVES, INTEGERS } q, k, v;
	int q_rows, k_rows, k_cols, v_rows, v_cols, bias_rows, bias_cols, c_cols;
};

static hg_dtype type_of(enum type type)
{
	return type == SAME ? HG_F32 : type == HALVES ? HG_F16 : HG_I32;
}

static struct hg__attention changed(struct hg__attention of, const struct change *by)
{
	of.score = by->score ? by->score : of.score;
	of.heads += by->heads;
	of.q.dtype = type_of(by->q);
	of.k.dtype = type_of(by->k);
	of.v.dtype = type_of(by->v);
	of.q.rows += by->q_rows;
	of.k.rows += by->k_rows;
	of.k.cols += by->k_cols;
	of.v.rows += by->v_rows;
	of.v.cols += by->v_cols;
	of.bias.rows += by->bias_rows;
	of.bias.cols += by->bias_cols;
	if (by->c_cols)
		of.c = (struct hg__mat){of.q.data, 1, by->c_cols, by->c_cols, HG_F32};
	return of;
}

static void operands_are_checked(void)
{
	const hg_status bad = HG_ERR_INTERNAL, none = HG_ERR_UNSUPPORTED;
	const struct change changes[] = {
	    {.what = "nothing"},
	    {.what = "no such score", .scores = none, .values = none, .score = (hg_score)7},
	    {.what = "no head", .scores = none, .values = none, .heads = -3},
	    {.what = "17 heads", .scores = none, .values = none, .heads = 14},
	    {.what = "heads that do not divide q", .scores = bad, .values = bad, .heads = 4},
	    {.what = "q of integers", .scores = none, .values = none, .q = INTEGERS},
	    {.what = "k of halves", .scores = none, .values = none, .k = HALVES},
	    {.what = "v of halves", .values = none, .v = HALVES},
	    {.what = "a row of q too few", .scores = bad, .values = bad, .q_rows = -1},
	    {.what = "a row of k too many", .scores = bad, .values = bad, .k_rows = 1},
	    {.what = "columns of k too few", .scores = bad, .values = bad, .k_cols = -3},
	    {.what = "a row of v too few", .values = bad, .v_rows = -1},
	    {.what = "a column of v too many", .values = bad, .v_cols = 1},
	    {.what = "a row of the bias too few", .scores = bad, .values = bad, .bias_rows = -1},
	    {.what = "columns of the bias too few", .scores = bad, .values = bad, .bias_cols = -2},
	    {.what = "c with two columns", .scores = bad, .values = bad, .c_cols = 2},
	};
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++) {
		test_reseed(11);
		struct problem t = small_problem((hg_score)kind);
		run_forward(&t);
		for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
			const struct change *by = &changes[i];
			struct calls c = good_calls(&t);
			c.forward.of = c.backward.of = c.weights.of = changed(t.of, by);
			expect(&t, by->what, &c, by->values, by->values, by->scores);
		}
		close_problem(&t);
	}
}

static void results_are_checked(void)
{
	struct problem t = small_problem(HG_SCORE_ADD);
	const struct calls good = good_calls(&t);
	const hg_status bad = HG_ERR_INTERNAL, none = HG_ERR_UNSUPPORTED;
	struct calls c = good;
	run_forward(&t);
	c.forward.y.cols = c.backward.y.cols = 9;
	c.weights.p.cols = 9;
	expect(&t, "columns", &c, bad, bad, bad);
	c = good;
	c.forward.y.rows = c.backward.dy.rows = 9;
	c.weights.p.rows = 9;
	expect(&t, "rows", &c, bad, bad, bad);
	c = good;
	c.forward.log_sum.cols = c.backward.log_sum.cols = c.weights.log_sum.cols = 3;
	expect(&t, "columns of the log sums", &c, bad, bad, bad);
	c = good;
	c.forward.log_sum.rows = c.backward.log_sum.rows = c.weights.log_sum.rows = t.rows - 1;
	expect(&t, "rows of the log sums", &c, bad, bad, bad);
	c = good;
	c.forward.plus.cols = c.backward.plus.cols = 9;
	expect(&t, "columns of plus", &c, bad, bad, HG_OK);
	c = good;
	c.forward.plus.data = c.backward.plus.data = NULL; /* dq needs plus */
	expect(&t, "no plus", &c, HG_OK, bad, HG_OK);
	c = good;
	c.forward.y.dtype = c.backward.dy.dtype = HG_F16;
	c.weights.p.dtype = HG_I32;
	expect(&t, "types of results", &c, none, none, none);
	c = good;
	c.backward.dk.dtype = HG_F16;
	expect(&t, "type of dk", &c, HG_OK, none, HG_OK);
	c = good;
	c.backward.dv.rows = 9;
	expect(&t, "rows of dv", &c, HG_OK, bad, HG_OK);
	c = good;
	c.backward.csr_t = t.csr;
	expect(&t, "graph in place of its transpose", &c, HG_OK, bad, HG_OK);
	close_problem(&t);
}

/* What a call reads or writes without elements of its own. */
static void data_is_checked(void)
{
	test_reseed(12);
	struct problem t = small_problem(HG_SCORE_ADD);
	const struct calls good = good_calls(&t);
	const hg_status bad = HG_ERR_INTERNAL;
	struct calls c = good;
	run_forward(&t);
	c.forward.of.q.data = c.backward.of.q.data = c.weights.of.q.data = NULL;
	expect(&t, "no q", &c, bad, bad, bad);
	c = good;
	c.forward.of.k.data = c.backward.of.k.data = c.weights.of.k.data = NULL;
	expect(&t, "no k", &c, bad, bad, bad);
	c = good;
	c.forward.of.v.data = c.backward.of.v.data = c.weights.of.v.data = NULL;
	expect(&t, "no v, which the weights do not read", &c, bad, bad, HG_OK);
	c = good;
	c.forward.log_sum.data = c.backward.log_sum.data = c.weights.log_sum.data = NULL;
	expect(&t, "no log_sum", &c, bad, bad, bad);
	c = good;
	c.forward.y.data = c.backward.y.data = NULL;
	c.weights.p.data = NULL;
	expect(&t, "no result", &c, bad, bad, bad);
	c.forward.ended = empty(HG_F32, t.rows, t.y.cols);
	c.backward.y = good.backward.y;
	c.backward.dy.data = NULL;
	c.weights.p = good.weights.p;
	expect(&t, "no y but `ended`, and no dy", &c, HG_OK, bad, HG_OK);
	c = good;
	c.backward.csr_t.edge = NULL;
	expect(&t, "a bias, and no positions of edges", &c, HG_OK, bad, HG_OK);
	c.forward.of.bias.data = c.backward.of.bias.data = c.weights.of.bias.data = NULL;
	expect(&t, "no bias and no positions", &c, HG_OK, HG_OK, HG_OK);
	c.backward.of.weight = good.weights.p.data;
	expect(&t, "weights, and no positions", &c, HG_OK, bad, HG_OK);
	close_problem(&t);
}

static void epilogue_and_shared_gradients_are_checked(void)
{
	test_reseed(13);
	struct problem t = small_problem(HG_SCORE_ADD);
	const struct calls good = good_calls(&t);
	const hg_status bad = HG_ERR_INTERNAL;
	struct calls c = good;
	run_forward(&t);
	c.forward.ended = empty(HG_F32, t.rows, t.y.cols);
	c.forward.epilogue.b = normal(HG_F32, 2, t.y.cols);
	c.backward.dv.data = c.backward.dq.data;
	expect(&t, "two rows of b, and dv in a dq of fewer columns", &c, bad, bad, HG_OK);
	c.forward.epilogue.b = normal(HG_F32, 1, t.y.cols);
	c.backward = good.backward;
	c.backward.dk.data = c.backward.dq.data;
	expect(&t, "one row of b, and dk in a dq of more rows", &c, HG_OK, bad, HG_OK);
	c = good;
	c.backward.dk.data = c.backward.dv.data;
	expect(&t, "dk in a dv of more columns", &c, HG_OK, bad, HG_OK);
	close_problem(&t);
}

/* A constant that no kernel has a meaning for: f would not be a maximum, and nothing would be
 * kept. */
static void constants_are_checked(void)
{
	static const float slopes[] = {-0.1f, 1.5f, NAN}, none[] = {-0.1f, 1.0f, NAN};
	const hg_status bad = HG_ERR_INTERNAL;
	for (int kind = 0; kind < HG_SCORE_COUNT; kind++) {
		test_reseed(14);
		struct problem t = small_problem((hg_score)kind);
		t.of.dropout.step = &t.step;
		const int leaky = kind == HG_SCORE_ADD || kind == HG_SCORE_ADD_V2;
		const struct calls good = good_calls(&t);
		struct calls c = good;
		run_forward(&t);
		for (int i = 0; i < 3; i++) {
			c = good;
			c.forward.of.slope = c.backward.of.slope = c.weights.of.slope = slopes[i];
			expect(&t, "slope", &c, leaky ? bad : HG_OK, leaky ? bad : HG_OK, leaky ? bad : HG_OK);
			CHECK(!leaky ||
			      strstr(hg_context_error(t.ctx), "attention_weights: slope is ") != NULL);
			c = good;
			c.forward.of.dropout.p = c.backward.of.dropout.p = c.weights.of.dropout.p = none[i];
			expect(&t, "dropout", &c, bad, bad, HG_OK);
			CHECK(strstr(hg_context_error(t.ctx), "expected 0 <= dropout < 1 - 2^-17") != NULL);
		}
		c = good;
		c.forward.of.dropout.p = c.backward.of.dropout.p = nextafterf(1.0f - 0x1p-17f, 0.0f);
		expect(&t, "the largest dropout", &c, HG_OK, HG_OK, HG_OK);
		c.forward.of.dropout.step = c.backward.of.dropout.step = NULL;
		expect(&t, "dropout without a step", &c, bad, bad, HG_OK);
		CHECK(strstr(hg_context_error(t.ctx), "without a step") != NULL);
		close_problem(&t);
	}
}

int main(int argc, char **argv)
{
	static const hg_score kinds[] = {HG_SCORE_ADD, HG_SCORE_DOT, HG_SCORE_COSINE, HG_SCORE_ADD_V2};
	static const struct test_case cases[] = {
	    {"add", NULL, every_score_has_its_equations, &kinds[0]},
	    {"dot", NULL, every_score_has_its_equations, &kinds[1]},
	    {"cosine", NULL, every_score_has_its_equations, &kinds[2]},
	    {"add_v2", NULL, every_score_has_its_equations, &kinds[3]},
	    TEST(spread_of_scores_does_not_matter),
	    TEST(gradients_of_one_operand_are_added),
	    TEST(masked_rows_count_as_empty),
	    TEST(nan_stays_in_its_row),
	    TEST(no_edges_and_no_nodes),
	    TEST(overflow_is_flagged),
	    TEST(values_without_columns),
	    TEST(an_infinite_value_stays_in_its_column),
	    TEST(operands_are_checked),
	    TEST(results_are_checked),
	    TEST(data_is_checked),
	    TEST(epilogue_and_shared_gradients_are_checked),
	    TEST(constants_are_checked),
	};
	return RUN_TESTS(argc, argv, cases);
}
