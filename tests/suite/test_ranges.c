#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/range_rule.h"
#include "core/context.h"
#include "graphs.h"
#include "halfgraph/ops_graph.h"
#include "kernels/kernels.h"
#include "precision/half.h"
#include "suite/ranges.h"

/* Text such as "Y 1.00, dX0 0.98": the largest measured / bound of each result. */
static const char *reached(const struct ranges_score *score, char *text, size_t size)
{
	static const char *const name[RANGES_RESULTS] = {"dX0", "dX1", "dX2", "dX3", "dX4", "dX5", "Y"};
	size_t length = 0;
	text[0] = 0;
	for (int i = 0; i < RANGES_RESULTS; i++)
		if (score->reached[i] >= 0.0)
			length += (size_t)snprintf(text + length, size - length, "%s%s %.2f",
			                           length ? ", " : "", name[i], score->reached[i]);
	return text;
}

/* With fewer cases than this, it may be that nothing comes near a bound. */
#define ENOUGH 10000

/* A case for each op of the table. No stored result exceeds the bound that the tape states. No
 * bound of a linear op is far above a result whose terms all line up, and no bound of any op is so
 * large that no result ever comes near it. */
static void rules_hold(const void *item)
{
	const struct hg__op *op = item;
	hg_context *ctx = test_context();
	struct ranges_score score = {0};
	char text[128];
	ranges_run(ctx, op, ranges_count(ctx), &score);
	test_note("%lld cases, %lld bounds: measured/bound <= %.6f; %.1f %% unknown, %.1f %% of the "
	          "results proved; reached %s; %s%.3f",
	          (long long)score.cases, (long long)score.claims, score.tightest,
	          100.0 * (double)score.unknown / (double)score.claims,
	          100.0 * (double)score.proved / (double)score.cases,
	          reached(&score, text, sizeof text),
	          score.lined_up ? "lined up, bound/measured <= " : "not linear ", score.loosest);
	hg_context_free(ctx);
	CHECK_MSG(score.tightest <= 1, "%s: measured/bound = %.6f: %s", op->name, score.tightest,
	          score.where);
	CHECK_MSG(score.wrong == 0, "%s: %lld results nearer to 0 than is claimed, or of another sign",
	          op->name, (long long)score.wrong);
	CHECK_MSG(score.cramped == 0, "%s: %lld results are proved, and told to have no headroom",
	          op->name, (long long)score.cramped);
	CHECK_MSG(score.loosest <= RANGES_LOOSE, "%s: bound/measured = %.3f: %s", op->name,
	          score.loosest, score.loose);
	for (int i = 0; i < RANGES_RESULTS && score.cases >= ENOUGH; i++)
		CHECK_MSG(score.reached[i] < 0.0 || score.reached[i] >= 1.0 / RANGES_LOOSE,
		          "%s: a bound that nothing comes near: reached %s", op->name, text);
}

/* ---- the largest numbers whose discretized mean is proved ---- */

/* Records and runs a mean over a hub with `degree` neighbours, each of them x. Returns its
 * verdict. */
static hg_verdict star(hg_context *ctx, hg_params *params, int64_t degree, hg_half x,
                       double *result)
{
	enum { MOST = 4096 };
	hg_half host[MOST];
	hg_graph *graph = coo_graph(ctx, coo_fan_in(1, degree));
	hg_tensor *features = NULL;
	hg_tape *tape = NULL;
	for (int64_t i = 0; i < degree; i++)
		host[i] = x;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, degree, 1, &features));
	CHECK_OK(hg_tensor_upload(features, host, HG_F16));
	CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
	const hg_var y = hg_spmm_mean(tape, graph, hg_tape_input(tape, features, "x", -1.0));
	CHECK_OK(hg_tape_compile(tape, y));
	CHECK_OK(hg_tape_forward(tape));
	hg_half out = 0;
	CHECK_OK(hg_tensor_download(hg_tape_value(tape, y), &out, HG_F16));
	*result = (double)hg_half_to_float(out);
	const hg_verdict verdict = tape->recording.entry[0].node.verdict;
	hg_tape_free(tape);
	hg_tensor_free(features);
	hg_graph_free(graph);
	return verdict;
}

