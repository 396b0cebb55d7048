/* Reading and writing of public structs, which begin with their size so that programs and libraries
 * of different versions understand each other. */
#ifndef HG_CORE_VERSIONED_H
#define HG_CORE_VERSIONED_H

#include <stddef.h>
#include <string.h>

/* No struct of any version is larger: a larger size is a mistake, and reading that far would leave
 * the caller's memory. */
#define HG__STRUCT_MOST 4096u

/* Copies the caller's struct into `ours`, which holds the defaults. An older, shorter struct leaves
 * the newer members at their defaults. A newer, longer one is accepted if the members that are
 * unknown here are zero. Returns 0 if the struct cannot be understood. */
static inline int hg__struct_read(void *ours, size_t ours_size, const void *theirs)
{
	size_t size;
	memcpy(&size, theirs, sizeof size);
	if (size < sizeof size || size > HG__STRUCT_MOST)
		return 0;
	for (size_t i = ours_size; i < size; i++)
		if (((const unsigned char *)theirs)[i])
			return 0;
	memcpy(ours, theirs, size < ours_size ? size : ours_size);
	memcpy(ours, &ours_size, sizeof ours_size);
	return 1;
}

/* Copies `ours` into the caller's struct as far as that goes; its size stays. Returns 0 if the
 * struct does not state its size. */
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
