/* The block of memory of a padded batch: where its arrays are, the batch that they make, and its
 * assembly. */
#include "core/backend.h"
#include "nn/batches_padded.h"

/* Where the arrays of a block begin, and its bytes. */
struct layout {
	size_t at[HG__PADDED_ARRAYS], bytes;
};

static size_t table_bytes(const struct hg__table *t, hg_dtype dtype, int64_t rows)
{
	return (size_t)(rows * hg__leading(t->cols)) * hg_dtype_size(dtype);
}

static size_t array_bytes(const struct hg__padded *p, const struct hg__shape_of_batch *s, int array)
{
	const size_t nodes = (size_t)s->nodes, edges = (size_t)s->edges, graphs = (size_t)s->graphs;
	const struct hg__table features = {.cols = p->all->features};
	switch (array) {
	case HG__PADDED_ROWPTR:
	case HG__PADDED_ROWPTR_T:
		return (nodes + 1) * sizeof(int64_t);
	case HG__PADDED_WEIGHT_F16:
		return edges * sizeof(hg_half);
	case HG__PADDED_COL:
	case HG__PADDED_COL_T:
	case HG__PADDED_EDGE_T:
	case HG__PADDED_WEIGHT:
		return edges * sizeof(int32_t);
	case HG__PADDED_PTR:
		return (graphs + 1) * sizeof(int64_t);
	case HG__PADDED_BIN:
		return (size_t)(hg__bins_most(s->nodes) + 2) * sizeof(int32_t);
	case HG__PADDED_X:
		return table_bytes(&features, p->x_dtype, s->nodes);
	case HG__PADDED_EDGE_X:
		return table_bytes(&p->all->edge, p->all->edge.dtype, s->edges);
	default:
		break;
	}
	if (array < HG__PADDED_ROW) /* factors and ids */
		return nodes * sizeof(float);
	const struct hg__table *row = &p->all->row[array - HG__PADDED_ROW];
	return table_bytes(row, row->dtype, s->graphs);
}

static struct layout lay_out(const struct hg__padded *p, const struct hg__shape_of_batch *s)
{
	struct layout l = {.bytes = 0};
	for (int a = 0; a < HG__PADDED_ARRAYS; a++) {
		l.at[a] = l.bytes;
		/* no two begin at one address */
		if (p->needs >> a & 1u)
			l.bytes += hg__aligned(array_bytes(p, s, a) + 1);
	}
	return l;
}

size_t hg__padded_bytes(const struct hg__padded *p, const struct hg__shape_of_batch *s)
{
	return lay_out(p, s).bytes;
}

static void *array_in(const struct hg__padded *p, const struct layout *l, void *block, int array)
{
	return p->needs >> array & 1u ? (char *)block + l->at[array] : NULL;
}

/* ---- the batch in a block ---- */

static hg_tensor view_of(const struct hg__padded *p, const struct layout *l, void *block, int array,
                         int64_t rows, int64_t cols, hg_dtype dtype)
{
	const struct hg__mat mat = {array_in(p, l, block, array), rows, cols, hg__leading(cols), dtype};
	return hg__tensor_view(p->all->ctx, mat);
}

