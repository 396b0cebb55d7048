/* Text of unknown origin, such as a name in a file, made safe to print on a terminal as one line.
 * This is a header alone, because three libraries that share no symbols use it. */
#ifndef HG_CORE_PRINTABLE_H
#define HG_CORE_PRINTABLE_H

#include <stddef.h>
#include <string.h>

/* The length of the printable UTF-8 character that begins here. Returns 0 for control characters,
 * overlong forms, surrogates, and bytes that are not UTF-8. */
static inline size_t hg__utf8_length(const unsigned char *at)
{
	/* of 2 bytes: 0x80 to 0x9f are control characters */
	static const unsigned long least[] = {0, 0, 0xa0, 0x800, 0x10000};
	if (*at < 0x80)
		return *at >= 0x20 && *at != 0x7f;
	if (*at < 0xc2 || *at > 0xf4)
		return 0;
	const size_t length = *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
	unsigned long code = *at & (0x7fu >> length);
	for (size_t k = 1; k < length; k++) {
		if ((at[k] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[k] & 0x3f);
	}
	return code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? length
	                                                                                     : 0;
}

/* Copies the text; control characters and bytes that are not UTF-8 become "\xHH". Like snprintf it
 * writes at most `size` bytes, with a final 0 if size is not 0, and returns the length of the whole
 * result. A result that is cut ends with a whole character. */
static inline size_t hg__printable(char *out, size_t size, const char *text)
{
	static const char digit[] = "0123456789abcdef";
	size_t whole = 0, end = 0;
	while (*text) {
		const unsigned char byte = (unsigned char)*text;
		const size_t length = hg__utf8_length((const unsigned char *)text);
		const char escaped[4] = {'\\', 'x', digit[byte >> 4], digit[byte & 15]};
		const size_t more = length ? length : sizeof escaped;
		if (whole == end && end + more < size) {
			memcpy(out + end, length ? text : escaped, more);
			end += more;
		}
		whole += more;
		text += length ? length : 1;
	}
	if (size)
		out[end] = 0;
	return whole;
}

#endif
