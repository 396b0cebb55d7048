/* Read AnnData files (.h5ad): the nodes are the observations.
 *
 *     obsp/NAME   the graph, [nodes, nodes] sparse: the only one, or "connectivities". Row =
 *                 destination, column = source
 *     X           the features, [nodes, features], sparse or dense; optional
 *     obs/NAME    the labels, if exactly one column is categorical
 *
 * A sparse matrix is a group with the attributes encoding-type (csr_matrix or csc_matrix) and
 * shape, and the arrays data, indices and indptr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"
#include "graph/coo.h"
#include "h5/h5.h"
#include "h5/names.h"
#include "import/run.h"

/* The longest name of a member that is looked at. */
#define NAME_BYTES 256
/* More categories are no classes. */
#define CATEGORIES_MAX 1000000

struct h5ad {
	struct h5 h5;
	hg_import_config config;
	hg_dataset *d;
};

/* ---- matrices ---- */

/* The attribute shape, two integers. */
static hg_status read_shape(const struct h5 *h5, hid_t group, const char *where, int64_t shape[2])
{
	const hid_t attribute = H5Aopen(group, "shape", H5P_DEFAULT);
	const hid_t space = attribute < 0 ? H5I_INVALID_HID : H5Aget_space(attribute),
	            type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
	const int two = space >= 0 && H5Sget_simple_extent_npoints(space) == 2 && type >= 0 &&
	                H5Tget_class(type) == H5T_INTEGER;
	const int ok = two && H5Aread(attribute, H5T_NATIVE_INT64, shape) >= 0;
	hg__h5_release(type);
	hg__h5_release(space);
	hg__h5_release(attribute);
	if (!ok)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: expected an attribute shape of two integers", h5->path,
		                     where);
	if (shape[0] < 0 || shape[0] > INT32_MAX || shape[1] < 0 || shape[1] > INT32_MAX)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: is %" PRId64 " x %" PRId64
		                     ", at most 2147483647 rows and columns are possible",
		                     h5->path, where, shape[0], shape[1]);
	return HG_OK;
}

/* The arrays of a compressed matrix whose major dimension is m->rows. */
static hg_status read_arrays(const struct h5 *h5, hid_t group, const char *where,
                             struct hg__sparse *m)
{
	static const char *const parts[] = {"indptr", "indices", "data"};
	int64_t count[3] = {0, 0, 0};
	for (int k = 0; k < 3; k++) {
		struct h5_array a;
		char name[128];
		snprintf(name, sizeof name, "%.100s/%s", where, parts[k]);
		HG__TRY(hg__h5_array(h5, group, parts[k], name, 1, &a));
		count[k] = a.dim[0];
		const hg_status status = k == 0   ? hg__h5_read_i64(h5, &a, 0, INT64_MAX, &m->rowptr)
		                         : k == 1 ? hg__h5_read_i32(h5, &a, 0, m->cols - 1, &m->col)
		                                  : hg__h5_read_f32(h5, &a, &m->value);
		hg__h5_array_close(&a);
		HG__TRY(status);
	}
	if (count[0] != m->rows + 1)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s/indptr: has %" PRId64 " elements, expected %" PRId64, h5->path,
		                     where, count[0], m->rows + 1);
	HG__TRY(hg__data_check_pointers(h5->path, where, m->rowptr, m->rows, h5->message));
	m->m = m->rowptr[m->rows];
	if (count[1] != m->m || count[2] != m->m)
		return hg__data_fail(h5->message, HG_ERR_FORMAT,
		                     "%s: %s: has %" PRId64 " indices and %" PRId64
		                     " data, expected %" PRId64 " by indptr",
		                     h5->path, where, count[1], count[2], m->m);
	return HG_OK;
}

