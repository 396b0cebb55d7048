/* Conversion of host arrays between f16 and f32, and the check for values that f16 cannot hold. */
#include "core/convert.h"

#include <math.h>
#include <string.h>

#include "precision/half.h"

static int is_float(hg_dtype dtype)
{
	const hg_dtype_facts *facts = hg_dtype_get(dtype);
	return facts && facts->is_float;
}

int hg__convertible(hg_dtype to, hg_dtype from)
{
	return hg_dtype_get(to) && (to == from || (is_float(to) && is_float(from)));
}

void hg__convert(hg_dtype to, void *out, hg_dtype from, const void *in, int64_t count)
{
	if (to == from) {
		memcpy(out, in, (size_t)count * hg_dtype_size(to));
	} else if (to == HG_F16) {
		hg_half *y = out;
		const float *x = in;
		for (int64_t i = 0; i < count; i++)
			y[i] = hg__half_from_float(x[i]);
	} else {
		float *y = out;
		const hg_half *x = in;
		for (int64_t i = 0; i < count; i++)
			y[i] = hg__half_to_float(x[i]);
	}
}

int64_t hg__convert_overflow(hg_dtype to, hg_dtype from, const void *in, int64_t count)
{
	if (to != HG_F16 || from != HG_F32)
		return -1;
	const float *x = in, limit = (float)hg_dtype_get(HG_F16)->overflow;
	for (int64_t i = 0; i < count; i++)
		if (isfinite(x[i]) && fabsf(x[i]) >= limit)
			return i;
	return -1;
}
