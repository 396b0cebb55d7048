/* Training in batches of graphs: what an epoch's loss is, that a run can stop and go on, and that
 * it learns as a run on all rows does. */
#include <math.h>

#include "core/bins.h"
#include "halfgraph/doctor.h"
#include "nn/train.h"
#include "unit/capturing.h"
#include "unit/faulty.h"
#include "unit/many_graphs.h"

enum { LEARNT = 25, JUDGED = 8, MOST_EPOCHS = 64 };

static const uint8_t *mask_of(int split)
{
	static uint8_t mask[3][MG_GRAPHS];
	for (int k = 0; k < MG_GRAPHS; k++) {
		const int of = k < LEARNT ? 0 : k < LEARNT + JUDGED ? 1 : 2;
		for (int s = 0; s < 3; s++)
			mask[s][k] = of == s;
	}
	return mask[split];
}

/* A run on the device; `losses` are those of its epochs. */
struct run {
	struct many_device device;
	hg_train_data data;
	hg_train *train;
	hg_train_report report;
	double losses[MOST_EPOCHS];
	hg_train_event last;
	int epochs, stop_at;
	int64_t skipped, overflowed; /* steps of all epochs */
};

static int note(void *user, const hg_train_event *event)
{
	struct run *r = user;
	r->last = *event;
	r->skipped += event->skipped;
	r->overflowed += event->overflowed;
	CHECK(r->epochs < MOST_EPOCHS);
	r->losses[r->epochs++] = event->loss;
	return event->epoch == r->stop_at;
}

static hg_train_config config_of(const char *model, const char *policy, int64_t batch)
{
	hg_train_config c = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse(policy, &c.policy));
	c.model.hidden = 8;
	c.model.heads = 2;
	c.model.readout = HG_REDUCE_MEAN;
	c.model.edge_features = hg_model_get_info(model)->edge_features ? MG_ATTRIBUTES : 0;
	c.epochs = 6;
	c.optim.lr = 0.01f;
	c.batch_graphs = batch;
	return c;
}

/* Targets: some of them are missing, all those of one graph. */
static void set_truth(struct run *r, const struct many_graphs *g, hg_loss loss)
{
	static float target[2 * MG_GRAPHS];
	if (loss == HG_LOSS_CROSS_ENTROPY) {
		r->data.labels = g->label;
		return;
	}
	for (int k = 0; k < 2 * MG_GRAPHS; k++) {
		target[k] = loss == HG_LOSS_BCE ? (float)(g->label[k / 2] == k % 2) : g->target[k];
		if (k % 5 == 3 || k / 2 == 6)
			target[k] = NAN;
	}
	r->data.targets = target;
	r->data.target_cols = 2;
}

static hg_status run_try(struct run *r, hg_context *ctx, const struct many_graphs *g, int variant,
                         hg_train_config *c)
{
	const hg_train_data none = HG_TRAIN_DATA_INIT;
	const hg_train_report empty = HG_TRAIN_REPORT_INIT;
	memset(r, 0, sizeof *r);
	r->data = none;
	r->report = empty;
	const hg_status status = many_open(ctx, g, variant, &r->device);
	if (status < 0)
		return status;
	r->data.input = many_input(&r->device);
	set_truth(r, g, c->loss);
	r->data.train_mask = mask_of(0);
	r->data.val_mask = mask_of(1);
	r->data.test_mask = mask_of(2);
	c->progress = note;
	c->user = r;
	return hg_train_create(ctx, c, &r->data, &r->train);
}

static void run_open(struct run *r, hg_context *ctx, const struct many_graphs *g, int variant,
                     hg_train_config c)
{
	CHECK_OK(run_try(r, ctx, g, variant, &c));
}

static void run_close(struct run *r)
{
	hg_train_free(r->train);
	many_close(&r->device);
}

static void check_same_weights(struct run *a, struct run *b)
{
	static float x[4096], y[4096];
	hg_params *p = hg_train_params(a->train), *q = hg_train_params(b->train);
	for (int64_t i = 0; i < hg_params_count(p); i++) {
		const hg_tensor *of_a = hg_param_master(hg_params_at(p, i)),
		                *of_b = hg_param_master(hg_params_at(q, i));
		const int64_t count = hg_tensor_rows(of_a) * hg_tensor_cols(of_a);
		CHECK(count <= 4096);
		CHECK_OK(hg_tensor_download(of_a, x, HG_F32));
		CHECK_OK(hg_tensor_download(of_b, y, HG_F32));
		CHECK_MSG(memcmp(x, y, (size_t)count * sizeof *x) == 0, "%s differs",
		          hg_param_name(hg_params_at(p, i)));
	}
}

