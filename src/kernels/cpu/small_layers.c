/* Several layers of graph convolution at once (kernels/small_layers.h). A thread takes a bin
 * through all layers, so what lies between them stays in its caches: at a width of 32 three
 * matrices of 6 kB and a W of 4 kB, which the first level holds, and at 64 three of 12 kB and a W
 * of 16 kB. Those of a large bin are up to eight times as large: the second level holds them.
 *
 * `kept` is not written: backward computes the layers again and draws the same words. */
#include <omp.h>

#include "kernels/cpu/small_layers.h"

/* The memory of a thread: three tiles, and words. */
static size_t scratch_bytes(const struct hg__small_layers_args *a)
{
	const int width = hg__small_width_of(a);
	return hg__small_bytes(3 * hg__small_tile(a, width) + hg__small_words(a, width));
}

size_t HG__CPU(small_layers_workspace)(const hg_context *ctx, const struct hg__small_layers_args *a)
{
	return hg__small_job_bytes(a) + (size_t)ctx->threads * scratch_bytes(a);
}

/* What is read out of the graphs of a bin, of which this is the last result. */
HG__INLINE void bin_readout(int width, const struct hg__small_layers_args *a,
                            const struct hg__small_bin *bin, const float *h)
{
	const struct hg__small_readout *r = &a->readout;
	const int64_t end = bin->first + bin->rows;
	float sum[HG__SMALL_WIDTH];
	hg__i16 over = {0};
	for (int64_t g = r->id[bin->first]; g >= 0 && g < r->y.rows && r->ptr[g] < end; g++) {
		const int64_t begin = r->ptr[g], rows = r->ptr[g + 1] - begin;
		const float size = r->reduce == HG_REDUCE_MEAN && rows ? (float)rows : 1.0f;
		for (int c = 0; c < width; c += HG__LANES) {
			hg__v16 total = {0};
			for (int64_t i = 0; i < rows; i++)
				total += hg__vload(h + (begin - bin->first + i) * width + c);
			hg__vstore(sum + c, hg__small_narrow(total / hg__vset(size), &over));
		}
		hg__small_put_row(&r->y, g, sum);
	}
	hg__small_raise(&r->result, over);
}

/* Graphs without nodes are in no bin. */
static void read_out_empty(const struct hg__small_readout *r)
{
	static const float zeros[HG__SMALL_WIDTH];
	for (int64_t g = 0; g < r->y.rows; g++)
		if (r->ptr[g] == r->ptr[g + 1])
			hg__small_put_row(&r->y, g, zeros);
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
	if (a->readout.y.data)
		bin_readout(width, a, bin, h);
}

/* scratch: of this thread. */
static void one_bin(const struct hg__small_job *job, const struct hg__small_bin *bin,
                    float *scratch)
{
	const int tile = hg__small_tile(job->a, job->width);
	float *h = scratch, *next = h + tile, *t = next + tile;
	uint32_t *word = (uint32_t *)(void *)(t + tile);
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
	HG__TRY(hg__workspace(ctx, HG__CPU(small_layers_workspace)(ctx, a), &memory));
	hg__small_open(&job, a, memory);
	char *scratch = (char *)memory + hg__small_job_bytes(a);
	if (a->readout.y.data)
		read_out_empty(&a->readout);
#pragma omp parallel for num_threads(hg__team(ctx, hg__small_work(&job))) schedule(static)
	for (int64_t k = 0; k < a->bins->bins; k++) {
		const struct hg__small_bin bin = hg__small_bin_of(a->bins, k);
		if (bin.rows > 0)
			one_bin(&job, &bin,
			        (float *)(void *)(scratch + (size_t)omp_get_thread_num() * scratch_bytes(a)));
	}
	return HG_OK;
}
