#include <math.h>

#include "doctor/finding.h"

/* Names the op at fault inside a fused chain, because the user wrote the single ops. They are the
 * parts of the chain, in this order: spmm; add or combine; bias_add; an activation; dropout. In
 * place of the first two there may be attention.
 *
 *     forward     The last part that took the element over the limit. Between the parts numbers are
 *                 f32; only the result is narrowed.
 *     backward    Of a gradient of an operand that a part adds (own term or bias): that part. Of a
 *                 gradient of what is aggregated: the aggregation. But if this is also the own term
 *                 (GIN), and that alone is over the limit: the part that adds it. Of the gradient
 *                 before the aggregation, and of operand 0 of a chain without one: the last part,
 *                 an activation or dropout, because only these change a gradient.
 *
 * Where the tape inserted a cast, the entry beside it is named. */

enum { MOST_PARTS = 8 }; /* more than a chain can have (HG__CHAIN_MOST in autograd/fuse.h) */
struct parts {
	struct hg__origin part[MOST_PARTS];
	int count;
};

/* The entries that were fused into this one, and the entry itself, in recording order. Their ops
 * are those that were recorded, not the fused one. Layers are copied, because the report outlives
 * the tape. */
static hg_status list_parts(struct hg__replay *replay, const struct hg__task *task,
                            struct parts *parts)
{
	const hg_tape *tape = replay->tape;
	parts->count = 0;
	for (int64_t k = 0; k < tape->recording.entries && parts->count < MOST_PARTS; k++)
		if (tape->recording.entry[k].fused_into == task->entry || k == task->entry)
			parts->part[parts->count++] = (struct hg__origin){
			    .op = tape->recording.entry[k].op, .layer = tape->recording.entry[k].scope};
	for (int i = 0; i < parts->count; i++)
		HG__TRY(hg__report_text(replay->ctx, replay->memory, &parts->part[i].layer, "%s",
		                        parts->part[i].layer));
	return HG_OK;
}

/* ---- forward ---- */

/* What the parts after the aggregation do to an element, on the scale of what is stored: the own
 * term and the bias that they add, and the probability with which dropout keeps an element. */
struct epilogue_values {
	double self, bias, keep;
};

/* The element after one part. Activations are left out: those of chains take no element over the
 * limit (elu alone could, with an alpha of that size). */
static double apply_part(const struct hg__origin *part, const struct epilogue_values *e, double x)
{
	const struct hg__about *about = hg__about(part->op);
	if (about->brings)
		return x + (about->brings == HG__BRINGS_BIAS ? e->bias : e->self);
	return about->kept ? x / e->keep : x;
}

/* The last part, from `first` on, that takes the element over the limit. If none does, part 0. */
static int last_overflowing_part(const struct parts *parts, const struct epilogue_values *e,
                                 double x, double limit, int first)
{
	int at_fault = 0;
	for (int i = first; i < parts->count; i++) {
		const double next = apply_part(&parts->part[i], e, x);
		if (fabs(x) < limit && fabs(next) >= limit)
			at_fault = i;
		x = next;
	}
	return at_fault;
}

/* The number that a term adds to an element; 0 if there is no such term. */
static hg_status added_product(const struct hg__call *c, const struct hg__added *added,
                               double *value)
{
	double factor = 0.0, operand = 0.0;
	HG__TRY(hg__added_value(c->ctx, added, &factor, &operand));
	*value = factor * operand;
	return HG_OK;
}

/* An aggregation is part 0, and is at fault if no later part is. The other parts begin with its
 * sum, or, in a chain without aggregation, with operand 0. */
static hg_status attribute_forward(const struct hg__fault *f, const struct hg__terms *t,
                                   const struct parts *parts, int *at_fault)
{
	const struct hg__call *c = &f->task->call;
	const int aggregates = t->over != HG__OVER_NOTHING;
	struct epilogue_values e = {.keep = hg__about(c->node->op)->kept(c->node)};
	double x = f->before_epilogue;
	HG__TRY(added_product(c, &t->self, &e.self));
	HG__TRY(added_product(c, &t->bias, &e.bias));
	if (!aggregates)
		HG__TRY(hg__fetch_element(c->ctx, &c->in[0], f->row, f->col, &x));
	*at_fault = last_overflowing_part(parts, &e, x, f->limit, aggregates);
	return HG_OK;
}

/* ---- backward ---- */

/* The part that adds the own term, or the bias; part 0 if there is none. */
static int part_that_adds(const struct parts *parts, enum hg__brings brings)
{
	for (int i = 0; i < parts->count; i++)
		if (hg__about(parts->part[i].op)->brings == brings)
			return i;
	return 0;
}

static hg_status attribute_backward(const struct hg__fault *f, const struct hg__terms *t,
                                    const struct parts *parts, int *at_fault)
{
	const struct hg__call *c = &f->task->call;
	const enum hg__brings brings =
	    f->operand < 0 ? HG__BRINGS_NOTHING : hg__about(c->node->op)->operand_brings[f->operand];
	double own_term = 0.0;
	HG__TRY(added_product(c, &t->self, &own_term));
	if (brings)
		*at_fault = part_that_adds(parts, brings);
	else if (f->operand < 0 || t->over == HG__OVER_NOTHING)
		*at_fault = parts->count - 1; /* an activation or dropout: only these change a gradient */
	else
		*at_fault = fabs(own_term) >= f->limit ? part_that_adds(parts, HG__BRINGS_SELF) : 0;
	return HG_OK;
}

/* Is this a fused op with an epilogue? Only these describe both terms and dropout. Of other chains
 * (batch_norm and relu) part 0 is named. */
static int has_epilogue(const struct hg__task *task)
{
	const struct hg__about *about = hg__about(task->call.node->op);
	return about->sum && about->kept;
}

static hg_status attribute_in_chain(const struct hg__fault *f, const struct parts *parts,
                                    int *at_fault)
{
	const struct hg__element e = {f->backward ? f->operand : -1, f->row, f->col};
	struct hg__terms terms = {.over = HG__OVER_NOTHING};
	/* operand -1 in backward: an intermediate, which has no terms */
	if (!f->backward || f->operand >= 0)
		HG__TRY(hg__terms_of(&f->task->call, &e, &terms));
	return f->backward ? attribute_backward(f, &terms, parts, at_fault)
	                   : attribute_forward(f, &terms, parts, at_fault);
}

/* ---- implicit casts ---- */

/* The entry to name in place of a cast. Forward: the one that made the number that does not fit;
 * NULL: a leaf. Backward: the first one that reads the cast's result, because the gradient arriving
 * there is the gradient of one of its operands. */
static const struct hg__entry *entry_beside_cast(const struct hg__replay *replay,
                                                 const struct hg__fault *f)
{
	const hg_tape *tape = replay->tape;
	const struct hg__node *cast = f->task->call.node;
	const int32_t maker = tape->recording.value[cast->in[0]].node;
	if (!f->backward)
		return maker >= 0 ? &tape->recording.entry[maker] : NULL;
	for (int64_t k = f->task->entry + 1; k < tape->recording.entries; k++)
		for (int i = 0; i < tape->recording.entry[k].node.n_in; i++)
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
	if (has_epilogue(f->task))
		HG__TRY(attribute_in_chain(f, &parts, &at_fault));
	*origin = parts.part[at_fault];
	return HG_OK;
}
