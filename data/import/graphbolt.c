/* Read the datasets on disk of DGL's GraphBolt (OnDiskDataset): a folder or zip archive with
 * metadata.yaml, which names the files of
 *
 *     graph          the number of nodes, and the edges: csv (a source and a destination per line)
 *                    or numpy (an array [2, edges] of sources and destinations)
 *     feature_data   numpy arrays with a row for each node, or each edge
 *     tasks          the splits and labels (graphbolt_tasks.c)
 *
 * Paths are relative to the folder. An edge goes from its source to its destination. Several types
 * of nodes or edges are refused. So are files of torch: they are pickles. What GraphBolt makes of
 * the folder (preprocessed/) has its graph in such a file and is not read. */
#include "import/graphbolt.h"

#include <inttypes.h>
#include <string.h>

#include "graph/coo.h"
#include "import/edge_rows.h"
#include "import/npy.h"

/* ---- the files ---- */

hg_status hg__graphbolt_path(const struct hg__graphbolt *in, int item, const char *format,
                             const char *other, const char **path, const char **found)
{
	HG__TRY(hg__yaml_text(&in->yaml, item, "format", 1, found));
	HG__TRY(hg__yaml_path(&in->yaml, item, "path", path));
	if (strcmp(*found, format) != 0 && (!other || strcmp(*found, other) != 0))
		return hg__yaml_fail(&in->yaml, item, "format: expected %s%s%s, found \"%.40s\"%s", format,
		                     other ? " or " : "", other ? other : "", *found,
		                     strcmp(*found, "torch") == 0
		                         ? ", which is a pickle: save the array with numpy.save"
		                         : "");
	return HG_OK;
}

/* ---- the graph ---- */

static hg_status add_edge(const struct lines *lines, const char *line, void *to)
{
	static const char expected[] = "expected two node numbers, without a header";
	struct hg__coo *coo = to;
	const char *at = line;
	int64_t node[2] = {0, 0};
	for (int k = 0; k < 2; k++) {
		HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, &node[k]));
		if (node[k] < 0 || node[k] >= coo->rows)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": node %" PRId64 ", expected 0 .. %" PRId64,
			                     lines->path, lines->number, node[k], coo->rows - 1);
	}
	if (*at)
		return hg__lines_fail(lines, expected, line);
	return hg__coo_add(coo, (int32_t)node[1], (int32_t)node[0], 1.0f, lines->message);
}

/* An array [2, edges]. */
static hg_status read_array(const struct hg__graphbolt *in, const char *path, struct hg__coo *coo)
{
	struct npy a;
	HG__TRY(hg__npy_open_part(&in->folder, path, &a));
	hg_status status = HG_OK;
	if (a.rank != 2 || a.dim[0] != 2)
		status =
		    hg__data_fail(in->message, HG_ERR_FORMAT,
		                  "%s: has %" PRId64 " %s, expected 2: sources and destinations", a.where,
		                  a.rank == 2 ? a.dim[0] : a.rank, a.rank == 2 ? "rows" : "dimension");
	if (status == HG_OK)
		status = hg__npy_read_i32(&a, 0, coo->rows - 1, &coo->col);
	if (status == HG_OK)
		status = hg__coo_split_pairs(coo, a.dim[1], a.fortran, in->message);
	hg__npy_close(&a);
	return status;
}

/* Features of edges have a row for each edge of the file. */
static hg_status read_edge_features(const struct hg__graphbolt *in, int item, const char *shown,
                                    const struct hg__coo *coo)
{
	struct npy a;
	struct hg__edge_data list = {.edges = coo->m};
	const char *path = NULL, *format = NULL;
	HG__TRY(hg__graphbolt_path(in, item, "numpy", NULL, &path, &format));
	HG__TRY(hg__npy_open_part(&in->folder, path, &a));
	hg_status status = HG_OK;
	if (a.dim[0] != coo->m)
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: has %" PRId64 " rows, but there are %" PRId64 " edges", a.where,
		                       a.dim[0], coo->m);
	list.features = a.rank == 2 ? a.dim[1] : 1;
	if (status == HG_OK && list.features > 0)
		status = hg__npy_read_f32(&a, &list.feat);
	if (status == HG_OK && list.features > 0)
		status = hg__import_edge_rows(&in->config, shown, &list, coo->origin, in->d, in->message);
	hg__edge_data_free(&list);
	hg__npy_close(&a);
	return status;
}

