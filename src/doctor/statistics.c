#include <math.h>

#include "autograd/param.h"
#include "doctor/replay.h"

/* The running statistics of batch norms, which evaluations read and training steps do not. A
 * statistic is bad in one of two ways.
 *
 *     impossible: it is NaN or infinite, or a variance below 0
 *     far from what the norm reads, of n rows with mean m and variance v, |x| <= |m| + sqrt(n v):
 *         |running_mean| > 1000 (|m| + sqrt(n v) + sqrt(eps))   of columns 1000 times as large
 *         running_var > 10^6 max(1, n v + m^2)                  likewise; it begins with 1
 *         running_var + eps < momentum / 1000 min(1, v)         one update leaves momentum v
 *
 * The factor 1000 is a choice: it is wider than anything that statistics go through while a model
 * trains. After the replay of a training step all norms are examined, and m and v are those of the
 * batch. In an evaluation the columns need not be those that the statistics were made of, because
 * the layers before use running statistics as well. So m and v are asked only where the result of
 * the norm is not finite. */
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

/* Mean and sum of squares about it, by Welford's updates. */
struct moments {
	double *mean, *squares; /* [cols] */
	int64_t rows;
	struct hg__buffer memory;
};

static void take_rows(const struct hg__fetched *x, int shift, struct moments *m)
{
	for (int64_t i = 0; i < x->mat.rows; i++) {
		m->rows++;
		for (int64_t c = 0; c < x->mat.cols; c++) {
			const double value = ldexp(hg__fetched_at(x, i, c), shift), off = value - m->mean[c];
			m->mean[c] += off / (double)m->rows;
			m->squares[c] += off * (value - m->mean[c]);
		}
	}
}

/* Some megabytes of rows at a time. */
static hg_status moments_of(hg_context *ctx, const struct hg__mat *x, int shift, struct moments *m)
{
	const int64_t fit = HG__STAGING_BYTES / ((x->ld + 1) * (int64_t)sizeof(float)),
	              some = fit > 1 ? fit : 1;
	*m = (struct moments){.rows = 0};
	HG__TRY(hg__buffer_host(ctx, 2 * x->cols, sizeof(double), "doctor: columns", &m->memory));
	m->mean = m->memory.data;
	m->squares = m->mean + x->cols;
	for (int64_t c = 0; c < x->cols; c++)
		m->mean[c] = m->squares[c] = 0.0;
	hg_status status = HG_OK;
	for (int64_t first = 0; status >= 0 && first < x->rows; first += some) {
		struct hg__fetched rows = {0};
		const int64_t left = x->rows - first;
		status = hg__fetch_rows(ctx, x, first, left < some ? left : some, &rows);
		if (status >= 0)
			take_rows(&rows, shift, m);
		hg__fetched_free(ctx, &rows);
	}
	if (status < 0)
		hg__buffer_free(ctx, &m->memory);
	return status;
}

/* ---- findings ---- */

struct statistic {
	const struct hg__entry *line;
	const hg_param *buffer;
	int64_t event;    /* where the finding stands among the others */
	int64_t col, bad; /* the first bad column, and how many there are */
	double got, wide; /* wide: of what the norm reads; NaN where nothing was asked */
};

static hg_status statistic_found(struct hg__replay *replay, const struct statistic *s)
{
	const struct hg__rows rows = {HG_ROW_WEIGHT, 1, NULL};
	struct hg__found *found = s->bad ? hg__found_new(replay, 0, HG_CAUSE_INPUT) : NULL;
	if (!found)
		return HG_OK;
	hg_finding *f = &found->finding;
	found->event = s->event;
	f->evaluation = 1;
	f->op = s->line->node.op->name;
	f->op_words = s->line->node.op->words;
	f->got = s->got;
	f->wide = s->wide;
	f->limit = hg_dtype_get(HG_F32)->overflow;
	f->bad = s->bad;
	f->count = hg_tensor_cols(s->buffer->master);
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &f->layer, "%s", s->line->node.scope));
	HG__TRY(hg__page_text(replay->ctx, replay->pages, &f->tensor, "%s", s->buffer->name));
	return hg__found_at(replay, found, &rows, 0, s->col);
}

static void note_column(struct statistic *s, int64_t col, double got, double wide)
{
	if (s->bad++ == 0) {
		s->col = col;
		s->got = got;
		s->wide = wide;
	}
}

/* x NULL: nothing is known of what the norm reads. */
static hg_status examine_columns(struct hg__replay *replay, const struct hg__call *call,
                                 const struct moments *x, struct statistic *means,
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
			note_column(means, col, c.running_mean, c.mean);
		if (var_is_impossible(&c) || (x && var_is_far(&c)))
			note_column(vars, col, c.running_var, c.var);
	}
	hg__fetched_free(replay->ctx, &var);
	hg__fetched_free(replay->ctx, &mean);
	return status;
}

/* compare 0: impossible statistics alone are found. */
static hg_status examine_norm(struct hg__replay *replay, const struct hg__task *launch, int compare,
                              int64_t event, int *bad)
{
	const struct hg__node *node = launch->call.node;
	const struct hg__entry *line = hg__entry_of(replay, launch);
	struct statistic means = {.line = line, .buffer = node->buffer[0], .event = event};
	struct statistic vars = {.line = line, .buffer = node->buffer[1], .event = event};
	struct moments x = {.rows = 0};
	if (compare)
		HG__TRY(moments_of(replay->ctx, &launch->call.in[0], launch->call.shift[0], &x));
	hg_status status = examine_columns(replay, &launch->call, x.rows ? &x : NULL, &means, &vars);
	hg__buffer_free(replay->ctx, &x.memory);
	*bad = means.bad || vars.bad;
	if (status >= 0)
		status = statistic_found(replay, &means);
	return status >= 0 ? statistic_found(replay, &vars) : status;
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
		const struct hg__task *launch = &replay->tape->program.forward[i];
		if (has_statistics(launch->call.node))
			HG__TRY(examine_norm(replay, launch, hg__operands_good(replay, launch, 0), INT64_MAX,
			                     &bad));
	}
	return HG_OK;
}

hg_status hg__judge_statistics(struct hg__replay *replay, const struct hg__task *launch, int *bad)
{
	struct hg__look look;
	*bad = 0;
	if (!replay->evaluation || !has_statistics(launch->call.node))
		return HG_OK;
	HG__TRY(hg__look_at(replay->ctx, &launch->call.out, NULL, &look));
	const int compare = look.nonfinite && hg__operands_good(replay, launch, 0);
	return examine_norm(replay, launch, compare, replay->events, bad);
}
