/* The arrays of a graph that is refilled (core/refill.h): the complete list of edges, sorted as
 * every other list. It is compiled only once, because the loops wait for memory and not for
 * arithmetic. */
#include <string.h>

#include "core/graph.h"
#include "core/refill.h"
#include "core/rounding.h"
#include "kernels/cpu/backend.h"
#include "kernels/overflow.h"
#include "precision/half.h"

/* The complete list, in scratch memory. order: the entry of the list at each place of the CSR. */
struct complete_list {
	int32_t *dst, *src;
	int64_t *order;
};

static struct complete_list list_in(void *scratch, int64_t edges)
{
	struct complete_list list;
	list.order = scratch;
	list.dst = (int32_t *)(list.order + edges);
	list.src = list.dst + edges;
	return list;
}

hg_status hg__cpu_refill_scratch(hg_context *ctx, const struct hg__refill *r, size_t *bytes)
{
	(void)ctx;
	*bytes = r->to.scatters ? hg__refill_degree_bytes(r)
	                        : (size_t)r->edges * (2 * sizeof(int32_t) + sizeof(int64_t));
	return HG_OK;
}

static void least(uint64_t *word, uint64_t other)
{
	if (other < *word)
		*word = other;
}

static void complete(const struct hg__refill *r, const struct complete_list *list)
{
	*r->broken = hg__refill_counts_broken(r);
	for (int64_t e = 0; e < r->edges; e++) {
		const struct hg__refill_edge edge = hg__refill_edge_at(r, e);
		list->dst[e] = edge.dst;
		list->src[e] = edge.src;
		least(r->broken, edge.broken);
	}
}

static void put_weights(const struct hg__refill *r, const int64_t *order)
{
	if (!r->to.weight)
		return;
	for (int64_t p = 0; p < r->edges; p++) {
		r->to.weight[p] = hg__refill_edge_at(r, order[p]).weight;
		((hg_half *)r->to.weight_f16)[p] = hg__half_from_float(r->to.weight[p]);
	}
}

static void check_degree(const struct hg__refill *r, int64_t i, int64_t degree,
                         enum hg__promise promise)
{
	if (degree > r->max_degree)
		least(r->broken, hg__broken_word(promise, i));
}

static void check_degrees(const struct hg__refill *r, const int64_t *ptr, enum hg__promise promise)
{
	const int64_t nodes = hg__refill_within(r->live[0], r->nodes);
	for (int64_t i = 0; i < nodes; i++)
		check_degree(r, i, ptr[i + 1] - ptr[i], promise);
}

static void put_live(const struct hg__refill *r)
{
	const struct hg__changing *to = &r->to;
	const int64_t nodes = hg__refill_within(r->live[0], r->nodes);
	to->ptr[0] = 0;
	to->ptr[1] = nodes;
	for (int64_t i = 0; i < r->rows; i++)
		to->id[i] = i < nodes ? 0 : -1;
}

static void put_nodes(const struct hg__refill *r)
{
	const struct hg__changing *to = &r->to;
	struct hg__rounding rounding;
	hg__rounding_begin(&rounding);
	hg__degree_inverse(r->rows, to->rowptr, to->inverse_row);
	hg__degree_root(r->rows, to->rowptr, to->root_row);
	hg__degree_inverse(r->rows, to->rowptr_t, to->inverse_col);
	hg__degree_root(r->rows, to->rowptr_t, to->root_col);
	hg__rounding_end(&rounding);
	put_live(r);
	check_degrees(r, to->rowptr, HG__PROMISE_IN_DEGREE);
	check_degrees(r, to->rowptr_t, HG__PROMISE_OUT_DEGREE);
}

/* ---- a list that stays as it is ---- */

/* The factors of rows or of columns, of which there are `degree`. */
static void put_factors(int64_t rows, const int32_t *degree, float *inverse, float *root)
{
	for (int64_t i = 0; i < rows; i++) {
		const int64_t ptr[2] = {0, degree[i]};
		hg__degree_inverse(1, ptr, inverse + i);
		hg__degree_root(1, ptr, root + i);
	}
}

static void put_list(const struct hg__refill *r)
{
	const struct hg__changing *to = &r->to;
	const int64_t nodes = hg__refill_within(r->live[0], r->nodes);
	int32_t *in = hg__refill_degrees(r, 0), *out = hg__refill_degrees(r, 1);
	struct hg__rounding rounding;
	complete(r, &(struct complete_list){.dst = to->dst, .src = to->src});
	memset(r->scratch, 0, hg__refill_degree_bytes(r));
	for (int64_t e = 0; e < r->edges; e++) {
		in[to->dst[e]]++;
		out[to->src[e]]++;
	}
	for (int64_t e = 0; to->weight && e < r->edges; e++)
		to->weight[e] = hg__refill_edge_at(r, e).weight;
	hg__rounding_begin(&rounding);
	put_factors(r->rows, in, to->inverse_row, to->root_row);
	put_factors(r->rows, out, to->inverse_col, to->root_col);
	hg__rounding_end(&rounding);
	put_live(r);
	for (int64_t i = 0; i < nodes; i++) {
		check_degree(r, i, in[i], HG__PROMISE_IN_DEGREE);
		check_degree(r, i, out[i], HG__PROMISE_OUT_DEGREE);
	}
}

hg_status hg__cpu_refill(hg_context *ctx, const struct hg__refill *r)
{
	if (r->to.scatters) {
		put_list(r);
		return HG_OK;
	}
	const struct hg__changing *to = &r->to;
	const struct complete_list list = list_in(r->scratch, r->edges);
	const struct hg__csr csr = {r->rows, r->rows, r->edges, to->rowptr, to->col, NULL, NULL};
	complete(r, &list);
	HG__TRY(hg__cpu_csr_from_coo(ctx, r->rows, r->rows, r->edges, list.dst, list.src, to->rowptr,
	                             to->col, list.order));
	HG__TRY(hg__cpu_csr_transpose(ctx, &csr, to->rowptr_t, to->col_t, to->edge_t));
	put_weights(r, list.order);
	put_nodes(r);
	return HG_OK;
}

hg_status hg__cpu_raise(hg_context *ctx, const uint64_t *broken, int32_t node, uint64_t *word)
{
	const uint64_t raised = hg__overflow_word(node, INFINITY);
	(void)ctx;
	if (*broken != HG__PROMISES_KEPT && raised > *word)
		*word = raised;
	return HG_OK;
}
