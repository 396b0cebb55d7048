#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* The length of the printable UTF-8 character that begins here. Returns 0 for control characters,
 * overlong forms, surrogates, and bytes that are not UTF-8. */
static size_t utf8_length(const unsigned char *at)
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

void tool_say(const char *tool, const char *format, ...)
{
	char sentence[8192]; /* a path of 4096 bytes, and more */
	va_list args;
	va_start(args, format);
	(void)vsnprintf(sentence, sizeof sentence, format, args);
	va_end(args);
	char *printable = tool_printable(sentence);
	fprintf(stderr, "%s: %s\n", tool, printable ? printable : "out of memory");
	free(printable);
}

char *tool_printable(const char *text)
{
	/* "\xHH" is the longest replacement */
	char *const printable = malloc(4 * strlen(text) + 1), *out = printable;
	if (!printable)
		return NULL;
	while (*text) {
		const size_t length = utf8_length((const unsigned char *)text);
		if (length > 0)
			memcpy(out, text, length);
		else
			snprintf(out, 5, "\\x%02x", (unsigned)(unsigned char)*text);
		out += length > 0 ? length : 4;
		text += length > 0 ? length : 1;
	}
	*out = 0;
	return printable;
}
