/* Numpy archives of whole datasets: what is exported is imported again, bit for bit. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "export/zip.h"
#include "support.h"

static void must_export(const hg_dataset *d, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_dataset_write_npz(d, path, NULL, message);
	CHECK_MSG(status == HG_OK, "export: %s", message);
}

static void same_files(const char *a, const char *b)
{
	size_t size[2];
	unsigned char *first = read_bytes(a, &size[0]), *second = read_bytes(b, &size[1]);
	CHECK_MSG(size[0] == size[1] && memcmp(first, second, size[0]) == 0, "%s and %s differ", a, b);
	free(first);
	free(second);
}

/* HDF5, numpy, HDF5: the two HDF5 files are the same bytes, their checksums included. */
static void check_round(const hg_dataset *d)
{
	must_write(d, scratch(0, "before.h5"));
	hg_dataset *read = must_read(scratch(0, "before.h5"));
	must_export(read, scratch(1, "round.npz"));
	hg_dataset *back = must_import("npz", scratch(1, "round.npz"));
	check_same(read, back);
	must_write(back, scratch(2, "after.h5"));
	same_files(scratch(0, "before.h5"), scratch(2, "after.h5"));
	hg_dataset_free(read);
	hg_dataset_free(back);
}

static void *zeros(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);
	CHECK(memory != NULL);
	return memory;
}

static void every_field_returns(void)
{
	hg_dataset *const made[] = {small_dataset(), small_sparse(), small_batch()};
	static const int32_t order[] = {2, 0, 1, 5, 4, 3};
	for (int k = 0; k < 3; k++) {
		hg_dataset *d = made[k];
		check_round(d);
		d->order = zeros(6, sizeof order[0]);
		memcpy(d->order, order, sizeof order);
		check_round(d);
		if (d->feat) {
			CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, NULL));
			check_round(d);
		}
		free(d->feat_value); /* all ones */
		d->feat_value = NULL;
		free(d->weight);
		d->weight = NULL;
		check_round(d);
		memset(d->train_mask, 0, (size_t)(d->graph_ptr ? d->graphs : d->nodes)); /* empty */
		free(d->label);
		d->label = NULL; /* classes remain */
		free(d->test_mask);
		d->test_mask = NULL;
		if (d->name)
			d->name[0] = 0;
		check_round(d);
		free(d->name);
		d->name = NULL;
		check_round(d);
		hg_dataset_free(d);
	}
}

static hg_dataset *empty_graph(int64_t features)
{
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->rowptr = zeros(1, sizeof *d->rowptr);
	d->col = zeros(0, sizeof *d->col);
	d->features = features;
	d->feat = features ? zeros(0, sizeof(float)) : NULL;
	return d;
}

static void empty_graphs_return(void)
{
	for (int64_t features = 0; features < 4; features += 3) {
		hg_dataset *d = empty_graph(features);
		check_round(d);
		d->graph_ptr = zeros(1, sizeof *d->graph_ptr);
		d->graphs = 0;
		check_round(d);
		hg_dataset_free(d);
	}
	/* sparse features without a column */
	hg_dataset *d = empty_graph(0);
	d->feat_rowptr = zeros(1, sizeof *d->feat_rowptr);
	d->feat_col = zeros(0, sizeof *d->feat_col);
	check_round(d);
	hg_dataset_free(d);
}

/* More elements than one slab, in masks, ones and features. */
static void large_arrays_return(void)
{
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *d = NULL;
	config.nodes = 200000;
	config.features = 7;
	config.degree = 3;
	CHECK_OK(hg_dataset_planted(&config, &d, NULL));
	check_round(d);
	must_export(d, scratch(3, "again.npz"));
	same_files(scratch(1, "round.npz"), scratch(3, "again.npz"));
	hg_dataset_free(d);
}

/* numpy opens the archive without pickle. What numpy saves of it is the same dataset, stored or
 * deflated, with other types and another order of dense features. */