hg_status hg__padded_open(const struct hg__padded *p, const struct hg__shape_of_batch *s,
                          void *block, struct hg__padded_batch *out)
{
	const hg_batches *all = p->all;
	const struct layout l = lay_out(p, s);
	*out = (struct hg__padded_batch){.shape = *s};
	out->arrays = (struct hg__changing){
	    .rows = s->nodes,
	    .m = s->edges,
	    .count = s->graphs,
	    .rowptr = array_in(p, &l, block, HG__PADDED_ROWPTR),
	    .rowptr_t = array_in(p, &l, block, HG__PADDED_ROWPTR_T),
	    .ptr = array_in(p, &l, block, HG__PADDED_PTR),
	    .col = array_in(p, &l, block, HG__PADDED_COL),
	    .col_t = array_in(p, &l, block, HG__PADDED_COL_T),
	    .id = array_in(p, &l, block, HG__PADDED_ID),
	    .edge_t = array_in(p, &l, block, HG__PADDED_EDGE_T),
	    .weight = array_in(p, &l, block, HG__PADDED_WEIGHT),
	    .inverse_row = array_in(p, &l, block, HG__PADDED_INVERSE_ROW),
	    .inverse_col = array_in(p, &l, block, HG__PADDED_INVERSE_COL),
	    .root_row = array_in(p, &l, block, HG__PADDED_ROOT_ROW),
	    .root_col = array_in(p, &l, block, HG__PADDED_ROOT_COL),
	    .weight_f16 = array_in(p, &l, block, HG__PADDED_WEIGHT_F16),
	    .bins = {.bins = hg__bins_most(s->nodes),
	             .first = s->bin_rows ? array_in(p, &l, block, HG__PADDED_BIN) : NULL,
	             .rows = s->bin_rows}};
	HG__TRY(hg__graph_of_changing(all->ctx, &out->arrays, &all->graph_facts, &out->graph));
	out->x = view_of(p, &l, block, HG__PADDED_X, s->nodes, all->features, p->x_dtype);
	out->edge_x =
	    view_of(p, &l, block, HG__PADDED_EDGE_X, s->edges, all->edge.cols, all->edge.dtype);
	out->batch = (hg_batch){.size = sizeof out->batch, .graphs = s->graphs};
	out->batch.input = (hg_model_input){.size = sizeof out->batch.input,
	                                    .graph = out->graph,
	                                    .x = &out->x,
	                                    .x_amax = p->x_amax,
	                                    .edge_x = all->has_edges ? &out->edge_x : NULL,
	                                    .edge_amax = all->edge_amax};
	for (int k = 0; k < HG_BATCH_ROWS; k++) {
		const struct hg__table *row = &all->row[k];
		out->row[k] = view_of(p, &l, block, HG__PADDED_ROW + k, s->graphs, row->cols, row->dtype);
		out->batch.row[k] = row->rows ? &out->row[k] : NULL;
	}
	return HG_OK;
}

void hg__padded_close(struct hg__padded_batch *b)
{
	hg_graph_free(b->graph);
	*b = (struct hg__padded_batch){.graph = NULL};
}

/* ---- assembly ---- */

_Static_assert((int)HG__ASSEMBLE_ROWS == HG_BATCH_ROWS, "all rows of graphs can be assembled");

static struct hg__row_copy copy_of(const struct hg__mat *from, const struct hg__mat *to)
{
	const size_t size = hg_dtype_size(to->dtype);
	if (!from->data || !to->data)
		return (struct hg__row_copy){.to = NULL};
	return (struct hg__row_copy){.from = from->data,
	                             .to = to->data,
	                             .bytes = (size_t)to->cols * size,
	                             .from_pitch = (size_t)from->ld * size,
	                             .to_pitch = (size_t)to->ld * size};
}

void hg__padded_assembly(const struct hg__padded *p, const struct hg__batch_list *list,
                         const struct hg__padded_batch *b, struct hg__assemble *a)
{
	*a = (struct hg__assemble){.list = *list,
	                           .from = p->from,
	                           .to = b->arrays,
	                           .weight = p->weight,
	                           .weight_f16 = hg_half_from_float(p->weight),
	                           .of_node = copy_of(&p->x, &b->x.mat),
	                           .of_edge = copy_of(&p->edge_x, &b->edge_x.mat),
	                           .sparse = {.rowptr = p->x_sparse.rowptr,
	                                      .col = p->x_sparse.col,
	                                      .weight = p->x_sparse_weight,
	                                      .to = b->x.mat}};
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		a->of_graph[k] = copy_of(&p->row[k], &b->row[k].mat);
}

hg_status hg__padded_assemble(const struct hg__padded *p, const struct hg__batch_list *list,
                              const struct hg__padded_batch *b)
{
	hg_context *ctx = p->all->ctx;
	struct hg__assemble a;
	hg__padded_assembly(p, list, b, &a);
	if (a.sparse.rowptr)
		HG__TRY(ctx->backend->fill(ctx, b->x.mat.data, 0, b->x.bytes));
	return ctx->backend->assemble(ctx, &a);
}
