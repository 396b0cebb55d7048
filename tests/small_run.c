/* A small training run, and what tests of its state compare. */
#include "small_run.h"

#include <string.h>

static int note_event(void *user, const hg_train_event *event)
{
	struct small_run *r = user;
	CHECK(r->events < SMALL_EPOCHS);
	r->loss[r->events++] = event->loss;
	r->step = event->step;
	return r->options.progress ? r->options.progress(r->options.user, event) : 0;
}

hg_train_config small_config(const char *model, const char *policy)
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

void small_open_with(struct small_run *r, hg_context *ctx, hg_train_config config,
                     const struct small_options *options)
{
	*r = (struct small_run){.ctx = ctx, .report = HG_TRAIN_REPORT_INIT};
	if (options)
		r->options = *options;
	test_reseed(31);
	const struct planted_features features = {.noise = 1.0, .signal = 1.0};
	const int columns = r->options.columns ? r->options.columns : SMALL_D;
	struct planted task = planted_make(coo_hub(SMALL_N, SMALL_M, 9, 0), columns, SMALL_C, features);
	planted_split(&task, 40, 30);
	planted_open(&r->run, ctx, &task, config.policy.state, 0);
	r->run.data.test_mask = NULL;
	r->run.data.features_note = r->options.features_note;
	config.progress = note_event;
	config.user = r;
	planted_begin(&r->run, &config);
	r->train = r->run.train;
	planted_free(&task);
}

void small_open(struct small_run *r, hg_context *ctx, hg_train_config config)
{
	small_open_with(r, ctx, config, NULL);
}

void small_close(struct small_run *r)
{
	r->run.ctx = r->ctx; /* a case that frees the context itself sets this to NULL */
	planted_close(&r->run);
}

void small_train(struct small_run *r)
{
	CHECK_MSG(hg_train_run(r->train, &r->report) == HG_OK, "%s", hg_context_error(r->ctx));
}

hg_state *small_state(struct small_run *r)
{
	hg_state *state = NULL;
	CHECK_MSG(hg_train_get_state(r->train, &state) == HG_OK, "%s", hg_context_error(r->ctx));
	return state;
}

static void check_same_tensor(const hg_state_tensor *x, const hg_state_tensor *y)
{
	CHECK_MSG(y && x->rows == y->rows && x->cols == y->cols && x->moments == y->moments &&
	              x->group == y->group,
	          "%s: shapes or groups", x->name);
	CHECK_MSG(memcmp(&x->reach, &y->reach, sizeof x->reach) == 0, "%s: reach %g and %g", x->name,
	          x->reach, y->reach);
	const size_t bytes = (size_t)(x->rows * x->cols) * sizeof(float);
	CHECK_MSG(memcmp(x->master, y->master, bytes) == 0, "%s: masters differ", x->name);
	for (int k = 0; k < x->moments; k++)
		CHECK_MSG(memcmp(x->moment[k], y->moment[k], bytes) == 0, "%s: moments %d differ", x->name,
		          k + 1);
}

static void check_same_setting(const hg_setting *x, const hg_setting *y)
{
	CHECK_MSG(y && x->kind == y->kind && x->integer == y->integer &&
	              memcmp(&x->real, &y->real, sizeof x->real) == 0 && strcmp(x->text, y->text) == 0,
	          "setting %s differs", x->name);
}

