/* Text importers: edge lists and Matrix Market. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support.h"

static const char *file_of(const char *name, const char *text)
{
	const char *path = scratch(0, name);
	write_text(path, text);
	return path;
}

/* All entries as text: "row:col=weight row:col ...". */
static void check_entries(const hg_dataset *d, const char *expected)
{
	char text[1024] = "";
	size_t used = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%d:%d", used ? " " : "",
			                         (int)i, (int)d->col[e]);
			if (d->weight)
				used +=
				    (size_t)snprintf(text + used, sizeof text - used, "=%g", (double)d->weight[e]);
		}
	CHECK_STR(text, expected);
}

static void edges_become_destination_rows(void)
{
	hg_dataset *d = must_import(
	    "edges", file_of("plain.txt",
	                     "\xEF\xBB\xBF# SNAP\n0\t1\r\n1 2\r\n\r\n% other comment\n2,0\n0 1\n3 3"));
	CHECK_EQ_I(d->nodes, 4);
	check_entries(d, "0:2 1:0 2:1 3:3");
	CHECK(d->orig_id == NULL && d->weight == NULL && d->features == 0 && d->classes == 0);
	CHECK_STR(d->name, "plain");
	hg_dataset_free(d);
}

static void ids_are_remapped(void)
{
	hg_dataset *d = must_import("edges", file_of("gaps.txt", "7 3\n3 100\n"));
	CHECK_EQ_I(d->nodes, 3);
	check_entries(d, "0:1 2:0");
	CHECK(d->orig_id[0] == 3 && d->orig_id[1] == 7 && d->orig_id[2] == 100);
	hg_dataset_free(d);
	d = must_import("edges", file_of("large.txt", "9223372036854775807 0\n0 4294967296\n"));
	CHECK_EQ_I(d->nodes, 3);
	check_entries(d, "0:2 1:0");
	CHECK(d->orig_id[1] == INT64_C(1) << 32 && d->orig_id[2] == INT64_MAX);
	hg_dataset_free(d);
}

static void third_column_is_a_weight(void)
{
	hg_dataset *d = must_import("edges", file_of("weights.txt", "0 1 2.5\n1 0 0\n0 1 -1\n"));
	check_entries(d, "0:1=0 1:0=1.5");
	hg_dataset_free(d);
}

static void csv_may_have_a_header(void)
{
	hg_dataset *d = must_import("edges", file_of("pairs.csv", "id_1,id_2\n0,1\n"));
	check_entries(d, "1:0");
	hg_dataset_free(d);
}

static void list_without_edges_is_an_empty_graph(void)
{
	hg_dataset *d = must_import("edges", file_of("empty.txt", "# nothing\n"));
	CHECK(d->nodes == 0 && d->edges == 0);
	hg_dataset_free(d);
}

static void gzip_is_read(void)
{
	char path[256];
	snprintf(path, sizeof path, "%s", scratch(0, "zipped.txt.gz"));
	gzFile file = gzopen(path, "wb");
	CHECK(file != NULL);
	for (int i = 0; i < 100000; i++) /* longer than several buffers */
		CHECK(gzprintf(file, "%d %d\r\n", i, (i + 1) % 100000) > 0);
	CHECK_EQ_I(gzclose(file), Z_OK);
	hg_dataset *d = must_import("edges", path);
	CHECK(d->nodes == 100000 && d->edges == 100000 && d->col[0] == 99999 && d->col[99999] == 99998);
	hg_dataset_free(d);
	size_t count = 0;
	unsigned char *bytes = read_bytes(path, &count);
	write_bytes(scratch(1, "cut.txt.gz"), bytes, count / 2);
	must_refuse("edges", scratch(1, "cut.txt.gz"), HG_ERR_FORMAT, "cut.txt.gz:");
	bytes[count / 2] ^= 0x55;
	write_bytes(scratch(1, "broken.txt.gz"), bytes, count);
	must_refuse("edges", scratch(1, "broken.txt.gz"), HG_ERR_FORMAT, "broken.txt.gz:");
	free(bytes);
}

