/* Folds for cross-validation: how they are dealt out, kept in files, and become splits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { N = 101, UNLABELLED = 7 };

/* N nodes on a ring without features: node i has class i mod 3; every UNLABELLED-th has none. */
static hg_dataset *ring(void)
{
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = d->edges = N;
	d->rowptr = calloc(N + 1, sizeof *d->rowptr);
	d->col = calloc(N, sizeof *d->col);
	d->label = calloc(N, sizeof *d->label);
	d->classes = 3;
	CHECK(d->rowptr && d->col && d->label);
	for (int32_t i = 0; i < N; i++) {
		d->rowptr[i + 1] = i + 1;
		d->col[i] = (i + 1) % N;
		d->label[i] = i % UNLABELLED == 0 ? -1 : i % 3;
	}
	return d;
}

static int64_t count_fold(const hg_dataset *d, int32_t fold, int32_t label)
{
	int64_t count = 0;
	for (int i = 0; i < N; i++)
		count += d->fold[i] == fold && (label < 0 || d->label[i] == label);
	return count;
}

/* Folds differ by one row at most, also within a class. */
static void rows_are_dealt_evenly(void)
{
	char message[HG_DATA_MESSAGE] = "";
	static const int64_t counts[] = {2, 3, 10, 86};
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		hg_dataset *d = ring();
		CHECK_OK(hg_dataset_make_folds(d, counts[c], 0, message));
		CHECK_OK(hg_dataset_check(d, "ring", message));
		CHECK_EQ_I(d->folds, counts[c]);
		const int64_t labelled = N - (N + UNLABELLED - 1) / UNLABELLED;
		for (int32_t k = 0; k < d->folds; k++) {
			const int64_t size = count_fold(d, k, -1);
			CHECK(size == labelled / counts[c] || size == labelled / counts[c] + 1);
			for (int32_t label = 0; label < 3; label++) {
				int64_t all = 0;
				for (int i = 0; i < N; i++)
					all += d->label[i] == label;
				const int64_t part = count_fold(d, k, label);
				CHECK(part == all / counts[c] || part == all / counts[c] + 1);
			}
		}
		for (int i = 0; i < N; i++)
			CHECK((d->fold[i] < 0) == (d->label[i] < 0));
		hg_dataset_free(d);
	}
}

static void seeds_deal_differently(void)
{
	hg_dataset *a = ring(), *b = ring();
	CHECK_OK(hg_dataset_make_folds(a, 5, 0, NULL));
	CHECK_OK(hg_dataset_make_folds(b, 5, 1, NULL));
	CHECK(memcmp(a->fold, b->fold, N * sizeof *a->fold) != 0);
	CHECK_OK(hg_dataset_make_folds(b, 5, 0, NULL));
	check_same(a, b);
	/* hg_dataset_fold deals the same folds */
	for (int64_t k = 0; k < 5; k++) {
		hg_dataset *c = ring();
		CHECK_OK(hg_dataset_use_fold(a, k, HG_FOLD_NEXT, NULL));
		CHECK_OK(hg_dataset_fold(c, k, 5, NULL));
		CHECK(memcmp(a->test_mask, c->test_mask, N) == 0 &&
		      memcmp(a->val_mask, c->val_mask, N) == 0 &&
		      memcmp(a->train_mask, c->train_mask, N) == 0);
		hg_dataset_free(c);
	}
	hg_dataset_free(a);
	hg_dataset_free(b);
}

