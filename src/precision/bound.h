/* Bounds on rounding errors, computed in f64. Tests compare results against these bounds, so each
 * one is a theorem (Higham 2002, chapters 2 to 4) and not a tolerance that was tuned.
 *
 * `depth` is the number of roundings on the longest path from an operand to the result. A sum of k
 * products, in any order, has depth <= k; each further factor adds one. u is the unit roundoff of a
 * type (2^-11 for f16, 2^-24 for f32) and eta its smallest subnormal. Near 0 a rounding is off by
 * up to eta/2, which u does not cover. Sums never underflow; products do. */
#ifndef HG_PRECISION_BOUND_H
#define HG_PRECISION_BOUND_H

#include <stdint.h>

#include "halfgraph/dtype.h"

HG_EXTERN_C_BEGIN

/* Edges of one batch of the discretized reduction: after at most this many additions a partial sum
 * is scaled and added to the total.
 *
 * With batches of B, a row of D edges has B + D / B roundings on its longest path, the fewest where
 * B^2 = D: 64 suits hubs of 4096 edges. And a batch of 64 terms up to 65520 / 64 = 1023 cannot
 * overflow. */
#define HG_BATCH_EDGES 64

/* gamma_k(u) = k u / (1 - k u). k roundings change a result by at most this factor. The value is
 * INFINITY where k u >= 1, because no bound holds there. */
double hg__gamma(double k, double u);

/* Headroom of a number of size |x|, in bits: how many times it can double before it is rounded to
 * infinity, log2(overflow / |x|). It is positive exactly where the number is stored as a finite
 * one. The limit is 65520, not 65504: numbers from 65504 up to 65520 still round to a finite half.
 * INFINITY for 0, -INFINITY for an infinity. */
double hg__headroom(hg_dtype dtype, double x);

/* |narrow(x) - x| <= u |x| + eta/2 for |x| < overflow, and INFINITY for larger |x|. The bound is 0
 * for a type that is not a float. */
double hg__bound_narrow(hg_dtype to, double x);

/* Error of a sum of products that is computed in f32 and not narrowed:
 *
 *     E = gamma_depth(u32) * sum|a||x| + depth * eta32/2 */
double hg__bound_sum_f32(double depth, double abs_sum);

/* Depth of a sum of k products of numbers of type `of`, for hg__bound_sum_f32. For f32 it is k. For
 * f16 it covers tensor cores: they add the exact products of 8 columns (or 16) and the running sum
 * in one operation. Each of these 9 terms is truncated below 2 u32 of the largest, and so is the
 * result (Fasi, Higham, Mikaitis, Pranesh 2021). That makes 10 errors of 2 u32 for 8 terms: a depth
 * of 5/2 k. */
double hg__depth_dot(hg_dtype of, double k);

/* Depth of a sum of k halves, each counted one to three times, that tensor cores compute over tiles
 * (core/plan_tiles.h), with the parts of a window added up afterwards. Products are exact, and a
 * product with 0 adds no error. A block adds t > 0 terms and the running sum: all but the largest
 * of these are truncated, and so is the result. That makes t + 1 errors of 2 u32, or t errors in
 * the first block of a part. The part is then added to the others with 1 error of at most u32. For
 * t = 1 this is 4 u32 a term; for larger t it is less. */
double hg__depth_tiles(double k);

/* "Sum narrowed once": the sum of hg__bound_sum_f32, stored as type `to`. abs_sum = sum|a||x|, y is
 * the exact result.
 *
 *     B = E + u (|y| + E) + eta/2      (f16: u = 2^-11, eta = 2^-24; f32: B = E) */
double hg__bound_sum(hg_dtype to, double depth, double abs_sum, double y);

/* Error of a product whose operands carry errors of their own, for example because they were
 * narrowed: a is known to +-da and x to +-dx.
 *
 *     |a' x' - a x| <= |a| dx + |x| da + da dx */
double hg__bound_product(double a, double da, double x, double dx);

/* A neighbourhood sum  y = f * sum over k edges of (w s) x  in f16 arithmetic, batch by batch. w
 * and s are narrowed to f16; their product, and its product with x, are rounded to f16. At most
 * `batch` of these terms are added in f16. Each batch is multiplied by the narrowed f in f16, and
 * the batches are added in f16. If the plan splits the row over several items, the partial sums are
 * added as well.
 *
 *     depth   = min(k, batch) + batches + 6
 *     batches = ceil(k / batch) + pieces
 *     B = gamma_depth(u16) * |f| sum|w s x|
 *         + (1 + gamma) * eta16/2 * (|f| tiny + batches + (sum|w s x| if |f| < 2^-14))
 *
 * The 6 counts w, s, w s, (w s) x, f and the multiplication by f. The second line of B holds the
 * roundings near 0, each off by up to eta16/2. tiny = sum of 1 + |x| (1 + |w| + |s|) weights those
 * of the terms; it is 0 where there are neither weights nor column factors, because the terms are
 * then exact. Each scaled batch adds one such rounding, and a subnormal factor f adds one more. The
 * bound holds while nothing overflows (range.h). batch = 0 is the naive sum: one batch, however
 * long. pieces is the number of items with edges of the row, 1 if the row is not split. */
struct hg__sum_f16 {
	int64_t edges, batch, pieces;
	double factor, abs_sum, tiny;
};
double hg__depth_f16(int64_t edges, int64_t batch, int64_t pieces);

/* A sum of k halves in f16 arithmetic, in any order, is at most this factor times the sum of the
 * magnitudes of its terms:
 *
 *     min(1 + gamma_k(u16), 2)
 *
 * The limit of 2 holds for every k: fl(s + t) is the half nearest to s + t, and s itself is a half,
 * so |fl(s + t) - (s + t)| <= |t|. One addition therefore adds at most 2 |t|. */
double hg__growth_f16(double k);
/* The largest sum of k halves of at most `term` each, for small k: `term` rounded to f16, added up
 * k times in f16. Rounding is monotone, so no other terms, of any sign, give a larger sum or a
 * larger partial sum. INFINITY if the sum overflows. 64 terms of 1023.5 do not overflow, since
 * 64 * 1023.5 < 65520. 18 terms of 3634 do, although 18 * 3634 is less than 65520. */
double hg__largest_sum_f16(double term, int64_t k);
double hg__bound_sum_f16(const struct hg__sum_f16 *s);

HG_EXTERN_C_END
#endif
