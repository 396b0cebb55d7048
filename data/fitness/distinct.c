/* Count the different values of a column, before and after rounding: f32 by sorting their bits,
 * halves by marking them among all 65,536. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/report.h"
#include "precision/half.h"

#define HALVES 65536

struct work {
	uint32_t *key, *sorted; /* [count] */
	int64_t count;
	int64_t *begin; /* [HALVES + 1] */
};

/* Collect the bits of the values that are finite and not 0. Returns the number of their different
 * halves. */
static int64_t collect(const struct hg__values *values, struct work *w)
{
	int64_t halves = 0;
	unsigned char *seen = (unsigned char *)w->begin;
	memset(seen, 0, HALVES);
	for (int64_t i = 0; i < values->count; i++) {
		const float x = values->at[i * values->stride];
		if (!isfinite(x) || x == 0.0f)
			continue;
		const hg_half half = hg__half_from_float(x), one = half == 0x8000u ? 0 : half;
		halves += !seen[one];
		seen[one] = 1;
		w->key[w->count++] = hg__float_bits(x);
	}
	return halves;
}

/* Sort by 16 bits of the keys; the order of equal ones stays. */
static void sort_by(struct work *w, int shift)
{
	memset(w->begin, 0, (HALVES + 1) * sizeof *w->begin);
	for (int64_t i = 0; i < w->count; i++)
		w->begin[(w->key[i] >> shift & 0xFFFFu) + 1]++;
	for (int k = 0; k < HALVES; k++)
		w->begin[k + 1] += w->begin[k];
	for (int64_t i = 0; i < w->count; i++)
		w->sorted[w->begin[w->key[i] >> shift & 0xFFFFu]++] = w->key[i];
	uint32_t *const other = w->key;
	w->key = w->sorted;
	w->sorted = other;
}

hg_status hg__count_distinct(const struct hg__values *values, hg_fitness_column *facts,
                             char *message)
{
	static const char what[] = "values of a column";
	struct work w = {.count = 0};
	hg_status status = hg__data_alloc(values->count, sizeof *w.key, what, (void **)&w.key, message);
	if (status == HG_OK)
		status = hg__data_alloc(values->count, sizeof *w.sorted, what, (void **)&w.sorted, message);
	if (status == HG_OK)
		status = hg__data_alloc(HALVES + 1, sizeof *w.begin, what, (void **)&w.begin, message);
	if (status == HG_OK) {
		facts->distinct_half = collect(values, &w);
		sort_by(&w, 0);
		sort_by(&w, 16);
		facts->distinct = w.count > 0;
		for (int64_t i = 1; i < w.count; i++)
			facts->distinct += w.key[i] != w.key[i - 1];
	}
	free(w.key);
	free(w.sorted);
	free(w.begin);
	return status;
}
