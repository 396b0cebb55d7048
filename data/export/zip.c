/* Write a zip archive without compression; zip.h says why. All numbers are little-endian. */
#include "export/zip.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "atomic.h"

#define SIGNATURE_LOCAL 0x04034b50u
#define SIGNATURE_CENTRAL 0x02014b50u
#define SIGNATURE_END64 0x06064b50u
#define SIGNATURE_LOCATOR 0x07064b50u
#define SIGNATURE_END 0x06054b50u
/* Version 4.5 brought numbers of 64 bits. The upper byte 3 says that permissions are Unix's. */
#define VERSION 45u
#define MADE_BY (3u << 8 | VERSION)
/* The 1st of January 1980, the first day that zip knows. */
#define DATE 0x0021u
/* Stands where the true number is in the extra field of 64-bit numbers. */
#define ELSEWHERE16 0xFFFFu
#define ELSEWHERE 0xFFFFFFFFu
#define EXTRA_64 0x0001u
/* Bytes of a header before the name, and of its extra field. */
#define LOCAL_BYTES 30
#define LOCAL_EXTRA 20u
#define CENTRAL_EXTRA 28u
#define END64_BYTES 56
/* Bytes of one write: zlib's checksum takes an unsigned int of them. */
#define PIECE (1 << 24)

/* A header that is being made. */
struct record {
	unsigned char bytes[160];
	size_t used;
};

static void put(struct record *r, uint64_t value, int width)
{
	for (int k = 0; k < width; k++)
		r->bytes[r->used++] = (unsigned char)(value >> (8 * k));
}

static hg_status write_at(const struct hg__zip_out *zip, const void *bytes, int64_t count,
                          int64_t at)
{
	for (int64_t done = 0; done < count;) {
		const ssize_t more =
		    pwrite(zip->fd, (const char *)bytes + done, (size_t)(count - done), (off_t)(at + done));
		if (more > 0)
			done += more;
		else if (more == 0 || errno != EINTR)
			return hg__atomic_fail(zip->path, more == 0 ? ENOSPC : errno, zip->message);
	}
	return HG_OK;
}

/* Append a record and a name to the archive. */
static hg_status append(struct hg__zip_out *zip, const struct record *r)
{
	HG__TRY(write_at(zip, r->bytes, (int64_t)r->used, zip->at));
	zip->at += (int64_t)r->used;
	return HG_OK;
}

static void put_name(struct record *r, const char *name)
{
	const size_t length = strlen(name);
	memcpy(r->bytes + r->used, name, length);
	r->used += length;
}

/* What the local header and the directory have in common: version, flags, method 0 (stored), time,
 * date, checksum, sizes, the lengths of name and extra field. */
static void put_common(struct record *r, const struct hg__zip_member *m, unsigned extra)
{
	put(r, VERSION, 2);
	put(r, 0, 2);
	put(r, 0, 2);
	put(r, 0, 2);
	put(r, DATE, 2);
	put(r, m->crc, 4);
	put(r, ELSEWHERE, 4);
	put(r, ELSEWHERE, 4);
	put(r, strlen(m->name), 2);
	put(r, extra, 2);
}

static void make_local(struct record *r, const struct hg__zip_member *m)
{
	r->used = 0;
	put(r, SIGNATURE_LOCAL, 4);
	put_common(r, m, LOCAL_EXTRA);
	put_name(r, m->name);
	put(r, EXTRA_64, 2);
	put(r, LOCAL_EXTRA - 4, 2);
	put(r, (uint64_t)m->bytes, 8);
	put(r, (uint64_t)m->bytes, 8);
}

hg_status hg__zip_member(struct hg__zip_out *zip, const char *name)
{
	struct record r;
	if (zip->members == HG__ZIP_MEMBERS || strlen(name) >= HG__ZIP_NAME)
		return hg__data_fail(zip->message, HG_ERR_INTERNAL, "%s: no room for member %s", zip->path,
		                     name);
	struct hg__zip_member *m = &zip->member[zip->members++];
	*m = (struct hg__zip_member){.offset = zip->at, .crc = (uint32_t)crc32(0, NULL, 0)};
	memcpy(m->name, name, strlen(name) + 1);
	make_local(&r, m);
	return append(zip, &r);
}

hg_status hg__zip_add(struct hg__zip_out *zip, const void *bytes, int64_t count)
{
	struct hg__zip_member *m = &zip->member[zip->members - 1];
	for (int64_t done = 0; done < count;) {
		const int64_t piece = count - done < PIECE ? count - done : PIECE;
		const void *at = (const char *)bytes + done;
		HG__TRY(write_at(zip, at, piece, zip->at));
		m->crc = (uint32_t)crc32(m->crc, at, (uInt)piece);
		zip->at += piece;
		done += piece;
	}
	m->bytes += count;
	return HG_OK;
}

hg_status hg__zip_member_end(struct hg__zip_out *zip)
{
	const struct hg__zip_member *m = &zip->member[zip->members - 1];
	struct record r;
	make_local(&r, m);
	return write_at(zip, r.bytes, (int64_t)r.used, m->offset);
}

static hg_status write_entry(struct hg__zip_out *zip, const struct hg__zip_member *m)
{
	struct record r = {.used = 0};
	put(&r, SIGNATURE_CENTRAL, 4);
	put(&r, MADE_BY, 2);
	put_common(&r, m, CENTRAL_EXTRA);
	put(&r, 0, 2);              /* length of the comment */
	put(&r, 0, 2);              /* disk */
	put(&r, 0, 2);              /* internal attributes */
	put(&r, 0100644u << 16, 4); /* a regular file, rw-r--r-- */
	put(&r, ELSEWHERE, 4);      /* offset */
	put_name(&r, m->name);
	put(&r, EXTRA_64, 2);
	put(&r, CENTRAL_EXTRA - 4, 2);
	put(&r, (uint64_t)m->bytes, 8);
	put(&r, (uint64_t)m->bytes, 8);
	put(&r, (uint64_t)m->offset, 8);
	return append(zip, &r);
}

hg_status hg__zip_end(struct hg__zip_out *zip)
{
	const int64_t directory = zip->at;
	const uint64_t count = (uint64_t)zip->members;
	for (int k = 0; k < zip->members; k++)
		HG__TRY(write_entry(zip, &zip->member[k]));
	const int64_t end = zip->at;
	struct record r = {.used = 0};
	put(&r, SIGNATURE_END64, 4);
	put(&r, END64_BYTES - 12, 8); /* the bytes of this record that follow */
	put(&r, MADE_BY, 2);
	put(&r, VERSION, 2);
	put(&r, 0, 8); /* disks */
	put(&r, count, 8);
	put(&r, count, 8);
	put(&r, (uint64_t)(end - directory), 8);
	put(&r, (uint64_t)directory, 8);
	put(&r, SIGNATURE_LOCATOR, 4);
	put(&r, 0, 4);
	put(&r, (uint64_t)end, 8);
	put(&r, 1, 4); /* number of disks */
	put(&r, SIGNATURE_END, 4);
	put(&r, 0, 4);
	put(&r, ELSEWHERE16, 2);
	put(&r, ELSEWHERE16, 2);
	put(&r, ELSEWHERE, 4);
	put(&r, ELSEWHERE, 4);
	put(&r, 0, 2);
	return append(zip, &r);
}
