/* What the doctor's findings say: the headline, names that no two results share, numbers as they
 * are typed, the sum on its way, and why a remedy does not help. */
#include "halfgraph/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/typed.h"
#include "harness.h"
#include "precision/half.h"

/* A hub, node 0, that hears all others; everybody hears itself; all features are `x`. */
enum { LEAVES = 4000, NODES = LEAVES + 1, EDGES = LEAVES + NODES, WIDE = 3 };

struct clinic {
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *x;
	hg_train_data data;
	hg_train_config config;
	hg_train *train;
	hg_doctor *doctor;
	const hg_doctor_report *report;
};

static int32_t dst[EDGES], src[EDGES], label[NODES];
static float features[NODES][WIDE];
static uint8_t mask[NODES];

static void star(float x)
{
	for (int32_t i = 0; i < NODES; i++) {
		dst[i] = src[i] = i;
		label[i] = i % 2;
		mask[i] = 1;
		for (int c = 0; c < WIDE; c++)
			features[i][c] = x;
	}
	for (int32_t i = 1; i < NODES; i++) {
		dst[LEAVES + i] = 0;
		src[LEAVES + i] = i;
	}
}

static void clinic_open(struct clinic *c, const char *model, hg_policy policy, float x)
{
	memset(c, 0, sizeof *c);
	star(x);
	c->ctx = test_context();
	CHECK_OK(hg_graph_from_coo(c->ctx, NODES, NODES, EDGES, dst, src, NULL, NULL, &c->graph));
	CHECK_OK(hg_tensor_create(c->ctx, HG_F16, NODES, WIDE, &c->x));
	CHECK_OK(hg_tensor_upload(c->x, features, HG_F32));
	c->data = (hg_train_data)HG_TRAIN_DATA_INIT;
	c->data.input.graph = c->graph;
	c->data.input.x = c->x;
	c->data.labels = label;
	c->data.train_mask = mask;
	c->config = hg_train_config_default(model);
	c->config.policy = policy;
	c->config.model.hidden = 8;
	c->config.model.dropout = 0.0f;
	c->config.model.norm = HG_NORM_NONE;
	CHECK_MSG(hg_train_create(c->ctx, &c->config, &c->data, &c->train) == HG_OK, "%s",
	          hg_context_error(c->ctx));
	CHECK_OK(hg_doctor_create_train(c->train, NULL, &c->doctor));
	CHECK_OK(hg_doctor_examine(c->doctor, 0, &c->report));
}

static void clinic_close(struct clinic *c)
{
	hg_doctor_free(c->doctor);
	hg_train_free(c->train);
	hg_tensor_free(c->x);
	hg_graph_free(c->graph);
	hg_context_free(c->ctx);
}

/* ---- headlines ---- */

static void call_it(void *user, const hg_finding *f, char *name, size_t room)
{
	(void)snprintf(name, room, "%s %lld", (const char *)user, (long long)f->row);
}

static void headline_is(const hg_finding *f, char *name, const char *expected)
{
	char text[512], small[8];
	const int length = hg_finding_headline(f, name ? call_it : NULL, name, text, sizeof text);
	CHECK_STR(text, expected);
	CHECK_EQ_I(length, strlen(text));
	CHECK_EQ_I(hg_finding_headline(f, name ? call_it : NULL, name, small, sizeof small), length);
	CHECK(strlen(small) == sizeof small - 1 && strncmp(small, text, sizeof small - 1) == 0);
	CHECK_EQ_I(hg_finding_headline(f, NULL, NULL, NULL, 0) > 0, 1);
}

/* 2 x 4001 is more than f16 counts, and less than it holds; 20 x 4001 is more than it holds. */
static void a_headline_says_what_and_what_to_do(void)
{
	struct clinic c;
	char paper[] = "paper";
	clinic_open(&c, "gcn", hg_policy_fp16_naive(), 2.0f);
	CHECK(c.report->findings > 0);
	headline_is(&c.report->finding[0], NULL,
	            "fp16 sum of 4001 neighbours of node 0 is 4096, not 8002: 1953 terms lost. "
	            "Try: --precision fp16");
	headline_is(&c.report->finding[0], paper,
	            "fp16 sum of 4001 neighbours of paper 0 is 4096, not 8002: 1953 terms lost. "
	            "Try: --precision fp16");
	hg_remedy *first = c.report->finding[0].remedy;
	first[0].tried = first[1].tried = 1;
	first[1].worked = 1;
	headline_is(&c.report->finding[0], NULL,
	            "fp16 sum of 4001 neighbours of node 0 is 4096, not 8002: 1953 terms lost. "
	            "Fix: --precision fp16-discretized");
	CHECK_EQ_I(hg_finding_headline(NULL, NULL, NULL, NULL, 0), 0);
	clinic_close(&c);
	clinic_open(&c, "gcn", hg_policy_fp16_naive(), 20.0f);
	CHECK(c.report->findings > 0);
	headline_is(&c.report->finding[0], NULL,
	            "fp16 overflow: 4001 neighbours of node 0 add up to 80020. Try: --precision fp16");
	clinic_close(&c);
}

