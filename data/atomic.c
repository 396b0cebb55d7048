/* The content first, then the name: after a power cut there is the old file or the new one. */
#include "atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"

hg_status hg__atomic_fail(const char *path, int reason, char *message)
{
	return hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: %s", path, strerror(reason));
}

/* A temporary name is "NAME.HASH-K.tmp": what is to be written, so that people know it, as far as
 * it fits, because a file system has names of 255 bytes (some of 143) and NAME may have all of
 * them; the hash of all of NAME; and a number. A writer holds a shared lock on its file as long as
 * it lives (shared, because HDF5 locks what it reads), so that the next writer of the same NAME
 * knows what a killed one left behind, whatever machine or container that ran on, and removes it.
 * */
#define KEPT 100
#define TAIL sizeof ".0123abcd-00.tmp"
/* Writers of one file at the same time. */
#define SLOTS 32

/* As much of a name as is kept, and whole characters of UTF-8. */
static size_t kept(const char *name)
{
	size_t length = strlen(name);
	if (length <= KEPT)
		return length;
	for (length = KEPT; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80; length--)
		continue;
	return length;
}

/* Room for the temporary name, up to its number, and "FOLDER/" or "." of the path */
static hg_status make_names(struct hg__atomic *file)
{
	const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
	const size_t length = slash ? (size_t)(slash - file->path) + 1 : 1;
	const size_t shown = (size_t)(name - file->path) + kept(name);
	struct hg__hash hash;
	hg__hash_begin(&hash);
	hg__hash_add(&hash, name, strlen(name));
	HG__TRY(hg__data_alloc((int64_t)(shown + TAIL), 1, "a file name", (void **)&file->temporary,
	                       file->message));
	HG__TRY(hg__data_alloc((int64_t)length + 1, 1, "a folder name", (void **)&file->folder,
	                       file->message));
	memcpy(file->temporary, file->path, shown);
	(void)snprintf(file->temporary + shown, TAIL, ".%08" PRIx32, (uint32_t)hg__hash_end(&hash));
	(void)snprintf(file->folder, length + 1, "%.*s", (int)length, slash ? file->path : ".");
	return HG_OK;
}

static void set_slot(struct hg__atomic *file, int slot)
{
	char *at = strrchr(file->temporary, '.');
	if (strcmp(at, ".tmp") == 0)
		at = strrchr(file->temporary, '-');
	else
		at += strlen(at);
	(void)snprintf(at, sizeof "-00.tmp", "-%d.tmp", slot);
}

/* Is this still the file under the name, and not one that was removed or renamed meanwhile? */
static int is_under(int fd, const char *name)
{
	struct stat mine, there;
	return fstat(fd, &mine) == 0 && lstat(name, &there) == 0 && S_ISREG(mine.st_mode) &&
	       mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* What a writer that lives no more left under the name. */
static void remove_dead(const char *name)
{
	const int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_under(fd, name))
		(void)unlink(name); /* who may not leaves it to somebody who may */
	(void)close(fd);
}

/* A new file under the name, locked; -1 and errno. Between making and locking it another writer may
 * take it for a dead one's: then it is another try's. Where locks are unknown, nobody removes. */
static int open_slot(const char *name, mode_t mode)
{
	const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -1;
	const int taken = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (!taken && is_under(fd, name))
		return fd;
	(void)close(fd);
	errno = EEXIST;
	return -1;
}

static hg_status open_temporary(struct hg__atomic *file, mode_t mode)
{
	for (int slot = 0, reason = 0; slot < SLOTS && !reason; slot++) {
		set_slot(file, slot);
		remove_dead(file->temporary);
		if (file->fd < 0) {
			file->fd = open_slot(file->temporary, mode);
			reason = file->fd < 0 && errno != EEXIST ? errno : 0;
			file->slot = slot;
		}
		if (reason)
			return hg__atomic_fail(file->path, reason, file->message);
	}
	set_slot(file, file->slot);
	return file->fd < 0 ? hg__atomic_fail(file->path, EEXIST, file->message) : HG_OK;
}

