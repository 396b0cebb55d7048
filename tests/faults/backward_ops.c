/* The gradient of one op is too large for f16: at the loss scale S in force, although it fits at 1,
 * or at 1 as well.
 *
 * Most tapes compute mse(op(X W), T) with W the identity and X [8, 4] zeros. The targets T equal
 * the result in all elements but one, (2, 1), so that only this element has a gradient. */
#include <math.h>

#include "faults/fault.h"
#include "faults/small_tape.h"

enum { ROWS = 8, COLS = 4, ROW = 2, COL = 1, LEAVES = 1000, FEW = 100 };

static void expect(struct setup *s, struct range row, struct range col)
{
	s->expected.row = row;
	s->expected.col = col;
}

static void begin(struct setup *s, float loss_scale, int64_t rows, int64_t cols, int64_t out_cols,
                  hg_var (*record)(void *user, hg_tape *tape))
{
	setup_policy(s, hg_policy_fp16(), loss_scale);
	setup_tensor(s, HG_F16, rows, cols, NULL);
	setup_tensor(s, HG_F16, rows, out_cols, NULL);
	setup_identity(s, "w", cols);
	s->record = record;
	expect(s, only(ROW), only(COL));
}

static hg_var record_mse(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var y = tape_product(s, tape);
	return tape_mse(s, tape, y);
}

/* The gradient is 2 * 100 S / 32 = 409600. */
void plant_scale_mse(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 0x1p16f : 0x1p6f;
	(void)f;
	begin(s, loss_scale, ROWS, COLS, COLS, record_mse);
	setup_write(s->tensor[TARGETS], ROW, COL, -100.0f);
	s->expected.wide = 200.0 * (double)loss_scale / 32.0;
}

static hg_var record_bce(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var y = tape_product(s, tape);
	return hg_bce_logits(tape, y, tape_targets(s, tape), HG_NONE);
}

/* All targets but one are 1 / (1 + exp(0)) = 1/2, so that their gradients are 0. The gradient of
 * the other one is (1/2 - 1) S / 32 = -131072. */
void plant_scale_bce(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 0x1p23f : 0x1p10f;
	(void)f;
	begin(s, loss_scale, ROWS, COLS, COLS, record_bce);
	setup_write(s->tensor[TARGETS], -1, -1, 0.5f);
	setup_write(s->tensor[TARGETS], ROW, COL, 1.0f);
	s->expected.wide = -0.5 * (double)loss_scale / 32.0;
}

static hg_var record_scale(void *user, hg_tape *tape)
{
	struct setup *s = user;
	hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "scaled");
	y = hg_scale(tape, y, 100.0f);
	return tape_mse(s, tape, y);
}

/* The gradient is 2 S / 32 = 1024, times 100. */
void plant_scale_scale(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 0x1p14f : 0x1p6f;
	(void)f;
	begin(s, loss_scale, ROWS, COLS, COLS, record_scale);
	setup_write(s->tensor[TARGETS], ROW, COL, -1.0f);
	s->expected.wide = 100.0 * 2.0 * (double)loss_scale / 32.0;
}

static hg_var record_two_ways(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var h = tape_product(s, tape);
	hg_tape_scope(tape, "left");
	const hg_var left = hg_scale(tape, h, 100.0f);
	hg_tape_scope(tape, "right");
	const hg_var y = hg_add(tape, left, hg_scale(tape, h, 100.0f));
	return tape_mse(s, tape, y);
}

/* The gradient 2 S / 32 = 400 flows back through two ops, times 100 in each, and the sum is 40000 +
 * 40000. Backward runs the right op first, so the left one adds its contribution and overflows. */
void plant_scale_two_ways(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 6400.0f : 64.0f;
	(void)f;
	begin(s, loss_scale, ROWS, COLS, COLS, record_two_ways);
	setup_write(s->tensor[TARGETS], ROW, COL, -1.0f);
	s->expected.wide = 2.0 * 100.0 * 2.0 * (double)loss_scale / 32.0;
}

static hg_var record_combine(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var h = tape_product(s, tape);
	hg_tape_scope(tape, "sum");
	const hg_var z = hg_spmm(tape, s->graph[0], h, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "self");
	const hg_var y = hg_combine(tape, h, z, tape_param(s, tape, "eps"));
	return tape_mse(s, tape, y);
}

