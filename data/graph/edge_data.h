#ifndef HG_DATA_GRAPH_EDGE_DATA_H
#define HG_DATA_GRAPH_EDGE_DATA_H

#include "internal.h"

/* What edges carry beside a weight. NULL where a part is absent. */
struct hg__edge_data {
	int64_t edges, features;
	float *feat;    /* [edges, features] */
	int32_t *label; /* [edges] */
};

/* The data of a dataset's edges, borrowed. */
struct hg__edge_data hg__edge_data_of(const hg_dataset *d);
int hg__has_edge_data(const hg_dataset *d);
void hg__edge_data_free(struct hg__edge_data *data);

/* What the numbers of a list beyond `from->edges` mean. */
enum hg__beyond {
	HG__BEYOND_NEW,     /* edges without data: attributes of 0, label -1 */
	HG__BEYOND_REVERSED /* number edges + e is the reverse of edge e */
};

/* *to := the data of the edges of a finished matrix, of which `origin` [listed] is the origin
 * (coo.h): each edge has the data of the first of the edges that were merged to it. *differing :=
 * the number of merged edges whose data differ from what stays; it may be NULL. On failure *to is
 * empty. */
HG_NODISCARD hg_status hg__edge_data_gather(const struct hg__edge_data *from, const int64_t *origin,
                                            int64_t listed, enum hg__beyond beyond,
                                            struct hg__edge_data *to, int64_t *differing,
                                            char *message);

/* The dataset owns `data` from here on; what it had is freed. */
void hg__edge_data_give(hg_dataset *d, const struct hg__edge_data *data);

#endif
