#include <math.h>

#include "core/graph.h"

/* Everything the proofs want to know of a graph, in two passes over its edges in host memory, in f64. */

void hg__degree_inverse(int64_t n, const int64_t *ptr, float *out)
{
	for (int64_t i = 0; i < n; i++) {
		const int64_t d = ptr[i + 1] - ptr[i];
		out[i] = (float)(1.0 / (double)(d > 0 ? d : 1));
	}
}

void hg__degree_root(int64_t n, const int64_t *ptr, float *out)
{
	for (int64_t i = 0; i < n; i++) {
		const int64_t d = ptr[i + 1] - ptr[i];
		out[i] = (float)(1.0 / sqrt((double)(d > 0 ? d : 1)));
	}
}

void hg__column_ptr(int64_t cols, int64_t m, const int32_t *col, int64_t *ptr)
{
	for (int64_t j = 0; j <= cols; j++)
		ptr[j] = 0;
	for (int64_t e = 0; e < m; e++)
		ptr[col[e] + 1]++;
	for (int64_t j = 0; j < cols; j++)
		ptr[j + 1] += ptr[j];
}

/* Work arrays of the passes, all in host memory. */
struct survey {
	const hg_graph *g;
	const struct hg__host_csr *csr;
	int64_t *colptr, *cursor;                               /* [cols+1] */
	float *inverse_row, *root_row, *inverse_col, *root_col; /* [rows], [rows], [cols], [cols] */
	double *colsum;                                         /* [4][cols]: sums of |scaled entries|, by hg_norm */
};

static int64_t max_degree(int64_t n, const int64_t *ptr, int64_t *empty)
{
	int64_t most = 0;
	for (int64_t i = 0; i < n; i++) {
		const int64_t d = ptr[i + 1] - ptr[i];
		*empty += d == 0;
		most = d > most ? d : most;
	}
	return most;
}

/* sum_j |w_ij| r_i c_j and sum_i |w_ij| r_i c_j for each normalisation, with the very f32 factors that kernels use. */
static void sum_rows(const struct survey *s, hg_graph_facts *f)
{
	const int64_t cols = s->g->cols;
	for (int64_t i = 0; i < s->g->rows; i++) {
		double sum[4] = {0, 0, 0, 0};
		for (int64_t e = s->csr->rowptr[i]; e < s->csr->rowptr[i + 1]; e++) {
			const int64_t j = s->csr->col[e];
			const double w = s->csr->weight ? fabs((double)s->csr->weight[e]) : 1.0;
			const double scaled[4] = {[HG_NORM_NONE] = w,
			                          [HG_NORM_LEFT] = w * (double)s->inverse_col[j],
			                          [HG_NORM_RIGHT] = w * (double)s->inverse_row[i],
			                          [HG_NORM_BOTH] = w * (double)s->root_row[i] * (double)s->root_col[j]};
			for (int norm = 0; norm < 4; norm++) {
				sum[norm] += scaled[norm];
				s->colsum[norm * cols + j] += scaled[norm];
			}
			f->self_loops += i == j;
		}
		for (int norm = 0; norm < 4; norm++)
			f->norm_row_sum[norm] = fmax(f->norm_row_sum[norm], sum[norm]);
	}
	for (int norm = 0; norm < 4; norm++)
		for (int64_t j = 0; j < cols; j++)
			f->norm_col_sum[norm] = fmax(f->norm_col_sum[norm], s->colsum[norm * cols + j]);
	f->max_row_sum = f->norm_row_sum[HG_NORM_NONE];
	f->max_col_sum = f->norm_col_sum[HG_NORM_NONE];
}

/* Walking the entries (i, j) row by row deals each transposed row j its columns i in ascending order. So the pattern is symmetric exactly if the next entry of row j
 * not yet met is (j, i), every time, and that entry has to have the same weight for A = A^T. (Duplicates are compared in their order.) */
static void compare_transpose(const struct survey *s, int *pattern, int *values)
{
	const struct hg__host_csr *c = s->csr;
	*pattern = *values = s->g->rows == s->g->cols;
	for (int64_t j = 0; j < s->g->cols; j++)
		s->cursor[j] = s->colptr[j];
	for (int64_t i = 0; *pattern && i < s->g->rows; i++)
		*pattern = c->rowptr[i + 1] == s->colptr[i + 1];
	for (int64_t i = 0; *pattern && i < s->g->rows; i++)
		for (int64_t e = c->rowptr[i]; *pattern && e < c->rowptr[i + 1]; e++) {
			const int64_t back = s->cursor[c->col[e]]++;
			*pattern = c->col[back] == i;
			*values = *values && (!c->weight || c->weight[back] == c->weight[e]);
		}
	*values = *values && *pattern;
}

static void take_survey(const struct survey *s, hg_graph *g)
{
	hg_graph_facts f = HG_GRAPH_FACTS_INIT;
	hg__column_ptr(g->cols, g->m, s->csr->col, s->colptr);
	hg__degree_inverse(g->rows, s->csr->rowptr, s->inverse_row);
	hg__degree_root(g->rows, s->csr->rowptr, s->root_row);
	hg__degree_inverse(g->cols, s->colptr, s->inverse_col);
	hg__degree_root(g->cols, s->colptr, s->root_col);
	f.max_row_degree = max_degree(g->rows, s->csr->rowptr, &f.empty_rows);
	f.max_col_degree = max_degree(g->cols, s->colptr, &f.empty_cols);
	sum_rows(s, &f);
	compare_transpose(s, &g->pattern_symmetric, &f.symmetric);
	g->facts = f;
	g->facts_known = 1;
}

enum { COLPTR, CURSOR, INVERSE_ROW, ROOT_ROW, INVERSE_COL, ROOT_COL, COLSUM, ARRAYS };

hg_status hg__graph_know(hg_graph *g)
{
	if (g->facts_known)
		return HG_OK;
	struct hg__host_csr csr;
	HG__TRY(hg__graph_fetch(g, 1, 1, &csr));
	const int64_t count[ARRAYS] = {g->cols + 1, g->cols + 1, g->rows, g->rows, g->cols, g->cols, 4 * g->cols};
	const size_t size[ARRAYS] = {sizeof(int64_t), sizeof(int64_t), sizeof(float), sizeof(float), sizeof(float), sizeof(float), sizeof(double)};
	struct hg__buffer a[ARRAYS] = {{0}};
	hg_status status = HG_OK;
	for (int i = 0; i < ARRAYS && status == HG_OK; i++)
		status = hg__buffer_host(g->ctx, count[i], size[i], "graph facts", &a[i]);
	if (status == HG_OK) {
		const struct survey s = {
		    g, &csr, a[COLPTR].data, a[CURSOR].data, a[INVERSE_ROW].data, a[ROOT_ROW].data, a[INVERSE_COL].data, a[ROOT_COL].data, a[COLSUM].data};
		take_survey(&s, g);
	}
	for (int i = 0; i < ARRAYS; i++)
		hg__buffer_free(g->ctx, &a[i]);
	hg__graph_fetch_free(g, &csr);
	return status;
}
