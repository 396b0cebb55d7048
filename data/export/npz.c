/* Write a dataset as a numpy archive, with the keys of gnn-benchmark and some more (FORMAT.md). The
 * importer of such archives (import/npz.c) makes the same dataset of it, bit for bit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "class_names.h"
#include "export/zip.h"

/* Where the elements of an array come from. */
enum source {
	VALUES,   /* they are in memory */
	ONES,     /* f32, all 1: weights that the dataset leaves out and readers of archives expect */
	POSITIONS /* i64: the positions at which a mask is 1 */
};

struct array {
	const char *key;
	const char *type; /* kind and bytes: "f4" */
	int rank;
	int64_t dim[2];
	const void *values; /* NULL: the dataset has no such array, unless the source is ONES */
	enum source from;
	int64_t points; /* of texts, "U": code points of each; 0: numbers */
};

struct export
{
	struct hg__zip_out zip;
	const hg_progress *progress;
	int64_t done, total; /* bytes */
};

/* More than the rows of the table below. */
#define ARRAYS 32

static int64_t elements_of(const struct array *a)
{
	return (a->rank > 0 ? a->dim[0] : 1) * (a->rank > 1 ? a->dim[1] : 1);
}

static int64_t bytes_of(const struct array *a)
{
	return elements_of(a) * (a->points ? 4 * a->points : a->type[1] - '0');
}

static int64_t ones_in(const uint8_t *mask, int64_t count)
{
	int64_t ones = 0;
	for (int64_t i = 0; mask && i < count; i++)
		ones += mask[i];
	return ones;
}

/* ---- the members ---- */

/* The header of version 1: its length is a multiple of 64, so that the elements are aligned. */
static hg_status write_header(struct export *out, const struct array *a)
{
	const uint16_t probe = 1;
	const char order = a->type[1] == '1' ? '|' : *(const unsigned char *)&probe == 1 ? '<' : '>';
	char shape[64] = "()", text[192];
	if (a->rank == 1)
		snprintf(shape, sizeof shape, "(%" PRId64 ",)", a->dim[0]);
	else if (a->rank == 2)
		snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", a->dim[0], a->dim[1]);
	char type[32];
	if (a->points)
		snprintf(type, sizeof type, "U%" PRId64, a->points);
	else
		snprintf(type, sizeof type, "%s", a->type);
	const int used =
	    snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }",
	             order, type, shape);
	const int length = (10 + used + 1 + 63) / 64 * 64 - 10;
	memset(text + used, ' ', (size_t)(length - used));
	text[length - 1] = '\n';
	const unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, 0};
	HG__TRY(hg__zip_add(&out->zip, magic, sizeof magic));
	return hg__zip_add(&out->zip, text, length);
}

static hg_status add_elements(struct export *out, const void *bytes, int64_t count)
{
	HG__TRY(hg__data_step(out->progress, "writing", out->done, out->total, out->zip.message));
	out->done += count;
	return hg__zip_add(&out->zip, bytes, count);
}

static hg_status write_values(struct export *out, const struct array *a)
{
	enum { PIECE = 1 << 22 }; /* between two looks at the progress: 1 ms at 4 GB/s */
	const int64_t bytes = bytes_of(a);
	for (int64_t at = 0; at < bytes; at += PIECE)
		HG__TRY(add_elements(out, (const char *)a->values + at,
		                     bytes - at < PIECE ? bytes - at : PIECE));
	return HG_OK;
}

static hg_status write_ones(struct export *out, const struct array *a)
{
	float *ones = NULL;
	hg_status status =
	    hg__data_alloc(HG__SLAB, sizeof *ones, "weights of 1", (void **)&ones, out->zip.message);
	for (int64_t k = 0; status == HG_OK && k < HG__SLAB; k++)
		ones[k] = 1;
	for (int64_t at = 0; status == HG_OK && at < a->dim[0]; at += HG__SLAB)
		status = add_elements(out, ones,
		                      (a->dim[0] - at < HG__SLAB ? a->dim[0] - at : HG__SLAB) *
		                          (int64_t)sizeof *ones);
	free(ones);
	return status;
}

static hg_status write_positions(struct export *out, const struct array *a)
{
	const uint8_t *mask = a->values;
	int64_t *slab = NULL, used = 0, row = 0;
	hg_status status =
	    hg__data_alloc(HG__SLAB, sizeof *slab, a->key, (void **)&slab, out->zip.message);
	for (int64_t left = a->dim[0]; status == HG_OK && left > 0; left -= used) {
		for (used = 0; used < left && used < HG__SLAB; row++)
			if (mask[row])
				slab[used++] = row;
		status = add_elements(out, slab, used * (int64_t)sizeof *slab);
	}
	free(slab);
	return status;
}

static hg_status write_array(struct export *out, const struct array *a)
{
	static hg_status (*const write[])(struct export *, const struct array *) = {
	    write_values, write_ones, write_positions};
	char name[HG__ZIP_NAME];
	snprintf(name, sizeof name, "%s.npy", a->key);
	HG__TRY(hg__zip_member(&out->zip, name));
	HG__TRY(write_header(out, a));
	HG__TRY(write[a->from](out, a));
	return hg__zip_member_end(&out->zip);
}

/* ---- the table ---- */

/* Numbers that the table points to. */
struct scalars {
	int64_t version, classes, adj_shape[2], attr_shape[2], edge_classes;
	uint32_t *names; /* the names of the classes, [count] of `points` code points each */
	int64_t names_count, points;
};

