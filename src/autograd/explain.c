#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/text.h"
#include "core/versioned.h"
#include "precision/bound.h"
#include "precision/range.h"

/* Why no narrowing to f16 can overflow, or what guards it: as numbers and as a table.
 *
 * The narrowings of a step are listed in its order: leaves (inputs and working copies of weights),
 * results of nodes, gradients. */

enum part { LEAVES, RESULTS, GRADIENTS };

static int is_state(hg_dtype dtype)
{
	return hg__is_float(dtype);
}

/* Does `part` list this value? It lists operands of nodes that run, their results, or those of them
 * with a gradient. Losses are left out, because they are f32 numbers. */
static int is_listed(const hg_tape *tape, int32_t v, enum part part)
{
	const struct hg__value *value = &tape->recording.value[v];
	const struct hg__planned_value *planned = &tape->plan.value[v];
	const struct hg__entry *entry = value->node < 0 ? NULL : &tape->recording.entry[value->node];
	if (!is_state(value->dtype) || !planned->alive ||
	    (entry && (!tape->plan.entry[value->node].alive || entry->node.op->traits & HG__LOSS)))
		return 0;
	if (part == LEAVES)
		return !entry;
	return value->kind == HG__RESULT && (part == RESULTS || planned->grad_span >= 0);
}

static hg_evidence evidence_of(const struct hg__value *value)
{
	return value->kind == HG__INPUT && value->known[HG__ASSUMED].largest < (double)INFINITY
	           ? HG_EVIDENCE_EXACT
	           : hg__evidence_of(value->known[HG__UNCONDITIONAL].largest,
	                             value->known[HG__ASSUMED].largest);
}

/* A leaf was narrowed when it was uploaded, so it is finite, or its owner made a mistake. A weight
 * is narrowed in every step. */
static void describe_leaf(const struct hg__value *value, hg_narrowing *out)
{
	const struct hg__narrowing n = {.bound = value->known[HG__ASSUMED].largest,
	                                .rounding.depth = 1.0,
	                                .state = value->dtype,
	                                .unproved = HG_UNPROVED_GUARD};
	const hg_verdict verdict = hg__resolve(&n).verdict;
	out->op = value->kind == HG__PARAM ? "weight" : "input";
	out->layer = value->name;
	out->because = value->kind == HG__PARAM   ? "assumed of the weights"
	               : value->kind == HG__INPUT ? "the largest of its elements"
	                                          : "what its type holds";
	out->verdict = verdict == HG_PROVED && value->kind == HG__PARAM ? HG_GUARDED : verdict;
}

static void describe_result(const hg_tape *tape, const struct hg__value *value, hg_narrowing *out)
{
	const struct hg__entry *entry = &tape->recording.entry[value->node];
	out->bound = entry->node.rule_bound[HG__ASSUMED];
	out->sure = entry->node.rule_bound[HG__UNCONDITIONAL];
	out->evidence = hg__evidence_of(out->sure, out->bound);
	out->op = hg__entry_title(entry);
	out->layer = entry->node.scope;
	out->because = entry->because;
	out->accumulate = entry->node.accumulate;
	out->verdict = entry->node.verdict;
}

double hg__bound_of_gradient(const hg_tape *tape, int32_t value, double scale)
{
	const struct hg__known_gradient *known = &tape->plan.value[value].gradient[HG__ASSUMED];
	const double bound = scale * known->largest, reach = scale * known->largest_half;
	const int fits =
	    bound < hg_dtype_get(HG_F32)->overflow && reach < hg_dtype_get(HG_F16)->overflow;
	return hg__grad_dtype(&tape->recording.value[value]) == HG_F16 ? reach
	       : fits                                                  ? bound
	                                                               : (double)INFINITY;
}

/* A gradient is proved if it is proved at the largest loss scale there can be. With sums in f16 no
 * proof is tried, because their partial sums grow with the scale. */
hg_verdict hg__gradient_verdict(const hg_tape *tape, int32_t value)
{
	const hg_policy *policy = &tape->params->policy;
	const hg_dtype dtype = tape->recording.value[value].dtype;
	const struct hg__known_gradient *known = tape->plan.value[value].gradient;
	const double most = policy->loss_scale.enabled ? (double)policy->loss_scale.max_scale : 1.0;
	const struct hg__narrowing n = {.bound = known[HG__UNCONDITIONAL].largest * most,
	                                .rounding.depth = 1.0,
	                                .state = dtype,
	                                .accumulate = HG_ACC_F32,
	                                .unproved = HG_UNPROVED_GUARD};
	return dtype == HG_F16 && policy->accumulate != HG_ACC_F32 ? HG_GUARDED
	                                                           : hg__resolve(&n).verdict;
}

