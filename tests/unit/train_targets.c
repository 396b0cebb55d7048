/* Training on targets: real ones and several labels, of nodes and of graphs, with some missing; and
 * metrics that the host computes. */
#include "nn/train.h"
#include "small_run.h"
#include "unit/capturing.h"
#include "unit/faulty.h"
#include "unit/train_task.h"

enum { T = 2 };

/* Real targets far from 0 that the communities tell, with a fifth of them missing, and several
 * labels. */
struct aims {
	float real[N * T], several[N * C], none[N * T];
};

static void aims_make(struct aims *a, const struct planted *t)
{
	test_reseed(23);
	for (int i = 0; i < N; i++) {
		for (int c = 0; c < T; c++) {
			const double value = 5000.0 + 300.0 * (double)((t->label[i] + c) % C) + test_normal();
			a->real[i * T + c] = test_below(5) == 0 ? NAN : (float)value;
			a->none[i * T + c] = NAN;
		}
		for (int c = 0; c < C; c++)
			a->several[i * C + c] = test_below(5) == 0 ? NAN : (float)(t->label[i] != c);
	}
}

static void learn(struct planted_run *r, const float *targets, int64_t cols)
{
	r->data.labels = NULL;
	r->data.targets = targets;
	r->data.target_cols = cols;
}

static hg_train_config regression(const char *model, const char *policy, hg_loss loss)
{
	hg_train_config c = config_of(model, policy);
	c.loss = loss;
	c.epochs = 2 * EPOCHS;
	return c;
}

/* The metric of the test split, from what hg_train_predict gives. */
static double metric_of(struct planted_run *r, const struct planted *t, hg_metric metric)
{
	static float x[N * C];
	hg_metric_data d = HG_METRIC_DATA_INIT;
	double value = 0.0;
	CHECK_OK(hg_train_predict(r->train, NULL, x));
	d.rows = N;
	d.cols = r->data.target_cols;
	d.logits = x;
	d.targets = r->data.targets;
	d.mask = t->test;
	CHECK_OK(hg_metric_compute(metric, &d, &value));
	return value;
}

/* The deviation of the targets is 300 * sqrt(5) / 2 = 335, and those of a constant prediction are a
 * mean absolute error of 300. Targets of 5000 learnt as they are would take more steps than a run
 * has. */
static void real_targets_are_learnt_in_both_precisions(void)
{
	static const char *const models[] = {"gcn", "gin", "gat", "gt"};
	static struct aims a;
	struct planted t = task_make();
	aims_make(&a, &t);
	for (int k = 0; k < 16; k++) {
		const hg_loss loss = k / 2 % 2 ? HG_LOSS_MAE : HG_LOSS_MSE;
		const hg_train_config c = regression(models[k / 4], k % 2 ? "fp16" : "fp32", loss);
		struct planted_run r;
		planted_open(&r, test_context(), &t, HG_F16, 0);
		learn(&r, a.real, T);
		planted_begin(&r, &c);
		CHECK_OK(hg_train_run(r.train, &r.report));
		test_note("%s %s %s: test %s %.1f, loss %.4f", models[k / 4], c.policy.name,
		          loss == HG_LOSS_MSE ? "mse" : "mae", hg_metric_name(r.report.metric),
		          r.report.test_metric, r.report.final_loss);
		CHECK(r.report.metric == (loss == HG_LOSS_MSE ? HG_METRIC_RMSE : HG_METRIC_MAE));
		CHECK(r.report.loss == loss && r.report.loss_finite);
		CHECK(r.report.test_metric < 220.0 && r.report.best_val_metric < 220.0);
		CHECK(isnan(r.report.test_accuracy) && isnan(r.report.best_val_accuracy));
		CHECK_WITHIN(metric_of(&r, &t, r.report.metric), r.report.test_metric, 0.0);
		planted_close(&r);
	}
	planted_free(&t);
}

