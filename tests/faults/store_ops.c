/* The result of one op is too large for f16. Most tapes compute
 *
 *     loss = mse(op(X) W, 0),   X [6, 4] a variable, W = 0.001
 *
 * and most planters make element (2, 1) of X large, and with it element (2, 1) of the result. */
#include <math.h>

#include "faults/fault.h"
#include "faults/small_tape.h"

enum { ROWS = 6, COLS = 4, ROW = 2, COL = 1 };

/* mse(y W, T) */
static hg_var loss_of(struct setup *s, hg_tape *tape, hg_var y)
{
	hg_tape_scope(tape, "after");
	return tape_mse(s, tape, hg_linear(tape, y, tape_param(s, tape, "w"), HG_NONE));
}

/* X is x everywhere, except in (2, 1), where it is `large`. */
static void begin(struct setup *s, hg_dtype dtype, float x, float large,
                  hg_var (*record)(void *user, hg_tape *tape))
{
	setup_policy(s, hg_policy_fp16(), 16.0f);
	setup_write(setup_tensor(s, dtype, ROWS, COLS, NULL), -1, -1, x);
	setup_write(s->tensor[X], ROW, COL, large);
	setup_tensor(s, HG_F16, ROWS, COLS, NULL);
	setup_param(s, "w", COLS, COLS, 0, 0.001f);
	s->record = record;
	s->expected.row = only(ROW);
	s->expected.col = only(COL);
}

static hg_var record_scale(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "scaled");
	return loss_of(s, tape, hg_scale(tape, x, s->planted ? 10000.0f : 2.0f));
}

void plant_big_scale(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, HG_F16, 1.0f, 10.0f, record_scale);
	s->expected.wide = 100000.0;
}

static hg_var record_add(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape), y = hg_tape_variable(tape, s->tensor[OTHER], "y");
	hg_tape_scope(tape, "added");
	return loss_of(s, tape, hg_add(tape, x, y));
}

void plant_big_add(struct setup *s, const struct fault *f)
{
	const float large = s->planted ? 40000.0f : 4.0f;
	(void)f;
	begin(s, HG_F16, 1.0f, large, record_add);
	setup_write(setup_tensor(s, HG_F16, ROWS, COLS, NULL), ROW, COL, large);
	s->expected.wide = 80000.0;
}

static hg_var record_cast(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "narrowed");
	return loss_of(s, tape, hg_cast(tape, x, HG_F16));
}

void plant_big_cast(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, HG_F32, 1.0f, s->planted ? 1e5f : 10.0f, record_cast);
	s->expected.wide = 1e5;
}

static hg_var record_elu(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "bent");
	return loss_of(s, tape, hg_elu(tape, x, s->planted ? 1e5f : 1.0f));
}

/* alpha (exp(-20) - 1) is -alpha up to a relative 2e-9. */
void plant_big_elu(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, HG_F16, 0.5f, -20.0f, record_elu);
	s->expected.wide = -1e5;
}

static hg_var record_log_softmax(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "scores");
	return loss_of(s, tape, hg_log_softmax(tape, x));
}

/* Row 2 is (60000, -60000, 0, 0). Its second element is 120000 below the largest, and the others
 * are 60000 below it, which fits. */
void plant_big_log_softmax(struct setup *s, const struct fault *f)
{
	const float large = s->planted ? 60000.0f : 6.0f;
	(void)f;
	begin(s, HG_F16, 0.0f, -large, record_log_softmax);
	setup_write(s->tensor[X], ROW, 0, large);
	s->expected.wide = -120000.0;
}

static hg_var record_sddmm(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var a = tape_product(s, tape);
	hg_tape_scope(tape, "edges");
	const hg_var e = hg_sddmm_dot(tape, s->graph[0], a, a, 1, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, e, hg_tape_input(tape, s->tensor[OTHER], "targets", -1.0), HG_NONE);
}

/* W is the identity, and X is 1 everywhere except in the last row, the lone node's, where it is
 * 150. The product on its self loop, the last edge, is 4 * 22500. */
void plant_big_sddmm(struct setup *s, const struct fault *f)
{
	const float large = s->planted ? 150.0f : 1.5f;
	(void)f;
	begin(s, HG_F16, 1.0f, 1.0f, record_sddmm);
	const int64_t m = hg_graph_edges(setup_ring(s, ROWS));
	setup_tensor(s, HG_F16, m, 1, NULL);
	setup_set(s, "w", -1, -1, 0.0f);
	for (int c = 0; c < COLS; c++)
		setup_set(s, "w", c, c, 1.0f);
	setup_write(s->tensor[X], ROWS - 1, -1, large);
	s->expected.row = only(m - 1);
	s->expected.col = only(0);
	s->expected.edge_row = s->expected.edge_col = ROWS - 1;
	s->expected.wide = 4.0 * (double)large * (double)large;
}

static hg_var record_layer_norm(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return loss_of(s, tape, tape_layer_norm(s, tape, tape_x(s, tape), 1e-5f));
}

