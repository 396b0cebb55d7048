#include "doctor/typed.h"

#include <math.h>

#include "core/text.h"

/* Nine digits tell every float from its neighbours. */
const char *hg__typed(float x, char *text)
{
	for (int digits = 1; digits <= 9; digits++) {
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
