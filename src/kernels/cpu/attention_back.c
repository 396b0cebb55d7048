/* The gradients of attention (kernels/attention.h). Three passes, and nothing is kept of an edge:
 *
 *     nodes      D[i, k] = <dY_i, Y_i>, and with ADD dq
 *     columns    over the transpose: dV, dK
 *     rows       dQ, dc, dbias
 *
 * The passes over edges compute the scores again, and from them
 *
 *     p = weight exp(s - softmax) <= 1,  ds = p (mask <G_i, V_j> - D_i),  G = dY
 *
 * With ADD the columns do without a dot product for each edge: since <G_i, V_j> is linear in G,
 *
 *     dk[j, k] = <V_j, sum f' mask p G_i> - sum f' p D_i */
#include <omp.h>

#include "kernels/cpu/attention_gather.h"
#include "kernels/cpu/attention_score.h"

/* A partial result, which is the sums of a row part: one number of each of 16 heads, and one or two
 * rows. The number is the sum of f' p D (ADD, columns) or of ds t (COSINE). */
enum { NUMBER = 0, FIRST = HG__LANES };

/* A row of the table that the columns look up for each edge (i, j): what they need of i. `pitch`
 * numbers of each. */
enum { LSE, D, Q, DQ, RECORDS }; /* Q and DQ: with ADD */

/* A pass over the edges, by rows or by columns. `own` and `other` are the two ends of an edge as in
 * struct hg__scores. */
struct pass {
	struct hg__scores scores;
	struct hg__mat own_values, other_values; /* G and V, or V and G */
	struct hg__gather ends;                  /* sums of rows of scores.other */
	struct hg__gather values;                /* columns: sums of rows of G */
	int64_t second;                          /* where the second row of a partial result begins */
	int64_t partial_size;
	int needs_ds;
};

struct job {
	const struct hg__attention_back_args *a;
	struct pass rows, columns;
	int add, pitch;
	int64_t width_q, width_v; /* columns of Q and V in whole vectors */
	float *record;            /* [rows, RECORDS, pitch] */
	float *stage;             /* [2 * items, partial_size] */
	float *thread;
	int64_t thread_size;
	float *dc; /* [groups, dc_width]: the sums of each group of rows */
	int64_t dc_width;
	int shares; /* ADD: dq is also dk or dv, and is stored with it */
};

/* A thread's memory: a row of Q, a row of V, and a partial result. */
struct rows {
	float *q, *v, *partial;
};

/* The buffers of a span, [edges, pitch], by what they hold first: scores before f; p; log-sum-exp
 * and D of the edge's row; <G_i, V_j>, later ds; masks; t of COSINE. What replaces them is said at
 * the functions. */
struct buffers {
	float x[HG__SPAN_ROOM], p[HG__SPAN_ROOM], lse[HG__SPAN_ROOM], d[HG__SPAN_ROOM],
	    dp[HG__SPAN_ROOM], mask[HG__SPAN_ROOM], t[HG__SPAN_ROOM];
};

static struct rows rows_of(const struct job *job)
{
	float *memory = job->thread + omp_get_thread_num() * job->thread_size;
	return (struct rows){memory, memory + job->width_q, memory + job->width_q + job->width_v};
}

static float *record_of(const struct job *job, int64_t row, int which)
{
	return job->record + (row * RECORDS + which) * job->pitch;
}

/* ---- nodes ---- */

static void record_node(const struct job *job, int64_t i)
{
	const struct hg__attention_back_args *a = job->a;
	const int heads = a->of.heads;
	const int64_t d = a->y.cols / heads;
	const struct rows rows = rows_of(job);
	hg__whole_row(&a->dy, i, rows.v);
	const hg__v16 dot = hg__dots(0, heads, d, rows.v, &a->y, i, NULL, 0.0f);
	hg__put_heads(job->pitch, record_of(job, i, LSE), hg__row_lse(&a->softmax, i, heads));
	hg__put_heads(job->pitch, record_of(job, i, D), dot);
	if (!job->add)
		return;
	hg__put_heads(job->pitch, record_of(job, i, Q), hg__head_lanes(&a->of.q, i, heads));
	if (!a->dq.data)
		return;
	struct hg__mat positive = a->softmax;
	positive.data = (float *)a->softmax.data + heads;
	const hg__v16 plus = hg__dots(0, heads, d, rows.v, &a->plus, i, NULL, 0.0f),
	              dq = (1.0f - a->of.slope) * (plus - dot * hg__head_lanes(&positive, i, heads));
	hg__put_heads(job->pitch, record_of(job, i, DQ), dq);
	if (!job->shares)
		hg__lanes_put(&a->dq, i, 0, dq);
}

