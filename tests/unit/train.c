#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "unit/capturing.h"

/* Training runs on four planted communities: three of four edges stay in their community, features
 * are the community plus noise. */

enum { N = 320, M = 3200, D = 12, C = 4, EPOCHS = 60 };

struct task {
	int32_t dst[M], src[M], label[N];
	float x[N][D];
	uint8_t train[N], val[N], test[N];
};

static void task_make(struct task *t)
{
	test_reseed(11);
	memset(t, 0, sizeof *t);
	for (int e = 0; e < M; e++) {
		t->dst[e] = (int32_t)test_below(N);
		t->src[e] = (int32_t)(e % 4 ? (t->dst[e] + C * test_below(N)) % N : test_below(N));
	}
	for (int i = 0; i < N; i++) {
		t->label[i] = i % C;
		(i < 80 ? t->train : i < 160 ? t->val : t->test)[i] = 1;
		for (int c = 0; c < D; c++)
			t->x[i][c] = test_uniform() < 0.5
			                 ? 0.0f
			                 : (float)(test_normal() * 0.7 + (c % C == i % C ? 1.5 : 0.0));
	}
}

struct run {
	hg_context *ctx;
	hg_graph *x_sparse;
	hg_tensor *x;
	hg_train_data data;
	hg_train *train;
	hg_train_report report;
};

/* The task on a context's device. Takes the context. */
static void run_data(struct run *r, hg_context *ctx, const struct task *t, hg_dtype state,
                     int sparse)
{
	memset(r, 0, sizeof *r);
	r->ctx = ctx;
	r->data = (hg_train_data)HG_TRAIN_DATA_INIT;
	r->report = (hg_train_report)HG_TRAIN_REPORT_INIT;
	CHECK_OK(hg_graph_from_coo(ctx, N, N, M, t->dst, t->src, NULL, NULL, &r->data.input.graph));
	if (sparse) {
		int32_t row[N * D], col[N * D];
		float value[N * D];
		int64_t m = 0;
		for (int32_t i = 0; i < N * D; i++) {
			if (t->x[i / D][i % D] == 0.0f)
				continue;
			row[m] = i / D;
			col[m] = i % D;
			value[m++] = t->x[i / D][i % D];
		}
		CHECK_OK(hg_graph_from_coo(ctx, N, D, m, row, col, value, NULL, &r->x_sparse));
	} else {
		CHECK_OK(hg_tensor_create(ctx, state, N, D, &r->x));
		CHECK_OK(hg_tensor_upload(r->x, t->x, HG_F32));
	}
	r->data.input.x = r->x;
	r->data.input.x_sparse = r->x_sparse;
	r->data.labels = t->label;
	r->data.train_mask = t->train;
	r->data.val_mask = t->val;
	r->data.test_mask = t->test;
}

static void run_close(struct run *r)
{
	hg_train_free(r->train);
	hg_tensor_free(r->x);
	hg_graph_free(r->x_sparse);
	hg_graph_free(r->data.input.graph);
	hg_context_free(r->ctx);
}

static hg_train_config config_of(const char *model, const char *policy)
{
	hg_train_config c = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse(policy, &c.policy));
	c.epochs = EPOCHS;
	c.optim.lr = 0.01f;
	c.model.hidden = 16;
	c.model.heads = 4;
	return c;
}

