#include "support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zip.h>

const char *scratch(int slot, const char *name)
{
	static char path[4][256];
	snprintf(path[slot], sizeof path[slot], "%s", test_path(name));
	return path[slot];
}

void write_bytes(const char *path, const void *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");
	CHECK(file != NULL);
	const size_t written = fwrite(bytes, 1, count, file);
	CHECK(fclose(file) == 0 && written == count);
}

void write_text(const char *path, const char *text)
{
	write_bytes(path, text, strlen(text));
}

unsigned char *read_bytes(const char *path, size_t *count)
{
	FILE *file = fopen(path, "rb");
	CHECK_MSG(file != NULL, "%s cannot be opened", path);
	CHECK(fseek(file, 0, SEEK_END) == 0);
	const long size = ftell(file);
	rewind(file);
	unsigned char *bytes = malloc((size_t)size + 1);
	CHECK(bytes != NULL);
	*count = fread(bytes, 1, (size_t)size, file);
	fclose(file);
	CHECK_EQ_I(*count, size);
	return bytes;
}

void unseal(const char *path)
{
	size_t count = 0;
	unsigned char *bytes = read_bytes(path, &count);
	CHECK(count > 512 && memcmp(bytes + 512, "\211HDF\r\n\032\n", 8) == 0);
	write_bytes(path, bytes + 512, count - 512);
	free(bytes);
}

int file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

int count_scratch(const char *part)
{
	char directory[256];
	int found = 0;
	snprintf(directory, sizeof directory, "%s", test_path("x"));
	*strrchr(directory, '/') = 0;
	DIR *dir = opendir(directory);
	CHECK(dir != NULL);
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		found += strstr(entry->d_name, part) != NULL;
	closedir(dir);
	return found;
}

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = malloc(bytes > 0 ? bytes : 1);
	CHECK(copy != NULL);
	return memcpy(copy, from, bytes);
}
#define COPY(array) copy_of(array, sizeof(array))

static hg_dataset *small_graph(void)
{
	static const int64_t rowptr[] = {0, 2, 5, 7, 9, 11, 11};
	static const float target[] = {0.5f, -1, 2, 3, NAN, 5, 6, 7, 8, 9, 10, 1e30f};
	static const int32_t col[] = {1, 2, 0, 2, 3, 0, 1, 1, 4, 3, 4};
	static const float weight[] = {1, 0.5f, 1, 0, -2, 0.5f, 3, 1, 1e-3f, 7, 1};
	static const int32_t label[] = {0, 1, 2, -1, 1, 0};
	static const uint8_t train[] = {1, 1, 0, 0, 0, 0}, val[] = {0, 0, 1, 0, 0, 0},
	                     test[] = {0, 0, 0, 0, 1, 1};
	static const char names[] = "red\0\xc3\xa4, \"quoted\"\0\xf0\x9f\x90\xa2";
	static const char node_names[] = "a\0\0b, \"c\"\0\xc3\xa4\0\xff raw\0last";
	static const int64_t orig_id[] = {10, 20, 30, 40, 50, INT64_C(1) << 40};
	static const int32_t edge_label[] = {0, 1, 2, 3, -1, 1, 1, 0, 2, 2, 3};
	static const float edge_feat[] = {0, 1,    10, -1.5f, 20, 1e-9f, 30,  0.1f,  40, 4,  50,
	                                  5, 1e5f, 60, 7,     70, 8,     -80, 65504, 90, 10, -100};
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->name = COPY("small");
	d->nodes = 6;
	d->edges = 11;
	d->rowptr = COPY(rowptr);
	d->col = COPY(col);
	d->weight = COPY(weight);
	d->classes = 3;
	d->class_name = COPY(names);
	d->class_name_bytes = sizeof names;
	d->label = COPY(label);
	d->train_mask = COPY(train);
	d->val_mask = COPY(val);
	d->test_mask = COPY(test);
	d->orig_id = COPY(orig_id);
	d->node_name = COPY(node_names);
	d->node_name_bytes = sizeof node_names;
	d->targets = 2;
	d->target = COPY(target);
	d->target_names = COPY("energy\n\xc3\xa5ngstr\xc3\xb6m");
	d->edge_features = 2;
	d->edge_feat = COPY(edge_feat);
	d->edge_classes = 5;
	d->edge_label = COPY(edge_label);
	return d;
}

