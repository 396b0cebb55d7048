#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/buffer.h"
#include "core/context.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "oracle/num.h"

/* The products of layers on matrices of many rows, for which there are kernels of their own,
 * compared with f64, also with a batch norm that they compute on the way. The padding of every
 * operand is NaN, which must not count. */

/* The two short sides of the products: combinations of numbers of packs, of chunks of 32 and of
 * tiles of 64. Beyond 128 the product is cuBLASLt's. */
static const int64_t sides[][2] = {{3, 3},   {8, 47},  {33, 8},   {47, 47},  {47, 64},   {64, 47},
                                   {64, 64}, {72, 33}, {100, 64}, {64, 100}, {128, 128}, {97, 136}};
enum { PAIRS = sizeof sides / sizeof sides[0], TALL = 4096 };

/* A matrix that is stored in whole packs of 8 columns, of which only `cols` are its own. */
struct matrix {
	hg_tensor *tensor;
	struct hg__mat mat;
	float *at; /* [rows, mat.ld], rounded to halves */
};

static struct matrix matrix_new(hg_context *ctx, hg_dtype dtype, int64_t rows, int64_t cols)
{
	const int64_t whole = (cols + 7) / 8 * 8;
	struct matrix m = {.at = calloc((size_t)(rows * whole), sizeof *m.at)};
	CHECK(m.at != NULL);
	for (int64_t i = 0; i < rows * whole; i++)
		m.at[i] =
		    i % whole < cols ? hg_half_to_float(hg_half_from_float((float)test_normal())) : NAN;
	CHECK_OK(hg_tensor_create(ctx, dtype, rows, whole, &m.tensor));
	CHECK_OK(hg_tensor_upload(m.tensor, m.at, HG_F32));
	m.mat = m.tensor->mat;
	m.mat.cols = cols;
	return m;
}

static void matrix_free(struct matrix *m)
{
	hg_tensor_free(m->tensor);
	free(m->at);
}

struct product {
	struct matrix a, b, c, bias, sums;
	int trans_a, trans_b;
	struct hg__normalise normalise;
	const float *stands_for; /* what A stands for if it is normalised */
};

/* Compares element (i, j), a sum that is narrowed once, with f64. */
static void check_element(const struct product *p, int64_t i, int64_t j)
{
	const int64_t lda = p->a.mat.ld, ldb = p->b.mat.ld,
	              inner = p->trans_a ? p->a.mat.rows : p->a.mat.cols;
	const float *a = p->stands_for ? p->stands_for : p->a.at;
	double sum = p->bias.at ? (double)p->bias.at[j] : 0, magnitude = fabs(sum);
	for (int64_t k = 0; k < inner; k++) {
		const double term = (double)a[p->trans_a ? k * lda + i : i * lda + k] *
		                    (double)p->b.at[p->trans_b ? j * ldb + k : k * ldb + j];
		sum += term;
		magnitude += fabs(term);
	}
	const double depth = ((double)inner + 1) * ORACLE_U32, error = depth / (1 - depth) * magnitude;
	CHECK_WITHIN(p->c.at[i * p->c.mat.ld + j], sum,
	             error + (p->c.mat.dtype == HG_F16 ? ORACLE_U16 * (fabs(sum) + error) + 0x1p-25
	                                               : ORACLE_U32 * (fabs(sum) + error)));
}

static void check_sums(const struct product *p)
{
	const int64_t n = p->b.mat.rows;
	for (int64_t j = 0; j < p->b.mat.cols; j++) {
		double sum = 0, magnitude = 0;
		for (int64_t r = 0; r < n; r++) {
			sum += (double)p->b.at[r * p->b.mat.ld + j];
			magnitude += fabs((double)p->b.at[r * p->b.mat.ld + j]);
		}
		const double depth = (double)n * ORACLE_U32;
		CHECK_WITHIN(p->sums.at[j], sum, depth / (1 - depth) * magnitude);
	}
}

/* Runs the product twice, which must give the same bits. Then compares every element of a C with
 * few rows, and some of a tall one. */
