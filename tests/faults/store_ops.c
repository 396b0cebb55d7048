/* The result of one op is beyond f16, on a tape of our own:
 *
 *     loss = mse(op(X) W, 0),   X [6, 4] a variable, W = 0.001
 *
 * Element (2, 1) of X is large, so that (2, 1) of the result is, unless it is said otherwise. */
#include <math.h>

#include "faults/fault.h"
#include "harness.h"

enum { ROWS = 6, COLS = 4, ROW = 2, COL = 1, X = 0, TARGETS = 1, OTHER = 2 };

static hg_var param(struct world *w, hg_tape *tape, const char *name)
{
	return hg_tape_param(tape, hg_params_find(w->params, name));
}

static hg_var x_of(struct world *w, hg_tape *tape)
{
	return hg_tape_variable(tape, w->tensor[X], "x");
}

static hg_var loss_of(struct world *w, hg_tape *tape, hg_var y)
{
	hg_tape_scope(tape, "after");
	const hg_var z = hg_linear(tape, y, param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, z, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

/* x everywhere but in (2, 1), where it is `large` */
static void begin(struct world *w, hg_dtype dtype, float x, float large,
                  hg_var (*record)(void *user, hg_tape *tape))
{
	world_policy(w, hg_policy_fp16(), 16.0f);
	world_spoil(world_tensor(w, dtype, ROWS, COLS, NULL), -1, -1, x);
	world_spoil(w->tensor[X], ROW, COL, large);
	world_tensor(w, HG_F16, ROWS, COLS, NULL);
	world_param(w, "w", COLS, COLS, 0, 0.001f);
	w->record = record;
	w->answer.row = only(ROW);
	w->answer.col = only(COL);
}

static hg_var record_scale(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "scaled");
	return loss_of(w, tape, hg_scale(tape, x, w->sick ? 10000.0f : 2.0f));
}

void plant_big_scale(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, HG_F16, 1.0f, 10.0f, record_scale);
	w->answer.wide = 100000.0;
}

static hg_var record_add(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape), y = hg_tape_variable(tape, w->tensor[OTHER], "y");
	hg_tape_scope(tape, "added");
	return loss_of(w, tape, hg_add(tape, x, y));
}

void plant_big_add(struct world *w, const struct fault *f)
{
	const float large = w->sick ? 40000.0f : 4.0f;
	(void)f;
	begin(w, HG_F16, 1.0f, large, record_add);
	world_spoil(world_tensor(w, HG_F16, ROWS, COLS, NULL), ROW, COL, large);
	w->answer.wide = 80000.0;
}

static hg_var record_cast(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "narrowed");
	return loss_of(w, tape, hg_cast(tape, x, HG_F16));
}

void plant_big_cast(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, HG_F32, 1.0f, w->sick ? 1e5f : 10.0f, record_cast);
	w->answer.wide = 1e5;
}

static hg_var record_elu(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "bent");
	return loss_of(w, tape, hg_elu(tape, x, w->sick ? 1e5f : 1.0f));
}

/* alpha (exp(-20) - 1) = -alpha to nine digits */
void plant_big_elu(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, HG_F16, 0.5f, -20.0f, record_elu);
	w->answer.wide = -1e5;
}

static hg_var record_log_softmax(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "scores");
	return loss_of(w, tape, hg_log_softmax(tape, x));
}

/* Row 2 is (60000, -60000, 0, 0): the second is 120000 below the largest, the others 60000. */
void plant_big_log_softmax(struct world *w, const struct fault *f)
{
	const float large = w->sick ? 60000.0f : 6.0f;
	(void)f;
	begin(w, HG_F16, 0.0f, -large, record_log_softmax);
	world_spoil(w->tensor[X], ROW, 0, large);
	w->answer.wide = -120000.0;
}

static hg_var record_sddmm(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var a = hg_linear(tape, x_of(w, tape), param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, "edges");
	const hg_var e = hg_sddmm_dot(tape, w->graph[0], a, a, 1, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, e, hg_tape_input(tape, w->tensor[OTHER], "targets", -1.0), HG_NONE);
}

/* A = X: 1 everywhere, but 150 in the loner's row, the last: 4 * 22500 on its self loop, the last
 * edge. */
void plant_big_sddmm(struct world *w, const struct fault *f)
{
	const float large = w->sick ? 150.0f : 1.5f;
	(void)f;
	begin(w, HG_F16, 1.0f, 1.0f, record_sddmm);
	const int64_t m = hg_graph_edges(world_ring(w, ROWS));
	world_tensor(w, HG_F16, m, 1, NULL);
	world_set(w, "w", -1, -1, 0.0f);
	for (int c = 0; c < COLS; c++)
		world_set(w, "w", c, c, 1.0f);
	world_spoil(w->tensor[X], ROWS - 1, -1, large);
	w->answer.row = only(m - 1);
	w->answer.col = only(0);
	w->answer.edge_row = w->answer.edge_col = ROWS - 1;
	w->answer.wide = 4.0 * (double)large * (double)large;
}

static hg_var record_layer_norm(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "norm");
	return loss_of(w, tape,
	               hg_layer_norm(tape, x, param(w, tape, "gamma"), param(w, tape, "beta"), 1e-5f));
}

