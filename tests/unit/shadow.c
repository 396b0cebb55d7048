#include <math.h>

#include "halfgraph/shadow.h"
#include "unit/tape.h"

/* Shadow ops: the result is a half with the bits of the plain op, or there is an error that says
 * which bound failed, whatever the policy does with unproved results. */

enum { ROWS = 9, COLS = 5, HEADS = 2 };

struct operands {
	hg_var x, by, labels;
	hg_graph *graph;
};

/* log needs numbers that are known to be at least something above 0. */
static hg_var plain_log(hg_tape *t, const struct operands *o)
{
	return hg_log(t, hg_exp(t, o->x));
}
static hg_var shadow_log(hg_tape *t, const struct operands *o)
{
	return hg_shadow_log(t, hg_shadow_exp(t, o->x));
}
static hg_var plain_sqrt(hg_tape *t, const struct operands *o)
{
	return hg_sqrt(t, hg_relu(t, o->x));
}
static hg_var shadow_sqrt(hg_tape *t, const struct operands *o)
{
	return hg_shadow_sqrt(t, hg_relu(t, o->x));
}
static hg_var plain_div(hg_tape *t, const struct operands *o)
{
	return hg_div(t, o->x, o->by);
}
static hg_var shadow_div(hg_tape *t, const struct operands *o)
{
	return hg_shadow_div(t, o->x, o->by);
}
static hg_var plain_xent(hg_tape *t, const struct operands *o)
{
	return hg_softmax_xent(t, o->x, o->labels, HG_NONE);
}
static hg_var shadow_xent(hg_tape *t, const struct operands *o)
{
	return hg_shadow_softmax_xent(t, o->x, o->labels, HG_NONE);
}
static hg_var plain_edge_softmax(hg_tape *t, const struct operands *o)
{
	return hg_edge_softmax(t, o->graph, o->x);
}
static hg_var shadow_edge_softmax(hg_tape *t, const struct operands *o)
{
	return hg_shadow_edge_softmax(t, o->graph, o->x);
}

/* amax: the bound of |X| that the tape is told. inside: a bound with which the result is a half.
 * beyond: a bound with which it is not, and the error message then; 0: there is none. */
static const struct row {
	const char *name;
	/* the op and its shadow, of X alone or of several operands */
	hg_var (*of_x[2])(hg_tape *, hg_var), (*of[2])(hg_tape *, const struct operands *);
	double inside, beyond;
	const char *reach, *because;
} table[] = {
    {"exp", {hg_exp, hg_shadow_exp}, {NULL}, 11.09, 11.1, "may reach 6.62e+04", "exp of |X| 11.1"},
    {"log", {NULL}, {plain_log, shadow_log}, 7.0, 0.0, NULL, NULL},
    {"sqrt", {NULL}, {plain_sqrt, shadow_sqrt}, 65504.0, 0.0, NULL, NULL},
    {"div",
     {NULL},
     {plain_div, shadow_div},
     16000.0,
     17000.0,
     "may reach 6.8e+04",
     "|A| 1.7e+04 / |B|, which is at least 0.25"},
    {"softmax", {hg_softmax, hg_shadow_softmax}, {NULL}, 65504.0, 0.0, NULL, NULL},
    {"log_softmax",
     {hg_log_softmax, hg_shadow_log_softmax},
     {NULL},
     32750.0,
     32760.0,
     "may reach 6.55e+04",
     "2 |X| 3.28e+04 + log of 5 columns"},
    {"softmax_xent", {NULL}, {plain_xent, shadow_xent}, 65504.0, 0.0, NULL, NULL},
    {"row_sum",
     {hg_row_sum, hg_shadow_row_sum},
     {NULL},
     13000.0,
     13200.0,
     "may reach 6.6e+04",
     "5 columns x |X| 1.32e+04"},
    {"row_mean", {hg_row_mean, hg_shadow_row_mean}, {NULL}, 65504.0, 0.0, NULL, NULL},
    {"row_norm",
     {hg_row_norm, hg_shadow_row_norm},
     {NULL},
     29200.0,
     29400.0,
     "may reach 6.57e+04",
     "root of 5 columns x |X| 2.94e+04"},
    {"edge_softmax", {NULL}, {plain_edge_softmax, shadow_edge_softmax}, 65504.0, 0.0, NULL, NULL},
};
enum { OPS = sizeof table / sizeof table[0] };

