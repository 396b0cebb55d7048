#include <math.h>

#include "autograd/attr.h"
#include "doctor/exam.h"

/* Who did it, of the ops that a fused node does the work of: the user wrote those.
 *
 *     forward     the last one that took the element over the limit: all between them is f32, and
 *                 only what comes out is narrowed
 *     backward    the one whose gradient it is; between the aggregation and its ending (aux) it is
 *                 the last one that multiplies: dropout, else the activation. Of what is both a
 *                 neighbour's and the node's own term (GIN) the own term, if it alone is beyond the
 *                 limit */

enum { MOST_PARTS = 8 };
struct parts {
	struct hg__part part[MOST_PARTS];
	int count;
};

/* The lines that this one took in, in order, and at last itself, as they were recorded. */
static hg_status list_parts(struct hg__exam *exam, const struct hg__task *launch,
                            struct parts *parts)
{
	const hg_tape *tape = exam->tape;
	parts->count = 0;
	for (int64_t k = 0; k < tape->entries && parts->count < MOST_PARTS; k++)
		if (tape->entry[k].fused_into == launch->entry || k == launch->entry)
			parts->part[parts->count++] =
			    (struct hg__part){tape->entry[k].op, tape->entry[k].scope};
	for (int i = 0; i < parts->count; i++) /* of the tape; the report outlives it */
		HG__TRY(hg__page_text(exam->ctx, exam->pages, &parts->part[i].layer, "%s",
		                      parts->part[i].layer));
	return HG_OK;
}

/* Operands of the two fused ops: A X + (1 + eps) Z + b, and X + b. */
enum { SPMM_X = 0, SPMM_W = 1, SPMM_Z = 2, SPMM_EPS = 3, SPMM_BIAS = 4 };
enum { ENDS_X = 0, ENDS_BIAS = 1 };

/* ---- forward ---- */

/* The constants of what follows, and the element of each operand. */
struct ending {
	struct hg__epilogue_attr then;
	double own, bias; /* (1 + eps) Z, b */
};

static hg_status at(const struct hg__call *c, int operand, int64_t row, int64_t col, double *value)
{
	*value = 0.0;
	return c->in[operand].data ? hg__fetch_element(c->ctx, &c->in[operand], row, col, value)
	                           : HG_OK;
}

static hg_status ending_of_sum(const struct hg__blame *b, struct ending *e)
{
	const struct hg__call *c = &b->launch->call;
	struct hg__spmm_epilogue_attr attr;
	double eps = 0.0;
	hg__attr_get(c->node, &attr, sizeof attr);
	e->then = attr.then;
	HG__TRY(at(c, SPMM_EPS, 0, 0, &eps));
	HG__TRY(at(c, attr.self ? SPMM_X : SPMM_Z, b->row, b->col, &e->own));
	/* in units of what is stored, as the sum is */
	e->own = ldexp(e->own * (1.0 + eps), c->shift[attr.self ? SPMM_X : SPMM_Z] - c->shift_out);
	return at(c, SPMM_BIAS, 0, b->col, &e->bias);
}

/* The element behind one part. Activations only bring it nearer to zero, dropout divides. */
static double behind(const struct hg__part *part, const struct ending *e, double x)
{
	if (part->op == &hg__op_add || part->op == &hg__op_combine)
		return x + e->own;
	if (part->op == &hg__op_bias_add)
		return x + e->bias;
	return part->op == &hg__op_dropout ? x / (1.0 - (double)e->then.p) : x;
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

static hg_status blame_forward(const struct hg__blame *b, const struct parts *parts, int *guilty)
{
	const struct hg__call *c = &b->launch->call;
	struct ending e = {0};
	double x = b->sum;
	if (c->node->op == &hg__op_spmm_epilogue) {
		HG__TRY(ending_of_sum(b, &e));
		*guilty = crossing(parts, &e, x, 1); /* the sum itself, where nobody crosses */
	} else if (c->node->op == &hg__op_epilogue) {
		hg__attr_get(c->node, &e.then, sizeof e.then);
		HG__TRY(at(c, ENDS_X, b->row, b->col, &x));
		HG__TRY(at(c, ENDS_BIAS, 0, b->col, &e.bias));
		*guilty = crossing(parts, &e, x, 0);
	}
	return HG_OK;
}

/* ---- backward ---- */

static int last_factor(const struct parts *parts)
{
	int guilty = parts->count - 1;
	for (int i = 0; i < parts->count; i++)
		if (parts->part[i].op == &hg__op_dropout)
			guilty = i;
	return guilty;
}

static int find(const struct parts *parts, const struct hg__op *op)
{
	for (int i = 0; i < parts->count; i++)
		if (parts->part[i].op == op)
			return i;
	return 0;
}

static int own_term_crosses(const struct hg__blame *b)
{
	struct hg__spmm_epilogue_attr attr;
	hg__attr_get(b->launch->call.node, &attr, sizeof attr);
	return attr.self && fabs(b->wide - b->sum) >= hg_dtype_get(HG_F16)->overflow;
}

static int blame_backward(const struct hg__blame *b, const struct parts *parts)
{
	const struct hg__op *op = b->launch->call.node->op;
	if (op == &hg__op_epilogue)
		return b->operand == ENDS_BIAS ? find(parts, &hg__op_bias_add) : last_factor(parts);
	if (op != &hg__op_spmm_epilogue)
		return 0;
	if (b->operand < 0)
		return last_factor(parts);
	if (b->operand == SPMM_BIAS)
		return find(parts, &hg__op_bias_add);
	const int own = b->operand == SPMM_Z || b->operand == SPMM_EPS ||
	                (b->operand == SPMM_X && own_term_crosses(b));
	return own ? find(parts, b->operand == SPMM_EPS || b->launch->call.in[SPMM_EPS].data
	                             ? &hg__op_combine
	                             : &hg__op_add)
	           : 0;
}

/* ---- casts that nobody wrote ---- */

/* Forward, what made the number that does not fit; backward, what reads it in f32, and whose
 * gradient it is. */
static const struct hg__entry *behind_the_cast(const struct hg__exam *exam,
                                               const struct hg__blame *b)
{
	const hg_tape *tape = exam->tape;
	const struct hg__node *cast = b->launch->call.node;
	const int32_t maker = tape->value[cast->in[0]].node;
	if (!b->backward)
		return maker >= 0 ? &tape->entry[maker] : NULL;
	for (int64_t k = b->launch->entry + 1; k < tape->entries; k++)
		for (int i = 0; i < tape->entry[k].node.n_in && tape->entry[k].alive; i++)
			if (tape->entry[k].node.in[i] == cast->out && tape->entry[k].back)
				return &tape->entry[k];
	return NULL;
}

static hg_status blame_line(struct hg__exam *exam, const struct hg__entry *line,
                            struct hg__part *part)
{
	part->op = line->op;
	return hg__page_text(exam->ctx, exam->pages, &part->layer, "%s", line->scope);
}

hg_status hg__blame(struct hg__exam *exam, const struct hg__blame *b, struct hg__part *part)
{
	struct parts parts;
	int guilty = 0;
	const struct hg__entry *line =
	    hg__is_own_cast(exam->tape, b->launch->entry) ? behind_the_cast(exam, b) : NULL;
	if (line)
		return blame_line(exam, line, part);
	HG__TRY(list_parts(exam, b->launch, &parts));
	if (b->backward)
		guilty = blame_backward(b, &parts);
	else
		HG__TRY(blame_forward(b, &parts, &guilty));
	*part = parts.part[guilty];
	return HG_OK;
}
