#include "health.h"

#include <math.h>

const char *health_note(struct health *h, const hg_train_event *event)
{
	h->in_row = event->step.applied ? 0 : h->in_row + 1;
	if (!isfinite(event->loss) && !h->replan)
		return "its loss is not finite";
	if (event->step.reason == HG_STEP_SKIPPED_AT_FLOOR)
		return "its gradients are not finite although the loss scale cannot fall further";
	if (h->in_row > HEALTH_TOLERATED)
		return "it is the fifth in a row that was skipped";
	if (event->epoch == event->epochs && !isfinite(event->loss))
		return "it is the last one, and its loss is not finite";
	if (event->epoch == event->epochs && !event->step.applied)
		return "it is the last one, and it was skipped";
	return NULL;
}