static void several_labels_are_learnt(void)
{
	static const hg_metric metrics[] = {HG_METRIC_NONE, HG_METRIC_AVERAGE_PRECISION,
	                                    HG_METRIC_MICRO_F1, HG_METRIC_ACCURACY};
	static struct aims a;
	struct planted t = task_make();
	aims_make(&a, &t);
	for (int k = 0; k < 4; k++) {
		hg_train_config c = regression("gcn", "fp16", HG_LOSS_BCE);
		struct planted_run r;
		c.metric = metrics[k];
		planted_open(&r, test_context(), &t, HG_F16, 0);
		learn(&r, a.several, C);
		planted_begin(&r, &c);
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK(r.report.metric == (k ? metrics[k] : HG_METRIC_ROC_AUC));
		CHECK(r.report.test_metric > 0.9);
		CHECK_WITHIN(metric_of(&r, &t, r.report.metric), r.report.test_metric, 0.0);
		planted_close(&r);
	}
	planted_free(&t);
}

/* 40 graphs of 8 nodes, whose features tell the target; all train. */
static void graphs_have_targets(void)
{
	enum { GRAPHS = N / 8 };
	int64_t ptr[GRAPHS + 1];
	float target[GRAPHS], predicted[GRAPHS];
	struct planted t = task_make();
	struct planted_run r;
	hg_train_config c = regression("gin", "fp16", HG_LOSS_MSE);
	for (int g = 0; g <= GRAPHS; g++)
		ptr[g] = 8 * g;
	for (int g = 0; g < GRAPHS; g++)
		target[g] = g == 3 ? NAN : (float)(g % C);
	for (int e = 0; e < M; e++)
		t.edges.src[e] = t.edges.dst[e] / 8 * 8 + (int32_t)test_below(8);
	for (int i = 0; i < N * D; i++)
		t.x[i] = (float)(test_normal() + (i % D % C == i / D / 8 % C ? 1.0 : 0.0));
	c.model.readout = HG_REDUCE_MEAN;
	planted_open(&r, test_context(), &t, HG_F16, 0);
	CHECK_OK(hg_graph_set_batch(r.graph, GRAPHS, ptr));
	learn(&r, target, 1);
	r.data.train_mask = r.data.val_mask = r.data.test_mask = NULL;
	planted_begin(&r, &c);
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(isnan(r.report.test_metric) && r.report.best_epoch == c.epochs);
	CHECK_OK(hg_train_predict(r.train, NULL, predicted));
	double error = 0.0;
	for (int g = 0; g < GRAPHS; g++)
		error += g == 3 ? 0.0 : fabs((double)predicted[g] - (double)target[g]);
	CHECK_MSG(error / (GRAPHS - 1) < 0.5, "mean error %g", error / (GRAPHS - 1));
	planted_close(&r);
	planted_free(&t);
}

/* ---- what the host computes ---- */

struct seen {
	int stop_at, events;
	hg_train_event event[2 * EPOCHS];
};

static int see(void *user, const hg_train_event *e)
{
	struct seen *s = user;
	s->event[s->events++] = *e;
	return e->epoch == s->stop_at;
}

static void check_same(int epoch, double x, double y)
{
	CHECK_MSG((isnan(x) && isnan(y)) || (x <= y && x >= y), "epoch %d: %.17g and %.17g", epoch, x,
	          y);
}

/* Accuracy that the host computes for another metric is that of the device. */
static void host_and_device_see_the_same_accuracy(void)
{
	static struct seen device, host;
	struct planted t = task_make();
	for (int every = 1; every < 4; every += 2)
		for (int k = 0; k < 2; k++) {
			struct seen *s = k ? &host : &device;
			struct planted_run r;
			hg_train_config c = config_of("gcn", "fp16");
			*s = (struct seen){0};
			c.progress = see;
			c.user = s;
			c.eval_every = every;
			c.metric = k ? HG_METRIC_MACRO_F1 : HG_METRIC_NONE;
			planted_train(&r, test_context(), &t, &c, 0);
			CHECK(r.report.metric == (k ? HG_METRIC_MACRO_F1 : HG_METRIC_ACCURACY));
			CHECK(r.report.epochs_together >= 1 && r.report.epochs_together <= (k ? every : 64));
			planted_close(&r);
			for (int i = 0; k && i < EPOCHS; i++) {
				const hg_train_event *a = &device.event[i], *b = &host.event[i];
				CHECK(memcmp(&a->loss, &b->loss, sizeof a->loss) == 0);
				CHECK(isnan(a->val_accuracy) == ((i + 1) % every != 0 && i + 1 < EPOCHS));
				check_same(i + 1, a->train_accuracy, b->train_accuracy);
				check_same(i + 1, a->val_accuracy, b->val_accuracy);
				check_same(i + 1, a->test_accuracy, b->test_accuracy);
				check_same(i + 1, a->val_accuracy, a->val_metric);
				CHECK(isnan(b->val_metric) == isnan(a->val_accuracy));
			}
		}
	planted_free(&t);
}

