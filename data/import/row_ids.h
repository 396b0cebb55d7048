#ifndef HG_DATA_IMPORT_ROW_IDS_H
#define HG_DATA_IMPORT_ROW_IDS_H

#include "import/lines.h"

/* The first column of a text whose heading calls it id, node_id, graph_id or new_id: whom each row
 * belongs to. */
struct hg__row_ids {
	char heading[16]; /* "node_id"; "" where the text has no ids */
	int64_t count, room;
	int64_t *id, *line; /* [count] */
};

/* Is this the heading of a text with ids? Then every row begins with one. */
int hg__row_ids_begin(struct hg__row_ids *ids, const char *heading);
/* Read the id at *at and move *at to the values after it, of which there must be some. */
HG_NODISCARD hg_status hg__row_ids_add(struct hg__row_ids *ids, const struct lines *lines,
                                       const char *line, const char **at);
void hg__row_ids_free(struct hg__row_ids *ids);

#endif
