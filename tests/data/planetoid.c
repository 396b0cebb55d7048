/* Planetoid's pickled datasets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pickles.h"
#include "support.h"

static const char *member_path(int slot, int k)
{
	char name[64];
	snprintf(name, sizeof name, "ind.toy.%s", planetoid_members[k]);
	return scratch(slot, name);
}

static int member_number(const char *member)
{
	int k = 0;
	while (k < PLANETOID_MEMBERS - 1 && strcmp(planetoid_members[k], member) != 0)
		k++;
	return k;
}

/* Writes the members of a set, and returns the path ind.toy. */
static const char *set_of(const struct small_planetoid *set)
{
	static struct pickle out;
	for (int k = 0; k < PLANETOID_MEMBERS; k++) {
		(void)remove(member_path(0, k));
		planetoid_member(set, k, &out);
		write_bytes(member_path(0, k), out.bytes, out.count);
	}
	return scratch(0, "ind.toy");
}

static void set_is_assembled(void)
{
	static const int64_t rowptr[] = {0, 2, 3, 4, 5, 7, 7, 8}, feat[] = {0, 1, 3, 4, 5, 6, 6, 7};
	static const int32_t col[] = {1, 2, 0, 0, 4, 3, 6, 4}, feat_col[] = {0, 1, 2, 1, 0, 0, 2},
	                     label[] = {0, 1, 0, 1, 0, -1, 1};
	static const float value[] = {1, 1, 0.5f, 2, 3, 4, 6};
	static const uint8_t train[] = {1, 1, 0, 0, 0, 0, 0}, val[] = {0, 0, 1, 1, 0, 0, 0},
	                     test[] = {0, 0, 0, 0, 1, 0, 1};
	hg_dataset *d = must_import("planetoid", set_of(&planetoid_toy));
	CHECK_STR(d->name, "toy");
	CHECK(d->nodes == 7 && d->edges == 8 && d->features == 3 && d->classes == 2);
	CHECK(memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 && memcmp(d->col, col, sizeof col) == 0);
	CHECK(memcmp(d->feat_rowptr, feat, sizeof feat) == 0 &&
	      memcmp(d->feat_col, feat_col, sizeof feat_col) == 0 &&
	      memcmp(d->feat_value, value, sizeof value) == 0 && d->feat_amax == 6);
	CHECK(memcmp(d->label, label, sizeof label) == 0 && d->weight == NULL);
	CHECK(memcmp(d->train_mask, train, sizeof train) == 0 &&
	      memcmp(d->val_mask, val, sizeof val) == 0 &&
	      memcmp(d->test_mask, test, sizeof test) == 0);
	hg_dataset_free(d);
}

/* A neighbour is where an edge ends, as in PyTorch Geometric. */
static void neighbour_is_the_destination(void)
{
	struct small_planetoid set = planetoid_toy;
	set.graph = "0: 3\n1:\n2:\n3:\n4:\n5:\n6:\n";
	hg_dataset *d = must_import("planetoid", set_of(&set));
	CHECK(d->edges == 1 && d->rowptr[3] == 0 && d->rowptr[4] == 1 && d->col[0] == 0);
	hg_dataset_free(d);
}

static void any_path_names_the_set(void)
{
	hg_dataset *d = must_import("planetoid", set_of(&planetoid_toy));
	for (int k = 0; k < PLANETOID_MEMBERS; k++) {
		hg_dataset *same = must_import("planetoid", member_path(0, k));
		check_same(d, same);
		hg_dataset_free(same);
		char line[128];
		snprintf(line, sizeof line, "@/ind.toy.%s -o @/toy.h5", planetoid_members[k]);
		CHECK_EQ_I(run_convert(line), 0);
		CHECK_CONTAINS(convert_err, "ind.toy.graph: 1 self loops were left out");
		CHECK_CONTAINS(convert_err, "1 of 9 edges repeat an earlier edge");
		CHECK_CONTAINS(convert_err, "test.index leaves out 1 nodes from 4 to 6");
		CHECK_CONTAINS(convert_err, "only 2 nodes are left to validate, 500 are usual");
	}
	CHECK_EQ_I(run_convert("--from planetoid @ -o @/toy.h5"), 0);
	CHECK_EQ_I(run_convert("--from planetoid @/ -o @/toy.h5"), 0);
	hg_dataset *back = must_read(scratch(0, "toy.h5"));
	check_same(d, back);
	hg_dataset_free(back);
	hg_dataset_free(d);
	write_text(scratch(1, "ind.other.graph"), "");
	must_refuse("planetoid", test_path("."), HG_ERR_FORMAT, "holds several datasets, expected one");
	CHECK(remove(scratch(1, "ind.other.graph")) == 0);
	CHECK_EQ_I(run_convert("@/ind.toy.pdf -o @/never.h5"), 2);
	CHECK_CONTAINS(convert_err, "No such file or directory");
}

