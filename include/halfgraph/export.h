#ifndef HALFGRAPH_EXPORT_H
#define HALFGRAPH_EXPORT_H

/* Symbol visibility, C linkage and result checking: the three macros every public header needs. */

#if defined(HG_BUILDING) && defined(__GNUC__)
#define HG_API __attribute__((visibility("default")))
#else
#define HG_API
#endif

#if defined(__GNUC__) || defined(__clang__)
#define HG_NODISCARD __attribute__((warn_unused_result))
#define HG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define HG_NODISCARD
#define HG_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
#define HG_EXTERN_C_BEGIN extern "C" {
#define HG_EXTERN_C_END }
#else
#define HG_EXTERN_C_BEGIN
#define HG_EXTERN_C_END
#endif

#endif