/* ---- evaluations ---- */

/* Logits of a run whose evaluations are on so many graphs at a time; 0: on all of them. */
static void run_evaluated(hg_context *ctx, const struct many_graphs *g, int variant,
                          hg_train_config c, int64_t graphs, struct run *r, float *logits)
{
	int32_t classes[MG_GRAPHS];
	c.eval_graphs = graphs;
	c.model.out_features = c.loss == HG_LOSS_CROSS_ENTROPY ? MG_CLASSES : 2;
	run_open(r, ctx, g, variant, c);
	CHECK((graphs && graphs < MG_GRAPHS) == (r->train->evaluator.tape == NULL));
	CHECK_OK(hg_train_run(r->train, &r->report));
	CHECK_OK(hg_train_predict(r->train, classes, logits));
	if (c.loss == HG_LOSS_CROSS_ENTROPY) {
		int64_t right = 0, of = 0;
		for (int k = 0; k < MG_GRAPHS; k++) {
			of += mask_of(2)[k];
			right += mask_of(2)[k] && classes[k] == g->label[k];
		}
		CHECK_WITHIN(r->report.test_accuracy, (double)right / (double)of, 1e-12);
	}
	run_close(r);
}

/* A learning rate of 0, so that weights are the same at every epoch. A row of a product is summed
 * in the same order wherever it is, but a kernel may be chosen by the number of rows, so a few
 * numbers round to the other side, and later layers see that. The test allows so many roundings of
 * the largest logit, of the state type. Measured on a CPU: 5.1 at most, and 0 for most models and
 * types. Logits of fp16 that differ by a tenth of the largest are 200 roundings apart. */
#define ROUNDINGS 8

static double check_evaluations(hg_context *ctx, const struct many_graphs *g, const char *model,
                                int variant, hg_loss loss)
{
	static const int64_t sizes[] = {1, 7, 20, MG_GRAPHS - 1, 1000};
	static float all[MG_GRAPHS * MG_CLASSES], some[MG_GRAPHS * MG_CLASSES];
	hg_train_config c = config_of(model, variant & MG_F32 ? "fp32" : "fp16", 9);
	const int64_t count = MG_GRAPHS * (loss == HG_LOSS_CROSS_ENTROPY ? MG_CLASSES : 2);
	const double unit = variant & MG_F32 ? 0x1p-24 : 0x1p-11;
	struct run expected, found;
	double largest = 0.0, worst = 0.0;
	c.loss = loss;
	c.optim.lr = 0.0f;
	c.epochs = 3;
	run_evaluated(ctx, g, variant, c, 0, &expected, all);
	for (int64_t i = 0; i < count; i++)
		largest = fmax(largest, fabs((double)all[i]));
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		run_evaluated(ctx, g, variant, c, sizes[s], &found, some);
		for (int64_t i = 0; i < count; i++) {
			const double apart = fabs((double)all[i] - (double)some[i]) / (unit * largest);
			CHECK_MSG(apart <= ROUNDINGS,
			          "%s, variant %d, %lld graphs at a time: logit %lld is %.9g, expected %.9g",
			          model, variant, (long long)sizes[s], (long long)i, some[i], all[i]);
			worst = fmax(worst, apart);
		}
		if (loss == HG_LOSS_MAE)
			CHECK_WITHIN(found.last.val_metric, expected.last.val_metric,
			             ROUNDINGS * unit * largest);
	}
	return worst;
}

static void evaluations_in_batches_are_those_of_all_graphs(void)
{
	static struct many_graphs g;
	many_graphs_make(&g, 1, 1);
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int variant = 0; variant < MG_VARIANTS; variant++) {
			hg_context *ctx = test_context();
			test_note("%s, variant %d: logits at most %.2g and %.2g roundings apart", *name,
			          variant, check_evaluations(ctx, &g, *name, variant, HG_LOSS_CROSS_ENTROPY),
			          check_evaluations(ctx, &g, *name, variant, HG_LOSS_MAE));
			hg_context_free(ctx);
		}
}

