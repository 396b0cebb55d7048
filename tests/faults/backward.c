/* A gradient in a model is too large for f16: at the loss scale S in force, although it fits at 1,
 * or at 1 as well.
 *
 * Only the lone node, whose only neighbour is itself, has a label. So the gradients of all other
 * nodes are 0. The gradient of its two logits is (-a, a) S with a in (0, 1): near 1/2 if its logits
 * are nearly equal, and near 1 if the wrong logit is much larger.
 *
 * Many planters make one input of a layer, unit u, 2^-10 at every node: the layer before it has
 * weights 0 and this bias, or a norm has gain 0 and this beta. Forward, such a unit changes little.
 * But if its weights in the layer are (-v, v), its gradient at the lone node is 2 a v S, larger
 * than all others. The unit is positive, so that its relu passes this gradient on. */
#include <math.h>
#include <stdio.h>

#include "faults/fault.h"

enum { NODES = 12, LONE = NODES - 1, UNIT = 3 };

static void expect(struct setup *s, struct range row, struct range col)
{
	s->expected.row = row;
	s->expected.col = col;
}

static void scale(struct setup *s, float value)
{
	s->policy.loss_scale.init_scale = value;
}

static void ring_model(struct setup *s, const struct fault *f, int layers)
{
	setup_model(s, f->model, layers, setup_ring(s, NODES));
	setup_varied(s);
	setup_label_only(s, LONE, 0);
}

/* ---- through weights ---- */

/* The initial weights are moderate, so a is near 1/2, and 2^20 a overflows. */
void plant_scale_xent(struct setup *s, const struct fault *f)
{
	ring_model(s, f, 2);
	scale(s, s->planted ? 0x1p20f : 0x1p10f);
	setup_build(s);
	expect(s, only(LONE), any());
}

static const float TINY = 0x1p-10f;

/* Makes unit UNIT of the input of a layer of a GCN or GAT tiny. Its weights are (-v, v). */
static void tiny_unit(struct setup *s, int layer, float v)
{
	char name[32];
	setup_build(s);
	snprintf(name, sizeof name, "conv%d.weight", layer - 1);
	setup_set(s, name, -1, UNIT, 0.0f);
	snprintf(name, sizeof name, "conv%d.bias", layer - 1);
	setup_set(s, name, 0, UNIT, TINY);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	setup_set(s, name, UNIT, 0, -v);
	setup_set(s, name, UNIT, 1, v);
	expect(s, only(LONE), only(UNIT));
}

/* The logit of the wrong class is larger by 20, so that a is 1 up to 2e-9. */
static void favour_wrong_class(struct setup *s, const char *bias)
{
	setup_set(s, bias, 0, 0, -10.0f);
	setup_set(s, bias, 0, 1, 10.0f);
}

/* The gradient is 2 * 40 * 2^14 a = 1.3e6 a, and at loss scale 1 it is 80 a. */
static void scale_linear(struct setup *s, const struct fault *f)
{
	const int layer = fault_layer(f);
	ring_model(s, f, layer + 1);
	scale(s, s->planted ? 0x1p14f : 0x1p6f);
	tiny_unit(s, layer, 40.0f);
}

void plant_scale_linear(struct setup *s, const struct fault *f)
{
	scale_linear(s, f);
}

void plant_scale_linear_gat(struct setup *s, const struct fault *f)
{
	scale_linear(s, f);
}

/* The gradient is 2 * 60000 at loss scale 1. */
static void explode_linear(struct setup *s, const struct fault *f)
{
	const int layer = fault_layer(f);
	char bias[32];
	ring_model(s, f, layer + 1);
	scale(s, layer == 2 ? 4.0f : 1.0f);
	tiny_unit(s, layer, s->planted ? 60000.0f : 4.0f);
	snprintf(bias, sizeof bias, "conv%d.bias", layer);
	favour_wrong_class(s, bias);
}

void plant_explode_linear(struct setup *s, const struct fault *f)
{
	explode_linear(s, f);
}

void plant_explode_gat(struct setup *s, const struct fault *f)
{
	explode_linear(s, f);
}

/* The same for the scores of a GIN. A batch norm with gain 0 makes the unit tiny. */
static void tiny_head_unit(struct setup *s, const struct fault *f, float v)
{
	ring_model(s, f, 2);
	setup_build(s);
	setup_set(s, "conv1.bn2.gamma", 0, UNIT, 0.0f);
	setup_set(s, "conv1.bn2.beta", 0, UNIT, TINY);
	setup_set(s, "head.weight", UNIT, 0, -v);
	setup_set(s, "head.weight", UNIT, 1, v);
	expect(s, only(LONE), only(UNIT));
}

void plant_scale_head(struct setup *s, const struct fault *f)
{
	scale(s, s->planted ? 0x1p14f : 0x1p6f);
	tiny_head_unit(s, f, 40.0f);
}

void plant_explode_head(struct setup *s, const struct fault *f)
{
	scale(s, 2.0f);
	tiny_head_unit(s, f, s->planted ? 60000.0f : 4.0f);
	favour_wrong_class(s, "head.bias");
}

