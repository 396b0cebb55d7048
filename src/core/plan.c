#include "core/plan_store.h"

/* Merge path. The rows' edges and ends in the order
 *
 *     edges of row 0, end of row 0, edges of row 1, end of row 1, ...            rows + m tokens;
 *         the end of row r is token rowptr[r+1] + r
 *
 * are cut item_work tokens behind the last cut, or at the nearer border of the row there, if it is
 * at most hg__plan_reach edges away. A row's end never stands alone behind its last edge: where a
 * cut would part them it moves one token on. So an item finishes a row exactly if it has the row's
 * last edge (or the row is empty), and every item that begins inside a row has an edge of it. */

/* Enough items for every warp slot of a large GPU (H200: 132 SMs * 64 warps = 8448), rounded to a
 * power of two. */
#define WANTED_ITEMS 8192
/* On small graphs a kernel takes as long as its longest chain of loads, so items are short: a
 * training step of GCN on Cora's shape takes 0.116 ms (H200) with 8, 0.156 with 32. Of large
 * graphs, parts of at most 256, 512 and 1024 entries, aggregation alone, F = 64: Kron-21 1.00, 0.92
 * and 0.90 ms, reddit-like 1.62, 1.53 and 1.52; longer ones were not tried: Kron-21's hubs are then
 * less parts than the GPU takes at once. */
#define MIN_WORK 8
#define MAX_WORK 1024

static int32_t choose_work(int64_t rows, int64_t m)
{
	int32_t work = MIN_WORK;
	while (work < MAX_WORK && (rows + m) / (2 * work) >= WANTED_ITEMS)
		work *= 2;
	return work;
}

/* Where in row `row` to cut instead of at `edge`: its end or, if the last cut was before it
 * (`behind` tokens ago), its beginning, or there. */
static int64_t border(const int64_t *rowptr, int64_t row, int64_t edge, int64_t behind,
                      int64_t reach)
{
	const int64_t back = edge - rowptr[row], on = rowptr[row + 1] - edge,
	              may_go_back = back < behind;
	if (on <= reach && (on <= back || !may_go_back))
		return rowptr[row + 1];
	return back <= reach && may_go_back ? rowptr[row] : edge;
}

/* Walk along the cuts; `row` row ends and `edge` edges lie before each. */
static void cut(int64_t rows, int64_t m, const int64_t *rowptr, int64_t work, int64_t reach,
                struct hg__host_plan *p)
{
	int64_t row = 0, edge = 0, k = 0;
	while (row + edge < rows + m) {
		const int64_t token = row + edge + work;
		p->row[k] = (int32_t)row;
		p->edge[k] = edge;
		k++;
		while (row < rows && rowptr[row + 1] + row < token)
			row++;
		edge = row < rows ? border(rowptr, row, token - row, work, reach) : m;
		if (row < rows && edge == rowptr[row + 1] && rowptr[row] < edge)
			row++;
	}
	p->row[k] = (int32_t)row;
	p->edge[k] = edge;
	p->items = k;
}

/* Items whose end lies inside a row: the first such item of a row opens a split, the next item that
 * finishes a row closes it. */
static void find_splits(const int64_t *rowptr, struct hg__host_plan *p)
{
	int64_t open = -1;
	for (int64_t k = 0; k < p->items; k++) {
		if (open >= 0 && p->row[k + 1] > p->row[k]) {
			p->split[p->splits] = p->row[k];
			p->first[p->splits] = open;
			p->last[p->splits] = k;
			p->splits++;
			open = -1;
		}
		if (open < 0 && p->edge[k + 1] > rowptr[p->row[k + 1]])
			open = k;
	}
}

static int64_t longest_row(int64_t rows, const int64_t *rowptr)
{
	int64_t longest = 0;
	for (int64_t row = 0; row < rows; row++)
		longest = rowptr[row + 1] - rowptr[row] > longest ? rowptr[row + 1] - rowptr[row] : longest;
	return longest;
}

/* Two neighbours have at least `work` tokens: what one goes back, the next has twice. */
static int64_t most_items(int64_t rows, int64_t m)
{
	const int32_t work = choose_work(rows, m);
	return 2 * ((rows + m + work - 1) / work) + 1;
}

size_t hg__plan_most_bytes(int64_t rows, int64_t m, int listed)
{
	const int64_t items = most_items(rows, m);
	return hg__plan_array_bytes(items, items) +
	       (listed ? (size_t)(rows + items) * sizeof(struct hg__plan_part) : 0);
}

hg_status hg__plan_build(hg_context *ctx, int64_t rows, int64_t m, const int64_t *host_rowptr,
                         enum hg__part_order order, struct hg__plan **plan)
{
	*plan = NULL;
	const int32_t work = choose_work(rows, m);
	const int64_t most = most_items(rows, m);
	struct hg__host_plan p;
	HG__TRY(hg__host_plan_alloc(ctx, most, most + 1, &p));
	p.work = work;
	cut(rows, m, host_rowptr, work, hg__plan_reach(work, longest_row(rows, host_rowptr)), &p);
	find_splits(host_rowptr, &p);
	const hg_status status = hg__plan_store(ctx, &p, rows, host_rowptr, order, plan);
	hg__host_plan_free(ctx, &p);
	return status;
}
