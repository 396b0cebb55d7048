/* Atomic replacement of a file. The content is written and synchronised before the file gets its
 * name, so after a power cut there is either the old file or the new one. */
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

/* A temporary file is called "NAME.HASH-K.tmp". It begins with NAME, so that people recognise it,
 * cut to 100 bytes, because file systems limit names to 255 bytes (some to 143) and NAME may use
 * all of them. HASH is a hash of the complete NAME, and K is a number. A writer holds a shared lock
 * on its file as long as it lives. (The lock is shared because HDF5 locks the files that it reads.)
 * So the next writer of the same NAME can tell which temporary files belong to killed writers and
 * removes them, whatever machine or container these writers ran on. */
#define NAME_BYTES 100
#define SUFFIX_BYTES sizeof ".0123abcd-00.tmp"
/* This many processes can write the same file at the same time. */
#define SLOTS 32

/* The number of bytes of NAME that the temporary name keeps. A UTF-8 character is never cut. */
static size_t name_bytes_kept(const char *name)
{
	size_t length = strlen(name);
	if (length <= NAME_BYTES)
		return length;
	for (length = NAME_BYTES; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80; length--)
		continue;
	return length;
}

/* Make the temporary name, with room for its number, and the folder of the path ("FOLDER/" or
 * "."). */
static hg_status make_names(struct hg__atomic *file)
{
	const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
	const size_t length = slash ? (size_t)(slash - file->path) + 1 : 1;
	const size_t shown = (size_t)(name - file->path) + name_bytes_kept(name);
	struct hg__hash hash;
	hg__hash_begin(&hash);
	hg__hash_add(&hash, name, strlen(name));
	HG__TRY(hg__data_alloc((int64_t)(shown + SUFFIX_BYTES), 1, "a file name",
	                       (void **)&file->temporary, file->message));
	HG__TRY(hg__data_alloc((int64_t)length + 1, 1, "a folder name", (void **)&file->folder,
	                       file->message));
	memcpy(file->temporary, file->path, shown);
	(void)snprintf(file->temporary + shown, SUFFIX_BYTES, ".%08" PRIx32,
	               (uint32_t)hg__hash_end(&hash));
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

/* Is fd still the file under this name? The file may have been removed or renamed since it was
 * opened. */
static int is_file_at(int fd, const char *name)
{
	struct stat mine, there;
	return fstat(fd, &mine) == 0 && lstat(name, &there) == 0 && S_ISREG(mine.st_mode) &&
	       mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* Remove the temporary file under this name if its writer no longer lives. */
static void remove_abandoned(const char *name)
{
	const int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_file_at(fd, name))
		/* without the permission to remove it, the file stays for a later writer */
		(void)unlink(name);
	(void)close(fd);
}

/* Create and lock a new file under this name. Returns -1, with errno set, on failure. Between
 * creation and lock another writer may take the file for an abandoned one and remove it; then the
 * caller tries the next number. On file systems without locks no writer removes a file of
 * another. */
static int open_slot(const char *name, mode_t mode)
{
	const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -1;
	const int taken = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (!taken && is_file_at(fd, name))
		return fd;
	(void)close(fd);
	errno = EEXIST;
	return -1;
}

static hg_status open_temporary(struct hg__atomic *file, mode_t mode)
{
	for (int slot = 0, reason = 0; slot < SLOTS && !reason; slot++) {
		set_slot(file, slot);
		remove_abandoned(file->temporary);
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

static void release_names(struct hg__atomic *file)
{
	free(file->temporary);
	free(file->folder);
	*file = (struct hg__atomic){.fd = -1};
}

/* The new file gets the owner of the old one, as far as this process may set it. The new file must
 * not be readable by users who could not read the old one. */
static hg_status keep_mode(const struct hg__atomic *file, const struct stat *old)
{
	struct stat now;
	mode_t mode = old->st_mode & 0777;
	if (fstat(file->fd, &now) != 0)
		return hg__atomic_fail(file->path, errno, file->message);
	const int same_owner = now.st_uid == old->st_uid && now.st_gid == old->st_gid;
	if (!same_owner && fchown(file->fd, old->st_uid, old->st_gid) != 0 &&
	    fchown(file->fd, (uid_t)-1, old->st_gid) != 0)
		/* the group differs, so it gets only the rights that all other users have */
		mode &= (mode_t)~070 | (mode & 07) << 3;
	return fchmod(file->fd, mode) == 0 ? HG_OK : hg__atomic_fail(file->path, errno, file->message);
}

/* A file without write permission is not replaced, although root, or the rights of its folder,
 * would allow it: its owner wants to keep it. */
static hg_status check_replaceable(const char *path, const struct stat *old, char *message)
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
	const int too_long = !is_there && errno == ENAMETOOLONG; /* the temporary name is shorter */
	*file = (struct hg__atomic){.path = path, .message = message, .fd = -1};
	if (too_long)
		return hg__atomic_fail(path, ENAMETOOLONG, message);
	if (is_there)
		HG__TRY(check_replaceable(path, &old, message));
	hg_status status = make_names(file);
	if (status == HG_OK)
		status = open_temporary(file, is_there ? 0600 : 0666);
	if (status == HG_OK && is_there)
		status = keep_mode(file, &old);
	if (status < 0)
		hg__atomic_drop(file);
	return status;
}

/* Synchronise everything to the disk. The close of a duplicate reports the errors that a network
 * file system finds only when a file is closed, while this process still holds the lock. */
static int sync_all(int fd)
{
	/* EINVAL: not supported for this file */
	const int reason = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
	const int copy = reason ? -1 : dup(fd);
	return reason ? reason : copy < 0 || close(copy) != 0 ? errno : 0;
}

/* The folder is opened before the rename, so that after the rename only the disk itself can fail. A
 * folder that is writable but not readable cannot be synchronised. */
static hg_status rename_into_place(const struct hg__atomic *file)
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
		if (is_file_at(file->fd, file->temporary))
			(void)unlink(file->temporary);
		(void)close(file->fd);
	}
	release_names(file);
}

hg_status hg__atomic_end(struct hg__atomic *file, hg_status status)
{
	const int reason = status == HG_OK ? sync_all(file->fd) : 0;
	if (reason)
		status = hg__atomic_fail(file->path, reason, file->message);
	if (status == HG_OK)
		status = rename_into_place(file);
	hg__atomic_drop(file); /* after the rename the temporary name no longer exists */
	return status;
}