/* Appends a gzip member that contains `text`, and then `tail` as it is. */
static void gzip_append(const char *path, const char *text, const char *tail, size_t tail_bytes)
{
	gzFile file = gzopen(path, "ab");
	CHECK(file != NULL && gzputs(file, text) == (int)strlen(text) && gzclose(file) == Z_OK);
	FILE *raw = fopen(path, "ab");
	CHECK(raw != NULL && fwrite(tail, 1, tail_bytes, raw) == tail_bytes && fclose(raw) == 0);
}

static void gzip_may_have_members_and_padding(void)
{
	static const char zeros[100000] = {0}; /* longer than a buffer */
	const char *path = scratch(1, "members.txt.gz");
	gzip_append(path, "0 1\n1 ", "", 0);
	gzip_append(path, "2\n", zeros, sizeof zeros); /* padded with zeros, as on tapes */
	hg_dataset *d = must_import("edges", path);
	check_entries(d, "1:0 2:1");
	hg_dataset_free(d);
	gzip_append(path, "", "", 0); /* after padding, no other member may follow */
	must_refuse("edges", path, HG_ERR_FORMAT, "the gzip data end here, but the file goes on");
	static const char *const tails[] = {"5 6\n", "\x1f", "\x1f\x8c", "\x1f\x8b"};
	static const char *const parts[] = {"at byte 24: the gzip data end here",
	                                    "at byte 25: truncated", "incorrect header check",
	                                    "at byte 26: truncated"};
	for (size_t k = 0; k < 4; k++) {
		char name[32];
		snprintf(name, sizeof name, "tail%zu.txt.gz", k);
		gzip_append(scratch(1, name), "0 1\n", tails[k], strlen(tails[k]));
		must_refuse("edges", scratch(1, name), HG_ERR_FORMAT, parts[k]);
	}
}

static void empty_files_are_refused(void)
{
	must_refuse("edges", file_of("zero.txt", ""), HG_ERR_FORMAT, "zero.txt: is empty: 0 bytes");
	must_refuse("mtx", file_of("zero.mtx", ""), HG_ERR_FORMAT, "zero.mtx: is empty: 0 bytes");
	gzip_append(scratch(1, "zero.txt.gz"), "", "", 0);
	must_refuse("edges", scratch(1, "zero.txt.gz"), HG_ERR_FORMAT,
	            "zero.txt.gz: is empty: 0 bytes");
}

static void bad_edge_lists_are_refused(void)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
	    {"0 1\n1\n", "bad.txt:2: expected two node numbers, found \"1\""},
	    {"0 x\n", "bad.txt:1: expected two node numbers"},
	    {"0 1.5\n", "bad.txt:1: expected two node numbers"},
	    {"-1 2\n",
	     "bad.txt:1: expected node numbers from 0 to 9223372036854775807, found \"-1 2\""},
	    {"0 99999999999999999999\n", "bad.txt:1: expected node numbers from 0 to "
	                                 "9223372036854775807, found \"0 99999999999999999999\""},
	    {"9223372036854775808 0\n",
	     "bad.txt:1: expected node numbers from 0 to 9223372036854775807"},
	    {"0 99999999999999999999x\n", "bad.txt:1: expected two node numbers"},
	    {"0 1\n# fine\n0 1 2\n", "bad.txt:3: expected two columns as before"},
	    {"0 1 2\n0 1\n", "bad.txt:2: expected source, destination and a finite weight"},
	    {"0 1 nan\n", "bad.txt:1: expected source, destination and a finite weight"},
	    {"0 1 1e999\n", "bad.txt:1: expected source, destination and a finite weight"},
	    {"0 1 2\n0 1 -1e39\n",
	     "bad.txt:2: the number is beyond float32's 3.40282e+38, found \"0 1 -1e39\""},
	    {"5 6 1\n0 1 3e38\n0 1 3e38\n", "graph: weight inf at row 1, column 0 is not finite"},
	    {"id_1,id_2\n0,1\n", "bad.txt:1: expected two node numbers"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
		must_refuse("edges", file_of("bad.txt", bad[k].text), HG_ERR_FORMAT, bad[k].part);
	write_bytes(scratch(0, "zero.txt"), "0 1\n0\0001\n", 8);
	must_refuse("edges", scratch(0, "zero.txt"), HG_ERR_FORMAT,
	            "zero.txt:2: holds zero bytes: not a text file");
	must_refuse("edges", scratch(0, "absent.txt"), HG_ERR_IO, "No such file or directory");
	must_refuse("edges", "/", HG_ERR_IO, "is a directory");
	char *line = malloc(300000);
	CHECK(line != NULL);
	memset(line, '1', 300000);
	write_bytes(scratch(0, "long.txt"), line, 300000);
	free(line);
	must_refuse("edges", scratch(0, "long.txt"), HG_ERR_FORMAT,
	            "long.txt:1: the line is longer than 262144 bytes");
}

