/* Read what the export of a dataset adds to the keys of gnn-benchmark (export/npz.c). */
#include "import/npz_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hg_status wrong_rows(const struct npy *a, int64_t expected, const char *what)
{
	return hg__data_fail(a->message, HG_ERR_FORMAT,
	                     "%s: has %" PRId64 " rows, but there are %" PRId64 " %s", a->where,
	                     a->dim[0], expected, what);
}

hg_status hg__npz_is_own(const struct npz *npz, int *own)
{
	struct npy a;
	int64_t *version = NULL;
	*own = hg__npz_has(npz, "halfgraph");
	if (!*own)
		return HG_OK;
	HG__TRY(hg__npy_open(npz, "halfgraph", 0, &a));
	hg_status status = hg__npy_read_i64(&a, 1, INT64_MAX, &version);
	if (status == HG_OK && *version != 1)
		status =
		    hg__data_fail(npz->message, HG_ERR_FORMAT,
		                  "%s: is %" PRId64 "; this reader knows version 1", a.where, *version);
	free(version);
	hg__npy_close(&a);
	return status;
}

hg_status hg__npz_read_batch(const struct npz *npz, hg_dataset *d)
{
	struct npy a;
	if (!hg__npz_has(npz, "graph_ptr"))
		return HG_OK;
	HG__TRY(hg__npy_open(npz, "graph_ptr", 1, &a));
	d->graphs = a.elements - 1;
	const hg_status status =
	    a.elements > 0 ? hg__npy_read_i64(&a, 0, d->nodes, &d->graph_ptr)
	                   : hg__data_fail(npz->message, HG_ERR_FORMAT,
	                                   "%s: is empty, expected graphs + 1 elements", a.where);
	hg__npy_close(&a);
	return status;
}

/* *text := the bytes of a text, UTF-8. */
static hg_status read_text(struct npy *a, char **text)
{
	int32_t *bytes = NULL;
	void *name = NULL;
	if (a->elements > HG__TEXT_MAX)
		return hg__data_fail(a->message, HG_ERR_FORMAT, "%s: is longer than %d bytes", a->where,
		                     HG__TEXT_MAX);
	hg_status status = hg__npy_read_i32(a, 1, 255, &bytes);
	if (status == HG_OK)
		status = hg__data_alloc(a->elements + 1, 1, "a text", &name, a->message);
	if (status == HG_OK) {
		for (int64_t k = 0; k < a->elements; k++)
			((unsigned char *)name)[k] = (unsigned char)bytes[k];
		((unsigned char *)name)[a->elements] = 0;
		free(*text);
		*text = name;
	}
	free(bytes);
	return status;
}

static hg_status read_name(struct npy *a, hg_dataset *d)
{
	return read_text(a, &d->name);
}

static hg_status read_target_names(struct npy *a, hg_dataset *d)
{
	return read_text(a, &d->target_names);
}

static hg_status read_orig_id(struct npy *a, hg_dataset *d)
{
	return a->dim[0] == d->nodes ? hg__npy_read_i64(a, INT64_MIN, INT64_MAX, &d->orig_id)
	                             : wrong_rows(a, d->nodes, "nodes");
}

static hg_status read_order(struct npy *a, hg_dataset *d)
{
	return a->dim[0] == d->nodes ? hg__npy_read_i32(a, 0, d->nodes - 1, &d->order)
	                             : wrong_rows(a, d->nodes, "nodes");
}

static hg_status read_node_names(struct npy *a, hg_dataset *d)
{
	d->node_name_bytes = a->dim[0];
	return hg__npy_read_bytes(a, &d->node_name);
}

static hg_status read_target(struct npy *a, hg_dataset *d)
{
	const int64_t rows = hg__data_labelled(d);
	if (a->dim[0] != rows)
		return wrong_rows(a, rows, d->graph_ptr ? "graphs" : "nodes");
	d->targets = a->dim[1];
	return d->targets > 0 ? hg__npy_read_f32(a, &d->target) : HG_OK;
}

static hg_status read_fold(struct npy *a, hg_dataset *d)
{
	const int64_t rows = hg__data_labelled(d);
	if (a->dim[0] != rows)
		return wrong_rows(a, rows, d->graph_ptr ? "graphs" : "nodes");
	HG__TRY(hg__npy_read_i32(a, INT32_MIN, INT32_MAX - 1, &d->fold));
	hg__data_count_folds(d);
	return HG_OK;
}

static hg_status read_columns(struct npy *a, const hg_dataset *d, double **to)
{
	return a->dim[0] == d->features
	           ? hg__npy_read_f64(a, to)
	           : hg__data_fail(a->message, HG_ERR_FORMAT,
	                           "%s: has %" PRId64 " elements, but there are %" PRId64 " features",
	                           a->where, a->dim[0], d->features);
}

static hg_status read_mean(struct npy *a, hg_dataset *d)
{
	return read_columns(a, d, &d->feat_mean);
}

static hg_status read_deviation(struct npy *a, hg_dataset *d)
{
	return read_columns(a, d, &d->feat_deviation);
}

static const struct {
	const char *key;
	int rank;
	hg_status (*read)(struct npy *a, hg_dataset *d);
} arrays[] = {{"name", 1, read_name},
              {"orig_id", 1, read_orig_id},
              {"order", 1, read_order},
              {"node_names", 1, read_node_names},
              {"target", 2, read_target},
              {"target_names", 1, read_target_names},
              {"fold", 1, read_fold},
              {"attr_mean", 1, read_mean},
              {"attr_deviation", 1, read_deviation}};
#define ARRAYS (sizeof arrays / sizeof *arrays)

hg_status hg__npz_read_own(const struct npz *npz, hg_dataset *d)
{
	for (size_t k = 0; k < ARRAYS; k++) {
		struct npy a;
		if (!hg__npz_has(npz, arrays[k].key))
			continue;
		HG__TRY(hg__npy_open(npz, arrays[k].key, arrays[k].rank, &a));
		const hg_status status = arrays[k].read(&a, d);
		hg__npy_close(&a);
		HG__TRY(status);
	}
	return HG_OK;
}

int hg__npz_is_own_member(const char *name)
{
	char member[64];
	if (strcmp(name, "halfgraph.npy") == 0 || strcmp(name, "graph_ptr.npy") == 0 ||
	    strcmp(name, "num_classes.npy") == 0)
		return 1;
	for (size_t k = 0; k < ARRAYS; k++) {
		snprintf(member, sizeof member, "%s.npy", arrays[k].key);
		if (strcmp(name, member) == 0)
			return 1;
	}
	return 0;
}
