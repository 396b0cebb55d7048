/* Results of the CPU kernels, compared with their equations in f64, for a few shapes each. */
#include <math.h>

#include "core/rng.h"
#include "graphs.h"
#include "unit/operands.h"

/* ---- values ---- */

/* Allows one rounding to the type of m, and a relative error of `relative` before it. */
static double slack(const struct hg__mat *m, double value, double magnitude, double relative)
{
	const double u = m->dtype == HG_F16 ? 0x1p-11 : 0x1p-24,
	             eta = m->dtype == HG_F16 ? 0x1p-25 : 0x1p-150, e = magnitude * relative;
	return e + u * (fabs(value) + e) + eta;
}

static void check_gemm(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype, int64_t m,
                       int64_t n, int64_t depth, int ta, int tb)
{
	struct hg__mat a = ta ? normal(dtype, depth, m) : normal(dtype, m, depth),
	               b = tb ? normal(dtype, n, depth) : normal(dtype, depth, n);
	struct hg__mat c = empty(m % 2 ? HG_F32 : dtype, m, n), bias = normal(c.dtype, 1, n);
	CHECK_OK(
	    k->gemm.run(ctx, &(struct hg__gemm_args){
	                         .a = a, .b = b, .c = c, .bias = bias, .trans_a = ta, .trans_b = tb}));
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = get(&bias, 0, j), size = fabs(sum);
			for (int64_t p = 0; p < depth; p++) {
				const double term =
				    (ta ? get(&a, p, i) : get(&a, i, p)) * (tb ? get(&b, j, p) : get(&b, p, j));
				sum += term;
				size += fabs(term);
			}
			CHECK_WITHIN(get(&c, i, j), sum, slack(&c, sum, size, (double)(depth + 2) * 0x1p-24));
		}
	if (!tb) {
		struct hg__mat sums = empty(HG_F32, 1, n);
		CHECK_OK(k->gemm.run(
		    ctx, &(struct hg__gemm_args){.a = a, .b = b, .c = c, .sums = sums, .trans_a = ta}));
		for (int64_t j = 0; j < n; j++) {
			double sum = 0, size = 0;
			for (int64_t p = 0; p < depth; p++) {
				sum += get(&b, p, j);
				size += fabs(get(&b, p, j));
			}
			CHECK_WITHIN(get(&sums, 0, j), sum,
			             slack(&sums, sum, size, (double)(depth + 2) * 0x1p-24));
		}
	}
	CHECK_STATUS(k->gemm.run(ctx,
	                         &(struct hg__gemm_args){
	                             .a = a, .b = b, .c = c, .trans_a = ta, .trans_b = tb, .pick = 2}),
	             HG_ERR_UNSUPPORTED);
	pool_clear();
}

static void gemm_is_within_its_bound(void)
{
	static const int64_t shapes[][3] = {{1, 1, 1},     {5, 7, 0},    {37, 64, 100}, {300, 7, 64},
	                                    {32, 7, 2100}, {530, 5, 40}, {17, 600, 33}, {6, 9, 1200}};
	size_t count;
	const struct hg__cpu_isa *isa = hg__cpu_isas(&count);
	for (size_t i = 0; i < count; i++)
		for (int t = 0; t < 8 && isa[i].runs_here(); t++) {
			hg_context *ctx = test_cpu_context(1 + t % 2);
			for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
				check_gemm(ctx, isa[i].kernels, t / 4 ? HG_F32 : HG_F16, shapes[s][0], shapes[s][1],
				           shapes[s][2], t & 1, t >> 1 & 1);
			hg_context_free(ctx);
		}
}

static void spmm_is_within_its_bound(void)
{
	hg_context *ctx = test_cpu_context(2);
	struct graph g = make_graph(ctx);
	for (int dtype = HG_F16; dtype <= HG_F32; dtype++) {
		struct hg__mat x = normal((hg_dtype)dtype, NODES, 24),
		               w = normal((hg_dtype)dtype, EDGES, 3), y = empty((hg_dtype)dtype, NODES, 24);
		const struct hg__spmm_args a = {.csr = g.csr_t,
		                                .x = x,
		                                .w = w,
		                                .y = y,
		                                .heads = 3,
		                                .row_scale = g.row_scale,
		                                .col_scale = g.col_scale,
		                                .alpha = 0.125f};
		CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
		for (int64_t i = 0; i < NODES; i++)
			for (int64_t c = 0; c < 24; c++) {
				double sum = 0.0, size = 0.0;
				const int64_t begin = g.csr_t.rowptr[i], end = g.csr_t.rowptr[i + 1];
				for (int64_t p = begin; p < end; p++) {
					const int64_t e = hg__edge_of(&g.csr_t, p);
					const double term = get(&w, e, c / 8) * (double)g.col_scale[g.csr_t.col[p]] *
					                    get(&x, g.csr_t.col[p], c);
					sum += term;
					size += fabs(term);
				}
				const double r = 0.125 * (double)g.row_scale[i];
				CHECK_WITHIN(get(&y, i, c), r * sum,
				             slack(&y, r * sum, r * size, (double)(end - begin + 6) * 0x1p-24));
			}
	}
	hg_graph_free(g.graph);
	hg_context_free(ctx);
	pool_clear();
}