static void release(struct hg__atomic *file)
{
	free(file->temporary);
	free(file->folder);
	*file = (struct hg__atomic){.fd = -1};
}

/* The new file belongs to whom the old one did, as far as this process may say so, and nobody can
 * read it who could not read the old one. */
static hg_status keep_mode(const struct hg__atomic *file, const struct stat *old)
{
	struct stat now;
	mode_t mode = old->st_mode & 0777;
	if (fstat(file->fd, &now) != 0)
		return hg__atomic_fail(file->path, errno, file->message);
	const int same_owner = now.st_uid == old->st_uid && now.st_gid == old->st_gid;
	if (!same_owner && fchown(file->fd, old->st_uid, old->st_gid) != 0 &&
	    fchown(file->fd, (uid_t)-1, old->st_gid) != 0)
		mode &= (mode_t)~070 | (mode & 07) << 3; /* another group gets what everybody has */
	return fchmod(file->fd, mode) == 0 ? HG_OK : hg__atomic_fail(file->path, errno, file->message);
}

/* A file without a permission to write is meant to stay, also where its folder, or being root,
 * would allow to replace it. */
static hg_status check_old(const char *path, const struct stat *old, char *message)
{
	if (!S_ISREG(old->st_mode))
		return hg__data_fail(message, HG_ERR_IO,
		                     "%s: cannot be written: it exists and is not a regular file", path);
	if ((old->st_mode & 0222) == 0 || access(path, W_OK) != 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: cannot be written: it is read-only", path);
	return HG_OK;
}

hg_status hg__atomic_begin(struct hg__atomic *file, const char *path, char *message)
{
	struct stat old;
	const int is_there = lstat(path, &old) == 0;
	*file = (struct hg__atomic){.path = path, .message = message, .fd = -1};
	if (is_there)
		HG__TRY(check_old(path, &old, message));
	hg_status status = make_names(file);
	if (status == HG_OK)
		status = open_temporary(file, is_there ? 0600 : 0666);
	if (status == HG_OK && is_there)
		status = keep_mode(file, &old);
	if (status < 0)
		hg__atomic_drop(file);
	return status;
}

/* Everything on the disk; what a network file system finds out when a file is closed, too, while
 * the lock is held. */
static int sync_all(int fd)
{
	const int reason = fsync(fd) == 0 || errno == EINVAL ? 0 : errno; /* EINVAL: not known here */
	const int copy = reason ? -1 : dup(fd);
	return reason ? reason : copy < 0 || close(copy) != 0 ? errno : 0;
}

/* The folder is opened before the rename: nothing but the disk itself can fail behind it. One that
 * may be written and not read cannot be synchronised. */
static hg_status put_in_place(const struct hg__atomic *file)
{
	const int folder = open(file->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int renamed = rename(file->temporary, file->path) == 0;
	int reason = renamed ? 0 : errno;
	if (renamed && folder >= 0)
		reason = sync_all(folder);
	if (folder >= 0)
		(void)close(folder);
	if (!reason)
		return HG_OK;
	return renamed ? hg__atomic_fail(file->path, reason, file->message)
	               : hg__data_fail(file->message, HG_ERR_IO, "%s: cannot be put in place: %s",
	                               file->path, strerror(reason));
}

void hg__atomic_drop(struct hg__atomic *file)
{
	if (file->fd >= 0) {
		if (is_under(file->fd, file->temporary))
			(void)unlink(file->temporary);
		(void)close(file->fd);
	}
	release(file);
}

hg_status hg__atomic_end(struct hg__atomic *file, hg_status status)
{
	const int reason = status == HG_OK ? sync_all(file->fd) : 0;
	if (reason)
		status = hg__atomic_fail(file->path, reason, file->message);
	if (status == HG_OK)
		status = put_in_place(file);
	hg__atomic_drop(file); /* what is in its place is not temporary any more */
	return status;
}
