/* Predictors: what a state of a run predicts has the same bits as what the run predicts. A state
 * that is not of a run is refused by name. */
#include "halfgraph/predictor.h"

#include <stdlib.h>
#include <string.h>

#include "small_run.h"
#include "unit/faulty.h"

static hg_predictor *must_create(struct small_run *r, const hg_state *state)
{
	hg_predictor *p = NULL;
	const hg_status status = hg_predictor_create(r->ctx, state, &p);
	CHECK_MSG(status == HG_OK, "%s: %s", hg_status_name(status), hg_context_error(r->ctx));
	return p;
}

/* The predictions of a run and of a predictor on its data. */
static void check_same_predictions(struct small_run *r, hg_predictor *p)
{
	static int32_t row[2][SMALL_N];
	static float logits[2][SMALL_N * SMALL_C];
	CHECK_OK(hg_train_predict(r->train, row[0], logits[0]));
	const hg_status status = hg_predictor_run(p, &r->run.data.input, row[1], logits[1]);
	CHECK_MSG(status == HG_OK, "%s", hg_context_error(r->ctx));
	CHECK(memcmp(row[0], row[1], sizeof row[0]) == 0);
	CHECK_MSG(memcmp(logits[0], logits[1], sizeof logits[0]) == 0, "logits differ");
	memset(row[1], 0xff, sizeof row[1]);
	CHECK_OK(hg_predictor_run(p, &r->run.data.input, row[1], NULL));
	CHECK(memcmp(row[0], row[1], sizeof row[0]) == 0);
}

/* Also where the best epoch is not the last one, and where op nodes were promoted. */
static void predictions_have_the_bits_of_the_run(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized", "fp16-naive"};
	for (const char *const *model = hg_model_names(); *model; model++)
		for (size_t k = 0; k < sizeof policies / sizeof policies[0]; k++) {
			static struct small_run r;
			hg_train_config c = small_config(*model, policies[k]);
			c.eval_every = 1;
			c.optim.lr = 0.1f;
			c.model.lambda = k == 1 ? 4096.0f : 1.0f;
			c.model.feature_norm = k % 2 ? HG_LAYER_NORM : HG_BATCH_NORM;
			small_open(&r, test_context(), c);
			small_train(&r);
			hg_state *state = small_state(&r);
			hg_predictor *p = must_create(&r, state);
			CHECK(hg_predictor_state(p)->best.step == state->best.step && state->best.step > 0);
			hg_state_free(state); /* the predictor has its own copy */
			check_same_predictions(&r, p);
			CHECK_STR(hg_model_get_config(hg_predictor_model(p))->name, *model);
			CHECK_STR(hg_params_policy(hg_predictor_params(p))->name, policies[k]);
			hg_predictor_free(p);
			small_close(&r);
		}
}

/* Before the first evaluation the weights are the last ones. */
static void states_without_a_best_epoch_predict(void)
{
	static struct small_run r;
	small_open(&r, test_context(), small_config("gcn", "fp16"));
	hg_state *state = small_state(&r);
	CHECK_EQ_I(state->best.step, 0);
	hg_predictor *p = must_create(&r, state);
	check_same_predictions(&r, p);
	hg_predictor_free(p);
	hg_state_free(state);
	small_close(&r);
}

/* ---- states that do not fit ---- */

static hg_setting *setting_of(hg_state *s, const char *name)
{
	for (int64_t i = 0; i < s->settings; i++)
		if (strcmp(s->setting[i].name, name) == 0)
			return &s->setting[i];
	CHECK_MSG(0, "no setting %s", name);
	return NULL;
}

static void no_layers(hg_state *s)
{
	*setting_of(s, "model.layers") = s->setting[--s->settings];
}
static void layers_text(hg_state *s)
{
	setting_of(s, "model.layers")->kind = HG_SETTING_TEXT;
}
static void layers_huge(hg_state *s)
{
	setting_of(s, "model.layers")->integer = INT64_C(1) << 33;
}
static void layers_none(hg_state *s)
{
	setting_of(s, "model.layers")->integer = 0;
}
static void unknown_model(hg_state *s)
{
	strcpy(setting_of(s, "model.name")->text, "mlp");
}
static void no_model(hg_state *s)
{
	*setting_of(s, "model.name") = s->setting[--s->settings];
}
static void unknown_type(hg_state *s)
{
	setting_of(s, "policy.state")->integer = 77;
}
static void wider(hg_state *s)
{
	setting_of(s, "model.hidden")->integer = 24;
}
static void deeper(hg_state *s)
{
	setting_of(s, "model.layers")->integer = 3;
	setting_of(s, "model.out_features")->integer = 16;
}
static void less(hg_state *s)
{
	s->tensors--;
}
static void no_scale(hg_state *s)
{
	s->loss_scale.scale = 0;
}
static void unknown_op(hg_state *s)
{
	CHECK_OK(hg_state_add_promotion(s, &(hg_promotion){.op = "swish", .layer = "conv0"}));
}

static void unknown_loss(hg_state *s)
{
	setting_of(s, "train.loss")->integer = 4;
}
static void mean_without_deviation(hg_state *s)
{
	CHECK_OK(hg_state_add_setting(
	    s, &(hg_setting){.name = "target.mean 0", .kind = HG_SETTING_REAL, .real = 1}));
}