/* ---- what an epoch is ---- */

/* With a learning rate of 0 the weights stay, so the mean over the batches is the loss of all
 * graphs, however they are dealt out. Some 64 roundings of f32 lie on the way from a logit, which
 * is below 16 here, to the mean. */
static void loss_of_an_epoch_is_the_mean_over_all_that_is_learnt(void)
{
	static const int64_t sizes[] = {1, 4, 24, 25, 1000};
	static struct many_graphs g;
	many_graphs_make(&g, 1, 1);
	for (int loss = HG_LOSS_CROSS_ENTROPY; loss <= HG_LOSS_MAE; loss++)
		for (int variant = 0; variant < 4; variant++) {
			hg_train_config c = config_of("gcn", "fp32", 0);
			double expected = 0.0;
			c.loss = (hg_loss)loss;
			c.optim.lr = 0.0f;
			c.model.dropout = 0.0f;
			c.epochs = 1;
			for (int s = -1; s < 5; s++) {
				struct run r;
				hg_context *ctx = test_context();
				c.batch_graphs = s < 0 ? 0 : sizes[s];
				run_open(&r, ctx, &g, variant | MG_F32, c);
				CHECK_OK(hg_train_run(r.train, &r.report));
				/* with targets the graph without one is not learnt */
				const int64_t learnt = loss == HG_LOSS_CROSS_ENTROPY ? LEARNT : LEARNT - 1,
				              steps = s < 0 ? 1 : (learnt - 1) / sizes[s] + 1;
				CHECK_EQ_I(r.last.steps, steps);
				CHECK_EQ_I(r.report.steps_run, steps);
				CHECK_EQ_I(r.last.step.steps, steps);
				CHECK(r.last.skipped == 0 && r.last.overflowed == 0);
				CHECK((s < 0) == (r.last.prepare_ms <= 0.0));
				CHECK((s < 0) == (r.report.prepare_share <= 0.0));
				CHECK(r.last.prepare_ms <= r.last.epoch_ms && r.report.prepare_share < 1.0);
				if (s < 0)
					expected = r.report.final_loss;
				CHECK_WITHIN(r.report.final_loss, expected, 64 * 0x1p-24 * (16.0 + expected));
				run_close(&r);
				hg_context_free(ctx);
			}
		}
}

/* A seed with which the first epoch keeps the order of the learnt graphs, which are in the order of
 * hg__bins_pack: the shuffle decides on the order of those of one size alone. */
static uint64_t seed_in_order(const struct many_graphs *g, const uint8_t *chosen, int64_t count)
{
	hg_context *ctx = test_context();
	struct many_device d;
	uint64_t seed = 0;
	CHECK_OK(many_open(ctx, g, 0, &d));
	for (int in_order = 0; !in_order; seed += !in_order) {
		hg_batches_config c = HG_BATCHES_CONFIG_INIT;
		hg_batches *b;
		int64_t order[MG_GRAPHS];
		c.input = many_input(&d);
		c.chosen = chosen;
		c.graphs = MG_GRAPHS;
		c.seed = seed;
		CHECK_OK(hg_batches_create(ctx, &c, &b));
		CHECK_OK(hg_batches_order(b, 0, order));
		in_order = 1;
		for (int64_t k = 1; k < count; k++)
			in_order &= order[k] > order[k - 1];
		hg_batches_free(b);
	}
	many_close(&d);
	hg_context_free(ctx);
	return seed;
}

static hg_context *context_of(uint64_t seed)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	hg_context *plain = test_context(), *ctx = NULL;
	config.device = hg_context_device(plain);
	config.seed = seed;
	hg_context_free(plain);
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

/* All graphs are learnt, in one batch and in their order. It is padded, so sums over its rows are
 * in another order, and sparse features are dense in it. */
