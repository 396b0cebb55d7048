/* The first line of an edge list may be an edge, or the counts of what follows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const char *file_of(const char *name, const char *text)
{
	const char *path = scratch(0, name);
	write_text(path, text);
	return path;
}

static char noted[1024];

static void note_message(void *user, const char *sentence)
{
	(void)user;
	strncat(noted, sentence, sizeof noted - strlen(noted) - 1);
	strncat(noted, "\n", sizeof noted - strlen(noted) - 1);
}

static hg_status import_with(hg_header header, const char *const *paths, int count, hg_dataset **d,
                             char *message)
{
	size_t formats = 0, k = 0;
	const hg_importer *table = hg_importers(&formats);
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	config.header = header;
	config.note = note_message;
	noted[0] = 0;
	while (k < formats && strcmp(table[k].name, "edges") != 0)
		k++;
	return table[k].import(paths, count, &config, d, message);
}

/* The result as text: "NODES: row<col=weight ...", or "refused: MESSAGE". */
static const char *read_as(hg_header header, const char *path)
{
	static char text[1024];
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	const hg_status status = import_with(header, &path, 1, &d, message);
	if (status < 0) {
		CHECK(!d && status == HG_ERR_FORMAT && !strchr(message, '\n'));
		snprintf(text, sizeof text, "refused: %s", message);
		return text;
	}
	CHECK_OK(hg_dataset_check(d, path, message));
	size_t used = (size_t)snprintf(text, sizeof text, "%d:", (int)d->nodes);
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			const int id = (int)hg_dataset_node(d, i), from = (int)hg_dataset_node(d, d->col[e]);
			used += (size_t)snprintf(text + used, sizeof text - used, " %d<%d", id, from);
			if (d->weight)
				used +=
				    (size_t)snprintf(text + used, sizeof text - used, "=%g", (double)d->weight[e]);
		}
	hg_dataset_free(d);
	return text;
}

static void counts_are_not_taken_for_an_edge(void)
{
	static const struct {
		const char *text, *expected;
	} good[] = {
	    {"3 2\n0 1\n1 2\n", "3: 1<0 2<1"},
	    {"3\t2\r\n0\t1\r\n1\t2\r\n", "3: 1<0 2<1"},
	    {"3,2\n0,1\n1,2", "3: 1<0 2<1"},
	    {"# made by hand\n\n3 2\n% more\n0 1\n1 2\n", "3: 1<0 2<1"},
	    {"3 4\n1 2\n2 3\n3 1\n1 3\n", "3: 1<3 2<1 3<1 3<2"}, /* ids begin at 1 */
	    {"3 2\n0 1 0.5\n1 2 2\n", "3: 1<0=0.5 2<1=2"}, /* a header of two columns, edges of three */
	    {"3 3 2\n0 1\n1 2\n", "3: 1<0 2<1"},           /* a header of three columns, edges of two */
	    {"3 3 2\n0 1 0.5\n1 2 2\n", "3: 1<0=0.5 2<1=2"}, /* rows, columns, entries */
	    {"5 2\n0 1 3\n1 2 4\n", "5: 1<0=3 2<1=4"},       /* nodes without an edge */
	    {"2 3\n0 1 3\n1 2 4\n", "3: 1<0=3 2<1=4"},       /* edges first, then nodes */
	    {"3 5\n0 1\n1 2\n2 0\n0 2\n1 0\n", "3: 0<1 0<2 1<0 2<0 2<1"},
	};
	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
		const char *path = file_of("good.txt", good[k].text),
		           *found = read_as(HG_HEADER_AUTO, path);
		CHECK_MSG(strcmp(found, good[k].expected) == 0, "case %d: \"%s\", expected \"%s\"", (int)k,
		          found, good[k].expected);
		CHECK_CONTAINS(noted, "is read as a header, not as an edge");
		CHECK_STR(read_as(HG_HEADER_YES, path), good[k].expected);
	}
}

static void edges_are_not_taken_for_counts(void)
{
	static const struct {
		const char *text, *expected;
	} good[] = {
	    {"0 1\n1 2\n", "3: 1<0 2<1"},
	    {"1 0\n", "2: 0<1"},
	    {"0 0\n", "1: 0<0"},
	    {"2 3\n3 1\n1 2\n",
	     "3: 1<3 2<1 3<2"}, /* a triangle, although it could be "2 edges, 3 nodes" */
	    {"9 9\n0 1\n1 2\n", "4: 1<0 2<1 9<9"},
	    {"1 2 2\n0 1 1\n1 2 1\n", "3: 1<0=1 2<1=3"},
	};
	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
		const char *path = file_of("edge.txt", good[k].text),
		           *found = read_as(HG_HEADER_AUTO, path);
		CHECK_MSG(strcmp(found, good[k].expected) == 0, "case %d: \"%s\", expected \"%s\"", (int)k,
		          found, good[k].expected);
		CHECK_MSG(!strstr(noted, "header"), "case %d: %s", (int)k, noted);
		CHECK_STR(read_as(HG_HEADER_NO, path), good[k].expected);
	}
}

