#ifndef HG_DOCTOR_REPORT_MEMORY_H
#define HG_DOCTOR_REPORT_MEMORY_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* The host memory of one report: many small pieces that are freed together. NULL is an empty
 * one. */
struct hg__report_memory;

/* `count` elements of `size` bytes, zeroed. */
HG_NODISCARD hg_status hg__report_alloc(hg_context *ctx, struct hg__report_memory **memory,
                                        size_t count, size_t size, void **piece);
/* A formatted text, cut at 2047 characters. */
HG_NODISCARD hg_status hg__report_text(hg_context *ctx, struct hg__report_memory **memory,
                                       const char **text, const char *format, ...) HG_PRINTF(4, 5);
void hg__report_memory_free(hg_context *ctx, struct hg__report_memory **memory);

HG_EXTERN_C_END
#endif
