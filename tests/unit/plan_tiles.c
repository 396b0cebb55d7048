/* Tiles, compared with what their description in core/plan_tiles.h says, computed by brute
 * force. */
#include "core/plan_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "unit/faulty.h"

enum { ROWS = HG__TILE_ROWS, COLUMNS = HG__TILE_COLUMNS };

/* ---- windows cut into items: host code, the same for every device ---- */

struct cover {
	int64_t windows;
	const struct hg__tile_cut *cut;
	int64_t *groups;      /* how many groups of each window are in items */
	int64_t *slot_window; /* the window of each slot; -1: no item has used the slot yet */
};

static void check_item(struct cover *c, const struct hg__tile_item *item)
{
	const int64_t all = c->cut->first[item->window + 1] - c->cut->first[item->window];
	CHECK(item->window >= 0 && item->window < c->windows && item->groups <= c->cut->length * 3 / 2);
	CHECK(item->group >= c->cut->first[item->window] &&
	      item->group + item->groups <= c->cut->first[item->window + 1]);
	c->groups[item->window] += item->groups;
	if (item->slot < 0) {
		CHECK_EQ_I(item->groups, all);
		return;
	}
	CHECK(all > c->cut->length * 3 / 2 && item->slot < c->cut->slots &&
	      c->slot_window[item->slot] < 0);
	c->slot_window[item->slot] = item->window;
}

/* The slots of the parts of one window are consecutive, in the order of the parts. */
static void check_splits(const struct cover *c)
{
	int64_t next = 0;
	for (int64_t s = 0; s < c->cut->splits; s++) {
		const struct hg__tile_split *split = &c->cut->split[s];
		CHECK(split->first == next && split->last > split->first + 1);
		for (next = split->first; next < split->last; next++)
			CHECK_EQ_I(c->slot_window[next], split->window);
	}
	CHECK_EQ_I(next, c->cut->slots);
}

static void check_cut(hg_context *ctx, int64_t windows, const int32_t *listed)
{
	struct hg__tile_cut cut;
	CHECK_OK(hg__tiles_cut(ctx, windows, listed, &cut));
	struct cover c = {windows, &cut, calloc((size_t)windows + 1, sizeof(int64_t)),
	                  malloc(((size_t)cut.slots + 1) * sizeof(int64_t))};
	int64_t *seen = calloc((size_t)cut.groups + 1, sizeof *seen), whole = 0;
	CHECK(c.groups && c.slot_window && seen);
	memset(c.slot_window, 0xFF, ((size_t)cut.slots + 1) * sizeof(int64_t));
	for (int64_t i = 0; i < cut.items; i++) {
		check_item(&c, &cut.item[i]);
		CHECK(i == 0 || cut.item[i].groups <= cut.item[i - 1].groups);
		for (int64_t g = cut.item[i].group; g < cut.item[i].group + cut.item[i].groups; g++)
			CHECK_EQ_I(seen[g]++, 0); /* no group is in two items */
		whole += cut.item[i].slot < 0;
	}
	for (int64_t w = 0; w < windows; w++) {
		CHECK_EQ_I(cut.first[w + 1] - cut.first[w], (listed[w] + COLUMNS - 1) / COLUMNS);
		CHECK_EQ_I(c.groups[w], cut.first[w + 1] - cut.first[w]);
	}
	CHECK_EQ_I(cut.first[windows], cut.groups);
	CHECK_EQ_I(whole + cut.splits, windows);
	check_splits(&c);
	free(seen);
	free(c.groups);
	free(c.slot_window);
	hg__tiles_cut_free(ctx, &cut);
}

static void empty_windows_are_cut(void)
{
	hg_context *ctx = test_context();
	const int32_t none[1] = {0};
	check_cut(ctx, 0, none);
	check_cut(ctx, 1, none);
	hg_context_free(ctx);
}

static void windows_of_every_length_are_cut(void)
{
	hg_context *ctx = test_context();
	for (int32_t n = 1; n < 700 * COLUMNS; n += n < 40 ? 1 : 37) {
		const int32_t listed[] = {0, n, 5, 0, n + 1};
		check_cut(ctx, 5, listed);
	}
	hg_context_free(ctx);
}

