/* The epilogue of attention, `ended` in kernels/attention.h, on the graphs for which a GPU has
 * kernels of their own: any graph, tiles, batches of small graphs, and batches in which some graphs
 * are left to a row kernel. `ended` is compared with the epilogue of Y as it is stored:
 *
 *     ended = dropout(f(Y + b))
 *
 * Y may be absent, and the overflow flag says what of Y, `plus` and `ended` does not fit in f16.
 *
 * The gradients of a call with an epilogue have the bits of two calls: of the epilogue's gradient,
 * and then of attention's.
 *
 * Bound. Y as it was before it was narrowed is within u |Y| + eta / 2 of Y. f changes no difference
 * to a larger one, dropout multiplies it by 1 / (1 - p), and both results are narrowed. 2^-20 of
 * what is added covers f32 and exp. */
#include "unit/attention_gradients.h"

/* ---- cases ---- */

/* Compares `ended` with the epilogue of y, which another call may have stored. */
static void check_ended(struct run *r, const struct hg__mat *y, const float *of_y)
{
	const struct hg__act_drop *then = &r->a.epilogue.act_drop;
	const struct hg__epilogue_args args = {
	    .x = *y, .b = r->a.epilogue.b, .y = r->tensor[OUT_EXPECTED]->mat, .act_drop = *then};
	CHECK_OK(r->s.ctx->backend->kernels->epilogue.run(r->s.ctx, &args));
	float *expected = download_new(r->tensor[OUT_EXPECTED]),
	      *ended = download_new(r->tensor[OUT_ENDED]);
	const double kept = 1.0 / (1.0 - (double)then->p);
	for (int64_t i = 0; i < r->s.nodes * r->width; i++) {
		const double x = fabs((double)of_y[i]),
		             added = kept * (x + 4.0 + fabs((double)expected[i])),
		             off = 1.01 * kept * hg__bound_narrow(r->row->dtype, x) + 0x1p-20 * added;
		CHECK_WITHIN((double)ended[i], (double)expected[i],
		             off + 2.0 * hg__bound_narrow(r->row->dtype, fabs((double)expected[i]) + off));
	}
	free(expected);
	free(ended);
}

/* Every f, with and without dropout, a bias and Y. */
static void results_are_those_of_the_epilogue(void)
{
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct run r;
		run_open(&r, &rows[k]);
		const struct hg__mat b = r.a.epilogue.b, y = r.a.y,
		                     absent = {NULL, y.rows, y.cols, y.ld, y.dtype};
		for (int i = 0; i < ENDINGS; i++) {
			r.a.epilogue.act_drop = ending(&r, i);
			r.a.epilogue.b = i % 3 ? b : (struct hg__mat){0};
			r.a.y = y;
			attend(&r);
			float *of_y = download_new(r.tensor[OUT_Y]);
			check_ended(&r, &y, of_y);
			CHECK(overflowed(&r) == -1);
			/* only `ended` is stored; Y is what the first call has stored */
			hg_tensor *first = tensor_new(&r, y.dtype, y.rows, y.cols);
			CHECK_OK(hg_tensor_upload(first, of_y, HG_F32));
			r.a.y = absent;
			attend(&r);
			check_ended(&r, &first->mat, of_y);
			CHECK(overflowed(&r) == -1);
			hg_tensor_free(first);
			free(of_y);
		}
		run_close(&r);
	}
}

/* Y and plus fit, and `ended` does not: Y is near 60000 in rows with edges, and b is 10000. */
static void overflow_of_the_epilogue_is_flagged(void)
{
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct run r;
		if (rows[k].dtype != HG_F16)
			continue;
		run_open(&r, &rows[k]);
		const struct hg__mat b = r.a.epilogue.b;
		draw(r.tensor[IN_V], 60000.0, 0.0);
		draw(r.tensor[IN_B], 10000.0, 0.0);
		for (int absent = 0; absent < 2; absent++) {
			r.a.y.data = absent ? NULL : r.tensor[OUT_Y]->mat.data;
			r.a.epilogue.b = b;
			attend(&r);
			CHECK_EQ_I(overflowed(&r), NODE);
			r.a.epilogue.b.data = NULL;
			attend(&r);
			CHECK_EQ_I(overflowed(&r), -1);
		}
		/* -70000 before a relu is 0 behind it */
		if (r.row->score == HG_SCORE_ADD) {
			draw(r.tensor[IN_V], -60000.0, 0.0);
			draw(r.tensor[IN_B], -10000.0, 0.0);
			r.a.epilogue.b = b;
			r.a.epilogue.act_drop.act = 1 + HG__ACT_relu;
			attend(&r);
			CHECK_EQ_I(overflowed(&r), -1);
		}
		run_close(&r);
	}
}

