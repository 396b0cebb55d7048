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
	return (struct hg__dense_source){csr->rowptr, csr->col, GRAPHS, ptr, 0};
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
	CHECK_OK(hg__dense_build(ctx, &source, &dense));
	CHECK(dense != NULL);
	check_dense(ctx, &csr, dense, ptr);
	hg__dense_free(ctx, dense);
	host_csr_free(&csr);
	hg_context_free(ctx);
}

/* Whether dense counts are built for a batch of two graphs with `nodes` nodes each. Frees the
 * list. */
static int is_built(hg_context *ctx, int64_t nodes, struct coo list, size_t reserve)
{
	const int64_t ptr[3] = {0, nodes, 2 * nodes};
	struct host_csr csr = host_csr_sort(list);
	const struct hg__dense_source source = {csr.rowptr, csr.col, 2, ptr, reserve};
	struct hg__dense *dense = NULL;
	CHECK_OK(hg__dense_build(ctx, &source, &dense));
	const int built = dense != NULL;
	hg__dense_free(ctx, dense);
	host_csr_free(&csr);
	return built;
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

static void other_batches_are_refused(void)
{
	hg_context *ctx = test_context();
	struct coo crossing = two_graphs(20, 9, 1);
	coo_add(&crossing, 19, 20);
	CHECK(!is_built(ctx, 20, crossing, 0));
	CHECK(is_built(ctx, 128, two_graphs(128, 9, 1), 0));
	CHECK(!is_built(ctx, 129, two_graphs(129, 9, 1), 0));
	CHECK(is_built(ctx, 20, two_graphs(20, 9, 15), 0));
	CHECK(!is_built(ctx, 20, two_graphs(20, 9, 16), 0));
	/* 640 or 512 entries of 2 x 128 x 128 counts: 5.1 of 128 in a row are 4 % */
	CHECK(is_built(ctx, 128, two_graphs(128, 6, 1), 0));
	CHECK(!is_built(ctx, 128, two_graphs(128, 5, 1), 0));
	CHECK(!is_built(ctx, 20, two_graphs(20, 9, 1), SIZE_MAX));
	CHECK(!is_built(ctx, 0, coo_empty(0, 0), 0));
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

static hg_status build_and_free(hg_context *ctx)
{
	int64_t ptr[GRAPHS + 1];
	struct hg__dense *dense = NULL;
	test_reseed(3);
	begin_graphs(ptr);
	struct host_csr csr = host_csr_sort(dense_edges(ptr));
	const struct hg__dense_source source = source_of(&csr, ptr);
	const hg_status status = hg__dense_build(ctx, &source, &dense);
	CHECK((dense != NULL) == (status == HG_OK));
	hg__dense_free(ctx, dense);
	host_csr_free(&csr);
	return status;
}

static void failed_allocations_are_reported(void)
{
	/* host graphs and counts, the struct, device graphs and counts */
	CHECK_EQ_I(faulty_sweep(build_and_free), 5);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(counts_are_those_of_the_graph),   TEST(other_batches_are_refused),
	    TEST(batch_gets_dense_counts_once),    TEST(symmetric_batch_shares_dense_counts),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
