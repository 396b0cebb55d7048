#include <math.h>

#include "kernels/cpu/rows.h"

/* {max |x| over the finite elements, number of the others} of n elements */
static void measure(int64_t n, const float *x, float *largest, int64_t *others)
{
	float best = *largest;
	int64_t bad = 0;
	for (int64_t i = 0; i < n; i++) {
		const float size = fabsf(x[i]);
		const int finite = size <= 0x1.fffffep127f;
		bad += !finite;
		best = finite && size > best ? size : best;
	}
	*largest = best;
	*others += bad;
}

hg_status HG__CPU(amax)(hg_context *ctx, const struct hg__amax_args *a)
{
	HG__TRY(hg__need(ctx, hg__is_state(&a->x) && a->out.dtype == HG_F32, "amax: operands do not fit"));
	const int64_t rows = a->x.rows, cols = a->x.cols;
	float largest = 0.0f;
	int64_t others = 0;
	/* a maximum and a count do not depend on the order */
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static) reduction(max : largest) reduction(+ : others)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c += HG__WIDTH) {
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, cols - c);
			measure(n, hg__row(&a->x, r, c, n, scratch), &largest, &others);
		}
	((float *)a->out.data)[0] = largest;
	((float *)a->out.data)[1] = (float)others;
	return HG_OK;
}
