/* What nobody sees: every number is finite. Results rounded to zero, and sums in f16 that stop
 * growing because the addends are below half a unit of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "faults/fault.h"
#include "harness.h"

enum { NODES = 12, MANY = 4096, FEW = 100 };

static void right(struct world *w, struct among row, struct among col)
{
	w->answer.row = row;
	w->answer.col = col;
}

/* ---- underflow: below half of 2^-24 = 6e-8 ---- */

/* Weights (-v, v) in the layer that makes the two logits, which are then 0 to three digits:
 * gradients (-1/2, 1/2) S / 4001. */
static void small_weights(struct world *w, const char *weight, float v)
{
	world_set(w, weight, -1, 0, -v);
	world_set(w, weight, -1, 1, v);
}

static void large_town(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, 4001));
	w->policy.loss_scale.init_scale = w->sick ? 1.0f : 65536.0f;
	world_varied(w);
	world_build(w);
}

/* The gradient, or the mean of three of them, times 2 v: at most 2.5e-8 S. */
void plant_under_linear(struct world *w, const struct fault *f)
{
	large_town(w, f);
	small_weights(w, "conv1.weight", 1e-4f);
}

void plant_under_head(struct world *w, const struct fault *f)
{
	large_town(w, f);
	small_weights(w, "head.weight", 1e-4f);
}

/* What is attended to is (-u, u), u = 3e-6 times the sum of 8 hidden units, each below 4: the
 * gradient of an attention weight is at most 2 * 1.25e-4 * 9.6e-5 S = 2.4e-8 S. */
void plant_under_edges(struct world *w, const struct fault *f)
{
	large_town(w, f);
	small_weights(w, "conv1.weight", 3e-6f);
}

/* Logits (8, -8), labels 0: the gradient is (-1, 1) exp(-16) S / 12 = 9e-9 S. */
void plant_under_xent(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	w->policy.loss_scale.init_scale = w->sick ? 1.0f : 0x1p20f;
	world_varied(w);
	for (int i = 0; i < NODES; i++)
		w->label[i] = 0;
	world_build(w);
	world_set(w, "conv1.weight", -1, -1, 0.0f);
	world_set(w, "conv1.bias", 0, 0, 8.0f);
	world_set(w, "conv1.bias", 0, 1, -8.0f);
}

/* 16 products of 1e-4 times at most 1.1 and 1e-6: 1.8e-9. */
void plant_under_features(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	world_varied(w);
	for (int64_t i = 0; w->sick && i < w->nodes * IN; i++)
		w->x[i] *= 1e-4f;
	world_build(w);
	if (w->sick)
		world_set(w, "conv0.weight", -1, -1, 1e-6f);
}

/* ---- custom tapes ---- */

enum { X = 0, TARGETS = 1 };

static hg_var param(struct world *w, hg_tape *tape, const char *name)
{
	return hg_tape_param(tape, hg_params_find(w->params, name));
}

static hg_var loss_of(struct world *w, hg_tape *tape, hg_var y)
{
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

static hg_var record_mse(void *user, hg_tape *tape)
{
	struct world *w = user;
	return loss_of(
	    w, tape,
	    hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE));
}

/* 2 * 2e-5 S / 4096 = 1e-8 S */
void plant_under_mse(struct world *w, const struct fault *f)
{
	(void)f;
	world_policy(w, hg_policy_fp16(), w->sick ? 1.0f : 65536.0f);
	world_tensor(w, HG_F16, 64, 64, NULL);
	world_spoil(world_tensor(w, HG_F32, 64, 64, NULL), -1, -1, 2e-5f);
	world_param(w, "w", 64, 64, 0, 0.1f);
	w->record = record_mse;
}

static hg_var record_scale(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x =
	    hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, "scaled");
	return loss_of(w, tape, hg_scale(tape, x, w->sick ? 1e-6f : 0.5f));
}

/* 8 * 0.01 * 0.1 = 0.008 times 1e-6 */
void plant_under_scale(struct world *w, const struct fault *f)
{
	(void)f;
	world_spoil(world_tensor(w, HG_F16, 8, 8, NULL), -1, -1, 0.01f);
	world_spoil(world_tensor(w, HG_F16, 8, 8, NULL), -1, -1, 1.0f);
	world_param(w, "w", 8, 8, 0, 0.1f);
	w->record = record_scale;
}

static hg_var record_exp(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x =
	    hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, "powers");
	return loss_of(w, tape, hg_exp(tape, x));
}

/* exp(8 x 0.25) = exp(2 x): x = -10 makes 2e-9, x = 1 makes 7.4 */
void plant_under_exp(struct world *w, const struct fault *f)
{
	(void)f;
	world_spoil(world_tensor(w, HG_F16, 8, 8, NULL), -1, -1, w->sick ? -10.0f : 1.0f);
	world_tensor(w, HG_F16, 8, 8, NULL);
	world_param(w, "w", 8, 8, 0, 0.25f);
	w->record = record_exp;
}

