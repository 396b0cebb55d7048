/* Read rows of numbers. */
#include "import/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/lines.h"
#include "import/npy.h"

void hg__table_free(struct hg__table *t)
{
	free(t->number);
	free(t->integer);
	hg__row_ids_free(&t->ids);
	*t = (struct hg__table){0};
}

/* ---- .npy ---- */

hg_status hg__table_is_npy(const char *path, int *yes, char *message)
{
	struct hg__bytes bytes;
	char magic[6] = "";
	size_t used = 0, got = 1;
	hg_status status = hg__bytes_open(&bytes, path, NULL, message);
	while (status == HG_OK && got > 0 && used < sizeof magic) {
		status = hg__bytes_read(&bytes, magic + used, sizeof magic - used, &got);
		used += status == HG_OK ? got : 0;
	}
	hg__bytes_close(&bytes);
	*yes = used == sizeof magic && memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
	return status;
}

static hg_status read_npy(const char *path, int integers, const hg_progress *progress,
                          struct hg__table *t, char *message)
{
	struct npy a;
	HG__TRY(hg__npy_open_file(path, progress, message, &a));
	t->rows = a.dim[0];
	t->width = a.rank == 2 ? a.dim[1] : 1;
	const hg_status status = integers && a.type.kind != 'f' && t->width == 1
	                             ? hg__npy_read_i64(&a, INT64_MIN, INT64_MAX, &t->integer)
	                             : hg__npy_read_f32(&a, &t->number);
	hg__npy_close(&a);
	return status;
}

/* ---- text ---- */

struct text {
	struct hg__table *table;
	int64_t count, room; /* numbers */
};

static hg_status grow(struct text *in, char *message)
{
	if (in->count < in->room)
		return HG_OK;
	const int64_t room = in->room + in->room / 2 + 1024;
	if (in->table->integer || !in->table->number)
		HG__TRY(hg__data_grow((void **)&in->table->integer, room, sizeof *in->table->integer,
		                      "a column", message));
	else
		HG__TRY(hg__data_grow((void **)&in->table->number, room, sizeof *in->table->number,
		                      "a table", message));
	in->room = room;
	return HG_OK;
}

/* The first row that is not one whole number turns the column into numbers. */
static hg_status give_up_integers(struct text *in, char *message)
{
	struct hg__table *t = in->table;
	const int64_t room = in->room > 0 ? in->room : 1024;
	HG__TRY(hg__data_alloc(room, sizeof *t->number, "a table", (void **)&t->number, message));
	for (int64_t k = 0; k < in->count; k++)
		t->number[k] = (float)t->integer[k];
	free(t->integer);
	t->integer = NULL;
	in->room = room;
	return HG_OK;
}

static int is_whole(const char *at)
{
	at += *at == '-' || *at == '+';
	const size_t digits = strspn(at, "0123456789");
	return digits > 0 && *hg__skip_separators(at + digits) == 0;
}

static hg_status add_row(struct text *in, const struct lines *lines, const char *line)
{
	struct hg__table *t = in->table;
	const char *at = line;
	int64_t width = 0;
	if (*t->ids.heading)
		HG__TRY(hg__row_ids_add(&t->ids, lines, line, &at));
	if (!t->number && !is_whole(at))
		HG__TRY(give_up_integers(in, lines->message));
	for (; *at; width++) {
		HG__TRY(grow(in, lines->message));
		if (!t->number)
			HG__TRY(hg__lines_integer(lines, line, "expected a whole number",
			                          "expected a number of 64 bits", &at, &t->integer[in->count]));
		else
			HG__TRY(hg__lines_number(lines, line, "expected finite numbers", &at,
			                         &t->number[in->count]));
		in->count++;
	}
	if (t->rows > 0 && width != t->width)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " numbers, expected %" PRId64 " as before",
		                     lines->path, lines->number, width, t->width);
	t->width = width;
	t->rows++;
	return HG_OK;
}

/* Does the line begin like a word? A number beyond float32, "nan" and "inf" are no header. */
static int is_heading(const char *at)
{
	return ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '"' || *at == '_') &&
	       strncmp(at, "nan", 3) != 0 && strncmp(at, "NaN", 3) != 0 && strncmp(at, "inf", 3) != 0;
}

static hg_status read_text(const char *path, int integers, const hg_progress *progress,
                           struct hg__table *t, char *message)
{
	struct lines lines;
	struct text in = {.table = t};
	char *line = NULL;
	hg_status status = hg__lines_open(&lines, path, progress, message);
	if (status == HG_OK && !integers)
		status = give_up_integers(&in, message);
	while (status == HG_OK && (status = hg__lines_next(&lines, &line)) == HG_OK && line) {
		const char *at = hg__skip_separators(line);
		if (lines.number == 1 && is_heading(at))
			hg__row_ids_begin(&t->ids, at);
		else if (*at && *at != '#')
			status = add_row(&in, &lines, at);
	}
	hg__lines_close(&lines);
	return status == HG_OK ? grow(&in, message) : status; /* a table without rows has memory, too */
}

hg_status hg__table_read(const char *path, int integers, const hg_progress *progress,
                         struct hg__table *t, char *message)
{
	int npy = 0;
	*t = (struct hg__table){0};
	HG__TRY(hg__table_is_npy(path, &npy, message));
	const hg_status status = (npy ? read_npy : read_text)(path, integers, progress, t, message);
	if (status < 0)
		hg__table_free(t);
	return status;
}
