#ifndef HG_TESTS_UNIT_ATTENTION_SCENE_H
#define HG_TESTS_UNIT_ATTENTION_SCENE_H

/* The graphs for which a GPU has attention kernels of their own, and a call of attention on them,
 * for the tests of what comes after attention: attention_ended.c, attention_mean.c. */

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
static inline struct coo uneven(struct scene *s)
{
	s->nodes = 300;
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int64_t i = 0; i < s->nodes; i++)
		for (int64_t k = 0; k < i % 40; k++)
			coo_add(&list, i, test_below(s->nodes));
	return list;
}

/* More rows than one block adds up. */
static inline struct coo many_rows(struct scene *s)
{
	s->nodes = 5000;
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int64_t i = 0; i < s->nodes; i++)
		for (int64_t k = 0; k < i % 4; k++)
			coo_add(&list, i, test_below(s->nodes));
	return list;
}

/* Windows whose 16 rows share their 48 sources; every 17th row has none. */
static inline struct coo blocks(struct scene *s)
{
	s->nodes = 320;
	struct coo list = coo_empty(s->nodes, s->nodes);
	for (int64_t i = 0; i < s->nodes; i++)
		for (int64_t k = 0; i % 17 != 4 && k < 48; k++)
			coo_add(&list, i, (i / 16 * 13 + k) % s->nodes);
	return list;
}

static inline void attach_tiles(struct scene *s)
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

static inline struct coo batch(struct scene *s, const int64_t *begin, int one_sparse)
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

static inline struct coo small_graphs(struct scene *s)
{
	return batch(s, all_small, 0);
}
static inline struct coo mixed_graphs(struct scene *s)
{
	return batch(s, some_small, 1);
}

static inline void attach_dense(struct scene *s, const int64_t *begin, int is_mixed)
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
static inline void attach_small(struct scene *s)
{
	attach_dense(s, all_small, 0);
}
static inline void attach_mixed(struct scene *s)
{
	attach_dense(s, some_small, 1);
}
static inline void attach_nothing(struct scene *s)
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
_Bool hg__cuda_attention_back_add_ends(const struct hg__attention_back_args *a);
_Bool hg__cuda_attention_back_add_takes(const struct hg__attention_back_args *a);
hg_status hg__cuda_attention_back_add(hg_context *ctx, const struct hg__attention_back_args *a);
#define KERNEL(name) hg__cuda_attention_##name##_takes
#else
#define KERNEL(name) NULL
#endif

struct row {
	const char *name;
	struct coo (*edges)(struct scene *s);
	void (*attach)(struct scene *s);
	hg_score score;
	hg_dtype dtype;
	int d;
	/* the CUDA kernel that takes the call; NULL: the one that takes every call */
	_Bool (*takes)(const struct hg__attention_args *a);
	int heads; /* 0: HEADS */
};
static const struct row rows[] = {
    {"add", uneven, attach_nothing, HG_SCORE_ADD, HG_F16, 16, KERNEL(add), 0},
    {"add, f32", uneven, attach_nothing, HG_SCORE_ADD, HG_F32, 16, KERNEL(add), 0},
    {"packs", uneven, attach_nothing, HG_SCORE_DOT, HG_F16, 16, KERNEL(packs), 0},
    {"packs, of cosines", uneven, attach_nothing, HG_SCORE_COSINE, HG_F16, 16, KERNEL(packs), 0},
    {"packs, with a vector", uneven, attach_nothing, HG_SCORE_ADD_V2, HG_F16, 64, KERNEL(packs), 0},
    {"any", uneven, attach_nothing, HG_SCORE_DOT, HG_F16, 5, NULL, 0},
    {"tiles", blocks, attach_tiles, HG_SCORE_ADD, HG_F16, 16, KERNEL(tiles), 0},
    {"wide tiles", blocks, attach_tiles, HG_SCORE_ADD, HG_F16, 80, KERNEL(tiles), 0},
    {"graphs", small_graphs, attach_small, HG_SCORE_ADD, HG_F16, 16, KERNEL(graphs), 0},
    {"graphs, DOT", small_graphs, attach_small, HG_SCORE_DOT, HG_F16, 32, KERNEL(graphs), 0},
    {"mixed", mixed_graphs, attach_mixed, HG_SCORE_ADD, HG_F16, 16, KERNEL(mixed), 0},
    {"mixed, DOT", mixed_graphs, attach_mixed, HG_SCORE_DOT, HG_F16, 32, KERNEL(mixed), 0},
};

