/* Gradients that overflow at the loss scale in force: the remedy is a scale at which all of them
 * fit, unless the partial sums are at fault. */
#include <stdio.h>
#include <string.h>

#include "unit/doctor_subject.h"

static const char *offered_scale(const hg_finding *f)
{
	for (int i = 0; i < f->remedies; i++)
		if (strstr(f->remedy[i].call, "init_scale"))
			return f->remedy[i].call;
	return "none";
}

/* ---- the largest gradient ---- */

static hg_var record_one_path(struct bench *b, hg_tape *tape)
{
	const hg_var x = x_of(b, tape);
	hg_tape_scope(tape, "o");
	return hg_mse(tape, hg_scale(tape, x, 1.0f), targets_of(b, tape), HG_NONE);
}

/* y = x + x, so the gradient of x is the sum of two contributions. */
static hg_var record_two_paths(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, x_of(b, tape), 1.0f);
	const hg_var y = hg_add(tape, hg_scale(tape, x, 1.0f), hg_scale(tape, x, 1.0f));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

enum { ROWS = 40, COLS = 2, FIRST = 4, LARGEST = 30 };

/* All targets are 0, except for -first in row FIRST and -largest in row LARGEST. */
static void subject_targets(struct subject *s, record_fn record, float scale, float first,
                            float largest)
{
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = scale;
	subject_open(s, policy, record);
	constant_tensor(&s->bench, ROWS, COLS, 0.0f);
	float target[ROWS][COLS] = {{0}};
	target[FIRST][0] = -first;
	target[LARGEST][1] = -largest;
	tensor_of(&s->bench, HG_F16, ROWS, COLS, target, HG_F32);
	subject_compile(s);
}

/* At scale 2^22 the gradients 2 target scale / 80 of the targets 2 and 100 are 209715 and 10485760.
 * Half of 65520 holds the larger one at 2^13. The first one would fit at 2^19. */
static void offered_scale_fits_the_largest_gradient(void)
{
	struct subject s;
	subject_targets(&s, record_one_path, 0x1p22f, 2.0f, 100.0f);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_LOSS_SCALE, 1, "mse", "o", FIRST, 0);
	CHECK(f->bad == 2 && fabs(f->wide - 209715.2) < 1.0);
	CHECK_MSG(fabs(f->largest - 10485760.0) < 16.0, "the largest is %g", f->largest);
	CHECK_STR(offered_scale(f), "policy.loss_scale.init_scale = 8192");
	subject_close(&s);
}

/* At scale 2^19 the contributions of the targets 2.6 and 4.9 are 34079 and 64225, which fit; their
 * doubles do not. Half of 65520 holds the larger one at 2^17. */
static void offered_scale_fits_the_largest_sum(void)
{
	struct subject s;
	subject_targets(&s, record_two_paths, 0x1p19f, 2.6f, 4.9f);
	const hg_finding *f = subject_examine(&s);
	CHECK(f != NULL);
	CHECK_STR(hg_cause_name(f->cause), "loss-scale");
	CHECK(f->row == FIRST && f->col == 0 && f->bad == 2);
	CHECK_MSG(fabs(f->wide - 68157.0) < 100.0, "the first is %g", f->wide);
	CHECK_MSG(fabs(f->largest - 128451.0) < 100.0, "the largest is %g", f->largest);
	CHECK_STR(offered_scale(f), "policy.loss_scale.init_scale = 131072");
	subject_close(&s);
}

/* ---- partial sums of gradients ---- */

/* Every node reads node 0 (itself included), divided by the number of its readers. */
static hg_var record_read_by_all(struct bench *b, hg_tape *tape)
{
	const hg_var x = x_of(b, tape);
	hg_tape_scope(tape, "msg");
	const hg_var y = hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_LEFT, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

enum { READERS = 128 };

static void subject_read_by_all(struct subject *s, hg_policy policy, float scale, float target)
{
	struct coo edges = coo_empty(READERS, READERS);
	for (int64_t i = 0; i < READERS; i++)
		coo_add(&edges, i, 0);
	policy.loss_scale.init_scale = scale;
	subject_open(s, policy, record_read_by_all);
	s->bench.graph = coo_graph(s->bench.ctx, edges);
	constant_tensor(&s->bench, READERS, 1, 0.0f);
	constant_tensor(&s->bench, READERS, 1, -target);
	subject_compile(s);
}

/* At scale 2^20 there are 128 gradients of 2 x 2 / 128 x 2^20 = 32768. Their sum is divided by 128
 * at the end, so it is 32768 and fits; but the partial sum overflows with the second term. Nothing
 * overflows at the scale that is offered. */
static void expect_partial_overflow(hg_policy policy)
{
	struct subject s;
	subject_read_by_all(&s, policy, 0x1p20f, 2.0f);
	const hg_finding *f = expect_finding(&s, HG_CAUSE_ACCUMULATION, 1, "spmm", "msg", 0, 0);
	const double largest = f->largest;
	float scale = 0.0f;
	CHECK(f->terms == READERS && f->partial_at == 2 && f->wide == 32768.0);
	CHECK(largest > 65536.0 && largest <= 0x1p22);
	CHECK_EQ_I(sscanf(offered_scale(f), "policy.loss_scale.init_scale = %f", &scale), 1);
	CHECK(largest * (double)scale <= 0x1p20 * 32760.0 &&
	      largest * (double)scale > 0x1p20 * 16380.0);
	subject_close(&s);
	subject_read_by_all(&s, policy, scale, 2.0f);
	expect_healthy(&s);
	subject_close(&s);
}

static void partial_sums_of_a_gradient_overflow(void)
{
	struct subject s;
	expect_partial_overflow(hg_policy_fp16_naive());
	expect_partial_overflow(hg_policy_fp16_discretized());
	subject_read_by_all(&s, hg_policy_fp16(), 0x1p20f, 2.0f); /* sums in f32 */
	expect_healthy(&s);
	subject_close(&s);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(offered_scale_fits_the_largest_gradient),
	    TEST(offered_scale_fits_the_largest_sum),
	    TEST(partial_sums_of_a_gradient_overflow),
	};
	return RUN_TESTS(argc, argv, cases);
}
