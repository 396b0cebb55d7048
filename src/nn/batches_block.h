#ifndef HG_NN_BATCHES_BLOCK_H
#define HG_NN_BATCHES_BLOCK_H

#include "nn/batches_padded.h"

HG_EXTERN_C_BEGIN

/* Where the arrays of a block begin, and its bytes. */
struct hg__layout {
	size_t at[HG__PADDED_ARRAYS], bytes;
};

struct hg__layout hg__padded_lay_out(const struct hg__padded *padded,
                                     const struct hg__shape_of_batch *shape);
size_t hg__padded_array_bytes(const struct hg__padded *padded,
                              const struct hg__shape_of_batch *shape, int array);
/* NULL: blocks do not have it. */
void *hg__padded_array(const struct hg__padded *padded, const struct hg__layout *layout,
                       void *block, int array);

HG_EXTERN_C_END
#endif