/* Where a mean is small and its running sum is not. */
static void an_accumulation_is_told_as_such(void)
{
	char text[512];
	const hg_remedy none = {.option = "", .call = "", .why = "add eps"};
	hg_remedy tried[] = {{.option = "--a", .call = "", .tried = 1},
	                     {.option = "--b", .call = "", .tried = 1}};
	hg_finding f = {.size = sizeof f,
	                .cause = HG_CAUSE_ACCUMULATION,
	                .op = "spmm",
	                .tensor = "conv0/spmm",
	                .limit = 65520.0,
	                .terms = 3007,
	                .row = 777};
	(void)hg_finding_headline(&f, NULL, NULL, text, sizeof text);
	CHECK_STR(text, "fp16 overflow while summing 3007 neighbours of node 777");
	f.remedy = tried;
	f.remedies = 2;
	(void)hg_finding_headline(&f, NULL, NULL, text, sizeof text);
	CHECK_STR(text, "fp16 overflow while summing 3007 neighbours of node 777. None of the 2 "
	                "options tried helps");
	tried[1] = none;
	(void)hg_finding_headline(&f, NULL, NULL, text, sizeof text);
	CHECK_STR(text, "fp16 overflow while summing 3007 neighbours of node 777. By hand: add eps");
	f.row_is = HG_ROW_WEIGHT;
	f.tensor = "gradient of conv0.weight";
	f.backward = 1;
	f.remedies = 0;
	(void)hg_finding_headline(&f, NULL, NULL, text, sizeof text);
	CHECK_STR(
	    text,
	    "fp16 overflow in the backward pass while summing 3007 terms for gradient of conv0.weight");
}

/* ---- names ---- */

/* A GIN has two products with weights and two norms in each layer. */
static void no_two_results_have_one_name(void)
{
	struct clinic c;
	int named = 0;
	clinic_open(&c, "gin", hg_policy_fp16(), 1.0f);
	for (int i = 0; i < c.report->tensors; i++) {
		const char *name = c.report->tensor[i].name;
		named |= strcmp(name, "conv0/linear (mlp2.weight)") == 0;
		for (int k = 0; k < i; k++)
			CHECK_MSG(strcmp(name, c.report->tensor[k].name) != 0, "two are called %s", name);
	}
	CHECK(named);
	clinic_close(&c);
}

static void a_chain_begins_with_its_finding(void)
{
	struct clinic c;
	clinic_open(&c, "gin", hg_policy_fp16_naive(), 2.0f);
	CHECK(c.report->findings > 0);
	for (int i = 0; i < c.report->findings; i++) {
		const hg_finding *f = &c.report->finding[i];
		CHECK(f->links > 3);
		CHECK_STR(f->chain[0].name, f->tensor);
		CHECK_STR(f->op_words, "sum over neighbours");
		for (int k = 0; k < f->links; k++)
			for (int l = 0; l < k; l++)
				CHECK_MSG(strcmp(f->chain[k].name, f->chain[l].name) != 0,
				          "two links are called %s", f->chain[k].name);
	}
	clinic_close(&c);
}

/* ---- the sum on its way ---- */

/* 4001 twos: f16 counts to 4096 by twos. */
static void a_sum_is_kept_on_its_way(void)
{
	struct clinic c;
	int there = 0;
	clinic_open(&c, "gcn", hg_policy_fp16_naive(), 2.0f);
	CHECK(c.report->findings > 0);
	const hg_finding *f = &c.report->finding[0];
	CHECK(f->runnings > 100 && f->runnings <= 200);
	for (int i = 0; i < f->runnings; i++) {
		const hg_running *r = &f->running[i];
		CHECK(i ? r->taken > r[-1].taken : r->taken == 1);
		CHECK(r->wide == 2.0 * (double)r->taken);
		CHECK(r->half == fmin(2.0 * (double)r->taken, 4096.0));
		there |= r->taken == f->partial_at;
	}
	CHECK(there);
	CHECK_EQ_I(f->running[f->runnings - 1].taken, f->terms);
	CHECK(f->running[f->runnings - 1].half == f->got &&
	      f->running[f->runnings - 1].wide == f->wide);
	clinic_close(&c);
}

/* ---- numbers as they are typed ---- */

static void numbers_are_as_typed(void)
{
	static const char *const typed[] = {"0.001",    "0.1",    "0.005", "3e-07", "1048576", "1500",
	                                    "16000000", "0.3333", "1e+30", "65504", "0"};
	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		char text[HG__TYPED];
		CHECK_STR(hg__typed(strtof(typed[i], NULL), text), typed[i]);
		CHECK(hg__typed_value(strtof(typed[i], NULL)) == strtod(typed[i], NULL));
	}
	for (int i = 0; i < 100000; i++) {
		char text[HG__TYPED];
		const float x = (float)ldexp(test_uniform(), (int)test_below(200) - 100);
		CHECK_MSG(strtof(hg__typed(x, text), NULL) == x, "%s is not %.9g", text, (double)x);
	}
}

