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

/* batches_fill.c: the features of a node of the dataset as a row of x_dtype, padded with zeros. */
void hg__padded_row(const struct hg__padded *padded, int64_t node, char *to);
/* batches_shared.c: looks for equal rows in the features, and keeps a table of them on the device
 * where there are few. */
HG_NODISCARD hg_status hg__padded_share(struct hg__padded *padded);

HG_EXTERN_C_END
#endif
