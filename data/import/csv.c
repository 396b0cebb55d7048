/* Split the lines of comma-separated files (RFC 4180) into fields. */
#include "import/csv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Undo the quotes of the field that begins at `from`, in place. Returns the end in the input, or
 * NULL where the quotes do not end. */
static char *unquote(char *from)
{
	char *to = from;
	for (char *at = from + 1; *at; at++) {
		if (*at != '"') {
			*to++ = *at;
		} else if (at[1] == '"') {
			*to++ = *at++;
		} else {
			*to = 0;
			return at + 1;
		}
	}
	return NULL;
}

static hg_status split(const struct lines *lines, char *line, struct hg__csv *csv)
{
	const char separator = csv->separator ? csv->separator : ',', ends[] = {separator, 0};
	char *at = line;
	csv->count = 0;
	for (;;) {
		if (csv->count == HG__CSV_COLUMNS)
			return hg__lines_fail(lines, "expected at most 64 columns", NULL);
		csv->field[csv->count++] = at;
		char *end = *at == '"' ? unquote(at) : at + strcspn(at, ends);
		if (!end || (*end && *end != separator))
			return hg__lines_fail(lines, "a quoted field does not end before the next separator",
			                      NULL);
		const int more = *end == separator;
		*end = 0;
		if (!more)
			return HG_OK;
		at = end + 1;
	}
}

static hg_status split_row(const struct lines *lines, char *line, const struct hg__csv *header,
                           struct hg__csv *csv)
{
	csv->separator = header->separator;
	HG__TRY(split(lines, line, csv));
	if (csv->count == header->count)
		return HG_OK;
	return hg__data_fail(lines->message, HG_ERR_FORMAT,
	                     "%s:%" PRId64 ": %d fields, expected %d as in the header", lines->path,
	                     lines->number, csv->count, header->count);
}

int hg__csv_column(const struct hg__csv *header, const char *name)
{
	for (int k = 0; k < header->count; k++)
		if (strcmp(header->field[k], name) == 0)
			return k;
	return -1;
}

static hg_status read_rows(struct lines *lines, const struct hg__csv *header,
                           const struct hg__csv_reader *r)
{
	char *line = NULL;
	for (;;) {
		struct hg__csv row;
		HG__TRY(hg__lines_next(lines, &line));
		if (!line)
			return HG_OK;
		if (!*line)
			continue;
		HG__TRY(split_row(lines, line, header, &row));
		HG__TRY(r->row(lines, &row, r->user));
	}
}

hg_status hg__csv_read(struct lines *lines, const struct hg__csv_reader *r)
{
	struct hg__csv header = {.separator = r->separator};
	char *line = NULL, *text = NULL;
	HG__TRY(hg__lines_next(lines, &line));
	/* the line is overwritten by the next one */
	HG__TRY(hg__data_copy_text(line ? line : "", &text, lines->message));
	hg_status status = split(lines, text, &header);
	if (status == HG_OK)
		status = r->header(lines, &header, r->user);
	if (status == HG_OK)
		status = read_rows(lines, &header, r);
	free(text);
	return status;
}
