/* The verdict on a narrowing to f16, as range.h defines it, and the bounds that later range rules
 * use. */
#include "precision/range.h"

#include <math.h>

#include "precision/bound.h"

/* bound * (1 + gamma), plus what roundings near 0 add. Each of these is off by up to half of the
 * smallest f32 subnormal, 2^-150, and factors of up to 2^23 may follow: 2^-127 for each rounding. 0
 * stays 0 (not 0 * INFINITY). A NaN stays a NaN and proves nothing. */
static double with_rounding(double bound, double depth)
{
	return bound == 0 ? 0
	                  : bound * (1 + hg__gamma(depth, hg_dtype_get(HG_F32)->u)) + depth * 0x1p-127;
}

/* The factor by which sums in f16 arithmetic may exceed the sum of their exact |terms|: inside,
 * before they are scaled, and as a whole. A term has six roundings besides the additions (bound.h).
 * A discretized sum first adds its batches and then the pieces of a split row. A row of at most one
 * batch is one piece. A longer row has at least four entries to a piece, since two neighbouring
 * items together have at least item_work >= 8 rows and edges (core/csr.h). */
struct growth {
	double inside, whole;
};
static struct growth growth_of(const struct hg__narrowing *n)
{
	const double u = hg_dtype_get(HG_F16)->u, terms = (double)n->rounding.sums.terms,
	             batch = n->accumulate == HG_ACC_F16_DISCRETIZED ? HG_BATCH_EDGES : terms;
	struct growth g = {.inside = (1 + hg__gamma(6, u)) * hg__growth_f16(fmin(terms, batch))};
	g.whole = g.inside;
	if (terms > batch)
		g.whole *= hg__growth_f16(terms / batch + 1) * hg__growth_f16(terms / 4 + 3);
	return g;
}

static struct hg__resolved resolve_unproved(hg_unproved choice, double in_f32)
{
	static const hg_verdict verdict[] = {[HG_UNPROVED_GUARD] = HG_GUARDED,
	                                     [HG_UNPROVED_PROMOTE] = HG_PROMOTED,
	                                     [HG_UNPROVED_REFUSE] = HG_REFUSED};
	const double bound[] = {[HG_UNPROVED_GUARD] = hg_dtype_get(HG_F16)->max,
	                        [HG_UNPROVED_PROMOTE] = in_f32,
	                        [HG_UNPROVED_REFUSE] = INFINITY};
	const struct hg__resolved out = {.verdict = verdict[choice], .bound = bound[choice]};
	return out;
}

/* The verdict for shift = 0: what is stored is the result itself. */
static struct hg__resolved resolve_stored(const struct hg__narrowing *n)
{
	const hg_dtype_facts *f16 = hg_dtype_get(HG_F16), *f32 = hg_dtype_get(HG_F32);
	const struct hg__rounding *rounding = &n->rounding;
	const double wide = with_rounding(n->bound, rounding->depth),
	             inner = with_rounding(rounding->inner, rounding->depth),
	             in_f32 = fmax(wide, inner) < f32->overflow ? wide : INFINITY;
	if (n->state != HG_F16) {
		const struct hg__resolved exact = {HG_EXACT, in_f32, in_f32};
		return exact;
	}
	const struct growth growth = growth_of(n);
	const int half_sums = n->accumulate != HG_ACC_F32;
	const double total =
	    half_sums && in_f32 > 0 ? (in_f32 + rounding->sums.tiny) * growth.whole : in_f32;
	const double partial = half_sums ? hg__partial(n->accumulate, &rounding->sums) *
	                                       (n->accumulate == HG_ACC_F16_NAIVE ? growth.inside : 1)
	                                 : 0;
	struct hg__resolved out = resolve_unproved(n->unproved, in_f32);
	out.rule_bound = total == 0 ? 0 : total * (1 + f16->u) + 0x1p-25;
	if (!(total < f16->overflow && partial < f16->overflow))
		return out;
	const double stored = total + hg__bound_narrow(HG_F16, total);
	out.verdict = HG_PROVED;
	out.bound = out.rule_bound = stored < f16->max ? stored : f16->max;
	return out;
}

