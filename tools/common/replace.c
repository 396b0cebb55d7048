#define _POSIX_C_SOURCE 200809L
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct replace *file, const char *reason)
{
	(void)snprintf(file->message, sizeof file->message, "%s: cannot be written: %s", file->path, reason);
	return -1;
}

static int open_temporary(struct replace *file)
{
	const size_t size = strlen(file->path) + 32;
	file->temporary = malloc(size);
	file->out = open_memstream(&file->text, &file->length);
	if (!file->temporary || !file->out)
		return fail(file, "out of memory");
	(void)snprintf(file->temporary, size, "%s.%ld.tmp", file->path, (long)getpid());
	file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); /* O_EXCL: a name in use is an error, not a loss */
	return file->fd < 0 ? fail(file, strerror(errno)) : 0;
}

static void release(struct replace *file)
{
	if (file->out)
		(void)fclose(file->out);
	free(file->temporary);
	free(file->text);
	file->out = NULL;
}

int replace_begin(struct replace *file, const char *path)
{
	struct stat there;
	*file = (struct replace){.path = path};
	if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
		return fail(file, "it exists and is not a regular file");
	if (open_temporary(file) == 0)
		return 0;
	release(file);
	return -1;
}

/* Everything into the temporary file and on the disk. errno of what failed; 0: nothing. EINVAL: this file system does not know how to synchronise. */
static int settle(struct replace *file)
{
	if (ferror(file->out) || fflush(file->out))
		return ENOMEM; /* it grows in memory */
	for (size_t done = 0; done < file->length;) {
		const ssize_t more = write(file->fd, file->text + done, file->length - done);
		if (more < 0 && errno != EINTR)
			return errno;
		done += more > 0 ? (size_t)more : 0;
	}
	return fsync(file->fd) && errno != EINVAL ? errno : 0;
}

int replace_end(struct replace *file, int keep)
{
	int reason = keep ? settle(file) : 0;
	if (close(file->fd) && !reason)
		reason = errno;
	if (keep && !reason && rename(file->temporary, file->path))
		reason = errno;
	if (!keep || reason)
		(void)unlink(file->temporary);
	release(file);
	return keep && reason ? fail(file, strerror(reason)) : 0;
}