static void run(hg_context *ctx, struct product *p)
{
	const struct hg__gemm_args args = {.a = p->a.mat,
	                                   .b = p->b.mat,
	                                   .c = p->c.mat,
	                                   .bias = p->bias.mat,
	                                   .sums = p->sums.mat,
	                                   .trans_a = p->trans_a,
	                                   .trans_b = p->trans_b,
	                                   .normalise = p->normalise};
	const int64_t ld = p->c.mat.ld, count = p->c.mat.rows * ld;
	float *first = calloc((size_t)count, sizeof *first);
	CHECK_OK(ctx->backend->kernels->gemm.run(ctx, &args));
	CHECK_OK(hg_tensor_download(p->c.tensor, first, HG_F32));
	CHECK_OK(ctx->backend->kernels->gemm.run(ctx, &args));
	CHECK_OK(hg_tensor_download(p->c.tensor, p->c.at, HG_F32));
	for (int64_t i = 0; i < count; i++)
		CHECK(i % ld >= p->c.mat.cols || first[i] == p->c.at[i]);
	free(first);
	const int64_t step = p->c.mat.rows < TALL ? 1 : 7;
	for (int64_t i = p->c.mat.rows - 1; i >= 0; i -= step)
		for (int64_t j = 0; j < p->c.mat.cols; j += 1 + (p->trans_a && i % 2) * 5)
			check_element(p, i, j);
	if (p->sums.at) {
		CHECK_OK(hg_tensor_download(p->sums.tensor, p->sums.at, HG_F32));
		check_sums(p);
	}
}

static void product_free(struct product *p)
{
	matrix_free(&p->a);
	matrix_free(&p->b);
	matrix_free(&p->c);
	matrix_free(&p->bias);
	matrix_free(&p->sums);
}

/* The last step of 16 rows is full, or has 11 rows. */
static int64_t rows_of(int i)
{
	return i % 2 ? TALL : TALL + 907;
}

static void outputs_are_within_their_bound(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < PAIRS; i++) {
		const int64_t n = rows_of(i), k = sides[i][0], d = sides[i][1];
		test_reseed((uint64_t)i);
		struct product p = {.a = matrix_new(ctx, HG_F16, n, k),
		                    .b = matrix_new(ctx, HG_F16, k, d),
		                    .c = matrix_new(ctx, HG_F16, n, d)};
		if (i % 3)
			p.bias = matrix_new(ctx, HG_F16, 1, d);
		run(ctx, &p);
		product_free(&p);
	}
	hg_context_free(ctx);
}

static void gradients_of_inputs_are_within_their_bound(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < PAIRS; i++) {
		const int64_t n = rows_of(i + 1), k = sides[i][0], d = sides[i][1];
		test_reseed(100 + (uint64_t)i);
		struct product p = {.a = matrix_new(ctx, HG_F16, n, d),
		                    .b = matrix_new(ctx, HG_F16, k, d),
		                    .c = matrix_new(ctx, HG_F16, n, k),
		                    .trans_b = 1};
		run(ctx, &p);
		product_free(&p);
	}
	hg_context_free(ctx);
}

static void gradients_of_weights_are_within_their_bound(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < PAIRS; i++) {
		const int64_t n = rows_of(i), k = sides[i][0], d = sides[i][1];
		test_reseed(200 + (uint64_t)i);
		struct product p = {.a = matrix_new(ctx, HG_F16, n, k),
		                    .b = matrix_new(ctx, HG_F16, n, d),
		                    .c = matrix_new(ctx, i % 4 ? HG_F32 : HG_F16, k, d),
		                    .trans_a = 1};
		if (i % 3)
			p.sums = matrix_new(ctx, HG_F32, 1, d);
		run(ctx, &p);
		product_free(&p);
	}
	hg_context_free(ctx);
}

/* ---- products that normalise A ---- */

/* The rows of a matrix of statistics and parameters. */
enum { MEAN, RSTD, GAMMA, BETA, VECTORS };

static struct hg__mat row_of(const struct matrix *m, int64_t row)
{
	struct hg__mat mat = m->mat;
	mat.data = (float *)mat.data + row * mat.ld;
	mat.rows = 1;
	return mat;
}

