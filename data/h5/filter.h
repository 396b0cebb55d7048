#ifndef HG_DATA_H5_FILTER_H
#define HG_DATA_H5_FILTER_H

#include <stddef.h>

/* The filters that were applied to a chunk before it was stored, in the order of their
 * application. */
enum hg__filter_kind { HG__FILTER_SHUFFLE, HG__FILTER_DEFLATE, HG__FILTER_FLETCHER32 };
#define HG__FILTER_KINDS 3

struct hg__filter {
	enum hg__filter_kind kind;
	size_t width; /* shuffle only: bytes of an element */
};

/* Two buffers for undoing filters, which grow as needed. */
struct hg__unfilter {
	unsigned char *bytes[2];
	size_t room[2];
};

/* Undo `count` filters on `size` bytes; a filter whose bit is set in `skipped` was not applied. The
 * result must be exactly `expected` bytes. Returns NULL and sets *chunk, which points into *memory
 * (or at `stored`) until the next call; on failure returns the reason in a few words, for example
 * HG__UNFILTER_NO_MEMORY. */
const char *hg__unfilter(struct hg__unfilter *memory, const struct hg__filter *filters, int count,
                         unsigned skipped, const unsigned char *stored, size_t size,
                         size_t expected, const unsigned char **chunk);
#define HG__UNFILTER_NO_MEMORY "out of memory"
void hg__unfilter_free(struct hg__unfilter *memory);

#endif
