#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "check_attention.h"
#include "core/rng.h"
#include "kernels/kernels.h"

/* hg-bench attention: the kernels of attention by score, width, heads and precision, forward and
 * backward apart, beside the time of as many gathers of rows of the same width (unweighted
 * aggregations) as the pass cannot do without.
 *
 * The operands are those of the models that the scores come from: Q, K and V of their own for
 * add (GAT) and dot (graph transformer), one matrix for all three for cosine (AGNN), and one for K
 * and V for add-v2 (GATv2), unless --separate asks for three. Each pass reads a row of
 *
 *     forward            V, and K unless it is V: for each edge (i, j) row j
 *     backward, rows     V, and K unless it is V: again row j, for dQ; add needs no edges for that
 *     backward, columns  dY, and Q: row i, for dK and dV; with add Q is one number a head */

/* HIDE_DENSE hides tiles as well. */
enum hidden { HIDE_NOTHING, HIDE_TILES, HIDE_DENSE };

struct attention_case {
	struct bench *b;
	struct mats mats;
	hg_score score;
	int64_t cols;
	int heads;
	void *step; /* device memory: the step of dropout */
	char variant[64];
	struct hg__attention_args forward;
	struct hg__attention_back_args back;
	/* the plans of both directions without what is hidden, to measure what computes a call that
	 * does not have it */
	enum hidden hidden;
	struct hg__plan plan[2];
};

static int is_separate(const struct attention_case *c)
{
	return c->b->options.separate || c->score == HG_SCORE_DOT;
}

/* Gathers of rows of all columns in the forward pass and in the backward pass. */
static int forward_gathers(const struct attention_case *c)
{
	return c->score != HG_SCORE_ADD && is_separate(c) ? 2 : 1;
}
static int back_gathers(const struct attention_case *c)
{
	return c->score == HG_SCORE_ADD ? 1 : forward_gathers(c) + 2;
}

/* ---- operands ---- */

static hg_status dropout_make(struct attention_case *c, struct hg__attention_dropout *dropout)
{
	static const int64_t step = 3;
	struct bench *b = c->b;
	dropout->p = (float)b->options.dropout;
	if (!(dropout->p > 0.0f))
		return HG_OK;
	dropout->key = hg__rng_key((uint64_t)b->options.seed, 7);
	dropout->step = c->step;
	return b->ctx->backend->copy_in(b->ctx, c->step, &step, sizeof step);
}

/* Q, K, V and the vector c, of sizes that make scores differ by some units. */
static hg_status operands_make(struct attention_case *c, struct hg__attention *of)
{
	struct bench *b = c->b;
	const hg_dtype state = b->policy->state;
	const int64_t n = b->csr.rows, wide = c->score == HG_SCORE_ADD ? c->heads : c->cols;
	const double root = sqrt((double)c->cols / c->heads);
	*of = (struct hg__attention){
	    .score = c->score, .heads = c->heads, .slope = 0.2f, .scale = (float)(1 / root)};
	HG__TRY(mat_random(b, &c->mats, state, n, c->cols, 1, -1.0, 1.0, &of->v));
	of->q = of->k = of->v;
	if (c->score == HG_SCORE_ADD || is_separate(c))
		HG__TRY(mat_random(b, &c->mats, state, b->csr.cols, wide, 2, -2.0, 2.0, &of->k));
	if (c->score != HG_SCORE_COSINE || is_separate(c))
		HG__TRY(mat_random(b, &c->mats, state, n, wide, 3, -2.0, 2.0, &of->q));
	if (c->score == HG_SCORE_ADD_V2)
		HG__TRY(mat_random(b, &c->mats, HG_F32, 1, c->cols, 4, -2 / root, 2 / root, &of->c));
	if (c->score == HG_SCORE_COSINE)
		HG__TRY(mat_random(b, &c->mats, HG_F32, 1, c->heads, 4, 1.0, 2.0, &of->c));
	if (b->options.weights) {
		const void *weight = NULL;
		HG__TRY(hg__graph_weight(b->graph, HG_F32, &weight));
		of->weight = weight;
	}
	return dropout_make(c, &of->dropout);
}