static void softmax_is_within_its_bound(void)
{
	hg_context *ctx = test_cpu_context(2);
	struct graph g = make_graph(ctx);
	struct hg__mat e = normal(HG_F16, EDGES, 3), p = empty(HG_F16, EDGES, 3);
	CHECK_OK(
	    ctx->backend->kernels->edge_softmax.run(ctx, &(struct hg__edge_softmax_args){g.csr, e, p}));
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t k = 0; k < 3; k++) {
			double max = -INFINITY, sum = 0.0;
			for (int64_t q = g.csr.rowptr[i]; q < g.csr.rowptr[i + 1]; q++)
				max = fmax(max, get(&e, q, k));
			for (int64_t q = g.csr.rowptr[i]; q < g.csr.rowptr[i + 1]; q++)
				sum += exp(get(&e, q, k) - max);
			for (int64_t q = g.csr.rowptr[i]; q < g.csr.rowptr[i + 1]; q++) {
				const double exact = exp(get(&e, q, k) - max) / sum;
				CHECK_WITHIN(get(&p, q, k), exact, slack(&p, exact, exact, 1e-5));
			}
		}
	hg_graph_free(g.graph);
	hg_context_free(ctx);
	pool_clear();
}

/* An element is dropped where its random number of hg__rng_quad is below the threshold. */
static void dropout_follows_the_random_words(void)
{
	hg_context *ctx = test_cpu_context(2);
	const int64_t step = 5000000000;
	struct hg__mat x = filled(HG_F32, 40, 77, 1.0), y = empty(HG_F32, 40, 77);
	CHECK_OK(ctx->backend->kernels->dropout.run(
	    ctx, &(struct hg__dropout_args){x, y, 0.3f, 0x123456789ABCDEF0u, &step}));
	const uint32_t threshold = (uint32_t)((double)0.3f * 0x1p32 + 0.5);
	for (int64_t r = 0; r < 40; r++)
		for (int64_t c = 0; c < 77; c++) {
			const uint32_t word =
			    hg__rng_quad(0x123456789ABCDEF0u, r, (uint32_t)(c / 4), step).w[c % 4];
			CHECK(get(&y, r, c) == (word >= threshold ? (double)(1.0f / (1.0f - 0.3f)) : 0.0));
		}
	hg_context_free(ctx);
	pool_clear();
}

/* A star with 3000 leaves of 1. In f16 the naive sum reaches 2048 and grows no more. NaN and
 * infinity reach the result. */
static void naive_sum_in_f16_stops_growing(void)
{
	hg_context *ctx = test_cpu_context(1);
	hg_graph *graph = coo_graph(ctx, coo_fan_in(1, 3000));
	struct hg__csr csr;
	CHECK_OK(hg__graph_csr(graph, &csr));
	csr.plan = NULL; /* The row is one part, so that one accumulator sums all its edges. */
	struct hg__mat x = filled(HG_F16, 3000, 1, 1.0), y = empty(HG_F16, 1, 1);
	const float scale = 1.0f / 3000.0f;
	struct hg__spmm_args a = {
	    .csr = csr, .x = x, .y = y, .heads = 1, .row_scale = &scale, .alpha = 1.0f};
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
	CHECK_WITHIN(get(&y, 0, 0), 1.0, 0x1p-11);
	a.accumulate = HG_ACC_F16_NAIVE;
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
	CHECK_WITHIN(get(&y, 0, 0), 2048.0 / 3000.0, 1e-3);
	a.accumulate = HG_ACC_F16_DISCRETIZED;
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
	CHECK_WITHIN(get(&y, 0, 0), 1.0, 0.02);
	set(&x, 9, 0, INFINITY);
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
	CHECK(isinf(get(&y, 0, 0)));
	set(&x, 10, 0, -INFINITY);
	CHECK_OK(ctx->backend->kernels->spmm.run(ctx, &a));
	CHECK(isnan(get(&y, 0, 0)));
	hg_graph_free(graph);
	hg_context_free(ctx);
	pool_clear();
}

