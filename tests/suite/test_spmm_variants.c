#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/plan_tiles.h"
#include "graphs.h"
#include "precision/bound.h"
#include "spmm_variants.h"
#include "suite/battery.h"

/* The variants of spmm that hg-bench measures: each takes the whole battery of the op in the place
 * of the kernel that training uses, wherever it can compute the call; then the sums that tell them
 * apart. A CPU has the one kernel, which then computes every call. */

/* ---- the battery, with a variant in the kernel's place ---- */

static struct {
	enum spmm_variant_id variant;
	int64_t taken, passed_on;
} wanted;

/* Computes a call by the variant, or by the kernel that training uses if the variant cannot. Sets
 * *why as spmm_variant_open does. */
static hg_status spmm_by(hg_context *ctx, enum spmm_variant_id id, const struct hg__spmm_args *a,
                         const char **why)
{
	struct spmm_variant_call call;
	int64_t *rowptr = calloc((size_t)a->csr.rows + 1, sizeof *rowptr);
	CHECK(rowptr);
	CHECK_OK(ctx->backend->copy_out(ctx, rowptr, a->csr.rowptr,
	                                ((size_t)a->csr.rows + 1) * sizeof *rowptr));
	hg_status status = spmm_variant_open(ctx, id, a, rowptr, &call, why);
	if (status == HG_OK)
		status = *why ? ctx->backend->kernels->spmm.run(ctx, a) : spmm_variant_run(&call);
	spmm_variant_close(&call);
	free(rowptr);
	return status;
}

static hg_status spmm_by_variant(hg_context *ctx, const struct hg__spmm_args *a)
{
	const char *why = NULL;
	const hg_status status = spmm_by(ctx, wanted.variant, a, &why);
	if (why)
		wanted.passed_on++;
	else
		wanted.taken++;
	return status;
}

/* A CPU passes every variant on: its kernels have had the battery. */
static hg_context *context_of_gpu(void)
{
	hg_context *ctx = test_context();
	if (ctx->backend->kind != HG_DEVICE_CUDA) {
		hg_context_free(ctx);
		SKIP("variants need a GPU");
	}
	return ctx;
}

static void keeps_its_bound(const void *item)
{
	const struct spmm_variant *v = item;
	hg_context *ctx = context_of_gpu();
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct battery_score score = {.unordered = (v->flags & VARIANT_UNORDERED) != 0,
	                              .sum_u = v->share == SHARE_TILES ? ORACLE_TILES : 0};
	kernels.spmm.run = spmm_by_variant;
	memset(&wanted, 0, sizeof wanted);
	wanted.variant = (enum spmm_variant_id)(v - spmm_variants);
	battery_op(ctx, &kernels, &hg__op_spmm, &score);
	test_note("%-16s worst err/bound %.3f, %lld calls taken, %lld passed on (%s)", v->name,
	          score.worst, (long long)wanted.taken, (long long)wanted.passed_on, score.where);
	CHECK(wanted.taken > 0 && wanted.passed_on > 0);
	/* half2 atomics round more often than the battery allows for sums in f32: the star below is
	 * theirs */
	if (!(v->flags & VARIANT_UNSAFE) && v->bound == v->accumulate)
		CHECK_MSG(score.worst <= 1, "%s: err/bound = %.3f at %s", v->name, score.worst,
		          score.where);
	hg_context_free(ctx);
}

/* Tiles have an epilogue. */
static void tiles_end_as_they_should(void)
{
	hg_context *ctx = context_of_gpu();
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct battery_score score = {.sum_u = ORACLE_TILES};
	kernels.spmm.run = spmm_by_variant;
	memset(&wanted, 0, sizeof wanted);
	wanted.variant = SPMM_TILES;
	battery_op(ctx, &kernels, &hg__op_spmm_epilogue, &score);
	test_note("worst err/bound %.3f, %lld calls taken (%s)", score.worst, (long long)wanted.taken,
	          score.where);
	CHECK_MSG(score.worst <= 1, "err/bound = %.3f at %s", score.worst, score.where);
	CHECK(wanted.taken > 0);
	hg_context_free(ctx);
}

