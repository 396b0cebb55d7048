#include "import/lines.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/number.h"

/* Spreadsheets begin a text in UTF-8 with it. */
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

hg_status hg__lines_open(struct lines *lines, const char *path, const hg_progress *progress,
                         char *message)
{
	*lines = (struct lines){.path = path, .message = message};
	HG__TRY(hg__bytes_open(&lines->bytes, path, progress, message));
	return hg__lines_begin(lines);
}

hg_status hg__lines_begin(struct lines *lines)
{
	lines->room = lines->most = HG__LINE_MAX;
	return hg__data_alloc(HG__LINE_MAX + 1, 1, "a line", (void **)&lines->buffer, lines->message);
}

void hg__lines_close(struct lines *lines)
{
	hg__bytes_close(&lines->bytes);
	free(lines->buffer);
	free(lines->owned);
	lines->buffer = lines->owned = NULL;
}

hg_status hg__lines_fail(const struct lines *lines, const char *text, const char *line)
{
	HG__TRY(hg__bytes_unchanged(&lines->bytes)); /* then this is the reason */
	return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s:%" PRId64 ": %s%s%.60s%s", lines->path,
	                     lines->number, text, line ? ", found \"" : "", line ? line : "",
	                     line ? "\"" : "");
}

/* Move the unread part to the front of the buffer, which grows if it is full, and fill the rest. */
static hg_status refill(struct lines *lines)
{
	size_t got = 0;
	lines->end -= lines->begin;
	memmove(lines->buffer, lines->buffer + lines->begin, lines->end);
	lines->begin = 0;
	if (lines->end == lines->room) {
		const size_t room = lines->room < lines->most / 2 ? 2 * lines->room : lines->most;
		HG__TRY(
		    hg__data_grow((void **)&lines->buffer, (int64_t)room + 1, 1, "a line", lines->message));
		lines->room = room;
	}
	HG__TRY(
	    hg__bytes_read(&lines->bytes, lines->buffer + lines->end, lines->room - lines->end, &got));
	lines->finished = got == 0;
	lines->end += got;
	return HG_OK;
}

hg_status hg__lines_next(struct lines *lines, char **line)
{
	char *newline = memchr(lines->buffer + lines->begin, '\n', lines->end - lines->begin);
	while (!newline && !lines->finished && lines->end - lines->begin < lines->most) {
		const size_t seen = lines->end - lines->begin;
		HG__TRY(refill(lines));
		newline = memchr(lines->buffer + seen, '\n', lines->end - seen);
	}
	*line = NULL;
	if (!newline && lines->begin == lines->end)
		return HG_OK;
	lines->number++;
	if (!newline && !lines->finished)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": the line is longer than %zu bytes", lines->path,
		                     lines->number, lines->most);
	char *end = newline ? newline : lines->buffer + lines->end;
	*line = lines->buffer + lines->begin;
	lines->begin = (size_t)(end - lines->buffer) + (newline ? 1 : 0);
	*end = 0;
	if (memchr(*line, 0, (size_t)(end - *line)))
		return hg__lines_fail(lines, "holds zero bytes: not a text file", NULL);
	if (end > *line && end[-1] == '\r')
		end[-1] = 0;
	if (lines->number == 1 && strncmp(*line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
		*line += strlen(BYTE_ORDER_MARK);
	return HG_OK;
}

const char *hg__skip_separators(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == ',')
		at++;
	return at;
}

/* Does a field end here? */
static int is_field_end(const char *at)
{
	return *at == 0 || *at == ' ' || *at == '\t' || *at == ',';
}

/* Read the digits at c. Returns their end; *beyond is set where the value exceeds 64 bits. */
static const char *read_digits(const char *c, int64_t *value, int *overflow)
{
	*value = 0;
	*overflow = 0;
	for (; *c >= '0' && *c <= '9'; c++)
		*overflow |= __builtin_mul_overflow(*value, (int64_t)10, value) ||
		             __builtin_add_overflow(*value, (int64_t)(*c - '0'), value);
	return c;
}

int hg__lines_whole(const char **at, int64_t *value)
{
	int overflow = 0;
	const char *end = read_digits(*at, value, &overflow);
	if (end == *at || overflow || !is_field_end(end))
		return 0;
	*at = hg__skip_separators(end);
	return 1;
}

hg_status hg__lines_integer(const struct lines *lines, const char *line, const char *expected,
                            const char *range, const char **at, int64_t *value)
{
	const char *c = *at;
	const int negative = *c == '-';
	int64_t x = 0;
	int overflow = 0;
	c += negative || *c == '+';
	if (*c < '0' || *c > '9')
		return hg__lines_fail(lines, expected, line);
	c = read_digits(c, &x, &overflow);
	if (overflow || !is_field_end(c))
		return hg__lines_fail(lines, is_field_end(c) ? range : expected, line);
	*value = negative ? -x : x;
	*at = hg__skip_separators(c);
	return HG_OK;
}

hg_status hg__lines_number(const struct lines *lines, const char *line, const char *expected,
                           const char **at, float *number)
{
	double value = 0.0;
	const char *end = hg__number_read(*at, &value);
	if (!end || !is_field_end(end) || !isfinite(value))
		return hg__lines_fail(lines, expected, line);
	if (fabs(value) > (double)FLT_MAX)
		return hg__lines_fail(lines, "the number is beyond float32's 3.40282e+38", line);
	*number = (float)value;
	*at = hg__skip_separators(end);
	return HG_OK;
}