/* What hg_dataset_use_fold says of every row. Row 1, which is in no fold, trains. */
static void folds_become_splits(void)
{
	hg_dataset *d = ring();
	CHECK_OK(hg_dataset_make_folds(d, 4, 3, NULL));
	d->fold[1] = -1;
	for (int held_out = 0; held_out < 2; held_out++)
		for (int32_t k = 0; k < 4; k++) {
			CHECK_OK(hg_dataset_use_fold(d, k, held_out ? HG_FOLD_HELD_OUT : HG_FOLD_NEXT, NULL));
			CHECK_OK(hg_dataset_check(d, "ring", NULL));
			for (int i = 0; i < N; i++) {
				const int labelled = d->label[i] >= 0, own = d->fold[i] == k,
				          next = d->fold[i] == (k + 1) % 4, validates = held_out ? own : next;
				CHECK_EQ_I(d->test_mask[i], labelled && own && !held_out);
				CHECK_EQ_I(d->val_mask[i], labelled && validates);
				CHECK_EQ_I(d->train_mask[i], labelled && !own && !validates);
			}
		}
	/* hg_dataset_fold takes the dataset's own folds if their number is right */
	CHECK_OK(hg_dataset_use_fold(d, 2, HG_FOLD_NEXT, NULL));
	uint8_t own[N];
	memcpy(own, d->test_mask, N);
	CHECK_OK(hg_dataset_fold(d, 2, 4, NULL));
	CHECK(memcmp(own, d->test_mask, N) == 0);
	CHECK_OK(hg_dataset_fold(d, 2, 5, NULL));
	CHECK(memcmp(own, d->test_mask, N) != 0);
	hg_dataset_free(d);
}

