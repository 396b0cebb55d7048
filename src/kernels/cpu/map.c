/* Element-wise functions of one or two matrices (map.h). Rows are cut into blocks, and each block
 * is widened, computed and narrowed while it is in the cache. */
#include "kernels/cpu/map.h"

/* Elements of a block. The time for calling f is small compared with that of 1024 elements, and the
 * three blocks of a call (x, z and y) fit in the first-level cache. */
#define BLOCK 1024

hg_status HG__CPU(map)(hg_context *ctx, const char *kernel, hg__map_fn f, const void *env,
                       int keeps_zero, struct hg__mat x, struct hg__mat z, struct hg__mat y)
{
	HG__TRY(HG__FIT(ctx, hg__same(&x, &y) && (!z.data || hg__same(&x, &z)), kernel, &x, &z, &y));
	/* Matrices of equal layout are processed as one long row, which is faster where rows are
	 * short. Padding, if there is any, is then processed, too. */
	if (x.ld == y.ld && (!z.data || z.ld == y.ld) && (keeps_zero || x.cols == x.ld)) {
		x.cols = y.cols = x.rows * x.ld;
		x.rows = 1;
	}
	const int64_t blocks = hg__ceil_div(x.cols, BLOCK), total = x.rows * blocks;
#pragma omp parallel for num_threads(hg__team(ctx, total *BLOCK)) schedule(static)
	for (int64_t i = 0; i < total; i++) {
		float xs[BLOCK], zs[BLOCK], ys[BLOCK];
		const int64_t row = i / blocks, col = i % blocks * BLOCK, n = hg__min(BLOCK, x.cols - col);
		const float *xp = hg__row(&x, row, col, n, xs),
		            *zp = z.data ? hg__row(&z, row, col, n, zs) : NULL;
		float *yp = hg__row_begin(&y, row, col, ys);
		f(env, n, xp, zp, yp);
		hg__row_put(&y, row, col, n, yp);
	}
	return HG_OK;
}
