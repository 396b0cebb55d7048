#include <stdio.h>

#include "convert_sums.h"
#include "halfgraph/ops.h"
#include "halfgraph/tape.h"

/* The sum of a layer of gcn, forward, normalised as there. What AUTO knows of these times stands in
 * core/graph_stream_choose.c. */

struct sum {
	hg_params *params;
	hg_tape *tape;
	hg_tensor *x;
};

static void sum_free(struct sum *s)
{
	hg_tape_free(s->tape);
	hg_params_free(s->params);
	hg_tensor_free(s->x);
}

static hg_status sum_make(struct bench *b, hg_graph *graph, int64_t width, struct sum *s)
{
	static const struct fill_rule rule = {-1.0, 1.0, 0};
	HG__TRY(hg_tensor_create(b->ctx, b->policy->state, hg_graph_rows(graph), width, &s->x));
	HG__TRY(b->device->fill(b->ctx, s->x->mat, (uint64_t)b->options.seed + 2, &rule));
	HG__TRY(hg_params_create(b->ctx, b->policy, &s->params));
	HG__TRY(hg_tape_create(s->params, HG_EVAL, &s->tape));
	const hg_var x = hg_tape_input(s->tape, s->x, "x", 1.0);
	return hg_tape_compile(s->tape, hg_spmm(s->tape, graph, x, HG_NONE, HG_NORM_BOTH, 1.0f));
}

static hg_status sum_run(void *tape)
{
	return hg_tape_forward(tape);
}

static hg_status sum_measure(struct bench *b, hg_graph_stream *stream, int64_t width,
                             struct timing *ms)
{
	struct sum s = {NULL, NULL, NULL};
	hg_status status = sum_make(b, hg_graph_stream_graph(stream), width, &s);
	if (status == HG_OK)
		status = measure(b, sum_run, s.tape, ms);
	sum_free(&s);
	return status;
}

static hg_status width_row(struct bench *b, hg_graph_stream *gather, hg_graph_stream *scatter,
                           double saved, int64_t width)
{
	struct result r = result_new("convert", "a sum, gathered", b->policy->name);
	char note[96] = "";
	r.features = width;
	HG__TRY(sum_measure(b, gather, width, &r.ms));
	report_result(b, &r);
	const double gathered = r.ms.median;
	r.variant = "a sum, scattered";
	HG__TRY(sum_measure(b, scatter, width, &r.ms));
	const double lost = r.ms.median - gathered;
	if (lost > 0.0)
		snprintf(note, sizeof note, "takes less time for up to %.2g sums on a list",
		         fmax(saved, 0.0) / lost);
	else
		snprintf(note, sizeof note, "takes less time");
	r.note = note;
	report_result(b, &r);
	return HG_OK;
}

hg_status convert_sums(struct bench *b, hg_graph_stream *gather, hg_graph_stream *scatter,
                       double saved)
{
	static const int64_t widths[] = {32, 64, 128};
	const int given = b->options.widths;
	for (int k = 0; k < (given ? given : 3); k++)
		HG__TRY(width_row(b, gather, scatter, saved, given ? b->options.features[k] : widths[k]));
	return HG_OK;
}