static void one_batch_of_all_graphs_is_the_full_batch(void)
{
	static struct many_graphs all, g;
	int64_t few[] = {2, 3, 5, 6}, scratch[4];
	uint16_t nodes[MG_GRAPHS];
	many_graphs_make(&all, 1, 1);
	for (int k = 0; k < MG_GRAPHS; k++)
		nodes[k] = (uint16_t)(all.ptr[k + 1] - all.ptr[k]);
	hg__bins_pack(nodes, 4, few, scratch); /* the order in which a batch packs them */
	many_graphs_pick(&all, few, 4, &g);
	const uint64_t seed = seed_in_order(&g, NULL, 4);
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int variant = 0; variant < MG_VARIANTS; variant++) {
			struct run r[2];
			hg_context *ctx[2];
			for (int k = 0; k < 2; k++) {
				hg_train_config c = config_of(*name, variant & MG_F32 ? "fp32" : "fp16", k ? 4 : 0);
				c.epochs = 1;
				c.model.out_features = MG_CLASSES;
				if (variant & MG_SPARSE) /* dropout has other elements to draw for */
					c.model.dropout = 0.0f;
				ctx[k] = context_of(seed);
				const hg_train_report empty = HG_TRAIN_REPORT_INIT;
				const hg_train_data none = HG_TRAIN_DATA_INIT;
				memset(&r[k], 0, sizeof r[k]);
				r[k].report = empty;
				r[k].data = none;
				CHECK_OK(many_open(ctx[k], &g, variant, &r[k].device));
				r[k].data.input = many_input(&r[k].device);
				r[k].data.labels = g.label;
				CHECK_OK(hg_train_create(ctx[k], &c, &r[k].data, &r[k].train));
				CHECK_OK(hg_train_run(r[k].train, &r[k].report));
			}
			const double loss = r[0].report.final_loss, u = variant & MG_F32 ? 0x1p-18 : 0x1p-8;
			CHECK(r[1].train->batches.buckets.current && !r[0].train->batches.buckets.current);
			CHECK_MSG(fabs(r[1].report.final_loss - loss) <= u * (1.0 + loss), "%s %d: %.9g, %.9g",
			          *name, variant, loss, r[1].report.final_loss);
			for (int k = 0; k < 2; k++) {
				run_close(&r[k]);
				hg_context_free(ctx[k]);
			}
		}
}

/* ---- learning ---- */

static void all_models_learn_in_batches(void)
{
	static struct many_graphs g;
	many_graphs_make(&g, 1, 0);
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int k = 0; k < 4; k++) {
			struct run r;
			hg_context *ctx = test_context();
			hg_train_config c = config_of(*name, k % 2 ? "fp32" : "fp16", 7);
			hg_observer observer = HG_OBSERVER_INIT;
			c.epochs = 60;
			c.model.dropout = c.model.attention_dropout = 0.1f;
			c.step.observe_every = 8;
			run_open(&r, ctx, &g, k / 2 ? MG_SPARSE : 0, c);
			CHECK_OK(hg_train_run(r.train, &r.report));
			CHECK_EQ_I(r.report.steps_run, 240);
			CHECK_EQ_I(r.report.replans, 0);
			CHECK_OK(hg_step_observer(hg_train_step(r.train), &observer));
			/* the observer's counts outlive the tapes of the batches */
			CHECK(observer.steps > 1 && (k % 2 || isfinite(observer.headroom)));
			test_note("%s %s: loss %.3f after %.3f, validation %.3f", *name, c.policy.name,
			          r.report.final_loss, r.losses[0], r.report.best_val_accuracy);
			CHECK(r.report.final_loss < 0.7 * r.losses[0]);
			CHECK(r.report.best_val_accuracy > 0.8);
			run_close(&r);
			hg_context_free(ctx);
		}
}

/* Two runs, each in a context of its own, have the same losses and weights. Ends both. */
static void close_same_runs(struct run *r, hg_context *const *ctx)
{
	CHECK(memcmp(r[0].losses, r[1].losses, sizeof r[0].losses) == 0);
	check_same_weights(&r[0], &r[1]);
	for (int i = 0; i < 2; i++) {
		run_close(&r[i]);
		hg_context_free(ctx[i]);
	}
}

static void two_runs_give_the_same_bits_with_any_number_of_threads(void)
{
	static struct many_graphs g;
	many_graphs_make(&g, 0, 1);
	for (int k = 0; k < 4; k++) {
		struct run r[2];
		hg_context *ctx[2];
		for (int i = 0; i < 2; i++) {
			ctx[i] = test_cpu_context(1 + i);
			run_open(&r[i], ctx[i], &g, k, config_of(k % 2 ? "gin" : "gat", "fp16", 6));
			CHECK_OK(hg_train_run(r[i].train, &r[i].report));
		}
		close_same_runs(r, ctx);
	}
}

