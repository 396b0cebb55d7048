/* A division by zero, a log or a root of what has none. */
#include <math.h>

#include "faults/fault.h"
#include "harness.h"

enum { ROWS = 8, COLS = 4, X = 0, TARGETS = 1 };

static hg_var param(struct world *w, hg_tape *tape, const char *name)
{
	return hg_tape_param(tape, hg_params_find(w->params, name));
}

static hg_var x_of(struct world *w, hg_tape *tape)
{
	return hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE);
}

static hg_var loss_of(struct world *w, hg_tape *tape, hg_var y)
{
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

/* op(X W), W = 1; X and the targets are `x` and 0 everywhere. */
static void begin(struct world *w, float s, float x, hg_var (*record)(void *user, hg_tape *tape))
{
	world_policy(w, hg_policy_fp16(), s);
	world_spoil(world_tensor(w, HG_F16, ROWS, COLS, NULL), -1, -1, x);
	world_tensor(w, HG_F16, ROWS, COLS, NULL);
	world_param(w, "w", COLS, COLS, 0, 0.0f);
	for (int c = 0; c < COLS; c++)
		world_set(w, "w", c, c, 1.0f);
	w->record = record;
}

/* ---- norms: x - mean = 0 exactly, so that forward 0 / sqrt(eps) = 0; backward (dY - mean(dY) -
 * ...) / sqrt(eps) is 10^15 ---- */

/* element (r, c) is +-1 in turn, along rows and columns */
static void chequered(struct world *w)
{
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLS; c++)
			world_spoil(w->tensor[X], r, c, (r + c) % 2 ? -1.0f : 1.0f);
}

static hg_var record_batch_norm(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "norm");
	y = hg_batch_norm(tape, y, param(w, tape, "gamma"), param(w, tape, "beta"),
	                  hg_params_find(w->params, "mean"), hg_params_find(w->params, "var"), 0.5f,
	                  w->sick ? 1e-30f : 1e-5f);
	return loss_of(w, tape, y);
}

/* Column 2 is 1 everywhere; one target of it is off, so that the gradient of every row differs from
 * the mean: all of column 2 overflows. */
void plant_zero_variance(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 1.0f, record_batch_norm);
	chequered(w);
	world_spoil(w->tensor[X], -1, 2, 1.0f);
	world_spoil(w->tensor[TARGETS], 3, 2, -1.0f);
	world_param(w, "gamma", 1, COLS, HG_PARAM_F32, 1.0f);
	world_param(w, "beta", 1, COLS, HG_PARAM_F32, 0.0f);
	world_param(w, "mean", 1, COLS, HG_PARAM_F32 | HG_PARAM_BUFFER, 0.0f);
	world_param(w, "var", 1, COLS, HG_PARAM_F32 | HG_PARAM_BUFFER, 1.0f);
	w->answer.col = only(2);
}

static hg_var record_layer_norm(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "norm");
	y = hg_layer_norm(tape, y, param(w, tape, "gamma"), param(w, tape, "beta"),
	                  w->sick ? 1e-30f : 1e-5f);
	return loss_of(w, tape, y);
}

void plant_zero_variance_row(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 1.0f, record_layer_norm);
	chequered(w);
	world_spoil(w->tensor[X], 5, -1, 1.0f);
	world_spoil(w->tensor[TARGETS], 5, 2, -1.0f);
	world_param(w, "gamma", 1, COLS, HG_PARAM_F32, 1.0f);
	world_param(w, "beta", 1, COLS, HG_PARAM_F32, 0.0f);
	w->answer.row = only(5);
}

/* ---- element (2, 1) ---- */

enum { ROW = 2, COL = 1 };

static void at(struct world *w, float x)
{
	if (w->sick)
		world_spoil(w->tensor[X], ROW, COL, x);
	w->answer.row = only(ROW);
	w->answer.col = only(COL);
}

static hg_var record_log(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "logs");
	return loss_of(w, tape, hg_log(tape, y));
}

void plant_zero_log(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 2.0f, record_log);
	at(w, 0.0f);
}

void plant_negative_log(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 2.0f, record_log);
	at(w, -1.0f);
}

static hg_var record_sqrt(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "roots");
	return loss_of(w, tape, hg_sqrt(tape, y));
}

void plant_negative_root(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 2.0f, record_sqrt);
	at(w, -4.0f);
}

/* The root of 0 is 0, and its derivative 1 / (2 sqrt(0)). The target is 1, so that the gradient
 * there is not 0. */
void plant_root_of_zero(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 2.0f, record_sqrt);
	world_spoil(w->tensor[TARGETS], -1, -1, 1.0f);
	at(w, 0.0f);
}

/* ---- divisions: element (i, c) by what is told of row i ---- */

enum { DEGREES = 2 };

static hg_var record_degrees(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var y = x_of(w, tape), d = hg_tape_input(tape, w->tensor[DEGREES], "degrees", -1.0);
	hg_tape_scope(tape, "mean");
	return loss_of(w, tape,
	               hg_div(tape, hg_spmm(tape, w->graph[0], y, HG_NONE, HG_NORM_NONE, 1.0f), d));
}

/* A mean as sum over degree; the loner has lost its self loop: 0 / 0. In good health its degree is
 * told as 1. */
void plant_zero_degree(struct world *w, const struct fault *f)
{
	int32_t dst[ROWS], src[ROWS];
	(void)f;
	begin(w, 16.0f, 2.0f, record_degrees);
	for (int i = 0; i < ROWS - 1; i++) {
		dst[i] = i;
		src[i] = (i + 1) % ROWS;
	}
	world_graph(w, ROWS, ROWS, ROWS - 1, dst, src, NULL);
	world_spoil(world_tensor(w, HG_F16, ROWS, 1, NULL), -1, -1, 1.0f);
	if (w->sick)
		world_spoil(w->tensor[DEGREES], ROWS - 1, 0, 0.0f);
	w->answer.row = only(ROWS - 1);
}

static hg_var record_share(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "share");
	return loss_of(w, tape, hg_div(tape, y, hg_row_sum(tape, y)));
}

/* Each row over its sum: row 5 is (1, -1, 1, -1), whose sum is 0 and whose elements are not. */
void plant_zero_sum(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 2.0f, record_share);
	for (int c = 0; c < COLS && w->sick; c++)
		world_spoil(w->tensor[X], 5, c, c % 2 ? -1.0f : 1.0f);
	w->answer.row = only(5);
}

/* ---- log(softmax(X)) where log_softmax(X) is meant: exp(-20) = 2e-9 is zero as a half ---- */

static hg_var record_log_of_softmax(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "scores");
	y = hg_log(tape, hg_softmax(tape, y));
	return loss_of(w, tape, y);
}

void plant_log_of_softmax(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w, 16.0f, 0.0f, record_log_of_softmax);
	world_spoil(w->tensor[X], ROW, 0, w->sick ? 20.0f : 2.0f);
	w->answer.row = only(ROW);
	w->answer.col = (struct among){1, COLS - 1};
}
