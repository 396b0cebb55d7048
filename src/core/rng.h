/* Random numbers for dropout and initial weights, the same on a CPU and a GPU. */
#ifndef HG_CORE_RNG_H
#define HG_CORE_RNG_H

#include <stdint.h>

#include "precision/hostdevice.h"

/* Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw 2011). A number is a pure
 * function of key and counter, so it depends neither on the device nor on the number of threads. */
struct hg__rng4 {
	uint32_t w[4];
};

/* a * b. nvcc would compute it as a product of 64-bit numbers, with one more instruction. */
HG_HD static inline uint64_t hg__wide_product(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
	uint64_t product;
	asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
	return product;
#else
	return (uint64_t)a * b;
#endif
}

HG_HD static inline struct hg__rng4 hg__philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2,
                                               uint32_t c3)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	struct hg__rng4 x = {{c0, c1, c2, c3}};
	for (int round = 0; round < 10; round++) {
		const uint64_t a = hg__wide_product(0xD2511F53u, x.w[0]),
		               b = hg__wide_product(0xCD9E8D57u, x.w[2]);
		const struct hg__rng4 y = {{(uint32_t)(b >> 32) ^ x.w[1] ^ k0, (uint32_t)b,
		                            (uint32_t)(a >> 32) ^ x.w[3] ^ k1, (uint32_t)a}};
		x = y;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return x;
}

/* The key of a stream of random numbers: the context's seed and a stream number (a tape node or a
 * parameter), mixed by the finaliser of SplitMix64. */
HG_HD static inline uint64_t hg__rng_key(uint64_t seed, uint64_t stream)
{
	uint64_t z = seed + 0x9E3779B97F4A7C15u * (stream + 1);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* The four numbers of columns 4*quad .. 4*quad+3 of a row in a step: column c uses w[c % 4] of quad
 * c / 4. */
HG_HD static inline struct hg__rng4 hg__rng_quad(uint64_t key, int64_t row, uint32_t quad,
                                                 int64_t step)
{
	return hg__philox(key, (uint32_t)row, (uint32_t)((uint64_t)row >> 32), quad, (uint32_t)step);
}

/* A random word is below this threshold with probability p: p * 2^32, rounded and limited to 32
 * bits. */
HG_HD static inline uint32_t hg__rng_threshold(float p)
{
	const uint64_t t = (uint64_t)((double)p * 0x1p32 + 0.5);
	return t > UINT32_MAX ? UINT32_MAX : (uint32_t)t;
}

/* Uniform in [0, 1) with a resolution of 24 bits. */
HG_HD static inline float hg__rng_uniform(uint32_t word)
{
	return (float)(word >> 8) * 0x1p-24f;
}

#endif