/* ---- p, ds and what is summed with them, for the edges of a span ---- */

/* The log-sum-exp and D of the row of every edge. */
HG__INLINE void look_up_heads(int pitch, const struct job *job, const struct pass *pass,
                              const struct hg__span *span, struct buffers *b)
{
	const int32_t *col = pass->scores.by_column ? pass->scores.csr->col : NULL;
	float *lse = b->lse, *d = b->d;
	for (int i = 0; i < span->parts; i++)
		for (int64_t p = span->part[i].begin; p < span->part[i].end; p++) {
			const float *record =
			    job->record + (col ? col[p] : span->part[i].row) * RECORDS * pitch;
			hg__copy_heads(pitch, lse, record + LSE * pitch);
			hg__copy_heads(pitch, d, record + D * pitch);
			lse += pitch;
			d += pitch;
		}
}

static void look_up(const struct job *job, const struct pass *pass, const struct hg__span *span,
                    struct buffers *b)
{
	if (job->pitch == 1)
		look_up_heads(1, job, pass, span, b);
	else if (job->pitch == 8)
		look_up_heads(8, job, pass, span, b);
	else
		look_up_heads(job->pitch, job, pass, span, b);
}

/* dp = <G_i, V_j> of every edge. */
static void value_dots(const struct pass *pass, const struct hg__span *span, float *row,
                       struct buffers *b)
{
	const struct hg__scores *s = &pass->scores;
	const int64_t d = pass->own_values.cols / s->heads;
	for (int i = 0; i < span->parts; i++) {
		hg__whole_row(&pass->own_values, span->part[i].row, row);
		for (int64_t p = span->part[i].begin; p < span->part[i].end; p++)
			hg__put_heads(
			    s->pitch, b->dp + (p - span->first) * s->pitch,
			    hg__dots(0, s->heads, d, row, &pass->other_values, s->csr->col[p], NULL, 0.0f));
	}
}

/* p of every edge, and its mask. x keeps the score, with ADD before f, and COSINE keeps t. */
static void find_p(const struct job *job, const struct pass *pass, const struct hg__span *span,
                   const struct hg__scores *s, struct buffers *b)
{
	hg__span_scores(s, span, b->x, b->t);
	hg__span_values(s, span, b->x, b->p);
	look_up(job, pass, span, b);
	hg__span_p(s, span, b->p, b->lse, b->p);
	if (s->drops)
		hg__span_masks(s, span, b->mask);
}

HG__INLINE hg__v16 mask_at(const struct hg__scores *s, const struct buffers *b, int64_t i)
{
	return s->drops ? hg__vload(b->mask + i) : hg__vset(1.0f);
}

/* What the columns of ADD are summed with: d = f' p D, p = mask p, x = f' mask p. */
static void find_add_terms(const struct hg__scores *s, const struct hg__span *span,
                           struct buffers *b)
{
	const hg__v16 one = hg__vset(1.0f), slope = hg__vset(s->of->slope), zero = {0};
	for (int64_t i = 0; i < (int64_t)span->entries * s->pitch; i += HG__LANES) {
		const hg__v16 p = hg__vload(b->p + i), mask = mask_at(s, b, i),
		              fp = p * hg__vselect(hg__vload(b->x + i) > zero, one, slope);
		hg__vstore(b->d + i, fp * hg__vload(b->d + i));
		hg__vstore(b->p + i, mask * p);
		hg__vstore(b->x + i, mask * fp);
	}
}

static void mask_p(const struct hg__scores *s, const struct hg__span *span, struct buffers *b)
{
	for (int64_t i = 0; i < (int64_t)span->entries * s->pitch && s->drops; i += HG__LANES)
		hg__vstore(b->p + i, hg__vload(b->mask + i) * hg__vload(b->p + i));
}

