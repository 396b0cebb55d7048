#ifndef HG_AUTOGRAD_REGION_H
#define HG_AUTOGRAD_REGION_H

#include "autograd/attr.h"
#include "autograd/recording.h"

HG_EXTERN_C_BEGIN

enum { HG__REGION_NODES = 5 }; /* the most nodes of a layer */

/* A region: consecutive layers of graph convolution on a batch of small graphs, and perhaps the sum
 * or mean of the last result over each graph, which one kernel runs forward and one backward
 * (kernels/small_layers.h). The recording keeps the nodes as they are, with their bounds and
 * verdicts. Results inside it are not stored, and the plan gives them no memory, unless a node
 * outside of the region reads the result of a layer, too. All nodes run at one time. Forward that
 * is when the first node of the first layer runs, since X and parameters are all that a region
 * reads; backward, when the linear of the first layer's W runs, which is after the backward of
 * everything that reads a result of the region.
 *
 * The gradient passes A^T before W^T in each layer, also where the layer aggregates first; and
 * bias, activation and dropout of a layer are not narrowed in between. */
struct hg__region_layer {
	int32_t node[HG__REGION_NODES]; /* all nodes of the layer, the last first */
	int nodes;
	int32_t inner;        /* of A H W, the node that computes the first of the two products */
	int32_t product;      /* the linear of W; inner may be the same */
	int32_t self;         /* the linear of W_self; -1: none */
	int32_t result;       /* the node whose result is that of the layer */
	int32_t blamed;       /* the node that a result of the layer that overflows is blamed on */
	int32_t w, w_self, b; /* values; w_self, b -1: none */
	int aggregate_first, stored; /* stored: the result, for other nodes */
	struct hg__epilogue_attr end;
	uint64_t key; /* of the dropout */
};
struct hg__region {
	hg_graph *graph;
	struct hg__spmm_attr spmm;
	const struct hg__bins *bins; /* the graph's */
	int32_t x, kept;             /* values; kept -1: no layer drops */
	int layers, width;           /* width: hg__small_width of all layers */
	int32_t readout;             /* the node that reads out the last result; -1: none */
	struct hg__region_layer layer[HG__SMALL_LAYERS];
};

/* The most entries of a row or column of a graph that has regions: twice those of a full bin. */
enum { HG__REGION_DEGREE = 2 * HG__BIN_ROWS };

static inline int32_t hg__region_first(const struct hg__region *region)
{
	return region->layer[0].inner;
}
/* The node with which its backward runs. It has a gradient, that of W, whether X has one or not. */
static inline int32_t hg__region_back(const struct hg__region *region)
{
	return region->layer[0].product;
}

/* region_call.c: does the bound on the result of this node hold in a region, too? The matrix A is
 * narrowed there, which the bounds of the recording do not count. A result that the policy guards
 * has no bound that must hold. */
int hg__region_has_room(const hg_tape *tape, int32_t entry);
/* ops/region.c: the longest region that ends with this entry and has no entry of which `taken`,
 * indexed by entry, says that it is in another region. No layer: there is none. */
HG_NODISCARD hg_status hg__region_find(hg_tape *tape, const char *taken, int32_t last,
                                       struct hg__region *region);

HG_EXTERN_C_END
#endif
