#include "import/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

hg_status hg__lines_open(struct lines *lines, const char *path, const hg_progress *progress, char *message)
{
	struct stat info;
	*lines = (struct lines){.path = path, .message = message, .progress = progress};
	if (stat(path, &info) != 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	if (S_ISDIR(info.st_mode))
		return hg__data_fail(message, HG_ERR_IO, "%s: is a directory", path);
	lines->file_bytes = (int64_t)info.st_size;
	HG__TRY(hg__data_alloc(HG__LINE_MAX + 1, 1, "a line", (void **)&lines->buffer, message));
	lines->file = gzopen(path, "rb");
	if (!lines->file)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	return HG_OK;
}

void hg__lines_close(struct lines *lines)
{
	if (lines->file)
		gzclose_r(lines->file);
	free(lines->buffer);
	lines->file = NULL;
	lines->buffer = NULL;
}

hg_status hg__lines_fail(const struct lines *lines, const char *text, const char *line)
{
	return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s:%" PRId64 ": %s%s%.60s%s", lines->path, lines->number, text, line ? ", found \"" : "",
	                     line ? line : "", line ? "\"" : "");
}

/* Move the unread part to the front and fill up behind it. */
static hg_status refill(struct lines *lines)
{
	const size_t left = lines->end - lines->begin;
	memmove(lines->buffer, lines->buffer + lines->begin, left);
	lines->begin = 0;
	lines->end = left;
	const int got = gzread(lines->file, lines->buffer + left, (unsigned)(HG__LINE_MAX - left));
	int code = Z_OK;
	const char *reason = gzerror(lines->file, &code);
	/* a gzip file that ends too early is Z_BUF_ERROR at its end */
	if (got < 0 || (got == 0 && code == Z_BUF_ERROR))
		return hg__data_fail(lines->message, code == Z_ERRNO ? HG_ERR_IO : HG_ERR_FORMAT, "%s:%" PRId64 ": damaged or truncated: %s", lines->path,
		                     lines->number, code == Z_ERRNO ? strerror(errno) : reason);
	lines->finished = got == 0;
	lines->end += (size_t)got;
	return hg__data_step(lines->progress, "reading", (int64_t)gzoffset(lines->file), lines->file_bytes, lines->message);
}

hg_status hg__lines_next(struct lines *lines, char **line)
{
	char *newline = memchr(lines->buffer + lines->begin, '\n', lines->end - lines->begin);
	while (!newline && !lines->finished && lines->end - lines->begin < HG__LINE_MAX) {
		const size_t seen = lines->end - lines->begin;
		HG__TRY(refill(lines));
		newline = memchr(lines->buffer + seen, '\n', lines->end - seen);
	}
	*line = NULL;
	if (!newline && lines->begin == lines->end)
		return HG_OK;
	lines->number++;
	if (!newline && !lines->finished)
		return hg__lines_fail(lines, "the line is longer than 262144 bytes", NULL);
	char *end = newline ? newline : lines->buffer + lines->end;
	*line = lines->buffer + lines->begin;
	lines->begin = (size_t)(end - lines->buffer) + (newline ? 1 : 0);
	*end = 0;
	if (memchr(*line, 0, (size_t)(end - *line)))
		return hg__lines_fail(lines, "holds zero bytes: not a text file", NULL);
	if (end > *line && end[-1] == '\r')
		end[-1] = 0;
	return HG_OK;
}

const char *hg__skip_separators(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == ',')
		at++;
	return at;
}

/* Behind a field: its end, or a separator. */
static int at_end(const char *at)
{
	return *at == 0 || *at == ' ' || *at == '\t' || *at == ',';
}

int hg__parse_integer(const char **at, int64_t *value)
{
	const char *c = *at;
	const int negative = *c == '-';
	int64_t x = 0;
	c += negative || *c == '+';
	if (*c < '0' || *c > '9')
		return 0;
	for (; *c >= '0' && *c <= '9'; c++)
		if (__builtin_mul_overflow(x, (int64_t)10, &x) || __builtin_add_overflow(x, (int64_t)(*c - '0'), &x))
			return 0;
	if (!at_end(c))
		return 0;
	*value = negative ? -x : x;
	*at = hg__skip_separators(c);
	return 1;
}

int hg__parse_real(const char **at, double *value)
{
	char *end = NULL;
	*value = strtod(*at, &end);
	if (end == *at || !at_end(end) || !isfinite(*value))
		return 0;
	*at = hg__skip_separators(end);
	return 1;
}
