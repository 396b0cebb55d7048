/* The shortest decimal text of a float: as its author typed it, for settings that are printed. */
#include "core/typed.h"

#include <math.h>

#include "core/text.h"

/* Digits before the decimal point. From these on the search for the shortest text starts, since
 * "%.*g" with fewer would print an exponent. From 1e9 on an exponent is what a person would type,
 * too. */
static int whole_digits(float x)
{
	const double size = fabs((double)x);
	return size >= 1.0 && size < 1e9 ? 1 + (int)floor(log10(size)) : 1;
}

/* Nine digits distinguish every float from its neighbours. */
const char *hg__typed(float x, char *text)
{
	for (int digits = whole_digits(x); digits <= 9; digits++) {
		(void)hg__print(text, HG__TYPED, "%.*g", digits, (double)x);
		if (!isfinite(x) || (float)hg__number(text) == x)
			break;
	}
	return text;
}

double hg__typed_value(float x)
{
	char text[HG__TYPED];
	return hg__number(hg__typed(x, text));
}
