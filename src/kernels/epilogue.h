/* What kernels do to a result before they store it: a bias, an activation and dropout. */
#ifndef HG_KERNELS_EPILOGUE_H
#define HG_KERNELS_EPILOGUE_H

#include "core/mat.h"
#include "kernels/functions.h"

HG_EXTERN_C_BEGIN

/* Activation and dropout, the end of an epilogue, applied before a kernel's store:
 *
 *     y = dropout(f(x))
 *
 * The activation f is one of the first HG__ACT_EPILOGUES functions, in an aggregation and in
 * attention one of the first HG__ACT_SUM_EPILOGUES. Dropout is as in hg__dropout_args. All zero:
 * y = x. */
struct hg__act_drop {
	int act; /* 0: f(x) = x; else 1 + hg__act */
	float act_p, p;
	uint64_t key;
	const int64_t *step;
};
/* The epilogue of an aggregation, computed in f32 before the one narrowing:
 *
 *     y = dropout(f((x + beta (1 + *beta_p) Z) + b))
 *
 * z: of Y's shape and type, or absent; it may be X, or share Y's memory. b: [1, cols of Y] of Y's
 * type, or absent. beta_p: f32 in device memory, or NULL (0). All zero: y = x. */
struct hg__sum_epilogue {
	struct hg__mat z, b;
	float beta;
	const float *beta_p;
	struct hg__act_drop act_drop;
};
static inline int hg__has_sum_epilogue(const struct hg__sum_epilogue *e)
{
	return e->z.data || e->b.data || e->act_drop.act || e->act_drop.p > 0.0f;
}

/* How many heads of the width of `one` the columns of `many` are; 1 where there are no columns. 0:
 * they are no whole number of them. An epilogue begins with the mean over the heads. */
static inline int64_t hg__heads_of_mean(const struct hg__mat *many, const struct hg__mat *one)
{
	if (many->cols == one->cols)
		return 1;
	return one->cols > 0 && many->cols % one->cols == 0 ? many->cols / one->cols : 0;
}

HG_EXTERN_C_END
#endif
