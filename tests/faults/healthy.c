/* Set-ups with unusual numbers, but without a fault: the doctor must report nothing. */
#include <math.h>
#include <stdlib.h>

#include "faults/fault.h"
#include "faults/small_tape.h"
#include "harness.h"

enum { NODES = 12, LONE = NODES - 1 };

static void ring_model(struct setup *s, const char *model)
{
	setup_model(s, model, 2, setup_ring(s, NODES));
	setup_varied(s);
}

/* ---- numbers ---- */

static hg_var record_linear(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return tape_mse(s, tape, tape_product(s, tape));
}

/* 32752 * 2 = 65504, the largest f16. In the second column 15 is added, and 65519 is rounded to
 * it. */
void healthy_limit(struct setup *s)
{
	setup_policy(s, hg_policy_fp16(), 1.0f);
	setup_write(setup_tensor(s, HG_F16, 2, 2, NULL), -1, -1, 32752.0f);
	setup_write(setup_tensor(s, HG_F16, 2, 2, NULL), -1, -1, 65504.0f);
	setup_write(s->tensor[X], -1, 1, 15.0f);
	setup_param(s, "w", 2, 2, 0, 2.0f);
	setup_set(s, "w", 1, 0, 0.0f);
	setup_set(s, "w", 1, 1, 1.0f);
	s->record = record_linear;
}

/* Feature 11 of node 4 is 10^5, in f32, and its weights are 0.25, so that the product fits f16. */
void healthy_wide_features(struct setup *s)
{
	ring_model(s, "gcn");
	setup_build(s);
	setup_set(s, "conv0.weight", 11, -1, 0.25f);
	s->input.x = setup_tensor(s, HG_F32, NODES, IN, s->x);
	setup_write(s->tensor[s->tensors - 1], 4, 11, 1e5f);
}

/* The results differ from their targets by 10^-7 to 1. The gradients of the mean over 64 elements
 * are 10^-9 to 0.03. */
void healthy_small_gradients(struct setup *s)
{
	setup_policy(s, hg_policy_fp16(), 1.0f);
	setup_tensor(s, HG_F16, 8, 8, NULL);
	setup_tensor(s, HG_F32, 8, 8, NULL);
	setup_param(s, "w", 8, 8, 0, 0.1f);
	for (int i = 0; i < 64; i++)
		setup_write(s->tensor[TARGETS], i / 8, i % 8, (float)pow(10.0, -7.0 * i / 63.0));
	s->record = record_linear;
}

static hg_var record_sum(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var u = tape_product(s, tape);
	return tape_mse(s, tape, hg_spmm(tape, s->graph[0], u, HG_NONE, HG_NORM_NONE, 1.0f));
}

/* Each sum has 64 terms in [-1, 1] and then their negatives. */
void healthy_cancelling(struct setup *s)
{
	enum { HALF = 64, WIDE = 16 };
	float x[2 * HALF][WIDE];
	setup_policy(s, hg_policy_fp16_naive(), 1.0f);
	setup_full(s, 4, 2 * HALF);
	for (int k = 0; k < HALF; k++)
		for (int c = 0; c < WIDE; c++) {
			x[k][c] = (float)(2.0 * test_uniform() - 1.0);
			x[HALF + k][c] = -x[k][c];
		}
	setup_tensor(s, HG_F16, 2 * HALF, WIDE, x[0]);
	setup_write(setup_tensor(s, HG_F16, 4, WIDE, NULL), -1, -1, 1.0f);
	setup_identity(s, "w", WIDE);
	s->record = record_sum;
}

/* ---- zeros ---- */

void healthy_no_active_unit(struct setup *s)
{
	ring_model(s, "gcn");
	setup_build(s);
	setup_set(s, "conv0.bias", -1, -1, -100.0f);
}

void healthy_zero_features(struct setup *s)
{
	setup_model(s, "gin", 2, setup_ring(s, NODES));
	setup_build(s);
}

void healthy_one_label(struct setup *s)
{
	ring_model(s, "gat");
	setup_label_only(s, LONE, 0);
	setup_build(s);
}

/* ---- graphs ---- */

/* Every second node has one edge, which comes from the node after it; the others have none. */
static void isolated(struct setup *s, const char *model)
{
	struct coo list = coo_empty(NODES, NODES);
	for (int i = 0; i < NODES; i += 2)
		coo_add(&list, i, i + 1);
	setup_model(s, model, 2, setup_graph(s, list));
	setup_varied(s);
	setup_build(s);
}

