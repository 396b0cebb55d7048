/* Dense counts of a batch, compared with what their description in core/plan_dense.h says, computed
 * by brute force. */
#include "core/plan_dense.h"

#include <stdlib.h>

#include "graphs.h"
#include "unit/faulty.h"

enum { TILE = HG__DENSE_TILE, GRAPHS = 9 };

/* Sizes on both sides of whole tiles, empty graphs, and two of equal size. */
static const int64_t sizes[GRAPHS] = {17, 0, 128, 1, 16, 33, 0, 16, 15};

static void begin_graphs(int64_t *ptr)
{
	ptr[0] = 0;
	for (int k = 0; k < GRAPHS; k++)
		ptr[k + 1] = ptr[k] + sizes[k];
}

/* Edges within the graphs, each up to 15 times, some rows without any. */
static struct coo dense_edges(const int64_t *ptr)
{
	struct coo list = coo_empty(ptr[GRAPHS], ptr[GRAPHS]);
	for (int k = 0; k < GRAPHS; k++)
		for (int64_t i = ptr[k]; i < ptr[k + 1]; i++)
			for (int64_t j = ptr[k]; i % 7 != 3 && j < ptr[k + 1]; j++)
				for (int64_t times = test_below(3) ? 0 : 1 + test_below(15); times > 0; times--)
					coo_add(&list, i, j);
	return list;
}

static struct hg__dense_source source_of(const struct host_csr *csr, const int64_t *ptr)
{
	return (struct hg__dense_source){csr->rowptr, csr->col, GRAPHS, ptr};
}

static int64_t entries_between(const struct host_csr *csr, int64_t i, int64_t j)
{
	int64_t entries = 0;
	for (int64_t e = csr->rowptr[i]; e < csr->rowptr[i + 1]; e++)
		entries += csr->col[e] == j;
	return entries;
}

/* Checks all counts of a graph, those of the padding included. */
static void check_counts(const struct host_csr *csr, const struct hg__dense_graph *graph,
                         const uint32_t *count)
{
	const int64_t side = (graph->nodes + TILE - 1) / TILE;
	for (int64_t i = 0; i < side * TILE; i++)
		for (int64_t j = 0; j < side * TILE; j++) {
			const int64_t r = i % TILE, c = j % TILE,
			              tile = graph->tile + i / TILE * side + j / TILE;
			const uint32_t word = count[tile * HG__DENSE_WORDS + 4 * (r % 8) + c % 8 / 2];
			const int64_t place = c % 2 + 2 * (r / 8) + 4 * (c / 8),
			              exists = i < graph->nodes && j < graph->nodes;
			CHECK_EQ_I(word >> 4 * place & 15u,
			           exists ? entries_between(csr, graph->first + i, graph->first + j) : 0);
		}
}

/* Checks that all graphs with nodes are listed, the largest first, with tiles of their own. */
static void check_list(const struct hg__dense *d, const struct hg__dense_graph *graph,
                       const int64_t *ptr)
{
	int64_t listed = 0, tile = 0;
	for (int k = 0; k < GRAPHS; k++)
		for (int64_t g = 0; g < d->graphs; g++)
			listed += graph[g].first == ptr[k] && graph[g].nodes == sizes[k];
	CHECK_EQ_I(listed, d->graphs);
	CHECK_EQ_I(listed, GRAPHS - 2);
	for (int64_t g = 0; g < d->graphs; g++) {
		CHECK(g == 0 || graph[g].nodes < graph[g - 1].nodes ||
		      (graph[g].nodes == graph[g - 1].nodes && graph[g].first > graph[g - 1].first));
		CHECK_EQ_I(graph[g].tile, tile);
		tile += (int64_t)hg__dense_side(graph[g].nodes) * hg__dense_side(graph[g].nodes);
	}
	CHECK_EQ_I(tile, d->tiles);
	CHECK_EQ_I(d->most_nodes, 128);
}

static void check_dense(hg_context *ctx, const struct host_csr *csr, const struct hg__dense *d,
                        const int64_t *ptr)
{
	const size_t graphs = (size_t)d->graphs * sizeof(struct hg__dense_graph),
	             counts = (size_t)d->tiles * HG__DENSE_WORDS * sizeof(uint32_t);
	struct hg__dense_graph *graph = malloc(graphs);
	uint32_t *count = malloc(counts);
	CHECK(graph && count);
	CHECK_EQ_I(hg__dense_bytes(d), graphs + counts);
	CHECK_OK(ctx->backend->copy_out(ctx, graph, d->graph, graphs));
	CHECK_OK(ctx->backend->copy_out(ctx, count, d->count, counts));
	check_list(d, graph, ptr);
	for (int64_t g = 0; g < d->graphs; g++)
		check_counts(csr, &graph[g], count);
	free(graph);
	free(count);
}

