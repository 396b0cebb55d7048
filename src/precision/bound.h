#ifndef HG_PRECISION_BOUND_H
#define HG_PRECISION_BOUND_H

#include <stdint.h>

#include "halfgraph/dtype.h"

HG_EXTERN_C_BEGIN

/* Error bounds, all theorems (Higham 2002, chapters 2 to 4), computed in f64. `depth` counts the
 * roundings on the longest way from an operand to the result: k products summed in any order have
 * depth <= k, one more for each further factor. eta is the smallest subnormal of a type: a rounding
 * of a number near 0 is off by up to eta/2 where u says less. Sums never underflow; products do. */

/* gamma_k(u) = k u / (1 - k u): k roundings move a result by at most this factor. INFINITY where k
 * u >= 1: no bound holds. */
double hg__gamma(double k, double u);

/* Headroom: how many bits a number of size |x| has left, times that it can double before it is
 * rounded to infinity: log2(overflow / |x|). Positive just where it is stored as a finite one: to
 * 65504 the last 16 of f16's range would have none. INFINITY for 0, -INFINITY for an infinity. */
double hg__headroom(hg_dtype dtype, double x);

/* |narrow(x) - x| <= u |x| + eta/2 while |x| < overflow; INFINITY beyond. 0 for a type that is not
 * a float. */
double hg__bound_narrow(hg_dtype to, double x);

/* Error of a sum of products computed in f32, not narrowed:
 *
 *     E = gamma_depth(u32) * sum|a||x| + depth * eta32/2 */
double hg__bound_sum_f32(double depth, double abs_sum);

/* Depth of a sum of k products of numbers of a type, for the function above. Halves: tensor cores
 * add the exact products of 8 columns (or 16) and the sum so far at once: each of the 9 is cut off
 * below 2 u32 of the largest, and so is the result (Fasi, Higham, Mikaitis, Pranesh 2021). These
 * are 10 errors of 2 u32 for 8 terms, 5/2 k. */
double hg__depth_dot(hg_dtype of, double k);

/* Depth of a sum of k halves, each once, twice or three times, that tensor cores make over tiles
 * (core/plan_tiles.h), parts of windows added up. Products are exact, and a product with 0 adds no
 * error; of a block with t > 0 terms and the sum so far all but the largest are cut off, and so is
 * the result: t + 1 errors of 2 u32, t where it is a part's first, and then the part is added to
 * the others: 1 error of u32 or less. With t = 1 that is 4 u32 a term, with more it is less. */
double hg__depth_tiles(double k);

/* "Sum narrowed once": the same, then stored as `to`. abs_sum = sum|a||x|, y the exact result.
 *
 *     B = E + u (|y| + E) + eta/2      (f16: u = 2^-11, eta = 2^-24; f32: B = E) */
double hg__bound_sum(hg_dtype to, double depth, double abs_sum, double y);

/* An operand that was itself narrowed brings its own error along: value x known to +-dx, multiplied
 * by a known to +-da.
 *
 *     |a' x' - a x| <= |a| dx + |x| da + da dx */
double hg__bound_product(double a, double da, double x, double dx);

/* A neighbourhood sum  y = f * sum over k edges of (w s) x  in f16 arithmetic, batch by batch: w
 * and s narrowed to f16, their product and its product with x rounded to f16, at most `batch` of
 * these added in f16, each batch multiplied by the narrowed f in f16, the batches added in f16, and
 * the pieces of a row that lies in several items of the plan added up too.
 *
 *     depth = min(k, batch) + batches + 6,   batches = ceil(k / batch) + pieces        (6: w, s, w
 *                                            s, (w s) x, f and the multiplication by it)
 *     B = gamma_depth(u16) * |f| sum|w s x| + (1 + gamma) * eta16/2 * (|f| tiny + batches + (sum|w
 *         s x| if |f| < 2^-14))
 *
 * The second part are the roundings near 0, off by up to eta16/2 each: tiny = sum of 1 + |x|
 * (1 + |w| + |s|) is what those of the terms are multiplied with (0 where there are neither weights
 * nor column factors: the terms are then exact), one for each batch scaled, and one for a factor
 * that is subnormal. Holds while nothing overflows (range.h). batch = 0: naive, one batch however
 * long. pieces: items with edges of the row, 1 if it is not split. */
struct hg__sum_f16 {
	int64_t edges, batch, pieces;
	double factor, abs_sum, tiny;
};
double hg__depth_f16(int64_t edges, int64_t batch, int64_t pieces);

/* A sum of k halves in f16 arithmetic, in any order, is at most this times the sum of their
 * magnitudes:
 *
 *     1 + gamma_k(u16), and never more than 2
 *
 * fl(s + t) is the half nearest to s + t, and s is a half, so |fl(s + t) - (s + t)| <= |t|: an
 * addition adds 2 |t| at most, however many there are. */
double hg__growth_f16(double k);
/* The largest sum of k halves of at most `term`, k small: that of k times `term` rounded to f16,
 * added up in f16. Rounding is monotone, so no other terms, of whatever sign, give a larger one, or
 * one on the way. INFINITY if it overflows: 64 terms of 1023.5 do not, 64 * 1023.5 < 65520; 18
 * terms of 3634 do, although 18 * 3634 is less. */
double hg__largest_sum_f16(double term, int64_t k);
double hg__bound_sum_f16(const struct hg__sum_f16 *s);

HG_EXTERN_C_END
#endif
