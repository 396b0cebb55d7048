#include <stdlib.h>
#include <string.h>

#include "core/csr.h"
#include "core/plan_parts.h"
#include "unit/faulty.h"

/* Plans, downloaded and compared with what core/csr.h promises of them, by brute force. */

struct host_plan {
	int64_t items, splits, slots, *edge, *first, *last;
	int32_t work, *row, *slot, *split;
};

static void *fetch(hg_context *ctx, const void *device, int64_t count, size_t size)
{
	void *host = malloc((size_t)count * size + 1);
	CHECK(host);
	if (count)
		CHECK_OK(ctx->backend->copy_out(ctx, host, device, (size_t)count * size));
	return host;
}

static struct host_plan fetch_plan(hg_context *ctx, const struct hg__plan *p)
{
	struct host_plan h = {
	    .items = p->items, .splits = p->splits, .slots = p->slots, .work = p->item_work};
	h.edge = fetch(ctx, p->item_edge, p->items + 1, sizeof *h.edge);
	h.row = fetch(ctx, p->item_row, p->items + 1, sizeof *h.row);
	h.slot = fetch(ctx, p->item_slot, p->items + 1, sizeof *h.slot);
	h.split = fetch(ctx, p->split_row, p->splits, sizeof *h.split);
	h.first = fetch(ctx, p->split_first, p->splits, sizeof *h.first);
	h.last = fetch(ctx, p->split_last, p->splits, sizeof *h.last);
	return h;
}

static void free_plan(struct host_plan *h)
{
	free(h->edge);
	free(h->first);
	free(h->last);
	free(h->row);
	free(h->slot);
	free(h->split);
}

static int64_t row_of_edge(const int64_t *rowptr, int64_t rows, int64_t e)
{
	int64_t low = 0, high = rows;
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		*(rowptr[middle] <= e ? &low : &high) = middle;
	}
	return low;
}

/* Cuts go from (0, 0) to (rows, m), both coordinates ascend, and the items between them have the
 * promised sizes. */
static void check_items(const struct host_plan *p, int64_t rows, int64_t m, int64_t longest)
{
	CHECK(p->work >= 8 && p->work <= 1024 && (p->work & (p->work - 1)) == 0);
	CHECK(p->edge[0] == 0 && p->row[0] == 0 && p->edge[p->items] == m && p->row[p->items] == rows);
	for (int64_t k = 0; k < p->items; k++) {
		const int64_t edges = p->edge[k + 1] - p->edge[k], ends = p->row[k + 1] - p->row[k];
		CHECK(edges >= 0 && ends >= 0 && edges + ends >= 1 &&
		      edges + ends <= p->work + hg__plan_reach(p->work, longest) + 1);
		CHECK(k == 0 || k == p->items - 1 ||
		      p->edge[k + 1] - p->edge[k - 1] + p->row[k + 1] - p->row[k - 1] >= p->work);
	}
}

/* Does what a kernel does with a plan: adds 1 for each edge to its row, through the staging slots
 * where a row is split. owner[r] counts how often row r is completed. */
static void run_as_a_kernel(const struct host_plan *p, int64_t rows, int64_t m,
                            const int64_t *rowptr, int64_t *sum, int64_t *owner)
{
	int64_t *slot = calloc((size_t)p->items * 2 + 1, sizeof *slot), seen = 0;
	char *used = calloc((size_t)p->items * 2 + 1, 1);
	CHECK(slot && used);
	for (int64_t k = 0; k < p->items; k++) {
		int64_t e = p->edge[k];
		for (int64_t r = p->row[k]; r < p->row[k + 1]; r++) {
			const int64_t begin = e;
			for (; e < rowptr[r + 1]; e++, seen++)
				CHECK_EQ_I(row_of_edge(rowptr, rows, e), r);
			owner[r]++;
			if (r == p->row[k] && rowptr[r] < p->edge[k]) {
				CHECK(e > begin); /* this item has edges of a row that began in an item before */
				slot[2 * k] = e - begin;
				used[2 * k] = 1;
			} else {
				sum[r] = e - begin;
			}
		}
		if (e < p->edge[k + 1]) {
			for (int64_t t = e; t < p->edge[k + 1]; t++, seen++)
				CHECK_EQ_I(row_of_edge(rowptr, rows, t), p->row[k + 1]);
			slot[2 * k + 1] = p->edge[k + 1] - e;
			used[2 * k + 1] = 1;
		}
	}
	CHECK_EQ_I(seen, m);
	int64_t number = 0; /* the slots that are used have numbers without gaps */
	for (int64_t s = 0; s < p->splits; s++) {
		CHECK(p->first[s] < p->last[s] && p->last[s] < p->items &&
		      (s == 0 || p->split[s] > p->split[s - 1]));
		for (int64_t k = p->first[s]; k <= p->last[s]; k++) {
			const int64_t place = k < p->last[s] ? 2 * k + 1 : 2 * k;
			CHECK(used[place] == 1);
			used[place] = 2; /* each slot is added once */
			CHECK_EQ_I(k < p->last[s] ? p->slot[k + 1] - 1 : p->slot[k], number);
			number++;
			sum[p->split[s]] += slot[place];
		}
	}
	CHECK_EQ_I(number, p->slots);
	for (int64_t i = 0; i < 2 * p->items; i++)
		CHECK(used[i] != 1); /* and all of them are */
	free(slot);
	free(used);
}