hg_dataset *small_dataset(void)
{
	static const float feat[] = {0,     1,  2,  -3, 4.5f,   0.1f, 6,  1e-9f, 8,
	                             65504, 10, 11, 12, -65504, 14,   15, 16,    17};
	static const double mean[] = {0.1, -2e30, 0}, deviation[] = {1.0 / 3.0, 1e-30, 0};
	hg_dataset *d = small_graph();
	d->features = 3;
	d->feat = COPY(feat);
	d->feat_amax = 65504;
	d->feat_mean = COPY(mean);
	d->feat_deviation = COPY(deviation);
	return d;
}

hg_dataset *small_sparse(void)
{
	static const int64_t rowptr[] = {0, 1, 1, 4, 5, 5, 6};
	static const int32_t col[] = {3, 0, 1, 4, 2, 4};
	static const float value[] = {1, -2, 0, 0.25f, 5, 1};
	hg_dataset *d = small_graph();
	d->features = 5;
	d->feat_rowptr = COPY(rowptr);
	d->feat_col = COPY(col);
	d->feat_value = COPY(value);
	d->feat_amax = 5;
	return d;
}

hg_dataset *small_batch(void)
{
	static const int64_t rowptr[] = {0, 1, 2, 2, 4, 5, 6}, graph_ptr[] = {0, 3, 6};
	static const int32_t col[] = {1, 0, 4, 5, 3, 3}, label[] = {1, 0};
	static const uint8_t train[] = {1, 0}, test[] = {0, 1};
	static const float target[] = {2.5f, NAN};
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = 6;
	d->edges = 6;
	d->graphs = 2;
	d->rowptr = COPY(rowptr);
	d->col = COPY(col);
	d->graph_ptr = COPY(graph_ptr);
	d->classes = 2;
	d->label = COPY(label);
	d->train_mask = COPY(train);
	d->test_mask = COPY(test);
	d->targets = 1;
	d->target = COPY(target);
	return d;
}

hg_dataset *labelled_nodes(int64_t nodes)
{
	hg_dataset *d = NULL;
	CHECK_OK(hg_dataset_new(&d, NULL));
	d->nodes = nodes;
	d->classes = 3;
	d->rowptr = calloc((size_t)nodes + 1, sizeof *d->rowptr);
	d->col = calloc(1, sizeof *d->col);
	d->label = calloc((size_t)nodes, sizeof *d->label);
	CHECK(d->rowptr && d->col && d->label);
	for (int64_t i = 0; i < nodes; i++)
		d->label[i] = 10 * i < 6 * nodes ? 0 : 10 * i < 9 * nodes ? 1 : i < nodes - 3 ? 2 : -1;
	return d;
}

int64_t count_masked(const uint8_t *mask, const hg_dataset *d, int32_t label)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		sum += mask[i] && (label == ANY_CLASS || d->label[i] == label);
	return sum;
}

static void same_bytes(const char *what, const void *a, const void *b, int64_t count, size_t size)
{
	CHECK_MSG(!a == !b, "%s is present in one only", what);
	CHECK_MSG(!a || memcmp(a, b, (size_t)count * size) == 0, "%s differs", what);
}

