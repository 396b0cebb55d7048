/* Padded batches whose features the device gathers from a table of the rows that differ: they are
 * those that the host would have written, bit for bit. */
#include "nn/batches_padded.h"
#include "unit/faulty.h"
#include "unit/many_graphs.h"

enum { WIDTH = 70, PITCH = 72, PER_BATCH = 7 };

struct features {
	float x[MG_NODES][WIDTH];
	hg_tensor *dense;
	hg_graph *sparse;
};

/* Rows of `kinds` kinds: one-hot, as far as they are that, with a value of the kind beside. Halves
 * hold the values; one of them is -0, which dense rows keep. */
static void features_make(struct features *f, int64_t nodes, int64_t kinds, int signed_zero)
{
	memset(f->x, 0, sizeof f->x);
	for (int64_t i = 0; i < nodes; i++) {
		const int64_t kind = i % kinds;
		f->x[i][kind % WIDTH] = 1.0f;
		f->x[i][WIDTH - 1] = (float)(kind / WIDTH) + 0.5f;
		if (signed_zero && kind % 2)
			f->x[i][WIDTH - 2] = -0.0f;
	}
}

static hg_graph *sparse_of(hg_context *ctx, const struct features *f, int64_t nodes)
{
	static int64_t rowptr[MG_NODES + 1];
	static int32_t col[2 * MG_NODES];
	static float value[2 * MG_NODES];
	hg_graph *graph;
	int64_t m = 0;
	for (int64_t i = 0; i < nodes; i++) {
		for (int32_t c = 0; c < WIDTH; c++)
			if (f->x[i][c] > 0.0f) {
				col[m] = c;
				value[m++] = f->x[i][c];
			}
		rowptr[i + 1] = m;
	}
	CHECK_OK(hg_graph_from_csr(ctx, nodes, WIDTH, m, rowptr, col, value, &graph));
	return graph;
}

static void features_open(struct features *f, hg_context *ctx, int64_t nodes, int sparse,
                          hg_dtype state)
{
	f->dense = NULL;
	f->sparse = sparse ? sparse_of(ctx, f, nodes) : NULL;
	if (!sparse)
		CHECK_OK(many_tensor(ctx, state, nodes, WIDTH, f->x, HG_F32, &f->dense));
}

static hg_batches *batches_of(hg_context *ctx, const struct many_device *d,
                              const struct features *f)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	hg_batches *all;
	c.input = many_input(d);
	c.input.x = f->dense;
	c.input.x_sparse = f->sparse;
	c.row[0] = d->label;
	c.graphs = PER_BATCH;
	CHECK_OK(hg_batches_create(ctx, &c, &all));
	return all;
}

/* Element c of a row as it is stored. */
static void element(const struct features *f, int64_t node, int64_t c, hg_dtype state, void *to)
{
	const float value = node < 0 || c >= WIDTH ? 0.0f : f->x[node][c];
	const hg_half half = hg_half_from_float(value);
	memcpy(to, state == HG_F16 ? (const void *)&half : (const void *)&value, hg_dtype_size(state));
}

/* All bytes of X on the device: the rows of the graphs, then zeros, and zeros in the padding. */
static void check_features(hg_context *ctx, const struct many_graphs *g, const struct features *f,
                           const struct hg__padded_batch *b, const int64_t *graph)
{
	static unsigned char found[2 * MG_NODES * PITCH * sizeof(float)];
	const hg_dtype state = b->x.mat.dtype;
	const size_t size = hg_dtype_size(state);
	int64_t row = 0;
	CHECK(b->x.mat.ld == PITCH && b->x.bytes <= sizeof found);
	CHECK_OK(ctx->backend->copy_out(ctx, found, b->x.mat.data, b->x.bytes));
	for (int64_t k = 0; k <= b->shape.graphs; k++) {
		const int padding = k == b->shape.graphs;
		const int64_t first = padding ? 0 : g->ptr[graph[k]],
		              rows = padding ? b->shape.nodes - row : g->ptr[graph[k] + 1] - first;
		for (int64_t i = 0; i < rows; i++, row++)
			for (int64_t c = 0; c < PITCH; c++) {
				unsigned char expected[sizeof(float)];
				element(f, padding ? -1 : first + i, c, state, expected);
				CHECK_MSG(memcmp(found + (size_t)(row * PITCH + c) * size, expected, size) == 0,
				          "row %lld, column %lld differs", (long long)row, (long long)c);
			}
	}
	CHECK_EQ_I(row, b->shape.nodes);
}