static hg_status results_make(struct attention_case *c)
{
	struct bench *b = c->b;
	const hg_dtype state = b->policy->state;
	const int add = c->score == HG_SCORE_ADD;
	struct hg__attention_args *f = &c->forward;
	const int64_t n = b->csr.rows;
	f->csr = b->csr;
	HG__TRY(mat_new(b, &c->mats, state, n, c->cols, &f->y));
	HG__TRY(mat_new(b, &c->mats, HG_F32, n, add ? 2 * c->heads : c->heads, &f->log_sum));
	return add ? mat_new(b, &c->mats, state, n, c->cols, &f->plus) : HG_OK;
}

static int can_use_tiles(const struct attention_case *c)
{
	return c->score == HG_SCORE_ADD && c->b->policy->state == HG_F16 && !c->b->options.weights;
}

static void plans_hide(struct attention_case *c)
{
	struct hg__csr *csr[2] = {&c->forward.csr, &c->back.csr_t};
	for (int i = 0; i < 2; i++)
		if (csr[i]->plan) {
			c->plan[i] = *csr[i]->plan;
			c->plan[i].tiles = NULL;
			if (c->hidden == HIDE_DENSE) {
				c->plan[i].dense = NULL;
				c->plan[i].counted = c->plan[i].rest = NULL;
			}
			csr[i]->plan = &c->plan[i];
		}
	c->back.csr = c->forward.csr;
}

/* A gradient for each operand that is a matrix of its own. */
static hg_status gradients_make(struct attention_case *c)
{
	struct bench *b = c->b;
	const struct hg__attention *of = &c->forward.of;
	const hg_dtype state = b->policy->state;
	struct hg__attention_back_args *k = &c->back;
	*k = (struct hg__attention_back_args){.csr = b->csr,
	                                      .of = *of,
	                                      .y = c->forward.y,
	                                      .log_sum = c->forward.log_sum,
	                                      .plus = c->forward.plus};
	HG__TRY(hg__graph_csr_t(b->graph, of->weight != NULL, &k->csr_t));
	HG__TRY(hg__graph_dense(b->graph, 0, 0));
	HG__TRY(hg__graph_dense(b->graph, 1, 0));
	if (can_use_tiles(c)) {
		const int64_t staged = hg__attention_staging(c->cols, of->heads);
		HG__TRY(hg__graph_tiles(b->graph, 0, 0, c->cols, staged));
		HG__TRY(hg__graph_tiles(b->graph, 1, 0, c->cols, staged));
	}
	if (c->hidden != HIDE_NOTHING)
		plans_hide(c);
	HG__TRY(mat_random(b, &c->mats, state, b->csr.rows, c->cols, 5, -1.0, 1.0, &k->dy));
	HG__TRY(mat_new(b, &c->mats, state, of->v.rows, of->v.cols, &k->dv));
	k->dq = k->dk = k->dv;
	if (of->k.data != of->v.data)
		HG__TRY(mat_new(b, &c->mats, state, of->k.rows, of->k.cols, &k->dk));
	if (of->q.data != of->v.data)
		HG__TRY(mat_new(b, &c->mats, state, of->q.rows, of->q.cols, &k->dq));
	return of->c.data ? mat_new(b, &c->mats, HG_F32, 1, of->c.cols, &k->dc) : HG_OK;
}

/* NaN in every element shows elements that are not written. */
static hg_status spread_nan(struct bench *b, struct hg__mat mat)
{
	return mat.data ? b->ctx->backend->fill(b->ctx, mat.data, 0xFF,
	                                        (size_t)(mat.rows * mat.ld) * hg_dtype_size(mat.dtype))
	                : HG_OK;
}

static hg_status results_spread_nan(struct attention_case *c)
{
	const struct hg__mat results[] = {c->forward.y, c->forward.log_sum, c->forward.plus, c->back.dq,
	                                  c->back.dk,   c->back.dv,         c->back.dc};
	for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
		HG__TRY(spread_nan(c->b, results[i]));
	return HG_OK;
}

