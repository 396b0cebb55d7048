/* Counts of an observer that outlive its tape, or wait until it is in place again. */
#include <string.h>

#include "autograd/observe.h"
#include "autograd/tape.h"
#include "core/fnv.h"

/* Of the tensors in their order. */
static uint64_t hash_names(const struct hg__watch *w)
{
	uint64_t hash = HG__FNV_BEGIN;
	for (int64_t i = 0; i < w->spots; i++) {
		hash = hg__fnv(hash, &w->spot[i].gradient, sizeof w->spot[i].gradient);
		hash = hg__fnv(hash, w->spot[i].name, strlen(w->spot[i].name));
	}
	return hash;
}

/* The place of the counts of the same tensors; HG__PASTS: there are none. */
static int find(const struct hg__watch *w, const struct hg__watch_past *past)
{
	const uint64_t names = hash_names(w);
	int k = 0;
	while (k < HG__PASTS && !(past->left[k].state.bytes && past->left[k].spots == w->spots &&
	                          past->left[k].names == names))
		k++;
	return k;
}

/* Where the next counts are left: a free place, or that of the counts that were left first. */
static int next_place(const struct hg__watch_past *past)
{
	int best = 0;
	for (int k = 0; k < HG__PASTS; k++) {
		if (!past->left[k].state.bytes)
			return k;
		best = past->left[k].order < past->left[best].order ? k : best;
	}
	return best;
}

void hg__watch_leave(struct hg__watch *w, struct hg__watch_past *past)
{
	struct hg__left_counts *place = &past->left[next_place(past)];
	hg__buffer_free(w->tape->ctx, &place->state);
	*place = (struct hg__left_counts){w->state, w->spots, hash_names(w), past->leaves++};
	w->left = w->state.data;
	w->tape->observing.bytes -= w->state.bytes;
	w->state = (struct hg__buffer){0};
}

void hg__watch_follow(struct hg__watch *w, struct hg__watch_past *past)
{
	const int k = find(w, past);
	if (k == HG__PASTS)
		return;
	w->tape->observing.bytes += past->left[k].state.bytes - w->state.bytes;
	hg__buffer_free(w->tape->ctx, &w->state);
	w->state = past->left[k].state;
	past->left[k] = (struct hg__left_counts){.spots = 0};
}

int hg__watch_resumes(const struct hg__watch *w, const struct hg__watch_past *past,
                      const struct hg__watch *now)
{
	const int k = find(w, past);
	if (now && now->state.data == w->left)
		return now->spots == w->spots && hash_names(now) == hash_names(w);
	return k < HG__PASTS && past->left[k].state.data == w->left && !(now && next_place(past) == k);
}

void hg__watch_past_fini(hg_context *ctx, struct hg__watch_past *past)
{
	for (int k = 0; k < HG__PASTS; k++)
		hg__buffer_free(ctx, &past->left[k].state);
	*past = (struct hg__watch_past){.leaves = 0};
}
