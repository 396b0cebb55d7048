/* Graph attention with dynamic scores (Brody, Alon, Yahav 2022), h heads of d columns.
 *
 *     R | L = H W + w                               [n, 2*h*d], the rows of an edge's two ends
 *     e_ij = <a, leaky_relu(R_i + L_j)>             [m, h], per head
 *     p_ij = softmax over j in N(i) of e_ij
 *     H'_i = elu(sum over j of p_ij L_j + b)        heads side by side; the final layer takes their
 *                                                   mean instead, without elu
 *
 * In GAT the order of the neighbours' scores is the same for every node i; here it depends on i. */
#include "halfgraph/ops.h"
#include "halfgraph/ops_attention.h"
#include "nn/model.h"

struct gatv2_layer {
	struct hg__linear ends; /* W [in, 2*h*d], w [1, 2*h*d] */
	hg_param *att, *bias;   /* a [1, h*d], b [1, out] */
};

static hg_status check(hg_context *ctx, const hg_model_config *config)
{
	HG__TRY(hg__heads_check(ctx, config, "heads", config->heads));
	HG__TRY(hg__heads_check(ctx, config, "out_heads", config->out_heads));
	HG__TRY(hg__slope_check(ctx, config));
	return hg__attention_dropout_check(ctx, config);
}

static hg_status build(hg_params *params, const hg_model_config *config,
                       const struct hg__layer_spec *spec, void *layer)
{
	struct gatv2_layer *l = layer;
	const int64_t cols = hg__gat_columns(config, spec->out, spec->final);
	HG__TRY(hg__linear_build(params, spec->name, "ends", spec->in, 2 * cols, HG_INIT_GLOROT_UNIFORM,
	                         1, &l->ends));
	HG__TRY(hg__param_build(params, spec->name, "att", 1, cols, HG_INIT_GLOROT_UNIFORM,
	                        HG_PARAM_F32, &l->att));
	return hg__param_build(params, spec->name, "bias", 1, spec->out, HG_INIT_ZEROS, 0, &l->bias);
}

static hg_var record(const hg_model_config *config, const struct hg__layer_spec *spec,
                     const void *layer, hg_tape *tape, hg_graph *graph, struct hg__features x)
{
	const struct gatv2_layer *l = layer;
	hg_attention_config attention = HG_ATTENTION_CONFIG_INIT;
	attention.score = HG_SCORE_ADD_V2;
	attention.heads = hg__gat_heads(config, spec->final);
	attention.slope = config->negative_slope;
	attention.dropout = config->attention_dropout;
	/* Without k and v, q is R | L, and L is also the values. */
	const hg_attention_operands of = {.q = hg__linear_record(&l->ends, tape, x),
	                                  .k = HG_NONE,
	                                  .v = HG_NONE,
	                                  .c = hg_tape_param(tape, l->att),
	                                  .bias = HG_NONE};
	const hg_var y = hg_attention(tape, graph, &of, &attention);
	return hg__gat_end(config, spec->final, tape, y, l->bias);
}

/* Training: as for GAT. */
const struct hg__model_kind hg__model_gatv2 = {
    .info = {.name = "gatv2", .self_loops = 1, .heads = 1},
    .training = {0.01f, 5e-4f, 0, 200},
    .layer_bytes = sizeof(struct gatv2_layer),
    .head = 0,
    .defaults = hg__gat_defaults,
    .check = check,
    .width = hg__heads_width,
    .build = build,
    .record = record,
};
