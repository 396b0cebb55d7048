/* A partial sum overflows f16 although the result fits, because the sum is scaled only afterwards
 * or because its terms cancel.
 *
 * Hubs have 4000 neighbours, or 100 without the fault. All have the same value, which is therefore
 * the mean; a partial sum of k neighbours is k times that value. */
#include <math.h>
#include <stdio.h>

#include "faults/fault.h"
#include "faults/small_tape.h"
#include "harness.h"

enum { MANY = 4000, FEW = 100 };

static int64_t leaves_of(const struct setup *s)
{
	return s->planted ? MANY : FEW;
}

/* term: the terms of the hub's sum, in order; factor: what the sum is multiplied by. */
static void expect(struct setup *s, int64_t row, int64_t col, int64_t n, const double *term,
                   double factor)
{
	double top = 0.0, sum = 0.0;
	for (int64_t k = 0; k < n; k++) {
		top = fmax(top, fabs(factor * term[k]));
		sum += factor * term[k];
	}
	s->expected.row = only(row);
	s->expected.col = only(col);
	s->expected.terms = n;
	s->expected.top = top;
	s->expected.stops_at = setup_half_sum_stop(n, term);
	s->expected.wide = sum;
}

/* U = 32 at every node in one column of the layer. With norm RIGHT the result is the mean, 32; with
 * norm BOTH it is 32 n / sqrt(n), because the leaves have degree 1. */
void plant_hub_mean(struct setup *s, const struct fault *f)
{
	const int layer = fault_layer(f);
	const int64_t n = leaves_of(s);
	double term[MANY];
	char name[32];
	setup_policy(s, hg_policy_fp16_naive(), 1024.0f);
	setup_model(s, f->model, layer < 2 ? 2 : 3, setup_star(s, n));
	s->config.norm = layer == 1 ? HG_NORM_BOTH : HG_NORM_RIGHT;
	setup_constant(s);
	setup_build(s);
	setup_ones_below(s, layer);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	setup_set(s, name, -1, -1, 0.0f);
	setup_set(s, name, layer ? -1 : 0, 1, layer ? 32.0f / (float)HIDDEN : 32.0f);
	for (int64_t k = 0; k < n; k++)
		term[k] = 32.0;
	expect(s, 0, 1, n, term, 1.0 / (layer == 1 ? sqrt((double)n) : (double)n));
}

/* Odd nodes have the value 32, even nodes 16, so the mean is 24. If the layer sums instead, lambda
 * = 1 / n makes a mean of it, after the sum. */
static void hub_gin(struct setup *s, const struct fault *f, hg_norm aggregate)
{
	const int64_t n = leaves_of(s);
	double term[MANY];
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_model(s, f->model, 2, setup_star(s, n));
	s->config.aggregate = aggregate;
	s->config.lambda = aggregate == HG_NORM_NONE ? 1.0f / (float)n : 1.0f;
	for (int64_t i = 0; i <= n; i++)
		s->x[i * IN] = i % 2 ? 1.0f : 0.5f;
	setup_build(s);
	setup_set(s, "conv0.mlp1.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.mlp1.weight", 0, 1, 32.0f);
	for (int64_t k = 0; k < n; k++)
		term[k] = k % 2 ? 16.0 : 32.0;
	expect(s, 0, 1, n, term, 1.0 / (double)n);
}

void plant_hub_gin(struct setup *s, const struct fault *f)
{
	hub_gin(s, f, HG_NORM_RIGHT);
}

void plant_hub_gin_lambda(struct setup *s, const struct fault *f)
{
	hub_gin(s, f, HG_NORM_NONE);
}

/* The batch norm before layer 1 has gain 0, so that the input of layer 1 is its beta: 32 in column
 * 2. The product moves it to column 3. */
void plant_hub_gin_deep(struct setup *s, const struct fault *f)
{
	const int64_t n = leaves_of(s);
	double term[MANY];
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_model(s, f->model, 2, setup_star(s, n));
	setup_build(s);
	setup_set(s, "conv0.bn2.gamma", -1, -1, 0.0f);
	setup_set(s, "conv0.bn2.beta", 0, 2, 32.0f);
	setup_set(s, "conv1.mlp1.weight", -1, -1, 0.0f);
	setup_set(s, "conv1.mlp1.weight", 2, 3, 1.0f);
	for (int64_t k = 0; k < n; k++)
		term[k] = 32.0;
	expect(s, 0, 3, n, term, 1.0 / (double)n);
}

/* 128 neighbours of 20000 are summed in batches of at most 64. Four of them overflow, although the
 * mean is 20000 and each term times 1/128 fits as well. */
void plant_batch(struct setup *s, const struct fault *f)
{
	const double value = s->planted ? 20000.0 : 20.0;
	double term[128];
	setup_policy(s, hg_policy_fp16_discretized(), 1024.0f);
	setup_model(s, f->model, 2, setup_star(s, 128));
	setup_constant(s);
	setup_build(s);
	setup_set(s, "conv0.weight", -1, -1, 0.0f);
	setup_set(s, "conv0.weight", 0, 1, (float)value);
	for (int64_t k = 0; k < 128; k++)
		term[k] = value;
	expect(s, 0, 1, 128, term, 1.0 / 128.0);
}

/* ---- custom tapes ---- */

enum { WEIGHTS = OTHER };

