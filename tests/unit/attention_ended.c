/* The epilogue of attention, `ended` in kernels/attention.h, on the graphs for which a GPU has
 * kernels of their own: any graph, tiles, batches of small graphs, and batches in which some graphs
 * are left to a row kernel. `ended` is compared with the epilogue of Y as it is stored:
 *
 *     ended = dropout(f(Y + b))
 *
 * Y may be absent, and the overflow flag says what of Y, `plus` and `ended` does not fit in f16.
 *
 * Bound. Y as it was before it was narrowed is within u |Y| + eta / 2 of Y. f changes no difference
 * to a larger one, dropout multiplies it by 1 / (1 - p), and both results are narrowed. 2^-20 of
 * what is added covers f32 and exp. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/context.h"
#include "core/plan_dense.h"
#include "core/plan_tiles.h"
#include "graphs.h"
#include "kernels/kernels.h"
#include "precision/bound.h"

enum { HEADS = 2, KEY = 77, STEP = 5, NODE = 9 };

/* ---- graphs ---- */

struct scene {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr;
	struct hg__plan plan; /* the graph's, with tiles */
	struct hg__buffer step, flag;
	int64_t nodes;
};

/* Rows of all lengths, some without edges. */
static struct coo uneven(struct scene *s)
{
	s->nodes = 300;
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int64_t i = 0; i < s->nodes; i++)
		for (int64_t k = 0; k < i % 40; k++)
			coo_add(&list, i, test_below(s->nodes));
	return list;
}

/* Windows whose 16 rows share their 48 sources; every 17th row has none. */
static struct coo blocks(struct scene *s)
{
	s->nodes = 320;
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int64_t i = 0; i < s->nodes; i++)
		for (int64_t k = 0; i % 17 != 4 && k < 48; k++)
			coo_add(&list, i, (i / 16 * 13 + k) % s->nodes);
	return list;
}

static void attach_tiles(struct scene *s)
{
	const struct hg__tile_terms any = {0, 0, 256};
	struct host_csr host = host_csr_download(s->ctx, s->graph);
	s->plan = *s->csr.plan;
	CHECK_OK(hg__tiles_build(s->ctx, &s->csr, host.rowptr, &any, &s->plan.tiles));
	CHECK((s->plan.tiles != NULL) == (s->ctx->backend->tiles_count != NULL));
	s->csr.plan = &s->plan;
	host_csr_free(&host);
}

enum { GRAPHS = 5 };
/* Full graphs, and with a share of edges of one in thirty one that is too sparse to be computed
 * densely; one of 150 nodes is too large. */
static const int64_t all_small[GRAPHS + 1] = {0, 17, 80, 81, 121, 249},
                                        some_small[GRAPHS + 1] = {0, 17, 167, 231, 271, 399};
enum { SPARSE = 3 };

static struct coo batch(struct scene *s, const int64_t *begin, int one_sparse)
{
	s->nodes = begin[GRAPHS];
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int g = 0; g < GRAPHS; g++)
		for (int64_t i = begin[g]; i < begin[g + 1]; i++)
			for (int64_t j = begin[g]; i % 7 != 6 && j < begin[g + 1]; j++)
				if (one_sparse && g == SPARSE ? test_below(30) == 0 : test_below(3) != 0)
					coo_add(&list, i, j);
	return list;
}

static struct coo small_graphs(struct scene *s)
{
	return batch(s, all_small, 0);
}
static struct coo mixed_graphs(struct scene *s)
{
	return batch(s, some_small, 1);
}

static void attach_dense(struct scene *s, const int64_t *begin, int is_mixed)
{
	const int wanted = s->ctx->backend->wants_dense;
	struct hg__csr csr_t;
	CHECK_OK(hg_graph_set_batch(s->graph, GRAPHS, begin));
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	CHECK_OK(hg__graph_csr_t(s->graph, 0, &csr_t));
	CHECK_OK(hg__graph_dense_from(s->graph, 0, 0, 0));
	CHECK((s->csr.plan->dense != NULL) == (wanted && !is_mixed));
	CHECK((s->csr.plan->rest != NULL) == (wanted && is_mixed));
}
static void attach_small(struct scene *s)
{
	attach_dense(s, all_small, 0);
}
static void attach_mixed(struct scene *s)
{
	attach_dense(s, some_small, 1);
}
static void attach_nothing(struct scene *s)
{
	(void)s;
}

