#include <math.h>

#include "doctor/sum_terms.h"

hg_status hg__sum_alloc(struct hg__sum *sum, int64_t count)
{
	void *memory = NULL;
	sum->bytes = (size_t)count * sizeof *sum->addend;
	HG__TRY(
	    hg__host_alloc(sum->ctx, (size_t)count, sizeof *sum->addend, "doctor: addends", &memory));
	sum->addend = memory;
	sum->count = count;
	sum->enumerated = 1;
	return HG_OK;
}

void hg__sum_total(struct hg__sum *sum)
{
	sum->exact = sum->abs_sum = sum->before_epilogue = 0.0;
	for (int64_t k = 0; k < sum->count; k++) {
		const double value = sum->addend[k].factor * sum->addend[k].operand;
		sum->exact += value;
		sum->abs_sum += fabs(value);
		sum->before_epilogue += sum->addend[k].is == HG_TERM_ADDEND ? value : 0.0;
	}
}

hg_status hg__sum_append(struct hg__sum *sum, const struct hg__addend *addend)
{
	struct hg__sum longer = *sum;
	HG__TRY(hg__sum_alloc(&longer, sum->count + 1));
	for (int64_t k = 0; k < sum->count; k++)
		longer.addend[k] = sum->addend[k];
	longer.addend[sum->count] = *addend;
	hg__host_free(sum->ctx, sum->addend, sum->bytes);
	*sum = longer;
	hg__sum_total(sum);
	return HG_OK;
}

void hg__sum_close(struct hg__sum *sum)
{
	if (sum->ctx)
		hg__host_free(sum->ctx, sum->addend, sum->bytes);
	*sum = (struct hg__sum){0};
}

/* A copy of 2 to 8 bytes from a GPU takes about 10 us, a copy of a megabyte about 100 us, so more
 * than a thousand elements are cheaper as one copy of the whole matrix (derived, not measured). On
 * a CPU elements are read where they are. */
#define MOST_SINGLE_COPIES 1024

hg_status hg__reader_open(hg_context *ctx, const struct hg__mat *mat, int64_t elements,
                          struct hg__reader *reader)
{
	*reader = (struct hg__reader){.ctx = ctx, .mat = mat};
	return hg_context_device(ctx) == HG_DEVICE_CPU || elements <= MOST_SINGLE_COPIES
	           ? HG_OK
	           : hg__fetch_rows(ctx, mat, 0, mat->rows, &reader->copy);
}

hg_status hg__read_element(const struct hg__reader *reader, int64_t row, int64_t col, double *value)
{
	if (!reader->copy.buffer.data)
		return hg__fetch_element(reader->ctx, reader->mat, row, col, value);
	*value = hg__fetched_at(&reader->copy, row, col);
	return HG_OK;
}

void hg__reader_close(struct hg__reader *reader)
{
	if (reader->ctx)
		hg__fetched_free(reader->ctx, &reader->copy);
	*reader = (struct hg__reader){0};
}

static hg_status fetch_list(hg_context *ctx, const void *from, int64_t first, int64_t count,
                            size_t size, struct hg__buffer *list)
{
	HG__TRY(hg__buffer_host(ctx, count, size, "doctor: edges of a row", list));
	return list->bytes
	           ? ctx->backend->copy_out(ctx, list->data, (const char *)from + (size_t)first * size,
	                                    list->bytes)
	           : HG_OK;
}

hg_status hg__row_edges_open(hg_context *ctx, const struct hg__csr *csr, int64_t row,
                             struct hg__row_edges *edges)
{
	int64_t ptr[2];
	*edges = (struct hg__row_edges){0};
	HG__TRY(ctx->backend->copy_out(ctx, ptr, csr->rowptr + row, sizeof ptr));
	edges->begin = ptr[0];
	edges->count = ptr[1] - ptr[0];
	hg_status status =
	    fetch_list(ctx, csr->col, ptr[0], edges->count, sizeof(int32_t), &edges->col);
	if (status >= 0 && csr->edge)
		status =
		    fetch_list(ctx, csr->edge, ptr[0], edges->count, sizeof(uint32_t), &edges->value_row);
	if (status < 0)
		hg__row_edges_close(ctx, edges);
	return status;
}

void hg__row_edges_close(hg_context *ctx, struct hg__row_edges *edges)
{
	hg__buffer_free(ctx, &edges->value_row);
	hg__buffer_free(ctx, &edges->col);
	*edges = (struct hg__row_edges){0};
}

hg_status hg__csr_ends(hg_context *ctx, const struct hg__csr *csr, int64_t e, int64_t *row,
                       int64_t *col)
{
	int32_t neighbour = 0;
	int64_t low = 0, high = csr->rows; /* rowptr[low] <= e < rowptr[high] */
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		int64_t ptr = 0;
		HG__TRY(ctx->backend->copy_out(ctx, &ptr, csr->rowptr + middle, sizeof ptr));
		if (ptr <= e)
			low = middle;
		else
			high = middle;
	}
	HG__TRY(ctx->backend->copy_out(ctx, &neighbour, csr->col + e, sizeof neighbour));
	*row = low;
	*col = neighbour;
	return HG_OK;
}