/* The second step of Adam, compared with PyTorch's formulas in f64. */
static void adam_step_is_that_of_pytorch(void)
{
	hg_context *ctx = test_cpu_context(1);
	float p = 1.0f, grad = 8.0f, m = 0.0f, v = 0.0f;
	const struct hg__optim_tensor t = {&p, &grad, &m, &v, NULL, 1, 1, 1, HG_F32, 0, INFINITY};
	const struct hg__optim_group group = {0.1f, 0.01f};
	struct hg__step step = {.config = HG_LOSS_SCALE_CONFIG_INIT};
	step.config.init_scale = 4.0f;
	CHECK_OK(hg_loss_scale_init(&step.scale, &step.config));
	const struct hg__optim_args a = {.config = HG_OPTIM_CONFIG_INIT,
	                                 .tensors = &t,
	                                 .host = &t,
	                                 .count = 1,
	                                 .groups = &group,
	                                 .step = &step};
	double ep = 1.0, em = 0.0, ev = 0.0;
	for (int i = 1; i <= 2; i++) {
		CHECK_OK(ctx->backend->kernels->grad_check.run(ctx, &a));
		CHECK_OK(ctx->backend->kernels->optim_update.run(ctx, &a));
		const double g = 2.0 + 0.01 * ep;
		em = 0.9 * em + 0.1 * g;
		ev = 0.999 * ev + 0.001 * g * g;
		ep -= 0.1 / (1.0 - pow(0.9, i)) * em / (sqrt(ev) / sqrt(1.0 - pow(0.999, i)) + 1e-8);
		CHECK_WITHIN(p, ep, 1e-5);
	}
	hg_context_free(ctx);
}

/* exp and log are within 2 units in the last place, at every 1009th float. log of 0 is -infinity,
 * log of negative numbers and of NaN is NaN, log of infinity is infinity. */
static void exp_and_log_are_within_two_units(void)
{
	hg_context *ctx = test_cpu_context(2);
	const struct hg__kernels *k = ctx->backend->kernels;
	enum { COLS = 4096 };
	struct hg__mat x = empty(HG_F32, 1, COLS), y = empty(HG_F32, 1, COLS);
	for (uint32_t bits = 1; bits < 0x7F800000u - 1009u * COLS; bits += 1009u * COLS)
		for (int act = HG__ACT_exp; act <= HG__ACT_log; act++) {
			for (uint32_t i = 0; i < COLS; i++) {
				const uint32_t word =
				    (bits + 1009u * i) | (act == HG__ACT_exp && i % 2 ? 0x80000000u : 0u);
				memcpy((float *)x.data + i, &word, sizeof word);
			}
			CHECK_OK(k->act.run(ctx, &(struct hg__act_args){(hg__act)act, 0.0f, x, y}));
			for (int i = 0; i < COLS; i++) {
				const double at = get(&x, 0, i), value = act == HG__ACT_exp ? exp(at) : log(at);
				CHECK_MSG(value > 0x1.fffffep127
				              ? get(&y, 0, i) == (double)INFINITY
				              : fabs(get(&y, 0, i) - value) <= 0x1p-22 * fabs(value) + 0x1p-149,
				          "%s(%a) = %a, exactly %a", act == HG__ACT_exp ? "exp" : "log", at,
				          get(&y, 0, i), value);
			}
		}
	static const double special[] = {0.0, -1.0, -INFINITY, INFINITY, NAN, 1.0};
	struct hg__mat in = empty(HG_F16, 1, 6), out = empty(HG_F16, 1, 6);
	for (int i = 0; i < 6; i++)
		set(&in, 0, i, special[i]);
	CHECK_OK(k->act.run(ctx, &(struct hg__act_args){HG__ACT_log, 0.0f, in, out}));
	CHECK(get(&out, 0, 0) == -(double)INFINITY && isnan(get(&out, 0, 1)) && isnan(get(&out, 0, 2)));
	CHECK(get(&out, 0, 3) == (double)INFINITY && isnan(get(&out, 0, 4)) && get(&out, 0, 5) == 0.0);
	hg_context_free(ctx);
	pool_clear();
}

static double logistic(double x)
{
	return 1.0 / (1.0 + exp(-x));
}
static double gelu(double x)
{
	return x * erfc(-x / sqrt(2.0)) / 2.0;
}

/* Every function of the list, at every 1009th float of either sign, is within the error that its
 * entry in the list of functions states, in units u32 of its value. So is the range that it
 * states. */
