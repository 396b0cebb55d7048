#include <math.h>
#include <stdio.h>

#include "call.h"
#include "check_spmm.h"
#include "spmm_args.h"
#include "variants.h"
#include "variants/spmm_variants.h"

/* hg-bench spmm: one aggregation, Y = r A s X, by width, precision and variant, beside the gather
 * ceiling and the peer. Edge weights are all 1, or the graph's own (--weights: f32), or an operand
 * [m, heads] in the state type (--heads), as in attention. */

/* The figures to compare with: the gather ceiling by type, the fastest peer, and the variant that
 * training uses in the current precision. */
struct references {
	struct ceiling gather[2];
	double peer, automatic;
};

static hg_status result_check(struct bench *b, const struct call *call, hg_norm norm,
                              hg_accumulate bound, int tiles, struct check *check)
{
	struct aggregation a = {
	    .x = call->call.in[0], .y = call->call.out, .accumulate = bound, .tiles = tiles};
	const void *weight = NULL;
	HG__TRY(hg__graph_weight(b->graph, HG_F32, &weight));
	a.weight = weight;
	a.w = call->call.in[1];
	HG__TRY(hg__graph_norm(b->graph, norm, &a.row_scale, &a.col_scale));
	HG__TRY(spoil(b, a.y, b->csr.rows <= CHECK_ROWS ? 0 : b->longest));
	return check_spmm(b, &a, check);
}

/* Measure, check and report, through the op (kernel NULL) or by calling a variant of the kernel
 * directly. An unsafe variant may exceed its bound; it is reported, but does not count as wrong. */
static hg_status variant_measure(struct bench *b, const struct variant *v, struct call *call,
                                 struct spmm_variant_call *direct, struct references *references)
{
	const struct spmm_variant *kernel = v->kernel < 0 ? NULL : &spmm_variants[v->kernel];
	const struct hg__mat x = call->call.in[0], w = call->call.in[1];
	struct check check;
	struct result r = result_new("spmm", v->name, b->policy->name);
	char note[64];
	HG__TRY(measure(b, kernel ? spmm_variant_run : call_forward,
	                kernel ? (void *)direct : (void *)call, &r.ms));
	const int tiles = kernel ? kernel->share == SHARE_TILES
	                         : x.dtype == HG_F16 && call->call.csr.plan->tiles != NULL;
	HG__TRY(result_check(b, call, (hg_norm)b->options.norm,
	                     kernel ? kernel->bound : call->node.accumulate, tiles, &check));
	const struct hg__cost cost = call_cost(call);
	r.features = x.cols;
	r.heads = (int)w.cols;
	r.bytes = cost.bytes +
	          /* the cost counts operands only, without the graph's own weights */
	          (b->options.weights && !w.data ? (double)b->csr.m * (double)sizeof(float) : 0);
	r.error = check.ratio;
	r.gather_ms = references->gather[b->policy->state].ms;
	r.unordered_ms = references->gather[b->policy->state].unordered;
	r.peer_ms = w.cols > 1 ? (double)NAN : references->peer; /* the peer has one weight per edge */
	if (kernel)
		variant_note(references->automatic, kernel->flags, note, sizeof note, &r);
	else if (v->accumulate < 0)
		references->automatic = r.ms.median;
	report_result(b, &r);
	if (!kernel || !(kernel->flags & VARIANT_UNSAFE))
		check_report(b, &check, "spmm", v->name);
	return HG_OK;
}

/* A variant of the kernel, if it can compute this call. */
static hg_status kernel_run(struct bench *b, const struct variant *v, struct call *call,
                            hg_norm norm, struct references *references)
{
	const struct hg__call *c = &call->call;
	struct hg__spmm_args args;
	struct spmm_variant_call direct;
	const char *why = NULL;
	HG__TRY(spmm_args_of(b, (hg_accumulate)v->accumulate, norm, c->in[0], c->in[1], c->out, &args));
	hg_status status =
	    spmm_variant_open(b->ctx, (enum spmm_variant_id)v->kernel, &args, b->rowptr, &direct, &why);
	if (status == HG_OK && why)
		report_absent(b, "spmm", v->name, why);
	else if (status == HG_OK)
		status = variant_measure(b, v, call, &direct, references);
	spmm_variant_close(&direct);
	return status;
}

