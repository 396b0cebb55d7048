#include <float.h>
#include <math.h>
#include <string.h>

#include "doctor/replay.h"
#include "precision/half.h"

/* Before the step begins: features, targets, labels, weights of graphs, and all of the parameters.
 * What is bad here is no op's fault. */

static hg_status input_found(struct hg__replay *replay, const char *name,
                             const struct hg__rows *rows, const struct hg__look *look,
                             const struct hg__mat *mat, int32_t value, struct hg__found **out)
{
	struct hg__found *found = hg__found_new(replay, 0, HG_CAUSE_INPUT);
	*out = found;
	if (!found)
		return HG_OK;
	found->event = -1;
	found->value = value;
	found->finding.bad = look->nonfinite;
	found->finding.count = mat->rows * mat->cols;
	found->finding.got = look->got;
	found->finding.limit = hg_dtype_get(mat->dtype)->overflow;
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &found->finding.tensor, "%s", name));
	return hg__found_at(replay, found, rows, look->row, look->col);
}

/* ---- sparse features: a graph between nodes and features, or the values of its edges ---- */

/* The run says which graph holds its features. On a tape of one's own it is one between nodes and
 * features, of which weights are read; a graph from nodes to nodes may read trained nodes as
 * well. */
static int is_features(const struct hg__replay *replay, const hg_graph *graph)
{
	const hg_tape *tape = replay->tape;
	if (!graph || graph == replay->features)
		return graph != NULL;
	if (hg_graph_rows(graph) == hg_graph_cols(graph))
		return 0;
	for (int64_t k = 0; k < tape->entries; k++)
		if (tape->entry[k].node.graph == graph &&
		    tape->value[tape->entry[k].node.in[0]].kind == HG__PARAM)
			return 1;
	return 0;
}

/* An edge of the feature matrix is an element of the features. */
static hg_status as_feature(struct hg__replay *replay, struct hg__found *found,
                            const hg_graph *graph)
{
	hg_finding *f = &found->finding;
	if (f->row_is != HG_ROW_EDGE || !is_features(replay, graph))
		return HG_OK;
	f->row_is = HG_ROW_NODE;
	f->row = f->edge_row;
	f->col = f->edge_col;
	f->edge_row = f->edge_col = -1;
	return hg__page_text(replay->ctx, replay->pages, &f->tensor, "features");
}

static hg_status check_graph(struct hg__replay *replay, hg_graph *graph)
{
	const void *weight = NULL;
	struct hg__look look;
	struct hg__found *found = NULL;
	const struct hg__rows rows = {HG_ROW_EDGE, 1, graph};
	HG__TRY(hg__graph_weight(graph, HG_F32, &weight));
	const struct hg__mat mat = {(void *)(uintptr_t)weight, hg_graph_edges(graph), 1, 1, HG_F32};
	if (!weight)
		return HG_OK;
	HG__TRY(hg__look_at(replay->ctx, &mat, NULL, &look));
	if (!look.nonfinite)
		return HG_OK;
	replay->bad_graph = graph;
	HG__TRY(input_found(replay, "edge weights", &rows, &look, &mat, -1, &found));
	return found ? as_feature(replay, found, graph) : HG_OK;
}

static hg_status check_graphs(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t k = 0; k < tape->entries; k++) {
		int seen = !tape->plan.entry[k].alive || !tape->entry[k].node.graph;
		for (int64_t i = 0; i < k && !seen; i++)
			seen =
			    tape->plan.entry[i].alive && tape->entry[i].node.graph == tape->entry[k].node.graph;
		if (!seen)
			HG__TRY(check_graph(replay, tape->entry[k].node.graph));
	}
	return HG_OK;
}

/* ---- leaves ---- */

/* The largest sum of sizes over a row. */
static double largest_row(const float *x, const struct hg__mat *mat)
{
	double most = 0.0;
	for (int64_t i = 0; i < mat->rows; i++) {
		double sum = 0.0;
		for (int64_t c = 0; c < mat->cols; c++)
			sum += fabs((double)x[i * mat->cols + c]);
		most = sum > most ? sum : most;
	}
	return most;
}

