/* Write arrays as an .npz archive: a zip file, stored without compression, of .npy members
 * (numpy.lib.format, version 1.0; APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12, 4.3.16). */
#include "npz_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "stream.h"

enum { MEMBERS = 8, HEADER = 128, LOCAL = 30, CENTRAL = 46, END = 22 };

/* A member as its headers tell it. */
struct member {
	char name[64], header[HEADER]; /* the .npy header has exactly this length */
	uint32_t crc, bytes, at;
};

static void little(unsigned char *to, uint64_t value, int bytes)
{
	for (int k = 0; k < bytes; k++)
		to[k] = (unsigned char)(value >> 8 * k);
}

static size_t bytes_of(const struct hg__npz_array *a)
{
	return (size_t)a->rows * (size_t)(a->cols ? a->cols : 1) * a->size;
}

/* The .npy header: magic, version, length, and a dictionary that ends with a line feed at the end
 * of these 128 bytes. */
static void make_header(const struct hg__npz_array *a, char *header)
{
	char text[HEADER], shape[64];
	if (a->cols)
		(void)snprintf(shape, sizeof shape, "%" PRId64 ", %" PRId64, a->rows, a->cols);
	else
		(void)snprintf(shape, sizeof shape, "%" PRId64 ",", a->rows);
	const int length =
	    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
	             a->type, shape);
	memset(header, ' ', HEADER);
	memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes follow */
	memcpy(header + 10, text, (size_t)length);
	header[HEADER - 1] = '\n';
}

/* crc32 takes 32-bit lengths. */
static uint32_t checksum(const struct hg__npz_array *a, const char *header)
{
	const unsigned char *at = a->values;
	uLong crc = crc32(0, (const Bytef *)header, HEADER);
	for (size_t left = bytes_of(a); left > 0;) {
		const uInt some = left < (1u << 30) ? (uInt)left : 1u << 30;
		crc = crc32(crc, at, some);
		at += some;
		left -= some;
	}
	return (uint32_t)crc;
}

/* The fields that both headers of a member share: version, flags, method 0, date 1980-01-01, sum,
 * sizes, the length of the name. */
static void common(unsigned char *to, const struct member *m)
{
	little(to, 20, 2);
	little(to + 2, 0, 4);
	little(to + 6, 0x210000, 4);
	little(to + 10, m->crc, 4);
	little(to + 14, m->bytes, 4);
	little(to + 18, m->bytes, 4);
	little(to + 22, strlen(m->name), 2);
}

static void put_member(struct hg__stream *s, const struct hg__npz_array *a, struct member *m)
{
	unsigned char local[LOCAL] = "PK\x03\x04";
	(void)snprintf(m->name, sizeof m->name, "%s.npy", a->name);
	make_header(a, m->header);
	m->crc = checksum(a, m->header);
	m->bytes = (uint32_t)(bytes_of(a) + HEADER);
	m->at = (uint32_t)s->bytes;
	common(local + 4, m);
	hg__stream_put(s, local, sizeof local);
	hg__stream_put(s, m->name, strlen(m->name));
	hg__stream_put(s, m->header, HEADER);
	hg__stream_put(s, a->values, bytes_of(a));
}

static void put_directory(struct hg__stream *s, const struct member *member, int count)
{
	unsigned char end[END] = "PK\x05\x06";
	const int64_t begin = s->bytes;
	for (int k = 0; k < count; k++) {
		unsigned char central[CENTRAL] = "PK\x01\x02\x14";
		common(central + 6, &member[k]);
		little(central + 42, member[k].at, 4);
		hg__stream_put(s, central, sizeof central);
		hg__stream_put(s, member[k].name, strlen(member[k].name));
	}
	little(end + 8, (uint64_t)count, 2);
	little(end + 10, (uint64_t)count, 2);
	little(end + 12, (uint64_t)(s->bytes - begin), 4);
	little(end + 16, (uint64_t)begin, 4);
	hg__stream_put(s, end, sizeof end);
}

hg_status hg__npz_write(const struct hg__atomic *file, const struct hg__npz_array *arrays,
                        int count)
{
	struct member member[MEMBERS];
	struct hg__stream *stream = NULL;
	uint64_t total = 0;
	for (int k = 0; k < count; k++)
		total += bytes_of(&arrays[k]) + 1024; /* its headers */
	if (count > MEMBERS || total >= UINT32_MAX)
		return hg__data_fail(file->message, HG_ERR_RANGE,
		                     "%s: would have %" PRIu64
		                     " bytes, and an .npz holds less than 4 GiB: expected .h5",
		                     file->path, total);
	HG__TRY(hg__stream_new(file, &stream));
	for (int k = 0; k < count; k++)
		put_member(stream, &arrays[k], &member[k]);
	put_directory(stream, member, count);
	const hg_status status = hg__stream_end(stream);
	free(stream);
	return status;
}
