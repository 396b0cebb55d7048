#ifndef HG_TESTS_SMALL_LAYERS_SCENE_H
#define HG_TESTS_SMALL_LAYERS_SCENE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bins.h"
#include "core/buffer.h"
#include "core/csr.h"
#include "graphs.h"
#include "kernels/kernels.h"
#include "precision/bound.h"
#include "precision/half.h"

/* Batches of small graphs, and calls of small_layers and small_layers_back on them. */

enum { LAYERS = 5, STEP = 5, KEY = 77, SPARE = 3, PADDING = 5 };

/* ---- shapes ---- */

struct layer {
	int width, aggregate_first, bias, relu;
	float p;
	int stored; /* its result and a gradient of it; those of the last layer are always */
	int self;   /* it has a W_self */
};
struct shape {
	const char *what;
	int graphs, symmetric, rows_scaled, cols_scaled;
	float alpha;
	int features, layers;
	struct layer layer[LAYERS];
	int large;   /* some graphs are larger than a bin */
	int readout; /* 0: none; else 1 + the hg_reduce of what is read out of the last layer */
};

static inline int shape_width(const struct shape *of)
{
	int most = of->features;
	for (int l = 0; l < of->layers; l++)
		most = of->layer[l].width > most ? of->layer[l].width : most;
	return hg__small_width(most);
}

/* ---- a batch ---- */

/* A as dense bins would have it: one entry where the graph has several, with its error, and how
 * many they are. */
struct entries {
	int64_t *begin;
	int32_t *col, *times;
	double *x, *e;
};

struct scene {
	hg_context *ctx;
	const struct hg__kernels *kernels;
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	struct hg__buffer first, step, r, s, ptr, id;
	int64_t *graph_of, *graph_ptr; /* host: of each row, -1: none; [graphs + 1] */
	int64_t graphs;
	struct hg__bins bins;
	struct entries a;
	int64_t rows;
	int symmetric;
	float alpha;
};

enum { SIZES = 14 };
static inline int64_t size_of_graph(const struct shape *of, int k)
{
	static const int sizes[2][SIZES] = {
	    {48, 1, 0, 47, 1, 5, 20, 48, 13, 30, 0, 24, 24, 2},
	    {384, 300, 84, 49, 1, 5, 20, 96, 13, 383, 0, 97, 24, 2},
	};
	return sizes[of->large != 0][k % SIZES];
}

/* Every fifth graph has no edges, and some edges are there several times. The largest graphs have
 * more entries than a GPU keeps in shared memory for a bin. */
static inline void add_graph(struct coo *list, int k, int64_t first, int64_t n)
{
	for (int64_t e = 0; k % 5 != 3 && e < (n > 380 ? 14 : 2) * n; e++) {
		const int64_t i = first + test_below(n), j = first + test_below(n);
		for (int64_t times = 1 + test_below(8) / 6; times > 0; times--)
			coo_add(list, i, j);
	}
	for (int64_t i = 0; k % 5 != 3 && i < n; i += 2)
		coo_add(list, first + i, first + i);
}

/* Products of two such factors with alpha are exact in f32. */
static inline struct hg__buffer factors(struct scene *s, float **host)
{
	struct hg__buffer buffer;
	*host = malloc((size_t)(s->rows + 1) * sizeof **host);
	CHECK(*host);
	for (int64_t i = 0; i < s->rows; i++)
		(*host)[i] = (float)(16 + test_below(48)) / 64.0f;
	CHECK_OK(hg__buffer_upload(s->ctx, s->rows, sizeof **host, *host, "factors", &buffer));
	return buffer;
}

static inline double round_half(double x)
{
	return (double)hg__half_to_float(hg_half_from_double(x));
}

/* The entries of A. A sum of repeated ones may be narrowed with each that is added. */
static inline void make_entries(struct scene *s, const float *r, const float *c)
{
	const struct host_csr g = host_csr_download(s->ctx, s->graph);
	struct entries *a = &s->a;
	int64_t n = 0;
	a->begin = calloc((size_t)s->rows + 1, sizeof *a->begin);
	a->col = calloc((size_t)g.m + 1, sizeof *a->col);
	a->times = calloc((size_t)g.m + 1, sizeof *a->times);
	a->x = calloc((size_t)g.m + 1, sizeof *a->x);
	a->e = calloc((size_t)g.m + 1, sizeof *a->e);
	CHECK(a->begin && a->col && a->times && a->x && a->e);
	for (int64_t i = 0; i < s->rows; i++) {
		for (int64_t p = g.rowptr[i]; p < g.rowptr[i + 1]; p++) {
			const int again = n > a->begin[i] && a->col[n - 1] == g.col[p];
			const int64_t at = again ? n - 1 : n++;
			a->col[at] = g.col[p];
			a->times[at]++;
			a->x[at] += round_half((double)s->alpha * (r ? (double)r[i] : 1.0) *
			                       (c ? (double)c[g.col[p]] : 1.0));
			if (again && (a->e[at] > 0 || round_half(a->x[at]) != a->x[at]))
				a->e[at] += hg__bound_narrow(HG_F16, a->x[at] + a->e[at]);
		}
		a->begin[i + 1] = n;
	}
	host_csr_free((struct host_csr[]){g});
}