static hg_var record(const struct row *op, int shadow, hg_tape *t, const struct operands *o)
{
	return op->of_x[shadow] ? op->of_x[shadow](t, o->x) : op->of[shadow](t, o);
}

static hg_policy policy_of(hg_unproved unproved)
{
	hg_policy policy = hg_policy_fp16();
	policy.unproved = unproved;
	return policy;
}

/* Numbers of magnitude 1, whose bound is said to be `amax`. Divisors are at least 0.25. */
static struct operands operands_of(struct bench *b, hg_tape *tape, int64_t rows, int64_t cols,
                                   double amax)
{
	static const float by[] = {0.25f, -4.0f, 1.0f, 0.75f, -0.5f, 3.0f, 100.0f, 1.0f, 2.0f};
	CHECK(rows <= ROWS);
	if (!b->tensors) {
		(void)random_tensor(b, HG_F16, rows, cols, 1.0);
		(void)tensor_of(b, HG_F16, rows, 1, by, HG_F32);
		(void)label_tensor(b, rows, (int32_t)(cols > 0 ? cols : 1));
		b->graph = ring(b->ctx, 3);
	}
	return (struct operands){hg_tape_input(tape, b->tensor[0], "x", amax),
	                         hg_tape_input(tape, b->tensor[1], "by", 100.0),
	                         hg_tape_input(tape, b->tensor[2], "labels", -1.0), b->graph};
}

/* Negative numbers have no root. So the root of numbers of any sign is not proved, and is no shadow
 * op, however small they are. */
static void root_needs_numbers_above_0(void)
{
	const float below[] = {4.0f, -1.0f, 0.0f, 1.0f, 2.0f, 3.0f},
	            above[] = {4.0f, 1.0f, 0.0f, 1.0f, 2.0f, 3.0f};
	for (int good = 0; good < 2; good++)
		for (int constant = 0; constant < 2; constant++) {
			struct bench b;
			bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
			const hg_tensor *numbers = tensor_of(&b, HG_F16, 2, 3, good ? above : below, HG_F32);
			hg_var x = constant ? hg_tape_input(b.tape, numbers, "x", 4.0)
			                    : hg_tape_variable(b.tape, numbers, "x");
			if (good && !constant) /* of a variable nothing is known but its magnitude */
				x = hg_relu(b.tape, x);
			const hg_var y = hg_sqrt(b.tape, x);
			CHECK(y.id >= 0);
			const struct hg__value *value = &b.tape->recording.value[hg__tape_index(b.tape, y)];
			CHECK_EQ_I(b.tape->recording.entry[value->node].node.verdict,
			           good ? HG_PROVED : HG_GUARDED);
			CHECK((value->known[HG__UNCONDITIONAL].largest < 257.0) == good);
			CHECK((hg_shadow_sqrt(b.tape, x).id >= 0) == good);
			CHECK_EQ_I(hg_tape_status(b.tape), good ? HG_OK : HG_ERR_RANGE);
			if (!good)
				CHECK_CONTAINS(hg_context_error(b.ctx), "root of numbers that may be below 0");
			bench_close(&b);
		}
}

static float *result(hg_tape *tape, hg_var y)
{
	CHECK_OK(hg_tape_compile(tape, y));
	CHECK_OK(hg_tape_forward(tape));
	return download(hg_tape_value(tape, y));
}

