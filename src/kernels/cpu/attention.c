/* Attention (kernels/attention.h):
 *
 *     p[e, k] = weight[e] exp(s[e, k]) / sum over the edges f of row i of weight[f] exp(s[f, k])
 *     Y[i, c] = sum over the edges e = (i, j) of row i of mask[e, k] p[e, k] V[j, c]
 *     ended   = dropout(f(Y + b)), or of the mean of Y over the heads, if the call asks for it
 *
 * The partial result of a row part is, for every head, the largest score and the sums of
 * exp(s - largest) over all edges and over those whose score is positive before f, and the sums of
 * V weighted with them. Where a part has several spans and the largest score grows, its partial
 * result is rescaled. The partial results of a split row are in its staging slots, and are combined
 * in slot order. */
#include "kernels/attention_check.h"
#include "kernels/cpu/act_drop.h"
#include "kernels/cpu/attention_gather.h"
#include "kernels/cpu/attention_score.h"
#include "kernels/cpu/guard.h"
#include "kernels/cpu/log.h"

#include <omp.h>

/* A partial result: three statistics of 16 heads, and one or two rows of sums (Y, and plus). */
enum { MAX = 0, SUM = HG__LANES, POSITIVE = 2 * HG__LANES, SUMS = 3 * HG__LANES };

struct job {
	const struct hg__attention_args *a;
	struct hg__scores scores;
	struct hg__gather gather;
	struct hg__cpu_act_drop act_drop; /* of the epilogue */
	int positive, two;                /* ADD; and with `plus` */
	int64_t width;                    /* columns of V in whole vectors */
	int64_t partial_size;             /* numbers of a partial result */
	float *stage;                     /* [2 * items, partial_size] */
	float *thread;                    /* [threads, partial_size + columns of Q in whole vectors] */
	int64_t thread_size;
};

/* The buffers of a span, [edges, pitch]: scores before f, weights exp(s - max), those of them whose
 * score is positive before f, and masks; and [parts, pitch]: the statistics of each part. */
struct buffers {
	float x[HG__SPAN_ROOM], w[HG__SPAN_ROOM], w_positive[HG__SPAN_ROOM], mask[HG__SPAN_ROOM];
	float max[HG__SPAN_ROOM], sum[HG__SPAN_ROOM], positive[HG__SPAN_ROOM];
};

/* What scores are relative to: their maximum, or 0 if it is -inf. */
HG__INLINE hg__v16 shift_of(hg__v16 max)
{
	const hg__v16 zero = {0};
	return hg__vselect(max == hg__vset(-INFINITY), zero, max);
}

/* ---- the end of a row ---- */

static void store_sums(const struct job *job, const struct hg__mat *y, int64_t row,
                       const float *inverse, float *sums)
{
	const hg__v16 only = hg__vset(inverse[0]);
	if (y->cols == 0) /* attention_weights asks for the softmax alone */
		return;
	for (int64_t c = 0; c < job->width; c += HG__LANES) {
		hg__v16 factor = only;
		if (job->gather.head)
			factor = hg__vspread(inverse, *(const hg__i16_unaligned *)(job->gather.head + c));
		hg__vstore(sums + c, factor * hg__vload(sums + c));
	}
	if (!y->data)
		return;
	hg__guard_numbers(&job->a->overflow, y->cols, sums);
	hg__row_put(y, row, 0, y->cols, sums);
}

/* Turns y, the n columns of Y from column `first` on, into those of `ended`. */
static void apply_epilogue(const struct job *job, int64_t row, int64_t first, int64_t n, float *y)
{
	const struct hg__mat *bias = &job->a->epilogue.b;
	float more[HG__WIDTH];
	uint32_t word[HG__WIDTH + 4 * HG__DRAW];
	if (bias->data) {
		const float *b = hg__row(bias, 0, first, n, more);
#pragma omp simd
		for (int64_t c = 0; c < n; c++)
			y[c] += b[c];
	}
	if (job->act_drop.drops)
		hg__draw(&job->act_drop.stream, row, first / 4, hg__ceil_div(n, 4), word);
	hg__act_drop_value(&job->act_drop, n, word, y);
}

/* The mean over the heads, in place, as hg__head_mean_row adds it. */
static void mean_of_heads(int heads, int64_t d, float *sums)
{
	for (int64_t c = 0; c < d; c++)
		sums[c] += 0.0f; /* a sum that begins with 0 is not -0 */
	for (int64_t k = 1; k < heads; k++)
		for (int64_t c = 0; c < d; c++)
			sums[c] += sums[k * d + c];
	for (int64_t c = 0; c < d; c++)
		sums[c] /= (float)heads;
}

