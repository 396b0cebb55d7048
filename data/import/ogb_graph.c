/* The counts, edges and features of an OGB dataset, from csv files or from arrays. Features of
 * edges may be integers, such as types of bonds; they are attributes like others. */
#include <inttypes.h>
#include <stdlib.h>

#include "import/edge_rows.h"
#include "import/ogb.h"

/* Where the features of nodes or edges are, and what has a row of them. */
struct features {
	const char *key, *file, *row;
};
static const struct features node_features = {"node_feat", "raw/node-feat.csv.gz", "node"},
                             edge_features = {"edge_feat", "raw/edge-feat.csv.gz", "edge"};

/* ---- the counts ---- */

static hg_status read_count_files(struct hg__ogb *in, int64_t counted[2])
{
	static const char *const files[] = {"raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz"};
	int64_t **const to[] = {&in->nodes, &in->edges};
	for (int k = 0; k < 2; k++) {
		struct hg__column c = {0};
		const hg_status status = hg__folder_read(&in->folder, files[k], hg__column_add, &c);
		*to[k] = c.at;
		counted[k] = c.count;
		HG__TRY(status);
	}
	return HG_OK;
}

static hg_status read_count_arrays(struct hg__ogb *in, int64_t counted[2])
{
	static const char *const keys[] = {"num_nodes_list", "num_edges_list"};
	int64_t **const to[] = {&in->nodes, &in->edges};
	struct npz npz;
	char *path = NULL;
	hg_status status = hg__ogb_arrays(in, "raw/data.npz", &path, &npz);
	for (int k = 0; status == HG_OK && k < 2; k++) {
		struct npy a;
		status = hg__npy_open(&npz, keys[k], 1, &a);
		if (status < 0)
			break;
		counted[k] = a.elements;
		status = hg__npy_read_i64(&a, 0, INT64_MAX, to[k]);
		hg__npy_close(&a);
	}
	hg__npz_close(&npz);
	free(path);
	return status;
}

hg_status hg__ogb_counts(struct hg__ogb *in)
{
	int64_t counted[2] = {0, 0};
	HG__TRY((in->packed ? read_count_arrays : read_count_files)(in, counted));
	in->graphs = counted[0];
	if (counted[0] != counted[1])
		return hg__data_fail(in->message, HG_ERR_FORMAT,
		                     "%s: raw: the numbers of nodes are those of %" PRId64
		                     " graphs, the numbers of edges those of %" PRId64,
		                     in->path, counted[0], counted[1]);
	for (int64_t g = 0; g < in->graphs; g++)
		if (in->nodes[g] < 0 || in->edges[g] < 0)
			return hg__data_fail(in->message, HG_ERR_FORMAT,
			                     "%s: raw: graph %" PRId64 " has %" PRId64 " nodes and %" PRId64
			                     " edges",
			                     in->path, g, in->nodes[g], in->edges[g]);
	return HG_OK;
}

/* ---- the edges ---- */

struct edges {
	const struct hg__ogb *in;
	int64_t graph, begin; /* of the next edge; its first node */
	int64_t taken;        /* edges of the graph so far */
	struct hg__coo coo;
};

/* Go to the graph of the next edge; 0: no graph has one. */
static int next_graph(struct edges *e)
{
	while (e->graph < e->in->graphs && e->taken == e->in->edges[e->graph]) {
		e->begin += e->in->nodes[e->graph++];
		e->taken = 0;
	}
	return e->graph < e->in->graphs;
}

static hg_status add_edge(const struct lines *lines, const char *line, void *to)
{
	static const char expected[] = "expected two node numbers";
	struct edges *e = to;
	const char *at = line;
	int64_t node[2] = {0, 0};
	if (!next_graph(e))
		return hg__lines_fail(lines, "more edges than num-edge-list counts", line);
	for (int k = 0; k < 2; k++) {
		HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, &node[k]));
		if (node[k] < 0 || node[k] >= e->in->nodes[e->graph])
			return hg__data_fail(
			    lines->message, HG_ERR_FORMAT,
			    "%s:%" PRId64 ": node %" PRId64 ", graph %" PRId64 " has %" PRId64 " nodes, from 0",
			    lines->path, lines->number, node[k], e->graph, e->in->nodes[e->graph]);
	}
	if (*at)
		return hg__lines_fail(lines, expected, line);
	e->taken++;
	return hg__coo_add(&e->coo, (int32_t)(e->begin + node[1]), (int32_t)(e->begin + node[0]), 1.0f,
	                   lines->message);
}

static hg_status read_edge_file(const struct hg__ogb *in, struct edges *e)
{
	e->coo.keep_origin = hg__folder_has_part(&in->folder, edge_features.file);
	HG__TRY(hg__coo_reserve(&e->coo, 1024, 0, in->message));
	HG__TRY(hg__folder_read(&in->folder, "raw/edge.csv.gz", add_edge, e));
	if (next_graph(e))
		return hg__data_fail(in->message, HG_ERR_FORMAT,
		                     "%s: raw/edge.csv.gz: ends after %" PRId64 " of %" PRId64
		                     " edges of graph %" PRId64,
		                     in->path, e->taken, in->edges[e->graph], e->graph);
	return HG_OK;
}

