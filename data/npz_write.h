#ifndef HG_DATA_NPZ_WRITE_H
#define HG_DATA_NPZ_WRITE_H

#include "atomic.h"

/* An array of an .npz archive. `type` as numpy writes it, for a little-endian machine: "<i8". */
struct hg__npz_array {
	const char *name, *type;
	int64_t rows, cols; /* cols 0: one dimension */
	size_t size;        /* bytes of an element */
	const void *values;
};

/* Write an archive of arrays without compression and without times, so that equal arrays give equal
 * files. HG_ERR_RANGE: an array, or all of them, have 4 GiB or more, which needs zip64. */
HG_NODISCARD hg_status hg__npz_write(const struct hg__atomic *file,
                                     const struct hg__npz_array *arrays, int count);

#endif
