/* Finds regions (region.h) on a recording whose chains are fused. A layer is
 *
 *     linear, spmm_epilogue or spmm                        A (H W), the bias behind the sum
 *     spmm, linear, then nothing, epilogue or relu         (A H) W + b
 *
 * and may have a second linear of H: the first form adds its result H W_self in the spmm_epilogue,
 * the second in an add behind both linears. Either linear may have the bias.
 *
 * Behind the last layer a readout, sum or mean, may follow as its only reader.
 *
 * Within a layer each result has one reader; that of a layer may have others beside the next layer.
 * Everything is f16 with f32 sums, and all layers have one graph and one normalisation. */
#include "autograd/region.h"

#include <math.h>

#include "autograd/fuse.h"
#include "autograd/ops/epilogue.h"
#include "autograd/tape.h"

static const struct hg__node *node_of(const hg_tape *tape, int32_t entry)
{
	return &tape->recording.entry[entry].node;
}

/* Whether a value is a parameter that gets its gradient from its one reader, `node`: no op reads an
 * f32 view of it either. */
static int is_own_param(const hg_tape *tape, const struct hg__node *node, int i)
{
	const struct hg__value *value = hg__operand(&tape->recording, node, i);
	return value && value->kind == HG__PARAM && !(value->param->flags & HG_PARAM_BUFFER) &&
	       value->uses == 1 && value->dtype == HG_F16 && value->root == node->in[i] &&
	       value->cast_view[HG_F32] < 0 && hg__part_dtype(node, i, value) == HG_F32;
}

/* Is the result of this node a half as it is, that fits a region? What the tape has proved a region
 * must check where the bound has no room, unless the policy wants no checks. */
static int result_fits(const hg_tape *tape, int32_t entry)
{
	const struct hg__node *node = node_of(tape, entry);
	const struct hg__value *out = &tape->recording.value[node->out];
	return out->dtype == HG_F16 && !out->shift && !node->shift && !node->shadow &&
	       node->accumulate == HG_ACC_F32 && out->cols <= HG__SMALL_WIDTH &&
	       node->verdict != HG_PROMOTED && node->verdict != HG_REFUSED &&
	       (tape->params->policy.replan || hg__region_has_room(tape, entry));
}

/* The entry that makes operand i of this one for it alone, if it is of this op; else -1. */
static int32_t maker_of(const hg_tape *tape, int32_t entry, int i, const struct hg__op *op)
{
	const struct hg__node *node = node_of(tape, entry);
	const int32_t maker =
	    hg__operand(&tape->recording, node, i) ? hg__sole_maker(&tape->recording, node, i) : -1;
	return maker >= 0 && node_of(tape, maker)->op == op && result_fits(tape, maker) ? maker : -1;
}

/* The operands of the ops. */
enum { SPMM_WEIGHTS = 1, LINEAR_W = 1, LINEAR_B, SUM_Z = 2, SUM_EPS, SUM_B, END_B = 1 };

static int ends_well(const struct hg__epilogue_attr *end)
{
	return end->act == 1 + HG__ACT_relu || (end->act == 0 && !(end->p > 0.0f));
}

/* Does this aggregation read edge weights? */
static int has_weights(const hg_tape *tape, int32_t entry)
{
	return hg__operand(&tape->recording, node_of(tape, entry), SPMM_WEIGHTS) != NULL;
}

static void take_node(struct hg__region_layer *layer, int32_t entry)
{
	for (int i = 0; i < layer->nodes; i++)
		if (layer->node[i] == entry)
			return;
	layer->node[layer->nodes++] = entry;
}

/* Takes operand i, if it is there, as the layer's bias. 0: it is not a parameter of this layer
 * alone, or the layer has a bias already. */
static int take_bias(const hg_tape *tape, int32_t entry, int i, struct hg__region_layer *layer)
{
	const struct hg__node *node = node_of(tape, entry);
	if (!hg__operand(&tape->recording, node, i))
		return 1;
	if (layer->b >= 0 || !is_own_param(tape, node, i))
		return 0;
	layer->b = node->in[i];
	return 1;
}

