#ifndef HG_DATA_H5_FILTER_H
#define HG_DATA_H5_FILTER_H

#include <stddef.h>

/* What was done to a chunk before it was stored, in the order in which it was done. */
enum hg__filter_kind { HG__FILTER_SHUFFLE, HG__FILTER_DEFLATE, HG__FILTER_FLETCHER32 };
#define HG__FILTER_KINDS 3

struct hg__filter {
	enum hg__filter_kind kind;
	size_t width; /* of shuffle: bytes of an element */
};

/* The way back, in memory of its own that grows as it is needed. */
struct hg__unfilter {
	unsigned char *bytes[2];
	size_t room[2];
};

/* Undo `count` filters on `size` bytes; those whose bit is set in `skipped` were not applied. What
 * comes out must be exactly `expected` bytes. NULL: *chunk points to them, into *memory, until the
 * next call; else why not, in a few words ("out of memory" too). */
const char *hg__unfilter(struct hg__unfilter *memory, const struct hg__filter *filters, int count,
                         unsigned skipped, const unsigned char *stored, size_t size,
                         size_t expected, const unsigned char **chunk);
#define HG__UNFILTER_NO_MEMORY "out of memory"
void hg__unfilter_free(struct hg__unfilter *memory);

#endif
