/* Damaged inputs of every source format, through h5convert: exit code 2, one line that names the
 * file or member, and no output file. What is particular to a format is tested beside it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "sets.h"

/* What damage does to the numbers of each set; "" where nothing is wrong with it, and NULL where
 * the format has no such number. */
static const struct expected {
	const char *format;
	const char *beyond, *beyond_part; /* the id of a node that is not there */
	const char *huge_part;            /* the id 2^31 */
	const char *nan_part;             /* NaN where a number is read */
} expected[] = {
    {"npz", "3", "g.npz: member adj_indices.npy: value 3 at 1 is not in [0, 2]",
     "member adj_indices.npy: value 2147483648 at 1 is not in [0, 2]",
     "g.npz: features: row 1, column 0 is nan"},
    {"tu", "4", "DS_A.txt:2: edge 2, 4: the nodes are 1 .. 3", "DS_A.txt:2: edge 2, 2147483648",
     "DS_node_attributes.txt:2: expected finite numbers, found \"nan\""},
    {"gin", "2", "g.txt:4", "g.txt:4", "g.txt:3"},
    {"musae", "3", "toy_edges.csv:3", "toy_edges.csv:3", "toy_features.json"},
    {"ogb", "3", "raw/edge.csv.gz:2", "raw/edge.csv.gz:2", "raw/node-feat.csv.gz:2"},
    /* of an edge list every number is a node: the ids are kept */
    {"edges", "9223372036854775808", "g.txt:2", "", "g.txt:2"},
    {"mtx", "4", "g.mtx:4", "g.mtx:4", "g.mtx:4"},
    {"planetoid", "7", "ind.toy.graph", "ind.toy.test.index",
     "ind.toy.allx: at byte 496: data: value nan at 0"},
    {"metis", "4", "g.graph:3", "g.graph:3", "g.graph:3"},
    {"h5ad", "3", "g.h5ad: /obsp/knn/indices", "g.h5ad: /obsp/knn/indices",
     "g.h5ad: features: row 1"},
    {"graphbolt", "3", "edges.npy", "edges.npy", "x.npy: row 1, column 0 is nan"},
    {"dgl-csv", "3", "edges.csv:3", "edges.csv:3", "nodes.csv:3"},
    {"h5", "3", "g.h5: /graph/indices_1", "g.h5: /graph/indices_1", "g.h5: features: row 1"},
};

/* Runs h5convert on a file or folder as `format` and checks that it is refused in the right way.
 * `part`: what the message must hold. */
static void must_fail(const char *format, const char *input, const char *damage, const char *part)
{
	char arguments[256];
	snprintf(arguments, sizeof arguments, "--from %s @/%s -o @/out.h5", format, input);
	(void)remove(scratch(0, "out.h5"));
	const int code = run_convert(arguments);
	CHECK_MSG(code == 2, "%s, %s: exit code %d (%s)", format, damage, code, convert_err);
	CHECK_MSG(strncmp(convert_err, "h5convert: ", 11) == 0, "%s, %s: %s", format, damage,
	          convert_err);
	const char *line = convert_err, *next;
	/* notes may precede the reason, which is the last line */
	while ((next = strchr(line, '\n')) && next[1])
		line = next + 1;
	CHECK_MSG(next != NULL && strstr(line, part) != NULL, "%s, %s: \"%s\" names no %s", format,
	          damage, line, part);
	CHECK_MSG(count_scratch("out.h5") == 0, "%s, %s: a file is left", format, damage);
}

static const char *input_of(const struct small_set *set)
{
	static char input[128];
	snprintf(input, sizeof input, "set%s%s", *set->input ? "/" : "", set->input);
	return input;
}

