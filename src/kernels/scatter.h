/* The contracts of the kernels that work on a list of edges in any order (core/csr.h), included by
 * kernels.h. */
#ifndef HG_KERNELS_SCATTER_H
#define HG_KERNELS_SCATTER_H

#include "core/csr.h"
#include "core/mat.h"
#include "kernels/epilogue.h"
#include "kernels/overflow.h"

HG_EXTERN_C_BEGIN

/* Aggregation over a list of edges in any order:
 *
 *     Y[i, c] = alpha r_i * sum over edges e = (i, j) of the list of w[e, head of c] s_j X[j, c]
 *
 * and then the epilogue, as in hg__spmm_args. It takes no accumulation: terms are added as 64-bit
 * integers, rint(2^s w s_j x), so that the bits of a sum depend neither on the order of the list
 * nor on the device (precision/integer_sum.h). w s_j is rounded to f32, its product
 * with x and 2^s is exact, and so is the sum. It is rounded to f32 once, multiplied by narrow(alpha
 * r_i), and goes through the epilogue to the store.
 *
 * A term that is not finite has no integer. The sum is then what a sum of floats is: NaN where
 * there is a NaN, or infinities of both signs, else the infinity.
 *
 * - degree: the most edges of a row. If a row has more of them, its sum may wrap around.
 * - x_most, w_most: bounds on |X| and |w|; 0: those of the operands at hand, which are measured.
 *   s_j <= 1. s is that of degree * x_most * w_most.
 * - w: [m, heads] state or f32, in the order of the list, or absent (1; w_most is 1). heads divides
 *   cols.
 * - y: of X's type, or f32, with an epilogue of X's type. overflow: checks every element of an f16
 *   Y. */
struct hg__scatter_sum_args {
	struct hg__coo coo;
	struct hg__mat x, w, y;
	int heads;
	const float *row_scale, *col_scale;
	float alpha;
	double degree;
	float x_most, w_most;
	struct hg__sum_epilogue epilogue;
	struct hg__overflow_flag overflow;
};
/* Dot products on the edges of a list, as in hg__sddmm_dot_args:
 *
 *     E[e, k] = scale r_i s_j * sum over c in head k of A[i, c] * B[j, c],    e = (i, j) */
struct hg__scatter_dot_args {
	struct hg__coo coo;
	struct hg__mat a, b, e;
	int heads;
	float scale;
	const float *row_scale, *col_scale;
};

HG_EXTERN_C_END
#endif
