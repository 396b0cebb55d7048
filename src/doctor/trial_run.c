/* Does a remedy work? A run with the option in force trains for some steps; then its next step is
 * examined. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/text.h"
#include "doctor/trial.h"
#include "nn/state.h"

/* What the run reports while it trains. */
struct progress {
	double first, last; /* the first finite loss, NaN if there is none; the last loss */
	double slack;       /* the last loss may be larger than the first by this much */
	int finite;         /* number of finite losses */
	int applied;        /* the last step was applied */
	int stopped;
	hg_train_fn watch; /* the user's; it may stop the run */
	void *user;
};

static int on_epoch(void *user, const hg_train_event *event)
{
	struct progress *p = user;
	if (isfinite(event->loss) && !p->finite++)
		p->first = event->loss;
	p->last = event->loss;
	p->applied = event->step.applied;
	p->stopped = p->watch && p->watch(p->user, event);
	return p->stopped;
}

/* ---- why it does not work ---- */

void hg__say_failure(hg_remedy *remedy, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)hg__vprint(remedy->failure, sizeof remedy->failure, format, args);
	va_end(args);
}

/* Has the loss changed by no more than the rounding of f32? 2^-20 of it is 16 roundings. (Where
 * nothing is left to learn it does not change either; but then it is 0.) */
#define NO_CHANGE 0x1p-20

static int loss_is_constant(const struct progress *p)
{
	return p->finite > 1 && p->first > 0.0 && fabs(p->last - p->first) <= NO_CHANGE * p->first;
}

/* Judges the loss and the last step. Returns 1 if the run has not trained. */
static int has_not_trained(const struct progress *p, hg_remedy *remedy)
{
	if (p->stopped)
		return 1;
	if (!isfinite(p->last))
		hg__say_failure(remedy, "the loss is still not finite");
	else if (!p->applied)
		hg__say_failure(remedy, "the last of its steps is still skipped");
	else if (p->last > p->first + p->slack)
		hg__say_failure(remedy, "the loss rises");
	else if (loss_is_constant(p))
		hg__say_failure(remedy, "the loss does not change");
	return *remedy->failure != 0;
}

static void say_finding(const hg_finding *f, hg_remedy *remedy)
{
	const char *cause = hg_cause_text(f->cause);
	hg__say_failure(remedy, "another fault appears: %s, %.*s", f->tensor, (int)strcspn(cause, ":"),
	                cause);
}

/* ---- the run ---- */

static hg_status train_and_examine(hg_train *train, const hg_doctor_config *config,
                                   struct progress *p, hg_remedy *remedy)
{
	hg_train_report trained = HG_TRAIN_REPORT_INIT;
	const hg_doctor_report *report = NULL;
	hg_doctor *doctor = NULL;
	HG__TRY(hg_train_run(train, &trained));
	remedy->loss_first = p->first;
	remedy->loss_last = p->last;
	if (has_not_trained(p, remedy))
		return HG_OK;
	HG__TRY(hg_doctor_create_train(train, config, &doctor));
	const hg_status status = hg_doctor_examine(doctor, 0, &report);
	remedy->worked = status >= 0 && report->findings == 0;
	if (status >= 0 && !remedy->worked)
		say_finding(report->finding, remedy);
	hg_doctor_free(doctor);
	return status;
}

static hg_status create_and_train(hg_context *ctx, const hg_doctor_trial *trial,
                                  const struct hg__trial_change *change, struct progress *p,
                                  hg_remedy *remedy)
{
	struct hg__trial_data data;
	hg_train *train = NULL;
	HG__TRY(hg__trial_data_open(ctx, trial, change, &data));
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	config.features = data.host.data ? data.host.data : trial->features;
	config.features_dtype = data.host.data ? data.host_dtype : trial->features_dtype;
	hg_status status = hg_train_create(ctx, &change->config, &data.data, &train);
	if (status >= 0 && trial->from)
		status = hg__state_make_groups(hg_train_optim(train), trial->from);
	if (status >= 0 && trial->from)
		status = hg_train_set_state(train, trial->from);
	if (status >= 0)
		status = train_and_examine(train, &config, p, remedy);
	hg_train_free(train);
	hg__trial_data_close(ctx, &data);
	return status;
}

/* A configuration that is refused has been tried, too: it does not work. */
static int is_refusal(hg_status status)
{
	return status == HG_ERR_ARG || status == HG_ERR_RANGE || status == HG_ERR_UNSUPPORTED;
}

/* It is no error if there is no memory for a run beside the one that is examined. */
hg_status hg__trial_run(hg_context *ctx, const hg_doctor_trial *trial,
                        struct hg__trial_change *change, hg_remedy *remedy)
{
	struct progress p = {.first = NAN,
	                     .last = NAN,
	                     .slack = trial->from ? 0.05 : 0.0,
	                     .watch = trial->config->progress,
	                     .user = trial->config->user};
	hg_train_config *c = &change->config;
	c->epochs = c->eval_every = (int)trial->steps;
	c->patience = 0;
	c->progress = on_epoch;
	c->user = &p;
	remedy->worked = 0;
	*remedy->failure = 0;
	const hg_status status = create_and_train(ctx, trial, change, &p, remedy);
	if (p.stopped)
		return HG_INFO_STOPPED;
	if (is_refusal(status))
		hg__say_failure(remedy, "refused: %s", hg_context_error(ctx));
	else if (status == HG_ERR_NOMEM)
		hg__say_failure(remedy, "there is no memory for another run");
	remedy->tried = status >= 0 || is_refusal(status);
	return remedy->tried || status == HG_ERR_NOMEM ? HG_OK : status;
}
