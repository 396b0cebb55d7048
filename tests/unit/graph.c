#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "unit/faulty.h"

/* Graphs against brute force on edge lists: slow, obvious, and sharing nothing with the library. */

enum { MOST_EDGES = 4000, MOST_NODES = 300 };

struct edges {
	int64_t rows, cols, m;
	int32_t dst[MOST_EDGES], src[MOST_EDGES];
	float weight[MOST_EDGES];
};

/* kind 0: scattered; 1: symmetric pattern with symmetric weights; 2: symmetric pattern, other
 * weights; 3: many duplicates; 4: rectangular; 5: one hub. */
enum { KINDS = 6 };
static void random_edges(struct edges *g, int kind)
{
	g->rows = 1 + test_below(MOST_NODES - 1);
	g->cols = kind == 4 ? 1 + test_below(MOST_NODES - 1) : g->rows;
	const int64_t wanted = test_below(MOST_EDGES / 2),
	              few = kind == 3 ? 1 + test_below(8) : INT64_MAX;
	for (g->m = 0; g->m < wanted;) {
		const int32_t i = (int32_t)(test_below(g->rows) % few),
		              j = kind == 5 ? 0 : (int32_t)(test_below(g->cols) % few);
		const float w = (float)test_normal();
		const int twin = (kind == 1 || kind == 2) && i != j;
		int known = 0;
		for (int64_t e = 0; kind != 3 && e < g->m; e++)
			known |= g->dst[e] == i && g->src[e] == j;
		if (known) {
			if (test_below(200) == 0)
				break;
			continue;
		}
		for (int t = 0; t <= twin; t++) {
			g->dst[g->m] = t ? j : i;
			g->src[g->m] = t ? i : j;
			g->weight[g->m++] = kind == 2 && t ? w + 1 : w;
		}
	}
}

static void sort_stably(const struct edges *g, int64_t *order)
{
	for (int64_t e = 0; e < g->m; e++) { /* insertion sort: stable */
		int64_t k = e;
		for (; k > 0; k--) {
			const int64_t p = order[k - 1];
			if (g->dst[p] < g->dst[e] || (g->dst[p] == g->dst[e] && g->src[p] <= g->src[e]))
				break;
			order[k] = p;
		}
		order[k] = e;
	}
}

static void *fetch(hg_context *ctx, const void *device, int64_t count, size_t size)
{
	void *host = calloc((size_t)count + 1, size);
	CHECK(host);
	if (count)
		CHECK_OK(ctx->backend->copy_out(ctx, host, device, (size_t)count * size));
	return host;
}

static void check_order(hg_graph *g, const struct edges *edges, const int64_t *order, int weighted)
{
	static int64_t expected[MOST_EDGES], rowptr[MOST_NODES + 1];
	static int32_t col[MOST_EDGES];
	static float weight[MOST_EDGES];
	sort_stably(edges, expected);
	CHECK_OK(hg_graph_download(g, rowptr, col, weight));
	CHECK_EQ_I(rowptr[0], 0);
	for (int64_t i = 0, e = 0; i < edges->rows; i++) {
		while (e < edges->m && edges->dst[expected[e]] == i)
			e++;
		CHECK_EQ_I(rowptr[i + 1], e);
	}
	for (int64_t e = 0; e < edges->m; e++) {
		CHECK_EQ_I(col[e], edges->src[expected[e]]);
		CHECK(weight[e] == (weighted ? edges->weight[expected[e]] : 1.0f));
		if (order)
			CHECK_EQ_I(order[e], expected[e]);
	}
}