/* The result of bounded numbers is proved under every policy, with the bits of the plain op. */
static void is_a_half(const struct row *op, hg_unproved unproved, int64_t rows, int64_t cols)
{
	struct bench b;
	bench_open(&b, test_context(), policy_of(unproved), HG_EVAL);
	struct operands o = operands_of(&b, b.tape, rows, cols, op->inside);
	const hg_var y = record(op, 1, b.tape, &o);
	CHECK_MSG(y.id >= 0, "%s, policy %d, [%d, %d]: %s", op->name, (int)unproved, (int)rows,
	          (int)cols, hg_context_error(b.ctx));
	const struct hg__value *value = &b.tape->recording.value[hg__tape_index(b.tape, y)];
	const struct hg__node *node = &b.tape->recording.entry[value->node].node;
	CHECK_MSG(node->verdict == (node->op->traits & HG__LOSS ? HG_EXACT : HG_PROVED), "%s: %s",
	          op->name, hg_verdict_name(node->verdict));
	CHECK_EQ_I(value->dtype, node->op->traits & HG__LOSS ? HG_F32 : HG_F16);
	float *shadow = result(b.tape, y);
	hg_tape *other = NULL;
	CHECK_OK(hg_tape_create(b.params, HG_EVAL, &other));
	o = operands_of(&b, other, rows, cols, op->inside);
	const hg_var z = record(op, 0, other, &o);
	float *plain = result(other, z);
	const hg_tensor *out = hg_tape_value(other, z);
	CHECK_MSG(memcmp(shadow, plain,
	                 (size_t)(hg_tensor_rows(out) * hg_tensor_cols(out)) * sizeof *plain) == 0,
	          "%s: other bits than the plain op", op->name);
	for (int64_t i = 0; i < hg_tensor_rows(out) * hg_tensor_cols(out); i++)
		CHECK(isfinite(plain[i]));
	free(shadow);
	free(plain);
	hg_tape_free(other);
	bench_close(&b);
}

static void bounded_results_are_halves(void)
{
	for (int i = 0; i < OPS; i++)
		for (int u = HG_UNPROVED_GUARD; u <= HG_UNPROVED_REFUSE; u++) {
			is_a_half(&table[i], (hg_unproved)u, ROWS, COLS);
			if (table[i].of[0] == plain_edge_softmax) /* one row for each edge of the graph */
				continue;
			is_a_half(&table[i], (hg_unproved)u, 1, COLS);
			if (table[i].of[0] != plain_xent) /* a label has to be a class */
				is_a_half(&table[i], (hg_unproved)u, ROWS, 0);
		}
}

/* Where it is not proved, the message has the bound, the limit, and the rule the bound comes from.
 * The plain op is accepted under a policy that guards or promotes. */
static void error_names_the_bound_and_its_rule(void)
{
	for (int i = 0; i < OPS; i++)
		for (int u = HG_UNPROVED_GUARD; table[i].beyond > 0.0 && u <= HG_UNPROVED_REFUSE; u++) {
			struct bench b;
			bench_open(&b, test_context(), policy_of((hg_unproved)u), HG_TRAIN);
			const struct operands o = operands_of(&b, b.tape, ROWS, COLS, table[i].beyond);
			if (u != HG_UNPROVED_REFUSE)
				CHECK(record(&table[i], 0, b.tape, &o).id >= 0);
			hg_tape_scope(b.tape, "head");
			CHECK_MSG(record(&table[i], 1, b.tape, &o).id < 0, "%s took %g", table[i].name,
			          table[i].beyond);
			CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_RANGE);
			CHECK_CONTAINS(hg_context_error(b.ctx), table[i].name);
			CHECK_CONTAINS(hg_context_error(b.ctx), table[i].reach);
			CHECK_CONTAINS(hg_context_error(b.ctx), table[i].because);
			CHECK_CONTAINS(hg_context_error(b.ctx), "f16 holds 65504");
			CHECK_CONTAINS(hg_context_error(b.ctx), "(layer head)");
			bench_close(&b);
		}
}

