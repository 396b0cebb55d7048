#include "precision/half.h"

float hg_half_to_float(hg_half h)
{
	return hg__half_to_float(h);
}

hg_half hg_half_from_float(float x)
{
	return hg__half_from_float(x);
}

hg_half hg_half_from_double(double x)
{
	return hg__half_from_double(x);
}
