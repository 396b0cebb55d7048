/* Write and check the checksum block of a file. The block is text followed by zeros, so `head -c
 * 512` shows it. */
#include "seal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic.h"
#include "hash.h"

#define SIGNATURE "\211HDF\r\n\032\n"
#define SIGNATURE_BYTES 8
#define TITLE "HalfGraph: the HDF5 file begins at byte 512, behind this checksum of it.\n"

/* Bytes that are hashed at a time: more than the readahead of a disk, less than a second-level
 * cache. */
#define PIECE_BYTES (1 << 18)

static void make_block(char block[HG__SEAL_BYTES], int64_t bytes, uint64_t sum)
{
	memset(block, 0, HG__SEAL_BYTES);
	(void)snprintf(block, HG__SEAL_BYTES,
	               TITLE
	               "bytes %" PRId64 "\nXXH64 %016" PRIx64 "\n"
	               "Changed on purpose? h5convert --seal FILE checks it and makes this new.\n",
	               bytes, sum);
}

/* Read `count` bytes, or as many as there are. Returns -1, with errno set, on failure. */
static ssize_t read_at(int fd, void *bytes, size_t count, int64_t at)
{
	size_t done = 0;
	while (done < count) {
		const ssize_t got =
		    pread(fd, (char *)bytes + done, count - done, (off_t)(at + (int64_t)done));
		if (got < 0 && errno != EINTR)
			return -1;
		if (got == 0)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)done;
}

static hg_status unreadable(const char *path, char *message)
{
	return hg__data_fail(message, HG_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
}

/* Make the block for the data that follow it in the file. `doing` is the progress text. */
static hg_status make_checksum(int fd, const char *path, char block[HG__SEAL_BYTES],
                               const char *doing, const hg_progress *progress, char *message)
{
	struct hg__hash hash;
	void *buffer = NULL;
	int64_t at = HG__SEAL_BYTES;
	const off_t end = lseek(fd, 0, SEEK_END);
	hg_status status = hg__data_alloc(PIECE_BYTES, 1, "a checksum", &buffer, message);
	hg__hash_begin(&hash);
	for (ssize_t got = 1; status == HG_OK && got > 0; at += got > 0 ? got : 0) {
		status = hg__data_step(progress, doing, at, (int64_t)end, message);
		got = status == HG_OK ? read_at(fd, buffer, PIECE_BYTES, at) : 0;
		if (got < 0)
			status = unreadable(path, message);
		else
			hg__hash_add(&hash, buffer, (size_t)got);
	}
	free(buffer);
	make_block(block, at - HG__SEAL_BYTES, hg__hash_end(&hash));
	return status;
}

hg_status hg__seal_write(int fd, const char *path, const hg_progress *progress, char *message)
{
	char block[HG__SEAL_BYTES];
	HG__TRY(make_checksum(fd, path, block, "writing the checksum", progress, message));
	for (size_t done = 0; done < sizeof block;) {
		const ssize_t put = pwrite(fd, block + done, sizeof block - done, (off_t)done);
		if (put > 0)
			done += (size_t)put;
		else if (put == 0 || errno != EINTR)
			return hg__atomic_fail(path, put == 0 ? ENOSPC : errno, message);
	}
	return HG_OK;
}

static hg_status fail_damaged(const char *shown, const char *block, char *message)
{
	if (memcmp(block, TITLE, sizeof TITLE - 1) != 0)
		return hg__data_fail(
		    message, HG_ERR_FORMAT,
		    "%s: the 512 bytes before its HDF5 data are not HalfGraph's checksum: they "
		    "are damaged, or another program's user block, which h5unjam takes off",
		    shown);
	return hg__data_fail(
	    message, HG_ERR_FORMAT,
	    "%s: does not fit its checksum: it is damaged or cut off, or another program "
	    "changed it; if on purpose, h5convert --seal computes a new checksum",
	    shown);
}

static int signature_at(const char *bytes, ssize_t count, size_t at)
{
	return count >= (ssize_t)(at + SIGNATURE_BYTES) &&
	       memcmp(bytes + at, SIGNATURE, SIGNATURE_BYTES) == 0;
}

/* A file with a checksum must match it, even where the damage is in the block or in the HDF5
 * signature after it. Only a file that begins with the signature never had a checksum. */
static hg_status check_block(int fd, const char *shown, char *message)
{
	char head[HG__SEAL_BYTES + SIGNATURE_BYTES], block[HG__SEAL_BYTES];
	const ssize_t count = read_at(fd, head, sizeof head, 0);
	if (count < 0)
		return unreadable(shown, message);
	const int ours = count >= (ssize_t)sizeof TITLE && memcmp(head, TITLE, sizeof TITLE - 1) == 0;
	if (signature_at(head, count, 0) || (!ours && !signature_at(head, count, HG__SEAL_BYTES)))
		return HG_OK; /* libhdf5 itself refuses a file that is not HDF5 */
	if (count < HG__SEAL_BYTES)
		return fail_damaged(shown, head, message);
	HG__TRY(make_checksum(fd, shown, block, NULL, NULL, message));
	return memcmp(head, block, sizeof block) == 0 ? HG_OK : fail_damaged(shown, head, message);
}

hg_status hg__seal_check(const char *path, const char *shown, char *message)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", shown, strerror(errno));
	const hg_status status = check_block(fd, shown, message);
	(void)close(fd); /* nothing was written */
	return status;
}

hg_status hg__seal_begin(int fd, const char *path, int64_t *begin, char *message)
{
	char head[HG__SEAL_BYTES + SIGNATURE_BYTES];
	const ssize_t count = read_at(fd, head, sizeof head, 0);
	if (count < 0)
		return unreadable(path, message);
	*begin = signature_at(head, count, 0) ? 0 : HG__SEAL_BYTES;
	return signature_at(head, count, (size_t)*begin)
	           ? HG_OK
	           : hg__data_fail(message, HG_ERR_FORMAT,
	                           "%s: HDF5's signature is neither at its beginning nor at byte 512",
	                           path);
}
