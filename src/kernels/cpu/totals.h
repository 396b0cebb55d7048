#ifndef HG_KERNELS_CPU_TOTALS_H
#define HG_KERNELS_CPU_TOTALS_H

#include "kernels/cpu/rows.h"

/* A sum over rows in f64 and a count: blocks of rows in order, then the blocks in order. */
struct hg__totals {
	double sum;
	int64_t count;
};
typedef void (*hg__totals_fn)(const void *env, int64_t row, struct hg__totals *totals);

/* Asks for workspace. work: element operations in all. */
HG_NODISCARD hg_status HG__CPU(totals)(hg_context *ctx, int64_t rows, int64_t work, hg__totals_fn f,
                                       const void *env, struct hg__totals *result);

#endif
