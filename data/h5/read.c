/* Read a dataset from an HDF5 file; FORMAT.md has the layout. Everything is checked before it is
 * used; the caller gets a dataset that has passed hg_dataset_check. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/binsparse.h"

static hg_status read_identity(const struct h5 *h5, hg_dataset *d)
{
	char *format = NULL, *version = NULL;
	hg_status status = hg__h5_text(h5, h5->file, "format", "/", &format);
	if (status == HG_OK)
		status = hg__h5_text(h5, h5->file, "format_version", "/", &version);
	if (status == HG_OK && (!format || strcmp(format, "halfgraph") != 0))
		status = hg__data_fail(
		    h5->message, HG_ERR_FORMAT,
		    "%s: /: attribute format is %.64s, expected halfgraph: not a HalfGraph dataset",
		    h5->path, format ? format : "missing");
	if (status == HG_OK && (!version || strncmp(version, "1.", 2) != 0))
		status = hg__data_fail(h5->message, HG_ERR_FORMAT,
		                       "%s: /: attribute format_version is %.64s; this reader knows 1.x",
		                       h5->path, version ? version : "missing");
	free(format);
	free(version);
	HG__TRY(status);
	return hg__h5_text(h5, h5->file, "name", "/", &d->name);
}

static hg_status read_graph(const struct h5 *h5, hg_dataset *d)
{
	struct hg__sparse m;
	HG__TRY(hg__binsparse_read(h5, h5->file, "graph", "/graph", &m));
	d->nodes = m.rows;
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	d->weight = m.value;
	return m.rows == m.cols ? HG_OK
	                        : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                                        "%s: /graph: is %" PRId64 " x %" PRId64
	                                        ", expected as many rows as columns",
	                                        h5->path, m.rows, m.cols);
}

static hg_status expect_length(const struct h5 *h5, const struct h5_array *a, int64_t expected,
                               const char *what)
{
	if (a->dim[0] == expected)
		return HG_OK;
	return hg__data_fail(h5->message, HG_ERR_FORMAT,
	                     "%s: %s: has %" PRId64 " rows, but there are %" PRId64 " %s", h5->path,
	                     a->where, a->dim[0], expected, what);
}

static hg_status read_edge_features(const struct h5 *h5, hid_t edges, hg_dataset *d)
{
	struct h5_array a;
	if (!hg__h5_has(edges, "feat"))
		return HG_OK;
	HG__TRY(hg__h5_array(h5, edges, "feat", "/edges/feat", 2, &a));
	hg_status status = expect_length(h5, &a, d->edges, "edges");
	if (status == HG_OK && a.dim[1] > 0) {
		d->edge_features = a.dim[1];
		status = hg__h5_read_f32(h5, &a, &d->edge_feat);
	}
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_edge_labels(const struct h5 *h5, hid_t edges, hg_dataset *d)
{
	struct h5_array a;
	int has_classes = 0;
	int64_t classes = 0;
	if (!hg__h5_has(edges, "label"))
		return HG_OK;
	HG__TRY(hg__h5_integer(h5, h5->file, "num_edge_classes", "/", &classes, &has_classes));
	if (has_classes && (classes < 0 || classes > INT32_MAX))
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: /: attribute num_edge_classes is %" PRId64
		                     ", not in [0, 2147483647]",
		                     h5->path, classes);
	d->edge_classes = (int32_t)classes;
	HG__TRY(hg__h5_array(h5, edges, "label", "/edges/label", 1, &a));
	hg_status status = expect_length(h5, &a, d->edges, "edges");
	if (status == HG_OK)
		/* hg_dataset_check compares the labels with num_edge_classes */
		status = hg__h5_read_i32(h5, &a, INT32_MIN, INT32_MAX - 1, &d->edge_label);
	if (status == HG_OK && !has_classes)
		status = hg__data_count_edge_classes(d, h5->path, "add the attribute num_edge_classes",
		                                     h5->message);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_edges(const struct h5 *h5, hg_dataset *d)
{
	hid_t edges;
	if (!hg__h5_has(h5->file, "edges"))
		return HG_OK;
	HG__TRY(hg__h5_group(h5, h5->file, "edges", "/edges", &edges));
	hg_status status = read_edge_features(h5, edges, d);
	if (status == HG_OK)
		status = read_edge_labels(h5, edges, d);
	H5Gclose(edges);
	return status;
}

