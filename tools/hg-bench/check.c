#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct check check_new(void)
{
	return (struct check){0, 0, 0, 0, -1, -1, 0};
}

/* A number that is not finite is wrong by any bound, unless the bound is infinite: then nothing is
 * guaranteed. */
void check_number(struct check *c, int64_t row, int64_t col, double found, double exact,
                  double bound)
{
	const double error = fabs(found - exact);
	double ratio = error == 0 || isinf(bound) ? 0 : bound > 0 ? error / bound : (double)INFINITY;
	if (isnan(ratio))
		ratio = (double)INFINITY;
	c->compared++;
	if (ratio > c->ratio)
		*c = (struct check){ratio, found, exact, bound, row, col, c->compared};
}

void check_report(struct bench *b, const struct check *c, const char *op, const char *variant)
{
	if (c->ratio <= 1)
		return;
	b->report.wrong++;
	fprintf(stderr,
	        "hg-bench: WRONG RESULT: %s, %s, on %s: element [%lld, %lld] is %.9g, expected %.9g +- "
	        "%.3g (err/bound %.3g)\n",
	        op, variant, b->graph_name, (long long)c->row, (long long)c->col, c->found, c->exact,
	        c->bound, c->ratio);
}

int64_t check_rows(const struct bench *b, int64_t rows)
{
	(void)b;
	return rows < CHECK_ROWS ? rows : CHECK_ROWS;
}

int64_t check_row(const struct bench *b, int64_t rows, int64_t k)
{
	if (rows <= CHECK_ROWS)
		return k;
	return k == 0 && b->longest < rows
	           ? b->longest
	           : (int64_t)edge_below((uint64_t)rows,
	                                 edge_uniform((uint64_t)b->options.seed + 99, (uint64_t)k));
}

hg_status copy_rows(struct bench *b, struct hg__mat device, int64_t first, int64_t count,
                    struct copy *copy)
{
	const int64_t size = (int64_t)hg_dtype_size(device.dtype), bytes = count * device.ld * size;
	if (bytes > copy->capacity) {
		void *grown = realloc(copy->mat.data, (size_t)bytes);
		if (!grown)
			return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld rows of a result",
			                (long long)count);
		copy->mat.data = grown;
		copy->capacity = bytes;
	}
	void *host = copy->mat.data;
	copy->mat = device;
	copy->mat.data = host;
	copy->mat.rows = count;
	return bytes ? b->ctx->backend->copy_out(b->ctx, host,
	                                         (const char *)device.data + first * device.ld * size,
	                                         (size_t)bytes)
	             : HG_OK;
}

hg_status copy_mat(struct bench *b, struct hg__mat device, struct copy *copy)
{
	return copy_rows(b, device, 0, device.rows, copy);
}

void copy_free(struct copy *copy)
{
	free(copy->mat.data);
	*copy = (struct copy){.capacity = 0};
}

double copy_at(const struct copy *copy, int64_t row, int64_t col)
{
	const int64_t at = row * copy->mat.ld + col;
	return copy->mat.dtype == HG_F16
	           ? (double)hg_half_to_float(((const hg_half *)copy->mat.data)[at])
	           : (double)((const float *)copy->mat.data)[at];
}

hg_status row_of(struct bench *b, const struct hg__csr *csr, const int64_t *rowptr, int64_t index,
                 const float *device_weight, struct row *row)
{
	const struct hg__backend *backend = b->ctx->backend;
	row->index = index;
	row->begin = rowptr[index];
	row->degree = rowptr[index + 1] - row->begin;
	if (row->degree > row->capacity) {
		row_free(row);
		row->col = calloc((size_t)row->degree, sizeof *row->col);
		row->weight = calloc((size_t)row->degree, sizeof *row->weight);
		if (!row->col || !row->weight)
			return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld edges",
			                (long long)row->degree);
		row->capacity = row->degree;
	}
	if (!row->degree)
		return HG_OK;
	HG__TRY(backend->copy_out(b->ctx, row->col, csr->col + row->begin,
	                          (size_t)row->degree * sizeof *row->col));
	for (int64_t e = 0; !device_weight && e < row->degree; e++)
		row->weight[e] = 1.0f;
	return device_weight ? backend->copy_out(b->ctx, row->weight, device_weight + row->begin,
	                                         (size_t)row->degree * sizeof *row->weight)
	                     : HG_OK;
}

hg_status row_get(struct bench *b, int64_t index, const float *device_weight, struct row *row)
{
	return row_of(b, &b->csr, b->rowptr, index, device_weight, row);
}

void row_free(struct row *row)
{
	free(row->col);
	free(row->weight);
	row->col = NULL;
	row->weight = NULL;
	row->capacity = 0;
}

hg_status spoil(struct bench *b, struct hg__mat mat, int64_t row)
{
	struct copy copy = {.capacity = 0};
	if (!b->options.spoil || !mat.rows || !mat.cols)
		return HG_OK;
	hg_status status = copy_rows(b, mat, row, 1, &copy);
	if (status == HG_OK) {
		const double other = copy_at(&copy, 0, 0) * 1.01 + 0.5;
		if (mat.dtype == HG_F16)
			*(hg_half *)copy.mat.data = hg_half_from_double(other);
		else
			*(float *)copy.mat.data = (float)other;
		const size_t size = hg_dtype_size(mat.dtype);
		status = b->ctx->backend->copy_in(b->ctx, (char *)mat.data + (size_t)(row * mat.ld) * size,
		                                  copy.mat.data, size);
	}
	copy_free(&copy);
	return status;
}
