/* hg_dataset_check: each of its rules is broken once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static void good_datasets_pass(void)
{
	hg_dataset *d[] = {small_dataset(), small_sparse(), small_batch()};
	for (int k = 0; k < 3; k++) {
		char message[HG_DATA_MESSAGE] = "";
		const hg_status status = hg_dataset_check(d[k], "here", message);
		CHECK_MSG(status == HG_OK, "%s", message);
		hg_dataset_free(d[k]);
	}
}

static void empty_is_legal(void)
{
	hg_dataset *d = NULL;
	char message[HG_DATA_MESSAGE] = "";
	CHECK_OK(hg_dataset_new(&d, message));
	d->rowptr = calloc(1, sizeof *d->rowptr);
	d->col = calloc(1, sizeof *d->col);
	CHECK_OK(hg_dataset_check(d, "empty", message));
	const char *path = scratch(0, "empty.h5");
	must_write(d, path);
	hg_dataset *back = must_read(path);
	check_same(d, back);
	hg_dataset_free(d);
	hg_dataset_free(back);
}

static void break_start(hg_dataset *d)
{
	d->rowptr[0] = 1;
}
static void break_order(hg_dataset *d)
{
	d->rowptr[2] = 1;
}
static void break_end(hg_dataset *d)
{
	d->edges = 12;
}
static void break_column(hg_dataset *d)
{
	d->col[3] = 6;
}
static void break_negative_column(hg_dataset *d)
{
	d->col[0] = -1;
}
static void break_duplicate(hg_dataset *d)
{
	d->col[1] = 1;
}
static void break_weight(hg_dataset *d)
{
	d->weight[10] = INFINITY;
}
static void break_edge_columns(hg_dataset *d)
{
	d->edge_features = 0;
}
static void break_edge_matrix(hg_dataset *d)
{
	free(d->edge_feat);
	d->edge_feat = NULL;
}
static void break_edge_width(hg_dataset *d)
{
	d->edge_features = (int64_t)INT32_MAX + 1;
}
static void break_edge_feature(hg_dataset *d)
{
	d->edge_feat[9] = NAN;
}
static void break_last_edge_feature(hg_dataset *d)
{
	d->edge_feat[21] = -INFINITY;
}
static void break_edge_label(hg_dataset *d)
{
	d->edge_label[7] = 5;
}
static void break_edge_classes(hg_dataset *d)
{
	d->edge_classes = -1;
}
static void break_edge_labels(hg_dataset *d)
{
	free(d->edge_label);
	d->edge_label = NULL;
}
static void break_feature(hg_dataset *d)
{
	((float *)d->feat)[3 * 4 + 1] = NAN;
}
static void break_half(hg_dataset *d)
{
	char message[HG_DATA_MESSAGE];
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	((hg_half *)d->feat)[5] = 0x7C00;
}
static void break_label(hg_dataset *d)
{
	d->label[2] = 3;
}
static void break_split(hg_dataset *d)
{
	d->test_mask[1] = 1;
}
static void break_dense_and_sparse(hg_dataset *d)
{
	d->feat_rowptr = calloc(7, sizeof *d->feat_rowptr);
}
static void break_no_matrix(hg_dataset *d)
{
	free(d->feat);
	d->feat = NULL;
}
static void break_nodes(hg_dataset *d)
{
	d->nodes = -1;
}

static const struct {
	void (*spoil)(hg_dataset *);
	hg_status status;
	const char *part;
} rules[] = {
    {break_start, HG_ERR_FORMAT, "here: graph: pointers start at 1, expected 0"},
    {break_order, HG_ERR_FORMAT, "here: graph: pointers decrease after row 1: 1 after 2"},
    {break_end, HG_ERR_FORMAT, "here: graph: pointers end at 11, but there are 12 edges"},
    {break_column, HG_ERR_FORMAT, "here: graph: index 6 at entry 3 (row 1) is not in [0, 6)"},
    {break_negative_column, HG_ERR_FORMAT, "index -1 at entry 0"},
    {break_duplicate, HG_ERR_FORMAT, "columns of row 0 are not strictly ascending: 1 after 1"},
    {break_weight, HG_ERR_FORMAT, "weight inf at row 4, column 4 is not finite"},
    {break_edge_columns, HG_ERR_FORMAT,
     "here: edge features: 0 columns need a matrix, and a matrix 1 to 2147483647 columns"},
    {break_edge_matrix, HG_ERR_FORMAT, "here: edge features: 2 columns need a matrix"},
    {break_edge_width, HG_ERR_FORMAT, "here: edge features: 2147483648 columns need a matrix"},
    {break_edge_feature, HG_ERR_RANGE,
     "here: edge features: the edge from node 3 to node 1 has nan in column 1, not a finite "
     "number"},
    {break_last_edge_feature, HG_ERR_RANGE,
     "edge features: the edge from node 4 to node 4 has -inf in column 1"},
    {break_edge_label, HG_ERR_FORMAT,
     "here: edge labels: the edge from node 1 to node 3 has label 5, but there are 5"},
    {break_edge_classes, HG_ERR_FORMAT, "here: edge labels: -1 classes need edge_label"},
    {break_edge_labels, HG_ERR_FORMAT, "here: edge labels: 5 classes need edge_label"},
    {break_feature, HG_ERR_RANGE, "here: features: row 4, column 1 is nan"},
    {break_half, HG_ERR_RANGE,
     "here: features: row 1, column 2 is inf, not a finite number (f16 ends at 65504)"},
    {break_label, HG_ERR_FORMAT, "here: labels: node 2 has label 3, but there are 3 classes"},
    {break_split, HG_ERR_FORMAT, "here: splits: node 1 is in train and in test"},
    {break_dense_and_sparse, HG_ERR_FORMAT, "need a dense or a sparse matrix, and one only"},
    {break_no_matrix, HG_ERR_FORMAT, "need a dense or a sparse matrix, and one only"},
    {break_nodes, HG_ERR_FORMAT, "-1 nodes"},
};

static void each_rule_is_checked(void)
{
	for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = small_dataset();
		rules[k].spoil(d);
		CHECK_STATUS(hg_dataset_check(d, "here", message), rules[k].status);
		CHECK_CONTAINS(message, rules[k].part);
		/* such a dataset is not written either, and no file appears */
		const char *path = scratch(0, "spoilt.h5");
		CHECK_STATUS(hg_dataset_write(d, path, message), rules[k].status);
		CHECK(!file_exists(path));
		d->nodes = 6;
		hg_dataset_free(d);
	}
}

static void edges_between_graphs_of_a_batch_are_refused(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_batch();
	d->col[0] = 4;
	CHECK_STATUS(hg_dataset_check(d, "here", message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "batch: graph 0 (nodes 0 to 2) has an edge to node 4");
	d->col[0] = 1;
	d->graph_ptr[2] = 5;
	CHECK_STATUS(hg_dataset_check(d, "here", message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "batch: pointers end at 5, but there are 6 nodes");
	hg_dataset_free(d);
}

static void null_arguments_are_errors(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	CHECK_STATUS(hg_dataset_new(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_check(NULL, "x", message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_read(NULL, &d, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_read("x", NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_write(NULL, "x", message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_planted(NULL, &d, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_symmetrize(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_self_loops(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_largest_component(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_row_normalize(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_features_to(NULL, HG_F16, 0, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_check_f16(NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_check(NULL, "x", NULL), HG_ERR_ARG);
	hg_dataset_free(NULL);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(good_datasets_pass), TEST(empty_is_legal), TEST(each_rule_is_checked),
	    TEST(edges_between_graphs_of_a_batch_are_refused), TEST(null_arguments_are_errors)};
	return RUN_TESTS(argc, argv, cases);
}
