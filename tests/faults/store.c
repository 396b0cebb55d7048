/* The result is beyond f16, however it is made: the narrowing at the store overflows. In good
 * health the large number is small. */
#include <math.h>
#include <stdio.h>

#include "faults/fault.h"
#include "harness.h"

enum { SICK = 4000, HEALTHY = 100, NODES = 12, LONER = NODES - 1 };

static void right(struct world *w, struct among row, struct among col, double wide)
{
	w->answer.row = row;
	w->answer.col = col;
	w->answer.wide = wide;
}

/* ---- hubs ---- */

/* U = 32 in column 1 of every node, and 4000 of them are 128000. */
static void hub_sum(struct world *w, const struct fault *f, hg_policy policy)
{
	const int layer = fault_layer(f);
	const int64_t n = w->sick ? SICK : HEALTHY;
	char name[32];
	world_policy(w, policy, 1024.0f);
	world_model(w, f->model, 2, world_star(w, n));
	w->config.norm = HG_NORM_NONE;
	world_constant(w);
	world_build(w);
	world_ones_below(w, layer);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	world_set(w, name, -1, -1, 0.0f);
	world_set(w, name, layer ? -1 : 0, 1, layer ? 32.0f / (float)HIDDEN : 32.0f);
	right(w, only(0), only(1), 32.0 * (double)n);
	w->answer.terms = n;
	w->answer.top = 32.0;
}

void plant_hub_sum(struct world *w, const struct fault *f)
{
	hub_sum(w, f, hg_policy_fp16());
}

void plant_hub_sum_naive(struct world *w, const struct fault *f)
{
	hub_sum(w, f, hg_policy_fp16_naive());
}

/* 32 and 16 in turn: 96000. */
void plant_hub_sum_gin(struct world *w, const struct fault *f)
{
	const int64_t n = w->sick ? SICK : HEALTHY;
	world_policy(w, hg_policy_fp16(), 64.0f);
	world_model(w, f->model, 2, world_star(w, n));
	w->config.aggregate = HG_NORM_NONE;
	for (int64_t i = 0; i <= n; i++)
		w->x[i * IN] = i % 2 ? 1.0f : 0.5f;
	world_build(w);
	world_set(w, "conv0.mlp1.weight", -1, -1, 0.0f);
	world_set(w, "conv0.mlp1.weight", 0, 1, 32.0f);
	right(w, only(0), only(1), 24.0 * (double)n);
	w->answer.terms = n;
	w->answer.top = 32.0;
}

/* Nodes 5, 6, 7 say 20000, 20000, 45000 and the others 0: only node 6 sees all three, node 7 sees
 * 65000, which fits. */
void plant_big_neighbour(struct world *w, const struct fault *f)
{
	const float unit = w->sick ? 20000.0f : 20.0f;
	world_model(w, f->model, 2, world_ring(w, NODES));
	w->config.norm = HG_NORM_NONE;
	w->x[5 * IN] = w->x[6 * IN] = 1.0f;
	w->x[7 * IN] = 2.25f;
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", 0, 1, unit);
	right(w, only(6), only(1), 4.25 * (double)unit);
	w->answer.terms = 3;
	w->answer.top_row = 7;
	w->answer.top = 2.25 * (double)unit;
}

/* ---- products ---- */

/* Feature 2 of node 3, times 2 in column 5 and 0.01 elsewhere; the other features are below 1.1,
 * their weights below 1: less than 1 % of 120000. */
void plant_big_feature(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	world_varied(w);
	w->x[3 * IN + 2] = w->sick ? 60000.0f : 60.0f;
	world_build(w);
	world_set(w, "conv0.weight", 2, -1, 0.01f);
	world_set(w, "conv0.weight", 2, 5, 2.0f);
	right(w, only(3), only(5), 120000.0);
	w->answer.top = 120000.0;
}

/* The loner says 2 in column 0 of the input of layer l, all others 1: means over nodes that say the
 * same. Its features are (2, 0, ...), and layers below hand on column 0. */
static void one_and_two(struct world *w, int layers, int layer)
{
	char name[32];
	world_constant(w);
	w->x[LONER * IN] = 2.0f;
	world_build(w);
	for (int l = 0; l < layers; l++) {
		snprintf(name, sizeof name, "conv%d.weight", l);
		world_set(w, name, -1, -1, 0.0f);
		world_set(w, name, 0, 0, l < layer ? 1.0f : 0.1f);
	}
}

/* A weight of 40000 on it: 80000 at the loner, 40000 elsewhere. */
static void big_weight(struct world *w, const struct fault *f)
{
	const int layer = fault_layer(f);
	const float weight = w->sick ? 40000.0f : 4.0f;
	char name[32];
	world_model(w, f->model, layer + 1, world_ring(w, NODES));
	one_and_two(w, layer + 1, layer);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	world_set(w, name, 0, 1, weight);
	right(w, only(LONER), only(1), 2.0 * (double)weight);
	w->answer.top = 2.0 * (double)weight;
}

void plant_big_weight(struct world *w, const struct fault *f)
{
	big_weight(w, f);
}

