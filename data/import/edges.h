#ifndef HG_DATA_IMPORT_EDGES_H
#define HG_DATA_IMPORT_EDGES_H

#include "import/importers.h"

/* Edges with the ids of the file, of 32 bits each until one needs more. */
struct edge_list {
	int64_t m, capacity;
	void *source, *destination; /* [m] uint32_t; int64_t if wide */
	int wide;
	float *weight; /* NULL: the file has two columns */
	int columns;   /* 2 or 3; 0: no edge was read yet */
	int64_t largest;
	int64_t declared; /* the number of nodes by the header; 0: no header */
};

/* End number e of the edges, list->source or list->destination. */
static inline int64_t hg__edge_end(const struct edge_list *list, const void *ends, int64_t e)
{
	return list->wide ? ((const int64_t *)ends)[e] : (int64_t)((const uint32_t *)ends)[e];
}

void hg__edges_free(struct edge_list *list);

/* Append the edges of one more file. */
HG_NODISCARD hg_status hg__edges_read(struct edge_list *list, const char *path,
                                      const hg_import_config *config, char *message);
/* ids [count] := the distinct ids of the edges from `begin` on, ascending; malloc'd. */
HG_NODISCARD hg_status hg__edges_ids(const struct edge_list *list, int64_t begin, int64_t **ids,
                                     int64_t *count, char *message);

#endif
