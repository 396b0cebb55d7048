/* Write predictions as text, for numpy, or as HDF5: the ending of the file's name decides. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"
#include "h5/h5.h"
#include "import/number.h"
#include "npz_write.h"
#include "seal.h"
#include "stream.h"

/* What a row has beside id and class: probabilities, or the predicted targets. */
static const float *values_of(const hg_prediction *p)
{
	return p->probability ? p->probability : p->logits;
}

static const char *values_name(const hg_prediction *p)
{
	return p->probability ? "probability" : "value";
}

/* ",0.25,0.75" */
static void put_values(struct hg__stream *s, const float *values, int64_t cols)
{
	for (int64_t c = 0; c < cols; c++)
		hg__stream_text(s, ",%.9g", (double)values[c]);
}

/* A field of a table: in quotes where it has a comma, a quote or the end of a line (RFC 4180). */
static void put_field(struct hg__stream *s, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		hg__stream_put(s, text, strlen(text));
		return;
	}
	hg__stream_put(s, "\"", 1);
	for (; *text; text++)
		hg__stream_put(s, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	hg__stream_put(s, "\"", 1);
}

/* Where the name of each class begins; NULL: they have none. */
static hg_status find_names(const hg_prediction *p, const char ***names, char *message)
{
	*names = NULL;
	if (!p->class_name)
		return HG_OK;
	HG__TRY(hg__data_alloc(p->cols, sizeof **names, "names of classes", (void **)names, message));
	const char *at = p->class_name, *end = at + p->class_name_bytes;
	for (int64_t c = 0; c < p->cols; c++) {
		(*names)[c] = at < end ? at : "";
		at += at < end ? strlen(at) + 1 : 0;
	}
	return HG_OK;
}

static void put_class(struct hg__stream *s, const hg_prediction *p, const char *const *names,
                      int64_t i)
{
	const int32_t class = p->label[i];
	hg__stream_put(s, ",", 1);
	if (!names)
		hg__stream_text(s, "%" PRId32, class);
	else if (class >= 0 && class < p->cols)
		put_field(s, names[class]);
}

/* The number of a node, or its name, which *name then passes. */
static void put_id(struct hg__stream *s, int64_t id, const char **name)
{
	if (!*name) {
		hg__stream_text(s, "%" PRId64, id);
		return;
	}
	put_field(s, *name);
	*name += strlen(*name) + 1;
}

static hg_status write_table(const hg_prediction *p, const struct hg__atomic *file,
                             const char *const *names)
{
	struct hg__stream *s = NULL;
	const int64_t depth = p->embedding ? p->embedding_cols : 0;
	const char *name = p->of_graphs ? NULL : p->node_name;
	HG__TRY(hg__stream_new(file, &s));
	hg__stream_text(s, p->label ? "id,class" : "id");
	for (int64_t c = 0; c < p->cols; c++)
		hg__stream_text(s, ",%c%" PRId64, p->probability ? 'p' : 't', c);
	for (int64_t c = 0; c < depth; c++)
		hg__stream_text(s, ",e%" PRId64, c);
	hg__stream_put(s, "\n", 1);
	for (int64_t i = 0; i < p->rows && s->status == HG_OK; i++) {
		put_id(s, p->id[i], &name);
		if (p->label)
			put_class(s, p, names, i);
		put_values(s, values_of(p) + i * p->cols, p->cols);
		if (depth)
			put_values(s, p->embedding + i * depth, depth);
		hg__stream_put(s, "\n", 1);
	}
	const hg_status status = hg__stream_end(s);
	free(s);
	return status;
}

static hg_status write_csv(const hg_prediction *p, const struct hg__atomic *file)
{
	const char **names = NULL;
	HG__TRY(find_names(p, &names, file->message));
	const hg_status status = write_table(p, file, names);
	free(names);
	return status;
}

static hg_status write_arrays_npz(const hg_prediction *p, const struct hg__atomic *file,
                                  const struct hg__npz_array *names)
{
	struct hg__npz_array arrays[7] = {{"id", "<i8", p->rows, 0, sizeof *p->id, p->id}};
	int count = 1;
	if (p->label)
		arrays[count++] =
		    (struct hg__npz_array){"class", "<i4", p->rows, 0, sizeof *p->label, p->label};
	arrays[count++] = (struct hg__npz_array){values_name(p), "<f4",         p->rows,
	                                         p->cols,        sizeof(float), values_of(p)};
	if (p->embedding)
		arrays[count++] = (struct hg__npz_array){
		    "embedding", "<f4", p->embedding_rows, p->embedding_cols, sizeof(float), p->embedding};
	if (p->embedding_id)
		arrays[count++] = (struct hg__npz_array){
		    "embedding_id", "<i8", p->embedding_rows, 0, sizeof *p->embedding_id, p->embedding_id};
	if (p->node_name)
		arrays[count++] =
		    (struct hg__npz_array){"node_names", "|u1", p->node_name_bytes, 0, 1, p->node_name};
	if (names)
		arrays[count++] = *names;
	return hg__npz_write(file, arrays, count);
}

