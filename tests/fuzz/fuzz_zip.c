/* Zip archives of text files: damage of their directory, and any members in a good directory. The
 * input is an archive, or, where it does not begin like one, its members, "NAME\nCONTENT" with
 * FUZZ_BINARY_END between them. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fuzz.h"

enum { MEMBERS = 12, LOCAL = 30, CENTRAL = 46, END = 22, NAME = 60 };

/* The files, or the directory, while an archive grows. */
struct part {
	uint8_t *bytes;
	size_t size;
	int members;
};

static uint8_t *put(uint8_t *at, uint32_t value, int width)
{
	for (int k = 0; k < width; k++)
		*at++ = (uint8_t)(value >> 8 * k);
	return at;
}

/* What both headers of a stored member have in common: from the version to the length of its
 * name. */
static void put_member(uint8_t *at, const uint8_t *content, size_t length, size_t name)
{
	at = put(at, 10, 2); /* version 1.0 */
	at = put(at, 0, 4);  /* no flags, stored */
	at = put(at, 0x00210000, 4);
	at = put(at, (uint32_t)crc32(0, content, (uInt)length), 4);
	at = put(at, (uint32_t)length, 4);
	at = put(at, (uint32_t)length, 4);
	(void)put(at, (uint32_t)name, 4); /* and no extra field */
}

/* Add one member to the files, and its entry to the directory, which is still apart. */
static void add_member(struct part *files, struct part *directory, const uint8_t *bytes,
                       size_t count)
{
	const uint8_t *end = count ? memchr(bytes, '\n', count) : NULL;
	const size_t before = end ? (size_t)(end - bytes) : count, name = before < NAME ? before : NAME,
	             length = end ? count - before - 1 : 0;
	const uint8_t *content = bytes + (count - length);
	if (name == 0)
		return;
	uint8_t *local = files->bytes + files->size, *central = directory->bytes + directory->size;
	put(local, 0x04034b50, 4);
	put_member(local + 4, content, length, name);
	memcpy(local + LOCAL, bytes, name);
	memcpy(local + LOCAL + name, content, length);
	memset(central, 0, CENTRAL);
	put(central, 0x02014b50, 4);
	put(central + 4, 10, 2);
	put_member(central + 6, content, length, name);
	put(central + 42, (uint32_t)files->size, 4);
	memcpy(central + CENTRAL, bytes, name);
	files->size += LOCAL + name + length;
	directory->size += CENTRAL + name;
	directory->members++;
}

/* The bytes of an archive, which the caller frees. */
static uint8_t *pack(const uint8_t *bytes, size_t count, size_t *size)
{
	uint8_t entries[MEMBERS * (CENTRAL + NAME)];
	const size_t gap = strlen(FUZZ_BINARY_END);
	struct part zip = {malloc(count + MEMBERS * (LOCAL + CENTRAL + NAME) + END), 0, 0},
	            directory = {entries, 0, 0};
	if (!zip.bytes)
		abort();
	for (int k = 0; k < MEMBERS && count > 0; k++) {
		const uint8_t *end = memmem(bytes, count, FUZZ_BINARY_END, gap);
		const size_t length = end ? (size_t)(end - bytes) : count;
		add_member(&zip, &directory, bytes, length);
		bytes += length + (end ? gap : 0);
		count -= length + (end ? gap : 0);
	}
	const size_t start = zip.size;
	memcpy(zip.bytes + zip.size, directory.bytes, directory.size);
	zip.size += directory.size;
	uint8_t *at = put(zip.bytes + zip.size, 0x06054b50, 4);
	at = put(at, 0, 4);
	at = put(at, (uint32_t)directory.members, 2);
	at = put(at, (uint32_t)directory.members, 2);
	at = put(at, (uint32_t)directory.size, 4);
	at = put(at, (uint32_t)start, 4);
	(void)put(at, 0, 2);
	*size = zip.size + END;
	return zip.bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const char *const formats[] = {"tu", "gin", "musae", "ogb", "graphbolt", "dgl-csv"};
	const int is_zip = count >= 2 && memcmp(bytes, "PK", 2) == 0;
	size_t size = count;
	uint8_t *packed = is_zip ? NULL : pack(bytes, count, &size);
	for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
		(void)fuzz_import(formats[k], packed ? packed : bytes, size);
	free(packed);
	return 0;
}
