/* Read numpy archives with the keys of gnn-benchmark: a scipy CSR adjacency
 * adj_{data,indices,indptr,shape}, sparse features attr_{data,indices,indptr,shape} or dense ones
 * attr_matrix, labels and optionally num_classes (or one-hot labels_{data,indices,indptr,shape}),
 * the splits train_idx, val_idx, test_idx, and what edges have (npz_edges.h). Row i of the
 * adjacency aggregates from its columns: row = destination, column = source. npz_own.c reads what
 * our own archives have besides, and npz_graphs.c archives of many small graphs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"
#include "graph/coo.h"
#include "import/npy.h"
#include "import/npz_edges.h"
#include "import/npz_graphs.h"
#include "import/npz_own.h"
#include "import/run.h"

struct import {
	struct npz npz;
	int own;    /* the archive is an exported dataset */
	int graphs; /* or one of many small graphs */
	hg_import_config config;
	hg_dataset *d;
};

static hg_status open_member(const struct import *in, const char *key, int rank, struct npy *a)
{
	char what[48];
	snprintf(what, sizeof what, "reading %s", key);
	HG__TRY(hg__data_step(in->config.progress, what, 0, 0, in->npz.message));
	return hg__npy_open(&in->npz, key, rank, a);
}

static hg_status read_integers(const struct import *in, const char *key, int64_t low, int64_t high,
                               int64_t *count, int64_t **values)
{
	struct npy a;
	HG__TRY(open_member(in, key, 1, &a));
	*count = a.elements;
	/* a mask would be taken for the indices 0 and 1 */
	const hg_status status = a.type.kind == 'b'
	                             ? hg__data_fail(a.message, HG_ERR_FORMAT,
	                                             "%s: is of booleans, expected integers", a.where)
	                             : hg__npy_read_i64(&a, low, high, values);
	hg__npy_close(&a);
	return status;
}

static hg_status read_ids(const struct import *in, const char *key, int64_t low, int64_t high,
                          int64_t *count, int32_t **values)
{
	struct npy a;
	HG__TRY(open_member(in, key, 1, &a));
	*count = a.elements;
	const hg_status status = hg__npy_read_i32(&a, low, high, values);
	hg__npy_close(&a);
	return status;
}

static hg_status read_reals(const struct import *in, const char *key, int64_t *count,
                            float **values)
{
	struct npy a;
	HG__TRY(open_member(in, key, 1, &a));
	*count = a.elements;
	const hg_status status = hg__npy_read_f32(&a, values);
	hg__npy_close(&a);
	return status;
}

static hg_status wrong_length(const struct import *in, const char *key, int64_t found,
                              int64_t expected)
{
	return hg__data_fail(in->npz.message, HG_ERR_FORMAT,
	                     "%s: member %s.npy: has %" PRId64 " elements, expected %" PRId64,
	                     in->npz.path, key, found, expected);
}

/* Read the CSR matrix of the keys PREFIX_shape, _indptr, _indices and _data (absent: all ones). On
 * failure the caller frees what is in *m. */
static hg_status read_csr(const struct import *in, const char *prefix, struct hg__sparse *m)
{
	char key[4][32];
	static const char *const parts[4] = {"shape", "indptr", "indices", "data"};
	int64_t *shape = NULL, count = 0;
	for (int k = 0; k < 4; k++)
		snprintf(key[k], sizeof key[k], "%s_%s", prefix, parts[k]);

	hg_status status = read_integers(in, key[0], 0, INT32_MAX, &count, &shape);
	if (status == HG_OK && count != 2)
		status = wrong_length(in, key[0], count, 2);
	if (status == HG_OK) {
		m->rows = shape[0];
		m->cols = shape[1];
	}
	free(shape);
	HG__TRY(status);

	HG__TRY(read_integers(in, key[1], 0, INT64_MAX, &count, &m->rowptr));
	if (count != m->rows + 1)
		return wrong_length(in, key[1], count, m->rows + 1);
	HG__TRY(hg__data_check_pointers(in->npz.path, key[1], m->rowptr, m->rows, in->npz.message));
	m->m = m->rowptr[m->rows];

	HG__TRY(read_ids(in, key[2], 0, m->cols - 1, &count, &m->col));
	if (count != m->m)
		return wrong_length(in, key[2], count, m->m);
	if (hg__npz_has(&in->npz, key[3])) {
		HG__TRY(read_reals(in, key[3], &count, &m->value));
		if (count != m->m)
			return wrong_length(in, key[3], count, m->m);
	}
	if (strcmp(prefix, "adj") == 0)
		HG__TRY(hg__npz_number_edges(&in->npz, m));
	HG__TRY(hg__sparse_sort(m, in->npz.message));
	hg__sparse_drop_ones(m);
	return HG_OK;
}

