/* out[0] = max |X| over the finite elements, out[1] = the number of elements that are not
 * finite. */
#include "kernels/cpu/rows.h"

/* Updates *largest with max |x| over the n elements that are finite, and adds the number of the
 * others to *others. */
static void update_amax(int64_t n, const float *x, float *largest, int64_t *others)
{
	hg__v16 best = {0};
	hg__i16 bad = {0};
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const hg__v16 v = hg__vload_n(x + i, (int)hg__min(HG__LANES, n - i));
		const hg__v16 size = (hg__v16)((hg__i16)v & 0x7FFFFFFF);
		const hg__i16 finite = size <= 0x1.fffffep127f;
		bad += 1 + finite; /* a true lane is -1 */
		best = hg__vselect(finite, hg__vmax(size, best), best);
	}
	int32_t count[HG__LANES];
	memcpy(count, &bad, sizeof(count));
	for (int i = 0; i < HG__LANES; i++)
		*others += count[i];
	const float mine = hg__vlargest(best);
	*largest = mine > *largest ? mine : *largest;
}

HG__NO_WORKSPACE(amax, amax_args)

hg_status HG__CPU(amax)(hg_context *ctx, const struct hg__amax_args *a)
{
	HG__TRY(HG__FIT(ctx, hg__is_state(&a->x) && a->out.dtype == HG_F32, "amax", &a->x, &a->out));
	const int64_t rows = a->x.rows, cols = a->x.cols;
	float largest = 0.0f;
	int64_t others = 0;
	/* A maximum and a count do not depend on the order of the rows. */
#pragma omp parallel for num_threads(hg__team(ctx, rows * cols)) \
    schedule(static) reduction(max : largest) reduction(+ : others)
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c += HG__WIDTH) {
			float scratch[HG__WIDTH];
			const int64_t n = hg__min(HG__WIDTH, cols - c);
			update_amax(n, hg__row(&a->x, r, c, n, scratch), &largest, &others);
		}
	((float *)a->out.data)[0] = largest;
	((float *)a->out.data)[1] = (float)others;
	return HG_OK;
}