static double scale_bound(double bound, int shift)
{
	return bound < (double)INFINITY ? ldexp(bound, shift) : bound;
}

/* Multiplying by a power of two causes no rounding in f32. What it may underflow is covered by the
 * eta16/2 that the narrowing adds. */
struct hg__resolved hg__resolve(const struct hg__narrowing *n)
{
	if (!n->shift)
		return resolve_stored(n);
	struct hg__narrowing stored = *n;
	stored.bound = scale_bound(n->bound, -n->shift);
	struct hg__resolved out = resolve_stored(&stored);
	out.bound = scale_bound(out.bound, n->shift);
	out.rule_bound = scale_bound(out.rule_bound, n->shift);
	return out;
}

/* The bound for all weights on a result that is stored as `assumed` says. A step whose guard fires
 * is skipped. Behind a guard a stored half is therefore at most 65504, even where the assumption on
 * the weights turns out wrong. */
static double unconditional_bound(const struct hg__narrowing n[HG__ASSUMPTIONS],
                                  const struct hg__resolved r[HG__ASSUMPTIONS])
{
	struct hg__narrowing in_f32 = n[HG__UNCONDITIONAL];
	if (r[HG__ASSUMED].verdict == HG_PROMOTED && r[HG__UNCONDITIONAL].verdict != HG_PROVED) {
		in_f32.state = HG_F32;
		in_f32.shift = 0;
		return hg__resolve(&in_f32).bound;
	}
	if (r[HG__UNCONDITIONAL].verdict == HG_PROVED || n[HG__ASSUMED].state != HG_F16)
		return r[HG__UNCONDITIONAL].bound;
	return scale_bound(hg_dtype_get(HG_F16)->max, n[HG__ASSUMED].shift);
}

struct hg__decision hg__decide(const struct hg__narrowing n[HG__ASSUMPTIONS])
{
	const struct hg__resolved r[HG__ASSUMPTIONS] = {hg__resolve(&n[HG__UNCONDITIONAL]),
	                                                hg__resolve(&n[HG__ASSUMED])};
	struct hg__decision out = {
	    .verdict = r[HG__ASSUMED].verdict,
	    .bound = {unconditional_bound(n, r), r[HG__ASSUMED].bound},
	    .rule_bound = {r[HG__UNCONDITIONAL].rule_bound, r[HG__ASSUMED].rule_bound}};
	if (r[HG__UNCONDITIONAL].verdict == HG_PROVED || r[HG__UNCONDITIONAL].verdict == HG_EXACT)
		out.verdict = r[HG__UNCONDITIONAL].verdict;
	else if (out.verdict == HG_PROVED) {
		out.verdict = HG_GUARDED;
		out.by_weights = 1;
	}
	return out;
}

hg_evidence hg__evidence_of(double unconditional, double bound)
{
	if (!(bound < (double)INFINITY))
		return HG_EVIDENCE_UNKNOWN;
	return bound < unconditional ? HG_EVIDENCE_MEASURED : HG_EVIDENCE_PROVED;
}

static double count_terms(hg_accumulate accumulate, const struct hg__sums *sums)
{
	const int64_t terms = sums->terms;
	if (accumulate == HG_ACC_F16_DISCRETIZED)
		return hg__largest_sum_f16(sums->term, terms < HG_BATCH_EDGES ? terms : HG_BATCH_EDGES);
	return accumulate == HG_ACC_F16_NAIVE && terms > 0 ? (double)terms * sums->term : 0;
}

double hg__partial(hg_accumulate accumulate, const struct hg__sums *sums)
{
	if (accumulate != HG_ACC_F32 && isnan(sums->term))
		return sums->term;
	return fmin(count_terms(accumulate, sums), sums->whole);
}

hg_verdict hg__verdict_worse(hg_verdict a, hg_verdict b)
{
	static const int rank[] = {
	    [HG_PROVED] = 0, [HG_EXACT] = 0, [HG_GUARDED] = 1, [HG_PROMOTED] = 2, [HG_REFUSED] = 3};
	return rank[b] > rank[a] ? b : a;
}
