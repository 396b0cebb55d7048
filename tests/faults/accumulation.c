/* A partial sum in f16 is beyond it although the result would fit: the sum is scaled after it was
 * made, or its terms cancel.
 *
 * Hubs have 4000 neighbours (100 in good health) that all say the same, so that the mean is what
 * they say, and k of them make k times that. */
#include <math.h>
#include <stdio.h>

#include "faults/fault.h"
#include "harness.h"

enum { SICK = 4000, HEALTHY = 100 };

static int64_t leaves_of(const struct world *w)
{
	return w->sick ? SICK : HEALTHY;
}

/* term: what the hub adds up, in order; factor: what the sum is multiplied by. */
static void right(struct world *w, int64_t row, int64_t col, int64_t n, const double *term,
                  double factor)
{
	double top = 0.0, sum = 0.0;
	for (int64_t k = 0; k < n; k++) {
		top = fmax(top, fabs(factor * term[k]));
		sum += factor * term[k];
	}
	w->answer.row = only(row);
	w->answer.col = only(col);
	w->answer.terms = n;
	w->answer.top = top;
	w->answer.ended = world_half_sum_ends(n, term);
	w->answer.wide = sum;
}

/* U = 32 at every node, in one column of layer l: norm RIGHT gives the mean, 32; BOTH 32 n /
 * sqrt(n), the leaves' degrees being 1. */
void plant_hub_mean(struct world *w, const struct fault *f)
{
	const int layer = fault_layer(f);
	const int64_t n = leaves_of(w);
	double term[SICK];
	char name[32];
	world_policy(w, hg_policy_fp16_naive(), 1024.0f);
	world_model(w, f->model, layer < 2 ? 2 : 3, world_star(w, n));
	w->config.norm = layer == 1 ? HG_NORM_BOTH : HG_NORM_RIGHT;
	world_constant(w);
	world_build(w);
	world_ones_below(w, layer);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	world_set(w, name, -1, -1, 0.0f);
	world_set(w, name, layer ? -1 : 0, 1, layer ? 32.0f / (float)HIDDEN : 32.0f);
	for (int64_t k = 0; k < n; k++)
		term[k] = 32.0;
	right(w, 0, 1, n, term, 1.0 / (layer == 1 ? sqrt((double)n) : (double)n));
}

/* Odd nodes say 32, even ones 16. The mean over as many of each is 24; what comes before the mean
 * is lambda. */
static void hub_gin(struct world *w, const struct fault *f, hg_norm aggregate)
{
	const int64_t n = leaves_of(w);
	double term[SICK];
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_model(w, f->model, 2, world_star(w, n));
	w->config.aggregate = aggregate;
	w->config.lambda = aggregate == HG_NORM_NONE ? 1.0f / (float)n : 1.0f;
	for (int64_t i = 0; i <= n; i++)
		w->x[i * IN] = i % 2 ? 1.0f : 0.5f;
	world_build(w);
	world_set(w, "conv0.mlp1.weight", -1, -1, 0.0f);
	world_set(w, "conv0.mlp1.weight", 0, 1, 32.0f);
	for (int64_t k = 0; k < n; k++)
		term[k] = k % 2 ? 16.0 : 32.0;
	right(w, 0, 1, n, term, 1.0 / (double)n);
}

void plant_hub_gin(struct world *w, const struct fault *f)
{
	hub_gin(w, f, HG_NORM_RIGHT);
}

void plant_hub_gin_lambda(struct world *w, const struct fault *f)
{
	hub_gin(w, f, HG_NORM_NONE);
}

/* What enters layer 1 is beta of the batch norm before it, 32 in column 2: its gain is 0. The
 * product puts it into column 3. */
void plant_hub_gin_deep(struct world *w, const struct fault *f)
{
	const int64_t n = leaves_of(w);
	double term[SICK];
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_model(w, f->model, 2, world_star(w, n));
	world_build(w);
	world_set(w, "conv0.bn2.gamma", -1, -1, 0.0f);
	world_set(w, "conv0.bn2.beta", 0, 2, 32.0f);
	world_set(w, "conv1.mlp1.weight", -1, -1, 0.0f);
	world_set(w, "conv1.mlp1.weight", 2, 3, 1.0f);
	for (int64_t k = 0; k < n; k++)
		term[k] = 32.0;
	right(w, 0, 3, n, term, 1.0 / (double)n);
}

/* 128 neighbours of 20000 in batches of at most 64: four of them are beyond f16; each times 1/128
 * would fit, and the mean is 20000. */
void plant_batch(struct world *w, const struct fault *f)
{
	const double value = w->sick ? 20000.0 : 20.0;
	double term[128];
	world_policy(w, hg_policy_fp16_discretized(), 1024.0f);
	world_model(w, f->model, 2, world_star(w, 128));
	world_constant(w);
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.weight", 0, 1, (float)value);
	for (int64_t k = 0; k < 128; k++)
		term[k] = value;
	right(w, 0, 1, 128, term, 1.0 / 128.0);
}

/* ---- custom tapes ---- */

enum { X, TARGETS, WEIGHTS };

