/* Records a model on a tape: checks the input, then records the embedding, dropout, layers and
 * heads. */
#include "autograd/tape.h"
#include "core/versioned.h"
#include "halfgraph/ops.h"
#include "halfgraph/ops_graph.h"
#include "halfgraph/predictor.h"
#include "nn/model.h"

static hg_status check_shapes(const hg_model *model, hg_tape *tape, const hg_graph *graph,
                              int64_t rows, int64_t cols)
{
	const char *name = model->config.name;
	const long long n = (long long)hg_graph_rows(graph), sources = (long long)hg_graph_cols(graph),
	                want = (long long)model->config.in_features;
	if (n != sources)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: graph has %lld rows and %lld columns, expected a square one",
		                     name, n, sources);
	if (hg_graph_context(graph) != tape->ctx)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: graph or features belong to another context than the tape", name);
	if (rows != n)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: features have %lld rows, graph has %lld nodes", name,
		                     (long long)rows, n);
	if (cols != want)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: features have %lld columns, the model has in_features %lld", name,
		                     (long long)cols, want);
	return HG_OK;
}

int hg__model_reads_edges(const hg_model *model)
{
	return model->kind->info.edge_features && model->config.edge_features > 0;
}

static hg_status edges_check(const hg_model *model, hg_tape *tape, const hg_model_input *input)
{
	const char *name = model->config.name;
	const long long want = (long long)model->config.edge_features,
	                edges = (long long)hg_graph_edges(input->graph);
	if (!hg__model_reads_edges(model))
		return HG_OK;
	if (!input->edge_x)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: input.edge_x is NULL, the model has edge_features %lld", name,
		                     want);
	if (hg_tensor_context(input->edge_x) != tape->ctx)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: edge_x belongs to another context than the tape", name);
	if (hg_tensor_rows(input->edge_x) != edges || hg_tensor_cols(input->edge_x) != want)
		return hg__tape_fail(tape, HG_ERR_SHAPE,
		                     "%s: edge_x is [%lld, %lld], the graph has %lld edges and the model "
		                     "edge_features %lld",
		                     name, (long long)hg_tensor_rows(input->edge_x),
		                     (long long)hg_tensor_cols(input->edge_x), edges, want);
	return HG_OK;
}

static hg_status input_check(const hg_model *model, hg_tape *tape, const hg_model_input *input)
{
	const char *name = model->config.name;
	if (!input->graph)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: input.graph is NULL", name);
	if (!input->x == !input->x_sparse)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: input has %s of x and x_sparse, expected one",
		                     name, input->x ? "both" : "neither");
	if ((input->x ? hg_tensor_context(input->x) : hg_graph_context(input->x_sparse)) != tape->ctx)
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: graph or features belong to another context than the tape", name);
	HG__TRY(input->x ? check_shapes(model, tape, input->graph, hg_tensor_rows(input->x),
	                                hg_tensor_cols(input->x))
	                 : check_shapes(model, tape, input->graph, hg_graph_rows(input->x_sparse),
	                                hg_graph_cols(input->x_sparse)));
	return edges_check(model, tape, input);
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

/* H_layer is on the tape. */
static void note_nodes(struct hg__layer_values *values, int layer, hg_var h)
{
	if (values && values->layer == layer)
		values->nodes = h;
}

/* So is its readout. */
static void note_graphs(struct hg__layer_values *values, int layer, hg_var h)
{
	if (values && values->layer == layer)
		values->graphs = h;
}

/* The scores of every graph of the batch from the readout of dense H = H_depth. */
static hg_var scores_of(const hg_model *model, const struct hg__linear *head, hg_tape *tape,
                        hg_graph *graph, struct hg__features h, float dropout, int depth,
                        struct hg__layer_values *values)
{
	h.x = hg_readout(tape, graph, h.x, (hg_reduce)model->config.readout);
	note_graphs(values, depth, h.x);
	return hg__linear_record(head, tape, hg__features_dropout(tape, h, dropout));
}

/* The same from H_0. Sums and means of sparse rows are taken after the product, which is linear,
 * too: readout(X) W = readout(X W). */
