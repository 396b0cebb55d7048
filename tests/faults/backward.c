/* A gradient is beyond f16: at the loss scale in force, S, though not at 1; or at 1 as well.
 *
 * Models have one labelled node, the loner, whose only neighbour is itself: what flows back is zero
 * in every other row. With the wrong class favoured or not, the gradient of its two logits is
 * (-a, a) S, a in (0, 1). An input unit u of a layer that says 2^-10 everywhere (weights 0 and that
 * bias, or gain 0 and that beta) changes little forward, but with weights (-v, v) in the layer its
 * gradient is 2 a v S at (loner, u), and nowhere else that large; it is positive, so that relu
 * hands the gradient on. */
#include <math.h>
#include <stdio.h>

#include "faults/fault.h"
#include "harness.h"

enum { NODES = 12, LONER = NODES - 1, UNIT = 3 };

static void right(struct world *w, struct among row, struct among col)
{
	w->answer.row = row;
	w->answer.col = col;
}

static void scale(struct world *w, float value)
{
	w->policy.loss_scale.init_scale = value;
}

static void town(struct world *w, const struct fault *f, int layers)
{
	world_model(w, f->model, layers, world_ring(w, NODES));
	world_varied(w);
	world_label_only(w, LONER, 0);
}

/* ---- through weights ---- */

/* (a, -a) S with a near 1/2: the weights are moderate. 2^20 a and more is beyond f16. */
void plant_scale_xent(struct world *w, const struct fault *f)
{
	town(w, f, 2);
	scale(w, w->sick ? 0x1p20f : 0x1p10f);
	world_build(w);
	right(w, only(LONER), anywhere());
}

static const float FAINT = 0x1p-10f;

/* Unit UNIT of what enters layer l of a GCN or GAT is faint; its weights in layer l are (-v, v). */
static void faint_unit(struct world *w, int layer, float v)
{
	char name[32];
	world_build(w);
	snprintf(name, sizeof name, "conv%d.weight", layer - 1);
	world_set(w, name, -1, UNIT, 0.0f);
	snprintf(name, sizeof name, "conv%d.bias", layer - 1);
	world_set(w, name, 0, UNIT, FAINT);
	snprintf(name, sizeof name, "conv%d.weight", layer);
	world_set(w, name, UNIT, 0, -v);
	world_set(w, name, UNIT, 1, v);
	right(w, only(LONER), only(UNIT));
}

/* The wrong class leads by 20: a = 1 to eight digits. */
static void wrong(struct world *w, const char *bias)
{
	world_set(w, bias, 0, 0, -10.0f);
	world_set(w, bias, 0, 1, 10.0f);
}

/* 2 * 40 * 2^14 a = 1.3e6 a; at scale 1: 80 a */
static void scale_linear(struct world *w, const struct fault *f)
{
	const int layer = fault_layer(f);
	town(w, f, layer + 1);
	scale(w, w->sick ? 0x1p14f : 0x1p6f);
	faint_unit(w, layer, 40.0f);
}

void plant_scale_linear(struct world *w, const struct fault *f)
{
	scale_linear(w, f);
}

void plant_scale_linear_gat(struct world *w, const struct fault *f)
{
	scale_linear(w, f);
}

/* 2 * 60000 at scale 1 */
static void explode_linear(struct world *w, const struct fault *f)
{
	const int layer = fault_layer(f);
	char bias[32];
	town(w, f, layer + 1);
	scale(w, layer == 2 ? 4.0f : 1.0f);
	faint_unit(w, layer, w->sick ? 60000.0f : 4.0f);
	snprintf(bias, sizeof bias, "conv%d.bias", layer);
	wrong(w, bias);
}

void plant_explode_linear(struct world *w, const struct fault *f)
{
	explode_linear(w, f);
}

void plant_explode_gat(struct world *w, const struct fault *f)
{
	explode_linear(w, f);
}

/* The same through the scores of a GIN; the unit is faint because its gain is 0. */
static void head(struct world *w, const struct fault *f, float v)
{
	town(w, f, 2);
	world_build(w);
	world_set(w, "conv1.bn2.gamma", 0, UNIT, 0.0f);
	world_set(w, "conv1.bn2.beta", 0, UNIT, FAINT);
	world_set(w, "head.weight", UNIT, 0, -v);
	world_set(w, "head.weight", UNIT, 1, v);
	right(w, only(LONER), only(UNIT));
}

void plant_scale_head(struct world *w, const struct fault *f)
{
	scale(w, w->sick ? 0x1p14f : 0x1p6f);
	head(w, f, 40.0f);
}