/* mse(Y W, T) with Y = alpha A X, the edges of A having the weights `weights` */
static hg_var sum_record(struct setup *s, hg_tape *tape, hg_var weights, float alpha)
{
	const hg_var x = tape_x(s, tape);
	hg_tape_scope(tape, "sum");
	const hg_var y = hg_spmm(tape, s->graph[0], x, weights, HG_NORM_NONE, alpha);
	hg_tape_scope(tape, "after");
	return tape_mse(s, tape, hg_linear(tape, y, tape_param(s, tape, "w"), HG_NONE));
}

static hg_var record_cancel(void *user, hg_tape *tape)
{
	return sum_record(user, tape, HG_NONE, 1.0f);
}

/* Row 1 sums all four rows of X, rows 0 and 2 have one term each. Column 1 of X has 40000 twice and
 * -40000 twice, in an order whose partial sums overflow, or without the fault in one that fits. */
void plant_cancel(struct setup *s, const struct fault *f)
{
	const double second = s->planted ? 40000.0 : -40000.0,
	             term[] = {40000.0, second, -second, -40000.0};
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 1.0f);
	struct coo list = coo_empty(3, 4);
	for (int k = 0; k < 4; k++)
		coo_add(&list, 1, k);
	coo_add(&list, 0, 0);
	coo_add(&list, 2, 3);
	setup_graph(s, list);
	setup_tensor(s, HG_F16, 4, 3, NULL);
	setup_tensor(s, HG_F16, 3, 3, NULL);
	setup_param(s, "w", 3, 3, 0, 0.001f);
	for (int k = 0; k < 4; k++)
		setup_write(s->tensor[X], k, 1, (float)term[k]);
	s->record = record_cancel;
	expect(s, 1, 1, 4, term, 1.0);
}

static hg_var record_copies(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var x = tape_product(s, tape);
	hg_tape_scope(tape, "copies");
	return tape_mse(s, tape, hg_spmm(tape, s->graph[0], x, HG_NONE, HG_NORM_NONE, 1.0f));
}

/* Four leaves copy node 0, which is 0. A mean over 5 rows gives a target of -+100000 the gradient
 * +-2 * 100000 / 5 = +-40000. */
void plant_cancel_back(struct setup *s, const struct fault *f)
{
	const double second = s->planted ? 40000.0 : -40000.0,
	             term[] = {40000.0, second, -second, -40000.0};
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 1.0f);
	setup_fan(s, 4);
	setup_tensor(s, HG_F16, 5, 1, NULL);
	setup_tensor(s, HG_F32, 5, 1, NULL);
	setup_param(s, "w", 1, 1, 0, 1.0f);
	for (int k = 0; k < 4; k++)
		setup_write(s->tensor[TARGETS], 1 + k, 0, (float)(-2.5 * term[k]));
	s->record = record_copies;
	expect(s, 0, 0, 4, term, 1.0);
}

enum { EDGES = 300 };

static hg_var record_edge_weights(void *user, hg_tape *tape)
{
	struct setup *s = user;
	return sum_record(s, tape, hg_tape_input(tape, s->tensor[WEIGHTS], "edge weights", -1.0),
	                  1.0f / (float)EDGES);
}

/* Each of the 300 terms of row 1 is 16 * 16 in column 2, so that 256 of them are 65536. The sum is
 * divided by 300 only afterwards. The edges of row 0 have weight 1. */
void plant_edge_weights(struct setup *s, const struct fault *f)
{
	const float weight = s->planted ? 16.0f : 1.0f;
	double term[EDGES];
	(void)f;
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_full(s, 2, EDGES);
	setup_tensor(s, HG_F16, EDGES, 3, NULL);
	setup_tensor(s, HG_F16, 2, 3, NULL);
	setup_tensor(s, HG_F16, 2 * EDGES, 1, NULL);
	setup_param(s, "w", 3, 3, 0, 0.1f);
	setup_write(s->tensor[X], -1, 2, 16.0f);
	setup_write(s->tensor[WEIGHTS], -1, -1, 1.0f);
	for (int k = 0; k < EDGES; k++) {
		setup_write(s->tensor[WEIGHTS], EDGES + k, 0, weight);
		term[k] = 16.0 * (double)weight;
	}
	s->record = record_edge_weights;
	expect(s, 1, 2, EDGES, term, 1.0 / (double)EDGES);
}

/* Node 4 has the features 0 to 3, and each other node one feature of its own. A row of X W is a sum
 * of rows of W, and the first four rows of W cancel in column 5. */
void plant_sparse_cancel(struct setup *s, const struct fault *f)
{
	const double second = s->planted ? 40000.0 : -40000.0,
	             term[] = {40000.0, second, -second, -40000.0};
	setup_policy(s, hg_policy_fp16_naive(), 64.0f);
	setup_model(s, f->model, 2, setup_ring(s, 12));
	struct coo features = coo_empty(s->nodes, IN);
	for (int i = 0; i < 12; i++)
		if (i != 4)
			coo_add_weighted(&features, i, i + 4, 1.0f);
	for (int k = 0; k < 4; k++)
		coo_add_weighted(&features, 4, k, 1.0f);
	setup_sparse(s, IN, features);
	setup_build(s);
	for (int k = 0; k < 4; k++)
		setup_set(s, "conv0.weight", k, 5, (float)term[k]);
	expect(s, 4, 5, 4, term, 1.0);
}
