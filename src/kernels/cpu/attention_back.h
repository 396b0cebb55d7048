/* What the passes of attention_back.c work with, and p, ds and what is summed with them for the
 * edges of a span. */
#ifndef HG_KERNELS_CPU_ATTENTION_BACK_H
#define HG_KERNELS_CPU_ATTENTION_BACK_H

#include <omp.h>

#include "kernels/cpu/attention_gather.h"
#include "kernels/cpu/attention_score.h"

/* A partial result, which is the sums of a row part: one number of each of 16 heads, and one or two
 * rows. The number is the sum of f' p D (ADD, columns) or of ds t (COSINE). */
enum { HG__BACK_NUMBER = 0, HG__BACK_FIRST = HG__LANES };

/* A row of the table that the columns look up for each edge (i, j): what they need of i. `pitch`
 * numbers of each. */
enum { HG__RECORD_LSE, HG__RECORD_D, HG__RECORD_Q, HG__RECORD_DQ, HG__RECORD_SIZE };

/* A pass over the edges, by rows or by columns. `own` and `other` are the two ends of an edge as in
 * struct hg__scores. */
struct hg__back_pass {
	struct hg__scores scores;
	struct hg__mat own_values, other_values; /* G and V, or V and G */
	struct hg__gather ends;                  /* sums of rows of scores.other */
	struct hg__gather values;                /* columns: sums of rows of G */
	int64_t second;                          /* where the second row of a partial result begins */
	int64_t partial_size;
	int needs_ds;
};

struct hg__back_job {
	const struct hg__attention_back_args *a;
	struct hg__back_pass rows, columns;
	int add, pitch;
	int64_t width_q, width_v; /* columns of Q and V in whole vectors */
	float *record;            /* [rows, HG__RECORD_SIZE, pitch] */
	float *stage;             /* [2 * items, partial_size] */
	float *thread;
	int64_t thread_size;
	float *dc; /* [groups, dc_width]: the sums of each group of rows */
	int64_t dc_width;
	int shares; /* dq is also dk or dv */
	/* Where the columns store dk and dv. If dq is one of them too, and not with ADD, the rows come
	 * later and add dq: that matrix is then `before`, which is in the workspace and f32 if dq is
	 * f16, so that the sum is narrowed once. */
	struct hg__mat dk, dv, before;
};

/* A thread's memory: a row of Q, a row of V, and a partial result. */
struct hg__back_rows {
	float *q, *v, *partial;
};

/* The buffers of a span, [edges, pitch]:
 *
 *     x     the score, with ADD before f; then, for the columns of ADD, f' mask p
 *     p     p; then, for sums of rows of G, mask p
 *     lse   log-sum-exp of the edge's row
 *     d     D of the edge's row; then, for the columns of ADD, f' p D
 *     dp    <G_i, V_j>; then ds, with COSINE times the inverse norm of the other end
 *     mask  masks of dropout
 *     t     t of COSINE; then ds t */
struct hg__back_buffers {
	float x[HG__SPAN_ROOM], p[HG__SPAN_ROOM], lse[HG__SPAN_ROOM], d[HG__SPAN_ROOM],
	    dp[HG__SPAN_ROOM], mask[HG__SPAN_ROOM], t[HG__SPAN_ROOM];
};

static inline struct hg__back_rows hg__back_rows_of(const struct hg__back_job *job)
{
	float *memory = job->thread + omp_get_thread_num() * job->thread_size;
	return (struct hg__back_rows){memory, memory + job->width_q,
	                              memory + job->width_q + job->width_v};
}

static inline float *hg__back_record_of(const struct hg__back_job *job, int64_t row, int which)
{
	return job->record + (row * HG__RECORD_SIZE + which) * job->pitch;
}

/* ---- gradients in one matrix ---- */

HG__INLINE int hg__same_place(const struct hg__mat *a, const struct hg__mat *b)
{
	return a->data && a->data == b->data;
}

HG__INLINE int hg__shares_dq(const struct hg__attention_back_args *a)
{
	return hg__same_place(&a->dq, &a->dk) || hg__same_place(&a->dq, &a->dv);
}

/* ---- p, ds and what is summed with them, for the edges of a span ---- */