/* Groups are a plan as any other: the kernel that training uses walks them, too. */
static hg_status spmm_over_groups(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args args = *a;
	struct hg__plan *groups = NULL;
	int64_t *rowptr = calloc((size_t)a->csr.rows + 1, sizeof *rowptr);
	CHECK(rowptr);
	CHECK_OK(ctx->backend->copy_out(ctx, rowptr, a->csr.rowptr,
	                                ((size_t)a->csr.rows + 1) * sizeof *rowptr));
	CHECK_OK(spmm_variant_groups(ctx, a->csr.rows, rowptr, 32, &groups));
	args.csr.plan = groups;
	const hg_status status = ctx->backend->kernels->spmm.run(ctx, &args);
	hg__plan_free(ctx, groups);
	free(rowptr);
	return status;
}

static void groups_are_a_plan(void)
{
	hg_context *ctx = test_context();
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct battery_score score = {0};
	kernels.spmm.run = spmm_over_groups;
	battery_op(ctx, &kernels, &hg__op_spmm, &score);
	CHECK_MSG(score.worst <= 1, "err/bound = %.3f at %s", score.worst, score.where);
	hg_context_free(ctx);
}

/* ---- a star: the mean of what its leaves say ---- */

enum { WIDTH = 8 };

struct star {
	hg_context *ctx;
	hg_graph *graph;
	hg_tensor *x, *y;
	struct hg__spmm_args args;
};

static void star_open(struct star *s, int64_t leaves, double (*value)(int64_t))
{
	float *x = calloc((size_t)(leaves + 1) * WIDTH, sizeof *x);
	CHECK(x);
	for (int64_t i = 0; i < (leaves + 1) * WIDTH; i++)
		x[i] = (float)value(i / WIDTH);
	memset(s, 0, sizeof *s);
	s->ctx = test_context();
	s->graph = coo_graph(s->ctx, coo_star(leaves));
	CHECK_OK(hg_tensor_create(s->ctx, HG_F16, leaves + 1, WIDTH, &s->x));
	CHECK_OK(hg_tensor_create(s->ctx, HG_F16, leaves + 1, WIDTH, &s->y));
	CHECK_OK(hg_tensor_upload(s->x, x, HG_F32));
	s->args = (struct hg__spmm_args){.x = s->x->mat, .y = s->y->mat, .heads = 1, .alpha = 1.0f};
	CHECK_OK(hg__graph_csr(s->graph, &s->args.csr));
	CHECK_OK(hg__graph_norm(s->graph, HG_NORM_RIGHT, &s->args.row_scale, &s->args.col_scale));
	free(x);
}

static void star_close(struct star *s)
{
	hg_tensor_free(s->x);
	hg_tensor_free(s->y);
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
}

/* The hub's first column. */
static double star_mean(struct star *s, enum spmm_variant_id id)
{
	struct hg__spmm_args args = s->args;
	const char *why = NULL;
	args.accumulate = spmm_variants[id].accumulate;
	CHECK_OK(spmm_by(s->ctx, id, &args, &why));
	CHECK_MSG(s->ctx->backend->kind != HG_DEVICE_CUDA || !why, "%s: %s", spmm_variants[id].name,
	          why);
	const int64_t count = hg_tensor_rows(s->y) * WIDTH;
	float *y = calloc((size_t)count, sizeof *y);
	CHECK(y);
	CHECK_OK(hg_tensor_download(s->y, y, HG_F32));
	const double mean = (double)y[0];
	free(y);
	return mean;
}

/* In (0, 1), exact in f16. */
static double fraction(int64_t i)
{
	return (double)(1 + (i * 2654435761) % 1023) / 1024.0;
}

static double one(int64_t i)
{
	(void)i;
	return 1.0;
}

static double tiny(int64_t i)
{
	(void)i;
	return 0x1p-15;
}