#ifdef HG_HAVE_CUDA
#define TAKES(name) _Bool hg__cuda_attention_##name##_takes(const struct hg__attention_args *a)
TAKES(graphs);
TAKES(tiles);
TAKES(mixed);
TAKES(add);
TAKES(packs);
#define KERNEL(name) hg__cuda_attention_##name##_takes
#else
#define KERNEL(name) NULL
#endif

static const struct row {
	const char *name;
	struct coo (*edges)(struct scene *s);
	void (*attach)(struct scene *s);
	hg_score score;
	hg_dtype dtype;
	int d;
	/* the CUDA kernel that takes the call; NULL: the one that takes every call */
	_Bool (*takes)(const struct hg__attention_args *a);
} rows[] = {
    {"add", uneven, attach_nothing, HG_SCORE_ADD, HG_F16, 16, KERNEL(add)},
    {"add, f32", uneven, attach_nothing, HG_SCORE_ADD, HG_F32, 16, KERNEL(add)},
    {"packs", uneven, attach_nothing, HG_SCORE_DOT, HG_F16, 16, KERNEL(packs)},
    {"packs, of cosines", uneven, attach_nothing, HG_SCORE_COSINE, HG_F16, 16, KERNEL(packs)},
    {"packs, with a vector", uneven, attach_nothing, HG_SCORE_ADD_V2, HG_F16, 64, KERNEL(packs)},
    {"any", uneven, attach_nothing, HG_SCORE_DOT, HG_F16, 5, NULL},
    {"tiles", blocks, attach_tiles, HG_SCORE_ADD, HG_F16, 16, KERNEL(tiles)},
    {"wide tiles", blocks, attach_tiles, HG_SCORE_ADD, HG_F16, 80, KERNEL(tiles)},
    {"graphs", small_graphs, attach_small, HG_SCORE_ADD, HG_F16, 16, KERNEL(graphs)},
    {"graphs, DOT", small_graphs, attach_small, HG_SCORE_DOT, HG_F16, 32, KERNEL(graphs)},
    {"mixed", mixed_graphs, attach_mixed, HG_SCORE_ADD, HG_F16, 16, KERNEL(mixed)},
    {"mixed, DOT", mixed_graphs, attach_mixed, HG_SCORE_DOT, HG_F16, 32, KERNEL(mixed)},
};

static void scene_open(struct scene *s, const struct row *row)
{
	const int64_t step = STEP;
	const uint64_t no_overflow = 0;
	memset(s, 0, sizeof *s);
	test_reseed(21);
	test_note("%s", row->name);
	s->ctx = test_context();
	s->graph = coo_graph(s->ctx, row->edges(s));
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	row->attach(s);
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof step, &step, "step", &s->step));
	CHECK_OK(hg__buffer_upload(s->ctx, 1, sizeof no_overflow, &no_overflow, "flag", &s->flag));
}

static void scene_close(struct scene *s)
{
	hg__tiles_free(s->ctx, s->plan.tiles);
	hg__buffer_free(s->ctx, &s->step);
	hg__buffer_free(s->ctx, &s->flag);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
}

/* ---- a call ---- */

enum { IN_Q, IN_K, IN_V, IN_C, IN_B, OUT_Y, OUT_PLUS, OUT_SUMS, OUT_ENDED, OUT_EXPECTED, TENSORS };

struct run {
	struct scene s;
	const struct row *row;
	hg_tensor *tensor[TENSORS];
	int64_t width;
	struct hg__attention_args a;
};

static hg_tensor *tensor_new(struct run *r, hg_dtype dtype, int64_t tensor_rows, int64_t cols)
{
	hg_tensor *t = NULL;
	CHECK_OK(hg_tensor_create(r->s.ctx, dtype, tensor_rows, cols, &t));
	CHECK_OK(r->s.ctx->backend->fill(r->s.ctx, t->mat.data, 0xFF, t->bytes));
	return t;
}

/* Fills a tensor with mean + spread times normal numbers. */
static void draw(hg_tensor *t, double mean, double spread)
{
	const size_t count = (size_t)(t->mat.rows * t->mat.cols);
	float *x = malloc(count * sizeof *x);
	CHECK(x);
	for (size_t i = 0; i < count; i++)
		x[i] = (float)(mean + spread * test_normal());
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	free(x);
}

static float *download_new(hg_tensor *t)
{
	float *x = malloc((size_t)(t->mat.rows * t->mat.cols) * sizeof *x);
	CHECK(x);
	CHECK_OK(hg_tensor_download(t, x, HG_F32));
	return x;
}

