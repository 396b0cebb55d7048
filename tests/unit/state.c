/* The state of a run. A run that takes over the state of another continues it with the same bits. A
 * state that does not fit is refused and changes nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/param.h"
#include "nn/train.h"
#include "small_run.h"
#include "unit/capturing.h"
#include "unit/faulty.h"

static void hand_over(struct small_run *from, struct small_run *to)
{
	hg_state *state = small_state(from);
	CHECK_MSG(hg_train_set_state(to->train, state) == HG_OK, "%s", hg_context_error(to->ctx));
	hg_state_free(state);
}

static void resumed_runs_have_the_same_bits(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized", "fp16-naive"};
	for (size_t d = 0; d < 2; d++)
		for (const char *const *model = hg_model_names(); *model; model++)
			for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
				check_resumed_run(devices[d], small_config(*model, policies[p]), hand_over);
}

/* Sums times lambda overflow behind their guards in the first steps. From then on they are
 * rescaled, or kept in f32 where no power of two is enough. The state of the run says so. A run
 * that is put back to its first state does not rescale them. */
static void promotions_are_part_of_the_state(void)
{
	static const float lambdas[] = {4096.0f, 0x1p24f};
	for (int rescaled = 1; rescaled >= 0; rescaled--) {
		static struct small_run r;
		hg_train_config c = small_config("gin", "fp16");
		c.eval_every = 1;
		c.model.lambda = lambdas[!rescaled];
		small_open(&r, test_context(), c);
		hg_state *begin = small_state(&r);
		small_train(&r);
		hg_state *end = small_state(&r);
		CHECK_MSG(r.report.replans > 0 && end->promotions > 0 && r.report.loss_finite, "%d replans",
		          r.report.replans);
		CHECK_MSG((r.report.rescaled > 0) == rescaled && (r.report.promoted > 0) == !rescaled,
		          "%d rescaled, %d in f32", r.report.rescaled, r.report.promoted);
		CHECK_EQ_I(end->promotion[0].shift > 0, rescaled);
		CHECK_OK(hg_train_set_state(r.train, begin));
		hg_state *again = small_state(&r);
		check_same_state(begin, again, 1);
		hg_state_free(begin);
		hg_state_free(end);
		hg_state_free(again);
		small_close(&r);
		check_resumed_run(test_context, c, hand_over);
	}
}

/* Tapes that are recorded again after the best epoch round elsewhere. The report is then of these
 * tapes: what a prediction gives. Here weights outgrow their bounds while the run gets worse. */
static void reports_are_of_the_final_tapes(void)
{
	static struct small_run r;
	static int32_t row[SMALL_N];
	hg_train_config c = small_config("gcn", "fp16");
	c.eval_every = 1;
	c.epochs = 30;
	c.optim.lr = 1.5f;
	small_open(&r, test_context(), c);
	small_train(&r);
	CHECK_MSG(r.train->recordings > r.train->best_recording, "%lld recordings, best in %lld",
	          (long long)r.train->recordings, (long long)r.train->best_recording);
	CHECK_OK(hg_train_predict(r.train, row, NULL));
	int right = 0, counted = 0;
	for (int i = 40; i < 70; i++) { /* the validation set and the labels of small_open */
		counted++;
		right += row[i] == i % SMALL_C;
	}
	const double accuracy = (double)right / (double)counted;
	CHECK_MSG(memcmp(&accuracy, &r.report.best_val_accuracy, sizeof accuracy) == 0,
	          "reported %.9g, found %.9g", r.report.best_val_accuracy, accuracy);
	small_close(&r);
}

