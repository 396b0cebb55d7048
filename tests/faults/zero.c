/* A division by zero, a log of 0 or of a negative number, or a square root that is not finite or
 * has no finite derivative. */
#include <math.h>

#include "faults/fault.h"
#include "faults/small_tape.h"

enum { ROWS = 8, COLS = 4 };

/* A tape of op(X W) with W the identity, X = x everywhere and targets 0. */
static void begin(struct setup *s, float loss_scale, float x,
                  hg_var (*record)(void *user, hg_tape *tape))
{
	setup_policy(s, hg_policy_fp16(), loss_scale);
	setup_write(setup_tensor(s, HG_F16, ROWS, COLS, NULL), -1, -1, x);
	setup_tensor(s, HG_F16, ROWS, COLS, NULL);
	setup_identity(s, "w", COLS);
	s->record = record;
}

/* ---- norms: x - mean is exactly 0, so that forward 0 / sqrt(eps) = 0. Backward, the gradient is
 * divided by sqrt(eps) = 10^-15. ---- */

/* Elements of X are 1 and -1 in turn, along rows and along columns. */
static void alternate_signs(struct setup *s)
{
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLS; c++)
			setup_write(s->tensor[X], r, c, (r + c) % 2 ? -1.0f : 1.0f);
}

static hg_var record_batch_norm(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const float eps = s->planted ? 1e-30f : 1e-5f;
	return tape_mse(s, tape, tape_batch_norm(s, tape, tape_product(s, tape), eps));
}

/* Column 2 is 1 everywhere. One of its targets differs, so that the gradient of no row equals the
 * mean gradient, and all of column 2 overflows. */
void plant_zero_variance(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 1.0f, record_batch_norm);
	alternate_signs(s);
	setup_write(s->tensor[X], -1, 2, 1.0f);
	setup_write(s->tensor[TARGETS], 3, 2, -1.0f);
	setup_batch_norm(s, COLS);
	s->expected.col = only(2);
}

static hg_var record_layer_norm(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const float eps = s->planted ? 1e-30f : 1e-5f;
	return tape_mse(s, tape, tape_layer_norm(s, tape, tape_product(s, tape), eps));
}

void plant_zero_variance_row(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 1.0f, record_layer_norm);
	alternate_signs(s);
	setup_write(s->tensor[X], 5, -1, 1.0f);
	setup_write(s->tensor[TARGETS], 5, 2, -1.0f);
	setup_layer_norm(s, COLS);
	s->expected.row = only(5);
}

/* ---- one element, (2, 1), is bad ---- */

enum { ROW = 2, COL = 1 };

static void set_element(struct setup *s, float x)
{
	if (s->planted)
		setup_write(s->tensor[X], ROW, COL, x);
	s->expected.row = only(ROW);
	s->expected.col = only(COL);
}

static hg_var record_log(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "logs");
	return tape_mse(s, tape, hg_log(tape, y));
}

void plant_zero_log(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 2.0f, record_log);
	set_element(s, 0.0f);
}

void plant_negative_log(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 2.0f, record_log);
	set_element(s, -1.0f);
}

static hg_var record_sqrt(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "roots");
	return tape_mse(s, tape, hg_sqrt(tape, y));
}

void plant_negative_root(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 2.0f, record_sqrt);
	set_element(s, -4.0f);
}

/* The root of 0 is 0, and its derivative is 1 / (2 sqrt(0)). The target is 1, so that this
 * derivative is multiplied by a gradient that is not 0. */
void plant_root_of_zero(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 2.0f, record_sqrt);
	setup_write(s->tensor[TARGETS], -1, -1, 1.0f);
	set_element(s, 0.0f);
}

/* ---- divisions of each row by a number of its own ---- */

enum { DEGREES = OTHER };

static hg_var record_degrees(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var u = tape_product(s, tape),
	             degrees = hg_tape_input(tape, s->tensor[DEGREES], "degrees", -1.0);
	hg_tape_scope(tape, "mean");
	const hg_var sum = hg_spmm(tape, s->graph[0], u, HG_NONE, HG_NORM_NONE, 1.0f);
	return tape_mse(s, tape, hg_div(tape, sum, degrees));
}

/* A mean computed as the sum over the neighbours divided by their number. The last node of the path
 * has no neighbours, and its number is 0, or without the fault 1. */
void plant_zero_degree(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 2.0f, record_degrees);
	setup_graph(s, coo_path(ROWS));
	setup_write(setup_tensor(s, HG_F16, ROWS, 1, NULL), -1, -1, 1.0f);
	if (s->planted)
		setup_write(s->tensor[DEGREES], ROWS - 1, 0, 0.0f);
	s->expected.row = only(ROWS - 1);
}

static hg_var record_share(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "share");
	return tape_mse(s, tape, hg_div(tape, y, hg_row_sum(tape, y)));
}

/* Each row is divided by its sum. Row 5 is (1, -1, 1, -1), whose sum is 0. */
void plant_zero_sum(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 2.0f, record_share);
	for (int c = 0; c < COLS && s->planted; c++)
		setup_write(s->tensor[X], 5, c, c % 2 ? -1.0f : 1.0f);
	s->expected.row = only(5);
}

/* ---- log(softmax(X)) instead of log_softmax(X): exp(-20) = 2e-9 is 0 in f16 ---- */

static hg_var record_log_of_softmax(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "scores");
	return tape_mse(s, tape, hg_log(tape, hg_softmax(tape, y)));
}

void plant_log_of_softmax(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s, 16.0f, 0.0f, record_log_of_softmax);
	setup_write(s->tensor[X], ROW, 0, s->planted ? 20.0f : 2.0f);
	s->expected.row = only(ROW);
	s->expected.col = (struct range){1, COLS - 1};
}
