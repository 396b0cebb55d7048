/* Plants every fault of faults.def and examines the step. The first finding must be that fault: its
 * cause, op, layer and element, and for sums the hub's terms. Each fault is planted again on a
 * context with separate ops, and once more in a step that is examined only after it was skipped. If
 * a loss scale or another way of summing cures a fault, the doctor's own remedies are applied and
 * must cure it. Then the same set-ups without their faults and those of healthy.def must give no
 * finding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "faults/compare.h"
#include "faults/fault.h"
#include "harness.h"

enum { FORWARD = 0, BACKWARD = 1 };
static const struct fault faults[] = {
#define FAULT(id, cause, model, layer, op, direction, plant, what) \
	{#id, HG_CAUSE_##cause, model, layer, op, op, direction, plant, what},
#define ATTENTION_FAULT(id, cause, layer, op, separate, direction, plant, what) \
	{#id, HG_CAUSE_##cause, "gat", layer, op, separate, direction, plant, what},
#include "faults/faults.def"
#undef ATTENTION_FAULT
#undef FAULT
};
static const struct healthy healthy[] = {
#define HEALTHY(id, plant, what) {#id, plant, what},
#include "faults/healthy.def"
#undef HEALTHY
};
enum {
	FAULTS = (int)(sizeof faults / sizeof faults[0]),
	HEALTHY_SETUPS = (int)(sizeof healthy / sizeof healthy[0])
};

/* How a set-up is examined. */
enum how {
	PLANTED,      /* before the step */
	SEPARATE_OPS, /* the same on a context with separate ops */
	SKIPPED,      /* after the step, which was skipped */
	CURED,        /* before the step, with the doctor's remedies */
	WITHOUT,      /* before the step, without the fault */
	HEALTHY,      /* a set-up of healthy.def */
	HOWS
};
static const char *const case_suffix[HOWS] = {"",       ".separate_ops", ".skipped",
                                              ".cured", ".without",      ".healthy"};

struct item {
	const struct fault *fault; /* NULL: a set-up of healthy.def */
	const struct healthy *healthy;
	enum how how;
	char name[64];
};

static struct {
	int examined[HOWS], right[HOWS];
	int applied; /* steps that should have been skipped */
} tally;

/* ---- what an examination must not change ---- */

struct state {
	float *master, *working;
	int64_t count;
	hg_step_info info;
};

static float *append(float *to, const hg_tensor *tensor)
{
	CHECK_OK(hg_tensor_download(tensor, to, HG_F32));
	return to + hg_tensor_rows(tensor) * hg_tensor_cols(tensor);
}

static void state_copy(struct setup *s, struct state *state)
{
	const hg_step_info info = HG_STEP_INFO_INIT;
	state->count = 0;
	state->info = info;
	for (int64_t i = 0; i < hg_params_count(s->params); i++) {
		const hg_tensor *master = hg_param_master(hg_params_at(s->params, i));
		state->count += hg_tensor_rows(master) * hg_tensor_cols(master);
	}
	float *master = state->master = malloc((size_t)state->count * sizeof *master),
	      *working = state->working = malloc((size_t)state->count * sizeof *working);
	CHECK(master && working);
	for (int64_t i = 0; i < hg_params_count(s->params); i++) {
		master = append(master, hg_param_master(hg_params_at(s->params, i)));
		working = append(working, hg_param_working(hg_params_at(s->params, i)));
	}
	if (s->optim)
		CHECK_OK(hg_optim_info(s->optim, &state->info));
}

static void state_free(struct state *state)
{
	free(state->master);
	free(state->working);
}

/* Compares the set-up with its state before the examination, and frees that state. */
static void check_unchanged(struct setup *s, struct state *before)
{
	struct state now;
	state_copy(s, &now);
	const size_t bytes = (size_t)now.count * sizeof(float);
	const int same =
	    now.count == before->count && memcmp(now.master, before->master, bytes) == 0 &&
	    memcmp(now.working, before->working, bytes) == 0 && now.info.steps == before->info.steps &&
	    now.info.skipped == before->info.skipped && now.info.loss_scale == before->info.loss_scale;
	state_free(&now);
	state_free(before);
	CHECK_MSG(same, "the doctor changed a weight or the optimiser's state");
}

/* ---- set-ups ---- */

static int has_fault(const struct item *item)
{
	return item->how < WITHOUT;
}

/* The fault as this item's context names it. */
static struct fault named(const struct item *item)
{
	struct fault fault = *item->fault;
	if (item->how == SEPARATE_OPS)
		fault.op = fault.separate_op;
	return fault;
}

static hg_context *create_context(const struct item *item)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.separate_ops = 1;
	return item->how == SEPARATE_OPS ? test_context_with(config) : test_context();
}

