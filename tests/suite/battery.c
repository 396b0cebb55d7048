#include "suite/battery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"

/* Feature widths and numbers of heads, of which each op uses what it needs: single columns, packs
 * of eight, rows with a tail, numbers of heads that are neither a power of two nor a divisor of a
 * vector, no columns at all, and more heads than any buffer of the kernels has room for. */
static const struct {
	int64_t width;
	int heads;
} extents[] = {{1, 17}, {3, 5}, {8, 4}, {41, 1}, {0, 260}};

static int is_tried(const struct hg__op *op, const struct battery_graph *g, int64_t width)
{
	if (g->weighted && g->counted != ((op->traits & HG__COUNTS_EDGES) != 0))
		return 0;
	return g->width == 0 || (!(op->traits & (HG__GRAPH | HG__ELEMENTWISE)) && width == g->width);
}

/* 260 heads are only used on the small graphs: on all of them they would take longer than
 * everything else together. */
#define MOST_EDGE_VALUES 30000

/* Tall matrices test ways of summing, not every attribute. So a matrix of more elements than this
 * gets only the first two samples of an op, and none with hundreds of columns more. */
#define LARGE 100000
#define TOO_LARGE 400000

/* Of the combinations of a small graph, a setting and a width, one in THINNED is tried: an op of a
 * graph meets each graph in every setting and in every width, and each setting in every width. */
#define THINNED TEST_SHARE(1, 3)

static int is_left_out(const struct battery_graph *g, const struct hg__sample *s, int i)
{
	const int64_t elements = s->in[0].shape.rows * s->in[0].shape.cols;
	return g->width > 0 && elements > LARGE && (i >= 2 || elements > TOO_LARGE);
}

/* Bad samples are recorded on a tape, as a user would do it. They must be refused with the promised
 * status and a message that names the op. */
static void refuse(hg_context *ctx, const struct hg__op *op, const struct battery_graph *g,
                   const struct hg__sample *s, hg_dtype state, const char *label)
{
	const hg_policy policy = state == HG_F16 ? hg_policy_fp16() : hg_policy_fp32();
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_tensor *in[HG__MAX_IN] = {0};
	hg_param *buffers[2] = {0};
	hg_var var[HG__MAX_IN];
	CHECK_OK(hg_params_create(ctx, &policy, &params));
	CHECK_OK(hg_tape_create(params, HG_TRAIN, &tape));
	for (int i = 0; i < s->n_in; i++) {
		var[i] = HG_NONE;
		if (!s->in[i].shape.present)
			continue;
		CHECK_OK(hg_tensor_create(ctx, s->in[i].shape.dtype, s->in[i].shape.rows,
		                          s->in[i].shape.cols, &in[i]));
		var[i] = hg_tape_input(tape, in[i], "operand", 1.0);
	}
	for (int b = 0; b < s->buffers; b++)
		CHECK_OK(hg_params_add(params, b ? "running_var" : "running_mean", 1, s->in[0].shape.cols,
		                       HG_INIT_ONES, HG_PARAM_F32 | HG_PARAM_BUFFER, &buffers[b]));
	const hg_var y = hg__record(tape, op, s->use_graph ? g->graph : NULL, var, s->n_in,
	                            s->buffers ? buffers : NULL, s->attr, sizeof s->attr);
	const hg_status status = hg_tape_status(tape);
	CHECK_MSG(y.id < 0 && status == s->expect, "%s, %s: recording gave %s, promised is %s", label,
	          s->what, hg_status_name(status), hg_status_name(s->expect));
	CHECK_CONTAINS(hg_context_error(ctx), op->name);
	hg_tape_free(tape);
	for (int i = 0; i < s->n_in; i++)
		hg_tensor_free(in[i]);
	hg_params_free(params);
}

struct setting {
	hg_dtype state;
	hg_accumulate accumulate;
	hg_mode mode;
	const char *name;
};
static const struct setting settings[] = {
    {HG_F32, HG_ACC_F32, HG_TRAIN, "fp32"},
    {HG_F16, HG_ACC_F32, HG_TRAIN, "fp16"},
    {HG_F16, HG_ACC_F16_DISCRETIZED, HG_TRAIN, "fp16-discretized"},
    {HG_F16, HG_ACC_F16_NAIVE, HG_TRAIN, "fp16-naive"},
    {HG_F16, HG_ACC_F32, HG_EVAL, "fp16 eval"},
};

static int is_enough(const struct battery_score *score)
{
	return score->enough > 0 && score->worst > score->enough;
}

static void all_samples(hg_context *ctx, const struct hg__kernels *kernels, const struct hg__op *op,
                        const struct battery_graph *g, const struct setting *setting, int64_t width,
                        int heads, struct battery_score *score)
{
	const struct hg__extent extent = {g->o.rows, g->o.m, g->o.batch, width, heads, setting->state};
	struct hg__sample sample;
	memset(&sample, 0, sizeof sample);
	for (int i = 0; !is_enough(score) && op->sample(i, &extent, &sample);
	     i++, memset(&sample, 0, sizeof sample)) {
		char label[128];
		snprintf(label, sizeof label, "%s, %s, d = %d, h = %d", setting->name, g->name, (int)width,
		         heads);
		if (sample.expect != HG_OK) {
			refuse(ctx, op, g, &sample, setting->state, label);
			continue;
		}
		if (is_left_out(g, &sample, i))
			continue;
		struct battery_case *c = calloc(1, sizeof *c);
		CHECK(c != NULL);
		battery_case_open(c, ctx, kernels, op, g, &sample, setting->state, setting->accumulate,
		                  setting->mode);
		c->o.sum_u =
		    setting->state == HG_F16 && setting->accumulate == HG_ACC_F32 ? score->sum_u : 0;
		battery_case_run(c, label, score);
		if (kernels == ctx->backend->kernels)
			battery_case_range(c, label);
		battery_case_close(c);
		free(c);
	}
}

void battery_op(hg_context *ctx, const struct hg__kernels *kernels, const struct hg__op *op,
                struct battery_score *score)
{
	struct battery_graph g;
	for (int k = 0; !is_enough(score) && battery_graph_new(ctx, k, &g); k++) {
		for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
			if (settings[s].accumulate != HG_ACC_F32 && !(op->traits & HG__GRAPH))
				continue;
			for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
				if ((g.width > 0 || ((size_t)k + s + i) % THINNED == 0) &&
				    g.o.m * extents[i].heads <= MOST_EDGE_VALUES &&
				    is_tried(op, &g, extents[i].width))
					all_samples(ctx, kernels, op, &g, &settings[s], extents[i].width,
					            extents[i].heads, score);
		}
		battery_graph_free(&g);
	}
}
