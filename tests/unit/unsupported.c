#include <string.h>

#include "core/context.h"
#include "core/csr.h"
#include "graphs.h"
#include "harness.h"
#include "kernels/kernels.h"

/* A backend may say no: a combination that it has no kernel for is HG_ERR_UNSUPPORTED, and the
 * message names the kernel and what is supported. No number of a table of functions may lead to a
 * call of NULL. */

enum { ROWS = 6, COLS = 3 };

struct operands {
	hg_context *ctx;
	const struct hg__kernels *k;
	hg_tensor *made[16];
	int count;
	hg_graph *graph;
	struct hg__csr csr, csr_t;
	/* x, y, z: f32 [ROWS, COLS]; row: f32 [1, COLS]; column: f32 [ROWS, 1]; one, two: f32 [1, 1]
	 * and [1, 2]; label: i32 [ROWS, 1]; arg: i32 [ROWS, COLS]; edges: f32 [m, 1]; bad: i64
	 * [ROWS, COLS], in the place of floats */
	struct hg__mat x, y, z, row, row2, column, one, two, label, arg, edges, bad, bad_edges, half;
};

static struct hg__mat mat_of(struct operands *o, hg_dtype dtype, int64_t rows, int64_t cols)
{
	hg_tensor *t = NULL;
	CHECK(o->count < 16);
	CHECK_OK(hg_tensor_create(o->ctx, dtype, rows, cols, &t));
	o->made[o->count++] = t;
	return t->mat;
}

static void operands_open(struct operands *o)
{
	memset(o, 0, sizeof *o);
	o->ctx = test_context();
	o->k = o->ctx->backend->kernels;
	struct coo edges = coo_ring(ROWS);
	o->graph = coo_to_graph(o->ctx, &edges);
	coo_free(&edges);
	CHECK_OK(hg__graph_csr(o->graph, &o->csr));
	CHECK_OK(hg__graph_csr_t(o->graph, 1, &o->csr_t));
	o->x = mat_of(o, HG_F32, ROWS, COLS);
	o->y = mat_of(o, HG_F32, ROWS, COLS);
	o->z = mat_of(o, HG_F32, ROWS, COLS);
	o->row = mat_of(o, HG_F32, 1, COLS);
	o->row2 = mat_of(o, HG_F32, 1, COLS);
	o->column = mat_of(o, HG_F32, ROWS, 1);
	o->one = mat_of(o, HG_F32, 1, 1);
	o->two = mat_of(o, HG_F32, 1, 2);
	o->label = mat_of(o, HG_I32, ROWS, 1);
	o->arg = mat_of(o, HG_I32, ROWS, COLS);
	o->edges = mat_of(o, HG_F32, o->csr.m, 1);
	o->bad = mat_of(o, HG_I64, ROWS, COLS);
	o->bad_edges = mat_of(o, HG_I64, o->csr.m, 1);
	o->half = mat_of(o, HG_F16, ROWS, COLS);
}

static void operands_close(struct operands *o)
{
	for (int i = 0; i < o->count; i++)
		hg_tensor_free(o->made[i]);
	hg_graph_free(o->graph);
	hg_context_free(o->ctx);
}

