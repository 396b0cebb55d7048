/* Reorder the nodes so that neighbouring rows share neighbours, and restore the first order. */
#include <halfgraph/halfgraph.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4096, M = 65536, GROUP = 64 };

int main(void)
{
	static int32_t dst[M], src[M], order[N], label[N], moved[N], back[N];
	hg_context *ctx = NULL;
	hg_graph *graph = NULL, *better = NULL;
	hg_order_report report = HG_ORDER_REPORT_INIT;
	/* communities whose nodes are scattered: i and i + GROUP, i + 2 GROUP, ... belong together */
	for (int e = 0; e < M; e++) {
		dst[e] = rand() % N;
		src[e] = e % 8 ? (dst[e] + GROUP * (rand() % (N / GROUP))) % N : rand() % N;
	}
	for (int i = 0; i < N; i++)
		label[i] = i % GROUP;
	int ok = hg_context_create(NULL, &ctx) >= 0 &&
	         hg_graph_from_coo(ctx, N, N, M, dst, src, NULL, NULL, &graph) >= 0 &&
	         hg_graph_order(graph, NULL, order, &report) >= 0 &&
	         hg_graph_permute(graph, order, NULL, &better) >= 0 &&
	         /* rows of features, labels and masks move with the nodes; results move back */
	         hg_order_rows(N, order, sizeof *label, label, moved) >= 0 &&
	         hg_order_rows_back(N, order, sizeof *label, moved, back) >= 0;
	for (int i = 0; ok && i < N; i++)
		ok = back[i] == label[i];
	if (ok)
		printf("%s: %.0f to %.0f ps an edge (modelled), edges a source in 16 rows: %.2f to %.2f\n",
		       report.method, report.before.gather_ps, report.after.gather_ps,
		       report.before.tile_reuse, report.after.tile_reuse);
	else
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_graph_free(better);
	hg_graph_free(graph);
	hg_context_free(ctx);
	return !ok || report.after.tile_reuse < report.before.tile_reuse;
}