static void run_all(struct run *r, hg_context *ctx, const struct task *t, const hg_train_config *c,
                    int sparse)
{
	run_data(r, ctx, t, c->policy.state, sparse);
	CHECK_MSG(hg_train_create(ctx, c, &r->data, &r->train) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_MSG(hg_train_run(r->train, &r->report) >= 0, "%s", hg_context_error(ctx));
}

static void all_models_learn_in_both_precisions(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized"};
	static struct task t;
	task_make(&t);
	for (const char *const *model = hg_model_names(); *model; model++) {
		for (int k = 0; k < 6; k++) {
			const hg_train_config c = config_of(*model, policies[k / 2]);
			struct run r;
			run_all(&r, test_context(), &t, &c, k % 2);
			test_note("%s %s %s: test %.3f, loss %.4f, %.2f ms, %lld skipped", *model,
			          policies[k / 2], k % 2 ? "sparse" : "dense", r.report.test_accuracy,
			          r.report.final_loss, r.report.epoch_ms_median,
			          (long long)r.report.steps_skipped);
			CHECK(r.report.test_accuracy > 0.9);
			CHECK(r.report.loss_finite && r.report.epochs_run == EPOCHS &&
			      r.report.best_epoch >= 1);
			CHECK(r.report.peak_bytes >= r.report.arena_bytes && r.report.arena_bytes > 0 &&
			      r.report.epoch_ms_median > 0);
			run_close(&r);
		}
	}
}

static void half_precision_halves_the_state(void)
{
	static struct task t;
	task_make(&t);
	for (const char *const *model = hg_model_names(); *model; model++) {
		size_t bytes[2];
		for (int k = 0; k < 2; k++) {
			const hg_train_config c = config_of(*model, k ? "fp16" : "fp32");
			struct run r;
			run_all(&r, test_context(), &t, &c, 0);
			bytes[k] = r.report.state_bytes;
			run_close(&r);
		}
		CHECK_MSG((double)bytes[1] <= 0.55 * (double)bytes[0], "%s: %zu bytes in fp16, %zu in fp32",
		          *model, bytes[1], bytes[0]);
	}
}

struct outcome {
	double loss[EPOCHS];
	float logits[N][C];
};

static int note_loss(void *user, const hg_train_event *event)
{
	struct outcome *o = user;
	o->loss[event->epoch - 1] = event->loss;
	return 0;
}

static void outcome_of(struct outcome *o, hg_context *ctx, const struct task *t, const char *model,
                       const char *policy, int sparse)
{
	int32_t prediction[N];
	struct run r;
	hg_train_config c = config_of(model, policy);
	memset(o, 0, sizeof *o);
	c.progress = note_loss;
	c.user = o;
	run_all(&r, ctx, t, &c, sparse);
	CHECK_OK(hg_train_predict(r.train, prediction, &o->logits[0][0]));
	run_close(&r);
}

static void two_runs_give_the_same_bits(void)
{
	static struct task t;
	static struct outcome a, b;
	task_make(&t);
	for (const char *const *model = hg_model_names(); *model; model++) {
		for (int sparse = 0; sparse < 2; sparse++) {
			outcome_of(&a, test_context(), &t, *model, "fp16", sparse);
			outcome_of(&b, test_context(), &t, *model, "fp16", sparse);
			CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "%s, %s features", *model,
			          sparse ? "sparse" : "dense");
		}
	}
}

static hg_context *cpu_context(int threads)
{
	hg_context *ctx = NULL;
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	config.threads = threads;
	config.seed = 5;
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

static void thread_counts_give_the_same_bits(void)
{
	static const char *const policies[] = {"fp32", "fp16"};
	static struct task t;
	static struct outcome a, b;
	task_make(&t);
	for (const char *const *model = hg_model_names(); *model; model++) {
		for (int k = 0; k < 2; k++) {
			outcome_of(&a, cpu_context(1), &t, *model, policies[k], k);
			for (int threads = 2; threads <= 5; threads += 3) {
				outcome_of(&b, cpu_context(threads), &t, *model, policies[k], k);
				CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "%s, %s: 1 and %d threads", *model,
				          policies[k], threads);
			}
		}
	}
}

struct watch {
	int stop_at, last;
	double best_val, best_test;
	int best_epoch;
};

static int watch_epoch(void *user, const hg_train_event *e)
{
	struct watch *w = user;
	w->last = e->epoch;
	if (e->val_accuracy > w->best_val) {
		w->best_val = e->val_accuracy;
		w->best_test = e->test_accuracy;
		w->best_epoch = e->epoch;
	}
	return e->epoch == w->stop_at;
}