static hg_var record_factor(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x =
	    hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, "sum");
	return loss_of(w, tape,
	               hg_spmm(tape, w->graph[0], x, HG_NONE, HG_NORM_RIGHT, w->sick ? 5e-5f : 0.5f));
}

/* Four rows of 2000 neighbours that say 16: the sum is 32000 and exact in halves, times alpha it is
 * 8e-4 as a mean; but alpha / 2000 = 2.5e-8 is zero as a half. */
void plant_under_factor(struct world *w, const struct fault *f)
{
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_full(w, 4, 2000);
	world_spoil(world_tensor(w, HG_F16, 2000, 2, NULL), -1, -1, 8.0f);
	world_tensor(w, HG_F16, 4, 2, NULL);
	world_param(w, "w", 2, 2, 0, 1.0f);
	w->record = record_factor;
}

/* ---- sums that stop: 1 + 1 + ... ends at 2048, where 1 is half a unit and the tie goes to the
 * even number ---- */

static void stuck(struct world *w, int64_t terms, double term, double wide)
{
	w->answer.terms = terms;
	w->answer.top = term; /* as it counts in the result */
	w->answer.ended = terms < MANY / 2 ? terms : MANY / 2;
	w->answer.wide = wide;
}

static int64_t neighbours(struct world *w, const struct fault *f, hg_norm norm)
{
	const int64_t n = w->sick ? MANY : FEW;
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_model(w, f->model, 2, world_star(w, n));
	w->config.norm = w->config.aggregate = norm;
	world_constant(w);
	world_build(w);
	right(w, only(0), only(1));
	return n;
}

void plant_swamp_sum(struct world *w, const struct fault *f)
{
	const int64_t n = neighbours(w, f, HG_NORM_NONE);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", 0, 1, 1.0f);
	stuck(w, n, 1.0, (double)n);
}

void plant_swamp_mean(struct world *w, const struct fault *f)
{
	const int64_t n = neighbours(w, f, HG_NORM_RIGHT);
	world_ones_below(w, 1);
	world_set(w, "conv1.weight", -1, -1, 0.0f);
	world_set(w, "conv1.weight", -1, 1, 1.0f / (float)HIDDEN);
	stuck(w, n, 1.0 / (double)n, 1.0);
}

void plant_swamp_gin(struct world *w, const struct fault *f)
{
	const int64_t n = neighbours(w, f, HG_NORM_NONE);
	world_set(w, "conv0.mlp1.weight", -1, -1, 0.0f);
	world_set(w, "conv0.mlp1.weight", 0, 1, 1.0f);
	stuck(w, n, 1.0, (double)n);
}

/* All scores are 0, so every weight is 1/n = 2^-12, exactly; at 1/2 that is half a unit. U = 1 in
 * the first column of head 0. */
void plant_swamp_gat(struct world *w, const struct fault *f)
{
	const int64_t n = w->sick ? MANY : 64;
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_model(w, f->model, 2, world_star(w, n));
	world_constant(w);
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", 0, 0, 1.0f);
	world_set(w, "conv0.att_dst", -1, -1, 0.0f);
	world_set(w, "conv0.att_src", -1, -1, 0.0f);
	right(w, only(0), only(0));
	stuck(w, n, 1.0 / (double)n, 1.0);
}

/* Node 4 has n features, the others one each; their weights are 1 in column 1. */
void plant_swamp_sparse(struct world *w, const struct fault *f)
{
	const int n = w->sick ? MANY : FEW;
	static int32_t row[MANY + NODES], col[MANY + NODES];
	static float one[MANY + NODES];
	int m = 0;
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_model(w, f->model, 2, world_ring(w, NODES));
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < (i == 4 ? n : 1); k++, m++) {
			row[m] = i;
			col[m] = i == 4 ? k : i;
			one[m] = 1.0f;
		}
	world_sparse(w, MANY, m, row, col, one);
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", -1, 1, 1.0f);
	right(w, only(4), only(1));
	stuck(w, n, 1.0, (double)n);
}

/* Leaves copy the hub, logits 0, labels 0, S = 2 n of n nodes: every leaf's gradient is (-1, 1),
 * and the hub's is their sum. */
void plant_swamp_backward(struct world *w, const struct fault *f)
{
	const int64_t leaves = w->sick ? MANY : FEW;
	world_policy(w, hg_policy_fp16_naive(), 2.0f * (float)(leaves + 1));
	world_model(w, f->model, 2, world_fan(w, leaves));
	w->config.norm = HG_NORM_NONE;
	world_varied(w);
	for (int64_t i = 0; i < w->nodes; i++)
		w->label[i] = 0;
	world_build(w);
	world_set(w, "conv1.weight", -1, -1, 0.0f);
	right(w, only(0), anywhere());
	stuck(w, leaves, 1.0, (double)NAN);
}

