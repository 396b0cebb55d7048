#ifndef HG_DATA_ATOMIC_H
#define HG_DATA_ATOMIC_H

#include "internal.h"

/* A file that appears complete or not at all. It is written under a temporary name in the same
 * folder, synchronised and renamed. The new file keeps the mode of the file that it replaces. */
struct hg__atomic {
	const char *path; /* the path as the user wrote it, for messages */
	char *message;
	char *temporary, *folder;
	int fd;   /* the temporary file, open for reading and writing */
	int slot; /* the number in the temporary name */
};

/* Begin to write. After a failure the caller must not call end or drop. A file at `path` that is
 * read-only, or is not a regular file (a device, a link), is never replaced. Temporary files of
 * killed writers of the same path are removed. */
HG_NODISCARD hg_status hg__atomic_begin(struct hg__atomic *file, const char *path, char *message);
/* With status HG_OK, put the file in place. With another status, or where that fails, remove the
 * temporary file. Returns `status`, or the failure. */
HG_NODISCARD hg_status hg__atomic_end(struct hg__atomic *file, hg_status status);

/* Remove the temporary file; the old file at `path` stays. */
void hg__atomic_drop(struct hg__atomic *file);

/* The failure "PATH: cannot be written: REASON", where the reason is an errno. */
hg_status hg__atomic_fail(const char *path, int reason, char *message);

#endif
