/* What findings say: headlines, names of results, the points of a running sum, numbers as they are
 * typed, and why a remedy does not work. */
#include "halfgraph/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/typed.h"
#include "planted.h"
#include "precision/half.h"

/* A run on a star: node 0 has edges from all 4000 others, and every node has one from itself. All
 * features are the same. */
enum { LEAVES = 4000, WIDTH = 3 };

struct star_run {
	struct planted task;
	struct planted_run run;
	hg_train_config config;
	hg_doctor *doctor;
	const hg_doctor_report *report; /* of the first step */
};

static void star_run_open(struct star_run *r, const char *model, hg_policy policy, float x)
{
	const struct planted_features features = {.noise = 0.0};
	struct coo edges = coo_star_loops(LEAVES + 1);
	coo_add(&edges, 0, 0);
	*r = (struct star_run){.task = planted_make(edges, WIDTH, 2, features)};
	for (int64_t i = 0; i < (LEAVES + 1) * WIDTH; i++)
		r->task.x[i] = x;
	planted_open(&r->run, test_context(), &r->task, HG_F16, 0);
	r->config = hg_train_config_default(model);
	r->config.policy = policy;
	r->config.model.hidden = 8;
	r->config.model.dropout = 0.0f;
	r->config.model.norm = HG_NORM_NONE;
	planted_begin(&r->run, &r->config);
	CHECK_OK(hg_doctor_create_train(r->run.train, NULL, &r->doctor));
	CHECK_OK(hg_doctor_examine(r->doctor, 0, &r->report));
}

static void star_run_close(struct star_run *r)
{
	hg_doctor_free(r->doctor);
	planted_close(&r->run);
	planted_free(&r->task);
}

static hg_doctor_trial trial_of(const struct star_run *r, int64_t steps)
{
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	trial.config = &r->config;
	trial.data = &r->run.data;
	trial.steps = steps;
	return trial;
}

/* ---- headlines ---- */

static void name_row(void *user, const hg_finding *f, char *name, size_t room)
{
	(void)snprintf(name, room, "%s %lld", (const char *)user, (long long)f->row);
}

/* name: what rows are called; NULL: by their default name. A headline that does not fit is cut. */
static void expect_headline(const hg_finding *f, char *name, const char *expected)
{
	char text[512], small[8];
	const int length = hg_finding_headline(f, name ? name_row : NULL, name, text, sizeof text);
	CHECK_STR(text, expected);
	CHECK_EQ_I(length, strlen(text));
	CHECK_EQ_I(hg_finding_headline(f, name ? name_row : NULL, name, small, sizeof small), length);
	CHECK(strlen(small) == sizeof small - 1 && strncmp(small, text, sizeof small - 1) == 0);
	CHECK_EQ_I(hg_finding_headline(f, NULL, NULL, NULL, 0) > 0, 1);
}

/* 2 x 4001 fits f16, but its partial sums ignore terms; 20 x 4001 does not fit. */
static void headline_says_what_happened_and_what_to_do(void)
{
	struct star_run r;
	char paper[] = "paper";
	star_run_open(&r, "gcn", hg_policy_fp16_naive(), 2.0f);
	CHECK(r.report->findings > 0);
	expect_headline(&r.report->finding[0], NULL,
	                "fp16 sum of 4001 neighbours of node 0 is 4096, not 8002: 1953 terms lost. "
	                "Try: --precision fp16");
	expect_headline(&r.report->finding[0], paper,
	                "fp16 sum of 4001 neighbours of paper 0 is 4096, not 8002: 1953 terms lost. "
	                "Try: --precision fp16");
	hg_remedy *first = r.report->finding[0].remedy;
	first[0].tried = first[1].tried = 1;
	first[1].worked = 1;
	expect_headline(&r.report->finding[0], NULL,
	                "fp16 sum of 4001 neighbours of node 0 is 4096, not 8002: 1953 terms lost. "
	                "Fix: --precision fp16-discretized");
	CHECK_EQ_I(hg_finding_headline(NULL, NULL, NULL, NULL, 0), 0);
	star_run_close(&r);
	star_run_open(&r, "gcn", hg_policy_fp16_naive(), 20.0f);
	CHECK(r.report->findings > 0);
	expect_headline(
	    &r.report->finding[0], NULL,
	    "fp16 overflow: 4001 neighbours of node 0 add up to 80020. Try: --precision fp16");
	star_run_close(&r);
}

static void headline_of_an_accumulation(void)
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

static void headline_of_an_evaluation(void)
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

/* ---- names ---- */

/* A layer of a GIN has two products with weights and two norms. */
static void no_two_results_have_the_same_name(void)
{
	struct star_run r;
	int named = 0;
	star_run_open(&r, "gin", hg_policy_fp16(), 1.0f);
	for (int i = 0; i < r.report->tensors; i++) {
		const char *name = r.report->tensor[i].name;
		named |= strcmp(name, "conv0/linear (mlp2.weight)") == 0;
		for (int k = 0; k < i; k++)
			CHECK_MSG(strcmp(name, r.report->tensor[k].name) != 0, "two are called %s", name);
	}
	CHECK(named);
	star_run_close(&r);
}

