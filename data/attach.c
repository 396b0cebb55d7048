/* Read features, labels and splits from files of their own. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"
#include "drawn.h"
#include "import/number.h"
#include "import/table.h"
#include "match.h"

/* ---- features ---- */

/* to [rows of d, width] := the rows of the dataset. */
static hg_status take_numbers(const struct hg__match *r, int64_t n, const struct hg__table *t,
                              const char *what, float **to, char *message)
{
	const size_t bytes = (size_t)t->width * sizeof **to;
	HG__TRY(hg__data_alloc(n, bytes > 0 ? bytes : 1, what, (void **)to, message));
	for (int64_t i = 0; i < n; i++)
		memcpy(*to + i * t->width, t->number + hg__match_row(r, i) * t->width, bytes);
	return HG_OK;
}

/* Do the rows of the dataset have the order of the file? Then they need not be copied. */
static int in_order(const struct hg__match *r, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (hg__match_row(r, i) != i)
			return 0;
	return 1;
}

hg_status hg_dataset_load_features(hg_dataset *d, const char *path, char *message)
{
	struct hg__table t;
	struct hg__match r = {0};
	float *x = NULL;
	if (!d || !path)
		return hg__data_fail(message, HG_ERR_ARG, "load_features: %s is NULL",
		                     d ? "path" : "dataset");
	const hg_dataset nodes = {
	    .name = d->name, .nodes = d->nodes, .orig_id = d->orig_id, .order = d->order};
	HG__TRY(hg__table_read(path, 0, NULL, &t, message));
	/* features belong to nodes, also in a batch of graphs */
	hg_status status = hg__match_rows(&nodes, path, t.rows, &t.ids, &r, message);
	if (status == HG_OK && t.rows == d->nodes && in_order(&r, d->nodes)) {
		x = t.number;
		t.number = NULL;
	} else if (status == HG_OK) {
		status = take_numbers(&r, d->nodes, &t, "features", &x, message);
	}
	const hg_dataset fresh = {.nodes = d->nodes,
	                          .edges = d->edges,
	                          .graphs = 1,
	                          .rowptr = d->rowptr,
	                          .col = d->col,
	                          .features = t.width,
	                          .feat_dtype = HG_F32,
	                          .feat = x};
	if (status == HG_OK) /* an array may hold NaN */
		status = hg_dataset_check(&fresh, path, message);
	hg__match_free(&r);
	hg__table_free(&t);
	if (status == HG_OK)
		hg__replace_features(d, &fresh);
	else
		free(x);
	return status;
}

/* ---- labels ---- */

static hg_status take_labels(hg_dataset *d, const struct hg__match *r, const struct hg__table *t,
                             const char *path, char *message)
{
	const int64_t n = hg__data_labelled(d);
	hg_dataset fresh = *d;
	HG__TRY(hg__data_alloc(n, sizeof *fresh.label, "labels", (void **)&fresh.label, message));
	hg_status status = HG_OK;
	for (int64_t i = 0; status == HG_OK && i < n; i++) {
		const int64_t label = t->integer[hg__match_row(r, i)];
		if (label >= INT32_MAX)
			status = hg__data_fail(message, HG_ERR_FORMAT,
			                       "%s: row %" PRId64 " is %" PRId64
			                       ", expected a label of at most 2147483646",
			                       path, hg__match_row(r, i), label);
		fresh.label[i] = label < 0 ? -1 : (int32_t)label;
	}
	if (status == HG_OK)
		status =
		    hg__data_count_classes(&fresh, path, "declare num_classes (data/FORMAT.md)", message);
	if (status < 0) {
		free(fresh.label);
		return status;
	}
	hg__names_drop(d); /* they are of the old labels */
	free(d->label);
	d->label = fresh.label;
	d->classes = fresh.classes;
	return HG_OK;
}

static hg_status take_targets(hg_dataset *d, const struct hg__match *r, const struct hg__table *t,
                              const char *path, char *message)
{
	float *target = NULL;
	if (t->width == 0)
		return hg__data_fail(message, HG_ERR_FORMAT, "%s: has no columns", path);
	HG__TRY(take_numbers(r, hg__data_labelled(d), t, "targets", &target, message));
	hg_dataset fresh = *d;
	fresh.target = target;
	fresh.targets = t->width;
	fresh.target_names = NULL;
	const hg_status status = hg_dataset_check(&fresh, path, message);
	if (status < 0) {
		free(target);
		return status;
	}
	free(d->target);
	free(d->target_names);
	d->target = target;
	d->target_names = NULL;
	d->targets = t->width;
	return HG_OK;
}

