#include <math.h>

#include "doctor/finding.h"

/* Names the op at fault inside a fused chain, because the user wrote the single ops.
 *
 *     forward     the last op that took the element over the limit. Between the ops numbers are
 *                 f32; only the result is narrowed.
 *     backward    the op whose operand's gradient it is. For the gradient between the aggregation
 *                 and the epilogue it is the last op that multiplies: dropout, else the
 *                 activation. If one gradient is both that of a neighbour and that of the node's
 *                 own term (GIN), it is the own term if that alone is over the limit. */

enum { MOST_PARTS = 8 };
struct parts {
	struct hg__origin part[MOST_PARTS];
	int count;
};

/* The entries that were fused into this one, in order, and the entry itself, as recorded. Layers
 * are copied, because the report outlives the tape. */
static hg_status list_parts(struct hg__replay *replay, const struct hg__task *task,
                            struct parts *parts)
{
	const hg_tape *tape = replay->tape;
	parts->count = 0;
	for (int64_t k = 0; k < tape->recording.entries && parts->count < MOST_PARTS; k++)
		if (tape->recording.entry[k].fused_into == task->entry || k == task->entry)
			parts->part[parts->count++] =
			    (struct hg__origin){tape->recording.entry[k].op, tape->recording.entry[k].scope};
	for (int i = 0; i < parts->count; i++)
		HG__TRY(hg__report_text(replay->ctx, replay->memory, &parts->part[i].layer, "%s",
		                        parts->part[i].layer));
	return HG_OK;
}

/* ---- forward ---- */

/* What the parts after the aggregation do to an element, on the scale of what is stored: the own
 * term and the bias that they add, and the share that dropout keeps. */
struct epilogue_values {
	double self, bias, kept;
};

/* The element after one part. Activations only bring it nearer to zero; dropout divides it. */
static double apply_part(const struct hg__origin *part, const struct epilogue_values *e, double x)
{
	const struct hg__about *about = hg__about(part->op);
	if (about->brings)
		return x + (about->brings == HG__BRINGS_BIAS ? e->bias : e->self);
	return about->kept ? x / e->kept : x;
}

/* The last part, from `first` on, that takes the element over the limit; 0: none does. */
static int last_overflowing_part(const struct parts *parts, const struct epilogue_values *e,
                                 double x, int first)
{
	const double limit = hg_dtype_get(HG_F16)->overflow;
	int at_fault = 0;
	for (int i = first; i < parts->count; i++) {
		const double next = apply_part(&parts->part[i], e, x);
		if (fabs(x) < limit && fabs(next) >= limit)
			at_fault = i;
		x = next;
	}
	return at_fault;
}

static hg_status added_product(const struct hg__call *c, const struct hg__added *added,
                               double *value)
{
	double factor = 0.0, operand = 0.0;
	HG__TRY(hg__added_value(c->ctx, added, &factor, &operand));
	*value = factor * operand;
	return HG_OK;
}

/* An aggregation is the first part. It is at fault if no later part is. */
static hg_status attribute_forward(const struct hg__fault *f, const struct hg__terms *t,
                                   const struct parts *parts, int *at_fault)
{
	const struct hg__call *c = &f->task->call;
	const int aggregates = t->over != HG__OVER_NOTHING;
	struct epilogue_values e = {.kept = hg__about(c->node->op)->kept(c->node)};
	double x = f->before_epilogue;
	HG__TRY(added_product(c, &t->self, &e.self));
	HG__TRY(added_product(c, &t->bias, &e.bias));
	if (!aggregates)
		HG__TRY(hg__fetch_element(c->ctx, &c->in[0], f->row, f->col, &x));
	*at_fault = last_overflowing_part(parts, &e, x, aggregates);
	return HG_OK;
}

/* ---- backward ---- */

static int last_multiplying_part(const struct parts *parts)
{
	int last = parts->count - 1;
	for (int i = 0; i < parts->count; i++)
		if (hg__about(parts->part[i].op)->kept)
			last = i;
	return last;
}

static int part_that_brings(const struct parts *parts, enum hg__brings brings)
{
	for (int i = 0; i < parts->count; i++)
		if (hg__about(parts->part[i].op)->brings == brings)
			return i;
	return 0;
}

static int attribute_backward(const struct hg__fault *f, const struct hg__terms *t,
                              const struct parts *parts)
{
	const struct hg__about *about = hg__about(f->task->call.node->op);
	const enum hg__brings brings =
	    f->operand < 0 ? HG__BRINGS_NOTHING : about->operand_brings[f->operand];
	const int own_term_overflows =
	    t->self.x.data && fabs(f->wide - f->before_epilogue) >= hg_dtype_get(HG_F16)->overflow;
	if (brings)
		return part_that_brings(parts, brings);
	if (f->operand < 0 || t->over == HG__OVER_NOTHING)
		return last_multiplying_part(parts);
	return own_term_overflows ? part_that_brings(parts, HG__BRINGS_SELF) : 0;
}

/* An op that can do the work of a fused chain: it sums, and may apply dropout. */
static int is_chain(const struct hg__task *task)
{
	const struct hg__about *about = hg__about(task->call.node->op);
	return about->sum && about->kept;
}

static hg_status attribute_in_chain(const struct hg__fault *f, const struct parts *parts,
                                    int *at_fault)
{
	const struct hg__element e = {f->backward ? f->operand : -1, f->row, f->col};
	struct hg__terms terms = {.over = HG__OVER_NOTHING};
	if (!f->backward || f->operand >= 0)
		HG__TRY(hg__terms_of(&f->task->call, &e, &terms));
	if (!f->backward)
		return attribute_forward(f, &terms, parts, at_fault);
	*at_fault = attribute_backward(f, &terms, parts);
	return HG_OK;
}

/* ---- implicit casts ---- */

/* Forward: the entry that made the number that does not fit. Backward: the first entry that reads
 * the cast, because the gradient is one of its operands'. */
static const struct hg__entry *entry_beside_cast(const struct hg__replay *replay,
                                                 const struct hg__fault *f)
{
	const hg_tape *tape = replay->tape;
	const struct hg__node *cast = f->task->call.node;
	const int32_t maker = tape->recording.value[cast->in[0]].node;
	if (!f->backward)
		return maker >= 0 ? &tape->recording.entry[maker] : NULL;
	for (int64_t k = f->task->entry + 1; k < tape->recording.entries; k++)
		for (int i = 0; i < tape->recording.entry[k].node.n_in && tape->plan.entry[k].alive; i++)
			if (tape->recording.entry[k].node.in[i] == cast->out && tape->plan.entry[k].back)
				return &tape->recording.entry[k];
	return NULL;
}

hg_status hg__attribute(struct hg__replay *replay, const struct hg__fault *f,
                        struct hg__origin *origin)
{
	struct parts parts;
	int at_fault = 0;
	const struct hg__entry *entry =
	    hg__is_implicit_cast(replay->tape, f->task->entry) ? entry_beside_cast(replay, f) : NULL;
	if (entry) {
		origin->op = entry->op;
		return hg__report_text(replay->ctx, replay->memory, &origin->layer, "%s", entry->scope);
	}
	HG__TRY(list_parts(replay, f->task, &parts));
	if (is_chain(f->task))
		HG__TRY(attribute_in_chain(f, &parts, &at_fault));
	*origin = parts.part[at_fault];
	return HG_OK;
}
