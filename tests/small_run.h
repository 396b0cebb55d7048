#ifndef HG_TESTS_SMALL_RUN_H
#define HG_TESTS_SMALL_RUN_H

#include <string.h>

#include "graphs.h"
#include "halfgraph/train.h"
#include "harness.h"

/* A training run of a few milliseconds: two planted communities, 90 nodes with a hub, 11 features.
 * For tests of what a run leaves and takes up again. */
enum { SMALL_N = 90, SMALL_M = 600, SMALL_D = 11, SMALL_C = 3, SMALL_EPOCHS = 40 };

struct small_run {
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *x;
	hg_train *train;
	hg_train_report report;
	int events;
	double loss[SMALL_EPOCHS]; /* of the epochs that were told */
	hg_step_info step;         /* of the last one */
};

/* A test's own function, called behind small_note; and hg_train_data.features_note. Of each program
 * its own. */
static hg_train_fn small_reach;
static void *small_reach_user;
static const char *small_note_text;

static inline int small_note(void *user, const hg_train_event *event)
{
	struct small_run *r = user;
	CHECK(r->events < SMALL_EPOCHS);
	r->loss[r->events++] = event->loss;
	r->step = event->step;
	return small_reach ? small_reach(small_reach_user, event) : 0;
}

/* Dropout, weight decay, a loss scale that moves within a few steps. */
static inline hg_train_config small_config(const char *model, const char *policy)
{
	hg_train_config c = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse(policy, &c.policy));
	c.policy.loss_scale.init_scale = c.policy.loss_scale.enabled ? 0x1p15f : 1.0f;
	c.policy.loss_scale.growth_interval = 3;
	c.optim.weight_decay = 5e-4f;
	c.model.hidden = 16;
	c.model.heads = 2;
	c.epochs = 10;
	c.eval_every = 5;
	return c;
}

/* Takes the context. `columns` features, at most SMALL_D. */
static inline void small_open_as(struct small_run *r, hg_context *ctx, hg_train_config config,
                                 int columns)
{
	static int32_t label[SMALL_N];
	static float x[SMALL_N * SMALL_D];
	static uint8_t train[SMALL_N], val[SMALL_N];
	hg_train_data data = HG_TRAIN_DATA_INIT;
	*r = (struct small_run){.ctx = ctx, .report = HG_TRAIN_REPORT_INIT};
	test_reseed(31);
	r->graph = coo_graph(ctx, coo_hub(SMALL_N, SMALL_M, 9, 0));
	for (int i = 0; i < SMALL_N; i++) {
		label[i] = i % SMALL_C;
		train[i] = i < 40;
		val[i] = i >= 40 && i < 70;
		for (int c = 0; c < columns; c++)
			x[i * columns + c] = (float)(test_normal() + (c % SMALL_C == label[i] ? 1.0 : 0.0));
	}
	CHECK_OK(hg_tensor_create(ctx, config.policy.state, SMALL_N, columns, &r->x));
	CHECK_OK(hg_tensor_upload(r->x, x, HG_F32));
	data.input.graph = r->graph;
	data.input.x = r->x;
	data.labels = label;
	data.features_note = small_note_text;
	data.train_mask = train;
	data.val_mask = val;
	config.progress = small_note;
	config.user = r;
	CHECK_MSG(hg_train_create(ctx, &config, &data, &r->train) == HG_OK, "%s",
	          hg_context_error(ctx));
}

static inline void small_open(struct small_run *r, hg_context *ctx, hg_train_config config)
{
	small_open_as(r, ctx, config, SMALL_D);
}

static inline void small_close(struct small_run *r)
{
	hg_train_free(r->train);
	hg_tensor_free(r->x);
	hg_graph_free(r->graph);
	hg_context_free(r->ctx);
}

/* One more run of the configured epochs. */
static inline void small_go(struct small_run *r)
{
	CHECK_MSG(hg_train_run(r->train, &r->report) == HG_OK, "%s", hg_context_error(r->ctx));
}

static inline hg_state *small_state(struct small_run *r)
{
	hg_state *state = NULL;
	CHECK_MSG(hg_train_get_state(r->train, &state) == HG_OK, "%s", hg_context_error(r->ctx));
	return state;
}

/* Bit for bit, names and order included; settings with `settings`. */
static inline void check_same_state(const hg_state *a, const hg_state *b, int settings)
{
	CHECK_EQ_I(a->tensors, b->tensors);
	for (int64_t i = 0; i < a->tensors; i++) {
		const hg_state_tensor *x = &a->tensor[i], *y = hg_state_find_tensor(b, x->name);
		CHECK_MSG(y && x->rows == y->rows && x->cols == y->cols && x->moments == y->moments,
		          "%s: shapes", x->name);
		CHECK_MSG(memcmp(&x->reach, &y->reach, sizeof x->reach) == 0, "%s: reach %g and %g",
		          x->name, x->reach, y->reach);
		const size_t bytes = (size_t)(x->rows * x->cols) * sizeof(float);
		CHECK_MSG(memcmp(x->master, y->master, bytes) == 0, "%s: masters differ", x->name);
		for (int k = 0; k < x->moments; k++)
			CHECK_MSG(memcmp(x->moment[k], y->moment[k], bytes) == 0, "%s: moments %d differ",
			          x->name, k + 1);
	}
	CHECK_EQ_I(a->promotions, b->promotions);
	for (int64_t i = 0; i < a->promotions; i++) {
		const hg_promotion *x = &a->promotion[i], *y = &b->promotion[i];
		CHECK_EQ_I(x->shift, y->shift);
		CHECK(x->nth == y->nth && strcmp(x->op, y->op) == 0 && strcmp(x->layer, y->layer) == 0);
	}
	CHECK(a->step == b->step && memcmp(&a->loss_scale, &b->loss_scale, sizeof a->loss_scale) == 0);
	for (int64_t i = 0; settings && i < a->settings; i++) {
		const hg_setting *x = &a->setting[i], *y = hg_state_find_setting(b, x->name);
		CHECK_MSG(y && x->kind == y->kind && x->integer == y->integer &&
		              memcmp(&x->real, &y->real, sizeof x->real) == 0 &&
		              strcmp(x->text, y->text) == 0,
		          "setting %s differs", x->name);
	}
}

#endif
