#ifndef HG_TESTS_SMALL_LAYERS_EQUATIONS_H
#define HG_TESTS_SMALL_LAYERS_EQUATIONS_H

#include "unit/small_layers_scene.h"

/* The equations of small layers (kernels/small_layers.h) in f64, and bounds on how far a kernel may
 * be from them.
 *
 * Bounds. A number of the reference is a band: its value, and how far a kernel's may be from it.
 * Where the contract narrows, the reference rounds the value, and what a kernel stores lies between
 * the ends of the band, rounded: mostly the value itself, and where a sum is so near to the middle
 * of two halves that the error of f32 sums decides, one of the two. A band that is wider than 0 is
 * multiplied by its factors in the products that follow. An element of H' whose band holds numbers
 * on both sides of 0 may pass relu's gradient or not, and the band of its dZ holds both.
 *
 * A sum of k products that are not 0 has the depth hg__depth_tiles(k), whatever its order and with
 * tensor cores or without: a product with 0 adds no error. A bias is one product more. */

#define U32 0x1p-24

/* ---- bands ---- */

struct band {
	double *x, *e;
	double *size; /* of a sum: that of its terms together */
	int64_t rows, cols;
};

static inline struct band band_new(int64_t rows, int64_t cols)
{
	const size_t n = (size_t)(rows * cols);
	struct band b = {calloc(3 * n + 1, sizeof(double)), NULL, NULL, rows, cols};
	CHECK(b.x);
	b.e = b.x + n;
	b.size = b.e + n;
	return b;
}

static inline struct band band_of(const struct operand *o)
{
	struct band b = band_new(o->rows, o->cols);
	for (int64_t i = 0; i < o->rows * o->cols; i++)
		b.x[i] = (double)o->x[i];
	return b;
}

/* A sum of products: its value, how far off it is because its factors are, the size of its terms,
 * and how many of them are not 0. */
struct sum {
	double x, e, size, terms;
};

static inline void add_product(double ax, double ae, double bx, double be, int times,
                               struct sum *sum)
{
	const double size = (fabs(ax) + ae) * (fabs(bx) + be);
	sum->x += ax * bx;
	sum->e += fabs(ax) * be + fabs(bx) * ae + ae * be;
	sum->size += size;
	sum->terms += size > 0.0 ? times : 0;
}

/* depth: another bound on the depth. */
static inline void put_sum(const struct sum *sum, double depth, struct band *to, int64_t at)
{
	to->x[at] = sum->x;
	to->size[at] = sum->size;
	to->e[at] = sum->e + hg__bound_sum_f32(fmin(depth, hg__depth_tiles(sum->terms + 1)), sum->size);
}

/* out [rows, cols] = the sum over k of A[i, k] B[k, c], where element (i, k) of A is number
 * i * down + k * along, and B's likewise. */
struct factor {
	const struct band *of;
	int64_t down, along;
};
static inline struct band multiply(struct factor a, struct factor b, int64_t rows, int64_t n,
                                   int64_t cols, double depth)
{
	struct band out = band_new(rows, cols);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t c = 0; c < cols; c++) {
			struct sum sum = {0};
			for (int64_t k = 0; k < n; k++) {
				const int64_t p = i * a.down + k * a.along, q = k * b.down + c * b.along;
				add_product(a.of->x[p], a.of->e[p], b.of->x[q], b.of->e[q], 1, &sum);
			}
			put_sum(&sum, depth, &out, i * cols + c);
		}
	return out;
}

/* A X, or A^T X. */
static inline struct band aggregate(const struct entries *a, int transposed, const struct band *x)
{
	struct band out = band_new(x->rows, x->cols);
	struct sum *sum = calloc((size_t)(x->rows * x->cols) + 1, sizeof *sum);
	CHECK(sum);
	for (int64_t i = 0; i < x->rows; i++)
		for (int64_t p = a->begin[i]; p < a->begin[i + 1]; p++) {
			const int64_t to = (transposed ? a->col[p] : i) * x->cols,
			              from = (transposed ? i : a->col[p]) * x->cols;
			for (int64_t c = 0; c < x->cols; c++)
				add_product(a->x[p], a->e[p], x->x[from + c], x->e[from + c], a->times[p],
				            &sum[to + c]);
		}
	for (int64_t i = 0; i < x->rows * x->cols; i++)
		put_sum(&sum[i], INFINITY, &out, i);
	free(sum);
	return out;
}