static void check_batch(hg_context *ctx, const struct many_graphs *g, const struct features *f,
                        hg_batches *all, const struct hg__padded *p, int64_t k)
{
	struct hg__buffer host, device;
	struct hg__padded_batch batch;
	int64_t graphs;
	const int64_t *graph = hg__batches_of_epoch(all, 2, k, &graphs);
	const struct hg__shape_of_batch shape = hg__padded_shape(p, graph, graphs);
	const size_t bytes = hg__padded_bytes(p, &shape), filled = hg__padded_filled(p, &shape);
	CHECK(p->distinct ? filled < bytes : filled == bytes);
	CHECK_OK(hg__buffer_host(ctx, (int64_t)filled, 1, "block", &host));
	CHECK_OK(hg__buffer_device(ctx, (int64_t)bytes, 1, "block", &device));
	memset(host.data, 0xFF, filled); /* whatever was there before */
	CHECK_OK(ctx->backend->fill(ctx, device.data, 0xFF, bytes));
	hg__padded_fill(p, &shape, graph, host.data);
	CHECK_OK(ctx->backend->copy_in(ctx, device.data, host.data, filled));
	CHECK_OK(hg__padded_open(p, &shape, device.data, &batch));
	CHECK_OK(hg__padded_complete(p, &batch));
	check_features(ctx, g, f, &batch, graph);
	hg__padded_close(&batch);
	hg__buffer_free(ctx, &host);
	hg__buffer_free(ctx, &device);
}

/* The features of all batches, and how many rows the table has. */
static void check_dataset(hg_context *ctx, const struct many_graphs *g, int64_t kinds, int sparse,
                          hg_dtype state, int64_t distinct)
{
	static struct features f;
	struct many_device d;
	struct hg__padded p;
	hg_batch batch = HG_BATCH_INIT;
	features_make(&f, g->nodes, kinds, !sparse);
	CHECK_OK(many_open(ctx, g, 0, &d));
	features_open(&f, ctx, g->nodes, sparse, state);
	hg_batches *all = batches_of(ctx, &d, &f);
	CHECK_OK(hg_batches_load(all, 0, 0, &batch));
	CHECK_OK(hg__padded_init(&p, all, all->batch_graph, state, 0, -1));
	CHECK_EQ_I(p.distinct, distinct);
	for (int64_t k = 0; k < hg_batches_count(all); k++)
		check_batch(ctx, g, &f, all, &p, k);
	hg__padded_fini(&p);
	hg_batches_free(all);
	hg_tensor_free(f.dense);
	hg_graph_free(f.sparse);
	many_close(&d);
}

/* The table has at most as many rows as a batch has nodes. */
static void features_of_few_rows_are_gathered(void)
{
	static struct many_graphs g;
	hg_context *ctx = test_context();
	many_graphs_make(&g, 1, 1);
	const int64_t most = g.nodes / MG_GRAPHS * PER_BATCH;
	CHECK(most > 1 && most < g.nodes);
	for (int sparse = 0; sparse < 2; sparse++)
		for (int wide = 0; wide < 2; wide++) {
			const hg_dtype state = wide ? HG_F32 : HG_F16;
			check_dataset(ctx, &g, 1, sparse, state, 1);
			check_dataset(ctx, &g, most, sparse, state, most);
			check_dataset(ctx, &g, most + 1, sparse, state, 0);
			check_dataset(ctx, &g, g.nodes, sparse, state, 0);
		}
	hg_context_free(ctx);
}

static hg_status scene_run(hg_context *ctx, const struct features *f, struct many_device *d,
                           struct hg__padded *p, hg_batches **all)
{
	hg_batches_config c = HG_BATCHES_CONFIG_INIT;
	hg_batch batch = HG_BATCH_INIT;
	hg_status s = many_tensor(ctx, HG_F16, hg_graph_rows(d->graph), WIDTH, f->x, HG_F32, &d->x);
	if (s < 0)
		return s;
	c.input = many_input(d);
	c.row[0] = d->label;
	c.graphs = PER_BATCH;
	s = hg_batches_create(ctx, &c, all);
	if (s >= 0)
		s = hg_batches_load(*all, 0, 0, &batch);
	if (s >= 0)
		s = hg__padded_init(p, *all, (*all)->batch_graph, HG_F16, 0, -1);
	CHECK(s < 0 || p->distinct == 3);
	return s;
}

static hg_status scene(hg_context *ctx)
{
	static struct many_graphs g;
	static struct features f;
	struct many_device d;
	struct hg__padded p = {.all = NULL};
	hg_batches *all = NULL;
	many_graphs_make(&g, 0, 1);
	features_make(&f, g.nodes, 3, 0);
	hg_status s = many_open(ctx, &g, 0, &d);
	hg_tensor_free(d.x);
	d.x = NULL;
	if (s >= 0)
		s = scene_run(ctx, &f, &d, &p, &all);
	hg__padded_fini(&p);
	hg_batches_free(all);
	many_close(&d);
	return s;
}

static void failed_allocations_leak_nothing(void)
{
	test_note("%lld allocations", (long long)faulty_sweep(scene));
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(features_of_few_rows_are_gathered),
	    TEST(failed_allocations_leak_nothing),
	};
	return RUN_TESTS(argc, argv, cases);
}
