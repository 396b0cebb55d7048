/* The gradients of a layer with batch norms before and behind it, in one kernel (linear_back),
 * compared in f64 with sums over what the kernels of the norms store. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/buffer.h"
#include "core/context.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "oracle/num.h"

struct row {
	int64_t n, k, d;
	hg_dtype state, weights; /* weights: of dW */
	int before, behind;      /* is there a norm */
	int relu, padded, no_dx, shift;
};

struct matrix {
	hg_tensor *tensor;
	float *at; /* [rows, cols] */
};

enum {
	X,
	N,
	W,
	V,
	DN, /* the gradient of what the norm behind the layer makes of V, or of V */
	DV,
	DX,
	DW,
	DB,
	DGAMMA,
	DBETA,
	BEFORE, /* mean, rstd, gamma, beta of the norm before the layer */
	BEHIND, /* and of that behind it, with its dgamma and dbeta */
	MATRICES
};

struct scene {
	hg_context *ctx;
	const struct hg__kernels *k;
	struct matrix m[MATRICES];
	struct hg__buffer live;
	int64_t rows; /* that count */
};

static void make(struct scene *s, int which, hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct matrix *m = &s->m[which];
	m->at = calloc((size_t)(rows * cols) + 1, sizeof *m->at);
	CHECK(m->at != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		m->at[i] = (float)test_normal();
	CHECK_OK(hg_tensor_create(s->ctx, dtype, rows, cols, &m->tensor));
	CHECK_OK(hg_tensor_upload(m->tensor, m->at, HG_F32));
	CHECK_OK(hg_tensor_download(m->tensor, m->at, HG_F32)); /* as it was rounded */
}

static struct hg__mat mat(const struct scene *s, int which)
{
	return s->m[which].tensor->mat;
}

static struct hg__mat part(const struct scene *s, int which, int64_t row)
{
	struct hg__mat of = mat(s, which);
	of.data = (float *)of.data + row * of.ld;
	of.rows = 1;
	return of;
}

static void fetch(struct scene *s, int which)
{
	CHECK_OK(hg_tensor_download(s->m[which].tensor, s->m[which].at, HG_F32));
}

static float at(const struct scene *s, int which, int64_t row, int64_t col)
{
	return s->m[which].at[row * hg_tensor_cols(s->m[which].tensor) + col];
}

static void open_scene(struct scene *s, const struct row *r)
{
	*s = (struct scene){.ctx = test_context()};
	s->k = s->ctx->backend->kernels;
	s->rows = r->padded ? r->n - r->padded : r->n;
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof s->rows, &s->rows, "live", &s->live));
	make(s, X, r->state, r->n, r->k);
	make(s, N, r->state, r->n, r->k);
	make(s, W, r->state, r->k, r->d);
	make(s, V, r->state, r->n, r->d);
	make(s, DN, r->state, r->n, r->d);
	make(s, DV, r->state, r->n, r->d);
	make(s, DX, r->state, r->n, r->k);
	make(s, DW, r->weights, r->k, r->d);
	make(s, DB, HG_F32, 1, r->d);
	make(s, DGAMMA, HG_F32, 1, r->k);
	make(s, DBETA, HG_F32, 1, r->k);
	make(s, BEFORE, HG_F32, 4, r->k);
	make(s, BEHIND, HG_F32, 6, r->d);
}

static void close_scene(struct scene *s)
{
	for (int i = 0; i < MATRICES; i++) {
		hg_tensor_free(s->m[i].tensor);
		free(s->m[i].at);
	}
	hg__buffer_free(s->ctx, &s->live);
	hg_context_free(s->ctx);
}

/* Runs a norm, which stores its statistics and y. */
static void run_norm(const struct scene *s, const struct row *r, int x, int of, struct hg__mat y)
{
	const struct hg__batch_norm_args args = {.x = mat(s, x),
	                                         .gamma = part(s, of, 2),
	                                         .beta = part(s, of, 3),
	                                         .y = y,
	                                         .mean = part(s, of, 0),
	                                         .rstd = part(s, of, 1),
	                                         .momentum = 0.1f,
	                                         .eps = 1e-5f,
	                                         .train = 1,
	                                         .relu = r->relu,
	                                         .live = r->padded ? s->live.data : NULL};
	CHECK_OK(s->k->batch_norm.run(s->ctx, &args));
}

/* The gradients of the norm behind the layer: dV from dN, and the sums. */
static struct hg__batch_norm_back_args behind(const struct scene *s, const struct row *r)
{
	return (struct hg__batch_norm_back_args){.x = mat(s, V),
	                                         .gamma = part(s, BEHIND, 2),
	                                         .mean = part(s, BEHIND, 0),
	                                         .rstd = part(s, BEHIND, 1),
	                                         .dy = mat(s, DN),
	                                         .dx = mat(s, DV),
	                                         .dgamma = part(s, BEHIND, 4),
	                                         .dbeta = part(s, BEHIND, 5),
	                                         .beta = part(s, BEHIND, 3),
	                                         .relu = r->relu,
	                                         .live = r->padded ? s->live.data : NULL};
}

