/* Results are rounded to zero, although all numbers are finite: they are below half of 2^-24 =
 * 6e-8, the smallest number of f16. S is the loss scale. */
#include "faults/fault.h"
#include "faults/small_tape.h"

enum { NODES = 12 };

/* ---- models ---- */

/* The layer that computes the two logits gets the weights (-v, v). The logits are then nearly 0,
 * and their gradients are (-1/2, 1/2) S / 4001. */
static void small_weights(struct setup *s, const char *weight, float v)
{
	setup_set(s, weight, -1, 0, -v);
	setup_set(s, weight, -1, 1, v);
}

static void large_ring(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, 4001));
	s->policy.loss_scale.init_scale = s->planted ? 1.0f : 65536.0f;
	setup_varied(s);
	setup_build(s);
}

/* A gradient of a logit, or the mean of three of them, times 2 v is at most 2.5e-8 S. */
void plant_under_linear(struct setup *s, const struct fault *f)
{
	large_ring(s, f);
	small_weights(s, "conv1.weight", 1e-4f);
}

void plant_under_head(struct setup *s, const struct fault *f)
{
	large_ring(s, f);
	small_weights(s, "head.weight", 1e-4f);
}

/* The rows that attention sums are (-u, u), with u = 3e-6 times the sum of 8 hidden units, each
 * below 4. The gradient of an attention weight is at most 2 * 1.25e-4 * 9.6e-5 S = 2.4e-8 S. */
void plant_under_edges(struct setup *s, const struct fault *f)
{
	large_ring(s, f);
	small_weights(s, "conv1.weight", 3e-6f);
}

/* With logits (8, -8) and labels 0, the gradient is (-1, 1) exp(-16) S / 12 = 9e-9 S. */
void plant_under_xent(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	s->policy.loss_scale.init_scale = s->planted ? 1.0f : 0x1p20f;
	setup_varied(s);
	for (int i = 0; i < NODES; i++)
		s->label[i] = 0;
	setup_build(s);
	setup_set(s, "conv1.weight", -1, -1, 0.0f);
	setup_set(s, "conv1.bias", 0, 0, 8.0f);
	setup_set(s, "conv1.bias", 0, 1, -8.0f);
}

/* The sum of 16 products of at most 1.1e-4 and 1e-6 is at most 1.8e-9. */
void plant_under_features(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	setup_varied(s);
	for (int64_t i = 0; s->planted && i < s->nodes * IN; i++)
		s->x[i] *= 1e-4f;
	setup_build(s);
	if (s->planted)
		setup_set(s, "conv0.weight", -1, -1, 1e-6f);
}

/* ---- custom tapes ---- */

static hg_var record_mse(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return tape_mse(s, tape, tape_product(s, tape));
}

/* The gradient of each element is 2 * 2e-5 S / 4096 = 1e-8 S. */
void plant_under_mse(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_policy(s, hg_policy_fp16(), s->planted ? 1.0f : 65536.0f);
	setup_tensor(s, HG_F16, 64, 64, NULL);
	setup_write(setup_tensor(s, HG_F32, 64, 64, NULL), -1, -1, 2e-5f);
	setup_param(s, "w", 64, 64, 0, 0.1f);
	s->record = record_mse;
}

static hg_var record_scale(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_product(s, tape);
	hg_tape_scope(tape, "scaled");
	return tape_mse(s, tape, hg_scale(tape, x, s->planted ? 1e-6f : 0.5f));
}

/* X W = 8 * 0.01 * 0.1 = 0.008, and times 1e-6 it is 8e-9. */
void plant_under_scale(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_write(setup_tensor(s, HG_F16, 8, 8, NULL), -1, -1, 0.01f);
	setup_write(setup_tensor(s, HG_F16, 8, 8, NULL), -1, -1, 1.0f);
	setup_param(s, "w", 8, 8, 0, 0.1f);
	s->record = record_scale;
}

static hg_var record_exp(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_product(s, tape);
	hg_tape_scope(tape, "powers");
	return tape_mse(s, tape, hg_exp(tape, x));
}

/* The result is exp(8 * 0.25 x) = exp(2 x): 2e-9 for x = -10, and 7.4 for x = 1. */
void plant_under_exp(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_write(setup_tensor(s, HG_F16, 8, 8, NULL), -1, -1, s->planted ? -10.0f : 1.0f);
	setup_tensor(s, HG_F16, 8, 8, NULL);
	setup_param(s, "w", 8, 8, 0, 0.25f);
	s->record = record_exp;
}

static hg_var record_factor(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_product(s, tape);
	hg_tape_scope(tape, "sum");
	return tape_mse(
	    s, tape, hg_spmm(tape, s->graph[0], x, HG_NONE, HG_NORM_RIGHT, s->planted ? 5e-5f : 0.5f));
}

/* Four rows sum 2000 neighbours of 16 each. The sum is 32000, exactly, and the mean times alpha is
 * 8e-4. But the factor alpha / 2000 = 2.5e-8 is 0 in f16. */
void plant_under_factor(struct setup *s, const struct fault *f)
{
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_full(s, 4, 2000);
	setup_write(setup_tensor(s, HG_F16, 2000, 2, NULL), -1, -1, 8.0f);
	setup_tensor(s, HG_F16, 4, 2, NULL);
	setup_param(s, "w", 2, 2, 0, 1.0f);
	s->record = record_factor;
}
