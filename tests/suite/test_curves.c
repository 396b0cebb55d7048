/* The first training steps of every model, fifty without sanitizers. Two runs give the same bits,
 * and the loss curve of the device under test is that of the CPU.
 *
 * The CPU's curve is computed by the copy of its kernels that runs on every machine, with three
 * threads. So it is a comparison also where the device under test is the CPU, which uses its widest
 * registers and all its threads.
 *
 * How far may two correct implementations differ? As far as one implementation differs from itself
 * when its sums are taken in another order, which is what relabelling the nodes does. So the bound
 * is measured: the distance of the CPU's curves on graphs with other labels, which is rounding and
 * nothing else. The bound is four times their largest distance so far, plus four roundings of the
 * loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/backend.h"
#include "oracle/num.h"
#include "planted.h"

enum {
	NODES = 400,
	CLASSES = 4,
	FEATURES = 12,
	DEGREE = 8,
	STEPS = TEST_SHARE(50, 5),
	NAMINGS = 3
};

/* Every node has DEGREE edges, three of four from its own class. */
static struct coo random_communities(void)
{
	struct coo list = coo_empty(NODES, NODES);
	for (int64_t i = 0; i < NODES; i++)
		for (int e = 0; e < DEGREE; e++) {
			const int64_t same = test_below(NODES / CLASSES) * CLASSES + i % CLASSES,
			              any = test_below(NODES);
			coo_add(&list, i, e % 4 ? same : any);
		}
	return list;
}

/* The task with node i renamed to name[i]. Features are halves, so that they are the same in every
 * policy. */
static struct planted make_task(const int32_t *name)
{
	const struct planted_features features = {.noise = 1.0, .signal = 1.0};
	test_reseed(77);
	struct planted task = planted_make(random_communities(), FEATURES, CLASSES, features);
	for (int i = 0; i < NODES * FEATURES; i++)
		task.x[i] = hg_half_to_float(hg_half_from_float(task.x[i]));
	planted_split(&task, 2 * NODES / 3, 0);
	planted_rename(&task, name);
	return task;
}

struct curve {
	double loss[STEPS];
};

struct model_policy {
	const char *model, *policy;
};

static int note_loss(void *user, const hg_train_event *event)
{
	struct curve *curve = user;
	if (event->epoch >= 1 && event->epoch <= STEPS)
		curve->loss[event->epoch - 1] = event->loss;
	return 0;
}

static struct curve train(hg_context *ctx, const struct model_policy *what,
                          const struct planted *task)
{
	struct curve curve = {{0}};
	struct planted_run run;
	hg_train_config config = hg_train_config_default(what->model);
	CHECK_OK(hg_policy_parse(what->policy, &config.policy));
	config.model.hidden = 16;
	config.model.dropout = config.model.attention_dropout = 0.0f;
	config.model.in_features = FEATURES;
	config.model.out_features = CLASSES;
	config.epochs = STEPS;
	config.patience = 0;
	config.progress = note_loss;
	config.user = &curve;
	planted_train(&run, ctx, task, &config, 0);
	CHECK(run.report.loss_finite);
	run.ctx = NULL; /* the caller's */
	planted_close(&run);
	return curve;
}

/* A CPU context with the kernels that run on every machine. `backend` must live as long as it. */
static hg_context *generic_context(struct hg__backend *backend)
{
	size_t count = 0;
	const struct hg__cpu_isa *isas = hg__cpu_isas(&count);
	hg_context *ctx = test_cpu_context(3);
	*backend = *ctx->backend;
	backend->kernels = isas[count - 1].kernels;
	ctx->backend = backend;
	return ctx;
}

/* The task under its naming `k`; 0: node i is called i. */
static struct planted named_task(int k)
{
	/* without a common divisor with NODES */
	static const int32_t factor[NAMINGS + 1] = {1, 147, 149, 151};
	int32_t name[NODES];
	for (int32_t i = 0; i < NODES; i++)
		name[i] = k ? (i * factor[k] + 31) % NODES : i;
	return make_task(name);
}

