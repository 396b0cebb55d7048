/* A graph whose edges have no direction, from one that has. */
#include <stdlib.h>
#include <string.h>

#include "core/order.h"

hg_status hg__order_alloc(const struct hg__order_work *work, int64_t count, size_t size, struct hg__buffer *memory)
{
	*memory = (struct hg__buffer){0};
	if (count == 0)
		return HG_OK;
	if (work->ctx)
		return hg__buffer_host(work->ctx, count, size, "order", memory);
	memory->data = calloc((size_t)count, size);
	memory->bytes = memory->data ? (size_t)count * size : 0;
	return memory->data ? HG_OK : HG_ERR_NOMEM;
}

void hg__order_free(const struct hg__order_work *work, struct hg__buffer *memory)
{
	if (work->ctx)
		hg__buffer_free(work->ctx, memory);
	else
		free(memory->data);
	*memory = (struct hg__buffer){0};
}

hg_status hg__order_step(const struct hg__order_work *work, const char *what, int64_t done, int64_t total)
{
	if (!work->progress || !work->progress->step || !work->progress->step(work->progress->user, what, done, total))
		return HG_OK;
	return hg__fail(work->ctx, HG_ERR_STATE, "%s: stopped on request", what);
}

/* ptr [n+1] <- where the out-edges of each node begin; id <- their destinations, ascending: a counting sort. */
static void transpose(int64_t n, const int64_t *rowptr, const int32_t *col, int64_t *ptr, int32_t *id)
{
	const int64_t m = rowptr[n];
	for (int64_t e = 0; e < m; e++)
		ptr[col[e] + 1]++;
	for (int64_t j = 0; j < n; j++)
		ptr[j + 1] += ptr[j];
	for (int64_t i = 0; i < n; i++)
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
			if (e + 2 * HG__AHEAD < m) {
				hg__order_prefetch(&ptr[col[e + 2 * HG__AHEAD]]);
				hg__order_prefetch(&id[ptr[col[e + HG__AHEAD]]]);
			}
			id[ptr[col[e]]++] = (int32_t)i;
		}
	memmove(ptr + 1, ptr, (size_t)n * sizeof *ptr); /* each begin had moved to its end */
	ptr[0] = 0;
}

/* Is the transpose the same again? (Where rows are not sorted the answer may be a false no, which costs time and nothing else.) */
static int same_pattern(int64_t n, const int64_t *rowptr, const int32_t *col, const int64_t *ptr, const int32_t *id)
{
	return memcmp(rowptr, ptr, (size_t)(n + 1) * sizeof *ptr) == 0 && (rowptr[n] == 0 || memcmp(col, id, (size_t)rowptr[n] * sizeof *id) == 0);
}

hg_status hg__mesh_make(const struct hg__order_work *work, int64_t n, const int64_t *rowptr, const int32_t *col, struct hg__mesh *mesh)
{
	*mesh = (struct hg__mesh){.n = n, .sides = 1, .side = {{rowptr, col, NULL}, {NULL, NULL, NULL}}};
	hg_status status = hg__order_alloc(work, n + 1, sizeof(int64_t), &mesh->ptr_memory);
	if (status == HG_OK)
		status = hg__order_alloc(work, rowptr[n], sizeof(int32_t), &mesh->id_memory);
	if (status == HG_OK) {
		transpose(n, rowptr, col, mesh->ptr_memory.data, mesh->id_memory.data);
		if (!same_pattern(n, rowptr, col, mesh->ptr_memory.data, mesh->id_memory.data))
			mesh->side[mesh->sides++] = (struct hg__side){mesh->ptr_memory.data, mesh->id_memory.data, NULL};
	}
	if (status < 0 || mesh->sides == 1) {
		hg__order_free(work, &mesh->ptr_memory);
		hg__order_free(work, &mesh->id_memory);
	}
	return status;
}

void hg__mesh_free(const struct hg__order_work *work, struct hg__mesh *mesh)
{
	hg__order_free(work, &mesh->ptr_memory);
	hg__order_free(work, &mesh->id_memory);
	hg__order_free(work, &mesh->weight_memory);
}
