#include <math.h>

#include "doctor/sum.h"
#include "precision/half.h"

/* A sum in f16 once more, rounding by rounding (kernels.h, spmm):
 *
 *     naive        acc <- h(acc + h(f x)) over the row;  result h(acc after)
 *     discretized  acc <- h(acc + h(f x)) over a batch;  part <- h(part + h(acc after)) at its end;
 *                  total <- h(total + part) at the end of a part;  result total
 *
 * A sum of two halves is exact in f32, so that h of it is one rounding. What leaves a running sum
 * as it was counts as ignored: an addend, or the sum of a batch or of a part, by its size in the
 * result. A batch of 64 ignores at most 64 * 2^-11 = 3 % of the mass of its addends.
 *
 * Told is the running sum with which an addend overflowed, else the largest, in the measure of the
 * result, that one did not change: what it needed to count is known of that. */

/* after: the factor that leads from this sum to the result. */
struct running {
	float sum, after;
	int64_t taken, ignored; /* addends in it; those of them that changed nothing */
};

struct trace {
	struct hg__half_sum *half;
	int64_t taken;
	double ignored, missing; /* what changed nothing: its sizes, and its sum */
	double squares;          /* of what rounding did to the rest */
	struct curve *curve;     /* NULL: nobody draws it */
};

/* Points of the sum on its way. */
struct curve {
	hg_running *point;
	int points;
	int64_t at; /* a term before and behind which there is one */
	double wide;
};

/* What joins a running sum: `taken` addends, of which `ignored` have changed nothing before;
 * value: in the result. */
struct joining {
	float x;
	double value;
	int64_t taken, ignored;
};

static void tell(struct trace *t, const struct running *r, int64_t at)
{
	t->half->at = at;
	t->half->partial = (double)r->sum;
	t->half->after = (double)r->after;
}

static double told(const struct hg__half_sum *half)
{
	return fabs(half->partial * half->after);
}

/* r <- h(r + x) */
static void take(struct trace *t, struct running *r, struct joining in)
{
	const float next = hg__half_round(r->sum + in.x);
	const int stays = next == r->sum && in.x != 0.0f;
	const double off = ((double)next - ((double)r->sum + (double)in.x)) * (double)r->after;
	t->ignored += stays ? fabs(in.value) : 0.0;
	t->missing += stays ? in.value : 0.0;
	t->squares += stays || !isfinite(off) ? 0.0 : off * off;
	r->taken += in.taken;
	r->ignored += stays ? in.taken : in.ignored;
	if (t->half->overflowed)
		return;
	if (!isfinite(next) || !isfinite(in.x)) {
		t->half->overflowed = 1;
		tell(t, r, t->taken);
	} else if (stays && fabs((double)(r->sum * r->after)) > told(t->half)) {
		tell(t, r, t->taken - in.taken);
	}
	r->sum = next;
}

/* Is there a point behind `taken` of `count` terms? At most 1 + EVEN + 2 of them. */
enum { EVEN = HG__RUNNING - 4 };
static int is_point(const struct curve *c, int64_t taken, int64_t count)
{
	return taken == 1 || taken == c->at || taken == c->at - 1 ||
	       taken * EVEN / count != (taken - 1) * EVEN / count;
}

/* Term k has been taken in, and the f16 sum has come to `half`. */
static void draw(const struct hg__sum *sum, int64_t k, double half, struct curve *c)
{
	if (!c)
		return;
	c->wide += sum->addend[k].factor * sum->addend[k].operand;
	if (is_point(c, k + 1, sum->count))
		c->point[c->points++] = (hg_running){k + 1, half, c->wide};
}

/* The next addend joins. */
static void take_addend(const struct hg__sum *sum, int64_t k, struct trace *t, struct running *r)
{
	const struct hg__addend *a = &sum->addend[k];
	t->taken = k + 1;
	take(t, r,
	     (struct joining){sum->products ? hg__half_round(a->f * a->x) : a->x,
	                      a->factor * a->operand, 1, 0});
}

/* A running sum joins another, and begins again. */
static void take_sum(struct trace *t, struct running *r, struct running *from)
{
	const float x = from->after == 1.0f ? from->sum : hg__half_round(from->sum * from->after);
	take(t, r, (struct joining){x, (double)x, from->taken, from->ignored});
	*from = (struct running){.after = from->after};
}

static struct running naive(const struct hg__sum *sum, struct trace *t)
{
	struct running row = {.after = sum->after};
	for (int64_t k = 0; k < sum->count; k++) {
		take_addend(sum, k, t, &row);
		draw(sum, k, (double)row.sum * (double)row.after, t->curve);
	}
	return row;
}

static struct running discretized(const struct hg__sum *sum, struct trace *t)
{
	struct running row = {.after = 1.0f}, part = {.after = 1.0f}, batch = {.after = sum->after};
	for (int64_t k = 0; k < sum->count; k++) {
		const int cut = k + 1 == sum->count ? 2 : sum->addend[k].cut;
		take_addend(sum, k, t, &batch);
		if (cut)
			take_sum(t, &part, &batch);
		if (cut == 2)
			take_sum(t, &row, &part);
		draw(sum, k, (double)row.sum + (double)part.sum + (double)batch.sum * (double)batch.after,
		     t->curve);
	}
	return row;
}

static struct running in_halves(const struct hg__sum *sum, struct trace *t)
{
	if (sum->accumulate == HG_ACC_F16_NAIVE)
		return naive(sum, t);
	if (sum->accumulate == HG_ACC_F16_DISCRETIZED)
		return discretized(sum, t);
	for (int64_t k = 0; k < sum->count; k++)
		draw(sum, k, (double)NAN, t->curve);
	return (struct running){0};
}

void hg__sum_in_halves(const struct hg__sum *sum, struct hg__half_sum *half)
{
	struct trace t = {.half = half};
	*half = (struct hg__half_sum){.after = 1.0};
	const struct running row = in_halves(sum, &t);
	half->ignored = row.ignored;
	half->share = sum->mass > 0.0 ? t.ignored / sum->mass : 0.0;
	half->missing = t.missing;
	half->noise = sqrt(t.squares);
}

/* ---- the same in exact numbers ---- */

static void grow(double *sum, double x, double *most)
{
	*sum += x;
	*most = fmax(*most, fabs(*sum));
}

double hg__sum_most(const struct hg__sum *sum)
{
	const int batches = sum->accumulate == HG_ACC_F16_DISCRETIZED;
	double batch = 0.0, part = 0.0, row = 0.0, most = fabs(sum->exact);
	for (int64_t k = 0; k < sum->count && sum->accumulate != HG_ACC_F32; k++) {
		const struct hg__addend *a = &sum->addend[k];
		const int cut = !batches ? 0 : k + 1 == sum->count ? 2 : a->cut;
		grow(&batch, (sum->products ? (double)a->f : 1.0) * (double)a->x, &most);
		if (!cut)
			continue;
		grow(&part, batch * (double)sum->after, &most);
		batch = 0.0;
		if (cut < 2)
			continue;
		grow(&row, part, &most);
		part = 0.0;
	}
	return most;
}

int hg__sum_running(const struct hg__sum *sum, int64_t at, hg_running *points)
{
	struct hg__half_sum half = {.after = 1.0};
	struct curve curve = {.point = points, .at = at};
	struct trace t = {.half = &half, .curve = &curve};
	(void)in_halves(sum, &t);
	return curve.points;
}
