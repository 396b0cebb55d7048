#ifndef HG_DATA_MARK_H
#define HG_DATA_MARK_H

#include <sys/stat.h>

#include "internal.h"

/* What tells whether a file was changed, or another one put in its place, while it was read: its
 * length, its time of modification and its number in the file system. A write that keeps the length
 * and falls into the same tick of the clock as the write before, a few milliseconds, goes
 * unnoticed. */
struct hg__mark {
	int is_set;
	dev_t device;
	ino_t number;
	int64_t bytes;
	struct timespec modified;
};

struct hg__mark hg__mark_of(const struct stat *info);
/* HG_OK, or HG_ERR_IO where the file has another mark now: the file behind a descriptor, or, with
 * fd < 0, the one at `path`. Messages call it `shown`. A mark that is not set fits everything. */
HG_NODISCARD hg_status hg__mark_check(const struct hg__mark *mark, int fd, const char *path,
                                      const char *shown, char *message);

#endif
