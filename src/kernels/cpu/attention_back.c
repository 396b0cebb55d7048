/* The gradients of attention (kernels/attention.h). Three passes, and nothing is kept of an edge:
 *
 *     nodes      D[i, k] = <dY_i, Y_i>, and with ADD dq
 *     columns    over the transpose: dV, dK
 *     rows       dQ, dc, dbias
 *
 * The passes over edges compute the scores again, and from them
 *
 *     p = weight exp(s - log_sum) <= 1,  ds = p (mask <G_i, V_j> - D_i),  G = dY
 *
 * With ADD the columns do without a dot product for each edge: since <G_i, V_j> is linear in G,
 *
 *     dk[j, k] = <V_j, sum f' mask p G_i> - sum f' p D_i */
#include "kernels/attention_check.h"
#include "kernels/cpu/attention_back_ends.h"

/* ---- nodes ---- */

static void record_node(const struct hg__back_job *job, int64_t i)
{
	const struct hg__attention_back_args *a = job->a;
	const int heads = a->of.heads;
	const int64_t d = a->y.cols / heads;
	const struct hg__back_rows rows = hg__back_rows_of(job);
	hg__whole_row(&a->dy, i, rows.v);
	const hg__v16 dot = hg__dots(0, heads, d, rows.v, &a->y, i, NULL, 0.0f);
	hg__put_heads(job->pitch, hg__back_record_of(job, i, HG__RECORD_LSE),
	              hg__row_lse(&a->log_sum, i, heads));
	hg__put_heads(job->pitch, hg__back_record_of(job, i, HG__RECORD_D), dot);
	if (!job->add)
		return;
	hg__put_heads(job->pitch, hg__back_record_of(job, i, HG__RECORD_Q),
	              hg__head_lanes(&a->of.q, i, heads));
	if (!a->dq.data)
		return;
	struct hg__mat positive = a->log_sum;
	positive.data = (float *)a->log_sum.data + heads;
	const hg__v16 plus = hg__dots(0, heads, d, rows.v, &a->plus, i, NULL, 0.0f),
	              dq = (1.0f - a->of.slope) * (plus - dot * hg__head_lanes(&positive, i, heads));
	hg__put_heads(job->pitch, hg__back_record_of(job, i, HG__RECORD_DQ), dq);
	if (!job->shares)
		hg__lanes_put(&a->dq, i, 0, dq);
}

/* ---- sums over a part ---- */

/* Adds ds times the rows of the other end to the second row of the partial result, and with ADD_V2
 * to the group's dc. */
static void sum_ends(const struct hg__back_job *job, const struct hg__back_pass *pass,
                     struct hg__gathered e, float *partial, float *dc)
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
	/* dc belongs to the whole group; only to_a starts anew at a part. */
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
	hg__vstore(partial + HG__BACK_NUMBER,
	           span->begins ? sum : hg__vload(partial + HG__BACK_NUMBER) + sum);
	if (dc)
		hg__vstore(dc, hg__vload(dc) + sum);
}

