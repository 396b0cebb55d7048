#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/text.h"
#include "core/versioned.h"

/* Prints a tape and sums it up: hg_tape_print and hg_tape_plan. */

const char *hg__accumulate_name(hg_accumulate accumulate)
{
	static const char *const name[HG_ACC_COUNT] = {[HG_ACC_F32] = "f32",
	                                               [HG_ACC_F16_DISCRETIZED] = "f16 batch",
	                                               [HG_ACC_F16_NAIVE] = "f16 naive"};
	return name[accumulate];
}

/* An operand or result in the table: a leaf's name, or #k for the result of node k and #k' for what
 * that node saves. */
static void operand_text(const struct hg__recording *recording, int32_t index, char *buffer,
                         size_t size)
{
	const struct hg__value *value = &recording->value[index];
	if (value->node >= 0)
		snprintf(buffer, size, "#%d%s", (int)value->node, value->kind == HG__AUX ? "'" : "");
	else if (*value->name)
		snprintf(buffer, size, "%.40s", value->name);
	else
		snprintf(buffer, size, "input %d", (int)index);
}

static void operands_text(const struct hg__recording *recording, const struct hg__node *node,
                          char *buffer, size_t size)
{
	size_t length = 0;
	buffer[0] = 0;
	if (node->graph)
		length += (size_t)snprintf(buffer, size, "A[%" PRId64 "x%" PRId64 "]",
		                           hg_graph_rows(node->graph), hg_graph_cols(node->graph));
	for (int i = 0; i < node->n_in && length < size; i++) {
		char name[64];
		if (node->in[i] < 0)
			continue;
		operand_text(recording, node->in[i], name, sizeof name);
		length +=
		    (size_t)snprintf(buffer + length, size - length, "%s%s", length ? ", " : "", name);
	}
}

static void shape_text(const struct hg__value *value, hg_dtype dtype, char *buffer, size_t size)
{
	snprintf(buffer, size, "%s [%" PRId64 ", %" PRId64 "]", hg_dtype_name(dtype), value->rows,
	         value->cols);
}

/* The position and lifetime of a buffer, "offset bytes first..last", or "-" before it is
 * planned. */
static void place_text(const struct hg__tape_plan *plan, int32_t index, char *buffer, size_t size)
{
	const struct hg__span *span = index < 0 ? NULL : &plan->span[index];
	if (!span)
		snprintf(buffer, size, "%12s %12s  -", "-", "-");
	else
		snprintf(buffer, size, "%12zu %12zu  %d..%d", span->offset, span->bytes, (int)span->first,
		         (int)span->last);
}

struct table {
	hg_write_fn write;
	void *user;
	int layer, op, operands; /* column widths */
};

static void measure_columns(const struct hg__recording *recording, struct table *table)
{
	table->layer = 5;
	table->op = 14;
	table->operands = 8;
	for (int64_t k = 0; k < recording->entries; k++) {
		char text[256];
		operands_text(recording, &recording->entry[k].node, text, sizeof text);
		const int layer = (int)strlen(recording->entry[k].node.scope),
		          op = (int)strlen(hg__entry_title(&recording->entry[k])),
		          operands = (int)strlen(text);
		table->layer = layer > table->layer ? layer : table->layer;
		table->op = op > table->op ? op : table->op;
		table->operands = operands > table->operands ? operands : table->operands;
	}
}

static void print_head(const hg_tape *tape, const struct table *t)
{
	char text[512];
	snprintf(text, sizeof text, "tape: %s, policy %s, %" PRId64 " nodes, %d alive",
	         tape->mode == HG_TRAIN ? "train" : "eval", tape->params->policy.name,
	         tape->recording.entries, (int)tape->plan.running);
	t->write(t->user, text);
	snprintf(text, sizeof text, "%5s  %-*.*s  %-*s %-*.*s  %-20s %-9s %-8s %10s %10s %12s %12s  %s",
	         "node", t->layer, t->layer, "layer", t->op, "op", t->operands, t->operands, "operands",
	         "output", "sums", "verdict", "|y| <=", "|dy| <=", "offset", "bytes", "alive");
	t->write(t->user, text);
}

