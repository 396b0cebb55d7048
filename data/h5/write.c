/* Write a dataset to an HDF5 file; FORMAT.md has the layout. */
#include "atomic.h"
#include "graph/edge_data.h"
#include "h5/binsparse.h"
#include "seal.h"

static int is_standardized(const hg_dataset *d)
{
	return d->feat_mean && d->features > 0;
}

/* Has it something that version 1.1 of the format added? */
static int is_newer(const hg_dataset *d)
{
	return hg__has_edge_data(d) || is_standardized(d) || d->class_name || d->node_name;
}

static hg_status write_class_names(const struct h5 *h5, const hg_dataset *d)
{
	return d->class_name ? hg__h5_write(h5, h5->file, "class_names", H5_U8, d->class_name_bytes, 0,
	                                    d->class_name, NULL)
	                     : HG_OK;
}

static hg_status write_identity(const struct h5 *h5, const hg_dataset *d)
{
	HG__TRY(hg__h5_text_write(h5, h5->file, "format", "halfgraph"));
	/* files without what version 1.1 added stay what they were before */
	HG__TRY(hg__h5_text_write(h5, h5->file, "format_version", is_newer(d) ? "1.1" : "1.0"));
	if (d->name)
		HG__TRY(hg__h5_text_write(h5, h5->file, "name", d->name));
	return hg__h5_integer_write(h5, h5->file, "num_classes", d->classes);
}

static hg_status write_graph(const struct h5 *h5, const hg_dataset *d)
{
	const struct hg__sparse m = {.rows = d->nodes,
	                             .cols = d->nodes,
	                             .m = d->edges,
	                             .rowptr = d->rowptr,
	                             .col = d->col,
	                             .value = d->weight};
	return hg__binsparse_write(h5, h5->file, "graph", &m, "destination node", "source node");
}

static hg_status write_edges(const struct h5 *h5, const hg_dataset *d)
{
	hid_t edges;
	if (!hg__has_edge_data(d))
		return HG_OK;
	HG__TRY(hg__h5_group_create(h5, h5->file, "edges", &edges));
	hg_status status = HG_OK;
	if (d->edge_feat)
		status =
		    hg__h5_write(h5, edges, "feat", H5_F32, d->edges, d->edge_features, d->edge_feat, NULL);
	if (status == HG_OK && d->edge_label)
		status = hg__h5_write(h5, edges, "label", H5_I32, d->edges, 0, d->edge_label, NULL);
	H5Gclose(edges);
	return status == HG_OK && d->edge_label
	           ? hg__h5_integer_write(h5, h5->file, "num_edge_classes", d->edge_classes)
	           : status;
}

static hg_status write_dense(const struct h5 *h5, hid_t nodes, const hg_dataset *d)
{
	hid_t feat = H5I_INVALID_HID;
	HG__TRY(hg__h5_write(h5, nodes, "feat", d->feat_dtype == HG_F16 ? H5_HALF : H5_F32, d->nodes,
	                     d->features, d->feat, &feat));
	hg_status status = hg__h5_real_write(h5, feat, "amax", hg__data_amax(d));
	if (H5Dclose(feat) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, "feat", "cannot be closed");
	return status;
}

static hg_status write_features(const struct h5 *h5, hid_t nodes, const hg_dataset *d)
{
	if (d->feat && d->features > 0)
		return write_dense(h5, nodes, d);
	if (!d->feat_rowptr)
		return HG_OK;
	const struct hg__sparse m = {.rows = d->nodes,
	                             .cols = d->features,
	                             .m = d->feat_rowptr[d->nodes],
	                             .rowptr = d->feat_rowptr,
	                             .col = d->feat_col,
	                             .value = d->feat_value};
	return hg__binsparse_write(h5, nodes, "feat_csr", &m, "node", "feature");
}

static hg_status write_targets(const struct h5 *h5, hid_t group, const hg_dataset *d, int64_t n)
{
	hid_t target = H5I_INVALID_HID;
	HG__TRY(hg__h5_write(h5, group, "target", H5_F32, n, d->targets, d->target, &target));
	hg_status status =
	    d->target_names ? hg__h5_text_write(h5, target, "names", d->target_names) : HG_OK;
	if (H5Dclose(target) < 0 && status == HG_OK)
		status = hg__h5_fail(h5, HG_ERR_IO, "target", "cannot be closed");
	return status;
}

