#ifndef HG_STREAM_H
#define HG_STREAM_H

#include <stdio.h>

/* Lines for other programs, which grow while the work goes on. That they can be written is known
 * before the work; what was there before stays until it has begun. */
struct stream {
	FILE *out; /* NULL: none was asked for */
	const char *path;
	int made, begun; /* made: there was no such file before */
};
/* path NULL: none; "-": standard output. 0, or -1 with errno. */
int stream_open(struct stream *stream, const char *path);
/* Before the first line; again it does nothing. 0, or -1 with errno. */
int stream_begin(struct stream *stream);
/* One that has not begun leaves what was there, or nothing. 0, or -1 with errno: not every line
 * arrived. Standard output stays open (tool_finish). */
int stream_close(struct stream *stream);

#endif
