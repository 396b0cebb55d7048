/* The CPU kernels among themselves: every copy (instruction set) and every number of threads gives
 * the same bits; and spot checks of values against the equations in f64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csr.h"
#include "core/rng.h"
#include "harness.h"
#include "kernels/cpu/backend.h"

/* ---- operands ---- */

#define POOL 512
static struct {
	void *memory[POOL];
	int count;
	unsigned char *out; /* what the kernels of a case wrote, one after the other */
	size_t bytes, room;
} pool;

static void *take(size_t bytes)
{
	CHECK(pool.count < POOL);
	void *memory = calloc(bytes + 64, 1);
	CHECK(memory);
	return pool.memory[pool.count++] = memory;
}

static void pool_clear(void)
{
	while (pool.count)
		free(pool.memory[--pool.count]);
	free(pool.out);
	pool.out = NULL;
	pool.bytes = pool.room = 0;
}

static size_t size_of(hg_dtype dtype)
{
	return hg_dtype_size(dtype);
}

static void set(struct hg__mat *m, int64_t r, int64_t c, double x)
{
	const int64_t at = r * m->ld + c;
	if (m->dtype == HG_F16)
		((hg_half *)m->data)[at] = hg_half_from_double(x);
	else if (m->dtype == HG_F32)
		((float *)m->data)[at] = (float)x;
	else if (m->dtype == HG_I32)
		((int32_t *)m->data)[at] = (int32_t)x;
	else
		((uint8_t *)m->data)[at] = (uint8_t)x;
}

static double get(const struct hg__mat *m, int64_t r, int64_t c)
{
	const int64_t at = r * m->ld + c;
	if (m->dtype == HG_F16)
		return (double)hg_half_to_float(((const hg_half *)m->data)[at]);
	if (m->dtype == HG_F32)
		return (double)((const float *)m->data)[at];
	return m->dtype == HG_I32 ? ((const int32_t *)m->data)[at] : ((const uint8_t *)m->data)[at];
}

/* Padding holds NaN: none may reach a result. */
static struct hg__mat empty(hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat m = {NULL, rows, cols, dtype == HG_U8 ? cols : hg__leading(cols), dtype};
	m.data = take((size_t)(rows * m.ld) * size_of(dtype));
	memset(m.data, 0xFF, (size_t)(rows * m.ld) * size_of(dtype));
	return m;
}

static struct hg__mat normal(hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, test_normal());
	return m;
}

static struct hg__mat filled(hg_dtype dtype, int64_t rows, int64_t cols, double x)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, x);
	return m;
}

