/* Iteration over the work items of a CSR (core/csr.h). An item is a sequence of row parts. Loops
 * over items use schedule(dynamic, 4): items have equal work, but cache misses make their times
 * differ. With four at a time one atomic operation of the schedule serves at least 4 * 4
 * rows and edges. */
#ifndef HG_KERNELS_CPU_ITEMS_H
#define HG_KERNELS_CPU_ITEMS_H

#include "kernels/cpu/rows.h"

/* Edges begin .. end-1 of a row. slot < 0: these are all edges of the row. Otherwise this is a part
 * of a split row, and slot is its staging slot. */
struct hg__part {
	int64_t row, begin, end, slot;
};

struct hg__item {
	int64_t k, row, row_end, edge, edge_end;
};

HG__INLINE int64_t hg__items(const struct hg__csr *csr)
{
	/* without a plan there is one item and no split row */
	return csr->plan ? csr->plan->items : csr->rows > 0;
}

HG__INLINE int64_t hg__splits(const struct hg__csr *csr)
{
	return csr->plan ? csr->plan->splits : 0;
}

HG__INLINE struct hg__item hg__item_begin(const struct hg__csr *csr, int64_t k)
{
	const struct hg__plan *p = csr->plan;
	if (!p)
		return (struct hg__item){0, 0, csr->rows, 0, csr->m};
	const int64_t row = p->item_row ? p->item_row[k] : k,
	              row_end = p->item_row ? p->item_row[k + 1] : k + 1;
	return (struct hg__item){k, row, row_end, p->item_edge[k], p->item_edge[k + 1]};
}

HG__INLINE int hg__part_next(const struct hg__csr *csr, struct hg__item *it, struct hg__part *part)
{
	if (it->row < it->row_end) {
		const int64_t end = csr->rowptr[it->row + 1];
		*part = (struct hg__part){it->row, it->edge, end,
		                          it->edge > csr->rowptr[it->row] ? 2 * it->k : -1};
		it->edge = end;
		it->row++;
		return 1;
	}
	if (it->edge < it->edge_end) {
		*part = (struct hg__part){it->row, it->edge, it->edge_end, 2 * it->k + 1};
		it->edge = it->edge_end;
		return 1;
	}
	return 0;
}

/* The staging slot of split row s in item k, where split_first <= k <= split_last. */
HG__INLINE int64_t hg__split_slot(const struct hg__plan *plan, int64_t s, int64_t k)
{
	return k < plan->split_last[s] ? 2 * k + 1 : 2 * k;
}

#endif
