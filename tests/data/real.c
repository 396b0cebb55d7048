/* Real datasets, if HG_DATA names their directory: the counts that are published for these
 * files. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

static const char *real(const char *file)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/raw/%s", test_data(), file);
	if (!file_exists(path))
		SKIP("%s is not there", path);
	return path;
}

static int64_t count(const uint8_t *mask, int64_t n)
{
	int64_t sum = 0;
	for (int64_t i = 0; mask && i < n; i++)
		sum += mask[i];
	return sum;
}

static int64_t max_degree(const hg_dataset *d)
{
	int64_t most = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		most = d->rowptr[i + 1] - d->rowptr[i] > most ? d->rowptr[i + 1] - d->rowptr[i] : most;
	return most;
}

struct expected {
	const char *format, *file;
	int64_t nodes, edges, max_degree, features, stored;
	int classes, train, val, test;
};

static const struct expected cora = {
    "npz", "planetoid_npz/cora.npz", 2708, 10556, 168, 1433, 49216, 7, 140, 500, 1000};
static const struct expected citeseer = {
    "npz", "planetoid_npz/citeseer.npz", 3327, 9104, 99, 3703, 105165, 6, 120, 500, 1000};
static const struct expected pubmed = {
    "npz", "planetoid_npz/pubmed_nofeat.npz", 19717, 88648, 171, 0, 0, 3, 60, 500, 1000};
static const struct expected computers = {
    "npz", "gnnbench_npz/amazon_computers.npz", 13752, 491722, 2992, 767, 3675081, 10, 200, 300,
    13252};
static const struct expected epinions = {
    "edges", "snap/soc-Epinions1.txt.gz", 75879, 811480, 3044, 0, 0, 0, 0, 0, 0};
static const struct expected chesapeake = {"mtx", "mtx/chesapeake.mtx", 39, 340, 33, 0, 0, 0, 0, 0,
                                           0};

/* Imports a dataset, makes it symmetric, compares its counts, writes it and reads it again. */
static void check_real(const struct expected *x)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = must_import(x->format, real(x->file));
	CHECK_OK(hg_dataset_symmetrize(d, message));
	CHECK_EQ_I(d->nodes, x->nodes);
	CHECK_EQ_I(d->edges, x->edges);
	CHECK_EQ_I(max_degree(d), x->max_degree);
	CHECK_EQ_I(d->features, x->features);
	CHECK_EQ_I(d->feat_rowptr ? d->feat_rowptr[d->nodes] : 0, x->stored);
	CHECK_EQ_I(d->classes, x->classes);
	CHECK_EQ_I(count(d->train_mask, d->nodes), x->train);
	CHECK_EQ_I(count(d->val_mask, d->nodes), x->val);
	CHECK_EQ_I(count(d->test_mask, d->nodes), x->test);
	must_write(d, scratch(0, "real.h5"));
	hg_dataset *back = must_read(scratch(0, "real.h5"));
	check_same(d, back);
	hg_dataset_free(d);
	hg_dataset_free(back);
}

static void cora_is_read(void)
{
	check_real(&cora);
}
static void citeseer_is_read(void)
{
	check_real(&citeseer);
}
static void pubmed_is_read(void)
{
	check_real(&pubmed);
}
static void computers_is_read(void)
{
	check_real(&computers);
}
static void epinions_is_read(void)
{
	check_real(&epinions);
}
static void chesapeake_is_read(void)
{
	check_real(&chesapeake);
}

static void computers_largest_component(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = must_import("npz", real(computers.file));
	CHECK_OK(hg_dataset_symmetrize(d, message));
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK_EQ_I(d->nodes, 13381);
	CHECK_EQ_I(d->edges, 2 * 245778);
	hg_dataset_free(d);
}

static void gnutella_keeps_explicit_zeros(void)
{
	hg_dataset *d = must_import("mtx", real("mtx/p2p-Gnutella31.mtx"));
	int64_t zeros = 0;
	for (int64_t e = 0; e < d->edges; e++)
		zeros += d->weight[e] == 0;
	CHECK_EQ_I(d->nodes, 62586);
	CHECK_EQ_I(d->edges, 147892);
	CHECK_EQ_I(zeros, 14989);
	hg_dataset_free(d);
}

static void citeseer_has_unlabelled_nodes(void)
{
	hg_dataset *d = must_import("npz", real(citeseer.file));
	int64_t unlabelled = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		unlabelled += d->label[i] < 0;
	CHECK_EQ_I(unlabelled, 15);
	hg_dataset_free(d);
}

static void pickles_are_refused(void)
{
	must_refuse("npz", real("gnnbench_npz/polblogs_pickled_objects.npz"), HG_ERR_FORMAT,
	            "holds pickled Python objects, which are refused and never executed");
}

static void csv_edges_are_read(void)
{
	hg_dataset *d = must_import("edges", real("musae/DE_edges.csv.gz"));
	CHECK_EQ_I(d->nodes, 9498);
	CHECK_EQ_I(d->edges, 153138);
	hg_dataset_free(d);
}

