#ifndef HG_AUTOGRAD_OPS_LINKS_H
#define HG_AUTOGRAD_OPS_LINKS_H

#include "autograd/opkit.h"

/* A node that does the work of a chain of ops, each on the result of the one before: its range
 * rules are theirs, one after the other. What lies between is f32 and needs no verdict. */

/* in the place of an operand: what the link before has made; nothing */
enum { LINK_BEFORE = -1, LINK_NONE = -2 };
#define MOST_LINKS 5

struct hg__link {
	struct hg__node node;    /* op, number of operands, graph, constants */
	int operand[HG__MAX_IN]; /* which one of the whole it is */
};
struct hg__links {
	struct hg__link link[MOST_LINKS];
	int count;
	/* backward: the gradient of what comes before this link is stored in the state type; 0: none
	 * is */
	int stored;
	struct hg__shape shape; /* of what every link makes */
};

/* One link more. */
void hg__links_add(struct hg__links *links, const struct hg__op *op, hg_graph *graph,
                   const int *operand, int operands, const void *attr, size_t bytes);

/* r->out and r->depth, that of the deepest link; r->din of all operands. */
void hg__links_range(struct hg__range *r, const struct hg__links *links);
void hg__links_range_back(struct hg__range *r, const struct hg__links *links);

#endif