static hg_status read_graph(const struct import *in)
{
	struct hg__sparse m = {0};
	hg_status status = read_csr(in, "adj", &m);
	in->d->nodes = m.rows;
	in->d->edges = m.m;
	in->d->rowptr = m.rowptr;
	in->d->col = m.col;
	in->d->weight = m.value;
	if (status == HG_OK)
		status = hg__npz_read_edges(&in->npz, &in->config, &m, in->d);
	free(m.origin);
	HG__TRY(status);
	if (m.rows != m.cols)
		return hg__data_fail(in->npz.message, HG_ERR_FORMAT,
		                     "%s: member adj_shape.npy: %" PRId64 " x %" PRId64
		                     ", expected as many rows as columns",
		                     in->npz.path, m.rows, m.cols);
	return HG_OK;
}

static hg_status expect_nodes(const struct import *in, const char *key, int64_t found)
{
	if (found == in->d->nodes)
		return HG_OK;
	return hg__data_fail(in->npz.message, HG_ERR_FORMAT,
	                     "%s: member %s.npy: has %" PRId64 " rows, but the graph has %" PRId64
	                     " nodes",
	                     in->npz.path, key, found, in->d->nodes);
}

/* Labels belong to the nodes, or, where there is a batch, to its graphs. */
static hg_status expect_labelled(const struct import *in, const char *key, int64_t found)
{
	if (!in->d->graph_ptr)
		return expect_nodes(in, key, found);
	if (found == in->d->graphs)
		return HG_OK;
	return hg__data_fail(in->npz.message, HG_ERR_FORMAT,
	                     "%s: member %s.npy: has %" PRId64 " rows, but there are %" PRId64
	                     " graphs",
	                     in->npz.path, key, found, in->d->graphs);
}

static hg_status read_sparse_features(const struct import *in)
{
	struct hg__sparse m = {0};
	const hg_status status = read_csr(in, "attr", &m);
	in->d->features = m.cols;
	in->d->feat_rowptr = m.rowptr;
	in->d->feat_col = m.col;
	in->d->feat_value = m.value;
	HG__TRY(status);
	return expect_nodes(in, "attr_shape", m.rows);
}

static hg_status read_dense_features(const struct import *in)
{
	struct npy a;
	HG__TRY(open_member(in, "attr_matrix", 2, &a));
	const int half = a.type.kind == 'f' && a.type.size == 2;
	in->d->features = a.dim[1];
	hg_status status = expect_nodes(in, "attr_matrix", a.dim[0]);
	if (status == HG_OK)
		status = hg__npy_read_f32(&a, (float **)&in->d->feat);
	hg__npy_close(&a);
	/* halves stay halves; those that are not finite are left to hg_dataset_check */
	return status == HG_OK && half && hg_dataset_check_f16(in->d, NULL) == HG_OK
	           ? hg_dataset_features_to(in->d, HG_F16, 0, in->npz.message)
	           : status;
}

static hg_status read_features(const struct import *in)
{
	if (hg__npz_has(&in->npz, "attr_indptr"))
		return read_sparse_features(in);
	return hg__npz_has(&in->npz, "attr_matrix") ? read_dense_features(in) : HG_OK;
}

