#ifndef HG_TESTS_MUTATE_H
#define HG_TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* One seeded damage to at least one byte: a bit, a byte, a number, a piece over another, a piece
 * taken out, the end cut off. Never more bytes than there were. */
void mutate_once(uint8_t *bytes, size_t *count);

#endif
