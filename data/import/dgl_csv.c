/* Read DGL's CSVDataset: a folder or zip archive with meta.yaml, which names tables with headers:
 *
 *     node_data    node_id, and optionally label, feat, train_mask, val_mask, test_mask
 *     edge_data    src_id, dst_id, and optionally feat
 *     graph_data   graph_id, and optionally label and the masks; then the tables of nodes and edges
 *                  have a column graph_id, too, and the dataset is a batch of graphs in the order
 *                  of this table
 *
 * Ids may be any numbers or texts. The nodes of a graph are numbered by ascending ids, or, if ids
 * are texts, in the order of their table, and the texts are kept as their names. An edge goes from
 * its source to its destination. Several types of nodes or edges are refused. */
#include "import/dgl_csv.h"

#include <stdlib.h>
#include <string.h>

struct tables {
	struct hg__dgl_table nodes, graphs;
};

/* ---- rows in the order of the nodes ---- */

/* rows [count, width] := the rows in this order. */
static hg_status gather(void **rows, size_t width, const int32_t *order, int64_t count,
                        char *message)
{
	char *sorted = NULL;
	if (!*rows)
		return HG_OK;
	HG__TRY(
	    hg__data_alloc(count, width > 0 ? width : 1, "rows of nodes", (void **)&sorted, message));
	for (int64_t k = 0; k < count; k++)
		memcpy(sorted + (size_t)k * width, (char *)*rows + (size_t)order[k] * width, width);
	free(*rows);
	*rows = sorted;
	return HG_OK;
}

static hg_status sort_rows(struct hg__dgl_table *t, char *message)
{
	const int32_t *order = t->id.from;
	const int64_t n = t->id.count;
	int64_t k = 0;
	while (k < n && order[k] == k)
		k++;
	if (k == n)
		return HG_OK;
	HG__TRY(gather((void **)&t->label.at, (size_t)t->label.width * sizeof *t->label.at, order, n,
	               message));
	HG__TRY(gather((void **)&t->feat.at, (size_t)t->feat.width * sizeof *t->feat.at, order, n,
	               message));
	for (int s = 0; s < 3; s++)
		HG__TRY(gather((void **)&t->mask[s], 1, order, n, message));
	return HG_OK;
}

/* ---- the nodes ---- */

/* Texts become the names of the nodes. */
static hg_status set_names(const struct hg__ids *ids, hg_dataset *d, char *message)
{
	HG__TRY(hg__data_alloc(ids->used, 1, "names of nodes", (void **)&d->node_name, message));
	for (int64_t k = 0; k < ids->count; k++) {
		const char *name = ids->text + ids->at[ids->from[k]];
		const size_t bytes = strlen(name) + 1;
		memcpy(d->node_name + d->node_name_bytes, name, bytes);
		d->node_name_bytes += (int64_t)bytes;
	}
	return HG_OK;
}

/* Keep the ids, unless they are 0 .. n-1. */
static hg_status set_ids(const struct hg__dgl *in, const struct hg__dgl_table *t)
{
	const struct hg__ids *ids = &t->id;
	int64_t k = 0;
	if (ids->are_texts)
		return set_names(ids, in->d, in->message);
	while (k < ids->count && ids->at[ids->order[k]] == k)
		k++;
	if (k == ids->count || t->graphs)
		return HG_OK;
	HG__TRY(hg__data_alloc(ids->count, sizeof *in->d->orig_id, "node ids", (void **)&in->d->orig_id,
	                       in->message));
	for (k = 0; k < ids->count; k++)
		in->d->orig_id[k] = ids->at[ids->order[k]];
	return HG_OK;
}

static hg_status set_batch(const struct hg__dgl *in, const struct hg__dgl_table *t)
{
	hg_dataset *d = in->d;
	const int64_t graphs = t->graphs->id.count;
	HG__TRY(hg__data_alloc(graphs + 1, sizeof *d->graph_ptr, "graphs", (void **)&d->graph_ptr,
	                       in->message));
	d->graphs = graphs;
	memset(d->graph_ptr, 0, (size_t)(graphs + 1) * sizeof *d->graph_ptr);
	for (int64_t k = 0; k < t->id.count; k++)
		d->graph_ptr[t->id.group[k] + 1]++;
	for (int64_t g = 0; g < graphs; g++)
		d->graph_ptr[g + 1] += d->graph_ptr[g];
	return HG_OK;
}

