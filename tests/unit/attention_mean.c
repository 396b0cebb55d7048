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
#include "unit/attention_scene.h"

/* What a call has beside `struct run`: matrices of the width of one head. */
enum { END_B, END_Y, END_DY, END_DB, MEAN, WIDE_B, WIDE_END, ENDS };

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
	} made[ENDS] = {[END_B] = {dtype, 1},    [END_Y] = {dtype, n}, [END_DY] = {dtype, n},
	                [END_DB] = {HG_F32, 1},  [MEAN] = {HG_F32, n}, [WIDE_B] = {HG_F32, 1},
	                [WIDE_END] = {HG_F32, n}};
	e->d = d;
	for (int i = 0; i < ENDS; i++)
		e->tensor[i] = tensor_new(r, made[i].dtype, made[i].rows, d);
	draw(e->tensor[END_B], 0.0, 1.0);
	draw(e->tensor[END_DY], 0.0, 1.0);
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

/* Ending i of several: every f, with and without dropout, and a bias. */
enum { ENDINGS = 2 * (1 + HG__ACT_SUM_EPILOGUES) };
static void take_ending(struct run *r, const struct end *e, int i)
{
	r->a.epilogue.act_drop =
	    (struct hg__act_drop){i / 2, i < 4 ? 0.0f : 0.2f, i % 2 ? 0.4f : 0.0f, KEY, r->s.step.data};
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

enum { BACK_G, BACK_DQ, BACK_DK, BACK_DV, BACK_DC, BACKS };

struct back {
	hg_tensor *tensor[BACKS];
	float *db;
	struct hg__attention_back_args a;
};

static void back_open(struct run *r, const struct end *e, struct back *b)
{
	const struct hg__attention *of = &r->a.of;
	const struct hg__mat *c = of->c.data ? &of->c : &of->q;
	const struct {
		hg_dtype dtype;
		int64_t rows, cols;
	} made[BACKS] = {
	    [BACK_G] = {r->row->dtype, r->s.nodes, r->width},
	    [BACK_DQ] = {r->row->dtype, of->q.rows, of->q.cols},
	    [BACK_DK] = {r->row->dtype, of->k.rows, of->k.cols},
	    [BACK_DV] = {r->row->dtype, of->v.rows, of->v.cols},
	    [BACK_DC] = {HG_F32, c->rows, c->cols},
	};
	for (int i = 0; i < BACKS; i++)
		b->tensor[i] = tensor_new(r, made[i].dtype, made[i].rows, made[i].cols);
	b->db = NULL;
	b->a = (struct hg__attention_back_args){.csr = r->a.csr,
	                                        .of = *of,
	                                        .y = r->a.y,
	                                        .log_sum = r->a.log_sum,
	                                        .plus = r->a.plus,
	                                        .dy = b->tensor[BACK_G]->mat,
	                                        .ended = r->a.ended,
	                                        .dended = e->tensor[END_DY]->mat,
	                                        .db = e->tensor[END_DB]->mat,
	                                        .act_drop = r->a.epilogue.act_drop,
	                                        .dq = b->tensor[BACK_DQ]->mat,
	                                        .dk = b->tensor[BACK_DK]->mat,
	                                        .dv = b->tensor[BACK_DV]->mat};
	CHECK_OK(hg__graph_csr_t(r->s.graph, 0, &b->a.csr_t));
	if (of->c.data)
		b->a.dc = b->tensor[BACK_DC]->mat;
}

static void back_close(struct back *b)
{
	for (int i = 0; i < BACKS; i++)
		hg_tensor_free(b->tensor[i]);
	free(b->db);
}

/* is_one: by the kernel that computes G, db and the products of G at once, which is otherwise for
 * larger graphs. */
static void run_in_one_call(struct run *r, const struct end *e, struct back *b, int is_one)
{
	hg_status status = HG_OK;
#ifdef HG_HAVE_CUDA
	if (is_one)
		status = hg__cuda_attention_back_add(r->s.ctx, &b->a);
	else
#endif
		status = r->s.ctx->backend->kernels->attention_back.run(r->s.ctx, &b->a);
	(void)is_one;
	CHECK_MSG(status == HG_OK, "%s", hg_context_error(r->s.ctx));
	b->db = download_new(e->tensor[END_DB]);
}

/* The same gradients by a call of epilogue_back and one of attention without an epilogue. */
static void run_in_two_calls(struct run *r, const struct end *e, struct back *b)
{
	const struct hg__kernels *kernels = r->s.ctx->backend->kernels;
	const struct hg__epilogue_back_args first = {.y = b->a.ended,
	                                             .dy = b->a.dended,
	                                             .dx = b->a.dy,
	                                             .db = b->a.db,
	                                             .act_drop = b->a.act_drop};
	CHECK_OK(kernels->epilogue_back.run(r->s.ctx, &first));
	b->db = download_new(e->tensor[END_DB]);
	b->a.ended = b->a.dended = b->a.db = (struct hg__mat){0};
	b->a.act_drop = (struct hg__act_drop){0};
	CHECK_OK(kernels->attention_back.run(r->s.ctx, &b->a));
}

/* The bits are the same, except for those of db if one kernel adds it up in other blocks of rows.
 * Its terms have a size of about 1. */
static void check_same_bits(const struct run *r, const struct end *e, const struct back *one,
                            const struct back *two, int one_kernel)
{
	for (int i = 0; i < BACKS; i++) {
		float *x = download_new(one->tensor[i]), *y = download_new(two->tensor[i]);
		const int64_t count = one->tensor[i]->mat.rows * one->tensor[i]->mat.cols;
		for (int64_t k = 0; k < count; k++)
			CHECK_MSG(memcmp(&x[k], &y[k], sizeof x[k]) == 0,
			          "gradient %d, element %lld: %g and %g", i, (long long)k, (double)x[k],
			          (double)y[k]);
		free(x);
		free(y);
	}
	for (int64_t c = 0; c < e->d; c++)
		CHECK_WITHIN((double)one->db[c], (double)two->db[c],
		             one_kernel ? 0x1p-20 * (double)r->s.nodes : 0.0);
}

/* In f32 G has the bits of the gradients of the parts, one after the other. */
static void check_parts(struct run *r, struct end *e, const struct back *b)
{
	const struct hg__kernels *kernels = r->s.ctx->backend->kernels;
	const struct hg__epilogue_back_args first = {.y = r->a.ended,
	                                             .dy = e->tensor[END_DY]->mat,
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

#ifdef HG_HAVE_CUDA
/* On a GPU one kernel computes G, db and the products of G, if `one`. */
static int in_one_kernel(const struct run *r, const struct back *b, int one)
{
	const int is_cuda = r->s.ctx->backend->tiles_count != NULL;
	const int is_one =
	    hg__cuda_attention_back_add_takes(&b->a) && hg__cuda_attention_back_add_ends(&b->a);
	CHECK(!is_cuda || !one || is_one);
	return is_cuda && is_one;
}
#else
static int in_one_kernel(const struct run *r, const struct back *b, int one)
{
	return (void)r, (void)b, (void)one, 0;
}
#endif

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
		back_open(&r, &e, &one);
		back_open(&r, &e, &two);
		if (i % 4 == 3)
			one.a.dq = two.a.dq = (struct hg__mat){0};
		const int is_one = in_one_kernel(&r, &one, one_kernel);
		run_in_one_call(&r, &e, &one, is_one);
		run_in_two_calls(&r, &e, &two);
		check_same_bits(&r, &e, &one, &two, is_one);
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
	} ending[] = {{"8 heads of 8", 8, 8, 1},
	              {"3 heads of 16", 3, 16, 0},
	              {"2 heads of 128", 2, 128, 0},
	              {"16 heads of 16", 16, 16, 1}};
	for (size_t k = 0; k < sizeof ending / sizeof ending[0]; k++) {
		const struct row row = {.name = ending[k].name,
		                        .edges = ending[k].many ? many_rows : uneven,
		                        .attach = attach_nothing,
		                        .score = HG_SCORE_ADD,
		                        .dtype = HG_F16,
		                        .d = ending[k].d,
		                        .takes = KERNEL(add),
		                        .heads = ending[k].heads};
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
		back_open(&r, &e, &b);
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
