/* The observer of a step. What it reports of each tensor is what the tensor held, also where the
 * memory of the tensor was used again within the step. And it changes no result of the training. */
#include <math.h>
#include <stdio.h>

#include "autograd/observe.h"
#include "autograd/tape.h"
#include "graphs.h"
#include "halfgraph/model.h"
#include "halfgraph/observe.h"
#include "nn/step.h"
#include "precision/half.h"
#include "unit/capturing.h"
#include "unit/faulty.h"
#include "unit/tape.h"

enum { N = 120, D = 11, CLASSES = 7, LINES = 96 };

/* Two GCN layers with dropout (unit/tape.h), or a model. */
struct rig {
	struct bench b;
	hg_model *model;
	hg_optim *optim;
	hg_step *step;
	hg_tensor *x;
};

/* How much stays in memory for the observer, an argument of hg_tape_observe. LITTLE_STAYS is the
 * default of large tapes, for which it is not called. */
enum { NOTHING_STAYS = 0, ALL_STAYS = 1, LITTLE_STAYS = 2, ROOMS };

static void rig_open(struct rig *r, hg_context *ctx, const char *model, hg_policy policy, int stays)
{
	hg_model_config config = hg_model_config_default(model);
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	hg_model_input input = HG_MODEL_INPUT_INIT;
	memset(r, 0, sizeof *r);
	test_reseed(31);
	bench_open(&r->b, ctx, policy, HG_TRAIN);
	if (stays != LITTLE_STAYS)
		hg_tape_observe(r->b.tape, stays);
	r->b.tape->observing.spare = 0; /* in which all of these tapes would fit */
	input.graph = r->b.graph = ring(ctx, N);
	input.x = r->x = random_tensor(&r->b, policy.state, N, D, 1.0);
	const hg_tensor *labels = label_tensor(&r->b, N, CLASSES);
	config.in_features = D;
	config.out_features = CLASSES;
	config.hidden = 8;
	config.heads = 3;
	if (model)
		CHECK_OK(hg_model_create(r->b.params, &config, &r->model));
	const hg_var loss =
	    model ? hg_softmax_xent(r->b.tape, hg_model_record(r->model, r->b.tape, &input),
	                            hg_tape_input(r->b.tape, labels, "labels", -1.0), HG_NONE)
	          : gcn(&r->b, r->b.tape, r->x, labels, NULL);
	CHECK_MSG(hg_tape_compile(r->b.tape, loss) == HG_OK, "%s", hg_context_error(ctx));
	CHECK_OK(hg_optim_create(r->b.params, &adam, &r->optim));
}

static void rig_step(struct rig *r, int every, int per_launch)
{
	hg_step_config config = HG_STEP_CONFIG_INIT;
	config.observe_every = every;
	config.per_launch = per_launch;
	CHECK_OK(hg_step_create(r->b.tape, r->optim, &config, &r->step));
}

static void rig_close(struct rig *r)
{
	hg_step_free(r->step);
	hg_optim_free(r->optim);
	hg_tape_free(r->b.tape);
	r->b.tape = NULL;
	hg_model_free(r->model);
	bench_close(&r->b);
}

static hg_observer observer_of(const struct rig *r)
{
	hg_observer o = HG_OBSERVER_INIT;
	CHECK_OK(hg_step_observer(r->step, &o));
	return o;
}

static hg_observation observed(const struct rig *r, int64_t back, int64_t index)
{
	hg_observation o = HG_OBSERVATION_INIT;
	CHECK_MSG(hg_step_observed(r->step, back, index, &o) == HG_OK, "%s",
	          hg_context_error(r->b.ctx));
	return o;
}

/* ---- counts of tensors ---- */

/* What each node's result held, and the gradient of the result, counted by a hook when the node has
 * run. */
struct witness {
	hg_context *ctx;
	struct {
		uint64_t zeros, nonfinite, small;
		double amax;
		int seen;
	} of[LINES][2];
};

