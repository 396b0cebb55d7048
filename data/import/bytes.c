#include "import/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of one read(). A system call costs far less than inflating this many bytes. */
#define INPUT_BYTES 65536

/* zlib: gzip members (RFC 1952) only, with the largest window */
#define GZIP_WINDOW (15 + 16)

hg_status hg__bytes_unchanged(const struct hg__bytes *b)
{
	return hg__mark_check(&b->mark, b->fd, b->archive, b->archive ? b->archive : b->path,
	                      b->message);
}

static hg_status fail_at_byte(const struct hg__bytes *b, const char *text)
{
	HG__TRY(hg__bytes_unchanged(b)); /* then this is the reason */
	return hg__data_fail(b->message, HG_ERR_FORMAT, "%s: at byte %" PRId64 ": %s", b->path,
	                     b->taken - (int64_t)(b->end - b->begin), text);
}

/* A signal may end the wait for a pipe: continue unless the progress callback asks to stop. */
static hg_status retry_or_fail(const struct hg__bytes *b)
{
	if (errno != EINTR)
		return hg__data_fail(b->message, HG_ERR_IO, "%s: %s", b->path, strerror(errno));
	return hg__data_step(b->progress, "reading", b->taken, b->file_bytes, b->message);
}

static hg_status read_file(struct hg__bytes *b, void *to, size_t room, int64_t *got)
{
	while ((*got = (int64_t)read(b->fd, to, room)) < 0)
		HG__TRY(retry_or_fail(b));
	return HG_OK;
}

/* libzip compares the checksum of a member at its end. */
static hg_status read_member(struct hg__bytes *b, void *to, size_t room, int64_t *got)
{
	*got = (int64_t)zip_fread(b->member, to, room);
	return *got >= 0 ? HG_OK : fail_at_byte(b, zip_file_strerror(b->member));
}

/* Append input after the unread part; at the end of the file nothing is added. */
static hg_status fill_input(struct hg__bytes *b)
{
	int64_t got = 0;
	memmove(b->input, b->input + b->begin, b->end - b->begin);
	b->end -= b->begin;
	b->begin = 0;
	HG__TRY(
	    (b->member ? read_member : read_file)(b, b->input + b->end, INPUT_BYTES - b->end, &got));
	if (got == 0)
		HG__TRY(hg__bytes_unchanged(b));
	b->end += (size_t)got;
	b->taken += got;
	return hg__data_step(b->progress, "reading", b->taken, b->file_bytes, b->message);
}

/* Detect gzip by its first two bytes, even if a pipe delivers them one by one. */
static hg_status detect_gzip(struct hg__bytes *b)
{
	size_t before;
	do {
		before = b->end;
		HG__TRY(fill_input(b));
	} while (b->end < 2 && b->end > before);
	if (b->end < 2 || b->input[0] != 0x1f || b->input[1] != 0x8b)
		return HG_OK;
	b->state = HG__BETWEEN_MEMBERS;
	b->z_ready = inflateInit2(&b->z, GZIP_WINDOW) == Z_OK;
	return b->z_ready ? HG_OK
	                  : hg__data_fail(b->message, HG_ERR_NOMEM, "%s: out of memory for inflating",
	                                  b->path);
}

hg_status hg__bytes_open(struct hg__bytes *b, const char *path, const hg_progress *progress,
                         char *message)
{
	struct stat info;
	*b = (struct hg__bytes){.path = path, .message = message, .progress = progress};
	while ((b->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		HG__TRY(retry_or_fail(b));
	if (fstat(b->fd, &info) != 0)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	if (S_ISDIR(info.st_mode))
		return hg__data_fail(message, HG_ERR_IO, "%s: is a directory", path);
	b->file_bytes = (int64_t)info.st_size;
	if (S_ISREG(info.st_mode))
		b->mark = hg__mark_of(&info);
	HG__TRY(hg__data_alloc(INPUT_BYTES, 1, "a buffer", (void **)&b->input, message));
	return detect_gzip(b);
}

hg_status hg__bytes_open_member(struct hg__bytes *b, zip_file_t *member, int64_t size,
                                const char *archive, const struct hg__mark *mark, const char *path,
                                const hg_progress *progress, char *message)
{
	*b = (struct hg__bytes){.path = path,
	                        .message = message,
	                        .progress = progress,
	                        .fd = -1,
	                        .member = member,
	                        .archive = archive,
	                        .mark = *mark,
	                        .file_bytes = size};
	HG__TRY(hg__data_alloc(INPUT_BYTES, 1, "a buffer", (void **)&b->input, message));
	return detect_gzip(b);
}

void hg__bytes_close(struct hg__bytes *b)
{
	if (b->fd >= 0)
		close(b->fd);
	if (b->member)
		zip_fclose(b->member);
	if (b->z_ready)
		inflateEnd(&b->z);
	free(b->input);
	*b = (struct hg__bytes){.fd = -1};
}

/* Call inflate once, from the unread input into the given room. */
static hg_status inflate_some(struct hg__bytes *b, unsigned char *to, size_t room, size_t *got)
{
	b->z.next_in = b->input + b->begin;
	b->z.avail_in = (uInt)(b->end - b->begin);
	b->z.next_out = to;
	b->z.avail_out = (uInt)room;
	const int code = inflate(&b->z, Z_NO_FLUSH);
	b->begin = b->end - b->z.avail_in;
	*got = room - b->z.avail_out;
	if (code == Z_STREAM_END)
		b->state = HG__BETWEEN_MEMBERS;
	else if (code == Z_MEM_ERROR)
		return hg__data_fail(b->message, HG_ERR_NOMEM, "%s: out of memory for inflating", b->path);
	else if (code != Z_OK && code != Z_BUF_ERROR)
		return fail_at_byte(b, b->z.msg ? b->z.msg : zError(code));
	return HG_OK;
}

/* A member has ended: another one follows, or zeros up to the end of the file. */
static hg_status begin_member(struct hg__bytes *b)
{
	const unsigned char next = b->input[b->begin];
	if (next == 0) {
		b->state = HG__PADDING;
		b->begin++;
		return HG_OK;
	}
	if (next != 0x1f || b->state == HG__PADDING)
		return fail_at_byte(b, "the gzip data end here, but the file goes on");
	b->state = HG__IN_MEMBER;
	return inflateReset(&b->z) == Z_OK ? HG_OK : fail_at_byte(b, "cannot be inflated");
}

hg_status hg__bytes_read(struct hg__bytes *b, void *to, size_t room, size_t *got)
{
	*got = 0;
	while (*got == 0) {
		if (b->begin == b->end)
			HG__TRY(fill_input(b));
		const size_t unread = b->end - b->begin;
		if (unread == 0 && b->state == HG__IN_MEMBER)
			return fail_at_byte(b, "truncated: the gzip data go on, but the file ends here");
		if (unread == 0)
			break;
		if (b->state == HG__PLAIN) {
			*got = unread < room ? unread : room;
			memcpy(to, b->input + b->begin, *got);
			b->begin += *got;
		} else if (b->state == HG__IN_MEMBER) {
			HG__TRY(inflate_some(b, to, room, got));
		} else {
			HG__TRY(begin_member(b));
		}
	}
	b->began |= *got > 0;
	return b->began ? HG_OK
	                : hg__data_fail(b->message, HG_ERR_FORMAT, "%s: is empty: 0 bytes", b->path);
}
