#ifndef HG_DATA_IMPORT_BYTES_H
#define HG_DATA_IMPORT_BYTES_H

#include <zip.h>
#include <zlib.h>

#include "mark.h"

/* The bytes of a file, pipe or member of a zip archive, inflated where it begins like gzip. Several
 * gzip members in a row are one text, as gzip reads them, and zeros may pad the last one. Any other
 * bytes after it are refused (gzip warns, zlib ignores them), and so is an empty file: both are
 * signs of a broken download. At its end a regular file must be what it was at its beginning. */
struct hg__bytes {
	const char *path;
	char *message;
	const hg_progress *progress;
	int fd;
	zip_file_t *member;        /* read instead of fd; NULL: none */
	const char *archive;       /* the file that holds the member */
	struct hg__mark mark;      /* of the file or archive; not set for a pipe */
	int64_t file_bytes, taken; /* taken: bytes read so far; file_bytes is 0 for a pipe */
	unsigned char *input;
	size_t begin, end; /* the unread part of `input` */
	enum { HG__PLAIN, HG__IN_MEMBER, HG__BETWEEN_MEMBERS, HG__PADDING } state;
	z_stream z;
	int z_ready, began; /* began: at least one byte was returned */
};

/* The caller closes `bytes` after a failure, too. */
HG_NODISCARD hg_status hg__bytes_open(struct hg__bytes *bytes, const char *path,
                                      const hg_progress *progress, char *message);
/* The same for a member of the archive at `archive`, which had the mark before it was opened and
 * stays open meanwhile. On success the member belongs to `bytes`; `size` is its length. */
HG_NODISCARD hg_status hg__bytes_open_member(struct hg__bytes *bytes, zip_file_t *member,
                                             int64_t size, const char *archive,
                                             const struct hg__mark *mark, const char *path,
                                             const hg_progress *progress, char *message);
/* HG_ERR_IO where the file, or the archive of a member, is no longer the one that was opened. It is
 * compared at the end; compare it, too, before something else is called wrong. */
HG_NODISCARD hg_status hg__bytes_unchanged(const struct hg__bytes *bytes);
/* Read up to `room` bytes; *got is 0 at the end. */
HG_NODISCARD hg_status hg__bytes_read(struct hg__bytes *bytes, void *to, size_t room, size_t *got);
void hg__bytes_close(struct hg__bytes *bytes);

#endif