/* Takes W, and a bias, from this linear. */
static int take_product(const hg_tape *tape, int32_t entry, struct hg__region_layer *layer)
{
	layer->product = entry;
	layer->w = node_of(tape, entry)->in[LINEAR_W];
	take_node(layer, entry);
	return is_own_param(tape, node_of(tape, entry), LINEAR_W) &&
	       take_bias(tape, entry, LINEAR_B, layer);
}

/* Takes W_self, and a bias, from this linear. 0: it does not fit, or there is none (-1). */
static int take_self(const hg_tape *tape, int32_t entry, struct hg__region_layer *layer)
{
	if (entry < 0)
		return 0;
	layer->self = entry;
	layer->w_self = node_of(tape, entry)->in[LINEAR_W];
	take_node(layer, entry);
	return is_own_param(tape, node_of(tape, entry), LINEAR_W) &&
	       take_bias(tape, entry, LINEAR_B, layer);
}

/* A (H W), ending at this entry. */
static int product_first(const hg_tape *tape, int32_t last, struct hg__region_layer *layer,
                         struct hg__spmm_attr *spmm)
{
	const struct hg__node *node = node_of(tape, last);
	struct hg__spmm_epilogue_attr attr = {0};
	if (node->op == &hg__op_spmm_epilogue)
		hg__attr_get(node, &attr, sizeof attr);
	else if (node->op == &hg__op_spmm)
		hg__attr_get(node, &attr.spmm, sizeof attr.spmm);
	else
		return 0;
	const int32_t product = maker_of(tape, last, 0, &hg__op_linear);
	if (product < 0 || attr.self || has_weights(tape, last) ||
	    hg__operand(&tape->recording, node, SUM_EPS) ||
	    hg__operand(&tape->recording, node_of(tape, product), LINEAR_B))
		return 0;
	take_node(layer, last);
	layer->inner = product;
	layer->result = layer->blamed = last;
	layer->end = attr.act_drop;
	layer->key = node->rng_key;
	*spmm = attr.spmm;
	return take_product(tape, product, layer) &&
	       (!hg__operand(&tape->recording, node, SUM_Z) ||
	        take_self(tape, maker_of(tape, last, SUM_Z, &hg__op_linear), layer)) &&
	       take_bias(tape, last, SUM_B, layer);
}

/* The linear or the add that computes Z of a layer that ends with this entry, which may be this
 * entry itself; -1: there is none. */
static int32_t maker_of_z(const hg_tape *tape, int32_t last, struct hg__epilogue_attr *end)
{
	const struct hg__node *node = node_of(tape, last);
	if (node->op == &hg__op_linear || node->op == &hg__op_add)
		return last;
	if (node->op == &hg__op_epilogue && !hg__operand(&tape->recording, node, END_B))
		hg__attr_get(node, end, sizeof *end);
	else if (node->op == &hg__op_relu)
		end->act = node->op->act;
	else
		return -1;
	const int32_t linear = maker_of(tape, last, 0, &hg__op_linear);
	return linear >= 0 ? linear : maker_of(tape, last, 0, &hg__op_add);
}

/* Takes (A H) W, which this linear makes. */
static int take_aggregated(const hg_tape *tape, int32_t product, struct hg__region_layer *layer)
{
	const int32_t inner = product < 0 ? -1 : maker_of(tape, product, 0, &hg__op_spmm);
	if (inner < 0 || has_weights(tape, inner))
		return 0;
	layer->inner = inner;
	return take_product(tape, product, layer);
}

/* (A H) W, ending at this entry. */
static int aggregate_first(const hg_tape *tape, int32_t last, struct hg__region_layer *layer,
                           struct hg__spmm_attr *spmm)
{
	const int32_t z = maker_of_z(tape, last, &layer->end);
	const int adds = z >= 0 && node_of(tape, z)->op == &hg__op_add;
	int side = 0, fits = z >= 0; /* side: the operand of the add that is aggregated */
	if (!fits)
		return 0;
	take_node(layer, last);
	take_node(layer, z);
	if (adds) {
		const int32_t second = maker_of(tape, z, 1, &hg__op_linear);
		side = second >= 0 && maker_of(tape, second, 0, &hg__op_spmm) >= 0;
		fits = take_aggregated(tape, maker_of(tape, z, side, &hg__op_linear), layer) &&
		       take_self(tape, maker_of(tape, z, 1 - side, &hg__op_linear), layer);
	} else {
		fits = take_aggregated(tape, z, layer);
	}
	if (!fits)
		return 0;
	take_node(layer, layer->inner);
	layer->result = last;
	/* what relu gives is no larger than what it is given */
	layer->blamed = node_of(tape, last)->op == &hg__op_relu ? z : last;
	layer->key = node_of(tape, last)->rng_key;
	layer->aggregate_first = 1;
	hg__attr_get(node_of(tape, layer->inner), spmm, sizeof *spmm);
	return 1;
}

