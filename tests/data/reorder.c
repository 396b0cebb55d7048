/* Datasets in another order. Everything of a node moves with it, the file remembers the old
 * numbers, and going back restores the first dataset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static float weight_at(const hg_dataset *d, int64_t i, int64_t j)
{
	for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
		if (d->col[e] == j)
			return d->weight ? d->weight[e] : 1;
	return -1000;
}

/* Has the edge (i, j) in one dataset what the edge (k, q) has in the other? */
static int same_edge(const hg_dataset *a, int64_t i, int64_t j, const hg_dataset *b, int64_t k,
                     int64_t q)
{
	int64_t e = a->rowptr[i], f = b->rowptr[k];
	while (e < a->rowptr[i + 1] && a->col[e] != j)
		e++;
	while (f < b->rowptr[k + 1] && b->col[f] != q)
		f++;
	if (e == a->rowptr[i + 1] || f == b->rowptr[k + 1])
		return e == a->rowptr[i + 1] && f == b->rowptr[k + 1];
	return (!a->edge_label || a->edge_label[e] == b->edge_label[f]) &&
	       (!a->edge_feat ||
	        memcmp(a->edge_feat + e * a->edge_features, b->edge_feat + f * a->edge_features,
	               (size_t)a->edge_features * sizeof *a->edge_feat) == 0);
}

/* Checks that node k of `moved` is node order[k] of `d`, in everything that belongs to it. */
static void check_moved(const hg_dataset *d, const hg_dataset *moved, const int32_t *order)
{
	CHECK(moved->nodes == d->nodes && moved->edges == d->edges && moved->features == d->features &&
	      moved->classes == d->classes);
	CHECK(moved->edge_features == d->edge_features && moved->edge_classes == d->edge_classes &&
	      !moved->edge_feat == !d->edge_feat && !moved->edge_label == !d->edge_label);
	for (int64_t k = 0; k < d->nodes; k++) {
		const int64_t i = order[k];
		CHECK_EQ_I(hg_dataset_node(moved, k), hg_dataset_node(d, i));
		for (int64_t q = 0; q < d->nodes; q++)
			CHECK(weight_at(moved, k, q) == weight_at(d, i, order[q]) &&
			      same_edge(moved, k, q, d, i, order[q]));
		for (int64_t c = 0; d->feat && c < d->features; c++)
			CHECK(((float *)moved->feat)[k * d->features + c] ==
			      ((float *)d->feat)[i * d->features + c]);
		if (d->feat_rowptr) {
			const int64_t a = d->feat_rowptr[i], b = moved->feat_rowptr[k],
			              count = d->feat_rowptr[i + 1] - a;
			CHECK_EQ_I(moved->feat_rowptr[k + 1] - b, count);
			CHECK(memcmp(moved->feat_col + b, d->feat_col + a,
			             (size_t)count * sizeof *d->feat_col) == 0);
			CHECK(memcmp(moved->feat_value + b, d->feat_value + a,
			             (size_t)count * sizeof *d->feat_value) == 0);
		}
		if (d->graph_ptr)
			continue;
		CHECK(moved->label[k] == d->label[i] && moved->train_mask[k] == d->train_mask[i]);
		CHECK(moved->val_mask[k] == d->val_mask[i] && moved->test_mask[k] == d->test_mask[i]);
	}
}

static hg_dataset *small(int kind)
{
	hg_dataset *d = kind == 0 ? small_dataset() : kind == 1 ? small_sparse() : small_batch();
	if (kind == 1) { /* a dataset without ids of its own remembers the old numbers */
		free(d->orig_id);
		d->orig_id = NULL;
	}
	return d;
}

static void all_of_a_node_moves(void)
{
	static const int32_t orders[][6] = {{3, 5, 0, 1, 4, 2}, {5, 4, 3, 2, 1, 0}, {2, 0, 1, 5, 3, 4}};
	char message[HG_DATA_MESSAGE] = "";
	for (int kind = 0; kind < 3; kind++) {
		hg_dataset *before = small(kind), *d = small(kind);
		CHECK_OK(hg_dataset_permute(d, orders[kind], message));
		CHECK_OK(hg_dataset_check(d, "moved", message));
		check_moved(before, d, orders[kind]);
		must_write(d, scratch(0, "moved.h5"));
		hg_dataset *read = must_read(scratch(0, "moved.h5"));
		check_same(d, read);
		CHECK_OK(hg_dataset_reorder(read, "original", NULL, NULL, message));
		check_same(before, read);
		CHECK_STATUS(hg_dataset_reorder(read, "original", NULL, NULL, message), HG_ERR_STATE);
		CHECK_CONTAINS(message, "reorder: the dataset is in its original order");
		hg_dataset_free(read);
		hg_dataset_free(before);
		hg_dataset_free(d);
	}
}

