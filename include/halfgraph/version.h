/** @file
 * The version of the headers and of the library. Safe from any thread. */
#ifndef HALFGRAPH_VERSION_H
#define HALFGRAPH_VERSION_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/** Major version of these headers; CMakeLists.txt reads it from here. */
#define HG_VERSION_MAJOR 0
/** Minor version of these headers. */
#define HG_VERSION_MINOR 1
/** Patch version of these headers. */
#define HG_VERSION_PATCH 0
/** The version of these headers as one number: 10000 major + 100 minor + patch. */
#define HG_VERSION (HG_VERSION_MAJOR * 10000 + HG_VERSION_MINOR * 100 + HG_VERSION_PATCH)

/** The version of the library that is running.
 * @return a number like HG_VERSION. */
HG_API int hg_version(void);

/** The version of the library that is running, as text.
 * @return "0.1.0", for example; constant. */
HG_API const char *hg_version_string(void);

HG_EXTERN_C_END
#endif