static void many_windows_are_cut_into_longer_items(void)
{
	enum { WINDOWS = 30000 };
	hg_context *ctx = test_context();
	int32_t *listed = calloc(WINDOWS, sizeof *listed);
	struct hg__tile_cut cut;
	CHECK(listed);
	for (int64_t w = 0; w < WINDOWS; w++)
		listed[w] = (int32_t)test_below(w % 1000 == 0 ? 40000 : 400 * COLUMNS);
	check_cut(ctx, WINDOWS, listed);
	CHECK_OK(hg__tiles_cut(ctx, WINDOWS, listed, &cut));
	CHECK(cut.length > HG__TILE_GROUPS && cut.length == cut.groups / HG__TILE_ITEMS);
	hg__tiles_cut_free(ctx, &cut);
	free(listed);
	hg_context_free(ctx);
}

/* ---- what the device builds ---- */

static void add_times(struct coo *list, int64_t i, int64_t j, int64_t times)
{
	for (int64_t k = 0; k < times; k++)
		coo_add(list, i, j);
}

/* A hub, empty windows, columns that several rows of a window share, and entries that are repeated
 * up to 20 times. */
static struct coo uneven_rows(int64_t rows, int64_t cols)
{
	struct coo list = coo_empty(rows, cols);
	for (int64_t j = 0; j < cols; j++)
		coo_add(&list, rows / 2, j);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; i / ROWS % 5 != 3 && k < test_below(12); k++) {
			const int64_t j = (i / ROWS * 7 + test_below(k % 2 ? cols : 9)) % cols;
			add_times(&list, i, j, test_below(9) ? 1 : test_below(20) + 1);
		}
	return list;
}

/* Lists the columns of one window in order, with their masks, from the sorted entries of its rows.
 * Returns how many there are. */
static int64_t expected_window(const struct host_csr *g, int64_t window, int32_t *id,
                               uint32_t *mask)
{
	int64_t listed = 0, (*times)[ROWS] = calloc((size_t)g->cols, sizeof *times);
	CHECK(times);
	for (int64_t r = 0; r < ROWS && window * ROWS + r < g->rows; r++)
		for (int64_t e = g->rowptr[window * ROWS + r]; e < g->rowptr[window * ROWS + r + 1]; e++)
			times[g->col[e]][r]++;
	for (int64_t j = 0; j < g->cols; j++)
		for (int more = 1; more;) {
			uint32_t bits = 0;
			for (int r = 0; r < ROWS; r++) {
				const int64_t now = times[j][r] < HG__TILE_MOST ? times[j][r] : HG__TILE_MOST;
				times[j][r] -= now;
				bits |= (uint32_t)now << 2 * r;
			}
			more = bits != 0;
			if (more) {
				id[listed] = (int32_t)j;
				mask[listed++] = bits;
			}
		}
	free(times);
	return listed;
}

static void *fetch(hg_context *ctx, const void *device, size_t bytes)
{
	void *host = malloc(bytes + 1);
	CHECK(host);
	if (bytes)
		CHECK_OK(ctx->backend->copy_out(ctx, host, device, bytes));
	return host;
}

static void check_tiles(hg_context *ctx, const struct host_csr *g, const struct hg__tiles *t)
{
	const size_t columns = (size_t)t->groups * COLUMNS;
	int32_t *id = fetch(ctx, t->id, columns * sizeof *id),
	        *expected = calloc((size_t)g->m + 1, sizeof *expected);
	uint32_t *mask = fetch(ctx, t->mask, columns * sizeof *mask),
	         *expected_mask = calloc((size_t)g->m + 1, sizeof *expected_mask);
	int64_t at = 0, listed = 0;
	CHECK(expected && expected_mask);
	for (int64_t w = 0; w < t->windows; w++) {
		const int64_t count = expected_window(g, w, expected, expected_mask),
		              end = at + (count + COLUMNS - 1) / COLUMNS * COLUMNS;
		CHECK(end <= (int64_t)columns);
		for (int64_t k = 0; k < count; k++)
			CHECK_MSG(id[at + k] == expected[k] && mask[at + k] == expected_mask[k],
			          "window %lld, place %lld: column %d mask %x, expected %d and %x",
			          (long long)w, (long long)k, id[at + k], mask[at + k], expected[k],
			          expected_mask[k]);
		for (int64_t k = at + count; k < end; k++)
			CHECK(mask[k] == 0 && id[k] == expected[count - 1]);
		listed += count;
		at = end;
	}
	CHECK_EQ_I(at, columns);
	CHECK_EQ_I(t->columns, listed);
	free(id);
	free(mask);
	free(expected);
	free(expected_mask);
}

