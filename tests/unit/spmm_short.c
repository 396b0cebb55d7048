/* Aggregation on a graph of many short rows, for which a GPU has kernels of its own, compared with
 * f64: with weights, factors of rows and columns, heads, and an epilogue, in both orientations. */
#include <math.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/context.h"
#include "core/csr.h"
#include "graphs.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "oracle/num.h"

/* With four lanes or more for each row these are more lanes than the kernel for small graphs takes.
 * One row is much longer than the others. */
enum { NODES = 20000, LONG = 40, HEADS = 2 };

enum { NONE, HALF, FULL, BY_HEAD };

struct row {
	int64_t cols;
	hg_dtype state;
	int weights, scaled, scale_first, epilogue, backward;
};

struct matrix {
	hg_tensor *tensor;
	float *at;
	int64_t cols;
};

static struct matrix matrix_new(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct matrix m = {.at = calloc((size_t)(rows * cols) + 1, sizeof *m.at), .cols = cols};
	CHECK(m.at != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		m.at[i] = (float)test_normal();
	CHECK_OK(hg_tensor_create(ctx, dtype, rows, cols, &m.tensor));
	CHECK_OK(hg_tensor_upload(m.tensor, m.at, HG_F32));
	CHECK_OK(hg_tensor_download(m.tensor, m.at, HG_F32)); /* as it was rounded */
	return m;
}

static void matrix_free(struct matrix *m)
{
	hg_tensor_free(m->tensor);
	free(m->at);
}

static struct hg__mat mat(const struct matrix *m)
{
	return m->tensor ? m->tensor->mat : (struct hg__mat){0};
}

static double at(const struct matrix *m, int64_t row, int64_t col)
{
	return (double)m->at[row * m->cols + col];
}

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	struct coo edges;
	struct matrix x, w, y, z, b, rows, cols;
};

static struct coo short_rows(void)
{
	struct coo edges = coo_empty(NODES, NODES);
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t k = i == 77 ? LONG : test_below(7); k > 0; k--)
			coo_add(&edges, i, test_below(NODES));
	return edges;
}

static void open_scene(struct scene *s, const struct row *r)
{
	const int heads = r->weights == BY_HEAD ? HEADS : 1;
	*s = (struct scene){.ctx = test_context(), .edges = short_rows()};
	s->graph = coo_to_graph(s->ctx, &s->edges);
	s->x = matrix_new(s->ctx, r->state, NODES, r->cols);
	s->y = matrix_new(s->ctx, r->state, NODES, r->cols);
	s->z = matrix_new(s->ctx, r->state, NODES, r->cols);
	s->b = matrix_new(s->ctx, r->state, 1, r->cols);
	s->rows = matrix_new(s->ctx, HG_F32, 1, NODES);
	s->cols = matrix_new(s->ctx, HG_F32, 1, NODES);
	if (r->weights)
		s->w = matrix_new(s->ctx, r->weights == FULL ? HG_F32 : r->state, s->edges.m, heads);
}

static void close_scene(struct scene *s)
{
	struct matrix *const all[] = {&s->x, &s->w, &s->y, &s->z, &s->b, &s->rows, &s->cols};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		matrix_free(all[i]);
	hg_graph_free(s->graph);
	coo_free(&s->edges);
	hg_context_free(s->ctx);
}

static void run(struct scene *s, const struct row *r, float beta)
{
	struct hg__spmm_args args = {.x = mat(&s->x),
	                             .w = mat(&s->w),
	                             .y = mat(&s->y),
	                             .heads = r->weights == BY_HEAD ? HEADS : 1,
	                             .alpha = 0.5f,
	                             .scale_first = r->scale_first};
	if (r->scaled) {
		args.row_scale = mat(&s->rows).data;
		args.col_scale = mat(&s->cols).data;
	}
	if (r->epilogue)
		args.epilogue = (struct hg__sum_epilogue){.z = mat(&s->z), .b = mat(&s->b), .beta = beta};
	if (r->epilogue > 1)
		args.epilogue.act_drop.act = 1 + HG__ACT_relu;
	if (r->backward)
		CHECK_OK(hg__graph_csr_t(s->graph, 1, &args.csr));
	else
		CHECK_OK(hg__graph_csr(s->graph, &args.csr));
	CHECK(args.csr.plan->splits == 0);
	CHECK_MSG(s->ctx->backend->kernels->spmm.run(s->ctx, &args) == HG_OK, "%s",
	          hg_context_error(s->ctx));
	CHECK_OK(hg_tensor_download(s->y.tensor, s->y.at, HG_F32));
}

