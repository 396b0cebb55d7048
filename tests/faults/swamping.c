/* Sums in f16 stop growing although all numbers are finite, because the terms are at most half a
 * unit in the last place of the sum. In a sum of ones this happens at 2048: there 1 is half a unit,
 * and a tie is rounded to the even number, which is 2048 itself. */
#include <math.h>
#include <stdlib.h>

#include "faults/fault.h"
#include "faults/small_tape.h"
#include "harness.h"

enum { NODES = 12, MANY = 4096, FEW = 100 };

static void expect(struct setup *s, struct range row, struct range col)
{
	s->expected.row = row;
	s->expected.col = col;
}

/* A sum of equal terms, each of which adds `term` to the exact result `wide`. */
static void expect_sum(struct setup *s, int64_t terms, double term, double wide)
{
	s->expected.terms = terms;
	s->expected.top = term;
	s->expected.stops_at = terms < MANY / 2 ? terms : MANY / 2;
	s->expected.wide = wide;
}

static int64_t neighbours(struct setup *s, const struct fault *f, hg_norm norm)
{
	const int64_t n = s->planted ? MANY : FEW;
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_model(s, f->model, 2, setup_star(s, n));
	s->config.norm = s->config.aggregate = norm;
	setup_constant(s);
	setup_build(s);
	expect(s, only(0), only(1));
	return n;
}

void plant_swamp_sum(struct setup *s, const struct fault *f)
{
	const int64_t n = neighbours(s, f, HG_NORM_NONE);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, 1, 1.0f);
	expect_sum(s, n, 1.0, (double)n);
}

void plant_swamp_mean(struct setup *s, const struct fault *f)
{
	const int64_t n = neighbours(s, f, HG_NORM_RIGHT);
	setup_ones_below(s, 1);
	setup_set(s, "conv1.weight", -1, -1, 0.0f);
	setup_set(s, "conv1.weight", -1, 1, 1.0f / (float)HIDDEN);
	expect_sum(s, n, 1.0 / (double)n, 1.0);
}

void plant_swamp_gin(struct setup *s, const struct fault *f)
{
	const int64_t n = neighbours(s, f, HG_NORM_NONE);
	setup_set(s, "conv0.mlp1.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.mlp1.weight", 0, 1, 1.0f);
	expect_sum(s, n, 1.0, (double)n);
}

/* All scores are 0, so that every attention weight is exactly 1/n = 2^-12, which is half a unit of
 * 1/2. U = 1 in the first column of head 0. */
void plant_swamp_gat(struct setup *s, const struct fault *f)
{
	const int64_t n = s->planted ? MANY : 64;
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_model(s, f->model, 2, setup_star(s, n));
	setup_constant(s);
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, 0, 1.0f);
	setup_set(s, "conv0.att_dst", -1, -1, 0.0f);
	setup_set(s, "conv0.att_src", -1, -1, 0.0f);
	expect(s, only(0), only(0));
	expect_sum(s, n, 1.0 / (double)n, 1.0);
}

/* Node 4 has n features and each other node one. The weights are 1 in column 1. */
void plant_swamp_sparse(struct setup *s, const struct fault *f)
{
	const int n = s->planted ? MANY : FEW;
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	struct coo features = coo_empty(NODES, MANY);
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < (i == 4 ? n : 1); k++)
			coo_add_weighted(&features, i, i == 4 ? k : i, 1.0f);
	setup_sparse(s, MANY, features);
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", -1, 1, 1.0f);
	expect(s, only(4), only(1));
	expect_sum(s, n, 1.0, (double)n);
}

/* Leaves copy the hub. With logits 0, labels 0 and a loss scale of 2 n for n nodes, the gradient of
 * every leaf is (-1, 1), and the gradient of the hub is their sum. */
void plant_swamp_backward(struct setup *s, const struct fault *f)
{
	const int64_t leaves = s->planted ? MANY : FEW;
	setup_policy(s, hg_policy_fp16_naive(), 2.0f * (float)(leaves + 1));
	setup_model(s, f->model, 2, setup_fan(s, leaves));
	s->config.norm = HG_NORM_NONE;
	setup_varied(s);
	for (int64_t i = 0; i < s->nodes; i++)
		s->label[i] = 0;
	setup_build(s);
	setup_set(s, "conv1.weight", -1, -1, 0.0f);
	expect(s, only(0), any());
	expect_sum(s, leaves, 1.0, (double)NAN);
}