static void every_optimiser_can_be_resumed(void)
{
	hg_train_config c = small_config("gcn", "fp16");
	c.policy.loss_scale.init_scale = 0x1p24f; /* overflows: the first steps are skipped */
	c.policy.loss_scale.hysteresis = 2;
	for (int kind = HG_SGD; kind <= HG_ADAMW; kind++) {
		c.optim.kind = (hg_optim_kind)kind;
		for (int momentum = 0; momentum < (kind == HG_SGD ? 2 : 1); momentum++) {
			c.optim.momentum = 0.9f * (float)momentum;
			check_resumed_run(test_context, c, hand_over);
		}
	}
}

/* After a run the parameters are those of the best epoch, but the state is that of the last
 * step. */
static void state_is_that_of_the_last_step(void)
{
	static struct small_run a, b;
	hg_train_config c = small_config("gcn", "fp32");
	c.optim.lr = 0.5f; /* too large for the run to improve for long */
	c.epochs = 30;
	c.eval_every = 1;
	small_open(&a, test_context(), c);
	small_train(&a);
	CHECK(a.report.best_epoch < a.report.epochs_run);
	hg_state *last = small_state(&a);
	small_open(&b, test_context(), c);
	CHECK_OK(hg_train_set_state(b.train, last));
	hg_state *same = small_state(&b);
	check_same_state(last, same, 1);
	check_same_best(last, same);
	check_same_history(last, same);
	CHECK_EQ_I(last->best.step, a.report.best_epoch); /* no step was skipped */
	CHECK_EQ_I(last->epochs, a.report.epochs_run);
	const double best = hg_state_accuracy(&last->best, 1);
	CHECK(memcmp(&best, &a.report.best_val_accuracy, sizeof best) == 0);
	CHECK(last->best.metric == HG_METRIC_ACCURACY &&
	      memcmp(&best, &last->best.value[1], sizeof best) == 0 && isnan(last->best.value[2]));
	CHECK(isnan(hg_state_accuracy(&last->best, 2)) && isnan(hg_state_accuracy(&last->best, 3)) &&
	      isnan(hg_state_accuracy(NULL, 0)));
	CHECK(memcmp(&last->epoch[29].loss, &a.report.final_loss, sizeof(double)) == 0);
	float shown[SMALL_D * 16];
	hg_param *weight = hg_params_at(hg_train_params(a.train), 0);
	CHECK_OK(hg_tensor_download(hg_param_master(weight), shown, HG_F32));
	CHECK(memcmp(shown, last->tensor[0].master, sizeof shown) != 0);
	CHECK(memcmp(shown, last->tensor[0].best, sizeof shown) == 0);
	CHECK_OK(hg_train_set_state(a.train, last));
	CHECK_OK(hg_tensor_download(hg_param_master(weight), shown, HG_F32));
	CHECK(memcmp(shown, last->tensor[0].master, sizeof shown) == 0);
	hg_state_free(last);
	hg_state_free(same);
	small_close(&a);
	small_close(&b);
}

/* The state of a run that has diverged can be taken over, too. A weight beyond the range of halves
 * is infinite in the working copy, and NaN stays NaN. */
static void nonfinite_weights_are_taken_over(void)
{
	static struct small_run r;
	hg_half working[SMALL_D * 16];
	small_open(&r, test_context(), small_config("gcn", "fp16"));
	hg_state *state = small_state(&r);
	state->tensor[0].master[0] = NAN;
	state->tensor[0].master[1] = 1e6f;
	state->tensor[0].master[2] = -INFINITY;
	CHECK_OK(hg_train_set_state(r.train, state));
	hg_state *again = small_state(&r);
	check_same_state(state, again, 1);
	CHECK_OK(hg_tensor_download(hg_param_working(hg_params_at(hg_train_params(r.train), 0)),
	                            working, HG_F16));
	CHECK(isnan(hg_half_to_float(working[0])) && isinf(hg_half_to_float(working[1])) &&
	      hg_half_to_float(working[2]) < -65504.0f);
	hg_state_free(state);
	hg_state_free(again);
	small_close(&r);
}

/* A state of version 0.1.0 lacks the settings that came later, so the run continues as that version
 * did. One with another value of such a setting, or without a setting that always was, differs. */