/* Read one-hot labels: a label is the column of the only entry of its row, -1 for an empty row. */
static hg_status read_one_hot(const struct import *in)
{
	struct hg__sparse m = {0};
	hg_dataset *d = in->d;
	const int64_t rows = hg__data_labelled(d);
	const char *who = d->graph_ptr ? "graph" : "node";
	hg_status status = read_csr(in, "labels", &m);
	if (status == HG_OK)
		status = expect_labelled(in, "labels_shape", m.rows);
	if (status == HG_OK)
		status =
		    hg__data_alloc(rows, sizeof *d->label, "labels", (void **)&d->label, in->npz.message);
	for (int64_t i = 0; status == HG_OK && i < rows; i++) {
		const int64_t count = m.rowptr[i + 1] - m.rowptr[i];
		if (count > 1)
			status = hg__data_fail(in->npz.message, HG_ERR_FORMAT,
			                       "%s: labels: %s %" PRId64 " has %" PRId64
			                       " labels; one per %s is supported",
			                       in->npz.path, who, i, count, who);
		else
			d->label[i] = count == 1 ? m.col[m.rowptr[i]] : -1;
	}
	/* every column is a class, whether a node has it or not */
	d->classes = (int32_t)m.cols;
	hg__sparse_free(&m);
	return status;
}

/* The number of classes by num_classes, or else by the labels. */
static hg_status read_classes(const struct import *in)
{
	struct npy a;
	int32_t *classes = NULL;
	if (!hg__npz_has(&in->npz, "num_classes"))
		return hg__data_count_classes(in->d, in->npz.path, "add num_classes to the archive",
		                              in->npz.message);
	HG__TRY(open_member(in, "num_classes", 0, &a));
	const hg_status status = hg__npy_read_i32(&a, 0, INT32_MAX, &classes);
	hg__npy_close(&a);
	if (status == HG_OK)
		in->d->classes = *classes; /* hg_dataset_check compares it with the labels */
	free(classes);
	return status;
}

static hg_status read_labels(const struct import *in)
{
	hg_dataset *d = in->d;
	int64_t count = 0;
	if (hg__npz_has(&in->npz, "labels")) {
		HG__TRY(read_ids(in, "labels", INT32_MIN, INT32_MAX - 1, &count, &d->label));
		HG__TRY(expect_labelled(in, "labels", count));
		HG__TRY(read_classes(in));
	} else if (hg__npz_has(&in->npz, "labels_indptr")) {
		HG__TRY(read_one_hot(in));
	} else if (in->own && hg__npz_has(&in->npz, "num_classes")) {
		HG__TRY(read_classes(in)); /* classes without labels */
	}
	return HG_OK;
}

static hg_status take_name(void *user, const uint32_t *text, int64_t length, char *message)
{
	return hg__names_add_wide(user, text, length, message);
}

/* They are taken if they are texts and as many as classes; else note_unread tells. */
static hg_status read_class_names(const struct import *in)
{
	struct npz quiet = in->npz;
	struct npy a;
	struct hg__names names = {.at = NULL};
	quiet.message = NULL;
	if (!in->d->classes || !hg__npz_has(&in->npz, "class_names") ||
	    hg__npy_open_texts(&quiet, "class_names", &a) < 0)
		return HG_OK;
	a.message = in->npz.message;
	a.bytes.message = in->npz.message;
	const hg_status status =
	    a.elements == in->d->classes ? hg__npy_read_texts(&a, take_name, &names) : HG_OK;
	hg__npy_close(&a);
	if (status == HG_OK)
		hg__names_take(&names, in->d);
	hg__names_free(&names);
	return status;
}

static hg_status read_split(const struct import *in, const char *key, uint8_t **mask)
{
	int64_t *index = NULL, count = 0;
	if (!hg__npz_has(&in->npz, key))
		return HG_OK;
	const int64_t rows = hg__data_labelled(in->d);
	hg_status status = read_integers(in, key, 0, rows - 1, &count, &index);
	if (status == HG_OK)
		status = hg__data_alloc(rows, 1, key, (void **)mask, in->npz.message);
	if (status == HG_OK) {
		memset(*mask, 0, (size_t)rows);
		for (int64_t i = 0; i < count; i++)
			(*mask)[index[i]] = 1;
	}
	free(index);
	return status;
}