/* The loss that decides ties is that of the op: without a validation split, the loss of the next
 * step. Without dropout, as the evaluation has none. */
static void host_and_device_compute_the_same_loss(void)
{
	static const hg_loss losses[] = {HG_LOSS_CROSS_ENTROPY, HG_LOSS_BCE, HG_LOSS_MSE, HG_LOSS_MAE};
	static struct aims a;
	struct planted t = task_make();
	aims_make(&a, &t);
	for (int k = 0; k < 4; k++) {
		struct planted_run r;
		struct seen s = {.stop_at = 1};
		hg_train_config c = regression("gcn", "fp32", losses[k]);
		c.model.dropout = 0.0f;
		c.epochs = 5;
		c.metric = k ? HG_METRIC_NONE : HG_METRIC_MICRO_F1;
		c.progress = see;
		c.user = &s;
		s.stop_at = 0;
		planted_open(&r, test_context(), &t, HG_F32, 0);
		r.data.train_mask = t.train;
		r.data.val_mask = NULL;
		if (k)
			learn(&r, k == 1 ? a.several : a.real, k == 1 ? C : T);
		planted_begin(&r, &c);
		CHECK_OK(hg_train_run(r.train, &r.report));
		const double loss = (double)r.train->seen.best.loss;
		s.stop_at = 1;
		s.events = 0;
		CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
		CHECK_WITHIN(s.event[0].loss, loss, 1e-5 * (1.0 + fabs(loss)));
		planted_close(&r);
	}
	planted_free(&t);
}

/* ---- groups of epochs, patience ---- */

static void run_some(hg_context *ctx, struct planted *t, const float *targets, int stop_at,
                     int every, int together, float *logits, struct seen *s)
{
	struct planted_run r;
	hg_train_config c = regression("gin", "fp16", HG_LOSS_MAE);
	*s = (struct seen){.stop_at = stop_at};
	c.progress = see;
	c.user = s;
	c.eval_every = every;
	c.step.per_launch = together;
	planted_open(&r, ctx, t, HG_F16, 0);
	learn(&r, targets, T);
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_run(r.train, &r.report), stop_at ? HG_INFO_STOPPED : HG_OK);
	CHECK_OK(hg_train_predict(r.train, NULL, logits));
	planted_close(&r);
}

/* How many epochs run together changes nothing, also where the run is stopped between two
 * evaluations and repeats a group, and where steps are captured. */
static void groups_give_the_same_bits(void)
{
	static const int stops[] = {0, 5, 23};
	static float alone[N * T], together[N * T];
	static struct seen a, b;
	static struct aims aim;
	struct planted t = task_make();
	aims_make(&aim, &t);
	for (int k = 0; k < 18; k++) {
		const int every = 1 + 6 * (k / 3 % 3), stop = stops[k % 3];
		hg_context *(*const context)(void) = k < 9 ? test_context : capturing_context;
		run_some(context(), &t, aim.real, stop, every, 1, alone, &a);
		for (int per_launch = 0; per_launch < 20; per_launch += 8) {
			run_some(context(), &t, aim.real, stop, every, per_launch, together, &b);
			CHECK_EQ_I(a.events, b.events);
			CHECK(memcmp(alone, together, sizeof alone) == 0);
			CHECK(!isnan(a.event[every - 1].val_metric) || a.events < every);
			for (int i = 0; i < a.events; i++)
				CHECK(memcmp(&a.event[i].train_metric, &b.event[i].train_metric,
				             3 * sizeof(double)) == 0);
		}
	}
	planted_free(&t);
}