static double star_bound(const struct star *s, hg_accumulate accumulate, int64_t leaves,
                         double mean)
{
	const int64_t pieces = leaves / (s->args.csr.plan->item_work / 2) + 3;
	const struct hg__sum_f16 sum = {
	    leaves, HG_BATCH_EDGES, pieces, 1.0 / (double)leaves, mean * (double)leaves, 0};
	return accumulate == HG_ACC_F32
	           ? hg__bound_sum(HG_F16, (double)(leaves + pieces + 3), mean, mean)
	           : hg__bound_sum_f16(&sum);
}

/* Of so many that sums in f16 have a bound, however the row is cut. */
static void safe_ones_take_the_mean_of_a_star(void)
{
	enum { LEAVES = 2000 };
	struct star s;
	double mean = 0;
	for (int64_t i = 1; i <= LEAVES; i++)
		mean += fraction(i) / (double)LEAVES;
	star_open(&s, LEAVES, fraction);
	for (int id = 0; id < SPMM_VARIANTS; id++) {
		const struct spmm_variant *v = &spmm_variants[id];
		const double bound = star_bound(&s, v->bound, LEAVES, mean),
		             found = star_mean(&s, (enum spmm_variant_id)id);
		test_note("%-16s err/bound %.3f", v->name, fabs(found - mean) / bound);
		if (!(v->flags & VARIANT_UNSAFE))
			CHECK_MSG(fabs(found - mean) <= bound, "%s: %.9g, exactly %.9g, bound %.3g", v->name,
			          found, mean, bound);
	}
	star_close(&s);
}

static void scaling_after_the_sum_overflows(void)
{
	struct star s;
	star_open(&s, 70000, one);
	const double post = star_mean(&s, SPMM_POST);
	star_close(&s);
	/* infinite, or where one accumulator has the row, stuck */
	CHECK_MSG(isinf(post) || post < 0.9, "the mean of 70,000 ones is %g", post);
}

/* 2^-15 / 2000 is no f16 number but 0. */
static void scaling_every_term_underflows(void)
{
	enum { LEAVES = 2000 };
	struct star s;
	star_open(&s, LEAVES, tiny);
	const int gpu = s.ctx->backend->kind == HG_DEVICE_CUDA;
	const double pre = star_mean(&s, SPMM_PRE), safe = star_mean(&s, SPMM_DISCRETIZED),
	             bound = star_bound(&s, HG_ACC_F16_DISCRETIZED, LEAVES, 0x1p-15);
	star_close(&s);
	CHECK_MSG(!gpu || pre == 0, "the mean of numbers of 2^-15 is %g, scaled term by term", pre);
	CHECK_WITHIN(safe, 0x1p-15, bound);
}

/* ---- tiles: sums that are exact in f32, so that only one answer is right ---- */

/* 37 windows and 5 rows. Row 0 has 6500 neighbours: its window is several items; rows 1 to 15 share
 * some of them. Rows 32 to 63 are two windows without edges. Rows 70 and 71 have one neighbour 4,
 * 17 and 40 times. The others share few with their window, or all. */
enum { TILE_NODES = 37 * 16 + 5, TILE_SOURCES = 7000, TILE_EDGES = 40000 };

struct tiled {
	hg_context *ctx;
	hg_graph *graph;
	int64_t m, rowptr[TILE_NODES + 1];
	int32_t dst[TILE_EDGES], src[TILE_EDGES];
};

static void tiled_edge(struct tiled *t, int64_t dst, int64_t src, int times)
{
	for (int k = 0; k < times; k++) {
		CHECK(t->m < TILE_EDGES);
		t->dst[t->m] = (int32_t)dst;
		t->src[t->m++] = (int32_t)src;
	}
}

