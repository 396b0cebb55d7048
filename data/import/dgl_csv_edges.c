/* Read the table of edges of a DGL CSVDataset: the columns src_id and dst_id, feat if there is one,
 * and graph_id in a batch. */
#include <stdlib.h>

#include "graph/coo.h"
#include "import/dgl_csv.h"
#include "import/edge_rows.h"

struct reader {
	const struct hg__dgl *in;
	const struct hg__dgl_table *nodes;
	const char *file;
	const char *name[4]; /* of the columns: source, destination, graph, features */
	int column[4];
	struct hg__coo coo;
	struct hg__numbers feat;
};

static hg_status read_header(const struct lines *lines, const struct hg__csv *header, void *user)
{
	struct reader *r = user;
	for (int k = 0; k < 4; k++) {
		r->column[k] = hg__csv_column(header, r->name[k]);
		if (r->column[k] < 0 && (k < 2 || (k == 2 && r->nodes->graphs)))
			return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s:1: expected the column %.60s",
			                     lines->path, r->name[k]);
	}
	r->coo.keep_origin = r->column[3] >= 0;
	hg__dgl_note_columns(r->in, r->file, header, r->column, 4, "");
	return HG_OK;
}

static hg_status read_row(const struct lines *lines, const struct hg__csv *row, void *user)
{
	struct reader *r = user;
	int64_t node[2] = {0, 0};
	int32_t group = 0;
	if (r->column[2] >= 0)
		HG__TRY(
		    hg__dgl_graph(lines, hg__dgl_trim(row->field[r->column[2]]), r->nodes->graphs, &group));
	for (int k = 0; k < 2; k++) {
		const char *id = hg__dgl_trim(row->field[r->column[k]]);
		node[k] = hg__ids_node(&r->nodes->id, id, group);
		if (node[k] < 0)
			return hg__lines_fail(lines,
			                      r->nodes->graphs ? "expected nodes of the graph"
			                                       : "expected nodes of node_data",
			                      id);
	}
	if (r->column[3] >= 0)
		HG__TRY(hg__numbers_add(lines, hg__dgl_list(row->field[r->column[3]]), &r->feat));
	return hg__coo_add(&r->coo, (int32_t)node[1], (int32_t)node[0], 1.0f, lines->message);
}

static hg_status give_features(struct reader *r, const char *shown)
{
	struct hg__edge_data list = {.edges = r->coo.m, .features = r->feat.width, .feat = r->feat.at};
	r->feat.at = NULL;
	return hg__import_edge_rows(&r->in->config, shown, &list, r->coo.origin, r->in->d,
	                            r->in->message);
}

hg_status hg__dgl_edges(const struct hg__dgl *in, int item, const struct hg__dgl_table *nodes)
{
	static const char *const keys[] = {"src_id_field", "dst_id_field", "graph_id_field"},
	                         *const names[] = {"src_id", "dst_id", "graph_id"};
	struct reader r = {.in = in, .nodes = nodes, .name = {[3] = "feat"}};
	char shown[HG_DATA_MESSAGE];
	HG__TRY(hg__yaml_path(&in->yaml, item, "file_name", &r.file));
	for (int k = 0; k < 3; k++)
		HG__TRY(hg__dgl_column(in, item, keys[k], names[k], &r.name[k]));
	r.coo.rows = r.coo.cols = nodes->id.count;
	hg_status status = hg__coo_reserve(&r.coo, 1024, 0, in->message);
	if (status == HG_OK)
		status = hg__dgl_read(in, r.file,
		                      &(struct hg__csv_reader){read_header, read_row, &r, in->separator});
	if (status == HG_OK)
		status = hg__coo_to_graph(&r.coo, HG__MERGE_MAX, in->d, in->message);
	hg__folder_show(&in->folder, r.file, shown);
	if (status == HG_OK)
		hg__import_note_merged(&in->config, shown, r.coo.m, in->d->edges, 0);
	if (status == HG_OK && r.feat.width > 0)
		status = give_features(&r, shown);
	hg__coo_free(&r.coo);
	free(r.feat.at);
	return status;
}