void plant_explode_head(struct world *w, const struct fault *f)
{
	scale(w, 2.0f);
	head(w, f, w->sick ? 60000.0f : 4.0f);
	wrong(w, "head.bias");
}

/* A batch norm spreads the loner's gradient over all rows; times 20000 the gradient of a faint unit
 * overflows in rows that depend on the weights. Column UNIT is right. */
void plant_scale_mlp(struct world *w, const struct fault *f)
{
	town(w, f, 2);
	scale(w, w->sick ? 0x1p14f : 1.0f);
	world_build(w);
	world_set(w, "conv0.bn2.gamma", 0, UNIT, 0.0f);
	world_set(w, "conv0.bn2.beta", 0, UNIT, FAINT);
	world_set(w, "conv1.mlp1.weight", UNIT, -1, 0.0f);
	world_set(w, "conv1.mlp1.weight", UNIT, 2, 20000.0f);
	right(w, anywhere(), only(UNIT));
}

/* ---- through neighbours ---- */

enum { LEAVES = 1000, FEW = 100 };

/* Every leaf copies the hub; logits 0, labels 0: each leaf's gradient is (-1/2, 1/2) S / n, and the
 * hub adds them up: half of S, but for its own share. */
static void hub(struct world *w, const struct fault *f, hg_policy policy)
{
	const int64_t leaves = w->sick ? LEAVES : FEW;
	const float s = w->sick ? 0x1p18f : 0x1p10f;
	world_policy(w, policy, s);
	world_model(w, f->model, 2, world_fan(w, leaves));
	w->config.norm = HG_NORM_NONE;
	world_varied(w);
	for (int64_t i = 0; i < w->nodes; i++)
		w->label[i] = 0;
	world_build(w);
	world_set(w, "conv1.weight", -1, -1, 0.0f);
	right(w, only(0), anywhere());
	w->answer.terms = leaves;
	w->answer.top = 0.5 * (double)s / (double)w->nodes;
}

void plant_scale_hub(struct world *w, const struct fault *f)
{
	hub(w, f, hg_policy_fp16());
}

void plant_scale_hub_naive(struct world *w, const struct fault *f)
{
	hub(w, f, hg_policy_fp16_naive());
}

/* U = (0, 1000) at every node: the loner's logits say class 1, a = 1, and the gradient of the
 * weight of its self loop, the last edge, is <(-S, S), U> = 1000 S. */
void plant_scale_edge(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 0x1p10f : 0x1p4f;
	town(w, f, 2);
	world_constant(w);
	scale(w, s);
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.bias", 0, 0, 1.0f);
	world_set(w, "conv1.weight", -1, -1, 0.0f);
	world_set(w, "conv1.weight", 0, 1, 1000.0f);
	world_set(w, "conv1.att_dst", -1, -1, 0.0f);
	world_set(w, "conv1.att_src", -1, -1, 0.0f);
	right(w, only(hg_graph_edges(w->graph[0]) - 1), only(0));
	w->answer.edge_row = w->answer.edge_col = LONER;
	w->answer.wide = 1000.0 * (double)s;
}

/* Three graphs, graph 1 labelled, its scores the sum of two readouts' (means): the unit is faint in
 * the second layer's, whose scores have the weights (-v, v). */
void plant_scale_readout(struct world *w, const struct fault *f)
{
	static const int64_t sizes[] = {8, 12, 6};
	world_model(w, f->model, 2, world_batch(w, 3, sizes));
	world_varied(w);
	scale(w, w->sick ? 0x1p14f : 0x1p6f);
	w->config.readout = HG_REDUCE_MEAN;
	w->targets = 3;
	world_label_only(w, 1, 0);
	world_build(w);
	world_set(w, "conv1.weight", -1, UNIT, 0.0f);
	world_set(w, "conv1.bias", 0, UNIT, FAINT);
	world_set(w, "conv1.head.weight", UNIT, 0, -40.0f);
	world_set(w, "conv1.head.weight", UNIT, 1, 40.0f);
	right(w, only(1), only(UNIT));
}

/* All 8 units are faint: their gradients at the loner are 2 v S = 40960 behind dropout with p =
 * 1/2, and twice that before it where it kept them (none: 2^-8, once for all runs). */