static void see(struct witness *w, int32_t line, int backward, const struct hg__mat *mat)
{
	const struct hg_tensor view = hg__tensor_view(w->ctx, *mat);
	float *x = download(&view);
	memset(&w->of[line][backward], 0, sizeof w->of[line][backward]);
	for (int64_t i = 0; i < mat->rows * mat->cols; i++) {
		const double size = fabs((double)x[i]);
		w->of[line][backward].zeros += size == 0.0;
		w->of[line][backward].small += size > 0.0 && size < 0x1p-14;
		w->of[line][backward].nonfinite += (uint64_t)!isfinite(size);
		w->of[line][backward].amax =
		    isfinite(size) && size > w->of[line][backward].amax ? size : w->of[line][backward].amax;
	}
	w->of[line][backward].seen = 1;
	free(x);
}

static hg_status witness_node(void *user, const hg_tape *tape, int32_t line, int backward,
                              const struct hg__call *call)
{
	CHECK(line < LINES);
	if (!backward && call->out.data)
		see(user, line, 0, &call->out);
	else if (backward && call->node->out != tape->plan.output)
		see(user, line, 1, &call->dout);
	return HG_OK;
}

static void check_tensor(const struct witness *w, const struct rig *r, int64_t index)
{
	const hg_observation o = observed(r, 0, index);
	uint64_t all = o.zeros;
	for (int b = 0; b < HG_OBSERVED_BINS; b++)
		all += o.bin[b];
	CHECK_EQ_I(all, o.rows * o.cols);
	CHECK_MSG(o.subnormals == o.bin[0] && o.first_row == -1 && o.first_col == -1 &&
	              o.loss_scale > 0.0,
	          "%s (%s): %lld not finite, row %lld, column %lld", o.name, o.op,
	          (long long)o.nonfinite, (long long)o.first_row, (long long)o.first_col);
	CHECK_MSG(o.amax <= o.bound, "%s: amax %g, bound %g", o.name, o.amax, o.bound);
	CHECK(o.amax == 0.0 ||
	      o.headroom == log2((o.dtype == HG_F16 ? 65520.0 : 0x1.ffffffp127) / o.amax));
	if (o.node < 0) {
		CHECK(o.backward && *o.op == 0 && hg_params_find(r->b.params, o.name));
		return;
	}
	CHECK_MSG(w->of[o.node][o.backward].seen, "%s", o.name);
	CHECK_MSG(w->of[o.node][o.backward].amax == o.amax, "%s%s: amax %g, expected %g",
	          o.backward ? "gradient of " : "", o.name, o.amax, w->of[o.node][o.backward].amax);
	CHECK_EQ_I(w->of[o.node][o.backward].zeros, o.zeros);
	CHECK_EQ_I(w->of[o.node][o.backward].small, o.subnormals);
	CHECK_EQ_I(w->of[o.node][o.backward].nonfinite, o.nonfinite);
}

/* The gradient of a parameter can be compared after the step, since its memory is not used
 * again. */
static void check_parameter(const struct rig *r, const hg_observation *o)
{
	float *grad = download(hg_param_grad(hg_params_find(r->b.params, o->name)));
	double most = 0.0;
	for (int64_t i = 0; i < o->rows * o->cols; i++)
		most = fmax(most, fabs((double)grad[i]));
	CHECK(most == o->amax);
	free(grad);
}

static const char *const models[] = {NULL,   "gcn", "gin",  "gat", "gatv2",
                                     "agnn", "gt",  "sage", "sgc", "appnp"};
enum { MODELS = sizeof models / sizeof *models };

/* Where all tensors stay until the end of a step, the observer inspects once. Otherwise it inspects
 * several times: fewer times where some tensors stay than where none does. The tensors and their
 * counts are the same in any case. */
