/* The table of backends that this build contains. */
#ifndef HG_KERNELS_BACKENDS_H
#define HG_KERNELS_BACKENDS_H

#include "core/backend.h"

HG_EXTERN_C_BEGIN

/* The backend of a kind of device; AUTO returns the first whose device responds. NULL if there is
 * none in this build. */
const struct hg__backend *hg__backend_find(hg_device kind);

HG_EXTERN_C_END
#endif
