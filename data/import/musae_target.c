/* Read the table of nodes of a MUSAE dataset, which has one row per node and a header. The node is
 * in the column new_id, or else id; what is to be predicted in the first of
 *
 *     mature (Twitch)   page_type (Facebook)   ml_target (GitHub)   target (the others)
 *
 * Whole numbers 0 .. C-1 that all occur, and words, are classes, words in the order of their bytes.
 * Other numbers are real targets. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"
#include "import/csv.h"
#include "import/musae.h"
#include "import/number.h"

/* More different words than this are names, not classes. */
#define WORDS_MAX 1000

struct table {
	const struct hg__musae *files;
	int id, value;      /* columns */
	const char *target; /* the name of the second */
	int64_t rows, room;
	int64_t *node; /* [rows] */
	int numeric;   /* the first value is a number, so all must be */
	float *number; /* [rows], if numeric */
	int32_t *word; /* [rows], else: the value as an index of `words` */
	char *words[WORDS_MAX];
	int32_t count; /* of words */
};

static hg_status read_header(const struct lines *lines, const struct hg__csv *header, void *user)
{
	struct table *t = user;
	static const char *const ids[] = {"new_id", "id"}, *const values[] = {"mature", "page_type",
	                                                                      "ml_target", "target"};
	t->id = t->value = -1;
	for (int k = 0; k < 2 && t->id < 0; k++)
		t->id = hg__csv_column(header, ids[k]);
	for (int k = 0; k < 4 && t->value < 0; k++) {
		t->value = hg__csv_column(header, values[k]);
		t->target = values[k];
	}
	if (t->id < 0 || t->value < 0)
		return hg__lines_fail(lines,
		                      "expected a header with new_id or id, and with mature, page_type, "
		                      "ml_target or target",
		                      NULL);
	return HG_OK;
}

static hg_status grow(struct table *t, char *message)
{
	if (t->rows < t->room)
		return HG_OK;
	const int64_t room = t->room + t->room / 2 + 1024;
	HG__TRY(hg__data_grow((void **)&t->node, room, sizeof *t->node, "node numbers", message));
	HG__TRY(hg__data_grow((void **)&t->number, room, sizeof *t->number, "targets", message));
	HG__TRY(hg__data_grow((void **)&t->word, room, sizeof *t->word, "labels", message));
	t->room = room;
	return HG_OK;
}

/* The index of a word, which is appended if it is new. */
static hg_status add_word(struct table *t, const struct lines *lines, const char *word)
{
	int32_t k = 0;
	while (k < t->count && strcmp(t->words[k], word) != 0)
		k++;
	if (k == WORDS_MAX)
		return hg__lines_fail(lines, "expected at most 1000 different words", word);
	t->word[t->rows] = k;
	if (k < t->count)
		return HG_OK;
	HG__TRY(hg__data_copy_text(word, &t->words[k], lines->message));
	t->count++;
	return HG_OK;
}

static hg_status add_value(struct table *t, const struct lines *lines, const char *value)
{
	double number = 0;
	const char *end = hg__number_read(value, &number);
	const int is_number = end && *end == 0;
	if (t->rows == 0)
		t->numeric = is_number;
	if (!*value || (t->numeric && !is_number))
		return hg__lines_fail(lines, t->numeric ? "expected a finite number" : "expected a value",
		                      value);
	if (!t->numeric)
		return add_word(t, lines, value);
	if (!(fabs(number) <= (double)FLT_MAX))
		return hg__lines_fail(lines, "the number is beyond float32's 3.40282e+38", value);
	t->number[t->rows] = (float)number;
	return HG_OK;
}

static hg_status add_row(const struct lines *lines, const struct hg__csv *row, void *user)
{
	struct table *t = user;
	HG__TRY(grow(t, lines->message));
	static const char expected[] = "expected the number of a node";
	const char *id = row->field[t->id], *at = id;
	HG__TRY(hg__lines_integer(lines, id, expected, expected, &at, &t->node[t->rows]));
	if (*at)
		return hg__lines_fail(lines, expected, id);
	HG__TRY(add_value(t, lines, row->field[t->value]));
	t->rows++;
	return HG_OK;
}

/* The nodes must be 0 .. rows - 1, each once; row [rows] := where each of them is. */
static hg_status place_nodes(const struct table *t, const char *path, int64_t *row)
{
	for (int64_t i = 0; i < t->rows; i++)
		row[i] = -1;
	for (int64_t k = 0; k < t->rows; k++) {
		const int64_t node = t->node[k];
		if (node < 0 || node >= t->rows || row[node] >= 0)
			return hg__data_fail(t->files->message, HG_ERR_FORMAT,
			                     "%s: node %" PRId64 "%s, expected each of 0 .. %" PRId64 " once",
			                     path, node, node >= 0 && node < t->rows ? " again" : "",
			                     t->rows - 1);
		row[node] = k;
	}
	return HG_OK;
}