/* A graph in device and host memory, and its tiles, which are NULL where `terms` refuse them. */
struct tiled {
	hg_graph *graph;
	struct hg__csr csr;
	struct host_csr host;
	struct hg__tiles *tiles;
};

static void tiled_open(struct tiled *t, hg_context *ctx, struct coo list,
                       const struct hg__tile_terms *terms)
{
	t->graph = coo_graph(ctx, list);
	t->host = host_csr_download(ctx, t->graph);
	CHECK_OK(hg__graph_csr(t->graph, &t->csr));
	CHECK_OK(hg__tiles_build(ctx, &t->csr, t->host.rowptr, terms, &t->tiles));
}

static void tiled_close(struct tiled *t, hg_context *ctx)
{
	hg__tiles_free(ctx, t->tiles);
	hg_graph_free(t->graph);
	host_csr_free(&t->host);
}

static void device_builds_the_described_tiles(void)
{
	static const int64_t extents[][2] = {{1, 1},     {5, 9},     {16, 16},
	                                     {17, 4000}, {333, 200}, {1600, 5000}};
	const struct hg__tile_terms any = {0, 0, 1};
	hg_context *ctx = test_context();
	for (size_t k = 0; k < sizeof extents / sizeof extents[0]; k++) {
		struct tiled t;
		tiled_open(&t, ctx, uneven_rows(extents[k][0], extents[k][1]), &any);
		CHECK((t.tiles != NULL) == (ctx->backend->tiles_count != NULL));
		if (t.tiles)
			check_tiles(ctx, &t.host, t.tiles);
		tiled_close(&t, ctx);
	}
	hg_context_free(ctx);
}

/* 16 rows of the same 50 columns: 800 entries, 64 columns with the padding. */
static void tiles_are_built_only_on_the_terms(void)
{
	hg_context *ctx = test_context();
	struct coo list = coo_empty(ROWS, 100);
	const struct hg__tile_terms kept = {800.0 / (64 + HG__TILE_ITEM), 0, 64},
	                            too_much = {800.0 / (64 + HG__TILE_ITEM) + 0.01, 0, 64},
	                            no_room = {0, SIZE_MAX, 64};
	struct tiled t;
	double reuse;
	for (int64_t e = 0; e < 50 * ROWS; e++)
		coo_add(&list, e / 50, e % 50 * 2);
	tiled_open(&t, ctx, list, &too_much);
	CHECK(t.tiles == NULL);
	CHECK_OK(hg__tiles_build(ctx, &t.csr, t.host.rowptr, &no_room, &t.tiles));
	CHECK(t.tiles == NULL);
	CHECK_OK(hg__tiles_sample(ctx, &t.csr, t.host.rowptr, &reuse));
	CHECK_WITHIN(reuse, kept.reuse, 0);
	CHECK_OK(hg__tiles_build(ctx, &t.csr, t.host.rowptr, &kept, &t.tiles));
	CHECK((t.tiles != NULL) == (ctx->backend->tiles_count != NULL));
	CHECK_EQ_I(hg__tiles_bytes(t.tiles), t.tiles ? 64 * 8 + 16 : 0);
	/* the graph is too small for tiles of its own */
	CHECK_OK(hg__graph_tiles(t.graph, 0, 0, 64, 64));
	CHECK(t.csr.plan->tiles == NULL);
	tiled_close(&t, ctx);
	hg_context_free(ctx);
}

