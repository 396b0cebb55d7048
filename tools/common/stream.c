#define _POSIX_C_SOURCE 200809L
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

static int open_file(struct stream *stream)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
	int fd = open(stream->path, flags | O_EXCL, 0666);
	stream->made = fd >= 0;
	return fd < 0 && errno == EEXIST ? open(stream->path, flags, 0666) : fd;
}

int stream_open(struct stream *stream, const char *path)
{
	*stream = (struct stream){.path = path};
	if (!path)
		return 0;
	if (strcmp(path, "-") == 0) {
		stream->out = stdout;
		return setvbuf(stdout, NULL, _IONBF, 0);
	}
	const int fd = open_file(stream);
	/* Lines of two runs would be written over each other. EWOULDBLOCK: another run has the file.
	 * Where a file system has no locks, there is none. */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		(void)close(fd);
		errno = EWOULDBLOCK;
		return -1;
	}
	stream->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !stream->out)
		(void)close(fd);
	return stream->out ? setvbuf(stream->out, NULL, _IONBF, 0) : -1;
}

/* The end of a regular file, if the next write goes there and can be taken back; else -1. */
static off_t end_of(int fd)
{
	struct stat there;
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &there) || !S_ISREG(there.st_mode))
		return -1;
	const off_t next = flags & O_APPEND ? there.st_size : lseek(fd, 0, SEEK_CUR);
	return next == there.st_size ? next : -1;
}

/* The stream has no buffer, so nothing of the line is kept to be written later. */
int stream_line(FILE *out, const char *line)
{
	const size_t length = strlen(line);
	const int fd = fileno(out);
	char *whole = malloc(length + 1);
	if (!whole)
		return -1;
	memcpy(whole, line, length);
	whole[length] = '\n';
	const off_t end = end_of(fd);
	errno = 0;
	const int failed = fwrite(whole, 1, length + 1, out) != length + 1, error = errno;
	if (failed && end >= 0 && ftruncate(fd, end) == 0)
		(void)lseek(fd, end, SEEK_SET);
	free(whole);
	errno = error;
	return failed ? -1 : 0;
}

void stream_say(const char *tool, const char *path, int error)
{
	tool_say(tool, "%s: cannot be written: %s", path,
	         error == EWOULDBLOCK ? "another run is writing to it" : strerror(error ? error : EIO));
}

/* Empty a regular file; pipes and devices have no content to remove. */
int stream_begin(struct stream *stream)
{
	struct stat there;
	if (stream->begun)
		return 0;
	stream->begun = 1;
	if (!stream->out || stream->out == stdout)
		return 0;
	const int fd = fileno(stream->out);
	return fstat(fd, &there) || (S_ISREG(there.st_mode) && ftruncate(fd, 0)) ? -1 : 0;
}

int stream_close(struct stream *stream)
{
	FILE *out = stream->out;
	stream->out = NULL;
	if (!out || out == stdout)
		return 0;
	if (!stream->begun && stream->made)
		(void)unlink(stream->path);
	return fclose(out) ? -1 : 0;
}
