#ifndef HG_CORE_TYPED_H
#define HG_CORE_TYPED_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* A float as it was typed: the shortest decimal number that is read back as this float. */
enum { HG__TYPED = 32 };
/* Into text [HG__TYPED], which it returns. */
const char *hg__typed(float x, char *text);
/* That number: 0.1 where x holds 0.100000001. */
double hg__typed_value(float x);

HG_EXTERN_C_END
#endif
