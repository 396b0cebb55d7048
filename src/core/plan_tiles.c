/* Builds tiles: the device counts the columns of each window, the host cuts the windows into items,
 * and the device writes columns and masks. */
#include "core/plan_tiles.h"

#include "core/buffer.h"

size_t hg__tiles_bytes(const struct hg__tiles *t)
{
	if (!t)
		return 0;
	return (size_t)t->groups * HG__TILE_COLUMNS * (sizeof *t->id + sizeof *t->mask) +
	       (size_t)t->items * sizeof *t->item + (size_t)t->splits * sizeof *t->split;
}

void hg__tiles_free(hg_context *ctx, struct hg__tiles *t)
{
	if (!t)
		return;
	const size_t columns = (size_t)t->groups * HG__TILE_COLUMNS;
	hg__device_free(ctx, t->id, columns * sizeof *t->id);
	hg__device_free(ctx, t->mask, columns * sizeof *t->mask);
	hg__device_free(ctx, t->item, (size_t)t->items * sizeof *t->item);
	hg__device_free(ctx, t->split, (size_t)t->splits * sizeof *t->split);
	hg__host_free(ctx, t, sizeof *t);
}

/* Allocates the device arrays. After a failure the arrays that were not allocated are NULL, so that
 * hg__tiles_free can release the rest. */
static hg_status allocate_tiles(hg_context *ctx, const struct hg__tile_cut *cut,
                                struct hg__tiles *t)
{
	const size_t columns = (size_t)t->groups * HG__TILE_COLUMNS, items = (size_t)cut->items,
	             splits = (size_t)cut->splits;
	void *memory[4] = {NULL};
	hg_status status = hg__device_alloc(ctx, columns * sizeof *t->id, "tiles: columns", &memory[0]);
	if (status == HG_OK)
		status = hg__device_alloc(ctx, columns * sizeof *t->mask, "tiles: masks", &memory[1]);
	if (status == HG_OK)
		status = hg__device_alloc(ctx, items * sizeof *t->item, "tiles: items", &memory[2]);
	if (status == HG_OK)
		status = hg__device_alloc(ctx, splits * sizeof *t->split, "tiles: splits", &memory[3]);
	t->id = memory[0];
	t->mask = memory[1];
	t->item = memory[2];
	t->split = memory[3];
	return status;
}

static hg_status fill_tiles(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                            const struct hg__tile_cut *cut, struct hg__tiles *t)
{
	const struct hg__backend *b = ctx->backend;
	struct hg__buffer first;
	HG__TRY(b->copy_in(ctx, t->item, cut->item, (size_t)cut->items * sizeof *t->item));
	if (cut->splits)
		HG__TRY(b->copy_in(ctx, t->split, cut->split, (size_t)cut->splits * sizeof *t->split));
	HG__TRY(hg__buffer_upload(ctx, (int64_t)cut->windows, sizeof *cut->first, cut->first,
	                          "tiles: first groups", &first));
	hg_status status = b->tiles_fill(ctx, csr, host_rowptr, first.data, t->id, t->mask);
	hg__buffer_free(ctx, &first);
	return status;
}

static hg_status make_tiles(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                            const struct hg__tile_cut *cut, int64_t columns,
                            struct hg__tiles **tiles)
{
	struct hg__buffer self;
	HG__TRY(hg__buffer_host(ctx, 1, sizeof **tiles, "tiles", &self));
	struct hg__tiles *t = self.data;
	*t = (struct hg__tiles){hg__tile_windows(csr->rows),
	                        columns,
	                        cut->groups,
	                        cut->items,
	                        cut->splits,
	                        cut->slots,
	                        NULL,
	                        NULL,
	                        NULL,
	                        NULL};
	hg_status status = allocate_tiles(ctx, cut, t);
	if (status == HG_OK)
		status = fill_tiles(ctx, csr, host_rowptr, cut, t);
	if (status < 0)
		hg__tiles_free(ctx, t);
	else
		*tiles = t;
	return status;
}

static size_t bytes_of_cut(const struct hg__tile_cut *cut)
{
	struct hg__tiles t = {.groups = cut->groups, .items = cut->items, .splits = cut->splits};
	return hg__tiles_bytes(&t);
}

static hg_status make_if_memory_allows(hg_context *ctx, const struct hg__csr *csr,
                                       const int64_t *host_rowptr,
                                       const struct hg__tile_terms *terms, const int32_t *listed,
                                       int64_t columns, struct hg__tiles **tiles)
{
	struct hg__tile_cut cut;
	size_t room = 0;
	HG__TRY(hg__tiles_cut(ctx, hg__tile_windows(csr->rows), listed, &cut));
	const size_t needed = bytes_of_cut(&cut) + hg__tiles_staging(cut.slots, terms->staged);
	hg_status status = hg__device_room(ctx, &room);
	if (status == HG_OK && (needed > room || terms->reserve > room - needed))
		hg__log(ctx, HG_LOG_INFO,
		        "graph: no tiles: they take %zu bytes, %zu are free, of which a run needs %zu",
		        needed, room, terms->reserve);
	else if (status == HG_OK)
		status = make_tiles(ctx, csr, host_rowptr, &cut, columns, tiles);
	hg__tiles_cut_free(ctx, &cut);
	return status;
}

/* Returns the number of listed columns of all windows, and sets *reuse to the entries per column's
 * worth of work. */
static int64_t sum_columns(const struct hg__csr *csr, const int32_t *listed, double *reuse)
{
	int64_t columns = 0, work = 0;
	for (int64_t w = 0; w < hg__tile_windows(csr->rows); w++) {
		columns += listed[w];
		work += hg__tile_work(listed[w]);
	}
	*reuse = (double)csr->m / (double)work;
	return columns;
}

hg_status hg__tiles_build(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                          const struct hg__tile_terms *terms, struct hg__tiles **tiles)
{
	const int64_t windows = hg__tile_windows(csr->rows);
	struct hg__buffer listed;
	*tiles = NULL;
	if (!ctx->backend->tiles_count || windows == 0)
		return HG_OK;
	HG__TRY(hg__buffer_host(ctx, windows, sizeof(int32_t), "tiles: columns of a window", &listed));
	hg_status status = ctx->backend->tiles_count(ctx, csr, host_rowptr, listed.data);
	double reuse = 0;
	const int64_t columns = status == HG_OK ? sum_columns(csr, listed.data, &reuse) : 0;
	if (status == HG_OK && reuse < terms->reuse)
		hg__log(ctx, HG_LOG_DEBUG,
		        "graph: no tiles: %.2f entries for a column's work, expected %.2f", reuse,
		        terms->reuse);
	else if (status == HG_OK)
		status = make_if_memory_allows(ctx, csr, host_rowptr, terms, listed.data, columns, tiles);
	if (*tiles)
		hg__log(ctx, HG_LOG_INFO, "graph: tiles, %.2f entries for a column's work: %zu bytes",
		        reuse, hg__tiles_bytes(*tiles));
	hg__buffer_free(ctx, &listed);
	return status;
}