static void counts_are_those_of_the_graph(void)
{
	hg_context *ctx = test_context();
	int64_t ptr[GRAPHS + 1];
	begin_graphs(ptr);
	struct host_csr csr = host_csr_sort(dense_edges(ptr));
	const struct hg__dense_source source = source_of(&csr, ptr);
	struct hg__dense *dense = NULL;
	uint8_t listed[GRAPHS];
	struct hg__dense_choice choice = {.listed = listed};
	CHECK(hg__dense_choose(ctx, &source, HG__DENSE_SAVED, &choice));
	CHECK_EQ_I(choice.other_rows, 0);
	CHECK_OK(hg__dense_build(ctx, &source, &choice, &dense));
	CHECK(dense != NULL);
	check_dense(ctx, &csr, dense, ptr);
	hg__dense_free(ctx, dense);
	host_csr_free(&csr);
	hg_context_free(ctx);
}

/* Of a batch of two graphs with `nodes` nodes each: bit k is set if graph k is chosen, where a mix
 * has to save `least` entries. Frees the list. */
static unsigned chosen(hg_context *ctx, int64_t nodes, struct coo list, int64_t least)
{
	const int64_t ptr[3] = {0, nodes, 2 * nodes};
	struct host_csr csr = host_csr_sort(list);
	const struct hg__dense_source source = {csr.rowptr, csr.col, 2, ptr};
	uint8_t listed[2];
	struct hg__dense_choice choice = {.listed = listed};
	const int pays = hg__dense_choose(ctx, &source, least, &choice);
	if (pays) {
		CHECK_EQ_I(choice.graphs, listed[0] + listed[1]);
		CHECK_EQ_I(choice.other_rows, (2 - choice.graphs) * nodes);
		CHECK_EQ_I(choice.other_entries, (listed[0] ? 0 : csr.rowptr[nodes]) +
		                                     (listed[1] ? 0 : csr.m - csr.rowptr[nodes]));
		CHECK_EQ_I(choice.most_nodes, nodes);
	}
	host_csr_free(&csr);
	return pays ? listed[0] | (unsigned)listed[1] << 1 : 0;
}

/* The first `degree` nodes of each of two graphs are neighbours of all its nodes, and node 0 is one
 * `times` times. */
static struct coo two_graphs(int64_t nodes, int64_t degree, int64_t times)
{
	struct coo list = coo_empty(2 * nodes, 2 * nodes);
	for (int64_t i = 0; i < 2 * nodes; i++)
		for (int64_t j = 0; j < degree; j++)
			coo_add(&list, i, i / nodes * nodes + j);
	for (int64_t k = 1; k < times; k++)
		coo_add(&list, nodes, nodes);
	return list;
}

enum { BOTH = 3, FIRST = 1 };

static void other_batches_are_refused(void)
{
	hg_context *ctx = test_context();
	const int64_t least = HG__DENSE_SAVED;
	struct coo crossing = two_graphs(20, 9, 1);
	coo_add(&crossing, 19, 20);
	CHECK_EQ_I(chosen(ctx, 20, crossing, 0), 0);
	CHECK_EQ_I(chosen(ctx, 128, two_graphs(128, 9, 1), least), BOTH);
	CHECK_EQ_I(chosen(ctx, 129, two_graphs(129, 9, 1), 0), 0);
	CHECK_EQ_I(chosen(ctx, 20, two_graphs(20, 9, 15), least), BOTH);
	CHECK_EQ_I(chosen(ctx, 20, two_graphs(20, 9, 16), least), 0);
	/* 640 or 512 entries of 2 x 128 x 128 counts: 5.1 of 128 in a row are 4 % */
	CHECK_EQ_I(chosen(ctx, 128, two_graphs(128, 6, 1), least), BOTH);
	CHECK_EQ_I(chosen(ctx, 128, two_graphs(128, 5, 1), 0), 0);
	CHECK_EQ_I(chosen(ctx, 0, coo_empty(0, 0), 0), 0);
	hg_context_free(ctx);
}

