/* The facts of a graph that range proofs use, and the factors of the degree normalisations. The
 * backend makes the passes over the edges. */
#include <math.h>

#include "core/graph.h"

void hg__degree_inverse(int64_t n, const int64_t *ptr, float *out)
{
	for (int64_t i = 0; i < n; i++) {
		const int64_t d = ptr[i + 1] - ptr[i];
		out[i] = (float)(1.0 / (double)(d > 0 ? d : 1));
	}
}

void hg__degree_root(int64_t n, const int64_t *ptr, float *out)
{
	for (int64_t i = 0; i < n; i++) {
		const int64_t d = ptr[i + 1] - ptr[i];
		out[i] = (float)(1.0 / sqrt((double)(d > 0 ? d : 1)));
	}
}

hg_status hg__graph_know(hg_graph *g)
{
	if (g->facts_known)
		return HG_OK;
	const struct hg__csr csr = {g->rows, g->cols, g->m, g->rowptr.data, g->col.data, NULL, NULL};
	HG__TRY(
	    g->ctx->backend->survey(g->ctx, &csr, g->weight.data, &g->facts, &g->pattern_symmetric));
	g->facts_known = 1;
	return HG_OK;
}

static void find_least_weights(hg_graph *g, const float *weight)
{
	g->least_weight = g->least_positive = INFINITY;
	for (int64_t e = 0; weight && e < g->m; e++) {
		g->least_weight = fminf(g->least_weight, weight[e]);
		if (weight[e] > 0.0f)
			g->least_positive = fminf(g->least_positive, weight[e]);
	}
	g->least_weight = isinf(g->least_weight) ? 1.0f : g->least_weight;
	g->least_positive = isinf(g->least_positive) ? 1.0f : g->least_positive;
	g->least_weight_known = 1;
}

hg_status hg__graph_least_weight(hg_graph *g, float *least, float *positive)
{
	if (!g->least_weight_known) {
		struct hg__buffer host = {0};
		if (g->weight.data)
			HG__TRY(hg__buffer_download(g->ctx, &g->weight, "graph: host weight", &host));
		find_least_weights(g, host.data);
		hg__buffer_free(g->ctx, &host);
	}
	*least = g->least_weight;
	*positive = g->least_positive;
	return HG_OK;
}
