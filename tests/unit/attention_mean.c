/* The mean over heads behind attention (kernels/attention.h), on the graphs for which a GPU has
 * kernels of their own:
 *
 *     ended = dropout(f(mean over the heads of Y + b))
 *
 * It is compared with the kernels of the parts in f32, from Y as it is stored. The gradients have
 * the bits of two calls: of the epilogue's gradient, and then of attention's.
 *
 * Bound. Y as it was before it was narrowed is within u |Y| + eta / 2 of Y, and so is the mean. f
 * changes no difference to a larger one, dropout multiplies it by 1 / (1 - p), and the result is
 * narrowed. 2^-20 of what is added covers f32 and exp. */
#include "unit/attention_gradients.h"

/* What a call has beside `struct run`: matrices of the width of one head. */
enum { END_B, END_Y, MEAN, WIDE_B, WIDE_END, ENDS };

struct end {
	hg_tensor *tensor[ENDS];
	int64_t d;
};

static void end_open(struct run *r, struct end *e)
{
	const hg_dtype dtype = r->row->dtype;
	const int64_t n = r->s.nodes, d = r->row->d;
	const struct {
		hg_dtype dtype;
		int64_t rows;
	} made[ENDS] = {[END_B] = {dtype, 1},
	                [END_Y] = {dtype, n},
	                [MEAN] = {HG_F32, n},
	                [WIDE_B] = {HG_F32, 1},
	                [WIDE_END] = {HG_F32, n}};
	e->d = d;
	for (int i = 0; i < ENDS; i++)
		e->tensor[i] = tensor_new(r, made[i].dtype, made[i].rows, d);
	draw(e->tensor[END_B], 0.0, 1.0);
	float *b = download_new(e->tensor[END_B]);
	CHECK_OK(hg_tensor_upload(e->tensor[WIDE_B], b, HG_F32));
	free(b);
	r->a.ended = e->tensor[END_Y]->mat;
	r->a.epilogue.b = e->tensor[END_B]->mat;
}

static void end_close(struct end *e)
{
	for (int i = 0; i < ENDS; i++)
		hg_tensor_free(e->tensor[i]);
}

/* Ending i, with and without a bias. */
static void take_ending(struct run *r, const struct end *e, int i)
{
	r->a.epilogue.act_drop = ending(r, i);
	r->a.epilogue.b = i % 3 ? e->tensor[END_B]->mat : (struct hg__mat){0};
}

/* Runs the call. The kernel is that of the call without an epilogue. */
static void attend_and_end(struct run *r, struct end *e)
{
	hg_context *ctx = r->s.ctx;
	struct run without = *r;
	without.a.ended = (struct hg__mat){0};
	expect_kernel(&without);
	CHECK_OK(ctx->backend->fill(ctx, r->a.y.data, 0xFF, r->tensor[OUT_Y]->bytes));
	CHECK_OK(ctx->backend->fill(ctx, r->a.ended.data, 0xFF, e->tensor[END_Y]->bytes));
	CHECK_MSG(ctx->backend->kernels->attention.run(ctx, &r->a) == HG_OK, "%s",
	          hg_context_error(ctx));
}

/* ---- results ---- */

/* The parts in f32, from Y. */
static void end_in_parts(struct run *r, struct end *e)
{
	const struct hg__kernels *kernels = r->s.ctx->backend->kernels;
	const struct hg__head_mean_args mean = {
	    .x = r->a.y, .y = e->tensor[MEAN]->mat, .heads = r->heads};
	struct hg__epilogue_args end = {
	    .x = mean.y, .y = e->tensor[WIDE_END]->mat, .act_drop = r->a.epilogue.act_drop};
	if (r->a.epilogue.b.data)
		end.b = e->tensor[WIDE_B]->mat;
	CHECK_OK(kernels->head_mean.run(r->s.ctx, &mean));
	CHECK_OK(kernels->epilogue.run(r->s.ctx, &end));
}

static void check_mean(struct run *r, struct end *e)
{
	end_in_parts(r, e);
	float *y = download_new(r->tensor[OUT_Y]), *expected = download_new(e->tensor[WIDE_END]),
	      *ended = download_new(e->tensor[END_Y]);
	const double kept = 1.0 / (1.0 - (double)r->a.epilogue.act_drop.p);
	for (int64_t i = 0; i < r->s.nodes * e->d; i++) {
		const float *head = y + i / e->d * r->width + i % e->d;
		double x = 0.0;
		for (int64_t k = 0; k < r->heads; k++)
			x = fmax(x, fabs((double)head[k * e->d]));
		const double added = kept * (x + 4.0 + fabs((double)expected[i])),
		             off = 1.01 * kept * hg__bound_narrow(r->row->dtype, x) + 0x1p-20 * added;
		CHECK_WITHIN((double)ended[i], (double)expected[i],
		             off + hg__bound_narrow(r->row->dtype, fabs((double)expected[i]) + off));
		CHECK(r->row->dtype == HG_F16 || memcmp(&ended[i], &expected[i], sizeof *ended) == 0);
	}
	free(y);
	free(expected);
	free(ended);
}

