#include "attention_host.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "precision/bound.h"

/* The norm of a vector counts as at least this (HG_SCORE_COSINE). */
#define NORM_LEAST 1e-12

hg_status floats_get(struct bench *b, struct hg__mat mat, struct floats *floats)
{
	struct copy copy = {.capacity = 0};
	*floats = (struct floats){NULL, mat.rows, mat.cols};
	if (!mat.data)
		return HG_OK;
	hg_status status = copy_mat(b, mat, &copy);
	if (status == HG_OK) {
		floats->x = calloc((size_t)(mat.rows * mat.cols) + 1, sizeof *floats->x);
		if (!floats->x)
			status = hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a copy of %lld numbers",
			                  (long long)(mat.rows * mat.cols));
	}
	if (status == HG_OK) {
#pragma omp parallel for schedule(static)
		for (int64_t i = 0; i < mat.rows; i++)
			for (int64_t c = 0; c < mat.cols; c++)
				floats->x[i * mat.cols + c] = (float)copy_at(&copy, i, c);
	}
	copy_free(&copy);
	return status;
}

void floats_free(struct floats *floats)
{
	free(floats->x);
	floats->x = NULL;
}

static hg_status weights_get(struct bench *b, const float *device, float **host)
{
	if (!device)
		return HG_OK;
	*host = calloc((size_t)b->csr.m + 1, sizeof **host);
	return *host
	           ? b->ctx->backend->copy_out(b->ctx, *host, device, (size_t)b->csr.m * sizeof **host)
	           : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld weights", (long long)b->csr.m);
}

hg_status attention_host_get(struct bench *b, const struct hg__attention *of,
                             struct attention_host *host)
{
	*host = (struct attention_host){.of = *of, .heads = of->heads};
	host->q_cols = of->q.cols / of->heads;
	host->v_cols = of->v.cols / of->heads;
	host->q_depth = hg__depth_dot(of->q.dtype, (double)host->q_cols);
	host->v_depth = hg__depth_dot(of->v.dtype, (double)host->v_cols);
	HG__TRY(floats_get(b, of->q, &host->q));
	HG__TRY(floats_get(b, of->k, &host->k));
	HG__TRY(floats_get(b, of->v, &host->v));
	HG__TRY(floats_get(b, of->c, &host->c));
	HG__TRY(weights_get(b, of->weight, &host->weight));
	return of->dropout.p > 0.0f
	           ? b->ctx->backend->copy_out(b->ctx, &host->step, of->dropout.step, sizeof host->step)
	           : HG_OK;
}

void attention_host_free(struct attention_host *host)
{
	floats_free(&host->q);
	floats_free(&host->k);
	floats_free(&host->v);
	floats_free(&host->c);
	free(host->weight);
	host->weight = NULL;
}

static hg_status edge_weights(struct bench *b, const struct attention_host *host,
                              const struct hg__csr *csr, struct row *row)
{
	uint32_t *edge = csr->edge ? calloc((size_t)row->degree + 1, sizeof *edge) : NULL;
	if (csr->edge && !edge)
		return hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for a row of %lld edges",
		                (long long)row->degree);
	const hg_status status = edge ? b->ctx->backend->copy_out(b->ctx, edge, csr->edge + row->begin,
	                                                          (size_t)row->degree * sizeof *edge)
	                              : HG_OK;
	for (int64_t e = 0; status == HG_OK && e < row->degree; e++)
		row->weight[e] = host->weight[edge ? edge[e] : row->begin + e];
	free(edge);
	return status;
}

hg_status edges_get(struct bench *b, const struct attention_host *host, const struct hg__csr *csr,
                    const int64_t *rowptr, int64_t index, struct row *row)
{
	HG__TRY(row_of(b, csr, rowptr, index, NULL, row));
	return host->weight && row->degree ? edge_weights(b, host, csr, row) : HG_OK;
}

double exp_roundings(double far)
{
	return 4 + 10 * far;
}

double relative_error(double roundings, double score_error, int times)
{
	return (1 + hg__gamma(roundings, hg_dtype_get(HG_F32)->u)) * exp(times * score_error) - 1;
}

double half_weights(const struct attention_host *host, const struct hg__csr *csr)
{
	const int multiplied = host->of.score == HG_SCORE_ADD || host->of.score == HG_SCORE_DOT;
	return csr->plan && (csr->plan->dense || csr->plan->counted) && multiplied &&
	               host->of.v.dtype == HG_F16
	           ? 0x1p-11
	           : 0;
}

static double leaky(double x, double slope)
{
	return x > 0 ? x : slope * x;
}

/* The scores of head `head`, whose columns are at q and k. */
typedef struct edge_score (*score_fn)(const struct attention_host *host, const float *q,
                                      const float *k, int64_t head, double u);