/* dp = ds = p (mask dp - D) */
static void find_ds(const struct hg__scores *s, const struct hg__span *span, struct buffers *b)
{
	for (int64_t i = 0; i < (int64_t)span->entries * s->pitch; i += HG__LANES) {
		const hg__v16 p = hg__vload(b->p + i), mask = mask_at(s, b, i);
		hg__vstore(b->dp + i, p * (mask * hg__vload(b->dp + i) - hg__vload(b->d + i)));
	}
}

/* dbias of an edge is ds, with ADD f' ds. */
static void store_dbias(const struct job *job, const struct hg__scores *s,
                        const struct hg__span *span, const struct buffers *b)
{
	const hg__v16 zero = {0};
	for (int64_t i = 0; i < span->entries; i++) {
		const int64_t at = i * s->pitch, edge = hg__edge_of(s->csr, span->first + i);
		hg__v16 ds = hg__vload(b->dp + at);
		if (job->add)
			ds = hg__vselect(hg__vload(b->x + at) > zero, ds, s->of->slope * ds);
		hg__lanes_put(&job->a->dbias, edge, 0, ds);
	}
}

/* COSINE: t becomes ds t, and ds is multiplied by the inverse norm of the other end. */
static void find_unit_terms(const struct hg__scores *s, const struct hg__span *span,
                            struct buffers *b)
{
	for (int64_t i = 0; i < span->entries; i++) {
		const int64_t at = i * s->pitch, other = s->csr->col[span->first + i];
		const hg__v16 ds = hg__vload(b->dp + at);
		hg__put_heads(s->pitch, b->t + at, ds * hg__vload(b->t + at));
		hg__put_heads(s->pitch, b->dp + at,
		              ds * hg__head_lanes(&s->other_inverse, other, s->heads));
	}
}

/* dp = ds of every edge, stores dbias, and changes ds to what the ends are summed with. */
static void find_all_ds(const struct job *job, const struct pass *pass, const struct hg__span *span,
                        const struct hg__scores *s, float *row, struct buffers *b)
{
	value_dots(pass, span, row, b);
	find_ds(s, span, b);
	if (!s->by_column && job->a->dbias.data)
		store_dbias(job, s, span, b);
	if (s->of->score == HG_SCORE_COSINE)
		find_unit_terms(s, span, b);
}

/* ---- the ends of rows and columns ---- */

/* y[c] = factor[head of c] x[c] (+ y[c] if `adds`). y and x: [width] */
HG__INLINE void scale_heads(const struct hg__gather *g, int64_t width, hg__v16 factor, int adds,
                            const float *x, float *y)
{
	float factors[HG__LANES];
	hg__vstore(factors, factor);
	for (int64_t c = 0; c < width; c += HG__LANES) {
		hg__v16 f = hg__vset(factors[0]);
		if (g->head)
			f = hg__vspread(factors, *(const hg__i16_unaligned *)(g->head + c));
		const hg__v16 z = f * hg__vload(x + c);
		hg__vstore(y + c, adds ? hg__vload(y + c) + z : z);
	}
}

/* Makes the sums of one end its gradient: dQ of row `node`, or dK of column `node`. row:
 * memory for a row of Q. */
static void finish_end(const struct job *job, const struct pass *pass, int64_t node, float *row,
                       float *partial)
{
	const struct hg__scores *s = &pass->scores;
	float *sums = partial + pass->second;
	if (s->of->score == HG_SCORE_DOT)
		scale_heads(&pass->ends, job->width_q, hg__vset(s->of->scale), 0, sums, sums);
	if (s->of->score == HG_SCORE_ADD_V2)
		for (int64_t c = 0; c < job->width_q; c += HG__LANES)
			hg__vstore(sums + c, hg__vload(s->c + c) * hg__vload(sums + c));
	if (s->of->score != HG_SCORE_COSINE)
		return;
	const hg__v16 inverse = hg__head_lanes(&s->own_inverse, node, s->heads),
	              t = hg__vload(partial + NUMBER);
	hg__whole_row(&s->own, node, row);
	scale_heads(&pass->ends, job->width_q, -t * inverse, 1, row, sums);
	scale_heads(&pass->ends, job->width_q, inverse * hg__vload(s->c), 0, sums, sums);
}

