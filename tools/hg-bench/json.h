#ifndef HG_BENCH_JSON_H
#define HG_BENCH_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One JSON object on one line, built in place. What does not fit is noticed at the end. */
struct json {
	char text[4096];
	size_t length;
	int fields;
};
void json_begin(struct json *j);
void json_text(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, double value); /* not finite: null */
void json_integer(struct json *j, const char *key, int64_t value);
/* 0, or -1 if the object did not fit. The line ends with a newline. */
int json_end(struct json *j);

/* Append whole lines to a file: each is one write at its end, so a run that is interrupted, or two
 * at a time, leave whole lines. A line that could not be written to its end (a full disk) is taken
 * back. The file is new, empty, or begins with '{' as results do: anything else was named by
 * mistake. */
int json_open(const char *path, const char **why); /* a descriptor, or -1 and the reason */
int json_append(int file, const struct json *j);   /* 0, or -1 and errno */

#endif