/* Stores a row of `ended`; sums: the row of Y, which is overwritten. */
static void store_ended(const struct job *job, int64_t row, float *sums)
{
	const struct hg__mat *ended = &job->a->ended;
	if (hg__attention_means(&job->a->y, ended))
		mean_of_heads(job->a->of.heads, ended->cols, sums);
	for (int64_t c = 0; c < ended->cols; c += HG__WIDTH)
		apply_epilogue(job, row, c, hg__min(HG__WIDTH, ended->cols - c), sums + c);
	hg__guard_numbers(&job->a->overflow, ended->cols, sums);
	hg__row_put(ended, row, 0, ended->cols, sums);
}

static void finish_row(const struct job *job, int64_t row, float *partial)
{
	const struct hg__attention_args *a = job->a;
	const int heads = a->of.heads;
	const hg__v16 sum = hg__vload(partial + SUM), zero = {0};
	const hg__i16 none = sum == zero;
	const hg__v16 inverse = hg__vselect(none, zero, 1.0f / sum);
	float inverses[HG__LANES], lse[HG__LANES], *log_sum = hg__at(&a->log_sum, row, 0);
	hg__vstore(inverses, inverse);
	hg__vstore(lse,
	           hg__vselect(none, hg__vset(-INFINITY), hg__vload(partial + MAX) + hg__vlog(sum)));
	hg__vstore_n(log_sum, hg__vload(lse), heads);
	if (job->positive)
		hg__vstore_n(log_sum + heads, inverse * hg__vload(partial + POSITIVE), heads);
	store_sums(job, &a->y, row, inverses, partial + SUMS);
	if (a->ended.data)
		store_ended(job, row, partial + SUMS);
	if (job->two)
		store_sums(job, &a->plus, row, inverses, partial + SUMS + job->width);
}

/* ---- a span ---- */

/* Multiplies the sums of a partial result by a factor for each head. */
static void rescale(const struct job *job, hg__v16 factor, float *partial)
{
	float factors[HG__LANES];
	hg__vstore(factors, factor);
	hg__vstore(partial + SUM, factor * hg__vload(partial + SUM));
	hg__vstore(partial + POSITIVE, factor * hg__vload(partial + POSITIVE));
	for (int64_t c = 0; c < job->width * (1 + job->two); c += HG__LANES) {
		hg__v16 f = hg__vset(factors[0]);
		if (job->gather.head)
			f = hg__vspread(factors,
			                *(const hg__i16_unaligned *)(job->gather.head + c % job->width));
		hg__vstore(partial + SUMS + c, f * hg__vload(partial + SUMS + c));
	}
}

static float *partial_of(const struct job *job, const struct hg__part *part, float *own)
{
	return part->slot < 0 ? own : job->stage + part->slot * job->partial_size;
}

/* Subtracts from the scores w of each part the largest of them. If the part began in an earlier
 * span, the maximum of its partial result counts too, and the partial result is rescaled. */
HG__INLINE void subtract_max(int pitch, const struct job *job, const struct hg__span *span,
                             float *own, struct buffers *b)
{
	for (int i = 0; i < span->parts; i++) {
		const struct hg__part *part = &span->part[i];
		float *w = b->w + hg__part_at(span, part, pitch);
		const int64_t numbers = hg__part_numbers(part, pitch);
		hg__v16 max = hg__heads_max(pitch, w, numbers);
		if (!span->begins) {
			float *partial = partial_of(job, part, own);
			const hg__v16 before = hg__repeat_heads(pitch, partial + MAX);
			max = hg__vlarger(before, max);
			rescale(job, hg__vexp(before - shift_of(max)), partial);
		}
		hg__put_heads(pitch, b->max + i * pitch, max);
		const hg__v16 shift = shift_of(max);
		int64_t c = 0;
		for (; c + HG__LANES <= numbers; c += HG__LANES)
			hg__vstore(w + c, hg__vload(w + c) - shift);
		if (c < numbers)
			hg__vstore_n(w + c, hg__vload(w + c) - shift, (int)(numbers - c));
	}
}

/* w = weight exp(w), and the same where the score before f, x, is positive. */
static void exponentials(const struct job *job, const struct hg__span *span, struct buffers *b)
{
	const int64_t numbers = (int64_t)span->entries * job->scores.pitch;
	const hg__v16 zero = {0};
	for (int64_t i = 0; i < numbers; i += HG__LANES)
		hg__vstore(b->w + i, hg__vexp(hg__vload(b->w + i)));
	hg__apply_weights(&job->scores, span, b->w);
	for (int64_t i = 0; i < numbers && job->positive; i += HG__LANES)
		hg__vstore(b->w_positive + i,
		           hg__vselect(hg__vload(b->x + i) > zero, hg__vload(b->w + i), zero));
}

