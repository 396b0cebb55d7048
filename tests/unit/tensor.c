#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/mat.h"
#include "unit/faulty.h"

static const int64_t widths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 63, 64, 65};
#define WIDTHS (sizeof widths / sizeof widths[0])

typedef hg_status (*creator)(hg_context *, hg_dtype, int64_t, int64_t, hg_tensor **);
static const creator creators[] = {hg_tensor_create, hg_tensor_create_on_host};

static void rows_are_padded_and_zero(void)
{
	hg_context *ctx = test_context();
	static const int64_t ld[WIDTHS] = {0, 1, 2, 8, 4, 8, 8, 8, 16, 16, 24, 64, 64, 72};
	for (size_t i = 0; i < 2 * WIDTHS; i++)
		for (int dtype = 0; dtype < HG_DTYPE_COUNT; dtype++) {
			const size_t w = i % WIDTHS;
			hg_tensor *t;
			char zero[3 * 72 * 8], found[3 * 72 * 8];
			memset(zero, 0, sizeof zero);
			CHECK_OK(creators[i / WIDTHS](ctx, (hg_dtype)dtype, 3, widths[w], &t));
			CHECK(hg_tensor_rows(t) == 3 && hg_tensor_cols(t) == widths[w] &&
			      hg_tensor_ld(t) == ld[w] && hg_tensor_dtype(t) == (hg_dtype)dtype);
			CHECK_EQ_I(hg_tensor_bytes(t), 3 * (size_t)ld[w] * hg_dtype_size((hg_dtype)dtype));
			CHECK(hg_tensor_context(t) == ctx && (hg_tensor_data(t) != NULL) == (widths[w] > 0));
			if (hg_tensor_bytes(t))
				CHECK_OK(ctx->backend->copy_out(ctx, found, hg_tensor_data(t), hg_tensor_bytes(t)));
			CHECK(memcmp(found, zero, hg_tensor_bytes(t)) == 0);
			hg_tensor_free(t);
		}
	hg_context_free(ctx);
}

static void upload_and_download_keep_the_values(void)
{
	hg_context *ctx = test_context();
	for (size_t k = 0; k < 2 * WIDTHS; k++)
		for (int dtype = 0; dtype < HG_DTYPE_COUNT; dtype++) {
			const size_t w = k % WIDTHS;
			unsigned char up[5 * 65 * 8], down[5 * 65 * 8];
			const size_t bytes = 5 * (size_t)widths[w] * hg_dtype_size((hg_dtype)dtype);
			hg_tensor *t;
			for (size_t i = 0; i < sizeof up; i++)
				up[i] = (unsigned char)test_u64();
			memset(down, 0, sizeof down);
			CHECK_OK(creators[k / WIDTHS](ctx, (hg_dtype)dtype, 5, widths[w], &t));
			CHECK_OK(hg_tensor_upload(t, up, (hg_dtype)dtype));
			CHECK_OK(hg_tensor_download(t, down, (hg_dtype)dtype));
			CHECK(memcmp(up, down, bytes) == 0);
			hg_tensor_free(t);
		}
	hg_context_free(ctx);
}

/* To f16 and back, in more than one staging buffer of 4 MiB: 50,000 rows of 100 columns need 104
 * halves each, 10 MB. */
static void floats_are_converted_both_ways(void)
{
	hg_context *ctx = test_context();
	const int64_t rows = 50000, cols = 100;
	float *x = malloc((size_t)(rows * cols) * sizeof *x),
	      *y = malloc((size_t)(rows * cols) * sizeof *y);
	hg_half *h = malloc((size_t)(rows * cols) * sizeof *h);
	hg_tensor *t, *u;
	CHECK(x && y && h);
	for (int64_t i = 0; i < rows * cols; i++)
		x[i] = (float)(test_uniform() - 0.5) * 1000;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, rows, cols, &t));
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	CHECK_OK(hg_tensor_download(t, y, HG_F32));
	CHECK_OK(hg_tensor_download(t, h, HG_F16));
	for (int64_t i = 0; i < rows * cols; i++)
		CHECK(h[i] == hg_half_from_float(x[i]) && y[i] == hg_half_to_float(h[i]));
	CHECK_OK(hg_tensor_create(ctx, HG_F32, rows, cols, &u));
	CHECK_OK(hg_tensor_upload(u, h, HG_F16));
	CHECK_OK(hg_tensor_download(u, x, HG_F32));
	CHECK(memcmp(x, y, (size_t)(rows * cols) * sizeof *x) == 0);
	hg_tensor_free(u);
	hg_tensor_free(t);
	free(x);
	free(y);
	free(h);
	hg_context_free(ctx);
}

