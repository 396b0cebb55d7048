#include <math.h>

#include "doctor/check.h"

/* A rescaled result is stored x 2^-k (hg_policy.replan), so that its largest elements fit; its
 * smallest ones are rounded to zero instead. They are a small part of the sum of |wide|, so
 * underflow.c sees no loss. But without the power of two f16 would have held them, and f32 would
 * have held all.
 *
 *     UNDERFLOW  more than half of the elements that f16 could hold are 0 because of the power of
 *                two alone */
#define SHARE_ZEROED 0.5

struct rescaled {
	double least;         /* the least that f16 could hold, on the scale of what is stored */
	int64_t held, zeroed; /* elements that f16 could hold; those of them stored as 0 */
	struct hg__deviation largest; /* the largest of the zeroed ones */
};

static void count_rows(const struct hg__fetched *stored, const struct hg__fetched *wide,
                       int64_t first, struct rescaled *found)
{
	for (int64_t r = 0; r < stored->mat.rows; r++)
		for (int64_t c = 0; c < stored->mat.cols; c++) {
			const double x = hg__fetched_at(wide, r, c), size = fabs(x);
			if (!(size > found->least))
				continue;
			found->held++;
			if (hg__fetched_at(stored, r, c) != 0.0)
				continue;
			found->zeroed++;
			if (size > found->largest.by)
				found->largest = (struct hg__deviation){first + r, c, 0.0, x, size};
		}
}

static hg_status count_zeroed(const struct hg__replay *replay, const struct hg__result *r,
                              struct rescaled *found)
{
	hg_status status = HG_OK;
	for (int64_t first = 0; first < r->stored.rows && status >= 0;) {
		const int64_t rows = hg__rows_to_fetch(&r->wide, first);
		struct hg__fetched stored = {0}, wide = {0};
		status = hg__fetch_rows(replay->ctx, &r->stored, first, rows, &stored);
		if (status >= 0)
			status = hg__fetch_rows(replay->ctx, &r->wide, first, rows, &wide);
		if (status >= 0)
			count_rows(&stored, &wide, first, found);
		hg__fetched_free(replay->ctx, &wide);
		hg__fetched_free(replay->ctx, &stored);
		first += rows;
	}
	return status;
}

hg_status hg__find_rescaled_underflow(struct hg__replay *replay, const struct hg__result *r,
                                      const struct hg__scan *seen, int *underflows)
{
	const int shift = r->operand == HG__OUTPUT ? replay->tape->recording.value[r->value].shift : 0;
	struct rescaled found = {.least = ldexp(hg_dtype_get(HG_F16)->min_subnormal, -1 - shift)};
	if (shift <= 0 || r->stored.dtype != HG_F16 || seen->nonfinite || !seen->zeroed)
		return HG_OK;
	HG__TRY(count_zeroed(replay, r, &found));
	*underflows = (double)found.zeroed > SHARE_ZEROED * (double)found.held;
	return *underflows ? hg__report_underflow(replay, r, &found.largest, found.zeroed) : HG_OK;
}