/* Counts split rows by their definition: their first and their last edge are in different items. */
static int64_t count_splits(const struct host_plan *p, int64_t rows, const int64_t *rowptr)
{
	int64_t splits = 0, k = 0;
	for (int64_t r = 0; r < rows; r++) {
		if (rowptr[r] == rowptr[r + 1])
			continue;
		while (p->edge[k + 1] <= rowptr[r])
			k++;
		splits += p->edge[k + 1] < rowptr[r + 1];
	}
	return splits;
}

/* The row and the item of the first edge of part `place`. */
static int64_t item_of(const struct host_plan *p, int64_t entry)
{
	int64_t low = 0, high = p->items;
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		*(p->edge[middle] <= entry ? &low : &high) = middle;
	}
	while (p->edge[low + 1] <= entry)
		low++;
	return low;
}

/* A part is all edges of one row in one item. It knows where its sum is stored. */
static void check_part(const struct host_plan *p, const int64_t *rowptr,
                       const struct hg__plan_part *part)
{
	const int64_t begin = hg__part_begin(part), end = begin + hg__part_entries(part),
	              row = part->row;
	if (begin == end) {
		CHECK(rowptr[row] == rowptr[row + 1] && part->slot == -1);
		return;
	}
	const int64_t item = item_of(p, begin), first = p->edge[item], last = p->edge[item + 1];
	CHECK_EQ_I(begin, rowptr[row] > first ? rowptr[row] : first);
	CHECK_EQ_I(end, rowptr[row + 1] < last ? rowptr[row + 1] : last);
	CHECK_EQ_I(part->slot, end < rowptr[row + 1] ? 2 * item + 1
	                       : begin > rowptr[row] ? 2 * item
	                                             : -1);
}

/* The list has every part once, grouped by class, and the longest parts first where that is
 * promised. */
static void check_parts(hg_context *ctx, int64_t rows, const int64_t *rowptr,
                        enum hg__part_order order)
{
	struct hg__plan *plan;
	CHECK_OK(hg__plan_build(ctx, rows, rowptr[rows], rowptr, order, &plan));
	struct host_plan p = fetch_plan(ctx, plan);
	struct hg__plan_part *part = fetch(ctx, plan->part, plan->parts, sizeof *part);
	char *seen = calloc((size_t)(rowptr[rows] + 1), 1);
	int64_t entries = 0, empty = 0;
	CHECK(seen && plan->part_class[0] == 0 && plan->part_class[HG__PART_CLASSES] == plan->parts);
	for (int c = 0; c < HG__PART_CLASSES; c++)
		for (int64_t i = plan->part_class[c]; i < plan->part_class[c + 1]; i++) {
			const int64_t count = hg__part_entries(&part[i]);
			CHECK_EQ_I(hg__part_class(count), c);
			check_part(&p, rowptr, &part[i]);
			CHECK(count == 0 || !seen[hg__part_begin(&part[i])]);
			seen[hg__part_begin(&part[i])] |= count > 0;
			entries += count;
			empty += count == 0;
			if (order == HG__PARTS_ALL && c < HG__PART_SORTED && i > plan->part_class[c])
				CHECK((hg__part_entries(&part[i - 1]) + 7) / 8 >= (count + 7) / 8);
		}
	CHECK_EQ_I(entries, rowptr[rows]);
	for (int64_t r = 0; r < rows; r++)
		empty -= rowptr[r] == rowptr[r + 1];
	/* a row without edges has one empty part, and there are no other empty parts */
	CHECK_EQ_I(empty, 0);
	free(seen);
	free(part);
	free_plan(&p);
	hg__plan_free(ctx, plan);
}