static void numpy_reads_it(void)
{
	if (system("python3 -c 'import numpy' >/dev/null 2>&1") != 0)
		SKIP("python3 with numpy is not here: no cross-check");
	char command[1200];
	hg_dataset *d = small_dataset();
	CHECK_OK(hg_dataset_features_to(d, HG_F16, 0, NULL));
	must_export(d, scratch(0, "cross.npz"));
	snprintf(command, sizeof command, "python3 '%s' '%s' '%s' '%s'", HG_NUMPY_SCRIPT,
	         scratch(0, "cross.npz"), scratch(1, "stored.npz"), scratch(2, "deflated.npz"));
	CHECK(system(command) == 0);
	for (int k = 1; k <= 2; k++) {
		hg_dataset *back = must_import("npz", scratch(k, k == 1 ? "stored.npz" : "deflated.npz"));
		check_same(d, back);
		hg_dataset_free(back);
	}
	hg_dataset_free(d);
}

/* Every member has sizes and an offset of 64 bits. Here the first one begins behind 5 GiB of
 * nothing, which take no space on the disk. */
static void archives_may_be_larger_than_4_GiB(void)
{
	char message[HG_DATA_MESSAGE] = "", found[16] = "";
	const char *path = scratch(0, "large.zip");
	struct hg__zip_out out = {.path = path, .message = message, .at = INT64_C(5) << 30};
	out.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(out.fd >= 0);
	if (ftruncate(out.fd, (off_t)out.at) != 0) {
		close(out.fd);
		SKIP("no sparse files of 5 GiB here");
	}
	for (int k = 0; k < 2; k++) {
		CHECK_OK(hg__zip_member(&out, k ? "second" : "first"));
		CHECK_OK(hg__zip_add(&out, "some ", 5));
		CHECK_OK(hg__zip_add(&out, k ? "bytes" : "words", 5));
		CHECK_OK(hg__zip_member_end(&out));
	}
	CHECK_OK(hg__zip_end(&out));
	CHECK(close(out.fd) == 0);
	zip_t *zip = zip_open(path, ZIP_RDONLY | ZIP_CHECKCONS, NULL);
	CHECK(zip != NULL && zip_get_num_entries(zip, 0) == 2);
	zip_file_t *member = zip_fopen(zip, "second", 0);
	CHECK(member != NULL && zip_fread(member, found, sizeof found) == 10);
	CHECK_STR(found, "some bytes");
	CHECK(zip_fclose(member) == 0);
	zip_discard(zip);
	CHECK(remove(path) == 0);
}

/* ---- refusals ---- */

static void must_not_export(const hg_dataset *d, const char *path, const hg_progress *progress,
                            hg_status expected, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	CHECK_STATUS(hg_dataset_write_npz(d, path, progress, message), expected);
	CHECK_CONTAINS(message, part);
	CHECK_EQ_I(count_scratch("never"), 0);
}

static int stop_soon(void *user, const char *what, int64_t done, int64_t total)
{
	CHECK(strcmp(what, "writing") == 0 && done < total);
	return ++*(int *)user > 3;
}

static void failures_leave_no_file(void)
{
	hg_dataset *d = small_dataset();
	int steps = 0;
	const hg_progress progress = {stop_soon, &steps};
	must_not_export(NULL, scratch(0, "never.npz"), NULL, HG_ERR_ARG, "dataset is NULL");
	must_not_export(d, NULL, NULL, HG_ERR_ARG, "path is NULL");
	must_not_export(d, scratch(0, "no/such/never.npz"), NULL, HG_ERR_IO,
	                "never.npz: cannot be written: No such file or directory");
	must_not_export(d, scratch(0, "never.npz"), &progress, HG_ERR_STATE,
	                "stopped on request while writing");
	d->col[0] = 6;
	must_not_export(d, scratch(0, "never.npz"), NULL, HG_ERR_FORMAT,
	                "graph: index 6 at entry 0 (row 0) is not in [0, 6)");
	d->col[0] = 1;
	must_export(d, scratch(0, "kept.npz"));
	CHECK(chmod(scratch(0, "kept.npz"), 0400) == 0);
	must_not_export(d, scratch(0, "kept.npz"), NULL, HG_ERR_IO, "it is read-only");
	hg_dataset_free(d);
}

