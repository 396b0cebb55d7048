/* Attributes and labels of edges: they move with their edges, are stored in the file, come from the
 * formats that have them, and go to a device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

static void *copy(const void *from, size_t bytes)
{
	void *to = malloc(bytes > 0 ? bytes : 1);
	CHECK(to != NULL);
	return bytes > 0 ? memcpy(to, from, bytes) : to;
}
#define COPY(array) copy(array, sizeof(array))

/* ---- transforms ---- */

/* Five nodes and the edges 1 -> 0, 2 -> 0, 0 -> 1, 2 -> 2, 0 -> 3; node 4 has none. */
static hg_dataset *directed(void)
{
	static const int64_t rowptr[] = {0, 2, 3, 4, 5, 5};
	static const int32_t col[] = {1, 2, 0, 2, 0}, label[] = {3, 1, 0, 2, -1};
	static const float feat[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50};
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = 5;
	d->edges = 5;
	d->rowptr = COPY(rowptr);
	d->col = COPY(col);
	d->edge_features = 2;
	d->edge_feat = COPY(feat);
	d->edge_classes = 4;
	d->edge_label = COPY(label);
	return d;
}

static void check_edges(const hg_dataset *d, int64_t edges, const int32_t *col,
                        const int32_t *label, const float *feat)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_MSG(hg_dataset_check(d, "edges", message) == HG_OK, "%s", message);
	CHECK_EQ_I(d->edges, edges);
	CHECK(memcmp(d->col, col, (size_t)edges * sizeof *col) == 0);
	CHECK(d->edge_classes == 4 && d->edge_features == 2);
	for (int64_t e = 0; e < edges; e++) {
		CHECK_EQ_I(d->edge_label[e], label[e]);
		CHECK(d->edge_feat[2 * e] == feat[e] && d->edge_feat[2 * e + 1] == 10 * feat[e]);
	}
}

/* 0 <-> 1 are both there and keep their own; 0 -> 2 has that of 2 -> 0, 3 -> 0 that of 0 -> 3. */
static void reversed_edges_have_what_theirs_has(void)
{
	static const int64_t rowptr[] = {0, 3, 4, 6, 7, 7};
	static const int32_t col[] = {1, 2, 3, 0, 0, 2, 0}, label[] = {3, 1, -1, 0, 1, 2, -1};
	static const float feat[] = {1, 2, 5, 3, 2, 4, 5};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = directed();
	for (int again = 0; again < 2; again++) {
		CHECK_OK(hg_dataset_symmetrize(d, message));
		CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0);
		check_edges(d, 7, col, label, feat);
	}
	hg_dataset_free(d);
	/* the larger weight stays, and each edge what it has */
	d = directed();
	d->weight = COPY(((const float[]){1, 2, 7, 4, 5}));
	CHECK_OK(hg_dataset_symmetrize(d, message));
	check_edges(d, 7, col, label, feat);
	CHECK(d->weight[0] == 7 && d->weight[3] == 7 && d->weight[4] == 2);
	hg_dataset_free(d);
}

static void new_loops_have_zeros_and_no_label(void)
{
	static const int64_t rowptr[] = {0, 3, 5, 6, 8, 9};
	static const int32_t col[] = {0, 1, 2, 0, 1, 2, 0, 3, 4},
	                     label[] = {-1, 3, 1, 0, -1, 2, -1, -1, -1};
	static const float feat[] = {0, 1, 2, 3, 0, 4, 5, 0, 0};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = directed();
	for (int again = 0; again < 2; again++) {
		CHECK_OK(hg_dataset_self_loops(d, message));
		CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0);
		check_edges(d, 9, col, label, feat);
	}
	hg_dataset_free(d);
}

static void components_keep_their_edges(void)
{
	static const int32_t order[] = {4, 3, 2, 1, 0}, col[] = {1, 2, 0, 2, 0},
	                     label[] = {3, 1, 0, 2, -1};
	/* of node 3 the edge to node 0, of 2 its loop, of 1 the edge to 0, of 0 those to 2 and 1 */
	static const int32_t turned_col[] = {3, 1, 3, 1, 2}, turned_label[] = {-1, 2, 0, 1, 3};
	static const float feat[] = {1, 2, 3, 4, 5}, turned[] = {5, 4, 3, 2, 1};
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = directed();
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK_EQ_I(d->nodes, 4);
	check_edges(d, 5, col, label, feat);
	hg_dataset_free(d);
	d = directed();
	CHECK_OK(hg_dataset_permute(d, order, message));
	CHECK_OK(hg_dataset_largest_component(d, message)); /* without the first node now */
	CHECK_EQ_I(d->nodes, 4);
	check_edges(d, 5, turned_col, turned_label, turned);
	CHECK_OK(hg_dataset_reorder(d, "original", NULL, NULL, message));
	check_edges(d, 5, col, label, feat);
	hg_dataset_free(d);
}

