#ifndef HG_DATA_IMPORT_EDGE_ROWS_H
#define HG_DATA_IMPORT_EDGE_ROWS_H

#include "graph/edge_data.h"
#include "import/importers.h"

/* The edges of the dataset get what `list` says, which has a row for each edge of the source in its
 * order; `origin` [list->edges] is that of the finished matrix (coo.h). The list is freed, after a
 * failure, too. A note that begins with `shown` says how many of the merged edges had other data
 * than what stays. */
HG_NODISCARD hg_status hg__import_edge_rows(const hg_import_config *config, const char *shown,
                                            struct hg__edge_data *list, const int64_t *origin,
                                            hg_dataset *d, char *message);

#endif
