/* The gradients of several layers of graph convolution (kernels/small_layers.h). A thread computes
 * the layers of a bin once more and keeps their inputs, at most 200 kB at a width of 32 and 400 kB
 * at 64, which the second-level cache holds; those of a large bin may need the next level. `kept`
 * is not read, and `symmetric` neither: the transpose gives the same sums.
 *
 * The bins are divided into chunks, by their number alone. The gradients of parameters are summed
 * over the rows of a chunk in order, and then over the chunks in order, so they do not depend on
 * the threads. */
#include <omp.h>

#include "kernels/cpu/small_layers.h"

/* A chunk has at least 8 bins. Its sums are set to 0 and added up, some 0.1 ns for each number of W
 * (derived: three passes over memory in the cache), beside the 25 ns,
 * or 18 at a width of 64, that the 8 bins take for it (measured: 80 and 225 ms for 2,048 bins and
 * 12 layers on one core). There are at most 64 chunks, so that their sums take at most 9 MB, or 34
 * at a width of 64, but many cores are busy. */
enum { CHUNK_BINS = 8, CHUNKS = 64 };

static int64_t chunk_bins(const struct hg__bins *bins)
{
	const int64_t most = hg__ceil_div(bins->bins, CHUNKS);
	return most > CHUNK_BINS ? most : CHUNK_BINS;
}

/* The memory of a thread. */
struct scratch {
	float *t, *dz, *g, *h; /* three tiles, and [layers + 1] tiles: H_0 .. H_layers */
	uint32_t *word;        /* [hg__small_words] */
};

static size_t scratch_bytes(const struct hg__small_layers_args *a)
{
	const int width = hg__small_width_of(a);
	return hg__small_bytes((a->layers + 4) * hg__small_tile(a, width) + hg__small_words(a, width));
}

static struct scratch scratch_at(char *memory, const struct hg__small_layers_args *a, int width)
{
	const int tile = hg__small_tile(a, width);
	float *t = (float *)(void *)memory, *dz = t + tile, *g = dz + tile, *h = g + tile,
	      *end = h + (a->layers + 1) * tile;
	return (struct scratch){t, dz, g, h, (uint32_t *)(void *)end};
}

/* The sums of a matrix: dW or dW_self, and db as one more row of dW. */
static int sums(int width)
{
	return (width + 1) * width;
}

struct back {
	const struct hg__small_layers_back_args *a;
	struct hg__small_job job;
	int64_t chunk, chunks;
	int matrices;
	float *w_t;     /* [matrices, width, width] the transpose of each W and W_self */
	float *value_t; /* [m] A of each entry of csr_t */
	float *sum;     /* [chunks, matrices, sums(width)] */
	char *scratch;  /* [threads] */
};

/* ---- memory ---- */

/* Divides memory that begins at `base` into the parts of b, and returns how many bytes they have.
 * base NULL: only that. */
static size_t divide(const hg_context *ctx, const struct hg__small_layers_back_args *a, char *base,
                     struct back *b)
{
	const int matrices = hg__small_matrices(&a->of), width = hg__small_width_of(&a->of);
	const int64_t chunks = hg__ceil_div(a->of.bins->bins, chunk_bins(a->of.bins));
	const size_t w_t = hg__small_job_bytes(&a->of),
	             value_t = w_t + hg__small_bytes(matrices * width * width),
	             sum = value_t + hg__small_bytes(a->csr_t.m),
	             scratch = sum + hg__small_bytes(chunks * matrices * sums(width));
	if (base) {
		b->matrices = matrices;
		b->chunk = chunk_bins(a->of.bins);
		b->chunks = chunks;
		b->w_t = (float *)(void *)(base + w_t);
		b->value_t = (float *)(void *)(base + value_t);
		b->sum = (float *)(void *)(base + sum);
		b->scratch = base + scratch;
	}
	return scratch + (size_t)ctx->threads * scratch_bytes(&a->of);
}

size_t HG__CPU(small_layers_back_workspace)(const hg_context *ctx,
                                            const struct hg__small_layers_back_args *a)
{
	return divide(ctx, a, NULL, NULL);
}

