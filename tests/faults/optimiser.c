/* The gradients are good, but the update makes a weight bad: it is not finite, or its working copy
 * overflows f16. */
#include <math.h>

#include "faults/fault.h"
#include "faults/small_tape.h"
#include "harness.h"

enum { NODES = 12, ROWS = 8, COLS = 4 };

static void expect(struct setup *s, const char *tensor, struct range row, struct range col)
{
	s->expected.tensor = tensor;
	s->expected.row = row;
	s->expected.col = col;
}

/* ---- custom tapes: mse(X W, T) with W [4, 4] = 0 ---- */

static hg_var record(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return tape_mse(s, tape, tape_product(s, tape));
}

static void begin(struct setup *s)
{
	setup_tensor(s, s->policy.state, ROWS, COLS, NULL);
	setup_tensor(s, s->policy.state, ROWS, COLS, NULL);
	setup_param(s, "w", COLS, COLS, 0, 0.0f);
	s->rates.kind = HG_SGD;
	s->rates.lr = 0.1f;
	s->record = record;
}

/* Only x at (2, 1) is 1, and only the result at (2, 3) differs from its target, by 1. So dW is 2 /
 * 32 at (1, 3) and 0 elsewhere; times 10^7 it is 625000. */
void plant_lr_sgd(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s);
	setup_write(s->tensor[X], 2, 1, 1.0f);
	setup_write(s->tensor[TARGETS], 2, 3, -1.0f);
	if (s->planted)
		s->rates.lr = 1e7f;
	expect(s, "w", only(1), only(3));
}

/* With a difference of 1000 instead, dW = 62.5, which overflows f32 when multiplied by 10^38. */
void plant_lr_fp32(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_policy(s, hg_policy_fp32(), 1.0f);
	begin(s);
	setup_write(s->tensor[X], 2, 1, 1.0f);
	setup_write(s->tensor[TARGETS], 2, 3, -1000.0f);
	if (s->planted)
		s->rates.lr = 1e38f;
	expect(s, "w", only(1), only(3));
}

/* With x = 10^11 and a difference of 1.6 * 10^11, dW is 2 * 1.6e11 / 32 * 1e11 = 1e21 at (1, 3).
 * Adam's second moment is 10^-3 times its square, 10^39. */
void plant_moment(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_policy(s, hg_policy_fp32(), 1.0f);
	begin(s);
	s->rates.kind = HG_ADAM;
	setup_write(s->tensor[X], 2, 1, s->planted ? 1e11f : 1.0f);
	setup_write(s->tensor[TARGETS], 2, 3, s->planted ? -1.6e11f : -1.0f);
	expect(s, "second moment of w", only(1), only(3));
}

/* x = 0, so all gradients are 0. W is 1 at (2, 0), and the decay makes it 1 - 0.1 * 10^8. */
void plant_decay(struct setup *s, const struct fault *f)
{
	(void)f;
	begin(s);
	setup_set(s, "w", 2, 0, 1.0f);
	s->rates.weight_decay = s->planted ? 1e8f : 1e-3f;
	expect(s, "w", only(2), only(0));
}

/* ---- models: the doctor reports the first bad parameter ---- */

static void ring_model(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	setup_varied(s);
}

/* Adam's first step changes every weight by lr if its gradient is not 0. */
void plant_lr_adam(struct setup *s, const struct fault *f)
{
	ring_model(s, f);
	setup_build(s);
	s->rates.lr = s->planted ? 1e6f : 0.01f;
	expect(s, "conv0.weight", any(), any());
}

/* The first parameter of a GIN is eps. It is f32, in which 10^30 is finite. The second one, a
 * weight, has a working copy in f16, which overflows. */
void plant_lr_gin(struct setup *s, const struct fault *f)
{
	ring_model(s, f);
	setup_build(s);
	s->rates.kind = HG_SGD;
	s->rates.lr = s->planted ? 1e30f : 0.01f;
	expect(s, "conv0.mlp1.weight", any(), any());
}

/* Feature 5 is 0 at every node. So the gradients of its weights and their moments are exactly 0,
 * and 0 / (sqrt(0) + 0) is NaN. All other weights have a gradient, because weights of 0.05 make
 * every hidden unit positive. */
void plant_adam_eps(struct setup *s, const struct fault *f)
{
	ring_model(s, f);
	for (int i = 0; i < NODES; i++)
		s->x[i * IN + 5] = 0.0f;
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.05f);
	s->rates.eps = s->planted ? 0.0f : 1e-8f;
	expect(s, "conv0.weight", only(5), any());
}

/* The decay multiplies every weight by 1 - 0.01 * 10^10. */
void plant_decay_adamw(struct setup *s, const struct fault *f)
{
	ring_model(s, f);
	setup_build(s);
	s->rates.kind = HG_ADAMW;
	s->rates.weight_decay = s->planted ? 1e10f : 1e-3f;
	expect(s, "conv0.weight", any(), any());
}