/* More bins than have nodes, and rows behind the last graph, as a padded batch has. */
static inline void make_bins(struct scene *s, int graphs, const int64_t *ptr)
{
	int64_t largest = 0;
	for (int k = 0; k < graphs; k++)
		largest = ptr[k + 1] - ptr[k] > largest ? ptr[k + 1] - ptr[k] : largest;
	s->bins.rows = hg__bins_rows(largest);
	s->bins.bins = hg__bins_most(s->rows) + SPARE;
	int32_t *first = malloc((size_t)(s->bins.bins + 2) * sizeof *first);
	CHECK(first);
	CHECK(hg__bins_cut(graphs, ptr, s->rows, s->bins.bins, first) < s->bins.bins);
	CHECK_OK(hg__buffer_upload(s->ctx, s->bins.bins + 2, sizeof *first, first, "bins", &s->first));
	s->bins.first = s->first.data;
	free(first);
}

static inline void close_list(struct scene *s, struct coo list)
{
	const int64_t step = STEP;
	s->graph = coo_graph(s->ctx, list);
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	CHECK_OK(hg__graph_csr_t(s->graph, 0, &s->csr_t));
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof step, &step, "step", &s->step));
}

/* The graphs as readouts read them; padding has none. */
static inline void make_graphs(struct scene *s, int64_t graphs, const int64_t *ptr)
{
	int32_t *id = calloc((size_t)s->rows + 1, sizeof *id);
	s->graph_of = calloc((size_t)s->rows + 1, sizeof *s->graph_of);
	s->graph_ptr = calloc((size_t)graphs + 1, sizeof *s->graph_ptr);
	s->graphs = graphs;
	CHECK(id && s->graph_of && s->graph_ptr);
	memcpy(s->graph_ptr, ptr, (size_t)(graphs + 1) * sizeof *ptr);
	for (int64_t i = 0; i < s->rows; i++)
		id[i] = -1;
	for (int64_t g = 0; g < graphs; g++)
		for (int64_t i = ptr[g]; i < ptr[g + 1]; i++)
			id[i] = (int32_t)g;
	for (int64_t i = 0; i < s->rows; i++)
		s->graph_of[i] = id[i];
	CHECK_OK(hg__buffer_upload(s->ctx, graphs + 1, sizeof *ptr, ptr, "ptr", &s->ptr));
	CHECK_OK(hg__buffer_upload(s->ctx, s->rows, sizeof *id, id, "id", &s->id));
	free(id);
}

static inline void scene_open(struct scene *s, const struct shape *of)
{
	float *r = NULL, *c = NULL;
	int64_t *ptr = calloc((size_t)of->graphs + 1, sizeof *ptr);
	*s = (struct scene){.ctx = test_context(), .symmetric = of->symmetric, .alpha = of->alpha};
	s->kernels = s->ctx->backend->kernels;
	CHECK(ptr);
	for (int k = 0; k < of->graphs; k++)
		ptr[k + 1] = ptr[k] + size_of_graph(of, k);
	s->rows = of->graphs ? ptr[of->graphs] + PADDING : 0;
	struct coo list = coo_empty(s->rows, s->rows);
	for (int k = 0; k < of->graphs; k++)
		add_graph(&list, k, ptr[k], ptr[k + 1] - ptr[k]);
	if (of->symmetric)
		coo_add_transpose(&list);
	close_list(s, list);
	make_bins(s, of->graphs, ptr);
	make_graphs(s, of->graphs, ptr);
	if (of->rows_scaled)
		s->r = factors(s, &r);
	if (of->cols_scaled && !of->symmetric)
		s->s = factors(s, &c);
	make_entries(s, r, of->symmetric ? r : c);
	free(r);
	free(c);
	free(ptr);
}

static inline void scene_close(struct scene *s)
{
	hg__buffer_free(s->ctx, &s->first);
	hg__buffer_free(s->ctx, &s->ptr);
	hg__buffer_free(s->ctx, &s->id);
	free(s->graph_of);
	free(s->graph_ptr);
	hg__buffer_free(s->ctx, &s->step);
	hg__buffer_free(s->ctx, &s->r);
	hg__buffer_free(s->ctx, &s->s);
	free(s->a.begin);
	free(s->a.col);
	free(s->a.times);
	free(s->a.x);
	free(s->a.e);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
}

