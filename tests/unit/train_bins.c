/* Training in batches of graphs of all sizes: small ones, some that need a large bin, and one that
 * fits in none. Each batch has the kernels that its own graphs allow. */
#include <math.h>

#include "autograd/tape.h"
#include "core/bins.h"
#include "nn/train.h"
#include "unit/capturing.h"
#include "unit/many_graphs.h"

enum { PER_BATCH = 4, EPOCHS = 40, LOUD = 32 };

/* 24 graphs: one of 400 nodes, two of 60, the others of 4 to 12. */
static void make_sizes(struct many_graphs *g, int symmetric)
{
	test_reseed(7);
	memset(g, 0, sizeof *g);
	for (int k = 0; k < 24; k++) {
		const int large = k % 9 == 2 && k < 19;
		many_graphs_add(g, k == 5 ? 400 : large ? 60 : 4 + test_below(9), 2, symmetric);
	}
	/* the largest graph has the largest features, so they are in the batches that have no bins */
	for (int64_t i = g->ptr[5] * MG_FEATURES; i < g->ptr[6] * MG_FEATURES; i++)
		g->x[i] *= LOUD;
}

struct run {
	hg_context *ctx;
	struct many_device device;
	hg_train *train;
	hg_train_report report;
	double loss[EPOCHS];
};

static int note(void *user, const hg_train_event *event)
{
	struct run *r = user;
	CHECK(event->epoch >= 1 && event->epoch <= EPOCHS && event->skipped == 0);
	r->loss[event->epoch - 1] = event->loss;
	return 0;
}

static hg_train_config config_of(const char *model, int observe)
{
	hg_train_config c = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse("fp16", &c.policy));
	c.model.hidden = 8;
	c.model.layers = 3;
	c.model.readout = HG_REDUCE_MEAN;
	c.epochs = EPOCHS;
	c.optim.lr = 0.0002f; /* so that no weight outgrows what tapes assume of it */
	c.batch_graphs = PER_BATCH;
	c.step.observe_every = observe ? 1 : -1;
	return c;
}

/* ctx: taken over. large_bins_rows: of the backend. */
static void run_all(struct run *r, hg_context *ctx, const struct many_graphs *g, hg_train_config c,
                    int64_t large_bins_rows)
{
	hg_train_data data = HG_TRAIN_DATA_INIT;
	const hg_train_report report = HG_TRAIN_REPORT_INIT;
	static struct hg__backend backend;
	memset(r, 0, sizeof *r);
	if (ctx->backend->large_bins_rows != large_bins_rows) {
		backend = *ctx->backend;
		backend.large_bins_rows = large_bins_rows;
		ctx->backend = &backend;
	}
	r->ctx = ctx;
	r->report = report;
	CHECK_OK(many_open(r->ctx, g, 0, &r->device));
	data.input = many_input(&r->device);
	data.labels = g->label;
	c.progress = note;
	c.user = r;
	CHECK_OK(hg_train_create(r->ctx, &c, &data, &r->train));
	CHECK_OK(hg_train_run(r->train, &r->report));
}

static void run_end(struct run *r)
{
	hg_train_free(r->train);
	many_close(&r->device);
	hg_context_free(r->ctx);
}

/* How many shapes the batches had that have bins of so many rows. All tapes on them have layers in
 * one kernel if these are not 0. */
static int64_t count_shapes(const struct run *r, int bin_rows)
{
	int64_t count = 0;
	for (int k = 0; k < HG__BUCKETS; k++) {
		const struct hg__bucket *b = r->train->batches.buckets.bucket[k];
		if (!b || b->batch.shape.bin_rows != bin_rows)
			continue;
		const hg_tape *tape =
		    b == r->train->batches.buckets.current ? hg_train_tape(r->train) : b->tape;
		CHECK(tape && (tape->plan.regions > 0) == (bin_rows > 0));
		count++;
	}
	return count;
}

/* Queued one behind the other or one by one, with an observer and without. Observers of batches
 * with other bins count other tensors; if steps were recorded again for that, many would not come
 * to be captured, which they are when they run for the second time. */
static void check_runs(open_fn open, const struct many_graphs *g, const char *model)
{
	struct run r[4];
	int64_t captures[4];
	for (int i = 0; i < 4; i++) {
		hg_train_config c = config_of(model, i / 2);
		c.step.per_launch = i % 2;
		run_all(&r[i], open(), g, c, 0);
		const int64_t none = count_shapes(&r[i], 0), small = count_shapes(&r[i], HG__BIN_ROWS),
		              large = count_shapes(&r[i], HG__LARGE_BIN_ROWS);
		CHECK(none > 0 && small > 0 && large > 0);
		captures[i] = capturing.captures;
		CHECK((i / 2 == 1) == (r[i].report.headroom_name != NULL));
		if (i / 2) /* of a number that is at least LOUD, whichever batch was the last one */
			CHECK(r[i].report.headroom < log2(65504.0 / LOUD));
		if (open == capturing_context) {
			test_note("%s: %lld + %lld + %lld shapes, %lld steps captured", model, (long long)none,
			          (long long)small, (long long)large, (long long)captures[i]);
			CHECK(captures[i] >= none + small + large);
			hg_train_free(r[i].train); /* there is one such device at a time */
			r[i].train = NULL;
		}
	}
	for (int i = 0; i < 4; i++) {
		CHECK(memcmp(r[0].loss, r[i].loss, sizeof r[0].loss) == 0);
		run_end(&r[i]);
	}
}