static void states_of_earlier_versions_are_continued(void)
{
	static const struct {
		const char *name;
		int norm;
		hg_status status;
	} cases[] = {{"model.feature_norm", HG_BATCH_NORM, HG_OK},
	             {"model.feature_norm", HG_LAYER_NORM, HG_INFO_DIFFERS},
	             {"model.lambda", HG_BATCH_NORM, HG_INFO_DIFFERS}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		static struct small_run r;
		hg_train_config c = small_config("gcn", "fp16");
		c.model.feature_norm = (hg_feature_norm)cases[k].norm; /* a GCN has none */
		small_open(&r, test_context(), c);
		hg_state *state = small_state(&r);
		hg_setting *last = &state->setting[state->settings - 1], *s = state->setting;
		while (s < last && strcmp(s->name, cases[k].name) != 0)
			s++;
		CHECK_STR(s->name, cases[k].name);
		*s = *last;
		state->settings--;
		CHECK_EQ_I(hg_train_set_state(r.train, state), cases[k].status);
		hg_state_free(state);
		small_close(&r);
	}
}

/* Each of these makes one mistake in a state that fits a GCN. */
static void no_tensor(hg_state *s)
{
	s->tensors--;
}
static void other_name(hg_state *s)
{
	s->tensor[0].name[0] = 'C';
}
static void extra_tensor(hg_state *s)
{
	CHECK_OK(hg_state_add_tensor(s, "conv9.weight", 2, 3, 2, NULL));
}
static void other_rows(hg_state *s)
{
	s->tensor[0].rows = 1433;
}
static void other_moments(hg_state *s)
{
	s->tensor[1].moments = 1;
}
static void scale_zero(hg_state *s)
{
	s->loss_scale.scale = 0;
}
static void scale_nan(hg_state *s)
{
	s->loss_scale.scale = NAN;
}
static void tracker_full(hg_state *s)
{
	s->loss_scale.growth_tracker = INT32_MAX;
}
static void tolerance_negative(hg_state *s)
{
	s->loss_scale.tolerance = -1;
}
static void steps_lost(hg_state *s)
{
	s->loss_scale.steps++;
}
static void reason_unknown(hg_state *s)
{
	s->loss_scale.history[31].reason = HG_STEP_SKIPPED_FORWARD + 1;
}
static void op_unknown(hg_state *s)
{
	const hg_promotion node = {.op = "swish", .layer = "conv0"};
	CHECK_OK(hg_state_add_promotion(s, &node));
}
static void reach_nan(hg_state *s)
{
	s->tensor[1].reach = NAN;
}
static void step_negative(hg_state *s)
{
	s->step = -1;
}
static void best_negative(hg_state *s)
{
	s->best.step = -1;
}
static void best_too_good(hg_state *s)
{
	s->best.right[2] = s->best.counted[2] + 1;
}
static void best_by_nothing(hg_state *s)
{
	s->best.metric = HG_METRIC_NONE;
}
static void best_unknown(hg_state *s)
{
	s->best.step = 0;
}
static void best_lost(hg_state *s)
{
	free(s->tensor[1].best);
	s->tensor[1].best = NULL;
}
static void columns_nan(hg_state *s)
{
	CHECK_OK(hg_state_set_columns(s, 1, (const double[]){1}, (const double[]){1}));
	s->column_mean[0] = (double)NAN;
}
static void epochs_descend(hg_state *s)
{
	s->epoch[1].step = s->epoch[0].step;
}

