/* Bins (core/bins.h): how a batch of small graphs is cut, and the order in which it fills them. */
#include <stdlib.h>
#include <string.h>

#include "core/bins.h"
#include "harness.h"

/* Bins have all nodes in order, whole graphs of at most HG__BIN_ROWS nodes together, and none has
 * room for the first graph of the next. */
static void bins_hold_whole_graphs(void)
{
	static const int64_t sizes[][8] = {{48, 1, 47, 1, 48, 0, 0, 0},
	                                   {0, 0, 0, 0, 0, 0, 0, 0},
	                                   {10, 20, 30, 40, 8, 1, 0, 5},
	                                   {1, 1, 1, 1, 1, 1, 1, 1},
	                                   {24, 24, 24, 24, 25, 23, 24, 1}};
	for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++)
		for (int64_t padding = 0; padding < 120; padding += 17) {
			int64_t ptr[9] = {0};
			int32_t first[64], begins[1024] = {0};
			for (int k = 0; k < 8; k++)
				ptr[k + 1] = ptr[k] + sizes[c][k];
			const int64_t rows = ptr[8] + padding, most = hg__bins_most(rows);
			CHECK(most + 2 <= 64 && rows < 1024);
			for (int64_t i = ptr[8]; i <= rows; i++)
				begins[i] = 1;
			for (int k = 0; k < 8; k++)
				begins[ptr[k]] = 1;
			const int64_t used = hg__bins_cut(8, ptr, rows, most, first);
			CHECK(first[0] == 0 && first[most + 1] == used && used <= most);
			for (int64_t k = 0; k < most; k++) {
				CHECK(first[k + 1] >= first[k] && first[k + 1] - first[k] <= HG__BIN_ROWS);
				CHECK((first[k + 1] > first[k]) == (k < used) && begins[first[k]]);
			}
			CHECK_EQ_I(first[most], rows);
			for (int64_t k = 0; k + 1 < used; k++) {
				int64_t end = first[k + 1] + 1;
				while (!begins[end])
					end++;
				CHECK(end - first[k] > HG__BIN_ROWS);
			}
		}
}

/* ---- packing ---- */

enum { MOST_GRAPHS = 4096 };

/* Numbers of nodes around a mean, between two limits. */
struct sizes {
	const char *what;
	int64_t graphs, least, most;
	double mean, deviation;
	double filled; /* the share of the rows of all bins that have nodes is at least this */
};

struct packing {
	int64_t ptr[MOST_GRAPHS + 1], order[MOST_GRAPHS], packed[MOST_GRAPHS], scratch[MOST_GRAPHS];
	uint8_t nodes[MOST_GRAPHS];
};

static int64_t size_of(const struct packing *p, int64_t graph)
{
	return p->ptr[graph + 1] - p->ptr[graph];
}

static void draw(const struct sizes *s, struct packing *p)
{
	p->ptr[0] = 0;
	for (int64_t k = 0; k < s->graphs; k++) {
		const double drawn = s->mean + s->deviation * test_normal();
		const int64_t n = drawn < (double)s->least  ? s->least
		                  : drawn > (double)s->most ? s->most
		                                            : (int64_t)(drawn + 0.5);
		p->ptr[k + 1] = p->ptr[k] + n;
		p->nodes[k] = (uint8_t)n;
		p->order[k] = k;
	}
	for (int64_t k = s->graphs - 1; k > 0; k--) {
		const int64_t j = test_below(k + 1), aside = p->order[k];
		p->order[k] = p->order[j];
		p->order[j] = aside;
	}
}

/* The bins of graphs in this order. */
static int64_t bins_of(const struct packing *p, const int64_t *order, int64_t graphs)
{
	static int64_t ptr[MOST_GRAPHS + 1];
	static int32_t first[2 * MOST_GRAPHS + 4];
	for (int64_t k = 0; k < graphs; k++)
		ptr[k + 1] = ptr[k] + size_of(p, order[k]);
	const int64_t most = hg__bins_most(ptr[graphs]);
	CHECK(most + 2 <= (int64_t)(sizeof first / sizeof *first));
	return hg__bins_cut(graphs, ptr, ptr[graphs], most, first);
}

/* All graphs are there once, and those of one size in the order that they had. */
static void check_order(const struct packing *p, int64_t graphs)
{
	static int64_t place[MOST_GRAPHS];
	int64_t before[HG__BIN_ROWS + 1], seen = 0;
	for (int64_t k = 0; k < graphs; k++)
		place[p->order[k]] = k;
	for (int s = 0; s <= HG__BIN_ROWS; s++)
		before[s] = -1;
	for (int64_t k = 0; k < graphs; k++) {
		const int64_t g = p->packed[k];
		CHECK(g >= 0 && g < graphs && place[g] > before[size_of(p, g)]);
		before[size_of(p, g)] = place[g];
		seen++;
	}
	CHECK_EQ_I(seen, graphs);
}

static void packed_graphs_fill_their_bins(void)
{
	static const struct sizes rows[] = {
	    {"as ZINC", 1024, 9, 38, 23.2, 4.5, 0.97},
	    {"as ZINC, few", 128, 9, 38, 23.2, 4.5, 0.94},
	    {"as QM9 with hydrogen", 4096, 3, 29, 18.0, 3.0, 0.86},
	    {"of any size", 4096, 0, 48, 20.0, 15.0, 0.99},
	    {"of 18 nodes: two fit in a bin", 4096, 18, 18, 18.0, 0.0, 0.75},
	    {"of 25 nodes: one does", 100, 25, 25, 25.0, 0.0, 0.52},
	    {"of 16 nodes", 300, 16, 16, 16.0, 0.0, 1.0},
	    {"full ones", 50, 48, 48, 48.0, 0.0, 1.0},
	    {"of one node", 500, 1, 1, 1.0, 0.0, 0.94},
	    {"empty ones", 20, 0, 0, 0.0, 0.0, 0.0},
	    {"one", 1, 7, 7, 7.0, 0.0, 0.14},
	    {"none", 0, 1, 1, 1.0, 0.0, 0.0},
	};
	static struct packing p;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct sizes *s = &rows[i];
		draw(s, &p);
		memcpy(p.packed, p.order, sizeof p.order);
		hg__bins_pack(p.nodes, s->graphs, p.packed, p.scratch);
		check_order(&p, s->graphs);
		const int64_t bins = bins_of(&p, p.packed, s->graphs),
		              random = bins_of(&p, p.order, s->graphs), nodes = p.ptr[s->graphs];
		const double filled = nodes ? (double)nodes / (double)(HG__BIN_ROWS * bins) : 0.0;
		test_note("%s: %lld graphs in %lld bins, %.1f %% full; in random order %lld", s->what,
		          (long long)s->graphs, (long long)bins, 100.0 * filled, (long long)random);
		CHECK_MSG(filled >= s->filled, "%s: %.3f", s->what, filled);
		CHECK(bins <= random);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(bins_hold_whole_graphs),
	    TEST(packed_graphs_fill_their_bins),
	};
	return RUN_TESTS(argc, argv, cases);
}
