/* Range rules: can a result overflow f16 when it is narrowed? An op describes a result that is
 * about to be stored (struct hg__narrowing), and hg__resolve returns the verdict: exact, proved,
 * guarded, promoted or refused, with the bound that later rules may use. */
#ifndef HG_PRECISION_RANGE_H
#define HG_PRECISION_RANGE_H

#include <stdint.h>

#include "halfgraph/policy.h"
#include "precision/known.h"

HG_EXTERN_C_BEGIN

/* Sums in the policy's accumulation type, read where that is f16. Everything is a bound before the
 * sum is scaled. */
struct hg__sums {
	int64_t terms; /* of the longest sum; 0: the op adds up nothing, or always in f32 */
	double term;   /* on each |term| */
	double
	    whole;   /* on any sum of |terms|, as f16 arithmetic makes it; INFINITY: they are counted */
	double tiny; /* on the absolute error that roundings near 0 add to the result */
};

/* How a result is computed, as far as its roundings depend on it. */
struct hg__rounding {
	double depth; /* f32 roundings on the longest path to the result (bound.h) */
	/* Bound on intermediate f32 values where they may exceed the result, such as a sum before it is
	 * divided to a mean. 0: they do not. */
	double inner;
	struct hg__sums sums;
};

/* One result that is about to be stored. The verdict depends on nothing else. */
struct hg__narrowing {
	double bound; /* on |out| in exact arithmetic; INFINITY if nothing is known */
	struct hg__rounding rounding;
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
	/* The same bound as the range rules give it, without the limit that a guard enforces. It may
	 * exceed 65504 where the verdict is not proved. A proved result is a finite half, so its
	 * rule_bound has positive headroom. */
	double rule_bound;
};

/* The verdict on one result. A pure function of the range rule's bounds and the policy:
 *
 *     state f32                                   HG_EXACT. The bound is INFINITY where the
 *                                                 result or `inner` may overflow f32.
 *
 *     2^-shift bound (1 + gamma_depth(u32)) < 65520, and for f16 accumulation also
 *     (bound + tiny) growth < 65520 and
 *     partial sum (growth) < 65520                   HG_PROVED. 65520 is the least number
 *                                                 that rounds to infinity.
 *
 *     otherwise, by `unproved`                    HG_GUARDED, HG_PROMOTED (the caller stores
 *                                                 and accumulates in f32) or HG_REFUSED
 *
 * A finite half is at most 65504, so later rules may assume |out| <= 2^shift 65504 behind a
 * guard. */
struct hg__resolved hg__resolve(const struct hg__narrowing *n);

/* The verdict on a result of which one thing is known for all weights and another while the weights
 * stay as small as the tape assumes:
 *
 *     proved by n[HG__UNCONDITIONAL]    HG_PROVED
 *     proved by n[HG__ASSUMED]          HG_GUARDED, by checking that the weights are as assumed
 *     else                              by n[HG__ASSUMED].unproved: HG_GUARDED, by checking the
 *                                       result itself, HG_PROMOTED or HG_REFUSED */
struct hg__decision {
	hg_verdict verdict;
	int by_weights; /* for guarded: 1, the weights are checked; 0, the result itself */
	double bound[HG__ASSUMPTIONS], rule_bound[HG__ASSUMPTIONS]; /* as in hg__resolved */
};
struct hg__decision hg__decide(const struct hg__narrowing n[HG__ASSUMPTIONS]);

/* The evidence for a bound that is `bound` with the assumption on the weights and `unconditional`
 * without it. */
hg_evidence hg__evidence_of(double unconditional, double bound);

/* Largest |partial sum before scaling| that f16 arithmetic stores, sums->whole or less:
 *
 *     discretized   min(terms, HG_BATCH_EDGES) terms, added up in f16 (hg__largest_sum_f16)
 *     naive         terms * term, in exact arithmetic
 *     f32           0, because nothing is held in f16 before the store
 *
 * While HG_BATCH_EDGES such terms have a finite sum in f16, a discretized row of any length cannot
 * overflow before it is scaled. */
double hg__partial(hg_accumulate accumulate, const struct hg__sums *sums);

/* The weaker of two verdicts, for reports. Proved and exact are equally strong, then come guarded,
 * promoted and refused. */
hg_verdict hg__verdict_worse(hg_verdict a, hg_verdict b);

HG_EXTERN_C_END
#endif
