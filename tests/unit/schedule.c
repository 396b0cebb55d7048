/* Schedules of the learning rate: their factors beside PyTorch's equations, and in an optimiser the
 * same bits as a host that sets the rate of every step. */
#include "halfgraph/schedule.h"

#include <math.h>
#include <string.h>

#include "autograd/param.h"
#include "halfgraph/state.h"
#include "harness.h"

static hg_schedule_config schedule_of(hg_schedule_kind kind, int64_t warmup, int64_t total)
{
	hg_schedule_config c = HG_SCHEDULE_CONFIG_INIT;
	c.kind = kind;
	c.warmup = warmup;
	c.total = total;
	return c;
}

/* ---- the factors ---- */

/* PyTorch's equations in its own form, with the cosine and the powers of the C library. */
static double pytorch_cosine(double from, double to, double part)
{
	return to + (from - to) / 2.0 * (cos(3.14159265358979323846 * part) + 1.0);
}

static double pytorch_one_cycle(const hg_schedule_config *c, double t, double total)
{
	const double up = c->rise * total - 1.0, down = total - 1.0;
	return t <= up ? pytorch_cosine(c->start, 1.0, up > 0.0 ? t / up : 1.0)
	               : pytorch_cosine(1.0, c->least, fmin((t - up) / (down - up), 1.0));
}

static double pytorch(const hg_schedule_config *c, int64_t step)
{
	const double start = c->start, warm = (double)c->warmup;
	const int64_t after = step < c->warmup ? 0 : step - c->warmup;
	const double t = (double)after, total = (double)(c->total - c->warmup);
	double factor = 1.0;
	if (c->kind == HG_SCHEDULE_STEP)
		factor = fmax(c->least, pow(c->factor, (double)(after / c->every)));
	if (c->kind == HG_SCHEDULE_COSINE)
		factor = pytorch_cosine(1.0, c->least, fmin(t / total, 1.0));
	if (c->kind == HG_SCHEDULE_ONE_CYCLE)
		factor = pytorch_one_cycle(c, t, total);
	return step < c->warmup ? factor * (start + (1.0 - start) * (double)step / warm) : factor;
}

/* Both sides round a few times, and the equation of the cosine subtracts numbers of size 1: 16
 * roundings of f64 in all, and as many as the exponent of a power. */
static void factors_are_pytorchs(void)
{
	static const hg_schedule_kind kinds[] = {HG_SCHEDULE_CONSTANT, HG_SCHEDULE_STEP,
	                                         HG_SCHEDULE_COSINE, HG_SCHEDULE_ONE_CYCLE,
	                                         HG_SCHEDULE_PLATEAU};
	static const int64_t warmups[] = {0, 1, 7, 50}, totals[] = {51, 60, 200, 1001};
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (size_t w = 0; w < 4; w++)
			for (size_t n = 0; n < 4; n++) {
				hg_schedule_config c = schedule_of(kinds[k], warmups[w], totals[n]);
				c.every = 1 + test_below(60);
				c.factor = 0.05 + 0.95 * test_uniform();
				c.least = n % 2 ? 0.2 * test_uniform() : 0.0;
				c.start = test_uniform();
				c.rise = 0.05 + 0.9 * test_uniform();
				CHECK(!hg_schedule_fault(&c));
				for (int64_t t = 0; t < 2 * c.total; t++) {
					const double found = hg_schedule_factor(&c, t), expected = pytorch(&c, t);
					const double roundings = 16.0 + (double)(t / c.every);
					CHECK_MSG(fabs(found - expected) <= roundings * 0x1p-53 && found <= 1.0,
					          "%s, step %lld: %.17g, expected %.17g", hg_schedule_name(kinds[k]),
					          (long long)t, found, expected);
				}
			}
}

