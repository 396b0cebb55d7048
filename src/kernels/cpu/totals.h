/* A sum over rows in f64 and a count. The rows are divided into blocks of fixed size; each block is
 * summed in order, and then the blocks are added in order, whatever the number of threads is. */
#ifndef HG_KERNELS_CPU_TOTALS_H
#define HG_KERNELS_CPU_TOTALS_H

#include "kernels/cpu/rows.h"

struct hg__totals {
	double sum;
	int64_t count;
};
typedef void (*hg__totals_fn)(const void *env, int64_t row, struct hg__totals *totals);

/* Calls f for every row and adds up. It uses the workspace. work: the number of element
 * operations. */
HG_NODISCARD hg_status HG__CPU(totals)(hg_context *ctx, int64_t rows, int64_t work, hg__totals_fn f,
                                       const void *env, struct hg__totals *result);

#endif
