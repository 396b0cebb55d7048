#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "graphs.h"
#include "sddmm_variants.h"
#include "suite/battery.h"

/* The variants of sddmm_dot that hg-bench measures: each takes the whole battery of the op in the
 * place of the kernel that training uses, wherever it can compute the call; then each in many
 * widths against its own bound. */

/* A CPU has one kernel, and that has had the battery. */
static hg_context *context_of_gpu(void)
{
	hg_context *ctx = test_context();
	if (ctx->backend->kind != HG_DEVICE_CUDA) {
		hg_context_free(ctx);
		SKIP("variants need a GPU");
	}
	return ctx;
}

/* ---- the battery, with a variant in the kernel's place ---- */

static struct {
	enum sddmm_variant_id variant;
	int64_t taken, passed_on;
} wanted;

static hg_status sddmm_by_variant(hg_context *ctx, const struct hg__sddmm_dot_args *a)
{
	struct sddmm_variant_call call = {ctx, wanted.variant, *a};
	if (sddmm_variant_refuses(ctx, a, wanted.variant)) {
		wanted.passed_on++;
		return ctx->backend->kernels->sddmm_dot.run(ctx, a);
	}
	wanted.taken++;
	return sddmm_variant_run(&call);
}

static void keeps_its_bound(const void *item)
{
	const struct sddmm_variant *v = item;
	hg_context *ctx = context_of_gpu();
	struct hg__kernels kernels = *ctx->backend->kernels;
	struct battery_score score = {0};
	kernels.sddmm_dot.run = sddmm_by_variant;
	memset(&wanted, 0, sizeof wanted);
	wanted.variant = (enum sddmm_variant_id)(v - sddmm_variants);
	battery_op(ctx, &kernels, &hg__op_sddmm_dot, &score);
	test_note("%-10s worst err/bound %.3f, %lld calls taken, %lld passed on (%s)", v->name,
	          score.worst, (long long)wanted.taken, (long long)wanted.passed_on, score.where);
	CHECK(wanted.taken > 0 && wanted.passed_on > 0);
	/* the battery's bound is that of f32 sums: f16 sums have theirs below */
	if (v->accumulate == HG_ACC_F32)
		CHECK_MSG(score.worst <= 1, "%s: err/bound = %.3f at %s", v->name, score.worst,
		          score.where);
	hg_context_free(ctx);
}

/* ---- many widths ---- */

enum { NODES = 150, EDGES = 2000 };

/* A graph and the context that it lives in. */
struct subject {
	hg_context *ctx;
	hg_graph *graph;
	struct hg__csr csr;
	int64_t rowptr[NODES + 1];
	int32_t col[EDGES];
};

/* A row of some 500 edges, and others of 0 to about 20. */
static struct subject *subject_open(void)
{
	hg_context *ctx = context_of_gpu();
	struct subject *s = calloc(1, sizeof *s);
	CHECK(s);
	s->ctx = ctx;
	s->graph = coo_graph(s->ctx, coo_hub(NODES, EDGES, 4, 70));
	CHECK_OK(hg__graph_csr(s->graph, &s->csr));
	CHECK_OK(hg_graph_download(s->graph, s->rowptr, s->col, NULL));
	return s;
}

static void subject_close(struct subject *s)
{
	hg_graph_free(s->graph);
	hg_context_free(s->ctx);
	free(s);
}

/* Random halves, with NaN in the padding; x [NODES, cols]: what they are. */
static hg_tensor *random_halves(hg_context *ctx, int64_t cols, double *x)
{
	hg_tensor *t;
	CHECK_OK(hg_tensor_create(ctx, HG_F16, NODES, cols, &t));
	const int64_t ld = t->mat.ld;
	hg_half *host = calloc((size_t)(NODES * ld), sizeof *host);
	CHECK(host);
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t c = 0; c < ld; c++) {
			host[i * ld + c] = hg_half_from_float(c < cols ? (float)test_normal() : (float)NAN);
			if (c < cols)
				x[i * cols + c] = (double)hg_half_to_float(host[i * ld + c]);
		}
	CHECK_OK(ctx->backend->copy_in(ctx, t->mat.data, host, (size_t)(NODES * ld) * sizeof *host));
	free(host);
	return t;
}