/* What torch.optim.lr_scheduler prints, with a learning rate of 1. */
static void factors_are_as_recorded(void)
{
	static const struct {
		hg_schedule_kind kind;
		int64_t warmup, every, total;
		double factor, least, start;
		int64_t step;
		double expected;
	} rows[] = {
	    /* StepLR(50, 0.5): the GIN paper */
	    {HG_SCHEDULE_STEP, 0, 50, 0, 0.5, 0.0, 0.0, 49, 1.0},
	    {HG_SCHEDULE_STEP, 0, 50, 0, 0.5, 0.0, 0.0, 50, 0.5},
	    {HG_SCHEDULE_STEP, 0, 50, 0, 0.5, 0.0, 0.0, 349, 0.015625},
	    /* StepLR(30, 0.1) */
	    {HG_SCHEDULE_STEP, 0, 30, 0, 0.1, 0.0, 0.0, 60, 0.01},
	    /* CosineAnnealingLR(10), and with eta_min 0.1 */
	    {HG_SCHEDULE_COSINE, 0, 1, 10, 0.5, 0.0, 0.0, 0, 1.0},
	    {HG_SCHEDULE_COSINE, 0, 1, 10, 0.5, 0.0, 0.0, 1, 0.97552825814757682},
	    {HG_SCHEDULE_COSINE, 0, 1, 10, 0.5, 0.0, 0.0, 5, 0.5},
	    {HG_SCHEDULE_COSINE, 0, 1, 10, 0.5, 0.1, 0.0, 9, 0.12202456766718093},
	    {HG_SCHEDULE_COSINE, 0, 1, 10, 0.5, 0.0, 0.0, 10, 0.0},
	    /* LinearLR(0.5, total_iters=4): 0.025, 0.03125, 0.0375, ... of 0.05 in its documentation */
	    {HG_SCHEDULE_CONSTANT, 4, 1, 0, 0.5, 0.0, 0.5, 0, 0.5},
	    {HG_SCHEDULE_CONSTANT, 4, 1, 0, 0.5, 0.0, 0.5, 1, 0.625},
	    {HG_SCHEDULE_CONSTANT, 4, 1, 0, 0.5, 0.0, 0.5, 3, 0.875},
	    {HG_SCHEDULE_CONSTANT, 4, 1, 0, 0.5, 0.0, 0.5, 4, 1.0},
	    /* SequentialLR of this one and StepLR(3, 0.1), milestone 4 */
	    {HG_SCHEDULE_STEP, 4, 3, 0, 0.1, 0.0, 0.5, 6, 1.0},
	    {HG_SCHEDULE_STEP, 4, 3, 0, 0.1, 0.0, 0.5, 7, 0.1},
	    /* OneCycleLR(1, total_steps=10, final_div_factor=inf) */
	    {HG_SCHEDULE_ONE_CYCLE, 0, 1, 10, 0.5, 0.0, 0.04, 0, 0.04},
	    {HG_SCHEDULE_ONE_CYCLE, 0, 1, 10, 0.5, 0.0, 0.04, 1, 0.52},
	    {HG_SCHEDULE_ONE_CYCLE, 0, 1, 10, 0.5, 0.0, 0.04, 2, 1.0},
	    {HG_SCHEDULE_ONE_CYCLE, 0, 1, 10, 0.5, 0.0, 0.04, 3, 0.95048443395120952},
	    {HG_SCHEDULE_ONE_CYCLE, 0, 1, 10, 0.5, 0.0, 0.04, 9, 0.0}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hg_schedule_config c = schedule_of(rows[i].kind, rows[i].warmup, rows[i].total);
		c.every = rows[i].every;
		c.factor = rows[i].factor;
		c.least = rows[i].least;
		c.start = rows[i].start;
		const double found = hg_schedule_factor(&c, rows[i].step);
		CHECK_MSG(fabs(found - rows[i].expected) <= 8 * 0x1p-53, "row %zu: %.17g, expected %.17g",
		          i, found, rows[i].expected);
	}
}

/* ---- what is refused ---- */

static void faults_name_their_field(void)
{
	const hg_schedule_config good = schedule_of(HG_SCHEDULE_COSINE, 0, 0);
	struct {
		hg_schedule_config c;
		const char *field;
	} rows[12];
	for (size_t i = 0; i < 12; i++)
		rows[i].c = good;
	rows[0].c.size = 0, rows[0].field = "size";
	rows[1].c.kind = (hg_schedule_kind)5, rows[1].field = "kind";
	rows[2].c.warmup = -1, rows[2].field = "warmup";
	rows[3].c.every = 0, rows[3].field = "every";
	rows[4].c.patience = -1, rows[4].field = "patience";
	rows[5].c.warmup = rows[5].c.total = 7, rows[5].field = "total";
	rows[6].c.factor = 0.0, rows[6].field = "factor";
	rows[7].c.factor = (double)NAN, rows[7].field = "factor";
	rows[8].c.least = 1.5, rows[8].field = "least";
	rows[9].c.start = -0.1, rows[9].field = "start";
	rows[10].c.rise = 1.0, rows[10].field = "rise";
	rows[11].c.threshold = 1.0, rows[11].field = "threshold";
	for (size_t i = 0; i < 12; i++) {
		const char *fault = hg_schedule_fault(&rows[i].c);
		CHECK_MSG(fault && strncmp(fault, rows[i].field, strlen(rows[i].field)) == 0, "row %zu: %s",
		          i, fault ? fault : "no fault");
		CHECK(isnan(hg_schedule_factor(&rows[i].c, 0)));
	}
	CHECK(!hg_schedule_fault(&good) && hg_schedule_fault(NULL));
	CHECK(isnan(hg_schedule_factor(&good, 0)) && isnan(hg_schedule_factor(NULL, 0)));
	const hg_schedule_config constant = HG_SCHEDULE_CONFIG_INIT;
	CHECK(hg_schedule_factor(&constant, 3) >= 1.0 && isnan(hg_schedule_factor(&constant, -1)));
	CHECK(!hg_schedule_name((hg_schedule_kind)-1) && !hg_schedule_name((hg_schedule_kind)5));
}

