/* Conversion of host arrays between element types. */
#ifndef HG_CORE_CONVERT_H
#define HG_CORE_CONVERT_H

#include "halfgraph/dtype.h"

HG_EXTERN_C_BEGIN

/* Whether elements of one type can be stored as another: both are the same type, or both are float
 * types. */
int hg__convertible(hg_dtype to, hg_dtype from);
/* to[i] = from[i] for host arrays, rounded to nearest. The types must be convertible. */
void hg__convert(hg_dtype to, void *out, hg_dtype from, const void *in, int64_t count);
/* Index of the first finite element that would become infinite; -1 if there is none. */
int64_t hg__convert_overflow(hg_dtype to, hg_dtype from, const void *in, int64_t count);

HG_EXTERN_C_END
#endif
