/* A result of a model's layer is too large for f16, so that storing it overflows however it is
 * summed. Without the fault, the large number is a small one. */
#include <math.h>
#include <stdio.h>

#include "faults/fault.h"
#include "harness.h"

enum { MANY = 4000, FEW = 100, NODES = 12, LONE = NODES - 1 };

static void expect(struct setup *s, struct range row, struct range col, double wide)
{
	s->expected.row = row;
	s->expected.col = col;
	s->expected.wide = wide;
}

/* ---- hubs ---- */

/* U is 32 in column 1 of every node, and the sum of 4000 neighbours is 128000. */
static void hub_sum(struct setup *s, const struct fault *f, hg_policy policy)
{
	const int layer = fault_layer(f);
	const int64_t n = s->planted ? MANY : FEW;
	char name[32];
	setup_policy(s, policy, 1024.0f);
	setup_model(s, f->model, 2, setup_star(s, n));
	s->config.norm = HG_NORM_NONE;
	setup_constant(s);
	setup_build(s);
	setup_ones_below(s, layer);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	setup_set(s, name, -1, -1, 0.0f);
	setup_set(s, name, layer ? -1 : 0, 1, layer ? 32.0f / (float)HIDDEN : 32.0f);
	expect(s, only(0), only(1), 32.0 * (double)n);
	s->expected.terms = n;
	s->expected.top = 32.0;
}

void plant_hub_sum(struct setup *s, const struct fault *f)
{
	hub_sum(s, f, hg_policy_fp16());
}

void plant_hub_sum_naive(struct setup *s, const struct fault *f)
{
	hub_sum(s, f, hg_policy_fp16_naive());
}

/* 4000 neighbours have the values 32 and 16 in turn, and their sum is 96000. */
void plant_hub_sum_gin(struct setup *s, const struct fault *f)
{
	const int64_t n = s->planted ? MANY : FEW;
	setup_policy(s, hg_policy_fp16(), 64.0f);
	setup_model(s, f->model, 2, setup_star(s, n));
	s->config.aggregate = HG_NORM_NONE;
	for (int64_t i = 0; i <= n; i++)
		s->x[i * IN] = i % 2 ? 1.0f : 0.5f;
	setup_build(s);
	setup_set(s, "conv0.mlp1.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.mlp1.weight", 0, 1, 32.0f);
	expect(s, only(0), only(1), 24.0 * (double)n);
	s->expected.terms = n;
	s->expected.top = 32.0;
}

/* Nodes 5, 6, 7 have the values 20000, 20000, 45000, and the others 0. Only node 6 sums all three;
 * node 7 gets 65000, which fits. */
void plant_big_neighbour(struct setup *s, const struct fault *f)
{
	const float unit = s->planted ? 20000.0f : 20.0f;
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	s->config.norm = HG_NORM_NONE;
	s->x[5 * IN] = s->x[6 * IN] = 1.0f;
	s->x[7 * IN] = 2.25f;
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, 1, unit);
	expect(s, only(6), only(1), 4.25 * (double)unit);
	s->expected.terms = 3;
	s->expected.top_row = 7;
	s->expected.top = 2.25 * (double)unit;
}

/* ---- products ---- */

/* Feature 2 of node 3 is large, and its weight is 2 in column 5 and 0.01 elsewhere. The other
 * features are below 1.1 and their weights below 1, which adds less than 1 % of 120000. */
void plant_big_feature(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	setup_varied(s);
	s->x[3 * IN + 2] = s->planted ? 60000.0f : 60.0f;
	setup_build(s);
	setup_set(s, "conv0.weight", 2, -1, 0.01f);
	setup_set(s, "conv0.weight", 2, 5, 2.0f);
	expect(s, only(3), only(5), 120000.0);
	s->expected.top = 120000.0;
}

/* In column 0 of the input of `layer`, the lone node has the value 2 and all others 1. These are
 * their features, too: the layers before it keep column 0, because the neighbours of a node have
 * the same value as the node. */
static void one_and_two(struct setup *s, int layers, int layer)
{
	char name[32];
	setup_constant(s);
	s->x[LONE * IN] = 2.0f;
	setup_build(s);
	for (int l = 0; l < layers; l++) {
		snprintf(name, sizeof name, "conv%d.weight", l);
		setup_set(s, name, -1, -1, 0.0f);
		setup_set(s, name, 0, 0, l < layer ? 1.0f : 0.1f);
	}
}

/* A weight of 40000 makes 80000 of the lone node's value, and 40000 of all others. */
static void big_weight(struct setup *s, const struct fault *f)
{
	const int layer = fault_layer(f);
	const float weight = s->planted ? 40000.0f : 4.0f;
	char name[32];
	setup_model(s, f->model, layer + 1, setup_ring(s, NODES));
	one_and_two(s, layer + 1, layer);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	setup_set(s, name, 0, 1, weight);
	expect(s, only(LONE), only(1), 2.0 * (double)weight);
	s->expected.top = 2.0 * (double)weight;
}

void plant_big_weight(struct setup *s, const struct fault *f)
{
	big_weight(s, f);
}