/* Both readings make sense. The importer names both and chooses none. */
static void ambiguous_lines_are_refused(void)
{
	static const struct {
		const char *text, *part, *as_header, *as_edge;
	} either[] = {
	    {"4 3\n3 2\n2 1\n1 4\n",
	     "4 nodes and 3 edges, which fits what follows) or an edge from node 4 to node 3",
	     "4: 1<2 2<3 4<1", "4: 1<2 2<3 3<4 4<1"},
	    {"5 2\n0 1\n1 2\n", "5 nodes and 2 edges", "5: 1<0 2<1", "4: 1<0 2<1 2<5"},
	    {"2 3\n0 1\n1 2\n", "3 nodes and 2 edges", "3: 1<0 2<1", "4: 1<0 2<1 3<2"},
	    {"3 2\n0 1\n1 0\n1 2\n2 1\n", "3 nodes and 2 edges", "3: 0<1 1<0 1<2 2<1",
	     "4: 0<1 1<0 1<2 2<1 2<3"},
	};
	for (size_t k = 0; k < sizeof either / sizeof either[0]; k++) {
		const char *path = file_of("either.txt", either[k].text);
		CHECK_CONTAINS(read_as(HG_HEADER_AUTO, path), either[k].part);
		CHECK_CONTAINS(read_as(HG_HEADER_AUTO, path), "--header yes or --header no");
		CHECK_STR(read_as(HG_HEADER_YES, path), either[k].as_header);
		CHECK_STR(read_as(HG_HEADER_NO, path), either[k].as_edge);
	}
}

static void header_must_fit_the_edges(void)
{
	CHECK_CONTAINS(read_as(HG_HEADER_YES, file_of("short.txt", "3 5\n0 1\n1 2\n")),
	               "short.txt:1: the header \"3 5\" does not count what follows: 2 edges");
	CHECK_CONTAINS(read_as(HG_HEADER_YES, file_of("ids.txt", "3 2\n0 1\n1 7\n")), "does not count");
	CHECK_CONTAINS(read_as(HG_HEADER_YES, file_of("vast.txt", "2000000000 1\n0 1\n")),
	               "not a graph");
	CHECK_STR(read_as(HG_HEADER_YES, file_of("words.txt", "from to\n0 1\n")), "2: 1<0");
	CHECK_CONTAINS(noted, "\"from to\" is skipped as a header");
	CHECK_STR(read_as(HG_HEADER_YES, file_of("one.txt", "17\n0 1\n")), "2: 1<0");
	CHECK_STR(read_as(HG_HEADER_YES, file_of("none.txt", "3 0\n")), "3:");
	CHECK_STR(read_as(HG_HEADER_YES, file_of("nothing.txt", "# nothing\n")), "0:");
}

static void every_file_may_have_a_header(void)
{
	char first[256], message[HG_DATA_MESSAGE] = "";
	const char *paths[2] = {first, scratch(1, "second.txt")};
	hg_dataset *d = NULL;
	snprintf(first, sizeof first, "%s",
	         file_of("first.txt", "4 5\n0 1 1\n1 2 1\n2 3 1\n3 0 1\n1 0 1\n"));
	write_text(paths[1], "3 4\n0 2 2\n2 1 2\n1 0 2\n0 1 2\n");
	CHECK_OK(import_with(HG_HEADER_AUTO, paths, 2, &d, message));
	CHECK(d->nodes == 4 && d->edges == 7);
	CHECK_CONTAINS(noted, "first.txt:1: \"4 5\" is read as a header");
	CHECK_CONTAINS(noted, "second.txt:1: \"3 4\" is read as a header");
	CHECK_CONTAINS(noted,
	               "2 of 9 edges repeat an earlier edge and were merged with it: weights add up");
	hg_dataset_free(d);
}

/* Random lists. With a header in front, AUTO reads the same as NO without it, or refuses the file.
 * Without a header it does what NO does, or refuses; the longer the list, the less often it
 * refuses. */
