#include <math.h>
#include <stddef.h>
#include <string.h>

#include "autograd/param.h"
#include "halfgraph/tape.h"
#include "harness.h"

/* Optimisers, compared with their formulas in f64. Each quantity of the formulas carries a bound on
 * the error that the roundings of f32 can have caused so far (to first order, and 2 % for the
 * rest). */

enum { ROWS = 5, COLS = 13, SIZE = ROWS * COLS, TENSORS = 3, STEPS = 20 };
static const double u = 0x1p-24, slack = 1.02;

struct number {
	double x, e; /* the value, and a bound on the error of the number in f32 */
};
struct element {
	struct number w, m, v;
};

struct method {
	const char *name;
	hg_optim_config config;
};
static const struct method methods[] = {
    {"sgd", {sizeof(hg_optim_config), HG_SGD, 0.1f, 0.0f, 0.0f, 0, 0.9f, 0.999f, 1e-8f, 0.0f}},
    {"sgd with weight decay",
     {sizeof(hg_optim_config), HG_SGD, 0.1f, 0.01f, 0.0f, 0, 0.9f, 0.999f, 1e-8f, 0.0f}},
    {"momentum",
     {sizeof(hg_optim_config), HG_SGD, 0.1f, 0.01f, 0.9f, 0, 0.9f, 0.999f, 1e-8f, 0.0f}},
    {"nesterov",
     {sizeof(hg_optim_config), HG_SGD, 0.1f, 0.01f, 0.9f, 1, 0.9f, 0.999f, 1e-8f, 0.0f}},
    {"adam", {sizeof(hg_optim_config), HG_ADAM, 0.01f, 0.0f, 0.0f, 0, 0.9f, 0.999f, 1e-8f, 0.0f}},
    {"adam with L2",
     {sizeof(hg_optim_config), HG_ADAM, 0.01f, 0.05f, 0.0f, 0, 0.8f, 0.99f, 1e-6f, 0.0f}},
    {"adamw",
     {sizeof(hg_optim_config), HG_ADAMW, 0.01f, 0.05f, 0.0f, 0, 0.9f, 0.999f, 1e-8f, 0.0f}},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* g + decay w: two roundings */
static struct number decayed(double g, struct number w, double decay)
{
	const double x = g + decay * w.x;
	return (struct number){x, decay * w.e + slack * u * (fabs(decay * w.x) + fabs(x))};
}

static void sgd(struct element *p, const hg_optim_config *c, double lr, double decay,
                double gradient)
{
	const struct number g = decayed(gradient, p->w, decay);
	const double mu = (double)c->momentum;
	struct number step = g;
	if (mu > 0) {
		const double m = mu * p->m.x + g.x;
		p->m = (struct number){m, mu * p->m.e + g.e + slack * u * (fabs(mu * p->m.x) + fabs(m))};
		step = p->m;
	}
	if (c->nesterov) {
		step.x = g.x + mu * p->m.x;
		step.e = g.e + mu * p->m.e + slack * u * (fabs(mu * p->m.x) + fabs(step.x));
	}
	const double w = p->w.x - lr * step.x;
	p->w = (struct number){w, p->w.e + lr * step.e + slack * u * (fabs(lr * step.x) + fabs(w))};
}

static void adam(struct element *p, const hg_optim_config *c, double lr, double decay,
                 double gradient, int t)
{
	const int decoupled = c->kind == HG_ADAMW;
	const struct number g = decayed(gradient, p->w, decoupled ? 0.0 : decay);
	const double b1 = (double)c->beta1, b2 = (double)c->beta2;
	const double m = b1 * p->m.x + (1 - b1) * g.x, v = b2 * p->v.x + (1 - b2) * g.x * g.x;
	/* At most four roundings, each of a quantity that is not larger than these sums of
	 * magnitudes. */
	p->m = (struct number){m, b1 * p->m.e + (1 - b1) * g.e +
	                              4 * slack * u * (2 * fabs(p->m.x) + fabs(g.x))};
	p->v = (struct number){v, b2 * p->v.e + 2 * (1 - b2) * fabs(g.x) * g.e +
	                              4 * slack * u * (p->v.x + (1 - b2) * g.x * g.x)};
	const double mean = m / (1 - pow(b1, t)), root = sqrt(v / (1 - pow(b2, t))) + (double)c->eps,
	             step = lr * mean / root;
	/* The relative error: half of that of v, because of the root, and eight roundings. */
	const double step_e =
	    lr * p->m.e / (1 - pow(b1, t)) / root + fabs(step) * (p->v.e / (2 * v) + 8 * u) * slack;
	const double shrink = decoupled ? 1 - lr * decay : 1.0, w = p->w.x * shrink - step;
	p->w =
	    (struct number){w, p->w.e + step_e + 4 * slack * u * (fabs(p->w.x) + fabs(step) + fabs(w))};
}

static void reference_step(struct element *p, const hg_optim_config *c, double lr, double decay,
                           double gradient, int t)
{
	if (c->kind == HG_SGD)
		sgd(p, c, lr, decay, gradient);
	else
		adam(p, c, lr, decay, gradient, t);
}

struct optim_case {
	hg_context *ctx;
	hg_params *params;
	hg_param *param[TENSORS], *buffer;
	hg_optim *optim;
	struct element state[TENSORS][SIZE];
	float gradient[TENSORS][SIZE];
	double lr[TENSORS], decay[TENSORS];
};

static void case_open(struct optim_case *b, const hg_optim_config *config, const hg_policy *policy)
{
	static const char *const names[TENSORS] = {"first", "second", "third"};
	memset(b, 0, sizeof *b);
	b->ctx = test_context();
	CHECK_OK(hg_params_create(b->ctx, policy, &b->params));
	for (int k = 0; k < TENSORS; k++) {
		float values[SIZE];
		if (k == 1)
			CHECK_OK(hg_params_add(b->params, "statistics", 1, COLS, HG_INIT_ONES,
			                       HG_PARAM_F32 | HG_PARAM_BUFFER, &b->buffer));
		CHECK_OK(hg_params_add(b->params, names[k], ROWS, COLS, HG_INIT_ZEROS,
		                       k == 2 ? HG_PARAM_F32 : 0, &b->param[k]));
		for (int i = 0; i < SIZE; i++) {
			values[i] = (float)test_normal();
			b->state[k][i].w.x = (double)values[i];
		}
		CHECK_OK(hg_param_set(b->param[k], values));
		b->lr[k] = (double)config->lr;
		b->decay[k] = (double)config->weight_decay;
	}
	CHECK_OK(hg_optim_create(b->params, config, &b->optim));
}

static void case_close(struct optim_case *b)
{
	hg_optim_free(b->optim);
	hg_params_free(b->params);
	hg_context_free(b->ctx);
}

static hg_step_info info_of(struct optim_case *b)
{
	hg_step_info info = HG_STEP_INFO_INIT;
	CHECK_OK(hg_optim_info(b->optim, &info));
	return info;
}

/* Draws new gradients of magnitudes 1/2 to 2 and uploads them times `scale`. Returns their norm. */
static double gradients_make(struct optim_case *b, float scale)
{
	double square = 0;
	for (int k = 0; k < TENSORS; k++) {
		float scaled[SIZE];
		for (int i = 0; i < SIZE; i++) {
			b->gradient[k][i] =
			    (float)((test_uniform() < 0.5 ? -1 : 1) * exp2(2 * test_uniform() - 1));
			scaled[i] = b->gradient[k][i] * scale;
			square += (double)b->gradient[k][i] * (double)b->gradient[k][i];
		}
		CHECK_OK(hg_tensor_upload(hg_param_grad(b->param[k]), scaled, HG_F32));
	}
	return sqrt(square);
}

static void reference_all(struct optim_case *b, const hg_optim_config *c, int t)
{
	for (int k = 0; k < TENSORS; k++)
		for (int i = 0; i < SIZE; i++)
			reference_step(&b->state[k][i], c, b->lr[k], b->decay[k], (double)b->gradient[k][i], t);
}

/* Checks that the master weights are within their bounds, and that working copies are the masters,
 * narrowed once. */
static void weights_check(struct optim_case *b, const char *what)
{
	for (int k = 0; k < TENSORS; k++) {
		float master[SIZE], working[SIZE];
		CHECK_OK(hg_tensor_download(hg_param_master(b->param[k]), master, HG_F32));
		CHECK_OK(hg_tensor_download(hg_param_working(b->param[k]), working, HG_F32));
		const int narrow = hg_tensor_dtype(hg_param_working(b->param[k])) == HG_F16;
		for (int i = 0; i < SIZE; i++) {
			const struct number w = b->state[k][i].w;
			CHECK_MSG(fabs((double)master[i] - w.x) <= w.e,
			          "%s: tensor %d[%d] is %.9g, expected %.9g within %.3g", what, k, i,
			          (double)master[i], w.x, w.e);
			const float expected =
			    narrow ? hg_half_to_float(hg_half_from_float(master[i])) : master[i];
			CHECK_MSG(working[i] == expected,
			          "%s: working copy of tensor %d[%d] is %.9g, expected %.9g", what, k, i,
			          (double)working[i], (double)expected);
		}
	}
}

static void formulas_hold_for_20_steps(void)
{
	for (int which = 0; which < 2 * METHODS; which++) {
		const struct method *method = &methods[which / 2];
		const hg_policy policy = which % 2 ? hg_policy_fp16() : hg_policy_fp32();
		struct optim_case b;
		int group = 0;
		test_reseed((uint64_t)which);
		case_open(&b, &method->config, &policy);
		CHECK_OK(hg_optim_add_group(b.optim, 0.5f * method->config.lr, 0.25f, &group));
		CHECK_EQ_I(group, 1);
		CHECK_OK(hg_optim_assign(b.optim, b.param[1], group));
		b.lr[1] = (double)(0.5f * method->config.lr);
		b.decay[1] = 0.25;
		for (int t = 1; t <= STEPS; t++) {
			if (t == STEPS / 2) {
				CHECK_OK(hg_optim_set_lr(b.optim, 0, 0.02f));
				b.lr[0] = b.lr[2] = (double)0.02f;
			}
			const double norm = gradients_make(&b, info_of(&b).loss_scale);
			CHECK_OK(hg_optim_step(b.optim));
			reference_all(&b, &method->config, t);
			weights_check(&b, method->name);
			const hg_step_info info = info_of(&b);
			CHECK(info.applied && info.nonfinite == 0 && !info.first_nonfinite && info.steps == t &&
			      info.skipped == 0);
			/* the library sums in f64 */
			CHECK_WITHIN(info.grad_norm, norm, SIZE * TENSORS * 0x1p-52 * norm);
		}
		float statistics[COLS];
		CHECK_OK(hg_tensor_download(hg_param_master(b.buffer), statistics, HG_F32));
		for (int i = 0; i < COLS; i++)
			CHECK(statistics[i] == 1.0f);
		case_close(&b);
	}
}

/* A step with an infinite or NaN gradient changes nothing but the loss scale. Later steps follow
 * the formulas as if it had not been. */
static void nonfinite_steps_are_skipped(void)
{
	for (int which = 0; which < METHODS; which++) {
		hg_policy policy = hg_policy_fp16();
		struct optim_case b;
		test_reseed(100 + (uint64_t)which);
		policy.loss_scale.init_scale = 1024.0f;
		policy.loss_scale.growth_interval = 4;
		case_open(&b, &methods[which].config, &policy);
		float scale = 1024.0f;
		int applied = 0, run = 0;
		for (int step = 1; step <= STEPS; step++) {
			const int bad = step == 1 || step == 7 || step == 8;
			(void)gradients_make(&b, scale);
			if (bad) {
				float poison[SIZE] = {0};
				poison[SIZE - 1] = step == 8 ? NAN : INFINITY;
				CHECK_OK(hg_tensor_upload(hg_param_grad(b.param[1]), poison, HG_F32));
			}
			CHECK_OK(hg_optim_step(b.optim));
			run = bad ? 0 : run + 1;
			scale *= bad ? 0.5f : run && run % 4 == 0 ? 2.0f : 1.0f;
			if (!bad)
				reference_all(&b, &methods[which].config, ++applied);
			weights_check(&b, methods[which].name);
			const hg_step_info info = info_of(&b);
			CHECK_EQ_I(info.applied, !bad);
			CHECK_EQ_I(info.reason, bad            ? HG_STEP_SKIPPED_BACKOFF
			                        : run % 4 == 0 ? HG_STEP_APPLIED_GREW
			                                       : HG_STEP_APPLIED);
			CHECK_EQ_I(info.nonfinite, bad);
			CHECK_EQ_I(info.steps, step);
			CHECK_EQ_I(info.skipped, step - applied);
			CHECK(info.loss_scale == scale);
			CHECK((isfinite(info.grad_norm) != 0) == !bad);
			if (bad)
				CHECK_STR(info.first_nonfinite, "second");
			else
				CHECK(!info.first_nonfinite);
		}
		case_close(&b);
	}
}

/* Where the norm of all gradients together exceeds clip_norm, all are multiplied by clip_norm /
 * norm. Otherwise they are not changed. */
static void long_gradients_are_clipped(void)
{
	for (int longer = 0; longer < 2; longer++) {
		const hg_policy policy = hg_policy_fp16();
		hg_optim_config config = methods[0].config;
		struct optim_case b;
		test_reseed(9);
		config.clip_norm = longer ? 1.5f : 1e3f;
		case_open(&b, &config, &policy);
		const double norm = gradients_make(&b, info_of(&b).loss_scale),
		             factor = longer ? 1.5 / norm : 1.0;
		CHECK_OK(hg_optim_step(b.optim));
		/* the norm before clipping */
		CHECK_WITHIN(info_of(&b).grad_norm, norm, SIZE * TENSORS * 0x1p-52 * norm);
		for (int k = 0; k < TENSORS; k++)
			for (int i = 0; i < SIZE; i++) {
				struct element *p = &b.state[k][i];
				const double g = factor * (double)b.gradient[k][i], lr = b.lr[k];
				sgd(p, &config, lr, b.decay[k], g);
				/* roundings of the factor and of the product */
				p->w.e += 2 * slack * u * lr * fabs(g);
			}
		weights_check(&b, longer ? "clipped" : "not clipped");
		case_close(&b);
	}
}

static void two_runs_give_the_same_bits(void)
{
	float bits[2][TENSORS][SIZE];
	for (int run = 0; run < 2; run++) {
		const hg_policy policy = hg_policy_fp16();
		struct optim_case b;
		test_reseed(7);
		case_open(&b, &methods[METHODS - 1].config, &policy);
		for (int t = 0; t < STEPS; t++) {
			(void)gradients_make(&b, 65536.0f);
			CHECK_OK(hg_optim_step(b.optim));
		}
		for (int k = 0; k < TENSORS; k++)
			CHECK_OK(hg_tensor_download(hg_param_master(b.param[k]), bits[run][k], HG_F32));
		case_close(&b);
	}
	CHECK(memcmp(bits[0], bits[1], sizeof bits[0]) == 0);
}

static void mistakes_are_refused_by_name(void)
{
	struct optim_case b;
	hg_optim *other = NULL;
	int group = 0;
	test_reseed(8);
	case_open(&b, &methods[0].config, NULL);
	struct {
		hg_optim_config config;
		const char *part;
	} bad[] = {{HG_OPTIM_CONFIG_INIT, "lr"},
	           {methods[0].config, "nesterov"},
	           {methods[4].config, "beta2"},
	           {methods[0].config, "clip_norm"},
	           {methods[0].config, "HG_OPTIM_CONFIG_INIT"}};
	bad[0].config.lr = NAN;
	bad[1].config.nesterov = 1;
	bad[2].config.beta2 = 1.0f;
	bad[3].config.clip_norm = -1.0f;
	bad[4].config.size = 0;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK_STATUS(hg_optim_create(b.params, &bad[i].config, &other), HG_ERR_ARG);
		CHECK_CONTAINS(hg_context_error(b.ctx), bad[i].part);
	}
	CHECK(!other);
	CHECK_STATUS(hg_optim_assign(b.optim, b.buffer, 0), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(b.ctx), "statistics");
	CHECK_STATUS(hg_optim_assign(b.optim, b.param[0], 1), HG_ERR_ARG);
	CHECK_STATUS(hg_optim_set_lr(b.optim, -1, 0.1f), HG_ERR_ARG);
	CHECK_STATUS(hg_optim_add_group(b.optim, 0.1f, -1.0f, &group), HG_ERR_ARG);
	hg_param *late = NULL;
	CHECK_OK(hg_params_add(b.params, "late", 1, 1, HG_INIT_ZEROS, 0, &late));
	CHECK_STATUS(hg_optim_step(b.optim), HG_ERR_STATE);
	case_close(&b);
}