static void the_best_epoch_is_what_is_kept(void)
{
	static struct task t;
	int32_t prediction[N];
	struct run r;
	struct watch w = {.best_val = -1};
	task_make(&t);
	hg_train_config c = config_of("gcn", "fp16");
	c.progress = watch_epoch;
	c.user = &w;
	run_all(&r, test_context(), &t, &c, 0);
	CHECK(r.report.best_val_accuracy == w.best_val);
	/* later only for the loss's sake, at the same accuracy */
	CHECK(r.report.best_epoch >= w.best_epoch);
	CHECK_OK(hg_train_predict(r.train, prediction, NULL));
	int right = 0, count = 0;
	for (int i = 0; i < N; i++) {
		right += t.test[i] && prediction[i] == t.label[i];
		count += t.test[i];
	}
	CHECK_WITHIN((double)right / count, r.report.test_accuracy, 1e-9);
	run_close(&r);
}

static void a_run_stops_when_asked_and_out_of_patience(void)
{
	static struct task t;
	struct run r;
	struct watch w = {.stop_at = 7, .best_val = -1};
	task_make(&t);
	hg_train_config c = config_of("gcn", "fp16");
	c.progress = watch_epoch;
	c.user = &w;
	run_data(&r, test_context(), &t, HG_F16, 0);
	CHECK_OK(hg_train_create(r.ctx, &c, &r.data, &r.train));
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK_EQ_I(r.report.epochs_run, 7);
	CHECK(r.report.best_epoch >= 1 && r.report.best_epoch <= 7 && isfinite(r.report.final_loss));
	run_close(&r);
	w = (struct watch){.stop_at = 3, .best_val = -1};
	c.eval_every = 50; /* stopped before the first look */
	run_data(&r, test_context(), &t, HG_F16, 0);
	CHECK_OK(hg_train_create(r.ctx, &c, &r.data, &r.train));
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK(r.report.best_epoch == 3 && r.report.test_accuracy >= 0);
	run_close(&r);
	w = (struct watch){.best_val = -1};
	c.eval_every = 1;
	c.epochs = 2000;
	c.patience = 5;
	c.optim.lr = 0.5f; /* too large to go on improving */
	run_all(&r, test_context(), &t, &c, 0);
	CHECK(r.report.epochs_run < 2000 && r.report.epochs_run == w.last &&
	      r.report.epochs_run >= r.report.best_epoch);
	run_close(&r);
}

/* A loss scale far too large: steps are skipped until it fits, the run goes on and says so. */
static void skipped_steps_are_information(void)
{
	static struct task t;
	struct run r;
	task_make(&t);
	hg_train_config c = config_of("gcn", "fp16");
	c.policy.loss_scale.max_scale = 0x1p40f;
	c.policy.loss_scale.init_scale = 0x1p40f;
	c.epochs = 2 * EPOCHS;
	run_all(&r, test_context(), &t, &c, 0);
	CHECK(r.report.steps_skipped > 0 && r.report.loss_scale_final < 0x1p40f);
	CHECK(r.report.loss_finite && r.report.test_accuracy > 0.9);
	run_close(&r);
}

/* 40 graphs of 8 nodes; a graph's class is its nodes' community. */
static void graphs_are_classified(void)
{
	enum { GRAPHS = N / 8 };
	static struct task t;
	int64_t ptr[GRAPHS + 1];
	task_make(&t);
	for (int g = 0; g <= GRAPHS; g++)
		ptr[g] = 8 * g;
	for (int e = 0; e < M; e++)
		t.src[e] = t.dst[e] / 8 * 8 + (int32_t)test_below(8);
	for (int i = 0; i < N; i++)
		for (int c = 0; c < D; c++)
			t.x[i][c] = (float)(test_normal() + (c % C == i / 8 % C ? 1.0 : 0.0));
	for (const char *const *model = hg_model_names(); *model; model++) {
		struct run r;
		hg_train_config c = config_of(*model, "fp16");
		c.model.readout = HG_REDUCE_MEAN;
		c.epochs = 2 * EPOCHS;
		run_data(&r, test_context(), &t, HG_F16, 0);
		CHECK_OK(hg_graph_set_batch(r.data.input.graph, GRAPHS, ptr));
		/* every graph, no validation */
		r.data.train_mask = r.data.val_mask = r.data.test_mask = NULL;
		CHECK_MSG(hg_train_create(r.ctx, &c, &r.data, &r.train) == HG_OK, "%s",
		          hg_context_error(r.ctx));
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK(isnan(r.report.test_accuracy) && r.report.best_epoch == c.epochs);
		int32_t prediction[GRAPHS];
		int right = 0;
		CHECK_OK(hg_train_predict(r.train, prediction, NULL));
		for (int g = 0; g < GRAPHS; g++)
			right += prediction[g] == t.label[g];
		CHECK_MSG(right > GRAPHS * 9 / 10, "%s: %d of %d", *model, right, GRAPHS);
		run_close(&r);
	}
}

