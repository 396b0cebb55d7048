/* Each error bound, compared with sums that are computed in the arithmetic that it is a bound of.
 * err / bound is never above 1. For some bounds it must come near 1, too: a bound that nothing
 * comes near says little. */
#include <math.h>
#include <stdlib.h>

#include "graphs.h"
#include "kernels/kernels.h"
#include "precision/bound.h"
#include "precision/half.h"

enum { MOST = 5000 };

static float narrowed(double x)
{
	return hg_half_to_float(hg_half_from_double(x));
}

static void gamma_is_k_u(void)
{
	CHECK_WITHIN(hg__gamma(1, 0x1p-11), 1.0 / 2047, 1e-18);
	CHECK_WITHIN(hg__gamma(100, 0x1p-24), 100 * 0x1p-24 / (1 - 100 * 0x1p-24), 1e-20);
	CHECK(hg__gamma(0, 0x1p-11) == 0);
	CHECK(isinf(hg__gamma(2048, 0x1p-11)) && isinf(hg__gamma(1e9, 0x1p-24)));
	CHECK(isfinite(hg__gamma(2047, 0x1p-11)));
}

static void narrowing_stays_within_its_bound(void)
{
	double worst = 0;
	for (int i = 0; i < 2000000; i++) {
		const double x = ldexp(test_normal(), (int)test_below(44) - 30),
		             bound = hg__bound_narrow(HG_F16, x);
		if (fabs(x) >= 65520) {
			CHECK(isinf(bound));
			continue;
		}
		const double ratio = fabs((double)narrowed(x) - x) / bound;
		CHECK_MSG(ratio <= 1, "%a: ratio %g", x, ratio);
		worst = fmax(worst, ratio);
	}
	CHECK(worst > 0.9);
	CHECK(hg__bound_narrow(HG_I32, 5) == 0 && hg__bound_narrow(HG_F32, 1) < 0x1p-23);
}

/* A random row. In f64 the products of halves are exact, and their sum is exact up to 2^-53. */
struct row {
	int n;
	float a[MOST], x[MOST];
	double y, abs_sum, tiny;
};

static void random_row(struct row *r, int n, double scale)
{
	r->n = n;
	r->y = r->abs_sum = r->tiny = 0;
	for (int i = 0; i < n; i++) {
		r->a[i] = narrowed(test_uniform());
		r->x[i] = narrowed(scale * test_normal());
		r->y += (double)r->a[i] * (double)r->x[i];
		r->abs_sum += fabs((double)r->a[i] * (double)r->x[i]);
		r->tiny += 1 + fabs((double)r->x[i]) * (2 + fabs((double)r->a[i])); /* s = 1 */
	}
}

static void sums_narrowed_once_stay_within(void)
{
	static struct row r;
	double worst16 = 0, worst32 = 0;
	for (int i = 0; i < 3000; i++) {
		random_row(&r, (int)test_below(MOST), ldexp(1, (int)test_below(20) - 14));
		float sum = 0;
		for (int k = 0; k < r.n; k++)
			sum += r.a[k] * r.x[k];
		worst32 =
		    fmax(worst32, fabs((double)sum - r.y) / hg__bound_sum(HG_F32, r.n, r.abs_sum, r.y));
		if (fabs(r.y) < 65000)
			worst16 = fmax(worst16, fabs((double)hg_half_to_float(hg_half_from_float(sum)) - r.y) /
			                            hg__bound_sum(HG_F16, r.n, r.abs_sum, r.y));
	}
	CHECK_MSG(worst16 <= 1 && worst32 <= 1, "err/bound: f16 %g, f32 %g", worst16, worst32);
	CHECK(worst16 > 0.5);
	CHECK(hg__bound_sum(HG_F32, 0, 0, 0) == 0 && hg__bound_sum(HG_F16, 0, 0, 0) == 0x1p-25);
}

static float add16(float a, float b)
{
	return narrowed((double)a + (double)b);
}

static float mul16(float a, float b)
{
	return narrowed((double)a * (double)b);
}

/* The sum of the terms [first, last) of a row, as a kernel computes it in f16: batch by batch, each
 * scaled before it is added to the others. batch 0: all terms are one batch. */
static float part16(const struct row *r, int first, int last, int batch, float factor)
{
	float total = 0, sum = 0;
	for (int k = first, in_batch = 0; k < last; k++) {
		sum = add16(sum, mul16(r->a[k], r->x[k]));
		if (batch && ++in_batch == batch) {
			total = add16(total, mul16(sum, factor));
			sum = 0;
			in_batch = 0;
		}
	}
	return add16(total, mul16(sum, factor));
}

static double ratio16(const struct row *r, int batch, int pieces, double factor)
{
	const float f = narrowed(factor);
	float y = 0;
	for (int p = 0; p < pieces; p++)
		y = add16(y, part16(r, (int)((int64_t)r->n * p / pieces),
		                    (int)((int64_t)r->n * (p + 1) / pieces), batch, f));
	const struct hg__sum_f16 sum = {r->n, batch, pieces, factor, r->abs_sum, r->tiny};
	return fabs((double)y - factor * r->y) / hg__bound_sum_f16(&sum);
}

