/* Cuts windows into items and sorts these by length, the longest first. This is a counting sort, so
 * items of equal length stay in the order of their windows. */
#include "core/buffer.h"
#include "core/plan_tiles.h"

static int64_t groups_of(int32_t listed)
{
	return (listed + HG__TILE_COLUMNS - 1) / HG__TILE_COLUMNS;
}

static int64_t longest_item(int64_t length)
{
	return length * 3 / 2;
}

static int64_t parts_of(int64_t groups, int64_t length)
{
	return groups <= longest_item(length) ? 1 : (groups + length - 1) / length;
}

void hg__tiles_cut_free(hg_context *ctx, struct hg__tile_cut *cut)
{
	hg__host_free(ctx, cut->first, cut->windows * sizeof *cut->first);
	hg__host_free(ctx, cut->item, cut->room * sizeof *cut->item);
	hg__host_free(ctx, cut->split, cut->room * sizeof *cut->split);
	hg__host_free(ctx, cut->next, cut->lengths * sizeof *cut->next);
}

static hg_status allocate_cut(hg_context *ctx, struct hg__tile_cut *cut)
{
	void *first = NULL, *item = NULL, *split = NULL, *next = NULL;
	hg_status status =
	    hg__host_alloc(ctx, cut->windows, sizeof *cut->first, "tiles: first groups", &first);
	if (status == HG_OK)
		status = hg__host_alloc(ctx, cut->room, sizeof *cut->item, "tiles: items", &item);
	if (status == HG_OK)
		status = hg__host_alloc(ctx, cut->room, sizeof *cut->split, "tiles: splits", &split);
	if (status == HG_OK)
		status = hg__host_alloc(ctx, cut->lengths, sizeof *cut->next, "tiles: places", &next);
	cut->first = first;
	cut->item = item;
	cut->split = split;
	cut->next = next;
	if (status < 0)
		hg__tiles_cut_free(ctx, cut);
	return status;
}

/* Counts the items of each length and sets cut->next[k] to the index of the first item whose length
 * is k groups below the longest. A window that is cut into p parts has groups / p groups in each,
 * rounded up or down. */
static void count_lengths(int64_t windows, const int32_t *listed, struct hg__tile_cut *cut)
{
	const int64_t longest = longest_item(cut->length);
	for (int64_t w = 0; w < windows; w++) {
		const int64_t groups = groups_of(listed[w]), parts = parts_of(groups, cut->length),
		              longer = groups % parts;
		cut->next[longest - groups / parts + 1] += parts - longer;
		if (longer)
			cut->next[longest - groups / parts] += longer;
	}
	for (int64_t k = 0; k <= longest; k++)
		cut->next[k + 1] += cut->next[k];
}

static void put_item(struct hg__tile_cut *cut, int64_t group, int64_t groups, int64_t window,
                     int64_t slot)
{
	const struct hg__tile_item item = {(int32_t)group, (int32_t)groups, (int32_t)window,
	                                   (int32_t)slot};
	cut->item[cut->next[longest_item(cut->length) - groups]++] = item;
}

static void cut_window(struct hg__tile_cut *cut, int64_t first, int64_t window, int64_t groups)
{
	const int64_t parts = parts_of(groups, cut->length), longer = groups % parts;
	if (parts == 1) {
		put_item(cut, first, groups, window, -1);
		return;
	}
	const struct hg__tile_split split = {(int32_t)window, (int32_t)cut->slots,
	                                     (int32_t)(cut->slots + parts)};
	cut->split[cut->splits++] = split;
	for (int64_t k = 0; k < parts; k++)
		put_item(cut, first + k * (groups / parts) + (k < longer ? k : longer),
		         groups / parts + (k < longer), window, cut->slots++);
}

hg_status hg__tiles_cut(hg_context *ctx, int64_t windows, const int32_t *listed,
                        struct hg__tile_cut *cut)
{
	*cut = (struct hg__tile_cut){.windows = (size_t)windows + 1};
	for (int64_t w = 0; w < windows; w++)
		cut->groups += groups_of(listed[w]);
	if (cut->groups > INT32_MAX)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "tiles: %lld groups, expected at most %d",
		                (long long)cut->groups, INT32_MAX);
	cut->length = cut->groups / HG__TILE_ITEMS > HG__TILE_GROUPS ? cut->groups / HG__TILE_ITEMS
	                                                             : HG__TILE_GROUPS;
	cut->lengths = (size_t)longest_item(cut->length) + 2;
	for (int64_t w = 0; w < windows; w++)
		cut->items += parts_of(groups_of(listed[w]), cut->length);
	cut->room = (size_t)cut->items;
	HG__TRY(allocate_cut(ctx, cut));
	count_lengths(windows, listed, cut);
	int64_t group = 0;
	for (int64_t w = 0; w < windows; w++) {
		cut->first[w] = (int32_t)group;
		cut_window(cut, group, w, groups_of(listed[w]));
		group += groups_of(listed[w]);
	}
	cut->first[windows] = (int32_t)group;
	return HG_OK;
}