static void observations_are_what_the_tensors_held(void)
{
	static const char *const told[ROOMS] = {", shared memory", ", all stays", ", little stays"};
	for (int m = 0; m < MODELS; m++) {
		int64_t tensors = 0, inspections = 0;
		for (int stays = 0; stays < ROOMS; stays++) {
			struct rig r;
			static struct witness w;
			memset(&w, 0, sizeof w);
			rig_open(&r, test_context(), models[m], hg_policy_fp16(), stays);
			rig_step(&r, 2, 0);
			w.ctx = r.b.ctx;
			const struct hg__hook hook = {witness_node, &w};
			hg__tape_hook(r.b.tape, &hook);
			CHECK_OK(hg_step_run(r.step, 5)); /* the last step is number 4 */
			const hg_observer o = observer_of(&r);
			int64_t values = 0, gradients = 0, parameters = 0, backs = 0, stored = 0;
			CHECK(o.every == 2 && o.steps == 3 && o.tensors > 0);
			CHECK(o.whole == (stays == ALL_STAYS) && (o.inspections == 1) == o.whole);
			CHECK(!stays || (o.tensors == tensors && o.inspections < inspections));
			tensors = o.tensors;
			inspections = stays ? inspections : o.inspections;
			for (int64_t i = 0; i < o.tensors; i++) {
				const hg_observation seen = observed(&r, 0, i);
				CHECK(seen.step == 4 && seen.swamping == -1.0 && seen.swamping_row == -1);
				check_tensor(&w, &r, i);
				values += !seen.backward;
				gradients += seen.backward && seen.node >= 0;
				parameters += seen.node < 0;
				if (seen.node < 0)
					check_parameter(&r, &seen);
			}
			for (int64_t k = 0; k < r.b.tape->recording.entries; k++) {
				const struct hg__planned_entry *planned = &r.b.tape->plan.entry[k];
				const int32_t out = r.b.tape->recording.entry[k].node.out;
				backs += planned->back;
				stored += planned->alive && r.b.tape->plan.value[out].span >= 0;
			}
			CHECK_EQ_I(values, stored);
			CHECK(gradients > 0 && gradients <= backs - 1); /* some results share a gradient */
			int64_t trained = 0;
			for (int64_t i = 0; i < hg_params_count(r.b.params); i++)
				trained += hg_param_grad(hg_params_at(r.b.params, i)) != NULL;
			CHECK_EQ_I(parameters, trained);
			test_note("%s%s: %lld tensors, %lld inspections, headroom %.1f bits in %s",
			          models[m] ? models[m] : "two layers", told[stays], (long long)o.tensors,
			          (long long)o.inspections, o.headroom, o.headroom_name);
			rig_close(&r);
		}
	}
}

/* ---- the observer changes no result ---- */

static uint64_t fingerprint(const struct rig *r, double loss)
{
	uint64_t hash = hg__double_bits(loss);
	for (int64_t p = 0; p < hg_params_count(r->b.params); p++) {
		const hg_tensor *master = hg_param_master(hg_params_at(r->b.params, p));
		float *x = download(master);
		for (int64_t i = 0; i < hg_tensor_rows(master) * hg_tensor_cols(master); i++)
			hash = (hash ^ hg__float_bits(x[i])) * 0x100000001B3ull;
		free(x);
	}
	return hash;
}

static void observer_changes_no_result(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	hg_policy policies[] = {hg_policy_fp16(), hg_policy_fp16_discretized(), hg_policy_fp16_naive(),
	                        hg_policy_fp32()};
	static const struct {
		int stays, every, per_launch;
	} ways[] = {{0, -1, 1}, {0, 1, 1}, {1, -1, 4},          {1, 1, 4},
	            {1, 0, 0},  {1, 3, 4}, {LITTLE_STAYS, 1, 4}};
	for (int m = 1; m < MODELS; m++)
		for (int p = 0; p < 4; p++) {
			uint64_t expected = 0;
			/* some steps are skipped */
			policies[p].loss_scale.init_scale = policies[p].loss_scale.max_scale = 0x1p22f;
			for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
				struct rig r;
				double loss = 0.0;
				rig_open(&r, open(), models[m], policies[p], ways[way].stays);
				rig_step(&r, ways[way].every, ways[way].per_launch);
				for (int i = 0; i < 4; i++)
					CHECK_OK(hg_step_run(r.step, 5));
				CHECK_OK(hg_step_read(r.step, 0, &loss, NULL));
				const uint64_t found = fingerprint(&r, loss);
				expected = way ? expected : found;
				CHECK_MSG(found == expected, "%s, %s, way %zu", models[m], policies[p].name, way);
				rig_close(&r);
			}
		}
}