/* Stores a gradient, or adds it to what an earlier pass stored. */
static void put_gradient(const struct hg__mat *to, int64_t row, int adds, float *x)
{
	for (int64_t c = 0; c < to->cols && adds; c += HG__LANES)
		hg__vstore(x + c, hg__vload(x + c) + hg__lanes(to, row, c, 0.0f));
	hg__row_put(to, row, 0, to->cols, x);
}

static int same_place(const struct hg__mat *a, const struct hg__mat *b)
{
	return a->data && a->data == b->data;
}

/* ADD: replaces the second row of sums by dk of column j, with dq if they are one matrix. */
static void finish_add(const struct job *job, int64_t j, float *partial)
{
	const struct hg__attention_back_args *a = job->a;
	const struct hg__mat *v = &job->columns.own_values;
	const int heads = a->of.heads;
	float *second = partial + job->columns.second;
	hg__v16 dk =
	    hg__dots(0, heads, v->cols / heads, second, v, j, NULL, 0.0f) - hg__vload(partial + NUMBER);
	if (same_place(&a->dk, &a->dq))
		dk += hg__vload_n(record_of(job, j, DQ), heads);
	hg__vstore(second, dk);
}

static void finish_column(const struct job *job, int64_t j, float *partial)
{
	const struct hg__attention_back_args *a = job->a;
	float *dk = partial + job->columns.second, *dv = partial + FIRST;
	if (job->add && a->dk.data)
		finish_add(job, j, partial);
	else if (a->dk.data)
		finish_end(job, &job->columns, j, rows_of(job).q, partial);
	const int one = same_place(&a->dk, &a->dv);
	for (int64_t c = 0; c < a->dk.cols && one; c += HG__LANES)
		hg__vstore(dv + c, hg__vload(dv + c) + hg__vload(dk + c));
	if (job->add && !one && same_place(&a->dv, &a->dq))
		hg__vstore(dv, hg__vload(dv) + hg__vload_n(record_of(job, j, DQ), a->of.heads));
	if (a->dk.data && !one)
		put_gradient(&a->dk, j, 0, dk);
	if (a->dv.data)
		put_gradient(&a->dv, j, 0, dv);
}

static void finish_row(const struct job *job, int64_t i, float *partial)
{
	const struct hg__attention_back_args *a = job->a;
	finish_end(job, &job->rows, i, rows_of(job).q, partial);
	put_gradient(&a->dq, i, same_place(&a->dq, &a->dk) || same_place(&a->dq, &a->dv),
	             partial + job->rows.second);
}

static void finish(const struct job *job, const struct pass *pass, int64_t node, float *partial)
{
	if (pass->scores.by_column)
		finish_column(job, node, partial);
	else if (!job->add && job->a->dq.data)
		finish_row(job, node, partial);
}

/* ---- sums over a part ---- */

/* Sums over the rows of the other end with ds, and of dc over the group. */
static void sum_ends(const struct job *job, const struct pass *pass, struct hg__gathered e,
                     float *partial, float *dc)
{
	e.to_a = partial + pass->second;
	if (pass->scores.of->score != HG_SCORE_ADD_V2) {
		hg__gather_rows(HG__TERMS_ONE, &pass->ends, &e);
		return;
	}
	if (!dc) {
		hg__gather_rows(HG__TERMS_SLOPES, &pass->ends, &e);
		return;
	}
	/* The sum dc continues from one part to the next. */
	if (e.begins)
		memset(e.to_a, 0, (size_t)job->width_q * sizeof(float));
	e.begins = 0;
	e.to_b = dc;
	hg__gather_rows(HG__TERMS_BOTH, &pass->ends, &e);
}

static void sum_number(const struct hg__span *span, int pitch, const float *x, int64_t numbers,
                       float *partial, float *dc)
{
	const hg__v16 sum = hg__heads_sum(pitch, x, numbers);
	hg__vstore(partial + NUMBER, span->begins ? sum : hg__vload(partial + NUMBER) + sum);
	if (dc)
		hg__vstore(dc, hg__vload(dc) + sum);
}

