#include <float.h>
#include <math.h>

#include "doctor/check.h"
#include "precision/half.h"

/* The float tensors that a step reads and no op makes: features, targets, edge weights as inputs.
 * If something is wrong with them, no op is at fault. */

hg_status hg__report_input(struct hg__replay *replay, const char *name, const struct hg__rows *rows,
                           const struct hg__scan *seen, const struct hg__mat *mat, int32_t value,
                           struct hg__finding **out)
{
	struct hg__finding *finding = hg__finding_new(replay, HG__NONFINITE, HG_CAUSE_INPUT);
	*out = finding;
	if (!finding)
		return HG_OK;
	finding->position = HG__BEFORE_STEP;
	finding->value = value;
	finding->reported.bad = seen->nonfinite;
	finding->reported.count = mat->rows * mat->cols;
	finding->reported.got = seen->first.stored;
	finding->reported.limit = hg_dtype_get(mat->dtype)->overflow;
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &finding->reported.tensor, "%s", name));
	return hg__finding_set_element(replay, finding, rows, seen->first.row, seen->first.col);
}

/* ---- sparse features: a graph between nodes and features, or the values of its edges ---- */

/* A training run says which graph holds its features. On a tape of the user's own it is a graph
 * between nodes and features through which weights are read. (A graph from nodes to nodes may read
 * weights, too: embeddings of the nodes.) */
static int holds_features(const struct hg__replay *replay, const hg_graph *graph)
{
	const hg_tape *tape = replay->tape;
	if (!graph || graph == replay->sparse_features)
		return graph != NULL;
	if (hg_graph_rows(graph) == hg_graph_cols(graph))
		return 0;
	for (int64_t k = 0; k < tape->recording.entries; k++)
		if (tape->recording.entry[k].node.graph == graph &&
		    tape->recording.value[tape->recording.entry[k].node.in[0]].kind == HG__PARAM)
			return 1;
	return 0;
}

hg_status hg__edge_to_feature(struct hg__replay *replay, struct hg__finding *finding,
                              const hg_graph *graph)
{
	hg_finding *f = &finding->reported;
	if (f->row_is != HG_ROW_EDGE || !holds_features(replay, graph))
		return HG_OK;
	f->row_is = HG_ROW_NODE;
	f->row = f->edge_row;
	f->col = f->edge_col;
	f->edge_row = f->edge_col = -1;
	return hg__report_text(replay->ctx, replay->memory, &f->tensor, "features");
}

/* ---- dense features that became 0 when they were narrowed to f16: |x| <= 2^-25 ---- */

/* A column has vanished if more than half of its sum of |x| was rounded to zero. It is a finding if
 * one of 32 columns has vanished that are not all 0. The number is a choice: the last components of
 * a principal component analysis, which are nothing but rounding, are fewer. Elements that are
 * subnormal in f32 count as 0. */
#define COLUMNS_PER_VANISHED_ONE 32

struct column {
	double abs_sum, zeroed_abs_sum;
	int64_t zeroed, row; /* elements that became 0; the row of the largest of them */
	double largest;
};

static struct column column_of(const float *x, const struct hg__mat *mat, int64_t col)
{
	struct column c = {0};
	for (int64_t i = 0; i < mat->rows; i++) {
		const double size = fabs((double)x[i * mat->cols + col]);
		if (!(size >= (double)FLT_MIN) || !isfinite(size))
			continue;
		c.abs_sum += size;
		if (hg__half_round((float)size) != 0.0f)
			continue;
		c.zeroed_abs_sum += size;
		c.zeroed++;
		if (size > c.largest) {
			c.largest = size;
			c.row = i;
		}
	}
	return c;
}

/* How many columns have vanished; 0: too few to be a finding. Else the zeroed elements of these
 * columns replace those in `seen`. */
static int64_t count_vanished(const float *x, const struct hg__mat *mat, struct hg__scan *seen)
{
	int64_t vanished = 0, not_empty = 0, zeroed = 0;
	struct hg__deviation largest = {0};
	for (int64_t col = 0; col < mat->cols; col++) {
		const struct column c = column_of(x, mat, col);
		not_empty += c.abs_sum > 0.0;
		if (!(c.zeroed_abs_sum > 0.5 * c.abs_sum))
			continue;
		vanished++;
		zeroed += c.zeroed;
		if (c.largest > largest.by)
			largest = (struct hg__deviation){c.row, col, 0.0, (double)x[c.row * mat->cols + col],
			                                 c.largest};
	}
	if (!vanished || vanished * COLUMNS_PER_VANISHED_ONE < not_empty)
		return 0;
	seen->zeroed = zeroed;
	seen->largest_zeroed = largest;
	return vanished;
}

static hg_status report_vanished(struct hg__replay *replay, int32_t v, const struct hg__scan *seen,
                                 int64_t columns)
{
	struct hg__finding *finding = hg__finding_new(replay, HG__SILENT, HG_CAUSE_UNDERFLOW);
	const struct hg__mat *mat = &replay->tape->recording.value[v].tensor->mat;
	const struct hg__deviation *largest = &seen->largest_zeroed;
	if (!finding)
		return HG_OK;
	hg_finding *f = &finding->reported;
	finding->position = HG__BEFORE_STEP;
	finding->value = v;
	f->bad = seen->zeroed;
	f->count = mat->rows * mat->cols;
	f->got = largest->stored;
	f->wide = largest->wide;
	f->limit = hg_dtype_get(mat->dtype)->min_subnormal;
	f->columns = columns;
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &f->tensor, "%s",
	                        replay->tape->recording.value[v].name));
	HG__TRY(hg__finding_set_element(replay, finding, &replay->rows[v], largest->row, largest->col));
	return hg__edge_to_feature(replay, finding, replay->rows[v].graph);
}