/* ---- in an optimiser ---- */

enum { ROWS = 3, COLS = 5, SIZE = ROWS * COLS, STEPS = 24 };

struct rig {
	hg_context *ctx;
	hg_params *params;
	hg_param *param;
	hg_optim *optim;
	int group;
};

static void rig_open(struct rig *r, hg_optim_kind kind)
{
	hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	const hg_policy policy = hg_policy_fp32();
	config.kind = kind;
	config.lr = 0.1f;
	config.weight_decay = 0.01f;
	r->ctx = test_context();
	CHECK_OK(hg_params_create(r->ctx, &policy, &r->params));
	CHECK_OK(hg_params_add(r->params, "weight", ROWS, COLS, HG_INIT_ONES, 0, &r->param));
	CHECK_OK(hg_optim_create(r->params, &config, &r->optim));
	CHECK_OK(hg_optim_add_group(r->optim, 0.03f, 0.0f, &r->group));
	CHECK_OK(hg_optim_assign(r->optim, r->param, r->group));
}

static void rig_step(struct rig *r, int step)
{
	float grad[SIZE];
	for (int i = 0; i < SIZE; i++)
		grad[i] = (float)((step * 7 + i * 3) % 11) - 4.5f;
	CHECK_OK(hg_tensor_upload(r->param->grad, grad, HG_F32));
	CHECK_OK(hg_optim_step(r->optim));
}

static void rig_close(struct rig *r, float *weights)
{
	CHECK_OK(hg_tensor_download(r->param->master, weights, HG_F32));
	hg_optim_free(r->optim);
	hg_params_free(r->params);
	hg_context_free(r->ctx);
}

static double factor_read(const struct rig *r)
{
	hg_step_info info = HG_STEP_INFO_INIT;
	CHECK_OK(hg_optim_info(r->optim, &info));
	return info.lr_factor;
}

/* A rate is rounded once, so a host that sets lr * factor before each step gets the same bits. */
static void steps_take_the_rate_of_the_schedule(void)
{
	for (int kind = HG_SCHEDULE_CONSTANT; kind <= HG_SCHEDULE_ONE_CYCLE; kind++)
		for (int method = HG_SGD; method <= HG_ADAMW; method++) {
			struct rig ours, host;
			float found[SIZE], expected[SIZE];
			hg_schedule_config c = schedule_of((hg_schedule_kind)kind, 3, STEPS - 2);
			c.every = 4;
			rig_open(&ours, (hg_optim_kind)method);
			rig_open(&host, (hg_optim_kind)method);
			CHECK_OK(hg_optim_set_schedule(ours.optim, &c));
			for (int t = 0; t < STEPS; t++) {
				const double factor = hg_schedule_factor(&c, t);
				CHECK_OK(hg_optim_set_lr(host.optim, host.group, (float)((double)0.03f * factor)));
				rig_step(&ours, t);
				rig_step(&host, t);
				CHECK(factor_read(&ours) >= factor && factor_read(&ours) <= factor);
				CHECK(factor_read(&host) >= 1.0 && factor_read(&host) <= 1.0);
			}
			rig_close(&ours, found);
			rig_close(&host, expected);
			CHECK_MSG(memcmp(found, expected, sizeof found) == 0, "%s, optimiser %d",
			          hg_schedule_name((hg_schedule_kind)kind), method);
		}
}

/* ReduceLROnPlateau: with patience 2 the third evaluation in a row without improvement lowers the
 * rate, an improvement has to exceed the threshold, and what is not a number is none. */