void plant_big_weight_gat(struct setup *s, const struct fault *f)
{
	char name[32];
	big_weight(s, f);
	snprintf(name, sizeof name, "%s.att_dst", f->layer);
	setup_set(s, name, -1, -1, 0.0f);
	snprintf(name, sizeof name, "%s.att_src", f->layer);
	setup_set(s, name, -1, -1, 0.0f);
}

/* The last layer has three heads of two columns each, and its result is their mean. In the second
 * column of the last head, U is 2 at the lone node and 1 elsewhere. */
void plant_big_heads(struct setup *s, const struct fault *f)
{
	const float a = s->planted ? 40000.0f : 0.5f;
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	s->config.out_heads = 3;
	one_and_two(s, 2, 1);
	setup_set(s, "conv1.weight", 0, 0, 0.0f);
	setup_set(s, "conv1.weight", 0, 5, 1.0f);
	setup_set(s, "conv1.att_dst", -1, -1, 0.0f);
	setup_set(s, "conv1.att_src", -1, -1, 0.0f);
	setup_set(s, "conv1.att_dst", 0, 5, a);
	expect(s, only(LONE), only(2), 2.0 * (double)a);
}

/* The largest f32 is 3.4e38. */
void plant_big_weight_fp32(struct setup *s, const struct fault *f)
{
	const float weight = s->planted ? 2e38f : 4.0f;
	(void)f;
	setup_policy(s, hg_policy_fp32(), 1.0f);
	setup_model(s, "gcn", 2, setup_ring(s, NODES));
	one_and_two(s, 2, 1);
	setup_set(s, "conv1.weight", 0, 1, weight);
	expect(s, only(LONE), only(1), 2.0 * (double)weight);
}

/* These widths are not multiples of a vector's width, so that a vector has elements after the last
 * column. The doctor must not report one of them. */
void plant_big_weight_odd(struct setup *s, const struct fault *f)
{
	const float weight = s->planted ? 40000.0f : 4.0f;
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	s->config.hidden = 7;
	s->config.out_features = 5;
	one_and_two(s, 2, 1);
	setup_set(s, "conv1.weight", 0, 4, weight);
	expect(s, only(LONE), only(4), 2.0 * (double)weight);
}

/* The result is 2 * 5000 + 60000 at the lone node, and 5000 + 60000 elsewhere, which fits. */
void plant_big_bias(struct setup *s, const struct fault *f)
{
	const float bias = s->planted ? 60000.0f : 6.0f, weight = s->planted ? 5000.0f : 5.0f;
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	one_and_two(s, 2, 1);
	setup_set(s, "conv1.weight", 0, 1, weight);
	setup_set(s, "conv1.bias", 0, 1, bias);
	expect(s, only(LONE), only(1), 2.0 * (double)weight + (double)bias);
}

/* ---- GIN ---- */

static void gin_model(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	s->policy.loss_scale.init_scale = 64.0f;
}

/* Column 1 of U = X W is the first feature. */
static void build_with_first_feature(struct setup *s)
{
	setup_build(s);
	setup_set(s, "conv0.mlp1.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.mlp1.weight", 0, 1, 1.0f);
}

/* The result is (1 + eps) 1000 + 1000 at the lone node, whose only neighbour is itself, and (1 +
 * eps) + 1 elsewhere. */
void plant_big_eps(struct setup *s, const struct fault *f)
{
	const float eps = s->planted ? 100.0f : 0.5f;
	gin_model(s, f);
	setup_constant(s);
	s->x[LONE * IN] = 1000.0f;
	build_with_first_feature(s);
	setup_set(s, "conv0.eps", 0, 0, eps);
	expect(s, only(LONE), only(1), (2.0 + (double)eps) * 1000.0);
}

/* The results are means times lambda: 10 lambda at the lone node and lambda elsewhere. */
void plant_big_lambda(struct setup *s, const struct fault *f)
{
	const float lambda = s->planted ? 10000.0f : 0.5f;
	gin_model(s, f);
	s->config.lambda = lambda;
	setup_constant(s);
	s->x[LONE * IN] = 10.0f;
	build_with_first_feature(s);
	expect(s, only(LONE), only(1), 10.0 * (double)lambda);
	s->expected.terms = 1;
	s->expected.top_row = LONE;
}

/* One of n = 12 nodes has the value 1 and the others 0. It is sqrt(n - 1) standard deviations from
 * the mean, the others 1 / sqrt(n - 1). The first batch norm with relu makes 3.3 and 0 of them. The
 * second one makes sqrt(n - 1) of it again, times its gain. */
void plant_big_gamma(struct setup *s, const struct fault *f)
{
	const float gain = s->planted ? 60000.0f : 2.0f;
	gin_model(s, f);
	s->x[LONE * IN] = 1.0f;
	build_with_first_feature(s);
	setup_set(s, "conv0.mlp2.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.mlp2.weight", 1, 1, 1.0f);
	setup_set(s, "conv0.bn2.gamma", 0, 1, gain);
	expect(s, only(LONE), only(1), (double)gain * sqrt((double)NODES - 1.0));
}