static void sum_part(const struct job *job, const struct pass *pass, const struct hg__span *span,
                     int i, const struct hg__scores *s, const struct buffers *b, float *dc)
{
	const struct hg__part *part = &span->part[i];
	const int pitch = job->pitch, cosine = s->of->score == HG_SCORE_COSINE;
	const int64_t at = hg__part_at(span, part, pitch), numbers = hg__part_numbers(part, pitch);
	float *partial =
	    part->slot < 0 ? rows_of(job).partial : job->stage + part->slot * pass->partial_size;
	struct hg__gathered e = {.col = s->csr->col + part->begin,
	                         .n = part->end - part->begin,
	                         .a = b->p + at,
	                         .b = b->x + at,
	                         .own = s->own_row,
	                         .begins = span->begins,
	                         .to_a = partial + FIRST,
	                         .to_b = partial + pass->second};
	const int add_columns = job->add && s->by_column;
	if (add_columns || (cosine && pass->needs_ds))
		sum_number(span, pitch, add_columns ? b->d + at : b->t + at, numbers, partial,
		           cosine ? dc : NULL);
	if (add_columns && pass->needs_ds)
		hg__gather_rows(HG__TERMS_TWO, &pass->values, &e);
	else if (s->by_column && job->a->dv.data)
		hg__gather_rows(HG__TERMS_ONE, &pass->values, &e);
	if (!job->add && pass->needs_ds) {
		e.a = b->dp + at;
		if (s->of->score == HG_SCORE_ADD_V2)
			hg__whole_row(&s->own, part->row, s->own_row);
		sum_ends(job, pass, e, partial, dc);
	}
	if (part->slot < 0 && span->ends)
		finish(job, pass, part->row, partial);
}

static void pass_group(const struct job *job, const struct pass *pass, int64_t group)
{
	const struct rows rows = rows_of(job);
	struct hg__scores s = pass->scores;
	struct hg__spans spans = hg__spans_begin(s.csr, job->pitch, group);
	struct hg__span span;
	struct buffers b;
	float *dc = job->a->dc.data && !s.by_column ? job->dc + group * job->dc_width : NULL;
	s.own_row = rows.q;
	if (dc)
		memset(dc, 0, (size_t)job->dc_width * sizeof *dc);
	while (hg__span_next(&spans, &span)) {
		find_p(job, pass, &span, &s, &b);
		if (job->add && s.by_column) {
			find_add_terms(&s, &span, &b);
		} else {
			if (pass->needs_ds)
				find_all_ds(job, pass, &span, &s, rows.v, &b);
			mask_p(&s, &span, &b);
		}
		for (int i = 0; i < span.parts && (s.by_column || !job->add); i++)
			sum_part(job, pass, &span, i, &s, &b, dc);
	}
}

/* Adds the parts of split row s in the order of their slots. */
static void pass_split_row(const struct job *job, const struct pass *pass, int64_t s)
{
	const struct hg__plan *plan = pass->scores.csr->plan;
	float *partial = rows_of(job).partial;
	memset(partial, 0, (size_t)pass->partial_size * sizeof *partial);
	for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
		const float *part = job->stage + hg__split_slot(plan, s, k) * pass->partial_size;
		for (int64_t c = 0; c < pass->partial_size; c += HG__LANES)
			hg__vstore(partial + c, hg__vload(partial + c) + hg__vload(part + c));
	}
	finish(job, pass, plan->split_row[s], partial);
}

/* Column c of dc: the sums of the groups in order, in f64 because there may be many. */
static void finish_dc(const struct job *job, int64_t c, int64_t groups)
{
	const struct hg__attention_back_args *a = job->a;
	const int64_t heads = a->of.score == HG_SCORE_COSINE && a->dc.cols == 1 ? a->of.heads : 1;
	double sum = 0.0;
	for (int64_t g = 0; g < groups; g++)
		for (int64_t k = 0; k < heads; k++)
			sum += (double)job->dc[g * job->dc_width + c + k];
	((float *)a->dc.data)[c] = (float)sum;
}

/* ---- the call ---- */

static int wants_columns(const struct hg__attention_back_args *a)
{
	return a->dk.data || a->dv.data;
}

static int wants_rows(const struct hg__attention_back_args *a)
{
	return a->dbias.data || a->dc.data || (a->dq.data && a->of.score != HG_SCORE_ADD);
}

/* Numbers of the workspace, one part after the other. */
struct layout {
	int64_t width_q, width_v, row_partial, column_partial, thread_size, dc_width;
	int64_t record, stage, thread, dc, c, inverse_q, inverse_k, head_q, head_v;
};