static void set_features(struct hg__dgl_table *t, hg_dataset *d)
{
	d->feat = t->feat.at;
	d->features = t->feat.at ? t->feat.width : 0;
	t->feat.at = NULL;
}

/* The labels and splits of the nodes, or of the graphs of a batch. */
static hg_status set_labels(const struct hg__dgl *in, struct hg__dgl_table *t)
{
	uint8_t **const masks[] = {&in->d->train_mask, &in->d->val_mask, &in->d->test_mask};
	for (int s = 0; s < 3; s++) {
		*masks[s] = t->mask[s];
		t->mask[s] = NULL;
	}
	if (!t->label.at)
		return HG_OK;
	return hg__values_take(&t->label, 0, in->yaml.path, "declare num_classes (data/FORMAT.md)",
	                       in->d, in->message);
}

/* ---- all of it ---- */

static hg_status read_separator(struct hg__dgl *in)
{
	const char *version = NULL, *separator = NULL;
	HG__TRY(hg__yaml_text(&in->yaml, 0, "version", 0, &version));
	if (version && strcmp(version, "1.0.0") != 0)
		return hg__yaml_fail(&in->yaml, 0, "version: expected 1.0.0, found \"%.40s\"", version);
	HG__TRY(hg__yaml_text(&in->yaml, 0, "separator", 0, &separator));
	if (separator && (strlen(separator) != 1 || *separator == '"'))
		return hg__yaml_fail(&in->yaml, 0, "separator: expected one character, found \"%.40s\"",
		                     separator);
	in->separator = separator ? *separator : ',';
	return HG_OK;
}

static hg_status read_tables(const struct hg__dgl *in, struct tables *t)
{
	int nodes = 0, edges = 0, graphs = 0;
	HG__TRY(hg__yaml_only(&in->yaml, 0, "node_data", &nodes));
	HG__TRY(hg__yaml_only(&in->yaml, 0, "edge_data", &edges));
	HG__TRY(hg__yaml_get(&in->yaml, 0, "graph_data", YAML_MAPPING_NODE, 0, &graphs));
	if (graphs > 0) {
		HG__TRY(hg__dgl_table(in, graphs, "graph_id_field", "graph_id", &t->graphs));
		t->nodes.graphs = &t->graphs;
	}
	HG__TRY(hg__dgl_table(in, nodes, "node_id_field", "node_id", &t->nodes));
	if (graphs > 0)
		HG__TRY(set_batch(in, &t->nodes));
	HG__TRY(hg__dgl_edges(in, edges, &t->nodes));
	HG__TRY(sort_rows(&t->nodes, in->message));
	HG__TRY(set_ids(in, &t->nodes));
	set_features(&t->nodes, in->d);
	return set_labels(in, graphs > 0 ? &t->graphs : &t->nodes);
}

static hg_status read_set(struct hg__dgl *in, const char *path)
{
	const char *name = NULL;
	struct tables tables = {0};
	HG__TRY(
	    hg__yaml_open(path, "meta.yaml", in->config.progress, &in->folder, &in->yaml, in->message));
	HG__TRY(hg__yaml_text(&in->yaml, 0, "dataset_name", 0, &name));
	HG__TRY(name ? hg__data_copy_text(name, &in->d->name, in->message)
	             : hg__folder_name(&in->folder, in->d));
	HG__TRY(read_separator(in));
	const hg_status status = read_tables(in, &tables);
	hg__dgl_table_free(&tables.nodes);
	hg__dgl_table_free(&tables.graphs);
	return status;
}

static hg_status read_all(struct hg__import *run)
{
	struct hg__dgl in = {.config = run->config, .d = run->d, .message = run->message};
	const hg_status status = read_set(&in, run->path);
	hg__yaml_close(&in.yaml);
	hg__folder_close(&in.folder);
	return status;
}

hg_status hg__import_dgl_csv(const char *const *paths, int count, const hg_import_config *config,
                             hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
