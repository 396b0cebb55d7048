/* Sums over the rows of a matrix for every column, in an order that does not depend on the
 * threads. */
#ifndef HG_KERNELS_CPU_COLUMNS_H
#define HG_KERNELS_CPU_COLUMNS_H

#include "kernels/cpu/rows.h"

/* Adds rows r0 .. r1-1 to the sums of columns c0 .. c0+n-1, where n <= HG__WIDTH. second is NULL
 * unless the caller of `columns` needs two sums. */
typedef void (*hg__columns_fn)(const void *env, int64_t r0, int64_t r1, int64_t c0, int64_t n,
                               float *first, float *second);

/* Computes one or two sums for every column. The rows are divided into blocks. Each block is summed
 * from its first row to its last, and then the blocks are added in order, so an error bound has
 * depth rows of a block + blocks. first, second: [cols] f32, and second may be NULL. */
HG_NODISCARD hg_status HG__CPU(columns)(hg_context *ctx, int64_t rows, int64_t cols,
                                        hg__columns_fn f, const void *env, float *first,
                                        float *second);

#endif
