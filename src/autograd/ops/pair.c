/* The common parts of ops with two operands (pair.h). */
#include "autograd/ops/pair.h"

enum { X, Y };

hg_status hg__pair_infer(struct hg__infer *s)
{
	HG__TRY(hg__want_state(s, X, "X"));
	HG__TRY(hg__want_state(s, Y, "Y"));
	HG__TRY(hg__want_equal(s, "Y", "rows", s->in[Y].rows, "X", "rows", s->in[X].rows));
	HG__TRY(hg__want_equal(s, "Y", "columns", s->in[Y].cols, "X", "columns", s->in[X].cols));
	s->out = hg__shape_of(s->in[X].rows, s->in[X].cols, s->state);
	s->grads = 1u << X | 1u << Y;
	return HG_OK;
}

hg_status hg__pair_sum(const struct hg__call *c, float sign)
{
	const struct hg__axpby_args args = {.x = c->in[X],
	                                    .z = c->in[Y],
	                                    .y = c->out,
	                                    .alpha = hg__rescaled(c, X, 1.0f),
	                                    .beta = hg__rescaled(c, Y, sign)};
	return HG__RUN(c, axpby, &args);
}

hg_status hg__pair_sum_back(const struct hg__call *c, float sign)
{
	for (int i = X; i <= Y; i++)
		if (c->din[i].data)
			HG__TRY(hg__copy_scaled(c, c->dout, i == X ? 1.0f : sign, c->din[i]));
	return HG_OK;
}

void hg__pair_sum_range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	grad->largest[X] = grad->largest[Y] = r->dout;
}

/* y_rows: the rows that the second operand should have. */
static int set_sample(int i, const struct hg__extent *x, int64_t y_rows, struct hg__sample *s)
{
	static const struct {
		const char *what;
		hg_status expect;
		int64_t wider;         /* columns of both operands beyond d */
		int64_t rows_too_many; /* of the second operand */
		int64_t columns_too_many;
		int integer;
	} rows[] = {
	    {"plain", HG_OK, 0, 0, 0, 0},
	    {"one column more", HG_OK, 1, 0, 0, 0},
	    {"three columns more", HG_OK, 3, 0, 0, 0},
	    {"eight columns more", HG_OK, 8, 0, 0, 0},
	    {"second operand with a row too many", HG_ERR_SHAPE, 0, 1, 0, 0},
	    {"second operand with a column too many", HG_ERR_SHAPE, 0, 0, 1, 0},
	    {"X of integers", HG_ERR_DTYPE, 0, 0, 0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_normal(s, x->n, d, x->state);
	hg__sample_normal(s, y_rows + rows[i].rows_too_many, d + rows[i].columns_too_many, x->state);
	return 1;
}

int hg__pair_sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	return set_sample(i, x, x->n, s);
}

int hg__pair_sample_row(int i, const struct hg__extent *x, struct hg__sample *s)
{
	return set_sample(i, x, 1, s);
}
