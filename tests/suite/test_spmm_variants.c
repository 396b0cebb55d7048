#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "kernels/spmm_variants.h"
#include "precision/bound.h"
#include "suite/battery.h"

/* The variants of spmm: each takes the whole battery of the op in the place of the kernel that training uses, wherever it accepts the call; then the sums that
 * tell them apart. On the CPU every call falls to the one way there is. */

/* ---- the battery, with a variant in the kernel's place ---- */

static struct {
	enum hg__spmm_variant variant;
	int64_t taken, passed_on;
} wanted;

/* The groups of a graph on the device; NULL where the variant wants none. */
static hg_status groups_of(hg_context *ctx, const struct hg__csr *csr, int group, struct hg__plan **plan)
{
	*plan = NULL;
	if (!group)
		return HG_OK;
	int64_t *rowptr = calloc((size_t)csr->rows + 1, sizeof *rowptr);
	CHECK(rowptr);
	hg_status status = ctx->backend->copy_out(ctx, rowptr, csr->rowptr, ((size_t)csr->rows + 1) * sizeof *rowptr);
	if (status == HG_OK)
		status = hg__spmm_groups(ctx, csr->rows, rowptr, group, plan);
	free(rowptr);
	return status;
}

static hg_status spmm_by_variant(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args args = *a;
	struct hg__plan *groups = NULL;
	args.variant = (int)wanted.variant;
	HG__TRY(groups_of(ctx, &a->csr, hg__spmm_ways[wanted.variant].group, &groups));
	args.groups = groups;
	if (hg__spmm_refuses(ctx, &args, wanted.variant))
		wanted.passed_on++;
	else
		wanted.taken++;
	const hg_status status = ctx->backend->kernels->spmm(ctx, &args);
	hg__plan_free(ctx, groups);
	return status;
}

static void keeps_its_bound(const void *item)
{
	const struct hg__spmm_way *way = item;
	hg_context *ctx = test_context();
	if (ctx->backend->kind != HG_DEVICE_CUDA) {
		hg_context_free(ctx);
		SKIP("variants are ways of the GPU");
	}
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct battery_score score = {.unordered = (way->flags & HG__UNORDERED) != 0};
	kernels.spmm = spmm_by_variant;
	memset(&wanted, 0, sizeof wanted);
	wanted.variant = (enum hg__spmm_variant)(way - hg__spmm_ways);
	battery_op(ctx, &kernels, &hg__op_spmm, &score);
	test_note("%-16s worst err/bound %.3f, %lld calls taken, %lld passed on (%s)", way->name, score.worst, (long long)wanted.taken, (long long)wanted.passed_on,
	          score.where);
	CHECK(wanted.taken > 0 && wanted.passed_on > 0);
	/* half2 atomics round more often than the battery allows for sums in f32: the star below is theirs */
	if (!(way->flags & HG__UNSAFE) && way->bound == way->accumulate)
		CHECK_MSG(score.worst <= 1, "%s: err/bound = %.3f at %s", way->name, score.worst, score.where);
	hg_context_free(ctx);
}

/* Groups are a plan as any other: the kernel that training uses walks them, too. */
static hg_status spmm_over_groups(hg_context *ctx, const struct hg__spmm_args *a)
{
	struct hg__spmm_args args = *a;
	struct hg__plan *groups = NULL;
	HG__TRY(groups_of(ctx, &a->csr, 32, &groups));
	CHECK_EQ_I(groups->empty, a->csr.plan->empty);
	args.csr.plan = groups;
	const hg_status status = ctx->backend->kernels->spmm(ctx, &args);
	hg__plan_free(ctx, groups);
	return status;
}

