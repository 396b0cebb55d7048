#ifndef HG_BENCH_JSON_H
#define HG_BENCH_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One JSON object on one line, composed in place. json_end reports an object that does not fit. */
struct json {
	char text[4096];
	size_t length;
	int fields;
};
void json_begin(struct json *j);
void json_text(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, double value); /* not finite: null */
void json_integer(struct json *j, const char *key, int64_t value);
/* Returns 0, or -1 if the object did not fit. The line ends with a newline. */
int json_end(struct json *j);

/* Append whole lines to a file. Each line is a single write at the end of the file, so a run that
 * is interrupted, or two runs at a time, leave whole lines. A line that could not be written
 * completely (a full disk) is removed. The file is new, empty, or begins with '{' as results do;
 * any other file was probably named by mistake and is refused. */
int json_open(const char *path, const char **why); /* a descriptor, or -1 and the reason */
int json_append(int file, const struct json *j);   /* 0, or -1 with errno set */

#endif
