#ifndef HG_DATA_IMPORT_LINES_H
#define HG_DATA_IMPORT_LINES_H

#include "import/bytes.h"

/* The longest line: longer than any edge, short enough for a buffer. */
#define HG__LINE_MAX (1 << 18)

/* A text file, plain or gzip, read line by line. LF and CRLF end a line. */
struct lines {
	const char *path;
	char *message;
	struct hg__bytes bytes;
	int64_t number; /* of the current line, from 1 */
	char *buffer;
	size_t begin, end; /* unread part of the buffer */
	int finished;
};

HG_NODISCARD hg_status hg__lines_open(struct lines *lines, const char *path,
                                      const hg_progress *progress, char *message);
/* The next line without its end, valid until the next call; NULL after the last. */
HG_NODISCARD hg_status hg__lines_next(struct lines *lines, char **line);
void hg__lines_close(struct lines *lines);

/* "FILE:LINE: text" */
hg_status hg__lines_fail(const struct lines *lines, const char *text, const char *line);

/* Blanks, tabs and commas separate fields. */
const char *hg__skip_separators(const char *at);
/* A whole number from 0 to 9223372036854775807 at *at, which moves behind it and what separates it
 * from the next. 0: there is none. */
int hg__lines_whole(const char **at, int64_t *value);
/* A decimal integer at *at, which moves behind it. Else a failure that quotes the line and says
 * what was expected where there is none, or the range where it is beyond 64 bits. */
HG_NODISCARD hg_status hg__lines_integer(const struct lines *lines, const char *line,
                                         const char *expected, const char *range, const char **at,
                                         int64_t *value);
/* A number at *at, which moves behind it: finite, and float32 can hold it. Else a failure that
 * quotes the line and, where there is no number, says what was expected. */
HG_NODISCARD hg_status hg__lines_number(const struct lines *lines, const char *line,
                                        const char *expected, const char **at, float *number);

#endif
