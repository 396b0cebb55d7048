/* Several layers of graph convolution at once (kernels/small_layers.h). A thread takes a bin
 * through all layers, so what lies between them stays in its caches: at a width of 32 three
 * matrices of 6 kB and a W of 4 kB, which the first level holds, and at 64 three of 12 kB and a W
 * of 16 kB.
 *
 * `kept` is not written: backward computes the layers again and draws the same words. */
#include "kernels/cpu/small_layers.h"

size_t HG__CPU(small_layers_workspace)(const hg_context *ctx, const struct hg__small_layers_args *a)
{
	(void)ctx;
	return hg__small_job_bytes(a);
}

HG__INLINE void bin_forward(int width, const struct hg__small_job *job,
                            const struct hg__small_bin *bin, float *h, float *next, float *t,
                            uint32_t *word)
{
	const struct hg__small_layers_args *a = job->a;
	hg__small_values(a, &a->csr, 0, bin, job->value);
	hg__small_load(width, bin, &a->x, h);
	for (int l = 0; l < a->layers; l++) {
		float *const input = h;
		hg__small_forward(width, 1, job, l, bin, input, t, word, next);
		h = next;
		next = input;
		if (a->layer[l].y.data)
			hg__small_put(width, bin, &a->layer[l].y, h);
	}
}

static void one_bin(const struct hg__small_job *job, const struct hg__small_bin *bin)
{
	float h[HG__SMALL_TILE(HG__SMALL_WIDTH)], next[HG__SMALL_TILE(HG__SMALL_WIDTH)],
	    t[HG__SMALL_TILE(HG__SMALL_WIDTH)];
	uint32_t word[HG__SMALL_WORDS(HG__SMALL_WIDTH)];
	if (job->width == 32)
		bin_forward(32, job, bin, h, next, t, word);
	else
		bin_forward(HG__SMALL_WIDTH, job, bin, h, next, t, word);
}

hg_status HG__CPU(small_layers)(hg_context *ctx, const struct hg__small_layers_args *a)
{
	HG__TRY(hg__small_layers_supported(ctx, a));
	HG__TRY(hg__need(ctx, a->x.rows == 0 || a->x.data, "small_layers: X must be present"));
	struct hg__small_job job;
	void *memory;
	HG__TRY(hg__workspace(ctx, hg__small_job_bytes(a), &memory));
	hg__small_open(&job, a, memory);
#pragma omp parallel for num_threads(hg__team(ctx, hg__small_work(&job))) schedule(static)
	for (int64_t k = 0; k < a->bins->bins; k++) {
		const struct hg__small_bin bin = hg__small_bin_of(a->bins, k);
		if (bin.rows > 0)
			one_bin(&job, &bin);
	}
	return HG_OK;
}
