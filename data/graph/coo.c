/* Convert coordinate lists to compressed rows. */
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"

hg_status hg__coo_reserve(struct hg__coo *coo, int64_t capacity, int with_values, char *message)
{
	HG__TRY(
	    hg__data_grow((void **)&coo->row, capacity, sizeof *coo->row, "the edge list", message));
	HG__TRY(
	    hg__data_grow((void **)&coo->col, capacity, sizeof *coo->col, "the edge list", message));
	if (with_values)
		HG__TRY(hg__data_grow((void **)&coo->value, capacity, sizeof *coo->value,
		                      "the edge weights", message));
	coo->capacity = capacity;
	return HG_OK;
}

hg_status hg__coo_add(struct hg__coo *coo, int32_t row, int32_t col, float value, char *message)
{
	if (coo->m == coo->capacity)
		HG__TRY(hg__coo_reserve(coo, coo->capacity + coo->capacity / 2 + 1024, coo->value != NULL,
		                        message));
	coo->row[coo->m] = row;
	coo->col[coo->m] = col;
	if (coo->value)
		coo->value[coo->m] = value;
	coo->m++;
	return HG_OK;
}

hg_status hg__coo_split_pairs(struct hg__coo *coo, int64_t m, int fortran, char *message)
{
	int32_t *pair = coo->col;
	HG__TRY(hg__data_alloc(m, sizeof *coo->row, "the edge list", (void **)&coo->row, message));
	for (int64_t k = 0; k < m; k++) {
		coo->row[k] = fortran ? pair[2 * k + 1] : pair[m + k];
		pair[k] = fortran ? pair[2 * k] : pair[k];
	}
	/* a smaller block, if there is one */
	void *less = m > 0 ? realloc(pair, (size_t)m * sizeof *pair) : pair;
	coo->col = less ? less : pair;
	coo->m = coo->capacity = m;
	return HG_OK;
}

int hg__nodes_plausible(int64_t nodes, int64_t edges)
{
	return nodes <= INT32_MAX && nodes <= 1000000 + 1000 * edges;
}

void hg__coo_free(struct hg__coo *coo)
{
	free(coo->row);
	free(coo->col);
	free(coo->value);
	free(coo->origin);
	*coo = (struct hg__coo){0};
}

void hg__sparse_free(struct hg__sparse *m)
{
	free(m->rowptr);
	free(m->col);
	free(m->value);
	free(m->origin);
	*m = (struct hg__sparse){0};
}

void hg__sparse_drop_ones(struct hg__sparse *m)
{
	for (int64_t e = 0; m->value && e < m->m; e++)
		if (m->value[e] != 1)
			return;
	free(m->value);
	m->value = NULL;
}

/* Memory for all entries of a list. */
static hg_status sparse_alloc(struct hg__sparse *m, const struct hg__coo *coo, char *message)
{
	*m = (struct hg__sparse){.rows = coo->rows, .cols = coo->cols, .m = coo->m, .listed = coo->m};
	hg_status status = hg__data_alloc(m->rows + 1, sizeof *m->rowptr, "row pointers",
	                                  (void **)&m->rowptr, message);
	if (status == HG_OK)
		status = hg__data_alloc(m->m, sizeof *m->col, "column indices", (void **)&m->col, message);
	if (status == HG_OK && coo->value)
		status =
		    hg__data_alloc(m->m, sizeof *m->value, "edge weights", (void **)&m->value, message);
	if (status == HG_OK && coo->keep_origin)
		status = hg__data_alloc(m->m, sizeof *m->origin, "the order of the edges",
		                        (void **)&m->origin, message);
	if (status < 0)
		hg__sparse_free(m);
	return status;
}

/* Stable counting sort by row; within a row the entries keep their order. */
static hg_status bucket_rows(const struct hg__coo *coo, struct hg__sparse *out, char *message)
{
	HG__TRY(sparse_alloc(out, coo, message));
	int64_t *next = out->rowptr;
	memset(next, 0, (size_t)(coo->rows + 1) * sizeof *next);
	for (int64_t e = 0; e < coo->m; e++)
		next[coo->row[e]]++;
	for (int64_t i = 0, sum = 0; i <= coo->rows; i++) { /* next[i] = begin of row i */
		const int64_t count = next[i];
		next[i] = sum;
		sum += count;
	}
	for (int64_t e = 0; e < coo->m; e++) {
		const int64_t position = next[coo->row[e]]++;
		out->col[position] = coo->col[e];
		if (coo->value)
			out->value[position] = coo->value[e];
		if (coo->keep_origin)
			out->origin[position] = e;
	}
	/* next[i] now is the end of row i: shift the pointers back to the begins */
	memmove(next + 1, next, (size_t)coo->rows * sizeof *next);
	next[0] = 0;
	return HG_OK;
}