/* Rows become columns. The old arrays are freed. */
static hg_status turn(struct hg__sparse *m, char *message)
{
	struct hg__coo coo = {.rows = m->cols, .cols = m->rows, .m = m->m, .capacity = m->m};
	HG__TRY(hg__data_alloc(m->m, sizeof *coo.col, "columns", (void **)&coo.col, message));
	for (int64_t j = 0; j < m->rows; j++)
		for (int64_t e = m->rowptr[j]; e < m->rowptr[j + 1]; e++)
			coo.col[e] = (int32_t)j;
	coo.row = m->col;
	coo.value = m->value;
	free(m->rowptr);
	*m = (struct hg__sparse){0};
	return hg__coo_to_sparse(&coo, HG__MERGE_SUM, m, message);
}

/* Read a sparse matrix. On failure the caller frees what is in *m. */
static hg_status read_sparse(const struct h5 *h5, hid_t parent, const char *name, const char *where,
                             struct hg__sparse *m)
{
	hid_t group;
	char *encoding = NULL;
	int64_t shape[2] = {0, 0};
	int by_column = 0;
	HG__TRY(hg__h5_group(h5, parent, name, where, &group));
	hg_status status = hg__h5_text(h5, group, "encoding-type", where, &encoding);
	if (status == HG_OK) {
		by_column = encoding && strcmp(encoding, "csc_matrix") == 0;
		if (!by_column && (!encoding || strcmp(encoding, "csr_matrix") != 0))
			status = hg__data_fail(h5->message, HG_ERR_FORMAT,
			                       "%s: %s: encoding-type is %.64s, expected csr_matrix or "
			                       "csc_matrix",
			                       h5->path, where, encoding ? encoding : "missing");
	}
	free(encoding);
	if (status == HG_OK)
		status = read_shape(h5, group, where, shape);
	*m = (struct hg__sparse){.rows = shape[by_column], .cols = shape[!by_column]};
	if (status == HG_OK)
		status = read_arrays(h5, group, where, m);
	H5Gclose(group);
	if (status == HG_OK)
		status = by_column ? turn(m, h5->message) : hg__sparse_sort(m, h5->message);
	if (status == HG_OK)
		hg__sparse_drop_ones(m);
	return status;
}

/* ---- the graph ---- */

/* The member of obsp that is the graph. */
static hg_status choose_graph(const struct h5ad *in, const struct hg__h5_names *names,
                              const char **chosen)
{
	*chosen = names->count == 1 ? names->name[0] : NULL;
	for (int64_t k = 0; k < names->count && !*chosen; k++)
		if (strcmp(names->name[k], "connectivities") == 0)
			*chosen = names->name[k];
	if (!*chosen)
		return hg__data_fail(in->h5.message, HG_ERR_FORMAT,
		                     "%s: /obsp: holds %" PRId64
		                     " matrices, expected one, or one that is called connectivities",
		                     in->h5.path, names->count);
	if (names->count > 1)
		hg__import_note(&in->config, "%s: of the %" PRId64 " matrices in /obsp, %s is the graph",
		                in->h5.path, names->count, *chosen);
	return HG_OK;
}

static hg_status read_graph(const struct h5ad *in)
{
	struct hg__h5_names names = {0};
	struct hg__sparse m = {0};
	const char *name = NULL;
	char where[NAME_BYTES + 8];
	hid_t group;
	HG__TRY(hg__h5_group(&in->h5, in->h5.file, "obsp", "/obsp", &group));
	hg_status status = hg__h5_members(&in->h5, group, "/obsp", NAME_BYTES, &names);
	if (status == HG_OK)
		status = choose_graph(in, &names, &name);
	if (status == HG_OK) {
		snprintf(where, sizeof where, "/obsp/%s", name);
		status = read_sparse(&in->h5, group, name, where, &m);
	}
	H5Gclose(group);
	in->d->nodes = m.rows;
	in->d->edges = m.m;
	in->d->rowptr = m.rowptr;
	in->d->col = m.col;
	in->d->weight = m.value;
	if (status == HG_OK && m.rows != m.cols)
		status =
		    hg__data_fail(in->h5.message, HG_ERR_FORMAT,
		                  "%s: %s: is %" PRId64 " x %" PRId64 ", expected as many rows as columns",
		                  in->h5.path, where, m.rows, m.cols);
	hg__h5_names_free(&names);
	return status;
}

/* ---- the features ---- */