static void features_in_host_memory_give_the_same_bits(void)
{
	static const char *const models[] = {"gcn", "gine"};
	static struct many_graphs g;
	many_graphs_make(&g, 0, 1);
	for (int k = 0; k < 8; k++) {
		const int variant = k & (MG_WEIGHTED | MG_F32);
		struct run r[2];
		hg_context *ctx[2];
		for (int i = 0; i < 2; i++) {
			ctx[i] = test_context();
			run_open(&r[i], ctx[i], &g, variant | (i ? MG_ON_HOST : 0),
			         config_of(models[k / 2 % 2], variant & MG_F32 ? "fp32" : "fp16", 6));
			CHECK_OK(hg_train_run(r[i].train, &r[i].report));
		}
		close_same_runs(r, ctx);
	}
}

static int64_t buckets_of(const struct run *r)
{
	int64_t count = 0;
	for (int k = 0; k < HG__BUCKETS; k++)
		count += r->train->batches.buckets.bucket[k] != NULL;
	return count;
}

/* What is captured on the batches of one shape serves later ones, whose numbers are in the same
 * memory. */
static void captured_steps_give_the_same_bits(const void *item)
{
	static const char *const models[] = {"gcn", "gin", "gine", "gat", "sage", "gt"};
	static struct many_graphs g;
	const open_fn open = *(const open_fn *)item;
	many_graphs_make(&g, 0, 1);
	for (size_t m = 0; m < sizeof models / sizeof *models; m++)
		for (int variant = 0; variant < MG_VARIANTS; variant++) {
			struct run r[2];
			hg_context *ctx[2];
			for (int eager = 0; eager < 2; eager++) {
				hg_train_config c = config_of(models[m], variant & MG_F32 ? "fp32" : "fp16", 6);
				c.epochs = 5;
				c.step.eager = eager;
				c.step.observe_every = 3;
				ctx[eager] = open();
				run_open(&r[eager], ctx[eager], &g, variant, c);
				CHECK_OK(hg_train_run(r[eager].train, &r[eager].report));
				if (open == capturing_context)
					CHECK((capturing.launches > 0) == !eager);
				CHECK(buckets_of(&r[eager]) > 1 && buckets_of(&r[eager]) < 25);
				if (open == capturing_context) {
					/* there is one such device at a time */
					hg_train_free(r[eager].train);
					r[eager].train = NULL;
					CHECK_EQ_I(capturing.kept, 0);
				}
			}
			CHECK(memcmp(r[0].losses, r[1].losses, sizeof r[0].losses) == 0);
			if (r[0].train)
				check_same_weights(&r[0], &r[1]);
			for (int k = 0; k < 2; k++) {
				run_close(&r[k]);
				hg_context_free(ctx[k]);
			}
		}
}

/* ---- stopping and going on ---- */

static const hg_state_epoch *epoch_at(const hg_state *state, int64_t i)
{
	CHECK(i < state->epochs);
	return &state->epoch[i];
}

/* Six epochs; and two, a stop after the third, and the rest in a run of its own. */
static void check_resumed(const struct many_graphs *g, const char *model, const char *policy,
                          int variant, hg_loss loss)
{
	struct run whole, first, second;
	hg_context *ctx[3] = {test_context(), test_context(), test_context()};
	hg_train_config c = config_of(model, policy, 6);
	hg_state *state = NULL, *ended[2];
	c.loss = loss;
	run_open(&whole, ctx[0], g, variant, c);
	CHECK_OK(hg_train_run(whole.train, &whole.report));
	run_open(&first, ctx[1], g, variant, c);
	first.stop_at = 3;
	CHECK_STATUS(hg_train_run(first.train, &first.report), HG_INFO_STOPPED);
	CHECK_EQ_I(first.report.epochs_run, 3);
	CHECK_OK(hg_train_get_state(first.train, &state));
	c.epochs = 3;
	run_open(&second, ctx[2], g, variant, c);
	CHECK_OK(hg_train_set_state(second.train, state));
	CHECK_OK(hg_train_run(second.train, &second.report));
	CHECK(memcmp(first.losses, whole.losses, 3 * sizeof(double)) == 0);
	CHECK(memcmp(second.losses, whole.losses + 3, 3 * sizeof(double)) == 0);
	check_same_weights(&whole, &second);
	CHECK_OK(hg_train_get_state(whole.train, &ended[0]));
	CHECK_OK(hg_train_get_state(second.train, &ended[1]));
	for (int64_t k = 0; k < 6; k++) {
		const hg_state_epoch *a = epoch_at(ended[0], k), *b = epoch_at(ended[1], k);
		CHECK_EQ_I(a->step, (k + 1) * whole.last.steps);
		CHECK(a->step == b->step && memcmp(&a->loss, &b->loss, sizeof a->loss) == 0);
	}
	hg_state_free(state);
	hg_state_free(ended[0]);
	hg_state_free(ended[1]);
	struct run *const runs[] = {&whole, &first, &second};
	for (int k = 0; k < 3; k++) {
		run_close(runs[k]);
		hg_context_free(ctx[k]);
	}
}

