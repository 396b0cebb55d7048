/* Every copy of the CPU kernels (one for each instruction set), with every number of threads, gives
 * the same bits. */
#include <math.h>

#include "core/bins.h"
#include "unit/operands.h"

/* ---- cases: each calls kernels on the same operands and keeps their results ---- */

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
				CHECK_OK(k->spmm.run(ctx, &a));
				keep(&y);
				if (mode)
					continue;
				const float eps = 0.25f;
				const int64_t step = 9;
				a.epilogue = (struct hg__sum_epilogue){x,
				                                       normal(dtype, 1, widths[w]),
				                                       -2.0f,
				                                       &eps,
				                                       {w % (1 + HG__ACT_SUM_EPILOGUES),
				                                        w % 4 > 1 ? 0.2f : 0.0f,
				                                        w % 2 ? 0.4f : 0.0f, 77, &step}};
				CHECK_OK(k->spmm.run(ctx, &a));
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
		CHECK_OK(k->spmm.run(ctx, &a));
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
		CHECK_OK(k->spmm_max.run(ctx, &(struct hg__spmm_max_args){g.csr, x, y, arg}));
		keep(&y);
		keep(&arg);
		CHECK_OK(k->spmm_max_back.run(
		    ctx, &(struct hg__spmm_max_back_args){g.csr, g.csr_t, x, arg, dx}));
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
		CHECK_OK(k->sddmm_add.run(
		    ctx, &(struct hg__sddmm_add_args){
		             .csr = g.csr, .a = a, .b = b, .e = e, .leaky = i % 2, .slope = 0.25f}));
		keep(&e);
		CHECK_OK(k->edge_softmax.run(ctx, &(struct hg__edge_softmax_args){g.csr, e, p}));
		keep(&p);
		CHECK_OK(
		    k->edge_softmax_back.run(ctx, &(struct hg__edge_softmax_back_args){g.csr, p, dp, de}));
		keep(&de);
		CHECK_OK(k->sddmm_dot.run(ctx, &(struct hg__sddmm_dot_args){g.csr, x, y, dot, heads, 0.25f,
		                                                            g.row_scale, g.col_scale}));
		keep(&dot);
		for (int by_col = 0; by_col < 2; by_col++) {
			CHECK_OK(k->gather.run(ctx, &(struct hg__gather_args){.csr = by_col ? g.csr : g.csr_t,
			                                                      .x = a,
			                                                      .z = e,
			                                                      .scale = g.row_scale,
			                                                      .alpha = 0.5f,
			                                                      .by_col = by_col}));
			keep(&e);
		}
	}
	hg_graph_free(g.graph);
}

/* The list of the edges in the order of their sources. */
static void run_scatter(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	struct graph g = make_graph(ctx);
	int32_t *dst = take(EDGES * sizeof *dst);
	for (int64_t i = 0; i < NODES; i++)
		for (int64_t p = g.csr.rowptr[i]; p < g.csr.rowptr[i + 1]; p++)
			dst[p] = (int32_t)i;
	const struct hg__coo coo = {NODES, NODES, EDGES, g.csr.col, dst};
	static const int widths[] = {1, 7, 24, 130};
	for (int w = 0; w < 8; w++) {
		const int cols = 2 * widths[w % 4], heads = 1 + w / 4;
		struct hg__mat x = normal(dtype, NODES, cols), y = empty(dtype, NODES, cols),
		               dot = empty(dtype, EDGES, heads);
		set(&x, 11, 0, NAN);
		set(&x, 12, 1, -INFINITY);
		const float eps = 0.25f;
		const int64_t step = 9;
		const struct hg__scatter_sum_args a = {
		    .coo = coo,
		    .x = x,
		    .w = w % 2 ? normal(dtype, EDGES, heads) : (struct hg__mat){0},
		    .y = y,
		    .heads = heads,
		    .row_scale = g.row_scale,
		    .col_scale = g.col_scale,
		    .alpha = 0.5f,
		    .degree = EDGES,
		    .x_most = w % 4 > 1 ? 8.0f : 0.0f,
		    .w_most = w % 2 ? 0.0f : 1.0f,
		    .epilogue = {x,
		                 normal(dtype, 1, cols),
		                 -2.0f,
		                 &eps,
		                 {w % (1 + HG__ACT_SUM_EPILOGUES), 0.2f, w % 3 ? 0.4f : 0.0f, 77, &step}}};
		CHECK_OK(k->scatter_sum.run(ctx, &a));
		keep(&y);
		CHECK_OK(
		    k->scatter_dot.run(ctx, &(struct hg__scatter_dot_args){coo, x, x, dot, heads, 0.25f,
		                                                           g.row_scale, g.col_scale}));
		keep(&dot);
	}
	hg_graph_free(g.graph);
}

