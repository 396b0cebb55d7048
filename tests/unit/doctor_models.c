/* A doctor beside training runs: models that are healthy have no finding, and the run keeps every
 * bit, whether it is examined or not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit/doctor_run.h"
#include "unit/faulty.h"

/* ---- runs that are examined keep every bit ---- */

static void expect_same_param(hg_param *a, hg_param *b)
{
	const hg_tensor *x = hg_param_master(a), *y = hg_param_master(b);
	const size_t bytes = (size_t)(hg_tensor_rows(x) * hg_tensor_cols(x)) * sizeof(float);
	float *u = malloc(bytes), *v = malloc(bytes);
	CHECK(u && v);
	CHECK_OK(hg_tensor_download(x, u, HG_F32));
	CHECK_OK(hg_tensor_download(y, v, HG_F32));
	CHECK_MSG(memcmp(u, v, bytes) == 0, "%s differs", hg_param_name(a));
	free(u);
	free(v);
}

static void expect_same_run(const struct doctor_run *a, const struct doctor_run *b)
{
	hg_params *p = hg_train_params(a->run.train), *q = hg_train_params(b->run.train);
	for (int64_t i = 0; i < hg_params_count(p); i++)
		expect_same_param(hg_params_at(p, i), hg_params_at(q, i));
	CHECK(memcmp(a->loss, b->loss, sizeof a->loss) == 0);
}

static void healthy_models_have_no_finding_and_keep_their_bits(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized", "fp16-naive"};
	struct planted task = task_make();
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int k = 0; k < 8; k++) {
			const hg_train_config c = config_of(*model, policies[k / 2]);
			struct doctor_run plain, examined;
			doctor_run_open(&plain, &task, HG_F32, k % 2);
			doctor_run_open(&examined, &task, HG_F32, k % 2);
			examined.every = TEST_SHARE(13, 3);
			doctor_run_train(&plain, c, TEST_SHARE(40, 10));
			doctor_run_train(&examined, c, TEST_SHARE(40, 10));
			CHECK_EQ_I(examined.examinations, 3);
			CHECK_MSG(examined.findings == 0, "%s %s %s: %d findings, first: %s", *model,
			          policies[k / 2], k % 2 ? "sparse" : "dense", examined.findings,
			          examined.sentence);
			expect_same_run(&plain, &examined);
			doctor_run_close(&examined);
			doctor_run_close(&plain);
		}
	planted_free(&task);
}

/* A loss scale that is far too high: the first steps are skipped, and each is examined
 * afterwards. */
static void skipped_steps_are_examined_afterwards(void)
{
	struct planted task = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	c.policy.loss_scale.init_scale = c.policy.loss_scale.max_scale;
	struct doctor_run plain, examined;
	doctor_run_open(&plain, &task, HG_F32, 0);
	doctor_run_open(&examined, &task, HG_F32, 0);
	examined.examine_skipped = 1;
	doctor_run_train(&plain, c, 12);
	doctor_run_train(&examined, c, 12);
	test_note("%d examinations: %s", examined.examinations, examined.sentence);
	CHECK(examined.examinations > 0 && examined.findings >= examined.examinations);
	CHECK(examined.first.cause == HG_CAUSE_LOSS_SCALE && examined.first.backward &&
	      examined.first.step == 0 && examined.first.scale == 16777216.0);
	expect_same_run(&plain, &examined);
	doctor_run_close(&examined);
	doctor_run_close(&plain);
	planted_free(&task);
}

/* Naive f16 sums of 3000 positive numbers overflow, or ignore addends. */
static void naive_sum_of_a_hub_is_found(void)
{
	struct planted task = task_with_hub();
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F32, 0);
	r.every = 1;
	doctor_run_train(&r, config_of("gin", "fp16-naive"), 6);
	test_note("%s", r.sentence);
	CHECK(r.findings > 0);
	CHECK(r.first.row == 0 && r.first.row_is == HG_ROW_NODE && r.first.terms >= HUB);
	CHECK(r.first.cause == HG_CAUSE_SWAMPING || r.first.cause == HG_CAUSE_ACCUMULATION);
	doctor_run_close(&r);
	planted_free(&task);
}

/* ---- evaluations ---- */

static const hg_doctor_report *examine_evaluation(struct doctor_run *r)
{
	const hg_doctor_report *report = NULL;
	CHECK_OK(hg_doctor_examine_evaluation(r->doctor, &report));
	return report;
}

static void set_column(hg_params *params, const char *name, int col, float value)
{
	hg_param *p = hg_params_find(params, name);
	float values[64];
	CHECK(p != NULL && hg_tensor_cols(hg_param_master(p)) <= 64);
	CHECK_OK(hg_tensor_download(hg_param_master(p), values, HG_F32));
	values[col] = value;
	CHECK_OK(hg_param_set(p, values));
}

/* No option can change a statistic, so the only remedy has neither an option nor a call. */
static void expect_statistic(const hg_finding *f, const char *name, float value)
{
	test_note("%s", f->sentence);
	CHECK_MSG(f->cause == HG_CAUSE_INPUT, "%s %g", name, (double)value);
	CHECK_STR(f->tensor, name);
	CHECK_STR(f->op, "batch_norm");
	CHECK_STR(f->layer, "conv1");
	CHECK(f->evaluation && !f->backward && f->col == 5 && f->bad == 1);
	CHECK(isnan(value) ? isnan(f->got) : f->got == (double)value);
	CHECK_EQ_I(f->remedies, 1);
	CHECK_STR(f->remedy[0].option, "");
	CHECK_STR(f->remedy[0].call, "");
}

/* Running statistics that no column can have: training does not read them, and evaluations do. The
 * replay of a step finds all of them. An evaluation finds those that are impossible, and those that
 * are far from what the norm reads and have made its result infinite. */