static void check_plan(hg_context *ctx, int64_t rows, const int64_t *rowptr)
{
	const int64_t m = rowptr[rows];
	struct hg__plan *plan;
	check_parts(ctx, rows, rowptr, HG__PARTS_ALL);
	check_parts(ctx, rows, rowptr, HG__PARTS_NEAR);
	CHECK_OK(hg__plan_build(ctx, rows, m, rowptr, HG__PARTS_NONE, &plan));
	CHECK(plan->part == NULL && plan->parts == 0);
	struct host_plan p = fetch_plan(ctx, plan);
	int64_t *sum = calloc((size_t)rows + 1, sizeof *sum),
	        *owner = calloc((size_t)rows + 1, sizeof *owner);
	CHECK(sum && owner);
	int64_t longest = 0;
	for (int64_t r = 0; r < rows; r++)
		longest = rowptr[r + 1] - rowptr[r] > longest ? rowptr[r + 1] - rowptr[r] : longest;
	check_items(&p, rows, m, longest);
	CHECK(longest > 64 || p.splits == 0);
	run_as_a_kernel(&p, rows, m, rowptr, sum, owner);
	for (int64_t r = 0; r < rows; r++)
		CHECK_MSG(owner[r] == 1 && sum[r] == rowptr[r + 1] - rowptr[r],
		          "row %lld: finished %lld times with %lld of %lld edges", (long long)r,
		          (long long)owner[r], (long long)sum[r], (long long)(rowptr[r + 1] - rowptr[r]));
	CHECK_EQ_I(p.splits, count_splits(&p, rows, rowptr));
	for (int64_t s = 0; s < p.splits; s++)
		CHECK_MSG(rowptr[p.split[s] + 1] - rowptr[p.split[s]] > p.work,
		          "row %d is split, although it fits an item", p.split[s]);
	free(sum);
	free(owner);
	free_plan(&p);
	hg__plan_free(ctx, plan);
}

/* Computes rowptr from degrees. */
static int64_t *pointers(int64_t rows, const int64_t *degree)
{
	int64_t *rowptr = malloc((size_t)(rows + 1) * sizeof *rowptr);
	CHECK(rowptr);
	rowptr[0] = 0;
	for (int64_t r = 0; r < rows; r++)
		rowptr[r + 1] = rowptr[r] + degree[r];
	return rowptr;
}

static void check_degrees(hg_context *ctx, int64_t rows, const int64_t *degree)
{
	int64_t *rowptr = pointers(rows, degree);
	check_plan(ctx, rows, rowptr);
	free(rowptr);
}

static void graph_without_rows_has_a_plan(void)
{
	hg_context *ctx = test_context();
	const int64_t rowptr[] = {0};
	struct hg__plan *plan;
	CHECK_OK(hg__plan_build(ctx, 0, 0, rowptr, HG__PARTS_ALL, &plan));
	CHECK(plan->items == 0 && plan->splits == 0);
	hg__plan_free(ctx, plan);
	hg__plan_free(ctx, NULL);
	check_plan(ctx, 0, rowptr);
	hg_context_free(ctx);
}

/* Two rows with every pair of degrees near multiples of an item's size: every way in which a cut
 * can lie. */
static void cuts_may_lie_anywhere(void)
{
	hg_context *ctx = test_context();
	int64_t degree[3];
	for (degree[0] = 0; degree[0] <= 70; degree[0]++)
		for (degree[1] = 0; degree[1] <= 70; degree[1]++)
			for (degree[2] = 0; degree[2] <= 2; degree[2]++)
				check_degrees(ctx, 3, degree);
	hg_context_free(ctx);
}

static void plan_of_isolated_rows(void)
{
	hg_context *ctx = test_context();
	for (int64_t rows = 1; rows < 200; rows++) {
		int64_t degree[200] = {0};
		check_degrees(ctx, rows, degree);
	}
	hg_context_free(ctx);
}