/* ---- features that an upload made 0: |x| <= 2^-25 ---- */

/* A column has vanished if more than half of its mass is lost. One of 32 that hold anything is a
 * finding: by choice, so that the last components of a decomposition, which are nothing but
 * rounding, are none. What f32 holds as a subnormal alone counts as nothing. */
#define COLUMNS_LOST 32

/* Of one column, from row 0 on. */
struct vanishing {
	double mass, lost;
	int64_t gone, row; /* elements that became 0; the largest of them */
	double largest;
};

static struct vanishing vanishing_of(const float *x, const struct hg__mat *mat, int64_t col)
{
	struct vanishing v = {0};
	for (int64_t i = 0; i < mat->rows; i++) {
		const double size = fabs((double)x[i * mat->cols + col]);
		if (!(size >= (double)FLT_MIN) || !isfinite(size))
			continue;
		v.mass += size;
		if (hg__half_round((float)size) != 0.0f)
			continue;
		v.lost += size;
		v.gone++;
		if (size > v.largest) {
			v.largest = size;
			v.row = i;
		}
	}
	return v;
}

/* Those of the columns that vanished, as a look that saw nothing else; 0: too few. */
static int64_t columns_gone(const float *x, const struct hg__mat *mat, struct hg__look *look)
{
	int64_t columns = 0, full = 0;
	struct hg__look gone = *look;
	gone.gone = 0;
	gone.largest_lost = (struct hg__off){0};
	for (int64_t c = 0; c < mat->cols; c++) {
		const struct vanishing v = vanishing_of(x, mat, c);
		full += v.mass > 0.0;
		if (!(v.lost > 0.5 * v.mass))
			continue;
		columns++;
		gone.gone += v.gone;
		if (v.largest > gone.largest_lost.by)
			gone.largest_lost =
			    (struct hg__off){v.row, c, 0.0, (double)x[v.row * mat->cols + c], v.largest};
	}
	if (!columns || columns * COLUMNS_LOST < full)
		return 0;
	*look = gone;
	return columns;
}

static hg_status upload_found(struct hg__replay *replay, int32_t v, const struct hg__look *look,
                              int64_t columns)
{
	struct hg__found *found = hg__found_new(replay, 1, HG_CAUSE_UNDERFLOW);
	const struct hg__mat *mat = &replay->tape->value[v].tensor->mat;
	if (!found)
		return HG_OK;
	found->event = -1;
	found->value = v;
	found->finding.bad = look->gone;
	found->finding.count = mat->rows * mat->cols;
	found->finding.got = look->largest_lost.got;
	found->finding.wide = look->largest_lost.wide;
	found->finding.limit = hg_dtype_get(mat->dtype)->min_subnormal;
	found->finding.columns = columns;
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &found->finding.tensor, "%s",
	                      replay->tape->value[v].name));
	HG__TRY(hg__found_at(replay, found, &replay->rows[v], look->largest_lost.row,
	                     look->largest_lost.col));
	return as_feature(replay, found, replay->rows[v].graph);
}

/* Values of sparse features, which dropout reads as a tensor of their own: f16 of the graph's
 * f32. */
static int holds_feature_values(const struct hg__replay *replay, int32_t v)
{
	const struct hg__rows *rows = &replay->rows[v];
	const struct hg__mat *mat = &replay->tape->value[v].tensor->mat;
	return rows->kind == HG_ROW_EDGE && rows->graph && rows->graph == replay->features &&
	       mat->dtype == HG_F16 && mat->cols == 1 && mat->rows == hg_graph_edges(rows->graph);
}