/* mse(Y W, T), Y = alpha A_w X */
static hg_var sum_record(struct world *w, hg_tape *tape, hg_var weights, float alpha)
{
	const hg_var x = hg_tape_variable(tape, w->tensor[X], "x");
	hg_tape_scope(tape, "sum");
	const hg_var y = hg_spmm(tape, w->graph[0], x, weights, HG_NORM_NONE, alpha);
	hg_tape_scope(tape, "after");
	const hg_var z =
	    hg_linear(tape, y, hg_tape_param(tape, hg_params_find(w->params, "w")), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, z, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

static hg_var record_cancel(void *user, hg_tape *tape)
{
	return sum_record(user, tape, HG_NONE, 1.0f);
}

/* Row 1 adds up all four rows of X, rows 0 and 2 take one of them. In column 1: 40000 twice and its
 * negative twice, in an order that overflows or in one that does not. */
void plant_cancel(struct world *w, const struct fault *f)
{
	static const int32_t dst[] = {0, 1, 1, 1, 1, 2}, src[] = {0, 0, 1, 2, 3, 3};
	const double second = w->sick ? 40000.0 : -40000.0,
	             term[] = {40000.0, second, -second, -40000.0};
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 1.0f);
	world_graph(w, 3, 4, 6, dst, src, NULL);
	world_tensor(w, HG_F16, 4, 3, NULL);
	world_tensor(w, HG_F16, 3, 3, NULL);
	world_param(w, "w", 3, 3, 0, 0.001f);
	for (int k = 0; k < 4; k++)
		world_spoil(w->tensor[X], k, 1, (float)term[k]);
	w->record = record_cancel;
	right(w, 1, 1, 4, term, 1.0);
}

static hg_var record_copies(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"),
	                           hg_tape_param(tape, hg_params_find(w->params, "w")), HG_NONE);
	hg_tape_scope(tape, "copies");
	const hg_var y = hg_spmm(tape, w->graph[0], x, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

/* Four leaves copy node 0, which is 0; of n = 5 rows a target of -+100000 makes the gradient +-2 *
 * 100000 / 5. */
void plant_cancel_back(struct world *w, const struct fault *f)
{
	const double second = w->sick ? 40000.0 : -40000.0,
	             term[] = {40000.0, second, -second, -40000.0};
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 1.0f);
	world_fan(w, 4);
	world_tensor(w, HG_F16, 5, 1, NULL);
	world_tensor(w, HG_F32, 5, 1, NULL);
	world_param(w, "w", 1, 1, 0, 1.0f);
	for (int k = 0; k < 4; k++)
		world_spoil(w->tensor[TARGETS], 1 + k, 0, (float)(-2.5 * term[k]));
	w->record = record_copies;
	right(w, 0, 0, 4, term, 1.0);
}

enum { MANY = 300 };

static hg_var record_edge_weights(void *user, hg_tape *tape)
{
	struct world *w = user;
	return sum_record(w, tape, hg_tape_input(tape, w->tensor[WEIGHTS], "edge weights", -1.0),
	                  1.0f / (float)MANY);
}

/* Each of 300 products is 16 * 16 in column 2 of row 1: 256 of them make 65536; what comes after is
 * divided by 300. Row 0 has weights of 1. */
void plant_edge_weights(struct world *w, const struct fault *f)
{
	const float weight = w->sick ? 16.0f : 1.0f;
	double term[MANY];
	(void)f;
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_full(w, 2, MANY);
	world_tensor(w, HG_F16, MANY, 3, NULL);
	world_tensor(w, HG_F16, 2, 3, NULL);
	world_tensor(w, HG_F16, 2 * MANY, 1, NULL);
	world_param(w, "w", 3, 3, 0, 0.1f);
	world_spoil(w->tensor[X], -1, 2, 16.0f);
	world_spoil(w->tensor[WEIGHTS], -1, -1, 1.0f);
	for (int k = 0; k < MANY; k++) {
		world_spoil(w->tensor[WEIGHTS], MANY + k, 0, weight);
		term[k] = 16.0 * (double)weight;
	}
	w->record = record_edge_weights;
	right(w, 1, 2, MANY, term, 1.0 / (double)MANY);
}

/* Node 4 has features 0 to 3, everybody else one feature of its own: X W is a sum of rows of W.
 * Those four rows of W cancel in column 5. */
void plant_sparse_cancel(struct world *w, const struct fault *f)
{
	const double second = w->sick ? 40000.0 : -40000.0,
	             term[] = {40000.0, second, -second, -40000.0};
	int32_t row[16], col[16];
	float one[16];
	world_policy(w, hg_policy_fp16_naive(), 64.0f);
	world_model(w, f->model, 2, world_ring(w, 12));
	for (int i = 0; i < 15; i++) {
		row[i] = i < 4 ? 4 : i - 4 + (i >= 8);
		col[i] = i < 4 ? i : row[i] + 4;
		one[i] = 1.0f;
	}
	world_sparse(w, IN, 15, row, col, one);
	world_build(w);
	for (int k = 0; k < 4; k++)
		world_set(w, "conv0.weight", k, 5, (float)term[k]);
	right(w, 4, 5, 4, term, 1.0);
}
