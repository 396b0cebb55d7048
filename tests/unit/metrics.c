/* Metrics: against values worked by hand, and against their definitions over pairs of rows. */
#include "halfgraph/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define NONE NAN
#define BOUND 1e-14

static double value_of(hg_metric metric, const hg_metric_data *data)
{
	double value = -1.0;
	CHECK_OK(hg_metric_compute(metric, data, &value));
	return value;
}

static hg_metric_data classes(int64_t rows, int64_t cols, const float *logits,
                              const int32_t *labels)
{
	hg_metric_data d = HG_METRIC_DATA_INIT;
	d.rows = rows;
	d.cols = cols;
	d.logits = logits;
	d.labels = labels;
	return d;
}

static hg_metric_data targets(int64_t rows, int64_t cols, const float *logits, const float *target)
{
	hg_metric_data d = classes(rows, cols, logits, NULL);
	d.targets = target;
	return d;
}

/* ---- classes ---- */

/* Six rows of three classes, predicted 0 0 1 1 2 0 (the last one by the first of two largest), with
 * labels 0 1 1 1 missing 2: 3 of 5 are right. TP 1 2 0, FP 2 0 0, FN 0 1 1. */
static const float three[] = {2, 1, 0, 5, 1, 1, 0, 1, 0, 0, 3, 1, 0, 0, 1, 4, 0, 4};
static const int32_t three_labels[] = {0, 1, 1, 1, -1, 2};

static void classes_by_hand(void)
{
	const hg_metric_data d = classes(6, 3, three, three_labels);
	CHECK_WITHIN(value_of(HG_METRIC_ACCURACY, &d), 3.0 / 5.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_MICRO_F1, &d), 6.0 / 10.0, BOUND);
	/* F1 of 2/4, 4/5 and 0 */
	CHECK_WITHIN(value_of(HG_METRIC_MACRO_F1, &d), (0.5 + 0.8 + 0.0) / 3.0, BOUND);
}

/* A class that is neither a label nor a prediction does not lower the mean. */
static void classes_that_do_not_occur(void)
{
	const float x[] = {1, 0, 0, 0, 0, 1, 0, 0};
	const int32_t labels[] = {0, 1};
	const hg_metric_data d = classes(2, 4, x, labels);
	CHECK_WITHIN(value_of(HG_METRIC_MACRO_F1, &d), 1.0, BOUND);
}

static void masked_rows_are_left_out(void)
{
	static const uint8_t mask[] = {1, 0, 1, 0, 1, 1};
	hg_metric_data d = classes(6, 3, three, three_labels);
	d.mask = mask; /* rows 0, 2 and 5; row 4 has no label */
	CHECK_WITHIN(value_of(HG_METRIC_ACCURACY, &d), 2.0 / 3.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_MICRO_F1, &d), 4.0 / 6.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_MACRO_F1, &d), (2.0 / 3.0 + 1.0 + 0.0) / 3.0, BOUND);
}

/* A row with a NaN predicts nothing: its label is missed, and no class is predicted wrongly. */
static void nan_logits_are_wrong(void)
{
	const float x[] = {NAN, 1, 0, 2, 2, NAN};
	const int32_t labels[] = {1, 1, 0};
	const hg_metric_data d = classes(3, 2, x, labels);
	CHECK_WITHIN(value_of(HG_METRIC_ACCURACY, &d), 1.0 / 3.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_MICRO_F1, &d), 2.0 / (2.0 + 0.0 + 2.0), BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_MACRO_F1, &d), (0.0 + 2.0 / 3.0) / 2.0, BOUND);
	CHECK(isnan(value_of(HG_METRIC_ROC_AUC, &d)));
	CHECK(isnan(value_of(HG_METRIC_AVERAGE_PRECISION, &d)));
}

/* Infinities of one sign are equal, also as the difference of two classes. */
static void infinite_logits_have_a_rank(void)
{
	const float x[] = {INFINITY, INFINITY, 0, 1, 1, 0, 0, INFINITY};
	const int32_t labels[] = {0, 1, 0, 1};
	const hg_metric_data d = classes(4, 2, x, labels);
	CHECK_WITHIN(value_of(HG_METRIC_ROC_AUC, &d), 1.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_ACCURACY, &d), 1.0, BOUND);
}

/* ---- several labels ---- */

/* Columns: all right; one of each kind of mistake; only zeros, never predicted. */
static const float several[] = {1, 2, -1, -1, 0, -2, 3, -4, -3, -2, 7, -1};
static const float several_targets[] = {1, 0, 0, 0, 0, NONE, 1, 1, 0, 0, 1, 0};

