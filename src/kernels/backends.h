#ifndef HG_KERNELS_BACKENDS_H
#define HG_KERNELS_BACKENDS_H

#include "core/backend.h"

HG_EXTERN_C_BEGIN

/* The backend of a kind (AUTO: the first that has a device); NULL if this build has none. */
const struct hg__backend *hg__backend_find(hg_device kind);

HG_EXTERN_C_END
#endif
