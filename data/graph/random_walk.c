/* Random-walk encodings (Dwivedi, Luu, Laurent, Bengio, Bresson 2022):
 *
 *     p[i, t] = (M^t)_ii,  M = D^-1 U,  t = 1 .. k,  U symmetric
 *
 * Let x_s = row i of M^s. Because d_i (M^s)_ij = d_j (M^s)_ji, half of the steps are enough:
 *
 *     p[i, 2 s] = d_i sum over j of x_s[j]^2 / d_j
 *     p[i, 2 s + 1] = d_i sum over j of x_s[j] x_{s+1}[j] / d_j
 *
 * Only the nodes that a walk reaches are visited. */
#include "graph/positional.h"

#include <stdlib.h>

/* A vector with few entries that are not 0. */
struct reached {
	double *x;     /* [n], 0 where not reached */
	int32_t *node; /* [n], of which `count` are reached, in the order of their first visit */
	int64_t count;
};

struct walk {
	const struct hg__sparse *graph;
	struct reached at[2]; /* x_s and x_{s+1} */
};

static void walk_free(struct walk *w)
{
	for (int k = 0; k < 2; k++) {
		free(w->at[k].x);
		free(w->at[k].node);
	}
}

static hg_status walk_alloc(struct walk *w, char *message)
{
	for (int k = 0; k < 2; k++) {
		struct reached *r = &w->at[k];
		HG__TRY(
		    hg__data_alloc(w->graph->rows, sizeof *r->x, "random walks", (void **)&r->x, message));
		HG__TRY(hg__data_alloc(w->graph->rows, sizeof *r->node, "random walks", (void **)&r->node,
		                       message));
		for (int64_t i = 0; i < w->graph->rows; i++)
			r->x[i] = 0.0;
	}
	return HG_OK;
}

static void clear(struct reached *r)
{
	for (int64_t k = 0; k < r->count; k++)
		r->x[r->node[k]] = 0.0;
	r->count = 0;
}

static double degree_of(const struct hg__sparse *graph, int64_t i)
{
	return (double)(graph->rowptr[i + 1] - graph->rowptr[i]);
}

/* to := the walk of `from` after one more step. Every share is positive, so 0 means not reached. */
static void step(const struct hg__sparse *graph, const struct reached *from, struct reached *to)
{
	clear(to);
	for (int64_t k = 0; k < from->count; k++) {
		const int32_t v = from->node[k];
		const double share = from->x[v] / degree_of(graph, v);
		for (int64_t e = graph->rowptr[v]; e < graph->rowptr[v + 1]; e++) {
			const int32_t j = graph->col[e];
			if (to->x[j] == 0.0)
				to->node[to->count++] = j;
			to->x[j] += share;
		}
	}
}

/* d_i sum over j of a[j] b[j] / d_j */
static double meeting(const struct hg__sparse *graph, int64_t i, const struct reached *a,
                      const struct reached *b)
{
	double sum = 0.0;
	for (int64_t k = 0; k < a->count; k++) {
		const int32_t j = a->node[k];
		sum += a->x[j] * b->x[j] / degree_of(graph, j);
	}
	return degree_of(graph, i) * sum;
}

static void walk_from(struct walk *w, int32_t i, int64_t columns, float *out)
{
	struct reached *now = &w->at[0], *next = &w->at[1];
	clear(now);
	clear(next);
	now->x[i] = 1.0;
	now->node[now->count++] = i;
	for (int64_t t = 1; t <= columns; t++) {
		if (t % 2) {
			step(w->graph, now, next);
			out[t - 1] = (float)meeting(w->graph, i, now, next);
		} else {
			struct reached *const last = now;
			now = next;
			next = last;
			out[t - 1] = (float)meeting(w->graph, i, now, now);
		}
	}
}

hg_status hg__random_walks(const struct hg__sparse *graph, int64_t columns,
                           const hg_progress *progress, float *out, char *message)
{
	struct walk w = {.graph = graph};
	hg_status status = walk_alloc(&w, message);
	for (int64_t i = 0; status == HG_OK && i < graph->rows; i++) {
		if (i % 256 == 0)
			status = hg__data_step(progress, "walking from nodes", i, graph->rows, message);
		if (graph->rowptr[i + 1] > graph->rowptr[i]) /* otherwise all 0 */
			walk_from(&w, (int32_t)i, columns, out + i * columns);
	}
	walk_free(&w);
	return status;
}
