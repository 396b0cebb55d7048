/* Does a remedy work? A run of its own with the option in force, from the beginning; then its next
 * step is examined. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/text.h"
#include "core/versioned.h"
#include "doctor/change.h"

/* ---- the run ---- */

struct trial {
	/* the first loss that is a number, NaN if none is; the last one; the last may be larger by
	 * `slack` */
	double first, last, slack;
	int finite; /* losses that are numbers */
	int applied, stopped;
	hg_train_fn progress; /* the caller's, who may stop it */
	void *user;
};

static int watch(void *user, const hg_train_event *event)
{
	struct trial *trial = user;
	if (isfinite(event->loss) && !trial->finite++)
		trial->first = event->loss;
	trial->last = event->loss;
	trial->applied = event->step.applied;
	trial->stopped = trial->progress && trial->progress(trial->user, event);
	return trial->stopped;
}

/* ---- why it did not help ---- */

static void say_failure(hg_remedy *remedy, const char *format, ...) HG_PRINTF(2, 3);
static void say_failure(hg_remedy *remedy, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)hg__vprint(remedy->failure, sizeof remedy->failure, format, args);
	va_end(args);
}

/* The steps have moved it by no more than f32 rounds it: 2^-20 of it is 16 roundings. Where nothing
 * is left to learn it stands as well; a loss of 0 says so. */
#define RESTS 0x1p-20

static int rests(const struct trial *trial)
{
	return trial->finite > 1 && trial->first > 0.0 &&
	       fabs(trial->last - trial->first) <= RESTS * trial->first;
}

/* The loss and the last step: 1 if they are none of a run that trains. */
static int went_wrong(const struct trial *trial, hg_remedy *remedy)
{
	if (trial->stopped)
		return 1;
	if (!isfinite(trial->last))
		say_failure(remedy, "the loss is still not finite");
	else if (!trial->applied)
		say_failure(remedy, "the last of its steps is still skipped");
	else if (trial->last > trial->first + trial->slack)
		say_failure(remedy, "the loss rises");
	else if (rests(trial))
		say_failure(remedy, "the loss stands still");
	return *remedy->failure != 0;
}

static void say_finding(const hg_finding *f, hg_remedy *remedy)
{
	const char *cause = hg_cause_text(f->cause);
	say_failure(remedy, "another fault shows: %s, %.*s", f->tensor, (int)strcspn(cause, ":"),
	            cause);
}

/* ---- does it help? ---- */

static hg_status judge(hg_train *train, const hg_doctor_config *config, struct trial *trial,
                       hg_remedy *remedy)
{
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	const hg_doctor_report *seen = NULL;
	hg_doctor *doctor = NULL;
	HG__TRY(hg_train_run(train, &report));
	remedy->loss_first = trial->first;
	remedy->loss_last = trial->last;
	if (went_wrong(trial, remedy))
		return HG_OK;
	HG__TRY(hg_doctor_create_train(train, config, &doctor));
	const hg_status status = hg_doctor_examine(doctor, 0, &seen);
	remedy->worked = status >= 0 && seen->findings == 0;
	if (status >= 0 && !remedy->worked)
		say_finding(seen->finding, remedy);
	hg_doctor_free(doctor);
	return status;
}

/* A config that is refused has been tried, too: it does not work. */
static int is_refusal(hg_status status)
{
	return status == HG_ERR_ARG || status == HG_ERR_RANGE || status == HG_ERR_UNSUPPORTED;
}

static hg_status run(hg_context *ctx, const hg_doctor_trial *t, const struct hg__change *change,
                     struct trial *trial, hg_remedy *remedy)
{
	struct hg__changed_data features;
	hg_train *train = NULL;
	HG__TRY(hg__changed_data_make(ctx, t, change, &features));
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	config.features = features.host.data ? features.host.data : t->features;
	config.features_dtype = features.host.data ? features.host_dtype : t->features_dtype;
	hg_status status = hg_train_create(ctx, &change->config, &features.data, &train);
	if (status >= 0 && t->from)
		status = hg_train_set_state(train, t->from);
	if (status >= 0)
		status = judge(train, &config, trial, remedy);
	hg_train_free(train);
	hg__changed_data_free(ctx, &features);
	return status;
}

/* Beside the run that is examined there may be no room for another. */
static hg_status try_one(hg_context *ctx, const hg_doctor_trial *t, struct hg__change *change,
                         hg_remedy *remedy)
{
	struct trial trial = {.first = NAN,
	                      .last = NAN,
	                      .slack = t->from ? 0.05 : 0.0,
	                      .progress = t->config->progress,
	                      .user = t->config->user};
	hg_train_config *c = &change->config;
	c->epochs = c->eval_every = (int)t->steps;
	c->patience = 0;
	c->progress = watch;
	c->user = &trial;
	remedy->worked = 0;
	*remedy->failure = 0;
	const hg_status status = run(ctx, t, change, &trial, remedy);
	if (trial.stopped)
		return HG_INFO_STOPPED;
	if (is_refusal(status))
		say_failure(remedy, "refused: %s", hg_context_error(ctx));
	else if (status == HG_ERR_NOMEM)
		say_failure(remedy, "there is no memory for another run");
	remedy->tried = status >= 0 || is_refusal(status);
	return remedy->tried || status == HG_ERR_NOMEM ? HG_OK : status;
}

/* ---- all of them ---- */