static void refuse(struct run *r, const hg_train_config *c, const hg_train_data *d,
                   const char *part)
{
	hg_train *train = NULL;
	CHECK(hg_train_create(r->ctx, c, d, &train) < 0);
	CHECK(!train);
	CHECK_CONTAINS(hg_context_error(r->ctx), part);
}

static void mistakes_are_named(void)
{
	static struct task t;
	static const uint8_t nobody[N];
	struct run r;
	task_make(&t);
	hg_train_config good = config_of("gcn", "fp16"), c = good;
	run_data(&r, test_context(), &t, HG_F16, 0);
	c.epochs = 0;
	refuse(&r, &c, &r.data, "epochs");
	c = good;
	c.model.name = "mlp";
	refuse(&r, &c, &r.data, "mlp");
	c = good;
	c.model.in_features = 3;
	refuse(&r, &c, &r.data, "in_features 3");
	c = good;
	c.model.out_features = 2; /* labels go to 3 */
	refuse(&r, &c, &r.data, "label");
	hg_train_data d = r.data;
	d.labels = NULL;
	refuse(&r, &good, &d, "labels");
	d = r.data;
	d.train_mask = nobody;
	refuse(&r, &good, &d, "train_mask");
	d = r.data;
	d.input.x = NULL;
	refuse(&r, &good, &d, "neither");
	run_close(&r);
}

/* Weights that are no numbers: the step is skipped, the accuracies are flagged, nothing is
 * predicted. */
static void overflow_in_the_logits_is_told(void)
{
	static struct task t;
	static float value[D * 64];
	int32_t prediction[N];
	struct run r;
	task_make(&t);
	hg_train_config c = config_of("gcn", "fp16");
	c.epochs = 1;
	run_data(&r, test_context(), &t, HG_F16, 0);
	CHECK_OK(hg_train_create(r.ctx, &c, &r.data, &r.train));
	/* the bias of the logits */
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
	value[2] = 1e4f; /* the one number among them wins */
	CHECK_OK(hg_param_set(last, value));
	CHECK_OK(hg_train_predict(r.train, prediction, NULL));
	for (int i = 0; i < N; i++)
		CHECK_EQ_I(prediction[i], 2);
	run_close(&r);
}

/* Structs of other headers: the outer one may be shorter, what it holds by value may not. */
static void sizes_are_honoured(void)
{
	static struct task t;
	struct run r;
	task_make(&t);
	hg_train_config good = config_of("gcn", "fp16"), c = good;
	run_data(&r, test_context(), &t, HG_F16, 0);
	c.size = 0;
	refuse(&r, &c, &r.data, "config.size is not set");
	c = good;
	c.model.size = 8;
	refuse(&r, &c, &r.data, "config.model.size is 8");
	c = good;
	c.step.size = 8;
	refuse(&r, &c, &r.data, "config.step.size is 8");
	c = good;
	c.step.per_launch = 65;
	refuse(&r, &c, &r.data, "step: per_launch is 65, expected 0 to 64");
	c = good;
	c.policy.size = 8;
	refuse(&r, &c, &r.data, "policy: size");
	hg_train_data d = r.data;
	d.input.size = 8;
	refuse(&r, &good, &d, "data.input.size is 8");
	c = good;
	c.epochs = 2;
	c.size = offsetof(hg_train_config, eval_every); /* every epoch, then */
	c.eval_every = -1;
	CHECK_OK(hg_train_create(r.ctx, &c, &r.data, &r.train));
	r.report.size = offsetof(hg_train_report, nonfinite_logits);
	r.report.nonfinite_logits = 77;
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(r.report.nonfinite_logits == 77 && r.report.epochs_run == 2 &&
	      r.report.size == offsetof(hg_train_report, nonfinite_logits));
	r.report.size = 0;
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_ERR_ARG);
	run_close(&r);
}

