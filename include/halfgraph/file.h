/** @file
 * Files: written complete or not at all, and given a checksum.
 *
 * Every function of libhalfgraph_data that returns a status takes `message`, a buffer of
 * HG_DATA_MESSAGE bytes or NULL. On failure it receives one line that names file, place, found and
 * expected; the pointer for the result is NULL, what was there is unchanged, and no file is left
 * behind.
 *
 * Threads   One thread at a time, unless the HDF5 library is built thread-safe. */
#ifndef HALFGRAPH_FILE_H
#define HALFGRAPH_FILE_H

#include <stddef.h>

#include "halfgraph/export.h"
#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/** Bytes of a message buffer. */
#define HG_DATA_MESSAGE 512

/** Writes a file that appears complete or not at all, as datasets and checkpoints do: under a
 * temporary name beside its own (NAME.HASH-K.tmp), synchronised, renamed, and its folder
 * synchronised. The mode of a file that is replaced stays. A file that is read-only, or not regular
 * (a device, a link), is never replaced. What a killed writer of the same file left is removed.
 * @param path     the file.
 * @param bytes    its content [size]; may be NULL if size is 0.
 * @param size     number of bytes.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_IO (it cannot be written; what was there
 *         stays); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_file_write(const char *path, const void *bytes, size_t size,
                                            char *message);

/** Gives a dataset or checkpoint that another program has made, or changed on purpose, a checksum
 * that fits it (data/FORMAT.md), after checking everything that reading checks. A file that once
 * had a checksum is refused while it does not fit.
 * @param path     the file, replaced atomically.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (path is NULL); HG_ERR_IO (it cannot be read or written); HG_ERR_FORMAT
 *         (its content is not sound; it stays as it was); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_file_seal(const char *path, char *message);

/** Checks that a file could be written now, by creating and removing a temporary file beside it.
 * Call it before long work, so that a path that cannot be written is not found only afterwards.
 * @param path     the file.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (path is NULL); HG_ERR_IO (it could not); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_file_try(const char *path, char *message);

HG_EXTERN_C_END
#endif