/* After several orders the first one is remembered, and going back gives an equal file. */
static void every_method_can_be_undone(void)
{
	static const char *const methods[] = {"community", "degree", "leading", "rcm", "auto", NULL};
	char message[HG_DATA_MESSAGE] = "";
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL, *before = NULL;
	config.nodes = 600;
	config.hub_degree = 100;
	CHECK_OK(hg_dataset_planted(&config, &d, message));
	CHECK_OK(hg_dataset_planted(&config, &before, message));
	for (size_t k = 0; k < sizeof methods / sizeof methods[0]; k++) {
		hg_order_report report = HG_ORDER_REPORT_INIT;
		CHECK_OK(hg_dataset_reorder(d, methods[k], NULL, &report, message));
		CHECK_OK(hg_dataset_check(d, "ordered", message));
		CHECK(report.method != NULL && report.before.gather_ps > 0);
	}
	CHECK(d->order != NULL);
	check_moved(before, d, d->order);
	CHECK_OK(hg_dataset_reorder(d, "original", NULL, NULL, message));
	check_same(before, d);
	hg_dataset_free(d);
	hg_dataset_free(before);
}

static void smallest_datasets_are_reordered(void)
{
	static const char *const methods[] = {"community", "degree", "leading", "rcm", "auto"};
	char message[HG_DATA_MESSAGE] = "";
	for (int64_t n = 0; n < 2; n++)
		for (size_t k = 0; k < sizeof methods / sizeof methods[0]; k++) {
			hg_dataset *d = NULL;
			CHECK_OK(hg_dataset_new(&d, message));
			d->nodes = n;
			d->rowptr = calloc(2, sizeof *d->rowptr);
			d->col = calloc(1, sizeof *d->col);
			CHECK_OK(hg_dataset_reorder(d, methods[k], NULL, NULL, message));
			CHECK(d->order == NULL);
			hg_dataset_free(d);
		}
}

/* The largest component has numbers of its own. The user's ids stay, and its order can be undone
 * like that of the whole. */
static void components_keep_the_ids(void)
{
	static const int32_t order[] = {5, 4, 3, 2, 1, 0};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small(1), *plain = small(1);
	CHECK_OK(hg_dataset_permute(d, order, message));
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK(d->nodes == 5 && hg_dataset_node(d, 0) == 4 && hg_dataset_node(d, 4) == 0);
	CHECK(d->order && d->order[0] == 4 && d->order[4] == 0);
	CHECK_OK(hg_dataset_check(d, "component", message));
	CHECK_OK(hg_dataset_reorder(d, "original", NULL, NULL, message));
	CHECK_OK(hg_dataset_largest_component(plain, message));
	CHECK(d->order == NULL && d->edges == plain->edges);
	for (int64_t i = 0; i < d->nodes; i++)
		CHECK(hg_dataset_node(d, i) == hg_dataset_node(plain, i) &&
		      d->label[i] == plain->label[i] && d->rowptr[i + 1] == plain->rowptr[i + 1]);
	CHECK(memcmp(d->col, plain->col, (size_t)d->edges * sizeof *d->col) == 0);
	hg_dataset_free(plain);
	hg_dataset_free(d);
}

static int stop(void *user, const char *what, int64_t done, int64_t total)
{
	(void)user;
	(void)what;
	return done >= 0 && total >= 0;
}