/* An allocator that counts, and fails when it is told to or asked for 1 GiB. */
struct memory {
	int64_t until; /* allocations left before one fails; < 0: none does */
	int64_t bytes;
	size_t last; /* bytes of what was given back last */
};

static void *memory_alloc(void *user, size_t bytes, int device)
{
	struct memory *m = user;
	(void)device;
	if (bytes >> 30 || (m->until >= 0 && m->until-- == 0))
		return NULL;
	m->bytes += (int64_t)bytes;
	return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void memory_free(void *user, void *memory, size_t bytes, int device)
{
	struct memory *m = user;
	(void)device;
	m->bytes -= (int64_t)bytes;
	m->last = bytes;
	free(memory);
}

static hg_context *memory_context(struct memory *memory)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *ctx = NULL;
	config.device = HG_DEVICE_CPU;
	config.threads = 1;
	config.allocator = (hg_allocator){memory_alloc, memory_free, memory};
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

/* A slip in the labels asks for no memory; what is asked for by name is named where there is
 * none. */
static void classes_are_counted_with_care(void)
{
	static struct task t;
	struct memory memory = {-1, 0, 0};
	struct run r;
	task_make(&t);
	hg_train_config c = config_of("gcn", "fp16");
	run_data(&r, memory_context(&memory), &t, HG_F16, 0);
	c.model.out_features = 0;
	t.label[3] = INT32_MAX;
	refuse(&r, &c, &r.data,
	       "label 2147483647 of row 3 makes 2147483648 classes of 320 labelled rows");
	t.label[3] = N;
	refuse(&r, &c, &r.data, "makes 321 classes");
	t.label[3] = N - 1;
	CHECK_OK(hg_train_create(r.ctx, &c, &r.data, &r.train));
	CHECK_EQ_I(hg_model_get_config(hg_train_model(r.train))->out_features, N);
	hg_train_free(r.train);
	r.train = NULL;
	c.model.out_features = INT32_MAX;
	refuse(&r, &c, &r.data, "conv1.weight: ");
	CHECK_CONTAINS(hg_context_error(r.ctx), "[16, 2147483647], 137438953472 bytes");
	run_close(&r);
	CHECK_EQ_I(memory.bytes, 0);
}

/* A mask without a row is no split: the last epoch counts, and patience has nothing to wait for. */
static void an_empty_split_is_none(void)
{
	static struct task t;
	struct run r;
	task_make(&t);
	memset(t.val, 0, sizeof t.val);
	memset(t.test, 0, sizeof t.test);
	t.test[5] = 1; /* its one row */
	t.label[5] = -1;
	hg_train_config c = config_of("gcn", "fp16");
	c.epochs = 6;
	c.patience = 2;
	run_all(&r, test_context(), &t, &c, 0);
	CHECK(r.report.epochs_run == 6 && r.report.best_epoch == 6);
	CHECK(isnan(r.report.best_val_accuracy) && isnan(r.report.test_accuracy) &&
	      isfinite(r.report.final_loss));
	run_close(&r);
}

/* An epoch that may come costs nothing; each that came is remembered, beyond the first room for
 * their times. */
static void epochs_without_end(void)
{
	static struct task t;
	struct memory memory = {-1, 0, 0};
	struct run r;
	struct watch w = {.stop_at = 600, .best_val = -1};
	task_make(&t);
	hg_train_config c = config_of("gcn", "fp32");
	c.model.hidden = 4;
	c.epochs = c.eval_every = INT32_MAX;
	c.progress = watch_epoch;
	c.user = &w;
	run_data(&r, memory_context(&memory), &t, HG_F32, 0);
	CHECK_OK(hg_train_create(r.ctx, &c, &r.data, &r.train)); /* 16 GiB of times would be refused */
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK(r.report.epochs_run == 600 && r.report.best_epoch == 600 && r.report.epoch_ms_median > 0);
	run_close(&r);
	CHECK_EQ_I(memory.bytes, 0);
}

/* A run of two epochs that is ready to begin, on a context of its own. */
static void run_ready(struct run *r, hg_context *ctx, int sparse)
{
	static struct task t;
	hg_train_config c = config_of("gcn", "fp16");
	task_make(&t);
	c.epochs = 2;
	run_data(r, ctx, &t, HG_F16, sparse);
	CHECK_OK(hg_train_create(r->ctx, &c, &r->data, &r->train));
}

/* A training run goes on where its context was freed too early. */
static void the_context_waits_for_a_run(void)
{
	struct memory memory = {-1, 0, 0};
	struct run r;
	run_ready(&r, memory_context(&memory), 1);
	hg_context_free(r.ctx);
	CHECK_OK(hg_train_run(r.train, &r.report));
	r.ctx = NULL;
	run_close(&r);
	CHECK_EQ_I(memory.bytes, 0);
}

/* And closes with it where the run is the last to go: nothing is given back after the context. */
static void the_context_outlives_a_run(void)
{
	struct memory memory = {-1, 0, 0};
	struct run r;
	run_ready(&r, memory_context(&memory), 0);
	CHECK_OK(hg_train_run(r.train, &r.report));
	hg_context_free(r.ctx);
	hg_graph_free(r.data.input.graph);
	hg_tensor_free(r.x);
	hg_train_free(r.train);
	CHECK_EQ_I(memory.bytes, 0);
	CHECK_EQ_I(memory.last, sizeof(hg_context));
}

/* Features that are no numbers: every step is skipped and said to be, in every precision. */
static void features_that_are_no_numbers(void)
{
	static struct task t;
	task_make(&t);
	t.x[7][3] = NAN;
	static const char *const policies[] = {"fp32", "fp16", "fp16-naive"};
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int p = 0; p < 3; p++) {
			struct run r;
			hg_train_config c = config_of(*model, policies[p]);
			c.epochs = 3;
			c.model.dropout = c.model.attention_dropout = 0.0f; /* else it is left out at times */
			run_all(&r, test_context(), &t, &c, 0);
			CHECK_EQ_I(r.report.steps_skipped, 3);
			CHECK(r.report.nonfinite_logits > 0 && !r.report.loss_finite);
			run_close(&r);
		}
}

