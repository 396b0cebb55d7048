/* Sums over the rows for every column (columns.h): first by blocks of rows, then over the
 * blocks. */
#include "kernels/cpu/columns.h"

/* A block has at least 128 rows, so that the second pass is short compared with the first. There
 * are at most 128 blocks, so that the scratch memory stays small but many cores are busy. The
 * number of blocks depends on the number of rows alone and never on the threads. */
#define BLOCK_ROWS 128
#define BLOCKS 128

static void add_blocks(int64_t blocks, int64_t cols, int64_t pitch, const float *part, float *sum)
{
	memcpy(sum, part, (size_t)cols * sizeof(float));
	for (int64_t b = 1; b < blocks; b++)
#pragma omp simd
		for (int64_t c = 0; c < cols; c++)
			sum[c] += part[b * pitch + c];
}

hg_status HG__CPU(columns)(hg_context *ctx, int64_t rows, int64_t cols, hg__columns_fn f,
                           const void *env, float *first, float *second)
{
	const int64_t block =
	    hg__ceil_div(rows, BLOCKS) > BLOCK_ROWS ? hg__ceil_div(rows, BLOCKS) : BLOCK_ROWS;
	const int64_t blocks = rows > block ? hg__ceil_div(rows, block) : 1,
	              chunks = hg__ceil_div(cols, HG__WIDTH), pitch = 2 * cols;
	void *memory;
	/* part [blocks, 2, cols] */
	HG__TRY(hg__workspace(ctx, (size_t)(blocks * pitch) * sizeof(float), &memory));
	float *part = memory;
	if (cols == 0)
		return HG_OK;
#pragma omp parallel for num_threads(hg__team(ctx, rows *cols)) schedule(static)
	for (int64_t i = 0; i < blocks * chunks; i++) {
		const int64_t b = i / chunks, col = i % chunks * HG__WIDTH,
		              n = hg__min(HG__WIDTH, cols - col);
		float *one = part + b * pitch + col, *two = second ? one + cols : NULL;
		memset(one, 0, (size_t)n * sizeof(float));
		if (two)
			memset(two, 0, (size_t)n * sizeof(float));
		f(env, b * block, hg__min((b + 1) * block, rows), col, n, one, two);
	}
	add_blocks(blocks, cols, pitch, part, first);
	if (second)
		add_blocks(blocks, cols, pitch, part + cols, second);
	return HG_OK;
}
