/* Batch norm of a matrix in which only the first rows count (hg__batch_norm_args.live): it is that
 * of these rows alone, whatever the others hold. And the gradient of a readout in which some rows
 * belong to no graph. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/mat.h"
#include "harness.h"
#include "kernels/kernels.h"

/* The operands of both passes over one matrix [rows, cols]. */
struct norm {
	int64_t rows, cols;
	hg_tensor *x, *y, *dy, *dx, *gamma, *beta, *mean, *rstd, *running_mean, *running_var;
	hg_tensor *dgamma, *dbeta;
};

enum { TENSORS = 12 };

static void norm_list(struct norm *n, hg_tensor **list[TENSORS])
{
	hg_tensor **const all[TENSORS] = {&n->x,      &n->y,           &n->dy,           &n->dx,
	                                  &n->gamma,  &n->beta,        &n->mean,         &n->rstd,
	                                  &n->dgamma, &n->running_var, &n->running_mean, &n->dbeta};
	memcpy(list, all, sizeof all);
}

static void norm_open(struct norm *n, hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols)
{
	hg_tensor **list[TENSORS];
	n->rows = rows;
	n->cols = cols;
	norm_list(n, list);
	for (int k = 0; k < TENSORS; k++)
		CHECK_OK(hg_tensor_create(ctx, k < 4 ? dtype : HG_F32, k < 4 ? rows : 1, cols, list[k]));
}

static void norm_close(struct norm *n)
{
	hg_tensor **list[TENSORS];
	norm_list(n, list);
	for (int k = 0; k < TENSORS; k++)
		hg_tensor_free(*list[k]);
}

static double gamma_of(int64_t column)
{
	return 1.0 + (double)(column % 3) / 4.0;
}
static double beta_of(int64_t column)
{
	return (double)(column % 5) / 8.0 - 0.25;
}

/* Rows from `live` on are NaN. */
static void put_rows(hg_tensor *t, int64_t rows, int64_t live, int64_t cols, const float *values)
{
	float *host = malloc((size_t)(rows * cols) * sizeof *host);
	CHECK(host);
	for (int64_t k = 0; k < rows * cols; k++)
		host[k] = k < live * cols ? values[k] : (float)NAN;
	CHECK_OK(hg_tensor_upload(t, host, HG_F32));
	free(host);
}

static void norm_run(struct norm *n, hg_context *ctx, int64_t live, const int64_t *device_live,
                     int relu, const float *x, const float *dy)
{
	const struct hg__kernels *k = ctx->backend->kernels;
	float row[4][512];
	CHECK(n->cols <= 512);
	for (int64_t c = 0; c < n->cols; c++) {
		row[0][c] = (float)gamma_of(c);
		row[1][c] = (float)beta_of(c);
		row[2][c] = 0.5f;
		row[3][c] = 2.0f;
	}
	put_rows(n->x, n->rows, live, n->cols, x);
	put_rows(n->dy, n->rows, live, n->cols, dy);
	hg_tensor *const of[] = {n->gamma, n->beta, n->running_mean, n->running_var};
	for (int i = 0; i < 4; i++)
		CHECK_OK(hg_tensor_upload(of[i], row[i], HG_F32));
	const struct hg__batch_norm_args forward = {.x = n->x->mat,
	                                            .gamma = n->gamma->mat,
	                                            .beta = n->beta->mat,
	                                            .y = n->y->mat,
	                                            .mean = n->mean->mat,
	                                            .rstd = n->rstd->mat,
	                                            .running_mean = n->running_mean->mat,
	                                            .running_var = n->running_var->mat,
	                                            .momentum = 0.25f,
	                                            .eps = 1e-5f,
	                                            .train = 1,
	                                            .relu = relu,
	                                            .live = device_live};
	const struct hg__batch_norm_back_args back = {.x = n->x->mat,
	                                              .gamma = n->gamma->mat,
	                                              .mean = n->mean->mat,
	                                              .rstd = n->rstd->mat,
	                                              .dy = n->dy->mat,
	                                              .dx = n->dx->mat,
	                                              .dgamma = n->dgamma->mat,
	                                              .dbeta = n->dbeta->mat,
	                                              .beta = n->beta->mat,
	                                              .relu = relu,
	                                              .live = device_live};
	CHECK_OK(k->batch_norm.run(ctx, &forward));
	CHECK_OK(k->batch_norm_back.run(ctx, &back));
}

/* The largest element; every one is finite. */
static double largest(const float *x, int64_t count)
{
	double most = 0.0;
	for (int64_t k = 0; k < count; k++) {
		CHECK(isfinite(x[k]));
		most = fmax(most, fabs((double)x[k]));
	}
	return most;
}

/* The first `rows` rows of both are the same, up to the order of sums over them, and the others of
 * `padded` are 0. */