HG__INLINE void sum_parts(int pitch, const struct job *job, const struct hg__span *span,
                          struct buffers *b)
{
	for (int i = 0; i < span->parts; i++) {
		const int64_t at = hg__part_at(span, &span->part[i], pitch),
		              numbers = hg__part_numbers(&span->part[i], pitch);
		hg__put_heads(pitch, b->sum + i * pitch, hg__heads_sum(pitch, b->w + at, numbers));
		if (job->positive)
			hg__put_heads(pitch, b->positive + i * pitch,
			              hg__heads_sum(pitch, b->w_positive + at, numbers));
	}
}

static void drop(const struct job *job, const struct hg__span *span, struct buffers *b)
{
	const int64_t numbers = (int64_t)span->entries * job->scores.pitch;
	hg__span_masks(&job->scores, span, b->mask);
	for (int64_t i = 0; i < numbers; i += HG__LANES) {
		const hg__v16 mask = hg__vload(b->mask + i);
		hg__vstore(b->w + i, mask * hg__vload(b->w + i));
		if (job->two)
			hg__vstore(b->w_positive + i, mask * hg__vload(b->w_positive + i));
	}
}

/* Adds the sums of part i to its partial result, and ends the row if this is all of it. */
static void add_part(const struct job *job, const struct hg__span *span, int i,
                     const struct buffers *b, float *own)
{
	const int pitch = job->scores.pitch;
	const struct hg__part *part = &span->part[i];
	const int64_t at = hg__part_at(span, part, pitch);
	float *partial = partial_of(job, part, own);
	const hg__v16 zero = {0}, sum = span->begins ? zero : hg__vload(partial + SUM),
	              positive = span->begins ? zero : hg__vload(partial + POSITIVE);
	const struct hg__gathered e = {.col = job->a->csr.col + part->begin,
	                               .n = part->end - part->begin,
	                               .a = b->w + at,
	                               .b = b->w_positive + at,
	                               .begins = span->begins,
	                               .to_a = partial + SUMS,
	                               .to_b = partial + SUMS + job->width};
	hg__vstore(partial + MAX, hg__vload_n(b->max + i * pitch, pitch));
	hg__vstore(partial + SUM, sum + hg__vload_n(b->sum + i * pitch, pitch));
	if (job->positive)
		hg__vstore(partial + POSITIVE, positive + hg__vload_n(b->positive + i * pitch, pitch));
	if (job->two)
		hg__gather_rows(HG__TERMS_TWO, &job->gather, &e);
	else
		hg__gather_rows(HG__TERMS_ONE, &job->gather, &e);
	if (part->slot < 0 && span->ends)
		finish_row(job, part->row, partial);
}

/* The part of a span that depends on the pitch, which is a constant for the most frequent ones. */
HG__INLINE void attend_span(int pitch, const struct job *job, const struct hg__span *span,
                            float *own, struct buffers *b)
{
	subtract_max(pitch, job, span, own, b);
	exponentials(job, span, b);
	sum_parts(pitch, job, span, b);
}

static void attend_group(const struct job *job, int64_t group)
{
	float *own = job->thread + omp_get_thread_num() * job->thread_size;
	struct hg__scores scores = job->scores;
	struct hg__spans spans = hg__spans_begin(&job->a->csr, scores.pitch, group);
	struct hg__span span;
	struct buffers b;
	scores.own_row = own + job->partial_size;
	while (hg__span_next(&spans, &span)) {
		hg__span_scores(&scores, &span, b.x, NULL);
		hg__span_values(&scores, &span, b.x, b.w);
		if (scores.pitch == 1)
			attend_span(1, job, &span, own, &b);
		else if (scores.pitch == 8)
			attend_span(8, job, &span, own, &b);
		else
			attend_span(scores.pitch, job, &span, own, &b);
		if (scores.drops)
			drop(job, &span, &b);
		for (int i = 0; i < span.parts; i++)
			add_part(job, &span, i, &b, own);
	}
}

