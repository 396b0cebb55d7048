#include "health.h"

#include <math.h>

/* Count consecutive overflows of the forward pass. If another op node than before overflowed and
 * its largest value is known, that node will be rescaled or promoted, so the count starts again. */
static void note_overflow(struct health *h, const hg_step_info *step)
{
	const int is_new = step->overflow_node >= 0 && !isnan(step->overflow_amax) &&
	                   (!h->in_row || step->overflow_node != h->overflowed);
	h->in_row = is_new ? 1 : h->in_row + 1;
	h->overflowed = step->overflow_node;
}

static void note_loss(struct health *h, double loss)
{
	if (isfinite(loss) && !h->finite++)
		h->first = loss;
	h->last = isfinite(loss) ? loss : (double)INFINITY;
}

const char *health_note(struct health *h, const hg_train_event *event)
{
	note_loss(h, event->loss);
	h->applied += event->step.applied;
	h->skipped = event->step.applied ? 0 : h->skipped + 1;
	if (event->step.reason == HG_STEP_SKIPPED_FORWARD)
		note_overflow(h, &event->step);
	else if (event->step.applied)
		h->in_row = 0;
	if (!isfinite(event->loss) && !h->replan)
		return "its loss is not finite";
	if (event->step.reason == HG_STEP_SKIPPED_AT_FLOOR)
		return "its gradients are not finite although the loss scale cannot fall further";
	if (h->in_row > HEALTH_TOLERATED)
		return "it is the fifth in a row whose forward pass overflowed, and the run does not "
		       "recover";
	if (event->epoch == event->epochs && !isfinite(event->loss))
		return "it is the last one, and its loss is not finite";
	if (event->epoch == event->epochs && h->skipped &&
	    (!h->applied || h->skipped > HEALTH_TOLERATED))
		return "it is the last one, and it was skipped like those before it";
	return NULL;
}

/* The number of skipped steps until the largest gradient of a finding fits; -1: it never does. The
 * first hysteresis - 1 skipped steps use up the tolerance; after that every skipped step lowers the
 * scale. */
static int64_t steps_to_fit(const hg_loss_scale_config *c, const hg_finding *f)
{
	const double largest = fmax(fabs(f->wide), f->largest) / f->scale;
	int64_t steps = c->hysteresis - 1;
	for (double scale = f->scale; largest * scale >= f->limit; steps++) {
		if (!c->enabled || scale <= (double)c->min_scale)
			return -1;
		scale = fmax(scale * (double)c->backoff_factor, (double)c->min_scale);
	}
	return steps;
}

static int fits_soon(const struct health *h, const hg_loss_scale_config *c, const hg_finding *f)
{
	const int64_t most = h->steps / 4 > HEALTH_TOLERATED ? h->steps / 4 : HEALTH_TOLERATED;
	const int64_t steps = steps_to_fit(c, f);
	return steps >= 0 && h->skipped + steps <= most;
}

int health_mends(const struct health *h, const hg_policy *policy, const hg_finding *f)
{
	const hg_loss_scale_config *scale = &policy->loss_scale;
	const int scaled = scale->enabled && f->scale > (double)scale->min_scale;
	if (*f->grown)
		return h->last <= h->first && (f->backward ? scaled : policy->replan && !f->evaluation);
	if (f->cause == HG_CAUSE_LOSS_SCALE || f->cause == HG_CAUSE_EXPLOSION ||
	    (f->backward && (f->cause == HG_CAUSE_ACCUMULATION || f->cause == HG_CAUSE_ZERO)))
		return scaled && fits_soon(h, scale, f);
	return (f->cause == HG_CAUSE_ACCUMULATION || f->cause == HG_CAUSE_STORE) && policy->replan &&
	       !f->backward && !f->evaluation;
}

int health_due(int64_t done, int64_t steps)
{
	return done < steps && ((done & (done - 1)) == 0 || done == steps - 1);
}