static void every_field_and_symmetry_is_read(void)
{
	static const struct {
		const char *banner, *body, *entries;
	} good[] = {
	    {"real general", "3 3 4\n1 2 0.5\n2 1 0\n3 3 -1\n1 2 1\n", "0:1=1.5 1:0=0 2:2=-1"},
	    {"integer general", "2 2 2\n1 2 1\n2 1 1\n", "0:1 1:0"},
	    {"pattern general", "2 2 3\n1 2\n1 2\n2 2\n", "0:1 1:1"},
	    {"real symmetric", "3 3 2\n2 1 0.5\n3 3 2\n", "0:1=0.5 1:0=0.5 2:2=2"},
	    {"integer symmetric", "2 2 1\n2 1 3\n", "0:1=3 1:0=3"},
	    {"pattern symmetric", "3 3 2\n% comment\n\n2 1\n3 1\n", "0:1 0:2 1:0 2:0"},
	    {"real skew-symmetric", "2 2 1\n2 1 3\n", "0:1=-3 1:0=3"},
	    {"integer skew-symmetric", "2 2 1\n2 1 -1\n", "0:1 1:0=-1"},
	    {"complex general", "2 2 2\n1 2 3 -4\n2 1 -1 0\n", "0:1=5 1:0=1"},
	    {"complex symmetric", "2 2 2\n2 1 3 4\n2 2 0 0\n", "0:1=5 1:0=5 1:1=0"},
	    {"complex skew-symmetric", "2 2 1\n2 1 0 2\n", "0:1=2 1:0=2"},
	    {"Complex Hermitian", "2 2 2\n2 1 6 8\n1 1 2 0\n", "0:0=2 0:1=10 1:0=10"},
	    {"PATTERN General", "0 0 0\n", ""},
	    {"pattern general", "5 5 0", ""},
	};
	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
		char text[256];
		snprintf(text, sizeof text, "%%%%MatrixMarket matrix coordinate %s\r\n%% made here\n%s",
		         good[k].banner, good[k].body);
		hg_dataset *d = must_import("mtx", file_of("good.mtx", text));
		if (strcmp(good[k].banner, "integer skew-symmetric") != 0)
			check_entries(d, good[k].entries);
		else
			CHECK(d->weight[0] == 1 && d->weight[1] == -1);
		hg_dataset_free(d);
	}
}