static hg_doctor *create_doctor(struct setup *s)
{
	hg_doctor *doctor = NULL;
	if (s->train)
		CHECK_OK(hg_doctor_create_train(s->train, NULL, &doctor));
	else {
		CHECK_OK(hg_optim_create(s->params, &s->rates, &s->optim));
		CHECK_OK(hg_doctor_create(s->params, s->optim, s->record, s, NULL, &doctor));
	}
	return doctor;
}

static hg_doctor *begin(struct setup *s, const struct item *item)
{
	if (item->fault)
		item->fault->plant(s, item->fault);
	else
		item->healthy->plant(s);
	return create_doctor(s);
}

static void end(struct setup *s, hg_doctor *doctor)
{
	hg_doctor_free(doctor);
	hg_context *ctx = s->ctx;
	setup_close(s);
	hg_context_free(ctx);
}

static void write_later(const struct setup *s)
{
	if (s->later.tensor)
		setup_write(s->later.tensor, s->later.row, s->later.col, s->later.value);
}

/* Runs `good` training steps, then does the write that the planter asked for, and runs `bad` steps
 * more. Returns whether the last step was skipped. */
static int train(struct setup *s, int good, int bad)
{
	hg_tape *tape = NULL;
	hg_step_info info = HG_STEP_INFO_INIT;
	CHECK_OK(hg_tape_create(s->params, HG_TRAIN, &tape));
	CHECK_OK(hg_tape_compile(tape, s->record(s, tape)));
	for (int i = 0; i < good + bad; i++) {
		if (i == good)
			write_later(s);
		CHECK_OK(hg_tape_forward(tape));
		CHECK_OK(hg_tape_backward(tape));
		CHECK_OK(hg_optim_step(s->optim));
	}
	CHECK_OK(hg_optim_info(s->optim, &info));
	hg_tape_free(tape);
	return !info.applied;
}

/* ---- examinations ---- */

static void print_result(const struct item *item, int right, const hg_doctor_report *report)
{
	static const char *const word[2][2] = {{"FALSE", "healthy"}, {"MISSED", "named"}};
	const char *cause = item->fault ? hg_cause_name(item->fault->cause) : "none";
	printf("%-8s %-34s %-12s %s\n", word[has_fault(item)][right], item->name, cause,
	       report->findings ? report->finding->sentence : "no finding");
}

static void examine(struct setup *s, const struct item *item, hg_doctor *doctor)
{
	const hg_doctor_report *report = NULL;
	struct mismatch mismatch = {0, "nothing was planted"};
	struct state before;
	state_copy(s, &before);
	const struct fault fault = item->fault ? named(item) : (struct fault){0};
	CHECK_OK(hg_doctor_examine(doctor, item->how == SKIPPED, &report));
	const hg_loss_scale_config *scale = &s->policy.loss_scale;
	s->expected.scale = scale->enabled ? (double)scale->init_scale : 1.0;
	if (has_fault(item))
		mismatch = compare(report, &fault, &s->expected);
	const int right = has_fault(item) ? mismatch.count == 0 : report->findings == 0;
	tally.examined[item->how]++;
	tally.right[item->how] += right;
	print_result(item, right, report);
	CHECK_MSG(right, "%s: %s", mismatch.text,
	          report->findings ? report->finding->sentence : "no finding");
	check_unchanged(s, &before);
	if (has_fault(item))
		check_compare(report, &fault, &s->expected);
}

enum { EXAMINE_EVERY = 20, GOOD_STEPS = 5 };

/* Trains until the step with the fault, and examines that step if it was skipped. A write that the
 * planter asked for comes after some good steps. */
static void examine_after_step(struct setup *s, const struct item *item, hg_doctor *doctor)
{
	s->expected.step = s->later.tensor ? GOOD_STEPS : 0;
	if (!s->train && train(s, (int)s->expected.step, 1))
		examine(s, item, doctor);
	else
		tally.applied++;
}

/* Examines the next step, and during training of s->steps steps every EXAMINE_EVERY-th one. */
static void examine_before_step(struct setup *s, const struct item *item, hg_doctor *doctor)
{
	write_later(s);
	examine(s, item, doctor);
	for (int i = 0; i < s->steps; i += EXAMINE_EVERY) {
		(void)train(s, EXAMINE_EVERY, 0);
		examine(s, item, doctor);
	}
}

static void run(const void *data)
{
	const struct item *item = data;
	struct setup s;
	setup_open(&s, create_context(item), has_fault(item));
	hg_doctor *doctor = begin(&s, item);
	(item->how == SKIPPED ? examine_after_step : examine_before_step)(&s, item, doctor);
	end(&s, doctor);
}

/* ---- the doctor's remedies ---- */

/* Reads the finding's first remedy that is a loss scale or a policy. Returns whether there is
 * one. */