/* ---- of evaluations ---- */

static void a_fault_of_evaluations_says_so(void)
{
	hg_finding f = {.size = sizeof f,
	                .cause = HG_CAUSE_ZERO,
	                .zero = HG_ZERO_VARIANCE,
	                .evaluation = 1,
	                .tensor = "conv1/batch_norm",
	                .grown = ""};
	char line[200];
	(void)hg_finding_headline(&f, NULL, NULL, line, sizeof line);
	CHECK_STR(line, "In evaluation: Norm of a constant: conv1/batch_norm at node 0");
	f.evaluation = 0;
	(void)hg_finding_headline(&f, NULL, NULL, line, sizeof line);
	CHECK_STR(line, "Norm of a constant: conv1/batch_norm at node 0");
}

/* ---- why a remedy does not help ---- */

/* 400 x 4001 is beyond f16 however it is added up, and its mean is large for the next layer. */
static void a_remedy_that_fails_says_why(void)
{
	struct clinic c;
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	int failed = 0;
	clinic_open(&c, "gcn", hg_policy_fp16_naive(), 400.0f);
	CHECK(c.report->findings > 0);
	trial.config = &c.config;
	trial.data = &c.data;
	trial.steps = 3;
	CHECK_OK(hg_doctor_try(c.ctx, &trial, c.report->finding, 1));
	const hg_finding *f = &c.report->finding[0];
	for (int i = 0; i < f->remedies; i++) {
		const hg_remedy *r = &f->remedy[i];
		test_note("%s: %s%s", r->option, r->worked ? "trains" : "does not help: ", r->failure);
		CHECK_EQ_I(*r->failure != 0, r->tried && !r->worked);
		failed += r->tried && !r->worked;
	}
	CHECK(failed > 0);
	clinic_close(&c);
}

/* A rate of 0, nearly, leaves the loss where it was: that is no training. */
static void a_loss_that_rests_is_no_success(void)
{
	struct clinic c;
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	hg_remedy remedy[] = {{.option = "--lr 0.001", .call = "", .why = ""},
	                      {.option = "--lr 1e-30", .call = "", .why = ""}};
	const hg_finding f = {.size = sizeof f, .remedy = remedy, .remedies = 2};
	clinic_open(&c, "gcn", hg_policy_fp32(), 1.0f);
	trial.config = &c.config;
	trial.data = &c.data;
	trial.steps = 5;
	CHECK_OK(hg_doctor_try(c.ctx, &trial, &f, 1));
	for (int i = 0; i < 2; i++)
		test_note("%s: %.9g to %.9g, %s", remedy[i].option, remedy[i].loss_first,
		          remedy[i].loss_last, remedy[i].failure);
	CHECK(remedy[0].tried && remedy[0].worked && !*remedy[0].failure);
	CHECK(remedy[1].tried && !remedy[1].worked);
	CHECK_STR(remedy[1].failure, "the loss does not change");
	clinic_close(&c);
}

/* What has to be mended by hand is there in every run: the options of another finding are not said
 * to fail for it. */
static void nothing_is_tried_beside_what_no_option_mends(void)
{
	struct clinic c;
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	hg_remedy hand = {.option = "", .call = "", .why = ""};
	hg_remedy lr = {.option = "--lr 0.001", .call = "", .why = ""};
	hg_finding f[] = {{.size = sizeof *f, .tensor = "conv0.bias", .remedy = &hand, .remedies = 1},
	                  {.size = sizeof *f, .tensor = "conv0/spmm", .remedy = &lr, .remedies = 1}};
	clinic_open(&c, "gcn", hg_policy_fp32(), 1.0f);
	trial.config = &c.config;
	trial.data = &c.data;
	trial.steps = 5;
	CHECK_OK(hg_doctor_try(c.ctx, &trial, f, 2));
	CHECK(!lr.tried && !lr.worked);
	CHECK_STR(lr.failure, "conv0.bias has to be fixed first");
	f[0].evaluation = 1; /* a run of training does not meet it */
	*lr.failure = 0;
	CHECK_OK(hg_doctor_try(c.ctx, &trial, f, 2));
	CHECK(lr.tried && lr.worked && !*lr.failure);
	clinic_close(&c);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_headline_says_what_and_what_to_do),
	    TEST(an_accumulation_is_told_as_such),
	    TEST(no_two_results_have_one_name),
	    TEST(a_chain_begins_with_its_finding),
	    TEST(a_sum_is_kept_on_its_way),
	    TEST(numbers_are_as_typed),
	    TEST(a_fault_of_evaluations_says_so),
	    TEST(a_remedy_that_fails_says_why),
	    TEST(a_loss_that_rests_is_no_success),
	    TEST(nothing_is_tried_beside_what_no_option_mends),
	};
	return RUN_TESTS(argc, argv, cases);
}