static void chain_begins_with_its_finding(void)
{
	struct star_run r;
	star_run_open(&r, "gin", hg_policy_fp16_naive(), 2.0f);
	CHECK(r.report->findings > 0);
	for (int i = 0; i < r.report->findings; i++) {
		const hg_finding *f = &r.report->finding[i];
		CHECK(f->links > 3);
		CHECK_STR(f->chain[0].name, f->tensor);
		CHECK_STR(f->op_words, "sum over neighbours");
		for (int k = 0; k < f->links; k++)
			for (int l = 0; l < k; l++)
				CHECK_MSG(strcmp(f->chain[k].name, f->chain[l].name) != 0,
				          "two links are called %s", f->chain[k].name);
	}
	star_run_close(&r);
}

/* ---- the running sum ---- */

/* 4001 twos: a naive f16 sum grows by 2 until 4096, and then ignores them. */
static void points_of_a_running_sum_are_kept(void)
{
	struct star_run r;
	int there = 0;
	star_run_open(&r, "gcn", hg_policy_fp16_naive(), 2.0f);
	CHECK(r.report->findings > 0);
	const hg_finding *f = &r.report->finding[0];
	CHECK(f->runnings > 100 && f->runnings <= 200);
	for (int i = 0; i < f->runnings; i++) {
		const hg_running *p = &f->running[i];
		CHECK(i ? p->taken > p[-1].taken : p->taken == 1);
		CHECK(p->wide == 2.0 * (double)p->taken);
		CHECK(p->half == fmin(2.0 * (double)p->taken, 4096.0));
		there |= p->taken == f->partial_at;
	}
	CHECK(there);
	CHECK_EQ_I(f->running[f->runnings - 1].taken, f->terms);
	CHECK(f->running[f->runnings - 1].half == f->got &&
	      f->running[f->runnings - 1].wide == f->wide);
	star_run_close(&r);
}

/* ---- numbers as they are typed ---- */

static void numbers_are_written_as_typed(void)
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

/* ---- why a remedy does not work ---- */

/* 400 x 4001 does not fit f16 in any way of summing, and its mean is large for the next layer. */
static void failed_remedy_says_why(void)
{
	struct star_run r;
	int failed = 0;
	star_run_open(&r, "gcn", hg_policy_fp16_naive(), 400.0f);
	CHECK(r.report->findings > 0);
	const hg_doctor_trial trial = trial_of(&r, 3);
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, r.report->finding, 1));
	const hg_finding *f = &r.report->finding[0];
	for (int i = 0; i < f->remedies; i++) {
		const hg_remedy *m = &f->remedy[i];
		test_note("%s: %s%s", m->option, m->worked ? "trains" : "does not help: ", m->failure);
		CHECK_EQ_I(*m->failure != 0, m->tried && !m->worked);
		failed += m->tried && !m->worked;
	}
	CHECK(failed > 0);
	star_run_close(&r);
}

/* At a learning rate of nearly 0 the loss does not change, so the run has not trained. */
static void constant_loss_is_no_success(void)
{
	struct star_run r;
	hg_remedy remedy[] = {{.option = "--lr 0.001", .call = "", .why = ""},
	                      {.option = "--lr 1e-30", .call = "", .why = ""}};
	const hg_finding f = {.size = sizeof f, .remedy = remedy, .remedies = 2};
	star_run_open(&r, "gcn", hg_policy_fp32(), 1.0f);
	const hg_doctor_trial trial = trial_of(&r, 5);
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, &f, 1));
	for (int i = 0; i < 2; i++)
		test_note("%s: %.9g to %.9g, %s", remedy[i].option, remedy[i].loss_first,
		          remedy[i].loss_last, remedy[i].failure);
	CHECK(remedy[0].tried && remedy[0].worked && !*remedy[0].failure);
	CHECK(remedy[1].tried && !remedy[1].worked);
	CHECK_STR(remedy[1].failure, "the loss does not change");
	star_run_close(&r);
}

/* A fault that has to be fixed by hand is in every run, so the options of other findings are not
 * tried. Runs do not meet faults of evaluations. */
static void nothing_is_tried_if_no_option_can_fix_a_finding(void)
{
	struct star_run r;
	hg_remedy hand = {.option = "", .call = "", .why = ""};
	hg_remedy lr = {.option = "--lr 0.001", .call = "", .why = ""};
	hg_finding f[] = {{.size = sizeof *f, .tensor = "conv0.bias", .remedy = &hand, .remedies = 1},
	                  {.size = sizeof *f, .tensor = "conv0/spmm", .remedy = &lr, .remedies = 1}};
	star_run_open(&r, "gcn", hg_policy_fp32(), 1.0f);
	const hg_doctor_trial trial = trial_of(&r, 5);
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 2));
	CHECK(!lr.tried && !lr.worked);
	CHECK_STR(lr.failure, "conv0.bias has to be fixed first");
	f[0].evaluation = 1;
	*lr.failure = 0;
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 2));
	CHECK(lr.tried && lr.worked && !*lr.failure);
	star_run_close(&r);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(headline_says_what_happened_and_what_to_do),
	    TEST(headline_of_an_accumulation),
	    TEST(headline_of_an_evaluation),
	    TEST(no_two_results_have_the_same_name),
	    TEST(chain_begins_with_its_finding),
	    TEST(points_of_a_running_sum_are_kept),
	    TEST(numbers_are_written_as_typed),
	    TEST(failed_remedy_says_why),
	    TEST(constant_loss_is_no_success),
	    TEST(nothing_is_tried_if_no_option_can_fix_a_finding),
	};
	return RUN_TESTS(argc, argv, cases);
}
