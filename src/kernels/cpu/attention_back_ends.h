/* What attention_back.c does with the sums of a row or of a column: it makes them gradients, and
 * stores these. */
#ifndef HG_KERNELS_CPU_ATTENTION_BACK_ENDS_H
#define HG_KERNELS_CPU_ATTENTION_BACK_ENDS_H

#include "kernels/cpu/attention_back.h"

/* y[c] = factor[head of c] x[c] (+ y[c] if `adds`). y and x: [width] */
HG__INLINE void hg__back_scale_heads(const struct hg__gather *g, int64_t width, hg__v16 factor,
                                     int adds, const float *x, float *y)
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
static inline void hg__back_finish_end(const struct hg__back_job *job,
                                       const struct hg__back_pass *pass, int64_t node, float *row,
                                       float *partial)
{
	const struct hg__scores *s = &pass->scores;
	float *sums = partial + pass->second;
	if (s->of->score == HG_SCORE_DOT)
		hg__back_scale_heads(&pass->ends, job->width_q, hg__vset(s->of->scale), 0, sums, sums);
	if (s->of->score == HG_SCORE_ADD_V2)
		for (int64_t c = 0; c < job->width_q; c += HG__LANES)
			hg__vstore(sums + c, hg__vload(s->c + c) * hg__vload(sums + c));
	if (s->of->score != HG_SCORE_COSINE)
		return;
	const hg__v16 inverse = hg__head_lanes(&s->own_inverse, node, s->heads),
	              t = hg__vload(partial + HG__BACK_NUMBER);
	hg__whole_row(&s->own, node, row);
	hg__back_scale_heads(&pass->ends, job->width_q, -t * inverse, 1, row, sums);
	hg__back_scale_heads(&pass->ends, job->width_q, inverse * hg__vload(s->c), 0, sums, sums);
}

/* ADD: replaces the second row of sums by dk of column j, with dq if they are one matrix. */
static inline void hg__back_finish_add(const struct hg__back_job *job, int64_t j, float *partial)
{
	const struct hg__attention_back_args *a = job->a;
	const struct hg__mat *v = &job->columns.own_values;
	const int heads = a->of.heads;
	float *second = partial + job->columns.second;
	hg__v16 dk = hg__dots(0, heads, v->cols / heads, second, v, j, NULL, 0.0f) -
	             hg__vload(partial + HG__BACK_NUMBER);
	if (hg__same_place(&a->dk, &a->dq))
		dk += hg__vload_n(hg__back_record_of(job, j, HG__RECORD_DQ), heads);
	hg__vstore(second, dk);
}

static inline void hg__back_finish_column(const struct hg__back_job *job, int64_t j, float *partial)
{
	const struct hg__attention_back_args *a = job->a;
	float *dk = partial + job->columns.second, *dv = partial + HG__BACK_FIRST;
	if (job->add && a->dk.data)
		hg__back_finish_add(job, j, partial);
	else if (a->dk.data)
		hg__back_finish_end(job, &job->columns, j, hg__back_rows_of(job).q, partial);
	const int one = hg__same_place(&a->dk, &a->dv);
	for (int64_t c = 0; c < a->dk.cols && one; c += HG__LANES)
		hg__vstore(dv + c, hg__vload(dv + c) + hg__vload(dk + c));
	if (job->add && !one && hg__same_place(&a->dv, &a->dq))
		hg__vstore(dv, hg__vload(dv) +
		                   hg__vload_n(hg__back_record_of(job, j, HG__RECORD_DQ), a->of.heads));
	if (a->dk.data && !one)
		hg__row_put(&job->dk, j, 0, a->dk.cols, dk);
	if (a->dv.data)
		hg__row_put(&job->dv, j, 0, a->dv.cols, dv);
}

/* dQ of row i, with the gradients that the columns have stored for the same matrix. */
static inline void hg__back_finish_row(const struct hg__back_job *job, int64_t i, float *partial)
{
	const struct hg__mat *to = &job->a->dq, *before = &job->before;
	float *dq = partial + job->rows.second;
	hg__back_finish_end(job, &job->rows, i, hg__back_rows_of(job).q, partial);
	for (int64_t c = 0; c < to->cols && before->data; c += HG__LANES)
		hg__vstore(dq + c, hg__vload(dq + c) + hg__lanes(before, i, c, 0.0f));
	hg__row_put(to, i, 0, to->cols, dq);
}

static inline void hg__back_finish(const struct hg__back_job *job, const struct hg__back_pass *pass,
                                   int64_t node, float *partial)
{
	if (pass->scores.by_column)
		hg__back_finish_column(job, node, partial);
	else if (!job->add && job->a->dq.data)
		hg__back_finish_row(job, node, partial);
}

#endif