hg_status hg_dataset_load_labels(hg_dataset *d, const char *path, char *message)
{
	struct hg__table t;
	struct hg__match r = {0};
	if (!d || !path)
		return hg__data_fail(message, HG_ERR_ARG, "load_labels: %s is NULL",
		                     d ? "path" : "dataset");
	HG__TRY(hg__table_read(path, 1, NULL, &t, message));
	hg_status status = hg__match_rows(d, path, t.rows, &t.ids, &r, message);
	if (status == HG_OK)
		status = (t.integer ? take_labels : take_targets)(d, &r, &t, path, message);
	hg__match_free(&r);
	hg__table_free(&t);
	return status;
}

/* ---- splits ---- */

/* The number of a set by its word; -2: it is another word. */
static int set_by_word(const char *word)
{
	static const struct {
		const char *word;
		int set;
	} words[] = {{"train", 0}, {"val", 1}, {"valid", 1}, {"validation", 1}, {"test", 2},
	             {"none", -1}, {"0", 0},   {"1", 1},     {"2", 2},          {"-1", -1}};
	for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
		if (hg__same_word(word, words[k].word))
			return words[k].set;
	return -2;
}

struct column {
	int8_t *at;
	int64_t count, room;
	struct hg__row_ids ids;
};

/* Add a line, "train", or "7,train" where there are ids. */
static hg_status add_line(struct column *c, const struct lines *lines, char *line)
{
	const char *at = line;
	if (*c->ids.heading)
		HG__TRY(hg__row_ids_add(&c->ids, lines, line, &at));
	char *word = line + (at - line);
	word[strcspn(word, " \t")] = 0;
	const int set = set_by_word(word);
	if (set == -2)
		return hg__lines_fail(lines, "expected train, val, test, none or 0, 1, 2, -1", word);
	if (c->count == c->room) {
		const int64_t room = c->room + c->room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&c->at, room, 1, "a split", lines->message));
		c->room = room;
	}
	c->at[c->count++] = (int8_t)set;
	return HG_OK;
}

/* "split", or a column of ids and another one. */
static int is_heading(struct column *c, const char *line)
{
	static const char split[] = "split";
	char word[sizeof split] = "";
	const size_t length = strcspn(line, " \t");
	if (length < sizeof word)
		memcpy(word, line, length);
	return hg__same_word(word, split) || hg__row_ids_begin(&c->ids, line);
}

static hg_status read_words(const char *path, struct column *c, char *message)
{
	struct lines lines;
	char *line = NULL;
	hg_status status = hg__lines_open(&lines, path, NULL, message);
	while (status == HG_OK && (status = hg__lines_next(&lines, &line)) == HG_OK && line)
		if (line[strspn(line, " \t")] && !(lines.number == 1 && is_heading(c, line)))
			status = add_line(c, &lines, line);
	hg__lines_close(&lines);
	return status;
}

static hg_status read_codes(const char *path, struct column *c, char *message)
{
	struct hg__table t;
	HG__TRY(hg__table_read(path, 1, NULL, &t, message));
	hg_status status = t.integer ? hg__data_alloc(t.rows, 1, "a split", (void **)&c->at, message)
	                             : hg__data_fail(message, HG_ERR_FORMAT,
	                                             "%s: expected one column of whole numbers", path);
	c->count = t.rows;
	for (int64_t k = 0; status == HG_OK && k < t.rows; k++) {
		if (t.integer[k] < -1 || t.integer[k] > 2)
			status = hg__data_fail(message, HG_ERR_FORMAT,
			                       "%s: row %" PRId64 " is %" PRId64
			                       ", expected 0 (train), 1 (validate), 2 (test) or -1 (none)",
			                       path, k, t.integer[k]);
		c->at[k] = (int8_t)t.integer[k];
	}
	hg__table_free(&t);
	return status;
}

static hg_status take_split(hg_dataset *d, const struct column *c, const char *path, char *message)
{
	struct hg__match r = {0};
	int8_t *set = NULL;
	const int64_t n = hg__data_labelled(d);
	hg_status status = hg__match_rows(d, path, c->count, &c->ids, &r, message);
	if (status == HG_OK)
		status = hg__data_alloc(n, 1, "a split", (void **)&set, message);
	for (int64_t i = 0; status == HG_OK && i < n; i++)
		set[i] = c->at[hg__match_row(&r, i)];
	if (status == HG_OK)
		status = hg__set_splits(d, set, message);
	hg__match_free(&r);
	free(set);
	return status;
}

hg_status hg_dataset_load_split(hg_dataset *d, const char *path, char *message)
{
	struct column c = {0};
	int npy = 0;
	if (!d || !path)
		return hg__data_fail(message, HG_ERR_ARG, "load_split: %s is NULL", d ? "path" : "dataset");
	HG__TRY(hg__table_is_npy(path, &npy, message));
	hg_status status = (npy ? read_codes : read_words)(path, &c, message);
	if (status == HG_OK)
		status = take_split(d, &c, path, message);
	hg__row_ids_free(&c.ids);
	free(c.at);
	return status;
}
