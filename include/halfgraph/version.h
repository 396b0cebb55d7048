#ifndef HALFGRAPH_VERSION_H
#define HALFGRAPH_VERSION_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* The version of these headers; CMakeLists.txt reads it from here. */
#define HG_VERSION_MAJOR 0
#define HG_VERSION_MINOR 1
#define HG_VERSION_PATCH 0
#define HG_VERSION (HG_VERSION_MAJOR * 10000 + HG_VERSION_MINOR * 100 + HG_VERSION_PATCH)

/* The version of the library that is running, as HG_VERSION and as text. */
HG_API int hg_version(void);
HG_API const char *hg_version_string(void);

HG_EXTERN_C_END
#endif
