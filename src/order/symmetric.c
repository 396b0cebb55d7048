/* Builds the symmetric graph of a directed one. */
#include <string.h>

#include "order/order.h"

/* The transpose, by a counting sort: ptr [n+1] receives where the out-edges of each node begin, id
 * their destinations, ascending. */
static void build_transpose(int64_t n, const int64_t *rowptr, const int32_t *col, int64_t *ptr,
                            int32_t *id)
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
	memmove(ptr + 1, ptr, (size_t)n * sizeof *ptr); /* each beginning had advanced to its end */
	ptr[0] = 0;
}

/* Whether the transpose has the same pattern. Where rows are not sorted the answer may be a wrong
 * 0, which costs time and nothing else. */
static int same_pattern(int64_t n, const int64_t *rowptr, const int32_t *col, const int64_t *ptr,
                        const int32_t *id)
{
	return memcmp(rowptr, ptr, (size_t)(n + 1) * sizeof *ptr) == 0 &&
	       (rowptr[n] == 0 || memcmp(col, id, (size_t)rowptr[n] * sizeof *id) == 0);
}

hg_status hg__symmetric_make(const struct hg__order_work *work, int64_t n, const int64_t *rowptr,
                             const int32_t *col, struct hg__symmetric *symmetric)
{
	*symmetric = (struct hg__symmetric){
	    .n = n, .sides = 1, .side = {{rowptr, col, NULL}, {NULL, NULL, NULL}}};
	hg_status status = hg__order_alloc(work, n + 1, sizeof(int64_t), &symmetric->ptr_memory);
	if (status == HG_OK)
		status = hg__order_alloc(work, rowptr[n], sizeof(int32_t), &symmetric->id_memory);
	if (status == HG_OK) {
		build_transpose(n, rowptr, col, symmetric->ptr_memory.data, symmetric->id_memory.data);
		if (!same_pattern(n, rowptr, col, symmetric->ptr_memory.data, symmetric->id_memory.data))
			symmetric->side[symmetric->sides++] =
			    (struct hg__side){symmetric->ptr_memory.data, symmetric->id_memory.data, NULL};
	}
	if (status < 0 || symmetric->sides == 1) {
		hg__order_free(work, &symmetric->ptr_memory);
		hg__order_free(work, &symmetric->id_memory);
	}
	return status;
}

void hg__symmetric_free(const struct hg__order_work *work, struct hg__symmetric *symmetric)
{
	hg__order_free(work, &symmetric->ptr_memory);
	hg__order_free(work, &symmetric->id_memory);
	hg__order_free(work, &symmetric->weight_memory);
}
