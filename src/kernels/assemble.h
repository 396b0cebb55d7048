/* How a batch is put together (core/assemble.h), the same on every device. Several lanes share the
 * work on one graph, or on the padding; each element is written by one of them, and none reads what
 * another one writes. */
#ifndef HG_KERNELS_ASSEMBLE_H
#define HG_KERNELS_ASSEMBLE_H

#include <string.h>

#include "core/assemble.h"
#include "precision/half.h"

HG_EXTERN_C_BEGIN

/* Lane `first` of `count`: it does every count-th piece of a loop. */
struct hg__lanes {
	uint32_t first, count;
};

/* Where the nodes and the edges of a graph are in the dataset and in the batch. */
struct hg__moved_graph {
	int64_t number, in_batch; /* of the graph */
	int64_t from_node, from_edge, node, edge, nodes, edges;
};

HG_HD static inline struct hg__moved_graph hg__moved(const struct hg__assemble *a, int64_t k)
{
	struct hg__moved_graph g;
	g.number = a->list.graph[k];
	g.in_batch = k;
	g.node = a->list.row[k];
	g.edge = a->list.edge[k];
	g.nodes = a->list.row[k + 1] - g.node;
	g.edges = a->list.edge[k + 1] - g.edge;
	g.from_node = a->from.ptr[g.number];
	g.from_edge = a->from.rowptr[g.from_node];
	return g;
}

/* ---- rows ---- */

/* 16 bytes of a row; only the first `valid` of them belong to it. */
HG_HD static inline void hg__copy_16(const char *from, char *to, size_t valid)
{
	uint64_t x[2];
	memcpy(x, __builtin_assume_aligned(from, 16), sizeof x);
	if (valid < sizeof x) {
		x[1] = valid > 8 ? x[1] & (((uint64_t)1 << (8 * (valid - 8))) - 1) : 0;
		if (valid < 8)
			x[0] &= ((uint64_t)1 << (8 * valid)) - 1;
	}
	memcpy(__builtin_assume_aligned(to, 16), x, sizeof x);
}

/* The bytes in which rows can be copied: 16, 4 or 1. */
HG_HD static inline size_t hg__row_piece(const struct hg__row_copy *c)
{
	const size_t where =
	    (size_t)(uintptr_t)c->from | (size_t)(uintptr_t)c->to | c->from_pitch | c->to_pitch;
	return where % 16 == 0 ? 16 : (where | c->bytes) % 4 == 0 ? 4 : 1;
}

/* Bytes at, at + 1 .. of a row, one piece of it. */
HG_HD static inline void hg__copy_piece(const struct hg__row_copy *c, const char *from, char *to,
                                        size_t at, size_t piece)
{
	if (at >= c->bytes)
		memset(to + at, 0, piece);
	else if (piece == 16)
		hg__copy_16(from + at, to + at, c->bytes - at);
	else if (piece == 4)
		memcpy(__builtin_assume_aligned(to + at, 4), __builtin_assume_aligned(from + at, 4), 4);
	else
		to[at] = from[at];
}

/* The same rows by one lane, on a CPU: in pieces of 16 bytes it would wait for memory longer. The
 * memory behind the last row is not read. */
static inline void hg__copy_rows_alone(const struct hg__row_copy *c, int64_t from, int64_t to,
                                       int64_t rows)
{
	const char *source = (const char *)c->from + (size_t)from * c->from_pitch;
	char *target = (char *)c->to + (size_t)to * c->to_pitch;
	const int together = c->from_pitch == c->to_pitch && c->bytes > 0 && rows > 0;
	if (together)
		memcpy(target, source, (size_t)(rows - 1) * c->from_pitch + c->bytes);
	for (int64_t i = 0; i < rows; i++, source += c->from_pitch, target += c->to_pitch) {
		if (!together && c->bytes > 0)
			memcpy(target, source, c->bytes);
		if (c->bytes < c->to_pitch)
			memset(target + c->bytes, 0, c->to_pitch - c->bytes);
	}
}