static void discretized_sums_stay_within(void)
{
	static struct row r;
	double worst = 0;
	for (int i = 0; i < 3000; i++) {
		random_row(&r, 1 + (int)test_below(MOST), ldexp(1, (int)test_below(18) - 14));
		worst = fmax(worst, ratio16(&r, 64, 1 + (int)test_below(12), 1.0 / r.n));
	}
	CHECK_MSG(worst <= 1, "err/bound %g", worst);
	CHECK(worst > 0.005);
}

/* A factor 1/degree below 2^-14 is a subnormal half, which has fewer bits. The bound holds because
 * it has a term for the error of the factor. */
static void bound_allows_for_a_subnormal_factor(void)
{
	static struct row r;
	double worst = 0;
	for (int i = 0; i < 1000; i++) {
		random_row(&r, 1 + (int)test_below(MOST), 16.0);
		for (int k = 0; k < r.n; k++) {
			r.a[k] = fabsf(r.a[k]);
			r.x[k] = fabsf(r.x[k]);
		}
		r.y = r.abs_sum;
		worst = fmax(worst, ratio16(&r, 64, 1, 1.0 / 300000 * (1 + test_uniform())));
	}
	CHECK_MSG(worst <= 1, "err/bound %g", worst);
	CHECK(worst > 0.02);
}

static void naive_sums_stay_within(void)
{
	static struct row r;
	double worst = 0;
	for (int i = 0; i < 2000; i++) {
		random_row(&r, 1 + (int)test_below(1500), 1.0);
		worst = fmax(worst, ratio16(&r, 0, 1, 1.0 / r.n));
	}
	CHECK_MSG(worst <= 1, "err/bound %g", worst);
}

static void discretized_sums_have_a_small_depth(void)
{
	const struct hg__sum_f16 discretized = {100000, 64, 200, 1e-5, 1e5, 1e5},
	                         naive = {100000, 0, 200, 1e-5, 1e5, 1e5}, empty = {0, 64, 0, 1, 0, 0};
	CHECK(hg__depth_f16(0, 64, 1) == 7);
	CHECK(hg__depth_f16(64, 64, 1) == 64 + 1 + 1 + 6);
	CHECK(hg__depth_f16(100000, 64, 200) == 64 + 1563 + 200 + 6);
	CHECK(hg__depth_f16(1000, 0, 1) == 1000 + 1 + 1 + 6);
	CHECK(hg__depth_dot(HG_F32, 64) == 64 && hg__depth_dot(HG_F16, 64) == 160);
	CHECK(isfinite(hg__bound_sum_f16(&discretized)) && isinf(hg__bound_sum_f16(&naive)));
	CHECK(hg__bound_sum_f16(&empty) == 0);
}

/* ---- the kernels themselves ---- */

enum { NODES = 3000, WIDTH = 5, HUB = 2500 };

struct sparse {
	hg_graph *graph;
	struct host_csr host;
	float row_scale[NODES], col_scale[NODES];
	const float *device_row, *device_col;
	const void *device_weight;
};

/* Row i has HUB / (1 + i) neighbours, so the depths of the sums go from 0 to thousands. The weights
 * differ by up to twelve powers of two. */
static void steep_graph(hg_context *ctx, struct sparse *g)
{
	struct coo list = coo_empty(NODES, NODES);
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t k = HUB / (1 + i); k > 0; k--) {
			const int64_t src = test_below(NODES);
			const double weight = ldexp(test_normal(), (int)test_below(12) - 8);
			coo_add_weighted(&list, i, src, (float)weight);
		}
	g->graph = coo_graph(ctx, list);
	g->host = host_csr_download(ctx, g->graph);
	CHECK_OK(hg__graph_weight(g->graph, HG_F32, &g->device_weight));
	CHECK_OK(hg__graph_norm(g->graph, HG_NORM_BOTH, &g->device_row, &g->device_col));
	CHECK_OK(ctx->backend->copy_out(ctx, g->row_scale, g->device_row, sizeof g->row_scale));
	CHECK_OK(ctx->backend->copy_out(ctx, g->col_scale, g->device_col, sizeof g->col_scale));
}

/* err / bound of element (i, c). The exact sum is computed in f64 from its definition. */
static double element_ratio(const struct sparse *g, const float *x, float y, int64_t i, int64_t c,
                            int64_t batch)
{
	const struct host_csr *h = &g->host;
	const int64_t k = h->rowptr[i + 1] - h->rowptr[i];
	double exact = 0;
	/* An item has at least 31 rows and edges together, so the row is in at most k / 31 + 2
	 * items. */
	struct hg__sum_f16 sum = {k, batch, k / 31 + 2, (double)g->row_scale[i], 0, 0};
	for (int64_t e = h->rowptr[i]; e < h->rowptr[i + 1]; e++) {
		const double w = (double)h->weight[e], s = (double)g->col_scale[h->col[e]],
		             v = (double)x[h->col[e] * WIDTH + c];
		exact += w * s * v;
		sum.abs_sum += fabs(w * s * v);
		sum.tiny += 1 + fabs(v) * (1 + fabs(w) + fabs(s));
	}
	return fabs((double)y - sum.factor * exact) / hg__bound_sum_f16(&sum);
}

