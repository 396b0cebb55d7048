/* The options of the schedule of the learning rate. */
#include "schedule.h"

#include <math.h>
#include <string.h>

/* Options of some schedules alone. Of another one they would silently have no effect. */
static const struct {
	const char *option, *of;
} some[] = {{"--lr-step", "step"}, {"--lr-factor", "step plateau"}, {"--lr-patience", "plateau"}};

static hg_schedule_kind kind_named(const char *name)
{
	int kind = HG_SCHEDULE_CONSTANT;
	while (name && hg_schedule_name((hg_schedule_kind)kind) &&
	       strcmp(hg_schedule_name((hg_schedule_kind)kind), name) != 0)
		kind++;
	return (hg_schedule_kind)kind;
}

int schedule_check(struct tool_line *line, const struct training *t)
{
	const hg_schedule_kind kind = kind_named(t->schedule);
	const char *name = hg_schedule_name(kind);
	for (size_t k = 0; k < sizeof some / sizeof *some; k++)
		if (tool_given(line, some[k].option) && !strstr(some[k].of, name))
			return tool_refuse(line, "%s is an option of --schedule %s, but the schedule is %s",
			                   some[k].option, k == 1 ? "step and plateau" : some[k].of, name);
	if (tool_given(line, "--lr-least") && kind == HG_SCHEDULE_CONSTANT)
		return tool_refuse(line, "--lr-least needs a --schedule that lowers the rate");
	const int ends = kind == HG_SCHEDULE_COSINE || kind == HG_SCHEDULE_ONE_CYCLE;
	if (ends && t->warmup >= t->epochs)
		return tool_refuse(line, "--warmup is %lld, expected less than the %lld epochs of the %s",
		                   (long long)t->warmup, (long long)t->epochs, name);
	return 0;
}

void schedule_make(const struct training *t, hg_schedule_config *schedule)
{
	schedule->kind = kind_named(t->schedule);
	if (t->warmup >= 0)
		schedule->warmup = t->warmup;
	if (t->lr_step >= 0)
		schedule->every = t->lr_step;
	training_set_int(&schedule->patience, t->lr_patience);
	if (!isnan(t->lr_factor))
		schedule->factor = t->lr_factor;
	if (!isnan(t->lr_least))
		schedule->least = t->lr_least;
}