/* Do the functions above read this member of the archive? */
static int is_read(const struct import *in, const char *name)
{
	static const char *const always[] = {"adj_shape.npy", "adj_indptr.npy", "adj_indices.npy",
	                                     "adj_data.npy",  "train_idx.npy",  "val_idx.npy",
	                                     "test_idx.npy"},
	                         *const sparse[] = {"attr_shape.npy", "attr_indptr.npy",
	                                            "attr_indices.npy", "attr_data.npy"},
	                         *const labels[] = {"labels.npy", "num_classes.npy"},
	                         *const one_hot[] = {"labels_shape.npy", "labels_indptr.npy",
	                                             "labels_indices.npy", "labels_data.npy"},
	                         *const dense[] = {"attr_matrix.npy"};
	if (in->graphs)
		return hg__npz_is_of_graphs(&in->npz, name);
	const int has_sparse = hg__npz_has(&in->npz, "attr_indptr");
	const int has_labels = hg__npz_has(&in->npz, "labels");
	const struct {
		const char *const *name;
		size_t count;
		int wanted;
	} sets[] = {{always, sizeof always / sizeof *always, 1},
	            {sparse, sizeof sparse / sizeof *sparse, has_sparse},
	            {dense, 1, !has_sparse},
	            {labels, 2, has_labels},
	            {one_hot, sizeof one_hot / sizeof *one_hot, !has_labels}};
	for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
		for (size_t k = 0; sets[s].wanted && k < sets[s].count; k++)
			if (strcmp(name, sets[s].name[k]) == 0)
				return 1;
	if (in->d->class_name && strcmp(name, "class_names.npy") == 0)
		return 1;
	return hg__npz_is_of_edges(&in->npz, name) || (in->own && hg__npz_is_own_member(name));
}

/* Note the members of the archive that the dataset does not contain; the first ones by name. */
static void note_unread(const struct import *in)
{
	char names[256] = "";
	size_t used = 0;
	int64_t more = 0;
	const zip_int64_t members = zip_get_num_entries(in->npz.zip, 0);
	for (zip_int64_t k = 0; k < members; k++) {
		const char *name = zip_get_name(in->npz.zip, (zip_uint64_t)k, 0);
		if (!name || is_read(in, name))
			continue;
		if (strlen(name) + 2 < sizeof names - used)
			used +=
			    (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
		else
			more++;
	}
	if (used && more)
		hg__import_note(&in->config, "%s: not read: %s and %" PRId64 " more", in->npz.path, names,
		                more);
	else if (used || more)
		hg__import_note(&in->config, "%s: not read: %s", in->npz.path,
		                used ? names : "members of long names");
}

static hg_status read_matrix(const struct import *in)
{
	HG__TRY(read_graph(in));
	if (in->own)
		HG__TRY(hg__npz_read_batch(&in->npz, in->d));
	HG__TRY(read_features(in));
	if (in->own)
		HG__TRY(hg__npz_read_own(&in->npz, in->d));
	HG__TRY(read_labels(in));
	return read_class_names(in);
}

static hg_status read_members(struct import *in)
{
	HG__TRY(hg__npz_is_own(&in->npz, &in->own));
	in->graphs = !in->own && hg__npz_is_graphs(&in->npz);
	HG__TRY(in->graphs ? hg__npz_read_graphs(&in->npz, &in->config, in->d) : read_matrix(in));
	HG__TRY(read_split(in, "train_idx", &in->d->train_mask));
	HG__TRY(read_split(in, "val_idx", &in->d->val_mask));
	HG__TRY(read_split(in, "test_idx", &in->d->test_mask));
	note_unread(in);
	return HG_OK;
}

static hg_status read_all(struct hg__import *run)
{
	struct import in = {.config = run->config, .d = run->d};
	hg_status status = hg__npz_open(&in.npz, run->path, run->message);
	if (status == HG_OK)
		status = read_members(&in);
	run->is_named = in.own;
	hg__npz_close(&in.npz);
	return status;
}

hg_status hg__import_npz(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
