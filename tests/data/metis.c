/* METIS's graphs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const char *file_of(const char *text)
{
	write_text(scratch(0, "toy.graph"), text);
	return scratch(0, "toy.graph");
}

/* A triangle with a tail, and a node without neighbours. */
static void every_format_is_read(void)
{
	static const int64_t rowptr[] = {0, 2, 4, 7, 8, 8};
	static const int32_t col[] = {1, 2, 0, 2, 0, 1, 3, 2};
	static const float weight[] = {1, 2, 1, 3, 2, 3, 4.5f, 4.5f};
	static const struct {
		const char *text;
		int weighted;
	} good[] = {
	    {"5 4\n2 3\n1 3\n1 2 4\n3\n\n", 0},
	    {"% a comment\n\n5 4 0\r\n% another\n3 2\r\n1 3\r\n1 2\t4\r\n3\r\n\r\n\n\n% end\n", 0},
	    {"5 4 000\n2 3\n1 3\n1 2 4\n3\n\n", 0},
	    {"5 4 001\n2 1 3 2\n1 1 3 3\n1 2 2 3 4 4.5\n3 4.5\n\n", 1},
	    {"5 4 1\n2 1 3 2\n1 1 3 3\n1 2 2 3 4 4.5\n3 4.5\n\n", 1},
	    {"5 4 10\n9 2 3\n9 1 3\n9 1 2 4\n9 3\n9\n", 0},
	    {"5 4 010 2\n9 8 2 3\n9 8 1 3\n9 8 1 2 4\n9 8 3\n9 8\n", 0},
	    {"5 4 111 2\n7 9 8 2 1 3 2\n7 9 8 1 1 3 3\n7 9 8 1 2 2 3 4 4.5\n7 9 8 3 4.5\n7 9 8\n", 1},
	    {"5 4 100\n7 2 3\n7 1 3\n7 1 2 4\n7 3\n7", 0},
	    {"5 8\n2 3\n1 3\n1 2 4\n3\n\n", 0},
	};
	for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
		hg_dataset *d = must_import("metis", file_of(good[k].text));
		CHECK(d->nodes == 5 && d->edges == 8 && memcmp(d->rowptr, rowptr, sizeof rowptr) == 0 &&
		      memcmp(d->col, col, sizeof col) == 0);
		CHECK((d->weight != NULL) == good[k].weighted);
		CHECK(!d->weight || memcmp(d->weight, weight, sizeof weight) == 0);
		hg_dataset_free(d);
	}
	hg_dataset *d = must_import("metis", file_of("0 0\n"));
	CHECK(d->nodes == 0 && d->edges == 0);
	hg_dataset_free(d);
	CHECK_EQ_I(run_convert("@/toy.graph -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "toy.graph: read as metis");
	(void)file_of(good[8].text);
	CHECK_EQ_I(run_convert("@/toy.graph -o @/toy.h5"), 0);
	CHECK_CONTAINS(convert_err, "toy.graph: sizes and weights of the nodes are not read");
}

/* The line of a hub is longer than the lines of other formats. */
static void hubs_are_read(void)
{
	enum { LEAVES = 60000 };
	const size_t room = (size_t)LEAVES * 10 + 100;
	char *text = malloc(room);
	CHECK(text != NULL);
	size_t used = (size_t)snprintf(text, room, "%d %d\n", LEAVES + 1, LEAVES);
	for (int i = 2; i <= LEAVES + 1; i++)
		used += (size_t)snprintf(text + used, room - used, "%d ", i);
	for (int i = 0; i < LEAVES; i++)
		used += (size_t)snprintf(text + used, room - used, "\n1");
	CHECK(used < room);
	hg_dataset *d = must_import("metis", file_of(text));
	CHECK(d->nodes == LEAVES + 1 && d->rowptr[1] == LEAVES && d->edges == 2 * LEAVES);
	hg_dataset_free(d);
	free(text);
}

static void bad_graphs_are_refused(void)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
	    {"", "toy.graph: is empty: 0 bytes"},
	    {"% nothing\n", "toy.graph: ends before its header"},
	    {"x\n", "toy.graph:1: expected \"nodes edges [fmt [weights]]\", found \"x\""},
	    {"2\n", "toy.graph:1: expected \"nodes edges"},
	    {"2 1 0 1 1\n", "toy.graph:1: expected \"nodes edges"},
	    {"-2 1\n", "toy.graph:1: expected \"nodes edges"},
	    {"2 1 2\n", "toy.graph:1: expected fmt to be three digits 0 or 1, found \"2 1 2\""},
	    {"2 1 1111\n", "toy.graph:1: expected fmt to be three digits"},
	    {"2147483648 1\n", "toy.graph:1: expected at most 2147483647 nodes"},
	    {"99999999999999999999 1\n", "toy.graph:1: expected numbers of at most"},
	    {"2147483647 1\n2\n1\n", "toy.graph: ends after 2 nodes, 2147483647 are declared"},
	    {"2 1\n2\n", "toy.graph: ends after 1 nodes, 2 are declared"},
	    {"2 1\n2\n1\n1\n", "toy.graph:4: a line after the 2 declared nodes"},
	    {"2 1\n3\n1\n", "toy.graph:2: neighbour 3 of node 1, expected another of the nodes 1 .. 2"},
	    {"2 1\n0\n1\n", "toy.graph:2: neighbour 0 of node 1"},
	    {"2 1\n1\n1\n", "toy.graph:2: neighbour 1 of node 1, expected another"},
	    {"2 1\n2 x\n1\n", "toy.graph:2: expected the numbers of neighbours, found \"2 x\""},
	    {"2 1\n2.5\n1\n", "toy.graph:2: expected the numbers of neighbours"},
	    {"2 1 1\n2\n1 1\n", "toy.graph:2: expected neighbours and weights in turn"},
	    {"2 1 1\n2 nan\n1 1\n", "toy.graph:2: expected neighbours and weights in turn"},
	    {"2 1 10\n\n1 1\n", "toy.graph:2: expected the size and weights of the node first"},
	    {"2 1\n2 2\n1 1\n", "toy.graph: 2 neighbours are listed twice by the same node"},
	    {"2 1\n2\n\n", "toy.graph: node 1 lists node 2, expected the reverse as well"},
	    {"2 3\n2\n1\n", "toy.graph: 3 edges are declared, expected 1"},
	};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
		must_refuse("metis", file_of(bad[k].text), HG_ERR_FORMAT, bad[k].part);
	must_refuse("metis", scratch(0, "absent.graph"), HG_ERR_IO, "No such file or directory");
	must_refuse("metis", test_path("."), HG_ERR_IO, "is a directory");
	CHECK_EQ_I(run_convert("@/toy.graph -o @/never.h5"), 2);
	CHECK_EQ_I(count_scratch("never.h5"), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(every_format_is_read), TEST(hubs_are_read),
	                                         TEST(bad_graphs_are_refused)};
	return RUN_TESTS(argc, argv, cases);
}
