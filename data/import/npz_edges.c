/* Read what edges have from a numpy archive. The rows of its matrix may be unsorted and may hold an
 * entry twice, so the data move with the entries when these are sorted. */
#include "import/npz_edges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/edge_rows.h"

static int has_edge_data(const struct npz *npz)
{
	return hg__npz_has(npz, "edge_feat") || hg__npz_has(npz, "edge_label");
}

int hg__npz_is_of_edges(const struct npz *npz, const char *name)
{
	return strcmp(name, "edge_feat.npy") == 0 || strcmp(name, "edge_label.npy") == 0 ||
	       (strcmp(name, "num_edge_classes.npy") == 0 && hg__npz_has(npz, "edge_label"));
}

hg_status hg__npz_number_edges(const struct npz *npz, struct hg__sparse *m)
{
	if (!has_edge_data(npz))
		return HG_OK;
	HG__TRY(hg__data_alloc(m->m, sizeof *m->origin, "the order of the edges", (void **)&m->origin,
	                       npz->message));
	m->listed = m->m;
	for (int64_t e = 0; e < m->m; e++)
		m->origin[e] = e;
	return HG_OK;
}

static hg_status expect_rows(const struct npy *a, int64_t expected)
{
	if (a->dim[0] == expected)
		return HG_OK;
	return hg__data_fail(a->message, HG_ERR_FORMAT,
	                     "%s: has %" PRId64 " rows, expected %" PRId64
	                     ", one for each edge",
	                     a->where, a->dim[0], expected);
}

static hg_status read_features(const struct npz *npz, struct hg__edge_data *list)
{
	struct npy a;
	if (!hg__npz_has(npz, "edge_feat"))
		return HG_OK;
	HG__TRY(hg__npy_open(npz, "edge_feat", 2, &a));
	hg_status status = expect_rows(&a, list->edges);
	if (status == HG_OK && a.dim[1] > 0) {
		list->features = a.dim[1];
		status = hg__npy_read_f32(&a, &list->feat);
	}
	hg__npy_close(&a);
	return status;
}

static hg_status read_labels(const struct npz *npz, struct hg__edge_data *list)
{
	struct npy a;
	if (!hg__npz_has(npz, "edge_label"))
		return HG_OK;
	HG__TRY(hg__npy_open(npz, "edge_label", 1, &a));
	hg_status status = expect_rows(&a, list->edges);
	if (status == HG_OK)
		status = hg__npy_read_i32(&a, INT32_MIN, INT32_MAX - 1, &list->label);
	hg__npy_close(&a);
	return status;
}

/* The number of labels by num_edge_classes, or else by the labels. */
static hg_status read_classes(const struct npz *npz, hg_dataset *d)
{
	struct npy a;
	int32_t *classes = NULL;
	if (!d->edge_label)
		return HG_OK;
	if (!hg__npz_has(npz, "num_edge_classes"))
		return hg__data_count_edge_classes(d, npz->path, "add num_edge_classes to the archive",
		                                   npz->message);
	HG__TRY(hg__npy_open(npz, "num_edge_classes", 0, &a));
	const hg_status status = hg__npy_read_i32(&a, 0, INT32_MAX, &classes);
	hg__npy_close(&a);
	if (status == HG_OK)
		d->edge_classes = *classes; /* hg_dataset_check compares it with the labels */
	free(classes);
	return status;
}

hg_status hg__npz_read_edges(const struct npz *npz, const hg_import_config *config,
                             const struct hg__sparse *m, hg_dataset *d)
{
	struct hg__edge_data list = {.edges = m->listed};
	if (!m->origin)
		return HG_OK;
	hg_status status = read_features(npz, &list);
	if (status == HG_OK)
		status = read_labels(npz, &list);
	if (status == HG_OK)
		status = hg__import_edge_rows(config, npz->path, &list, m->origin, d, npz->message);
	hg__edge_data_free(&list);
	return status == HG_OK ? read_classes(npz, d) : status;
}
