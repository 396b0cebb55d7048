/* The survey of a graph: the facts that the proofs use, computed in two passes over its edges, in
 * f64. It is compiled only once, because the loops wait for memory and not for arithmetic. */
#include <math.h>

#include "core/graph.h"
#include "core/rounding.h"
#include "kernels/cpu/backend.h"

/* The graph and the arrays that the passes use. */
struct survey {
	const struct hg__csr *csr;
	const float *weight;
	int64_t *colptr, *cursor;                               /* [cols+1] */
	float *inverse_row, *root_row, *inverse_col, *root_col; /* [rows], [rows], [cols], [cols] */
	double *colsum; /* [HG_NORMS][cols]: column sums of |scaled entries| for every hg_norm */
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

/* Computes sum_j |w_ij| r_i c_j and sum_i |w_ij| r_i c_j for every normalisation, with the same f32
 * factors as the kernels use. */
static void sum_rows(const struct survey *s, hg_graph_facts *f)
{
	const int64_t cols = s->csr->cols;
	const int square = s->csr->rows == cols;
	for (int64_t i = 0; i < s->csr->rows; i++) {
		double sum[HG_NORMS] = {0};
		for (int64_t e = s->csr->rowptr[i]; e < s->csr->rowptr[i + 1]; e++) {
			const int64_t j = s->csr->col[e];
			const double w = s->weight ? fabs((double)s->weight[e]) : 1.0;
			const double scaled[HG_NORMS] = {
			    [HG_NORM_NONE] = w,
			    [HG_NORM_LEFT] = w * (double)s->inverse_col[j],
			    [HG_NORM_RIGHT] = w * (double)s->inverse_row[i],
			    [HG_NORM_BOTH] = w * (double)s->root_row[i] * (double)s->root_col[j],
			    [HG_NORM_IN] =
			        w * (double)s->root_row[i] * (square ? (double)s->root_row[j] : 0.0)};
			for (int norm = 0; norm < HG_NORMS; norm++) {
				sum[norm] += scaled[norm];
				s->colsum[norm * cols + j] += scaled[norm];
			}
			f->self_loops += i == j;
		}
		for (int norm = 0; norm < HG_NORMS; norm++)
			f->norm_row_sum[norm] = fmax(f->norm_row_sum[norm], sum[norm]);
	}
	for (int norm = 0; norm < HG_NORMS; norm++)
		for (int64_t j = 0; j < cols; j++)
			f->norm_col_sum[norm] = fmax(f->norm_col_sum[norm], s->colsum[norm * cols + j]);
	f->max_row_sum = f->norm_row_sum[HG_NORM_NONE];
	f->max_col_sum = f->norm_col_sum[HG_NORM_NONE];
}

/* Whether the pattern of A is symmetric, and whether A = A^T. The entries (i, j) are visited row by
 * row, so those of each column j are met in ascending order of i. The pattern is therefore
 * symmetric exactly if the next unvisited entry of row j is (j, i) for every entry (i, j). For A =
 * A^T these two entries also need the same weight. Duplicates are compared in their order. */
static void compare_transpose(const struct survey *s, int *pattern, int *values)
{
	const struct hg__csr *c = s->csr;
	*pattern = *values = s->csr->rows == s->csr->cols;
	for (int64_t j = 0; j < s->csr->cols; j++)
		s->cursor[j] = s->colptr[j];
	for (int64_t i = 0; *pattern && i < s->csr->rows; i++)
		*pattern = c->rowptr[i + 1] == s->colptr[i + 1];
	for (int64_t i = 0; *pattern && i < s->csr->rows; i++)
		for (int64_t e = c->rowptr[i]; *pattern && e < c->rowptr[i + 1]; e++) {
			const int64_t back = s->cursor[c->col[e]]++;
			*pattern = c->col[back] == i;
			*values = *values && (!s->weight || s->weight[back] == s->weight[e]);
		}
	*values = *values && *pattern;
}

static void take_survey(const struct survey *s, hg_graph_facts *f, int *pattern)
{
	const struct hg__csr *c = s->csr;
	hg__degree_inverse(c->rows, c->rowptr, s->inverse_row);
	hg__degree_root(c->rows, c->rowptr, s->root_row);
	hg__degree_inverse(c->cols, s->colptr, s->inverse_col);
	hg__degree_root(c->cols, s->colptr, s->root_col);
	f->max_row_degree = max_degree(c->rows, c->rowptr, &f->empty_rows);
	f->max_col_degree = max_degree(c->cols, s->colptr, &f->empty_cols);
	sum_rows(s, f);
	compare_transpose(s, pattern, &f->symmetric);
}

enum { COLPTR, CURSOR, INVERSE_ROW, ROOT_ROW, INVERSE_COL, ROOT_COL, COLSUM, ARRAYS };

hg_status hg__cpu_survey(hg_context *ctx, const struct hg__csr *csr, const float *weight,
                         hg_graph_facts *facts, int *pattern)
{
	const hg_graph_facts none = HG_GRAPH_FACTS_INIT;
	const int64_t count[ARRAYS] = {csr->cols + 1, csr->cols + 1, csr->rows,           csr->rows,
	                               csr->cols,     csr->cols,     HG_NORMS * csr->cols};
	const size_t size[ARRAYS] = {sizeof(int64_t), sizeof(int64_t), sizeof(float), sizeof(float),
	                             sizeof(float),   sizeof(float),   sizeof(double)};
	struct hg__buffer a[ARRAYS] = {{0}};
	hg_status status = HG_OK;
	*facts = none;
	for (int i = 0; i < ARRAYS && status == HG_OK; i++)
		status = hg__buffer_host(ctx, count[i], size[i], "graph facts", &a[i]);
	if (status == HG_OK)
		status = hg__cpu_column_ptr(ctx, csr, a[COLPTR].data);
	if (status == HG_OK) {
		const struct survey s = {csr,
		                         weight,
		                         a[COLPTR].data,
		                         a[CURSOR].data,
		                         a[INVERSE_ROW].data,
		                         a[ROOT_ROW].data,
		                         a[INVERSE_COL].data,
		                         a[ROOT_COL].data,
		                         a[COLSUM].data};
		struct hg__rounding rounding;
		hg__rounding_begin(&rounding);
		take_survey(&s, facts, pattern);
		hg__rounding_end(&rounding);
	}
	for (int i = 0; i < ARRAYS; i++)
		hg__buffer_free(ctx, &a[i]);
	return status;
}