static hg_status variant_run(struct bench *b, const struct variant *v, struct hg__mat x,
                             struct hg__mat w, struct hg__mat y, struct references *references)
{
	const struct hg__spmm_attr attr = {(hg_norm)b->options.norm, 1.0f};
	struct call call;
	HG__TRY(call_new(b, &hg__op_spmm, 1, &attr, sizeof attr, &call));
	if (v->accumulate >= 0)
		call.node.accumulate = (hg_accumulate)v->accumulate;
	call_in(&call, 0, x);
	if (w.data)
		call_in(&call, 1, w);
	call.call.out = y;
	HG__TRY(call_prepare(&call));
	if (x.dtype == HG_F16 && !w.data && !b->options.weights && call.node.accumulate == HG_ACC_F32)
		HG__TRY(hg__graph_tiles(b->graph, 0, 0, x.cols, x.cols));
	/* NaN in every element shows elements that are not written */
	HG__TRY(b->ctx->backend->fill(b->ctx, y.data, 0xFF,
	                              (size_t)(y.rows * y.ld) * hg_dtype_size(y.dtype)));
	return v->kernel < 0 ? variant_measure(b, v, &call, NULL, references)
	                     : kernel_run(b, v, &call, attr.norm, references);
}

/* Measure one variant of the peer, on numbers of its own type. */
static hg_status peer_measure(struct bench *b, struct peer_graph *graph,
                              const struct peer_variant *variant, int64_t cols, struct mats *mats,
                              struct references *references)
{
	static const struct fill_rule ones = {1.0, 1.0, 0};
	struct aggregation a = {.accumulate = HG_ACC_F32};
	struct hg__mat values;
	const void *weight = NULL;
	struct peer *peer = NULL;
	struct result r = result_new("spmm", variant->name, hg_dtype_name(variant->dtype));
	HG__TRY(mat_random(b, mats, variant->dtype, b->csr.cols, cols, 1, -1.0, 1.0, &a.x));
	HG__TRY(mat_new(b, mats, variant->dtype, b->csr.rows, cols, &a.y));
	HG__TRY(mat_new(b, mats, variant->dtype, b->csr.m, 1, &values));
	HG__TRY(hg__graph_weight(b->graph, variant->dtype, &weight));
	if (weight)
		HG__TRY(b->ctx->backend->copy(b->ctx, values.data, weight,
		                              (size_t)values.rows * hg_dtype_size(values.dtype)));
	else
		HG__TRY(b->device->fill(b->ctx, values, 0, &ones));
	HG__TRY(hg__graph_weight(b->graph, HG_F32, &weight));
	a.weight = weight;
	hg_status status = b->device->peers->spmm(graph, variant, values.data, a.x, a.y, &peer);
	if (status == HG_OK)
		status = measure(b, b->device->peers->run, peer, &r.ms);
	b->device->peers->free(peer);
	if (status == HG_ERR_UNSUPPORTED) {
		report_absent(b, "spmm", variant->name, hg_context_error(b->ctx));
		return HG_OK;
	}
	HG__TRY(status);
	struct check check;
	HG__TRY(check_spmm(b, &a, &check));
	r.features = cols;
	r.error = check.ratio;
	r.gather_ms = references->gather[variant->dtype].ms;
	r.unordered_ms = references->gather[variant->dtype].unordered;
	r.bytes = (double)b->csr.m * (double)(cols + 1) * (double)hg_dtype_size(variant->dtype) +
	          (double)b->csr.m * 4.0;
	report_result(b, &r);
	references->peer = fmin(references->peer, r.ms.median);
	return HG_OK;
}