static struct hg__mat below(hg_dtype dtype, int64_t rows, int64_t cols, int64_t low, int64_t high)
{
	struct hg__mat m = empty(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			set(&m, r, c, (double)(low + test_below(high - low)));
	return m;
}

static void keep_bytes(const void *data, size_t bytes)
{
	if (pool.bytes + bytes > pool.room) {
		pool.room = 2 * (pool.bytes + bytes);
		pool.out = realloc(pool.out, pool.room);
		CHECK(pool.out);
	}
	memcpy(pool.out + pool.bytes, data, bytes);
	pool.bytes += bytes;
}

/* Remember a result, without padding. */
static void keep(const struct hg__mat *m)
{
	for (int64_t r = 0; r < m->rows; r++)
		keep_bytes((const char *)m->data + (size_t)(r * m->ld) * size_of(m->dtype),
		           (size_t)m->cols * size_of(m->dtype));
}

/* ---- a graph with a hub, isolated nodes and duplicates ---- */

#define NODES 300
#define EDGES 2400

struct graph {
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	float *row_scale, *col_scale;
};

static struct graph make_graph(hg_context *ctx)
{
	static int32_t dst[EDGES], src[EDGES];
	struct graph g;
	for (int e = 0; e < EDGES; e++) {
		dst[e] = e % 3 == 0 ? 7 : (int32_t)test_below(NODES - 10);
		src[e] = e % 5 == 0 ? 11 : (int32_t)test_below(NODES - 10);
	}
	CHECK_OK(hg_graph_from_coo(ctx, NODES, NODES, EDGES, dst, src, NULL, NULL, &g.graph));
	CHECK_OK(hg__graph_csr(g.graph, &g.csr));
	CHECK_OK(hg__graph_csr_t(g.graph, 1, &g.csr_t));
	CHECK(g.csr.plan && g.csr.plan->splits > 0);
	g.row_scale = take(NODES * sizeof(float));
	g.col_scale = take(NODES * sizeof(float));
	for (int i = 0; i < NODES; i++) {
		g.row_scale[i] = (float)test_uniform();
		g.col_scale[i] = (float)test_uniform();
	}
	return g;
}

/* ---- cases: each runs kernels on the same inputs and keeps what they write ---- */

typedef void (*case_fn)(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype);

static void run_spmm(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	struct graph g = make_graph(ctx);
	static const int widths[] = {1, 7, 8, 16, 24, 40, 64, 72, 130};
	for (int w = 0; w < 9; w++)
		for (int weights = 0; weights < 4; weights++)
			for (int mode = 0; mode < (dtype == HG_F16 ? 3 : 1); mode++) {
				const int heads = weights == 2 && widths[w] % 8 == 0 ? 8 : 1;
				struct hg__mat x = normal(dtype, NODES, widths[w]),
				               y = empty(dtype, NODES, widths[w]);
				struct hg__mat e = weights == 1 || weights == 2 ? normal(dtype, EDGES, heads)
				                                                : (struct hg__mat){0};
				struct hg__spmm_args a = {.csr = weights == 2 ? g.csr_t : g.csr,
				                          .x = x,
				                          .w = e,
				                          .y = y,
				                          .heads = heads,
				                          .alpha = 0.5f,
				                          .accumulate = (hg_accumulate)mode};
				a.row_scale = weights ? g.row_scale : NULL;
				a.col_scale = weights >= 2 ? g.col_scale : NULL;
				CHECK_OK(k->spmm(ctx, &a));
				keep(&y);
				if (mode)
					continue;
				const float eps = 0.25f;
				const int64_t step = 9;
				a.ending = (struct hg__ending){x,
				                               normal(dtype, 1, widths[w]),
				                               -2.0f,
				                               &eps,
				                               {w % (1 + HG__ACT_RIDERS), w % 4 > 1 ? 0.2f : 0.0f,
				                                w % 2 ? 0.4f : 0.0f, 77, &step}};
				CHECK_OK(k->spmm(ctx, &a));
				keep(&y);
			}
	hg_graph_free(g.graph);
}

static void run_spmm_ones(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	struct graph g = make_graph(ctx);
	for (int heads = 1; heads <= 20; heads += 6) {
		struct hg__mat e = normal(dtype, EDGES, heads), y = empty(dtype, NODES, heads);
		const struct hg__spmm_args a = {
		    .csr = g.csr, .w = e, .y = y, .heads = heads, .col_scale = g.col_scale, .alpha = 1.0f};
		CHECK_OK(k->spmm(ctx, &a));
		keep(&y);
	}
	hg_graph_free(g.graph);
}

static void run_spmm_max(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	struct graph g = make_graph(ctx);
	for (int cols = 1; cols < 300; cols += 90) {
		struct hg__mat x = normal(dtype, NODES, cols), y = empty(dtype, NODES, cols),
		               arg = empty(HG_I32, NODES, cols), dx = empty(dtype, NODES, cols);
		set(&x, 11, 0, NAN);
		CHECK_OK(k->spmm_max(ctx, &(struct hg__spmm_max_args){g.csr, x, y, arg}));
		keep(&y);
		keep(&arg);
		CHECK_OK(
		    k->spmm_max_back(ctx, &(struct hg__spmm_max_back_args){g.csr, g.csr_t, x, arg, dx}));
		keep(&dx);
	}
	hg_graph_free(g.graph);
}

static void run_edges(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	struct graph g = make_graph(ctx);
	static const int head_counts[] = {1, 2, 3, 8, 12, 17};
	for (int i = 0; i < 6; i++) {
		const int heads = head_counts[i];
		struct hg__mat a = normal(dtype, NODES, heads), b = normal(dtype, NODES, heads),
		               e = empty(dtype, EDGES, heads), p = empty(dtype, EDGES, heads);
		struct hg__mat dp = normal(dtype, EDGES, heads), de = empty(dtype, EDGES, heads),
		               dot = empty(dtype, EDGES, heads);
		struct hg__mat x = normal(dtype, NODES, heads * 8), y = normal(dtype, NODES, heads * 8);
		CHECK_OK(k->sddmm_add(
		    ctx, &(struct hg__sddmm_add_args){
		             .csr = g.csr, .a = a, .b = b, .e = e, .leaky = i % 2, .slope = 0.25f}));
		keep(&e);
		CHECK_OK(k->edge_softmax(ctx, &(struct hg__edge_softmax_args){g.csr, e, p}));
		keep(&p);
		CHECK_OK(k->edge_softmax_back(ctx, &(struct hg__edge_softmax_back_args){g.csr, p, dp, de}));
		keep(&de);
		CHECK_OK(k->sddmm_dot(ctx, &(struct hg__sddmm_dot_args){g.csr, x, y, dot, heads, 0.25f,
		                                                        g.row_scale, g.col_scale}));
		keep(&dot);
	}
	hg_graph_free(g.graph);
}

static void run_elementwise(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	const int64_t step = 3;
	const float eps = 0.25f;
	for (int cols = 1; cols < 400; cols += 133) {
		struct hg__mat x = normal(dtype, 500, cols), z = normal(dtype, 500, cols),
		               y = empty(dtype, 500, cols), b = normal(dtype, 1, cols);
		struct hg__mat wide = empty(dtype, 500, cols + 5), dx = empty(dtype, 500, cols),
		               other = empty(dtype == HG_F16 ? HG_F32 : HG_F16, 500, cols);
		set(&x, 0, 0, NAN);
		set(&x, 1, 0, INFINITY);
		for (int act = 0; act < HG__ACT_COUNT; act++) {
			CHECK_OK(k->act(ctx, &(struct hg__act_args){(hg__act)act, 0.2f, x, y}));
			keep(&y);
			CHECK_OK(k->act_back(ctx, &(struct hg__act_back_args){(hg__act)act, 0.2f, x, z, y}));
			keep(&y);
		}
		CHECK_OK(k->dropout(ctx, &(struct hg__dropout_args){x, y, 0.4f, 77, &step}));
		keep(&y);
		for (int i = 0; i < 2 * (1 + HG__ACT_RIDERS); i++) {
			const struct hg__epilogue then = {i / 2, i < 4 ? 0.0f : 0.2f, i % 2 ? 0.4f : 0.0f, 77,
			                                  &step};
			struct hg__mat db = empty(HG_F32, 1, cols);
			CHECK_OK(k->epilogue(ctx, &(struct hg__epilogue_args){x, b, y, then}));
			keep(&y);
			CHECK_OK(k->epilogue_back(ctx, &(struct hg__epilogue_back_args){y, z, dx, db, then}));
			keep(&dx);
			keep(&db);
		}
		CHECK_OK(k->axpby(ctx, &(struct hg__axpby_args){x, z, y, 0.5f, 2.0f, &eps}));
		keep(&y);
		CHECK_OK(k->axpby(ctx, &(struct hg__axpby_args){.x = x, .y = other, .alpha = 3.0f}));
		keep(&other);
		CHECK_OK(k->bias_add(ctx, &(struct hg__bias_add_args){x, b, y}));
		keep(&y);
		struct hg__mat by[] = {z, normal(dtype, 500, 1), normal(dtype, 1, 1)};
		for (int i = 0; i < 3; i++) {
			struct hg__mat db = empty(dtype, by[i].rows, by[i].cols);
			CHECK_OK(k->div(ctx, &(struct hg__div_args){x, by[i], y}));
			keep(&y);
			CHECK_OK(k->div_back(ctx, &(struct hg__div_back_args){x, by[i], z, db}));
			keep(&db);
		}
		memset(wide.data, 0, (size_t)(wide.rows * wide.ld) * size_of(dtype));
		CHECK_OK(k->copy_cols(ctx, &(struct hg__copy_cols_args){x, wide, 0, 3, cols}));
		keep(&wide);
	}
}

static void run_reductions(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	for (int cols = 6; cols < 400; cols += 132) {
		struct hg__mat x = normal(dtype, 1000, cols), z = normal(dtype, 1000, cols),
		               sum = empty(HG_F32, 1, cols), one = empty(HG_F32, 1, 1);
		struct hg__mat two = empty(HG_F32, 1, 2), mean = empty(dtype, 1000, cols / 6),
		               dx = empty(dtype, 1000, cols), a = normal(dtype, 1, cols);
		struct hg__mat s = empty(dtype, 1000, 6), da = empty(HG_F32, 1, cols);
		CHECK_OK(k->colsum(ctx, &(struct hg__colsum_args){.x = x, .y = sum, .copy = dx}));
		keep(&sum);
		keep(&dx);
		CHECK_OK(k->dot_all(ctx, &(struct hg__dot_all_args){x, z, one}));
		keep(&one);
		CHECK_OK(k->head_mean(ctx, &(struct hg__head_mean_args){x, mean, 6}));
		keep(&mean);
		CHECK_OK(k->head_mean_back(ctx, &(struct hg__head_mean_args){dx, mean, 6}));
		keep(&dx);
		for (int reduce = 0; reduce < HG__ROW_COUNT; reduce++) {
			struct hg__mat y = empty(dtype, 1000, 1);
			CHECK_OK(
			    k->row_reduce(ctx, &(struct hg__row_reduce_args){(hg__row_reduce)reduce, x, y}));
			keep(&y);
			CHECK_OK(k->row_reduce_back(
			    ctx, &(struct hg__row_reduce_back_args){(hg__row_reduce)reduce, x, y, dx}));
			keep(&dx);
		}
		CHECK_OK(k->softmax(ctx, &(struct hg__softmax_args){x, dx}));
		keep(&dx);
		CHECK_OK(k->softmax_back(ctx, &(struct hg__softmax_back_args){dx, z, dx}));
		keep(&dx);
		CHECK_OK(k->head_dot(ctx, &(struct hg__head_dot_args){.x = x, .a = a, .s = s, .heads = 6}));
		keep(&s);
		CHECK_OK(
		    k->head_dot_back(ctx, &(struct hg__head_dot_back_args){
		                              .x = x, .a = a, .ds = s, .dx = dx, .da = da, .heads = 6}));
		keep(&dx);
		keep(&da);
		set(&x, 5, 1, INFINITY);
		CHECK_OK(k->amax(ctx, &(struct hg__amax_args){x, two}));
		keep(&two);
	}
}

static void run_norms(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	for (int cols = 1; cols < 400; cols += 133) {
		const int rows = 700;
		struct hg__mat x = normal(dtype, rows, cols), dy = normal(dtype, rows, cols),
		               y = empty(dtype, rows, cols), dx = empty(dtype, rows, cols);
		struct hg__mat gamma = normal(HG_F32, 1, cols), beta = normal(HG_F32, 1, cols),
		               mean = empty(HG_F32, 1, cols), rstd = empty(HG_F32, 1, cols);
		struct hg__mat rm = filled(HG_F32, 1, cols, 0.0), rv = filled(HG_F32, 1, cols, 1.0),
		               dg = empty(HG_F32, 1, cols), db = empty(HG_F32, 1, cols);
		struct hg__mat row_mean = empty(HG_F32, rows, 1), row_rstd = empty(HG_F32, rows, 1);
		for (int train = 3; train >= 0; train--) {
			CHECK_OK(k->batch_norm(
			    ctx, &(struct hg__batch_norm_args){x, gamma, beta, y, mean, rstd, rm, rv, 0.1f,
			                                       1e-5f, train % 2, train / 2, 0, NULL}));
			keep(&y);
			keep(&rv);
		}
		for (int relu = 0; relu < 2; relu++) {
			CHECK_OK(
			    k->batch_norm_back(ctx, &(struct hg__batch_norm_back_args){
			                                x, gamma, mean, rstd, dy, dx, dg, db, beta, relu, 0}));
			keep(&dx);
			keep(&dg);
		}
		CHECK_OK(k->layer_norm(
		    ctx, &(struct hg__layer_norm_args){x, gamma, beta, y, row_mean, row_rstd, 1e-5f}));
		keep(&y);
		CHECK_OK(k->layer_norm_back(
		    ctx, &(struct hg__layer_norm_back_args){x, gamma, row_mean, row_rstd, dy, dx, dg, db}));
		keep(&dx);
		keep(&db);
	}
}

static void run_losses(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	for (int cols = 2; cols < 400; cols += 133) {
		const int rows = 900;
		struct hg__mat x = normal(dtype, rows, cols), y = empty(dtype, rows, cols),
		               dx = empty(dtype, rows, cols), t = filled(HG_F32, rows, cols, 0.75);
		struct hg__mat label = below(HG_I32, rows, 1, -1, cols), mask = below(HG_U8, rows, 1, 0, 2),
		               loss = empty(HG_F32, 1, 1), count = empty(HG_F32, 1, 1);
		struct hg__mat dloss = filled(HG_F32, 1, 1, 1024.0);
		CHECK_OK(k->log_softmax(ctx, &(struct hg__log_softmax_args){x, y}));
		keep(&y);
		CHECK_OK(k->log_softmax_back(ctx, &(struct hg__log_softmax_back_args){y, x, dx}));
		keep(&dx);
		CHECK_OK(
		    k->softmax_xent(ctx, &(struct hg__softmax_xent_args){x, label, mask, loss, count}));
		keep(&loss);
		CHECK_OK(k->softmax_xent_back(
		    ctx, &(struct hg__softmax_xent_back_args){x, label, mask, count, dloss, dx}));
		keep(&dx);
		for (int kind = 0; kind < HG__POINTWISE_COUNT; kind++) {
			CHECK_OK(k->pointwise_loss(ctx, &(struct hg__pointwise_loss_args){
			                                    (hg__pointwise)kind, x, t, mask, loss, count}));
			keep(&loss);
			CHECK_OK(k->pointwise_loss_back(
			    ctx, &(struct hg__pointwise_loss_back_args){(hg__pointwise)kind, x, t, mask, count,
			                                                dloss, dx}));
			keep(&dx);
		}
		struct hg__board board = {
		    .every = 1, .first_step = -1, .top_accuracy = -INFINITY, .low_loss = INFINITY};
		struct hg__step step = {.step = 0};
		CHECK_OK(k->scores(
		    ctx, &(struct hg__scores_args){x, label, {mask, mask}, HG__SPLIT_VAL, &board, &step}));
		struct hg__mat scores = {&board.best.counts, 1,
		                         (int64_t)(sizeof board.best.counts / sizeof(float)),
		                         (int64_t)(sizeof board.best.counts / sizeof(float)), HG_F32};
		CHECK(board.taken == 1 && board.best.epoch == 1 &&
		      board.best.counts.counted[HG__SPLIT_TEST] == 0);
		keep(&scores);
	}
}

static void run_readout(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	static const int64_t ptr[] = {0, 10, 10, 300, 1000};
	int32_t *id = take(1000 * sizeof(*id));
	for (int i = 0; i < 1000; i++)
		id[i] = i < 10 ? 0 : i < 300 ? 2 : 3;
	for (int cols = 1; cols < 200; cols += 66)
		for (int reduce = 0; reduce < 3; reduce++) {
			struct hg__mat x = normal(dtype, 1000, cols), y = empty(dtype, 4, cols),
			               arg = empty(HG_I32, 4, cols), dx = empty(dtype, 1000, cols);
			CHECK_OK(
			    k->readout(ctx, &(struct hg__readout_args){ptr, x, y, arg, (hg_reduce)reduce}));
			keep(&y);
			CHECK_OK(k->readout_back(
			    ctx, &(struct hg__readout_back_args){ptr, id, y, arg, dx, (hg_reduce)reduce}));
			keep(&dx);
		}
}

static void run_optim(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	for (int kind = 0; kind < 3; kind++) {
		struct hg__mat p = normal(HG_F32, 70, 300), grad = normal(HG_F32, 70, 300),
		               m = filled(HG_F32, 70, 300, 0.0), v = filled(HG_F32, 70, 300, 0.0);
		struct hg__mat working = empty(dtype, 70, 300);
		const struct hg__optim_tensor t = {p.data, grad.data, m.data, v.data, working.data, 70,
		                                   300,    p.ld,      dtype,  0,      INFINITY};
		const struct hg__optim_group group = {0.01f, 0.1f};
		struct hg__step step = {.config = HG_LOSS_SCALE_CONFIG_INIT};
		CHECK_OK(hg_loss_scale_init(&step.scale, &step.config));
		struct hg__optim_args a = {.config = HG_OPTIM_CONFIG_INIT,
		                           .tensors = &t,
		                           .host = &t,
		                           .count = 1,
		                           .groups = &group,
		                           .step = &step};
		a.config.kind = (hg_optim_kind)kind;
		a.config.momentum = 0.9f;
		for (int i = 0; i < 3; i++) {
			if (i == 1)
				set(&grad, 3, 3, NAN);
			CHECK_OK(k->grad_check(ctx, &a));
			CHECK_EQ_I(step.nonfinite, i == 1);
			CHECK_OK(k->optim_update(ctx, &a));
			set(&grad, 3, 3, 1.0);
		}
		CHECK_EQ_I(step.scale.applied, 2);
		CHECK_EQ_I(step.step, 3);
		keep(&p);
		keep(&working);
		keep_bytes(&step.grad_sq, sizeof(step.grad_sq));
	}
}

/* ---- the same bits everywhere ---- */

static hg_context *context_with(int threads)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	config.threads = threads;
	hg_context *ctx = NULL;
	CHECK_OK(hg_context_create(&config, &ctx));
	return ctx;
}