static void random_lists_are_read_or_refused(void)
{
	int refused = 0, misread = 0, found = 0;
	for (int k = 0; k < 3000; k++) {
		char text[2048], expected[1024];
		const int n = 2 + (int)test_below(8), m = 1 + (int)test_below(20),
		          from = (int)test_below(2);
		size_t used = (size_t)snprintf(text, sizeof text, "%3d %3d\n", n, m);
		const size_t head = used;
		unsigned seen = 0;
		for (int e = 0; e < m; e++) {
			const int a = (int)test_below(n), b = (int)test_below(n);
			seen |= 1u << a | 1u << b;
			used +=
			    (size_t)snprintf(text + used, sizeof text - used, "%d %d\n", a + from, b + from);
		}
		if (seen != (1u << n) - 1)
			continue; /* some nodes have no edge, which NO cannot know */
		snprintf(expected, sizeof expected, "%s",
		         read_as(HG_HEADER_NO, file_of("no.txt", text + head)));
		const char *with = read_as(HG_HEADER_AUTO, file_of("with.txt", text));
		if (strncmp(with, "refused", 7) != 0)
			CHECK_MSG(strcmp(with, expected) == 0, "\"%s\" of\n%s", with, text);
		found += strcmp(with, expected) == 0;
		if (m > n)
			CHECK_MSG(strcmp(with, expected) == 0, "\"%s\" of\n%s", with, text);
		const char *without = read_as(HG_HEADER_AUTO, file_of("without.txt", text + head));
		refused += strncmp(without, "refused", 7) == 0;
		misread += strncmp(without, "refused", 7) != 0 && strcmp(without, expected) != 0;
	}
	test_note("%d headers found; without one %d lists refused and %d misread", found, refused,
	          misread);
	CHECK(found > 500 && misread <= 5 && refused < 100);
}

static void h5convert_has_the_option(void)
{
	write_text(scratch(0, "head.txt"), "3 2\n0 1\n1 2\n");
	CHECK_EQ_I(run_convert("@/head.txt -o @/head.h5"), 0);
	CHECK_CONTAINS(convert_err, "h5convert: ");
	CHECK_CONTAINS(convert_err,
	               "head.txt:1: \"3 2\" is read as a header, not as an edge: 3 nodes and 2 edges");
	CHECK_CONTAINS(convert_out, "3 nodes, 2 edges");
	CHECK_EQ_I(run_convert("--quiet @/head.txt -o @/head.h5"), 0);
	CHECK_STR(convert_err, "");
	CHECK_EQ_I(run_convert("@/head.txt --header no -o @/head.h5"), 0);
	CHECK_CONTAINS(convert_out, "4 nodes, 3 edges");
	write_text(scratch(0, "either.txt"), "5 2\n0 1\n1 2\n");
	CHECK_EQ_I(run_convert("@/either.txt -o @/head.h5"), 2);
	CHECK_CONTAINS(convert_err, "--header yes");
	CHECK_EQ_I(run_convert("@/either.txt --header=yes -o @/head.h5"), 0);
	CHECK_CONTAINS(convert_out, "5 nodes, 2 edges");
	CHECK_EQ_I(run_convert("--header maybe @/head.txt -o @/head.h5"), 2);
	CHECK_CONTAINS(convert_err, "--header is \"maybe\", expected one of auto|yes|no");
	CHECK_EQ_I(run_convert("--header yes @/head.h5 -o @/other.h5"), 2);
	CHECK_CONTAINS(convert_err, "--header is for edge lists");
	CHECK_EQ_I(run_convert("--header yes --from mtx @/head.h5 -o @/other.h5"), 2);
	CHECK_CONTAINS(convert_err, "--header is for edge lists");
}

static void bad_configurations_are_refused(void)
{
	const char *path = file_of("fine.txt", "0 1\n");
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	size_t formats = 0;
	const hg_importer *table = hg_importers(&formats);
	for (size_t k = 0; k < formats; k++) {
		config.size = 0;
		config.header = HG_HEADER_AUTO;
		CHECK_EQ_I(table[k].import(&path, 1, &config, &d, message), HG_ERR_ARG);
		CHECK_CONTAINS(message, "config.size is not set");
		config.size = sizeof config;
		config.header = (hg_header)3;
		CHECK_EQ_I(table[k].import(&path, 1, &config, &d, message), HG_ERR_ARG);
		CHECK_CONTAINS(message, "config.header is 3");
		CHECK(d == NULL);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(counts_are_not_taken_for_an_edge), TEST(edges_are_not_taken_for_counts),
	    TEST(ambiguous_lines_are_refused),      TEST(header_must_fit_the_edges),
	    TEST(every_file_may_have_a_header),     TEST(random_lists_are_read_or_refused),
	    TEST(h5convert_has_the_option),         TEST(bad_configurations_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
