/* Read the datasets of MUSAE (Rozemberczki, Allen, Sarkar 2021) and of their other collections:
 *
 *     STEM_edges.csv      a header, then two nodes per line; an edge has no direction
 *     STEM_features.json  {"node": [features that it has], ...}; optional
 *     STEM_target.csv     a table with a row for each node (musae_target.c)
 *
 * Each may be compressed with gzip. The input is one of the files, or a folder or zip archive with
 * one dataset. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"
#include "import/json_lists.h"
#include "import/musae.h"
#include "import/run.h"

/* ---- the files ---- */

static const char *const parts[] = {"_edges.csv", "_features.json", "_target.csv"};

/* The length of STEM in "STEM_edges.csv" or "STEM_edges.csv.gz"; 0: it is another name. */
static size_t stem_length(const char *name)
{
	size_t length = strlen(name);
	if (length > 3 && strcmp(name + length - 3, ".gz") == 0)
		length -= 3;
	for (int k = 0; k < 3; k++) {
		const size_t end = strlen(parts[k]);
		if (length > end && strncmp(name + length - end, parts[k], end) == 0 &&
		    name[length - end - 1] != '/')
			return length - end;
	}
	return 0;
}

/* The only dataset of a folder. */
static hg_status find_stem(struct hg__musae *in, const char *path)
{
	HG__TRY(hg__folder_open(&in->folder, path, in->config.progress, in->message));
	HG__TRY(hg__folder_list(&in->folder));
	for (int64_t k = 0; k < in->folder.count; k++) {
		const char *name = in->folder.name[k];
		const size_t length = stem_length(name);
		if (length == 0)
			continue;
		if (!in->folder.stem)
			HG__TRY(hg__folder_stem(&in->folder, name, length));
		else if (strlen(in->folder.stem) != length || strncmp(in->folder.stem, name, length) != 0)
			return hg__data_fail(in->message, HG_ERR_FORMAT,
			                     "%s: holds the datasets %s and %.*s, expected one: give one of "
			                     "its files instead",
			                     path, in->folder.stem, (int)length, name);
	}
	return in->folder.stem ? HG_OK
	                       : hg__data_fail(in->message, HG_ERR_FORMAT,
	                                       "%s: holds no file NAME_target.csv of MUSAE", path);
}

static hg_status find_files(struct hg__musae *in, const char *path)
{
	const char *slash = strrchr(path, '/');
	if (stem_length(path) == 0)
		return find_stem(in, path);
	HG__TRY(hg__folder_open_around(&in->folder, path, in->config.progress, in->message));
	const char *name = slash ? slash + 1 : path;
	return hg__folder_stem(&in->folder, name, stem_length(name));
}

hg_status hg__musae_expect(const struct hg__musae *in, const char *part)
{
	const char *stem = in->folder.stem;
	return hg__folder_has_part(&in->folder, part)
	           ? HG_OK
	           : hg__data_fail(in->message, HG_ERR_IO, "%s: no file %s%s or %s%s.gz",
	                           in->folder.root, stem, part, stem, part);
}

/* ---- edges ---- */

static hg_status add_edge(const struct lines *lines, const char *line, struct hg__coo *coo)
{
	static const char expected[] = "expected two node numbers";
	const char *at = line;
	int64_t node[2] = {0, 0};
	for (int k = 0; k < 2; k++) {
		HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, &node[k]));
		if (node[k] < 0 || node[k] >= coo->rows)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": node %" PRId64
			                     ": the nodes of the target file are 0 .. %" PRId64,
			                     lines->path, lines->number, node[k], coo->rows - 1);
	}
	if (*at)
		return hg__lines_fail(lines, expected, line);
	HG__TRY(hg__coo_add(coo, (int32_t)node[0], (int32_t)node[1], 1.0f, lines->message));
	return node[0] == node[1]
	           ? HG_OK
	           : hg__coo_add(coo, (int32_t)node[1], (int32_t)node[0], 1.0f, lines->message);
}

static int count_words(const char *at)
{
	int words = 0;
	for (at = hg__skip_separators(at); *at; at = hg__skip_separators(at)) {
		at += strcspn(at, " \t,");
		words++;
	}
	return words;
}

static hg_status add_line(const struct lines *lines, const char *line, void *to)
{
	const int is_heading = lines->number == 1 && (*line < '0' || *line > '9') && *line != '-';
	if (!is_heading)
		return add_edge(lines, line, to);
	return count_words(line) == 2
	           ? HG_OK
	           : hg__lines_fail(lines, "expected the names of two columns, such as id_1,id_2",
	                            line);
}

