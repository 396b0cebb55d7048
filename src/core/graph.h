/* The inside of a graph, for the files of core and order that build and change graphs. */
#ifndef HG_CORE_GRAPH_H
#define HG_CORE_GRAPH_H

#include "core/bins.h"
#include "core/buffer.h"
#include "core/csr.h"

HG_EXTERN_C_BEGIN

/* rowptr, col and weight are given when the graph is built. Everything else is computed by the
 * first call that needs it, and kept. */
struct hg_graph {
	hg_context *ctx;
	int64_t rows, cols, m;
	struct hg__buffer rowptr, col, weight; /* device: int64 [rows+1], int32 [m], f32 [m] or none */
	struct hg__buffer weight_f16;          /* device: f16 [m] */
	struct hg__plan *plan;

	/* The transpose. Where the pattern is symmetric rowptr_t, col_t and plan_t stay empty, and the
	 * forward ones are used. */
	struct hg__buffer rowptr_t, col_t, edge_t; /* device: int64 [cols+1], int32 [m], uint32 [m] */
	struct hg__plan *plan_t;

	/* Both orientations with edges in place of columns (hg__graph_by_edge), and their plans, which
	 * share the arrays of `plan` and `plan_t`. */
	struct hg__buffer place; /* device: int32 [m], 0 .. m-1 */
	struct hg__csr by_edge[2];
	struct hg__plan plan_by_edge[2];

	/* f32 factors of the normalisations: 1/d and 1/sqrt(d) of rows and of columns. */
	struct hg__buffer inverse_row, inverse_col, root_row, root_col;
	/* The same of weighted degrees of rows, each with its facts (graph_weigh.c). */
	struct hg__buffer weighted_root, weighted_inverse;
	struct hg__weighed weighed_root, weighed_inverse;

	/* 1: the arrays above lie in the caller's memory and change from run to run (graph_blocks.h),
	 * so nothing that is missing can be computed from them and kept */
	int changes;
	/* 1: the graph is the list `dst`, `src` in the place of a CSR (HG_AGGREGATION_SCATTER) */
	int scatters;
	struct hg__buffer dst, src; /* device: int32 [m] */
	/* device, or NULL: whether the arrays keep what was promised of them (core/refill.h) */
	const uint64_t *broken;

	int facts_known, pattern_symmetric;
	hg_graph_facts facts;
	int least_weight_known;
	float least_weight, least_positive;

	/* Number of graphs; nodes of the largest, and of the smallest that is not empty. In a part of a
	 * batch they bound those of its own graphs (graph_blocks.h). */
	int64_t batch, batch_max, batch_min;
	int batch_set;
	struct hg__buffer batch_ptr, batch_id; /* device: int64 [batch+1], int32 [rows] */
	struct hg__buffer bin_first;           /* device: int32 [bins+1] */
	struct hg__bins bins;                  /* bins.h; .rows is that of the graphs here */
};

/* A copy of the CSR arrays in host memory. weight is NULL where the graph has none or the caller
 * did not ask for it. */
struct hg__host_csr {
	struct hg__buffer rowptr_memory, col_memory, weight_memory;
	const int64_t *rowptr;
	const int32_t *col;
	const float *weight;
};
HG_NODISCARD hg_status hg__graph_fetch(const hg_graph *graph, int need_col, int need_weight,
                                       struct hg__host_csr *host);
void hg__graph_fetch_free(const hg_graph *graph, struct hg__host_csr *host);

/* out[i] = 1/d and 1/sqrt(d) of the degrees d in ptr. Degree 0 counts as 1 (graph.h). */
void hg__degree_inverse(int64_t n, const int64_t *ptr, float *out);
void hg__degree_root(int64_t n, const int64_t *ptr, float *out);

/* Makes what is missing of the arrays of the transpose (rowptr_t, col_t; edge_t if it is needed),
 * but no plan for them. */
HG_NODISCARD hg_status hg__graph_transpose(hg_graph *graph, int need_edge);

/* Computes the facts if they are not known yet. */
HG_NODISCARD hg_status hg__graph_know(hg_graph *graph);

/* A new graph whose arrays the caller has to fill. It keeps its context open. */
HG_NODISCARD hg_status hg__graph_new(hg_context *ctx, int64_t rows, int64_t cols, int64_t m,
                                     hg_graph **graph);
/* HG_ERR_UNSUPPORTED for a graph whose arrays change. what: what would be computed from them. */
HG_NODISCARD hg_status hg__graph_keeps(const hg_graph *graph, const char *what);
/* HG_ERR_UNSUPPORTED for a graph whose edges are not in rows (HG_AGGREGATION_SCATTER). */
HG_NODISCARD hg_status hg__graph_in_rows(const hg_graph *graph);
/* Gives `to` the batch of another graph with the same nodes. */
HG_NODISCARD hg_status hg__graph_copy_batch(const hg_graph *from, hg_graph *to);

HG_EXTERN_C_END
#endif
