/* The kernel readout: sum, mean and maximum over the rows of each graph, where there are many
 * graphs of few rows, few of many rows, and graphs without rows. All numbers are small integers, so
 * sums are exact and results have one value. */
#include <math.h>
#include <stdlib.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/mat.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "precision/half.h"

/* Graph k has size[k % 8] rows. */
struct batch {
	const char *what;
	int64_t graphs, size[8];
};

static const struct batch batches[] = {
    {"many small graphs", 600, {18, 0, 1, 40, 2, 33, 8, 7}},
    {"many graphs, one of them large", 300, {5, 1, 900, 3, 0, 2, 9, 4}},
    {"many larger graphs", 300, {150, 131, 0, 260, 129, 140, 1, 300}},
    {"few small graphs", 5, {18, 0, 1, 40, 2, 33, 8, 7}},
    {"few large graphs", 3, {3000, 2500, 1, 1, 1, 1, 1, 1}},
    {"graphs without rows", 400, {0, 0, 0, 0, 0, 0, 0, 0}},
};

static double stored(hg_dtype dtype, double x)
{
	return dtype == HG_F16 ? (double)hg__half_to_float(hg_half_from_double(x)) : (double)(float)x;
}

static void check_column(const struct batch *b, const float *x, const int64_t *ptr, int64_t g,
                         int64_t cols, int64_t c, hg_reduce reduce, hg_dtype dtype, double found,
                         int32_t place)
{
	const int64_t size = ptr[g + 1] - ptr[g];
	double sum = 0.0, most = 0.0;
	int64_t first = -1;
	for (int64_t i = 0; i < size; i++) {
		const double v = (double)x[(ptr[g] + i) * cols + c];
		sum += v;
		if (first < 0 || (!isnan(most) && (v > most || isnan(v)))) {
			first = i;
			most = v;
		}
	}
	const double mean = (double)((float)sum / (float)(size > 0 ? size : 1)),
	             expected = reduce == HG_REDUCE_SUM    ? sum
	                        : reduce == HG_REDUCE_MEAN ? stored(dtype, mean)
	                                                   : most;
	CHECK_MSG(found == expected || (isnan(found) && isnan(expected)),
	          "%s, %lld columns, reduction %d: graph %lld, column %lld: %g, expected %g", b->what,
	          (long long)cols, (int)reduce, (long long)g, (long long)c, found, expected);
	if (reduce == HG_REDUCE_MAX)
		CHECK_EQ_I(place, first);
}

/* nan_row: a row with NaN in every third column; -1: none. */
static void run(hg_context *ctx, const struct batch *b, hg_dtype dtype, int64_t cols,
                hg_reduce reduce, int64_t nan_row)
{
	int64_t *ptr = calloc((size_t)b->graphs + 1, sizeof *ptr);
	CHECK(ptr);
	for (int64_t g = 0; g < b->graphs; g++)
		ptr[g + 1] = ptr[g] + b->size[g % 8];
	const int64_t rows = ptr[b->graphs], results = b->graphs * cols;
	float *x = malloc((size_t)(rows * cols + 1) * sizeof *x),
	      *y = malloc((size_t)results * sizeof *y);
	int32_t *arg = malloc((size_t)results * sizeof *arg);
	struct hg__buffer at;
	hg_tensor *from, *to, *place;
	CHECK(x && y && arg);
	for (int64_t i = 0; i < rows * cols; i++)
		x[i] = i / cols == nan_row && i % 3 == 0 ? (float)NAN : (float)(test_below(5) - 2);
	CHECK_OK(hg__buffer_upload(ctx, b->graphs + 1, sizeof *ptr, ptr, "ptr", &at));
	CHECK_OK(hg_tensor_create(ctx, dtype, rows, cols, &from));
	CHECK_OK(hg_tensor_create(ctx, dtype, b->graphs, cols, &to));
	CHECK_OK(hg_tensor_create(ctx, HG_I32, b->graphs, cols, &place));
	CHECK_OK(hg_tensor_upload(from, x, HG_F32));
	const struct hg__readout_args a = {at.data, from->mat, to->mat, place->mat, reduce};
	CHECK_OK(ctx->backend->kernels->readout.run(ctx, &a));
	CHECK_OK(hg_tensor_download(to, y, HG_F32));
	CHECK_OK(hg_tensor_download(place, arg, HG_I32));
	for (int64_t i = 0; i < results; i++)
		check_column(b, x, ptr, i / cols, cols, i % cols, reduce, dtype, (double)y[i], arg[i]);
	hg_tensor_free(from);
	hg_tensor_free(to);
	hg_tensor_free(place);
	hg__buffer_free(ctx, &at);
	free(arg);
	free(x);
	free(y);
	free(ptr);
}

static void readout_of(const void *item)
{
	static const int64_t widths[] = {1, 8, 31, 32, 33, 264, 300};
	const struct batch *b = item;
	hg_context *ctx = test_context();
	for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
		for (int reduce = HG_REDUCE_SUM; reduce <= HG_REDUCE_MAX; reduce++) {
			run(ctx, b, HG_F16, widths[w], (hg_reduce)reduce, -1);
			run(ctx, b, HG_F32, widths[w], (hg_reduce)reduce, -1);
		}
	run(ctx, b, HG_F16, 32, HG_REDUCE_MAX, 10);
	run(ctx, b, HG_F16, 7, HG_REDUCE_SUM, 10);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	enum { BATCHES = sizeof batches / sizeof *batches };
	struct test_case cases[BATCHES];
	for (int i = 0; i < BATCHES; i++)
		cases[i] = (struct test_case){batches[i].what, NULL, readout_of, &batches[i]};
	return RUN_TESTS(argc, argv, cases);
}