static void full_disk_leaves_no_file(void)
{
	struct rlimit before, small;
	struct stat info;
	hg_dataset *d = small_dataset();
	must_export(d, scratch(0, "whole.npz"));
	CHECK(stat(scratch(0, "whole.npz"), &info) == 0 && getrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	for (rlim_t bytes = 0; bytes < (rlim_t)info.st_size; bytes += 37) {
		char message[HG_DATA_MESSAGE] = "";
		small = before;
		small.rlim_cur = bytes;
		CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
		const hg_status status = hg_dataset_write_npz(d, scratch(0, "never.npz"), NULL, message);
		CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
		CHECK_STATUS(status, HG_ERR_IO);
		CHECK_CONTAINS(message, "never.npz: cannot be written: File too large");
		CHECK_EQ_I(count_scratch("never"), 0);
	}
	hg_dataset_free(d);
}

/* An archive with the graph of the small batch, and what a fault adds. */
static struct npz_out *begin_own(const char *path, int64_t version)
{
	static const int64_t shape[] = {3, 3}, indptr[] = {0, 1, 2, 2}, graphs[] = {0, 2, 3};
	static const int32_t indices[] = {1, 0};
	struct npz_out *out = npz_begin(path);
	if (version)
		npz_add(out, "halfgraph", "<i8", "()", &version, sizeof version);
	npz_add(out, "adj_shape", "<i8", "(2,)", shape, sizeof shape);
	npz_add(out, "adj_indptr", "<i8", "(4,)", indptr, sizeof indptr);
	npz_add(out, "adj_indices", "<i4", "(2,)", indices, sizeof indices);
	npz_add(out, "graph_ptr", "<i8", "(3,)", graphs, sizeof graphs);
	return out;
}

static const struct {
	const char *key, *descr, *shape;
	int64_t values[4];
	size_t bytes;
	const char *part;
} faults[] = {
    {"halfgraph", "<i8", "()", {2}, 8, "member halfgraph.npy: is 2; this reader knows version 1"},
    {"halfgraph", "<i8", "()", {0}, 8, "member halfgraph.npy: value 0 at 0 is not in [1, "},
    {"halfgraph", "<i8", "(1,)", {1}, 8, "member halfgraph.npy: has 1 dimensions, expected 0"},
    {"graph_ptr", "<i8", "(0,)", {0}, 0, "member graph_ptr.npy: is empty, expected graphs + 1"},
    {"graph_ptr", "<i8", "(2,)", {0, 4}, 16, "member graph_ptr.npy: value 4 at 1 is not in [0, 3]"},
    {"graph_ptr", "<i8", "(2,)", {0, 2}, 16, "batch: pointers end at 2, but there are 3 nodes"},
    {"graph_ptr", "<i8", "(3,)", {0, 1, 3}, 24, "batch: graph 0 (nodes 0 to 0) has an edge to"},
    {"name", "<i8", "(2,)", {65, 0}, 16, "member name.npy: value 0 at 1 is not in [1, 255]"},
    {"name", "<f4", "(1,)", {0}, 4, "member name.npy: holds floats, expected integers"},
    {"orig_id", "<i8", "(2,)", {0, 1}, 16, "orig_id.npy: has 2 rows, but there are 3 nodes"},
    {"order", "<i8", "(2,)", {0, 1}, 16, "order.npy: has 2 rows, but there are 3 nodes"},
    {"order", "<i8", "(3,)", {0, 1, 3}, 24, "order.npy: value 3 at 2 is not in [0, 2]"},
    {"order", "<i8", "(3,)", {0, 0, 2}, 24, "order: it is not a permutation of 0 to 2"},
    {"target", "<i8", "(3, 1)", {1, 2, 3}, 24, "target.npy: has 3 rows, but there are 2 graphs"},
    {"target", "<i8", "(2,)", {1, 2}, 16, "target.npy: has 1 dimensions, expected 2"},
    {"labels", "<i8", "(3,)", {0, 0, 0}, 24, "labels.npy: has 3 rows, but there are 2 graphs"},
    {"val_idx", "<i8", "(1,)", {2}, 8, "val_idx.npy: value 2 at 0 is not in [0, 1]"},
    {"num_classes", "<i8", "()", {-1}, 8, "num_classes.npy: value -1 at 0 is not in [0, "},
};

static void each_fault_is_refused_by_name(void)
{
	for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
		struct npz_out *out = begin_own(scratch(0, "bad.npz"), 1);
		npz_add(out, faults[k].key, faults[k].descr, faults[k].shape, faults[k].values,
		        faults[k].bytes);
		npz_end(out, 1);
		must_refuse("npz", scratch(0, "bad.npz"), HG_ERR_FORMAT, faults[k].part);
	}
	static char name[(1 << 20) + 1];
	memset(name, 'x', sizeof name);
	struct npz_out *out = begin_own(scratch(0, "bad.npz"), 1);
	npz_add(out, "name", "|u1", "(1048577,)", name, sizeof name);
	npz_end(out, 1);
	must_refuse("npz", scratch(0, "bad.npz"), HG_ERR_FORMAT, "name.npy: is longer than 1048576");
}