/* The largest half whose mean is proved: those below are, those above are not. */
static hg_half edge(hg_context *ctx, hg_params *params, int64_t degree)
{
	hg_half low = 0, high = 0x7BFF;
	double result = 0;
	while (high - low > 1) {
		const hg_half middle = (hg_half)((low + high) / 2);
		const hg_verdict verdict = star(ctx, params, degree, middle, &result);
		CHECK_MSG(verdict != HG_PROVED || isfinite(result),
		          "a mean of %d times %g is proved, and comes out as %g", (int)degree,
		          (double)hg_half_to_float(middle), result);
		*(verdict == HG_PROVED ? &low : &high) = middle;
	}
	return low;
}

/* batch * amax * weight must be below 65520. With full batches of 64 the largest number is 1023.5,
 * however long the row is. Just below it the mean is proved and finite; just above it is not
 * proved. */
static void discretized_mean_is_proved_up_to_its_limit(void)
{
	hg_context *ctx = test_context();
	const hg_policy policy = hg_policy_fp16_discretized();
	hg_params *params = NULL;
	double result = 0;
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	for (int64_t degree = 64; degree <= 4096; degree = 2 * degree + (degree < 1000)) {
		CHECK_WITHIN(hg_half_to_float(edge(ctx, params, degree)), 1023.5, 0);
		CHECK(star(ctx, params, degree, hg_half_from_double(1024.0), &result) != HG_PROVED);
	}
	for (int64_t degree = 2; degree < HG_BATCH_EDGES;
	     /* Shorter rows overflow at the next half, although their exact sum may be less than
	      * 65520. */
	     degree++) {
		const hg_half last = edge(ctx, params, degree);
		const double exact = (double)degree * (double)hg_half_to_float(last);
		(void)star(ctx, params, degree, (hg_half)(last + 1), &result);
		CHECK_MSG(!isfinite(result), "a mean of %d times %g is not proved, and comes out as %g",
		          (int)degree, (double)hg_half_to_float((hg_half)(last + 1)), result);
		CHECK_MSG(exact > 0.96 * 65520.0, "%d terms of %g are the most that is proved", (int)degree,
		          (double)hg_half_to_float(last));
	}
	hg_params_free(params);
	hg_context_free(ctx);
}

/* ---- the suite itself is tested: it must find wrong rules ---- */

/* A rule with a mistake, which takes the place of the rule of the op of this name. */
struct mistake {
	const struct hg__op *op;
	struct hg__known (*range)(const struct hg__range *r, struct hg__derivation *how);
	void (*range_back)(const struct hg__range *r, struct hg__gradients *grad);
};

static const struct hg__op *right(const struct hg__range *r)
{
	size_t count = 0, i = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	while (strcmp(ops[i]->name, r->node->op->name) != 0)
		i++;
	return ops[i];
}

static struct hg__known half_of_it(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	out.largest /= 2.0;
	return out;
}

static void half_of_it_back(const struct hg__range *r, struct hg__gradients *grad)
{
	right(r)->range_back(r, grad);
	grad->largest[0] /= 2.0;
}

static void half_of_the_other_back(const struct hg__range *r, struct hg__gradients *grad)
{
	right(r)->range_back(r, grad);
	grad->largest[1] /= 2.0;
}

static struct hg__known ten_times_it(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	out.largest *= 10.0;
	return out;
}

static struct hg__known no_rounding(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	how->rounding.depth = 0.0;
	return out;
}

static struct hg__known nothing_on_the_way(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	how->rounding.inner = 0.0;
	return out;
}

static struct hg__known no_partial_sums(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	how->rounding.sums.term = 0.0;
	return out;
}

static struct hg__known nothing_near_zero(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	how->rounding.sums.tiny = 0.0;
	return out;
}

/* The rule of a root that ignores that its operand may be negative. */
static struct hg__known a_root_of_anything(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	out.largest = sqrt(r->in[0].largest);
	return out;
}

/* The rule ignores halves that are larger than the gradient they lead to. */
static void no_partial_sums_back(const struct hg__range *r, struct hg__gradients *grad)
{
	right(r)->range_back(r, grad);
	grad->rounding.sums.term = grad->rounding.sums.whole = 0.0;
}