static hg_status write_standardization(const struct h5 *h5, hid_t nodes, const hg_dataset *d)
{
	HG__TRY(hg__h5_write(h5, nodes, "feat_mean", H5_F64, d->features, 0, d->feat_mean, NULL));
	return hg__h5_write(h5, nodes, "feat_deviation", H5_F64, d->features, 0, d->feat_deviation,
	                    NULL);
}

static hg_status write_owned(const struct h5 *h5, hid_t group, const hg_dataset *d)
{
	const int64_t n = hg__data_labelled(d);
	const struct {
		const char *name;
		enum h5_type type;
		const void *values;
	} arrays[] = {{"label", H5_I32, d->label},
	              {"train_mask", H5_U8, d->train_mask},
	              {"val_mask", H5_U8, d->val_mask},
	              {"test_mask", H5_U8, d->test_mask},
	              {"fold", H5_I32, d->fold}};
	for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++)
		if (arrays[k].values)
			HG__TRY(hg__h5_write(h5, group, arrays[k].name, arrays[k].type, n, 0, arrays[k].values,
			                     NULL));
	return d->target ? write_targets(h5, group, d, n) : HG_OK;
}

static hg_status write_nodes(const struct h5 *h5, const hg_dataset *d)
{
	hid_t nodes;
	HG__TRY(hg__h5_group_create(h5, h5->file, "nodes", &nodes));
	hg_status status = write_features(h5, nodes, d);
	if (status == HG_OK && is_standardized(d))
		status = write_standardization(h5, nodes, d);
	if (status == HG_OK && d->orig_id)
		status = hg__h5_write(h5, nodes, "orig_id", H5_I64, d->nodes, 0, d->orig_id, NULL);
	if (status == HG_OK && d->order)
		status = hg__h5_write(h5, nodes, "order", H5_I32, d->nodes, 0, d->order, NULL);
	if (status == HG_OK && d->node_name)
		status = hg__h5_write(h5, nodes, "names", H5_U8, d->node_name_bytes, 0, d->node_name, NULL);
	if (status == HG_OK && !d->graph_ptr)
		status = write_owned(h5, nodes, d);
	H5Gclose(nodes);
	return status;
}

static hg_status write_batch(const struct h5 *h5, const hg_dataset *d)
{
	hid_t batch, graphs;
	if (!d->graph_ptr)
		return HG_OK;
	HG__TRY(hg__h5_group_create(h5, h5->file, "batch", &batch));
	const hg_status status =
	    hg__h5_write(h5, batch, "graph_ptr", H5_I64, d->graphs + 1, 0, d->graph_ptr, NULL);
	H5Gclose(batch);
	HG__TRY(status);
	HG__TRY(hg__h5_group_create(h5, h5->file, "graphs", &graphs));
	const hg_status owned = write_owned(h5, graphs, d);
	H5Gclose(graphs);
	return owned;
}

static hg_status write_all(const struct h5 *h5, const hg_dataset *d)
{
	HG__TRY(write_identity(h5, d));
	HG__TRY(write_class_names(h5, d));
	HG__TRY(write_graph(h5, d));
	HG__TRY(write_edges(h5, d));
	HG__TRY(write_nodes(h5, d));
	return write_batch(h5, d);
}

static hg_status write_into(const hg_dataset *d, int fd, const char *path,
                            const hg_progress *progress, char *message)
{
	struct h5 h5;
	hg_status status = hg__h5_create(&h5, fd, path, 0, message);
	h5.progress = progress;
	if (status == HG_OK)
		status = write_all(&h5, d);
	if (status < 0)
		h5.message = NULL; /* the first failure is the one to report */
	const hg_status closed = hg__h5_close(&h5);
	return status < 0 ? status : closed;
}

hg_status hg_dataset_write_watched(const hg_dataset *dataset, const char *path,
                                   const hg_progress *progress, char *message)
{
	struct hg__atomic file;
	if (!dataset || !path)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_write: %s is NULL",
		                     dataset ? "path" : "dataset");
	HG__TRY(hg_dataset_check(dataset, path, message));
	HG__TRY(hg__atomic_begin(&file, path, message));
	hg_status status = write_into(dataset, file.fd, path, progress, message);
	if (status == HG_OK)
		status = hg__seal_write(file.fd, path, progress, message);
	return hg__atomic_end(&file, status);
}

hg_status hg_dataset_write(const hg_dataset *dataset, const char *path, char *message)
{
	return hg_dataset_write_watched(dataset, path, NULL, message);
}