/* The gradient is 2 S / 32 = 128, times 1 + eps = 1001, plus 128 from the sum over the neighbours,
 * which contains the node itself. The other neighbours get only 128. */
void plant_scale_combine(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 0x1p11f : 0x1p6f;
	(void)f;
	begin(s, loss_scale, ROWS, COLS, COLS, record_combine);
	setup_ring(s, ROWS);
	setup_param(s, "eps", 1, 1, HG_PARAM_F32, 1000.0f);
	setup_write(s->tensor[TARGETS], ROW, COL, -1.0f);
	s->expected.wide = 1002.0 * 2.0 * (double)loss_scale / 32.0;
}

static hg_var record_head_dot(void *user, hg_tape *tape)
{
	struct setup *s = user;
	hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "dots");
	y = hg_head_dot(tape, y, tape_param(s, tape, "a"), 2);
	return tape_mse(s, tape, y);
}

/* The gradient of the result is 2 S / 16 = 128 at row 2 of head 1. It is multiplied by a = 1000 in
 * the head's second column, which is column 3 of X. */
void plant_scale_head_dot(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 0x1p10f : 0x1p6f;
	(void)f;
	begin(s, loss_scale, ROWS, COLS, 2, record_head_dot);
	setup_param(s, "a", 1, COLS, 0, 1.0f);
	setup_set(s, "a", 0, 3, 1000.0f);
	setup_write(s->tensor[TARGETS], ROW, 1, -1.0f);
	expect(s, only(ROW), only(3));
	s->expected.wide = 1000.0 * 2.0 * (double)loss_scale / 16.0;
}

static hg_var record_spmm_max(void *user, hg_tape *tape)
{
	struct setup *s = user;
	hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "most");
	y = hg_spmm_max(tape, s->graph[0], y);
	return tape_mse(s, tape, y);
}

/* The only neighbour of each of n leaves is node 0, whose gradient in column 2 is n times 2 S / (4
 * (n + 1)). */
void plant_scale_spmm_max(struct setup *s, const struct fault *f)
{
	const int64_t leaves = s->planted ? LEAVES : FEW;
	const float loss_scale = s->planted ? 0x1p18f : 0x1p10f;
	(void)f;
	begin(s, loss_scale, leaves + 1, COLS, COLS, record_spmm_max);
	setup_fan(s, leaves);
	setup_write(s->tensor[TARGETS], -1, 2, -1.0f);
	expect(s, only(0), only(2));
	s->expected.wide = (double)leaves * 2.0 * (double)loss_scale / (4.0 * (double)(leaves + 1));
}

static hg_var record_batch_norm(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return tape_mse(s, tape, tape_batch_norm(s, tape, tape_product(s, tape), 1e-5f));
}

static void batch_norm(struct setup *s, float loss_scale)
{
	begin(s, loss_scale, ROWS, COLS, COLS, record_batch_norm);
	setup_batch_norm(s, COLS);
}

/* Column 2 of X is 1 + 2^-10 and 1 - 2^-10 in turn. Its variance is 2^-20, and with eps 1e-5 the
 * batch norm multiplies by r = 302. The targets equal the normalised values xhat = +- 2^-10 r = +-
 * 0.295, except at (2, 2), where the difference is 16, so that dY = 2 * 16 S / 32 = S there. Then
 *
 *     dX = r (dY - mean(dY) - xhat mean(dY xhat))
 *
 * is r S (1 - 1/8 - 0.087/8) = 0.86 r S in row 2, and at most r S (1/8 + 0.087/8) = 0.14 r S in the
 * other rows. At S = 512 these are 133000 and 21000. The other columns are 1 and -1 in turn, and
 * equal their targets. */
void plant_scale_batch_norm(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 512.0f : 32.0f;
	const double spread = 0x1p-10, r = 1.0 / sqrt(spread * spread + 1e-5);
	(void)f;
	batch_norm(s, loss_scale);
	for (int i = 0; i < ROWS; i++) {
		const float sign = i % 2 ? -1.0f : 1.0f;
		setup_write(s->tensor[X], i, -1, sign);
		setup_write(s->tensor[X], i, 2, 1.0f + sign * (float)spread);
		setup_write(s->tensor[TARGETS], i, -1, sign);
		setup_write(s->tensor[TARGETS], i, 2,
		            sign * (float)(spread * r) - (i == ROW ? 16.0f : 0.0f));
	}
	expect(s, only(ROW), only(2));
	s->expected.wide =
	    r * (double)loss_scale * (1.0 - (1.0 + spread * spread * r * r) / (double)ROWS);
}

