/* Padded batches hold what the same graphs hold when the host puts them together, bit for bit: all
 * arrays, features, attributes of edges and rows of graphs, and the padding behind them. */
#include "core/bins.h"
#include "kernels/assemble.h"
#include "unit/batches_padded.h"

enum { MASKS = 3, ROOM = 2 * MG_EDGES };

/* The dataset on the device, with a tensor of bytes beside its labels and targets. */
struct scene {
	struct many_device device;
	hg_tensor *mask;
	hg_batches_config config;
	hg_batches *own;
	struct hg__padded padded;
	struct hg__schedule schedule;
};

static void scene_open(struct scene *s, hg_context *ctx, const struct many_graphs *g, int variant,
                       int64_t per_batch)
{
	static uint8_t mask[MG_GRAPHS * MASKS];
	const hg_batches_config init = HG_BATCHES_CONFIG_INIT;
	hg_batch batch = HG_BATCH_INIT;
	for (int i = 0; i < MG_GRAPHS * MASKS; i++)
		mask[i] = (uint8_t)(i % 251);
	memset(s, 0, sizeof *s);
	CHECK_OK(many_open(ctx, g, variant, &s->device));
	CHECK_OK(many_tensor(ctx, HG_U8, g->graphs, MASKS, mask, HG_U8, &s->mask));
	s->config = init;
	s->config.input = many_input(&s->device);
	s->config.row[0] = s->device.label;
	s->config.row[1] = s->mask;
	s->config.row[3] = s->device.target;
	s->config.graphs = per_batch;
	CHECK_OK(hg_batches_create(ctx, &s->config, &s->own));
	CHECK_OK(hg_batches_load(s->own, 0, 0, &batch));
	const hg_graph probe = padded_probe(batch.input.graph);
	CHECK_OK(hg__padded_init(&s->padded, s->own, &s->config, &probe,
	                         variant & MG_F32 ? HG_F32 : HG_F16, 0, -1));
	CHECK_OK(hg__schedule_init(&s->schedule, &s->padded));
}

static void scene_close(struct scene *s)
{
	hg__schedule_fini(&s->schedule);
	hg__padded_fini(&s->padded);
	hg_batches_free(s->own);
	hg_tensor_free(s->mask);
	many_close(&s->device);
}

/* The first `count` elements of two device arrays, and behind them `more` of the second one, which
 * are left in `found`. */
static void check_begin(hg_context *ctx, const char *what, const void *expected, const void *of,
                        int64_t count, int64_t more, size_t size, void *found)
{
	static unsigned char want[ROOM * 8];
	CHECK((size_t)(count + more) * size <= sizeof want);
	if (count)
		CHECK_OK(ctx->backend->copy_out(ctx, want, expected, (size_t)count * size));
	if (count + more)
		CHECK_OK(ctx->backend->copy_out(ctx, found, of, (size_t)(count + more) * size));
	CHECK_MSG(memcmp(want, found, (size_t)count * size) == 0, "%s differs", what);
	memmove(found, (char *)found + (size_t)count * size, (size_t)more * size);
}

/* An array of 4 bytes an element of which all elements behind the first `count` are `rest`. */
static void check_words(hg_context *ctx, const char *what, const void *expected, const void *of,
                        int64_t count, int64_t more, uint32_t rest)
{
	static uint32_t found[ROOM];
	check_begin(ctx, what, expected, of, count, more, sizeof *found, found);
	for (int64_t i = 0; i < more; i++)
		CHECK_MSG(found[i] == rest, "%s: the padding has %u, expected %u", what, found[i], rest);
}

static uint32_t bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* The pattern of one orientation: rows of the padding have edges to themselves alone. */
static void check_pattern(hg_context *ctx, const struct hg__buffer *own_rowptr,
                          const struct hg__buffer *own_col, const int64_t *rowptr,
                          const int32_t *col, const hg_graph *own, const struct hg__changing *to,
                          int64_t most)
{
	static int64_t end[ROOM];
	static int32_t at[ROOM];
	check_begin(ctx, "rowptr", own_rowptr->data, rowptr, own->rows + 1, to->rows - own->rows,
	            sizeof *end, end);
	check_begin(ctx, "col", own_col->data, col, own->m, to->m - own->m, sizeof *at, at);
	int64_t e = own->m;
	for (int64_t i = own->rows; i < to->rows; i++) {
		CHECK(end[i - own->rows] >= e && end[i - own->rows] - e <= most);
		for (; e < end[i - own->rows]; e++)
			CHECK_EQ_I(at[e - own->m], i);
	}
	CHECK_EQ_I(e, to->m);
}