static void check_rows(const char *what, const hg_tensor *padded, const hg_tensor *alone)
{
	const int64_t all = hg_tensor_rows(padded), rows = hg_tensor_rows(alone),
	              cols = hg_tensor_cols(padded);
	const double u = hg_tensor_dtype(padded) == HG_F16 ? 0x1p-10 : 0x1p-23;
	float *a = malloc((size_t)(all * cols) * sizeof *a),
	      *b = malloc((size_t)(rows * cols + 1) * sizeof *b);
	CHECK(a && b);
	CHECK_OK(hg_tensor_download(padded, a, HG_F32));
	if (rows)
		CHECK_OK(hg_tensor_download(alone, b, HG_F32));
	const double bound =
	    (u + 0x1p-23 * sqrt((double)all + 64.0) * 4.0) * fmax(1.0, largest(b, rows * cols));
	for (int64_t k = 0; k < rows * cols; k++)
		CHECK_MSG(fabs((double)a[k] - (double)b[k]) <= bound, "%s [%lld, %lld] of %lld: %g, %g",
		          what, (long long)rows, (long long)cols, (long long)k, (double)a[k], (double)b[k]);
	for (int64_t k = rows * cols; k < all * cols; k++)
		CHECK_MSG(a[k] == 0.0f, "%s [%lld of %lld, %lld]: row %lld is %g", what, (long long)rows,
		          (long long)all, (long long)cols, (long long)(k / cols), (double)a[k]);
	free(a);
	free(b);
}

/* Values that halves hold. Where relu is near its bend dY is 0: there the order of sums decides
 * whether it counts. */
static void make_rows(int64_t rows, int64_t live, int64_t cols, float *x, float *dy)
{
	for (int64_t k = 0; k < rows * cols; k++) {
		x[k] = hg_half_to_float(hg_half_from_float((float)(k % cols % 7) + (float)test_normal()));
		dy[k] = hg_half_to_float(hg_half_from_float((float)test_normal()));
	}
	for (int64_t c = 0; c < cols; c++) {
		double mean = 0.0, squares = 0.0;
		for (int64_t r = 0; r < live; r++)
			mean += (double)x[r * cols + c] / (double)live;
		for (int64_t r = 0; r < live; r++)
			squares += pow((double)x[r * cols + c] - mean, 2.0) / (double)live;
		for (int64_t r = 0; r < live; r++)
			if (fabs(gamma_of(c) * ((double)x[r * cols + c] - mean) / sqrt(squares + 1e-5) +
			         beta_of(c)) < 1e-3)
				dy[r * cols + c] = 0.0f;
	}
}

static void check(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t live, int64_t cols,
                  int relu)
{
	struct norm padded, alone;
	struct hg__buffer count = {0};
	float *x = malloc((size_t)(rows * cols) * sizeof *x),
	      *dy = malloc((size_t)(rows * cols) * sizeof *dy);
	CHECK(x && dy);
	make_rows(rows, live, cols, x, dy);
	CHECK_OK(hg__buffer_upload(ctx, 1, sizeof live, &live, "live", &count));
	norm_open(&padded, ctx, dtype, rows, cols);
	norm_open(&alone, ctx, dtype, live, cols);
	norm_run(&padded, ctx, live, count.data, relu, x, dy);
	norm_run(&alone, ctx, live, NULL, relu, x, dy);
	check_rows("y", padded.y, alone.y);
	check_rows("dx", padded.dx, alone.dx);
	check_rows("mean", padded.mean, alone.mean);
	check_rows("rstd", padded.rstd, alone.rstd);
	check_rows("running mean", padded.running_mean, alone.running_mean);
	check_rows("running variance", padded.running_var, alone.running_var);
	check_rows("dgamma", padded.dgamma, alone.dgamma);
	check_rows("dbeta", padded.dbeta, alone.dbeta);
	norm_close(&padded);
	norm_close(&alone);
	hg__buffer_free(ctx, &count);
	free(x);
	free(dy);
}

/* Few rows, which a GPU keeps in registers, up to many, which it sums in parts, of which some have
 * no row that counts. */
static void batch_norm_is_that_of_the_rows_that_count(void)
{
	static const int64_t rows[] = {2, 40, 700, 5000, 70000}, cols[] = {1, 5, 8, 64, 200};
	hg_context *ctx = test_context();
	for (int r = 0; r < 5; r++)
		for (int c = 0; c < 5; c++) {
			const int64_t n = rows[r], live[] = {n - 1, 1, (n + 1) / 2, n};
			for (int k = 0; k < 4 && n * cols[c] < 5000000; k++)
				for (int part = 0; part < (n * cols[c] > 500000 ? 1 : 4); part++)
					check(ctx, k % 2 ? HG_F16 : HG_F32, n, live[part], cols[c], k / 2);
		}
	hg_context_free(ctx);
}

