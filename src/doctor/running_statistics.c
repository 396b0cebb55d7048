#include <math.h>

#include "autograd/param.h"
#include "doctor/check.h"

/* The running statistics of batch norms, which evaluations read and training steps do not. A
 * statistic is bad in one of two ways.
 *
 *     impossible: it is NaN or infinite, or a variance below 0
 *     far from what the norm reads. Let n rows have the mean m and the variance v, so that every
 *         |x| <= |m| + sqrt(n v). Far is
 *         |running_mean| > 1000 (|m| + sqrt(n v) + sqrt(eps))   as of columns 1000 times as large
 *         running_var > 10^6 max(1, n v + m^2)                  likewise; it begins with 1
 *         running_var + eps < momentum / 1000 min(1, v)         since one update leaves momentum v
 *
 * The factor 1000 is a choice: it is wider than anything that statistics go through while a model
 * trains. After the replay of a training step all norms are examined, and m and v are those of the
 * batch. In an evaluation the layers before the norm use running statistics as well, so its columns
 * need not be those that its own statistics were made of. Therefore m and v are compared only where
 * the result of the norm is not finite. */
#define FAR 1e3

struct column {
	double mean, var, n; /* of what the norm reads */
	double momentum, eps;
	double running_mean, running_var;
};

static int mean_is_impossible(const struct column *c)
{
	return !isfinite(c->running_mean);
}

static int var_is_impossible(const struct column *c)
{
	return !isfinite(c->running_var) || c->running_var < 0.0;
}

static int mean_is_far(const struct column *c)
{
	return fabs(c->running_mean) > FAR * (fabs(c->mean) + sqrt(c->n * c->var) + sqrt(c->eps));
}

static int var_is_far(const struct column *c)
{
	const double most = fmax(1.0, c->n * c->var + c->mean * c->mean);
	return c->running_var > FAR * FAR * most ||
	       c->running_var + c->eps < c->momentum / FAR * fmin(1.0, c->var);
}

/* ---- the columns of what a norm reads ---- */

/* Of each column the mean and the sum of squared distances from it, by Welford's updates. */
struct column_moments {
	double *mean, *squares; /* [cols] */
	int64_t rows;
	struct hg__buffer memory;
};

static void add_rows(const struct hg__fetched *x, int shift, struct column_moments *m)
{
	for (int64_t i = 0; i < x->mat.rows; i++) {
		m->rows++;
		for (int64_t c = 0; c < x->mat.cols; c++) {
			const double value = ldexp(hg__fetched_at(x, i, c), shift),
			             distance = value - m->mean[c];
			m->mean[c] += distance / (double)m->rows;
			m->squares[c] += distance * (value - m->mean[c]);
		}
	}
}

/* The rows that the norm counts of what it reads. */
static hg_status rows_of(hg_context *ctx, const struct hg__call *call, struct hg__mat *x)
{
	*x = call->in[0];
	return call->live ? ctx->backend->copy_out(ctx, &x->rows, call->live, sizeof x->rows) : HG_OK;
}

/* x is stored x 2^-shift. */
static hg_status moments_of(hg_context *ctx, const struct hg__mat *x, int shift,
                            struct column_moments *m)
{
	*m = (struct column_moments){.rows = 0};
	HG__TRY(hg__buffer_host(ctx, 2 * x->cols, sizeof(double), "doctor: columns", &m->memory));
	m->mean = m->memory.data;
	m->squares = m->mean + x->cols;
	hg_status status = HG_OK;
	for (int64_t first = 0; status >= 0 && first < x->rows;) {
		const int64_t count = hg__rows_to_fetch(x, first);
		struct hg__fetched rows = {0};
		status = hg__fetch_rows(ctx, x, first, count, &rows);
		if (status >= 0)
			add_rows(&rows, shift, m);
		hg__fetched_free(ctx, &rows);
		first += count;
	}
	if (status < 0)
		hg__buffer_free(ctx, &m->memory);
	return status;
}

/* ---- findings ---- */

/* One running statistic of a norm. */
struct statistic {
	const struct hg__entry *entry;
	const hg_param *buffer;
	int64_t position;    /* of a finding (hg__finding) */
	int64_t col, bad;    /* the first bad column, and how many there are */
	double stored, wide; /* of that column; wide: of what the norm reads, NaN if not compared */
};

static hg_status report_statistic(struct hg__replay *replay, const struct statistic *s)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	struct hg__finding *finding =
	    s->bad ? hg__finding_new(replay, HG__NONFINITE, HG_CAUSE_INPUT) : NULL;
	if (!finding)
		return HG_OK;
	hg_finding *f = &finding->reported;
	finding->position = s->position;
	f->evaluation = 1;
	f->op = s->entry->node.op->name;
	f->op_words = s->entry->node.op->words;
	f->got = s->stored;
	f->wide = s->wide;
	f->limit = hg_dtype_get(HG_F32)->overflow;
	f->bad = s->bad;
	f->count = hg_tensor_cols(s->buffer->master);
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &f->layer, "%s", s->entry->node.scope));
	HG__TRY(hg__report_text(replay->ctx, replay->memory, &f->tensor, "%s", s->buffer->name));
	return hg__finding_set_element(replay, finding, &rows, 0, s->col);
}