/* 500 nodes validate where there are so many. */
static void five_hundred_validate(void)
{
	enum { KNOWN = 510 };
	static struct pickle out;
	static char lists[8192];
	size_t used = 0;
	struct small_planetoid set = planetoid_toy;
	static int32_t labels[2 * KNOWN], indptr[KNOWN + 1];
	for (int i = 0; i < KNOWN; i++)
		labels[2 * i] = 1;
	for (int i = 0; i < KNOWN + 2; i++)
		used += (size_t)snprintf(lists + used, sizeof lists - used, "%d:\n", i);
	set.graph = lists;
	set.test = "510\n511\n";
	(void)set_of(&set);
	out.count = 0;
	pickle_array_of(&out, KNOWN, 2, labels);
	write_bytes(member_path(0, member_number("ally")), out.bytes, out.count);
	out.count = 0;
	pickle_empty_csr(&out, KNOWN, 3, indptr);
	write_bytes(member_path(0, member_number("allx")), out.bytes, out.count);
	hg_dataset *d = must_import("planetoid", scratch(0, "ind.toy"));
	for (int i = 0; i < KNOWN + 2; i++)
		CHECK(d->train_mask[i] == (i < 2) && d->val_mask[i] == (i >= 2 && i < 502) &&
		      d->test_mask[i] == (i >= KNOWN));
	hg_dataset_free(d);
}

/* Protocol 0, which is text. */
static void protocol_0_is_read(void)
{
	hg_dataset *d = must_import("planetoid", set_of(&planetoid_toy));
	write_text(
	    member_path(0, member_number("y")),
	    "cnumpy.core.multiarray\n_reconstruct\np0\n(cnumpy\nndarray\np1\n(I0\ntp2\nS'b'\np3\n"
	    "tp4\nRp5\n(I1\n(I2\nI2L\ntp6\ncnumpy\ndtype\np7\n(S'i1'\np8\nI0\nI1\ntp9\nRp10\n(I3\n"
	    "S'|'\np11\nNNNI-1\nI-1\nI0\ntp12\nbI00\nS'\\x01\\x00\\x00\\x01'\np13\ntp14\nb.");
	write_text(
	    member_path(0, member_number("graph")),
	    "(dp0\nI0\n(lp1\nI1\naI2\naI1\nasI1\n(lp2\nI0\nasI2\n(lp3\nI0\naI2\nasI3\n(I4\nlsI4\n"
	    "(I3\nI6\nlsI5\n(lsL6L\n(lp4\nL4L\nas.");
	hg_dataset *same = must_import("planetoid", scratch(0, "ind.toy"));
	check_same(d, same);
	hg_dataset_free(same);
	hg_dataset_free(d);
}

/* ---- damage ---- */

#define BYTES(text) text, sizeof text - 1

