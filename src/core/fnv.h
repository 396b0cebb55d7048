#ifndef HG_CORE_FNV_H
#define HG_CORE_FNV_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits (Fowler, Noll, Vo). A hash of several pieces continues from one to the next, and
 * is that of all their bytes in a row. */
#define HG__FNV_BEGIN UINT64_C(0xCBF29CE484222325)
static inline uint64_t hg__fnv(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	for (size_t k = 0; k < count; k++)
		hash = (hash ^ at[k]) * UINT64_C(0x100000001B3);
	return hash;
}

#endif