static void sum_part(const struct hg__back_job *job, const struct hg__back_pass *pass,
                     const struct hg__span *span, int i, const struct hg__scores *s,
                     const struct hg__back_buffers *b, float *dc)
{
	const struct hg__part *part = &span->part[i];
	const int pitch = job->pitch, cosine = s->of->score == HG_SCORE_COSINE;
	const int64_t at = hg__part_at(span, part, pitch), numbers = hg__part_numbers(part, pitch);
	float *partial = part->slot < 0 ? hg__back_rows_of(job).partial
	                                : job->stage + part->slot * pass->partial_size;
	struct hg__gathered e = {.col = s->csr->col + part->begin,
	                         .n = part->end - part->begin,
	                         .a = b->p + at,
	                         .b = b->x + at,
	                         .own = s->own_row,
	                         .begins = span->begins,
	                         .to_a = partial + HG__BACK_FIRST,
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
		hg__back_finish(job, pass, part->row, partial);
}

static void pass_group(const struct hg__back_job *job, const struct hg__back_pass *pass,
                       int64_t group)
{
	const struct hg__back_rows rows = hg__back_rows_of(job);
	struct hg__scores s = pass->scores;
	struct hg__spans spans = hg__spans_begin(s.csr, job->pitch, group);
	struct hg__span span;
	struct hg__back_buffers b;
	float *dc = job->a->dc.data && !s.by_column ? job->dc + group * job->dc_width : NULL;
	s.own_row = rows.q;
	if (dc)
		memset(dc, 0, (size_t)job->dc_width * sizeof *dc);
	while (hg__span_next(&spans, &span)) {
		hg__back_find_p(job, pass, &span, &s, &b);
		if (job->add && s.by_column) {
			hg__back_find_add_terms(&s, &span, &b);
		} else {
			if (pass->needs_ds)
				hg__back_find_all_ds(job, pass, &span, &s, rows.v, &b);
			hg__back_mask_p(&s, &span, &b);
		}
		for (int i = 0; i < span.parts && (s.by_column || !job->add); i++)
			sum_part(job, pass, &span, i, &s, &b, dc);
	}
}

/* Adds the parts of split row s in the order of their slots. */
static void pass_split_row(const struct hg__back_job *job, const struct hg__back_pass *pass,
                           int64_t s)
{
	const struct hg__plan *plan = pass->scores.csr->plan;
	float *partial = hg__back_rows_of(job).partial;
	memset(partial, 0, (size_t)pass->partial_size * sizeof *partial);
	for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
		const float *part = job->stage + hg__split_slot(plan, s, k) * pass->partial_size;
		for (int64_t c = 0; c < pass->partial_size; c += HG__LANES)
			hg__vstore(partial + c, hg__vload(partial + c) + hg__vload(part + c));
	}
	hg__back_finish(job, pass, plan->split_row[s], partial);
}

/* Column c of dc: the sums of the groups in order, in f64 because there may be many. */
static void finish_dc(const struct hg__back_job *job, int64_t c, int64_t groups)
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

/* Sizes in floats; from `record` on, the pieces of the workspace in this order. */
struct layout {
	int64_t width_q, width_v, row_partial, column_partial, thread_size, dc_width;
	int64_t record, stage, thread, dc, c, inverse_q, inverse_k, before, head_q, head_v;
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
	l.row_partial = HG__BACK_FIRST + q;
	l.column_partial = HG__BACK_FIRST + v + most(v, q);
	l.thread_size = q + v + most(l.row_partial, l.column_partial);
	l.record = hg__whole(a->csr.rows * HG__RECORD_SIZE * hg__pitch(a->of.heads));
	l.stage =
	    most(wants_rows(a) && a->of.score != HG_SCORE_ADD ? staging(&a->csr, l.row_partial) : 0,
	         wants_columns(a) ? staging(&a->csr_t, l.column_partial) : 0);
	l.thread = ctx->threads * l.thread_size;
	l.dc = a->dc.data ? hg__groups(&a->csr) * l.dc_width : 0;
	l.c = q + HG__LANES;
	l.inverse_q = cosine * hg__whole(a->csr.rows * h);
	l.inverse_k = cosine * hg__whole(a->csr.cols * h);
	if (hg__shares_dq(a) && a->of.score != HG_SCORE_ADD && a->dq.dtype == HG_F16)
		l.before = a->dq.rows * hg__whole(a->dq.cols);
	l.head_q = q;
	l.head_v = v;
	return l;
}

static size_t layout_bytes(const struct layout *l)
{
	return (size_t)(l->record + l->stage + l->thread + l->dc + l->c + l->inverse_q + l->inverse_k +
	                l->before + l->head_q + l->head_v) *
	       sizeof(float);
}

size_t HG__CPU(attention_back_workspace)(const hg_context *ctx,
                                         const struct hg__attention_back_args *a)
{
	const struct layout l = layout_of(ctx, a);
	const struct hg__epilogue_back_args end = hg__attention_end_of(a);
	return hg__larger(layout_bytes(&l),
	                  hg__attention_ends(a) ? HG__CPU(epilogue_back_workspace)(ctx, &end) : 0);
}

