/* The random numbers of dropout (core/rng.h), eight quads at a time. A quad is the four 32-bit
 * words of one call of Philox, which serve four neighbouring columns. */
#ifndef HG_KERNELS_CPU_DRAW_H
#define HG_KERNELS_CPU_DRAW_H

#include "core/rng.h"
#include "kernels/cpu/rows.h"

/* Computes Philox for eight quads of columns at once. Each 64-bit lane holds one 32-bit word of one
 * quad. The words are the same as those of hg__philox. */
#define HG__DRAW 8
typedef uint64_t hg__words __attribute__((vector_size(64)));

/* The 64-bit products of the low 32 bits of each lane. */
HG__INLINE hg__words hg__multiply(hg__words a, uint64_t b)
{
#if defined(__AVX512F__)
	return (hg__words)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#else
	return (a & 0xFFFFFFFFu) * b;
#endif
}

struct hg__quads {
	hg__words w[4];
};

HG__INLINE struct hg__quads hg__philox_8(uint64_t key, struct hg__quads x)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int round = 0; round < 10; round++) {
		const hg__words a = hg__multiply(x.w[0], 0xD2511F53u),
		                b = hg__multiply(x.w[2], 0xCD9E8D57u);
		x.w[0] =
		    (b >> 32) ^ x.w[1] ^ k0; /* bits 32 and up are never read, so no masks are needed */
		x.w[1] = b;
		x.w[2] = (a >> 32) ^ x.w[3] ^ k1;
		x.w[3] = a;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return x;
}

/* Stores the words of eight quads one quad after the other: out [8][4]. */
HG__INLINE void hg__put_quads(struct hg__quads x, uint32_t *out)
{
	const hg__words first = (x.w[0] & 0xFFFFFFFFu) | (x.w[1] << 32),
	                second = (x.w[2] & 0xFFFFFFFFu) | (x.w[3] << 32);
	const hg__words low = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
	const hg__words high = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
	memcpy(out, &low, sizeof(low));
	memcpy(out + 2 * HG__DRAW, &high, sizeof(high));
}

/* The random words of one tape node in one training step. Its rows have `quads` quads. */
struct hg__stream {
	uint64_t key;
	int64_t step, quads;
};

/* Eight quads from quad `*quad` of row `*row` on, and where the next ones begin. Without a table in
 * memory if they are in one row, or in eight rows of one quad. */
HG__INLINE struct hg__quads hg__next_quads(const struct hg__stream *stream, int64_t *row,
                                           int64_t *quad)
{
	const hg__words zero = {0}, lane = {0, 1, 2, 3, 4, 5, 6, 7};
	struct hg__quads x = {.w = {[3] = zero + (uint32_t)stream->step}};
	if (stream->quads == 1) {
		x.w[0] = lane + (uint64_t)*row;
		x.w[2] = zero;
		*row += HG__DRAW;
	} else if (*quad + HG__DRAW <= stream->quads) {
		x.w[0] = zero + (uint64_t)*row;
		x.w[2] = lane + (uint64_t)*quad;
		*quad = *quad + HG__DRAW < stream->quads ? *quad + HG__DRAW : 0;
		*row += *quad == 0;
	} else {
		uint64_t rows[HG__DRAW], quads[HG__DRAW];
		for (int q = 0; q < HG__DRAW; q++) {
			rows[q] = (uint64_t)*row;
			quads[q] = (uint64_t)*quad;
			*quad = *quad + 1 < stream->quads ? *quad + 1 : 0;
			*row += *quad == 0;
		}
		memcpy(&x.w[0], rows, sizeof(rows));
		memcpy(&x.w[2], quads, sizeof(quads));
	}
	x.w[1] = x.w[0] >> 32;
	return x;
}

/* Computes the words of `count` quads, beginning with quad `quad` of row `row` and going on with
 * the next row at its end. out [count rounded up to 8][4] */
HG__INLINE void hg__draw(const struct hg__stream *stream, int64_t row, int64_t quad, int64_t count,
                         uint32_t *out)
{
	for (int64_t i = 0; i < count; i += HG__DRAW) {
		const struct hg__quads x = hg__next_quads(stream, &row, &quad);
		hg__put_quads(hg__philox_8(stream->key, x), out + 4 * i);
	}
}

#endif