static void run_open(struct run *r, const struct row *row)
{
	memset(r, 0, sizeof *r);
	r->row = row;
	scene_open(&r->s, row);
	const int add = row->score == HG_SCORE_ADD;
	const int64_t n = r->s.nodes, q = add ? HEADS : HEADS * row->d;
	r->width = HEADS * row->d;
	const struct {
		hg_dtype dtype;
		int64_t rows, cols;
		double spread;
	} made[TENSORS] = {
	    [IN_Q] = {row->dtype, n, q, 0.5},
	    [IN_K] = {row->dtype, n, q, 0.5},
	    [IN_V] = {row->dtype, n, r->width, 1.0},
	    [IN_C] = {HG_F32, 1, row->score == HG_SCORE_COSINE ? HEADS : q, 0.5},
	    [IN_B] = {row->dtype, 1, r->width, 1.0},
	    [OUT_Y] = {row->dtype, n, r->width, 0.0},
	    [OUT_PLUS] = {row->dtype, n, r->width, 0.0},
	    [OUT_SUMS] = {HG_F32, n, add ? 2 * HEADS : HEADS, 0.0},
	    [OUT_ENDED] = {row->dtype, n, r->width, 0.0},
	    [OUT_EXPECTED] = {row->dtype, n, r->width, 0.0},
	};
	for (int i = 0; i < TENSORS; i++) {
		r->tensor[i] = tensor_new(r, made[i].dtype, made[i].rows, made[i].cols);
		if (i < OUT_Y)
			draw(r->tensor[i], 0.0, made[i].spread);
	}
	r->a = (struct hg__attention_args){
	    .csr = r->s.csr,
	    .of = {.score = row->score,
	           .heads = HEADS,
	           .slope = 0.25f,
	           .scale = 0.5f,
	           .q = r->tensor[IN_Q]->mat,
	           .k = r->tensor[IN_K]->mat,
	           .v = r->tensor[IN_V]->mat,
	           .dropout = {0.0f, KEY, r->s.step.data}},
	    .y = r->tensor[OUT_Y]->mat,
	    .log_sum = r->tensor[OUT_SUMS]->mat,
	    .ended = r->tensor[OUT_ENDED]->mat,
	    .epilogue = {.b = r->tensor[IN_B]->mat},
	    .overflow = {r->row->dtype == HG_F16 ? r->s.flag.data : NULL, NODE}};
	if (add)
		r->a.plus = r->tensor[OUT_PLUS]->mat;
	if (row->score == HG_SCORE_COSINE || row->score == HG_SCORE_ADD_V2)
		r->a.of.c = r->tensor[IN_C]->mat;
}

static void run_close(struct run *r)
{
	for (int i = 0; i < TENSORS; i++)
		hg_tensor_free(r->tensor[i]);
	scene_close(&r->s);
}

#ifdef HG_HAVE_CUDA
/* A test of one kernel must not be one of another. On a CPU none of them has what it needs. */
static void expect_kernel(const struct run *r)
{
	const int is_cuda = r->s.ctx->backend->tiles_count != NULL;
	CHECK(!is_cuda || !r->row->takes || r->row->takes(&r->a));
}
#else
static void expect_kernel(const struct run *r)
{
	CHECK(!r->row->takes);
}
#endif

/* The node in the overflow flag, which is cleared; -1: none. */
static int32_t overflowed(struct run *r)
{
	uint64_t word = 0;
	hg_context *ctx = r->s.ctx;
	CHECK_OK(ctx->backend->copy_out(ctx, &word, r->s.flag.data, sizeof word));
	CHECK_OK(ctx->backend->fill(ctx, r->s.flag.data, 0, sizeof word));
	return hg__overflow_node(word);
}

static void attend(struct run *r)
{
	hg_context *ctx = r->s.ctx;
	expect_kernel(r);
	for (int i = OUT_Y; i < TENSORS; i++)
		CHECK_OK(ctx->backend->fill(ctx, r->tensor[i]->mat.data, 0xFF, r->tensor[i]->bytes));
	CHECK_OK(ctx->backend->kernels->attention.run(ctx, &r->a));
}

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

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(results_are_those_of_the_epilogue),
	    TEST(overflow_of_the_epilogue_is_flagged),
	    TEST(the_kernel_of_an_epilogue_checks_its_result),
	};
	return RUN_TESTS(argc, argv, cases);
}