static void running_statistics_are_examined(void)
{
	static const struct {
		const char *name;
		float value;
		int fp16, fp32; /* does an evaluation find it? */
	} bad[] = {{"running_mean", 1e30f, 1, 0},  {"running_mean", -1e5f, 1, 0},
	           {"running_mean", NAN, 1, 1},    {"running_mean", -INFINITY, 1, 1},
	           {"running_var", 1e30f, 0, 0},   {"running_var", -1.0f, 1, 1},
	           {"running_var", 0.0f, 0, 0},    {"running_var", NAN, 1, 1},
	           {"running_var", INFINITY, 1, 1}};
	struct planted task = task_make();
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
		for (int fp16 = 0; fp16 < 2; fp16++) {
			char name[64];
			struct doctor_run r;
			doctor_run_open(&r, &task, HG_F32, 0);
			doctor_run_train(&r, config_of("gin", fp16 ? "fp16" : "fp32"), 30);
			CHECK_EQ_I(examine_next(&r)->findings, 0);
			CHECK_EQ_I(examine_evaluation(&r)->findings, 0);
			(void)snprintf(name, sizeof name, "conv1.bn2.%s", bad[k].name);
			set_column(hg_train_params(r.run.train), name, 5, bad[k].value);
			const hg_doctor_report *report = examine_next(&r);
			CHECK_EQ_I(report->findings, 1);
			expect_statistic(report->finding, name, bad[k].value);
			CHECK(fabs(report->finding->wide) < 1e4);
			report = examine_evaluation(&r);
			CHECK_EQ_I(report->findings, fp16 ? bad[k].fp16 : bad[k].fp32);
			if (report->findings)
				expect_statistic(report->finding, name, bad[k].value);
			doctor_run_close(&r);
		}
	planted_free(&task);
}

/* A gain of 8000 and a running variance below that of the column overflow in an evaluation alone.
 * In training the loss is large, too, so a gradient may overflow. */
static void overflow_of_an_evaluation_is_found(void)
{
	struct planted task = task_make();
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F32, 0);
	hg_train_config c = config_of("gin", "fp16");
	c.model.dropout = 0.0f;
	doctor_run_train(&r, c, 30);
	set_column(hg_train_params(r.run.train), "conv1.bn2.running_var", 5, 0.02f);
	set_column(hg_train_params(r.run.train), "conv1.bn2.gamma", 5, 8000.0f);
	const hg_doctor_report *report = examine_next(&r);
	CHECK_MSG(report->findings == 0 || report->finding[0].backward, "%s",
	          report->finding[0].sentence);
	report = examine_evaluation(&r);
	CHECK(report->findings > 0);
	const hg_finding *f = report->finding;
	test_note("%s", f->sentence);
	CHECK(f->evaluation && f->cause == HG_CAUSE_STORE && !f->backward);
	CHECK_STR(f->op, "batch_norm");
	CHECK_STR(f->layer, "conv1");
	doctor_run_close(&r);
	planted_free(&task);
}

/* ---- memory ---- */

static hg_train_config sums_beyond_f16(void)
{
	hg_train_config c = config_of("gcn", "fp16");
	c.epochs = 1;
	c.policy.replan = 0;
	c.model.norm = HG_NORM_NONE;
	return c;
}

/* One epoch and one examination on a context whose k-th allocation fails. */
static hg_status train_and_examine(hg_context *ctx)
{
	static int32_t label[16];
	static float x[16][4];
	const hg_doctor_report *report = NULL;
	const hg_train_config c = sums_beyond_f16();
	hg_train_report trained = HG_TRAIN_REPORT_INIT;
	hg_train_data data = HG_TRAIN_DATA_INIT;
	struct coo edges = coo_empty(16, 16);
	hg_tensor *features = NULL;
	hg_train *train = NULL;
	hg_doctor *doctor = NULL;
	for (int i = 0; i < 64; i++) {
		coo_add(&edges, i % 16, (i * 7 + 3) % 16);
		x[i / 4][i % 4] = 30000.0f;
		label[i / 4] = i / 4 % 4;
	}
	hg_status status = coo_build(ctx, &edges, &data.input.graph);
	coo_free(&edges);
	if (status >= 0)
		status = hg_tensor_create(ctx, HG_F16, 16, 4, &features);
	if (status >= 0)
		status = hg_tensor_upload(features, x, HG_F32);
	data.input.x = features;
	data.labels = label;
	if (status >= 0)
		status = hg_train_create(ctx, &c, &data, &train);
	if (status >= 0)
		status = hg_train_run(train, &trained);
	if (status >= 0)
		status = hg_doctor_create_train(train, NULL, &doctor);
	if (status >= 0)
		status = hg_doctor_examine(doctor, 0, &report);
	if (status >= 0 && (report->findings < 1 || report->finding[0].cause != HG_CAUSE_STORE))
		status = HG_ERR_INTERNAL;
	hg_doctor_free(doctor);
	hg_train_free(train);
	hg_tensor_free(features);
	hg_graph_free(data.input.graph);
	return status;
}

static void every_allocation_may_fail(void)
{
	const int64_t count = faulty_sweep(train_and_examine);
	test_note("%lld allocations", (long long)count);
	CHECK(count > 100);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(healthy_models_have_no_finding_and_keep_their_bits),
	    TEST(skipped_steps_are_examined_afterwards),
	    TEST(naive_sum_of_a_hub_is_found),
	    TEST(running_statistics_are_examined),
	    TEST(overflow_of_an_evaluation_is_found),
	    TEST(every_allocation_may_fail),
	};
	return RUN_TESTS(argc, argv, cases);
}