static hg_status read_features(const struct h5ad *in)
{
	const struct h5 *h5 = &in->h5;
	hg_dataset *d = in->d;
	H5O_info_t info;
	int64_t rows = 0;
	if (!hg__h5_has(h5->file, "X"))
		return HG_OK;
	if (H5Oget_info_by_name(h5->file, "X", &info, H5P_DEFAULT) < 0)
		return hg__h5_fail(h5, HG_ERR_FORMAT, "/X", "cannot be read");
	if (info.type == H5O_TYPE_GROUP) {
		struct hg__sparse m = {0};
		const hg_status status = read_sparse(h5, h5->file, "X", "/X", &m);
		d->features = m.cols;
		d->feat_rowptr = m.rowptr;
		d->feat_col = m.col;
		d->feat_value = m.value;
		rows = m.rows;
		HG__TRY(status);
	} else {
		struct h5_array a;
		HG__TRY(hg__h5_array(h5, h5->file, "X", "/X", 2, &a));
		const hg_status status = hg__h5_read_f32(h5, &a, (float **)&d->feat);
		d->features = a.dim[1];
		rows = a.dim[0];
		hg__h5_array_close(&a);
		HG__TRY(status);
	}
	return rows == d->nodes
	           ? HG_OK
	           : hg__data_fail(h5->message, HG_ERR_FORMAT,
	                           "%s: /X: has %" PRId64 " rows, but there are %" PRId64 " nodes",
	                           h5->path, rows, d->nodes);
}

/* ---- the labels ---- */

/* Is the member of obs a categorical column? Others are datasets of numbers or texts. */
static int is_categorical(hid_t obs, const char *name)
{
	H5O_info_t info;
	return H5Oget_info_by_name(obs, name, &info, H5P_DEFAULT) >= 0 && info.type == H5O_TYPE_GROUP;
}

/* An array of texts in one dimension, opened as it is; an invalid id for anything else. */
static hid_t open_texts(hid_t group, const char *name, hsize_t *count)
{
	H5L_info_t link;
	if (!hg__h5_has(group, name) || H5Lget_info(group, name, &link, H5P_DEFAULT) < 0 ||
	    link.type != H5L_TYPE_HARD)
		return H5I_INVALID_HID;
	const hid_t data = H5Dopen2(group, name, H5P_DEFAULT);
	if (data < 0)
		return data;
	const hid_t type = H5Dget_type(data), space = H5Dget_space(data);
	const int good = type >= 0 && H5Tget_class(type) == H5T_STRING &&
	                 H5Tis_variable_str(type) > 0 && space >= 0 &&
	                 H5Sget_simple_extent_ndims(space) == 1 &&
	                 H5Sget_simple_extent_dims(space, count, NULL) == 1;
	hg__h5_release(type);
	hg__h5_release(space);
	if (good)
		return data;
	H5Dclose(data);
	return H5I_INVALID_HID;
}

/* The first `classes` of `count` texts. */
static hg_status take_texts(const struct h5ad *in, hid_t data, hsize_t count)
{
	struct hg__names names = {.at = NULL};
	char **text = NULL;
	HG__TRY(
	    hg__data_alloc((int64_t)count, sizeof *text, "categories", (void **)&text, in->h5.message));
	memset(text, 0, (size_t)count * sizeof *text);
	const hid_t type = H5Tcopy(H5T_C_S1), space = H5Dget_space(data);
	hg_status status = type >= 0 && space >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 &&
	                           H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
	                           H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0
	                       ? HG_OK
	                       : hg__h5_fail(&in->h5, HG_ERR_FORMAT, "categories", "cannot be read");
	for (int32_t c = 0; status == HG_OK && c < in->d->classes; c++)
		status = hg__names_add(&names, text[c] ? text[c] : "", text[c] ? strlen(text[c]) : 0,
		                       in->h5.message);
	if (type >= 0 && space >= 0)
		(void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, text);
	hg__h5_release(type);
	hg__h5_release(space);
	free(text);
	if (status == HG_OK)
		hg__names_take(&names, in->d);
	hg__names_free(&names);
	return status;
}

