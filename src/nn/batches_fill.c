/* Fills the block of a padded batch with the arrays of its graphs. Several threads can fill one
 * block: each of them a range of its graphs, and the one with the last range also the padding. */
#include <string.h>

#include "nn/batches_block.h"

struct filling {
	const struct hg__padded *p;
	const struct hg__shape_of_batch *shape;
	const int64_t *graph;
	int64_t first, end;   /* the graphs of this part, in the batch */
	int64_t row, edge;    /* where its nodes and edges begin in the batch */
	int64_t nodes, edges; /* where they end */
	int is_first, is_last;
	struct hg__layout at;
	void *block;
};

static void *array_of(const struct filling *f, int array)
{
	return hg__padded_array(f->p, &f->at, f->block, array);
}

/* Where the nodes and the edges of graph k of the batch are in the dataset. */
struct place {
	int64_t node, nodes, edge, edges;
};

static struct place place_of(const struct filling *f, int64_t k)
{
	const int64_t *ptr = f->p->all->ptr.data, *rowptr = f->p->all->graph.rowptr;
	const int64_t g = f->graph[k], first = ptr[g], end = ptr[g + 1];
	return (struct place){first, end - first, rowptr[first], rowptr[end] - rowptr[first]};
}

/* The padding rows share the missing edges evenly. */
static void pad_pattern(const struct filling *f, int64_t *rowptr, int32_t *col)
{
	const int64_t row = f->nodes, m = f->edges, rows = f->shape->nodes - row,
	              missing = f->shape->edges - m;
	for (int64_t i = 0, e = m; i < rows; i++) {
		const int64_t end = m + missing / rows * (i + 1) + missing % rows * (i + 1) / rows;
		rowptr[row + i + 1] = end;
		for (; e < end; e++)
			col[e] = (int32_t)(row + i);
	}
}

/* One orientation. */
static void fill_pattern(const struct filling *f, const int64_t *from_rowptr,
                         const int32_t *from_col, int64_t *rowptr, int32_t *col)
{
	int64_t row = f->row, m = f->edge;
	if (f->is_first)
		rowptr[0] = 0;
	for (int64_t k = f->first; k < f->end; k++) {
		const struct place p = place_of(f, k);
		for (int64_t i = 0; i < p.nodes; i++)
			rowptr[row + i + 1] = from_rowptr[p.node + i + 1] - p.edge + m;
		for (int64_t e = 0; e < p.edges; e++)
			col[m + e] = from_col[p.edge + e] + (int32_t)row;
		row += p.nodes;
		m += p.edges;
	}
	if (f->is_last)
		pad_pattern(f, rowptr, col);
}

static void fill_edge_t(const struct filling *f, uint32_t *edge)
{
	const uint32_t *from = f->p->edge_t.data;
	int64_t m = f->edge;
	for (int64_t k = f->first; k < f->end; k++) {
		const struct place p = place_of(f, k);
		for (int64_t e = 0; e < p.edges; e++)
			edge[m + e] = from[p.edge + e] + (uint32_t)m;
		m += p.edges;
	}
	for (; f->is_last && m < f->shape->edges; m++)
		edge[m] = (uint32_t)m;
}

/* Rows of `bytes` of the nodes or the edges, and zeros in the padding. */
static void fill_rows(const struct filling *f, int of_edges, const char *from, size_t bytes,
                      size_t pitch, char *to)
{
	char *at = to + (size_t)(of_edges ? f->edge : f->row) * pitch;
	for (int64_t k = f->first; k < f->end; k++) {
		const struct place p = place_of(f, k);
		const int64_t first = of_edges ? p.edge : p.node, rows = of_edges ? p.edges : p.nodes;
		if (bytes == pitch && bytes && rows)
			memcpy(at, from + (size_t)first * bytes, (size_t)rows * bytes);
		for (int64_t i = 0; bytes != pitch && i < rows; i++) {
			memcpy(at + (size_t)i * pitch, from + (size_t)(first + i) * bytes, bytes);
			memset(at + (size_t)i * pitch + bytes, 0, pitch - bytes);
		}
		at += (size_t)rows * pitch;
	}
	const int64_t rows = of_edges ? f->shape->edges : f->shape->nodes;
	if (f->is_last)
		memset(at, 0, (size_t)rows * pitch - (size_t)(at - to));
}

