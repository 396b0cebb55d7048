/* Something was bad before the step began: NaN or infinity in a leaf, a label that is no class. The
 * leaf, its row and its column are what was written to. */
#include <math.h>

#include "faults/fault.h"
#include "harness.h"

enum { NODES = 12 };

static void town(struct world *w, const struct fault *f, int layers)
{
	world_model(w, f->model, layers, world_ring(w, NODES));
	world_varied(w);
}

static void right(struct world *w, const char *tensor, int64_t row, int64_t col)
{
	w->answer.tensor = tensor;
	w->answer.row = only(row);
	w->answer.col = only(col);
}

static void feature(struct world *w, const struct fault *f, int64_t row, int64_t col, float value)
{
	town(w, f, 2);
	if (w->sick)
		w->x[row * IN + col] = value;
	world_build(w);
	right(w, "features", row, col);
}

void plant_feature_nan(struct world *w, const struct fault *f)
{
	feature(w, f, 7, 3, NAN);
}

void plant_feature_inf(struct world *w, const struct fault *f)
{
	feature(w, f, 2, 5, -INFINITY);
}

void plant_feature_late(struct world *w, const struct fault *f)
{
	town(w, f, 2);
	world_build(w);
	if (w->sick)
		world_spoil_later(w, w->tensor[0], 9, 0, NAN);
	right(w, "features", 9, 0);
}

static void param(struct world *w, const struct fault *f, int layers, const char *name, int64_t row,
                  int64_t col, float value)
{
	town(w, f, layers);
	world_build(w);
	if (w->sick)
		world_set(w, name, row, col, value);
	right(w, name, row, col);
}

void plant_master_inf(struct world *w, const struct fault *f)
{
	param(w, f, 2, "conv1.weight", 4, 1, INFINITY);
}

void plant_master_nan(struct world *w, const struct fault *f)
{
	param(w, f, 3, "conv2.weight", 6, 0, NAN);
}

void plant_bias_nan(struct world *w, const struct fault *f)
{
	param(w, f, 2, "conv0.bias", 0, 5, NAN);
}

void plant_eps_inf(struct world *w, const struct fault *f)
{
	param(w, f, 2, "conv1.eps", 0, 0, INFINITY);
}

void plant_gamma_nan(struct world *w, const struct fault *f)
{
	param(w, f, 2, "conv0.bn1.gamma", 0, 2, NAN);
}

void plant_fp32_nan(struct world *w, const struct fault *f)
{
	w->policy = hg_policy_fp32();
	param(w, f, 2, "conv0.weight", 11, 3, NAN);
}

void plant_label(struct world *w, const struct fault *f)
{
	town(w, f, 2);
	world_build(w);
	if (w->sick)
		world_spoil_later(w, w->labels, 5, 0, 9.0f);
	right(w, "labels", 5, 0);
}

void plant_label_graph(struct world *w, const struct fault *f)
{
	static const int64_t sizes[] = {8, 12, 6};
	world_model(w, f->model, 2, world_batch(w, 3, sizes));
	world_varied(w);
	w->config.readout = HG_REDUCE_MEAN;
	w->targets = 3;
	world_build(w);
	if (w->sick)
		world_spoil_later(w, w->labels, 2, 0, CLASSES);
	right(w, "labels", 2, 0);
}

/* ---- custom tapes: mse(A_w (X W), T) ---- */

enum { X, WEIGHTS, TARGETS };

static hg_var record_sum(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var x = hg_tape_variable(tape, w->tensor[X], "x"),
	             a = hg_tape_input(tape, w->tensor[WEIGHTS], "edge weights", -1.0);
	hg_tape_scope(tape, "sum");
	const hg_var u =
	    hg_linear(tape, x, hg_tape_param(tape, hg_params_find(w->params, "w")), HG_NONE);
	const hg_var y = hg_spmm(tape, w->graph[0], u, a, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, y, hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0), HG_NONE);
}

static void sum(struct world *w)
{
	const int64_t m = hg_graph_edges(world_ring(w, NODES));
	world_param(w, "w", 4, 3, 0, 0.25f);
	world_spoil(world_tensor(w, HG_F16, NODES, 4, NULL), -1, -1, 1.0f);
	world_spoil(world_tensor(w, HG_F16, m, 1, NULL), -1, -1, 0.5f);
	world_tensor(w, HG_F32, NODES, 3, NULL);
	w->record = record_sum;
}

void plant_edge_weight_nan(struct world *w, const struct fault *f)
{
	(void)f;
	sum(w);
	if (w->sick)
		world_spoil(w->tensor[WEIGHTS], 6, 0, NAN);
	right(w, "edge weights", 6, 0);
}

void plant_target_nan(struct world *w, const struct fault *f)
{
	(void)f;
	sum(w);
	if (w->sick)
		world_spoil_later(w, w->tensor[TARGETS], 3, 2, NAN);
	right(w, "targets", 3, 2);
}

void plant_variable_inf(struct world *w, const struct fault *f)
{
	(void)f;
	sum(w);
	if (w->sick)
		world_spoil(w->tensor[X], 8, 1, INFINITY);
	right(w, "x", 8, 1);
}