static void add_bad_column(struct statistic *s, int64_t col, double stored, double wide)
{
	if (s->bad++ == 0) {
		s->col = col;
		s->stored = stored;
		s->wide = wide;
	}
}

/* x NULL: what the norm reads is not known, so only impossible statistics are found. */
static hg_status check_columns(struct hg__replay *replay, const struct hg__call *call,
                               const struct column_moments *x, struct statistic *means,
                               struct statistic *vars)
{
	const struct hg__node *node = call->node;
	const struct hg__element e = {.operand = -1};
	struct hg__norm_at at;
	struct hg__fetched mean = {0}, var = {0};
	(void)hg__about(node->op)->norm(call, &e, &at);
	hg_status status = hg__fetch_rows(replay->ctx, &node->buffer[0]->master->mat, 0, 1, &mean);
	if (status >= 0)
		status = hg__fetch_rows(replay->ctx, &node->buffer[1]->master->mat, 0, 1, &var);
	for (int64_t col = 0; status >= 0 && col < mean.mat.cols; col++) {
		const struct column c = {.mean = x ? x->mean[col] : (double)NAN,
		                         .var = x ? x->squares[col] / (double)x->rows : (double)NAN,
		                         .n = x ? (double)x->rows : 0.0,
		                         .momentum = at.momentum,
		                         .eps = at.eps,
		                         .running_mean = hg__fetched_at(&mean, 0, col),
		                         .running_var = hg__fetched_at(&var, 0, col)};
		if (mean_is_impossible(&c) || (x && mean_is_far(&c)))
			add_bad_column(means, col, c.running_mean, c.mean);
		if (var_is_impossible(&c) || (x && var_is_far(&c)))
			add_bad_column(vars, col, c.running_var, c.var);
	}
	hg__fetched_free(replay->ctx, &var);
	hg__fetched_free(replay->ctx, &mean);
	return status;
}

/* compare: with what the norm reads. */
static hg_status check_norm(struct hg__replay *replay, const struct hg__task *task, int compare,
                            int64_t position, int *bad)
{
	const struct hg__node *node = task->call.node;
	const struct hg__entry *entry = hg__entry_of(replay, task);
	struct statistic means = {.entry = entry, .buffer = node->buffer[0], .position = position};
	struct statistic vars = {.entry = entry, .buffer = node->buffer[1], .position = position};
	struct column_moments x = {.rows = 0};
	struct hg__mat read;
	HG__TRY(rows_of(replay->ctx, &task->call, &read));
	if (compare)
		HG__TRY(moments_of(replay->ctx, &read, task->call.shift[0], &x));
	hg_status status = check_columns(replay, &task->call, x.rows ? &x : NULL, &means, &vars);
	hg__buffer_free(replay->ctx, &x.memory);
	*bad = means.bad || vars.bad;
	if (status >= 0)
		status = report_statistic(replay, &means);
	return status >= 0 ? report_statistic(replay, &vars) : status;
}

static int has_statistics(const struct hg__node *node)
{
	return node->buffer[0] && hg__about(node->op)->norm;
}

int hg__is_running_statistic(const struct hg__replay *replay, const hg_param *param)
{
	for (int64_t i = 0; i < replay->tape->program.forwards; i++) {
		const struct hg__node *node = replay->tape->program.forward[i].call.node;
		if (has_statistics(node) && (node->buffer[0] == param || node->buffer[1] == param))
			return 1;
	}
	return 0;
}

hg_status hg__check_statistics(struct hg__replay *replay)
{
	int bad = 0;
	for (int64_t i = 0; i < replay->tape->program.forwards; i++) {
		const struct hg__task *task = &replay->tape->program.forward[i];
		if (has_statistics(task->call.node))
			HG__TRY(check_norm(replay, task, hg__operands_finite(replay, task, 0), HG__AFTER_STEP,
			                   &bad));
	}
	return HG_OK;
}

hg_status hg__check_norm(struct hg__replay *replay, const struct hg__task *task, int *bad)
{
	struct hg__scan seen;
	*bad = 0;
	if (!replay->evaluation || !has_statistics(task->call.node))
		return HG_OK;
	HG__TRY(hg__scan_tensor(replay->ctx, &task->call.out, NULL, &seen));
	const int compare = seen.nonfinite && hg__operands_finite(replay, task, 0);
	return check_norm(replay, task, compare, replay->replayed_count, bad);
}
