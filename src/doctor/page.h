#ifndef HG_DOCTOR_PAGE_H
#define HG_DOCTOR_PAGE_H

#include "core/context.h"

HG_EXTERN_C_BEGIN

/* Host memory of one report: many small pieces that go together. NULL: none. */
struct hg__page;
/* Zeroed. */
HG_NODISCARD hg_status hg__page_take(hg_context *ctx, struct hg__page **pages, size_t count,
                                     size_t size, void **memory);
HG_NODISCARD hg_status hg__page_text(hg_context *ctx, struct hg__page **pages, const char **text,
                                     const char *format, ...) HG_PRINTF(4, 5);
void hg__page_free(hg_context *ctx, struct hg__page **pages);

HG_EXTERN_C_END
#endif