static struct hg__known it_is_finite(const struct hg__range *r, struct hg__derivation *how)
{
	struct hg__known out = right(r)->range(r, how);
	out.largest = 1.0;
	return out;
}

static void must_be_caught(const void *item)
{
	const struct mistake *mistake = item;
	hg_context *ctx = test_context();
	struct hg__op wrong = *mistake->op;
	struct ranges_score score = {0};
	if (mistake->range)
		wrong.range = mistake->range;
	if (mistake->range_back)
		wrong.range_back = mistake->range_back;
	while (score.tightest <= 1 && score.loosest <= RANGES_LOOSE && score.cases < 100000)
		ranges_run(ctx, &wrong, 1000, &score);
	test_note("caught after %lld cases at most, measured/bound %.3g, bound/measured %.3g: %s",
	          (long long)score.cases, score.tightest, score.loosest,
	          score.tightest > 1 ? score.where : score.loose);
	hg_context_free(ctx);
	CHECK(score.tightest > 1 || score.loosest > RANGES_LOOSE);
}

static const struct {
	const char *name;
	struct mistake mistake;
} mistakes[] = {
    {"half_a_bound_is_caught", {&hg__op_spmm, half_of_it, NULL}},
    {"half_of_a_mean_is_caught", {&hg__op_row_mean, half_of_it, NULL}},
    {"half_of_a_norm_is_caught", {&hg__op_batch_norm, half_of_it, NULL}},
    {"half_of_a_chain_is_caught", {&hg__op_spmm_epilogue, half_of_it, NULL}},
    {"half_a_gradient_is_caught", {&hg__op_linear, NULL, half_of_it_back}},
    {"half_of_a_weight_gradient_is_caught", {&hg__op_linear, NULL, half_of_the_other_back}},
    {"half_of_a_softmax_gradient_is_caught", {&hg__op_softmax, NULL, half_of_it_back}},
    {"half_of_an_attention_is_caught", {&hg__op_attention, half_of_it, NULL}},
    {"half_of_an_attention_with_an_epilogue_is_caught",
     {&hg__op_attention_epilogue, half_of_it, NULL}},
    {"half_of_an_attention_gradient_is_caught", {&hg__op_attention, NULL, half_of_it_back}},
    {"half_of_a_source_gradient_is_caught", {&hg__op_attention, NULL, half_of_the_other_back}},
    {"loose_bound_is_caught", {&hg__op_scale, ten_times_it, NULL}},
    {"forgotten_rounding_is_caught", {&hg__op_add, no_rounding, NULL}},
    {"forgotten_sum_before_a_mean_is_caught", {&hg__op_readout, nothing_on_the_way, NULL}},
    {"forgotten_partial_sums_are_caught", {&hg__op_spmm, no_partial_sums, NULL}},
    {"forgotten_underflow_is_caught", {&hg__op_spmm, nothing_near_zero, NULL}},
    {"forgotten_partial_sums_of_a_gradient_are_caught", {&hg__op_spmm, NULL, no_partial_sums_back}},
    {"root_below_zero_is_caught", {&hg__op_sqrt, a_root_of_anything, NULL}},
    {"division_by_zero_is_caught", {&hg__op_div, it_is_finite, NULL}},
};

int main(int argc, char **argv)
{
	enum { MOST_CASES = 256, MISTAKES = sizeof mistakes / sizeof mistakes[0] };
	struct test_case cases[MOST_CASES];
	size_t ops = 0;
	const struct hg__op *const *op = hg__op_list(&ops);
	int count = 0;
	if (ops + MISTAKES + 1 > MOST_CASES)
		return 1;
	for (size_t i = 0; i < ops; i++)
		cases[count++] = (struct test_case){op[i]->name, 0, rules_hold, op[i]};
	cases[count++] = (struct test_case)TEST(discretized_mean_is_proved_up_to_its_limit);
	for (int i = 0; i < MISTAKES; i++)
		cases[count++] =
		    (struct test_case){mistakes[i].name, 0, must_be_caught, &mistakes[i].mistake};
	return test_main(argc, argv, cases, count);
}