/* The nodes of every graph are numbered from 0. */
static hg_status shift_nodes(const struct hg__ogb *in, struct edges *e, const char *path)
{
	for (int64_t k = 0; k < e->coo.m; k++) {
		if (!next_graph(e))
			return hg__data_fail(in->message, HG_ERR_FORMAT,
			                     "%s: member edge_index.npy: more edges than num_edges_list counts",
			                     path);
		int32_t *const node[] = {&e->coo.col[k], &e->coo.row[k]};
		for (int s = 0; s < 2; s++) {
			if (*node[s] >= in->nodes[e->graph])
				return hg__data_fail(in->message, HG_ERR_FORMAT,
				                     "%s: member edge_index.npy: edge %" PRId64 " has node %" PRId32
				                     ", graph %" PRId64 " has %" PRId64 " nodes, from 0",
				                     path, k, *node[s], e->graph, in->nodes[e->graph]);
			*node[s] = (int32_t)(e->begin + *node[s]);
		}
		e->taken++;
	}
	if (next_graph(e))
		return hg__data_fail(in->message, HG_ERR_FORMAT,
		                     "%s: member edge_index.npy: fewer edges than num_edges_list counts",
		                     path);
	return HG_OK;
}

static hg_status read_edge_array(const struct hg__ogb *in, struct edges *e)
{
	struct npz npz;
	struct npy a = {.bytes.fd = -1};
	char *path = NULL;
	hg_status status = hg__ogb_arrays(in, "raw/data.npz", &path, &npz);
	if (status == HG_OK)
		status = hg__npy_open(&npz, "edge_index", 2, &a);
	e->coo.keep_origin = status == HG_OK && hg__npz_has(&npz, edge_features.key);
	if (status == HG_OK && a.dim[0] != 2)
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: has %" PRId64 " rows, expected 2: sources and destinations",
		                       a.where, a.dim[0]);
	if (status == HG_OK)
		status = hg__npy_read_i32(&a, 0, INT32_MAX - 1, &e->coo.col);
	if (status == HG_OK)
		status = hg__coo_split_pairs(&e->coo, a.dim[1], a.fortran, in->message);
	hg__npy_close(&a);
	hg__npz_close(&npz);
	if (status == HG_OK)
		status = shift_nodes(in, e, path);
	free(path);
	return status;
}

hg_status hg__ogb_graph(const struct hg__ogb *in, hg_dataset *d)
{
	struct edges e = {.in = in, .coo = {.rows = d->nodes, .cols = d->nodes}};
	hg_status status = (in->packed ? read_edge_array : read_edge_file)(in, &e);
	if (status == HG_OK)
		status = hg__coo_to_graph(&e.coo, HG__MERGE_MAX, d, in->message);
	if (status == HG_OK)
		hg__import_note_merged(&in->config, in->path, e.coo.m, d->edges, 0);
	if (status == HG_OK && e.coo.origin)
		status = hg__ogb_edge_features(in, e.coo.origin, e.coo.m, d);
	hg__coo_free(&e.coo);
	return status;
}

/* ---- the features ---- */

static hg_status expect_rows(const struct hg__ogb *in, const char *what, const char *row,
                             int64_t found, int64_t expected)
{
	return found == expected
	           ? HG_OK
	           : hg__data_fail(in->message, HG_ERR_FORMAT,
	                           "%s: %s: %" PRId64 " rows, expected %" PRId64 ", one for each %s",
	                           in->path, what, found, expected, row);
}

static hg_status read_feature_array(const struct hg__ogb *in, const struct features *f,
                                    int64_t rows, float **x, int64_t *width)
{
	struct npz npz;
	struct npy a = {.bytes.fd = -1};
	char *path = NULL;
	hg_status status = hg__ogb_arrays(in, "raw/data.npz", &path, &npz);
	if (status == HG_OK && hg__npz_has(&npz, f->key)) {
		status = hg__npy_open(&npz, f->key, 2, &a);
		if (status == HG_OK)
			status = expect_rows(in, f->key, f->row, a.dim[0], rows);
		if (status == HG_OK)
			status = hg__npy_read_finite(&a, x);
		*width = *x ? a.dim[1] : 0;
		hg__npy_close(&a);
	}
	hg__npz_close(&npz);
	free(path);
	return status;
}

static hg_status read_feature_file(const struct hg__ogb *in, const struct features *f, int64_t rows,
                                   float **x, int64_t *width)
{
	struct hg__numbers n = {0};
	if (!hg__folder_has_part(&in->folder, f->file))
		return HG_OK;
	hg_status status = hg__folder_read(&in->folder, f->file, hg__numbers_add, &n);
	if (status == HG_OK)
		status = expect_rows(in, f->file, f->row, n.rows, rows);
	*x = n.at;
	*width = n.at ? n.width : 0;
	return status;
}

/* *x [rows, *width] := the features, or NULL. The caller frees it after a failure, too. */
static hg_status read_features(const struct hg__ogb *in, const struct features *f, int64_t rows,
                               float **x, int64_t *width)
{
	return (in->packed ? read_feature_array : read_feature_file)(in, f, rows, x, width);
}

hg_status hg__ogb_features(const struct hg__ogb *in, hg_dataset *d)
{
	return read_features(in, &node_features, d->nodes, (float **)&d->feat, &d->features);
}

hg_status hg__ogb_edge_features(const struct hg__ogb *in, const int64_t *origin, int64_t listed,
                                hg_dataset *d)
{
	struct hg__edge_data list = {.edges = listed};
	hg_status status = read_features(in, &edge_features, listed, &list.feat, &list.features);
	if (status == HG_OK && list.features > 0)
		status = hg__import_edge_rows(&in->config, in->path, &list, origin, d, in->message);
	hg__edge_data_free(&list);
	return status;
}
