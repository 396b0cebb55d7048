/* Rows of the features: nodes that have nothing but zeros, and nodes of the test set that are
 * copies of nodes of the training set. */
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"
#include "hash.h"

struct row {
	uint64_t hash;
	int32_t node;
	int32_t test; /* 0: a node of the training set */
};

static int is_zero(const hg_dataset *d, int64_t i)
{
	if (d->feat_rowptr) {
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			if (!d->feat_value || d->feat_value[e] != 0.0f)
				return 0;
		return 1;
	}
	for (int64_t j = 0; j < d->features; j++)
		if (hg__data_feature(d, i * d->features + j) != 0.0f)
			return 0;
	return 1;
}

/* The bytes of a row: of dense features, or of columns (0) and values (1) of sparse ones. */
static const void *row_bytes(const hg_dataset *d, int64_t i, int part, size_t *bytes)
{
	if (d->feat) {
		const size_t row = (size_t)d->features * hg_dtype_size(d->feat_dtype);
		*bytes = part == 0 ? row : 0;
		return (const char *)d->feat + (size_t)i * row;
	}
	const int64_t begin = d->feat_rowptr[i], count = d->feat_rowptr[i + 1] - begin;
	*bytes = part == 0 || d->feat_value ? (size_t)count * sizeof *d->feat_col : 0;
	return part == 0 || !d->feat_value ? (const void *)(d->feat_col + begin)
	                                   : (const void *)(d->feat_value + begin);
}
_Static_assert(sizeof(int32_t) == sizeof(float), "columns and values are as wide");

static uint64_t hash_row(const hg_dataset *d, int64_t i)
{
	struct hg__hash hash;
	hg__hash_begin(&hash);
	for (int part = 0; part < 2; part++) {
		size_t bytes = 0;
		const void *at = row_bytes(d, i, part, &bytes);
		hg__hash_add(&hash, at, bytes);
	}
	return hg__hash_end(&hash);
}

static int same_row(const hg_dataset *d, int64_t a, int64_t b)
{
	int same = 1;
	for (int part = 0; part < 2 && same; part++) {
		size_t bytes[2] = {0, 0};
		const void *first = row_bytes(d, a, part, &bytes[0]),
		           *second = row_bytes(d, b, part, &bytes[1]);
		same = bytes[0] == bytes[1] && (!bytes[0] || memcmp(first, second, bytes[0]) == 0);
	}
	return same;
}

/* By hash; of equal ones nodes of the training set come first. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->test - y->test;
}

/* The nodes of the test set among rows [begin, end), which have one hash, that are copies of a node
 * of the training set. */
static int64_t count_copies(const hg_dataset *d, const struct row *rows, int64_t begin, int64_t end)
{
	int64_t copies = 0;
	for (int64_t k = begin; k < end; k++) {
		int found = 0;
		for (int64_t t = begin; rows[k].test && !rows[t].test && !found; t++)
			found = same_row(d, rows[k].node, rows[t].node);
		copies += found;
	}
	return copies;
}

static int64_t count_leaks(const hg_dataset *d, struct row *rows, int64_t count)
{
	int64_t leaks = 0, end = 0;
	qsort(rows, (size_t)count, sizeof *rows, compare_rows);
	for (int64_t begin = 0; begin < count; begin = end) {
		for (end = begin + 1; end < count && rows[end].hash == rows[begin].hash; end++)
			continue;
		leaks += count_copies(d, rows, begin, end);
	}
	return leaks;
}

/* Where most of the test set has copies, features are kinds of nodes, such as degrees, and equal
 * ones mean nothing. */
static hg_status examine_leaks(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	struct row *rows = NULL;
	hg_fitness_finding f = {.kind = HG_FITNESS_LEAK, .at = -1};
	int64_t count = 0;
	HG__TRY(
	    hg__data_alloc(d->nodes, sizeof *rows, "hashes of rows", (void **)&rows, exam->message));
	for (int64_t i = 0; i < d->nodes; i++) {
		f.of += d->test_mask[i];
		if ((d->test_mask[i] || d->train_mask[i]) && !is_zero(d, i))
			rows[count++] = (struct row){hash_row(d, i), (int32_t)i, d->test_mask[i]};
	}
	f.count = count_leaks(d, rows, count);
	free(rows);
	return f.count && 2 * f.count <= f.of ? hg__report_add(exam, f) : HG_OK;
}

hg_status hg__examine_rows(const struct hg__exam *exam)
{
	const hg_dataset *d = exam->d;
	hg_fitness_finding zero = {.kind = HG_FITNESS_ZERO_ROWS, .at = -1, .of = d->nodes};
	if (!hg__holds(exam, HG__PART_GRAPH) || !hg__holds(exam, HG__PART_FEATURES) ||
	    (!d->feat && !d->feat_rowptr))
		return HG_OK;
	HG__TRY(hg__data_step(exam->progress, "comparing rows", 0, 0, exam->message));
	for (int64_t i = 0; i < d->nodes; i++)
		zero.count += is_zero(d, i);
	if (zero.count)
		HG__TRY(hg__report_add(exam, zero));
	return !d->graph_ptr && d->train_mask && d->test_mask && hg__holds(exam, HG__PART_SPLITS)
	           ? examine_leaks(exam)
	           : HG_OK;
}