void check_same_state(const hg_state *a, const hg_state *b, int settings)
{
	CHECK_EQ_I(a->tensors, b->tensors);
	for (int64_t i = 0; i < a->tensors; i++)
		check_same_tensor(&a->tensor[i], hg_state_find_tensor(b, a->tensor[i].name));
	CHECK_MSG(
	    a->groups == b->groups &&
	        (!a->groups || memcmp(a->group, b->group, (size_t)a->groups * sizeof *a->group) == 0),
	    "rates of groups differ");
	CHECK_EQ_I(a->promotions, b->promotions);
	for (int64_t i = 0; i < a->promotions; i++) {
		const hg_promotion *x = &a->promotion[i], *y = &b->promotion[i];
		CHECK_EQ_I(x->shift, y->shift);
		CHECK(x->nth == y->nth && strcmp(x->op, y->op) == 0 && strcmp(x->layer, y->layer) == 0);
	}
	CHECK(a->step == b->step && memcmp(&a->loss_scale, &b->loss_scale, sizeof a->loss_scale) == 0);
	CHECK_MSG(memcmp(&a->plateau, &b->plateau, sizeof a->plateau) == 0, "plateaus differ");
	CHECK(!settings || a->columns == b->columns);
	CHECK_MSG(!settings || (a->class_name_bytes == b->class_name_bytes &&
	                        (!a->class_name || memcmp(a->class_name, b->class_name,
	                                                  (size_t)a->class_name_bytes) == 0)),
	          "names of classes differ");
	const size_t bytes = (size_t)a->columns * sizeof *a->column_mean;
	CHECK_MSG(!settings || !bytes ||
	              (memcmp(a->column_mean, b->column_mean, bytes) == 0 &&
	               memcmp(a->column_deviation, b->column_deviation, bytes) == 0),
	          "columns differ");
	for (int64_t i = 0; settings && i < a->settings; i++)
		check_same_setting(&a->setting[i], hg_state_find_setting(b, a->setting[i].name));
}

void check_same_history(const hg_state *a, const hg_state *b)
{
	CHECK_EQ_I(a->epochs, b->epochs);
	CHECK_MSG(!a->epochs || memcmp(a->epoch, b->epoch, (size_t)a->epochs * sizeof *a->epoch) == 0,
	          "histories differ");
}

void check_same_best(const hg_state *a, const hg_state *b)
{
	CHECK_MSG(a->best.step == b->best.step && a->best.metric == b->best.metric &&
	              memcmp(a->best.value, b->best.value, sizeof a->best.value) == 0 &&
	              memcmp(a->best.right, b->best.right, sizeof a->best.right) == 0 &&
	              memcmp(a->best.counted, b->best.counted, sizeof a->best.counted) == 0 &&
	              memcmp(&a->best.loss, &b->best.loss, sizeof a->best.loss) == 0 &&
	              a->best.nonfinite_logits == b->best.nonfinite_logits,
	          "best epochs differ: steps %lld, %lld", (long long)a->best.step,
	          (long long)b->best.step);
	for (int64_t i = 0; i < a->tensors; i++) {
		const hg_state_tensor *x = &a->tensor[i], *y = hg_state_find_tensor(b, x->name);
		CHECK_MSG(!x->best == !y->best, "%s: best weights of one", x->name);
		CHECK_MSG(!x->best || memcmp(x->best, y->best, (size_t)(x->rows * x->cols) * 4) == 0,
		          "%s: best weights differ", x->name);
	}
}

void check_resumed_run(hg_context *(*open)(void), hg_train_config c,
                       void (*hand_over)(struct small_run *from, struct small_run *to))
{
	static struct small_run whole, first, second;
	hg_train_config twice = c;
	CHECK_EQ_I(c.epochs, 10);
	twice.epochs = 2 * c.epochs;
	small_open(&whole, open(), twice);
	small_train(&whole);
	hg_state *expected = small_state(&whole);
	small_open(&first, open(), c);
	small_train(&first);
	hg_state *half = small_state(&first);
	small_open(&second, open(), c);
	hand_over(&first, &second);
	small_close(&first);
	hg_state *taken = small_state(&second);
	check_same_state(half, taken, 1);
	check_same_best(half, taken);
	check_same_history(half, taken);
	small_train(&second);
	hg_state *found = small_state(&second);
	check_same_state(expected, found, 1);
	check_same_best(expected, found);
	check_same_history(expected, found);
	CHECK(memcmp(&whole.report.best_val_accuracy, &second.report.best_val_accuracy,
	             sizeof(double)) == 0);
	CHECK_EQ_I(found->epochs, 20);
	CHECK_EQ_I(found->step, 20);
	CHECK_EQ_I(second.report.epochs_run, 10);
	CHECK(memcmp(whole.loss + c.epochs, second.loss, (size_t)c.epochs * sizeof *second.loss) == 0);
	CHECK(whole.step.skipped == second.step.skipped &&
	      memcmp(&whole.step.loss_scale, &second.step.loss_scale, sizeof(float)) == 0);
	hg_state_free(expected);
	hg_state_free(half);
	hg_state_free(taken);
	hg_state_free(found);
	small_close(&whole);
	small_close(&second);
}
