/* How kernels refuse a call. A combination that a backend has no kernel for (of types,
 * accumulation, function or layout) is HG_ERR_UNSUPPORTED, and the message names the kernel, the
 * combination and what is supported. */
#ifndef HG_KERNELS_SUPPORT_H
#define HG_KERNELS_SUPPORT_H

#include "core/context.h"
#include "core/mat.h"

HG_EXTERN_C_BEGIN

/* The types of the operands that a kernel supports: each of them f16 or f32, or all of one type. */
enum hg__types { HG__FLOATS, HG__ONE_FLOAT };

/* Checks the operands of a call; absent ones do not count. If their types are not supported the
 * status is HG_ERR_UNSUPPORTED. Otherwise, unless they fit, their shapes contradict each other,
 * which ops do not let happen: HG_ERR_INTERNAL. */
HG_NODISCARD hg_status hg__check_operands(hg_context *ctx, int fit, const char *kernel,
                                          enum hg__types types,
                                          const struct hg__mat *const *operands, int count);

/* Whether a backend has number `number` of a table of `count` functions: HG_OK, or
 * HG_ERR_UNSUPPORTED with a message. what: "function", "loss". */
HG_NODISCARD hg_status hg__has_number(hg_context *ctx, const char *kernel, const char *what,
                                      int number, int count);

/* The same for the type of an operand that holds integers. what: "label". */
HG_NODISCARD hg_status hg__has_type(hg_context *ctx, const char *kernel, const char *what,
                                    hg_dtype type, hg_dtype supported);

/* Whether an aggregation of these types, with this accumulation and epilogue, is in the contract of
 * the kernel (kernels.h), which both backends fulfil: HG_OK, or HG_ERR_UNSUPPORTED with a
 * message. */
struct hg__spmm_args;
HG_NODISCARD hg_status hg__spmm_supported(hg_context *ctx, const struct hg__spmm_args *a);

/* The same for a sum that scatters. Its shapes are checked, too (HG_ERR_INTERNAL). */
struct hg__scatter_sum_args;
HG_NODISCARD hg_status hg__scatter_sum_supported(hg_context *ctx,
                                                 const struct hg__scatter_sum_args *a);

HG_EXTERN_C_END
#endif