static void a_resumed_run_gives_the_same_bits(void)
{
	static struct many_graphs g;
	many_graphs_make(&g, 0, 1);
	for (const char *const *name = hg_model_names(); *name; name++)
		for (int variant = 0; variant < 4; variant++)
			check_resumed(&g, *name, variant % 2 ? "fp16" : "fp32", variant,
			              variant < 2 ? HG_LOSS_CROSS_ENTROPY : HG_LOSS_MAE);
}

static void a_run_goes_on_after_its_patience(void)
{
	static struct many_graphs g;
	struct run r;
	hg_context *ctx = test_context();
	hg_train_config c = config_of("gcn", "fp32", 6);
	many_graphs_make(&g, 1, 0);
	c.optim.lr = 0.0f;
	c.epochs = 20;
	c.patience = 2;
	run_open(&r, ctx, &g, 0, c);
	for (int k = 1; k <= 2; k++) {
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK_EQ_I(r.report.epochs_run, 3);
		CHECK_EQ_I(r.last.step.steps, 15 * k);
		CHECK_EQ_I(r.report.steps_skipped, 0);
	}
	run_close(&r);
	hg_context_free(ctx);
}

static void another_size_of_batches_is_reported(void)
{
	static struct many_graphs g;
	struct run r[2];
	hg_context *ctx = test_context();
	hg_state *state;
	many_graphs_make(&g, 1, 0);
	run_open(&r[0], ctx, &g, 0, config_of("gcn", "fp32", 6));
	run_open(&r[1], ctx, &g, 0, config_of("gcn", "fp32", 7));
	CHECK_OK(hg_train_run(r[0].train, &r[0].report));
	CHECK_OK(hg_train_get_state(r[0].train, &state));
	CHECK_STATUS(hg_train_set_state(r[1].train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(ctx), "train.batch_graphs");
	CHECK_OK(hg_train_run(r[1].train, &r[1].report));
	CHECK_EQ_I(r[1].last.step.steps, 6 * 5 + 6 * 4);
	hg_state_free(state);
	run_close(&r[0]);
	run_close(&r[1]);
	hg_context_free(ctx);
}

/* The caller stops before the first evaluation, which then ends the patience of that run: a loss
 * that is a NaN is no improvement. It does not end that of the next run. */
static void patience_of_a_run_ends_with_it(void)
{
	static struct many_graphs g;
	struct run r;
	hg_context *ctx = test_context();
	hg_train_config c = config_of("gin", "fp32", 6);
	many_graphs_make(&g, 1, 0);
	c.loss = HG_LOSS_MSE;
	c.optim.lr = 1e30f;
	c.patience = 1;
	c.eval_every = 10;
	run_open(&r, ctx, &g, MG_F32, c);
	r.stop_at = 1;
	for (int64_t k = 1; k <= 3; k++) {
		CHECK_STATUS(hg_train_run(r.train, &r.report), HG_INFO_STOPPED);
		CHECK_EQ_I(r.last.step.steps, k * r.last.steps);
	}
	run_close(&r);
	hg_context_free(ctx);
}

/* Steps that the caller runs between two runs leave records, too. */
static void steps_between_runs_are_not_taken_for_theirs(void)
{
	static struct many_graphs g;
	many_graphs_make(&g, 1, 0);
	for (int64_t between = 0; between <= 2 * HG_STEP_REMEMBERED; between += HG_STEP_REMEMBERED) {
		struct run r;
		hg_context *ctx = test_context();
		hg_train_config c = config_of("gcn", "fp16", LEARNT);
		c.epochs = 2;
		run_open(&r, ctx, &g, 0, c);
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK_OK(hg_step_run(hg_train_step(r.train), between));
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK_EQ_I(r.last.step.steps, 2 + between + 2);
		run_close(&r);
		hg_context_free(ctx);
	}
}

/* Whichever graphs the first batch has, also if none of them has a node. */
static void graphs_without_nodes_or_edges_are_learnt(void)
{
	static struct many_graphs g;
	memset(&g, 0, sizeof g);
	for (int64_t k = 0; k < 20; k++)
		many_graphs_add(&g, k % 2, 0, 1);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct run r;
		hg_context *ctx = context_of(seed);
		hg_train_config c = config_of("gcn", "fp16", 2);
		run_open(&r, ctx, &g, 0, c);
		CHECK_OK(hg_train_run(r.train, &r.report));
		CHECK(r.last.skipped == 0 && isfinite(r.last.loss));
		run_close(&r);
		hg_context_free(ctx);
	}
}

