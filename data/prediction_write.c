/* Write predictions as text, for numpy, or as HDF5: the ending of the file's name decides. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static hg_status write_csv(const hg_prediction *p, const struct hg__atomic *file)
{
	struct hg__stream *s = NULL;
	const int64_t depth = p->embedding ? p->embedding_cols : 0;
	HG__TRY(hg__stream_new(file, &s));
	hg__stream_text(s, p->label ? "id,class" : "id");
	for (int64_t c = 0; c < p->cols; c++)
		hg__stream_text(s, ",%c%" PRId64, p->probability ? 'p' : 't', c);
	for (int64_t c = 0; c < depth; c++)
		hg__stream_text(s, ",e%" PRId64, c);
	hg__stream_put(s, "\n", 1);
	for (int64_t i = 0; i < p->rows && s->status == HG_OK; i++) {
		hg__stream_text(s, "%" PRId64, p->id[i]);
		if (p->label)
			hg__stream_text(s, ",%" PRId32, p->label[i]);
		put_values(s, values_of(p) + i * p->cols, p->cols);
		if (depth)
			put_values(s, p->embedding + i * depth, depth);
		hg__stream_put(s, "\n", 1);
	}
	const hg_status status = hg__stream_end(s);
	free(s);
	return status;
}

static hg_status write_npz(const hg_prediction *p, const struct hg__atomic *file)
{
	struct hg__npz_array arrays[5] = {{"id", "<i8", p->rows, 0, sizeof *p->id, p->id}};
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
	return hg__npz_write(file, arrays, count);
}

static hg_status write_arrays(const struct h5 *h5, const hg_prediction *p)
{
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "format", "halfgraph-prediction"));
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "format_version", p->embedding ? "1.1" : "1.0"));
	HG__TRY(hg__h5_fixed_text_write(h5, h5->file, "rows", p->of_graphs ? "graphs" : "nodes"));
	HG__TRY(hg__h5_write(h5, h5->file, "id", H5_I64, p->rows, 0, p->id, NULL));
	if (p->label)
		HG__TRY(hg__h5_write(h5, h5->file, "class", H5_I32, p->rows, 0, p->label, NULL));
	HG__TRY(
	    hg__h5_write(h5, h5->file, values_name(p), H5_F32, p->rows, p->cols, values_of(p), NULL));
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