/* Logarithm and quotient, where only the magnitude of the operand is known, so that it may be 0. */
static void operands_that_may_be_0_are_refused(void)
{
	for (int i = 0; i < 2; i++) {
		struct bench b;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
		const struct operands o = operands_of(&b, b.tape, ROWS, COLS, 1.0);
		const hg_var h = hg_relu(b.tape, o.x);
		CHECK((i ? hg_shadow_div(b.tape, o.x, h) : hg_shadow_log(b.tape, h)).id < 0);
		CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_RANGE);
		CHECK_CONTAINS(hg_context_error(b.ctx),
		               i ? "div: |out| may reach inf (|A| 1 / |B|, which may be 0)"
		                 : "log: |out| may reach inf (log of numbers that may be 0");
		bench_close(&b);
	}
}

/* A weight may grow. As long as it is assumed that it does not, the result is a guarded half, which
 * is accepted. */
static void assumed_bounds_are_accepted(void)
{
	struct bench b;
	bench_open(&b, test_context(), policy_of(HG_UNPROVED_REFUSE), HG_TRAIN);
	const hg_var w = hg_tape_param(b.tape, param(&b, "w", 6, 4)),
	             y = hg_shadow_row_sum(b.tape, hg_shadow_exp(b.tape, w));
	CHECK_MSG(y.id >= 0, "%s", hg_context_error(b.ctx));
	CHECK_EQ_I(b.tape->recording.entry[0].node.verdict, HG_GUARDED);
	CHECK_EQ_I(b.tape->recording.entry[1].node.verdict, HG_GUARDED);
	/* The assumption does not hold any more. A plain op would be computed in f32; the shadow op is
	 * an error. */
	int news = 0, shift = 0;
	hg_tape *again = NULL;
	CHECK_OK(hg__tape_promote(b.tape, 0, &shift, &news));
	CHECK_OK(hg_tape_create(b.params, HG_TRAIN, &again));
	CHECK(hg_shadow_exp(again, hg_tape_param(again, param(&b, "w", 6, 4))).id < 0);
	CHECK_STATUS(hg_tape_status(again), HG_ERR_RANGE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "exp: it overflowed in an earlier step");
	hg_tape_free(again);
	bench_close(&b);
}

/* Numbers that are known to keep away from 0, or to have a sign, still are after sums, means,
 * norms, roots, scaling and casts. */
static void known_facts_pass_through_ops(void)
{
	struct bench b;
	bench_open(&b, test_context(), policy_of(HG_UNPROVED_REFUSE), HG_EVAL);
	hg_tape *t = b.tape;
	const struct operands o = operands_of(&b, t, ROWS, COLS, 3.0);
	const hg_var e = hg_shadow_exp(t, o.x), sum = hg_shadow_row_sum(t, e);
	/* a softmax from its parts: at most e^3 / (5 e^-3) */
	const hg_var share = hg_shadow_div(t, e, sum);
	const hg_var lse = hg_shadow_log(t, sum),
	             root = hg_shadow_log(t, hg_shadow_sqrt(t, hg_shadow_row_mean(t, e)));
	const hg_var unit = hg_shadow_div(t, o.x, hg_shadow_row_norm(t, hg_add(t, e, e)));
	const hg_var small = hg_shadow_exp(t, hg_shadow_log_softmax(t, o.x)),
	             less = hg_shadow_exp(t, hg_scale(t, hg_relu(t, o.x), -100.0f));
	const hg_var inverse = hg_shadow_log(t, hg_shadow_softmax(t, hg_scale(t, o.x, 0.5f)));
	CHECK_OK(hg_tape_status(t));
	CHECK(inverse.id >= 0 && unit.id >= 0 && root.id >= 0);
	const struct {
		hg_var var;
		double most;
		int sign;
	} rows[] = {
	    {share, exp(6.0) / 5.0, 1}, {lse, 3.0 + log(5.0), 0}, {small, 1.0, 1}, {less, 1.0, 1}};
	for (int i = 0; i < 4; i++) {
		const struct hg__value *value = &t->recording.value[hg__tape_index(t, rows[i].var)];
		CHECK_MSG(value->known[HG__ASSUMED].largest >= rows[i].most * (1.0 - 1e-12) &&
		              value->known[HG__ASSUMED].largest <= 1.01 * rows[i].most,
		          "%d: bound %g, expected %g", i, value->known[HG__ASSUMED].largest, rows[i].most);
		CHECK_EQ_I(value->known[HG__ASSUMED].sign, rows[i].sign);
	}
	bench_close(&b);
}