static int32_t label_of(const hg_dataset *d, int64_t i, int64_t j)
{
	for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
		if (d->col[e] == j)
			return d->edge_label[e];
	return -2;
}

/* Four types of bonds, as often as published, and the same in both directions, also after the atoms
 * are reordered. */
static void check_bonds(hg_dataset *d, const int64_t published[4])
{
	char message[HG_DATA_MESSAGE] = "";
	for (int reordered = 0; reordered < 2; reordered++) {
		int64_t bonds[4] = {0, 0, 0, 0};
		CHECK(d->edge_classes == 4 && !d->edge_feat);
		for (int64_t i = 0; i < d->nodes; i++)
			for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
				bonds[d->edge_label[e]]++;
				CHECK_EQ_I(label_of(d, d->col[e], i), d->edge_label[e]);
			}
		CHECK(memcmp(bonds, published, sizeof bonds) == 0);
		CHECK_OK(hg_dataset_reorder(d, "community", NULL, NULL, message));
	}
}

static void molecules_have_real_targets(void)
{
	hg_dataset *d = must_import("tu", real("zinc/ZINC12K_tu.zip"));
	CHECK(d->graphs == 12000 && d->nodes == 278066 && d->edges == 598292);
	CHECK(d->targets == 2 && d->label == NULL && d->features == 13);
	double sum = 0;
	for (int64_t g = 0; g < d->graphs; g++)
		sum += (double)d->target[2 * g];
	CHECK(sum / 12000 > 2.4465 && sum / 12000 < 2.4475);
	check_bonds(d, (const int64_t[]){309420, 37848, 1504, 249520});
	hg_dataset_free(d);
}

/* The same molecules as numpy arrays, with four targets, attributes of atoms and a split. */
static void molecules_are_read_from_arrays(void)
{
	hg_dataset *d = must_import("npz", real("zinc/zinc12k.npz")),
	           *tu = must_import("tu", real("zinc/ZINC12K_tu.zip"));
	CHECK(d->graphs == 12000 && d->nodes == 278066 && d->edges == 598292 && max_degree(d) == 4);
	CHECK(d->targets == 4 && d->label == NULL && d->features == 7 + 13);
	CHECK_STR(d->target_names, "logp\nsa\ncycle\npenalized_logp");
	CHECK_EQ_I(count(d->train_mask, d->graphs), 10000);
	CHECK_EQ_I(count(d->val_mask, d->graphs), 1000);
	CHECK_EQ_I(count(d->test_mask, d->graphs), 1000);
	/* atoms, bonds and targets are those of the other file, which has 6 digits of the targets */
	CHECK(memcmp(d->graph_ptr, tu->graph_ptr, 12001 * sizeof *d->graph_ptr) == 0 &&
	      memcmp(d->rowptr, tu->rowptr, (size_t)(d->nodes + 1) * sizeof *d->rowptr) == 0 &&
	      memcmp(d->col, tu->col, (size_t)d->edges * sizeof *d->col) == 0 &&
	      memcmp(d->edge_label, tu->edge_label, (size_t)d->edges * sizeof *d->edge_label) == 0);
	const float *x = d->feat;
	for (int64_t i = 0; i < d->nodes; i++)
		CHECK(x[i * 20 + 7 + tu->feat_col[i]] == 1);
	for (int64_t g = 0; g < d->graphs; g++) {
		CHECK_WITHIN(d->target[4 * g], tu->target[2 * g],
		             1e-5 * (1 + fabs((double)tu->target[2 * g])));
		CHECK_WITHIN(d->target[4 * g + 3], tu->target[2 * g + 1],
		             1e-5 * (1 + fabs((double)tu->target[2 * g + 1])));
	}
	hg_dataset_free(tu);
	check_bonds(d, (const int64_t[]){309420, 37848, 1504, 249520});
	hg_dataset_free(d);
}

static void mutag_is_read(void)
{
	hg_dataset *d = must_import("tu", real("tu_official/MUTAG.zip"));
	CHECK_STR(d->name, "MUTAG");
	CHECK(d->graphs == 188 && d->nodes == 3371 && d->edges == 7442 && d->features == 7 &&
	      d->classes == 2);
	check_bonds(d, (const int64_t[]){4708, 2008, 724, 2});
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(cora_is_read),
	    TEST(citeseer_is_read),
	    TEST(pubmed_is_read),
	    TEST(computers_is_read),
	    TEST(epinions_is_read),
	    TEST(chesapeake_is_read),
	    TEST(computers_largest_component),
	    TEST(gnutella_keeps_explicit_zeros),
	    TEST(citeseer_has_unlabelled_nodes),
	    TEST(pickles_are_refused),
	    TEST(csv_edges_are_read),
	    TEST(molecules_have_real_targets),
	    TEST(molecules_are_read_from_arrays),
	    TEST(mutag_is_read),
	};
	return RUN_TESTS(argc, argv, cases);
}