/* ---- the ceilings ---- */

#define GATHERS_MOST 6
struct gathers {
	struct bench *b;
	int count;
	struct hg__spmm_args args[2][2]; /* by direction of the edges and by matrix */
	struct timing ms[GATHERS_MOST + 1];
};

/* The gathers of `count`, alternately of two matrices, as K and V are. From 3 on the last two go
 * along the columns, as in a backward pass. */
static hg_status gathers_run(void *what)
{
	const struct gathers *g = what;
	for (int i = 0; i < g->count; i++) {
		const int transposed = g->count > 2 && i >= g->count - 2;
		HG__TRY(g->b->ctx->backend->kernels->spmm.run(g->b->ctx, &g->args[transposed][i % 2]));
	}
	return HG_OK;
}

static hg_status gathers_measure(struct gathers *g, int64_t cols)
{
	static const int counts[] = {1, 2, 3, 4, 6};
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		struct bench *b = g->b;
		char variant[24];
		struct result r = result_new("attention gathers", variant, b->policy->name);
		g->count = counts[i];
		snprintf(variant, sizeof variant, "%d gather%s", g->count, g->count > 1 ? "s" : "");
		HG__TRY(measure(b, gathers_run, g, &r.ms));
		r.features = cols;
		r.bytes = g->count * (double)b->csr.m *
		          (4 + (double)cols * (double)hg_dtype_size(b->policy->state));
		r.more_name[0] = "gathers";
		r.more[0] = g->count;
		g->ms[g->count] = r.ms;
		report_result(b, &r);
	}
	return HG_OK;
}

static hg_status gathers_make(struct gathers *g, int64_t cols, struct mats *mats)
{
	struct bench *b = g->b;
	struct hg__csr csr_t;
	HG__TRY(hg__graph_csr_t(b->graph, 0, &csr_t));
	for (int i = 0; i < 2; i++) {
		struct hg__spmm_args args = {.heads = 1, .alpha = 1.0f, .accumulate = HG_ACC_F32};
		HG__TRY(mat_random(b, mats, b->policy->state, b->csr.cols, cols, (uint64_t)i + 1, -1.0, 1.0,
		                   &args.x));
		HG__TRY(mat_new(b, mats, b->policy->state, b->csr.rows, cols, &args.y));
		args.csr = b->csr;
		g->args[0][i] = args;
		args.csr = csr_t;
		g->args[1][i] = args;
	}
	return gathers_measure(g, cols);
}

/* ---- a pass ---- */

static size_t bytes_of(struct hg__mat mat)
{
	return mat.data ? (size_t)(mat.rows * mat.ld) * hg_dtype_size(mat.dtype) : 0;
}

static size_t kept_bytes(const struct attention_case *c)
{
	return bytes_of(c->forward.log_sum) + bytes_of(c->forward.plus);
}

static size_t gradient_bytes(const struct attention_case *c)
{
	const struct hg__attention_back_args *k = &c->back;
	return bytes_of(k->dv) + (k->dk.data != k->dv.data ? bytes_of(k->dk) : 0) +
	       (k->dq.data != k->dv.data ? bytes_of(k->dq) : 0) + bytes_of(k->dc);
}

/* The bytes that a pass requests: ids, and the rows that it gathers or reads once. */
static double pass_bytes(const struct attention_case *c, int gathers, int walks, double per_edge)
{
	const double m = (double)c->b->csr.m, n = (double)c->b->csr.rows,
	             row = (double)c->cols * (double)hg_dtype_size(c->b->policy->state);
	return walks * (4 * m + 8 * n) + m * (gathers * row + per_edge) + 2 * walks * n * row;
}

static hg_status forward_run(void *what)
{
	const struct attention_case *c = what;
	return c->b->ctx->backend->kernels->attention.run(c->b->ctx, &c->forward);
}

static hg_status back_run(void *what)
{
	const struct attention_case *c = what;
	return c->b->ctx->backend->kernels->attention_back.run(c->b->ctx, &c->back);
}