/* Gradients carry the loss scale. A bound at scale 1 holds up to scale 65520 / bound; beyond it the
 * step's finite check guards the gradient. */
static void describe_gradient(const hg_tape *tape, int32_t index, hg_narrowing *out)
{
	const struct hg__value *value = &tape->recording.value[index];
	const struct hg__known_gradient *known = tape->plan.value[index].gradient,
	                                *assumed = &known[HG__ASSUMED],
	                                *sure = &known[HG__UNCONDITIONAL];
	describe_result(tape, value, out);
	out->backward = 1;
	const int inside = assumed->largest_half > assumed->largest;
	out->bound = value->dtype == HG_F16 ? assumed->largest_half : assumed->largest;
	out->sure = value->dtype == HG_F16 ? sure->largest_half : sure->largest;
	out->evidence = hg__evidence_of(out->sure, out->bound);
	out->because = inside ? "at loss scale 1, of halves on the way to it" : "at loss scale 1";
	out->accumulate = value->dtype == HG_F16 ? tape->params->policy.accumulate : HG_ACC_F32;
	out->verdict = hg__gradient_verdict(tape, index);
}

static hg_guard guard_kind(const hg_tape *tape, const hg_narrowing *row)
{
	if (row->verdict != HG_GUARDED)
		return HG_GUARD_NONE;
	if (row->backward)
		return HG_GUARD_STEP;
	if (row->node < 0 || tape->recording.entry[row->node].node.by_weights)
		return HG_GUARD_WEIGHTS;
	if (hg__is_store_guarded(tape, &tape->recording.entry[row->node].node))
		return HG_GUARD_STORED;
	return tape->plan.trains ? HG_GUARD_STEP : HG_GUARD_NONE;
}

static void name_row(const hg_tape *tape, const struct hg__value *value, hg_narrowing *row)
{
	char own[HG_NARROWING_NAME];
	(void)snprintf(row->name, sizeof row->name, "%s%.80s", row->backward ? "gradient of " : "",
	               hg__value_name(tape, value, own, sizeof own));
}

static hg_narrowing describe_narrowing(const hg_tape *tape, int32_t index, enum part part)
{
	const struct hg__value *value = &tape->recording.value[index];
	hg_narrowing out = HG_NARROWING_INIT;
	out.node = value->node;
	out.state = value->dtype;
	out.bound = value->known[HG__ASSUMED].largest;
	out.sure = value->known[HG__UNCONDITIONAL].largest;
	out.evidence = evidence_of(value);
	if (part == LEAVES)
		describe_leaf(value, &out);
	else if (part == RESULTS)
		describe_result(tape, value, &out);
	else
		describe_gradient(tape, index, &out);
	out.shift = part == RESULTS ? value->shift : 0;
	out.guard = guard_kind(tape, &out);
	name_row(tape, value, &out);
	out.headroom =
	    out.state == HG_F16 ? hg__headroom(HG_F16, ldexp(out.bound, -out.shift)) : (double)INFINITY;
	return out;
}

/* Calls `row` for each narrowing and stops when it returns non-zero. */
typedef int (*row_fn)(void *user, const hg_narrowing *row);

static void for_each_narrowing(const hg_tape *tape, row_fn row, void *user)
{
	const int32_t values = (int32_t)tape->recording.values;
	for (int part = LEAVES; part <= GRADIENTS; part++)
		for (int32_t i = 0; i < values; i++) {
			const int32_t v = part == GRADIENTS ? values - 1 - i : i;
			if (!is_listed(tape, v, (enum part)part))
				continue;
			const hg_narrowing described = describe_narrowing(tape, v, (enum part)part);
			if (row(user, &described))
				return;
		}
}

struct search {
	int64_t left;
	hg_narrowing found;
};

static int take_nth_row(void *user, const hg_narrowing *row)
{
	struct search *s = user;
	s->found = *row;
	return s->left-- == 0;
}

int64_t hg_tape_narrowings(const hg_tape *tape)
{
	struct search s = {.left = INT64_MAX};
	if (!tape || tape->stage == HG__RECORDING)
		return 0;
	for_each_narrowing(tape, take_nth_row, &s);
	return INT64_MAX - s.left;
}