static hg_status write_npz(const hg_prediction *p, const struct hg__atomic *file)
{
	uint32_t *wide = NULL;
	int64_t count = 0, width = 0;
	char type[24];
	if (!p->class_name)
		return write_arrays_npz(p, file, NULL);
	HG__TRY(
	    hg__names_widen(p->class_name, p->class_name_bytes, &wide, &count, &width, file->message));
	(void)snprintf(type, sizeof type, "<U%" PRId64, width);
	const struct hg__npz_array names = {"class_names", type, count, 0, 4 * (size_t)width, wide};
	const hg_status status = write_arrays_npz(p, file, &names);
	free(wide);
	return status;
}

static hg_status write_arrays(const struct h5 *h5, const hg_prediction *p)
{
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "format", "halfgraph-prediction"));
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "format_version",
	                                p->embedding || p->class_name || p->node_name ? "1.1" : "1.0"));
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "rows", p->of_graphs ? "graphs" : "nodes"));
	HG__TRY(hg__h5_write(h5, h5->file, "id", H5_I64, p->rows, 0, p->id, NULL));
	if (p->label)
		HG__TRY(hg__h5_write(h5, h5->file, "class", H5_I32, p->rows, 0, p->label, NULL));
	HG__TRY(
	    hg__h5_write(h5, h5->file, values_name(p), H5_F32, p->rows, p->cols, values_of(p), NULL));
	if (p->class_name)
		HG__TRY(hg__h5_write(h5, h5->file, "class_names", H5_U8, p->class_name_bytes, 0,
		                     p->class_name, NULL));
	if (p->node_name)
		HG__TRY(hg__h5_write(h5, h5->file, "node_names", H5_U8, p->node_name_bytes, 0, p->node_name,
		                     NULL));
	if (p->embedding)
		HG__TRY(hg__h5_write(h5, h5->file, "embedding", H5_F32, p->embedding_rows,
		                     p->embedding_cols, p->embedding, NULL));
	return p->embedding_id ? hg__h5_write(h5, h5->file, "embedding_id", H5_I64, p->embedding_rows,
	                                      0, p->embedding_id, NULL)
	                       : HG_OK;
}

static hg_status write_h5(const hg_prediction *p, const struct hg__atomic *file)
{
	struct h5 h5;
	hg_status status = hg__h5_create(&h5, file->fd, file->path, 1, file->message);
	if (status == HG_OK)
		status = write_arrays(&h5, p);
	if (status < 0)
		h5.message = NULL; /* the first failure is the one to report */
	const hg_status closed = hg__h5_close(&h5);
	HG__TRY(status);
	HG__TRY(closed);
	return hg__seal_write(file->fd, file->path, NULL, file->message);
}

static const struct {
	const char *ending;
	hg_status (*write)(const hg_prediction *p, const struct hg__atomic *file);
} formats[] = {{".csv", write_csv}, {".npz", write_npz}, {".h5", write_h5}};
#define FORMATS (sizeof formats / sizeof formats[0])

static size_t format_of(const char *path)
{
	const size_t length = strlen(path);
	size_t k = 0;
	for (; k < FORMATS; k++) {
		const size_t ending = strlen(formats[k].ending);
		if (length > ending && hg__same_word(path + length - ending, formats[k].ending))
			break;
	}
	return k;
}

const char *hg_prediction_format(const char *path)
{
	const size_t k = path ? format_of(path) : FORMATS;
	return k < FORMATS ? formats[k].ending : NULL;
}

hg_status hg_prediction_write(const hg_prediction *prediction, const char *path, char *message)
{
	struct hg__atomic file;
	if (!prediction || !path)
		return hg__data_fail(message, HG_ERR_ARG, "prediction_write: %s is NULL",
		                     prediction ? "path" : "prediction");
	const size_t format = format_of(path);
	if (format == FORMATS)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "%s: ends with none of .csv, .npz and .h5, which tell the format of "
		                     "predictions",
		                     path);
	if (formats[format].write == write_csv && prediction->embedding_id)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "%s: a table has no room for embeddings of nodes beside predictions "
		                     "of graphs: write .npz or .h5",
		                     path);
	HG__TRY(hg__atomic_begin(&file, path, message));
	return hg__atomic_end(&file, formats[format].write(prediction, &file));
}
