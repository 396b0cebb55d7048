/* An aggregation of halves can store its sums in f32. Narrowed, they are the bits that it stores in
 * halves. */
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/csr.h"
#include "graphs.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "precision/bound.h"

/* A graph with rows of 0 to 8 edges. `hub`: the edges of row 1, which may be more than an item
 * has. */
static hg_graph *ragged(hg_context *ctx, int64_t rows, int64_t hub)
{
	struct coo edges = coo_empty(rows, rows);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < (i == 1 ? hub : i * 7 % 9); k++)
			coo_add(&edges, i, (i * 131 + k * 17) % rows);
	return coo_graph(ctx, edges);
}

static hg_tensor *random_matrix(hg_context *ctx, int64_t rows, int64_t cols)
{
	float *host = malloc((size_t)(rows * cols) * sizeof *host);
	hg_tensor *t;
	CHECK(host);
	for (int64_t k = 0; k < rows * cols; k++)
		host[k] = (float)test_normal();
	CHECK_OK(hg_tensor_create(ctx, HG_F16, rows, cols, &t));
	CHECK_OK(hg_tensor_upload(t, host, HG_F32));
	free(host);
	return t;
}

static void check(hg_context *ctx, int64_t rows, int64_t hub, int64_t cols, int weighted)
{
	hg_graph *graph = ragged(ctx, rows, hub);
	struct hg__csr csr;
	CHECK_OK(hg__graph_csr(graph, &csr));
	hg_tensor *x = random_matrix(ctx, rows, cols), *w = random_matrix(ctx, csr.m, 1), *half, *full;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, rows, cols, &half));
	CHECK_OK(hg_tensor_create(ctx, HG_F32, rows, cols, &full));
	struct hg__spmm_args args = {.csr = csr,
	                             .x = x->mat,
	                             .y = half->mat,
	                             .heads = weighted,
	                             .alpha = 0.5f,
	                             .accumulate = HG_ACC_F32};
	if (weighted)
		args.w = w->mat;
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &args));
	args.y = full->mat;
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &args));
	float *narrowed = malloc((size_t)(rows * cols) * sizeof *narrowed),
	      *sums = malloc((size_t)(rows * cols) * sizeof *sums);
	CHECK(narrowed && sums);
	CHECK_OK(hg_tensor_download(half, narrowed, HG_F32));
	CHECK_OK(hg_tensor_download(full, sums, HG_F32));
	int64_t finer = 0;
	for (int64_t k = 0; k < rows * cols; k++) {
		const float expected = hg_half_to_float(hg_half_from_float(sums[k]));
		CHECK_MSG(memcmp(&narrowed[k], &expected, sizeof expected) == 0,
		          "%lld rows, %lld columns, element %lld: %g and %g", (long long)rows,
		          (long long)cols, (long long)k, (double)narrowed[k], (double)sums[k]);
		finer += sums[k] != expected;
	}
	CHECK(finer > 0);
	free(narrowed);
	free(sums);
	hg_tensor_free(x);
	hg_tensor_free(w);
	hg_tensor_free(half);
	hg_tensor_free(full);
	hg_graph_free(graph);
}

/* Small graphs, whose rows are not split; one with a split row; and one with more rows. */
static void narrowed_f32_sums_are_the_halves(void)
{
	static const int64_t widths[] = {1, 3, 8, 41, 64, 130};
	hg_context *ctx = test_context();
	for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++)
		for (int weighted = 0; weighted < 2; weighted++) {
			check(ctx, 300, 60, widths[k], weighted);
			check(ctx, 9000, 3000, widths[k], weighted);
		}
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(narrowed_f32_sums_are_the_halves)};
	return RUN_TESTS(argc, argv, cases);
}