static void each_batch_has_the_bins_of_its_graphs(const void *item)
{
	static struct many_graphs g;
	for (int symmetric = 0; symmetric < 2; symmetric++) {
		make_sizes(&g, symmetric);
		check_runs(*(const open_fn *)item, &g, "gcn");
		check_runs(*(const open_fn *)item, &g, "sage");
	}
}

/* Whether the first batch, whose tape says which arrays all batches have, has the large graph or
 * not. Op by op sums are in another order. */
static void a_run_learns_what_it_learns_op_by_op(void)
{
	static struct many_graphs g;
	int with_large = 0;
	enum { SEEDS = 12 };
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct run r[2];
		for (int separate = 0; separate < 2; separate++) {
			hg_context_config of = HG_CONTEXT_CONFIG_INIT;
			hg_context *plain = test_context(), *ctx;
			of.device = hg_context_device(plain);
			of.seed = seed;
			of.separate_ops = separate;
			hg_context_free(plain);
			CHECK_OK(hg_context_create(&of, &ctx));
			make_sizes(&g, seed % 2 == 0);
			hg_train_config c = config_of(seed % 3 ? "gcn" : "sage", 0);
			c.model.dropout = 0.0f;
			if (seed / 2 % 2)
				c.model.layers = 1;
			run_all(&r[separate], ctx, &g, c, 0);
		}
		const int64_t *order = r[0].train->batches.all->order.data;
		CHECK_OK(hg_batches_order(r[0].train->batches.all, 0, r[0].train->batches.all->order.data));
		for (int k = 0; k < PER_BATCH; k++)
			with_large += order[k] == 5;
		for (int e = 0; e < EPOCHS; e++)
			CHECK_MSG(fabs(r[0].loss[e] - r[1].loss[e]) <= 0.01 * (1.0 + r[1].loss[e]),
			          "seed %d, epoch %d: %.6f, op by op %.6f", (int)seed, e, r[0].loss[e],
			          r[1].loss[e]);
		run_end(&r[0]);
		run_end(&r[1]);
	}
	test_note("in %d of %d runs the first batch has the large graph", with_large, (int)SEEDS);
	CHECK(with_large > 0 && with_large < SEEDS);
}

static int has(const int64_t *order, int64_t graph)
{
	int found = 0;
	for (int k = 0; k < PER_BATCH; k++)
		found |= order[k] == graph;
	return found;
}

/* Where few large bins gain nothing, batches with few have none. The first batch decides, if it is
 * one of these: its tape has asked for bins if the model is deep. */
static void few_large_bins_are_not_used(void)
{
	static struct many_graphs g;
	int decided = 0;
	for (uint64_t seed = 0; seed < 24; seed++) {
		struct run r;
		hg_context_config of = HG_CONTEXT_CONFIG_INIT;
		hg_context *ctx;
		int64_t order[24];
		of.device = HG_DEVICE_CPU;
		of.seed = seed;
		CHECK_OK(hg_context_create(&of, &ctx));
		make_sizes(&g, 1);
		hg_train_config c = config_of("gcn", 0);
		c.model.layers = seed % 2 ? 3 : 9;
		c.model.readout_layers = HG_READOUT_LAST; /* so all are in one kernel */
		run_all(&r, ctx, &g, c, INT64_MAX);
		CHECK_OK(hg_batches_order(r.train->batches.all, 0, order));
		const int first_is_large = !has(order, 5) && (has(order, 2) || has(order, 11)),
		          none = first_is_large && c.model.layers == 3;
		decided += none;
		for (int k = 0; k < HG__BUCKETS; k++) {
			const struct hg__bucket *b = r.train->batches.buckets.bucket[k];
			if (!b)
				continue;
			const hg_tape *tape =
			    b == r.train->batches.buckets.current ? hg_train_tape(r.train) : b->tape;
			const int rows = b->batch.shape.bin_rows;
			CHECK(!none || rows != HG__LARGE_BIN_ROWS);
			CHECK_MSG((tape->plan.regions > 0) ==
			              (rows == HG__BIN_ROWS || (rows > 0 && c.model.layers == 9)),
			          "seed %d: %d rows, %d regions", (int)seed, rows, (int)tape->plan.regions);
		}
		run_end(&r);
	}
	test_note("in %d of 12 runs the first batch decides that there are none", decided);
	CHECK(decided > 0 && decided < 12);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    ON_BOTH(each_batch_has_the_bins_of_its_graphs),
	    TEST(a_run_learns_what_it_learns_op_by_op),
	    TEST(few_large_bins_are_not_used),
	};
	return RUN_TESTS(argc, argv, cases);
}