static void same_bits(const char *name, case_fn run)
{
	size_t count;
	const struct hg__cpu_isa *isa = hg__cpu_isas(&count);
	for (int dtype = HG_F16; dtype <= HG_F32; dtype++) {
		unsigned char *first = NULL;
		size_t bytes = 0;
		for (size_t i = 0; i < count; i++)
			for (int threads = 1; threads <= 3 && isa[i].runs_here(); threads += 2) {
				hg_context *ctx = context_with(threads);
				test_reseed(17);
				run(ctx, isa[i].kernels, (hg_dtype)dtype);
				if (!first) {
					bytes = pool.bytes;
					first = malloc(bytes);
					CHECK(first);
					memcpy(first, pool.out, bytes);
				}
				CHECK_EQ_I(pool.bytes, bytes);
				for (size_t b = 0; b < bytes; b++)
					CHECK_MSG(pool.out[b] == first[b],
					          "%s: %s, %d threads, %s: byte %zu of %zu differs", name, isa[i].name,
					          threads, hg_dtype_name((hg_dtype)dtype), b, bytes);
				pool_clear();
				hg_context_free(ctx);
			}
		free(first);
	}
}

static void same_bits_everywhere(void)
{
	static const struct {
		const char *name;
		case_fn run;
	} groups[] = {
	    {"spmm", run_spmm},   {"spmm of ones", run_spmm_ones},  {"spmm_max", run_spmm_max},
	    {"edges", run_edges}, {"elementwise", run_elementwise}, {"sums", run_reductions},
	    {"norms", run_norms}, {"losses", run_losses},           {"readout", run_readout},
	    {"optim", run_optim},
	};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		same_bits(groups[i].name, groups[i].run);
}

