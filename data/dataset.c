/* Create, free and check a dataset. hg_dataset_check holds every rule that readers may rely on. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"
#include "node_names.h"
#include "targets.h"

hg_status hg_dataset_new(hg_dataset **dataset, char *message)
{
	if (!dataset)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_new: dataset is NULL");
	*dataset = calloc(1, sizeof **dataset);
	if (!*dataset)
		return hg__data_fail(message, HG_ERR_NOMEM, "out of memory: a dataset needs %zu bytes",
		                     sizeof **dataset);
	(*dataset)->graphs = 1;
	(*dataset)->feat_dtype = HG_F32;
	return HG_OK;
}

void hg_dataset_free(hg_dataset *d)
{
	if (!d)
		return;
	void *owned[] = {d->name,      d->rowptr,         d->col,        d->weight,     d->graph_ptr,
	                 d->feat,      d->feat_rowptr,    d->feat_col,   d->label,      d->feat_value,
	                 d->val_mask,  d->test_mask,      d->orig_id,    d->train_mask, d->order,
	                 d->target,    d->edge_feat,      d->edge_label, d->fold,       d->target_names,
	                 d->feat_mean, d->feat_deviation, d->class_name, d->node_name};
	for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
		free(owned[i]);
	free(d);
}

float hg__data_feature(const hg_dataset *d, int64_t index)
{
	return d->feat_dtype == HG_F16 ? hg_half_to_float(((const hg_half *)d->feat)[index])
	                               : ((const float *)d->feat)[index];
}

int64_t hg__data_labelled(const hg_dataset *d)
{
	return d->graph_ptr ? d->graphs : d->nodes;
}

int hg__data_has_loop(const hg_dataset *d, int64_t i)
{
	for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
		if (d->col[e] == i)
			return 1;
	return 0;
}

double hg__data_amax(const hg_dataset *d)
{
	double amax = 0;
	const int64_t stored = d->feat          ? d->nodes * d->features
	                       : d->feat_rowptr ? d->feat_rowptr[d->nodes]
	                                        : 0;
	if (!d->feat && !d->feat_value)
		return stored > 0 ? 1 : 0;
	for (int64_t i = 0; i < stored; i++) {
		const double x = fabs((double)(d->feat ? hg__data_feature(d, i) : d->feat_value[i]));
		if (isfinite(x) && x > amax)
			amax = x;
	}
	return amax;
}

/* What a message names: the file or importer, and the array. */
struct location {
	const char *origin, *what;
	char *message;
};

hg_status hg__data_check_pointers(const char *origin, const char *what, const int64_t *pointers,
                                  int64_t rows, char *message)
{
	if (pointers[0] != 0)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: %s: pointers start at %" PRId64 ", expected 0", origin, what,
		                     pointers[0]);
	for (int64_t i = 0; i < rows; i++)
		if (pointers[i + 1] < pointers[i])
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s: %s: pointers decrease after row %" PRId64 ": %" PRId64
			                     " after %" PRId64,
			                     origin, what, i, pointers[i + 1], pointers[i]);
	return HG_OK;
}

/* Columns must lie in [0, cols) and ascend strictly in every row. */
static hg_status check_columns(struct location at, const int64_t *rowptr, const int32_t *col,
                               int64_t rows, int64_t cols)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
			if (col[e] < 0 || col[e] >= cols)
				return hg__data_fail(at.message, HG_ERR_FORMAT,
				                     "%s: %s: index %" PRId32 " at entry %" PRId64 " (row %" PRId64
				                     ") is not in [0, %" PRId64 ")",
				                     at.origin, at.what, col[e], e, i, cols);
			if (e > rowptr[i] && col[e] <= col[e - 1])
				return hg__data_fail(at.message, HG_ERR_FORMAT,
				                     "%s: %s: columns of row %" PRId64
				                     " are not strictly ascending: %" PRId32 " after %" PRId32,
				                     at.origin, at.what, i, col[e], col[e - 1]);
		}
	return HG_OK;
}

static hg_status check_graph(const hg_dataset *d, const char *origin, char *message)
{
	struct location at = {origin, "graph", message};
	if (d->nodes < 0 || d->nodes > INT32_MAX || d->edges < 0 || !d->rowptr || !d->col)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: graph: %" PRId64 " nodes and %" PRId64
		                     " edges need at most 2147483647 nodes, rowptr and col",
		                     origin, d->nodes, d->edges);
	HG__TRY(hg__data_check_pointers(origin, at.what, d->rowptr, d->nodes, message));
	if (d->rowptr[d->nodes] != d->edges)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: graph: pointers end at %" PRId64 ", but there are %" PRId64
		                     " edges",
		                     origin, d->rowptr[d->nodes], d->edges);
	return check_columns(at, d->rowptr, d->col, d->nodes, d->nodes);
}

