#include <stdio.h>
#include <string.h>

#include "core/typed.h"
#include "doctor/remedy.h"

/* Options as they are typed on a command line, and as the C code that does the same. */

int hg__write_option(char option[HG__OPTION], const char *text)
{
	(void)snprintf(option, HG__OPTION, "%s", text);
	return 1;
}

int hg__write_number(char option[HG__OPTION], const char *name, double x)
{
	char number[HG__TYPED];
	(void)snprintf(option, HG__OPTION, "%s %s", name, hg__typed((float)x, number));
	return 1;
}

/* Writes a precision as the function that makes its policy: "fp16-naive" is
 * hg_policy_fp16_naive(). */
static void write_policy(char call[HG__CALL], const char *prefix, const char *precision)
{
	(void)snprintf(call, HG__CALL, "%.8spolicy = hg_policy_%.32s()", prefix, precision);
	for (char *c = call; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

/* train: in a run of train.h; tape: for a tape of the user's own; %s: the value. */
struct spelling {
	const char *option, *train, *tape;
};
static const struct spelling calls[] = {
    {"--loss-scale", "config.policy.loss_scale.init_scale = %s",
     "policy.loss_scale.init_scale = %s"},
    {"--lr", "config.optim.lr = %s", "hg_optim_set_lr(optim, 0, %sf)"},
    {"--clip", "config.optim.clip_norm = %s", "optim_config.clip_norm = %s"},
    {"--weight-decay", "config.optim.weight_decay = %s", "optim_config.weight_decay = %s"},
    {"--unproved", "config.policy.unproved = HG_UNPROVED_%s", "policy.unproved = HG_UNPROVED_%s"},
    {"op", "", "hg_%s"},
    {"--lambda", "config.model.lambda = %s", ""},
    {"--norm", "config.model.norm = HG_NORM_%s", ""},
    {"--aggregate", "config.model.aggregate = HG_NORM_RIGHT", ""},
    {"--row-normalize", "hg_dataset_row_normalize(dataset)", "hg_dataset_row_normalize(dataset)"},
};
#define CALLS (sizeof calls / sizeof *calls)

/* If the policy has no loss scale in force, setting its value alone changes nothing. */
static const struct spelling first_scale = {
    "--loss-scale",
    "config.policy.loss_scale.enabled = 1, config.policy.loss_scale.init_scale = %s",
    "policy.loss_scale.enabled = 1, policy.loss_scale.init_scale = %s"};

static const struct spelling *spelling_of(const char *option, const hg_policy *policy)
{
	if (strncmp(option, "--loss-scale ", 13) == 0 && !policy->loss_scale.enabled)
		return &first_scale;
	for (size_t i = 0; i < CALLS; i++) {
		const size_t length = strlen(calls[i].option);
		if (strncmp(option, calls[i].option, length) == 0 && option[length] == ' ')
			return &calls[i];
	}
	return NULL;
}

/* Writes the pattern with the value in place of %s. */
static void fill_in(char call[HG__CALL], const char *pattern, const char *value)
{
	const char *gap = strstr(pattern, "%s");
	if (gap)
		(void)snprintf(call, HG__CALL, "%.*s%.32s%.16s", (int)(gap - pattern), pattern, value,
		               gap + 2);
	else
		(void)snprintf(call, HG__CALL, "%s", pattern);
}

void hg__remedy_call(const char *option, const hg_policy *policy, int train, char call[HG__CALL])
{
	char value[33];
	*call = 0;
	if (strncmp(option, "--precision ", 12) == 0) {
		write_policy(call, train ? "config." : "", option + 12);
		return;
	}
	const struct spelling *s = spelling_of(option, policy);
	if (!s)
		return;
	(void)snprintf(value, sizeof value, "%.32s", option + strlen(s->option) + 1);
	if (strstr(s->train, "_%s"))
		for (char *c = value; *c; c++)
			*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	fill_in(call, train ? s->train : s->tape, value);
}