static void refusals_change_nothing(void)
{
	static const int32_t twice[] = {0, 1, 1, 2, 3, 4}, across[] = {3, 1, 2, 0, 4, 5};
	char message[HG_DATA_MESSAGE] = "";
	const hg_progress progress = {stop, NULL};
	hg_dataset *d = small(2), *before = small(2);
	CHECK_STATUS(hg_dataset_permute(d, twice, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "permute: the order is not a permutation of 6 nodes");
	CHECK_STATUS(hg_dataset_permute(d, across, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "from one graph of the batch to another");
	CHECK_STATUS(hg_dataset_permute(d, NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_permute(NULL, twice, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_reorder(NULL, NULL, NULL, NULL, message), HG_ERR_ARG);
	CHECK_STATUS(hg_dataset_reorder(d, "hilbert", NULL, NULL, message), HG_ERR_ARG);
	CHECK_CONTAINS(message, "hilbert");
	CHECK_STATUS(hg_dataset_reorder(d, "auto", &progress, NULL, message), HG_ERR_STATE);
	check_same(d, before);
	d->order = malloc(sizeof twice);
	CHECK(d->order != NULL);
	memcpy(d->order, twice, sizeof twice);
	CHECK_STATUS(hg_dataset_check(d, "odd", message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "odd: order: it is not a permutation of 0 to 5");
	memcpy(d->order, across, sizeof across);
	CHECK_STATUS(hg_dataset_check(d, "odd", message), HG_ERR_FORMAT);
	CHECK_CONTAINS(message, "odd: order: node 0 was node 3, outside of its graph 0");
	hg_dataset_free(d);
	hg_dataset_free(before);
}

static void h5convert_reorders(void)
{
	size_t a = 0, b = 0;
	CHECK_EQ_I(run_convert("--synthetic planted --nodes 3000 --classes 30 --degree 20 --hub-degree "
	                       "300 -o @/in.h5 --quiet"),
	           0);
	CHECK_EQ_I(run_convert("@/in.h5 --reorder community -o @/ordered.h5"), 0);
	CHECK_CONTAINS(convert_out, "order: community, found in ");
	CHECK_CONTAINS(convert_out, "before ");
	CHECK_CONTAINS(convert_out, "after ");
	CHECK_EQ_I(run_convert("--inspect @/ordered.h5"), 0);
	CHECK_CONTAINS(convert_out, "order      reordered; ");
	CHECK_EQ_I(run_convert("--inspect @/in.h5 --json"), 0);
	CHECK_CONTAINS(convert_out, "\"reordered\":false,\"locality\":{\"near_miss\":");
	CHECK_EQ_I(run_convert("@/ordered.h5 --reorder=original -o @/back.h5 --json"), 0);
	CHECK_CONTAINS(convert_out, "\"order\":\"original\"");
	CHECK_CONTAINS(convert_out, "\"before\":null");
	unsigned char *x = read_bytes(test_path("in.h5"), &a),
	              *y = read_bytes(test_path("back.h5"), &b);
	CHECK(a == b && memcmp(x, y, a) == 0);
	free(x);
	free(y);
	CHECK_EQ_I(run_convert("@/in.h5 --reorder auto -o @/ordered.h5 --json"), 0);
	CHECK_CONTAINS(convert_out, "\"after\":{\"near_miss\":");
	CHECK_EQ_I(run_convert("@/in.h5 --reorder hilbert -o @/ordered.h5"), 2);
	CHECK_CONTAINS(
	    convert_err,
	    "--reorder is \"hilbert\", expected one of auto|community|leading|rcm|degree|original");
	CHECK_EQ_I(run_convert("@/in.h5 --reorder original -o @/back.h5"), 2);
	CHECK_CONTAINS(convert_err, "in its original order");
}

/* Real graphs: reordered and restored, the content of the file is the same. */
static void real_graphs_are_restored(void)
{
	static const char *const files[] = {"planetoid_npz/cora.npz", "planetoid_npz/citeseer.npz",
	                                    "gnnbench_npz/amazon_computers.npz"};
	char message[HG_DATA_MESSAGE] = "", path[512];
	for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
		hg_order_report report = HG_ORDER_REPORT_INIT;
		snprintf(path, sizeof path, "%s/raw/%s", test_data(), files[k]);
		if (!file_exists(path))
			SKIP("%s is not there", path);
		hg_dataset *d = must_import("npz", path), *before = must_import("npz", path);
		CHECK_OK(hg_dataset_reorder(d, "auto", NULL, &report, message));
		test_note("%s: %s, leave L1 %.3f -> %.3f, gather %.1f -> %.1f ps", files[k], report.method,
		          report.before.near_miss, report.after.near_miss, report.before.gather_ps,
		          report.after.gather_ps);
		CHECK(report.after.gather_ps < 0.8 * report.before.gather_ps && d->order != NULL);
		CHECK_OK(hg_dataset_check(d, "ordered", message));
		CHECK_OK(hg_dataset_reorder(d, "original", NULL, NULL, message));
		check_same(before, d);
		hg_dataset_free(d);
		hg_dataset_free(before);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(all_of_a_node_moves),
	    TEST(every_method_can_be_undone),
	    TEST(smallest_datasets_are_reordered),
	    TEST(components_keep_the_ids),
	    TEST(refusals_change_nothing),
	    TEST(h5convert_reorders),
	    TEST(real_graphs_are_restored),
	};
	return RUN_TESTS(argc, argv, cases);
}
