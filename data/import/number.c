#include "import/number.h"

#include <stdlib.h>

#include "core/c_locale.h"

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *at)
{
	while (is_digit(*at))
		at++;
	return at;
}

/* The end of the number that begins here; NULL if none does. */
static const char *number_end(const char *text)
{
	const char *at = text + (*text == '-' || *text == '+'), *whole = at;
	at = skip_digits(at);
	int digits = at > whole;
	if (*at == '.') {
		const char *fraction = at + 1;
		at = skip_digits(fraction);
		digits |= at > fraction;
	}
	if (!digits)
		return NULL;
	if (*at != 'e' && *at != 'E')
		return at;
	const char *exponent = at + 1 + (at[1] == '-' || at[1] == '+');
	return is_digit(*exponent) ? skip_digits(exponent) : at;
}

/* Read "1.5" as 15 / 10. Integers of up to 15 digits and powers of ten up to 10^15 are exact
 * doubles, so the single rounding of the division gives the nearest double. Returns 0 where there
 * are more digits or an exponent. */
static int read_simple(const char *text, const char *end, double *value)
{
	static const double ten[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                             1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	const char *at = text + (*text == '-' || *text == '+');
	long long whole = 0;
	int digits = 0, places = 0, point = 0;
	for (; at < end && digits <= 15; at++) {
		if (*at == '.') {
			point = 1;
			continue;
		}
		if (!is_digit(*at))
			return 0;
		whole = 10 * whole + (*at - '0');
		digits++;
		places += point;
	}
	if (digits > 15)
		return 0;
	*value = (double)whole / ten[places];
	*value = *text == '-' ? -*value : *value;
	return 1;
}

const char *hg__number_read(const char *text, double *value)
{
	const char *end = number_end(text);
	if (!end || read_simple(text, end, value))
		return end;
	struct hg__c_locale c = hg__c_locale_begin();
	*value = strtod(text, NULL);
	hg__c_locale_end(&c);
	return end;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int hg__same_word(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}