static struct array row(const char *key, const char *type, int64_t count, const void *values)
{
	return (struct array){key, type, 1, {count, 1}, values, VALUES, 0};
}

static struct array matrix(const char *key, const char *type, int64_t rows, int64_t columns,
                           const void *values)
{
	return (struct array){key, type, 2, {rows, columns}, values, VALUES, 0};
}

static struct array scalar(const char *key, const int64_t *value)
{
	return (struct array){key, "i8", 0, {1, 1}, value, VALUES, 0};
}

/* Weights, or ones where there are entries without weights. */
static struct array weights(const char *key, int64_t count, const int32_t *col, const float *values)
{
	return (struct array){
	    key, "f4", 1, {count, 1}, values ? (const void *)values : col, values ? VALUES : ONES, 0};
}

static struct array split(const char *key, int64_t rows, const uint8_t *mask)
{
	return (struct array){key, "i8", 1, {ones_in(mask, rows), 1}, mask, POSITIONS, 0};
}

static struct array texts(const char *key, const struct scalars *s)
{
	return (struct array){key, "U", 1, {s->names_count, 1}, s->names, VALUES, s->points};
}

/* All arrays that a dataset may have; those whose values are NULL are left out. Returns their
 * number. */
static int list_arrays(const hg_dataset *d, struct scalars *s, struct array table[ARRAYS])
{
	const int64_t n = d->nodes, rows = hg__data_labelled(d),
	              stored = d->feat_rowptr ? d->feat_rowptr[n] : 0;
	s->version = 1;
	s->classes = d->classes;
	s->edge_classes = d->edge_classes;
	s->adj_shape[0] = s->adj_shape[1] = s->attr_shape[0] = n;
	s->attr_shape[1] = d->features;
	const struct array all[] = {
	    scalar("halfgraph", &s->version),
	    row("name", "u1", d->name ? (int64_t)strlen(d->name) : 0, d->name),
	    row("adj_shape", "i8", 2, s->adj_shape),
	    row("adj_indptr", "i8", n + 1, d->rowptr),
	    row("adj_indices", "i4", d->edges, d->col),
	    weights("adj_data", d->edges, d->col, d->weight),
	    matrix("edge_feat", "f4", d->edges, d->edge_features, d->edge_feat),
	    row("edge_label", "i4", d->edges, d->edge_label),
	    scalar("num_edge_classes", d->edge_label ? &s->edge_classes : NULL),
	    row("graph_ptr", "i8", d->graphs + 1, d->graph_ptr),
	    row("orig_id", "i8", n, d->orig_id),
	    row("order", "i4", n, d->order),
	    row("node_names", "u1", d->node_name_bytes, d->node_name),
	    matrix("attr_matrix", d->feat_dtype == HG_F16 ? "f2" : "f4", n, d->features,
	           d->features > 0 ? d->feat : NULL),
	    row("attr_shape", "i8", 2, d->feat_rowptr ? s->attr_shape : NULL),
	    row("attr_indptr", "i8", n + 1, d->feat_rowptr),
	    row("attr_indices", "i4", stored, d->feat_col),
	    weights("attr_data", stored, d->feat_col, d->feat_value),
	    row("attr_mean", "f8", d->features, d->features > 0 ? d->feat_mean : NULL),
	    row("attr_deviation", "f8", d->features, d->features > 0 ? d->feat_deviation : NULL),
	    row("labels", "i4", rows, d->label),
	    scalar("num_classes", &s->classes),
	    texts("class_names", s),
	    matrix("target", "f4", rows, d->targets, d->target),
	    row("target_names", "u1", d->target_names ? (int64_t)strlen(d->target_names) : 0,
	        d->target_names),
	    split("train_idx", rows, d->train_mask),
	    split("val_idx", rows, d->val_mask),
	    split("test_idx", rows, d->test_mask),
	    row("fold", "i4", rows, d->fold),
	};
	int count = 0;
	_Static_assert(sizeof all / sizeof *all <= ARRAYS, "a larger table");
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (all[k].values)
			table[count++] = all[k];
	return count;
}

static hg_status write_arrays(const hg_dataset *d, struct scalars *numbers, struct export *out)
{
	struct array table[ARRAYS];
	const int count = list_arrays(d, numbers, table);
	for (int k = 0; k < count; k++)
		out->total += bytes_of(&table[k]);
	for (int k = 0; k < count; k++)
		HG__TRY(write_array(out, &table[k]));
	return hg__zip_end(&out->zip);
}

static hg_status write_all(const hg_dataset *d, struct export *out)
{
	struct scalars numbers = {.names = NULL};
	if (d->class_name)
		HG__TRY(hg__names_widen(d->class_name, d->class_name_bytes, &numbers.names,
		                        &numbers.names_count, &numbers.points, out->zip.message));
	const hg_status status = write_arrays(d, &numbers, out);
	free(numbers.names);
	return status;
}

hg_status hg_dataset_write_npz(const hg_dataset *d, const char *path, const hg_progress *progress,
                               char *message)
{
	struct hg__atomic file;
	if (!d || !path)
		return hg__data_fail(message, HG_ERR_ARG, "dataset_write_npz: %s is NULL",
		                     d ? "path" : "dataset");
	HG__TRY(hg_dataset_check(d, path, message));
	HG__TRY(hg__atomic_begin(&file, path, message));
	struct export out = {.zip = {.fd = file.fd, .path = path, .message = message},
	                     .progress = progress};
	return hg__atomic_end(&file, write_all(d, &out));
}
