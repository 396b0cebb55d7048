/* Dot products on edges (sddmm_dot) in every shape that one of the kernels treats differently:
 * widths and heads around the sizes of a chunk, batches of edges of one row and of many rows, rows
 * that begin or end inside a batch, and the transposed graph, where a map says which edge an entry
 * belongs to. Padding, other rows and other columns hold NaN and infinity, and no result may depend
 * on them. */
#include <math.h>
#include <stdlib.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/csr.h"
#include "graphs.h"
#include "kernels/kernels.h"
#include "precision/bound.h"

enum { ROWS = 300, COLS = 200, LONG_ROW = 150, BAD_ROW = 21, BAD_COL = 7 };

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr, transposed;
	struct host_csr host;
	float row_scale[ROWS], col_scale[COLS];
	struct hg__buffer r, s;
};

/* Rows of 0 to 3 edges, of 9, of 40, and one of 900: a batch of 32 edges belongs to 1 row, to a
 * few, or to about 30. */
static int64_t degree(int64_t i)
{
	return i == LONG_ROW ? 900 : i % 37 == 20 ? 40 : i > 250 ? 9 : i % 4;
}

static void scene_open(struct scene *s)
{
	s->ctx = test_context();
	struct coo edges = coo_empty(ROWS, COLS);
	for (int64_t i = 0; i < ROWS; i++)
		for (int64_t k = 0; k < degree(i); k++)
			coo_add(&edges, i, (i * 31 + k * 17) % COLS);
	for (int i = 0; i < ROWS; i++)
		s->row_scale[i] = 0.5f + (float)test_uniform();
	for (int j = 0; j < COLS; j++)
		s->col_scale[j] = 0.5f + (float)test_uniform();
	s->graph = coo_graph(s->ctx, edges);
	s->host = host_csr_download(s->ctx, s->graph);
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	CHECK_OK(hg__graph_csr_t(s->graph, 1, &s->transposed));
	CHECK_OK(hg__buffer_upload(s->ctx, ROWS, sizeof(float), s->row_scale, "r", &s->r));
	CHECK_OK(hg__buffer_upload(s->ctx, COLS, sizeof(float), s->col_scale, "s", &s->s));
}

static void scene_close(struct scene *s)
{
	hg__buffer_free(s->ctx, &s->r);
	hg__buffer_free(s->ctx, &s->s);
	host_csr_free(&s->host);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
}

/* A random matrix with the number `worst` in row `bad`, and NaN in all its padding. `exact` [rows,
 * cols] gets the numbers as they are stored. */
static hg_tensor *matrix(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols, int64_t bad,
                         float worst, double *exact)
{
	hg_tensor *t;
	CHECK_OK(hg_tensor_create(ctx, dtype, rows, cols, &t));
	const int64_t ld = t->mat.ld;
	char *host = calloc((size_t)(rows * ld), hg_dtype_size(dtype));
	CHECK(host);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t c = 0; c < ld; c++) {
			const float x = c >= cols                   ? (float)NAN
			                : i == bad && c == cols / 2 ? worst
			                                            : (float)test_normal();
			const hg_half half = hg_half_from_float(x);
			if (dtype == HG_F16)
				((hg_half *)(void *)host)[i * ld + c] = half;
			else
				((float *)(void *)host)[i * ld + c] = x;
			if (c < cols)
				exact[i * cols + c] = (double)(dtype == HG_F16 ? hg_half_to_float(half) : x);
		}
	CHECK_OK(
	    ctx->backend->copy_in(ctx, t->mat.data, host, (size_t)(rows * ld) * hg_dtype_size(dtype)));
	free(host);
	return t;
}

struct shape {
	hg_dtype in, out;
	int64_t cols;
	int heads, scaled;
};

/* Compares one result, `found` of head k, with the dot product of the rows a and b in f64. */
static void check_edge(const struct shape *shape, const double *a, const double *b, double factor,
                       double found, int64_t k)
{
	const int64_t d = shape->cols / shape->heads;
	double sum = 0, magnitude = 0;
	for (int64_t c = k * d; c < (k + 1) * d; c++) {
		sum += a[c] * b[c];
		magnitude += fabs(a[c] * b[c]);
	}
	if (!isfinite(sum)) {
		CHECK_MSG(!isfinite(found), "%d columns, %d heads: %g where it is not finite",
		          (int)shape->cols, shape->heads, found);
		return;
	}
	const double bound = hg__bound_sum(shape->out, hg__depth_dot(shape->in, (double)d) + 3,
	                                   fabs(factor) * magnitude, factor * sum);
	CHECK_MSG(fabs(found - factor * sum) <= bound, "%d columns, %d heads: %g, expected %g +- %g",
	          (int)shape->cols, shape->heads, found, factor * sum, bound);
}

/* One call of the kernel on `csr`, whose rows are those of A: the graph, or its transpose. Compares
 * every edge. */
