/* The contract of the kernels that compute several layers of graph convolution at once, on a batch
 * of small graphs. Everything between the layers stays on the chip. */
#ifndef HG_KERNELS_SMALL_LAYERS_H
#define HG_KERNELS_SMALL_LAYERS_H

#include "core/bins.h"
#include "core/context.h"
#include "core/csr.h"
#include "core/mat.h"
#include "halfgraph/ops_graph.h"
#include "kernels/epilogue.h"
#include "kernels/overflow.h"

HG_EXTERN_C_BEGIN

enum {
	HG__SMALL_LAYERS = 32,   /* the most layers of one call */
	HG__SMALL_MATRICES = 32, /* the most weight matrices of all its layers */
	HG__SMALL_WIDTH = 64     /* the most columns of X and of a layer's result */
};

/* The columns of rows as kernels have them, with zeros behind those of the matrices: 32 or 64, the
 * least that is enough for X and the results of all layers. most: the most columns of these. */
static inline int hg__small_width(int64_t most)
{
	return most <= 32 ? 32 : HG__SMALL_WIDTH;
}

/* One layer:
 *
 *     H' = dropout(f(A H W + H W_self + b))
 *
 * - w: [columns of H, columns of H']. w_self: the same or absent, as b is, [1, columns of H'].
 * - aggregate_first: (A H) W, else A (H W). The first of the two products is narrowed, and H' is.
 *   H W_self is not.
 * - act_drop: f is relu, or there is neither f nor dropout.
 * - inner, result: check the first product and H' for overflow, before they are narrowed. The
 *   number that they record is a NaN where one is found, else INFINITY.
 * - y: [nodes, columns of H'], where H' is stored; absent: it is not.
 * - dy: backward only; the gradient of H' without the part that comes through the next layer;
 *   absent: 0.
 * - dw, dw_self, db: backward only; the gradients, f32, or absent where they are not needed. */
struct hg__small_layer {
	struct hg__mat w, w_self, b, y, dy;
	int aggregate_first;
	struct hg__act_drop act_drop;
	struct hg__overflow_flag inner, result;
	struct hg__mat dw, dw_self, db;
};
static inline int hg__small_has_self(const struct hg__small_layer *layer)
{
	return layer->w_self.data != NULL;
}

/* What is read out of the last result H, for each graph g of the batch:
 *
 *     Y[g] = sum over the nodes i of g of H[i], which HG_REDUCE_MEAN divides by their number
 *
 * and 0 if g has no node. The sum is f32, and narrowed once.
 *
 * - ptr, id: as for readout and readout_back (kernels.h).
 * - y: [graphs, columns of H]; absent: nothing is read out, and dy is absent.
 * - dy: backward only; the gradient of Y. Then the last layer has no dy of its own: that is
 *   narrow(dY[g]), or narrow(dY[g] / size of g).
 * - result: checks Y for overflow. */
struct hg__small_readout {
	const int64_t *ptr;
	const int32_t *id;
	struct hg__mat y, dy;
	hg_reduce reduce; /* HG_REDUCE_SUM or HG_REDUCE_MEAN */
	struct hg__overflow_flag result;
};

/* Layers 0 .. layers - 1, each on the result of the one before:
 *
 *     H_0 = X,   H_{l+1} = layer_l(H_l)
 *     A[i, j] = narrow(alpha r_i s_j) for each entry (i, j); where it repeats, their sum, which
 *               may be narrowed again
 *
 * All matrices are halves. Sums are computed in f32 and in any order, by tensor cores where there
 * are some (hg__depth_dot), and narrowed once. If an element is not finite, those of all rows of
 * its bin may become NaN.
 *
 * - csr: every entry joins two nodes of one bin.
 * - row_scale r, col_scale s: f32 vectors, or NULL (ones).
 * - kept: i32 [bins * layers, hg__small_kept], which forward writes for backward: the elements that
 *   dropout keeps of bins that are not large, in an order of the backend's own. Absent if no layer
 *   drops. */
struct hg__small_layers_args {
	struct hg__csr csr;
	const float *row_scale, *col_scale;
	float alpha;
	const struct hg__bins *bins;
	const struct hg__small_layer *layer;
	int layers;
	struct hg__mat x, kept;
	struct hg__small_readout readout;
};
static inline int hg__small_matrices(const struct hg__small_layers_args *a)
{
	int matrices = a->layers;
	for (int l = 0; l < a->layers; l++)
		matrices += hg__small_has_self(&a->layer[l]);
	return matrices;
}
static inline int64_t hg__small_kept(int width)
{
	return HG__BIN_ROWS * width / 32;
}
static inline int hg__small_width_of(const struct hg__small_layers_args *a)
{
	int64_t most = a->x.cols;
	for (int l = 0; l < a->layers; l++)
		most = a->layer[l].w.cols > most ? a->layer[l].w.cols : most;
	return hg__small_width(most);
}

/* The gradients of X and of each W, W_self and b. The layers are computed once more, because
 * nothing of them is kept but `kept`. With dH the gradient of a layer's result,
 *
 *     dZ = f'(Z) dropout(dH),   db = column sums of dZ,    T = A^T dZ,
 *     dW = H^T T,               dW_self = H^T dZ,          dX = T W^T + dZ W_self^T
 *
 * where dZ, T and dX are narrowed once. The dH of the layer before is dX, or narrow(dX + dy) where
 * that layer has a dy; without one, dX may be narrowed only as the dZ of that layer. Gradients of
 * parameters are added in an order that depends on nothing but the shapes.
 *
 * - of: the arguments of the forward pass. No y is read, and nothing checks for overflow.
 * - csr_t: the transpose; csr_t.edge is not read.
 * - symmetric: A^T = A.
 * - dx: [nodes, columns of X], or absent. */
struct hg__small_layers_back_args {
	struct hg__small_layers_args of;
	struct hg__csr csr_t;
	int symmetric;
	struct hg__mat dx;
};

/* small_layers.c: whether a call is within the contract. HG_OK, or an error with a message
 * (support.h). */
HG_NODISCARD hg_status hg__small_layers_supported(hg_context *ctx,
                                                  const struct hg__small_layers_args *a);
HG_NODISCARD hg_status hg__small_layers_back_supported(hg_context *ctx,
                                                       const struct hg__small_layers_back_args *a);

HG_EXTERN_C_END
#endif