static void check_edges(hg_context *ctx, hg_graph *own, const struct hg__changing *to, float weight)
{
	static uint32_t edge[ROOM];
	static hg_half half[ROOM];
	const void *narrow;
	const int64_t more = to->m - own->m;
	check_begin(ctx, "edge_t", own->edge_t.data, to->edge_t, own->m, more, sizeof *edge, edge);
	for (int64_t e = 0; e < more; e++)
		CHECK_EQ_I(edge[e], own->m + e);
	if (!own->weight.data)
		return;
	check_words(ctx, "weight", own->weight.data, to->weight, own->m, more, bits_of(weight));
	CHECK_OK(hg__graph_weight(own, HG_F16, &narrow));
	check_begin(ctx, "f16 weight", narrow, to->weight_f16, own->m, more, sizeof *half, half);
	for (int64_t e = 0; e < more; e++)
		CHECK(half[e] == hg_half_from_float(weight));
}

static void check_nodes(hg_context *ctx, hg_graph *own, const struct hg__changing *to)
{
	static const hg_norm norms[] = {HG_NORM_RIGHT, HG_NORM_LEFT, HG_NORM_BOTH};
	const float *row[3], *col[3];
	const int64_t *ptr;
	const int32_t *id;
	const int64_t more = to->rows - own->rows;
	for (int i = 0; i < 3; i++)
		CHECK_OK(hg__graph_norm(own, norms[i], &row[i], &col[i]));
	check_words(ctx, "1/d of rows", row[0], to->inverse_row, own->rows, more, 0);
	check_words(ctx, "1/d of columns", col[1], to->inverse_col, own->rows, more, 0);
	check_words(ctx, "1/sqrt(d) of rows", row[2], to->root_row, own->rows, more, 0);
	check_words(ctx, "1/sqrt(d) of columns", col[2], to->root_col, own->rows, more, 0);
	CHECK_OK(hg__graph_batch(own, &ptr, &id));
	check_words(ctx, "id", id, to->id, own->rows, more, UINT32_MAX);
	check_begin(ctx, "ptr", ptr, to->ptr, to->count + 1, 0, sizeof *ptr, (int64_t[ROOM]){0});
}

static void check_bins(hg_context *ctx, const struct hg__changing *to)
{
	static int64_t ptr[MG_GRAPHS + 1];
	static int32_t expected[ROOM], found[ROOM];
	const size_t bytes = (size_t)(to->bins.bins + 2) * sizeof *found;
	CHECK(bytes <= sizeof found);
	CHECK_OK(ctx->backend->copy_out(ctx, ptr, to->ptr, (size_t)(to->count + 1) * sizeof *ptr));
	CHECK_OK(ctx->backend->copy_out(ctx, found, to->bins.first, bytes));
	(void)hg__bins_cut(to->count, ptr, to->rows, to->bins.bins, expected);
	CHECK(memcmp(expected, found, bytes) == 0);
}

/* All bytes of a matrix, with those between its rows, and zeros in `more` rows behind them. */
static void check_rows(hg_context *ctx, const char *what, const struct hg__mat *own,
                       const struct hg__mat *to)
{
	static uint8_t found[ROOM * 8], expected[ROOM * 8];
	const size_t size = hg_dtype_size(to->dtype), pitch = (size_t)to->ld * size,
	             bytes = (size_t)to->rows * pitch;
	CHECK(own->dtype == to->dtype && own->cols == to->cols && bytes <= sizeof found);
	memset(expected, 0, bytes);
	CHECK_OK(ctx->backend->copy_out(ctx, found, to->data, bytes));
	if (own->rows)
		CHECK_OK(ctx->backend->copy_out(ctx, expected, own->data, (size_t)own->rows * pitch));
	CHECK_MSG(memcmp(expected, found, bytes) == 0, "%s differs", what);
}

/* Sparse features are dense in a padded batch, those of the dataset in a state type. */
static void check_features(hg_context *ctx, const struct many_graphs *g, const hg_batch *own,
                           const struct hg__mat *to)
{
	static float x[MG_NODES * MG_FEATURES];
	hg_tensor *dense;
	int64_t row = 0;
	for (int64_t k = 0; k < own->graphs; k++)
		for (int64_t i = g->ptr[own->graph[k]]; i < g->ptr[own->graph[k] + 1]; i++, row++)
			memcpy(x + row * MG_FEATURES, g->x + i * MG_FEATURES, MG_FEATURES * sizeof *x);
	CHECK_OK(many_tensor(ctx, to->dtype, row, MG_FEATURES, x, HG_F32, &dense));
	check_rows(ctx, "features", &dense->mat, to);
	hg_tensor_free(dense);
}

