/* Sums over edges with attention (autograd/about.h, HG__OVER_ATTENTION). */
#include <math.h>

#include "doctor/attention_edge.h"

/* The edge as a finding tells it. The first score that is not finite is remembered. */
static void tell_edge(const struct hg__edge_reader *from, const struct hg__edge *edge,
                      const struct hg__edge_score *score, double weight, struct hg__sum *sum,
                      struct hg__addend *a)
{
	a->edge = (hg_attended_edge){edge->i, edge->j, (int32_t)from->head, score->score, weight};
	if (score->bad && !sum->has_bad_score)
		sum->bad_score = a->edge;
	sum->has_bad_score |= score->bad;
}

/* One addend of the result or of a gradient, and what it is multiplied by. */
static hg_status fill_addend(const struct hg__terms *t, const struct hg__edge_reader *from,
                             enum hg__attended_as as, const struct hg__edge *edge,
                             struct hg__sum *sum, struct hg__addend *a)
{
	struct hg__edge_score score;
	double p = 0.0, mask = 1.0;
	HG__TRY(hg__edge_score(from, edge, &score));
	HG__TRY(hg__edge_weight(from, edge, score.score, &p, &mask));
	a->row = as == HG__AS_RESULT || as == HG__AS_Q ? edge->j : edge->i;
	a->col = t->j;
	a->factor = p == 0.0 ? 0.0 : mask * p;
	tell_edge(from, edge, &score, a->factor, sum, a);
	switch (as) {
	case HG__AS_RESULT:
		HG__TRY(hg__read_element(&from->v, edge->j, t->j, &a->operand));
		break;
	case HG__AS_V:
		HG__TRY(hg__read_element(&from->dy, edge->i, t->j, &a->operand));
		break;
	case HG__AS_Q:
	case HG__AS_K:
		HG__TRY(hg__edge_gradient(from, edge, p, mask, &a->factor));
		HG__TRY(hg__edge_derivative(from, edge, &score, as == HG__AS_K, t->j, &a->operand));
		break;
	}
	a->f = (float)a->factor;
	a->x = (float)a->operand;
	return HG_OK;
}

/* The addends of one use, behind the `taken` ones of the uses before. */
static hg_status fill_addends(const struct hg__terms *t, enum hg__attended_as as,
                              const struct hg__row_edges *edges, int64_t taken, struct hg__sum *sum)
{
	const struct hg__attention *of = &t->attention.of;
	const int scores = as == HG__AS_Q || as == HG__AS_K,
	          by_row = as == HG__AS_RESULT || as == HG__AS_Q;
	const int64_t width = (scores ? of->q.cols : of->v.cols) / of->heads;
	struct hg__edge_reader from;
	HG__TRY(hg__edge_reader_open(sum->ctx, &t->attention, t->j / width, edges->count, &from));
	hg_status status = HG_OK;
	for (int64_t e = 0; e < edges->count && status >= 0; e++) {
		const int64_t neighbour = hg__neighbour(edges, e);
		const struct hg__edge edge = {.i = by_row ? t->i : neighbour,
		                              .j = by_row ? neighbour : t->i,
		                              .value_row = hg__value_row(edges, e)};
		status = fill_addend(t, &from, as, &edge, sum, &sum->addend[taken + e]);
	}
	hg__edge_reader_close(&from);
	return status;
}

/* The edges of a node in each of its uses: as a destination those of its row, as a source those of
 * its column. */
enum { USES = 4 };
static const enum hg__attended_as every_use[USES] = {HG__AS_RESULT, HG__AS_Q, HG__AS_K, HG__AS_V};

static hg_status open_edges(const struct hg__terms *t, hg_context *ctx,
                            struct hg__row_edges edges[USES], int64_t *count)
{
	for (int u = 0; u < USES; u++) {
		if (!(t->attention.as & (unsigned)every_use[u]))
			continue;
		const int by_row = every_use[u] == HG__AS_RESULT || every_use[u] == HG__AS_Q;
		HG__TRY(hg__row_edges_open(ctx, by_row ? t->attention.csr : t->attention.csr_t, t->i,
		                           &edges[u]));
		*count += edges[u].count;
	}
	return HG_OK;
}

hg_status hg__sum_over_attention(const struct hg__terms *t, struct hg__sum *sum)
{
	struct hg__row_edges edges[USES] = {{0}};
	int64_t count = 0, taken = 0;
	hg_status status = open_edges(t, sum->ctx, edges, &count);
	if (status >= 0)
		status = hg__sum_alloc(sum, count);
	for (int u = 0; u < USES && status >= 0; u++) {
		if (edges[u].count)
			status = fill_addends(t, every_use[u], &edges[u], taken, sum);
		taken += edges[u].count;
	}
	for (int u = 0; u < USES; u++)
		hg__row_edges_close(sum->ctx, &edges[u]);
	sum->products = sum->attended = 1;
	return status;
}