/* The batch norm gives all rows a part of the lone node's gradient. Times 20000, the gradient of
 * the tiny unit overflows in several rows, which depend on the initial weights. */
void plant_scale_mlp(struct setup *s, const struct fault *f)
{
	ring_model(s, f, 2);
	scale(s, s->planted ? 0x1p14f : 1.0f);
	setup_build(s);
	setup_set(s, "conv0.bn2.gamma", 0, UNIT, 0.0f);
	setup_set(s, "conv0.bn2.beta", 0, UNIT, TINY);
	setup_set(s, "conv1.mlp1.weight", UNIT, -1, 0.0f);
	setup_set(s, "conv1.mlp1.weight", UNIT, 2, 20000.0f);
	expect(s, any(), only(UNIT));
}

/* ---- through neighbours ---- */

enum { LEAVES = 1000, FEW = 100 };

/* Every leaf copies the hub. With logits 0 and labels 0, the gradient of each of n nodes is (-1/2,
 * 1/2) S / n. The gradient of the hub is the sum over its leaves: nearly S / 2. */
static void hub(struct setup *s, const struct fault *f, hg_policy policy)
{
	const int64_t leaves = s->planted ? LEAVES : FEW;
	const float loss_scale = s->planted ? 0x1p18f : 0x1p10f;
	setup_policy(s, policy, loss_scale);
	setup_model(s, f->model, 2, setup_fan(s, leaves));
	s->config.norm = HG_NORM_NONE;
	setup_varied(s);
	for (int64_t i = 0; i < s->nodes; i++)
		s->label[i] = 0;
	setup_build(s);
	setup_set(s, "conv1.weight", -1, -1, 0.0f);
	expect(s, only(0), any());
	s->expected.terms = leaves;
	s->expected.top = 0.5 * (double)loss_scale / (double)s->nodes;
}

void plant_scale_hub(struct setup *s, const struct fault *f)
{
	hub(s, f, hg_policy_fp16());
}

void plant_scale_hub_naive(struct setup *s, const struct fault *f)
{
	hub(s, f, hg_policy_fp16_naive());
}

/* U = (0, 1000) at every node, so that the lone node's logits favour class 1 and a = 1. The
 * gradient of the attention weight of its self loop, the last edge, is <(-S, S), U> = 1000 S. */
void plant_scale_edge(struct setup *s, const struct fault *f)
{
	const float loss_scale = s->planted ? 0x1p10f : 0x1p4f;
	ring_model(s, f, 2);
	setup_constant(s);
	scale(s, loss_scale);
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.bias", 0, 0, 1.0f);
	setup_set(s, "conv1.weight", -1, -1, 0.0f);
	setup_set(s, "conv1.weight", 0, 1, 1000.0f);
	setup_set(s, "conv1.att_dst", -1, -1, 0.0f);
	setup_set(s, "conv1.att_src", -1, -1, 0.0f);
	expect(s, only(hg_graph_edges(s->graph[0]) - 1), only(0));
	s->expected.edge_row = s->expected.edge_col = LONE;
	s->expected.wide = 1000.0 * (double)loss_scale;
}

/* Of three graphs only graph 1 has a label. Its scores are the sum of the scores of two readouts,
 * one per layer. The unit is tiny in the second layer, whose scores have the weights (-v, v). */
void plant_scale_readout(struct setup *s, const struct fault *f)
{
	static const int64_t sizes[] = {8, 12, 6};
	setup_model(s, f->model, 2, setup_batch(s, 3, sizes));
	setup_varied(s);
	scale(s, s->planted ? 0x1p14f : 0x1p6f);
	s->config.readout = HG_REDUCE_MEAN;
	s->targets = 3;
	setup_label_only(s, 1, 0);
	setup_build(s);
	setup_set(s, "conv1.weight", -1, UNIT, 0.0f);
	setup_set(s, "conv1.bias", 0, UNIT, TINY);
	setup_set(s, "conv1.head.weight", UNIT, 0, -40.0f);
	setup_set(s, "conv1.head.weight", UNIT, 1, 40.0f);
	expect(s, only(1), only(UNIT));
}

/* All 8 units are tiny. Their gradients at the lone node are 2 v S = 40960, and dropout with p =
 * 1/2 doubles them where it has kept the unit. (That it keeps none of 8 has the probability 2^-8;
 * the seed of dropout is the same in all runs.) */
void plant_scale_dropout(struct setup *s, const struct fault *f)
{
	ring_model(s, f, 2);
	scale(s, s->planted ? 0x1p10f : 0x1p5f);
	s->config.dropout = 0.5f;
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.bias", -1, -1, TINY);
	setup_set(s, "conv1.weight", -1, 0, -20.0f);
	setup_set(s, "conv1.weight", -1, 1, 20.0f);
	favour_wrong_class(s, "conv1.bias");
	expect(s, only(LONE), any());
	s->expected.wide = 4.0 * 20.0 * (double)s->policy.loss_scale.init_scale;
}

void plant_scale_train(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	setup_varied(s);
	scale(s, s->planted ? 0x1p24f : 0x1p10f);
	setup_build_train(s);
}
