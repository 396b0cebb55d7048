/* The content first, then the name: after a power cut there is the old file or the new one. */
#include "atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

hg_status hg__atomic_fail(const char *path, int reason, char *message)
{
	return hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: %s", path, strerror(reason));
}

/* "PATH.PID.tmp", and "FOLDER/" or "." of the path */
static hg_status make_names(struct hg__atomic *file)
{
	const char *slash = strrchr(file->path, '/');
	const size_t size = strlen(file->path) + 32, length = slash ? (size_t)(slash - file->path) + 1 : 1;
	HG__TRY(hg__data_alloc((int64_t)size, 1, "a file name", (void **)&file->temporary, file->message));
	HG__TRY(hg__data_alloc((int64_t)length + 1, 1, "a folder name", (void **)&file->folder, file->message));
	snprintf(file->temporary, size, "%s.%ld.tmp", file->path, (long)getpid());
	snprintf(file->folder, length + 1, "%.*s", (int)length, slash ? file->path : ".");
	return HG_OK;
}

static void release(struct hg__atomic *file)
{
	free(file->temporary);
	free(file->folder);
	*file = (struct hg__atomic){.fd = -1};
}

hg_status hg__atomic_begin(struct hg__atomic *file, const char *path, char *message)
{
	struct stat there;
	*file = (struct hg__atomic){.path = path, .message = message, .fd = -1};
	if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
		return hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: it exists and is not a regular file", path);
	hg_status status = make_names(file);
	/* O_EXCL: a name in use is an error, not a loss */
	if (status == HG_OK && (file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
		status = hg__atomic_fail(path, errno, message);
	if (status < 0)
		release(file);
	return status;
}

/* Synchronise and close. */
static hg_status sync_and_close(const struct hg__atomic *file, int fd)
{
	const int reason = fsync(fd) == 0 || errno == EINVAL ? 0 : errno; /* EINVAL: this file system does not know how */
	if (close(fd) == 0 && reason == 0)
		return HG_OK;
	return hg__atomic_fail(file->path, reason ? reason : errno, file->message);
}

static hg_status put_in_place(const struct hg__atomic *file)
{
	const int folder = open(file->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* before the rename: nothing but the disk itself can fail behind it */
	if (rename(file->temporary, file->path) == 0)
		return folder < 0 ? HG_OK : sync_and_close(file, folder); /* a folder may be writable and not readable */
	const int reason = errno;
	if (folder >= 0)
		close(folder);
	return hg__data_fail(file->message, HG_ERR_IO, "%s: cannot be put in place: %s", file->path, strerror(reason));
}

hg_status hg__atomic_end(struct hg__atomic *file, hg_status status)
{
	if (status == HG_OK)
		status = sync_and_close(file, file->fd);
	else
		close(file->fd);
	if (status == HG_OK)
		status = put_in_place(file);
	if (status < 0)
		unlink(file->temporary); /* gone already where only the folder could not be synchronised */
	release(file);
	return status;
}
