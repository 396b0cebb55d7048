#ifndef HG_DATA_IMPORT_TABLE_H
#define HG_DATA_IMPORT_TABLE_H

#include "import/row_ids.h"

/* Numbers in rows, of an .npy file or a text: one row per line, separated by commas, blanks or
 * tabs; the first line of a text may be a header of words, which tells whether the first column has
 * ids. Either may be compressed with gzip. */
struct hg__table {
	int64_t rows, width;
	float *number;    /* [rows, width], or NULL */
	int64_t *integer; /* [rows] instead, where integers were asked for and one column has them */
	struct hg__row_ids ids; /* of a text, [rows]; no column of the numbers */
};

/* Read a table. With `integers`, a single column of whole numbers is kept exactly. */
HG_NODISCARD hg_status hg__table_read(const char *path, int integers, const hg_progress *progress,
                                      struct hg__table *table, char *message);
/* *yes := does the file, inflated, begin like an .npy array? */
HG_NODISCARD hg_status hg__table_is_npy(const char *path, int *yes, char *message);
void hg__table_free(struct hg__table *table);

#endif
