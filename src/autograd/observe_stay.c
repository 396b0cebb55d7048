/* How long tensors stay in the arena so that an observer finds them.
 *
 * A look sees what is complete and still in its place, so the fewer looks a step has, the longer
 * tensors stay. One look at the end of the step would keep them all, about twice the arena of a
 * tape that trains. But memory comes free as a backward goes on: where one look takes the values
 * when the forward pass is over, the gradients of a chain of nodes fit where these values were.
 *
 * So the step is cut into stretches, and what becomes complete in a stretch stays to its end.
 * From the front, each stretch is as long as the limit on the arena allows: that makes the fewest,
 * because what lies in one stretch takes no memory from the others. */
#include "autograd/observe.h"

/* The observer takes at most a 20th of the arena that the step needs. */
#define STAY_SHARE 20

void hg_tape_observe(hg_tape *tape, int on)
{
	if (hg__tape_open(tape, "hg_tape_observe"))
		tape->room = on ? HG__ROOM_ALL : HG__ROOM_NONE;
}

/* ---- when each span can be looked at ---- */

static void ready_at(hg_tape *tape, int32_t span, int32_t position)
{
	if (span >= 0 && tape->span[span].ready < 0)
		tape->span[span].ready = position;
}

/* Lines from the last to the first, as the backward runs: a gradient that several values share is
 * ready with the first of them. */
static void find_ready(hg_tape *tape)
{
	for (int64_t i = 0; i < tape->spans; i++) {
		tape->span[i].until = tape->span[i].last;
		tape->span[i].ready = -1;
	}
	for (int64_t k = 0; k < tape->entries; k++)
		if (hg__is_watched(tape, &tape->entry[k]))
			ready_at(tape, tape->value[tape->entry[k].node.out].span, tape->entry[k].position);
	for (int64_t k = tape->entries - 1; k >= 0; k--)
		for (int i = 0; i < tape->entry[k].node.n_in; i++)
			if (hg__completes(tape, k, i))
				ready_at(tape, tape->value[hg__root_of(tape, k, i)].grad_span,
				         2 * tape->alive - tape->entry[k].position);
}

/* ---- places ---- */

/* What is ready behind position `from` and up to `to` stays up to `to`. Spans that are ready later
 * last no longer than they are needed; earlier ones have their length already. */
static hg_status place(hg_tape *tape, int32_t from, int32_t to)
{
	tape->stays = 0;
	for (int64_t i = 0; i < tape->spans; i++) {
		struct hg__span *span = &tape->span[i];
		if (span->ready > from)
			span->last = span->ready <= to && span->until < to ? to : span->until;
		tape->stays |= span->last > span->until;
	}
	return hg__arena_place(tape->ctx, tape->span, tape->spans, &tape->arena_bytes);
}

hg_status hg__tape_tighten(hg_tape *tape)
{
	return place(tape, -1, -1);
}

/* Where the next look must come at the latest if nothing stays for its sake. */
static int32_t first_to_go(const hg_tape *tape, int32_t from)
{
	int32_t position = 2 * tape->alive + 1;
	for (int64_t i = 0; i < tape->spans; i++)
		if (tape->span[i].ready > from && tape->span[i].until < position)
			position = tape->span[i].until;
	return position;
}

/* The longest stretch behind `from` with which the arena takes no more than `limit`. Up to the
 * first span that goes it takes no more than without an observer. */
static hg_status find_stretch(hg_tape *tape, int32_t from, size_t limit, int32_t *to)
{
	int32_t fits = first_to_go(tape, from), fails = 2 * tape->alive + 2;
	for (int32_t tried = fails - 1; fails - fits > 1; tried = fits + (fails - fits) / 2) {
		HG__TRY(place(tape, from, tried));
		if (tape->arena_bytes <= limit)
			fits = tried;
		else
			fails = tried;
	}
	*to = fits;
	return place(tape, from, fits);
}

hg_status hg__tape_place(hg_tape *tape)
{
	const int32_t end = 2 * tape->alive + 1;
	find_ready(tape);
	HG__TRY(hg__tape_tighten(tape));
	if (!tape->trains || tape->room == HG__ROOM_NONE)
		return HG_OK;
	if (tape->room == HG__ROOM_ALL)
		return place(tape, -1, end);
	const size_t limit = tape->arena_bytes + tape->arena_bytes / STAY_SHARE;
	for (int32_t from = -1; from < end;)
		HG__TRY(find_stretch(tape, from, limit, &from));
	return HG_OK;
}
