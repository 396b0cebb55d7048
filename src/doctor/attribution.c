#include <math.h>

#include "doctor/replay.h"

/* Names the op at fault inside a fused node, because the user wrote the single ops.
 *
 *     forward     the last op that took the element over the limit. Between the ops numbers are
 *                 f32; only the result is narrowed.
 *     backward    the op whose operand's gradient it is. Between the aggregation and its ending
 *                 (aux) it is the last op that multiplies: dropout, else the activation. Where a
 *                 gradient is that of a neighbour and of the node's own term (GIN), it is the own
 *                 term if that alone is beyond the limit. */

enum { MOST_PARTS = 8 };
struct parts {
	struct hg__part part[MOST_PARTS];
	int count;
};

/* The entries that were fused into this one, in order, and at last itself, as recorded. */
static hg_status list_parts(struct hg__replay *replay, const struct hg__task *launch,
                            struct parts *parts)
{
	const hg_tape *tape = replay->tape;
	parts->count = 0;
	for (int64_t k = 0; k < tape->entries && parts->count < MOST_PARTS; k++)
		if (tape->entry[k].fused_into == launch->entry || k == launch->entry)
			parts->part[parts->count++] =
			    (struct hg__part){tape->entry[k].op, tape->entry[k].scope};
	for (int i = 0; i < parts->count; i++) /* of the tape; the report outlives it */
		HG__TRY(hg__page_text(replay->ctx, replay->pages, &parts->part[i].layer, "%s",
		                      parts->part[i].layer));
	return HG_OK;
}

/* ---- forward ---- */

/* What the parts behind the first one bring to an element, in units of what is stored. */
struct ending {
	double self, bias, kept;
};

/* The element behind one part. Activations only bring it nearer to zero, dropout divides. */
static double behind(const struct hg__part *part, const struct ending *e, double x)
{
	const struct hg__about *about = hg__about(part->op);
	if (about->brings)
		return x + (about->brings == HG__BRINGS_BIAS ? e->bias : e->self);
	return about->kept ? x / e->kept : x;
}

static int crossing(const struct parts *parts, const struct ending *e, double x, int first)
{
	const double most = hg_dtype_get(HG_F16)->overflow;
	int guilty = 0;
	for (int i = first; i < parts->count; i++) {
		const double next = behind(&parts->part[i], e, x);
		if (fabs(x) < most && fabs(next) >= most)
			guilty = i;
		x = next;
	}
	return guilty;
}

static hg_status added(const struct hg__call *c, const struct hg__added *what, double *value)
{
	double factor = 0.0, operand = 0.0;
	HG__TRY(hg__added_value(c->ctx, what, &factor, &operand));
	*value = factor * operand;
	return HG_OK;
}

/* An aggregation comes first where there is one, and is at fault where no part behind it is. */
static hg_status attribute_forward(const struct hg__attribution *b, const struct hg__terms *t,
                                   const struct parts *parts, int *guilty)
{
	const struct hg__call *c = &b->launch->call;
	struct ending e = {.kept = hg__about(c->node->op)->kept(c->node)};
	double x = b->sum;
	HG__TRY(added(c, &t->self, &e.self));
	HG__TRY(added(c, &t->bias, &e.bias));
	if (t->over == HG__OVER_NOTHING)
		HG__TRY(hg__fetch_element(c->ctx, &c->in[0], b->row, b->col, &x));
	*guilty = crossing(parts, &e, x, t->over != HG__OVER_NOTHING);
	return HG_OK;
}

/* ---- backward ---- */

static int last_factor(const struct parts *parts)
{
	int guilty = parts->count - 1;
	for (int i = 0; i < parts->count; i++)
		if (hg__about(parts->part[i].op)->kept)
			guilty = i;
	return guilty;
}

static int find(const struct parts *parts, enum hg__brings brings)
{
	for (int i = 0; i < parts->count; i++)
		if (hg__about(parts->part[i].op)->brings == brings)
			return i;
	return 0;
}

static int attribute_backward(const struct hg__attribution *b, const struct hg__terms *t,
                              const struct parts *parts)
{
	const struct hg__about *about = hg__about(b->launch->call.node->op);
	const enum hg__brings brings =
	    b->operand < 0 ? HG__BRINGS_NOTHING : about->operand_brings[b->operand];
	const int self_crosses =
	    t->self.x.data && fabs(b->wide - b->sum) >= hg_dtype_get(HG_F16)->overflow;
	if (brings)
		return find(parts, brings);
	if (b->operand < 0 || t->over == HG__OVER_NOTHING)
		return last_factor(parts);
	return self_crosses ? find(parts, HG__BRINGS_SELF) : 0;
}

/* A node that adds to what one op makes, or multiplies it, as others that it took in would do. */
static int is_chain(const struct hg__task *launch)
{
	const struct hg__about *about = hg__about(launch->call.node->op);
	return about->sum && about->kept;
}

static hg_status attribute_in_chain(const struct hg__attribution *b, const struct parts *parts,
                                    int *guilty)
{
	const struct hg__element e = {b->backward ? b->operand : -1, b->row, b->col};
	struct hg__terms terms = {.over = HG__OVER_NOTHING};
	if (!b->backward || b->operand >= 0)
		HG__TRY(hg__terms_of(&b->launch->call, &e, &terms));
	if (!b->backward)
		return attribute_forward(b, &terms, parts, guilty);
	*guilty = attribute_backward(b, &terms, parts);
	return HG_OK;
}

/* ---- casts that nobody wrote ---- */

/* Forward, what made the number that does not fit; backward, what reads it in f32, and whose
 * gradient it is. */
static const struct hg__entry *behind_the_cast(const struct hg__replay *replay,
                                               const struct hg__attribution *b)
{
	const hg_tape *tape = replay->tape;
	const struct hg__node *cast = b->launch->call.node;
	const int32_t maker = tape->value[cast->in[0]].node;
	if (!b->backward)
		return maker >= 0 ? &tape->entry[maker] : NULL;
	for (int64_t k = b->launch->entry + 1; k < tape->entries; k++)
		for (int i = 0; i < tape->entry[k].node.n_in && tape->plan.entry[k].alive; i++)
			if (tape->entry[k].node.in[i] == cast->out && tape->plan.entry[k].back)
				return &tape->entry[k];
	return NULL;
}

static hg_status attribute_to_line(struct hg__replay *replay, const struct hg__entry *line,
                                   struct hg__part *part)
{
	part->op = line->op;
	return hg__page_text(replay->ctx, replay->pages, &part->layer, "%s", line->scope);
}

hg_status hg__attribute(struct hg__replay *replay, const struct hg__attribution *b,
                        struct hg__part *part)
{
	struct parts parts;
	int guilty = 0;
	const struct hg__entry *line =
	    hg__is_own_cast(replay->tape, b->launch->entry) ? behind_the_cast(replay, b) : NULL;
	if (line)
		return attribute_to_line(replay, line, part);
	HG__TRY(list_parts(replay, b->launch, &parts));
	if (is_chain(b->launch))
		HG__TRY(attribute_in_chain(b, &parts, &guilty));
	*part = parts.part[guilty];
	return HG_OK;
}