static void print_node(const hg_tape *tape, const struct table *t, int64_t k)
{
	const struct hg__recording *recording = &tape->recording;
	const struct hg__entry *entry = &recording->entry[k];
	const struct hg__node *node = &entry->node;
	const struct hg__value *out = &recording->value[node->out];
	const int planned = hg__is_planned(&tape->plan);
	char text[768], operands[256], shape[64], place[64], dy[16] = "-", note[24] = "";
	if (tape->stage != HG__RECORDING && !hg__is_alive(&tape->plan, k))
		snprintf(note, sizeof note, " (not needed)");
	operands_text(recording, node, operands, sizeof operands);
	shape_text(out, out->dtype, shape, sizeof shape);
	place_text(&tape->plan, planned ? tape->plan.value[node->out].span : -1, place, sizeof place);
	if (planned && tape->plan.entry[k].back)
		hg__print(dy, sizeof dy, "%.3g", tape->plan.value[node->out].gradient[HG__ASSUMED].largest);
	if (entry->fused_into >= 0)
		snprintf(note, sizeof note, " (in #%d)", (int)entry->fused_into);
	else if (planned && tape->plan.value[node->out].normalised >= 0)
		snprintf(note, sizeof note, " (in its reader)");
	else if (planned && tape->plan.value[node->out].inside)
		snprintf(note, sizeof note, " (runs with #%d)",
		         (int)hg__region_first(hg__region_of(&tape->plan, k)));
	hg__print(text, sizeof text, "%5" PRId64 "  %-*s  %-*s %-*s  %-20s %-9s %-8s %10.3g %10s %s%s",
	          k, t->layer, node->scope, t->op, hg__entry_title(entry), t->operands, operands, shape,
	          hg__accumulate_name(node->accumulate), hg_verdict_name(node->verdict),
	          out->known[HG__ASSUMED].largest, dy, place, note);
	t->write(t->user, text);
}

/* A line below a node: one more buffer of it. */
static void print_buffer(const hg_tape *tape, const struct table *t, const char *what,
                         int32_t index, int32_t span)
{
	const struct hg__value *value = &tape->recording.value[index];
	char text[512], shape[64], place[64];
	if (span < 0)
		return;
	shape_text(value, value->dtype, shape, sizeof shape);
	place_text(&tape->plan, span, place, sizeof place);
	snprintf(text, sizeof text, "%5s  %-*s  %-*s %-*.*s  %-20s %-9s %-8s %10s %10s %s", "",
	         t->layer, "", t->op, what, t->operands, t->operands,
	         value->node < 0 ? value->name : "", shape, "", "", "", "", place);
	t->write(t->user, text);
}

/* The other buffers of a node: what it saves for backward, what backward alone uses, recomputed
 * operands, and the gradient of its result. */
static void print_buffers(const hg_tape *tape, const struct table *t, int64_t k)
{
	const struct hg__entry *entry = &tape->recording.entry[k];
	const struct hg__node *node = &entry->node;
	const struct hg__planned_value *planned = tape->plan.value;
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (node->aux[i] >= 0)
			print_buffer(tape, t, entry->saves & HG__BACK_AUX(i) ? "  backward" : "  saved",
			             node->aux[i], planned[node->aux[i]].span);
	const struct hg__region *region = hg__region_of(&tape->plan, k);
	if (region && region->kept >= 0 && hg__region_first(region) == k)
		print_buffer(tape, t, "  saved", region->kept, planned[region->kept].span);
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0)
			print_buffer(tape, t, "  again", node->in[i], tape->plan.entry[k].recompute[i]);
	print_buffer(tape, t, "  gradient", node->out, planned[node->out].grad_span);
}

static void print_totals(const hg_tape *tape, const struct table *t)
{
	hg_plan_info info = HG_PLAN_INFO_INIT;
	char text[512];
	if (hg_tape_plan(tape, &info) < 0)
		return;
	snprintf(text, sizeof text, "verdicts: %d proved, %d guarded, %d promoted, %d exact",
	         (int)info.proved, (int)info.guarded, (int)info.promoted, (int)info.exact);
	t->write(t->user, text);
	snprintf(text, sizeof text, "bytes: state %zu, arena %zu; largest %s, %zu", info.state_bytes,
	         info.arena_bytes, info.largest_name, info.largest_bytes);
	t->write(t->user, text);
	hg__print(text, sizeof text,
	          "device memory: graphs %zu, inputs %zu, parameters %zu, arena %zu, workspace %zu, "
	          "libraries %zu, others of the context %zu; together %zu (%.1f MiB)",
	          info.graph_bytes, info.input_bytes, info.param_bytes, info.arena_bytes,
	          info.workspace_bytes, info.library_bytes, info.other_bytes, info.total_bytes,
	          (double)info.total_bytes / 1048576.0);
	t->write(t->user, text);
	snprintf(text, sizeof text, "alive: 0..%d forward, %d..%d backward, %d after the run",
	         (int)tape->plan.running - 1, (int)tape->plan.running + 1, 2 * (int)tape->plan.running,
	         2 * (int)tape->plan.running + 1);
	t->write(t->user, text);
}

