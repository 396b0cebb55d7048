/* What small_layers and small_layers_back share: one layer of one bin (kernels/small_layers.h).
 *
 * A matrix of a bin is a tile: f32 numbers that have been rounded to halves, in rows of `width`
 * (hg__small_width). The rows of a bin are followed by zeros up to a multiple of HG__SMALL_STRIP,
 * and its columns by zeros too, so loops have no remainders. `width` is a constant at every call
 * for a bin, so that they unroll. A product of two halves is exact in f32. So a product and a sum
 * have one rounding whether or not there is an FMA instruction, and all instruction sets give the
 * same bits. */
#ifndef HG_KERNELS_CPU_SMALL_LAYERS_H
#define HG_KERNELS_CPU_SMALL_LAYERS_H

#include "kernels/cpu/act_drop.h"
#include "kernels/cpu/guard.h"
#include "kernels/small_layers.h"

/* The numbers of a tile of the largest bin of a batch, and the random words of one: eight quads of
 * words are made at a time, and the words of a whole row are loaded. */
HG__INLINE int hg__small_tile(const struct hg__small_layers_args *a, int width)
{
	return a->bins->rows * width;
}
HG__INLINE int hg__small_words(const struct hg__small_layers_args *a, int width)
{
	return hg__small_tile(a, width) + 4 * HG__DRAW + width;
}

/* A product is summed in blocks of HG__SMALL_STRIP rows and as many columns as these vectors have,
 * so that a part of a row of the second factor is loaded once for all rows of a block: as many as
 * there are registers for. */
enum { HG__SMALL_VECTORS = 32 / HG__LANES };
#if defined(__AVX512F__)
#define HG__SMALL_STRIP 8
#else
#define HG__SMALL_STRIP 2
#endif

struct hg__small_job {
	const struct hg__small_layers_args *a;
	int width;
	int first[HG__SMALL_LAYERS]; /* the number of each layer's W; that of its W_self is the next */
	float *w, *b; /* [matrices, width, width] and [layers, width]: of each, then zeros */
	float *value; /* [m] A of each entry of csr */
	struct hg__cpu_act_drop end[HG__SMALL_LAYERS]; /* of each layer */
};

/* Rows first .. first + rows - 1 of the batch, and the rows of a tile with the zeros behind. */
struct hg__small_bin {
	int64_t first;
	int rows, whole;
};

/* Bytes of `count` numbers, and of what may begin behind them at a whole vector. */
HG__INLINE size_t hg__small_bytes(int64_t count)
{
	return (size_t)hg__whole(count) * sizeof(float);
}

HG__INLINE struct hg__small_bin hg__small_bin_of(const struct hg__bins *bins, int64_t k)
{
	const int64_t first = bins->first[k];
	const int rows = bins->first[k + 1] - bins->first[k];
	return (struct hg__small_bin){first, rows,
	                              (rows + HG__SMALL_STRIP - 1) / HG__SMALL_STRIP * HG__SMALL_STRIP};
}

/* ---- rows ---- */

HG__INLINE void hg__small_load_row(int width, const struct hg__mat *m, int64_t row, float *out)
{
	for (int c = 0; c < width; c += HG__LANES)
		hg__vstore(out + c, c < m->cols ? hg__lanes(m, row, c, 0.0f) : hg__vset(0.0f));
}

HG__INLINE void hg__small_put_row(const struct hg__mat *m, int64_t row, const float *x)
{
	for (int c = 0; c < m->cols; c += HG__LANES)
		hg__lanes_put(m, row, c, hg__vload(x + c));
}

HG__INLINE void hg__small_zeros(int width, const struct hg__small_bin *bin, float *tile)
{
	memset(tile + bin->rows * width, 0, (size_t)((bin->whole - bin->rows) * width) * sizeof(float));
}

HG__INLINE void hg__small_load(int width, const struct hg__small_bin *bin, const struct hg__mat *m,
                               float *tile)
{
	for (int r = 0; r < bin->rows; r++)
		hg__small_load_row(width, m, bin->first + r, tile + r * width);
	hg__small_zeros(width, bin, tile);
}

HG__INLINE void hg__small_put(int width, const struct hg__small_bin *bin, const struct hg__mat *m,
                              const float *tile)
{
	for (int r = 0; r < bin->rows; r++)
		hg__small_put_row(m, bin->first + r, tile + r * width);
}

/* ---- products ---- */

HG__INLINE hg__v16 hg__small_add_product(hg__v16 a, hg__v16 b, hg__v16 sum)
{
#if defined(__FMA__)
	return hg__vfma(a, b, sum);
#else
	return sum + a * b;
#endif
}