/* Merge neighbouring entries with the same column, in place. */
static void merge_duplicates(struct hg__sparse *m, enum hg__merge merge)
{
	int64_t kept = 0, begin = 0;
	for (int64_t i = 0; i < m->rows; i++) {
		const int64_t end = m->rowptr[i + 1], first = kept;
		for (int64_t e = begin; e < end; e++) {
			const int duplicate = kept > first && m->col[kept - 1] == m->col[e];
			if (!duplicate)
				m->col[kept++] = m->col[e];
			else if (m->origin)
				m->origin[e] = ~m->origin[e];
			if (m->value && !duplicate)
				m->value[kept - 1] = m->value[e];
			else if (m->value && merge == HG__MERGE_SUM)
				m->value[kept - 1] += m->value[e];
			else if (m->value && m->value[e] > m->value[kept - 1])
				m->value[kept - 1] = m->value[e];
		}
		m->rowptr[i + 1] = kept;
		begin = end;
	}
	m->m = kept;
}

struct entry {
	int32_t col;
	float value;
	int64_t
	    position; /* breaks ties by the input order, so that sums are the same on every machine */
	int64_t origin;
};

static int by_column(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->col != y->col)
		return x->col < y->col ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

static int ascending(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

static int is_sorted(const struct hg__sparse *m, int64_t row)
{
	for (int64_t e = m->rowptr[row] + 1; e < m->rowptr[row + 1]; e++)
		if (m->col[e] <= m->col[e - 1])
			return 0;
	return 1;
}

static void sort_row(struct hg__sparse *m, int64_t row, struct entry *scratch)
{
	const int64_t begin = m->rowptr[row], count = m->rowptr[row + 1] - begin;
	if (!m->value && !m->origin) {
		qsort(m->col + begin, (size_t)count, sizeof *m->col, ascending);
		return;
	}
	for (int64_t k = 0; k < count; k++)
		scratch[k] = (struct entry){m->col[begin + k], m->value ? m->value[begin + k] : 1.0f, k,
		                            m->origin ? m->origin[begin + k] : 0};
	qsort(scratch, (size_t)count, sizeof *scratch, by_column);
	for (int64_t k = 0; k < count; k++) {
		m->col[begin + k] = scratch[k].col;
		if (m->value)
			m->value[begin + k] = scratch[k].value;
		if (m->origin)
			m->origin[begin + k] = scratch[k].origin;
	}
}

/* Sorts row by row, so that the cost does not depend on the declared number of columns, which a
 * damaged file can make huge, and so that no second copy of the matrix is needed. */
static hg_status sort_and_merge(struct hg__sparse *m, enum hg__merge merge, char *message)
{
	struct entry *scratch = NULL;
	int64_t longest = 0;
	for (int64_t i = 0; i < m->rows; i++) {
		const int64_t length = m->rowptr[i + 1] - m->rowptr[i];
		if (length > longest && !is_sorted(m, i))
			longest = length;
	}
	if (longest == 0)
		return HG_OK;
	if (m->value || m->origin)
		HG__TRY(
		    hg__data_alloc(longest, sizeof *scratch, "sorting rows", (void **)&scratch, message));
	for (int64_t i = 0; i < m->rows; i++)
		if (!is_sorted(m, i))
			sort_row(m, i, scratch);
	free(scratch);
	merge_duplicates(m, merge);
	return HG_OK;
}

hg_status hg__coo_to_graph(struct hg__coo *coo, enum hg__merge merge, hg_dataset *d, char *message)
{
	struct hg__sparse m = {0};
	HG__TRY(hg__coo_to_sparse(coo, merge, &m, message));
	hg__sparse_drop_ones(&m);
	d->nodes = m.rows;
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	d->weight = m.value;
	coo->origin = m.origin;
	return HG_OK;
}

hg_status hg__sparse_sort(struct hg__sparse *m, char *message)
{
	return sort_and_merge(m, HG__MERGE_SUM, message);
}

hg_status hg__coo_to_sparse(struct hg__coo *coo, enum hg__merge merge, struct hg__sparse *out,
                            char *message)
{
	*out = (struct hg__sparse){0};
	hg_status status = bucket_rows(coo, out, message);
	const struct hg__coo counts = {.rows = coo->rows, .cols = coo->cols, .m = coo->m};
	hg__coo_free(coo);
	*coo = counts;
	if (status == HG_OK)
		status = sort_and_merge(out, merge, message);
	if (status < 0)
		hg__sparse_free(out);
	return status;
}