/* err / bound of head k of edge (i, j). a, b: the rows of the edge's ends; found: the result. */
static double ratio_of(enum sddmm_variant_id id, const double *a, const double *b, int64_t width,
                       double scale, double found)
{
	double sum = 0, magnitude = 0;
	for (int64_t c = 0; c < width; c++) {
		sum += scale * a[c] * b[c];
		magnitude += fabs(scale * a[c] * b[c]);
	}
	const double error = fabs(found - sum);
	return isnan(error) ? (double)INFINITY
	                    : error / sddmm_variant_bound(id, HG_F16, width, magnitude, sum);
}

static double worst_of(const struct subject *s, enum sddmm_variant_id id, int64_t cols, int heads,
                       const double *a, const double *b, const float *e)
{
	const int64_t width = cols / heads;
	double worst = 0;
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t p = s->rowptr[i]; p < s->rowptr[i + 1]; p++)
			for (int64_t k = 0; k < heads; k++)
				worst = fmax(worst, ratio_of(id, a + i * cols + k * width,
				                             b + s->col[p] * cols + k * width, width, -0.5,
				                             (double)e[p * heads + k]));
	return worst;
}

/* One shape by every variant that can compute it, each on a result that was NaN. Counts in
 * `taken`. */
static void every_variant_of(struct subject *s, int64_t cols, int heads, int *taken)
{
	double *a = calloc((size_t)(NODES * cols), sizeof *a),
	       *b = calloc((size_t)(NODES * cols), sizeof *b);
	float *e = calloc((size_t)(EDGES * heads), sizeof *e);
	CHECK(a && b && e);
	hg_tensor *in[2] = {random_halves(s->ctx, cols, a), random_halves(s->ctx, cols, b)}, *out;
	CHECK_OK(hg_tensor_create(s->ctx, HG_F16, EDGES, heads, &out));
	for (int id = 0; id < SDDMM_VARIANTS; id++) {
		struct sddmm_variant_call call = {s->ctx,
		                                  (enum sddmm_variant_id)id,
		                                  {.csr = s->csr,
		                                   .a = in[0]->mat,
		                                   .b = in[1]->mat,
		                                   .e = out->mat,
		                                   .heads = heads,
		                                   .scale = -0.5f}};
		if (sddmm_variant_refuses(s->ctx, &call.args, call.id))
			continue;
		for (int64_t k = 0; k < EDGES * heads; k++)
			e[k] = NAN;
		CHECK_OK(hg_tensor_upload(out, e, HG_F32));
		CHECK_OK(sddmm_variant_run(&call));
		CHECK_OK(hg_tensor_download(out, e, HG_F32));
		const double worst = worst_of(s, call.id, cols, heads, a, b, e);
		CHECK_MSG(worst <= 1, "%s, %lld columns, %d heads: err/bound %.3g", sddmm_variants[id].name,
		          (long long)cols, heads, worst);
		taken[id]++;
	}
	hg_tensor_free(out);
	hg_tensor_free(in[1]);
	hg_tensor_free(in[0]);
	free(e);
	free(b);
	free(a);
}

/* Sub-warps of 1 to 32 lanes, with one load each, with a last load that only some lanes have, and
 * with several. */
static void every_width_keeps_its_bound(void)
{
	static const struct {
		int64_t cols;
		int heads;
	} shapes[] = {{1, 1},   {2, 1},   {4, 1},   {7, 1},   {8, 1},   {12, 1},  {16, 1},
	              {24, 1},  {32, 1},  {41, 1},  {64, 1},  {72, 1},  {128, 1}, {136, 1},
	              {256, 1}, {264, 1}, {600, 1}, {64, 2},  {64, 8},  {96, 3},  {120, 5},
	              {128, 4}, {260, 2}, {68, 17}, {528, 2}, {33, 33}, {320, 40}};
	struct subject *s = subject_open();
	int taken[SDDMM_VARIANTS] = {0};
	for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
		every_variant_of(s, shapes[k].cols, shapes[k].heads, taken);
	for (int id = 0; id < SDDMM_VARIANTS; id++)
		CHECK_MSG(taken[id] >= 10, "%s computed %d shapes", sddmm_variants[id].name, taken[id]);
	subject_close(s);
}