/* ---- which steps ---- */

static void steps_are_remembered(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	struct rig r;
	rig_open(&r, open(), NULL, hg_policy_fp16(), 1);
	rig_step(&r, 3, 4);
	CHECK_EQ_I(observer_of(&r).steps, 0);
	hg_observation o = HG_OBSERVATION_INIT;
	CHECK_STATUS(hg_step_observed(r.step, 0, 0, &o), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.b.ctx), "less than the 0 observed steps");
	for (int64_t ran = 0; ran < 60; ran += 4) {
		CHECK_OK(hg_step_run(r.step, 4));
		const int64_t now = ran + 4, seen = (now + 2) / 3,
		              known = seen < HG_STEP_OBSERVED ? seen : HG_STEP_OBSERVED;
		CHECK_EQ_I(observer_of(&r).steps, known);
		for (int64_t back = 0; back < known; back++)
			CHECK_EQ_I(observed(&r, back, 1).step, 3 * (seen - 1 - back));
		CHECK_STATUS(hg_step_observed(r.step, known, 0, &o), HG_ERR_STATE);
	}
	CHECK_STATUS(hg_step_observed(r.step, -1, 0, &o), HG_ERR_STATE);
	CHECK_STATUS(hg_step_observed(r.step, 0, -1, &o), HG_ERR_RANGE);
	CHECK_STATUS(hg_step_observed(r.step, 0, observer_of(&r).tensors, &o), HG_ERR_RANGE);
	o.size = 0;
	CHECK_STATUS(hg_step_observed(r.step, 0, 0, &o), HG_ERR_ARG);
	CHECK_STATUS(hg_step_observed(r.step, 0, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_step_observed(NULL, 0, 0, &o), HG_ERR_ARG);
	CHECK_STATUS(hg_step_observer(r.step, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_step_observer(NULL, NULL), HG_ERR_ARG);
	rig_close(&r);
}

/* A run that is put back to an earlier step forgets the observations of the later ones. */
static void observations_of_undone_steps_are_forgotten(void)
{
	struct rig r;
	struct hg__step early;
	rig_open(&r, test_context(), NULL, hg_policy_fp16(), 1);
	rig_step(&r, 1, 0);
	CHECK_OK(hg_step_run(r.step, 3));
	CHECK_OK(r.b.ctx->backend->copy_out(r.b.ctx, &early, r.b.params->step, sizeof early));
	CHECK_OK(hg_step_run(r.step, 4));
	CHECK(observer_of(&r).steps == 7 && observed(&r, 0, 0).step == 6);
	CHECK_OK(r.b.ctx->backend->copy_in(r.b.ctx, r.b.params->step, &early, sizeof early));
	CHECK_OK(hg_step_run(r.step, 1));
	CHECK(observer_of(&r).steps == 4 && observed(&r, 0, 0).step == 3 &&
	      observed(&r, 1, 0).step == 2 && observed(&r, 3, 0).step == 0);
	rig_close(&r);
}

static void observer_can_be_switched_off(void)
{
	struct rig r;
	hg_observation o = HG_OBSERVATION_INIT;
	hg_plan_info info = HG_PLAN_INFO_INIT;
	rig_open(&r, test_context(), NULL, hg_policy_fp16(), 1);
	CHECK_OK(hg_tape_plan(r.b.tape, &info));
	CHECK_EQ_I(info.observer_bytes, 0);
	rig_step(&r, 0, 0);
	CHECK(observer_of(&r).every == 16);
	CHECK_OK(hg_tape_plan(r.b.tape, &info));
	CHECK(info.observer_bytes > 0 && info.observer_bytes < 65536);
	CHECK(info.total_bytes >= info.observer_bytes + info.arena_bytes);
	hg_step_free(r.step);
	rig_step(&r, -1, 0);
	CHECK_OK(hg_tape_plan(r.b.tape, &info));
	CHECK_EQ_I(info.observer_bytes, 0);
	CHECK_OK(hg_step_run(r.step, 20));
	const hg_observer off = observer_of(&r);
	CHECK(off.every == 0 && off.tensors == 0 && off.steps == 0 && off.inspections == 0 &&
	      off.headroom == INFINITY && !off.headroom_name);
	CHECK_STATUS(hg_step_observed(r.step, 0, 0, &o), HG_ERR_STATE);
	CHECK_CONTAINS(hg_context_error(r.b.ctx), "steps are not observed");
	rig_close(&r);
}

/* ---- the first element that is not finite ---- */

/* One feature of one node becomes NaN in step 5, which is not due to be observed. Where all tensors
 * stay until the end of the step, the observer observes it all the same. */
static void nonfinite_step_is_observed(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	for (int stays = 0; stays < 2; stays++) {
		struct rig r;
		rig_open(&r, open(), NULL, hg_policy_fp16(), stays);
		rig_step(&r, 16, 1);
		CHECK_OK(hg_step_run(r.step, 5));
		float *x = download(r.x);
		x[50 * D + 3] = NAN;
		CHECK_OK(hg_tensor_upload(r.x, x, HG_F32));
		free(x);
		CHECK_OK(hg_step_run(r.step, 1));
		CHECK_EQ_I(observer_of(&r).steps, 1 + stays);
		CHECK_EQ_I(observed(&r, 0, 0).step, stays ? 5 : 0);
		int64_t first = -1;
		const int64_t tensors = observer_of(&r).tensors;
		for (int64_t i = tensors - 1; i >= 0; i--)
			first = observed(&r, 0, i).nonfinite ? i : first;
		CHECK_EQ_I(first, stays ? 0 : -1);
		const hg_observation o = observed(&r, 0, 0);
		if (stays) {
			CHECK_STR(o.op, "linear");
			CHECK_STR(o.layer, "conv1");
			CHECK_STR(o.name, "conv1/linear");
			CHECK(o.first_row == 50 && o.first_col == 0 && o.nonfinite == 16 && o.headroom == 0.0);
			CHECK(observer_of(&r).headroom == 0.0);
			CHECK_STR(observer_of(&r).headroom_name, "conv1/linear");
		}
		rig_close(&r);
	}
}

/* ---- sums in halves ---- */

/* A hub with edges from 5,000 nodes of value 1. A naive sum in halves stops growing at 2048. */
static void swamped_sum_is_observed(void)
{
	enum { LEAVES = 5000 };
	static float ones[LEAVES + 1][2];
	hg_policy policies[] = {hg_policy_fp16_naive(), hg_policy_fp16_discretized(), hg_policy_fp16()};
	for (int p = 0; p < 3; p++)
		for (int stays = 0; stays < 2; stays++) {
			struct rig r;
			hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
			memset(&r, 0, sizeof r);
			struct coo edges = coo_empty(LEAVES + 1, LEAVES + 1);
			for (int32_t e = 0; e < LEAVES; e++)
				coo_add(&edges, 7, e);
			for (int32_t e = 0; e < 10; e++)
				coo_add(&edges, 100 + e, 7);
			for (int i = 0; i <= LEAVES; i++)
				ones[i][0] = ones[i][1] = 1.0f;
			bench_open(&r.b, test_context(), policies[p], HG_TRAIN);
			hg_tape_observe(r.b.tape, stays);
			r.b.graph = coo_graph(r.b.ctx, edges);
			const hg_var x = hg_tape_input(
			    r.b.tape, tensor_of(&r.b, HG_F16, LEAVES + 1, 2, ones, HG_F32), "x", 1.0);
			const hg_var w = hg_tape_param(r.b.tape, param(&r.b, "w", 2, 2));
			hg_tape_scope(r.b.tape, "conv1");
			const hg_var h = hg_spmm(r.b.tape, r.b.graph, x, HG_NONE, HG_NORM_NONE, 1.0f);
			hg_tape_scope(r.b.tape, "conv2");
			const hg_var y =
			    hg_spmm(r.b.tape, r.b.graph,
			            hg_linear(r.b.tape, hg_scale(r.b.tape, h, 0x1p-8f), w, HG_NONE), HG_NONE,
			            HG_NORM_BOTH, 1.0f);
			CHECK_OK(hg_tape_compile(r.b.tape, hg_mse(r.b.tape, y, x, HG_NONE)));
			CHECK_OK(hg_optim_create(r.b.params, &adam, &r.optim));
			rig_step(&r, 1, 0);
			CHECK_OK(hg_step_run(r.step, 1));
			int64_t sampled = 0, back = 0;
			for (int64_t i = 0; i < observer_of(&r).tensors; i++) {
				const hg_observation o = observed(&r, 0, i);
				CHECK((o.swamping < 0.0) == (o.swamping_row < 0));
				sampled += o.swamping >= 0.0;
				back += o.swamping >= 0.0 && o.backward;
				if (o.swamping >= 0.0 && !o.backward && strcmp(o.layer, "conv1") == 0) {
					CHECK_WITHIN(o.swamping, p == 0 ? 1 - 2048.0 / (double)LEAVES : 0.0,
					             p == 0 ? 0x1p-24 : 64 * 0x1p-11);
					CHECK(p != 0 || o.swamping_row == 7);
					test_note("%s: %.4f of the sum is lost in row %lld", policies[p].name,
					          o.swamping, (long long)o.swamping_row);
				}
			}
			/* Two sums forward, and backward the gradient of the second: nothing before the first
			 * one learns. */
			CHECK_EQ_I(sampled, p == 2 ? 0 : 3);
			CHECK_EQ_I(back, p == 2 ? 0 : 1);
			rig_close(&r);
		}
}

/* ---- memory ---- */

/* Tensors stay for the observer only if there is memory for it. A tape that fits without them is
 * not refused. */
static void tensors_stay_only_where_there_is_memory(void)
{
	size_t arena[2] = {0, 0}, other = 0;
	for (int stays = 0; stays < 2; stays++) {
		struct rig r;
		hg_plan_info plan = HG_PLAN_INFO_INIT;
		rig_open(&r, test_context(), NULL, hg_policy_fp16(), stays);
		CHECK_OK(hg_tape_plan(r.b.tape, &plan));
		arena[stays] = plan.arena_bytes;
		CHECK_EQ_I(r.b.tape->observing.stays, stays);
		/* including what libraries will allocate later */
		other = plan.total_bytes - plan.arena_bytes;
		rig_close(&r);
	}
	CHECK(arena[1] > arena[0] + 4096);
	hg_context *ctx = test_context();
	/* not enough for tensors that stay, but enough without them */
	ctx->memory_limit = other + arena[0] + 2048;
	struct rig r;
	rig_open(&r, ctx, NULL, hg_policy_fp16(), 1);
	CHECK(!r.b.tape->observing.stays && r.b.tape->plan.arena_bytes == arena[0]);
	ctx->memory_limit = 0;
	rig_close(&r);
}

static size_t arena_of(const char *model, hg_policy policy, int stays)
{
	struct rig r;
	rig_open(&r, test_context(), model, policy, stays);
	const size_t bytes = r.b.tape->plan.arena_bytes;
	rig_close(&r);
	return bytes;
}

/* Half precision saves memory, which the observer must not use up. By default it takes at most a
 * 20th of the arena. If all tensors stayed, the arena would be larger by much more: by a sixth for
 * gat, whose fused nodes have few results, and by three quarters for others. */
static void observer_takes_little_memory(void)
{
	const hg_policy policies[] = {hg_policy_fp16(), hg_policy_fp16_naive(), hg_policy_fp32()};
	for (int m = 0; m < MODELS; m++)
		for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
			const size_t none = arena_of(models[m], policies[p], NOTHING_STAYS);
			const size_t all = arena_of(models[m], policies[p], ALL_STAYS);
			const size_t by_default = arena_of(models[m], policies[p], LITTLE_STAYS);
			const char *model = models[m] ? models[m] : "two layers";
			test_note("%s, %s: arena %zu, with the observer %zu, where all stays %zu", model,
			          policies[p].name, none, by_default, all);
			CHECK(all > none + none / 8);
			CHECK_MSG(by_default <= none + none / 20, "%s, %s: %zu of %zu", model, policies[p].name,
			          by_default, none);
		}
}

