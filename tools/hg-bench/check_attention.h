#ifndef HG_BENCH_CHECK_ATTENTION_H
#define HG_BENCH_CHECK_ATTENTION_H

#include "check.h"
#include "kernels/kernels.h"

/* Check Y, the sums of the softmax and the terms `plus` of a forward pass. */
hg_status check_attention(struct bench *b, const struct hg__attention_args *a, struct check *check);

/* Check the gradients of a backward pass, from the results of the forward pass as they are stored.
 * dc is a sum over all edges; it is checked where that takes a second or so (DC_MOST). */
#define DC_MOST ((int64_t)1 << 27) /* edges times columns */
hg_status check_attention_back(struct bench *b, const struct hg__attention_back_args *a,
                               struct check *check);

#endif
