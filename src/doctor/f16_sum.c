#include <math.h>

#include "doctor/sum.h"
#include "precision/half.h"

/* A sum in f16 computed once more, rounding by rounding (kernels.h, spmm). h rounds to f16.
 *
 *     naive        acc <- h(acc + h(f x)) over the row;      result h(acc last_factor)
 *     discretized  acc <- h(acc + h(f x)) over a batch;
 *                  part <- h(part + h(acc last_factor)) at the end of a batch;
 *                  row <- h(row + part) at the end of a part;  result row
 *
 * The sum of two halves is exact in f32, so h of it is one rounding. An addend is ignored if the
 * running sum is the same after it; so is the sum of a whole batch or part that leaves the next sum
 * as it was. A batch of 64 ignores at most 64 * 2^-11 = 3 % of the |.| of its addends.
 *
 * Of all running sums one is reported: the one with which an addend overflowed; if none did, the
 * largest one (on the scale of the result) that ignored an addend, because it shows how large an
 * addend had to be. */

struct running_sum {
	float sum, factor; /* sum * factor is on the scale of the result */
	int64_t taken, ignored;
};

/* The points of the running sum that are kept for a curve. */
struct curve {
	hg_running *point;
	int points;
	int64_t at; /* there is a point before this term and one after it */
	double wide;
};

/* The whole computation so far. */
struct trace {
	struct hg__f16_sum *f16;
	int64_t taken;
	double ignored_abs_sum, ignored_sum;
	double squared_errors; /* of all roundings that ignored nothing */
	struct curve *curve;   /* NULL: no points are kept */
};

/* What is added to a running sum: an addend, or the sum of a batch or part. */
struct summand {
	float x;
	double value;           /* on the scale of the result */
	int64_t taken, ignored; /* the addends in it, and those of them ignored so far */
};

static void report_partial(struct trace *t, const struct running_sum *r, int64_t at)
{
	t->f16->partial_at = at;
	t->f16->partial = (double)r->sum;
	t->f16->partial_factor = (double)r->factor;
}

static double reported_size(const struct hg__f16_sum *f16)
{
	return fabs(f16->partial * f16->partial_factor);
}

/* r <- h(r + x) */
static void add(struct trace *t, struct running_sum *r, struct summand s)
{
	const float next = hg__half_round(r->sum + s.x);
	const int is_ignored = next == r->sum && s.x != 0.0f;
	const double error = ((double)next - ((double)r->sum + (double)s.x)) * (double)r->factor;
	t->ignored_abs_sum += is_ignored ? fabs(s.value) : 0.0;
	t->ignored_sum += is_ignored ? s.value : 0.0;
	t->squared_errors += is_ignored || !isfinite(error) ? 0.0 : error * error;
	r->taken += s.taken;
	r->ignored += is_ignored ? s.taken : s.ignored;
	if (t->f16->overflowed)
		return;
	if (!isfinite(next) || !isfinite(s.x)) {
		t->f16->overflowed = 1;
		report_partial(t, r, t->taken);
	} else if (is_ignored && fabs((double)(r->sum * r->factor)) > reported_size(t->f16)) {
		report_partial(t, r, t->taken - s.taken);
	}
	r->sum = next;
}

static void add_addend(const struct hg__sum *sum, int64_t k, struct trace *t, struct running_sum *r)
{
	const struct hg__addend *a = &sum->addend[k];
	t->taken = k + 1;
	add(t, r,
	    (struct summand){sum->products ? hg__half_round(a->f * a->x) : a->x, a->factor * a->operand,
	                     1, 0});
}

/* Adds a running sum to another one, and resets it to 0. */
static void add_running_sum(struct trace *t, struct running_sum *r, struct running_sum *from)
{
	const float x = from->factor == 1.0f ? from->sum : hg__half_round(from->sum * from->factor);
	add(t, r, (struct summand){x, (double)x, from->taken, from->ignored});
	*from = (struct running_sum){.factor = from->factor};
}

/* ---- points of the curve ---- */

/* Is there a point after `taken` of `count` terms? There are at most 1 + EVENLY_SPACED + 2 of
 * them. */
enum { EVENLY_SPACED = HG__CURVE_POINTS - 4 };
static int is_point(const struct curve *c, int64_t taken, int64_t count)
{
	return taken == 1 || taken == c->at || taken == c->at - 1 ||
	       taken * EVENLY_SPACED / count != (taken - 1) * EVENLY_SPACED / count;
}

