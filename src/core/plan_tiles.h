/* Tiles: one orientation of a graph as small dense matrices, for tensor cores. They make sums of
 * unit weights faster where neighbouring rows share neighbours. */
#ifndef HG_CORE_PLAN_TILES_H
#define HG_CORE_PLAN_TILES_H

#include "core/context.h"
#include "core/csr.h"

HG_EXTERN_C_BEGIN

/* A window is HG__TILE_ROWS neighbouring rows. It lists its distinct columns in ascending order,
 * each with a mask of 16 counts of two bits: how often the column is an entry of rows 0, 1, .. 15
 * of the window. A column that is an entry of one row more than HG__TILE_MOST times is listed again
 * for the rest. The list is padded to groups of HG__TILE_COLUMNS with a column that the window
 * already has, with mask 0:
 *
 *     sum over entries (i, j) of X[j, :]  =  sum over the columns k of i's window of
 *                                            count(mask k, i) X[id k, :]
 *
 * So a row of X that several of the 16 rows use is gathered once.
 *
 * An item is the work of one warp: some groups of one window. A window of more than 3/2 of an
 * item's length is cut into parts of about that length, whose sums go to staging slots of 16 rows.
 * Split s owns slots first .. last-1, which are added in this order. Every other window is one
 * item, also a window without entries (an item of 0 groups). The items with the most groups come
 * first. The length of an item is HG__TILE_GROUPS or 1/HG__TILE_ITEMS of all groups, whichever is
 * more.
 *
 * Derivation: 128 groups gather 2048 rows. The chain of dependent loads at an item's beginning,
 * about 2 us, and its 16 rows of staging are small beside that. An H200 runs 132 * 16 items at
 * once, so 16384 items are 8 rounds, and the last rounds consist of short items. */
enum {
	HG__TILE_ROWS = 16,
	HG__TILE_COLUMNS = 16,
	HG__TILE_MOST = 3,
	HG__TILE_GROUPS = 128,
	HG__TILE_ITEMS = 16384
};

/* Groups group .. group + groups - 1 of one window, and the staging slot of their sums. */
struct hg__tile_item {
	int32_t group, groups, window, slot; /* slot -1: the item is the whole window */
};
/* A window that is cut into several items; their sums are in slots first .. last - 1. */
struct hg__tile_split {
	int32_t window, first, last;
};
struct hg__tiles {
	/* columns: listed columns, without the padding */
	int64_t windows, columns, groups, items, splits, slots;
	int32_t *id; /* [groups * 16] device */
	/* [groups * 16] device: bits 2r and 2r + 1 count row r of the window */
	uint32_t *mask;
	struct hg__tile_item *item;   /* [items] device */
	struct hg__tile_split *split; /* [splits] device */
};

/* When tiles save time. reuse = entries / listed columns. Measured on an H200 in one run, f16, unit
 * weights, F = 32 / 64 / 128, in ms:
 *
 *                                            tiles                parts by length
 *     communities side by side, reuse 3.89   0.34 / 0.56 / 1.10   0.56 / 0.89 / 1.99
 *                              (gathers alone: 0.51 / 0.89 / 1.63)
 *     reddit-local, reuse 1.89               0.84 / 1.43 / 2.87   0.69 / 1.11 / 2.11
 *     reddit-like, products-like, reuse 1.0  tiles are slower
 *
 * A listed column takes 13.2 to 13.8 / 21.8 to 23.5 / 42.8 to 47.2 ps, and an entry without tiles
 * 5.6 to 6.0 / 8.9 to 9.7 / 18.4 to 19.9 ps (rows that share columns find them in the first-level
 * cache there, too). The slowest column against the fastest entry breaks even at a reuse of
 * 2.46 / 2.64 / 2.57. So tiles save at least m * 5.6 ps * (1 - 2.64 / reuse) for m entries. They
 * must save the 15 us of work that they add (derived: a flag, a check for values that are not
 * finite, and a kernel that then finds nothing to do):
 *
 *     reuse >= 2.64 / (1 - 15 us / (m * 5.6 ps))    and    reuse >= 3, which saves 12 % of the time
 *
 * The limit is 3 from 22 M entries on and 7.3 at 2^22; smaller graphs get no tiles. Widths below 32
 * were not measured.
 *
 * The windows of these graphs have 110 groups and more. Where a window has few groups, two further
 * costs count: the padding, and the beginning and end of an item, when its warp waits. That wait is
 * 3 us, in which an H200 with 2112 items at once gathers 64 columns for each of them (derived).
 * reuse is therefore computed as entries per column's worth of work (hg__tile_work). */
#define HG__TILE_ENTRIES ((int64_t)1 << 22)
#define HG__TILE_WIDTH 32
enum { HG__TILE_ITEM = 64 };
/* The work of a window with this many listed columns, in columns. */
static inline int64_t hg__tile_work(int64_t listed)
{
	return (listed + HG__TILE_COLUMNS - 1) / HG__TILE_COLUMNS * HG__TILE_COLUMNS + HG__TILE_ITEM;
}
double hg__tiles_least_reuse(int64_t entries); /* entries >= HG__TILE_ENTRIES */

/* The conditions under which tiles are built: their reuse is at least `reuse`, and device memory
 * then still has room for `reserve` bytes and for the staging of `staged` columns. */
struct hg__tile_terms {
	double reuse;
	size_t reserve;
	int64_t staged;
};

/* Estimates the reuse from a sample of at most 64 windows, about a million entries. Only csr.col is
 * read from the device. */
HG_NODISCARD hg_status hg__tiles_sample(hg_context *ctx, const struct hg__csr *csr,
                                        const int64_t *host_rowptr, double *reuse);

/* Builds tiles. *tiles is NULL where the conditions are not met (the log says why) or where the
 * device has no use for tiles. */
HG_NODISCARD hg_status hg__tiles_build(hg_context *ctx, const struct hg__csr *csr,
                                       const int64_t *host_rowptr,
                                       const struct hg__tile_terms *terms,
                                       struct hg__tiles **tiles);
size_t hg__tiles_bytes(const struct hg__tiles *tiles);
void hg__tiles_free(hg_context *ctx, struct hg__tiles *tiles);

/* Bytes of f32 staging for an aggregation into `cols` columns. */
static inline size_t hg__tiles_staging(int64_t slots, int64_t cols)
{
	return (size_t)slots * HG__TILE_ROWS * (size_t)((cols + 7) / 8 * 8) * sizeof(float);
}

/* Windows cut into items, in host memory. first [windows + 1]: the first group of each window. */
struct hg__tile_cut {
	int64_t groups, items, splits, slots, length; /* length: groups of an item */
	int32_t *first;
	struct hg__tile_item *item;
	struct hg__tile_split *split;
	int64_t *next;                 /* index of the next item of each length, the longest first */
	size_t windows, room, lengths; /* elements of first; of item and of split; of next */
};
/* listed [windows]: the listed columns of each window, without the padding. */
HG_NODISCARD hg_status hg__tiles_cut(hg_context *ctx, int64_t windows, const int32_t *listed,
                                     struct hg__tile_cut *cut);
void hg__tiles_cut_free(hg_context *ctx, struct hg__tile_cut *cut);

static inline int64_t hg__tile_windows(int64_t rows)
{
	return (rows + HG__TILE_ROWS - 1) / HG__TILE_ROWS;
}

HG_EXTERN_C_END
#endif