void plant_big_weight_gat(struct world *w, const struct fault *f)
{
	char name[32];
	big_weight(w, f);
	snprintf(name, sizeof name, "%s.att_dst", f->layer);
	world_set(w, name, -1, -1, 0.0f);
	snprintf(name, sizeof name, "%s.att_src", f->layer);
	world_set(w, name, -1, -1, 0.0f);
}

/* Three heads of two columns each in the last layer, whose mean is the result: U is 2 at the loner
 * and 1 elsewhere in the last head's second column. */
void plant_big_heads(struct world *w, const struct fault *f)
{
	const float a = w->sick ? 40000.0f : 0.5f;
	world_model(w, f->model, 2, world_ring(w, NODES));
	w->config.out_heads = 3;
	one_and_two(w, 2, 1);
	world_set(w, "conv1.weight", 0, 0, 0.0f);
	world_set(w, "conv1.weight", 0, 5, 1.0f);
	world_set(w, "conv1.att_dst", -1, -1, 0.0f);
	world_set(w, "conv1.att_src", -1, -1, 0.0f);
	world_set(w, "conv1.att_dst", 0, 5, a);
	right(w, only(LONER), only(2), 2.0 * (double)a);
}

/* f32 ends at 3.4e38. */
void plant_big_weight_fp32(struct world *w, const struct fault *f)
{
	const float weight = w->sick ? 2e38f : 4.0f;
	(void)f;
	world_policy(w, hg_policy_fp32(), 1.0f);
	world_model(w, "gcn", 2, world_ring(w, NODES));
	one_and_two(w, 2, 1);
	world_set(w, "conv1.weight", 0, 1, weight);
	right(w, only(LONER), only(1), 2.0 * (double)weight);
}

/* Widths that are no whole vectors: what lies behind the last column is nobody's. */
void plant_big_weight_odd(struct world *w, const struct fault *f)
{
	const float weight = w->sick ? 40000.0f : 4.0f;
	world_model(w, f->model, 2, world_ring(w, NODES));
	w->config.hidden = 7;
	w->config.out_features = 5;
	one_and_two(w, 2, 1);
	world_set(w, "conv1.weight", 0, 4, weight);
	right(w, only(LONER), only(4), 2.0 * (double)weight);
}

/* 2 * 5000 + 60000 at the loner, 5000 + 60000 elsewhere, which fits. */
void plant_big_bias(struct world *w, const struct fault *f)
{
	const float bias = w->sick ? 60000.0f : 6.0f, weight = w->sick ? 5000.0f : 5.0f;
	world_model(w, f->model, 2, world_ring(w, NODES));
	one_and_two(w, 2, 1);
	world_set(w, "conv1.weight", 0, 1, weight);
	world_set(w, "conv1.bias", 0, 1, bias);
	right(w, only(LONER), only(1), 2.0 * (double)weight + (double)bias);
}

/* ---- GIN ---- */

/* U = X W is the first feature, in column 1. */
static void gin(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	w->policy.loss_scale.init_scale = 64.0f;
}

static void first_into_one(struct world *w)
{
	world_build(w);
	world_set(w, "conv0.mlp1.weight", -1, -1, 0.0f);
	world_set(w, "conv0.mlp1.weight", 0, 1, 1.0f);
}

/* (1 + eps) 1000 + 1000 at the loner, whose only neighbour is itself; (1 + eps) + 1 elsewhere. */
void plant_big_eps(struct world *w, const struct fault *f)
{
	const float eps = w->sick ? 100.0f : 0.5f;
	gin(w, f);
	world_constant(w);
	w->x[LONER * IN] = 1000.0f;
	first_into_one(w);
	world_set(w, "conv0.eps", 0, 0, eps);
	right(w, only(LONER), only(1), (2.0 + (double)eps) * 1000.0);
}

/* lambda 10 at the loner, lambda 1 elsewhere: means. */
void plant_big_lambda(struct world *w, const struct fault *f)
{
	const float lambda = w->sick ? 10000.0f : 0.5f;
	gin(w, f);
	w->config.lambda = lambda;
	world_constant(w);
	w->x[LONER * IN] = 10.0f;
	first_into_one(w);
	right(w, only(LONER), only(1), 10.0 * (double)lambda);
	w->answer.terms = 1;
	w->answer.top_row = LONER;
}

/* One of n = 12 nodes says 1, the others 0: it lies sqrt(n - 1) deviations from the mean, they 1 /
 * sqrt(n - 1). The first batch norm makes that 3.3 and, behind relu, 0; the second one the same
 * again, times its gain. */
void plant_big_gamma(struct world *w, const struct fault *f)
{
	const float gain = w->sick ? 60000.0f : 2.0f;
	gin(w, f);
	w->x[LONER * IN] = 1.0f;
	first_into_one(w);
	world_set(w, "conv0.mlp2.weight", -1, -1, 0.0f);
	world_set(w, "conv0.mlp2.weight", 1, 1, 1.0f);
	world_set(w, "conv0.bn2.gamma", 0, 1, gain);
	right(w, only(LONER), only(1), (double)gain * sqrt((double)NODES - 1.0));
}

