/* Converts what the observer of a step has counted into the structs of halfgraph/observe.h. */
#include "halfgraph/observe.h"

#include <math.h>

#include "autograd/observe.h"
#include "autograd/tape.h"
#include "core/versioned.h"
#include "nn/step.h"
#include "precision/bound.h"
#include "precision/half.h"

_Static_assert(HG_STEP_OBSERVED == HG__OBSERVED_STEPS && HG_OBSERVED_BINS == HG__BINS,
               "what is counted is what can be read");

static hg_status fetch_counts(hg_step *s)
{
	if (!s->watch || s->seen)
		return HG_OK;
	HG__TRY(hg__watch_fetch(s->watch));
	s->seen = 1;
	return HG_OK;
}

/* The index in the ring of the back-th last observed step; -1: there is none. After a return to an
 * earlier step the ring may hold steps that were undone, or the same step twice. Going back, step
 * numbers must fall, so entries where they do not are skipped. */
static int64_t place_of(const struct hg__watch *w, int64_t back)
{
	const struct hg__observed_ring *ring = hg__watch_ring(w);
	int64_t later = w->now;
	for (int64_t i = ring->taken - 1; i >= 0 && i >= ring->taken - HG__OBSERVED_STEPS; i--) {
		const int64_t place = i % HG__OBSERVED_STEPS;
		if (ring->head[place].step >= later)
			continue;
		later = ring->head[place].step;
		if (back-- == 0)
			return place;
	}
	return -1;
}

static int64_t steps_of(const struct hg__watch *w)
{
	int64_t count = 0;
	while (place_of(w, count) >= 0)
		count++;
	return count;
}

/* ---- one tensor ---- */

static void fill_identity(const hg_tape *tape, const struct hg__spot *spot, hg_observation *o)
{
	const struct hg__entry *entry = spot->entry >= 0 ? &tape->recording.entry[spot->entry] : NULL;
	o->node = spot->entry;
	o->backward = spot->gradient;
	o->name = spot->name;
	o->op = !entry ? "" : entry->title ? entry->title : entry->node.op->name;
	o->layer = entry ? entry->node.scope : "";
	o->dtype = spot->mat.dtype;
	o->rows = spot->mat.rows;
	o->cols = spot->mat.cols;
	o->shift = spot->gradient ? 0 : tape->recording.value[spot->value].shift;
	o->bound = spot->gradient ? hg__bound_of_gradient(tape, spot->value, o->loss_scale)
	                          : tape->recording.value[spot->value].known[HG__ASSUMED].largest;
}

static void fill_counts(const struct hg__observed *seen, hg_observation *o)
{
	const int64_t first = seen->rank ? o->rows * o->cols - (int64_t)seen->rank : -1;
	for (int b = 0; b < HG__BINS; b++)
		o->bin[b] = seen->bin[b];
	o->zeros = seen->zeros;
	o->subnormals = seen->bin[0];
	o->nonfinite = seen->nonfinite;
	o->first_row = first < 0 ? -1 : first / o->cols;
	o->first_col = first < 0 ? -1 : first % o->cols;
	o->amax = (double)hg__float_of_bits(seen->amax);
	o->headroom = seen->nonfinite ? 0.0 : hg__headroom(o->dtype, o->amax);
	o->amax = ldexp(o->amax, o->shift);
	o->swamping = seen->swamped ? (double)hg__float_of_bits((uint32_t)(seen->swamped >> 32)) : -1.0;
	o->swamping_row = seen->swamped ? (int64_t)(UINT32_MAX - (uint32_t)seen->swamped) : -1;
}

static hg_status check_present(const hg_step *s, const void *result, const char *what,
                               const char *name)
{
	return result ? HG_OK : hg__fail(s->ctx, HG_ERR_ARG, "%s: %s is NULL", what, name);
}

static hg_status unsized(const hg_step *s, const char *what, const char *init)
{
	return hg__fail(s->ctx, HG_ERR_ARG, "%s: size is not set: start from %s", what, init);
}

hg_status hg_step_observed(hg_step *s, int64_t back, int64_t index, hg_observation *observation)
{
	if (!s)
		return HG_ERR_ARG;
	HG__TRY(check_present(s, observation, "step_observed", "observation"));
	if (!s->watch)
		return hg__fail(s->ctx, HG_ERR_STATE,
		                "step_observed: steps are not observed, because observe_every is %d",
		                s->config.observe_every);
	HG__TRY(fetch_counts(s));
	const int64_t place = back < 0 ? -1 : place_of(s->watch, back);
	if (place < 0)
		return hg__fail(s->ctx, HG_ERR_STATE,
		                "step_observed: back is %lld, expected 0 or more and less than the %lld "
		                "observed steps that are remembered",
		                (long long)back, (long long)steps_of(s->watch));
	if (index < 0 || index >= s->watch->spots)
		return hg__fail(s->ctx, HG_ERR_RANGE,
		                "step_observed: index is %lld, expected 0 or more and less than %lld",
		                (long long)index, (long long)s->watch->spots);
	hg_observation ours = HG_OBSERVATION_INIT;
	const struct hg__observed_head *head = &hg__watch_ring(s->watch)->head[place];
	ours.step = head->step;
	ours.loss_scale = (double)head->scale;
	fill_identity(s->tape, &s->watch->spot[index], &ours);
	fill_counts(hg__watch_counts(s->watch, place, index), &ours);
	return hg__struct_write(observation, &ours, sizeof ours)
	           ? HG_OK
	           : unsized(s, "step_observed", "HG_OBSERVATION_INIT");
}

/* ---- all of them ---- */

/* The smallest headroom of all f16 values that were inspected. `most` is 0 if a value was not
 * inspected or is all zeros; an infinite value has headroom 0. */
static void fill_headroom(const struct hg__watch *w, hg_observer *o)
{
	o->headroom = INFINITY;
	for (int64_t i = 0; i < w->spots; i++) {
		const double amax = (double)hg__float_of_bits(hg__watch_most(w, i)),
		             bits = isfinite(amax) ? hg__headroom(HG_F16, amax) : 0.0;
		if (w->spot[i].gradient || w->spot[i].mat.dtype != HG_F16 || !(bits < o->headroom))
			continue;
		o->headroom = bits;
		o->headroom_name = w->spot[i].name;
	}
}

hg_status hg_step_observer(hg_step *s, hg_observer *observer)
{
	if (!s)
		return HG_ERR_ARG;
	HG__TRY(check_present(s, observer, "step_observer", "observer"));
	HG__TRY(fetch_counts(s));
	hg_observer ours = HG_OBSERVER_INIT;
	ours.headroom = INFINITY;
	if (s->watch) {
		ours.every = (int)s->watch->every;
		ours.whole = s->watch->inspections == 1;
		ours.tensors = s->watch->spots;
		ours.inspections = s->watch->inspections;
		ours.steps = steps_of(s->watch);
		fill_headroom(s->watch, &ours);
	}
	return hg__struct_write(observer, &ours, sizeof ours)
	           ? HG_OK
	           : unsized(s, "step_observer", "HG_OBSERVER_INIT");
}
