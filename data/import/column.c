/* Collect the numbers of a text file. */
#include "import/column.h"

#include <inttypes.h>

hg_status hg__column_add(const struct lines *lines, const char *line, void *to)
{
	static const char one_number[] = "expected one whole number";
	struct hg__column *c = to;
	const char *at = line;
	int64_t value = 0;
	HG__TRY(
	    hg__lines_integer(lines, line, one_number, "expected a number of 64 bits", &at, &value));
	if (*at)
		return hg__lines_fail(lines, one_number, line);
	if (c->count == c->room) {
		const int64_t room = c->room + c->room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&c->at, room, sizeof *c->at, "a column of numbers",
		                      lines->message));
		c->room = room;
	}
	c->at[c->count++] = value;
	return HG_OK;
}

hg_status hg__numbers_add(const struct lines *lines, const char *line, void *to)
{
	struct hg__numbers *a = to;
	int64_t width = 0;
	for (const char *at = line; *at; width++) {
		if (a->count == a->room) {
			const int64_t room = a->room + a->room / 2 + 1024;
			HG__TRY(
			    hg__data_grow((void **)&a->at, room, sizeof *a->at, "attributes", lines->message));
			a->room = room;
		}
		HG__TRY(hg__lines_number(lines, line, "expected finite numbers", &at, &a->at[a->count]));
		a->count++;
	}
	if (a->rows > 0 && width != a->width)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " attributes, expected %" PRId64
		                     " as before",
		                     lines->path, lines->number, width, a->width);
	a->width = width;
	a->rows++;
	return HG_OK;
}