static void transpose_weights(struct back *b)
{
	const int width = b->job.width;
	for (int i = 0; i < b->matrices; i++) {
		const float *w = b->job.w + i * width * width;
		float *to = b->w_t + i * width * width;
		for (int r = 0; r < width; r++)
			for (int c = 0; c < width; c++)
				to[c * width + r] = w[r * width + c];
	}
}

/* ---- a bin ---- */

/* dZ = f'(Z) dropout(dH), narrowed, in place, and its rows are added to db. After relu an element
 * of H' is positive exactly where it is kept and Z is; and only relu is followed by dropout. */
HG__INLINE void end_back(int width, const struct hg__cpu_act_drop *end,
                         const struct hg__small_bin *bin, const float *y, float *g, float *db)
{
	const hg__v16 keep = hg__vset(end->drops ? end->keep : 1.0f);
	for (int c = 0; c < width; c += HG__LANES) {
		hg__v16 sum = hg__vload(db + c);
		for (int r = 0; r < bin->rows; r++) {
			float *at = g + r * width + c;
			hg__v16 dz = hg__vload(at);
			if (end->act) {
				const hg__v16 of = hg__vload(y + r * width + c);
				dz = hg__vround_half(relu_gradient(of, dz / keep, keep));
				hg__vstore(at, dz);
			}
			sum += dz;
		}
		hg__vstore(db + c, sum);
	}
}

/* From dH of layer l's result in s->g to that of its input. */
HG__INLINE void layer_back(int width, const struct back *b, const struct hg__small_bin *bin, int l,
                           float *sum, struct scratch *s)
{
	const struct hg__small_layer *layer = &b->a->of.layer[l];
	const int tile = hg__small_tile(&b->a->of, width);
	const float *h = s->h + l * tile;
	const float *w_t = b->w_t + b->job.first[l] * width * width;
	float *sum_self = sum + sums(width);
	const int in = (int)layer->w.rows, out = (int)layer->w.cols,
	          has_self = hg__small_has_self(layer);
	end_back(width, &b->job.end[l], bin, h + tile, s->g, sum + width * width);
	const int last = l == 0 && !b->a->dx.data;
	if (has_self && layer->dw_self.data)
		hg__small_multiply(width, 1, h, 1, width, s->g, bin->rows, in, sum_self);
	if (last && !layer->dw.data)
		return;
	hg__small_aggregate(width, &b->a->csr_t, b->value_t, bin, s->g, s->t);
	hg__small_narrow_tile(width, bin, s->t);
	if (layer->dw.data)
		hg__small_multiply(width, 1, h, 1, width, s->t, bin->rows, in, sum);
	if (last)
		return;
	float *const dz = s->g;
	s->g = s->dz;
	s->dz = dz;
	hg__small_multiply(width, 0, s->t, width, 1, w_t, out, bin->whole, s->g);
	if (has_self)
		hg__small_multiply(width, 1, dz, width, 1, w_t + width * width, out, bin->whole, s->g);
	hg__small_narrow_tile(width, bin, s->g);
}

/* Adds the gradient of a layer's result that does not come through the next layer. */
HG__INLINE void add_gradient(int width, const struct hg__small_bin *bin, const struct hg__mat *dy,
                             struct scratch *s)
{
	hg__small_load(width, bin, dy, s->t);
	for (int i = 0; i < bin->rows * width; i += HG__LANES)
		hg__vstore(s->g + i, hg__vround_half(hg__vload(s->g + i) + hg__vload(s->t + i)));
}

/* The gradient of the last result, from that of what is read out of it. */
HG__INLINE void readout_back(int width, const struct hg__small_readout *r,
                             const struct hg__small_bin *bin, float *g)
{
	for (int i = 0; i < bin->rows; i++) {
		const int32_t graph = r->id[bin->first + i];
		if (graph < 0)
			continue; /* zeros are there */
		const int64_t size = r->reduce == HG_REDUCE_MEAN ? r->ptr[graph + 1] - r->ptr[graph] : 1;
		float *to = g + i * width;
		hg__small_load_row(width, &r->dy, graph, to);
		for (int c = 0; c < width; c += HG__LANES)
			hg__vstore(to + c, hg__vround_half(hg__vload(to + c) / hg__vset((float)size)));
	}
}