/* Large features and hubs: sums over neighbours overflow. The step is skipped, the loss scale is
 * not blamed, the node that overflowed is recorded again, and the run learns; left alone, it never
 * does. Sums and products are stored with a power of two that makes them fit; dropout, which cannot
 * be, runs in f32. */
static void what_overflows_is_recorded_again(void)
{
	static const struct {
		float features, dropout;
		int replan, rescaled, promoted;
	} rows[] = {{3000.0f, 0.0f, 1, 1, 0}, {12000.0f, 0.5f, 1, 0, 1}, {12000.0f, 0.5f, 0, 0, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		static struct task t;
		struct run r;
		hg_plan_info plan = HG_PLAN_INFO_INIT;
		hg_train_config c = config_of("gin", "fp16");
		task_make(&t);
		for (int k = 0; k < N * D; k++)
			t.x[k / D][k % D] *= rows[i].features;
		for (int k = 0; k < N; k++) /* the first nodes hear everybody */
			t.dst[k] = k % 2, t.src[k] = k;
		c.policy.replan = rows[i].replan;
		c.model.dropout = rows[i].dropout;
		c.epochs = 2 * EPOCHS;
		run_all(&r, test_context(), &t, &c, 0);
		CHECK_OK(hg_tape_plan(hg_train_tape(r.train), &plan));
		CHECK_EQ_I(r.report.replans > 0, rows[i].replan);
		if (rows[i].promoted) /* what comes behind it stays in f32 until it is known to fit */
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
		run_close(&r);
	}
}

/* ---- epochs that run together ---- */

/* What a run tells, in full. */
struct story {
	int stop_at, events;
	hg_train_event event[EPOCHS];
	uint8_t outgrown[EPOCHS]; /* the event named a parameter */
	hg_train_report report;
	/* after the run; after another one, from where the first stopped */
	float logits[N][C], again[N][C];
};

static int write_story(void *user, const hg_train_event *event)
{
	struct story *s = user;
	hg_train_event *e = &s->event[s->events++];
	*e = *event;
	e->epoch_ms = 0.0;
	e->step.first_nonfinite = NULL; /* goes with the run */
	s->outgrown[s->events - 1] = e->step.outgrown != NULL;
	e->step.outgrown = NULL;
	return event->epoch == s->stop_at;
}

static void story_of(struct story *s, hg_context *ctx, const struct task *t, hg_train_config c,
                     int stop_at, int eager, int per_launch)
{
	int32_t prediction[N];
	struct run r;
	memset(s, 0, sizeof *s);
	s->stop_at = stop_at;
	c.progress = write_story;
	c.user = s;
	c.step.eager = eager;
	c.step.per_launch = per_launch;
	run_all(&r, ctx, t, &c, 0);
	CHECK_OK(hg_train_predict(r.train, prediction, &s->logits[0][0]));
	s->report = r.report;
	const int captures = ctx->backend->capture_begin != NULL;
	CHECK_EQ_I(s->report.captured, captures && !eager && s->report.epochs_run > 1);
	if (per_launch) /* what stops a group makes it shorter */
		CHECK_MSG(s->report.epochs_together <= per_launch &&
		              (s->report.epochs_together > 1) == (per_launch > 1),
		          "%d epochs together", s->report.epochs_together);
	s->events = 0;
	s->stop_at = 2;
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK_OK(hg_train_predict(r.train, prediction, &s->again[0][0]));
	s->report.epoch_ms_median = 0.0;
	s->report.peak_bytes = 0; /* what is needed to return to a launch's beginning is not the same */
	s->report.captured = s->report.epochs_together = 0;
	CHECK(s->report.headroom_name && s->report.headroom > 0.0);
	s->report.headroom_name = NULL;
	run_close(&r);
}

static void same_story(const struct story *a, const struct story *b, size_t run, int per_launch)
{
	CHECK_EQ_I(a->report.epochs_run, b->report.epochs_run);
	CHECK_MSG(memcmp(a->event, b->event, sizeof a->event) == 0, "run %zu, %d in a launch: events",
	          run, per_launch);
	CHECK_MSG(memcmp(a->outgrown, b->outgrown, sizeof a->outgrown) == 0,
	          "run %zu, %d in a launch: weights beyond their bounds", run, per_launch);
	CHECK_MSG(memcmp(&a->report, &b->report, sizeof a->report) == 0,
	          "run %zu, %d in a launch: report", run, per_launch);
	CHECK_MSG(memcmp(a->logits, b->logits, sizeof a->logits) == 0,
	          "run %zu, %d in a launch: logits", run, per_launch);
	CHECK_MSG(memcmp(a->again, b->again, sizeof a->again) == 0, "run %zu, %d in a launch: going on",
	          run, per_launch);
}

/* Whatever is asked for, it makes no difference how many epochs run together: not to what is told
 * of each, not to where a run stops, not to how it goes on. */
static void epochs_together_are_the_same_epochs(void)
{
	static const struct {
		const char *model;
		int eval_every, patience, stop_at;
		float scale;
	} runs[] = {{"gcn", 1, 0, 0, 0x1p16f},   {"gcn", 10, 0, 0, 0x1p16f},
	            {"gcn", 50, 0, 5, 0x1p16f},  {"gcn", 50, 0, 16, 0x1p16f},
	            {"gcn", 25, 0, 37, 0x1p40f}, {"gcn", 4, 10, 0, 0x1p16f},
	            {"gin", 60, 0, 3, 0x1p16f},  {"gin", 9, 0, 20, 0x1p40f},
	            {"gat", 60, 0, 11, 0x1p16f}, {"gat", 7, 3, 0, 0x1p40f}};
	static const int per_launch[] = {0, 1, 7, 16};
	static struct task t;
	static struct story alone, together;
	task_make(&t);
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		hg_train_config c = config_of(runs[i].model, "fp16");
		c.eval_every = runs[i].eval_every;
		c.patience = runs[i].patience;
		c.policy.loss_scale.init_scale = c.policy.loss_scale.max_scale = runs[i].scale;
		c.policy.loss_scale.growth_interval = 5;
		if (runs[i].patience)
			c.optim.lr = 0.5f; /* too large to go on improving */
		story_of(&alone, test_context(), &t, c, runs[i].stop_at, 1, 1);
		for (size_t k = 0; k < sizeof per_launch / sizeof per_launch[0]; k++) {
			story_of(&together, test_context(), &t, c, runs[i].stop_at, 0, per_launch[k]);
			same_story(&alone, &together, i, per_launch[k]);
		}
		story_of(&alone, capturing_context(), &t, c, runs[i].stop_at, 1, 1);
		for (size_t k = 0; k < sizeof per_launch / sizeof per_launch[0]; k++) {
			story_of(&together, capturing_context(), &t, c, runs[i].stop_at, 0, per_launch[k]);
			same_story(&alone, &together, i, per_launch[k]);
		}
	}
}

