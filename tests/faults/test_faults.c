/* Plants every fault of faults.def and asks the doctor what it was: the first finding must be that
 * fault, with the right cause, op, layer, element, and for sums the hub's addends. The same again
 * where each op runs by itself, and once more after a real step that was skipped for it, examined
 * afterwards. What a loss scale or another way of summing cures must be gone once the doctor's own
 * remedies are taken. Then the same set-up in good health, which must give no finding, as must what
 * innocents.def lists. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/fault.h"
#include "harness.h"

enum { FORWARD = 0, BACKWARD = 1 };
static const struct fault faults[] = {
#define FAULT(id, cause, model, layer, op, direction, plant, what) \
	{#id, HG_CAUSE_##cause, model, layer, op, direction, plant, what},
#include "faults/faults.def"
#undef FAULT
};
static const struct innocent innocents[] = {
#define INNOCENT(id, plant, what) {#id, plant, what},
#include "faults/innocents.def"
#undef INNOCENT
};
enum {
	FAULTS = (int)(sizeof faults / sizeof faults[0]),
	INNOCENTS = (int)(sizeof innocents / sizeof innocents[0])
};

enum when {
	PLANTED = 0,
	APART = 1,
	AFTERWARDS = 2,
	CURED = 3,
	CONTROL = 4,
	INNOCENTLY = 5,
	WHENS = 6
};
struct item {
	const struct fault *fault; /* NULL: innocent */
	const struct innocent *innocent;
	enum when when;
	char name[64];
};

static struct {
	int asked[WHENS], right[WHENS], applied;
} tally;

/* ---- what must not change ---- */

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

static void state_take(struct world *w, struct state *s)
{
	const hg_step_info info = HG_STEP_INFO_INIT;
	s->count = 0;
	s->info = info;
	for (int64_t i = 0; i < hg_params_count(w->params); i++) {
		const hg_tensor *master = hg_param_master(hg_params_at(w->params, i));
		s->count += hg_tensor_rows(master) * hg_tensor_cols(master);
	}
	float *master = s->master = malloc((size_t)s->count * sizeof *master),
	      *working = s->working = malloc((size_t)s->count * sizeof *working);
	CHECK(master && working);
	for (int64_t i = 0; i < hg_params_count(w->params); i++) {
		master = append(master, hg_param_master(hg_params_at(w->params, i)));
		working = append(working, hg_param_working(hg_params_at(w->params, i)));
	}
	if (w->optim)
		CHECK_OK(hg_optim_info(w->optim, &s->info));
}

static void state_free(struct state *s)
{
	free(s->master);
	free(s->working);
}

static void check_same(struct world *w, struct state *before)
{
	struct state now;
	state_take(w, &now);
	const size_t bytes = (size_t)now.count * sizeof(float);
	const int same =
	    now.count == before->count && memcmp(now.master, before->master, bytes) == 0 &&
	    memcmp(now.working, before->working, bytes) == 0 && now.info.steps == before->info.steps &&
	    now.info.skipped == before->info.skipped && now.info.loss_scale == before->info.loss_scale;
	state_free(&now);
	state_free(before);
	CHECK_MSG(same, "the doctor changed a weight or the optimiser's state");
}

/* ---- is it what it was? ---- */

struct verdict {
	int wrong;
	char text[512];
};

/* Of a node: all but what was bad before the step, or goes bad behind it. */
static int has_place(const struct fault *f)
{
	return f->cause != HG_CAUSE_INPUT && f->cause != HG_CAUSE_OPTIMISER;
}

static void object(struct verdict *v, const char *what, const char *got, const char *expected)
{
	const size_t length = strlen(v->text);
	v->wrong++;
	(void)snprintf(v->text + length, sizeof v->text - length, "%s%s is %s, expected %s",
	               length ? "; " : "", what, got, expected);
}

static void want_text(struct verdict *v, const char *what, const char *got, const char *expected)
{
	if (!got || strcmp(got, expected) != 0)
		object(v, what, got ? got : "NULL", expected);
}

static void want_among(struct verdict *v, const char *what, int64_t got, struct among expected)
{
	char a[32], b[64];
	if (got >= expected.first && got <= expected.last)
		return;
	(void)snprintf(a, sizeof a, "%lld", (long long)got);
	(void)snprintf(b, sizeof b, "%lld to %lld", (long long)expected.first,
	               (long long)expected.last);
	object(v, what, a, b);
}

/* Where one element is right, it is the only one. */
static void want_alone(struct verdict *v, const hg_finding *found, const struct answer *right)
{
	if (right->row.first == right->row.last && right->col.first == right->col.last)
		want_among(v, "the number of bad elements", found->bad, only(1));
}

