/* A plan while it is built in host memory, and its transfer to the device. */
#ifndef HG_CORE_PLAN_STORE_H
#define HG_CORE_PLAN_STORE_H

#include "core/buffer.h"
#include "core/csr.h"

HG_EXTERN_C_BEGIN

/* The arrays of struct hg__plan (csr.h) in host memory, under shorter names: edge, row and slot are
 * item_edge, item_row and item_slot; split, first and last are split_row, split_first and
 * split_last. */
enum {
	HG__PLAN_EDGE,
	HG__PLAN_ROW,
	HG__PLAN_SLOT,
	HG__PLAN_SPLIT,
	HG__PLAN_FIRST,
	HG__PLAN_LAST,
	HG__PLAN_ARRAYS
};
struct hg__host_plan {
	struct hg__buffer memory[HG__PLAN_ARRAYS];
	int64_t *edge, *first, *last;
	int32_t *row, *slot, *split;
	int64_t items, splits;
	int32_t work;
	/* Row r of the plan is row of_row[r] of the CSR, whose row pointers are of_ptr. NULL: it is
	 * row r. */
	const int32_t *of_row;
	const int64_t *of_ptr;
};

/* Bytes of all arrays of a plan with this many items and splits. */
size_t hg__plan_array_bytes(int64_t items, int64_t splits);

/* Allocates the arrays for this many items and splits. */
HG_NODISCARD hg_status hg__host_plan_alloc(hg_context *ctx, int64_t items, int64_t splits,
                                           struct hg__host_plan *p);
void hg__host_plan_free(hg_context *ctx, struct hg__host_plan *p);

/* Copies the plan to the device and lists its parts in the order `order`. rowptr [rows + 1]: of the
 * rows of the plan. */
HG_NODISCARD hg_status hg__plan_store(hg_context *ctx, const struct hg__host_plan *p, int64_t rows,
                                      const int64_t *rowptr, enum hg__part_order order,
                                      struct hg__plan **plan);

HG_EXTERN_C_END
#endif