static void value_too_large_for_f16_is_refused_by_place(void)
{
	hg_context *ctx = test_context();
	float x[4 * 5] = {0}, y[4 * 5];
	hg_tensor *t;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, 4, 5, &t));
	x[0] = 1;
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	x[0] = 2;
	x[2 * 5 + 3] = -65520;
	CHECK_STATUS(hg_tensor_upload(t, x, HG_F32), HG_ERR_RANGE);
	CHECK_CONTAINS(hg_context_error(ctx), "-65520 at row 2, column 3");
	CHECK_OK(hg_tensor_download(t, y, HG_F32));
	CHECK(y[0] == 1); /* nothing is uploaded */
	x[2 * 5 + 3] = 65519.99f;
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	x[2 * 5 + 3] = INFINITY; /* numbers that are not finite already are allowed */
	x[2 * 5 + 4] = NAN;
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	CHECK_OK(hg_tensor_download(t, y, HG_F32));
	CHECK(isinf(y[2 * 5 + 3]) && isnan(y[2 * 5 + 4]));
	hg_tensor_free(t);
	hg_context_free(ctx);
}

static void bad_arguments_are_refused_by_name(void)
{
	hg_context *ctx = test_context();
	hg_tensor *t, *floats;
	float x[4] = {0};
	CHECK_STATUS(hg_tensor_create(ctx, HG_F16, -1, 4, &t), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "[-1, 4]");
	CHECK(t == NULL);
	CHECK_STATUS(hg_tensor_create(ctx, HG_DTYPE_COUNT, 1, 4, &t), HG_ERR_DTYPE);
	CHECK_STATUS(hg_tensor_create(ctx, HG_F16, INT64_MAX / 2, 64, &t), HG_ERR_NOMEM);
	CHECK_STATUS(hg_tensor_create(ctx, HG_F16, 1, INT64_MAX, &t), HG_ERR_NOMEM);
	CHECK_STATUS(hg_tensor_create(ctx, HG_F16, 1, 4, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_create(NULL, HG_F16, 1, 4, &t), HG_ERR_ARG);
	CHECK_OK(hg_tensor_create(ctx, HG_I32, 1, 4, &t));
	CHECK_OK(hg_tensor_create(ctx, HG_F32, 1, 4, &floats));
	CHECK_STATUS(hg_tensor_upload(t, x, HG_F32), HG_ERR_DTYPE);
	CHECK_CONTAINS(hg_context_error(ctx), "tensor is i32, host array is f32");
	CHECK_STATUS(hg_tensor_download(floats, x, HG_I32), HG_ERR_DTYPE);
	CHECK_STATUS(hg_tensor_upload(floats, NULL, HG_F32), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_download(floats, NULL, HG_F32), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_upload(NULL, x, HG_F32), HG_ERR_ARG);
	CHECK_STATUS(hg_tensor_download(NULL, x, HG_F32), HG_ERR_ARG);
	CHECK(hg_tensor_rows(NULL) == 0 && hg_tensor_data(NULL) == NULL &&
	      hg_tensor_context(NULL) == NULL);
	hg_tensor_free(floats);
	hg_tensor_free(t);
	hg_tensor_free(NULL);
	hg_context_free(ctx);
}

static void empty_tensors_are_legal(void)
{
	hg_context *ctx = test_context();
	static const int64_t shape[3][2] = {{0, 5}, {5, 0}, {0, 0}};
	for (int i = 0; i < 3; i++) {
		hg_tensor *t;
		CHECK_OK(hg_tensor_create(ctx, HG_F16, shape[i][0], shape[i][1], &t));
		CHECK_OK(hg_tensor_upload(t, NULL, HG_F32));
		CHECK_OK(hg_tensor_download(t, NULL, HG_F32));
		CHECK_EQ_I(hg_tensor_bytes(t), 0);
		hg_tensor_free(t);
	}
	hg_context_free(ctx);
}

static hg_status scene(hg_context *ctx)
{
	hg_tensor *t = NULL;
	float x[3 * 5] = {1, 2, 3};
	hg_status status = hg_tensor_create(ctx, HG_F16, 3, 5, &t);
	if (status == HG_OK)
		status = hg_tensor_upload(t, x, HG_F32);
	if (status == HG_OK)
		status = hg_tensor_download(t, x, HG_F32);
	hg_tensor_free(t);
	return status;
}

static void failed_allocations_are_reported(void)
{
	CHECK(faulty_sweep(scene) >= 4);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(rows_are_padded_and_zero),          TEST(upload_and_download_keep_the_values),
	    TEST(floats_are_converted_both_ways),    TEST(value_too_large_for_f16_is_refused_by_place),
	    TEST(bad_arguments_are_refused_by_name), TEST(empty_tensors_are_legal),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