static hg_status read_dense(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	struct h5_array a;
	HG__TRY(hg__h5_array(h5, nodes, "feat", "/nodes/feat", 2, &a));
	hg_status status = expect_length(h5, &a, d->nodes, "nodes");
	d->features = a.dim[1];
	d->feat_dtype = a.is_half ? HG_F16 : HG_F32;
	if (status == HG_OK)
		status = a.is_half ? hg__h5_read_half(h5, &a, (hg_half **)&d->feat)
		                   : hg__h5_read_f32(h5, &a, (float **)&d->feat);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_sparse(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	struct hg__sparse m;
	HG__TRY(hg__binsparse_read(h5, nodes, "feat_csr", "/nodes/feat_csr", &m));
	d->features = m.cols;
	d->feat_rowptr = m.rowptr;
	d->feat_col = m.col;
	d->feat_value = m.value;
	if (m.rows == d->nodes)
		return HG_OK;
	return hg__data_fail(h5->message, HG_ERR_FORMAT,
	                     "%s: /nodes/feat_csr: has %" PRId64 " rows, but there are %" PRId64
	                     " nodes",
	                     h5->path, m.rows, d->nodes);
}

static hg_status read_column_numbers(const struct h5 *h5, hid_t nodes, const char *name,
                                     const char *where, const hg_dataset *d, double **to)
{
	struct h5_array a;
	HG__TRY(hg__h5_array(h5, nodes, name, where, 1, &a));
	hg_status status =
	    a.dim[0] == d->features
	        ? hg__h5_read_f64(h5, &a, to)
	        : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                        "%s: %s: has %" PRId64 " elements, but there are %" PRId64 " features",
	                        h5->path, where, a.dim[0], d->features);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_standardization(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	const int mean = hg__h5_has(nodes, "feat_mean"),
	          deviation = hg__h5_has(nodes, "feat_deviation");
	if (!mean && !deviation)
		return HG_OK;
	if (!mean || !deviation)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: /nodes: has feat_%s without feat_%s, expected both", h5->path,
		                     mean ? "mean" : "deviation", mean ? "deviation" : "mean");
	HG__TRY(read_column_numbers(h5, nodes, "feat_mean", "/nodes/feat_mean", d, &d->feat_mean));
	return read_column_numbers(h5, nodes, "feat_deviation", "/nodes/feat_deviation", d,
	                           &d->feat_deviation);
}

static hg_status read_features(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	const int dense = hg__h5_has(nodes, "feat"), sparse = hg__h5_has(nodes, "feat_csr");
	if (dense && sparse)
		return hg__data_fail(h5->message, HG_ERR_FORMAT, "%s: /nodes: has both feat and feat_csr",
		                     h5->path);
	if (dense)
		return read_dense(h5, nodes, d);
	return sparse ? read_sparse(h5, nodes, d) : HG_OK;
}