static void patience_follows_a_falling_metric(void)
{
	static struct aims a;
	struct planted_run r;
	struct planted t = task_make();
	aims_make(&a, &t);
	hg_train_config c = regression("gcn", "fp16", HG_LOSS_MSE);
	c.epochs = 2000;
	c.patience = 5;
	c.optim.lr = 0.5f; /* too large for the run to improve for long */
	planted_open(&r, test_context(), &t, HG_F16, 0);
	learn(&r, a.real, T);
	planted_begin(&r, &c);
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(r.report.epochs_run < 2000 && r.report.epochs_run >= r.report.best_epoch);
	planted_close(&r);
	planted_free(&t);
}

/* A metric that is not a number is never the best one, and a smaller one is where it falls. */
static void the_board_knows_which_metric_is_better(void)
{
	static const double found[2][5] = {{NAN, 2.0, 3.0, NAN, 1.0}, {NAN, 0.2, 0.1, 0.3, NAN}};
	static const int64_t best[2][5] = {{1, 2, 2, 2, 5}, {1, 2, 2, 4, 4}};
	for (int k = 0; k < 2; k++) {
		const struct hg__counts counts = {.nonfinite = 0};
		struct hg__board board = {.epochs = 5,
		                          .every = 1,
		                          .validates = 1,
		                          .falls = !k,
		                          .top_metric = -INFINITY,
		                          .low_loss = INFINITY};
		struct hg__step step = {0};
		for (int i = 0; i < 5; i++) {
			const double metric[HG__SPLITS] = {0.0, found[k][i], 0.0};
			step.step = i + 1;
			hg__board_note(&board, &step, &counts, metric, 1.0f);
			CHECK_EQ_I(board.best.epoch, best[k][i]);
		}
		CHECK_EQ_I(board.improved, k ? 4 : 5);
	}
}

/* ---- the state ---- */

static void state_keeps_mean_and_deviation(void)
{
	static struct aims a;
	double mean, deviation, sum = 0.0, squares = 0.0;
	int count = 0;
	struct planted t = task_make();
	aims_make(&a, &t);
	for (int i = 0; i < N; i++)
		if (t.train[i] && !isnan(a.real[i * T + 1])) {
			sum += (double)a.real[i * T + 1];
			squares += (double)a.real[i * T + 1] * (double)a.real[i * T + 1];
			count++;
		}
	struct planted_run r;
	hg_state *state = NULL;
	hg_train_config c = regression("gcn", "fp16", HG_LOSS_MSE);
	c.epochs = 2;
	planted_open(&r, test_context(), &t, HG_F16, 0);
	learn(&r, a.real, T);
	planted_begin(&r, &c);
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK_OK(hg_train_target_scale(r.train, 1, &mean, &deviation));
	CHECK_WITHIN(mean, sum / count, 1e-6);
	CHECK_WITHIN(deviation, sqrt(squares / count - mean * mean), 1e-3);
	CHECK_OK(hg_train_get_state(r.train, &state));
	const hg_setting *m = hg_state_find_setting(state, "target.mean 1"),
	                 *d = hg_state_find_setting(state, "target.deviation 1");
	CHECK(m && d && m->kind == HG_SETTING_REAL);
	CHECK_WITHIN(m->real, mean, 0.0);
	CHECK_WITHIN(d->real, deviation, 0.0);
	CHECK_OK(hg_train_set_state(r.train, state));
	hg_train_free(r.train);
	a.real[1] = t.train[0] && !isnan(a.real[1]) ? NAN : 1.0f; /* a target more or less */
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_set_state(r.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(r.ctx), "target.mean 1");
	hg_train_free(r.train);
	c.loss = HG_LOSS_MAE;
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_set_state(r.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(r.ctx), "train.loss");
	hg_state_free(state);
	planted_close(&r);
	planted_free(&t);
}