hg_status hg_tape_print(const hg_tape *tape, hg_write_fn write, void *user)
{
	const struct hg__recording *recording = &tape->recording;
	if (!tape)
		return HG_ERR_ARG;
	if (!write)
		return hg__fail(tape->ctx, HG_ERR_ARG, "hg_tape_print: write is NULL");
	struct table table = {.write = write, .user = user};
	measure_columns(recording, &table);
	print_head(tape, &table);
	const int planned = hg__is_planned(&tape->plan);
	for (int64_t k = 0; k < recording->entries; k++) {
		print_node(tape, &table, k);
		if (planned)
			print_buffers(tape, &table, k);
	}
	for (int64_t v = 0; v < recording->values && planned; v++)
		if (recording->value[v].kind == HG__VARIABLE)
			print_buffer(tape, &table, "  gradient", (int32_t)v, tape->plan.value[v].grad_span);
	if (tape->stage != HG__RECORDING)
		print_totals(tape, &table);
	return HG_OK;
}

/* Counts activations and their gradients, that is, float results of nodes that are no loss. */
static void count_node(const hg_tape *tape, int64_t k, hg_plan_info *info)
{
	const struct hg__entry *entry = &tape->recording.entry[k];
	int32_t *const tally[] = {
	    [HG_PROVED] = &info->proved, [HG_GUARDED] = &info->guarded, [HG_PROMOTED] = &info->promoted,
	    [HG_REFUSED] = NULL,         [HG_EXACT] = &info->exact,
	};
	const struct hg__value *out = &tape->recording.value[entry->node.out];
	info->nodes++;
	if (tally[entry->node.verdict])
		++*tally[entry->node.verdict];
	info->casts += (entry->node.op->traits & HG__CASTS) != 0;
	info->rescaled += entry->node.shift != 0;
	const struct hg__planned_value *planned = &tape->plan.value[entry->node.out];
	if (hg__is_float(out->dtype) && !(entry->node.op->traits & HG__LOSS) && !planned->inside)
		info->state_bytes +=
		    hg__value_bytes(out, out->dtype) *
		    (size_t)((planned->normalised < 0) + (planned->grad && planned->through < 0));
}

/* How many gradients the backward of a node returns in another type: that of a cast, and those that
 * are widened when they are added. */
static int32_t casts_back(const hg_tape *tape, const struct hg__task *task)
{
	int32_t casts =
	    !task->recompute && tape->recording.entry[task->entry].node.op->traits & HG__CASTS;
	for (int i = 0; i < HG__MAX_IN; i++)
		casts += task->add[i].data && task->add[i].dtype != task->call.din[i].dtype;
	return casts;
}

hg_status hg_tape_plan(const hg_tape *tape, hg_plan_info *info)
{
	if (!tape)
		return HG_ERR_ARG;
	if (!info)
		return hg__fail(tape->ctx, HG_ERR_ARG, "hg_tape_plan: info is NULL");
	if (tape->stage == HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_plan: the tape is not compiled");
	hg_plan_info ours = HG_PLAN_INFO_INIT;
	for (int64_t k = 0; k < tape->recording.entries; k++)
		if (tape->plan.entry[k].alive)
			count_node(tape, k, &ours);
	for (int64_t i = 0; i < tape->program.backwards; i++)
		ours.casts_back += casts_back(tape, &tape->program.backward[i]);
	hg__tape_memory(tape, &ours);
	ours.largest_bytes = tape->plan.largest_bytes;
	ours.largest_name = tape->plan.largest_name;
	return hg__struct_write(info, &ours, sizeof ours)
	           ? HG_OK
	           : hg__fail(tape->ctx, HG_ERR_ARG,
	                      "hg_tape_plan: info->size is not set: start from HG_PLAN_INFO_INIT");
}