static void impossible_folds_are_refused(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = ring(), *before = ring();
	static const struct {
		int64_t folds;
		hg_status status;
		const char *part;
	} made[] = {{1, HG_ERR_ARG, "1 folds, expected at least 2"},
	            {-3, HG_ERR_ARG, "-3 folds"},
	            {(int64_t)1 << 40, HG_ERR_ARG, "1099511627776 folds"},
	            {87, HG_ERR_STATE, "87 folds, but there are 86 labelled nodes"}};
	for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
		CHECK_EQ_I(hg_dataset_make_folds(d, made[k].folds, 0, message), made[k].status);
		CHECK_CONTAINS(message, made[k].part);
	}
	CHECK_EQ_I(hg_dataset_make_folds(NULL, 3, 0, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_use_fold(NULL, 0, HG_FOLD_NEXT, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_use_fold(d, 0, HG_FOLD_NEXT, message), HG_ERR_STATE);
	CHECK_CONTAINS(message, "the dataset has no folds: h5convert FILE --split folds:10");
	check_same(d, before);
	CHECK_OK(hg_dataset_make_folds(d, 2, 0, message));
	CHECK_EQ_I(hg_dataset_use_fold(d, 0, HG_FOLD_NEXT, message), HG_ERR_STATE);
	CHECK_CONTAINS(message, "2 folds, expected at least 3 where one tests");
	CHECK_OK(hg_dataset_use_fold(d, 0, HG_FOLD_HELD_OUT, message));
	CHECK_EQ_I(hg_dataset_use_fold(d, 2, HG_FOLD_HELD_OUT, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "fold 2 of 2, expected one of 0 .. 1");
	CHECK_EQ_I(hg_dataset_use_fold(d, -1, HG_FOLD_HELD_OUT, message), HG_ERR_ARG);
	CHECK_EQ_I(hg_dataset_use_fold(d, 0, (hg_fold_validation)2, message), HG_ERR_ARG);
	hg_dataset_free(d);
	hg_dataset_free(before);
}

/* A dataset that a program filled. */
static void bad_folds_are_found(void)
{
	static const struct {
		int32_t folds, from, to; /* a fold that becomes another one */
		int absent;
		const char *part;
	} bad[] = {{4, 2, 4, 0, "is in fold 4, but there are 4 folds, numbered from 0"},
	           {4, 2, 1, 0, "folds: no node is in fold 2 of 4"},
	           {5, 2, 2, 0, "folds: no node is in fold 4 of 5"},
	           {1, 2, 2, 0, "folds: 1 of 101 nodes, expected at least 2 and none of them empty"},
	           {102, 2, 2, 0, "folds: 102 of 101 nodes, expected at least 2"},
	           {4, 2, 2, 1, "folds: 4 of 101 nodes"}};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = ring();
		CHECK_OK(hg_dataset_make_folds(d, 4, 0, NULL));
		for (int i = 0; i < N; i++)
			d->fold[i] = d->fold[i] == bad[k].from ? bad[k].to : d->fold[i];
		d->folds = bad[k].folds;
		if (bad[k].absent) {
			free(d->fold);
			d->fold = NULL;
		}
		CHECK_EQ_I(hg_dataset_check(d, "ring", message), HG_ERR_FORMAT);
		CHECK_CONTAINS(message, bad[k].part);
		CHECK(hg_dataset_write(d, scratch(0, "bad.h5"), message) < 0);
		CHECK(!file_exists(scratch(0, "bad.h5")));
		hg_dataset_free(d);
	}
}

/* Nodes keep their folds in files and where they move. */
static void folds_stay_with_their_nodes(void)
{
	char message[HG_DATA_MESSAGE] = "";
	int32_t reversed[N];
	hg_dataset *d = ring();
	CHECK_OK(hg_dataset_make_folds(d, 6, 0, NULL));
	must_write(d, scratch(0, "folds.h5"));
	hg_dataset *back = must_read(scratch(0, "folds.h5"));
	check_same(d, back);
	CHECK_EQ_I(back->folds, 6);
	hg_dataset_free(back);
	CHECK_OK(hg_dataset_write_npz(d, scratch(0, "folds.npz"), NULL, message));
	back = must_import("npz", scratch(0, "folds.npz"));
	CHECK(back->folds == 6 && memcmp(d->fold, back->fold, N * sizeof *d->fold) == 0);
	for (int32_t i = 0; i < N; i++)
		reversed[i] = N - 1 - i;
	CHECK_OK(hg_dataset_permute(back, reversed, message));
	for (int i = 0; i < N; i++)
		CHECK_EQ_I(back->fold[i], d->fold[N - 1 - i]);
	CHECK_OK(hg_dataset_largest_component(back, message));
	CHECK(back->folds == 6 && back->fold[0] == d->fold[N - 1]);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void tool_makes_folds(void)
{
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"@/g.txt --labels @/y.csv --split folds:1 -o @/n.h5", "or folds:K with K from 2"},
	    {"@/g.txt --labels @/y.csv --split folds: -o @/n.h5", "--split is \"folds:\""},
	    {"@/g.txt --labels @/y.csv --split folds:rest -o @/n.h5", "--split is \"folds:rest\""},
	    {"@/g.txt --labels @/y.csv --split folds:2/2 -o @/n.h5", "--split is \"folds:2/2\""},
	    {"@/g.txt --labels @/y.csv --split folds:2:x -o @/n.h5", "--split is \"folds:2:x\""},
	    {"@/g.txt --labels @/y.csv --split folds:7 -o @/n.h5",
	     "--split folds:7: 7 folds, but there are 6 labelled"},
	};
	write_text(scratch(0, "g.txt"), "0 1\n1 2\n2 0\n2 3\n4 5\n");
	write_text(scratch(0, "y.csv"), "0\n1\n0\n1\n1\n0\n");
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		CHECK_EQ_I(run_convert(bad[k].arguments), 2);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK_EQ_I(count_scratch("n.h5"), 0);
	}
	CHECK_EQ_I(run_convert("@/g.txt --labels @/y.csv --split folds:3:8 --quiet -o @/f.h5"), 0);
	CHECK_EQ_I(run_convert("--inspect @/f.h5"), 0);
	CHECK_CONTAINS(convert_out, "folds      3, for hg-train --folds");
	CHECK_EQ_I(run_convert("--inspect @/f.h5 --json"), 0);
	CHECK_CONTAINS(convert_out, "\"folds\":3");
	CHECK_EQ_I(run_convert("@/f.h5 --fold 1/3 --quiet -o @/one.h5"), 0);
	hg_dataset *d = must_read(scratch(0, "one.h5"));
	CHECK(d->folds == 3 && d->test_mask);
	for (int i = 0; i < 6; i++)
		CHECK_EQ_I(d->test_mask[i], d->fold[i] == 1);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(rows_are_dealt_evenly), TEST(seeds_deal_differently),
	    TEST(folds_become_splits),   TEST(impossible_folds_are_refused),
	    TEST(bad_folds_are_found),   TEST(folds_stay_with_their_nodes),
	    TEST(tool_makes_folds),
	};
	return RUN_TESTS(argc, argv, cases);
}
