/* Laplacian encodings (Dwivedi, Bresson 2021): for each connected component of n nodes the
 * eigenvectors of
 *
 *     L = I - N,  N = D^-1/2 U D^-1/2,
 *
 * of its smallest eigenvalues, without the first one, u = D^1/2 1 / |D^1/2 1| of eigenvalue 0. They
 * are the eigenvectors of the largest eigenvalues of N, which lie in [-1, 1]. Each has unit norm,
 * and a sign that the vector decides (sign_of). A component with fewer than k + 1 nodes has fewer
 * vectors; the other columns are 0.
 *
 * A small component is solved as a dense matrix. A large one by subspace iteration with a filter
 * (Zhou, Saad, Tiago, Chelikowsky 2006): of a block X of b > k vectors, orthogonal to u and to each
 * other,
 *
 *     Ritz      X <- X W,  W the eigenvectors of X' N X
 *     filter    X <- T_m((N - e) / h) X,  [e - h, e + h] = [-1, smallest Ritz value]
 *
 * T_m, Chebyshev's polynomial, is at most 1 in that interval and grows fastest beyond it. It ends
 * when |N x - mu x| <= 2^-24 for each of the k vectors, the rounding of a unit vector to f32. */
#include "graph/positional.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* Vectors beside the wanted ones: how fast the last wanted one converges depends on the distance of
 * its eigenvalue from the last one of the block. */
#define SPARE 8
/* Up to this many nodes a component is dense. Jacobi's method takes about 60 n^3 operations. */
#define DENSE 128
#define DEGREE 24   /* of the filter */
#define ROUNDS 2000 /* of Ritz and filter; then the eigenvalues are too close together */
#define RESIDUAL 0x1p-24

struct part {
	const struct hg__sparse *graph;
	int64_t n;
	const int32_t *node;  /* [n], ascending */
	const int32_t *local; /* [rows of the graph]: the place of a node in its component */
	const double *root;   /* [rows of the graph]: 1 / sqrt(degree) */
	double *u;            /* [n] */
};

struct space {
	int64_t b;
	double *x, *y, *z;            /* [n, b] */
	double *small, *vector, *row; /* [b, b], [b, b], [b] */
	double *value;                /* [b] */
	int64_t *place;               /* [b] */
};

/* Y = N X, blocks of b columns. */
static void multiply(const struct part *p, int64_t b, const double *x, double *y)
{
	for (int64_t i = 0; i < p->n; i++) {
		const int64_t node = p->node[i];
		double *row = y + i * b;
		memset(row, 0, (size_t)b * sizeof *row);
		for (int64_t e = p->graph->rowptr[node]; e < p->graph->rowptr[node + 1]; e++) {
			const int32_t j = p->graph->col[e];
			const double a = p->root[node] * p->root[j], *from = x + p->local[j] * b;
			for (int64_t c = 0; c < b; c++)
				row[c] += a * from[c];
		}
	}
}

static void find_trivial(const struct part *p)
{
	double sum = 0.0;
	for (int64_t i = 0; i < p->n; i++)
		sum += 1.0 / (p->root[p->node[i]] * p->root[p->node[i]]);
	for (int64_t i = 0; i < p->n; i++)
		p->u[i] = 1.0 / (p->root[p->node[i]] * sqrt(sum));
}

/* ---- the signs ---- */

/* The first element that is as large as the largest one, up to 2^-10 of it, is positive. The margin
 * is for vectors of symmetric graphs, where several elements differ only by rounding. */
static double sign_of(const double *x, int64_t n, int64_t stride)
{
	double most = 0.0;
	for (int64_t i = 0; i < n; i++)
		most = fmax(most, fabs(x[i * stride]));
	for (int64_t i = 0; i < n; i++)
		if (fabs(x[i * stride]) >= most * (1.0 - 0x1p-10))
			return x[i * stride] < 0.0 ? -1.0 : 1.0;
	return 1.0;
}

/* The first `count` columns of x [n, b] to the rows of the component's nodes. */
static void put(const struct part *p, const double *x, int64_t b, int64_t count, int64_t columns,
                float *out)
{
	for (int64_t c = 0; c < count; c++) {
		const double sign = sign_of(x + c, p->n, b);
		for (int64_t i = 0; i < p->n; i++)
			out[p->node[i] * columns + c] = (float)(sign * x[i * b + c]);
	}
}

/* ---- dense ---- */

/* N - 3 u u' has the eigenvalue -2 for u and otherwise those of N, so u comes last. */
static void dense_fill(const struct part *p, double *a)
{
	for (int64_t i = 0; i < p->n; i++)
		for (int64_t j = 0; j < p->n; j++)
			a[i * p->n + j] = -3.0 * p->u[i] * p->u[j];
	for (int64_t i = 0; i < p->n; i++) {
		const int64_t node = p->node[i];
		for (int64_t e = p->graph->rowptr[node]; e < p->graph->rowptr[node + 1]; e++) {
			const int32_t j = p->graph->col[e];
			a[i * p->n + p->local[j]] += p->root[node] * p->root[j];
		}
	}
}