static void other_transforms_leave_them(void)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = small_dataset(), *before = small_dataset();
	CHECK_OK(hg_dataset_row_normalize(d, message));
	CHECK_OK(hg_dataset_standardize(d, message));
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, message));
	CHECK_OK(hg_dataset_fold(d, 0, 3, message));
	CHECK_OK(hg_dataset_positional(d, HG_POSITIONAL_RANDOM_WALK, 2, NULL, message));
	CHECK(d->edges == before->edges &&
	      memcmp(d->edge_feat, before->edge_feat, 22 * sizeof *d->edge_feat) == 0 &&
	      memcmp(d->edge_label, before->edge_label, 11 * sizeof *d->edge_label) == 0);
	hg_dataset_free(before);
	hg_dataset_free(d);
}

/* One of the two may be absent, and there may be no edges. */
static void either_may_be_absent(void)
{
	char message[HG_DATA_MESSAGE] = "";
	for (int which = 0; which < 3; which++) {
		hg_dataset *d = directed();
		if (which == 0) {
			free(d->edge_feat);
			d->edge_feat = NULL;
			d->edge_features = 0;
		} else if (which == 1) {
			free(d->edge_label);
			d->edge_label = NULL;
			d->edge_classes = 0;
		} else {
			memset(d->rowptr, 0, 6 * sizeof *d->rowptr);
			d->edges = 0;
		}
		must_write(d, scratch(0, "some.h5"));
		hg_dataset *same = must_read(scratch(0, "some.h5"));
		check_same(d, same);
		hg_dataset_free(same);
		CHECK_OK(hg_dataset_symmetrize(d, message));
		CHECK_OK(hg_dataset_reorder(d, "degree", NULL, NULL, message));
		CHECK_OK(hg_dataset_self_loops(d, message));
		CHECK_OK(hg_dataset_largest_component(d, message));
		CHECK_OK(hg_dataset_check(d, "some", message));
		CHECK(!d->edge_feat == (which == 0) && !d->edge_label == (which == 1));
		hg_dataset_free(d);
	}
}

/* On a random graph each edge carries its two ends. Whatever is done, an edge carries its own ends,
 * or, if it was added, those of its reverse; a new loop carries nothing. */
static hg_dataset *marked(int64_t n, unsigned char *has)
{
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = n;
	d->rowptr = calloc((size_t)n + 1, sizeof *d->rowptr);
	d->col = calloc((size_t)(n * n), sizeof *d->col);
	d->edge_feat = calloc((size_t)(2 * n * n), sizeof *d->edge_feat);
	d->edge_label = calloc((size_t)(n * n), sizeof *d->edge_label);
	CHECK(d->rowptr && d->col && d->edge_feat && d->edge_label);
	d->edge_features = 2;
	d->edge_classes = 7;
	for (int64_t i = 0; i < n; i++) {
		for (int64_t j = 0; j < n; j++) {
			if (test_u64() % 16)
				continue;
			has[i * n + j] = 1;
			d->col[d->edges] = (int32_t)j;
			d->edge_feat[2 * d->edges] = (float)i;
			d->edge_feat[2 * d->edges + 1] = (float)j;
			d->edge_label[d->edges++] = (int32_t)((3 * i + j) % 7);
		}
		d->rowptr[i + 1] = d->edges;
	}
	return d;
}

static void check_mark(const hg_dataset *d, int64_t e, int64_t i, int64_t j)
{
	CHECK(d->edge_feat[2 * e] == (float)i && d->edge_feat[2 * e + 1] == (float)j);
	CHECK_EQ_I(d->edge_label[e], (3 * i + j) % 7);
}

static void random_edges_keep_what_is_theirs(void)
{
	enum { N = 60 };
	static unsigned char has[N * N];
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = marked(N, has);
	CHECK_OK(hg_dataset_reorder(d, "community", NULL, NULL, message));
	CHECK_OK(hg_dataset_symmetrize(d, message));
	CHECK_OK(hg_dataset_reorder(d, "rcm", NULL, NULL, message));
	CHECK_OK(hg_dataset_self_loops(d, message));
	CHECK_OK(hg_dataset_largest_component(d, message));
	CHECK_OK(hg_dataset_check(d, "marked", message));
	int64_t own = 0, added = 0, loops = 0;
	for (int64_t row = 0; row < d->nodes; row++)
		for (int64_t e = d->rowptr[row]; e < d->rowptr[row + 1]; e++) {
			const int64_t i = hg_dataset_node(d, row), j = hg_dataset_node(d, d->col[e]);
			own += has[i * N + j];
			if (has[i * N + j]) {
				check_mark(d, e, i, j);
			} else if (i != j) {
				added++;
				check_mark(d, e, j, i);
			} else {
				loops++;
				CHECK(d->edge_feat[2 * e] == 0 && d->edge_feat[2 * e + 1] == 0 &&
				      d->edge_label[e] == -1);
			}
		}
	CHECK(own > N && added > N && loops > N / 2 && own + added + loops == d->edges);
	hg_dataset_free(d);
}

