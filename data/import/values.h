#ifndef HG_DATA_IMPORT_VALUES_H
#define HG_DATA_IMPORT_VALUES_H

#include "import/column.h"

/* Add a line of numbers, nan or nothing, separated by commas, to the hg__numbers at `to`: NaN is
 * missing. */
HG_NODISCARD hg_status hg__values_add(const struct lines *lines, const char *line, void *to);
/* Make labels or targets of numbers, one row for each node, or each graph of a batch. A single
 * column of whole numbers holds classes, and negative ones are unlabelled; other numbers, or
 * several columns, are real targets, which *v then loses to the dataset. `classes` is how many
 * classes the source declares, or 0; `hint` tells how it can (hg__data_count_classes). Messages
 * begin with `origin`. */
HG_NODISCARD hg_status hg__values_take(struct hg__numbers *v, int64_t classes, const char *origin,
                                       const char *hint, hg_dataset *d, char *message);

#endif
