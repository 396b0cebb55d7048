#ifndef HG_STREAM_H
#define HG_STREAM_H

#include <stdio.h>

/* An output of lines for other programs, which is written while the work goes on. Opening it shows
 * before the work whether it can be written; the old content stays until stream_begin. */
struct stream {
	FILE *out; /* NULL: no output was requested */
	const char *path;
	int made, begun; /* made: the file did not exist before */
};
/* Open an output, without a buffer. path NULL: none; "-": standard output, before anything is
 * printed to it. Returns 0, or -1 with errno set. */
int stream_open(struct stream *stream, const char *path);
/* Remove the old content before the first line; a second call does nothing. Returns 0, or -1 with
 * errno set. */
int stream_begin(struct stream *stream);
/* Write `line` and a newline. If only a part of it can be written to a regular file (a full disk),
 * that part is removed, so the file holds whole lines only. Returns 0, or -1 with errno set. */
int stream_line(FILE *out, const char *line);
/* Print on stderr that an output could not be written completely. error: errno, or 0. */
void stream_say(const char *tool, const char *path, int error);
/* Close the output. If it was never begun, the old file stays, and a new file is removed. Returns
 * 0, or -1 with errno set if a line could not be written. Standard output stays open until
 * tool_finish. */
int stream_close(struct stream *stream);

#endif
