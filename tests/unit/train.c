/* Training runs: every model learns in every precision, the same run gives the same bits, the best
 * epoch is kept, and overflows are handled and reported. */
#include "unit/train_task.h"

/* The epochs of a run that is repeated for every model, and the accuracy that it must exceed. */
#define REPEATED_EPOCHS TEST_SHARE(EPOCHS, 5)
#define LEAST_ACCURACY TEST_SHARE(0.9, 0.0)

static void all_models_learn_in_both_precisions(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized"};
	struct planted t = task_make();
	for (const char *const *model = hg_model_names(); *model; model++) {
		for (int k = 0; k < 6; k++) {
			hg_train_config c = config_of(*model, policies[k / 2]);
			struct planted_run r;
			c.epochs = REPEATED_EPOCHS;
			planted_train(&r, test_context(), &t, &c, k % 2);
			test_note("%s %s %s: test %.3f, loss %.4f, %.2f ms, %lld skipped", *model,
			          policies[k / 2], k % 2 ? "sparse" : "dense", r.report.test_accuracy,
			          r.report.final_loss, r.report.epoch_ms_median,
			          (long long)r.report.steps_skipped);
			CHECK(r.report.test_accuracy > LEAST_ACCURACY);
			CHECK(r.report.loss_finite && r.report.epochs_run == REPEATED_EPOCHS &&
			      r.report.best_epoch >= 1);
			CHECK(r.report.peak_bytes >= r.report.arena_bytes && r.report.arena_bytes > 0 &&
			      r.report.epoch_ms_median > 0);
			planted_close(&r);
		}
	}
	planted_free(&t);
}

static void fp16_halves_the_bytes_of_the_state(void)
{
	struct planted t = task_make();
	for (const char *const *model = hg_model_names(); *model; model++) {
		size_t bytes[2];
		for (int k = 0; k < 2; k++) {
			hg_train_config c = config_of(*model, k ? "fp16" : "fp32");
			struct planted_run r;
			c.epochs = 2;
			planted_train(&r, test_context(), &t, &c, 0);
			bytes[k] = r.report.state_bytes;
			planted_close(&r);
		}
		CHECK_MSG((double)bytes[1] <= 0.55 * (double)bytes[0], "%s: %zu bytes in fp16, %zu in fp32",
		          *model, bytes[1], bytes[0]);
	}
	planted_free(&t);
}

struct outcome {
	double loss[REPEATED_EPOCHS];
	float logits[N][C];
};

static int note_loss(void *user, const hg_train_event *event)
{
	struct outcome *o = user;
	o->loss[event->epoch - 1] = event->loss;
	return 0;
}

static void outcome_of(struct outcome *o, hg_context *ctx, const struct planted *t,
                       const char *model, const char *policy, int sparse)
{
	int32_t prediction[N];
	struct planted_run r;
	hg_train_config c = config_of(model, policy);
	memset(o, 0, sizeof *o);
	c.epochs = REPEATED_EPOCHS;
	c.progress = note_loss;
	c.user = o;
	planted_train(&r, ctx, t, &c, sparse);
	CHECK_OK(hg_train_predict(r.train, prediction, &o->logits[0][0]));
	planted_close(&r);
}

static void two_runs_give_the_same_bits(void)
{
	static struct outcome a, b;
	struct planted t = task_make();
	for (const char *const *model = hg_model_names(); *model; model++) {
		for (int sparse = 0; sparse < 2; sparse++) {
			outcome_of(&a, test_context(), &t, *model, "fp16", sparse);
			outcome_of(&b, test_context(), &t, *model, "fp16", sparse);
			CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "%s, %s features", *model,
			          sparse ? "sparse" : "dense");
		}
	}
	planted_free(&t);
}

static void thread_counts_give_the_same_bits(void)
{
	static const char *const policies[] = {"fp32", "fp16"};
	static struct outcome a, b;
	struct planted t = task_make();
	for (const char *const *model = hg_model_names(); *model; model++) {
		for (int k = 0; k < 2; k++) {
			outcome_of(&a, test_cpu_context(1), &t, *model, policies[k], k);
			for (int threads = 2; threads <= 5; threads += 3) {
				outcome_of(&b, test_cpu_context(threads), &t, *model, policies[k], k);
				CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "%s, %s: 1 and %d threads", *model,
				          policies[k], threads);
			}
		}
	}
	planted_free(&t);
}

