#ifndef HG_DATA_HASH_H
#define HG_DATA_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH64 (Collet, github.com/Cyan4973/xxHash, doc/xxhash_spec.md) with seed 0, of bytes that arrive
 * in pieces. It gives no protection against forgers: two files with the same hash can be made on
 * purpose. */
struct hg__hash {
	uint64_t lane[4], total;
	unsigned char rest[32]; /* the total % 32 bytes that do not fill a stripe */
};

void hg__hash_begin(struct hg__hash *hash);
void hg__hash_add(struct hg__hash *hash, const void *bytes, size_t count);
uint64_t hg__hash_end(const struct hg__hash *hash);

#endif
