/* Runs a tape line by line and times every line. The passes are those of run.c, which calls lap()
 * where a line begins or ends; so a profile computes what a step computes, with the same bits. */
#include "autograd/profile.h"

#include <string.h>

#include "core/text.h"
#include "core/versioned.h"

/* A run of which the times are taken. Mark k is queued at lap k (program.h). */
struct timing {
	hg_tape *tape;
	struct hg_profile *profile;
	hg_profile_config config;
	struct hg__profile_copy copy;
	void *marks;
	int64_t laps;          /* all marks of a run */
	double *at, *best;     /* [laps] seconds of the run, and of the fastest run so far */
	int in_layer, in_line; /* open ranges of the device's profiler */
};

#define RUNS_MOST 1000

/* A host queues a line of a tape, which is about three kernels, in less than this; so a device that
 * is busy for this long per line never waits for the host. */
#define LEAD_SECONDS 30e-6

/* ---- ranges of the device's profiler ---- */

static void end_ranges(struct timing *t, int layer_too)
{
	const struct hg__backend *backend = t->tape->ctx->backend;
	if (t->in_line)
		backend->range_end();
	t->in_line = 0;
	if (t->in_layer && layer_too) {
		backend->range_end();
		t->in_layer = 0;
	}
}

static int is_same_layer(const struct hg_profile *p, int64_t a, int64_t b)
{
	return strcmp(p->line[a].layer, p->line[b].layer) == 0;
}

static void begin_ranges(struct timing *t, int64_t index, int first)
{
	const struct hg__backend *backend = t->tape->ctx->backend;
	const struct hg__profile_line *line = &t->profile->line[index];
	char name[HG_NARROWING_NAME + 16];
	end_ranges(t, first || !is_same_layer(t->profile, index - 1, index));
	if (!t->in_layer && *line->layer) {
		backend->range_begin(line->layer);
		t->in_layer = 1;
	}
	(void)hg__print(name, sizeof name, "%s %s", line->name,
	                hg_profile_phase_name(line->line.phase));
	backend->range_begin(name);
	t->in_line = 1;
}

/* ---- a run ---- */

/* Laps 0 to F are of the forward pass, the others of the backward pass. The last lap of a pass
 * begins no line. */
static hg_status lap(void *user, int64_t k)
{
	struct timing *t = user;
	hg_context *ctx = t->tape->ctx;
	const int64_t f = t->profile->info.forward_lines;
	if (ctx->backend->range_begin) {
		if (k == f || k == t->laps - 1)
			end_ranges(t, 1);
		else
			begin_ranges(t, k > f ? k - 1 : k, k == 0 || k == f + 1);
	}
	return ctx->backend->mark(ctx, t->marks, k);
}

static hg_status run_passes(struct timing *t)
{
	HG__TRY(hg_tape_forward(t->tape));
	return t->profile->info.forward_lines < t->profile->info.lines ? hg_tape_backward(t->tape)
	                                                               : HG_OK;
}

static double run_seconds(const struct timing *t, const double *at)
{
	const int64_t f = t->profile->info.forward_lines;
	return at[f] + (t->laps > f + 1 ? at[t->laps - 1] - at[f + 1] : 0.0);
}

static hg_status run_once(struct timing *t, int first)
{
	hg_context *ctx = t->tape->ctx;
	const struct hg__laps laps = {lap, t};
	if (t->copy.memory.data)
		HG__TRY(hg__profile_copy_queue(ctx, &t->copy, LEAD_SECONDS * (double)t->laps,
		                               t->profile->info.bandwidth));
	t->tape->program.laps = &laps;
	const hg_status status = run_passes(t);
	t->tape->program.laps = NULL;
	end_ranges(t, 1);
	HG__TRY(status);
	HG__TRY(ctx->backend->marks_read(ctx, t->marks, t->laps, t->at));
	if (first || run_seconds(t, t->at) < run_seconds(t, t->best)) {
		double *best = t->at;
		t->at = t->best;
		t->best = best;
	}
	return HG_OK;
}

/* ---- the lines ---- */

static void describe(const hg_tape *tape, const struct hg__task *task, int backward,
                     struct hg__profile_line *made)
{
	const struct hg__entry *entry = &tape->recording.entry[task->entry];
	const struct hg__value *out = &tape->recording.value[entry->node.out];
	hg_profile_line *line = &made->line;
	line->size = sizeof *line;
	line->phase = !backward         ? HG_PHASE_FORWARD
	              : task->recompute ? HG_PHASE_AGAIN
	                                : HG_PHASE_BACKWARD;
	line->node = task->entry;
	line->rows = out->rows;
	line->cols = out->cols;
	line->dtype = out->dtype;
	(void)hg__value_name(tape, out, made->name, sizeof made->name);
	if (task->region)
		(void)hg__print(made->op, sizeof made->op, "region of %d layers",
		                task->region->forward.layers);
	else
		(void)hg__print(made->op, sizeof made->op, "%s", hg__entry_title(entry));
	(void)hg__print(made->layer, sizeof made->layer, "%s", entry->node.scope);
	line->name = made->name;
	line->op = made->op;
	line->layer = made->layer;
	hg__profile_bytes(tape, task, line->phase == HG_PHASE_BACKWARD, line);
}