#define REFUSED(o, kernel, args_struct, ...)                                   \
	do {                                                                       \
		const struct hg__##args_struct args = {__VA_ARGS__};                   \
		CHECK_STATUS((o)->k->kernel.run((o)->ctx, &args), HG_ERR_UNSUPPORTED); \
		CHECK_CONTAINS(hg_context_error((o)->ctx), #kernel ": ");              \
		CHECK_CONTAINS(hg_context_error((o)->ctx), "supported");               \
	} while (0)
#define ACCEPTED(o, kernel, args_struct, ...)                \
	do {                                                     \
		const struct hg__##args_struct args = {__VA_ARGS__}; \
		CHECK_OK((o)->k->kernel.run((o)->ctx, &args));       \
	} while (0)

/* ---- types ---- */

static void matrices_of_integers_are_refused(void)
{
	struct operands o;
	operands_open(&o);
	const struct hg__mat x = o.x, y = o.y, bad = o.bad;
	REFUSED(&o, gemm, gemm_args, .a = bad, .b = o.x, .c = o.y, .trans_b = 1);
	REFUSED(&o, act, act_args, .x = bad, .y = y);
	REFUSED(&o, act_back, act_back_args, .y = x, .dy = bad, .dx = y);
	REFUSED(&o, dropout, dropout_args, .x = bad, .y = y);
	REFUSED(&o, epilogue, epilogue_args, .x = bad, .y = y);
	REFUSED(&o, epilogue_back, epilogue_back_args, .dy = bad, .dx = y);
	REFUSED(&o, pair, pair_args, .a = x, .b = bad, .y = y);
	REFUSED(&o, axpby, axpby_args, .x = bad, .y = y, .alpha = 1.0f);
	REFUSED(&o, bias_add, bias_add_args, .x = bad, .b = o.row, .y = y);
	REFUSED(&o, div, div_args, .a = x, .b = bad, .y = y);
	REFUSED(&o, div_back, div_back_args, .a = x, .b = x, .dy = bad, .db = y);
	REFUSED(&o, dot_all, dot_all_args, .a = x, .b = bad, .y = o.one);
	REFUSED(&o, colsum, colsum_args, .x = bad, .y = o.row);
	REFUSED(&o, copy_cols, copy_cols_args, .src = bad, .dst = y, .cols = COLS);
	REFUSED(&o, head_mean, head_mean_args, .x = bad, .y = y, .heads = 1);
	REFUSED(&o, head_mean_back, head_mean_args, .x = bad, .y = y, .heads = 1);
	REFUSED(&o, head_dot, head_dot_args, .x = bad, .a = o.row, .s = o.column, .heads = 1);
	REFUSED(&o, batch_norm, batch_norm_args, .x = bad, .gamma = o.row, .beta = o.row, .y = y,
	        .mean = o.row, .rstd = o.row2, .train = 1);
	REFUSED(&o, layer_norm, layer_norm_args, .x = bad, .gamma = o.row, .beta = o.row, .y = y,
	        .mean = o.column, .rstd = o.column);
	REFUSED(&o, row_reduce, row_reduce_args, .x = bad, .y = o.column);
	REFUSED(&o, softmax, softmax_args, .x = bad, .y = y);
	REFUSED(&o, softmax_back, softmax_back_args, .y = x, .dy = bad, .dx = y);
	REFUSED(&o, log_softmax, log_softmax_args, .x = bad, .y = y);
	REFUSED(&o, log_softmax_back, log_softmax_back_args, .y = x, .dy = bad, .dx = y);
	REFUSED(&o, pointwise_loss, pointwise_loss_args, .x = bad, .target = x, .loss = o.one,
	        .count = o.one);
	REFUSED(&o, amax, amax_args, .x = bad, .out = o.two);
	REFUSED(&o, guard, guard_args, .x = bad);
	operands_close(&o);
}

static void edge_kernels_refuse_integers(void)
{
	struct operands o;
	operands_open(&o);
	const struct hg__csr csr = o.csr;
	REFUSED(&o, spmm, spmm_args, .csr = csr, .x = o.bad, .y = o.y, .heads = 1, .alpha = 1.0f);
	REFUSED(&o, spmm, spmm_args, .csr = csr, .x = o.x, .w = o.bad_edges, .y = o.y, .heads = 1);
	REFUSED(&o, spmm_max, spmm_max_args, .csr = csr, .x = o.bad, .y = o.y, .arg = o.arg);
	REFUSED(&o, spmm_max_back, spmm_max_back_args, .csr = csr, .csr_t = o.csr_t, .dy = o.bad,
	        .arg = o.arg, .dx = o.y);
	REFUSED(&o, sddmm_dot, sddmm_dot_args, .csr = csr, .a = o.x, .b = o.x, .e = o.bad_edges,
	        .heads = 1, .scale = 1.0f);
	REFUSED(&o, sddmm_add, sddmm_add_args, .csr = csr, .a = o.column, .b = o.column,
	        .e = o.bad_edges);
	REFUSED(&o, gather, gather_args, .csr = csr, .x = o.column, .z = o.bad_edges, .alpha = 1.0f);
	REFUSED(&o, scatter_sum, scatter_sum_args, .x = o.bad, .y = o.y, .heads = 1);
	REFUSED(&o, scatter_sum, scatter_sum_args, .x = o.x, .y = o.half, .heads = 1);
	REFUSED(&o, scatter_dot, scatter_dot_args, .a = o.x, .b = o.bad, .e = o.edges, .heads = 1);
	REFUSED(&o, edge_softmax, edge_softmax_args, .csr = csr, .e = o.bad_edges, .p = o.edges);
	REFUSED(&o, edge_softmax_back, edge_softmax_back_args, .csr = csr, .p = o.edges,
	        .dp = o.bad_edges, .de = o.edges);
	operands_close(&o);
}

/* Labels, and the places of maxima, are i32. */
static void integers_have_one_type(void)
{
	struct operands o;
	operands_open(&o);
	REFUSED(&o, softmax_xent, softmax_xent_args, .x = o.x, .label = o.column, .loss = o.one,
	        .count = o.one);
	CHECK_CONTAINS(hg_context_error(o.ctx), "labels of f32; supported is i32");
	REFUSED(&o, softmax_xent_back, softmax_xent_back_args, .x = o.x, .label = o.column,
	        .count = o.one, .dloss = o.one, .dx = o.y);
	struct hg__mat label = o.arg;
	label.cols = label.ld = 1;
	REFUSED(&o, softmax_xent, softmax_xent_args, .x = o.x, .label = label, .loss = o.one,
	        .count = o.one, .weight = o.arg);
	CHECK_CONTAINS(hg_context_error(o.ctx), "weights of i32; supported is f32");
	REFUSED(&o, softmax_xent_back, softmax_xent_back_args, .x = o.x, .label = label, .count = o.one,
	        .dloss = o.one, .dx = o.y, .weight = o.arg);
	REFUSED(&o, pointwise_loss, pointwise_loss_args, .kind = HG__BCE_WEIGHTED, .x = o.x,
	        .target = o.z, .loss = o.one, .count = o.one, .weight = o.arg);
	REFUSED(&o, pointwise_loss_back, pointwise_loss_back_args, .kind = HG__BCE_WEIGHTED, .x = o.x,
	        .target = o.z, .count = o.one, .dloss = o.one, .dx = o.y, .weight = o.arg);
	REFUSED(&o, scores, scores_args, .x = o.x, .label = o.column);
	REFUSED(&o, spmm_max, spmm_max_args, .csr = o.csr, .x = o.x, .y = o.y, .arg = o.z);
	REFUSED(&o, spmm_max_back, spmm_max_back_args, .csr = o.csr, .csr_t = o.csr_t, .dy = o.x,
	        .arg = o.z, .dx = o.y);
	REFUSED(&o, gather, gather_args, .csr = o.csr, .x = o.column, .z = o.edges, .arg = o.column);
	operands_close(&o);
}

/* ---- accumulation ---- */

static void aggregations_keep_their_contract(void)
{
	struct operands o;
	operands_open(&o);
	for (int x = 0; x < 2; x++)
		for (int y = 0; y < 2; y++)
			for (int sums = 0; sums < HG_ACC_COUNT; sums++)
				for (int ends = 0; ends < 2; ends++) {
					struct hg__spmm_args a = {.csr = o.csr,
					                          .x = x ? o.half : o.x,
					                          .y = y ? o.half : o.y,
					                          .heads = 1,
					                          .alpha = 1.0f,
					                          .accumulate = (hg_accumulate)sums};
					a.y.data = y ? o.z.data : o.y.data; /* large enough for both */
					a.epilogue.act_drop.act = ends ? 1 + HG__ACT_relu : 0;
					const int f32 = sums == HG_ACC_F32, fits = ends  ? f32 && x == y
					                                           : f32 ? x || !y
					                                                 : x && y;
					CHECK_STATUS(o.k->spmm.run(o.ctx, &a), fits ? HG_OK : HG_ERR_UNSUPPORTED);
					if (!fits)
						CHECK_CONTAINS(hg_context_error(o.ctx), "supported are sums in f32 into");
				}
	REFUSED(&o, spmm, spmm_args, .csr = o.csr, .x = o.x, .y = o.y, .heads = 1,
	        .accumulate = HG_ACC_COUNT);
	REFUSED(&o, spmm, spmm_args, .csr = o.csr, .x = o.x, .y = o.y, .heads = 1,
	        .epilogue = {.act_drop = {.act = 1 + HG__ACT_SUM_EPILOGUES}});
	operands_close(&o);
}

/* ---- layout ---- */

/* Matrices of one shape whose rows lie at different distances: a backend computes the same as for
 * one distance, or refuses. */
static void other_layouts_work_or_are_refused(void)
{
	struct operands o;
	operands_open(&o);
	struct hg__mat apart = o.y;
	apart.rows = o.x.rows = 3; /* of ROWS, twice as far apart */
	apart.ld *= 2;
	const struct hg__softmax_args args = {o.x, apart};
	const hg_status status = o.k->softmax.run(o.ctx, &args);
	CHECK(status == HG_OK || status == HG_ERR_UNSUPPORTED);
	if (status < 0)
		CHECK_CONTAINS(hg_context_error(o.ctx), "supported is one length");
	operands_close(&o);
}

/* ---- numbers of functions ---- */

static void every_number_has_a_function(void)
{
	struct operands o;
	operands_open(&o);
	for (int i = 0; i < HG__ACT_COUNT; i++) {
		ACCEPTED(&o, act, act_args, .act = (hg__act)i, .p = 0.5f, .x = o.x, .y = o.y);
		ACCEPTED(&o, act_back, act_back_args, .act = (hg__act)i, .p = 0.5f, .y = o.x, .dy = o.z,
		         .dx = o.y);
	}
	for (int i = 0; i < 1 + HG__ACT_EPILOGUES; i++) {
		const struct hg__act_drop end = {.act = i, .act_p = 0.5f};
		ACCEPTED(&o, epilogue, epilogue_args, .x = o.x, .y = o.y, .act_drop = end);
		ACCEPTED(&o, epilogue_back, epilogue_back_args, .y = o.x, .dy = o.z, .dx = o.y,
		         .act_drop = end);
	}
	for (int i = 0; i < 1 + HG__ACT_SUM_EPILOGUES; i++)
		ACCEPTED(&o, spmm, spmm_args, .csr = o.csr, .x = o.x, .y = o.y, .heads = 1, .alpha = 1.0f,
		         .epilogue = {.act_drop = {.act = i, .act_p = 0.5f}});
	for (int i = 0; i < HG__PAIR_COUNT; i++)
		ACCEPTED(&o, pair, pair_args, .pair = (hg__pair)i, .a = o.x, .b = o.z, .y = o.y);
	for (int i = 0; i < HG__ROW_COUNT; i++) {
		ACCEPTED(&o, row_reduce, row_reduce_args, .reduce = (hg__row_reduce)i, .x = o.x,
		         .y = o.column);
		ACCEPTED(&o, row_reduce_back, row_reduce_back_args, .reduce = (hg__row_reduce)i, .x = o.x,
		         .dy = o.column, .dx = o.y);
	}
	for (int i = 0; i < HG__POINTWISE_COUNT; i++) {
		ACCEPTED(&o, pointwise_loss, pointwise_loss_args, .kind = (hg__pointwise)i, .x = o.x,
		         .target = o.z, .loss = o.one, .count = o.one, .weight = o.row);
		ACCEPTED(&o, pointwise_loss_back, pointwise_loss_back_args, .kind = (hg__pointwise)i,
		         .x = o.x, .target = o.z, .count = o.one, .dloss = o.one, .dx = o.y,
		         .weight = o.row);
	}
	operands_close(&o);
}

/* The readouts need a batch: here all nodes are one graph. */
static void every_readout_has_a_function(void)
{
	struct operands o;
	operands_open(&o);
	const int64_t *ptr = NULL;
	const int32_t *id = NULL;
	struct hg__mat arg = o.arg;
	arg.rows = 1;
	CHECK_OK(hg__graph_batch(o.graph, &ptr, &id));
	for (int i = 0; i < HG__READOUTS; i++) {
		ACCEPTED(&o, readout, readout_args, .ptr = ptr, .x = o.x, .y = o.row, .arg = arg,
		         .reduce = (hg_reduce)i);
		ACCEPTED(&o, readout_back, readout_back_args, .ptr = ptr, .id = id, .dy = o.row, .arg = arg,
		         .dx = o.x, .reduce = (hg_reduce)i);
	}
	for (int i = -1; i <= HG__READOUTS; i += HG__READOUTS + 1) {
		REFUSED(&o, readout, readout_args, .ptr = ptr, .x = o.x, .y = o.row, .arg = arg,
		        .reduce = (hg_reduce)i);
		REFUSED(&o, readout_back, readout_back_args, .ptr = ptr, .id = id, .dy = o.row, .arg = arg,
		        .dx = o.x, .reduce = (hg_reduce)i);
	}
	operands_close(&o);
}

static void no_other_number_is_called(void)
{
	struct operands o;
	operands_open(&o);
	for (int below = 0; below < 2; below++) {
		const int act = below ? -1 : HG__ACT_COUNT, end = below ? -1 : 1 + HG__ACT_EPILOGUES,
		          sum = below ? -1 : 1 + HG__ACT_SUM_EPILOGUES, pair = below ? -1 : HG__PAIR_COUNT,
		          row = below ? -1 : HG__ROW_COUNT, loss = below ? -1 : HG__POINTWISE_COUNT,
		          optim = below ? -1 : HG__OPTIMISERS;
		REFUSED(&o, act, act_args, .act = (hg__act)act, .x = o.x, .y = o.y);
		REFUSED(&o, act_back, act_back_args, .act = (hg__act)act, .y = o.x, .dy = o.z, .dx = o.y);
		REFUSED(&o, epilogue, epilogue_args, .x = o.x, .y = o.y, .act_drop = {.act = end});
		REFUSED(&o, epilogue_back, epilogue_back_args, .y = o.x, .dy = o.z, .dx = o.y,
		        .act_drop = {.act = end});
		REFUSED(&o, spmm, spmm_args, .csr = o.csr, .x = o.x, .y = o.y, .heads = 1,
		        .epilogue = {.act_drop = {.act = sum}});
		REFUSED(&o, scatter_sum, scatter_sum_args, .x = o.x, .y = o.y, .heads = 1,
		        .epilogue = {.act_drop = {.act = sum}});
		REFUSED(&o, pair, pair_args, .pair = (hg__pair)pair, .a = o.x, .b = o.z, .y = o.y);
		REFUSED(&o, row_reduce, row_reduce_args, .reduce = (hg__row_reduce)row, .x = o.x,
		        .y = o.column);
		REFUSED(&o, row_reduce_back, row_reduce_back_args, .reduce = (hg__row_reduce)row, .x = o.x,
		        .dy = o.column, .dx = o.y);
		REFUSED(&o, pointwise_loss, pointwise_loss_args, .kind = (hg__pointwise)loss, .x = o.x,
		        .target = o.z, .loss = o.one, .count = o.one);
		REFUSED(&o, pointwise_loss_back, pointwise_loss_back_args, .kind = (hg__pointwise)loss,
		        .x = o.x, .target = o.z, .count = o.one, .dloss = o.one, .dx = o.y);
		REFUSED(&o, optim_update, optim_args, .config = {.kind = (hg_optim_kind)optim});
	}
	operands_close(&o);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(matrices_of_integers_are_refused),
	                                         TEST(edge_kernels_refuse_integers),
	                                         TEST(integers_have_one_type),
	                                         TEST(aggregations_keep_their_contract),
	                                         TEST(other_layouts_work_or_are_refused),
	                                         TEST(every_number_has_a_function),
	                                         TEST(every_readout_has_a_function),
	                                         TEST(no_other_number_is_called)};
	return RUN_TESTS(argc, argv, cases);
}
