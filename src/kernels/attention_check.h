/* Whether a call of the attention kernels is one that their contracts (attention.h) describe. Both
 * backends check every call here before they do anything else, so a call that one of them takes is
 * not refused by the other.
 *
 * HG_OK, or a status with a message. HG_ERR_UNSUPPORTED: a score, a number of heads or a type that
 * no kernel has. HG_ERR_INTERNAL: shapes that contradict each other, an operand without data, or a
 * constant outside its range, which the ops do not let happen. A matrix without rows or without
 * columns has no data, and counts as present where its shape fits. */
#ifndef HG_KERNELS_ATTENTION_CHECK_H
#define HG_KERNELS_ATTENTION_CHECK_H

#include "core/context.h"
#include "kernels/kernels.h"

HG_EXTERN_C_BEGIN

HG_NODISCARD hg_status hg__attention_check(hg_context *ctx, const struct hg__attention_args *a);
HG_NODISCARD hg_status hg__attention_back_check(hg_context *ctx,
                                                const struct hg__attention_back_args *a);
/* The gradient of the epilogue of such a call (`dended`), as a call of epilogue_back. */
struct hg__epilogue_back_args hg__attention_end_of(const struct hg__attention_back_args *a);
HG_NODISCARD hg_status hg__attention_weights_check(hg_context *ctx,
                                                   const struct hg__attention_weights_args *a);

HG_EXTERN_C_END
#endif