void check_same(const hg_dataset *a, const hg_dataset *b)
{
	CHECK_STR(a->name ? a->name : "", b->name ? b->name : "");
	CHECK_EQ_I(a->nodes, b->nodes);
	CHECK_EQ_I(a->edges, b->edges);
	CHECK_EQ_I(a->graphs, b->graphs);
	CHECK_EQ_I(a->features, b->features);
	CHECK_EQ_I(a->classes, b->classes);
	CHECK_EQ_I(a->feat_dtype, b->feat_dtype);
	CHECK_WITHIN(a->feat_amax, b->feat_amax, 0);
	const int64_t labelled = a->graph_ptr ? a->graphs : a->nodes;
	CHECK_EQ_I(a->class_name_bytes, b->class_name_bytes);
	CHECK_EQ_I(a->node_name_bytes, b->node_name_bytes);
	same_bytes("node_name", a->node_name, b->node_name, a->node_name_bytes, 1);
	same_bytes("class_name", a->class_name, b->class_name, a->class_name_bytes, 1);
	same_bytes("feat_mean", a->feat_mean, b->feat_mean, a->features, sizeof *a->feat_mean);
	same_bytes("feat_deviation", a->feat_deviation, b->feat_deviation, a->features,
	           sizeof *a->feat_deviation);
	same_bytes("rowptr", a->rowptr, b->rowptr, a->nodes + 1, sizeof *a->rowptr);
	same_bytes("col", a->col, b->col, a->edges, sizeof *a->col);
	same_bytes("weight", a->weight, b->weight, a->edges, sizeof *a->weight);
	CHECK_EQ_I(a->edge_features, b->edge_features);
	CHECK_EQ_I(a->edge_classes, b->edge_classes);
	same_bytes("edge_feat", a->edge_feat, b->edge_feat, a->edges * a->edge_features,
	           sizeof *a->edge_feat);
	same_bytes("edge_label", a->edge_label, b->edge_label, a->edges, sizeof *a->edge_label);
	same_bytes("graph_ptr", a->graph_ptr, b->graph_ptr, a->graphs + 1, sizeof *a->graph_ptr);
	same_bytes("feat", a->feat, b->feat, a->nodes * a->features, hg_dtype_size(a->feat_dtype));
	same_bytes("feat_rowptr", a->feat_rowptr, b->feat_rowptr, a->nodes + 1, sizeof *a->feat_rowptr);
	const int64_t stored = a->feat_rowptr ? a->feat_rowptr[a->nodes] : 0;
	same_bytes("feat_col", a->feat_col, b->feat_col, stored, sizeof *a->feat_col);
	same_bytes("feat_value", a->feat_value, b->feat_value, stored, sizeof *a->feat_value);
	same_bytes("label", a->label, b->label, labelled, sizeof *a->label);
	CHECK_EQ_I(a->targets, b->targets);
	same_bytes("target", a->target, b->target, labelled * a->targets, sizeof *a->target);
	CHECK_STR(a->target_names ? a->target_names : "", b->target_names ? b->target_names : "");
	same_bytes("train_mask", a->train_mask, b->train_mask, labelled, 1);
	same_bytes("val_mask", a->val_mask, b->val_mask, labelled, 1);
	same_bytes("test_mask", a->test_mask, b->test_mask, labelled, 1);
	CHECK_EQ_I(a->folds, b->folds);
	same_bytes("fold", a->fold, b->fold, labelled, sizeof *a->fold);
	same_bytes("orig_id", a->orig_id, b->orig_id, a->nodes, sizeof *a->orig_id);
	same_bytes("order", a->order, b->order, a->nodes, sizeof *a->order);
}

hg_dataset *must_read(const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	const hg_status status = hg_dataset_read(path, &d, message);
	CHECK_MSG(status == HG_OK, "read: %s", message);
	return d;
}

void must_write(const hg_dataset *d, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_dataset_write(d, path, message);
	CHECK_MSG(status == HG_OK, "write: %s", message);
}

static hg_status import_as(const char *format, const char *path, hg_dataset **d, char *message)
{
	size_t count = 0;
	const hg_importer *table = hg_importers(&count);
	for (size_t k = 0; k < count; k++)
		if (strcmp(table[k].name, format) == 0)
			return table[k].import(&path, 1, NULL, d, message);
	test_fail(__FILE__, __LINE__, "no importer %s", format);
}

hg_dataset *must_import(const char *format, const char *path)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	const hg_status status = import_as(format, path, &d, message);
	CHECK_MSG(status == HG_OK, "import: %s", message);
	return d;
}

static void check_refusal(const hg_dataset *d, hg_status found, hg_status expected,
                          const char *message, const char *path, const char *part)
{
	CHECK_MSG(found == expected, "%s: %s, expected %s (%s)", path, hg_status_name(found),
	          hg_status_name(expected), message);
	CHECK_CONTAINS(message, part);
	CHECK_MSG(strchr(message, '\n') == NULL, "more than one line");
	CHECK(d == NULL);
}

void must_refuse(const char *format, const char *path, hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	const hg_status found = import_as(format, path, &d, message);
	check_refusal(d, found, status, message, path, part);
}