/* ---- large ---- */

/* A number in [-1, 1) that depends on node and column alone. */
static double start(int64_t node, int64_t column)
{
	const struct hg__rng4 r = hg__rng_quad(hg__rng_key(0, 0), node, (uint32_t)column, 0);
	return (double)r.w[0] * 0x1p-31 - 1.0;
}

/* x [n] of column c minus its part along q (stride `step`), whose square norm is 1. */
static void subtract(int64_t n, double *x, int64_t b, const double *q, int64_t step)
{
	double dot = 0.0;
	for (int64_t i = 0; i < n; i++)
		dot += x[i * b] * q[i * step];
	for (int64_t i = 0; i < n; i++)
		x[i * b] -= dot * q[i * step];
}

static double norm_of(int64_t n, const double *x, int64_t b)
{
	double sum = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += x[i * b] * x[i * b];
	return sqrt(sum);
}

/* Gram-Schmidt, every column twice, which makes it orthogonal to the rounding (Giraud, Langou,
 * Rozloznik 2005). */
static void orthonormalise(const struct part *p, double *x, int64_t b)
{
	for (int64_t c = 0; c < b; c++)
		for (int pass = 0; pass < 2; pass++) {
			subtract(p->n, x + c, b, p->u, 1);
			for (int64_t k = 0; k < c; k++)
				subtract(p->n, x + c, b, x + k, b);
			const double norm = norm_of(p->n, x + c, b);
			for (int64_t i = 0; i < p->n; i++)
				x[i * b + c] /= norm;
		}
}

/* x <- x W, W [b, b] */
static void combine(int64_t n, int64_t b, double *x, const double *w, double *row)
{
	for (int64_t i = 0; i < n; i++) {
		memset(row, 0, (size_t)b * sizeof *row);
		for (int64_t k = 0; k < b; k++)
			for (int64_t c = 0; c < b; c++)
				row[c] += x[i * b + k] * w[k * b + c];
		memcpy(x + i * b, row, (size_t)b * sizeof *row);
	}
}

/* X and Y = N X become Ritz vectors and their products. Returns the largest residual of the first
 * `wanted`. */
static double ritz(const struct part *p, struct space *s, int64_t wanted)
{
	const int64_t b = s->b;
	double most = 0.0;
	multiply(p, b, s->x, s->y);
	memset(s->small, 0, (size_t)(b * b) * sizeof *s->small);
	for (int64_t i = 0; i < p->n; i++)
		for (int64_t k = 0; k < b; k++)
			for (int64_t c = 0; c <= k; c++)
				s->small[k * b + c] += s->x[i * b + k] * s->y[i * b + c];
	for (int64_t k = 0; k < b; k++)
		for (int64_t c = 0; c < k; c++)
			s->small[c * b + k] = s->small[k * b + c];
	hg__symmetric_eigen(b, s->small, s->value, s->vector, s->place);
	combine(p->n, b, s->x, s->vector, s->row);
	combine(p->n, b, s->y, s->vector, s->row);
	for (int64_t c = 0; c < wanted; c++) {
		double sum = 0.0;
		for (int64_t i = 0; i < p->n; i++) {
			const double r = s->y[i * b + c] - s->value[c] * s->x[i * b + c];
			sum += r * r;
		}
		most = fmax(most, sqrt(sum));
	}
	return most;
}

/* X <- T_m((N - e) / h) X, with Y = N X given:  T_1 = (Y - e X) / h,
 * T_{t+1} = 2 (N T_t - e T_t) / h - T_{t-1}. */
static void filter(const struct part *p, struct space *s)
{
	const int64_t count = p->n * s->b;
	const double top = s->value[s->b - 1], e = (top - 1.0) / 2, h = (top + 1.0) / 2;
	double *before = s->x, *now = s->y, *next = s->z;
	for (int64_t k = 0; k < count; k++)
		now[k] = (now[k] - e * before[k]) / h;
	for (int t = 1; t < DEGREE; t++) {
		multiply(p, s->b, now, next);
		for (int64_t k = 0; k < count; k++)
			next[k] = 2.0 * (next[k] - e * now[k]) / h - before[k];
		double *const free_one = before;
		before = now;
		now = next;
		next = free_one;
	}
	s->x = now;
	s->y = before;
	s->z = next;
}

static hg_status iterate(const struct part *p, struct space *s, int64_t wanted,
                         const hg_progress *progress, char *message)
{
	double residual = 0.0;
	for (int64_t i = 0; i < p->n; i++)
		for (int64_t c = 0; c < s->b; c++)
			s->x[i * s->b + c] = start(i, c);
	for (int64_t round = 0; round < ROUNDS; round++) {
		HG__TRY(hg__data_step(progress, "finding eigenvectors", round, 0, message));
		orthonormalise(p, s->x, s->b);
		residual = ritz(p, s, wanted);
		if (residual <= RESIDUAL)
			return HG_OK;
		filter(p, s);
	}
	return hg__data_fail(message, HG_ERR_UNSUPPORTED,
	                     "positional: eigenvectors of a component of %" PRId64
	                     " nodes have a residual of %.1e after %d rounds, expected %.1e",
	                     p->n, residual, ROUNDS, RESIDUAL);
}