/* Each row has one 1 among zeros: row 2 in column 1, the others in column 2. That one lies sqrt(3)
 * deviations from the mean, the zeros 1/sqrt(3); column 1 has the gain. */
void plant_big_layer_norm(struct world *w, const struct fault *f)
{
	const float gain = w->sick ? 60000.0f : 2.0f;
	(void)f;
	begin(w, HG_F16, 0.0f, 1.0f, record_layer_norm);
	for (int r = 0; r < ROWS; r++)
		world_spoil(w->tensor[X], r, 2, r == ROW ? 0.0f : 1.0f);
	world_param(w, "gamma", 1, COLS, HG_PARAM_F32, 1.0f);
	world_param(w, "beta", 1, COLS, HG_PARAM_F32, 0.0f);
	world_set(w, "gamma", 0, COL, gain);
	w->answer.wide = (double)gain * sqrt(3.0);
}

static hg_var record_exp(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "powers");
	return loss_of(w, tape, hg_exp(tape, x));
}

/* A softmax by hand without the maximum taken off: exp(12) = 162755 */
void plant_big_exp(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, HG_F16, 0.5f, w->sick ? 12.0f : 2.0f, record_exp);
	w->answer.wide = exp(12.0);
}

static hg_var record_div(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape), y = hg_tape_variable(tape, w->tensor[OTHER], "y");
	hg_tape_scope(tape, "ratio");
	return loss_of(w, tape, hg_div(tape, x, y));
}

/* A small divisor is no zero: 100 / 2^-10 = 102400 */
void plant_big_ratio(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, HG_F16, 1.0f, 100.0f, record_div);
	world_spoil(world_tensor(w, HG_F16, ROWS, COLS, NULL), -1, -1, 1.0f);
	world_spoil(w->tensor[OTHER], ROW, COL, w->sick ? 0x1p-10f : 2.0f);
	w->answer.wide = 102400.0;
}

static hg_var record_row_sum(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "total");
	return hg_mse(tape,
	              hg_div(tape, hg_row_sum(tape, hg_linear(tape, x, param(w, tape, "w"), HG_NONE)),
	                     hg_tape_input(tape, w->tensor[OTHER], "y", -1.0)),
	              hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

/* Row 2 of X W is 30000 in all four columns, the others 1: their sum is 120000; divided by 8
 * afterwards it would fit. */
void plant_big_row_sum(struct world *w, const struct fault *f)
{
	const float large = w->sick ? 30000.0f : 3.0f;
	(void)f;
	world_policy(w, hg_policy_fp16(), 1.0f);
	world_spoil(world_tensor(w, HG_F16, ROWS, COLS, NULL), -1, -1, 1.0f);
	world_spoil(w->tensor[X], ROW, -1, large);
	world_tensor(w, HG_F16, ROWS, 1, NULL);
	world_spoil(world_tensor(w, HG_F16, ROWS, 1, NULL), -1, -1, 8.0f);
	world_param(w, "w", COLS, COLS, 0, 0.25f);
	w->record = record_row_sum;
	w->answer.row = only(ROW);
	w->answer.col = only(0);
	w->answer.wide = 4.0 * (double)large;
}

static hg_var record_wide(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = x_of(w, tape);
	hg_tape_scope(tape, "wide");
	const hg_var y = hg_linear(tape, x, param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

/* [300, 300] [300, 200], 0.01 everywhere but x = 60000 at (1, 257), whose weight in column 133 is
 * 2. */
void plant_big_wide(struct world *w, const struct fault *f)
{
	enum { TALL = 300, DEEP = 300, WIDE = 200 };
	const float large = w->sick ? 60000.0f : 6.0f;
	(void)f;
	world_policy(w, hg_policy_fp16(), 64.0f);
	world_spoil(world_tensor(w, HG_F16, TALL, DEEP, NULL), -1, -1, 0.01f);
	world_tensor(w, HG_F16, TALL, WIDE, NULL);
	world_param(w, "w", DEEP, WIDE, 0, 0.01f);
	world_spoil(w->tensor[X], 1, 257, large);
	world_set(w, "w", 257, 133, 2.0f);
	w->record = record_wide;
	w->answer.row = only(1);
	w->answer.col = only(133);
	w->answer.wide = 2.0 * (double)large;
	w->answer.terms = DEEP;
	w->answer.top = 2.0 * (double)large;
}

static hg_var record_loss(void *user, hg_tape *tape)
{
	struct world *w = user;
	return hg_mse(tape, hg_linear(tape, x_of(w, tape), param(w, tape, "w"), HG_NONE),
	              hg_tape_input(tape, w->tensor[OTHER], "targets", -1.0), HG_NONE);
}

/* A target of 10^30: the square of the error is beyond f32, and so is the loss, which is all that
 * the op makes. */
void plant_big_loss(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, HG_F16, 1.0f, 1.0f, record_loss);
	world_spoil(world_tensor(w, HG_F32, ROWS, COLS, NULL), ROW, COL, w->sick ? 1e30f : 10.0f);
	w->answer.row = only(0);
	w->answer.col = only(0);
}
