/* The last part of an epilogue, applied in f32 to elements of a row before a kernel stores them
 * (struct hg__act_drop):
 *
 *     y = dropout(f(x)) */
#ifndef HG_KERNELS_CPU_ACT_DROP_H
#define HG_KERNELS_CPU_ACT_DROP_H

#include "kernels/cpu/acts.h"
#include "kernels/cpu/draw.h"

struct hg__cpu_act_drop {
	struct hg__act_drop e;
	struct hg__stream stream;
	const struct hg__activation *act; /* NULL: no activation */
	int drops;
	uint32_t threshold;
	float keep; /* 1 - p */
};

HG__INLINE struct hg__cpu_act_drop hg__act_drop_of(const struct hg__act_drop *e, int64_t cols)
{
	const int drops = e->p > 0.0f;
	return (struct hg__cpu_act_drop){
	    .e = *e,
	    .stream = {e->key, drops ? *e->step : 0, hg__ceil_div(cols, 4)},
	    .act = e->act ? &hg__activations[e->act - 1] : NULL,
	    .drops = drops,
	    .threshold = hg__rng_threshold(e->p),
	    .keep = 1.0f - e->p};
}

/* x / (1 - p) where the random word reaches the threshold, otherwise 0 */
HG__INLINE void hg__act_drop_drop(const struct hg__cpu_act_drop *act_drop, int64_t n,
                                  const uint32_t *word, float *x)
{
	const uint32_t threshold = act_drop->threshold;
	const float keep = act_drop->keep;
#pragma omp simd
	for (int64_t c = 0; c < n; c++)
		x[c] = word[c] >= threshold ? x[c] / keep : 0.0f;
}

/* word [n]: the random words of the elements. It is read only if the epilogue has dropout. */
HG__INLINE void hg__act_drop_value(const struct hg__cpu_act_drop *act_drop, int64_t n,
                                   const uint32_t *word, float *x)
{
	if (act_drop->act)
		act_drop->act->forward(&act_drop->e.act_p, n, x, NULL, x);
	if (act_drop->drops)
		hg__act_drop_drop(act_drop, n, word, x);
}

#endif