/* What is not finite, or is wrong, goes somewhere: from the place where it began, and forward on to
 * the loss. */
static void want_chain(struct verdict *v, const hg_finding *found, const struct fault *f)
{
	int loss = 0;
	for (int i = 0; i < found->links; i++)
		loss |= strcmp(found->chain[i].op, "softmax_xent") == 0 ||
		        strcmp(found->chain[i].op, "mse") == 0 ||
		        strcmp(found->chain[i].op, "bce_logits") == 0;
	if (found->links < 1)
		object(v, "the chain", "empty", "a way");
	else if (!f->backward && (found->chain[0].node != found->node || found->chain[0].backward))
		object(v, "the chain's beginning", found->chain[0].op, f->op);
	else if (!f->backward && !loss)
		object(v, "the chain", "without the loss", "on to the loss");
}

/* 1 %: what a planter computes in exact numbers went through halves before */
static void want_close(struct verdict *v, const char *what, double got, double expected)
{
	char a[32], b[32];
	if (fabs(got - expected) <= 0.01 * fabs(expected))
		return;
	(void)snprintf(a, sizeof a, "%g", got);
	(void)snprintf(b, sizeof b, "%g", expected);
	object(v, what, a, b);
}

/* Where a running half ended says how many addends were in it: with or without the one that made it
 * overflow. */
static void want_sum(struct verdict *v, const hg_finding *found, const struct answer *right)
{
	if (right->terms)
		want_among(v, "the number of addends", found->terms, only(right->terms));
	if (right->ended)
		want_among(v, "where the sum ended", found->partial_at,
		           (struct among){right->ended - 1, right->ended});
	if (right->terms || right->top_row >= 0)
		want_among(v, "the number of addends that are shown", found->tops,
		           (struct among){1, HG_DOCTOR_TOP});
	if (right->top_row >= 0 && found->tops > 0)
		want_among(v, "the largest addend's row", found->top[0].row, only(right->top_row));
	if (right->top > 0.0 && right->terms && found->tops > 0)
		want_close(v, "the largest addend", fabs(found->top[0].value), right->top);
}

static void want_place(struct verdict *v, const hg_finding *found, const struct fault *f,
                       const struct answer *right)
{
	if (has_place(f)) {
		want_text(v, "op", found->op, f->op);
		want_text(v, "layer", found->layer, f->layer);
		want_among(v, "backward", found->backward, only(f->backward));
	} else
		want_among(v, "node", found->node, only(-1));
	if (right->tensor)
		want_text(v, "tensor", found->tensor, right->tensor);
	want_among(v, "row", found->row, right->row);
	want_among(v, "col", found->col, right->col);
	if (right->edge_row >= 0) {
		want_among(v, "row_is", found->row_is, only(HG_ROW_EDGE));
		want_among(v, "edge_row", found->edge_row, only(right->edge_row));
		want_among(v, "edge_col", found->edge_col, only(right->edge_col));
	}
}

static struct verdict judge(const hg_doctor_report *report, const struct fault *f,
                            const struct answer *right)
{
	struct verdict v = {0, ""};
	const hg_finding *found = report->finding;
	if (report->findings < 1) {
		object(&v, "the number of findings", "0", "at least 1");
		return v;
	}
	want_text(&v, "cause", hg_cause_name(found->cause), hg_cause_name(f->cause));
	want_among(&v, "step", found->step, only(right->step));
	want_close(&v, "loss scale", found->scale, right->scale);
	want_place(&v, found, f, right);
	want_sum(&v, found, right);
	want_alone(&v, found, right);
	if (has_place(f))
		want_chain(&v, found, f);
	if (!isnan(right->wide))
		want_close(&v, "the exact value", found->wide, right->wide);
	if (!found->sentence || !*found->sentence)
		object(&v, "the sentence", "empty", "one");
	return v;
}

/* The judge is judged: it must object to every part of an answer that is not asked to be right. */
static void check_judge(const hg_doctor_report *report, const struct fault *f,
                        const struct answer *right)
{
	struct fault other[] = {*f, *f, *f, *f};
	struct answer moved[] = {*right, *right, *right, *right, *right};
	other[0].cause = (hg_cause)((f->cause + 1) % HG_CAUSE_COUNT);
	other[1].op = "no op";
	other[2].layer = "no layer";
	other[3].backward = !f->backward;
	for (int i = 0; i < (has_place(f) ? 4 : 1); i++)
		CHECK(judge(report, &other[i], right).wrong);
	moved[0].row = only(report->finding->row + 1);
	moved[1].col = only(report->finding->col + 1);
	moved[2].step++;
	moved[3].scale *= 2.0;
	moved[4].tensor = "no tensor";
	for (int i = 0; i < 5; i++)
		CHECK(judge(report, f, &moved[i]).wrong);
}

