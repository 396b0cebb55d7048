#include <stdlib.h>

#include "autograd/plan.h"

/* Places buffers with known lifetimes in one arena: the largest first, each into the smallest gap
 * that is free during its whole life, or else behind all buffers that are in use at the same time.
 * O(k^2) for k buffers, of which a deep model has a few hundred. */

/* Larger first. Ties are broken by index, so that the plan does not depend on the sort. */
static int compare_size(const void *a, const void *b)
{
	const struct hg__span *const *x = a, *const *y = b;
	if ((*x)->bytes != (*y)->bytes)
		return (*x)->bytes < (*y)->bytes ? 1 : -1;
	return *x < *y ? -1 : *x > *y;
}

static int live_together(const struct hg__span *a, const struct hg__span *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* placed: in the order of their offsets. */
static size_t best_fit(const struct hg__span *span, struct hg__span *const *placed, int64_t count)
{
	size_t end = 0, best = 0, best_gap = SIZE_MAX;
	for (int64_t i = 0; i < count; i++) {
		if (!live_together(span, placed[i]))
			continue;
		const size_t gap = placed[i]->offset > end ? placed[i]->offset - end : 0,
		             after = placed[i]->offset + placed[i]->bytes;
		if (gap >= span->bytes && gap < best_gap) {
			best = end;
			best_gap = gap;
		}
		end = after > end ? after : end;
	}
	return best_gap < SIZE_MAX ? best : end;
}

static void insert_by_offset(struct hg__span *span, struct hg__span **placed, int64_t count)
{
	int64_t i = count;
	for (; i > 0 && placed[i - 1]->offset > span->offset; i--)
		placed[i] = placed[i - 1];
	placed[i] = span;
}

hg_status hg__arena_place(hg_context *ctx, struct hg__tape_plan *plan)
{
	const int64_t count = plan->spans;
	plan->arena_bytes = 0;
	if (count == 0)
		return HG_OK;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 2 * (size_t)count, sizeof(struct hg__span *), "the memory plan",
	                       &memory));
	struct hg__span **order = memory, **placed = order + count;
	for (int64_t i = 0; i < count; i++)
		order[i] = &plan->span[i];
	qsort(order, (size_t)count, sizeof *order, compare_size);
	for (int64_t i = 0; i < count; i++) {
		order[i]->offset = best_fit(order[i], placed, i);
		insert_by_offset(order[i], placed, i);
		const size_t end = order[i]->offset + order[i]->bytes;
		plan->arena_bytes = end > plan->arena_bytes ? end : plan->arena_bytes;
	}
	hg__host_free(ctx, memory, 2 * (size_t)count * sizeof(struct hg__span *));
	return HG_OK;
}