static void several_labels_by_hand(void)
{
	const hg_metric_data d = targets(4, 3, several, several_targets);
	CHECK_WITHIN(value_of(HG_METRIC_ACCURACY, &d), (1.0 + 0.5 + 1.0) / 3.0, BOUND);
	/* TP 2 + 1, FP 1, FN 1 */
	CHECK_WITHIN(value_of(HG_METRIC_MICRO_F1, &d), 6.0 / 8.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_MACRO_F1, &d), (1.0 + 0.5 + 0.0) / 3.0, BOUND);
	/* Column 1: the positives -4 and 7 against 2 and 0. The last column has no 1. */
	CHECK_WITHIN(value_of(HG_METRIC_ROC_AUC, &d), (1.0 + 0.5) / 2.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_AVERAGE_PRECISION, &d),
	             (1.0 + (1.0 / 1.0 + 2.0 / 4.0) / 2.0) / 2.0, BOUND);
}

/* The example of scikit-learn's documentation of both functions. */
static void ranking_of_scikit_learn(void)
{
	const float x[] = {0.1f, 0.4f, 0.35f, 0.8f}, t[] = {0, 0, 1, 1};
	const hg_metric_data d = targets(4, 1, x, t);
	CHECK_WITHIN(value_of(HG_METRIC_ROC_AUC, &d), 0.75, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_AVERAGE_PRECISION, &d), 0.5 + 0.5 * 2.0 / 3.0, BOUND);
}

static void equal_logits_count_half(void)
{
	const float x[] = {3, 3, 3, 3, 3}, t[] = {0, 1, 0, 1, 0};
	const hg_metric_data d = targets(5, 1, x, t);
	CHECK_WITHIN(value_of(HG_METRIC_ROC_AUC, &d), 0.5, 0.0);
	CHECK_WITHIN(value_of(HG_METRIC_AVERAGE_PRECISION, &d), 0.4, BOUND);
}

/* The definitions over pairs. Area: of all pairs of a positive and a negative, those in order.
 * Average precision: the mean over positives of the precision at their logit. */
static double area_of_pairs(int64_t n, const float *x, const float *t)
{
	double right = 0.0, pairs = 0.0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			if (t[i] > 0.5f && t[j] < 0.5f) {
				pairs += 1.0;
				right += x[i] > x[j] ? 1.0 : x[i] < x[j] ? 0.0 : 0.5;
			}
	return right / pairs;
}

static double precision_of_pairs(int64_t n, const float *x, const float *t)
{
	double sum = 0.0, positives = 0.0;
	for (int64_t i = 0; i < n; i++) {
		double above = 0.0, right = 0.0;
		for (int64_t j = 0; j < n; j++)
			if (x[j] >= x[i] && !isnan(t[j])) {
				above += 1.0;
				right += t[j] > 0.5f;
			}
		if (t[i] > 0.5f) {
			positives += 1.0;
			sum += right / above;
		}
	}
	return sum / positives;
}

static void ranking_against_pairs(void)
{
	enum { MOST = 60 };
	for (int k = 0; k < 400; k++) {
		float x[MOST], t[MOST], both[2 * MOST];
		int32_t labels[MOST];
		const int64_t n = 2 + test_below(MOST - 2), levels = 1 + test_below(12);
		for (int64_t i = 0; i < n; i++) {
			x[i] = (float)(test_below(levels) - 3);
			t[i] = i < 2 ? (float)i : test_below(5) == 0 ? NONE : (float)test_below(2);
			both[2 * i] = (float)test_below(100);
			both[2 * i + 1] = both[2 * i] + x[i];
			labels[i] = isnan(t[i]) ? -1 : (int32_t)t[i];
		}
		const hg_metric_data d = targets(n, 1, x, t), two = classes(n, 2, both, labels);
		const double area = area_of_pairs(n, x, t), precision = precision_of_pairs(n, x, t);
		CHECK_WITHIN(value_of(HG_METRIC_ROC_AUC, &d), area, BOUND);
		CHECK_WITHIN(value_of(HG_METRIC_ROC_AUC, &two), area, BOUND);
		CHECK_WITHIN(value_of(HG_METRIC_AVERAGE_PRECISION, &d), precision, BOUND);
		CHECK_WITHIN(value_of(HG_METRIC_AVERAGE_PRECISION, &two), precision, BOUND);
	}
}

/* ---- real targets ---- */

/* Errors 1 and 3 in the first column, 2 in the second, none in the third. */
static void errors_by_hand(void)
{
	const float x[] = {2, 4, 9, 7, 5, 9}, t[] = {1, 6, NONE, 10, NONE, NONE};
	const hg_metric_data d = targets(2, 3, x, t);
	CHECK_WITHIN(value_of(HG_METRIC_MAE, &d), (2.0 + 2.0) / 2.0, BOUND);
	CHECK_WITHIN(value_of(HG_METRIC_RMSE, &d), (sqrt(5.0) + 2.0) / 2.0, BOUND);
}