static void results_are_those_of_the_parts(void)
{
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct run r;
		struct end e;
		run_open(&r, &rows[k]);
		end_open(&r, &e);
		for (int i = 0; i < ENDINGS; i++) {
			take_ending(&r, &e, i);
			attend_and_end(&r, &e);
			check_mean(&r, &e);
			CHECK(overflowed(&r) == -1);
		}
		end_close(&e);
		run_close(&r);
	}
}

/* Y fits, and its mean with b does not: Y is near 60000 in rows with edges, and b is 10000. */
static void overflow_of_the_mean_is_flagged(void)
{
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct run r;
		struct end e;
		if (rows[k].dtype != HG_F16)
			continue;
		run_open(&r, &rows[k]);
		end_open(&r, &e);
		draw(r.tensor[IN_V], 60000.0, 0.0);
		draw(e.tensor[END_B], 10000.0, 0.0);
		attend_and_end(&r, &e);
		CHECK_EQ_I(overflowed(&r), NODE);
		r.a.epilogue.b.data = NULL;
		attend_and_end(&r, &e);
		CHECK_EQ_I(overflowed(&r), -1);
		end_close(&e);
		run_close(&r);
	}
}

/* ---- gradients ---- */

/* In f32 G has the bits of the gradients of the parts, one after the other. */
static void check_parts(struct run *r, struct end *e, const struct back *b)
{
	const struct hg__kernels *kernels = r->s.ctx->backend->kernels;
	const struct hg__epilogue_back_args first = {.y = r->a.ended,
	                                             .dy = b->tensor[BACK_DENDED]->mat,
	                                             .dx = e->tensor[MEAN]->mat,
	                                             .act_drop = r->a.epilogue.act_drop};
	hg_tensor *g = tensor_new(r, HG_F32, r->s.nodes, r->width);
	const struct hg__head_mean_args then = {
	    .x = g->mat, .y = e->tensor[MEAN]->mat, .heads = r->heads};
	CHECK_OK(kernels->epilogue_back.run(r->s.ctx, &first));
	CHECK_OK(kernels->head_mean_back.run(r->s.ctx, &then));
	float *expected = download_new(g), *got = download_new(b->tensor[BACK_G]);
	CHECK(memcmp(expected, got, sizeof *got * (size_t)(r->s.nodes * r->width)) == 0);
	free(expected);
	free(got);
	hg_tensor_free(g);
}

static void check_gradients(const struct row *row, int one_kernel)
{
	struct run r;
	struct end e;
	run_open(&r, row);
	end_open(&r, &e);
	for (int i = 0; i < ENDINGS; i++) {
		struct back one, two;
		take_ending(&r, &e, i);
		attend_and_end(&r, &e);
		back_open(&r, 1, &one);
		back_open(&r, 1, &two);
		if (i % 4 == 3)
			one.a.dq = two.a.dq = (struct hg__mat){0};
		const int is_one = one_kernel_takes(&r, &one, one_kernel);
		run_in_one_call(&r, &one, is_one);
		run_in_two_calls(&r, &two);
		/* the terms of db have a size of about 1 */
		check_same_bits(&one, &two, two.tensor[BACK_DV],
		                is_one ? 0x1p-20 * (double)r.s.nodes : 0.0);
		if (row->dtype == HG_F32)
			check_parts(&r, &e, &one);
		back_close(&one);
		back_close(&two);
	}
	end_close(&e);
	run_close(&r);
}

static void gradients_are_those_of_two_calls(void)
{
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		check_gradients(&rows[k], k == 0);
}

/* Heads of one and of several packs, in one block of rows and in several. */
static void gradients_in_one_kernel(void)
{
	static const struct {
		const char *name;
		int heads, d, many;
	} calls[] = {{"8 heads of 8", 8, 8, 1},
	             {"3 heads of 16", 3, 16, 0},
	             {"2 heads of 128", 2, 128, 0},
	             {"16 heads of 16", 16, 16, 1}};
	for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
		const struct row row = row_of_add(calls[k].name, calls[k].heads, calls[k].d, calls[k].many);
		check_gradients(&row, 1);
	}
}

/* Y must be there, and `ended` has the columns of one head. */
static void contradictions_are_refused(void)
{
	for (int i = 0; i < 4; i++) {
		struct run r;
		struct end e;
		struct back b;
		run_open(&r, &rows[0]);
		end_open(&r, &e);
		attend_and_end(&r, &e);
		back_open(&r, 1, &b);
		if (i == 0)
			r.a.y.data = NULL;
		if (i == 1)
			r.a.ended.cols++;
		if (i == 2)
			b.a.dended.cols++;
		if (i == 3)
			b.a.db.cols = r.width;
		const struct hg__kernels *kernels = r.s.ctx->backend->kernels;
		CHECK((i < 2 ? kernels->attention.run(r.s.ctx, &r.a)
		             : kernels->attention_back.run(r.s.ctx, &b.a)) < 0);
		back_close(&b);
		end_close(&e);
		run_close(&r);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(results_are_those_of_the_parts),   TEST(overflow_of_the_mean_is_flagged),
	    TEST(gradients_are_those_of_two_calls), TEST(gradients_in_one_kernel),
	    TEST(contradictions_are_refused),
	};
	return RUN_TESTS(argc, argv, cases);
}