/* ---- who computes what ---- */

static void what_cannot_compute_a_call_says_why(void)
{
	hg_context *ctx = test_context();
	const int gpu = ctx->backend->kind == HG_DEVICE_CUDA;
	const struct hg__mat halves = {NULL, 10, 12, 16, HG_F16}, floats = {NULL, 10, 12, 16, HG_F32};
	struct hg__sddmm_dot_args a = {.a = halves, .b = halves, .e = floats, .heads = 1};
	CHECK_EQ_I(sddmm_variant_refuses(ctx, &a, SDDMM_HALF4) == NULL, gpu);
	const char *why = sddmm_variant_refuses(ctx, &a, SDDMM_HALF8);
	CHECK(why);
	CHECK_CONTAINS(why, gpu ? "not a multiple of its loads" : "needs a GPU");
	a.heads = 2;
	CHECK_EQ_I(sddmm_variant_refuses(ctx, &a, SDDMM_HALF2) == NULL, gpu);
	CHECK(sddmm_variant_refuses(ctx, &a, SDDMM_HALF4));
	CHECK(sddmm_variant_refuses(ctx, &a, SDDMM_TILES));
	a.a = a.b = floats;
	CHECK(sddmm_variant_refuses(ctx, &a, SDDMM_HALF));
	hg_context_free(ctx);
}

/* One lane for each load of a row, and no more than a warp has. */
static void lanes_follow_the_loads(void)
{
	static const struct {
		int64_t width;
		int columns, lanes;
	} rows[] = {{0, 8, 1},   {1, 1, 1},   {8, 8, 1},   {16, 8, 2},  {24, 8, 4},   {64, 8, 8},
	            {64, 4, 16}, {64, 2, 32}, {64, 1, 32}, {33, 1, 32}, {1024, 8, 32}};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		CHECK_EQ_I(sddmm_lanes(rows[k].width, rows[k].columns), rows[k].lanes);
}

/* The bound of a sum of 64 products in f16, two at a time: 4 products on a lane's path, 3 shuffles,
 * 1 addition of the two sums, and what hg__bound_sum_f16 adds to any sum. */
static void f16_sums_have_a_bound_of_their_own(void)
{
	const double u = 0x1p-11, depth = 4 + 3 + 1 + 2 + 6, gamma = depth * u / (1 - depth * u),
	             bound = sddmm_variant_bound(SDDMM_HALF8_F16, HG_F16, 64, 10.0, 3.0);
	CHECK_WITHIN(bound, gamma * 10.0, (1 + gamma) * 0x1p-25 * 66 * 1.0001);
	CHECK(bound > 4 * sddmm_variant_bound(SDDMM_HALF8, HG_F16, 64, 10.0, 3.0));
}

static void the_table_is_whole(void)
{
	for (int id = 0; id < SDDMM_VARIANTS; id++) {
		const struct sddmm_variant *v = &sddmm_variants[id];
		CHECK(*v->name && *v->what && *v->source && v->columns > 0 && v->columns <= 8);
		for (int other = 0; other < id; other++)
			CHECK(strcmp(v->name, sddmm_variants[other].name) != 0);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case alone[] = {
	    TEST(the_table_is_whole),          TEST(what_cannot_compute_a_call_says_why),
	    TEST(lanes_follow_the_loads),      TEST(f16_sums_have_a_bound_of_their_own),
	    TEST(every_width_keeps_its_bound),
	};
	enum { ALONE = sizeof alone / sizeof alone[0] };
	struct test_case cases[ALONE + SDDMM_VARIANTS];
	memcpy(cases, alone, sizeof alone);
	for (int id = 0; id < SDDMM_VARIANTS; id++)
		cases[ALONE + id] =
		    (struct test_case){sddmm_variants[id].name, 0, keeps_its_bound, &sddmm_variants[id]};
	return test_main(argc, argv, cases, ALONE + SDDMM_VARIANTS);
}
