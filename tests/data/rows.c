/* The advice whether to divide rows by their sums. It depends on the values of the features,
 * however they are stored. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { N = 400 };

/* One feature of a node, which depends on the kind of dataset. */
typedef float (*draw_fn)(int64_t row, int64_t column, int64_t columns);

static float words(int64_t row, int64_t column, int64_t columns)
{
	(void)row;
	/* 18 of the columns are not 0, the first ones more often */
	return test_uniform() < 18.0 / (double)columns * 2.0 * (1.0 - (double)column / (double)columns);
}

static float purchases(int64_t row, int64_t column, int64_t columns)
{
	(void)column;
	(void)columns;
	return test_uniform() < 0.2 + 0.3 * (double)(row % 2);
}

/* 20 of the columns are not 0: the first in nearly every row, and ten others in half of the
 * rows. */
static float shared(int64_t row, int64_t column, int64_t columns)
{
	(void)row;
	return test_uniform() < (column == 0 ? 0.95 : column < 10 ? 0.5 : 15.0 / (double)columns);
}

static float many(int64_t row, int64_t column, int64_t columns)
{
	(void)row;
	(void)column;
	return test_uniform() < 100.0 / (double)columns;
}

static float counts(int64_t row, int64_t column, int64_t columns)
{
	return words(row, column, columns) * (float)(1 + test_below(1 + row % 7));
}

static float tf_idf(int64_t row, int64_t column, int64_t columns)
{
	return words(row, column, columns) * (float)(0.01 + test_uniform());
}

static float embedding(int64_t row, int64_t column, int64_t columns)
{
	(void)row;
	(void)column;
	(void)columns;
	return (float)test_normal();
}

static float measured(int64_t row, int64_t column, int64_t columns)
{
	(void)row;
	(void)column;
	(void)columns;
	return (float)(1 + test_below(9));
}

static float one_hot(int64_t row, int64_t column, int64_t columns)
{
	return column == row % columns;
}

static float divided(int64_t row, int64_t column, int64_t columns)
{
	return column / 4 == row % (columns / 4) ? 0.25f : 0.0f;
}

static float nothing(int64_t row, int64_t column, int64_t columns)
{
	(void)row;
	(void)column;
	(void)columns;
	return 0.0f;
}

/* Dense in f32 or f16, or sparse with some stored zeros. */
static hg_dataset *dataset_of(draw_fn draw, int64_t columns, int kind)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	test_reseed(3);
	CHECK_OK(hg_dataset_new(&d, message));
	d->nodes = N;
	d->features = columns;
	d->feat_dtype = kind == 1 ? HG_F16 : HG_F32;
	d->feat = calloc((size_t)(N * columns), sizeof(float));
	d->feat_rowptr = calloc(N + 1, sizeof *d->feat_rowptr);
	d->feat_col = calloc((size_t)(N * columns), sizeof *d->feat_col);
	d->feat_value = calloc((size_t)(N * columns), sizeof *d->feat_value);
	CHECK(d->feat && d->feat_rowptr && d->feat_col && d->feat_value);
	for (int64_t i = 0, e = 0; i < N; i++) {
		for (int64_t c = 0; c < columns; c++) {
			const float value = i == 7 ? 0.0f : draw(i, c, columns); /* a row of zeros */
			if (kind == 1)
				((hg_half *)d->feat)[i * columns + c] = hg_half_from_double((double)value);
			else
				((float *)d->feat)[i * columns + c] = value;
			if (value == 0.0f && c % 50)
				continue;
			d->feat_col[e] = (int32_t)c;
			d->feat_value[e++] = value;
		}
		d->feat_rowptr[i + 1] = e;
	}
	if (kind < 2) {
		free(d->feat_rowptr);
		free(d->feat_col);
		free(d->feat_value);
		d->feat_rowptr = NULL;
		d->feat_col = NULL;
		d->feat_value = NULL;
	} else {
		free(d->feat);
		d->feat = NULL;
	}
	return d;
}