/* ---- operands ---- */

/* A matrix on the device, and its numbers as stored. */
struct operand {
	hg_tensor *tensor;
	float *x; /* [rows, cols] */
	int64_t rows, cols;
};

/* All bits are set, also in the padding, so that what is read from there, or not written, shows. */
static inline void fill(struct scene *s, struct operand *o)
{
	if (o->tensor->bytes > 0)
		CHECK_OK(s->ctx->backend->fill(s->ctx, o->tensor->mat.data, 0xFF, o->tensor->bytes));
}

static inline struct operand operand_new(struct scene *s, hg_dtype dtype, int64_t rows,
                                         int64_t cols)
{
	struct operand o = {NULL, calloc((size_t)(rows * cols) + 1, sizeof(float)), rows, cols};
	CHECK(o.x);
	CHECK_OK(hg_tensor_create(s->ctx, dtype, rows, cols, &o.tensor));
	fill(s, &o);
	return o;
}

static inline void send(struct operand *o)
{
	CHECK_OK(hg_tensor_upload(o->tensor, o->x, HG_F32));
	CHECK_OK(hg_tensor_download(o->tensor, o->x, HG_F32));
}

static inline struct operand random_operand(struct scene *s, int64_t rows, int64_t cols,
                                            double mean, double size)
{
	struct operand o = operand_new(s, HG_F16, rows, cols);
	for (int64_t i = 0; i < rows * cols; i++)
		o.x[i] = (float)(mean + size * test_normal());
	send(&o);
	return o;
}

static inline struct operand constant_operand(struct scene *s, int64_t rows, int64_t cols, float x)
{
	struct operand o = operand_new(s, HG_F16, rows, cols);
	for (int64_t i = 0; i < rows * cols; i++)
		o.x[i] = x;
	send(&o);
	return o;
}

static inline void operand_free(struct operand *o)
{
	hg_tensor_free(o->tensor);
	free(o->x);
}

/* ---- a run ---- */

struct run {
	struct scene *s;
	const struct shape *shape;
	struct operand x, kept, dx, w[LAYERS], b[LAYERS], dw[LAYERS], db[LAYERS];
	struct operand w_self[LAYERS], dw_self[LAYERS];
	struct operand y[LAYERS], dy[LAYERS];
	struct operand mask[LAYERS]; /* what the kernel `dropout` makes of ones */
	struct operand readout, dreadout;
	struct hg__small_layer layer[LAYERS];
	struct hg__small_layers_args forward;
	struct hg__small_layers_back_args back;
};

static inline void make_mask(struct run *r, int l)
{
	const struct hg__act_drop *end = &r->layer[l].act_drop;
	struct operand ones = constant_operand(r->s, r->s->rows, r->shape->layer[l].width, 1.0f);
	r->mask[l] = operand_new(r->s, HG_F16, ones.rows, ones.cols);
	const struct hg__dropout_args a = {ones.tensor->mat, r->mask[l].tensor->mat, end->p, end->key,
	                                   end->step};
	CHECK_OK(r->s->kernels->dropout.run(r->s->ctx, &a));
	CHECK_OK(hg_tensor_download(r->mask[l].tensor, r->mask[l].x, HG_F32));
	operand_free(&ones);
}

/* The sums of a row of H W have about the size of the elements of H. */
static inline void make_layer(struct run *r, int l, int cols)
{
	const struct layer *of = &r->shape->layer[l];
	struct hg__small_layer *to = &r->layer[l];
	r->w[l] = random_operand(r->s, cols, of->width, 0.0, 1.0 / sqrt(cols));
	r->dw[l] = operand_new(r->s, HG_F32, cols, of->width);
	r->db[l] = operand_new(r->s, HG_F32, 1, of->width);
	*to = (struct hg__small_layer){.w = r->w[l].tensor->mat,
	                               .aggregate_first = of->aggregate_first,
	                               .dw = r->dw[l].tensor->mat,
	                               .db = r->db[l].tensor->mat};
	if (of->self) {
		r->w_self[l] = random_operand(r->s, cols, of->width, 0.0, 1.0 / sqrt(cols));
		r->dw_self[l] = operand_new(r->s, HG_F32, cols, of->width);
		to->w_self = r->w_self[l].tensor->mat;
		to->dw_self = r->dw_self[l].tensor->mat;
	}
	if (of->bias) {
		r->b[l] = random_operand(r->s, 1, of->width, 0.0, 0.5);
		to->b = r->b[l].tensor->mat;
	}
	if (of->relu)
		to->act_drop =
		    (struct hg__act_drop){1 + HG__ACT_relu, 0.0f, of->p,
		                          KEY + (uint64_t)l * 0x9E3779B97F4A7C15u, r->s->step.data};
	if (of->p > 0.0f)
		make_mask(r, l);
}

