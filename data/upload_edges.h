#ifndef HG_DATA_UPLOAD_EDGES_H
#define HG_DATA_UPLOAD_EDGES_H

#include "internal.h"

/* What upload.c and upload_edges.c share.
 *
 * upload.c: creates a tensor of the type and in the memory that config asks for. */
HG_NODISCARD hg_status hg__upload_tensor(hg_context *ctx, const hg_upload_config *config,
                                         int64_t rows, int64_t cols, hg_tensor **tensor);
/* upload_edges.c: makes the tensor of what the edges of the uploaded graph have, as config asks
 * for; the dataset has it. The caller frees it after a failure, too. */
HG_NODISCARD hg_status hg__upload_edges(const hg_dataset *d, hg_context *ctx,
                                        const hg_upload_config *config, hg_tensor **edge_x,
                                        char *message);

#endif
