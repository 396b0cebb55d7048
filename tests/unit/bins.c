/* Bins (core/bins.h): how a batch of small graphs is cut, and the order in which it fills them. */
#include <stdlib.h>
#include <string.h>

#include "core/bins.h"
#include "harness.h"

enum { GRAPHS = 8, MOST_ROWS = 2048, MOST_BINS = 96 };

/* Where graphs and rows of padding begin, and whether those that begin there are large. */
struct begins {
	char here[MOST_ROWS + 2], large[MOST_ROWS + 2];
};
static struct begins begins_of(const int64_t *ptr, int64_t rows)
{
	struct begins b = {{0}, {0}};
	for (int64_t i = ptr[GRAPHS]; i <= rows + 1; i++)
		b.here[i] = 1;
	for (int k = 0; k < GRAPHS; k++) {
		b.here[ptr[k]] = 1;
		b.large[ptr[k]] |= ptr[k + 1] - ptr[k] > HG__BIN_ROWS;
	}
	return b;
}

/* Bins have all nodes in order, whole graphs of at most HG__BIN_ROWS nodes together, or of at most
 * HG__LARGE_BIN_ROWS if they begin with a large one, and none has room for the first graph of the
 * next. Padding joins no large bin. */
static void bins_hold_whole_graphs(void)
{
	static const int64_t sizes[][GRAPHS] = {
	    {48, 1, 47, 1, 48, 0, 0, 0},         {0, 0, 0, 0, 0, 0, 0, 0},
	    {10, 20, 30, 40, 8, 1, 0, 5},        {1, 1, 1, 1, 1, 1, 1, 1},
	    {24, 24, 24, 24, 25, 23, 24, 1},     {49, 0, 49, 48, 0, 1, 384, 49},
	    {384, 1, 384, 0, 1, 200, 184, 1},    {49, 1, 49, 1, 49, 1, 49, 1},
	    {100, 100, 100, 84, 49, 0, 48, 300}, {1, 383, 1, 100, 285, 100, 284, 49}};
	for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++)
		for (int64_t padding = 0; padding < 120; padding += 17) {
			int64_t ptr[GRAPHS + 1] = {0};
			int32_t first[MOST_BINS];
			for (int k = 0; k < GRAPHS; k++)
				ptr[k + 1] = ptr[k] + sizes[c][k];
			const int64_t rows = ptr[GRAPHS] + padding, most = hg__bins_most(rows);
			CHECK(most + 2 <= MOST_BINS && rows < MOST_ROWS);
			const struct begins begins = begins_of(ptr, rows);
			const int64_t used = hg__bins_cut(GRAPHS, ptr, rows, most, first);
			int64_t large_bins = 0;
			CHECK(first[0] == 0 && first[most + 1] == used && used <= most);
			CHECK_EQ_I(first[most], rows);
			for (int64_t k = 0; k < most; k++) {
				const int large = first[k + 1] > first[k] && begins.large[first[k]];
				CHECK(first[k + 1] >= first[k] &&
				      first[k + 1] - first[k] <= (large ? HG__LARGE_BIN_ROWS : HG__BIN_ROWS));
				CHECK((first[k + 1] > first[k]) == (k < used) && begins.here[first[k]]);
				CHECK(hg__bin_is_large(first[k + 1] - first[k]) == large);
				for (int64_t i = first[k]; i < first[k + 1]; i++)
					CHECK(large || !begins.here[i] || !begins.large[i]);
				large_bins += large;
			}
			CHECK(large_bins <= hg__bins_most_large(rows));
			for (int64_t k = 0; k + 1 < used; k++) {
				const int large = begins.large[first[k]];
				int64_t end = first[k + 1] + 1;
				while (!begins.here[end])
					end++;
				const int is_padding = first[k + 1] >= ptr[GRAPHS];
				CHECK(begins.large[first[k + 1]] > large || (large && is_padding) ||
				      end - first[k] > (large ? HG__LARGE_BIN_ROWS : HG__BIN_ROWS));
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
	double filled; /* the share of the rows of all bins, large ones as such, that have nodes is at
	                  least this */
};

struct packing {
	int64_t ptr[MOST_GRAPHS + 1], order[MOST_GRAPHS], packed[MOST_GRAPHS], scratch[MOST_GRAPHS];
	uint16_t nodes[MOST_GRAPHS];
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
		p->nodes[k] = (uint16_t)n;
		p->order[k] = k;
	}
	for (int64_t k = s->graphs - 1; k > 0; k--) {
		const int64_t j = test_below(k + 1), aside = p->order[k];
		p->order[k] = p->order[j];
		p->order[j] = aside;
	}
}