/* The factors are made of weights, so a batch in the memory of another one would have to bring
 * them. */
static void with_weighted_degrees_batches_keep_their_shapes(void)
{
	static struct many_graphs g;
	struct run r;
	hg_context *ctx = test_context();
	hg_train_config c = config_of("gcn", "fp16", 6);
	many_graphs_make(&g, 1, 1);
	c.model.norm = HG_NORM_WEIGHTED;
	run_open(&r, ctx, &g, MG_WEIGHTED, c);
	CHECK(!r.train->batches.buckets.padded.all);
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(r.last.loss < r.losses[0]);
	run_close(&r);
	hg_context_free(ctx);
}

/* ---- what goes wrong ---- */

/* Sums of large features overflow in f16. The step of that batch is skipped, and the tapes of the
 * batches after it are recorded with more room. */
static void a_step_that_overflows_is_skipped_and_the_run_learns(void)
{
	static struct many_graphs g;
	struct run r;
	hg_context *ctx = test_context();
	hg_train_config c = config_of("gin", "fp16", 6);
	many_graphs_make(&g, 1, 0);
	for (int64_t i = 0; i < g.nodes * MG_FEATURES; i++)
		g.x[i] *= 8000.0f;
	c.epochs = 30;
	c.model.dropout = 0.0f;
	run_open(&r, ctx, &g, 0, c);
	CHECK_OK(hg_train_run(r.train, &r.report));
	CHECK(r.report.replans > 0 && r.report.rescaled > 0);
	CHECK_EQ_I(r.overflowed, r.report.replans);
	CHECK_EQ_I(r.skipped, r.report.steps_skipped);
	/* the other skipped steps have halved the loss scale */
	CHECK(r.report.loss_scale_final >= ldexpf(65536.0f, (int)(r.overflowed - r.skipped)));
	CHECK(isnan(r.losses[0]) && r.report.loss_finite && r.report.nonfinite_logits == 0);
	CHECK_MSG(r.report.best_val_accuracy > 0.8, "%g", r.report.best_val_accuracy);
	run_close(&r);
	hg_context_free(ctx);
}

/* Batches that are queued together do what they do one by one, also where a step overflows, or a
 * weight outgrows its bound, and stops those behind it. */
static void queued_batches_give_the_same_bits(const void *item)
{
	static const float rates[] = {0.02f, 0.3f, 3.0f};
	static struct many_graphs g;
	const open_fn open = *(const open_fn *)item;
	int64_t overflowed = 0, replans = 0;
	many_graphs_make(&g, 1, 1);
	for (int64_t i = 0; i < g.nodes * MG_FEATURES; i++)
		g.x[i] *= 300.0f;
	for (int rate = 0; rate < 3; rate++)
		for (int loss = HG_LOSS_CROSS_ENTROPY; loss <= HG_LOSS_MSE; loss++) {
			struct run r[2];
			hg_context *ctx[2];
			for (int alone = 0; alone < 2; alone++) {
				hg_train_config c = config_of(rate % 2 ? "gin" : "gcn", "fp16", 4);
				c.loss = (hg_loss)loss;
				c.optim.lr = rates[rate];
				c.epochs = 12;
				c.eval_every = 5;
				c.step.per_launch = alone;
				c.step.observe_every = 2;
				ctx[alone] = open();
				run_open(&r[alone], ctx[alone], &g, MG_WEIGHTED, c);
				CHECK_OK(hg_train_run(r[alone].train, &r[alone].report));
				overflowed += r[alone].overflowed;
				replans += r[alone].train->recordings;
				if (open == capturing_context) { /* there is one such device at a time */
					hg_train_free(r[alone].train);
					r[alone].train = NULL;
				}
			}
			CHECK(memcmp(r[0].losses, r[1].losses, sizeof r[0].losses) == 0);
			CHECK(r[0].skipped == r[1].skipped && r[0].overflowed == r[1].overflowed);
			CHECK(r[0].report.replans == r[1].report.replans);
			if (r[0].train)
				check_same_weights(&r[0], &r[1]);
			for (int k = 0; k < 2; k++) {
				run_close(&r[k]);
				hg_context_free(ctx[k]);
			}
		}
	test_note("%lld steps overflowed, tapes were recorded again %lld times", (long long)overflowed,
	          (long long)replans);
	CHECK(overflowed > 0 && replans > overflowed);
}

