#ifndef HG_DOCTOR_ATTENTION_FORM_H
#define HG_DOCTOR_ATTENTION_FORM_H

#include "kernels/attention.h"

HG_EXTERN_C_BEGIN

/* The scores of attention (kernels/attention.h) in f64, at one edge and head. Each is a sum over
 * the columns of the head of a term of q and k, of which the score is then made. */

/* Sums over the columns of the head: of q k, q q and k k, and of the form's terms. size: of the
 * largest number on the way to the score. */
struct hg__edge_products {
	double qk, qq, kk, sum, size;
};

/* An element of Q or K with respect to which a score is derived, the one of the other matrix, and
 * the sums of squares of the heads in which they are. */
struct hg__score_at {
	double own, other, own_squares, other_squares;
	double c; /* the constant of the element's column or head */
};

enum hg__score_constant { HG__CONSTANT_NONE, HG__CONSTANT_OF_COLUMN, HG__CONSTANT_OF_HEAD };

struct hg__score_form {
	enum hg__score_constant constant; /* what c has a number for */
	double (*term)(const struct hg__attention *of, double q, double k, double c);
	/* Makes the score of the sums. c: the constant of the head, or 1. */
	double (*score)(const struct hg__attention *of, struct hg__edge_products *p, double c,
	                double bias);
	double (*derivative)(const struct hg__attention *of, const struct hg__edge_products *p,
	                     double bias, const struct hg__score_at *at);
};
const struct hg__score_form *hg__score_form(hg_score score);

HG_EXTERN_C_END
#endif
