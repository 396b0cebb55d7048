/* Random splits, of all rows or class by class. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"

enum { NONE = 3 };

/* What both splits need: the drawn rows, and the set of each row, which is NONE first. */
struct draw {
	struct hg__drawn *rows;
	int64_t count;
	int8_t *set;
};

static hg_status begin(const hg_dataset *d, uint64_t seed, int by_class, struct draw *w,
                       char *message)
{
	const int64_t n = hg__data_labelled(d);
	*w = (struct draw){NULL, 0, NULL};
	HG__TRY(hg__draw(d, seed, by_class, &w->rows, &w->count, message));
	const hg_status status = hg__data_alloc(n, 1, "a split", (void **)&w->set, message);
	if (status == HG_OK)
		memset(w->set, NONE, (size_t)n);
	return status;
}

static hg_status finish(hg_dataset *d, struct draw *w, hg_status status, char *message)
{
	if (status == HG_OK)
		status = hg__set_splits(d, w->set, message);
	free(w->rows);
	free(w->set);
	return status;
}

hg_status hg_dataset_split_random(hg_dataset *d, const double *fraction, uint64_t seed,
                                  char *message)
{
	struct draw w;
	double sum = 0;
	if (!d || !fraction)
		return hg__data_fail(message, HG_ERR_ARG, "split_random: %s is NULL",
		                     d ? "fraction" : "dataset");
	for (int k = 0; k < 3; k++) {
		sum += fraction[k];
		/* three decimal fractions of sum 1 may add up to slightly more */
		if (!(fraction[k] >= 0) || !(sum <= 1 + 1e-9))
			return hg__data_fail(message, HG_ERR_ARG,
			                     "split %g/%g/%g: expected fractions from 0, at most 1 in "
			                     "sum",
			                     fraction[0], fraction[1], fraction[2]);
	}
	hg_status status = begin(d, seed, 0, &w, message);
	sum = 0;
	for (int64_t k = 0, from = 0; status == HG_OK && k < 3; k++) {
		sum += fraction[k];
		const double end = floor(sum * (double)w.count + 0.5);
		const int64_t to = end < (double)w.count ? (int64_t)end : w.count;
		for (; from < to; from++)
			w.set[w.rows[from].row] = (int8_t)k;
	}
	return finish(d, &w, status, message);
}

/* The rows from..to are one class: deal the wanted number to each set. */
static hg_status deal(const struct draw *w, int64_t from, int64_t to, const int64_t count[3],
                      char *message)
{
	int64_t wanted[3], fixed = 0;
	for (int k = 0; k < 3; k++)
		fixed += count[k] > 0 ? count[k] : 0;
	if (fixed > to - from)
		return hg__data_fail(message, HG_ERR_STATE,
		                     "class %" PRId32 " has %" PRId64 " rows, expected at least %" PRId64,
		                     w->rows[from].label, to - from, fixed);
	for (int k = 0; k < 3; k++)
		wanted[k] = count[k] < 0 ? to - from - fixed : count[k];
	for (int k = 0; k < 3; k++)
		for (int64_t taken = 0; taken < wanted[k]; taken++)
			w->set[w->rows[from++].row] = (int8_t)k;
	return HG_OK;
}

hg_status hg_dataset_split_per_class(hg_dataset *d, const int64_t *count, uint64_t seed,
                                     char *message)
{
	struct draw w;
	int rest = 0, bad = 0;
	if (!d || !count)
		return hg__data_fail(message, HG_ERR_ARG, "split_per_class: %s is NULL",
		                     d ? "count" : "dataset");
	for (int k = 0; k < 3; k++) {
		rest += count[k] == -1;
		bad |= count[k] < -1 || count[k] > INT32_MAX;
	}
	if (bad || rest > 1)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "split %" PRId64 "/%" PRId64 "/%" PRId64
		                     ": expected numbers from 0, of which one may be the rest (-1)",
		                     count[0], count[1], count[2]);
	if (!d->label)
		return hg__data_fail(message, HG_ERR_STATE, "the dataset has no labels to split by");
	hg_status status = begin(d, seed, 1, &w, message);
	for (int64_t from = 0, to = 0; status == HG_OK && from < w.count; from = to) {
		while (to < w.count && w.rows[to].label == w.rows[from].label)
			to++;
		status = deal(&w, from, to, count, message);
	}
	return finish(d, &w, status, message);
}
