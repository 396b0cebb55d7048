#include <math.h>

#include "doctor/sum_of.h"

/* What the sums of sum_graph.c and sum_rows.c are put together with: room for addends, elements and
 * rows of a graph on the host. */

hg_status hg__sum_room(struct hg__sum *sum, int64_t count)
{
	void *memory = NULL;
	sum->bytes = (size_t)count * sizeof *sum->addend;
	HG__TRY(
	    hg__host_alloc(sum->ctx, (size_t)count, sizeof *sum->addend, "doctor: addends", &memory));
	sum->addend = memory;
	sum->count = count;
	sum->known = 1;
	return HG_OK;
}

void hg__sum_total(struct hg__sum *sum)
{
	sum->exact = sum->mass = sum->alone = 0.0;
	for (int64_t k = 0; k < sum->count; k++) {
		const double value = sum->addend[k].factor * sum->addend[k].operand;
		sum->exact += value;
		sum->mass += fabs(value);
		sum->alone += sum->addend[k].is == HG_TERM_ADDEND ? value : 0.0;
	}
}

hg_status hg__sum_append(struct hg__sum *sum, const struct hg__addend *addend)
{
	struct hg__sum longer = *sum;
	HG__TRY(hg__sum_room(&longer, sum->count + 1));
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

/* A copy of 2 to 8 bytes from a GPU takes some 10 us, a megabyte some 100 us: from a thousand
 * elements on a matrix is fetched as a whole. (Derived, not measured.) On a CPU elements are read
 * where they are. */
#define ONE_BY_ONE 1024

hg_status hg__picker_open(hg_context *ctx, const struct hg__mat *mat, int64_t elements,
                          struct hg__picker *picker)
{
	*picker = (struct hg__picker){.ctx = ctx, .mat = mat};
	return ctx->threads || elements <= ONE_BY_ONE
	           ? HG_OK
	           : hg__fetch_rows(ctx, mat, 0, mat->rows, &picker->all);
}

hg_status hg__pick(const struct hg__picker *picker, int64_t row, int64_t col, double *value)
{
	if (!picker->all.buffer.data)
		return hg__fetch_element(picker->ctx, picker->mat, row, col, value);
	*value = hg__fetched_at(&picker->all, row, col);
	return HG_OK;
}

void hg__picker_close(struct hg__picker *picker)
{
	if (picker->ctx)
		hg__fetched_free(picker->ctx, &picker->all);
	*picker = (struct hg__picker){0};
}

static hg_status fetch_list(hg_context *ctx, const void *from, int64_t first, int64_t count,
                            size_t size, struct hg__buffer *list)
{
	HG__TRY(hg__buffer_host(ctx, count, size, "doctor: entries of a row", list));
	return list->bytes
	           ? ctx->backend->copy_out(ctx, list->data, (const char *)from + (size_t)first * size,
	                                    list->bytes)
	           : HG_OK;
}

hg_status hg__entries_open(hg_context *ctx, const struct hg__csr *csr, int64_t row,
                           struct hg__entries *entries)
{
	int64_t ptr[2];
	*entries = (struct hg__entries){0};
	HG__TRY(ctx->backend->copy_out(ctx, ptr, csr->rowptr + row, sizeof ptr));
	entries->begin = ptr[0];
	entries->count = ptr[1] - ptr[0];
	hg_status status =
	    fetch_list(ctx, csr->col, ptr[0], entries->count, sizeof(int32_t), &entries->col);
	if (status >= 0 && csr->edge)
		status =
		    fetch_list(ctx, csr->edge, ptr[0], entries->count, sizeof(uint32_t), &entries->edge);
	if (status < 0)
		hg__entries_close(ctx, entries);
	return status;
}

void hg__entries_close(hg_context *ctx, struct hg__entries *entries)
{
	hg__buffer_free(ctx, &entries->edge);
	hg__buffer_free(ctx, &entries->col);
	*entries = (struct hg__entries){0};
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