static hg_var input_scores(const hg_model *model, hg_tape *tape, hg_graph *graph,
                           struct hg__features x, struct hg__layer_values *values)
{
	const int embed = model->kind->embed != HG__EMBED_NONE;
	struct hg__linear product = model->input_head;
	hg_tape_scope(tape, "input");
	if (!x.sparse) /* without embedding X has gone through dropout before */
		return scores_of(model, &model->input_head, tape, graph, x,
		                 embed ? model->config.dropout : 0.0f, 0, values);
	if (model->config.readout == HG_REDUCE_MAX) {
		(void)hg__tape_fail(tape, HG_ERR_ARG,
		                    "%s: readout_layers is HG_READOUT_ALL, and a maximum over sparse "
		                    "features is not supported: give dense ones (HG_UPLOAD_DENSE)",
		                    model->config.name);
		return hg__tape_var(tape, -1);
	}
	product.b = NULL;
	const hg_var s = hg_readout(tape, graph, hg__linear_record(&product, tape, x),
	                            (hg_reduce)model->config.readout);
	return hg_bias_add(tape, s, hg_tape_param(tape, model->input_head.b));
}

/* The scores of a layer, added to those of the depths before; `scores` itself if only the last
 * layer counts and this is another. */
static hg_var layer_scores(const hg_model *model, const struct hg__model_layer *layer,
                           hg_tape *tape, hg_graph *graph, struct hg__features h, hg_var scores,
                           struct hg__layer_values *values)
{
	const hg_model_config *c = &model->config;
	const int depth = (int)(layer - model->layer) + 1;
	const int only_last = c->readout_layers == HG_READOUT_LAST,
	          first = layer == model->layer && c->readout_layers != HG_READOUT_ALL;
	if (only_last && !layer->spec.last)
		return scores;
	const struct hg__linear *head = only_last ? &model->head : &layer->head;
	const hg_var s = scores_of(model, head, tape, graph, h, c->dropout, depth, values);
	return first || only_last ? s : hg_add(tape, scores, s);
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

static struct hg__features layer_record(const hg_model *model, const struct hg__model_layer *layer,
                                        hg_tape *tape, hg_graph *graph, struct hg__features x,
                                        hg_var edges)
{
	const struct hg__model_kind *kind = model->kind;
	const struct hg__layer_spec *spec = &layer->spec;
	return hg__features_dense(
	    kind->record_edges
	        ? kind->record_edges(&model->config, spec, layer->own, tape, graph, x, edges)
	        : kind->record(&model->config, spec, layer->own, tape, graph, x),
	    spec->out);
}

static hg_var layers_record(const hg_model *model, hg_tape *tape, hg_graph *graph,
                            struct hg__features x, hg_var edges, struct hg__layer_values *values)
{
	const hg_model_config *c = &model->config;
	const int embed = model->kind->embed != HG__EMBED_NONE;
	hg_var scores = HG_NONE;
	if (embed)
		x = embedding_record(model, tape, x);
	note_nodes(values, 0, x.x);
	for (int l = 0; l < c->layers; l++) {
		const struct hg__model_layer *layer = &model->layer[l];
		hg_tape_scope(tape, layer->name);
		if (!embed)
			x = hg__features_dropout(tape, x, c->dropout);
		if (l == 0 && c->readout_layers == HG_READOUT_ALL) {
			scores = input_scores(model, tape, graph, x, values);
			hg_tape_scope(tape, layer->name);
		}
		x = layer_record(model, layer, tape, graph, x, edges);
		note_nodes(values, l + 1, x.x);
		if (c->readout >= 0)
			scores = layer_scores(model, layer, tape, graph, x, scores, values);
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

static hg_status check_params(const hg_model *model, hg_tape *tape)
{
	return model->params == tape->params
	           ? HG_OK
	           : hg__tape_fail(tape, HG_ERR_ARG, "%s: the model has other parameters than the tape",
	                           model->config.name);
}

static hg_status check_call(const hg_model *model, hg_tape *tape, const hg_model_input *input,
                            hg_model_input *ours)
{
	if (!model || !input)
		return hg__tape_fail(tape, HG_ERR_ARG, "hg_model_record: %s is NULL",
		                     model ? "input" : "model");
	HG__TRY(check_params(model, tape));
	if (!hg__struct_read(ours, sizeof *ours, input))
		return hg__tape_fail(tape, HG_ERR_ARG,
		                     "%s: input.size is not set (start from HG_MODEL_INPUT_INIT), or a "
		                     "field unknown to this version is used",
		                     model->config.name);
	return HG_OK;
}

static hg_var record(hg_model *model, hg_tape *tape, const hg_model_input *input,
                     struct hg__layer_values *values)
{
	const hg_var invalid = hg__tape_var(tape, -1);
	hg_model_input ours = HG_MODEL_INPUT_INIT;
	struct hg__features x;
	if (!hg__tape_open(tape, "hg_model_record"))
		return invalid;
	if (check_call(model, tape, input, &ours) < 0 || input_check(model, tape, &ours) < 0)
		return invalid;
	if (hg__tape_stick(tape, features_record(model, tape, &ours, &x)) < 0)
		return invalid;
	const hg_var edges = hg__model_reads_edges(model)
	                         ? hg_tape_input(tape, ours.edge_x, "edge features", ours.edge_amax)
	                         : HG_NONE;
	return layers_record(model, tape, ours.graph, x, edges, values);
}

hg_var hg_model_record(hg_model *model, hg_tape *tape, const hg_model_input *input)
{
	return record(model, tape, input, NULL);
}

/* ---- embeddings ---- */

int hg__model_embedding_layer(const hg_model *model, int layer)
{
	const hg_model_config *c = &model->config;
	const int layers_behind = c->readout < 0 && !model->kind->head, /* of the last linear one */
	    first = model->kind->embed == HG__EMBED_NONE;
	if (layer == HG_EMBED_LAST)
		layer = c->layers - layers_behind;
	return layer >= first && layer <= c->layers ? layer : -1;
}

int64_t hg__model_embedding_cols(const hg_model *model, int layer)
{
	return layer ? model->layer[layer - 1].spec.out : model->layer[0].spec.in;
}

/* A readout that is recorded only to be read comes behind everything else and in a layer of its
 * own, because promotions count the ops of a layer (promote.c). No layer ends with an op whose
 * result may be stored x 2^-k, so hg_tape_keep takes it. */
hg_var hg__model_record_embedding(hg_model *model, hg_tape *tape, const hg_model_input *input,
                                  int layer, int of_graphs, hg_var *embedding)
{
	struct hg__layer_values values = {layer, HG_NONE, HG_NONE};
	const hg_var logits = record(model, tape, input, &values);
	*embedding = HG_NONE;
	if (hg_tape_status(tape) < 0)
		return logits;
	hg_tape_scope(tape, "embedding");
	if (of_graphs && values.graphs.id == HG_NONE.id)
		values.graphs =
		    hg_readout(tape, input->graph, values.nodes, (hg_reduce)model->config.readout);
	*embedding = of_graphs ? values.graphs : values.nodes;
	hg_tape_keep(tape, *embedding);
	hg_tape_scope(tape, NULL);
	return logits;
}

static hg_status check_on(const hg_model *model, hg_tape *tape, hg_graph *graph, hg_var x)
{
	if (!model || !graph)
		return hg__tape_fail(tape, HG_ERR_ARG, "hg_model_record_on: %s is NULL",
		                     model ? "graph" : "model");
	HG__TRY(check_params(model, tape));
	const int32_t index = hg__tape_index(tape, x);
	if (index < 0)
		return hg__tape_fail(tape, HG_ERR_ARG, "%s: x is not a variable of this tape",
		                     model->config.name);
	if (hg__model_reads_edges(model))
		return hg__tape_fail(
		    tape, HG_ERR_ARG,
		    "%s: hg_model_record_on gives no attributes of edges, which this model "
		    "reads: use hg_model_record, or edge_features 0",
		    model->config.name);
	const struct hg__value *value = &tape->recording.value[index];
	return check_shapes(model, tape, graph, value->rows, value->cols);
}

hg_var hg_model_record_on(hg_model *model, hg_tape *tape, hg_graph *graph, hg_var x)
{
	if (!hg__tape_open(tape, "hg_model_record_on") || check_on(model, tape, graph, x) < 0)
		return hg__tape_var(tape, -1);
	return layers_record(model, tape, graph, hg__features_dense(x, model->config.in_features),
	                     HG_NONE, NULL);
}