static const struct {
	const char *text, *part;
} bad_matrices[] = {
    {"", "bad.mtx: is empty: 0 bytes"},
    {"%%MatrixMarket matrix coordinate real\n", "bad.mtx:1: expected \"%%MatrixMarket"},
    {"%%MatrixMarket vector coordinate real general\n", "bad.mtx:1: expected"},
    {"%%MatrixMarket matrix array real general\n2 2\n", "bad.mtx:1: format array is not supported"},
    {"%%MatrixMarket matrix coordinate quaternion general\n",
     "bad.mtx:1: field quaternion is not supported"},
    {"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1\n",
     "bad.mtx:3: expected \"row column real imaginary\", both finite, found \"1 1 1\""},
    {"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 3e38 3e38\n",
     "bad.mtx:3: the absolute value is beyond float32's 3.40282e+38"},
    {"%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n1 2 1 1\n",
     "entry (1, 2) is not below the diagonal of a hermitian matrix"},
    {"%%MatrixMarket matrix coordinate pattern hermitian\n",
     "symmetry hermitian of numbers that are not complex is not supported"},
    {"%%MatrixMarket matrix coordinate real hermitian\n",
     "bad.mtx:1: symmetry hermitian of numbers that are not complex is not supported"},
    {"%%MatrixMarket matrix coordinate real odd\n", "bad.mtx:1: symmetry odd is not supported"},
    {"%%MatrixMarket matrix coordinate pattern skew-symmetric\n", "a pattern has no sign"},
    {"%%MatrixMarket matrix coordinate real general\n", "ends before its size line"},
    {"%%MatrixMarket matrix coordinate real general\n2 2\n",
     "bad.mtx:2: expected \"rows columns entries\""},
    {"%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
     "bad.mtx:2: the matrix is 2 x 3"},
    {"%%MatrixMarket matrix coordinate real general\n-2 -2 0\n", "-2 rows"},
    {"%%MatrixMarket matrix coordinate real general\n9999999999 9999999999 1\n",
     "at most 2147483647 rows"},
    {"%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 1\n1 1 1\n",
     "declares 2147483647 rows for 1 entries"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n",
     "ends after 1 entries, 2 are declared"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n2 2 1\n",
     "bad.mtx:4: an entry after the 1 declared ones"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n",
     "bad.mtx:3: entry (0, 1) is not in 1 .. 2"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n",
     "bad.mtx:3: entry (1, 3) is not in 1 .. 2"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n",
     "bad.mtx:3: expected \"row column value\""},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 4e38\n",
     "bad.mtx:3: the number is beyond float32's 3.40282e+38, found \"1 1 4e38\""},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 inf\n",
     "bad.mtx:3: expected \"row column value\", the value finite, found \"1 1 inf\""},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n",
     "bad.mtx:3: expected \"row column value\", the value finite, found \"1 1 nan\""},
    {"%%MatrixMarket matrix coordinate real general\n2 2 1\n99999999999999999999 1 1\n",
     "bad.mtx:3: expected row and column from 1 to 2147483647"},
    {"%%MatrixMarket matrix coordinate real general\n2 2 99999999999999999999\n",
     "entries to 9223372036854775807"},
    {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n",
     "bad.mtx:3: expected \"row column\""},
    {"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n1 2\n",
     "entry (1, 2) is not below the diagonal of a symmetric matrix"},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 0\n",
     "entry (1, 1) is not below the diagonal of a skew-symmetric matrix"},
};

static void bad_matrices_are_refused(void)
{
	for (size_t k = 0; k < sizeof bad_matrices / sizeof bad_matrices[0]; k++)
		must_refuse("mtx", file_of("bad.mtx", bad_matrices[k].text), HG_ERR_FORMAT,
		            bad_matrices[k].part);
	must_refuse("mtx", scratch(0, "absent.mtx"), HG_ERR_IO, "No such file or directory");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(edges_become_destination_rows),
	    TEST(ids_are_remapped),
	    TEST(third_column_is_a_weight),
	    TEST(csv_may_have_a_header),
	    TEST(list_without_edges_is_an_empty_graph),
	    TEST(gzip_is_read),
	    TEST(gzip_may_have_members_and_padding),
	    TEST(empty_files_are_refused),
	    TEST(bad_edge_lists_are_refused),
	    TEST(every_field_and_symmetry_is_read),
	    TEST(bad_matrices_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