/* Categories may be numbers, and the last ones may have no node. */
static hg_status read_categories(const struct h5ad *in, hid_t obs, const char *name)
{
	char where[128];
	hid_t group;
	hsize_t count = 0;
	snprintf(where, sizeof where, "/obs/%.100s", name);
	HG__TRY(hg__h5_group(&in->h5, obs, name, where, &group));
	const hid_t data = open_texts(group, "categories", &count);
	H5Gclose(group);
	if (data < 0)
		return HG_OK;
	const hg_status status = count >= (hsize_t)in->d->classes && count <= CATEGORIES_MAX
	                             ? take_texts(in, data, count)
	                             : HG_OK;
	H5Dclose(data);
	return status;
}

static hg_status read_codes(const struct h5ad *in, hid_t obs, const char *name)
{
	const struct h5 *h5 = &in->h5;
	hg_dataset *d = in->d;
	struct h5_array a;
	hid_t group;
	char where[128];
	snprintf(where, sizeof where, "/obs/%.100s", name);
	HG__TRY(hg__h5_group(h5, obs, name, where, &group));
	snprintf(where, sizeof where, "/obs/%.100s/codes", name);
	hg_status status = hg__h5_array(h5, group, "codes", where, 1, &a);
	H5Gclose(group);
	HG__TRY(status);
	if (a.dim[0] != d->nodes)
		status = hg__data_fail(h5->message, HG_ERR_FORMAT,
		                       "%s: %s: has %" PRId64 " rows, but there are %" PRId64 " nodes",
		                       h5->path, where, a.dim[0], d->nodes);
	if (status == HG_OK)
		status = hg__h5_read_i32(h5, &a, -1, INT32_MAX - 1, &d->label);
	hg__h5_array_close(&a);
	HG__TRY(status);
	hg__import_note(&in->config, "%s: the categories of /obs/%s are the labels", h5->path, name);
	HG__TRY(
	    hg__data_count_classes(d, h5->path, "declare num_classes (data/FORMAT.md)", h5->message));
	return read_categories(in, obs, name);
}

static hg_status read_labels(const struct h5ad *in)
{
	struct hg__h5_names names = {0};
	const char *name = NULL;
	int64_t columns = 0;
	hid_t obs;
	H5O_info_t info;
	/* files of old versions have a table instead of a group */
	if (!hg__h5_has(in->h5.file, "obs") ||
	    H5Oget_info_by_name(in->h5.file, "obs", &info, H5P_DEFAULT) < 0 ||
	    info.type != H5O_TYPE_GROUP)
		return HG_OK;
	HG__TRY(hg__h5_group(&in->h5, in->h5.file, "obs", "/obs", &obs));
	hg_status status = hg__h5_members(&in->h5, obs, "/obs", NAME_BYTES, &names);
	for (int64_t k = 0; status == HG_OK && k < names.count; k++)
		if (strncmp(names.name[k], "__", 2) != 0 && is_categorical(obs, names.name[k])) {
			name = names.name[k];
			columns++;
		}
	if (status == HG_OK && columns == 1)
		status = read_codes(in, obs, name);
	else if (status == HG_OK && columns > 1)
		hg__import_note(&in->config,
		                "%s: /obs has %" PRId64
		                " columns of categories, among them %s: none is taken as labels",
		                in->h5.path, columns, name);
	H5Gclose(obs);
	hg__h5_names_free(&names);
	return status;
}

static hg_status read_all(struct hg__import *run)
{
	struct h5ad in = {.h5 = {.path = run->path}, .config = run->config, .d = run->d};
	hg_status status = hg__h5_open(&in.h5, run->path, run->path, run->message);
	if (status == HG_OK)
		status = read_graph(&in);
	if (status == HG_OK)
		status = read_features(&in);
	if (status == HG_OK)
		status = read_labels(&in);
	const hg_status closed = hg__h5_close(&in.h5);
	return status == HG_OK ? closed : status;
}

hg_status hg__import_h5ad(const char *const *paths, int count, const hg_import_config *config,
                          hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
