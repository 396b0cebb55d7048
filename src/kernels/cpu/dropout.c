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

struct plan {
	const struct hg__dropout_args *a;
	int64_t step, quads; /* quads of columns in a row */
	uint32_t threshold;
	float keep; /* 1 - p */
};

/* The words of `count` quads from quad `quad` of row `row` on, one row after the other: out [count rounded up to 8][4]. */
static void draw(const struct plan *plan, int64_t row, int64_t quad, int64_t count, uint32_t *out)
{
	const words zero = {0};
	for (int64_t i = 0; i < count; i += QUADS) {
		uint64_t rows[QUADS], quads[QUADS];
		for (int q = 0; q < QUADS; q++) {
			rows[q] = (uint64_t)row;
			quads[q] = (uint64_t)quad;
			quad = quad + 1 < plan->quads ? quad + 1 : 0;
			row += quad == 0;
		}
		struct quads x = {.w = {[3] = zero + (uint32_t)plan->step}};
		memcpy(&x.w[0], rows, sizeof(rows));
		memcpy(&x.w[2], quads, sizeof(quads));
		x.w[1] = x.w[0] >> 32;
		x = philox(plan->a->key, x);
		const words first = (x.w[0] & 0xFFFFFFFFu) | (x.w[1] << 32), second = (x.w[2] & 0xFFFFFFFFu) | (x.w[3] << 32);
		const words low = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
		const words high = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
		memcpy(out + 4 * i, &low, sizeof(low));
		memcpy(out + 4 * i + 2 * QUADS, &high, sizeof(high));
	}
}

/* n elements from (row, col): Y = X / (1 - p) where the word reaches the threshold, else 0 */
static void drop(const struct plan *plan, int64_t row, int64_t col, int64_t n, const uint32_t *word)
{
	const struct hg__dropout_args *a = plan->a;
	const uint32_t threshold = plan->threshold;
	const float keep = plan->keep;
	float xs[HG__WIDTH], ys[HG__WIDTH];
	const float *x = hg__row(&a->x, row, col, n, xs);
	float *y = hg__row_begin(&a->y, row, col, ys);
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		y[c] = word[c] >= threshold ? x[c] / keep : 0.0f;
	hg__row_put(&a->y, row, col, n, y);
}

/* Rows row .. row+rows-1 and the columns col .. of at most HG__WIDTH words in all. Where quads fill the storage rows, the rows are one. */
static void drop_block(const struct plan *plan, int64_t row, int64_t rows, int64_t col)
{
	const struct hg__dropout_args *a = plan->a;
	uint32_t word[HG__WIDTH + 4 * QUADS];
	const int64_t quads = hg__min(plan->quads - col / 4, HG__WIDTH / 4), n = hg__min(4 * quads, a->x.cols - col);
	draw(plan, row, col / 4, rows * quads, word);
	if (4 * plan->quads == a->x.ld && a->x.ld == a->y.ld)
		drop(plan, row, col, rows * 4 * quads, word);
	else
		for (int64_t r = 0; r < rows; r++)
			drop(plan, row + r, col, n, word + 4 * r * quads);
}

hg_status HG__CPU(dropout)(hg_context *ctx, const struct hg__dropout_args *a)
{
	HG__TRY(hg__need(ctx, hg__same(&a->x, &a->y), "dropout: X and Y differ in shape or are not floats"));
	if (a->x.cols == 0)
		return HG_OK;
	const struct plan plan = {a, *a->step, hg__ceil_div(a->x.cols, 4), hg__rng_threshold(a->p), 1.0f - a->p};
	const int64_t rows = a->x.rows, block = plan.quads < HG__WIDTH / 4 ? HG__WIDTH / 4 / plan.quads : 1;
#pragma omp parallel for num_threads(hg__team(ctx, 2 * rows * a->x.cols)) schedule(static)
	for (int64_t row = 0; row < rows; row += block)
		for (int64_t col = 0; col < a->x.cols; col += HG__WIDTH)
			drop_block(&plan, row, hg__min(block, rows - row), col);
	return HG_OK;
}