static void check_batch(hg_context *ctx, const struct many_graphs *g, struct scene *s,
                        int64_t epoch, int64_t k)
{
	struct padded_block b;
	hg_batch own = HG_BATCH_INIT;
	CHECK_OK(hg_batches_load(s->own, epoch, k, &own));
	padded_block_open(&b, ctx, &s->padded, &s->schedule, k);
	hg_graph *graph = own.input.graph;
	const struct hg__changing *to = &b.batch.arrays;
	const int64_t most = s->own->graph_facts.facts.max_row_degree;
	CHECK(to->count == own.graphs && to->rows > graph->rows && to->m >= graph->m);
	CHECK(to->rows < ROOM && to->m < ROOM);
	CHECK_OK(hg__graph_transpose(graph, 1));
	check_pattern(ctx, &graph->rowptr, &graph->col, to->rowptr, to->col, graph, to, most);
	if (!graph->pattern_symmetric)
		check_pattern(ctx, &graph->rowptr_t, &graph->col_t, to->rowptr_t, to->col_t, graph, to,
		              most);
	check_edges(ctx, graph, to, s->padded.weight);
	check_nodes(ctx, graph, to);
	check_bins(ctx, to);
	check_features(ctx, g, &own, &b.batch.x.mat);
	check_rows(ctx, "edge_x", &own.input.edge_x->mat, &b.batch.edge_x.mat);
	for (int r = 0; r < HG_BATCH_ROWS; r++)
		if (own.row[r])
			check_rows(ctx, "rows of graphs", &own.row[r]->mat, &b.batch.row[r].mat);
	padded_block_close(&b, ctx);
}

static void a_block_holds_what_its_graphs_hold(void)
{
	static const int64_t sizes[] = {1, 7, MG_GRAPHS};
	static struct many_graphs g;
	hg_context *ctx = test_context();
	for (int symmetric = 0; symmetric < 2; symmetric++)
		for (int variant = 0; variant < MG_VARIANTS; variant++)
			for (int size = 0; size < 3; size++) {
				struct scene s;
				many_graphs_make(&g, symmetric, 1);
				for (int64_t i = 0; i < g.nodes * MG_FEATURES; i++)
					g.x[i] = hg_half_to_float(hg_half_from_float(g.x[i]));
				scene_open(&s, ctx, &g, variant, sizes[size]);
				for (int64_t epoch = HG_BATCHES_IN_ORDER; epoch < 2; epoch++) {
					hg__schedule_make(&s.schedule, epoch);
					for (int64_t k = 0; k < s.schedule.batches; k++)
						check_batch(ctx, &g, &s, epoch, k);
				}
				scene_close(&s);
			}
	hg_context_free(ctx);
}

/* However many lanes share the work, every element is written, and by one of them. */
static void any_number_of_lanes_gives_the_same(void)
{
	static const uint32_t lanes[] = {1, 2, 3, 32, 1000};
	static struct many_graphs g;
	hg_context *ctx = test_cpu_context(1);
	many_graphs_make(&g, 0, 1);
	for (int variant = 0; variant < MG_VARIANTS; variant++) {
		struct scene s;
		struct padded_block one;
		scene_open(&s, ctx, &g, variant, 9);
		hg__schedule_make(&s.schedule, 1);
		padded_block_open(&one, ctx, &s.padded, &s.schedule, 0);
		for (int i = 0; i < 5; i++) {
			struct padded_block other;
			padded_block_open(&other, ctx, &s.padded, &s.schedule, 0);
			struct hg__assemble a;
			const struct hg__batch_list list = hg__schedule_list(&s.schedule, 0, other.lists.data);
			hg__padded_assembly(&s.padded, &list, &other.batch, &a);
			memset(other.block.data, 0xFF, other.block.bytes);
			if (a.sparse.rowptr)
				memset(other.batch.x.mat.data, 0, other.batch.x.bytes);
			for (uint32_t l = 0; l < lanes[i]; l++) {
				for (int64_t k = 0; k < list.graphs; k++)
					hg__assemble_graph(&a, k, (struct hg__lanes){l, lanes[i]});
				hg__assemble_rest(&a, (struct hg__lanes){l, lanes[i]});
			}
			CHECK(memcmp(one.block.data, other.block.data, one.block.bytes) == 0);
			padded_block_close(&other, ctx);
		}
		padded_block_close(&one, ctx);
		scene_close(&s);
	}
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(a_block_holds_what_its_graphs_hold),
	    TEST(any_number_of_lanes_gives_the_same),
	};
	return RUN_TESTS(argc, argv, cases);
}