struct list {
	const hg_finding *finding;
	int count;
};

/* The same option, tried for a finding or a place before this one; NULL: it has not been. */
static const hg_remedy *tried_before(const struct list *l, int finding, int place)
{
	const char *option = l->finding[finding].remedy[place].option;
	for (int i = 0; i <= finding; i++)
		for (int k = 0; k < (i < finding ? l->finding[i].remedies : place); k++) {
			const hg_remedy *r = &l->finding[i].remedy[k];
			if (r->tried && strcmp(r->option, option) == 0)
				return r;
		}
	return NULL;
}

static void share(const hg_remedy *from, hg_remedy *to)
{
	const hg_remedy own = *to;
	*to = *from;
	to->option = own.option;
	to->call = own.call;
	to->why = own.why;
}

/* What no option can mend stays in every run, and none of them would train. Evaluations are not
 * tried. */
static const hg_finding *beyond_options(const struct list *l)
{
	for (int i = 0; i < l->count; i++) {
		const hg_finding *f = &l->finding[i];
		int options = f->evaluation || !f->remedies;
		for (int k = 0; k < f->remedies; k++)
			options += *f->remedy[k].option != 0;
		if (!options)
			return f;
	}
	return NULL;
}

static void say_untried(const struct list *l, const hg_finding *first)
{
	for (int i = 0; i < l->count; i++)
		for (int k = 0; k < l->finding[i].remedies; k++)
			if (*l->finding[i].remedy[k].option)
				say_failure(&l->finding[i].remedy[k], "%s has to be mended first", first->tensor);
}

static hg_status try_control(hg_context *ctx, const hg_doctor_trial *t)
{
	struct hg__change same = {*t->config, 0};
	*t->control = (hg_remedy){
	    .option = "", .call = "", .why = "nothing is changed", .loss_first = NAN, .loss_last = NAN};
	return try_one(ctx, t, &same, t->control);
}

static hg_status try_all(hg_context *ctx, const hg_doctor_trial *t, const struct list *l)
{
	hg_status status = t->control ? try_control(ctx, t) : HG_OK;
	const hg_finding *beyond = beyond_options(l);
	int left = beyond ? 0 : t->most;
	if (beyond)
		say_untried(l, beyond);
	for (int i = 0; i < l->count; i++)
		for (int k = 0; k < l->finding[i].remedies && status == HG_OK; k++) {
			struct hg__change change = {*t->config, 0};
			hg_remedy *remedy = &l->finding[i].remedy[k];
			const hg_remedy *same = tried_before(l, i, k);
			if (same) {
				share(same, remedy);
			} else if (left > 0 && hg__change_read(&change, remedy->option)) {
				left--;
				status = try_one(ctx, t, &change, remedy);
			}
		}
	return status;
}

/* The caller's structs in full; `ours` borrows what they point to. */
static hg_status trial_read(hg_context *ctx, const hg_doctor_trial *theirs, hg_doctor_trial *ours,
                            hg_train_config *config)
{
	const hg_doctor_trial usual = HG_DOCTOR_TRIAL_INIT;
	*ours = usual;
	*config = hg_train_config_default(NULL);
	if (!theirs || !hg__struct_read(ours, sizeof *ours, theirs))
		return hg__fail(ctx, HG_ERR_ARG, "doctor_try: trial %s",
		                theirs ? ".size is not set (start from HG_DOCTOR_TRIAL_INIT), or a field "
		                         "unknown to this version is used"
		                       : "is NULL");
	if (!ours->config || !ours->data)
		return hg__fail(ctx, HG_ERR_ARG, "doctor_try: trial.%s is NULL",
		                ours->config ? "data" : "config");
	if (ours->steps < 1 || ours->steps > INT32_MAX || ours->most < 1)
		return hg__fail(ctx, HG_ERR_ARG,
		                "doctor_try: steps %lld, most %d, expected 1 to %d, and at least 1",
		                (long long)ours->steps, ours->most, INT32_MAX);
	if (ours->features && ours->features_dtype != HG_F16 && ours->features_dtype != HG_F32)
		return hg__fail(ctx, HG_ERR_DTYPE, "doctor_try: features_dtype is %s, expected f16 or f32",
		                hg_dtype_name(ours->features_dtype));
	if (!hg__struct_read(config, sizeof *config, ours->config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "doctor_try: config.size is not set (start from hg_train_config_default), "
		                "or a field unknown to this version is used");
	ours->config = config;
	return HG_OK;
}

hg_status hg_doctor_try(hg_context *ctx, const hg_doctor_trial *trial, const hg_finding *findings,
                        int count)
{
	hg_doctor_trial ours;
	hg_train_config config;
	hg_train_data data = HG_TRAIN_DATA_INIT;
	if (!ctx)
		return HG_ERR_ARG;
	HG__TRY(trial_read(ctx, trial, &ours, &config));
	if (count < 0 || (count && !findings))
		return hg__fail(ctx, HG_ERR_ARG, "doctor_try: %d findings%s", count,
		                count < 0 ? "" : ", and the list is NULL");
	if (!hg__struct_read(&data, sizeof data, ours.data))
		return hg__fail(ctx, HG_ERR_ARG,
		                "doctor_try: data.size is not set (start from HG_TRAIN_DATA_INIT), or a "
		                "field unknown to this version is used");
	ours.data = &data;
	const struct list list = {findings, count};
	return try_all(ctx, &ours, &list);
}