static hg_var record_copies(void *user, hg_tape *tape)
{
	struct setup *s = user;
	hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "copies");
	y = hg_spmm(tape, s->graph[0], y, HG_NONE, HG_NORM_NONE, 1.0f);
	return tape_mse(s, tape, y);
}

/* n leaves copy 60000, and their targets are 0. At loss scale 1 the gradient of each is 2 * 60000 /
 * (n + 1), and their sum is 120000 n / (n + 1). */
void plant_explode_hub(struct setup *s, const struct fault *f)
{
	const int64_t leaves = s->planted ? LEAVES : FEW;
	const float value = s->planted ? 60000.0f : 6.0f;
	(void)f;
	begin(s, 1.0f, leaves + 1, 1, 1, record_copies);
	setup_fan(s, leaves);
	setup_write(s->tensor[X], 0, 0, value);
	expect(s, only(0), only(0));
	s->expected.wide = (double)leaves * 2.0 * (double)value / (double)(leaves + 1);
	s->expected.terms = leaves;
}

static hg_var record_mlp(void *user, hg_tape *tape)
{
	struct setup *s = user;
	hg_var y = tape_product(s, tape);
	hg_tape_scope(tape, "first");
	y = hg_linear(tape, y, tape_param(s, tape, "first"), HG_NONE);
	hg_tape_scope(tape, "second");
	y = hg_linear(tape, y, tape_param(s, tape, "second"), HG_NONE);
	return tape_mse(s, tape, y);
}

/* Only row 2 of x is 1. With first = 0.125 and second = (1, v, 1, 1), the result there is y = (v +
 * 3) / 8 and dy = 2 y / 4. The gradient of hidden unit 1 is v dy = 5.6e7 for v = 30000. */
void plant_explode_mlp(struct setup *s, const struct fault *f)
{
	const float v = s->planted ? 30000.0f : 3.0f;
	(void)f;
	begin(s, 1.0f, 4, 1, 1, record_mlp);
	setup_param(s, "first", 1, COLS, 0, 0.125f);
	setup_param(s, "second", COLS, 1, 0, 1.0f);
	setup_set(s, "second", COL, 0, v);
	setup_write(s->tensor[X], ROW, 0, 1.0f);
	s->expected.wide = (double)v * 2.0 * ((double)v + 3.0) / 8.0 / 4.0;
}

/* In f32, with v = 10^20: the loss y^2 / 4 = v^2 / 256 = 4e37 fits, but v dy = v^2 / 16 does not.
 *    */
void plant_explode_fp32(struct setup *s, const struct fault *f)
{
	const float v = s->planted ? 1e20f : 3.0f;
	(void)f;
	setup_policy(s, hg_policy_fp32(), 1.0f);
	setup_tensor(s, HG_F32, 4, 1, NULL);
	setup_tensor(s, HG_F32, 4, 1, NULL);
	setup_identity(s, "w", 1);
	setup_param(s, "first", 1, COLS, 0, 0.125f);
	setup_param(s, "second", COLS, 1, 0, 1.0f);
	setup_set(s, "second", COL, 0, v);
	setup_write(s->tensor[X], ROW, 0, 1.0f);
	s->record = record_mlp;
	expect(s, only(ROW), only(COL));
}

/* Only dW overflows f32. W is 0. With x = 10^22 at (2, 1) and a difference of 10^18 at (2, 3), dW
 * is 2 * 10^18 / 32 * 10^22 = 6e38 at (1, 3). */
void plant_explode_weight(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_policy(s, hg_policy_fp32(), 1.0f);
	setup_tensor(s, HG_F32, ROWS, COLS, NULL);
	setup_tensor(s, HG_F32, ROWS, COLS, NULL);
	setup_param(s, "w", COLS, COLS, 0, 0.0f);
	setup_write(s->tensor[X], ROW, 1, s->planted ? 1e22f : 1.0f);
	setup_write(s->tensor[TARGETS], ROW, 3, s->planted ? -1e18f : -1.0f);
	s->record = record_mse;
	expect(s, only(1), only(3));
}