static void plan_of_a_hub_among_isolated_rows(void)
{
	hg_context *ctx = test_context();
	enum { ROWS = 500 };
	for (int place = 0; place < ROWS; place += 83)
		for (int64_t edges = 1; edges < 200000; edges = edges * 3 + 1) {
			int64_t degree[ROWS] = {0};
			degree[place] = edges;
			check_degrees(ctx, ROWS, degree);
		}
	hg_context_free(ctx);
}

/* Rows that fill items exactly. Their ends would be alone after a cut. */
static void rows_may_end_at_cuts(void)
{
	hg_context *ctx = test_context();
	int64_t degree[300];
	for (int64_t d = 28; d <= 36; d++) {
		for (int r = 0; r < 300; r++)
			degree[r] = d;
		check_degrees(ctx, 300, degree);
		for (int r = 0; r < 300; r++)
			degree[r] = r % 2 ? d : 0;
		check_degrees(ctx, 300, degree);
	}
	hg_context_free(ctx);
}

/* Random graphs: power laws, long runs of empty rows, and all sizes of items. */
static void plans_of_random_graphs(void)
{
	hg_context *ctx = test_context();
	int32_t works = 0;
	for (int i = 0; i < 400; i++) {
		const int64_t rows = 1 + test_below(i % 20 ? 3000 : 300000), run = 1 + test_below(200);
		const double heavy = 1 + 3 * test_uniform(), empty = test_uniform();
		int64_t *degree = calloc((size_t)rows, sizeof *degree), total = 0;
		CHECK(degree);
		int silent = 0;
		for (int64_t r = 0; r < rows; r++) {
			if (test_below(run) == 0)
				silent = test_uniform() < empty;
			const double d = heavy / (test_uniform() + 1e-4);
			degree[r] = silent ? 0 : (int64_t)d;
			total += degree[r];
		}
		check_degrees(ctx, rows, degree);
		for (int32_t w = 8; w < 1024 && (rows + total) / (2 * w) >= 8192; w *= 2)
			works |= 2 * w;
		free(degree);
	}
	CHECK_EQ_I(works & (64 | 128), 64 | 128);
	hg_context_free(ctx);
}

static void small_graphs_have_short_items_and_large_ones_long(void)
{
	hg_context *ctx = test_context();
	static const struct {
		int64_t rows, degree;
		int32_t work;
	} expected[] = {
	    {2708, 4, 8}, {100000, 4, 32}, {300000, 4, 128}, {1000000, 7, 512}, {1000000, 20, 1024}};
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		int64_t *rowptr = malloc((size_t)(expected[i].rows + 1) * sizeof *rowptr);
		struct hg__plan *plan;
		CHECK(rowptr);
		for (int64_t r = 0; r <= expected[i].rows; r++)
			rowptr[r] = r * expected[i].degree;
		CHECK_OK(hg__plan_build(ctx, expected[i].rows, rowptr[expected[i].rows], rowptr,
		                        HG__PARTS_NONE, &plan));
		CHECK_EQ_I(plan->item_work, expected[i].work);
		hg__plan_free(ctx, plan);
		free(rowptr);
	}
	hg_context_free(ctx);
}

/* The plan of some rows is that of a CSR with these rows alone, with other numbers of rows and
 * entries. */