static void damaged_pickles_are_refused(void)
{
	static const struct {
		const char *member, *bytes;
		size_t count;
		const char *part;
	} bad[] = {
	    {"x", BYTES(""), "ind.toy.x: is empty: 0 bytes"},
	    {"x", BYTES("\x80\2"), "ind.toy.x: at byte 2: truncated: the pickle goes on"},
	    {"graph", BYTES("\x80\2J\1\0"),
	     "ind.toy.graph: at byte 2: truncated: 2 bytes follow, "
	     "expected 4"},
	    {"y", BYTES("\x80\2T\xff\xff\xff\xff.."),
	     "at byte 2: truncated: 2 bytes follow, expected "
	     "4294967295"},
	    {"y", BYTES("\x80\2cnumpy"), "at byte 2: truncated: a line of text that does not end"},
	    {"allx", BYTES("\x93NUMPY"),
	     "ind.toy.allx: at byte 0: 0x93, expected an opcode of a "
	     "Python pickle"},
	    {"allx", BYTES("PK\3\4"), "at byte 0: opcode PERSID is refused"},
	    {"ty", BYTES("\x80\4N."), "at byte 0: a pickle of protocol 4, expected 0 to 2"},
	    {"graph", BYTES("\x80\2}K\0G12345678s."), "at byte 5: opcode BINFLOAT is refused"},
	    {"graph", BYTES("\x80\2N.N"), "at byte 4: the pickle ends here, but the file goes on"},
	    {"graph", BYTES("\x80\2NN."), "at byte 4: ends with 2 values, expected one"},
	    {"graph", BYTES("\x80\2(N."), "at byte 4: ends with 1 values, expected one"},
	    {"graph", BYTES("\x80\2a"), "at byte 2: takes a value from an empty stack"},
	    {"graph", BYTES("\x80\2N\x86"), "at byte 3: takes a value from an empty stack"},
	    {"graph", BYTES("\x80\2N(\x85"), "at byte 4: takes a value from an empty stack"},
	    {"graph", BYTES("\x80\2e"), "at byte 2: ends a container that was not begun"},
	    {"graph", BYTES("\x80\2NNa"), "at byte 4: found None, expected a list"},
	    {"graph", BYTES("\x80\2}(Nu"), "at byte 5: a dictionary with a key, but no value for it"},
	    {"graph", BYTES("\x80\2h\7"), "at byte 2: memo 7 is empty"},
	    {"graph", BYTES("\x80\2Nr\xff\xff\xff\x7f."),
	     "at byte 3: memo 2147483647 in a file of 9 "
	     "bytes is impossible"},
	    {"graph", BYTES("((((((((((((((((((((((((((((((((("),
	     "at byte 32: containers in "
	     "containers, deeper than 32"},
	    {"graph", BYTES("I12x\n."), "at byte 0: \"12x\", expected an integer of 64 bits"},
	    {"graph", BYTES("L99999999999999999999L\n."), "expected an integer of 64 bits"},
	    {"graph", BYTES("S'a\n."), "at byte 0: expected a string in quotes"},
	    {"graph", BYTES("S'\\q'\n."), "at byte 0: a string with an escape that is not known"},
	    {"graph", BYTES("\x80\2\x8a\x09"), "at byte 2: an integer of 9 bytes, expected at most 8"},
	    {"graph", BYTES("N."), "ind.toy.graph: at byte 0: found None, expected a dictionary"},
	    {"x", BYTES("]."), "ind.toy.x: at byte 0: found a list, expected a scipy.sparse.csr"},
	    {"y", BYTES("]."), "ind.toy.y: at byte 0: labels is a list, expected a numpy.ndarray"},
	    {"x", BYTES("\x80\2cscipy.sparse.csr\ncsr_matrix\n)\x81."),
	     "at byte 32: a csr_matrix without its arrays"},
	    {"x", BYTES("\x80\2cscipy.sparse.csr\ncsr_matrix\n)\x81}b."), "_shape, expected two"},
	    {"x", BYTES("\x80\2Nb"), "at byte 3: takes a value from an empty stack"},
	    {"x", BYTES("\x80\2NNb"), "at byte 4: a state for None, expected an object"},
	    {"x", BYTES("\x80\2cnumpy\ndtype\n)\x81."),
	     "at byte 16: a call of numpy.dtype with these arguments is refused"},
	    {"x", BYTES("\x80\2ccollections\ndefaultdict\ncnumpy\ndtype\n\x85R."),
	     "at byte 41: a call of collections.defaultdict with these arguments is refused"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		const char *path = set_of(&planetoid_toy);
		write_bytes(member_path(1, member_number(bad[k].member)), bad[k].bytes, bad[k].count);
		must_refuse("planetoid", path, HG_ERR_FORMAT, bad[k].part);
	}
}

/* A function that a pickle names is refused by its name and not called. */
static void nothing_is_executed(void)
{
	static const struct {
		const char *head, *tail, *name;
	} calls[] = {{"cos\nsystem\n(S'touch ", "'\ntR.", "os.system"},
	             {"\x80\2c__builtin__\neval\nU", "\x85R.", "__builtin__.eval"},
	             {"cposix\nsystem\n(S'touch ", "'\ntR.", "posix.system"},
	             {"csubprocess\nPopen\n(S'touch ", "'\ntR.", "subprocess.Popen"}};
	char marker[256], text[512], part[128];
	snprintf(marker, sizeof marker, "%s", scratch(0, "executed"));
	for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
		(void)set_of(&planetoid_toy);
		snprintf(text, sizeof text, "%s%s%s", calls[k].head, marker, calls[k].tail);
		write_text(member_path(0, member_number("graph")), text);
		snprintf(part, sizeof part, "names %s, which is refused", calls[k].name);
		must_refuse("planetoid", scratch(0, "ind.toy"), HG_ERR_FORMAT, part);
		CHECK_EQ_I(run_convert("--from planetoid @/ind.toy -o @/never.h5"), 2);
		CHECK_CONTAINS(convert_err, "nothing was executed");
		CHECK(!file_exists(marker) && !file_exists(scratch(1, "never.h5")));
	}
}

