/* Tries remedies: each option once, in a run of its own. */
#include "doctor/trial.h"

#include <math.h>
#include <string.h>

#include "core/versioned.h"

struct list {
	const hg_finding *finding;
	int count;
};

/* The same option, tried before as a remedy of this or an earlier finding; NULL: it was not. */
static const hg_remedy *tried_before(const struct list *l, int finding, int remedy)
{
	const char *option = l->finding[finding].remedy[remedy].option;
	for (int i = 0; i <= finding; i++)
		for (int k = 0; k < (i < finding ? l->finding[i].remedies : remedy); k++) {
			const hg_remedy *r = &l->finding[i].remedy[k];
			if (r->tried && strcmp(r->option, option) == 0)
				return r;
		}
	return NULL;
}

static void copy_outcome(const hg_remedy *from, hg_remedy *to)
{
	const hg_remedy own = *to;
	*to = *from;
	to->option = own.option;
	to->call = own.call;
	to->why = own.why;
}

/* The first finding that no option can fix; NULL: there is none. Its fault would be in every run,
 * so that none of them would train. Runs do not meet faults of evaluations. */
static const hg_finding *finding_without_option(const struct list *l)
{
	for (int i = 0; i < l->count; i++) {
		const hg_finding *f = &l->finding[i];
		int has_option = f->evaluation || !f->remedies;
		for (int k = 0; k < f->remedies; k++)
			has_option |= *f->remedy[k].option != 0;
		if (!has_option)
			return f;
	}
	return NULL;
}

static void say_untried(const struct list *l, const hg_finding *first)
{
	for (int i = 0; i < l->count; i++)
		for (int k = 0; k < l->finding[i].remedies; k++)
			if (*l->finding[i].remedy[k].option)
				hg__say_failure(&l->finding[i].remedy[k], "%s has to be fixed first",
				                first->tensor);
}

static hg_status try_control(hg_context *ctx, const hg_doctor_trial *t)
{
	struct hg__trial_change nothing = {*t->config, 0};
	*t->control = (hg_remedy){
	    .option = "", .call = "", .why = "nothing is changed", .loss_first = NAN, .loss_last = NAN};
	return hg__trial_run(ctx, t, &nothing, t->control);
}

static hg_status try_all(hg_context *ctx, const hg_doctor_trial *t, const struct list *l)
{
	hg_status status = t->control ? try_control(ctx, t) : HG_OK;
	const hg_finding *unfixable = finding_without_option(l);
	int runs_left = unfixable ? 0 : t->most;
	if (unfixable)
		say_untried(l, unfixable);
	for (int i = 0; i < l->count; i++)
		for (int k = 0; k < l->finding[i].remedies && status == HG_OK; k++) {
			struct hg__trial_change change = {*t->config, 0};
			hg_remedy *remedy = &l->finding[i].remedy[k];
			const hg_remedy *same = tried_before(l, i, k);
			if (same) {
				copy_outcome(same, remedy);
			} else if (runs_left > 0 && hg__apply_option(&change, remedy->option)) {
				runs_left--;
				status = hg__trial_run(ctx, t, &change, remedy);
			}
		}
	return status;
}

/* Reads the caller's structs, which may be of an older version. `ours` borrows what they point
 * to. */
static hg_status trial_read(hg_context *ctx, const hg_doctor_trial *theirs, hg_doctor_trial *ours,
                            hg_train_config *config)
{
	const hg_doctor_trial defaults = HG_DOCTOR_TRIAL_INIT;
	*ours = defaults;
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