/* sum [matrices, sums(width)]: those of the chunk. */
HG__INLINE void bin_back(int width, const struct back *b, const struct hg__small_bin *bin,
                         float *sum, struct scratch *s)
{
	const struct hg__small_layers_args *of = &b->a->of;
	const int tile = hg__small_tile(of, width);
	hg__small_values(of, &of->csr, 0, bin, b->job.value);
	hg__small_values(of, &b->a->csr_t, 1, bin, b->value_t);
	hg__small_load(width, bin, &of->x, s->h);
	for (int l = 0; l < of->layers; l++)
		hg__small_forward(width, 0, &b->job, l, bin, s->h + l * tile, s->t, s->word,
		                  s->h + (l + 1) * tile);
	memset(s->g, 0, (size_t)tile * sizeof(float));
	if (of->readout.dy.data)
		readout_back(width, &of->readout, bin, s->g);
	for (int l = of->layers - 1; l >= 0; l--) {
		if (of->layer[l].dy.data)
			add_gradient(width, bin, &of->layer[l].dy, s);
		layer_back(width, b, bin, l, sum + b->job.first[l] * sums(width), s);
	}
	if (b->a->dx.data)
		hg__small_put(width, bin, &b->a->dx, s->g);
}

/* ---- chunks ---- */

HG__INLINE void chunk_back(int width, const struct back *b, int64_t chunk)
{
	const struct hg__small_layers_args *of = &b->a->of;
	float *sum = b->sum + chunk * b->matrices * sums(width);
	struct scratch own =
	    scratch_at(b->scratch + (size_t)omp_get_thread_num() * scratch_bytes(of), of, width);
	memset(sum, 0, (size_t)(b->matrices * sums(width)) * sizeof(float));
	for (int64_t k = chunk * b->chunk; k < hg__min((chunk + 1) * b->chunk, of->bins->bins); k++) {
		const struct hg__small_bin bin = hg__small_bin_of(of->bins, k);
		if (bin.rows > 0)
			bin_back(width, b, &bin, sum, &own);
	}
}

/* Row `row` of matrix i's sums, added over the chunks, to row `to` of m, if that is present. */
static void add_row(const struct back *b, int i, int row, const struct hg__mat *m, int to)
{
	const int width = b->job.width;
	for (int c = 0; m->data && c < m->cols; c += HG__LANES) {
		hg__v16 sum = {0};
		for (int64_t k = 0; k < b->chunks; k++)
			sum += hg__vload(b->sum + (k * b->matrices + i) * sums(width) + row * width + c);
		hg__lanes_put(m, to, c, sum);
	}
}

static void add_chunks(const struct back *b, int l)
{
	const struct hg__small_layer *layer = &b->a->of.layer[l];
	const int i = b->job.first[l];
	for (int row = 0; row < layer->w.rows; row++) {
		add_row(b, i, row, &layer->dw, row);
		if (hg__small_has_self(layer))
			add_row(b, i + 1, row, &layer->dw_self, row);
	}
	add_row(b, i, b->job.width, &layer->db, 0);
}

hg_status HG__CPU(small_layers_back)(hg_context *ctx, const struct hg__small_layers_back_args *a)
{
	HG__TRY(hg__small_layers_back_supported(ctx, a));
	struct back b = {.a = a};
	void *memory;
	HG__TRY(hg__workspace(ctx, divide(ctx, a, NULL, NULL), &memory));
	divide(ctx, a, memory, &b);
	hg__small_open(&b.job, &a->of, memory);
	transpose_weights(&b);
	const int team = hg__team(ctx, hg__small_work(&b.job));
#pragma omp parallel for num_threads(team) schedule(static)
	for (int64_t k = 0; k < b.chunks; k++)
		if (b.job.width == 32)
			chunk_back(32, &b, k);
		else
			chunk_back(HG__SMALL_WIDTH, &b, k);
#pragma omp parallel for num_threads(team) schedule(static)
	for (int l = 0; l < a->of.layers; l++)
		add_chunks(&b, l);
	return HG_OK;
}
