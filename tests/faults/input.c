/* A leaf is bad before the step begins: it has a NaN or an infinity, or a label that is no class.
 * The doctor should report the leaf and the element that the planter overwrites. */
#include <math.h>

#include "faults/fault.h"
#include "faults/small_tape.h"
#include "harness.h"

enum { NODES = 12 };

static void ring_model(struct setup *s, const struct fault *f, int layers)
{
	setup_model(s, f->model, layers, setup_ring(s, NODES));
	setup_varied(s);
}

static void expect(struct setup *s, const char *tensor, int64_t row, int64_t col)
{
	s->expected.tensor = tensor;
	s->expected.row = only(row);
	s->expected.col = only(col);
}

static void feature(struct setup *s, const struct fault *f, int64_t row, int64_t col, float value)
{
	ring_model(s, f, 2);
	if (s->planted)
		s->x[row * IN + col] = value;
	setup_build(s);
	expect(s, "features", row, col);
}

void plant_feature_nan(struct setup *s, const struct fault *f)
{
	feature(s, f, 7, 3, NAN);
}

void plant_feature_inf(struct setup *s, const struct fault *f)
{
	feature(s, f, 2, 5, -INFINITY);
}

void plant_feature_later(struct setup *s, const struct fault *f)
{
	ring_model(s, f, 2);
	setup_build(s);
	if (s->planted)
		setup_write_later(s, s->tensor[0], 9, 0, NAN);
	expect(s, "features", 9, 0);
}

static void param(struct setup *s, const struct fault *f, int layers, const char *name, int64_t row,
                  int64_t col, float value)
{
	ring_model(s, f, layers);
	setup_build(s);
	if (s->planted)
		setup_set(s, name, row, col, value);
	expect(s, name, row, col);
}

void plant_master_inf(struct setup *s, const struct fault *f)
{
	param(s, f, 2, "conv1.weight", 4, 1, INFINITY);
}

void plant_master_nan(struct setup *s, const struct fault *f)
{
	param(s, f, 3, "conv2.weight", 6, 0, NAN);
}

void plant_bias_nan(struct setup *s, const struct fault *f)
{
	param(s, f, 2, "conv0.bias", 0, 5, NAN);
}

void plant_eps_inf(struct setup *s, const struct fault *f)
{
	param(s, f, 2, "conv1.eps", 0, 0, INFINITY);
}

void plant_gamma_nan(struct setup *s, const struct fault *f)
{
	param(s, f, 2, "conv0.bn1.gamma", 0, 2, NAN);
}

void plant_fp32_nan(struct setup *s, const struct fault *f)
{
	s->policy = hg_policy_fp32();
	param(s, f, 2, "conv0.weight", 11, 3, NAN);
}

void plant_label(struct setup *s, const struct fault *f)
{
	ring_model(s, f, 2);
	setup_build(s);
	if (s->planted)
		setup_write_later(s, s->labels, 5, 0, 9.0f);
	expect(s, "labels", 5, 0);
}

void plant_label_graph(struct setup *s, const struct fault *f)
{
	static const int64_t sizes[] = {8, 12, 6};
	setup_model(s, f->model, 2, setup_batch(s, 3, sizes));
	setup_varied(s);
	s->config.readout = HG_REDUCE_MEAN;
	s->targets = 3;
	setup_build(s);
	if (s->planted)
		setup_write_later(s, s->labels, 2, 0, CLASSES);
	expect(s, "labels", 2, 0);
}

/* ---- custom tapes: mse(A (X W), T), the edges of A having weights ---- */

enum { WEIGHTS = OTHER };

static hg_var record_sum(void *user, hg_tape *tape)
{
	struct setup *s = user;
	const hg_var weights = hg_tape_input(tape, s->tensor[WEIGHTS], "edge weights", -1.0);
	hg_tape_scope(tape, "sum");
	const hg_var u = tape_product(s, tape);
	return tape_mse(s, tape, hg_spmm(tape, s->graph[0], u, weights, HG_NORM_NONE, 1.0f));
}

static void sum(struct setup *s)
{
	const int64_t m = hg_graph_edges(setup_ring(s, NODES));
	setup_param(s, "w", 4, 3, 0, 0.25f);
	setup_write(setup_tensor(s, HG_F16, NODES, 4, NULL), -1, -1, 1.0f);
	setup_tensor(s, HG_F32, NODES, 3, NULL);
	setup_write(setup_tensor(s, HG_F16, m, 1, NULL), -1, -1, 0.5f);
	s->record = record_sum;
}

void plant_edge_weight_nan(struct setup *s, const struct fault *f)
{
	(void)f;
	sum(s);
	if (s->planted)
		setup_write(s->tensor[WEIGHTS], 6, 0, NAN);
	expect(s, "edge weights", 6, 0);
}

void plant_target_nan(struct setup *s, const struct fault *f)
{
	(void)f;
	sum(s);
	if (s->planted)
		setup_write_later(s, s->tensor[TARGETS], 3, 2, NAN);
	expect(s, "targets", 3, 2);
}

void plant_variable_inf(struct setup *s, const struct fault *f)
{
	(void)f;
	sum(s);
	if (s->planted)
		setup_write(s->tensor[X], 8, 1, INFINITY);
	expect(s, "x", 8, 1);
}