static const struct {
	void (*spoil)(hg_state *state);
	hg_status status;
	const char *part;
} mistakes[] = {
    {no_tensor, HG_ERR_SHAPE, "the state lacks conv1.bias, which the model has"},
    {other_name, HG_ERR_SHAPE,
     "the state lacks conv0.weight, which the model has; it has Conv0.weight, which the model does "
     "not have"},
    {extra_tensor, HG_ERR_SHAPE, "the state has conv9.weight, which the model does not have"},
    {other_rows, HG_ERR_SHAPE, "conv0.weight is [1433, 16] in the state, the model has [11, 16]"},
    {other_moments, HG_ERR_SHAPE, "conv0.bias has 1 moments in the state, the optimiser keeps 2"},
    {scale_zero, HG_ERR_ARG, "the state: the loss scale is not a finite number above 0"},
    {scale_nan, HG_ERR_ARG, "the state: the loss scale is not a finite number above 0"},
    {tracker_full, HG_ERR_ARG, "growth_tracker or tolerance"},
    {tolerance_negative, HG_ERR_ARG, "growth_tracker or tolerance"},
    {steps_lost, HG_ERR_ARG, "not the sum of applied and skipped"},
    {reason_unknown, HG_ERR_ARG, "not an hg_step_reason"},
    {op_unknown, HG_ERR_UNSUPPORTED,
     "the state: the swish of conv0 was promoted to f32, and this library has no such op"},
    {reach_nan, HG_ERR_ARG, "a tensor's reach is not above 0"},
    {step_negative, HG_ERR_ARG, "step counter"},
    {best_negative, HG_ERR_ARG, "the best epoch is out of its range"},
    {best_too_good, HG_ERR_ARG, "the best epoch is out of its range"},
    {best_by_nothing, HG_ERR_ARG, "the best epoch is out of its range"},
    {best_unknown, HG_ERR_ARG, "there are weights of a best epoch, but no best epoch"},
    {best_lost, HG_ERR_ARG, "some tensors lack a weight of the best epoch"},
    {columns_nan, HG_ERR_ARG, "the means and deviations of its columns are not finite numbers"},
    {epochs_descend, HG_ERR_ARG, "the steps of its history do not ascend"},
};