static void best_epoch_is_kept(void)
{
	int32_t prediction[N];
	struct planted_run r;
	struct watch w = {.best_val = -1};
	struct planted t = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	c.progress = watch_epoch;
	c.user = &w;
	planted_train(&r, test_context(), &t, &c, 0);
	CHECK(r.report.best_val_accuracy == w.best_val);
	/* A later epoch of the same accuracy is better if its loss is lower. */
	CHECK(r.report.best_epoch >= w.best_epoch);
	CHECK_OK(hg_train_predict(r.train, prediction, NULL));
	int right = 0, count = 0;
	for (int i = 0; i < N; i++) {
		right += t.test[i] && prediction[i] == t.label[i];
		count += t.test[i];
	}
	CHECK_WITHIN((double)right / count, r.report.test_accuracy, 1e-9);
	planted_close(&r);
	planted_free(&t);
}

static void run_stops_when_asked_and_without_progress(void)
{
	struct planted_run r;
	struct watch w = {.stop_at = 7, .best_val = -1};
	struct planted t = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	c.progress = watch_epoch;
	c.user = &w;
	planted_open(&r, test_context(), &t, HG_F16, 0);
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK_EQ_I(r.report.epochs_run, 7);
	CHECK(r.report.best_epoch >= 1 && r.report.best_epoch <= 7 && isfinite(r.report.final_loss));
	planted_close(&r);
	w = (struct watch){.stop_at = 3, .best_val = -1};
	c.eval_every = 50; /* the run stops before the first evaluation */
	planted_open(&r, test_context(), &t, HG_F16, 0);
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK(r.report.best_epoch == 3 && r.report.test_accuracy >= 0);
	planted_close(&r);
	w = (struct watch){.best_val = -1};
	c.eval_every = 1;
	c.epochs = 2000;
	c.patience = 5;
	c.optim.lr = 0.5f; /* too large for the run to improve for long */
	planted_train(&r, test_context(), &t, &c, 0);
	CHECK(r.report.epochs_run < 2000 && r.report.epochs_run == w.last &&
	      r.report.epochs_run >= r.report.best_epoch);
	planted_close(&r);
	planted_free(&t);
}

/* With a loss scale that is far too large, steps are skipped until it fits. The run goes on, and
 * its report counts them. */
static void skipped_steps_are_reported(void)
{
	struct planted_run r;
	struct planted t = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	c.policy.loss_scale.max_scale = 0x1p40f;
	c.policy.loss_scale.init_scale = 0x1p40f;
	c.epochs = 2 * EPOCHS;
	planted_train(&r, test_context(), &t, &c, 0);
	CHECK(r.report.steps_skipped > 0 && r.report.loss_scale_final < 0x1p40f);
	CHECK(r.report.loss_finite && r.report.test_accuracy > 0.9);
	planted_close(&r);
	planted_free(&t);
}

/* 40 graphs of 8 nodes. The features of a graph's nodes tell its class. */
static void graphs_are_classified(void)
{
	enum { GRAPHS = N / 8 };
	int64_t ptr[GRAPHS + 1];
	struct planted t = task_make();
	for (int g = 0; g <= GRAPHS; g++)
		ptr[g] = 8 * g;
	for (int e = 0; e < M; e++)
		t.edges.src[e] = t.edges.dst[e] / 8 * 8 + (int32_t)test_below(8);
	for (int i = 0; i < N * D; i++)
		t.x[i] = (float)(test_normal() + (i % D % C == i / D / 8 % C ? 1.0 : 0.0));
	for (const char *const *model = hg_model_names(); *model; model++) {
		struct planted_run r;
		hg_train_config c = config_of(*model, "fp16");
		c.model.readout = HG_REDUCE_MEAN;
		c.epochs = 2 * REPEATED_EPOCHS;
		planted_open(&r, test_context(), &t, HG_F16, 0);
		CHECK_OK(hg_graph_set_batch(r.graph, GRAPHS, ptr));
		/* All graphs train, none validates. */
		r.data.train_mask = r.data.val_mask = r.data.test_mask = NULL;
		planted_begin(&r, &c);
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK(isnan(r.report.test_accuracy) && r.report.best_epoch == c.epochs);
		int32_t prediction[GRAPHS];
		int right = 0;
		CHECK_OK(hg_train_predict(r.train, prediction, NULL));
		for (int g = 0; g < GRAPHS; g++)
			right += prediction[g] == t.label[g];
		CHECK_MSG(right > GRAPHS * LEAST_ACCURACY, "%s: %d of %d", *model, right, GRAPHS);
		planted_close(&r);
	}
	planted_free(&t);
}

/* Weights that are NaN: the step is skipped, the report counts the logits that are not finite, and
 * nothing is predicted. */
