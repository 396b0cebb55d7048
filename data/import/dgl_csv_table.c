/* Read a table of nodes or graphs of a DGL CSVDataset. Its columns are an id, the graph (of nodes),
 * label, feat, and train_mask, val_mask, test_mask, all but the id optional. label and feat are
 * numbers, or lists of numbers in quotes. Other columns are not read, and a note says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/dgl_csv.h"
#include "import/number.h"

/* A line with a list of 10,000 features of 20 digits has 200 kB. */
#define LINE_BYTES ((size_t)1 << 26)

/* ---- for tables of all kinds ---- */

static hg_status read_lines(struct lines *lines, void *to)
{
	lines->most = LINE_BYTES;
	return hg__csv_read(lines, to);
}

hg_status hg__dgl_read(const struct hg__dgl *in, const char *file, struct hg__csv_reader *reader)
{
	char *name = NULL;
	HG__TRY(hg__folder_part(&in->folder, file, &name));
	const hg_status status = hg__folder_text(&in->folder, name, read_lines, reader);
	free(name);
	return status;
}

hg_status hg__dgl_column(const struct hg__dgl *in, int item, const char *key, const char *otherwise,
                         const char **name)
{
	HG__TRY(hg__yaml_text(&in->yaml, item, key, 0, name));
	*name = *name ? *name : otherwise;
	return HG_OK;
}

hg_status hg__dgl_graph(const struct lines *lines, const char *field,
                        const struct hg__dgl_table *graphs, int32_t *group)
{
	*group = 0;
	if (!graphs)
		return strcmp(field, "0") == 0
		           ? HG_OK
		           : hg__lines_fail(lines, "expected graph 0: meta.yaml names no graph_data",
		                            field);
	const int64_t found = hg__ids_find(&graphs->id, field, 0);
	if (found < 0)
		return hg__lines_fail(lines, "expected a graph of graph_data", field);
	*group = (int32_t)found;
	return HG_OK;
}

void hg__dgl_note_columns(const struct hg__dgl *in, const char *file, const struct hg__csv *header,
                          const int *used, int count, const char *why)
{
	char names[256] = "", shown[HG_DATA_MESSAGE];
	size_t length = 0;
	int more = 0;
	hg__folder_show(&in->folder, file, shown);
	for (int k = 0; k < header->count; k++) {
		int is_used = 0;
		for (int u = 0; u < count; u++)
			is_used |= used[u] == k;
		if (is_used || !header->field[k][0])
			continue;
		const int fits = length + strlen(header->field[k]) + 4 < sizeof names;
		if (fits)
			length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
			                           length > 0 ? ", " : "", header->field[k]);
		more |= !fits;
	}
	if (length > 0 || more)
		hg__import_note(&in->config, "%s: not read: %s%s%s", shown, names, more ? " and more" : "",
		                why);
}

char *hg__dgl_trim(char *field)
{
	field += strspn(field, " \t");
	size_t length = strlen(field);
	while (length > 0 && (field[length - 1] == ' ' || field[length - 1] == '\t'))
		field[--length] = 0;
	return field;
}

char *hg__dgl_list(char *field)
{
	field = hg__dgl_trim(field);
	const size_t length = strlen(field);
	const int has = length > 1 && ((*field == '[' && field[length - 1] == ']') ||
	                               (*field == '(' && field[length - 1] == ')'));
	if (!has)
		return field;
	field[length - 1] = 0;
	return hg__dgl_trim(field + 1);
}

/* ---- nodes and graphs ---- */

struct reader {
	const struct hg__dgl *in;
	struct hg__dgl_table *t;
	const char *id_name, *graph_name;
	int id, graph, label, feat, mask[3]; /* columns; -1: there is none */
	int64_t mask_room;
};

