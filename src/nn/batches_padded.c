/* Padded batches: their shapes, the blocks of memory, and what fills them. */
#include "nn/batches_padded.h"

#include <math.h>
#include <string.h>

#include "core/convert.h"

/* ---- shapes ---- */

/* Sizes are rounded up to multiples of a power of two that is at most a sixteenth of them, so a
 * batch grows by 3 % on average. Where nodes have many edges their number matters little, and its
 * steps are four times as large: in 30 epochs COLLAB (66 edges a node, 128 graphs a batch) then has
 * 79 shapes in place of 143. ZINC (2 edges a node) has 9. */
#define STEPS 16
#define WIDE_STEPS 4
#define MANY_EDGES 16 /* for each node of the dataset */
/* Kernels take a row as one piece, so none may be much longer than the others can be together. */
#define MOST_DEGREE 1024
/* Up to so many columns sparse features are made dense on a device that captures nothing. There the
 * dense product is not much slower for so few, on one that captures the steps are what matters. */
#define FEW_COLUMNS 128

static int64_t step_of(int64_t size, int64_t steps)
{
	int64_t step = 8;
	while (2 * step * steps <= size)
		step *= 2;
	return step;
}

static int64_t round_up(int64_t size, int64_t steps)
{
	const int64_t step = step_of(size, steps);
	return (size + step - 1) / step * step;
}

static int64_t node_steps(const hg_batches *all)
{
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs];
	return all->graph.rowptr[nodes] / MANY_EDGES > nodes ? WIDE_STEPS : STEPS;
}

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void count_live(const hg_batches *all, const int64_t *graph, int64_t graphs, int64_t *nodes,
                       int64_t *edges)
{
	const int64_t *ptr = all->ptr.data;
	*nodes = *edges = 0;
	for (int64_t k = 0; k < graphs; k++) {
		*nodes += ptr[graph[k] + 1] - ptr[graph[k]];
		*edges += all->graph.rowptr[ptr[graph[k] + 1]] - all->graph.rowptr[ptr[graph[k]]];
	}
}

/* More rows than graphs and not as many as edges: the tape tells them apart by their number
 * (hg__tape_live). */
struct hg__shape_of_batch hg__padded_shape(const struct hg__padded *p, const int64_t *graph,
                                           int64_t graphs)
{
	int64_t nodes, edges;
	count_live(p->all, graph, graphs, &nodes, &edges);
	struct hg__shape_of_batch s = {0, edges ? round_up(edges, STEPS) : 0, graphs};
	const int64_t missing = s.edges - edges,
	              rows = missing ? (missing + p->per_row - 1) / p->per_row : 1;
	s.nodes = round_up(at_least(nodes + rows, graphs + 1), node_steps(p->all));
	if (s.nodes == s.edges)
		s.nodes += step_of(s.nodes, node_steps(p->all));
	return s;
}

int64_t hg__padded_counted(const struct hg__padded *p, const int64_t *graph, int64_t graphs)
{
	const int64_t *counted = p->counted.data;
	int64_t sum = 0;
	for (int64_t k = 0; k < graphs; k++)
		sum += counted[graph[k]];
	return sum;
}

/* ---- blocks ---- */

/* Bytes of the arrays, and where they begin. */
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
	case HG__PADDED_LIVE:
		return sizeof(int64_t);
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
		if (p->needs >> a & 1u)
			l.bytes += hg__aligned(array_bytes(p, s, a) + 1); /* no two begin at one address */
	}
	return l;
}

size_t hg__padded_bytes(const struct hg__padded *p, const struct hg__shape_of_batch *s)
{
	return lay_out(p, s).bytes;
}

/* NULL: blocks do not have it. */
static void *array_in(const struct hg__padded *p, const struct layout *l, void *block, int array)
{
	return p->needs >> array & 1u ? (char *)block + l->at[array] : NULL;
}

/* ---- filling a block ---- */