void healthy_isolated_gcn(struct setup *s)
{
	isolated(s, "gcn");
}

void healthy_isolated_gin(struct setup *s)
{
	isolated(s, "gin");
}

void healthy_isolated_gat(struct setup *s)
{
	isolated(s, "gat");
}

static void empty_graph(struct setup *s, hg_reduce reduce)
{
	static const int64_t sizes[] = {5, 0, 7};
	setup_model(s, "gin", 2, setup_batch(s, 3, sizes));
	setup_varied(s);
	s->config.readout = (int)reduce;
	s->targets = 3;
	setup_build(s);
}

void healthy_empty_sum(struct setup *s)
{
	empty_graph(s, HG_REDUCE_SUM);
}

void healthy_empty_mean(struct setup *s)
{
	empty_graph(s, HG_REDUCE_MEAN);
}

void healthy_empty_max(struct setup *s)
{
	empty_graph(s, HG_REDUCE_MAX);
}

void healthy_one_node(struct setup *s)
{
	setup_model(s, "gcn", 2, setup_full(s, 1, 1));
	setup_varied(s);
	setup_build(s);
}

/* ---- layers ---- */

static void dropout(struct setup *s, const char *model)
{
	setup_model(s, model, 2, setup_ring(s, 200));
	setup_varied(s);
	s->config.dropout = s->config.attention_dropout = 0.9f;
	setup_build(s);
}

void healthy_dropout_gcn(struct setup *s)
{
	dropout(s, "gcn");
}

void healthy_dropout_gat(struct setup *s)
{
	dropout(s, "gat");
}

/* Some scores are 30 and the others 0, so that some attention weights are exp(-30) = 1e-13 of
 * others. */
void healthy_sharp(struct setup *s)
{
	ring_model(s, "gat");
	for (int i = 0; i < NODES; i++)
		s->x[i * IN] = i % 3 ? 0.0f : 30.0f;
	setup_build(s);
	setup_set(s, "conv0.weight", 0, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, 0, 1.0f);
	setup_set(s, "conv0.att_src", 0, 0, 1.0f);
}

/* ---- hubs with large sums ---- */

/* U is `value` in column 1 of all leaves. */
static void hub(struct setup *s, int64_t leaves, float value, hg_norm norm)
{
	setup_model(s, "gcn", 2, setup_star(s, leaves));
	s->config.norm = norm;
	setup_constant(s);
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, 1, value);
}

void healthy_promoted(struct setup *s)
{
	setup_policy(s, hg_policy_fp16(), 64.0f);
	s->policy.unproved = HG_UNPROVED_PROMOTE;
	hub(s, 4000, 32.0f, HG_NORM_NONE);
}

void healthy_negative(struct setup *s)
{
	setup_policy(s, hg_policy_fp16(), 64.0f);
	hub(s, 4000, -32.0f, HG_NORM_NONE);
}

void healthy_f32_hub(struct setup *s)
{
	setup_policy(s, hg_policy_fp16(), 64.0f);
	hub(s, 4096, 1.0f, HG_NORM_RIGHT);
}

void healthy_discretized_hub(struct setup *s)
{
	setup_policy(s, hg_policy_fp16_discretized(), 64.0f);
	hub(s, 4096, 1.0f, HG_NORM_RIGHT);
}

/* ---- fp32 and training ---- */

static void fp32(struct setup *s, const char *model)
{
	setup_policy(s, hg_policy_fp32(), 1.0f);
	ring_model(s, model);
	setup_build(s);
}

void healthy_fp32_gcn(struct setup *s)
{
	fp32(s, "gcn");
}

void healthy_fp32_gat(struct setup *s)
{
	fp32(s, "gat");
}

static void trained(struct setup *s, const char *model)
{
	setup_model(s, model, 2, setup_ring(s, 60));
	setup_varied(s);
	setup_build(s);
	s->steps = 200;
}

void healthy_trained_gcn(struct setup *s)
{
	trained(s, "gcn");
}

void healthy_trained_gin(struct setup *s)
{
	trained(s, "gin");
}

void healthy_trained_gat(struct setup *s)
{
	trained(s, "gat");
}

void healthy_trained_naive(struct setup *s)
{
	setup_policy(s, hg_policy_fp16_naive(), 1024.0f);
	trained(s, "gcn");
}