/* Two graphs of 40 nodes. Each row of the first has 36 entries, and the second has one entry
 * `times` times. */
static struct coo unequal_graphs(int64_t times)
{
	struct coo list = coo_empty(80, 80);
	for (int64_t i = 0; i < 40; i++)
		for (int64_t j = 0; j < 36; j++)
			coo_add(&list, i, j);
	for (int64_t k = 0; k < times; k++)
		coo_add(&list, 40, 41);
	return list;
}

static void some_graphs_are_chosen_where_that_saves_enough(void)
{
	hg_context *ctx = test_context();
	CHECK_EQ_I(chosen(ctx, 20, two_graphs(20, 9, 16), 0), FIRST);
	/* all counts together are full enough, and one entry is not too many for a count */
	CHECK_EQ_I(chosen(ctx, 40, unequal_graphs(1), HG__DENSE_SAVED), BOTH);
	/* 40 x 36 entries in 48 x 48 counts, which take the time of 92.16 entries, save 1,347.84 */
	CHECK_EQ_I(chosen(ctx, 40, unequal_graphs(16), 1347), FIRST);
	CHECK_EQ_I(chosen(ctx, 40, unequal_graphs(16), 1348), 0);
	/* which is an eighth of the entries where the second graph has 9,342.72 */
	CHECK_EQ_I(chosen(ctx, 40, unequal_graphs(9342), 0), FIRST);
	CHECK_EQ_I(chosen(ctx, 40, unequal_graphs(9343), 0), 0);
	hg_context_free(ctx);
}

/* ---- the dense counts that a graph keeps with its plans ---- */

