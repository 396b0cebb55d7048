#ifndef HG_CORE_VERSIONED_H
#define HG_CORE_VERSIONED_H

#include <stddef.h>
#include <string.h>

/* Public structs begin with their size, so that programs and libraries of different versions
 * understand each other. `ours` holds the defaults before. */

/* Take the caller's struct. An older, shorter one leaves the newer fields at their defaults; a
 * newer, longer one is accepted if what is unknown here is zero. Returns 0 if it cannot be
 * understood. */
static inline int hg__struct_read(void *ours, size_t ours_size, const void *theirs)
{
	size_t size;
	memcpy(&size, theirs, sizeof size);
	if (size < sizeof size)
		return 0;
	for (size_t i = ours_size; i < size; i++)
		if (((const unsigned char *)theirs)[i])
			return 0;
	memcpy(ours, theirs, size < ours_size ? size : ours_size);
	memcpy(ours, &ours_size, sizeof ours_size);
	return 1;
}

/* Fill the caller's struct, as far as it goes; its size stays. Returns 0 if it does not say its
 * size. */
static inline int hg__struct_write(void *theirs, const void *ours, size_t ours_size)
{
	size_t size;
	memcpy(&size, theirs, sizeof size);
	if (size < sizeof size)
		return 0;
	const size_t common = size < ours_size ? size : ours_size;
	memcpy((char *)theirs + sizeof size, (const char *)ours + sizeof size, common - sizeof size);
	return 1;
}

#endif
