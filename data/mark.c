/* Notice that a file changes while it is read. */
#include "mark.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct hg__mark hg__mark_of(const struct stat *info)
{
	return (struct hg__mark){.is_set = 1,
	                         .device = info->st_dev,
	                         .number = info->st_ino,
	                         .bytes = (int64_t)info->st_size,
	                         .modified = info->st_mtim};
}

hg_status hg__mark_check(const struct hg__mark *mark, int fd, const char *path, const char *shown,
                         char *message)
{
	struct stat info;
	if (!mark->is_set)
		return HG_OK;
	if ((fd >= 0 ? fstat(fd, &info) : stat(path, &info)) != 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: changed while it was read: %s", shown,
		                     strerror(errno));
	const struct hg__mark now = hg__mark_of(&info);
	if (now.device != mark->device || now.number != mark->number)
		return hg__data_fail(message, HG_ERR_IO,
		                     "%s: changed while it was read: another file is in its place", shown);
	if (now.bytes != mark->bytes)
		return hg__data_fail(message, HG_ERR_IO,
		                     "%s: changed while it was read: %" PRId64 " bytes at the beginning, "
		                     "%" PRId64 " at the end",
		                     shown, mark->bytes, now.bytes);
	if (now.modified.tv_sec != mark->modified.tv_sec ||
	    now.modified.tv_nsec != mark->modified.tv_nsec)
		return hg__data_fail(message, HG_ERR_IO, "%s: changed while it was read: it was written to",
		                     shown);
	return HG_OK;
}