static void check_call(const struct scene *s, const struct hg__csr *csr, int transposed,
                       const struct shape *shape)
{
	const int64_t rows = csr->rows, cols = csr->cols, d = shape->cols;
	double *x = calloc((size_t)(rows * d), sizeof *x), *y = calloc((size_t)(cols * d), sizeof *y);
	float *found = calloc((size_t)(csr->m * shape->heads), sizeof *found);
	hg_tensor *e;
	CHECK(x && y && found);
	hg_tensor *a = matrix(s->ctx, shape->in, rows, d, transposed ? BAD_COL : BAD_ROW, INFINITY, x);
	hg_tensor *b =
	    matrix(s->ctx, shape->in, cols, d, transposed ? BAD_ROW : BAD_COL, (float)NAN, y);
	CHECK_OK(hg_tensor_create(s->ctx, shape->out, csr->m, shape->heads, &e));
	const struct hg__sddmm_dot_args args = {
	    .csr = *csr,
	    .a = a->mat,
	    .b = b->mat,
	    .e = e->mat,
	    .heads = shape->heads,
	    .scale = 0.25f,
	    .row_scale = shape->scaled ? transposed ? s->s.data : s->r.data : NULL,
	    .col_scale = shape->scaled ? transposed ? s->r.data : s->s.data : NULL};
	CHECK_OK(s->ctx->backend->kernels->sddmm_dot.run(s->ctx, &args));
	CHECK_OK(hg_tensor_download(e, found, HG_F32));
	for (int64_t p = 0; p < s->host.m; p++) {
		const int64_t i = s->host.row[p], j = s->host.col[p];
		const double *left = x + (transposed ? j : i) * d, *right = y + (transposed ? i : j) * d;
		const double factor =
		    0.25 * (shape->scaled ? (double)s->row_scale[i] * (double)s->col_scale[j] : 1.0);
		for (int64_t k = 0; k < shape->heads; k++)
			check_edge(shape, left, right, factor, (double)found[p * shape->heads + k], k);
	}
	hg_tensor_free(a);
	hg_tensor_free(b);
	hg_tensor_free(e);
	free(x);
	free(y);
	free(found);
}

static const struct shape shapes[] = {
    {HG_F16, HG_F16, 1, 1, 0},   {HG_F16, HG_F16, 8, 1, 0},   {HG_F16, HG_F16, 31, 1, 1},
    {HG_F16, HG_F16, 32, 1, 0},  {HG_F16, HG_F32, 32, 1, 1},  {HG_F16, HG_F16, 33, 1, 0},
    {HG_F16, HG_F16, 47, 1, 0},  {HG_F16, HG_F16, 64, 1, 0},  {HG_F16, HG_F32, 64, 1, 1},
    {HG_F16, HG_F16, 65, 1, 0},  {HG_F16, HG_F16, 100, 1, 0}, {HG_F16, HG_F16, 128, 1, 0},
    {HG_F16, HG_F32, 128, 1, 1}, {HG_F16, HG_F16, 129, 1, 0}, {HG_F16, HG_F16, 300, 1, 0},
    {HG_F16, HG_F16, 64, 2, 0},  {HG_F16, HG_F16, 288, 3, 1}, {HG_F16, HG_F16, 64, 8, 0},
    {HG_F16, HG_F16, 60, 5, 0},  {HG_F16, HG_F16, 192, 1, 0}, {HG_F32, HG_F32, 7, 1, 0},
    {HG_F32, HG_F32, 64, 1, 1},  {HG_F32, HG_F32, 300, 1, 0}, {HG_F32, HG_F32, 64, 4, 0},
};

static void dots_of_every_shape(void)
{
	static struct scene s;
	scene_open(&s);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		check_call(&s, &s.csr, 0, &shapes[i]);
		check_call(&s, &s.transposed, 1, &shapes[i]);
	}
	scene_close(&s);
}

/* In a large graph a work item has thousands of edges. Here the test itself makes a plan that gives
 * the small graph such items: one with all edges, or two that share the long row. */
static void dots_in_items_of_many_edges(void)
{
	static struct scene s;
	scene_open(&s);
	const int64_t cut = s.host.rowptr[LONG_ROW] + 333,
	              edges[2][3] = {{0, s.csr.m, 0}, {0, cut, s.csr.m}};
	const int32_t rows[2][3] = {{0, ROWS, 0}, {0, LONG_ROW, ROWS}};
	for (int k = 0; k < 2; k++) {
		struct hg__buffer edge, row;
		CHECK_OK(hg__buffer_upload(s.ctx, 3, sizeof(int64_t), edges[k], "items", &edge));
		CHECK_OK(hg__buffer_upload(s.ctx, 3, sizeof(int32_t), rows[k], "items", &row));
		const struct hg__plan plan = {.items = k + 1, .item_edge = edge.data, .item_row = row.data};
		struct hg__csr csr = s.csr;
		csr.plan = &plan;
		for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
			check_call(&s, &csr, 0, &shapes[i]);
		hg__buffer_free(s.ctx, &edge);
		hg__buffer_free(s.ctx, &row);
	}
	scene_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(dots_of_every_shape),
	                                         TEST(dots_in_items_of_many_edges)};
	return RUN_TESTS(argc, argv, cases);
}
