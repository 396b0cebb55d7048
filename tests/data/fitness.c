/* The fitness of datasets for fp16: each finding where it must be, and none where it must not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

/* A ring of n nodes with features [n, columns] of 0, one class per half, a full split. */
static hg_dataset *ring(int64_t n, int64_t columns)
{
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = n;
	d->edges = 2 * n;
	d->features = columns;
	d->classes = 2;
	d->rowptr = calloc((size_t)n + 1, sizeof *d->rowptr);
	d->col = calloc((size_t)(2 * n), sizeof *d->col);
	d->feat = calloc((size_t)(n * columns) + 1, sizeof(float));
	d->label = calloc((size_t)n, sizeof *d->label);
	d->train_mask = calloc((size_t)n, 1);
	d->val_mask = calloc((size_t)n, 1);
	d->test_mask = calloc((size_t)n, 1);
	CHECK(d->rowptr && d->col && d->feat && d->label && d->train_mask && d->val_mask &&
	      d->test_mask);
	for (int64_t i = 0; i < n; i++) {
		const int64_t before = (i + n - 1) % n, after = (i + 1) % n;
		d->rowptr[i + 1] = 2 * (i + 1);
		d->col[2 * i] = (int32_t)(before < after ? before : after);
		d->col[2 * i + 1] = (int32_t)(before < after ? after : before);
		d->label[i] = (int32_t)(i % 2);
		(i % 5 < 3 ? d->train_mask : i % 5 == 3 ? d->val_mask : d->test_mask)[i] = 1;
	}
	return d;
}

static float *cell(hg_dataset *d, int64_t row, int64_t column)
{
	return (float *)d->feat + row * d->features + column;
}

/* A number in [0, 1) that looks random: the mixing of splitmix64 (Vigna). */
static double drawn(int64_t k)
{
	uint64_t x = (uint64_t)k * UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* Normally distributed, by the sum of 12 uniform numbers. */
static double normal(int64_t k)
{
	double sum = -6;
	for (int64_t j = 0; j < 12; j++)
		sum += drawn(12 * k + j + 1);
	return sum;
}

static hg_fitness *examine(const hg_dataset *d)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_fitness *report = NULL;
	const hg_status status = hg_dataset_fitness(d, "made", NULL, &report, message);
	CHECK_MSG(status == HG_OK, "%s", message);
	return report;
}

/* The number of the finding of this kind about `at`, or -1. */
static int64_t find(const hg_fitness *r, hg_fitness_kind kind, int64_t at)
{
	for (int64_t k = 0; k < r->findings; k++)
		if (r->finding[k].kind == kind && r->finding[k].at == at)
			return k;
	return -1;
}

static const char *sentence_of(const hg_fitness *r, int64_t k)
{
	static char line[HG_DATA_MESSAGE];
	CHECK_OK(hg_fitness_sentence(r, k, line));
	CHECK(strchr(line, '\n') == NULL);
	return line;
}

static void expect(const hg_fitness *r, hg_fitness_kind kind, int64_t at, hg_severity severity,
                   int64_t count, int64_t of, const char *sentence)
{
	const int64_t k = find(r, kind, at);
	CHECK_MSG(k >= 0, "no %s at %d", hg_fitness_kind_name(kind), (int)at);
	CHECK_EQ_I(r->finding[k].severity, severity);
	CHECK_EQ_I(r->finding[k].count, count);
	CHECK_EQ_I(r->finding[k].of, of);
	CHECK_STR(sentence_of(r, k), sentence);
}

enum { N = 3000 };

