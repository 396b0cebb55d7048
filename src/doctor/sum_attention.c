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

/* One addend of the result or of a gradient, and what it is multiplied by: column j of a head. */
static hg_status fill_addend(int64_t j, const struct hg__edge_reader *from, enum hg__attended_as as,
                             const struct hg__edge *edge, struct hg__sum *sum, struct hg__addend *a)
{
	struct hg__edge_score score;
	double p = 0.0, mask = 1.0;
	HG__TRY(hg__edge_score(from, edge, &score));
	HG__TRY(hg__edge_weight(from, edge, score.score, &p, &mask));
	a->row = as == HG__AS_RESULT || as == HG__AS_Q ? edge->j : edge->i;
	a->col = j;
	a->factor = p == 0.0 ? 0.0 : mask * p;
	tell_edge(from, edge, &score, a->factor, sum, a);
	switch (as) {
	case HG__AS_RESULT:
		HG__TRY(hg__read_element(&from->v, edge->j, j, &a->operand));
		break;
	case HG__AS_V:
		HG__TRY(hg__read_element(&from->dy, edge->i, j, &a->operand));
		break;
	case HG__AS_Q:
	case HG__AS_K:
		HG__TRY(hg__edge_gradient(from, edge, p, mask, &a->factor));
		HG__TRY(hg__edge_derivative(from, edge, &score, as == HG__AS_K, j, &a->operand));
		break;
	}
	a->f = (float)a->factor;
	a->x = (float)a->operand;
	return HG_OK;
}

/* The addends of one use in one head, `share` of each: column j of all heads. */
static hg_status fill_head(const struct hg__terms *t, enum hg__attended_as as,
                           const struct hg__row_edges *edges, int64_t j, double share,
                           struct hg__addend *addend, struct hg__sum *sum)
{
	const struct hg__attention *of = &t->attention.of;
	const int scores = as == HG__AS_Q || as == HG__AS_K,
	          by_row = as == HG__AS_RESULT || as == HG__AS_Q;
	const int64_t width = (scores ? of->q.cols : of->v.cols) / of->heads;
	struct hg__edge_reader from;
	HG__TRY(hg__edge_reader_open(sum->ctx, &t->attention, j / width, edges->count, &from));
	hg_status status = HG_OK;
	for (int64_t e = 0; e < edges->count && status >= 0; e++) {
		const int64_t neighbour = hg__neighbour(edges, e);
		const struct hg__edge edge = {.i = by_row ? t->i : neighbour,
		                              .j = by_row ? neighbour : t->i,
		                              .value_row = hg__value_row(edges, e)};
		status = fill_addend(j, &from, as, &edge, sum, &addend[e]);
		addend[e].factor *= share;
		addend[e].f *= (float)share;
	}
	hg__edge_reader_close(&from);
	return status;
}

/* Of how many heads the element is the mean. */
static int64_t heads_of(const struct hg__attended *at)
{
	return at->mean ? at->of.heads : 1;
}

/* The addends of one use, from `addend` on. */
static hg_status fill_addends(const struct hg__terms *t, enum hg__attended_as as,
                              const struct hg__row_edges *edges, struct hg__addend *addend,
                              struct hg__sum *sum)
{
	const int64_t heads = heads_of(&t->attention), width = t->attention.of.v.cols / heads;
	for (int64_t k = 0; k < heads; k++)
		HG__TRY(fill_head(t, as, edges, k * width + t->j, 1.0 / (double)heads,
		                  addend + k * edges->count, sum));
	return HG_OK;
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
		*count += edges[u].count * heads_of(&t->attention);
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
			status = fill_addends(t, every_use[u], &edges[u], &sum->addend[taken], sum);
		taken += edges[u].count * heads_of(&t->attention);
	}
	for (int u = 0; u < USES; u++)
		hg__row_edges_close(sum->ctx, &edges[u]);
	sum->products = sum->attended = 1;
	return status;
}
