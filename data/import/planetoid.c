/* Read Planetoid's datasets (Yang, Cohen, Salakhutdinov 2016): Cora, Citeseer and PubMed as eight
 * files of one folder.
 *
 *     ind.NAME.allx, ally    features and labels of the nodes 0 .. a-1
 *     ind.NAME.x, y          the same of the first of them, which train
 *     ind.NAME.tx, ty        those of the test nodes, in the order of
 *     ind.NAME.test.index    the test nodes: row k of tx belongs to node test.index[k]
 *     ind.NAME.graph         the neighbours of every node
 *
 * All but test.index are Python pickles. Features are CSR matrices, labels rows with a single 1.
 *
 * As in PyTorch Geometric's Planetoid, the nodes of y train, the 500 after them validate, and those
 * of test.index test. Ids that test.index leaves out (15 in Citeseer) are nodes without features;
 * they get no label and are in no split. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/planetoid.h"
#include "import/run.h"

/* Nodes that validate. */
#define VALIDATING 500

struct parts {
	struct hg__planetoid files;
	struct hg__sparse x, tx, allx;
	struct hg__planetoid_labels y, ty, ally;
	int64_t *test; /* the test nodes */
	int64_t tests;
	int64_t *row; /* of each node: its row of allx followed by tx; -1: none */
	int64_t nodes;
	hg_dataset *d;
};

static void free_parts(struct parts *in)
{
	free(in->files.prefix);
	hg__sparse_free(&in->x);
	hg__sparse_free(&in->tx);
	hg__sparse_free(&in->allx);
	free(in->y.at);
	free(in->ty.at);
	free(in->ally.at);
	free(in->test);
	free(in->row);
}

/* ---- the parts and their sizes ---- */

static hg_status read_parts(struct parts *in)
{
	const struct {
		const char *member;
		struct hg__sparse *to;
	} features[] = {{"x", &in->x}, {"tx", &in->tx}, {"allx", &in->allx}};
	const struct {
		const char *member;
		struct hg__planetoid_labels *to;
	} labels[] = {{"y", &in->y}, {"ty", &in->ty}, {"ally", &in->ally}};
	for (int k = 0; k < 3; k++)
		HG__TRY(hg__planetoid_features(&in->files, features[k].member, features[k].to));
	for (int k = 0; k < 3; k++)
		HG__TRY(hg__planetoid_labels(&in->files, labels[k].member, labels[k].to));
	return hg__planetoid_test_ids(&in->files, &in->test, &in->tests);
}

/* The members must agree on their numbers of rows, features and classes. */
static hg_status check_sizes(const struct parts *in)
{
	const struct {
		const char *member, *what;
		int64_t found, expected;
		const char *other;
	} sizes[] = {{"x", "rows", in->x.rows, in->y.count, "y"},
	             {"allx", "rows", in->allx.rows, in->ally.count, "ally"},
	             {"tx", "rows", in->tx.rows, in->ty.count, "ty"},
	             {"test.index", "nodes", in->tests, in->tx.rows, "tx"},
	             {"x", "features", in->x.cols, in->allx.cols, "allx"},
	             {"tx", "features", in->tx.cols, in->allx.cols, "allx"},
	             {"y", "classes", in->y.classes, in->ally.classes, "ally"},
	             {"ty", "classes", in->ty.classes, in->ally.classes, "ally"}};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		if (sizes[k].found != sizes[k].expected)
			return hg__data_fail(in->files.message, HG_ERR_FORMAT,
			                     "%s.%s: %" PRId64 " %s, expected %" PRId64 " as in %s",
			                     in->files.prefix, sizes[k].member, sizes[k].found, sizes[k].what,
			                     sizes[k].expected, sizes[k].other);
	if (in->y.count > in->allx.rows)
		return hg__data_fail(in->files.message, HG_ERR_FORMAT,
		                     "%s.y: %" PRId64 " rows, expected at most the %" PRId64 " of ally",
		                     in->files.prefix, in->y.count, in->ally.count);
	return HG_OK;
}

/* The test nodes follow those of allx, and the last one is the last node. */
static hg_status count_nodes(struct parts *in)
{
	int64_t first = INT64_MAX, last = -1;
	for (int64_t k = 0; k < in->tests; k++) {
		first = in->test[k] < first ? in->test[k] : first;
		last = in->test[k] > last ? in->test[k] : last;
	}
	if (in->tests == 0 || first != in->allx.rows || last >= INT32_MAX)
		return hg__data_fail(in->files.message, HG_ERR_FORMAT,
		                     "%s.test.index: %" PRId64 " nodes from %" PRId64 " to %" PRId64
		                     ", expected nodes from %" PRId64 ", the rows of allx, to less than "
		                     "2147483647",
		                     in->files.prefix, in->tests, in->tests ? first : 0, last,
		                     in->allx.rows);
	in->nodes = last + 1;
	return HG_OK;
}

/* ---- the dataset ---- */

