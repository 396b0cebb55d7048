/* Lists the parts of a plan in classes by length. Within the two classes of longest parts, the
 * longest come first, in steps of 8 entries. This is a counting sort, so parts of equal length stay
 * in the order of their rows. */
#include "core/plan_parts.h"

#include "core/buffer.h"

int hg__part_class(int64_t entries)
{
	static const int64_t most[HG__PART_CLASSES] = {INT64_MAX, 256, 8, 4, 2, 1, 0};
	int class = HG__PART_CLASSES - 1;
	while (entries > most[class])
		class --;
	return class;
}

int64_t hg__parts_count(int64_t items, const int64_t *item_edge, const int32_t *item_row,
                        int64_t rows, const int64_t *rowptr)
{
	int64_t count = rows;
	for (int64_t k = 0; k < items; k++)
		count += item_edge[k + 1] > rowptr[item_row[k + 1]] && item_edge[k + 1] > item_edge[k];
	return count;
}

static struct hg__plan_part part_of(int64_t begin, int64_t end, int64_t row, int64_t slot)
{
	const struct hg__plan_part part = {(uint64_t)begin | (uint64_t)(end - begin) << HG__PART_BITS,
	                                   (int32_t)row, (int32_t)slot};
	return part;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Writes all parts in the order of their entries. */
static void list_parts(int64_t items, const int64_t *item_edge, const int32_t *item_row,
                       const int64_t *rowptr, struct hg__plan_part *part)
{
	for (int64_t k = 0; k < items; k++) {
		const int64_t first = item_row[k], last = item_row[k + 1],
		              tail = larger(rowptr[last], item_edge[k]);
		for (int64_t r = first; r < last; r++)
			*part++ = part_of(larger(rowptr[r], item_edge[k]), rowptr[r + 1], r,
			                  rowptr[r] < item_edge[k] ? 2 * k : -1);
		if (item_edge[k + 1] > tail)
			*part++ = part_of(tail, item_edge[k + 1], last, 2 * k + 1);
	}
}

/* Lengths in steps of 8 entries; longer parts share the last step. Parts of hg__plan_build need 193
 * steps: they have at most 1024 + 512 + 1 entries (item_work + reach + 1). */
enum { MOST_STEPS = 255 };

static int64_t key_of(const struct hg__plan_part *part)
{
	const int64_t steps = (hg__part_entries(part) + 7) / 8;
	return MOST_STEPS - (steps < MOST_STEPS ? steps : MOST_STEPS);
}

/* Appends the parts of one class among parts [from, to) to `out`, from index `at`; the longest
 * first if `sorted`. Returns the index behind the last one. */
static int64_t append_class(const struct hg__plan_part *in, int64_t from, int64_t to, int class,
                            int sorted, struct hg__plan_part *out, int64_t at)
{
	int64_t next[MOST_STEPS + 2] = {0};
	for (int64_t i = from; i < to; i++)
		if (hg__part_class(hg__part_entries(&in[i])) == class)
			next[sorted ? key_of(&in[i]) + 1 : 1]++;
	for (int k = 0; k <= MOST_STEPS; k++)
		next[k + 1] += next[k];
	for (int64_t i = from; i < to; i++)
		if (hg__part_class(hg__part_entries(&in[i])) == class)
			out[at + next[sorted ? key_of(&in[i]) : 0]++] = in[i];
	return at + next[MOST_STEPS];
}

/* Returns where the block ends that begins at part `from` and has about `most` entries. */
static int64_t block_end(const struct hg__plan_part *part, int64_t from, int64_t parts,
                         int64_t most)
{
	int64_t entries = 0, i = from;
	while (i < parts && entries < most)
		entries += hg__part_entries(&part[i++]);
	return i;
}

/* Entries of a block where neighbouring rows use the same columns. Measured on an H200 in one run,
 * f16, F = 64, unit weights, in ms:
 *
 *     block             30,000    250,000    2 M    all entries
 *     reddit-local        1.20       1.11   1.25           1.31
 *
 *     block              3,000     26,000    200,000    all entries
 *     products-local      1.81       1.61       1.57           2.15
 *
 * Where neighbouring rows do not use the same columns, all entries are one block:
 *
 *     block             30,000    250,000    2 M    all entries
 *     reddit-like         1.65       1.62   1.59           1.51 */
#define NEAR_BLOCK (1 << 18)

hg_status hg__parts_order(hg_context *ctx, const struct hg__part_source *s, int near,
                          struct hg__plan_part *out, int64_t first[HG__PART_CLASSES + 1])
{
	struct hg__buffer listed;
	HG__TRY(hg__buffer_host(ctx, s->parts, sizeof(struct hg__plan_part), "plan: parts", &listed));
	const struct hg__plan_part *in = listed.data;
	list_parts(s->items, s->item_edge, s->item_row, s->rowptr, listed.data);
	int64_t at = 0;
	for (int class = 0; class < HG__PART_CLASSES; class ++) {
		const int sorted = class < HG__PART_SORTED;
		first[class] = at;
		for (int64_t from = 0, to; from < s->parts; from = to) {
			to = near && sorted ? block_end(in, from, s->parts, NEAR_BLOCK) : s->parts;
			at = append_class(in, from, to, class, sorted, out, at);
		}
	}
	first[HG__PART_CLASSES] = at;
	hg__buffer_free(ctx, &listed);
	return HG_OK;
}
