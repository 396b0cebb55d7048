#ifndef HG_DATA_IMPORT_DISTINCT_H
#define HG_DATA_IMPORT_DISTINCT_H

#include "internal.h"

/* The distinct numbers of an array, ascending: labels of any values become 0, 1, 2, ... */
struct hg__distinct {
	int64_t *at, count; /* at: malloc'd, of the caller */
};

HG_NODISCARD hg_status hg__distinct_find(const int64_t *values, int64_t count,
                                         struct hg__distinct *distinct, char *message);
/* The position of a value that is among the distinct ones. */
int32_t hg__distinct_index(const struct hg__distinct *distinct, int64_t value);

/* d->label [count] := the positions of the values, and d->classes := how many there are. */
HG_NODISCARD hg_status hg__distinct_labels(const int64_t *values, int64_t count, hg_dataset *d,
                                           char *message);
/* Name the classes of hg__distinct_labels by the labels, "-1", "1", unless those are the numbers of
 * the classes. */
HG_NODISCARD hg_status hg__distinct_names(const int64_t *values, int64_t count, hg_dataset *d,
                                          char *message);
/* The features of the nodes: their attributes [nodes, width], followed by one column for each
 * distinct label, ascending, that is 1 where the node has the label. Without attributes (NULL) they
 * are stored sparse; without labels, too, there are none. */
HG_NODISCARD hg_status hg__distinct_features(const int64_t *labels, const float *attributes,
                                             int64_t width, hg_dataset *d, char *message);

#endif