/* A kernel's number is between the ends of the band, and rounding keeps the order. */
static inline void narrow(struct band *b)
{
	for (int64_t i = 0; i < b->rows * b->cols; i++) {
		const double x = round_half(b->x[i]), low = round_half(b->x[i] - b->e[i]),
		             high = round_half(b->x[i] + b->e[i]);
		b->x[i] = x;
		b->e[i] = fmax(high - x, x - low);
	}
}

/* ---- the reference ---- */

/* A product with W, of at most HG__SMALL_WIDTH terms and a bias. */
static inline struct band times_w(const struct band *h, const struct band *w, int transposed)
{
	const int64_t cols = transposed ? w->rows : w->cols;
	return multiply((struct factor){h, h->cols, 1},
	                (struct factor){w, transposed ? 1 : w->cols, transposed ? w->cols : 1}, h->rows,
	                h->cols, cols, hg__depth_dot(HG_F16, HG__SMALL_WIDTH + 1));
}

/* a + b, in place of a; b is freed. It is one sum, in any order, of the terms of both, of which
 * each has as many as a row of W, or as a bin has rows. */
static inline void add_sums(struct band *a, struct band *b)
{
	const double depth = hg__depth_dot(HG_F16, 2 * HG__SMALL_WIDTH + 1);
	for (int64_t i = 0; i < a->rows * a->cols; i++) {
		a->x[i] += b->x[i];
		a->size[i] += b->size[i];
		a->e[i] += b->e[i] + hg__bound_sum_f32(depth, a->size[i]);
	}
	free(b->x);
}

/* H' from Z, in place. The bias is one term of the sums, the first or the last one. The factor
 * 1 / (1 - p) is one or two roundings, and so is the product. */
static inline void end_layer(const struct run *r, int l, struct band *z)
{
	const struct layer *of = &r->shape->layer[l];
	const double factor = 1.0 / (1.0 - (double)of->p),
	             depth =
	                 hg__depth_dot(HG_F16, of->self ? 2 * HG__SMALL_WIDTH + 1 : HG__BIN_ROWS + 1);
	for (int64_t i = 0; i < z->rows * z->cols; i++) {
		double x = z->x[i], e = z->e[i];
		if (of->bias) {
			const double b = (double)r->b[l].x[i % z->cols];
			e += hg__bound_sum_f32(depth, fabs(b));
			x += b;
		}
		if (of->relu) {
			const double low = fmax(x - e, 0.0), high = fmax(x + e, 0.0);
			x = fmax(x, 0.0);
			e = fmax(high - x, x - low);
		}
		if (of->p > 0.0f) {
			const double keeps = r->mask[l].x[i] > 0.0f ? factor : 0.0;
			x *= keeps;
			e = keeps * e + 4 * U32 * (x + keeps * e);
		}
		z->x[i] = x;
		z->e[i] = e;
	}
	narrow(z);
}

static inline struct band forward_layer(const struct run *r, int l, const struct band *h)
{
	struct band w = band_of(&r->w[l]), t, z;
	if (r->shape->layer[l].aggregate_first) {
		t = aggregate(&r->s->a, 0, h);
		narrow(&t);
		z = times_w(&t, &w, 0);
	} else {
		t = times_w(h, &w, 0);
		narrow(&t);
		z = aggregate(&r->s->a, 0, &t);
	}
	if (r->shape->layer[l].self) {
		struct band w_self = band_of(&r->w_self[l]), own = times_w(h, &w_self, 0);
		add_sums(&z, &own);
		free(w_self.x);
	}
	end_layer(r, l, &z);
	free(t.x);
	free(w.x);
	return z;
}