/* Columns that lose nothing that matters. */
static void good_columns_are_fit(void)
{
	hg_dataset *d = ring(N, 7);
	for (int64_t i = 0; i < N; i++) {
		*cell(d, i, 0) = (float)normal(i);
		*cell(d, i, 1) = (float)(i % 2);                /* one bit */
		*cell(d, i, 2) = (float)(1990 + i % 40);        /* a year, exact */
		*cell(d, i, 3) = (float)(1e-3 * normal(i + N)); /* small, but normal */
		*cell(d, i, 4) = i % 2 ? 0.1f : 0.0f;           /* one bit that is rounded */
		*cell(d, i, 5) = (float)exp(3 * normal(i + 7)); /* a heavy tail */
		*cell(d, i, 6) = (float)(60000 * drawn(i));
	}
	hg_fitness *r = examine(d);
	for (int64_t k = 0; k < r->findings; k++)
		CHECK_MSG(r->finding[k].kind == HG_FITNESS_SUM, "%s", sentence_of(r, k));
	CHECK(r->verdict == HG_SEVERITY_NOTE && r->columns == 7 && r->nodes == N && r->edges == 2 * N);
	CHECK(!r->sparse && !r->batch && !r->weighted && r->isolated == 0 && r->most_neighbours == 2);
	CHECK(r->column[1].nonzero == N / 2 && r->column[1].mean == 0.5 &&
	      r->column[1].deviation == 0.5 && r->column[1].noise == 0);
	CHECK(r->column[2].least == 1990 && r->column[2].most == 2029);
	CHECK(fabs(r->column[0].deviation - 1) < 0.1 && r->column[0].noise < 0x1p-10);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

static void bad_columns_are_named(void)
{
	hg_dataset *d = ring(N, 8);
	for (int64_t i = 0; i < N; i++) {
		*cell(d, i, 0) = i < 1200 ? -1.2e6f : 1; /* overflows */
		*cell(d, i, 1) = (float)(40000 + (double)(i % 41) * 0.25 - 5);
		*cell(d, i, 2) = (float)(1e-9 * (1 + drawn(i)));
		*cell(d, i, 3) = i % 4 ? 1 : 1e-8f; /* a quarter vanishes */
		*cell(d, i, 4) = i % 4 ? 1e-8f : 1; /* three quarters vanish */
		*cell(d, i, 5) = (float)(3e-5 * (0.1 + drawn(i)));
		*cell(d, i, 6) = 2.5f;
		*cell(d, i, 7) = i % 10 ? (float)(40000 + 3 * normal(i)) : -999; /* missing values */
	}
	hg_fitness *r = examine(d);
	CHECK_EQ_I(r->verdict, HG_SEVERITY_LOSS);
	expect(r, HG_FITNESS_OVERFLOW, 0, HG_SEVERITY_LOSS, 1200, N,
	       "column 0: largest 1.2e+06 overflows fp16 (1200 of 3000 values become infinite): "
	       "--standardize, or --clip");
	expect(r, HG_FITNESS_SPREAD, 1, HG_SEVERITY_LOSS, 1, 41,
	       "column 1 keeps 0.0 of 11 bits for its spread: half of its values lie between 39997.5 "
	       "and 40002.5, where fp16 steps by 32, and of 41 different values 1 remain: "
	       "--standardize");
	expect(r, HG_FITNESS_VANISH, 2, HG_SEVERITY_LOSS, N, N,
	       "column 2 vanishes: all 3000 values that are not 0 become 0 in fp16 (largest 2e-09): "
	       "--standardize");
	expect(r, HG_FITNESS_VANISH, 3, HG_SEVERITY_NOTE, N / 4, N,
	       "column 3: 25 % of its values vanish (750 of 3000 that are not 0 become 0 in fp16): "
	       "--standardize");
	expect(r, HG_FITNESS_VANISH, 4, HG_SEVERITY_LOSS, N / 4 * 3, N,
	       "column 4: 75 % of its values vanish (2250 of 3000 that are not 0 become 0 in fp16): "
	       "--standardize");
	CHECK_CONTAINS(sentence_of(r, find(r, HG_FITNESS_SUBNORMAL, 5)),
	               "column 5: 100 % of its values are below 6.1e-05 and keep fewer than 11 bits");
	expect(r, HG_FITNESS_CONSTANT, 6, HG_SEVERITY_NOTE, 1, 8,
	       "columns with the same value everywhere: 1 of 8, the first is 6 (2.5); they tell "
	       "nothing: leave them out at the source");
	int64_t k = find(r, HG_FITNESS_SPREAD, 1);
	CHECK_STR(r->finding[k].option, "--standardize");
	CHECK_STR(r->finding[k].call, "hg_dataset_standardize");
	k = find(r, HG_FITNESS_SPREAD, 7);
	CHECK(k >= 0 && r->finding[k].severity == HG_SEVERITY_LOSS);
	CHECK_STR(r->finding[k].option, "");
	CHECK_CONTAINS(sentence_of(r, k),
	               "replace values far from these at the source (it has -999 to 400");
	/* sorted: losses before notes, kinds in their order, the worst of a kind first */
	for (int64_t j = 1; j < r->findings; j++)
		CHECK(r->finding[j - 1].severity > r->finding[j].severity ||
		      (r->finding[j - 1].severity == r->finding[j].severity &&
		       r->finding[j - 1].kind <= r->finding[j].kind));
	CHECK(find(r, HG_FITNESS_VANISH, 2) < find(r, HG_FITNESS_VANISH, 4));
	hg_fitness_free(r);
	/* the remedy helps */
	CHECK_OK(hg_dataset_standardize(d, NULL));
	r = examine(d);
	CHECK_EQ_I(find(r, HG_FITNESS_SPREAD, 1), -1);
	CHECK_EQ_I(find(r, HG_FITNESS_VANISH, 2), -1);
	CHECK(find(r, HG_FITNESS_SPREAD, 7) == 0 && r->finding[1].severity == HG_SEVERITY_NOTE);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* The borders of halves: 65519.996 is the largest f32 that does not become infinite; 2^-25 becomes
 * 0, what follows it does not. */
static void borders_are_those_of_rounding(void)
{
	static const float x[] = {65504,    65519.996f,      65520,     -65520,
	                          0x1p-25f, 0x1.000002p-25f, -0x1p-24f, 0x1p-14f};
	hg_dataset *d = ring(8, 8);
	for (int64_t j = 0; j < 8; j++)
		for (int64_t i = 0; i < 8; i++)
			*cell(d, i, j) = i ? 1 : x[j];
	hg_fitness *r = examine(d);
	for (int64_t j = 0; j < 8; j++) {
		CHECK_EQ_I(r->column[j].overflow, j == 2 || j == 3);
		CHECK_EQ_I(r->column[j].vanish, j == 4);
		CHECK_EQ_I(r->column[j].subnormal, j == 5); /* -2^-24 is exact */
		CHECK_EQ_I(r->column[j].nonzero, 8);
		CHECK_EQ_I((hg_half_from_float(x[j]) & 0x7FFF) == 0x7C00, r->column[j].overflow);
	}
	hg_fitness_free(r);
	/* what is stored in fp16 has no more to lose */
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 1, NULL));
	r = examine(d);
	for (int64_t j = 0; j < 8; j++)
		CHECK(r->column[j].error == 0 && r->column[j].overflow == 0 && r->column[j].vanish == 0);
	CHECK_EQ_I(r->column[4].nonzero, 7);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* Dense features as sparse ones, without their zeros. */
static void make_sparse(hg_dataset *d)
{
	const int64_t cells = d->nodes * d->features;
	const float *dense = d->feat;
	int64_t m = 0;
	d->feat_rowptr = calloc((size_t)d->nodes + 1, sizeof *d->feat_rowptr);
	d->feat_col = calloc((size_t)cells + 1, sizeof *d->feat_col);
	d->feat_value = calloc((size_t)cells + 1, sizeof *d->feat_value);
	CHECK(d->feat_rowptr && d->feat_col && d->feat_value);
	for (int64_t i = 0; i < d->nodes; i++) {
		for (int64_t j = 0; j < d->features; j++)
			if (dense[i * d->features + j] != 0) {
				d->feat_col[m] = (int32_t)j;
				d->feat_value[m++] = dense[i * d->features + j];
			}
		d->feat_rowptr[i + 1] = m;
	}
	free(d->feat);
	d->feat = NULL;
}

/* Sparse and dense features have the same facts. */
static void sparse_features_are_judged_alike(void)
{
	hg_dataset *d = ring(N, 5);
	for (int64_t i = 0; i < N; i++) {
		*cell(d, i, 0) = i % 3 ? 0 : (float)normal(i);
		*cell(d, i, 1) = i % 3 ? 0 : (float)(40000 + (double)(i % 41) * 0.25);
		*cell(d, i, 2) = i % 3 == 1 ? 7e4f : 0;
		*cell(d, i, 4) = i % 3 == 2 ? 1e-10f : 0;
	}
	hg_fitness *dense = examine(d);
	make_sparse(d);
	hg_fitness *sparse = examine(d);
	CHECK(sparse->sparse && !dense->sparse);
	CHECK_EQ_I(dense->findings, sparse->findings);
	for (int64_t j = 0; j < 5; j++) {
		hg_fitness_column a = dense->column[j], b = sparse->column[j];
		CHECK(fabs(a.mean - b.mean) <= 1e-12 * fabs(a.mean) &&
		      fabs(a.deviation - b.deviation) <= 1e-9 * a.deviation);
		CHECK(a.values == N && b.values == N && a.nonzero == b.nonzero && a.least == b.least &&
		      a.most == b.most && a.overflow == b.overflow && a.vanish == b.vanish &&
		      a.distinct == b.distinct && a.distinct_half == b.distinct_half);
	}
	CHECK(dense->column[1].distinct == 41 && dense->column[1].distinct_half == 1);
	expect(sparse, HG_FITNESS_OVERFLOW, 2, HG_SEVERITY_LOSS, N / 3, N,
	       "column 2: largest 7e+04 overflows fp16 (1000 of 3000 values become infinite): "
	       "--row-normalize, or --clip");
	expect(sparse, HG_FITNESS_CONSTANT, 3, HG_SEVERITY_NOTE, 1, 5,
	       "columns with the same value everywhere: 1 of 5, the first is 3 (0); they tell nothing: "
	       "leave them out at the source");
	hg_fitness_free(dense);
	hg_fitness_free(sparse);
	hg_dataset_free(d);
	d = small_sparse();
	free(d->feat_value);
	d->feat_value = NULL; /* all 1 */
	sparse = examine(d);
	CHECK(sparse->column[4].nonzero == 2 && sparse->column[4].most == 1);
	hg_fitness_free(sparse);
	hg_dataset_free(d);
}

static void weights_are_judged(void)
{
	hg_dataset *d = ring(N, 0);
	d->weight = calloc((size_t)d->edges, sizeof *d->weight);
	CHECK(d->weight != NULL);
	for (int64_t e = 0; e < d->edges; e++)
		d->weight[e] = (float)(20000 + normal(e));
	d->weight[3] = 1e6f;
	hg_fitness *r = examine(d);
	CHECK(r->weighted && r->weight.values == 2 * N && r->weight.most == 1e6);
	expect(r, HG_FITNESS_OVERFLOW, -1, HG_SEVERITY_NOTE, 1, 2 * N,
	       "the weights of the edges: largest 1e+06 overflows fp16 (1 of 6000 values become "
	       "infinite): --precision fp16 keeps them in f32");
	const int64_t k = find(r, HG_FITNESS_SPREAD, -1);
	CHECK(k >= 0 && r->finding[k].weights && r->finding[k].severity == HG_SEVERITY_NOTE);
	CHECK_STR(r->finding[k].call, "hg_policy_fp16");
	CHECK_CONTAINS(sentence_of(r, k), "where fp16 steps by 16");
	hg_fitness_free(r);
	hg_dataset_free(d);
}

static void labels_and_splits_are_judged(void)
{
	hg_dataset *d = ring(N, 1);
	for (int64_t i = 0; i < N; i++)
		*cell(d, i, 0) = (float)normal(i);
	d->classes = 5; /* 2 and 3 label nothing */
	for (int64_t i = 0; i < N; i++)
		if (i % 5 == 4 && i < 50)
			d->label[i] = 4; /* 10 of the test set */
	d->label[0] = d->label[1] = -1;
	memset(d->val_mask, 0, N);
	hg_fitness *r = examine(d);
	expect(r, HG_FITNESS_UNTRAINED, 4, HG_SEVERITY_LOSS, 10, 10,
	       "class 4 has 10 labelled nodes, but none in the training set: --split "
	       "per-class:20/30/rest");
	expect(r, HG_FITNESS_EMPTY_CLASS, 2, HG_SEVERITY_NOTE, 2, 5,
	       "classes that label no node: 2 of 5, the first is 2; the model has outputs for them: "
	       "number the labels without gaps");
	expect(r, HG_FITNESS_UNLABELLED, -1, HG_SEVERITY_NOTE, 2, N / 5 * 3,
	       "the training set has nodes without a label, which are not trained on: 2 of 1800; add "
	       "--labels, or leave them out of the set");
	expect(r, HG_FITNESS_NO_SPLIT, 1, HG_SEVERITY_NOTE, 0, 0,
	       "the validation set is empty: no best epoch can be chosen: --split random:0.6/0.2/0.2");
	CHECK_EQ_I(find(r, HG_FITNESS_NO_SPLIT, 2), -1);
	hg_fitness_free(r);
	free(d->test_mask);
	d->test_mask = NULL;
	memset(d->train_mask, 0, N);
	r = examine(d);
	expect(r, HG_FITNESS_NO_SPLIT, 2, HG_SEVERITY_NOTE, 0, 0,
	       "the test set is empty: no accuracy can be measured: --split random:0.6/0.2/0.2");
	const int64_t k = find(r, HG_FITNESS_UNREADY, -1);
	CHECK(k >= 0 && r->finding[k].severity == HG_SEVERITY_LOSS);
	CHECK_CONTAINS(sentence_of(r, k),
	               "made: none of 3000 nodes is labelled and in nodes/train_mask");
	hg_fitness_free(r);
	/* a graph that nobody means to train on */
	free(d->train_mask);
	free(d->val_mask);
	d->train_mask = d->val_mask = NULL;
	r = examine(d);
	CHECK(r->verdict == HG_SEVERITY_NOTE && find(r, HG_FITNESS_UNREADY, -1) >= 0);
	CHECK_EQ_I(find(r, HG_FITNESS_UNTRAINED, 4), -1);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* Labels of one class teach nothing; no labels at all may be meant for something else. */
static void one_class_is_a_loss(void)
{
	hg_dataset *d = ring(N, 1);
	for (int64_t i = 0; i < N; i++) {
		*cell(d, i, 0) = (float)normal(i);
		d->label[i] = i % 3 ? 1 : -1;
	}
	hg_fitness *r = examine(d);
	expect(r, HG_FITNESS_ONE_CLASS, 1, HG_SEVERITY_LOSS, N / 3 * 2, N / 3 * 2,
	       "all 2000 labelled nodes are of class 1: there is nothing to tell apart; add the labels "
	       "of other classes");
	hg_fitness_free(r);
	d->label[2] = 0;
	r = examine(d);
	CHECK_EQ_I(find(r, HG_FITNESS_ONE_CLASS, 1), -1);
	hg_fitness_free(r);
	memset(d->label, 0xFF, N * sizeof *d->label);
	r = examine(d);
	CHECK_EQ_I(find(r, HG_FITNESS_ONE_CLASS, 0), -1);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* One class more than is looked at one by one. */
static void very_many_classes_are_skipped(void)
{
	hg_dataset *d = ring(100, 1);
	d->classes = (1 << 24) + 1;
	hg_fitness *r = examine(d);
	CHECK_EQ_I(find(r, HG_FITNESS_EMPTY_CLASS, 2), -1);
	hg_fitness_free(r);
	d->classes--;
	r = examine(d);
	CHECK(find(r, HG_FITNESS_EMPTY_CLASS, 2) >= 0);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* More columns than are looked at. */
static void very_many_columns_are_cut(void)
{
	hg_dataset *d = ring(100, 0);
	static const int32_t last[] = {7, HG_FITNESS_COLUMNS};
	d->features = INT32_MAX;
	free(d->feat);
	d->feat = NULL;
	d->feat_rowptr = calloc(101, sizeof *d->feat_rowptr);
	d->feat_col = calloc(2, sizeof *d->feat_col);
	d->feat_value = calloc(2, sizeof *d->feat_value);
	CHECK(d->feat_rowptr && d->feat_col && d->feat_value);
	memcpy(d->feat_col, last, sizeof last);
	for (int i = 0; i < 100; i++)
		d->feat_rowptr[i + 1] = 2;
	d->feat_value[0] = 0.1f;
	d->feat_value[1] = 1e9f;
	hg_fitness *r = examine(d);
	CHECK(r->columns == HG_FITNESS_COLUMNS && r->column[7].nonzero == 1);
	CHECK_EQ_I(find(r, HG_FITNESS_OVERFLOW, HG_FITNESS_COLUMNS), -1);
	expect(
	    r, HG_FITNESS_UNSEEN, HG_FITNESS_COLUMNS, HG_SEVERITY_LOSS, INT32_MAX - HG_FITNESS_COLUMNS,
	    INT32_MAX,
	    "columns that were not checked: 2143289343 of 2147483647, from column 4194304 on; nothing "
	    "is known of what fp16 does to them");
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* A star of `leaves`, both ways, and two isolated nodes, one of them with a self loop. */
static hg_dataset *star(int64_t leaves)
{
	const int64_t n = leaves + 3;
	hg_dataset *d = ring(n, 1);
	d->edges = 2 * leaves + 1;
	int64_t m = 0;
	for (int64_t i = 0; i < n; i++) {
		for (int64_t k = 1; i == 0 && k <= leaves; k++)
			d->col[m++] = (int32_t)k;
		if (i > 0 && i <= leaves)
			d->col[m++] = 0;
		if (i == n - 1)
			d->col[m++] = (int32_t)i;
		d->rowptr[i + 1] = m;
		*cell(d, i, 0) = (float)(40 + normal(i));
	}
	return d;
}

static void hubs_and_isolated_nodes_are_named(void)
{
	hg_dataset *d = star(2048);
	hg_fitness *r = examine(d);
	CHECK_EQ_I(find(r, HG_FITNESS_HUB, 0), -1);
	CHECK_EQ_I(r->most_neighbours, 2048);
	expect(r, HG_FITNESS_ISOLATED, -1, HG_SEVERITY_NOTE, 2, 2051,
	       "nodes without a neighbour: 2 of 2051; --largest-component removes them, --self-loops "
	       "lets them see themselves");
	hg_fitness_free(r);
	hg_dataset_free(d);
	d = star(2049);
	d->orig_id = calloc((size_t)d->nodes, sizeof *d->orig_id);
	CHECK(d->orig_id != NULL);
	d->orig_id[0] = 777;
	r = examine(d);
	expect(
	    r, HG_FITNESS_HUB, 777, HG_SEVERITY_NOTE, 1, 2052,
	    "node 777 has 2049 neighbours, and a sum in fp16 ignores equal addends after 2048 (nodes "
	    "with more: 1): --precision fp16 sums in f32");
	const int64_t k = find(r, HG_FITNESS_SUM, 777);
	CHECK(k >= 0 && r->finding[k].value > 65504 && r->finding[k].value < 2049 * 46);
	CHECK_CONTAINS(sentence_of(r, k), "at node 777, and fp16 ends at 65504");
	hg_fitness_free(r);
	/* outgoing edges alone make a hub of the backward sum */
	d->rowptr[1] = 0;
	for (int64_t i = 1; i <= d->nodes; i++)
		d->rowptr[i] = i <= 2050 ? i - 1 : 2049;
	d->rowptr[d->nodes] = d->edges = 2050;
	for (int64_t e = 0; e < 2049; e++)
		d->col[e] = 0;
	d->col[2049] = (int32_t)(d->nodes - 1);
	r = examine(d);
	CHECK(find(r, HG_FITNESS_HUB, 777) >= 0);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

static void batches_speak_of_graphs(void)
{
	hg_dataset *d = small_batch();
	d->train_mask[0] = 0;
	d->val_mask = calloc(2, 1);
	CHECK(d->val_mask != NULL);
	d->val_mask[0] = 1;
	d->train_mask[1] = 1;
	d->test_mask[1] = 0;
	hg_fitness *r = examine(d);
	CHECK(r->batch && r->graphs == 2);
	expect(r, HG_FITNESS_UNTRAINED, 1, HG_SEVERITY_LOSS, 1, 1,
	       "class 1 has 1 labelled graph, but none in the training set: --split "
	       "per-class:20/30/rest");
	expect(r, HG_FITNESS_ISOLATED, -1, HG_SEVERITY_NOTE, 1, 6,
	       "nodes without a neighbour: 1 of 6; --self-loops lets them see themselves");
	hg_fitness_free(r);
	hg_dataset_free(d);
}

static void copies_across_the_split_are_found(void)
{
	for (int kind = 0; kind < 3; kind++) {
		hg_dataset *d = ring(N, 3);
		for (int64_t i = 0; i < N; i++)
			for (int64_t j = 0; j < 3; j++)
				*cell(d, i, j) = (float)normal(3 * i + j);
		for (int64_t k = 0; k < 7; k++) /* test nodes 4, 9, ... are copies of 0, 5, ... */
			memcpy(cell(d, 5 * k + 4, 0), cell(d, 5 * k, 0), 3 * sizeof(float));
		memset(cell(d, 100, 0), 0, 3 * sizeof(float)); /* zeros are no copies */
		memset(cell(d, 104, 0), 0, 3 * sizeof(float));
		if (kind == 1)
			make_sparse(d);
		if (kind == 2)
			CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, NULL));
		hg_fitness *r = examine(d);
		expect(r, HG_FITNESS_LEAK, -1, HG_SEVERITY_NOTE, 7, N / 5,
		       "nodes of the test set with exactly the features of a training node: 7 of 600; if "
		       "they are copies, the accuracy is too good: remove them at the source");
		expect(r, HG_FITNESS_ZERO_ROWS, -1, HG_SEVERITY_NOTE, 2, N,
		       "nodes with nothing but zeros as features: 2 of 3000; only their neighbours tell "
		       "them apart: --positional adds columns");
		hg_fitness_free(r);
		hg_dataset_free(d);
	}
	/* kinds of nodes are no copies */
	hg_dataset *d = ring(N, 1);
	for (int64_t i = 0; i < N; i++)
		*cell(d, i, 0) = (float)(1 + i % 3);
	hg_fitness *r = examine(d);
	CHECK_EQ_I(find(r, HG_FITNESS_LEAK, -1), -1);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* ---- refusals ---- */

static void all_faults_are_listed(void)
{
	hg_dataset *d = ring(N, 3);
	for (int64_t i = 0; i < N; i++)
		for (int64_t j = 0; j < 3; j++)
			*cell(d, i, j) = (float)normal(3 * i + j);
	*cell(d, 7, 1) = NAN;
	*cell(d, 8, 1) = INFINITY;
	d->label[5] = 9;
	d->val_mask[0] = 1;
	d->weight = calloc((size_t)d->edges, sizeof *d->weight);
	CHECK(d->weight != NULL);
	d->weight[0] = -INFINITY;
	hg_fitness *r = examine(d);
	CHECK_EQ_I(r->verdict, HG_SEVERITY_REFUSED);
	CHECK_EQ_I(r->findings, 4);
	CHECK_STR(sentence_of(r, 0), "made: labels: node 5 has label 9, but there are 2 classes");
	CHECK_STR(sentence_of(r, 1), "made: splits: node 0 is in train and in val");
	expect(r, HG_FITNESS_NONFINITE, 1, HG_SEVERITY_REFUSED, 2, N,
	       "column 1: 2 of 3000 values are NaN or infinite: replace them at the source");
	expect(r, HG_FITNESS_NONFINITE, -1, HG_SEVERITY_REFUSED, 1, 2 * N,
	       "the weights of the edges: 1 of 6000 values are NaN or infinite: replace them at the "
	       "source");
	CHECK(r->column[1].nonfinite == 2 && fabs(r->column[1].deviation - 1) < 0.1);
	hg_fitness_free(r);
	/* nothing is read beyond a broken graph */
	d->rowptr[N] = 5;
	r = examine(d);
	CHECK(r->verdict == HG_SEVERITY_REFUSED && r->findings == 1 && r->columns == 0);
	CHECK_CONTAINS(sentence_of(r, 0), "graph: pointers decrease after row");
	hg_fitness_free(r);
	d->rowptr[N] = d->edges;
	d->feat_dtype = HG_I32;
	r = examine(d);
	CHECK(r->columns == 0 && find(r, HG_FITNESS_NONFINITE, 1) < 0);
	hg_fitness_free(r);
	d->feat_dtype = HG_F32;
	hg_dataset_free(d);
}

static int stop(void *user, const char *what, int64_t done, int64_t total)
{
	(void)what;
	CHECK(done >= 0 && done <= total);
	return (*(int *)user)-- == 0;
}

static void calls_are_checked(void)
{
	char message[HG_DATA_MESSAGE] = "", line[HG_DATA_MESSAGE];
	hg_dataset *d = small_dataset();
	hg_fitness *r = NULL;
	CHECK_STATUS(hg_dataset_fitness(NULL, NULL, NULL, &r, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "dataset_fitness: dataset is NULL");
	CHECK_STATUS(hg_dataset_fitness(d, NULL, NULL, NULL, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "report is NULL");
	CHECK_STATUS(hg_file_fitness(NULL, NULL, &r, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "file_fitness: path is NULL");
	CHECK_STATUS(hg_file_fitness("x", NULL, NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_file_fitness(scratch(0, "absent.h5"), NULL, &r, message), HG_ERR_IO);
	CHECK_CONTAINS(message, "absent.h5: No such file or directory");
	CHECK(r == NULL);
	hg_fitness_free(NULL);
	/* stopped at each step, until it ends */
	hg_status status = HG_ERR_STATE;
	int steps = 0;
	for (; status == HG_ERR_STATE; steps++) {
		int left = steps;
		const hg_progress progress = {stop, &left};
		status = hg_dataset_fitness(d, NULL, &progress, &r, message);
		CHECK_MSG((status == HG_OK) == (r != NULL), "step %d", steps);
	}
	CHECK_STATUS(status, HG_OK);
	CHECK_MSG(steps >= 4, "%d steps", steps);
	CHECK_STATUS(hg_fitness_sentence(NULL, 0, line), HG_ERR_ARG);
	CHECK_STATUS(hg_fitness_sentence(r, 0, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_fitness_sentence(r, -1, line), HG_ERR_ARG);
	CHECK_STATUS(hg_fitness_sentence(r, r->findings, line), HG_ERR_ARG);
	for (int k = 0; k < HG_FITNESS_KINDS; k++)
		CHECK(strcmp(hg_fitness_kind_name((hg_fitness_kind)k), "unknown") != 0);
	CHECK_STR(hg_fitness_kind_name(HG_FITNESS_KINDS), "unknown");
	CHECK_STR(hg_severity_name(HG_SEVERITY_LOSS), "loss");
	CHECK_STR(hg_severity_name(HG_SEVERITIES), "unknown");
	hg_fitness_free(r);
	hg_dataset_free(d);
}

static void empty_datasets_are_examined(void)
{
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	hg_fitness *r = examine(d); /* without arrays: refused */
	CHECK_EQ_I(r->verdict, HG_SEVERITY_REFUSED);
	hg_fitness_free(r);
	d->rowptr = calloc(1, sizeof *d->rowptr);
	d->col = calloc(1, sizeof *d->col);
	d->features = 2;
	d->feat = calloc(1, sizeof(float));
	CHECK(d->rowptr && d->col && d->feat);
	r = examine(d);
	CHECK(r->verdict == HG_SEVERITY_NOTE && r->columns == 2 && r->column[0].values == 0);
	hg_fitness_free(r);
	hg_dataset_free(d);
}

/* ---- the command line ---- */

/* Replaces element `first` of an array of a file without a checksum. */
static void overwrite(const char *path, const char *array, hid_t type, hsize_t first,
                      const void *values)
{
	const hsize_t count = 1;
	const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
	            data = H5Dopen2(file, array, H5P_DEFAULT), space = H5Dget_space(data),
	            one = H5Screate_simple(1, &count, NULL);
	const hsize_t start[2] = {first, 0}, block[2] = {1, 1};
	CHECK(file >= 0 && data >= 0 &&
	      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL) >= 0 &&
	      H5Dwrite(data, type, one, space, H5P_DEFAULT, values) >= 0);
	CHECK(H5Sclose(one) >= 0 && H5Sclose(space) >= 0 && H5Dclose(data) >= 0 && H5Fclose(file) >= 0);
}

static void tool_ends_with_its_verdict(void)
{
	hg_dataset *d = ring(N, 8);
	for (int64_t i = 0; i < N; i++)
		for (int64_t j = 0; j < 8; j++)
			*cell(d, i, j) = (float)normal(8 * i + j);
	must_write(d, scratch(0, "fit.h5"));
	CHECK_EQ_I(run_convert("--check @/fit.h5"), 0);
	CHECK_CONTAINS(convert_out, "fit.h5: fit for fp16\n  looked at 3000 nodes, 6000 edges, 8 "
	                            "columns (dense)\n");
	CHECK_STR(convert_err, "");
	for (int64_t j = 0; j < 8; j++)
		*cell(d, 3, j) = 1e6f * (float)(j + 1);
	must_write(d, scratch(0, "large.h5"));
	CHECK_EQ_I(run_convert("--check @/large.h5"), 3);
	CHECK_CONTAINS(convert_out, "large.h5: not fit as it is: 8 losses, 1 note\n");
	CHECK_CONTAINS(convert_out, "  loss     column 7: largest 8e+06 overflows fp16 (1 of 3000 "
	                            "values become infinite): --clip\n");
	CHECK_CONTAINS(convert_out, "  loss     ... and 3 more of this kind (--json lists all)\n");
	CHECK(strstr(convert_out, "column 2:") == NULL);
	CHECK_EQ_I(run_convert("--quiet @/large.h5 --clip -o @/remedied.h5"), 0);
	CHECK_EQ_I(run_convert("--check @/remedied.h5"), 0);
	/* refused: by values, and as a whole */
	must_write(d, scratch(0, "nan.h5"));
	unseal(scratch(0, "nan.h5"));
	overwrite(scratch(0, "nan.h5"), "nodes/feat", H5T_NATIVE_FLOAT, 5, &(float){NAN});
	overwrite(scratch(0, "nan.h5"), "nodes/label", H5T_NATIVE_INT, 6, &(int){7});
	CHECK_EQ_I(run_convert("--check @/nan.h5"), 2);
	CHECK_CONTAINS(convert_out, "nan.h5: refused: 2 faults, 8 losses");
	CHECK_CONTAINS(convert_out, "nan.h5: labels: node 6 has label 7, but there are 2 classes");
	CHECK_CONTAINS(convert_out, "column 0: 1 of 3000 values are NaN or infinite");
	CHECK_EQ_I(run_convert("@/nan.h5 -o @/never.h5"), 2);
	size_t size = 0;
	unsigned char *bytes = read_bytes(scratch(0, "fit.h5"), &size);
	bytes[size / 2] ^= 1;
	write_bytes(scratch(0, "damaged.h5"), bytes, size);
	free(bytes);
	CHECK_EQ_I(run_convert("--check @/damaged.h5"), 2);
	CHECK_CONTAINS(convert_out, "damaged.h5: refused: 1 fault\n  refused  ");
	CHECK_CONTAINS(convert_out, "does not fit its checksum");
	hg_dataset_free(d);
}

static void tool_reads_other_formats(void)
{
	write_text(scratch(0, "in.txt"), "0 1\n1 2\n");
	CHECK_EQ_I(run_convert("--check @/in.txt"), 0);
	CHECK_CONTAINS(convert_out, "in.txt: fit for fp16: 1 note\n  looked at 3 nodes, 2 edges, 0 "
	                            "columns\n  note     ");
	CHECK_CONTAINS(convert_err, "in.txt: read as edges");
	CHECK_EQ_I(run_convert("--check @/in.txt --from edges --quiet"), 0);
	CHECK_STR(convert_err, "");
	write_text(scratch(0, "bad.txt"), "0 1\n1 x\n");
	CHECK_EQ_I(run_convert("--check @/bad.txt"), 2);
	CHECK_CONTAINS(convert_err, "bad.txt:2: expected two node numbers");
	CHECK_STR(convert_out, "");
}

static void usage_errors_end_with_2(void)
{
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"--check", "--check needs a value: FILE"},
	    {"--check @/absent.h5", "No such file or directory"},
	    {"--check @/in.txt @/in.txt", "--check takes one file and only --json, --from, --header"},
	    {"--check @/in.txt -o @/never.h5", "--check takes one file"},
	    {"--check @/in.txt --standardize", "--check takes one file"},
	    {"--check @/in.txt --from csv", "--from csv is not known"},
	    {"--check @/in.txt --inspect @/in.txt", "takes one file"},
	};
	write_text(scratch(0, "in.txt"), "0 1\n");
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		const int code = run_convert(bad[k].arguments);
		CHECK_MSG(code == 2, "\"%s\" ended with %d: %s", bad[k].arguments, code, convert_err);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK_EQ_I(count_scratch("never"), 0);
	}
	CHECK_EQ_I(run_convert("--check @/in.txt --quiet >/dev/full"), 1);
	CHECK_CONTAINS(convert_err, "h5convert: cannot write to standard output: ");
	CHECK_EQ_I(run_convert("--check @/in.txt --quiet --json >/dev/full"), 1);
	CHECK_CONTAINS(convert_err, "h5convert: cannot write to standard output: ");
}

/* Lines for programs fit docs/json-lines.schema.json. */
static void json_is_as_documented(void)
{
	static const char *const files[] = {"@/json.h5", "@/refused.h5", "@/weighted.h5", "@/in.txt"};
	write_text(scratch(0, "in.txt"), "0 1\n");
	hg_dataset *d = small_sparse();
	must_write(d, scratch(0, "weighted.h5"));
	hg_dataset_free(d);
	d = ring(N, 3);
	for (int64_t i = 0; i < N; i++)
		*cell(d, i, 1) = (float)(4e4 + normal(i));
	must_write(d, scratch(0, "json.h5"));
	must_write(d, scratch(0, "refused.h5"));
	unseal(scratch(0, "refused.h5"));
	overwrite(scratch(0, "refused.h5"), "nodes/feat", H5T_NATIVE_FLOAT, 5, &(float){INFINITY});
	hg_dataset_free(d);
	for (int k = 0; k < 4; k++) {
		char arguments[256];
		snprintf(arguments, sizeof arguments, "--check %s --json --quiet >@/check.jsonl", files[k]);
		const int code = run_convert(arguments);
		CHECK_EQ_I(code, k == 1 ? 2 : k == 3 ? 0 : 3);
		snprintf(arguments, sizeof arguments,
		         "--version >/dev/null; '" HG_SCHEMA_CHECKER "' '" HG_SCHEMA "' @/check.jsonl");
		CHECK_MSG(run_convert(arguments) == 0, "%s: %s", files[k], convert_err);
		CHECK_EQ_I(run_convert("--version >/dev/null; tail -n 1 @/check.jsonl"), 0);
		CHECK_CONTAINS(convert_out, k == 1   ? "\"verdict\":\"refused\""
		                            : k == 3 ? "\"verdict\":\"fit\""
		                                     : "\"verdict\":\"loss\"");
	}
	CHECK_EQ_I(run_convert("--check @/json.h5 --json | grep -c check_column"), 0);
	CHECK_STR(convert_out, "3\n");
	CHECK_EQ_I(run_convert("--check @/json.h5 --json | grep '\"kind\":\"spread\"'"), 0);
	CHECK_CONTAINS(convert_out, "\"severity\":\"loss\",\"weights\":false,\"at\":1,");
	CHECK_CONTAINS(convert_out, "\"option\":\"--standardize\",\"call\":\"hg_dataset_standardize\"");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(good_columns_are_fit),
	    TEST(bad_columns_are_named),
	    TEST(borders_are_those_of_rounding),
	    TEST(sparse_features_are_judged_alike),
	    TEST(weights_are_judged),
	    TEST(labels_and_splits_are_judged),
	    TEST(one_class_is_a_loss),
	    TEST(very_many_classes_are_skipped),
	    TEST(very_many_columns_are_cut),
	    TEST(hubs_and_isolated_nodes_are_named),
	    TEST(batches_speak_of_graphs),
	    TEST(copies_across_the_split_are_found),
	    TEST(all_faults_are_listed),
	    TEST(calls_are_checked),
	    TEST(empty_datasets_are_examined),
	    TEST(tool_ends_with_its_verdict),
	    TEST(tool_reads_other_formats),
	    TEST(usage_errors_end_with_2),
	    TEST(json_is_as_documented),
	};
	return RUN_TESTS(argc, argv, cases);
}
