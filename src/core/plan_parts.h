/* The list of a plan's parts by length (struct hg__plan_part in csr.h), built in host memory. */
#ifndef HG_CORE_PLAN_PARTS_H
#define HG_CORE_PLAN_PARTS_H

#include "core/csr.h"

HG_EXTERN_C_BEGIN

/* Class of a part with this many entries, 0 .. HG__PART_CLASSES-1: more than 256 entries, 9 to 256,
 * 5 to 8, 3 or 4, 2, 1, none. Parts of the first HG__PART_SORTED classes are sorted by length. */
enum { HG__PART_SORTED = 2 };
int hg__part_class(int64_t entries);

/* A plan in host memory from which parts are listed. */
struct hg__part_source {
	int64_t items, parts;
	const int64_t *item_edge;
	const int32_t *item_row;
	const int64_t *rowptr;
};

/* Number of parts: one for each row, and one more for each item that has edges of a row without
 * finishing it. */
int64_t hg__parts_count(int64_t items, const int64_t *item_edge, const int32_t *item_row,
                        int64_t rows, const int64_t *rowptr);

/* Writes out [parts]; class c is out[first[c]] .. out[first[c+1]-1]. near: neighbouring rows use
 * the same columns, so parts are sorted only within blocks of neighbouring rows. */
HG_NODISCARD hg_status hg__parts_order(hg_context *ctx, const struct hg__part_source *source,
                                       int near, struct hg__plan_part *out,
                                       int64_t first[HG__PART_CLASSES + 1]);

/* Sets *near to whether neighbouring rows use neighbouring columns, judged from a sample of the
 * entries. device_col is device memory. */
HG_NODISCARD hg_status hg__plan_near(hg_context *ctx, int64_t rows, int64_t cols,
                                     const int64_t *rowptr, const int32_t *device_col, int *near);

HG_EXTERN_C_END
#endif
