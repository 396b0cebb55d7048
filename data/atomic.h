#ifndef HG_DATA_ATOMIC_H
#define HG_DATA_ATOMIC_H

#include "internal.h"

/* A file that appears complete or not at all: written under a temporary name beside its own,
 * synchronised, renamed. The mode of what it replaces stays. */
struct hg__atomic {
	const char *path; /* what the user called it */
	char *message;
	char *temporary, *folder;
	int fd;   /* of the temporary file, for reading and writing */
	int slot; /* its number */
};

/* On failure nothing is left to end. What is there under `path` and is read-only, or no regular
 * file (a device, a link), is never replaced. What killed writers of the same file left is removed.
 * */
HG_NODISCARD hg_status hg__atomic_begin(struct hg__atomic *file, const char *path, char *message);
/* status HG_OK: put the file in place; else, or where that fails: nothing is left behind. Returns
 * status, or the failure. */
HG_NODISCARD hg_status hg__atomic_end(struct hg__atomic *file, hg_status status);

/* Nothing is left behind, and what was there stays. */
void hg__atomic_drop(struct hg__atomic *file);

/* "PATH: cannot be written: REASON", of an errno. */
hg_status hg__atomic_fail(const char *path, int reason, char *message);

#endif