/* One block of hg__small_multiply. */
HG__INLINE void hg__small_multiply_block(int width, int add, const float *a, int down, int along,
                                         const float *b, int depth, float *out)
{
	hg__v16 sum[HG__SMALL_STRIP][HG__SMALL_VECTORS];
	for (int r = 0; r < HG__SMALL_STRIP; r++)
		for (int v = 0; v < HG__SMALL_VECTORS; v++)
			sum[r][v] = add ? hg__vload(out + r * width + v * HG__LANES) : hg__vset(0);
	for (int k = 0; k < depth; k++)
		for (int r = 0; r < HG__SMALL_STRIP; r++)
			for (int v = 0; v < HG__SMALL_VECTORS; v++)
				sum[r][v] =
				    hg__small_add_product(hg__vset(a[r * down + k * along]),
				                          hg__vload(b + k * width + v * HG__LANES), sum[r][v]);
	for (int r = 0; r < HG__SMALL_STRIP; r++)
		for (int v = 0; v < HG__SMALL_VECTORS; v++)
			hg__vstore(out + r * width + v * HG__LANES, sum[r][v]);
}

/* out = A B, or out + A B if add, for rows 0 .. rows - 1 and `depth` terms, which are added in
 * order. Neighbours in a row of A are `along` numbers apart, and rows `down`. add, down and along
 * are constants at every call. */
HG__INLINE void hg__small_multiply(int width, int add, const float *a, int down, int along,
                                   const float *b, int depth, int rows, float *out)
{
	for (int c = 0; c < width; c += HG__SMALL_VECTORS * HG__LANES)
		for (int row = 0; row < rows; row += HG__SMALL_STRIP)
			hg__small_multiply_block(width, add, a + row * down, down, along, b + c, depth,
			                         out + row * width + c);
}

/* value[p] = narrow(alpha r_i s_j) for the entries of the bin's rows: (i, j) of csr, or (j, i) if
 * that is the transpose. Stored for the whole batch, since a bin has any number of entries. */
HG__INLINE void hg__small_values(const struct hg__small_layers_args *a, const struct hg__csr *csr,
                                 int transposed, const struct hg__small_bin *bin, float *value)
{
	const float *r = a->row_scale, *s = a->col_scale;
	const int64_t begin = csr->rowptr[bin->first], end = csr->rowptr[bin->first + bin->rows];
	for (int64_t row = bin->first; row < bin->first + bin->rows; row++)
		for (int64_t p = csr->rowptr[row]; p < csr->rowptr[row + 1]; p++) {
			const int64_t i = transposed ? csr->col[p] : row, j = transposed ? row : csr->col[p];
			const float factor = r ? a->alpha * r[i] : a->alpha;
			value[p] = s ? factor * s[j] : factor;
		}
	for (int64_t p = begin; p < end; p += HG__LANES) {
		const int n = (int)hg__min(HG__LANES, end - p);
		hg__vstore_n(value + p, hg__vround_half(hg__vload_n(value + p, n)), n);
	}
}

/* out = A X for one bin, with the values of csr's entries. */
HG__INLINE void hg__small_aggregate(int width, const struct hg__csr *csr, const float *value,
                                    const struct hg__small_bin *bin, const float *x, float *out)
{
	for (int i = 0; i < bin->rows; i++) {
		hg__v16 sum[HG__SMALL_WIDTH / HG__LANES] = {{0}};
		for (int64_t p = csr->rowptr[bin->first + i]; p < csr->rowptr[bin->first + i + 1]; p++) {
			const float *row = x + (csr->col[p] - bin->first) * width;
			for (int v = 0; v < width / HG__LANES; v++)
				sum[v] = hg__small_add_product(hg__vset(value[p]), hg__vload(row + v * HG__LANES),
				                               sum[v]);
		}
		for (int v = 0; v < width / HG__LANES; v++)
			hg__vstore(out + i * width + v * HG__LANES, sum[v]);
	}
	hg__small_zeros(width, bin, out);
}

/* ---- narrowing ---- */

/* What a lane may find: a number that does not fit, or a NaN. */
enum { HG__SMALL_OVER = 1, HG__SMALL_NAN = 2 };
/* Adds to *over what each lane finds. The bits of |x| are ordered like |x|, with those of a NaN at
 * the end. */
HG__INLINE hg__v16 hg__small_narrow(hg__v16 x, hg__i16 *over)
{
	const hg__i16 least = (hg__i16)hg__vset(HG__OVERFLOW_LEAST);
	const hg__i16 bits = (hg__i16)x & 0x7FFFFFFF, infinite = (hg__i16)hg__vset(INFINITY);
	*over |= ((bits >= least) & HG__SMALL_OVER) | ((bits > infinite) & HG__SMALL_NAN);
	return hg__vround_half(x);
}

/* Sets the flag if a number overflowed. */
HG__INLINE void hg__small_raise(const struct hg__overflow_flag *flag, hg__i16 over)
{
	int any = 0;
	if (!flag->word)
		return;
	for (int i = 0; i < HG__LANES; i++)
		any |= over[i];
	const float number = any & HG__SMALL_NAN ? NAN : INFINITY;
	if (any)
		hg__guard_numbers(flag, 1, &number);
}

