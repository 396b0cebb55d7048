/* The overflow flag on the CPU. A maximum does not depend on the order of threads, so neither does
 * the flag. */
#ifndef HG_KERNELS_CPU_GUARD_H
#define HG_KERNELS_CPU_GUARD_H

#include "kernels/cpu/rows.h"

/* Checks n numbers that are about to be stored in f16, and sets the overflow flag if one does not
 * fit (kernels/overflow.h). */
HG__INLINE void hg__guard_numbers(const struct hg__overflow_flag *overflow, int64_t n,
                                  const float *x)
{
	hg__i16 most = {0};
	if (!overflow->word)
		return;
	for (int64_t i = 0; i < n; i += HG__LANES) {
		const hg__i16 bits =
		                  (hg__i16)hg__vload_n(x + i, (int)hg__min(HG__LANES, n - i)) & 0x7FFFFFFF,
		              more = bits > most;
		most = (bits & more) | (most & ~more);
	}
	int32_t bits = 0;
	for (int i = 0; i < HG__LANES; i++)
		bits = most[i] > bits ? most[i] : bits;
	float largest;
	memcpy(&largest, &bits, sizeof largest);
	if (!hg__overflows_half(largest))
		return;
	/* Where one number overflows there may be millions of them. Reading the flag first avoids the
	 * lock for every number that would not change the flag. */
	const uint64_t mine = hg__overflow_word(overflow->node, largest);
	uint64_t word;
#pragma omp atomic read
	word = *overflow->word;
	if (word >= mine)
		return;
#pragma omp critical(hg__guard)
	{
#pragma omp atomic read
		word = *overflow->word;
		if (word < mine) {
#pragma omp atomic write
			*overflow->word = mine;
		}
	}
}

#endif