/* ---- the file ---- */

static int version_is(const char *path, const char *expected)
{
	char *text = NULL;
	const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
	            attribute = H5Aopen(file, "format_version", H5P_DEFAULT),
	            type = H5Aget_type(attribute);
	CHECK(H5Aread(attribute, type, &text) >= 0);
	const int same = strcmp(text, expected) == 0, has = H5Lexists(file, "edges", H5P_DEFAULT) > 0;
	H5free_memory(text);
	H5Tclose(type);
	H5Aclose(attribute);
	H5Fclose(file);
	return same && has == (strcmp(expected, "1.0") != 0);
}

/* Files without data of edges are as they were before there were any. */
static void only_files_with_them_have_a_new_version(void)
{
	hg_dataset *with = small_dataset(), *without = small_batch();
	must_write(with, scratch(0, "with.h5"));
	must_write(without, scratch(1, "without.h5"));
	CHECK(version_is(scratch(0, "with.h5"), "1.1") && version_is(scratch(1, "without.h5"), "1.0"));
	hg_dataset_free(with);
	hg_dataset_free(without);
}

static void classes_of_edges_are_counted_where_none_are_declared(void)
{
	hg_dataset *d = small_dataset();
	must_write(d, scratch(0, "count.h5"));
	unseal(scratch(0, "count.h5"));
	const hid_t file = H5Fopen(scratch(0, "count.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0 && H5Adelete(file, "num_edge_classes") >= 0 && H5Fclose(file) >= 0);
	hg_dataset *back = must_read(scratch(0, "count.h5"));
	CHECK_EQ_I(back->edge_classes, 4); /* the fifth one is of no edge */
	back->edge_classes = 5;
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void h5convert_describes_them(void)
{
	hg_dataset *d = small_dataset();
	must_write(d, scratch(0, "facts.h5"));
	CHECK_EQ_I(run_convert("--inspect @/facts.h5"), 0);
	CHECK_CONTAINS(convert_out, "  edge feat  2 columns, f32: 0 to 100000, -100 to 90\n"
	                            "  edge label 5 labels: 2 3 3 2 0, 1 unlabelled\n");
	CHECK_EQ_I(run_convert("--inspect @/facts.h5 --json"), 0);
	CHECK_CONTAINS(convert_out,
	               "\"edge_features\":2,\"edge_feature_min\":[0.0,-100.0],\"edge_feature_max\":"
	               "[100000.0,90.0],\"edge_classes\":5,\"edge_class_counts\":[2,3,3,2,0],"
	               "\"edges_unlabelled\":1}");
	hg_dataset_free(d);
	d = small_batch();
	must_write(d, scratch(0, "facts.h5"));
	CHECK_EQ_I(run_convert("--inspect @/facts.h5"), 0);
	CHECK(!strstr(convert_out, "edge feat") && !strstr(convert_out, "edge label"));
	CHECK_EQ_I(run_convert("--inspect @/facts.h5 --json"), 0);
	CHECK_CONTAINS(convert_out,
	               "\"edge_features\":0,\"edge_feature_min\":[],\"edge_feature_max\":[]"
	               ",\"edge_classes\":0,\"edge_class_counts\":[],");
	hg_dataset_free(d);
}

static void h5convert_keeps_them(void)
{
	hg_dataset *d = directed();
	must_write(d, scratch(0, "from.h5"));
	CHECK_EQ_I(run_convert("@/from.h5 --symmetrize --self-loops --reorder rcm -o @/to.h5"), 0);
	CHECK_EQ_I(run_convert("@/to.h5 --reorder original -o @/back.h5"), 0);
	CHECK_OK(hg_dataset_symmetrize(d, NULL));
	CHECK_OK(hg_dataset_self_loops(d, NULL));
	hg_dataset *back = must_read(scratch(0, "back.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(reversed_edges_have_what_theirs_has),
	    TEST(new_loops_have_zeros_and_no_label),
	    TEST(components_keep_their_edges),
	    TEST(other_transforms_leave_them),
	    TEST(either_may_be_absent),
	    TEST(random_edges_keep_what_is_theirs),
	    TEST(only_files_with_them_have_a_new_version),
	    TEST(classes_of_edges_are_counted_where_none_are_declared),
	    TEST(h5convert_describes_them),
	    TEST(h5convert_keeps_them),
	};
	return RUN_TESTS(argc, argv, cases);
}
