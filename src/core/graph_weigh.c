/* Normalisation by weighted degrees: the factors, and the sums that range proofs need. The host
 * makes both in one pass, so they have the same bits on every backend.
 *
 *     D(i) = sum over j of a_ij, in f64 and in CSR order,  r_i = 1/sqrt(D(i)) or 1/D(i),  s_j = r_j
 *            or 1;  0 where D(i) = 0
 *
 * What is proved of a result needs no sign of the weights: max|Y| <= max|X| times the largest sum
 * over j of |r_i a_ij s_j|, and this sum is taken here, with the factors that kernels read, after
 * they are rounded to f32. (If no weight is negative, it is at most 1 for 1/D, and for the root at
 * most sqrt(D(i)) max over j of s_j, which can be large.) The gradient is bounded by the sums of
 * columns in the same way.
 *
 * Factors that count edges are at most 1. These are not, if weights are small. What depends on it
 * reads `factor`. */
#include <float.h>
#include <math.h>

#include "core/graph.h"
#include "core/rounding.h"

static const char *name_of(hg_norm norm)
{
	return norm == HG_NORM_WEIGHTED ? "weighted" : "weighted-mean";
}

/* The weighted degree of row i. */
static double degree_at(const struct hg__host_csr *csr, int64_t i)
{
	double degree = 0.0;
	if (!csr->weight)
		return (double)(csr->rowptr[i + 1] - csr->rowptr[i]);
	for (int64_t e = csr->rowptr[i]; e < csr->rowptr[i + 1]; e++)
		degree += (double)csr->weight[e];
	return degree;
}

static hg_status find_factors(const hg_graph *g, const struct hg__host_csr *csr, hg_norm norm,
                              float *factor)
{
	for (int64_t i = 0; i < g->rows; i++) {
		const double d = degree_at(csr, i);
		if (d < 0.0)
			return hg__fail(g->ctx, HG_ERR_ARG,
			                "graph: norm %s: the weights of the edges to node %lld sum to %.9g, "
			                "expected at least 0",
			                name_of(norm), (long long)i, d);
		if (d == 0.0)
			continue; /* host memory is zeroed */
		const double f = 1.0 / (norm == HG_NORM_WEIGHTED ? sqrt(d) : d);
		if (!(f >= (double)FLT_MIN && f <= (double)FLT_MAX))
			return hg__fail(g->ctx, HG_ERR_ARG,
			                "graph: norm %s: the weights of the edges to node %lld sum to %.9g, "
			                "and the factor %.9g is no normal number of f32",
			                name_of(norm), (long long)i, d, f);
		factor[i] = (float)f;
	}
	return HG_OK;
}

/* col_sum [cols] is zero at first. */
static void find_sums(const hg_graph *g, const struct hg__host_csr *csr, hg_norm norm,
                      const float *factor, double *col_sum, struct hg__weighed *w)
{
	const int root = norm == HG_NORM_WEIGHTED;
	for (int64_t i = 0; i < g->rows; i++) {
		const double r = (double)factor[i];
		double sum = 0.0;
		for (int64_t e = csr->rowptr[i]; e < csr->rowptr[i + 1]; e++) {
			const int32_t j = csr->col[e];
			const double a = csr->weight ? fabs((double)csr->weight[e]) : 1.0,
			             term = a * r * (root ? (double)factor[j] : 1.0);
			sum += term;
			col_sum[j] += term;
		}
		w->row_sum = fmax(w->row_sum, sum);
		w->factor = fmax(w->factor, r);
	}
	for (int64_t j = 0; j < g->cols; j++)
		w->col_sum = fmax(w->col_sum, col_sum[j]);
	w->known = 1;
}

static hg_status weigh(hg_graph *g, const struct hg__host_csr *csr, hg_norm norm,
                       struct hg__buffer *vector, struct hg__weighed *w)
{
	struct hg__buffer factor = {0}, col_sum = {0};
	struct hg__rounding rounding;
	hg_status status = hg__buffer_host(g->ctx, g->rows, sizeof(float), "graph: norm", &factor);
	if (status == HG_OK)
		status = hg__buffer_host(g->ctx, g->cols, sizeof(double), "graph: column sums", &col_sum);
	hg__rounding_begin(&rounding);
	if (status == HG_OK)
		status = find_factors(g, csr, norm, factor.data);
	if (status == HG_OK) {
		struct hg__weighed found = {0};
		find_sums(g, csr, norm, factor.data, col_sum.data, &found);
		status =
		    hg__buffer_upload(g->ctx, g->rows, sizeof(float), factor.data, "graph: norm", vector);
		if (status == HG_OK)
			*w = found;
	}
	hg__rounding_end(&rounding);
	hg__buffer_free(g->ctx, &col_sum);
	hg__buffer_free(g->ctx, &factor);
	return status;
}

hg_status hg__graph_weigh(hg_graph *g, hg_norm norm, struct hg__weighed *facts)
{
	const int root = norm == HG_NORM_WEIGHTED;
	struct hg__weighed *w = root ? &g->weighed_root : &g->weighed_inverse;
	if (!w->known) {
		struct hg__host_csr csr;
		if (root && g->rows != g->cols)
			return hg__fail(g->ctx, HG_ERR_SHAPE,
			                "graph: norm weighted needs a square graph, found %lld rows and %lld "
			                "columns",
			                (long long)g->rows, (long long)g->cols);
		HG__TRY(hg__graph_keeps(g, "weighted degrees"));
		HG__TRY(hg__graph_fetch(g, 1, 1, &csr));
		const hg_status status =
		    weigh(g, &csr, norm, root ? &g->weighted_root : &g->weighted_inverse, w);
		hg__graph_fetch_free(g, &csr);
		HG__TRY(status);
	}
	*facts = *w;
	return HG_OK;
}

struct hg__weighed hg__graph_weighed(const hg_graph *g, hg_norm norm)
{
	const struct hg__weighed none = {0, (double)INFINITY, (double)INFINITY, (double)INFINITY},
	                         *w = norm == HG_NORM_WEIGHTED ? &g->weighed_root : &g->weighed_inverse;
	return w->known ? *w : none;
}
