/* Put a new checksum on a file that another program changed on purpose. The file is copied; the
 * copy is sealed, read like any other file, and put in its place. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic.h"
#include "h5/checkpoint.h"
#include "seal.h"

#define PIECE_BYTES (1 << 18)

/* Copy the file from byte `begin` on to the position after the checksum block. */
static hg_status copy_data(int from, int64_t begin, const struct hg__atomic *to)
{
	void *buffer = NULL;
	int reason = 0;
	int64_t at = HG__SEAL_BYTES;
	HG__TRY(hg__data_alloc(PIECE_BYTES, 1, "a copy", &buffer, to->message));
	ssize_t got = lseek(from, (off_t)begin, SEEK_SET) < 0 ? -1 : 1;
	while (got > 0 && reason == 0) {
		got = read(from, buffer, PIECE_BYTES);
		for (ssize_t done = 0; done < got && reason == 0;) {
			const ssize_t put =
			    pwrite(to->fd, (char *)buffer + done, (size_t)(got - done), (off_t)at);
			reason = put > 0 || (put < 0 && errno == EINTR) ? 0 : put == 0 ? ENOSPC : errno;
			done += put > 0 ? put : 0;
			at += put > 0 ? put : 0;
		}
		got = got < 0 && errno == EINTR ? 1 : got;
	}
	free(buffer);
	if (reason)
		return hg__atomic_fail(to->path, reason, to->message);
	return got == 0 ? HG_OK
	                : hg__data_fail(to->message, HG_ERR_IO, "%s: cannot be read: %s", to->path,
	                                strerror(errno));
}

/* Read the file as a dataset or as a checkpoint, whichever its attribute says. */
static hg_status check_content(const char *path, const char *shown, char *message)
{
	struct h5 h5;
	char *format = NULL;
	hg_status status = hg__h5_open(&h5, path, shown, message);
	if (status == HG_OK)
		status = hg__h5_text(&h5, h5.file, "format", "/", &format);
	const hg_status closed = hg__h5_close(&h5);
	const int is_checkpoint = format && strcmp(format, HG__CHECKPOINT_FORMAT) == 0;
	free(format);
	HG__TRY(status);
	HG__TRY(closed);
	if (is_checkpoint) {
		hg_state *state = NULL;
		status = hg__checkpoint_read(path, shown, &state, message);
		hg_state_free(state);
	} else {
		hg_dataset *dataset = NULL;
		status = hg__dataset_read(path, shown, &dataset, message);
		hg_dataset_free(dataset);
	}
	return status;
}

static hg_status seal_copy(int fd, struct hg__atomic *file)
{
	int64_t begin = 0;
	HG__TRY(hg__seal_begin(fd, file->path, &begin, file->message));
	HG__TRY(copy_data(fd, begin, file));
	HG__TRY(hg__seal_write(file->fd, file->path, NULL, file->message));
	return check_content(file->temporary, file->path, file->message);
}

hg_status hg_file_seal(const char *path, char *message)
{
	struct hg__atomic file;
	if (!path)
		return hg__data_fail(message, HG_ERR_ARG, "file_seal: path is NULL");
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	hg_status status = hg__atomic_begin(&file, path, message);
	if (status == HG_OK)
		status = hg__atomic_end(&file, seal_copy(fd, &file));
	(void)close(fd); /* nothing was written to it */
	return status;
}