static hg_status read_edges(const struct hg__musae *in, hg_dataset *d)
{
	struct hg__coo coo = {.rows = d->nodes, .cols = d->nodes};
	char shown[HG_DATA_MESSAGE];
	HG__TRY(hg__musae_expect(in, "_edges.csv"));
	hg_status status = hg__coo_reserve(&coo, 1024, 0, in->message);
	if (status == HG_OK)
		status = hg__folder_read(&in->folder, "_edges.csv", add_line, &coo);
	if (status == HG_OK)
		status = hg__coo_to_graph(&coo, HG__MERGE_MAX, d, in->message);
	hg__folder_show(&in->folder, "_edges.csv", shown);
	if (status == HG_OK)
		hg__import_note_merged(&in->config, shown, coo.m, d->edges, 0);
	hg__coo_free(&coo);
	return status;
}

/* ---- features ---- */

struct features {
	const struct hg__bytes *bytes;
	struct hg__coo coo;
	uint8_t *seen; /* [nodes] the node has a list */
};

static hg_status take_feature(void *user, int64_t node, int64_t feature)
{
	struct features *f = user;
	const struct hg__bytes *b = f->bytes;
	if (node >= f->coo.rows || (feature < 0 && f->seen[node]))
		return hg__data_fail(b->message, HG_ERR_FORMAT,
		                     "%s: node %" PRId64 "%s, expected each of 0 .. %" PRId64
		                     " at most once",
		                     b->path, node, node < f->coo.rows ? " again" : "", f->coo.rows - 1);
	f->seen[node] = 1;
	if (feature < 0)
		return HG_OK;
	if (feature >= INT32_MAX)
		return hg__data_fail(b->message, HG_ERR_FORMAT,
		                     "%s: node %" PRId64 " has feature %" PRId64
		                     ", expected 0 .. 2147483646",
		                     b->path, node, feature);
	f->coo.cols = feature >= f->coo.cols ? feature + 1 : f->coo.cols;
	return hg__coo_add(&f->coo, (int32_t)node, (int32_t)feature, 1.0f, b->message);
}

static hg_status read_lists(const struct hg__musae *in, struct hg__bytes *bytes, hg_dataset *d)
{
	struct features f = {.bytes = bytes, .coo = {.rows = d->nodes}};
	struct hg__sparse m = {0};
	int64_t without = 0;
	hg_status status =
	    hg__data_alloc(d->nodes, 1, "nodes with features", (void **)&f.seen, in->message);
	if (status == HG_OK) {
		memset(f.seen, 0, (size_t)d->nodes);
		status = hg__coo_reserve(&f.coo, 1024, 0, in->message);
	}
	if (status == HG_OK)
		status = hg__json_lists(bytes, take_feature, &f);
	if (status == HG_OK)
		status = hg__coo_to_sparse(&f.coo, HG__MERGE_MAX, &m, in->message);
	for (int64_t i = 0; status == HG_OK && i < d->nodes; i++)
		without += !f.seen[i];
	if (without > 0)
		hg__import_note(&in->config,
		                "%s: %" PRId64 " of %" PRId64 " nodes have no list of features",
		                bytes->path, without, d->nodes);
	hg__coo_free(&f.coo);
	free(f.seen);
	d->features = m.cols;
	d->feat_rowptr = m.rowptr;
	d->feat_col = m.col;
	return status;
}

static hg_status read_features(const struct hg__musae *in, hg_dataset *d)
{
	static const char part[] = "_features.json";
	struct hg__bytes bytes = {.fd = -1};
	char *name = NULL, *path = NULL;
	if (!hg__folder_has_part(&in->folder, part)) {
		hg__import_note(&in->config, "%s: no file %s%s: the nodes have no features",
		                in->folder.root, in->folder.stem, part);
		return HG_OK;
	}
	HG__TRY(hg__folder_part(&in->folder, part, &name));
	hg_status status = hg__folder_path(&in->folder, name, &path);
	if (status == HG_OK)
		status = hg__folder_bytes(&in->folder, name, path, &bytes);
	if (status == HG_OK)
		status = read_lists(in, &bytes, d);
	hg__bytes_close(&bytes);
	free(path);
	free(name);
	return status;
}

static hg_status read_set(struct hg__musae *in, const char *path, hg_dataset *d)
{
	HG__TRY(find_files(in, path));
	HG__TRY(hg__folder_name(&in->folder, d));
	HG__TRY(hg__musae_target(in, d));
	HG__TRY(read_edges(in, d));
	return read_features(in, d);
}

static hg_status read_all(struct hg__import *run)
{
	struct hg__musae in = {.config = run->config, .message = run->message};
	const hg_status status = read_set(&in, run->path, run->d);
	hg__folder_close(&in.folder);
	return status;
}

hg_status hg__import_musae(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
