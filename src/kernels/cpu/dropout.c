#include "core/rng.h"
#include "kernels/cpu/rows.h"

/* Philox for eight quads of columns at once: each 64-bit lane holds one 32-bit word of one quad. Word for word hg__philox. */
#define QUADS 8
typedef uint64_t words __attribute__((vector_size(64)));

/* Full products of the low 32 bits of each lane. */
HG__INLINE words multiply(words a, uint64_t b)
{
#if defined(__AVX512F__)
	return (words)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#else
	return (a & 0xFFFFFFFFu) * b;
#endif
}

struct quads {
	words w[4];
};

HG__INLINE struct quads philox(uint64_t key, struct quads x)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int round = 0; round < 10; round++) {
		const words a = multiply(x.w[0], 0xD2511F53u), b = multiply(x.w[2], 0xCD9E8D57u);
		x.w[0] = (b >> 32) ^ x.w[1] ^ k0; /* bits 32 and up are not read: no masks */
		x.w[1] = b;
		x.w[2] = (a >> 32) ^ x.w[3] ^ k1;
		x.w[3] = a;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return x;
}

/* The words of columns 32 * group .. 32 * group + 31 of a row, in order. */
static void row_words(uint64_t key, int64_t row, uint32_t group, int64_t step, uint32_t out[4 * QUADS])
{
	const words lane = {0, 1, 2, 3, 4, 5, 6, 7}, zero = {0};
	const uint64_t row_low = (uint32_t)row, row_high = (uint32_t)((uint64_t)row >> 32), low_step = (uint32_t)step;
	const struct quads x = philox(key, (struct quads){{zero + row_low, zero + row_high, lane + (uint64_t)group * QUADS, zero + low_step}});
	const words first = (x.w[0] & 0xFFFFFFFFu) | (x.w[1] << 32), second = (x.w[2] & 0xFFFFFFFFu) | (x.w[3] << 32);
	for (int q = 0; q < QUADS; q++) {
		const uint64_t pair[2] = {first[q], second[q]};
		for (int i = 0; i < 4; i++)
			out[4 * q + i] = (uint32_t)(pair[i / 2] >> (i % 2 * 32));
	}
}

struct plan {
	uint64_t key;
	int64_t step;
	uint32_t threshold;
	float keep; /* 1 - p */
};

/* Y = X / (1 - p) where the word reaches the threshold, else 0 */
static void drop_row(const struct hg__dropout_args *a, const struct plan *plan, int64_t row)
{
	const int64_t cols = a->x.cols;
	for (int64_t col = 0; col < cols; col += 4 * QUADS) {
		uint32_t word[4 * QUADS];
		float xs[4 * QUADS], ys[4 * QUADS];
		const int64_t n = hg__min(4 * QUADS, cols - col);
		row_words(plan->key, row, (uint32_t)(col / (4 * QUADS)), plan->step, word);
		const float *x = hg__row(&a->x, row, col, n, xs);
		float *y = hg__row_begin(&a->y, row, col, ys);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			y[c] = word[c] >= plan->threshold ? x[c] / plan->keep : 0.0f;
		hg__row_put(&a->y, row, col, n, y);
	}
}

hg_status HG__CPU(dropout)(hg_context *ctx, const struct hg__dropout_args *a)
{
	HG__TRY(hg__need(ctx, hg__same(&a->x, &a->y), "dropout: X and Y differ in shape or are not floats"));
	const struct plan plan = {a->key, *a->step, (uint32_t)((double)a->p * 0x1p32 + 0.5), 1.0f - a->p};
	const int64_t rows = a->x.rows;
#pragma omp parallel for num_threads(hg__team(ctx, 4 * rows * a->x.cols)) schedule(static)
	for (int64_t row = 0; row < rows; row++)
		drop_row(a, &plan, row);
	return HG_OK;
}