/* The last part of a name, which every message about the file holds. */
static const char *base(const char *file)
{
	const char *slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

static void must_convert(const struct small_set *set, const char *input)
{
	char arguments[256];
	snprintf(arguments, sizeof arguments, "--from %s @/%s -o @/good.h5 --quiet", set->format,
	         input);
	const int code = run_convert(arguments);
	CHECK_MSG(code == 0, "%s: a good set ends with %d: %s", set->format, code, convert_err);
	hg_dataset_free(must_read(scratch(0, "good.h5")));
}

/* The table has a row for every importer, and the undamaged sets are converted. */
static void every_format_has_a_row(void)
{
	size_t count = 0;
	const hg_importer *table = hg_importers(&count);
	CHECK_EQ_I(small_set_count, count);
	CHECK_EQ_I(sizeof expected / sizeof expected[0], count);
	for (size_t k = 0; k < count; k++) {
		int found = 0;
		for (size_t j = 0; j < count; j++)
			found += strcmp(table[k].name, small_sets[j].format) == 0 &&
			         strcmp(table[k].name, expected[j].format) == 0;
		CHECK_MSG(found == 1, "%s has %d rows", table[k].name, found);
	}
	for (int k = 0; k < small_set_count; k++) {
		small_set_make(&small_sets[k], NULL, NULL);
		must_convert(&small_sets[k], input_of(&small_sets[k]));
	}
}

/* ---- every file ---- */

static void missing_files_are_named(void)
{
	for (int k = 0; k < small_set_count; k++)
		for (int f = 0; f < small_sets[k].count; f++) {
			small_set_make(&small_sets[k], NULL, NULL);
			CHECK(remove(small_set_path(small_sets[k].files[f])) == 0);
			must_fail(small_sets[k].format, input_of(&small_sets[k]), "a missing file",
			          base(small_sets[k].files[f]));
		}
}

static void empty_files_are_named(void)
{
	for (int k = 0; k < small_set_count; k++)
		for (int f = 0; f < small_sets[k].count; f++) {
			small_set_make(&small_sets[k], NULL, NULL);
			write_bytes(small_set_path(small_sets[k].files[f]), "", 0);
			must_fail(small_sets[k].format, input_of(&small_sets[k]), "an empty file",
			          base(small_sets[k].files[f]));
		}
}

static void folders_are_no_files(void)
{
	for (int k = 0; k < small_set_count; k++)
		for (int f = 0; f < small_sets[k].count; f++) {
			small_set_make(&small_sets[k], NULL, NULL);
			CHECK(remove(small_set_path(small_sets[k].files[f])) == 0 &&
			      mkdir(small_set_path(small_sets[k].files[f]), 0755) == 0);
			must_fail(small_sets[k].format, input_of(&small_sets[k]), "a folder",
			          base(small_sets[k].files[f]));
		}
}

/* Bytes of no format, and the text of another one. */
static void other_formats_are_named(void)
{
	static const char binary[] = "\x7f"
	                             "ELF\2\1\1\0\0\0\0\0",
	                  words[] = "<html>no such page</html>\n";
	for (int k = 0; k < small_set_count; k++)
		for (int f = 0; f < small_sets[k].count; f++)
			for (int is_text = 0; is_text < 2; is_text++) {
				small_set_make(&small_sets[k], NULL, NULL);
				write_bytes(small_set_path(small_sets[k].files[f]), is_text ? words : binary,
				            is_text ? sizeof words - 1 : sizeof binary);
				must_fail(small_sets[k].format, input_of(&small_sets[k]), "another format",
				          base(small_sets[k].files[f]));
			}
}

/* Half of the bytes: of the file where these tell its length, and of a text after it was
 * compressed, since every line of a text may be the last one. */
static void truncated_files_are_named(void)
{
	for (int k = 0; k < small_set_count; k++)
		for (int f = 0; f < small_sets[k].count; f++) {
			const char *file = small_sets[k].files[f];
			size_t count = 0;
			small_set_make(&small_sets[k], NULL, NULL);
			unsigned char *bytes = read_bytes(small_set_path(file), &count);
			const int is_text = bytes[0] < 128 && bytes[0] != 0x1f && bytes[0] != 'P' &&
			                    strstr(small_sets[k].format, "h5") == NULL && bytes[0] != 0x80;
			if (is_text) {
				gzFile out = gzopen(small_set_path(file), "wb");
				CHECK(out && gzwrite(out, bytes, (unsigned)count) == (int)count &&
				      gzclose(out) == Z_OK);
				free(bytes);
				must_convert(&small_sets[k], input_of(&small_sets[k]));
				bytes = read_bytes(small_set_path(file), &count);
			}
			write_bytes(small_set_path(file), bytes, count / 2);
			free(bytes);
			must_fail(small_sets[k].format, input_of(&small_sets[k]), "half a file", base(file));
		}
}

/* ---- archives ---- */

static int is_archived(const struct small_set *set)
{
	static const char *const formats[] = {"tu", "gin", "musae", "ogb", "graphbolt", "dgl-csv"};
	for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
		if (strcmp(formats[k], set->format) == 0)
			return 1;
	return 0;
}

static void archives_are_named(void)
{
	for (int k = 0; k < small_set_count; k++) {
		const struct small_set *set = &small_sets[k];
		size_t count = 0;
		if (!is_archived(set))
			continue;
		small_set_make(set, NULL, NULL);
		small_set_pack(set, "set.zip", -1);
		must_convert(set, "set.zip");
		for (int f = 0; f < set->count; f++) {
			small_set_pack(set, "set.zip", f);
			/* without the file that tells the names of the others none of them can be named */
			must_fail(set->format, "set.zip", "a missing member",
			          f == 0 ? "set.zip" : base(set->files[f]));
		}
		small_set_pack(set, "set.zip", -1);
		unsigned char *bytes = read_bytes(scratch(2, "set.zip"), &count);
		write_bytes(scratch(2, "set.zip"), bytes, count / 2);
		must_fail(set->format, "set.zip", "half an archive", "set.zip");
		write_bytes(scratch(2, "set.zip"), bytes, 0);
		must_fail(set->format, "set.zip", "an empty archive", "set.zip");
		/* a byte of the data of the first member, which follow its header, name and extras */
		const size_t data = 30u + bytes[26] + 256u * bytes[27] + bytes[28] + 256u * bytes[29];
		CHECK(data < count);
		bytes[data] ^= 0xff;
		write_bytes(scratch(2, "set.zip"), bytes, count);
		must_fail(set->format, "set.zip", "a damaged member", "set.zip");
		free(bytes);
	}
}

/* The one archive that is a file of its own. */
static void members_of_npz_are_named(void)
{
	static const char *const members[] = {"adj_shape", "adj_indptr", "adj_indices"};
	for (size_t left_out = 0; left_out < 3; left_out++) {
		static const int64_t values[] = {1, 1, 0, 0};
		struct npz_out *out = npz_begin(scratch(0, "part.npz"));
		for (size_t k = 0; k < 3; k++)
			if (k != left_out)
				npz_add(out, members[k], "<i8",
				        k == 0   ? "(2,)"
				        : k == 1 ? "(2,)"
				                 : "(0,)",
				        k == 1 ? values + 2 : values, k < 2 ? 16 : 0);
		npz_end(out, 0);
		must_fail("npz", "part.npz", "a missing member", members[left_out]);
	}
}

/* ---- numbers ---- */

static void ids_out_of_range_are_named(void)
{
	for (int k = 0; k < small_set_count; k++) {
		small_set_make(&small_sets[k], expected[k].beyond, NULL);
		must_fail(small_sets[k].format, input_of(&small_sets[k]), "an id out of range",
		          expected[k].beyond_part);
	}
}

static void huge_ids_are_named(void)
{
	for (int k = 0; k < small_set_count; k++) {
		small_set_make(&small_sets[k], "2147483648", NULL);
		if (*expected[k].huge_part)
			must_fail(small_sets[k].format, input_of(&small_sets[k]), "the id 2^31",
			          expected[k].huge_part);
		else
			must_convert(&small_sets[k], input_of(&small_sets[k]));
	}
}

static void nan_is_named(void)
{
	for (int k = 0; k < small_set_count; k++) {
		small_set_make(&small_sets[k], NULL, "nan");
		must_fail(small_sets[k].format, input_of(&small_sets[k]), "NaN", expected[k].nan_part);
	}
}

/* ---- permissions ---- */

/* The same as must_fail for a user who is not root, whom no permission stops. */
static void must_fail_for_others(const struct small_set *set, const char *part)
{
	char arguments[256];
	int status = 0;
	if (geteuid() != 0) {
		must_fail(set->format, input_of(set), "no permission", part);
		return;
	}
	(void)remove(scratch(0, "out.h5"));
	(void)remove(scratch(0, "stdout"));
	(void)remove(scratch(0, "stderr"));
	snprintf(arguments, sizeof arguments, "--from %s @/%s -o @/out.h5", set->format, input_of(set));
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		enum { NOBODY = 65534 };
		if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(99);
		_exit(access(HG_H5CONVERT, X_OK) == 0 ? run_convert(arguments) : 98);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 98 || WEXITSTATUS(status) == 99)
		SKIP("%s: root cannot be stopped, and nobody %s", HG_H5CONVERT,
		     WEXITSTATUS(status) == 98 ? "may not run it" : "can be no user here");
	size_t count = 0;
	unsigned char *said = read_bytes(scratch(0, "stderr"), &count);
	said[count] = 0;
	snprintf(convert_err, sizeof convert_err, "%s", (char *)said);
	free(said);
	CHECK_MSG(WEXITSTATUS(status) == 2, "%s: exit code %d (%s)", set->format, WEXITSTATUS(status),
	          convert_err);
	CHECK_CONTAINS(convert_err, part);
	CHECK_CONTAINS(convert_err, "Permission denied");
	CHECK_EQ_I(count_scratch("out.h5"), 0);
}

static void unreadable_files_are_named(void)
{
	char folder[256];
	snprintf(folder, sizeof folder, "%s", scratch(0, ""));
	CHECK(chmod(folder, 0777) == 0); /* so that nobody may write there */
	for (int k = 0; k < small_set_count; k++) {
		const struct small_set *set = &small_sets[k];
		for (int f = 0; f < set->count; f++) {
			small_set_make(set, NULL, NULL);
			CHECK(chmod(small_set_path(set->files[f]), 0) == 0);
			must_fail_for_others(set, base(set->files[f]));
		}
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(every_format_has_a_row),
	    TEST(missing_files_are_named),
	    TEST(empty_files_are_named),
	    TEST(folders_are_no_files),
	    TEST(other_formats_are_named),
	    TEST(truncated_files_are_named),
	    TEST(archives_are_named),
	    TEST(members_of_npz_are_named),
	    TEST(ids_out_of_range_are_named),
	    TEST(huge_ids_are_named),
	    TEST(nan_is_named),
	    TEST(unreadable_files_are_named),
	};
	return RUN_TESTS(argc, argv, cases);
}