static hg_status look_at_feature_values(struct hg__replay *replay, int32_t v, struct hg__look *look)
{
	const struct hg__mat *mat = &replay->tape->value[v].tensor->mat;
	const void *weight = NULL;
	HG__TRY(hg__graph_weight(replay->features, HG_F32, &weight));
	const struct hg__mat wide = {(void *)(uintptr_t)weight, mat->rows, 1, 1, HG_F32};
	HG__TRY(hg__look_at(replay->ctx, mat, weight ? &wide : NULL, look));
	replay->value[v].row_sum = replay->features_sum;
	replay->value[v].underflowed = weight && hg__underflows(look);
	return replay->silent && replay->value[v].underflowed ? upload_found(replay, v, look, 0)
	                                                      : HG_OK;
}

static hg_status look_at_leaf(struct hg__replay *replay, int32_t v, struct hg__look *look)
{
	const struct hg__value *value = &replay->tape->value[v];
	const struct hg__mat *mat = &value->tensor->mat;
	if (holds_feature_values(replay, v))
		return look_at_feature_values(replay, v, look);
	if (!replay->uploaded || value->tensor != replay->x) {
		HG__TRY(hg__look_at(replay->ctx, mat, NULL, look));
		replay->value[v].row_sum = look->row_sum;
		return HG_OK;
	}
	HG__TRY(hg__look_beside(replay->ctx, mat, replay->uploaded, look));
	replay->value[v].row_sum = largest_row(replay->uploaded, mat);
	if (!replay->silent)
		return HG_OK;
	struct hg__look gone = *look;
	const int64_t columns = columns_gone(replay->uploaded, mat, &gone);
	if (!columns && !hg__underflows(look))
		return HG_OK;
	replay->value[v].underflowed = hg__underflows(look);
	return upload_found(replay, v, columns ? &gone : look, columns);
}

static hg_status check_leaf(struct hg__replay *replay, int32_t v)
{
	const struct hg__value *value = &replay->tape->value[v];
	const struct hg__mat *mat = &value->tensor->mat;
	const int param = value->kind == HG__PARAM;
	struct hg__look look;
	struct hg__found *found = NULL;
	hg_doctor_tensor tensor = {.op = "",
	                           .layer = "",
	                           .node = -1,
	                           .dtype = mat->dtype,
	                           .rows = mat->rows,
	                           .cols = mat->cols,
	                           .bound = value->known[HG__ASSUMED].largest,
	                           .verdict = HG_EXACT};
	HG__TRY(look_at_leaf(replay, v, &look));
	for (int i = 0; i < 8; i++)
		tensor.in[i] = -1;
	replay->value[v].bad = look.nonfinite;
	replay->value[v].count = mat->rows * mat->cols;
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &tensor.name, "%s",
	                      param ? value->param->name : value->name));
	HG__TRY(hg__note_tensor(replay, &tensor, &look, &replay->value[v].tensor));
	if (param || !look.nonfinite)
		return HG_OK; /* parameters are asked one by one */
	HG__TRY(input_found(replay, tensor.name, &replay->rows[v], &look, mat, v, &found));
	return found ? as_feature(replay, found, replay->rows[v].graph) : HG_OK;
}

static hg_status check_leaves(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t v = 0; v < tape->values; v++) {
		const struct hg__value *value = &tape->value[v];
		if (value->node < 0 && tape->plan.value[v].alive && hg__is_float(value->dtype))
			HG__TRY(check_leaf(replay, (int32_t)v));
	}
	return HG_OK;
}

static int32_t value_of(const hg_tape *tape, const hg_param *param)
{
	for (int64_t v = 0; v < tape->values; v++)
		if (tape->value[v].kind == HG__PARAM && tape->value[v].param == param)
			return (int32_t)v;
	return -1;
}

/* A working copy that is bad where its master is good: a half cannot hold it. */
static hg_status narrowed_found(struct hg__replay *replay, const hg_param *param,
                                const struct hg__look *look, struct hg__found *found)
{
	double master = 0.0;
	HG__TRY(hg__fetch_element(replay->ctx, &param->master->mat, look->row, look->col, &master));
	found->finding.wide = master;
	return HG_OK;
}