static struct hg__back_pass pass_of(const struct hg__attention_back_args *a, int by_column,
                                    const float *c, const int32_t *head_q, const int32_t *head_v)
{
	const int heads = a->of.heads;
	const int64_t width_v = hg__whole(a->of.v.cols), width_q = hg__whole(a->of.q.cols);
	struct hg__back_pass pass = {
	    .scores = hg__scores_of(&a->of, by_column ? &a->csr_t : &a->csr, by_column, c),
	    .own_values = by_column ? a->of.v : a->dy,
	    .other_values = by_column ? a->dy : a->of.v,
	    .second = HG__BACK_FIRST + (by_column ? width_v : 0),
	    .needs_ds = by_column ? a->dk.data != NULL : 1};
	pass.partial_size = pass.second + (by_column ? most(width_v, width_q) : width_q);
	pass.ends = (struct hg__gather){pass.scores.other, heads > 1 ? head_q : NULL, pass.scores.pitch,
	                                a->of.slope};
	pass.values =
	    (struct hg__gather){a->dy, heads > 1 ? head_v : NULL, pass.scores.pitch, a->of.slope};
	return pass;
}

/* Where the columns store dk and dv; `before`: f32 room where dq shares their matrix. */
static void place_gradients(float *before, struct hg__back_job *job)
{
	const struct hg__attention_back_args *a = job->a;
	job->dk = a->dk;
	job->dv = a->dv;
	if (!job->shares || job->add)
		return;
	job->before = a->dq;
	if (a->dq.dtype == HG_F16)
		job->before =
		    (struct hg__mat){before, a->dq.rows, a->dq.cols, hg__whole(a->dq.cols), HG_F32};
	if (hg__same_place(&a->dq, &a->dk))
		job->dk = job->before;
	if (hg__same_place(&a->dq, &a->dv))
		job->dv = job->before;
}

static hg_status prepare(hg_context *ctx, const struct hg__attention_back_args *a,
                         struct hg__back_job *job)
{
	const struct layout l = layout_of(ctx, a);
	const int pitch = hg__pitch(a->of.heads);
	void *memory;
	HG__TRY(hg__workspace(ctx, layout_bytes(&l), &memory));
	float *record = memory, *stage = record + l.record, *thread = stage + l.stage,
	      *dc = thread + l.thread, *c = dc + l.dc, *inverse_q = c + l.c,
	      *inverse_k = inverse_q + l.inverse_q, *before = inverse_k + l.inverse_k;
	int32_t *head_q = (int32_t *)(void *)(before + l.before), *head_v = head_q + l.head_q;
	hg__prepare_c(&a->of, c);
	hg__gather_heads(a->of.q.cols, a->of.heads, head_q);
	hg__gather_heads(a->of.v.cols, a->of.heads, head_v);
	*job = (struct hg__back_job){.a = a,
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
	                             .shares = hg__shares_dq(a)};
	place_gradients(before, job);
	hg__scores_inverse(&job->rows.scores, inverse_q, inverse_k);
	hg__scores_inverse(&job->columns.scores, inverse_q, inverse_k);
	if (job->add)
		job->columns.scores.other =
		    (struct hg__mat){record + HG__RECORD_Q * pitch, a->csr.rows, a->of.heads,
		                     (int64_t)HG__RECORD_SIZE * pitch, HG_F32};
	return HG_OK;
}

hg_status HG__CPU(attention_back)(hg_context *ctx, const struct hg__attention_back_args *a)
{
	struct hg__back_job job;
	const struct hg__epilogue_back_args end = hg__attention_end_of(a);
	HG__TRY(hg__attention_back_check(ctx, a));
	if (hg__attention_ends(a))
		HG__TRY(HG__CPU(epilogue_back)(ctx, &end));
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
			hg__inverse_norms(&job.rows.scores, i, hg__back_rows_of(&job).q);
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
