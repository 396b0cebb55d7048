/* Range rules: can a result overflow f16 when it is narrowed? An op describes a result that is
 * about to be stored (struct hg__narrowing), and hg__resolve returns the verdict: exact, proved,
 * guarded, promoted or refused, with the bound that later rules may use. */
#ifndef HG_PRECISION_RANGE_H
#define HG_PRECISION_RANGE_H

#include <stdint.h>

#include "halfgraph/policy.h"

HG_EXTERN_C_BEGIN

/* One result that is about to be stored, as the range rule of its op describes it. The verdict
 * depends on nothing else. */
struct hg__narrowing {
	/* Bound on |out| in exact arithmetic, and on the sum of the |terms| that are added up to it.
	 * INFINITY if no bound is known. */
	double bound;
	double depth; /* f32 roundings on the longest path to the result (bound.h) */
	/* Bound on intermediate f32 values where they may exceed |out|, such as a sum before it is
	 * divided to a mean. */
	double inner;
	/* The next four members are read for f16 accumulation only. partial bounds the |partial sums
	 * before scaling| (hg__partial). */
	double partial;
	double tiny;          /* absolute error of |out| from roundings near 0 */
	int64_t terms, batch; /* terms of the longest sum (0: no sum), and of a batch */
	/* For f16 with sums in f32: the result is stored as out * 2^-shift. All bounds here and in
	 * hg__resolved are bounds on |out| itself. */
	int shift;
	hg_dtype state;
	hg_accumulate accumulate;
	hg_unproved unproved;
};

struct hg__resolved {
	hg_verdict verdict;
	/* Bound on |out| as stored, rounding included. Guarded: it holds while the guard does not fire.
	 * Refused, or f32 out of range: INFINITY. */
	double bound;
	/* The same bound without the assumption on the weights. hg__resolve makes no
	 * assumption and sets it to `bound`. */
	double unconditional;
	/* Both bounds as the range rules give them, all roundings included, without the limit that a
	 * guard enforces. They may exceed 65504 where the verdict is not proved. A proved result is a
	 * finite half, so its rule bound has positive headroom. */
	double rule_bound, unconditional_rule_bound;
	int by_weights; /* for guarded: 1, the weights are checked; 0, the result itself */
};

/* The verdict on one result. A pure function of the range rule's bounds and the policy:
 *
 *     state f32                                   HG_EXACT. The bound is INFINITY where the
 *                                                 result or `inner` may overflow f32.
 *
 *     2^-shift bound (1 + gamma_depth(u32)) < 65520, and for f16 accumulation also
 *     (bound + tiny) growth < 65520 and
 *     partial (growth) < 65520                    HG_PROVED. 65520 is the least number
 *                                                 that rounds to infinity.
 *
 *     otherwise, by `unproved`                    HG_GUARDED, HG_PROMOTED (the caller stores
 *                                                 and accumulates in f32) or HG_REFUSED
 *
 * A finite half is at most 65504, so later rules may assume |out| <= 2^shift 65504 behind a
 * guard. */
struct hg__resolved hg__resolve(const struct hg__narrowing *n);

/* The verdict on a result with two bounds: `unconditional` holds for all weights, `assumed` holds
 * while the weights stay as small as the tape assumes.
 *
 *     proved by `unconditional`    HG_PROVED
 *     proved by `assumed`          HG_GUARDED, by checking that the weights are as assumed
 *     else                         by assumed->unproved: HG_GUARDED, by checking the result
 *                                  itself, HG_PROMOTED or HG_REFUSED */
struct hg__resolved hg__resolve_assuming(const struct hg__narrowing *unconditional,
                                         const struct hg__narrowing *assumed);

/* The evidence for a bound that is `bound` with the assumption on the weights and `unconditional`
 * without it. */
hg_evidence hg__evidence_of(double unconditional, double bound);

/* Largest |partial sum before scaling| of a row of `degree` terms of at most `term` each:
 *
 *     discretized   min(degree, batch) terms, added up in f16 (hg__largest_sum_f16)
 *     naive         degree * term, in exact arithmetic
 *     f32           0, because nothing is held in f16 before the store
 *
 * While `batch` such terms have a finite sum in f16, a discretized row of any length cannot
 * overflow before it is scaled. */
double hg__partial(hg_accumulate accumulate, int64_t degree, int64_t batch, double term);

/* The weaker of two verdicts, for reports. Proved and exact are equally strong, then come guarded,
 * promoted and refused. */
hg_verdict hg__verdict_worse(hg_verdict a, hg_verdict b);

HG_EXTERN_C_END
#endif
