/* The element types: name, size, and the constants of floating-point formats that error bounds
 * use. */
#include "halfgraph/dtype.h"

/* A type with p bits of precision has unit roundoff u = 2^-p and largest number
 * max = (2 - 2^(1-p)) * 2^emax. Rounding gives infinity from max plus half a unit in its last
 * place. */
static const hg_dtype_facts table[HG_DTYPE_COUNT] = {
    [HG_F16] = {"f16", 2, 1, 0x1p-11, 65504.0, 65520.0, 0x1p-14, 0x1p-24},
    [HG_F32] = {"f32", 4, 1, 0x1p-24, 0x1.fffffep+127, 0x1.ffffffp+127, 0x1p-126, 0x1p-149},
    [HG_I32] = {"i32", 4, 0, 0, 2147483647.0, 0, 0, 0},
    [HG_I64] = {"i64", 8, 0, 0, 9223372036854775807.0, 0, 0, 0},
    [HG_U8] = {"u8", 1, 0, 0, 255.0, 0, 0, 0},
};

const hg_dtype_facts *hg_dtype_get(hg_dtype dtype)
{
	return (unsigned)dtype < HG_DTYPE_COUNT ? &table[dtype] : NULL;
}

const char *hg_dtype_name(hg_dtype dtype)
{
	const hg_dtype_facts *facts = hg_dtype_get(dtype);
	return facts ? facts->name : "unknown";
}

size_t hg_dtype_size(hg_dtype dtype)
{
	const hg_dtype_facts *facts = hg_dtype_get(dtype);
	return facts ? facts->size : 0;
}
