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

/* What follows the path in a temporary name: ".PID.K.tmp". */
#define TAIL 40
/* Names that are tried: a process that was killed leaves one behind, and in a container all of them may have the same number. */
#define TRIES 100

/* Room for the temporary name, and "FOLDER/" or "." of the path */
static hg_status make_names(struct hg__atomic *file)
{
	const char *slash = strrchr(file->path, '/');
	const size_t length = slash ? (size_t)(slash - file->path) + 1 : 1;
	HG__TRY(hg__data_alloc((int64_t)strlen(file->path) + TAIL, 1, "a file name", (void **)&file->temporary, file->message));
	HG__TRY(hg__data_alloc((int64_t)length + 1, 1, "a folder name", (void **)&file->folder, file->message));
	snprintf(file->folder, length + 1, "%.*s", (int)length, slash ? file->path : ".");
	return HG_OK;
}

static hg_status open_temporary(struct hg__atomic *file)
{
	const size_t length = strlen(file->path);
	memcpy(file->temporary, file->path, length);
	for (int k = 0; k < TRIES && file->fd < 0; k++) {
		snprintf(file->temporary + length, TAIL, ".%ld.%d.tmp", (long)getpid(), k);
		/* O_EXCL: a name in use is passed over, not a loss */
		file->fd = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (file->fd < 0 && errno != EEXIST)
			break;
	}
	return file->fd < 0 ? hg__atomic_fail(file->path, errno, file->message) : HG_OK;
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
	if (status == HG_OK)
		status = open_temporary(file);
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

void hg__atomic_drop(struct hg__atomic *file)
{
	if (file->fd >= 0)
		close(file->fd);
	unlink(file->temporary); /* gone already where only the folder could not be synchronised */
	release(file);
}

hg_status hg__atomic_end(struct hg__atomic *file, hg_status status)
{
	if (status == HG_OK) {
		status = sync_and_close(file, file->fd);
		file->fd = -1;
	}
	if (status == HG_OK)
		status = put_in_place(file);
	if (status < 0)
		hg__atomic_drop(file);
	else
		release(file);
	return status;
}