/* For each step the largest distance of a curve on a relabelled graph from `reference`. */
static struct curve drift_of(hg_context *cpu, const struct model_policy *what,
                             const struct curve *reference)
{
	struct curve drift = {{0}};
	for (int k = 1; k <= NAMINGS; k++) {
		struct planted renamed = named_task(k);
		const struct curve other = train(cpu, what, &renamed);
		for (int s = 0; s < STEPS; s++)
			drift.loss[s] = fmax(drift.loss[s], fabs(other.loss[s] - reference->loss[s]));
		planted_free(&renamed);
	}
	return drift;
}

static void curve_is_that_of_the_cpu(const void *item)
{
	const struct model_policy *what = item;
	struct planted plain = named_task(0);
	struct hg__backend generic;
	hg_context *cpu = generic_context(&generic), *ctx = test_context();
	const struct curve reference = train(cpu, what, &plain),
	                   drifts = drift_of(cpu, what, &reference);
	const struct curve first = train(ctx, what, &plain), second = train(ctx, what, &plain);
	const double u = strcmp(what->policy, "fp32") == 0 ? ORACLE_U32 : ORACLE_U16;
	double drift = 0, worst = 0;
	CHECK_MSG(memcmp(&first, &second, sizeof first) == 0, "two runs give different loss curves");
	for (int s = 0; s < STEPS; s++) {
		drift = fmax(drift, drifts.loss[s]);
		const double bound = 4 * drift + 4 * u * fabs(reference.loss[s]);
		worst = fmax(worst, fabs(first.loss[s] - reference.loss[s]) / bound);
		CHECK_MSG(fabs(first.loss[s] - reference.loss[s]) <= bound,
		          "step %d: loss %.9g, on the CPU %.9g, bound %.3g", s, first.loss[s],
		          reference.loss[s], bound);
	}
	test_note("%s %s: loss %.4f -> %.4f, worst distance / bound %.3f, drift %.3g", what->model,
	          what->policy, reference.loss[0], reference.loss[STEPS - 1], worst, drift);
	CHECK(reference.loss[STEPS - 1] < TEST_SHARE(0.7, 1.0) * reference.loss[0]);
	hg_context_free(ctx);
	hg_context_free(cpu);
	planted_free(&plain);
}

int main(int argc, char **argv)
{
	static const struct model_policy gcn16 = {"gcn", "fp16"}, gcn32 = {"gcn", "fp32"},
	                                 gin16 = {"gin", "fp16"}, gin32 = {"gin", "fp32"},
	                                 gat16 = {"gat", "fp16"}, gat32 = {"gat", "fp32"},
	                                 gatv216 = {"gatv2", "fp16"}, gatv232 = {"gatv2", "fp32"},
	                                 agnn16 = {"agnn", "fp16"}, agnn32 = {"agnn", "fp32"},
	                                 gt16 = {"gt", "fp16"}, gt32 = {"gt", "fp32"},
	                                 sage16 = {"sage", "fp16"}, sgc16 = {"sgc", "fp16"},
	                                 appnp16 = {"appnp", "fp16"};
	static const struct test_case cases[] = {
	    {"gcn_fp16", 0, curve_is_that_of_the_cpu, &gcn16},
	    {"gin_fp16", 0, curve_is_that_of_the_cpu, &gin16},
	    {"gat_fp16", 0, curve_is_that_of_the_cpu, &gat16},
	    {"gatv2_fp16", 0, curve_is_that_of_the_cpu, &gatv216},
	    {"agnn_fp16", 0, curve_is_that_of_the_cpu, &agnn16},
	    {"gt_fp16", 0, curve_is_that_of_the_cpu, &gt16},
	    {"sage_fp16", 0, curve_is_that_of_the_cpu, &sage16},
	    {"sgc_fp16", 0, curve_is_that_of_the_cpu, &sgc16},
	    {"appnp_fp16", 0, curve_is_that_of_the_cpu, &appnp16},
	    {"gcn_fp32", 0, curve_is_that_of_the_cpu, &gcn32},
	    {"gin_fp32", 0, curve_is_that_of_the_cpu, &gin32},
	    {"gat_fp32", 0, curve_is_that_of_the_cpu, &gat32},
	    {"gatv2_fp32", 0, curve_is_that_of_the_cpu, &gatv232},
	    {"agnn_fp32", 0, curve_is_that_of_the_cpu, &agnn32},
	    {"gt_fp32", 0, curve_is_that_of_the_cpu, &gt32},
	};
	return RUN_TESTS(argc, argv, cases);
}
