/* The checks and the public functions of schedules; their equations are in schedule.h. */
#include "precision/schedule.h"

#include <math.h>
#include <stddef.h>

static const char *const names[] = {[HG_SCHEDULE_CONSTANT] = "constant",
                                    [HG_SCHEDULE_STEP] = "step",
                                    [HG_SCHEDULE_COSINE] = "cosine",
                                    [HG_SCHEDULE_ONE_CYCLE] = "one-cycle",
                                    [HG_SCHEDULE_PLATEAU] = "plateau"};

const char *hg_schedule_name(hg_schedule_kind kind)
{
	return (int)kind >= 0 && (size_t)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

/* A NaN is in no range. */
static int is_share(double x)
{
	return x >= 0.0 && x <= 1.0;
}

const char *hg_schedule_fault(const hg_schedule_config *c)
{
	if (!c || c->size != sizeof *c)
		return "size is not that of hg_schedule_config: start from HG_SCHEDULE_CONFIG_INIT";
	if (!hg_schedule_name(c->kind))
		return "kind is not one of hg_schedule_kind";
	if (c->warmup < 0)
		return "warmup must be at least 0";
	if (c->every < 1)
		return "every must be at least 1";
	if (c->patience < 0)
		return "patience must be at least 0";
	if (c->total < 0 || (c->total > 0 && c->total <= c->warmup))
		return "total must be above warmup, or 0";
	if (!(c->factor > 0.0) || !is_share(c->factor))
		return "factor must be above 0 and at most 1";
	if (!is_share(c->least))
		return "least must be in [0, 1]";
	if (!is_share(c->start))
		return "start must be in [0, 1]";
	if (!(c->rise > 0.0 && c->rise < 1.0))
		return "rise must be above 0 and below 1";
	if (!(c->threshold >= 0.0 && c->threshold < 1.0))
		return "threshold must be at least 0 and below 1";
	return NULL;
}

int hg__schedule_ends(const hg_schedule_config *c)
{
	return c->kind == HG_SCHEDULE_COSINE || c->kind == HG_SCHEDULE_ONE_CYCLE;
}

double hg_schedule_factor(const hg_schedule_config *c, int64_t step)
{
	if (hg_schedule_fault(c) || step < 0 || (hg__schedule_ends(c) && !c->total))
		return (double)NAN;
	return hg__schedule_factor(c, step, 0);
}