/* The layer that ends at this entry, and its graph. */
static int match_layer(const hg_tape *tape, int32_t last, struct hg__region_layer *layer,
                       struct hg__spmm_attr *spmm, hg_graph **graph)
{
	const struct hg__region_layer none = {.self = -1, .w_self = -1, .b = -1};
	*layer = none;
	if (!result_fits(tape, last))
		return 0;
	if (!product_first(tape, last, layer, spmm)) {
		*layer = none;
		if (!aggregate_first(tape, last, layer, spmm))
			return 0;
	}
	const struct hg__node *first = node_of(tape, layer->inner);
	const struct hg__value *x = &tape->recording.value[first->in[0]];
	*graph = node_of(tape, layer->aggregate_first ? layer->inner : last)->graph;
	return hg__part_dtype(first, 0, x) == HG_F16 && ends_well(&layer->end) &&
	       (layer->self < 0 || node_of(tape, layer->self)->in[0] == first->in[0]) &&
	       x->dtype == HG_F16 && !x->shift && x->cols >= 1 && x->cols <= HG__SMALL_WIDTH;
}

/* Can a graph, scaled like this, have regions? Each number of the matrix A must be a normal half,
 * and none may repeat often: factors are at least 1 / degree, and at most 1. */
static hg_status is_batch(hg_graph *graph, const struct hg__spmm_attr *spmm, int *yes)
{
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;
	const double alpha = fabs((double)spmm->alpha);
	*yes = hg__graph_bin_rows(graph) && !hg_graph_is_weighted(graph) &&
	       !hg__norm_is_weighted(spmm->norm) && alpha >= 0x1p-7 && alpha <= 0x1p7;
	if (!*yes)
		return HG_OK;
	HG__TRY(hg_graph_facts_get(graph, &facts));
	*yes = facts.max_row_degree <= HG__REGION_DEGREE && facts.max_col_degree <= HG__REGION_DEGREE;
	return HG_OK;
}

/* Backward of a region runs with the product of its first layer. Do only nodes of that layer run
 * between its first node and the product? The backward of another one would come later. */
static int is_whole(const hg_tape *tape, const struct hg__region_layer *layer)
{
	int whole = 1;
	for (int32_t k = layer->inner + 1; k < layer->product; k++)
		whole &= k == layer->self || !hg__is_needed(&tape->recording, k);
	return whole;
}

/* The entry that makes the input of a layer, if a region may store it for other readers; -1: it may
 * not. What the caller keeps has its whole gradient in memory, which a region has not. */
static int32_t maker_of_input(const hg_tape *tape, const struct hg__region_layer *layer)
{
	const struct hg__value *x = &tape->recording.value[node_of(tape, layer->inner)->in[0]];
	const int may_store = x->uses == 1 || x->cast_view[HG_F32] < 0;
	return x->kind == HG__RESULT && !x->keep && may_store ? x->node : -1;
}

static hg_status finish(hg_tape *tape, struct hg__region *region)
{
	int drops = 0;
	region->x = node_of(tape, hg__region_first(region))->in[0];
	region->kept = -1;
	for (int l = 0; l < region->layers; l++)
		drops |= region->layer[l].end.p > 0.0f;
	HG__TRY(hg__graph_bins(region->graph, &region->bins));
	if (!drops)
		return HG_OK;
	const struct hg__value kept = {.kind = HG__AUX,
	                               .dtype = HG_I32,
	                               .rows = region->bins->bins * region->layers,
	                               .cols = hg__small_kept(region->width),
	                               .node = hg__region_first(region),
	                               .name = ""};
	return hg__tape_value(tape, &kept, &region->kept);
}

/* How many times a layer reads its input: once for each of its matrices. */
static int reads(const struct hg__region_layer *layer)
{
	return layer->self < 0 ? 1 : 2;
}

