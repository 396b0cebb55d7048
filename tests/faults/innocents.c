/* What looks like trouble and is none. */
#include <math.h>
#include <stdlib.h>

#include "faults/fault.h"
#include "harness.h"

enum { NODES = 12, LONER = NODES - 1 };

static void town(struct world *w, const char *model)
{
	world_model(w, model, 2, world_ring(w, NODES));
	world_varied(w);
}

/* ---- numbers ---- */

enum { X = 0, TARGETS = 1 };

static hg_var record_linear(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = hg_tape_variable(tape, w->tensor[X], "x"),
	             t = hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0);
	return hg_mse(tape,
	              hg_linear(tape, x, hg_tape_param(tape, hg_params_find(w->params, "w")), HG_NONE),
	              t, HG_NONE);
}

/* 32752 * 2 = 65504;  with 15 more in the second column, 65519 */
void innocent_limit(struct world *w)
{
	world_policy(w, hg_policy_fp16(), 1.0f);
	world_spoil(world_tensor(w, HG_F16, 2, 2, NULL), -1, -1, 32752.0f);
	world_spoil(world_tensor(w, HG_F16, 2, 2, NULL), -1, -1, 65504.0f);
	world_spoil(w->tensor[X], -1, 1, 15.0f);
	world_param(w, "w", 2, 2, 0, 2.0f);
	world_set(w, "w", 1, 0, 0.0f);
	world_set(w, "w", 1, 1, 1.0f);
	w->record = record_linear;
}

/* 10^5 times a weight below 0.5 */
void innocent_wide_features(struct world *w)
{
	town(w, "gcn");
	world_build(w);
	world_set(w, "conv0.weight", 11, -1, 0.25f);
	w->input.x = world_tensor(w, HG_F32, NODES, IN, w->x);
	world_spoil(w->tensor[w->tensors - 1], 4, 11, 1e5f);
}

/* Targets off by numbers from 10^-7 to 1: the gradients, over 64 elements, go from 10^-9 to
 * 0.03. */
void innocent_faint(struct world *w)
{
	world_policy(w, hg_policy_fp16(), 1.0f);
	world_tensor(w, HG_F16, 8, 8, NULL);
	world_tensor(w, HG_F32, 8, 8, NULL);
	world_param(w, "w", 8, 8, 0, 0.1f);
	for (int i = 0; i < 64; i++)
		world_spoil(w->tensor[TARGETS], i / 8, i % 8, (float)pow(10.0, -7.0 * i / 63.0));
	w->record = record_linear;
}