/* Masters, and the working copies of those that are good. */
static hg_status check_param(struct hg__replay *replay, const hg_param *param)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	const hg_tensor *const of[] = {param->master, param->working};
	struct hg__found *found = NULL;
	for (int i = 0; i < (param->working == param->master ? 1 : 2); i++) {
		struct hg__look look;
		HG__TRY(hg__look_at(replay->ctx, &of[i]->mat, NULL, &look));
		if (!look.nonfinite)
			continue;
		HG__TRY(input_found(replay, param->name, &rows, &look, &of[i]->mat,
		                    value_of(replay->tape, param), &found));
		return found && i == 1 ? narrowed_found(replay, param, &look, found) : HG_OK;
	}
	return HG_OK;
}

/* ---- labels ---- */

/* The first label of a row that counts that is no column of the logits. */
static int64_t first_wrong(const struct hg__fetched *label, const struct hg__fetched *mask,
                           int64_t classes, int64_t *wrong)
{
	int64_t first = -1;
	for (int64_t i = label->mat.rows - 1; i >= 0; i--) {
		if (hg__fetched_at(label, i, 0) < (double)classes ||
		    (mask->mat.data && hg__fetched_at(mask, i, 0) == 0.0))
			continue;
		first = i;
		++*wrong;
	}
	return first;
}

static hg_status label_found(struct hg__replay *replay, int32_t v, int64_t row, double label,
                             int64_t classes, int64_t wrong)
{
	struct hg__found *found = hg__found_new(replay, 0, HG_CAUSE_INPUT);
	const struct hg__value *value = &replay->tape->value[v];
	replay->value[v].bad = wrong;
	if (!found)
		return HG_OK;
	found->event = -1;
	found->value = v;
	found->finding.bad = wrong;
	found->finding.count = value->rows;
	found->finding.got = label;
	found->finding.limit = (double)classes;
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &found->finding.tensor, "%s",
	                      *value->name ? value->name : "labels"));
	return hg__found_at(replay, found, &replay->rows[v], row, 0);
}

static hg_status check_labels(struct hg__replay *replay, const struct hg__node *node)
{
	const hg_tape *tape = replay->tape;
	const struct hg__mat *label = &tape->value[node->in[1]].tensor->mat;
	const struct hg__mat *mask =
	    node->n_in > 2 && node->in[2] >= 0 && tape->value[node->in[2]].node < 0
	        ? &tape->value[node->in[2]].tensor->mat
	        : NULL;
	const int64_t classes = tape->value[node->in[0]].cols;
	struct hg__fetched labels = {0}, masks = {0};
	int64_t wrong = 0;
	hg_status status = hg__fetch_rows(replay->ctx, label, 0, label->rows, &labels);
	if (status >= 0 && mask)
		status = hg__fetch_rows(replay->ctx, mask, 0, mask->rows, &masks);
	const int64_t row = status >= 0 ? first_wrong(&labels, &masks, classes, &wrong) : -1;
	if (row >= 0)
		status =
		    label_found(replay, node->in[1], row, hg__fetched_at(&labels, row, 0), classes, wrong);
	hg__fetched_free(replay->ctx, &masks);
	hg__fetched_free(replay->ctx, &labels);
	return status;
}

static hg_status sum_features(struct hg__replay *replay)
{
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;
	if (replay->features)
		HG__TRY(hg_graph_facts_get(replay->features, &facts));
	replay->features_sum = facts.max_row_sum;
	return HG_OK;
}

hg_status hg__check_inputs(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	HG__TRY(sum_features(replay));
	HG__TRY(check_graphs(replay));
	HG__TRY(check_leaves(replay));
	for (int64_t k = 0; k < tape->entries; k++) {
		const struct hg__node *node = &tape->entry[k].node;
		if (tape->plan.entry[k].alive && node->op->traits & HG__LOSS &&
		    tape->value[node->in[1]].dtype == HG_I32 && tape->value[node->in[1]].node < 0)
			HG__TRY(check_labels(replay, node));
	}
	for (int64_t i = 0; i < replay->params->count; i++)
		if (!hg__is_running_statistic(replay,
		                              replay->params->item[i])) /* statistics.c finds those */
			HG__TRY(check_param(replay, replay->params->item[i]));
	return HG_OK;
}
