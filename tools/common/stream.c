#define _POSIX_C_SOURCE 200809L
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
		return 0;
	}
	const int fd = open_file(stream);
	stream->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !stream->out)
		(void)close(fd);
	return stream->out ? 0 : -1;
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