/* The element-wise kernel of an epilogue, which some implementations of attention run behind their
 * own, checks what it stores, whatever X is: 40000 + 40000, and 60000 - 10000. */
static void the_kernel_of_an_epilogue_checks_its_result(void)
{
	struct run r;
	run_open(&r, &rows[0]);
	hg_context *ctx = r.s.ctx;
	for (int dropout = 0; dropout < 2; dropout++) {
		const struct hg__epilogue_args args = {
		    .x = r.tensor[IN_V]->mat,
		    .b = r.tensor[IN_B]->mat,
		    .y = r.tensor[OUT_ENDED]->mat,
		    .act_drop = {0, 0.0f, dropout ? 0.1f : 0.0f, KEY, r.s.step.data},
		    .overflow = r.a.overflow};
		draw(r.tensor[IN_V], 40000.0, 0.0);
		draw(r.tensor[IN_B], 40000.0, 0.0);
		CHECK_OK(ctx->backend->kernels->epilogue.run(ctx, &args));
		CHECK_EQ_I(overflowed(&r), NODE);
		draw(r.tensor[IN_V], 60000.0, 0.0);
		draw(r.tensor[IN_B], -10000.0, 0.0);
		CHECK_OK(ctx->backend->kernels->epilogue.run(ctx, &args));
		CHECK_EQ_I(overflowed(&r), -1);
	}
	run_close(&r);
}

/* ---- gradients ---- */

/* Every f that is in an epilogue, with and without dropout, db and dq. */
static void check_gradients(const struct row *row, int one_kernel)
{
	struct run r;
	run_open(&r, row);
	for (int i = 0; i < ENDINGS; i++) {
		struct back one, two;
		const int alters = i > 0;
		r.a.epilogue.act_drop = ending(&r, i);
		attend(&r);
		CHECK_EQ_I(overflowed(&r), -1);
		back_open(&r, alters, &one);
		back_open(&r, alters, &two);
		if (i % 3 == 2)
			one.a.db = two.a.db = (struct hg__mat){0};
		if (i % 4 == 3)
			one.a.dq = two.a.dq = (struct hg__mat){0};
		const int is_one = one_kernel_takes(&r, &one, one_kernel) && one_kernel;
		run_in_one_call(&r, &one, is_one);
		if (row->score == HG_SCORE_ADD) /* dv may be y */
			two.a.dv = two.a.y;
		run_in_two_calls(&r, &two);
		check_same_bits(&one, &two,
		                row->score == HG_SCORE_ADD ? r.tensor[OUT_Y] : two.tensor[BACK_DV], 0.0);
		back_close(&one);
		back_close(&two);
	}
	run_close(&r);
}

static void gradients_are_those_of_two_calls(void)
{
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		check_gradients(&rows[k], k == 0);
}

/* Heads of one and of several packs, one head whose packs are no power of two or whose last pack
 * has padding, and rows of 32 packs, in one block and in several. */
static void gradients_in_one_kernel(void)
{
	static const struct {
		const char *name;
		int heads, d, many;
	} calls[] = {
	    {"8 heads of 8", 8, 8, 0},     {"3 heads of 16", 3, 16, 0},  {"1 head of 64", 1, 64, 1},
	    {"1 head of 47", 1, 47, 1},    {"1 head of 7", 1, 7, 1},     {"1 head of 33", 1, 33, 0},
	    {"2 heads of 128", 2, 128, 0}, {"1 head of 250", 1, 250, 1}, {"16 heads of 16", 16, 16, 1},
	};
	for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
		const struct row row = row_of_add(calls[k].name, calls[k].heads, calls[k].d, calls[k].many);
		check_gradients(&row, 1);
	}
}

/* A gradient of the epilogue that contradicts the call. */
static void contradictions_are_refused(void)
{
	for (int i = 0; i < 5; i++) {
		struct run r;
		struct back b;
		run_open(&r, &rows[0]);
		attend(&r);
		r.a.epilogue.act_drop.act = 1 + HG__ACT_elu;
		back_open(&r, 1, &b);
		if (i == 0)
			b.a.ended.data = NULL; /* f needs it */
		if (i == 1)
			b.a.dy = b.a.dended;
		if (i == 2)
			b.a.dended.rows--;
		if (i == 3)
			b.a.db.dtype = HG_F16;
		if (i == 4)
			b.a.act_drop.act = 1 + HG__ACT_SUM_EPILOGUES;
		CHECK(r.s.ctx->backend->kernels->attention_back.run(r.s.ctx, &b.a) < 0);
		back_close(&b);
		run_close(&r);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(results_are_those_of_the_epilogue),
	    TEST(overflow_of_the_epilogue_is_flagged),
	    TEST(the_kernel_of_an_epilogue_checks_its_result),
	    TEST(gradients_are_those_of_two_calls),
	    TEST(gradients_in_one_kernel),
	    TEST(contradictions_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
