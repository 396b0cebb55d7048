#ifndef HG_DATA_SEAL_H
#define HG_DATA_SEAL_H

#include "internal.h"

/* The checksum of a whole HDF5 file, in the 512 bytes before the HDF5 data, which HDF5 calls a user
 * block and leaves to us. It is compared before libhdf5 sees a byte, because damaged metadata can
 * make libhdf5 crash or loop. The block is a pure function of the bytes behind it, so it is made
 * again and compared as a whole: no bit of it can be wrong and go unseen. */
#define HG__SEAL_BYTES 512

/* Sum up what stands behind the block of an open file, and write the block. */
HG_NODISCARD hg_status hg__seal_write(int fd, const char *path, const hg_progress *progress,
                                      char *message);

/* HG_OK: the block fits, or there is none because HDF5's signature is the first thing in the file,
 * as in files of others. HG_ERR_FORMAT: anything else; messages call the file `shown`. */
HG_NODISCARD hg_status hg__seal_check(const char *path, const char *shown, char *message);

/* Where the HDF5 data begin: 0 or HG__SEAL_BYTES; HG_ERR_FORMAT where they begin at neither. */
HG_NODISCARD hg_status hg__seal_begin(int fd, const char *path, int64_t *begin, char *message);

#endif