void plant_scale_dropout(struct world *w, const struct fault *f)
{
	town(w, f, 2);
	scale(w, w->sick ? 0x1p10f : 0x1p5f);
	w->config.dropout = 0.5f;
	world_build(w);
	world_set(w, "conv0.weight", -1, -1, 0.0f);
	world_set(w, "conv0.bias", -1, -1, FAINT);
	world_set(w, "conv1.weight", -1, 0, -20.0f);
	world_set(w, "conv1.weight", -1, 1, 20.0f);
	wrong(w, "conv1.bias");
	right(w, only(LONER), anywhere());
	w->answer.wide = 4.0 * 20.0 * (double)w->policy.loss_scale.init_scale;
}

void plant_scale_train(struct world *w, const struct fault *f)
{
	world_model(w, f->model, 2, world_ring(w, NODES));
	world_varied(w);
	scale(w, w->sick ? 0x1p24f : 0x1p10f);
	world_build_train(w);
}

/* ---- custom tapes: Y = op(X W), W = 1, X [8, 4] zeros, mse against targets that are what Y is but
 * for one element ---- */

enum { ROWS = 8, COLS = 4, ROW = 2, COL = 1, X = 0, TARGETS = 1 };

static hg_var param(struct world *w, hg_tape *tape, const char *name)
{
	return hg_tape_param(tape, hg_params_find(w->params, name));
}

static hg_var x_of(struct world *w, hg_tape *tape)
{
	const hg_var u =
	    hg_linear(tape, hg_tape_variable(tape, w->tensor[X], "x"), param(w, tape, "w"), HG_NONE);
	return u;
}

static hg_var targets_of(struct world *w, hg_tape *tape)
{
	hg_tape_scope(tape, NULL);
	return hg_tape_input(tape, w->tensor[TARGETS], "targets", -1.0);
}

static void identity(struct world *w, int64_t d)
{
	world_param(w, "w", d, d, 0, 0.0f);
	for (int64_t c = 0; c < d; c++)
		world_set(w, "w", c, c, 1.0f);
}

static void begin(struct world *w, float s, int64_t rows, int64_t cols, int64_t out_cols,
                  hg_var (*record)(void *user, hg_tape *tape))
{
	world_policy(w, hg_policy_fp16(), s);
	world_tensor(w, HG_F16, rows, cols, NULL);
	world_tensor(w, HG_F16, rows, out_cols, NULL);
	identity(w, cols);
	w->record = record;
	right(w, only(ROW), only(COL));
}

