/* Gradients that overflow at the loss scale in force: which scale all of them fit at, and what is
 * no matter of the scale but of the way of adding. */
#include <stdio.h>

#include "unit/ward.h"

static const char *scale_remedy(const hg_finding *f)
{
	for (int i = 0; i < f->remedies; i++)
		if (strstr(f->remedy[i].call, "init_scale"))
			return f->remedy[i].call;
	return "none";
}

static hg_var targets_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_input(tape, b->tensor[1], "targets", -1.0);
}

/* ---- the largest gradient, not the first ---- */

static hg_var scaled_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_variable(tape, b->tensor[0], "x");
	hg_tape_scope(tape, "o");
	return hg_mse(tape, hg_scale(tape, x, 1.0f), targets_of(b, tape), HG_NONE);
}

/* y = x + x, each gradient a part of the sum. */
static hg_var two_ways_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_scale(tape, hg_tape_variable(tape, b->tensor[0], "x"), 1.0f);
	const hg_var y = hg_add(tape, hg_scale(tape, x, 1.0f), hg_scale(tape, x, 1.0f));
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

enum { ROWS = 40, COLS = 2, FIRST = 4, LARGEST = 30 };

static void targets_apart(struct ward *w, scene_fn scene, float scale, float first, float largest)
{
	hg_policy policy = hg_policy_fp16();
	policy.loss_scale.init_scale = scale;
	ward_open(w, policy, scene);
	constant_tensor(&w->bench, ROWS, COLS, 0.0f);
	float target[ROWS][COLS] = {{0}};
	target[FIRST][0] = -first;
	target[LARGEST][1] = -largest;
	tensor_of(&w->bench, HG_F16, ROWS, COLS, target, HG_F32);
	ward_compile(w);
}

/* Gradients 2 t S / 80 of t = 2 and 100 at S = 2^22: 209715 and 10485760. Half of 65520 holds the
 * larger one at 2^13, and the first one already at 2^19. */
static void the_scale_fits_the_largest_gradient(void)
{
	struct ward w;
	targets_apart(&w, scaled_scene, 0x1p22f, 2.0f, 100.0f);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_LOSS_SCALE, 1, "mse", "o", FIRST, 0);
	CHECK(f->bad == 2 && fabs(f->wide - 209715.2) < 1.0);
	CHECK_MSG(fabs(f->largest - 10485760.0) < 16.0, "the largest is %g", f->largest);
	CHECK_STR(scale_remedy(f), "policy.loss_scale.init_scale = 8192");
	ward_close(&w);
}

/* The parts 2 t S / 80 of t = 2.6 and 4.9 at S = 2^19, 34079 and 64225, fit; their doubles do
 * not, and half of 65520 holds the larger one at 2^17. */
static void the_scale_fits_the_largest_sum(void)
{
	struct ward w;
	targets_apart(&w, two_ways_scene, 0x1p19f, 2.6f, 4.9f);
	const hg_finding *f = ward_examine(&w);
	CHECK(f != NULL);
	CHECK_STR(hg_cause_name(f->cause), "loss-scale");
	CHECK(f->row == FIRST && f->col == 0 && f->bad == 2);
	CHECK_MSG(fabs(f->wide - 68157.0) < 100.0, "the first is %g", f->wide);
	CHECK_MSG(fabs(f->largest - 128451.0) < 100.0, "the largest is %g", f->largest);
	CHECK_STR(scale_remedy(f), "policy.loss_scale.init_scale = 131072");
	ward_close(&w);
}

/* ---- sums of gradients that overflow on their way ---- */

/* Node 0 is heard by all others and itself, and what they hear is divided by how many hear it. */
static hg_var heard_scene(struct bench *b, hg_tape *tape)
{
	const hg_var x = hg_tape_variable(tape, b->tensor[0], "x");
	hg_tape_scope(tape, "msg");
	const hg_var y = hg_spmm(tape, b->graph, x, HG_NONE, HG_NORM_LEFT, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, targets_of(b, tape), HG_NONE);
}

enum { READERS = 128 };
static hg_graph *heard_by(hg_context *ctx)
{
	int32_t dst[READERS], src[READERS] = {0};
	hg_graph *graph = NULL;
	for (int32_t i = 0; i < READERS; i++)
		dst[i] = i;
	CHECK_OK(hg_graph_from_coo(ctx, READERS, READERS, READERS, dst, src, NULL, NULL, &graph));
	return graph;
}

static void heard_ward(struct ward *w, hg_policy policy, float scale, float target)
{
	policy.loss_scale.init_scale = scale;
	ward_open(w, policy, heard_scene);
	w->bench.graph = heard_by(w->bench.ctx);
	constant_tensor(&w->bench, READERS, 1, 0.0f);
	constant_tensor(&w->bench, READERS, 1, -target);
	ward_compile(w);
}

/* 128 gradients of 2 x 2 / 128 x 2^20 = 32768, divided by 128 behind their sum: it is 32768, and
 * fits. So it is the partial sum that does not, with its second term; at the scale that is
 * advised nothing overflows. */
static void lost_on_its_way(hg_policy policy)
{
	struct ward w;
	heard_ward(&w, policy, 0x1p20f, 2.0f);
	const hg_finding *f = ward_expect(&w, HG_CAUSE_ACCUMULATION, 1, "spmm", "msg", 0, 0);
	const double largest = f->largest;
	float scale = 0.0f;
	CHECK(f->terms == READERS && f->partial_at == 2 && f->wide == 32768.0);
	CHECK(largest > 65536.0 && largest <= 0x1p22);
	CHECK_EQ_I(sscanf(scale_remedy(f), "policy.loss_scale.init_scale = %f", &scale), 1);
	CHECK(largest * (double)scale <= 0x1p20 * 32760.0 &&
	      largest * (double)scale > 0x1p20 * 16380.0);
	ward_close(&w);
	heard_ward(&w, policy, scale, 2.0f);
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

static void a_gradient_that_fits_is_lost_on_its_way(void)
{
	struct ward w;
	lost_on_its_way(hg_policy_fp16_naive());
	lost_on_its_way(hg_policy_fp16_discretized());
	heard_ward(&w, hg_policy_fp16(), 0x1p20f, 2.0f); /* sums in f32 */
	(void)ward_expect(&w, HG_CAUSE_COUNT, 0, "", "", 0, 0);
	ward_close(&w);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(the_scale_fits_the_largest_gradient),
	    TEST(the_scale_fits_the_largest_sum),
	    TEST(a_gradient_that_fits_is_lost_on_its_way),
	};
	return test_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
