#ifndef HG_PRECISION_RANGE_H
#define HG_PRECISION_RANGE_H

#include <stdint.h>

#include "halfgraph/policy.h"

HG_EXTERN_C_BEGIN

/* One result about to be stored, as an op's range rule describes it: everything that the verdict
 * depends on. */
struct hg__narrowing {
	/* on |out| in exact arithmetic, and on the sum of the |terms| that make it; INFINITY: none
	 * known */
	double bound;
	double depth; /* f32 roundings on the longest way to it (bound.h) */
	/* bound on what is held in f32 on the way, where that may be more than |out|: a sum before its
	 * mean */
	double inner;
	/* f16 accumulation, else not read: bound on |partial sums before scaling|, hg__partial, */
	double partial;
	double tiny;          /* on what rounding near 0 adds to |out|, absolutely, */
	int64_t terms, batch; /* and the terms of the longest sum and of a batch (0: one term) */
	/* f16, sums in f32: stored x 2^-shift; what is told is told of |out| itself */
	int shift;
	hg_dtype state;
	hg_accumulate accumulate;
	hg_unproved unproved;
};

struct hg__resolved {
	hg_verdict verdict;
	/* on |out| as stored, rounding included. Guarded: while the guard holds. Refused, and f32 out
	 * of range: INFINITY */
	double bound;
	/* the same without what is only assumed of the weights; hg__resolve: as bound */
	double sure;
	/* Both as the rules have them, with every rounding, whatever the guard. Of what is not proved
	 * it may be beyond f16; what is proved is a finite half, so that its claim has headroom. */
	double claim, sure_claim;
	int by_weights; /* guarded: by the weights alone; else by the result itself */
};

/* Where rule, policy and bounds meet. A pure function:
 *
 *     state f32                                              HG_EXACT      its bound is INFINITY
 *                                                            where it, or inner, may overflow
 *     2^-shift bound * (1 + gamma_depth(u32)) < 65520, and with f16
 *     accumulation (bound + tiny) growth < 65520 and
 *     partial (growth) < 65520                               HG_PROVED      65520: what rounds to
 *                                                            infinity
 *     else by `unproved`                                     HG_GUARDED, HG_PROMOTED (the caller
 *                                                            stores f32, accumulated in f32) or
 *                                                            HG_REFUSED
 *
 * A half that is finite is at most 65504 (2^shift 65504), so that is what later rules may assume
 * behind a guard. */
struct hg__resolved hg__resolve(const struct hg__narrowing *n);

/* The same result bounded twice: by what holds for all weights (`sure`), and by what holds while
 * they stay as small as is assumed.
 *
 *     proved by `sure`        HG_PROVED
 *     proved by `assumed`     HG_GUARDED: the guard is that the weights are as assumed
 *     else                    by assumed->unproved: HG_GUARDED by the result itself, HG_PROMOTED,
 *                             HG_REFUSED */
struct hg__resolved hg__resolve_assuming(const struct hg__narrowing *sure,
                                         const struct hg__narrowing *assumed);

/* Where a bound comes from that is `bound` under what is assumed and `sure` without. */
hg_evidence hg__evidence_of(double sure, double bound);

/* Largest |partial sum before scaling| of a row of `degree` terms of at most `term` each, as f16
 * arithmetic makes it, or, naive, in exact arithmetic.
 *
 *     discretized: min(degree, batch) * term, added up in f16 (hg__largest_sum_f16)      naive:
 *         degree * term      f32: 0, nothing is held in f16 before the store
 *
 * batch * term < 65520 is the discretized guarantee: no row, however long, overflows inside. */
double hg__partial(hg_accumulate accumulate, int64_t degree, int64_t batch, double term);

/* The weakest of two verdicts, for reports: proved and exact are as good as each other, then
 * guarded, promoted, refused. */
hg_verdict hg__verdict_worse(hg_verdict a, hg_verdict b);

HG_EXTERN_C_END
#endif