/* dZ from dH, in place. y: the band of H'. Returns how many elements may pass relu or not. */
static inline int64_t end_layer_back(const struct run *r, int l, const struct band *y,
                                     struct band *d)
{
	const struct layer *of = &r->shape->layer[l];
	const double factor = 1.0 / (1.0 - (double)of->p);
	int64_t unsure = 0;
	for (int64_t i = 0; of->relu && i < d->rows * d->cols; i++) {
		const int passes = y->x[i] > 0.0, may_pass = y->x[i] + y->e[i] > 0.0,
		          may_stop = y->x[i] - y->e[i] <= 0.0;
		double x = d->x[i] * factor, e = d->e[i] * factor;
		if (of->p > 0.0f)
			e += 4 * U32 * (fabs(x) + e);
		unsure += may_pass && may_stop;
		d->e[i] = !may_pass ? 0.0 : may_stop ? fabs(x) + e : e;
		d->x[i] = passes ? x : 0.0;
	}
	narrow(d);
	return unsure;
}

/* dX of a layer. A backend that takes it through the dropout of the layer before may narrow dZ
 * alone: then dX is what it was before it is narrowed. */
static inline struct band input_gradient(const struct run *r, int l, const struct band *t,
                                         const struct band *dz)
{
	struct band w = band_of(&r->w[l]), d = times_w(t, &w, 1), wide = band_new(d.rows, d.cols);
	if (r->shape->layer[l].self) {
		struct band w_self = band_of(&r->w_self[l]), own = times_w(dz, &w_self, 1);
		add_sums(&d, &own);
		free(w_self.x);
	}
	memcpy(wide.x, d.x, (size_t)(2 * d.rows * d.cols) * sizeof(double));
	narrow(&d);
	for (int64_t i = 0; l > 0 && r->shape->layer[l - 1].p > 0.0f && i < d.rows * d.cols; i++)
		d.e[i] = fmax(d.e[i], fabs(wide.x[i] - d.x[i]) + wide.e[i]);
	free(wide.x);
	free(w.x);
	return d;
}

static inline void check_band(const struct run *r, const char *name, int l, const struct operand *o,
                              const struct band *b)
{
	double errors = 0.0, size = 0.0;
	int64_t equal = 0;
	for (int64_t i = 0; i < o->rows * o->cols; i++) {
		const double x = (double)o->x[i];
		CHECK_MSG(fabs(x - b->x[i]) <= b->e[i],
		          "%s: %s of layer %d, row %lld, column %lld: %.9g, expected %.9g +- %.3g",
		          r->shape->what, name, l, (long long)(i / o->cols), (long long)(i % o->cols), x,
		          b->x[i], b->e[i]);
		errors += b->e[i] * b->e[i];
		size += b->x[i] * b->x[i];
		equal += x == b->x[i];
	}
	test_note("%s: %s of layer %d: bound %.2g of its norm, equal %lld of %lld", r->shape->what,
	          name, l, size > 0.0 ? sqrt(errors / size) : 0.0, (long long)equal,
	          (long long)(o->rows * o->cols));
}

/* The gradients of W and b: sums over the rows of a bin, by tensor cores or one after the other,
 * and then over bins. */
static inline void check_parameters(const struct run *r, int l, const struct band *h,
                                    const struct band *dz, const struct band *t)
{
	const double depth = hg__depth_dot(HG_F16, HG__BIN_ROWS) + (double)r->s->rows;
	struct band one = band_new(1, 1),
	            dw = multiply((struct factor){h, 1, h->cols}, (struct factor){t, t->cols, 1},
	                          h->cols, h->rows, t->cols, depth);
	one.x[0] = 1.0;
	struct band db = multiply((struct factor){&one, 0, 0}, (struct factor){dz, dz->cols, 1}, 1,
	                          dz->rows, dz->cols, depth);
	check_band(r, "dW", l, &r->dw[l], &dw);
	if (r->shape->layer[l].self) {
		struct band dw_self =
		    multiply((struct factor){h, 1, h->cols}, (struct factor){dz, dz->cols, 1}, h->cols,
		             h->rows, dz->cols, depth);
		check_band(r, "dW_self", l, &r->dw_self[l], &dw_self);
		free(dw_self.x);
	}
	check_band(r, "db", l, &r->db[l], &db);
	free(one.x);
	free(dw.x);
	free(db.x);
}