static int read_remedy(const hg_finding *finding, struct setup *next)
{
	for (int i = 0; i < finding->remedies; i++) {
		const char *call = finding->remedy[i].call;
		if (sscanf(call, "policy.loss_scale.init_scale = %f", &next->remedy.scale) == 1 ||
		    sscanf(call, "config.policy.loss_scale.init_scale = %f", &next->remedy.scale) == 1)
			return 1;
		if (sscanf(call, "policy = hg_policy_%31[^(]", next->remedy.precision) != 1 &&
		    sscanf(call, "config.policy = hg_policy_%31[^(]", next->remedy.precision) != 1)
			continue;
		for (char *c = next->remedy.precision; *c; c++)
			*c = *c == '_' ? '-' : *c;
		return 1;
	}
	return 0;
}

/* Applying a remedy may uncover another fault of the same kind, which needs its own remedy. */
enum { REMEDIES = 5 };

static void run_with_remedies(const void *data)
{
	const struct item *item = data;
	struct setup next = {.planted = 1};
	int findings = 1;
	tally.examined[CURED]++;
	for (int i = 0; i <= REMEDIES && findings; i++) {
		const hg_doctor_report *report = NULL;
		struct setup s;
		setup_open(&s, test_context(), 1);
		s.remedy = next.remedy;
		hg_doctor *doctor = begin(&s, item);
		CHECK_OK(hg_doctor_examine(doctor, 0, &report));
		findings = report->findings;
		CHECK_MSG(!findings || read_remedy(report->finding, &next), "no remedy to apply: %s",
		          report->finding->sentence);
		CHECK_MSG(!findings || i < REMEDIES, "after %d remedies: %s", REMEDIES,
		          report->finding->sentence);
		end(&s, doctor);
	}
	tally.right[CURED]++;
	printf("%-8s %-34s %-12s %s %g\n", "cured", item->name, hg_cause_name(item->fault->cause),
	       next.remedy.precision, (double)next.remedy.scale);
}

/* Whether a loss scale or another way of summing cures the fault. */
static int can_be_cured(const struct fault *f)
{
	return f->cause == HG_CAUSE_LOSS_SCALE || f->cause == HG_CAUSE_ACCUMULATION ||
	       f->cause == HG_CAUSE_SWAMPING || (f->cause == HG_CAUSE_UNDERFLOW && f->backward);
}

/* Whether the step can be skipped because of the fault: these causes leave all gradients finite. */
static int stops_step(const struct fault *f)
{
	return f->cause != HG_CAUSE_UNDERFLOW && f->cause != HG_CAUSE_SWAMPING &&
	       f->cause != HG_CAUSE_OPTIMISER;
}

/* ---- the cases ---- */

enum { CASES = (HOWS - 1) * FAULTS + HEALTHY_SETUPS };
static struct item items[CASES];
static struct test_case cases[CASES];

static int has_case(const struct fault *f, enum how how)
{
	return (f->op || how == SEPARATE_OPS || how == WITHOUT) && (how != SKIPPED || stops_step(f)) &&
	       (how != CURED || can_be_cured(f));
}

static void add(int *count, struct item item, const char *id)
{
	struct item *kept = &items[*count];
	*kept = item;
	(void)snprintf(kept->name, sizeof kept->name, "%s%s", id, case_suffix[item.how]);
	cases[(*count)++] = (struct test_case){
	    .name = kept->name, .run_item = item.how == CURED ? run_with_remedies : run, .item = kept};
}

static void print_tally(void)
{
	const int *examined = tally.examined, *right = tally.right;
	printf("faults: %d planted, %d named; %d with separate ops, %d named; %d examined after the "
	       "step, %d named, %d steps were not skipped\n",
	       examined[PLANTED], right[PLANTED], examined[SEPARATE_OPS], right[SEPARATE_OPS],
	       examined[SKIPPED], right[SKIPPED], tally.applied);
	printf("cured: %d of %d by the doctor's own remedies\n", right[CURED], examined[CURED]);
	printf("healthy: %d examined, %d without a finding\n", examined[WITHOUT] + examined[HEALTHY],
	       right[WITHOUT] + right[HEALTHY]);
}

int main(int argc, char **argv)
{
	int count = 0;
	for (enum how how = PLANTED; how <= WITHOUT; how++)
		for (int i = 0; i < FAULTS; i++)
			if (has_case(&faults[i], how))
				add(&count, (struct item){.fault = &faults[i], .how = how}, faults[i].id);
	for (int i = 0; i < HEALTHY_SETUPS; i++)
		add(&count, (struct item){.healthy = &healthy[i], .how = HEALTHY}, healthy[i].id);
	const int code = test_main(argc, argv, cases, count);
	print_tally();
	return code;
}
