/** @file
 * Symbol visibility, C linkage and result checking: the macros every public header needs. */
#ifndef HALFGRAPH_EXPORT_H
#define HALFGRAPH_EXPORT_H

/** @def HG_API
 * Marks a function that the shared library exports. */
#if defined(HG_BUILDING) && defined(__GNUC__)
#define HG_API __attribute__((visibility("default")))
#else
#define HG_API
#endif

/** @def HG_NODISCARD
 * Marks a function whose result must be used: the compiler warns where it is ignored. */
/** @def HG_PRINTF
 * Marks a function whose arguments the compiler checks as printf's. */
#if defined(__GNUC__) || defined(__clang__)
#define HG_NODISCARD __attribute__((warn_unused_result))
#define HG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define HG_NODISCARD
#define HG_PRINTF(fmt, args)
#endif

/** @def HG_EXTERN_C_BEGIN
 * Opens a block with C linkage in C++. */
/** @def HG_EXTERN_C_END
 * Closes the block. */
#ifdef __cplusplus
#define HG_EXTERN_C_BEGIN extern "C" {
#define HG_EXTERN_C_END }
#else
#define HG_EXTERN_C_BEGIN
#define HG_EXTERN_C_END
#endif

#endif
