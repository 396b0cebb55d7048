/* The common parts of the functions of one operand (act.h). */
#include "autograd/ops/act.h"

float hg__act_p(const struct hg__node *node)
{
	struct hg__act_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr.p;
}

static const struct hg__function *function_of(const struct hg__node *node)
{
	return &hg__functions[node->op->act - 1];
}

hg_status hg__act_infer(struct hg__infer *s)
{
	const struct hg__constant *constant = &s->node->op->constant;
	const float p = hg__act_p(s->node);
	if (constant->name)
		HG__TRY(hg__want_attr(s, p >= constant->low && p <= constant->high, constant->name,
		                      (double)p, constant->expected));
	HG__TRY(hg__want_state(s, 0, "X"));
	s->out = hg__shape_of(s->in[0].rows, s->in[0].cols, s->state);
	s->grads = 1u;
	s->saves = function_of(s->node)->reads_x ? HG__SAVE_IN(0) : HG__SAVE_OUT;
	return HG_OK;
}

struct hg__known hg__act_range(const struct hg__range *r, struct hg__derivation *how)
{
	const struct hg__function *f = function_of(r->node);
	struct hg__known out = hg__at_most(f->most(r->in[0].largest, (double)hg__act_p(r->node)));
	if (out.largest == r->in[0].largest)
		hg__because(how, "|X| %.3g", r->in[0].largest);
	else
		hg__because(how, "%s of |X| %.3g", f->name, r->in[0].largest);
	return out;
}

void hg__act_range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[0] = hg__bound_mul(
	    function_of(r->node)->steepest(r->in[0].largest, (double)hg__act_p(r->node)), r->dout);
}

hg_status hg__act_forward(const struct hg__call *c)
{
	const struct hg__act_args args = {.act = (hg__act)(c->node->op->act - 1),
	                                  .p = hg__act_p(c->node),
	                                  .x = c->in[0],
	                                  .y = c->out};
	return HG__RUN(c, act, &args);
}

hg_status hg__act_backward(const struct hg__call *c)
{
	if (!c->din[0].data)
		return HG_OK;
	const struct hg__act_back_args args = {.act = (hg__act)(c->node->op->act - 1),
	                                       .p = hg__act_p(c->node),
	                                       .y = function_of(c->node)->reads_x ? c->in[0] : c->out,
	                                       .dy = c->dout,
	                                       .dx = c->din[0]};
	return HG__RUN(c, act_back, &args);
}

static void set_sample(const struct act_sample *row, const struct hg__extent *x,
                       struct hg__sample *s)
{
	hg__sample_begin(s, row->what, row->expect, 0);
	hg__sample_attr(s, &row->p, sizeof row->p);
	if (row->of == ACT_MISSING)
		hg__sample_none(s);
	else if (row->of == ACT_BYTES)
		hg__sample_add(s, x->n, x->d, HG_U8, HG__FILL_MASK, 1.0, 0);
	else if (row->of == ACT_INTEGERS)
		hg__sample_integer(s, x->n, x->d);
	else {
		static const enum hg__fill fill[] = {[ACT_FLOATS] = HG__FILL_NORMAL,
		                                     [ACT_POSITIVES] = HG__FILL_POSITIVE,
		                                     [ACT_ALIKE] = HG__FILL_CONST,
		                                     [ACT_ALIKE_FORWARD] = HG__FILL_CONST};
		hg__sample_add(s, x->n, x->d + row->wider, x->state, fill[row->of], row->sigma,
		               row->of != ACT_ALIKE_FORWARD);
	}
}

int hg__act_sample(const struct act_sample *rows, size_t count, int i, const struct hg__extent *x,
                   struct hg__sample *s)
{
	if ((size_t)i >= count)
		return 0;
	set_sample(&rows[i], x, s);
	return 1;
}

int hg__act_sample_any(int i, const struct hg__extent *x, struct hg__sample *s)
{
	static const struct act_sample rows[] = {
	    {"plain", HG_OK, 0, 1.0, 0.0f, ACT_FLOATS},
	    {"one column more, of size 6", HG_OK, 1, 6.0, 0.0f, ACT_FLOATS},
	    {"three columns more, near 0", HG_OK, 3, 0.001, 0.0f, ACT_FLOATS},
	    {"eight columns more, zeros", HG_OK, 8, 0.0, 0.0f, ACT_ALIKE},
	    {"large values", HG_OK, 0, 8000.0, 0.0f, ACT_FLOATS},
	    {"X of integers", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_INTEGERS},
	    {"X of bytes", HG_ERR_DTYPE, 0, 1.0, 0.0f, ACT_BYTES},
	    {"X missing", HG_ERR_ARG, 0, 1.0, 0.0f, ACT_MISSING},
	};
	return hg__act_sample(rows, sizeof rows / sizeof rows[0], i, x, s);
}