/* A run of one epoch with a huge learning rate finds no better epoch than the run before it. */
static void a_resumed_run_keeps_the_best_epoch_by_its_metric(void)
{
	static struct aims a;
	struct planted_run r;
	struct planted t = task_make();
	hg_state *state = NULL, *later = NULL;
	aims_make(&a, &t);
	hg_train_config c = regression("gcn", "fp32", HG_LOSS_MAE);
	planted_open(&r, test_context(), &t, HG_F32, 0);
	learn(&r, a.real, T);
	planted_begin(&r, &c);
	CHECK_OK(hg_train_run(r.train, &r.report));
	const double before = r.report.best_val_metric;
	CHECK_OK(hg_train_get_state(r.train, &state));
	CHECK_EQ_I(state->best.metric, HG_METRIC_MAE);
	CHECK_WITHIN(state->best.value[1], before, 0.0);
	CHECK_WITHIN(state->epoch[state->best.step - 1].val_metric, before, 0.0);
	hg_train_free(r.train);
	c.epochs = 1;
	c.optim.lr = 100.0f;
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_set_state(r.train, state), HG_INFO_DIFFERS); /* the learning rate */
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK_EQ_I(r.report.best_epoch, 0);
	CHECK_WITHIN(r.report.best_val_metric, before, 0.0);
	CHECK_WITHIN(metric_of(&r, &t, HG_METRIC_MAE), r.report.test_metric, 0.0);
	CHECK_OK(hg_train_get_state(r.train, &later));
	check_same_best(state, later);
	hg_state_free(later);
	hg_train_free(r.train);
	c.metric = HG_METRIC_RMSE; /* not comparable */
	planted_begin(&r, &c);
	CHECK_STATUS(hg_train_set_state(r.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(
	    hg_context_error(r.ctx),
	    "optim.lr is 0.01 in the state, the run has 100; train.metric is mae, the run has "
	    "rmse: ");
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK_EQ_I(r.report.best_epoch, 1);
	hg_state_free(state);
	planted_close(&r);
	planted_free(&t);
}

static void targets_may_be_learnt_as_they_are(void)
{
	static struct aims a;
	double mean, deviation;
	struct planted_run r;
	struct planted t = task_make();
	hg_state *state = NULL;
	aims_make(&a, &t);
	for (int i = 0; i < N * T; i++)
		a.real[i] = (a.real[i] - 5000.0f) / 300.0f;
	hg_train_config c = regression("gcn", "fp16", HG_LOSS_MSE);
	c.raw_targets = 1;
	planted_open(&r, test_context(), &t, HG_F16, 0);
	learn(&r, a.real, T);
	planted_begin(&r, &c);
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(r.report.test_metric < 0.7);
	CHECK_WITHIN(metric_of(&r, &t, HG_METRIC_RMSE), r.report.test_metric, 0.0);
	CHECK_OK(hg_train_target_scale(r.train, 0, &mean, &deviation));
	CHECK(mean == 0.0 && deviation == 1.0);
	CHECK_OK(hg_train_get_state(r.train, &state));
	CHECK(!hg_state_find_setting(state, "target.mean 0"));
	hg_state_free(state);
	planted_close(&r);
	planted_free(&t);
}

/* ---- mistakes ---- */

static void refuse(struct planted_run *r, const hg_train_config *c, const hg_train_data *d,
                   hg_status status, const char *part)
{
	hg_train *train = NULL;
	CHECK_STATUS(hg_train_create(r->ctx, c, d, &train), status);
	CHECK(!train);
	CHECK_CONTAINS(hg_context_error(r->ctx), part);
}

static void mistakes_are_refused_by_name(void)
{
	static struct aims a;
	struct planted_run r;
	struct planted t = task_make();
	aims_make(&a, &t);
	hg_train_config good = regression("gcn", "fp16", HG_LOSS_MSE), c = good;
	planted_open(&r, test_context(), &t, HG_F16, 0);
	learn(&r, a.real, T);
	hg_train_data d = r.data;
	d.targets = NULL;
	refuse(&r, &good, &d, HG_ERR_ARG, "data.targets, from which this loss learns, is NULL");
	d = r.data;
	d.target_cols = 0;
	refuse(&r, &good, &d, HG_ERR_ARG, "data.target_cols is 0, expected at least 1");
	d = r.data;
	d.targets = a.none;
	refuse(&r, &good, &d, HG_ERR_ARG, "none of 320 rows has a target and is in train_mask");
	a.real[7] = INFINITY;
	refuse(&r, &good, &r.data, HG_ERR_RANGE, "target inf in row 3, column 1, expected a number");
	a.real[7] = 5000.0f;
	c.loss = HG_LOSS_BCE;
	a.several[6] = 0.5f;
	d.targets = a.several;
	d.target_cols = C;
	refuse(&r, &c, &d, HG_ERR_RANGE, "target 0.5 in row 1, column 2, expected 0, 1 or NaN");
	c = good;
	c.loss = (hg_loss)4;
	refuse(&r, &c, &r.data, HG_ERR_ARG, "loss is 4, expected an hg_loss");
	c = good;
	c.metric = HG_METRIC_ROC_AUC;
	refuse(&r, &c, &r.data, HG_ERR_ARG, "metric roc-auc is not one of real targets");
	c.metric = (hg_metric)99;
	refuse(&r, &c, &r.data, HG_ERR_ARG, "metric is 99, expected one of metrics.h");
	c = good;
	c.model.out_features = 5;
	refuse(&r, &c, &r.data, HG_ERR_SHAPE, "5 out_features, the targets have 2 columns");
	c = config_of("gcn", "fp16");
	refuse(&r, &c, &r.data, HG_ERR_ARG, "data.labels is NULL");
	d.labels = t.label;
	c.metric = HG_METRIC_ROC_AUC;
	refuse(&r, &c, &d, HG_ERR_ARG, "metric roc-auc is not one of classes (4 columns)");
	planted_begin(&r, &good);
	double mean;
	CHECK_STATUS(hg_train_target_scale(r.train, T, &mean, &mean), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(r.ctx), "column is 2, but the run learns 2 of targets");
	CHECK_STATUS(hg_train_target_scale(r.train, 0, NULL, &mean), HG_ERR_ARG);
	CHECK_STATUS(hg_train_target_scale(NULL, 0, &mean, &mean), HG_ERR_ARG);
	CHECK_STATUS(hg_train_predict(r.train, NULL, NULL), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(r.ctx), "logits is NULL");
	planted_close(&r);
	planted_free(&t);
}

/* The k-th allocation fails, for every k. The call returns a status, and every byte is freed. */
static void failed_allocations_are_reported(void)
{
	static struct aims a;
	struct planted t = task_make();
	aims_make(&a, &t);
	for (int kind = 0; kind < 2; kind++) {
		int done = 0;
		hg_train_config c = regression("gcn", "fp16", kind ? HG_LOSS_BCE : HG_LOSS_MSE);
		c.epochs = 2;
		for (int64_t k = 0; !done; k++) {
			struct faulty memory;
			struct planted_run r;
			planted_open(&r, faulty_cpu_context(&memory, (size_t)1 << 30, 1), &t, HG_F16, 0);
			learn(&r, kind ? a.several : a.real, kind ? C : T);
			memory.calls = 0;
			memory.fail_at = k;
			hg_status status = hg_train_create(r.ctx, &c, &r.data, &r.train);
			if (status == HG_OK)
				status = hg_train_run(r.train, &r.report);
			else
				CHECK(!r.train);
			done = status == HG_OK;
			CHECK_MSG(done || status == HG_ERR_NOMEM, "allocation %lld: %s: %s", (long long)k,
			          hg_status_name(status), hg_context_error(r.ctx));
			planted_close(&r);
			CHECK_MSG(memory.bytes == 0, "allocation %lld: %lld bytes are lost", (long long)k,
			          (long long)memory.bytes);
			CHECK(k < 10000);
		}
	}
	planted_free(&t);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(real_targets_are_learnt_in_both_precisions),
	    TEST(several_labels_are_learnt),
	    TEST(graphs_have_targets),
	    TEST(host_and_device_see_the_same_accuracy),
	    TEST(host_and_device_compute_the_same_loss),
	    TEST(groups_give_the_same_bits),
	    TEST(patience_follows_a_falling_metric),
	    TEST(the_board_knows_which_metric_is_better),
	    TEST(state_keeps_mean_and_deviation),
	    TEST(a_resumed_run_keeps_the_best_epoch_by_its_metric),
	    TEST(targets_may_be_learnt_as_they_are),
	    TEST(mistakes_are_refused_by_name),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