static void run(struct scene *s, const struct row *r)
{
	struct hg__linear_back_args args = {.x = mat(s, X),
	                                    .w = mat(s, W),
	                                    .dy = mat(s, DN),
	                                    .dx = mat(s, DX),
	                                    .dw = mat(s, DW),
	                                    .db = mat(s, DB),
	                                    .shift = r->shift};
	if (r->before) {
		run_norm(s, r, X, BEFORE, mat(s, N));
		args.normalise = (struct hg__normalise){.mean = part(s, BEFORE, 0).data,
		                                        .rstd = part(s, BEFORE, 1).data,
		                                        .gamma = part(s, BEFORE, 2).data,
		                                        .beta = part(s, BEFORE, 3).data,
		                                        .live = r->padded ? s->live.data : NULL,
		                                        .relu = r->relu};
		args.dgamma = mat(s, DGAMMA);
		args.dbeta = mat(s, DBETA);
	}
	if (r->behind) {
		const struct hg__mat none = {NULL, r->n, r->d, mat(s, V).ld, r->state};
		run_norm(s, r, V, BEHIND, none);
		args.through = behind(s, r);
		CHECK_OK(s->k->batch_norm_back.run(s->ctx, &args.through));
		args.through.dx = none;
	}
	if (r->no_dx) {
		args.dx.data = NULL;
		args.dgamma.data = args.dbeta.data = NULL;
	}
	CHECK_OK(s->k->linear_back.run(s->ctx, &args));
	for (int i = 0; i < MATRICES; i++)
		fetch(s, i);
}

/* A sum that is computed in f32, with so many roundings, and stored as a type. */
static void check_sum(const char *what, double found, double sum, double magnitude, double depth,
                      hg_dtype type)
{
	const double error = depth * ORACLE_U32 / (1.0 - depth * ORACLE_U32) * magnitude,
	             u = type == HG_F16 ? ORACLE_U16 : ORACLE_U32;
	CHECK_MSG(fabs(found - sum) <= error + u * (fabs(sum) + error) + 0x1p-25, "%s: %.9g, sum %.9g",
	          what, found, sum);
}

static void check_inputs(const struct scene *s, const struct row *r, int dy)
{
	for (int64_t i = 0; i < r->n && !r->no_dx; i += r->n > 100 ? 13 : 1)
		for (int64_t c = 0; c < r->k; c++) {
			double sum = 0.0, magnitude = 0.0;
			for (int64_t j = 0; j < r->d; j++) {
				const double term = (double)at(s, dy, i, j) * (double)at(s, W, c, j);
				sum += term;
				magnitude += fabs(term);
			}
			check_sum("dX", (double)at(s, DX, i, c), sum, magnitude,
			          hg__depth_dot(r->state, (double)r->d) + 2.0, r->state);
		}
}

static void check_weights(const struct scene *s, const struct row *r, int x, int dy)
{
	for (int64_t c = 0; c < r->d; c++) {
		double bias = 0.0, absolute = 0.0;
		for (int64_t i = 0; i < r->n; i++) {
			bias += (double)at(s, dy, i, c);
			absolute += fabs((double)at(s, dy, i, c));
		}
		check_sum("db", (double)at(s, DB, 0, c), bias, absolute, (double)r->n, HG_F32);
		for (int64_t k = 0; k < r->k; k += 1 + c % 3) {
			double sum = 0.0, magnitude = 0.0;
			for (int64_t i = 0; i < r->n; i++) {
				const double term =
				    ldexp((double)at(s, x, i, k) * (double)at(s, dy, i, c), r->shift);
				sum += term;
				magnitude += fabs(term);
			}
			check_sum("dW", (double)at(s, DW, k, c), sum, magnitude,
			          hg__depth_dot(r->state, (double)r->n) + 2.0, r->weights);
		}
	}
}

/* dgamma and dbeta from dX as it is stored, where relu passed it. xhat has two roundings. */
static void check_norm(const struct scene *s, const struct row *r)
{
	for (int64_t c = 0; c < r->k && !r->no_dx; c++) {
		double gamma = 0.0, beta = 0.0, gammas = 0.0, betas = 0.0;
		for (int64_t i = 0; i < s->rows; i++) {
			const float xhat = (at(s, X, i, c) - at(s, BEFORE, 0, c)) * at(s, BEFORE, 1, c),
			            y = at(s, BEFORE, 2, c) * xhat + at(s, BEFORE, 3, c);
			const double dx = r->relu && y <= 0.0f ? 0.0 : (double)at(s, DX, i, c);
			gamma += dx * (double)xhat;
			gammas += fabs(dx * (double)xhat);
			beta += dx;
			betas += fabs(dx);
		}
		check_sum("dgamma", (double)at(s, DGAMMA, 0, c), gamma, gammas, (double)r->n + 4.0, HG_F32);
		check_sum("dbeta", (double)at(s, DBETA, 0, c), beta, betas, (double)r->n, HG_F32);
	}
}

