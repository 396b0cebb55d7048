#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/finding.h"

/* The operands at the element at fault, for an op that is no sum. Each operand has one element for
 * this element, its row, its column, or all; then come the constants of the op. In a backward pass
 * the gradient of the result comes first. */

struct listing {
	struct hg__replay *replay;
	const struct hg__result *r;
	hg_finding *f;
	int64_t row, col;
};

static hg_status add_operand(struct listing *l, const char *role, const char *tensor, int64_t row,
                             int64_t col, double value)
{
	hg_finding *f = l->f;
	if (f->operands == HG_DOCTOR_OPERANDS)
		return HG_OK;
	hg_operand *o = &f->operand[f->operands++];
	*o = (hg_operand){.role = role, .row = row, .col = col, .value = value};
	return hg__report_text(l->replay->ctx, l->replay->memory, &o->tensor, "%s", tensor);
}

static hg_status add_constant(struct listing *l, const char *role, double value)
{
	return add_operand(l, role, "", -1, -1, value);
}

/* The element of a tensor that is stored x 2^-shift. The tensor may have one row, or one column. */
static hg_status add_element(struct listing *l, const char *role, const char *tensor,
                             const struct hg__mat *mat, int shift)
{
	const int64_t row = mat->rows == 1 ? 0 : l->row, col = mat->cols == 1 ? 0 : l->col;
	double value = 0.0;
	if (!mat->data || row >= mat->rows || col >= mat->cols)
		return HG_OK;
	HG__TRY(hg__fetch_element(l->replay->ctx, mat, row, col, &value));
	return add_operand(l, role, tensor, row, col, ldexp(value, shift));
}

/* The name of a value as the user knows it: implicit casts have the name of their operand. */
static const char *name_of(const struct listing *l, int32_t value, char *text, size_t size)
{
	const hg_tape *tape = l->replay->tape;
	const struct hg__value *v = &tape->recording.value[hg__before_casts(tape, value)];
	return v->kind == HG__PARAM ? v->param->name : hg__value_name(tape, v, text, size);
}

static hg_status add_operands(struct listing *l)
{
	const struct hg__call *c = &l->r->task->call;
	char name[160];
	for (int i = 0; i < c->node->n_in; i++) {
		const int32_t in = c->node->in[i];
		const char *role = hg__operand_role(c->node->op, i);
		if (in < 0 || !role)
			continue;
		const struct hg__mat mat = hg__value_mat(l->replay->tape, in);
		HG__TRY(add_element(l, role, name_of(l, in, name, sizeof name), &mat, c->shift[i]));
	}
	return HG_OK;
}

/* ---- the scores of both ends of an edge ---- */

static hg_status add_scores_of_ends(struct listing *l)
{
	const struct hg__call *c = &l->r->task->call;
	const int in_one_tensor = c->node->in[1] < 0;
	const int64_t heads = c->out.cols;
	int64_t ends[2] = {0, 0};
	char name[160];
	HG__TRY(hg__edge_ends(l->replay->ctx, c->node->graph, l->row, &ends[0], &ends[1]));
	for (int i = 0; i < 2; i++) {
		const int32_t in = c->node->in[in_one_tensor ? 0 : i];
		const struct hg__mat mat = hg__value_mat(l->replay->tape, in);
		const int64_t col = in_one_tensor && i ? l->col + heads : l->col;
		double value = 0.0;
		HG__TRY(hg__fetch_element(l->replay->ctx, &mat, ends[i], col, &value));
		HG__TRY(add_operand(l, hg__operand_role(c->node->op, i), name_of(l, in, name, sizeof name),
		                    ends[i], col, value));
	}
	return HG_OK;
}

/* ---- constants ---- */

static hg_status add_norm_constants(struct listing *l)
{
	const struct hg__call *c = &l->r->task->call;
	const struct hg__element e = {l->r->operand, l->row, l->col};
	const struct hg__mat statistics = hg__value_mat(l->replay->tape, c->node->aux[0]);
	struct hg__norm_at at;
	double rstd = 0.0;
	if (!hg__about(c->node->op)->norm(c, &e, &at))
		return HG_OK;
	HG__TRY(hg__fetch_element(l->replay->ctx, &statistics, at.row, at.col, &rstd));
	rstd = ldexp(rstd, -at.shift);
	HG__TRY(add_constant(l, "variance", fmax(1.0 / (rstd * rstd) - at.eps, 0.0)));
	return add_constant(l, "eps", at.eps);
}

static hg_status add_constants(struct listing *l)
{
	const struct hg__node *node = l->r->task->call.node;
	struct hg__named named[HG__MOST_NAMED];
	const int count = hg__constants_of(node, named);
	for (int i = 0; i < count; i++)
		HG__TRY(add_constant(l, named[i].name, named[i].value));
	return hg__about(node->op)->norm ? add_norm_constants(l) : HG_OK;
}

/* ---- gradients ---- */

/* The gradient of the op's own result, if it has the shape of the gradient at fault. */
static hg_status add_gradient_of_result(struct listing *l)
{
	const struct hg__call *c = &l->r->task->call;
	char name[160], text[192];
	if (!l->r->backward || c->dout.rows != l->r->stored.rows || c->dout.cols != l->r->stored.cols)
		return HG_OK;
	(void)snprintf(text, sizeof text, "gradient of %s",
	               name_of(l, c->node->out, name, sizeof name));
	return add_element(l, "gradient", text, &c->dout, 0);
}

hg_status hg__list_operands(struct hg__replay *replay, const struct hg__result *r, hg_finding *f)
{
	struct listing l = {replay, r, f, f->row, f->col};
	if (r->operand == HG__INTERMEDIATE || f->terms)
		return HG_OK;
	HG__TRY(add_gradient_of_result(&l));
	if (hg__about(r->task->call.node->op)->traits & HG__JOINS_ENDS)
		return r->backward ? HG_OK : add_scores_of_ends(&l);
	HG__TRY(add_operands(&l));
	return add_constants(&l);
}

/* Each gradient has the name of the result through which it came. */
hg_status hg__list_gradients(struct hg__replay *replay, hg_finding *f,
                             const struct hg__gradient_pair *pair)
{
	struct listing l = {replay, NULL, f, f->row, f->col};
	char name[160], text[192];
	for (int i = 0; i < 2; i++) {
		const struct hg__entry *entry =
		    pair->entry[i] >= 0 ? &replay->tape->recording.entry[pair->entry[i]] : NULL;
		const char *role =
		    i || pair->contributions < 3 ? "gradient through" : "gradient so far, the last through";
		(void)snprintf(text, sizeof text, "%s",
		               entry ? name_of(&l, entry->node.out, name, sizeof name) : f->tensor);
		HG__TRY(add_operand(&l, role, text, f->row, f->col, pair->value[i]));
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
