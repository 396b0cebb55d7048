#include "mutate.h"

#include <string.h>

#include "support.h"

/* Numbers that are difficult as lengths and indices. */
static const uint64_t edges[] = {0,      1,          0x7F,       0x80,       0xFF,      0x7FFF,
                                 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, INT64_MAX, UINT64_MAX};

void mutate_once(uint8_t *bytes, size_t *count)
{
	const size_t at = (size_t)test_below((int64_t)*count);
	const uint64_t value = edges[test_below((int64_t)(sizeof edges / sizeof edges[0]))];
	const size_t width = (size_t)1 << test_below(4);
	switch (test_below(6)) {
	case 0:
		bytes[at] = (uint8_t)(bytes[at] ^ (1u << test_below(8)));
		break;
	case 1:
		bytes[at] = (uint8_t)test_u64();
		break;
	case 2: /* a number, little-endian */
		for (size_t k = 0; k < width && at + k < *count; k++)
			bytes[at + k] = (uint8_t)(value >> 8 * k);
		break;
	case 3: /* copies a piece of the file over another */
		memmove(bytes + at, bytes + test_below((int64_t)(*count - (*count - at) / 2)),
		        (*count - at) / 2 < 64 ? (*count - at) / 2 : 64);
		break;
	case 4: /* removes a piece */
		memmove(bytes + at, bytes + at + (*count - at) / 4, *count - at - (*count - at) / 4);
		*count -= (*count - at) / 4;
		break;
	default:
		*count = at + 1;
	}
}