static struct edge_score score_add(const struct attention_host *host, const float *q,
                                   const float *k, int64_t head, double u)
{
	(void)head; /* both have one number a head */
	const double x = (double)q[0] + (double)k[0];
	return (struct edge_score){.s = leaky(x, (double)host->of.slope),
	                           .error = hg__gamma(3, u) * (fabs((double)q[0]) + fabs((double)k[0])),
	                           .positive = x > 0};
}

/* The sum of the products, and of their magnitudes. */
static double dot(const float *a, const float *b, int64_t cols, double *magnitude)
{
	double sum = 0;
	*magnitude = 0;
	for (int64_t c = 0; c < cols; c++) {
		const double term = (double)a[c] * (double)b[c];
		sum += term;
		*magnitude += fabs(term);
	}
	return sum;
}

static struct edge_score score_dot(const struct attention_host *host, const float *q,
                                   const float *k, int64_t head, double u)
{
	(void)head;
	double magnitude;
	const double scale = (double)host->of.scale, sum = dot(q, k, host->q_cols, &magnitude);
	return (struct edge_score){.s = scale * sum,
	                           .error = hg__gamma(host->q_depth + 3, u) * fabs(scale) * magnitude};
}

/* A norm has the roundings of its sum, halved by the root, and 4 of the root or its reciprocal. */
static struct edge_score score_cosine(const struct attention_host *host, const float *q,
                                      const float *k, int64_t head, double u)
{
	double magnitude, unused;
	struct edge_score score = {.positive = 0};
	const double beta = (double)host->c.x[host->c.cols > 1 ? head : 0],
	             sum = dot(q, k, host->q_cols, &magnitude);
	score.q_norm = fmax(sqrt(dot(q, q, host->q_cols, &unused)), NORM_LEAST);
	score.k_norm = fmax(sqrt(dot(k, k, host->q_cols, &unused)), NORM_LEAST);
	score.t = sum / (score.q_norm * score.k_norm);
	score.t_most = magnitude / (score.q_norm * score.k_norm);
	score.s = beta * score.t;
	score.error = hg__gamma(2 * host->q_depth + 14, u) * fabs(beta) * score.t_most;
	return score;
}

/* A kernel may compute f(q + k) as slope q + k + (1 - slope) max(q, -k), with sums of these terms
 * by themselves, whose magnitudes are at most 2 (|q| + |k|). Halves of c leave 2^-22 of each
 * element and 2^-39 of the largest one. */
static struct edge_score score_add_v2(const struct attention_host *host, const float *q,
                                      const float *k, int64_t head, double u)
{
	const float *c = host->c.x + head * host->q_cols;
	double sum = 0, magnitude = 0, all = 0, most = 0;
	for (int64_t i = 0; i < host->q_cols; i++) {
		const double weight = (double)c[i], x = (double)q[i] + (double)k[i];
		sum += weight * leaky(x, (double)host->of.slope);
		const double size = fabs((double)q[i]) + fabs((double)k[i]);
		magnitude += fabs(weight) * size;
		all += size;
		most = fmax(most, fabs(weight));
	}
	return (struct edge_score){
	    .s = sum, .error = hg__gamma(2 * host->q_depth + 16, u) * magnitude + 0x1p-38 * most * all};
}

struct edge_score edge_score_of(const struct attention_host *host, int64_t i, int64_t j,
                                int64_t head)
{
	static const score_fn scores[HG_SCORE_COUNT] = {[HG_SCORE_ADD] = score_add,
	                                                [HG_SCORE_DOT] = score_dot,
	                                                [HG_SCORE_COSINE] = score_cosine,
	                                                [HG_SCORE_ADD_V2] = score_add_v2};
	const double u = hg_dtype_get(HG_F32)->u;
	const float *q = head_of(&host->q, i, head, host->q_cols),
	            *k = head_of(&host->k, j, head, host->q_cols);
	return scores[host->of.score](host, q, k, head, u);
}

double edge_mask(const struct attention_host *host, int64_t i, int64_t j, int64_t head)
{
	const struct hg__attention_dropout *dropout = &host->of.dropout;
	if (!(dropout->p > 0.0f))
		return 1;
	const struct hg__rng4 random = hg__philox(dropout->key, (uint32_t)i, (uint32_t)j,
	                                          (uint32_t)(head / 8), (uint32_t)host->step);
	const uint32_t word = random.w[head % 8 / 2], half = head % 2 ? word >> 16 : word & 0xFFFFu,
	               threshold = hg__attention_threshold(dropout->p);
	return half < threshold ? 0 : 65536.0 / (65536.0 - (double)threshold);
}