/* The rest of a gradient, which does not come through the next layer, is added to what was
 * narrowed. */
static inline void add_rest(const struct operand *rest, struct band *d)
{
	for (int64_t i = 0; i < d->rows * d->cols; i++)
		d->x[i] += (double)rest->x[i];
	narrow(d);
}

/* What is read out of the last result: sums of at most as many terms as the largest graph has
 * nodes, and of a mean one rounding more. */
static inline struct band read_out(const struct run *r, const struct band *h)
{
	const struct scene *s = r->s;
	struct band out = band_new(s->graphs, h->cols);
	for (int64_t g = 0; g < s->graphs; g++) {
		const int64_t rows = s->graph_ptr[g + 1] - s->graph_ptr[g];
		const double size = r->shape->readout == 1 + HG_REDUCE_MEAN && rows ? (double)rows : 1.0;
		for (int64_t c = 0; c < h->cols; c++) {
			struct sum sum = {0};
			for (int64_t i = s->graph_ptr[g]; i < s->graph_ptr[g + 1]; i++)
				add_product(h->x[i * h->cols + c], h->e[i * h->cols + c], 1.0, 0.0, 1, &sum);
			sum.x /= size;
			sum.e /= size;
			sum.size /= size;
			put_sum(&sum, (double)rows + 1.0, &out, g * h->cols + c);
		}
	}
	narrow(&out);
	return out;
}

/* The gradient of the last result from that of what is read out of it: two roundings of f32 before
 * it is narrowed. */
static inline struct band readout_gradient(const struct run *r)
{
	const struct scene *s = r->s;
	struct band d = band_new(s->rows, r->dreadout.cols);
	for (int64_t i = 0; i < s->rows; i++) {
		const int64_t g = s->graph_of[i];
		for (int64_t c = 0; g >= 0 && c < d.cols; c++) {
			const double size = r->shape->readout == 1 + HG_REDUCE_MEAN
			                        ? (double)(s->graph_ptr[g + 1] - s->graph_ptr[g])
			                        : 1.0;
			d.x[i * d.cols + c] = (double)r->dreadout.x[g * d.cols + c] / size;
			d.e[i * d.cols + c] = 2.0 * U32 * fabs(d.x[i * d.cols + c]);
		}
	}
	narrow(&d);
	return d;
}

static inline void check_run(struct run *r)
{
	const int layers = r->shape->layers;
	struct band h[LAYERS + 1],
	    d = r->shape->readout ? readout_gradient(r) : band_of(&r->dy[layers - 1]);
	int64_t unsure = 0;
	h[0] = band_of(&r->x);
	for (int l = 0; l < layers; l++)
		h[l + 1] = forward_layer(r, l, &h[l]);
	for (int l = 0; l < layers; l++)
		if (r->layer[l].y.data)
			check_band(r, "the result", l, &r->y[l], &h[l + 1]);
	if (r->shape->readout) {
		struct band out = read_out(r, &h[layers]);
		check_band(r, "the readout", layers - 1, &r->readout, &out);
		free(out.x);
	}
	for (int l = layers - 1; l >= 0; l--) {
		if (l < layers - 1 && r->layer[l].dy.data)
			add_rest(&r->dy[l], &d);
		unsure += end_layer_back(r, l, &h[l + 1], &d);
		struct band t = aggregate(&r->s->a, 1, &d);
		narrow(&t);
		check_parameters(r, l, &h[l], &d, &t);
		const struct band dz = d;
		d = input_gradient(r, l, &t, &dz);
		free(dz.x);
		free(t.x);
	}
	check_band(r, "dX", 0, &r->dx, &d);
	test_note("%s: %lld elements may pass relu or not", r->shape->what, (long long)unsure);
	free(d.x);
	for (int l = 0; l <= layers; l++)
		free(h[l].x);
}

#endif