void must_not_read(const char *path, hg_status status, const char *part)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_dataset *d = NULL;
	const hg_status found = hg_dataset_read(path, &d, message);
	check_refusal(d, found, status, message, path, part);
}

/* The bytes of an .npy file, which the caller frees. */
static unsigned char *npy_bytes(const char *descr, const char *shape, const void *elements,
                                size_t count, size_t *size)
{
	char header[256];
	const int length =
	    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
	             descr, shape);
	unsigned char *bytes = malloc(10 + (size_t)length + count);
	CHECK(bytes != NULL);
	memcpy(bytes, "\x93NUMPY\x01\x00", 8);
	bytes[8] = (unsigned char)(length & 255);
	bytes[9] = (unsigned char)(length >> 8);
	memcpy(bytes + 10, header, (size_t)length);
	memcpy(bytes + 10 + length, elements, count);
	*size = 10 + (size_t)length + count;
	return bytes;
}

void write_npy(const char *path, const char *descr, const char *shape, const void *bytes,
               size_t count)
{
	size_t size = 0;
	unsigned char *file = npy_bytes(descr, shape, bytes, count, &size);
	write_bytes(path, file, size);
	free(file);
}

struct npz_out {
	zip_t *zip;
};

struct npz_out *npz_begin(const char *path)
{
	int code = 0;
	struct npz_out *out = calloc(1, sizeof *out);
	CHECK(out != NULL);
	out->zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
	CHECK_MSG(out->zip != NULL, "%s: libzip says %d", path, code);
	return out;
}

void npz_raw(struct npz_out *out, const char *name, const void *bytes, size_t count)
{
	/* libzip frees the copy, but not one of 0 bytes */
	zip_source_t *source =
	    zip_source_buffer(out->zip, count > 0 ? copy_of(bytes, count) : NULL, count, 1);
	CHECK(source != NULL);
	CHECK(zip_file_add(out->zip, name, source, ZIP_FL_OVERWRITE) >= 0);
}

void npz_add(struct npz_out *out, const char *key, const char *descr, const char *shape,
             const void *bytes, size_t count)
{
	char name[64];
	size_t size = 0;
	unsigned char *member = npy_bytes(descr, shape, bytes, count, &size);
	snprintf(name, sizeof name, "%s.npy", key);
	npz_raw(out, name, member, size);
	free(member);
}

void npz_end(struct npz_out *out, int stored)
{
	for (zip_int64_t k = 0; k < zip_get_num_entries(out->zip, 0); k++)
		CHECK(zip_set_file_compression(out->zip, (zip_uint64_t)k,
		                               stored ? ZIP_CM_STORE : ZIP_CM_DEFLATE, 9) == 0);
	CHECK_MSG(zip_close(out->zip) == 0, "%s", zip_strerror(out->zip));
	free(out);
}

char convert_out[8192], convert_err[8192];

static void slurp(const char *path, char *text)
{
	FILE *file = fopen(path, "rb");
	text[0] = 0;
	if (!file)
		return;
	text[fread(text, 1, sizeof convert_out - 1, file)] = 0;
	fclose(file);
}

int run_convert(const char *arguments)
{
	char directory[256], out_path[256], err_path[256], command[2048];
	snprintf(directory, sizeof directory, "%s", test_path("x"));
	*strrchr(directory, '/') = 0;
	snprintf(out_path, sizeof out_path, "%s", test_path("stdout"));
	snprintf(err_path, sizeof err_path, "%s", test_path("stderr"));
	size_t used = (size_t)snprintf(command, sizeof command, "{ \"%s\" ", HG_H5CONVERT);
	for (const char *c = arguments; *c; c++) {
		used += (size_t)snprintf(command + used, sizeof command - used, "%.*s",
		                         *c == '@' ? (int)sizeof directory : 1, *c == '@' ? directory : c);
		CHECK(used < sizeof command - 600); /* room for the rest of the command */
	}
	snprintf(command + used, sizeof command - used, " ; } >\"%s\" 2>\"%s\" </dev/null", out_path,
	         err_path);
	const int code = system(command);
	slurp(out_path, convert_out);
	slurp(err_path, convert_err);
	return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}
