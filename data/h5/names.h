#ifndef HG_DATA_H5_NAMES_H
#define HG_DATA_H5_NAMES_H

#include "h5/h5.h"

/* Names of the members of a group, or of the attributes of an object, sorted by strcmp. */
struct hg__h5_names {
	char **name;
	int64_t count;
};

/* HG_ERR_FORMAT: the names cannot be listed, or one is longer than size - 1. The caller frees
 * `names` after a failure, too. */
HG_NODISCARD hg_status hg__h5_members(const struct h5 *h5, hid_t group, const char *where,
                                      size_t size, struct hg__h5_names *names);
HG_NODISCARD hg_status hg__h5_attributes(const struct h5 *h5, hid_t object, const char *where,
                                         size_t size, struct hg__h5_names *names);
void hg__h5_names_free(struct hg__h5_names *names);

#endif
