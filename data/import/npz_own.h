#ifndef HG_DATA_IMPORT_NPZ_OWN_H
#define HG_DATA_IMPORT_NPZ_OWN_H

#include "import/npy.h"

/* Arrays that gnn-benchmark's archives do not have. They are read only if the archive says, by its
 * member `halfgraph`, that its keys mean what FORMAT.md says: other programs may use the same keys
 * for something else. */

/* Is `halfgraph` there, with a version that this reader knows? */
HG_NODISCARD hg_status hg__npz_is_own(const struct npz *npz, int *own);
/* Does one of these functions read the member of this name? */
int hg__npz_is_own_member(const char *name);
/* Read the graphs of a batch, which decides what labels belong to. The graph is read already. */
HG_NODISCARD hg_status hg__npz_read_batch(const struct npz *npz, hg_dataset *d);
/* Read everything else: the name, original ids, the order, targets. */
HG_NODISCARD hg_status hg__npz_read_own(const struct npz *npz, hg_dataset *d);

#endif
