#ifndef HG_DATA_H5_BINSPARSE_H
#define HG_DATA_H5_BINSPARSE_H

#include "graph/coo.h"
#include "h5/h5.h"

/* One binsparse 0.1 CSR matrix is one HDF5 group (FORMAT.md); `where` is its path, such as
 * "/graph". The reader checks pointers and indices: rows and columns are exactly as many as the
 * descriptor says, at most INT32_MAX of each. Values that are all 1 are returned as NULL. */
HG_NODISCARD hg_status hg__binsparse_read(const struct h5 *h5, hid_t parent, const char *name,
                                          const char *where, struct hg__sparse *m);
/* row_meaning and col_meaning say what rows and columns are. They are stored beside the descriptor,
 * under the user key "halfgraph". */
HG_NODISCARD hg_status hg__binsparse_write(const struct h5 *h5, hid_t parent, const char *name,
                                           const struct hg__sparse *m, const char *row_meaning,
                                           const char *col_meaning);

#endif
