/* MUSAE's csv and json files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support.h"

/* The files of a set; NULL: there is no such file. */
struct parts {
	const char *edges, *features, *target;
};
static const struct parts good = {
    "id_1,id_2\n0,3\r\n0,1\n2,2\n1,0\n", "{\"3\": [1, 5,1],\n \"0\": [],\"1\":[0]}\n",
    "id,days,mature,new_id\n900,1,True,2\n901,2,False,0\n\n902,3,True,1\n903,4,False,3\n"};

static const char *set_of(const struct parts *p)
{
	static const char *const names[] = {"toy_edges.csv", "toy_features.json", "toy_target.csv"};
	const char *const texts[] = {p->edges, p->features, p->target};
	for (int k = 0; k < 3; k++) {
		(void)remove(scratch(0, names[k]));
		if (texts[k])
			write_text(scratch(0, names[k]), texts[k]);
	}
	return scratch(0, "toy_edges.csv");
}

static void set_is_read(void)
{
	static const int64_t rowptr[] = {0, 2, 3, 4, 5}, feat[] = {0, 0, 1, 1, 3};
	static const int32_t col[] = {1, 3, 0, 2, 0}, feat_col[] = {0, 1, 5}, label[] = {0, 1, 1, 0};
	hg_dataset *d = must_import("musae", set_of(&good));
	CHECK_STR(d->name, "toy");
	CHECK(d->nodes == 4 && d->edges == 5 && d->features == 6 && d->classes == 2 && !d->target);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(memcmp(d->feat_rowptr, feat, sizeof feat) == 0 &&
	      memcmp(d->feat_col, feat_col, sizeof feat_col) == 0 && d->feat_amax == 1);
	CHECK(memcmp(d->label, label, sizeof label) == 0);
	CHECK_EQ_I(run_convert("--from musae @/toy_target.csv -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "the 2 classes are the words of mature: False, True\n");
	CHECK_CONTAINS(convert_err, "1 of 4 nodes have no list of features\n");
	CHECK_CONTAINS(convert_err, "2 of 7 edges repeat an earlier edge");
	hg_dataset *back = must_read(scratch(0, "toy.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
}

static void pack(struct npz_out *zip, const char *name, const char *text)
{
	size_t count = 0;
	gzFile file = gzopen(scratch(2, "packed"), "wb");
	CHECK(file != NULL && gzputs(file, text) == (int)strlen(text) && gzclose(file) == Z_OK);
	unsigned char *bytes = read_bytes(scratch(2, "packed"), &count);
	npz_raw(zip, name, bytes, count);
	free(bytes);
}

/* An archive with compressed files, and the folder of the first test. */
static void archives_and_folders_are_read(void)
{
	hg_dataset *d = must_import("musae", set_of(&good));
	struct npz_out *zip = npz_begin(scratch(1, "toy.zip"));
	pack(zip, "x/toy_edges.csv.gz", good.edges);
	npz_raw(zip, "x/toy_features.json", good.features, strlen(good.features));
	pack(zip, "x/toy_target.csv.gz", good.target);
	npz_end(zip, 0);
	hg_dataset *same = must_import("musae", scratch(1, "toy.zip"));
	check_same(d, same);
	hg_dataset_free(same);
	same = must_import("musae", test_path("."));
	check_same(d, same);
	hg_dataset_free(same);
	hg_dataset_free(d);
	write_text(scratch(1, "other_target.csv"), "id,target\n");
	must_refuse("musae", test_path("."), HG_ERR_FORMAT, "holds the datasets other and toy");
	CHECK(remove(scratch(1, "other_target.csv")) == 0);
}

static void kinds_of_targets_are_told_apart(void)
{
	struct parts p = good;
	hg_dataset *d;
	p.target = "id,name,page_type\n0,\"a, \"\"b\"\"\",tv\n1,c,company\n2,,tv\n3,d,politician\n";
	d = must_import("musae", set_of(&p));
	CHECK(d->classes == 3 && d->label[0] == 2 && d->label[1] == 0 && d->label[3] == 1);
	hg_dataset_free(d);
	p.target = "id,target\n0,2\n3,0\n2,0\n1,1\n";
	d = must_import("musae", set_of(&p));
	CHECK(d->classes == 3 && d->label[0] == 2 && d->label[1] == 1 && d->label[3] == 0);
	hg_dataset_free(d);
	p.target = "id,target\n0,200\n3,0\n2,0\n1,1.5\n"; /* traffic */
	d = must_import("musae", set_of(&p));
	CHECK(d->classes == 0 && !d->label && d->targets == 1 && d->target[0] == 200 &&
	      d->target[1] == 1.5f && d->target[3] == 0);
	hg_dataset_free(d);
	p.target = "id,target\n0,2\n3,0\n2,0\n1,0\n"; /* class 1 has no node */
	d = must_import("musae", set_of(&p));
	CHECK(d->targets == 1 && !d->label);
	hg_dataset_free(d);
	p.features = NULL;
	d = must_import("musae", set_of(&p));
	CHECK(d->features == 0 && !d->feat_rowptr);
	hg_dataset_free(d);
}

static const struct {
	struct parts parts;
	const char *part;
} bad_sets[] = {
    {{"a,b\n0,4\n", NULL, "id,target\n0,0\n"},
     "toy_edges.csv:2: node 4: the nodes of the target file are 0 .. 0"},
    {{"a,b\n-1,0\n", NULL, "id,target\n0,0\n"}, "toy_edges.csv:2: node -1: the nodes"},
    {{"a,b\n0\n", NULL, "id,target\n0,0\n"},
     "toy_edges.csv:2: expected two node numbers, found \"0\""},
    {{"a,b\n0,0,1\n", NULL, "id,target\n0,0\n"}, "toy_edges.csv:2: expected two node numbers"},
    {{"a\n0,0\n", NULL, "id,target\n0,0\n"},
     "toy_edges.csv:1: expected the names of two columns, such as id_1,id_2, found \"a\""},
    {{"a,b,c\n0,0\n", NULL, "id,target\n0,0\n"}, "toy_edges.csv:1: expected the names of two"},
    {{"a,b\nc,d\n", NULL, "id,target\n0,0\n"}, "toy_edges.csv:2: expected two node numbers"},
    {{"a,b\n0,99999999999999999999\n", NULL, "id,target\n0,0\n"},
     "toy_edges.csv:2: expected two node numbers"},
    {{"", NULL, "id,target\n0,0\n"}, "toy_edges.csv: is empty: 0 bytes"},
    {{"a,b\n", NULL, ""}, "toy_target.csv: is empty: 0 bytes"},
    {{"a,b\n", NULL, "0,1\n"}, "toy_target.csv:1: expected a header with new_id or id"},
    {{"a,b\n", NULL, "id,label\n0,1\n"}, "toy_target.csv:1: expected a header"},
    {{"a,b\n", NULL, "id,target\n0\n"}, "toy_target.csv:2: 1 fields, expected 2 as in the header"},
    {{"a,b\n", NULL, "id,target\n0,\"1\n"}, "toy_target.csv:2: a quoted field does not end"},
    {{"a,b\n", NULL, "id,target\n0,\"1\"2\n"}, "toy_target.csv:2: a quoted field does not end"},
    {{"a,b\n", NULL, "id,target\nx,1\n"},
     "toy_target.csv:2: expected the number of a node, found \"x\""},
    {{"a,b\n", NULL, "id,target\n0,0\n0,1\n"},
     "toy_target.csv: node 0 again, expected each of 0 .. 1 once"},
    {{"a,b\n", NULL, "id,target\n1,0\n2,1\n"},
     "toy_target.csv: node 2, expected each of 0 .. 1 once"},
    {{"a,b\n", NULL, "id,target\n2147483648,0\n"}, "toy_target.csv: node 2147483648, expected"},
    {{"a,b\n", NULL, "id,target\n0,0\n1,nan\n"},
     "toy_target.csv:3: expected a finite number, found \"nan\""},
    {{"a,b\n", NULL, "id,target\n0,0\n1,1e39\n"},
     "toy_target.csv:3: the number is beyond float32's 3.40282e+38"},
    {{"a,b\n", NULL, "id,target\n0,\n"}, "toy_target.csv:2: expected a value"},
    {{"a,b\n", "", "id,target\n0,0\n"}, "toy_features.json: is empty: 0 bytes"},
    {{"a,b\n", "[1]", "id,target\n0,0\n"},
     "toy_features.json: at byte 0: expected an object in {, found '['"},
    {{"a,b\n", "{0: [1]}", "id,target\n0,0\n"},
     "toy_features.json: at byte 1: expected the number of a node in quotes, found '0'"},
    {{"a,b\n", "{\"a\": [1]}", "id,target\n0,0\n"}, "at byte 2: expected the number of a node"},
    {{"a,b\n", "{\"0\": 1}", "id,target\n0,0\n"}, "at byte 6: expected a list in [, found '1'"},
    {{"a,b\n", "{\"0\": [-1]}", "id,target\n0,0\n"},
     "at byte 7: expected a whole number from 0, found '-'"},
    {{"a,b\n", "{\"0\": [1.5]}", "id,target\n0,0\n"}, "at byte 8: expected a whole number from 0"},
    {{"a,b\n", "{\"0\": [1 2]}", "id,target\n0,0\n"}, "at byte 9: expected a comma or ]"},
    {{"a,b\n", "{\"0\": [1,]}", "id,target\n0,0\n"}, "at byte 9: expected a whole number"},
    {{"a,b\n", "{\"0\": [1]", "id,target\n0,0\n"},
     "toy_features.json: ends at byte 9, expected a comma or }"},
    {{"a,b\n", "{\"0\": [1", "id,target\n0,0\n"}, "ends at byte 8, expected a comma or ]"},
    {{"a,b\n", "{\"0\": [1]} x", "id,target\n0,0\n"}, "at byte 11: expected the end of the file"},
    {{"a,b\n", "{\"0\": [1], \"0\": []}", "id,target\n0,0\n"},
     "toy_features.json: node 0 again, expected each of 0 .. 0 at most once"},
    {{"a,b\n", "{\"1\": [1]}", "id,target\n0,0\n"}, "toy_features.json: node 1, expected each"},
    {{"a,b\n", "{\"0\": [2147483647]}", "id,target\n0,0\n"},
     "node 0 has feature 2147483647, expected 0 .. 2147483646"},
    {{"a,b\n", "{\"0\": [99999999999999999999]}", "id,target\n0,0\n"},
     "expected a whole number of 64 bits"},
};

static void bad_sets_are_refused(void)
{
	for (size_t k = 0; k < sizeof bad_sets / sizeof bad_sets[0]; k++)
		must_refuse("musae", set_of(&bad_sets[k].parts), HG_ERR_FORMAT, bad_sets[k].part);
	static const struct parts missing[] = {{NULL, NULL, "id,target\n0,0\n"}, {"a,b\n", NULL, NULL}};
	must_refuse("musae", set_of(&missing[0]), HG_ERR_IO,
	            "no file toy_edges.csv or toy_edges.csv.gz");
	must_refuse("musae", set_of(&missing[1]), HG_ERR_IO,
	            "no file toy_target.csv or toy_target.csv");
	must_refuse("musae", scratch(0, "absent"), HG_ERR_IO, "No such file");
	struct npz_out *zip = npz_begin(scratch(1, "none.zip"));
	npz_raw(zip, "a.csv", "1", 1);
	npz_end(zip, 0);
	must_refuse("musae", scratch(1, "none.zip"), HG_ERR_FORMAT, "holds no file NAME_target.csv");
	(void)set_of(&bad_sets[0].parts);
	CHECK_EQ_I(run_convert("--from musae @/toy_edges.csv -o @/never.h5"), 2);
	CHECK_EQ_I(count_scratch("never.h5"), 0);
}

static void twitch_is_read(void)
{
	char path[512];
	snprintf(path, sizeof path, "%s/raw/musae", test_data());
	if (!file_exists(path))
		SKIP("%s is not there", path);
	hg_dataset *d = must_import("musae", path);
	int64_t mature = 0;
	CHECK_STR(d->name, "DE");
	CHECK(d->nodes == 9498 && d->edges == 2 * 153138 && d->features == 3170 && d->classes == 2);
	CHECK_EQ_I(d->feat_rowptr[d->nodes], 193132);
	for (int64_t i = 0; i < d->nodes; i++)
		mature += d->label[i];
	CHECK_EQ_I(mature, 5742);
	hg_dataset_free(d);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(set_is_read),
	    TEST(archives_and_folders_are_read),
	    TEST(kinds_of_targets_are_told_apart),
	    TEST(bad_sets_are_refused),
	    TEST(twitch_is_read),
	};
	return RUN_TESTS(argc, argv, cases);
}
