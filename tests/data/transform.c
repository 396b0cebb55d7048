/* Transforms of datasets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static float weight_at(const hg_dataset *d, int64_t i, int64_t j)
{
	for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
		if (d->col[e] == j)
			return d->weight ? d->weight[e] : 1;
	return NAN;
}

static void symmetrize_keeps_the_larger(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_symmetrize(d, message));
	CHECK_OK(hg_dataset_check(d, "symmetric", message));
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			CHECK(weight_at(d, d->col[e], i) == d->weight[e]);
	CHECK(weight_at(d, 1, 2) == 3 && weight_at(d, 3, 1) == 1 && weight_at(d, 0, 2) == 0.5f &&
	      weight_at(d, 4, 3) == 7);
	CHECK_EQ_I(d->edges, 11);
	hg_dataset_free(d);
}

static void self_loops_are_added_once(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_self_loops(d, message));
	CHECK_OK(hg_dataset_check(d, "loops", message));
	CHECK_EQ_I(d->edges, 16); /* node 4 had one already */
	for (int64_t i = 0; i < d->nodes; i++)
		CHECK(weight_at(d, i, i) == 1);
	CHECK_OK(hg_dataset_self_loops(d, message));
	CHECK_EQ_I(d->edges, 16);
	hg_dataset_free(d);
}

/* Nodes 0 to 4 are connected, node 5 is alone. */
static void largest_component_keeps_all_fields(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *all[] = {small_dataset(), small_sparse()};
	for (int k = 0; k < 2; k++) {
		hg_dataset *d = all[k];
		CHECK_OK(hg_dataset_largest_component(d, message));
		CHECK_OK(hg_dataset_check(d, "component", message));
		CHECK(d->nodes == 5 && d->edges == 11 && d->orig_id[4] == 50 && d->label[3] == -1 &&
		      d->test_mask[4] == 1);
		CHECK_STR(d->name, "small");
		if (k == 0)
			CHECK(((float *)d->feat)[14] == 14);
		else
			CHECK(d->feat_rowptr[5] == 5 && d->feat_amax == 5);
		hg_dataset_free(d);
	}
}

static void largest_component_renumbers(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	write_text(scratch(0, "two.txt"), "0 1\n5 2\n2 9\n9 5\n3 4\n");
	d = must_import("edges", scratch(0, "two.txt"));
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK(d->nodes == 3 && d->edges == 3 && d->orig_id[0] == 2 && d->orig_id[1] == 5 &&
	      d->orig_id[2] == 9);
	CHECK(d->col[d->rowptr[0]] == 1 && d->col[d->rowptr[1]] == 2 && d->col[d->rowptr[2]] == 0);
	hg_dataset_free(d);
	d = small_batch();
	CHECK_STATUS(hg_dataset_largest_component(d, message), HG_ERR_UNSUPPORTED);
	hg_dataset_free(d);
}

static void row_normalize_divides_by_the_absolute_sum(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_row_normalize(d, message));
	CHECK_WITHIN(((float *)d->feat)[3], -3.0 / 7.6, 1e-7);
	CHECK(d->feat_amax <= 1);
	hg_dataset_free(d);
	d = small_sparse();
	free(d->feat_value);
	d->feat_value = NULL;
	CHECK_OK(hg_dataset_row_normalize(d, message));
	CHECK_WITHIN(d->feat_value[1], 1.0 / 3, 1e-7);
	CHECK_OK(hg_dataset_check(d, "normal", message));
	hg_dataset_free(d);
	d = small_dataset();
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	CHECK_OK(hg_dataset_row_normalize(d, message));
	CHECK_EQ_I(
	    ((hg_half *)d->feat)[3],
	    hg_half_from_double(-3.0 / (3 + 4.5 + (double)hg_half_to_float(hg_half_from_float(0.1f)))));
	hg_dataset_free(d);
}

static void features_beyond_f16_are_reported_or_clipped(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_check_f16(d, message));
	((float *)d->feat)[13] = -65505;
	CHECK_STATUS(hg_dataset_check_f16(d, message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "features: row 4 (node 50), column 1 is -65505");
	CHECK_STATUS(hg_dataset_features_to(d, HG_F16, 0, message), HG_ERR_RANGE);
	CHECK_EQ_I(d->feat_dtype, HG_F32);
	CHECK_OK(hg_dataset_features_to(d, HG_F32, 0, message));
	CHECK(((float *)d->feat)[13] == -65505);
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 1, message));
	CHECK_EQ_I(((hg_half *)d->feat)[13], 0xFBFF);
	CHECK_OK(hg_dataset_features_to(d, HG_F32, 0, message));
	CHECK(((float *)d->feat)[13] == -65504 && ((float *)d->feat)[4] == 4.5f &&
	      ((float *)d->feat)[5] != 0.1f);
	CHECK_STATUS(hg_dataset_features_to(d, HG_I32, 0, message), HG_ERR_DTYPE);
	hg_dataset_free(d);
	d = small_sparse();
	d->feat_value[4] = 1e6f;
	CHECK_STATUS(hg_dataset_features_to(d, HG_F16, 0, message), HG_ERR_RANGE);
	CHECK_CONTAINS(message, "row 3 (node 40), column 2 is 1e+06");
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 1, message));
	CHECK(d->feat_value[4] == 65504 && d->feat_amax == 65504);
	hg_dataset_free(d);
}