static hg_status make_lines(const hg_tape *tape, int trains, struct hg_profile *p)
{
	const struct hg__program *program = &tape->program;
	void *memory = NULL;
	const int64_t lines = program->forwards + (trains ? program->backwards : 0);
	HG__TRY(hg__host_alloc(p->ctx, (size_t)lines, sizeof *p->line, "profile", &memory));
	p->line = memory;
	p->info.lines = lines;
	p->info.forward_lines = program->forwards;
	for (int64_t i = 0; i < lines; i++) {
		const int backward = i >= program->forwards;
		describe(tape, backward ? &program->backward[i - program->forwards] : &program->forward[i],
		         backward, &p->line[i]);
	}
	return HG_OK;
}

/* The times of the fastest run. */
static void set_times(const struct timing *t)
{
	struct hg_profile *p = t->profile;
	for (int64_t i = 0; i < p->info.lines; i++) {
		hg_profile_line *line = &p->line[i].line;
		const int64_t k = i < p->info.forward_lines ? i : i + 1;
		const double seconds = t->best[k + 1] - t->best[k];
		line->begin_us = 1e6 * t->best[k];
		line->us = 1e6 * seconds;
		line->roofline =
		    seconds > 0.0 ? (line->bytes_read + line->bytes_written) / seconds / p->info.bandwidth
		                  : 0.0;
		*(i < p->info.forward_lines ? &p->info.forward_us : &p->info.backward_us) += line->us;
	}
}

/* ---- the whole ---- */

/* A device that runs what a host queues needs the copies also to be busy while the host queues. */
static hg_status find_bandwidth(struct timing *t)
{
	hg_context *ctx = t->tape->ctx;
	double measured = 0.0;
	const int given = t->config.bandwidth > 0.0;
	t->profile->info.bandwidth = t->config.bandwidth;
	t->profile->info.measured = !given;
	if (given && !ctx->backend->capture_begin)
		return HG_OK;
	HG__TRY(hg__profile_copy_open(ctx, &t->copy, &measured));
	if (!given)
		t->profile->info.bandwidth = measured;
	if (!ctx->backend->capture_begin)
		hg__buffer_free(ctx, &t->copy.memory);
	return HG_OK;
}

static hg_status take_times(struct timing *t)
{
	hg_context *ctx = t->tape->ctx;
	struct hg_profile *p = t->profile;
	void *memory = NULL;
	HG__TRY(find_bandwidth(t));
	t->laps = p->info.lines + (p->info.lines > p->info.forward_lines ? 2 : 1);
	HG__TRY(hg__host_alloc(ctx, (size_t)t->laps, sizeof(double), "profile: times", &memory));
	t->at = memory;
	HG__TRY(hg__host_alloc(ctx, (size_t)t->laps, sizeof(double), "profile: times", &memory));
	t->best = memory;
	HG__TRY(ctx->backend->marks_make(ctx, t->laps, &t->marks));
	for (int run = 0; run < p->info.runs; run++)
		HG__TRY(run_once(t, run == 0));
	set_times(t);
	return HG_OK;
}

static void free_timing(struct timing *t)
{
	hg_context *ctx = t->tape->ctx;
	if (t->marks)
		ctx->backend->marks_free(ctx, t->marks, t->laps);
	hg__host_free(ctx, t->at, (size_t)t->laps * sizeof(double));
	hg__host_free(ctx, t->best, (size_t)t->laps * sizeof(double));
	hg__buffer_free(ctx, &t->copy.memory);
}

static hg_status check_config(const hg_tape *tape, const hg_profile_config *config,
                              hg_profile_config *ours)
{
	hg_context *ctx = tape->ctx;
	if (config && !hg__struct_read(ours, sizeof *ours, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "profile: config.size is not set (start from HG_PROFILE_CONFIG_INIT), or a "
		                "field unknown to this version is used");
	if (ours->runs < 0 || ours->runs > RUNS_MOST)
		return hg__fail(ctx, HG_ERR_ARG, "profile: runs is %d, expected 0 to %d", ours->runs,
		                RUNS_MOST);
	if (!(ours->bandwidth >= 0.0 && ours->bandwidth <= 1e30))
		return hg__fail(ctx, HG_ERR_ARG,
		                "profile: bandwidth is %g bytes per second, expected 0 or more",
		                ours->bandwidth);
	HG__TRY(hg__tape_mistake(tape));
	return tape->stage == HG__RECORDING
	           ? hg__fail(ctx, HG_ERR_STATE, "profile: the tape is not compiled")
	           : HG_OK;
}

hg_status hg_tape_profile(hg_tape *tape, const hg_profile_config *config, hg_profile **out)
{
	hg_profile_config ours = HG_PROFILE_CONFIG_INIT;
	void *memory = NULL;
	if (out)
		*out = NULL;
	if (!tape)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(tape->ctx, HG_ERR_ARG, "profile: profile is NULL");
	HG__TRY(check_config(tape, config, &ours));
	HG__TRY(hg__host_alloc(tape->ctx, 1, sizeof(hg_profile), "profile", &memory));
	struct timing t = {.tape = tape, .profile = memory, .config = ours};
	t.profile->ctx = tape->ctx;
	t.profile->info.runs = ours.runs ? ours.runs : 1;
	hg_status status = make_lines(
	    tape, tape->plan.trains && tape->mode == HG_TRAIN && !ours.forward_only, t.profile);
	if (status >= 0)
		status = take_times(&t);
	free_timing(&t);
	if (status < 0) {
		hg_profile_free(t.profile);
		return status;
	}
	*out = t.profile;
	return HG_OK;
}