/* The batch norm `norm` before a product has gain 0 and beta 1, so that every node has 1 in all 8
 * columns. In column `col` of the product the sum of 8 weights of 10000 is 80000, at every node. */
static void big_product(struct setup *s, const struct fault *f, const char *norm,
                        const char *weight, int64_t col)
{
	char name[32];
	gin_model(s, f);
	setup_varied(s);
	setup_build(s);
	(void)snprintf(name, sizeof name, "%s.gamma", norm);
	setup_set(s, name, -1, -1, 0.0f);
	(void)snprintf(name, sizeof name, "%s.beta", norm);
	setup_set(s, name, -1, -1, 1.0f);
	setup_set(s, weight, -1, col, s->planted ? 10000.0f : 1.0f);
	expect(s, any(), only((int)col), s->planted ? 80000.0 : 8.0);
}

void plant_big_mlp(struct setup *s, const struct fault *f)
{
	big_product(s, f, "conv1.bn1", "conv1.mlp2.weight", 3);
}

void plant_big_head(struct setup *s, const struct fault *f)
{
	big_product(s, f, "conv1.bn2", "head.weight", 1);
}

/* A batch norm makes 2000 at every node in column 3. The sums over graphs of 8, 40 and 8 nodes are
 * 16000, 80000 and 16000. */
void plant_big_readout(struct setup *s, const struct fault *f)
{
	static const int64_t sizes[] = {8, 40, 8};
	const float value = s->planted ? 2000.0f : 2.0f;
	setup_policy(s, hg_policy_fp16(), 64.0f);
	setup_model(s, f->model, 2, setup_batch(s, 3, sizes));
	setup_varied(s);
	s->config.readout = HG_REDUCE_SUM;
	s->targets = 3;
	setup_build(s);
	setup_set(s, "conv0.bn2.gamma", -1, -1, 0.0f);
	setup_set(s, "conv0.bn2.beta", 0, 3, value);
	expect(s, only(1), only(3), 40.0 * (double)value);
	s->expected.terms = 40;
	s->expected.top = (double)value;
}

/* ---- GAT with two heads of four columns ---- */

/* Column `col` of U = X W is the first feature: 2 at the lone node and 1 elsewhere. */
static void build_gat(struct setup *s, const struct fault *f, int64_t col)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	setup_constant(s);
	s->x[LONE * IN] = 2.0f;
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, col, 1.0f);
	setup_set(s, "conv0.att_dst", -1, -1, 0.0f);
	setup_set(s, "conv0.att_src", -1, -1, 0.0f);
}

/* The lone node's score of head 0 is 2 * 40000. */
void plant_big_attention(struct setup *s, const struct fault *f)
{
	const float a = s->planted ? 40000.0f : 0.5f;
	build_gat(s, f, 0);
	setup_set(s, "conv0.att_dst", 0, 0, a);
	expect(s, only(LONE), only(0), 2.0 * (double)a);
}

/* In head 1 both scores of the lone node are 40000, and those of the others 20000. Their sum on the
 * lone node's self loop, the last edge, is 80000. */
void plant_big_score(struct setup *s, const struct fault *f)
{
	const float a = s->planted ? 20000.0f : 0.1f;
	build_gat(s, f, HIDDEN / 2);
	setup_set(s, "conv0.att_dst", 0, HIDDEN / 2, a);
	setup_set(s, "conv0.att_src", 0, HIDDEN / 2, a);
	expect(s, only(hg_graph_edges(s->graph[0]) - 1), only(1), 4.0 * (double)a);
	s->expected.edge_row = s->expected.edge_col = LONE;
}

/* ---- features and dropout of a GCN ---- */

/* Each node has one feature. Node 4 has feature 7, with a large value. The weights of feature 7 are
 * 0.1, except 2 in column 3. */
void plant_big_sparse(struct setup *s, const struct fault *f)
{
	struct coo features = coo_empty(NODES, IN);
	const float big = s->planted ? 60000.0f : 6.0f;
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	for (int i = 0; i < NODES; i++)
		coo_add_weighted(&features, i, i == 4 ? 7 : i == 7 ? 4 : i, i == 4 ? big : 1.0f);
	setup_sparse(s, IN, features);
	setup_build(s);
	setup_set(s, "conv0.weight", 7, -1, 0.1f);
	setup_set(s, "conv0.weight", 7, 3, 2.0f);
	expect(s, only(4), only(3), 2.0 * (double)big);
	s->expected.terms = 1;
	s->expected.top_row = 7;
}

/* The result of layer 0 is its bias, 40000 in column 3 alone. Dropout with p = 1/2 doubles the
 * elements that it keeps, to 80000. (That it keeps none of 12 has the probability 2^-12; the seed
 * of dropout is the same in all runs.) */
void plant_big_dropout(struct setup *s, const struct fault *f)
{
	setup_model(s, f->model, 2, setup_ring(s, NODES));
	s->config.dropout = 0.5f;
	setup_constant(s);
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.bias", 0, 3, s->planted ? 40000.0f : 4.0f);
	expect(s, any(), only(3), s->planted ? 80000.0 : 8.0);
}
