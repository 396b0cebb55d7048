/* The block of memory of a padded batch: where its arrays are, and the batch that they make. */
#include "nn/batches_block.h"

static size_t table_bytes(const struct hg__table *t, hg_dtype dtype, int64_t rows)
{
	return (size_t)(rows * hg__leading(t->cols)) * hg_dtype_size(dtype);
}

size_t hg__padded_array_bytes(const struct hg__padded *p, const struct hg__shape_of_batch *s,
                              int array)
{
	const size_t nodes = (size_t)s->nodes, edges = (size_t)s->edges, graphs = (size_t)s->graphs;
	const struct hg__table features = {.cols = p->all->features};
	switch (array) {
	case HG__PADDED_ROWPTR:
	case HG__PADDED_ROWPTR_T:
	case HG__PADDED_X_ROWPTR:
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
	if (array < HG__PADDED_ROW) /* factors, ids and numbers of rows */
		return nodes * sizeof(float);
	const struct hg__table *row = &p->all->row[array - HG__PADDED_ROW];
	return table_bytes(row, row->dtype, s->graphs);
}

struct hg__layout hg__padded_lay_out(const struct hg__padded *p, const struct hg__shape_of_batch *s)
{
	struct hg__layout l = {.bytes = 0};
	for (int a = 0; a < HG__PADDED_ARRAYS; a++) {
		l.at[a] = l.bytes;
		/* no two begin at one address */
		if (p->needs >> a & 1u)
			l.bytes += hg__aligned(hg__padded_array_bytes(p, s, a) + 1);
	}
	return l;
}

size_t hg__padded_bytes(const struct hg__padded *p, const struct hg__shape_of_batch *s)
{
	return hg__padded_lay_out(p, s).bytes;
}

size_t hg__padded_filled(const struct hg__padded *p, const struct hg__shape_of_batch *s)
{
	const struct hg__layout l = hg__padded_lay_out(p, s);
	return p->distinct ? l.at[HG__PADDED_X] : l.bytes;
}

void *hg__padded_array(const struct hg__padded *p, const struct hg__layout *l, void *block,
                       int array)
{
	return p->needs >> array & 1u ? (char *)block + l->at[array] : NULL;
}

/* ---- the batch in a block ---- */

static hg_tensor view_of(const struct hg__padded *p, const struct hg__layout *l, void *block,
                         int array, int64_t rows, int64_t cols, hg_dtype dtype)
{
	const struct hg__mat mat = {hg__padded_array(p, l, block, array), rows, cols, hg__leading(cols),
	                            dtype};
	return hg__tensor_view(p->all->ctx, mat);
}

hg_status hg__padded_open(const struct hg__padded *p, const struct hg__shape_of_batch *s,
                          void *block, struct hg__padded_batch *out)
{
	const hg_batches *all = p->all;
	const struct hg__layout l = hg__padded_lay_out(p, s);
	const struct hg__changing arrays = {
	    .rows = s->nodes,
	    .m = s->edges,
	    .count = s->graphs,
	    .rowptr = hg__padded_array(p, &l, block, HG__PADDED_ROWPTR),
	    .rowptr_t = hg__padded_array(p, &l, block, HG__PADDED_ROWPTR_T),
	    .ptr = hg__padded_array(p, &l, block, HG__PADDED_PTR),
	    .col = hg__padded_array(p, &l, block, HG__PADDED_COL),
	    .col_t = hg__padded_array(p, &l, block, HG__PADDED_COL_T),
	    .id = hg__padded_array(p, &l, block, HG__PADDED_ID),
	    .edge_t = hg__padded_array(p, &l, block, HG__PADDED_EDGE_T),
	    .weight = hg__padded_array(p, &l, block, HG__PADDED_WEIGHT),
	    .inverse_row = hg__padded_array(p, &l, block, HG__PADDED_INVERSE_ROW),
	    .inverse_col = hg__padded_array(p, &l, block, HG__PADDED_INVERSE_COL),
	    .root_row = hg__padded_array(p, &l, block, HG__PADDED_ROOT_ROW),
	    .root_col = hg__padded_array(p, &l, block, HG__PADDED_ROOT_COL),
	    .weight_f16 = hg__padded_array(p, &l, block, HG__PADDED_WEIGHT_F16),
	    .bins = {hg__bins_most(s->nodes), hg__padded_array(p, &l, block, HG__PADDED_BIN)}};
	*out = (struct hg__padded_batch){.shape = *s};
	HG__TRY(hg__graph_of_changing(all->ctx, &arrays, &all->graph_facts, &out->graph));
	out->x = view_of(p, &l, block, HG__PADDED_X, s->nodes, all->features, p->x_dtype);
	out->edge_x =
	    view_of(p, &l, block, HG__PADDED_EDGE_X, s->edges, all->edge.cols, all->edge.dtype);
	out->x_row = hg__padded_array(p, &l, block, HG__PADDED_X_ROW);
	out->x_rowptr = hg__padded_array(p, &l, block, HG__PADDED_X_ROWPTR);
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