/* ---- examining ---- */

static hg_doctor *doctor_of(struct world *w)
{
	hg_doctor *doctor = NULL;
	if (w->train)
		CHECK_OK(hg_doctor_create_train(w->train, NULL, &doctor));
	else {
		CHECK_OK(hg_optim_create(w->params, &w->rates, &w->optim));
		CHECK_OK(hg_doctor_create(w->params, w->optim, w->record, w, NULL, &doctor));
	}
	return doctor;
}

static void spoil_late(const struct world *w)
{
	if (w->late.tensor)
		world_spoil(w->late.tensor, w->late.row, w->late.col, w->late.value);
}

/* A training loop of so many steps that are well and one with what is spoiled late; or of `well`
 * steps and no more. 1: the last one was skipped. */
static int train(struct world *w, int well, int ill)
{
	hg_tape *tape = NULL;
	hg_step_info info = HG_STEP_INFO_INIT;
	CHECK_OK(hg_tape_create(w->params, HG_TRAIN, &tape));
	CHECK_OK(hg_tape_compile(tape, w->record(w, tape)));
	for (int i = 0; i < well + ill; i++) {
		if (i == well)
			spoil_late(w);
		CHECK_OK(hg_tape_forward(tape));
		CHECK_OK(hg_tape_backward(tape));
		CHECK_OK(hg_optim_step(w->optim));
	}
	CHECK_OK(hg_optim_info(w->optim, &info));
	hg_tape_free(tape);
	return !info.applied;
}

static int innocent(const struct item *item)
{
	return item->when == CONTROL || item->when == INNOCENTLY;
}

static void tell(const struct item *item, int right, const hg_doctor_report *report)
{
	static const char *const word[2][2] = {{"MISSED", "named"}, {"SLANDER", "healthy"}};
	const char *cause = item->fault ? hg_cause_name(item->fault->cause) : "none";
	printf("%-8s %-34s %-12s %s\n", word[innocent(item)][right], item->name, cause,
	       report->findings ? report->finding->sentence : "no finding");
}

/* Examines, and demands what `item` says. */
static void examine(struct world *w, const struct item *item, hg_doctor *doctor)
{
	const hg_doctor_report *report = NULL;
	struct verdict v = {0, "nothing was planted"};
	struct state before;
	state_take(w, &before);
	CHECK_OK(hg_doctor_examine(doctor, item->when == AFTERWARDS, &report));
	w->answer.scale = w->policy.loss_scale.enabled ? (double)w->policy.loss_scale.init_scale : 1.0;
	if (!innocent(item))
		v = judge(report, item->fault, &w->answer);
	const int right = innocent(item) ? report->findings == 0 : v.wrong == 0;
	tally.asked[item->when]++;
	tally.right[item->when] += right;
	tell(item, right, report);
	CHECK_MSG(right, "%s: %s", v.text, report->findings ? report->finding->sentence : "no finding");
	check_same(w, &before);
	if (!innocent(item))
		check_judge(report, item->fault, &w->answer);
}

enum { LOOK_EVERY = 20, WELL = 5 };

/* The last step, if it was skipped. What is spoiled late is spoiled after some steps that were
 * well. */
static void look_back(struct world *w, const struct item *item, hg_doctor *doctor)
{
	w->answer.step = w->late.tensor ? WELL : 0;
	if (!w->train && train(w, (int)w->answer.step, 1))
		examine(w, item, doctor);
	else
		tally.applied++;
}

/* The step at hand, and those at hand every so often along the way. */
static void look_ahead(struct world *w, const struct item *item, hg_doctor *doctor)
{
	spoil_late(w);
	examine(w, item, doctor);
	for (int i = 0; i < w->steps; i += LOOK_EVERY) {
		(void)train(w, LOOK_EVERY, 0);
		examine(w, item, doctor);
	}
}

static hg_context *context_of(const struct item *item)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.separate_ops = 1;
	return item->when == APART ? test_context_with(config) : test_context();
}

static hg_doctor *begin(struct world *w, const struct item *item)
{
	if (item->fault)
		item->fault->plant(w, item->fault);
	else
		item->innocent->plant(w);
	return doctor_of(w);
}

static void end(struct world *w, hg_doctor *doctor)
{
	hg_doctor_free(doctor);
	hg_context *ctx = w->ctx;
	world_close(w);
	hg_context_free(ctx);
}

static void run(const void *data)
{
	const struct item *item = data;
	struct world w;
	world_open(&w, context_of(item), !innocent(item));
	hg_doctor *doctor = begin(&w, item);
	(item->when == AFTERWARDS ? look_back : look_ahead)(&w, item, doctor);
	end(&w, doctor);
}

