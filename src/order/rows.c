/* Applies an order to arrays that have one row for each node, and checks that it is a
 * permutation. */
#include <string.h>

#include "order/order.h"

hg_status hg__order_check(const struct hg__order_work *work, int64_t n, const int32_t *order,
                          int32_t *position)
{
	struct hg__buffer own = {0};
	if (n < 0 || n > INT32_MAX || (n > 0 && !order))
		return HG_ERR_ARG;
	if (!position)
		HG__TRY(hg__order_alloc(work, n, sizeof(int32_t), &own));
	int32_t *of = position ? position : own.data;
	hg_status status = HG_OK;
	for (int64_t i = 0; i < n; i++)
		of[i] = -1;
	for (int64_t k = 0; k < n && status == HG_OK; k++) {
		if (order[k] < 0 || order[k] >= n || of[order[k]] >= 0)
			status = HG_ERR_ARG;
		else
			of[order[k]] = (int32_t)k;
	}
	hg__order_free(work, &own);
	return status;
}

hg_status hg_order_check(int64_t n, const int32_t *order, int32_t *position)
{
	const struct hg__order_work work = {NULL, NULL, 1};
	return hg__order_check(&work, n, order, position);
}

hg_status hg_order_rows(int64_t n, const int32_t *order, size_t bytes, const void *from, void *to)
{
	HG__TRY(hg_order_check(n, order, NULL));
	if (n > 0 && bytes > 0 && (!from || !to))
		return HG_ERR_ARG;
	for (int64_t k = 0; k < n && bytes > 0; k++)
		memcpy((char *)to + (size_t)k * bytes, (const char *)from + (size_t)order[k] * bytes,
		       bytes);
	return HG_OK;
}

hg_status hg_order_rows_back(int64_t n, const int32_t *order, size_t bytes, const void *from,
                             void *to)
{
	HG__TRY(hg_order_check(n, order, NULL));
	if (n > 0 && bytes > 0 && (!from || !to))
		return HG_ERR_ARG;
	for (int64_t k = 0; k < n && bytes > 0; k++)
		memcpy((char *)to + (size_t)order[k] * bytes, (const char *)from + (size_t)k * bytes,
		       bytes);
	return HG_OK;
}