/* ---- one leaf ---- */

/* Dropout reads the values of sparse features as a tensor of its own: f16 copies of the graph's f32
 * weights. */
static int holds_feature_values(const struct hg__replay *replay, int32_t v)
{
	const struct hg__rows *rows = &replay->rows[v];
	const struct hg__mat *mat = &replay->tape->recording.value[v].tensor->mat;
	return rows->kind == HG_ROW_EDGE && rows->graph && rows->graph == replay->sparse_features &&
	       mat->dtype == HG_F16 && mat->cols == 1 && mat->rows == hg_graph_edges(rows->graph);
}

static hg_status scan_feature_values(struct hg__replay *replay, int32_t v, struct hg__scan *seen)
{
	const struct hg__mat *mat = &replay->tape->recording.value[v].tensor->mat;
	const void *weight = NULL;
	HG__TRY(hg__graph_weight(replay->sparse_features, HG_F32, &weight));
	const struct hg__mat wide = {(void *)(uintptr_t)weight, mat->rows, 1, 1, HG_F32};
	HG__TRY(hg__scan_tensor(replay->ctx, mat, weight ? &wide : NULL, seen));
	replay->value[v].max_row_sum = replay->sparse_features_row_sum;
	replay->value[v].underflowed = weight && hg__underflows(seen);
	return replay->wants_silent && replay->value[v].underflowed
	           ? report_vanished(replay, v, seen, 0)
	           : HG_OK;
}

static double max_row_sum(const float *x, const struct hg__mat *mat)
{
	double largest = 0.0;
	for (int64_t i = 0; i < mat->rows; i++) {
		double sum = 0.0;
		for (int64_t c = 0; c < mat->cols; c++)
			sum += fabs((double)x[i * mat->cols + c]);
		largest = sum > largest ? sum : largest;
	}
	return largest;
}

static hg_status scan_narrowed_features(struct hg__replay *replay, int32_t v, struct hg__scan *seen)
{
	const struct hg__mat *mat = &replay->tape->recording.value[v].tensor->mat;
	HG__TRY(hg__scan_beside_host(replay->ctx, mat, replay->narrowed_from, seen));
	replay->value[v].max_row_sum = max_row_sum(replay->narrowed_from, mat);
	if (!replay->wants_silent)
		return HG_OK;
	struct hg__scan lost = *seen;
	const int64_t columns = count_vanished(replay->narrowed_from, mat, &lost);
	if (!columns && !hg__underflows(seen))
		return HG_OK;
	replay->value[v].underflowed = hg__underflows(seen);
	return report_vanished(replay, v, &lost, columns);
}

static hg_status scan_leaf(struct hg__replay *replay, int32_t v, struct hg__scan *seen)
{
	const struct hg__value *value = &replay->tape->recording.value[v];
	if (holds_feature_values(replay, v))
		return scan_feature_values(replay, v, seen);
	if (replay->narrowed && value->tensor == replay->narrowed)
		return scan_narrowed_features(replay, v, seen);
	HG__TRY(hg__scan_tensor(replay->ctx, &value->tensor->mat, NULL, seen));
	replay->value[v].max_row_sum = seen->max_row_sum;
	return HG_OK;
}

/* Parameters are only listed here: check_inputs.c checks them, with their master weights. */
static hg_status check_leaf(struct hg__replay *replay, int32_t v)
{
	const struct hg__value *value = &replay->tape->recording.value[v];
	const struct hg__mat *mat = &value->tensor->mat;
	const int is_param = value->kind == HG__PARAM;
	struct hg__scan seen;
	struct hg__finding *finding = NULL;
	hg_doctor_tensor tensor = {.op = "",
	                           .layer = "",
	                           .node = -1,
	                           .dtype = mat->dtype,
	                           .rows = mat->rows,
	                           .cols = mat->cols,
	                           .bound = value->known[HG__ASSUMED].largest,
	                           .verdict = HG_EXACT};
	HG__TRY(scan_leaf(replay, v, &seen));
	for (int i = 0; i < 8; i++)
		tensor.in[i] = -1;
	replay->value[v].bad = seen.nonfinite;
	replay->value[v].count = mat->rows * mat->cols;
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &tensor.name, "%s",
	                        is_param ? value->param->name : value->name));
	HG__TRY(hg__list_tensor(replay, &tensor, &seen, &replay->value[v].tensor));
	if (is_param || !seen.nonfinite)
		return HG_OK;
	HG__TRY(hg__report_input(replay, tensor.name, &replay->rows[v], &seen, mat, v, &finding));
	return finding ? hg__edge_to_feature(replay, finding, replay->rows[v].graph) : HG_OK;
}

hg_status hg__check_leaves(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t v = 0; v < tape->recording.values; v++) {
		const struct hg__value *value = &tape->recording.value[v];
		if (value->node < 0 && tape->plan.value[v].alive && hg__is_float(value->dtype))
			HG__TRY(check_leaf(replay, (int32_t)v));
	}
	return HG_OK;
}