static hg_status check_weights(const hg_dataset *d, const char *origin, char *message)
{
	for (int64_t i = 0; d->weight && i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++)
			if (!isfinite(d->weight[e]))
				return hg__data_fail(message, HG_ERR_FORMAT,
				                     "%s: graph: weight %g at row %" PRId64 ", column %" PRId32
				                     " is not finite",
				                     origin, (double)d->weight[e], i, d->col[e]);
	return HG_OK;
}

/* The failure "ORIGIN: WHAT: the edge from node J to node I FOUND", of edge e. */
static hg_status bad_edge(const hg_dataset *d, struct location at, hg_status status, int64_t e,
                          const char *found)
{
	int64_t i = 0;
	while (d->rowptr[i + 1] <= e)
		i++;
	return hg__data_fail(at.message, status,
	                     "%s: %s: the edge from node %" PRId32 " to node %" PRId64 " %s", at.origin,
	                     at.what, d->col[e], i, found);
}

static hg_status check_edge_features(const hg_dataset *d, const char *origin, char *message)
{
	int64_t cells = 0;
	char found[96];
	if (d->edge_features < 0 || d->edge_features > INT32_MAX ||
	    (d->edge_features > 0) != (d->edge_feat != NULL) ||
	    __builtin_mul_overflow(d->edges, d->edge_features, &cells))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: edge features: %" PRId64
		                     " columns need a matrix, and a matrix 1 to 2147483647 columns",
		                     origin, d->edge_features);
	for (int64_t k = 0; k < cells; k++)
		if (!isfinite(d->edge_feat[k])) {
			const float x = d->edge_feat[k];
			(void)snprintf(found, sizeof found, "has %s in column %" PRId64 ", not a finite number",
			               isnan(x) ? "nan"
			               : x > 0  ? "inf"
			                        : "-inf",
			               k % d->edge_features);
			return bad_edge(d, (struct location){origin, "edge features", message}, HG_ERR_RANGE,
			                k / d->edge_features, found);
		}
	return HG_OK;
}

static hg_status check_edge_labels(const hg_dataset *d, const char *origin, char *message)
{
	char found[96];
	if (d->edge_classes < 0 || (d->edge_classes > 0 && !d->edge_label))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: edge labels: %" PRId32 " classes need edge_label", origin,
		                     d->edge_classes);
	for (int64_t e = 0; d->edge_label && e < d->edges; e++)
		if (d->edge_label[e] >= d->edge_classes) {
			(void)snprintf(found, sizeof found, "has label %" PRId32 ", but there are %" PRId32,
			               d->edge_label[e], d->edge_classes);
			return bad_edge(d, (struct location){origin, "edge labels", message}, HG_ERR_FORMAT, e,
			                found);
		}
	return HG_OK;
}

static hg_status check_batch(const hg_dataset *d, const char *origin, char *message)
{
	if (!d->graph_ptr)
		return d->graphs == 1 ? HG_OK
		                      : hg__data_fail(message, HG_ERR_FORMAT,
		                                      "%s: batch: %" PRId64 " graphs, but no graph_ptr",
		                                      origin, d->graphs);
	if (d->graphs < 0)
		return hg__data_fail(message, HG_ERR_FORMAT, "%s: batch: %" PRId64 " graphs", origin,
		                     d->graphs);
	HG__TRY(hg__data_check_pointers(origin, "batch", d->graph_ptr, d->graphs, message));
	if (d->graph_ptr[d->graphs] != d->nodes)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: batch: pointers end at %" PRId64 ", but there are %" PRId64
		                     " nodes",
		                     origin, d->graph_ptr[d->graphs], d->nodes);
	for (int64_t g = 0; g < d->graphs; g++)
		for (int64_t e = d->rowptr[d->graph_ptr[g]]; e < d->rowptr[d->graph_ptr[g + 1]]; e++)
			if (d->col[e] < d->graph_ptr[g] || d->col[e] >= d->graph_ptr[g + 1])
				return hg__data_fail(message, HG_ERR_FORMAT,
				                     "%s: batch: graph %" PRId64 " (nodes %" PRId64 " to %" PRId64
				                     ") has an edge to node %" PRId32,
				                     origin, g, d->graph_ptr[g], d->graph_ptr[g + 1] - 1,
				                     d->col[e]);
	return HG_OK;
}

/* The order must be a permutation that keeps every node in its graph of the batch. What the nodes
 * are called is checked with it. */
