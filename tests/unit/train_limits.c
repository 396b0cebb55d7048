/* Limits of training runs: mistakes in configuration and data, structs of other versions, empty
 * splits, contexts that are freed before their runs, allocations that fail. */
#include <stddef.h>

#include "core/context.h"
#include "kernels/scores.h"
#include "unit/faulty.h"
#include "unit/train_task.h"

enum { GIB = 1 << 30 }; /* no case may allocate more in one piece */

static void refuse(struct planted_run *r, const hg_train_config *c, const hg_train_data *d,
                   const char *part)
{
	hg_train *train = NULL;
	CHECK(hg_train_create(r->ctx, c, d, &train) < 0);
	CHECK(!train);
	CHECK_CONTAINS(hg_context_error(r->ctx), part);
}

static void mistakes_are_refused_by_name(void)
{
	static const uint8_t none[N];
	struct planted_run r;
	struct planted t = task_make();
	hg_train_config good = config_of("gcn", "fp16"), c = good;
	planted_open(&r, test_context(), &t, HG_F16, 0);
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
	d.train_mask = none;
	refuse(&r, &good, &d, "train_mask");
	d = r.data;
	d.input.x = NULL;
	refuse(&r, &good, &d, "neither");
	planted_close(&r);
	planted_free(&t);
}

/* A program that was compiled with older headers passes shorter structs. The outer struct may be
 * shorter, but not the structs that are its members. */
static void sizes_of_structs_are_checked(void)
{
	struct planted_run r;
	struct planted t = task_make();
	hg_train_config good = config_of("gcn", "fp16"), c = good;
	planted_open(&r, test_context(), &t, HG_F16, 0);
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
	c.size = offsetof(hg_train_config, eval_every); /* not in this struct: must not be read */
	c.eval_every = -1;
	planted_begin(&r, &c);
	r.report.size = offsetof(hg_train_report, nonfinite_logits);
	r.report.nonfinite_logits = 77;
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(r.report.nonfinite_logits == 77 && r.report.epochs_run == 2 &&
	      r.report.size == offsetof(hg_train_report, nonfinite_logits));
	r.report.size = 0;
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_ERR_ARG);
	planted_close(&r);
	planted_free(&t);
}

/* A wrong label must not make the library ask for gigabytes of memory. Where the configuration
 * itself asks for too many classes, the error names the parameter that is too large. */
static void classes_are_limited_by_labels_and_memory(void)
{
	struct faulty memory;
	struct planted_run r;
	struct planted t = task_make();
	hg_train_config c = config_of("gcn", "fp16");
	planted_open(&r, faulty_cpu_context(&memory, GIB, 1), &t, HG_F16, 0);
	c.model.out_features = 0;
	t.label[3] = INT32_MAX;
	refuse(&r, &c, &r.data,
	       "label 2147483647 of row 3 means 2147483648 classes, but only 320 rows are labelled");
	t.label[3] = N;
	refuse(&r, &c, &r.data, "means 321 classes");
	t.label[3] = N - 1;
	planted_begin(&r, &c);
	CHECK_EQ_I(hg_model_get_config(hg_train_model(r.train))->out_features, N);
	hg_train_free(r.train);
	r.train = NULL;
	c.model.out_features = INT32_MAX;
	refuse(&r, &c, &r.data, "conv1.weight: ");
	CHECK_CONTAINS(hg_context_error(r.ctx), "[16, 2147483647], 137438953472 bytes");
	planted_close(&r);
	CHECK_EQ_I(memory.bytes, 0);
	planted_free(&t);
}

/* A validation mask that has no row is treated as none: the last epoch is the best one, and
 * patience never ends the run. */
static void empty_split_counts_as_none(void)
{
	struct planted_run r;
	struct planted t = task_make();
	memset(t.val, 0, N);
	memset(t.test, 0, N);
	t.test[5] = 1; /* the only row of the test split has no label */
	t.label[5] = -1;
	hg_train_config c = config_of("gcn", "fp16");
	c.epochs = 6;
	c.patience = 2;
	planted_train(&r, test_context(), &t, &c, 0);
	CHECK(r.report.epochs_run == 6 && r.report.best_epoch == 6);
	CHECK(isnan(r.report.best_val_accuracy) && isnan(r.report.test_accuracy) &&
	      isfinite(r.report.final_loss));
	planted_close(&r);
	planted_free(&t);
}

/* A run may be configured for 2^31 - 1 epochs: memory for an epoch's time is taken when the epoch
 * has run, and grows beyond the room that there is at first. */