/* All graphs of a batch may be without nodes. */
static void no_row_counts(void)
{
	hg_context *ctx = test_context();
	static const int64_t rows[] = {3, 5000, 70000};
	for (int r = 0; r < 3; r++)
		for (int k = 0; k < 2; k++) {
			struct norm n;
			struct hg__buffer count = {0};
			const int64_t live = 0;
			float zero[8], stored[8];
			CHECK_OK(hg__buffer_upload(ctx, 1, sizeof live, &live, "live", &count));
			norm_open(&n, ctx, k ? HG_F16 : HG_F32, rows[r], 8);
			norm_run(&n, ctx, 0, count.data, 1, NULL, NULL);
			hg_tensor *const zeros[] = {n.y, n.dx};
			for (int i = 0; i < 2; i++) {
				float *host = malloc((size_t)rows[r] * 8 * sizeof *host);
				CHECK(host);
				CHECK_OK(hg_tensor_download(zeros[i], host, HG_F32));
				CHECK(largest(host, rows[r] * 8) == 0.0);
				free(host);
			}
			hg_tensor *const sums[] = {n.dgamma, n.dbeta};
			for (int i = 0; i < 2; i++) {
				CHECK_OK(hg_tensor_download(sums[i], zero, HG_F32));
				CHECK(largest(zero, 8) == 0.0);
			}
			CHECK_OK(hg_tensor_download(n.running_mean, stored, HG_F32));
			for (int c = 0; c < 8; c++)
				CHECK(stored[c] == 0.5f);
			norm_close(&n);
			hg__buffer_free(ctx, &count);
		}
	hg_context_free(ctx);
}

/* Graphs of 3, 0 and 2 nodes, and rows behind them. */
static void rows_of_no_graph_get_no_gradient(void)
{
	enum { ROWS = 9, GRAPHS = 3 };
	static const int64_t ptr[GRAPHS + 1] = {0, 3, 3, 5}, widths[] = {1, 8, 20};
	static const int32_t id[ROWS] = {0, 0, 0, 2, 2, -1, -1, -1, -1};
	hg_context *ctx = test_context();
	for (int k = 0; k < 18; k++) {
		const int64_t cols = widths[k % 3];
		const hg_reduce reduce = (hg_reduce)(k / 3 % 3);
		const hg_dtype dtype = k / 9 ? HG_F16 : HG_F32;
		struct hg__buffer at = {0}, of = {0};
		hg_tensor *dy, *dx, *arg;
		float host[ROWS * 20];
		int32_t place[GRAPHS * 20];
		CHECK_OK(hg__buffer_upload(ctx, GRAPHS + 1, sizeof *ptr, ptr, "ptr", &at));
		CHECK_OK(hg__buffer_upload(ctx, ROWS, sizeof *id, id, "id", &of));
		CHECK_OK(hg_tensor_create(ctx, dtype, GRAPHS, cols, &dy));
		CHECK_OK(hg_tensor_create(ctx, dtype, ROWS, cols, &dx));
		CHECK_OK(hg_tensor_create(ctx, HG_I32, GRAPHS, cols, &arg));
		for (int64_t i = 0; i < GRAPHS * cols; i++) {
			host[i] = 6.0f + (float)(i % 4);
			place[i] = i / cols == 1 ? -1 : (int32_t)(i % 2);
		}
		CHECK_OK(hg_tensor_upload(dy, host, HG_F32));
		CHECK_OK(hg_tensor_upload(arg, place, HG_I32));
		for (int64_t i = 0; i < ROWS * cols; i++)
			host[i] = (float)NAN;
		CHECK_OK(hg_tensor_upload(dx, host, HG_F32));
		const struct hg__readout_back_args args = {.ptr = at.data,
		                                           .id = of.data,
		                                           .dy = dy->mat,
		                                           .arg = arg->mat,
		                                           .dx = dx->mat,
		                                           .reduce = reduce};
		CHECK_OK(ctx->backend->kernels->readout_back.run(ctx, &args));
		CHECK_OK(hg_tensor_download(dx, host, HG_F32));
		for (int64_t i = 0; i < ROWS * cols; i++) {
			const int64_t row = i / cols, g = id[row], c = i % cols;
			const float value = g < 0 ? 0.0f : 6.0f + (float)((g * cols + c) % 4);
			const float size = g < 0 ? 1.0f : (float)(ptr[g + 1] - ptr[g]);
			const int wins = g >= 0 && (g * cols + c) % 2 == row - ptr[g];
			const float expected = reduce == HG_REDUCE_SUM    ? value
			                       : reduce == HG_REDUCE_MEAN ? value / size
			                       : wins                     ? value
			                                                  : 0.0f;
			CHECK_WITHIN(host[i], expected, 0x1p-9 * expected);
		}
		hg_tensor_free(dy);
		hg_tensor_free(dx);
		hg_tensor_free(arg);
		hg__buffer_free(ctx, &at);
		hg__buffer_free(ctx, &of);
	}
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(batch_norm_is_that_of_the_rows_that_count),
	    TEST(no_row_counts),
	    TEST(rows_of_no_graph_get_no_gradient),
	};
	return RUN_TESTS(argc, argv, cases);
}
