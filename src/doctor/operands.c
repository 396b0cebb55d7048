#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/replay.h"

/* What an op that is no sum had at the element at fault: its operands there, one for the
 * element, its row, its column or all, and its constants. Of a backward pass the gradient first. */

struct telling {
	struct hg__replay *replay;
	const struct hg__result *r;
	hg_finding *f;
	int64_t row, col;
};

static hg_status tell(struct telling *t, const char *role, const char *tensor, int64_t row,
                      int64_t col, double value)
{
	hg_finding *f = t->f;
	if (f->operands == HG_DOCTOR_OPERANDS)
		return HG_OK;
	hg_operand *o = &f->operand[f->operands++];
	*o = (hg_operand){.role = role, .row = row, .col = col, .value = value};
	return hg__page_text(t->replay->ctx, t->replay->pages, &o->tensor, "%s", tensor);
}

static hg_status tell_constant(struct telling *t, const char *role, double value)
{
	return tell(t, role, "", -1, -1, value);
}

/* An operand that may be one for a row, for a column, or for all. */
static hg_status tell_element(struct telling *t, const char *role, const char *tensor,
                              const struct hg__mat *mat, int shift)
{
	const int64_t row = mat->rows == 1 ? 0 : t->row, col = mat->cols == 1 ? 0 : t->col;
	double value = 0.0;
	if (!mat->data || row >= mat->rows || col >= mat->cols)
		return HG_OK;
	HG__TRY(hg__fetch_element(t->replay->ctx, mat, row, col, &value));
	return tell(t, role, tensor, row, col, ldexp(value, shift));
}

static const char *name_of(const struct telling *t, int32_t value, char *text, size_t size)
{
	const hg_tape *tape = t->replay->tape;
	while (tape->value[value].node >= 0 && hg__is_own_cast(tape, tape->value[value].node))
		value = tape->entry[tape->value[value].node].node.in[0];
	const struct hg__value *v = &tape->value[value];
	return v->kind == HG__PARAM ? v->param->name : hg__value_name(tape, v, text, size);
}

static hg_status tell_operands(struct telling *t)
{
	const struct hg__call *c = &t->r->launch->call;
	char name[160];
	for (int i = 0; i < c->node->n_in; i++) {
		const int32_t in = c->node->in[i];
		const char *role = hg__operand_role(c->node->op, i);
		if (in < 0 || !role)
			continue;
		const struct hg__mat mat = hg__value_mat(t->replay->tape, in);
		HG__TRY(tell_element(t, role, name_of(t, in, name, sizeof name), &mat, c->shift[i]));
	}
	return HG_OK;
}

/* ---- scores of both ends of an edge ---- */

static hg_status tell_ends(struct telling *t)
{
	const struct hg__call *c = &t->r->launch->call;
	const int together = c->node->in[1] < 0;
	const int64_t h = c->out.cols;
	int64_t ends[2] = {0, 0};
	char name[160];
	HG__TRY(hg__edge_ends(t->replay->ctx, c->node->graph, t->row, &ends[0], &ends[1]));
	for (int i = 0; i < 2; i++) {
		const int32_t in = c->node->in[together ? 0 : i];
		const struct hg__mat mat = hg__value_mat(t->replay->tape, in);
		const int64_t col = together && i ? t->col + h : t->col;
		double value = 0.0;
		HG__TRY(hg__fetch_element(t->replay->ctx, &mat, ends[i], col, &value));
		HG__TRY(tell(t, hg__operand_role(c->node->op, i), name_of(t, in, name, sizeof name),
		             ends[i], col, value));
	}
	return HG_OK;
}

/* ---- constants ---- */

static hg_status tell_norm(struct telling *t)
{
	const struct hg__call *c = &t->r->launch->call;
	const struct hg__element e = {t->r->operand, t->row, t->col};
	const struct hg__mat statistics = hg__value_mat(t->replay->tape, c->node->aux[0]);
	struct hg__norm_at at;
	double rstd = 0.0;
	if (!hg__about(c->node->op)->norm(c, &e, &at))
		return HG_OK;
	HG__TRY(hg__fetch_element(t->replay->ctx, &statistics, at.row, at.col, &rstd));
	rstd = ldexp(rstd, -at.shift);
	HG__TRY(tell_constant(t, "variance", fmax(1.0 / (rstd * rstd) - at.eps, 0.0)));
	return tell_constant(t, "eps", at.eps);
}

static hg_status tell_constants(struct telling *t)
{
	const struct hg__node *node = t->r->launch->call.node;
	const struct hg__about *about = hg__about(node->op);
	struct hg__named named[HG__MOST_NAMED];
	const int count = hg__constants_of(node, named);
	for (int i = 0; i < count; i++)
		HG__TRY(tell_constant(t, named[i].name, named[i].value));
	return about->norm ? tell_norm(t) : HG_OK;
}

/* The gradient that the backward pass began with, if it has an element here. */
static hg_status tell_gradient(struct telling *t)
{
	const struct hg__call *c = &t->r->launch->call;
	char name[160], text[192];
	if (!t->r->backward || c->dout.rows != t->r->got.rows || c->dout.cols != t->r->got.cols)
		return HG_OK;
	(void)snprintf(text, sizeof text, "gradient of %s",
	               name_of(t, c->node->out, name, sizeof name));
	return tell_element(t, "gradient", text, &c->dout, 0);
}

hg_status hg__tell_operands(struct hg__replay *replay, const struct hg__result *r, hg_finding *f)
{
	struct telling t = {replay, r, f, f->row, f->col};
	if (r->operand == HG__BETWEEN || f->terms)
		return HG_OK;
	HG__TRY(tell_gradient(&t));
	if (hg__about(r->launch->call.node->op)->traits & HG__JOINS_ENDS)
		return r->backward ? HG_OK : tell_ends(&t);
	HG__TRY(tell_operands(&t));
	return tell_constants(&t);
}

/* Two gradients of one tensor, by the nodes that they come from. */
hg_status hg__tell_gradients(struct hg__replay *replay, hg_finding *f,
                             const struct hg__parts *parts)
{
	struct telling t = {replay, NULL, f, f->row, f->col};
	char name[160], text[192];
	for (int i = 0; i < 2; i++) {
		const struct hg__entry *line =
		    parts->from[i] >= 0 ? &replay->tape->entry[parts->from[i]] : NULL;
		if (line)
			(void)snprintf(text, sizeof text, "%s", name_of(&t, line->node.out, name, sizeof name));
		else
			(void)snprintf(text, sizeof text, "%s", f->tensor);
		HG__TRY(tell(
		    &t, i || parts->count < 3 ? "gradient through" : "gradient so far, the last through",
		    text, f->row, f->col, parts->value[i]));
	}
	return HG_OK;
}

const double *hg__negative_operand(const hg_finding *f)
{
	for (int i = 0; i < f->operands; i++)
		if (strcmp(f->operand[i].role, "x") == 0 && f->operand[i].value < 0.0 &&
		    (f->zero == HG_ZERO_LOGARITHM || f->zero == HG_ZERO_ROOT))
			return &f->operand[i].value;
	return NULL;
}