/* ---- values ---- */

/* One rounding to the type of m, and `relative` of slack before it. */
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
	CHECK_OK(k->gemm(ctx, &(struct hg__gemm_args){
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
		CHECK_OK(k->gemm(
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
	CHECK_STATUS(k->gemm(ctx,
	                     &(struct hg__gemm_args){
	                         .a = a, .b = b, .c = c, .trans_a = ta, .trans_b = tb, .pick = 2}),
	             HG_ERR_UNSUPPORTED);
	pool_clear();
}

static void gemm_values(void)
{
	static const int64_t shapes[][3] = {{1, 1, 1},     {5, 7, 0},    {37, 64, 100}, {300, 7, 64},
	                                    {32, 7, 2100}, {530, 5, 40}, {17, 600, 33}, {6, 9, 1200}};
	size_t count;
	const struct hg__cpu_isa *isa = hg__cpu_isas(&count);
	for (size_t i = 0; i < count; i++)
		for (int t = 0; t < 8 && isa[i].runs_here(); t++) {
			hg_context *ctx = context_with(1 + t % 2);
			for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
				check_gemm(ctx, isa[i].kernels, t / 4 ? HG_F32 : HG_F16, shapes[s][0], shapes[s][1],
				           shapes[s][2], t & 1, t >> 1 & 1);
			hg_context_free(ctx);
		}
}

/* Large enough for two threads, and for k to be cut. */
static void gemm_threads_same(void)
{
	for (int form = 0; form < 4; form++) {
		struct hg__mat out[2];
		for (int threads = 1; threads <= 2; threads++) {
			hg_context *ctx = context_with(threads);
			const hg_dtype dtype = form & 1 ? HG_F16 : HG_F32;
			test_reseed(5);
			struct hg__mat a = normal(dtype, 1500, 300),
			               b = form & 2 ? normal(dtype, 1500, 64) : normal(dtype, 300, 64);
			out[threads - 1] = form & 2 ? empty(HG_F32, 300, 64) : empty(dtype, 1500, 64);
			const struct hg__gemm_args args = {
			    .a = a, .b = b, .c = out[threads - 1], .trans_a = form >> 1};
			CHECK_OK(ctx->backend->kernels->gemm(ctx, &args));
			hg_context_free(ctx);
		}
		CHECK(memcmp(out[0].data, out[1].data,
		             (size_t)(out[0].rows * out[0].ld) * size_of(out[0].dtype)) == 0);
		pool_clear();
	}
}

static void spmm_values(void)
{
	hg_context *ctx = context_with(2);
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
		CHECK_OK(ctx->backend->kernels->spmm(ctx, &a));
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

static void softmax_values(void)
{
	hg_context *ctx = context_with(2);
	struct graph g = make_graph(ctx);
	struct hg__mat e = normal(HG_F16, EDGES, 3), p = empty(HG_F16, EDGES, 3);
	CHECK_OK(
	    ctx->backend->kernels->edge_softmax(ctx, &(struct hg__edge_softmax_args){g.csr, e, p}));
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

/* The words decide, element by element, as hg__rng_quad says. */
static void dropout_words(void)
{
	hg_context *ctx = context_with(2);
	const int64_t step = 5000000000;
	struct hg__mat x = filled(HG_F32, 40, 77, 1.0), y = empty(HG_F32, 40, 77);
	CHECK_OK(ctx->backend->kernels->dropout(
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

/* A star: 3000 ones reach 2048 and stick there in f16; NaN and infinity pass. */
static void spmm_modes(void)
{
	hg_context *ctx = context_with(1);
	static int32_t dst[3000], src[3000];
	for (int e = 0; e < 3000; e++)
		src[e] = e;
	hg_graph *graph;
	struct hg__csr csr;
	CHECK_OK(hg_graph_from_coo(ctx, 1, 3000, 3000, dst, src, NULL, NULL, &graph));
	CHECK_OK(hg__graph_csr(graph, &csr));
	csr.plan = NULL; /* one part: the naive accumulator sees all edges */
	struct hg__mat x = filled(HG_F16, 3000, 1, 1.0), y = empty(HG_F16, 1, 1);
	const float scale = 1.0f / 3000.0f;
	struct hg__spmm_args a = {
	    .csr = csr, .x = x, .y = y, .heads = 1, .row_scale = &scale, .alpha = 1.0f};
	CHECK_OK(ctx->backend->kernels->spmm(ctx, &a));
	CHECK_WITHIN(get(&y, 0, 0), 1.0, 0x1p-11);
	a.accumulate = HG_ACC_F16_NAIVE;
	CHECK_OK(ctx->backend->kernels->spmm(ctx, &a));
	CHECK_WITHIN(get(&y, 0, 0), 2048.0 / 3000.0, 1e-3);
	a.accumulate = HG_ACC_F16_DISCRETIZED;
	CHECK_OK(ctx->backend->kernels->spmm(ctx, &a));
	CHECK_WITHIN(get(&y, 0, 0), 1.0, 0.02);
	set(&x, 9, 0, INFINITY);
	CHECK_OK(ctx->backend->kernels->spmm(ctx, &a));
	CHECK(isinf(get(&y, 0, 0)));
	set(&x, 10, 0, -INFINITY);
	CHECK_OK(ctx->backend->kernels->spmm(ctx, &a));
	CHECK(isnan(get(&y, 0, 0)));
	hg_graph_free(graph);
	hg_context_free(ctx);
	pool_clear();
}

/* Adam's second step by PyTorch's formulas in f64. */
static void adam_values(void)
{
	hg_context *ctx = context_with(1);
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
		CHECK_OK(ctx->backend->kernels->grad_check(ctx, &a));
		CHECK_OK(ctx->backend->kernels->optim_update(ctx, &a));
		const double g = 2.0 + 0.01 * ep;
		em = 0.9 * em + 0.1 * g;
		ev = 0.999 * ev + 0.001 * g * g;
		ep -= 0.1 / (1.0 - pow(0.9, i)) * em / (sqrt(ev) / sqrt(1.0 - pow(0.999, i)) + 1e-8);
		CHECK_WITHIN(p, ep, 1e-5);
	}
	hg_context_free(ctx);
}

/* exp and log within 2 units in the last place, at every 1009th float; what log makes of the
 * rest. */
static void exp_and_log_values(void)
{
	hg_context *ctx = context_with(2);
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
			CHECK_OK(k->act(ctx, &(struct hg__act_args){(hg__act)act, 0.0f, x, y}));
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
	CHECK_OK(k->act(ctx, &(struct hg__act_args){HG__ACT_log, 0.0f, in, out}));
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

/* Within the units u32 of their value that stand on top of their ops, at every 1009th float of
 * either sign; and what is said of their range holds as they are computed. */
static void function_values(void)
{
	static const struct {
		hg__act act;
		double (*value)(double x);
		double off, squares, most; /* (off + squares x^2) u; |y| <= most; INFINITY: |x| */
	} functions[] = {
	    {HG__ACT_sigmoid, logistic, 7.0, 0.0, 1.0},
	    {HG__ACT_tanh, tanh, 10.0, 0.0, 1.0},
	    {HG__ACT_gelu, gelu, 16.0, 0.5, INFINITY},
	};
	enum { COLS = 4096, FUNCTIONS = (int)(sizeof functions / sizeof *functions) };
	hg_context *ctx = context_with(2);
	const struct hg__kernels *k = ctx->backend->kernels;
	struct hg__mat x = empty(HG_F32, 1, COLS), y = empty(HG_F32, 1, COLS);
	double worst[FUNCTIONS] = {0};
	for (uint32_t bits = 0; bits < 0x7F800000u - 1009u * COLS; bits += 1009u * COLS)
		for (int f = 0; f < 2 * FUNCTIONS; f++) {
			for (uint32_t i = 0; i < COLS; i++) {
				const uint32_t word = (bits + 1009u * i) | (f % 2 ? 0x80000000u : 0u);
				memcpy((float *)x.data + i, &word, sizeof word);
			}
			CHECK_OK(k->act(ctx, &(struct hg__act_args){functions[f / 2].act, 0.0f, x, y}));
			for (int i = 0; i < COLS; i++) {
				const double at = get(&x, 0, i), got = get(&y, 0, i),
				             value = functions[f / 2].value(at);
				const double bound = (functions[f / 2].off + functions[f / 2].squares * at * at) *
				                     0x1p-24 * fabs(value);
				/* 2^-143: oracle/smooth.c */
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

static void no_rows(void)
{
	hg_context *ctx = context_with(2);
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
	CHECK_OK(k->spmm(
	    ctx, &(struct hg__spmm_args){.csr = csr, .x = x, .y = x, .heads = 1, .alpha = 1.0f}));
	CHECK_OK(k->edge_softmax(ctx, &(struct hg__edge_softmax_args){csr, e, e}));
	CHECK_OK(k->colsum(ctx, &(struct hg__colsum_args){.x = x, .y = sum}));
	CHECK(get(&sum, 0, 7) == 0.0);
	CHECK_OK(k->dot_all(ctx, &(struct hg__dot_all_args){x, x, one}));
	CHECK(get(&one, 0, 0) == 0.0);
	CHECK_OK(k->act(ctx, &(struct hg__act_args){HG__ACT_relu, 0.0f, x, x}));
	struct hg__mat bare = empty(HG_F16, 3, 0), three = filled(HG_F16, 3, 1, 7.0),
	               by = filled(HG_F16, 1, 1, 2.0);
	CHECK_OK(k->div_back(ctx, &(struct hg__div_back_args){x, by, x, one}));
	CHECK(get(&one, 0, 0) == 0.0);
	CHECK_OK(k->row_reduce(ctx, &(struct hg__row_reduce_args){HG__ROW_MEAN, bare, three}));
	CHECK(get(&three, 0, 0) == 0.0 && get(&three, 2, 0) == 0.0);
	CHECK_OK(k->softmax(ctx, &(struct hg__softmax_args){bare, bare}));
	hg_context_free(ctx);
	pool_clear();
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(same_bits_everywhere), TEST(gemm_values),    TEST(gemm_threads_same),
	    TEST(spmm_values),          TEST(softmax_values), TEST(dropout_words),
	    TEST(spmm_modes),           TEST(adam_values),    TEST(exp_and_log_values),
	    TEST(function_values),      TEST(no_rows),
	};
	return RUN_TESTS(argc, argv, cases);
}
