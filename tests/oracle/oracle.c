#include <stdio.h>
#include <string.h>

#include "oracle/parts.h"

static const struct oracle_op table[] = {
#define ORACLE_OP(name) {#name, oracle_##name, oracle_##name##_back},
#include "oracle/oracle.def"
#undef ORACLE_OP
};

const struct oracle_op *oracle_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

num *oracle_scratch(int64_t count)
{
	num *scratch = calloc((size_t)count + 1, sizeof *scratch);
	if (!scratch) {
		fputs("oracle: out of memory\n", stderr);
		exit(1);
	}
	return scratch;
}

struct oracle_matrix oracle_like(const struct oracle_matrix *m)
{
	return (struct oracle_matrix){m->rows, m->cols, oracle_scratch(m->rows * m->cols)};
}

void oracle_release(num *scratch)
{
	free(scratch);
}

/* <dout, f(x)> */
static double functional(const struct oracle_op *op, struct oracle_call *c)
{
	double sum = 0;
	op->forward(c);
	for (int64_t i = 0; i < c->out.rows * c->out.cols; i++)
		sum += c->dout.at[i].v * c->out.at[i].v;
	return sum;
}

struct difference {
	double slope; /* central */
	double jump;  /* of the one-sided slopes */
};

/* here: the functional at x. */
static struct difference difference_at(const struct oracle_op *op, struct oracle_call *c, double *x,
                                       double here, double h)
{
	const double keep = *x;
	*x = keep + h;
	const double up = functional(op, c);
	*x = keep - h;
	const double down = functional(op, c);
	*x = keep;
	return (struct difference){(up - down) / (2 * h), fabs(up - 2 * here + down) / h};
}

double oracle_self_check(const struct oracle_op *op, struct oracle_call *c)
{
	const double h = 0x1p-18;
	double worst = 0, scale = 1;
	const double here = functional(op, c);
	/* The backward pass reads the stored output, which is the exact one here. */
	for (int64_t i = 0; i < c->out.rows * c->out.cols; i++)
		c->saved_out.at[i] = num_exact(c->out.at[i].v);
	op->backward(c);
	for (int k = 0; k < ORACLE_MAX_IN; k++)
		for (int64_t i = 0; c->din[k].at && i < c->din[k].rows * c->din[k].cols; i++)
			scale = fmax(scale, fabs(c->din[k].at[i].v));
	for (int k = 0; k < ORACLE_MAX_IN; k++)
		for (int64_t i = 0; c->din[k].at && i < c->din[k].rows * c->din[k].cols; i++) {
			double *x = &c->in[k].at[i].v;
			const struct difference near = difference_at(op, c, x, here, h),
			                        far = difference_at(op, c, x, here, 2 * h);
			const double tolerance = 1e-6 * scale * (1 + (double)(c->out.rows * c->out.cols));
			if (fabs(near.slope - far.slope) <= tolerance && near.jump <= 1e-2 * scale)
				worst = fmax(worst, fabs(c->din[k].at[i].v - near.slope) / tolerance);
		}
	return worst;
}