/* ---- one component ---- */

static void space_free(struct space *s)
{
	void *const all[] = {s->x, s->y, s->z, s->small, s->vector, s->row, s->value, s->place};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		free(all[k]);
}

/* A dense component needs only what the eigenvectors of a matrix [b, b] need. */
static hg_status space_alloc(int64_t n, int64_t b, int dense, struct space *s, char *message)
{
	const struct {
		double **memory;
		int64_t count;
	} parts[] = {{&s->small, b * b},
	             {&s->vector, b * b},
	             {&s->value, b},
	             {&s->row, b},
	             {&s->x, dense ? 0 : n * b},
	             {&s->y, dense ? 0 : n * b},
	             {&s->z, dense ? 0 : n * b}};
	*s = (struct space){.b = b};
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
		HG__TRY(hg__data_alloc(parts[k].count, sizeof(double), "eigenvectors",
		                       (void **)parts[k].memory, message));
	return hg__data_alloc(b, sizeof *s->place, "eigenvectors", (void **)&s->place, message);
}

static hg_status solve(const struct part *p, int64_t columns, const hg_progress *progress,
                       float *out, char *message)
{
	const int64_t wanted = columns < p->n - 1 ? columns : p->n - 1, block = wanted + SPARE;
	const int dense = p->n <= DENSE || p->n <= 2 * block;
	struct space s;
	if (wanted == 0)
		return HG_OK;
	hg_status status = space_alloc(p->n, dense ? p->n : block, dense, &s, message);
	if (status == HG_OK)
		find_trivial(p);
	if (status == HG_OK && dense) {
		dense_fill(p, s.small);
		hg__symmetric_eigen(p->n, s.small, s.value, s.vector, s.place);
		put(p, s.vector, p->n, wanted, columns, out);
	} else if (status == HG_OK) {
		status = iterate(p, &s, wanted, progress, message);
		if (status == HG_OK)
			put(p, s.x, s.b, wanted, columns, out);
	}
	space_free(&s);
	return status;
}

/* ---- all components ---- */

struct parts {
	int32_t *node;  /* [n]: the nodes of each component, ascending, one component after the other */
	int32_t *local; /* [n]: the place of a node in its component; -1: not yet found */
	double *root, *u;
};

static void parts_free(struct parts *all)
{
	free(all->node);
	free(all->local);
	free(all->root);
	free(all->u);
}

static hg_status parts_alloc(int64_t n, struct parts *all, char *message)
{
	*all = (struct parts){0};
	HG__TRY(hg__data_alloc(n, sizeof *all->node, "components", (void **)&all->node, message));
	HG__TRY(hg__data_alloc(n, sizeof *all->local, "components", (void **)&all->local, message));
	HG__TRY(hg__data_alloc(n, sizeof *all->root, "components", (void **)&all->root, message));
	return hg__data_alloc(n, sizeof *all->u, "components", (void **)&all->u, message);
}

static int by_number(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* The component of node `first`, breadth first, to all->node from `begin` on. Returns its size. */
static int64_t find_component(const struct hg__sparse *graph, struct parts *all, int32_t first,
                              int64_t begin)
{
	int64_t end = begin;
	all->local[first] = 0;
	all->node[end++] = first;
	for (int64_t k = begin; k < end; k++)
		for (int64_t e = graph->rowptr[all->node[k]]; e < graph->rowptr[all->node[k] + 1]; e++) {
			const int32_t j = graph->col[e];
			if (all->local[j] >= 0)
				continue;
			all->local[j] = 0;
			all->node[end++] = j;
		}
	qsort(all->node + begin, (size_t)(end - begin), sizeof *all->node, by_number);
	for (int64_t k = begin; k < end; k++)
		all->local[all->node[k]] = (int32_t)(k - begin);
	return end - begin;
}

hg_status hg__laplacian_vectors(const struct hg__sparse *graph, int64_t columns,
                                const hg_progress *progress, float *out, char *message)
{
	struct parts all;
	int64_t begin = 0;
	hg_status status = parts_alloc(graph->rows, &all, message);
	for (int64_t i = 0; status == HG_OK && i < graph->rows; i++) {
		const int64_t degree = graph->rowptr[i + 1] - graph->rowptr[i];
		all.local[i] = -1;
		all.root[i] = degree ? 1.0 / sqrt((double)degree) : 0.0;
	}
	for (int64_t i = 0; status == HG_OK && i < graph->rows; i++) {
		if (all.local[i] >= 0)
			continue;
		const int64_t n = find_component(graph, &all, (int32_t)i, begin);
		const struct part p = {graph, n, all.node + begin, all.local, all.root, all.u};
		status = hg__data_step(progress, "finding eigenvectors", begin, graph->rows, message);
		if (status == HG_OK)
			status = solve(&p, columns, progress, out, message);
		begin += n;
	}
	parts_free(&all);
	return status;
}
