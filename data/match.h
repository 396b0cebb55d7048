#ifndef HG_DATA_MATCH_H
#define HG_DATA_MATCH_H

#include "import/row_ids.h"

/* Which row of a file belongs to a row of a dataset, that is to a node, or to a graph of a batch.
 * By its ids, where the file has some. Without them the file has a row for each, or, where the
 * numbers of nodes have gaps, for each number. */
struct hg__match {
	const hg_dataset *d;
	int by_number;  /* rows of the file are the numbers of the nodes */
	int64_t *place; /* [rows of d] by ids: the rows of the file; or NULL */
};

/* Match the `rows` rows of the file `path` with those of the dataset, which stays. The caller frees
 * the match after a failure, too. */
HG_NODISCARD hg_status hg__match_rows(const hg_dataset *d, const char *path, int64_t rows,
                                      const struct hg__row_ids *ids, struct hg__match *match,
                                      char *message);
/* The row of the file that belongs to row i of the dataset. */
int64_t hg__match_row(const struct hg__match *match, int64_t i);
void hg__match_free(struct hg__match *match);

#endif
