/* The last part of an epilogue, applied in f32 to elements of a row before a kernel stores them
 * (struct hg__epilogue):
 *
 *     y = dropout(f(x)) */
#ifndef HG_KERNELS_CPU_AFTER_H
#define HG_KERNELS_CPU_AFTER_H

#include "kernels/cpu/acts.h"
#include "kernels/cpu/draw.h"

struct hg__after {
	struct hg__epilogue then;
	struct hg__stream stream;
	const struct hg__activation *act; /* NULL: no activation */
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

/* x / (1 - p) where the random word reaches the threshold, otherwise 0 */
HG__INLINE void hg__after_drop(const struct hg__after *after, int64_t n, const uint32_t *word,
                               float *x)
{
	const uint32_t threshold = after->threshold;
	const float keep = after->keep;
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		x[c] = word[c] >= threshold ? x[c] / keep : 0.0f;
}

/* word [n]: the random words of the elements. It is read only if the epilogue has dropout. */
HG__INLINE void hg__after_value(const struct hg__after *after, int64_t n, const uint32_t *word,
                                float *x)
{
	if (after->act)
		after->act->forward(&after->then.act_p, n, x, NULL, x);
	if (after->drops)
		hg__after_drop(after, n, word, x);
}

#endif