hg_status hg_tape_narrowing(const hg_tape *tape, int64_t index, hg_narrowing *narrowing)
{
	if (!tape)
		return HG_ERR_ARG;
	const int64_t count = hg_tape_narrowings(tape);
	if (tape->stage == HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_narrowing: the tape is not compiled");
	if (index < 0 || index >= count)
		return hg__fail(tape->ctx, HG_ERR_ARG,
		                "hg_tape_narrowing: index is %" PRId64 ", there are %" PRId64, index,
		                count);
	struct search s = {.left = index};
	for_each_narrowing(tape, take_nth_row, &s);
	return narrowing && hg__struct_write(narrowing, &s.found, sizeof s.found)
	           ? HG_OK
	           : hg__fail(tape->ctx, HG_ERR_ARG,
	                      "hg_tape_narrowing: narrowing is NULL or its size is not set: start from "
	                      "HG_NARROWING_INIT");
}

/* ---- the table ---- */

struct table {
	const hg_tape *tape;
	hg_write_fn write;
	void *user;
	int layer, op; /* column widths */
	int backward;
	int rows, tally[HG_EXACT + 1];
};

static int measure_columns(void *user, const hg_narrowing *row)
{
	struct table *t = user;
	const int layer = (int)strlen(row->layer), op = (int)strlen(row->op);
	t->layer = layer > t->layer ? layer : t->layer;
	t->op = op > t->op ? op : t->op;
	return 0;
}

static void print_head(const struct table *t, const char *what)
{
	char text[256];
	snprintf(text, sizeof text, "%5s  %-*s  %-*s  %-5s %-9s %10s  %-8s  %8s  %-8s  %s", "node",
	         t->layer, "layer", t->op, what, "state", "sums", "bound", "from", "headroom",
	         "verdict", "why");
	t->write(t->user, text);
}

/* The guard behind a verdict that is not a proof, as text. */
static const char *guard_text(const hg_tape *tape, const hg_narrowing *row)
{
	static const char *const text[] = {[HG_GUARD_NONE] = "",
	                                   [HG_GUARD_WEIGHTS] = "; guard: the weights, in every step",
	                                   [HG_GUARD_STORED] = "; guard: compared when it is stored",
	                                   [HG_GUARD_STEP] = "; guard: the step's finite check"};
	if (row->guard == HG_GUARD_NONE && row->verdict == HG_GUARDED && !tape->plan.trains)
		return "; no guard: nothing is skipped here";
	return row->backward && row->guard
	           ? "; beyond its headroom the step's finite check and the loss scale"
	           : text[row->guard];
}

static int print_row(void *user, const hg_narrowing *row)
{
	struct table *t = user;
	char text[768], node[16] = "-", room[24] = "-";
	if (row->backward && !t->backward++)
		print_head(t, "gradient of");
	if (row->node >= 0)
		snprintf(node, sizeof node, "%d", (int)row->node);
	if (row->state == HG_F16)
		hg__print(room, sizeof room, "%.1f", row->headroom);
	hg__print(text, sizeof text, "%5s  %-*s  %-*s  %-5s %-9s %10.3g  %-8s  %8s  %-8s  %s%s", node,
	          t->layer, row->layer, t->op, row->op, hg_dtype_name(row->state),
	          hg__accumulate_name(row->accumulate), row->bound, hg_evidence_name(row->evidence),
	          room, hg_verdict_name(row->verdict), row->because, guard_text(t->tape, row));
	t->write(t->user, text);
	t->rows += !row->backward;
	t->tally[row->verdict] += !row->backward;
	return 0;
}

hg_status hg_tape_explain(const hg_tape *tape, hg_write_fn write, void *user)
{
	char text[384], rescaled[32] = "";
	if (!tape)
		return HG_ERR_ARG;
	if (!write)
		return hg__fail(tape->ctx, HG_ERR_ARG, "hg_tape_explain: write is NULL");
	if (tape->stage == HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_explain: the tape is not compiled");
	hg_plan_info info = HG_PLAN_INFO_INIT;
	HG__TRY(hg_tape_plan(tape, &info));
	struct table table = {.tape = tape, .write = write, .user = user, .layer = 5, .op = 11};
	for_each_narrowing(tape, measure_columns, &table);
	snprintf(text, sizeof text,
	         "policy %s: bound is on |x| with its rounding, headroom in bits to 65520",
	         tape->params->policy.name);
	write(user, text);
	print_head(&table, "op");
	for_each_narrowing(tape, print_row, &table);
	if (info.rescaled)
		snprintf(rescaled, sizeof rescaled, "; %d stored rescaled", (int)info.rescaled);
	snprintf(text, sizeof text,
	         "forward: %d tensors, %d proved, %d guarded, %d promoted, %d f32 by choice%s; casts "
	         "in a step: %d forward, %d backward",
	         table.rows, table.tally[HG_PROVED], table.tally[HG_GUARDED], table.tally[HG_PROMOTED],
	         table.tally[HG_EXACT], rescaled, (int)info.casts, (int)info.casts_back);
	write(user, text);
	return HG_OK;
}
