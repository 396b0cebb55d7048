#ifndef HG_DATA_IMPORT_ELEMENT_H
#define HG_DATA_IMPORT_ELEMENT_H

#include <stdint.h>

/* How numpy stores one number. */
struct hg__element {
	char kind; /* one of i, u, f, b */
	int size;  /* bytes: 1, 2, 4, 8 */
	int swap;  /* the file has the other byte order */
};

/* Parse a dtype of one byte order, one kind and one size, "<f4". Returns 0 where it is none of the
 * above. */
int hg__element_parse(const char *dtype, struct hg__element *type);
/* Any integer as int64. Unsigned ones keep their bits, so values from 2^63 on become negative. */
int64_t hg__element_integer(struct hg__element type, const unsigned char *at);
/* Any number as double. */
double hg__element_real(struct hg__element type, const unsigned char *at);

#endif
