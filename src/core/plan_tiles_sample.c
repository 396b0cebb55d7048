/* Estimates how many entries 16 neighbouring rows have for each column's worth of work, from a
 * sample of windows. Graphs without reuse are thereby rejected before their columns are sorted. */
#include "core/buffer.h"
#include "core/plan_tiles.h"

/* Sample k of 64 is the window at the fraction k / 64 with its bits in reverse order. The first
 * samples that fill the allowance of ENTRIES are then evenly spread, too. The allowance is 4 MB of
 * columns, a quarter of what the smallest graph with tiles has (HG__TILE_ENTRIES), and is reached
 * only where rows have more than 1024 entries. How far an estimate from 64 windows is off was not
 * measured. */
enum { WINDOWS = 64, BITS = 6, ENTRIES = 1 << 20 };

struct span {
	int64_t begin, end;
};

static struct span window_at(const struct hg__csr *csr, const int64_t *rowptr, int k)
{
	int64_t reversed = 0;
	for (int b = 0; b < BITS; b++)
		reversed |= (int64_t)(k >> b & 1) << (BITS - 1 - b);
	const int64_t window = hg__tile_windows(csr->rows) * reversed / WINDOWS,
	              row = window * HG__TILE_ROWS;
	const int64_t end = row + HG__TILE_ROWS < csr->rows ? row + HG__TILE_ROWS : csr->rows;
	const struct span span = {rowptr[row], rowptr[end]};
	return span;
}

/* Number of distinct values among col[0 .. count-1]. seen has one bit for each possible value; all
 * are 0 before and after. */
static int64_t count_distinct(const int32_t *col, int64_t count, uint64_t *seen)
{
	int64_t found = 0;
	for (int64_t e = 0; e < count; e++) {
		uint64_t *bits = &seen[col[e] / 64];
		const uint64_t bit = (uint64_t)1 << col[e] % 64;
		found += !(*bits & bit);
		*bits |= bit;
	}
	for (int64_t e = 0; e < count; e++)
		seen[col[e] / 64] = 0;
	return found;
}

static hg_status sample_windows(hg_context *ctx, const struct hg__csr *csr, const int64_t *rowptr,
                                int32_t *col, uint64_t *seen, double *reuse)
{
	int64_t entries = 0, work = 0;
	for (int k = 0; k < WINDOWS && entries < ENTRIES; k++) {
		const struct span w = window_at(csr, rowptr, k);
		if (w.begin == w.end)
			continue;
		HG__TRY(ctx->backend->copy_out(ctx, col, csr->col + w.begin,
		                               (size_t)(w.end - w.begin) * sizeof *col));
		work += hg__tile_work(count_distinct(col, w.end - w.begin, seen));
		entries += w.end - w.begin;
	}
	*reuse = work ? (double)entries / (double)work : 0;
	return HG_OK;
}

hg_status hg__tiles_sample(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                           double *reuse)
{
	struct hg__buffer col, seen;
	int64_t longest = 0;
	for (int k = 0; k < WINDOWS; k++) {
		const struct span w = window_at(csr, host_rowptr, k);
		longest = w.end - w.begin > longest ? w.end - w.begin : longest;
	}
	HG__TRY(hg__buffer_host(ctx, longest, sizeof(int32_t), "tiles: a window's columns", &col));
	hg_status status =
	    hg__buffer_host(ctx, csr->cols / 64 + 1, sizeof(uint64_t), "tiles: columns seen", &seen);
	if (status == HG_OK)
		status = sample_windows(ctx, csr, host_rowptr, col.data, seen.data, reuse);
	hg__buffer_free(ctx, &seen);
	hg__buffer_free(ctx, &col);
	return status;
}
