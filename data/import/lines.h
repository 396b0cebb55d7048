#ifndef HG_DATA_IMPORT_LINES_H
#define HG_DATA_IMPORT_LINES_H

#include "import/bytes.h"

/* The longest line, unless a reader expects more: longer than any edge, short enough for a
 * buffer. */
#define HG__LINE_MAX (1 << 18)

/* A text file, plain or gzip, read line by line. LF and CRLF end a line. */
struct lines {
	const char *path;
	char *message;
	struct hg__bytes bytes;
	int64_t number; /* of the current line, from 1 */
	char *buffer;
	size_t room, most; /* bytes of the buffer now and at most; a reader may raise `most` */
	size_t begin, end; /* the unread part of the buffer */
	int finished;
	char *owned; /* the path, where nobody else keeps it; or NULL */
};

HG_NODISCARD hg_status hg__lines_open(struct lines *lines, const char *path,
                                      const hg_progress *progress, char *message);
/* The rest of opening: for a file whose `bytes`, path and message are set. */
HG_NODISCARD hg_status hg__lines_begin(struct lines *lines);
/* The next line without its line end, valid until the next call; NULL after the last line. */
HG_NODISCARD hg_status hg__lines_next(struct lines *lines, char **line);
void hg__lines_close(struct lines *lines);

/* The failure "FILE:LINE: text", with the line quoted where it is not NULL. */
hg_status hg__lines_fail(const struct lines *lines, const char *text, const char *line);

/* Skip blanks, tabs and commas, which separate fields. */
const char *hg__skip_separators(const char *at);
/* Read an integer from 0 to 9223372036854775807 at *at and move *at past it and the separators
 * after it. Returns 0 if there is none. */
int hg__lines_whole(const char **at, int64_t *value);
/* Read a decimal integer at *at and move *at past it. A failure quotes the line and says `expected`
 * where there is no integer, or `range` where it exceeds 64 bits. */
HG_NODISCARD hg_status hg__lines_integer(const struct lines *lines, const char *line,
                                         const char *expected, const char *range, const char **at,
                                         int64_t *value);
/* Read a finite number that float32 can hold at *at and move *at past it. A failure quotes the line
 * and says `expected` where there is no number. */
HG_NODISCARD hg_status hg__lines_number(const struct lines *lines, const char *line,
                                        const char *expected, const char **at, float *number);

#endif
