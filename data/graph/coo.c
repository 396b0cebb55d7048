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

void hg__coo_free(struct hg__coo *coo)
{
	free(coo->row);
	free(coo->col);
	free(coo->value);
	*coo = (struct hg__coo){0};
}

void hg__sparse_free(struct hg__sparse *m)
{
	free(m->rowptr);
	free(m->col);
	free(m->value);
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

static hg_status sparse_alloc(struct hg__sparse *m, int64_t rows, int64_t cols, int64_t entries,
                              int values, char *message)
{
	*m = (struct hg__sparse){rows, cols, entries, NULL, NULL, NULL};
	hg_status status =
	    hg__data_alloc(rows + 1, sizeof *m->rowptr, "row pointers", (void **)&m->rowptr, message);
	if (status == HG_OK)
		status =
		    hg__data_alloc(entries, sizeof *m->col, "column indices", (void **)&m->col, message);
	if (status == HG_OK && values)
		status =
		    hg__data_alloc(entries, sizeof *m->value, "edge weights", (void **)&m->value, message);
	if (status < 0)
		hg__sparse_free(m);
	return status;
}

/* Stable counting sort by `key` in [0, keys): out.rowptr delimits the bucket of each key; out.col
 * and out.value hold `other` and `value` in the sorted order. */
static hg_status bucket(int64_t m, int64_t keys, int64_t others, const int32_t *key,
                        const int32_t *other, const float *value, struct hg__sparse *out,
                        char *message)
{
	HG__TRY(sparse_alloc(out, keys, others, m, value != NULL, message));
	int64_t *next = out->rowptr;
	memset(next, 0, (size_t)(keys + 1) * sizeof *next);
	for (int64_t e = 0; e < m; e++)
		next[key[e]]++;
	for (int64_t k = 0, sum = 0; k <= keys; k++) { /* next[k] = begin of bucket k */
		const int64_t count = next[k];
		next[k] = sum;
		sum += count;
	}
	for (int64_t e = 0; e < m; e++) {
		const int64_t position = next[key[e]]++;
		out->col[position] = other[e];
		if (value)
			out->value[position] = value[e];
	}
	/* next[k] now is the end of bucket k: shift the pointers back to the begins */
	memmove(next + 1, next, (size_t)keys * sizeof *next);
	next[0] = 0;
	return HG_OK;
}

/* The transpose. Its rows come out sorted, whatever the order of the columns in `a`. */
static hg_status transpose(const struct hg__sparse *a, struct hg__sparse *out, char *message)
{
	int32_t *row = NULL;
	HG__TRY(hg__data_alloc(a->m, sizeof *row, "row indices", (void **)&row, message));
	for (int64_t i = 0; i < a->rows; i++)
		for (int64_t e = a->rowptr[i]; e < a->rowptr[i + 1]; e++)
			row[e] = (int32_t)i;
	const hg_status status = bucket(a->m, a->cols, a->rows, a->col, row, a->value, out, message);
	free(row);
	return status;
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

/* Bucket by column, then (stably) by row: two counting sorts, O(m + rows + cols). */
hg_status hg__coo_to_sparse(const struct hg__coo *coo, enum hg__merge merge, struct hg__sparse *out,
                            char *message)
{
	struct hg__sparse by_column = {0};
	*out = (struct hg__sparse){0};
	HG__TRY(
	    bucket(coo->m, coo->cols, coo->rows, coo->col, coo->row, coo->value, &by_column, message));
	const hg_status status = transpose(&by_column, out, message);
	hg__sparse_free(&by_column);
	if (status == HG_OK)
		merge_duplicates(out, merge);
	return status;
}

struct entry {
	int32_t col;
	float value;
	int64_t
	    position; /* breaks ties by the input order, so that sums are the same on every machine */
};

static int by_column(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->col != y->col)
		return x->col < y->col ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
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
	for (int64_t k = 0; k < count; k++)
		scratch[k] = (struct entry){m->col[begin + k], m->value ? m->value[begin + k] : 1, k};
	qsort(scratch, (size_t)count, sizeof *scratch, by_column);
	for (int64_t k = 0; k < count; k++) {
		m->col[begin + k] = scratch[k].col;
		if (m->value)
			m->value[begin + k] = scratch[k].value;
	}
}

/* Sorts row by row, so that the cost does not depend on the declared number of columns, which a
 * damaged file can make huge. */
hg_status hg__sparse_sort(struct hg__sparse *m, char *message)
{
	int64_t longest = 0, unsorted = 0;
	for (int64_t i = 0; i < m->rows; i++) {
		const int64_t length = m->rowptr[i + 1] - m->rowptr[i];
		longest = length > longest ? length : longest;
		unsorted += !is_sorted(m, i);
	}
	if (unsorted == 0)
		return HG_OK;
	struct entry *scratch = NULL;
	HG__TRY(hg__data_alloc(longest, sizeof *scratch, "sorting rows", (void **)&scratch, message));
	for (int64_t i = 0; i < m->rows; i++)
		if (!is_sorted(m, i))
			sort_row(m, i, scratch);
	free(scratch);
	merge_duplicates(m, HG__MERGE_SUM);
	return HG_OK;
}