static hg_status read_orig_id(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	struct h5_array a;
	if (!hg__h5_has(nodes, "orig_id"))
		return HG_OK;
	HG__TRY(hg__h5_array(h5, nodes, "orig_id", "/nodes/orig_id", 1, &a));
	hg_status status = expect_length(h5, &a, d->nodes, "nodes");
	if (status == HG_OK)
		status = hg__h5_read_i64(h5, &a, INT64_MIN, INT64_MAX, &d->orig_id);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_names(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	struct h5_array a;
	if (!hg__h5_has(nodes, "names"))
		return HG_OK;
	HG__TRY(hg__h5_array(h5, nodes, "names", "/nodes/names", 1, &a));
	const hg_status status = hg__h5_read_bytes(h5, &a, &d->node_name);
	d->node_name_bytes = a.dim[0];
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_order(const struct h5 *h5, hid_t nodes, hg_dataset *d)
{
	struct h5_array a;
	if (!hg__h5_has(nodes, "order"))
		return HG_OK;
	HG__TRY(hg__h5_array(h5, nodes, "order", "/nodes/order", 1, &a));
	hg_status status = expect_length(h5, &a, d->nodes, "nodes");
	if (status == HG_OK)
		status = hg__h5_read_i32(h5, &a, 0, d->nodes - 1, &d->order);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_batch(const struct h5 *h5, hg_dataset *d)
{
	hid_t group;
	struct h5_array a;
	if (!hg__h5_has(h5->file, "batch"))
		return HG_OK;
	HG__TRY(hg__h5_group(h5, h5->file, "batch", "/batch", &group));
	hg_status status = hg__h5_array(h5, group, "graph_ptr", "/batch/graph_ptr", 1, &a);
	H5Gclose(group);
	HG__TRY(status);
	d->graphs = a.dim[0] - 1;
	status = a.dim[0] > 0
	             ? hg__h5_read_i64(h5, &a, 0, d->nodes, &d->graph_ptr)
	             : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                             "%s: /batch/graph_ptr: is empty, expected graphs + 1 elements",
	                             h5->path);
	hg__h5_array_close(&a);
	return status;
}

/* The rows that labels and masks belong to: the nodes, or, where there is a batch, the graphs. */
struct owner {
	hid_t group;
	const char *path, *what;
	int64_t count;
};

static hg_status read_labels(const struct h5 *h5, const struct owner *owner, hg_dataset *d)
{
	struct h5_array a;
	char where[128];
	int has_classes = 0;
	int64_t classes = 0;
	HG__TRY(hg__h5_integer(h5, h5->file, "num_classes", "/", &classes, &has_classes));
	if (has_classes && (classes < 0 || classes > INT32_MAX))
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: /: attribute num_classes is %" PRId64 ", not in [0, 2147483647]",
		                     h5->path, classes);
	d->classes = (int32_t)classes;
	if (!hg__h5_has(owner->group, "label"))
		return HG_OK;
	snprintf(where, sizeof where, "%s/label", owner->path);
	HG__TRY(hg__h5_array(h5, owner->group, "label", where, 1, &a));
	hg_status status = expect_length(h5, &a, owner->count, owner->what);
	if (status == HG_OK)
		/* hg_dataset_check compares the labels with num_classes */
		status = hg__h5_read_i32(h5, &a, INT32_MIN, INT32_MAX - 1, &d->label);
	if (status == HG_OK && !has_classes)
		status = hg__data_count_classes(d, h5->path, "add the attribute num_classes", h5->message);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_targets(const struct h5 *h5, const struct owner *owner, hg_dataset *d)
{
	struct h5_array a;
	char where[128];
	if (!hg__h5_has(owner->group, "target"))
		return HG_OK;
	snprintf(where, sizeof where, "%s/target", owner->path);
	HG__TRY(hg__h5_array(h5, owner->group, "target", where, 2, &a));
	hg_status status = expect_length(h5, &a, owner->count, owner->what);
	d->targets = a.dim[1];
	if (status == HG_OK && d->targets > 0)
		status = hg__h5_read_f32(h5, &a, &d->target);
	if (status == HG_OK && d->targets > 0)
		status = hg__h5_text(h5, a.id, "names", where, &d->target_names);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_mask(const struct h5 *h5, const struct owner *owner, const char *name,
                           uint8_t **mask)
{
	struct h5_array a;
	char where[128];
	snprintf(where, sizeof where, "%s/%s", owner->path, name);
	HG__TRY(hg__h5_array(h5, owner->group, name, where, 1, &a));
	hg_status status = expect_length(h5, &a, owner->count, owner->what);
	if (status == HG_OK)
		status = hg__h5_read_mask(h5, &a, mask);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_list(const struct h5 *h5, hid_t split, const char *name, int64_t count,
                           uint8_t **mask)
{
	struct h5_array a;
	char where[128];
	int64_t *index = NULL;
	snprintf(where, sizeof where, "/split/%s", name);
	HG__TRY(hg__h5_array(h5, split, name, where, 1, &a));
	hg_status status = hg__h5_read_i64(h5, &a, 0, count - 1, &index);
	if (status == HG_OK)
		status = hg__data_alloc(count, 1, where, (void **)mask, h5->message);
	if (status == HG_OK) {
		memset(*mask, 0, (size_t)count);
		for (int64_t i = 0; i < a.dim[0]; i++)
			(*mask)[index[i]] = 1;
	}
	free(index);
	hg__h5_array_close(&a);
	return status;
}

/* Each of the three sets is a mask or an index list, but not both. */
static hg_status read_splits(const struct h5 *h5, const struct owner *owner, hg_dataset *d)
{
	const struct {
		const char *mask, *list;
		uint8_t **to;
	} sets[3] = {{"train_mask", "train", &d->train_mask},
	             {"val_mask", "valid", &d->val_mask},
	             {"test_mask", "test", &d->test_mask}};
	hid_t split = H5I_INVALID_HID;
	hg_status status = HG_OK;
	if (hg__h5_has(h5->file, "split"))
		HG__TRY(hg__h5_group(h5, h5->file, "split", "/split", &split));
	for (int k = 0; status == HG_OK && k < 3; k++) {
		const int as_mask = hg__h5_has(owner->group, sets[k].mask),
		          as_list = split >= 0 && hg__h5_has(split, sets[k].list);
		if (as_mask && as_list)
			status = hg__data_fail(h5->message, HG_ERR_FORMAT,
			                       "%s: %s/%s and /split/%s both exist, expected one", h5->path,
			                       owner->path, sets[k].mask, sets[k].list);
		else if (as_mask)
			status = read_mask(h5, owner, sets[k].mask, sets[k].to);
		else if (as_list)
			status = read_list(h5, split, sets[k].list, owner->count, sets[k].to);
	}
	if (split >= 0)
		H5Gclose(split);
	return status;
}

/* hg_dataset_check refuses an empty fold. */
static hg_status read_folds(const struct h5 *h5, const struct owner *owner, hg_dataset *d)
{
	struct h5_array a;
	char where[128];
	if (!hg__h5_has(owner->group, "fold"))
		return HG_OK;
	snprintf(where, sizeof where, "%s/fold", owner->path);
	HG__TRY(hg__h5_array(h5, owner->group, "fold", where, 1, &a));
	hg_status status = expect_length(h5, &a, owner->count, owner->what);
	if (status == HG_OK)
		status = hg__h5_read_i32(h5, &a, INT32_MIN, INT32_MAX - 1, &d->fold);
	if (status == HG_OK)
		hg__data_count_folds(d);
	hg__h5_array_close(&a);
	return status;
}

static hg_status read_owned(const struct h5 *h5, hid_t group, const char *path, const char *what,
                            int64_t count, hg_dataset *d)
{
	const struct owner owner = {group, path, what, count};
	HG__TRY(read_labels(h5, &owner, d));
	HG__TRY(read_targets(h5, &owner, d));
	HG__TRY(read_folds(h5, &owner, d));
	return read_splits(h5, &owner, d);
}

static hg_status read_nodes(const struct h5 *h5, hg_dataset *d)
{
	hid_t nodes;
	if (!hg__h5_has(h5->file, "nodes"))
		return HG_OK;
	HG__TRY(hg__h5_group(h5, h5->file, "nodes", "/nodes", &nodes));
	hg_status status = read_features(h5, nodes, d);
	if (status == HG_OK)
		status = read_standardization(h5, nodes, d);
	if (status == HG_OK)
		status = read_orig_id(h5, nodes, d);
	if (status == HG_OK)
		status = read_order(h5, nodes, d);
	if (status == HG_OK)
		status = read_names(h5, nodes, d);
	if (status == HG_OK && !d->graph_ptr)
		status = read_owned(h5, nodes, "/nodes", "nodes", d->nodes, d);
	H5Gclose(nodes);
	return status;
}

static hg_status read_graphs(const struct h5 *h5, hg_dataset *d)
{
	hid_t graphs;
	if (!d->graph_ptr || !hg__h5_has(h5->file, "graphs"))
		return HG_OK;
	HG__TRY(hg__h5_group(h5, h5->file, "graphs", "/graphs", &graphs));
	const hg_status status = read_owned(h5, graphs, "/graphs", "graphs", d->graphs, d);
	H5Gclose(graphs);
	return status;
}

static hg_status read_all(const struct h5 *h5, hg_dataset *d)
{
	static hg_status (*const parts[])(const struct h5 *, hg_dataset *) = {
	    read_identity, read_graph, read_edges, read_batch, read_nodes, read_graphs};
	for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
		HG__TRY(hg__data_step(h5->progress, "reading", 0, 0, h5->message));
		HG__TRY(parts[k](h5, d));
	}
	return hg__h5_class_names(h5, &d->class_name, &d->class_name_bytes);
}

static hg_status read_file(const char *path, const char *shown, int check,
                           const hg_progress *progress, hg_dataset **dataset, char *message)
{
	struct h5 h5;
	HG__TRY(hg_dataset_new(dataset, message));
	hg_status status = hg__h5_open(&h5, path, shown, message);
	h5.progress = progress;
	if (status == HG_OK)
		status = read_all(&h5, *dataset);
	if (status == HG_OK && check)
		status = hg_dataset_check(*dataset, shown, message);
	if (status == HG_OK && check)
		(*dataset)->feat_amax = hg__data_amax(*dataset);
	const hg_status closed = hg__h5_close(&h5);
	if (status == HG_OK)
		status = closed;
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}

hg_status hg__dataset_read(const char *path, const char *shown, hg_dataset **dataset, char *message)
{
	return read_file(path, shown, 1, NULL, dataset, message);
}

hg_status hg__dataset_read_watched(const char *path, const hg_progress *progress,
                                   hg_dataset **dataset, char *message)
{
	return read_file(path, path, 1, progress, dataset, message);
}

hg_status hg__dataset_read_unchecked(const char *path, hg_dataset **dataset, char *message)
{
	return read_file(path, path, 0, NULL, dataset, message);
}

hg_status hg_dataset_read(const char *path, hg_dataset **dataset, char *message)
{
	if (!path || !dataset)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_read: %s is NULL",
		                     path ? "dataset" : "path");
	return hg__dataset_read(path, path, dataset, message);
}