/* Every prefix of every member is refused, with one line. */
static void truncated_members_are_refused(void)
{
	static struct pickle out;
	const char *path = set_of(&planetoid_toy);
	for (int k = 0; k < PLANETOID_PICKLES; k++) {
		planetoid_member(&planetoid_toy, k, &out);
		for (size_t count = 0; count < out.count; count++) {
			write_bytes(member_path(1, k), out.bytes, count);
			must_refuse("planetoid", path, HG_ERR_FORMAT, count ? "truncated" : "is empty");
		}
		write_bytes(member_path(1, k), out.bytes, out.count);
	}
}

/* Good pickles that hold no good dataset. */
static void bad_sets_are_refused(void)
{
	struct small_planetoid bad[20];
	const char *part[20];
	int n = 0;
#define BAD(change, text) bad[n] = planetoid_toy, bad[n].change, part[n++] = text
	BAD(ty.at[3] = 1, "row 1 of the labels has 1 in column 1, expected one");
	BAD(ally.at[0] = 0, "row 0 of the labels has no 1, expected one");
	BAD(y.at[0] = 7, "row 0 of the labels has 7 in column 0, expected one 1 and zeros");
	BAD(tx.data[1] = NAN, "ind.toy.tx: at byte ");
	BAD(allx.data[4] = INFINITY, "data: value inf at 4, expected a finite number");
	BAD(allx.indices[2] = 3, "indices: value 3 at 2 is not in [0, 2]");
	BAD(allx.indices[2] = -1, "indices: value -1 at 2 is not in [0, 2]");
	BAD(allx.indptr[1] = 4, "ind.toy.allx: indptr: pointers decrease after row 1: 3 after 4");
	BAD(tx.stored = 1, "indices has 1 elements, expected 2");
	BAD(ally.rows = 3, "ind.toy.allx: 4 rows, expected 3 as in ally");
	BAD(y.rows = 1, "ind.toy.x: 2 rows, expected 1 as in y");
	BAD(tx.cols = 4, "ind.toy.tx: 4 features, expected 3 as in allx");
	BAD(test = "6\n4\n5\n", "ind.toy.test.index: 3 nodes, expected 2 as in tx");
	BAD(test = "6\n5\n", "ind.toy.test.index: 2 nodes from 5 to 6, expected nodes from 4");
	BAD(test = "4\n4\n", "a graph of 7 nodes, expected 5");
	BAD(test = "4\n2000000000\n", "a graph of 7 nodes, expected 2000000001");
	BAD(test = "4\nsix\n", "ind.toy.test.index:2: expected the number of a node, found \"six\"");
	BAD(graph = "0: 7\n1:\n2:\n3:\n4:\n5:\n6:\n", "node 7 is not in [0, 7)");
	BAD(graph = "0:\n1:\n2:\n3:\n4:\n5:\n5:\n", "node 5 has two lists of neighbours");
	BAD(graph = "0:\n1:\n2:\n3:\n4:\n5:\n-6:\n", "node -6 is not in [0, 7)");
#undef BAD
	CHECK_EQ_I(n, 20);
	for (int k = 0; k < n; k++)
		must_refuse("planetoid", set_of(&bad[k]), HG_ERR_FORMAT, part[k]);
	struct small_planetoid twice = planetoid_toy;
	twice.test = "4\n4\n";
	twice.graph = "0:\n1:\n2:\n3:\n4:\n";
	must_refuse("planetoid", set_of(&twice), HG_ERR_FORMAT,
	            "ind.toy.test.index:2: node 4 again, expected every node once");
}

/* A list that is shared by all nodes would make many edges of few bytes. */
static void shared_lists_are_refused(void)
{
	static struct pickle out;
	out.count = 0;
	(void)set_of(&planetoid_toy);
	pickle_text(&out, "\x80\2}(K");
	pickle_add(&out, "\0](", 3);
	for (int k = 0; k < 30; k++)
		pickle_text(&out, "K\1");
	pickle_text(&out, "eq\1");
	for (char node = 1; node < 7; node++) {
		const char key[] = {'K', node, 'h', 1};
		pickle_add(&out, key, sizeof key);
	}
	pickle_text(&out, "u.");
	write_bytes(member_path(0, member_number("graph")), out.bytes, out.count);
	must_refuse("planetoid", scratch(0, "ind.toy"), HG_ERR_FORMAT, "more neighbours than the ");
}