static void errors_of_nan_are_nan(void)
{
	const float x[] = {2, NAN}, t[] = {1, 2}, missing[] = {1, NONE};
	const hg_metric_data d = targets(2, 1, x, t), left_out = targets(2, 1, x, missing);
	CHECK(isnan(value_of(HG_METRIC_MAE, &d)));
	CHECK(isnan(value_of(HG_METRIC_RMSE, &d)));
	CHECK_WITHIN(value_of(HG_METRIC_MAE, &left_out), 1.0, BOUND);
}

/* ---- nothing to compare, and mistakes ---- */

static void undefined_is_nan(void)
{
	const float x[] = {1, 2}, ones[] = {1, 1}, none[] = {NONE, NONE};
	const int32_t unlabelled[] = {-1}, zero[] = {0};
	const hg_metric_data one_class = targets(2, 1, x, ones), nothing = targets(2, 1, x, none),
	                     empty = targets(0, 1, NULL, none), no_columns = targets(2, 0, NULL, none),
	                     no_label = classes(1, 2, x, unlabelled),
	                     one_label = classes(1, 2, x, zero);
	CHECK(isnan(value_of(HG_METRIC_ROC_AUC, &one_class)));
	CHECK(isnan(value_of(HG_METRIC_AVERAGE_PRECISION, &one_class)));
	CHECK(isnan(value_of(HG_METRIC_ROC_AUC, &one_label)));
	for (int m = HG_METRIC_ACCURACY; m <= HG_METRIC_RMSE; m++) {
		CHECK(isnan(value_of((hg_metric)m, &nothing)));
		CHECK(isnan(value_of((hg_metric)m, &empty)));
		CHECK(isnan(value_of((hg_metric)m, &no_columns)));
		if (hg_metric_fits((hg_metric)m, 1, 2))
			CHECK(isnan(value_of((hg_metric)m, &no_label)));
	}
}

static void mistakes_are_refused(void)
{
	const float x[] = {1, 2, 3}, half[] = {0, 0.5f, 1};
	const int32_t labels[] = {0}, wide[] = {3};
	double v = 0.0;
	hg_metric_data d = classes(1, 3, x, labels), unset = d, both = d, neither = d, negative = d,
	               without = d;
	unset.size = 0;
	both.targets = half;
	neither.labels = NULL;
	negative.rows = -1;
	without.logits = NULL;
	CHECK_STATUS(hg_metric_compute(HG_METRIC_NONE, &d, &v), HG_ERR_ARG);
	CHECK(isnan(v));
	CHECK_STATUS(hg_metric_compute((hg_metric)8, &d, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute((hg_metric)-1, &d, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, NULL, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &d, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &unset, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &both, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &neither, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &negative, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &without, &v), HG_ERR_ARG);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_MAE, &d, &v), HG_ERR_UNSUPPORTED);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ROC_AUC, &d, &v), HG_ERR_UNSUPPORTED);
	d.labels = wide;
	CHECK_STATUS(hg_metric_compute(HG_METRIC_ACCURACY, &d, &v), HG_ERR_RANGE);
	d = targets(1, 3, x, half);
	CHECK_STATUS(hg_metric_compute(HG_METRIC_MICRO_F1, &d, &v), HG_ERR_RANGE);
	CHECK_OK(hg_metric_compute(HG_METRIC_MAE, &d, &v));
}

static void names_and_directions(void)
{
	for (int m = HG_METRIC_ACCURACY; m <= HG_METRIC_RMSE; m++) {
		CHECK(hg_metric_find(hg_metric_name((hg_metric)m)) == (hg_metric)m);
		CHECK_EQ_I(hg_metric_rises((hg_metric)m), m < HG_METRIC_MAE);
		CHECK_EQ_I(hg_metric_fits((hg_metric)m, 0, 1), 1);
	}
	CHECK(!hg_metric_name(HG_METRIC_NONE) && !hg_metric_name((hg_metric)8));
	CHECK(hg_metric_find("f1") == HG_METRIC_NONE && hg_metric_find(NULL) == HG_METRIC_NONE);
	CHECK(!hg_metric_fits(HG_METRIC_NONE, 0, 1) && !hg_metric_fits(HG_METRIC_ROC_AUC, 1, 3));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(classes_by_hand),
	    TEST(classes_that_do_not_occur),
	    TEST(masked_rows_are_left_out),
	    TEST(nan_logits_are_wrong),
	    TEST(infinite_logits_have_a_rank),
	    TEST(several_labels_by_hand),
	    TEST(ranking_of_scikit_learn),
	    TEST(equal_logits_count_half),
	    TEST(ranking_against_pairs),
	    TEST(errors_by_hand),
	    TEST(errors_of_nan_are_nan),
	    TEST(undefined_is_nan),
	    TEST(mistakes_are_refused),
	    TEST(names_and_directions),
	};
	return RUN_TESTS(argc, argv, cases);
}