static hg_status place_rows(struct parts *in)
{
	HG__TRY(
	    hg__data_alloc(in->nodes, sizeof *in->row, "rows", (void **)&in->row, in->files.message));
	for (int64_t i = 0; i < in->nodes; i++)
		in->row[i] = i < in->allx.rows ? i : -1;
	for (int64_t k = 0; k < in->tests; k++) {
		if (in->row[in->test[k]] >= 0)
			return hg__data_fail(in->files.message, HG_ERR_FORMAT,
			                     "%s.test.index:%" PRId64 ": node %" PRId64
			                     " again, expected every node once",
			                     in->files.prefix, k + 1, in->test[k]);
		in->row[in->test[k]] = in->allx.rows + k;
	}
	const int64_t without = in->nodes - in->allx.rows - in->tests;
	if (without > 0)
		hg__import_note(&in->files.config,
		                "%s.test.index leaves out %" PRId64 " nodes from %" PRId64 " to %" PRId64
		                ": they have no features, no label and no split",
		                in->files.prefix, without, in->allx.rows, in->nodes - 1);
	return HG_OK;
}

/* The row of a node as entries from *first to *end of a matrix. */
static const struct hg__sparse *row_of(const struct parts *in, int64_t node, int64_t *first,
                                       int64_t *end)
{
	const int64_t row = in->row[node];
	const struct hg__sparse *m = row < in->allx.rows ? &in->allx : &in->tx;
	const int64_t k = row < in->allx.rows ? row : row - in->allx.rows;
	*first = row < 0 ? 0 : m->rowptr[k];
	*end = row < 0 ? 0 : m->rowptr[k + 1];
	return m;
}

static hg_status set_features(const struct parts *in)
{
	struct hg__sparse all = {.rows = in->nodes, .cols = in->allx.cols};
	hg_dataset *d = in->d;
	char *message = in->files.message;
	const int64_t stored = in->allx.m + in->tx.m;
	HG__TRY(hg__data_alloc(in->nodes + 1, sizeof *d->feat_rowptr, "features",
	                       (void **)&d->feat_rowptr, message));
	HG__TRY(
	    hg__data_alloc(stored, sizeof *d->feat_col, "features", (void **)&d->feat_col, message));
	HG__TRY(hg__data_alloc(stored, sizeof *d->feat_value, "features", (void **)&d->feat_value,
	                       message));
	d->features = in->allx.cols;
	d->feat_rowptr[0] = 0;
	for (int64_t i = 0; i < in->nodes; i++) {
		int64_t first, end;
		const struct hg__sparse *m = row_of(in, i, &first, &end);
		for (int64_t e = first; e < end; e++, all.m++) {
			d->feat_col[all.m] = m->col[e];
			d->feat_value[all.m] = m->value[e];
		}
		d->feat_rowptr[i + 1] = all.m;
	}
	all.value = d->feat_value;
	hg__sparse_drop_ones(&all);
	d->feat_value = all.value;
	return HG_OK;
}

static hg_status set_labels(const struct parts *in)
{
	hg_dataset *d = in->d;
	HG__TRY(hg__data_alloc(in->nodes, sizeof *d->label, "labels", (void **)&d->label,
	                       in->files.message));
	for (int64_t i = 0; i < in->nodes; i++) {
		const int64_t row = in->row[i];
		d->label[i] = row < 0                ? -1
		              : row < in->ally.count ? in->ally.at[row]
		                                     : in->ty.at[row - in->ally.count];
	}
	d->classes = (int32_t)in->ally.classes;
	return HG_OK;
}

static hg_status set_splits(const struct parts *in)
{
	hg_dataset *d = in->d;
	uint8_t **masks[] = {&d->train_mask, &d->val_mask, &d->test_mask};
	const int64_t left = in->allx.rows - in->y.count,
	              validating = left < VALIDATING ? left : VALIDATING;
	for (int k = 0; k < 3; k++) {
		HG__TRY(hg__data_alloc(in->nodes, 1, "splits", (void **)masks[k], in->files.message));
		memset(*masks[k], 0, (size_t)in->nodes);
	}
	for (int64_t i = 0; i < in->y.count + validating; i++)
		(i < in->y.count ? d->train_mask : d->val_mask)[i] = 1;
	for (int64_t k = 0; k < in->tests; k++)
		d->test_mask[in->test[k]] = 1;
	if (validating < VALIDATING)
		hg__import_note(&in->files.config,
		                "%s.allx: only %" PRId64 " nodes are left to validate, %d are usual",
		                in->files.prefix, validating, VALIDATING);
	return HG_OK;
}

static hg_status set_name(const struct parts *in)
{
	const char *slash = strrchr(in->files.prefix, '/');
	return hg__data_copy_text((slash ? slash + 1 : in->files.prefix) + 4, &in->d->name,
	                          in->files.message);
}

static hg_status build(struct parts *in, const char *path)
{
	HG__TRY(hg__planetoid_find(&in->files, path));
	HG__TRY(set_name(in));
	HG__TRY(read_parts(in));
	HG__TRY(check_sizes(in));
	HG__TRY(count_nodes(in));
	/* the graph has a key for each node, so that the test nodes cannot claim more */
	HG__TRY(hg__planetoid_graph(&in->files, in->nodes, in->d));
	HG__TRY(place_rows(in));
	HG__TRY(set_features(in));
	HG__TRY(set_labels(in));
	return set_splits(in);
}

static hg_status read_all(struct hg__import *run)
{
	struct parts in = {.files = {.config = run->config, .message = run->message}, .d = run->d};
	const hg_status status = build(&in, run->path);
	free_parts(&in);
	return status;
}

hg_status hg__import_planetoid(const char *const *paths, int count, const hg_import_config *config,
                               hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