static hg_status read_header(const struct lines *lines, const struct hg__csv *header, void *user)
{
	static const char *const masks[] = {"train_mask", "val_mask", "test_mask"};
	struct reader *r = user;
	const int targets = !r->t->graphs; /* in a batch those of the graphs count */
	r->id = hg__csv_column(header, r->id_name);
	if (r->id < 0)
		return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s:1: expected the column %.60s",
		                     lines->path, r->id_name);
	r->graph = r->graph_name ? hg__csv_column(header, r->graph_name) : -1;
	if (r->t->graphs && r->graph < 0)
		return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s:1: expected the column %.60s",
		                     lines->path, r->graph_name);
	r->label = targets ? hg__csv_column(header, "label") : -1;
	/* what graphs have in this column are no features of nodes */
	r->feat = r->graph_name ? hg__csv_column(header, "feat") : -1;
	for (int s = 0; s < 3; s++)
		r->mask[s] = targets ? hg__csv_column(header, masks[s]) : -1;
	const int used[] = {r->id, r->graph, r->label, r->feat, r->mask[0], r->mask[1], r->mask[2]};
	hg__dgl_note_columns(r->in, r->t->file, header, used, 7,
	                     targets ? "" : " (labels and splits are those of the graphs)");
	return HG_OK;
}

static hg_status add_masks(struct reader *r, const struct lines *lines, const struct hg__csv *row)
{
	const int64_t k = r->t->id.count;
	const int grows = k == r->mask_room;
	r->mask_room += grows ? r->mask_room / 2 + 1024 : 0;
	for (int s = 0; s < 3; s++) {
		if (r->mask[s] < 0)
			continue;
		if (grows)
			HG__TRY(
			    hg__data_grow((void **)&r->t->mask[s], r->mask_room, 1, "a split", lines->message));
		const char *field = hg__dgl_trim(row->field[r->mask[s]]);
		const int yes = hg__same_word(field, "true") || strcmp(field, "1") == 0;
		if (!yes && !hg__same_word(field, "false") && strcmp(field, "0") != 0)
			return hg__lines_fail(lines, "expected True or False", field);
		r->t->mask[s][k] = (uint8_t)yes;
	}
	return HG_OK;
}

static hg_status read_row(const struct lines *lines, const struct hg__csv *row, void *user)
{
	struct reader *r = user;
	struct hg__dgl_table *t = r->t;
	int32_t group = 0;
	if (t->id.count == INT32_MAX)
		return hg__lines_fail(lines, "expected at most 2147483647 rows", NULL);
	if (r->graph >= 0)
		HG__TRY(hg__dgl_graph(lines, hg__dgl_trim(row->field[r->graph]), t->graphs, &group));
	if (r->label >= 0)
		HG__TRY(hg__values_add(lines, hg__dgl_list(row->field[r->label]), &t->label));
	if (r->feat >= 0)
		HG__TRY(hg__numbers_add(lines, hg__dgl_list(row->field[r->feat]), &t->feat));
	HG__TRY(add_masks(r, lines, row));
	const char *id = hg__dgl_trim(row->field[r->id]);
	return *id ? hg__ids_add(&t->id, id, group, lines->message)
	           : hg__lines_fail(lines, "expected an id", id);
}

hg_status hg__dgl_table(const struct hg__dgl *in, int item, const char *key, const char *column,
                        struct hg__dgl_table *t)
{
	struct reader r = {.in = in, .t = t};
	int64_t again = -1;
	char digits[24], shown[HG_DATA_MESSAGE];
	HG__TRY(hg__yaml_path(&in->yaml, item, "file_name", &t->file));
	HG__TRY(hg__dgl_column(in, item, key, column, &r.id_name));
	if (strcmp(key, "graph_id_field") != 0)
		HG__TRY(hg__dgl_column(in, item, "graph_id_field", "graph_id", &r.graph_name));
	HG__TRY(hg__dgl_read(in, t->file,
	                     &(struct hg__csv_reader){read_header, read_row, &r, in->separator}));
	HG__TRY(hg__ids_sort(&t->id, &again, in->message));
	if (again < 0)
		return HG_OK;
	hg__folder_show(&in->folder, t->file, shown);
	return hg__data_fail(in->message, HG_ERR_FORMAT, "%s: %s %.60s again, expected every id once",
	                     shown, r.graph_name ? "node" : "graph",
	                     hg__ids_text(&t->id, again, digits));
}

void hg__dgl_table_free(struct hg__dgl_table *t)
{
	hg__ids_free(&t->id);
	free(t->label.at);
	free(t->feat.at);
	for (int s = 0; s < 3; s++)
		free(t->mask[s]);
	*t = (struct hg__dgl_table){0};
}
