#ifndef HALFGRAPH_DTYPE_H
#define HALFGRAPH_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Element types. f16 is IEEE 754 binary16, f32 binary32; i32, i64 and u8 hold labels, ids and
 * masks. */
typedef enum hg_dtype {
	HG_F16 = 0,
	HG_F32 = 1,
	HG_I32 = 2,
	HG_I64 = 3,
	HG_U8 = 4,
	HG_DTYPE_COUNT = 5
} hg_dtype;

/* The bits of one binary16 number; its own name so that a half is never mistaken for an integer. */
typedef uint16_t hg_half;

/* What a floating type can hold. `u` is the unit roundoff 2^-p, `max` the largest finite number,
 * `overflow` the smallest
 * magnitude that rounds to infinity (65520 for f16), `min_normal` and `min_subnormal` the smallest
 * positive numbers. */
typedef struct hg_dtype_facts {
	const char *name;
	size_t size;
	int is_float;
	double u, max, overflow, min_normal, min_subnormal;
} hg_dtype_facts;

/* Facts of a type; NULL if `dtype` is not one. */
HG_API const hg_dtype_facts *hg_dtype_get(hg_dtype dtype);
HG_API const char *hg_dtype_name(hg_dtype dtype);
HG_API size_t hg_dtype_size(hg_dtype dtype);

/* Conversions, round to nearest, ties to even, one rounding (from double too). Subnormals are kept,
 * magnitudes from 65520 become infinity, a NaN keeps its sign and leading payload bits and becomes
 * quiet: the bits F16C and the GPU give. */
HG_API float hg_half_to_float(hg_half h);
HG_API hg_half hg_half_from_float(float x);
HG_API hg_half hg_half_from_double(double x);

HG_EXTERN_C_END
#endif