static void run_attention(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	struct graph g = make_graph(ctx);
	static const int head_counts[] = {1, 3, 8, 16}, widths[] = {8, 5, 8, 20};
	const int64_t step = 5;
	for (int i = 0; i < 4 * HG_SCORE_COUNT; i++) {
		const hg_score score = (hg_score)(i / 4);
		const int heads = head_counts[i % 4], d = widths[i % 4], add = score == HG_SCORE_ADD,
		          q = heads * (add ? 1 : d);
		struct hg__attention_args a = {.csr = g.csr,
		                               .of = {.score = score,
		                                      .heads = heads,
		                                      .slope = 0.25f,
		                                      .scale = 0.5f,
		                                      .q = normal(dtype, NODES, q),
		                                      .k = normal(dtype, NODES, q),
		                                      .v = normal(dtype, NODES, heads * d),
		                                      .bias = normal(dtype, EDGES, heads),
		                                      .dropout = {i % 2 ? 0.3f : 0.0f, 77, &step}},
		                               .y = empty(dtype, NODES, heads * d),
		                               .log_sum = empty(HG_F32, NODES, heads * (1 + add))};
		if (score == HG_SCORE_ADD_V2)
			a.of.c = normal(dtype, 1, q);
		if (score == HG_SCORE_COSINE)
			a.of.c = normal(dtype, 1, heads);
		if (add)
			a.plus = empty(dtype, NODES, heads * d);
		CHECK_OK(k->attention.run(ctx, &a));
		keep(&a.y);
		keep(&a.log_sum);
		keep(&a.plus);
		struct hg__attention_back_args b = {.csr = g.csr,
		                                    .csr_t = g.csr_t,
		                                    .of = a.of,
		                                    .y = a.y,
		                                    .log_sum = a.log_sum,
		                                    .plus = a.plus,
		                                    .dy = normal(dtype, NODES, heads * d),
		                                    .dq = empty(dtype, NODES, q),
		                                    .dk = empty(dtype, NODES, q),
		                                    .dv = empty(dtype, NODES, heads * d),
		                                    .dbias = empty(dtype, EDGES, heads)};
		if (score >= HG_SCORE_COSINE)
			b.dc = empty(HG_F32, 1, a.of.c.cols);
		CHECK_OK(k->attention_back.run(ctx, &b));
		const struct hg__mat *const results[] = {&b.dq, &b.dk, &b.dv, &b.dc, &b.dbias};
		for (int r = 0; r < 5; r++)
			keep(results[r]);
		struct hg__mat p = empty(dtype, EDGES, heads);
		CHECK_OK(k->attention_weights.run(
		    ctx, &(struct hg__attention_weights_args){g.csr, a.of, a.log_sum, p}));
		keep(&p);
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
			CHECK_OK(k->act.run(ctx, &(struct hg__act_args){(hg__act)act, 0.2f, x, y}));
			keep(&y);
			CHECK_OK(
			    k->act_back.run(ctx, &(struct hg__act_back_args){(hg__act)act, 0.2f, x, z, y}));
			keep(&y);
		}
		CHECK_OK(k->dropout.run(ctx, &(struct hg__dropout_args){x, y, 0.4f, 77, &step}));
		keep(&y);
		for (int i = 0; i < 2 * (1 + HG__ACT_EPILOGUES); i++) {
			const struct hg__act_drop act_drop = {i / 2, i < 4 ? 0.0f : 0.2f, i % 2 ? 0.4f : 0.0f,
			                                      77, &step};
			struct hg__mat db = empty(HG_F32, 1, cols);
			CHECK_OK(k->epilogue.run(ctx, &(struct hg__epilogue_args){x, b, y, act_drop, {0}}));
			keep(&y);
			CHECK_OK(k->epilogue_back.run(
			    ctx, &(struct hg__epilogue_back_args){y, z, dx, db, act_drop}));
			keep(&dx);
			keep(&db);
		}
		CHECK_OK(k->axpby.run(ctx, &(struct hg__axpby_args){x, z, y, 0.5f, 2.0f, &eps}));
		keep(&y);
		CHECK_OK(k->axpby.run(ctx, &(struct hg__axpby_args){.x = x, .y = other, .alpha = 3.0f}));
		keep(&other);
		CHECK_OK(k->bias_add.run(ctx, &(struct hg__bias_add_args){x, b, y}));
		keep(&y);
		struct hg__mat by[] = {z, normal(dtype, 500, 1), normal(dtype, 1, 1)};
		for (int i = 0; i < 3; i++) {
			struct hg__mat db = empty(dtype, by[i].rows, by[i].cols);
			CHECK_OK(k->div.run(ctx, &(struct hg__div_args){x, by[i], y}));
			keep(&y);
			CHECK_OK(k->div_back.run(ctx, &(struct hg__div_back_args){x, by[i], z, db}));
			keep(&db);
		}
		memset(wide.data, 0, (size_t)(wide.rows * wide.ld) * size_of(dtype));
		CHECK_OK(k->copy_cols.run(ctx, &(struct hg__copy_cols_args){x, wide, 0, 3, cols}));
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
		CHECK_OK(k->colsum.run(ctx, &(struct hg__colsum_args){.x = x, .y = sum, .copy = dx}));
		keep(&sum);
		keep(&dx);
		CHECK_OK(k->dot_all.run(ctx, &(struct hg__dot_all_args){x, z, one}));
		keep(&one);
		CHECK_OK(k->head_mean.run(ctx, &(struct hg__head_mean_args){x, mean, 6}));
		keep(&mean);
		CHECK_OK(k->head_mean_back.run(ctx, &(struct hg__head_mean_args){dx, mean, 6}));
		keep(&dx);
		for (int reduce = 0; reduce < HG__ROW_COUNT; reduce++) {
			struct hg__mat y = empty(dtype, 1000, 1);
			CHECK_OK(k->row_reduce.run(
			    ctx, &(struct hg__row_reduce_args){(hg__row_reduce)reduce, x, y}));
			keep(&y);
			CHECK_OK(k->row_reduce_back.run(
			    ctx, &(struct hg__row_reduce_back_args){(hg__row_reduce)reduce, x, y, dx}));
			keep(&dx);
		}
		CHECK_OK(k->softmax.run(ctx, &(struct hg__softmax_args){x, dx}));
		keep(&dx);
		CHECK_OK(k->softmax_back.run(ctx, &(struct hg__softmax_back_args){dx, z, dx}));
		keep(&dx);
		CHECK_OK(
		    k->head_dot.run(ctx, &(struct hg__head_dot_args){.x = x, .a = a, .s = s, .heads = 6}));
		keep(&s);
		CHECK_OK(k->head_dot_back.run(
		    ctx, &(struct hg__head_dot_back_args){
		             .x = x, .a = a, .ds = s, .dx = dx, .da = da, .heads = 6}));
		keep(&dx);
		keep(&da);
		set(&x, 5, 1, INFINITY);
		CHECK_OK(k->amax.run(ctx, &(struct hg__amax_args){x, two}));
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
			CHECK_OK(k->batch_norm.run(
			    ctx, &(struct hg__batch_norm_args){x, gamma, beta, y, mean, rstd, rm, rv, 0.1f,
			                                       1e-5f, train % 2, train / 2, 0, 0, NULL, NULL}));
			keep(&y);
			keep(&rv);
		}
		for (int relu = 0; relu < 2; relu++) {
			CHECK_OK(k->batch_norm_back.run(
			    ctx, &(struct hg__batch_norm_back_args){x, gamma, mean, rstd, dy, dx, dg, db, beta,
			                                            relu, 0, 0, NULL}));
			keep(&dx);
			keep(&dg);
		}
		CHECK_OK(k->layer_norm.run(
		    ctx, &(struct hg__layer_norm_args){x, gamma, beta, y, row_mean, row_rstd, 1e-5f}));
		keep(&y);
		CHECK_OK(k->layer_norm_back.run(
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
		struct hg__mat dloss = filled(HG_F32, 1, 1, 1024.0), weight = filled(HG_F32, 1, cols, 1.5);
		CHECK_OK(k->log_softmax.run(ctx, &(struct hg__log_softmax_args){x, y}));
		keep(&y);
		CHECK_OK(k->log_softmax_back.run(ctx, &(struct hg__log_softmax_back_args){y, x, dx}));
		keep(&dx);
		CHECK_OK(k->softmax_xent.run(
		    ctx, &(struct hg__softmax_xent_args){
		             .x = x, .label = label, .mask = mask, .loss = loss, .count = count}));
		keep(&loss);
		CHECK_OK(k->softmax_xent_back.run(
		    ctx,
		    &(struct hg__softmax_xent_back_args){
		        .x = x, .label = label, .mask = mask, .count = count, .dloss = dloss, .dx = dx}));
		keep(&dx);
		CHECK_OK(k->softmax_xent.run(ctx, &(struct hg__softmax_xent_args){
		                                      x, label, mask, loss, count, weight, 0.125f, NULL}));
		keep(&loss);
		CHECK_OK(k->softmax_xent_back.run(
		    ctx, &(struct hg__softmax_xent_back_args){x, label, mask, count, dloss, dx, weight,
		                                              0.125f, NULL}));
		keep(&dx);
		for (int kind = 0; kind < HG__POINTWISE_COUNT; kind++) {
			CHECK_OK(k->pointwise_loss.run(
			    ctx, &(struct hg__pointwise_loss_args){(hg__pointwise)kind, x, t, mask, loss, count,
			                                           weight, NULL}));
			keep(&loss);
			CHECK_OK(k->pointwise_loss_back.run(
			    ctx, &(struct hg__pointwise_loss_back_args){(hg__pointwise)kind, x, t, mask, count,
			                                                dloss, dx, weight, NULL}));
			keep(&dx);
		}
		struct hg__board board = {
		    .every = 1, .first_step = -1, .top_metric = -INFINITY, .low_loss = INFINITY};
		struct hg__step step = {.step = 0};
		CHECK_OK(k->scores.run(
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
			    k->readout.run(ctx, &(struct hg__readout_args){ptr, x, y, arg, (hg_reduce)reduce}));
			keep(&y);
			CHECK_OK(k->readout_back.run(
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
			CHECK_OK(k->grad_check.run(ctx, &a));
			CHECK_EQ_I(step.nonfinite, i == 1);
			CHECK_OK(k->optim_update.run(ctx, &a));
			set(&grad, 3, 3, 1.0);
		}
		CHECK_EQ_I(step.scale.applied, 2);
		CHECK_EQ_I(step.step, 3);
		keep(&p);
		keep(&working);
		keep_bytes(&step.grad_sq, sizeof(step.grad_sq));
	}
}

/* ---- layers of small graphs ---- */

/* Graphs of 1 to 48 nodes, with edges that repeat: more bins than one chunk of sums has. */
enum { SMALL_GRAPHS = 40, SMALL_LAYERS = 4 };
struct small_batch {
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	struct hg__bins bins;
	int64_t rows;
	float *row_scale, *col_scale;
};

static struct small_batch make_small_batch(hg_context *ctx)
{
	struct small_batch b = {0};
	int64_t ptr[SMALL_GRAPHS + 1] = {0};
	for (int k = 0; k < SMALL_GRAPHS; k++)
		ptr[k + 1] = ptr[k] + 1 + k * 29 % 48;
	b.rows = ptr[SMALL_GRAPHS];
	struct coo edges = coo_empty(b.rows, b.rows);
	for (int k = 0; k < SMALL_GRAPHS; k++)
		for (int64_t n = ptr[k + 1] - ptr[k], e = 0; e < 3 * n; e++)
			coo_add(&edges, ptr[k] + test_below(n), ptr[k] + test_below(n));
	b.graph = coo_graph(ctx, edges);
	CHECK_OK(hg__graph_csr(b.graph, &b.csr));
	CHECK_OK(hg__graph_csr_t(b.graph, 0, &b.csr_t));
	b.bins.bins = hg__bins_most(b.rows);
	b.bins.rows = HG__BIN_ROWS;
	b.bins.first = take((size_t)(b.bins.bins + 2) * sizeof(int32_t));
	hg__bins_cut(SMALL_GRAPHS, ptr, b.rows, b.bins.bins, b.bins.first);
	b.row_scale = take((size_t)b.rows * sizeof(float));
	b.col_scale = take((size_t)b.rows * sizeof(float));
	for (int64_t i = 0; i < b.rows; i++) {
		b.row_scale[i] = (float)test_uniform();
		b.col_scale[i] = (float)test_uniform();
	}
	return b;
}

/* Layers whose widths are no multiples of a vector, with and without each thing that a layer may
 * have. They are of halves whatever the type of the run. */
static void run_small_layers(hg_context *ctx, const struct hg__kernels *k, hg_dtype dtype)
{
	static const int all_widths[2][SMALL_LAYERS + 1] = {{11, 32, 31, 7, 1}, {33, 64, 7, 50, 63}};
	const int64_t step = 5;
	struct small_batch b = make_small_batch(ctx);
	(void)dtype;
	for (int run = 0; run < 4; run++) {
		const int first = run % 2, *widths = all_widths[run / 2];
		struct hg__small_layer layer[SMALL_LAYERS] = {0};
		for (int l = 0; l < SMALL_LAYERS; l++) {
			layer[l].w = normal(HG_F16, widths[l], widths[l + 1]);
			layer[l].dw = empty(HG_F32, widths[l], widths[l + 1]);
			layer[l].db = empty(HG_F32, 1, widths[l + 1]);
			layer[l].aggregate_first = (l + first) % 2;
			if (l % 2) {
				layer[l].y = empty(HG_F16, b.rows, widths[l + 1]);
				layer[l].dy = normal(HG_F16, b.rows, widths[l + 1]);
			}
			if (l < 3)
				layer[l].b = normal(HG_F16, 1, widths[l + 1]);
			if (l < 2)
				layer[l].act_drop = (struct hg__act_drop){1 + HG__ACT_relu, 0.0f, l ? 0.1f : 0.5f,
				                                          77 + (uint64_t)l, &step};
		}
		struct hg__small_layers_back_args a = {
		    .of = {.csr = b.csr,
		           .row_scale = first ? NULL : b.row_scale,
		           .col_scale = b.col_scale,
		           .alpha = 0.5f,
		           .bins = &b.bins,
		           .layer = layer,
		           .layers = SMALL_LAYERS,
		           .x = normal(HG_F16, b.rows, widths[0]),
		           .kept = empty(HG_I32, b.bins.bins * SMALL_LAYERS,
		                         hg__small_kept(run < 2 ? 32 : 64))},
		    .csr_t = b.csr_t,
		    .dx = empty(HG_F16, b.rows, widths[0])};
		CHECK_OK(k->small_layers.run(ctx, &a.of));
		for (int l = 1; l < SMALL_LAYERS; l += 2)
			keep(&layer[l].y);
		CHECK_OK(k->small_layers_back.run(ctx, &a));
		keep(&a.dx);
		for (int l = 0; l < SMALL_LAYERS; l++) {
			keep(&layer[l].dw);
			keep(&layer[l].db);
		}
	}
	hg_graph_free(b.graph);
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
				hg_context *ctx = test_cpu_context(threads);
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
	    {"spmm", run_spmm},
	    {"spmm of ones", run_spmm_ones},
	    {"spmm_max", run_spmm_max},
	    {"edges", run_edges},
	    {"scatter", run_scatter},
	    {"attention", run_attention},
	    {"elementwise", run_elementwise},
	    {"sums", run_reductions},
	    {"norms", run_norms},
	    {"losses", run_losses},
	    {"readout", run_readout},
	    {"optim", run_optim},
	    {"small layers", run_small_layers},
	};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		same_bits(groups[i].name, groups[i].run);
}

/* Large enough for two threads, and for products that are cut along k. */
static void threads_do_not_change_gemm(void)
{
	for (int form = 0; form < 4; form++) {
		struct hg__mat out[2];
		for (int threads = 1; threads <= 2; threads++) {
			hg_context *ctx = test_cpu_context(threads);
			const hg_dtype dtype = form & 1 ? HG_F16 : HG_F32;
			test_reseed(5);
			struct hg__mat a = normal(dtype, 1500, 300),
			               b = form & 2 ? normal(dtype, 1500, 64) : normal(dtype, 300, 64);
			out[threads - 1] = form & 2 ? empty(HG_F32, 300, 64) : empty(dtype, 1500, 64);
			const struct hg__gemm_args args = {
			    .a = a, .b = b, .c = out[threads - 1], .trans_a = form >> 1};
			CHECK_OK(ctx->backend->kernels->gemm.run(ctx, &args));
			hg_context_free(ctx);
		}
		CHECK(memcmp(out[0].data, out[1].data,
		             (size_t)(out[0].rows * out[0].ld) * size_of(out[0].dtype)) == 0);
		pool_clear();
	}
}

/* A matrix of which one number in eight is not 0. */
static struct hg__mat mostly_zero(hg_dtype dtype, int64_t rows, int64_t cols)
{
	struct hg__mat m = normal(dtype, rows, cols);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			if ((r * 5 + c * 3 + r / 7) % 8)
				set(&m, r, c, 0.0);
	return m;
}

static struct hg__mat columns_of(const struct hg__mat *m, int64_t first, int64_t cols)
{
	struct hg__mat part = *m;
	part.data = (char *)m->data + (size_t)first * size_of(m->dtype);
	part.cols = cols;
	return part;
}

/* Strips of 64 columns leave the zeros of A out and strips of 32 do not, so 64 columns at once and
 * 32 at a time give the same bits, also where 0 times infinity is NaN. */
static void zeros_left_out_change_no_gemm(void)
{
	hg_context *ctx = test_cpu_context(1);
	for (int form = 0; form < 8; form++) {
		const hg_dtype dtype = form & 1 ? HG_F16 : HG_F32;
		const int trans = form >> 1 & 1, infinite = form >> 2;
		struct hg__mat a = mostly_zero(dtype, 1500, 300), b = normal(dtype, trans ? 1500 : 300, 64);
		const int64_t rows = trans ? 300 : 1500;
		struct hg__mat whole = empty(HG_F32, rows, 64), halves = empty(HG_F32, rows, 64);
		if (infinite)
			set(&b, 170, 40, INFINITY);
		CHECK_OK(ctx->backend->kernels->gemm.run(
		    ctx, &(struct hg__gemm_args){.a = a, .b = b, .c = whole, .trans_a = trans}));
		for (int half = 0; half < 2; half++)
			CHECK_OK(ctx->backend->kernels->gemm.run(
			    ctx, &(struct hg__gemm_args){.a = a,
			                                 .b = columns_of(&b, 32 * half, 32),
			                                 .c = columns_of(&halves, 32 * half, 32),
			                                 .trans_a = trans}));
		for (int64_t r = 0; r < rows; r++) {
			for (int64_t c = 0; c < 64; c++) {
				const double x = get(&whole, r, c), y = get(&halves, r, c);
				CHECK(x == y || (isnan(x) && isnan(y)));
			}
			CHECK(!infinite || !isfinite(get(&whole, r, 40)));
		}
		pool_clear();
	}
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(same_bits_everywhere),
	    TEST(threads_do_not_change_gemm),
	    TEST(zeros_left_out_change_no_gemm),
	};
	return RUN_TESTS(argc, argv, cases);
}