static void refused_states_change_nothing(void)
{
	static struct small_run r;
	small_open(&r, test_context(), small_config("gcn", "fp16"));
	small_train(&r);
	hg_state *before = small_state(&r);
	for (size_t k = 0; k < sizeof mistakes / sizeof mistakes[0]; k++) {
		hg_state *state = small_state(&r);
		const hg_state whole = *state;
		state->tensor[0].master[0] = 77.0f;
		mistakes[k].spoil(state);
		CHECK_MSG(hg_train_set_state(r.train, state) == mistakes[k].status, "%zu: %s", k,
		          hg_context_error(r.ctx));
		CHECK_CONTAINS(hg_context_error(r.ctx), mistakes[k].part);
		state->tensors = whole.tensors > state->tensors ? whole.tensors : state->tensors;
		state->tensor[1].moments = 2; /* so that hg_state_free frees all of them */
		hg_state_free(state);
		state = small_state(&r);
		check_same_state(before, state, 1);
		check_same_best(before, state);
		check_same_history(before, state);
		hg_state_free(state);
	}
	CHECK_STATUS(hg_train_set_state(r.train, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_train_get_state(r.train, NULL), HG_ERR_ARG);
	hg_state_free(before);
	small_close(&r);
}

/* Where the model is of another kind, the error names both kinds beside the parameters. */
static void state_of_another_model_is_refused(void)
{
	static struct small_run gcn, gin;
	small_open(&gcn, test_context(), small_config("gcn", "fp16"));
	small_open(&gin, test_context(), small_config("gin", "fp16"));
	hg_state *state = small_state(&gcn);
	CHECK_STATUS(hg_train_set_state(gin.train, state), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(gin.ctx), "it is of a gcn, the run trains a gin");
	hg_state_free(state);
	small_close(&gcn);
	small_close(&gin);
}

/* A run with another configuration takes the weights over, and its message names the setting that
 * differs. With another policy its loss scale starts from the beginning. */
static void state_of_another_configuration_is_taken_with_a_message(void)
{
	static struct small_run a, b;
	hg_train_config c = small_config("gcn", "fp16");
	small_open(&a, test_context(), c);
	small_train(&a);
	hg_state *state = small_state(&a);
	c.model.dropout = 0.3f; /* the message has the short form, not 0.300000012 */
	small_open(&b, test_context(), c);
	CHECK_STATUS(hg_train_set_state(b.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(b.ctx), "model.dropout is 0.5 in the state, the run has 0.3:");
	hg_state *taken = small_state(&b);
	check_same_state(state, taken, 0);
	hg_state_free(taken);
	small_close(&b);
	c = small_config("gcn", "fp32");
	small_open(&b, test_context(), c);
	CHECK_STATUS(hg_train_set_state(b.train, state), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(b.ctx), "policy.name is fp16 in the state, the run has fp32");
	taken = small_state(&b);
	CHECK(taken->loss_scale.scale >= 1.0f && taken->loss_scale.scale <= 1.0f &&
	      state->loss_scale.scale > 1.0f);
	CHECK(taken->loss_scale.applied == state->loss_scale.applied && taken->step == state->step);
	CHECK(memcmp(taken->tensor[0].moment[1], state->tensor[0].moment[1], 16 * sizeof(float)) == 0);
	small_train(&b);
	hg_state_free(taken);
	hg_state_free(state);
	small_close(&a);
	small_close(&b);
}

/* Parameters and an optimiser without a hg_train, as in a training loop of the user. */
static void optimiser_without_a_run_has_a_state(void)
{
	hg_context *ctx = test_context();
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	float gradient[2 * 3] = {1, -2, 3, -4, 5, -6}, value[2][2 * 3];
	hg_params *params[2];
	hg_optim *optim[2];
	for (int k = 0; k < 2; k++) {
		hg_param *p;
		CHECK_OK(hg_params_create(ctx, NULL, &params[k]));
		CHECK_OK(hg_params_add(params[k], "encoder/weight", 2, 3, HG_INIT_ONES, 0, &p));
		CHECK_OK(hg_params_add(params[k], "mean", 1, 3, HG_INIT_ZEROS,
		                       HG_PARAM_BUFFER | HG_PARAM_F32, NULL));
		CHECK_OK(hg_tensor_upload(hg_param_grad(p), gradient, HG_F32));
		CHECK_OK(hg_optim_create(params[k], &config, &optim[k]));
	}
	hg_state *state = NULL;
	CHECK_OK(hg_optim_step(optim[0]));
	CHECK_OK(hg_optim_get_state(optim[0], &state));
	CHECK(state->tensors == 2 && state->tensor[0].moments == 2 && state->tensor[1].moments == 0 &&
	      !hg_state_find_setting(state, "model.name"));
	CHECK_OK(hg_optim_set_state(optim[1], state));
	hg_step_info info = HG_STEP_INFO_INIT;
	CHECK_OK(hg_optim_info(optim[1], &info));
	CHECK(info.applied && info.steps == 1 && info.skipped == 0);
	for (int k = 0; k < 2; k++) {
		CHECK_OK(hg_optim_step(optim[k]));
		CHECK_OK(hg_tensor_download(hg_param_master(hg_params_at(params[k], 0)), value[k], HG_F32));
		hg_optim_free(optim[k]);
		hg_params_free(params[k]);
	}
	CHECK(memcmp(value[0], value[1], sizeof value[0]) == 0);
	hg_state_free(state);
	hg_context_free(ctx);
}

static void states_are_built_by_calls(void)
{
	hg_state *s = NULL;
	hg_state_tensor *t = NULL;
	hg_setting setting = {.name = "seed", .kind = HG_SETTING_INTEGER, .integer = 3};
	CHECK_OK(hg_state_create(&s));
	CHECK_STATUS(hg_state_create(NULL), HG_ERR_ARG);
	for (int i = 0; i < 40; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "w%d", i);
		CHECK_OK(hg_state_add_tensor(s, name, i + 1, 2, i % 3, &t));
		CHECK(t->master && !t->moment[i % 3 < 2 ? i % 3 : 1] == (i % 3 < 2) &&
		      memcmp(t->master, (float[2]){0}, 8) == 0);
	}
	CHECK(s->tensors == 40 && hg_state_find_tensor(s, "w39")->rows == 40 &&
	      !hg_state_find_tensor(s, "w40") && !hg_state_find_tensor(s, NULL));
	CHECK_STATUS(hg_state_add_tensor(s, "w3", 1, 1, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_tensor(s, "", 1, 1, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_tensor(s, "a", 0, 1, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_tensor(s, "a", 1, 1, 3, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_tensor(s, "a", INT64_MAX / 4, 4, 0, NULL), HG_ERR_NOMEM);
	CHECK_OK(hg_state_add_setting(s, &setting));
	CHECK_STATUS(hg_state_add_setting(s, &setting), HG_ERR_ARG);
	hg_promotion node = {.op = "spmm", .layer = "conv0", .nth = 1};
	CHECK_OK(hg_state_add_promotion(s, &node));
	CHECK_STATUS(hg_state_add_promotion(s, &node), HG_ERR_ARG);
	node.nth = 2;
	node.shift = HG_SHIFT_MOST + 1;
	CHECK_STATUS(hg_state_add_promotion(s, &node), HG_ERR_ARG);
	node.shift = -1;
	CHECK_STATUS(hg_state_add_promotion(s, &node), HG_ERR_ARG);
	node.shift = 0;
	node.nth = -1;
	CHECK_STATUS(hg_state_add_promotion(s, &node), HG_ERR_ARG);
	const double mean[] = {1, -2}, deviation[] = {0, 3}, bad[] = {1, -1};
	CHECK_OK(hg_state_set_columns(s, 2, mean, deviation));
	CHECK(s->columns == 2 && memcmp(s->column_mean, mean, sizeof mean) == 0 &&
	      memcmp(s->column_deviation, deviation, sizeof deviation) == 0);
	CHECK_STATUS(hg_state_set_columns(s, 2, mean, bad), HG_ERR_ARG);
	CHECK_STATUS(hg_state_set_columns(s, 2, mean, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_set_columns(s, -1, mean, mean), HG_ERR_ARG);
	CHECK_STATUS(hg_state_set_columns(NULL, 0, NULL, NULL), HG_ERR_ARG);
	CHECK(s->columns == 2);
	CHECK_OK(hg_state_set_columns(s, 0, NULL, NULL));
	CHECK(s->columns == 0);
	CHECK_OK(hg_state_set_class_names(s, "a\0b", 4));
	CHECK(s->class_name_bytes == 4 && memcmp(s->class_name, "a\0b", 4) == 0);
	CHECK_STATUS(hg_state_set_class_names(s, "a\0b", 3), HG_ERR_ARG);
	CHECK_STATUS(hg_state_set_class_names(s, NULL, 3), HG_ERR_ARG);
	CHECK_STATUS(hg_state_set_class_names(s, "a", -1), HG_ERR_ARG);
	CHECK_STATUS(hg_state_set_class_names(NULL, NULL, 0), HG_ERR_ARG);
	CHECK(s->class_name_bytes == 4);
	CHECK_OK(hg_state_set_class_names(s, NULL, 0));
	CHECK(!s->class_name);
	hg_state_epoch epoch = {.step = 0};
	CHECK_STATUS(hg_state_add_epoch(s, &epoch), HG_ERR_ARG);
	epoch.step = 3;
	CHECK_OK(hg_state_add_epoch(s, &epoch));
	CHECK_STATUS(hg_state_add_epoch(s, &epoch), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_epoch(s, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_best(s), HG_ERR_ARG); /* no best epoch */
	s->best.step = 1;
	s->best.metric = HG_METRIC_ACCURACY;
	s->tensor[7].master[0] = 7.0f;
	CHECK_OK(hg_state_add_best(s));
	CHECK(s->tensor[7].best[0] > 6.0f && s->tensor[39].best);
	CHECK_STATUS(hg_state_add_best(s), HG_ERR_ARG);
	CHECK_STATUS(hg_state_add_best(NULL), HG_ERR_ARG);
	memset(setting.name, 'x', sizeof setting.name); /* not terminated */
	CHECK_STATUS(hg_state_add_setting(s, &setting), HG_ERR_ARG);
	CHECK(s->tensors == 40 && s->settings == 1 && hg_state_find_setting(s, "seed")->integer == 3);
	CHECK_STR(hg_state_fault(NULL), "it is NULL");
	hg_state_free(s);
	hg_state_free(NULL);
}

/* Every allocation of the context fails once. The call returns a status, and the run is as it was
 * before. (tests/data/nomem.c does the same with the memory of the state itself, which is
 * malloc's.) */
static void failed_allocations_change_nothing(void)
{
	static struct small_run r;
	struct faulty f;
	hg_context *ctx = faulty_context(&f);
	small_open(&r, ctx, small_config("gcn", "fp16"));
	hg_state *before = small_state(&r), *other = small_state(&r);
	const hg_promotion node = {.op = "spmm", .layer = "conv0"};
	other->tensor[0].master[0] = 9.0f;
	/* Because of this promotion, the tapes have to be recorded again. */
	CHECK_OK(hg_state_add_promotion(other, &node));
	CHECK_OK(hg_state_add_epoch(other, &(hg_state_epoch){.step = 2}));
	other->best.step = 1;
	other->best.metric = HG_METRIC_ACCURACY;
	CHECK_OK(hg_state_add_best(other));
	hg_status status = HG_ERR_NOMEM;
	for (int64_t k = 0; status == HG_ERR_NOMEM; k++) {
		f.calls = 0;
		f.fail_at = k;
		status = hg_train_set_state(r.train, other);
		f.fail_at = -1;
		hg_state *after = small_state(&r);
		check_same_state(status == HG_OK ? other : before, after, 1);
		check_same_best(status == HG_OK ? other : before, after);
		check_same_history(status == HG_OK ? other : before, after);
		hg_state_free(after);
		CHECK(k < 1000);
	}
	CHECK_STATUS(status, HG_OK);
	small_train(&r);
	CHECK_OK(hg_train_set_state(r.train, before));
	for (int64_t k = 0; status == HG_OK || status == HG_ERR_NOMEM; k++) {
		hg_state *out = NULL;
		f.calls = 0;
		f.fail_at = k;
		status = hg_train_get_state(r.train, &out);
		f.fail_at = -1;
		CHECK((status == HG_OK) == (out != NULL));
		hg_state_free(out);
		if (f.calls <= k)
			break;
		CHECK_STATUS(status, HG_ERR_NOMEM);
	}
	hg_state_free(before);
	hg_state_free(other);
	r.ctx = NULL;
	small_close(&r);
	faulty_close(&f, ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(resumed_runs_have_the_same_bits),
	    TEST(promotions_are_part_of_the_state),
	    TEST(reports_are_of_the_final_tapes),
	    TEST(every_optimiser_can_be_resumed),
	    TEST(state_is_that_of_the_last_step),
	    TEST(nonfinite_weights_are_taken_over),
	    TEST(states_of_earlier_versions_are_continued),
	    TEST(refused_states_change_nothing),
	    TEST(state_of_another_model_is_refused),
	    TEST(state_of_another_configuration_is_taken_with_a_message),
	    TEST(optimiser_without_a_run_has_a_state),
	    TEST(states_are_built_by_calls),
	    TEST(failed_allocations_change_nothing),
	};
	return RUN_TESTS(argc, argv, cases);
}