/* No member may be missing or be a directory. */
static void missing_members_are_named(void)
{
	char part[64];
	for (int k = 0; k < PLANETOID_MEMBERS; k++) {
		const char *path = set_of(&planetoid_toy);
		CHECK(remove(member_path(1, k)) == 0);
		snprintf(part, sizeof part, "ind.toy.%s: No such file", planetoid_members[k]);
		must_refuse("planetoid", path, HG_ERR_IO, part);
		CHECK_EQ_I(run_convert("--from planetoid @/ind.toy -o @/never.h5"), 2);
		CHECK_CONTAINS(convert_err, part);
		CHECK(!file_exists(scratch(2, "never.h5")));
		CHECK(mkdir(member_path(1, k), 0777) == 0);
		snprintf(part, sizeof part, "ind.toy.%s: is a directory", planetoid_members[k]);
		must_refuse("planetoid", path, HG_ERR_IO, part);
		must_refuse("planetoid", member_path(1, k), HG_ERR_IO, part);
		CHECK(rmdir(member_path(1, k)) == 0);
	}
	CHECK(mkdir(scratch(1, "bare"), 0777) == 0);
	must_refuse("planetoid", scratch(1, "bare"), HG_ERR_FORMAT, "holds no file ind.NAME.graph");
	CHECK(rmdir(scratch(1, "bare")) == 0);
	must_refuse("planetoid", scratch(1, "absent"), HG_ERR_IO, "absent: No such file");
	write_text(scratch(1, "file.txt"), "x");
	must_refuse("planetoid", scratch(1, "file.txt"), HG_ERR_FORMAT,
	            "expected ind.NAME, one of its");
	must_refuse("planetoid", scratch(1, "ind.toy2"), HG_ERR_IO, "ind.toy2.x: No such file");
}

/* ---- the published files ---- */

static const char *real(int slot, const char *file)
{
	static char path[2][512];
	snprintf(path[slot], sizeof path[slot], "%s/raw/%s", test_data(), file);
	return path[slot];
}

/* The archives were made from the same pickles by numpy and scipy. */
static void compare_with_archive(const char *name, int64_t nodes, int64_t edges)
{
	char pickles[64], archive[64];
	snprintf(pickles, sizeof pickles, "planetoid/ind.%s.graph", name);
	snprintf(archive, sizeof archive, "planetoid_npz/%s.npz", name);
	if (!file_exists(real(0, pickles)) || !file_exists(real(1, archive)))
		SKIP("%s or %s is not there", real(0, pickles), real(1, archive));
	hg_dataset *d = must_import("planetoid", real(0, pickles)),
	           *same = must_import("npz", real(1, archive));
	CHECK_EQ_I(d->nodes, nodes);
	CHECK_EQ_I(d->edges, edges);
	check_same(d, same);
	hg_dataset_free(d);
	hg_dataset_free(same);
}

static void cora_is_the_archive(void)
{
	compare_with_archive("cora", 2708, 10556);
}
static void citeseer_is_the_archive(void)
{
	compare_with_archive("citeseer", 3327, 9104);
}

static void pubmed_without_allx_is_refused(void)
{
	if (!file_exists(real(0, "planetoid/ind.pubmed.graph")) ||
	    file_exists(real(1, "planetoid/ind.pubmed.allx")))
		SKIP("%s without its allx is not there", real(0, "planetoid/ind.pubmed.graph"));
	must_refuse("planetoid", real(0, "planetoid/ind.pubmed.graph"), HG_ERR_IO,
	            "ind.pubmed.allx: No such file");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(set_is_assembled),          TEST(neighbour_is_the_destination),
	    TEST(any_path_names_the_set),    TEST(five_hundred_validate),
	    TEST(protocol_0_is_read),        TEST(damaged_pickles_are_refused),
	    TEST(nothing_is_executed),       TEST(truncated_members_are_refused),
	    TEST(bad_sets_are_refused),      TEST(shared_lists_are_refused),
	    TEST(missing_members_are_named), TEST(cora_is_the_archive),
	    TEST(citeseer_is_the_archive),   TEST(pubmed_without_allx_is_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