/* dY has a mean, so that sums over all rows are as large as their terms together. */
static inline void store_layer(struct run *r, int l)
{
	const int width = r->shape->layer[l].width;
	r->y[l] = operand_new(r->s, HG_F16, r->s->rows, width);
	r->dy[l] = random_operand(r->s, r->s->rows, width, 1.0, 1.0);
	r->layer[l].y = r->y[l].tensor->mat;
	r->layer[l].dy = r->dy[l].tensor->mat;
}

static inline void make_readout(struct run *r)
{
	struct scene *s = r->s;
	const int width = r->shape->layer[r->shape->layers - 1].width;
	r->readout = operand_new(s, HG_F16, s->graphs, width);
	r->dreadout = random_operand(s, s->graphs, width, 1.0, 1.0);
	r->forward.readout = (struct hg__small_readout){.ptr = s->ptr.data,
	                                                .id = s->id.data,
	                                                .y = r->readout.tensor->mat,
	                                                .dy = r->dreadout.tensor->mat,
	                                                .reduce = (hg_reduce)(r->shape->readout - 1)};
}

static inline void run_open(struct run *r, struct scene *s, const struct shape *shape)
{
	int drops = 0;
	*r = (struct run){.s = s, .shape = shape};
	for (int l = 0; l < shape->layers; l++) {
		make_layer(r, l, l ? shape->layer[l - 1].width : shape->features);
		drops |= shape->layer[l].p > 0.0f;
		if (shape->layer[l].stored || (l + 1 == shape->layers && !shape->readout))
			store_layer(r, l);
	}
	r->x = random_operand(s, s->rows, shape->features, 0.0, 1.0);
	r->dx = operand_new(s, HG_F16, s->rows, shape->features);
	if (drops)
		r->kept = operand_new(s, HG_I32, s->bins.bins * shape->layers,
		                      hg__small_kept(shape_width(shape)));
	r->forward = (struct hg__small_layers_args){.csr = s->csr,
	                                            .row_scale = s->r.data,
	                                            .col_scale = s->symmetric ? s->r.data : s->s.data,
	                                            .alpha = s->alpha,
	                                            .bins = &s->bins,
	                                            .layer = r->layer,
	                                            .layers = shape->layers,
	                                            .x = r->x.tensor->mat};
	if (drops)
		r->forward.kept = r->kept.tensor->mat;
	if (shape->readout)
		make_readout(r);
	r->back = (struct hg__small_layers_back_args){
	    .of = r->forward, .csr_t = s->csr_t, .symmetric = s->symmetric, .dx = r->dx.tensor->mat};
}

static inline void run_close(struct run *r)
{
	struct operand *const all[] = {&r->x, &r->kept, &r->dx, &r->readout, &r->dreadout};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		operand_free(all[i]);
	for (int l = 0; l < LAYERS; l++) {
		operand_free(&r->w[l]);
		operand_free(&r->b[l]);
		operand_free(&r->dw[l]);
		operand_free(&r->db[l]);
		operand_free(&r->w_self[l]);
		operand_free(&r->dw_self[l]);
		operand_free(&r->mask[l]);
		operand_free(&r->y[l]);
		operand_free(&r->dy[l]);
	}
}

/* The results: dx, dw and db of each layer, dw_self of those that have one, what is stored of
 * layers, and what is read out. */
enum { RESULTS = 2 + 4 * LAYERS };
static inline int results_of(struct run *r, struct operand *results[RESULTS])
{
	int n = 0;
	results[n++] = &r->dx;
	for (int l = 0; l < r->shape->layers; l++) {
		results[n++] = &r->dw[l];
		results[n++] = &r->db[l];
	}
	for (int l = 0; l < r->shape->layers; l++)
		if (r->shape->layer[l].self)
			results[n++] = &r->dw_self[l];
	for (int l = 0; l < r->shape->layers; l++)
		if (r->layer[l].y.data)
			results[n++] = &r->y[l];
	if (r->shape->readout)
		results[n++] = &r->readout;
	return n;
}

static inline void run_both(struct run *r)
{
	struct operand *results[RESULTS];
	const int n = results_of(r, results);
	for (int i = 0; i < n; i++)
		fill(r->s, results[i]);
	CHECK_OK(r->s->kernels->small_layers.run(r->s->ctx, &r->forward));
	CHECK_OK(r->s->kernels->small_layers_back.run(r->s->ctx, &r->back));
	for (int i = 0; i < n; i++)
		CHECK_OK(hg_tensor_download(results[i]->tensor, results[i]->x, HG_F32));
}

#endif
