#include <math.h>

#include "doctor/sum.h"
#include "precision/half.h"

/* A sum in f16 once more, rounding by rounding (kernels.h, spmm):
 *
 *     naive        acc <- h(acc + h(f x)) over the row;  result h(acc after)
 *     discretized  acc <- h(acc + h(f x)) over a batch;  part <- h(part + h(acc after)) at its end;  total <- h(total + part) at the end of a part;  result total
 *
 * A sum of two halves is exact in f32, so that h of it is one rounding. What leaves a running sum as it was counts as ignored: an addend, or the sum of a batch or of a part, by
 * its size in the result. A batch of 64 ignores at most 64 * 2^-11 = 3 % of the mass of its addends. */

static float h(float x)
{
	return hg__half_to_float(hg__half_from_float(x));
}

struct running {
	float sum;
	int told; /* the one whose growth is told */
};

struct trace {
	struct hg__half_sum *half;
	int64_t taken;
	double ignored;
};

/* sum <- h(sum + x); size: of x in the result. */
static void take(struct trace *t, struct running *r, float x, double size)
{
	const float next = h(r->sum + x);
	const int stays = next == r->sum;
	t->ignored += stays && x != 0.0f ? size : 0.0;
	if (t->half->overflowed)
		return;
	if (!isfinite(next) || !isfinite(x)) {
		t->half->overflowed = 1;
		t->half->at = t->taken;
		t->half->partial = (double)r->sum;
	} else if (!stays && r->told) {
		t->half->at = t->taken;
		t->half->partial = (double)next;
	}
	r->sum = next;
}

/* The next addend joins. */
static void take_addend(const struct hg__sum *sum, int64_t k, struct trace *t, struct running *r)
{
	const struct hg__addend *a = &sum->addend[k];
	t->taken = k + 1;
	take(t, r, sum->products ? h(a->f * a->x) : a->x, fabs(a->factor * a->operand));
}

static void naive(const struct hg__sum *sum, struct trace *t)
{
	struct running row = {.told = 1};
	for (int64_t k = 0; k < sum->count; k++)
		take_addend(sum, k, t, &row);
}

static void discretized(const struct hg__sum *sum, struct trace *t)
{
	struct running row = {0}, part = {.told = 1}, batch = {0};
	for (int64_t k = 0; k < sum->count; k++) {
		const int cut = k + 1 == sum->count ? 2 : sum->addend[k].cut;
		take_addend(sum, k, t, &batch);
		if (cut) {
			const float scaled = h(batch.sum * sum->after);
			take(t, &part, scaled, fabs((double)scaled));
			batch = (struct running){0};
		}
		if (cut == 2) {
			take(t, &row, part.sum, fabs((double)part.sum));
			part = (struct running){.told = 1};
		}
	}
}

void hg__sum_in_halves(const struct hg__sum *sum, struct hg__half_sum *half)
{
	struct trace t = {.half = half};
	*half = (struct hg__half_sum){0};
	if (sum->accumulate == HG_ACC_F16_NAIVE)
		naive(sum, &t);
	else if (sum->accumulate == HG_ACC_F16_DISCRETIZED)
		discretized(sum, &t);
	half->ignored = sum->mass > 0.0 ? t.ignored / sum->mass : 0.0;
}