static void values_decide_and_not_storage(void)
{
	static const struct {
		const char *name;
		draw_fn draw;
		int64_t columns;
		int normalize;
		const char *why;
	} sets[] = {
	    {"words", words, 1000, 1, "a bag of words: 1"},
	    {"purchases", purchases, 300, 0, "not a bag of words: 10"},
	    {"shared words", shared, 1000, 0, "(much)"},
	    {"many words", many, 3000, 0, "(many)"},
	    {"counts", counts, 1000, 1, "counts, whose rows add up to"},
	    {"tf-idf", tf_idf, 1000, 1, "a bag of words"},
	    {"embedding", embedding, 64, 0, "some are negative"},
	    {"measured", measured, 8, 0, "most are not zero"},
	    {"one-hot", one_hot, 20, 0, "each row adds up to 1 already"},
	    {"divided", divided, 40, 0, "each row adds up to 1 already"},
	    {"nothing", nothing, 10, 0, "all are zero"},
	};
	for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
		for (int kind = 0; kind < 3; kind++) {
			hg_rows_advice rows = HG_ROWS_ADVICE_INIT;
			hg_dataset *d = dataset_of(sets[k].draw, sets[k].columns, kind);
			CHECK_OK(hg_dataset_advise_rows(d, &rows, NULL));
			CHECK_MSG(rows.normalize == sets[k].normalize && strstr(rows.why, sets[k].why),
			          "%s, stored in way %d: %d, %s", sets[k].name, kind, rows.normalize, rows.why);
			hg_dataset_free(d);
		}
}

static void mistakes_are_refused_by_name(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_rows_advice rows = HG_ROWS_ADVICE_INIT;
	hg_dataset *d = dataset_of(embedding, 8, 0);
	CHECK_STATUS(hg_dataset_advise_rows(NULL, &rows, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "dataset is NULL");
	CHECK_STATUS(hg_dataset_advise_rows(d, NULL, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "advice is NULL");
	rows.size = 0;
	CHECK_STATUS(hg_dataset_advise_rows(d, &rows, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "size is not set");
	hg_dataset_free(d);
	rows.size = sizeof rows;
	CHECK_OK(hg_dataset_new(&d, message)); /* no features */
	CHECK_OK(hg_dataset_advise_rows(d, &rows, message));
	CHECK(!rows.normalize);
	hg_dataset_free(d);
}

static hg_dataset *real(const char *file)
{
	char path[1024], message[HG_DATA_MESSAGE] = "";
	const char *paths[] = {path};
	hg_dataset *d = NULL;
	snprintf(path, sizeof path, "%s/raw/%s", test_data(), file);
	CHECK_MSG(hg_importers(NULL)->import(paths, 1, NULL, &d, message) == HG_OK, "%s", message);
	return d;
}

/* The validation accuracies in advise_rows.c give the same advice for these datasets. */
static void real_datasets_get_their_advice(void)
{
	static const struct {
		const char *file;
		int normalize;
	} sets[] = {{"planetoid_npz/cora.npz", 1},
	            {"planetoid_npz/citeseer.npz", 1},
	            {"gnnbench_npz/amazon_computers.npz", 0}};
	for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
		hg_rows_advice rows = HG_ROWS_ADVICE_INIT;
		hg_dataset *d = real(sets[k].file);
		CHECK_OK(hg_dataset_advise_rows(d, &rows, NULL));
		test_note("%s: %d: %s", sets[k].file, rows.normalize, rows.why);
		CHECK_MSG(rows.normalize == sets[k].normalize, "%s: %s", sets[k].file, rows.why);
		hg_dataset_free(d);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(values_decide_and_not_storage),
	                                         TEST(mistakes_are_refused_by_name),
	                                         TEST(real_datasets_get_their_advice)};
	return RUN_TESTS(argc, argv, cases);
}
