/* Positional encodings: columns for the features that say where in the graph a node is. */
#include "graph/positional.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The most columns of one encoding: a bound for the memory of Laplacian eigenvectors, which keep
 * three blocks of them. */
#define MOST 256

/* The pattern of A + A^T without its diagonal. */
static hg_status make_pattern(const hg_dataset *d, struct hg__sparse *pattern, char *message)
{
	struct hg__coo coo = {.rows = d->nodes, .cols = d->nodes};
	hg_status status = hg__coo_reserve(&coo, 2 * d->edges + 1, 0, message);
	for (int64_t i = 0; status == HG_OK && i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; status == HG_OK && e < d->rowptr[i + 1]; e++) {
			if (d->col[e] == i)
				continue;
			status = hg__coo_add(&coo, (int32_t)i, d->col[e], 1, message);
			if (status == HG_OK)
				status = hg__coo_add(&coo, d->col[e], (int32_t)i, 1, message);
		}
	if (status == HG_OK)
		status = hg__coo_to_sparse(&coo, HG__MERGE_MAX, pattern, message);
	hg__coo_free(&coo);
	return status;
}

/* ---- more columns ---- */

/* [X | more], in the type of X. */
static hg_status append_dense(hg_dataset *d, const float *more, int64_t columns, char *message)
{
	const int64_t old = d->feat ? d->features : 0, all = old + columns;
	const hg_dtype dtype = d->feat ? d->feat_dtype : HG_F32;
	const size_t size = hg_dtype_size(dtype);
	void *memory = NULL;
	if (d->nodes > INT64_MAX / 8 / all)
		return hg__data_fail(message, HG_ERR_NOMEM, "positional: %" PRId64 " columns", all);
	HG__TRY(hg__data_alloc(d->nodes * all, size, "features", &memory, message));
	for (int64_t i = 0; i < d->nodes; i++) {
		char *row = (char *)memory + (size_t)(i * all) * size;
		if (old)
			memcpy(row, (const char *)d->feat + (size_t)(i * old) * size, (size_t)old * size);
		for (int64_t c = 0; c < columns; c++) {
			const float x = more[i * columns + c];
			if (dtype == HG_F16)
				((hg_half *)(void *)row)[old + c] = hg_half_from_float(x);
			else
				((float *)(void *)row)[old + c] = x;
		}
	}
	free(d->feat);
	d->feat = memory;
	d->feat_dtype = dtype;
	d->features = all;
	return HG_OK;
}

struct stored {
	int64_t *rowptr;
	int32_t *col;
	float *value;
};

static hg_status stored_alloc(const hg_dataset *d, int64_t entries, struct stored *s, char *message)
{
	*s = (struct stored){0};
	HG__TRY(
	    hg__data_alloc(d->nodes + 1, sizeof *s->rowptr, "features", (void **)&s->rowptr, message));
	HG__TRY(hg__data_alloc(entries, sizeof *s->col, "features", (void **)&s->col, message));
	return hg__data_alloc(entries, sizeof *s->value, "features", (void **)&s->value, message);
}

static void stored_fill(const hg_dataset *d, const float *more, int64_t columns, struct stored *s)
{
	int64_t at = 0;
	for (int64_t i = 0; i < d->nodes; i++) {
		s->rowptr[i] = at;
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++, at++) {
			s->col[at] = d->feat_col[e];
			s->value[at] = d->feat_value ? d->feat_value[e] : 1.0f;
		}
		for (int64_t c = 0; c < columns; c++)
			if (more[i * columns + c] != 0.0f) {
				s->col[at] = (int32_t)(d->features + c);
				s->value[at++] = more[i * columns + c];
			}
	}
	s->rowptr[d->nodes] = at;
}

/* The same for sparse features, of which only the entries that are not 0 are stored. */
static hg_status append_sparse(hg_dataset *d, const float *more, int64_t columns, char *message)
{
	int64_t entries = d->feat_rowptr[d->nodes];
	struct stored s;
	if (d->features > INT32_MAX - columns)
		return hg__data_fail(message, HG_ERR_RANGE,
		                     "positional: the dataset has %" PRId64 " features, and %d is the most",
		                     d->features, INT32_MAX);
	for (int64_t k = 0; k < d->nodes * columns; k++)
		entries += more[k] != 0.0f;
	const hg_status status = stored_alloc(d, entries, &s, message);
	if (status == HG_OK) {
		stored_fill(d, more, columns, &s);
		const struct stored old = {d->feat_rowptr, d->feat_col, d->feat_value};
		d->feat_rowptr = s.rowptr;
		d->feat_col = s.col;
		d->feat_value = s.value;
		d->features += columns;
		s = old;
	}
	free(s.rowptr);
	free(s.col);
	free(s.value);
	return status;
}

/* ---- the transform ---- */

/* More columns, which were not standardised: mean 0, deviation 1. */
static hg_status extend_standardization(hg_dataset *d, int64_t columns, char *message)
{
	const int64_t all = d->features + columns;
	if (!d->feat_mean)
		return HG_OK;
	HG__TRY(hg__data_grow((void **)&d->feat_mean, all, sizeof *d->feat_mean, "means of features",
	                      message));
	HG__TRY(hg__data_grow((void **)&d->feat_deviation, all, sizeof *d->feat_deviation,
	                      "deviations of features", message));
	for (int64_t j = d->features; j < all; j++) {
		d->feat_mean[j] = 0.0;
		d->feat_deviation[j] = 1.0;
	}
	return HG_OK;
}

static hg_status encode(hg_dataset *d, hg_positional kind, int64_t columns,
                        const hg_progress *progress, float *more, char *message)
{
	struct hg__sparse pattern = {0};
	HG__TRY(make_pattern(d, &pattern, message));
	const hg_status status = (kind == HG_POSITIONAL_LAPLACIAN
	                              ? hg__laplacian_vectors
	                              : hg__random_walks)(&pattern, columns, progress, more, message);
	hg__sparse_free(&pattern);
	HG__TRY(status);
	/* before the features: where these fail, the arrays are longer than they need be */
	HG__TRY(extend_standardization(d, columns, message));
	return d->feat_rowptr ? append_sparse(d, more, columns, message)
	                      : append_dense(d, more, columns, message);
}

hg_status hg_dataset_positional(hg_dataset *d, hg_positional kind, int64_t columns,
                                const hg_progress *progress, char *message)
{
	float *more = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "positional: dataset is NULL");
	if (kind != HG_POSITIONAL_RANDOM_WALK && kind != HG_POSITIONAL_LAPLACIAN)
		return hg__data_fail(message, HG_ERR_ARG, "positional: kind %d is unknown", (int)kind);
	if (columns < 1 || columns > MOST)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "positional: %" PRId64 " columns, expected 1 to %d", columns, MOST);
	HG__TRY(hg__data_alloc(d->nodes * columns, sizeof *more, "positional encodings", (void **)&more,
	                       message));
	memset(more, 0, (size_t)(d->nodes * columns) * sizeof *more);
	const hg_status status = encode(d, kind, columns, progress, more, message);
	free(more);
	if (status == HG_OK)
		d->feat_amax = hg__data_amax(d);
	return status;
}
