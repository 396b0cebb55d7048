/* Fifty training steps of every model. Two runs give the same bits, and the loss curve of the
 * device under test is that of the CPU.
 *
 * The CPU's curve is computed by the copy of its kernels that runs on every machine, with three
 * threads. So it is a comparison also where the device under test is the CPU, which uses its widest
 * registers and all its threads.
 *
 * How far may two correct implementations differ? As far as one implementation differs from itself
 * when its sums are taken in another order, which is what relabelling the nodes does. So the bound
 * is measured: the distance of the CPU's curve on the relabelled graph, which is rounding and
 * nothing else. The bound is four times its largest distance so far, plus four roundings of the
 * loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/backend.h"
#include "oracle/num.h"
#include "planted.h"

enum { NODES = 400, CLASSES = 4, FEATURES = 12, DEGREE = 8, STEPS = 50 };

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

static void curve_is_that_of_the_cpu(const void *item)
{
	const struct model_policy *what = item;
	int32_t same[NODES], other_names[NODES];
	for (int32_t i = 0; i < NODES; i++) {
		same[i] = i;
		other_names[i] = (i * 147 + 31) % NODES;
	}
	struct planted plain = make_task(same), renamed = make_task(other_names);
	struct hg__backend generic;
	hg_context *cpu = generic_context(&generic), *ctx = test_context();
	const struct curve reference = train(cpu, what, &plain), other = train(cpu, what, &renamed);
	const struct curve first = train(ctx, what, &plain), second = train(ctx, what, &plain);
	const double u = strcmp(what->policy, "fp32") == 0 ? ORACLE_U32 : ORACLE_U16;
	double drift = 0, worst = 0;
	CHECK_MSG(memcmp(&first, &second, sizeof first) == 0, "two runs give different loss curves");
	for (int s = 0; s < STEPS; s++) {
		drift = fmax(drift, fabs(other.loss[s] - reference.loss[s]));
		const double bound = 4 * drift + 4 * u * fabs(reference.loss[s]);
		worst = fmax(worst, fabs(first.loss[s] - reference.loss[s]) / bound);
		CHECK_MSG(fabs(first.loss[s] - reference.loss[s]) <= bound,
		          "step %d: loss %.9g, on the CPU %.9g, bound %.3g", s, first.loss[s],
		          reference.loss[s], bound);
	}
	test_note("%s %s: loss %.4f -> %.4f, worst distance / bound %.3f, drift %.3g", what->model,
	          what->policy, reference.loss[0], reference.loss[STEPS - 1], worst, drift);
	CHECK(reference.loss[STEPS - 1] < 0.7 * reference.loss[0]);
	hg_context_free(ctx);
	hg_context_free(cpu);
	planted_free(&plain);
	planted_free(&renamed);
}

int main(int argc, char **argv)
{
	static const struct model_policy gcn16 = {"gcn", "fp16"}, gin16 = {"gin", "fp16"},
	                                 gat16 = {"gat", "fp16"}, gcn32 = {"gcn", "fp32"},
	                                 gin32 = {"gin", "fp32"}, gat32 = {"gat", "fp32"};
	static const struct test_case cases[] = {
	    {"gcn_fp16", 0, curve_is_that_of_the_cpu, &gcn16},
	    {"gin_fp16", 0, curve_is_that_of_the_cpu, &gin16},
	    {"gat_fp16", 0, curve_is_that_of_the_cpu, &gat16},
	    {"gcn_fp32", 0, curve_is_that_of_the_cpu, &gcn32},
	    {"gin_fp32", 0, curve_is_that_of_the_cpu, &gin32},
	    {"gat_fp32", 0, curve_is_that_of_the_cpu, &gat32},
	};
	return RUN_TESTS(argc, argv, cases);
}
