#ifndef HG_DATA_IMPORT_COLUMN_H
#define HG_DATA_IMPORT_COLUMN_H

#include "import/lines.h"

/* A file with one integer per line. */
struct hg__column {
	int64_t *at, count, room;
};

/* A file with as many numbers in each line. */
struct hg__numbers {
	float *at;
	int64_t rows, width, count, room;
};

/* Add a line, which is not empty, to the column or the numbers at `to`. */
HG_NODISCARD hg_status hg__column_add(const struct lines *lines, const char *line, void *to);
HG_NODISCARD hg_status hg__numbers_add(const struct lines *lines, const char *line, void *to);

#endif
