/* A training step: queued call by call, or captured once and launched.
 *
 *     step = forward, backward, finite check, update, loss scale, record
 *
 * The device takes all decisions of a step (skip or apply, the next loss scale, the bias
 * correction), so every step queues the same calls. */
#include "nn/step.h"

#include "autograd/observe.h"
#include "autograd/tape.h"
#include "core/versioned.h"
#include "nn/optim/optim.h"

/* An estimate of the time of a step, used only to choose how many steps one launch holds:
 * operations that wait for one another, and memory traffic. A chain of small kernels takes 1 to 2
 * us a kernel. 2 TB/s is about half of what the memory of an H100 or H200 gives, and all of an
 * A100's. The backward pass moves about twice as much as the forward pass. If the estimate is wrong
 * by a factor of two, so is the length of a launch, but nothing else. */
#define OPERATION_US 1.5
#define BYTES_PER_US 2e6
#define TRAFFIC 3.0

/* A step whose traffic takes so many times as long as its operations wait for one another leaves
 * nothing of a GPU idle. On an H200 eight GCNs on the graph of Amazon Computers (a step takes 0.22
 * ms in 31 operations) are 1.7 times as fast together, and two on that of ogbn-products (24.7 ms in
 * 39) 0.93 times. Nothing between these was measured. */
#define FULL 16.0

/* A launch, the wait for it and reading the results cost the host about 20 us, which is 2 % of a
 * launch of one millisecond. A wait of a millisecond is too short for a user to notice, even after
 * Ctrl-C. The driver needs a few milliseconds, once, to prepare 32 steps of 60 operations. */
#define LAUNCH_US 1000.0
#define MOST_STEPS 32

_Static_assert(HG_STEP_REMEMBERED == HG__NOTES, "as many results are kept as can be read");

/* On one core an inspection takes 0.14 (GAT), 0.19 (GCN) and 0.38 (GIN) of a step on Cora's shape
 * with hidden 64 (measured in one run), so one in 16 steps costs 1 to 2.4 %. On a GPU reading all
 * tensors once is a smaller part of a step. step.h repeats these figures. */
#define OBSERVE_EVERY 16

/* ---- what is queued ---- */

static hg_status queue_run(hg_step *s)
{
	HG__TRY(hg_tape_forward(s->tape));
	return hg_tape_backward(s->tape);
}

hg_status hg__step_queue_calls(hg_step *s)
{
	s->tape->observing.watch = s->watch;
	const hg_status status = queue_run(s);
	s->tape->observing.watch = NULL;
	HG__TRY(status);
	HG__TRY(hg__optim_check_grads(s->optim));
	if (s->watch)
		HG__TRY(hg__watch_close(s->watch));
	HG__TRY(hg__optim_apply(s->optim, s->loss, s->kept, s->stops));
	return s->behind ? s->behind(s->behind_user) : HG_OK;
}

/* ---- capturing ---- */

struct several {
	hg_step *step;
	int64_t count;
};

static hg_status queue_several(void *user)
{
	const struct several *several = user;
	for (int64_t i = 0; i < several->count; i++)
		HG__TRY(hg__step_queue_calls(several->step));
	return HG_OK;
}

static void drop_captured(const hg_step *s, struct hg__captured_steps *c)
{
	hg__capture_drop(s->ctx, &c->capture);
	c->steps = 0;
}

/* A hook must be called after every node, which a captured step cannot do. */
static int capturable(const hg_step *s)
{
	return !s->refused && !s->config.eager && !s->tape->program.hook &&
	       s->ctx->backend->capture_begin;
}

/* A step that cannot be captured still runs call by call, so this function does not fail. */
static void try_capture(hg_step *s, int64_t steps, struct hg__captured_steps *c)
{
	struct several several = {s, steps};
	const hg_status status = hg__capture(s->ctx, queue_several, &several, &c->capture);
	s->tape->stage = HG__COMPILED; /* also if the capture failed */
	if (status >= 0) {
		c->steps = steps;
		hg__log(s->ctx, HG_LOG_INFO, "step: %lld captured, %lld operations", (long long)steps,
		        (long long)c->capture.operations);
		return;
	}
	hg__log(s->ctx, HG_LOG_WARN, "step: %lld could not be captured and will be queued %s: %s",
	        (long long)steps, steps == 1 ? "call by call" : "one by one", s->ctx->message);
	drop_captured(s, c);
	s->refused |= steps == 1;
	s->most = 1;
}

