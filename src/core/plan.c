/* Builds the merge-path plan of a CSR (struct hg__plan in csr.h).
 *
 * The rows' edges and ends form one sequence of rows + m tokens:
 *
 *     edges of row 0, end of row 0, edges of row 1, end of row 1, ...
 *
 * in which the end of row r is token rowptr[r+1] + r. A cut lies item_work tokens behind the last
 * cut, or at the nearer end of the row there if that is at most hg__plan_reach edges away. If a cut
 * would separate a row's last edge from the row's end, it moves one token on. So an item finishes a
 * row exactly if it has the row's last edge (or the row is empty), and every item that begins
 * inside a row has an edge of that row. */
#include "core/plan_store.h"

/* Enough items for every warp slot of a large GPU (H200: 132 SMs * 64 warps = 8448), rounded to a
 * power of two. */
#define TARGET_ITEMS 8192
/* The range of item_work. On a small graph a kernel takes as long as its longest chain of dependent
 * loads, so items are short: a training step of GCN on Cora's shape takes 0.116 ms with 8 and 0.156
 * with 32 (H200). On large graphs, aggregation alone with F = 64 and parts of at most 256, 512 and
 * 1024 entries takes 1.00, 0.92 and 0.90 ms on Kron-21, and 1.62, 1.53 and 1.52 on reddit-like.
 * Longer parts were not tried: the hubs of Kron-21 would then have fewer parts than the GPU runs at
 * once. */
#define MIN_WORK 8
#define MAX_WORK 1024

static int32_t choose_work(int64_t rows, int64_t m)
{
	int32_t work = MIN_WORK;
	while (work < MAX_WORK && (rows + m) / (2 * work) >= TARGET_ITEMS)
		work *= 2;
	return work;
}

/* The edge at which to cut inside row `row`, where the nominal cut is at `edge`: the row's end, its
 * beginning if the last cut (`behind` tokens ago) lies before it, or `edge` itself. */
static int64_t choose_cut(const int64_t *rowptr, int64_t row, int64_t edge, int64_t behind,
                          int64_t reach)
{
	const int64_t backward = edge - rowptr[row], forward = rowptr[row + 1] - edge,
	              may_go_back = backward < behind;
	if (forward <= reach && (forward <= backward || !may_go_back))
		return rowptr[row + 1];
	return backward <= reach && may_go_back ? rowptr[row] : edge;
}

/* Finds all cuts in order. `row` row ends and `edge` edges lie before each. */
static void cut_into_items(int64_t rows, int64_t m, const int64_t *rowptr, int64_t work,
                           int64_t reach, struct hg__host_plan *p)
{
	int64_t row = 0, edge = 0, k = 0;
	while (row + edge < rows + m) {
		const int64_t token = row + edge + work;
		p->row[k] = (int32_t)row;
		p->edge[k] = edge;
		k++;
		while (row < rows && rowptr[row + 1] + row < token)
			row++;
		edge = row < rows ? choose_cut(rowptr, row, token - row, work, reach) : m;
		if (row < rows && edge == rowptr[row + 1] && rowptr[row] < edge)
			row++;
	}
	p->row[k] = (int32_t)row;
	p->edge[k] = edge;
	p->items = k;
}

/* Finds the split rows. The first item that ends inside a row opens a split, and the next item that
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

/* Numbers the slots that are used, in the order of items. An item uses its head if it finishes a
 * row that began in an earlier item, and its tail if it has edges of a row that it does not
 * finish. */
static void number_slots(const int64_t *rowptr, struct hg__host_plan *p)
{
	int64_t slots = 0;
	for (int64_t k = 0; k < p->items; k++) {
		const int head =
		    p->row[k] < p->row[k + 1] &&
		    rowptr[p->row[k]]<p->edge[k], tail = p->edge[k + 1]> rowptr[p->row[k + 1]] &&
		    p->edge[k + 1] > p->edge[k];
		p->slot[k] = (int32_t)slots;
		slots += head + tail;
	}
	p->slot[p->items] = (int32_t)slots;
}

static int64_t longest_row(int64_t rows, const int64_t *rowptr)
{
	int64_t longest = 0;
	for (int64_t row = 0; row < rows; row++)
		longest = rowptr[row + 1] - rowptr[row] > longest ? rowptr[row + 1] - rowptr[row] : longest;
	return longest;
}

/* An upper bound on the number of items: two neighbouring items together have at least `work`
 * tokens. A cut moves back by b edges only where its row has at least 2 b edges, and these begin
 * the next item. */
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

/* Builds the plan of rows with these row pointers. of_row, of_ptr: see struct hg__host_plan. */
static hg_status build(hg_context *ctx, int64_t rows, int64_t m, const int64_t *rowptr,
                       const int32_t *of_row, const int64_t *of_ptr, enum hg__part_order order,
                       struct hg__plan **plan)
{
	const int64_t most = most_items(rows, m);
	const int32_t work = choose_work(rows, m);
	struct hg__host_plan p;
	HG__TRY(hg__host_plan_alloc(ctx, most, most + 1, &p));
	p.work = work;
	p.of_row = of_row;
	p.of_ptr = of_ptr;
	cut_into_items(rows, m, rowptr, work, hg__plan_reach(work, longest_row(rows, rowptr)), &p);
	find_splits(rowptr, &p);
	number_slots(rowptr, &p);
	for (int64_t s = 0; of_row && s < p.splits; s++)
		p.split[s] = of_row[p.split[s]];
	const hg_status status = hg__plan_store(ctx, &p, rows, rowptr, order, plan);
	hg__host_plan_free(ctx, &p);
	return status;
}

hg_status hg__plan_build(hg_context *ctx, int64_t rows, int64_t m, const int64_t *host_rowptr,
                         enum hg__part_order order, struct hg__plan **plan)
{
	*plan = NULL;
	return build(ctx, rows, m, host_rowptr, NULL, NULL, order, plan);
}

hg_status hg__plan_build_some(hg_context *ctx, int64_t rows, const int32_t *row,
                              const int64_t *host_rowptr, enum hg__part_order order,
                              struct hg__plan **plan)
{
	struct hg__buffer memory;
	*plan = NULL;
	HG__TRY(hg__buffer_host(ctx, rows + 1, sizeof(int64_t), "plan: rowptr of some rows", &memory));
	int64_t *rowptr = memory.data;
	for (int64_t r = 0; r < rows; r++)
		rowptr[r + 1] = rowptr[r] + host_rowptr[row[r] + 1] - host_rowptr[row[r]];
	const hg_status status = build(ctx, rows, rowptr[rows], rowptr, row, host_rowptr, order, plan);
	hg__buffer_free(ctx, &memory);
	return status;
}
