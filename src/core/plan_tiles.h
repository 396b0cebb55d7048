#ifndef HG_CORE_PLAN_TILES_H
#define HG_CORE_PLAN_TILES_H

#include "core/context.h"
#include "core/csr.h"

HG_EXTERN_C_BEGIN

/* Tiles: one orientation of a graph as small dense matrices, for tensor cores. A window is
 * HG__TILE_ROWS neighbouring rows; its different columns stand in ascending order, each once, with
 * a mask of 16 counts of two bits: how often it is an entry of row 0, 1, .. 15 of the window. A
 * column that is an entry of one row more than HG__TILE_MOST times stands there again for the rest.
 * The columns of a window are padded to groups of HG__TILE_COLUMNS with a column that it has
 * already, of mask 0:
 *
 *     sum over entries (i, j) of X[j, :]  =  sum over the columns k of i's window of
 *                                         count(mask k, i) X[id k, :]
 *
 * so a row of X that several of the 16 rows use is gathered once.
 *
 * An item is what one warp does: some groups of one window. Windows of more than 3/2 of an item's
 * length are cut into parts of about that length, whose sums go to staging slots of 16 rows; split
 * s has slots first .. last-1, which are added in this order. Other windows are one item, those
 * without entries as well: of 0 groups. Items of most groups come first. Their length is
 * HG__TILE_GROUPS or what makes HG__TILE_ITEMS of all groups, whichever is more. (Derived: 128
 * groups gather 2048 rows, so that the loads which wait for each other at an item's beginning, some
 * 2 us, and its 16 rows of staging are small beside it. An H200 takes 132 * 16 items at once: 16384
 * are 8 rounds, the last ones of short items.) */
enum {
	HG__TILE_ROWS = 16,
	HG__TILE_COLUMNS = 16,
	HG__TILE_MOST = 3,
	HG__TILE_GROUPS = 128,
	HG__TILE_ITEMS = 16384
};

struct hg__tile_item {
	int32_t group, groups, window, slot; /* slot -1: the item is the whole window */
};
struct hg__tile_split {
	int32_t window, first, last;
};
struct hg__tiles {
	/* columns: listed, without the padding */
	int64_t windows, columns, groups, items, splits, slots;
	int32_t *id; /* [groups * 16] device */
	/* [groups * 16] device: row r of the window has bits 2r and 2r + 1 */
	uint32_t *mask;
	struct hg__tile_item *item;   /* [items] device */
	struct hg__tile_split *split; /* [splits] device */
};

/* When tiles are worth it. H200, f16, unit weights, F = 32 / 64 / 128, one run:
 *
 *     communities side by side, reuse 3.89     tiles 0.34 / 0.56 / 1.10 ms    parts by length
 *                                              0.56 / 0.89 / 1.99    gathers alone 0.51 / 0.89 /
 *                                              1.63
 *     reddit-local, reuse 1.89                 tiles 0.84 / 1.43 / 2.87       parts by length
 *                                              0.69 / 1.11 / 2.11
 *     reddit-like, products-like, reuse 1.0    tiles lose
 *
 * That is 13.2 to 13.8 / 21.8 to 23.5 / 42.8 to 47.2 ps a listed column against 5.6 to 6.0 / 8.9 to
 * 9.7 / 18.4 to 19.9 an entry (neighbours that share columns find them in the first-level cache
 * without tiles, too): even at a reuse of 2.46 / 2.64 / 2.57, the slowest column against the
 * fastest entry. So of m entries tiles save at least m 5.6 ps (1 - 2.64 / reuse), and should save
 * the 15 us that they add (derived: a flag, a look for what is not finite, a walk that has nothing
 * to do):
 *
 *     reuse >= 2.64 / (1 - 15 us / (m 5.6 ps)),  and >= 3, where that is 12 % of the time
 *
 * From 22 M entries on that is 3, at 2^22 it is 7.3, below there are none. Widths below 32 were not
 * measured.
 *
 * Windows of those graphs have 110 groups and more. Where they have few, the columns of padding
 * count as well, and an item's beginning and end, when it waits: 3 us, in which an H200, with 2112
 * items at once, gathers 64 columns for each of them (derived). So reuse is entries for each
 * column's worth of work. */
#define HG__TILE_ENTRIES ((int64_t)1 << 22)
#define HG__TILE_WIDTH 32
enum { HG__TILE_ITEM = 64 };
/* The work of a window with so many listed columns, in columns. */
static inline int64_t hg__tile_work(int64_t listed)
{
	return (listed + HG__TILE_COLUMNS - 1) / HG__TILE_COLUMNS * HG__TILE_COLUMNS + HG__TILE_ITEM;
}
double hg__tiles_least_reuse(int64_t entries); /* from HG__TILE_ENTRIES on */

/* What tiles have to respect: they are built if their reuse is at least this, and if device memory
 * then has room for `reserve` bytes and the staging of `cols` columns. */
struct hg__tile_terms {
	double reuse;
	size_t reserve;
	int64_t cols;
};

/* Reuse of a sample of the windows: at most 64 of them, some million entries. csr.col alone is read
 * on the device. */
HG_NODISCARD hg_status hg__tiles_sample(hg_context *ctx, const struct hg__csr *csr,
                                        const int64_t *host_rowptr, double *reuse);

/* *tiles is NULL, and the log says why, where the terms are not met, or where the device has no use
 * for tiles. */
HG_NODISCARD hg_status hg__tiles_build(hg_context *ctx, const struct hg__csr *csr,
                                       const int64_t *host_rowptr,
                                       const struct hg__tile_terms *terms,
                                       struct hg__tiles **tiles);
size_t hg__tiles_bytes(const struct hg__tiles *tiles);
void hg__tiles_free(hg_context *ctx, struct hg__tiles *tiles);

/* f32 staging of aggregations into `cols` columns. */
static inline size_t hg__tiles_staging(int64_t slots, int64_t cols)
{
	return (size_t)slots * HG__TILE_ROWS * (size_t)((cols + 7) / 8 * 8) * sizeof(float);
}

/* Windows cut into items, in host memory. first [windows + 1]: the first group of each window. */
struct hg__tile_cut {
	int64_t groups, items, splits, slots, length; /* of an item */
	int32_t *first;
	struct hg__tile_item *item;
	struct hg__tile_split *split;
	int64_t *place;               /* where the next item of each length goes, the longest first */
	size_t windows, room, places; /* elements of first; of item and of split; of place */
};
/* listed [windows]: columns of each, without the padding. */
HG_NODISCARD hg_status hg__tiles_cut(hg_context *ctx, int64_t windows, const int32_t *listed,
                                     struct hg__tile_cut *cut);
void hg__tiles_cut_free(hg_context *ctx, struct hg__tile_cut *cut);

static inline int64_t hg__tile_windows(int64_t rows)
{
	return (rows + HG__TILE_ROWS - 1) / HG__TILE_ROWS;
}

HG_EXTERN_C_END
#endif
