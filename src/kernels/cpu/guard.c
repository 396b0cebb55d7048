/* Sets the overflow flag if an element of x overflows in f16. It runs behind kernels that do not
 * check what they store. */
#include "kernels/cpu/guard.h"

HG__NO_WORKSPACE(guard, guard_args)

hg_status HG__CPU(guard)(hg_context *ctx, const struct hg__guard_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__is_state(&a->x), "guard", &a->x));
	const int64_t rows = a->x.rows, cols = a->x.cols;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c += HG__WIDTH) {
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, cols - c);
			hg__guard_numbers(&a->overflow, n, hg__row(&a->x, r, c, n, scratch));
		}
	return HG_OK;
}
