/* Totals over rows (totals.h): first by blocks of BLOCK_ROWS rows, then over the blocks. */
#include "kernels/cpu/totals.h"

/* A total has 16 bytes, and hg__reduction_bytes reserves 32 bytes for 256 rows. */
#define BLOCK_ROWS 256

hg_status HG__CPU(totals)(hg_context *ctx, int64_t rows, int64_t work, hg__totals_fn f,
                          const void *env, struct hg__totals *result)
{
	const int64_t blocks = hg__ceil_div(rows, BLOCK_ROWS);
	void *memory;
	HG__TRY(hg__workspace(ctx, (size_t)blocks * sizeof(struct hg__totals), &memory));
	struct hg__totals *part = memory;
#pragma omp parallel for num_threads(hg__team(ctx, work)) schedule(static)
	for (int64_t b = 0; b < blocks; b++) {
		struct hg__totals mine = {0.0, 0};
		for (int64_t r = b * BLOCK_ROWS; r < hg__min((b + 1) * BLOCK_ROWS, rows); r++)
			f(env, r, &mine);
		part[b] = mine;
	}
	*result = (struct hg__totals){0.0, 0};
	for (int64_t b = 0; b < blocks; b++) {
		result->sum += part[b].sum;
		result->count += part[b].count;
	}
	return HG_OK;
}
