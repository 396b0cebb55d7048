#include "precision/range.h"

#include <math.h>

#include "harness.h"
#include "precision/half.h"

static struct hg__narrowing narrowing(double bound)
{
	const struct hg__narrowing n = {.bound = bound,
	                                .rounding.depth = 1,
	                                .rounding.sums.whole = INFINITY,
	                                .state = HG_F16,
	                                .unproved = HG_UNPROVED_GUARD};
	return n;
}

static hg_verdict verdict(struct hg__narrowing n)
{
	return hg__resolve(&n).verdict;
}

static void f32_narrows_nothing(void)
{
	struct hg__narrowing n = narrowing(1e30);
	n.state = HG_F32;
	CHECK_EQ_I(verdict(n), HG_EXACT);
	CHECK_WITHIN(hg__resolve(&n).bound, 1e30, 1e23);
	n.bound = INFINITY;
	CHECK(hg__resolve(&n).verdict == HG_EXACT && isinf(hg__resolve(&n).bound));
	n.bound = 3.4028235e38; /* with its rounding it may exceed the largest float */
	CHECK(isinf(hg__resolve(&n).bound));
}

static void bound_of_65520_allows_for_rounding(void)
{
	CHECK_EQ_I(verdict(narrowing(0)), HG_PROVED);
	CHECK_EQ_I(verdict(narrowing(65504)), HG_PROVED);
	CHECK_EQ_I(verdict(narrowing(65519)), HG_PROVED);
	CHECK_EQ_I(verdict(narrowing(65520)), HG_GUARDED);
	/* one rounding in f32 may make it 65520 */
	CHECK_EQ_I(verdict(narrowing(65519.999)), HG_GUARDED);
	struct hg__narrowing deep = narrowing(65500);
	CHECK_EQ_I(verdict(deep), HG_PROVED);
	deep.rounding.depth = 10000;
	CHECK_EQ_I(verdict(deep), HG_GUARDED);
}

static void unknown_bounds_are_not_proved(void)
{
	CHECK_EQ_I(verdict(narrowing(INFINITY)), HG_GUARDED);
	CHECK_EQ_I(verdict(narrowing((double)NAN)), HG_GUARDED);
	struct hg__narrowing n = narrowing(1);
	n.rounding.depth = 1e9; /* no bound on the error of the sum holds */
	CHECK_EQ_I(verdict(n), HG_GUARDED);
	n = narrowing(1);
	n.accumulate = HG_ACC_F16_NAIVE;
	n.rounding.sums = (struct hg__sums){.terms = 3, .term = (double)NAN, .whole = INFINITY};
	CHECK_EQ_I(verdict(n), HG_GUARDED);
}

static void policy_decides_about_unproved_results(void)
{
	struct hg__narrowing n = narrowing(1e6);
	CHECK_EQ_I(verdict(n), HG_GUARDED);
	CHECK(hg__resolve(&n).bound == 65504);
	n.unproved = HG_UNPROVED_PROMOTE;
	CHECK_EQ_I(verdict(n), HG_PROMOTED);
	CHECK_WITHIN(hg__resolve(&n).bound, 1e6, 1);
	n.unproved = HG_UNPROVED_REFUSE;
	CHECK_EQ_I(verdict(n), HG_REFUSED);
	CHECK(isinf(hg__resolve(&n).bound));
	n.bound = 10;
	CHECK_EQ_I(verdict(n), HG_PROVED);
}

/* The resulting bound holds for the stored number: any sum in f32 within the bound, rounded to
 * f16. */
static void bound_covers_the_stored_value(void)
{
	for (int i = 0; i < 200000; i++) {
		const double bound = ldexp(1 + test_uniform(), (int)test_below(46) - 30);
		struct hg__narrowing n = narrowing(bound);
		n.rounding.depth = (double)test_below(100);
		const struct hg__resolved r = hg__resolve(&n);
		const double worst = bound * (1 + n.rounding.depth * 0x1p-24);
		if (r.verdict == HG_PROVED)
			CHECK((double)hg_half_to_float(hg_half_from_double(worst)) <= r.bound &&
			      r.bound <= 65504);
		else
			CHECK(hg_half_from_double(bound * (1 + 110 * 0x1p-24)) >= 0x7C00);
	}
}

/* A hub with 70,000 neighbours of value 10. If it is scaled after the sum, 700,000 does not fit. If
 * every batch is scaled, 640 fits, whatever the degree. */
