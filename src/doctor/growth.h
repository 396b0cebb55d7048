#ifndef HG_DOCTOR_GROWTH_H
#define HG_DOCTOR_GROWTH_H

#include "autograd/param.h"
#include "core/buffer.h"

HG_EXTERN_C_BEGIN

/* How large every parameter was at some step. */
struct hg__growth {
	struct hg__buffer size; /* double [count] */
	int64_t count, step;
};
HG_NODISCARD hg_status hg__growth_begin(hg_params *params, struct hg__growth *growth);
void hg__growth_free(hg_context *ctx, struct hg__growth *growth);

HG_EXTERN_C_END
#endif