/* Behind a batch norm with gain 0 and beta 1 everybody says 1 in all 8 columns: 8 weights of 10000
 * are 80000, at every node. */
void plant_big_mlp(struct world *w, const struct fault *f)
{
	gin(w, f);
	world_varied(w);
	world_build(w);
	world_set(w, "conv1.bn1.gamma", -1, -1, 0.0f);
	world_set(w, "conv1.bn1.beta", -1, -1, 1.0f);
	world_set(w, "conv1.mlp2.weight", -1, 3, w->sick ? 10000.0f : 1.0f);
	right(w, anywhere(), only(3), w->sick ? 80000.0 : 8.0);
}

void plant_big_head(struct world *w, const struct fault *f)
{
	gin(w, f);
	world_varied(w);
	world_build(w);
	world_set(w, "conv1.bn2.gamma", -1, -1, 0.0f);
	world_set(w, "conv1.bn2.beta", -1, -1, 1.0f);
	world_set(w, "head.weight", -1, 1, w->sick ? 10000.0f : 1.0f);
	right(w, anywhere(), only(1), w->sick ? 80000.0 : 8.0);
}

/* The same with 2000 in column 3: graphs of 8, 40 and 8 nodes sum up to 16000, 80000, 16000. */
void plant_big_readout(struct world *w, const struct fault *f)
{
	static const int64_t sizes[] = {8, 40, 8};
	const float value = w->sick ? 2000.0f : 2.0f;
	world_policy(w, hg_policy_fp16(), 64.0f);
	world_model(w, f->model, 2, world_batch(w, 3, sizes));
	world_varied(w);
	w->config.readout = HG_REDUCE_SUM;
	w->targets = 3;
	world_build(w);
	world_set(w, "conv0.bn2.gamma", -1, -1, 0.0f);
	world_set(w, "conv0.bn2.beta", 0, 3, value);
	right(w, only(1), only(3), 40.0 * (double)value);
	w->answer.terms = 40;
	w->answer.top = (double)value;
}

/* ---- GAT: two heads of four columns; U = X W is the first feature, in the first column of a head:
 * 2 at the loner, 1 elsewhere ---- */

static void gat(struct world *w, const struct fault *f, int64_t col)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	world_constant(w);
	w->x[LONER * IN] = 2.0f;
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", 0, col, 1.0f);
	world_set(w, "conv0.att_dst", -1, -1, 0.0f);
	world_set(w, "conv0.att_src", -1, -1, 0.0f);
}

/* 2 * 40000 in the loner's score of head 0 */
void plant_big_attention(struct world *w, const struct fault *f)
{
	const float a = w->sick ? 40000.0f : 0.5f;
	gat(w, f, 0);
	world_set(w, "conv0.att_dst", 0, 0, a);
	right(w, only(LONER), only(0), 2.0 * (double)a);
}

/* Both scores of the loner are 40000 in head 1, everybody else's 20000: the sum on the loner's self
 * loop, the last edge, is 80000. */
void plant_big_score(struct world *w, const struct fault *f)
{
	const float a = w->sick ? 20000.0f : 0.1f;
	gat(w, f, HIDDEN / 2);
	world_set(w, "conv0.att_dst", 0, HIDDEN / 2, a);
	world_set(w, "conv0.att_src", 0, HIDDEN / 2, a);
	right(w, only(hg_graph_edges(w->graph[0]) - 1), only(1), 4.0 * (double)a);
	w->answer.edge_row = w->answer.edge_col = LONER;
}

/* ---- features and dropout of a GCN ---- */

/* Each node has one feature, node 4 feature 7 with a large value; its weights are 0.1, but 2 in
 * column 3. */
void plant_big_sparse(struct world *w, const struct fault *f)
{
	int32_t row[NODES], col[NODES];
	float value[NODES];
	const float big = w->sick ? 60000.0f : 6.0f;
	world_model(w, f->model, 2, world_ring(w, NODES));
	for (int i = 0; i < NODES; i++) {
		row[i] = i;
		col[i] = i == 4 ? 7 : i == 7 ? 4 : i;
		value[i] = i == 4 ? big : 1.0f;
	}
	world_sparse(w, IN, NODES, row, col, value);
	world_build(w);
	world_set(w, "conv0.weight", 7, -1, 0.1f);
	world_set(w, "conv0.weight", 7, 3, 2.0f);
	right(w, only(4), only(3), 2.0 * (double)big);
	w->answer.terms = 1;
	w->answer.top_row = 7;
}

/* Layer 0 says its bias, 40000 in column 3 alone; what dropout with p = 1/2 keeps of it is 80000.
 * (That it keeps none of 12 has the probability 2^-12, once for all runs.) */
void plant_big_dropout(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	w->config.dropout = 0.5f;
	world_constant(w);
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.bias", 0, 3, w->sick ? 40000.0f : 4.0f);
	right(w, anywhere(), only(3), w->sick ? 80000.0 : 8.0);
}
