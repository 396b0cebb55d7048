#ifndef HG_DATA_IMPORT_EDGES_H
#define HG_DATA_IMPORT_EDGES_H

#include "import/importers.h"

/* Edges as the user wrote them. */
struct edge_list {
	int64_t m, capacity;
	int64_t *source, *destination;
	float *weight; /* NULL: two columns */
	int columns;   /* 0: no edge seen yet */
	int64_t largest;
	int64_t declared; /* nodes, by a header; 0: there was none */
};
void hg__edges_free(struct edge_list *list);

/* The edges of one more file. */
HG_NODISCARD hg_status hg__edges_read(struct edge_list *list, const char *path,
                                      const hg_import_config *config, char *message);
/* ids [count] := the different ids of the edges from `begin` on, ascending; malloc'd. */
HG_NODISCARD hg_status hg__edges_ids(const struct edge_list *list, int64_t begin, int64_t **ids,
                                     int64_t *count, char *message);

#endif