static inline void scene_open(struct scene *s, const struct row *row)
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

static inline void scene_close(struct scene *s)
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
	int heads;
	struct hg__attention_args a;
};

static inline hg_tensor *tensor_new(struct run *r, hg_dtype dtype, int64_t tensor_rows,
                                    int64_t cols)
{
	hg_tensor *t = NULL;
	CHECK_OK(hg_tensor_create(r->s.ctx, dtype, tensor_rows, cols, &t));
	CHECK_OK(r->s.ctx->backend->fill(r->s.ctx, t->mat.data, 0xFF, t->bytes));
	return t;
}

/* Fills a tensor with mean + spread times normal numbers. */
static inline void draw(hg_tensor *t, double mean, double spread)
{
	const size_t count = (size_t)(t->mat.rows * t->mat.cols);
	float *x = malloc(count * sizeof *x);
	CHECK(x);
	for (size_t i = 0; i < count; i++)
		x[i] = (float)(mean + spread * test_normal());
	CHECK_OK(hg_tensor_upload(t, x, HG_F32));
	free(x);
}

static inline float *download_new(hg_tensor *t)
{
	float *x = malloc((size_t)(t->mat.rows * t->mat.cols) * sizeof *x);
	CHECK(x);
	CHECK_OK(hg_tensor_download(t, x, HG_F32));
	return x;
}

static inline void run_open(struct run *r, const struct row *row)
{
	memset(r, 0, sizeof *r);
	r->row = row;
	scene_open(&r->s, row);
	const int add = row->score == HG_SCORE_ADD;
	const int heads = r->heads = row->heads ? row->heads : HEADS;
	const int64_t n = r->s.nodes, q = add ? heads : heads * row->d;
	r->width = heads * row->d;
	const struct {
		hg_dtype dtype;
		int64_t rows, cols;
		double spread;
	} made[TENSORS] = {
	    [IN_Q] = {row->dtype, n, q, 0.5},
	    [IN_K] = {row->dtype, n, q, 0.5},
	    [IN_V] = {row->dtype, n, r->width, 1.0},
	    [IN_C] = {HG_F32, 1, row->score == HG_SCORE_COSINE ? heads : q, 0.5},
	    [IN_B] = {row->dtype, 1, r->width, 1.0},
	    [OUT_Y] = {row->dtype, n, r->width, 0.0},
	    [OUT_PLUS] = {row->dtype, n, r->width, 0.0},
	    [OUT_SUMS] = {HG_F32, n, add ? 2 * heads : heads, 0.0},
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
	           .heads = heads,
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

static inline void run_close(struct run *r)
{
	for (int i = 0; i < TENSORS; i++)
		hg_tensor_free(r->tensor[i]);
	scene_close(&r->s);
}

#ifdef HG_HAVE_CUDA
/* A test of one kernel must not be one of another. On a CPU none of them has what it needs. */
static inline void expect_kernel(const struct run *r)
{
	const int is_cuda = r->s.ctx->backend->tiles_count != NULL;
	CHECK(!is_cuda || !r->row->takes || r->row->takes(&r->a));
}
#else
static inline void expect_kernel(const struct run *r)
{
	CHECK(!r->row->takes);
}
#endif

/* The node in the overflow flag, which is cleared; -1: none. */
static inline int32_t overflowed(struct run *r)
{
	uint64_t word = 0;
	hg_context *ctx = r->s.ctx;
	CHECK_OK(ctx->backend->copy_out(ctx, &word, r->s.flag.data, sizeof word));
	CHECK_OK(ctx->backend->fill(ctx, r->s.flag.data, 0, sizeof word));
	return hg__overflow_node(word);
}

static inline void attend(struct run *r)
{
	hg_context *ctx = r->s.ctx;
	expect_kernel(r);
	for (int i = OUT_Y; i < TENSORS; i++)
		CHECK_OK(ctx->backend->fill(ctx, r->tensor[i]->mat.data, 0xFF, r->tensor[i]->bytes));
	CHECK_OK(ctx->backend->kernels->attention.run(ctx, &r->a));
}

#endif
