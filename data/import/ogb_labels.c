/* The labels and splits of an OGB dataset. What is missing (an empty field, or nan) is
 * unlabelled. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/ogb.h"
#include "import/values.h"

/* ---- labels ---- */

static hg_status read_label_array(const struct hg__ogb *in, const char *file, const char *key,
                                  struct hg__numbers *v)
{
	struct npz npz;
	struct npy a = {.bytes.fd = -1};
	char *path = NULL;
	hg_status status = hg__ogb_arrays(in, file, &path, &npz);
	if (status == HG_OK)
		status = hg__npy_open(&npz, key, 2, &a);
	if (status == HG_OK)
		status = hg__npy_read_f32(&a, &v->at);
	v->rows = a.dim[0];
	v->width = a.dim[1];
	hg__npy_close(&a);
	hg__npz_close(&npz);
	free(path);
	return status;
}

static hg_status set_labels(const struct hg__ogb *in, const char *file, struct hg__numbers *v,
                            hg_dataset *d)
{
	const int64_t n = hg__data_labelled(d);
	if (v->rows != n)
		return hg__data_fail(in->message, HG_ERR_FORMAT,
		                     "%s: %s: %" PRId64 " rows, expected %" PRId64 ", one for each %s",
		                     in->path, file, v->rows, n, d->graph_ptr ? "graph" : "node");
	return hg__values_take(v, 0, in->path, "declare num_classes (data/FORMAT.md)", d, in->message);
}

hg_status hg__ogb_labels(const struct hg__ogb *in, hg_dataset *d)
{
	static const struct {
		const char *file, *key;
	} forms[] = {{"raw/node-label.csv.gz", NULL},
	             {"raw/graph-label.csv.gz", NULL},
	             {"raw/node-label.npz", "node_label"},
	             {"raw/graph-label.npz", "graph_label"}};
	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
		struct hg__numbers v = {0};
		if (!hg__folder_has_part(&in->folder, forms[k].file))
			continue;
		hg_status status = forms[k].key
		                       ? read_label_array(in, forms[k].file, forms[k].key, &v)
		                       : hg__folder_read(&in->folder, forms[k].file, hg__values_add, &v);
		if (status == HG_OK)
			status = set_labels(in, forms[k].file, &v, d);
		free(v.at);
		return status;
	}
	return HG_OK;
}

/* ---- splits ---- */

static hg_status read_split(const struct hg__ogb *in, const char *name, int64_t rows,
                            uint8_t **mask)
{
	struct hg__column c = {0};
	hg_status status = hg__folder_read(&in->folder, name, hg__column_add, &c);
	if (status == HG_OK)
		status = hg__data_alloc(rows, 1, "a split", (void **)mask, in->message);
	if (status == HG_OK)
		memset(*mask, 0, (size_t)rows);
	for (int64_t k = 0; status == HG_OK && k < c.count; k++) {
		if (c.at[k] < 0 || c.at[k] >= rows)
			status =
			    hg__data_fail(in->message, HG_ERR_FORMAT,
			                  "%s: %s: row %" PRId64 " names %" PRId64 ", expected 0 .. %" PRId64,
			                  in->path, name, k, c.at[k], rows - 1);
		else
			(*mask)[c.at[k]] = 1;
	}
	free(c.at);
	return status;
}

hg_status hg__ogb_splits(const struct hg__ogb *in, hg_dataset *d)
{
	static const char *const files[] = {"train.csv.gz", "valid.csv.gz", "test.csv.gz"};
	uint8_t **const masks[] = {&d->train_mask, &d->val_mask, &d->test_mask};
	const size_t begin = strlen(in->folder.stem), end = strlen(files[0]);
	const char *found = NULL;
	for (int64_t k = 0; k < in->folder.count; k++) {
		const char *name = in->folder.name[k];
		if (strncmp(name, in->folder.stem, begin) != 0 ||
		    fnmatch("split/*/train.csv.gz", name + begin, 0) != 0)
			continue;
		if (found) {
			hg__import_note(&in->config, "%s: holds the splits %s and %s: none is taken", in->path,
			                found + begin, name + begin);
			return HG_OK;
		}
		found = name;
	}
	for (int k = 0; found && k < 3; k++) {
		const size_t folder = strlen(found + begin) - end, room = folder + 16;
		void *memory = NULL;
		HG__TRY(hg__data_alloc((int64_t)room, 1, "a path", &memory, in->message));
		char *name = memory;
		memcpy(name, found + begin, folder);
		memcpy(name + folder, files[k], strlen(files[k]) + 1);
		const hg_status status = read_split(in, name, hg__data_labelled(d), masks[k]);
		free(name);
		HG__TRY(status);
	}
	return HG_OK;
}
