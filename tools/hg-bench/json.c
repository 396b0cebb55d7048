#define _POSIX_C_SOURCE 200809L

#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Counts on when the text is full, so that json_end can report it. */
static void put(struct json *j, const char *text)
{
	for (; *text; text++, j->length++)
		if (j->length + 1 < sizeof j->text)
			j->text[j->length] = *text;
}

static void put_quoted(struct json *j, const char *text)
{
	put(j, "\"");
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;
		char one[8] = {*text, '\0'};
		if (c == '"' || c == '\\')
			snprintf(one, sizeof one, "\\%c", c);
		else if (c < 0x20 || c == 0x7F)
			snprintf(one, sizeof one, "\\u%04x", c);
		put(j, one);
	}
	put(j, "\"");
}

static void put_key(struct json *j, const char *key)
{
	put(j, j->fields++ ? ", " : "");
	put_quoted(j, key);
	put(j, ": ");
}

void json_begin(struct json *j)
{
	j->length = 0;
	j->fields = 0;
	put(j, "{");
}

void json_text(struct json *j, const char *key, const char *value)
{
	put_key(j, key);
	put_quoted(j, value);
}

void json_number(struct json *j, const char *key, double value)
{
	char text[40];
	snprintf(text, sizeof text, "%.6g", value);
	put_key(j, key);
	put(j, isfinite(value) ? text : "null");
}

void json_integer(struct json *j, const char *key, int64_t value)
{
	char text[40];
	snprintf(text, sizeof text, "%" PRId64, value);
	put_key(j, key);
	put(j, text);
}

int json_end(struct json *j)
{
	put(j, "}\n");
	if (j->length + 1 > sizeof j->text)
		return -1;
	j->text[j->length] = '\0';
	return 0;
}

/* The reason why lines may not be appended to this file; NULL if they may. */
static const char *file_fault(int file)
{
	struct stat facts;
	char first = '{', last = '\n';
	if (fstat(file, &facts))
		return strerror(errno);
	if (!S_ISREG(facts.st_mode))
		return "it is not a regular file";
	if (facts.st_size > 0 &&
	    (pread(file, &first, 1, 0) < 0 || pread(file, &last, 1, facts.st_size - 1) < 0))
		return strerror(errno);
	if (first != '{')
		return "its content is not benchmark results, so it is left unchanged";
	return last == '\n' ? NULL : "its last line is incomplete, so it is left unchanged";
}

int json_open(const char *path, const char **why)
{
	/* O_NONBLOCK: a pipe is refused, without waiting for a reader */
	const int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY, 0666);
	*why = file < 0 ? strerror(errno) : file_fault(file);
	if (!*why)
		return file;
	if (file >= 0)
		(void)close(file); /* nothing was written */
	return -1;
}

int json_append(int file, const struct json *j)
{
	const off_t end = lseek(file, 0, SEEK_END);
	ssize_t done;
	do
		done = write(file, j->text, j->length);
	while (done < 0 && errno == EINTR);
	if (done == (ssize_t)j->length)
		return 0;
	if (done > 0) {
		if (end >= 0 && ftruncate(file, end) == 0)
			/* a short write means that the disk or the user's quota is full */
			errno = ENOSPC;
		else
			errno = EIO;
	}
	return -1;
}
