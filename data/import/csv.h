#ifndef HG_DATA_IMPORT_CSV_H
#define HG_DATA_IMPORT_CSV_H

#include "import/lines.h"

/* The most columns of a table that is read by its header. */
#define HG__CSV_COLUMNS 64

/* The fields of one line of a comma-separated file. A field may be quoted ("a, b"), with quotes in
 * it doubled; a quoted field ends on its line. */
struct hg__csv {
	char *field[HG__CSV_COLUMNS];
	int count;
	char separator; /* between fields; 0: a comma */
};

/* The callbacks of hg__csv_read: the header, whose fields stay until the end, and each row, with as
 * many fields. */
struct hg__csv_reader {
	hg_status (*header)(const struct lines *lines, const struct hg__csv *header, void *user);
	hg_status (*row)(const struct lines *lines, const struct hg__csv *row, void *user);
	void *user;
	char separator;
};
/* Read a file to its end. Empty lines are no rows. */
HG_NODISCARD hg_status hg__csv_read(struct lines *lines, const struct hg__csv_reader *reader);

/* The number of the column with this name; -1: there is none. */
int hg__csv_column(const struct hg__csv *header, const char *name);

#endif