static void bad_configurations_are_refused(void)
{
	static struct many_graphs g;
	struct run r;
	hg_context *ctx = test_context();
	hg_doctor *doctor = NULL;
	many_graphs_make(&g, 1, 0);
	hg_train_config c = config_of("gcn", "fp32", -1);
	CHECK_STATUS(run_try(&r, ctx, &g, 0, &c), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "batch_graphs is -1");
	run_close(&r);
	c.batch_graphs = 4;
	c.model.readout = -1;
	CHECK_STATUS(run_try(&r, ctx, &g, 0, &c), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "only a graph task");
	run_close(&r);
	c.model.readout = HG_REDUCE_SUM;
	CHECK_OK(run_try(&r, ctx, &g, 0, &c));
	CHECK_STATUS(hg_doctor_create_train(r.train, NULL, &doctor), HG_ERR_UNSUPPORTED);
	CHECK(doctor == NULL);
	run_close(&r);
	hg_context_free(ctx);
}

static hg_status scene(hg_context *ctx)
{
	static struct many_graphs g;
	struct run r;
	hg_train_config c = config_of("gin", "fp16", 10);
	hg_state *state = NULL;
	many_graphs_make(&g, 0, 1);
	c.eval_graphs = 15;
	c.model.layers = 1;
	c.epochs = 3;
	c.optim.lr = 1.0f; /* weights outgrow what tapes assume, which are recorded again */
	hg_status s = run_try(&r, ctx, &g, MG_SPARSE, &c);
	if (s >= 0)
		s = hg_train_run(r.train, &r.report);
	if (s >= 0)
		s = hg_train_get_state(r.train, &state);
	if (s >= 0)
		s = hg_train_set_state(r.train, state);
	if (s < 0 && r.train) { /* it predicts, or says why not */
		float logits[MG_GRAPHS * MG_CLASSES];
		int32_t classes[MG_GRAPHS];
		(void)!hg_train_predict(r.train, classes, logits);
	}
	hg_state_free(state);
	run_close(&r);
	return s;
}

static void failed_allocations_leak_nothing(void)
{
	test_note("%lld allocations", (long long)faulty_sweep(scene));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(loss_of_an_epoch_is_the_mean_over_all_that_is_learnt),
	    TEST(evaluations_in_batches_are_those_of_all_graphs),
	    TEST(one_batch_of_all_graphs_is_the_full_batch),
	    TEST(all_models_learn_in_batches),
	    TEST(two_runs_give_the_same_bits_with_any_number_of_threads),
	    TEST(features_in_host_memory_give_the_same_bits),
	    ON_BOTH(captured_steps_give_the_same_bits),
	    TEST(a_resumed_run_gives_the_same_bits),
	    TEST(a_run_goes_on_after_its_patience),
	    TEST(another_size_of_batches_is_reported),
	    TEST(patience_of_a_run_ends_with_it),
	    TEST(steps_between_runs_are_not_taken_for_theirs),
	    TEST(graphs_without_nodes_or_edges_are_learnt),
	    TEST(with_weighted_degrees_batches_keep_their_shapes),
	    TEST(a_step_that_overflows_is_skipped_and_the_run_learns),
	    ON_BOTH(queued_batches_give_the_same_bits),
	    TEST(bad_configurations_are_refused),
	    TEST(failed_allocations_leak_nothing),
	};
	return RUN_TESTS(argc, argv, cases);
}
