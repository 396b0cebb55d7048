#ifndef HG_DATA_IMPORT_EDGES_H
#define HG_DATA_IMPORT_EDGES_H

#include "import/importers.h"

/* Edges with the ids of the file. */
struct edge_list {
	int64_t m, capacity;
	int64_t *source, *destination;
	float *weight; /* NULL: the file has two columns */
	int columns;   /* 2 or 3; 0: no edge was read yet */
	int64_t largest;
	int64_t declared; /* the number of nodes by the header; 0: no header */
};
void hg__edges_free(struct edge_list *list);

/* Append the edges of one more file. */
HG_NODISCARD hg_status hg__edges_read(struct edge_list *list, const char *path,
                                      const hg_import_config *config, char *message);
/* ids [count] := the distinct ids of the edges from `begin` on, ascending; malloc'd. */
HG_NODISCARD hg_status hg__edges_ids(const struct edge_list *list, int64_t begin, int64_t **ids,
                                     int64_t *count, char *message);

#endif
