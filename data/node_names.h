#ifndef HG_DATA_NODE_NAMES_H
#define HG_DATA_NODE_NAMES_H

#include "internal.h"

/* The texts by which the source of a dataset knows its nodes: one after the other in the order of
 * the nodes, each with its terminating 0. They are kept byte by byte, whatever their encoding. */

/* A name for each node, or none. */
HG_NODISCARD hg_status hg__node_names_check(const hg_dataset *d, const char *origin, char *message);
/* `to` gets the names of the nodes from[0], from[1], .., from[count-1] of `d`; none, if it has
 * none. */
HG_NODISCARD hg_status hg__node_names_gather(const hg_dataset *d, const int32_t *from,
                                             int64_t count, hg_dataset *to, char *message);
/* *copy is malloc'd; NULL where there are no names. */
HG_NODISCARD hg_status hg__node_names_copy(const hg_dataset *d, char **copy, int64_t *bytes,
                                           char *message);

#endif
