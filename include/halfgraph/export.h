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

/** @def HG__INIT
 * Initialises a struct by the names of its members, which C++17 cannot do by itself: its size is
 * set, the members of the list get their values, and all others are zero.
 * @param type     the struct, whose first member is `size`
 * @param members  HG__SET(member, value), one after the other; a member of a member is
 *                 HG__SET(a.b, value) */
/** @def HG__SET
 * A member of HG__INIT and its value. */
#ifdef __cplusplus
#define HG__INIT(type, members)     \
	([]() -> type {                 \
		type hg__it = type();       \
		hg__it.size = sizeof(type); \
		members return hg__it;      \
	}())
#define HG__SET(member, value) hg__it.member = value;
#else
#define HG__INIT(type, members)      \
	{                                \
		.size = sizeof(type) members \
	}
#define HG__SET(member, value) , .member = value
#endif
/** Initialises a struct whose members are all zero, but for its size.
 * @param type  the struct, whose first member is `size` */
#define HG__INIT_ZERO(type) HG__INIT(type, )

#endif