static void fill_table(const struct filling *f, int of_edges, const struct hg__table *t, char *to)
{
	const size_t size = hg_dtype_size(t->dtype);
	fill_rows(f, of_edges, t->data.data, (size_t)t->cols * size,
	          (size_t)hg__leading(t->cols) * size, to);
}

static void fill_weights(const struct filling *f, float *weight, hg_half *half)
{
	const hg_half narrow = hg_half_from_float(f->p->weight);
	if (weight)
		fill_rows(f, 1, (const char *)f->p->all->graph.weight, sizeof *weight, sizeof *weight,
		          (char *)weight);
	if (half)
		fill_rows(f, 1, f->p->weight_f16.data, sizeof *half, sizeof *half, (char *)half);
	for (int64_t e = f->edges; f->is_last && e < f->shape->edges; e++) {
		if (weight)
			weight[e] = f->p->weight;
		if (half)
			half[e] = narrow;
	}
}

/* Sparse features, as a dense row. */
static void scatter_row(const struct hg__padded *p, int64_t node, char *to)
{
	const struct hg__host_csr *from = &p->all->sparse;
	for (int64_t e = from->rowptr[node]; e < from->rowptr[node + 1]; e++) {
		const float value = from->weight ? from->weight[e] : 1.0f;
		if (p->x_dtype == HG_F16)
			((hg_half *)(void *)to)[from->col[e]] = hg_half_from_float(value);
		else
			((float *)(void *)to)[from->col[e]] = value;
	}
}

void hg__padded_row(const struct hg__padded *p, int64_t node, char *to)
{
	const size_t size = hg_dtype_size(p->x_dtype), bytes = (size_t)p->all->features * size;
	memset(to, 0, (size_t)hg__leading(p->all->features) * size);
	if (p->all->is_sparse)
		scatter_row(p, node, to);
	else if (bytes)
		memcpy(to, (const char *)p->all->dense.data.data + (size_t)node * bytes, bytes);
}

static void fill_sparse(const struct filling *f, char *to)
{
	const size_t pitch = (size_t)hg__leading(f->p->all->features) * hg_dtype_size(f->p->x_dtype);
	const int64_t end = f->is_last ? f->shape->nodes : f->nodes;
	to += (size_t)f->row * pitch;
	memset(to, 0, (size_t)(end - f->row) * pitch);
	for (int64_t k = f->first; k < f->end; k++) {
		const struct place p = place_of(f, k);
		for (int64_t i = 0; i < p.nodes; i++, to += pitch)
			scatter_row(f->p, p.node + i, to);
	}
}

/* The rows of the table that the nodes have. Those of the padding are zeros, the last one. */
static void fill_shared(const struct filling *f, int32_t *row, int64_t *rowptr)
{
	fill_rows(f, 0, f->p->row_of.data, sizeof *row, sizeof *row, (char *)row);
	const int64_t end = f->is_last ? f->shape->nodes : f->nodes;
	for (int64_t i = f->nodes; i < end; i++)
		row[i] = (int32_t)f->p->distinct;
	for (int64_t i = f->row; i < end; i++)
		rowptr[i] = i;
	if (f->is_last)
		rowptr[end] = end;
}

static void fill_features(const struct filling *f)
{
	const hg_batches *all = f->p->all;
	if (f->p->distinct)
		fill_shared(f, array_of(f, HG__PADDED_X_ROW), array_of(f, HG__PADDED_X_ROWPTR));
	else if (all->is_sparse)
		fill_sparse(f, array_of(f, HG__PADDED_X));
	else
		fill_table(f, 0, &all->dense, array_of(f, HG__PADDED_X));
}

static void fill_graphs(const struct filling *f)
{
	int64_t *ptr = array_of(f, HG__PADDED_PTR);
	int32_t *id = array_of(f, HG__PADDED_ID);
	int64_t row = f->row;
	for (int64_t k = f->first; k < f->end; k++) {
		const int64_t nodes = place_of(f, k).nodes;
		ptr[k] = row;
		for (int64_t i = 0; i < nodes; i++)
			id[row + i] = (int32_t)k;
		row += nodes;
	}
	if (!f->is_last)
		return;
	ptr[f->end] = row;
	for (; row < f->shape->nodes; row++)
		id[row] = -1;
}

