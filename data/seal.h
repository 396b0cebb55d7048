#ifndef HG_DATA_SEAL_H
#define HG_DATA_SEAL_H

#include "internal.h"

/* The checksum of a whole HDF5 file. It lies in the 512 bytes before the HDF5 data, which HDF5
 * calls a user block and leaves to applications. It is compared before libhdf5 reads a byte,
 * because damaged metadata can make libhdf5 crash or loop. The block is a pure function of the
 * bytes after it, so it is made anew and compared as a whole: no wrong bit in it goes unnoticed. */
#define HG__SEAL_BYTES 512

/* Hash the data after the block of an open file, and write the block. */
HG_NODISCARD hg_status hg__seal_write(int fd, const char *path, const hg_progress *progress,
                                      char *message);

/* HG_OK: the block matches, or there is none because the file begins with HDF5's signature, as
 * files of other programs do. HG_ERR_FORMAT: anything else. Messages call the file `shown`. */
HG_NODISCARD hg_status hg__seal_check(const char *path, const char *shown, char *message);

/* The offset of the HDF5 data: 0 or HG__SEAL_BYTES; HG_ERR_FORMAT where they begin at neither. */
HG_NODISCARD hg_status hg__seal_begin(int fd, const char *path, int64_t *begin, char *message);

#endif