/* Rows `from` and those behind it go to rows `to` and those behind it. */
HG_HD static inline void hg__copy_rows(const struct hg__row_copy *c, int64_t from, int64_t to,
                                       int64_t rows, struct hg__lanes l)
{
	if (!c->to)
		return;
#ifndef __CUDA_ARCH__
	if (l.count == 1) {
		hg__copy_rows_alone(c, from, to, rows);
		return;
	}
#endif
	/* divisions of 32 bits are several times faster on a GPU, and each lane makes them */
	const size_t piece = hg__row_piece(c);
	const uint32_t pieces = (uint32_t)c->to_pitch / (uint32_t)piece, rows_on = l.count / pieces,
	               pieces_on = l.count % pieces;
	int64_t i = l.first / pieces;
	uint32_t p = l.first % pieces;
	while (i < rows) {
		hg__copy_piece(c, (const char *)c->from + (size_t)(from + i) * c->from_pitch,
		               (char *)c->to + (size_t)(to + i) * c->to_pitch, (size_t)p * piece, piece);
		i += rows_on;
		p += pieces_on;
		if (p >= pieces) {
			p -= pieces;
			i++;
		}
	}
}

HG_HD static inline void hg__clear_rows(const struct hg__row_copy *c, int64_t to, int64_t rows,
                                        struct hg__lanes l)
{
	const struct hg__row_copy none = {c->to, c->to, 0, c->to_pitch, c->to_pitch};
	hg__copy_rows(&none, to, to, rows, l);
}

/* The elements of sparse rows; all others are 0 already. */
HG_HD static inline void hg__scatter_rows(const struct hg__row_scatter *s, int64_t from, int64_t to,
                                          int64_t rows, struct hg__lanes l)
{
	for (int64_t i = l.first; s->rowptr && i < rows; i += l.count)
		for (int64_t e = s->rowptr[from + i]; e < s->rowptr[from + i + 1]; e++) {
			const int64_t at = (to + i) * s->to.ld + s->col[e];
			const float value = s->weight ? s->weight[e] : 1.0f;
			if (s->to.dtype == HG_F16)
				((hg_half *)s->to.data)[at] = hg__half_from_float(value);
			else
				((float *)s->to.data)[at] = value;
		}
}

/* ---- a graph ---- */

/* All that is read of a node, or of an edge, is read before anything is written: a GPU then waits
 * for memory once. */
HG_HD static inline void hg__move_nodes(const struct hg__assemble *a,
                                        const struct hg__moved_graph *g, struct hg__lanes l)
{
	const struct hg__changing *from = &a->from, *to = &a->to;
	const int64_t edges_on = g->edge - g->from_edge;
	for (int64_t i = l.first; i < g->nodes; i += l.count) {
		const int64_t f = g->from_node + i, t = g->node + i;
		const int64_t end = from->rowptr[f + 1], end_t = to->rowptr_t ? from->rowptr_t[f + 1] : 0;
		const float inverse_row = to->inverse_row ? from->inverse_row[f] : 0.0f,
		            inverse_col = to->inverse_col ? from->inverse_col[f] : 0.0f,
		            root_row = to->root_row ? from->root_row[f] : 0.0f,
		            root_col = to->root_col ? from->root_col[f] : 0.0f;
		to->rowptr[t + 1] = end + edges_on;
		to->id[t] = (int32_t)g->in_batch;
		if (to->rowptr_t)
			to->rowptr_t[t + 1] = end_t + edges_on;
		if (to->inverse_row)
			to->inverse_row[t] = inverse_row;
		if (to->inverse_col)
			to->inverse_col[t] = inverse_col;
		if (to->root_row)
			to->root_row[t] = root_row;
		if (to->root_col)
			to->root_col[t] = root_col;
	}
}

HG_HD static inline void hg__move_edges(const struct hg__assemble *a,
                                        const struct hg__moved_graph *g, struct hg__lanes l)
{
	const struct hg__changing *from = &a->from, *to = &a->to;
	const int32_t nodes_on = (int32_t)(g->node - g->from_node);
	const uint32_t edges_on = (uint32_t)(g->edge - g->from_edge);
	for (int64_t e = l.first; e < g->edges; e += l.count) {
		const int64_t f = g->from_edge + e, t = g->edge + e;
		const int32_t col = from->col[f], col_t = to->col_t ? from->col_t[f] : 0;
		const uint32_t edge = to->edge_t ? from->edge_t[f] : 0;
		const float weight = to->weight ? from->weight[f] : 0.0f;
		const hg_half half = to->weight_f16 ? ((const hg_half *)from->weight_f16)[f] : 0;
		to->col[t] = col + nodes_on;
		if (to->col_t)
			to->col_t[t] = col_t + nodes_on;
		if (to->edge_t)
			to->edge_t[t] = edge + edges_on;
		if (to->weight)
			to->weight[t] = weight;
		if (to->weight_f16)
			((hg_half *)to->weight_f16)[t] = half;
	}
}