/* By default a small tape keeps all tensors, as far as that takes no more than HG__ROOM_SPARE. */
static void small_tape_is_inspected_once(void)
{
	for (int spare = 0; spare < 2; spare++) {
		struct bench b;
		hg_optim *optim = NULL;
		hg_step *step = NULL;
		hg_observer o = HG_OBSERVER_INIT;
		hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
		bench_open(&b, test_context(), hg_policy_fp16(), HG_TRAIN);
		CHECK(b.tape->observing.spare == HG__ROOM_SPARE);
		b.tape->observing.spare *= (size_t)spare;
		b.graph = ring(b.ctx, N);
		CHECK_OK(hg_tape_compile(b.tape, gcn(&b, b.tape, random_tensor(&b, HG_F16, N, D, 1.0),
		                                     label_tensor(&b, N, CLASSES), NULL)));
		CHECK_OK(hg_optim_create(b.params, &adam, &optim));
		CHECK_OK(hg_step_create(b.tape, optim, NULL, &step));
		CHECK_OK(hg_step_observer(step, &o));
		CHECK(o.whole == spare && (o.inspections == 1) == spare);
		hg_step_free(step);
		hg_optim_free(optim);
		bench_close(&b);
	}
}

/* Makes, runs and reads a step with sums in halves, which uses everything that an observer has. */
static hg_status make_run_and_read(hg_context *ctx)
{
	struct rig r;
	hg_observation o = HG_OBSERVATION_INIT;
	hg_step_config config = HG_STEP_CONFIG_INIT;
	struct faulty *f = ctx->allocator.user;
	const int64_t fail_at = f->fail_at;
	f->fail_at = -1;
	hg__context_hold(ctx);
	rig_open(&r, ctx, NULL, hg_policy_fp16_discretized(), 0);
	config.observe_every = 1;
	f->calls = 0;
	f->fail_at = fail_at;
	hg_status status = hg_step_create(r.b.tape, r.optim, &config, &r.step);
	if (status >= 0)
		status = hg_step_run(r.step, 2);
	if (status >= 0)
		status = hg_step_observed(r.step, 1, 3, &o);
	const int64_t calls = f->calls;
	f->fail_at = -1;
	CHECK(status < 0 || (o.step == 0 && o.rows == N && r.step->watch->probes > 1));
	CHECK((r.step != NULL) == (status >= 0) && (r.b.tape->observing.bytes > 0) == (status >= 0));
	rig_close(&r);
	f->calls = calls;
	return status;
}

static void failed_allocations_are_reported(void)
{
	const int64_t count = faulty_sweep(make_run_and_read);
	CHECK(count > 8);
	test_note("%lld allocations", (long long)count);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(observations_are_what_the_tensors_held),
	    ON_BOTH(observer_changes_no_result),
	    ON_BOTH(steps_are_remembered),
	    TEST(observations_of_undone_steps_are_forgotten),
	    TEST(observer_can_be_switched_off),
	    ON_BOTH(nonfinite_step_is_observed),
	    TEST(swamped_sum_is_observed),
	    TEST(tensors_stay_only_where_there_is_memory),
	    TEST(observer_takes_little_memory),
	    TEST(small_tape_is_inspected_once),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