static hg_var record_sum(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_product(s, tape);
	hg_tape_scope(tape, "sum");
	return tape_mse(s, tape, hg_spmm(tape, s->graph[0], x, HG_NONE, HG_NORM_NONE, 1.0f));
}

/* A sum of 4096 and 4000 ones: at 4096 a unit is 4, so that every 1 is lost. Without the fault it
 * is a sum of 100 ones. */
void plant_swamp_large_first(struct setup *s, const struct fault *f)
{
	const int64_t n = s->planted ? 4001 : FEW;
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 1.0f);
	setup_full(s, 1, n);
	setup_tensor(s, HG_F16, n, 1, NULL);
	setup_tensor(s, HG_F16, 1, 1, NULL);
	setup_param(s, "w", 1, 1, 0, 1.0f);
	setup_write(s->tensor[X], -1, 0, 1.0f);
	setup_write(s->tensor[X], 0, 0, s->planted ? 4096.0f : 1.0f);
	setup_write(s->tensor[TARGETS], 0, 0, 4000.0f);
	s->record = record_sum;
	expect(s, only(0), only(0));
	s->expected.terms = n;
	s->expected.top_row = s->planted ? 0 : -1;
	s->expected.top = s->planted ? 4096.0 : 1.0;
	s->expected.stops_at = 1;
	s->expected.wide = s->planted ? 8096.0 : (double)n;
}

/* ---- sums that are harder to find ---- */

/* A graph in which row r has edges from size[r] columns of its own, in ascending order. */
static void own_columns(struct setup *s, int rows, const int64_t *size)
{
	int64_t m = 0;
	for (int r = 0; r < rows; r++)
		m += size[r];
	struct coo list = coo_empty(rows, m);
	for (int r = 0; r < rows; r++)
		for (int64_t k = 0; k < size[r]; k++)
			coo_add(&list, r, list.m);
	setup_graph(s, list);
}

/* Row 0 sums 5000 numbers 1, -1, 1, ..., and row 1 sums n ones. */
void plant_swamp_second_hub(struct setup *s, const struct fault *f)
{
	const int64_t n = s->planted ? MANY : FEW, size[] = {5000, n};
	float *x = calloc(5000 + MANY, sizeof *x);
	CHECK(x);
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 1.0f);
	own_columns(s, 2, size);
	for (int64_t k = 0; k < size[0] + size[1]; k++)
		x[k] = k < size[0] && k % 2 ? -1.0f : 1.0f;
	setup_tensor(s, HG_F16, size[0] + size[1], 1, x);
	free(x);
	setup_tensor(s, HG_F16, 2, 1, NULL);
	setup_param(s, "w", 1, 1, 0, 1.0f);
	s->record = record_sum;
	expect(s, only(1), only(0));
	expect_sum(s, n, 1.0, (double)n);
}

/* 64 rows sum 500 columns each, except row 9, which sums 4096. Column 5 of X is 2^-8 everywhere, so
 * that only row 9 stops growing, at 8 instead of 16. The other columns have numbers of both signs
 * up to 100. Their sums in f16 have larger errors: more than 8 where the sum is in the thousands,
 * and more than half of the result where the terms cancel. But those are ordinary rounding errors.
 * */
void plant_swamp_among_large(struct setup *s, const struct fault *f)
{
	enum { TALL = 64, WIDE = 16, COL = 5, SOME = 500 };
	const int64_t n = s->planted ? MANY : SOME, count = (TALL - 1) * SOME + n;
	int64_t size[TALL];
	float *x = calloc((size_t)(count * WIDE), sizeof *x);
	CHECK(x);
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 1.0f);
	for (int r = 0; r < TALL; r++)
		size[r] = r == 9 ? n : SOME;
	own_columns(s, TALL, size);
	for (int64_t k = 0; k < count * WIDE; k++)
		x[k] = k % WIDE == COL ? 0x1p-8f : (float)(200.0 * test_uniform() - 100.0);
	setup_tensor(s, HG_F16, count, WIDE, x);
	free(x);
	setup_tensor(s, HG_F16, TALL, WIDE, NULL);
	setup_identity(s, "w", WIDE);
	s->record = record_sum;
	expect(s, only(9), only(COL));
	expect_sum(s, n, 0x1p-8, (double)n * 0x1p-8);
}
