/* Graphs: make one from an edge list, query its facts, compute the mean over neighbours. */
#include <halfgraph/halfgraph.h>
#include <stdio.h>

/* Every status is checked; the context keeps the error message. */
static int ok(hg_context *ctx, hg_status s)
{
	if (s < 0)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	return s >= 0;
}

int main(void)
{
	/* A star: nodes 1 to 4 around node 0. An edge goes from src to dst; symmetrising adds the
	 * reverse edges. */
	const int32_t src[] = {1, 2, 3, 4}, dst[] = {0, 0, 0, 0};
	const float feature[5] = {10, 1, 2, 3, 6};
	float mean[5];
	hg_context *ctx = NULL;
	hg_graph *half = NULL, *graph = NULL;
	hg_tensor *x = NULL;
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;

	int fine = ok(NULL, hg_context_create(NULL, &ctx));
	fine = fine && ok(ctx, hg_graph_from_coo(ctx, 5, 5, 4, dst, src, NULL, NULL, &half));
	fine = fine && ok(ctx, hg_graph_symmetrize(half, &graph));
	fine = fine && ok(ctx, hg_graph_facts_get(graph, &facts));
	if (fine)
		printf("%lld edges, largest degree %lld, largest row sum of D^-1/2 A D^-1/2: %.3f\n",
		       (long long)hg_graph_edges(graph), (long long)facts.max_row_degree,
		       facts.norm_row_sum[HG_NORM_BOTH]);

	/* Y[i] = mean over the neighbours j of X[j]. It is recorded once and can run any number of
	 * times. */
	fine = fine && ok(ctx, hg_tensor_create(ctx, HG_F16, 5, 1, &x)) &&
	       ok(ctx, hg_tensor_upload(x, feature, HG_F32));
	fine = fine && ok(ctx, hg_params_create(ctx, NULL, &params)) &&
	       ok(ctx, hg_tape_create(params, HG_EVAL, &tape));
	if (fine) {
		const hg_var y = hg_spmm_mean(tape, graph, hg_tape_input(tape, x, "x", -1.0));
		fine = ok(ctx, hg_tape_compile(tape, y)) && ok(ctx, hg_tape_forward(tape));
		fine = fine && ok(ctx, hg_tensor_download(hg_tape_value(tape, y), mean, HG_F32));
	}
	for (int i = 0; fine && i < 5; i++)
		printf("node %d: feature %4g, mean of the neighbours %g\n", i, (double)feature[i],
		       (double)mean[i]);

	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(x);
	hg_graph_free(graph);
	hg_graph_free(half);
	hg_context_free(ctx);
	return !fine;
}