static void one_hot_labels_of_graphs_are_read(void)
{
	static const int64_t shape[] = {2, 4}, indptr[] = {0, 2, 2};
	static const int32_t indices[] = {1, 3};
	for (int second = 0; second < 2; second++) {
		struct npz_out *out = begin_own(scratch(0, "hot.npz"), 1);
		npz_add(out, "labels_shape", "<i8", "(2,)", shape, sizeof shape);
		npz_add(out, "labels_indptr", "<i8", "(3,)", second ? indptr : (const int64_t[]){0, 1, 2},
		        sizeof indptr);
		npz_add(out, "labels_indices", "<i4", "(2,)", indices, sizeof indices);
		npz_end(out, 0);
		if (second) {
			must_refuse("npz", scratch(0, "hot.npz"), HG_ERR_FORMAT,
			            "labels: graph 0 has 2 labels; one per graph is supported");
			continue;
		}
		hg_dataset *d = must_import("npz", scratch(0, "hot.npz"));
		CHECK(d->graphs == 2 && d->classes == 4 && d->label[0] == 1 && d->label[1] == 3);
		hg_dataset_free(d);
	}
}

/* Without `halfgraph` these keys may mean anything, so they are left alone. */
static void keys_of_others_are_left_alone(void)
{
	struct npz_out *out = begin_own(scratch(0, "other.npz"), 0);
	npz_add(out, "order", "<i8", "(1,)", (const int64_t[]){9}, 8);
	npz_end(out, 0);
	hg_dataset *d = must_import("npz", scratch(0, "other.npz"));
	CHECK(d->graph_ptr == NULL && d->order == NULL && d->nodes == 3);
	CHECK_STR(d->name, "other");
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/other.npz -o @/other.h5"), 0);
	CHECK_CONTAINS(convert_err, "other.npz: not read: graph_ptr.npy, order.npy");
}

/* ---- the command line ---- */

static void tool_exports(void)
{
	hg_dataset *d = small_dataset();
	must_write(d, scratch(0, "in.h5"));
	CHECK_EQ_I(run_convert("--export npz @/in.h5 @/out.npz"), 0);
	CHECK_CONTAINS(convert_out, "out.npz: 6 nodes, 11 edges, 3 features, 3 classes");
	CHECK_STR(convert_err, "");
	CHECK_EQ_I(run_convert("@/out.npz --quiet -o @/back.h5"), 0);
	CHECK_STR(convert_out, "");
	same_files(scratch(0, "in.h5"), scratch(1, "back.h5"));
	/* with -o, and a transform */
	CHECK_EQ_I(run_convert("@/in.h5 --export npz --symmetrize --quiet -o @/both.npz"), 0);
	hg_dataset *both = must_import("npz", scratch(0, "both.npz"));
	CHECK_EQ_I(both->edges, 11);
	hg_dataset_free(both);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("--export npz --synthetic planted --nodes 200 --hub-degree 50 @/p.npz"),
	           2);
	CHECK_CONTAINS(convert_err, "--synthetic planted reads no input");
	CHECK_EQ_I(
	    run_convert("--export npz --synthetic planted --nodes 200 --hub-degree 50 -o @/p.npz"), 0);
	hg_dataset_free(must_import("npz", scratch(0, "p.npz")));
	/* several edge lists and the output */
	write_text(scratch(0, "a.txt"), "0 1\n");
	write_text(scratch(0, "b.txt"), "1 2\n");
	CHECK_EQ_I(run_convert("--export npz @/a.txt @/b.txt @/ab.npz"), 0);
	CHECK_CONTAINS(convert_out, "ab.npz: 3 nodes, 2 edges");
}