static hg_status check_order(const hg_dataset *d, const char *origin, char *message)
{
	HG__TRY(hg__node_names_check(d, origin, message));
	if (!d->order)
		return HG_OK;
	const hg_status status = hg_order_check(d->nodes, d->order, NULL);
	if (status == HG_ERR_NOMEM)
		return hg__data_fail(message, status,
		                     "out of memory: checking the order of %" PRId64 " nodes", d->nodes);
	if (status < 0)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: order: it is not a permutation of 0 to %" PRId64, origin,
		                     d->nodes - 1);
	for (int64_t g = 0; d->graph_ptr && g < d->graphs; g++)
		for (int64_t i = d->graph_ptr[g]; i < d->graph_ptr[g + 1]; i++)
			if (d->order[i] < d->graph_ptr[g] || d->order[i] >= d->graph_ptr[g + 1])
				return hg__data_fail(message, HG_ERR_FORMAT,
				                     "%s: order: node %" PRId64 " was node %" PRId32
				                     ", outside of its graph %" PRId64,
				                     origin, i, d->order[i], g);
	return HG_OK;
}

static hg_status bad_feature(const char *origin, float x, int64_t row, int64_t column, int half,
                             char *message)
{
	return hg__data_fail(
	    message, HG_ERR_RANGE,
	    "%s: features: row %" PRId64 ", column %" PRId64 " is %g, not a finite number%s", origin,
	    row, column, (double)x, half && isinf(x) ? " (f16 ends at 65504)" : "");
}

static hg_status check_dense_values(const hg_dataset *d, const char *origin, char *message)
{
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t j = 0; j < d->features; j++) {
			const float x = hg__data_feature(d, i * d->features + j);
			if (!isfinite(x))
				return bad_feature(origin, x, i, j, d->feat_dtype == HG_F16, message);
		}
	return HG_OK;
}

static hg_status check_sparse(const hg_dataset *d, const char *origin, char *message)
{
	struct location at = {origin, "features", message};
	if (!d->feat_col || d->features > INT32_MAX)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: features: sparse features of %" PRId64
		                     " columns need feat_col and at most 2147483647 columns",
		                     origin, d->features);
	HG__TRY(hg__data_check_pointers(origin, at.what, d->feat_rowptr, d->nodes, message));
	return check_columns(at, d->feat_rowptr, d->feat_col, d->nodes, d->features);
}

static hg_status check_sparse_values(const hg_dataset *d, const char *origin, char *message)
{
	for (int64_t i = 0; d->feat_value && i < d->nodes; i++)
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			if (!isfinite(d->feat_value[e]))
				return bad_feature(origin, d->feat_value[e], i, d->feat_col[e], 0, message);
	return HG_OK;
}

static hg_status check_standardization(const hg_dataset *d, const char *origin, char *message)
{
	if (!d->feat_mean != !d->feat_deviation)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: features: means and deviations of columns come together", origin);
	for (int64_t j = 0; d->feat_mean && j < d->features; j++)
		if (!isfinite(d->feat_mean[j]) || !isfinite(d->feat_deviation[j]) ||
		    d->feat_deviation[j] < 0)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s: features: column %" PRId64 " was standardised with the mean "
			                     "%g and the deviation %g, expected finite numbers, the deviation "
			                     "not below 0",
			                     origin, j, d->feat_mean[j], d->feat_deviation[j]);
	return HG_OK;
}

static hg_status check_features(const hg_dataset *d, const char *origin, char *message)
{
	if (d->features < 0 || (d->features > 0 && !d->feat == !d->feat_rowptr) ||
	    (d->feat && d->feat_rowptr))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: features: %" PRId64
		                     " columns need a dense or a sparse matrix, and one only",
		                     origin, d->features);
	if (d->feat && d->feat_dtype != HG_F16 && d->feat_dtype != HG_F32)
		return hg__data_fail(message, HG_ERR_DTYPE, "%s: features: type %d is neither f16 nor f32",
		                     origin, (int)d->feat_dtype);
	HG__TRY(check_standardization(d, origin, message));
	return d->feat_rowptr ? check_sparse(d, origin, message) : HG_OK;
}

static hg_status check_values(const hg_dataset *d, const char *origin, char *message)
{
	return d->feat          ? check_dense_values(d, origin, message)
	       : d->feat_rowptr ? check_sparse_values(d, origin, message)
	                        : HG_OK;
}

static hg_status check_labels(const hg_dataset *d, const char *origin, char *message)
{
	const int64_t n = hg__data_labelled(d);
	if (d->classes < 0)
		return hg__data_fail(message, HG_ERR_FORMAT, "%s: labels: %" PRId32 " classes", origin,
		                     d->classes);
	for (int64_t i = 0; d->label && i < n; i++)
		if (d->label[i] >= d->classes)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s: labels: %s %" PRId64 " has label %" PRId32
			                     ", but there are %" PRId32 " classes",
			                     origin, d->graph_ptr ? "graph" : "node", i, d->label[i],
			                     d->classes);
	return hg__names_check(d, origin, message);
}

