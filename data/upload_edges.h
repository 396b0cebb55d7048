#ifndef HG_DATA_UPLOAD_EDGES_H
#define HG_DATA_UPLOAD_EDGES_H

#include "internal.h"

/* A tensor where config wants it, of the type of state (upload.c). */
HG_NODISCARD hg_status hg__upload_tensor(hg_context *ctx, const hg_upload_config *config,
                                         int64_t rows, int64_t cols, hg_tensor **tensor);
/* *edge_x := the tensor of what the edges of the uploaded graph have, as config asks for; the
 * dataset has it. The caller frees it after a failure, too. */
HG_NODISCARD hg_status hg__upload_edges(const hg_dataset *d, hg_context *ctx,
                                        const hg_upload_config *config, hg_tensor **edge_x,
                                        char *message);

#endif