/* Term k has been added; the f16 sum is now `half`. */
static void keep_point(const struct hg__sum *sum, int64_t k, double half, struct curve *c)
{
	if (!c)
		return;
	c->wide += sum->addend[k].factor * sum->addend[k].operand;
	if (is_point(c, k + 1, sum->count))
		c->point[c->points++] = (hg_running){k + 1, half, c->wide};
}

/* ---- the two kinds of f16 sums ---- */

static struct running_sum naive(const struct hg__sum *sum, struct trace *t)
{
	struct running_sum row = {.factor = sum->last_factor};
	for (int64_t k = 0; k < sum->count; k++) {
		add_addend(sum, k, t, &row);
		keep_point(sum, k, (double)row.sum * (double)row.factor, t->curve);
	}
	return row;
}

static int ends_after(const struct hg__sum *sum, int64_t k)
{
	return k + 1 == sum->count ? HG__ENDS_PART : sum->addend[k].ends;
}

static struct running_sum discretized(const struct hg__sum *sum, struct trace *t)
{
	struct running_sum row = {.factor = 1.0f}, part = {.factor = 1.0f},
	                   batch = {.factor = sum->last_factor};
	for (int64_t k = 0; k < sum->count; k++) {
		const int ends = ends_after(sum, k);
		add_addend(sum, k, t, &batch);
		if (ends)
			add_running_sum(t, &part, &batch);
		if (ends == HG__ENDS_PART)
			add_running_sum(t, &row, &part);
		keep_point(sum, k,
		           (double)row.sum + (double)part.sum + (double)batch.sum * (double)batch.factor,
		           t->curve);
	}
	return row;
}

/* A sum in f32 has only the points of the exact sum. */
static struct running_sum compute(const struct hg__sum *sum, struct trace *t)
{
	if (sum->accumulate == HG_ACC_F16_NAIVE)
		return naive(sum, t);
	if (sum->accumulate == HG_ACC_F16_DISCRETIZED)
		return discretized(sum, t);
	for (int64_t k = 0; k < sum->count; k++)
		keep_point(sum, k, (double)NAN, t->curve);
	return (struct running_sum){0};
}

void hg__sum_in_f16(const struct hg__sum *sum, struct hg__f16_sum *f16)
{
	struct trace t = {.f16 = f16};
	*f16 = (struct hg__f16_sum){.partial_factor = 1.0};
	const struct running_sum row = compute(sum, &t);
	f16->ignored = row.ignored;
	f16->ignored_share = sum->abs_sum > 0.0 ? t.ignored_abs_sum / sum->abs_sum : 0.0;
	f16->ignored_sum = t.ignored_sum;
	f16->rounding_noise = sqrt(t.squared_errors);
}

int hg__sum_curve(const struct hg__sum *sum, int64_t at, hg_running *points)
{
	struct hg__f16_sum f16 = {.partial_factor = 1.0};
	struct curve curve = {.point = points, .at = at};
	struct trace t = {.f16 = &f16, .curve = &curve};
	(void)compute(sum, &t);
	return curve.points;
}

/* ---- the running sums in exact arithmetic ---- */

static void add_exact(double *sum, double x, double *largest)
{
	*sum += x;
	*largest = fmax(*largest, fabs(*sum));
}

double hg__sum_largest_partial(const struct hg__sum *sum)
{
	const int has_batches = sum->accumulate == HG_ACC_F16_DISCRETIZED;
	double batch = 0.0, part = 0.0, row = 0.0, largest = fabs(sum->exact);
	for (int64_t k = 0; k < sum->count && sum->accumulate != HG_ACC_F32; k++) {
		const struct hg__addend *a = &sum->addend[k];
		const int ends = has_batches ? ends_after(sum, k) : HG__ENDS_NOTHING;
		add_exact(&batch, (sum->products ? (double)a->f : 1.0) * (double)a->x, &largest);
		if (ends == HG__ENDS_NOTHING)
			continue;
		add_exact(&part, batch * (double)sum->last_factor, &largest);
		batch = 0.0;
		if (ends == HG__ENDS_BATCH)
			continue;
		add_exact(&row, part, &largest);
		part = 0.0;
	}
	return largest;
}
