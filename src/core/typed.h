/* A float as the shortest decimal number that reads back as the same float. */
#ifndef HG_CORE_TYPED_H
#define HG_CORE_TYPED_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Size of the text of a float, with its terminating 0. */
enum { HG__TYPED = 32 };
/* Writes the shortest decimal number that reads back as x into text [HG__TYPED], and returns
 * text. */
const char *hg__typed(float x, char *text);
/* The value of that decimal number, as a double: 0.1 where x holds 0.100000001. */
double hg__typed_value(float x);

HG_EXTERN_C_END
#endif