/* Stores what A stands for, and has the product normalise A. */
static struct matrix normalise(hg_context *ctx, struct product *p, const struct matrix *of,
                               const int64_t *live, int relu)
{
	struct matrix stored = matrix_new(ctx, p->a.mat.dtype, p->a.mat.rows, p->a.mat.cols);
	const struct hg__batch_norm_args args = {.x = p->a.mat,
	                                         .gamma = row_of(of, GAMMA),
	                                         .beta = row_of(of, BETA),
	                                         .y = stored.mat,
	                                         .mean = row_of(of, MEAN),
	                                         .rstd = row_of(of, RSTD),
	                                         .momentum = 0.1f,
	                                         .eps = 1e-5f,
	                                         .train = 1,
	                                         .relu = relu,
	                                         .live = live};
	CHECK_OK(ctx->backend->kernels->batch_norm.run(ctx, &args));
	CHECK_OK(hg_tensor_download(stored.tensor, stored.at, HG_F32));
	p->normalise = (struct hg__normalise){.mean = args.mean.data,
	                                      .rstd = args.rstd.data,
	                                      .gamma = args.gamma.data,
	                                      .beta = args.beta.data,
	                                      .live = live,
	                                      .relu = relu};
	p->stands_for = stored.at;
	return stored;
}

/* The product is within the bound of that of the stored matrix. On a CPU it has the same bits. */
static void compare_normalised(hg_context *ctx, struct product *p, const int64_t *live, int relu)
{
	struct matrix of = matrix_new(ctx, HG_F32, VECTORS, p->a.mat.cols),
	              stored = normalise(ctx, p, &of, live, relu);
	const int64_t count = p->c.mat.rows * p->c.mat.ld;
	float *direct = calloc((size_t)count, sizeof *direct);
	run(ctx, p);
	memcpy(direct, p->c.at, (size_t)count * sizeof *direct);
	p->normalise = (struct hg__normalise){.mean = NULL};
	const struct matrix x = p->a;
	p->a = stored;
	run(ctx, p);
	for (int64_t i = 0; i < count && ctx->backend->kind == HG_DEVICE_CPU; i++)
		CHECK(i % p->c.mat.ld >= p->c.mat.cols || direct[i] == p->c.at[i]);
	p->a = x;
	free(direct);
	matrix_free(&stored);
	matrix_free(&of);
}

static void normalised_products_are_those_of_stored_norms(void)
{
	hg_context *ctx = test_context();
	int tried = 0;
	for (int i = 0; i < 4 * PAIRS; i++) {
		const int64_t n = rows_of(i % PAIRS), k = sides[i % PAIRS][0], d = sides[i % PAIRS][1],
		              some = n - 100;
		const int trans = i / PAIRS % 2, relu = i / PAIRS / 2;
		const hg_dtype dtype = i % 5 ? HG_F16 : HG_F32;
		if (!ctx->backend->takes_norms || !ctx->backend->takes_norms(ctx, dtype, n, k, d))
			continue;
		tried++;
		struct hg__buffer live;
		CHECK_OK(hg__buffer_upload(ctx, 1, sizeof some, &some, "live", &live));
		test_reseed(300 + (uint64_t)i);
		struct product p = {
		    .a = matrix_new(ctx, dtype, n, k),
		    .b = trans ? matrix_new(ctx, dtype, n, d) : matrix_new(ctx, dtype, k, d),
		    .c = trans ? matrix_new(ctx, HG_F32, k, d) : matrix_new(ctx, dtype, n, d),
		    .trans_a = trans};
		if (i % 3)
			*(trans ? &p.sums : &p.bias) = matrix_new(ctx, trans ? HG_F32 : dtype, 1, d);
		compare_normalised(ctx, &p, i % 2 ? live.data : NULL, relu);
		product_free(&p);
		hg__buffer_free(ctx, &live);
	}
	if (!tried)
		test_note("the products of this backend do not normalise");
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(outputs_are_within_their_bound),
	                                         TEST(gradients_of_inputs_are_within_their_bound),
	                                         TEST(gradients_of_weights_are_within_their_bound),
	                                         TEST(normalised_products_are_those_of_stored_norms)};
	return RUN_TESTS(argc, argv, cases);
}