static struct tiled *tiled_open(void)
{
	struct tiled *t = calloc(1, sizeof *t);
	CHECK(t);
	t->ctx = test_context();
	for (int64_t j = 0; j < 6500; j++)
		tiled_edge(t, 0, j, 1);
	for (int64_t i = 1; i < TILE_NODES; i++) {
		if (i >= 32 && i < 64)
			continue;
		for (int64_t k = 0; k < i % 23; k++)
			tiled_edge(
			    t, i,
			    i < 16 ? k * 431 : (i / 16 * (i % 2 ? 17 : 16 + i % 7) + k * 29) % TILE_SOURCES, 1);
	}
	tiled_edge(t, 70, 5, 4);
	tiled_edge(t, 70, 6, 17);
	tiled_edge(t, 71, 6, 40);
	tiled_edge(t, 71, 6999, 3);
	CHECK_OK(hg_graph_from_coo(t->ctx, TILE_NODES, TILE_SOURCES, t->m, t->dst, t->src, NULL, NULL,
	                           &t->graph));
	CHECK_OK(hg_graph_download(t->graph, t->rowptr, t->src, NULL));
	return t;
}

static void tiled_close(struct tiled *t)
{
	hg_graph_free(t->graph);
	hg_context_free(t->ctx);
	free(t);
}

/* Multiples of 1/8 up to 1: the sum of 6500 has 16 bits. */
static double eighth(int64_t j, int64_t c)
{
	return (double)((j * 7 + c * 13) % 17 - 8) / 8.0;
}

/* y <- Y, cols wide, of X given as `x`, through the tiles. */
static void tiled_run(struct tiled *t, int64_t cols, const float *x, struct hg__spmm_args args,
                      float *y)
{
	hg_tensor *in, *out;
	const char *why = NULL;
	CHECK_OK(hg_tensor_create(t->ctx, HG_F16, TILE_SOURCES, cols, &in));
	CHECK_OK(hg_tensor_create(t->ctx, HG_F16, TILE_NODES, cols, &out));
	CHECK_OK(hg_tensor_upload(in, x, HG_F32));
	args.x = in->mat;
	args.y = out->mat;
	args.heads = 1;
	CHECK_OK(hg__graph_csr(t->graph, &args.csr));
	CHECK_OK(spmm_by(t->ctx, SPMM_TILES, &args, &why));
	if (t->ctx->backend->kind == HG_DEVICE_CUDA)
		CHECK_EQ_I(why == NULL, out->mat.ld % 8 == 0);
	CHECK_OK(hg_tensor_download(out, y, HG_F32));
	hg_tensor_free(out);
	hg_tensor_free(in);
}

/* r_i * sum over the row of s_j X[j, c], every number exact. */
static double tiled_sum(const struct tiled *t, int64_t cols, const float *x, int64_t i, int64_t c,
                        const float *s)
{
	double sum = 0;
	for (int64_t e = t->rowptr[i]; e < t->rowptr[i + 1]; e++)
		sum += (double)x[t->src[e] * cols + c] * (s ? (double)s[t->src[e]] : 1.0);
	return sum;
}

static void tiled_fill(int64_t cols, float *x)
{
	for (int64_t j = 0; j < TILE_SOURCES; j++)
		for (int64_t c = 0; c < cols; c++)
			x[j * cols + c] = (float)eighth(j, c);
}

static void tiles_of_every_width(void)
{
	static const int64_t widths[] = {1,  2,  3,  4,  5,  7,  8,  9,   16,  17,  31,  32, 33,
	                                 41, 63, 64, 65, 71, 96, 97, 127, 128, 129, 130, 200};
	struct tiled *t = tiled_open();
	float *x = calloc((size_t)TILE_SOURCES * 200, sizeof *x),
	      *y = calloc((size_t)TILE_NODES * 200, sizeof *y);
	CHECK(x && y);
	for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
		const int64_t cols = widths[k];
		tiled_fill(cols, x);
		tiled_run(t, cols, x, (struct hg__spmm_args){.alpha = -0.5f}, y);
		for (int64_t i = 0; i < TILE_NODES; i++)
			for (int64_t c = 0; c < cols; c++)
				CHECK_WITHIN(y[i * cols + c], -0.5 * tiled_sum(t, cols, x, i, c, NULL),
				             hg__bound_narrow(HG_F16, tiled_sum(t, cols, x, i, c, NULL) / 2));
	}
	free(x);
	free(y);
	tiled_close(t);
}

