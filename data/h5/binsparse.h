#ifndef HG_DATA_H5_BINSPARSE_H
#define HG_DATA_H5_BINSPARSE_H

#include "graph/coo.h"
#include "h5/h5.h"

/* One binsparse 0.1 CSR matrix = one HDF5 group (FORMAT.md). `where` is its path, such as "/graph".
 * Read: rows and columns are exactly what the descriptor says, at most INT32_MAX of each; pointers
 * and indices are checked; values that are all one come back as NULL. */
HG_NODISCARD hg_status hg__binsparse_read(const struct h5 *h5, hid_t parent, const char *name,
                                          const char *where, struct hg__sparse *m);
/* `meaning` goes beside the descriptor, under the user key "halfgraph": what rows and columns
 * are. */
HG_NODISCARD hg_status hg__binsparse_write(const struct h5 *h5, hid_t parent, const char *name,
                                           const struct hg__sparse *m, const char *row_meaning,
                                           const char *col_meaning);

#endif