static hg_var record_mse(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var y = x_of(w, tape);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* 2 * 100 S / 32 = 409600 */
void plant_scale_mse(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 0x1p16f : 0x1p6f;
	(void)f;
	begin(w, s, ROWS, COLS, COLS, record_mse);
	world_spoil(w->tensor[TARGETS], ROW, COL, -100.0f);
	w->answer.wide = 200.0 * (double)s / 32.0;
}

static hg_var record_bce(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var y = x_of(w, tape);
	return hg_bce_logits(tape, y, targets_of(w, tape), HG_NONE);
}

/* 1 / (1 + exp(0)) = 1/2 is the target of all but one, whose gradient is (1/2 - 1) S / 32 =
 * -131072. */
void plant_scale_bce(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 0x1p23f : 0x1p10f;
	(void)f;
	begin(w, s, ROWS, COLS, COLS, record_bce);
	world_spoil(w->tensor[TARGETS], -1, -1, 0.5f);
	world_spoil(w->tensor[TARGETS], ROW, COL, 1.0f);
	w->answer.wide = -0.5 * (double)s / 32.0;
}

static hg_var record_scale(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "scaled");
	y = hg_scale(tape, y, 100.0f);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* 2 S / 32 = 1024, times 100 */
void plant_scale_scale(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 0x1p14f : 0x1p6f;
	(void)f;
	begin(w, s, ROWS, COLS, COLS, record_scale);
	world_spoil(w->tensor[TARGETS], ROW, COL, -1.0f);
	w->answer.wide = 100.0 * 2.0 * (double)s / 32.0;
}

static hg_var record_two_ways(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var h = x_of(w, tape);
	hg_tape_scope(tape, "left");
	const hg_var left = hg_scale(tape, h, 100.0f);
	hg_tape_scope(tape, "right");
	const hg_var y = hg_add(tape, left, hg_scale(tape, h, 100.0f));
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* 2 S / 32 = 400 comes back two ways, times 100 each: 40000 + 40000. Backward goes from right to
 * left, and left is the one that adds. */
void plant_scale_two_ways(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 6400.0f : 64.0f;
	(void)f;
	begin(w, s, ROWS, COLS, COLS, record_two_ways);
	world_spoil(w->tensor[TARGETS], ROW, COL, -1.0f);
	w->answer.wide = 2.0 * 100.0 * 2.0 * (double)s / 32.0;
}

static hg_var record_combine(void *user, hg_tape *tape)
{
	struct world *w = user;
	const hg_var h = x_of(w, tape);
	hg_tape_scope(tape, "sum");
	const hg_var z = hg_spmm(tape, w->graph[0], h, HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "self");
	const hg_var y = hg_combine(tape, h, z, param(w, tape, "eps"));
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* 2 S / 32 = 128 times 1001; the sum over the neighbours hands on no more than 128 to each. */
void plant_scale_combine(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 0x1p11f : 0x1p6f;
	(void)f;
	begin(w, s, ROWS, COLS, COLS, record_combine);
	world_ring(w, ROWS);
	world_param(w, "eps", 1, 1, HG_PARAM_F32, 1000.0f);
	world_spoil(w->tensor[TARGETS], ROW, COL, -1.0f);
	/* with the self loop's share; 0.1 % are not asked about */
	w->answer.wide = 1002.0 * 2.0 * (double)s / 32.0;
}

static hg_var record_head_dot(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "dots");
	y = hg_head_dot(tape, y, param(w, tape, "a"), 2);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* dS = 2 S / 16 = 128 at (2, head 1); a = 1000 in that head's second column, the matrix's
 * fourth. */
void plant_scale_head_dot(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 0x1p10f : 0x1p6f;
	(void)f;
	begin(w, s, ROWS, COLS, 2, record_head_dot);
	world_param(w, "a", 1, COLS, 0, 1.0f);
	world_set(w, "a", 0, 3, 1000.0f);
	world_spoil(w->tensor[TARGETS], ROW, 1, -1.0f);
	right(w, only(ROW), only(3));
	w->answer.wide = 1000.0 * 2.0 * (double)s / 16.0;
}

static hg_var record_spmm_max(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "most");
	y = hg_spmm_max(tape, w->graph[0], y);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* Each of n leaves' only neighbour is node 0: its gradient is n times 2 S / (4 (n + 1)) in column
 * 2. */
void plant_scale_spmm_max(struct world *w, const struct fault *f)
{
	const int64_t leaves = w->sick ? LEAVES : FEW;
	const float s = w->sick ? 0x1p18f : 0x1p10f;
	(void)f;
	begin(w, s, leaves + 1, COLS, COLS, record_spmm_max);
	world_fan(w, leaves);
	world_spoil(w->tensor[TARGETS], -1, 2, -1.0f);
	right(w, only(0), only(2));
	w->answer.wide = (double)leaves * 2.0 * (double)s / (4.0 * (double)(leaves + 1));
}

static hg_var record_batch_norm(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "norm");
	y = hg_batch_norm(tape, y, param(w, tape, "gamma"), param(w, tape, "beta"),
	                  hg_params_find(w->params, "mean"), hg_params_find(w->params, "var"), 0.5f,
	                  1e-5f);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

static void batch_norm(struct world *w, float s)
{
	begin(w, s, ROWS, COLS, COLS, record_batch_norm);
	world_param(w, "gamma", 1, COLS, HG_PARAM_F32, 1.0f);
	world_param(w, "beta", 1, COLS, HG_PARAM_F32, 0.0f);
	world_param(w, "mean", 1, COLS, HG_PARAM_F32 | HG_PARAM_BUFFER, 0.0f);
	world_param(w, "var", 1, COLS, HG_PARAM_F32 | HG_PARAM_BUFFER, 1.0f);
}

/* Column 2 of X is 1 +- 2^-10 in turn: variance 2^-20, and with eps 1e-5 the division by the
 * deviation is a factor r = 302. xhat = +- 2^-10 r = +- 0.295 is the target but for (2, 2), which
 * is off by 2^4: dY = 2 * 16 S / 32 = S there. dX = r (dY - mean(dY) - xhat mean(dY xhat)) = r S (1
 * - 1/8 - 0.087/8) = 0.86 r S in row 2, at most r S (1/8 + 0.087/8) = 0.14 r S elsewhere: at S =
 * 512 it is 133000 and 21000. The other columns are +- 1 in turn, and what they should be. */
void plant_scale_batch_norm(struct world *w, const struct fault *f)
{
	const float s = w->sick ? 512.0f : 32.0f;
	const double spread = 0x1p-10, r = 1.0 / sqrt(spread * spread + 1e-5);
	(void)f;
	batch_norm(w, s);
	for (int i = 0; i < ROWS; i++) {
		const float sign = i % 2 ? -1.0f : 1.0f;
		world_spoil(w->tensor[X], i, -1, sign);
		world_spoil(w->tensor[X], i, 2, 1.0f + sign * (float)spread);
		world_spoil(w->tensor[TARGETS], i, -1, sign);
		world_spoil(w->tensor[TARGETS], i, 2,
		            sign * (float)(spread * r) - (i == ROW ? 16.0f : 0.0f));
	}
	right(w, only(ROW), only(2));
	w->answer.wide = r * (double)s * (1.0 - (1.0 + spread * spread * r * r) / (double)ROWS);
}

static hg_var record_copies(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "copies");
	y = hg_spmm(tape, w->graph[0], y, HG_NONE, HG_NORM_NONE, 1.0f);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* n leaves copy 60000 and should be 0: 2 * 60000 / (n + 1) each, 120000 n / (n + 1) in all, at loss
 * scale 1. */
void plant_explode_hub(struct world *w, const struct fault *f)
{
	const int64_t leaves = w->sick ? LEAVES : FEW;
	const float value = w->sick ? 60000.0f : 6.0f;
	(void)f;
	begin(w, 1.0f, leaves + 1, 1, 1, record_copies);
	world_fan(w, leaves);
	world_spoil(w->tensor[X], 0, 0, value);
	right(w, only(0), only(0));
	w->answer.wide = (double)leaves * 2.0 * (double)value / (double)(leaves + 1);
	w->answer.terms = leaves;
}

static hg_var record_mlp(void *user, hg_tape *tape)
{
	struct world *w = user;
	hg_var y = x_of(w, tape);
	hg_tape_scope(tape, "first");
	y = hg_linear(tape, y, param(w, tape, "first"), HG_NONE);
	hg_tape_scope(tape, "second");
	y = hg_linear(tape, y, param(w, tape, "second"), HG_NONE);
	return hg_mse(tape, y, targets_of(w, tape), HG_NONE);
}

/* x = 1 in row 2 alone, first = 0.125, second = (1, v, 1, 1): y = (v + 3) / 8 there, dy = 2 y / 4,
 * and the gradient of the hidden unit 1 is v dy = 5.6e7 for v = 30000. */
void plant_explode_mlp(struct world *w, const struct fault *f)
{
	const float v = w->sick ? 30000.0f : 3.0f;
	(void)f;
	begin(w, 1.0f, 4, 1, 1, record_mlp);
	world_param(w, "first", 1, COLS, 0, 0.125f);
	world_param(w, "second", COLS, 1, 0, 1.0f);
	world_set(w, "second", COL, 0, v);
	world_spoil(w->tensor[X], ROW, 0, 1.0f);
	w->answer.wide = (double)v * 2.0 * ((double)v + 3.0) / 8.0 / 4.0;
}

/* In f32, v = 10^20: the loss is y^2 / 4 = v^2 / 256 = 4e37 and fits; v dy = v^2 / 16 does not. */
void plant_explode_fp32(struct world *w, const struct fault *f)
{
	const float v = w->sick ? 1e20f : 3.0f;
	(void)f;
	world_policy(w, hg_policy_fp32(), 1.0f);
	world_tensor(w, HG_F32, 4, 1, NULL);
	world_tensor(w, HG_F32, 4, 1, NULL);
	identity(w, 1);
	world_param(w, "first", 1, COLS, 0, 0.125f);
	world_param(w, "second", COLS, 1, 0, 1.0f);
	world_set(w, "second", COL, 0, v);
	world_spoil(w->tensor[X], ROW, 0, 1.0f);
	w->record = record_mlp;
	right(w, only(ROW), only(COL));
}

/* Only dW is beyond f32: x = 10^22 at (2, 1), an error of 10^18 at (2, 3), and dW = 2 * 10^18 /
 * 32 * 10^22 = 6e38 at (1, 3). W is 0. */
void plant_explode_weight(struct world *w, const struct fault *f)
{
	(void)f;
	world_policy(w, hg_policy_fp32(), 1.0f);
	world_tensor(w, HG_F32, ROWS, COLS, NULL);
	world_tensor(w, HG_F32, ROWS, COLS, NULL);
	world_param(w, "w", COLS, COLS, 0, 0.0f);
	world_spoil(w->tensor[X], ROW, 1, w->sick ? 1e22f : 1.0f);
	world_spoil(w->tensor[TARGETS], ROW, 3, w->sick ? -1e18f : -1.0f);
	w->record = record_mse;
	right(w, only(1), only(3));
}
