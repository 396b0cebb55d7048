/* The arguments of a region's kernels (region.h). */
#include "autograd/program.h"
#include "autograd/tape.h"

/* The gradient of a parameter; absent if the loss does not reach it. */
static struct hg__mat gradient_of(const hg_tape *tape, int32_t value)
{
	const struct hg__mat none = {NULL, 0, 0, 0, HG_F32};
	return value >= 0 && tape->plan.value[value].grad
	           ? tape->recording.value[value].param->grad->mat
	           : none;
}

/* The gradient of a result without the part that comes through the next layer; absent if nothing
 * else contributes to it. */
static struct hg__mat gradient_from_others(const hg_tape *tape, int32_t value)
{
	const struct hg__mat none = {NULL, 0, 0, 0, HG_F16};
	return value >= 0 && tape->plan.value[value].grad_span >= 0 ? hg__grad_of(tape, value) : none;
}

static struct hg__mat param_of(const hg_tape *tape, int32_t value)
{
	const struct hg__mat none = {NULL, 0, 0, 0, HG_F16};
	return value >= 0 ? tape->recording.value[value].tensor->mat : none;
}

/* Narrowing A changes a sum of neighbours by 2^-11 of it. An entry that repeats c times is added up
 * in halves, which changes it by less than c/2 2^-11 more, and c is at most HG__REGION_DEGREE = 96.
 * So bounds grow by at most (1 + 49/2048)^HG__SMALL_LAYERS < 2.14 through all layers. */
#define ROOM 2.14

int hg__region_has_room(const hg_tape *tape, int32_t entry)
{
	const struct hg__node *node = &tape->recording.entry[entry].node;
	const struct hg__known *known =
	    &tape->recording.value[node->out].known[node->by_weights ? HG__ASSUMED : HG__UNCONDITIONAL];
	const int bounded = node->verdict == HG_PROVED || node->verdict == HG_EXACT || node->by_weights;
	return !bounded || known->largest * ROOM < hg_dtype_get(HG_F16)->max;
}

/* The check of a node's result: the tape's own, or one that only the region needs. */
static struct hg__overflow_flag guard_of(const hg_tape *tape, int32_t entry)
{
	struct hg__overflow_flag flag = hg__store_guard(tape, entry);
	if (!flag.word && !hg__region_has_room(tape, entry))
		flag.word = &tape->params->step->overflow;
	return flag;
}

static struct hg__small_layer layer_of(const hg_tape *tape, const struct hg__region_layer *layer)
{
	const int32_t out = layer->stored ? tape->recording.entry[layer->result].node.out : -1;
	return (struct hg__small_layer){.w = param_of(tape, layer->w),
	                                .w_self = param_of(tape, layer->w_self),
	                                .b = param_of(tape, layer->b),
	                                .y = hg__mat_of(tape, out),
	                                .dy = gradient_from_others(tape, out),
	                                .aggregate_first = layer->aggregate_first,
	                                .act_drop = {.act = layer->end.act,
	                                             .act_p = layer->end.act_p,
	                                             .p = tape->mode == HG_TRAIN ? layer->end.p : 0.0f,
	                                             .key = layer->key,
	                                             .step = &tape->params->step->step},
	                                .inner = guard_of(tape, layer->inner),
	                                .result = guard_of(tape, layer->blamed),
	                                .dw = gradient_of(tape, layer->w),
	                                .dw_self = gradient_of(tape, layer->w_self),
	                                .db = gradient_of(tape, layer->b)};
}

static hg_status readout_of(const hg_tape *tape, const struct hg__region *region,
                            struct hg__small_readout *readout)
{
	struct hg__readout_attr attr;
	if (region->readout < 0)
		return HG_OK;
	const struct hg__node *node = &tape->recording.entry[region->readout].node;
	hg__attr_get(node, &attr, sizeof attr);
	readout->y = hg__mat_of(tape, node->out);
	readout->dy = gradient_from_others(tape, node->out);
	readout->reduce = attr.reduce;
	readout->result = guard_of(tape, region->readout);
	return hg__graph_batch(region->graph, &readout->ptr, &readout->id);
}

/* Is A^T = A? Its factors commute where both are roots, or ones. */
static int is_symmetric(const struct hg__region *region, const struct hg__csr *csr,
                        const struct hg__csr *csr_t)
{
	const hg_norm norm = region->spmm.norm;
	return csr->col == csr_t->col && (hg__norm_is_root(norm) || norm == HG_NORM_NONE) &&
	       region->spmm.alpha == 1.0f;
}

hg_status hg__region_arguments(const hg_tape *tape, const struct hg__region *region,
                               const struct hg__call *first, struct hg__region_call *call)
{
	const float *row_scale = NULL, *col_scale = NULL;
	struct hg__csr csr, csr_t;
	HG__TRY(hg__graph_norm(region->graph, region->spmm.norm, &row_scale, &col_scale));
	HG__TRY(hg__graph_csr(region->graph, &csr));
	HG__TRY(hg__graph_csr_t(region->graph, 0, &csr_t));
	for (int l = 0; l < region->layers; l++)
		call->layer[l] = layer_of(tape, &region->layer[l]);
	call->forward = (struct hg__small_layers_args){.csr = csr,
	                                               .row_scale = row_scale,
	                                               .col_scale = col_scale,
	                                               .alpha = region->spmm.alpha,
	                                               .bins = region->bins,
	                                               .layer = call->layer,
	                                               .layers = region->layers,
	                                               .x = hg__mat_of(tape, region->x),
	                                               .kept = hg__mat_of(tape, region->kept)};
	HG__TRY(readout_of(tape, region, &call->forward.readout));
	call->backward =
	    (struct hg__small_layers_back_args){.of = call->forward,
	                                        .csr_t = csr_t,
	                                        .symmetric = is_symmetric(region, &csr, &csr_t),
	                                        .dx = first->din[0]};
	return HG_OK;
}
