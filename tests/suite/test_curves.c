#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/train.h"
#include "harness.h"
#include "kernels/cpu/backend.h"
#include "oracle/num.h"

/* Fifty training steps of every model: two runs give the same bits, and the device under test draws
 * the CPU's loss curve.
 *
 * The CPU's curve is drawn by the copy of its kernels that runs everywhere, with three threads. So
 * it is a second opinion also where the device under test is the CPU, which uses the widest
 * registers that it has and all its threads.
 *
 * How far may two right implementations drift apart? As far as one implementation drifts when its
 * sums are taken in another order, which is what relabelling the nodes does. So the yardstick is
 * measured: the CPU's curve on the relabelled graph, whose distance is rounding and nothing else.
 * Four times its largest distance so far, plus four roundings of the loss to half precision of its
 * terms, is the bound. */

enum { NODES = 400, CLASSES = 4, FEATURES = 12, DEGREE = 8, STEPS = 50 };

struct problem {
	int32_t dst[NODES * DEGREE], src[NODES * DEGREE], label[NODES];
	float x[NODES][FEATURES];
	uint8_t mask[NODES];
};

/* Four communities on a random graph; `order` renames the nodes. */
static void make(struct problem *p, const int32_t *order)
{
	test_reseed(77);
	for (int32_t i = 0; i < NODES; i++) {
		const int32_t me = order[i];
		p->label[me] = i % CLASSES;
		p->mask[me] = i % 3 != 0;
		for (int k = 0; k < FEATURES; k++)
			p->x[me][k] = hg_half_to_float(
			    hg_half_from_double(test_normal() + (k % CLASSES == i % CLASSES ? 1.0 : 0.0)));
		for (int e = 0; e < DEGREE; e++) {
			const int32_t same = (int32_t)test_below(NODES / CLASSES) * CLASSES + i % CLASSES,
			              any = (int32_t)test_below(NODES);
			p->dst[i * DEGREE + e] = me;
			p->src[i * DEGREE + e] = order[e % 4 ? same : any];
		}
	}
}

struct curve {
	double loss[STEPS];
};

static int record(void *user, const hg_train_event *event)
{
	struct curve *curve = user;
	if (event->epoch >= 1 && event->epoch <= STEPS)
		curve->loss[event->epoch - 1] = event->loss;
	return 0;
}

static struct curve train(hg_context *ctx, const char *model, const char *policy,
                          const struct problem *p)
{
	struct curve curve = {{0}};
	hg_train_config config = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse(policy, &config.policy));
	config.model.hidden = 16;
	config.model.dropout = config.model.attention_dropout = 0.0f;
	config.epochs = STEPS;
	config.patience = 0;
	config.progress = record;
	config.user = &curve;
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_tensor *x = NULL;
	CHECK_OK(hg_graph_from_coo(ctx, NODES, NODES, NODES * DEGREE, p->dst, p->src, NULL, NULL,
	                           &data.input.graph));
	CHECK_OK(hg_tensor_create(ctx, config.policy.state, NODES, FEATURES, &x));
	CHECK_OK(hg_tensor_upload(x, p->x, HG_F32));
	data.input.x = x;
	data.labels = p->label;
	data.train_mask = p->mask;
	config.model.in_features = FEATURES;
	config.model.out_features = CLASSES;
	hg_train *run = NULL;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	CHECK_MSG(hg_train_create(ctx, &config, &data, &run) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_train_run(run, &report));
	CHECK(report.loss_finite);
	hg_train_free(run);
	hg_tensor_free(x);
	hg_graph_free(data.input.graph);
	return curve;
}

/* The CPU with its plainest kernels; `backend` lives as long as the context. */
static hg_context *cpu_context(struct hg__backend *backend)
{
	size_t count = 0;
	const struct hg__cpu_isa *isas = hg__cpu_isas(&count);
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	config.seed = test_seed();
	config.threads = 3;
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(&config, &ctx));
	*backend = *ctx->backend;
	backend->kernels = isas[count - 1].kernels;
	ctx->backend = backend;
	return ctx;
}

struct what {
	const char *model, *policy;
};

static void curves_agree(const void *item)
{
	const struct what *what = item;
	static struct problem plain, renamed;
	int32_t order[NODES];
	for (int32_t i = 0; i < NODES; i++)
		order[i] = i;
	make(&plain, order);
	for (int32_t i = 0; i < NODES; i++)
		order[i] = (i * 147 + 31) % NODES;
	make(&renamed, order);
	struct hg__backend generic;
	hg_context *cpu = cpu_context(&generic), *ctx = test_context();
	const struct curve reference = train(cpu, what->model, what->policy, &plain),
	                   other = train(cpu, what->model, what->policy, &renamed);
	const struct curve first = train(ctx, what->model, what->policy, &plain),
	                   second = train(ctx, what->model, what->policy, &plain);
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
}

int main(int argc, char **argv)
{
	static const struct what gcn16 = {"gcn", "fp16"}, gin16 = {"gin", "fp16"},
	                         gat16 = {"gat", "fp16"};
	static const struct what gcn32 = {"gcn", "fp32"}, gin32 = {"gin", "fp32"},
	                         gat32 = {"gat", "fp32"};
	static const struct test_case cases[] = {
	    {"gcn_fp16", 0, curves_agree, &gcn16}, {"gin_fp16", 0, curves_agree, &gin16},
	    {"gat_fp16", 0, curves_agree, &gat16}, {"gcn_fp32", 0, curves_agree, &gcn32},
	    {"gin_fp32", 0, curves_agree, &gin32}, {"gat_fp32", 0, curves_agree, &gat32},
	};
	return RUN_TESTS(argc, argv, cases);
}
