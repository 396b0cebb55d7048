#include "core/buffer.h"
#include "core/csr.h"
#include "core/plan_parts.h"

/* Merge path. The rows' edges and ends in the order
 *
 *     edges of row 0, end of row 0, edges of row 1, end of row 1, ...            rows + m tokens; the end of row r is token rowptr[r+1] + r
 *
 * are cut item_work tokens behind the last cut, or at the nearer border of the row there, if it is at most hg__plan_reach edges away. A row's end never stands
 * alone behind its last edge: where a cut would part them it moves one token on. So an item finishes a row exactly if it has the row's last edge (or the
 * row is empty), and every item that begins inside a row has an edge of it. */

/* Enough items for every warp slot of a large GPU (H200: 132 SMs * 64 warps = 8448), rounded to a power of two. */
#define WANTED_ITEMS 8192
/* On small graphs a kernel takes as long as its longest chain of loads, so items are short: a training step of GCN on Cora's shape takes 0.116 ms (H200) with 8,
 * 0.156 with 32. Past 512 the cost of an item's two staging rows is below 1/200 of its gathers. */
#define MIN_WORK 8
#define MAX_WORK 512

static int32_t choose_work(int64_t rows, int64_t m)
{
	int32_t work = MIN_WORK;
	while (work < MAX_WORK && (rows + m) / (2 * work) >= WANTED_ITEMS)
		work *= 2;
	return work;
}

struct host_plan {
	int64_t *edge, *first, *last;
	int32_t *row, *split;
	int64_t items, splits;
};

/* Where in row `row` to cut instead of at `edge`: its end or, if the last cut was before it (`behind` tokens ago), its beginning, or there. */
static int64_t border(const int64_t *rowptr, int64_t row, int64_t edge, int64_t behind, int64_t reach)
{
	const int64_t back = edge - rowptr[row], on = rowptr[row + 1] - edge, may_go_back = back < behind;
	if (on <= reach && (on <= back || !may_go_back))
		return rowptr[row + 1];
	return back <= reach && may_go_back ? rowptr[row] : edge;
}

/* Walk along the cuts; `row` row ends and `edge` edges lie before each. */
static void cut(int64_t rows, int64_t m, const int64_t *rowptr, int64_t work, int64_t reach, struct host_plan *p)
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

/* Items whose end lies inside a row: the first such item of a row opens a split, the next item that finishes a row closes it. */
static void find_splits(const int64_t *rowptr, struct host_plan *p)
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

enum { EDGE, ROW, SPLIT, FIRST, LAST, ARRAYS };
static const char *const array_name[ARRAYS] = {"plan: item_edge", "plan: item_row", "plan: split_row", "plan: split_first", "plan: split_last"};
static const size_t array_size[ARRAYS] = {sizeof(int64_t), sizeof(int32_t), sizeof(int32_t), sizeof(int64_t), sizeof(int64_t)};

/* The parts, by length. */
static hg_status add_parts(hg_context *ctx, const struct host_plan *p, int64_t rows, const int64_t *rowptr, int near, struct hg__plan *plan)
{
	const struct hg__part_source source = {p->items, hg__parts_count(p->items, p->edge, p->row, rows, rowptr), p->edge, p->row, rowptr};
	struct hg__buffer host, device = {0};
	HG__TRY(hg__buffer_host(ctx, source.parts, sizeof(struct hg__plan_part), "plan: parts", &host));
	hg_status status = hg__parts_order(ctx, &source, near, host.data, plan->part_class);
	if (status == HG_OK)
		status = hg__buffer_upload(ctx, source.parts, sizeof(struct hg__plan_part), host.data, "plan: parts", &device);
	hg__buffer_free(ctx, &host);
	plan->part = device.data;
	plan->parts = status == HG_OK ? source.parts : 0;
	return status;
}