/* What is reported of a pass beside its time. */
struct pass {
	const char *op;
	int gathers;
	size_t workspace, results; /* results: what it leaves, with the results of earlier passes */
	double bytes, error;
};

static void more(struct result *r, const char *name, double value)
{
	for (int i = 0; i < RESULT_MORE; i++)
		if (!r->more_name[i]) {
			r->more_name[i] = name;
			r->more[i] = value;
			return;
		}
}

static void pass_report(const struct attention_case *c, const struct pass *p,
                        const struct timing *ms, const struct gathers *gathers)
{
	struct result r = result_new(p->op, c->variant, c->b->policy->name);
	const size_t peak = p->workspace + p->results;
	char note[128];
	snprintf(note, sizeof note,
	         "%d gather%s; %.1f MiB beyond the inputs (workspace %.1f, kept %.1f)", p->gathers,
	         p->gathers > 1 ? "s" : "", (double)peak / 1048576, (double)p->workspace / 1048576,
	         (double)kept_bytes(c) / 1048576);
	r.features = c->cols;
	r.heads = c->heads;
	r.ms = *ms;
	r.bytes = p->bytes;
	r.error = p->error;
	r.gather_ms = gathers->ms[p->gathers].median;
	r.note = note;
	more(&r, "gathers", p->gathers);
	more(&r, "dropout", c->b->options.dropout);
	more(&r, "workspace_bytes", (double)p->workspace);
	more(&r, "kept_bytes", (double)kept_bytes(c));
	more(&r, "peak_beyond_inputs_bytes", (double)peak);
	report_result(c->b, &r);
}

static hg_status forward_measure(struct attention_case *c, const struct gathers *gathers)
{
	struct bench *b = c->b;
	const struct hg__attention_args *f = &c->forward;
	const double size = (double)hg_dtype_size(b->policy->state);
	struct timing ms;
	struct check check;
	HG__TRY(measure(b, forward_run, c, &ms));
	HG__TRY(spoil(b, f->y, check_row(b, b->csr.rows, 0)));
	HG__TRY(check_attention(b, f, &check));
	const struct pass pass = {
	    .op = "attention",
	    .gathers = forward_gathers(c),
	    .workspace = b->ctx->backend->kernels->attention.workspace(b->ctx, f),
	    .results = bytes_of(f->y) + kept_bytes(c),
	    .bytes =
	        pass_bytes(c, forward_gathers(c), 1, c->score == HG_SCORE_ADD ? c->heads * size : 0),
	    .error = check.ratio,
	};
	pass_report(c, &pass, &ms, gathers);
	check_report(b, &check, pass.op, c->variant);
	return HG_OK;
}

static hg_status back_measure(struct attention_case *c, const struct gathers *gathers)
{
	struct bench *b = c->b;
	const struct hg__attention_back_args *k = &c->back;
	const double size = (double)hg_dtype_size(b->policy->state);
	const int add = c->score == HG_SCORE_ADD;
	struct timing ms;
	struct check check;
	HG__TRY(measure(b, back_run, c, &ms));
	HG__TRY(spoil(b, k->dv, check_row(b, b->csr.rows, 0)));
	HG__TRY(check_attention_back(b, k, &check));
	const struct pass pass = {
	    .op = "attention back",
	    .gathers = back_gathers(c),
	    .workspace = b->ctx->backend->kernels->attention_back.workspace(b->ctx, k),
	    .results = bytes_of(k->y) + kept_bytes(c) + gradient_bytes(c),
	    /* of each head a column's edge reads the log of the sum, and D */
	    .bytes = pass_bytes(c, back_gathers(c), add ? 1 : 2, c->heads * (add ? size + 8.0 : 8.0)),
	    .error = check.ratio,
	};
	pass_report(c, &pass, &ms, gathers);
	check_report(b, &check, pass.op, c->variant);
	return HG_OK;
}

