/* Records a model on a tape: checks the input, then records the embedding, dropout, layers and
 * heads. */
#include "autograd/tape.h"
#include "core/versioned.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "nn/model.h"

static hg_status input_check(const hg_model *model, hg_tape *tape, const hg_model_input *input)
{
	const char *name = model->config.name;
	const long long want = (long long)model->config.in_features;
	if (!input->graph)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: input.graph is NULL", name);
	if (!input->x == !input->x_sparse)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: input has %s of x and x_sparse, expected one",
		                     name, input->x ? "both" : "neither");
	const long long n = (long long)hg_graph_rows(input->graph),
	                cols = (long long)hg_graph_cols(input->graph);
	const long long rows =
	    (long long)(input->x ? hg_tensor_rows(input->x) : hg_graph_rows(input->x_sparse));
	const long long found =
	    (long long)(input->x ? hg_tensor_cols(input->x) : hg_graph_cols(input->x_sparse));
	if (n != cols)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: graph has %lld rows and %lld columns, expected a square one",
		                     name, n, cols);
	if (hg_graph_context(input->graph) != tape->ctx ||
	    (input->x ? hg_tensor_context(input->x) : hg_graph_context(input->x_sparse)) != tape->ctx)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: graph or features belong to another context than the tape", name);
	if (rows != n)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: features have %lld rows, graph has %lld nodes", name, rows, n);
	if (found != want)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: features have %lld columns, the model has in_features %lld", name,
		                     found, want);
	return HG_OK;
}

/* H_0: the input as the layers read it. The values of sparse features become an operand only if
 * dropout changes them. */
static hg_status features_record(hg_model *model, hg_tape *tape, const hg_model_input *input,
                                 struct hg__features *x)
{
	const hg_dtype state = model->params->policy.state;
	if (input->x)
		*x = hg__features_dense(hg_tape_input(tape, input->x, "features", input->x_amax),
		                        model->config.in_features);
	else if (model->config.dropout > 0.0f && tape->mode == HG_TRAIN)
		return hg__features_sparse(tape, input->x_sparse, state, &model->values, x);
	else
		*x = (struct hg__features){HG_NONE, input->x_sparse, HG_NONE, model->config.in_features};
	return HG_OK;
}

/* The scores of one depth for every graph of the batch, added to those of the depths before. */
static hg_var graph_scores(const hg_model *model, const struct hg__model_layer *layer,
                           hg_tape *tape, hg_graph *graph, hg_var h, hg_var scores)
{
	const hg_model_config *c = &model->config;
	const hg_var pooled = hg_readout(tape, graph, h, (hg_reduce)c->readout);
	const struct hg__features x =
	    hg__features_dropout(tape, hg__features_dense(pooled, layer->spec.out), c->dropout);
	const hg_var s = hg__linear_record(&layer->head, tape, x);
	return layer == model->layer ? s : hg_add(tape, scores, s);
}

/* H_0 of a kind that embeds the features. */
static struct hg__features embedding_record(const hg_model *model, hg_tape *tape,
                                            struct hg__features x)
{
	hg_tape_scope(tape, "embed");
	x = hg__features_dropout(tape, x, model->config.dropout);
	const hg_var h = hg__linear_record(&model->embed, tape, x);
	return hg__features_dense(model->kind->embed == HG__EMBED_RELU ? hg_relu(tape, h) : h,
	                          model->layer[0].spec.in);
}

static hg_var layers_record(const hg_model *model, hg_tape *tape, hg_graph *graph,
                            struct hg__features x)
{
	const hg_model_config *c = &model->config;
	const int embed = model->kind->embed != HG__EMBED_NONE;
	hg_var scores = HG_NONE;
	if (embed)
		x = embedding_record(model, tape, x);
	for (int l = 0; l < c->layers; l++) {
		const struct hg__model_layer *layer = &model->layer[l];
		hg_tape_scope(tape, layer->name);
		if (!embed)
			x = hg__features_dropout(tape, x, c->dropout);
		x = hg__features_dense(model->kind->record(c, &layer->spec, layer->own, tape, graph, x),
		                       layer->spec.out);
		if (c->readout >= 0)
			scores = graph_scores(model, layer, tape, graph, x.x, scores);
	}
	if (c->readout < 0 && model->kind->head) {
		hg_tape_scope(tape, "head");
		scores = hg__linear_record(&model->head, tape, hg__features_dropout(tape, x, c->dropout));
	} else if (c->readout < 0) {
		scores = x.x;
	}
	hg_tape_scope(tape, NULL);
	return scores;
}

static hg_status check_call(const hg_model *model, hg_tape *tape, const hg_model_input *input,
                            hg_model_input *ours)
{
	if (!model || !input)
		return hg__tape_fail(tape, HG_ERR_ARG, "hg_model_record: %s is NULL",
		                     model ? "input" : "model");
	if (model->params != tape->params)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: the model has other parameters than the tape",
		                     model->config.name);
	if (!hg__struct_read(ours, sizeof *ours, input))
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: input.size is not set (start from HG_MODEL_INPUT_INIT), or a "
		                     "field unknown to this version is used",
		                     model->config.name);
	return HG_OK;
}

hg_var hg_model_record(hg_model *model, hg_tape *tape, const hg_model_input *input)
{
	const hg_var invalid = hg__tape_var(tape, -1);
	hg_model_input ours = HG_MODEL_INPUT_INIT;
	struct hg__features x;
	if (!hg__tape_open(tape, "hg_model_record"))
		return invalid;
	if (check_call(model, tape, input, &ours) < 0 || input_check(model, tape, &ours) < 0)
		return invalid;
	return hg__tape_stick(tape, features_record(model, tape, &ours, &x)) < 0
	           ? invalid
	           : layers_record(model, tape, ours.graph, x);
}
