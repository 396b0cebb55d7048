#include <stdlib.h>

#include "convert_step.h"
#include "halfgraph/model.h"
#include "halfgraph/ops.h"
#include "halfgraph/step.h"

/* A GCN that trains on a graph that is refilled: its step alone, and with a refill before each. The
 * loss must be finite in the end, and no step may have been lost. */

struct model {
	hg_graph_stream *stream;
	hg_tensor *x, *label;
	hg_params *params;
	hg_model *gcn;
	hg_tape *tape;
	hg_optim *optim;
	hg_step *step;
	hg_var loss;
};

static void model_free(struct model *m)
{
	hg_step_free(m->step);
	hg_optim_free(m->optim);
	hg_tape_free(m->tape);
	hg_model_free(m->gcn);
	hg_params_free(m->params);
	hg_tensor_free(m->label);
	hg_tensor_free(m->x);
}

static hg_status labels_make(struct bench *b, int64_t rows, hg_tensor **label)
{
	int32_t *class_of = malloc((size_t)rows * sizeof *class_of);
	if (!class_of)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld labels", (long long)rows);
	for (int64_t i = 0; i < rows; i++)
		class_of[i] =
		    i < b->csr.rows
		        ? (int32_t)edge_below((uint64_t)b->classes,
		                              edge_uniform((uint64_t)b->options.seed + 3, (uint64_t)i))
		        : -1;
	hg_status status = hg_tensor_create(b->ctx, HG_I32, rows, 1, label);
	if (status == HG_OK)
		status = hg_tensor_upload(*label, class_of, HG_I32);
	free(class_of);
	return status;
}

static hg_status model_make(struct bench *b, struct model *m)
{
	static const struct fill_rule rule = {-1.0, 1.0, 0};
	hg_graph *const graph = hg_graph_stream_graph(m->stream);
	hg_model_input input = HG_MODEL_INPUT_INIT;
	hg_model_config config = hg_model_config_default("gcn");
	hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	hg_step_config step = HG_STEP_CONFIG_INIT;
	const int64_t width = b->options.widths ? b->options.features[0] : b->features;
	config.in_features = width;
	config.out_features = b->classes;
	config.hidden = (int)b->options.hidden;
	config.layers = (int)b->options.layers;
	config.dropout = 0.0f;
	HG__TRY(hg_tensor_create(b->ctx, b->policy->state, hg_graph_rows(graph), width, &m->x));
	HG__TRY(b->device->fill(b->ctx, m->x->mat, (uint64_t)b->options.seed + 2, &rule));
	HG__TRY(labels_make(b, hg_graph_rows(graph), &m->label));
	HG__TRY(hg_params_create(b->ctx, b->policy, &m->params));
	HG__TRY(hg_model_create(m->params, &config, &m->gcn));
	HG__TRY(hg_tape_create(m->params, HG_TRAIN, &m->tape));
	input.graph = graph;
	input.x = m->x;
	m->loss = hg_softmax_xent(m->tape, hg_model_record(m->gcn, m->tape, &input),
	                          hg_tape_input(m->tape, m->label, "labels", -1.0), HG_NONE);
	HG__TRY(hg_tape_compile(m->tape, m->loss));
	HG__TRY(hg_optim_create(m->params, &adam, &m->optim));
	return hg_step_create(m->tape, m->optim, &step, &m->step);
}

static hg_status step_run(void *model)
{
	return hg_step_run(((struct model *)model)->step, 1);
}

static hg_status refill_and_step_run(void *model)
{
	HG__TRY(hg_graph_stream_convert(((struct model *)model)->stream));
	return step_run(model);
}

static hg_status row(struct bench *b, struct model *m, const char *variant, run_fn run)
{
	struct result r = result_new("convert", variant, b->policy->name);
	hg_step_info info = HG_STEP_INFO_INIT;
	double loss = 0;
	char note[96];
	HG__TRY(measure(b, run, m, &r.ms));
	HG__TRY(hg_step_read(m->step, 0, &loss, &info));
	snprintf(note, sizeof note, "%lld layers, loss %.4g, %lld steps skipped",
	         (long long)b->options.layers, loss, (long long)info.skipped);
	r.features = b->options.hidden;
	r.note = note;
	report_result(b, &r);
	return HG_OK;
}

hg_status convert_step(struct bench *b, hg_graph_stream *stream)
{
	struct model m = {.stream = stream, .loss = HG_NONE};
	const int scatters = hg_graph_stream_aggregation(stream) == HG_AGGREGATION_SCATTER;
	hg_status status = model_make(b, &m);
	if (status == HG_OK)
		status = row(b, &m, scatters ? "a step of gcn, scattered" : "a step of gcn", step_run);
	if (status == HG_OK)
		status = row(b, &m, scatters ? "refill and step, scattered" : "refill and a step of gcn",
		             refill_and_step_run);
	model_free(&m);
	return status;
}