/* An operand in f32 is refused by name, whether the user or the tape has made it so. A tape of
 * policy fp32 has no halves. */
static void f32_operands_are_refused_by_name(void)
{
	struct bench b;
	bench_open(&b, test_context(), policy_of(HG_UNPROVED_PROMOTE), HG_EVAL);
	const struct operands o = operands_of(&b, b.tape, ROWS, COLS, 1000.0);
	hg_tape_scope(b.tape, "gate");
	const hg_var large = hg_exp(b.tape, o.x);
	hg_tape_scope(b.tape, "head");
	CHECK(hg_shadow_softmax(b.tape, large).id < 0);
	CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_DTYPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "softmax: operand 0, gate/exp, is f32 (promoted), and "
	                                        "a shadow op reads halves (layer head)");
	bench_close(&b);
	bench_open(&b, test_context(), hg_policy_fp16(), HG_EVAL);
	const struct operands p = operands_of(&b, b.tape, ROWS, COLS, 1.0);
	CHECK(hg_shadow_div(b.tape, p.x, hg_cast(b.tape, p.by, HG_F32)).id < 0);
	CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_DTYPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "div: operand 1, cast, is f32, and");
	bench_close(&b);
	bench_open(&b, test_context(), hg_policy_fp32(), HG_EVAL);
	CHECK(hg_shadow_exp(b.tape, operands_of(&b, b.tape, ROWS, COLS, 1.0).x).id < 0);
	CHECK_STATUS(hg_tape_status(b.tape), HG_ERR_DTYPE);
	CHECK_CONTAINS(hg_context_error(b.ctx), "policy \"fp32\" keeps results in f32");
	bench_close(&b);
}

/* The gradient of a norm is the row divided by its norm, and 0 where the norm is 0. */
static void shadow_ops_have_gradients(void)
{
	static const float x[] = {3, 4, 0, 0, -5, 12}, t[] = {0, 0, 0};
	struct bench b;
	hg_policy policy = policy_of(HG_UNPROVED_REFUSE);
	policy.loss_scale.enabled = 0;
	bench_open(&b, test_context(), policy, HG_TRAIN);
	const hg_var in = hg_tape_variable(b.tape, tensor_of(&b, HG_F16, 3, 2, x, HG_F32), "x");
	const hg_var norm = hg_shadow_row_norm(b.tape, hg_scale(b.tape, in, 0.5f));
	const hg_var loss =
	    hg_mse(b.tape, norm,
	           hg_tape_input(b.tape, tensor_of(&b, HG_F16, 3, 1, t, HG_F32), "t", 0.0), HG_NONE);
	CHECK_OK(hg_tape_compile(b.tape, loss));
	CHECK_OK(hg_tape_forward(b.tape));
	CHECK_OK(hg_tape_backward(b.tape));
	float *dx = download(hg_tape_grad(b.tape, in));
	for (int i = 0; i < 6; i++) /* loss = sum of (|x| / 2)^2 / 3: dx = x / 6 */
		CHECK_WITHIN(dx[i], x[i] / 6.0f, 0x1p-8 * fabs((double)x[i]));
	free(dx);
	bench_close(&b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(bounded_results_are_halves),         TEST(error_names_the_bound_and_its_rule),
	    TEST(operands_that_may_be_0_are_refused), TEST(assumed_bounds_are_accepted),
	    TEST(known_facts_pass_through_ops),       TEST(f32_operands_are_refused_by_name),
	    TEST(shadow_ops_have_gradients),          TEST(root_needs_numbers_above_0),
	};
	return RUN_TESTS(argc, argv, cases);
}