/* The log-sum-exp and D of the row of every edge. */
HG__INLINE void hg__back_look_up_heads(int pitch, const struct hg__back_job *job,
                                       const struct hg__back_pass *pass,
                                       const struct hg__span *span, struct hg__back_buffers *b)
{
	const int32_t *col = pass->scores.by_column ? pass->scores.csr->col : NULL;
	float *lse = b->lse, *d = b->d;
	for (int i = 0; i < span->parts; i++)
		for (int64_t p = span->part[i].begin; p < span->part[i].end; p++) {
			const float *record =
			    job->record + (col ? col[p] : span->part[i].row) * HG__RECORD_SIZE * pitch;
			hg__copy_heads(pitch, lse, record + HG__RECORD_LSE * pitch);
			hg__copy_heads(pitch, d, record + HG__RECORD_D * pitch);
			lse += pitch;
			d += pitch;
		}
}

static inline void hg__back_look_up(const struct hg__back_job *job,
                                    const struct hg__back_pass *pass, const struct hg__span *span,
                                    struct hg__back_buffers *b)
{
	if (job->pitch == 1)
		hg__back_look_up_heads(1, job, pass, span, b);
	else if (job->pitch == 8)
		hg__back_look_up_heads(8, job, pass, span, b);
	else
		hg__back_look_up_heads(job->pitch, job, pass, span, b);
}

/* dp = <G_i, V_j> of every edge. */
static inline void hg__back_value_dots(const struct hg__back_pass *pass,
                                       const struct hg__span *span, float *row,
                                       struct hg__back_buffers *b)
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
static inline void hg__back_find_p(const struct hg__back_job *job, const struct hg__back_pass *pass,
                                   const struct hg__span *span, const struct hg__scores *s,
                                   struct hg__back_buffers *b)
{
	hg__span_scores(s, span, b->x, b->t);
	hg__span_values(s, span, b->x, b->p);
	hg__back_look_up(job, pass, span, b);
	hg__span_p(s, span, b->p, b->lse, b->p);
	if (s->drops)
		hg__span_masks(s, span, b->mask);
}

HG__INLINE hg__v16 hg__back_mask_at(const struct hg__scores *s, const struct hg__back_buffers *b,
                                    int64_t i)
{
	return s->drops ? hg__vload(b->mask + i) : hg__vset(1.0f);
}

/* What the columns of ADD are summed with: d = f' p D, p = mask p, x = f' mask p. */
static inline void hg__back_find_add_terms(const struct hg__scores *s, const struct hg__span *span,
                                           struct hg__back_buffers *b)
{
	const hg__v16 one = hg__vset(1.0f), slope = hg__vset(s->of->slope), zero = {0};
	for (int64_t i = 0; i < (int64_t)span->entries * s->pitch; i += HG__LANES) {
		const hg__v16 p = hg__vload(b->p + i), mask = hg__back_mask_at(s, b, i),
		              fp = p * hg__vselect(hg__vload(b->x + i) > zero, one, slope);
		hg__vstore(b->d + i, fp * hg__vload(b->d + i));
		hg__vstore(b->p + i, mask * p);
		hg__vstore(b->x + i, mask * fp);
	}
}

static inline void hg__back_mask_p(const struct hg__scores *s, const struct hg__span *span,
                                   struct hg__back_buffers *b)
{
	for (int64_t i = 0; i < (int64_t)span->entries * s->pitch && s->drops; i += HG__LANES)
		hg__vstore(b->p + i, hg__vload(b->mask + i) * hg__vload(b->p + i));
}

/* dp = ds = p (mask dp - D) */
static inline void hg__back_find_ds(const struct hg__scores *s, const struct hg__span *span,
                                    struct hg__back_buffers *b)
{
	for (int64_t i = 0; i < (int64_t)span->entries * s->pitch; i += HG__LANES) {
		const hg__v16 p = hg__vload(b->p + i), mask = hg__back_mask_at(s, b, i);
		hg__vstore(b->dp + i, p * (mask * hg__vload(b->dp + i) - hg__vload(b->d + i)));
	}
}

/* dbias of an edge is ds, with ADD f' ds. */
static inline void hg__back_store_dbias(const struct hg__back_job *job, const struct hg__scores *s,
                                        const struct hg__span *span,
                                        const struct hg__back_buffers *b)
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
static inline void hg__back_find_unit_terms(const struct hg__scores *s, const struct hg__span *span,
                                            struct hg__back_buffers *b)
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
static inline void hg__back_find_all_ds(const struct hg__back_job *job,
                                        const struct hg__back_pass *pass,
                                        const struct hg__span *span, const struct hg__scores *s,
                                        float *row, struct hg__back_buffers *b)
{
	hg__back_value_dots(pass, span, row, b);
	hg__back_find_ds(s, span, b);
	if (!s->by_column && job->a->dbias.data)
		hg__back_store_dbias(job, s, span, b);
	if (s->of->score == HG_SCORE_COSINE)
		hg__back_find_unit_terms(s, span, b);
}

#endif
