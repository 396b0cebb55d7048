/* New graphs from existing ones: symmetrised, and with self loops. The host merges sorted rows. */
#include "core/graph.h"

/* A CSR under construction. Its arrays are long enough for the worst case. */
struct draft {
	struct hg__buffer rowptr_memory, col_memory, weight_memory;
	int64_t *rowptr;
	int32_t *col;
	float *weight; /* NULL: unweighted */
	int64_t m;
};

static void draft_free(hg_context *ctx, struct draft *d)
{
	hg__buffer_free(ctx, &d->rowptr_memory);
	hg__buffer_free(ctx, &d->col_memory);
	hg__buffer_free(ctx, &d->weight_memory);
}

static hg_status draft_new(hg_context *ctx, int64_t rows, int64_t most, int weighted,
                           struct draft *d)
{
	const struct draft none = {0};
	*d = none;
	hg_status status =
	    hg__buffer_host(ctx, rows + 1, sizeof(int64_t), "graph: new rowptr", &d->rowptr_memory);
	if (status == HG_OK)
		status = hg__buffer_host(ctx, most, sizeof(int32_t), "graph: new col", &d->col_memory);
	if (status == HG_OK && weighted)
		status = hg__buffer_host(ctx, most, sizeof(float), "graph: new weight", &d->weight_memory);
	if (status < 0)
		draft_free(ctx, d);
	d->rowptr = d->rowptr_memory.data;
	d->col = d->col_memory.data;
	d->weight = d->weight_memory.data;
	return status;
}

static void append_entry(struct draft *d, int32_t col, float weight)
{
	d->col[d->m] = col;
	if (d->weight)
		d->weight[d->m] = weight;
	d->m++;
}

/* Appends an entry, or keeps the larger weight where the row already ends with this column. */
static void append_merged(struct draft *d, int64_t row, int32_t col, float weight)
{
	if (d->m == d->rowptr[row] || d->col[d->m - 1] != col)
		append_entry(d, col, weight);
	else if (d->weight && weight > d->weight[d->m - 1])
		d->weight[d->m - 1] = weight;
}

static float weight_at(const struct hg__host_csr *csr, int64_t e)
{
	return csr->weight ? csr->weight[e] : 1.0f;
}

static hg_status finish_draft(const hg_graph *from, const struct draft *d, hg_graph **out)
{
	HG__TRY(hg_graph_from_csr(from->ctx, from->rows, from->cols, d->m, d->rowptr, d->col, d->weight,
	                          out));
	const hg_status status = hg__graph_copy_batch(from, *out);
	if (status < 0) {
		hg_graph_free(*out);
		*out = NULL;
	}
	return status;
}

static hg_status check_square(hg_graph *g, hg_graph **out, const char *verb)
{
	if (!g)
		return HG_ERR_ARG;
	if (!out)
		return hg__fail(g->ctx, HG_ERR_ARG, "%s: the pointer for the result is NULL", verb);
	*out = NULL;
	if (g->rows != g->cols)
		return hg__fail(g->ctx, HG_ERR_SHAPE,
		                "%s: the graph is [%lld, %lld], expected a square one", verb,
		                (long long)g->rows, (long long)g->cols);
	return HG_OK;
}

/* Sets ptr [cols+1] to where each column begins in the transpose: the running sum of column
 * degrees. */
static void column_ptr(int64_t cols, int64_t m, const int32_t *col, int64_t *ptr)
{
	for (int64_t j = 0; j <= cols; j++)
		ptr[j] = 0;
	for (int64_t e = 0; e < m; e++)
		ptr[col[e] + 1]++;
	for (int64_t j = 0; j < cols; j++)
		ptr[j + 1] += ptr[j];
}

/* The transpose, by a counting sort: the rows of A, in ascending order, append their entries to the
 * columns. t->rowptr is used as the next free index of each column meanwhile. */
static void transpose_rows(const hg_graph *g, const struct hg__host_csr *a, struct draft *t)
{
	column_ptr(g->cols, g->m, a->col, t->rowptr);
	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t e = a->rowptr[i]; e < a->rowptr[i + 1]; e++) {
			const int64_t index = t->rowptr[a->col[e]]++;
			t->col[index] = (int32_t)i;
			if (t->weight)
				t->weight[index] = a->weight[e];
		}
	for (int64_t j = g->cols; j > 0; j--)
		t->rowptr[j] = t->rowptr[j - 1];
	t->rowptr[0] = 0;
}

/* Merges row i of A with row i of its transpose; both are ascending. */
static void merge_rows(const hg_graph *g, const struct hg__host_csr *a, const struct draft *t,
                       struct draft *d)
{
	for (int64_t i = 0; i < g->rows; i++) {
		int64_t p = a->rowptr[i], q = t->rowptr[i];
		d->rowptr[i] = d->m;
		while (p < a->rowptr[i + 1] || q < t->rowptr[i + 1]) {
			if (q == t->rowptr[i + 1] || (p < a->rowptr[i + 1] && a->col[p] <= t->col[q])) {
				append_merged(d, i, a->col[p], weight_at(a, p));
				p++;
			} else {
				append_merged(d, i, t->col[q], t->weight ? t->weight[q] : 1.0f);
				q++;
			}
		}
	}
	d->rowptr[g->rows] = d->m;
}

hg_status hg_graph_symmetrize(hg_graph *g, hg_graph **out)
{
	HG__TRY(check_square(g, out, "symmetrize"));
	const int weighted = hg_graph_is_weighted(g);
	struct hg__host_csr a;
	struct draft t = {0}, d = {0};
	HG__TRY(hg__graph_fetch(g, 1, 1, &a));
	hg_status status = draft_new(g->ctx, g->cols, g->m, weighted, &t);
	if (status == HG_OK)
		status = draft_new(g->ctx, g->rows, 2 * g->m, weighted, &d);
	if (status == HG_OK) {
		transpose_rows(g, &a, &t);
		merge_rows(g, &a, &t, &d);
		status = finish_draft(g, &d, out);
	}
	draft_free(g->ctx, &d);
	draft_free(g->ctx, &t);
	hg__graph_fetch_free(g, &a);
	return status;
}

/* Copies all rows and inserts the entry (i, i) in its sorted position where it is missing. */
static void loop_rows(const hg_graph *g, const struct hg__host_csr *a, struct draft *d)
{
	for (int64_t i = 0; i < g->rows; i++) {
		int64_t e = a->rowptr[i];
		const int64_t end = a->rowptr[i + 1];
		d->rowptr[i] = d->m;
		for (; e < end && a->col[e] < i; e++)
			append_entry(d, a->col[e], weight_at(a, e));
		if (e == end || a->col[e] != i)
			append_entry(d, (int32_t)i, 1.0f);
		for (; e < end; e++)
			append_entry(d, a->col[e], weight_at(a, e));
	}
	d->rowptr[g->rows] = d->m;
}

hg_status hg_graph_add_self_loops(hg_graph *g, hg_graph **out)
{
	HG__TRY(check_square(g, out, "add_self_loops"));
	struct hg__host_csr a;
	struct draft d = {0};
	HG__TRY(hg__graph_fetch(g, 1, 1, &a));
	hg_status status = draft_new(g->ctx, g->rows, g->m + g->rows, hg_graph_is_weighted(g), &d);
	if (status == HG_OK) {
		loop_rows(g, &a, &d);
		status = finish_draft(g, &d, out);
	}
	draft_free(g->ctx, &d);
	hg__graph_fetch_free(g, &a);
	return status;
}