/* ---- the tiles that a graph keeps with its plan ---- */

/* n nodes in blocks of 16; the nodes of a block have edges from the same 128 nodes. */
static hg_graph *block_graph(hg_context *ctx, int64_t n)
{
	struct coo list = coo_empty(n, n);
	for (int64_t i = 0; i < n; i++) {
		const int64_t first = i / 16 * 16 < n - 128 ? i / 16 * 16 : n - 128;
		for (int64_t k = 0; k < 128; k++)
			coo_add(&list, i, first + k);
	}
	return coo_graph(ctx, list);
}

static void large_graph_gets_tiles_once(void)
{
	enum { NODES = 40000 };
	hg_context *ctx = test_context();
	hg_graph *graph = block_graph(ctx, NODES);
	struct hg__csr csr, csr_t;
	CHECK_OK(hg__graph_csr(graph, &csr));
	const size_t before = hg__graph_bytes(graph);
	CHECK_OK(hg__graph_tiles(graph, 0, 0, HG__TILE_WIDTH - 1, 64)); /* too narrow */
	CHECK(csr.plan->tiles == NULL);
	CHECK_OK(hg__graph_tiles(graph, 0, 0, 64, 64));
	const struct hg__tiles *tiles = csr.plan->tiles;
	CHECK((tiles != NULL) == (ctx->backend->tiles_count != NULL));
	CHECK_EQ_I(hg__graph_bytes(graph) - before, hg__tiles_bytes(tiles));
	CHECK_EQ_I(tiles ? tiles->columns : NODES * 8, NODES * 8);
	CHECK_OK(hg__graph_tiles(graph, 0, 0, 64, 64));
	CHECK(csr.plan->tiles == tiles);
	CHECK_OK(hg__graph_tiles(graph, 1, 0, 64, 64));
	CHECK_OK(hg__graph_csr_t(graph, 0, &csr_t));
	CHECK((csr_t.plan->tiles != NULL) == (tiles != NULL) && csr_t.plan != csr.plan);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

static void small_graphs_need_more_reuse(void)
{
	CHECK_WITHIN(hg__tiles_least_reuse(HG__TILE_ENTRIES), 7.3, 0.05);
	CHECK(hg__tiles_least_reuse(21 << 20) > 3 && hg__tiles_least_reuse(23 << 20) <= 3);
	double before = INFINITY;
	for (int64_t m = HG__TILE_ENTRIES; m < (int64_t)1 << 40; m = m * 3 / 2) {
		CHECK(hg__tiles_least_reuse(m) <= before && hg__tiles_least_reuse(m) >= 3);
		before = hg__tiles_least_reuse(m);
	}
}

static void graph_without_memory_gets_no_tiles(void)
{
	hg_context *ctx = test_context();
	hg_graph *graph = block_graph(ctx, 40000);
	struct hg__csr csr;
	CHECK_OK(hg__graph_csr(graph, &csr));
	ctx->memory_limit = ctx->current_bytes + 1000;
	CHECK_OK(hg__graph_tiles(graph, 0, 0, 64, 64));
	CHECK(csr.plan->tiles == NULL);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

static hg_status cut_three_windows(hg_context *ctx)
{
	const int32_t listed[] = {0, 5000, 70};
	struct hg__tile_cut cut;
	const hg_status status = hg__tiles_cut(ctx, 3, listed, &cut);
	if (status == HG_OK)
		hg__tiles_cut_free(ctx, &cut);
	return status;
}

static void failed_allocations_are_reported(void)
{
	CHECK_EQ_I(faulty_sweep(cut_three_windows), 4);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(empty_windows_are_cut),
	    TEST(windows_of_every_length_are_cut),
	    TEST(many_windows_are_cut_into_longer_items),
	    TEST(device_builds_the_described_tiles),
	    TEST(tiles_are_built_only_on_the_terms),
	    TEST(large_graph_gets_tiles_once),
	    TEST(graph_without_memory_gets_no_tiles),
	    TEST(small_graphs_need_more_reuse),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
