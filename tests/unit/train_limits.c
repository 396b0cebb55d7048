/* What training refuses, and what it survives: mistakes in its configuration and data, structs of
 * other versions, empty splits, contexts freed too early, allocations that fail. */
#include <stddef.h>

#include "core/context.h"
#include "kernels/scores.h"
#include "unit/train_task.h"

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

/* A wrong label must not ask for memory by the gigabyte. Where the configuration itself asks for
 * too much, the error names what. */
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

/* A mask without a row is no split: the last epoch is the best one, and patience never ends the
 * run. */
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

/* The context stays alive until its last training run is freed. */
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

/* The run is freed last here, and the context with it: no memory is freed after the context. */
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

/* The k-th allocation fails, for every k: a status, no crash, and every byte comes back. */
static void every_allocation_may_fail(void)
{
	static struct task t;
	task_make(&t);
	for (const char *const *model = hg_model_names(); *model; model++) {
		hg_train_config c = config_of(*model, "fp16");
		int done = 0;
		c.epochs = 2;
		/* together, with a callback that may stop the run in between */
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

/* An evaluation whose loss is not a number loses ties of accuracy, whichever came first. */
static void a_loss_that_is_not_a_number_is_never_the_better(void)
{
	static const float losses[4] = {NAN, 2.0f, NAN, 1.0f};
	static const int64_t best[4] = {1, 2, 2, 4};
	const struct hg__counts counts = {.counted = {[HG__SPLIT_VAL] = 4}};
	struct hg__board board = {
	    .epochs = 4, .every = 1, .validates = 1, .top_accuracy = -INFINITY, .low_loss = INFINITY};
	struct hg__step step = {0};
	for (int k = 0; k < 4; k++) {
		step.step = k + 1;
		hg__board_note(&board, &step, &counts, losses[k]);
		CHECK_EQ_I(board.best.epoch, best[k]);
		CHECK_EQ_I(board.keep, best[k] == k + 1);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(mistakes_are_named),
	    TEST(sizes_are_honoured),
	    TEST(classes_are_counted_with_care),
	    TEST(an_empty_split_is_none),
	    TEST(epochs_without_end),
	    TEST(the_context_waits_for_a_run),
	    TEST(the_context_outlives_a_run),
	    TEST(every_allocation_may_fail),
	    TEST(a_loss_that_is_not_a_number_is_never_the_better),
	};
	return RUN_TESTS(argc, argv, cases);
}
