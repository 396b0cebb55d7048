#ifndef HG_KERNELS_CPU_COLUMNS_H
#define HG_KERNELS_CPU_COLUMNS_H

#include "kernels/cpu/rows.h"

/* Add what rows r0 .. r1-1 give to the column sums of columns c0 .. c0+n-1 (n <= HG__WIDTH); second
 * is NULL unless two sums were asked for. */
typedef void (*hg__columns_fn)(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n,
                               float *first, float *second);

/* Column sums in a fixed order: blocks of rows, each summed from its first row to its last, then
 * the blocks. Depth: rows of a block + blocks. first, second: [cols] f32, second may be NULL. */
HG_NODISCARD hg_status HG__CPU(columns)(hg_context *ctx, int64_t rows, int64_t cols,
                                        hg__columns_fn f, const void *env, float *first,
                                        float *second);

#endif