static hg_status measure_peers(struct bench *b, int64_t cols, struct references *references)
{
	struct peer_graph *graph = NULL;
	hg_status status = b->device->peers->open(b->ctx, &b->csr, b->rowptr, &graph);
	references->peer = (double)INFINITY;
	for (const struct peer_variant *variant = b->device->peers->spmm_variants;
	     status == HG_OK && variant->name; variant++) {
		struct mats mats = {.count = 0};
		status = peer_measure(b, graph, variant, cols, &mats, references);
		mats_free(&mats);
	}
	b->device->peers->close(graph);
	if (isinf(references->peer))
		references->peer = (double)NAN;
	return status;
}

/* The gather ceiling for the given type. */
static hg_status measure_ceiling(struct bench *b, int64_t cols, hg_dtype dtype,
                                 struct references *references)
{
	struct mats mats = {.count = 0};
	struct hg__mat x;
	if (!isnan(references->gather[dtype].ms))
		return HG_OK;
	hg_status status = mat_random(b, &mats, dtype, b->csr.cols, cols, 1, -1.0, 1.0, &x);
	if (status == HG_OK)
		status = ceiling(b, "spmm", x, &references->gather[dtype]);
	mats_free(&mats);
	return status;
}

static hg_status variants_run(struct bench *b, int64_t cols, int64_t heads, struct mats *mats,
                              struct references *references)
{
	static const struct fill_rule weights = {0.0, 1.0, 1024}; /* the same numbers in f16 and f32 */
	const struct variant_list *list = variants_of("spmm");
	struct hg__mat x, y, w = {NULL, 0, 0, 0, HG_F32};
	HG__TRY(mat_random(b, mats, b->policy->state, b->csr.cols, cols, 1, -1.0, 1.0, &x));
	HG__TRY(mat_new(b, mats, b->policy->state, b->csr.rows, cols, &y));
	if (heads)
		HG__TRY(mat_new(b, mats, b->policy->state, b->csr.m, heads, &w));
	if (heads)
		HG__TRY(b->device->fill(b->ctx, w, (uint64_t)b->options.seed + 5, &weights));
	for (int i = 0; i < list->count; i++)
		if (variant_wanted(b, list, &list->variant[i]))
			HG__TRY(variant_run(b, &list->variant[i], x, w, y, references));
	return HG_OK;
}

/* heads 0: with the graph's own weights, or none. */
static hg_status heads_run(struct bench *b, int64_t cols, int64_t heads,
                           struct references *references)
{
	struct mats mats = {.count = 0};
	if (heads && cols % heads) {
		report_absent(b, "spmm", b->options.variant, "the heads do not divide the width");
		return HG_OK;
	}
	const hg_status status = variants_run(b, cols, heads, &mats, references);
	mats_free(&mats);
	return status;
}

static hg_status width_run(struct bench *b, int64_t cols)
{
	struct references references = {{CEILING_NONE, CEILING_NONE}, (double)NAN, (double)NAN};
	for (int i = 0; i < b->options.policies; i++)
		HG__TRY(measure_ceiling(b, cols, b->options.policy[i].state, &references));
	if (b->options.peer)
		HG__TRY(measure_peers(b, cols, &references));
	for (int i = 0; i < b->options.policies; i++) {
		b->policy = &b->options.policy[i];
		references.automatic = (double)NAN;
		for (int h = 0; h < b->options.head_counts || h == 0; h++)
			HG__TRY(
			    heads_run(b, cols, b->options.head_counts ? b->options.heads[h] : 0, &references));
	}
	return HG_OK;
}

hg_status bench_spmm(struct bench *b)
{
	static const int64_t usual[] = {32, 64, 128};
	const int64_t *widths = b->options.widths ? b->options.features : usual;
	const int count = b->options.widths ? b->options.widths : 3;
	for (int i = 0; i < count; i++)
		HG__TRY(width_run(b, widths[i]));
	return HG_OK;
}
