#ifndef HG_TESTS_UNIT_ATTENTION_GRADIENTS_H
#define HG_TESTS_UNIT_ATTENTION_GRADIENTS_H

/* The gradients of a call of attention with an epilogue, from one call, which computes G first, and
 * from two: of the epilogue's gradient, and then of attention's. For attention_ended.c and
 * attention_mean.c. */

#include "unit/attention_scene.h"

/* Ending i of several: every f that is in an epilogue, with and without dropout. */
enum { ENDINGS = 2 * (1 + HG__ACT_SUM_EPILOGUES) };
static inline struct hg__act_drop ending(const struct run *r, int i)
{
	return (struct hg__act_drop){i / 2, i < 4 ? 0.0f : 0.2f, i % 2 ? 0.4f : 0.0f, KEY,
	                             r->s.step.data};
}

/* A call of halves with additive scores, on a graph of one block of rows or of several (`many`). */
static inline struct row row_of_add(const char *name, int heads, int d, int many)
{
	return (struct row){.name = name,
	                    .edges = many ? many_rows : uneven,
	                    .attach = attach_nothing,
	                    .score = HG_SCORE_ADD,
	                    .dtype = HG_F16,
	                    .d = d,
	                    .takes = KERNEL(add),
	                    .heads = heads};
}

/* Operands of a gradient, and its results. */
enum { BACK_DENDED, BACK_G, BACK_DB, BACK_DQ, BACK_DK, BACK_DV, BACK_DC, BACKS };

struct back {
	hg_tensor *tensor[BACKS];
	struct hg__attention_back_args a;
};

/* alters: G is not dended, as with an f, dropout or a mean over heads. */
static inline void back_open(struct run *r, int alters, struct back *b)
{
	const struct hg__attention *of = &r->a.of;
	const struct hg__mat *c = of->c.data ? &of->c : &of->q;
	const struct {
		hg_dtype dtype;
		int64_t rows, cols;
	} made[BACKS] = {
	    [BACK_DENDED] = {r->row->dtype, r->s.nodes, r->a.ended.cols},
	    [BACK_G] = {r->row->dtype, r->s.nodes, r->width},
	    [BACK_DB] = {HG_F32, 1, r->a.ended.cols},
	    [BACK_DQ] = {r->row->dtype, of->q.rows, of->q.cols},
	    [BACK_DK] = {r->row->dtype, of->k.rows, of->k.cols},
	    [BACK_DV] = {r->row->dtype, of->v.rows, of->v.cols},
	    [BACK_DC] = {HG_F32, c->rows, c->cols},
	};
	for (int i = 0; i < BACKS; i++)
		b->tensor[i] = tensor_new(r, made[i].dtype, made[i].rows, made[i].cols);
	test_reseed(77); /* one call and two get the same */
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

static inline void back_close(struct back *b)
{
	for (int i = 0; i < BACKS; i++)
		hg_tensor_free(b->tensor[i]);
}

/* By a call of epilogue_back and one of attention without an epilogue. */
static inline void run_in_two_calls(struct run *r, struct back *b)
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

/* Whether a GPU's kernel that computes G, db and the products of G at once, which is otherwise for
 * larger graphs, takes the call. must: on a GPU it has to. */
#ifdef HG_HAVE_CUDA
static inline int one_kernel_takes(const struct run *r, const struct back *b, int must)
{
	const int is_cuda = r->s.ctx->backend->tiles_count != NULL;
	const int takes =
	    hg__cuda_attention_back_add_takes(&b->a) && hg__cuda_attention_back_add_ends(&b->a);
	CHECK(!is_cuda || !must || takes);
	return is_cuda && takes;
}
#else
static inline int one_kernel_takes(const struct run *r, const struct back *b, int must)
{
	return (void)r, (void)b, (void)must, 0;
}
#endif

/* By one call; is_one: of that kernel. */
static inline void run_in_one_call(const struct run *r, const struct back *b, int is_one)
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
}

/* The bits are the same, except for those of db if one kernel adds it up in other blocks of rows:
 * then they differ by at most db_off. dv: that of two calls. */
static inline void check_same_bits(const struct back *one, const struct back *two, hg_tensor *dv,
                                   double db_off)
{
	for (int i = BACK_G; i < BACKS; i++) {
		float *x = download_new(one->tensor[i]),
		      *y = download_new(i == BACK_DV ? dv : two->tensor[i]);
		const int64_t count = one->tensor[i]->mat.rows * one->tensor[i]->mat.cols;
		for (int64_t k = 0; k < count; k++)
			if (i == BACK_DB && db_off > 0.0)
				CHECK_WITHIN((double)x[k], (double)y[k], db_off);
			else
				CHECK_MSG(memcmp(&x[k], &y[k], sizeof x[k]) == 0,
				          "gradient %d, element %lld: %g and %g", i, (long long)k, (double)x[k],
				          (double)y[k]);
		free(x);
		free(y);
	}
}

#endif