/* A program that was compiled with older headers passes shorter structs. Missing fields of the
 * configuration have their defaults, and fields that the info lacks are not written. */
static void older_structs_are_understood(void)
{
	struct optim_case b;
	hg_optim *other = NULL;
	test_reseed(8);
	case_open(&b, &methods[0].config, NULL);
	hg_optim_config c = methods[4].config;
	c.size = offsetof(hg_optim_config, beta2);
	c.beta2 = 5.0f;
	CHECK_OK(hg_optim_create(b.params, &c, &other));
	hg_step_info info = HG_STEP_INFO_INIT;
	info.size = offsetof(hg_step_info, first_nonfinite);
	info.first_nonfinite = "kept";
	CHECK_OK(hg_optim_info(other, &info));
	CHECK(info.loss_scale > 0.0f);
	CHECK_STR(info.first_nonfinite, "kept");
	info.size = 0;
	CHECK_STATUS(hg_optim_info(other, &info), HG_ERR_ARG);
	hg_optim_free(other);
	case_close(&b);
}

/* The info of a step names a weight that is larger than tapes assume, from the first step that ran
 * with it until a tape is recorded again. */
static void outgrown_weights_are_reported(void)
{
	hg_context *ctx = test_context();
	hg_params *params = NULL;
	hg_param *small = NULL, *large = NULL;
	hg_optim *optim = NULL;
	hg_tape *tape = NULL;
	hg_step_info info = HG_STEP_INFO_INIT;
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	float ones[3] = {1, 1, 1};
	config.kind = HG_SGD;
	config.lr = 2.0f;
	CHECK_OK(hg_params_create(ctx, NULL, &params));
	CHECK_OK(hg_params_add(params, "small", 1, 3, HG_INIT_ZEROS, 0, &small));
	CHECK_OK(hg_params_add(params, "large", 1, 3, HG_INIT_ONES, 0, &large));
	CHECK_OK(hg_optim_create(params, &config, &optim));
	CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
	CHECK(hg_tape_param(tape, small).id >= 0 && hg_tape_param(tape, large).id >= 0);
	CHECK(small->reach == 1.0 && large->reach == 4.0);
	for (int i = 0; i < 3; i++)
		ones[i] *= 65536.0f; /* the loss scale */
	CHECK_OK(hg_tensor_upload(hg_param_grad(small), ones, HG_F32));
	CHECK_OK(hg_optim_step(optim)); /* the weights become -2; assumed was 1 */
	CHECK_OK(hg_optim_info(optim, &info));
	CHECK(info.outgrown == NULL); /* this step ran with the old weights */
	CHECK_OK(hg_optim_step(optim));
	CHECK_OK(hg_optim_info(optim, &info));
	CHECK(info.outgrown != NULL);
	CHECK_STR(info.outgrown, "small");
	hg_tape_free(tape);
	CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
	CHECK(hg_tape_param(tape, small).id >= 0 && small->reach == 16.0);
	CHECK_OK(hg_optim_step(optim));
	CHECK_OK(hg_optim_info(optim, &info));
	CHECK(info.outgrown == NULL);
	hg_tape_free(tape);
	hg_optim_free(optim);
	hg_params_free(params);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(formulas_hold_for_20_steps),   TEST(nonfinite_steps_are_skipped),
	    TEST(long_gradients_are_clipped),   TEST(two_runs_give_the_same_bits),
	    TEST(mistakes_are_refused_by_name), TEST(outgrown_weights_are_reported),
	    TEST(older_structs_are_understood)};
	return RUN_TESTS(argc, argv, cases);
}