/* Are the numbers the classes 0 .. C-1? */
static int count_classes(const struct table *t, int32_t *classes)
{
	unsigned char seen[WORDS_MAX] = {0};
	*classes = 0;
	for (int64_t k = 0; k < t->rows; k++) {
		const float x = t->number[k];
		if (!(x >= 0 && x < WORDS_MAX) || x != floorf(x))
			return 0;
		*classes += !seen[(int)x];
		seen[(int)x] = 1;
	}
	for (int32_t c = 0; c < *classes; c++)
		if (!seen[c])
			return 0;
	return 1;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static hg_status name_words(const struct table *t, char *const *sorted, hg_dataset *d)
{
	struct hg__names n = {.at = NULL};
	hg_status status = HG_OK;
	for (int32_t c = 0; c < t->count && status == HG_OK; c++)
		status = hg__names_add(&n, sorted[c], strlen(sorted[c]), t->files->message);
	if (status == HG_OK)
		hg__names_take(&n, d);
	hg__names_free(&n);
	return status;
}

/* The words become classes in the order of their bytes. */
static hg_status set_words(const struct table *t, const int64_t *row, const char *path,
                           hg_dataset *d)
{
	char *sorted[WORDS_MAX], names[256] = "";
	int32_t rank[WORDS_MAX];
	size_t used = 0;
	memcpy(sorted, t->words, (size_t)t->count * sizeof *sorted);
	qsort(sorted, (size_t)t->count, sizeof *sorted, by_bytes);
	for (int32_t c = 0; c < t->count; c++) {
		for (int32_t k = 0; k < t->count; k++)
			if (t->words[k] == sorted[c])
				rank[k] = c;
		if (used + strlen(sorted[c]) + 8 < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", c ? ", " : "",
			                         sorted[c]);
	}
	for (int64_t i = 0; i < d->nodes; i++)
		d->label[i] = rank[t->word[row[i]]];
	d->classes = t->count;
	HG__TRY(name_words(t, sorted, d));
	hg__import_note(&t->files->config, "%s: the %" PRId32 " classes are the words of %s: %s", path,
	                t->count, t->target, names);
	return HG_OK;
}

static hg_status set_values(const struct table *t, const int64_t *row, const char *path,
                            hg_dataset *d)
{
	char *message = t->files->message;
	int32_t classes = 0;
	const int are_classes = !t->numeric || count_classes(t, &classes);
	if (are_classes) {
		HG__TRY(hg__data_alloc(d->nodes, sizeof *d->label, "labels", (void **)&d->label, message));
		if (!t->numeric)
			return set_words(t, row, path, d);
		for (int64_t i = 0; i < d->nodes; i++)
			d->label[i] = (int32_t)t->number[row[i]];
		d->classes = classes;
		return HG_OK;
	}
	HG__TRY(hg__data_alloc(d->nodes, sizeof *d->target, "targets", (void **)&d->target, message));
	d->targets = 1;
	for (int64_t i = 0; i < d->nodes; i++)
		d->target[i] = t->number[row[i]];
	hg__import_note(&t->files->config,
	                "%s: the numbers are not the classes 0, 1, ...: they are real targets", path);
	return HG_OK;
}

static hg_status read_table(struct table *t, const char *name, hg_dataset *d)
{
	struct lines lines;
	int64_t *row = NULL;
	hg_status status = hg__folder_lines(&t->files->folder, name, &lines);
	if (status == HG_OK)
		status = hg__csv_read(&lines, &(struct hg__csv_reader){read_header, add_row, t, 0});
	if (status == HG_OK && t->rows > INT32_MAX)
		status = hg__lines_fail(&lines, "expected at most 2147483647 nodes", NULL);
	if (status == HG_OK)
		status = hg__data_alloc(t->rows, sizeof *row, "rows", (void **)&row, t->files->message);
	if (status == HG_OK)
		status = place_nodes(t, lines.path, row);
	d->nodes = t->rows;
	if (status == HG_OK)
		status = set_values(t, row, lines.path, d);
	free(row);
	hg__lines_close(&lines);
	return status;
}

hg_status hg__musae_target(const struct hg__musae *files, hg_dataset *d)
{
	struct table *t = NULL;
	char *name = NULL;
	HG__TRY(hg__musae_expect(files, "_target.csv"));
	HG__TRY(hg__folder_part(&files->folder, "_target.csv", &name));
	hg_status status = hg__data_alloc(1, sizeof *t, "a table", (void **)&t, files->message);
	if (status == HG_OK) {
		*t = (struct table){.files = files};
		status = read_table(t, name, d);
		for (int32_t k = 0; k < t->count; k++)
			free(t->words[k]);
		free(t->node);
		free(t->number);
		free(t->word);
	}
	free(t);
	free(name);
	return status;
}