static hg_status upload(hg_context *ctx, const struct host_plan *p, struct hg__plan *plan)
{
	const void *host[ARRAYS] = {p->edge, p->row, p->split, p->first, p->last};
	const int64_t count[ARRAYS] = {p->items + 1, p->items + 1, p->splits, p->splits, p->splits};
	struct hg__buffer device[ARRAYS] = {{0}};
	hg_status status = HG_OK;
	for (int i = 0; i < ARRAYS && status == HG_OK; i++)
		status = hg__buffer_upload(ctx, count[i], array_size[i], host[i], array_name[i], &device[i]);
	plan->item_edge = device[EDGE].data;
	plan->item_row = device[ROW].data;
	plan->split_row = device[SPLIT].data;
	plan->split_first = device[FIRST].data;
	plan->split_last = device[LAST].data;
	return status;
}

/* What there is to know of a graph's rows before they are cut. */
static int64_t longest_row(int64_t rows, const int64_t *rowptr, int64_t *empty)
{
	int64_t longest = 0;
	*empty = 0;
	for (int64_t row = 0; row < rows; row++) {
		const int64_t degree = rowptr[row + 1] - rowptr[row];
		longest = degree > longest ? degree : longest;
		*empty += degree == 0;
	}
	return longest;
}

hg_status hg__plan_build(hg_context *ctx, int64_t rows, int64_t m, const int64_t *host_rowptr, enum hg__part_order order, struct hg__plan **plan)
{
	*plan = NULL;
	const int32_t work = choose_work(rows, m);
	const int64_t most = 2 * ((rows + m + work - 1) / work) + 1; /* two neighbours have at least work tokens: what one goes back, the next has twice */
	struct hg__buffer array[ARRAYS] = {{0}}, result = {0};
	hg_status status = hg__buffer_host(ctx, 1, sizeof(struct hg__plan), "plan", &result);
	for (int i = 0; i < ARRAYS && status == HG_OK; i++)
		status = hg__buffer_host(ctx, most + 1, array_size[i], array_name[i], &array[i]);
	if (status == HG_OK) {
		struct host_plan p = {array[EDGE].data, array[FIRST].data, array[LAST].data, array[ROW].data, array[SPLIT].data, 0, 0};
		struct hg__plan *built = result.data;
		const int64_t longest = longest_row(rows, host_rowptr, &built->empty);
		cut(rows, m, host_rowptr, work, hg__plan_reach(work, longest), &p);
		find_splits(host_rowptr, &p);
		built->items = p.items;
		built->splits = p.splits;
		built->item_work = work;
		status = upload(ctx, &p, built);
		if (status == HG_OK && order != HG__PARTS_NONE)
			status = add_parts(ctx, &p, rows, host_rowptr, order == HG__PARTS_NEAR, built);
	}
	for (int i = 0; i < ARRAYS; i++)
		hg__buffer_free(ctx, &array[i]);
	if (status < 0)
		hg__plan_free(ctx, result.data);
	else
		*plan = result.data;
	return status;
}

size_t hg__plan_bytes(const struct hg__plan *plan)
{
	const size_t items = plan ? (size_t)plan->items + 1 : 0, splits = plan ? (size_t)plan->splits : 0, parts = plan ? (size_t)plan->parts : 0;
	return items * (array_size[EDGE] + array_size[ROW]) + splits * (array_size[SPLIT] + array_size[FIRST] + array_size[LAST]) +
	       parts * sizeof(struct hg__plan_part);
}

void hg__plan_free(hg_context *ctx, struct hg__plan *plan)
{
	if (!plan)
		return;
	const size_t items = (size_t)plan->items + 1, splits = (size_t)plan->splits;
	hg__device_free(ctx, plan->item_edge, items * array_size[EDGE]);
	hg__device_free(ctx, plan->item_row, items * array_size[ROW]);
	hg__device_free(ctx, plan->split_row, splits * array_size[SPLIT]);
	hg__device_free(ctx, plan->split_first, splits * array_size[FIRST]);
	hg__device_free(ctx, plan->split_last, splits * array_size[LAST]);
	hg__device_free(ctx, plan->part, (size_t)plan->parts * sizeof(struct hg__plan_part));
	hg__host_free(ctx, plan, sizeof *plan);
}