static void plateau_is_pytorchs(void)
{
	const double nan = (double)NAN;
	const struct {
		int rises, patience;
		double threshold;
		int count;
		double value[12];
		int64_t drops[12]; /* after each evaluation */
	} rows[] = {
	    {0, 2, 1e-4, 8, {1, 1, 1, 1, 1, 1, 1, 0.5}, {0, 0, 0, 1, 1, 1, 2, 2}},
	    {1, 2, 1e-4, 7, {0.5, 0.6, 0.6, 0.6, 0.7, 0.1, 0.1}, {0, 0, 0, 0, 0, 0, 0}},
	    {1, 0, 0.1, 5, {1.0, 1.05, 1.2, 1.3, 1.5}, {0, 1, 1, 2, 2}},
	    {0, 1, 0.1, 6, {1.0, 0.95, 0.91, 0.8, 0.79, 0.5}, {0, 0, 1, 1, 1, 1}},
	    {0, 1, 1e-4, 6, {nan, nan, 2.0, nan, nan, nan}, {0, 1, 1, 1, 2, 2}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig r;
		float weights[SIZE];
		hg_schedule_config c = schedule_of(HG_SCHEDULE_PLATEAU, 0, 0);
		c.patience = rows[i].patience;
		c.threshold = rows[i].threshold;
		c.factor = 0.5;
		c.least = 0.3;
		rig_open(&r, HG_SGD);
		CHECK_OK(hg_optim_set_schedule(r.optim, &c));
		rig_step(&r, 0);
		for (int k = 0; k < rows[i].count; k++) {
			CHECK_OK(hg_optim_plateau(r.optim, rows[i].value[k], rows[i].rises));
			rig_step(&r, k + 1);
			const double expected = fmax(0.3, pow(0.5, (double)rows[i].drops[k]));
			CHECK_MSG(fabs(factor_read(&r) - expected) <= 0x1p-53, "row %zu, evaluation %d: %g", i,
			          k, factor_read(&r));
		}
		rig_close(&r, weights);
	}
}

/* Evaluations in a warm-up do not count, and neither do those of another schedule. */
static void plateau_waits_for_its_turn(void)
{
	struct rig r;
	float weights[SIZE];
	hg_state *state = NULL;
	hg_schedule_config c = schedule_of(HG_SCHEDULE_PLATEAU, 3, 0);
	c.patience = 0;
	rig_open(&r, HG_ADAM);
	for (int k = 0; k < 3; k++)
		CHECK_OK(hg_optim_plateau(r.optim, 1.0, 0)); /* no schedule yet */
	CHECK_OK(hg_optim_set_schedule(r.optim, &c));
	for (int k = 0; k < 6; k++) {
		rig_step(&r, k);
		CHECK_OK(hg_optim_plateau(r.optim, 1.0, 0));
	}
	CHECK_OK(hg_optim_get_state(r.optim, &state)); /* after the steps 2, 3, 4 and 5 */
	CHECK_EQ_I(state->plateau.evaluations, 4);
	CHECK_EQ_I(state->plateau.drops, 3);
	CHECK_EQ_I(state->plateau.waited, 0);
	hg_state_free(state);
	rig_close(&r, weights);
}

static void bad_schedules_are_refused(void)
{
	struct rig r;
	float weights[SIZE];
	hg_schedule_config c = schedule_of(HG_SCHEDULE_COSINE, 0, 0);
	rig_open(&r, HG_SGD);
	CHECK_STATUS(hg_optim_set_schedule(r.optim, &c), HG_ERR_ARG);
	CHECK_STR(hg_context_error(r.ctx), "optim_set_schedule: cosine: total must be above warmup");
	c = schedule_of(HG_SCHEDULE_STEP, 0, 0);
	c.every = 0;
	CHECK_STATUS(hg_optim_set_schedule(r.optim, &c), HG_ERR_ARG);
	CHECK_STR(hg_context_error(r.ctx), "optim_set_schedule: step: every must be at least 1");
	c.size = 0;
	CHECK_STATUS(hg_optim_set_schedule(r.optim, &c), HG_ERR_ARG);
	CHECK_STATUS(hg_optim_set_schedule(r.optim, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_optim_set_schedule(NULL, &c), HG_ERR_ARG);
	CHECK_STATUS(hg_optim_plateau(NULL, 1.0, 0), HG_ERR_ARG);
	rig_step(&r, 0);
	CHECK(factor_read(&r) >= 1.0);
	rig_close(&r, weights);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(factors_are_pytorchs),      TEST(factors_are_as_recorded),
	    TEST(faults_name_their_field),   TEST(steps_take_the_rate_of_the_schedule),
	    TEST(plateau_is_pytorchs),       TEST(plateau_waits_for_its_turn),
	    TEST(bad_schedules_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
