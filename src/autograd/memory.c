#include <inttypes.h>
#include <stdio.h>

#include "autograd/tape.h"

/* The device memory that a run takes, both what is allocated already and what is still to come, and
 * the message when it does not fit. */

/* Does an earlier entry use the same graph? */
static int seen_graph(const struct hg__recording *recording, int64_t k)
{
	for (int64_t i = 0; i < k; i++)
		if (recording->entry[i].node.graph == recording->entry[k].node.graph)
			return 1;
	return 0;
}

static int seen_tensor(const struct hg__recording *recording, int64_t v)
{
	for (int64_t i = 0; i < v; i++)
		if (recording->value[i].tensor == recording->value[v].tensor)
			return 1;
	return 0;
}

static size_t graph_bytes(const struct hg__recording *recording)
{
	size_t bytes = 0;
	for (int64_t k = 0; k < recording->entries; k++)
		if (recording->entry[k].node.graph && !seen_graph(recording, k))
			bytes += hg__graph_bytes(recording->entry[k].node.graph);
	return bytes;
}

static size_t input_bytes(const struct hg__recording *recording)
{
	size_t bytes = 0;
	for (int64_t v = 0; v < recording->values; v++)
		if ((recording->value[v].kind == HG__INPUT || recording->value[v].kind == HG__VARIABLE) &&
		    !seen_tensor(recording, v))
			bytes += recording->value[v].tensor->bytes;
	return bytes;
}

static size_t param_bytes(const hg_params *params)
{
	size_t bytes = sizeof *params->step;
	for (int64_t i = 0; i < params->count; i++) {
		const hg_param *p = params->item[i];
		bytes += p->master->bytes + (p->working != p->master ? p->working->bytes : 0) +
		         (p->grad ? p->grad->bytes : 0);
	}
	return bytes;
}

static size_t library_bytes(const hg_context *ctx)
{
	return ctx->backend->library_bytes ? ctx->backend->library_bytes(ctx) : 0;
}

void hg__tape_memory(const hg_tape *tape, hg_plan_info *info)
{
	const hg_context *ctx = tape->ctx;
	info->graph_bytes = graph_bytes(&tape->recording);
	info->input_bytes = input_bytes(&tape->recording);
	info->param_bytes = param_bytes(tape->params);
	info->arena_bytes = tape->plan.arena_bytes;
	info->workspace_bytes = ctx->workspace_bytes;
	info->library_bytes = library_bytes(ctx);
	info->observer_bytes = tape->observing.bytes;
	const size_t known = info->graph_bytes + info->input_bytes + info->param_bytes +
	                     info->arena_bytes + info->workspace_bytes + info->observer_bytes;
	info->other_bytes = ctx->current_bytes > known ? ctx->current_bytes - known : 0;
	info->total_bytes = known + info->library_bytes + info->other_bytes;
}

#define NAMED_TENSORS 3 /* tensors that the message names */

/* Would the message name both in the same way? A value that is recomputed has two spans. */
static int is_same_tensor(const struct hg__span *a, const struct hg__span *b)
{
	return b && a->value == b->value && (a->use == HG__USE_VALUE) == (b->use == HG__USE_VALUE);
}

/* The largest tensor that is not named yet. */
static const struct hg__span *next_largest(const hg_tape *tape,
                                           const struct hg__span *const named[NAMED_TENSORS])
{
	const struct hg__span *best = NULL;
	for (int64_t i = 0; i < tape->plan.spans; i++) {
		const struct hg__span *span = &tape->plan.span[i];
		int known = 0;
		for (int n = 0; n < NAMED_TENSORS; n++)
			known |= is_same_tensor(span, named[n]);
		if (!known && (!best || span->bytes > best->bytes))
			best = span;
	}
	return best;
}

/* "gradient of conv1/spmm f16 [2708, 64] 346624" */
static int describe_span(const hg_tape *tape, const struct hg__span *span, char *text, size_t size)
{
	char name[80];
	const struct hg__value *value = &tape->recording.value[span->value];
	return snprintf(text, size, "%s%.48s %s [%" PRId64 ", %" PRId64 "] %zu",
	                span->use == HG__USE_VALUE ? "" : "gradient of ",
	                hg__value_name(tape, value, name, sizeof name), hg_dtype_name(span->dtype),
	                value->rows, value->cols, span->bytes);
}

hg_status hg__tape_no_memory(hg_tape *tape, size_t needed, size_t free_bytes)
{
	char text[NAMED_TENSORS * 112] = "";
	const struct hg__span *named[NAMED_TENSORS] = {NULL};
	size_t length = 0;
	for (int n = 0; n < NAMED_TENSORS && (named[n] = next_largest(tape, named)) != NULL &&
	                length < sizeof text;
	     n++) {
		length += (size_t)snprintf(text + length, sizeof text - length, "%s", n ? ", " : "");
		if (length < sizeof text)
			length += (size_t)describe_span(tape, named[n], text + length, sizeof text - length);
	}
	if (free_bytes == SIZE_MAX)
		return hg__fail(tape->ctx, HG_ERR_NOMEM,
		                "hg_tape_compile: no memory for an arena of %zu bytes; largest: %s", needed,
		                text);
	return hg__fail(
	    tape->ctx, HG_ERR_NOMEM,
	    "hg_tape_compile: a run needs %zu more bytes (arena %zu), %zu are free; largest: %s",
	    needed, tape->plan.arena_bytes, free_bytes, text);
}

size_t hg__tape_own_bytes(const hg_tape *tape)
{
	const struct hg__program *p = &tape->program;
	const size_t there = p->lent ? p->lent->bytes : 0;
	return p->arena_owner || tape->plan.arena_bytes <= there ? 0 : tape->plan.arena_bytes;
}

size_t hg__tape_needs(const hg_tape *tape)
{
	const hg_context *ctx = tape->ctx;
	const size_t workspace = tape->program.workspace_bytes > ctx->workspace_bytes
	                             ? tape->program.workspace_bytes - ctx->workspace_bytes
	                             : 0;
	return hg__tape_own_bytes(tape) + workspace + library_bytes(ctx);
}

hg_status hg__tape_room(hg_tape *tape, size_t graphs)
{
	size_t available = 0;
	HG__TRY(hg__device_room(tape->ctx, &available));
	if (tape->observing.stays && hg__tape_needs(tape) + graphs > available)
		HG__TRY(hg__tape_tighten(tape));
	const size_t needed = hg__tape_needs(tape) + graphs;
	return needed <= available ? HG_OK : hg__tape_no_memory(tape, needed, available);
}
