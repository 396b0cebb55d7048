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
	n.bound = 3.4028235e38; /* with its rounding it may pass the largest float */
	CHECK(isinf(hg__resolve(&n).bound));
}

static void the_border_is_65520_less_rounding(void)
{
	CHECK_EQ_I(verdict(narrowing(0)), HG_PROVED);
	CHECK_EQ_I(verdict(narrowing(65504)), HG_PROVED);
	CHECK_EQ_I(verdict(narrowing(65519)), HG_PROVED);
	CHECK_EQ_I(verdict(narrowing(65520)), HG_GUARDED);
	/* one f32 rounding may lift it to 65520 */
	CHECK_EQ_I(verdict(narrowing(65519.999)), HG_GUARDED);
	struct hg__narrowing deep = narrowing(65500);
	CHECK_EQ_I(verdict(deep), HG_PROVED);
	deep.rounding.depth = 10000;
	CHECK_EQ_I(verdict(deep), HG_GUARDED);
}

static void what_is_unknown_is_not_proved(void)
{
	CHECK_EQ_I(verdict(narrowing(INFINITY)), HG_GUARDED);
	CHECK_EQ_I(verdict(narrowing((double)NAN)), HG_GUARDED);
	struct hg__narrowing n = narrowing(1);
	n.rounding.depth = 1e9; /* no error bound holds */
	CHECK_EQ_I(verdict(n), HG_GUARDED);
	n = narrowing(1);
	n.accumulate = HG_ACC_F16_NAIVE;
	n.rounding.sums = (struct hg__sums){.terms = 3, .term = (double)NAN, .whole = INFINITY};
	CHECK_EQ_I(verdict(n), HG_GUARDED);
}

static void the_policy_decides_what_happens_unproved(void)
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

/* The bound that comes out holds for what is stored: any f32 sum within the bound, rounded. */
static void the_bound_covers_the_stored_value(void)
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

/* A star: a hub of 70,000 neighbours at 10. Scaled after the sum, 700,000 does not fit; batch by
 * batch, 640 does, whatever the degree. */
static void the_discretized_guarantee(void)
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

/* Proved for all weights is proved; proved for those that are assumed is guarded, whatever the
 * policy does with what is not proved at all. */
static void what_is_assumed_of_weights_is_guarded(void)
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

static void where_a_bound_comes_from(void)
{
	CHECK_EQ_I(hg__evidence_of(10, 10), HG_EVIDENCE_PROVED);
	CHECK_EQ_I(hg__evidence_of(INFINITY, 10), HG_EVIDENCE_MEASURED);
	CHECK_EQ_I(hg__evidence_of(INFINITY, INFINITY), HG_EVIDENCE_UNKNOWN);
	CHECK_EQ_I(hg__evidence_of(INFINITY, (double)NAN), HG_EVIDENCE_UNKNOWN);
}

static void worse_of_two_verdicts(void)
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
	    TEST(the_border_is_65520_less_rounding),
	    TEST(what_is_unknown_is_not_proved),
	    TEST(the_policy_decides_what_happens_unproved),
	    TEST(the_bound_covers_the_stored_value),
	    TEST(the_discretized_guarantee),
	    TEST(partial_sums_do_not_matter_in_f32),
	    TEST(what_is_assumed_of_weights_is_guarded),
	    TEST(where_a_bound_comes_from),
	    TEST(worse_of_two_verdicts),
	};
	return RUN_TESTS(argc, argv, cases);
}