static hg_status read_list(const struct hg__graphbolt *in, int edges, const char **path,
                           struct hg__coo *coo)
{
	const char *format = NULL;
	HG__TRY(hg__graphbolt_path(in, edges, "csv", "numpy", path, &format));
	if (strcmp(format, "numpy") == 0)
		return read_array(in, *path, coo);
	HG__TRY(hg__coo_reserve(coo, 1024, 0, in->message));
	return hg__folder_read(&in->folder, *path, add_edge, coo);
}

/* `features` are those of the edges, or 0. */
static hg_status read_edges(const struct hg__graphbolt *in, int edges, int nodes, int features)
{
	struct hg__coo coo = {.rows = in->d->nodes, .cols = in->d->nodes, .keep_origin = features > 0};
	const char *path = NULL;
	char shown[HG_DATA_MESSAGE] = "";
	hg_status status = read_list(in, edges, &path, &coo);
	if (status == HG_OK && !hg__nodes_plausible(coo.rows, coo.m))
		status = hg__yaml_fail(&in->yaml, nodes,
		                       "num: %" PRId64 " nodes for %" PRId64 " edges: not a graph",
		                       coo.rows, coo.m);
	if (status == HG_OK)
		status = hg__coo_to_graph(&coo, HG__MERGE_MAX, in->d, in->message);
	if (status == HG_OK) {
		hg__folder_show(&in->folder, path, shown);
		hg__import_note_merged(&in->config, shown, coo.m, in->d->edges, 0);
	}
	if (status == HG_OK && features > 0)
		status = read_edge_features(in, features, shown, &coo);
	hg__coo_free(&coo);
	return status;
}

static hg_status read_graph(const struct hg__graphbolt *in, int features)
{
	int graph = 0, nodes = 0, edges = 0, topology = 0, of_sampling = 0;
	HG__TRY(hg__yaml_get(&in->yaml, 0, "graph_topology", YAML_MAPPING_NODE, 0, &topology));
	HG__TRY(hg__yaml_get(&in->yaml, 0, "graph", YAML_MAPPING_NODE, topology == 0, &graph));
	if (graph == 0)
		return hg__yaml_fail(&in->yaml, topology,
		                     "graph_topology is a file of torch, a pickle, which is not read: give "
		                     "the folder that it was made from, whose metadata.yaml has the key "
		                     "graph");
	HG__TRY(hg__yaml_get(&in->yaml, graph, "feature_data", YAML_SEQUENCE_NODE, 0, &of_sampling));
	if (of_sampling > 0)
		hg__import_note(&in->config,
		                "%s: the feature_data of the graph, for sampling, are not read",
		                in->yaml.path);
	HG__TRY(hg__yaml_only(&in->yaml, graph, "nodes", &nodes));
	HG__TRY(hg__yaml_whole(&in->yaml, nodes, "num", 1, &in->d->nodes));
	if (in->d->nodes > INT32_MAX)
		return hg__yaml_fail(&in->yaml, nodes,
		                     "num: %" PRId64 " nodes, at most 2147483647 are possible",
		                     in->d->nodes);
	HG__TRY(hg__yaml_only(&in->yaml, graph, "edges", &edges));
	return read_edges(in, edges, nodes, features);
}

/* ---- the features ---- */

/* The features of a domain, node or edge, in the list feature_data: the ones that are called feat,
 * or the only ones. */