static hg_status check_targets(const hg_dataset *d, const char *origin, char *message)
{
	const int64_t n = hg__data_labelled(d);
	if (d->targets < 0 || (d->targets > 0) != (d->target != NULL))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: targets: %" PRId64 " columns need a matrix, and a matrix columns",
		                     origin, d->targets);
	HG__TRY(hg__target_names_check(d, origin, message));
	for (int64_t i = 0; d->target && i < n; i++)
		for (int64_t j = 0; j < d->targets; j++)
			if (isinf(d->target[i * d->targets + j]))
				return hg__data_fail(message, HG_ERR_FORMAT,
				                     "%s: targets: row %" PRId64 ", column %" PRId64 " is infinite",
				                     origin, i, j);
	return HG_OK;
}

/* Files store the name as an attribute, and readers limit its length. */
static hg_status check_name(const hg_dataset *d, const char *origin, char *message)
{
	return !d->name || strlen(d->name) <= HG__TEXT_MAX
	           ? HG_OK
	           : hg__data_fail(message, HG_ERR_FORMAT, "%s: name: it is longer than %d bytes",
	                           origin, HG__TEXT_MAX);
}

static hg_status check_splits(const hg_dataset *d, const char *origin, char *message)
{
	static const char *const names[3] = {"train", "val", "test"};
	const uint8_t *const mask[3] = {d->train_mask, d->val_mask, d->test_mask};
	const int64_t n = hg__data_labelled(d);
	for (int a = 0; a < 3; a++)
		for (int64_t i = 0; mask[a] && i < n; i++)
			if (mask[a][i] > 1)
				return hg__data_fail(message, HG_ERR_FORMAT,
				                     "%s: splits: %s of %s %" PRId64 " is %d, neither 0 nor 1",
				                     origin, names[a], d->graph_ptr ? "graph" : "node", i,
				                     mask[a][i]);
	for (int a = 0; a < 3; a++)
		for (int b = a + 1; b < 3; b++)
			for (int64_t i = 0; mask[a] && mask[b] && i < n; i++)
				if (mask[a][i] && mask[b][i])
					return hg__data_fail(message, HG_ERR_FORMAT,
					                     "%s: splits: %s %" PRId64 " is in %s and in %s", origin,
					                     d->graph_ptr ? "graph" : "node", i, names[a], names[b]);
	return HG_OK;
}

/* Each part, and the parts that must hold before it can be checked. */
#define NEEDS(part) (1u << (part))
static const struct {
	hg_status (*check)(const hg_dataset *d, const char *origin, char *message);
	unsigned needs;
} parts[HG__PARTS] = {
    [HG__PART_NAME] = {check_name, 0},
    [HG__PART_GRAPH] = {check_graph, 0},
    [HG__PART_WEIGHTS] = {check_weights, NEEDS(HG__PART_GRAPH)},
    [HG__PART_EDGE_FEATURES] = {check_edge_features, NEEDS(HG__PART_GRAPH)},
    [HG__PART_EDGE_LABELS] = {check_edge_labels, NEEDS(HG__PART_GRAPH)},
    [HG__PART_BATCH] = {check_batch, NEEDS(HG__PART_GRAPH)},
    [HG__PART_ORDER] = {check_order, NEEDS(HG__PART_GRAPH) | NEEDS(HG__PART_BATCH)},
    [HG__PART_FEATURES] = {check_features, NEEDS(HG__PART_GRAPH)},
    [HG__PART_VALUES] = {check_values, NEEDS(HG__PART_GRAPH) | NEEDS(HG__PART_FEATURES)},
    [HG__PART_LABELS] = {check_labels, NEEDS(HG__PART_GRAPH) | NEEDS(HG__PART_BATCH)},
    [HG__PART_TARGETS] = {check_targets, NEEDS(HG__PART_GRAPH) | NEEDS(HG__PART_BATCH)},
    [HG__PART_SPLITS] = {check_splits, NEEDS(HG__PART_GRAPH) | NEEDS(HG__PART_BATCH)},
    [HG__PART_FOLDS] = {hg__data_check_folds, NEEDS(HG__PART_GRAPH) | NEEDS(HG__PART_BATCH)},
};

hg_status hg__check_part(const hg_dataset *d, enum hg__part part, unsigned broken,
                         const char *origin, char *message)
{
	return parts[part].needs & broken ? HG_OK : parts[part].check(d, origin, message);
}

hg_status hg_dataset_check(const hg_dataset *d, const char *origin, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_check: dataset is NULL");
	if (!origin)
		origin = d->name ? d->name : "dataset";
	for (int part = 0; part < HG__PARTS; part++)
		HG__TRY(hg__check_part(d, (enum hg__part)part, 0, origin, message));
	return HG_OK;
}