static void edge_lists_become_csr(void)
{
	hg_context *ctx = test_context();
	static struct edges edges;
	static int64_t order[MOST_EDGES];
	for (int i = 0; i < 60; i++) {
		hg_graph *g;
		random_edges(&edges, i % KINDS);
		const int weighted = i / KINDS % 2;
		CHECK_OK(hg_graph_from_coo(ctx, edges.rows, edges.cols, edges.m, edges.dst, edges.src,
		                           weighted ? edges.weight : NULL, order, &g));
		CHECK(hg_graph_rows(g) == edges.rows && hg_graph_cols(g) == edges.cols &&
		      hg_graph_edges(g) == edges.m && hg_graph_context(g) == ctx);
		CHECK_EQ_I(hg_graph_is_weighted(g), weighted && edges.m > 0);
		check_order(g, &edges, order, weighted);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void csr_sorted_or_not(void)
{
	hg_context *ctx = test_context();
	static struct edges edges;
	for (int i = 0; i < 40; i++) {
		int64_t rowptr[MOST_NODES + 1] = {0};
		static int32_t col[MOST_EDGES];
		static float weight[MOST_EDGES];
		hg_graph *g, *again;
		random_edges(&edges, i % KINDS);
		for (int64_t r = 0, e = 0; r < edges.rows; r++) { /* rows in order, columns as they come */
			for (int64_t k = 0; k < edges.m; k++)
				if (edges.dst[k] == r) {
					col[e] = edges.src[k];
					weight[e++] = edges.weight[k];
				}
			rowptr[r + 1] = e;
		}
		CHECK_OK(hg_graph_from_csr(ctx, edges.rows, edges.cols, edges.m, rowptr, col, weight, &g));
		check_order(g, &edges, NULL, 1);
		CHECK_OK(hg_graph_download(g, rowptr, col, weight));
		CHECK_OK(
		    hg_graph_from_csr(ctx, edges.rows, edges.cols, edges.m, rowptr, col, weight, &again));
		check_order(again, &edges, NULL, 1);
		hg_graph_free(again);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void bad_input_is_named_by_place(void)
{
	hg_context *ctx = test_context();
	const int32_t good[] = {0, 1, 2}, low[] = {0, -1, 2}, high[] = {0, 1, 3};
	const float weight[] = {1, 2, NAN};
	const int64_t rowptr[] = {0, 1, 2, 3}, late[] = {1, 1, 2, 3}, early[] = {0, 1, 2, 2},
	              back[] = {0, 2, 1, 3};
	hg_graph *g = NULL;
#define REFUSED(call, status, part) \
	CHECK_STATUS(call, status);     \
	CHECK(g == NULL);               \
	CHECK_CONTAINS(hg_context_error(ctx), part)
	REFUSED(hg_graph_from_coo(ctx, 3, 3, 3, low, good, NULL, NULL, &g), HG_ERR_ARG, "dst[1] = -1");
	REFUSED(hg_graph_from_coo(ctx, 3, 3, 3, good, high, NULL, NULL, &g), HG_ERR_ARG,
	        "src[2] = 3, expected 0 .. 2");
	REFUSED(hg_graph_from_coo(ctx, 3, 3, 3, good, good, weight, NULL, &g), HG_ERR_ARG, "weight[2]");
	REFUSED(hg_graph_from_coo(ctx, 0, 3, 1, good, good, NULL, NULL, &g), HG_ERR_ARG, "dst[0]");
	REFUSED(hg_graph_from_coo(ctx, 3, -3, 3, good, good, NULL, NULL, &g), HG_ERR_ARG, "negative");
	REFUSED(hg_graph_from_coo(ctx, (int64_t)1 << 31, 3, 0, NULL, NULL, NULL, NULL, &g), HG_ERR_ARG,
	        "32-bit");
	REFUSED(hg_graph_from_coo(ctx, 3, 3, 3, NULL, good, NULL, NULL, &g), HG_ERR_ARG, "NULL");
	REFUSED(hg_graph_from_csr(ctx, 3, 3, 3, late, good, NULL, &g), HG_ERR_ARG,
	        "rowptr goes from 1");
	REFUSED(hg_graph_from_csr(ctx, 3, 3, 3, early, good, NULL, &g), HG_ERR_ARG, "expected 0 to 3");
	REFUSED(hg_graph_from_csr(ctx, 3, 3, 3, back, good, NULL, &g), HG_ERR_ARG, "rowptr[2] = 1");
	REFUSED(hg_graph_from_csr(ctx, 3, 3, 3, rowptr, high, NULL, &g), HG_ERR_ARG, "col[2] = 3");
	REFUSED(hg_graph_from_csr(ctx, 3, 3, 3, rowptr, good, weight, &g), HG_ERR_ARG, "weight[2]");
	REFUSED(hg_graph_from_csr(ctx, 3, 3, 3, NULL, good, NULL, &g), HG_ERR_ARG, "rowptr is NULL");
#undef REFUSED
	CHECK_STATUS(hg_graph_from_coo(NULL, 3, 3, 3, good, good, NULL, NULL, &g), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_from_coo(ctx, 3, 3, 3, good, good, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_download(NULL, NULL, NULL, NULL), HG_ERR_ARG);
	CHECK(hg_graph_rows(NULL) == 0 && hg_graph_edges(NULL) == 0 && hg_graph_context(NULL) == NULL);
	hg_graph_free(NULL);
	hg_context_free(ctx);
}

/* ---- facts ---- */

static double scaled(const struct edges *g, const int64_t *d, const int64_t *dc, int64_t e,
                     hg_norm norm)
{
	const double row = (double)(d[g->dst[e]] > 0 ? d[g->dst[e]] : 1),
	             col = (double)(dc[g->src[e]] > 0 ? dc[g->src[e]] : 1);
	const int64_t in = g->rows == g->cols ? d[g->src[e]] : 0; /* of another shape there is no IN */
	const double factor[HG_NORMS] = {1, 1 / col, 1 / row, 1 / sqrt(row * col),
	                                 g->rows == g->cols ? 1 / sqrt(row * (double)(in > 0 ? in : 1))
	                                                    : 0};
	return fabs((double)g->weight[e]) * factor[norm];
}

static int is_symmetric(const struct edges *g)
{
	static double a[MOST_NODES][MOST_NODES];
	if (g->rows != g->cols)
		return 0;
	memset(a, 0, sizeof a);
	for (int64_t e = 0; e < g->m; e++)
		a[g->dst[e]][g->src[e]] += (double)g->weight[e];
	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t j = 0; j < i; j++)
			if (a[i][j] != a[j][i])
				return 0;
	return 1;
}

static void facts_are_facts(void)
{
	hg_context *ctx = test_context();
	static struct edges edges;
	int symmetric = 0;
	for (int i = 0; i < 60; i++) {
		hg_graph *g;
		hg_graph_facts f = HG_GRAPH_FACTS_INIT;
		int64_t d[MOST_NODES] = {0}, dc[MOST_NODES] = {0}, most[2] = {0, 0}, empty[2] = {0, 0},
		        loops = 0;
		random_edges(&edges, i % KINDS);
		CHECK_OK(hg_graph_from_coo(ctx, edges.rows, edges.cols, edges.m, edges.dst, edges.src,
		                           edges.weight, NULL, &g));
		CHECK_OK(hg_graph_facts_get(g, &f));
		for (int64_t e = 0; e < edges.m; e++) {
			d[edges.dst[e]]++;
			dc[edges.src[e]]++;
			loops += edges.dst[e] == edges.src[e];
		}
		for (int64_t r = 0; r < edges.rows; r++) {
			most[0] = d[r] > most[0] ? d[r] : most[0];
			empty[0] += d[r] == 0;
		}
		for (int64_t c = 0; c < edges.cols; c++) {
			most[1] = dc[c] > most[1] ? dc[c] : most[1];
			empty[1] += dc[c] == 0;
		}
		CHECK(f.max_row_degree == most[0] && f.max_col_degree == most[1] &&
		      f.empty_rows == empty[0] && f.empty_cols == empty[1] && f.self_loops == loops);
		for (int norm = 0; norm < HG_NORMS; norm++) {
			double row[MOST_NODES] = {0}, col[MOST_NODES] = {0}, row_max = 0, col_max = 0;
			for (int64_t e = 0; e < edges.m; e++) {
				row[edges.dst[e]] += scaled(&edges, d, dc, e, (hg_norm)norm);
				col[edges.src[e]] += scaled(&edges, d, dc, e, (hg_norm)norm);
			}
			for (int n = 0; n < MOST_NODES; n++) {
				row_max = fmax(row_max, row[n]);
				col_max = fmax(col_max, col[n]);
			}
			/* the factors are f32 */
			CHECK_WITHIN(f.norm_row_sum[norm], row_max, row_max * 3 * 0x1p-24);
			CHECK_WITHIN(f.norm_col_sum[norm], col_max, col_max * 3 * 0x1p-24);
		}
		CHECK(f.max_row_sum == f.norm_row_sum[0] && f.max_col_sum == f.norm_col_sum[0]);
		if (i % KINDS != 3) { /* duplicates are compared one by one, not as sums */
			CHECK_EQ_I(f.symmetric, is_symmetric(&edges));
			symmetric += f.symmetric;
		}
		hg_graph_free(g);
	}
	CHECK(symmetric >= 10);
	hg_context_free(ctx);
}

/* A star of n leaves: the symmetric normalisation has a hub row sum near sqrt(n), not 1: no
 * contraction. */
static void a_star_is_no_contraction(void)
{
	hg_context *ctx = test_context();
	enum { LEAVES = 10000 };
	static int32_t dst[2 * LEAVES], src[2 * LEAVES];
	hg_graph *g;
	hg_graph_facts f = HG_GRAPH_FACTS_INIT;
	for (int i = 0; i < LEAVES; i++) {
		dst[2 * i] = src[2 * i + 1] = 0;
		src[2 * i] = dst[2 * i + 1] = i + 1;
	}
	CHECK_OK(hg_graph_from_coo(ctx, LEAVES + 1, LEAVES + 1, (int64_t)2 * LEAVES, dst, src, NULL,
	                           NULL, &g));
	CHECK_OK(hg_graph_facts_get(g, &f));
	CHECK_WITHIN(f.norm_row_sum[HG_NORM_BOTH], 100, 1e-4);
	CHECK_WITHIN(f.norm_row_sum[HG_NORM_RIGHT], 1, 1e-4);
	CHECK(f.symmetric && f.max_row_degree == LEAVES);
	CHECK_STATUS(hg_graph_facts_get(g, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_facts_get(NULL, &f), HG_ERR_ARG);
	f.size = 0;
	CHECK_STATUS(hg_graph_facts_get(g, &f), HG_ERR_ARG);
	hg_graph_free(g);
	hg_context_free(ctx);
}

/* ---- what kernels see ---- */

static void check_transpose(hg_context *ctx, const struct edges *edges, hg_graph *g, int want_edge)
{
	struct hg__csr a, t;
	CHECK_OK(hg__graph_csr(g, &a));
	CHECK_OK(hg__graph_csr_t(g, want_edge, &t));
	CHECK(a.rows == edges->rows && a.cols == edges->cols && a.m == edges->m && a.edge == NULL &&
	      a.plan);
	CHECK(t.rows == edges->cols && t.cols == edges->rows && t.m == edges->m && t.plan &&
	      (t.edge || !want_edge || !edges->m));
	CHECK((t.col == a.col) == (g->pattern_symmetric || !edges->m));
	int64_t *ap = fetch(ctx, a.rowptr, a.rows + 1, sizeof *ap),
	        *tp = fetch(ctx, t.rowptr, t.rows + 1, sizeof *tp);
	int32_t *ac = fetch(ctx, a.col, a.m, sizeof *ac), *tc = fetch(ctx, t.col, t.m, sizeof *tc);
	uint32_t *edge = t.edge ? fetch(ctx, t.edge, t.m, sizeof *edge) : NULL;
	char *hit = calloc((size_t)a.m + 1, 1);
	CHECK(hit);
	CHECK_EQ_I(tp[t.rows], t.m);
	for (int64_t j = 0; j < t.rows; j++)
		for (int64_t p = tp[j]; p < tp[j + 1]; p++) {
			CHECK(p == tp[j] || tc[p] >= tc[p - 1]);
			if (!edge)
				continue;
			CHECK(edge[p] < a.m && !hit[edge[p]]++);
			CHECK(ac[edge[p]] == j && ap[tc[p]] <= edge[p] && edge[p] < ap[tc[p] + 1]);
		}
	free(hit);
	free(edge);
	free(ap);
	free(tp);
	free(ac);
	free(tc);
}

static void transposes_are_transposes(void)
{
	hg_context *ctx = test_context();
	static struct edges edges;
	for (int i = 0; i < 36; i++) {
		hg_graph *g;
		random_edges(&edges, i % KINDS);
		CHECK_OK(hg_graph_from_coo(ctx, edges.rows, edges.cols, edges.m, edges.dst, edges.src,
		                           edges.weight, NULL, &g));
		if (i % 2) /* first without, then with */
			check_transpose(ctx, &edges, g, 0);
		const size_t before = ctx->current_bytes;
		check_transpose(ctx, &edges, g, 1);
		if (g->pattern_symmetric && i % 2)
			/* edge alone is extra */
			CHECK_EQ_I(ctx->current_bytes - before, (size_t)edges.m * sizeof(uint32_t));
		const size_t after = ctx->current_bytes;
		check_transpose(ctx, &edges, g, 1);
		check_transpose(ctx, &edges, g, 0);
		CHECK_EQ_I(ctx->current_bytes, after);
		hg_graph_free(g);
	}
	CHECK_EQ_I(ctx->current_bytes, ctx->workspace_bytes);
	hg_context_free(ctx);
}

/* More edges than 32 bits can tell apart, as far as the graph knows. */
static void places_are_32_bits(void)
{
	const int32_t dst = 1, src = 0;
	struct hg__csr t;
	size_t bytes;
	hg_graph *g;
	hg_context *ctx = test_context();
	CHECK_OK(hg_graph_from_coo(ctx, 2, 2, 1, &dst, &src, NULL, NULL, &g));
	CHECK_OK(hg__graph_missing(g, 1, &bytes));
	g->m = HG__EDGE_INDEX_LIMIT + 1;
	CHECK_EQ_I(hg__graph_csr_t(g, 1, &t), HG_ERR_UNSUPPORTED);
	CHECK_EQ_I(hg__graph_missing(g, 1, &bytes), HG_ERR_UNSUPPORTED);
	CHECK_OK(hg__graph_missing(g, 0, &bytes));
	g->m = 1;
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void check_vector(hg_context *ctx, const float *device, int64_t n, const int64_t *degree,
                         double power)
{
	float *v = fetch(ctx, device, n, sizeof *v);
	for (int64_t i = 0; i < n; i++)
		CHECK(v[i] == (float)pow((double)(degree[i] > 0 ? degree[i] : 1), power));
	free(v);
}

static void norms_are_powers_of_degrees(void)
{
	hg_context *ctx = test_context();
	static struct edges edges;
	for (int i = 0; i < 12; i++) {
		hg_graph *g;
		int64_t d[MOST_NODES] = {0}, dc[MOST_NODES] = {0};
		const float *r, *c, *r2, *c2;
		random_edges(&edges, i % KINDS);
		for (int64_t e = 0; e < edges.m; e++) {
			d[edges.dst[e]]++;
			dc[edges.src[e]]++;
		}
		CHECK_OK(hg_graph_from_coo(ctx, edges.rows, edges.cols, edges.m, edges.dst, edges.src, NULL,
		                           NULL, &g));
		CHECK_OK(hg__graph_norm(g, HG_NORM_NONE, &r, &c));
		CHECK(!r && !c);
		CHECK_OK(hg__graph_norm(g, HG_NORM_LEFT, &r, &c));
		CHECK(!r);
		check_vector(ctx, c, edges.cols, dc, -1);
		CHECK_OK(hg__graph_norm(g, HG_NORM_RIGHT, &r, &c));
		CHECK(!c);
		check_vector(ctx, r, edges.rows, d, -1);
		CHECK_OK(hg__graph_norm(g, HG_NORM_BOTH, &r, &c));
		check_vector(ctx, r, edges.rows, d, -0.5);
		check_vector(ctx, c, edges.cols, dc, -0.5);
		CHECK_OK(hg__graph_norm(g, HG_NORM_BOTH, &r2, &c2));
		CHECK(r == r2 && c == c2);
		if (edges.rows == edges.cols) {
			CHECK_OK(hg__graph_norm(g, HG_NORM_IN, &r, &c));
			CHECK(r == r2 && c == r2); /* the same vector at both ends */
		} else {
			CHECK_STATUS(hg__graph_norm(g, HG_NORM_IN, &r, &c), HG_ERR_SHAPE);
		}
		CHECK_STATUS(hg__graph_norm(g, (hg_norm)HG_NORMS, &r, &c), HG_ERR_ARG);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void weights_come_in_both_types(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {1, 0, 1}, src[] = {1, 0, 0};
	const float weight[] = {3, 0.1f, 7}, huge[] = {1, 2, 70000};
	const void *w32, *w16;
	hg_graph *g;
	CHECK_OK(hg_graph_from_coo(ctx, 2, 2, 3, dst, src, weight, NULL, &g));
	CHECK_OK(hg__graph_weight(g, HG_F32, &w32));
	CHECK_OK(hg__graph_weight(g, HG_F16, &w16));
	float *f = fetch(ctx, w32, 3, sizeof *f);
	hg_half *h = fetch(ctx, w16, 3, sizeof *h);
	CHECK(f[0] == 0.1f && f[1] == 7 && f[2] == 3);
	CHECK(h[0] == hg_half_from_float(0.1f) && hg_half_to_float(h[1]) == 7 &&
	      hg_half_to_float(h[2]) == 3);
	free(f);
	free(h);
	CHECK_STATUS(hg__graph_weight(g, HG_I32, &w32), HG_ERR_DTYPE);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, 2, 2, 3, dst, src, huge, NULL, &g));
	CHECK_OK(hg__graph_weight(g, HG_F32, &w32));
	CHECK_STATUS(hg__graph_weight(g, HG_F16, &w16), HG_ERR_RANGE);
	CHECK_CONTAINS(hg_context_error(ctx), "70000 of edge 1");
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, 2, 2, 3, dst, src, NULL, NULL, &g));
	CHECK_OK(hg__graph_weight(g, HG_F16, &w16));
	CHECK(w16 == NULL && !hg_graph_is_weighted(g));
	hg_graph_free(g);
	hg_context_free(ctx);
}

/* ---- graphs from graphs ---- */

static void symmetrize_adds_the_transpose(void)
{
	hg_context *ctx = test_context();
	static struct edges edges;
	static double a[MOST_NODES][MOST_NODES];
	for (int i = 0; i < 24; i++) {
		hg_graph *g, *s;
		hg_graph_facts f = HG_GRAPH_FACTS_INIT;
		random_edges(&edges, i % 4);
		const int weighted = i % 2;
		CHECK_OK(hg_graph_from_coo(ctx, edges.rows, edges.cols, edges.m, edges.dst, edges.src,
		                           weighted ? edges.weight : NULL, NULL, &g));
		CHECK_OK(hg_graph_symmetrize(g, &s));
		CHECK_OK(hg_graph_facts_get(s, &f));
		CHECK(f.symmetric);
		CHECK_EQ_I(hg_graph_is_weighted(s), weighted && edges.m > 0);
		for (int64_t r = 0; r < edges.rows; r++)
			for (int64_t c = 0; c < edges.rows; c++)
				a[r][c] = NAN;
		int64_t entries = 0;
		for (int64_t e = 0; e < 2 * edges.m; e++) {
			double *cell = e < edges.m ? &a[edges.dst[e]][edges.src[e]]
			                           : &a[edges.src[e - edges.m]][edges.dst[e - edges.m]];
			const double w = weighted ? (double)edges.weight[e % edges.m] : 1;
			entries += isnan(*cell);
			*cell = isnan(*cell) ? w : fmax(*cell, w);
		}
		CHECK_EQ_I(hg_graph_edges(s), entries);
		int64_t rowptr[MOST_NODES + 1];
		int32_t *col = malloc((size_t)(entries + 1) * sizeof *col);
		float *weight = malloc((size_t)(entries + 1) * sizeof *weight);
		CHECK(col && weight);
		CHECK_OK(hg_graph_download(s, rowptr, col, weight));
		for (int64_t r = 0; r < edges.rows; r++)
			for (int64_t e = rowptr[r]; e < rowptr[r + 1]; e++)
				CHECK((double)weight[e] == a[r][col[e]] && (e == rowptr[r] || col[e] > col[e - 1]));
		free(col);
		free(weight);
		hg_graph_free(s);
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

static void self_loops_come_where_there_are_none(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {0, 1, 1, 3, 3}, src[] = {1, 1, 1, 0, 3};
	const float weight[] = {5, 6, 7, 8, 9}, weights[] = {1, 5, 6, 7, 1, 8, 9};
	const int64_t expected_ptr[] = {0, 2, 4, 5, 7};
	const int32_t expected[] = {0, 1, 1, 1, 2, 0, 3};
	int64_t rowptr[5];
	int32_t col[7];
	float w[7];
	hg_graph *g, *loops;
	CHECK_OK(hg_graph_from_coo(ctx, 4, 4, 5, dst, src, weight, NULL, &g));
	CHECK_OK(hg_graph_add_self_loops(g, &loops));
	CHECK_EQ_I(hg_graph_edges(loops), 7);
	CHECK_OK(hg_graph_download(loops, rowptr, col, w));
	CHECK(memcmp(rowptr, expected_ptr, sizeof rowptr) == 0 &&
	      memcmp(col, expected, sizeof col) == 0 && memcmp(w, weights, sizeof w) == 0);
	hg_graph_free(loops);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, 4, 5, 5, dst, src, weight, NULL, &g));
	CHECK_STATUS(hg_graph_add_self_loops(g, &loops), HG_ERR_SHAPE);
	CHECK_CONTAINS(hg_context_error(ctx), "[4, 5]");
	CHECK_STATUS(hg_graph_symmetrize(g, &loops), HG_ERR_SHAPE);
	CHECK(loops == NULL);
	CHECK_STATUS(hg_graph_symmetrize(g, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_symmetrize(NULL, &loops), HG_ERR_ARG);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void a_batch_has_pointers_and_ids(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {0, 1, 3, 4}, src[] = {1, 0, 4, 3};
	const int64_t ptr[] = {0, 2, 2, 5}, *device;
	const int32_t ids[] = {0, 0, 2, 2, 2}, *id;
	hg_graph *g, *loops;
	CHECK_OK(hg_graph_from_coo(ctx, 5, 5, 4, dst, src, NULL, NULL, &g));
	CHECK_EQ_I(hg_graph_batch(g), 1);
	CHECK_EQ_I(hg__graph_batch_max(g), 5);
	CHECK_OK(hg_graph_set_batch(g, 3, ptr));
	CHECK_EQ_I(hg_graph_batch(g), 3);
	CHECK_EQ_I(hg__graph_batch_max(g), 3);
	CHECK_OK(hg_graph_add_self_loops(g, &loops)); /* keeps its nodes' batch */
	CHECK_OK(hg__graph_batch(loops, &device, &id));
	int64_t *p = fetch(ctx, device, 4, sizeof *p);
	int32_t *i = fetch(ctx, id, 5, sizeof *i);
	CHECK(memcmp(p, ptr, sizeof ptr) == 0 && memcmp(i, ids, sizeof ids) == 0);
	CHECK_EQ_I(hg_graph_batch(loops), 3);
	free(p);
	free(i);
	CHECK_STATUS(hg_graph_set_batch(g, 3, ptr), HG_ERR_STATE);
	hg_graph_free(loops);
	hg_graph_free(g);
	hg_context_free(ctx);
}

static void bad_batches_are_refused(void)
{
	hg_context *ctx = test_context();
	const int32_t dst[] = {0, 1, 3, 4}, src[] = {1, 0, 4, 3};
	const int64_t late[] = {1, 5}, early[] = {0, 4}, back[] = {0, 3, 2, 5}, cut[] = {0, 4, 5},
	              whole[] = {0, 5}, *ptr;
	const int32_t *id;
	hg_graph *g;
	CHECK_OK(hg_graph_from_coo(ctx, 5, 5, 4, dst, src, NULL, NULL, &g));
	CHECK_STATUS(hg_graph_set_batch(g, 1, late), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_set_batch(g, 1, early), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "expected 0 to 5");
	CHECK_STATUS(hg_graph_set_batch(g, 3, back), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "ptr[2] = 2");
	CHECK_STATUS(hg_graph_set_batch(g, 2, cut), HG_ERR_ARG);
	CHECK_CONTAINS(hg_context_error(ctx), "node 3 of graph 0");
	CHECK_STATUS(hg_graph_set_batch(g, -1, whole), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_set_batch(g, 1, NULL), HG_ERR_ARG);
	CHECK_STATUS(hg_graph_set_batch(NULL, 1, whole), HG_ERR_ARG);
	CHECK_OK(hg__graph_batch(g, &ptr, &id)); /* one graph by default, and from now on */
	int64_t *p = fetch(ctx, ptr, 2, sizeof *p);
	CHECK(p[0] == 0 && p[1] == 5);
	free(p);
	CHECK_STATUS(hg_graph_set_batch(g, 1, whole), HG_ERR_STATE);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, 5, 6, 4, dst, src, NULL, NULL, &g));
	CHECK_STATUS(hg_graph_set_batch(g, 1, whole), HG_ERR_SHAPE);
	hg_graph_free(g);
	hg_context_free(ctx);
}

/* Everything at once on graphs of nothing, of nodes alone, and of one edge. */
static void tiny_graphs(void)
{
	hg_context *ctx = test_context();
	static const int64_t shape[][3] = {{0, 0, 0}, {1, 1, 0}, {5, 5, 0},
	                                   {1, 1, 1}, {0, 3, 0}, {3, 0, 0}};
	const int32_t zero[1] = {0};
	for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
		hg_graph *g, *s;
		struct hg__csr csr, csr_t;
		hg_graph_facts f = HG_GRAPH_FACTS_INIT;
		const int64_t *ptr;
		const int32_t *id;
		const float *r, *c;
		const void *w;
		CHECK_OK(hg_graph_from_coo(ctx, shape[i][0], shape[i][1], shape[i][2], zero, zero, NULL,
		                           NULL, &g));
		CHECK_OK(hg_graph_facts_get(g, &f));
		CHECK_EQ_I(f.symmetric, shape[i][0] == shape[i][1]);
		CHECK_EQ_I(f.empty_rows, shape[i][0] - shape[i][2]);
		CHECK_OK(hg__graph_csr(g, &csr));
		CHECK_OK(hg__graph_csr_t(g, 1, &csr_t));
		CHECK(csr_t.rows == shape[i][1] && csr_t.m == shape[i][2]);
		for (int norm = 0; norm < 4; norm++)
			CHECK_OK(hg__graph_norm(g, (hg_norm)norm, &r, &c));
		CHECK_OK(hg__graph_weight(g, HG_F16, &w));
		CHECK_OK(hg__graph_batch(g, &ptr, &id));
		if (shape[i][0] == shape[i][1]) {
			CHECK_OK(hg_graph_symmetrize(g, &s));
			hg_graph_free(s);
			CHECK_OK(hg_graph_add_self_loops(g, &s));
			CHECK_EQ_I(hg_graph_edges(s), shape[i][0]);
			hg_graph_free(s);
		}
		hg_graph_free(g);
	}
	hg_context_free(ctx);
}

/* ---- memory ---- */

static hg_status use(hg_graph *g)
{
	struct hg__csr csr;
	const int64_t *ptr;
	const int32_t *id;
	const float *r, *c;
	const void *w;
	HG__TRY(hg__graph_csr(g, &csr));
	HG__TRY(hg__graph_csr_t(g, 0, &csr));
	HG__TRY(hg__graph_csr_t(g, 1, &csr));
	for (int norm = 0; norm < 4; norm++)
		HG__TRY(hg__graph_norm(g, (hg_norm)norm, &r, &c));
	HG__TRY(hg__graph_weight(g, HG_F16, &w));
	return hg__graph_batch(g, &ptr, &id);
}

static hg_status scene(hg_context *ctx)
{
	const int32_t dst[] = {3, 0, 1, 2, 0}, src[] = {0, 1, 2, 3, 0};
	const float weight[] = {1, 2, 3, 4, 5};
	const int64_t rowptr[] = {0, 2, 3, 4, 5}, batch[] = {0, 4};
	int64_t order[5];
	hg_graph *g = NULL, *unsorted = NULL, *symmetric = NULL, *loops = NULL;
	hg_status status = hg_graph_from_coo(ctx, 4, 4, 5, dst, src, weight, order, &g);
	if (status == HG_OK)
		status = hg_graph_set_batch(g, 1, batch);
	if (status == HG_OK)
		status = use(g);
	if (status == HG_OK)
		status = hg_graph_from_csr(ctx, 4, 4, 5, rowptr, dst, weight, &unsorted);
	if (status == HG_OK)
		status = hg_graph_symmetrize(g, &symmetric);
	if (status == HG_OK)
		status = use(symmetric);
	if (status == HG_OK)
		status = hg_graph_add_self_loops(g, &loops);
	hg_graph_free(g);
	hg_graph_free(unsorted);
	hg_graph_free(symmetric);
	hg_graph_free(loops);
	return status;
}

static void every_allocation_may_fail(void)
{
	const int64_t count = faulty_sweep(scene);
	test_note("%lld allocations made to fail", (long long)count);
	CHECK(count > 100);
}

/* ---- many edges: more than a device sorts or streams at once ---- */

enum { MANY = 3000000, MANY_NODES = 20000, HUB = 7 };

static void many_edges(int32_t *dst, int32_t *src)
{
	for (int64_t e = 0; e < MANY; e++) {
		/* the hub alone has more than a chunk */
		dst[e] = e % 3 == 0 ? HUB : (int32_t)test_below(MANY_NODES);
		src[e] = (int32_t)test_below(e % 2 ? 50 : MANY_NODES); /* many duplicates, and not */
	}
}

/* Rows and columns ascend, and order, where there is one, is a permutation that ascends among
 * equals. */
static void check_many(hg_graph *g, const int32_t *dst, const int32_t *src, const int64_t *order)
{
	int64_t *rowptr = calloc(MANY_NODES + 1, sizeof *rowptr),
	        *degree = calloc(MANY_NODES, sizeof *degree);
	int32_t *col = calloc(MANY, sizeof *col);
	char *seen = calloc(MANY, 1);
	int64_t wrong = 0, checksum[2] = {0, 0};
	CHECK(rowptr && degree && col && seen);
	CHECK_OK(hg_graph_download(g, rowptr, col, NULL));
	for (int64_t e = 0; e < MANY; e++) {
		degree[dst[e]]++;
		checksum[0] += (int64_t)(src[e] + 1) * (dst[e] + 3);
	}
	for (int64_t i = 0; i < MANY_NODES; i++) {
		wrong += rowptr[i + 1] - rowptr[i] != degree[i];
		for (int64_t p = rowptr[i]; p < rowptr[i + 1]; p++) {
			checksum[1] += (int64_t)(col[p] + 1) * (i + 3);
			wrong += p > rowptr[i] && col[p] < col[p - 1];
			if (!order)
				continue;
			wrong += seen[order[p]]++ || dst[order[p]] != i || src[order[p]] != col[p];
			wrong += p > rowptr[i] && col[p] == col[p - 1] && order[p] < order[p - 1];
		}
	}
	CHECK_EQ_I(wrong, 0);
	CHECK_EQ_I(checksum[0], checksum[1]);
	free(rowptr);
	free(degree);
	free(col);
	free(seen);
}

/* Against sums taken edge by edge; the row of the hub and the first 50 columns are long. */
static void check_facts_of_many(hg_graph *g, const int32_t *dst, const int32_t *src,
                                const float *weight)
{
	enum { SUMS = 2 * HG_NORMS };
	double *sum = calloc((size_t)SUMS * MANY_NODES, sizeof *sum), most[SUMS] = {0};
	int64_t *row = calloc(MANY_NODES, sizeof *row), *col = calloc(MANY_NODES, sizeof *col),
	        loops = 0;
	hg_graph_facts f = HG_GRAPH_FACTS_INIT, again = HG_GRAPH_FACTS_INIT;
	CHECK(sum && row && col);
	for (int64_t e = 0; e < MANY; e++) {
		row[dst[e]]++;
		col[src[e]]++;
		loops += dst[e] == src[e];
	}
	for (int64_t e = 0; e < MANY; e++) {
		const double w = fabs((double)weight[e]), r = (double)row[dst[e]], c = (double)col[src[e]];
		const double in = row[src[e]] ? (double)row[src[e]] : 1.0;
		const double scaled[HG_NORMS] = {w, w / c, w / r, w / sqrt(r * c), w / sqrt(r * in)};
		for (int norm = 0; norm < HG_NORMS; norm++) {
			sum[norm * MANY_NODES + dst[e]] += scaled[norm];
			sum[(HG_NORMS + norm) * MANY_NODES + src[e]] += scaled[norm];
		}
	}
	for (int k = 0; k < SUMS; k++)
		for (int i = 0; i < MANY_NODES; i++)
			most[k] = fmax(most[k], sum[k * MANY_NODES + i]);
	CHECK_OK(hg_graph_facts_get(g, &f));
	for (int norm = 0; norm < HG_NORMS; norm++) {
		/* the factors are f32 */
		CHECK_WITHIN(f.norm_row_sum[norm], most[norm], most[norm] * 3 * 0x1p-24);
		CHECK_WITHIN(f.norm_col_sum[norm], most[HG_NORMS + norm],
		             most[HG_NORMS + norm] * 3 * 0x1p-24);
	}
	CHECK_EQ_I(f.max_row_degree, row[HUB]);
	CHECK_EQ_I(f.self_loops, loops);
	g->facts_known = 0; /* once more: the same bits */
	CHECK_OK(hg_graph_facts_get(g, &again));
	CHECK(memcmp(&f, &again, sizeof f) == 0);
	free(sum);
	free(row);
	free(col);
}

static void many_edges_are_sorted_in_little_memory(void)
{
	hg_context *ctx = test_context();
	int32_t *dst = calloc(MANY, sizeof *dst), *src = calloc(MANY, sizeof *src);
	int64_t *order = calloc(MANY, sizeof *order);
	float *weight = calloc(MANY, sizeof *weight), *kept = calloc(MANY, sizeof *kept);
	struct hg__csr t;
	hg_graph *g;
	CHECK(dst && src && order && weight && kept);
	many_edges(dst, src);
	for (int64_t e = 0; e < MANY; e++)
		weight[e] = (float)(e % 8191);
	const size_t col = (size_t)MANY * sizeof(int32_t);
	CHECK_OK(hg_graph_from_coo(ctx, MANY_NODES, MANY_NODES, MANY, dst, src, NULL, NULL, &g));
	test_note("unweighted: %.2f of the column ids", (double)ctx->peak_bytes / (double)col);
	CHECK_EQ_I(ctx->current_bytes, (MANY_NODES + 1) * sizeof(int64_t) + col); /* no order is left */
	/* a slice of the hub's million edges takes 16 bytes for each: 1.34 of the ids, and it is one
	 * third of all edges here */
	CHECK((double)ctx->peak_bytes <= 2.9 * (double)col);
	check_many(g, dst, src, NULL);
	CHECK_OK(hg__graph_csr_t(g, 0, &t));
	CHECK(t.edge == NULL && !g->pattern_symmetric);
	/* both orientations, plans, no edge map */
	CHECK((double)ctx->current_bytes <= 2.4 * (double)col);
	hg_graph_free(g);
	CHECK_OK(hg_graph_from_coo(ctx, MANY_NODES, MANY_NODES, MANY, dst, src, weight, order, &g));
	check_many(g, dst, src, order);
	CHECK_OK(hg_graph_download(g, NULL, NULL, kept));
	int64_t wrong = 0;
	for (int64_t p = 0; p < MANY; p++)
		wrong += kept[p] != weight[order[p]];
	CHECK_EQ_I(wrong, 0);
	check_facts_of_many(g, dst, src, weight);
	hg_graph_free(g);
	free(dst);
	free(src);
	free(order);
	free(weight);
	free(kept);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(edge_lists_become_csr),
	    TEST(csr_sorted_or_not),
	    TEST(bad_input_is_named_by_place),
	    TEST(facts_are_facts),
	    TEST(a_star_is_no_contraction),
	    TEST(transposes_are_transposes),
	    TEST(places_are_32_bits),
	    TEST(norms_are_powers_of_degrees),
	    TEST(weights_come_in_both_types),
	    TEST(symmetrize_adds_the_transpose),
	    TEST(self_loops_come_where_there_are_none),
	    TEST(a_batch_has_pointers_and_ids),
	    TEST(bad_batches_are_refused),
	    TEST(tiny_graphs),
	    TEST(many_edges_are_sorted_in_little_memory),
	    TEST(every_allocation_may_fail),
	};
	return RUN_TESTS(argc, argv, cases);
}
