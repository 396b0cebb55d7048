/* Features of training runs that are too large or too small for f16, and the option that divides
 * them by the sums of their rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit/doctor_run.h"

/* ---- too large ---- */

/* Features in f32, in f16, in f16 with the f32 numbers that they were uploaded from, and sparse.
 * The features of the run itself stay the same. */
static void rows_are_divided_for_a_trial(void)
{
	static float before[N][D], after[N][D];
	struct planted task = task_with_large_features();
	hg_train_config c = config_of_sums("fp16");
	c.policy.replan = 0;
	for (int kind = 0; kind < 4; kind++) {
		struct doctor_run r;
		doctor_run_open(&r, &task, kind == 1 || kind == 2 ? HG_F16 : HG_F32, kind == 3);
		if (r.run.x)
			CHECK_OK(hg_tensor_download(r.run.x, before, HG_F32));
		doctor_run_train(&r, c, 1);
		const hg_finding *f = first_finding(&r);
		hg_doctor_trial trial = trial_of(&r, &c);
		trial.features = kind == 2 ? task.x : NULL;
		trial.steps = 8; /* the loss scale may have to fall */
		CHECK_EQ_I(f->cause, HG_CAUSE_STORE);
		CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 1));
		const hg_remedy *m = remedy_of(f, "--row-normalize on");
		CHECK(m != NULL);
		test_note("%s: loss %g to %g", m->option, m->loss_first, m->loss_last);
		CHECK(m->tried && m->worked);
		if (r.run.x)
			CHECK_OK(hg_tensor_download(r.run.x, after, HG_F32));
		CHECK(memcmp(before, after, sizeof before) == 0);
		doctor_run_close(&r);
	}
	planted_free(&task);
}

static void divide_rows(struct planted *task)
{
	for (int i = 0; i < N; i++) {
		float sum = 0.0f;
		for (int c = 0; c < D; c++)
			sum += task->x[i * D + c];
		for (int c = 0; c < D; c++)
			task->x[i * D + c] /= sum;
	}
}

static void divided_rows_are_not_divided_again(void)
{
	enum { HIDDEN = 16 };
	static float weight[D * HIDDEN];
	struct planted task = task_with_large_features();
	divide_rows(&task);
	for (int i = 0; i < D * HIDDEN; i++)
		weight[i] = 60000.0f;
	for (int sparse = 0; sparse < 2; sparse++) {
		struct doctor_run r;
		doctor_run_open(&r, &task, HG_F32, sparse);
		doctor_run_train(&r, config_of("gcn", "fp16"), 1);
		CHECK_OK(hg_param_set(hg_params_at(hg_train_params(r.run.train), 0), weight));
		CHECK(remedy_of(first_finding(&r), "--row-normalize on") == NULL);
		doctor_run_close(&r);
	}
	planted_free(&task);
}

/* ---- too small ---- */

/* Features of 1e-9 are 0 in f16. fp32 keeps them, and so does dividing them. Row 7 has the largest
 * one that is lost, row 9 the only one that is not. Half of the nodes have class 0, so that the
 * loss falls although the features tell next to nothing. */
static struct planted task_with_tiny_features(void)
{
	struct planted task = task_make();
	for (int i = 0; i < N * D; i++)
		task.x[i] = 1e-9f * (fabsf(task.x[i]) + 1.0f);
	for (int i = 0; i < N; i += 2)
		task.label[i] = 0;
	task.x[7 * D + 3] = -2e-8f;
	task.x[9 * D + 4] = 1e-7f;
	return task;
}

static void features_that_become_zero_are_found(void)
{
	struct planted task = task_with_tiny_features();
	const hg_train_config c = config_of("gcn", "fp16");
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F16, 0);
	doctor_run_train(&r, c, 1);
	doctor_run_tell_features(&r, task.x);
	const hg_finding *f = first_finding(&r);
	hg_doctor_trial trial = trial_of(&r, &c);
	trial.features = task.x;
	trial.steps = 30;
	CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->node == -1 && f->row == 7 && f->col == 3 &&
	      f->got == 0.0 && f->wide == (double)-2e-8f);
	CHECK_EQ_I(f->bad, N * D - 1);
	CHECK_STR(f->tensor, "features");
	CHECK(f->links > 3);
	CHECK_EQ_I(f->remedies, 2);
	CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 1));
	for (int i = 0; i < 2; i++)
		test_note("%s: %d, loss %g to %g", f->remedy[i].option, f->remedy[i].worked,
		          f->remedy[i].loss_first, f->remedy[i].loss_last);
	CHECK(remedy_of(f, "--row-normalize on")->worked && remedy_of(f, "--precision fp32")->worked);
	doctor_run_close(&r);
	planted_free(&task);
}

