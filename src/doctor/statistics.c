#include <math.h>

#include "autograd/attr.h"
#include "autograd/param.h"
#include "doctor/exam.h"

/* Running statistics of batch norms, which evaluations divide by and a training step never
 * reads: are they any that the columns could have had? Held against the batch that has just been
 * replayed, with mean m and variance v of n rows, in which |x| <= |m| + sqrt(n v):
 *
 *     running_var < 0                                          no variance is
 *     |running_mean| > 1000 (|m| + sqrt(n v) + sqrt(eps))   of columns 1000 times as large
 *     running_var > 10^6 max(1, n v + m^2)                     likewise; it begins with 1
 *     running_var + eps < momentum / 1000 min(1, v)            one update leaves momentum v
 *
 * Thousand times: by choice, so that what training moves on its way is none. */
#define FAR 1e3

struct column {
	double mean, var, n; /* of the batch */
	double momentum, eps;
	double running_mean, running_var;
};

static int mean_is_far(const struct column *c)
{
	return fabs(c->running_mean) > FAR * (fabs(c->mean) + sqrt(c->n * c->var) + sqrt(c->eps));
}

static int var_is_far(const struct column *c)
{
	const double most = fmax(1.0, c->n * c->var + c->mean * c->mean);
	return c->running_var < 0.0 || c->running_var > FAR * FAR * most ||
	       c->running_var + c->eps < c->momentum / FAR * fmin(1.0, c->var);
}

struct norm {
	const struct hg__line *line;
	const hg_param *buffer; /* that is bad */
	int64_t col, bad;       /* the first column, how many */
	double got, wide;
};

static hg_status statistics_found(struct hg__exam *exam, const struct norm *norm)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	struct hg__found *found = hg__found_new(exam, 0, HG_CAUSE_INPUT);
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->stop = INT64_MAX;
	f->evaluation = 1;
	f->op = norm->line->node.op->name;
	f->op_words = norm->line->node.op->words;
	f->got = norm->got;
	f->wide = norm->wide;
	f->limit = hg_dtype_get(HG_F32)->overflow;
	f->bad = norm->bad;
	f->count = hg_tensor_cols(norm->buffer->master);
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &f->layer, "%s", norm->line->node.scope));
	HG__TRY(hg__page_text(exam->ctx, exam->pages, &f->tensor, "%s", norm->buffer->name));
	return hg__found_at(exam, found, &rows, 0, norm->col);
}

static void note_column(struct norm *norm, int64_t col, double got, double wide)
{
	if (norm->bad++ == 0) {
		norm->col = col;
		norm->got = got;
		norm->wide = wide;
	}
}

/* Statistics of the batch are those of what is stored; running ones those of the value. */
static hg_status check_norm(struct hg__exam *exam, const struct hg__launch *launch)
{
	const struct hg__node *node = launch->call.node;
	struct hg__batch_norm_attr attr;
	const struct hg__mat batch = hg__value_mat(exam->tape, node->aux[0]);
	struct hg__fetched rows = {0}, mean = {0}, var = {0};
	struct norm means = {.line = hg__line_of(exam, launch), .buffer = node->buffer[0]};
	struct norm vars = {.line = hg__line_of(exam, launch), .buffer = node->buffer[1]};
	hg__attr_get(node, &attr, sizeof attr);
	hg_status status = hg__fetch_rows(exam->ctx, &batch, 0, 2, &rows);
	if (status >= 0)
		status = hg__fetch_rows(exam->ctx, &node->buffer[0]->master->mat, 0, 1, &mean);
	if (status >= 0)
		status = hg__fetch_rows(exam->ctx, &node->buffer[1]->master->mat, 0, 1, &var);
	for (int64_t col = 0; status >= 0 && col < batch.cols; col++) {
		const double rstd = ldexp(hg__fetched_at(&rows, 1, col), -launch->call.shift[0]);
		const struct column c = {.mean =
		                             ldexp(hg__fetched_at(&rows, 0, col), launch->call.shift[0]),
		                         .var = fmax(1.0 / (rstd * rstd) - (double)attr.eps, 0.0),
		                         .n = (double)launch->call.in[0].rows,
		                         .momentum = (double)attr.momentum,
		                         .eps = (double)attr.eps,
		                         .running_mean = hg__fetched_at(&mean, 0, col),
		                         .running_var = hg__fetched_at(&var, 0, col)};
		if (mean_is_far(&c))
			note_column(&means, col, c.running_mean, c.mean);
		if (var_is_far(&c))
			note_column(&vars, col, c.running_var, c.var);
	}
	hg__fetched_free(exam->ctx, &var);
	hg__fetched_free(exam->ctx, &mean);
	hg__fetched_free(exam->ctx, &rows);
	if (status >= 0 && means.bad)
		status = statistics_found(exam, &means);
	return status >= 0 && vars.bad ? statistics_found(exam, &vars) : status;
}

hg_status hg__exam_statistics(struct hg__exam *exam)
{
	for (int64_t i = 0; i < exam->tape->forwards; i++) {
		const struct hg__launch *launch = &exam->tape->forward[i];
		const struct hg__node *node = launch->call.node;
		if (node->op == &hg__op_batch_norm && launch->call.mode == HG_TRAIN &&
		    hg__operands_good(exam, launch, 0))
			HG__TRY(check_norm(exam, launch));
	}
	return HG_OK;
}