/* Combines the partial results of split row s in the order of their slots, and ends the row. */
static void attend_split_row(const struct job *job, int64_t s)
{
	const struct hg__plan *plan = job->a->csr.plan;
	float *own = job->thread + omp_get_thread_num() * job->thread_size;
	hg__v16 max = hg__vset(-INFINITY);
	for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++)
		max = hg__vlarger(
		    hg__vload(job->stage + hg__split_slot(plan, s, k) * job->partial_size + MAX), max);
	memset(own, 0, (size_t)job->partial_size * sizeof *own);
	for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
		float *part = job->stage + hg__split_slot(plan, s, k) * job->partial_size;
		rescale(job, hg__vexp(hg__vload(part + MAX) - shift_of(max)), part);
		for (int64_t c = SUM; c < job->partial_size; c += HG__LANES)
			hg__vstore(own + c, hg__vload(own + c) + hg__vload(part + c));
	}
	hg__vstore(own + MAX, max);
	finish_row(job, plan->split_row[s], own);
}

/* ---- the call ---- */

/* Numbers of the workspace, one part after the other. */
struct layout {
	int64_t partial_size, thread_size, stage, thread, c, inverse_q, inverse_k, head;
};

static struct layout layout_of(const hg_context *ctx, const struct hg__attention_args *a)
{
	const int64_t h = a->of.heads, cosine = a->of.score == HG_SCORE_COSINE,
	              width = hg__whole(a->of.v.cols), q = hg__whole(a->of.q.cols);
	struct layout l = {.partial_size = SUMS + width * (a->plus.data ? 2 : 1)};
	l.thread_size = l.partial_size + q;
	l.stage = hg__splits(&a->csr) ? 2 * hg__items(&a->csr) * l.partial_size : 0;
	l.thread = ctx->threads * l.thread_size;
	l.c = q + HG__LANES;
	l.inverse_q = cosine * hg__whole(a->csr.rows * h);
	l.inverse_k = cosine * hg__whole(a->csr.cols * h);
	l.head = width;
	return l;
}

static size_t layout_bytes(const struct layout *l)
{
	return (size_t)(l->stage + l->thread + l->c + l->inverse_q + l->inverse_k + l->head) *
	       sizeof(float);
}

size_t HG__CPU(attention_workspace)(const hg_context *ctx, const struct hg__attention_args *a)
{
	const struct layout l = layout_of(ctx, a);
	return layout_bytes(&l);
}

static hg_status prepare(hg_context *ctx, const struct hg__attention_args *a, struct job *job)
{
	const struct layout l = layout_of(ctx, a);
	void *memory;
	HG__TRY(hg__workspace(ctx, layout_bytes(&l), &memory));
	float *c = (float *)memory + l.stage + l.thread;
	int32_t *head = (int32_t *)(void *)(c + l.c + l.inverse_q + l.inverse_k);
	*job = (struct job){.a = a,
	                    .positive = a->of.score == HG_SCORE_ADD,
	                    .two = a->plus.data != NULL,
	                    .act_drop = hg__act_drop_of(&a->epilogue.act_drop, a->ended.cols),
	                    .width = hg__whole(a->of.v.cols),
	                    .partial_size = l.partial_size,
	                    .stage = memory,
	                    .thread = (float *)memory + l.stage,
	                    .thread_size = l.thread_size};
	hg__prepare_c(&a->of, c);
	hg__gather_heads(a->of.v.cols, a->of.heads, head);
	job->scores = hg__scores_of(&a->of, &a->csr, 0, c);
	hg__scores_inverse(&job->scores, c + l.c, c + l.c + l.inverse_q);
	job->gather = (struct hg__gather){.x = a->of.v, .pitch = job->scores.pitch};
	if (a->of.heads > 1)
		job->gather.head = head;
	return HG_OK;
}

hg_status HG__CPU(attention)(hg_context *ctx, const struct hg__attention_args *a)
{
	struct job job;
	HG__TRY(hg__attention_check(ctx, a));
	if (a->csr.rows == 0)
		return HG_OK;
	HG__TRY(prepare(ctx, a, &job));
	const int64_t groups = hg__groups(&a->csr), splits = hg__splits(&a->csr),
	              inverses = hg__inverse_rows(&job.scores);
	const int team = hg__team(ctx, (a->csr.m + a->csr.rows) * (a->y.cols + a->of.q.cols));
#pragma omp parallel num_threads(team)
	{
		float *row = job.thread + omp_get_thread_num() * job.thread_size + job.partial_size;
#pragma omp for schedule(static)
		for (int64_t i = 0; i < inverses; i++)
			hg__inverse_norms(&job.scores, i, row);
#pragma omp for schedule(dynamic)
		for (int64_t g = 0; g < groups; g++)
			attend_group(&job, g);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < splits; s++)
			attend_split_row(&job, s);
	}
	return HG_OK;
}