static void any_number_of_epochs_may_be_configured(void)
{
	struct faulty memory;
	struct planted_run r;
	struct watch w = {.stop_at = 600, .best_val = -1};
	struct planted t = task_make();
	hg_train_config c = config_of("gcn", "fp32");
	c.model.hidden = 4;
	c.epochs = c.eval_every = INT32_MAX;
	c.progress = watch_epoch;
	c.user = &w;
	planted_open(&r, faulty_cpu_context(&memory, GIB, 1), &t, HG_F32, 0);
	planted_begin(&r, &c); /* 16 GiB for all times would be refused */
	CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
	CHECK(r.report.epochs_run == 600 && r.report.best_epoch == 600 && r.report.epoch_ms_median > 0);
	planted_close(&r);
	CHECK_EQ_I(memory.bytes, 0);
	planted_free(&t);
}

/* Makes a run of two epochs. */
static void two_epochs_make(struct planted_run *r, hg_context *ctx, int sparse)
{
	hg_train_config c = config_of("gcn", "fp16");
	struct planted t = task_make();
	c.epochs = 2;
	planted_open(r, ctx, &t, HG_F16, sparse);
	planted_begin(r, &c);
	planted_free(&t); /* the run has copied labels and masks */
}

/* The context stays alive until its last training run is freed. */
static void context_lives_until_its_run_is_freed(void)
{
	struct faulty memory;
	struct planted_run r;
	two_epochs_make(&r, faulty_cpu_context(&memory, GIB, 1), 1);
	hg_context_free(r.ctx);
	CHECK_OK(hg_train_run(r.train, &r.report));
	r.ctx = NULL;
	planted_close(&r);
	CHECK_EQ_I(memory.bytes, 0);
}

/* Here the run is the last object to be freed, and the context is freed with it, after everything
 * else: what is freed last has the size of a context. */
static void context_is_freed_after_its_run(void)
{
	struct faulty memory;
	struct planted_run r;
	two_epochs_make(&r, faulty_cpu_context(&memory, GIB, 1), 0);
	CHECK_OK(hg_train_run(r.train, &r.report));
	hg_context_free(r.ctx);
	hg_graph_free(r.graph);
	hg_tensor_free(r.x);
	hg_train_free(r.train);
	CHECK_EQ_I(memory.bytes, 0);
	CHECK_EQ_I(memory.last_freed, sizeof(hg_context));
}

/* The k-th allocation fails, for every k. The call returns a status, and every byte is freed. */
static void failed_allocations_are_reported(void)
{
	struct planted t = task_make();
	for (const char *const *model = hg_model_names(); *model; model++) {
		hg_train_config c = config_of(*model, "fp16");
		int done = 0;
		c.epochs = 2;
		/* Both epochs in one launch, with a progress function that could stop the run between
		 * them. */
		c.eval_every = c.step.per_launch = 2;
		c.progress = watch_epoch;
		for (int64_t k = 0; !done; k++) {
			struct watch w = {.best_val = -1};
			c.user = &w;
			struct faulty memory;
			struct planted_run r;
			planted_open(&r, faulty_cpu_context(&memory, GIB, 1), &t, HG_F16, 1);
			memory.calls = 0;
			memory.fail_at = k;
			hg_status status = hg_train_create(r.ctx, &c, &r.data, &r.train);
			if (status == HG_OK)
				status = hg_train_run(r.train, &r.report);
			else
				CHECK(!r.train);
			done = status == HG_OK;
			CHECK_MSG(done || status == HG_ERR_NOMEM, "%s, allocation %lld: %s: %s", *model,
			          (long long)k, hg_status_name(status), hg_context_error(r.ctx));
			planted_close(&r);
			CHECK_MSG(memory.bytes == 0, "%s, allocation %lld: %lld bytes are lost", *model,
			          (long long)k, (long long)memory.bytes);
			CHECK(k < 10000);
		}
	}
	planted_free(&t);
}

/* Of two evaluations with the same accuracy, one whose loss is NaN is never the better one. */
static void nan_loss_is_never_the_best(void)
{
	static const float losses[4] = {NAN, 2.0f, NAN, 1.0f};
	static const int64_t best[4] = {1, 2, 2, 4};
	static const double metric[HG__SPLITS];
	const struct hg__counts counts = {.counted = {[HG__SPLIT_VAL] = 4}};
	struct hg__board board = {
	    .epochs = 4, .every = 1, .validates = 1, .top_metric = -INFINITY, .low_loss = INFINITY};
	struct hg__step step = {0};
	for (int k = 0; k < 4; k++) {
		step.step = k + 1;
		hg__board_note(&board, &step, &counts, metric, losses[k]);
		CHECK_EQ_I(board.best.epoch, best[k]);
		CHECK_EQ_I(board.keep, best[k] == k + 1);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(mistakes_are_refused_by_name),
	    TEST(sizes_of_structs_are_checked),
	    TEST(classes_are_limited_by_labels_and_memory),
	    TEST(empty_split_counts_as_none),
	    TEST(any_number_of_epochs_may_be_configured),
	    TEST(context_lives_until_its_run_is_freed),
	    TEST(context_is_freed_after_its_run),
	    TEST(failed_allocations_are_reported),
	    TEST(nan_loss_is_never_the_best),
	};
	return RUN_TESTS(argc, argv, cases);
}
