/* snprintf and strtod in the locale "C". */
#define _POSIX_C_SOURCE 200809L
#include "core/text.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/c_locale.h"
#include "core/printable.h"

int hg__vprint(char *text, size_t size, const char *format, va_list args)
{
	struct hg__c_locale c = hg__c_locale_begin();
	const int length = vsnprintf(text, size, format, args);
	hg__c_locale_end(&c);
	return length;
}

/* The longest message that is not cut, before names in it are escaped. */
#define LONGEST 2048

void hg__vprint_line(char *line, size_t size, const char *format, va_list args)
{
	char text[LONGEST];
	(void)hg__vprint(text, sizeof text, format, args);
	(void)hg__printable(line, size, text);
}

int hg__print(char *text, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int length = hg__vprint(text, size, format, args);
	va_end(args);
	return length;
}

double hg__number(const char *text)
{
	struct hg__c_locale c = hg__c_locale_begin();
	const double value = strtod(text, NULL);
	hg__c_locale_end(&c);
	return value;
}
