#ifndef HG_TESTS_MUTATE_H
#define HG_TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Damages at least one byte, as the seed says: flips a bit, changes a byte or a number, copies a
 * piece over another, removes a piece, or cuts the end off. The file never grows. */
void mutate_once(uint8_t *bytes, size_t *count);

#endif
