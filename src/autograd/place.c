/* Places the tensors of a tape in its arena, where they stay so long that an observer can inspect
 * them. arena.c finds the offsets.
 *
 * An inspection sees the tensors that are complete and still in their place, so fewer inspections
 * need tensors that stay longer. A single one at the end of the step would keep them all, which
 * takes about twice the arena of a tape that trains. But the backward pass frees memory as it goes
 * on: if one inspection takes the values at the end of the forward pass, the gradients of a chain
 * of nodes fit where these values were.
 *
 * So the step is cut into stretches, and a tensor stays up to the end of the stretch in which it
 * becomes complete. From the start of the step, each stretch is as long as the limit on the arena
 * allows. This makes the fewest stretches, because tensors of one stretch take no memory from the
 * others. */
#include "autograd/observe.h"
#include "autograd/tape.h"
#include "halfgraph/observe.h"

/* The observer may take a 20th of the arena that the step needs (or `spare`, observe.h). */
#define STAY_SHARE 20

void hg_tape_observe(hg_tape *tape, int on)
{
	if (hg__tape_open(tape, "hg_tape_observe"))
		tape->observing.room = on ? HG__ROOM_ALL : HG__ROOM_NONE;
}

/* ---- when each span is ready ---- */

static void mark_ready(struct hg__tape_plan *plan, int32_t span, int32_t position)
{
	if (span >= 0 && plan->span[span].ready < 0)
		plan->span[span].ready = position;
}

/* Entries from the last to the first, as the backward pass runs: a gradient that several values
 * share is ready with the first of them. */
static void find_ready(const struct hg__recording *recording, struct hg__tape_plan *plan)
{
	for (int64_t i = 0; i < plan->spans; i++) {
		plan->span[i].until = plan->span[i].last;
		plan->span[i].ready = -1;
	}
	for (int64_t k = 0; k < recording->entries; k++)
		if (hg__is_watched(recording, plan, k))
			mark_ready(plan, plan->value[recording->entry[k].node.out].span,
			           plan->entry[k].position);
	for (int64_t k = recording->entries - 1; k >= 0; k--)
		for (int i = 0; i < recording->entry[k].node.n_in; i++)
			if (hg__completes(recording, plan, k, i))
				mark_ready(plan, plan->value[hg__root_of(recording, k, i)].grad_span,
				           hg__position_back(plan, k));
}

/* ---- placing ---- */

/* Spans that become ready after position `from` and up to `to` stay up to `to`. Spans that become
 * ready later stay no longer than the step needs them; earlier ones have their length already. */
static hg_status place_stretch(hg_tape *tape, int32_t from, int32_t to)
{
	struct hg__tape_plan *plan = &tape->plan;
	tape->observing.stays = 0;
	for (int64_t i = 0; i < plan->spans; i++) {
		struct hg__span *span = &plan->span[i];
		if (span->ready > from)
			span->last = span->ready <= to && span->until < to ? to : span->until;
		tape->observing.stays |= span->last > span->until;
	}
	return hg__arena_place(tape->ctx, plan);
}

hg_status hg__tape_tighten(hg_tape *tape)
{
	return place_stretch(tape, -1, -1);
}

/* The position by which the next inspection must come if no span stays for it. */
static int32_t next_inspection_due(const struct hg__tape_plan *plan, int32_t from)
{
	int32_t position = hg__position_end(plan);
	for (int64_t i = 0; i < plan->spans; i++)
		if (plan->span[i].ready > from && plan->span[i].until < position)
			position = plan->span[i].until;
	return position;
}

/* Finds the longest stretch after `from` for which the arena takes at most `limit` bytes. A stretch
 * up to next_inspection_due takes no more memory than a step without an observer, so it always
 * fits. */
static hg_status find_stretch(hg_tape *tape, int32_t from, size_t limit, int32_t *to)
{
	int32_t fits = next_inspection_due(&tape->plan, from),
	        fails = hg__position_end(&tape->plan) + 1;
	for (int32_t tried = fails - 1; fails - fits > 1; tried = fits + (fails - fits) / 2) {
		HG__TRY(place_stretch(tape, from, tried));
		if (tape->plan.arena_bytes <= limit)
			fits = tried;
		else
			fails = tried;
	}
	*to = fits;
	return place_stretch(tape, from, fits);
}

hg_status hg__tape_place(hg_tape *tape)
{
	const int32_t end = hg__position_end(&tape->plan);
	find_ready(&tape->recording, &tape->plan);
	HG__TRY(hg__tape_tighten(tape));
	if (!tape->plan.trains || tape->observing.room == HG__ROOM_NONE)
		return HG_OK;
	if (tape->observing.room == HG__ROOM_ALL)
		return place_stretch(tape, -1, end);
	const size_t needed = tape->plan.arena_bytes,
	             limit = needed + hg__larger(needed / STAY_SHARE, tape->observing.spare);
	for (int32_t from = -1; from < end;)
		HG__TRY(find_stretch(tape, from, limit, &from));
	return HG_OK;
}
