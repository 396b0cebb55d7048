/* Decides from a sample of the entries whether neighbouring rows of a graph use neighbouring
 * columns, as they do after a good reordering of the nodes. Caches then profit if such rows are
 * processed together (HG__PARTS_NEAR in csr.h). */
#include "core/context.h"
#include "core/plan_parts.h"

/* The sample is STRIPS runs of STRIP consecutive entries, evenly spread: 64 places of the graph,
 * each of 4 kB of columns, which are copied from the device one after the other. If the places
 * differed as much as they can, the fraction would have a standard deviation of 1 / (2 sqrt(64)) =
 * 6 %, against 30 % from the limit to either kind of graph. An entry (i, j) is near if
 * the relative positions i / rows and j / cols differ by less than 1/REACH. Random columns are near
 * with probability 2/REACH, 3 %; in reddit-local and products-local 70 % are. The limit lies about
 * half way between these. What the choice costs or gains for graphs close to the limit was not
 * measured. */
enum { STRIPS = 64, STRIP = 1024, REACH = 64 };
#define NEAR_FRACTION 0.33

static int64_t row_of(const int64_t *rowptr, int64_t rows, int64_t entry)
{
	int64_t low = 0, high = rows;
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		*(rowptr[middle] <= entry ? &low : &high) = middle;
	}
	return low;
}

static int64_t count_near(int64_t rows, int64_t cols, const int64_t *rowptr, int64_t first,
                          int64_t count, const int32_t *col)
{
	int64_t row = row_of(rowptr, rows, first), near = 0;
	for (int64_t e = 0; e < count; e++) {
		while (rowptr[row + 1] <= first + e)
			row++;
		const double distance = (double)col[e] / (double)cols - (double)row / (double)rows;
		near += distance * (double)REACH < 1 && distance * (double)REACH > -1;
	}
	return near;
}

hg_status hg__plan_near(hg_context *ctx, int64_t rows, int64_t cols, const int64_t *rowptr,
                        const int32_t *device_col, int *near)
{
	const int64_t m = rowptr[rows], strip = m / STRIPS < STRIP ? m / STRIPS : STRIP;
	int64_t found = 0;
	for (int64_t k = 0; k < STRIPS && strip > 0; k++) {
		int32_t col[STRIP];
		const int64_t first = m / STRIPS * k;
		HG__TRY(ctx->backend->copy_out(ctx, col, device_col + first, (size_t)strip * sizeof *col));
		found += count_near(rows, cols, rowptr, first, strip, col);
	}
	*near = strip > 0 && (double)found >= NEAR_FRACTION * (double)(strip * STRIPS);
	return HG_OK;
}
