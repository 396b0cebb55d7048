/* Several layers of graph convolution at once (kernels/small_layers.h). A thread takes a bin
 * through all layers, so what lies between them stays in its first-level cache: two matrices of
 * 6 kB and a W of 4 kB.
 *
 * `kept` is not written: backward computes the layers again and draws the same words. */
#include "kernels/cpu/small_layers.h"

size_t HG__CPU(small_layers_workspace)(const hg_context *ctx, const struct hg__small_layers_args *a)
{
	(void)ctx;
	return hg__small_job_bytes(a);
}

static void bin_forward(const struct hg__small_job *job, const struct hg__small_bin *bin)
{
	float h[HG__SMALL_TILE], t[HG__SMALL_TILE];
	uint32_t word[HG__SMALL_WORDS];
	const struct hg__small_layers_args *a = job->a;
	hg__small_values(a, &a->csr, 0, bin, job->value);
	hg__small_load(bin, &a->x, h);
	for (int l = 0; l < a->layers; l++) {
		hg__small_forward(job, 1, l, bin, h, t, word, h);
		if (a->layer[l].y.data)
			hg__small_put(bin, &a->layer[l].y, h);
	}
}

hg_status HG__CPU(small_layers)(hg_context *ctx, const struct hg__small_layers_args *a)
{
	HG__TRY(hg__small_layers_supported(ctx, a));
	HG__TRY(hg__need(ctx, a->x.rows == 0 || a->x.data, "small_layers: X must be present"));
	struct hg__small_job job;
	void *memory;
	HG__TRY(hg__workspace(ctx, hg__small_job_bytes(a), &memory));
	hg__small_open(&job, a, memory);
#pragma omp parallel for num_threads(hg__team(ctx, hg__small_work(a))) schedule(static)
	for (int64_t k = 0; k < a->bins->bins; k++) {
		const struct hg__small_bin bin = hg__small_bin_of(a->bins, k);
		if (bin.rows > 0)
			bin_forward(&job, &bin);
	}
	return HG_OK;
}