/* Each row has one 1 and three zeros: row 2 has its 1 in column 1, the others in column 2. The 1 is
 * sqrt(3) standard deviations from the mean, and the zeros are 1/sqrt(3). Only column 1 has the
 * large gain. */
void plant_big_layer_norm(struct setup *s, const struct fault *f)
{
	const float gain = s->planted ? 60000.0f : 2.0f;
	(void)f;
	begin(s, HG_F16, 0.0f, 1.0f, record_layer_norm);
	for (int r = 0; r < ROWS; r++)
		setup_write(s->tensor[X], r, 2, r == ROW ? 0.0f : 1.0f);
	setup_layer_norm(s, COLS);
	setup_set(s, "gamma", 0, COL, gain);
	s->expected.wide = (double)gain * sqrt(3.0);
}

static hg_var record_exp(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "powers");
	return loss_of(s, tape, hg_exp(tape, x));
}

/* This is a softmax that does not subtract the maximum first: exp(12) = 162755. */
void plant_big_exp(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, HG_F16, 0.5f, s->planted ? 12.0f : 2.0f, record_exp);
	s->expected.wide = exp(12.0);
}

static hg_var record_div(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape), y = hg_tape_variable(tape, s->tensor[OTHER], "y");
	hg_tape_scope(tape, "ratio");
	return loss_of(s, tape, hg_div(tape, x, y));
}

/* The divisor is small, but not 0: 100 / 2^-10 = 102400. */
void plant_big_ratio(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, HG_F16, 1.0f, 100.0f, record_div);
	setup_write(setup_tensor(s, HG_F16, ROWS, COLS, NULL), -1, -1, 1.0f);
	setup_write(s->tensor[OTHER], ROW, COL, s->planted ? 0x1p-10f : 2.0f);
	s->expected.wide = 102400.0;
}

static hg_var record_row_sum(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "total");
	const hg_var sum = hg_row_sum(tape, hg_linear(tape, x, tape_param(s, tape, "w"), HG_NONE));
	const hg_var divisors = hg_tape_input(tape, s->tensor[OTHER], "y", -1.0);
	return tape_mse(s, tape, hg_div(tape, sum, divisors));
}

/* Row 2 of X W is 30000 in all four columns, and the other rows are 1. The sum of row 2 is 120000,
 * which fits only after the division by 8. */
void plant_big_row_sum(struct setup *s, const struct fault *f)
{
	const float large = s->planted ? 30000.0f : 3.0f;
	(void)f;
	setup_policy(s, hg_policy_fp16(), 1.0f);
	setup_write(setup_tensor(s, HG_F16, ROWS, COLS, NULL), -1, -1, 1.0f);
	setup_write(s->tensor[X], ROW, -1, large);
	setup_tensor(s, HG_F16, ROWS, 1, NULL);
	setup_write(setup_tensor(s, HG_F16, ROWS, 1, NULL), -1, -1, 8.0f);
	setup_param(s, "w", COLS, COLS, 0, 0.25f);
	s->record = record_row_sum;
	s->expected.row = only(ROW);
	s->expected.col = only(0);
	s->expected.wide = 4.0 * (double)large;
}

static hg_var record_wide(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "wide");
	return tape_mse(s, tape, hg_linear(tape, x, tape_param(s, tape, "w"), HG_NONE));
}

/* X [300, 300] and W [300, 200] are 0.01, except X = 60000 at (1, 257) and W = 2 at (257, 133). */
void plant_big_wide(struct setup *s, const struct fault *f)
{
	enum { TALL = 300, DEEP = 300, WIDE = 200 };
	const float large = s->planted ? 60000.0f : 6.0f;
	(void)f;
	setup_policy(s, hg_policy_fp16(), 64.0f);
	setup_write(setup_tensor(s, HG_F16, TALL, DEEP, NULL), -1, -1, 0.01f);
	setup_tensor(s, HG_F16, TALL, WIDE, NULL);
	setup_param(s, "w", DEEP, WIDE, 0, 0.01f);
	setup_write(s->tensor[X], 1, 257, large);
	setup_set(s, "w", 257, 133, 2.0f);
	s->record = record_wide;
	s->expected.row = only(1);
	s->expected.col = only(133);
	s->expected.wide = 2.0 * (double)large;
	s->expected.terms = DEEP;
	s->expected.top = 2.0 * (double)large;
}

static hg_var record_loss(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return hg_mse(tape, tape_product(s, tape),
	              hg_tape_input(tape, s->tensor[OTHER], "targets", -1.0), HG_NONE);
}

/* A target of 10^30: the square of the error overflows f32, and so does the loss, which is the only
 * result of the op. */
void plant_big_loss(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, HG_F16, 1.0f, 1.0f, record_loss);
	setup_write(setup_tensor(s, HG_F32, ROWS, COLS, NULL), ROW, COL, s->planted ? 1e30f : 10.0f);
	s->expected.row = only(0);
	s->expected.col = only(0);
}