static hg_var record_sum(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x =
	    hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE);
	hg_tape_scope(tape, "sum");
	return loss_of(w, tape, hg_spmm(tape, w->graph[0], x, HG_NONE, HG_NORM_NONE, 1.0f));
}

/* 4096 and 4000 ones: at 4096 a unit is 4, and every 1 is lost. In good health the first is a 1
 * too, and there are 100. */
void plant_swamp_large_first(struct world *w, const struct fault *f)
{
	const int64_t n = w->sick ? 4001 : FEW;
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 1.0f);
	world_full(w, 1, n);
	world_tensor(w, HG_F16, n, 1, NULL);
	world_tensor(w, HG_F16, 1, 1, NULL);
	world_param(w, "w", 1, 1, 0, 1.0f);
	world_spoil(w->tensor[X], -1, 0, 1.0f);
	world_spoil(w->tensor[X], 0, 0, w->sick ? 4096.0f : 1.0f);
	world_spoil(w->tensor[TARGETS], 0, 0, 4000.0f);
	w->record = record_sum;
	right(w, only(0), only(0));
	w->answer.terms = n;
	w->answer.top_row = w->sick ? 0 : -1;
	w->answer.top = w->sick ? 4096.0 : 1.0;
	w->answer.ended = 1;
	w->answer.wide = w->sick ? 8096.0 : (double)n;
}

/* ---- where it is hard to see ---- */

/* A graph of rows that take so many columns each, one after the other. */
static hg_graph *slices(struct world *w, int rows, const int64_t *size)
{
	int64_t m = 0, at = 0;
	for (int r = 0; r < rows; r++)
		m += size[r];
	int32_t *dst = calloc((size_t)m, sizeof *dst), *src = calloc((size_t)m, sizeof *src);
	CHECK(dst && src);
	for (int r = 0; r < rows; r++)
		for (int64_t k = 0; k < size[r]; k++, at++) {
			dst[at] = r;
			src[at] = (int32_t)at;
		}
	hg_graph *graph = world_graph(w, rows, m, m, dst, src, NULL);
	free(dst);
	free(src);
	return graph;
}

/* Row 0 adds up 5000 numbers 1, -1, 1 ..., row 1 n ones. */
void plant_swamp_second_hub(struct world *w, const struct fault *f)
{
	const int64_t n = w->sick ? MANY : FEW, size[] = {5000, n};
	float *x = calloc(5000 + MANY, sizeof *x);
	CHECK(x);
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 1.0f);
	slices(w, 2, size);
	for (int64_t k = 0; k < size[0] + size[1]; k++)
		x[k] = k < size[0] && k % 2 ? -1.0f : 1.0f;
	world_tensor(w, HG_F16, size[0] + size[1], 1, x);
	free(x);
	world_tensor(w, HG_F16, 2, 1, NULL);
	world_param(w, "w", 1, 1, 0, 1.0f);
	w->record = record_sum;
	right(w, only(1), only(0));
	stuck(w, n, 1.0, (double)n);
}

/* 64 rows of 500 columns (row 9: 4096), 16 features. Feature 5 is 2^-8: only row 9 gets stuck, at 8
 * in place of 16. The others are up to 100 with either sign: their sums are thousands, hence off by
 * more than 8 in a half, or cancel to nearly nothing, hence off by more than half of themselves;
 * but they are sums as halves make them. */
void plant_swamp_among_large(struct world *w, const struct fault *f)
{
	enum { TALL = 64, WIDE = 16, COL = 5, SOME = 500 };
	const int64_t n = w->sick ? MANY : SOME, count = (TALL - 1) * SOME + n;
	int64_t size[TALL];
	float *x = calloc((size_t)(count * WIDE), sizeof *x);
	CHECK(x);
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 1.0f);
	for (int r = 0; r < TALL; r++)
		size[r] = r == 9 ? n : SOME;
	slices(w, TALL, size);
	for (int64_t k = 0; k < count * WIDE; k++)
		x[k] = k % WIDE == COL ? 0x1p-8f : (float)(200.0 * test_uniform() - 100.0);
	world_tensor(w, HG_F16, count, WIDE, x);
	free(x);
	world_tensor(w, HG_F16, TALL, WIDE, NULL);
	world_param(w, "w", WIDE, WIDE, 0, 0.0f);
	for (int c = 0; c < WIDE; c++)
		world_set(w, "w", c, c, 1.0f);
	w->record = record_sum;
	right(w, only(9), only(COL));
	stuck(w, n, 0x1p-8, (double)n * 0x1p-8);
}