/* Factors of 1, 1/2, 1/4, which nothing rounds. */
static void tiles_after_a_scaling(void)
{
	enum { COLS = 41 };
	struct tiled *t = tiled_open();
	float *x = calloc((size_t)TILE_SOURCES * COLS, sizeof *x),
	      *y = calloc((size_t)TILE_NODES * COLS, sizeof *y);
	float r[TILE_NODES], *s = calloc(TILE_SOURCES, sizeof *s);
	hg_tensor *row, *col;
	CHECK(x && y && s);
	for (int64_t i = 0; i < TILE_NODES; i++)
		r[i] = ldexpf(1.0f, -(int)(i % 3));
	for (int64_t j = 0; j < TILE_SOURCES; j++)
		s[j] = ldexpf(1.0f, -(int)(j % 3));
	tiled_fill(COLS, x);
	CHECK_OK(hg_tensor_create(t->ctx, HG_F32, TILE_NODES, 1, &row));
	CHECK_OK(hg_tensor_create(t->ctx, HG_F32, TILE_SOURCES, 1, &col));
	CHECK_OK(hg_tensor_upload(row, r, HG_F32));
	CHECK_OK(hg_tensor_upload(col, s, HG_F32));
	tiled_run(t, COLS, x,
	          (struct hg__spmm_args){.alpha = 1.0f,
	                                 .row_scale = row->mat.data,
	                                 .col_scale = col->mat.data,
	                                 .scale_first = 1},
	          y);
	for (int64_t i = 0; i < TILE_NODES; i++)
		for (int64_t c = 0; c < COLS; c++) {
			const double exact = (double)r[i] * tiled_sum(t, COLS, x, i, c, s);
			CHECK_WITHIN(y[i * COLS + c], exact, hg__bound_narrow(HG_F16, exact));
		}
	hg_tensor_free(col);
	hg_tensor_free(row);
	free(s);
	free(x);
	free(y);
	tiled_close(t);
}

/* A product of 0 and infinity is no number: no row may see a neighbour of another row of its
 * window. */
static void what_is_not_finite_stays_with_its_neighbours(void)
{
	enum { COLS = 40, INFINITE = 431, NOT_A_NUMBER = 862 };
	struct tiled *t = tiled_open();
	float *x = calloc((size_t)TILE_SOURCES * COLS, sizeof *x),
	      *y = calloc((size_t)TILE_NODES * COLS, sizeof *y);
	CHECK(x && y);
	tiled_fill(COLS, x);
	x[INFINITE * COLS + 3] = INFINITY;
	x[NOT_A_NUMBER * COLS + 39] = NAN;
	tiled_run(t, COLS, x, (struct hg__spmm_args){.alpha = 1.0f}, y);
	int64_t infinite = 0, not_a_number = 0;
	for (int64_t i = 0; i < TILE_NODES; i++)
		for (int64_t c = 0; c < COLS; c++) {
			const double exact = tiled_sum(t, COLS, x, i, c, NULL), found = (double)y[i * COLS + c];
			infinite += isinf(exact) != 0;
			not_a_number += isnan(exact) != 0;
			if (isfinite(exact))
				CHECK_WITHIN(found, exact, hg__bound_narrow(HG_F16, exact));
			else
				CHECK_MSG(isnan(exact) ? isnan(found) : found == exact,
				          "row %lld, column %lld: %g, expected %g", (long long)i, (long long)c,
				          found, exact);
		}
	CHECK(infinite > 5 && infinite < 100 && not_a_number > 5 && not_a_number < 100);
	free(x);
	free(y);
	tiled_close(t);
}

