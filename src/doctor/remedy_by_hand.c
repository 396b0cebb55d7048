#include "doctor/remedy.h"

/* Remedies without an option: the user has to change the data, the checkpoint or the program. */

static int no_option(char option[HG__OPTION])
{
	return hg__write_option(option, "");
}

/* ---- inputs ---- */

int hg__fit_bad_data(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->row_is != HG_ROW_WEIGHT && !hg__is_too_large_input(q->f) && no_option(option);
}

int hg__fit_bad_weight(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->row_is == HG_ROW_WEIGHT && !hg__is_too_large_input(q->f) &&
	       !hg__is_running_statistic_finding(q->f) && no_option(option);
}

int hg__fit_bad_statistic(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return hg__is_running_statistic_finding(q->f) && no_option(option);
}

/* ---- ops that are not defined for zero, or for negative numbers ---- */

static int fit_operand(const struct hg__remedy_query *q, hg_zero zero, int negative,
                       char option[HG__OPTION])
{
	return q->f->zero == zero && (hg__negative_operand(q->f) != NULL) == negative &&
	       no_option(option);
}

int hg__fit_divisor(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->zero == HG_ZERO_QUOTIENT && no_option(option);
}

int hg__fit_log_of_zero(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return fit_operand(q, HG_ZERO_LOGARITHM, 0, option);
}

int hg__fit_log_of_negative(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return fit_operand(q, HG_ZERO_LOGARITHM, 1, option);
}

int hg__fit_root_of_zero(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return fit_operand(q, HG_ZERO_ROOT, 0, option);
}

int hg__fit_root_of_negative(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return fit_operand(q, HG_ZERO_ROOT, 1, option);
}

int hg__fit_constant(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->zero == HG_ZERO_VARIANCE && no_option(option);
}

/* ---- results that are too small ---- */

int hg__fit_small_operands(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return !q->f->backward && !q->f->shift && q->f->node >= 0 && no_option(option);
}
