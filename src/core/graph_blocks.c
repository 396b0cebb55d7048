/* Parts of a graph as graphs of their own. A node of a whole block keeps its row, its column and
 * its degrees, so what bounds the graph bounds every part of it, and proofs made with these bounds
 * are the same for all parts. */
#include "core/graph_blocks.h"

/* A matrix that loses rows has shorter columns, and a factor 1/d'(j) of a column becomes larger. No
 * factor is above 1, so the plain sums bound the normalised ones. */
static void loosen(hg_graph_facts *f)
{
	for (int norm = 0; norm < HG_NORMS; norm++) {
		f->norm_row_sum[norm] = f->max_row_sum;
		f->norm_col_sum[norm] = f->max_col_sum;
	}
	f->symmetric = 0;
}

hg_status hg__part_facts_get(hg_graph *whole, int blocks, struct hg__part_facts *of)
{
	float least, positive;
	HG__TRY(hg__graph_know(whole));
	HG__TRY(hg__graph_least_weight(whole, &least, &positive));
	*of = (struct hg__part_facts){.facts = whole->facts,
	                              .pattern_symmetric = blocks && whole->pattern_symmetric,
	                              .least_weight = least,
	                              .least_positive = positive,
	                              .batch_max = whole->batch_max,
	                              .batch_min = whole->batch_min};
	of->facts.empty_rows = of->facts.empty_cols = of->facts.self_loops = 0;
	if (!blocks)
		loosen(&of->facts);
	return HG_OK;
}

static hg_status copy_arrays(hg_graph *g, const struct hg__part *p)
{
	hg_context *ctx = g->ctx;
	HG__TRY(hg__buffer_upload(ctx, p->rows + 1, sizeof *p->rowptr, p->rowptr, "graph: rowptr",
	                          &g->rowptr));
	HG__TRY(hg__buffer_upload(ctx, p->m, sizeof *p->col, p->col, "graph: col", &g->col));
	if (p->weight)
		HG__TRY(hg__buffer_upload(ctx, p->m, sizeof *p->weight, p->weight, "graph: weight",
		                          &g->weight));
	if (!p->count)
		return HG_OK;
	HG__TRY(
	    hg__buffer_upload(ctx, p->count + 1, sizeof *p->ptr, p->ptr, "batch: ptr", &g->batch_ptr));
	return hg__buffer_upload(ctx, p->rows, sizeof *p->id, p->id, "batch: id", &g->batch_id);
}

static void take_facts(hg_graph *g, const struct hg__part_facts *of, int64_t count)
{
	g->facts = of->facts;
	g->pattern_symmetric = of->pattern_symmetric;
	g->least_weight = of->least_weight;
	g->least_positive = of->least_positive;
	g->facts_known = g->least_weight_known = 1;
	if (!count)
		return;
	g->batch = count;
	g->batch_set = 1;
	g->batch_max = of->batch_max;
	g->batch_min = of->batch_min;
}

hg_status hg__graph_of_part(hg_context *ctx, const struct hg__part *p,
                            const struct hg__part_facts *of, hg_graph **graph)
{
	hg_graph *g = NULL;
	*graph = NULL;
	HG__TRY(hg__graph_new(ctx, p->rows, p->cols, p->m, &g));
	const hg_status status = copy_arrays(g, p);
	if (status < 0) {
		hg_graph_free(g);
		return status;
	}
	take_facts(g, of, p->count);
	g->bins.rows = hg__bins_rows_of(p->count, p->ptr);
	*graph = g;
	return HG_OK;
}

/* ---- arrays that change ---- */

static struct hg__buffer borrow(void *data, int64_t count, size_t size)
{
	return data ? (struct hg__buffer){data, (size_t)count * size, HG__BORROWED}
	            : (struct hg__buffer){0};
}

static void borrow_arrays(hg_graph *g, const struct hg__changing *a)
{
	g->dst = borrow(a->dst, a->m, sizeof *a->dst);
	g->src = borrow(a->src, a->m, sizeof *a->src);
	g->rowptr = borrow(a->rowptr, a->rows + 1, sizeof *a->rowptr);
	g->col = borrow(a->col, a->m, sizeof *a->col);
	g->weight = borrow(a->weight, a->m, sizeof *a->weight);
	g->weight_f16 = borrow(a->weight_f16, a->m, sizeof(hg_half));
	g->rowptr_t = borrow(a->rowptr_t, a->rows + 1, sizeof *a->rowptr_t);
	g->col_t = borrow(a->col_t, a->m, sizeof *a->col_t);
	g->edge_t = borrow(a->edge_t, a->m, sizeof *a->edge_t);
	g->inverse_row = borrow(a->inverse_row, a->rows, sizeof(float));
	g->inverse_col = borrow(a->inverse_col, a->rows, sizeof(float));
	g->root_row = borrow(a->root_row, a->rows, sizeof(float));
	g->root_col = borrow(a->root_col, a->rows, sizeof(float));
	g->batch_ptr = borrow(a->ptr, a->count + 1, sizeof *a->ptr);
	g->batch_id = borrow(a->id, a->rows, sizeof *a->id);
	g->bins = a->bins;
	g->bin_first = borrow(a->bins.first, a->bins.bins + 2, sizeof *a->bins.first);
}

/* Tiles and dense counts would be those of one batch. */
static hg_status plan_rows(hg_graph *g, const int64_t *rowptr, struct hg__plan **plan)
{
	const struct hg__csr csr = {g->rows, g->cols, g->m, rowptr, NULL, NULL, NULL};
	void *memory = NULL;
	HG__TRY(hg__host_alloc(g->ctx, 1, sizeof **plan, "plan", &memory));
	*plan = memory;
	**plan = hg__plan_by_row(&csr);
	(*plan)->tiles_tried = (*plan)->dense_tried = 1;
	return HG_OK;
}

hg_status hg__graph_of_changing(hg_context *ctx, const struct hg__changing *a,
                                const struct hg__part_facts *of, hg_graph **graph)
{
	hg_graph *g = NULL;
	*graph = NULL;
	if (a->rows > INT32_MAX)
		return hg__fail(ctx, HG_ERR_ARG,
		                "graph: %lld rows are more than 32-bit node ids reach (2147483647)",
		                (long long)a->rows);
	HG__TRY(hg__graph_new(ctx, a->rows, a->rows, a->m, &g));
	g->changes = 1;
	g->scatters = a->scatters;
	borrow_arrays(g, a);
	take_facts(g, of, a->count);
	hg_status status = a->rowptr ? plan_rows(g, a->rowptr, &g->plan) : HG_OK;
	if (status == HG_OK && a->rowptr_t)
		status = plan_rows(g, a->rowptr_t, &g->plan_t);
	if (status < 0) {
		hg_graph_free(g);
		return status;
	}
	*graph = g;
	return HG_OK;
}