static void discretized_sums_are_proved_at_any_degree(void)
{
	struct hg__narrowing n = narrowing(10);
	n.rounding.depth = 100;
	struct hg__sums *sums = &n.rounding.sums;
	*sums = (struct hg__sums){.terms = 70000, .term = 10, .whole = INFINITY};
	n.accumulate = HG_ACC_F16_NAIVE;
	CHECK(hg__partial(n.accumulate, sums) == 700000);
	CHECK_EQ_I(verdict(n), HG_GUARDED);
	n.accumulate = HG_ACC_F16_DISCRETIZED;
	CHECK(hg__partial(n.accumulate, sums) == 640);
	sums->terms = 60;
	CHECK_EQ_I(verdict(n), HG_PROVED);
	sums->term = 1024;
	CHECK_EQ_I(verdict(n), HG_PROVED); /* 60 * 1024 = 61440 */
	sums->terms = 64;
	CHECK_EQ_I(verdict(n), HG_GUARDED); /* 64 * 1024 = 65536 */
	sums->whole = 60000;
	CHECK(hg__partial(n.accumulate, sums) == 60000);
	sums->terms = 3;
	CHECK_EQ_I(verdict(n), HG_PROVED);
	sums->term = sums->whole = INFINITY;
	CHECK(hg__partial(HG_ACC_F32, sums) == 0);
	sums->terms = 0;
	CHECK(hg__partial(HG_ACC_F16_NAIVE, sums) == 0);
}

static void partial_sums_do_not_matter_in_f32(void)
{
	struct hg__narrowing n = narrowing(10);
	n.rounding.sums = (struct hg__sums){.terms = 70000, .term = INFINITY, .whole = INFINITY};
	CHECK_EQ_I(verdict(n), HG_PROVED);
}

static struct hg__decision assuming(double unconditional, double assumed, hg_unproved unproved)
{
	struct hg__narrowing n[HG__ASSUMPTIONS] = {narrowing(unconditional), narrowing(assumed)};
	n[HG__ASSUMED].unproved = unproved;
	return hg__decide(n);
}

/* A result that is proved for all weights is proved. One that is proved for the assumed weights is
 * guarded, whatever the policy does with an unproved result. */
static void assumed_bounds_are_guarded(void)
{
	for (int u = HG_UNPROVED_GUARD; u <= HG_UNPROVED_REFUSE; u++) {
		const struct hg__decision sure = assuming(100, 10, (hg_unproved)u),
		                          assumed = assuming(1e9, 10, (hg_unproved)u);
		CHECK_EQ_I(sure.verdict, HG_PROVED);
		CHECK(sure.bound[HG__ASSUMED] > 10 && sure.bound[HG__ASSUMED] < 10.01 &&
		      sure.bound[HG__UNCONDITIONAL] > 100 && sure.bound[HG__UNCONDITIONAL] < 100.1);
		CHECK_EQ_I(assumed.verdict, HG_GUARDED);
		CHECK(assumed.bound[HG__ASSUMED] < 10.01 && assumed.bound[HG__UNCONDITIONAL] == 65504);
	}
	CHECK_EQ_I(assuming(1e9, 1e9, HG_UNPROVED_GUARD).verdict, HG_GUARDED);
	CHECK(assuming(1e9, 1e9, HG_UNPROVED_GUARD).bound[HG__ASSUMED] == 65504);
	CHECK_EQ_I(assuming(1e9, 1e9, HG_UNPROVED_REFUSE).verdict, HG_REFUSED);
	const struct hg__decision promoted = assuming(1e12, 1e9, HG_UNPROVED_PROMOTE);
	CHECK_EQ_I(promoted.verdict, HG_PROMOTED);
	CHECK_WITHIN(promoted.bound[HG__ASSUMED], 1e9, 1e3);
	CHECK_WITHIN(promoted.bound[HG__UNCONDITIONAL], 1e12, 1e6);
}

static void evidence_names_where_a_bound_comes_from(void)
{
	CHECK_EQ_I(hg__evidence_of(10, 10), HG_EVIDENCE_PROVED);
	CHECK_EQ_I(hg__evidence_of(INFINITY, 10), HG_EVIDENCE_MEASURED);
	CHECK_EQ_I(hg__evidence_of(INFINITY, INFINITY), HG_EVIDENCE_UNKNOWN);
	CHECK_EQ_I(hg__evidence_of(INFINITY, (double)NAN), HG_EVIDENCE_UNKNOWN);
}

static void worse_of_two_verdicts_is_kept(void)
{
	CHECK_EQ_I(hg__verdict_worse(HG_PROVED, HG_GUARDED), HG_GUARDED);
	CHECK_EQ_I(hg__verdict_worse(HG_REFUSED, HG_PROMOTED), HG_REFUSED);
	CHECK_EQ_I(hg__verdict_worse(HG_EXACT, HG_PROVED), HG_EXACT);
	CHECK_EQ_I(hg__verdict_worse(HG_EXACT, HG_PROMOTED), HG_PROMOTED);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(f32_narrows_nothing),
	    TEST(bound_of_65520_allows_for_rounding),
	    TEST(unknown_bounds_are_not_proved),
	    TEST(policy_decides_about_unproved_results),
	    TEST(bound_covers_the_stored_value),
	    TEST(discretized_sums_are_proved_at_any_degree),
	    TEST(partial_sums_do_not_matter_in_f32),
	    TEST(assumed_bounds_are_guarded),
	    TEST(evidence_names_where_a_bound_comes_from),
	    TEST(worse_of_two_verdicts_is_kept),
	};
	return RUN_TESTS(argc, argv, cases);
}