/* Drops captured work whose addresses are no longer valid. The workspace moves when a tape is
 * compiled, the groups of the optimiser when one is added. */
static void drop_stale(hg_step *s)
{
	const int moved = s->groups != s->optim->group_device;
	if (moved || !hg__captured(s->ctx, &s->one.capture))
		drop_captured(s, &s->one);
	if (moved || !hg__captured(s->ctx, &s->many.capture))
		drop_captured(s, &s->many);
	s->groups = s->optim->group_device;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t operations_of(const hg_step *s)
{
	const struct hg__program *program = &s->tape->program;
	return s->one.steps ? s->one.capture.operations : program->forwards + program->backwards;
}

double hg__step_microseconds(const hg_step *s)
{
	return OPERATION_US * (double)operations_of(s) + s->bytes / BYTES_PER_US;
}

int hg__step_fills_device(const hg_step *s)
{
	return s->bytes / BYTES_PER_US > FULL * OPERATION_US * (double)operations_of(s);
}

int64_t hg__steps_without_wait(double us)
{
	const int64_t steps = us * MOST_STEPS > LAUNCH_US ? (int64_t)(LAUNCH_US / us) : MOST_STEPS;
	return steps > 1 ? steps : 1;
}

/* How many steps may be queued without waiting for them. */
static int64_t without_wait(const hg_step *s)
{
	if (s->config.per_launch)
		return s->config.per_launch;
	return s->one.steps ? hg__steps_without_wait(hg__step_microseconds(s)) : 1;
}

/* The steps of a full launch. There are fewer if something else must be queued between them. */
static int64_t per_launch(const hg_step *s)
{
	return at_most(without_wait(s), s->most);
}

/* Captures what the next `count` steps will launch. */
static void prepare_launch(hg_step *s, int64_t count)
{
	if (!s->warm || !capturable(s))
		return;
	drop_stale(s);
	if (!s->one.steps)
		try_capture(s, 1, &s->one);
	const int64_t full = per_launch(s);
	if (s->one.steps && full > 1 && count >= full && s->many.steps != full) {
		drop_captured(s, &s->many);
		try_capture(s, full, &s->many);
	}
}

/* The largest captured piece that fits into `count` steps; NULL: queue call by call. */
static const struct hg__captured_steps *fitting(const hg_step *s, int64_t count)
{
	if (!s->one.steps || !capturable(s))
		return NULL;
	return s->many.steps && s->many.steps <= count ? &s->many : &s->one;
}

static hg_status launch_captured(hg_step *s, const struct hg__captured_steps *c)
{
	HG__TRY(s->ctx->backend->work_launch(s->ctx, c->capture.work));
	s->tape->stage = HG__COMPILED; /* as after a backward */
	return HG_OK;
}

void hg__step_limit(hg_step *s, int64_t most)
{
	s->most = at_most(most, HG_STEP_REMEMBERED);
}

int64_t hg__step_ready(hg_step *s, int64_t most)
{
	if (!s->warm && capturable(s))
		return 1;
	prepare_launch(s, 1);
	prepare_launch(s, at_most(per_launch(s), most));
	return at_most(without_wait(s), at_most(most, HG_STEP_REMEMBERED));
}

hg_status hg_step_run(hg_step *s, int64_t count)
{
	if (!s)
		return HG_ERR_ARG;
	if (count < 0)
		return hg__fail(s->ctx, HG_ERR_ARG, "step_run: count is %lld, expected at least 0",
		                (long long)count);
	HG__TRY(hg__step_begin_group(s, 0));
	return hg__step_queue(s, count);
}

hg_status hg__step_queue(hg_step *s, int64_t count)
{
	HG__TRY(hg__overflow_clear(s->tape->params));
	s->tape->params->may_stop |= s->stops != 0;
	while (count > 0 && !hg__step_stopped(s)) {
		prepare_launch(s, count);
		const struct hg__captured_steps *c = fitting(s, count);
		s->fresh = s->seen = 0;
		HG__TRY(c ? launch_captured(s, c) : hg__step_queue_calls(s));
		s->warm = 1;
		s->launched = c != NULL;
		count -= c ? c->steps : 1;
	}
	return HG_OK;
}

/* ---- steps of a group of models ---- */

void hg__step_move(hg_step *s, hg_context *ctx)
{
	s->ctx = ctx;
	s->tape->params->ctx = ctx;
	hg__tape_move(s->tape, ctx);
	if (s->behind)
		s->behind_move(s->behind_user, ctx);
}

void hg__step_note(hg_step *s, int captured)
{
	s->fresh = s->seen = 0;
	s->warm = 1;
	s->launched = captured;
	s->tape->stage = HG__COMPILED; /* as after a backward */
}

/* ---- reading ---- */

static hg_status fetch_notes(hg_step *s)
{
	if (s->fresh)
		return HG_OK;
	HG__TRY(s->ctx->backend->copy_out(s->ctx, s->read, s->kept, sizeof *s->read));
	s->fresh = 1;
	return HG_OK;
}

hg_status hg_step_read(hg_step *s, int64_t back, double *loss, hg_step_info *info)
{
	if (!s)
		return HG_ERR_ARG;
	HG__TRY(fetch_notes(s));
	const int64_t known = at_most(s->read->taken, HG__NOTES);
	if (back < 0 || back >= known)
		return hg__fail(s->ctx, HG_ERR_STATE,
		                "step_read: back is %lld, expected 0 or more and less than the %lld steps "
		                "that are remembered",
		                (long long)back, (long long)known);
	const struct hg__step_note *note = &s->read->note[(s->read->taken - 1 - back) % HG__NOTES];
	if (loss)
		*loss = (double)note->loss;
	return info ? hg__optim_report(s->optim, note, "step_read", info) : HG_OK;
}

hg_status hg_step_get_launch(const hg_step *s, hg_step_launch *launch_out)
{
	if (!s)
		return HG_ERR_ARG;
	if (!launch_out)
		return hg__fail(s->ctx, HG_ERR_ARG, "step_get_launch: launch is NULL");
	const hg_step_launch ours = {sizeof ours, s->launched,
	                             s->one.steps || s->config.per_launch ? (int)per_launch(s) : 0,
	                             s->one.capture.operations};
	return hg__struct_write(launch_out, &ours, sizeof ours)
	           ? HG_OK
	           : hg__fail(
	                 s->ctx, HG_ERR_ARG,
	                 "step_get_launch: launch->size is not set: start from HG_STEP_LAUNCH_INIT");
}

/* ---- groups ---- */

/* Lets later steps run again. */
static hg_status stop_clear(hg_step *s)
{
	hg_params *params = s->tape->params;
	if (!params->may_stop)
		return HG_OK;
	params->may_stop = 0;
	return s->ctx->backend->fill(s->ctx, &params->step->stop, 0, sizeof params->step->stop);
}

void hg__step_behind(hg_step *s, hg__queue_fn behind, hg__move_fn move, void *user)
{
	if (s->behind != behind || s->behind_user != user) { /* captured work contains the old calls */
		drop_captured(s, &s->one);
		drop_captured(s, &s->many);
	}
	s->behind = behind;
	s->behind_move = move;
	s->behind_user = user;
}

void hg__step_join_group(hg_step *s, unsigned stops)
{
	if (s->stops != stops) { /* captured work contains the old set */
		drop_captured(s, &s->one);
		drop_captured(s, &s->many);
	}
	s->stops = stops;
}

hg_status hg__step_begin_group(hg_step *s, unsigned stops)
{
	hg__step_join_group(s, stops);
	HG__TRY(hg__optim_ready(s->optim));
	return stop_clear(s);
}

hg_status hg__step_end_group(hg_step *s)
{
	return stop_clear(s);
}

hg_status hg__step_taken(hg_step *s, int64_t *taken)
{
	HG__TRY(fetch_notes(s));
	*taken = s->read->taken;
	return HG_OK;
}

int hg__step_stopped(const hg_step *s)
{
	const struct hg__backend *backend = s->ctx->backend;
	return backend->kind == HG_DEVICE_CPU && !backend->capture_begin && s->tape->params->step->stop;
}

/* ---- creating ---- */

static hg_status check_arguments(const hg_tape *tape, const hg_optim *optim,
                                 const hg_step_config *config)
{
	hg_context *ctx = tape->ctx;
	if (optim->params != tape->params)
		return hg__fail(ctx, HG_ERR_ARG,
		                "step: the optimiser belongs to other parameters than the tape");
	if (config->per_launch < 0 || config->per_launch > HG_STEP_REMEMBERED)
		return hg__fail(ctx, HG_ERR_ARG, "step: per_launch is %d, expected 0 to %d",
		                config->per_launch, HG_STEP_REMEMBERED);
	HG__TRY(hg__tape_mistake(tape));
	if (tape->stage == HG__RECORDING)
		return hg__fail(ctx, HG_ERR_STATE, "step: the tape is not compiled");
	if (!tape->plan.trains)
		return hg__fail(
		    ctx, HG_ERR_STATE,
		    "step: the tape has no loss: it is an EVAL tape, or its output is not f32 [1, 1]");
	return HG_OK;
}

static double traffic(const hg_tape *tape)
{
	double bytes = 0.0;
	for (int64_t i = 0; i < tape->program.forwards; i++) {
		struct hg__cost cost = {0.0, 0.0};
		tape->program.forward[i].call.node->op->cost(&tape->program.forward[i].call, &cost);
		bytes += TRAFFIC * cost.bytes;
	}
	return bytes;
}

static hg_status build_step(hg_step *s)
{
	void *memory = NULL;
	s->loss = s->tape->program.view[s->tape->plan.output].value.mat.data;
	s->bytes = traffic(s->tape);
	hg__step_limit(s, HG_STEP_REMEMBERED);
	HG__TRY(hg__host_alloc(s->ctx, 1, sizeof *s->read, "step: results", &memory));
	s->read = memory;
	HG__TRY(hg__device_alloc(s->ctx, sizeof *s->kept, "step: results", &memory));
	s->kept = memory;
	HG__TRY(s->ctx->backend->fill(s->ctx, s->kept, 0, sizeof *s->kept));
	return s->config.observe_every < 0
	           ? HG_OK
	           : hg__watch_create(s->tape,
	                              s->config.observe_every ? s->config.observe_every : OBSERVE_EVERY,
	                              &s->watch);
}

hg_status hg_step_create(hg_tape *tape, hg_optim *optim, const hg_step_config *config,
                         hg_step **out)
{
	if (out)
		*out = NULL;
	if (!tape)
		return HG_ERR_ARG;
	hg_context *ctx = tape->ctx;
	hg_step_config ours = HG_STEP_CONFIG_INIT;
	if (!optim || !out)
		return hg__fail(ctx, HG_ERR_ARG, "step: %s is NULL", optim ? "step" : "optim");
	if (config && !hg__struct_read(&ours, sizeof ours, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "step: config.size is not set (start from HG_STEP_CONFIG_INIT), or a field "
		                "unknown to this version is used");
	HG__TRY(check_arguments(tape, optim, &ours));
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_step), "step", &memory));
	hg_step *step = memory;
	step->ctx = ctx;
	step->tape = tape;
	step->optim = optim;
	step->config = ours;
	const hg_status status = build_step(step);
	if (status < 0) {
		hg_step_free(step);
		return status;
	}
	*out = step;
	return HG_OK;
}

void hg_step_free(hg_step *step)
{
	if (!step)
		return;
	hg_context *ctx = step->ctx;
	drop_captured(step, &step->one);
	drop_captured(step, &step->many);
	hg__watch_free(step->watch);
	hg__device_free(ctx, step->kept, sizeof *step->kept);
	hg__host_free(ctx, step->read, sizeof *step->read);
	hg__host_free(ctx, step, sizeof *step);
}
