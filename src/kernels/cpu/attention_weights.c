/* The weights of attention (kernels/attention.h), for users who look at them:
 *
 *     P[e, k] = weight[e] exp(s[e, k] - log_sum[i, k]) */
#include <omp.h>

#include "kernels/attention_check.h"
#include "kernels/cpu/attention_score.h"

struct layout {
	int64_t c, row, inverse_q, inverse_k;
};

static struct layout layout_of(const hg_context *ctx, const struct hg__attention_weights_args *a)
{
	const int64_t h = a->of.heads, cosine = a->of.score == HG_SCORE_COSINE,
	              q = hg__whole(a->of.q.cols);
	return (struct layout){.c = q + HG__LANES,
	                       .row = ctx->threads * q,
	                       .inverse_q = cosine * hg__whole(a->csr.rows * h),
	                       .inverse_k = cosine * hg__whole(a->csr.cols * h)};
}

static size_t layout_bytes(const struct layout *l)
{
	return (size_t)(l->c + l->row + l->inverse_q + l->inverse_k) * sizeof(float);
}

size_t HG__CPU(attention_weights_workspace)(const hg_context *ctx,
                                            const struct hg__attention_weights_args *a)
{
	const struct layout l = layout_of(ctx, a);
	return layout_bytes(&l);
}

static void store_weights(const struct hg__attention_weights_args *a, const struct hg__scores *s,
                          const struct hg__span *span, const float *p)
{
	for (int64_t i = 0; i < span->entries; i++)
		hg__row_put(&a->p, hg__edge_of(&a->csr, span->first + i), 0, a->of.heads, p + i * s->pitch);
}

static void weights_of_group(const struct hg__attention_weights_args *a,
                             const struct hg__scores *all, float *row, int64_t group)
{
	struct hg__scores s = *all;
	struct hg__spans spans = hg__spans_begin(&a->csr, s.pitch, group);
	struct hg__span span;
	float x[HG__SPAN_ROOM], lse[HG__SPAN_ROOM];
	s.own_row = row;
	while (hg__span_next(&spans, &span)) {
		hg__span_scores(&s, &span, x, NULL);
		hg__span_values(&s, &span, x, x);
		hg__span_lse(&s, &span, &a->log_sum, lse);
		hg__span_p(&s, &span, x, lse, x);
		store_weights(a, &s, &span, x);
	}
}

hg_status HG__CPU(attention_weights)(hg_context *ctx, const struct hg__attention_weights_args *a)
{
	const struct layout l = layout_of(ctx, a);
	const int64_t q = hg__whole(a->of.q.cols);
	void *memory;
	HG__TRY(hg__attention_weights_check(ctx, a));
	if (a->csr.m == 0)
		return HG_OK;
	HG__TRY(hg__workspace(ctx, layout_bytes(&l), &memory));
	float *c = memory, *rows = c + l.c, *inverse_q = rows + l.row,
	      *inverse_k = inverse_q + l.inverse_q;
	struct hg__scores scores;
	hg__prepare_c(&a->of, c);
	scores = hg__scores_of(&a->of, &a->csr, 0, c);
	hg__scores_inverse(&scores, inverse_q, inverse_k);
	const int64_t groups = hg__groups(&a->csr), inverses = hg__inverse_rows(&scores);
	const int team = hg__team(ctx, (a->csr.m + a->csr.rows) * a->of.q.cols);
#pragma omp parallel num_threads(team)
	{
		float *row = rows + omp_get_thread_num() * q;
#pragma omp for schedule(static)
		for (int64_t i = 0; i < inverses; i++)
			hg__inverse_norms(&scores, i, row);
#pragma omp for schedule(dynamic)
		for (int64_t g = 0; g < groups; g++)
			weights_of_group(a, &scores, row, g);
	}
	return HG_OK;
}