static double worst_of_spmm(hg_context *ctx, const struct sparse *g, hg_accumulate accumulate)
{
	static float x[NODES * WIDTH], y[NODES * WIDTH];
	hg_tensor *tx, *ty;
	struct hg__spmm_args a = {0};
	double worst = 0;
	for (int i = 0; i < NODES * WIDTH; i++)
		x[i] = narrowed(test_normal());
	CHECK_OK(hg_tensor_create(ctx, HG_F16, NODES, WIDTH, &tx));
	CHECK_OK(hg_tensor_create(ctx, HG_F16, NODES, WIDTH, &ty));
	CHECK_OK(hg_tensor_upload(tx, x, HG_F32));
	CHECK_OK(hg__graph_csr(g->graph, &a.csr));
	const struct hg__mat w = {(void *)(uintptr_t)g->device_weight, g->host.m, 1, 1, HG_F32};
	a.x = tx->mat;
	a.y = ty->mat;
	a.w = w;
	a.heads = 1;
	a.row_scale = g->device_row;
	a.col_scale = g->device_col;
	a.alpha = 1;
	a.accumulate = accumulate;
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
	CHECK_OK(hg_tensor_download(ty, y, HG_F32));
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t c = 0; c < WIDTH; c++)
			worst = fmax(worst, element_ratio(g, x, y[i * WIDTH + c], i, c,
			                                  accumulate == HG_ACC_F16_NAIVE ? 0 : HG_BATCH_EDGES));
	hg_tensor_free(tx);
	hg_tensor_free(ty);
	return worst;
}

static void spmm_in_f16_stays_within_its_bound(void)
{
	hg_context *ctx = test_context();
	static struct sparse g;
	steep_graph(ctx, &g);
	const double discretized = worst_of_spmm(ctx, &g, HG_ACC_F16_DISCRETIZED),
	             naive = worst_of_spmm(ctx, &g, HG_ACC_F16_NAIVE);
	test_note("err/bound: discretized %.3f, naive %.3f", discretized, naive);
	CHECK_MSG(discretized <= 1 && naive <= 1, "err/bound: discretized %g, naive %g", discretized,
	          naive);
	CHECK(discretized > 0.05);
	hg_graph_free(g.graph);
	host_csr_free(&g.host);
	hg_context_free(ctx);
}

static void products_of_narrowed_operands_stay_within(void)
{
	for (int i = 0; i < 100000; i++) {
		const double a = test_normal(), x = test_normal(), da = 0.1 * test_uniform(),
		             dx = 0.1 * test_uniform();
		const double perturbed =
		    (a + da * (2 * test_uniform() - 1)) * (x + dx * (2 * test_uniform() - 1));
		CHECK_WITHIN(perturbed, a * x, hg__bound_product(a, da, x, dx) * (1 + 1e-15));
	}
}

/* Headroom is positive exactly where the stored number is finite. Twice the number has one bit
 * less. */
static void headroom_ends_where_rounding_gives_infinity(void)
{
	static const double inside[] = {65504.0, 65519.99, 1.0, 0x1p-24};
	CHECK(hg__headroom(HG_F16, 65520.0) == 0.0 && hg__headroom(HG_F32, 0x1.ffffffp127) == 0.0);
	CHECK(hg__headroom(HG_F16, 0.0) == INFINITY && hg__headroom(HG_F16, INFINITY) == -INFINITY);
	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
		CHECK(hg__headroom(HG_F16, inside[i]) > 0.0 &&
		      isfinite(hg_half_to_float(hg_half_from_double(inside[i]))));
		CHECK(hg__headroom(HG_F16, -inside[i]) == hg__headroom(HG_F16, inside[i]));
		CHECK_WITHIN(hg__headroom(HG_F16, inside[i] / 8.0) - hg__headroom(HG_F16, inside[i]), 3.0,
		             1e-12);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(headroom_ends_where_rounding_gives_infinity),
	    TEST(gamma_is_k_u),
	    TEST(narrowing_stays_within_its_bound),
	    TEST(sums_narrowed_once_stay_within),
	    TEST(discretized_sums_stay_within),
	    TEST(bound_allows_for_a_subnormal_factor),
	    TEST(naive_sums_stay_within),
	    TEST(discretized_sums_have_a_small_depth),
	    TEST(spmm_in_f16_stays_within_its_bound),
	    TEST(products_of_narrowed_operands_stay_within),
	};
	return RUN_TESTS(argc, argv, cases);
}
