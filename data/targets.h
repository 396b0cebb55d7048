#ifndef HG_DATA_TARGETS_H
#define HG_DATA_TARGETS_H

#include "internal.h"

/* The name of a column of the targets and its length; NULL where they have no names. */
const char *hg__target_name(const hg_dataset *d, int64_t column, size_t *length);
/* Is there a name for every column? */
HG_NODISCARD hg_status hg__target_names_check(const hg_dataset *d, const char *origin,
                                              char *message);

#endif
