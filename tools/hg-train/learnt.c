#include "learnt.h"

#include <math.h>

void learning_begin(struct learning *l, int resumed)
{
	*l = (struct learning){
	    .resumed = resumed, .first = (double)NAN, .least = HUGE_VAL, .last = (double)NAN};
}

void learning_note(struct learning *l, const hg_train_event *event)
{
	if (isnan(l->first) && isfinite(event->loss))
		l->first = event->loss;
	if (l->applied && event->loss < l->least)
		l->least = event->loss;
	l->last = event->loss;
	l->steps++;
	l->applied += event->step.applied || event->skipped < event->steps;
	/* an epoch in batches tells the gradient of one of its steps */
	l->moved +=
	    event->step.applied && (event->step.grad_norm > 0 || event->steps - event->skipped > 1);
}

enum learnt learning_verdict(const struct learning *l)
{
	if (!l->steps)
		return LEARNT;
	if (!isfinite(l->last))
		return LEARNT_NOT_FINITE;
	if (!l->applied)
		return LEARNT_ALL_SKIPPED;
	if (!l->moved && l->last > 0)
		return LEARNT_NO_GRADIENT;
	/* A step reports the loss of the weights before it. So with more than LEARNT_STEPS applied
	 * steps, the losses show the effect of at least LEARNT_STEPS of them. */
	const int judged = !l->resumed && l->applied > LEARNT_STEPS && l->first > 0;
	return judged && l->least >= l->first ? LEARNT_NO_GAIN : LEARNT;
}