static hg_status choose_features(const struct hg__graphbolt *in, int list, const char *wanted,
                                 int *chosen)
{
	const int count = hg__yaml_count(&in->yaml, list);
	int found = 0, called_feat = 0;
	*chosen = 0;
	for (int k = 0; k < count; k++) {
		const int item = hg__yaml_item(&in->yaml, list, k);
		const char *domain = NULL, *name = NULL;
		HG__TRY(hg__yaml_text(&in->yaml, item, "domain", 1, &domain));
		HG__TRY(hg__yaml_text(&in->yaml, item, "name", 1, &name));
		if (strcmp(domain, "node") != 0 && strcmp(domain, "edge") != 0)
			return hg__yaml_fail(&in->yaml, item, "domain: expected node or edge, found \"%.40s\"",
			                     domain);
		if (strcmp(domain, wanted) != 0)
			continue;
		found++;
		if (strcmp(name, "feat") == 0)
			called_feat = item;
		*chosen = item;
	}
	*chosen = called_feat > 0 ? called_feat : found == 1 ? *chosen : 0;
	return HG_OK;
}

static hg_status note_unread(const struct hg__graphbolt *in, int list, int of_nodes, int of_edges)
{
	for (int k = 0; k < hg__yaml_count(&in->yaml, list); k++) {
		const int item = hg__yaml_item(&in->yaml, list, k);
		const char *domain = NULL, *name = NULL;
		if (item == of_nodes || item == of_edges)
			continue;
		HG__TRY(hg__yaml_text(&in->yaml, item, "domain", 1, &domain));
		HG__TRY(hg__yaml_text(&in->yaml, item, "name", 1, &name));
		hg__import_note(&in->config,
		                "%s: the %.40s features %.80s are not read: of several, those that are "
		                "called feat are",
		                in->yaml.path, domain, name);
	}
	return HG_OK;
}

static hg_status read_features(const struct hg__graphbolt *in, int chosen)
{
	struct npy a;
	hg_dataset *d = in->d;
	const char *path = NULL, *format = NULL;
	if (chosen == 0)
		return HG_OK;
	HG__TRY(hg__graphbolt_path(in, chosen, "numpy", NULL, &path, &format));
	HG__TRY(hg__npy_open_part(&in->folder, path, &a));
	hg_status status = HG_OK;
	if (a.dim[0] != d->nodes)
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: has %" PRId64 " rows, but the graph has %" PRId64 " nodes",
		                       a.where, a.dim[0], d->nodes);
	if (status == HG_OK)
		status = hg__npy_read_finite(&a, (float **)&d->feat);
	d->features = d->feat ? a.rank == 2 ? a.dim[1] : 1 : 0;
	hg__npy_close(&a);
	return status;
}

/* ---- all of it ---- */

static hg_status read_set(struct hg__graphbolt *in, const char *path)
{
	const char *name = NULL;
	int features = 0, of_nodes = 0, of_edges = 0;
	HG__TRY(hg__yaml_open(path, "metadata.yaml", in->config.progress, &in->folder, &in->yaml,
	                      in->message));
	HG__TRY(hg__yaml_text(&in->yaml, 0, "dataset_name", 0, &name));
	HG__TRY(name ? hg__data_copy_text(name, &in->d->name, in->message)
	             : hg__folder_name(&in->folder, in->d));
	HG__TRY(hg__yaml_get(&in->yaml, 0, "feature_data", YAML_SEQUENCE_NODE, 0, &features));
	HG__TRY(choose_features(in, features, "node", &of_nodes));
	HG__TRY(choose_features(in, features, "edge", &of_edges));
	HG__TRY(note_unread(in, features, of_nodes, of_edges));
	HG__TRY(read_graph(in, of_edges));
	HG__TRY(read_features(in, of_nodes));
	return hg__graphbolt_tasks(in);
}

static hg_status read_all(struct hg__import *run)
{
	struct hg__graphbolt in = {.config = run->config, .d = run->d, .message = run->message};
	const hg_status status = read_set(&in, run->path);
	hg__yaml_close(&in.yaml);
	hg__folder_close(&in.folder);
	return status;
}

hg_status hg__import_graphbolt(const char *const *paths, int count, const hg_import_config *config,
                               hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