static hg_var record_sum(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"),
	                           hg_tape_param(tape, hg_params_find(w->params, "w")), HG_NONE);
	return hg_mse(tape, hg_spmm(tape, w->graph[0], x, HG_NONE, HG_NORM_NONE, 1.0f),
	              hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

/* 64 addends in [-1, 1] a sum, and the same with the other sign behind them. */
void innocent_cancelling(struct world *w)
{
	enum { HALF = 64, WIDE = 16 };
	float x[2 * HALF][WIDE];
	world_policy(w, hg_policy_fp16_naive(), 1.0f);
	world_full(w, 4, 2 * HALF);
	for (int k = 0; k < HALF; k++)
		for (int c = 0; c < WIDE; c++) {
			x[k][c] = (float)(2.0 * test_uniform() - 1.0);
			x[HALF + k][c] = -x[k][c];
		}
	world_tensor(w, HG_F16, 2 * HALF, WIDE, x[0]);
	world_spoil(world_tensor(w, HG_F16, 4, WIDE, NULL), -1, -1, 1.0f);
	world_param(w, "w", WIDE, WIDE, 0, 0.0f);
	for (int c = 0; c < WIDE; c++)
		world_set(w, "w", c, c, 1.0f);
	w->record = record_sum;
}

/* ---- zeros ---- */

void innocent_dead(struct world *w)
{
	town(w, "gcn");
	world_build(w);
	world_set(w, "conv0.bias", -1, -1, -100.0f);
}

void innocent_nothing(struct world *w)
{
	world_model(w, "gin", 2, world_ring(w, NODES));
	world_build(w);
}

void innocent_one_label(struct world *w)
{
	town(w, "gat");
	world_label_only(w, LONER, 0);
	world_build(w);
}

/* ---- graphs ---- */

/* Every other node has one edge, from the next one; the rest have none. */
static void isolated(struct world *w, const char *model)
{
	int32_t dst[NODES / 2], src[NODES / 2];
	for (int i = 0; i < NODES / 2; i++) {
		dst[i] = 2 * i;
		src[i] = 2 * i + 1;
	}
	world_model(w, model, 2, world_graph(w, NODES, NODES, NODES / 2, dst, src, NULL));
	world_varied(w);
	world_build(w);
}

void innocent_isolated_gcn(struct world *w)
{
	isolated(w, "gcn");
}

void innocent_isolated_gin(struct world *w)
{
	isolated(w, "gin");
}

void innocent_isolated_gat(struct world *w)
{
	isolated(w, "gat");
}

static void empty_graph(struct world *w, hg_reduce reduce)
{
	static const int64_t sizes[] = {5, 0, 7};
	world_model(w, "gin", 2, world_batch(w, 3, sizes));
	world_varied(w);
	w->config.readout = (int)reduce;
	w->targets = 3;
	world_build(w);
}

void innocent_empty_sum(struct world *w)
{
	empty_graph(w, HG_REDUCE_SUM);
}

void innocent_empty_mean(struct world *w)
{
	empty_graph(w, HG_REDUCE_MEAN);
}

void innocent_empty_max(struct world *w)
{
	empty_graph(w, HG_REDUCE_MAX);
}

void innocent_one_node(struct world *w)
{
	static const int32_t zero[] = {0};
	world_model(w, "gcn", 2, world_graph(w, 1, 1, 1, zero, zero, NULL));
	world_varied(w);
	world_build(w);
}

/* ---- layers ---- */

static void dropout(struct world *w, const char *model)
{
	world_model(w, model, 2, world_ring(w, 200));
	world_varied(w);
	w->config.dropout = w->config.attention_dropout = 0.9f;
	world_build(w);
}

void innocent_dropout_gcn(struct world *w)
{
	dropout(w, "gcn");
}

void innocent_dropout_gat(struct world *w)
{
	dropout(w, "gat");
}

/* Scores of 30 and 0: exp(-30) = 1e-13 of a weight. */
void innocent_sharp(struct world *w)
{
	town(w, "gat");
	for (int i = 0; i < NODES; i++)
		w->x[i * IN] = i % 3 ? 0.0f : 30.0f;
	world_build(w);
	world_set(w, "conv0.weight", 0, -1, 0.0f);
	world_set(w, "conv0.weight", 0, 0, 1.0f);
	world_set(w, "conv0.att_src", 0, 0, 1.0f);
}

/* ---- hubs that are taken care of: U = `value` in column 1, `leaves` of them ---- */

static void hub(struct world *w, int64_t leaves, float value, hg_norm norm)
{
	world_model(w, "gcn", 2, world_star(w, leaves));
	w->config.norm = norm;
	world_constant(w);
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", 0, 1, value);
}

void innocent_promoted(struct world *w)
{
	world_policy(w, hg_policy_fp16(), 64.0f);
	w->policy.unproved = HG_UNPROVED_PROMOTE;
	hub(w, 4000, 32.0f, HG_NORM_NONE);
}

void innocent_negative(struct world *w)
{
	world_policy(w, hg_policy_fp16(), 64.0f);
	hub(w, 4000, -32.0f, HG_NORM_NONE);
}

void innocent_f32_hub(struct world *w)
{
	world_policy(w, hg_policy_fp16(), 64.0f);
	hub(w, 4096, 1.0f, HG_NORM_RIGHT);
}

void innocent_discretized_hub(struct world *w)
{
	world_policy(w, hg_policy_fp16_discretized(), 64.0f);
	hub(w, 4096, 1.0f, HG_NORM_RIGHT);
}

/* ---- fp32 and training ---- */

static void fp32(struct world *w, const char *model)
{
	world_policy(w, hg_policy_fp32(), 1.0f);
	town(w, model);
	world_build(w);
}

void innocent_fp32_gcn(struct world *w)
{
	fp32(w, "gcn");
}

void innocent_fp32_gat(struct world *w)
{
	fp32(w, "gat");
}

static void trained(struct world *w, const char *model)
{
	world_model(w, model, 2, world_ring(w, 60));
	world_varied(w);
	world_build(w);
	w->steps = 200;
}

void innocent_trained_gcn(struct world *w)
{
	trained(w, "gcn");
}

void innocent_trained_gin(struct world *w)
{
	trained(w, "gin");
}

void innocent_trained_gat(struct world *w)
{
	trained(w, "gat");
}

void innocent_trained_naive(struct world *w)
{
	world_policy(w, hg_policy_fp16_naive(), 1024.0f);
	trained(w, "gcn");
}