static void check_some(hg_context *ctx, int64_t rows, const int32_t *row, const int64_t *host,
                       enum hg__part_order order)
{
	int64_t *alone = calloc((size_t)rows + 1, sizeof *alone);
	struct hg__plan *plan, *expected;
	CHECK(alone);
	for (int64_t r = 0; r < rows; r++)
		alone[r + 1] = alone[r] + host[row[r] + 1] - host[row[r]];
	CHECK_OK(hg__plan_build(ctx, rows, alone[rows], alone, order, &expected));
	const size_t before = ctx->current_bytes;
	CHECK_OK(hg__plan_build_some(ctx, rows, row, host, order, &plan));
	CHECK_EQ_I(hg__plan_bytes(plan), ctx->current_bytes - before);
	CHECK(!plan->item_edge && !plan->item_row && plan->item_work == expected->item_work);
	CHECK(plan->items == expected->items && plan->splits == expected->splits &&
	      plan->parts == expected->parts);
	CHECK(memcmp(plan->part_class, expected->part_class, sizeof plan->part_class) == 0);
	struct hg__plan_part *part = fetch(ctx, plan->part, plan->parts, sizeof *part),
	                     *of = fetch(ctx, expected->part, plan->parts, sizeof *of);
	for (int64_t i = 0; i < plan->parts; i++) {
		CHECK_EQ_I(part[i].row, row[of[i].row]);
		CHECK_EQ_I(part[i].slot, of[i].slot);
		CHECK_EQ_I(hg__part_entries(&part[i]), hg__part_entries(&of[i]));
		CHECK_EQ_I(hg__part_begin(&part[i]) - host[part[i].row],
		           hg__part_begin(&of[i]) - alone[of[i].row]);
	}
	int32_t *split = fetch(ctx, plan->split_row, plan->splits, sizeof *split),
	        *split_of = fetch(ctx, expected->split_row, plan->splits, sizeof *split_of);
	for (int64_t s = 0; s < plan->splits; s++)
		CHECK_EQ_I(split[s], row[split_of[s]]);
	for (int which = 0; which < 2; which++) {
		int64_t *a = fetch(ctx, which ? plan->split_last : plan->split_first, plan->splits, 8),
		        *b = fetch(ctx, which ? expected->split_last : expected->split_first, plan->splits,
		                   8);
		CHECK(memcmp(a, b, (size_t)plan->splits * sizeof *a) == 0);
		free(a);
		free(b);
	}
	free(split);
	free(split_of);
	free(part);
	free(of);
	free(alone);
	hg__plan_free(ctx, plan);
	hg__plan_free(ctx, expected);
}

static void plans_of_some_rows(void)
{
	hg_context *ctx = test_context();
	for (int i = 0; i < 60; i++) {
		const int64_t rows = 1 + test_below(2000), every = 1 + test_below(5);
		int64_t *degree = calloc((size_t)rows, sizeof *degree), some = 0;
		int32_t *row = calloc((size_t)rows, sizeof *row);
		CHECK(degree && row);
		for (int64_t r = 0; r < rows; r++) {
			degree[r] = (int64_t)(3 / (test_uniform() + 1e-3)) - 4;
			degree[r] = degree[r] < 0 ? 0 : degree[r];
			if (test_below(every) == 0)
				row[some++] = (int32_t)r;
		}
		int64_t *rowptr = pointers(rows, degree);
		check_some(ctx, some, row, rowptr, i % 2 ? HG__PARTS_ALL : HG__PARTS_NEAR);
		free(rowptr);
		free(degree);
		free(row);
	}
	hg_context_free(ctx);
}

static hg_status scene(hg_context *ctx)
{
	const int64_t rowptr[] = {0, 0, 100, 100, 130};
	struct hg__plan *plan = NULL;
	const hg_status status = hg__plan_build(ctx, 4, 130, rowptr, HG__PARTS_NEAR, &plan);
	hg__plan_free(ctx, plan);
	return status;
}

static hg_status scene_of_some(hg_context *ctx)
{
	const int64_t rowptr[] = {0, 0, 100, 100, 130};
	const int32_t row[] = {1, 2};
	struct hg__plan *plan = NULL;
	const hg_status status = hg__plan_build_some(ctx, 2, row, rowptr, HG__PARTS_NEAR, &plan);
	hg__plan_free(ctx, plan);
	return status;
}

static void failed_allocations_are_reported(void)
{
	CHECK_EQ_I(faulty_sweep(scene), 1 + 6 + 6 + 3);
	/* pointers of the rows, and of items only slots on the device */
	CHECK_EQ_I(faulty_sweep(scene_of_some), 1 + 1 + 6 + 4 + 3);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(graph_without_rows_has_a_plan),
	    TEST(cuts_may_lie_anywhere),
	    TEST(plan_of_isolated_rows),
	    TEST(plan_of_a_hub_among_isolated_rows),
	    TEST(rows_may_end_at_cuts),
	    TEST(plans_of_random_graphs),
	    TEST(small_graphs_have_short_items_and_large_ones_long),
	    TEST(plans_of_some_rows),
	    TEST(failed_allocations_are_reported),
	};
	return RUN_TESTS(argc, argv, cases);
}
