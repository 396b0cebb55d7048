#ifndef HG_DATA_IMPORT_ARCHIVE_H
#define HG_DATA_IMPORT_ARCHIVE_H

#include <zip.h>

#include "mark.h"

/* Open a zip archive for reading; *mark receives what it was before. */
HG_NODISCARD hg_status hg__zip_open(const char *path, zip_t **zip, struct hg__mark *mark,
                                    char *message);
/* Compare the directory entry of a member with what can be stored in an archive of `bytes` bytes. A
 * message begins with `where`. */
HG_NODISCARD hg_status hg__zip_check(const zip_stat_t *info, int64_t bytes, const char *where,
                                     char *message);

#endif