/* Without the numbers that were uploaded, only ops can be at fault. */
static void unknown_features_are_not_blamed(void)
{
	struct planted task = task_with_tiny_features();
	struct doctor_run r;
	doctor_run_open(&r, &task, HG_F16, 0);
	doctor_run_train(&r, config_of("gcn", "fp16"), 1);
	const hg_doctor_report *report = examine_next(&r);
	for (int i = 0; i < report->findings; i++)
		CHECK(report->finding[i].node >= 0);
	doctor_run_close(&r);
	planted_free(&task);
}

/* With every second or third column below 2^-25, these columns have hardly a share in the sum of
 * all features, but are lost completely. Other columns are no finding: one that is 0 already, one
 * of which only the smaller numbers are lost, and one of subnormal f32 numbers. */
static void columns_that_become_zero_are_found(void)
{
	for (int every = 2; every <= 4; every++) {
		const int is_healthy = every == 4;
		struct planted task = task_make();
		struct doctor_run r;
		for (int i = 0; i < N; i++)
			for (int col = 0; col < D; col++)
				task.x[i * D + col] =
				    (float)(1.0 + test_uniform()) * (!is_healthy && col % every == 0 ? -3e-9f
				                                     : col == 1 && i % 3             ? 1e-9f
				                                     : col == 5                      ? 0.0f
				                                     : col == 7                      ? 1e-42f
				                                                                     : 1.0f);
		task.x[31 * D] *= is_healthy ? 1.0f : 2.0f;
		doctor_run_open(&r, &task, HG_F16, 0);
		doctor_run_train(&r, config_of("gcn", "fp16"), 1);
		doctor_run_tell_features(&r, task.x);
		const hg_doctor_report *report = examine_next(&r);
		CHECK_EQ_I(report->findings, !is_healthy);
		if (!is_healthy) {
			const hg_finding *f = report->finding;
			CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->node == -1 && f->row == 31 && f->col == 0 &&
			      f->wide == (double)task.x[31 * D]);
			CHECK_STR(f->tensor, "features");
			CHECK_EQ_I(f->columns, D / every);
			CHECK_EQ_I(f->bad, N * (D / every));
		}
		doctor_run_close(&r);
		planted_free(&task);
	}
}

/* Sparse features of 1e-9: with dropout, which reads their values as a tensor, they are lost there;
 * without it their product with the weights is. */
static void sparse_features_that_become_zero_are_found(void)
{
	struct planted task = task_make();
	for (int i = 0; i < N * D; i++)
		task.x[i] = task.x[i] == 0.0f ? 0.0f : 1e-9f;
	for (int drops = 0; drops < 2; drops++) {
		hg_train_config c = config_of("gcn", "fp16");
		struct doctor_run r;
		c.model.dropout = drops ? c.model.dropout : 0.0f;
		doctor_run_open(&r, &task, HG_F32, 1);
		doctor_run_train(&r, c, 1);
		const hg_finding *f = first_finding(&r);
		hg_doctor_trial trial = trial_of(&r, &c);
		trial.steps = 30;
		CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->row_is == HG_ROW_NODE);
		CHECK_EQ_I(f->node < 0, drops);
		CHECK_STR(f->tensor, drops ? "features" : "conv0/spmm");
		CHECK(!drops || (f->wide == (double)1e-9f && task.x[f->row * D + f->col] == 1e-9f));
		CHECK_STR(f->remedy[0].option, "--row-normalize on");
		CHECK_OK(hg_doctor_try(r.run.ctx, &trial, f, 1));
		CHECK(f->remedy[0].tried && f->remedy[0].worked);
		doctor_run_close(&r);
	}
	planted_free(&task);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(rows_are_divided_for_a_trial),        TEST(divided_rows_are_not_divided_again),
	    TEST(features_that_become_zero_are_found), TEST(unknown_features_are_not_blamed),
	    TEST(columns_that_become_zero_are_found),  TEST(sparse_features_that_become_zero_are_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