/* ---- the doctor's own remedies ---- */

/* The first one that is a loss scale or a way of summing; 0: none is. */
static int take(const hg_finding *found, struct world *next)
{
	for (int i = 0; i < found->remedies; i++) {
		const char *call = found->remedy[i].call;
		if (sscanf(call, "policy.loss_scale.init_scale = %f", &next->cure.scale) == 1 ||
		    sscanf(call, "config.policy.loss_scale.init_scale = %f", &next->cure.scale) == 1)
			return 1;
		if (sscanf(call, "policy = hg_policy_%31[^(]", next->cure.precision) != 1 &&
		    sscanf(call, "config.policy = hg_policy_%31[^(]", next->cure.precision) != 1)
			continue;
		for (char *c = next->cure.precision; *c; c++)
			*c = *c == '_' ? '-' : *c;
		return 1;
	}
	return 0;
}

/* What one remedy cures may have hidden another fault of the kind, which has its own. */
enum { REMEDIES = 5 };

static void run_cured(const void *data)
{
	const struct item *item = data;
	struct world cure = {.sick = 1};
	int findings = 1;
	tally.asked[CURED]++;
	for (int i = 0; i <= REMEDIES && findings; i++) {
		const hg_doctor_report *report = NULL;
		struct world w;
		world_open(&w, test_context(), 1);
		w.cure = cure.cure;
		hg_doctor *doctor = begin(&w, item);
		CHECK_OK(hg_doctor_examine(doctor, 0, &report));
		findings = report->findings;
		CHECK_MSG(!findings || take(report->finding, &cure), "no remedy to take: %s",
		          report->finding->sentence);
		CHECK_MSG(!findings || i < REMEDIES, "%d remedies later: %s", REMEDIES,
		          report->finding->sentence);
		end(&w, doctor);
	}
	tally.right[CURED]++;
	printf("%-8s %-34s %-12s %s %g\n", "cured", item->name, hg_cause_name(item->fault->cause),
	       cure.cure.precision, (double)cure.cure.scale);
}

/* A loss scale, or another way of summing, is all that they need. */
static int can_be_cured(const struct fault *f)
{
	return f->cause == HG_CAUSE_LOSS_SCALE || f->cause == HG_CAUSE_ACCUMULATION ||
	       f->cause == HG_CAUSE_SWAMPING || (f->cause == HG_CAUSE_UNDERFLOW && f->backward);
}

/* Of what makes a step skipped: the rest leaves finite gradients behind. */
static int stops_step(const struct fault *f)
{
	return f->cause != HG_CAUSE_UNDERFLOW && f->cause != HG_CAUSE_SWAMPING &&
	       f->cause != HG_CAUSE_OPTIMISER;
}

enum { CASES = 5 * FAULTS + INNOCENTS };
static struct item items[CASES];
static struct test_case cases[CASES];

/* One more case. */
static void add(int *count, struct item item, const char *id)
{
	static const char *const prefix[WHENS] = {"", "", "", "", "", "innocent."},
	                         *const suffix[WHENS] = {"",       ".apart",   ".afterwards",
	                                                 ".cured", ".healthy", ""};
	struct item *kept = &items[*count];
	*kept = item;
	(void)snprintf(kept->name, sizeof kept->name, "%s%s%s", prefix[item.when], id,
	               suffix[item.when]);
	cases[(*count)++] = (struct test_case){
	    .name = kept->name, .run_item = item.when == CURED ? run_cured : run, .item = kept};
}

int main(int argc, char **argv)
{
	int count = 0;
	for (enum when when = PLANTED; when <= CONTROL; when++)
		for (int i = 0; i < FAULTS; i++)
			if ((when != AFTERWARDS || stops_step(&faults[i])) &&
			    (when != CURED || can_be_cured(&faults[i])))
				add(&count, (struct item){.fault = &faults[i], .when = when}, faults[i].id);
	for (int i = 0; i < INNOCENTS; i++)
		add(&count, (struct item){.innocent = &innocents[i], .when = INNOCENTLY}, innocents[i].id);
	const int code = test_main(argc, argv, cases, count);
	const int *asked = tally.asked, *right = tally.right;
	printf("faults: %d planted, %d named; %d with separate ops, %d named; %d examined after the "
	       "step, %d named, %d steps were applied all the same\n",
	       asked[PLANTED], right[PLANTED], asked[APART], right[APART], asked[AFTERWARDS],
	       right[AFTERWARDS], tally.applied);
	printf("cured: %d of %d by the doctor's own remedies\n", right[CURED], asked[CURED]);
	printf("healthy: %d examined, %d without a finding\n", asked[CONTROL] + asked[INNOCENTLY],
	       right[CONTROL] + right[INNOCENTLY]);
	return code;
}