/* The width of a layer. All layers of a region have the same, because a kernel takes as long for a
 * narrow layer as for a wide one. */
static int width_of(const hg_tape *tape, const struct hg__region_layer *layer)
{
	const struct hg__value *w = &tape->recording.value[layer->w];
	return hg__small_width(w->rows > w->cols ? w->rows : w->cols);
}

/* So many layers are worth while for any number of large bins (hg__backend.large_bins_rows). */
#define MANY_LAYERS 8

/* Is a region of so few layers worth while? What a kernel does for each bin before the first layer
 * and behind the last one takes longer than one wide layer does op by op: a layer of 37 to 32
 * columns on 4,100 graphs took 0.18 ms under ncu on an H200, of a step of 12 layers of 0.49. */
static int is_worth_while(const hg_tape *tape, const struct hg__region *region, int layers)
{
	const int few = hg__bin_is_large(hg__graph_bin_rows(region->graph)) &&
	                hg_graph_rows(region->graph) < tape->ctx->backend->large_bins_rows;
	return layers > (region->width == HG__SMALL_WIDTH) && (!few || layers >= MANY_LAYERS);
}

static int most_matrices(const hg_tape *tape, const hg_graph *graph, int width)
{
	const struct hg__backend *backend = tape->ctx->backend;
	return backend->small_matrices_most
	           ? backend->small_matrices_most(tape->ctx, width, hg__graph_bin_rows(graph))
	           : HG__SMALL_MATRICES;
}

/* Is this entry a sum or a mean over the nodes of each graph, as a region can compute it? */
static int is_readout(const hg_tape *tape, int32_t entry)
{
	const struct hg__node *node = node_of(tape, entry);
	struct hg__readout_attr attr;
	if (node->op != &hg__op_readout || !result_fits(tape, entry) ||
	    hg__part_dtype(node, 0, &tape->recording.value[node->in[0]]) != HG_F16)
		return 0;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.reduce == HG_REDUCE_SUM || attr.reduce == HG_REDUCE_MEAN;
}

/* The entry of the last layer of a region that ends with this one. readout: that entry, if it reads
 * out what the layer gives to no other. */
static int32_t last_layer(const hg_tape *tape, int32_t last, int32_t *readout)
{
	const int32_t maker =
	    is_readout(tape, last) ? hg__sole_maker(&tape->recording, node_of(tape, last), 0) : -1;
	*readout = maker >= 0 ? last : -1;
	return maker >= 0 ? maker : last;
}

hg_status hg__region_find(hg_tape *tape, const char *taken, int32_t last, struct hg__region *region)
{
	struct hg__region_layer layer[HG__SMALL_LAYERS];
	*region = (struct hg__region){.kept = -1};
	int count = 0, matrices = 0;
	for (int32_t k = last_layer(tape, last, &region->readout);
	     k >= 0 && count < HG__SMALL_LAYERS;) {
		struct hg__spmm_attr spmm;
		hg_graph *graph = NULL;
		int batch = 0;
		if (taken[k] || !match_layer(tape, k, &layer[count], &spmm, &graph))
			break;
		HG__TRY(is_batch(graph, &spmm, &batch));
		const int width = width_of(tape, &layer[count]);
		matrices += reads(&layer[count]);
		if (!batch || matrices > most_matrices(tape, graph, width))
			break;
		if (!count && region->readout >= 0 && node_of(tape, region->readout)->graph != graph)
			break;
		if (count && (graph != region->graph || spmm.norm != region->spmm.norm ||
		              spmm.alpha != region->spmm.alpha || width != region->width))
			break;
		region->graph = graph;
		region->spmm = spmm;
		region->width = width;
		layer[count].stored =
		    count ? tape->recording.value[node_of(tape, k)->out].uses > reads(&layer[count - 1])
		          : region->readout < 0;
		k = maker_of_input(tape, &layer[count++]);
	}
	while (count && !is_whole(tape, &layer[count - 1]))
		count--;
	if (count && !is_worth_while(tape, region, count))
		count = 0;
	region->layers = count;
	for (int l = 0; l < count; l++)
		region->layer[l] = layer[count - 1 - l];
	return count ? finish(tape, region) : HG_OK;
}