static void groups_are_a_plan(void)
{
	hg_context *ctx = test_context();
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct battery_score score = {0};
	kernels.spmm = spmm_over_groups;
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
	int32_t *dst = calloc((size_t)leaves, sizeof *dst), *src = calloc((size_t)leaves, sizeof *src);
	float *x = calloc((size_t)(leaves + 1) * WIDTH, sizeof *x);
	CHECK(dst && src && x);
	for (int64_t e = 0; e < leaves; e++)
		src[e] = (int32_t)(e + 1);
	for (int64_t i = 0; i < (leaves + 1) * WIDTH; i++)
		x[i] = (float)value(i / WIDTH);
	memset(s, 0, sizeof *s);
	s->ctx = test_context();
	CHECK_OK(hg_graph_from_coo(s->ctx, leaves + 1, leaves + 1, leaves, dst, src, NULL, NULL, &s->graph));
	CHECK_OK(hg_tensor_create(s->ctx, HG_F16, leaves + 1, WIDTH, &s->x));
	CHECK_OK(hg_tensor_create(s->ctx, HG_F16, leaves + 1, WIDTH, &s->y));
	CHECK_OK(hg_tensor_upload(s->x, x, HG_F32));
	s->args = (struct hg__spmm_args){.x = s->x->mat, .y = s->y->mat, .heads = 1, .alpha = 1.0f};
	CHECK_OK(hg__graph_csr(s->graph, &s->args.csr));
	CHECK_OK(hg__graph_norm(s->graph, HG_NORM_RIGHT, &s->args.row_scale, &s->args.col_scale));
	free(dst);
	free(src);
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
static double star_mean(struct star *s, enum hg__spmm_variant variant)
{
	const struct hg__spmm_way *way = &hg__spmm_ways[variant];
	struct hg__plan *groups = NULL;
	CHECK_OK(groups_of(s->ctx, &s->args.csr, way->group, &groups));
	s->args.variant = (int)variant;
	s->args.groups = groups;
	s->args.accumulate = way->accumulate;
	CHECK(s->ctx->backend->kind != HG_DEVICE_CUDA || !hg__spmm_refuses(s->ctx, &s->args, variant));
	CHECK_OK(s->ctx->backend->kernels->spmm(s->ctx, &s->args));
	const int64_t count = hg_tensor_rows(s->y) * WIDTH;
	float *y = calloc((size_t)count, sizeof *y);
	CHECK(y);
	CHECK_OK(hg_tensor_download(s->y, y, HG_F32));
	const double mean = (double)y[0];
	free(y);
	hg__plan_free(s->ctx, groups);
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

static double star_bound(const struct star *s, hg_accumulate accumulate, int64_t leaves, double mean)
{
	const int64_t pieces = leaves / (s->args.csr.plan->item_work / 2) + 3;
	const struct hg__sum_f16 sum = {leaves, HG_BATCH_EDGES, pieces, 1.0 / (double)leaves, mean * (double)leaves, 0};
	return accumulate == HG_ACC_F32 ? hg__bound_sum(HG_F16, (double)(leaves + pieces + 3), mean, mean) : hg__bound_sum_f16(&sum);
}

/* Of so many that sums in f16 have a bound, however the row is cut. */
static void safe_ones_take_the_mean_of_a_star(void)
{
	enum { LEAVES = 2000 };
	struct star s;
	double mean = 0;
	for (int64_t i = 1; i <= LEAVES; i++)
		mean += fraction(i) / LEAVES;
	star_open(&s, LEAVES, fraction);
	for (int v = 0; v < HG__SPMM_VARIANTS; v++) {
		const struct hg__spmm_way *way = &hg__spmm_ways[v];
		const double bound = star_bound(&s, way->bound, LEAVES, mean), found = star_mean(&s, (enum hg__spmm_variant)v);
		test_note("%-16s err/bound %.3f", way->name, fabs(found - mean) / bound);
		if (!(way->flags & HG__UNSAFE))
			CHECK_MSG(fabs(found - mean) <= bound, "%s: %.9g, exactly %.9g, bound %.3g", way->name, found, mean, bound);
	}
	star_close(&s);
}

static void scaling_after_the_sum_overflows(void)
{
	struct star s;
	star_open(&s, 70000, one);
	const double post = star_mean(&s, HG__SPMM_POST);
	star_close(&s);
	CHECK_MSG(isinf(post) || post < 0.9, "the mean of 70,000 ones is %g", post); /* infinite, or where one accumulator has the row, stuck */
}

/* 2^-15 / 2000 is no f16 number but 0. */
static void scaling_every_term_underflows(void)
{
	enum { LEAVES = 2000 };
	struct star s;
	star_open(&s, LEAVES, tiny);
	const int gpu = s.ctx->backend->kind == HG_DEVICE_CUDA;
	const double pre = star_mean(&s, HG__SPMM_PRE), safe = star_mean(&s, HG__SPMM_DISCRETIZED), bound = star_bound(&s, HG_ACC_F16_DISCRETIZED, LEAVES, 0x1p-15);
	star_close(&s);
	CHECK_MSG(!gpu || pre == 0, "the mean of numbers of 2^-15 is %g, scaled term by term", pre);
	CHECK_WITHIN(safe, 0x1p-15, bound);
}

/* ---- who takes what ---- */

struct lines {
	int count;
	char text[8][256];
};

static void note_line(void *user, hg_log_level level, const char *message)
{
	struct lines *lines = user;
	(void)level;
	if (lines->count < 8)
		snprintf(lines->text[lines->count], sizeof lines->text[0], "%s", message);
	lines->count++;
}

static void what_cannot_take_a_call_says_why_once(void)
{
	struct star s;
	struct lines lines = {0};
	star_open(&s, 100, one);
	s.ctx->log = note_line;
	s.ctx->log_user = &lines;
	s.ctx->log_level = HG_LOG_DEBUG;
	s.args.accumulate = HG_ACC_F16_NAIVE; /* nothing from half8 on sums so */
	s.args.variant = HG__SPMM_HALF8;
	CHECK_EQ_I(hg__spmm_pick(s.ctx, &s.args), HG__SPMM_AUTO);
	CHECK_EQ_I(lines.count, 5);
	CHECK_CONTAINS(lines.text[0], "spmm: not half8 (");
	CHECK_CONTAINS(lines.text[0], s.ctx->backend->kind == HG_DEVICE_CUDA ? "another arithmetic" : "the GPU");
	CHECK_CONTAINS(lines.text[3], "but auto");
	CHECK_CONTAINS(lines.text[4], "spmm: auto");
	CHECK_EQ_I(hg__spmm_pick(s.ctx, &s.args), HG__SPMM_AUTO);
	CHECK_EQ_I(lines.count, 5);
	s.ctx->log = NULL;
	star_close(&s);
}

/* Narrow rows find the loads that fit them. */
static void narrow_rows_fall_to_narrower_loads(void)
{
	struct star s;
	star_open(&s, 100, one);
	static const enum hg__spmm_variant takes[] = {HG__SPMM_HALF, HG__SPMM_HALF2, HG__SPMM_HALF4, HG__SPMM_HALF8};
	for (int k = 0; k < 4; k++) {
		struct hg__spmm_args a = s.args;
		a.x.cols = a.x.ld = a.y.cols = a.y.ld = (int64_t)1 << k;
		a.variant = HG__SPMM_HALF8;
		CHECK_EQ_I(hg__spmm_pick(s.ctx, &a), s.ctx->backend->kind == HG_DEVICE_CUDA ? takes[k] : HG__SPMM_AUTO);
		a.heads = 2;
		a.w = (struct hg__mat){s.x->mat.data, 100, 2, 2, HG_F16};
		CHECK_EQ_I(hg__spmm_pick(s.ctx, &a), HG__SPMM_AUTO);
	}
	star_close(&s);
}

static void the_table_is_whole(void)
{
	for (int v = 0; v < HG__SPMM_VARIANTS; v++) {
		const struct hg__spmm_way *way = &hg__spmm_ways[v];
		CHECK(way->name && *way->what && way->columns > 0);
		CHECK((way->group > 0) == (way->share == HG__SHARE_GROUPS));
		for (int other = 0; other < v; other++)
			CHECK(strcmp(way->name, hg__spmm_ways[other].name) != 0);
		int steps = 0; /* every way ends at AUTO */
		for (const struct hg__spmm_way *w = way; w != hg__spmm_ways; w = &hg__spmm_ways[w->next])
			CHECK(++steps < HG__SPMM_VARIANTS);
		/* none leads to one that may give other bits, or to one that does not keep its bound */
		CHECK(hg__spmm_ways[way->next].flags == 0);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case alone[] = {
	    TEST(the_table_is_whole),
	    TEST(what_cannot_take_a_call_says_why_once),
	    TEST(narrow_rows_fall_to_narrower_loads),
	    TEST(groups_are_a_plan),
	    TEST(safe_ones_take_the_mean_of_a_star),
	    TEST(scaling_after_the_sum_overflows),
	    TEST(scaling_every_term_underflows),
	};
	enum { ALONE = sizeof alone / sizeof alone[0] };
	struct test_case cases[ALONE + HG__SPMM_VARIANTS];
	int count = ALONE;
	memcpy(cases, alone, sizeof alone);
	for (int v = 1; v < HG__SPMM_VARIANTS; v++)
		cases[count++] = (struct test_case){hg__spmm_ways[v].name, 0, keeps_its_bound, &hg__spmm_ways[v]};
	return test_main(argc, argv, cases, count);
}