/* The rows of all bins of graphs in this order. */
static int64_t rows_of_bins(const struct packing *p, const int64_t *order, int64_t graphs)
{
	int64_t rows = 0;
	static int64_t ptr[MOST_GRAPHS + 1];
	static int32_t first[2 * MOST_GRAPHS + 4];
	for (int64_t k = 0; k < graphs; k++)
		ptr[k + 1] = ptr[k] + size_of(p, order[k]);
	const int64_t most = hg__bins_most(ptr[graphs]);
	CHECK(most + 2 <= (int64_t)(sizeof first / sizeof *first));
	const int64_t bins = hg__bins_cut(graphs, ptr, ptr[graphs], most, first);
	for (int64_t k = 0; k < bins; k++)
		rows += hg__bin_is_large(first[k + 1] - first[k]) ? HG__LARGE_BIN_ROWS : HG__BIN_ROWS;
	return rows;
}

/* All graphs are there once, and those of one size in the order that they had. */
static void check_order(const struct packing *p, int64_t graphs)
{
	static int64_t place[MOST_GRAPHS];
	int64_t before[HG__LARGE_BIN_ROWS + 1], seen = 0;
	for (int64_t k = 0; k < graphs; k++)
		place[p->order[k]] = k;
	for (int s = 0; s <= HG__LARGE_BIN_ROWS; s++)
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
	    {"as NCI1, some large", 4096, 3, 111, 29.9, 13.5, 0.90},
	    {"as ENZYMES, some large", 600, 2, 126, 32.6, 15.0, 0.86},
	    {"large and small ones", 1000, 1, 384, 100.0, 80.0, 0.93},
	    {"full large ones", 50, 384, 384, 384.0, 0.0, 1.0},
	    {"just large ones", 100, 49, 49, 49.0, 0.0, 0.84},
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
		const int64_t rows_packed = rows_of_bins(&p, p.packed, s->graphs),
		              random = rows_of_bins(&p, p.order, s->graphs), nodes = p.ptr[s->graphs];
		const double filled = nodes ? (double)nodes / (double)rows_packed : 0.0;
		test_note("%s: %lld graphs in bins of %lld rows, %.1f %% full; in random order %lld",
		          s->what, (long long)s->graphs, (long long)rows_packed, 100.0 * filled,
		          (long long)random);
		CHECK_MSG(filled >= s->filled, "%s: %.3f", s->what, filled);
		CHECK(rows_packed <= random);
	}
}

/* A batch with a graph that fits in no bin has no bins, so there is nothing to pack. */
static void a_graph_that_fits_in_no_bin_changes_no_order(void)
{
	static const int64_t largest[] = {HG__LARGE_BIN_ROWS, HG__LARGE_BIN_ROWS + 1, 620, UINT16_MAX};
	for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
		const uint16_t nodes[] = {20, 48, (uint16_t)largest[i], 1};
		const int64_t ptr[] = {0, 20, 68, 68 + largest[i], 69 + largest[i]};
		int64_t order[] = {0, 1, 2, 3}, scratch[4];
		const int fits = largest[i] <= HG__LARGE_BIN_ROWS;
		hg__bins_pack(nodes, 4, order, scratch);
		CHECK_EQ_I(order[0], fits ? 2 : 0);
		CHECK_EQ_I(order[2], fits ? 0 : 2);
		CHECK_EQ_I(order[1] + order[3], 4);
		CHECK_EQ_I(hg__bins_rows_of(4, ptr), fits ? HG__LARGE_BIN_ROWS : 0);
		CHECK_EQ_I(hg__bins_rows_of(2, ptr), HG__BIN_ROWS);
		CHECK_EQ_I(hg__bins_rows_of(0, ptr), HG__BIN_ROWS);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(bins_hold_whole_graphs),
	    TEST(packed_graphs_fill_their_bins),
	    TEST(a_graph_that_fits_in_no_bin_changes_no_order),
	};
	return RUN_TESTS(argc, argv, cases);
}
