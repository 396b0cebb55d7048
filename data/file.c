/* Write whole files atomically from memory: the HTML pages and tables that a program writes beside
 * its datasets. */
#include <errno.h>
#include <unistd.h>

#include "atomic.h"

/* Returns 0, or the errno of the failure. */
static int write_all(int fd, const char *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		const ssize_t more = write(fd, bytes + done, size - done);
		if (more > 0)
			done += (size_t)more;
		else if (more == 0 || errno != EINTR)
			return more == 0 ? ENOSPC : errno;
	}
	return 0;
}

hg_status hg_file_write(const char *path, const void *bytes, size_t size, char *message)
{
	struct hg__atomic file;
	if (!path || (!bytes && size > 0))
		return hg__data_fail(message, HG_ERR_ARG, "file_write: %s is NULL",
		                     path ? "bytes" : "path");
	HG__TRY(hg__atomic_begin(&file, path, message));
	const int reason = write_all(file.fd, bytes, size);
	return hg__atomic_end(&file, reason ? hg__atomic_fail(path, reason, message) : HG_OK);
}

hg_status hg_file_try(const char *path, char *message)
{
	struct hg__atomic file;
	if (!path)
		return hg__data_fail(message, HG_ERR_ARG, "file_try: path is NULL");
	HG__TRY(hg__atomic_begin(&file, path, message));
	hg__atomic_drop(&file);
	return HG_OK;
}