static void columns_are_standardized(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *dense = small_dataset(), *sparse = small_sparse();
	CHECK_OK(hg_dataset_standardize(dense, message));
	CHECK_OK(hg_dataset_standardize(sparse, message));
	CHECK(sparse->feat && !sparse->feat_rowptr && sparse->feat_dtype == HG_F32);
	const hg_dataset *const both[] = {dense, sparse};
	for (int k = 0; k < 2; k++) {
		const float *x = both[k]->feat;
		const int64_t columns = both[k]->features;
		CHECK_OK(hg_dataset_check(both[k], "standardized", message));
		for (int64_t j = 0; j < columns; j++) {
			double sum = 0, squares = 0;
			for (int64_t i = 0; i < 6; i++) {
				sum += (double)x[i * columns + j];
				squares += (double)x[i * columns + j] * (double)x[i * columns + j];
			}
			/* column 1 of the sparse features is 0 everywhere; the others are rounded to f32 once,
			 * with |x| < 2.3 */
			CHECK_WITHIN(sum, 0, 6 * 2.3 * 0x1p-24);
			CHECK_WITHIN(squares, k == 1 && j == 1 ? 0 : 6, 6 * 2 * 2.3 * 2.3 * 0x1p-24);
		}
	}
	/* what was done is kept: together with what small_dataset says was done before */
	hg_dataset *before = small_dataset(), *raw = small_dataset();
	CHECK(dense->feat_deviation[0] > 0 && dense->feat_deviation[2] <= 0);
	CHECK(sparse->feat_mean && sparse->feat_mean[1] == 0 && sparse->feat_deviation[1] == 0 &&
	      sparse->feat_deviation[0] > 0);
	free(raw->feat_mean);
	free(raw->feat_deviation);
	raw->feat_mean = raw->feat_deviation = NULL;
	CHECK_OK(hg_dataset_standardize(raw, message));
	for (int64_t j = 0; j < 3; j++) {
		double sum = 0;
		for (int64_t i = 0; i < 6; i++)
			sum += (double)((float *)before->feat)[i * 3 + j];
		const double mean = sum / 6, all = before->feat_mean[j] + before->feat_deviation[j] * mean;
		CHECK_WITHIN(raw->feat_mean[j], mean, 0);
		CHECK_WITHIN(dense->feat_mean[j], all, 0);
		CHECK_WITHIN(dense->feat_deviation[j], before->feat_deviation[j] * raw->feat_deviation[j],
		             0);
		for (int64_t i = 0; i < 6; i++) /* x = mean + deviation z */
			CHECK_WITHIN(raw->feat_mean[j] +
			                 raw->feat_deviation[j] * (double)((float *)raw->feat)[i * 3 + j],
			             (double)((float *)before->feat)[i * 3 + j],
			             2.3 * 0x1p-24 * raw->feat_deviation[j] + 1e-9);
	}
	hg_dataset_free(before);
	hg_dataset_free(raw);
	/* values that differ in the last digits of a large number only */
	float *x = dense->feat;
	for (int i = 0; i < 6; i++) {
		x[3 * i] = 1e6f + (float)(i % 2);
		x[3 * i + 1] = 0.1f;
	}
	CHECK_OK(hg_dataset_standardize(dense, message));
	x = dense->feat;
	CHECK(x[0] == -1 && x[3] == 1 && x[1] == 0 && x[4] == 0);
	CHECK_EQ_I(hg_dataset_standardize(NULL, message), HG_ERR_ARG);
	hg_dataset_free(sparse);
	hg_dataset_free(dense);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(columns_are_standardized),
	    TEST(symmetrize_keeps_the_larger),
	    TEST(self_loops_are_added_once),
	    TEST(largest_component_keeps_all_fields),
	    TEST(largest_component_renumbers),
	    TEST(row_normalize_divides_by_the_absolute_sum),
	    TEST(features_beyond_f16_are_reported_or_clipped),
	};
	return RUN_TESTS(argc, argv, cases);
}
