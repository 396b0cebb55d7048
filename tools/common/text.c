#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/printable.h"
#include "tool.h"

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
	const size_t size = hg__printable(NULL, 0, text) + 1;
	char *printable = malloc(size);
	if (printable)
		(void)hg__printable(printable, size, text);
	return printable;
}