static int64_t staging(const struct hg__csr *csr, int64_t partial_size)
{
	return hg__splits(csr) ? 2 * hg__items(csr) * partial_size : 0;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct layout layout_of(const hg_context *ctx, const struct hg__attention_back_args *a)
{
	const int64_t h = a->of.heads, cosine = a->of.score == HG_SCORE_COSINE,
	              q = hg__whole(a->of.q.cols), v = hg__whole(a->of.v.cols);
	struct layout l = {.width_q = q, .width_v = v, .dc_width = hg__whole(a->dc.cols)};
	l.row_partial = FIRST + q;
	l.column_partial = FIRST + v + most(v, q);
	l.thread_size = q + v + most(l.row_partial, l.column_partial);
	l.record = hg__whole(a->csr.rows * RECORDS * hg__pitch(a->of.heads));
	l.stage =
	    most(wants_rows(a) && a->of.score != HG_SCORE_ADD ? staging(&a->csr, l.row_partial) : 0,
	         wants_columns(a) ? staging(&a->csr_t, l.column_partial) : 0);
	l.thread = ctx->threads * l.thread_size;
	l.dc = a->dc.data ? hg__groups(&a->csr) * l.dc_width : 0;
	l.c = q + HG__LANES;
	l.inverse_q = cosine * hg__whole(a->csr.rows * h);
	l.inverse_k = cosine * hg__whole(a->csr.cols * h);
	l.head_q = q;
	l.head_v = v;
	return l;
}

static size_t layout_bytes(const struct layout *l)
{
	return (size_t)(l->record + l->stage + l->thread + l->dc + l->c + l->inverse_q + l->inverse_k +
	                l->head_q + l->head_v) *
	       sizeof(float);
}

size_t HG__CPU(attention_back_workspace)(const hg_context *ctx,
                                         const struct hg__attention_back_args *a)
{
	const struct layout l = layout_of(ctx, a);
	return layout_bytes(&l);
}

static struct pass pass_of(const struct hg__attention_back_args *a, int by_column, const float *c,
                           const int32_t *head_q, const int32_t *head_v)
{
	const int heads = a->of.heads;
	const int64_t width_v = hg__whole(a->of.v.cols), width_q = hg__whole(a->of.q.cols);
	struct pass pass = {.scores =
	                        hg__scores_of(&a->of, by_column ? &a->csr_t : &a->csr, by_column, c),
	                    .own_values = by_column ? a->of.v : a->dy,
	                    .other_values = by_column ? a->dy : a->of.v,
	                    .second = FIRST + (by_column ? width_v : 0),
	                    .needs_ds = by_column ? a->dk.data != NULL : 1};
	pass.partial_size = pass.second + (by_column ? most(width_v, width_q) : width_q);
	pass.ends = (struct hg__gather){pass.scores.other, heads > 1 ? head_q : NULL, pass.scores.pitch,
	                                a->of.slope};
	pass.values =
	    (struct hg__gather){a->dy, heads > 1 ? head_v : NULL, pass.scores.pitch, a->of.slope};
	return pass;
}

static hg_status prepare(hg_context *ctx, const struct hg__attention_back_args *a, struct job *job)
{
	const struct layout l = layout_of(ctx, a);
	const int pitch = hg__pitch(a->of.heads);
	void *memory;
	HG__TRY(hg__workspace(ctx, layout_bytes(&l), &memory));
	float *record = memory, *stage = record + l.record, *thread = stage + l.stage,
	      *dc = thread + l.thread, *c = dc + l.dc, *inverse_q = c + l.c,
	      *inverse_k = inverse_q + l.inverse_q;
	int32_t *head_q = (int32_t *)(void *)(inverse_k + l.inverse_k), *head_v = head_q + l.head_q;
	hg__prepare_c(&a->of, c);
	hg__gather_heads(a->of.q.cols, a->of.heads, head_q);
	hg__gather_heads(a->of.v.cols, a->of.heads, head_v);
	*job = (struct job){.a = a,
	                    .rows = pass_of(a, 0, c, head_q, head_v),
	                    .columns = pass_of(a, 1, c, head_q, head_v),
	                    .add = a->of.score == HG_SCORE_ADD,
	                    .pitch = pitch,
	                    .width_q = l.width_q,
	                    .width_v = l.width_v,
	                    .record = record,
	                    .stage = stage,
	                    .thread = thread,
	                    .thread_size = l.thread_size,
	                    .dc = dc,
	                    .dc_width = l.dc_width,
	                    .shares = same_place(&a->dq, &a->dk) || same_place(&a->dq, &a->dv)};
	hg__scores_inverse(&job->rows.scores, inverse_q, inverse_k);
	hg__scores_inverse(&job->columns.scores, inverse_q, inverse_k);
	if (job->add)
		job->columns.scores.other = (struct hg__mat){record + Q * pitch, a->csr.rows, a->of.heads,
		                                             (int64_t)RECORDS * pitch, HG_F32};
	return HG_OK;
}

static int gradient_fits(const struct hg__mat *gradient, const struct hg__mat *of)
{
	return !gradient->data || hg__same(gradient, of);
}

static int fits(const struct hg__attention_back_args *a)
{
	const int add = a->of.score == HG_SCORE_ADD;
	if (!hg__scores_fit(&a->of, &a->csr) || a->of.v.rows != a->csr.cols ||
	    a->of.v.cols % a->of.heads || a->y.rows != a->csr.rows || a->y.cols != a->of.v.cols ||
	    a->softmax.dtype != HG_F32 || a->softmax.rows != a->csr.rows ||
	    a->softmax.cols != a->of.heads * (1 + add) || !hg__same(&a->dy, &a->y))
		return 0;
	if (wants_columns(a) &&
	    (a->csr_t.rows != a->csr.cols || a->csr_t.cols != a->csr.rows || a->csr_t.m != a->csr.m))
		return 0;
	return gradient_fits(&a->dq, &a->of.q) && gradient_fits(&a->dk, &a->of.k) &&
	       gradient_fits(&a->dv, &a->of.v) && gradient_fits(&a->dbias, &a->of.bias) &&
	       gradient_fits(&a->dc, &a->of.c) && (!a->dc.data || a->dc.dtype == HG_F32) &&
	       (!add || !a->dq.data || hg__same(&a->plus, &a->y));
}

hg_status HG__CPU(attention_back)(hg_context *ctx, const struct hg__attention_back_args *a)
{
	struct job job;
	HG__TRY(hg__has_number(ctx, "attention_back", "score", (int)a->of.score, HG_SCORE_COUNT));
	HG__TRY(HG__FIT(ctx, fits(a), "attention_back", &a->of.q, &a->of.k, &a->of.v, &a->of.c,
	                &a->of.bias, &a->y, &a->softmax, &a->plus, &a->dy, &a->dq, &a->dk, &a->dv,
	                &a->dc, &a->dbias));
	HG__TRY(prepare(ctx, a, &job));
	const int rows = wants_rows(a), columns = wants_columns(a);
	const int64_t nodes = a->csr.rows, inverses = hg__inverse_rows(&job.rows.scores),
	              column_groups = columns ? hg__groups(&a->csr_t) : 0,
	              column_splits = columns ? hg__splits(&a->csr_t) : 0,
	              row_groups = rows ? hg__groups(&a->csr) : 0,
	              row_splits = rows && !job.add ? hg__splits(&a->csr) : 0,
	              sums = a->dc.data ? a->dc.cols : 0;
	const int team = hg__team(ctx, (a->csr.m + nodes) * (a->y.cols + a->of.q.cols));
#pragma omp parallel num_threads(team)
	{
#pragma omp for schedule(static)
		for (int64_t i = 0; i < inverses; i++)
			hg__inverse_norms(&job.rows.scores, i, rows_of(&job).q);
#pragma omp for schedule(static)
		for (int64_t i = 0; i < nodes; i++)
			record_node(&job, i);
#pragma omp for schedule(dynamic)
		for (int64_t g = 0; g < column_groups; g++)
			pass_group(&job, &job.columns, g);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < column_splits; s++)
			pass_split_row(&job, &job.columns, s);
#pragma omp for schedule(dynamic)
		for (int64_t g = 0; g < row_groups; g++)
			pass_group(&job, &job.rows, g);
#pragma omp for schedule(static)
		for (int64_t s = 0; s < row_splits; s++)
			pass_split_row(&job, &job.rows, s);
#pragma omp for schedule(static)
		for (int64_t c = 0; c < sums; c++)
			finish_dc(&job, c, row_groups);
	}
	return HG_OK;
}
