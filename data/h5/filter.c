/* Undo the three supported HDF5 filters. HDF5's own pipeline accepts any output of a filter as a
 * whole chunk, however short it is, and reads past its end. Here every length is known beforehand
 * and compared. */
#include "h5/filter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SUM_BYTES 4

/* Fletcher's checksum as HDF5 defines it: over big-endian 16-bit words; an odd last byte is the
 * upper half of a word. */
static uint32_t fletcher32(const unsigned char *data, size_t size)
{
	uint32_t low = 0, high = 0;
	size_t words = size / 2;
	while (words > 0) {
		size_t run = words < 360 ? words : 360; /* more words than this could overflow 32 bits */
		words -= run;
		for (; run > 0; run--, data += 2) {
			low += (uint32_t)data[0] << 8 | data[1];
			high += low;
		}
		low = (low & 0xffff) + (low >> 16);
		high = (high & 0xffff) + (high >> 16);
	}
	if (size % 2) {
		low += (uint32_t)data[0] << 8;
		high += low;
		low = (low & 0xffff) + (low >> 16);
		high = (high & 0xffff) + (high >> 16);
	}
	low = (low & 0xffff) + (low >> 16);
	high = (high & 0xffff) + (high >> 16);
	return high << 16 | low;
}

/* HDF5 before 1.6.3 swapped the bytes of each half on some machines; such files are valid, too. */
static const char *check_sum(const unsigned char *bytes, size_t *size)
{
	if (*size < SUM_BYTES)
		return "it is too short for its checksum";
	*size -= SUM_BYTES;
	const unsigned char *at = bytes + *size;
	const uint32_t sum = fletcher32(bytes, *size);
	const uint32_t now =
	    (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
	const uint32_t old =
	    (uint32_t)at[1] | (uint32_t)at[0] << 8 | (uint32_t)at[3] << 16 | (uint32_t)at[2] << 24;
	return sum == now || sum == old ? NULL : "its checksum is wrong";
}

/* Inflate to exactly `expected` bytes; returns NULL, or the reason of a failure. Bytes after the
 * end of the stream are ignored, as HDF5 does. */
static const char *inflate_exactly(const unsigned char *from, size_t size, unsigned char *to,
                                   size_t expected)
{
	z_stream z = {0};
	unsigned char
	    /* room for one byte more than a chunk, so that a stream that is too long is noticed */
	    extra;
	size_t taken = 0, given = 0;
	int more = 0;
	if (inflateInit(&z) != Z_OK)
		return HG__UNFILTER_NO_MEMORY;
	int code = Z_OK;
	while (code == Z_OK) {
		const size_t in = size - taken < UINT32_MAX ? size - taken : UINT32_MAX;
		const size_t left = expected - given, out = left < UINT32_MAX ? left : UINT32_MAX;
		z.next_in = (z_const Bytef *)(uintptr_t)(from + taken);
		z.avail_in = (uInt)in;
		z.next_out = left > 0 ? to + given : &extra;
		z.avail_out = left > 0 ? (uInt)out : 1;
		code = inflate(&z, Z_NO_FLUSH);
		taken += in - z.avail_in;
		given += left > 0 ? out - z.avail_out : 0;
		more = left == 0 && z.avail_out == 0;
		code = more ? Z_BUF_ERROR : code;
	}
	if (inflateEnd(&z) != Z_OK && code == Z_STREAM_END)
		return "inflate() failed";
	if (code == Z_MEM_ERROR)
		return HG__UNFILTER_NO_MEMORY;
	if (code == Z_STREAM_END)
		return given == expected ? NULL : "it inflates to less than a chunk";
	return more ? "it inflates to more than a chunk" : "inflate() failed";
}

/* Shuffle stored byte 0 of all elements first, then byte 1 of all, and so on. */
static void unshuffle(const unsigned char *from, unsigned char *to, size_t size, size_t width)
{
	const size_t count = size / width, whole = count * width;
	for (size_t k = 0; k < width; k++)
		for (size_t i = 0; i < count; i++)
			to[i * width + k] = from[k * count + i];
	memcpy(to + whole, from + whole, size - whole);
}

/* A buffer of `memory` other than `busy`, with room for `size` bytes. */
static unsigned char *room_for(struct hg__unfilter *memory, const unsigned char *busy, size_t size)
{
	const int k = busy == memory->bytes[0] && busy ? 1 : 0;
	if (memory->room[k] < size) {
		free(memory->bytes[k]);
		memory->bytes[k] = malloc(size);
		memory->room[k] = memory->bytes[k] ? size : 0;
	}
	return memory->bytes[k];
}

/* The size of a chunk after its first `upto` filters: each checksum among them makes it longer. */
static size_t size_after(const struct hg__filter *filters, int upto, unsigned skipped,
                         size_t expected)
{
	for (int k = 0; k < upto; k++)
		expected += filters[k].kind == HG__FILTER_FLETCHER32 && !(skipped >> k & 1) ? SUM_BYTES : 0;
	return expected;
}

const char *hg__unfilter(struct hg__unfilter *memory, const struct hg__filter *filters, int count,
                         unsigned skipped, const unsigned char *stored, size_t size,
                         size_t expected, const unsigned char **chunk)
{
	const unsigned char *now = stored;
	for (int k = count - 1; k >= 0; k--) {
		const enum hg__filter_kind kind = filters[k].kind;
		const size_t width = filters[k].width, inflated = size_after(filters, k, skipped, expected);
		const int moves = kind == HG__FILTER_DEFLATE ||
		                  (kind == HG__FILTER_SHUFFLE && width > 1 && size / width > 1);
		const char *why = NULL;
		if (skipped >> k & 1)
			continue;
		unsigned char *to =
		    moves ? room_for(memory, now, kind == HG__FILTER_DEFLATE ? inflated : size) : NULL;
		if (moves && !to)
			return HG__UNFILTER_NO_MEMORY;
		if (kind == HG__FILTER_FLETCHER32)
			why = check_sum(now, &size);
		else if (kind == HG__FILTER_DEFLATE)
			why = inflate_exactly(now, size, to, inflated);
		else if (moves)
			unshuffle(now, to, size, width);
		if (why)
			return why;
		size = kind == HG__FILTER_DEFLATE ? inflated : size;
		now = moves ? to : now;
	}
	*chunk = now;
	return size == expected  ? NULL
	       : size < expected ? "it is shorter than a chunk"
	                         : "it is longer than a chunk";
}

void hg__unfilter_free(struct hg__unfilter *memory)
{
	for (int k = 0; k < 2; k++)
		free(memory->bytes[k]);
	*memory = (struct hg__unfilter){0};
}