static void functions_are_within_their_error_and_range(void)
{
	static const struct {
		hg__act act;
		double (*value)(double x);
		/* The error is at most (off + squares x^2) u, and |y| is at most `most` (INFINITY: at most
		 * |x|). */
		double off, squares, most;
	} functions[] = {
	    {HG__ACT_sigmoid, logistic, 7.0, 0.0, 1.0},
	    {HG__ACT_tanh, tanh, 10.0, 0.0, 1.0},
	    {HG__ACT_gelu, gelu, 16.0, 0.5, INFINITY},
	};
	enum { COLS = 4096, FUNCTIONS = (int)(sizeof functions / sizeof *functions) };
	hg_context *ctx = test_cpu_context(2);
	const struct hg__kernels *k = ctx->backend->kernels;
	struct hg__mat x = empty(HG_F32, 1, COLS), y = empty(HG_F32, 1, COLS);
	double worst[FUNCTIONS] = {0};
	for (uint32_t bits = 0; bits < 0x7F800000u - 1009u * COLS; bits += 1009u * COLS)
		for (int f = 0; f < 2 * FUNCTIONS; f++) {
			for (uint32_t i = 0; i < COLS; i++) {
				const uint32_t word = (bits + 1009u * i) | (f % 2 ? 0x80000000u : 0u);
				memcpy((float *)x.data + i, &word, sizeof word);
			}
			CHECK_OK(k->act.run(ctx, &(struct hg__act_args){functions[f / 2].act, 0.0f, x, y}));
			for (int i = 0; i < COLS; i++) {
				const double at = get(&x, 0, i), got = get(&y, 0, i),
				             value = functions[f / 2].value(at);
				const double bound = (functions[f / 2].off + functions[f / 2].squares * at * at) *
				                     0x1p-24 * fabs(value);
				/* oracle/smooth.c explains the 2^-143. */
				CHECK_MSG(fabs(got - value) <= bound + 0x1p-143 || got == value,
				          "function %d of %a: %a, exactly %a", f / 2, at, got, value);
				CHECK(fabs(got) <= functions[f / 2].most);
				CHECK(fabs(got) <= fabs(at) || functions[f / 2].most <= 1.0);
				if (fabs(value) > 0x1p-120)
					worst[f / 2] = fmax(worst[f / 2], fabs(got - value) / bound);
			}
		}
	for (int f = 0; f < FUNCTIONS; f++)
		test_note("function %d: %.2f of its bound", f, worst[f]);
	hg_context_free(ctx);
	pool_clear();
}

static void graphs_without_rows_are_accepted(void)
{
	hg_context *ctx = test_cpu_context(2);
	const struct hg__kernels *k = ctx->backend->kernels;
	int64_t rowptr[1] = {9}, order[1];
	uint32_t edge[1];
	int32_t col[1];
	CHECK_OK(ctx->backend->csr_from_coo(ctx, 0, 0, 0, NULL, NULL, rowptr, col, order));
	CHECK_EQ_I(rowptr[0], 0);
	const struct hg__csr csr = {.rowptr = rowptr, .col = col};
	CHECK_OK(ctx->backend->csr_transpose(ctx, &csr, rowptr, col, edge));
	struct hg__mat x = empty(HG_F16, 0, 8), sum = empty(HG_F32, 1, 8), one = empty(HG_F32, 1, 1),
	               e = empty(HG_F16, 0, 2);
	CHECK_OK(k->spmm.run(
	    ctx, &(struct hg__spmm_args){.csr = csr, .x = x, .y = x, .heads = 1, .alpha = 1.0f}));
	CHECK_OK(k->edge_softmax.run(ctx, &(struct hg__edge_softmax_args){csr, e, e}));
	CHECK_OK(k->colsum.run(ctx, &(struct hg__colsum_args){.x = x, .y = sum}));
	CHECK(get(&sum, 0, 7) == 0.0);
	CHECK_OK(k->dot_all.run(ctx, &(struct hg__dot_all_args){x, x, one}));
	CHECK(get(&one, 0, 0) == 0.0);
	CHECK_OK(k->act.run(ctx, &(struct hg__act_args){HG__ACT_relu, 0.0f, x, x}));
	struct hg__mat bare = empty(HG_F16, 3, 0), three = filled(HG_F16, 3, 1, 7.0),
	               by = filled(HG_F16, 1, 1, 2.0);
	CHECK_OK(k->div_back.run(ctx, &(struct hg__div_back_args){x, by, x, one}));
	CHECK(get(&one, 0, 0) == 0.0);
	CHECK_OK(k->row_reduce.run(ctx, &(struct hg__row_reduce_args){HG__ROW_MEAN, bare, three}));
	CHECK(get(&three, 0, 0) == 0.0 && get(&three, 2, 0) == 0.0);
	CHECK_OK(k->softmax.run(ctx, &(struct hg__softmax_args){bare, bare}));
	hg_context_free(ctx);
	pool_clear();
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(gemm_is_within_its_bound),         TEST(spmm_is_within_its_bound),
	    TEST(softmax_is_within_its_bound),      TEST(dropout_follows_the_random_words),
	    TEST(naive_sum_in_f16_stops_growing),   TEST(adam_step_is_that_of_pytorch),
	    TEST(exp_and_log_are_within_two_units), TEST(functions_are_within_their_error_and_range),
	    TEST(graphs_without_rows_are_accepted),
	};
	return RUN_TESTS(argc, argv, cases);
}
