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
