#include <string.h>

#include "doctor/remedy.h"

/* Remedies that change the model of a training run, or its features. */

static int is_model(const struct hg__remedy_query *q, const char *name)
{
	return q->replay->config && strcmp(q->replay->config->model.name, name) == 0;
}

/* ---- aggregation ---- */

static int is_aggregation(const struct hg__remedy_query *q)
{
	return q->finding->op && hg__about(q->finding->op)->traits & HG__NEIGHBOURS;
}

/* A GCN whose sums are not divided by degrees of the destination. */
static int has_unscaled_sums(const struct hg__remedy_query *q)
{
	return is_model(q, "gcn") && is_aggregation(q) &&
	       !hg__norm_is_root(q->replay->config->model.norm) &&
	       q->replay->config->model.norm != HG_NORM_RIGHT &&
	       q->replay->config->model.norm != HG_NORM_WEIGHTED_MEAN;
}

int hg__fit_norm_both(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return has_unscaled_sums(q) && hg__write_option(option, "--norm both");
}

int hg__fit_norm_right(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return has_unscaled_sums(q) && hg__write_option(option, "--norm right");
}

int hg__fit_mean(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return (is_model(q, "gin") || is_model(q, "gine")) && is_aggregation(q) &&
	       q->replay->config->model.aggregate != HG_NORM_RIGHT &&
	       hg__write_option(option, "--aggregate mean");
}

int hg__fit_mean_of_rescaled(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return q->f->shift > 0 && hg__fit_mean(q, option);
}

/* Smaller by the power of two that brings the element to an eighth of what the type holds. */
int hg__fit_lambda(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double target = q->f->limit / 8.0, size = fabs(q->f->wide);
	return is_model(q, "gin") && is_aggregation(q) && isfinite(size) && size > target &&
	       hg__write_number(option, "--lambda",
	                        (double)q->replay->config->model.lambda *
	                            exp2(-ceil(log2(size / target))));
}

/* ---- features ---- */

/* The largest sum of |x| over a row of the features that the op at fault reads, directly or through
 * linear ops; 0: it reads none. */
static double features_row_sum(const struct hg__remedy_query *q)
{
	const hg_tape *tape = q->replay->tape;
	const struct hg__entry *entry = q->f->backward ? NULL : q->finding->entry;
	while (entry) {
		const int32_t in = entry->node.in[0], maker = tape->recording.value[in].node;
		if (entry->node.graph && entry->node.graph == q->replay->sparse_features)
			return q->replay->sparse_features_row_sum;
		if (maker < 0)
			return tape->recording.value[in].kind == HG__INPUT ? q->replay->value[in].max_row_sum
			                                                   : 0.0;
		const int is_linear =
		    hg__about(tape->recording.entry[maker].node.op)->traits & HG__PROPORTIONAL;
		entry = is_linear ? &tape->recording.entry[maker] : NULL;
	}
	return 0.0;
}

/* A result that is linear in the features is divided by the same number as they are. */
int hg__fit_row_normalize(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const double sum = features_row_sum(q);
	return sum > 1.0 + HG__ROW_SUM_ROUNDING && fabs(q->f->wide) / sum < q->f->limit &&
	       hg__write_option(option, "--row-normalize on");
}

int hg__fit_row_normalize_input(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	return hg__is_too_large_input(q->f) && hg__fit_row_normalize(q, option);
}

/* Features that were rounded to zero themselves; or a result that is linear in them, if f16 can
 * hold it once it is divided as they are. */
int hg__fit_row_normalize_vanished(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const int is_feature = q->f->node < 0;
	const double sum =
	    is_feature ? q->replay->value[q->finding->value].max_row_sum : features_row_sum(q);
	const int helps = is_feature ? fabs(sum - 1.0) > HG__ROW_SUM_ROUNDING
	                             : sum > 0.0 && sum < 1.0 - HG__ROW_SUM_ROUNDING &&
	                                   fabs(q->f->wide) / sum >= q->f->limit;
	return helps && q->f->row_is != HG_ROW_WEIGHT && hg__write_option(option, "--row-normalize on");
}
