/* Good gradients, and weights that are bad after the update: not finite, or beyond f16 in the
 * working copy. */
#include <math.h>

#include "faults/fault.h"
#include "harness.h"

enum { NODES = 12, ROWS = 8, COLS = 4, X = 0, TARGETS = 1 };

static void right(struct world *w, const char *tensor, struct among row, struct among col)
{
	w->answer.tensor = tensor;
	w->answer.row = row;
	w->answer.col = col;
}

/* ---- one weight of [4, 4]: mse(X W, T), W = 0 ---- */

static hg_var record(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = hg_tape_variable(tape, w->tensor[X], "x"),
	             t = hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0);
	return hg_mse(tape,
	              hg_linear(tape, x, hg_tape_param(tape, hg_params_find(w->params, "w")), HG_NONE),
	              t, HG_NONE);
}

static void begin(struct world *w)
{
	world_tensor(w, w->policy.state, ROWS, COLS, NULL);
	world_tensor(w, w->policy.state, ROWS, COLS, NULL);
	world_param(w, "w", COLS, COLS, 0, 0.0f);
	w->rates.kind = HG_SGD;
	w->rates.lr = 0.1f;
	w->record = record;
}

/* x = 1 at (2, 1) alone, and only (2, 3) is off its target, by 1: dW = 2 / 32 at (1, 3) and 0
 * elsewhere. Times 10^7 it is 625000. */
void plant_lr_sgd(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w);
	world_spoil(w->tensor[X], 2, 1, 1.0f);
	world_spoil(w->tensor[TARGETS], 2, 3, -1.0f);
	if (w->sick)
		w->rates.lr = 1e7f;
	right(w, "w", only(1), only(3));
}

/* Off by 1000: 62.5 times 10^38 is beyond f32. */
void plant_lr_fp32(struct world *w, const struct fault *f)
{
	(void)f;
	world_policy(w, hg_policy_fp32(), 1.0f);
	begin(w);
	world_spoil(w->tensor[X], 2, 1, 1.0f);
	world_spoil(w->tensor[TARGETS], 2, 3, -1000.0f);
	if (w->sick)
		w->rates.lr = 1e38f;
	right(w, "w", only(1), only(3));
}

/* Adam: x = 10^11, an error of 1.6 * 10^11: dW = 2 * 1.6e11 / 32 * 1e11 = 1e21 at (1, 3); 10^-3 of
 * its square is 10^39. */
void plant_moment(struct world *w, const struct fault *f)
{
	(void)f;
	world_policy(w, hg_policy_fp32(), 1.0f);
	begin(w);
	w->rates.kind = HG_ADAM;
	world_spoil(w->tensor[X], 2, 1, w->sick ? 1e11f : 1.0f);
	world_spoil(w->tensor[TARGETS], 2, 3, w->sick ? -1.6e11f : -1.0f);
	right(w, "second moment of w", only(1), only(3));
}

/* Nothing has a gradient, x being 0; W = 1 at (2, 0) becomes 1 - 0.1 * 10^8. */
void plant_decay(struct world *w, const struct fault *f)
{
	(void)f;
	begin(w);
	world_set(w, "w", 2, 0, 1.0f);
	w->rates.weight_decay = w->sick ? 1e8f : 1e-3f;
	right(w, "w", only(2), only(0));
}

/* ---- models: the first parameter is the first to be looked at ---- */

static void town(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	world_varied(w);
}

/* Adam's first step is lr wherever there is a gradient. */
void plant_lr_adam(struct world *w, const struct fault *f)
{
	town(w, f);
	world_build(w);
	w->rates.lr = w->sick ? 1e6f : 0.01f;
	right(w, "conv0.weight", anywhere(), anywhere());
}

/* GIN's first parameter is eps, in f32, which holds 10^30 and what is near it; the weights that
 * follow are halves. */
void plant_lr_gin(struct world *w, const struct fault *f)
{
	town(w, f);
	world_build(w);
	w->rates.kind = HG_SGD;
	w->rates.lr = w->sick ? 1e30f : 0.01f;
	right(w, "conv0.mlp1.weight", anywhere(), anywhere());
}

/* Nobody has feature 5, so its weights have gradient 0 exactly, moments 0, and 0 / (sqrt(0) + 0) is
 * NaN. All others have one: with weights 0.05 every hidden unit is positive. */
void plant_adam_eps(struct world *w, const struct fault *f)
{
	town(w, f);
	for (int i = 0; i < NODES; i++)
		w->x[i * IN + 5] = 0.0f;
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.05f);
	w->rates.eps = w->sick ? 0.0f : 1e-8f;
	right(w, "conv0.weight", only(5), anywhere());
}

/* Every weight times 1 - 0.01 * 10^10. */
void plant_decay_adamw(struct world *w, const struct fault *f)
{
	town(w, f);
	world_build(w);
	w->rates.kind = HG_ADAMW;
	w->rates.weight_decay = w->sick ? 1e10f : 1e-3f;
	right(w, "conv0.weight", anywhere(), anywhere());
}
