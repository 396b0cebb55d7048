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
#include "unit/attention_scene.h"

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
		for (int i = 0; i < 2 * (1 + HG__ACT_SUM_EPILOGUES); i++) {
			r.a.epilogue.act_drop = (struct hg__act_drop){i / 2, i < 4 ? 0.0f : 0.2f,
			                                              i % 2 ? 0.4f : 0.0f, KEY, r.s.step.data};
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

/* Operands of a gradient, and its results from one call and from two. */
enum { BACK_DENDED, BACK_G, BACK_DB, BACK_DQ, BACK_DK, BACK_DV, BACK_DC, BACKS };

struct back {
	hg_tensor *tensor[BACKS];
	struct hg__attention_back_args a;
};

static void back_open(struct run *r, int alters, struct back *b)
{
	const struct hg__attention *of = &r->a.of;
	const struct hg__mat *c = of->c.data ? &of->c : &of->q;
	const struct {
		hg_dtype dtype;
		int64_t rows, cols;
	} made[BACKS] = {
	    [BACK_DENDED] = {r->row->dtype, r->s.nodes, r->width},
	    [BACK_G] = {r->row->dtype, r->s.nodes, r->width},
	    [BACK_DB] = {HG_F32, 1, r->width},
	    [BACK_DQ] = {r->row->dtype, of->q.rows, of->q.cols},
	    [BACK_DK] = {r->row->dtype, of->k.rows, of->k.cols},
	    [BACK_DV] = {r->row->dtype, of->v.rows, of->v.cols},
	    [BACK_DC] = {HG_F32, c->rows, c->cols},
	};
	for (int i = 0; i < BACKS; i++)
		b->tensor[i] = tensor_new(r, made[i].dtype, made[i].rows, made[i].cols);
	test_reseed(77); /* both calls get the same */
	draw(b->tensor[BACK_DENDED], 0.0, 1.0);
	b->a = (struct hg__attention_back_args){.csr = r->a.csr,
	                                        .of = *of,
	                                        .y = r->a.y,
	                                        .log_sum = r->a.log_sum,
	                                        .plus = r->a.plus,
	                                        .dy = b->tensor[alters ? BACK_G : BACK_DENDED]->mat,
	                                        .ended = r->a.ended,
	                                        .dended = b->tensor[BACK_DENDED]->mat,
	                                        .db = b->tensor[BACK_DB]->mat,
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
}

/* The same gradients by a call of epilogue_back and one of attention without an epilogue. */
static void run_in_two_calls(struct run *r, struct back *b)
{
	const struct hg__kernels *kernels = r->s.ctx->backend->kernels;
	const int alters = b->a.dy.data != b->a.dended.data;
	struct hg__epilogue_back_args first = {.y = b->a.ended,
	                                       .dy = b->a.dended,
	                                       .dx = b->a.dy,
	                                       .db = b->a.db,
	                                       .act_drop = b->a.act_drop};
	if (!alters)
		first.dx.data = NULL;
	CHECK_OK(kernels->epilogue_back.run(r->s.ctx, &first));
	b->a.ended = b->a.dended = b->a.db = (struct hg__mat){0};
	b->a.act_drop = (struct hg__act_drop){0};
	CHECK_OK(kernels->attention_back.run(r->s.ctx, &b->a));
}

/* dv: that of the second call. */
static void check_same_bits(struct back *one, struct back *two, hg_tensor *dv)
{
	for (int i = BACK_G; i < BACKS; i++) {
		float *x = download_new(one->tensor[i]),
		      *y = download_new(i == BACK_DV ? dv : two->tensor[i]);
		const int64_t count = one->tensor[i]->mat.rows * one->tensor[i]->mat.cols;
		for (int64_t k = 0; k < count; k++)
			CHECK_MSG(memcmp(&x[k], &y[k], sizeof x[k]) == 0,
			          "gradient %d, element %lld: %g and %g", i, (long long)k, (double)x[k],
			          (double)y[k]);
		free(x);
		free(y);
	}
}

/* The call. With one_kernel, on a GPU the kernel that computes G, db and the products of G at once,
 * which is otherwise for larger graphs. */
static hg_status run_in_one_call(const struct run *r, const struct back *b, int one_kernel)
{
#ifdef HG_HAVE_CUDA
	if (one_kernel && r->s.ctx->backend->tiles_count) {
		CHECK(hg__cuda_attention_back_add_takes(&b->a) && hg__cuda_attention_back_add_ends(&b->a));
		return hg__cuda_attention_back_add(r->s.ctx, &b->a);
	}
#endif
	(void)one_kernel;
	return r->s.ctx->backend->kernels->attention_back.run(r->s.ctx, &b->a);
}

/* Every f that is in an epilogue, with and without dropout, db and dq. */
static void check_gradients(const struct row *row, int one_kernel)
{
	struct run r;
	run_open(&r, row);
	for (int i = 0; i < 2 * (1 + HG__ACT_SUM_EPILOGUES); i++) {
		struct back one, two;
		const int alters = i > 0;
		r.a.epilogue.act_drop = (struct hg__act_drop){i / 2, i < 4 ? 0.0f : 0.2f,
		                                              i % 2 ? 0.4f : 0.0f, KEY, r.s.step.data};
		attend(&r);
		CHECK_EQ_I(overflowed(&r), -1);
		back_open(&r, alters, &one);
		back_open(&r, alters, &two);
		if (i % 3 == 2)
			one.a.db = two.a.db = (struct hg__mat){0};
		if (i % 4 == 3)
			one.a.dq = two.a.dq = (struct hg__mat){0};
		CHECK_MSG(run_in_one_call(&r, &one, one_kernel) == HG_OK, "%s", hg_context_error(r.s.ctx));
		if (row->score == HG_SCORE_ADD) /* dv may be y */
			two.a.dv = two.a.y;
		run_in_two_calls(&r, &two);
		check_same_bits(&one, &two,
		                row->score == HG_SCORE_ADD ? r.tensor[OUT_Y] : two.tensor[BACK_DV]);
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
	} ending[] = {
	    {"8 heads of 8", 8, 8, 0},     {"3 heads of 16", 3, 16, 0},  {"1 head of 64", 1, 64, 1},
	    {"1 head of 47", 1, 47, 1},    {"1 head of 7", 1, 7, 1},     {"1 head of 33", 1, 33, 0},
	    {"2 heads of 128", 2, 128, 0}, {"1 head of 250", 1, 250, 1}, {"16 heads of 16", 16, 16, 1},
	};
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
