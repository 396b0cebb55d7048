#ifndef HG_KERNELS_CPU_AFTER_H
#define HG_KERNELS_CPU_AFTER_H

#include "kernels/cpu/acts.h"
#include "kernels/cpu/draw.h"

/* y = dropout(f(x)): what rides on the store of a kernel (struct hg__epilogue), for elements of a
 * row in f32. */

struct hg__after {
	struct hg__epilogue then;
	struct hg__stream stream;
	const struct hg__activation *act; /* NULL: none */
	int drops;
	uint32_t threshold;
	float keep; /* 1 - p */
};

HG__INLINE struct hg__after hg__after_of(const struct hg__epilogue *then, int64_t cols)
{
	const int drops = then->p > 0.0f;
	return (struct hg__after){.then = *then,
	                          .stream = {then->key, drops ? *then->step : 0, hg__ceil_div(cols, 4)},
	                          .act = then->act ? &hg__activations[then->act - 1] : NULL,
	                          .drops = drops,
	                          .threshold = hg__rng_threshold(then->p),
	                          .keep = 1.0f - then->p};
}

/* x / (1 - p) where the word reaches the threshold, else 0 */
HG__INLINE void hg__after_drop(const struct hg__after *after, int64_t n, const uint32_t *word,
                               float *x)
{
	const uint32_t threshold = after->threshold;
	const float keep = after->keep;
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		x[c] = word[c] >= threshold ? x[c] / keep : 0.0f;
}

/* word: those of the elements, where it drops */
HG__INLINE void hg__after_value(const struct hg__after *after, int64_t n, const uint32_t *word,
                                float *x)
{
	if (after->act)
		after->act->forward(&after->then.act_p, n, x, NULL, x);
	if (after->drops)
		hg__after_drop(after, n, word, x);
}

#endif