/* Rounds a bin's rows to halves. Rows of zeros behind them need none. */
HG__INLINE hg__i16 hg__small_narrow_tile(int width, const struct hg__small_bin *bin, float *tile)
{
	hg__i16 over = {0};
	for (int i = 0; i < bin->rows * width; i += HG__LANES)
		hg__vstore(tile + i, hg__small_narrow(hg__vload(tile + i), &over));
	return over;
}

/* H' = dropout(f(Z + b)), narrowed, in place. word: scratch memory, hg__small_words. */
HG__INLINE hg__i16 hg__small_end(int width, const struct hg__cpu_act_drop *end, const float *b,
                                 const struct hg__small_bin *bin, uint32_t *word, float *tile)
{
	hg__i16 over = {0};
	const int64_t words = 4 * end->stream.quads;
	if (end->drops)
		hg__draw(&end->stream, bin->first, 0, bin->rows * end->stream.quads, word);
	for (int r = 0; r < bin->rows; r++) {
		float *x = tile + r * width;
		for (int c = 0; c < width; c += HG__LANES) {
			const hg__v16 z = hg__vload(x + c) + hg__vload(b + c);
			hg__vstore(x + c, end->act ? relu_value(z, z) : z);
		}
		if (end->drops)
			hg__act_drop_drop(end, width, word + r * words, x);
		for (int c = 0; c < width; c += HG__LANES)
			hg__vstore(x + c, hg__small_narrow(hg__vload(x + c), &over));
	}
	return over;
}

/* ---- a layer ---- */

/* out = layer l of h, which is another tile. t, word: scratch memory, a tile and hg__small_words.
 * checks is a constant at every call: whether overflow is flagged. */
HG__INLINE void hg__small_forward(int width, int checks, const struct hg__small_job *job, int l,
                                  const struct hg__small_bin *bin, const float *h, float *t,
                                  uint32_t *word, float *out)
{
	const struct hg__small_layers_args *a = job->a;
	const struct hg__small_layer *layer = &a->layer[l];
	const int depth = (int)layer->w.rows;
	const float *w = job->w + job->first[l] * width * width;
	hg__i16 inner;
	if (layer->aggregate_first) {
		hg__small_aggregate(width, &a->csr, job->value, bin, h, t);
		inner = hg__small_narrow_tile(width, bin, t);
		hg__small_multiply(width, 0, t, width, 1, w, depth, bin->whole, out);
	} else {
		hg__small_multiply(width, 0, h, width, 1, w, depth, bin->whole, t);
		inner = hg__small_narrow_tile(width, bin, t);
		hg__small_aggregate(width, &a->csr, job->value, bin, t, out);
	}
	if (hg__small_has_self(layer))
		hg__small_multiply(width, 1, h, width, 1, w + width * width, depth, bin->whole, out);
	const hg__i16 result = hg__small_end(width, &job->end[l], job->b + l * width, bin, word, out);
	if (checks) {
		hg__small_raise(&layer->inner, inner);
		hg__small_raise(&layer->result, result);
	}
}

/* ---- a job ---- */

/* The memory of the operands and of the values of m entries. */
HG__INLINE size_t hg__small_job_bytes(const struct hg__small_layers_args *a)
{
	const int width = hg__small_width_of(a);
	return hg__small_bytes((hg__small_matrices(a) * width + a->layers) * width) +
	       hg__small_bytes(a->csr.m);
}

/* W or W_self, with zeros behind its rows and columns, to `out`. */
HG__INLINE void hg__small_load_matrix(int width, const struct hg__mat *w, float *out)
{
	for (int k = 0; k < w->rows; k++)
		hg__small_load_row(width, w, k, out + k * width);
}

/* Fills a job, of which memory [hg__small_job_bytes] becomes a part. The operands are widened once
 * for all bins. */
HG__INLINE void hg__small_open(struct hg__small_job *job, const struct hg__small_layers_args *a,
                               void *memory)
{
	const int width = hg__small_width_of(a), matrices = hg__small_matrices(a), of_w = width * width;
	int first = 0;
	job->a = a;
	job->width = width;
	job->w = memory;
	job->b = job->w + matrices * of_w;
	job->value = job->b + a->layers * width;
	memset(job->w, 0, (size_t)(matrices * of_w + a->layers * width) * sizeof(float));
	for (int l = 0; l < a->layers; l++) {
		const struct hg__small_layer *layer = &a->layer[l];
		job->first[l] = first;
		hg__small_load_matrix(width, &layer->w, job->w + first++ * of_w);
		if (hg__small_has_self(layer))
			hg__small_load_matrix(width, &layer->w_self, job->w + first++ * of_w);
		if (layer->b.data)
			hg__small_load_row(width, &layer->b, 0, job->b + l * width);
		job->end[l] = hg__act_drop_of(&layer->act_drop, layer->w.cols);
	}
}

/* The number of element operations, for hg__team. */
HG__INLINE int64_t hg__small_work(const struct hg__small_job *job)
{
	return job->a->x.rows * hg__small_matrices(job->a) * job->width;
}

#endif
