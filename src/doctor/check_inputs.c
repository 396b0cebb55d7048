#include <math.h>

#include "doctor/check.h"

/* What is checked before the step begins: leaves, labels, weights of graphs, and all parameters. If
 * something is wrong with them, no op is at fault. */

/* ---- weights of graphs ---- */

static hg_status check_graph(struct hg__replay *replay, hg_graph *graph)
{
	const void *weight = NULL;
	struct hg__scan seen;
	struct hg__finding *finding = NULL;
	const struct hg__rows rows = {HG_ROW_EDGE, 1, graph};
	HG__TRY(hg__graph_weight(graph, HG_F32, &weight));
	const struct hg__mat mat = {(void *)(uintptr_t)weight, hg_graph_edges(graph), 1, 1, HG_F32};
	if (!weight)
		return HG_OK;
	HG__TRY(hg__scan_tensor(replay->ctx, &mat, NULL, &seen));
	if (!seen.nonfinite)
		return HG_OK;
	replay->bad_graph = graph;
	HG__TRY(hg__report_input(replay, "edge weights", &rows, &seen, &mat, -1, &finding));
	return finding ? hg__edge_to_feature(replay, finding, graph) : HG_OK;
}

/* Each graph once, however many entries use it. */
static hg_status check_graphs(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t k = 0; k < tape->recording.entries; k++) {
		int skip = !tape->plan.entry[k].alive || !tape->recording.entry[k].node.graph;
		for (int64_t i = 0; i < k && !skip; i++)
			skip = tape->plan.entry[i].alive &&
			       tape->recording.entry[i].node.graph == tape->recording.entry[k].node.graph;
		if (!skip)
			HG__TRY(check_graph(replay, tape->recording.entry[k].node.graph));
	}
	return HG_OK;
}

/* ---- parameters ---- */

static int32_t value_of(const hg_tape *tape, const hg_param *param)
{
	for (int64_t v = 0; v < tape->recording.values; v++)
		if (tape->recording.value[v].kind == HG__PARAM && tape->recording.value[v].param == param)
			return (int32_t)v;
	return -1;
}

/* First the master weights; if they are finite, the working copy, which is then not finite because
 * f16 cannot hold the master weight. */
static hg_status check_param(struct hg__replay *replay, const hg_param *param)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	const hg_tensor *const tensors[] = {param->master, param->working};
	struct hg__finding *finding = NULL;
	for (int i = 0; i < (param->working == param->master ? 1 : 2); i++) {
		struct hg__scan seen;
		HG__TRY(hg__scan_tensor(replay->ctx, &tensors[i]->mat, NULL, &seen));
		if (!seen.nonfinite)
			continue;
		HG__TRY(hg__report_input(replay, param->name, &rows, &seen, &tensors[i]->mat,
		                         value_of(replay->tape, param), &finding));
		return finding && i == 1
		           ? hg__fetch_element(replay->ctx, &param->master->mat, seen.first.row,
		                               seen.first.col, &finding->reported.wide)
		           : HG_OK;
	}
	return HG_OK;
}

/* ---- labels ---- */

/* The first row that is not masked and whose label is not a class; -1: there is none. */
static int64_t first_wrong_label(const struct hg__fetched *labels, const struct hg__fetched *mask,
                                 int64_t classes, int64_t *wrong)
{
	int64_t first = -1;
	for (int64_t i = labels->mat.rows - 1; i >= 0; i--) {
		if (hg__fetched_at(labels, i, 0) < (double)classes ||
		    (mask->mat.data && hg__fetched_at(mask, i, 0) == 0.0))
			continue;
		first = i;
		++*wrong;
	}
	return first;
}

static hg_status report_label(struct hg__replay *replay, int32_t v, int64_t row, double label,
                              int64_t classes, int64_t wrong)
{
	struct hg__finding *finding = hg__finding_new(replay, HG__NONFINITE, HG_CAUSE_INPUT);
	const struct hg__value *value = &replay->tape->recording.value[v];
	replay->value[v].bad = wrong;
	if (!finding)
		return HG_OK;
	finding->position = HG__BEFORE_STEP;
	finding->value = v;
	finding->reported.bad = wrong;
	finding->reported.count = value->rows;
	finding->reported.got = label;
	finding->reported.limit = (double)classes;
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &finding->reported.tensor, "%s",
	                        *value->name ? value->name : "labels"));
	return hg__finding_set_element(replay, finding, &replay->rows[v], row, 0);
}

static hg_status check_labels(struct hg__replay *replay, const struct hg__node *node)
{
	const hg_tape *tape = replay->tape;
	const struct hg__mat *label = &tape->recording.value[node->in[1]].tensor->mat;
	const struct hg__mat *mask =
	    node->n_in > 2 && node->in[2] >= 0 && tape->recording.value[node->in[2]].node < 0
	        ? &tape->recording.value[node->in[2]].tensor->mat
	        : NULL;
	const int64_t classes = tape->recording.value[node->in[0]].cols;
	struct hg__fetched labels = {0}, masks = {0};
	int64_t wrong = 0;
	hg_status status = hg__fetch_rows(replay->ctx, label, 0, label->rows, &labels);
	if (status >= 0 && mask)
		status = hg__fetch_rows(replay->ctx, mask, 0, mask->rows, &masks);
	const int64_t row = status >= 0 ? first_wrong_label(&labels, &masks, classes, &wrong) : -1;
	if (row >= 0)
		status =
		    report_label(replay, node->in[1], row, hg__fetched_at(&labels, row, 0), classes, wrong);
	hg__fetched_free(replay->ctx, &masks);
	hg__fetched_free(replay->ctx, &labels);
	return status;
}

static int reads_class_labels(const hg_tape *tape, int64_t k)
{
	const struct hg__node *node = &tape->recording.entry[k].node;
	return tape->plan.entry[k].alive && node->op->traits & HG__LOSS &&
	       tape->recording.value[node->in[1]].dtype == HG_I32 &&
	       tape->recording.value[node->in[1]].node < 0;
}

/* ---- all of them ---- */

static hg_status measure_sparse_features(struct hg__replay *replay)
{
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;
	if (replay->sparse_features)
		HG__TRY(hg_graph_facts_get(replay->sparse_features, &facts));
	replay->sparse_features_row_sum = facts.max_row_sum;
	return HG_OK;
}

/* Running statistics are parameters, too, but running_statistics.c checks them. */
hg_status hg__check_inputs(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	HG__TRY(measure_sparse_features(replay));
	HG__TRY(check_graphs(replay));
	HG__TRY(hg__check_leaves(replay));
	for (int64_t k = 0; k < tape->recording.entries; k++)
		if (reads_class_labels(tape, k))
			HG__TRY(check_labels(replay, &tape->recording.entry[k].node));
	for (int64_t i = 0; i < replay->params->count; i++)
		if (!hg__is_running_statistic(replay, replay->params->item[i]))
			HG__TRY(check_param(replay, replay->params->item[i]));
	return HG_OK;
}