struct filling {
	const struct hg__padded *p;
	const struct hg__shape_of_batch *shape;
	const int64_t *graph;
	int64_t nodes, edges; /* without padding */
	struct layout at;
	void *block;
};

static void *array_of(const struct filling *f, int array)
{
	return array_in(f->p, &f->at, f->block, array);
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

/* One orientation. The padding rows share the missing edges evenly. */
static void fill_pattern(const struct filling *f, const int64_t *from_rowptr,
                         const int32_t *from_col, int64_t *rowptr, int32_t *col)
{
	int64_t row = 0, m = 0;
	rowptr[0] = 0;
	for (int64_t k = 0; k < f->shape->graphs; k++) {
		const struct place p = place_of(f, k);
		for (int64_t i = 0; i < p.nodes; i++)
			rowptr[row + i + 1] = from_rowptr[p.node + i + 1] - p.edge + m;
		for (int64_t e = 0; e < p.edges; e++)
			col[m + e] = from_col[p.edge + e] + (int32_t)row;
		row += p.nodes;
		m += p.edges;
	}
	const int64_t rows = f->shape->nodes - row, missing = f->shape->edges - m;
	for (int64_t i = 0; i < rows; i++) {
		rowptr[row + i + 1] = m + missing / rows * (i + 1) + missing % rows * (i + 1) / rows;
		for (int64_t e = rowptr[row + i]; e < rowptr[row + i + 1]; e++)
			col[e] = (int32_t)(row + i);
	}
}

static void fill_edge_t(const struct filling *f, uint32_t *edge)
{
	const uint32_t *from = f->p->edge_t.data;
	int64_t m = 0;
	for (int64_t k = 0; k < f->shape->graphs; k++) {
		const struct place p = place_of(f, k);
		for (int64_t e = 0; e < p.edges; e++)
			edge[m + e] = from[p.edge + e] + (uint32_t)m;
		m += p.edges;
	}
	for (; m < f->shape->edges; m++)
		edge[m] = (uint32_t)m;
}

/* Rows of `bytes` of the nodes or the edges, and zeros in the padding. */
static void fill_rows(const struct filling *f, int of_edges, const char *from, size_t bytes,
                      size_t pitch, char *to)
{
	char *at = to;
	for (int64_t k = 0; k < f->shape->graphs; k++) {
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
	for (int64_t e = f->edges; e < f->shape->edges; e++) {
		if (weight)
			weight[e] = f->p->weight;
		if (half)
			half[e] = narrow;
	}
}

/* Sparse features, as dense rows. */
static void fill_dense(const struct filling *f, char *to)
{
	const struct hg__host_csr *from = &f->p->all->sparse;
	const int64_t ld = hg__leading(f->p->all->features);
	int64_t row = 0;
	memset(to, 0, array_bytes(f->p, f->shape, HG__PADDED_X));
	for (int64_t k = 0; k < f->shape->graphs; k++) {
		const struct place p = place_of(f, k);
		for (int64_t i = p.node; i < p.node + p.nodes; i++, row++)
			for (int64_t e = from->rowptr[i]; e < from->rowptr[i + 1]; e++) {
				const float value = from->weight ? from->weight[e] : 1.0f;
				const int64_t at = row * ld + from->col[e];
				if (f->p->x_dtype == HG_F16)
					((hg_half *)(void *)to)[at] = hg_half_from_float(value);
				else
					((float *)(void *)to)[at] = value;
			}
	}
}

static void fill_graphs(const struct filling *f)
{
	int64_t *ptr = array_of(f, HG__PADDED_PTR);
	int32_t *id = array_of(f, HG__PADDED_ID);
	ptr[0] = 0;
	for (int64_t k = 0; k < f->shape->graphs; k++) {
		ptr[k + 1] = ptr[k] + place_of(f, k).nodes;
		for (int64_t i = ptr[k]; i < ptr[k + 1]; i++)
			id[i] = (int32_t)k;
	}
	for (int64_t i = f->nodes; i < f->shape->nodes; i++)
		id[i] = -1;
	*(int64_t *)array_of(f, HG__PADDED_LIVE) = f->nodes;
}

static void fill_row(const struct filling *f, int k)
{
	const struct hg__table *t = &f->p->all->row[k];
	const size_t size = hg_dtype_size(t->dtype), bytes = (size_t)t->cols * size,
	             pitch = (size_t)hg__leading(t->cols) * size;
	char *to = array_of(f, HG__PADDED_ROW + k);
	for (int64_t g = 0; g < f->shape->graphs; g++, to += pitch) {
		memset(to, 0, pitch);
		if (bytes)
			memcpy(to, (const char *)t->data.data + (size_t)f->graph[g] * bytes, bytes);
	}
}

void hg__padded_fill(const struct hg__padded *p, const struct hg__shape_of_batch *shape,
                     const int64_t *graph, void *block)
{
	struct filling f = {p, shape, graph, 0, 0, lay_out(p, shape), block};
	count_live(p->all, graph, shape->graphs, &f.nodes, &f.edges);
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
	if (all->is_sparse)
		fill_dense(&f, array_of(&f, HG__PADDED_X));
	else
		fill_table(&f, 0, &all->dense, array_of(&f, HG__PADDED_X));
	if (array_of(&f, HG__PADDED_EDGE_X))
		fill_table(&f, 1, &all->edge, array_of(&f, HG__PADDED_EDGE_X));
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		if (array_of(&f, HG__PADDED_ROW + k))
			fill_row(&f, k);
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
	const struct hg__changing arrays = {
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
	    .weight_f16 = array_in(p, &l, block, HG__PADDED_WEIGHT_F16)};
	*out = (struct hg__padded_batch){.shape = *s};
	HG__TRY(hg__graph_of_changing(all->ctx, &arrays, &all->graph_facts, &out->graph));
	out->x = view_of(p, &l, block, HG__PADDED_X, s->nodes, all->features, p->x_dtype);
	out->edge_x =
	    view_of(p, &l, block, HG__PADDED_EDGE_X, s->edges, all->edge.cols, all->edge.dtype);
	out->live = array_in(p, &l, block, HG__PADDED_LIVE);
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

/* ---- what all batches share ---- */

/* Do rows of sparse features hold each column once, and values that the type holds exactly? The
 * largest of these is *amax. */
static int is_exact(const hg_batches *all, hg_dtype state, double *amax)
{
	const struct hg__host_csr *x = &all->sparse;
	const int64_t *ptr = all->ptr.data;
	*amax = 0.0;
	for (int64_t i = 0; i < ptr[all->graphs]; i++)
		for (int64_t e = x->rowptr[i]; e < x->rowptr[i + 1]; e++) {
			const float value = x->weight ? x->weight[e] : 1.0f;
			const float kept =
			    state == HG_F16 ? hg_half_to_float(hg_half_from_float(value)) : value;
			if (!isfinite(kept) || memcmp(&kept, &value, sizeof kept) != 0 ||
			    (e > x->rowptr[i] && x->col[e] <= x->col[e - 1]))
				return 0;
			*amax = fmax(*amax, fabs((double)value));
		}
	return 1;
}

const char *hg__padded_refusal(const hg_batches *all, hg_dtype state, int captures)
{
	const hg_graph_facts *f = &all->graph_facts.facts;
	double amax;
	if (at_least(f->max_row_degree, f->max_col_degree) > MOST_DEGREE)
		return "a node has more than 1024 edges";
	if (all->is_sparse && !captures && all->features > FEW_COLUMNS)
		return "the features are sparse";
	if (all->is_sparse && !is_exact(all, state, &amax))
		return "the type of dense features does not hold the sparse ones exactly";
	return NULL;
}

/* The transpose of each graph by itself, columns ascending in each row. rowptr_t has the numbers of
 * the whole dataset, as rowptr does: a graph has its edges in the same place in both. */
static hg_status transpose(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	hg_context *ctx = all->ctx;
	const int64_t *ptr = all->ptr.data, *rowptr = all->graph.rowptr, nodes = ptr[all->graphs],
	              m = rowptr[nodes];
	struct hg__buffer next = {0};
	HG__TRY(hg__buffer_host(ctx, nodes + 1, sizeof(int64_t), "batches: transpose", &p->rowptr_t));
	HG__TRY(hg__buffer_host(ctx, m, sizeof(int32_t), "batches: transpose", &p->col_t));
	HG__TRY(hg__buffer_host(ctx, m, sizeof(uint32_t), "batches: transpose", &p->edge_t));
	HG__TRY(hg__buffer_host(ctx, nodes, sizeof(int64_t), "batches: transpose", &next));
	int64_t *rowptr_t = p->rowptr_t.data, *at = next.data;
	int32_t *col_t = p->col_t.data;
	uint32_t *edge_t = p->edge_t.data;
	for (int64_t g = 0; g < all->graphs; g++)
		for (int64_t e = rowptr[ptr[g]]; e < rowptr[ptr[g + 1]]; e++)
			rowptr_t[ptr[g] + all->graph.col[e] + 1]++;
	for (int64_t i = 0; i < nodes; i++) {
		rowptr_t[i + 1] += rowptr_t[i];
		at[i] = rowptr_t[i];
	}
	for (int64_t g = 0; g < all->graphs; g++)
		for (int64_t i = ptr[g]; i < ptr[g + 1]; i++)
			for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
				const int64_t to = at[ptr[g] + all->graph.col[e]]++;
				col_t[to] = (int32_t)(i - ptr[g]);
				edge_t[to] = (uint32_t)(e - rowptr[ptr[g]]);
			}
	hg__buffer_free(ctx, &next);
	return HG_OK;
}

static hg_status factors(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs];
	for (int k = 0; k < 4; k++) {
		if (!(p->needs >> (HG__PADDED_INVERSE_ROW + k) & 1u))
			continue;
		HG__TRY(hg__buffer_host(all->ctx, nodes, sizeof(float), "batches: norm", &p->factor[k]));
		const int64_t *ptr = k % 2 ? p->rowptr_t.data : all->graph.rowptr;
		(k < 2 ? hg__degree_inverse : hg__degree_root)(nodes, ptr, p->factor[k].data);
	}
	return HG_OK;
}

static hg_status narrow_weights(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	const int64_t m = all->graph.rowptr[((const int64_t *)all->ptr.data)[all->graphs]];
	HG__TRY(hg__buffer_host(all->ctx, m, sizeof(hg_half), "batches: f16 weights", &p->weight_f16));
	hg__convert(HG_F16, p->weight_f16.data, HG_F32, all->graph.weight, m);
	return HG_OK;
}

/* What counts of graph g: its label, unless it is negative or masked, or elements of its mask. */
static int64_t counted_of(const hg_batches *all, int64_t g, int labels, int mask)
{
	if (labels >= 0 && ((const int32_t *)all->row[labels].data.data)[g] < 0)
		return 0;
	if (mask < 0)
		return 1;
	const struct hg__table *t = &all->row[mask];
	int64_t count = 0;
	for (int64_t c = 0; c < t->cols; c++)
		count += ((const uint8_t *)t->data.data)[g * t->cols + c] != 0;
	return count;
}

static hg_status count_what_counts(struct hg__padded *p, int labels, int mask)
{
	const hg_batches *all = p->all;
	const int64_t *chosen = all->chosen.data;
	HG__TRY(hg__buffer_host(all->ctx, all->graphs, sizeof(int64_t), "batches: what counts",
	                        &p->counted));
	int64_t *counted = p->counted.data;
	for (int64_t g = 0; g < all->graphs; g++)
		counted[g] = counted_of(all, g, labels, mask);
	p->least_counted = INT64_MAX;
	for (int64_t k = 0; k < all->count; k++)
		p->least_counted =
		    counted[chosen[k]] < p->least_counted ? counted[chosen[k]] : p->least_counted;
	p->least_counted = at_least(p->least_counted, 1);
	return HG_OK;
}

/* The arrays that a graph has which tapes have asked for what they read. */
static unsigned needs_of(const hg_batches *all, const hg_graph *g)
{
	const struct {
		enum hg__padded_array array;
		int needed;
	} arrays[] = {{HG__PADDED_ROWPTR, 1},
	              {HG__PADDED_COL, 1},
	              {HG__PADDED_WEIGHT, all->graph.weight != NULL},
	              {HG__PADDED_WEIGHT_F16, g->weight_f16.bytes != 0},
	              {HG__PADDED_ROWPTR_T, g->rowptr_t.bytes != 0},
	              {HG__PADDED_COL_T, g->rowptr_t.bytes != 0},
	              {HG__PADDED_EDGE_T, g->edge_t.bytes != 0},
	              {HG__PADDED_INVERSE_ROW, g->inverse_row.bytes != 0},
	              {HG__PADDED_INVERSE_COL, g->inverse_col.bytes != 0},
	              {HG__PADDED_ROOT_ROW, g->root_row.bytes != 0},
	              {HG__PADDED_ROOT_COL, g->root_col.bytes != 0},
	              {HG__PADDED_PTR, 1},
	              {HG__PADDED_ID, 1},
	              {HG__PADDED_LIVE, 1},
	              {HG__PADDED_X, 1},
	              {HG__PADDED_EDGE_X, all->has_edges}};
	unsigned needs = 0;
	for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
		needs |= (unsigned)(arrays[k].needed != 0) << arrays[k].array;
	for (int k = 0; k < HG_BATCH_ROWS; k++)
		needs |= (unsigned)(all->row[k].rows > 0) << (HG__PADDED_ROW + k);
	return needs;
}

/* A padding row has at most as many edges as a row of the dataset, and no larger sum of weights. */
static int64_t edges_per_row(const hg_batches *all, float weight)
{
	const hg_graph_facts *f = &all->graph_facts.facts;
	const double sum = fmin(f->max_row_sum, f->max_col_sum);
	int64_t most = f->max_row_degree < f->max_col_degree ? f->max_row_degree : f->max_col_degree;
	if (all->graph.weight && weight > 0.0f && sum / (double)weight < (double)most)
		most = (int64_t)(sum / (double)weight);
	return at_least(most, 1);
}

hg_status hg__padded_init(struct hg__padded *p, const hg_batches *all, const hg_graph *probe,
                          hg_dtype state, int labels, int mask)
{
	*p = (struct hg__padded){.all = all, .needs = needs_of(all, probe), .weight = 1.0f};
	if (all->graph.weight)
		p->weight = all->graph_facts.least_positive;
	p->per_row = edges_per_row(all, p->weight);
	p->x_dtype = all->is_sparse ? state : all->dense.dtype;
	p->x_amax = all->x_amax;
	if (all->is_sparse)
		(void)is_exact(all, state, &p->x_amax);
	HG__TRY(transpose(p));
	HG__TRY(factors(p));
	if (p->needs >> HG__PADDED_WEIGHT_F16 & 1u)
		HG__TRY(narrow_weights(p));
	return count_what_counts(p, labels, mask);
}

void hg__padded_fini(struct hg__padded *p)
{
	if (!p->all)
		return;
	struct hg__buffer *const buffers[] = {&p->rowptr_t,   &p->col_t,     &p->edge_t,
	                                      &p->weight_f16, &p->counted,   &p->factor[0],
	                                      &p->factor[1],  &p->factor[2], &p->factor[3]};
	for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++)
		hg__buffer_free(p->all->ctx, buffers[k]);
	*p = (struct hg__padded){.all = NULL};
}