HG_HD static inline void hg__assemble_graph(const struct hg__assemble *a, int64_t k,
                                            struct hg__lanes l)
{
	const struct hg__moved_graph g = hg__moved(a, k);
	hg__move_nodes(a, &g, l);
	hg__move_edges(a, &g, l);
	hg__copy_rows(&a->of_node, g.from_node, g.node, g.nodes, l);
	hg__scatter_rows(&a->sparse, g.from_node, g.node, g.nodes, l);
	hg__copy_rows(&a->of_edge, g.from_edge, g.edge, g.edges, l);
	for (int r = 0; r < HG__ASSEMBLE_ROWS; r++)
		hg__copy_rows(&a->of_graph[r], g.number, k, 1, l);
}

/* ---- the padding ---- */

/* The padding rows share the missing edges evenly. */
HG_HD static inline void hg__pad_pattern(const struct hg__assemble *a, int64_t *rowptr,
                                         int32_t *col, struct hg__lanes l)
{
	const int64_t row = a->list.row[a->list.graphs], m = a->list.edge[a->list.graphs],
	              rows = a->to.rows - row, missing = a->to.m - m, each = missing / rows,
	              rest = missing % rows;
	if (l.first == 0)
		rowptr[0] = 0;
	for (int64_t i = l.first; i < rows; i += l.count) {
		const int64_t end = m + each * (i + 1) + rest * (i + 1) / rows;
		rowptr[row + i + 1] = end;
		for (int64_t e = m + each * i + rest * i / rows; e < end; e++)
			col[e] = (int32_t)(row + i);
	}
}

HG_HD static inline void hg__pad_edges(const struct hg__assemble *a, struct hg__lanes l)
{
	const int64_t m = a->list.edge[a->list.graphs];
	for (int64_t e = m + l.first; e < a->to.m; e += l.count) {
		if (a->to.weight)
			a->to.weight[e] = a->weight;
		if (a->to.weight_f16)
			((hg_half *)a->to.weight_f16)[e] = a->weight_f16;
		if (a->to.edge_t)
			a->to.edge_t[e] = (uint32_t)e;
	}
	hg__clear_rows(&a->of_edge, m, a->to.m - m, l);
}

HG_HD static inline void hg__pad_nodes(const struct hg__assemble *a, struct hg__lanes l)
{
	float *const factor[] = {a->to.inverse_row, a->to.inverse_col, a->to.root_row, a->to.root_col};
	const int64_t row = a->list.row[a->list.graphs];
	for (int64_t i = row + l.first; i < a->to.rows; i += l.count) {
		a->to.id[i] = -1;
		for (int f = 0; f < 4; f++)
			if (factor[f])
				factor[f][i] = 0.0f;
	}
	hg__clear_rows(&a->of_node, row, a->to.rows - row, l);
}

HG_HD static inline void hg__put_bins(const struct hg__assemble *a, struct hg__lanes l)
{
	const struct hg__bins *to = &a->to.bins;
	const int64_t begun = a->list.bins, rows = a->to.rows,
	              behind = hg__bins_behind(begun, begun ? a->list.bin[begun - 1] : 0,
	                                       a->list.row[a->list.graphs]);
	for (int64_t k = l.first; k <= to->bins; k += l.count)
		to->first[k] =
		    k < begun ? a->list.bin[k] : (int32_t)hg__bins_padding(begun, behind, k, rows);
	if (l.first == 0)
		to->first[to->bins + 1] = (int32_t)hg__bins_used(begun, behind, rows);
}

/* All that is not of one graph. */
HG_HD static inline void hg__assemble_rest(const struct hg__assemble *a, struct hg__lanes l)
{
	for (int64_t k = l.first; k <= a->list.graphs; k += l.count)
		a->to.ptr[k] = a->list.row[k];
	hg__pad_pattern(a, a->to.rowptr, a->to.col, l);
	if (a->to.rowptr_t)
		hg__pad_pattern(a, a->to.rowptr_t, a->to.col_t, l);
	hg__pad_edges(a, l);
	hg__pad_nodes(a, l);
	if (a->to.bins.first)
		hg__put_bins(a, l);
}

HG_EXTERN_C_END
#endif
