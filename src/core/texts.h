#ifndef HG_CORE_TEXTS_H
#define HG_CORE_TEXTS_H

#include <stdint.h>
#include <string.h>

/* Several texts in one array of bytes, one after the other, each with its terminating 0. */

/* How many texts there are; -1: the last one has no terminating 0. */
static inline int64_t hg__texts_count(const char *texts, int64_t bytes)
{
	int64_t count = 0;
	if (bytes > 0 && (!texts || texts[bytes - 1] != 0))
		return -1;
	for (int64_t k = 0; k < bytes; k++)
		count += texts[k] == 0;
	return count;
}

/* Text number `index`; NULL: there are not so many. */
static inline const char *hg__texts_at(const char *texts, int64_t bytes, int64_t index)
{
	const char *at = texts, *end = texts ? texts + bytes : NULL;
	for (; at && at < end && index > 0; index--)
		at += strlen(at) + 1;
	return at && at < end && index == 0 ? at : NULL;
}

#endif
