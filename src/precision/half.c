/* The public conversions between f16 and f32 or f64. half.h has the arithmetic. */
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