static const struct {
	void (*spoil)(hg_state *state);
	hg_status status;
	const char *part;
} mistakes[] = {
    {unknown_loss, HG_ERR_ARG, "the setting train.loss is not an hg_loss"},
    {mean_without_deviation, HG_ERR_ARG, "the setting target.deviation 0 is missing"},
    {no_layers, HG_ERR_ARG, "the state: the setting model.layers is missing"},
    {layers_text, HG_ERR_ARG, "the setting model.layers is of another type"},
    {layers_huge, HG_ERR_ARG, "the setting model.layers is of another type"},
    {layers_none, HG_ERR_ARG, "gcn: layers is 0, expected 1 to 1000"},
    {unknown_model, HG_ERR_ARG, "name is \"mlp\", expected one that hg_model_names lists"},
    {no_model, HG_ERR_ARG, "the setting model.name is missing"},
    {unknown_type, HG_ERR_ARG, "hg_params_create: policy: "},
    {wider, HG_ERR_SHAPE, "conv0.weight is [11, 16] in the state, the model has [11, 24]"},
    {deeper, HG_ERR_SHAPE, "conv1.weight is [16, 3] in the state, the model has [16, 16]"},
    {less, HG_ERR_SHAPE, "the state lacks conv1.bias, which the model has"},
    {no_scale, HG_ERR_ARG, "the loss scale is not a finite number above 0"},
    {unknown_op, HG_ERR_UNSUPPORTED, "and this library has no such op"},
};

static void other_states_are_refused_by_name(void)
{
	static struct small_run r;
	hg_predictor *p = NULL;
	small_open(&r, test_context(), small_config("gcn", "fp16"));
	for (size_t k = 0; k < sizeof mistakes / sizeof mistakes[0]; k++) {
		hg_state *state = small_state(&r);
		const int64_t tensors = state->tensors;
		mistakes[k].spoil(state);
		const hg_status status = hg_predictor_create(r.ctx, state, &p);
		CHECK_MSG(status == mistakes[k].status && !p, "%zu: %s: %s", k, hg_status_name(status),
		          hg_context_error(r.ctx));
		CHECK_CONTAINS(hg_context_error(r.ctx), mistakes[k].part);
		state->tensors = tensors;
		hg_state_free(state);
	}
	CHECK_STATUS(hg_predictor_create(r.ctx, NULL, &p), HG_ERR_ARG);
	CHECK_STATUS(hg_predictor_create(NULL, NULL, &p), HG_ERR_ARG);
	hg_predictor_free(NULL);
	CHECK(!hg_predictor_model(NULL) && !hg_predictor_params(NULL) && !hg_predictor_state(NULL));
	small_close(&r);
}

static void misfitting_data_is_refused(void)
{
	static struct small_run r;
	static int32_t row[SMALL_N];
	hg_tensor *x = NULL;
	small_open(&r, test_context(), small_config("gat", "fp16"));
	hg_state *state = small_state(&r);
	hg_predictor *p = must_create(&r, state);
	hg_model_input input = r.run.data.input;
	CHECK_OK(hg_tensor_create(r.ctx, HG_F16, SMALL_N, 7, &x));
	input.x = x;
	CHECK_STATUS(hg_predictor_run(p, &input, row, NULL), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(r.ctx),
	               "gat: features have 7 columns, the model has in_features 11");
	input.x = NULL;
	CHECK_STATUS(hg_predictor_run(p, &input, row, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_predictor_run(p, NULL, row, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_predictor_run(p, &input, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_predictor_run(NULL, &input, row, NULL), HG_ERR_ARG);
	check_same_predictions(&r, p); /* it can be used after all that */
	hg_tensor_free(x);
	hg_predictor_free(p);
	hg_state_free(state);
	small_close(&r);
}

/* The bits may be others on another device or library: it works, and says so. */
static void other_surroundings_are_reported(void)
{
	static struct small_run r;
	hg_predictor *p = NULL;
	small_open(&r, test_context(), small_config("gin", "fp16"));
	hg_state *state = small_state(&r);
	strcpy(setting_of(state, "library")->text, "9.9.9");
	CHECK_STATUS(hg_predictor_create(r.ctx, state, &p), HG_INFO_DIFFERS);
	CHECK_CONTAINS(hg_context_error(r.ctx), "library is 9.9.9 in the state, here it is ");
	check_same_predictions(&r, p);
	hg_predictor_free(p);
	hg_state_free(state);
	small_close(&r);
}

/* Every allocation of the context fails once: a status, no predictor, and nothing is lost. */
static void failed_allocations_make_no_predictor(void)
{
	static struct small_run r;
	static int32_t row[SMALL_N];
	struct faulty f;
	hg_context *ctx = faulty_context(&f);
	small_open(&r, ctx, small_config("gin", "fp16"));
	hg_state *state = small_state(&r);
	hg_status status = HG_ERR_NOMEM;
	int64_t k = 0;
	for (; status == HG_ERR_NOMEM; k++) {
		hg_predictor *p = NULL;
		f.calls = 0;
		f.fail_at = k;
		status = hg_predictor_create(ctx, state, &p);
		CHECK((status == HG_OK) == (p != NULL));
		if (status == HG_OK)
			status = hg_predictor_run(p, &r.run.data.input, row, NULL);
		f.fail_at = -1;
		hg_predictor_free(p);
		CHECK(k < 1000);
	}
	CHECK_STATUS(status, HG_OK);
	CHECK_MSG(k > 20, "%lld allocations only", (long long)k);
	hg_state_free(state);
	r.ctx = NULL;
	small_close(&r);
	faulty_close(&f, ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(predictions_have_the_bits_of_the_run), TEST(states_without_a_best_epoch_predict),
	    TEST(other_states_are_refused_by_name),     TEST(misfitting_data_is_refused),
	    TEST(other_surroundings_are_reported),      TEST(failed_allocations_make_no_predictor),
	};
	return RUN_TESTS(argc, argv, cases);
}
