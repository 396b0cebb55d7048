#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "convert_step.h"
#include "convert_sums.h"
#include "edges.h"
#include "halfgraph/graph_stream.h"

/* hg-bench convert: a list of edges in any order becomes the graph, both orientations and the
 * factors of its normalisations, as it does before each step on a graph that changes; or it stays a
 * list, for sums that scatter. Then sums of both kinds, and steps with and without a conversion
 * before them. The list lies in device memory, so copies are not measured. */

struct list {
	int64_t m;
	int32_t *dst, *src;
};

static int list_new(struct list *list, int64_t m)
{
	list->m = m;
	list->dst = malloc((size_t)(m + 1) * sizeof *list->dst);
	list->src = malloc((size_t)(m + 1) * sizeof *list->src);
	return list->dst && list->src;
}

static void list_free(struct list *list)
{
	free(list->dst);
	free(list->src);
}

/* The edges of the workload in a random order. */
static hg_status list_edges(struct bench *b, struct list *list)
{
	const uint64_t seed = (uint64_t)b->options.seed + 7;
	HG__TRY(hg_graph_download(b->graph, NULL, list->src, NULL));
	for (int64_t i = 0; i < b->csr.rows; i++)
		for (int64_t e = b->rowptr[i]; e < b->rowptr[i + 1]; e++)
			list->dst[e] = (int32_t)i;
	for (int64_t e = list->m - 1; e > 0; e--) {
		const int64_t k = (int64_t)edge_below((uint64_t)e + 1, edge_uniform(seed, (uint64_t)e));
		const int32_t dst = list->dst[e], src = list->src[e];
		list->dst[e] = list->dst[k];
		list->src[e] = list->src[k];
		list->dst[k] = dst;
		list->src[k] = src;
	}
	return HG_OK;
}

static hg_status convert_run(void *stream)
{
	return hg_graph_stream_convert(stream);
}

/* Both are the same graph: compare the rows and columns of the one made of the list. */
static hg_status compare(struct bench *b, hg_graph *made, struct check *check)
{
	const int64_t rows = hg_graph_rows(made), m = b->csr.m;
	struct list both;
	int64_t *rowptr = malloc((size_t)(rows + 1) * sizeof *rowptr);
	hg_status status = rowptr && list_new(&both, m) ? HG_OK : HG_ERR_NOMEM;
	if (status == HG_OK)
		status = hg_graph_download(made, rowptr, both.dst, NULL);
	if (status == HG_OK)
		status = hg_graph_download(b->graph, NULL, both.src, NULL);
	*check = check_new();
	for (int64_t i = 0; status == HG_OK && i <= b->csr.rows; i++)
		check_number(check, i, 0, (double)rowptr[i], (double)b->rowptr[i], 0.0);
	for (int64_t e = 0; status == HG_OK && e < m; e++)
		check_number(check, e, 1, (double)both.dst[e], (double)both.src[e], 0.0);
	if (rowptr)
		list_free(&both);
	free(rowptr);
	return status;
}

/* The two ways, in the order of hg_aggregation. */
enum { GATHER, SCATTER, WAYS };
static const char *const refilled[WAYS] = {"both orientations", "a list that is scattered"};

static hg_status measure_stream(struct bench *b, const struct list *list, int way,
                                hg_graph_stream *stream, double *ms)
{
	struct result r = result_new("convert", refilled[way], "-");
	struct check check = check_new();
	HG__TRY(hg_graph_stream_refill(stream, b->csr.rows, list->m, list->dst, list->src, NULL));
	HG__TRY(hg_graph_stream_check(stream));
	HG__TRY(measure(b, convert_run, stream, &r.ms));
	if (way == GATHER)
		HG__TRY(compare(b, hg_graph_stream_graph(stream), &check));
	*ms = r.ms.median;
	char note[64] = "";
	if (list->m)
		snprintf(note, sizeof note, "%.1f ps an edge and orientation",
		         1e9 * r.ms.median / (2.0 * (double)list->m));
	r.note = note;
	r.error = check.ratio;
	report_result(b, &r);
	check_report(b, &check, r.op, r.variant);
	return HG_OK;
}

static hg_status stream_new(struct bench *b, hg_aggregation aggregation, hg_graph_stream **stream)
{
	hg_graph_facts facts = HG_GRAPH_FACTS_INIT;
	hg_graph_stream_config config = HG_GRAPH_STREAM_CONFIG_INIT;
	HG__TRY(hg_graph_facts_get(b->graph, &facts));
	config.nodes = b->csr.rows;
	config.edges = b->csr.m;
	config.max_degree =
	    facts.max_row_degree > facts.max_col_degree ? facts.max_row_degree : facts.max_col_degree;
	config.max_degree += config.max_degree == 0;
	config.aggregation = aggregation;
	return hg_graph_stream_create(b->ctx, &config, stream);
}

hg_status bench_convert(struct bench *b)
{
	hg_graph_stream *stream[WAYS] = {NULL, NULL};
	struct list list = {.m = 0};
	double ms[WAYS] = {0.0, 0.0};
	if (b->csr.rows != b->csr.cols || b->csr.rows == 0) {
		report_absent(b, "convert", "both orientations", "the graph is not square, or empty");
		return HG_OK;
	}
	hg_status status = list_new(&list, b->csr.m) ? list_edges(b, &list) : HG_ERR_NOMEM;
	for (int way = GATHER; status == HG_OK && way < WAYS; way++)
		status = stream_new(b, (hg_aggregation)way, &stream[way]);
	for (int way = GATHER; status == HG_OK && way < WAYS; way++)
		status = measure_stream(b, &list, way, stream[way], &ms[way]);
	for (int p = 0; status == HG_OK && p < b->options.policies; p++) {
		b->policy = &b->options.policy[p];
		status = convert_sums(b, stream[GATHER], stream[SCATTER], ms[GATHER] - ms[SCATTER]);
		for (int way = GATHER; way < WAYS && b->classes >= 2 && b->features >= 1; way++)
			if (status == HG_OK)
				status = convert_step(b, stream[way]);
	}
	list_free(&list);
	hg_graph_stream_free(stream[SCATTER]);
	hg_graph_stream_free(stream[GATHER]);
	return status;
}