static void gradients_are_those_of_stored_norms(void)
{
	static const struct row rows[] = {
	    {700, 40, 24, HG_F16, HG_F32, 0, 0, 0, 0, 0, 0},
	    {700, 40, 24, HG_F16, HG_F32, 1, 0, 1, 0, 0, 0},
	    {700, 40, 24, HG_F16, HG_F32, 0, 1, 1, 0, 0, 3},
	    {700, 40, 24, HG_F16, HG_F32, 1, 1, 1, 0, 0, 0},
	    {700, 40, 24, HG_F16, HG_F32, 1, 1, 0, 90, 0, 0},
	    {5000, 64, 64, HG_F16, HG_F32, 1, 1, 1, 0, 0, 0},
	    {5000, 32, 32, HG_F16, HG_F32, 1, 1, 1, 700, 0, 0},
	    {1300, 3, 70, HG_F16, HG_F16, 1, 1, 1, 0, 0, 0},
	    {1300, 130, 7, HG_F16, HG_F32, 1, 1, 1, 1, 0, 0},
	    {300, 600, 300, HG_F16, HG_F32, 1, 1, 1, 0, 0, 0},
	    {700, 33, 17, HG_F32, HG_F32, 1, 1, 1, 0, 0, 0},
	    {700, 33, 17, HG_F32, HG_F32, 1, 1, 0, 50, 0, -1},
	    {700, 21, 40, HG_F16, HG_F32, 0, 1, 1, 0, 1, 0},
	    {64, 16, 16, HG_F16, HG_F32, 1, 1, 1, 0, 0, 0},
	    {2, 5, 5, HG_F16, HG_F32, 1, 1, 1, 0, 0, 0},
	    {1, 5, 5, HG_F16, HG_F32, 0, 0, 0, 0, 0, 0},
	    {1300, 3, 47, HG_F16, HG_F16, 1, 1, 1, 300, 0, 2},
	    {129, 64, 33, HG_F16, HG_F16, 0, 1, 1, 1, 0, 0},
	    {2000, 47, 64, HG_F16, HG_F16, 0, 0, 0, 0, 0, -3},
	    {40000, 64, 33, HG_F16, HG_F32, 1, 1, 1, 5000, 0, 0},
	    /* few outputs */
	    {4096, 32, 2, HG_F16, HG_F32, 0, 0, 0, 0, 0, 0},
	    {4097, 32, 1, HG_F16, HG_F32, 0, 0, 0, 0, 0, 2},
	    {30000, 100, 4, HG_F16, HG_F16, 0, 0, 0, 0, 0, -1},
	    {130, 256, 3, HG_F16, HG_F32, 0, 0, 0, 0, 1, 0},
	    {1, 9, 1, HG_F16, HG_F32, 0, 0, 0, 0, 0, 0},
	    {77, 257, 2, HG_F16, HG_F32, 0, 0, 0, 0, 0, 0},
	    {77, 4, 2, HG_F16, HG_F32, 0, 0, 0, 0, 0, 0},
	};
	int left_out = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];
		struct scene s;
		test_reseed(40 + (uint64_t)i);
		open_scene(&s, r);
		const struct hg__backend *backend = s.ctx->backend;
		if ((r->before || r->behind) &&
		    (!backend->takes_norms || !backend->takes_norms(s.ctx, r->state, r->n, r->k, r->d))) {
			left_out++;
		} else {
			run(&s, r);
			check_inputs(&s, r, r->behind ? DV : DN);
			check_weights(&s, r, r->before ? N : X, r->behind ? DV : DN);
			if (r->before)
				check_norm(&s, r);
		}
		close_scene(&s);
	}
	if (left_out)
		test_note("this backend has no norms on the way: %d rows are left out", left_out);
}

static void any_number_of_threads_gives_the_same_bits(void)
{
	static const struct row row = {40000, 32, 24, HG_F16, HG_F32, 1, 1, 1, 0, 0, 0};
	float *found[2];
	for (int threads = 1; threads <= 2; threads++) {
		struct scene s;
		test_reseed(5);
		open_scene(&s, &row);
		s.ctx->threads = s.ctx->backend->kind == HG_DEVICE_CPU ? threads : s.ctx->threads;
		if (!s.ctx->backend->takes_norms) {
			close_scene(&s);
			SKIP("this backend has no norms on the way");
		}
		run(&s, &row);
		const int64_t weights = row.k * row.d;
		float *all = calloc((size_t)(weights + 2 * row.k), sizeof *all);
		CHECK(all != NULL);
		memcpy(all, s.m[DW].at, (size_t)weights * sizeof *all);
		memcpy(all + weights, s.m[DGAMMA].at, (size_t)row.k * sizeof *all);
		memcpy(all + weights + row.k, s.m[DBETA].at, (size_t)row.k * sizeof *all);
		found[threads - 1] = all;
		close_scene(&s);
	}
	CHECK(memcmp(found[0], found[1], (size_t)(row.k * row.d + 2 * row.k) * sizeof **found) == 0);
	free(found[0]);
	free(found[1]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(gradients_are_those_of_stored_norms),
	                                         TEST(any_number_of_threads_gives_the_same_bits)};
	return RUN_TESTS(argc, argv, cases);
}