/* Adds the terms of all edges to sum, their magnitudes to size and their number to count. */
static void add_edges(const struct scene *s, const struct row *r, double *sum, double *size,
                      double *count)
{
	const int64_t per_head = r->weights == BY_HEAD ? r->cols / HEADS : r->cols;
	int32_t *dst = malloc((size_t)s->edges.m * sizeof *dst),
	        *src = malloc((size_t)s->edges.m * sizeof *src);
	int64_t *rowptr = malloc((NODES + 1) * sizeof *rowptr);
	CHECK(dst && src && rowptr);
	CHECK_OK(hg_graph_download(s->graph, rowptr, src, NULL));
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t p = rowptr[i]; p < rowptr[i + 1]; p++)
			dst[p] = (int32_t)i;
	for (int64_t p = 0; p < s->edges.m; p++) {
		const int64_t to = r->backward ? src[p] : dst[p], from = r->backward ? dst[p] : src[p];
		for (int64_t c = 0; c < r->cols; c++) {
			double x = at(&s->x, from, c);
			if (r->scaled)
				x *= at(&s->cols, 0, from);
			if (r->scaled && r->scale_first) /* rounded to f32, and then as it is stored */
				x = r->state == HG_F16 ? (double)hg_half_to_float(hg_half_from_float((float)x))
				                       : (double)(float)x;
			const double term = x * (r->weights ? at(&s->w, p, c / per_head) : 1.0) * 0.5 *
			                    (r->scaled ? at(&s->rows, 0, to) : 1.0);
			sum[to * r->cols + c] += term;
			size[to * r->cols + c] += fabs(term);
		}
		count[to] += 1.0;
	}
	free(dst);
	free(src);
	free(rowptr);
}

static void check(const struct scene *s, const struct row *r, double beta)
{
	double *sum = calloc((size_t)(NODES * r->cols), sizeof *sum),
	       *size = calloc((size_t)(NODES * r->cols), sizeof *size),
	       *count = calloc(NODES, sizeof *count);
	const double u = r->state == HG_F16 ? ORACLE_U16 : ORACLE_U32;
	CHECK(sum && size && count);
	add_edges(s, r, sum, size, count);
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t c = 0; c < r->cols; c++) {
			double y = sum[i * r->cols + c], all = size[i * r->cols + c];
			if (r->epilogue) {
				const double z = beta * at(&s->z, i, c), b = at(&s->b, 0, c);
				y += z + b;
				all += fabs(z) + fabs(b);
			}
			y = r->epilogue > 1 && y < 0.0 ? 0.0 : y;
			/* a fused multiplication and addition for each edge, and a few more operations */
			const double depth = count[i] + 8.0,
			             error = depth * ORACLE_U32 / (1.0 - depth * ORACLE_U32) * all;
			CHECK_MSG(fabs(at(&s->y, i, c) - y) <= error + u * (fabs(y) + error) + 0x1p-25,
			          "row %lld, column %lld: %.9g, exactly %.9g", (long long)i, (long long)c,
			          at(&s->y, i, c), y);
		}
	free(sum);
	free(size);
	free(count);
}

static void short_rows_are_within_their_bound(void)
{
	static const struct row rows[] = {
	    {64, HG_F16, NONE, 0, 0, 0, 0},    {64, HG_F16, NONE, 0, 0, 1, 0},
	    {64, HG_F16, NONE, 0, 0, 2, 1},    {32, HG_F16, NONE, 1, 1, 1, 0},
	    {32, HG_F16, NONE, 1, 0, 0, 0},    {8, HG_F16, HALF, 0, 0, 0, 0},
	    {72, HG_F16, HALF, 0, 0, 1, 1},    {130, HG_F16, FULL, 1, 0, 0, 0},
	    {64, HG_F16, BY_HEAD, 0, 0, 0, 1}, {47, HG_F16, NONE, 1, 1, 2, 0},
	    {40, HG_F32, NONE, 0, 0, 2, 0},    {64, HG_F32, FULL, 1, 0, 1, 1},
	    {256, HG_F16, NONE, 0, 0, 1, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct scene s;
		test_reseed(70 + (uint64_t)i);
		open_scene(&s, &rows[i]);
		run(&s, &rows[i], -1.5f);
		check(&s, &rows[i], -1.5);
		close_scene(&s);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(short_rows_are_within_their_bound)};
	return RUN_TESTS(argc, argv, cases);
}
