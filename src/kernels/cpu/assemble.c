/* A batch of whole graphs (kernels/assemble.h), one lane for each graph. It is compiled only once,
 * because the loops wait for memory and not for arithmetic. */
#include "kernels/assemble.h"

#include "kernels/cpu/backend.h"
#include "kernels/cpu/team.h"

hg_status hg__cpu_assemble(hg_context *ctx, const struct hg__assemble *a)
{
	static const struct hg__lanes one = {0, 1};
	const int64_t graphs = a->list.graphs, work = a->to.rows + a->to.m;
	(void)work; /* without OpenMP */
#pragma omp parallel for num_threads(hg__team(ctx, work)) schedule(static)
	for (int64_t k = 0; k <= graphs; k++)
		if (k < graphs)
			hg__assemble_graph(a, k, one);
		else
			hg__assemble_rest(a, one);
	return HG_OK;
}