/* A feature beyond fp16 is exported as it is, because others may compute in f32. */
static void large_features_are_exported(void)
{
	hg_dataset *d = small_dataset();
	((float *)d->feat)[0] = 1e30f;
	d->feat_amax = 1e30f;
	must_write(d, scratch(0, "huge.h5"));
	CHECK_EQ_I(run_convert("--export npz @/huge.h5 @/huge.npz"), 0);
	hg_dataset *back = must_import("npz", scratch(0, "huge.npz"));
	CHECK(((float *)back->feat)[0] == 1e30f);
	hg_dataset_free(back);
	CHECK_EQ_I(run_convert("--export npz --features-dtype f16 @/huge.h5 @/never.npz"), 2);
	CHECK_CONTAINS(convert_err, "beyond f16's 65504");
	hg_dataset_free(d);
}

static void usage_errors_end_with_2(void)
{
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"--export csv @/in.h5 @/never.npz", "--export is \"csv\", expected one of npz"},
	    {"--export npz @/in.h5", "no output: add -o OUT.npz"},
	    {"--export npz", "no input"},
	    {"@/in.h5 -o @/never.npz", "never.npz: to write a numpy archive, add --export npz"},
	    {"--export npz @/in.h5 @/never.h5", "--export npz writes no HDF5 file, name it OUT.npz"},
	    {"--export npz @/in.h5 -o @/never.hdf5", "--export npz writes no HDF5 file"},
	    {"--export npz --inspect @/in.h5", "--inspect takes one file"},
	    {"--export npz --seal @/in.h5", "--seal takes one file and no other option"},
	    {"--export npz @/in.npz @/in.npz", "is also an input: it is not overwritten"},
	    {"--export npz @/in.h5 @/no/never.npz", "cannot be written: No such file or directory"},
	    {"--export npz @/absent.h5 @/never.npz", "No such file or directory"},
	};
	hg_dataset *d = small_dataset();
	must_write(d, scratch(0, "in.h5"));
	must_export(d, scratch(0, "in.npz"));
	hg_dataset_free(d);
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		CHECK_EQ_I(run_convert(bad[k].arguments), 2);
		CHECK_CONTAINS(convert_err, bad[k].part);
		CHECK_EQ_I(count_scratch("never"), 0);
	}
}

/* ---- real datasets ---- */

/* All that HG_DATA has. */
static void real_datasets_return(void)
{
	static const struct {
		const char *format, *file;
	} real[] = {
	    {"npz", "planetoid_npz/cora.npz"},
	    {"npz", "planetoid_npz/citeseer.npz"},
	    {"npz", "planetoid_npz/pubmed_nofeat.npz"},
	    {"npz", "gnnbench_npz/amazon_computers.npz"},
	    {"planetoid", "planetoid/ind.cora.graph"},
	    {"planetoid", "planetoid/ind.citeseer.graph"},
	    {"musae", "musae/DE_edges.csv.gz"},
	    {"gin", "tu_gin/MUTAG.zip"},
	    {"gin", "tu_gin/PROTEINS.zip"},
	    {"gin", "tu_gin/COLLAB.zip"},
	    {"tu", "tu_official/MUTAG.zip"},
	    {"tu", "zinc/ZINC12K_tu.zip"},
	    {"edges", "snap/soc-Epinions1.txt.gz"},
	    {"mtx", "mtx/p2p-Gnutella31.mtx"},
	    {"mtx", "mtx/chesapeake.mtx"},
	};
	int found = 0;
	for (size_t k = 0; k < sizeof real / sizeof *real; k++) {
		char path[512];
		snprintf(path, sizeof path, "%s/raw/%s", test_data(), real[k].file);
		if (!file_exists(path))
			continue;
		hg_dataset *d = must_import(real[k].format, path);
		check_round(d);
		hg_dataset_free(d);
		found++;
	}
	if (!found)
		SKIP("no dataset is in %s", test_data());
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_field_returns),
	    TEST(empty_graphs_return),
	    TEST(large_arrays_return),
	    TEST(numpy_reads_it),
	    TEST(archives_may_be_larger_than_4_GiB),
	    TEST(failures_leave_no_file),
	    TEST(full_disk_leaves_no_file),
	    TEST(each_fault_is_refused_by_name),
	    TEST(one_hot_labels_of_graphs_are_read),
	    TEST(keys_of_others_are_left_alone),
	    TEST(tool_exports),
	    TEST(large_features_are_exported),
	    TEST(usage_errors_end_with_2),
	    TEST(real_datasets_return),
	};
	return RUN_TESTS(argc, argv, cases);
}