static void nonfinite_logits_are_reported(void)
{
	static float value[D * 64];
	int32_t prediction[N];
	struct planted_run r;
	struct planted t = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	c.epochs = 1;
	planted_open(&r, test_context(), &t, HG_F16, 0);
	planted_begin(&r, &c);
	/* The last parameter is the bias of the logits. */
	hg_param *last =
	    hg_params_at(hg_train_params(r.train), hg_params_count(hg_train_params(r.train)) - 1);
	for (int i = 0; i < C; i++)
		value[i] = NAN;
	CHECK_EQ_I(hg_tensor_cols(hg_param_master(last)), C);
	CHECK_OK(hg_param_set(last, value));
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK_EQ_I(r.report.nonfinite_logits, N * C);
	CHECK_EQ_I(r.report.steps_skipped, 1);
	CHECK_OK(hg_train_predict(r.train, prediction, NULL));
	for (int i = 0; i < N; i++)
		CHECK_EQ_I(prediction[i], -1);
	value[2] = 1e4f; /* NaN never wins against a number */
	CHECK_OK(hg_param_set(last, value));
	CHECK_OK(hg_train_predict(r.train, prediction, NULL));
	for (int i = 0; i < N; i++)
		CHECK_EQ_I(prediction[i], 2);
	planted_close(&r);
	planted_free(&t);
}

/* With a feature that is NaN every step is skipped, in every precision, and the report counts
 * them. */
static void steps_with_nan_features_are_skipped(void)
{
	struct planted t = task_make();
	t.x[7 * D + 3] = NAN;
	static const char *const policies[] = {"fp32", "fp16", "fp16-naive"};
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int p = 0; p < 3; p++) {
			struct planted_run r;
			hg_train_config c = config_of(*model, policies[p]);
			c.epochs = 3;
			c.model.dropout = c.model.attention_dropout = 0.0f; /* dropout could drop the NaN */
			planted_train(&r, test_context(), &t, &c, 0);
			CHECK_EQ_I(r.report.steps_skipped, 3);
			CHECK(r.report.nonfinite_logits > 0 && !r.report.loss_finite);
			planted_close(&r);
		}
	planted_free(&t);
}

/* With large features and hubs, sums over neighbours overflow. The step is skipped without a
 * smaller loss scale, the tape is recorded again with more room for the result that overflowed, and
 * the run learns. Without replanning it never does. Sums and products are then rescaled; the result
 * of dropout cannot be, and is kept in f32. */
static void results_that_overflow_are_recorded_again(void)
{
	static const struct {
		float features, dropout;
		int replan, rescaled, promoted;
	} rows[] = {{3000.0f, 0.0f, 1, 1, 0}, {12000.0f, 0.5f, 1, 0, 1}, {12000.0f, 0.5f, 0, 0, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct planted_run r;
		hg_plan_info plan = HG_PLAN_INFO_INIT;
		hg_train_config c = config_of("gin", "fp16");
		struct planted t = task_make();
		for (int k = 0; k < N * D; k++)
			t.x[k] *= rows[i].features;
		for (int k = 0; k < N; k++) { /* the first two nodes are hubs */
			t.edges.dst[k] = k % 2;
			t.edges.src[k] = k;
		}
		c.policy.replan = rows[i].replan;
		c.model.dropout = rows[i].dropout;
		c.epochs = 2 * EPOCHS;
		planted_train(&r, test_context(), &t, &c, 0);
		CHECK_OK(hg_tape_plan(hg_train_tape(r.train), &plan));
		CHECK_EQ_I(r.report.replans > 0, rows[i].replan);
		if (rows[i].promoted) /* one is enough: the results after it are kept in f32 as well */
			CHECK_EQ_I(r.report.replans, 1);
		CHECK_EQ_I(r.report.loss_finite, rows[i].replan);
		CHECK(r.report.loss_scale_final == 65536.0f);
		CHECK_MSG((plan.rescaled > 0) == rows[i].rescaled &&
		              (plan.promoted > 0) == rows[i].promoted,
		          "%d rescaled, %d promoted", plan.rescaled, plan.promoted);
		CHECK(plan.casts == r.report.casts && (plan.casts > 0) == rows[i].promoted);
		CHECK_EQ_I(r.report.steps_skipped, rows[i].replan ? r.report.replans : c.epochs);
		if (rows[i].replan)
			CHECK_MSG(r.report.test_accuracy > 0.6 && r.report.nonfinite_logits == 0, "%g",
			          r.report.test_accuracy);
		planted_close(&r);
		planted_free(&t);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(all_models_learn_in_both_precisions),
	    TEST(fp16_halves_the_bytes_of_the_state),
	    TEST(two_runs_give_the_same_bits),
	    TEST(thread_counts_give_the_same_bits),
	    TEST(best_epoch_is_kept),
	    TEST(run_stops_when_asked_and_without_progress),
	    TEST(skipped_steps_are_reported),
	    TEST(results_that_overflow_are_recorded_again),
	    TEST(graphs_are_classified),
	    TEST(nonfinite_logits_are_reported),
	    TEST(steps_with_nan_features_are_skipped),
	};
	return RUN_TESTS(argc, argv, cases);
}
