/* Read the text files of the TU Dortmund graph-classification datasets, all in one folder:
 * NAME_A.txt, one edge "i, j" per line from node i to node j, both from 1;
 * NAME_graph_indicator.txt, the graph of each node, from 1, never descending;
 * NAME_graph_labels.txt, an integer for each graph. Two files are optional:
 * NAME_node_attributes.txt, numbers for each node, and NAME_node_labels.txt, an integer for each
 * node.
 *
 * Graph labels may be any integers (-1 and 1, say): the classes are the distinct labels, ascending.
 * Features are the attributes, followed by one column for each distinct node label, ascending, that
 * is 1 where the node has the label. Without attributes the features are stored sparse. Repeated
 * edges count once.
 *
 * NAME_graph_attributes.txt, numbers for each graph, are the real targets of a regression; with
 * them the graph labels may be missing.
 *
 * NAME_edge_labels.txt and NAME_edge_attributes.txt, both optional: tu_edges.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "graph/coo.h"
#include "import/distinct.h"
#include "import/run.h"
#include "import/tu.h"

struct edges {
	const int64_t *graph; /* the graph of each node */
	struct hg__coo coo;
};

static const char two_nodes[] = "expected two node numbers";

static hg_status add_edge(const struct lines *lines, const char *line, void *to)
{
	struct edges *e = to;
	const char *at = line;
	int64_t i = 0, j = 0;
	HG__TRY(hg__lines_integer(lines, line, two_nodes, two_nodes, &at, &i));
	HG__TRY(hg__lines_integer(lines, line, two_nodes, two_nodes, &at, &j));
	if (*at)
		return hg__lines_fail(lines, two_nodes, line);
	if (i < 1 || i > e->coo.rows || j < 1 || j > e->coo.rows)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": edge %" PRId64 ", %" PRId64
		                     ": the nodes are 1 .. %" PRId64,
		                     lines->path, lines->number, i, j, e->coo.rows);
	if (e->graph[i - 1] != e->graph[j - 1])
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": edge %" PRId64 ", %" PRId64 " joins graphs %" PRId64
		                     " and %" PRId64,
		                     lines->path, lines->number, i, j, e->graph[i - 1], e->graph[j - 1]);
	return hg__coo_add(&e->coo, (int32_t)(j - 1), (int32_t)(i - 1), 1.0f, lines->message);
}

/* Labels, targets, or both; each of them counts the graphs. */
static hg_status read_labels(const struct hg__tu_files *p, hg_dataset *d)
{
	struct hg__column label = {0};
	struct hg__numbers target = {0};
	const int regression = hg__tu_has(p, "graph_attributes");
	hg_status status = hg__tu_read(p, "graph_labels", regression, hg__column_add, &label);
	if (status == HG_OK)
		status = hg__tu_read(p, "graph_attributes", 1, hg__numbers_add, &target);
	d->graphs = label.at ? label.count : target.rows;
	if (status == HG_OK && label.at)
		status = hg__distinct_labels(label.at, label.count, d, p->message);
	if (status == HG_OK && label.at)
		status = hg__distinct_names(label.at, label.count, d, p->message);
	if (status == HG_OK && target.at && label.at)
		status = hg__tu_expect(p, "graph_attributes", target.rows, label.count, "graphs");
	free(label.at);
	d->target = target.at;
	d->targets = target.width;
	return status;
}

/* graph [nodes] has the graph of each node, from 1. */
static hg_status set_batch(const struct hg__tu_files *p, const struct hg__column *graph,
                           hg_dataset *d)
{
	int64_t g = 0;
	HG__TRY(hg__data_alloc(d->graphs + 1, sizeof *d->graph_ptr, "graphs", (void **)&d->graph_ptr,
	                       p->message));
	d->graph_ptr[0] = 0;
	for (int64_t i = 0; i < graph->count; i++) {
		if (graph->at[i] < (g ? g : 1) || graph->at[i] > d->graphs)
			return hg__data_fail(p->message, HG_ERR_FORMAT,
			                     "%s_graph_indicator.txt: node %" PRId64 " is in graph %" PRId64
			                     ", expected %" PRId64 " .. %" PRId64,
			                     p->path, i + 1, graph->at[i], g ? g : 1, d->graphs);
		while (g < graph->at[i])
			d->graph_ptr[g++] = i;
	}
	while (g <= d->graphs)
		d->graph_ptr[g++] = d->nodes;
	return HG_OK;
}

static hg_status read_graphs(const struct hg__tu_files *p, struct hg__column *graph, hg_dataset *d)
{
	HG__TRY(read_labels(p, d));
	HG__TRY(hg__tu_read(p, "graph_indicator", 0, hg__column_add, graph));
	if (graph->count > INT32_MAX)
		return hg__data_fail(p->message, HG_ERR_RANGE,
		                     "%s: %" PRId64 " nodes, at most 2147483647 are possible", p->path,
		                     graph->count);
	d->nodes = graph->count;
	return set_batch(p, graph, d);
}

static hg_status read_edges(const struct hg__tu_files *p, const struct hg__column *graph,
                            hg_dataset *d)
{
	struct edges e = {
	    .graph = graph->at,
	    .coo = {.rows = d->nodes, .cols = d->nodes, .keep_origin = hg__tu_has_edge_data(p)}};
	char shown[HG_DATA_MESSAGE];
	hg_status status = hg__coo_reserve(&e.coo, 1024, 0, p->message);
	if (status == HG_OK)
		status = hg__tu_read(p, "A", 0, add_edge, &e);
	if (status == HG_OK)
		status = hg__coo_to_graph(&e.coo, HG__MERGE_MAX, d, p->message);
	hg__folder_show(&p->folder, "_A.txt", shown);
	if (status == HG_OK)
		hg__import_note_merged(&p->config, shown, e.coo.m, d->edges, 0);
	if (status == HG_OK && e.coo.origin)
		status = hg__tu_edge_data(p, e.coo.origin, e.coo.m, d);
	hg__coo_free(&e.coo);
	return status;
}

static hg_status read_features(const struct hg__tu_files *p, hg_dataset *d)
{
	struct hg__column label = {0};
	struct hg__numbers a = {0};
	hg_status status = hg__tu_read(p, "node_labels", 1, hg__column_add, &label);
	if (status == HG_OK)
		status = hg__tu_read(p, "node_attributes", 1, hg__numbers_add, &a);
	if (status == HG_OK && label.count)
		status = hg__tu_expect(p, "node_labels", label.count, d->nodes, "nodes");
	if (status == HG_OK && a.rows)
		status = hg__tu_expect(p, "node_attributes", a.rows, d->nodes, "nodes");
	if (status == HG_OK)
		status = hg__distinct_features(label.count ? label.at : NULL, a.rows ? a.at : NULL, a.width,
		                               d, p->message);
	free(label.at);
	free(a.at);
	return status;
}

static hg_status read_set(const struct hg__tu_files *p, hg_dataset *d)
{
	struct hg__column graph = {0};
	hg_status status = read_graphs(p, &graph, d);
	if (status == HG_OK)
		status = read_edges(p, &graph, d);
	if (status == HG_OK)
		status = read_features(p, d);
	free(graph.at);
	return status;
}

static hg_status read_all(struct hg__import *run)
{
	struct hg__tu_files p = {.config = run->config, .message = run->message};
	hg_status status = hg__tu_find(&p, run->path);
	if (status == HG_OK)
		status = hg__folder_name(&p.folder, run->d);
	if (status == HG_OK)
		status = read_set(&p, run->d);
	hg__folder_close(&p.folder);
	return status;
}

hg_status hg__import_tu(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