/* The k-th allocation fails, for every k: a status, no crash, and every byte comes back. */
static void every_allocation_may_fail(void)
{
	static struct task t;
	task_make(&t);
	for (const char *const *model = hg_model_names(); *model; model++) {
		hg_train_config c = config_of(*model, "fp16");
		int done = 0;
		c.epochs = 2;
		/* together, with somebody who might stop in between */
		c.eval_every = c.step.per_launch = 2;
		c.progress = watch_epoch;
		for (int64_t k = 0; !done; k++) {
			struct watch w = {.best_val = -1};
			c.user = &w;
			struct memory memory = {-1, 0, 0};
			struct run r;
			run_data(&r, memory_context(&memory), &t, HG_F16, 1);
			memory.until = k;
			hg_status status = hg_train_create(r.ctx, &c, &r.data, &r.train);
			if (status == HG_OK)
				status = hg_train_run(r.train, &r.report);
			else
				CHECK(!r.train);
			done = status == HG_OK;
			CHECK_MSG(done || status == HG_ERR_NOMEM, "%s, allocation %lld: %s: %s", *model,
			          (long long)k, hg_status_name(status), hg_context_error(r.ctx));
			run_close(&r);
			CHECK_MSG(memory.bytes == 0, "%s, allocation %lld: %lld bytes are lost", *model,
			          (long long)k, (long long)memory.bytes);
			CHECK(k < 10000);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(all_models_learn_in_both_precisions),
	                                         TEST(half_precision_halves_the_state),
	                                         TEST(two_runs_give_the_same_bits),
	                                         TEST(thread_counts_give_the_same_bits),
	                                         TEST(the_best_epoch_is_what_is_kept),
	                                         TEST(a_run_stops_when_asked_and_out_of_patience),
	                                         TEST(skipped_steps_are_information),
	                                         TEST(what_overflows_is_recorded_again),
	                                         TEST(graphs_are_classified),
	                                         TEST(mistakes_are_named),
	                                         TEST(overflow_in_the_logits_is_told),
	                                         TEST(sizes_are_honoured),
	                                         TEST(classes_are_counted_with_care),
	                                         TEST(an_empty_split_is_none),
	                                         TEST(epochs_without_end),
	                                         TEST(the_context_waits_for_a_run),
	                                         TEST(the_context_outlives_a_run),
	                                         TEST(features_that_are_no_numbers),
	                                         TEST(epochs_together_are_the_same_epochs),
	                                         TEST(every_allocation_may_fail)};
	return RUN_TESTS(argc, argv, cases);
}