static void batch_gets_dense_counts_once(void)
{
	hg_context *ctx = test_context();
	hg_graph *graph = coo_graph(ctx, two_graphs(30, 20, 3));
	const int64_t ptr[3] = {0, 30, 60};
	const int wanted = ctx->backend->wants_dense;
	struct hg__csr csr, csr_t;
	CHECK_OK(hg__graph_csr(graph, &csr));
	CHECK_OK(hg__graph_dense(graph, 0, 0));
	CHECK(csr.plan->dense == NULL); /* no batch yet */
	CHECK_OK(hg_graph_set_batch(graph, 2, ptr));
	const size_t before = hg__graph_bytes(graph);
	CHECK_OK(hg__graph_dense(graph, 0, 0));
	const struct hg__dense *dense = csr.plan->dense;
	CHECK((dense != NULL) == wanted);
	CHECK_EQ_I(hg__graph_bytes(graph) - before, hg__dense_bytes(dense));
	CHECK_OK(hg__graph_dense(graph, 0, 0));
	CHECK(csr.plan->dense == dense);
	CHECK_OK(hg__graph_dense(graph, 1, 0));
	CHECK_OK(hg__graph_csr_t(graph, 0, &csr_t));
	CHECK((csr_t.plan->dense != NULL) == wanted && csr_t.plan != csr.plan);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

static void symmetric_batch_shares_dense_counts(void)
{
	hg_context *ctx = test_context();
	struct coo list = two_graphs(30, 20, 3);
	coo_add_transpose(&list);
	hg_graph *graph = coo_graph(ctx, list);
	const int64_t ptr[3] = {0, 30, 60};
	struct hg__csr csr, csr_t;
	CHECK_OK(hg_graph_set_batch(graph, 2, ptr));
	CHECK_OK(hg__graph_dense(graph, 1, 0));
	CHECK_OK(hg__graph_csr(graph, &csr));
	CHECK_OK(hg__graph_csr_t(graph, 0, &csr_t));
	CHECK((csr.plan->dense != NULL) == ctx->backend->wants_dense && csr_t.plan == csr.plan);
	hg_graph_free(graph);
	hg_context_free(ctx);
}

/* ---- a batch of which some graphs are listed ---- */

enum { MIXED = 7, MIXED_NODES = 402 };
/* full, empty, large, sparse, full, isolated nodes, one node with a loop */
static const int64_t mixed_ptr[MIXED + 1] = {0, 30, 30, 230, 330, 347, 401, 402};
static const int mixed_listed[MIXED] = {1, 0, 0, 0, 1, 0, 0};

/* A directed graph. The large one has some long rows, which a plan splits. */
static struct coo mixed_edges(void)
{
	static const int64_t degree[MIXED] = {20, 0, 10, 2, 11, 0, 1};
	struct coo list = coo_empty(MIXED_NODES, MIXED_NODES);
	for (int k = 0; k < MIXED; k++)
		for (int64_t i = mixed_ptr[k]; i < mixed_ptr[k + 1]; i++)
			for (int64_t j = 0; j < (k == 2 && i % 50 == 1 ? 90 : degree[k]) && i % 9 != 4; j++)
				coo_add(&list, i, mixed_ptr[k] + j);
	return list;
}

/* The graph number of a node. */
static int graph_of(int64_t node)
{
	int k = 0;
	while (mixed_ptr[k + 1] <= node)
		k++;
	return k;
}

/* Both kinds of kernels together compute every row once, and the rows of a graph alike. */
static void check_mix(hg_context *ctx, const struct hg__csr *csr)
{
	const struct hg__plan *counted = csr->plan->counted, *rest = csr->plan->rest;
	int rows[MIXED] = {0};
	CHECK(!csr->plan->dense && counted && counted->dense && rest && !counted->part);
	const size_t bytes = (size_t)rest->parts * sizeof(struct hg__plan_part);
	struct hg__plan_part *part = malloc(bytes);
	struct hg__dense_graph graph[2];
	CHECK(part);
	CHECK_EQ_I(counted->dense->graphs, 2);
	CHECK_OK(ctx->backend->copy_out(ctx, graph, counted->dense->graph, sizeof graph));
	for (int g = 0; g < 2; g++)
		rows[graph_of(graph[g].first)] += graph[g].nodes;
	for (int k = 0; k < MIXED; k++)
		CHECK_EQ_I(rows[k], mixed_listed[k] ? mixed_ptr[k + 1] - mixed_ptr[k] : 0);
	CHECK_OK(ctx->backend->copy_out(ctx, part, rest->part, bytes));
	int64_t entries = 0;
	for (int64_t i = 0; i < rest->parts; i++) {
		CHECK(!mixed_listed[graph_of(part[i].row)]);
		rows[graph_of(part[i].row)] += part[i].slot < 0;
		entries += hg__part_entries(&part[i]);
	}
	CHECK(rest->splits > 0 && rest->part_class[HG__PART_CLASSES] == rest->parts);
	for (int k = 0; k < MIXED; k++)
		CHECK(mixed_listed[k] || rows[k] <= mixed_ptr[k + 1] - mixed_ptr[k]);
	for (int64_t split = 0; split < rest->splits; split++) {
		int32_t row;
		CHECK_OK(ctx->backend->copy_out(ctx, &row, rest->split_row + split, sizeof row));
		rows[graph_of(row)]++;
	}
	for (int k = 0; k < MIXED; k++)
		CHECK_EQ_I(rows[k], mixed_ptr[k + 1] - mixed_ptr[k]);
	int64_t listed = 0;
	for (int64_t i = 0; i < 30; i++)
		listed += i % 9 == 4 ? 0 : 20;
	for (int64_t i = 330; i < 347; i++)
		listed += i % 9 == 4 ? 0 : 11;
	CHECK_EQ_I(entries, csr->m - listed);
	free(part);
}

/* A backend that wants dense counts, whatever the device of the test is. */
struct wanting {
	struct hg__backend backend;
	const struct hg__backend *real;
};
static void want_dense(struct wanting *w, hg_context *ctx)
{
	w->real = ctx->backend;
	w->backend = *w->real;
	w->backend.wants_dense = 1;
	ctx->backend = &w->backend;
}

static void mixed_batch_has_both_plans(void)
{
	hg_context *ctx = test_context();
	struct wanting w;
	want_dense(&w, ctx);
	hg_graph *graph = coo_graph(ctx, mixed_edges());
	CHECK_OK(hg_graph_set_batch(graph, MIXED, mixed_ptr));
	struct hg__csr csr[2];
	CHECK_OK(hg__graph_csr(graph, &csr[0]));
	CHECK_OK(hg__graph_csr_t(graph, 0, &csr[1]));
	CHECK(csr[0].plan != csr[1].plan);
	for (int transposed = 0; transposed < 2; transposed++) {
		const struct hg__plan *plan = csr[transposed].plan;
		const size_t before = hg__graph_bytes(graph), allocated = ctx->current_bytes;
		CHECK_OK(hg__graph_dense_from(graph, transposed, 0, 0));
		check_mix(ctx, &csr[transposed]);
		const struct hg__plan *rest = plan->rest;
		CHECK_OK(hg__graph_dense_from(graph, transposed, 0, 0));
		CHECK(plan->rest == rest);
		CHECK_EQ_I(hg__graph_bytes(graph) - before, ctx->current_bytes - allocated);
		CHECK_EQ_I(hg__graph_bytes(graph) - before,
		           hg__dense_bytes(plan->counted->dense) + hg__plan_bytes(rest));
	}
	hg_graph_free(graph);
	ctx->backend = w.real;
	hg_context_free(ctx);
}

/* Without a mix that pays, or room for it, nothing is stored. */
static void mixed_batch_may_have_neither(void)
{
	hg_context *ctx = test_context();
	struct wanting w;
	want_dense(&w, ctx);
	for (int transposed = 0; transposed < 2; transposed++)
		for (int room = 0; room < 2; room++) {
			hg_graph *graph = coo_graph(ctx, mixed_edges());
			struct hg__csr csr;
			CHECK_OK(hg_graph_set_batch(graph, MIXED, mixed_ptr));
			CHECK_OK(transposed ? hg__graph_csr_t(graph, 0, &csr) : hg__graph_csr(graph, &csr));
			const size_t before = ctx->current_bytes;
			CHECK_OK(room ? hg__graph_dense(graph, transposed, 0)
			              : hg__graph_dense_from(graph, transposed, SIZE_MAX, 0));
			CHECK(!csr.plan->dense && !csr.plan->counted && !csr.plan->rest);
			CHECK_EQ_I(ctx->current_bytes, before);
			hg_graph_free(graph);
		}
	ctx->backend = w.real;
	hg_context_free(ctx);
}

/* ---- failures ---- */

static hg_status build_and_free(hg_context *ctx)
{
	int64_t ptr[GRAPHS + 1];
	struct hg__dense *dense = NULL;
	test_reseed(3);
	begin_graphs(ptr);
	struct host_csr csr = host_csr_sort(dense_edges(ptr));
	const struct hg__dense_source source = source_of(&csr, ptr);
	uint8_t listed[GRAPHS];
	struct hg__dense_choice choice = {.listed = listed};
	CHECK(hg__dense_choose(ctx, &source, 0, &choice));
	const hg_status status = hg__dense_build(ctx, &source, &choice, &dense);
	CHECK((dense != NULL) == (status == HG_OK));
	hg__dense_free(ctx, dense);
	host_csr_free(&csr);
	return status;
}

/* Both plans, or neither: where memory for them is lacking, attention does without. */
static hg_status mix_and_free(hg_context *ctx)
{
	struct wanting w;
	struct hg__csr csr = {0};
	hg_graph *graph = NULL;
	struct coo list = mixed_edges();
	want_dense(&w, ctx);
	hg_status status = coo_build(ctx, &list, &graph);
	coo_free(&list);
	if (status == HG_OK)
		status = hg_graph_set_batch(graph, MIXED, mixed_ptr);
	if (status == HG_OK)
		status = hg__graph_csr(graph, &csr);
	if (status == HG_OK) {
		CHECK_OK(hg__graph_dense_from(graph, 0, 0, 0));
		CHECK(!csr.plan->counted == !csr.plan->rest);
		status = csr.plan->rest ? HG_OK : HG_ERR_NOMEM;
	}
	hg_graph_free(graph);
	ctx->backend = w.real;
	return status;
}

static void failed_allocations_are_reported(void)
{
	/* host graphs and counts, the struct, device graphs and counts */
	CHECK_EQ_I(faulty_sweep(build_and_free), 5);
	/* and besides: the arrays of the batch and the choice 4, the plan with the counts 1, rows and
	 * their pointers 2, arrays of the plan 5, the plan 1, parts 3 */
	CHECK(faulty_sweep(mix_and_free) >= 5 + 16);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(counts_are_those_of_the_graph),
	    TEST(other_batches_are_refused),
	    TEST(batch_gets_dense_counts_once),
	    TEST(symmetric_batch_shares_dense_counts),
	    TEST(some_graphs_are_chosen_where_that_saves_enough),
	    TEST(mixed_batch_has_both_plans),
	    TEST(mixed_batch_may_have_neither),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