/* The long row of that graph is split over several items. */
static void a_long_row_is_several_items_of_tiles(void)
{
	hg_context *gpu = context_of_gpu();
	hg_context_free(gpu);
	struct tiled *t = tiled_open();
	hg_tensor *in, *out;
	struct spmm_variant_call call;
	const char *why = NULL;
	CHECK_OK(hg_tensor_create(t->ctx, HG_F16, TILE_SOURCES, 8, &in));
	CHECK_OK(hg_tensor_create(t->ctx, HG_F16, TILE_NODES, 8, &out));
	struct hg__spmm_args args = {.x = in->mat, .y = out->mat, .heads = 1, .alpha = 1.0f};
	CHECK_OK(hg__graph_csr(t->graph, &args.csr));
	CHECK_OK(spmm_variant_open(t->ctx, SPMM_TILES, &args, t->rowptr, &call, &why));
	CHECK(!why && call.tiles->splits > 0 && call.tiles->slots >= 3);
	spmm_variant_close(&call);
	hg_tensor_free(out);
	hg_tensor_free(in);
	tiled_close(t);
}

/* ---- who computes what ---- */

static void what_cannot_compute_a_call_says_why(void)
{
	struct star s;
	star_open(&s, 100, one);
	const int gpu = s.ctx->backend->kind == HG_DEVICE_CUDA;
	s.args.accumulate = HG_ACC_F16_NAIVE; /* half8 does not sum so */
	const char *why = spmm_variant_refuses(s.ctx, &s.args, SPMM_HALF8);
	CHECK(why);
	CHECK_CONTAINS(why, gpu ? "another accumulation" : "needs a GPU");
	s.args.accumulate = HG_ACC_F32;
	CHECK_EQ_I(spmm_variant_refuses(s.ctx, &s.args, SPMM_HALF8) == NULL, gpu);
	star_close(&s);
}

/* Narrow rows are computed by narrow loads only. */
static void narrow_rows_need_narrow_loads(void)
{
	static const enum spmm_variant_id loads[] = {SPMM_HALF, SPMM_HALF2, SPMM_HALF4, SPMM_HALF8};
	struct star s;
	star_open(&s, 100, one);
	const int gpu = s.ctx->backend->kind == HG_DEVICE_CUDA;
	for (int width = 0; width < 4; width++)
		for (int load = 0; load < 4; load++) {
			struct hg__spmm_args a = s.args;
			a.x.cols = a.x.ld = a.y.cols = a.y.ld = (int64_t)1 << width;
			CHECK_EQ_I(spmm_variant_refuses(s.ctx, &a, loads[load]) == NULL, gpu && load <= width);
			a.heads = 2;
			a.w = (struct hg__mat){s.x->mat.data, 100, 2, 2, HG_F16};
			CHECK(spmm_variant_refuses(s.ctx, &a, loads[load]));
		}
	star_close(&s);
}

static void the_table_is_whole(void)
{
	for (int id = 0; id < SPMM_VARIANTS; id++) {
		const struct spmm_variant *v = &spmm_variants[id];
		CHECK(*v->name && *v->what && *v->source && v->columns > 0);
		CHECK((v->group > 0) == (v->share == SHARE_GROUPS));
		for (int other = 0; other < id; other++)
			CHECK(strcmp(v->name, spmm_variants[other].name) != 0);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case alone[] = {
	    TEST(the_table_is_whole),
	    TEST(what_cannot_compute_a_call_says_why),
	    TEST(narrow_rows_need_narrow_loads),
	    TEST(groups_are_a_plan),
	    TEST(tiles_end_as_they_should),
	    TEST(a_long_row_is_several_items_of_tiles),
	    TEST(tiles_of_every_width),
	    TEST(tiles_after_a_scaling),
	    TEST(what_is_not_finite_stays_with_its_neighbours),
	    TEST(safe_ones_take_the_mean_of_a_star),
	    TEST(scaling_after_the_sum_overflows),
	    TEST(scaling_every_term_underflows),
	};
	enum { ALONE = sizeof alone / sizeof alone[0] };
	struct test_case cases[ALONE + SPMM_VARIANTS];
	memcpy(cases, alone, sizeof alone);
	for (int id = 0; id < SPMM_VARIANTS; id++)
		cases[ALONE + id] =
		    (struct test_case){spmm_variants[id].name, 0, keeps_its_bound, &spmm_variants[id]};
	return test_main(argc, argv, cases, ALONE + SPMM_VARIANTS);
}
