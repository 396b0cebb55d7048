#ifndef HG_DATA_IMPORT_BYTES_H
#define HG_DATA_IMPORT_BYTES_H

#include <zlib.h>

#include "internal.h"

/* The bytes of a file or pipe: as they are, or inflated where it begins as gzip does. Several gzip
 * members in a row are one text, as gzip reads them, and zeros may pad the last. Anything else
 * behind it is refused (gzip warns, zlib says nothing), and so is a file without a byte: both are
 * downloads gone wrong. */
struct hg__bytes {
	const char *path;
	char *message;
	const hg_progress *progress;
	int fd;
	int64_t file_bytes, taken; /* from the file so far; of a pipe, file_bytes is 0 */
	unsigned char *input;
	size_t begin, end; /* its unread part */
	enum { HG__PLAIN, HG__IN_MEMBER, HG__BETWEEN_MEMBERS, HG__PADDING } state;
	z_stream z;
	int z_ready, began; /* began: a byte has come out */
};

/* Close it also where this fails. */
HG_NODISCARD hg_status hg__bytes_open(struct hg__bytes *bytes, const char *path,
                                      const hg_progress *progress, char *message);
/* Up to `room` bytes; *got 0 at the end. */
HG_NODISCARD hg_status hg__bytes_read(struct hg__bytes *bytes, void *to, size_t room, size_t *got);
void hg__bytes_close(struct hg__bytes *bytes);

#endif