static void fill_row(const struct filling *f, int k)
{
	const struct hg__table *t = &f->p->all->row[k];
	const size_t size = hg_dtype_size(t->dtype), bytes = (size_t)t->cols * size,
	             pitch = (size_t)hg__leading(t->cols) * size;
	char *to = (char *)array_of(f, HG__PADDED_ROW + k) + (size_t)f->first * pitch;
	for (int64_t g = f->first; g < f->end; g++, to += pitch) {
		memset(to, 0, pitch);
		if (bytes)
			memcpy(to, (const char *)t->data.data + (size_t)f->graph[g] * bytes, bytes);
	}
}

static struct filling filling_of(const struct hg__padded *p, const struct hg__shape_of_batch *shape,
                                 const int64_t *graph, int part, int parts, void *block)
{
	struct filling f = {.p = p,
	                    .shape = shape,
	                    .graph = graph,
	                    .first = shape->graphs * part / parts,
	                    .end = shape->graphs * (part + 1) / parts,
	                    .is_first = part == 0,
	                    .is_last = part + 1 == parts,
	                    .at = hg__padded_lay_out(p, shape),
	                    .block = block};
	int64_t nodes, edges;
	hg__padded_live(p->all, graph, f.first, &f.row, &f.edge);
	hg__padded_live(p->all, graph + f.first, f.end - f.first, &nodes, &edges);
	f.nodes = f.row + nodes;
	f.edges = f.edge + edges;
	return f;
}

void hg__padded_fill_part(const struct hg__padded *p, const struct hg__shape_of_batch *shape,
                          const int64_t *graph, int part, int parts, void *block)
{
	const struct filling f = filling_of(p, shape, graph, part, parts, block);
	const hg_batches *all = p->all;
	fill_pattern(&f, all->graph.rowptr, all->graph.col, array_of(&f, HG__PADDED_ROWPTR),
	             array_of(&f, HG__PADDED_COL));
	if (array_of(&f, HG__PADDED_ROWPTR_T))
		fill_pattern(&f, p->rowptr_t.data, p->col_t.data, array_of(&f, HG__PADDED_ROWPTR_T),
		             array_of(&f, HG__PADDED_COL_T));
	if (array_of(&f, HG__PADDED_EDGE_T))
		fill_edge_t(&f, array_of(&f, HG__PADDED_EDGE_T));
	fill_weights(&f, array_of(&f, HG__PADDED_WEIGHT), array_of(&f, HG__PADDED_WEIGHT_F16));
	for (int k = 0; k < 4; k++)
		if (array_of(&f, HG__PADDED_INVERSE_ROW + k))
			fill_rows(&f, 0, p->factor[k].data, sizeof(float), sizeof(float),
			          array_of(&f, HG__PADDED_INVERSE_ROW + k));
	fill_graphs(&f);
	fill_features(&f);
	if (array_of(&f, HG__PADDED_EDGE_X))
		fill_table(&f, 1, &all->edge, array_of(&f, HG__PADDED_EDGE_X));
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		if (array_of(&f, HG__PADDED_ROW + k))
			fill_row(&f, k);
}

void hg__padded_fill_end(const struct hg__padded *p, const struct hg__shape_of_batch *shape,
                         void *block)
{
	const struct hg__layout at = hg__padded_lay_out(p, shape);
	int32_t *bin = hg__padded_array(p, &at, block, HG__PADDED_BIN);
	if (bin)
		(void)hg__bins_cut(shape->graphs, hg__padded_array(p, &at, block, HG__PADDED_PTR),
		                   shape->nodes, hg__bins_most(shape->nodes), bin);
}

void hg__padded_fill(const struct hg__padded *p, const struct hg__shape_of_batch *shape,
                     const int64_t *graph, void *block)
{
	hg__padded_fill_part(p, shape, graph, 0, 1, block);
	hg__padded_fill_end(p, shape, block);
}
