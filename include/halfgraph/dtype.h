/** @file
 * Element types and conversions between them. Pure functions, safe from any thread. */
#ifndef HALFGRAPH_DTYPE_H
#define HALFGRAPH_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/** Element types. i32, i64 and u8 hold labels, ids and masks. */
typedef enum hg_dtype {
	HG_F16 = 0,        /**< IEEE 754 binary16 */
	HG_F32 = 1,        /**< IEEE 754 binary32 */
	HG_I32 = 2,        /**< int32_t */
	HG_I64 = 3,        /**< int64_t */
	HG_U8 = 4,         /**< uint8_t */
	HG_DTYPE_COUNT = 5 /**< number of the above; also "no type" */
} hg_dtype;

/** The bits of one binary16 number. It has a name of its own so that a half is never mistaken for
 * an integer. */
typedef uint16_t hg_half;

/** What a type can hold. For an integer type the doubles but max are 0. */
typedef struct hg_dtype_facts {
	const char *name;     /**< "f16" */
	size_t size;          /**< bytes of an element */
	int is_float;         /**< 1: f16 or f32 */
	double u;             /**< unit roundoff 2^-p: 2^-11 for f16, 2^-24 for f32 */
	double max;           /**< largest (finite) number: 65504 for f16 */
	double overflow;      /**< smallest magnitude that rounds to infinity: 65520 for f16 */
	double min_normal;    /**< smallest positive normal number: 2^-14 for f16 */
	double min_subnormal; /**< smallest positive number: 2^-24 for f16 */
} hg_dtype_facts;

/** The facts about a type.
 * @param dtype  a type.
 * @return the facts, constant; NULL if dtype is not a type. */
HG_API const hg_dtype_facts *hg_dtype_get(hg_dtype dtype);

/** The name of a type.
 * @param dtype  a type.
 * @return "f16", "f32", "i32", "i64" or "u8"; "unknown" for anything else. */
HG_API const char *hg_dtype_name(hg_dtype dtype);

/** The bytes of one element.
 * @param dtype  a type.
 * @return 2, 4, 4, 8 or 1; 0 for anything else. */
HG_API size_t hg_dtype_size(hg_dtype dtype);

/** Widens a half. Exact; a NaN keeps its sign and payload and becomes quiet.
 * @param h  the bits of a half.
 * @return the same number. */
HG_API float hg_half_to_float(hg_half h);

/** Narrows a float to a half with one rounding, to nearest, ties to even. Subnormals are kept,
 * magnitudes from 65520 become infinity, and a NaN keeps its sign and leading payload bits and
 * becomes quiet: the bits that F16C and GPUs give.
 *
 * Error     2^-11 |x| + 2^-25 where |x| < 65520.
 * @param x  a number.
 * @return the bits of the half. */
HG_API hg_half hg_half_from_float(float x);

/** Narrows a double to a half with one rounding (not through float), otherwise as
 * hg_half_from_float.
 *
 * Error     2^-11 |x| + 2^-25 where |x| < 65520.
 * @param x  a number.
 * @return the bits of the half. */
HG_API hg_half hg_half_from_double(double x);

HG_EXTERN_C_END
#endif