/* A pass that the device has no kernel for is a row of the report. */
static hg_status absent(const struct attention_case *c, const char *op, hg_status status)
{
	if (status != HG_ERR_UNSUPPORTED)
		return status;
	report_absent(c->b, op, c->variant, hg_context_error(c->b->ctx));
	return HG_OK;
}

static hg_status passes_measure(struct attention_case *c, const struct gathers *gathers)
{
	HG__TRY(operands_make(c, &c->forward.of));
	HG__TRY(results_make(c));
	HG__TRY(gradients_make(c));
	HG__TRY(results_spread_nan(c));
	const hg_status status = forward_run(c);
	if (status < 0)
		return absent(c, "attention", status);
	HG__TRY(forward_measure(c, gathers));
	const hg_status back = back_run(c);
	return back < 0 ? absent(c, "attention back", back) : back_measure(c, gathers);
}

static hg_status case_run(struct bench *b, hg_score score, int64_t cols, int64_t heads,
                          enum hidden hidden, const struct gathers *gathers)
{
	struct attention_case c = {
	    .b = b, .score = score, .cols = cols, .heads = (int)heads, .hidden = hidden};
	const int length = snprintf(c.variant, sizeof c.variant, "%s%s%s", attention_scores[score],
	                            b->options.separate && score >= HG_SCORE_COSINE ? " separate" : "",
	                            hidden == HIDE_DENSE   ? " by rows"
	                            : hidden == HIDE_TILES ? " without tiles"
	                                                   : "");
	if (b->options.dropout > 0)
		snprintf(c.variant + length, sizeof c.variant - (size_t)length, " dropout %g",
		         b->options.dropout);
	const char *why = cols % heads                 ? "the heads do not divide the width"
	                  : heads > HG_ATTENTION_HEADS ? "it has at most 16 heads"
	                                               : NULL;
	if (why) {
		report_absent(b, "attention", c.variant, why);
		return HG_OK;
	}
	HG__TRY(hg__device_alloc(b->ctx, sizeof(int64_t), "the step of dropout", &c.step));
	const hg_status status = passes_measure(&c, gathers);
	mats_free(&c.mats);
	hg__device_free(b->ctx, c.step, sizeof(int64_t));
	return status;
}

static hg_status width_run(struct bench *b, int64_t cols, const int64_t *heads, int head_count)
{
	const struct options *o = &b->options;
	struct gathers gathers = {.b = b};
	struct mats mats = {.count = 0};
	const hg_status status = gathers_make(&gathers, cols, &mats);
	mats_free(&mats);
	HG__TRY(status);
	for (int score = 0; score < HG_SCORE_COUNT; score++)
		for (int h = 0; (o->scores >> score & 1) && h < head_count; h++) {
			HG__TRY(case_run(b, (hg_score)score, cols, heads[h], HIDE_NOTHING, &gathers));
			/* where the graph has tiles or dense counts by now, what they save */
			const int halves = b->policy->state == HG_F16;
			if (score == HG_SCORE_ADD && b->csr.plan->tiles && halves)
				HG__TRY(case_run(b, (hg_score)score, cols, heads[h], HIDE_TILES, &gathers));
			if ((score == HG_SCORE_ADD || score == HG_SCORE_DOT) && halves &&
			    (b->csr.plan->dense || b->csr.plan->rest))
				HG__TRY(case_run(b, (hg_score)score, cols, heads[h], HIDE_DENSE, &gathers));
		}
	return HG_OK;
}

hg_status bench_attention(struct bench *b)
{
	static const int64_t usual[] = {64, 128}, usual_heads[] = {1, 8};
	const int64_t *widths = b->options.widths ? b->options.features : usual,
	              *heads = b->options.head_counts ? b->options.heads : usual_heads;
	const int count = b->options.widths ? b->options.widths : 2,
	          head_count = b->options.head_counts ? b->options.head_counts : 2;
	for (int p = 0; p < b->options.policies; p++)
		for (int i = 0; i < count; i++) {
			b->policy = &b->options.policy[p];
			HG__TRY(width_run(b, widths[i], heads, head_count));
		}
	return HG_OK;
}
